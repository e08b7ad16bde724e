"""Shows a plot: the picture of it, its data as a file, and controls for the ends of its axes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.answer import Answer, Axis, Plot, Scale
from dpcore.common import wording
from dpcore.report import charts, plotly_figures
from pages.shared.card import cards
from pages.shared.figures import figures
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

Keys = Callable[[str], str]
"""From a field of the parameters object to the session's key of it: `Question.key`."""


def main_plot(answer: Answer, key: str) -> Plot:
    """Return the main figure of an answer; a bound that was drawn privately is marked in it."""
    plot, way = answer.plots[key](), cards.private_way(answer)
    return plot if way is None or way.drawn is None else plot.with_selection(*way.selection)


def draw(
    plot: Plot,
    label: str = "",
    moves: Keys | None = None,
    below: DeltaGenerator | None = None,
    place: DeltaGenerator | None = None,
) -> None:
    """Draw a plot with a button for its data.

    Args:
        plot: The plot.
        label: What stands above it and begins its description; empty for nothing.
        moves: The session's keys of the fields that the plot's handle moves; None for no handle.
        below: The place of the button, as in `figures.show`.
        place: The place of the figure, likewise.
    """
    fig, alt = plotly_figures.draw(plot), plot.alt
    if label:
        fig, alt = charts.add_label(fig, label), f"{label}. {alt}"
    handle = None
    if moves is not None and plot.handle is not None:
        handle = (figures.handle_told(plot, plot.handle), figures.handle_moves(plot.handle, moves))
    key = plot.key.replace("-", "_")
    figures.show(fig, key, alt, plot.columns, plot.disclosure, below, place, handle)


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
        label: As of `draw`.
        moves: Likewise.
        x_only: Whether the vertical axis stays as it is.
    """
    key = plot.key.replace("-", "_")
    movable = ({} if y_only else {"x": plot.x}) | ({} if x_only else {"y": plot.y})
    movable = {name: axis for name, axis in movable.items() if axis.scale is Scale.LOG}
    if not movable:
        draw(plot, label, moves)
        return plot
    name, note = ("Axis ranges", STAY_PUT) if len(movable) > 1 else ("Axis range", "")
    with under_figure(f"{key}_ranges", name, note) as (chart, below):
        chosen = {name: ends(axis, f"{key}_{name}") for name, axis in movable.items()}
    drawn_as = plot.with_limits(**chosen)
    draw(drawn_as, label, moves, below, chart)
    if outside := drawn_as.hidden_marks:
        said = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in outside)
        # An axis without a control of its own stays as it is.
        places = ((getattr(drawn_as, of), getattr(mark, of)) for mark in outside for of in movable)
        widens = f" *{name}* widens them." if any(not axis.contains(at) for axis, at in places) else ""
        chart.caption(f"Outside the axes: {said}.{widens}")
    return drawn_as


def ends(axis: Axis, key: str) -> tuple[float, float]:
    """Return the ends that the person has chosen; with other data an axis begins anew."""
    unit = f", {axis.unit}" if axis.unit else ""
    label = f"{wording.capital(axis.name)}{unit}"
    version = session.data_version()
    key, kept = f"{key}_{axis.limits}_{version}", f"{key}_kept_{version}"
    if axis.number_format.endswith("%"):
        written = wording.percent
        return range_control(label, key, *axis.limits, reach=axis.limits_range, kept=kept, written=written)
    return range_control(label, key, *axis.limits, reach=axis.limits_range, kept=kept)


STEPS = (1.0, 2.0, 5.0)


def ladder(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 times powers of ten from at most ``low`` to at least ``high``, both above 0."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    rungs = [step * 10.0**power for power in range(first, last + 1) for step in STEPS]
    start = max((i for i, rung in enumerate(rungs) if rung <= low * (1 + 1e-9)), default=0)
    end = min((i for i, rung in enumerate(rungs) if rung >= high * (1 - 1e-9)), default=len(rungs) - 1)
    return tuple(float(f"{rung:.0e}") for rung in rungs[start : end + 1])


STAY_PUT = "The axes stay put while you move ε, so that curves can be compared."


@contextlib.contextmanager
def under_figure(
    key: str, name: str = "Axis ranges", note: str = STAY_PUT
) -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """A place for a figure, and one for what stands below it, where a popover holds what is drawn within.

    Args:
        key: Of the popover, unique on the page.
        name: On its button.
        note: Below what it holds.

    Yields:
        The place of the figure, and the place below it.
    """
    chart = st.container()
    below = st.container(horizontal=True, vertical_alignment="center")
    with below.popover(name, icon=":material/straighten:", key=key):
        yield chart, below
        if note:
            st.caption(note)


def range_control(
    label: str,
    key: str,
    low: float,
    high: float,
    room: float = 100.0,
    written: Callable[[float], str] = "{:,g}".format,
    reach: tuple[float, float] | None = None,
    kept: str = "",
) -> tuple[float, float]:
    """Return a from/to control for a log axis.

    Args:
        label: What the axis shows, with unit.
        key: Session key; it must change when the data do, since the range offered comes from them.
        low: Where the axis starts before anything is chosen, above 0.
        high: Where it ends.
        room: By what factor the choice reaches beyond on either side, where no ``reach`` is given.
        written: How a number of the axis is written.
        reach: From where to where the choice reaches.
        kept: Session key under which a choice outlives a change of ``key``, as where the axis follows curves that move.

    Returns:
        (from, to), from < to.
    """
    least, most = reach or (low / room, high * room)
    rungs = ladder(min(least, low), max(most, high))
    start = max(rung for rung in rungs if rung <= low * (1 + 1e-9))
    end = min(rung for rung in rungs if rung >= high * (1 - 1e-9))
    # The default goes in by value: only from its being a pair does the slider know that it has two handles.
    first = (start, end if end > start else rungs[rungs.index(start) + 1])
    state, before = st.session_state, st.session_state.get(kept) if kept else None
    if before is not None and key not in state and set(before) <= set(rungs):
        # Before the widget is drawn: afterwards Streamlit lets nobody set what it holds.
        state[key] = before
    chosen = st.select_slider(label, rungs, first, key=key, format_func=written, persist_state="session")
    if kept:
        state[kept] = chosen if chosen != first else None
    below, above = chosen
    if below < above:
        return below, above
    index = rungs.index(below)
    return (below, rungs[index + 1]) if index + 1 < len(rungs) else (rungs[index - 1], below)
