"""Buttons that lead from a figure or an item to its page and tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.papers.question import QUESTION
from pages.shared.base import catalogue, keys

Destination = tuple[str, str]
"""Title of a page, and a tab of it; empty for the first screen."""


def open_page(page: str, tab: str) -> None:
    """Open the page at that tab."""
    question = catalogue.page(page)
    if tab:
        st.session_state[question.key("tabs")] = tab
    st.session_state[keys.TOUR_GOES_TO] = question.path


def build_column(name: str, destinations: Sequence[Destination | None]) -> Any:
    """Return a column of buttons for a table, one for each destination; ``name`` makes its key unique."""
    key = QUESTION.key(f"open_{name}")
    return st.column_config.ButtonColumn(
        "Open",
        type="tertiary",
        alignment="left",
        key=key,
        on_click=_open_pressed,
        args=(key, tuple(destinations)),
    )


def list_labels(destinations: Sequence[Destination | None]) -> list[str | None]:
    """Return the labels of the buttons; None for no button."""
    return [
        None if destination is None else ", ".join(filter(None, destination)) for destination in destinations
    ]


def _open_pressed(key: str, destinations: tuple[Destination | None, ...]) -> None:
    click = st.session_state.get(key)
    if click is not None and (destination := destinations[click["row"]]) is not None:
        open_page(*destination)
