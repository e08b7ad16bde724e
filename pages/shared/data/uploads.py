"""What every page shares that takes files: whether it may, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dpcore.data.column_names import harmless
from dpcore.data.tables import Table


def say_served() -> None:
    """Say that a public demo takes no data."""
    st.info(
        "This is a public demo: uploads and paths are switched off, so that nobody's data come here. Samples "
        "and generators work as usual. To use data of your own, run Sweet Spot on your computer.",
        icon=":material/cloud_off:",
    )


def files_of(uploader: str) -> list[UploadedFile]:
    """The files that an uploader's callback is to read; empty where it is called for files that were dropped.

    That happens: until the browser has taken the old uploader away, each of its messages, be it of a fragment that
    looks at work every 0.4 s, names the file again. Streamlit 1.67 finds a `DeletedFile` in place of the file, takes
    that for a change, and calls the callback once more. What was read the first time must then stay.
    """
    held = st.session_state.get(uploader) or []
    return [file for file in (held if isinstance(held, list) else [held]) if isinstance(file, UploadedFile)]


def drop(files: Sequence[UploadedFile]) -> None:
    """Free the bytes of files whose uploader is not drawn again; Streamlit's chat input drops its files so."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in files:
            context.uploaded_file_mgr.remove_file(session_id=context.session_id, file_id=file.file_id)


PREVIEW_ROWS = 6


def preview(head: Table) -> pd.DataFrame:
    """The first rows. The table can be downloaded from the page, so no cell may be a formula."""
    return head.frame.head(PREVIEW_ROWS).map(harmless).rename(columns=lambda name: harmless(str(name)))
