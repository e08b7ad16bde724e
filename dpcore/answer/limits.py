"""Limits of axes that fit their data."""

from __future__ import annotations

import math

import numpy as np

from dpcore.contributions import FloatArray

Limits = tuple[float, float]
"""The two ends of an axis, in its own unit."""
MARGIN = 1.1
"""Factor between the curves and the ends of an axis that follows them."""
MAX_PART_RATIO = 30.0
"""A part of an error this many times smaller than the least error need not be seen on its axis."""
LEAST_SHARE_LIMIT = 0.01
"""The smallest upper end of an axis of shares."""


def fit_limits(values: FloatArray, error_part_values: FloatArray | None = None) -> Limits:
    """Return the limits of a log axis around the values, each 1, 2 or 5 times a power of ten; (1, 10) without values.

    Args:
        values: The values that must be visible, of any shape; only finite ones above 0 count.
        error_part_values: The parts of ``values``, of any shape; those more than `MAX_PART_RATIO` times smaller than
            the smallest value may leave the axis at its lower end.
    """
    positive_values = values[np.isfinite(values) & (values > 0.0)]
    if not positive_values.size:
        return 1.0, 10.0
    min_positive, max_positive = float(positive_values.min()), float(positive_values.max())
    if error_part_values is not None:
        min_positive = float(
            error_part_values[error_part_values > min_positive / MAX_PART_RATIO].min(initial=min_positive)
        )
    return _round_limit(min_positive / MARGIN, rounds_up=False), _round_limit(
        max_positive * MARGIN, rounds_up=True
    )


def _round_limit(unrounded_limit: float, rounds_up: bool) -> float:
    """Round a value above 0 to 1, 2 or 5 times a power of ten, up or down."""
    power_of_ten = 10.0 ** math.floor(math.log10(unrounded_limit))
    round_values = [factor * power_of_ten for factor in (1.0, 2.0, 5.0, 10.0)]
    if rounds_up:
        return min(round_value for round_value in round_values if round_value >= unrounded_limit)
    return max(round_value for round_value in round_values if round_value <= unrounded_limit)


def linear_limits(values: FloatArray, includes_zero: bool = False) -> Limits:
    """Return the limits of a linear axis: finite values and a tenth beyond; (-0.1, 1.1) without values.

    ``includes_zero`` makes 0 and `LEAST_SHARE_LIMIT` lie within them.
    """
    finite_values = values[np.isfinite(values)]
    lowest_and_highest = (finite_values.min(), finite_values.max()) if finite_values.size else (0, 1)
    smallest_value, largest_value = map(float, lowest_and_highest)
    if includes_zero:
        return min(1.1 * smallest_value, 0.0), max(1.1 * largest_value, LEAST_SHARE_LIMIT)
    margin_length = 0.1 * (largest_value - smallest_value) or 0.1 * abs(largest_value) or 1.0
    return smallest_value - margin_length, largest_value + margin_length
