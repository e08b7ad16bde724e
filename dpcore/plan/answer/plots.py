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
"""Styles of the lines with the largest shares, which the figure shows. All lines stand in its file."""
EPSILONS = (0.02, 50.0)
"""The least that the axis of epsilon covers."""


def _sample_epsilons(solution: PlanSolution, limits: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Sample (epsilon of the plan, v of a line that takes all of it) over the axis."""
    budget = solution.budget
    if budget.mechanism is NoiseKind.LAPLACE:
        epsilons = np.geomspace(*limits, 61)
        return epsilons, epsilons**-2.0
    # From amount to epsilon, one call of OpenDP each (2 ms), and not back, which is a search. mu^2 = 20 is about
    # epsilon = 30.
    plan_amount = 1.0 / budget.full_v
    largest_amount = max(40.0, min(plan_amount * 2.0, 0.999 * MAX_AMOUNT))
    amounts = np.geomspace(min(1e-5, plan_amount / 2.0), largest_amount, 33)
    return np.array([budget.convert_to_epsilon(amount) for amount in amounts.tolist()]), 1.0 / amounts


def plot_errors(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot error over target error of each line over the epsilon of the whole plan."""
    plan_epsilon, lines = solution.budget.epsilon, solution.lines
    limits = (min(EPSILONS[0], plan_epsilon / 2.0), max(EPSILONS[1], plan_epsilon * 2.0))
    epsilons, v = _sample_epsilons(solution, limits)
    plan_curves, equal_curves = (
        [solution.compute_error_ratios(line, v) for line in split] for split in (lines, solution.equal_split)
    )
    columns: dict[str, FloatArray] = {"epsilon": epsilons}
    for line, plan_ratios, equal_ratios in zip(lines, plan_curves, equal_curves, strict=True):
        columns[f"{line.label}: error over wanted"] = plan_ratios
        columns[f"{line.label}: at an equal share"] = equal_ratios
    by_share = sorted(range(len(lines)), key=lambda index: -lines[index].num_parts)
    visible_lines = list(zip(LINE_STYLES, by_share, strict=False))
    dotted: dict[str, Any] = {"legend": "Equal shares", "dash": "dot", "width": 1.5, "opacity": 0.7}
    items: list[Item] = [  # One after the other: they share an entry of the legend.
        Curve(f"{lines[index].label}, equal share", epsilons, equal_curves[index], style, **dotted)
        for style, index in visible_lines
        if len(lines) > 1
    ]
    for style, index in visible_lines:
        line = lines[index]
        items += [
            Curve(line.label, epsilons, plan_curves[index], style, dash="solid", width=2.5),
            Mark(f"{line.label}, this plan", plan_epsilon, line.error_ratio, style, is_unnamed=True),
        ]
    items += [
        Level("Wanted error", 1.0),
        Level("ε of this plan", plan_epsilon, is_vertical=True, style=Style.TOTAL),
    ]
    ratios = np.concatenate([*plan_curves, *equal_curves])
    ratios = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    low_ratio = min(max(float(ratios.min(initial=0.5)) / 1.5, 1e-3), 0.5)
    high_ratio = min(max(float(ratios.max(initial=2.0)) * 1.5, 2.0), 1e4)
    return Plot(
        "plan-errors",
        "Error of each number over ε",
        f"At ε = {wording.number(plan_epsilon)}, {solution.num_reached} of {len(lines)} lines lie at or below their "
        "wanted error. Every error falls as ε of the whole plan grows and shares are kept"
        f"{'; dotted lines have equal shares' if len(lines) > 1 else ''}.",
        Axis("ε of the whole plan", "", limits),
        Axis("error", "wanted error = 1", (low_ratio, high_ratio), number_format=".3~g"),
        items,
        dataset.provenance,
        columns,
        is_main=True,
    )


def plot_shares(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot the share of each line in the plan, in an equal split, and in what all target errors need."""
    labels = [line.label for line in solution.lines]
    shares, equal_shares = (
        np.array([line.share for line in lines]) for lines in (solution.lines, solution.equal_split)
    )
    bars = [
        Bars("This plan", labels, Column("share", shares), Style.CAP),
        Bars("Equal split", labels, Column("equal_share", equal_shares), Style.CUSTOMARY),
    ]
    total_amount = float(solution.needed_amounts.sum())
    if 0.0 < total_amount < np.inf:  # Else one of them is never reached, or all are without any budget.
        needed = Column("needed_share", solution.needed_amounts / total_amount)
        bars.append(Bars("What all wanted errors need", labels, needed, Style.SMOOTH))
    largest_line, largest_share = int(np.argmax(shares)), wording.percent(float(shares.max()))
    limits = (0.0, min(1.0, 1.1 * max(float(np.max(bar.y)) for bar in bars)))
    return Plot(
        "plan-shares",
        "Shares of the budget",
        f"{wording.capital(labels[largest_line])} gets {largest_share} of the budget. An equal split gives "
        f"{wording.percent(1.0 / len(labels))} to each.",
        names_axis("number", " "),
        share_axis("share of the budget", limits, number_format=".1%"),
        bars,
        dataset.provenance,
        height=360,
    )
