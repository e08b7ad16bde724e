"""The chosen bound with the names that the data have, in the forms that code is written of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcore.code.choice import Choice, Code, Released
from dpcore.code.several import Several
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.data import samples
from dpcore.dataset import Contribution, Dataset

ROWS_OF_THE_FILE = {"row_is": ""}
"""Of programs that read the file as it is, whatever is counted as a contribution: they add up a column's values
themselves, or count a user once in a group."""
Form = tuple[str, Released, Mapping[str, Any]]


Forms = tuple[tuple[str, Choice | Several | Code], ...]


@dataclass(frozen=True)
class CodeChoice:
    """What can be carried away of an answer.

    Attributes:
        made: Its `forms`, or what makes them once they are asked for.
    """

    made: Forms | Callable[[], Forms]

    @cached_property
    def forms(self) -> Forms:
        """(name, choice), at least one: the cap and the smooth weights, say, or several releases from one budget.

        A program that is no release, and hence the same in every library, stands there as it is.
        """
        return self.made() if callable(self.made) else self.made


def of_data(dataset: Dataset) -> dict[str, Any]:
    """Return the fields of a `Choice` that come from the data; placeholders where they have no names."""
    fields: dict[str, Any] = {"disclosure": dataset.provenance}
    if dataset.privacy_unit:
        fields |= {"privacy_unit": dataset.privacy_unit, "known_columns": True, "file": file_of(dataset)}
        fields["layout"] = dataset.layout
    if dataset.values is not None:
        fields["value_column"] = dataset.values.column
    groups = dataset.pairs or dataset.tasks
    if groups is not None:
        fields["group_column"] = groups.label
    if dataset.contribution is Contribution.DISTINCT_TASKS:
        fields["row_is"] = "one distinct task of a user, whatever its number of rows in the file"
    elif dataset.contribution is Contribution.TOTAL:
        fields["row_is"] = "one unit of the column that was added up, not a row of the file"
    return {name: value for name, value in fields.items() if value}


def summed_column(dataset: Dataset) -> str:
    """The column whose total is a user's contributions, so that a count of them is its sum; empty where rows count."""
    if dataset.contribution is not Contribution.TOTAL or dataset.totals is None:
        return ""
    return dataset.totals.column


def one_group_column(dataset: Dataset) -> dict[str, Any]:
    """What a program that groups is told where several columns name a group: the file has no such column yet."""
    groups = dataset.pairs or dataset.tasks
    return {"known_columns": False} if groups is not None and groups.further_columns else {}


def file_of(dataset: Dataset) -> str:
    """Return what the data's file is called."""
    named = {sample.title: f"sample_data/{sample.file_name}" for sample in samples.SAMPLES.values()}
    return named.get(dataset.name, dataset.name) or "events.csv"


def forms(epsilon: float, base: Mapping[str, Any], forms: Iterable[Form]) -> CodeChoice | None:
    """Return those of the forms that can be written, or None if none can."""
    found = []
    for name, released, fields in forms:
        try:
            found.append((name, Choice(released, epsilon, **{**base, **fields})))
        except InvalidInput:  # A bound of 0 rows, an empty range: nothing that code could apply.
            continue
    return CodeChoice(tuple(found)) if found else None


def cap_form(rows: float) -> str:
    """Return what a bound on rows is called."""
    return f"Bound, {wording.counted(rows, 'row')}"


def smooth_form(threshold: float) -> str:
    """Return what smooth weights are called."""
    return f"Smooth weights, bound {wording.number(threshold)}"
