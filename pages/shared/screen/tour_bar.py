"""The bar of the tour, in the place of a page's sentence: the step, its question, and the answer once it was found."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.session import shelf, tour
from pages.shared.session.shelf import Tour

WIDTHS = (7, 3)
"""How the text and the buttons beside it share the width."""
LONGEST_NAME = 24
"""Characters of the name of the data from before: what the bar says fits in two lines."""
HINT = "The answer appears here."


def begin_button() -> None:
    """The way into the tour."""
    if shelf.tour() is None:
        steps = wording.counted(len(tour.stops()), "step")
        st.button(
            "Take the tour",
            key="tour_begin",
            icon=":material/tour:",
            type="tertiary",
            on_click=tour.begin,
            help=f"{steps} on sample data. Your own data and settings come back at its end.",
        )


def draw(of: Question, now: Tour) -> None:
    """The bar.

    Args:
        of: The question whose page it stands on, drawn already.
        now: Where the tour is.
    """
    text, buttons = st.columns(WIDTHS, vertical_alignment="center", gap="medium")
    here = tour.stops()[now.number - 1]
    step = tour.step_of(here)
    answer = tour.answer_now(step, now, st.session_state[keys.PAGE_PARAMETERS]) if of is here else ""
    with text:
        st.markdown(words(of, here, step, now, answer))
    with buttons, st.container(horizontal=True, gap="xsmall", key="tour_buttons"):
        _buttons(of is here and tour.as_declared(step), now, bool(answer))


def words(of: Question, here: Question, step: tour.Step, now: Tour, found: str) -> str:
    """Return what the bar says.

    Args:
        of: The question whose page it stands on.
        here: That of the step.
        step: The step.
        now: Where the tour is.
        found: The answer; empty while it is not shown.
    """
    place = f":blue-badge[Tour, step {now.number} of {len(tour.stops())}]"
    name = f"**{wording.plain(_name(now.saved_state.loaded.dataset))}**"
    mine = (
        f"*End* goes on with {name}."
        if now.saved_state.named_only
        else f"*End* brings {name} back, and your settings."
    )
    if of is not here:
        return (
            f"{place} The tour waits on **{here.title}**.  \n{mine} Bringing other data ends the tour, too."
        )
    if not tour.as_declared(step):
        return f"{place} Other data are in use than those of this step.  \n{mine}"
    asked = f"{place} **{step.question}**"
    return f"{asked}  \n{found}" if found else f"{asked}  \n{step.move}. {HINT}  \n{mine}"


def _name(data: Dataset) -> str:
    return data.name if len(data.name) <= LONGEST_NAME else data.name[: LONGEST_NAME - 1] + "…"


def _buttons(on_step: bool, now: Tour, answered: bool) -> None:
    last = len(tour.stops())
    if not on_step:
        st.button("Back to the step", key="tour_again", on_click=tour.go, args=(now.number,))
        st.button("End", key="tour_end", on_click=tour.end)
        return
    st.button("Back", key="tour_back", on_click=tour.go, args=(now.number - 1,), disabled=now.number == 1)
    if now.number < last:
        go_on = fields.main_button()
        st.button("Next", key="tour_next", type=go_on, on_click=tour.go, args=(now.number + 1,))
    st.button("End", key="tour_end", on_click=tour.end)
    st.button("Show the answer", key="tour_answer", on_click=tour.ask, disabled=answered)
