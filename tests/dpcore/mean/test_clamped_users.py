"""A mean that clamps what users add: privacy by extreme users, the optimum by CVXPY and grids, the error by draws."""

import math
from itertools import product

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.dataset import Values
from dpcore.mean import clamped_users, threshold_search, value_range
from dpcore.mean.clamped_users import ClampedUsersProblem
from dpcore.mean.value_range import ValueRangeProblem


def make_values(seed: int, max_users: int = 30, largest: int = 12) -> Values:
    """Make a table whose larger users have larger values, with ties in every other one."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, largest + 1, generator.integers(3, max_users))
    user_codes = np.repeat(np.arange(sizes.size), sizes)
    offsets = generator.normal(0.0, 10.0, sizes.size) + sizes
    values = offsets[user_codes] + generator.normal(0.0, 5.0, user_codes.size)
    return Values(user_codes, np.round(values, -1) if seed % 2 else values)


def compute_by_hand(
    problem: ClampedUsersProblem, threshold: float, centre: float, limit: float
) -> tuple[float, float]:
    """Compute f and the clamped mean, user by user, from the definition in the module."""
    codes, values = problem.values.user_codes, problem.values.values
    total = weight_sum = weighted = cut = clamped_sum = 0.0
    for user in np.unique(codes):
        rows = values[codes == user]
        weight = min(threshold, rows.size)
        deviation = weight * (rows.mean() - centre)
        cut += max(abs(deviation) - limit, 0.0)
        clamped_sum += min(max(deviation, -limit), limit)
        weight_sum += weight
        weighted += weight * rows.mean()
        total += rows.sum()
    mean = total / values.size
    threshold = min(threshold, np.bincount(codes).max())
    noise = 4.0 * problem.unit_noise_variance * limit**2
    if problem.has_private_counts:
        noise = 2.0 * problem.unit_noise_variance * (limit**2 + threshold**2 * (mean - centre) ** 2)
    bias = abs(weighted / weight_sum - mean) + cut / weight_sum
    return bias**2 + noise / weight_sum**2, centre + clamped_sum / weight_sum


def release_pair(sizes: np.ndarray, means: np.ndarray, threshold: float, centre: float, limit: float):
    """Compute the pair (A, B) before noise from the definition."""
    weights = np.minimum(threshold, sizes)
    deviations = np.clip(weights * (means - centre), -limit, limit)
    half_width = limit / threshold
    return np.array([(half_width * weights + deviations).sum(), (half_width * weights - deviations).sum()])


@pytest.mark.parametrize("threshold", [1.0, 2.5, 7.0])
def test_a_user_moves_the_pair_by_as_much_as_clamped_rows_would(threshold: float) -> None:
    limit, centre = 6.0, 3.0
    width = 2.0 * limit / threshold
    largest = 0.0
    for size, distance in product([1, 2, 3, 7, 40, 10**6], [0.0, 0.1, -1.0, width / 2, -width, 1e3, -1e12]):
        added = release_pair(np.array([size]), np.array([centre + distance]), threshold, centre, limit)
        assert np.abs(added).sum() <= threshold * width * (1 + 1e-12)
        assert np.linalg.norm(added) <= threshold * width * (1 + 1e-12)
        largest = max(largest, np.abs(added).sum())
    assert largest == pytest.approx(threshold * width)  # It is attained: less noise would not do.


def test_the_same_check_catches_wrong_variants() -> None:
    """A centre off the middle, and a weight of all rows after clamping, need more noise."""
    threshold, lower, upper = 3.0, -1.0, 3.0
    width, off_centre = upper - lower, 0.0

    def measure_addition(weight: float, deviation: float) -> float:
        return abs(weight * -lower + deviation) + abs(weight * upper - deviation)

    # Around 0, with -T1 = 3 L and T2 = 3 U, a user of one row at U adds more than h W.
    deviations = np.clip(1.0 * (np.array([1e9, -1e9]) - off_centre), threshold * lower, threshold * upper)
    assert max(measure_addition(1.0, deviation) for deviation in deviations) >= 1.15 * threshold * width
    # Ten rows in place of h rows in the weight.
    assert abs(10 * width / 2 + 6.0) + abs(10 * width / 2 - 6.0) > 3.3 * threshold * width - 1e-9


@pytest.mark.long
@pytest.mark.parametrize("has_private_counts", [True, False])
def test_the_best_limit_is_that_of_a_general_solver(has_private_counts: bool) -> None:
    import cvxpy as cp

    for seed in range(12):
        problem = ClampedUsersProblem(make_values(seed), float(10.0 ** (seed % 4 - 2)), has_private_counts)
        threshold = [1.0, 2.5, 6.0, 40.0][seed % 4]
        best = clamped_users.find_best_limit(problem, threshold)
        value, clamped_mean = compute_by_hand(problem, threshold, best.centre, best.limit)
        assert best.error_parts.error**2 == pytest.approx(value, rel=1e-9)
        assert best.error_parts.signed_shift == pytest.approx(clamped_mean - problem.mean, abs=1e-9)
        assert best.certificate.relative_gap <= 1e-6

        sizes = np.bincount(problem.values.user_codes)
        means = np.bincount(problem.values.user_codes, problem.values.values) / sizes
        weights, mean = np.minimum(threshold, sizes), problem.values.values.mean()
        centre, limit = cp.Variable(), cp.Variable(nonneg=True)
        cut = cp.sum(cp.pos(cp.abs(cp.multiply(weights, means - centre)) - limit)) / weights.sum()
        noise = (
            2.0 * (cp.square(limit) + cp.square(weights.max() * (centre - mean)))
            if has_private_counts
            else 4.0 * cp.square(limit)
        )
        bias = abs(weights @ means / weights.sum() - mean) + cut
        objective = cp.square(bias) + problem.unit_noise_variance / weights.sum() ** 2 * noise
        cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
        assert objective.value == pytest.approx(best.error_parts.error**2, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("has_private_counts", [True, False])
def test_no_threshold_is_better_than_the_certificate_says(has_private_counts: bool) -> None:
    for seed in range(8):
        problem = ClampedUsersProblem(
            make_values(seed, 60, 40), float(10.0 ** (seed % 4 - 1)), has_private_counts
        )
        best = clamped_users.find_best_joint(problem)
        errors = [
            clamped_users.find_best_limit(problem, h).error_parts.error for h in np.geomspace(1.0, 45.0, 60)
        ]
        assert best.certificate.lower_bound <= min(errors) * (1 + 1e-9)
        assert best.error_parts.error <= min(errors) * (1 + threshold_search.SEARCH_TOLERANCE)
        assert best.certificate.relative_gap <= threshold_search.SEARCH_TOLERANCE
        value, _ = compute_by_hand(problem, best.threshold, best.centre, best.limit)
        assert best.error_parts.error == pytest.approx(math.sqrt(value))


@pytest.mark.long
def test_less_is_cut_than_from_clamped_rows() -> None:
    """At any h and range; and the best error is lower than the best of `value_range`, as the noise is the same."""
    for seed in range(20):
        values, generator = make_values(seed), np.random.default_rng(seed)
        threshold, epsilon = float(generator.choice([1.0, 2.0, 5.5, 12.0])), 1.0
        rows = value_range.WeightedRows(ValueRangeProblem(values, epsilon), threshold)
        problem = ClampedUsersProblem(values, 2.0 / epsilon**2, has_private_counts=False)
        centre, width = float(generator.normal(5.0, 5.0)), float(generator.exponential(20.0)) + 1e-3
        users = problem.measure_parts(threshold, centre, threshold * width / 2.0)
        cut_of_rows = rows.compute_error_parts(centre - width / 2.0, centre + width / 2.0)
        assert users.clamping <= float(cut_of_rows.clamping) + 1e-9
        largest = min(threshold, float(problem.sizes[-1]))
        assert users.noise * largest / threshold == pytest.approx(float(cut_of_rows.noise))
        best_of_users = clamped_users.find_best_joint(problem)
        best_of_rows = value_range.find_best_joint(ValueRangeProblem(values, epsilon))
        assert best_of_users.certificate.lower_bound <= best_of_rows.error


def test_grouped_users_give_the_answer_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    sizes = np.minimum(generator.geometric(0.3, 4000), 12)
    codes = np.repeat(np.arange(sizes.size), sizes)
    values = Values(codes, generator.standard_t(3, sizes.size)[codes] * 10.0 + 0.1 * sizes[codes])
    exact = clamped_users.find_best_joint(ClampedUsersProblem(values, 2.0))
    monkeypatch.setattr(clamped_users, "MAX_USER_POINTS", 600)
    problem = ClampedUsersProblem(values, 2.0)
    grouped = clamped_users.find_best_joint(problem)
    assert problem.points.sizes.size < 1000
    assert problem.points.num_users.sum() == sizes.size
    assert grouped.certificate.lower_bound <= exact.error_parts.error
    assert grouped.error_parts.error <= exact.error_parts.error * 1.03
    assert grouped.certificate.relative_gap <= 0.04


@pytest.mark.parametrize("has_private_counts", [True, False])
def test_the_table_error_is_that_of_draws(has_private_counts: bool) -> None:
    """20,000 draws of the release itself; the delta method is good to a few percent where the noise is small."""
    values, generator = make_values(4, 300), np.random.default_rng(7)
    sizes = np.bincount(values.user_codes)
    means = np.bincount(values.user_codes, values.values) / sizes
    epsilon, threshold, centre, limit = 2.0, 5.0, 6.0, 40.0
    problem = ClampedUsersProblem(values, 2.0 / epsilon**2, has_private_counts)
    promised = problem.measure_parts(threshold, centre, limit).table_error
    weights = np.minimum(threshold, sizes)
    if has_private_counts:
        pair = release_pair(sizes, means, threshold, centre, limit)
        above, below = (pair + generator.laplace(0.0, 2.0 * limit / epsilon, (20_000, 2))).T
        answers = centre + limit / threshold * (above - below) / (above + below)
    else:
        clamped_sum = np.clip(weights * (means - centre), -limit, limit).sum()
        answers = (
            centre + (clamped_sum + generator.laplace(0.0, 2.0 * limit / epsilon, 20_000)) / weights.sum()
        )
    squares = (answers - values.values.mean()) ** 2
    # Five standard errors, and 3 % for the delta method.
    relative_error = 5.0 * squares.std() / math.sqrt(squares.size) / squares.mean()
    assert squares.mean() == pytest.approx(promised**2, rel=relative_error + 0.03 * has_private_counts)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="same mean"):
        clamped_users.find_best_joint(ClampedUsersProblem(Values([0, 0, 1], [1.0, 3.0, 2.0]), 1.0))
    with pytest.raises(InvalidInput, match="Threshold"):
        clamped_users.find_best_limit(ClampedUsersProblem(make_values(0), 1.0), 0.5)
    with pytest.raises(InvalidInput, match=r"(?i)unit.noise.variance"):
        ClampedUsersProblem(make_values(0), 0.0)
