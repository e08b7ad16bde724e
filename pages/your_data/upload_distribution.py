"""The upload of a file that describes how pairs of user and group are distributed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.data import group_pairs
from dpcore.dataset import Dataset
from pages.shared.fields import fields
from pages.your_data.question import QUESTION
from pages.your_data.upload_roles import PUBLIC


def has_distribution(files: Sequence[str | counting.MemoryFile]) -> bool:
    """Return True if one of these files, by path or in memory, is marked as such a distribution."""
    return any(group_pairs.has_schema(_read_start(file, 2_000)) for file in files)


def read_distribution(files: Sequence[str | counting.MemoryFile], names: Sequence[str]) -> Dataset:
    """Return the data of the one file, labelled private until the person says otherwise.

    Raises:
        InvalidInput: There are several files, or the numbers in it fit no data.
    """
    if len(files) > 1:
        raise refuse("a distribution of pairs is one file, and is brought alone")
    content = _read_start(files[0], group_pairs.MAX_BYTES + 1)
    return group_pairs.read(content, names[0], Disclosure.PRIVATE)


def _read_start(file: str | counting.MemoryFile, max_bytes: int) -> bytes:
    """Return the first bytes of a file; empty for anything but a regular file."""
    if isinstance(file, counting.MemoryFile):
        return file.content[:max_bytes]
    if not os.path.isfile(file):
        return b""
    with open(file, "rb") as stream:
        return stream.read(max_bytes)


def choose(dataset: Dataset, on_discard: Callable[[], None]) -> Dataset | None:
    """Show the distribution, the choice of its label, and the buttons; return the data once they are to be used."""
    sizes = dataset.pair_sizes
    assert sizes is not None
    st.markdown(
        f"**{wording.plain(dataset.name)}**: {wording.counted(int(sizes.pairs.sum()), 'pair')} of "
        f"{wording.counted(dataset.histogram.num_users, 'user')} and "
        f"{wording.counted(sizes.task_rows.size, 'group')} of {wording.plain(sizes.label)}."
    )
    st.caption(
        "The file says how pairs of user and group are distributed, not which lie in which group. *Per group* answers "
        "from it, and says what is approximate. Nothing can check that its numbers are true."
    )
    key = QUESTION.key("upload_public")
    options = [Disclosure.PRIVATE, Disclosure.PUBLIC]
    if st.session_state.get(key) not in options:
        st.session_state[key] = Disclosure.PRIVATE
    disclosure = st.radio(
        "Are these data public?",
        options,
        key=key,
        format_func=PUBLIC.__getitem__,
        persist_state="session",
        horizontal=True,
    )
    with st.container(horizontal=True):
        is_confirmed = st.button(
            "Use these data", type=fields.main_button(), icon=":material/check:", key="use_distribution"
        )
        st.button(
            "Discard the file", key="discard_distribution", on_click=on_discard, icon=":material/delete:"
        )
    return replace(dataset, disclosure=disclosure) if is_confirmed else None
