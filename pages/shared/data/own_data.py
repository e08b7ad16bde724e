"""What pages share that have data of their own: which data these are, and the line that says how far their work is."""

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


def read(
    upload: TableUpload,
    sources: Mapping[Any, Callable[[], Any]],
    generated: Any,
    model: str,
    generator_fields: Sequence[str],
    sizes: Callable[[Dataset], str],
) -> Any | None:
    """Say which data are used, and offer others. None, with a sentence on the page, where there are none.

    Args:
        upload: Of the page; its question has the field ``source``.
        sources: What each source gives; the last one is the upload.
        generated: The source whose fields are shown.
        model: What the data are generated from, a sentence.
        generator_fields: These fields.
        sizes: How many users or rows there are, in words.
    """
    of = upload.of
    with st.container(horizontal=True, vertical_alignment="center", key=f"{of.name}_data"):
        said = st.container(width="content")
        with st.popover("Other data", icon=":material/table:", key=f"{of.name}_settings"):
            source = fields.draw(of, "source")
            if source is generated:
                st.markdown(model)
                with st.grid(2):
                    fields.draw_all(of, *generator_fields)
            elif source is list(sources)[-1] and st.session_state.get(of.key("loaded")) is not None:
                upload.show_uploader()
    loaded = sources[source]()
    if loaded is not None:
        data: Dataset = loaded.dataset
        said.markdown(f"Data of this page: **{plain(data.name)}**, {sizes(data)}")
    return loaded


def uploaded(upload: TableUpload) -> Any | None:
    """Return the page's own table; None, with the way to one, where there is none."""
    loaded = st.session_state.get(upload.of.key("loaded"))
    if loaded is None:
        upload.show_uploader()
    upload.show_choices()
    if loaded is not None:
        for note in loaded.dataset.notes:
            st.caption(plain(note, 600))
    elif not upload.waits() and not demo.is_served():
        st.caption(
            "For example a table of ratings: who was rated, the rating, and what is known of each. A link "
            "does not carry uploaded data."
        )
    return loaded


def state_line(place: DeltaGenerator, of: Question) -> DeltaGenerator:
    """Return the place in which the page says how far its work is, as high with a button as without."""
    return place.container(
        horizontal=True,
        vertical_alignment="center",
        height=STATE_HEIGHT,
        border=False,
        key=f"{of.name}_state",
    )
