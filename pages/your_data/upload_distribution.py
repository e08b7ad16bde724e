"""A file that says how pairs of user and group are distributed: read, shown with its label, and taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.common.errors import refuse
from dpcore.common.privacy import Disclosure
from dpcore.data import pair_distribution
from dpcore.dataset import Dataset
from pages.shared.fields import fields
from pages.your_data.question import QUESTION
from pages.your_data.upload_roles import PUBLIC


def among(files: Sequence[str | counting.MemoryFile]) -> bool:
    """Return whether one of these files, by path or in memory, says that it is such a distribution."""
    return any(pair_distribution.has_schema(_content(file, 2_000)) for file in files)


def read(files: Sequence[str | counting.MemoryFile], names: Sequence[str]) -> Dataset:
    """Return the data of the one file, taken for private until the person says otherwise.

    Raises:
        InvalidInput: It is not one file, or what it says no data can have.
    """
    if len(files) > 1:
        raise refuse("a distribution of pairs is one file, and is brought alone")
    content = _content(files[0], pair_distribution.MAX_BYTES + 1)
    return pair_distribution.read(content, names[0], Disclosure.PRIVATE)


def _content(file: str | counting.MemoryFile, most: int) -> bytes:
    """Return the first bytes of a file; none of what is no plain file."""
    if isinstance(file, counting.MemoryFile):
        return file.content[:most]
    if not os.path.isfile(file):
        return b""
    with open(file, "rb") as opened:
        return opened.read(most)


def choose(found: Dataset, discard: Callable[[], None]) -> Dataset | None:
    """Return what the file says, whether it is public, and the buttons. Returns the data once they are to be
    used.
    """
    sizes = found.pair_sizes
    assert sizes is not None
    st.markdown(
        f"**{wording.plain(found.name)}**: {wording.counted(int(sizes.pairs.sum()), 'pair')} of "
        f"{wording.counted(found.histogram.num_users, 'user')} and "
        f"{wording.counted(sizes.task_rows.size, 'group')} of {wording.plain(sizes.label)}."
    )
    st.caption(
        "The file says how pairs of user and group are distributed, not which lie in which group. *Per group* answers "
        "from it, and says what is approximate. Nothing can check that its numbers are true."
    )
    key = QUESTION.key("upload_public")
    offered = [Disclosure.PRIVATE, Disclosure.PUBLIC]
    if st.session_state.get(key) not in offered:
        st.session_state[key] = Disclosure.PRIVATE
    disclosure = st.radio(
        "Are these data public?",
        offered,
        key=key,
        format_func=PUBLIC.__getitem__,
        persist_state="session",
        horizontal=True,
    )
    with st.container(horizontal=True):
        used = st.button(
            "Use these data", type=fields.main_button(), icon=":material/check:", key="use_distribution"
        )
        st.button("Discard the file", key="discard_distribution", on_click=discard, icon=":material/delete:")
    return replace(found, disclosure=disclosure) if used else None
