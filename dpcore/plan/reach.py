"""How much of the budget a line needs for a wanted error, and the split in which no line is far from its own.

Both rest on one thing only: that the least error never rises with the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.plan.budget import Budget
from dpcore.plan.curves import Curve

_LEAST, _MOST = 1e-9, 1e9
"""Between these amounts of a budget (epsilon, or mu^2) a need is looked for."""
_COARSE, _DIGITS = 400, 45


def needed_budgets(curves: Sequence[Curve], wanted: FloatArray, budget: Budget) -> FloatArray:
    """How much of what adds up (epsilon, or mu^2) each line needs so that its error is at most the wanted one.

    Args:
        curves: One per line.
        wanted: Wanted errors, above 0, in the unit of each line, shape (lines,).
        budget: Its noise; how much there is does not matter.

    Returns:
        Shape (lines,); infinite where no budget is enough: `Curve.floor` says what stays.
    """
    return np.array([_needed(c, w, budget) for c, w in zip(curves, wanted.tolist(), strict=True)])


def _needed(curve: Curve, wanted: float, budget: Budget) -> float:
    amounts = np.geomspace(_LEAST, _MOST, _COARSE)
    good = curve.best(amounts ** -float(budget.power)).squares <= wanted**2
    if not good[-1]:
        return math.inf
    # The error never rises with the budget: from the first amount that is enough on, each is.
    first = int(np.argmax(good))
    if first == 0:
        return 0.0 if bool(curve.best(np.array([math.inf])).squares[0] <= wanted**2) else _LEAST
    low, high = float(amounts[first - 1]), float(amounts[first])
    for _ in range(_DIGITS):
        middle = math.sqrt(low * high)
        enough = bool(curve.best(np.array([middle ** -float(budget.power)])).squares[0] <= wanted**2)
        low, high = (low, middle) if enough else (middle, high)
    return high


def largest_error(curves: Sequence[Curve], wanted: FloatArray, budget: Budget) -> FloatArray:
    """The split with the least of the largest error over wanted error, by bisection on that number.

    Args:
        curves: One per line.
        wanted: Wanted errors, above 0, shape (lines,).
        budget: What is divided.

    Returns:
        Shares that add up to 1, shape (lines,).
    """
    whole = float(budget.amount(budget.whole))

    def shares(level: float) -> FloatArray:
        return needed_budgets(curves, level * wanted, budget) / whole

    low, high = 1e-9, 1.0
    while shares(high).sum() > 1.0 and high < 1e12:
        low, high = high, high * 4.0
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shares(middle).sum() <= 1.0 else (middle, high)
    found = shares(high)
    total = found.sum()
    # What is left over goes to all alike; a line that needs nothing has no share.
    return np.asarray(found / total) if total > 0.0 else np.full(found.shape, 1.0 / found.size)
