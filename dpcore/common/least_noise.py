"""The least noise that keeps a budget, with few calls of an accountant that takes milliseconds or more for each."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcore.common.errors import refuse

MAX_EVALUATIONS, MAX_LOG_NOISE = 60, 300.0
"""Looks, and the logarithm of the noise, beyond which there is none to be found."""
MAX_LOG_RATIO = 10.0
"""Logarithm of what is spent over the budget, up or down, beyond which it is all the same for a chord."""


def find_least_noise(
    compute_epsilon: Callable[[float], float], epsilon: float, guess: float, tolerance: float
) -> float:
    """Find the least noise that spends at most ``epsilon``, from above: the accountant confirmed it.

    ``compute_epsilon`` falls; its logarithm over that of the noise is nearly straight, so that a chord finds
    the root soon. A stale end is halved (Illinois).

    Args:
        compute_epsilon: From the noise, above 0, to the ε that it spends.
        epsilon: The budget.
        guess: Of the noise; the nearer, the fewer looks.
        tolerance: Relative, of the noise.

    Raises:
        InvalidInput: No such noise was found.
    """
    target = math.log(epsilon)

    def log_excess(log_sigma: float) -> float:
        # Kept within what chords can be drawn with: nothing at all may be spent, or more than a number holds.
        return min(
            max(math.log(max(compute_epsilon(math.exp(log_sigma)), 1e-300)) - target, -MAX_LOG_RATIO),
            MAX_LOG_RATIO,
        )

    log_guess = math.log(guess)
    value = log_excess(log_guess)
    low = high = log_guess
    value_at_low = value_at_high = value
    calls_left, stride = MAX_EVALUATIONS, 0.1
    while value_at_high > 0.0 and calls_left and high < MAX_LOG_NOISE:
        low, value_at_low = high, value_at_high
        high += max(min(value_at_high, 3.0), stride)
        value_at_high, stride, calls_left = log_excess(high), 2.0 * stride, calls_left - 1
    while value_at_low <= 0.0 and calls_left and low > -MAX_LOG_NOISE:
        high, value_at_high = low, value_at_low
        low -= max(min(-value_at_low, 3.0), stride)
        value_at_low, stride, calls_left = log_excess(low), 2.0 * stride, calls_left - 1
    if value_at_low <= 0.0 or value_at_high > 0.0:
        raise refuse(
            "no noise was found that keeps ε with these settings",
            "",
            "Take another ε, or fewer steps where there are some",
        )
    weight_low, weight_high, side = value_at_low, value_at_high, 0
    while high - low > tolerance and value_at_high < -tolerance / 4.0 and calls_left:
        # Aimed a little above the root: the safe end is the one that is returned.
        share = weight_low / (weight_low - weight_high)
        # Away from both ends, so that every look shortens the interval.
        midpoint = low + (high - low) * min(max(share, 0.02), 0.98) + tolerance / 4.0
        midpoint = min(midpoint, high - 1e-3 * (high - low))
        value_at_middle, calls_left = log_excess(midpoint), calls_left - 1
        if value_at_middle <= 0.0:
            high, value_at_high, weight_high = midpoint, value_at_middle, value_at_middle
            weight_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, value_at_low, weight_low = midpoint, value_at_middle, value_at_middle
            weight_high *= 0.5 if side == -1 else 1.0
            side = -1
    return math.exp(high)
