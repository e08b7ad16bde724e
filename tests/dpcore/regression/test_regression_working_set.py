import math

import numpy as np
import pytest

from dpcore import mean
from dpcore.contributions import ContributionHistogram
from dpcore.regression import estimate, parameters, working_set
from dpcore.regression.problem import RegressionProblem
from tests.cells import leave_repeats
from tests.dpcore.regression.bank import random_problem, total_variance


@pytest.mark.parametrize("seed", leave_repeats(range(30), lambda seed: seed % 12))
def test_agrees_with_cvxpy_and_is_proved(seed):
    problem = random_problem(seed)
    our_solution = working_set.solve(problem)
    their_solution = working_set.solve_with_cvxpy(problem)
    assert our_solution.variance == pytest.approx(their_solution.variance, rel=1e-6)
    assert our_solution.certificate.proves(1e-8)
    # Each bound holds for the other's value: two independent sets of multipliers.
    assert their_solution.certificate.lower_bound <= our_solution.variance * (1 + 1e-9)
    assert our_solution.certificate.lower_bound <= their_solution.variance * (1 + 1e-9)
    # The parts, recomputed with plain loops, and feasibility in plain numbers.
    assert our_solution.variance == pytest.approx(total_variance(problem, our_solution.matrix), rel=1e-12)
    assert np.abs(our_solution.matrix @ problem.features - np.eye(problem.num_features)).max() < 1e-9


@pytest.mark.parametrize(
    ("residual_variance", "epsilon"), [(0.0, 1.0), (400.0, 0.1), (400.0, 3.0), (400.0, 300.0)]
)
def test_every_regime_closes_the_gap(residual_variance, epsilon):
    data = parameters.generate_table(600, 3, 1, exponent=1.5, seed=4)
    bound = float(np.ptp(data.labels))
    problem = RegressionProblem(data.features, data.user_codes, epsilon, bound, residual_variance)
    solution = working_set.solve(problem)
    assert solution.certificate.proves(1e-8)
    assert solution.infeasibility < 1e-12
    values = [step.variance for step in solution.search_steps]
    bounds = [step.lower_bound for step in solution.search_steps]
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert solution.search_steps[-1].relative_gap <= 1e-8


def test_restricted_problem_with_rough_newton_still_ends_at_the_optimum(monkeypatch):
    data = parameters.generate_table(400, 3, 0, exponent=1.2, seed=1)
    problem = RegressionProblem(data.features, data.user_codes, 0.5, 300.0, 400.0)
    many = working_set.solve(problem)
    monkeypatch.setattr(working_set, "MAX_NEWTON_STEPS", 0)
    few = working_set.solve(problem)
    assert few.certificate.proves(1e-8)
    assert few.variance == pytest.approx(many.variance, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_a_column_of_ones_is_the_mean(epsilon):
    # d = 1 and X = 1: C X = I says that the weights sum to 1, which is section 3 of the paper.
    sizes = np.array([1, 1, 2, 3, 5, 8, 13, 40])
    problem = RegressionProblem(
        np.ones((sizes.sum(), 1)),
        np.repeat(np.arange(8), sizes),
        epsilon,
        value_bound=1.0,
        residual_variance=0.2,
    )
    histogram = ContributionHistogram.from_counts(sizes)
    question = mean.MeanProblem(histogram, epsilon, value_bound=1.0, value_variance=0.2)
    best = mean.find_best_smooth(question)
    solution = working_set.solve(problem, 1e-11)
    assert solution.variance == pytest.approx(best.squared_error, rel=1e-10)
    weights = np.repeat(mean.compute_row_weight(question, best.threshold, sizes), sizes)
    assert solution.matrix[0] == pytest.approx(weights, rel=1e-4)


def test_the_optimum_depends_on_one_features_unit():
    # The objective adds up over coefficients; it is not invariant, and nothing may be rescaled silently.
    problem = random_problem(3)
    assert problem.num_features > 1
    scaled = problem.features.copy()
    scaled[:, 0] *= 10.0
    other = RegressionProblem(
        scaled, problem.user_codes, problem.epsilon, problem.value_bound, problem.residual_variance
    )
    base, moved_solution = working_set.solve(problem), working_set.solve(other)
    back = moved_solution.matrix.copy()
    back[0] *= 10.0
    assert total_variance(problem, back) > base.variance * 1.001
    assert np.abs(back @ problem.features - np.eye(problem.num_features)).max() < 1e-9


def test_units_far_apart_are_solved():
    rng = np.random.default_rng(8)
    features = rng.standard_normal((200, 3)) * np.array([1e-4, 1.0, 1e5]) + np.array([0.0, 50.0, 0.0])
    problem = RegressionProblem(features, rng.integers(0, 30, 200), 1.0, 10.0, 4.0)
    solution = working_set.solve(problem)
    assert solution.certificate.proves(1e-8)
    assert solution.infeasibility < 1e-9


def test_stopping_returns_the_best_so_far():
    data = parameters.generate_table(500, 3, 0, seed=2)
    problem = RegressionProblem(data.features, data.user_codes, 0.2, 500.0, 400.0)
    final = working_set.solve(problem)
    asked = 0

    def stop_at_tenth() -> bool:
        nonlocal asked
        asked += 1
        return asked >= 10

    shares: list[float] = []
    solution = working_set.solve(problem, should_stop=stop_at_tenth, progress=shares.append)
    assert solution.stop_reason == "Stopped: the best so far."
    assert solution.certificate.lower_bound <= final.variance <= solution.variance
    assert 0.0 < solution.certificate.relative_gap < 1.0
    assert solution.infeasibility < 1e-12
    assert all(0.0 <= share <= 1.0 for share in shares)
    at_once = working_set.solve(problem, should_stop=lambda: True)
    assert at_once.stop_reason == "Stopped: the best so far."
    assert math.isfinite(at_once.certificate.relative_gap)


def test_the_first_answer_is_whole_and_proved_as_far_as_it_says():
    data = parameters.generate_table(500, 3, 0, seed=2)
    problem = RegressionProblem(data.features, data.user_codes, 0.2, 500.0, 400.0)
    first_estimates: list[estimate.LinearEstimate] = []
    final = working_set.solve(problem, on_first=first_estimates.append)
    (first,) = first_estimates
    assert 1e-8 < first.certificate.relative_gap <= working_set.MAX_FIRST_GAP
    assert first.certificate.lower_bound <= final.variance <= first.variance
    assert first.variance == pytest.approx(total_variance(problem, first.matrix), rel=1e-12)
    assert first.infeasibility < 1e-9
    assert first.search_steps == final.search_steps  # They went on to grow.
