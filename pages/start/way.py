"""Three questions in a row that lead to the page for a release, and the advice that follows from the answers."""

from __future__ import annotations

import streamlit as st

from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from pages.shared.base.question import Question
from pages.shared.compare.compare_tab import can_answer
from pages.shared.fields import fields
from pages.shared.session import session
from pages.start import advice
from pages.start.question import QUESTION


def ask_questions() -> None:
    """Draw the questions, and the button to the page that they lead to."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom", key="start_way"):
        _ask("1. Several rows per user?", list(advice.SEVERAL_ROWS), "several", help=advice.USER_HELP)
        topic = _ask("2. You release", list(advice.TOPICS), "kind")
        options = advice.list_releases(topic)
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
        target = advice.find_page(release)
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
    sentences = [advice.SEVERAL_ROWS.get(state.get(QUESTION.key("several")) or "", "")]
    target = advice.find_page(state.get(QUESTION.key("release")))
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
