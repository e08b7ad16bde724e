"""Where the Regression page's data come from: generated as in the paper, or its own upload."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.regression.parameters import (
    MAX_GENERATED_ROWS,
    MAX_PART,
    DataSource,
    Generator,
    RegressionParameters,
)
from pages.regression import cached, upload
from pages.regression.upload import Loaded
from pages.shared import cards, keys
from pages.shared import fields as questions
from pages.shared.text import plain

SOURCES = {DataSource.GENERATED: "Generate", DataSource.UPLOAD: "Upload a table"}
# Field of the parameters object: label, help.
GENERATOR_FIELDS = {
    "num_rows": ("Rows n", f"20 to {MAX_GENERATED_ROWS:,}; the paper uses 600 to 3,000."),
    "exponent": (
        "Exponent α of rows per user",
        "$u_i \\propto i^{-\\alpha}$ users have $i$ rows. Smaller is more uneven; the paper uses 1 < α ≤ 2.",
    ),
    "informative": ("Features with a coefficient", f"1 to {MAX_PART}; the paper uses 5."),
    "uninformative": ("Features without", f"0 to {MAX_PART}; the paper uses 5."),
    "label_noise": ("Noise of the labels", "Its standard deviation; the paper uses 20."),
    "seed": ("Seed", "The same seed gives the same data."),
}


def generator_key(field: str) -> str:
    """Session key of a generator's field."""
    return keys.REGRESSION_GENERATOR + field


def read_data() -> Loaded | None:
    """Draw the choice of data. Returns None, with a sentence on the page, where there are none yet."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = st.segmented_control(
            "Data of this page",
            list(SOURCES),
            key=keys.REGRESSION_SOURCE,
            format_func=SOURCES.__getitem__,
            required=True,
            persist_state="session",
        )
        if source is DataSource.GENERATED:
            with st.popover("Settings", icon=":material/tune:", key="regression_settings"):
                _generator_fields()
    # Not in the row above: beside its buttons a sentence would squeeze them.
    return _generated() if source is DataSource.GENERATED else _uploaded()


def _generator_fields() -> None:
    st.markdown("Generated as in the paper, appendix E.1.1: standard normal features, a linear model, noise.")
    with st.grid(2):
        for field, (label, help_text) in GENERATOR_FIELDS.items():
            whole = isinstance(getattr(RegressionParameters, field), int)
            questions.number(label, generator_key(field), help_text, whole=whole)


def _generated() -> Loaded | None:
    fields: dict[str, Any] = {field: st.session_state[generator_key(field)] for field in GENERATOR_FIELDS}
    labels = {field: label for field, (label, _) in GENERATOR_FIELDS.items()}
    labels["noise"], fields["noise"] = labels.pop("label_noise"), fields.pop("label_noise")
    generator, problems = questions.made(Generator, fields, labels)
    if generator is None:
        questions.say(problems)
        return None
    return cached.regression_data(generator)


def _uploaded() -> Loaded | None:
    loaded: Loaded | None = st.session_state.get(keys.REGRESSION_LOADED)
    if loaded is None:
        upload.panel()
        if st.session_state.get(keys.REGRESSION_TABLE) is None:
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
