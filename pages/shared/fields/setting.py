"""The setting of a release: what a person enters once, and every page that has a field for it takes up.

Fields of several pages that mean the same, the range of a value, say, name one piece of the setting (`Field.shared`).
Each page keeps a field of its own: links, session files and the tour set it as ever. What a person changes on one page
becomes the piece, and the other pages take it up when they are shown next. What data propose is no entry: each page has
its own proposal for the same data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from pages.shared.base import catalogue
from pages.shared.base.question import Question

ENTERED, SEEN = "release_setting", "release_setting_seen"
"""Keys of the session: what was entered, by piece, and what each field held when it was last looked at, by its key.

Neither is among the keys that outlive a private copy: both may hold what was read off values.
"""
DEFAULT_EPSILON = 1.0
_NEVER, _CLEARED = "never looked at", "cleared by a person"


def begin() -> None:
    """Take what all fields hold for proposed; to be called once data came into use and their proposals are made.

    An entry that no page holds any more was proposed anew on all of them, as what may be read of private values is.
    """
    now: dict[str, set[Any]] = {}
    seen = {}
    for of in catalogue.PAGES:
        for piece, key in _pieces(of).items():
            seen[key] = st.session_state.get(key)
            now.setdefault(piece, set()).add(seen[key])
    st.session_state[SEEN] = seen
    st.session_state[ENTERED] = {
        piece: value for piece, value in _held(ENTERED).items() if value in now.get(piece, ())
    }


def forget(pieces: Collection[str] | None = None) -> None:
    """Drop what was entered of these pieces, or of all."""
    held = {} if pieces is None else _held(ENTERED)
    st.session_state[ENTERED] = {piece: value for piece, value in held.items() if piece not in (pieces or ())}


def follow(of: Question) -> None:
    """Publish what was entered on this page, and take up what was entered on others; before any widget of the page."""
    entered, seen = dict(_held(ENTERED)), dict(_held(SEEN))
    for piece, key in _pieces(of).items():
        value = st.session_state.get(key)
        if seen.get(key) == _CLEARED and value is None:
            continue
        if seen.get(key, _NEVER) not in (value, _NEVER):
            if value is None:  # It stays empty here; the other pages keep what they have.
                value = _CLEARED
            else:
                entered[piece] = value
        elif piece in entered and _fits(of, piece, entered[piece]):
            value = st.session_state[key] = entered[piece]
        seen[key] = value
    st.session_state[ENTERED], st.session_state[SEEN] = entered, seen


def enter(pieces: Mapping[str, Any]) -> None:
    """Enter pieces for all pages at once, those too where a person had cleared the field."""
    entered, seen = {**_held(ENTERED), **pieces}, dict(_held(SEEN))
    for of in catalogue.PAGES:
        for piece, key in _pieces(of).items():
            if piece in pieces:
                seen[key] = st.session_state.get(key)
    st.session_state[ENTERED], st.session_state[SEEN] = entered, seen


def held(of: Question, name: str) -> Any:
    """Return what a field holds, or will hold once its page is shown: for other pages that need it."""
    piece, key = of.fields[name].shared, of.widgets[name]
    value = st.session_state.get(key)
    changed = _held(SEEN).get(key, _NEVER) not in (value, _NEVER)
    return value if changed else _held(ENTERED).get(piece, value)


def _pieces(of: Question) -> dict[str, str]:
    return {field.shared: of.widgets[name] for name, field in of.fields.items() if field.shared}


def _fits(of: Question, piece: str, value: Any) -> bool:
    """Return whether the page's field takes this: its list may have fewer choices."""
    options = next(field.options for field in of.fields.values() if field.shared == piece)
    return options is None or value in options


def _held(key: str) -> Mapping[str, Any]:
    shared: Mapping[str, Any] = st.session_state.get(key, {})
    return shared
