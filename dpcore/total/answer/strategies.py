"""Four ways to choose the bound of a sum, compared over epsilon: curves, simulated points, their plot and words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Level, Plot, Points, Style
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import TotalProblem
from dpcore.total import strategies as total_strategies
from dpcore.total.strategies import BEST, MEDIAN, NINETY_FIVE, Strategy, StrategyCurves, StrategyPoints

SYMBOLS = ("circle", "square", "diamond", "triangle-up")
LINES: tuple[dict[str, Any], ...] = (
    {"style": Style.TOTAL},
    {"style": Style.SAMPLING, "width": 2.0},
    {"style": Style.SMOOTH, "dash": "dash", "width": 2.0},
    {"style": Style.PRIVACY, "dash": "dashdot", "width": 2.0},
)


def strategies(share: float) -> tuple[Strategy, ...]:
    """Return the paper's three ways to choose T, and a quantile of the person's own."""
    return BEST, MEDIAN, NINETY_FIVE, Strategy(share)


def epsilon_limits(amounts: Amounts) -> tuple[float, float]:
    """Return (from, to) of the axis of epsilon: from where hardly anything can be released, by the number of users."""
    low = 10.0 ** math.floor(math.log10(0.5 / amounts.num_users))
    return min(max(low, 1e-6), 1e-3), 10.0


def curves(problem: TotalProblem, share: float) -> StrategyCurves:
    """Return the exact relative errors over the axis of epsilon; they do not depend on the problem's own."""
    low, high = epsilon_limits(problem.amounts)
    points = 1 + 16 * round(math.log10(high / low))
    return total_strategies.strategy_curves(problem, np.geomspace(low, high, points), strategies(share))


def simulated_epsilons(amounts: Amounts) -> FloatArray:
    """Where the mechanism is simulated: two points per decade."""
    low, high = epsilon_limits(amounts)
    return np.geomspace(low, high, 1 + 2 * round(math.log10(high / low)))


def near_best(of: StrategyCurves, row: int) -> tuple[float, float] | None:
    """Return (from, to): the epsilons at which a strategy's error is at most 1.1 times the best bound's."""
    close = of.relative_error[row] <= 1.1 * of.relative_error[0]
    epsilons = of.epsilons[close]
    return (float(epsilons[0]), float(epsilons[-1])) if epsilons.size else None


def plot(of: StrategyCurves, data: Dataset, epsilon: float, points: StrategyPoints | None = None) -> Plot:
    """Return the relative error against epsilon for four ways to choose T (Amin et al. 2019, figure 1).

    Args:
        of: The curves.
        data: The data.
        epsilon: The one that the person has entered, which is marked.
        points: Simulated errors, drawn with twice their standard errors; None for none.
    """
    columns: dict[str, npt.ArrayLike] = {"epsilon": of.epsilons}
    items: list[Item] = []
    for row, strategy in enumerate(of.strategies):
        stem, name, line = _stem(strategy, row), _name(of, row), LINES[row]
        columns[f"{stem}_bound"] = of.bounds[row]
        columns[f"{stem}_relative_error"] = of.relative_error[row]
        items.append(Curve(name, of.epsilons, of.relative_error[row], **line))
        if points is not None and strategy in points.strategies:
            errors, margin = points.relative_error[row], 2.0 * points.standard_error[row]
            ends = errors - margin, errors + margin
            options: dict[str, Any] = {"symbol": SYMBOLS[row], "size": 7, "is_unnamed": True}
            name = f"{name}, simulated"
            items.append(Points(name, points.epsilons, errors, line["style"], *ends, **options))
    epsilon_axis = Axis("privacy budget ε", "", (float(of.epsilons[0]), float(of.epsilons[-1])))
    if epsilon_axis.contains(epsilon):
        items.append(Level("Your ε", epsilon, is_vertical=True))
    near = [f"{of.strategies[row].name} {_where(of, row)}" for row in range(1, len(of.strategies))]
    return Plot(
        "total-strategies",
        "Relative error against ε for four ways to choose a bound",
        f"Within 10 % of the best bound's error: {'; '.join(near)}.",
        epsilon_axis,
        Axis("relative error of the release", "1 = 100 %", (float(of.relative_error[0].min()) / 2.0, 10.0)),
        items,
        data.provenance,
        columns,
        height=460,
    )


def _where(of: StrategyCurves, row: int) -> str:
    near = near_best(of, row)
    if near is None:
        return "nowhere"
    return f"for ε from {wording.number(near[0], 2)} to {wording.number(near[1], 2)}"


def _name(of: StrategyCurves, row: int) -> str:
    """The best bound has a T for every epsilon, a quantile has one."""
    name = of.strategies[row].name.capitalize()
    fixed = of.strategies[row].share is not None
    return f"{name} (bound {wording.number(of.bounds[row, 0])})" if fixed else name


def _stem(strategy: Strategy, row: int) -> str:
    own = f"own_quantile_{wording.digits(100.0 * (strategy.share or 0.0))}"
    return ("best", "median", "quantile_95", own)[row]


def point_columns(points: StrategyPoints) -> dict[str, FloatArray]:
    """Return the simulated points; their standard errors beside them."""
    columns = {"epsilon": points.epsilons}
    for row, strategy in enumerate(points.strategies):
        stem = _stem(strategy, row)
        columns[f"{stem}_simulated_error"] = points.relative_error[row]
        columns[f"{stem}_standard_error"] = points.standard_error[row]
    return columns


def sentences(of: StrategyCurves, points: StrategyPoints | None) -> tuple[str, ...]:
    """Where each fixed quantile is near the best, and what was simulated."""
    ten = f"10{wording.PERCENT}"
    said = [
        f"**{_name(of, row)}:** "
        + (
            f"more than {ten} worse than the best bound at every ε."
            if near_best(of, row) is None
            else f"within {ten} of the best bound's error {_where(of, row)}."
        )
        for row in range(1, len(of.strategies))
    ]
    if points is not None:
        stopped = "Stopped early. " if points.cancelled else ""
        said.append(
            f"{stopped}{wording.counted(points.runs, 'run')} of each simulated point; bars are ± 2 standard errors. "
            "The noise comes from NumPy, so this is not a release."
        )
    return tuple(said)
