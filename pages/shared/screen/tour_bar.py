"""The bar of the tour above a page: the question of its step, its answer, and buttons."""

from __future__ import annotations

import streamlit as st

from dpcore.common.wording import escape_text, format_count
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.session import session, tour
from pages.shared.session.session import Tour

COLUMN_WIDTHS = (7, 3)
"""How the text and the buttons beside it share the width."""
MAX_DATA_NAME_LENGTH = 24
"""Characters of the name of the data from before: what the bar says fits in two lines."""
ANSWER_HINT = "The answer appears here."


def draw_begin_button() -> None:
    """Draw the button that begins the tour, unless it is on."""
    if session.get_tour() is None:
        steps_text = format_count(len(tour.list_questions()), "step")
        help_text = f"{steps_text} on sample data. Your own data and settings come back at its end."
        fields.draw_button(
            "Take the tour", "tour_begin", "tour", tour.begin_tour, type="tertiary", help=help_text
        )


def draw_tour_bar(question: Question, tour_state: Tour) -> None:
    """Draw the tour's bar: the question of its step or the answer, and buttons.

    Args:
        question: The question whose page it stands on, drawn already.
        tour_state: The tour that is on.
    """
    text_column, button_column = st.columns(COLUMN_WIDTHS, vertical_alignment="center", gap="medium")
    step_number, questions = tour_state.step_number, tour.list_questions()
    step_question = questions[step_number - 1]
    step, is_step_page, answer_text = tour.import_step(step_question), question is step_question, ""
    if is_step_page:
        answer_text = tour.write_answer(step, tour_state, st.session_state[keys.PAGE_PARAMETERS])
    text_column.markdown(write_bar_text(question, step_question, step, tour_state, answer_text))
    with button_column, st.container(horizontal=True, gap="xsmall", key="tour_buttons"):
        if not is_step_page or not tour.has_step_data(step):
            st.button("Back to the step", key="tour_again", on_click=tour.go_to_step, args=(step_number,))
            st.button("End", key="tour_end", on_click=tour.end_tour)
            return
        st.button(
            "Back",
            key="tour_back",
            on_click=tour.go_to_step,
            args=(step_number - 1,),
            disabled=step_number == 1,
        )
        if step_number < len(questions):
            main_type = fields.choose_main_button_type()
            st.button(
                "Next", key="tour_next", type=main_type, on_click=tour.go_to_step, args=(step_number + 1,)
            )
        st.button("End", key="tour_end", on_click=tour.end_tour)
        st.button(
            "Show the answer", key="tour_answer", on_click=tour.request_answer, disabled=bool(answer_text)
        )


def write_bar_text(
    question: Question, step_question: Question, step: tour.Step, tour_state: Tour, answer_text: str
) -> str:
    """Write the text of the tour's bar.

    Args:
        question: The question whose page it stands on.
        step_question: The question that the step is about.
        step: The step.
        tour_state: The tour that is on.
        answer_text: The answer; empty while it is not shown.
    """
    badge_text = f":blue-badge[Tour, step {tour_state.step_number} of {len(tour.list_questions())}]"
    saved_state = tour_state.saved_state
    data_name = f"**{escape_text(_shorten(saved_state.loaded_data.dataset.name, MAX_DATA_NAME_LENGTH))}**"
    ending_text = f"*End* brings back {data_name}{'' if saved_state.is_named_only else ' and your settings'}."
    if question is not step_question:
        waiting_text = f"{badge_text} The tour waits on **{step_question.title}**."
        return f"{waiting_text}  \n{ending_text} Bringing other data ends it, too."
    if not tour.has_step_data(step):
        return f"{badge_text} Other data are in use than those of this step.  \n{ending_text}"
    heading = f"{badge_text} **{step.question_sentence}**"
    return (
        f"{heading}  \n{answer_text}"
        if answer_text
        else f"{heading}  \n{step.instruction}. {ANSWER_HINT}  \n{ending_text}"
    )


def _shorten(text: str, max_length: int) -> str:
    """Cut a text to a length; an ellipsis takes the place of what is cut off."""
    if len(text) <= max_length:
        return text
    shortened_text = text[:max_length].rpartition(" ")[0].rstrip(" :,;(-")
    return (shortened_text if len(shortened_text) >= max_length / 2 else text[: max_length - 1]) + "…"
