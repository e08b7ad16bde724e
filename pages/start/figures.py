"""The picture on the Start page: what a bound throws away against the noise it needs. Pure."""

from __future__ import annotations

import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from pages.shared import charts
from pages.shared.figures import Picture
from pages.start.answer import CELLS, Tradeoff

ALT = (
    "As the bound grows, fewer rows are thrown away and more noise is needed; the sum is smallest in between."
)


def picture(view: Tradeoff, bound: int, limits: tuple[float, float], disclosure: Provenance) -> Picture:
    """The figure with its data."""
    return Picture(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        lambda: figure(view, bound, limits),
        ALT,
        columns(view),
        disclosure,
    )


def figure(view: Tradeoff, bound: int, limits: tuple[float, float]) -> go.Figure:
    """The two errors over the bound, the bound that is set, and the best one."""
    fig = charts.figure(
        charts.log_axis("Upper bound on contributions (rows per user)", limits),
        charts.linear_axis(f"Error of {CELLS} private counts (share of all rows)", (0.0, 1.0), percent=True),
        height=charts.MAIN_HEIGHT,
    )
    hover = "%{fullData.name}<br>bound (rows per user): %{x:,.3~r}<br>error: %{y:.2~%}"
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
    here = float(view.at(bound).bound) / view.num_rows
    text = f"Your bound: {wording.counted(bound, 'row')}<br>error %{{y:.2~%}}"
    fig.add_trace(charts.marker("Your bound", bound, here, charts.CAP["color"], "diamond", text))
    return fig


def columns(view: Tradeoff) -> dict[str, FloatArray]:
    """What `figure` draws, as columns, in rows."""
    errors = view.errors
    return {"bound": errors.bounds, "lost": errors.bias, "noise": errors.noise, "total": errors.bound}
