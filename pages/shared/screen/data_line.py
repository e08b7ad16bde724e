"""The data that the open page shows, at the top of the sidebar."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.privacy import format_rounded_up
from dpcore.common.wording import escape_text, format_count
from pages.shared import streamlit_internals
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

DATA_SLOT: ContextVar[DeltaGenerator | None] = ContextVar("data_slot", default=None)
"""The place in the sidebar in this run of the app."""
UNKNOWN_NAME = "…"
"""Stands for the data of a page until it has named them."""


def draw_data_line(question: Question) -> None:
    """Name the data before the page is drawn: as it named them last, or as its declaration lets expect."""
    answers_from_data_in_use = question.can_answer(session.get_dataset()) and not question.has_own_data
    names_by_page = st.session_state.get(keys.DATA_NAME_BY_PAGE, {})
    shown_data_name = names_by_page.get(
        question.name, question.shown_data_name or ("" if answers_from_data_in_use else UNKNOWN_NAME)
    )
    slot = st.empty()
    DATA_SLOT.set(slot)
    slot.markdown(_write_data_markdown(shown_data_name))
    st.session_state[keys.DATA_NAME_BY_PAGE] = {**names_by_page, question.name: shown_data_name}


def correct_data_line(question: Question, slot: DeltaGenerator | None, shown_data_name: str) -> None:
    """Name the data again if the page shows others, in a fragment by a run of the whole app.

    ``shown_data_name`` is empty for the data in use. Without a place in the sidebar nothing happens.
    """
    names_by_page = st.session_state.get(keys.DATA_NAME_BY_PAGE, {})
    if slot is None or names_by_page.get(question.name) == shown_data_name:
        return
    st.session_state[keys.DATA_NAME_BY_PAGE] = {**names_by_page, question.name: shown_data_name}
    if streamlit_internals.is_fragment_run():
        st.rerun()  # What a fragment writes outside of itself does not always arrive.
    slot.markdown(_write_data_markdown(shown_data_name))


def _write_data_markdown(own_data_name: str) -> str:
    """Write the name of the page's data, as Markdown; for the data in use, with size and label.

    For other data, add which data are in use and are not used here.
    """
    dataset = session.get_dataset()
    data_name = escape_text(dataset.name)
    if own_data_name:
        return f"**Data:** {escape_text(own_data_name)}  \n:small[:gray[Not used here: {data_name}]]"
    num_users, num_rows = dataset.histogram.num_users, dataset.histogram.num_rows
    size_text = f"{format_count(num_users, dataset.unit_noun)}, {format_count(num_rows, 'row')}"
    badge_text = f"{dataset.disclosure.value} data"
    if dataset.release is not None:
        badge_text = f"{dataset.disclosure.value}, ε = {format_rounded_up(dataset.release.epsilon)}"
    badge_markdown = cards.write_badge(dataset.provenance, badge_text)
    return f"**Data:** {data_name}  \n:small[:gray[{size_text}]]  \n{badge_markdown}"
