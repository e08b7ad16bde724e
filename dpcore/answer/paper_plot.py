"""A figure of a paper as a plot: ours with its interval over runs, and what the paper prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.answer.axes import rounded_limits
from dpcore.answer.paper_figure import PaperFigure, Stored
from dpcore.answer.plot import Curve, Item, Level, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray

HEIGHT = 470


def columns_of(of: PaperFigure, found: Stored) -> dict[str, FloatArray]:
    """What was varied, and for each line ours and theirs with both ends of their intervals.

    The interval of ours is 95 %, or its range over readings; that of theirs is what stands behind ±. Shape of all:
    (values,); NaN where the paper prints nothing.
    """
    columns: dict[str, FloatArray] = {"value": np.array(found.values)}
    half = found.half_width
    for at, line in enumerate(of.lines):
        mean = found.over_runs.mean[at]
        low, high = mean - half[at], mean + half[at]
        if found.ranges:
            assert found.low is not None
            assert found.high is not None
            low = np.where(np.isnan(found.low[at]), low, found.low[at])
            high = np.where(np.isnan(found.high[at]), high, found.high[at])
        columns |= {line.key: mean, f"{line.key}_low": low, f"{line.key}_high": high}
        if line.theirs:
            theirs = np.array(line.theirs, dtype=np.float64)  # None is NaN.
            columns[f"{line.key}_paper"] = theirs
            if line.spread:
                spread = np.array(line.spread, dtype=np.float64)
                columns |= {
                    f"{line.key}_paper_low": theirs - spread,
                    f"{line.key}_paper_high": theirs + spread,
                }
    return columns


def drawing(of: PaperFigure, found: Stored) -> Plot:
    """Ours as lines with bars, theirs dotted in the same colours."""
    items: list[Item] = []
    columns = columns_of(of, found)
    for line in of.lines:
        items.append(
            Curve(
                line.name,
                "value",
                line.key,
                line.look,
                dash=line.dash or "solid",
                width=2.0,
                symbol=line.symbol,
                low="" if of.exact and not found.ranges else f"{line.key}_low",
                high="" if of.exact and not found.ranges else f"{line.key}_high",
            )
        )
        if line.theirs:
            items.append(
                Curve(
                    f"{line.name}, paper",
                    "value",
                    f"{line.key}_paper",
                    line.look,
                    dash="dot",
                    width=2.0,
                    symbol=f"{line.symbol}-open",
                    low=f"{line.key}_paper_low" if line.spread else "",
                    high=f"{line.key}_paper_high" if line.spread else "",
                )
            )
    y = of.y
    if y.scale is not Scale.PERCENT and of.within is None:
        drawn = np.concatenate([columns[name] for name in columns if name != "value"])
        y = replace(y, limits=_limits(drawn, y.scale))
    for end in of.within or ():
        items.append(Level(f"Paper: {wording.number(end)}", end))
    return Plot(
        f"paper-{of.key}",
        f"{of.item}: {of.title}",
        f"{of.name}: {of.title}. {said(of, found)}",
        of.x,
        y,
        columns,
        tuple(items),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )


def _limits(drawn: FloatArray, scale: Scale) -> tuple[float, float]:
    """All that is drawn: between powers of ten, or with a tenth of its height above and below."""
    if scale is Scale.LOG:
        return rounded_limits(drawn)
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    room = 0.1 * (high - low)
    return low - room, high + room


def said(of: PaperFigure, found: Stored) -> str:
    """How far ours lies from theirs, a sentence."""
    apart = of.largest_difference(found)
    if apart is None:
        return "The paper draws this figure and prints no numbers of it."
    if of.within is not None:
        low, high = (wording.number(end) for end in of.within)
        outside = f"at most {wording.percent(apart)} outside" if apart > 0.0 else "within"
        return f"The paper says {low} to {high}; ours lie {outside}."
    if found.ranges:
        where = f"at most {wording.percent(apart)} outside" if apart > 0.0 else "within"
        return f"What the paper prints lies {where} the range of ours over what it leaves open."
    return f"Largest difference from what the paper prints: {wording.percent(apart)}."
