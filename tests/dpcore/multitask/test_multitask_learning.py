"""Algorithms 1 and 2: without noise, what they should compute; with it, sensitivity and variance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.multitask import weights
from dpcore.multitask.learners import (
    DescentSettings,
    Examples,
    RidgeSettings,
    clip_rows,
    compute_isotropic_rates,
    compute_weighted_sums,
    fit_descent,
    perturb_sums,
    solve_sums,
    sum_gradients,
)
from dpcore.multitask.problem import TaskGraph, TaskProblem


def _examples(graph, seed: int, dimension: int = 3, spread: float = 1.0) -> Examples:
    rng = np.random.default_rng(seed)
    features = spread * rng.normal(size=(graph.num_pairs, dimension))
    return Examples(graph, features, spread * rng.normal(size=graph.num_pairs))


def _without(examples: Examples, user: int, graph_of, dense_of) -> tuple[Examples, np.ndarray]:
    """The examples with one user's rows gone (the user stays, without tasks), and the pairs kept."""
    is_kept = examples.graph.user_codes != user
    table = dense_of(examples.graph)
    table[user] = 0.0
    return Examples(graph_of(table), examples.features[is_kept], examples.labels[is_kept]), is_kept


def _fit_ridge(examples, pair_weights: np.ndarray, settings: RidgeSettings, rng=None) -> np.ndarray:
    sums = compute_weighted_sums(examples, pair_weights, settings)
    return solve_sums(sums if rng is None else perturb_sums(sums, settings, rng), settings.coefficient_bound)


def _half(matrices: np.ndarray) -> np.ndarray:
    rows, columns = np.triu_indices(matrices.shape[1])
    return matrices[:, rows, columns].ravel()


@pytest.mark.parametrize("ridge", [0.3, 2.0])
def test_noiseless_statistics_give_ridge_where_nobody_is_clipped(random_graph, ridge: float) -> None:
    graph = random_graph(3, 40, 5)
    examples = _examples(graph, 0, spread=0.2)
    problem = TaskProblem(graph, 1.0)
    allocation = weights.allocate_by_power(
        problem, 0.5, weights.find_inflation_without_clipping(problem, 0.5)
    )
    # Bounds so wide that no feature, label or solution is touched.
    result = _fit_ridge(examples, allocation.compute_pair_weights(), RidgeSettings(50.0, 50.0, ridge))
    for task in range(5):
        settings_used = graph.task_codes == task
        x, y = examples.features[settings_used], examples.labels[settings_used]
        # theta = A^-1 b of equation 5, A = sum (x x^T + lambda I): lambda counts once per user.
        expected = np.linalg.solve(x.T @ x + ridge * settings_used.sum() * np.eye(3), x.T @ y)
        np.testing.assert_allclose(result[task], expected, rtol=1e-9)


def test_weighted_sums_by_a_loop(random_graph) -> None:
    graph = random_graph(9)
    examples = _examples(graph, 1, spread=3.0)
    settings_ = RidgeSettings(1.5, 0.8, 0.4)
    w = np.random.default_rng(2).random(graph.num_pairs)
    sums = compute_weighted_sums(examples, w, settings_)
    matrices, vectors = np.zeros((6, 3, 3)), np.zeros((6, 3))
    for pair, task in enumerate(graph.task_codes):
        x = examples.features[pair]
        x = x * min(1.0, 1.5 / np.linalg.norm(x))
        y = np.clip(examples.labels[pair], -1.2, 1.2)
        matrices[task] += w[pair] * (np.outer(x, x) + 0.4 * np.eye(3))
        vectors[task] += w[pair] * y * x
    np.testing.assert_allclose(sums.matrices, matrices)
    np.testing.assert_allclose(sums.vectors, vectors)


@given(seed=st.integers(0, 10_000), ridge=st.floats(0.0, 5.0), feature_bound=st.floats(0.1, 4.0))
@settings(max_examples=25, deadline=None)
def test_removing_a_user_moves_the_sums_by_no_more_than_stated(
    random_graph, graph_of, dense_of, seed, ridge, feature_bound
) -> None:
    graph = random_graph(seed, 8, 4)
    # Tasks with two users at least, so that none empties.
    table = np.vstack((dense_of(graph), np.ones((1, 4))))
    graph = graph_of(table)
    examples = _examples(graph, seed, spread=3.0)
    beta = 0.7
    allocation = weights.allocate_by_power(TaskProblem(graph, beta), 0.5)
    w = allocation.compute_pair_weights()
    settings_ = RidgeSettings(feature_bound, 0.5, ridge)
    all_sums = compute_weighted_sums(examples, w, settings_)
    for user in range(8):
        other_examples, is_kept = _without(examples, user, graph_of, dense_of)
        less = compute_weighted_sums(other_examples, w[is_kept], settings_)
        matrix = np.sum((_half(all_sums.matrices) - _half(less.matrices)) ** 2)
        vector = np.sum((all_sums.vectors - less.vectors) ** 2)
        assert matrix <= beta * settings_.compute_matrix_sensitivity(3) ** 2 * (1.0 + 1e-9)
        assert vector <= beta * settings_.vector_sensitivity**2 * (1.0 + 1e-9)


def test_the_ridge_must_be_accounted_for_and_the_bound_is_attained(graph_of, dense_of) -> None:
    graph = graph_of(np.array([[1, 1], [1, 1]]))
    features = np.tile([2.0, 0.0, 0.0], (4, 1))  # |x| = Gamma_x along an axis.
    examples = Examples(graph, features, np.zeros(4))
    settings_, w = RidgeSettings(2.0, 1.0, 0.6), np.full(4, math.sqrt(0.5))
    other_examples, is_kept = _without(examples, 0, graph_of, dense_of)
    all_sums, less = (
        compute_weighted_sums(examples, w, settings_),
        compute_weighted_sums(other_examples, w[is_kept], settings_),
    )
    movement = np.sum((_half(all_sums.matrices) - _half(less.matrices)) ** 2)
    # beta = 1: Gamma^4 + 2 lambda Gamma^2 + d lambda^2 = 16 + 4.8 + 1.08; the paper's proof says 16.
    assert movement == pytest.approx(21.88)
    assert settings_.compute_matrix_sensitivity(3) ** 2 == pytest.approx(21.88)


def test_matrix_and_vector_noise_have_the_stated_variance(graph_of) -> None:
    num_tasks = 3_000
    graph = graph_of(np.ones((1, num_tasks)))
    examples = Examples(graph, np.zeros((num_tasks, 3)), np.zeros(num_tasks))
    # Gamma^4 = 16 and 2 lambda Gamma^2 + d lambda^2 = 0.8 + 0.03; Gamma^2 Gamma_* = 2.
    settings_ = RidgeSettings(2.0, 0.5, 0.1)
    clean = compute_weighted_sums(examples, np.full(num_tasks, 0.01), settings_)
    noisy = perturb_sums(clean, settings_, np.random.default_rng(5))
    difference = noisy.matrices - clean.matrices
    np.testing.assert_array_equal(difference, np.swapaxes(difference, 1, 2))
    # 9,000 entries each: four standard deviations of a sample variance are 4 sqrt(2 / 9000) = 6 %.
    for settings_used in ((0, 1, 2), (0, 1, 2)), ((0, 0, 1), (1, 2, 2)):
        assert np.var(difference[:, settings_used[0], settings_used[1]]) == pytest.approx(16.83, rel=0.06)
    assert np.var(noisy.vectors - clean.vectors) == pytest.approx(4.0, rel=0.06)


def test_noisy_solutions_lie_in_the_domain(random_graph) -> None:
    graph = random_graph(4)
    w = weights.allocate_normalised(TaskProblem(graph, 0.3), 0.5).compute_pair_weights()
    result = _fit_ridge(_examples(graph, 2), w, RidgeSettings(2.0, 1.0, 0.1), np.random.default_rng(0))
    assert np.linalg.norm(result, axis=1).max() <= 1.0 + 1e-12


def test_the_dagger_projects_on_positive_semidefinite_matrices(graph_of) -> None:
    from dpcore.multitask.learners import RidgeSums

    # Eigenvalues 2 along (1, 1) and -1 along (1, -1): only the first is inverted.
    matrix = np.array([[[0.5, 1.5], [1.5, 0.5]]])
    result = solve_sums(RidgeSums(matrix, np.array([[3.0, 1.0]])), 100.0)
    np.testing.assert_allclose(result, [[1.0, 1.0]])
    empty_solution = solve_sums(RidgeSums(-np.eye(2)[None], np.ones((1, 2))), 1.0)
    np.testing.assert_array_equal(empty_solution, 0.0)


def _gradients_by_a_loop(
    examples: Examples, w: np.ndarray, theta: np.ndarray, settings_used: DescentSettings
):
    total = np.zeros_like(theta)
    for pair, task in enumerate(examples.graph.task_codes):
        x, y = examples.features[pair], examples.labels[pair]
        gradient = 2.0 * (theta[task] @ x - y) * x + 2.0 * settings_used.ridge * theta[task]
        total[task] += w[pair] * gradient * min(1.0, settings_used.gradient_bound / np.linalg.norm(gradient))
    return total


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("bound", [0.05, 1.0, 1e6])
def test_gradients_are_clipped_user_by_user(random_graph, ridge: float, bound: float) -> None:
    graph = random_graph(14)
    examples = _examples(graph, 3)
    rng = np.random.default_rng(6)
    w, theta = rng.random(graph.num_pairs), rng.normal(size=(6, 3))
    settings_used = DescentSettings(gradient_bound=bound, ridge=ridge)
    result = sum_gradients(examples, w, settings_used, theta)
    np.testing.assert_allclose(result, _gradients_by_a_loop(examples, w, theta, settings_used), rtol=1e-9)


@given(seed=st.integers(0, 10_000), ridge=st.floats(0.0, 3.0), bound=st.floats(0.01, 10.0))
@settings(max_examples=25, deadline=None)
def test_removing_a_user_moves_a_steps_gradients_by_no_more_than_stated(
    random_graph, graph_of, dense_of, seed, ridge, bound
) -> None:
    table = np.vstack((dense_of(random_graph(seed, 8, 4)), np.ones((1, 4))))
    graph = graph_of(table)
    examples = _examples(graph, seed, spread=5.0)
    beta = 0.4
    w = weights.allocate_normalised(TaskProblem(graph, beta), 0.3).compute_pair_weights()
    theta = np.random.default_rng(seed).normal(size=(4, 3))
    settings_used = DescentSettings(gradient_bound=bound, ridge=ridge)
    all_gradients = sum_gradients(examples, w, settings_used, theta)
    for user in range(8):
        other_examples, is_kept = _without(examples, user, graph_of, dense_of)
        movement = np.sum(
            (all_gradients - sum_gradients(other_examples, w[is_kept], settings_used, theta)) ** 2
        )
        assert movement <= beta * bound**2 * (1.0 + 1e-9)


def test_noiseless_descent_converges_to_ridge(random_graph) -> None:
    graph = random_graph(3, 60, 4)
    examples = _examples(graph, 8, spread=0.4)
    settings_ = DescentSettings(gradient_bound=100.0, num_steps=400, radius=50.0, ridge=0.2)
    w = np.full(graph.num_pairs, 0.1)
    rates = np.tile(1.0 / (2.0 * 0.1 * graph.task_sizes), (400, 1))
    result = fit_descent(examples, w, settings_, rates, None)
    target = _fit_ridge(examples, w, RidgeSettings(50.0, 50.0, 0.2))
    np.testing.assert_allclose(result, target, rtol=1e-8)


def test_noiseless_descent_does_not_depend_on_the_scale_of_weights(random_graph) -> None:
    # With the step of the proof of theorem 3.12 (b), 1 / (omega n lambda t), a factor on all weights cancels;
    # with the printed omega^2 it would not.
    graph = random_graph(5, 30, 4)
    examples = _examples(graph, 1)
    settings_ = DescentSettings(num_steps=7, ridge=0.5)
    paths = []
    for omega in (np.full(4, 0.2), np.full(4, 2.0)):
        rates = 1.0 / (np.arange(1.0, 8.0)[:, None] * omega * graph.task_sizes)
        paths.append(fit_descent(examples, omega[graph.task_codes], settings_, rates, None))
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-10)


def test_descent_noise_has_the_stated_variance(graph_of) -> None:
    num_tasks = 3_000
    graph = graph_of(np.ones((1, num_tasks)))
    examples = Examples(graph, np.zeros((num_tasks, 4)), np.zeros(num_tasks))
    settings_ = DescentSettings(gradient_bound=3.0, num_steps=2, radius=1e9)
    w = np.full(num_tasks, 0.01)
    result = fit_descent(examples, w, settings_, np.ones((2, num_tasks)), np.random.default_rng(9))
    # Two steps of variance Gamma^2 T / 2 = 9 each; 12,000 entries: four standard deviations are 5.2 %.
    assert np.var(result) == pytest.approx(18.0, rel=0.052)
    assert settings_.noise_std == pytest.approx(3.0)


def test_isotropic_rates() -> None:
    counts = np.array([4.0, 9.0])
    assert compute_isotropic_rates(counts, 5, 3)[2, 1] == pytest.approx(5 / (2 * 9.0 * math.sqrt(3)))


def test_clip_rows_and_test_error_by_hand() -> None:
    np.testing.assert_allclose(
        clip_rows(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), 1.0), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]
    )
    graph = TaskGraph(np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32), 2)
    held = Examples(graph, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 0.0]))
    # Predictions 4 and 2: errors 3 and 2.
    result = held.compute_root_mean_squared_error(np.array([[4.0, 0.0], [0.0, 1.0]]))
    assert result == pytest.approx(math.sqrt((9 + 4) / 2))
