"""Equations 11, 12 and 18, and the inflation c."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.multitask import sampling, weights
from dpcore.multitask.experiment import SkewedTasks
from dpcore.multitask.problem import Loss, TaskGraph, TaskProblem
from tests.dpcore.multitask.conftest import allocate_unclipped, build_problem


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("seed", range(5))
def test_equation_11_solves_problem_10(loss: Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.ceil(rng.pareto(1.0, 8) * 3 + 1).astype(int)
    num_users, beta, c = int(sizes.max()) + 5, 0.3, 1.0 + rng.random()
    problem = build_problem(sizes, num_users, beta, loss)
    p = cp.Variable(8)
    objective = cp.Minimize(cp.sum(cp.multiply(sizes.astype(float) ** -loss.gamma, cp.inv_pos(p))))
    best = cp.Problem(objective, [c * (sizes / num_users) @ p <= beta]).solve(solver=cp.CLARABEL)
    allocation = allocate_unclipped(problem, loss.best_exponent, c)
    assert allocation.total_bound == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(allocation.task_weights**2, p.value, rtol=1e-3)


def test_equation_18_is_the_same_with_estimates() -> None:
    problem = build_problem(np.array([5, 2, 9]), 20, 0.4)
    shifted = np.array([6.5, 4.0, 11.25])
    # 1 / ((n_hat + s)^(1/2) sqrt(m / (n beta_bar)))
    expected = 1.0 / (np.sqrt(shifted) * math.sqrt(3 / (20 * 0.4)))
    np.testing.assert_allclose(weights.compute_task_weights(problem, 0.5, size_estimates=shifted), expected)


@given(
    seed=st.integers(0, 10_000),
    exponent=st.floats(0.0, 1.0),
    factor=st.floats(0.01, 100.0),
    beta=st.floats(1e-6, 1e3),
)
@settings(max_examples=60, deadline=None)
def test_no_user_ever_exceeds_the_budget(random_graph, seed, exponent, factor, beta) -> None:
    problem = TaskProblem(random_graph(seed, 15, 7), beta)
    for answer in (
        weights.allocate_by_power(problem, exponent, factor),
        weights.allocate_normalised(problem, exponent),
    ):
        # Summed pair by pair, exactly rounded: another order than the code's.
        pair_weights, users = answer.compute_pair_weights(), problem.graph.user_codes
        for user in range(problem.graph.num_users):
            assert math.fsum(pair_weights[users == user] ** 2) <= beta


def test_equation_12_by_hand(graph_of) -> None:
    graph = graph_of(np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0]]))
    problem = TaskProblem(graph, 0.5)
    answer = weights.allocate_by_power(problem, 0.5)
    omega = weights.compute_task_weights(problem, 0.5)
    pair = 0
    for tasks in ([0, 1, 2], [0], [1], [0, 1]):
        total = sum(omega[i] ** 2 for i in tasks)
        for i in tasks:
            assert answer.compute_pair_weights()[pair] == pytest.approx(
                omega[i] * min(1.0, math.sqrt(0.5 / total))
            )
            pair += 1
    # omega_i^2 = n beta / (m n_i) = 2 / (3 n_i): users 0 and 3 use 2/9 + 2/9 + 2/3 and 4/9; beta is 1/2.
    np.testing.assert_allclose(omega**2, [2 / 9, 2 / 9, 2 / 3])
    assert answer.clipped_user_share == 0.25
    np.testing.assert_allclose(answer.budget_uses, [0.5, 2 / 9, 2 / 9, 4 / 9])
    totals = np.zeros(3)
    np.add.at(totals, graph.task_codes, answer.compute_pair_weights())
    np.testing.assert_allclose(answer.task_totals, totals)
    np.testing.assert_allclose(answer.task_bounds, np.array([3, 3, 1]) / totals**2)


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.5, 1.0])
def test_the_unclipped_inflation_is_the_smallest(random_graph, exponent: float) -> None:
    problem = TaskProblem(random_graph(4, 40, 8), 0.2)
    inflation = weights.find_inflation_without_clipping(problem, exponent)
    fits = weights.allocate_by_power(problem, exponent, inflation)
    assert fits.clipped_user_share == 0.0
    assert weights.WeightRule(exponent, weights.BudgetFit.NOBODY_CLIPPED).allocate(problem).reads_graph
    tighter = inflation * (1.0 - 1e-6)
    assert weights.allocate_by_power(problem, exponent, tighter).clipped_user_share > 0.0
    # Where nobody is clipped, sizes alone tell the bounds: 1 / (omega_i^2 n_i^gamma).
    np.testing.assert_allclose(fits.task_bounds, allocate_unclipped(problem, exponent, inflation).task_bounds)


def test_average_budget_use_is_beta_over_c(random_graph) -> None:
    problem = TaskProblem(random_graph(6, 50, 5), 0.7, Loss.CONVEX)
    for inflation in (1.0, weights.compute_logarithmic_inflation(50, 0.5)):
        omega = weights.compute_task_weights(problem, 0.3, inflation)
        used = problem.graph.sum_by_user(omega**2)
        assert used.mean() == pytest.approx(0.7 / inflation)
    assert weights.compute_logarithmic_inflation(50, 0.5) == pytest.approx(0.5 * math.log(50))


def test_expected_totals_foretell_those_of_a_graph_of_the_papers_kind() -> None:
    pairs = SkewedTasks(num_users=8_000, num_tasks=60, tasks_per_user=15.0).draw(np.random.default_rng(3))
    problem = TaskProblem(TaskGraph.from_pairs(pairs, 8_000), 0.5)
    for exponent in (0.0, 0.5, 1.0):
        real = weights.allocate_normalised(problem, exponent).task_totals
        np.testing.assert_allclose(weights.estimate_task_totals(problem, exponent), real, rtol=0.05)


def test_uniform_sampling_by_enumeration(graph_of) -> None:
    graph = graph_of(np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0]]))
    problem = TaskProblem(graph, 0.8)
    answer = sampling.allocate_uniform_sampling(problem, 2)
    # Each kept task weighs sqrt(0.8 / 2); a task of user 0 is kept with probability 2/3.
    one = math.sqrt(0.4)
    np.testing.assert_allclose(answer.task_totals, one * np.array([2 / 3 + 1 + 1, 2 / 3 + 1, 2 / 3]))
    np.testing.assert_allclose(answer.budget_uses, [0.8, 0.4, 0.8])
    assert answer.clipped_user_share == pytest.approx(1 / 3)


def test_draws_are_uniform_over_a_users_tasks(graph_of) -> None:
    graph = graph_of(np.ones((3_000, 4)))
    kept = sampling.draw_uniformly(graph, 3, np.random.default_rng(7)).reshape(3_000, 4)
    np.testing.assert_array_equal(kept.sum(axis=1), 3)
    # One of four left out: 750 each, four standard deviations are 4 sqrt(3000 * 3/16) = 95.
    assert np.abs((~kept).sum(axis=0) - 750).max() < 95


def test_the_best_sampling_is_no_worse_than_any_k(random_graph) -> None:
    problem = TaskProblem(random_graph(12, 60, 12), 0.5, Loss.CONVEX)
    best = sampling.find_best_uniform_sampling(problem)
    totals_by_k = [sampling.allocate_uniform_sampling(problem, k).total_bound for k in range(1, 13)]
    assert best.total_bound == pytest.approx(min(totals_by_k))
    assert best.reads_graph


def test_a_logarithm_of_one_user_is_refused() -> None:
    with pytest.raises(InvalidInput, match="um_users must be a whole"):
        weights.compute_logarithmic_inflation(1)
