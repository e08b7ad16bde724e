"""The parameters object that values of fields make, and their problems in the words of the page."""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dpcore.common.checks import EPSILON_RANGE, InputProblem, InvalidInput, Problems
from dpcore.common.text_fields import list_field_types

P = TypeVar("P")


def build_parameters(
    parameters_type: type[P],
    values_by_field: Mapping[str, Any],
    required_label_by_field: Mapping[str, str],
    base_parameters: P | None = None,
    subjects_by_field: Mapping[str, str] | None = None,
) -> tuple[P | None, list[InputProblem]]:
    """Build a parameters object; return it, or None, with every problem of empty and of refused fields.

    Args:
        parameters_type: Its class.
        values_by_field: Values by field name; whole floats become int if the field holds an int.
        required_label_by_field: Fields that must not be empty, with the words that begin a sentence about them.
        base_parameters: An object in which these fields are changed; None for a new one.
        subjects_by_field: The words for all fields in sentences; those of ``required_label_by_field`` by default.
    """
    types_by_field = list_field_types(parameters_type)
    arguments = {
        field_name: _convert_whole_number(types_by_field[field_name], field_value)
        for field_name, field_value in values_by_field.items()
    }
    empty_names = [
        field_name
        for field_name in required_label_by_field
        if field_name in values_by_field and values_by_field[field_name] is None
    ]
    problems = [
        InputProblem(f"{required_label_by_field[field_name]} is empty", remedy="Enter a number")
        for field_name in empty_names
    ]
    # NaN in the place of what is empty: no check passes it, and none that compares two fields goes by it.
    arguments |= dict.fromkeys(empty_names, math.nan)
    try:
        if base_parameters is None:
            parameters = parameters_type(**arguments)
        else:
            parameters = replace(base_parameters, **arguments)  # type: ignore[type-var]
    except InvalidInput as error:
        real_problems = (p for p in error.problems if not p.message.endswith("got nan"))
        problems += [
            replace_field_names(problem, subjects_by_field or required_label_by_field)
            for problem in real_problems
        ]
        if problems:
            return None, problems
        raise
    return (None, problems) if problems else (parameters, [])


def replace_field_names(problem: InputProblem, labels_by_field: Mapping[str, str]) -> InputProblem:
    """Return the problem with the page's label in place of the Python name that its message begins with.

    Other fields in the message, such as the one that a lower bound must lie below, are replaced too.
    """
    field_name, verb_text, requirement = problem.message.partition(" must ")
    field_name, minus_sign, subtracted_name = field_name.partition(" − ")
    if not labels_by_field.get(field_name) or (minus_sign and not labels_by_field.get(subtracted_name)):
        return problem
    for other_name, other_label in labels_by_field.items():
        if other_label:
            name_pattern = rf"\b(below|above|at least) {re.escape(other_name)}\b"
            requirement = re.sub(name_pattern, rf"\1 {lower_first_letter(other_label)}", requirement)
    subject_text = labels_by_field[field_name] + (
        f" − {lower_first_letter(labels_by_field[subtracted_name])}" if minus_sign else ""
    )
    return replace(problem, message=f"{subject_text}{verb_text}{requirement}")


def lower_first_letter(label: str) -> str:
    """Return the label as it stands inside a sentence: its first letter in lower case, except for symbols."""
    return f"{label[0].lower()}{label[1:]}" if label[1:2].islower() else label


def _convert_whole_number(annotation: Any, value: Any) -> Any:
    """Return a whole float as int if the field's type allows int; any other value stays as it is."""
    takes_int = annotation is int or int in typing.get_args(annotation)
    return int(value) if takes_int and isinstance(value, float) and value.is_integer() else value


def check_epsilon(epsilon: float | None) -> list[InputProblem]:
    """Return the problems of the shared epsilon; an empty list if it is good."""
    problems = Problems()
    if epsilon is None:
        problems.add("the field of ε is empty", remedy="Enter a number")
    else:
        problems.between(*EPSILON_RANGE, ε=epsilon)
    return problems.entries
