"""Results that are computed on demand: exact optima, all rules compared with them, and private counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.progress import Progress, ShouldStop
from dpcore.multitask import exact, free
from dpcore.multitask.answer.found import (
    Optima,
    Tasks,
    WeightQuestion,
    compute_total_ratio,
    count_tasks_per_user,
)
from dpcore.multitask.counts import PrivateCounts, compute_cost_factor, release_counts
from dpcore.multitask.fit import BudgetFit, WeightRule
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss, TaskProblem
from dpcore.multitask.search import SearchOptions
from dpcore.multitask.weight_skew import WeightSkew, compute_skew

TOLERANCE = 1e-4
"""Relative gap asked of the exact optima."""
COVERED_SHARE = 0.1
"""Share of the counts' budget for the release that covers what counting at most k tasks misses."""


def find_optima(tasks: Tasks, loss: Loss, progress: Progress, should_stop: ShouldStop) -> Optima:
    """Solve both problems; if the search is stopped, both allocations are valid all the same."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    options = SearchOptions(TOLERANCE)
    task_optimum = exact.find_best_task_weights(
        problem, options, lambda share: progress(0.7 * share), should_stop
    )
    return Optima(
        task_optimum,
        free.find_best_user_task_weights(
            problem, options, lambda share: progress(0.7 + 0.3 * share), should_stop
        ),
    )


@dataclass(frozen=True, eq=False)
class ComparedAllocation:
    """One row of the comparison with the optima.

    Attributes:
        name: What a person calls it.
        allocation: The weights, for a budget of 1.
        optimum: The optimum of its kind.
        weight_skew: What it does to the tasks' losses.
    """

    name: str
    allocation: Allocation
    optimum: Allocation
    weight_skew: WeightSkew

    @property
    def above_optimum(self) -> float:
        """Return by how much its error bound exceeds that of the optimum of its kind, relative."""
        return compute_total_ratio(self.allocation, self.optimum) - 1.0


def compare_with_optima(
    tasks: Tasks, loss: Loss, exponent: float, sampling: Allocation, optima: Optima
) -> list[ComparedAllocation]:
    """Compare each allocation with the optimum of its kind: first one weight per task, then weights per user."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    pairs: list[tuple[str, Allocation, Allocation]] = []
    for fit, fit_text in (
        (BudgetFit.NOBODY_CLIPPED, "nobody clipped"),
        (BudgetFit.CLIPPED, "clipped, c = 1"),
        (BudgetFit.FULL, "every user filled up"),
    ):
        optimum = optima.choose(fit)
        if fit is BudgetFit.CLIPPED:
            pairs.append((f"Sampling, k = {count_tasks_per_user(sampling):,}", sampling, optimum))
        for exponent_value in sorted({0.0, exponent}):
            name = (
                f"μ = {wording.entered(exponent_value)}, {fit_text}"
                if exponent_value
                else f"Uniform, {fit_text}"
            )
            pairs.append((name, WeightRule(exponent_value, fit).allocate(problem), optimum))
        if fit is BudgetFit.NOBODY_CLIPPED:
            pairs.append(("Exact optimum, problem (9)", optimum, optimum))
    pairs.append(("Exact optimum, free weights", optima.user_task_optimum, optima.user_task_optimum))
    return [
        ComparedAllocation(name, allocation, optimum, compute_skew(allocation))
        for name, allocation, optimum in pairs
    ]


# --- private counts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountsSolution:
    """The cost of a private release of the task sizes: one simulated draw.

    Attributes:
        counts: What would be released.
        with_slack: Weights from n_hat + s on what is left of the budget (equation 18).
        without_slack: Weights from n_hat alone, floored at 1.
        cost_factor: (1 / m) sum (n_hat + s) / n_i.
        num_underestimated: Number of tasks whose n_hat + s is below their size.
        budget_share: Of the budget that the counts take.
    """

    counts: PrivateCounts
    with_slack: Allocation
    without_slack: Allocation
    cost_factor: float
    num_underestimated: int
    budget_share: float

    def compare_total(self, allocation: Allocation, exact: Allocation) -> float:
        """Compare the error bound of all tasks with the remaining budget to that of exact sizes with all of it."""
        # 1/beta, for convex losses its root.
        power = 1.0 if exact.problem.loss is Loss.STRONGLY_CONVEX else 0.5
        return float(compute_total_ratio(allocation, exact) / (1.0 - self.budget_share) ** power)


def simulate_counts(
    tasks: Tasks, question: WeightQuestion, budget: float, parameters: MultitaskParameters
) -> CountsSolution:
    """Simulate the counts for this beta, and weight by them."""
    share, sizes = parameters.count_share, tasks.graph.task_sizes
    counts = release_counts(
        tasks.graph,
        budget * share,
        parameters.count_max_tasks,
        np.random.default_rng(parameters.count_seed),
        COVERED_SHARE if parameters.count_covers else 0.0,
    )
    remaining_problem = TaskProblem.from_graph(tasks.graph, budget * (1.0 - share), question.loss)
    return CountsSolution(
        counts=counts,
        with_slack=question.rule.allocate(remaining_problem, counts.usable),
        without_slack=question.rule.allocate(remaining_problem, np.maximum(counts.estimates, 1.0)),
        cost_factor=compute_cost_factor(sizes, counts.usable),
        num_underestimated=int((counts.usable < sizes).sum()),
        budget_share=share,
    )
