"""The inputs of the Mean page, as one validated parameters object."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from dpcore import mean
from dpcore.dataset import Dataset
from pages.mean.question import QUESTION, WITHOUT_VALUES
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout
from pages.shared.session import session

FROM_VALUES = mean.VarianceSource.FROM_VALUES


def read_inputs(data: Dataset, slots: layout.PageSlots) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    key = QUESTION.key

    def reads_values(name: str) -> bool:
        state = st.session_state
        reads_table = (
            state[key("target")] is mean.Target.TABLE and state[key("variance_source")] is FROM_VALUES
        )
        return name in ("likeness", "user_share") and reads_table and data.values is not None

    def ask_range(unused: Collection[str]) -> bool:
        ends = {key("lower"): "L", key("upper"): "U"}
        if inputs.ask(data, ends):
            return True
        if data.release is not None:
            session.explain_cleared(
                ends if "value_variance" in unused else ends | {key("value_variance"): "σ²"}
            )
        return False

    parameters: mean.MeanParameters | None = inputs.read_inputs(
        QUESTION,
        slots,
        options=WITHOUT_VALUES if data.release is not None else {},
        hidden=reads_values,
        draw_more=lambda: fields.button(
            "Independent rows, as in the paper", "mean_as_in_paper", "menu_book", _as_in_paper
        ),
        ask_first=ask_range,
    )
    if parameters is not None and data.values is None and parameters.reads_values:
        with slots.notes:
            st.caption(
                "These data have no values to read: the worst case stands in for σ², and the assumed share for ρ."
            )
    return parameters


def _as_in_paper() -> None:
    """Set the model of Epasto et al. 2020: the mean of a distribution that all rows are independent draws of."""
    st.session_state[QUESTION.key("target")] = mean.Target.POPULATION
    st.session_state[QUESTION.key("likeness")] = mean.Likeness.INDEPENDENT
