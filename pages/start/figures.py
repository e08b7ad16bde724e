"""The picture on the Start page: what a bound throws away against the noise it needs. Pure."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.report import charts
from pages.shared.figures import Picture
from pages.start.answer import CELLS, RowsOfUsers, Tradeoff

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
        charts.add_curve(fig, name, view.errors.bounds, values / view.num_rows, line, hover)
    if view.best.max_total > 0:
        share = view.best.bound / view.num_rows
        text = f"Sweet spot: {wording.counted(view.best.max_total, 'row')}<br>error %{{y:.2~%}}"
        charts.add_marker(fig, "Sweet spot", view.best.max_total, share, charts.SMOOTH, "star", text)
    here = float(view.at(bound).bound) / view.num_rows
    text = f"Your bound: {wording.counted(bound, 'row')}<br>error %{{y:.2~%}}"
    charts.add_marker(fig, "Your bound", bound, here, charts.CAP, "diamond", text)
    return fig


def columns(view: Tradeoff) -> dict[str, FloatArray]:
    """What `figure` draws, as columns, in rows."""
    errors = view.errors
    return {"bound": errors.bounds, "lost": errors.bias, "noise": errors.noise, "total": errors.bound}


def rows_picture(rows: RowsOfUsers, bound: int, disclosure: Provenance) -> Picture:
    """Which rows a bound cuts, with its data."""
    cut = int((rows.sizes > bound).sum())
    alt = (
        f"A bound of {wording.counted(bound, 'row')} cuts rows of {cut} of the "
        f"{wording.counted(rows.sizes.size, 'user')} shown, the heaviest ones."
    )
    kept = np.minimum(rows.sizes, bound)
    columns = {
        "user": np.arange(1, rows.sizes.size + 1),
        "rows": rows.sizes,
        "kept": kept,
        "cut": rows.sizes - kept,
    }
    return Picture(
        "start-rows", "Which rows are cut", lambda: rows_figure(rows, bound), alt, columns, disclosure
    )


def rows_figure(rows: RowsOfUsers, bound: int) -> go.Figure:
    """A column of dots for each of some users, those above the bound hollow, and the bound as a line."""
    shown = (
        f"{wording.counted(rows.sizes.size, 'user')} of {wording.number(rows.num_users)}, fewest rows first"
    )
    fig = charts.figure(
        {
            "title": {"text": shown},
            "range": [-1.0, float(rows.sizes.size)],
            "showticklabels": False,
            "showgrid": False,
        },
        charts.linear_axis("Rows of a user", (0.0, 1.05 * max(float(rows.sizes[-1]), 2.0))),
        height=320,
    )
    kept = rows.is_kept(bound)
    for name, some, color, symbol in (
        ("Kept", kept, charts.CAP["color"], "circle"),
        ("Cut", ~kept, charts.SMOOTH["color"], "circle-open"),
    ):
        which = rows.user[some]
        look = {"color": color, "symbol": symbol, "size": 7}
        hover = f"a user with %{{customdata:,}} rows<extra>{name}</extra>"
        more = {"customdata": rows.sizes[which], "hovertemplate": hover}
        fig.add_trace(
            go.Scatter(x=rows.user[some], y=rows.height[some], name=name, mode="markers", marker=look, **more)
        )
    ends = [-1.0, float(rows.sizes.size)]
    charts.add_curve(fig, "Your bound", ends, [bound, bound], charts.OWN, "", hoverinfo="skip")
    return fig


def dots_said(rows: RowsOfUsers) -> str:
    """What a dot stands for."""
    if rows.rows_per_dot == 1:
        return "Each dot is a row."
    return f"Each dot stands for up to {wording.number(rows.rows_per_dot)} rows."
