"""The address of a former page, on which bounds were chosen privately: it leads to the page that asks for the bound."""

import streamlit as st

from dpcore.common.noise_error import NoiseKind
from dpcore.private_choice.parameters import BoundPurpose
from pages.private_choice.question import QUESTION
from pages.shared.base import catalogue
from pages.shared.fields import fields, setting

TITLE_BY_PURPOSE = {BoundPurpose.SUM: "Sum and count", BoundPurpose.QUANTILE: "Data"}
"""Titles of the pages, by the purpose of the bound; all other pages choose the bound of a mean."""

fields.initialise_fields(QUESTION)
state, key = st.session_state, QUESTION.get_key
page = catalogue.find_page(TITLE_BY_PURPOSE.get(state[key("purpose")], "Mean"))
setting.enter_values({"program": state[key("program")]})
if state[key("release_delta")] is not None and "mechanism" in page.fields:
    state[page.get_key("mechanism")], state[page.get_key("delta")] = (
        NoiseKind.GAUSSIAN,
        state[key("release_delta")],
    )
st.switch_page(page.page_path)
