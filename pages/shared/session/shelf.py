"""Puts aside what a person entered and pinned while the tour shows data of its own, and restores it after the tour.

Ledgers of releases stay where they are: they only grow, before, during and after a tour.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.shared.base import catalogue, keys
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.fields import setting
from pages.shared.figures import pins


@dataclass(frozen=True)
class SavedState:
    """A session as it was before the tour.

    Attributes:
        loaded_data: The data in use, a `pages.shared.session.session.LoadedData`.
        epsilon: The shared epsilon; None if its field was empty.
        settings: Values of fields, and choices beside them, by session key.
        pinned: Pins.
        named_only: True if only an address named the data: the settings from before, and data of a file, are lost.
    """

    loaded_data: Any
    epsilon: float | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    pinned: tuple[pins.Pin, ...] = ()
    named_only: bool = False


@dataclass(frozen=True)
class Tour:
    """The state of the tour.

    Attributes:
        number: Number of its step, from 1.
        saved_state: What returns at its end.
        is_answer_requested: True if a person asked for the answer without moving anything.
    """

    number: int
    saved_state: SavedState
    is_answer_requested: bool = False


def get_tour() -> Tour | None:
    """Return the tour that is on; None without one."""
    tour: Tour | None = st.session_state.get(keys.TOUR)
    return tour


def put_aside(loaded_data: Any) -> SavedState:
    """Reset every question and return what was there. The caller changes the data in use.

    Args:
        loaded_data: The data in use.
    """
    state = st.session_state
    saved_state = SavedState(
        loaded_data,
        state.get(keys.EPSILON),
        {
            setting.ENTRIES_KEY: state.get(setting.ENTRIES_KEY, {}),
            **{key: state[key] for question in catalogue.PAGES for key in list_entered_keys(question, state)},
        },
        pins.all_pins(),
    )
    _clear_all()
    pins.store_pins(())
    return saved_state


def put_back(saved_state: SavedState) -> None:
    """Restore everything but the data in use; pins made meanwhile stay, too.

    Call it before any widget that it sets.
    """
    state = st.session_state
    _clear_all()
    for key, value in saved_state.settings.items():
        state[key] = value
    setting.note_proposals()
    state[keys.EPSILON] = saved_state.epsilon
    state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
    pins.store_pins(pins.merge_pins(saved_state.pinned, pins.all_pins()))


def clear(question: Question) -> None:
    """Reset a question to its state in a new session."""
    for key in list(list_entered_keys(question, st.session_state)):
        name = key.partition(".")[2]
        if name in question.fields:
            st.session_state[key] = question.first(name)
        else:
            del st.session_state[key]


def _clear_all() -> None:
    setting.forget()
    for question in catalogue.PAGES:
        clear(question)


def list_entered_keys(question: Question, state: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the session keys of what a person entered or chose, and of what was proposed to them.

    It leaves out data or files that a page has for itself, which no tour touches, and work beside the page, which knows
    the data that it is about.
    """
    if question.own_data or question.parameters is None:
        return
    for name in (*question.fields, *question.also):
        key = question.key(name)
        if key not in state or question.comes_from(name) is FieldOrigin.OWN_DATA:
            continue
        if name in question.fields or isinstance(state[key], str | float | tuple | enum.Enum):
            yield key
