"""Gains in closed form, their limits, and slices by size."""

import dataclasses

import numpy as np
import pytest

from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.multitask import problem, weights
from dpcore.multitask.answer import solution
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Loss, TaskProblem
from tests.dpcore.multitask.conftest import allocate_unclipped, build_problem


def test_gains_are_ratios_of_the_bounds() -> None:
    sizes = np.array([1, 1, 4, 30, 200])
    for loss in Loss:
        task_problem = build_problem(sizes, 500, 0.1, loss)
        best = allocate_unclipped(task_problem, loss.best_exponent).total_bound
        ratio = allocate_unclipped(task_problem, 0.0).total_bound / best
        # Bound (7) has the root of the sum.
        expected = np.sqrt(ratio) if loss is Loss.CONVEX else ratio
        assert weights.compute_gain(sizes, loss) == pytest.approx(expected)


def _one_large(m: int, nu: float) -> np.ndarray:
    return np.concatenate(([float(m) ** (1.0 + nu)], np.ones(m - 1)))


@pytest.mark.parametrize(
    ("nu", "limit"),
    # R_0 = sqrt(m (m^(1+nu) + m - 1)) / (m^((1+nu)/2) + m - 1).
    [
        (0.5, lambda m: m**0.25),
        (1.0, lambda m: m**0.5 / 2.0),
        (1.5, lambda m: m**0.5),
        (2.0, lambda m: m**0.5),
    ],
)
def test_convex_gain_limits(nu: float, limit) -> None:
    errors = [
        abs(weights.compute_gain(_one_large(m, nu), Loss.CONVEX) / limit(m) - 1.0)
        for m in (10**3, 10**5, 10**6)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
def test_strongly_convex_gain_limit(nu: float) -> None:
    errors = [
        abs(weights.compute_gain(_one_large(m, nu), Loss.STRONGLY_CONVEX) / m**nu - 1.0)
        for m in (10**3, 10**6)
    ]
    assert errors[0] > errors[1]
    assert errors[1] < 0.002


def test_buckets_go_from_tail_to_head_and_add_up() -> None:
    sizes = np.array([50, 1, 9, 3, 3, 100, 7])
    problem = build_problem(sizes, 200, 1.0)
    adapted, uniform = allocate_unclipped(problem, 0.5), allocate_unclipped(problem, 0.0)
    slices = weights.slice_by_size(adapted, uniform, 3)
    ends = [(b.num_tasks, b.smallest_size, b.largest_size) for b in slices]
    assert ends == [(3, 1, 3), (2, 7, 9), (2, 50, 100)]
    assert sum(b.error_bound_sum for b in slices) == pytest.approx(adapted.total_bound)
    assert sum(b.reference_error_sum for b in slices) == pytest.approx(uniform.total_bound)
    assert sum(b.total_share for b in slices) == pytest.approx(1.0)
    # With mu = 1/2 all tasks have the same bound m / (n beta); uniform weights give sum(n) / (n beta n_i).
    for b, item in zip(slices, ([1, 3, 3], [7, 9], [50, 100]), strict=True):
        assert 1.0 / b.ratio == pytest.approx(sum(173 / k for k in item) / (7 * len(item)))
        assert (b.least_task_ratio, b.largest_task_ratio) == pytest.approx(
            (7 * item[0] / 173, 7 * item[-1] / 173)
        )
    assert slices[0].ratio < 1.0 < slices[-1].ratio
    assert len(weights.slice_by_size(adapted, uniform, 50)) == 7


def test_clipping_only_ever_raises_a_bound(random_graph) -> None:
    graph = random_graph(3, 60, 6)
    for loss in Loss:
        problem = TaskProblem(graph, 0.2, loss)
        clipped = weights.allocate_by_power(problem, loss.best_exponent)
        closed_form = allocate_unclipped(problem, loss.best_exponent)
        assert clipped.clipped_user_share
        assert np.all(closed_form.task_bounds <= clipped.task_bounds * (1.0 + 1e-9))


@pytest.mark.parametrize("loss", [Loss.CONVEX, Loss.STRONGLY_CONVEX])
def test_the_bounds_over_epsilon_have_the_power_of_their_loss(loss: Loss) -> None:
    """Bound (7) of convex losses is proportional to the root of sum 1 / omega^2, bounds (6) and (8) to the sum."""
    parameters = MultitaskParameters(epsilon=1.0, loss=loss)
    dataset = Dataset("none", "", Disclosure.PUBLIC, ContributionHistogram.from_counts([1]))
    costs = solution.compare_over_epsilon(dataset, parameters).compute_costs(np.array([0.5, 1.0, 4.0]))
    budgets = [
        problem.compute_exact_budget(dataclasses.replace(parameters, epsilon=epsilon).target)
        for epsilon in (0.5, 1.0, 4.0)
    ]
    power = 0.5 if loss is Loss.CONVEX else 1.0
    assert costs / costs[:, :1] == pytest.approx((budgets[0] / np.array([budgets] * 3)) ** power)
    tasks = solution.load_tasks(parameters.generator, parameters.graph_seed, dataset)
    curve = solution.compute_curve(tasks, loss, parameters.rule)
    best = parameters.rule.with_exponent(curve.optimum[0]).allocate(curve.uniform_allocation.problem)
    assert costs[1, 0] / costs[0, 0] == pytest.approx(solution.compare_totals(best, curve.uniform_allocation))
