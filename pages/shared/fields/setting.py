"""The setting of a release: values that a person enters once and that every page with a field for them takes over.

Fields on several pages with the same meaning, such as the range of a value, name one piece of the setting
(`Field.shared`). Each page still has its own field, which links, session files and the tour set as usual. A value that
a person changes on one page becomes the piece's entry, and the other pages take it over when they are next shown. A
value proposed from data is no entry: each page makes its own proposal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from pages.shared.base import catalogue
from pages.shared.base.question import Question

ENTRIES_KEY, LAST_VALUES_KEY = "release_setting", "release_setting_seen"
"""Keys of the session: what was entered, by piece, and what each field held when it was last looked at, by its key.

A release of private data removes both: they may hold what was read off values.
"""
DEFAULT_EPSILON = 1.0
_NEVER, _CLEARED = "never looked at", "cleared by a person"


def note_proposed_values() -> None:
    """Note what all shared fields hold as proposed, not entered; call it after new data have made their proposals.

    An entry that no page holds any more is dropped: all pages have proposed something else, as they do for private
    data.
    """
    shown_values_by_piece: dict[str, set[Any]] = {}
    last_values_by_key = {}
    for question in catalogue.QUESTION_BY_NAME.values():
        for piece, widget_key in _get_key_by_piece(question).items():
            last_values_by_key[widget_key] = st.session_state.get(widget_key)
            shown_values_by_piece.setdefault(piece, set()).add(last_values_by_key[widget_key])
    entries_by_piece = _read_mapping(ENTRIES_KEY).items()
    remaining_entries = {
        piece: entered_value
        for piece, entered_value in entries_by_piece
        if entered_value in shown_values_by_piece.get(piece, ())
    }
    st.session_state[ENTRIES_KEY], st.session_state[LAST_VALUES_KEY] = remaining_entries, last_values_by_key


def forget_entries(pieces: Collection[str] | None = None) -> None:
    """Drop the entries of these pieces, or all entries."""
    entries_by_piece = {} if pieces is None else _read_mapping(ENTRIES_KEY)
    kept_pieces = set(entries_by_piece) - set(pieces or ())
    st.session_state[ENTRIES_KEY] = {piece: entries_by_piece[piece] for piece in kept_pieces}


def exchange_values(question: Question) -> None:
    """Publish what was changed in the page's shared fields, and fill the others with entries of other pages.

    It is to be called before any widget of the page.
    """
    entries_by_piece, last_values_by_key = (
        dict(_read_mapping(ENTRIES_KEY)),
        dict(_read_mapping(LAST_VALUES_KEY)),
    )
    for piece, widget_key in _get_key_by_piece(question).items():
        field_value = st.session_state.get(widget_key)
        if last_values_by_key.get(widget_key) == _CLEARED and field_value is None:
            continue
        if last_values_by_key.get(widget_key, _NEVER) not in (field_value, _NEVER):
            if field_value is None:  # It stays empty here; the other pages keep what they have.
                field_value = _CLEARED
            else:
                entries_by_piece[piece] = field_value
        elif piece in entries_by_piece and _can_hold(question, piece, entries_by_piece[piece]):
            field_value = st.session_state[widget_key] = entries_by_piece[piece]
        last_values_by_key[widget_key] = field_value
    st.session_state[ENTRIES_KEY], st.session_state[LAST_VALUES_KEY] = entries_by_piece, last_values_by_key


def enter_values(values_by_piece: Mapping[str, Any]) -> None:
    """Enter values for all pages, also for fields that a person had cleared."""
    entries_by_piece = {**_read_mapping(ENTRIES_KEY), **values_by_piece}
    last_values_by_key = dict(_read_mapping(LAST_VALUES_KEY))
    for question in catalogue.QUESTION_BY_NAME.values():
        for piece, widget_key in _get_key_by_piece(question).items():
            if piece in values_by_piece:
                last_values_by_key[widget_key] = st.session_state.get(widget_key)
    st.session_state[ENTRIES_KEY], st.session_state[LAST_VALUES_KEY] = entries_by_piece, last_values_by_key


def read_value(question: Question, field_name: str) -> Any:
    """Return the value that a field gets once its page is shown: changed there, entered elsewhere, or as it is."""
    piece, widget_key = question.fields[field_name].shared, question.widget_keys[field_name]
    present_value = st.session_state.get(widget_key)
    is_changed = _read_mapping(LAST_VALUES_KEY).get(widget_key, _NEVER) not in (present_value, _NEVER)
    return present_value if is_changed else _read_mapping(ENTRIES_KEY).get(piece, present_value)


def _get_key_by_piece(question: Question) -> dict[str, str]:
    """Return the page's session key of each shared piece."""
    return {
        field.shared: question.widget_keys[field_name]
        for field_name, field in question.fields.items()
        if field.shared
    }


def _can_hold(question: Question, piece: str, value: Any) -> bool:
    """Return True if the page's field can hold the value: its list may have fewer options."""
    options = next(field.options for field in question.fields.values() if field.shared == piece)
    return options is None or value in options


def _read_mapping(session_key: str) -> Mapping[str, Any]:
    """Return the mapping under a session key; empty if there is none."""
    mapping: Mapping[str, Any] = st.session_state.get(session_key, {})
    return mapping
