"""Play: the bound moves over all its steps by itself, and ends at the best one."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from pages.start.answer import nearest_step
from pages.start.question import QUESTION

PLAYED = QUESTION.key("played")
STEP_SECONDS = 0.6


def start_or_stop() -> None:
    """Begin at the smallest bound; while it plays, stop where it is."""
    st.session_state[PLAYED] = None if st.session_state.get(PLAYED) else (0, time.monotonic())


def stop() -> None:
    """What a person moves stays where they put it."""
    st.session_state[PLAYED] = None


def bound_now(steps: tuple[int, ...], best: Callable[[], float]) -> int | None:
    """The bound to show while it plays; None where it does not.

    Args:
        steps: Bounds of the slider, ascending.
        best: Asked for the best bound, at whose nearest step it ends.
    """
    playing: tuple[int, float] | None = st.session_state.get(PLAYED)
    if playing is None:
        return None
    index, due = playing
    if index >= len(steps):
        stop()
        return nearest_step(steps, best())
    if time.monotonic() >= due:
        st.session_state[PLAYED] = (index + 1, time.monotonic() + STEP_SECONDS)
    return steps[min(index, len(steps) - 1)]


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
