"""The programs for OpenDP and plain Python are run, on a copy of the sample events or on tables made for a purpose.

What is released is random. Bounds on it hold with probability 1 - 1e-9 or more: Laplace noise of scale b exceeds
b ln(1/p) with probability p, normal noise of deviation s exceeds 6.2 s with probability below 1e-9.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

from dpcore import mean
from dpcore.code import LIBRARIES, Quantity, write
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.mean import private_counts
from tests.dpcore.code import audit
from tests.dpcore.code.conftest import rows_of_users
from tests.dpcore.code.specs import (
    LOWER,
    MODULES,
    PYTHON_AND_OPENDP,
    REPLACE,
    SPEC_BY_NAME,
    SURE,
    UPPER,
    VALUES,
    make_spec,
    run_program,
)

EPSILON = 4.0


def sizes() -> list[int]:
    return [len(rows) for rows in rows_of_users().values()]


def capped_sums(h: int) -> tuple[float, float]:
    """The least and the most that at most h rows of each user can add up to, values clamped and from LOWER."""
    low = high = 0.0
    for rows in rows_of_users().values():
        values = sorted(min(max(amount, LOWER), UPPER) - LOWER for amount, _ in rows)
        low, high = low + sum(values[:h]), high + sum(values[-h:])
    return low, high


def smooth_sums(threshold: float) -> tuple[float, float]:
    """Weighted sum of values from LOWER, and sum of weights."""
    total = weight = 0.0
    for rows in rows_of_users().values():
        each = min(1.0, threshold / len(rows))
        total += each * sum(min(max(amount, LOWER), UPPER) - LOWER for amount, _ in rows)
        weight += each * len(rows)
    return total, weight


@PYTHON_AND_OPENDP
def test_a_count_is_near_the_capped_count(folder: Path, library: Program) -> None:
    got = run_program(make_spec(Quantity.COUNT, max_rows=7, epsilon=EPSILON), library)["count"]
    truth = sum(min(7, size) for size in sizes())
    assert abs(got - truth) <= 7 / EPSILON * SURE + 1
    assert sum(sizes()) - truth > 20 * (7 / EPSILON * SURE + 1)  # so rows were left out


@PYTHON_AND_OPENDP
def test_counts_per_group_bound_the_groups_of_a_user(folder: Path, library: Program) -> None:
    k, names = 3, run_program(make_spec(Quantity.GROUP_COUNTS, max_groups=3, epsilon=1000.0), library)
    noisy = names["counts"]["len"].to_list() if library is Program.OPENDP else names["noisy"]
    distinct = [len({product for _, product in rows}) for rows in rows_of_users().values()]
    # Noise of scale 0.003 (integers in OpenDP): the sum over 40 groups is exact to within 2.
    assert len(noisy) == 40
    assert sum(noisy) == pytest.approx(sum(min(k, d) for d in distinct), abs=40 * (k / 1000.0) * SURE)
    assert sum(distinct) - sum(min(k, d) for d in distinct) > 300


PRIVATE_GROUPS = replace(SPEC_BY_NAME["groups"], disclosure=Disclosure.PRIVATE, epsilon=1000.0)
UNWRITTEN = "GROUPS: list[str] = []"


@pytest.mark.parametrize("message", ["[]", '["p1", "p1"]'])
@pytest.mark.parametrize("library", [library for library in LIBRARIES if library is not Program.BIGQUERY])
def test_counts_of_private_data_release_nothing_before_the_groups_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, library: Program, message: str
) -> None:
    """Whatever the library: it is imported and not used, so no epsilon is spent."""
    modules = MagicMock()
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, modules)
    text = write(PRIVATE_GROUPS, library).text
    assert text.count(UNWRITTEN) == 1
    with pytest.raises(SystemExit, match=r"public list of groups into GROUPS first.*no epsilon was spent"):
        exec(compile(text.replace(UNWRITTEN, f"GROUPS = {message}"), "program", "exec"), {})
    calls = [name for name, *_ in modules.mock_calls if not name.endswith("enable_features")]
    assert calls == []


@PYTHON_AND_OPENDP
def test_groups_that_were_written_are_counted_whatever_their_names(folder: Path, library: Program) -> None:
    # Groups that look like numbers: u0 to u8 are in 1 and 2 and 3 (at most two of them count), u9 in 2 alone.
    rows = [f"u{i},{group}" for i in range(9) for group in (1, 2, 3)] + ["u9,2", ",1", "u9,"]
    (folder / "shop_events.csv").write_text("user_id,product\n" + "\n".join(rows) + "\n")
    names: dict[str, Any] = {}
    text = write(replace(PRIVATE_GROUPS, max_groups=2), library).text
    exec(compile(text.replace(UNWRITTEN, 'GROUPS = ["3", "2", "1", "0"]'), "program", "exec"), names)
    noisy = names["counts"]["len"].to_list() if library is Program.OPENDP else names["noisy"]
    # Noise of scale 0.002 on four counts.
    assert len(noisy) == 4
    assert sum(noisy) == pytest.approx(9 * 2 + 1, abs=4 * 0.002 * SURE)


@PYTHON_AND_OPENDP
@pytest.mark.parametrize(("low", "high"), [(0.0, 150.25), (-20.0, 80.5)])
def test_a_sum_is_near_the_sum_of_clamped_totals(
    folder: Path, library: Program, low: float, high: float
) -> None:
    table = pd.read_csv("shop_events.csv")
    if low < 0.0:  # Some users lose money.
        table["amount"] = np.where(table["user_id"].str[-1] < "5", -table["amount"], table["amount"])
        table.to_csv("shop_events.csv", index=False)
    got = run_program(make_spec(Quantity.SUM, max_total=high, min_total=low, epsilon=EPSILON), library)[
        "total"
    ]
    totals = table.groupby("user_id")["amount"].sum()
    truth = float(totals.clip(low, high).sum())
    assert abs(got - truth) <= 1.001 * high / EPSILON * SURE
    assert abs(float(totals.sum()) - truth) > 10 * high / EPSILON * SURE


@PYTHON_AND_OPENDP
def test_a_mean_with_public_counts_is_a_mean_of_capped_rows(folder: Path, library: Program) -> None:
    choice = make_spec(Quantity.MEAN, max_rows=2, neighbours=REPLACE, epsilon=EPSILON, **VALUES)
    names = run_program(choice, library)
    num_kept = sum(min(2, size) for size in sizes())
    assert names["kept" if library is Program.OPENDP else "rows"] == num_kept
    noise = 1.02 * 2 * (UPPER - LOWER) / EPSILON * SURE
    low, high = capped_sums(2)
    assert low - noise <= (names["mean"] - LOWER) * num_kept <= high + noise
    assert capped_sums(10**6)[0] > high + noise  # the sum of all rows lies outside
    for bound in ({"max_rows": 2}, {"threshold": 7.3}):
        noisy_choice = make_spec(Quantity.MEAN, **bound, neighbours=REPLACE, epsilon=1e-5, **VALUES)
        assert LOWER <= run_program(noisy_choice, library)["mean"] <= UPPER  # whatever the noise


@PYTHON_AND_OPENDP
def test_smooth_weights_with_public_counts(folder: Path, library: Program) -> None:
    choice = make_spec(Quantity.MEAN, threshold=7.3, neighbours=REPLACE, epsilon=EPSILON, **VALUES)
    got = run_program(choice, library)["mean"]
    total, weight = smooth_sums(7.3)
    assert abs((got - LOWER) * weight - total) <= 1.02 * 7.3 * (UPPER - LOWER) / EPSILON * SURE


@PYTHON_AND_OPENDP
@pytest.mark.parametrize("relation", list(Neighbours)[:2])
def test_weights_that_follow_rho_and_a_mean_over_users(
    folder: Path, library: Program, relation: Neighbours
) -> None:
    """min(h, s (a + b / (1 + (s - 1) rho))) for each user, by hand; with a bound of 1 every user weighs the same."""
    of_users = [
        (len(rows), float(np.mean([min(max(amount, LOWER), UPPER) for amount, _ in rows])))
        for rows in rows_of_users().values()
    ]
    at, a, b, rho = 6.5, 0.4, 5.0, 0.35
    expected = {}
    for name, grown in (
        ("plain", lambda s: min(at, s)),
        ("rho", lambda s: min(at, s * (a + b / (1.0 + (s - 1) * rho)))),
        ("users", lambda s: 1.0),
    ):
        weights = np.array([grown(s) for s, _ in of_users])
        expected[name] = float(weights @ [mean for _, mean in of_users]) / weights.sum(), weights.sum()
    follows = {"threshold": at, "weight_of_rows": a, "weight_of_users": b, "user_share": rho}
    means = {}
    for name, fields in (("rho", follows), ("users", {"threshold": 1.0})):
        epsilon = 1000.0
        choice = make_spec(Quantity.MEAN, neighbours=relation, epsilon=epsilon, **fields, **VALUES)
        means[name] = run_program(choice, library)["mean"]
        truth, together = expected[name]
        # Twice the scale, as OpenDP splits epsilon, on both sums; weights in steps of 2^-30 of the bound.
        slack = 2 * 2 * 1.1 * fields["threshold"] * (UPPER - LOWER) / epsilon * SURE / together
        assert abs(means[name] - truth) <= slack + 1e-5
        assert abs(truth - expected["plain"][0]) > 5 * slack
    assert abs(expected["rho"][0] - expected["users"][0]) > 0.05


@PYTHON_AND_OPENDP
@pytest.mark.parametrize("bound", [{"max_rows": 7}, {"threshold": 7.3}])
def test_a_mean_with_private_counts(folder: Path, library: Program, bound: dict[str, float]) -> None:
    got = run_program(make_spec(Quantity.MEAN, epsilon=400.0, **bound, **VALUES), library)["mean"]
    h = next(iter(bound.values()))
    if "threshold" in bound:
        low = high = smooth_sums(h)[0]
    else:
        low, high = capped_sums(int(h))
    num_kept = sum(min(h, size) for size in sizes())
    # Twice the scale, since OpenDP splits epsilon; both numerator and denominator move.
    slack = 2 * 2 * 1.1 * h * (UPPER - LOWER) / 400.0 * SURE / num_kept
    assert low / num_kept - slack <= got - LOWER <= high / num_kept + slack


@PYTHON_AND_OPENDP
@pytest.mark.parametrize("relation", [REPLACE, Neighbours.ADD_OR_REMOVE_USER])
def test_a_mean_clamps_what_users_deviate(folder: Path, library: Program, relation: Neighbours) -> None:
    """Users of one row reach h times as far as the range, which cuts rows off."""
    h, lower, upper = 4.5, 30.0, 40.0
    rows = [[amount for amount, _ in rows] for rows in rows_of_users().values()]
    weights = [min(h, len(amounts)) for amounts in rows]
    deviations = [
        weight * (math.fsum(amounts) / len(amounts) - 35.0)
        for weight, amounts in zip(weights, rows, strict=True)
    ]
    limit = h * (upper - lower) / 2.0
    clamped = math.fsum(min(max(deviation, -limit), limit) for deviation in deviations)
    expected = 35.0 + clamped / math.fsum(weights)
    fields = {"threshold": h, "clamps_users": True, "lower": lower, "upper": upper, "neighbours": relation}
    names = run_program(make_spec(Quantity.MEAN, epsilon=400.0, **fields), library)
    # Numerator and denominator move; the mean is near the middle.
    slack = 2 * 1.1 * 2 * limit / 400.0 * SURE / math.fsum(weights)
    assert abs(names["mean"] - expected) <= slack
    assert abs(expected - 35.0 - math.fsum(deviations) / math.fsum(weights)) > 5 * slack
    # The noise is far wider than what users' means can be: a mean that is not clamped lies outside.
    noisy = run_program(make_spec(Quantity.MEAN, epsilon=1e-5, **fields), library)["mean"]
    assert abs(noisy - 35.0) <= limit * (1 + 1e-9)


@pytest.mark.long_but("Program.PYTHON")
@PYTHON_AND_OPENDP
def test_noise_is_what_the_bound_asks_for(folder: Path, library: Program) -> None:
    """The scale, not a draw: h B / epsilon, and never less."""
    for name, expected in (
        ("mean, cap", 7 * 95.0),
        ("mean, smooth", 7.3 * 95.0),
        ("sum", 150.25),
        ("sum, both signs", 80.5),
        ("count", 7.0),
        ("groups", 3.0),
    ):
        scale = _scale(run_program(SPEC_BY_NAME[name], library), library, name)
        assert expected * (1 - 1e-12) <= scale <= expected * 1.000002, name


def _scale(names: dict[str, Any], library: Program, name: str) -> float:
    if library is Program.OPENDP:
        scale = float(names["query"].summarize()["scale"].item())
        return scale * names["RANGE"] / names["STEPS"] if "STEPS" in names else scale
    scales: list[float] = []
    dp = names["dp"]

    class Spy:
        def __getattr__(self, attribute: str) -> Any:
            return getattr(dp, attribute)

        def binary_search_param(self, make: Any, d_in: float, d_out: float, **options: Any) -> float:
            scales.append(dp.binary_search_param(make, d_in=d_in, d_out=d_out, **options))
            return scales[-1]

    sensitivity = {
        "sum": 150.25,
        "sum, both signs": 80.5,
        "count": names.get("MAX_ROWS"),
        "groups": names.get("MAX_GROUPS"),
    }.get(name, names.get("SENSITIVITY"))
    names["dp"] = Spy()
    names["add_noise"]([0.0], sensitivity)
    return scales[0]


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Delta that zero-concentrated DP implies: Canonne, Kamath, Steinke 2020, proposition 7, on a grid of alpha."""
    alpha = 1.0 + np.geomspace(1e-3, 1e4, 200_001)
    log_delta = (alpha - 1.0) * (alpha * rho - epsilon) - np.log(alpha - 1.0) + alpha * np.log1p(-1.0 / alpha)
    return math.exp(float(log_delta.min()))


@PYTHON_AND_OPENDP
def test_gaussian_noise_covers_epsilon_and_delta(folder: Path, library: Program) -> None:
    """The noise is the least that zero-concentrated DP allows in OpenDP, and the least of all in plain Python."""
    names = run_program(SPEC_BY_NAME["count, Gaussian"], library)
    if library is Program.OPENDP:
        text = write(SPEC_BY_NAME["count, Gaussian"], library).text
        rho = float(re.findall(r"loss_of\(rho=(.*?)\)", text)[0])
        assert zcdp_delta(rho, 1.0) <= 1e-6 * (1 + 1e-8) < zcdp_delta(rho * (1 + 1e-4), 1.0)
    else:
        rho = 0.5 / names["SIGMA"] ** 2
        assert audit.compute_delta(rho, 1.0) <= 1e-6 < audit.compute_delta(rho * (1 + 1e-6), 1.0)
    deviation = 7.0 / math.sqrt(2.0 * rho)
    assert abs(names["count"] - sum(min(7, size) for size in sizes())) <= 6.2 * deviation + 1
    if library is Program.OPENDP:
        assert names["query"].summarize()["scale"].item() == pytest.approx(deviation, rel=1e-6)
    other = run_program(SPEC_BY_NAME["groups, Gaussian"], library)
    if library is Program.OPENDP:  # A user moves 3 counts by 1: sqrt(3) in L2.
        assert other["query"].summarize()["scale"].item() == pytest.approx(math.sqrt(3 / 2 / rho), rel=1e-6)


@PYTHON_AND_OPENDP
def test_a_capped_median_is_not_the_heavy_users_median(folder: Path, library: Program) -> None:
    """400 users with a row from 10 to 30, one with 4,000 rows of 90: the median is 90; capped at 2 rows it is 20."""
    table = pd.DataFrame({"user_id": ["heavy"] * 4000 + [f"u{i}" for i in range(400)], "amount": 90.0})
    table.loc[4000:, "amount"] = np.linspace(10.0, 30.0, 400)
    table.to_csv("shop_events.csv", index=False)
    choice = make_spec(
        Quantity.QUANTILE, max_rows=2, quantiles=(0.5,), neighbours=REPLACE, epsilon=EPSILON, **VALUES
    )
    names = run_program(choice, library)
    got = names["quantiles"][0.5]
    # The exponential mechanism errs by more than (2 * 2 / epsilon) (log 2000 + 20.7) = 28 rows with probability below
    # 1e-9; 20 rows lie in one unit of the values. OpenDP may need twice the scale.
    assert 17.0 <= got <= 23.0


def test_smooth_quantile_weighs_like_dpcore(folder: Path) -> None:
    names = run_program(
        make_spec(Quantity.QUANTILE, threshold=2.5, quantiles=(0.5,), neighbours=REPLACE, **VALUES),
        Program.PYTHON,
    )
    rows = [(amount, min(1.0, 2.5 / len(rows))) for rows in rows_of_users().values() for amount, _ in rows]
    for candidate, weight in list(zip(names["candidates"], names["weight_below"], strict=True))[::97]:
        expected = math.fsum(w for amount, w in rows if amount <= candidate)
        assert weight / 2**30 == pytest.approx(expected, rel=1e-6)


def test_a_quantile_that_protects_users_is_picked_with_max_q_and_1_minus_q_of_the_bound(folder: Path) -> None:
    sensitivities_seen = []
    for relation in ({"neighbours": REPLACE}, {}):
        choice = make_spec(Quantity.QUANTILE, threshold=2.5, quantiles=(0.2, 0.5), **relation, **VALUES)
        names = run_program(choice, Program.PYTHON)
        text = write(choice, Program.PYTHON).text
        call = next(line for line in text.splitlines() if "chosen = pick(" in line)
        made = []
        names["pick"] = lambda scores, sensitivity, epsilon, made=made: made.append(sensitivity) or 0
        for q in (0.2, 0.5):
            exec(call.strip(), {**names, "q": q})
        sensitivities_seen.append(made)
    assert sensitivities_seen == [[2.5, 2.5], [2.5 * 0.8, 2.5 * 0.5]]


@pytest.mark.parametrize("private", [False, True])
def test_plain_python_has_the_weights_and_the_variance_of_dpcore(folder: Path, private: bool) -> None:
    h = 7.3
    bounds = {} if private else {"neighbours": REPLACE}
    names = run_program(make_spec(Quantity.MEAN, threshold=h, **bounds, **VALUES), Program.PYTHON)
    histogram = ContributionHistogram.from_counts(sizes())
    make = private_counts.PrivateCountsProblem if private else mean.MeanProblem
    problem = make(histogram, epsilon=1.0, value_bound=UPPER - LOWER, value_variance=0.25)
    users = names["users"]
    expected = mean.compute_row_weight(problem, h, users["count"].to_numpy())
    scale = names["rows"] if not private else expected[0] and users["weight"].iloc[0] / expected[0]
    np.testing.assert_allclose(users["weight"] / scale, expected, rtol=1e-12)
    privacy = 2.0 * (names["SENSITIVITY"] / names["EPSILON"] / names["rows"]) ** 2
    assert privacy == pytest.approx(float(mean.compute_smooth_error(problem, h).privacy_variance), rel=1e-12)
    names = run_program(make_spec(Quantity.MEAN, max_rows=7, **bounds, **VALUES), Program.PYTHON)
    privacy = 2.0 * (names["SENSITIVITY"] / names["EPSILON"] / names["rows"]) ** 2
    assert privacy == pytest.approx(
        float(mean.compute_capped_error(problem, 7.0).privacy_variance), rel=1e-12
    )


@PYTHON_AND_OPENDP
def test_a_model_gets_capped_rows(folder: Path, library: Program) -> None:
    names = run_program(SPEC_BY_NAME["model"], library)
    counts = names["kept"]["user_id"].value_counts()
    assert sorted(counts) == sorted(min(7, size) for size in sizes())


@PYTHON_AND_OPENDP
def test_two_columns_can_name_a_user(folder: Path, library: Program) -> None:
    table = pd.read_csv("shop_events.csv")
    table = table.assign(shop=table["user_id"].str[:2], client=table["user_id"].str[2:])
    table.drop(columns="user_id").to_csv("shop_events.csv", index=False)
    choice = make_spec(Quantity.COUNT, max_rows=7, epsilon=1000.0, privacy_unit=("shop", "client"))
    assert run_program(choice, library)["count"] == pytest.approx(
        sum(min(7, size) for size in sizes()), abs=2
    )


@PYTHON_AND_OPENDP
def test_rows_that_lack_a_part_of_their_users_name_are_left_out_as_on_the_page(
    folder: Path, library: Program
) -> None:
    # 30 named users of one row each, and 20 rows that name a shop but no client.
    rows = [f"north,{i}" for i in range(30)] + ["south,"] * 20
    (folder / "shop_events.csv").write_text("shop,client\n" + "\n".join(rows) + "\n")
    choice = make_spec(Quantity.COUNT, max_rows=7, epsilon=1000.0, privacy_unit=("shop", "client"))
    # Noise of scale 7 / 1000; were they one user, 37 would come out.
    assert run_program(choice, library)["count"] == pytest.approx(30, abs=1)


@pytest.mark.thinned
@PYTHON_AND_OPENDP
@pytest.mark.parametrize("name", ["a`b\"c'd", "^.*$", "*", "ü'''\"\"\"x", "two\nlines"])
def test_hostile_columns_are_read_as_they_are_called(folder: Path, library: Program, name: str) -> None:
    table = pd.read_csv("shop_events.csv").rename(columns={"user_id": name, "amount": name + "?"})
    table.to_csv("shop_events.csv", index=False)
    choice = make_spec(
        Quantity.SUM, max_total=150.25, epsilon=1000.0, privacy_unit=(name,), value_column=name + "?"
    )
    truth = float(table.groupby(name)[name + "?"].sum().clip(0.0, 150.25).sum())
    assert run_program(choice, library)["total"] == pytest.approx(truth, abs=1.1 * 150.25 / 1000.0 * SURE)


@PYTHON_AND_OPENDP
def test_parquet_and_tsv_are_read(folder: Path, library: Program) -> None:
    table = pd.read_csv("shop_events.csv")
    table.to_csv("events.tsv", sep="\t", index=False)
    table.to_parquet("events.parquet", index=False)
    for file in ("events.tsv", "events.parquet"):
        got = run_program(make_spec(Quantity.COUNT, max_rows=7, epsilon=1000.0, file=file), library)["count"]
        assert got == pytest.approx(sum(min(7, size) for size in sizes()), abs=2)
