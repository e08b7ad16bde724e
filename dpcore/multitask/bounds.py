"""Gains by adapting to task sizes: closed forms, and error bounds sliced from tail to head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.multitask.problem import Allocation, Loss, TaskProblem


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
        problem: The question; no graph needed.
        exponent: mu in [0, 1].

    Source: Krichene et al. 2023, equations 10 and 11; the bound is Cauchy and Schwarz.
    """
    sizes = problem.task_sizes.astype(np.float64)
    gamma, total_budget = problem.loss.gamma, problem.num_users * problem.budget
    budget_sum = np.sum(sizes ** (1.0 - 2.0 * exponent))
    value = float(np.sum(sizes ** (2.0 * exponent - gamma)) * budget_sum / total_budget)
    lower_bound = float(np.sum(sizes ** ((1.0 - gamma) / 2.0)) ** 2 / total_budget)
    return Certificate(
        value, lower_bound, "by Cauchy and Schwarz, where the budget binds users on average (problem 10)"
    )


@dataclass(frozen=True)
class Bucket:
    """Tasks of similar size, under an allocation and under a reference.

    Attributes:
        num_tasks: How many.
        smallest_size: Users of the smallest task.
        largest_size: Users of the largest task.
        bound: Sum of the tasks' error bounds under the allocation.
        reference_bound: The same under the reference.
        share: Share of the allocation's total bound.
        least_ratio: Smallest bound / reference of any of these tasks.
        largest_ratio: Largest bound / reference of any of these tasks.
    """

    num_tasks: int
    smallest_size: int
    largest_size: int
    bound: float
    reference_bound: float
    share: float
    least_ratio: float
    largest_ratio: float

    @property
    def ratio(self) -> float:
        """Return bound / reference: below 1 if the allocation is better."""
        return self.bound / self.reference_bound


def slice_by_size(allocation: Allocation, reference: Allocation, num_buckets: int = 5) -> tuple[Bucket, ...]:
    """Slice the tasks into equally many per bucket, from the tail (smallest) to the head.

    Args:
        allocation: Weights on some tasks.
        reference: Other weights on the same tasks, usually uniform ones.
        num_buckets: How many; there are fewer if there are fewer tasks.

    Source: Krichene et al. 2023, figure 4, for the slicing.
    """
    sizes, bounds, reference_bounds = (
        allocation.problem.task_sizes,
        allocation.task_bounds,
        reference.task_bounds,
    )
    ratios, order = bounds / reference_bounds, np.argsort(sizes, kind="stable")
    return tuple(
        Bucket(
            num_tasks=tasks.size,
            smallest_size=int(sizes[tasks[0]]),
            largest_size=int(sizes[tasks[-1]]),
            bound=float(bounds[tasks].sum()),
            reference_bound=float(reference_bounds[tasks].sum()),
            share=float(bounds[tasks].sum() / bounds.sum()),
            least_ratio=float(ratios[tasks].min()),
            largest_ratio=float(ratios[tasks].max()),
        )
        for tasks in np.array_split(order, min(num_buckets, sizes.size))
    )
