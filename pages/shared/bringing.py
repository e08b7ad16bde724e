"""What every page shares that takes files: whether it may, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpcore.data.column_names import harmless
from dpcore.data.tables import Table

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def say_served() -> None:
    """Say that a public demo takes no data."""
    st.info(
        "This is a public demo: uploads and paths are switched off, so that nobody's data come here. Samples "
        "and generators work as usual. To use data of your own, run Sweet Spot on your computer.",
        icon=":material/cloud_off:",
    )


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
