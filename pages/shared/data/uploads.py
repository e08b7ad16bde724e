"""The parts of every upload: the uploader, the problems of the last files, and the preview."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common import wording
from dpcore.common.checks import InputProblem
from dpcore.data.column_names import escape_formula
from dpcore.data.tables import Table
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.streamlit_internals import free_files

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def show_demo_notice() -> None:
    """Show that a public demo takes no data."""
    st.info(
        "This is a public demo: uploads and paths are switched off, so that nobody's data come here. Samples "
        "and generators work as usual. To use data of your own, run Sweet Spot on your computer.",
        icon=":material/cloud_off:",
    )


def list_readable_files(uploader: str) -> list[UploadedFile]:
    """Return the uploaded files that an uploader's callback can read, without files that were already dropped.

    Until the browser has removed an old uploader, each of its messages, even from a fragment that polls work every
    0.4 s, names the file again. Streamlit 1.67 then finds a `DeletedFile`, which has no content, takes that for a
    change and calls the callback once more. The result of the first call must stay.
    """
    uploaded = st.session_state.get(uploader) or []
    files = uploaded if isinstance(uploaded, list) else [uploaded]
    return [file for file in files if hasattr(file, "getvalue")]


@dataclass(frozen=True)
class Entry:
    """An uploader, with the problems of the last files.

    Attributes:
        question: The page's question.
        prefix: What its names in the session begin with.
    """

    question: Question
    prefix: str = ""

    def _key(self, name: str) -> str:
        """Return the session key of one of the uploader's entries."""
        return self.question.key(self.prefix + name)

    def show(
        self, label: str, help: str, callback: Callable[[list[UploadedFile]], None], multiple: bool = False
    ) -> None:
        """Show the uploader; ``callback`` gets the files, and calls `drop` once it has read them."""
        key = f"{self._key('file_')}{st.session_state.setdefault(self._key('round'), 0)}"
        st.file_uploader(
            label,
            key=key,
            accept_multiple_files=multiple,
            on_change=self._call_back,
            args=(key, callback),
            help=help,
        )

    def _call_back(self, key: str, callback: Callable[[list[UploadedFile]], None]) -> None:
        if files := list_readable_files(key):
            callback(files)

    def drop(self, files: Sequence[UploadedFile]) -> None:
        """Free the files' memory, and replace their uploader by a new one."""
        free_files(files)
        st.session_state[self._key("round")] += 1

    def refuse(self, problems: Sequence[InputProblem], unread_names: Sequence[str] = ()) -> None:
        """Store the problems, and which files were not read; an empty list of problems clears them."""
        files = f"the file {unread_names[0]} was" if len(unread_names) == 1 else "the files were"
        heading = [InputProblem(f"{files} not read")] if unread_names else []
        st.session_state[self._key("problems")] = (*heading, *problems)

    @property
    def problems(self) -> Sequence[InputProblem]:
        """Return the problems of the last files."""
        problems: Sequence[InputProblem] = st.session_state.get(self._key("problems"), ())
        return problems

    def show_problems(self) -> None:
        """Show the problems of the last files, if any."""
        if self.problems:
            lines = "\n".join(f"- {wording.plain(problem.sentence, 400)}" for problem in self.problems)
            st.error(f"{lines}\n\nThe data in use stay as they were.", icon=":material/error:")


def show_file(name: str, size: str, columns: int, head: Table) -> None:
    """Show what was read: name, size, notes, and the first rows."""
    st.markdown(f"**{wording.plain(name)}**: {size}, {wording.counted(columns, 'column')}")
    for note in head.notes:
        st.caption(wording.plain(note, 300))
    st.dataframe(preview(head), hide_index=True, alt="The first rows of the file", height="content")


def use_or_discard(use_key: str, discard_key: str, on_discard: Callable[[], None]) -> bool:
    """Draw both buttons; return True if the file is to be used."""
    with st.container(horizontal=True):
        is_confirmed = fields.button("Use these data", use_key, "check", is_main=True)
        fields.button("Discard the file", discard_key, "delete", on_discard)
    return is_confirmed


PREVIEW_ROWS = 3


def preview(head: Table) -> pd.DataFrame:
    """Return the first rows. The table can be downloaded from the page, so no cell may be a formula."""
    return (
        head.frame.head(PREVIEW_ROWS)
        .map(escape_formula)
        .rename(columns=lambda name: escape_formula(str(name)))
    )
