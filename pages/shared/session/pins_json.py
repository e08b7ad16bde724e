"""Pins as JSON and back, for the session file."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts
from dpcore.common.strict_json import Part, array
from dpcore.data.saved_dataset import FACTS, cut, facts_of, facts_to_json
from pages.shared.base import catalogue
from pages.shared.figures.pins import MOST, MOST_POINTS, Curve, Pin

TEXT, SETTINGS = 400, 60
"""Longest text and most settings of a pin."""
_AXIS = re.compile(r"[xy]([2-9]|1[0-9])?")
_TEXTS = ("question", "name", "data", "half_or_double")
_PAIRS = ("bound", "error")
_NUMBERS = {"epsilon": EPSILON_RANGE, "rows_lost": (0.0, 1.0)}


def to_json(pin: Pin) -> dict[str, Any]:
    """The pin; every digit of its curve."""
    entry: dict[str, Any] = {name: cut(getattr(pin, name), TEXT) for name in _TEXTS}
    entry |= {name: [cut(text, TEXT) for text in getattr(pin, name)] for name in _PAIRS}
    entry |= {name: getattr(pin, name) for name in _NUMBERS}
    entry["settings"] = [[cut(text, TEXT) for text in pair] for pair in pin.settings[:SETTINGS]]
    entry["disclosure"] = (
        facts_to_json(pin.disclosure) if isinstance(pin.disclosure, ReleaseFacts) else pin.disclosure.value
    )
    curve = pin.curve
    entry["curve"] = None if curve is None else {
        "x": array(curve.x), "y": array(curve.y), "axes": list(curve.axes), "on": list(curve.on),
        "best": None if curve.best is None else list(curve.best),
    }  # fmt: skip
    return entry


def from_json(part: Part) -> tuple[Pin, ...]:
    """The pins of a file; those of questions that are not there are left out. Problems are noted."""
    pins = [_pin(entry) for entry in part.entries(MOST) or ()]
    return tuple(pin for pin in pins if pin is not None)


def _pin(part: Part) -> Pin | None:
    members = part.members([field.name for field in dataclasses.fields(Pin)])
    if members is None:
        return None
    before = len(part.problems.found)
    given: dict[str, Any] = {name: members[name].text(TEXT) for name in _TEXTS}
    for name, (low, high) in _NUMBERS.items():
        given[name] = number = None if members[name].value is None else members[name].number()
        if number is not None and not low <= number <= high:
            members[name].refuse(f"this must lie between {low:g} and {high:g}")
    for name in _PAIRS:
        given[name] = _texts(members[name], 2)
    settings = [_texts(entry, 2) for entry in members["settings"].entries(SETTINGS) or ()]
    curve = None if members["curve"].value is None else _curve(members["curve"])
    disclosure = _disclosure(members["disclosure"])
    if len(part.problems.found) > before or disclosure is None:
        return None
    if catalogue.named(given["question"]) is None:
        return None
    pairs = tuple(entry for entry in settings if entry is not None)
    return Pin(**given, settings=pairs, disclosure=disclosure, curve=curve)  # type: ignore[arg-type]


def _texts(part: Part, length: int) -> tuple[str, ...] | None:
    entries = part.entries(length) or []
    texts = [entry.text(TEXT) for entry in entries]
    if len(texts) != length:
        part.refuse(f"this must be a list of {length} texts")
        return None
    return tuple(text for text in texts if text is not None)


def _disclosure(part: Part) -> Provenance | None:
    if isinstance(part.value, dict):
        members = part.members(FACTS)
        return None if members is None else facts_of(members, part)
    return part.one_of({kind.value: kind for kind in (Disclosure.PUBLIC, Disclosure.PRIVATE)})


def _curve(part: Part) -> Curve | None:
    members = part.members(["x", "y", "axes", "best", "on"])
    if members is None:
        return None
    x, y, axes = members["x"].array("float64"), members["y"].array("float64"), _texts(members["axes"], 4)
    on = _texts(members["on"], 2)
    if on is not None and not all(_AXIS.fullmatch(name) for name in on):
        members["on"].refuse("axes are called x and y, with a number behind it where there are several")
        return None
    best = None
    if members["best"].value is not None:
        ends = [entry.number() for entry in members["best"].entries(2) or ()]
        if len(ends) != 2:
            members["best"].refuse("a point has two numbers")
        best = tuple(ends)
    if x is None or y is None or axes is None or on is None:
        return None
    if x.shape != y.shape or not 2 < x.size <= MOST_POINTS or not np.isfinite(x).all():
        part.refuse(f"a curve has as many x as y, from 3 to {MOST_POINTS}, and every x is finite")
        return None
    return Curve(x, y, axes, best, on)  # type: ignore[arg-type]
