"""The budget that a line needs for a target error, and the split that minimises the largest error over target error.

Both rest only on the fact that the least error never rises with the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.plan.budget import Budget
from dpcore.plan.curves import Curve

_SMALLEST_AMOUNT, _LARGEST_AMOUNT = 1e-9, 1e9
"""Between these amounts of a budget (epsilon, or mu^2) a need is looked for."""
_COARSE, _DIGITS = 400, 45


def find_needed_budgets(curves: Sequence[Curve], target_errors: FloatArray, budget: Budget) -> FloatArray:
    """Find how much of the additive budget (epsilon, or mu^2) each line needs to reach its target error.

    Args:
        curves: One per line.
        target_errors: Wanted errors, above 0, in the unit of each line, shape (lines,).
        budget: Its noise; how much there is does not matter.

    Returns:
        Shape (lines,); infinite where no budget is enough: `Curve.floor` says what stays.
    """
    return np.array(
        [
            _find_needed(curve, target_error, budget)
            for curve, target_error in zip(curves, target_errors.tolist(), strict=True)
        ]
    )


def _find_needed(curve: Curve, target_error: float, budget: Budget) -> float:
    """Find the need of one line."""
    amounts = np.geomspace(_SMALLEST_AMOUNT, _LARGEST_AMOUNT, _COARSE)
    is_sufficient = curve.best(amounts ** -float(budget.power)).squares <= target_error**2
    if not is_sufficient[-1]:
        return math.inf
    # The error never rises with the budget: from the first amount that is enough on, each is.
    first_sufficient = int(np.argmax(is_sufficient))
    if first_sufficient == 0:
        return (
            0.0 if bool(curve.best(np.array([math.inf])).squares[0] <= target_error**2) else _SMALLEST_AMOUNT
        )
    low, high = float(amounts[first_sufficient - 1]), float(amounts[first_sufficient])
    for _ in range(_DIGITS):
        midpoint = math.sqrt(low * high)
        is_enough = bool(
            curve.best(np.array([midpoint ** -float(budget.power)])).squares[0] <= target_error**2
        )
        low, high = (low, midpoint) if is_enough else (midpoint, high)
    return high


def split_by_largest_error(curves: Sequence[Curve], target_errors: FloatArray, budget: Budget) -> FloatArray:
    """Find the split that minimises the largest error over target error, by bisection on that number.

    Args:
        curves: One per line.
        target_errors: Wanted errors, above 0, shape (lines,).
        budget: What is divided.

    Returns:
        Shares that add up to 1, shape (lines,).
    """
    full_amount = float(budget.compute_amount(budget.full_v))

    def compute_shares(level: float) -> FloatArray:
        return find_needed_budgets(curves, level * target_errors, budget) / full_amount

    low, high = 1e-9, 1.0
    while compute_shares(high).sum() > 1.0 and high < 1e12:
        low, high = high, high * 4.0
    while high / low > 1.0 + 1e-6:
        midpoint = math.sqrt(low * high)
        low, high = (low, midpoint) if compute_shares(midpoint).sum() <= 1.0 else (midpoint, high)
    needed_shares = compute_shares(high)
    total = needed_shares.sum()
    # The rest is divided in proportion; a line that needs nothing has no share.
    return (
        np.asarray(needed_shares / total)
        if total > 0.0
        else np.full(needed_shares.shape, 1.0 / needed_shares.size)
    )
