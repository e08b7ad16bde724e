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
from pages.shared.base.question import From, Question
from pages.shared.fields import setting
from pages.shared.figures import pins


@dataclass(frozen=True)
class Before:
    """A session as it was before the tour.

    Attributes:
        loaded: The data in use, a `pages.shared.session.session.Loaded`.
        epsilon: The shared epsilon; None where its field was empty.
        entered: What fields held, and what was chosen beside them, by session key.
        pinned: What was pinned.
        named_only: Whether an address named the data: the settings from before, and data of a file, are gone.
    """

    loaded: Any
    epsilon: float | None
    entered: Mapping[str, Any] = field(default_factory=dict)
    pinned: tuple[pins.Pin, ...] = ()
    named_only: bool = False


@dataclass(frozen=True)
class Tour:
    """Where the tour is.

    Attributes:
        number: Of its step, from 1.
        before: What returns at its end.
        asked: Whether the answer was asked for, in place of moving what the question is about.
    """

    number: int
    before: Before
    asked: bool = False


def tour() -> Tour | None:
    """The tour that is on; None without one."""
    touring: Tour | None = st.session_state.get(keys.TOUR)
    return touring


def take(loaded: Any) -> Before:
    """Put everything aside: every question begins as in a new session. The data in use are for the caller to change.

    Args:
        loaded: The data in use.
    """
    state = st.session_state
    before = Before(
        loaded,
        state.get(keys.EPSILON),
        {
            setting.ENTERED: state.get(setting.ENTERED, {}),
            **{key: state[key] for question in catalogue.PAGES for key in entered(question, state)},
        },
        pins.all_pins(),
    )
    _clear_all()
    pins.keep(())
    return before


def put_back(before: Before) -> None:
    """Everything but the data in use as it was before; what was pinned meanwhile stays, too.

    To be called before any widget that it sets.
    """
    state = st.session_state
    _clear_all()
    for key, value in before.entered.items():
        state[key] = value
    setting.begin()
    state[keys.EPSILON] = before.epsilon
    state[keys.EPSILON_PAGE] = None  # The widgets of the page where ε stood last take it up, too.
    pins.keep(pins.joined(before.pinned, pins.all_pins()))


def clear(of: Question) -> None:
    """Let a question begin as in a new session."""
    for key in list(entered(of, st.session_state)):
        name = key.partition(".")[2]
        if name in of.fields:
            st.session_state[key] = of.first(name)
        else:
            del st.session_state[key]


def _clear_all() -> None:
    setting.forget()
    for question in catalogue.PAGES:
        clear(question)


def entered(of: Question, state: Mapping[Any, Any]) -> Iterator[str]:
    """Session keys, of those that hold something, of what a person entered or chose, and of what was proposed to them.

    Not of what belongs to data or a file that the page has for itself, which no tour touches, nor of work beside the
    page, which knows the data that it is about.
    """
    if of.own_data or of.parameters is None:
        return
    for name in (*of.fields, *of.also):
        key = of.key(name)
        if key not in state or of.comes_from(name) is From.OWN_DATA:
            continue
        if name in of.fields or isinstance(state[key], str | float | tuple | enum.Enum):
            yield key
