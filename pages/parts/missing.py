"""What to say where a page needs more of the data than there is."""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Dataset
from pages.parts import session


def sentence(data: Dataset, needed: str, what: str = "This") -> str:
    """Why ``needed`` (a plural noun phrase), which ``what`` needs, is not there."""
    if data.release is not None:
        return (
            f"{what} needs {needed}. A DP release holds only how many users have how many rows; everything else was "
            "left behind, so that nothing of it can be shown."
        )
    return f"{what} needs {needed}. The data in use hold only how many rows each user has."


def say(data: Dataset, needed: str, remedy: str) -> None:
    """The sentence, and a way to Your data."""
    st.info(sentence(data, needed), icon=":material/info:")
    st.page_link(session.page_file("Your data"), label=remedy, icon=":material/upload:")
