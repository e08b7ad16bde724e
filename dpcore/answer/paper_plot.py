"""A figure of a paper as a plot: our results with their interval over runs, and the numbers that the paper prints."""

from __future__ import annotations

import numpy as np

from dpcore.answer.paper_figure import FigureRuns, PaperFigure
from dpcore.answer.plot import Curve, Item, Level, Plot
from dpcore.common import wording
from dpcore.common.privacy import Disclosure

HEIGHT = 470


def build_plot(figure: PaperFigure, runs: FigureRuns) -> Plot:
    """Plot our results as lines with 95 % intervals, and the paper's dotted in the same colours, with its ±."""
    values = np.array(runs.values)
    columns, items = {"value": values}, list[Item]()
    for row, line in enumerate(figure.lines):
        mean, half_width, our_dash = runs.summary.mean[row], runs.half_width[row], line.dash or "solid"
        paper_name, paper_symbol = f"{line.name}, paper", f"{line.symbol}-open"
        for name, key, numbers, spread, dash, symbol in (
            (line.name, line.key, mean, half_width, our_dash, line.symbol),
            (paper_name, f"{line.key}_paper", line.paper_values, line.paper_spreads, "dot", paper_symbol),
        ):
            if not len(numbers):
                continue
            heights, widths = (
                np.array(numbers, dtype=np.float64) for numbers in (numbers, spread)
            )  # None is NaN.
            columns[key] = heights
            low = high = None
            if widths.size:
                low, high = heights - widths, heights + widths
                columns |= {f"{key}_low": low, f"{key}_high": high}
            if figure.is_exact and key == line.key:  # Its interval is empty.
                low = high = None
            items.append(
                Curve(name, values, heights, line.style, low, high, dash=dash, width=2.0, symbol=symbol)
            )
    for end in figure.stated_range or ():
        items.append(Level(f"Paper: {wording.number(end)}", end))
    return Plot(
        f"paper-{figure.key}",
        f"{figure.item}: {figure.title}",
        f"{figure.name}: {figure.title}. {describe_difference(figure, runs)}",
        figure.x,
        figure.y,
        items,
        Disclosure.PUBLIC,
        columns,
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
