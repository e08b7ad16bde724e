"""The settings of fields in a session file: written by question, and read as far as parameters objects accept them."""

from __future__ import annotations

import dataclasses
import enum
import math
import typing
from collections.abc import Collection, Mapping
from typing import Any

from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.strict_json import JsonValue
from dpcore.common.text_fields import MAX_TEXT, list_field_types, list_text_limits, read_good_fields, to_text
from pages.shared.base import catalogue
from pages.shared.base.question import Question
from pages.shared.session import links


def is_field(key: str) -> bool:
    """Return True if a session key is that of a question's field."""
    name, _, entry = key.partition(".")
    question = catalogue.named(name)
    return question is not None and entry in question.fields


def group_by_question(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields' values as JSON, by question and name of the field; other keys are left out."""
    by_question: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        if is_field(key):
            name, _, entry = key.partition(".")
            by_question.setdefault(name, {})[entry] = to_json_value(value)
    return by_question


def to_json_value(value: Any) -> Any:
    """Return the value of a field as it stands in a session file."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def read_settings(node: JsonValue, problems: Problems, fills_new_fields: bool = True) -> dict[str, Any]:
    """Return valid settings by session key; with ``fills_new_fields``, add fields that are newer than the file."""
    settings: dict[str, Any] = {}
    for name, page_node in (JsonValue(node.value, node.location, problems).get_named(200) or {}).items():
        question = catalogue.named(name)
        if question is None or question.parameters is None:
            page_node.refuse("there is no such question here")
            continue
        location = page_node.location
        by_name = question.as_now(
            page_node.get_named(200) or {},
            lambda value, location=location: JsonValue(to_json_value(value), location, problems),  # type: ignore[misc]
        )
        if fills_new_fields:
            settings |= {question.key(n): value for n, value in question.came_later(by_name).items()}
        settings |= _read_fields(question, by_name, problems)
    return settings


def _read_fields(question: Question, nodes: Mapping[str, JsonValue], problems: Problems) -> dict[str, Any]:
    """Return the fields of a question, by session key, that its parameters object accepts."""
    assert question.parameters is not None
    hints, longest = list_field_types(question.parameters), list_text_limits(question.parameters)
    values: dict[str, Any] = {}
    for name, node in nodes.items():
        if name not in question.fields:
            node.refuse("there is no such field here")
        elif node.value is None:
            if question.fields[name].options is None and hints[name] is not bool:
                values[name] = None
        else:
            try:
                values[name] = _convert_value(hints[name], node, longest.get(name, MAX_TEXT))
            except ValueError:
                node.refuse(f"this is not what the field {question.fields[name].label or name} holds")
    empty = {name for name, value in values.items() if value is None}
    filled = {name: value for name, value in values.items() if name not in empty}
    accepted = _list_accepted(question, filled, empty)
    for name in values:
        if name not in accepted and name not in empty:
            nodes[name].refuse(
                f"{question.fields[name].label or name} cannot be this: {to_text(values[name])[:40]}"
            )
    return {question.key(name): value for name, value in values.items() if name in accepted or name in empty}


def _convert_value(hint: Any, node: JsonValue, longest: int) -> Any:
    """Return the value as a widget holds it.

    Raises:
        ValueError: It is of another type.
    """
    types = [
        option_type for option_type in (typing.get_args(hint) or (hint,)) if option_type is not type(None)
    ]
    value = node.value
    for option_type in types:
        if isinstance(option_type, type) and issubclass(option_type, enum.Enum):
            return option_type(value)
        if option_type is bool and isinstance(value, bool):
            return value
        if option_type is str and isinstance(value, str) and len(value) <= longest:
            value.encode()  # A UnicodeEncodeError is a ValueError.
            return value
        if option_type in (int, float) and type(value) in (int, float) and abs(value) < 1e300:
            return int(value) if option_type is int and value == int(value) else float(value)
    raise ValueError


def _list_accepted(question: Question, values: Mapping[str, Any], empty: Collection[str]) -> set[str]:
    """Return the names of fields that the parameters object accepts, with the others or alone under some option.

    A value that does not apply now, such as the variance beside *Worst case*, stays in its field.
    """
    assert question.parameters is not None
    field_names = {f.name for f in dataclasses.fields(question.parameters) if f.init}
    stand_ins = {name: value for name, value in links.STAND_INS.items() if name in field_names}
    texts = {name: to_text(value) for name, value in values.items()}
    defaults = {name: str(value) for name, value in stand_ins.items() if name not in texts}
    _, bad, _ = read_good_fields(question.parameters, defaults | texts, stand_ins)
    choices: list[dict[str, Any]] = [{}]
    choices += [
        {name: option} for name, declared in question.fields.items() for option in (declared.options or ())
    ]
    # Nothing is compared with what is empty, nor with an end of a range that nobody entered.
    base = {name: value if name == "epsilon" else math.nan for name, value in stand_ins.items()}
    base |= dict.fromkeys(empty, math.nan)
    return {
        name
        for name, value in values.items()
        if (question.fields[name].options is None or value in question.fields[name].options)  # type: ignore[operator]
        and (
            name not in bad
            or any(_is_accepted(question, base | choice | {name: value}) for choice in choices)
        )
    }


def _is_accepted(question: Question, values: Mapping[str, Any]) -> bool:
    """Return True if the parameters object accepts the values; comparisons with empty fields are ignored."""
    assert question.parameters is not None
    try:
        question.parameters(**values)
    except InvalidInput as refused:
        return all(problem.message.endswith("got nan") for problem in refused.problems)
    except (TypeError, ValueError):  # A field that may not be empty is.
        return False
    return True
