"""The graph of users and tasks, the division of users' budgets among tasks, and the budget of a privacy loss.

The budget beta bounds the sum of a user's squared weights and stands for (epsilon, delta). Both algorithms of
Krichene et al. 2023 are (alpha, alpha beta)-RDP (theorems 3.3 and 3.11), and more than that: in units of its noise a
user moves all the released sums together by at most sqrt(2 beta) in L2 norm (algorithm 1: beta for the matrices +
beta for the vectors; algorithm 2: T steps of 2 beta / T each). So they are one Gaussian mechanism of sensitivity 1
and sigma = 1 / sqrt(2 beta). Gaussian mechanisms compose exactly, adaptively chosen ones included (Dong, Roth and Su
2019, corollary 3.3), so private counts and both algorithms simply add their betas. The exact (epsilon, delta) of that
mechanism is Balle and Wang 2018, theorem 8.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import Option
from dpcore.common.privacy import compute_gaussian_epsilon, compute_gaussian_sigma
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.task_facets import Pairs

TaskCodes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """The tasks of each user, one user after another in one flat array.

    Build it with `from_pairs`. A user may have no task (they count in n); a task has at least one user.

    Attributes:
        starts: Where each user's tasks begin in ``task_codes``, and the end, shape (num_users + 1,), int64.
        task_codes: Task codes 0 .. num_tasks - 1 sorted by user, ascending within, shape (num_pairs,), int32.
        num_tasks: m.

    Source: Omega of Krichene et al. 2023, section 2.1.
    """

    starts: IntArray
    task_codes: TaskCodes
    num_tasks: int

    @classmethod
    def from_pairs(cls, pairs: Pairs, num_users: int = 0) -> TaskGraph:
        """Index distinct pairs by user; users up to ``num_users`` who are in no pair have no task.

        Args:
            pairs: Distinct user-task pairs; every task has a user (`drop_empty_tasks`), as its error is else unbounded.
            num_users: n, if it is more than the largest user code + 1 (users without a task).
        """
        tasks_per_user = np.bincount(pairs.user_codes, minlength=num_users)
        first_pair_indices = np.concatenate(([0], np.cumsum(tasks_per_user))).astype(np.int64)
        return cls(first_pair_indices, pairs.task_codes.astype(np.int32), pairs.num_tasks)

    @property
    def num_users(self) -> int:
        """Return n, users without a task included."""
        return self.starts.size - 1

    @property
    def num_pairs(self) -> int:
        """Return |Omega|, the number of pairs of a user and a task."""
        return self.task_codes.size

    @cached_property
    def task_sizes(self) -> IntArray:
        """Count n_i, users per task, shape (num_tasks,)."""
        return np.bincount(self.task_codes, minlength=self.num_tasks).astype(np.int64)

    @cached_property
    def tasks_per_user(self) -> IntArray:
        """Count n^j, the tasks of each user, shape (num_users,)."""
        return np.diff(self.starts)

    @cached_property
    def user_codes(self) -> npt.NDArray[np.int32]:
        """Return the user code of every pair, shape (num_pairs,)."""
        return np.repeat(np.arange(self.num_users, dtype=np.int32), self.tasks_per_user)

    @cached_property
    def matrix(self) -> Any:
        """Build the sparse matrix of users by tasks, 1 where a user contributes."""
        from scipy.sparse import csr_matrix

        # 12 bytes a pair; a product with it takes about 1.5 ns a pair, in one pass without a temporary.
        shape = (self.num_users, self.num_tasks)
        return csr_matrix((np.ones(self.num_pairs), self.task_codes, self.starts), shape=shape)

    def sum_by_user(self, task_values: FloatArray) -> FloatArray:
        """Sum a task's number over each user's tasks: (num_tasks,) -> (num_users,)."""
        return np.asarray(self.matrix @ task_values)

    def sum_by_task(self, user_values: FloatArray) -> FloatArray:
        """Sum a user's number over each task's users: (num_users,) -> (num_tasks,)."""
        return np.asarray(self.matrix.T @ user_values)

    def sum_pairs_by_task(self, pair_values: FloatArray) -> FloatArray:
        """Sum a pair's number over each task: (num_pairs,) -> (num_tasks,)."""
        return np.asarray(np.bincount(self.task_codes, pair_values, self.num_tasks), dtype=np.float64)

    def weight_pairs(self, pair_weights: FloatArray) -> Any:
        """Build the sparse matrix of tasks by pairs with each pair's weight; times (num_pairs, k) it sums by task."""
        from scipy.sparse import csc_matrix

        csr_arrays = (pair_weights, self.task_codes, np.arange(self.num_pairs + 1, dtype=np.int32))
        return csc_matrix(csr_arrays, shape=(self.num_tasks, self.num_pairs))

    def select_users(self, user_codes: IntArray) -> TaskGraph:
        """Select some users, in the given order; tasks keep their codes and may be empty."""
        selected_matrix = self.matrix[user_codes]
        return TaskGraph(
            selected_matrix.indptr.astype(np.int64), selected_matrix.indices.astype(np.int32), self.num_tasks
        )


def drop_empty_tasks(pairs: Pairs) -> Pairs:
    """Return the pairs with tasks numbered anew, so that each has a user; their order stays."""
    kept_tasks, new_codes = np.unique(pairs.task_codes, return_inverse=True)
    return replace(pairs, task_codes=new_codes, num_tasks=int(kept_tasks.size))


DELTA_RANGE = (1e-30, 0.5)


@dataclass(frozen=True)
class PrivacyTarget:
    """The guarantee to every user: (epsilon, delta)-DP under adding or removing them with all their data.

    Attributes:
        epsilon: Between 1e-6 and 1e3.
        delta: Between 1e-30 and 0.5.

    Raises:
        InvalidInput: A parameter is out of its range; both problems at once.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*DELTA_RANGE, delta=self.delta)


@dataclass(frozen=True)
class BudgetComparison:
    """The exact conversion and the paper's sufficient one.

    Attributes:
        exact_budget: Largest beta that keeps the target.
        sufficient_budget: The paper's beta, or None where its condition epsilon <= log(1 / delta) fails.
    """

    exact_budget: float
    sufficient_budget: float | None

    @property
    def noise_multiplier(self) -> float:
        """Return 1 / sqrt(2 exact), the sigma of the one Gaussian mechanism."""
        return 1.0 / math.sqrt(2.0 * self.exact_budget)

    @property
    def weight_gain(self) -> float | None:
        """Return the factor by which all weights may be larger, sqrt(exact / sufficient); None without the latter."""
        sufficient_budget = self.sufficient_budget
        return None if sufficient_budget is None else math.sqrt(self.exact_budget / sufficient_budget)


def compute_exact_budget(target: PrivacyTarget) -> float:
    """Compute the largest beta for which one Gaussian mechanism of sigma = 1 / sqrt(2 beta) keeps the target.

    Rounded to the safe side: `compute_epsilon` at the result is never above the target's epsilon.
    """
    sigma = compute_gaussian_sigma(target.epsilon, target.delta)
    relative_step = 1e-12
    # The root finder may stop on either side of the root.
    while compute_epsilon(0.5 / sigma**2, target.delta) > target.epsilon:
        sigma *= 1.0 + relative_step
        relative_step *= 2.0
    return 0.5 / sigma**2


def compute_epsilon(budget: float, delta: float) -> float:
    """Compute the smallest epsilon that a budget of beta > 0 keeps at this delta, exactly."""
    return compute_gaussian_epsilon(1.0 / math.sqrt(2.0 * budget), delta)


def compare_budgets(target: PrivacyTarget) -> BudgetComparison:
    """Compare the exact conversion with the paper's, beta = epsilon^2 / (8 log(1 / delta)).

    Source: Krichene et al. 2023, after theorem 3.3. There beta + 2 sqrt(beta log(1 / delta)) is at most 0.84
    epsilon, as the RDP conversion requires.
    """
    log_inverse = math.log(1.0 / target.delta)
    sufficient_budget = target.epsilon**2 / (8.0 * log_inverse) if target.epsilon <= log_inverse else None
    return BudgetComparison(compute_exact_budget(target), sufficient_budget)


class Loss(Option):
    """Whether the loss that is minimised is strongly convex or only convex."""

    STRONGLY_CONVEX = "strongly-convex", "Strongly convex"
    CONVEX = "convex", "Convex"

    @property
    def gamma(self) -> int:
        """Return gamma, the power of 1 / n_i in the error bounds: 1 for strongly convex losses, else 0."""
        return int(self is Loss.STRONGLY_CONVEX)

    @property
    def best_exponent(self) -> float:
        """Return mu = (gamma + 1) / 4 of equation 11: 1/4 for convex, 1/2 for strongly convex losses."""
        return (self.gamma + 1) / 4.0


@dataclass(frozen=True, eq=False)
class TaskProblem:
    """The problem of choosing weights w_ij with sum_i w_ij^2 <= beta for every user j.

    Attributes:
        graph: Who contributes to what.
        budget: beta, above 0 (see the module).
        loss: Convex or strongly convex.

    Source: Krichene et al. 2023, sections 2.1 and 4.
    """

    graph: TaskGraph
    budget: float
    loss: Loss = Loss.STRONGLY_CONVEX

    @cached_property
    def noise_bound_factors(self) -> FloatArray:
        """Compute e_i = n_i^(2 - gamma): task i's bound is this over (sum_j w_ij)^2."""
        return np.asarray(self.graph.task_sizes.astype(np.float64) ** (2 - self.loss.gamma))

    @cached_property
    def unclipped_bound_factors(self) -> FloatArray:
        """Compute c_i = n_i^(-gamma): if all users weigh omega_i, task i's bound is this over omega_i^2."""
        return np.asarray(self.graph.task_sizes.astype(np.float64) ** -self.loss.gamma)


class UserRule(enum.Enum):
    """The rule that computes a user's factor from their own task weights.

    A user is scaled down to the budget if they exceed it, scaled to the whole budget, or has some tasks drawn at random
    (the weights are then expectations).
    """

    CLIPPED = "clipped"
    FULL = "full"
    SAMPLED = "sampled"


@dataclass(frozen=True, eq=False)
class Allocation:
    """Weights w_ij = task_weights[i] * user_scales[j] on the graph, and the bounds that they achieve.

    Every method here has weights of this form, so 8 million pairs need no array of their own.

    Attributes:
        name: What a person calls the method.
        problem: The question it answers.
        task_weights: Task factor, above 0, shape (num_tasks,).
        user_scales: User factor in [0, inf), shape (num_users,).
        reads_graph: Whether the *task weights* were computed from the private graph: a what-if, not part of
            a DP mechanism. (User factors may always depend on that user's own tasks.)
        rule: How user factors come about.
        clipped_user_share: Share of all n users whose weights were scaled down (or tasks left out) to fit the
            budget; None where the method knows no such thing.
        certificate: For optimal allocations, the total bound beside a lower bound.
        stop_reason: For optimal allocations, how the search ended, a sentence.
    """

    name: str
    problem: TaskProblem
    task_weights: FloatArray
    user_scales: FloatArray
    reads_graph: bool = False
    rule: UserRule = UserRule.CLIPPED
    clipped_user_share: float | None = None
    certificate: Certificate | None = None
    stop_reason: str = ""

    @cached_property
    def task_totals(self) -> FloatArray:
        """Compute W_i = sum_j w_ij, shape (num_tasks,)."""
        return np.asarray(self.task_weights * self.problem.graph.sum_by_task(self.user_scales))

    @property
    def mean_weights(self) -> FloatArray:
        """Return W_i / n_i, the average weight of task i's users, shape (num_tasks,)."""
        return np.asarray(self.task_totals / self.problem.graph.task_sizes)

    @cached_property
    def task_bounds(self) -> FloatArray:
        """Compute the error bound of each task up to a common constant: n_i^(2 - gamma) / W_i^2, shape (num_tasks,).

        Equal to the paper's 1 / (omega_i^2 n_i^gamma) where w_ij = omega_i for all users. With unequal weights
        it compares the noise with the weighted sum that is released. The weighted loss itself also differs from
        the plain one (`dpcore.multitask.weights`).
        """
        return np.asarray(self.problem.noise_bound_factors / self.task_totals**2)

    @property
    def total_bound(self) -> float:
        """Return the sum of `task_bounds`, the objective of equation 9."""
        return float(self.task_bounds.sum())

    @cached_property
    def budget_uses(self) -> FloatArray:
        """Compute sum_i w_ij^2 of each user, not divided by beta, which is the most it may be; shape (num_users,)."""
        squared_sums = self.problem.graph.sum_by_user(self.task_weights**2)
        # A sampled task weighs task_weights, with probability user_scales: linear, not squared.
        squared_scales = self.user_scales if self.rule is UserRule.SAMPLED else self.user_scales**2
        return np.asarray(squared_sums * squared_scales)

    def with_budget(self, budget: float) -> Allocation:
        """Return the allocation for another beta: all weights grow by the root of the budgets' ratio."""
        task_weights = self.task_weights * math.sqrt(budget / self.problem.budget)
        return replace(self, problem=replace(self.problem, budget=budget), task_weights=task_weights)

    def compute_pair_weights(self) -> FloatArray:
        """Compute w_ij of every pair in the graph's order, shape (num_pairs,)."""
        graph = self.problem.graph
        pair_scales = np.repeat(self.user_scales, graph.tasks_per_user)
        return np.asarray(self.task_weights[graph.task_codes] * pair_scales)
