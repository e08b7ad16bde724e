"""Shows plots: the picture, its data as a file, and controls for the limits of its axes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import plotly.graph_objects as go
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


def build_picture(plot: Plot, label: str = "", key_of: Keys | None = None) -> figures.Picture:
    """Return a plot as a picture for a page and its report; a ``label`` stands above it and begins its text.

    ``key_of`` gives the session key of each field that the plot's handle moves; without it there is no handle.
    """

    def draw() -> go.Figure:
        fig = plotly_figures.draw(plot)
        return charts.add_label(fig, label) if label else fig

    alt = f"{label}. {plot.alt}" if label else plot.alt
    arguments = plot.key, plot.title, draw, alt, plot.columns, plot.disclosure
    if key_of is None or plot.handle is None:
        return figures.Picture(*arguments)
    return figures.Picture(
        *arguments, figures.describe_handle(plot, plot.handle), figures.list_handle_keys(plot.handle, key_of)
    )


def main_plot(answer: Answer, key: str) -> Plot:
    """Return the main figure of an answer; a privately drawn bound is marked in it."""
    plot, private_draw = answer.plots[key](), cards.private_way(answer)
    if private_draw is None or private_draw.drawn is None:
        return plot
    return plot.with_selection(*private_draw.selection)


def draw(plot: Plot, label: str = "", key_of: Keys | None = None) -> None:
    """Draw a plot with a button for its data; the other arguments are those of `build_picture`."""
    figures.show_picture(build_picture(plot, label, key_of))


def draw_titled(plot: Plot) -> None:
    """Draw a plot below its title."""
    st.markdown(f"**{plot.title}**")
    draw(plot)


def draw_beside(*plots: Plot) -> None:
    """Draw plots side by side, each below its title."""
    for column, plot in zip(st.columns(len(plots)), plots, strict=True):
        with column:
            draw_titled(plot)


def show(
    plot: Plot, keeps_x: bool = False, label: str = "", key_of: Keys | None = None, keeps_y: bool = False
) -> Plot:
    """Draw a plot with a button for its data and controls for its axes' limits; return it with these limits.

    Args:
        plot: The plot. Only logarithmic axes have controls.
        keeps_x: True if the horizontal axis has no control, as it follows that of another figure.
        label: As in `build_picture`.
        key_of: As in `build_picture`.
        keeps_y: True if the vertical axis has no control.
    """
    key = plot.key.replace("-", "_")
    movable = ({} if keeps_x else {"x": plot.x}) | ({} if keeps_y else {"y": plot.y})
    movable = {name: axis for name, axis in movable.items() if axis.scale is Scale.LOG}
    if not movable:
        figures.show_picture(build_picture(plot, label, key_of))
        return plot
    name, note = ("Axis ranges", FIXED_AXES_NOTE) if len(movable) > 1 else ("Axis range", "")
    with place_controls(f"{key}_ranges", name, note) as (chart, controls):
        limits = {name: choose_limits(axis, f"{key}_{name}") for name, axis in movable.items()}
    drawn_as = plot.with_limits(**limits)
    figures.show_picture(build_picture(drawn_as, label, key_of), controls, chart)
    if hidden_marks := drawn_as.hidden_marks:
        names = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in hidden_marks)
        # An axis without a control of its own stays as it is.
        axes = [(axis, getattr(drawn_as, axis)) for axis in movable]
        is_hidden = any(not axis.contains(getattr(mark, x)) for mark in hidden_marks for x, axis in axes)
        widens = f" *{name}* widens them." if is_hidden else ""
        chart.caption(f"Outside the axes: {names}.{widens}")
    return drawn_as


def choose_limits(axis: Axis, key: str) -> tuple[float, float]:
    """Draw the control of an axis and return the chosen limits; new data reset them."""
    unit = f", {axis.unit}" if axis.unit else ""
    label = f"{wording.capital(axis.name)}{unit}"
    version = session.data_version()
    key, memory_key = f"{key}_{axis.limits}_{version}", f"{key}_kept_{version}"
    form = wording.percent if axis.number_format.endswith("%") else "{:,g}".format
    return draw_range_slider(label, key, *axis.limits, 100.0, form, axis.limits_range, memory_key)


STEPS = (1.0, 2.0, 5.0)


def list_rungs(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten from at most ``low`` to at least ``high``, both above 0."""
    low_power, high_power = math.floor(math.log10(low)), math.ceil(math.log10(high))
    rungs = [step * 10.0**power for power in range(low_power, high_power + 1) for step in STEPS]
    start = max((i for i, rung in enumerate(rungs) if rung <= low * (1 + 1e-9)), default=0)
    end = min((i for i, rung in enumerate(rungs) if rung >= high * (1 - 1e-9)), default=len(rungs) - 1)
    return tuple(float(f"{rung:.0e}") for rung in rungs[start : end + 1])


FIXED_AXES_NOTE = "The axes stay put while you move ε, so that curves can be compared."


@contextlib.contextmanager
def place_controls(
    key: str, name: str = "Axis ranges", note: str = FIXED_AXES_NOTE
) -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """Make a place for a figure and one below it, with a popover for the controls that are drawn in the block.

    Args:
        key: Of the popover, unique on the page.
        name: On its button.
        note: Below the controls.

    Yields:
        The place of the figure, and the place below it.
    """
    chart = st.container()
    controls = st.container(horizontal=True, vertical_alignment="center")
    with controls.popover(name, icon=":material/straighten:", key=key):
        yield chart, controls
        if note:
            st.caption(note)


def draw_range_slider(
    label: str,
    key: str,
    low: float,
    high: float,
    margin_factor: float = 100.0,
    number_format: Callable[[float], str] = "{:,g}".format,
    full_range: tuple[float, float] | None = None,
    memory_key: str = "",
) -> tuple[float, float]:
    """Draw a slider with two handles for a log axis and return its lower and upper value, in ascending order.

    Args:
        label: What the axis shows, with unit.
        key: Session key; it must change when the data do, since the offered range comes from them.
        low: Where the axis starts before anything is chosen, above 0.
        high: Where it ends.
        margin_factor: By what factor the slider reaches beyond either end, if no ``full_range`` is given.
        number_format: Writes a number of the axis.
        full_range: Lowest and highest value of the slider.
        memory_key: Session key under which a choice outlives a change of ``key``, for an axis that follows its curves.
    """
    lowest, highest = full_range or (low / margin_factor, high * margin_factor)
    rungs = list_rungs(min(lowest, low), max(highest, high))
    start = max(rung for rung in rungs if rung <= low * (1 + 1e-9))
    end = min(rung for rung in rungs if rung >= high * (1 - 1e-9))
    # The default goes in by value: only from its being a pair does the slider know that it has two handles.
    initial = (start, end if end > start else rungs[rungs.index(start) + 1])
    state, remembered = st.session_state, st.session_state.get(memory_key) if memory_key else None
    if remembered is not None and key not in state and set(remembered) <= set(rungs):
        # Before the widget is drawn: afterwards Streamlit lets nobody set what it holds.
        state[key] = remembered
    limits = st.select_slider(
        label, rungs, initial, key=key, format_func=number_format, persist_state="session"
    )
    if memory_key:
        state[memory_key] = limits if limits != initial else None
    lower, upper = limits
    if lower < upper:
        return lower, upper
    index = rungs.index(lower)
    return (lower, rungs[index + 1]) if index + 1 < len(rungs) else (rungs[index - 1], lower)
