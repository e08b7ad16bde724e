"""Branch and bound with a certificate, and a search for the least noise within a budget.

Branch and bound minimises a falling part plus a rising part, with a certificate and without a grid.
For f = fall + rise with fall never rising and rise never falling, every x in [a, b] has
f(x) >= fall(b) + rise(a); the largest of several such f is at least the largest of these. Intervals are halved
(geometrically) until each bound is good enough; no derivative, convexity or single valley is assumed.
`move_to_kink` then moves the minimum onto a kink that is no higher.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpcore.common.checks import refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, build_log_grid

FIRST_POINTS = 33
"""Points of the first look: one call on so many costs hardly more than on one, and saves the first rounds."""

KINK_FACTOR = 1.01
"""A kink is looked for within this factor of what the search found: at a tolerance of 1e-6 it ends that near."""

KINK_POINTS, KINK_ROUNDS = 17, 7
"""Points per look and looks; each narrows the place eightfold, to 1e-8 relative in the end."""

KINK_TIE = 1e-14
"""Relative difference of two values that rounding alone explains; the kink is then taken."""

STRETCH_ROUNDS = 300
"""Looks along a stretch, on either side; each narrows its end about thirtyfold."""


class ObjectiveParts(NamedTuple):
    """An objective at some points, in its parts; each of the shape of the points.

    For the maximum of several objectives, each part has shape (objectives, points).

    Attributes:
        falling: The part that never rises; infinite where nothing is promised.
        falling_at_least: The same part less an allowance for rounding, for use in lower bounds.
        rising: The part that never falls.
    """

    falling: FloatArray
    falling_at_least: FloatArray
    rising: FloatArray

    @property
    def values(self) -> FloatArray:
        """Return the objective, shape (points,)."""
        return _largest_objective(self.falling + self.rising)


def _largest_objective(values: FloatArray) -> FloatArray:
    """Return the largest of several objectives (first axis) at each point, shape (points,); a vector as it is."""
    return values if values.ndim < 2 else np.asarray(values.max(axis=0))


@dataclass(frozen=True)
class Minimum:
    """The smallest value that a search saw, where, and a lower bound on all values.

    Attributes:
        minimiser: Where the smallest value was seen.
        value: Objective there.
        lower_bound: No point of the range goes below it.
        num_evaluations: Points at which the objective was computed.
        stop_reason: Why it ended before the tolerance was reached, in words; empty where it was.
    """

    minimiser: float
    value: float
    lower_bound: float
    num_evaluations: int
    stop_reason: str


class _Intervals(NamedTuple):
    """Open intervals, one entry each: their ends, the objective at both, and their lower bound."""

    left_ends: FloatArray
    right_ends: FloatArray
    parts_at_left: ObjectiveParts
    parts_at_right: ObjectiveParts

    def take(self, interval_indices: np.ndarray) -> _Intervals:
        """Return the intervals at these indices, or where a mask is True."""
        end_parts = (
            _select_points(parts, interval_indices) for parts in (self.parts_at_left, self.parts_at_right)
        )
        return _Intervals(self.left_ends[interval_indices], self.right_ends[interval_indices], *end_parts)


def _select_points(point_parts: ObjectiveParts, point_indices: np.ndarray | slice) -> ObjectiveParts:
    """Return the parts of an objective at some of its points."""
    return ObjectiveParts(*(objective_part[..., point_indices] for objective_part in point_parts))


def _join_parts(first_parts: ObjectiveParts, second_parts: ObjectiveParts) -> ObjectiveParts:
    """Return the parts of an objective at the points of the first parts, then of the second."""
    part_pairs = zip(first_parts, second_parts, strict=True)
    return ObjectiveParts(*(np.concatenate(part_pair, axis=-1) for part_pair in part_pairs))


def minimise(
    compute_parts: Callable[[FloatArray], ObjectiveParts],
    low: float,
    high: float,
    *,
    is_integer: bool,
    tolerance: float,
    first_points: FloatArray | None = None,
    max_evaluations: int = 4_000_000,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Minimum:
    """Minimise a falling plus a rising part on [low, high], to a relative tolerance unless it is stopped before.

    Args:
        compute_parts: The objective in its parts, vectorised over ascending points.
        low: Lower end, above 0 (whole where ``is_integer``).
        high: Upper end, at least ``low``.
        is_integer: Only whole numbers are allowed; neighbouring ones then need no bound.
        tolerance: Relative gap at which an interval is left alone.
        first_points: Points to begin with, ascending from ``low`` to ``high``; `FIRST_POINTS` log-spaced ones where
            not given.
        max_evaluations: The search ends, with the bound it has, before it computes more points than this.
        progress: Told the settled share of the range (log scale), from 0 to 1.
        should_stop: Asked before each round; the bound so far is returned where it says yes.

    Returns:
        `Minimum`; among equal values seen first the smallest point.
    """
    points = build_log_grid(low, high, FIRST_POINTS) if first_points is None else first_points
    if is_integer:
        points = np.unique(np.clip(np.rint(points), low, high))
    parts_at_points = compute_parts(points)
    point_values = parts_at_points.values
    best_index = int(np.argmin(point_values))
    best_point, best_value = float(points[best_index]), float(point_values[best_index])
    parts_at_left, parts_at_right = (_select_points(parts_at_points, s) for s in (slice(-1), slice(1, None)))
    intervals = _Intervals(points[:-1], points[1:], parts_at_left, parts_at_right)
    # A single point is its own proof.
    proved_bound = best_value if points.size == 1 else math.inf
    num_evaluations, stop_reason = points.size, ""
    log_search_length = math.log(high / low) or 1.0  # Progress is a share of it; of a single point it is 0.
    while intervals.left_ends.size:
        # The one inequality that the proof rests on; less the rounding of the falling part, it holds in float64 too.
        rising_at_left = intervals.parts_at_left.rising
        lower_bounds = _largest_objective(intervals.parts_at_right.falling_at_least + rising_at_left)
        # Two roots and not the root of a product, which could overflow.
        midpoints = np.sqrt(intervals.left_ends) * np.sqrt(intervals.right_ends)
        if is_integer:
            # Strictly inside, so that each half is smaller; between neighbours it falls on the right end and is
            # seen next.
            smallest_midpoints = intervals.left_ends + 1.0
            largest_midpoints = np.maximum(intervals.right_ends - 1.0, smallest_midpoints)
            midpoints = np.clip(np.floor(midpoints), smallest_midpoints, largest_midpoints)
        unsplittable_mask = (midpoints <= intervals.left_ends) | (midpoints >= intervals.right_ends)
        if is_integer:  # Neighbours: both values are known, nothing lies between.
            smaller_end_values = np.minimum(intervals.parts_at_left.values, intervals.parts_at_right.values)
            lower_bounds = np.where(unsplittable_mask, smaller_end_values, lower_bounds)
        # Ends with nothing between them in float64 cannot be halved: they settle with the bound they have.
        settled_interval_mask = unsplittable_mask | (lower_bounds >= best_value * (1.0 - tolerance))
        # A settled interval keeps its bound: the lower bound is the smallest of them.
        if settled_interval_mask.any():
            proved_bound = min(proved_bound, float(lower_bounds[settled_interval_mask].min()))
        intervals = intervals.take(~settled_interval_mask)
        midpoints, lower_bounds = midpoints[~settled_interval_mask], lower_bounds[~settled_interval_mask]
        progress(
            1.0
            - min(1.0, float(np.sum(np.log(intervals.right_ends / intervals.left_ends))) / log_search_length)
        )
        if not intervals.left_ends.size:
            break
        if should_stop():
            stop_reason = "stopped on request"
        elif num_evaluations + midpoints.size > max_evaluations:
            stop_reason = f"stopped after {num_evaluations:,} points"
        if stop_reason:  # Open intervals count with the bound they have: less is proved, but nothing wrong.
            proved_bound = min(proved_bound, float(lower_bounds.min()))
            break
        parts_at_points = compute_parts(midpoints)
        num_evaluations += midpoints.size
        point_values = parts_at_points.values
        best_index = int(np.argmin(point_values))
        if float(point_values[best_index]) < best_value:
            best_point, best_value = float(midpoints[best_index]), float(point_values[best_index])
        intervals = _Intervals(
            np.concatenate((intervals.left_ends, midpoints)),
            np.concatenate((midpoints, intervals.right_ends)),
            _join_parts(intervals.parts_at_left, parts_at_points),
            _join_parts(parts_at_points, intervals.parts_at_right),
        )
        intervals = intervals.take(
            np.argsort(intervals.left_ends)
        )  # `compute_parts` is promised ascending points.
    return Minimum(best_point, best_value, proved_bound, num_evaluations, stop_reason)


def move_to_kink(
    compute_parts: Callable[[FloatArray], ObjectiveParts],
    minimum: Minimum,
    list_kinks_around: Callable[[float], FloatArray],
    lowest_point: float,
    highest_point: float,
) -> Minimum:
    """Move a minimum inside the range to the lowest point near it, then onto a kink beside it if that is no higher.

    A search ends within its tolerance of the smallest value, hence a little beside a kink that has it. A quantity
    that jumps at kinks, such as a number of users above the cap, would be off by one there.

    Args:
        compute_parts: The objective in its parts, vectorised over ascending points.
        minimum: From `minimise`; at either end of the range it is left as it is.
        list_kinks_around: The kinks on either side of a point, exactly as the objective has them.
        lowest_point: Lower end of the range.
        highest_point: Upper end.

    Returns:
        The same with a value no higher (up to rounding), and the same lower bound, which holds everywhere.
    """
    best_point, best_value, num_evaluations = minimum.minimiser, minimum.value, minimum.num_evaluations
    if not lowest_point < best_point < highest_point:
        return minimum
    left_end, right_end = (
        max(best_point / KINK_FACTOR, lowest_point),
        min(best_point * KINK_FACTOR, highest_point),
    )
    for _ in range(KINK_ROUNDS):
        best_and_kinks = best_point, *list_kinks_around(best_point)
        nearby_points = build_log_grid(left_end, right_end, KINK_POINTS, best_and_kinks)
        parts_at_points = compute_parts(nearby_points)
        num_evaluations += nearby_points.size
        objective_values = parts_at_points.values
        best_index = int(np.argmin(objective_values))
        if float(objective_values[best_index]) < best_value:
            best_point, best_value = float(nearby_points[best_index]), float(objective_values[best_index])
        best_index = int(np.searchsorted(nearby_points, best_point))
        # The neighbours of the lowest point enclose a valley. More is not claimed: the lower bound is that of the
        # search.
        neighbour_indices = max(best_index - 1, 0), min(best_index + 1, nearby_points.size - 1)
        left_end, right_end = (float(nearby_points[neighbour_index]) for neighbour_index in neighbour_indices)
    clipped_kinks = np.unique(np.clip(list_kinks_around(best_point), lowest_point, highest_point))
    parts_at_points = compute_parts(clipped_kinks)
    objective_values = parts_at_points.values
    best_index = int(np.argmin(objective_values))
    if float(objective_values[best_index]) <= best_value * (1.0 + KINK_TIE):
        best_point, best_value = float(clipped_kinks[best_index]), float(objective_values[best_index])
    num_evaluations += clipped_kinks.size
    return replace(minimum, minimiser=best_point, value=best_value, num_evaluations=num_evaluations)


def find_interval_within(
    compute_parts: Callable[[FloatArray], ObjectiveParts],
    minimiser: float,
    low: float,
    high: float,
    limit: float,
) -> tuple[float, float]:
    """Find the interval of integers around the minimiser on which the objective is proved within a limit.

    On [a, b] the objective is at most fall(a) + rise(b), so that no single valley has to be assumed.

    Args:
        compute_parts: The objective in its parts, vectorised over ascending points.
        minimiser: A whole number in [low, high] at which the objective is within the limit.
        low: Smallest whole number allowed, above 0.
        high: Largest.
        limit: Largest value tolerated.

    Returns:
        (lowest, highest): every whole number from the one to the other is within the limit. The next one
        outside is not, unless ``low`` or ``high`` is reached (or, beyond 1e15, float64's resolution).
    """
    return _find_interval_end(compute_parts, minimiser, low, limit), _find_interval_end(
        compute_parts, minimiser, high, limit
    )


def _find_interval_end(
    compute_parts: Callable[[FloatArray], ObjectiveParts],
    first_end: float,
    last_end: float,
    objective_limit: float,
) -> float:
    """Find the last integer from ``first_end`` to ``last_end`` up to which the objective is proved within the limit."""
    # A stack of targets: if the way to one is not proved, a nearer one is tried first.
    proved_end, target_stack = first_end, [last_end]
    for _ in range(STRETCH_ROUNDS):
        if not target_stack:
            break
        low, high = min(proved_end, target_stack[-1]), max(proved_end, target_stack[-1])
        segment_points = np.unique(np.clip(np.rint(build_log_grid(low, high, FIRST_POINTS)), low, high))
        parts_at_points = compute_parts(segment_points)
        values = parts_at_points.values
        empty_mask = (np.diff(segment_points) <= 1.0) | (segment_points.size == 2)
        interval_bounds = parts_at_points.falling[:-1] + parts_at_points.rising[1:]
        upper_bounds = np.where(empty_mask, np.maximum(values[:-1], values[1:]), interval_bounds)
        within_mask = upper_bounds <= objective_limit
        if last_end < first_end:
            segment_points, within_mask = segment_points[::-1], within_mask[::-1]
            empty_mask = empty_mask[::-1]
        if within_mask.all():
            proved_end = target_stack.pop()
            continue
        # The first interval that is not proved. A value above the limit ends the stretch; a poor bound asks for a
        # closer look.
        unproved_index = int(np.argmin(within_mask))
        proved_end = float(segment_points[unproved_index])
        if empty_mask[unproved_index]:
            break
        target_stack.append(float(segment_points[unproved_index + 1]))
    return proved_end


MAX_EVALUATIONS, MAX_LOG_NOISE = 60, 300.0
"""Looks, and the logarithm of the noise, beyond which there is none to be found."""
MAX_LOG_RATIO = 10.0
"""Logarithm of what is spent over the budget, up or down, beyond which it is all the same for a chord."""


def find_least_noise(
    compute_epsilon: Callable[[float], float], epsilon: float, first_sigma: float, tolerance: float
) -> float:
    """Find the least noise that spends at most ``epsilon``, from above and to a relative tolerance.

    ``compute_epsilon`` falls; its logarithm over that of the noise is nearly straight, so that a chord finds the root
    soon. A stale end is halved (Illinois).

    Args:
        compute_epsilon: From the noise, above 0, to the ε that it spends.
        epsilon: The budget.
        first_sigma: Of the noise; the nearer, the fewer looks.
        tolerance: Relative, of the noise.

    Raises:
        InvalidInput: No such noise was found.
    """
    log_epsilon = math.log(epsilon)

    def compute_log_excess(log_sigma: float) -> float:
        """Return log(spent epsilon / budget), limited to ±`MAX_LOG_RATIO`."""
        # Kept within what chords can be drawn with: nothing at all may be spent, or more than a number holds.
        log_ratio = math.log(max(compute_epsilon(math.exp(log_sigma)), 1e-300)) - log_epsilon
        return min(max(log_ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO)

    log_guess = math.log(first_sigma)
    low_log_noise = high_log_noise = log_guess
    excess_at_low = excess_at_high = compute_log_excess(log_guess)
    num_calls_left, log_stride = MAX_EVALUATIONS, 0.1
    while excess_at_high > 0.0 and num_calls_left and high_log_noise < MAX_LOG_NOISE:
        low_log_noise, excess_at_low = high_log_noise, excess_at_high
        high_log_noise += max(min(excess_at_high, 3.0), log_stride)
        excess_at_high = compute_log_excess(high_log_noise)
        log_stride, num_calls_left = 2.0 * log_stride, num_calls_left - 1
    while excess_at_low <= 0.0 and num_calls_left and low_log_noise > -MAX_LOG_NOISE:
        high_log_noise, excess_at_high = low_log_noise, excess_at_low
        low_log_noise -= max(min(-excess_at_low, 3.0), log_stride)
        excess_at_low = compute_log_excess(low_log_noise)
        log_stride, num_calls_left = 2.0 * log_stride, num_calls_left - 1
    if excess_at_low <= 0.0 or excess_at_high > 0.0:
        remedy = "Take another ε, or fewer steps where there are some"
        raise refuse("no noise was found that keeps ε with these settings", remedy=remedy)
    chord_at_low, chord_at_high, last_side = excess_at_low, excess_at_high, 0
    while high_log_noise - low_log_noise > tolerance and excess_at_high < -tolerance / 4.0 and num_calls_left:
        # Aimed a little above the root: the safe end is the one that is returned.
        root_share = chord_at_low / (chord_at_low - chord_at_high)
        # Away from both ends, so that every look shortens the interval.
        midpoint = low_log_noise + (high_log_noise - low_log_noise) * min(max(root_share, 0.02), 0.98)
        midpoint += tolerance / 4.0
        midpoint = min(midpoint, high_log_noise - 1e-3 * (high_log_noise - low_log_noise))
        excess_at_middle, num_calls_left = compute_log_excess(midpoint), num_calls_left - 1
        if excess_at_middle <= 0.0:
            high_log_noise, excess_at_high, chord_at_high = midpoint, excess_at_middle, excess_at_middle
            chord_at_low *= 0.5 if last_side == 1 else 1.0
            last_side = 1
        else:
            low_log_noise, excess_at_low, chord_at_low = midpoint, excess_at_middle, excess_at_middle
            chord_at_high *= 0.5 if last_side == -1 else 1.0
            last_side = -1
    return math.exp(high_log_noise)
