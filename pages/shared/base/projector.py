"""The look for a projector: larger type, no sidebar. ``?present=1`` in the address, or a button, sets it."""

from __future__ import annotations

import streamlit as st

from pages.shared.base import keys

MARK = "present"
"""Field of the address; any link takes it along."""
TYPE_SIZE, USUAL_SIZE = 22, 16
"""Type size of the page's root, in pixels: nearly all that Streamlit draws is measured in it, and figures follow."""


def is_on() -> bool:
    """Whether this session presents. To be asked first by the script: navigation takes the mark out of the address."""
    if MARK in st.query_params and keys.PRESENTING not in st.session_state:
        st.session_state[keys.PRESENTING] = st.query_params[MARK] == "1"
    return bool(st.session_state.get(keys.PRESENTING))
