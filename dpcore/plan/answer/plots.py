"""Plots of a plan as data. Pure functions of the solution."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Bars, Curve, Item, Level, Mark, Plot, Scale, Style
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanSolution
from dpcore.plan.budget import MAX_AMOUNT

LINE_STYLES = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.PRIVACY, Style.CUSTOMARY)
"""Of the lines that are drawn: those with the largest shares. All stand in the file."""
EPSILONS = (0.02, 50.0)
POINTS = {NoiseKind.LAPLACE: 61, NoiseKind.GAUSSIAN: 33}
"""OpenDP's conversion takes 2 ms a point."""


def choose_visible_lines(solution: PlanSolution) -> list[int]:
    """Choose the lines that are plotted, those with the largest shares first."""
    order = sorted(range(len(solution.lines)), key=lambda line_index: -solution.lines[line_index].num_parts)
    return order[: len(LINE_STYLES)]


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
        solution.compute_error_ratios(solution.lines, v),
        solution.compute_error_ratios(solution.equal_split, v),
    )
    columns: dict[str, FloatArray] = {"epsilon": epsilons}
    for line, plan_ratios, equal_ratios in zip(solution.lines, plan_curves, equal_curves, strict=True):
        line_label = line.planned.line.label
        columns |= {
            f"{line_label}: error over wanted": plan_ratios,
            f"{line_label}: at an equal share": equal_ratios,
        }
    visible_lines = [
        (style, line_index, solution.lines[line_index].planned.line.label)
        for style, line_index in zip(LINE_STYLES, choose_visible_lines(solution), strict=False)
    ]
    plan_epsilon = solution.budget.epsilon
    items: list[Item] = [  # One after the other: they share an entry of the legend.
        Curve(
            f"{line_label}, equal share",
            "epsilon",
            f"{line_label}: at an equal share",
            style,
            legend="Equal shares",
            dash="dot",
            width=1.5,
            opacity=0.7,
        )
        for style, _, line_label in visible_lines
        if len(solution.lines) > 1
    ]
    for style, line_index, line_label in visible_lines:
        items.append(
            Curve(line_label, "epsilon", f"{line_label}: error over wanted", style, dash="solid", width=2.5)
        )
        ratio = solution.lines[line_index].error / solution.lines[line_index].planned.target_error
        items.append(Mark(f"{line_label}, this plan", plan_epsilon, ratio, style, is_unnamed=True))
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
        columns,
        tuple(items),
        dataset.provenance,
        is_main=True,
    )


def plot_shares(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot the share of each line in the plan, in an equal split, and in what all target errors need."""
    names = [line.planned.line.label for line in solution.lines]
    columns = {
        "share": np.array([line.share for line in solution.lines]),
        "equal_share": np.array([line.share for line in solution.equal_split]),
    }
    bars: list[Item] = [
        Bars("This plan", "released", "share", Style.CAP),
        Bars("Equal split", "released", "equal_share", Style.CUSTOMARY),
    ]
    total = float(solution.needed_amounts.sum())
    if 0.0 < total < np.inf:  # Else one of them is never reached, or all are without any budget.
        columns["needed_share"] = solution.needed_amounts / total
        bars.append(Bars("What all wanted errors need", "released", "needed_share", Style.SMOOTH))
    largest_share = max(float(column.max()) for column in columns.values())
    return Plot(
        "plan-shares",
        "Shares of the budget",
        f"{_describe_largest_share(solution)} An equal split gives {wording.percent(1.0 / len(names))} to each.",
        Axis("number", "", (0.0, 1.0), Scale.NAMES, title=" "),
        Axis(
            "share of the budget",
            "",
            (0.0, min(1.0, 1.1 * largest_share)),
            Scale.PERCENT,
            number_format=".1%",
        ),
        columns,
        tuple(bars),
        dataset.provenance,
        {"released": names},
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
