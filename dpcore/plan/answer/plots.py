"""The figures of a plan as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Bars, Curve, Item, Level, Look, Mark, Plot, Scale
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanFound
from dpcore.plan.budget import MOST_AMOUNT

LOOKS = (Look.CAP, Look.SMOOTH, Look.SAMPLING, Look.PRIVACY, Look.USUAL)
"""Of the lines that are drawn: those with the largest shares. All stand in the file."""
EPSILONS = (0.02, 50.0)
POINTS = {NoiseKind.LAPLACE: 61, NoiseKind.GAUSSIAN: 33}
"""OpenDP's conversion takes 2 ms a point."""


def shown(found: PlanFound) -> list[int]:
    """Numbers of the lines that are drawn, those with the largest shares first."""
    order = sorted(range(len(found.lines)), key=lambda i: -found.lines[i].parts)
    return order[: len(LOOKS)]


def _over_epsilon(found: PlanFound) -> tuple[FloatArray, FloatArray]:
    """(Epsilon of the plan, v of a line that takes all of it) over the axis."""
    budget = found.budget
    if budget.noise is NoiseKind.LAPLACE:
        epsilons = np.geomspace(*_axis(budget.epsilon), POINTS[budget.noise])
        return epsilons, epsilons**-2.0
    # From amount to epsilon, one call of OpenDP each, and not back, which is a search. mu^2 = 20 is about epsilon = 30.
    at = 1.0 / budget.whole
    v = 1.0 / np.geomspace(
        min(1e-5, at / 2.0), max(40.0, min(at * 2.0, 0.999 * MOST_AMOUNT)), POINTS[budget.noise]
    )
    return np.array([budget.epsilon_of(float(budget.amount(at))) for at in v]), v


def _axis(at: float) -> tuple[float, float]:
    """From where to where epsilon goes, that of the plan among it."""
    return min(EPSILONS[0], at / 2.0), max(EPSILONS[1], at * 2.0)


def errors(found: PlanFound, data: Dataset) -> Plot:
    """The main figure: error over wanted error of each line against the epsilon of the whole plan."""
    epsilons, v = _over_epsilon(found)
    best, equal = found.ratios(found.lines, v), found.ratios(found.equal, v)
    columns: dict[str, FloatArray] = {"epsilon": epsilons}
    for line, ours, theirs in zip(found.lines, best, equal, strict=True):
        what = line.planned.line.what
        columns |= {f"{what}: error over wanted": ours, f"{what}: at an equal share": theirs}
    drawn = [
        (look, i, found.lines[i].planned.line.what) for look, i in zip(LOOKS, shown(found), strict=False)
    ]
    at = found.budget.epsilon
    items: list[Item] = [  # One after the other: they share an entry of the legend.
        Curve(
            f"{what}, equal share",
            "epsilon",
            f"{what}: at an equal share",
            look,
            legend="Equal shares",
            dash="dot",
            width=1.5,
            opacity=0.7,
        )
        for look, _, what in drawn
        if len(found.lines) > 1
    ]
    for look, i, what in drawn:
        items.append(Curve(what, "epsilon", f"{what}: error over wanted", look, dash="solid", width=2.5))
        ratio = found.lines[i].error / found.lines[i].planned.wanted
        items.append(Mark(f"{what}, this plan", at, ratio, look, unnamed=True))
    items += [Level("Wanted error", 1.0), Level("ε of this plan", at, upright=True, look=Look.TOTAL)]
    every = np.concatenate([*best, *equal])
    every = every[np.isfinite(every) & (every > 0.0)]
    low = max(float(every.min(initial=0.5)) / 1.5, 1e-3)
    high = min(max(float(every.max(initial=2.0)) * 1.5, 2.0), 1e4)
    return Plot(
        "plan-errors",
        "Error of each number over ε",
        _alt(found),
        Axis("ε of the whole plan", "", _axis(at)),
        Axis("error", "wanted error = 1", (min(low, 0.5), high), number=".3~g"),
        columns,
        tuple(items),
        data.provenance,
        main=True,
    )


def shares(found: PlanFound, data: Dataset) -> Plot:
    """Share of the budget of each line, in the plan and in an equal split, and of what all wanted errors need."""
    names = [line.planned.line.what for line in found.lines]
    columns = {
        "share": np.array([line.share for line in found.lines]),
        "equal_share": np.array([line.share for line in found.equal]),
    }
    bars: list[Item] = [
        Bars("This plan", "released", "share", Look.CAP),
        Bars("Equal split", "released", "equal_share", Look.USUAL),
    ]
    total = float(found.needed.sum())
    if 0.0 < total < np.inf:  # Else one of them is never reached, or all are without any budget.
        columns["needed_share"] = found.needed / total
        bars.append(Bars("What all wanted errors need", "released", "needed_share", Look.SMOOTH))
    most = max(float(column.max()) for column in columns.values())
    return Plot(
        "plan-shares",
        "Shares of the budget",
        f"{_largest(found)} An equal split gives {wording.percent(1.0 / len(names))} to each.",
        Axis("number", "", (0.0, 1.0), Scale.NAMES, title=" "),
        Axis("share of the budget", "", (0.0, min(1.0, 1.1 * most)), Scale.PERCENT, number=".1%"),
        columns,
        tuple(bars),
        data.provenance,
        {"released": names},
        height=360,
    )


def _largest(found: PlanFound) -> str:
    line = max(found.lines, key=lambda one: one.parts)
    return f"{wording.capital(line.planned.line.what)} gets {wording.percent(line.share)} of the budget."


def _alt(found: PlanFound) -> str:
    return (
        f"At ε = {wording.number(found.budget.epsilon)}, {found.reached} of {len(found.lines)} lines lie at or below "
        "their wanted error. Every error falls as ε of the whole plan grows and shares are kept"
        + ("; dotted lines have equal shares." if len(found.lines) > 1 else ".")
    )
