"""Graphs, the question's validation, and generators."""

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.data.task_facets import Pairs
from dpcore.multitask.experiment import (
    DIMENSION,
    LABEL_NOISE,
    Experiment,
    HeavyTailed,
    SkewedTasks,
    draw_examples,
)
from dpcore.multitask.problem import TaskGraph, drop_empty_tasks


def test_sums_along_the_graph_are_those_of_the_dense_table(random_graph, dense_of) -> None:
    graph = random_graph(3)
    table, rng = dense_of(graph), np.random.default_rng(0)
    per_task, per_user = rng.random(graph.num_tasks), rng.random(graph.num_users)
    per_pair = rng.random(graph.num_pairs)
    dense_values = np.zeros_like(table)
    dense_values[table > 0] = per_pair
    np.testing.assert_allclose(graph.sum_by_user(per_task), table @ per_task)
    np.testing.assert_allclose(graph.sum_by_task(per_user), table.T @ per_user)
    np.testing.assert_allclose(graph.sum_pairs_by_task(per_pair), dense_values.sum(axis=0))
    np.testing.assert_array_equal(graph.task_sizes, table.sum(axis=0))
    np.testing.assert_array_equal(graph.tasks_per_user, table.sum(axis=1))
    chosen_values = np.array([7, 2, 11])
    np.testing.assert_array_equal(dense_of(graph.select_users(chosen_values)), table[chosen_values])


def test_tasks_without_users_are_left_out() -> None:
    pairs = Pairs(np.array([0, 0, 1]), np.array([0, 3, 3]), 5)
    used_pairs = drop_empty_tasks(pairs)
    np.testing.assert_array_equal(used_pairs.task_codes, [0, 1, 1])
    assert used_pairs.num_tasks == 2
    assert TaskGraph.from_pairs(used_pairs, num_users=9).num_users == 9


@pytest.mark.parametrize(("power", "second_moment"), [(1.0, 1 / 3), (2.0, 1 / 2)])
def test_skewed_tasks_have_the_stated_density_and_mean(power: float, second_moment: float) -> None:
    setting = SkewedTasks(num_users=2_000, num_tasks=1_000, power=power, tasks_per_user=50.0)
    pairs = setting.draw(np.random.default_rng(5))
    # Pairs ~ sum of independent Bernoullis of total mean 2,000 * 50: four standard deviations are 1,265.
    assert pairs.user_codes.size == pytest.approx(100_000, abs=4 * 100_000**0.5)
    # With density a x^(a-1): E q^2 / (E q)^2 = (a / (a + 2)) ((a + 1) / a)^2, 4/3 and 9/8.
    shares = np.bincount(pairs.task_codes, minlength=1_000) / 2_000
    ratio = np.mean(shares**2) / np.mean(shares) ** 2
    mean = power / (power + 1.0)
    assert ratio == pytest.approx(second_moment / mean**2, rel=0.08)


def test_heavy_tailed_graphs_follow_zipf_where_repetition_is_rare() -> None:
    setting = HeavyTailed(200_000, 500, tasks_per_user=1.0, zipf_exponent=1.0, activity_spread=0.0)
    sizes = np.bincount(setting.draw(np.random.default_rng(1)).task_codes, minlength=500)
    # One draw each: sizes are multinomial with probabilities 1 / (i H_500).
    expected = 200_000 / (np.arange(1, 501) * np.sum(1.0 / np.arange(1, 501)))
    statistic = np.sum((sizes - expected) ** 2 / expected)
    # Chi-square with 499 degrees of freedom: mean 499, four standard deviations 126.
    assert abs(statistic - 499) < 4 * (2 * 499) ** 0.5


def test_a_graph_without_pairs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ot a single pair came up"):
        SkewedTasks(num_users=1, num_tasks=2, tasks_per_user=1e-6).draw(np.random.default_rng(0))


def test_the_linear_model_lies_in_the_unit_ball_and_its_noise_has_the_stated_scale() -> None:
    train, _ = draw_examples(Experiment(num_tasks=40), 1.0, np.random.default_rng(2))
    assert np.linalg.norm(train.features, axis=1).max() <= 1.0 + 1e-12
    squares = 0.0
    for task in range(train.graph.num_tasks):
        chosen = train.graph.task_codes == task
        fitted, residual, *_ = np.linalg.lstsq(train.features[chosen], train.labels[chosen])
        assert np.linalg.norm(fitted) <= 1.0 + 0.01
        squares += float(residual.sum())
    # Over 100,000 pairs: four standard deviations are 2 %.
    assert squares / (train.graph.num_pairs - 40 * DIMENSION) == pytest.approx(LABEL_NOISE**2, rel=0.02)
