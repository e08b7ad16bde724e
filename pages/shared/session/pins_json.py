"""Pins as JSON and back, for the session file."""

from __future__ import annotations

import functools
from typing import Any

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts
from dpcore.common.strict_json import JsonValue, read_text
from dpcore.data.saved_dataset import cut, facts_to_json, read_facts
from pages.shared.base import catalogue
from pages.shared.figures.pins import MAX_PINS, Pin

TEXT, SETTINGS = 400, 60
"""Longest text and most settings of a pin."""
_TEXTS = ("question", "name", "data", "half_or_double")
_PAIRS = ("bound", "error")
_NUMBERS = {"epsilon": EPSILON_RANGE, "rows_lost": (0.0, 1.0)}


def to_json(pin: Pin) -> dict[str, Any]:
    """Return the pin as it stands in a session file."""
    entry: dict[str, Any] = {name: cut(getattr(pin, name), TEXT) for name in _TEXTS}
    entry |= {name: [cut(text, TEXT) for text in getattr(pin, name)] for name in _PAIRS}
    entry |= {name: getattr(pin, name) for name in _NUMBERS}
    entry["settings"] = [[cut(text, TEXT) for text in pair] for pair in pin.settings[:SETTINGS]]
    entry["disclosure"] = (
        facts_to_json(pin.disclosure) if isinstance(pin.disclosure, ReleaseFacts) else pin.disclosure.value
    )
    return entry


def from_json(node: JsonValue) -> tuple[Pin, ...]:
    """Return the pins of a file without those of unknown questions; problems are added to ``node``."""
    pins = [_pin(entry) for entry in node.get_entries(MAX_PINS) or ()]
    return tuple(pin for pin in pins if pin is not None)


def _pin(node: JsonValue) -> Pin | None:
    members = node.read_members(
        {
            **dict.fromkeys(_TEXTS, read_text(TEXT)),
            **{name: functools.partial(_number, *ends) for name, ends in _NUMBERS.items()},
            **dict.fromkeys(_PAIRS, functools.partial(_texts, 2)),
            "settings": lambda entries: tuple(
                _texts(2, entry) for entry in entries.get_entries(SETTINGS) or ()
            ),
            "disclosure": _disclosure,
        },
        {"curve": lambda _: None},  # Pins of before had a curve, which no figure shows any more.
    )
    if members is None or catalogue.named(members["question"]) is None:
        return None
    members.pop("curve", None)
    return Pin(**members)


def _number(low: float, high: float, node: JsonValue) -> float | None:
    number = None if node.value is None else node.get_number()
    if number is not None and not low <= number <= high:
        node.refuse(f"this must lie between {low:g} and {high:g}")
    return number


def _texts(length: int, node: JsonValue) -> tuple[str, ...] | None:
    entries = node.get_entries(length) or []
    if len(entries) != length:
        node.refuse(f"this must be a list of {length} texts")
        return None
    return tuple(entry.get_text(TEXT) or "" for entry in entries)


def _disclosure(node: JsonValue) -> Provenance | None:
    if isinstance(node.value, dict):
        return read_facts(node)
    return node.choose(
        {disclosure.value: disclosure for disclosure in (Disclosure.PUBLIC, Disclosure.PRIVATE)}
    )
