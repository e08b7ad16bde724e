"""Inputs shared by pages. Each returns a value; the parameters objects of `dpcore` do the judging."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore.answer.against import EPSILON_STEPS
from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE
from pages.shared.base import keys
from pages.shared.fields import fields

DEFAULT_EPSILON = 1.0
STEPS = (1.0, 2.0, 5.0)


def epsilon_control(where: str) -> None:
    """The shared epsilon: a slider over round values and a field for any other, kept in step.

    Args:
        where: The page that it stands on.
    """
    state = st.session_state
    entered = state.setdefault(keys.EPSILON, DEFAULT_EPSILON)
    step = nearest_step(DEFAULT_EPSILON if entered is None else float(entered))
    # The widgets of every page are others, though their keys are the same, and Streamlit 1.67 gives the value of those
    # of the last page to these on the second run only: the field would stand empty on the first.
    if state.get(keys.EPSILON_PAGE) != where:
        state[keys.EPSILON_PAGE], state[keys.EPSILON], state[keys.EPSILON_SLIDER] = where, entered, step
    # Only where it differs: every assignment is sent to the browser, and one that comes late undoes a key press.
    elif state.get(keys.EPSILON_SLIDER) != step:
        state[keys.EPSILON_SLIDER] = step
    st.select_slider(
        "Privacy budget ε",
        EPSILON_STEPS,
        # The default as well: only the first run of a page sends what the session holds, and what it says is dropped
        # where another run begins at once, as after an upload. The slider then stood at its least value.
        step,
        key=keys.EPSILON_SLIDER,
        format_func=wording.entered,
        on_change=_slider_moved,
        help="Smaller is more private and noisier. One release uses it up once.",
        width=fields.wide(220),
    )
    fields.number("ε, exactly", keys.EPSILON, "Any value from 0.000001 to 1000.", width=140)


def _slider_moved() -> None:
    st.session_state[keys.EPSILON] = st.session_state[keys.EPSILON_SLIDER]


def nearest_step(epsilon: float) -> float:
    """The slider position nearest to epsilon on the log scale; whatever was typed has one."""
    inside = min(max(epsilon, EPSILON_RANGE[0]), EPSILON_RANGE[1])
    return min(EPSILON_STEPS, key=lambda step: abs(math.log(step / inside)))


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
    """A from/to control for a log axis.

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
        state[key] = before
    chosen = st.select_slider(label, rungs, first, key=key, format_func=written, persist_state="session")
    if kept:
        state[kept] = chosen if chosen != first else None
    below, above = chosen
    if below < above:
        return below, above
    index = rungs.index(below)
    return (below, rungs[index + 1]) if index + 1 < len(rungs) else (rungs[index - 1], below)
