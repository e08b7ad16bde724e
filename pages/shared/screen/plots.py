"""Shows a plot: the picture of it, its data as a file, and controls for the ends of its axes."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from dpcore.answer import Axis, Plot, Scale
from dpcore.common import wording
from dpcore.report import charts, plotly_figures
from pages.shared.fields import ranges
from pages.shared.figures import figures
from pages.shared.session import session

Keys = Callable[[str], str]
"""From a field of the parameters object to the session's key of it: `Question.key`."""


def picture(plot: Plot, label: str = "", moves: Keys | None = None) -> figures.Picture:
    """A plot as a figure of a page and of its report; a ``label`` stands above it and begins what it shows.

    ``moves`` gives the session's keys of the fields that the plot's handle moves; without it there is no handle.
    """

    def draw() -> go.Figure:
        drawn = plotly_figures.figure(plot)
        return charts.labelled(drawn, label) if label else drawn

    alt = f"{label}. {plot.alt}" if label else plot.alt
    made = plot.key, plot.title, draw, alt, plot.columns, plot.disclosure
    if moves is None or plot.handle is None:
        return figures.Picture(*made)
    return figures.Picture(
        *made, figures.handle_told(plot, plot.handle), figures.handle_moves(plot.handle, moves)
    )


def draw(plot: Plot, label: str = "", moves: Keys | None = None) -> None:
    """Draw a plot with a button for its data; ``label`` and ``moves`` as of `picture`."""
    figures.show_picture(picture(plot, label, moves))


def draw_titled(plot: Plot) -> None:
    """As `draw`, below its title."""
    st.markdown(f"**{plot.title}**")
    draw(plot)


def draw_beside(*several: Plot) -> None:
    """Plots side by side, each below its title."""
    for column, plot in zip(st.columns(len(several)), several, strict=True):
        with column:
            draw_titled(plot)


def show(
    plot: Plot, y_only: bool = False, label: str = "", moves: Keys | None = None, x_only: bool = False
) -> Plot:
    """Draw a plot with a button for its data, and controls for the ends of its axes; returns it as it is drawn.

    Args:
        plot: What is drawn. Controls have those of its axes that are logarithmic.
        y_only: Whether the horizontal axis follows that of another figure.
        label: As of `picture`.
        moves: Likewise.
        x_only: Whether the vertical axis stays as it is.
    """
    key = plot.key.replace("-", "_")
    movable = ({} if y_only else {"x": plot.x}) | ({} if x_only else {"y": plot.y})
    movable = {name: axis for name, axis in movable.items() if axis.scale is Scale.LOG}
    if not movable:
        figures.show_picture(picture(plot, label, moves))
        return plot
    name, note = ("Axis ranges", ranges.STAY_PUT) if len(movable) > 1 else ("Axis range", "")
    with ranges.under_figure(f"{key}_ranges", name, note) as (chart, below):
        chosen = {name: ends(axis, f"{key}_{name}") for name, axis in movable.items()}
    drawn_as = plot.within(**chosen)
    figures.show_picture(picture(drawn_as, label, moves), below, chart)
    if outside := drawn_as.outside:
        said = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in outside)
        # An axis without a control of its own stays as it is.
        places = ((getattr(drawn_as, of), getattr(mark, of)) for mark in outside for of in movable)
        widens = f" *{name}* widens them." if any(not axis.shows(at) for axis, at in places) else ""
        chart.caption(f"Outside the axes: {said}.{widens}")
    return drawn_as


def ends(axis: Axis, key: str) -> tuple[float, float]:
    """The ends that the person has chosen; with other data an axis begins anew."""
    unit = f", {axis.unit}" if axis.unit else ""
    label = f"{wording.capital(axis.name)}{unit}"
    version = session.data_version()
    key, kept = f"{key}_{axis.limits}_{version}", f"{key}_kept_{version}"
    if axis.number.endswith("%"):
        written = wording.percent
        return ranges.range_control(label, key, *axis.limits, reach=axis.reach, kept=kept, written=written)
    return ranges.range_control(label, key, *axis.limits, reach=axis.reach, kept=kept)
