"""User effects against loops over users, against draws of the rows that are kept, and against a known model."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.dataset import Values
from dpcore.mean.table_values import clamp, compute_bounded_mean, estimate_user_share

per_user_values = st.lists(
    st.lists(st.floats(-100.0, 100.0).map(lambda x: round(x, 3)), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)
bounds = st.tuples(st.floats(-120.0, 100.0), st.floats(0.5, 150.0)).map(lambda t: (t[0], t[0] + t[1]))


def facet(per_user):
    codes = [code for code, rows in enumerate(per_user) for _ in rows]
    return Values(codes, [value for rows in per_user for value in rows])


def clamp_by_loop(per_user, lower, upper):
    return [[min(max(value, lower), upper) for value in rows] for rows in per_user]


@given(per_user_values, bounds)
def test_clamping_agrees_with_a_loop(per_user, limits):
    lower, upper = limits
    got = clamp(facet(per_user), lower, upper)
    rows = clamp_by_loop(per_user, lower, upper)
    flat = [value for user in rows for value in user]
    raw = [value for user in per_user for value in user]
    assert got.num_below == sum(value < lower for value in raw)
    assert got.num_above == sum(value > upper for value in raw)
    assert got.mean == pytest.approx(statistics.fmean(flat), abs=1e-9)
    variance = statistics.variance(flat) if len(flat) > 1 else 0.0
    # Popoviciu: n values in [L, U] have variance (with n below) of at most (U - L)^2 / 4.
    assert got.variance == pytest.approx(min(variance, (upper - lower) ** 2 / 4.0), rel=1e-9, abs=1e-9)
    assert got.sizes.tolist() == [len(user) for user in rows]
    assert got.user_means == pytest.approx([statistics.fmean(user) for user in rows], abs=1e-9)
    total_within = sum((value - statistics.fmean(user)) ** 2 for user in rows for value in user)
    assert got.within_variances @ (got.sizes - 1) == pytest.approx(total_within, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("limits", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_bad_bounds_get_a_sentence(limits):
    with pytest.raises(InvalidInput):
        clamp(facet([[1.0]]), *limits)


@given(per_user_values, st.lists(st.floats(0.1, 8.0), min_size=1, max_size=4))
def test_the_bounded_mean_agrees_with_a_loop(per_user, hs):
    clamped = clamp(facet(per_user), -100.0, 100.0)
    for h, got in zip(hs, compute_bounded_mean(clamped, hs), strict=True):
        weights = [min(h, len(rows)) for rows in per_user]
        want = sum(w * statistics.fmean(rows) for w, rows in zip(weights, per_user, strict=True)) / sum(
            weights
        )
        assert got == pytest.approx(want, abs=1e-9)


def test_the_bounded_mean_is_what_capping_gives_on_average():
    rng = np.random.default_rng(11)
    per_user = [list(rng.normal(3.0 * size, 1.0, size)) for size in (1, 1, 2, 5, 9)]
    cap, draws = 3, 4_000
    means = np.empty(draws)
    for draw in range(draws):
        kept = [rng.permutation(rows)[:cap] for rows in per_user]
        means[draw] = np.concatenate(kept).mean()
    expected = float(compute_bounded_mean(clamp(facet(per_user), -1e3, 1e3), cap))
    # Five standard errors of the simulation: fails by chance once in 1.7 million seeds.
    assert abs(means.mean() - expected) < 5.0 * means.std(ddof=1) / math.sqrt(draws)
    assert abs(expected - np.concatenate(per_user).mean()) > 1.0


def share_by_hand(per_user):
    """Searle, Casella and McCulloch 1992, section 3.6, in plain loops."""
    rows = [value for user in per_user for value in user]
    n, m, mean = len(rows), len(per_user), statistics.fmean(rows)
    between = sum(len(user) * (statistics.fmean(user) - mean) ** 2 for user in per_user) / (m - 1)
    within = sum((value - statistics.fmean(user)) ** 2 for user in per_user for value in user) / (n - m)
    typical = (n - sum(len(user) ** 2 for user in per_user) / n) / (m - 1)
    spread = between + (typical - 1) * within
    return min(max((between - within) / spread, 0.0), 1.0) if spread > 1e-12 else None


@given(per_user_values)
def test_the_share_agrees_with_a_loop(per_user):
    got = estimate_user_share(clamp(facet(per_user), -100.0, 100.0)).clipped_estimate
    if len(per_user) < 2 or all(len(user) == 1 for user in per_user):
        assert math.isnan(got)
    else:
        assert 0.0 <= got <= 1.0
        want = share_by_hand(per_user)
        if want is not None:
            assert got == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize(
    ("per_user", "share"),
    [([[1.0, 1.0], [2.0, 2.0]], 1.0), ([[1.0, 3.0], [1.0, 3.0]], 0.0), ([[2.0, 2.0], [2.0]], 0.0)],
)
def test_extremes(per_user, share):
    assert estimate_user_share(clamp(facet(per_user), 0.0, 10.0)).clipped_estimate == share


@pytest.mark.parametrize("truth", [0.0, 0.2, 0.7])
def test_the_share_of_a_random_effects_model_is_found(truth):
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 12, 4_000)
    levels = rng.normal(0.0, math.sqrt(truth), sizes.size)
    values = np.repeat(levels, sizes) + rng.normal(0.0, math.sqrt(1.0 - truth), int(sizes.sum()))
    clamped = clamp(Values(np.repeat(np.arange(sizes.size), sizes), values), -50.0, 50.0)
    # 4,000 users: the estimator's standard deviation is about 0.01 (Fisher: (1-ρ)(1+(n-1)ρ)√(2/(n(n-1)m))).
    assert estimate_user_share(clamped).clipped_estimate == pytest.approx(truth, abs=0.05)
