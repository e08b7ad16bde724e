"""Home: a figure that shows what a contribution bound does, and which page answers a person's question."""

from dataclasses import replace

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.start import parameters as start_parameters
from dpcore.start.answer import NOISE_ASSUMPTION, build_answer
from dpcore.start.parameters import StartParameters
from pages.shared.base import keys, page_run
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout, other_bounds, sections
from pages.shared.session import session
from pages.start import contents
from pages.start.question import QUESTION


def draw_body(slots: layout.PageSlots) -> None:
    """Show the questions that lead to a page, the figure, and its answer."""
    if slots.intro is not None:
        with slots.intro:
            contents.ask_questions()
    fields.initialise_fields(QUESTION)
    with slots.line:
        user_preset = fields.draw_field(QUESTION, "users")
    dataset = start_parameters.choose_dataset(session.get_dataset(), user_preset)
    run = page_run.CURRENT_RUN.get()
    assert run is not None
    run.shown_data_name = "" if dataset is session.get_dataset() else dataset.name
    # A bound belongs to the users that are shown: of others it would be read wrongly, or off private data.
    if st.session_state.get(QUESTION.get_key("of"), dataset.digest) != dataset.digest:
        st.session_state[QUESTION.get_key("bound")] = None
    st.session_state[QUESTION.get_key("of")] = dataset.digest
    with slots.line:
        fields.draw_field(QUESTION, "bound")
    with slots.notes:
        parameters: StartParameters | None = fields.build_page_parameters(QUESTION, optional_names=("bound",))
    if parameters is not None:
        show_figure_and_answer(slots, parameters, dataset)
    with slots.answer:
        contents.show_advice(session.get_dataset())
    slots.bottom.caption(f"{NOISE_ASSUMPTION}.")


def show_figure_and_answer(slots: layout.PageSlots, parameters: StartParameters, dataset: Dataset) -> None:
    """Show the figure and the answer, and the bounds of other pages unless the users are invented."""
    # A bound that is dragged along a curve of private data may be read off it: no public input, and in no link.
    public_parameters = replace(parameters, bound=None) if dataset.is_private else parameters
    st.session_state[keys.PAGE_PARAMETERS] = public_parameters
    # During the tour its question says whose rows these are, and the sentence would answer it.
    if parameters.users in start_parameters.DESCRIPTION_BY_PRESET and session.get_tour() is None:
        slots.notes.markdown(
            f"**Invented users.** {start_parameters.DESCRIPTION_BY_PRESET[parameters.users]}"
        )
    solution = contents.solve_cached(dataset.digest, parameters.epsilon, dataset)
    answer = build_answer(dataset, parameters, solution)
    with slots.figure:
        sections.show_plot(answer.plots["start-tradeoff"](), get_field_key=QUESTION.get_key)
    with slots.answer:
        cards.draw_answer(answer, card_key="start_card")
        if dataset is session.get_dataset():
            other_bounds.draw_other_bounds(QUESTION, answer)


layout.show_page(QUESTION, draw_body)
