"""A number that was drawn as a program, with the names that the data have, and as a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpcore.code import Quantity
from dpcore.code.choice import Choice
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    build_forms,
    cap_form,
    fields_of_data,
    smooth_form,
    summed_column,
)
from dpcore.common.documents import CHOICE_SCHEMA, write_document
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.per_group.private_pair import PrivatePair
from dpcore.private_choice.answer.words import NUMBER_NAMES
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import Several, Wanted
from dpcore.private_choice.private_range import PrivateRange
from dpcore.private_choice.release_bounds import Bounded


def of_private(
    choice: PrivateChoice,
    wanted: Wanted | Bounded,
    epsilon: float,
    dataset: Dataset,
    lower: float | None,
    upper: float | None,
    range_drawn: ReleaseFacts | None = None,
    delta: float | None = None,
) -> CodeChoice | None:
    """Return a number that was chosen privately, or None if it has no program here.

    That is a quantile of sizes, which bounds no release of its own, and the bound of a quantile (`redrawn`).

    Args:
        choice: The number with its label.
        wanted: What it is for.
        epsilon: Of the release that will use it.
        dataset: Gives the names of file and columns.
        lower: Lowest value of a mean, as entered; None only where no mean is released.
        upper: Highest value of a mean, likewise.
        range_drawn: What the draw of both guarantees, where they were drawn.
        delta: Of a sum or a count with Gaussian noise; None for Laplace noise.
    """
    base = fields_of_data(dataset) | {"disclosure": choice.facts, "neighbours": choice.facts.neighbours}
    ends = {"lower": lower, "upper": upper, "range_drawn": range_drawn}
    if wanted is Wanted.SMOOTH:
        fields = {"threshold": choice.value, **ends}
        return build_forms(epsilon, base, [(smooth_form(choice.value), Quantity.MEAN, fields)])
    rows = {"max_rows": int(choice.value)}
    if wanted is Wanted.CAP:
        form = (cap_form(choice.value), Quantity.MEAN, {**rows, **ends})
        return build_forms(epsilon, base, [form])
    if wanted is Bounded.MODEL:
        return build_forms(epsilon, base, [(cap_form(choice.value), Quantity.MODEL, rows)])
    if wanted not in (Wanted.SUM, Bounded.TOTAL):
        return None
    if delta is not None:
        base |= {"noise": NoiseKind.GAUSSIAN, "delta": delta}
    if column := choice.column or summed_column(dataset):
        total = {"max_total": choice.value, "value_column": column} | ROWS_OF_THE_FILE
        return build_forms(epsilon, base, [("Clamp", Quantity.SUM, total)])
    return build_forms(epsilon, base, [(cap_form(choice.value), Quantity.COUNT, rows)])


def redrawn(first_program: CodeChoice, choice: PrivateChoice, wanted: Bounded) -> CodeChoice:
    """Return the first program of a quantile's card with the drawn bound in place of its own."""
    _, program = first_program.forms[0]
    assert isinstance(program, Choice)
    if wanted is Bounded.QUANTILE_CAP:
        rows = int(choice.value)
        name, new_program = cap_form(rows), replace(program, max_rows=rows, disclosure=choice.facts)
    else:
        name = smooth_form(choice.value)
        new_program = replace(program, threshold=choice.value, disclosure=choice.facts)
    return CodeChoice(((name, new_program),))


def several_json(choice: PrivatePair | PrivateRange) -> str:
    """Return a pair or a range with its guarantee; nothing in it depends on the data but what was drawn."""
    pair, problem = isinstance(choice, PrivatePair), choice.problem
    problem_values = to_values(problem)
    if isinstance(choice, PrivatePair):
        problem_values["parameters"] = to_values(choice.problem.parameters)
        bounds = {"max_groups": choice.max_groups, "max_amount": choice.max_amount}
    else:
        bounds = {"lower": choice.lower, "upper": choice.upper}
    return write_document(
        CHOICE_SCHEMA,
        question={
            "label": "public input",
            "number": NUMBER_NAMES[Several.PAIR if pair else Several.RANGE],
            **problem_values,
        },
        answer={"label": choice.facts.label, **bounds, **_guarantee(choice.facts)},
    )


def _guarantee(facts: ReleaseFacts) -> dict[str, Any]:
    return {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "neighbours": facts.neighbours.value,
        "mechanism": facts.mechanism,
    }


def choice_json(choice: PrivateChoice, wanted: Wanted | Bounded) -> str:
    """Return the chosen number with its guarantee; nothing in it depends on the data but the number drawn."""
    problem = choice.problem
    return write_document(
        CHOICE_SCHEMA,
        question={
            "label": "public input",
            "number": NUMBER_NAMES[wanted],
            "condition": to_values(problem.condition),
            "largest": problem.largest,
            **({"unit": problem.unit, "column": choice.column} if choice.column else {}),
            "prior": to_values(problem.prior) if problem.prior is not None else None,
        },
        answer={
            "label": choice.facts.label,
            "value": choice.value,
            "unit": f"{choice.column} per user" if choice.column else "rows per user",
            **_guarantee(choice.facts),
        },
    )
