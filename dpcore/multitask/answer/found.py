"""What is found for many tasks: weights, what they are compared with, and the budget that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import Ways, remembered
from dpcore.common import wording
from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.multitask import bounds
from dpcore.multitask.bounds import Bucket
from dpcore.multitask.budget import BudgetComparison, compare, exact_budget
from dpcore.multitask.fit import BudgetFit, WeightRule
from dpcore.multitask.graph import TaskGraph, without_empty_tasks
from dpcore.multitask.parameters import MultitaskParameters, draw_pairs
from dpcore.multitask.problem import Allocation, Loss, TaskProblem
from dpcore.multitask.sampling import best_uniform_sampling, uniform_sampling
from dpcore.multitask.weight_skew import WeightSkew, skew_of

FINE_STEPS, COARSE_STEPS = 40, 8
"""Steps of mu from 0 to 1 that the curve tries; few where the graph is large."""
GOOD_ENOUGH = 0.05
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


def load_tasks(parameters: MultitaskParameters, data: Dataset | None) -> Tasks | None:
    """The graph that the parameters name; None where it is the data's and they have no pairs.

    Raises:
        InvalidInput: The generator drew nothing.
    """
    generator = parameters.generator
    if generator is not None:
        pairs, _ = without_empty_tasks(draw_pairs(generator, parameters.graph_seed))
        graph = TaskGraph.from_pairs(pairs, generator.num_users)
        return Tasks(graph, repr((generator, parameters.graph_seed)), Disclosure.PUBLIC)
    if data is None or data.pairs is None:
        return None
    pairs, _ = without_empty_tasks(data.pairs)
    # Users whose rows name no task count in n.
    num_users = max(data.histogram.num_users, int(pairs.user_codes[-1]) + 1)
    return Tasks(TaskGraph.from_pairs(pairs, num_users), data.digest, data.provenance)


@dataclass(frozen=True)
class WeightQuestion:
    """What the weights depend on, but for beta: all weights grow by one factor with it, and all comparisons stay.

    So everything here is for a budget of 1, and a moved epsilon computes nothing anew; see `with_budget`.

    Attributes:
        loss: Convex or strongly convex.
        rule: The weights.
        max_tasks: Tasks per user of a sampling to compare with; None for none.
    """

    loss: Loss
    rule: WeightRule
    max_tasks: int | None = None

    @classmethod
    def of(cls, parameters: MultitaskParameters) -> WeightQuestion:
        """What the parameters ask of weights."""
        rule = WeightRule(parameters.exponent, parameters.fit, parameters.log_constant)
        return cls(parameters.loss.loss, rule, parameters.max_tasks)


@dataclass(frozen=True, eq=False)
class Curve:
    """How the answer depends on mu. It does not depend on the budget.

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
        """(mu, total) where the total is smallest."""
        at = int(np.argmin(self.totals))
        return float(self.exponents[at]), float(self.totals[at])

    @property
    def good_enough(self) -> tuple[float, float]:
        """Smallest and largest of the mu tried around the best one that are good enough, with all between them."""
        at = int(np.argmin(self.totals))
        bad = np.flatnonzero(self.totals > (1.0 + GOOD_ENOUGH) * self.totals[at])
        low = int(bad[bad < at].max(initial=-1)) + 1
        high = int(bad[bad > at].min(initial=self.totals.size)) - 1
        return float(self.exponents[low]), float(self.exponents[high])


def curve(tasks: Tasks, loss: Loss, rule: WeightRule) -> Curve:
    """Try all mu. ``rule.exponent`` does not matter."""
    problem = TaskProblem.from_graph(tasks.graph, 1.0, loss)
    reference = rule.with_exponent(0.0).weights(problem)
    steps = FINE_STEPS if tasks.graph.num_pairs <= LARGE_GRAPH else COARSE_STEPS
    exponents = np.linspace(0.0, 1.0, steps + 1)
    totals, ratios, weights = [], [], []
    for exponent in exponents:
        allocation = rule.with_exponent(float(exponent)).weights(problem)
        totals.append(total_ratio(allocation, reference))
        ratio = allocation.task_bounds / reference.task_bounds
        ratios += [float(ratio.min()), float(ratio.max())]
        weights += [float(allocation.mean_weights.min()), float(allocation.mean_weights.max())]
    return Curve(
        exponents=exponents,
        totals=np.array(totals),
        ratio_limits=(min(ratios), max(ratios)),
        weight_limits=(min(weights), max(weights)),
        uniform=reference,
    )


def total_ratio(allocation: Allocation, reference: Allocation) -> float:
    """How the error bounds of all tasks together compare, at equal budgets.

    For convex losses the bound (equation 7) is proportional to the root of the sum.
    """
    problem, other = allocation.problem, reference.problem
    ratio = allocation.total_bound * problem.budget / (reference.total_bound * other.budget)
    return math.sqrt(ratio) if problem.loss is Loss.CONVEX else ratio


@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights and what they are compared with, for a budget of 1.

    Attributes:
        tasks: Users and tasks.
        question: What is asked.
        chosen: The weights at the chosen mu.
        uniform: mu = 0, fitted in the same way: what all is compared with.
        sampling: Uniform sampling with the best number of tasks per user.
        own_sampling: With the person's number; None where none was entered.
        curve: Over all mu.
        buckets: Tail to head, chosen against uniform.
        sampling_buckets: Tail to head, best sampling against uniform.
    """

    tasks: Tasks
    question: WeightQuestion
    chosen: Allocation
    uniform: Allocation
    sampling: Allocation
    own_sampling: Allocation | None
    curve: Curve
    buckets: tuple[Bucket, ...]
    sampling_buckets: tuple[Bucket, ...]

    @cached_property
    def weight_skew(self) -> WeightSkew:
        """The error of the chosen weights: a pass over all pairs, which takes longer than the weights."""
        return skew_of(self.chosen)

    @property
    def problem(self) -> TaskProblem:
        """The question on this graph, with a budget of 1."""
        return self.chosen.problem

    @property
    def rule(self) -> WeightRule:
        """The chosen weights' rule."""
        return self.question.rule

    def total(self, allocation: Allocation) -> float:
        """Error bound of all tasks relative to uniform weights."""
        return total_ratio(allocation, self.uniform)

    @property
    def closed_form_gain(self) -> float:
        """R_1 or R_0: what the paper's mu gains over uniform weights where nobody is clipped."""
        gain = bounds.convex_gain if self.problem.loss is Loss.CONVEX else bounds.strongly_convex_gain
        return gain(self.problem.task_sizes)

    @property
    def recommended(self) -> tuple[float, float]:
        """(mu, total): what was chosen where that is good enough, else the best."""
        chosen = self.total(self.chosen)
        if chosen <= (1.0 + GOOD_ENOUGH) * self.curve.best[1]:
            return self.rule.exponent, chosen
        return self.curve.best

    @property
    def bounds_are_tasks_own(self) -> bool:
        """Whether a task's bound is its own error; for convex losses only the root of the sum is one."""
        return self.problem.loss is Loss.STRONGLY_CONVEX


@dataclass(frozen=True, eq=False)
class Optima:
    """Both optima, for a budget of 1.

    Attributes:
        same_for_all: Problem (9): one weight per task, nobody clipped.
        free: One weight per user and task.
    """

    same_for_all: Allocation
    free: Allocation

    def of_kind(self, fit: BudgetFit) -> Allocation:
        """The optimum that weights fitted in this way compare with."""
        return self.same_for_all if fit.same_for_all_users else self.free


@dataclass(frozen=True, eq=False)
class MultitaskFound:
    """All that depends on data and question.

    Attributes:
        parameters: The question.
        weighed: The weights, which do not depend on epsilon and delta.
        budgets: What epsilon and delta give.
        optima: The exact optima of these tasks; None where nobody asked for them.
    """

    parameters: MultitaskParameters
    weighed: Weighed
    budgets: BudgetComparison
    optima: Optima | None = None

    @property
    def tasks(self) -> Tasks:
        """Users and tasks."""
        return self.weighed.tasks


def find(data: Dataset | None, parameters: MultitaskParameters) -> MultitaskFound:
    """Weigh and compare, without the exact optima.

    Raises:
        InvalidInput: The data have no tasks, the generator drew nothing, or c = C log n with a single user.
    """
    tasks, question = load_tasks(parameters, data), WeightQuestion.of(parameters)
    if tasks is None:
        raise refusal("this needs a group or task in each row, and these data have none")
    over, sampling = curve(tasks, question.loss, question.rule), best_sampling(tasks, question.loss)
    return MultitaskFound(parameters, weigh(tasks, question, over, sampling), compare(parameters.target))


def weigh(tasks: Tasks, question: WeightQuestion, over_exponents: Curve, sampling: Allocation) -> Weighed:
    """Weigh and compare; curve and sampling are those of the tasks, the loss and the fit."""
    problem, uniform = over_exponents.uniform.problem, over_exponents.uniform
    chosen = question.rule.weights(problem)
    own = None if question.max_tasks is None else uniform_sampling(problem, question.max_tasks)
    return Weighed(
        tasks=tasks,
        question=question,
        chosen=chosen,
        uniform=uniform,
        sampling=sampling,
        own_sampling=own,
        curve=over_exponents,
        buckets=bounds.by_size(chosen, uniform),
        sampling_buckets=bounds.by_size(sampling, uniform),
    )


NOT_COMPARED = (
    "exponent", "max_tasks", "count_share", "count_max_tasks", "count_covers", "count_seed", "experiment_epsilons",
    "experiment_users", "experiment_repeats", "experiment_seed",
)  # fmt: skip


def against_epsilon(data: Dataset, parameters: MultitaskParameters) -> Ways | str:
    """The error bound of all tasks under each way of dividing the budget, at any epsilon.

    All weights grow by one factor with the budget, so that the best mu and all comparisons are the same at every ε.

    Raises:
        InvalidInput: The generator drew nothing, or c = C log n with a single user.
    """
    tasks = load_tasks(parameters, data)
    if tasks is None:
        return "This needs a group or task in each row, and these data have none."
    question = WeightQuestion.of(parameters)
    loss, rule, over = question.loss, question.rule, curve(tasks, question.loss, question.rule)
    mu = over.best[0]
    compared = {
        "Uniform weights": over.uniform,
        f"Best exponent, μ = {wording.number(mu)}": rule.with_exponent(mu).weights(over.uniform.problem),
        "Uniform sampling, best number": best_sampling(tasks, loss),
    }

    @remembered
    def budget(epsilon: float) -> float:
        return exact_budget(replace(parameters, epsilon=epsilon).target)

    def errors(epsilons: FloatArray) -> FloatArray:
        budgets = [budget(epsilon) for epsilon in epsilons.tolist()]
        return np.array([[with_budget(one, b).total_bound for b in budgets] for one in compared.values()])

    return Ways(
        "Error bound of all tasks",
        tuple(compared),
        errors,
        sentence="the error bound of all tasks together. All weights grow by one factor with the budget, so the best "
        "μ and what it gains are the same at every ε.",
        provenance=tasks.disclosure,
    )


def best_sampling(tasks: Tasks, loss: Loss) -> Allocation:
    """Uniform sampling with the best k, for a budget of 1."""
    return best_uniform_sampling(TaskProblem.from_graph(tasks.graph, 1.0, loss))


def with_budget(allocation: Allocation, budget: float) -> Allocation:
    """The same allocation for another beta: all weights grow by one factor, errors fall by another."""
    problem = replace(allocation.problem, budget=budget)
    factor = math.sqrt(budget / allocation.problem.budget)
    return replace(allocation, problem=problem, task_weights=allocation.task_weights * factor)


def tasks_per_user(sampling: Allocation) -> int:
    """k of a uniform sampling."""
    return round(sampling.problem.budget / float(sampling.task_weights[0]) ** 2)
