"""What a program on this computer hands over to the app: a question with its data, opened by an address, once."""

from __future__ import annotations

import os

import streamlit as st

from dpcore.common.errors import InputProblem, InvalidInput
from dpcore.report import local_app
from pages.shared.base import catalogue, demo, keys
from pages.shared.session import session_file

GONE = InputProblem(
    "what this address was to open is gone: it opens once, while the Python that made it runs",
    remedy="Call answer.open() again",
)


def open_once() -> None:
    """Take over what the address names, and go to its page; to be called before any widget."""
    token = st.query_params.get(local_app.FIELD)
    if token is None:
        return
    # At once: what it names opens once, and a page that is loaded anew must not ask for it again.
    del st.query_params[local_app.FIELD]
    folder = None if demo.is_served() else os.environ.get(local_app.FOLDER)
    if (content := local_app.handed_over(token, folder)) is None:
        st.session_state[keys.LINK_PROBLEMS] = (GONE,)
        return
    try:
        handed = session_file.read(content)
    except InvalidInput as refused:
        st.session_state[keys.LINK_PROBLEMS] = tuple(refused.problems)
        return
    session_file.apply(handed.content)
    left_out = tuple(InputProblem(f"not handed over: {words}") for words in handed.left_out)
    st.session_state[keys.LINK_PROBLEMS] = (*handed.not_followed, *left_out)
    if (page := catalogue.named(handed.page)) is not None:
        st.switch_page(page.path)
