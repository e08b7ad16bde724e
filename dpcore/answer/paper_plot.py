"""A figure of a paper as a plot: our results with their interval over runs, and the numbers that the paper prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.answer.axes import round_to_powers
from dpcore.answer.paper_figure import PaperFigure, StoredRuns
from dpcore.answer.plot import Curve, Item, Level, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray

HEIGHT = 470


def tabulate(figure: PaperFigure, stored: StoredRuns) -> dict[str, FloatArray]:
    """Tabulate the varied values, and for each line ours and the paper's with both ends of their intervals.

    The interval of ours is 95 %, or its range over readings; that of the paper is what stands behind ±. Shape
    of all: (values,); NaN where the paper prints nothing.
    """
    columns: dict[str, FloatArray] = {"value": np.array(stored.values)}
    half_width = stored.half_width
    for position, line in enumerate(figure.lines):
        mean = stored.summary.mean[position]
        low, high = mean - half_width[position], mean + half_width[position]
        if stored.has_ranges:
            assert stored.low is not None
            assert stored.high is not None
            low = np.where(np.isnan(stored.low[position]), low, stored.low[position])
            high = np.where(np.isnan(stored.high[position]), high, stored.high[position])
        columns |= {line.key: mean, f"{line.key}_low": low, f"{line.key}_high": high}
        if line.paper_values:
            paper_values = np.array(line.paper_values, dtype=np.float64)  # None is NaN.
            columns[f"{line.key}_paper"] = paper_values
            if line.paper_spreads:
                paper_spread = np.array(line.paper_spreads, dtype=np.float64)
                columns |= {
                    f"{line.key}_paper_low": paper_values - paper_spread,
                    f"{line.key}_paper_high": paper_values + paper_spread,
                }
    return columns


def plot_figure(figure: PaperFigure, stored: StoredRuns) -> Plot:
    """Plot our results as lines with bars, the paper's dotted in the same colours."""
    items: list[Item] = []
    columns = tabulate(figure, stored)
    for line in figure.lines:
        items.append(
            Curve(
                line.name,
                "value",
                line.key,
                line.style,
                dash=line.dash or "solid",
                width=2.0,
                symbol=line.symbol,
                low="" if figure.is_exact and not stored.has_ranges else f"{line.key}_low",
                high="" if figure.is_exact and not stored.has_ranges else f"{line.key}_high",
            )
        )
        if line.paper_values:
            items.append(
                Curve(
                    f"{line.name}, paper",
                    "value",
                    f"{line.key}_paper",
                    line.style,
                    dash="dot",
                    width=2.0,
                    symbol=f"{line.symbol}-open",
                    low=f"{line.key}_paper_low" if line.paper_spreads else "",
                    high=f"{line.key}_paper_high" if line.paper_spreads else "",
                )
            )
    y = figure.y
    if y.scale is not Scale.PERCENT and figure.stated_range is None:
        drawn_values = np.concatenate([columns[name] for name in columns if name != "value"])
        y = replace(y, limits=_choose_limits(drawn_values, y.scale))
    for limit in figure.stated_range or ():
        items.append(Level(f"Paper: {wording.number(limit)}", limit))
    return Plot(
        f"paper-{figure.key}",
        f"{figure.item}: {figure.title}",
        f"{figure.name}: {figure.title}. {describe_difference(figure, stored)}",
        figure.x,
        y,
        columns,
        tuple(items),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )


def _choose_limits(drawn_values: FloatArray, scale: Scale) -> tuple[float, float]:
    """Choose limits around all drawn values: powers of ten, or with a tenth of their height above and below."""
    if scale is Scale.LOG:
        return round_to_powers(drawn_values)
    low, high = float(np.nanmin(drawn_values)), float(np.nanmax(drawn_values))
    margin = 0.1 * (high - low)
    return low - margin, high + margin


def describe_difference(figure: PaperFigure, stored: StoredRuns) -> str:
    """Write how far ours lies from the paper's numbers, a sentence."""
    difference = figure.compute_largest_difference(stored)
    if difference is None:
        return "The paper draws this figure and prints no numbers of it."
    if figure.stated_range is not None:
        low, high = (wording.number(end) for end in figure.stated_range)
        position_text = f"at most {wording.percent(difference)} outside" if difference > 0.0 else "within"
        return f"The paper says {low} to {high}; ours lie {position_text}."
    if stored.has_ranges:
        position_text = f"at most {wording.percent(difference)} outside" if difference > 0.0 else "within"
        return f"What the paper prints lies {position_text} the range of ours over what it leaves open."
    return f"Largest difference from what the paper prints: {wording.percent(difference)}."
