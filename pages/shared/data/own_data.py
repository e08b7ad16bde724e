"""Parts of pages that have data of their own: the choice of the data, and the line that shows how far the work is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from pages.shared.base import demo
from pages.shared.base.question import Question
from pages.shared.data.table_upload import TableUpload
from pages.shared.fields import fields

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

STATE_HEIGHT = 56
"""Height in pixels of the line that says how far the work is: with a button or without, the tabs below it stay."""


def choose_data(
    upload: TableUpload,
    sources: Mapping[Any, Callable[[], Any]],
    generator_source: Any,
    model: str,
    generator_fields: Sequence[str],
    describe_size: Callable[[Dataset], str],
) -> Any | None:
    """Show which data the page uses and offer others; return the data, or None if there are none yet.

    Args:
        upload: Of the page; its question has the field ``source``.
        sources: Loads the data of each source; the last one is the upload.
        generator_source: The source whose fields are shown.
        model: What the data are generated from, a sentence.
        generator_fields: These fields.
        describe_size: Writes how many users or rows there are.
    """
    question = upload.question
    with st.container(horizontal=True, vertical_alignment="center", key=f"{question.name}_data"):
        summary = st.container(width="content")
        with st.popover("Other data", icon=":material/table:", key=f"{question.name}_settings"):
            source = fields.draw(question, "source")
            if source is generator_source:
                st.markdown(model)
                with st.grid(2):
                    fields.draw_all(question, *generator_fields)
            elif source is list(sources)[-1] and st.session_state.get(question.key("loaded")) is not None:
                upload.show_uploader()
    entry = sources[source]()
    if entry is not None:
        data: Dataset = entry.dataset
        summary.markdown(f"Data of this page: **{plain(data.name)}**, {describe_size(data)}")
    return entry


def show_upload(upload: TableUpload) -> Any | None:
    """Return the page's own table; if there is none, show the uploader and return None."""
    entry = st.session_state.get(upload.question.key("loaded"))
    if entry is None:
        upload.show_uploader()
    upload.show_choices()
    if entry is not None:
        for note in entry.dataset.notes:
            st.caption(plain(note, 600))
    elif not upload.is_waiting() and not demo.is_served():
        st.caption(
            "For example a table of ratings: who was rated, the rating, and what is known of each. A link "
            "does not carry uploaded data."
        )
    return entry


def state_line(container: DeltaGenerator, question: Question) -> DeltaGenerator:
    """Return a container for the line on the state of the work; a button in it does not change its height."""
    return container.container(
        horizontal=True,
        vertical_alignment="center",
        height=STATE_HEIGHT,
        border=False,
        key=f"{question.name}_state",
    )
