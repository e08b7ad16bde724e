"""Weights as a power of the task's size, within users' budgets: their gains, and how they skew a task's loss.

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

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.parameters import Option
from dpcore.common.wording import format_entered
from dpcore.contributions import FloatArray
from dpcore.multitask.problem import Allocation, Loss, TaskGraph, TaskProblem, UserRule

NUM_SIMULATED_USERS = 2_000

# Clipped weights end this much below the budget (relative), so that no order of summation can lift a user of
# up to 10,000 tasks above it.
ROUNDING_MARGIN = 1e-12

OptionalSizes = npt.ArrayLike | None
"""Estimates to use in place of task sizes, above 0, shape (num_tasks,); None for the sizes themselves."""


def compute_logarithmic_inflation(num_users: int, constant: float = 1.0) -> float:
    """Return c = C log n for a constant C of lemma A.4: if C is large enough, most likely nobody is clipped.

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


def find_inflation_without_clipping(
    problem: TaskProblem, exponent: float, size_estimates: OptionalSizes = None
) -> float:
    """Compute the smallest c at which no user exceeds the budget.

    Reads the private graph.
    """
    task_weights = compute_task_weights(problem, exponent, size_estimates=size_estimates)
    budget_uses = problem.graph.sum_by_user(task_weights**2)
    return float(budget_uses.max()) / problem.budget


def compute_task_weights(
    problem: TaskProblem, exponent: float, inflation: float = 1.0, size_estimates: OptionalSizes = None
) -> FloatArray:
    """Compute omega_i = n_i^(-mu) / sqrt(sum_i' n_i'^(1 - 2 mu) / (n beta / c)), not yet clipped.

    Args:
        problem: The question.
        exponent: mu in [0, 1]; 0 is uniform, 1/4 and 1/2 are optimal in equation 10 for convex and strongly
            convex losses.
        inflation: c of equation 10, above 0: task weights are scaled for a budget of beta / c, so that few users need
            clipping. With 1, the average user uses the whole budget.
        size_estimates: Estimates to use in place of n_i, above 0, shape (num_tasks,); with n_hat_i + s and mu = 1/2
            this is equation 18.

    Returns:
        Shape (num_tasks,); sum_i n_i omega_i^2 = n beta / c.

    Source: Krichene et al. 2023, equation 11 and section 5, "Experimental setup", for general mu.
    """
    sizes = np.asarray(
        problem.graph.task_sizes if size_estimates is None else size_estimates, dtype=np.float64
    )
    total_budget = problem.graph.num_users * problem.budget / inflation
    return np.asarray(sizes**-exponent * math.sqrt(total_budget / np.sum(sizes ** (1.0 - 2.0 * exponent))))


def allocate_by_power(
    problem: TaskProblem, exponent: float, inflation: float = 1.0, size_estimates: OptionalSizes = None
) -> Allocation:
    """Compute the weights of equations 11 and 12: a power of the task's size, each user clipped to the budget.

    Arguments as in `compute_task_weights`. OptionalSizes (or ``size_estimates``) are taken to be public or already
    released.
    """
    task_weights = compute_task_weights(problem, exponent, inflation, size_estimates)
    budget_uses = problem.graph.sum_by_user(task_weights**2)
    with np.errstate(divide="ignore"):  # Users without a task.
        user_scales = np.minimum(np.sqrt(problem.budget / budget_uses) * (1.0 - ROUNDING_MARGIN), 1.0)
    # A user who is at the budget was scaled by a rounding only, and lost nothing.
    clipped_share = float(np.mean(budget_uses > problem.budget * (1 + ROUNDING_MARGIN)))
    allocation_name = f"size to the power −{format_entered(exponent)}" if exponent else "uniform weights"
    return Allocation(allocation_name, problem, task_weights, user_scales, clipped_user_share=clipped_share)


def allocate_normalised(
    problem: TaskProblem, exponent: float, size_estimates: OptionalSizes = None
) -> Allocation:
    """Compute weights proportional to n_i^(-mu), scaled so that *every* user spends the whole budget.

    w_ij = sqrt(beta) n_i^(-mu) / sqrt(sum over the user's tasks of n_i'^(-2 mu)).

    Args:
        problem: The problem.
        exponent: mu in [0, 1].
        size_estimates: As in `compute_task_weights`.

    Source: Krichene et al. 2023, appendix C ("the weights are normalized per user").
    """
    graph = problem.graph
    task_weights = compute_task_weights(problem, exponent, size_estimates=size_estimates)
    allocation_name = f"size to the power −{format_entered(exponent)}, every user to the full budget"
    user_scales = scale_to_budget(graph, task_weights, problem.budget)
    return Allocation(allocation_name, problem, task_weights, user_scales, rule=UserRule.FULL)


def estimate_task_totals(problem: TaskProblem, exponent: float) -> FloatArray:
    """Estimate W_i of `allocate_normalised` from public sizes, by simulated users of a fixed seed, shape (num_tasks,).

    Averages over users who have each task independently with probability n_i / n. Reads
    no data. Source: assumption 4.1 of Krichene et al. 2023.
    """
    squared_weights = compute_task_weights(problem, exponent) ** 2
    rng = np.random.default_rng(0)
    task_shares = problem.graph.task_sizes / problem.graph.num_users
    has_task = rng.random((NUM_SIMULATED_USERS, task_shares.size)) < task_shares
    # A user known to have task i: their other tasks, and i.
    other_budget_uses = (has_task @ squared_weights)[:, None] - has_task * squared_weights
    mean_scales = np.sqrt(problem.budget / (other_budget_uses + squared_weights)).mean(axis=0)
    return np.asarray(problem.graph.task_sizes * np.sqrt(squared_weights) * mean_scales)


def scale_to_budget(graph: TaskGraph, task_weights: FloatArray, budget: float) -> FloatArray:
    """Compute user factors that make every user with a task spend the whole budget; 0 for users without one."""
    budget_uses = graph.sum_by_user(task_weights**2)
    user_scales = np.zeros(graph.num_users)
    active_mask = budget_uses > 0.0
    user_scales[active_mask] = np.sqrt(budget / budget_uses[active_mask]) * (1.0 - ROUNDING_MARGIN)
    return user_scales


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

    def allocate(self, problem: TaskProblem, size_estimates: OptionalSizes = None) -> Allocation:
        """Compute the weights by this rule: filled up, or by the power with the c of the fit, and clipped.

        Args:
            problem: The problem.
            size_estimates: Estimates in place of task sizes, shape (num_tasks,).

        Raises:
            InvalidInput: c = C log n with a single user.
        """
        if self.fit is BudgetFit.FULL:
            return allocate_normalised(problem, self.exponent, size_estimates)
        inflation = 1.0
        if self.fit is BudgetFit.NOBODY_CLIPPED:
            inflation = find_inflation_without_clipping(problem, self.exponent, size_estimates)
        elif self.fit is BudgetFit.LOGARITHMIC:
            inflation = compute_logarithmic_inflation(problem.graph.num_users, self.log_constant)
        allocation = allocate_by_power(problem, self.exponent, inflation, size_estimates)
        return replace(allocation, reads_graph=self.fit.clips_nobody)

    def with_exponent(self, exponent: float) -> WeightRule:
        """Return the same fit with another exponent; 0 is the reference for adapting to task sizes."""
        return replace(self, exponent=exponent)


def compute_skew(allocation: Allocation) -> FloatArray:
    """Compute how far each task's weighted loss is from the plain one, which weighs its users equally.

    The bounds count noise only. If users' weights within a task differ, the minimiser of the weighted loss is that of
    another mixture of users. This is a bias if heavy and light users answer differently, and none if the task's
    relation is the same for all. Reads the private graph.

    Returns:
        Share of the task's weight that sits with other users than in the plain loss (total variation distance), in
        [0, 1), shape (num_tasks,); zero everywhere if nobody is clipped.
    """
    graph = allocation.problem.graph
    user_scales = allocation.user_scales
    task_scale_sums = graph.sum_by_task(user_scales)
    # Within a task the task's own factor cancels: only users' factors matter.
    mean_scales = task_scale_sums / graph.task_sizes
    differences = np.abs(np.repeat(user_scales, graph.tasks_per_user) - mean_scales[graph.task_codes])
    return np.asarray(graph.sum_pairs_by_task(differences) / (2.0 * task_scale_sums))


def compute_gain(task_sizes: npt.ArrayLike, loss: Loss) -> float:
    """Compute by how much the paper's weights lower the total bound of uniform ones if nobody is clipped, at least 1.

    For strongly convex losses (bounds 6 and 8) that is R_1 = (sum 1 / n_i) (sum n_i) / m^2, for convex ones (bound 7)
    R_0 = sqrt(m sum n_i) / sum sqrt(n_i). Bound (7) is proportional to the *root* of sum 1 / omega_i^2, hence so is
    R_0. For n_1 = m^(1 + nu) and all others 1, R_0 is about m^(nu / 2) for nu < 1, sqrt(m) / 2 at nu = 1, and tends to
    sqrt(m) above; the paper prints m^(nu / 2) without that limit.

    Args:
        task_sizes: n_i, above 0, shape (num_tasks,).
        loss: Convex or strongly convex.

    Source: Krichene et al. 2023, after theorem 4.2.
    """
    sizes = np.asarray(task_sizes, dtype=np.float64)
    if loss is Loss.CONVEX:
        return float(np.sqrt(sizes.size * sizes.sum()) / np.sqrt(sizes).sum())
    return float((1.0 / sizes).sum() * sizes.sum() / sizes.size**2)


def certify_on_average(problem: TaskProblem, exponent: float) -> Certificate:
    """Certify n_i^(-mu) in problem (10), where the budget need only hold for the average user.

    With p = omega^2 the objective is sum_i n_i^(-gamma) / p_i and the budget sum_i n_i p_i = n beta, so that no
    weights have a total below (sum_i n_i^((1 - gamma) / 2))^2 / (n beta). Both scale with c in the same way.

    Args:
        problem: The problem.
        exponent: mu in [0, 1].

    Source: Krichene et al. 2023, equations 10 and 11; the bound is Cauchy and Schwarz.
    """
    task_sizes = problem.graph.task_sizes.astype(np.float64)
    gamma, total_budget = problem.loss.gamma, problem.graph.num_users * problem.budget
    unscaled_budget = np.sum(task_sizes ** (1.0 - 2.0 * exponent))
    objective = float(np.sum(task_sizes ** (2.0 * exponent - gamma)) * unscaled_budget / total_budget)
    lower_bound = float(np.sum(task_sizes ** ((1.0 - gamma) / 2.0)) ** 2 / total_budget)
    return Certificate(objective, lower_bound, "by Cauchy and Schwarz, for problem (10)")


@dataclass(frozen=True)
class Bucket:
    """Tasks of similar size, under an allocation and under a reference.

    Attributes:
        num_tasks: How many.
        smallest_size: Users of the smallest task.
        largest_size: Users of the largest task.
        error_bound_sum: Sum of the tasks' error bounds under the allocation.
        reference_error_sum: The same under the reference.
        total_share: Share of the allocation's total bound.
        least_task_ratio: Smallest bound / reference of any of these tasks.
        largest_task_ratio: Largest bound / reference of any of these tasks.
    """

    num_tasks: int
    smallest_size: int
    largest_size: int
    error_bound_sum: float
    reference_error_sum: float
    total_share: float
    least_task_ratio: float
    largest_task_ratio: float

    @property
    def ratio(self) -> float:
        """Return bound / reference: below 1 if the allocation is better."""
        return self.error_bound_sum / self.reference_error_sum


def slice_by_size(
    allocation: Allocation, reference_allocation: Allocation, num_buckets: int = 5
) -> tuple[Bucket, ...]:
    """Divide the tasks, sorted by size, into buckets of equally many tasks, smallest tasks first.

    Args:
        allocation: Weights on some tasks.
        reference_allocation: Other weights on the same tasks, usually uniform ones.
        num_buckets: How many; there are fewer if there are fewer tasks.

    Source: Krichene et al. 2023, figure 4, for the slicing.
    """
    task_sizes, error_bounds = allocation.problem.graph.task_sizes, allocation.task_bounds
    reference_error_bounds = reference_allocation.task_bounds
    error_ratios, task_order = error_bounds / reference_error_bounds, np.argsort(task_sizes, kind="stable")
    return tuple(
        Bucket(
            num_tasks=bucket_tasks.size,
            smallest_size=int(task_sizes[bucket_tasks[0]]),
            largest_size=int(task_sizes[bucket_tasks[-1]]),
            error_bound_sum=float(error_bounds[bucket_tasks].sum()),
            reference_error_sum=float(reference_error_bounds[bucket_tasks].sum()),
            total_share=float(error_bounds[bucket_tasks].sum() / error_bounds.sum()),
            least_task_ratio=float(error_ratios[bucket_tasks].min()),
            largest_task_ratio=float(error_ratios[bucket_tasks].max()),
        )
        for bucket_tasks in np.array_split(task_order, min(num_buckets, task_sizes.size))
    )
