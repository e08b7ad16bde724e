"""The inputs of a question in their places, and the range of its values."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from dpcore.answer.axes import RANGE_SOURCE, OutsideCounts
from dpcore.common.parameters import FieldOrigin, Place, list_unused
from dpcore.dataset import Dataset, Values
from pages.shared.base import catalogue
from pages.shared.base.cache import cached
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout
from pages.shared.session import session


def ask(dataset: Dataset, ends: Mapping[str, str], noun: str = "value") -> bool:
    """Ask for the range of private values if nobody has entered one; return True if it asks.

    A range read off private values would leak, and one that nobody chose would clamp them silently and stand in
    programs. A release may have emptied the fields: `session.explain_cleared` then says why.

    Args:
        dataset: The data in use.
        ends: What each end is called in a sentence, by session key.
        noun: The name of a value.
    """
    empty_names = [name for key, name in ends.items() if st.session_state.get(key) is None]
    is_cleared_release = dataset.release is not None and not any(session.is_cleared(key) for key in ends)
    if not empty_names or not (dataset.is_private or is_cleared_release):
        return False
    st.info(
        f"**What range can a {noun} have?** Enter {' and '.join(empty_names)}, {RANGE_SOURCE} Do not read "
        f"{'it' if len(empty_names) == 1 else 'them'} off the data, which are private. The answer follows.",
        icon=":material/straighten:",
    )
    offer_draw(dataset)
    return True


def offer_draw(dataset: Dataset) -> None:
    """Draw the button that leads to a private draw of the range, if the data are private and have values."""
    if (drawing := catalogue.DRAWING) is not None:
        importlib.import_module(f"pages.{drawing.name}.on_card").offer_range(dataset)


def warn(dataset: Dataset, outside: OutsideCounts | None, consequence: str) -> None:
    """Warn if many values lie outside the range, with a label if the data are private.

    Args:
        dataset: The data in use.
        outside: Counts of values outside; None if there are no values or no range.
        consequence: What follows and what to do; goes on from the share of values.
    """
    if outside is None or not outside.exceeds_warning:
        return
    st.warning(f"{outside.percent} of the values {consequence}", icon=":material/warning:")
    if dataset.is_private:
        cards.label(dataset.provenance)


@cached(max_entries=8)
def count_outside(digest: str, lower: float, upper: float, _values: Values) -> OutsideCounts:
    """Return the number of values outside [lower, upper]."""
    values = _values.values
    return OutsideCounts(int((values < lower).sum()), int((values > upper).sum()), values.size)


def read_inputs(
    question: Question,
    slots: layout.PageSlots,
    *,
    options: Mapping[str, Sequence[Any]] | None = None,
    hidden: Callable[[str], bool] = lambda name: False,
    widgets: Mapping[str, Callable[[], object]] | None = None,
    draw_more: Callable[[], object] = lambda: None,
    ask_first: Callable[[Collection[str]], bool] = lambda unused: False,
    shares: bool = True,
    columns: int = 1,
) -> Any | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused.

    Args:
        question: The question, whose parameters class declares its fields.
        slots: The containers of the page.
        options: The choices that a field offers for these data; the first one replaces a choice that is not offered.
        hidden: Returns True for a field that is not drawn here. It is left out if it is empty, or None by default.
        widgets: Draws a field in place of its own widget.
        draw_more: Draws what stands below the fields of *More settings*.
        ask_first: Given the fields that do not apply, returns True if it asks for something that the answer needs.
        shares: False if the page shows other data than those in use, so that it does not take up their settings.
        columns: How many fields of *More settings* stand beside each other.
    """
    assert question.parameters is not None
    options, widgets = options or {}, widgets or {}
    unused = start(question, options, shares)
    hidden_names = {name for name in question.fields if hidden(name)}
    drawn = [name for name in question.fields if name not in unused and name not in hidden_names]

    def draw(position: Place) -> None:
        names = [name for name in drawn if question.fields[name].place is position]
        fields.draw_all(question, *names, options=options, widgets=widgets)

    with slots.line:
        draw(Place.LINE)
    if any(field.place is Place.MORE for field in question.fields.values()):
        with slots.more_settings(f"{question.name}_more"):
            with st.grid(columns) if columns > 1 else st.container():
                draw(Place.MORE)
            draw_more()
    with slots.notes:
        if ask_first(unused):
            return None
        # A refused field that stands elsewhere leaves the answer standing.
        optional_places = Place.OWN, Place.CARD, Place.TAB
        optional = [name for name, field in question.fields.items() if field.place in optional_places]
        unused += [
            f.name
            for f in dataclasses.fields(question.parameters)
            if f.name in hidden_names and None in (f.default, st.session_state[question.widgets[f.name]])
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
        key = question.widgets[name]
        if st.session_state[key] not in choices:
            st.session_state[key] = choices[0]
    unused = unused_fields(question)
    empty_names = [
        name
        for name, field in question.fields.items()
        if (name in unused or field.slider) and field.origin is not FieldOrigin.VALUES
        if st.session_state[question.widgets[name]] is None
    ]
    if empty_names:
        fields.refill(question, *empty_names)
    return unused


def unused_fields(question: Question) -> list[str]:
    """Return the fields that do not go with the present choices; a choice that is unused itself has its default."""
    values = {name: st.session_state[question.widgets[name]] for name in question.fields}
    return list_unused(question.declared, values, question.first)
