"""A figure of a paper as a plot: our results with their interval over runs, and the numbers that the paper prints."""

from __future__ import annotations

import numpy as np

from dpcore.answer.paper_figure import FigureRuns, PaperFigure
from dpcore.answer.plot import Curve, Item, Level, Plot
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray

HEIGHT = 470


def build_columns(figure: PaperFigure, runs: FigureRuns) -> dict[str, FloatArray]:
    """Return what was varied, and for each line ours and theirs with both ends of their intervals.

    The interval of ours is 95 %; that of theirs is what stands behind ±. Shape of all: (values,); NaN where the paper
    prints nothing.
    """
    columns: dict[str, FloatArray] = {"value": np.array(runs.values)}
    for row, line in enumerate(figure.lines):
        mean, half_width = runs.summary.mean[row], runs.half_width[row]
        columns |= {
            line.key: mean,
            f"{line.key}_low": mean - half_width,
            f"{line.key}_high": mean + half_width,
        }
        if line.paper_values:
            paper_values = np.array(line.paper_values, dtype=np.float64)  # None is NaN.
            columns[f"{line.key}_paper"] = paper_values
            if line.paper_spreads:
                spread = np.array(line.paper_spreads, dtype=np.float64)
                columns |= {
                    f"{line.key}_paper_low": paper_values - spread,
                    f"{line.key}_paper_high": paper_values + spread,
                }
    return columns


def build_plot(figure: PaperFigure, runs: FigureRuns) -> Plot:
    """Draw ours as lines with bars, theirs dotted in the same colours."""
    items: list[Item] = []
    columns = build_columns(figure, runs)
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
                low="" if figure.is_exact else f"{line.key}_low",
                high="" if figure.is_exact else f"{line.key}_high",
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
    for end in figure.stated_range or ():
        items.append(Level(f"Paper: {wording.number(end)}", end))
    return Plot(
        f"paper-{figure.key}",
        f"{figure.item}: {figure.title}",
        f"{figure.name}: {figure.title}. {describe_difference(figure, runs)}",
        figure.x,
        figure.y,
        columns,
        tuple(items),
        Disclosure.PUBLIC,
        height=HEIGHT,
    )


def describe_difference(figure: PaperFigure, runs: FigureRuns) -> str:
    """Say how far ours lies from theirs, in a sentence."""
    difference = figure.compute_largest_difference(runs)
    if difference is None:
        return "The paper draws this figure and prints no numbers of it."
    if figure.stated_range is not None:
        low, high = (wording.number(end) for end in figure.stated_range)
        distance = f"at most {wording.percent(difference)} outside" if difference > 0.0 else "within"
        return f"The paper says {low} to {high}; ours lie {distance}."
    return f"Largest difference from what the paper prints: {wording.percent(difference)}."
