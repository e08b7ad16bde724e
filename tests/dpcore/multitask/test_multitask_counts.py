"""Private counts: sensitivity by removing users, noise measured, slack that covers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.multitask import sampling, weights
from dpcore.multitask.problem import TaskProblem


@given(seed=st.integers(0, 10_000), max_tasks=st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_one_user_moves_counts_by_root_k_and_the_truncation_by_one(random_graph, seed, max_tasks) -> None:
    graph = random_graph(seed, 14, 8)
    kept_pairs = sampling.draw_uniformly(graph, max_tasks, np.random.default_rng(seed))
    task_counts = graph.sum_pairs_by_task(kept_pairs.astype(float))
    missed = graph.task_sizes - task_counts
    for user in range(graph.num_users):
        others = graph.user_codes != user
        without = graph.sum_pairs_by_task((kept_pairs & others).astype(float))
        assert np.sum((task_counts - without) ** 2) <= max_tasks
        missed_without = graph.sum_pairs_by_task(others.astype(float)) - without
        assert abs(missed.max() - missed_without.max()) <= 1.0


def test_noise_has_the_variance_that_the_budget_pays_for(graph_of) -> None:
    num_tasks, beta, k = 4_000, 0.05, 4_000
    graph = graph_of(np.ones((3, num_tasks)))
    release = sampling.release_counts(graph, beta, k, np.random.default_rng(11), truncation_share=0.25)
    # (alpha, alpha sensitivity^2 / (2 sigma^2))-RDP: k / (2 sigma^2) is the counts' part of beta.
    assert k / (2.0 * release.count_noise_std**2) == pytest.approx(0.75 * beta)
    # Sample variance of 4,000 normals: four standard deviations are 4 sqrt(2 / 4000) = 9 %.
    assert np.var(release.estimates - 3.0) == pytest.approx(release.count_noise_std**2, rel=0.09)


def test_slack_covers_noise_and_truncation_as_often_as_promised(random_graph) -> None:
    graph = random_graph(5, 200, 10)
    rng = np.random.default_rng(3)
    releases = [sampling.release_counts(graph, 0.5, 2, rng, 0.2, failure_probability=0.1) for _ in range(400)]
    covered = [bool(np.all(np.abs(r.estimates - graph.task_sizes) <= r.slack)) for r in releases]
    # At least 90 % expected; four standard deviations of 400 draws are 6 %.
    assert np.mean(covered) >= 0.84
    # Without the truncation, counts of at most 2 tasks per user fall short on this graph every time.
    bare = [sampling.release_counts(graph, 0.5, 2, rng, 0.0, failure_probability=0.1) for _ in range(20)]
    assert not any(np.all(graph.task_sizes <= r.estimates + r.slack) for r in bare)
    assert all(r.truncation_slack == 0.0 and not r.covers_truncation for r in bare)


def test_expected_truncation_is_the_mean_of_draws(random_graph) -> None:
    graph = random_graph(21, 300, 6)
    rng = np.random.default_rng(0)
    draws = [graph.sum_pairs_by_task(~sampling.draw_uniformly(graph, 2, rng) * 1.0) for _ in range(300)]
    error = np.std(draws, axis=0, ddof=1) / 300**0.5
    # A task lacks n_i - sum over its users of min(1, k / n^j).
    expected = graph.task_sizes - graph.sum_by_task(2 / np.maximum(graph.tasks_per_user, 2))
    assert np.all(np.abs(np.mean(draws, axis=0) - expected) <= 4.5 * error + 1e-9)
    assert sampling.draw_uniformly(graph, 6, rng).all()


def test_cost_factor_and_floor(random_graph) -> None:
    graph = random_graph(2, 50, 5)
    assert sampling.compute_cost_factor(graph.task_sizes, graph.task_sizes.astype(float)) == 1.0
    release = sampling.release_counts(graph, 1e-4, 5, np.random.default_rng(1), 0.0, 0.5)
    assert release.usable_counts.min() >= sampling.SMALLEST_COUNT
    raw = release.estimates + release.slack
    assert sampling.compute_cost_factor(graph.task_sizes, release.usable_counts) == pytest.approx(
        np.mean(np.maximum(raw, 1.0) / graph.task_sizes)
    )
    # On the event that the slack covers, n_hat <= n + s: at most 1 + (2 s / m) sum 1 / n_i.
    fine = sampling.release_counts(graph, 50.0, 5, np.random.default_rng(1), 0.0)
    assert np.all(np.abs(fine.estimates - graph.task_sizes) <= fine.slack)
    limit = 1.0 + 2.0 * fine.slack * np.mean(1.0 / graph.task_sizes)
    assert 1.0 <= sampling.compute_cost_factor(graph.task_sizes, fine.usable_counts) <= limit


def test_covered_counts_never_overweigh(random_graph) -> None:
    # Theorem B.2's step: n_hat + s >= n makes every weight at most that from exact counts (mu = 1/2).
    graph = random_graph(6, 400, 8)
    problem = TaskProblem(graph, 1.0)
    release = sampling.release_counts(graph, 5.0, 3, np.random.default_rng(4))
    assert np.all(graph.task_sizes <= release.estimates + release.slack)
    estimated = weights.compute_task_weights(problem, 0.5, size_estimates=release.usable_counts)
    assert np.all(estimated <= weights.compute_task_weights(problem, 0.5) * (1.0 + 1e-12))
