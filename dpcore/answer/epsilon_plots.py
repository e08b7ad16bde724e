"""The plots of `dpcore.answer.against`. Pure: numbers in, plots out."""

from __future__ import annotations

import re

import numpy as np

from dpcore.answer.against import EPSILON_LIMITS, BoundComparison, BoundCurves, MethodComparison, MethodCurves
from dpcore.answer.plot import Axis, Column, Curve, Item, Level, Mark, Plot, Style
from dpcore.common import wording
from dpcore.common.privacy import Provenance

EPSILON_AXIS = Axis("ε", "", EPSILON_LIMITS, title="Privacy budget ε", number_format=".3~g")
METHOD_STYLES = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.CUSTOMARY, Style.PRIVACY)
"""Styles of the methods, in their order."""


def plot_best(
    name: str,
    comparison: BoundComparison,
    curves: BoundCurves,
    epsilon: float,
    current_best: tuple[float, float] | None,
    disclosure: Provenance,
) -> tuple[Plot, Plot]:
    """Plot the best bound, and its error, over ε.

    Args:
        name: Of the question.
        comparison: What is compared.
        curves: From `compute_bound_curves`.
        epsilon: In use.
        current_best: The best bound there and its error; None where that is not known.
        disclosure: Of the data.
    """
    bound, error = (None, None) if current_best is None else current_best
    return (
        _plot_curve(name, "bound", "best_bound", comparison.bound_axis, curves, epsilon, bound, disclosure),
        _plot_curve(name, "error", "error", comparison.error_axis, curves, epsilon, error, disclosure),
    )


def plot_methods(
    name: str, comparison: MethodComparison, curves: MethodCurves, epsilon: float, disclosure: Provenance
) -> Plot:
    """Plot the cost of every method over ε, with the ε in use and the crossings with the first.

    Args:
        name: Of the question.
        comparison: What is compared.
        curves: From `dpcore.answer.against.plot_methods`.
        epsilon: In use.
        disclosure: Of the numbers.
    """
    epsilons = Column("epsilon", curves.epsilons)
    items: list[Item] = [
        Curve(method, epsilons, Column(method, errors), style, width=2.0)
        for method, errors, style in zip(comparison.names, curves.errors, METHOD_STYLES, strict=False)
    ]
    for crossing, text in comparison.crossings:
        if EPSILON_LIMITS[0] <= crossing <= EPSILON_LIMITS[1]:
            height = float(curves.errors[0, int(np.argmin(np.abs(curves.epsilons - crossing)))])
            items.append(Mark(text, crossing, height, Style.ENTERED, "diamond-open", is_unnamed=True))
    return Plot(
        f"{name}-ways-over-epsilon",
        "What each way costs over ε",
        comparison.sentence or f"What each of {len(comparison.names)} ways costs over ε.",
        EPSILON_AXIS,
        _build_axis(comparison.axis),
        (*items, Level("ε in use", epsilon, is_vertical=True)),
        disclosure,
    )


def _plot_curve(
    name: str,
    quantity: str,
    column: str,
    axis: str,
    curves: BoundCurves,
    epsilon: float,
    current_value: float | None,
    disclosure: Provenance,
) -> Plot:
    values = curves.bounds if quantity == "bound" else curves.errors
    items: list[Item] = [
        Curve("best at each ε", Column("epsilon", curves.epsilons), Column(column, values), Style.TOTAL),
        Level("ε in use", epsilon, is_vertical=True),
    ]
    if current_value is not None and current_value > 0.0:
        items.append(Mark("ε in use", epsilon, current_value, Style.SMOOTH, is_unnamed=True))
    end_texts = [
        f"{wording.number(value)} at ε = {wording.entered(end_epsilon)}"
        for end_epsilon, value in zip(curves.epsilons, values, strict=True)
    ]
    subject = "best bound" if quantity == "bound" else "error at the best bound"
    return Plot(
        f"{name}-{quantity}-over-epsilon",
        f"Best {quantity} over ε",
        f"The {subject} goes from {end_texts[0]} to {end_texts[-1]}."
        if end_texts
        else f"The best {quantity} over ε; nothing was computed.",
        EPSILON_AXIS,
        _build_axis(axis),
        items,
        disclosure,
        height=340,
    )


def _build_axis(title: str) -> Axis:
    """Build the axis of values above 0; ``title`` is its name with the unit in brackets."""
    name, unit = re.fullmatch(r"(.*?)(?: \((.*)\))?", title, flags=re.DOTALL).groups("")  # type: ignore[union-attr]
    return Axis(f"{name[:1].lower()}{name[1:]}", unit, title=title, number_format=",.4~g")
