"""Frozen parameter objects as flat text fields: for links, downloads and the command line.

A parameters object is a frozen dataclass whose fields are float, int, bool, str or an enum with text values,
each possibly optional, and whose ``__post_init__`` validates. `to_fields` and `from_fields` are inverses.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from dpcore.checks import Problems
from dpcore.errors import InvalidInput

P = TypeVar("P")

MAX_TEXT = 200
"""Longest field text that is looked at; a longer one cannot be one of ours."""


def to_fields(parameters: Any) -> dict[str, str]:
    """All fields as text; None is left out. Floats keep every digit."""
    texts: dict[str, str] = {}
    for f in fields(parameters):
        value = getattr(parameters, f.name)
        if value is None:
            continue
        if isinstance(value, enum.Enum):
            texts[f.name] = str(value.value)
        elif isinstance(value, bool):
            texts[f.name] = "yes" if value else "no"
        elif isinstance(value, float) and value == int(value) and abs(value) < 1e15:
            texts[f.name] = str(int(value))
        else:
            texts[f.name] = str(value)
    return texts


def to_values(parameters: Any) -> dict[str, Any]:
    """All fields as JSON holds them: numbers as numbers, enums as their text; None is left out."""
    found = {f.name: getattr(parameters, f.name) for f in fields(parameters)}
    return {
        name: value.value if isinstance(value, enum.Enum) else value
        for name, value in found.items()
        if value is not None
    }


def from_fields(kind: type[P], texts: Mapping[str, str]) -> P:
    """Build a parameters object from text fields.

    Args:
        kind: The dataclass.
        texts: Field name to text; fields with defaults may be missing.

    Returns:
        The validated object.

    Raises:
        InvalidInput: Unknown or missing fields, unreadable text, values out of range; all at once.
    """
    problems = Problems()
    hints = typing.get_type_hints(kind)
    known = {f.name: f for f in fields(kind) if f.init}  # type: ignore[arg-type]
    for name in texts:
        if name not in known:
            problems.add(f"{name[:40]} is not a parameter of this page")
    values: dict[str, Any] = {}
    for name, f in known.items():
        if name in texts:
            try:
                values[name] = _read(hints[name], texts[name])
            except (ValueError, OverflowError):
                problems.add(f"{name} cannot be read; got {texts[name][:40]!r}")
        elif f.default is MISSING and f.default_factory is MISSING:
            problems.add(f"{name} is missing")
    if not problems.found:
        try:
            return kind(**values)
        except InvalidInput as refused:
            problems.extend(refused.problems)
    raise InvalidInput(problems.found)


def _read(hint: Any, text: str) -> Any:
    if len(text) > MAX_TEXT:
        raise ValueError("too long")
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if hint is bool:
        return {"yes": True, "no": False}[text] if text in ("yes", "no") else _unreadable(text)
    if isinstance(hint, type) and issubclass(hint, (enum.Enum, int, float, str)):
        return hint(text)
    raise TypeError(f"a parameters object cannot hold {hint!r}")


def _unreadable(text: str) -> Any:
    raise ValueError(text)
