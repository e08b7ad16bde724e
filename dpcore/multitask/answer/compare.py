"""What is computed on demand: exact optima, every way beside them, and private counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.progress import Progress, ShouldStop
from dpcore.multitask import exact, free
from dpcore.multitask.answer.found import Optima, Tasks, WeightQuestion, tasks_per_user, total_ratio
from dpcore.multitask.counts import PrivateCounts, cost_factor, release_counts
from dpcore.multitask.fit import BudgetFit, WeightRule
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss, TaskProblem
from dpcore.multitask.search import SearchOptions
from dpcore.multitask.weight_skew import WeightSkew, skew_of

TOLERANCE = 1e-4
"""Relative gap asked of the exact optima."""
COVERED_SHARE = 0.1
"""Share of the counts' budget for the release that covers what counting at most k tasks misses."""


def find_optima(tasks: Tasks, loss: Loss, progress: Progress, should_stop: ShouldStop) -> Optima:
    """Solve both; where it is stopped, both are valid all the same."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    options = SearchOptions(TOLERANCE)
    same = exact.best_task_weights(problem, options, lambda share: progress(0.7 * share), should_stop)
    return Optima(
        same,
        free.best_user_task_weights(problem, options, lambda share: progress(0.7 + 0.3 * share), should_stop),
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
        """How far its error bound lies above that of the optimum of its kind, relative."""
        return total_ratio(self.allocation, self.optimum) - 1.0


def methods(
    tasks: Tasks, loss: Loss, exponent: float, sampling: Allocation, optima: Optima
) -> list[ComparedAllocation]:
    """Like beside like: first those with one weight per task, then those that differ between users."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    pairs: list[tuple[str, Allocation, Allocation]] = []
    for fit, words in (
        (BudgetFit.NOBODY_CLIPPED, "nobody clipped"),
        (BudgetFit.CLIPPED, "clipped, c = 1"),
        (BudgetFit.FULL, "every user filled up"),
    ):
        optimum = optima.of_kind(fit)
        if fit is BudgetFit.CLIPPED:
            pairs.append((f"Sampling, k = {tasks_per_user(sampling):,}", sampling, optimum))
        for mu in sorted({0.0, exponent}):
            name = f"μ = {wording.entered(mu)}, {words}" if mu else f"Uniform, {words}"
            pairs.append((name, WeightRule(mu, fit).weights(problem), optimum))
        if fit is BudgetFit.NOBODY_CLIPPED:
            pairs.append(("Exact optimum, problem (9)", optimum, optimum))
    pairs.append(("Exact optimum, free weights", optima.free, optima.free))
    return [
        ComparedAllocation(name, allocation, optimum, skew_of(allocation))
        for name, allocation, optimum in pairs
    ]


# --- private counts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountsFound:
    """What releasing the task sizes privately costs: one simulated draw.

    Attributes:
        counts: What would be released.
        with_slack: Weights from n_hat + s on what is left of the budget (equation 18).
        without_slack: Weights from n_hat alone, floored at 1.
        cost_factor: (1 / m) sum (n_hat + s) / n_i.
        low: Number of tasks whose n_hat + s is below their size.
        share: Of the budget that the counts take.
    """

    counts: PrivateCounts
    with_slack: Allocation
    without_slack: Allocation
    cost_factor: float
    low: int
    share: float

    def total(self, allocation: Allocation, exact: Allocation) -> float:
        """Error bound of all tasks with the budget that is left, against that of exact sizes with all of it."""
        # 1/beta, for convex losses its root.
        power = 1.0 if exact.problem.loss is Loss.STRONGLY_CONVEX else 0.5
        return float(total_ratio(allocation, exact) / (1.0 - self.share) ** power)


def private_counts(
    tasks: Tasks, question: WeightQuestion, budget: float, parameters: MultitaskParameters
) -> CountsFound:
    """Simulate the counts for this beta, and weigh by them."""
    share, sizes = parameters.count_share, tasks.graph.task_sizes
    counts = release_counts(
        tasks.graph,
        budget * share,
        parameters.count_max_tasks,
        np.random.default_rng(parameters.count_seed),
        COVERED_SHARE if parameters.count_covers else 0.0,
    )
    rest = TaskProblem.from_graph(tasks.graph, budget * (1.0 - share), question.loss)
    return CountsFound(
        counts=counts,
        with_slack=question.rule.weights(rest, counts.usable),
        without_slack=question.rule.weights(rest, np.maximum(counts.estimates, 1.0)),
        cost_factor=cost_factor(sizes, counts.usable),
        low=int((counts.usable < sizes).sum()),
        share=share,
    )
