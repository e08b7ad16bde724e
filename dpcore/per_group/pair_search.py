"""A local search over integer pairs of bounds, where no lower bound is known; it proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from dpcore.common.progress import ShouldStop, never

MAX_ENUMERATED = 300
"""Number of pairs of bounds up to which all are evaluated."""
MIN_RATIO = 1.0 + 1e-9
"""Ratio at which all steps go to the next integers."""


def search_pairs(
    error: Callable[[int, int], float],
    largest: tuple[int, int],
    points: tuple[int, int],
    ratio: float,
    should_stop: ShouldStop = never,
) -> tuple[dict[tuple[int, int], float], bool]:
    """Evaluate all pairs if they are few, else a grid, and steps of decreasing size around the best pair.

    Args:
        error: The error of a pair (L0, L-infinity).
        largest: The largest value of both; the smallest is 1.
        points: Number of values of both in the grid.
        ratio: First ratio of the steps, above 1. It falls when no step helps.
        should_stop: Called before every evaluation but the first; True ends the search.

    Returns:
        The errors of the evaluated pairs, and True if the search was not stopped. Then no neighbour of the best pair
        is better.
    """
    errors: dict[tuple[int, int], float] = {}
    is_stopped = False

    def evaluate(groups: int, amount: int) -> float:
        nonlocal is_stopped
        pair = groups, amount
        if pair not in errors:
            is_stopped = is_stopped or (bool(errors) and should_stop())
            if is_stopped:
                return math.inf
            errors[pair] = error(*pair)
        return errors[pair]

    if math.prod(largest) <= MAX_ENUMERATED:
        grid = product(range(1, largest[0] + 1), range(1, largest[1] + 1))
    else:
        grid = product(space_evenly(largest[0], points[0]), space_evenly(largest[1], points[1]))
    for groups, amount in grid:
        evaluate(groups, amount)
    while not is_stopped:
        best = min(errors, key=errors.__getitem__)
        best_error = errors[best]
        steps = product(_step_from(best[0], ratio, largest[0]), _step_from(best[1], ratio, largest[1]))
        if min(evaluate(groups, amount) for groups, amount in steps) >= best_error:
            if ratio == MIN_RATIO:
                break
            ratio = math.sqrt(ratio) if ratio > 1.001 else MIN_RATIO
    return errors, not is_stopped


def _step_from(bound: int, ratio: float, largest: int) -> list[int]:
    """Return the bound and those beside it, in this ratio but at least 1 away, within 1 and ``largest``."""
    candidates = (min(round(bound / ratio), bound - 1), bound, max(round(bound * ratio), bound + 1))
    return [min(max(value, 1), largest) for value in candidates]


def space_evenly(largest: int, count: int) -> list[int]:
    """Return at most ``count`` integers from 1 to ``largest``, evenly spaced on a log axis."""
    integers = np.unique(np.rint(np.geomspace(1.0, max(largest, 1), count)))
    return [int(value) for value in integers]
