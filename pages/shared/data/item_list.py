"""A public list of items with their names, uploaded once for all pages that show items of the data in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import describe_error
from dpcore.data.samples import choose_names, read_names
from dpcore.dataset import Dataset
from pages.shared.base import demo, keys
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.data import uploads

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

PREFIX = "items_"
ENTRIES = FieldOrigin.DATA.each(*(f"{PREFIX}{name}" for name in ("file_", "round", "problems")))
"""Names of the session entries of the upload, under its question."""


def list_task_names(data: Dataset, noun: str = "item") -> tuple[str, ...]:
    """Return the label of each task in the order of codes; empty if the data have no task names.

    A name that stands only in private rows is not shown: the task gets the noun and a number instead.
    """
    return choose_names(data.task_names, st.session_state.get(keys.ITEM_NAMES), data.is_private, noun)


def show_upload(question: Question, data: Dataset, items: str = "items") -> None:
    """Show the upload of the list and how many items it names; nothing if the data in use have no item names.

    Args:
        question: The page's question, with `ENTRIES`.
        data: In use.
        items: The word for them, plural.
    """
    if not data.task_names or demo.is_served():
        return
    entry, names = uploads.Entry(question, PREFIX), st.session_state.get(keys.ITEM_NAMES)
    with st.expander(f"Names of the {items}", icon=":material/label:"):
        st.markdown(_describe_names(data, names, items))
        entry.show(
            f"A public list of the {items}: id, name",
            "One a line: movies.dat, u.item and movies.csv of MovieLens as they come, or two columns. It is read on "
            "this computer.",
            lambda files: _read_file(entry, files),
        )
        entry.show_problems()


def _describe_names(data: Dataset, names: Mapping[str, str] | None, items: str) -> str:
    """Write how items are named now, and how many of them the list names."""
    explanation = (
        f"Your rows are private: a name that stands in them is not shown, as one user alone may have written it, and "
        f"{items} have numbers."
        if data.is_private
        else f"The {items} are called as your rows call them."
    )
    if names is None:
        return f"{explanation} A public list of all {items} gives names to those on it."
    num_named = sum(each in names for each in data.task_names)
    return (
        f"{explanation} Your list has {wording.number(len(names))} names; it names {wording.number(num_named)} of the "
        f"{wording.number(len(data.task_names))} {wording.plain(items)} in the data"
        + (" (computed from private data: do not publish)." if data.is_private else ".")
    )


def _read_file(entry: uploads.Entry, files: list[UploadedFile]) -> None:
    try:
        st.session_state[keys.ITEM_NAMES] = read_names(files[0].getvalue())
        entry.refuse(())
    except Exception as error:  # Whatever it is, the page stays usable.
        entry.refuse(describe_error(error), [files[0].name])
    entry.drop(files)
