"""Where curves over a bound are drawn, and on which axis. Pure: a histogram in, numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced
from pages.shared import ranges

CURVE_POINTS = 240


def curve_bounds(histogram: ContributionHistogram, points: int = CURVE_POINTS) -> FloatArray:
    """Bounds to draw: log-spaced from s_1 to s_m, all sizes where they are few.

    Where all users have equally many rows the curve is drawn to twice that size, since there is nothing
    between s_1 and s_m.
    """
    low, high = float(histogram.min_size), float(histogram.max_size)
    sizes = histogram.sizes.astype(np.float64)
    return log_spaced(low, max(high, 2.0 * low), points, extra=list(sizes) if sizes.size <= 60 else ())


BOUND_AXIS = "Bound h: cap or threshold (rows per user)"


def bound_steps(histogram: ContributionHistogram) -> tuple[int, ...]:
    """Bounds for the slider: 1, 2 and 5 times powers of ten, up to the heaviest user."""
    rungs = [int(rung) for rung in ranges.ladder(1.0, max(float(histogram.max_size), 2.0)) if rung >= 1]
    return (*(rung for rung in rungs if rung < histogram.max_size), histogram.max_size)


def first_bound(histogram: ContributionHistogram) -> int:
    """Where the slider stands at first: the step nearest to the median, which many take without asking."""
    median = histogram.summary().median
    return min(bound_steps(histogram), key=lambda step: abs(math.log(step / median)))
