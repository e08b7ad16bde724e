"""The upload of a session file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.checks import InputProblem, describe_error
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
class _OpenedFile:
    """The outcome of opening the last file.

    Attributes:
        problems: Why nothing of it was used; empty if it was opened.
        content: Its content; None if nothing was used.
    """

    problems: tuple[InputProblem, ...]
    content: session_file.FileContent | None


def show_panel() -> None:
    """Show the uploader for a session file, and the outcome of the last file."""
    if demo.is_served():
        uploads.show_demo_notice()
        return
    ENTRY.show(
        "A file that *Save session*, in the sidebar, has made",
        "Data and settings take the place of those in use. What was released of any data stays on the account, here "
        "and in the file.",
        _open_file,
    )
    _show_outcome(st.session_state.get(QUESTION.key("session_opened")))


def _open_file(files: list[UploadedFile]) -> None:
    """Make the file's content the session's, or store why it is refused."""
    state, file = st.session_state, files[0]
    try:
        content = session_file.read_file(file.getvalue())
    except Exception as error:  # Whatever it is, the page stays usable.
        name = InputProblem(f"the file {file.name} was not opened")
        state[QUESTION.key("session_opened")] = _OpenedFile((name, *describe_error(error)), None)
    else:
        session_file.apply(content.content)
        state[QUESTION.key("session_opened")] = _OpenedFile((), content)
    ENTRY.drop(files)


def _show_outcome(opened: _OpenedFile | None) -> None:
    if opened is None:
        return
    if opened.content is None:
        lines = "\n".join(f"- {plain(p.sentence, 400)}" for p in opened.problems)
        st.error(f"{lines}\n\nNothing was changed.", icon=":material/error:")
        return
    st.success(
        f"The session of {plain(opened.content.saved)} is open. In use: {plain(session.dataset().name)}.",
        icon=":material/check:",
    )
    if opened.content.left_out:
        lines = "\n".join(f"- {plain(words, 400)}" for words in opened.content.left_out)
        st.info(f"The file does not hold:\n{lines}", icon=":material/info:")
        for file in opened.content.content.files:
            if session.dataset().name != file.name:
                st.caption(f"Bring {plain(file.name)} again, and its columns are read as they were.")
    if opened.content.not_followed:
        st.warning(
            "These settings of the file were not followed; all others were.", icon=":material/warning:"
        )
        fields.say(opened.content.not_followed)
