"""The button behind which a file to take away lies; the name of the file says what its numbers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from dpcore.common.privacy import Provenance
from pages.shared.figures import figures

MIMES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
}


def draw(
    label: str,
    name: str,
    disclosure: Provenance,
    content: str | Callable[[], str | bytes],
    *,
    key: str = "",
    quiet: bool = False,
    help: str | None = None,
) -> None:
    """Draw it. The file is made when the button is pressed, without a rerun.

    Args:
        label: On the button.
        name: Of the file, with one of the endings in `MIMES`.
        disclosure: Of the data behind the file; it goes into the name.
        content: The file, or what makes it.
        key: Of the widget; by default the name without its ending, and ``_file``.
        quiet: Draw it as text.
        help: What the file is good for.
    """
    stem, _, ending = name.rpartition(".")
    st.download_button(
        label,
        content,
        file_name=f"{figures.file_name(stem, disclosure)}.{ending}",
        mime=MIMES[ending],
        key=key or f"{stem}_file",
        on_click="ignore",
        type="tertiary" if quiet else "secondary",
        icon=":material/download:",
        help=help,
    )


def draw_row(files: Iterable[tuple[str, str, Callable[[], str | bytes]]], disclosure: Provenance) -> None:
    """Several beside each other: label, name and content of each."""
    with st.container(horizontal=True):
        for label, name, content in files:
            draw(label, name, disclosure, content)
