"""What a person has entered and pinned, put aside while the tour shows data of its own, and put back after it.

What was released of any data stays where it is: accounts only grow, before, during and after a tour.
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
class Before:
    """A session as it was before the tour.

    Attributes:
        loaded: The data in use, a `pages.shared.session.session.Loaded`.
        epsilon: The shared epsilon; None where its field was empty.
        settings: What fields held, and what was chosen beside them, by session key.
        pinned: What was pinned.
        named_only: Whether an address named the data: the settings from before, and data of a file, are gone.
    """

    loaded: Any
    epsilon: float | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    pinned: tuple[pins.Pin, ...] = ()
    named_only: bool = False


@dataclass(frozen=True)
class Tour:
    """Where the tour is.

    Attributes:
        number: Of its step, from 1.
        saved_state: What returns at its end.
        is_answer_requested: Whether the answer was asked for, in place of moving what the question is about.
    """

    number: int
    saved_state: Before
    is_answer_requested: bool = False


def tour() -> Tour | None:
    """Return the tour that is on; None without one."""
    touring: Tour | None = st.session_state.get(keys.TOUR)
    return touring


def take(loaded: Any) -> Before:
    """Put everything aside: every question begins as in a new session. The data in use are for the caller to change.

    Args:
        loaded: The data in use.
    """
    state = st.session_state
    saved_state = Before(
        loaded,
        state.get(keys.EPSILON),
        {
            setting.ENTERED: state.get(setting.ENTERED, {}),
            **{key: state[key] for question in catalogue.PAGES for key in list_entered_keys(question, state)},
        },
        pins.all_pins(),
    )
    _clear_all()
    pins.keep(())
    return saved_state


def put_back(saved_state: Before) -> None:
    """Everything but the data in use as it was before; what was pinned meanwhile stays, too.

    To be called before any widget that it sets.
    """
    state = st.session_state
    _clear_all()
    for key, value in saved_state.settings.items():
        state[key] = value
    setting.begin()
    state[keys.EPSILON] = saved_state.epsilon
    state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
    pins.keep(pins.joined(saved_state.pinned, pins.all_pins()))


def clear(question: Question) -> None:
    """Let a question begin as in a new session."""
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
    """Session keys, of those that hold something, of what a person entered or chose, and of what was proposed to them.

    Not of what belongs to data or a file that the page has for itself, which no tour touches, nor of work beside the
    page, which knows the data that it is about.
    """
    if question.own_data or question.parameters is None:
        return
    for name in (*question.fields, *question.also):
        key = question.key(name)
        if key not in state or question.comes_from(name) is FieldOrigin.OWN_DATA:
            continue
        if name in question.fields or isinstance(state[key], str | float | tuple | enum.Enum):
            yield key
