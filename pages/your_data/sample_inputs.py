"""The choice of a built-in sample."""

from __future__ import annotations

import streamlit as st

from dpcore.data import samples
from pages.shared.session import session
from pages.your_data.question import QUESTION


def show_panel() -> None:
    """Draw the choice of a sample, which is loaded at once: samples are public and small."""
    sample = session.get_loaded().origin.name
    st.session_state[QUESTION.key("sample")] = sample if sample in samples.SAMPLES else None
    st.selectbox(
        "Sample",
        list(samples.SAMPLES),
        index=None,
        key=QUESTION.key("sample"),
        on_change=_load_sample,
        format_func=lambda key: samples.SAMPLES[key].title,
        placeholder="Choose a sample",
    )


def _load_sample() -> None:
    sample = st.session_state.get(QUESTION.key("sample"))
    if sample is not None:
        origin = session.Origin(sample)
        session.use(origin.load(), origin)
