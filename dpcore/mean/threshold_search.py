"""The search for the best threshold of smooth weights where the error over thresholds has several valleys."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray, IntArray

SEARCH_TOLERANCE = 0.02
"""Relative gap at which the search ends."""
MAX_PASSES = 400
"""Most thresholds and cells that are solved."""
NUM_FIRST_CELLS = 16


def search_thresholds(
    distinct_sizes: FloatArray | IntArray,
    compute_error_at: Callable[[float], float],
    bound_error_between: Callable[[float, float], float],
    progress: Progress,
    should_stop: ShouldStop,
) -> tuple[float, float]:
    """Find the best threshold from the smallest to the largest size, and a lower bound on the error elsewhere.

    The search is a branch and bound over cells, intervals of thresholds. It ends where no cell can be better by more
    than `SEARCH_TOLERANCE`, after `MAX_PASSES`, or if it is stopped.

    Args:
        distinct_sizes: The distinct numbers of rows per user, ascending, shape (K,).
        compute_error_at: Returns the least error at one threshold.
        bound_error_between: Returns a lower bound on the error at all thresholds between two, the first of which was
            solved.
        progress: Called with the share of `MAX_PASSES` that is done.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        The best threshold that was solved, and a lower bound on the error in all cells that are left; infinite if none
        is left.
    """
    smallest_size, largest_size = float(distinct_sizes[0]), float(distinct_sizes[-1])
    thresholds = np.unique(np.geomspace(smallest_size, largest_size, NUM_FIRST_CELLS + 1))
    thresholds[0], thresholds[-1] = smallest_size, largest_size
    # A heap of cells [h1, h2], each behind the lower bound on the error in it.
    open_cells: list[tuple[float, float, float]] = []
    error_by_h: dict[float, float] = {}
    for cell_start, cell_stop in pairwise(thresholds.tolist()):
        error_by_h[cell_start] = compute_error_at(cell_start)
        heapq.heappush(open_cells, (bound_error_between(cell_start, cell_stop), cell_start, cell_stop))
    # Above the largest size the weights are constant, so it is solved without a cell.
    error_by_h[largest_size] = compute_error_at(largest_size)
    num_passes, best_threshold = thresholds.size, min(error_by_h, key=error_by_h.__getitem__)
    while (
        open_cells
        and open_cells[0][0] * (1.0 + SEARCH_TOLERANCE) < error_by_h[best_threshold]
        and num_passes < MAX_PASSES
        and not should_stop()
    ):
        _, cell_start, cell_stop = heapq.heappop(open_cells)
        midpoint = math.sqrt(cell_start * cell_stop)
        if cell_start < midpoint < cell_stop:  # Else it is a cell of one number, which is already solved.
            error_by_h[midpoint] = compute_error_at(midpoint)
            for left_end, right_end in ((midpoint, cell_stop), (cell_start, midpoint)):
                heapq.heappush(open_cells, (bound_error_between(left_end, right_end), left_end, right_end))
            num_passes += 2
            best_threshold = min(best_threshold, midpoint, key=error_by_h.__getitem__)
        progress(min(num_passes / MAX_PASSES, 1.0))
    return best_threshold, open_cells[0][0] if open_cells else math.inf
