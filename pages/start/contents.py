"""The contents of the page Start: its inputs, its tabs, and the work beside it."""

from __future__ import annotations

import streamlit as st

from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from dpcore.start.answer.answer import Tradeoff, solve
from dpcore.start.parameters import StartParameters
from pages.shared.base import catalogue
from pages.shared.base.cache import cached
from pages.shared.base.question import Question
from pages.shared.compare.compare_tab import can_answer
from pages.shared.fields import fields
from pages.shared.session import session
from pages.start.question import QUESTION


@cached(max_entries=16)
def solve_cached(digest: str, epsilon: float, _data: Dataset) -> Tradeoff:
    """Return the Start page's curves and their best bound; the person's own bound moves marks only."""
    return solve(_data, StartParameters(epsilon))


SEVERAL_ROWS = {
    "Yes": "",
    "No": (
        "Then there is nothing to choose: the bound is 1. Note that *one row per session* or *per device* can still "
        "be several rows per person."
    ),
    "Not sure": "*Your data* shows it: load your table there, and look at the largest number of rows of one user.",
}
USER_HELP = (
    "A user is whoever is to be protected, by one column or by several together (in *Your data*, *Further columns "
    "that only together with it identify a user*). Without such a column privacy holds per row, and needs no bound."
)
TOPICS = {"Numbers": "Choose a bound", "A model": "Models"}
"""Kinds of releases, and the group of pages for each."""


def list_releases(topic: str | None = None) -> list[str]:
    """Return the statistics that have a page; only those of one topic if it is given."""
    return [
        spec.release
        for spec in catalogue.PAGES
        if spec.release and spec.group == TOPICS.get(topic or "", spec.group)
    ]


def find_page(release: str | None) -> Question | None:
    """Return the page for a release; None if there is none."""
    return next((spec for spec in catalogue.PAGES if spec.release and spec.release == release), None)


def ask_questions() -> None:
    """Draw the questions, and the button to the page that they lead to."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom", key="start_way"):
        _ask("1. Several rows per user?", list(SEVERAL_ROWS), "several", help=USER_HELP)
        topic = _ask("2. You release", list(TOPICS), "kind")
        options = list_releases(topic)
        key = QUESTION.key("release")
        if state.get(key) not in options:
            state[key] = None
        release = st.selectbox(
            "3. Which?",
            options,
            index=None,
            key=key,
            placeholder="Choose",
            persist_state="session",
            width=fields.scale_width(300),
        )
        target = find_page(release)
        if target is None:
            session.draw_data_link("Bring your data")
        else:
            st.page_link(target.path, label=f"Go to {target.title}", icon=target.icon)


def _ask(label: str, options: list[str], name: str, help: str = "") -> str | None:
    answer: str | None = st.segmented_control(
        label, options, key=QUESTION.key(name), persist_state="session", help=help or None
    )
    return answer


def show_advice(in_use: Dataset) -> None:
    """Show what follows from the answers, below the card, so that it moves no figure."""
    state = st.session_state
    sentences = [SEVERAL_ROWS.get(state.get(QUESTION.key("several")) or "", "")]
    target = find_page(state.get(QUESTION.key("release")))
    if target is not None:
        sentences.append(f"**{target.title}:** {target.sentence} {_describe_data(target, in_use)}".strip())
    if text := "\n\n".join(filter(None, sentences)):
        st.info(text, icon=":material/signpost:")


def _describe_data(target: Question, in_use: Dataset) -> str:
    """Write which data the page opens on; empty for a page with data of its own."""
    if target.own_data:
        return ""
    if can_answer(target, in_use):
        return f"It opens on *{plain(in_use.name)}*."
    return "The data in use lack what it needs, so it shows invented data until you bring yours."
