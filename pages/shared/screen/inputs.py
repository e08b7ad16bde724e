"""A question's inputs: the widgets of its fields in their places, and the parameters that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import streamlit as st

from dpcore.common.parameters import FieldOrigin, Place, applies
from pages.shared.base.question import Question
from pages.shared.fields import fields
from pages.shared.screen import layout


def read(
    question: Question,
    places: layout.Places,
    *,
    options: Mapping[str, tuple[Any, ...]] | None = None,
    hidden: Callable[[str], bool] = lambda name: False,
    widgets: Mapping[str, Callable[[], object]] | None = None,
    more: Callable[[], object] = lambda: None,
    ask_first: Callable[[Collection[str]], bool] = lambda unused: False,
) -> Any | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused.

    Args:
        question: The question, whose parameters class declares its fields.
        places: Where the page draws.
        options: The choices that a field offers for these data; the first one replaces a choice that is not offered.
        hidden: Returns True for a field that has no use now. It is left out if it is None by default.
        widgets: Draws a field in place of its own widget.
        more: Draws what stands below the fields of *More settings*.
        ask_first: Given the fields that do not apply, returns True if it asks for something that the answer needs.
    """
    assert question.parameters is not None
    fields.start(question)
    options, widgets = options or {}, widgets or {}
    for name, choices in options.items():
        if _value(question, name) not in choices:
            st.session_state[question.key(name)] = choices[0]
    unused = start(question)

    def draw(place: Place) -> None:
        for name in question.placed(place):
            if name in unused or hidden(name):
                continue
            if name in widgets:
                widgets[name]()
            else:
                enabled = _applies(question, question.fields[name].enabled_with)
                fields.draw(question, name, options=options.get(name), disabled=not enabled)

    with places.line:
        draw(Place.LINE)
    if question.placed(Place.MORE):
        with places.more(f"{question.name}_more"):
            draw(Place.MORE)
            more()
    with places.notes:
        if ask_first(unused):
            return None
        # A refused field that stands elsewhere leaves the answer standing.
        aside = question.placed(Place.OWN, Place.CARD, Place.TAB)
        unused += [
            f.name for f in dataclasses.fields(question.parameters) if f.default is None and hidden(f.name)
        ]
        return fields.build(question, unused=unused, optional=aside)


def start(question: Question) -> list[str]:
    """Set initial values, and return the names of fields that do not apply to the present choices.

    Fields that a link of another choice left empty are filled, and so are sliders, which cannot be empty. A field that
    may have been read off values stays empty: a default would look like a choice that somebody made.
    """
    fields.start(question)
    unused = unused_fields(question)
    for name, field in question.fields.items():
        if (name in unused or field.slider) and field.origin is not FieldOrigin.VALUES:
            fields.refill(question, name)
    return unused


def unused_fields(question: Question) -> list[str]:
    """Return the names of fields that do not apply to the present choices."""
    return [name for name, field in question.fields.items() if not _applies(question, field.only_with)]


def _value(question: Question, name: str) -> Any:
    return st.session_state[question.widgets[name]]


def _applies(question: Question, rule: tuple[str, Collection[Any]] | None) -> bool:
    """Return True if a rule on other fields holds, or if there is none."""
    return applies(rule, lambda name: _value(question, name))
