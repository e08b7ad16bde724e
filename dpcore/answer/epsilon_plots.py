"""The figures of `dpcore.answer.against` as data. Pure: numbers in, plots out."""

from __future__ import annotations

import re

import numpy as np

from dpcore.answer.against import SHOWN, Against, OverEpsilon, Ways, WaysOverEpsilon
from dpcore.answer.plot import Axis, Curve, Item, Level, Look, Mark, Plot
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray

EPSILON = Axis("ε", "", SHOWN, title="Privacy budget ε", number=".3~g")
LOOKS = (Look.CAP, Look.SMOOTH, Look.SAMPLING, Look.USUAL, Look.PRIVACY)
"""Looks of the ways, in their order."""


def best_over_epsilon(
    name: str,
    of: Against,
    curves: OverEpsilon,
    epsilon: float,
    now: tuple[float, float] | None,
    kind: Provenance,
) -> tuple[Plot, Plot]:
    """The best bound, and its error, over ε.

    Args:
        name: Of the question.
        of: What is compared.
        curves: From `over_epsilon`.
        epsilon: In use.
        now: The best bound there and its error; None where that is not known.
        kind: Of the data.
    """
    bound, error = (None, None) if now is None else now
    return (
        _best(name, "bound", "best_bound", of.bound_axis, curves, curves.bounds, epsilon, bound, kind),
        _best(name, "error", "error", of.error_axis, curves, curves.errors, epsilon, error, kind),
    )


def ways_over_epsilon(name: str, of: Ways, curves: WaysOverEpsilon, epsilon: float, kind: Provenance) -> Plot:
    """What every way costs over ε, with the ε in use and where ways cross the first.

    Args:
        name: Of the question.
        of: What is compared.
        curves: From `dpcore.answer.against.ways_over_epsilon`.
        epsilon: In use.
        kind: Of the numbers.
    """
    ways: list[Item] = [
        Curve(way, "epsilon", way, look, width=2.0) for way, look in zip(of.names, LOOKS, strict=False)
    ]
    for at, words in of.crossings:
        if SHOWN[0] <= at <= SHOWN[1]:
            height = float(curves.errors[0, int(np.argmin(np.abs(curves.epsilons - at)))])
            ways.append(Mark(words, at, height, Look.OWN, "diamond-open", unnamed=True))
    return Plot(
        f"{name}-ways-over-epsilon",
        "What each way costs over ε",
        of.sentence or f"What each of {len(of.names)} ways costs over ε.",
        EPSILON,
        _axis(of.axis),
        {"epsilon": curves.epsilons, **dict(zip(of.names, curves.errors, strict=True))},
        (*ways, Level("ε in use", epsilon, upright=True)),
        kind,
    )


def _best(
    name: str,
    what: str,
    column: str,
    axis: str,
    curves: OverEpsilon,
    values: FloatArray,
    epsilon: float,
    here: float | None,
    kind: Provenance,
) -> Plot:
    items: list[Item] = [
        Curve("best at each ε", "epsilon", column, Look.TOTAL),
        Level("ε in use", epsilon, upright=True),
    ]
    if here is not None and here > 0.0:
        items.append(Mark("ε in use", epsilon, here, Look.SMOOTH, unnamed=True))
    ends = [
        f"{wording.number(value)} at ε = {wording.entered(at)}"
        for at, value in zip(curves.epsilons, values, strict=True)
    ]
    subject = "best bound" if what == "bound" else "error at the best bound"
    return Plot(
        f"{name}-{what}-over-epsilon",
        f"Best {what} over ε",
        f"The {subject} goes from {ends[0]} to {ends[-1]}."
        if ends
        else f"The best {what} over ε; nothing was computed.",
        EPSILON,
        _axis(axis),
        {"epsilon": curves.epsilons, column: values},
        tuple(items),
        kind,
        height=340,
    )


def _axis(title: str) -> Axis:
    """Return the axis with this title: a name with the unit in brackets."""
    name, unit = re.fullmatch(r"(.*?)(?: \((.*)\))?", title, flags=re.DOTALL).groups("")  # type: ignore[union-attr]
    return Axis(f"{name[:1].lower()}{name[1:]}", unit, title=title, number=",.4~g")
