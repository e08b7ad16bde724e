"""Tabs of which only the open one is drawn: what stands behind the others costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from pages.shared.base import page_run


def draw(contents: Mapping[str, Callable[[], object]], key: str) -> None:
    """Draw the tabs and what the open one holds, under the session key ``key``.

    The first ones of a page are its own; those of the machinery stand among them.
    """
    if (run := page_run.now()) is not None:
        contents = run.with_tabs(contents)
    tabs = st.tabs(list(contents), key=key, on_change="rerun")
    for tab, content in zip(tabs, contents.values(), strict=True):
        if tab.open:
            with tab:
                content()
