"""Pinned answers: a page's answer card, frozen with its label, for the table in the tab *Compare*.

A pin keeps the label of the data that it was made from. Links and reports hold no pins; a session file does. When a
DP release takes the place of private data, pins of private data are set aside with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from pages.shared.base import keys

MAX_PINS = 24
"""Pins that a session holds."""


@dataclass(frozen=True, eq=False)
class Pin:
    """One pinned answer.

    Attributes:
        question: Name of the question.
        name: What the person calls it.
        data: Name of the data.
        epsilon: Privacy budget; None where the question has none.
        bound: Label and value of the card's number.
        error: Label and value of its error; empty where there is none.
        rows_lost: Share of all rows that the bound leaves out; None where it is not about rows.
        half_or_double: What half and double of the bound cost, a sentence; empty where the card does not say.
        settings: (what, value) of everything else that was asked and is not as at first.
        disclosure: Of the data.
    """

    question: str
    name: str
    data: str
    epsilon: float | None
    bound: tuple[str, str]
    error: tuple[str, str]
    rows_lost: float | None
    half_or_double: str
    settings: tuple[tuple[str, str], ...]
    disclosure: Provenance


def all_pins() -> tuple[Pin, ...]:
    """Return every pin of the session, oldest first."""
    pinned: tuple[Pin, ...] = st.session_state.get(keys.PINS, ())
    return pinned


def list_pins(question: str) -> tuple[Pin, ...]:
    """Return the pins of a question."""
    return tuple(pin for pin in all_pins() if pin.question == question)


def store_pins(pins: Iterable[Pin]) -> None:
    """Make these the session's pins; beyond `MAX_PINS` the oldest are dropped."""
    st.session_state[keys.PINS] = tuple(pins)[-MAX_PINS:]


def split_private(entries: Iterable[object]) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """Return the pins of private data, and the other pins."""
    pins = [pin for pin in entries if isinstance(pin, Pin)]
    private = tuple(pin for pin in pins if pin.disclosure is Disclosure.PRIVATE)
    return private, tuple(pin for pin in pins if pin not in private)


def merge_pins(first: Iterable[Pin], added: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return the pins of both lists without repetitions, with names made unique within each question."""
    merged = list(first)
    identities = {_identify(pin) for pin in merged}
    for pin in added:
        if _identify(pin) not in identities:
            used_names = {other_pin.name for other_pin in merged if other_pin.question == pin.question}
            merged.append(replace(pin, name=_append_number(pin.name, used_names)))
            identities.add(_identify(pin))
    return tuple(merged)


def _identify(pin: Pin) -> tuple[str, ...]:
    """Return a pin's content without its name: two pins with the same content are the same answer."""
    return (pin.question, *(text for heading, text in tabulate_pin(pin).items() if heading != "Pin"))


def pin_answer(question: str) -> None:
    """Store the answer that the page offers; the next run says so, as a callback draws nothing."""
    build_pin: Callable[[], Pin | None] | None = st.session_state.get(keys.PIN_OFFERED)
    new_pin = None if build_pin is None else build_pin()
    if new_pin is None or new_pin.question != question:
        return
    store_pins((*all_pins(), replace(new_pin, name=_choose_name(new_pin))))
    st.session_state[f"{question}_pin_new"] = all_pins()[-1].name


def _choose_name(pin: Pin) -> str:
    """Return the pin's name; if another pin has it, add the first setting that differs, or a number."""
    pins_by_name = {other_pin.name: other_pin for other_pin in list_pins(pin.question)}
    if pin.name not in pins_by_name:
        return pin.name
    other_settings = dict(pins_by_name[pin.name].settings)
    changes = (f", {label} {value}" for label, value in pin.settings if other_settings.get(label) != value)
    return find_free_name(pin.question, pin.name + next(changes, ""))


def find_free_name(question: str, preferred: str) -> str:
    """Return the name, with a number added if another pin of the question has it."""
    return _append_number(preferred, {pin.name for pin in list_pins(question)})


def _append_number(preferred: str, used_names: Collection[str]) -> str:
    """Return the name, with a number in brackets if it is already used."""
    count, name = 2, preferred
    while name in used_names:
        count, name = count + 1, f"{preferred} ({count})"
    return name


def tabulate_pin(pin: Pin) -> dict[str, str]:
    """Return a pin as a table row: its texts by heading."""
    return {
        "Pin": pin.name,
        "ε": "" if pin.epsilon is None else wording.entered(pin.epsilon),
        "Bound": f"{pin.bound[1]} ({pin.bound[0].lower()})" if pin.bound[1] else "",
        "Error": f"{pin.error[1]} ({pin.error[0].lower()})" if pin.error[1] else "",
        "Rows left out": "" if pin.rows_lost is None else wording.percent(pin.rows_lost),
        "Half or double": pin.half_or_double,
        "Data": pin.data,
        "Settings": "; ".join(f"{label}: {value}" for label, value in pin.settings),
        "These numbers are": pin.disclosure.label,
    }
