"""Round numbers for what fields begin with."""

from __future__ import annotations

import math

from dpcore.common.checks import VALUE_BOUND_RANGE

DEFAULT_VALUE_BOUNDS = (0.0, 1.0)
"""Values in [0, 1], as shares and answers of yes or no are."""


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Round bounds that contain [low, high]: 0 where they fit, else 1, 2 or 5 times a power of ten."""
    tiny, huge = VALUE_BOUND_RANGE
    lower = 0.0 if low > -tiny else -next_round(min(-low, huge / 2.0))
    upper = 0.0 if high < tiny else next_round(min(high, huge / 2.0))
    return (lower, upper) if lower < upper else (lower, lower + 1.0)


def next_round(value: float) -> float:
    """Smallest number of the form 1, 2 or 5 times a power of ten that is at least ``value`` > 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * step for step in (1.0, 2.0, 5.0) if power * step >= value), 10.0 * power)
