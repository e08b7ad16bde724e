"""The way from a figure or an item to the page and the tab that it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.papers.question import QUESTION
from pages.shared.base import catalogue, keys

Place = tuple[str, str]
"""Title of a page, and a tab of it; empty for the first screen."""


def go(page: str, tab: str) -> None:
    """Open the page at that tab."""
    there = catalogue.page(page)
    if tab:
        st.session_state[there.key("tabs")] = tab
    st.session_state[keys.TOUR_GOES_TO] = there.path


def column(name: str, places: Sequence[Place | None]) -> Any:
    """Return a column of buttons for a table, one for each place; ``name`` sets two tables apart."""
    key = QUESTION.key(f"open_{name}")
    return st.column_config.ButtonColumn(
        "Open", type="tertiary", alignment="left", key=key, on_click=_pressed, args=(key, tuple(places))
    )


def labels(places: Sequence[Place | None]) -> list[str | None]:
    """Return what the buttons say; None for no button."""
    return [None if place is None else ", ".join(filter(None, place)) for place in places]


def _pressed(key: str, places: tuple[Place | None, ...]) -> None:
    click = st.session_state.get(key)
    if click is not None and (place := places[click["row"]]) is not None:
        go(*place)
