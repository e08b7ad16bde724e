"""The baseline that samples tasks of every user, and private task sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.multitask.problem import Allocation, TaskGraph, TaskProblem, UserRule


def allocate_uniform_sampling(problem: TaskProblem, max_tasks: int) -> Allocation:
    """Return the weights of uniform sampling: at most k tasks of each user, each with weight sqrt(beta / k).

    The weights here are the expected ones, sqrt(beta / k) min(1, k / n^j). The bounds computed from them are a little
    better than sampling really achieves (1 / W^2 is convex in W): the baseline is flattered.

    Args:
        problem: The problem.
        max_tasks: k, at least 1.

    Source: Krichene et al. 2023, remark 3.5, scaled to the budget.
    """
    graph = problem.graph
    keep_probabilities = max_tasks / np.maximum(graph.tasks_per_user, max_tasks)
    allocation_name = f"{format_count(max_tasks, 'task')} per user, drawn uniformly"
    task_weights = np.full(problem.graph.num_tasks, math.sqrt(problem.budget / max_tasks))
    allocation = Allocation(allocation_name, problem, task_weights, keep_probabilities, rule=UserRule.SAMPLED)
    return replace(allocation, clipped_user_share=float(np.mean(keep_probabilities < 1.0)))


def count_tasks_per_user(uniform_sampling: Allocation) -> int:
    """Return k, the most tasks per user, of an allocation of `allocate_uniform_sampling`."""
    return round(uniform_sampling.problem.budget / float(uniform_sampling.task_weights[0]) ** 2)


def find_best_uniform_sampling(problem: TaskProblem) -> Allocation:
    """Return uniform sampling with the k of the smallest total bound that a search found.

    Reads the private graph.

    All powers of 2, then a ternary narrowing around the best of them; every candidate k costs one pass over the
    pairs. A heuristic that favours the baseline: no proof that no other k is better.
    """
    largest_num_tasks = max(int(problem.graph.tasks_per_user.max()), 1)
    powers_of_two = (2**power for power in range(largest_num_tasks.bit_length()))
    max_tasks_grid = sorted({*powers_of_two, largest_num_tasks})
    allocation_by_k = {
        max_tasks: allocate_uniform_sampling(problem, max_tasks) for max_tasks in max_tasks_grid
    }

    def compute_total_bound(max_tasks: int) -> float:
        """Return the total bound of sampling ``max_tasks`` tasks; each allocation is computed once."""
        if max_tasks not in allocation_by_k:
            allocation_by_k[max_tasks] = allocate_uniform_sampling(problem, max_tasks)
        return allocation_by_k[max_tasks].total_bound

    best_index = max_tasks_grid.index(min(max_tasks_grid, key=compute_total_bound))
    lower_max_tasks = max_tasks_grid[max(best_index - 1, 0)]
    upper_max_tasks = max_tasks_grid[min(best_index + 1, len(max_tasks_grid) - 1)]
    while upper_max_tasks - lower_max_tasks > 2:
        third_gap = (upper_max_tasks - lower_max_tasks) // 3
        if compute_total_bound(lower_max_tasks + third_gap) <= compute_total_bound(
            upper_max_tasks - third_gap
        ):
            upper_max_tasks -= third_gap
        else:
            lower_max_tasks += third_gap
    best_max_tasks = min(
        {*range(lower_max_tasks, upper_max_tasks + 1), *max_tasks_grid}, key=compute_total_bound
    )
    return replace(allocation_by_k[best_max_tasks], reads_graph=True)


def draw_uniformly(graph: TaskGraph, max_tasks: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw at most k tasks of each user uniformly, users independently; return a mask of pairs.

    Args:
        graph: Who contributes to what.
        max_tasks: k, at least 1.
        rng: Source of the draw.

    Returns:
        Shape (num_pairs,), in the graph's order.
    """
    return rank_within_users(graph.user_codes, rng.random(graph.num_pairs)) < max_tasks


SMALLEST_COUNT = 1.0
"""Floor of n_hat + s: a task has at least one user (assumption 4.1)."""


@dataclass(frozen=True, eq=False)
class ReleasedUserCounts:
    """Noisy task sizes and by how much they may be off. Everything here is released.

    Attributes:
        estimates: n_hat_i, real, possibly negative, shape (num_tasks,).
        slack: s: with probability 1 - p, |n_hat_i - n_i| <= s for every task, provided
            that ``covers_truncation`` or no user has more than ``max_tasks`` tasks.
        count_noise_std: sigma of the Gaussian noise on each count.
        truncation_slack: The part of s that covers users' tasks beyond the first k; 0 where not covered.
        covers_truncation: Whether that part was released and added.
        max_tasks: k.
    """

    estimates: FloatArray
    slack: float
    count_noise_std: float
    truncation_slack: float
    covers_truncation: bool
    max_tasks: int

    @property
    def usable_counts(self) -> FloatArray:
        """Return n_hat_i + s, at least 1, which replaces n_i in the weights (equation 18)."""
        return np.maximum(self.estimates + self.slack, SMALLEST_COUNT)


def release_counts(
    graph: TaskGraph,
    budget: float,
    max_tasks: int,
    rng: np.random.Generator,
    truncation_share: float = 0.1,
    failure_probability: float = 0.01,
) -> ReleasedUserCounts:
    """Release noisy task sizes, from at most k tasks of every user, and a bound on how far off they may be.

    Counting at most k tasks bounds a user's L2 effect on the counts by sqrt(k), and biases them downward:
    task i misses d_i = n_i - counted_i users. Equation 18 needs n_i <= n_hat_i + s, so s must cover max_i d_i
    as well as the noise; that maximum is private, but one user moves it by at most 1, so it is released too,
    for a small share of the budget. With sigma_c = sqrt(k / (2 beta_c)) on the counts and
    sigma_d = sqrt(1 / (2 beta_d)) on the maximum, beta_c + beta_d = beta_0.

    A simulation: floating-point noise from ``rng``, not hardened against attacks on the low bits.

    Args:
        graph: Who contributes to what.
        budget: beta_0, above 0.
        max_tasks: k, at least 1.
        rng: Source of the draw and of the noise.
        truncation_share: Share of beta_0 for the maximum, in [0, 1). At 0, s covers the noise alone: right
            where no user has more than k tasks; elsewhere tasks that lost users get too much weight, which
            costs clipping, never privacy.
        failure_probability: p in (0, 1), split evenly over all that is released.

    Source: Krichene et al. 2023, appendix B and the accounting of section 5; the release of the largest
    truncation is ours.
    """
    from scipy.stats import norm

    sampled_task_codes = graph.task_codes[draw_uniformly(graph, max_tasks, rng)]
    sampled_counts = np.bincount(sampled_task_codes, minlength=graph.num_tasks)
    count_noise_std = math.sqrt(max_tasks / (2.0 * budget * (1.0 - truncation_share)))
    noisy_counts = sampled_counts + rng.normal(scale=count_noise_std, size=graph.num_tasks)
    covers_truncation = truncation_share > 0.0
    # A union bound over all that can fail: either side of every count, and the maximum.
    normal_quantile = float(norm.isf(failure_probability / (2 * graph.num_tasks + covers_truncation)))
    undercount_limit = 0.0
    if covers_truncation:
        undercount_noise_std = math.sqrt(1.0 / (2.0 * budget * truncation_share))
        largest_undercount = float((graph.task_sizes - sampled_counts).max())
        # Raised by its own quantile, so that its noise cannot leave the slack too small; that, and the floor at 0,
        # change only what is released already.
        noisy_undercount = largest_undercount + rng.normal(scale=undercount_noise_std)
        undercount_limit = max(noisy_undercount + normal_quantile * undercount_noise_std, 0.0)
    slack = normal_quantile * count_noise_std + undercount_limit
    return ReleasedUserCounts(
        noisy_counts, slack, count_noise_std, undercount_limit, covers_truncation, max_tasks
    )


def compute_cost_factor(task_sizes: IntArray, usable_counts: FloatArray) -> float:
    """Compute (1 / m) sum_i (n_hat_i + s) / n_i, by which estimated counts raise the bound. Reads the sizes.

    Source: Krichene et al. 2023, theorem B.2, beside equation 13 (strongly convex losses).
    """
    return float(np.mean(usable_counts / task_sizes))
