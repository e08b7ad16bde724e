"""The solution for many tasks: weights, the allocations that they are compared with, and the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import MethodComparison, cache_by_epsilon
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.multitask import bounds
from dpcore.multitask.bounds import Bucket
from dpcore.multitask.graph import TaskGraph, drop_empty_tasks
from dpcore.multitask.parameters import MultitaskParameters, draw_pairs
from dpcore.multitask.problem import (
    Allocation,
    BudgetComparison,
    Loss,
    TaskProblem,
    compare_budgets,
    compute_exact_budget,
)
from dpcore.multitask.sampling import allocate_uniform_sampling, find_best_uniform_sampling
from dpcore.multitask.weights import BudgetFit, WeightRule, WeightSkew, compute_skew

FINE_STEPS, COARSE_STEPS = 40, 8
"""Steps of mu from 0 to 1 that the curve tries; few where the graph is large."""
NEAR_OPTIMAL_SHARE = 0.05
"""A mu is good enough whose total bound is at most this share above the smallest."""
LARGE_GRAPH = 1_000_000
"""Pairs above which the curve is coarse: each step takes about 30 ns a pair."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """The users and tasks in use.

    Attributes:
        graph: Who contributes to what; tasks without users are left out and the others numbered anew.
        key: Names the graph in caches.
        disclosure: Of everything computed from it.
    """

    graph: TaskGraph
    key: str
    disclosure: Provenance


def load_tasks(parameters: MultitaskParameters, dataset: Dataset | None) -> Tasks | None:
    """Load the graph that the parameters name; None if the data should have pairs and have none.

    Raises:
        InvalidInput: The generator drew nothing.
    """
    generator = parameters.generator
    if generator is not None:
        pairs, _ = drop_empty_tasks(draw_pairs(generator, parameters.graph_seed))
        graph = TaskGraph.from_pairs(pairs, generator.num_users)
        return Tasks(graph, repr((generator, parameters.graph_seed)), Disclosure.PUBLIC)
    if dataset is None or dataset.pairs is None:
        return None
    pairs, _ = drop_empty_tasks(dataset.pairs)
    # Users whose rows name no task count in n.
    num_users = max(dataset.histogram.num_users, int(pairs.user_codes[-1]) + 1)
    return Tasks(TaskGraph.from_pairs(pairs, num_users), dataset.digest, dataset.provenance)


@dataclass(frozen=True)
class WeightQuestion:
    """The settings that weights depend on, except beta: all weights grow by one factor with it.

    So everything here is for a budget of 1, and a moved epsilon computes nothing anew; see `rescale_budget`.

    Attributes:
        loss: Convex or strongly convex.
        rule: The weights.
        max_tasks: Tasks per user of a sampling to compare with; None for none.
    """

    loss: Loss
    rule: WeightRule
    max_tasks: int | None = None

    @classmethod
    def from_parameters(cls, parameters: MultitaskParameters) -> WeightQuestion:
        """Create the settings from the parameters."""
        rule = WeightRule(parameters.exponent, parameters.fit, parameters.log_constant)
        return cls(parameters.loss.loss, rule, parameters.max_tasks)


@dataclass(frozen=True, eq=False)
class ExponentCurve:
    """The error bound over mu. It does not depend on the budget.

    Attributes:
        exponents: mu, ascending from 0 to 1.
        totals: Error bound of all tasks relative to mu = 0, shape of ``exponents``.
        ratio_limits: Smallest and largest ratio of a task's bound to that at mu = 0, over all mu.
        weight_limits: Smallest and largest mean weight of a task in units of sqrt(beta), over all mu.
        uniform: The weights at mu = 0, which all is compared with, for a budget of 1.
    """

    exponents: FloatArray
    totals: FloatArray
    ratio_limits: tuple[float, float]
    weight_limits: tuple[float, float]
    uniform: Allocation

    @property
    def best(self) -> tuple[float, float]:
        """Return (mu, total) where the total is smallest."""
        index = int(np.argmin(self.totals))
        return float(self.exponents[index]), float(self.totals[index])

    @property
    def near_optimal(self) -> tuple[float, float]:
        """Return the smallest and the largest mu of the near-optimal interval around the best one."""
        index = int(np.argmin(self.totals))
        not_near_optimal = np.flatnonzero(self.totals > (1.0 + NEAR_OPTIMAL_SHARE) * self.totals[index])
        low = int(not_near_optimal[not_near_optimal < index].max(initial=-1)) + 1
        high = int(not_near_optimal[not_near_optimal > index].min(initial=self.totals.size)) - 1
        return float(self.exponents[low]), float(self.exponents[high])


def compute_curve(tasks: Tasks, loss: Loss, rule: WeightRule) -> ExponentCurve:
    """Compute the curve over all mu; ``rule.format_exponent`` does not matter."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    reference = rule.with_exponent(0.0).allocate(problem)
    steps = FINE_STEPS if tasks.graph.num_pairs <= LARGE_GRAPH else COARSE_STEPS
    exponents = np.linspace(0.0, 1.0, steps + 1)
    totals, ratios, weights = [], [], []
    for exponent in exponents:
        allocation = rule.with_exponent(float(exponent)).allocate(problem)
        totals.append(compute_total_ratio(allocation, reference))
        ratio = allocation.task_bounds / reference.task_bounds
        ratios += [float(ratio.min()), float(ratio.max())]
        weights += [float(allocation.mean_weights.min()), float(allocation.mean_weights.max())]
    return ExponentCurve(
        exponents=exponents,
        totals=np.array(totals),
        ratio_limits=(min(ratios), max(ratios)),
        weight_limits=(min(weights), max(weights)),
        uniform=reference,
    )


def compute_total_ratio(allocation: Allocation, reference: Allocation) -> float:
    """Compare the error bounds of all tasks together, at equal budgets.

    For convex losses the bound (equation 7) is proportional to the root of the sum.
    """
    problem, reference_problem = allocation.problem, reference.problem
    ratio = allocation.total_bound * problem.budget / (reference.total_bound * reference_problem.budget)
    return math.sqrt(ratio) if problem.loss is Loss.CONVEX else ratio


@dataclass(frozen=True, eq=False)
class WeightComparison:
    """The weights and the allocations that they are compared with, for a budget of 1.

    Attributes:
        tasks: Users and tasks.
        question: What is asked.
        allocation: The weights at the chosen mu.
        uniform: mu = 0, fitted in the same way: what all is compared with.
        sampling: Uniform sampling with the best number of tasks per user.
        entered_sampling: With the person's number; None where none was entered.
        curve: Over all mu.
        buckets: Tail to head, chosen against uniform.
        sampling_buckets: Tail to head, best sampling against uniform.
    """

    tasks: Tasks
    question: WeightQuestion
    allocation: Allocation
    uniform: Allocation
    sampling: Allocation
    entered_sampling: Allocation | None
    curve: ExponentCurve
    buckets: tuple[Bucket, ...]
    sampling_buckets: tuple[Bucket, ...]

    @cached_property
    def weight_skew(self) -> WeightSkew:
        """Compute the skew of the weights: a pass over all pairs, which takes longer than the weights."""
        return compute_skew(self.allocation)

    @property
    def problem(self) -> TaskProblem:
        """Return the problem on this graph, with a budget of 1."""
        return self.allocation.problem

    @property
    def rule(self) -> WeightRule:
        """Return the rule of the weights."""
        return self.question.rule

    def compare_total(self, allocation: Allocation) -> float:
        """Return the error bound of all tasks relative to uniform weights."""
        return compute_total_ratio(allocation, self.uniform)

    @property
    def closed_form_gain(self) -> float:
        """Return R_1 or R_0, the gain of the paper's mu over uniform weights where nobody is clipped."""
        gain = (
            bounds.compute_convex_gain
            if self.problem.loss is Loss.CONVEX
            else bounds.compute_strongly_convex_gain
        )
        return gain(self.problem.task_sizes)

    @property
    def recommendation(self) -> tuple[float, float]:
        """Return (mu, total): the entered mu if it is near-optimal, else the best."""
        entered_total = self.compare_total(self.allocation)
        if entered_total <= (1.0 + NEAR_OPTIMAL_SHARE) * self.curve.best[1]:
            return self.rule.exponent, entered_total
        return self.curve.best

    @property
    def bounds_are_errors_of_tasks(self) -> bool:
        """Return True if a task's bound is its own error; for convex losses only the root of the sum is one."""
        return self.problem.loss is Loss.STRONGLY_CONVEX


@dataclass(frozen=True, eq=False)
class Optima:
    """The two optima, for a budget of 1.

    Attributes:
        task_optimum: Problem (9): one weight per task, nobody clipped.
        user_task_optimum: One weight per user and task.
    """

    task_optimum: Allocation
    user_task_optimum: Allocation

    def choose(self, fit: BudgetFit) -> Allocation:
        """Return the optimum that weights of this fit compare with."""
        return self.task_optimum if fit.same_for_all_users else self.user_task_optimum


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
        """Return users and tasks."""
        return self.comparison.tasks


def solve(dataset: Dataset | None, parameters: MultitaskParameters) -> MultitaskSolution:
    """Compute and compare weights, without the exact optima.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.
    """
    tasks, question = load_tasks(parameters, dataset), WeightQuestion.from_parameters(parameters)
    if tasks is None:
        raise refuse("this needs a group or task in each row, and these data have none")
    exponent_curve, sampling = (
        compute_curve(tasks, question.loss, question.rule),
        find_best_sampling(tasks, question.loss),
    )
    return MultitaskSolution(
        parameters,
        compare_weights(tasks, question, exponent_curve, sampling),
        compare_budgets(parameters.target),
    )


def compare_weights(
    tasks: Tasks, question: WeightQuestion, exponent_curve: ExponentCurve, sampling: Allocation
) -> WeightComparison:
    """Compute the weights and compare them; curve and sampling are those of the tasks, the loss and the fit."""
    problem, uniform = exponent_curve.uniform.problem, exponent_curve.uniform
    allocation = question.rule.allocate(problem)
    entered_sampling = (
        None if question.max_tasks is None else allocate_uniform_sampling(problem, question.max_tasks)
    )
    return WeightComparison(
        tasks=tasks,
        question=question,
        allocation=allocation,
        uniform=uniform,
        sampling=sampling,
        entered_sampling=entered_sampling,
        curve=exponent_curve,
        buckets=bounds.slice_by_size(allocation, uniform),
        sampling_buckets=bounds.slice_by_size(sampling, uniform),
    )


NOT_COMPARED = (
    "exponent", "max_tasks", "count_share", "count_max_tasks", "count_covers", "count_seed", "experiment_epsilons",
    "experiment_users", "experiment_repeats", "experiment_seed",
)  # fmt: skip


def against_epsilon(dataset: Dataset, parameters: MultitaskParameters) -> MethodComparison | str:
    """Compute the error bound of all tasks under each division of the budget, at any epsilon.

    All weights grow by one factor with the budget, so that the best mu and all comparisons are the same at
    every ε.

    Raises:
        InvalidInput: The generator drew nothing, or c = C log n with a single user.
    """
    tasks = load_tasks(parameters, dataset)
    if tasks is None:
        return "This needs a group or task in each row, and these data have none."
    question = WeightQuestion.from_parameters(parameters)
    loss, rule, exponent_curve = (
        question.loss,
        question.rule,
        compute_curve(tasks, question.loss, question.rule),
    )
    best_exponent = exponent_curve.best[0]
    allocations = {
        "Uniform weights": exponent_curve.uniform,
        f"Best exponent, μ = {wording.number(best_exponent)}": rule.with_exponent(best_exponent).allocate(
            exponent_curve.uniform.problem
        ),
        "Uniform sampling, best number": find_best_sampling(tasks, loss),
    }

    @cache_by_epsilon
    def budget(epsilon: float) -> float:
        return compute_exact_budget(replace(parameters, epsilon=epsilon).target)

    def errors(epsilons: FloatArray) -> FloatArray:
        budgets = [budget(epsilon) for epsilon in epsilons.tolist()]
        return np.array(
            [
                [rescale_budget(allocation, budget_at_epsilon).total_bound for budget_at_epsilon in budgets]
                for allocation in allocations.values()
            ]
        )

    return MethodComparison(
        "Error bound of all tasks",
        tuple(allocations),
        errors,
        sentence="the error bound of all tasks together. All weights grow by one factor with the budget, so the best "
        "μ and what it gains are the same at every ε.",
        provenance=tasks.disclosure,
    )


def find_best_sampling(tasks: Tasks, loss: Loss) -> Allocation:
    """Find uniform sampling with the best k, for a budget of 1."""
    return find_best_uniform_sampling(TaskProblem.from_graph(tasks.graph, 1.0, loss))


def rescale_budget(allocation: Allocation, budget: float) -> Allocation:
    """Rescale an allocation to another beta: all weights grow by one factor, errors fall by another."""
    problem = replace(allocation.problem, budget=budget)
    factor = math.sqrt(budget / allocation.problem.budget)
    return replace(allocation, problem=problem, task_weights=allocation.task_weights * factor)


def count_tasks_per_user(sampling: Allocation) -> int:
    """Return k of a uniform sampling."""
    return round(sampling.problem.budget / float(sampling.task_weights[0]) ** 2)
