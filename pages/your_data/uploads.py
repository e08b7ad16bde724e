"""Uploaded files, once they have been read: Streamlit would hold their bytes until the session ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def drop(files: Sequence[UploadedFile]) -> None:
    """Free the bytes of files whose uploader is not drawn again; Streamlit's chat input drops its files so."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in files:
            context.uploaded_file_mgr.remove_file(session_id=context.session_id, file_id=file.file_id)
