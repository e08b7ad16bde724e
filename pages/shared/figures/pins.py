"""Pinned answers: what a page's card said, frozen with its label, for the table in the tab *Compare*.

A pin keeps the label of the data that it was made of. Pins are in no link and in no report; a session file holds them.
When a private copy takes the place of the data, pins of private data are set aside with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from pages.shared.base import keys

MOST = 24
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


def of(question: str) -> tuple[Pin, ...]:
    """Return the pins of a question."""
    return tuple(pin for pin in all_pins() if pin.question == question)


def keep(pins: Iterable[Pin]) -> None:
    """Make these the session's pins; beyond `MOST` the oldest go."""
    st.session_state[keys.PINS] = tuple(pins)[-MOST:]


def parted(held: Iterable[object]) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """Return the pins of private data, and the others."""
    pins = [pin for pin in held if isinstance(pin, Pin)]
    private = tuple(pin for pin in pins if pin.disclosure is Disclosure.PRIVATE)
    return private, tuple(pin for pin in pins if pin not in private)


def joined(first: Iterable[Pin], more: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return all pins of both; one that both have stands once, under its first name. Names are unique within
    a question.
    """
    together = list(first)
    known = {_what(pin) for pin in together}
    for pin in more:
        if _what(pin) not in known:
            taken = {other.name for other in together if other.question == pin.question}
            together.append(replace(pin, name=_free(pin.name, taken)))
            known.add(_what(pin))
    return tuple(together)


def _what(pin: Pin) -> tuple[str, ...]:
    """Return what a pin says, whatever it is called."""
    return (pin.question, *(text for heading, text in said(pin).items() if heading != "Pin"))


def pin(question: str) -> None:
    """Keep what the page offers. That it was kept is said by the run that follows: a callback draws nothing."""
    offered: Callable[[], Pin | None] | None = st.session_state.get(keys.PIN_OFFERED)
    made = None if offered is None else offered()
    if made is None or made.question != question:
        return
    keep((*all_pins(), replace(made, name=_name(made))))
    st.session_state[f"{question}_pin_new"] = all_pins()[-1].name


def _name(pin: Pin) -> str:
    """Return its own name; where another pin has it, with the first setting that differs from that one, or a
    number.
    """
    taken = {other.name: other for other in of(pin.question)}
    if pin.name not in taken:
        return pin.name
    before = dict(taken[pin.name].settings)
    differs = next((f", {what} {value}" for what, value in pin.settings if before.get(what) != value), "")
    return free_name(pin.question, pin.name + differs)


def free_name(question: str, wanted: str) -> str:
    """Return the name; with a number where another pin of the question has it."""
    return _free(wanted, {pin.name for pin in of(question)})


def _free(wanted: str, taken: Collection[str]) -> str:
    count, name = 2, wanted
    while name in taken:
        count, name = count + 1, f"{wanted} ({count})"
    return name


def said(pin: Pin) -> dict[str, str]:
    """Return a pin as a row of a table, by heading."""
    return {
        "Pin": pin.name,
        "ε": "" if pin.epsilon is None else wording.entered(pin.epsilon),
        "Bound": f"{pin.bound[1]} ({pin.bound[0].lower()})" if pin.bound[1] else "",
        "Error": f"{pin.error[1]} ({pin.error[0].lower()})" if pin.error[1] else "",
        "Rows left out": "" if pin.rows_lost is None else wording.percent(pin.rows_lost),
        "Half or double": pin.half_or_double,
        "Data": pin.data,
        "Settings": "; ".join(f"{what}: {value}" for what, value in pin.settings),
        "These numbers are": pin.disclosure.label,
    }
