"""Weights as a power of the task's size, scaled to the budget and clipped per user (equations 11 and 12)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import Allocation, TaskProblem, UserRule

IMAGINED_USERS = 2_000

# Clipped weights end this much below the budget (relative), so that no order of summation can lift a user of
# up to 10,000 tasks above it.
ROUNDING_MARGIN = 1e-12


@dataclass(frozen=True)
class Inflation:
    """c of equation 10: task weights are scaled for a budget of beta / c, so that few users need clipping.

    Attributes:
        factor: c, above 0.
        reads_graph: Whether c was computed from the private graph.
        meaning: What it stands for, a sentence.
    """

    factor: float
    reads_graph: bool
    meaning: str


AVERAGE = Inflation(1.0, False, "The average user uses the whole budget; heavier users are clipped.")


def logarithmic(num_users: int, constant: float = 1.0) -> Inflation:
    """C log n with the constant C of lemma A.4, which the paper does not give.

    Args:
        num_users: n, at least 2 (log 1 is 0).
        constant: C, above 0.

    Raises:
        InvalidInput: An argument is out of its range.

    Source: Krichene et al. 2023, lemma A.4 and the text after equation 11.
    """
    with Problems() as problems:
        problems.whole(2, 10**12, num_users=num_users)
        problems.positive(constant=constant)
    meaning = f"{wording.entered(constant)} times log n: with a large enough constant nobody is clipped, most likely."
    return Inflation(constant * math.log(num_users), False, meaning)


def unclipped(problem: TaskProblem, exponent: float, counts: npt.ArrayLike | None = None) -> Inflation:
    """The smallest c for which no user is clipped. Reads the private graph.

    Raises:
        InvalidInput: No graph, or as `task_weights`.
    """
    graph = problem.required_graph()
    used = graph.user_sums(task_weights(problem, exponent, counts=counts) ** 2)
    return Inflation(
        float(used.max()) / problem.budget,
        True,
        "The smallest factor that clips nobody; computed from the private graph.",
    )


def task_weights(
    problem: TaskProblem, exponent: float, inflation: Inflation = AVERAGE, counts: npt.ArrayLike | None = None
) -> FloatArray:
    """omega_i = n_i^(-mu) / sqrt(sum_i' n_i'^(1 - 2 mu) / (n beta / c)), not yet clipped.

    Args:
        problem: The question.
        exponent: mu in [0, 1]; 0 is uniform, 1/4 and 1/2 are optimal in equation 10 for convex and strongly
            convex losses.
        inflation: c.
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
    average_budget = problem.budget / inflation.factor
    scale = np.sum(sizes ** (1.0 - 2.0 * exponent)) / (problem.num_users * average_budget)
    return np.asarray(sizes**-exponent / math.sqrt(scale))


def _clipped(used: FloatArray, budget: float) -> FloatArray:
    """The same from the users' sums of squared weights, each sum a pass over all pairs."""
    scales = np.ones(used.size)
    over = used > budget * (1.0 - ROUNDING_MARGIN)
    scales[over] = np.minimum(np.sqrt(budget / used[over]) * (1.0 - ROUNDING_MARGIN), 1.0)
    return scales


def power_weights(
    problem: TaskProblem, exponent: float, inflation: Inflation = AVERAGE, counts: npt.ArrayLike | None = None
) -> Allocation:
    """Equations 11 and 12: a power of the task's size, each user clipped to the budget.

    Arguments and errors as `task_weights`. Sizes (or ``counts``) are taken to be public or already released.
    """
    weights = task_weights(problem, exponent, inflation, counts)
    scales, share = None, None
    if problem.graph is not None:
        used = problem.graph.user_sums(weights**2)
        scales = _clipped(used, problem.budget)
        # A user who is at the budget was scaled by a rounding only, and lost nothing.
        share = float(np.mean(used > problem.budget * (1 + ROUNDING_MARGIN)))
    return Allocation(
        name=f"size to the power −{wording.entered(exponent)}" if exponent else "uniform weights",
        problem=problem,
        task_weights=weights,
        user_scales=scales,
        reads_graph=inflation.reads_graph,
        share_clipped=share,
        ended=f"Closed form. {inflation.meaning}",
    )


def uniform_weights(problem: TaskProblem) -> Allocation:
    """The same weight for every task: `power_weights` with exponent 0."""
    return power_weights(problem, 0.0)


def normalised_weights(
    problem: TaskProblem, exponent: float, counts: npt.ArrayLike | None = None
) -> Allocation:
    """Weights proportional to n_i^(-mu), scaled so that *every* user spends the whole budget.

    w_ij = sqrt(beta) n_i^(-mu) / sqrt(sum over the user's tasks of n_i'^(-2 mu)).

    Args:
        problem: The question, with a graph.
        exponent: mu in [0, 1].
        counts: As in `task_weights`.

    Raises:
        InvalidInput: No graph, or as `task_weights`.

    Source: Krichene et al. 2023, appendix C ("the weights are normalized per user").
    """
    graph = problem.required_graph()
    weights = task_weights(problem, exponent, counts=counts)
    return Allocation(
        name=f"size to the power −{wording.entered(exponent)}, every user to the full budget",
        problem=problem,
        task_weights=weights,
        user_scales=full_scales(graph, weights, problem.budget),
        rule=UserRule.FULL,
    )


def expected_totals(problem: TaskProblem, exponent: float) -> FloatArray:
    """W_i of `normalised_weights` as far as public task sizes tell, shape (num_tasks,).

    Averages over imagined users who have each task independently with probability n_i / n (a fixed seed;
    reads no data). Source: assumption 4.1 of Krichene et al. 2023.
    """
    squared = task_weights(problem, exponent) ** 2
    rng = np.random.default_rng(0)
    has = rng.random((IMAGINED_USERS, problem.num_tasks)) < problem.task_sizes / problem.num_users
    # A user known to have task i: their other tasks, and i.
    others = (has @ squared)[:, None] - has * squared
    per_user = np.sqrt(problem.budget / (others + squared)).mean(axis=0)
    return np.asarray(problem.task_sizes * np.sqrt(squared) * per_user)


def full_scales(graph: TaskGraph, weights: FloatArray, budget: float) -> FloatArray:
    """User factors that make every user with a task spend the whole budget; 0 for users without one."""
    used = graph.user_sums(weights**2)
    scales = np.zeros(graph.num_users)
    has_task = used > 0.0
    scales[has_task] = np.sqrt(budget / used[has_task]) * (1.0 - ROUNDING_MARGIN)
    return scales
