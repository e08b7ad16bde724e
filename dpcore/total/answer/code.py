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
from dpcore.total.answer.found import SignedSolution, TotalSolution
from dpcore.total.parameters import TotalParameters


def write_total_forms(solution: TotalSolution, dataset: Dataset) -> CodeChoice | None:
    """Describe the best bound on a count of rows or a sum, for programs; None where no library has it."""
    problem, bound = solution.problem, solution.bound
    base = fields_of_data(dataset) | {"noise": problem.mechanism, "delta": problem.delta}
    if column := solution.unit.column or summed_column(dataset):
        fields = {"max_total": bound, "value_column": column} | ROWS_OF_THE_FILE
        return build_forms(problem.epsilon, base, [("Clamp", Quantity.SUM, fields)])
    return build_forms(problem.epsilon, base, [(cap_form(bound), Quantity.COUNT, {"max_rows": bound})])


def write_signed_forms(
    solution: SignedSolution, dataset: Dataset, parameters: TotalParameters
) -> CodeChoice | None:
    """Describe the range for totals of both signs, for programs; one that the person entered is a public input."""
    fields = {
        "max_total": solution.clipped.high,
        "min_total": solution.clipped.low,
        "value_column": solution.unit.column,
    }
    fields |= ROWS_OF_THE_FILE
    base = fields_of_data(dataset) | {"noise": parameters.mechanism, "delta": parameters.delta}
    if solution.is_entered:
        base["disclosure"] = Disclosure.PUBLIC
    return build_forms(parameters.epsilon, base, [("Clamp", Quantity.SUM, fields)])
