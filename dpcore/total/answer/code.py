"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Quantity
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    build_forms,
    cap_form,
    fields_of_data,
    summed_column,
)
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.total.answer.found import SignedFound, TotalFound
from dpcore.total.parameters import TotalParameters


def of_total(found: TotalFound, dataset: Dataset) -> CodeChoice | None:
    """Return the best bound for a count of rows or a sum."""
    problem, bound = found.problem, found.bound
    base = fields_of_data(dataset) | {"noise": problem.mechanism, "delta": problem.delta}
    if column := found.unit.column or summed_column(dataset):
        fields = {"max_total": bound, "value_column": column} | ROWS_OF_THE_FILE
        return build_forms(problem.epsilon, base, [("Clamp", Quantity.SUM, fields)])
    return build_forms(problem.epsilon, base, [(cap_form(bound), Quantity.COUNT, {"max_rows": bound})])


def of_signed(found: SignedFound, dataset: Dataset, parameters: TotalParameters) -> CodeChoice | None:
    """Return the range for totals of both signs; one that the person entered is a public input."""
    fields = {
        "max_total": found.clipped.high,
        "min_total": found.clipped.low,
        "value_column": found.unit.column,
    }
    fields |= ROWS_OF_THE_FILE
    base = fields_of_data(dataset) | {"noise": parameters.mechanism, "delta": parameters.delta}
    if found.entered:
        base["disclosure"] = Disclosure.PUBLIC
    return build_forms(parameters.epsilon, base, [("Clamp", Quantity.SUM, fields)])
