"""Weights as a power of the task's size, within users' budgets, and how they skew a task's loss.

Each rule that brings weights within users' budgets is compared with an optimum. Problem (9) allows no clipping, so
its optimum is to be compared with weights scaled so that nobody is clipped. Clipping lets light users keep larger
weights than heavy ones, and then equations 11 and 12 with c = 1 can beat the optimum of (9); they cannot beat
`exact.find_best_user_task_weights`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.parameters import Option
from dpcore.contributions import FloatArray
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import Allocation, TaskProblem, UserRule

SIMULATED_USERS = 2_000

# Clipped weights end this much below the budget (relative), so that no order of summation can lift a user of
# up to 10,000 tasks above it.
ROUNDING_MARGIN = 1e-12


def inflate_logarithmically(num_users: int, constant: float = 1.0) -> float:
    """Return c = C log n with the constant C of lemma A.4: if it is large enough, most likely nobody is clipped.

    Args:
        num_users: n, at least 2 (log 1 is 0).
        constant: C, above 0; the paper does not give it.

    Raises:
        InvalidInput: An argument is out of its range.

    Source: Krichene et al. 2023, lemma A.4 and the text after equation 11.
    """
    with Problems() as problems:
        problems.whole(2, 10**12, num_users=num_users)
        problems.positive(constant=constant)
    return constant * math.log(num_users)


def inflate_for_no_clipping(
    problem: TaskProblem, exponent: float, counts: npt.ArrayLike | None = None
) -> float:
    """Compute the smallest c for which no user is clipped. Reads the private graph.

    Raises:
        InvalidInput: No graph, or as `compute_task_weights`.
    """
    budget_uses = problem.require_graph().sum_by_user(
        compute_task_weights(problem, exponent, counts=counts) ** 2
    )
    return float(budget_uses.max()) / problem.budget


def compute_task_weights(
    problem: TaskProblem, exponent: float, inflation: float = 1.0, counts: npt.ArrayLike | None = None
) -> FloatArray:
    """Compute omega_i = n_i^(-mu) / sqrt(sum_i' n_i'^(1 - 2 mu) / (n beta / c)), not yet clipped.

    Args:
        problem: The question.
        exponent: mu in [0, 1]; 0 is uniform, 1/4 and 1/2 are optimal in equation 10 for convex and strongly
            convex losses.
        inflation: c of equation 10, above 0: task weights are scaled for a budget of beta / c, so that few users need
            clipping. With 1, the average user uses the whole budget.
        counts: Estimates to use in place of n_i, above 0, shape (num_tasks,); with n_hat_i + s and mu = 1/2
            this is equation 18.

    Returns:
        Shape (num_tasks,); sum_i counts_i omega_i^2 = n beta / c.

    Raises:
        InvalidInput: ``exponent`` outside [0, 1], or ``counts`` not as described.

    Source: Krichene et al. 2023, equation 11 and section 5, "Experimental setup", for general mu.
    """
    with Problems() as problems:
        problems.between(0.0, 1.0, exponent=exponent)
        sizes = np.asarray(problem.task_sizes if counts is None else counts, dtype=np.float64)
        if sizes.shape != (problem.num_tasks,) or not np.all(np.isfinite(sizes) & (sizes > 0)):
            problems.add(f"counts must be {problem.num_tasks:,} finite numbers above 0")
    average_budget = problem.budget / inflation
    scale = np.sum(sizes ** (1.0 - 2.0 * exponent)) / (problem.num_users * average_budget)
    return np.asarray(sizes**-exponent / math.sqrt(scale))


def allocate_by_power(
    problem: TaskProblem, exponent: float, inflation: float = 1.0, counts: npt.ArrayLike | None = None
) -> Allocation:
    """Compute the weights of equations 11 and 12: a power of the task's size, each user clipped to the budget.

    Arguments and errors as in `compute_task_weights`. Sizes (or ``counts``) are taken to be public or already
    released.
    """
    weights, scales, clipped_share = compute_task_weights(problem, exponent, inflation, counts), None, None
    if problem.graph is not None:
        budget_uses = problem.graph.sum_by_user(weights**2)
        with np.errstate(divide="ignore"):  # Users without a task.
            scales = np.minimum(np.sqrt(problem.budget / budget_uses) * (1.0 - ROUNDING_MARGIN), 1.0)
        # A user who is at the budget was scaled by a rounding only, and lost nothing.
        clipped_share = float(np.mean(budget_uses > problem.budget * (1 + ROUNDING_MARGIN)))
    name = f"size to the power −{wording.entered(exponent)}" if exponent else "uniform weights"
    return Allocation(name, problem, weights, scales, share_clipped=clipped_share)


def allocate_normalised(
    problem: TaskProblem, exponent: float, counts: npt.ArrayLike | None = None
) -> Allocation:
    """Compute weights proportional to n_i^(-mu), scaled so that *every* user spends the whole budget.

    w_ij = sqrt(beta) n_i^(-mu) / sqrt(sum over the user's tasks of n_i'^(-2 mu)).

    Args:
        problem: The question, with a graph.
        exponent: mu in [0, 1].
        counts: As in `compute_task_weights`.

    Raises:
        InvalidInput: No graph, or as `compute_task_weights`.

    Source: Krichene et al. 2023, appendix C ("the weights are normalized per user").
    """
    graph = problem.require_graph()
    weights = compute_task_weights(problem, exponent, counts=counts)
    name = f"size to the power −{wording.entered(exponent)}, every user to the full budget"
    scales = scale_to_budget(graph, weights, problem.budget)
    return Allocation(name, problem, weights, scales, rule=UserRule.FULL)


def expect_totals(problem: TaskProblem, exponent: float) -> FloatArray:
    """Estimate W_i of `allocate_normalised` from public task sizes, shape (num_tasks,).

    Averages over simulated users who have each task independently with probability n_i / n (a fixed seed; reads
    no data). Source: assumption 4.1 of Krichene et al. 2023.
    """
    squared_weights = compute_task_weights(problem, exponent) ** 2
    rng = np.random.default_rng(0)
    has_task = rng.random((SIMULATED_USERS, problem.num_tasks)) < problem.task_sizes / problem.num_users
    # A user known to have task i: their other tasks, and i.
    other_tasks = (has_task @ squared_weights)[:, None] - has_task * squared_weights
    mean_scales = np.sqrt(problem.budget / (other_tasks + squared_weights)).mean(axis=0)
    return np.asarray(problem.task_sizes * np.sqrt(squared_weights) * mean_scales)


def scale_to_budget(graph: TaskGraph, weights: FloatArray, budget: float) -> FloatArray:
    """Compute user factors that make every user with a task spend the whole budget; 0 for users without one."""
    budget_uses = graph.sum_by_user(weights**2)
    scales = np.zeros(graph.num_users)
    has_task = budget_uses > 0.0
    scales[has_task] = np.sqrt(budget / budget_uses[has_task]) * (1.0 - ROUNDING_MARGIN)
    return scales


class BudgetFit(Option):
    """The rule that brings weights within users' budgets."""

    CLIPPED = "average", "Clip, c = 1"
    LOGARITHMIC = "logarithmic", "Clip, c = C log n"
    NOBODY_CLIPPED = "nobody-clipped", "Clip nobody"
    FULL = "full", "Fill everybody up"

    @property
    def clips_nobody(self) -> bool:
        """Return True if all users of a task weigh the same, as problem (9) demands.

        The task weights are then computed from who contributes to what.
        """
        return self is BudgetFit.NOBODY_CLIPPED


@dataclass(frozen=True)
class WeightRule:
    """The rule of the weights: the exponent and the fit.

    Attributes:
        exponent: mu in [0, 1].
        fit: How weights are brought within users' budgets.
        log_constant: C where c = C log n.
    """

    exponent: float
    fit: BudgetFit = BudgetFit.CLIPPED
    log_constant: float = 1.0

    def allocate(self, problem: TaskProblem, counts: npt.ArrayLike | None = None) -> Allocation:
        """Compute the allocation.

        Args:
            problem: The question, with a graph.
            counts: Estimates in place of task sizes, shape (num_tasks,).

        Raises:
            InvalidInput: As `dpcore.multitask.weights.compute_task_weights`; c = C log n with a single user.
        """
        if self.fit is BudgetFit.FULL:
            return allocate_normalised(problem, self.exponent, counts)
        inflation = 1.0
        if self.fit is BudgetFit.NOBODY_CLIPPED:
            inflation = inflate_for_no_clipping(problem, self.exponent, counts)
        elif self.fit is BudgetFit.LOGARITHMIC:
            inflation = inflate_logarithmically(problem.num_users, self.log_constant)
        allocation = allocate_by_power(problem, self.exponent, inflation, counts)
        return replace(allocation, reads_graph=self.fit.clips_nobody)

    def with_exponent(self, exponent: float) -> WeightRule:
        """Return the same fit with another exponent; 0 is the reference for adapting to task sizes."""
        return replace(self, exponent=exponent)


@dataclass(frozen=True, eq=False)
class WeightSkew:
    """The distance of each task's weighted loss from the plain one, which weighs its users equally.

    The bounds count noise only. Where users' weights within a task differ, the minimiser of the weighted loss
    is that of another mixture of users: a bias wherever heavy and light users answer differently, and none
    where the task's relation is the same for all.

    Attributes:
        total_variation: Share of the task's weight that sits with other users than in the plain loss (total variation
            distance), in [0, 1), shape (num_tasks,).
        user_size_ratio: Weighted over plain mean number of tasks of the task's users, shape (num_tasks,):
            below 1 means skewed toward light users.
    """

    total_variation: FloatArray
    user_size_ratio: FloatArray

    @property
    def largest_variation(self) -> float:
        """Return the largest `total_variation` of any task."""
        return float(self.total_variation.max())


def compute_skew(allocation: Allocation) -> WeightSkew:
    """Compute the skew of an allocation's weights; zero everywhere if nobody is clipped. Reads the private graph.

    Raises:
        InvalidInput: The problem has no graph.
    """
    graph = allocation.problem.require_graph()
    scales = allocation.user_scales
    assert scales is not None
    sizes = graph.task_sizes.astype(np.float64)
    totals = graph.sum_by_task(scales)
    # Within a task the task's own factor cancels: only users' factors matter.
    equal_weights = totals / sizes
    differences = np.abs(np.repeat(scales, graph.tasks_per_user) - equal_weights[graph.tasks])
    tasks_per_user = graph.tasks_per_user.astype(np.float64)
    weighted_task_counts = graph.sum_by_task(scales * tasks_per_user) / totals
    return WeightSkew(
        total_variation=np.asarray(graph.sum_pairs_by_task(differences) / (2.0 * totals)),
        user_size_ratio=np.asarray(weighted_task_counts / (graph.sum_by_task(tasks_per_user) / sizes)),
    )
