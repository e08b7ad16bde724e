"""Frozen parameter objects as flat text fields: for links, downloads and the command line.

A parameters object is a frozen dataclass whose fields are float, int, bool, str or an enum with text values,
each possibly optional, and whose ``__post_init__`` validates. `to_fields` and `from_fields` are inverses.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput

P = TypeVar("P")

MAX_TEXT = 200
"""Longest text that is looked at of a field without a limit of its own; a longer one cannot be one of ours."""
LONGEST = "longest"
"""Under this name the metadata of a field hold a limit of its own."""


def to_fields(parameters: Any) -> dict[str, str]:
    """All fields as text; None is left out. Floats keep every digit."""
    texts: dict[str, str] = {}
    for f in fields(parameters):
        value = getattr(parameters, f.name)
        if value is not None:
            texts[f.name] = to_text(value)
    return texts


def to_text(value: Any) -> str:
    """One field as text. Floats keep every digit."""
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def to_values(parameters: Any) -> dict[str, Any]:
    """All fields as JSON holds them: numbers as numbers, enums as their text; None is left out."""
    values = {f.name: getattr(parameters, f.name) for f in fields(parameters)}
    return {
        name: value.value if isinstance(value, enum.Enum) else value
        for name, value in values.items()
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
    values, problems = _values(kind, texts)
    if not problems.found:
        try:
            return kind(**values)
        except InvalidInput as refused:
            problems.extend(refused.problems)
    raise InvalidInput(problems.found)


def field_types(kind: Any) -> dict[str, Any]:
    """The type of every field of a parameters class, by name. Kept: working them out takes as long as all else here."""
    return _types_of(kind)


def longest_texts(kind: Any) -> dict[str, int]:
    """Most characters of those fields of a parameters class that have a limit of their own, by name."""
    return {f.name: f.metadata[LONGEST] for f in fields(kind) if LONGEST in f.metadata}


# Not `field_types` itself: mypy takes the class of a dataclass for one that cannot be hashed.
_types_of = functools.cache(typing.get_type_hints)


def good_fields(
    kind: type[P], texts: Mapping[str, str], stand_ins: Mapping[str, Any]
) -> tuple[P, tuple[str, ...], list[InputProblem]]:
    """Build a parameters object from those text fields that are good, and say what is wrong with the others.

    Fields are taken in one by one, then by twos and threes, since some only hold together (a source of the
    variance and its figure, a base distribution with its two).

    Args:
        kind: The dataclass.
        texts: Field name to text.
        stand_ins: Values for fields without a default that are missing or bad; by themselves they are valid.

    Returns:
        The validated object, the names of fields that it does not have from the texts though they stand there or
        have to, and every problem: those of these fields, and unknown ones.
    """
    values, problems = _values(kind, texts)
    known = [f for f in fields(kind) if f.init]  # type: ignore[arg-type]
    needed = {f.name for f in known if f.default is MISSING and f.default_factory is MISSING}
    kept = {name: value for name, value in stand_ins.items() if name in needed}
    parameters, refused = _try(kind, kept | values)
    problems.extend(refused)
    if parameters is None:
        parameters = kind(**kept)
        left, size = dict(values), 1
        while size <= min(3, len(left)):
            for group in itertools.combinations(left, size):
                larger, _ = _try(kind, kept | {name: left[name] for name in group})
                if larger is not None:
                    # Then single ones again: what did not hold before may hold now.
                    parameters, size = larger, 0
                    kept |= {name: left.pop(name) for name in group}
                    break
            size += 1
        values = {name: value for name, value in values.items() if name not in left}
    asked = {f.name for f in known if f.name in texts} | needed
    return parameters, tuple(f.name for f in known if f.name in asked - set(values)), problems.found


def _try(kind: type[P], values: Mapping[str, Any]) -> tuple[P | None, tuple[InputProblem, ...]]:
    """The object, or why there is none."""
    try:
        return kind(**values), ()
    except InvalidInput as refused:
        return None, refused.problems


def _values(kind: type[Any], texts: Mapping[str, str]) -> tuple[dict[str, Any], Problems]:
    """The fields that can be read, and what is wrong with the others."""
    problems = Problems()
    hints = field_types(kind)
    known = {f.name: f for f in fields(kind) if f.init}
    for name in texts:
        if name not in known:
            problems.add(f"{name[:40]} is not a parameter of this page")
    values: dict[str, Any] = {}
    for name, f in known.items():
        if name in texts:
            try:
                values[name] = _read(hints[name], texts[name], f.metadata.get(LONGEST, MAX_TEXT))
            except (ValueError, OverflowError):
                problems.add(f"{name} cannot be read; got {texts[name][:40]!r}")
        elif f.default is MISSING and f.default_factory is MISSING:
            problems.add(f"{name} is missing")
    return values, problems


def _read(hint: Any, text: str, longest: int = MAX_TEXT) -> Any:
    if len(text) > longest:
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


def built_from(kind: type[P], parameters: Any, **others: Any) -> P:
    """An object that takes every field that it shares with a parameters object from there, by name.

    Args:
        kind: A dataclass.
        parameters: With attributes of the same names; of fields that it lacks the defaults hold.
        **others: Fields of the new object that are something else.
    """
    names = {f.name for f in fields(kind) if f.init} - set(others)  # type: ignore[arg-type]
    return kind(**{name: getattr(parameters, name) for name in names if hasattr(parameters, name)}, **others)


def numbers_of(text: str) -> tuple[float, ...]:
    """Numbers separated by commas or spaces, ascending, each once.

    Raises:
        ValueError: Not numbers.
    """
    return tuple(sorted({float(number) for number in text.replace(",", " ").split()}))


def checked_numbers(problems: Problems, names: str, text: str, most: int) -> tuple[float, ...]:
    """The numbers of a field, at most so many; what is wrong with it is recorded under what they are called."""
    try:
        values = numbers_of(text)
    except ValueError:
        problems.add(f"the {names} must be numbers separated by commas; got {text[:40]!r}")
        return ()
    if not 1 <= len(values) <= most:
        problems.add(f"there can be 1 to {most} {names}; got {len(values)}")
    return values[:most]
