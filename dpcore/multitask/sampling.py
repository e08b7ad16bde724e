"""The baseline in use today: k tasks of every user, drawn uniformly, all with the same weight."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import require
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import Allocation, TaskProblem, UserRule


def _require_max_tasks(max_tasks: int) -> None:
    """Raise `InvalidInput` unless the number of tasks is in its range."""
    require.whole(1, 10**9, max_tasks=max_tasks)


def allocate_uniform_sampling(problem: TaskProblem, max_tasks: int) -> Allocation:
    """Keep at most k tasks per user, each with weight sqrt(beta / k).

    The weights here are the expected ones, sqrt(beta / k) min(1, k / n^j). The bounds computed from them
    are a little better than sampling really achieves (1 / W^2 is convex in W): the baseline is flattered.

    Args:
        problem: The question, with a graph.
        max_tasks: k, at least 1.

    Raises:
        InvalidInput: ``max_tasks`` out of range, or no graph.

    Source: Krichene et al. 2023, remark 3.5, scaled to the budget.
    """
    _require_max_tasks(max_tasks)
    graph = problem.require_graph()
    keep_probabilities = max_tasks / np.maximum(graph.tasks_per_user, max_tasks)
    return Allocation(
        name=f"{wording.counted(max_tasks, 'task')} per user, drawn uniformly",
        problem=problem,
        task_weights=np.full(problem.num_tasks, math.sqrt(problem.budget / max_tasks)),
        user_scales=keep_probabilities,
        rule=UserRule.SAMPLED,
        share_clipped=float(np.mean(graph.tasks_per_user > max_tasks)),
        stop_reason="Closed form, in expectation over the draw.",
    )


def find_best_uniform_sampling(problem: TaskProblem) -> Allocation:
    """Find the k of uniform sampling with the smallest total bound. Reads the private graph.

    All powers of 2, then a ternary narrowing around the best of them; every candidate k costs one pass over the
    pairs. A heuristic that favours the baseline: no proof that no other k is better.

    Raises:
        InvalidInput: No graph.
    """
    largest = max(int(problem.require_graph().tasks_per_user.max()), 1)
    grid = sorted({*(1 << bit for bit in range(largest.bit_length())), largest})
    allocations = {max_tasks: allocate_uniform_sampling(problem, max_tasks) for max_tasks in grid}

    def total(max_tasks: int) -> float:
        if max_tasks not in allocations:
            allocations[max_tasks] = allocate_uniform_sampling(problem, max_tasks)
        return allocations[max_tasks].total_bound

    best_index = grid.index(min(grid, key=total))
    low, high = grid[max(best_index - 1, 0)], grid[min(best_index + 1, len(grid) - 1)]
    while high - low > 2:
        third = (high - low) // 3
        if total(low + third) <= total(high - third):
            high -= third
        else:
            low += third
    return replace(allocations[min({*range(low, high + 1), *grid}, key=total)], reads_graph=True)


def draw_uniformly(graph: TaskGraph, max_tasks: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw at most k tasks of each user uniformly, users independently; return a mask of pairs.

    Args:
        graph: Who contributes to what.
        max_tasks: k, at least 1.
        rng: Source of the draw.

    Returns:
        Shape (num_pairs,), in the graph's order.
    """
    _require_max_tasks(max_tasks)
    order = np.lexsort((rng.random(graph.num_pairs), graph.users))
    rank = np.arange(graph.num_pairs) - np.repeat(graph.starts[:-1], graph.tasks_per_user)
    is_kept = np.empty(graph.num_pairs, dtype=bool)
    is_kept[order] = rank < max_tasks
    return is_kept
