"""The public list of groups on a page: typed, pasted or uploaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.checks import InputProblem
from pages.shared.base.question import Question
from pages.shared.base.upload_entries import GROUP_LIST_PREFIX
from pages.shared.data.uploads import Uploader
from pages.shared.fields import fields
from pages.shared.server import access

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def draw_group_list(question: Question, includes_field: bool = True) -> None:
    """Draw the field of the groups, one a line, and the upload that fills it; no upload on a public demo.

    The question has a field ``groups``, and `GROUP_LIST_ORIGINS`. Without ``includes_field`` the field stands
    elsewhere.
    """
    if includes_field:
        fields.draw_field(question, "groups")
    if access.is_served():
        return
    uploader = Uploader(question, GROUP_LIST_PREFIX)
    uploader.show(
        "The list as a file",
        "Text in UTF-8, one name a line.",
        lambda files: _read_group_list(question, uploader, files),
    )
    uploader.show_problems()


def _read_group_list(question: Question, uploader: Uploader, files: list[UploadedFile]) -> None:
    """Fill the field with the lines of an uploaded file, or store why it is refused."""
    try:
        st.session_state[question.widget_keys["groups"]] = files[0].getvalue().decode("utf-8-sig")
        uploader.store_problems(())
    except UnicodeDecodeError:
        problem = InputProblem("the list is no text in UTF-8", remedy="Save it as UTF-8, one name a line")
        uploader.store_problems([problem], [files[0].name])
    uploader.drop_files(files)
