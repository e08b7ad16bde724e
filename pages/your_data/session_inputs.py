"""Opens a session that was saved as a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.errors import InputProblem, describe_error
from dpcore.common.wording import plain
from pages.shared.base import demo
from pages.shared.data import uploads
from pages.shared.fields import fields
from pages.shared.session import session, session_file
from pages.your_data.question import QUESTION

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

ENTRY = uploads.Entry(QUESTION, "session_")


@dataclass(frozen=True)
class _Opened:
    """What became of the last file.

    Attributes:
        refused: Why nothing of it was taken; empty where it was opened.
        found: What it held; None where nothing was taken.
    """

    refused: tuple[InputProblem, ...]
    found: session_file.FileContent | None


def panel() -> None:
    """A place for the file, and what became of the last one."""
    if demo.is_served():
        uploads.say_served()
        return
    ENTRY.show(
        "A file that *Save session*, in the sidebar, has made",
        "Data and settings take the place of those in use. What was released of any data stays on the account, here "
        "and in the file.",
        _open,
    )
    _say(st.session_state.get(QUESTION.key("session_opened")))


def _open(files: list[UploadedFile]) -> None:
    state, file = st.session_state, files[0]
    try:
        saved = session_file.read(file.getvalue())
    except Exception as error:  # Whatever it is, the page stays usable.
        name = InputProblem(f"the file {file.name} was not opened")
        state[QUESTION.key("session_opened")] = _Opened((name, *describe_error(error)), None)
    else:
        session_file.apply(saved.content)
        state[QUESTION.key("session_opened")] = _Opened((), saved)
    ENTRY.drop(files)


def _say(opened: _Opened | None) -> None:
    if opened is None:
        return
    if opened.found is None:
        lines = "\n".join(f"- {plain(p.sentence, 400)}" for p in opened.refused)
        st.error(f"{lines}\n\nNothing was changed.", icon=":material/error:")
        return
    st.success(
        f"The session of {plain(opened.found.saved)} is open. In use: {plain(session.dataset().name)}.",
        icon=":material/check:",
    )
    if opened.found.left_out:
        lines = "\n".join(f"- {plain(words, 400)}" for words in opened.found.left_out)
        st.info(f"The file does not hold:\n{lines}", icon=":material/info:")
        for file in opened.found.content.files:
            if session.dataset().name != file.name:
                st.caption(f"Bring {plain(file.name)} again, and its columns are read as they were.")
    if opened.found.not_followed:
        st.warning(
            "These settings of the file were not followed; all others were.", icon=":material/warning:"
        )
        fields.say(opened.found.not_followed)
