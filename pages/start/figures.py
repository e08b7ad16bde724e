"""The picture on the Start page: what a bound throws away against the noise it needs. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import plotly.graph_objects as go

from dpcore import total
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data.totals_per_user import Amounts
from pages.mean.answer import curve_bounds
from pages.shared import charts, ranges

CELLS = 12
"""Counts in the table of the picture, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon: added
    up over the table, the noise is that of one sum at epsilon / `CELLS` (`dpcore.total`).

    Attributes:
        num_rows: All rows.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows.
        best: The bound with the smallest sum of both.
    """

    num_rows: float
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice


def tradeoff(histogram: ContributionHistogram, epsilon: float) -> Tradeoff:
    """Bias and noise over the bound, and the best bound (Amin et al. 2019, equation 5, summed over the table)."""
    problem = total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.BOUND, whole=True
    )
    errors = total.errors(problem, curve_bounds(histogram))
    return Tradeoff(float(histogram.num_rows), problem, errors, total.best_bound(problem))


def bound_steps(histogram: ContributionHistogram) -> tuple[int, ...]:
    """Bounds for the slider: 1, 2 and 5 times powers of ten, up to the heaviest user."""
    rungs = [int(rung) for rung in ranges.ladder(1.0, max(float(histogram.max_size), 2.0)) if rung >= 1]
    return (*(rung for rung in rungs if rung < histogram.max_size), histogram.max_size)


def first_bound(histogram: ContributionHistogram) -> int:
    """Where the slider stands at first: the step nearest to the median, which many take without asking."""
    median = histogram.summary().median
    return min(bound_steps(histogram), key=lambda step: abs(math.log(step / median)))


def axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Where the axis of the bound starts and ends before anything is chosen."""
    low, high = float(histogram.min_size), float(histogram.max_size)
    return low, max(high, 2.0 * low)


def figure(view: Tradeoff, bound: int, limits: tuple[float, float]) -> go.Figure:
    """The two errors over the bound, the bound that is set, and the best one."""
    fig = charts.figure(
        charts.log_axis("Upper bound on contributions (rows per user)", limits),
        charts.linear_axis(f"Error of {CELLS} private counts (share of all rows)", (0.0, 1.0), percent=True),
        height=400,
    )
    hover = "%{fullData.name}<br>bound %{x:,.3~r} rows: %{y:.2~%}"
    for name, values, line in (
        ("Thrown away (bias)", view.errors.bias, charts.SAMPLING),
        ("Privacy noise", view.errors.noise, charts.PRIVACY),
        ("Both together", view.errors.bound, charts.TOTAL),
    ):
        fig.add_trace(charts.curve(name, view.errors.bounds, values / view.num_rows, line, hover))
    if view.best.max_total > 0:
        share = view.best.bound / view.num_rows
        text = f"Sweet spot: {wording.counted(view.best.max_total, 'row')}<br>error %{{y:.2~%}}"
        fig.add_trace(
            charts.marker("Sweet spot", view.best.max_total, share, charts.SMOOTH["color"], "star", text)
        )
    here = float(total.errors(view.problem, float(bound)).bound) / view.num_rows
    text = f"bound {wording.counted(bound, 'row')}<br>error %{{y:.2~%}}"
    fig.add_trace(charts.marker("Your bound", bound, here, charts.CAP["color"], "diamond", text))
    return fig


def sentence(view: Tradeoff, epsilon: float, bound: int) -> str:
    """What the bound that is set does, and where the best one is."""
    here, rows = total.errors(view.problem, float(bound)), view.num_rows
    said = (
        f"With at most **{wording.counted(bound, 'row')} per user** and ε = {wording.entered(epsilon)}, "
        f"{wording.percent(float(here.bias) / rows)} of all rows are thrown away, and the noise adds up to "
        f"{wording.percent(float(here.noise) / rows)} of them: together up to "
        f"**{wording.percent(float(here.bound) / rows)} error**."
    )
    if view.best.max_total <= 0:
        return f"{said} With so few users and so small an ε, every bound gives more noise than count."
    best = wording.percent(view.best.bound / rows)
    return f"{said} The sweet spot is at {wording.counted(view.best.max_total, 'row')}: {best}."


def outside(view: Tradeoff, bound: int, limits: tuple[float, float]) -> str:
    """A sentence on the marked points that the figure leaves out; empty where it shows both."""
    points: list[tuple[str, float, float]] = [
        ("your bound", bound, float(total.errors(view.problem, float(bound)).bound))
    ]
    if view.best.max_total > 0:
        points.append(("the sweet spot", view.best.max_total, view.best.bound))
    missing = [name for name, h, error in points if not limits[0] <= h <= limits[1] or error > view.num_rows]
    return f"Outside the axes, which end at 100{wording.PERCENT}: {' and '.join(missing)}." if missing else ""


def columns(view: Tradeoff) -> dict[str, FloatArray]:
    """What `figure` draws, as columns, in rows."""
    errors = view.errors
    return {"bound": errors.bounds, "lost": errors.bias, "noise": errors.noise, "total": errors.bound}
