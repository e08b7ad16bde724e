"""The bounds on the bias: against subsets, random losses, and their own claims."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.contributions import ContributionHistogram
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm, bound_bias

counts_of_users = st.lists(st.integers(1, 60), min_size=1, max_size=9)


def shares(counts: np.ndarray, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """(n_j / n, min(n_j, tau) / n_tau), user by user."""
    capped = np.minimum(counts, cap)
    return counts / counts.sum(), capped / capped.sum()


def bounds(counts: np.ndarray, cap: float, variance: float) -> dict[BiasTerm, float]:
    histogram = ContributionHistogram.from_counts(counts)
    statistics = optimal_cap.compute_statistics(histogram, cap / counts.sum())
    return {term: float(bound_bias(term, statistics, variance)) for term in BiasTerm}


@st.composite
def capped_users(draw: st.DrawFn) -> tuple[np.ndarray, float]:
    counts = np.array(draw(counts_of_users))
    return counts, draw(st.floats(1.0, float(counts.sum())))


@settings(max_examples=100, deadline=None)
@given(capped_users())
def test_worst_case_is_the_largest_difference_over_all_sets_of_users(case: tuple[np.ndarray, float]) -> None:
    counts, cap = case
    p, q = shares(counts, cap)
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=counts.size)))
    largest = np.max(np.abs(sets @ (q - p)))
    assert bounds(counts, cap, 0.0)[BiasTerm.WORST_CASE] == pytest.approx(largest, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(capped_users(), st.data())
def test_no_bound_lies_below_the_bias_of_any_losses(
    case: tuple[np.ndarray, float], data: st.DataObject
) -> None:
    counts, cap = case
    losses = np.array(
        data.draw(st.lists(st.floats(0.0, 1.0), min_size=counts.size, max_size=counts.size)), dtype=float
    )
    p, q = shares(counts, cap)
    variance = float(p @ (losses - p @ losses) ** 2)
    true_bias = abs(float((q - p) @ losses))
    for term, bound in bounds(counts, cap, min(variance, 0.25)).items():
        assert true_bias <= bound + 1e-7, term  # Roots turn rounding of 1e-15 into 3e-8.


@settings(max_examples=200, deadline=None)
@given(capped_users())
def test_the_order_that_holds(case: tuple[np.ndarray, float]) -> None:
    counts, cap = case
    b = bounds(counts, cap, 0.25)
    slack = 1e-7  # Roots turn rounding of 1e-15 into 3e-8.
    assert b[BiasTerm.WORST_CASE] <= b[BiasTerm.CUT_SHARE] + slack
    assert b[BiasTerm.CUT_SHARE] <= b[BiasTerm.LOG_KEPT] + slack
    assert b[BiasTerm.LOG_KEPT] <= b[BiasTerm.LOG_FRACTION] + slack
    assert b[BiasTerm.VARIANCE_KEPT] <= b[BiasTerm.VARIANCE_FRACTION] + slack
    # Infinite where it does not apply, so both comparisons with corollary 1 hold everywhere.
    assert 2.0 * b[BiasTerm.LOG_KEPT] <= 2.0 * b[BiasTerm.COROLLARY_1] + slack
    assert 2.0 * b[BiasTerm.CUT_SHARE] <= 2.0 * b[BiasTerm.COROLLARY_1] + slack
    # Var = 1/4 is no knowledge at all.
    assert b[BiasTerm.WORST_CASE] <= b[BiasTerm.CHI_SQUARED] + slack
    assert b[BiasTerm.CHI_SQUARED] <= b[BiasTerm.VARIANCE_KEPT] + slack


@settings(max_examples=100, deadline=None)
@given(capped_users())
def test_statistics_user_by_user(case: tuple[np.ndarray, float]) -> None:
    counts, cap = case
    p, q = shares(counts, cap)
    statistics = optimal_cap.compute_statistics(ContributionHistogram.from_counts(counts), cap / counts.sum())
    kept_total = np.minimum(counts, cap).sum()
    assert float(statistics.kept_share) == pytest.approx(kept_total / counts.sum(), rel=1e-12)
    assert float(statistics.cut_share) == pytest.approx(1.0 - kept_total / counts.sum(), abs=1e-12)
    assert float(statistics.max_share) == pytest.approx(q.max(), rel=1e-12)
    assert float(statistics.chi_squared) == pytest.approx(float(np.sum(q**2 / p)) - 1.0, abs=1e-11)


@settings(max_examples=60, deadline=None)
@given(counts_of_users)
def test_every_bound_falls_as_the_cap_rises(counts: list[int]) -> None:
    histogram = ContributionHistogram.from_counts(counts)
    statistics = optimal_cap.compute_statistics(
        histogram, np.geomspace(1.0, histogram.num_rows, 80) / histogram.num_rows
    )
    for term in BiasTerm:
        bound = bound_bias(term, statistics, 0.1)
        # Squares: a root turns rounding of 1e-16 into 1e-8.
        squares = bound[np.isfinite(bound)] ** 2
        assert np.all(np.diff(squares) <= 1e-13), term
    assert np.all(np.diff(statistics.max_share) >= -1e-12)


def test_nothing_is_lost_at_tau_0_equal_to_1() -> None:
    at = optimal_cap.compute_statistics(ContributionHistogram(sizes=[1, 3, 10], users=[200, 20, 1]), 1.0)
    for term in (
        BiasTerm.WORST_CASE,
        BiasTerm.CUT_SHARE,
        BiasTerm.LOG_KEPT,
        BiasTerm.CHI_SQUARED,
        BiasTerm.COROLLARY_1,
        BiasTerm.LOG_FRACTION,
        BiasTerm.PROPOSITION_1,
        BiasTerm.TIGHTEST,
    ):
        assert float(bound_bias(term, at, 0.25)) == 0.0, term
    # The paper's variance form does not vanish: sqrt(2 * 1 * 1/4).
    assert float(bound_bias(BiasTerm.VARIANCE_KEPT, at, 0.25)) == pytest.approx(np.sqrt(0.5), rel=1e-12)


def test_users_who_are_alike_have_no_bias_under_the_variance_forms() -> None:
    statistics = optimal_cap.compute_statistics(
        ContributionHistogram(sizes=[1, 100], users=[10, 5]), np.array([0.01, 0.05, 1.0])
    )
    for term in BiasTerm:
        if term.needs_variance:
            assert np.all(bound_bias(term, statistics, 0.0) == 0.0), term
        else:
            assert float(bound_bias(term, statistics, 0.0)[0]) > 0.0, term


def test_corollary_1_ends_where_less_than_a_quarter_is_kept() -> None:
    # Four users of 25 rows: a cap of 25/4 rows keeps exactly a quarter.
    histogram = ContributionHistogram(sizes=[25], users=[4])
    statistics = optimal_cap.compute_statistics(histogram, np.array([6.0, 6.25, 7.0]) / 100.0)
    bound = bound_bias(BiasTerm.COROLLARY_1, statistics, 0.25)
    assert np.isinf(bound[0])
    assert bound[1:] == pytest.approx([np.sqrt(0.75), np.sqrt(0.72)], rel=1e-12)


def test_losses_of_both_signs_need_twice_as_much() -> None:
    # The proposition as printed admits |L| <= 1. One user has half of 1,000 rows, 500 have one each; one row
    # per user: L = -1 on the heavy user, 1 on the rest is misjudged by nearly 1, above sqrt(log(n/n_tau)/2).
    counts = np.array([500] + [1] * 500)
    p, q = shares(counts, 1.0)
    losses = np.where(counts > 1, -1.0, 1.0)
    true_bias = abs(float((q - p) @ losses))
    b = bounds(counts, 1.0, 0.25)
    assert true_bias > b[BiasTerm.LOG_KEPT] * 1.5
    assert true_bias == pytest.approx(2.0 * b[BiasTerm.WORST_CASE], rel=1e-12)
