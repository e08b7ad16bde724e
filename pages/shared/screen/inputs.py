"""A question's inputs: the widgets of its fields in their places, and the parameters that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
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
    options: Mapping[str, Sequence[Any]] | None = None,
    hidden: Callable[[str], bool] = lambda name: False,
    widgets: Mapping[str, Callable[[], object]] | None = None,
    more: Callable[[], object] = lambda: None,
    ask_first: Callable[[Collection[str]], bool] = lambda unused: False,
    shares: bool = True,
) -> Any | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused.

    Args:
        question: The question, whose parameters class declares its fields.
        places: Where the page draws.
        options: The choices that a field offers for these data; the first one replaces a choice that is not offered.
        hidden: Returns True for a field that is not drawn here. It is left out if it is empty, or None by default.
        widgets: Draws a field in place of its own widget.
        more: Draws what stands below the fields of *More settings*.
        ask_first: Given the fields that do not apply, returns True if it asks for something that the answer needs.
        shares: False if the page shows other data than those in use, so that it does not take up their settings.
    """
    assert question.parameters is not None
    options, widgets = options or {}, widgets or {}
    unused = start(question, options, shares)

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
        optional = question.placed(Place.OWN, Place.CARD, Place.TAB)
        unused += [
            f.name
            for f in dataclasses.fields(question.parameters)
            if hidden(f.name) and None in (f.default, _value(question, f.name))
        ]
        # Not the default, which may be another value than the field begins with.
        overrides = {
            f.name: question.first(f.name)
            for f in dataclasses.fields(question.parameters)
            if f.name in unused and f.default is not None
        }
        return fields.build(question, unused=unused, overrides=overrides, optional=optional)


def start(
    question: Question, options: Mapping[str, Sequence[Any]] | None = None, shares: bool = True
) -> list[str]:
    """Set what the fields begin with; return those that do not go with the present choices.

    Fields that a link of another choice left empty are filled, and so are sliders, which cannot be empty. A value
    that may have been read off values stays empty: a default would look like a choice that somebody made. The arguments
    are those of `read`.
    """
    fields.start(question, shares)
    for name, choices in (options or {}).items():
        if _value(question, name) not in choices:
            st.session_state[question.key(name)] = choices[0]
    unused = unused_fields(question)
    for name, field in question.fields.items():
        if (name in unused or field.slider) and field.origin is not FieldOrigin.VALUES:
            fields.refill(question, name)
    return unused


def unused_fields(question: Question) -> list[str]:
    """Return the fields that do not go with the present choices; a choice that is unused itself has its default."""

    def choice(name: str) -> Any:
        if applies(question.declared[name].only_with, choice):
            return _value(question, name)
        return question.first(name)

    return [name for name, field in question.fields.items() if not applies(field.only_with, choice)]


def _value(question: Question, name: str) -> Any:
    return st.session_state[question.widgets[name]]


def _applies(question: Question, rule: tuple[str, Collection[Any]] | None) -> bool:
    return applies(rule, lambda name: _value(question, name))
