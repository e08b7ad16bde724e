"""Four ways to choose the bound of a sum: their errors over epsilon, for a tab of Sum and count."""

from __future__ import annotations

import math

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.total import TotalProblem
from dpcore.total import strategies as total_strategies
from dpcore.total.strategies import BEST, MEDIAN, NINETY_FIVE, Strategy, StrategyCurves


def strategies(share: float) -> tuple[Strategy, ...]:
    """The paper's three ways to choose T, and a quantile of the person's own."""
    return BEST, MEDIAN, NINETY_FIVE, Strategy(share)


def epsilon_limits(amounts: Amounts) -> tuple[float, float]:
    """(from, to) of the axis of epsilon: from where hardly anything can be released, by the number of users."""
    low = 10.0 ** math.floor(math.log10(0.5 / amounts.num_users))
    return min(max(low, 1e-6), 1e-3), 10.0


def curves_of_strategies(problem: TotalProblem, share: float) -> StrategyCurves:
    """Exact relative errors over the axis of epsilon."""
    low, high = epsilon_limits(problem.amounts)
    points = 1 + 16 * round(math.log10(high / low))
    return total_strategies.strategy_curves(problem, np.geomspace(low, high, points), strategies(share))


def simulated_epsilons(amounts: Amounts) -> FloatArray:
    """Where the mechanism is simulated: two points per decade."""
    low, high = epsilon_limits(amounts)
    return np.geomspace(low, high, 1 + 2 * round(math.log10(high / low)))


def near_best(curves: StrategyCurves, row: int, factor: float = 1.1) -> tuple[float, float] | None:
    """(from, to): the epsilons at which a strategy's error is at most ``factor`` times the best bound's."""
    close = curves.relative_error[row] <= factor * curves.relative_error[0]
    found = curves.epsilons[close]
    return (float(found[0]), float(found[-1])) if found.size else None
