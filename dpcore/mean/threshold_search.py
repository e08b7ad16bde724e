"""The search for the best threshold of smooth weights where the error over thresholds has several valleys."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray, IntArray

TOLERANCE = 0.02
"""Relative gap at which the search ends."""
MAX_PASSES = 400
"""Most thresholds and cells that are solved."""
FIRST_CELLS = 16


def search_thresholds(
    sizes: FloatArray | IntArray,
    solve: Callable[[float], float],
    bound_cell: Callable[[float, float], float],
    progress: Progress,
    should_stop: ShouldStop,
) -> tuple[float, float]:
    """Find the threshold between the smallest and the largest size with the least error, by branch and bound.

    The search ends where no cell can be better by more than `TOLERANCE`, after `MAX_PASSES`, or if it is stopped.

    Args:
        sizes: The distinct numbers of rows per user, ascending, shape (K,).
        solve: Returns the least error at one threshold.
        bound_cell: Returns a lower bound on the error at every threshold from h1 to h2; h1 has been solved.
        progress: Called with the share of `MAX_PASSES` that is done.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        The best threshold that was solved, and a lower bound on the error in all cells that are left; infinite if none
        is left.
    """
    smallest, largest = float(sizes[0]), float(sizes[-1])
    thresholds = np.unique(np.geomspace(smallest, largest, FIRST_CELLS + 1))
    thresholds[0], thresholds[-1] = smallest, largest
    # A heap of cells [h1, h2], each behind the lower bound on the error in it.
    cells: list[tuple[float, float, float]] = []
    errors: dict[float, float] = {}
    for h1, h2 in pairwise(thresholds.tolist()):
        errors[h1] = solve(h1)
        heapq.heappush(cells, (bound_cell(h1, h2), h1, h2))
    # Above the largest size the weights are constant, so it is solved without a cell.
    errors[largest] = solve(largest)
    num_passes, best_threshold = thresholds.size, min(errors, key=errors.__getitem__)
    while (
        cells
        and cells[0][0] * (1.0 + TOLERANCE) < errors[best_threshold]
        and num_passes < MAX_PASSES
        and not should_stop()
    ):
        _, h1, h2 = heapq.heappop(cells)
        midpoint = math.sqrt(h1 * h2)
        if h1 < midpoint < h2:  # Else it is a cell of one number, which is already solved.
            errors[midpoint] = solve(midpoint)
            for left, right in ((midpoint, h2), (h1, midpoint)):
                heapq.heappush(cells, (bound_cell(left, right), left, right))
            num_passes += 2
            best_threshold = min(best_threshold, midpoint, key=errors.__getitem__)
        progress(min(num_passes / MAX_PASSES, 1.0))
    return best_threshold, cells[0][0] if cells else math.inf
