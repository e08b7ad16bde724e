"""Problem (9) and its generalisation: against CVXPY and closed forms; certificates that can fail."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.certificate import compare_results
from dpcore.multitask import exact, weights
from dpcore.multitask.problem import Loss, TaskProblem
from tests.cells import leave_repeats

TIGHT = 1e-8


def _problem_9(table: np.ndarray, loss: Loss, beta: float) -> float:
    sizes = table.sum(axis=0)
    p = cp.Variable(table.shape[1])
    objective = cp.Minimize(cp.sum(cp.multiply(sizes**-loss.gamma, cp.inv_pos(p))))
    return float(cp.Problem(objective, [table @ p <= beta]).solve(solver=cp.CLARABEL))


def _free_weights(table: np.ndarray, loss: Loss, beta: float) -> float:
    sizes = table.sum(axis=0)
    w = cp.Variable(table.shape)
    totals = cp.sum(cp.multiply(table, w), axis=0)
    objective = cp.Minimize(cp.sum(cp.multiply(sizes ** (2 - loss.gamma), cp.power(totals, -2))))
    limits = [cp.sum_squares(w[user]) <= beta for user in range(table.shape[0])]
    return float(cp.Problem(objective, limits).solve(solver=cp.CLARABEL))


@pytest.mark.long_for("13", "17")
@pytest.mark.parametrize("seed", leave_repeats(range(50), lambda seed: seed % 18))
def test_problem_9_agrees_with_cvxpy(random_graph, dense_of, seed: int) -> None:
    graph = random_graph(seed, num_users=10 + seed, num_tasks=3 + seed % 9)
    loss = list(Loss)[seed % 2]
    answer = exact.find_best_task_weights(TaskProblem(graph, 0.25, loss), TIGHT)
    assert answer.total_bound == pytest.approx(_problem_9(dense_of(graph), loss, 0.25), rel=2e-6)
    assert answer.certificate.proves(1e-8)
    assert answer.budget_uses.max() <= 0.25


@pytest.mark.parametrize("loss", Loss)
def test_the_reference_proves_its_answer_by_its_own_multipliers(random_graph, dense_of, loss: Loss) -> None:
    graph = random_graph(7, num_users=30, num_tasks=6)
    problem = TaskProblem(graph, 0.25, loss)
    certificate, status = exact.run_cvxpy(problem)
    assert "optimal" in status
    assert certificate.value == pytest.approx(_problem_9(dense_of(graph), loss, 0.25), rel=1e-6)
    assert certificate.proves(1e-6)
    # What it proves holds for our answer, and the other way round.
    best_answer = exact.find_best_task_weights(problem, TIGHT)
    assert certificate.lower_bound <= best_answer.total_bound * (1.0 + 1e-9)
    assert best_answer.certificate.lower_bound <= certificate.value * (1.0 + 1e-9)


def test_a_reference_that_fails_says_so_and_proves_nothing_false(random_graph) -> None:
    problem = TaskProblem(random_graph(7, num_users=30, num_tasks=6), 0.25, Loss.CONVEX)
    certificate, status = exact.run_cvxpy(problem, solver="OSQP")  # It solves no such cones.
    assert "failed" in status
    assert certificate.relative_gap > 0.0
    own_result, reference = exact.compare_with_cvxpy(problem)
    assert "times as long as Sweet Spot" in compare_results(own_result, reference)
    assert exact.compare_with_cvxpy(problem, lambda: True)[1:] == ()


@pytest.mark.parametrize("seed", range(10))
def test_free_weights_agree_with_cvxpy(random_graph, dense_of, seed: int) -> None:
    graph = random_graph(100 + seed, num_users=8, num_tasks=4)
    loss = list(Loss)[seed % 2]
    answer = exact.find_best_user_task_weights(TaskProblem(graph, 0.25, loss), TIGHT)
    assert answer.total_bound == pytest.approx(_free_weights(dense_of(graph), loss, 0.25), rel=2e-6)
    assert answer.certificate.proves(1e-8)
    assert answer.budget_uses.max() <= 0.25


@pytest.mark.long
def test_small_working_sets_reach_the_same_optimum(random_graph, dense_of, monkeypatch) -> None:
    monkeypatch.setattr(exact, "NUM_FIRST_USERS", 3)
    for seed in range(5):
        graph = random_graph(200 + seed, num_users=150, num_tasks=12)
        problem = TaskProblem(graph, 1.0)
        answer = exact.find_best_task_weights(problem, TIGHT)
        assert answer.total_bound == pytest.approx(_problem_9(dense_of(graph), problem.loss, 1.0), rel=2e-6)


def test_users_without_a_task_do_not_disturb(graph_of, dense_of, random_graph, monkeypatch) -> None:
    monkeypatch.setattr(exact, "NUM_FIRST_USERS", 40)
    table = dense_of(random_graph(8, 30, 5))
    idle = np.zeros((50, 5))
    problems = [TaskProblem(graph_of(t), 1.0) for t in (table, np.vstack((idle, table)))]
    for solve in (exact.find_best_task_weights, exact.find_best_user_task_weights):
        values = [solve(problem, TIGHT).total_bound for problem in problems]
        assert values[1] == pytest.approx(values[0], rel=1e-7)


@pytest.mark.parametrize("loss", list(Loss))
def test_closed_forms(graph_of, loss: Loss) -> None:
    # Everybody in all of 4 tasks: 4 omega^2 = beta. One task each: omega^2 = beta.
    for table, squared in ((np.ones((9, 4)), 0.1), (np.kron(np.eye(3), np.ones((2, 1))), 0.4)):
        problem = TaskProblem(graph_of(table), 0.4, loss)
        np.testing.assert_allclose(exact.find_best_task_weights(problem, TIGHT).task_weights ** 2, squared)
        np.testing.assert_allclose(
            exact.find_best_user_task_weights(problem, TIGHT).compute_pair_weights() ** 2, squared
        )
    # One user in tasks 0 and 1, another in task 1: only the first binds, p_i ~ sqrt(c_i).
    problem = TaskProblem(graph_of(np.array([[1, 1], [0, 1]])), 1.0, loss)
    roots = np.sqrt([1.0, 0.5**loss.gamma])
    answer = exact.find_best_task_weights(problem, TIGHT)
    np.testing.assert_allclose(answer.task_weights**2, roots / roots.sum(), rtol=1e-6)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(list(Loss)))
@settings(max_examples=40, deadline=None)
def test_lower_bounds_hold_for_all_multipliers_and_all_feasible_weights(random_graph, seed, loss) -> None:
    rng = np.random.default_rng(seed)
    problem = TaskProblem(random_graph(seed, 12, 5), 0.6, loss)
    graph, sizes = problem.graph, problem.graph.task_sizes
    squared = rng.exponential(size=5) + 1e-3
    squared *= 0.6 / graph.sum_by_user(squared).max()
    value = np.sum(1.0 / (squared * sizes**loss.gamma))
    multipliers = rng.exponential(size=12) * (rng.random(12) < 0.7) + 1e-6
    assert exact.compute_lower_bound(problem, multipliers) <= value * (1.0 + 1e-12)
    # Any weights per user and task, each user within the budget.
    w = rng.exponential(size=graph.num_pairs)
    w *= np.sqrt(0.6 / np.bincount(graph.user_codes, w**2, graph.num_users)[graph.user_codes])
    free_value = np.sum(sizes ** (2.0 - loss.gamma) / graph.sum_pairs_by_task(w) ** 2)
    prices = rng.exponential(size=5) + 1e-3
    assert exact.compute_free_lower_bound(problem, prices) <= free_value * (1.0 + 1e-12)
    assert exact.compute_free_lower_bound(problem, 7.0 * prices) == pytest.approx(
        exact.compute_free_lower_bound(problem, prices)
    )


def test_half_answers_are_not_proved(random_graph, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = TaskProblem(random_graph(31, 60, 9), 1.0)
    for solve in (exact.find_best_task_weights, exact.find_best_user_task_weights):
        best = solve(problem, TIGHT)
        with monkeypatch.context() as patched:
            patched.setattr(exact, "MAX_STEPS", 1)
            unfinished = solve(problem, TIGHT)
        assert not unfinished.certificate.proves(1e-6)
        assert unfinished.certificate.lower_bound <= best.total_bound <= unfinished.total_bound * (1.0 + 1e-9)
        assert "limit of 1 step," in unfinished.stop_reason
        assert unfinished.budget_uses.max() <= 1.0


def test_free_weights_are_a_contraction_by_three_quarters(random_graph) -> None:
    problem = TaskProblem(random_graph(17, 40, 8), 0.3, Loss.CONVEX)
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, two = rng.lognormal(sigma=2.0, size=(2, 8))
        distance_before = np.abs(np.log(one / two)).max()
        distance_after = np.abs(
            np.log(exact._iterate_prices(problem, one)[0] / exact._iterate_prices(problem, two)[0])
        )
        assert distance_after.max() <= 0.75 * distance_before * (1.0 + 1e-12)


@pytest.mark.parametrize("solve", [exact.find_best_task_weights, exact.find_best_user_task_weights])
def test_a_stopped_search_returns_valid_weights(random_graph, solve) -> None:
    problem = TaskProblem(random_graph(31, 60, 9), 1.0)
    shares: list[float] = []
    answers = iter([False, False, True])
    stopped = solve(problem, TIGHT, progress=shares.append, should_stop=lambda: next(answers, True))
    assert "Stopped" in stopped.stop_reason
    assert stopped.budget_uses.max() <= 1.0
    assert stopped.certificate.lower_bound <= stopped.total_bound
    solve(problem, TIGHT, progress=shares.append)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert shares


def test_weight_skew_by_hand(graph_of) -> None:
    # Task 0 has a heavy user (2 tasks) and a light one; normalised uniform weights: sqrt(1/2) and 1.
    problem = TaskProblem(graph_of(np.array([[1, 1], [1, 0]])), 1.0)
    skew = weights.compute_skew(weights.allocate_normalised(problem, 0.0))
    heavy = np.sqrt(0.5)
    total = heavy + 1.0
    assert skew[0] == pytest.approx(0.5 - heavy / total)
    assert skew[1] == pytest.approx(0.0, abs=1e-12)
