"""A public list of items with their names, brought once for all pages that show items of the data in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import describe_error
from dpcore.data.name_lists import choose_names, read_names
from dpcore.dataset import Dataset
from pages.shared.base import demo, keys
from pages.shared.base.question import From, Question
from pages.shared.data import uploads

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

PREFIX = "items_"
ENTRIES = From.DATA.each(*(f"{PREFIX}{name}" for name in ("file_", "round", "problems")))
"""What the upload keeps in the session under its question."""


def names_of(data: Dataset, noun: str = "item") -> tuple[str, ...]:
    """Return what a page calls each task of the data, in the order of codes; empty where the data have no
    names for them.

    A name that stands in private rows alone is not shown: it has a number behind the noun.
    """
    return choose_names(data.task_names, st.session_state.get(keys.ITEM_NAMES), data.is_private, noun)


def offer(of: Question, data: Dataset, items: str = "items") -> None:
    """Where the list is given, and what it names; nothing where the data in use have no such names.

    Args:
        of: The page's question, with `ENTRIES`.
        data: In use.
        items: What they are called, plural.
    """
    if not data.task_names or demo.is_served():
        return
    entry, list_of = uploads.Entry(of, PREFIX), st.session_state.get(keys.ITEM_NAMES)
    with st.expander(f"Names of the {items}", icon=":material/label:"):
        st.markdown(_said(data, list_of, items))
        entry.show(
            f"A public list of the {items}: id, name",
            "One a line: movies.dat, u.item and movies.csv of MovieLens as they come, or two columns. It is read on "
            "this computer.",
            lambda files: _read(entry, files),
        )
        entry.say()


def _said(data: Dataset, names: Mapping[str, str] | None, items: str) -> str:
    why = (
        f"Your rows are private: a name that stands in them is not shown, as one user alone may have written it, and "
        f"{items} have numbers."
        if data.is_private
        else f"The {items} are called as your rows call them."
    )
    if names is None:
        return f"{why} A public list of all {items} gives names to those on it."
    held = sum(each in names for each in data.task_names)
    return (
        f"{why} Your list has {wording.number(len(names))} names; it names {wording.number(held)} of the "
        f"{wording.number(len(data.task_names))} {wording.plain(items)} in the data"
        + (" (computed from private data: do not publish)." if data.is_private else ".")
    )


def _read(entry: uploads.Entry, files: list[UploadedFile]) -> None:
    try:
        st.session_state[keys.ITEM_NAMES] = read_names(files[0].getvalue())
        entry.refuse(())
    except Exception as error:  # Whatever it is, the page stays usable.
        entry.refuse(describe_error(error), [files[0].name])
    entry.drop(files)
