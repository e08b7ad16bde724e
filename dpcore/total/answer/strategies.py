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
from dpcore.total.strategies import (
    BEST,
    MEDIAN,
    NINETY_FIVE,
    Strategy,
    StrategyCurves,
    StrategyPoints,
    strategy_curves,
)

SYMBOLS = ("circle", "square", "diamond", "triangle-up")
LINES: tuple[dict[str, Any], ...] = (
    {"style": Style.TOTAL},
    {"style": Style.SAMPLING, "width": 2.0},
    {"style": Style.SMOOTH, "dash": "dash", "width": 2.0},
    {"style": Style.PRIVACY, "dash": "dashdot", "width": 2.0},
)


def list_strategies(share: float) -> tuple[Strategy, ...]:
    """List the paper's three ways to choose T, and a quantile of the person's own."""
    return BEST, MEDIAN, NINETY_FIVE, Strategy(share)


def choose_epsilons(amounts: Amounts, points_per_decade: int) -> FloatArray:
    """Choose log-spaced epsilons, from where hardly anything can be released, by the number of users, to 10."""
    low = min(max(10.0 ** math.floor(math.log10(0.5 / amounts.num_users)), 1e-6), 1e-3)
    return np.geomspace(low, 10.0, 1 + points_per_decade * round(math.log10(10.0 / low)))


def compute_curves(problem: TotalProblem, share: float) -> StrategyCurves:
    """Compute the exact relative errors over epsilon; they do not depend on the problem's own epsilon."""
    epsilons = choose_epsilons(problem.amounts, points_per_decade=16)
    return strategy_curves(problem, epsilons, list_strategies(share))


def find_near_best(curves: StrategyCurves, row: int) -> tuple[float, float] | None:
    """Find the first and last epsilon at which a strategy's error is at most 1.1 times the best bound's."""
    epsilons = curves.epsilons[curves.relative_error[row] <= 1.1 * curves.relative_error[0]]
    return (float(epsilons[0]), float(epsilons[-1])) if epsilons.size else None


def plot_strategies(
    curves: StrategyCurves, dataset: Dataset, epsilon: float, points: StrategyPoints | None = None
) -> Plot:
    """Plot the relative error against epsilon for four ways to choose T (Amin et al. 2019, figure 1).

    Args:
        curves: Exact errors.
        dataset: The data.
        epsilon: The one that the person has entered, which is marked.
        points: Simulated errors, plotted with twice their standard errors; None for none.
    """
    epsilons, best_errors = curves.epsilons, curves.relative_error[0]
    columns: dict[str, npt.ArrayLike] = {"epsilon": epsilons}
    items: list[Item] = []
    for row, strategy in enumerate(curves.strategies):
        key, name, line = _make_key(strategy, row), _name_strategy(curves, row), LINES[row]
        columns[f"{key}_bound"] = curves.bounds[row]
        columns[f"{key}_relative_error"] = curves.relative_error[row]
        items.append(Curve(name, epsilons, curves.relative_error[row], **line))
        if points is not None and strategy in points.strategies:
            errors, margin = points.relative_error[row], 2.0 * points.standard_error[row]
            ends = errors - margin, errors + margin
            options: dict[str, Any] = {"symbol": SYMBOLS[row], "size": 7, "is_unnamed": True}
            name = f"{name}, simulated"
            items.append(Points(name, points.epsilons, errors, line["style"], *ends, **options))
    epsilon_axis = Axis("privacy budget ε", "", (float(epsilons[0]), float(epsilons[-1])))
    if epsilon_axis.contains(epsilon):
        items.append(Level("Your ε", epsilon, is_vertical=True))
    near_best_texts = [
        f"{strategy.name} {_describe_near_best(curves, row)}"
        for row, strategy in enumerate(curves.strategies)
        if row > 0
    ]
    return Plot(
        "total-strategies",
        "Relative error against ε for four ways to choose a bound",
        f"Within 10 % of the best bound's error: {'; '.join(near_best_texts)}.",
        epsilon_axis,
        Axis("relative error of the release", "1 = 100 %", (float(best_errors.min()) / 2.0, 10.0)),
        items,
        dataset.provenance,
        columns,
        height=460,
    )


def _describe_near_best(curves: StrategyCurves, row: int) -> str:
    near_best = find_near_best(curves, row)
    if near_best is None:
        return "nowhere"
    return f"for ε from {wording.number(near_best[0], 2)} to {wording.number(near_best[1], 2)}"


def _name_strategy(curves: StrategyCurves, row: int) -> str:
    """Name a strategy; a quantile has one bound for every epsilon, which is named too."""
    strategy = curves.strategies[row]
    name = strategy.name.capitalize()
    return name if strategy.share is None else f"{name} (bound {wording.number(curves.bounds[row, 0])})"


def _make_key(strategy: Strategy, row: int) -> str:
    own_key = f"own_quantile_{wording.digits(100.0 * (strategy.share or 0.0))}"
    return ("best", "median", "quantile_95", own_key)[row]


def tabulate_points(points: StrategyPoints) -> dict[str, FloatArray]:
    """Tabulate the simulated points, with their standard errors."""
    columns = {"epsilon": points.epsilons}
    for row, strategy in enumerate(points.strategies):
        key = _make_key(strategy, row)
        columns[f"{key}_simulated_error"] = points.relative_error[row]
        columns[f"{key}_standard_error"] = points.standard_error[row]
    return columns


def write_sentences(curves: StrategyCurves, points: StrategyPoints | None) -> tuple[str, ...]:
    """Write where each fixed quantile is near the best, and what was simulated."""
    ten = f"10{wording.PERCENT}"
    sentences = [
        f"**{_name_strategy(curves, row)}:** "
        + (
            f"more than {ten} worse than the best bound at every ε."
            if find_near_best(curves, row) is None
            else f"within {ten} of the best bound's error {_describe_near_best(curves, row)}."
        )
        for row in range(1, len(curves.strategies))
    ]
    if points is not None:
        stop_text = "Stopped early. " if points.cancelled else ""
        sentences.append(
            f"{stop_text}{wording.counted(points.runs, 'run')} of each simulated point; bars are ± 2 standard errors. "
            "The noise comes from NumPy, so this is not a release."
        )
    return tuple(sentences)
