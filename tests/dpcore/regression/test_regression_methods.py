import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.regression import parameters, sample_limiting, working_set
from dpcore.regression.estimate import compute_squared_prediction_error, estimate_residual_variance
from dpcore.regression.problem import RegressionProblem
from tests.dpcore.regression.bank import estimate_caps, random_problem, total_variance


def data_problem(seed=0, epsilon=1.0):
    data = parameters.generate_table(300, 2, 1, exponent=1.6, seed=seed)
    bound = float(np.ptp(data.labels))
    return data, RegressionProblem(data.features, data.user_codes, epsilon, bound, 400.0)


@pytest.mark.parametrize("seed", [0, 6, 12])
def test_naive_methods_are_unbiased_and_never_better(seed):
    problem = random_problem(seed)
    best = working_set.solve(problem)
    x = problem.features
    ordinary = sample_limiting.estimate_on_all_rows(problem)
    assert ordinary.matrix == pytest.approx(np.linalg.pinv(x), abs=1e-10)
    averages = sample_limiting.estimate_on_averages(problem)
    users = np.unique(problem.user_codes)
    owns = problem.user_codes[None, :] == users[:, None]
    mean_of = owns / owns.sum(axis=1, keepdims=True)
    assert averages.matrix == pytest.approx(np.linalg.pinv(mean_of @ x) @ mean_of, abs=1e-9)
    for method in (ordinary, averages):
        assert method.infeasibility < 1e-9
        assert method.variance == pytest.approx(total_variance(problem, method.matrix), rel=1e-12)
        assert method.variance >= best.certificate.lower_bound
        assert not method.certificate.proves(1.0)
        assert "does not claim" in method.certificate.sentence


def test_a_cap_keeps_so_many_rows_and_is_least_squares_on_them():
    _, problem = data_problem()
    for cap in (1, 4, 10_000):
        estimate = sample_limiting.draw_estimate(problem, cap, seed=3)
        kept = np.abs(estimate.matrix).sum(axis=0) > 0
        codes, counts = np.unique(problem.user_codes, return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            assert kept[problem.user_codes == code].sum() == min(cap, count)
        assert estimate.matrix[:, kept] == pytest.approx(np.linalg.pinv(problem.features[kept]), abs=1e-10)
    assert sample_limiting.draw_estimate(problem, 10_000).variance == pytest.approx(
        sample_limiting.estimate_on_all_rows(problem).variance
    )


def test_rows_are_drawn_evenly():
    # User 0 has 6 rows of which 2 are kept: each with probability 1/3. 3,000 draws: the count of one row has
    # standard deviation sqrt(3000 * 2/9) = 25.8; 5 of these are passed by one of six rows with p < 4e-6.
    problem = RegressionProblem(np.ones((7, 1)), np.array([0, 0, 1, 0, 0, 0, 0]), 1.0, 1.0, 1.0)
    counts = np.zeros(7)
    for seed in range(3000):
        counts[problem.whitened.row_order[sample_limiting.draw_ranks(problem.whitened, seed) < 2]] += 1
    assert counts[2] == 3000
    assert np.all(np.abs(np.delete(counts, 2) - 1000) < 129)


def test_curve_is_the_mean_over_single_draws():
    data, problem = data_problem()
    curve = estimate_caps(problem, data.labels, 4, (1, 3, 7))
    assert list(curve.caps[:3]) == [1, 3, 7]
    assert curve.caps[-1] == problem.histogram.max_size
    for k, cap in enumerate(curve.caps):
        draws = [sample_limiting.draw_estimate(problem, int(cap), seed) for seed in range(4)]
        totals = [draw.variance for draw in draws]
        assert curve.variances[k] == pytest.approx(np.mean(totals), rel=1e-9)
        errors = [compute_squared_prediction_error(problem, draw, data.labels) for draw in draws]
        assert curve.squared_prediction_errors[k] == pytest.approx(np.mean(errors), rel=1e-9)
    assert curve.max_contributions == curve.caps[np.argmin(curve.variances)]
    assert working_set.solve(problem).variance < curve.variances.min()


def test_draws_without_full_rank_are_counted_not_averaged():
    # One user holds the only row with x2 = 1, among 9 others: it is drawn one time in ten at cap 1.
    features = np.column_stack([np.ones(12), np.arange(12) == 0])
    problem = RegressionProblem(features, np.array([0] * 10 + [1, 2]), 1.0, 1.0, 1.0)
    curve = estimate_caps(problem, num_draws=200, caps=(1,))
    drawn_total = sum(
        int(
            sample_limiting.draw_ranks(problem.whitened, seed)[list(problem.whitened.row_order).index(0)] == 0
        )
        for seed in range(200)
    )
    assert 0 < drawn_total < 200
    assert curve.num_full_rank_draws[0] == drawn_total
    assert curve.num_rank_deficient_draws[0] == 200 - drawn_total
    assert np.isfinite(curve.variances[0])
    assert curve.best_index == 1  # The cap that may fail is not offered.
    assert curve.num_rank_deficient_draws[1] == 0
    missing = next(
        seed
        for seed in range(200)
        if sample_limiting.draw_ranks(problem.whitened, seed)[list(problem.whitened.row_order).index(0)] > 0
    )
    with pytest.raises(InvalidInput, match="linearly dependent"):
        sample_limiting.draw_estimate(problem, 1, missing)


def test_a_cap_that_always_fails_is_named():
    # Two coefficients, one user: one row can never do.
    problem = RegressionProblem(np.array([[1.0, 0], [1, 1], [1, 2]]), np.zeros(3, int), 1.0, 1.0, 1.0)
    curve = estimate_caps(problem, num_draws=5, caps=(1, 2))
    assert curve.num_full_rank_draws[0] == 0
    assert np.isnan(curve.variances[0])
    assert curve.num_rank_deficient_draws[0] == 5
    assert curve.max_contributions > 1
    with pytest.raises(InvalidInput, match="averaged features"):
        sample_limiting.estimate_on_averages(problem)


def test_stopping_the_draws_averages_what_is_done():
    _, problem = data_problem()
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5  # Two caps below the largest per draw: two draws are done.

    shares: list[float] = []
    curve = estimate_caps(problem, num_draws=50, caps=(1, 2), should_stop=stop, progress=shares.append)
    assert curve.num_full_rank_draws[0] + curve.num_rank_deficient_draws[0] == 2
    assert shares == [0.02, 0.04]


def test_prediction_error_by_simulation():
    data, problem = data_problem(epsilon=2.0)
    solution = working_set.solve(problem)
    error = compute_squared_prediction_error(problem, solution, data.labels)
    rng = np.random.default_rng(0)
    exact = solution.matrix @ data.labels
    noise = rng.laplace(scale=solution.laplace_noise.scale, size=(20_000, problem.num_features))
    errors = ((data.labels - (exact + noise) @ problem.features.T) ** 2).mean(axis=1)
    # Five standard errors of the simulated mean.
    assert abs(errors.mean() - error) < 5 * errors.std() / np.sqrt(20_000)
    assert error > estimate_residual_variance(data.features, data.labels) * (300 - 3) / 300


def test_noise_variance_of_least_squares():
    data, _ = data_problem()
    # Independent route: the projection matrix.
    x, y = data.features, data.labels
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    assert estimate_residual_variance(x, y) == pytest.approx(y @ (np.eye(300) - hat) @ y / 297, rel=1e-10)
    with pytest.raises(InvalidInput, match="no more rows"):
        estimate_residual_variance(np.eye(3), np.ones(3))
    with pytest.raises(InvalidInput, match="one number per row"):
        estimate_residual_variance(np.ones((4, 1)), np.ones(3))


def test_labels_that_do_not_fit_are_named():
    _, problem = data_problem()
    with pytest.raises(InvalidInput, match="Row 3"):
        compute_squared_prediction_error(
            problem, sample_limiting.estimate_on_all_rows(problem), [1.0, 2.0, np.nan] + [0.0] * 297
        )
    with pytest.raises(InvalidInput, match="one number per row"):
        compute_squared_prediction_error(problem, sample_limiting.estimate_on_all_rows(problem), [1.0])


def test_a_general_solver_that_fails_says_so():
    problem = random_problem(0)
    hasty = working_set.solve_with_cvxpy(problem, solver="SCS", max_iters=1)
    assert "SCS" in hasty.stop_reason
    assert hasty.infeasibility < 1e-9
    assert not hasty.certificate.proves(1e-3)


def test_synthetic_data_follow_the_law():
    sizes = parameters.compute_zipf_sizes(100_000, 1.7, parameters.SizeLaw.LONG_TAIL)
    assert sizes.sum() == 100_000
    # As many users with i rows as the law says, to the nearest whole number (+-1 by cumulative rounding).
    law = np.arange(1, 100_001.0) ** -1.7
    scale = 100_000 / (np.arange(1, 100_001.0) @ law)
    for i in (1, 2, 3, 10):
        assert abs(np.sum(sizes == i) - scale * law[i - 1]) <= 1.0
    # Without the tail the same law has a larger factor: users with 2 and 3 rows to those with 1 show it.
    rounded = parameters.compute_zipf_sizes(100_000, 1.7)
    assert rounded.sum() == 100_000
    users = np.bincount(rounded)
    factor = users[2] * 2**1.7
    for i in range(2, users.size):
        assert abs(users[i] - factor * i**-1.7) <= 0.5 * (1 + (i / 2) ** -1.7) + 1e-9
    # By hand: a factor of 4 and α = 2 give 4 users with 1 row and 1 with 2; one more row is one more user.
    assert parameters.compute_zipf_sizes(7, 2.0).tolist() == [1, 1, 1, 1, 1, 2]
    data = parameters.generate_table(2000, 3, 2, label_noise=7.0, seed=5)
    assert np.count_nonzero(data.coefficients) == 3
    # The residual variance of 2,000 rows has relative standard deviation sqrt(2/2000) = 3.2 %.
    assert estimate_residual_variance(data.features, data.labels) == pytest.approx(49.0, rel=0.16)
    assert np.bincount(data.user_codes).sum() == 2000
