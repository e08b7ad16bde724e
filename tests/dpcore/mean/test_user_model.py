"""The error of clamped users without values: against simulation, and for any distribution against its worst one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.mean import MeanProblem, Target, compute_row_weight
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.user_model import UserModel, measure_clamp

SIZES = np.repeat([1.0, 3.0, 12.0, 40.0], [30, 20, 10, 4])
MIDDLE, WIDTH, VARIANCE, EPSILON = 5.0, 1.6, 1.5, 2.0
RUNS = 40_000


def build_problem(target: Target = Target.TABLE, user_share: float = 0.3, **settings: Any) -> MeanProblem:
    histogram = ContributionHistogram.from_counts(SIZES.astype(int))
    problem_class = PrivateCountsProblem if settings else MeanProblem
    return problem_class(
        histogram, EPSILON, WIDTH, VARIANCE, target=target, user_share=user_share, **settings
    )


@pytest.mark.long_but("1.0-0.3-Target.TABLE", "40.0-1.0-Target.TABLE", "5.5-0.3-Target.POPULATION")
@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("user_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("threshold", [1.0, 5.5, 40.0])
def test_normal_users_err_as_the_model_says(target: Target, user_share: float, threshold: float) -> None:
    """40,000 tables of normal users: cut, variance and noise within five standard errors, 1 in 1.7 million each."""
    problem = build_problem(target, user_share)
    error = UserModel(problem).compute_error(threshold)
    generator = np.random.default_rng(3)
    u = compute_row_weight(problem, threshold, SIZES) * SIZES
    limit = u.max() * WIDTH / 2.0
    tau = np.sqrt(VARIANCE * (user_share + (1.0 - user_share) / SIZES))
    means = generator.normal(0.0, tau, (RUNS, SIZES.size))
    deviations = u * means
    clamped = np.clip(deviations, -limit, limit)
    cuts = np.abs(deviations - clamped).sum(axis=1)
    assert abs(cuts.mean() - float(error.shift)) < 5.0 * cuts.std() / math.sqrt(RUNS)
    truths = means @ (SIZES / SIZES.sum()) if target is Target.TABLE else 0.0
    # Replacing a user's values moves the sum by at most 2 T.
    releases = clamped.sum(axis=1) + generator.laplace(0.0, 2.0 * limit / EPSILON, RUNS)
    squares = (releases - truths) ** 2
    expected = float(error.sampling_variance + error.privacy_variance)
    assert abs(squares.mean() - expected) < 5.0 * squares.std() / math.sqrt(RUNS)


def test_private_counts_err_as_the_model_says() -> None:
    """The pair of sums, at M = mu; the delta method may be off by a few per cent."""
    problem, threshold = build_problem(mean_above_lower=WIDTH / 2.0), 4.0
    error = UserModel(problem).compute_error(threshold)
    u = np.minimum(threshold, SIZES)
    weights = compute_row_weight(problem, threshold, SIZES) * SIZES
    u = weights / weights.max() * threshold
    generator, limit = np.random.default_rng(5), threshold * WIDTH / 2.0
    tau = np.sqrt(VARIANCE * (0.3 + 0.7 / SIZES))
    means = generator.normal(0.0, tau, (RUNS, SIZES.size))
    z = np.clip(u * means, -limit, limit).sum(axis=1)
    noise = generator.laplace(0.0, 2.0 * limit / EPSILON, (2, RUNS))
    above, below = WIDTH * u.sum() / 2.0 + z + noise[0], WIDTH * u.sum() / 2.0 - z + noise[1]
    releases = WIDTH * (above - below) / (2.0 * (above + below))
    squares = (releases - means @ (SIZES / SIZES.sum())) ** 2
    assert squares.mean() == pytest.approx(float(error.sampling_variance + error.privacy_variance), rel=0.05)


@given(st.floats(0.01, 1.7), st.floats(0.1, 10.0))
def test_two_points_have_the_largest_bias(ratio: float, limit: float) -> None:
    """The distribution that the module names has the mean 0, the variance tau^2, and the bias of the bound."""
    tau, users = ratio * limit, 7
    histogram = ContributionHistogram.from_counts([2] * users)
    model = UserModel(MeanProblem(histogram, 1.0, 2.0 * limit, tau**2, user_share=1.0))
    radius = math.hypot(tau, limit)
    points = np.array([limit + radius, limit - radius])
    chances = np.array([radius - limit, radius + limit]) / (2.0 * radius)
    assert abs(chances @ points) < 1e-9 * radius
    assert chances @ points**2 == pytest.approx(tau**2, rel=1e-9)
    bias = abs(float(chances @ np.clip(points, -limit, limit)))
    assert float(model.compute_error(2.0, has_any_distribution=True).shift) == pytest.approx(bias, rel=1e-6)


@given(st.integers(0, 10_000), st.sampled_from(Target), st.floats(1.0, 45.0))
def test_no_distribution_errs_more_than_the_bound(seed: int, target: Target, threshold: float) -> None:
    """Random distributions on five points with the right mean and variance, the same one for all users up to scale."""
    problem, generator = build_problem(target), np.random.default_rng(seed)
    error = UserModel(problem).compute_error(threshold, has_any_distribution=True)
    chances, points = generator.dirichlet([0.3] * 5), generator.normal(size=5) ** 3
    points -= chances @ points
    points /= max(math.sqrt(float(chances @ points**2)), 1e-12)
    u = compute_row_weight(problem, threshold, SIZES) * SIZES
    limit, p = u.max() * WIDTH / 2.0, SIZES / SIZES.sum() if target is Target.TABLE else 0.0 * SIZES
    tau = np.sqrt(VARIANCE * (0.3 + 0.7 / SIZES))
    means = tau[:, None] * points
    clamped = np.clip(u[:, None] * means, -limit, limit)
    assert abs(float((clamped @ chances).sum())) <= float(error.shift) * (1.0 + 1e-9)
    errors = clamped - p[:, None] * means
    variances = errors**2 @ chances - (errors @ chances) ** 2
    assert variances.sum() <= float(error.sampling_variance) * (1.0 + 1e-9)


def test_a_clamp_of_normal_values_has_the_moments_of_an_integral() -> None:
    for tau, limit in ((1.0, 0.3), (2.0, 5.0), (0.0, 1.0), (1e-200, 1.0)):
        x = np.linspace(-10.0, 10.0, 400_001)
        density = np.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
        clamped = np.clip(tau * x, -limit, limit)
        cut, v, inside = map(float, measure_clamp(np.array(tau), np.array(limit)))
        assert cut == pytest.approx(float(density @ np.abs(tau * x - clamped)), abs=1e-6)
        if tau:
            assert v == pytest.approx(float(density @ (clamped / tau) ** 2), abs=1e-5)
            assert inside == pytest.approx(float(density @ (clamped / tau * x)), abs=1e-5)


@pytest.mark.long
def test_the_answer_is_the_best_of_the_model_and_needs_no_values_within_the_range() -> None:
    counts, settings = SIZES.astype(int), {"epsilon": 1.0, "lower": 4.2, "upper": 5.8, "clamp": "users"}
    settings |= {"variance_source": "entered", "value_variance": VARIANCE, "counts": "private"}
    reply = ss.mean_bound(counts, **settings)
    solution = reply.answer.solution.users_solution
    errors = np.sqrt(solution.user_model.compute_error(np.linspace(1.0, 40.0, 3_001)).squared_error)
    least_error = math.sqrt(float(solution.user_model.compute_error(solution.threshold).squared_error))
    assert least_error <= errors.min() * (1.0 + 1e-9)
    squares = sum(number**2 for number in (part.value for part in reply.answer.error_parts))
    assert squares == pytest.approx(reply.error**2)
    assert "the mean is (L + U)/2" in reply.answer.detail
    assert any("before clamping" in sentence for sentence in reply.answer.assumptions)
    np.testing.assert_allclose(
        reply.answer.plots["mean-error"]().columns["users_error"], np.sqrt(solution.mean_errors.squared_error)
    )
    with pytest.raises(InvalidInput, match="cannot vary by more"):
        ss.mean_bound(counts, **{**settings, "clamp": "rows"})
