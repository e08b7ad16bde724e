"""Three questions in a row that lead to the page of a release, and the way there."""

from __future__ import annotations

import streamlit as st

from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from pages.shared.base.question import Question
from pages.shared.compare.pin_table import answers_from
from pages.shared.fields import fields
from pages.shared.session import stand_ins
from pages.start import advice
from pages.start.question import QUESTION


def ask() -> None:
    """The questions, and the button to the page that they lead to."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom", key="start_way"):
        _one("1. Several rows per user?", list(advice.SEVERAL), "several", help=advice.WHO)
        kind = _one("2. You release", list(advice.KINDS), "kind")
        offered = advice.releases(kind)
        key = QUESTION.key("release")
        if state.get(key) not in offered:
            state[key] = None
        release = st.selectbox(
            "3. Which?",
            offered,
            index=None,
            key=key,
            placeholder="Choose",
            persist_state="session",
            width=fields.wide(300),
        )
        target = advice.page_for(release)
        if target is None:
            stand_ins.bring("Bring your data")
        else:
            st.page_link(target.path, label=f"Go to {target.title}", icon=target.icon)


def _one(label: str, options: list[str], name: str, help: str = "") -> str | None:
    chosen: str | None = st.segmented_control(
        label, options, key=QUESTION.key(name), persist_state="session", help=help or None
    )
    return chosen


def lead(in_use: Dataset) -> None:
    """What follows from the answers: below the card, where it moves no figure."""
    state = st.session_state
    said = [advice.SEVERAL.get(state.get(QUESTION.key("several")) or "", "")]
    target = advice.page_for(state.get(QUESTION.key("release")))
    if target is not None:
        said.append(f"**{target.title}:** {target.sentence} {_opens_on(target, in_use)}".strip())
    if text := "\n\n".join(filter(None, said)):
        st.info(text, icon=":material/signpost:")


def _opens_on(target: Question, in_use: Dataset) -> str:
    """On which data the page opens; nothing of a page with data of its own."""
    if target.own_data:
        return ""
    if answers_from(target, in_use):
        return f"It opens on *{plain(in_use.name)}*."
    return "The data in use lack what it needs, so it shows invented data until you bring yours."
