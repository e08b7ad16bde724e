"""Branch and bound for a falling part plus a rising part: the smallest value, proved, without a grid.

For f = fall + rise with fall never rising and rise never falling, every x in [a, b] has
f(x) >= fall(b) + rise(a); the largest of several such f is at least the largest of these. Intervals are halved
(geometrically) until each bound is good enough; no derivative, convexity or single valley is assumed. `at_the_kink`
then moves what was found onto a kink that is no higher.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, log_spaced

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


class Split(NamedTuple):
    """An objective at some points, in its parts; each of the shape of the points.

    Of several objectives, the largest of which is meant, each part has shape (objectives, points).

    Attributes:
        falling: The part that never rises; infinite where nothing is promised.
        falling_at_least: The same less an allowance for rounding, for use in lower bounds.
        rising: The part that never falls.
    """

    falling: FloatArray
    falling_at_least: FloatArray
    rising: FloatArray

    @property
    def values(self) -> FloatArray:
        """The objective, shape (points,)."""
        return _largest(self.falling + self.rising)


def _largest(values: FloatArray) -> FloatArray:
    """Over the objectives, where they are several."""
    return values if values.ndim < 2 else np.asarray(values.max(axis=0))


@dataclass(frozen=True)
class Minimum:
    """What the search found.

    Attributes:
        argument: Where the smallest value was seen.
        value: Objective there.
        lower_bound: No point of the range goes below it.
        evaluations: Points at which the objective was computed.
        stopped: Why it ended before the tolerance was reached, in words; empty where it was.
    """

    argument: float
    value: float
    lower_bound: float
    evaluations: int
    stopped: str


class _Ends(NamedTuple):
    """Open intervals, one entry each: their ends, the objective at both, and their lower bound."""

    left: FloatArray
    right: FloatArray
    at_left: Split
    at_right: Split

    def take(self, which: np.ndarray) -> _Ends:
        return _Ends(
            self.left[which],
            self.right[which],
            Split(*(part[..., which] for part in self.at_left)),
            Split(*(part[..., which] for part in self.at_right)),
        )


def _join(first: Split, second: Split) -> Split:
    return Split(*(np.concatenate(pair, axis=-1) for pair in zip(first, second, strict=True)))


def minimise(
    split: Callable[[FloatArray], Split],
    low: float,
    high: float,
    *,
    whole: bool,
    tolerance: float,
    first: FloatArray | None = None,
    max_evaluations: int = 4_000_000,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Minimum:
    """The smallest value of a falling plus a rising part on [low, high], to a relative tolerance.

    Args:
        split: The objective in its parts, vectorised over ascending points.
        low: Lower end, above 0 (whole where ``whole``).
        high: Upper end, at least ``low``.
        whole: Only whole numbers are allowed; neighbouring ones then need no bound.
        tolerance: Relative gap at which an interval is left alone.
        first: Points to begin with, ascending from ``low`` to ``high``; `FIRST_POINTS` log-spaced ones where not given.
        max_evaluations: The search ends, with the bound it has, before it computes more points than this.
        progress: Told the settled share of the range (log scale), from 0 to 1.
        should_stop: Asked before each round; the bound so far is returned where it says yes.

    Returns:
        `Minimum`; among equal values seen first the smallest point.
    """
    points = log_spaced(low, high, FIRST_POINTS) if first is None else first
    if whole:
        points = np.unique(np.clip(np.rint(points), low, high))
    at = split(points)
    values = at.values
    spot = int(np.argmin(values))
    argument, value = float(points[spot]), float(values[spot])
    ends = _Ends(points[:-1], points[1:], Split(*(p[..., :-1] for p in at)), Split(*(p[..., 1:] for p in at)))
    # A single point is its own proof.
    proved, evaluations, stopped = (value if points.size == 1 else math.inf), points.size, ""
    length = math.log(high / low) or 1.0  # Progress is a share of it; of a single point it is 0.
    while ends.left.size:
        # The one inequality that the proof rests on; less the rounding of the falling part, it holds in float64 too.
        bounds = _largest(ends.at_right.falling_at_least + ends.at_left.rising)
        # Two roots and not the root of a product, which could overflow.
        middle = np.sqrt(ends.left) * np.sqrt(ends.right)
        if whole:
            # Strictly inside, so that each half is smaller; between neighbours it falls on the right end and is
            # seen next.
            middle = np.clip(np.floor(middle), ends.left + 1.0, np.maximum(ends.right - 1.0, ends.left + 1.0))
        unsplit = (middle <= ends.left) | (middle >= ends.right)
        if whole:  # Neighbours: both values are known, nothing lies between.
            bounds = np.where(unsplit, np.minimum(ends.at_left.values, ends.at_right.values), bounds)
        # Ends with nothing between them in float64 cannot be halved: they settle with the bound they have.
        settled = unsplit | (bounds >= value * (1.0 - tolerance))
        # What is left alone keeps its bound: the proof is the smallest bound of all intervals that were.
        if settled.any():
            proved = min(proved, float(bounds[settled].min()))
        ends, middle, bounds = ends.take(~settled), middle[~settled], bounds[~settled]
        progress(1.0 - min(1.0, float(np.sum(np.log(ends.right / ends.left))) / length))
        if not ends.left.size:
            break
        if should_stop():
            stopped = "stopped on request"
        elif evaluations + middle.size > max_evaluations:
            stopped = f"stopped after {evaluations:,} points"
        if stopped:  # Open intervals count with the bound they have: less is proved, but nothing wrong.
            proved = min(proved, float(bounds.min()))
            break
        at = split(middle)
        evaluations += middle.size
        values = at.values
        spot = int(np.argmin(values))
        if float(values[spot]) < value:
            argument, value = float(middle[spot]), float(values[spot])
        ends = _Ends(
            np.concatenate((ends.left, middle)),
            np.concatenate((middle, ends.right)),
            _join(ends.at_left, at),
            _join(at, ends.at_right),
        )
        ends = ends.take(np.argsort(ends.left))  # `split` is promised ascending points.
    return Minimum(argument, value, proved, evaluations, stopped)


def at_the_kink(
    split: Callable[[FloatArray], Split],
    found: Minimum,
    kinks_around: Callable[[float], FloatArray],
    low: float,
    high: float,
) -> Minimum:
    """What `minimise` found on real numbers, moved to the lowest point near it, and onto a kink that is as low.

    A search ends within its tolerance of the smallest value, hence a little beside a kink that has it. What
    jumps at kinks, a number of users above the cap, say, would be off by one there.

    Args:
        split: The objective in its parts, vectorised over ascending points.
        found: From `minimise`; at either end of the range it is left as it is.
        kinks_around: The kinks on either side of a point, exactly as the objective has them.
        low: Lower end of the range.
        high: Upper end.

    Returns:
        The same with a value no higher (up to rounding), and the same lower bound, which holds everywhere.
    """
    argument, value, evaluations = found.argument, found.value, found.evaluations
    if not low < argument < high:
        return found
    left, right = max(argument / KINK_FACTOR, low), min(argument * KINK_FACTOR, high)
    for _ in range(KINK_ROUNDS):
        points = log_spaced(left, right, KINK_POINTS, extra=(argument, *kinks_around(argument)))
        at = split(points)
        evaluations += points.size
        values = at.values
        spot = int(np.argmin(values))
        if float(values[spot]) < value:
            argument, value = float(points[spot]), float(values[spot])
        spot = int(np.searchsorted(points, argument))
        # The neighbours of the lowest point enclose a valley. More is not claimed: the lower bound is that of the
        # search.
        left, right = float(points[max(spot - 1, 0)]), float(points[min(spot + 1, points.size - 1)])
    kinks = np.unique(np.clip(kinks_around(argument), low, high))
    at = split(kinks)
    values = at.values
    spot = int(np.argmin(values))
    if float(values[spot]) <= value * (1.0 + KINK_TIE):
        argument, value = float(kinks[spot]), float(values[spot])
    return replace(found, argument=argument, value=value, evaluations=evaluations + kinks.size)


def stretch_within(
    split: Callable[[FloatArray], Split], best: float, low: float, high: float, limit: float
) -> tuple[float, float]:
    """The whole numbers around ``best`` on which a falling plus a rising part stays within a limit, proved.

    On [a, b] the objective is at most fall(a) + rise(b), so that no single valley has to be assumed.

    Args:
        split: The objective in its parts, vectorised over ascending points.
        best: A whole number in [low, high] at which the objective is within the limit.
        low: Smallest whole number allowed, above 0.
        high: Largest.
        limit: Largest value tolerated.

    Returns:
        (lowest, highest): every whole number from the one to the other is within the limit. The next one
        outside is not, unless ``low`` or ``high`` is reached (or, beyond 1e15, float64's resolution).
    """
    return _stretch_end(split, best, low, limit), _stretch_end(split, best, high, limit)


def _stretch_end(split: Callable[[FloatArray], Split], start: float, end: float, limit: float) -> float:
    """How far the stretch goes from ``start`` toward ``end``."""
    # A stack of ends: where the way to one is not proved, a nearer one is looked at first.
    reached, waiting = start, [end]
    for _ in range(STRETCH_ROUNDS):
        if not waiting:
            break
        low, high = min(reached, waiting[-1]), max(reached, waiting[-1])
        points = np.unique(np.clip(np.rint(log_spaced(low, high, FIRST_POINTS)), low, high))
        at = split(points)
        values = at.values
        nothing_between = (np.diff(points) <= 1.0) | (points.size == 2)
        most = np.where(nothing_between, np.maximum(values[:-1], values[1:]), at.falling[:-1] + at.rising[1:])
        fine = most <= limit
        if end < start:
            points, fine, nothing_between = points[::-1], fine[::-1], nothing_between[::-1]
        if fine.all():
            reached = waiting.pop()
            continue
        # The first interval that is not proved. A value above the limit ends the stretch; a poor bound asks for a
        # closer look.
        step = int(np.argmin(fine))
        reached = float(points[step])
        if nothing_between[step]:
            break
        waiting.append(float(points[step + 1]))
    return reached
