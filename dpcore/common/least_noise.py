"""The least noise that keeps a budget, with few looks at an accountant that takes milliseconds or more for each."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcore.common.errors import refusal

MOST_EVALUATIONS, FARTHEST = 60, 300.0
"""Looks, and the logarithm of the noise, beyond which there is none to be found."""
STEEPEST = 10.0
"""Logarithm of what is spent over the budget, up or down, beyond which it is all the same for a chord."""


def least_noise(spent: Callable[[float], float], epsilon: float, guess: float, tolerance: float) -> float:
    """The least noise that spends at most ``epsilon``, from above: that much was looked at, and kept it.

    ``spent`` falls; its logarithm over that of the noise is nearly straight, so that a chord finds the root soon. A
    stale end is halved (Illinois).

    Args:
        spent: From the noise, above 0, to the ε that it spends.
        epsilon: The budget.
        guess: Of the noise; the nearer, the fewer looks.
        tolerance: Relative, of the noise.

    Raises:
        InvalidInput: No such noise was found.
    """
    target = math.log(epsilon)

    def height(log_sigma: float) -> float:
        # Kept within what chords can be drawn with: nothing at all may be spent, or more than a number holds.
        return min(max(math.log(max(spent(math.exp(log_sigma)), 1e-300)) - target, -STEEPEST), STEEPEST)

    at = math.log(guess)
    value = height(at)
    low = high = at
    at_low = at_high = value
    left, stride = MOST_EVALUATIONS, 0.1
    while at_high > 0.0 and left and high < FARTHEST:
        low, at_low = high, at_high
        high += max(min(at_high, 3.0), stride)
        at_high, stride, left = height(high), 2.0 * stride, left - 1
    while at_low <= 0.0 and left and low > -FARTHEST:
        high, at_high = low, at_low
        low -= max(min(-at_low, 3.0), stride)
        at_low, stride, left = height(low), 2.0 * stride, left - 1
    if at_low <= 0.0 or at_high > 0.0:
        raise refusal(
            "no noise was found that keeps ε with these settings",
            "",
            "Take another ε, or fewer steps where there are some",
        )
    weight_low, weight_high, side = at_low, at_high, 0
    while high - low > tolerance and at_high < -tolerance / 4.0 and left:
        # Aimed a little above the root: the safe end is the one that is returned.
        share = weight_low / (weight_low - weight_high)
        # Away from both ends, so that every look shortens the interval.
        middle = low + (high - low) * min(max(share, 0.02), 0.98) + tolerance / 4.0
        middle = min(middle, high - 1e-3 * (high - low))
        found, left = height(middle), left - 1
        if found <= 0.0:
            high, at_high, weight_high = middle, found, found
            weight_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, at_low, weight_low = middle, found, found
            weight_high *= 0.5 if side == -1 else 1.0
            side = -1
    return math.exp(high)
