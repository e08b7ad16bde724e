"""The problem of dividing users' budgets among tasks, and the allocation that solves it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray, read_only
from dpcore.multitask.graph import TaskGraph


class Loss(enum.Enum):
    """The kind of loss; its value is gamma, the power of n_i in the error bounds."""

    CONVEX = 0
    STRONGLY_CONVEX = 1

    @property
    def best_exponent(self) -> float:
        """Return mu = (gamma + 1) / 4 of equation 11: 1/4 for convex, 1/2 for strongly convex losses."""
        return (self.value + 1) / 4.0


@dataclass(frozen=True, eq=False)
class TaskProblem:
    """The problem of choosing weights w_ij with sum_i w_ij^2 <= beta for every user j.

    Build it with `from_graph` or, where only sizes are known, directly.

    Attributes:
        task_sizes: n_i, users per task, at least 1, shape (num_tasks,), int64.
        num_users: n, at least the largest task size.
        budget: beta, above 0 (see `dpcore.multitask.plot_budget`).
        loss: Convex or strongly convex.
        graph: Who contributes to what; None where only sizes are known.

    Raises:
        InvalidInput: Anything else; all problems at once.

    Source: Krichene et al. 2023, sections 2.1 and 4.
    """

    task_sizes: IntArray
    num_users: int
    budget: float
    loss: Loss = Loss.STRONGLY_CONVEX
    graph: TaskGraph | None = None

    def __post_init__(self) -> None:
        sizes = np.array(self.task_sizes)
        with Problems() as problems:
            if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iuf":
                problems.add("task_sizes must be one-dimensional, of numbers, not empty")
            elif not np.all(np.isfinite(sizes) & (sizes >= 1) & (sizes == np.floor(sizes))):
                bad = int(np.argmin(np.isfinite(sizes) & (sizes >= 1) & (sizes == np.floor(sizes))))
                problems.add(f"task_sizes must be whole and at least 1; entry {bad + 1} is {sizes[bad]!s}")
            elif problems.whole(1, 10**12, num_users=self.num_users) and sizes.max() > self.num_users:
                largest = int(sizes.max())
                problems.add(
                    f"num_users must be at least the largest task, {largest:,}; got {self.num_users:,}"
                )
            problems.positive(budget=self.budget)
            problems.of_kind(Loss, loss=self.loss)
        sizes = read_only(sizes.astype(np.int64))
        object.__setattr__(self, "task_sizes", sizes)
        if self.graph is not None and not (
            np.array_equal(self.graph.task_sizes, sizes) and self.graph.num_users == self.num_users
        ):
            raise refuse("graph does not have the task_sizes and num_users given")

    @classmethod
    def from_graph(cls, graph: TaskGraph, budget: float, loss: Loss = Loss.STRONGLY_CONVEX) -> TaskProblem:
        """Create the problem on a graph; sizes and n are taken from it."""
        return cls(graph.task_sizes, graph.num_users, budget, loss, graph)

    @property
    def num_tasks(self) -> int:
        """Return m, the number of tasks."""
        return self.task_sizes.size

    @cached_property
    def price_of_noise(self) -> FloatArray:
        """Compute n_i^(2 - gamma): task i's bound is this over (sum_j w_ij)^2."""
        return np.asarray(self.task_sizes.astype(np.float64) ** (2 - self.loss.value))

    def require_graph(self) -> TaskGraph:
        """Return the graph.

        Raises:
            InvalidInput: There is none.
        """
        if self.graph is None:
            raise refuse("this needs to know who contributes to what", remedy="Task sizes alone do not do")
        return self.graph


class UserRule(enum.Enum):
    """The rule that computes a user's factor from their own task weights; the value is a sentence."""

    CLIPPED = "A user whose squared weights sum to more than the budget is scaled down to it."
    FULL = "Every user is scaled so that their squared weights sum to the whole budget."
    SAMPLED = "A user's tasks are drawn at random; the weights here are expectations."


@dataclass(frozen=True, eq=False)
class Allocation:
    """Weights w_ij = task_weights[i] * user_scales[j] on the graph, and the bounds that they achieve.

    Every method here has weights of this form, so 8 million pairs need no array of their own.

    Attributes:
        name: What a person calls the method.
        problem: The question it answers.
        task_weights: Task factor, above 0, shape (num_tasks,).
        user_scales: User factor in [0, inf), shape (num_users,); None where only task sizes are known, and
            every factor is taken to be 1 (nobody clipped).
        reads_graph: Whether the *task weights* were computed from the private graph: a what-if, not part of
            a DP mechanism. (User factors may always depend on that user's own tasks.)
        rule: How user factors come about.
        share_clipped: Share of all n users whose weights were scaled down (or tasks left out) to fit the
            budget; None where the method knows no such thing, or nothing but sizes.
        certificate: For optimal allocations, the total bound beside a lower bound.
        stop_reason: How it was found, a sentence.
        finished: False where a person stopped the search; the weights are valid all the same.
    """

    name: str
    problem: TaskProblem
    task_weights: FloatArray
    user_scales: FloatArray | None
    reads_graph: bool = False
    rule: UserRule = UserRule.CLIPPED
    share_clipped: float | None = None
    certificate: Certificate | None = None
    stop_reason: str = "Closed form."
    finished: bool = True

    @cached_property
    def task_totals(self) -> FloatArray:
        """Compute W_i = sum_j w_ij, shape (num_tasks,); n_i task_weights[i] where nobody is clipped."""
        if self.user_scales is None:
            return np.asarray(self.task_weights * self.problem.task_sizes)
        return np.asarray(self.task_weights * self.problem.require_graph().sum_by_task(self.user_scales))

    @property
    def mean_weights(self) -> FloatArray:
        """Return W_i / n_i, the average weight of task i's users, shape (num_tasks,)."""
        return np.asarray(self.task_totals / self.problem.task_sizes)

    @cached_property
    def task_bounds(self) -> FloatArray:
        """Compute the error bound of each task up to a common constant: n_i^(2 - gamma) / W_i^2, shape (num_tasks,).

        Equal to the paper's 1 / (omega_i^2 n_i^gamma) where w_ij = omega_i for all users. With unequal weights
        it compares the noise with the weighted sum that is released. The weighted loss itself also differs from
        the plain one (`dpcore.multitask.weight_skew`).
        """
        return np.asarray(self.problem.price_of_noise / self.task_totals**2)

    @property
    def unclipped_bounds(self) -> FloatArray:
        """Return the paper's 1 / (omega_i^2 n_i^gamma), as if no user factor mattered; shape (num_tasks,).

        For clipped weights only, where it is the bound that holds when clipping does not occur (w.h.p. under
        assumption 4.1 with c large enough); it never exceeds `task_bounds`.
        """
        sizes = self.problem.task_sizes.astype(np.float64)
        return np.asarray(1.0 / (self.task_weights**2 * sizes**self.problem.loss.value))

    @property
    def total_bound(self) -> float:
        """Return the sum of `task_bounds`, the objective of equation 9."""
        return float(self.task_bounds.sum())

    @cached_property
    def budget_use(self) -> FloatArray:
        """Compute sum_i w_ij^2 per user, shape (num_users,); at most beta."""
        graph = self.problem.require_graph()
        assert self.user_scales is not None
        squared = graph.sum_by_user(self.task_weights**2)
        # A sampled task weighs task_weights, with probability user_scales: linear, not squared.
        scales = self.user_scales if self.rule is UserRule.SAMPLED else self.user_scales**2
        return np.asarray(squared * scales)

    def compute_pair_weights(self) -> FloatArray:
        """Compute w_ij of every pair in the graph's order, shape (num_pairs,)."""
        graph = self.problem.require_graph()
        assert self.user_scales is not None
        return np.asarray(self.task_weights[graph.tasks] * np.repeat(self.user_scales, graph.tasks_per_user))
