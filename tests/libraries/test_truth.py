"""What the tests of libraries compare with: enumeration, exact tails, and wrong bounds, which would be seen."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcore.code import ReleaseSpec
from dpcore.common.programs import Program
from tests.libraries import truth

ROOT = truth.EVENTS.parents[1]


def test_the_sum_of_drawn_rows_has_the_moments_of_all_subsets() -> None:
    values = np.array([3.0, -1.0, 4.0, 1.5, 9.0])
    for most in range(1, 7):
        sums = [sum(subset) for subset in itertools.combinations(values, min(most, 5))]
        assert truth._find_moments(values, most) == pytest.approx((np.mean(sums), np.var(sums)))


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.5, 0.97])
def test_the_bound_holds_for_exact_binomial_tails_and_is_not_idle(chance: float) -> None:
    users, copies = 400, truth.COPIES
    off = truth._bound_sampling([chance * (1.0 - chance)] * users, 1.0)
    drawn = stats.binom(users * copies, chance)
    beyond = float(drawn.sf(drawn.mean() + off) + drawn.cdf(drawn.mean() - off))
    assert beyond <= 1e-9
    assert off < 9.0 * drawn.std()


def test_the_wide_bounds_change_nobodys_data() -> None:
    assert max(map(truth._count_rows, truth.USERS)) <= truth.NOBODY["max_rows"] <= truth.NOBODY["threshold"]
    assert max(float(truth._list_rows(user).sum()) for user in truth.USERS) <= truth.NOBODY["max_total"]
    each = [rows for user in truth.USERS for rows in user.values()]
    most = truth.NOBODY_PER_GROUP
    assert max(map(len, truth.USERS)) <= most["max_groups"]
    assert max(map(len, each)) <= most["max_rows"]
    assert max(float(rows.sum()) for rows in each) <= most["max_total"]


# A mean or a quantile hardly moves with the cap, so there the wide bounds are what differs.
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("sum", {"max_total": 151.0}),
        ("sum, Gaussian", {"max_total": 151.0}),
        ("sum, both signs", {"max_total": 81.0}),
        ("count", {"max_rows": 8}),
        ("count, Gaussian", {"max_rows": 6}),
        ("groups", {"max_groups": 2}),
        ("groups, Gaussian", {"max_groups": 4}),
        ("rows per group", {"max_rows": 4}),
        ("rows per group", {"max_groups": 10}),
        ("sums per group", {"max_total": 170.0}),
        ("sums per group, any sign", {"max_groups": 8}),
        ("model", {"max_rows": 6}),
        ("mean, smooth by rho", {"user_share": 0.6}),
    ],
)
def test_a_bound_that_is_a_little_off_would_be_seen(name: str, other: dict[str, float]) -> None:
    right = truth.make_case(name, binds=True)
    assert apart(right, replace(right, **other))
    assert apart(right, truth.make_case(name, binds=False))


def apart(choice: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Whether no release can be one that both choices allow."""
    a, b = truth.compute_truth(choice), truth.compute_truth(other)
    return len(a.tolerance) != len(b.tolerance) or bool(
        np.any(np.abs(a.expected - b.expected) > a.tolerance + b.tolerance)
    )


@pytest.mark.parametrize("name", ["mean, cap", "mean, smooth", "mean, cap, private counts", "quantile, cap"])
def test_a_mean_or_a_quantile_is_narrowed_down(name: str) -> None:
    for binds in (False, True):
        assert truth.compute_truth(truth.make_case(name, binds)).tolerance.max() < 1.5  # of a range of 95


def test_every_program_of_both_libraries_is_run() -> None:
    assert len(truth.list_programs(Program.PIPELINEDP)) == len(truth.list_programs(Program.TUMULT)) == 24


@pytest.mark.parametrize("library", ["pipelinedp", "tumult"])
def test_the_document_names_the_versions_that_are_run(library: str) -> None:
    text = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    (version,) = re.findall(
        r"^(?:pipeline-dp|tmlt\.analytics)==(\S+)$",
        (ROOT / "tests" / "libraries" / f"{library}.txt").read_text(),
        re.M,
    )
    assert version in text
