"""The bar of the tour, in the place of a page's sentence: the step, its question, and its answer once that is shown."""

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


def draw_begin_button() -> None:
    """Draw the button that begins the tour, unless it is on."""
    if shelf.get_tour() is None:
        steps = wording.counted(len(tour.list_questions()), "step")
        st.button(
            "Take the tour",
            key="tour_begin",
            icon=":material/tour:",
            type="tertiary",
            on_click=tour.begin,
            help=f"{steps} on sample data. Your own data and settings come back at its end.",
        )


def draw(question: Question, tour_state: Tour) -> None:
    """Draw the bar.

    Args:
        question: The question whose page it stands on, drawn already.
        tour_state: The tour that is on.
    """
    text, buttons = st.columns(WIDTHS, vertical_alignment="center", gap="medium")
    step_question = tour.list_questions()[tour_state.number - 1]
    step = tour.step_of(step_question)
    answer = ""
    if question is step_question:
        answer = tour.write_answer(step, tour_state, st.session_state[keys.PAGE_PARAMETERS])
    with text:
        st.markdown(write_text(question, step_question, step, tour_state, answer))
    with buttons, st.container(horizontal=True, gap="xsmall", key="tour_buttons"):
        _draw_buttons(question is step_question and tour.has_step_data(step), tour_state, bool(answer))


def write_text(
    question: Question, step_question: Question, step: tour.Step, tour_state: Tour, answer: str
) -> str:
    """Return the text of the bar.

    Args:
        question: The question whose page it stands on.
        step_question: The question that the step is about.
        step: The step.
        tour_state: The tour that is on.
        answer: The answer; empty while it is not shown.
    """
    badge = f":blue-badge[Tour, step {tour_state.number} of {len(tour.list_questions())}]"
    name = f"**{wording.plain(_shorten_name(tour_state.saved_state.loaded.dataset))}**"
    ending = (
        f"*End* goes on with {name}."
        if tour_state.saved_state.named_only
        else f"*End* brings {name} back, and your settings."
    )
    if question is not step_question:
        return (
            f"{badge} The tour waits on **{step_question.title}**.  \n{ending} "
            "Bringing other data ends the tour, too."
        )
    if not tour.has_step_data(step):
        return f"{badge} Other data are in use than those of this step.  \n{ending}"
    heading = f"{badge} **{step.question}**"
    return f"{heading}  \n{answer}" if answer else f"{heading}  \n{step.move}. {HINT}  \n{ending}"


def _shorten_name(data: Dataset) -> str:
    return data.name if len(data.name) <= LONGEST_NAME else data.name[: LONGEST_NAME - 1] + "…"


def _draw_buttons(is_on_step: bool, tour_state: Tour, is_answered: bool) -> None:
    if not is_on_step:
        st.button("Back to the step", key="tour_again", on_click=tour.go_to_step, args=(tour_state.number,))
        st.button("End", key="tour_end", on_click=tour.end)
        return
    number = tour_state.number
    st.button("Back", key="tour_back", on_click=tour.go_to_step, args=(number - 1,), disabled=number == 1)
    if number < len(tour.list_questions()):
        main = fields.main_button()
        st.button("Next", key="tour_next", type=main, on_click=tour.go_to_step, args=(number + 1,))
    st.button("End", key="tour_end", on_click=tour.end)
    st.button("Show the answer", key="tour_answer", on_click=tour.show_answer, disabled=is_answered)
