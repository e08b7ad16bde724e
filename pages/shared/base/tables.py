"""Tables of results, as all pages draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

MISSING = "–"
"""What stands in a cell that holds nothing."""


def show(
    columns: Any,
    alt: str,
    key: str | None = None,
    formats: Mapping[str, str | tuple[str, str]] | None = None,
    titles: Mapping[str, str] | None = None,
    **args: Any,
) -> None:
    """Draw a table without its index.

    Args:
        columns: Column name to values, or a frame.
        alt: What it shows, for a screen reader.
        key: Unique on the page; None for none.
        formats: How Streamlit is to write the numbers of a column, by its name; or that and a help at its head.
        titles: What stands at the head of a column of numbers, by its name, where that is not the name.
        args: Further arguments of `st.dataframe`.
    """
    config = {}
    for name, column_format in (formats or {}).items():
        pattern, help = (column_format, None) if isinstance(column_format, str) else column_format
        config[name] = st.column_config.NumberColumn((titles or {}).get(name), format=pattern, help=help)
    st.dataframe(
        columns,
        hide_index=True,
        key=key,
        column_config=config or None,
        alt=alt,
        placeholder=MISSING,
        **args,
    )
