"""Shows plots with their data and limits, and figures of papers."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.answer.paper_figure import FigureRuns, PaperFigure, build_plot, describe_difference
from dpcore.answer.plot import Axis, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


Keys = Callable[[str], str]
"""From a field of the parameters object to the session's key of it: `Question.key`."""


def main_plot(answer: Answer, key: str) -> Plot:
    """Return the main figure of an answer; a bound that was drawn privately is marked in it."""
    plot, selection = answer.plots[key](), cards.get_private_selection(answer)
    return plot if selection is None or selection.card is None else plot.with_selection(*selection.value)


def show(
    plot: Plot, keeps_x: bool = False, label: str = "", key_of: Keys | None = None, keeps_y: bool = False
) -> Plot:
    """Draw a plot with a button for its data and controls for the ends of its axes, and return it as it is drawn.

    Args:
        plot: The plot; its logarithmic axes have controls.
        keeps_x: True if the horizontal axis follows that of another figure.
        label: As in `figures.draw`.
        key_of: As in `figures.draw`.
        keeps_y: True if the vertical axis stays as it is.
    """
    key = plot.key.replace("-", "_")
    movable_axes = ({} if keeps_x else {"x": plot.x}) | ({} if keeps_y else {"y": plot.y})
    movable_axes = {name: axis for name, axis in movable_axes.items() if axis.scale is Scale.LOG}
    if not movable_axes:
        figures.draw(plot, label, key_of)
        return plot
    button, note = ("Axis ranges", FIXED_AXES_NOTE) if len(movable_axes) > 1 else ("Axis range", "")
    with place_controls(f"{key}_ranges", button, note) as (chart, controls):
        limits = {name: choose_limits(axis, f"{key}_{name}") for name, axis in movable_axes.items()}
    if any(ends != movable_axes[name].limits for name, ends in limits.items()):
        plot = plot.with_limits(**limits)
    figures.draw(plot, label, key_of, controls, chart)
    if hidden_marks := plot.hidden_marks:
        names = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in hidden_marks)
        # An axis without a control of its own stays as it is.
        pairs = itertools.product(hidden_marks, movable_axes)
        can_widen = any(not getattr(plot, axis).contains(getattr(mark, axis)) for mark, axis in pairs)
        chart.caption(f"Outside the axes: {names}.{f' *{button}* widens them.' if can_widen else ''}")
    return plot


def choose_limits(axis: Axis, key: str) -> tuple[float, float]:
    """Draw a control for the ends of a logarithmic axis, and return (from, to), from < to, as they are chosen.

    With other data an axis begins anew. If it follows curves that move, the choice stays.
    """
    label = wording.capital(axis.name) + (f", {axis.unit}" if axis.unit else "")
    version = session.data_version()
    key, saved_key = f"{key}_{axis.limits}_{version}", f"{key}_kept_{version}"
    low, high = axis.limits
    lowest, highest = axis.limits_range or (low / ROOM, high * ROOM)
    rungs = list_rungs(min(lowest, low), max(highest, high))
    start = max(rung for rung in rungs if rung <= low * (1 + 1e-9))
    end = min(rung for rung in rungs if rung >= high * (1 - 1e-9))
    # The default goes in by value: only from its being a pair does the slider know that it has two handles.
    default = (start, end if end > start else rungs[rungs.index(start) + 1])
    state = st.session_state
    saved_ends = state.get(saved_key)
    if saved_ends is not None and key not in state and set(saved_ends) <= set(rungs):
        # Before the widget is drawn: afterwards Streamlit lets nobody set what it holds.
        state[key] = saved_ends
    number_format = wording.percent if axis.number_format.endswith("%") else "{:,g}".format
    low, high = st.select_slider(
        label, rungs, default, key=key, format_func=number_format, persist_state="session"
    )
    state[saved_key] = (low, high) if (low, high) != default else None
    if low < high:
        return low, high
    index = rungs.index(low)
    return (low, rungs[index + 1]) if index + 1 < len(rungs) else (rungs[index - 1], low)


ROOM = 100.0
"""Factor by which the ends of an axis may go beyond its limits, if the axis itself does not say how far."""
STEPS = (1.0, 2.0, 5.0)


def list_rungs(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten from at most ``low`` to at least ``high``, both above 0."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    rungs = [step * 10.0**power for power in powers for step in STEPS]
    start = max((i for i, rung in enumerate(rungs) if rung <= low * (1 + 1e-9)), default=0)
    end = min((i for i, rung in enumerate(rungs) if rung >= high * (1 - 1e-9)), default=len(rungs) - 1)
    return tuple(float(f"{rung:.0e}") for rung in rungs[start : end + 1])


FIXED_AXES_NOTE = "The axes stay put while you move ε, so that curves can be compared."


@contextlib.contextmanager
def place_controls(key: str, name: str, note: str) -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """Make a place for a figure and one for what stands below it; a popover there holds what is drawn within.

    Args:
        key: The key of the popover, unique on the page.
        name: The text on its button.
        note: The text below what it holds.

    Yields:
        The place of the figure, and the place below it.
    """
    chart = st.container()
    controls = st.container(horizontal=True, vertical_alignment="center")
    with controls.popover(name, icon=":material/straighten:", key=key):
        yield chart, controls
        if note:
            st.caption(note)


def find_newest_runs(figure: PaperFigure) -> FigureRuns:
    """Return the runs that were computed in this session, or else those that come with the app."""
    done = jobs.result_of(_build_job_key(figure.key))
    return figure.stored if done is None or done[1] is None else done[1]


def show_paper_figure(paper_figures: Sequence[PaperFigure], state_key: str = "") -> None:
    """Show a figure in a tab: heading, plot, differences, and the button that computes it now.

    The person's settings do not change it. ``state_key`` holds which of several figures is shown.
    """
    figure = paper_figures[0]
    if len(paper_figures) > 1:
        names = {figure.key: figure.item for figure in paper_figures}
        st.session_state.setdefault(state_key, figure.key)
        selected_key = fields.choice("Of the paper", names, state_key)
        figure = next(figure for figure in paper_figures if figure.key == selected_key)
    runs = find_newest_runs(figure)
    st.markdown(f"**The paper's setting. {figure.name}: {figure.title}**")
    figures.draw(build_plot(figure, runs))
    show_text(figure, runs)
    show_button(figure)


def show_text(figure: PaperFigure, runs: FigureRuns) -> None:
    """Show how far our results lie from the paper's and why, the setting, and where our results come from."""
    st.markdown(f"{describe_difference(figure, runs)} {figure.difference_note}")
    num_runs = wording.counted(len(runs.seeds), "run")
    origin = f"Stored results of {runs.version}" if runs.version else "Computed in this session"
    bars = "" if figure.is_exact else f", {num_runs}; bars are 95 % intervals of their mean"
    st.caption(f"{figure.setting} {origin}{bars}.")
    cards.label(Disclosure.PUBLIC)


def show_button(figure: PaperFigure) -> None:
    """Draw the button that computes the figure anew as work beside the page, or its progress."""
    if jobs.watch(_build_job_key(figure.key), f"Computing {figure.item[0].lower()}{figure.item[1:]}"):
        return
    done = jobs.result_of(_build_job_key(figure.key))
    if done is not None and done[1] is None:
        st.caption(":material/stop_circle: Stopped: what is shown was there before.")
    num_runs = wording.counted(len(figure.values) * (1 if figure.is_exact else figure.num_runs), "run")
    help = f"{num_runs} beside the page; they replace what is shown in this window."
    button_key = f"compute_{figure.key.replace('-', '_')}"
    fields.button("Compute it now", button_key, "play_arrow", _start, figure, help=help)


def _start(figure: PaperFigure) -> None:
    jobs.start(
        _build_job_key(figure.key),
        figure.key,
        lambda progress, should_stop: figure.compute(progress=progress, should_stop=should_stop),
        heavy=True,
    )


def _build_job_key(key: str) -> str:
    return f"paper_job_{key.replace('-', '_')}"
