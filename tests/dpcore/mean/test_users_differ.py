"""Means of users who differ: against all ways to draw the rows, covariance matrices, CVXPY and every cap."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Values
from dpcore.mean.models import CountsOnly, find_interval_around
from dpcore.mean.public_counts import Population, WeightGrowth
from dpcore.mean.table_values import KnownValues, TableValues, clamp, estimate_user_share

LIMITS = (-4.0, 6.0)
few_values = st.lists(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=4), min_size=1, max_size=4)
counts = st.lists(st.integers(1, 60), min_size=1, max_size=12)
shares = st.sampled_from([0.0, 1e-6, 0.03, 0.2, 0.7, 1.0 - 1e-9, 1.0])
noises = st.floats(-6.0, 6.0).map(lambda exponent: 10.0**exponent)


def known_values(per_user, unit_noise):
    codes = [code for code, rows in enumerate(per_user) for _ in rows]
    clamped = clamp(Values(codes, [value for rows in per_user for value in rows]), *LIMITS)
    histogram = ContributionHistogram.from_counts([len(rows) for rows in per_user])
    return KnownValues(TableValues.from_clamped(histogram, clamped), unit_noise)


def selections(sizes, cap):
    """Every way to keep min(cap, s) of s rows of each user, as weights of all rows that sum to 1."""
    num_kept = sum(min(cap, s) for s in sizes)
    ways = [itertools.combinations(range(s), min(cap, s)) for s in sizes]
    for item in itertools.product(*(list(entry) for entry in ways)):
        yield [[(row in own) / num_kept for row in range(s)] for s, own in zip(sizes, item, strict=True)]


def largest_noise(sizes, cap, unit_noise):
    return unit_noise * (min(cap, max(sizes)) / sum(min(cap, s) for s in sizes)) ** 2


@given(few_values, noises)
def test_a_cap_on_this_table_errs_what_all_draws_of_its_rows_err_on_average(per_user, unit_noise):
    model = known_values(per_user, unit_noise)
    sizes = [len(rows) for rows in per_user]
    truth = np.mean([value for rows in per_user for value in rows])
    clamped = [np.clip(rows, *LIMITS) for rows in per_user]
    for cap in range(1, max(sizes) + 1):
        releases = [
            sum(np.dot(w, y) for w, y in zip(weights, clamped, strict=True))
            for weights in selections(sizes, cap)
        ]
        want = np.mean((np.array(releases) - truth) ** 2) + largest_noise(sizes, cap, unit_noise)
        got = model.measure_capped(np.array([float(cap)])).squared_error[0]
        assert got == pytest.approx(want, rel=1e-9, abs=1e-12)
        weights = [min(cap, len(rows)) for rows in per_user]
        shifted = np.average([rows.mean() for rows in clamped], weights=weights) - truth
        smooth = model.measure_smooth(np.array([float(cap)])).squared_error[0]
        want = shifted**2 + largest_noise(sizes, cap, unit_noise)
        assert smooth == pytest.approx(want, rel=1e-9, abs=1e-12)


random_tables = st.integers(0, 10_000).map(
    lambda seed: (lambda rng: [
        (rng.normal(0.0, 3.0) + rng.normal(0.0, rng.uniform(0.0, 3.0), int(s))).tolist()
        for s in np.ceil(np.exp(rng.normal(1.0, 1.3, 25))).clip(1, 80)
    ])(np.random.default_rng(seed))
)  # fmt: skip


@given(random_tables, noises)
def test_no_bound_on_this_table_is_better_and_all_good_stretches_are_named(per_user, unit_noise):
    model, largest_size = known_values(per_user, unit_noise), max(len(rows) for rows in per_user)
    caps = np.arange(1.0, largest_size + 1.0)
    errors = model.measure_capped(caps).squared_error
    best = model.cap_curve.minimise(is_integer=True)
    assert best.certificate.value == pytest.approx(errors.min(), rel=1e-12)
    assert best.certificate.proves(1e-9)
    limit = best.certificate.value * 1.05**2
    want = set(caps[errors <= limit * (1 - 1e-12)])
    stretches = model.cap_curve.find_intervals_within(limit, is_integer=True)
    named_caps = {cap for low, high in stretches for cap in np.arange(low, high + 1.0)}
    assert want <= named_caps <= set(caps[errors <= limit * (1 + 1e-12)])
    low, high = find_interval_around(stretches, best.bound)
    assert low <= best.bound <= high

    smooth = model.find_best_smooth()
    smallest = min(len(rows) for rows in per_user)
    grid = np.linspace(smallest, largest_size, 801)
    on_grid = model.measure_smooth(grid).squared_error
    assert smooth.certificate.value <= on_grid.min() * (1 + 1e-12)
    assert smooth.certificate.proves(1e-9)
    # At a whole threshold smooth weights shift as much as the cap, and draw no rows.
    assert np.all(model.measure_smooth(caps).squared_error <= errors * (1 + 1e-12))


def test_several_valleys_occur_and_the_certificate_fails_on_the_wrong_one():
    several = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        per_user = [rng.normal(rng.normal(0.0, 3.0), 1.0, int(s)).tolist() for s in rng.integers(1, 60, 12)]
        model = known_values(per_user, 1e-3)
        curve = model.cap_curve
        errors = model.measure_capped(np.arange(1.0, 60.0)).squared_error
        inner = errors[1:-1]
        valleys = np.flatnonzero((inner < errors[:-2]) & (inner < errors[2:])) + 1
        several += valleys.size > 1
        best = curve.minimise(is_integer=True)
        for valley in valleys[errors[valleys] > errors.min() * 1.001]:
            assert not Certificate(errors[valley], best.certificate.lower_bound, "").proves(1e-4)
    assert several > 5


@given(counts, shares, noises)
def test_counts_only_weights_are_the_best_of_all_and_caps_are_enumerated(sizes, rho, unit_noise):
    histogram, n = ContributionHistogram.from_counts(sizes), sum(sizes)
    model = CountsOnly(histogram, unit_noise, 1.7, rho)
    s = np.array(sizes, dtype=float)
    p, x = s / n, s / (1.0 + (s - 1.0) * rho)
    best = model.find_best_smooth()
    assert best.certificate.proves(1e-7)
    weights = np.minimum(best.bound, s) * 0 + WeightGrowth(
        *model.compute_coefficients(best.bound), rho
    ).compute_user_weights(np.minimum(best.bound, s))
    weights /= weights.sum()
    direct = 1.7 * np.sum((weights - p) ** 2 / x) + unit_noise * weights.max() ** 2
    assert direct == pytest.approx(best.certificate.value, rel=1e-8)
    caps = np.arange(1.0, s.max() + 1.0)
    num_kept = np.minimum(caps[:, None], s)
    k = num_kept / num_kept.sum(1, keepdims=True)
    rows = 1.0 / num_kept.sum(1) - 1.0 / n
    want = 1.7 * (rho * np.sum((k - p) ** 2, 1) + (1 - rho) * rows) + unit_noise * k.max(1) ** 2
    got = model.measure_capped(caps).squared_error
    assert got == pytest.approx(want, rel=1e-8, abs=1e-13)
    assert model.cap_curve.minimise(is_integer=True).certificate.value == pytest.approx(
        want.min(), rel=1e-8, abs=1e-13
    )
    # Over all whole thresholds nothing is better than the root.
    assert best.certificate.value <= model.measure_smooth(caps[caps >= s.min()]).squared_error.min() * (
        1 + 1e-9
    )


def solved(quadratic, unit_noise):
    u = cp.Variable(quadratic[0].size, nonneg=True)
    target, x, variance = quadratic
    missed = cp.multiply(1.0 / np.sqrt(x), u - target)
    problem = cp.Problem(
        cp.Minimize(variance * cp.sum_squares(missed) + unit_noise * cp.square(cp.max(u))), [cp.sum(u) == 1.0]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return float(problem.value)


@pytest.mark.thinned
@pytest.mark.parametrize("rho", [0.0, 1e-6, 0.03, 0.4, 1.0])
@pytest.mark.parametrize("unit_noise", [0.02, 1.0, 40.0])
def test_cvxpy_finds_no_better_weights(rho, unit_noise):
    rng = np.random.default_rng(int(1000 * rho) + int(unit_noise))
    s = np.ceil(np.exp(rng.normal(1.0, 1.2, 40))).clip(1, 200)
    x, histogram = s / (1.0 + (s - 1.0) * rho), ContributionHistogram.from_counts(s)
    table = CountsOnly(histogram, unit_noise, 2.0, rho).find_best_smooth().certificate.value
    assert table == pytest.approx(solved((s / s.sum(), x, 2.0), unit_noise), rel=1e-6)
    population = Population(histogram, unit_noise, 2.0, rho).find_best_smooth().certificate.value
    assert population == pytest.approx(solved((np.zeros(40), x, 2.0), unit_noise), rel=1e-6)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.sampled_from([0.0, 0.3, 1.0]))
@example([3, 1, 2], 0.3)
def test_both_models_agree_with_the_covariance_of_rows_over_all_draws(sizes, rho):
    """Rows of one user correlate by rho; the weights are those of every draw of the rows."""
    user = np.repeat(np.arange(len(sizes)), sizes)
    covariance = rho * (user[:, None] == user[None, :]) + (1.0 - rho) * np.eye(user.size)
    histogram, equal = ContributionHistogram.from_counts(sizes), 1.0 / user.size
    for cap in range(1, max(sizes) + 1):
        draws = [np.concatenate(weights) for weights in selections(sizes, cap)]
        want = np.mean([w @ covariance @ w for w in draws])
        assert Population(histogram, 1.0, 1.0, rho).measure_capped(
            np.array([cap])
        ).sampling_variance == pytest.approx(want)
        want = np.mean([(w - equal) @ covariance @ (w - equal) for w in draws])
        got = CountsOnly(histogram, 1.0, 1.0, rho).measure_capped(np.array([cap])).sampling_variance
        assert got == pytest.approx(want, abs=1e-12)


def test_rows_without_likeness_are_a_sample_without_replacement():
    """Five rows dealt out to users in all orders: the variance is sigma^2 (1 / n_h - 1 / n), n - 1 below."""
    rows, sizes, cap = [0.0, 1.0, 1.0, 4.0, 7.0], [3, 2], 1
    errors = []
    for order in itertools.permutations(rows):
        for first, second in itertools.product(order[:3], order[3:]):
            errors.append(((first + second) / 2.0 - np.mean(rows)) ** 2)
    model = CountsOnly(ContributionHistogram.from_counts(sizes), 1.0, float(np.var(rows, ddof=1)), 0.0)
    assert model.measure_capped(np.array([cap])).sampling_variance[0] == pytest.approx(np.mean(errors))


@given(counts, shares, noises)
def test_the_best_cap_for_a_population_is_that_of_the_enumeration(sizes, rho, unit_noise):
    histogram, s = ContributionHistogram.from_counts(sizes), np.array(sizes, dtype=float)
    caps = np.arange(s.min(), s.max() + 1.0)
    num_kept = np.minimum(caps[:, None], s)
    total = num_kept.sum(1)
    want = (rho * np.sum(num_kept**2, 1) + (1 - rho) * total) / total**2 + unit_noise * (
        num_kept.max(1) / total
    ) ** 2
    model = Population(histogram, unit_noise, 1.0, rho)
    assert model.measure_capped(caps).squared_error == pytest.approx(want, rel=1e-12)
    assert model.cap_curve.minimise(is_integer=True).certificate.value == pytest.approx(want.min(), rel=1e-12)
    # One valley: what falls after it has risen does so by rounding alone.
    rises = np.flatnonzero(np.diff(want) > 1e-9 * want[:-1])
    assert not rises.size or np.all(np.diff(want[rises[0] :]) > -1e-9 * want[rises[0]])
    smooth = model.find_best_smooth()
    assert smooth.certificate.proves(1e-9)
    weights = WeightGrowth(*model.compute_coefficients(smooth.bound), rho).compute_user_weights(
        np.minimum(smooth.bound, s)
    )
    weights /= weights.sum()
    x = s / (1.0 + (s - 1.0) * rho)
    direct = np.sum(weights**2 / x) + unit_noise * weights.max() ** 2
    assert direct == pytest.approx(smooth.certificate.value, rel=1e-6)


def test_one_user_and_equal_users_leave_nothing_to_choose():
    for sizes in ([7], [4, 4, 4]):
        histogram = ContributionHistogram.from_counts(sizes)
        per_user = [[float(k + row) for row in range(s)] for k, s in enumerate(sizes)]
        for model in (
            Population(histogram, 1.0, 1.0, 0.2),
            CountsOnly(histogram, 1.0, 1.0, 0.2),
            known_values(per_user, 1.0),
        ):
            assert model.cap_curve.minimise(is_integer=True).certificate.proves(1e-9)
            assert model.find_best_smooth().certificate.proves(1e-9)
        assert CountsOnly(histogram, 1.0, 1.0, 0.2).find_best_smooth().certificate.value == pytest.approx(
            1 / len(sizes) ** 2
        )


def test_the_share_between_users_leaves_each_out_in_turn():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 9, 40)
    per_user = [rng.normal(mean, 1.0, s) for mean, s in zip(rng.normal(0.0, 0.8, 40), sizes, strict=True)]

    def share(users):
        codes = np.repeat(np.arange(len(users)), [len(rows) for rows in users])
        return clamp(Values(codes, np.concatenate(users)), -50.0, 50.0)

    share_of_all = estimate_user_share(share(per_user))
    shares_without_one = np.array(
        [estimate_user_share(share(per_user[:k] + per_user[k + 1 :])).estimate for k in range(40)]
    )
    half_interval = 1.96 * math.sqrt(39 / 40 * np.sum((shares_without_one - shares_without_one.mean()) ** 2))
    assert (share_of_all.low, share_of_all.high) == pytest.approx(
        (max(share_of_all.estimate - half_interval, 0), share_of_all.estimate + half_interval)
    )
    assert math.isnan(estimate_user_share(share([np.array([1.0]), np.array([2.0])])).estimate)


def test_the_interval_of_the_share_is_about_as_wide_as_the_estimate_scatters():
    """Lognormal users of uneven sizes, where the interval for normal values is far too narrow."""
    rng = np.random.default_rng(7)
    sizes = np.ceil(np.exp(rng.normal(1.0, 1.0, 150))).clip(1, 60).astype(int)
    codes, user_shares = np.repeat(np.arange(150), sizes), []
    for _ in range(150):
        effects = rng.normal(0.0, 1.0, 150)
        values = effects[codes] + rng.normal(0.0, 2.0, codes.size)
        user_shares.append(estimate_user_share(clamp(Values(codes, values), -60.0, 60.0)))
    # rho = 1 / 5. 150 runs: the mean is known to 0.02 or so, the scatter to 6 %, so 25 % is four times that.
    estimates = np.array([one.estimate for one in user_shares])
    assert estimates.mean() == pytest.approx(0.2, abs=0.02)
    widths = np.array([(one.high - one.estimate) / 1.96 for one in user_shares])
    assert np.mean(widths) == pytest.approx(estimates.std(ddof=1), rel=0.25)
