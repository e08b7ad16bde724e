"""Plots of a plan as data. Pure functions of the solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Style, names_axis, share_axis
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.answer.solution import PlanSolution
from dpcore.plan.lines import MAX_AMOUNT

LINE_STYLES = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.PRIVACY, Style.CUSTOMARY)
"""Of the lines that are drawn: those with the largest shares. All stand in the file."""
EPSILONS = (0.02, 50.0)
POINTS = {NoiseKind.LAPLACE: 61, NoiseKind.GAUSSIAN: 33}
"""OpenDP's conversion takes 2 ms a point."""


def _sample_epsilons(solution: PlanSolution) -> tuple[FloatArray, FloatArray]:
    """Sample (epsilon of the plan, v of a line that takes all of it) over the axis."""
    budget = solution.budget
    if budget.noise is NoiseKind.LAPLACE:
        epsilons = np.geomspace(*_choose_epsilon_limits(budget.epsilon), POINTS[budget.noise])
        return epsilons, epsilons**-2.0
    # From amount to epsilon, one call of OpenDP each, and not back, which is a search. mu^2 = 20 is about epsilon = 30.
    plan_v = 1.0 / budget.full_v
    v = 1.0 / np.geomspace(
        min(1e-5, plan_v / 2.0), max(40.0, min(plan_v * 2.0, 0.999 * MAX_AMOUNT)), POINTS[budget.noise]
    )
    return np.array([budget.convert_to_epsilon(float(budget.compute_amount(plan_v))) for plan_v in v]), v


def _choose_epsilon_limits(plan_epsilon: float) -> tuple[float, float]:
    """Choose the limits of epsilon's axis, which include that of the plan."""
    return min(EPSILONS[0], plan_epsilon / 2.0), max(EPSILONS[1], plan_epsilon * 2.0)


def plot_errors(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot error over target error of each line over the epsilon of the whole plan."""
    epsilons, v = _sample_epsilons(solution)
    plan_curves, equal_curves = (
        solution.compute_error_ratios(lines, v) for lines in (solution.lines, solution.equal_split)
    )
    labels = [line.planned.line.label for line in solution.lines]
    columns: dict[str, FloatArray] = {"epsilon": epsilons}
    for label, plan_ratios, equal_ratios in zip(labels, plan_curves, equal_curves, strict=True):
        columns[f"{label}: error over wanted"] = plan_ratios
        columns[f"{label}: at an equal share"] = equal_ratios
    plan_epsilon, num_lines = solution.budget.epsilon, len(solution.lines)
    by_share = sorted(range(num_lines), key=lambda line_index: -solution.lines[line_index].num_parts)
    visible_lines = list(zip(LINE_STYLES, by_share, strict=False))
    dotted: dict[str, Any] = {"legend": "Equal shares", "dash": "dot", "width": 1.5, "opacity": 0.7}
    items: list[Item] = [  # One after the other: they share an entry of the legend.
        Curve(f"{labels[line_index]}, equal share", epsilons, equal_curves[line_index], style, **dotted)
        for style, line_index in visible_lines
        if num_lines > 1
    ]
    for style, line_index in visible_lines:
        label, line = labels[line_index], solution.lines[line_index]
        items.append(Curve(label, epsilons, plan_curves[line_index], style, dash="solid", width=2.5))
        ratio = line.error / line.planned.target_error
        items.append(Mark(f"{label}, this plan", plan_epsilon, ratio, style, is_unnamed=True))
    items += [
        Level("Wanted error", 1.0),
        Level("ε of this plan", plan_epsilon, is_vertical=True, style=Style.TOTAL),
    ]
    positive_ratios = np.concatenate([*plan_curves, *equal_curves])
    positive_ratios = positive_ratios[np.isfinite(positive_ratios) & (positive_ratios > 0.0)]
    low = max(float(positive_ratios.min(initial=0.5)) / 1.5, 1e-3)
    high = min(max(float(positive_ratios.max(initial=2.0)) * 1.5, 2.0), 1e4)
    return Plot(
        "plan-errors",
        "Error of each number over ε",
        _describe_errors(solution),
        Axis("ε of the whole plan", "", _choose_epsilon_limits(plan_epsilon)),
        Axis("error", "wanted error = 1", (min(low, 0.5), high), number_format=".3~g"),
        items,
        dataset.provenance,
        columns,
        is_main=True,
    )


def plot_shares(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot the share of each line in the plan, in an equal split, and in what all target errors need."""
    labels = [line.planned.line.label for line in solution.lines]
    shares, equal_shares = (
        np.array([line.share for line in lines]) for lines in (solution.lines, solution.equal_split)
    )
    bars = [
        Bars("This plan", labels, Column("share", shares), Style.CAP),
        Bars("Equal split", labels, Column("equal_share", equal_shares), Style.CUSTOMARY),
    ]
    total = float(solution.needed_amounts.sum())
    if 0.0 < total < np.inf:  # Else one of them is never reached, or all are without any budget.
        needed = Column("needed_share", solution.needed_amounts / total)
        bars.append(Bars("What all wanted errors need", labels, needed, Style.SMOOTH))
    largest_share = max(float(np.max(bar.y)) for bar in bars)
    limits = (0.0, min(1.0, 1.1 * largest_share))
    return Plot(
        "plan-shares",
        "Shares of the budget",
        f"{_describe_largest_share(solution)} An equal split gives {wording.percent(1.0 / len(labels))} to each.",
        names_axis("number", " "),
        share_axis("share of the budget", limits, number_format=".1%"),
        bars,
        dataset.provenance,
        height=360,
    )


def _describe_largest_share(solution: PlanSolution) -> str:
    """Describe the line with the largest share."""
    line = max(solution.lines, key=lambda allocated_line: allocated_line.num_parts)
    return f"{wording.capital(line.planned.line.label)} gets {wording.percent(line.share)} of the budget."


def _describe_errors(solution: PlanSolution) -> str:
    """Describe the plot of the errors."""
    return (
        f"At ε = {wording.number(solution.budget.epsilon)}, {solution.num_reached} of {len(solution.lines)} "
        "lines lie at or below "
        "their wanted error. Every error falls as ε of the whole plan grows and shares are kept"
        + ("; dotted lines have equal shares." if len(solution.lines) > 1 else ".")
    )
