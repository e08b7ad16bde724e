"""Where the Regression page's data come from: generated as in the paper, or its own upload."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.regression.parameters import DataSource, RegressionGenerator
from pages.regression import cached
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import UPLOAD, RegressionData
from pages.shared import fields
from pages.shared.text import plain


def read_data() -> RegressionData | None:
    """Say which data are used, and offer others. Returns None, with a sentence on the page, where there are none."""
    with st.container(horizontal=True, vertical_alignment="center", key="regression_data"):
        said = st.container(width="content")
        with st.popover("Other data", icon=":material/table:", key="regression_settings"):
            source = fields.draw(QUESTION, "source")
            if source is DataSource.GENERATED:
                _show_generator_fields()
            elif st.session_state.get(QUESTION.key("loaded")) is not None:
                UPLOAD.show_uploader()
    loaded = _generated() if source is DataSource.GENERATED else _uploaded()
    if loaded is not None:
        data = loaded.dataset
        sizes = wording.counted(data.histogram.num_users, "user")
        said.markdown(f"Data of this page: **{plain(data.name)}**, {sizes}")
    return loaded


def _show_generator_fields() -> None:
    st.markdown(
        "The data are generated as in the paper, appendix E.1.1: normal features and a linear model with noise."
    )
    with st.grid(2):
        for name in GENERATOR_FIELDS:
            fields.draw(QUESTION, name)


def _generated() -> RegressionData | None:
    values: dict[str, Any] = {name: st.session_state[QUESTION.key(name)] for name in GENERATOR_FIELDS}
    labels = {name: QUESTION.field(name).sentence for name in GENERATOR_FIELDS}
    generator, problems = fields.made(RegressionGenerator, values, labels)
    if generator is None:
        fields.say(problems)
        return None
    return cached.regression_data(generator)


def _uploaded() -> RegressionData | None:
    loaded: RegressionData | None = st.session_state.get(QUESTION.key("loaded"))
    if loaded is None:
        UPLOAD.show_uploader()
    UPLOAD.show_choices()
    if loaded is None:
        if not UPLOAD.waits():
            st.caption(
                "For example a table of ratings: who was rated, the rating, and what is known of each. A link "
                "does not carry uploaded data."
            )
        return None
    for note in loaded.dataset.notes:
        st.caption(plain(note, 600))
    return loaded
