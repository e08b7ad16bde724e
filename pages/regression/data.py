"""Where the Regression page's data come from: generated as in the paper, or its own upload."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.regression.parameters import DataSource, RegressionGenerator
from pages.regression import cached, upload
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared import cards, fields
from pages.shared.text import plain


def read_data() -> RegressionData | None:
    """Show the choice of data. Returns None, with a sentence on the page, where there are none yet."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = fields.draw(QUESTION, "source")
        if source is DataSource.GENERATED:
            with st.popover("Settings", icon=":material/tune:", key="regression_settings"):
                _generator_fields()
    # Not in the row above: beside its buttons a sentence would squeeze them.
    return _generated() if source is DataSource.GENERATED else _uploaded()


def _generator_fields() -> None:
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
        upload.panel()
        if st.session_state.get(QUESTION.key("table")) is None:
            st.caption(
                "For example a table of ratings: who was rated, the rating, and what is known of each. A link "
                "does not carry uploaded data."
            )
        return None
    data = loaded.dataset
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(data.name)}**")
        cards.label(data.provenance, text="private data" if data.is_private else "public data")
    st.caption(plain(data.source, 600))
    for note in data.notes:
        st.info(plain(note, 600), icon=":material/info:")
    with st.expander("Bring another table", key="regression_again", icon=":material/upload:"):
        upload.panel()
    return loaded
