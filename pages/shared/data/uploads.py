"""What every page shares that takes files: whether it may, what was wrong, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InputProblem
from dpcore.data.column_names import escape_formula
from dpcore.data.tables import Table
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.streamlit_internals import free_files

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def say_served() -> None:
    """Say that a public demo takes no data."""
    st.info(
        "This is a public demo: uploads and paths are switched off, so that nobody's data come here. Samples "
        "and generators work as usual. To use data of your own, run Sweet Spot on your computer.",
        icon=":material/cloud_off:",
    )


def files_of(uploader: str) -> list[UploadedFile]:
    """Return the files that an uploader's callback is to read; empty where it is called for files that were dropped.

    That happens: until the browser has taken the old uploader away, each of its messages, be it of a fragment that
    looks at work every 0.4 s, names the file again. Streamlit 1.67 finds a `DeletedFile` in place of the file, which
    has no content, takes that for a change, and calls the callback once more. What was read the first time must stay.
    """
    uploaded = st.session_state.get(uploader) or []
    files = uploaded if isinstance(uploaded, list) else [uploaded]
    return [file for file in files if hasattr(file, "getvalue")]


@dataclass(frozen=True)
class Entry:
    """Where files are given, and what was wrong with the last ones.

    Attributes:
        of: The page's question.
        prefix: What its names in the session begin with.
    """

    of: Question
    prefix: str = ""

    def _key(self, name: str) -> str:
        return self.of.key(self.prefix + name)

    def show(
        self, label: str, help: str, read: Callable[[list[UploadedFile]], None], many: bool = False
    ) -> None:
        """Show the uploader; ``read`` gets the files, and is to `drop` them once it has what it needs."""
        key = f"{self._key('file_')}{st.session_state.setdefault(self._key('round'), 0)}"
        st.file_uploader(
            label, key=key, accept_multiple_files=many, on_change=self._read, args=(key, read), help=help
        )

    def _read(self, key: str, read: Callable[[list[UploadedFile]], None]) -> None:
        if files := files_of(key):
            read(files)

    def drop(self, files: Sequence[UploadedFile]) -> None:
        """Free the files; a new uploader takes the place of theirs."""
        free_files(files)
        st.session_state[self._key("round")] += 1

    def refuse(self, problems: Sequence[InputProblem], names: Sequence[str] = ()) -> None:
        """Keep what was wrong, with the ``names`` of files that were not read; nothing to keep nothing."""
        said = f"the file {names[0]} was not read" if len(names) == 1 else "the files were not read"
        st.session_state[self._key("problems")] = (*([InputProblem(said)] if names else []), *problems)

    @property
    def problems(self) -> Sequence[InputProblem]:
        """Return what was wrong with the last files."""
        problems: Sequence[InputProblem] = st.session_state.get(self._key("problems"), ())
        return problems

    def say(self) -> None:
        """Say what was wrong."""
        if self.problems:
            lines = "\n".join(f"- {wording.plain(problem.sentence, 400)}" for problem in self.problems)
            st.error(f"{lines}\n\nThe data in use stay as they were.", icon=":material/error:")


def show_head(name: str, size: str, columns: int, head: Table) -> None:
    """What was read: its name and size, what there is to say of it, and the first rows."""
    st.markdown(f"**{wording.plain(name)}**: {size}, {wording.counted(columns, 'column')}")
    for note in head.notes:
        st.caption(wording.plain(note, 300))
    st.dataframe(preview(head), hide_index=True, alt="The first rows of the file", height="content")


def use_or_discard(use: str, discard: str, do_discard: Callable[[], None]) -> bool:
    """Both buttons, by their keys; returns whether the file is to be used."""
    with st.container(horizontal=True):
        used = fields.button("Use these data", use, "check", main=True)
        fields.button("Discard the file", discard, "delete", do_discard)
    return used


PREVIEW_ROWS = 3


def preview(head: Table) -> pd.DataFrame:
    """Return the first rows. The table can be downloaded from the page, so no cell may be a formula."""
    return (
        head.frame.head(PREVIEW_ROWS)
        .map(escape_formula)
        .rename(columns=lambda name: escape_formula(str(name)))
    )
