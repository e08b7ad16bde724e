"""Programs for releases per group, run on the sample events: OpenDP, plain Python, and the SQL of caps in DuckDB.

With epsilon 1000 the noise is far below what is compared; bounds on it hold with probability 1 - 1e-9 each.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.code import LIBRARIES, Quantity, ReleaseSpec, write
from dpcore.common import programs
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.whole_vector import VectorRule, keep_amounts
from tests.dpcore.code import audit
from tests.dpcore.code.conftest import EVENTS
from tests.dpcore.code.specs import GAUSSIAN, PYTHON_AND_OPENDP, SPEC_BY_NAME, SURE, make_spec, run_program

SHOP = samples.load("shop-events").pairs
assert SHOP is not None
PAIRS = UserGroupPairs.from_facet(SHOP)
EPSILON = 1000.0
STATISTICS = {
    Quantity.GROUP_ROWS: Statistic.ROWS,
    Quantity.GROUP_COUNTS: Statistic.USERS,
    Quantity.GROUP_SUMS: Statistic.SUM,
}


def in_order(names: dict[str, Any], column: str = "") -> np.ndarray:
    """What is released, by the names of the groups in ascending order."""
    if "noisy" in names:
        groups = names["groups"]
        groups = groups["group"].to_list() if hasattr(groups, "columns") else list(groups)
        return np.array([value for _, value in sorted(zip(groups, names["noisy"], strict=True))])
    table = names["totals" if not column else "means"].sort("group")
    return np.asarray(table[column or table.columns[1]].to_numpy())


def codes_by_name() -> np.ndarray:
    """The code of each group, by name: codes are given in the order in which groups come first."""
    lines = EVENTS.read_text().splitlines()[1:]
    first = list(dict.fromkeys(line.split(",")[1] for line in lines))
    return np.argsort(first)


def vectors(choice: ReleaseSpec) -> np.ndarray:
    """The totals of all groups where every user's vector is bounded, by the core."""
    laplace = choice.noise is NoiseKind.LAPLACE
    parameters = PerGroupParameters(1.0, STATISTICS[choice.quantity], choice.noise, None if laplace else 1e-6)
    problem = PerGroupProblem(PAIRS, parameters)
    rule = VectorRule.RADIAL if choice.scales_vector else VectorRule.CAP
    return problem.sum_by_group(keep_amounts(problem, rule, choice.max_norm))[codes_by_name()]


VECTORS = {
    "rows, capped": make_spec(Quantity.GROUP_ROWS, max_norm=24.5, epsilon=EPSILON),
    "users, scaled": make_spec(Quantity.GROUP_COUNTS, max_norm=5.5, scales_vector=True, epsilon=EPSILON),
    "users, capped": make_spec(Quantity.GROUP_COUNTS, max_norm=5.5, epsilon=EPSILON),
    "sums, capped, Gaussian": make_spec(
        Quantity.GROUP_SUMS, max_norm=210.5, noise=GAUSSIAN, delta=1e-6, epsilon=EPSILON
    ),
    "sums, scaled, Gaussian": make_spec(
        Quantity.GROUP_SUMS, max_norm=210.5, scales_vector=True, noise=GAUSSIAN, delta=1e-6, epsilon=EPSILON
    ),
}


@pytest.mark.few(5)
@PYTHON_AND_OPENDP
@pytest.mark.parametrize("name", VECTORS)
def test_bounded_vectors_are_those_of_the_core(folder: Path, name: str, library: Program) -> None:
    choice = VECTORS[name]
    numbers, truth = in_order(run_program(choice, library)), vectors(choice)
    # Laplace: scale T / 1000. Gaussian: rho near 880 by zCDP, deviation T / sqrt(2 rho) below T / 30.
    noise = choice.max_norm * (SURE / EPSILON if choice.noise is NoiseKind.LAPLACE else 6.5 / 30.0)
    assert numbers == pytest.approx(truth, abs=noise)
    assert np.abs(truth - PAIRS.rows.sum()).min() > 2.0 * noise
    problem = PerGroupProblem(PAIRS, PerGroupParameters(1.0, STATISTICS[choice.quantity]))
    assert problem.totals.sum() - truth.sum() > 40 * noise  # so much was cut away


PAIR_OF_ROWS = make_spec(Quantity.GROUP_ROWS, max_groups=2, max_rows=3, epsilon=EPSILON)
PAIR_OF_SUMS = make_spec(Quantity.GROUP_SUMS, max_groups=2, max_total=60.0, epsilon=EPSILON)


@pytest.mark.parametrize(
    ("choice", "library"),  # OpenDP takes 8 s for each.
    [(PAIR_OF_ROWS, Program.PYTHON), (PAIR_OF_SUMS, Program.PYTHON), (PAIR_OF_ROWS, Program.OPENDP)],
)
def test_rows_and_sums_under_a_pair_keep_what_the_pair_allows(
    folder: Path, choice: ReleaseSpec, library: Program
) -> None:
    by_user = [np.flatnonzero(PAIRS.user_codes == u) for u in np.unique(PAIRS.user_codes)]
    rows = choice.quantity is Quantity.GROUP_ROWS
    amounts = np.minimum(PAIRS.rows, 3.0) if rows else np.minimum(PAIRS.sums, 60.0)
    numbers = in_order(run_program(choice, library))
    low = sum(float(np.sort(amounts[rows])[:2].sum()) for rows in by_user)
    high = sum(float(np.sort(amounts[rows])[-2:].sum()) for rows in by_user)
    noise = 2 * float(amounts.max()) / EPSILON * SURE
    assert low - 40 * noise <= float(numbers.sum()) <= high + 40 * noise
    assert float(amounts.sum()) > high + 40 * noise
    assert np.all(numbers <= np.bincount(PAIRS.group_codes, amounts)[codes_by_name()] + noise + 0.5)


@PYTHON_AND_OPENDP
def test_means_per_group_are_near_the_means(folder: Path, library: Program) -> None:
    # 200 users with 10 rows in each of two groups, far from the middle of the range: a sum that is clipped too low
    # would draw the mean to 50.
    rows = [
        f"u{user},{group},{value}"
        for user in range(200)
        for group, value in (("a", 90), ("b", 5))
        for _ in range(10)
    ]
    (folder / "shop_events.csv").write_text("\n".join(["user_id,product,amount", *rows]), encoding="utf-8")
    choice = make_spec(Quantity.GROUP_MEANS, max_groups=2, max_rows=10, epsilon=1e3, lower=0.0, upper=100.0)
    names = run_program(choice, library)
    numbers = names.get("means") or dict(zip("ab", names["mean"], strict=True))
    # Noise of scale 2 * 10 * 100 / 1000 = 2 on both sums: as much on their half difference, and 0.04 on 2,000 rows.
    off = (2.0 + 50.0 * 0.04) * SURE / (2000.0 - 0.04 * SURE)
    assert numbers["a"] == pytest.approx(90.0, abs=off)
    assert numbers["b"] == pytest.approx(5.0, abs=off)


def test_libraries_without_a_norm_say_what_comes_nearest() -> None:
    for name in ("rows per group, capped", "groups, scaled"):
        for library, nearest in (
            (Program.PIPELINEDP, "max_partitions_contributed"),
            (Program.TUMULT, "MaxGroupsPerID"),
            (Program.BIGQUERY, "pair of bounds"),
        ):
            code = write(SPEC_BY_NAME[name], library)
            assert not code.text
            assert nearest in code.differences[0]


def test_a_pair_for_replacing_a_user_says_what_the_library_protects() -> None:
    choice = make_spec(Quantity.GROUP_ROWS, max_groups=2, max_rows=3, neighbours=Neighbours.REPLACE_USER)
    for library in LIBRARIES:
        (sentence,) = [text for text in write(choice, library).differences if "replaced by another" in text]
        assert "with epsilon = 1.0. " in sentence
        assert "epsilon = 0.5 draws the noise" in sentence
        assert not any(
            "replaced by another" in sentence
            for sentence in write(SPEC_BY_NAME["rows per group"], library).differences
        )


LINES = "max_length=2**32 - 1"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean, cap", [7 * 95.0]),
        ("mean, smooth", [7.3 * 95.0]),
        ("sum, both signs", [80.5]),
        ("rows per group", [9 * 3.0]),
        ("sums per group", [9 * 133.5]),
        ("sums per group, any sign", [9 * 133.5]),
    ],
)
def test_the_noise_of_opendp_does_not_grow_with_the_number_of_rows(
    folder: Path, name: str, expected: list[float]
) -> None:
    """With sums of floats it did, by the square: of rows per group from 27 to 32 at 10^7 rows, and to 560 at 10^8."""
    text = write(SPEC_BY_NAME[name], Program.OPENDP).text
    assert text.count(LINES) == 1
    for lines in ("max_length=10**7", LINES):
        names: dict[str, Any] = {}
        exec(compile(text.replace(LINES, lines), "program", "exec"), names)
        scales = [float(scale) for scale in names["query"].summarize()["scale"]]
        step = names["RANGE"] / names["STEPS"] if "STEPS" in names else 1.0
        assert scales[0] * step == pytest.approx(expected[0], rel=1e-6)
        assert scales[1:] == pytest.approx(expected[1:], rel=1e-6)


@PYTHON_AND_OPENDP
@pytest.mark.parametrize(
    "name",
    [
        "mean, cap, private counts",
        "mean, cap, private counts, Gaussian",
        "means per group",
        "means per group, Gaussian",
    ],
)
def test_both_sums_of_means_are_one_vector_with_one_budget(folder: Path, name: str, library: Program) -> None:
    """Its norm is that of the user who moves it most, by brute force over rows and values."""
    observed = audit.Run()
    with audit.silenced(observed):
        run_program(SPEC_BY_NAME[name], library)
    choice = SPEC_BY_NAME[name]
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    groups, rows, width = choice.max_groups or 1, choice.max_rows or 0, 95.0
    in_a_group = max(
        math.hypot(item, width * many - item) if gaussian else item + (width * many - item)
        for many in range(rows + 1)
        for item in [sum(values) for values in itertools.product((0.0, 40.0, width), repeat=many)]
    )
    sensitivity = (math.sqrt(groups) if gaussian else groups) * in_a_group
    ((mechanism, numbers),) = [(at, exact) for at, exact in observed.inputs if len(exact) > 1]
    assert len(numbers) == 2 * (40 if choice.max_groups else 1)
    loss = mechanism.map(sensitivity)
    if not gaussian:
        assert 1.0 - 3e-6 <= loss <= 1.0
    elif library is Program.PYTHON:
        assert audit.compute_delta(loss, 1.0) <= 1e-6 <= audit.compute_delta(loss * (1 + 4e-6), 1.0)
    else:
        assert loss == pytest.approx(programs.convert_to_rho(1.0, 1e-6), rel=4e-6)
        assert loss <= programs.convert_to_rho(1.0, 1e-6)
