"""Demonstrations and messages for a page that needs more than the data in use hold."""

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
def load_demonstration() -> Dataset:
    """Return invented data with values and groups, which a page shows if the data in use have none."""
    return samples.load(SAMPLE_WITH_EVERYTHING)


def explain_missing(data: Dataset, needed: str, subject: str = "This") -> str:
    """Write why ``needed`` (a plural noun phrase), which ``subject`` needs, is not there."""
    if data.release is not None:
        return (
            f"{subject} needs {needed}. A DP release holds only how many users have how many rows; everything else was "
            "left behind, so that nothing of it can be shown."
        )
    return f"{subject} needs {needed}. The data in use hold only how many rows each user has."


def show_stand_in(data: Dataset, needed: str, remedy: str) -> None:
    """Show why the page shows a demonstration, and a link to *Your data*."""
    st.info(explain_missing(data, needed), icon=":material/info:")
    draw_data_link(remedy)


def draw_data_link(label: str) -> None:
    """Draw a link to *Your data*."""
    st.page_link(session.page_file("Your data"), label=label, icon=":material/upload:")


def explain_cleared(fields: Mapping[str, str]) -> None:
    """Show why a release has emptied fields and what to do; nothing if no field is empty for this reason.

    Args:
        fields: What each field is called in a sentence, by session key.
    """
    empty = [name for key, name in fields.items() if session.is_cleared(key)]
    if empty:
        is_single = len(empty) == 1
        names = " and ".join(filter(None, (", ".join(empty[:-1]), empty[-1])))
        st.caption(
            f"{names} {'is' if is_single else 'are'} empty because the release in use holds no values, and "
            f"what was entered while the values were in sight may have been read off them. Enter "
            f"{'it' if is_single else 'them'} anew from what the quantity is, not from the data."
        )
