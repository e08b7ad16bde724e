"""A number that was drawn as a program, with the names that the data have, and as a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpcore.code import Released
from dpcore.code.choice import Choice
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    cap_form,
    forms,
    of_data,
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
    drawn: PrivateChoice,
    wanted: Wanted | Bounded,
    epsilon: float,
    dataset: Dataset,
    lower: float | None,
    upper: float | None,
    range_drawn: ReleaseFacts | None = None,
    delta: float | None = None,
) -> CodeChoice | None:
    """A number that was chosen privately; None where it has no program here.

    That is a quantile of sizes, which bounds no release of its own, and the bound of a quantile (`redrawn`).

    Args:
        drawn: The number with its label.
        wanted: What it is for.
        epsilon: Of the release that will use it.
        dataset: Gives the names of file and columns.
        lower: Lowest value of a mean, as entered; None only where no mean is released.
        upper: Highest value of a mean, likewise.
        range_drawn: What the draw of both guarantees, where they were drawn.
        delta: Of a sum or a count with Gaussian noise; None for Laplace noise.
    """
    base = of_data(dataset) | {"disclosure": drawn.facts, "neighbours": drawn.facts.neighbours}
    ends = {"lower": lower, "upper": upper, "range_drawn": range_drawn}
    if wanted is Wanted.SMOOTH:
        fields = {"threshold": drawn.value, **ends}
        return forms(epsilon, base, [(smooth_form(drawn.value), Released.MEAN, fields)])
    rows = {"max_rows": int(drawn.value)}
    if wanted is Wanted.CAP:
        form = (cap_form(drawn.value), Released.MEAN, {**rows, **ends})
        return forms(epsilon, base, [form])
    if wanted is Bounded.MODEL:
        return forms(epsilon, base, [(cap_form(drawn.value), Released.MODEL, rows)])
    if wanted not in (Wanted.SUM, Bounded.TOTAL):
        return None
    if delta is not None:
        base |= {"noise": NoiseKind.GAUSSIAN, "delta": delta}
    if column := drawn.column or summed_column(dataset):
        total = {"max_total": drawn.value, "value_column": column} | ROWS_OF_THE_FILE
        return forms(epsilon, base, [("Clamp", Released.SUM, total)])
    return forms(epsilon, base, [(cap_form(drawn.value), Released.COUNT, rows)])


def redrawn(own: CodeChoice, drawn: PrivateChoice, wanted: Bounded) -> CodeChoice:
    """The first program of a quantile's card with the drawn bound in place of its own."""
    _, program = own.forms[0]
    assert isinstance(program, Choice)
    if wanted is Bounded.QUANTILE_CAP:
        rows = int(drawn.value)
        name, written = cap_form(rows), replace(program, max_rows=rows, disclosure=drawn.facts)
    else:
        name = smooth_form(drawn.value)
        written = replace(program, threshold=drawn.value, disclosure=drawn.facts)
    return CodeChoice(((name, written),))


def several_json(drawn: PrivatePair | PrivateRange) -> str:
    """A pair or a range with its guarantee; nothing in it depends on the data but what was drawn."""
    pair, problem = isinstance(drawn, PrivatePair), drawn.problem
    asked = to_values(problem)
    if isinstance(drawn, PrivatePair):
        asked["parameters"] = to_values(drawn.problem.parameters)
        found = {"max_groups": drawn.max_groups, "max_amount": drawn.max_amount}
    else:
        found = {"lower": drawn.lower, "upper": drawn.upper}
    return write_document(
        CHOICE_SCHEMA,
        question={
            "label": "public input",
            "number": NUMBER_NAMES[Several.PAIR if pair else Several.RANGE],
            **asked,
        },
        answer={"label": drawn.facts.label, **found, **_guarantee(drawn.facts)},
    )


def _guarantee(facts: ReleaseFacts) -> dict[str, Any]:
    return {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "neighbours": facts.neighbours.value,
        "mechanism": facts.mechanism,
    }


def choice_json(choice: PrivateChoice, wanted: Wanted | Bounded) -> str:
    """The chosen number with its guarantee; nothing in it depends on the data but the number drawn."""
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
