"""Four ways to choose the bound of a sum, compared over epsilon: curves, simulated points, their plot and words."""

from __future__ import annotations

import math

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
LINES = (
    Curve("", "epsilon", "", Style.TOTAL),
    Curve("", "epsilon", "", Style.SAMPLING, width=2.0),
    Curve("", "epsilon", "", Style.SMOOTH, dash="dash", width=2.0),
    Curve("", "epsilon", "", Style.PRIVACY, dash="dashdot", width=2.0),
)


def list_strategies(share: float) -> tuple[Strategy, ...]:
    """Return the paper's three ways to choose T, and a quantile of the person's own."""
    return BEST, MEDIAN, NINETY_FIVE, Strategy(share)


def epsilon_limits(amounts: Amounts) -> tuple[float, float]:
    """Return (from, to) of the axis of epsilon: from where hardly anything can be released, by the number of users."""
    low = 10.0 ** math.floor(math.log10(0.5 / amounts.num_users))
    return min(max(low, 1e-6), 1e-3), 10.0


def compute_curves(problem: TotalProblem, share: float) -> StrategyCurves:
    """Return the exact relative errors over the axis of epsilon; they do not depend on the problem's own."""
    low, high = epsilon_limits(problem.amounts)
    points = 1 + 16 * round(math.log10(high / low))
    return total_strategies.strategy_curves(problem, np.geomspace(low, high, points), list_strategies(share))


def simulated_epsilons(amounts: Amounts) -> FloatArray:
    """Return the epsilons at which the mechanism is simulated: two points per decade."""
    low, high = epsilon_limits(amounts)
    return np.geomspace(low, high, 1 + 2 * round(math.log10(high / low)))


def near_best(curves: StrategyCurves, row: int) -> tuple[float, float] | None:
    """Return (from, to): the epsilons at which a strategy's error is at most 1.1 times the best bound's."""
    close = curves.relative_error[row] <= 1.1 * curves.relative_error[0]
    epsilons = curves.epsilons[close]
    return (float(epsilons[0]), float(epsilons[-1])) if epsilons.size else None


def plot_strategies(
    curves: StrategyCurves, data: Dataset, epsilon: float, points: StrategyPoints | None = None
) -> Plot:
    """Draw the relative error against epsilon for four ways to choose T (Amin et al. 2019, figure 1).

    Args:
        curves: The curves.
        data: The data.
        epsilon: The one that the person has entered, which is marked.
        points: Simulated errors, drawn with twice their standard errors; None for none.
    """
    columns: dict[str, npt.ArrayLike] = {"epsilon": curves.epsilons}
    guides: dict[str, npt.ArrayLike] = {} if points is None else {"simulated at": points.epsilons}
    items: list[Item] = []
    for row, strategy in enumerate(curves.strategies):
        stem, name, line = _column_stem(strategy, row), _name_strategy(curves, row), LINES[row]
        columns[f"{stem}_bound"] = curves.bounds[row]
        columns[f"{stem}_relative_error"] = curves.relative_error[row]
        items.append(
            Curve(name, line.x, f"{stem}_relative_error", line.style, dash=line.dash, width=line.width)
        )
        if points is not None and strategy in points.strategies:
            mean_error, off = points.relative_error[row], 2.0 * points.standard_error[row]
            mean_column, low, high = (f"{stem} {suffix}" for suffix in ("simulated", "from", "to"))
            guides |= {mean_column: mean_error, low: mean_error - off, high: mean_error + off}
            name = f"{name}, simulated"
            items.append(
                Points(
                    name,
                    "simulated at",
                    mean_column,
                    line.style,
                    low,
                    high,
                    symbol=SYMBOLS[row],
                    size=7,
                    is_unnamed=True,
                )
            )
    across = Axis("privacy budget ε", "", (float(curves.epsilons[0]), float(curves.epsilons[-1])))
    if across.contains(epsilon):
        items.append(Level("Your ε", epsilon, is_vertical=True))
    near = [
        f"{curves.strategies[row].name} {_describe_near_best(curves, row)}"
        for row in range(1, len(curves.strategies))
    ]
    return Plot(
        "total-strategies",
        "Relative error against ε for four ways to choose a bound",
        f"Within 10 % of the best bound's error: {'; '.join(near)}.",
        across,
        Axis(
            "relative error of the release", "1 = 100 %", (float(curves.relative_error[0].min()) / 2.0, 10.0)
        ),
        columns,
        tuple(items),
        data.provenance,
        guides,
        height=460,
    )


def _describe_near_best(curves: StrategyCurves, row: int) -> str:
    near = near_best(curves, row)
    if near is None:
        return "nowhere"
    return f"for ε from {wording.number(near[0], 2)} to {wording.number(near[1], 2)}"


def _name_strategy(curves: StrategyCurves, row: int) -> str:
    """Name a strategy, with its bound where that is the same for every epsilon, as a quantile is."""
    name = curves.strategies[row].name.capitalize()
    is_fixed = curves.strategies[row].share is not None
    return f"{name} (bound {wording.number(curves.bounds[row, 0])})" if is_fixed else name


def _column_stem(strategy: Strategy, row: int) -> str:
    own_stem = f"own_quantile_{wording.digits(100.0 * (strategy.share or 0.0))}"
    return ("best", "median", "quantile_95", own_stem)[row]


def list_point_columns(points: StrategyPoints) -> dict[str, FloatArray]:
    """Return the simulated errors and their standard errors as columns."""
    columns = {"epsilon": points.epsilons}
    for row, strategy in enumerate(points.strategies):
        stem = _column_stem(strategy, row)
        columns[f"{stem}_simulated_error"] = points.relative_error[row]
        columns[f"{stem}_standard_error"] = points.standard_error[row]
    return columns


def write_sentences(curves: StrategyCurves, points: StrategyPoints | None) -> tuple[str, ...]:
    """Say where each fixed quantile is near the best, and what was simulated."""
    ten = f"10{wording.PERCENT}"
    lines = [
        f"**{_name_strategy(curves, row)}:** "
        + (
            f"more than {ten} worse than the best bound at every ε."
            if near_best(curves, row) is None
            else f"within {ten} of the best bound's error {_describe_near_best(curves, row)}."
        )
        for row in range(1, len(curves.strategies))
    ]
    if points is not None:
        stopped = "Stopped early. " if points.cancelled else ""
        lines.append(
            f"{stopped}{wording.counted(points.runs, 'run')} of each simulated point; bars are ± 2 standard errors. "
            "The noise comes from NumPy, so this is not a release."
        )
    return tuple(lines)
