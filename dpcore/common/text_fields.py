"""Frozen parameter objects as flat text fields, and settings as a person writes them.

A parameters object is a frozen dataclass whose fields are float, int, bool, str or an enum with text values,
each possibly optional, and whose ``__post_init__`` validates. `to_fields` and `from_fields` are inverses.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import math
import sys
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse

P = TypeVar("P")

MAX_TEXT = 200
"""Longest text that is looked at of a field without a limit of its own; a longer one cannot be one of ours."""
LONGEST_KEY = "longest"
"""Under this name the metadata of a field hold a limit of its own."""
DECLARATION_KEY = "declaration"
"""Under this name they hold its `dpcore.common.parameters.Field`."""


def to_fields(parameters: Any) -> dict[str, str]:
    """Convert all fields to texts by name; None is left out.

    Floats keep every digit.
    """
    values_by_field = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    return {field_name: to_text(value) for field_name, value in values_by_field.items() if value is not None}


def to_text(field_value: Any) -> str:
    """Convert one value to text; floats keep every digit."""
    if isinstance(field_value, enum.Enum):
        return str(field_value.value)
    if isinstance(field_value, bool):
        return "yes" if field_value else "no"
    if (
        isinstance(field_value, float)
        and math.isfinite(field_value)
        and field_value == int(field_value)
        and abs(field_value) < 1e15
    ):
        return str(int(field_value))
    return str(field_value)


def to_values(parameters: Any) -> dict[str, Any]:
    """Convert all fields to what JSON holds, by name: enums become their values, and None is left out."""
    values_by_field = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    filled_values_by_field = {name: value for name, value in values_by_field.items() if value is not None}
    return {
        name: value.value if isinstance(value, enum.Enum) else value
        for name, value in filled_values_by_field.items()
    }


def from_fields(parameters_type: type[P], texts_by_field: Mapping[str, str]) -> P:
    """Build a parameters object from text fields.

    Args:
        parameters_type: The dataclass.
        texts_by_field: Field name to text; fields with defaults may be missing.

    Returns:
        The validated object.

    Raises:
        InvalidInput: Unknown or missing fields, unreadable text, values out of range; all at once.
    """
    values_by_field, problems = _read_values(parameters_type, texts_by_field)
    if not problems.entries:
        try:
            return parameters_type(**values_by_field)
        except InvalidInput as error:
            problems.extend(error.problems)
    raise InvalidInput(problems.entries)


# The type is written out: mypy takes the class of a dataclass for one that cannot be hashed.
list_field_types: Callable[[Any], dict[str, Any]] = functools.cache(typing.get_type_hints)
"""Return the type of every field of a parameters class, by name."""


def list_text_limits(parameters_type: Any) -> dict[str, int]:
    """Return the largest length of each text field that has a limit of its own, by name."""
    return {f.name: f.metadata[LONGEST_KEY] for f in fields(parameters_type) if LONGEST_KEY in f.metadata}


def read_good_fields(
    parameters_type: type[P], texts_by_field: Mapping[str, str], stand_ins_by_field: Mapping[str, Any]
) -> tuple[P, tuple[str, ...], list[InputProblem]]:
    """Build a parameters object from the text fields that are valid, and list the problems of the others.

    Fields are added one by one, then by twos and threes, since some only hold together (a source of the
    variance and its figure, a base distribution with its two).

    Args:
        parameters_type: The dataclass.
        texts_by_field: Field name to text.
        stand_ins_by_field: Values for fields without a default that are missing or bad; by themselves they are valid.

    Returns:
        The validated object, the names of fields that it does not have from the texts though they stand there or
        have to, and every problem: those of these fields, and unknown ones.
    """
    read_values_by_field, problems = _read_values(parameters_type, texts_by_field)
    known_fields = [field for field in fields(parameters_type) if field.init]  # type: ignore[arg-type]
    required_names = {f.name for f in known_fields if f.default is MISSING and f.default_factory is MISSING}
    accepted_by_field = {name: value for name, value in stand_ins_by_field.items() if name in required_names}
    parameters, refused_problems = _try_build(parameters_type, accepted_by_field | read_values_by_field)
    problems.extend(refused_problems)
    if parameters is None:
        parameters = parameters_type(**accepted_by_field)
        remaining_by_field, group_size = dict(read_values_by_field), 1
        while group_size <= min(3, len(remaining_by_field)):
            for tried_names in itertools.combinations(remaining_by_field, group_size):
                tried_by_field = {name: remaining_by_field[name] for name in tried_names}
                larger_parameters, _ = _try_build(parameters_type, accepted_by_field | tried_by_field)
                if larger_parameters is not None:
                    # Then single ones again: what did not hold before may hold now.
                    parameters, group_size = larger_parameters, 0
                    accepted_by_field |= {name: remaining_by_field.pop(name) for name in tried_names}
                    break
            group_size += 1
        read_values_by_field = {
            name: value for name, value in read_values_by_field.items() if name not in remaining_by_field
        }
    unread_names = ({*texts_by_field} | required_names) - set(read_values_by_field)
    missing_names = tuple(field.name for field in known_fields if field.name in unread_names)
    return parameters, missing_names, problems.entries


def _try_build(
    parameters_type: type[P], values_by_field: Mapping[str, Any]
) -> tuple[P | None, tuple[InputProblem, ...]]:
    """Build a parameters object; return (object, ()), or (None, problems) if it is refused."""
    try:
        return parameters_type(**values_by_field), ()
    except InvalidInput as error:
        return None, error.problems


def _read_values(
    parameters_type: type[Any], texts_by_field: Mapping[str, str]
) -> tuple[dict[str, Any], Problems]:
    """Parse the texts; return (values by name, problems of unknown, missing and unreadable fields)."""
    problems = Problems()
    type_hints = list_field_types(parameters_type)
    fields_by_name = {field.name: field for field in fields(parameters_type) if field.init}
    for field_name in texts_by_field:
        if field_name not in fields_by_name:
            problems.add(f"{field_name[:40]} is not a parameter of this page")
    values_by_field: dict[str, Any] = {}
    for field_name, field in fields_by_name.items():
        if field_name in texts_by_field:
            try:
                max_characters = field.metadata.get(LONGEST_KEY, MAX_TEXT)
                values_by_field[field_name] = _parse_value(
                    type_hints[field_name], texts_by_field[field_name], max_characters
                )
            except (ValueError, OverflowError):
                problems.add(f"{field_name} cannot be read; got {texts_by_field[field_name][:40]!r}")
        elif field.default is MISSING and field.default_factory is MISSING:
            problems.add(f"{field_name} is missing")
    return values_by_field, problems


def _parse_value(type_hint: Any, text: str, max_characters: int = MAX_TEXT) -> Any:
    """Parse a text as a value of a type; raise ValueError if it is not one."""
    if len(text) > max_characters:
        raise ValueError("too long")
    if isinstance(type_hint, types.UnionType):
        type_hint = next(hint for hint in typing.get_args(type_hint) if hint is not type(None))
    if type_hint is bool:
        if text not in ("yes", "no"):
            raise ValueError(text)
        return text == "yes"
    if isinstance(type_hint, type) and issubclass(type_hint, (enum.Enum, int, float, str)):
        return type_hint(text)
    raise TypeError(f"a parameters object cannot hold {type_hint!r}")


def build_from(parameters_type: type[P], parameters: Any, **overrides: Any) -> P:
    """Build a parameters object from another object's attributes of the same names.

    Args:
        parameters_type: A dataclass.
        parameters: With attributes of the same names; of fields that it lacks the defaults hold.
        **overrides: Fields of the new object that differ.
    """
    field_names = {field.name for field in fields(parameters_type) if field.init} - set(overrides)  # type: ignore[arg-type]
    shared_by_field = {
        field_name: getattr(parameters, field_name)
        for field_name in field_names
        if hasattr(parameters, field_name)
    }
    return parameters_type(**shared_by_field, **overrides)


def parse_numbers(text: str) -> tuple[float, ...]:
    """Parse numbers separated by commas or spaces, ascending, each once.

    Raises:
        ValueError: Not numbers.
    """
    return tuple(sorted({float(number_text) for number_text in text.replace(",", " ").split()}))


def parse_checked_numbers(
    problems: Problems, field_name: str, text: str, max_numbers: int
) -> tuple[float, ...]:
    """Parse the numbers of a field, at most so many, and add problems under the field's name.

    Return an empty tuple if they cannot be parsed.
    """
    try:
        numbers = parse_numbers(text)
    except ValueError:
        problems.add(f"the {field_name} must be numbers separated by commas; got {text[:40]!r}")
        return ()
    if not 1 <= len(numbers) <= max_numbers:
        problems.add(f"there can be 1 to {max_numbers} {field_name}; got {len(numbers)}")
    return numbers[:max_numbers]


MAX_OPTION_LENGTH = 20
"""Longest name of an option that is written in full."""


def find_options_type(type_hint: Any) -> type[enum.Enum] | None:
    """Return the enum of a type hint, optional or not; None if the hint is of another type."""
    if isinstance(type_hint, types.UnionType):
        type_hint = next(hint for hint in typing.get_args(type_hint) if hint is not type(None))
    return type_hint if isinstance(type_hint, type) and issubclass(type_hint, enum.Enum) else None


def find_option(options_type: type[enum.Enum], value_or_name: Any) -> enum.Enum | None:
    """Return the option with this value or name, in any case and with - for _; None if there is none."""

    def normalise(option_name: object) -> str:
        """Return the text in lower case, with underscores for hyphens."""
        return str(option_name).lower().replace("-", "_")

    for option in options_type:
        if normalise(value_or_name) in (normalise(option.value), normalise(option.name)):
            return option
    return None


def name_option(option: enum.Enum) -> str:
    """Return the name of an option for a person: its value if that is short, else its name in lower case."""
    return str(option.value) if len(str(option.value)) <= MAX_OPTION_LENGTH else option.name.lower()


def list_options(options_type: type[enum.Enum]) -> str:
    """Return the names of an enum's options as a text, with commas."""
    return ", ".join(repr(name_option(option)) for option in options_type)


def list_former_names(parameters_type: Any) -> dict[str, str]:
    """Return today's name of each field by its former name, for the fields that were renamed."""
    declared_fields = [field for field in fields(parameters_type) if DECLARATION_KEY in field.metadata]
    declarations_by_field = {field.name: field.metadata[DECLARATION_KEY] for field in declared_fields}
    return {
        field.former_name: field_name
        for field_name, field in declarations_by_field.items()
        if field.former_name
    }


def rename_former(call_name: str, parameters_type: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under today's names and values, and warn with a `DeprecationWarning` of each former one.

    Args:
        call_name: Name of the call, for the sentences.
        parameters_type: Class of its parameters, whose fields say their former names.
        settings: As a person wrote them.

    Raises:
        InvalidInput: A setting stands under both names.
    """
    current_by_former, current_by_name = list_former_names(parameters_type), dict(settings)
    for former_name in sorted(set(current_by_former) & set(settings)):
        current_name = current_by_former[former_name]
        if settings.get(current_name) is not None:
            former_message = f"{current_name} stands here under its former name {former_name}, too"
            raise refuse(former_message, remedy=f"Leave out {former_name}")
        _warn_of_former(
            f"{former_name} of {call_name} is now called {current_name}; the former name will go with the next version"
        )
        current_by_name[current_name] = current_by_name.pop(former_name)
    for current_name, type_hint in list_field_types(parameters_type).items():
        options_type, entered_value = find_options_type(type_hint), current_by_name.get(current_name)
        if (
            options_type is not None
            and isinstance(entered_value, str)
            and find_option(options_type, entered_value) is None
        ):
            with contextlib.suppress(ValueError):
                option = options_type(
                    entered_value
                )  # Only `_missing_` of the enumeration knows a former value.
                former_message = f"{entered_value!r} of {current_name} is now called {option.value!r}"
                _warn_of_former(f"{former_message}; the former value will go with the next version")
                current_by_name[current_name] = option
    return current_by_name


def _warn_of_former(warning_message: str) -> None:
    """Warn with a `DeprecationWarning` in the line that calls `dpcore`.

    Python shows none that points into a package.
    """
    stack_level, caller_frame = 2, sys._getframe(1)
    while (
        caller_frame.f_back is not None
        and caller_frame.f_globals.get("__name__", "").partition(".")[0] == "dpcore"
    ):
        stack_level, caller_frame = stack_level + 1, caller_frame.f_back
    warnings.warn(warning_message, DeprecationWarning, stacklevel=stack_level)
