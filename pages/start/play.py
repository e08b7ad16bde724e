"""The slider of the bound: its steps, and Play, which moves it over all of them and ends at the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import streamlit as st

from dpcore.contributions import ContributionHistogram
from dpcore.start.answer.found import axis_limits
from pages.shared.fields import ranges
from pages.shared.session import session
from pages.start.question import QUESTION

PLAYED = QUESTION.key("played")
STEP_SECONDS = 0.6


def bound_steps(histogram: ContributionHistogram) -> tuple[int, ...]:
    """Bounds for the slider: 1, 2 and 5 times powers of ten, the heaviest user, and the end of the axis."""
    last = int(axis_limits(histogram)[1])
    rungs = {int(rung) for rung in ranges.ladder(1.0, float(last)) if 1 <= rung < last}
    return tuple(sorted(rungs | {histogram.max_size, last}))


def first_bound(histogram: ContributionHistogram) -> int:
    """Where the slider stands at first: the step nearest to the median, which many take without asking."""
    return nearest_step(bound_steps(histogram), histogram.summary().median)


def nearest_step(steps: tuple[int, ...], bound: float) -> int:
    """The step whose ratio to a bound is nearest to 1."""
    return min(steps, key=lambda step: abs(math.log(step / max(bound, 1.0))))


def start_or_stop() -> None:
    """Begin at the smallest bound; while it plays, stop where it is.

    The slider is disabled meanwhile, and the best bound stands for two more steps: a browser that is behind sends the
    bound that it shows with its next question, and that must not count as a person's.
    """
    begun = 0, time.monotonic(), session.data_version()
    st.session_state[PLAYED] = None if st.session_state.get(PLAYED) else begun


def stop() -> None:
    """End it; the bound stays where it is."""
    st.session_state[PLAYED] = None


def bound_now(steps: tuple[int, ...], best: Callable[[], float]) -> int | None:
    """The bound to show while it plays; None where it does not.

    Args:
        steps: Bounds of the slider, ascending.
        best: Asked for the best bound, at whose nearest step it ends.
    """
    playing: tuple[int, float, int] | None = st.session_state.get(PLAYED)
    if playing is None:
        return None
    index, due, version = playing
    if version != session.data_version():  # Of other data, which may be back after a tour.
        stop()
        return None
    if time.monotonic() >= due:
        index += 1
        st.session_state[PLAYED] = (index, time.monotonic() + STEP_SECONDS, version)
    if index > len(steps) + 2:
        stop()
    return (
        steps[index - 1]
        if 0 < index <= len(steps)
        else steps[0]
        if index == 0
        else nearest_step(steps, best())
    )


def button() -> None:
    """Play, or Stop while it plays."""
    playing = st.session_state.get(PLAYED) is not None
    st.button(
        "Stop" if playing else "Play",
        icon=":material/stop:" if playing else ":material/play_arrow:",
        key="start_play",
        on_click=start_or_stop,
        help="Moves the bound over all its steps, and ends at the best one.",
    )
    if playing:
        _tick()


@st.fragment(run_every=STEP_SECONDS)
def _tick() -> None:
    playing = st.session_state.get(PLAYED)
    if playing is not None and time.monotonic() >= playing[1]:
        st.rerun()
