"""The parts of every upload, and a public list of items with their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.common.checks import InputProblem, describe_error
from dpcore.common.wording import escape_text, format_count, format_number
from dpcore.counting.text import choose_names, read_names
from dpcore.data.column_names import escape_formula
from dpcore.data.tables import Table
from dpcore.dataset import Dataset
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.base.upload_entries import ITEM_NAMES_PREFIX
from pages.shared.fields import fields
from pages.shared.server import access
from pages.shared.streamlit_internals import free_files

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def show_demo_notice() -> None:
    """Show that a public demo takes no data."""
    notice_text = "In this public demo uploads and paths are switched off. "
    notice_text += "Run Sweet Spot on your computer for your own data."
    st.info(notice_text, icon=":material/cloud_off:")


@dataclass(frozen=True)
class Uploader:
    """An uploader, with the problems of the last files.

    Attributes:
        question: The page's question.
        entry_prefix: What its names in the session begin with.
    """

    question: Question
    entry_prefix: str = ""

    def _get_key(self, entry_name: str) -> str:
        """Return the session key of one of the uploader's entries."""
        return self.question.get_key(self.entry_prefix + entry_name)

    def show(
        self,
        uploader_label: str,
        help_text: str,
        read_files: Callable[[list[UploadedFile]], None],
        takes_several: bool = False,
    ) -> None:
        """Show the uploader; ``read_files`` gets new files, even one as a list, and is to call `drop` at its end."""
        widget_key = f"{self._get_key('file_')}{st.session_state.setdefault(self._get_key('round'), 0)}"
        st.file_uploader(
            uploader_label,
            key=widget_key,
            accept_multiple_files=takes_several,
            on_change=self._pass_files,
            args=(widget_key, read_files),
            help=help_text,
        )

    def _pass_files(self, widget_key: str, read_files: Callable[[list[UploadedFile]], None]) -> None:
        """Call ``read_files`` with the uploaded files, without files that were already dropped.

        Until the browser has removed an old uploader, each of its messages, even from a fragment that polls work every
        0.4 s, names the file again. Streamlit 1.67 then finds a `DeletedFile`, which has no content, takes that for a
        change and calls once more. The result of the first call must stay.
        """
        file_or_files = st.session_state.get(widget_key) or []
        files = file_or_files if isinstance(file_or_files, list) else [file_or_files]
        if readable_files := [file for file in files if hasattr(file, "getvalue")]:
            read_files(readable_files)

    def drop_files(self, files: Sequence[UploadedFile]) -> None:
        """Free the files' memory, and replace their uploader by a new one."""
        free_files(files)
        st.session_state[self._get_key("round")] += 1

    def store_problems(self, problems: Sequence[InputProblem], unread_names: Sequence[str] = ()) -> None:
        """Store the problems, and which files were not read; an empty list of problems clears them."""
        files_text = f"the file {unread_names[0]} was" if len(unread_names) == 1 else "the files were"
        first_problems = [InputProblem(f"{files_text} not read")] if unread_names else []
        st.session_state[self._get_key("problems")] = (*first_problems, *problems)

    @property
    def problems(self) -> Sequence[InputProblem]:
        """Return the problems of the last files."""
        problems: Sequence[InputProblem] = st.session_state.get(self._get_key("problems"), ())
        return problems

    def show_problems(self) -> None:
        """Show the problems of the last files, if any."""
        if self.problems:
            lines_text = "\n".join(f"- {escape_text(problem.sentence, 400)}" for problem in self.problems)
            st.error(f"{lines_text}\n\nThe data in use stay as they were.", icon=":material/error:")


PREVIEW_ROWS = 3


def show_file_head(file_name: str, size_text: str, num_columns: int, table: Table) -> None:
    """Show what was read: name, size, notes, and the first rows."""
    st.markdown(f"**{escape_text(file_name)}**: {size_text}, {format_count(num_columns, 'column')}")
    for note in table.notes:
        st.caption(escape_text(note, 300))
    # The table can be downloaded from the page, so no cell may be a formula.
    head_frame = table.frame.head(PREVIEW_ROWS).map(escape_formula)
    head_frame = head_frame.rename(columns=lambda column: escape_formula(str(column)))
    st.dataframe(head_frame, hide_index=True, alt="The first rows of the file", height="content")


def draw_use_and_discard(use_key: str, discard_key: str, on_discard: Callable[[], None]) -> bool:
    """Draw the buttons that use and discard a file; return True if the one to use it was just pressed."""
    with st.container(horizontal=True):
        is_confirmed = fields.draw_button("Use these data", use_key, "check", is_main=True)
        fields.draw_button("Discard the file", discard_key, "delete", on_discard)
    return is_confirmed


def list_task_names(dataset: Dataset, noun: str = "item") -> tuple[str, ...]:
    """Return the label of each task in the order of codes; empty if the data have no task names.

    A name that stands only in private rows is not shown: the task gets the noun and a number instead.
    """
    return choose_names(dataset.task_names, st.session_state.get(keys.ITEM_NAMES), dataset.is_private, noun)


def show_item_names_upload(question: Question, dataset: Dataset, items_noun: str = "items") -> None:
    """Show the upload of a public list of names, and how many items it names; nothing on a demo or without names.

    Args:
        question: The page's question, with `ITEM_NAMES_ORIGINS`.
        dataset: In use.
        items_noun: The word for them, plural.
    """
    if not dataset.task_names or access.is_served():
        return
    uploader, names_by_id = Uploader(question, ITEM_NAMES_PREFIX), st.session_state.get(keys.ITEM_NAMES)
    with st.expander(f"Names of the {items_noun}", icon=":material/label:"):
        st.markdown(_describe_names(dataset, names_by_id, items_noun))
        uploader.show(
            f"A public list of the {items_noun}: id, name",
            "One a line: movies.dat, u.item and movies.csv of MovieLens as they come, or two columns.",
            lambda new_files: _store_item_names(uploader, new_files),
        )
        uploader.show_problems()


def _describe_names(dataset: Dataset, names_by_id: Mapping[str, str] | None, items_noun: str) -> str:
    """Write how items are named now, and how many of them the list names."""
    list_sentence = f"A public list of all {items_noun} gives names to those on it."
    if names_by_id is not None:
        named_text = format_number(sum(task_name in names_by_id for task_name in dataset.task_names))
        items_text = f"{format_number(len(dataset.task_names))} {items_noun}"
        warning_text = " (computed from private data: do not publish)" if dataset.is_private else ""
        list_sentence = f"Your list names {named_text} of the {items_text}{warning_text}."
    if not dataset.is_private:
        return list_sentence
    return (
        f"Names in your private rows are not shown, as one user alone may have written them. {list_sentence}"
    )


def _store_item_names(uploader: Uploader, new_files: list[UploadedFile]) -> None:
    """Store the list of names in the first new file, or the problems for which it is refused, and drop the files."""
    try:
        st.session_state[keys.ITEM_NAMES] = read_names(new_files[0].getvalue())
        uploader.store_problems(())
    except Exception as error:  # Whatever it is, the page stays usable.
        uploader.store_problems(describe_error(error), [new_files[0].name])
    uploader.drop_files(new_files)
