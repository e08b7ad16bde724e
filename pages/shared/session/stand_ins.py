"""What to say where a page needs more of the data than there is."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from dpcore.data import samples
from dpcore.dataset import Dataset
from pages.shared.base.cache import cached_for_all
from pages.shared.session import session

DEMONSTRATION = "Demonstration: invented shop purchases, not your data"
"""Stands on figure and card where invented data show what a page does with data that have what it needs."""
SAMPLE_WITH_EVERYTHING = "shop-events"


@cached_for_all(max_entries=1)
def demonstration() -> Dataset:
    """Invented data with values and groups, for data in use that have none; they never take the place of those."""
    return samples.load(SAMPLE_WITH_EVERYTHING)


def sentence(data: Dataset, needed: str, subject: str = "This") -> str:
    """Why ``needed`` (a plural noun phrase), which ``subject`` needs, is not there."""
    if data.release is not None:
        return (
            f"{subject} needs {needed}. A DP release holds only how many users have how many rows; everything else was "
            "left behind, so that nothing of it can be shown."
        )
    return f"{subject} needs {needed}. The data in use hold only how many rows each user has."


def show_stand_in(data: Dataset, needed: str, remedy: str) -> None:
    """The sentence, and a way to Your data."""
    st.info(sentence(data, needed), icon=":material/info:")
    bring(remedy)


def bring(label: str) -> None:
    """A way to Your data."""
    st.page_link(session.page_file("Your data"), label=label, icon=":material/upload:")


def say_cleared(fields: Mapping[str, str]) -> None:
    """Why fields stand empty that a release of data with values has emptied, and what to do; nothing where none do.

    Args:
        fields: Session key to what the field is called in a sentence.
    """
    empty = [name for key, name in fields.items() if session.cleared(key)]
    if empty:
        is_single = len(empty) == 1
        names = " and ".join(filter(None, (", ".join(empty[:-1]), empty[-1])))
        st.caption(
            f"{names} {'is' if is_single else 'are'} empty because the release in use holds no values, and "
            f"what was entered while the values were in sight may have been read off them. Enter "
            f"{'it' if is_single else 'them'} anew from what the quantity is, not from the data."
        )
