"""The solution for many tasks: weights, the allocations that they are compared with, and the budget.

All weights grow by one factor with the budget, so that everything is computed for a budget of 1, and a moved epsilon
computes nothing anew; see `Allocation.with_budget`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import MAX_CACHED_EPSILONS, MethodComparison
from dpcore.answer.section import Cached, Search, SearchResult, Solver
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.progress import Stage
from dpcore.common.wording import format_number
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.multitask import problem as task_problem
from dpcore.multitask import weights as multitask_weights
from dpcore.multitask.exact import find_best_task_weights, find_best_user_task_weights
from dpcore.multitask.experiment import HeavyTailed, SkewedTasks
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, BudgetComparison, Loss, TaskGraph, TaskProblem
from dpcore.multitask.sampling import allocate_uniform_sampling, find_best_uniform_sampling
from dpcore.multitask.weights import Bucket, BudgetFit, WeightRule, compute_skew

NUM_FINE_STEPS, NUM_COARSE_STEPS = 40, 8
"""Steps of mu from 0 to 1; few if the graph is large."""
NEAR_OPTIMAL_SHARE = 0.05
"""Relative excess of a near-optimal total bound."""
MIN_PAIRS_OF_LARGE_GRAPH = 1_000_000
"""Pairs: each step takes about 30 ns a pair."""
OPTIMA_TOLERANCE = 1e-4
"""Relative gap of the exact optima."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """The graph of users and tasks in use, of the data or generated, with its label.

    Attributes:
        graph: Who contributes to what; tasks without users are left out and the others numbered anew.
        digest: Names the graph in caches.
        disclosure: Of everything computed from it.
    """

    graph: TaskGraph
    digest: str
    disclosure: Provenance


def load_tasks(generator: SkewedTasks | HeavyTailed | None, seed: int, dataset: Dataset | None) -> Tasks:
    """Draw the graph of the generator, or take that of the data if there is none.

    Raises:
        InvalidInput: The generator drew nothing, or the data have no pairs.
    """
    if generator is not None:
        pairs, num_users = generator.draw(np.random.default_rng(seed)), generator.num_users
        tasks_digest: str = repr((generator, seed))
        disclosure: Provenance = Disclosure.PUBLIC
    elif dataset is None or dataset.pairs is None:
        raise refuse("this needs a group or task in each row, and these data have none")
    else:
        pairs, tasks_digest, disclosure = dataset.pairs, dataset.digest, dataset.provenance
        # Users whose rows name no task count in n.
        num_users = max(dataset.histogram.num_users, int(pairs.user_codes[-1]) + 1)
    return Tasks(
        TaskGraph.from_pairs(task_problem.drop_empty_tasks(pairs), num_users), tasks_digest, disclosure
    )


@dataclass(frozen=True, eq=False)
class ExponentCurve:
    """The error bound over mu. It does not depend on the budget.

    Attributes:
        exponents: mu, ascending from 0 to 1.
        relative_totals: Error bound of all tasks relative to mu = 0, shape of ``exponents``.
        ratio_limits: Smallest and largest ratio of a task's bound to that at mu = 0, over all mu.
        weight_limits: Smallest and largest mean weight of a task in units of sqrt(beta), over all mu.
        uniform_allocation: The weights at mu = 0, which all is compared with, for a budget of 1.
    """

    exponents: FloatArray
    relative_totals: FloatArray
    ratio_limits: tuple[float, float]
    weight_limits: tuple[float, float]
    uniform_allocation: Allocation

    @property
    def optimum(self) -> tuple[float, float]:
        """Return (mu, relative total) where the total is smallest."""
        best_index = int(np.argmin(self.relative_totals))
        return float(self.exponents[best_index]), float(self.relative_totals[best_index])

    @property
    def near_optimal(self) -> tuple[float, float]:
        """Return the smallest and the largest mu of the near-optimal interval around the best one."""
        best_index = int(np.argmin(self.relative_totals))
        totals = self.relative_totals
        excluded_indices = np.flatnonzero(totals > (1.0 + NEAR_OPTIMAL_SHARE) * totals[best_index])
        last_excluded_below = int(excluded_indices[excluded_indices < best_index].max(initial=-1)) + 1
        first_excluded_above = (
            int(excluded_indices[excluded_indices > best_index].min(initial=totals.size)) - 1
        )
        return float(self.exponents[last_excluded_below]), float(self.exponents[first_excluded_above])


def compute_curve(tasks: Tasks, loss: Loss, rule: WeightRule) -> ExponentCurve:
    """Compute the error bounds over all mu with the fit of this rule; the exponent of the rule is ignored."""
    problem = TaskProblem(tasks.graph, 1.0, loss)
    uniform_allocation = rule.with_exponent(0.0).allocate(problem)
    num_steps = NUM_FINE_STEPS if tasks.graph.num_pairs <= MIN_PAIRS_OF_LARGE_GRAPH else NUM_COARSE_STEPS
    exponents = np.linspace(0.0, 1.0, num_steps + 1)
    relative_totals, extreme_error_ratios, extreme_mean_weights = [], [], []
    for exponent in exponents:
        allocation = rule.with_exponent(float(exponent)).allocate(problem)
        relative_totals.append(compare_totals(allocation, uniform_allocation))
        error_ratios = allocation.task_bounds / uniform_allocation.task_bounds
        extreme_error_ratios += [float(error_ratios.min()), float(error_ratios.max())]
        extreme_mean_weights += [float(allocation.mean_weights.min()), float(allocation.mean_weights.max())]
    return ExponentCurve(
        exponents,
        np.array(relative_totals),
        (min(extreme_error_ratios), max(extreme_error_ratios)),
        (min(extreme_mean_weights), max(extreme_mean_weights)),
        uniform_allocation,
    )


def compare_totals(allocation: Allocation, reference_allocation: Allocation) -> float:
    """Return the error bound of all tasks together over that of a reference, as if both had the same budget.

    For convex losses it is the root of the ratio of total bounds (equation 7).
    """
    problem, reference_problem = allocation.problem, reference_allocation.problem
    error_bound_ratio = (
        allocation.total_bound
        * problem.budget
        / (reference_allocation.total_bound * reference_problem.budget)
    )
    return math.sqrt(error_bound_ratio) if problem.loss is Loss.CONVEX else error_bound_ratio


@dataclass(frozen=True, eq=False)
class WeightComparison:
    """The weights and the allocations that they are compared with, for a budget of 1.

    Attributes:
        tasks: Users and tasks.
        rule: The rule of the weights.
        allocation: The weights at the chosen mu.
        best_task_sampling: Uniform sampling with the best number of tasks per user.
        entered_task_sampling: With the person's number; None where none was entered.
        exponent_curve: Over all mu.
    """

    tasks: Tasks
    rule: WeightRule
    allocation: Allocation
    best_task_sampling: Allocation
    entered_task_sampling: Allocation | None
    exponent_curve: ExponentCurve

    @property
    def uniform_allocation(self) -> Allocation:
        """Return the weights at mu = 0, fitted in the same way: what all is compared with."""
        return self.exponent_curve.uniform_allocation

    @property
    def problem(self) -> TaskProblem:
        """Return the problem on this graph, with a budget of 1."""
        return self.allocation.problem

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """Group the tasks by size, from small to large, and compare the weights with uniform ones in each group."""
        return multitask_weights.slice_by_size(self.allocation, self.uniform_allocation)

    @cached_property
    def sampling_buckets(self) -> tuple[Bucket, ...]:
        """Slice the tasks from tail to head, the best sampling against uniform weights."""
        return multitask_weights.slice_by_size(self.best_task_sampling, self.uniform_allocation)

    @cached_property
    def task_skews(self) -> FloatArray:
        """Compute for each task how much of its weight lies with other users than in the plain loss, as a share.

        Shape (num_tasks,).
        """
        return compute_skew(self.allocation)

    def compute_relative_total(self, allocation: Allocation) -> float:
        """Return the error bound of all tasks relative to uniform weights."""
        return compare_totals(allocation, self.uniform_allocation)

    @property
    def recommendation(self) -> tuple[float, float]:
        """Return (mu, relative total): the entered mu if it is near-optimal, else the best."""
        entered_total = self.compute_relative_total(self.allocation)
        if entered_total <= (1.0 + NEAR_OPTIMAL_SHARE) * self.exponent_curve.optimum[1]:
            return self.rule.exponent, entered_total
        return self.exponent_curve.optimum


def compare_weights(
    tasks: Tasks,
    weight_rule: WeightRule,
    max_tasks: int | None,
    exponent_curve: ExponentCurve,
    best_task_sampling: Allocation,
) -> WeightComparison:
    """Build the comparison of the rule's weights; curve and best sampling must be of these tasks, loss and fit."""
    problem = exponent_curve.uniform_allocation.problem
    entered_task_sampling = None if max_tasks is None else allocate_uniform_sampling(problem, max_tasks)
    allocation = weight_rule.allocate(problem)
    return WeightComparison(
        tasks, weight_rule, allocation, best_task_sampling, entered_task_sampling, exponent_curve
    )


def find_best_sampling(tasks: Tasks, loss: Loss) -> Allocation:
    """Find uniform sampling with the best k, for a budget of 1."""
    return find_best_uniform_sampling(TaskProblem(tasks.graph, 1.0, loss))


@dataclass(frozen=True, eq=False)
class Optima:
    """The two optima, for a budget of 1.

    Attributes:
        task_optimum: Problem (9): one weight per task, nobody clipped.
        user_task_optimum: One weight per user and task.
    """

    task_optimum: Allocation
    user_task_optimum: Allocation

    @property
    def allocations_by_name(self) -> dict[str, Allocation]:
        """Return both optima by name: ``problem (9)``, one weight per task, and ``free weights``, per user and task."""
        return {"problem (9)": self.task_optimum, "free weights": self.user_task_optimum}

    def choose(self, fit: BudgetFit) -> Allocation:
        """Return the optimum of the same kind: one weight per task if the fit clips nobody, else free weights."""
        return self.task_optimum if fit.clips_nobody else self.user_task_optimum


def search_optima(tasks: Tasks, loss: Loss) -> Search:
    """Return the `Search` for both optima; if it is stopped, both allocations are still valid weights."""

    def find_optima(progress: Callable[[float], None], should_stop: Callable[[], bool]) -> Optima:
        """Find both optima for a budget of 1, the one per task first."""
        problem = TaskProblem(tasks.graph, 1.0, loss)
        return Optima(
            find_best_task_weights(problem, OPTIMA_TOLERANCE, lambda x: progress(0.7 * x), should_stop),
            find_best_user_task_weights(
                problem, OPTIMA_TOLERANCE, lambda x: progress(0.7 + 0.3 * x), should_stop
            ),
        )

    return Search(
        "optimum_job",
        (tasks.digest, loss),
        find_optima,
        "Solving",
        "Find the exact optima",
        "target",
        idle_text="Not computed yet. Millions of pairs take seconds.",
        depends_on_data=False,
    )


@dataclass(frozen=True, eq=False)
class MultitaskSolution:
    """All results that depend on data and question.

    Attributes:
        parameters: The question.
        comparison: The weights, which do not depend on epsilon and delta.
        budgets: What epsilon and delta give.
        optima: The exact optima of these tasks; None where nobody asked for them.
    """

    parameters: MultitaskParameters
    comparison: WeightComparison
    budgets: BudgetComparison
    optima: Optima | None = None

    @property
    def tasks(self) -> Tasks:
        """Return the users and tasks of the comparison."""
        return self.comparison.tasks


def solve(dataset: Dataset | None, parameters: MultitaskParameters) -> MultitaskSolution:
    """Compute and compare weights, without the exact optima.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.
    """
    tasks = load_tasks(parameters.generator, parameters.graph_seed, dataset)
    loss, weight_rule = parameters.loss, parameters.rule
    exponent_curve, best_task_sampling = (
        compute_curve(tasks, loss, weight_rule),
        find_best_sampling(tasks, loss),
    )
    comparison = compare_weights(tasks, weight_rule, parameters.max_tasks, exponent_curve, best_task_sampling)
    return MultitaskSolution(parameters, comparison, task_problem.compare_budgets(parameters.target))


def solve_beside_page(dataset: Dataset, parameters: MultitaskParameters) -> Solver:
    """Compute and compare weights in cached steps, with the exact optima if their search has ended for these tasks.

    The dataset is read only if the parameters choose no generator.
    """
    task_generator, loss, weight_rule = parameters.generator, parameters.loss, parameters.rule
    graph_arguments = (task_generator, parameters.graph_seed, None if task_generator else dataset)
    tasks = yield Cached(load_tasks, graph_arguments, num_kept=2)
    exponent_curve = yield Cached(compute_curve, (tasks, loss, weight_rule.with_exponent(0.0)), num_kept=8)
    best_task_sampling = yield Cached(find_best_sampling, (tasks, loss), num_kept=4)
    comparison = yield Cached(
        compare_weights,
        (tasks, weight_rule, parameters.max_tasks, exponent_curve, best_task_sampling),
        num_kept=4,
    )
    budget_comparison = yield Cached(task_problem.compare_budgets, (parameters.target,), num_kept=32)
    optima_result: SearchResult = yield search_optima(tasks, loss)
    current_optima = optima_result.value if optima_result.stage is Stage.FINAL else None
    return SearchResult(MultitaskSolution(parameters, comparison, budget_comparison, current_optima))


IGNORED_FIELD_NAMES = (
    "exponent", "max_tasks", "count_share", "count_max_tasks", "count_covers", "count_seed", "experiment_epsilons",
    "experiment_users", "experiment_repeats", "experiment_seed",
)  # fmt: skip


def compare_over_epsilon(dataset: Dataset, parameters: MultitaskParameters) -> MethodComparison:
    """Build the comparison over epsilon of the error bound of all tasks under each division of the budget.

    All weights grow by one factor with the budget, so that the best mu and all comparisons are the same at
    every ε.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.
    """
    tasks = load_tasks(parameters.generator, parameters.graph_seed, dataset)
    loss, weight_rule = parameters.loss, parameters.rule
    exponent_curve = compute_curve(tasks, loss, weight_rule)
    best_exponent = exponent_curve.optimum[0]
    best_weights = weight_rule.with_exponent(best_exponent).allocate(
        exponent_curve.uniform_allocation.problem
    )
    allocation_by_name = {
        "Uniform weights": exponent_curve.uniform_allocation,
        f"Best exponent, μ = {format_number(best_exponent)}": best_weights,
        "Uniform sampling, best number": find_best_sampling(tasks, loss),
    }

    @functools.lru_cache(MAX_CACHED_EPSILONS)
    def compute_budget(epsilon: float) -> float:
        """Compute beta exactly at an epsilon, with the question's delta."""
        return task_problem.compute_exact_budget(replace(parameters, epsilon=epsilon).target)

    def compute_error_bounds(epsilons: FloatArray) -> FloatArray:
        """Compute the error bound of all tasks of every allocation at every epsilon, shape (allocations, epsilons)."""
        exact_budgets = np.array([compute_budget(epsilon) for epsilon in epsilons.tolist()])
        total_bounds = np.array([allocation.total_bound for allocation in allocation_by_name.values()])
        error_bounds = np.asarray(total_bounds[:, None] / exact_budgets)
        return np.sqrt(error_bounds) if loss is Loss.CONVEX else error_bounds  # The root, as in bound (7).

    return MethodComparison(
        "Error bound of all tasks",
        tuple(allocation_by_name),
        compute_error_bounds,
        best_method_sentence="the error bound of all tasks together. The best μ and its gain are the same at every ε.",
        own_provenance=tasks.disclosure,
    )
