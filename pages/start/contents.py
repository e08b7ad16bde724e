"""The contents of the page Home: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.dataset import Dataset
from dpcore.start.answer import Tradeoff, solve
from dpcore.start.parameters import StartParameters
from pages.shared.base import catalogue
from pages.shared.base.cache import cache_for_session
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.session import session
from pages.start.question import QUESTION


@cache_for_session(max_entries=16)
def solve_cached(digest: str, epsilon: float, _data: Dataset) -> Tradeoff:
    """Compute the trade-off and its best bound, cached; the user's own bound moves marks only."""
    return solve(_data, StartParameters(epsilon))


ADVICE_BY_ANSWER = {
    "Yes": "",
    "No": "The bound is 1. Note that *one row per session* or *per device* can be several rows per person.",
    "Not sure": "Load your table in *Data*, and look at the largest number of rows of one user.",
}
"""By the answer to the question whether users have several rows."""
USER_HELP = "A user is whoever is to be protected. If no column names users, privacy holds per row and needs no bound."
GROUP_BY_KIND = {"Numbers": "Choose a bound", "A model": "Models"}
"""The group of pages for each kind of release."""


def list_release_phrases(release_kind: str | None = None) -> list[str]:
    """List the phrases of all releases that have a page, or of those of one kind, a key of `GROUP_BY_KIND`."""
    return [
        question.release_phrase
        for question in catalogue.PAGES
        if question.release_phrase
        and question.navigation_group == GROUP_BY_KIND.get(release_kind or "", question.navigation_group)
    ]


def find_page(release_phrase: str | None) -> Question | None:
    """Return the page whose phrase for its release this is; None without a phrase, or if no page has it."""
    return next(
        (
            question
            for question in catalogue.PAGES
            if release_phrase and question.release_phrase == release_phrase
        ),
        None,
    )


def ask_questions() -> None:
    """Show the questions, and the button to the page that they lead to."""
    state, release_key = st.session_state, QUESTION.get_key("release")
    with st.container(horizontal=True, vertical_alignment="bottom", key="start_way"):
        widget_options: dict[str, Any] = {"persist_state": "session"}
        several_key, kind_key = QUESTION.get_key("several"), QUESTION.get_key("kind")
        st.segmented_control(
            "1. Several rows per user?",
            list(ADVICE_BY_ANSWER),
            key=several_key,
            help=USER_HELP,
            **widget_options,
        )
        release_kind = st.segmented_control(
            "2. You release", list(GROUP_BY_KIND), key=kind_key, **widget_options
        )
        release_phrases = list_release_phrases(release_kind)
        if state.get(release_key) not in release_phrases:
            state[release_key] = None
        widget_options |= {"placeholder": "Choose", "width": fields.scale_width(300)}
        advised_page = find_page(
            st.selectbox("3. Which?", release_phrases, None, key=release_key, **widget_options)
        )
        if advised_page is None:
            session.draw_data_link("Upload data")
        else:
            st.page_link(advised_page.page_path, label=f"Go to {advised_page.title}", icon=advised_page.icon)


def show_advice(dataset: Dataset) -> None:
    """Show advice on what was chosen in the page's questions, below the card, so that it moves no figure."""
    advice_sentences = [ADVICE_BY_ANSWER.get(st.session_state.get(QUESTION.get_key("several")) or "", "")]
    advised_page = find_page(st.session_state.get(QUESTION.get_key("release")))
    if advised_page is not None:
        lacks_columns = not advised_page.has_own_data and not advised_page.can_answer(dataset)
        data_sentence = (
            " The data in use lack what it needs, so it shows invented data." if lacks_columns else ""
        )
        advice_sentences.append(f"**{advised_page.title}:** {advised_page.question_sentence}{data_sentence}")
    if advice_text := "\n\n".join(filter(None, advice_sentences)):
        st.info(advice_text, icon=":material/signpost:")
