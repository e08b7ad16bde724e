"""Choose one of the built-in samples."""

from __future__ import annotations

import streamlit as st

from dpcore.data import samples
from pages.shared.session import session
from pages.your_data.question import QUESTION


def panel() -> None:
    """A select box that loads at once: samples are public and small."""
    kind = session.loaded().origin.kind
    st.session_state[QUESTION.key("sample")] = kind if kind in samples.SAMPLES else None
    st.selectbox(
        "Sample",
        list(samples.SAMPLES),
        index=None,
        key=QUESTION.key("sample"),
        on_change=_chosen,
        format_func=lambda key: samples.SAMPLES[key].title,
        placeholder="Choose a sample",
    )


def _chosen() -> None:
    key = st.session_state.get(QUESTION.key("sample"))
    if key is not None:
        origin = session.Origin(key)
        session.use(origin.load(), origin)
