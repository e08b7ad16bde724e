"""Programs for the chosen bounds, with the column names of the data, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Quantity
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    Form,
    build_forms,
    fields_of_data,
    one_group_column,
)
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group.answer.found import PerGroupSolution
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair
from dpcore.per_group.whole_vector import VectorRule
from dpcore.per_group.words import round_up

QUANTITIES = {
    Statistic.ROWS: Quantity.GROUP_ROWS,
    Statistic.USERS: Quantity.GROUP_COUNTS,
    Statistic.SUM: Quantity.GROUP_SUMS,
    Statistic.SIGNED_SUM: Quantity.GROUP_SUMS,
    Statistic.MEAN: Quantity.GROUP_MEANS,
}


def write_forms(solution: PerGroupSolution, data: Dataset) -> CodeChoice | None:
    """Write programs for the best pair, then for the bounds on whole vectors; None for private groups."""
    parameters = solution.parameters
    if parameters.selection.private:  # The programs release every group of a public list.
        return None
    pair = (
        []
        if solution.pair is None
        else [_pair_form(parameters, solution.pair.max_groups, solution.pair.max_amount)]
    )
    return build_forms(
        parameters.epsilon,
        _base_options(parameters, data, solution.value_column),
        [*pair, *_vector_forms(solution)],
    )


def write_private_forms(
    private_pair: PrivatePair, data: Dataset, epsilon: float | None = None
) -> CodeChoice | None:
    """Write programs for a pair that was chosen privately; ``epsilon`` replaces that of the release, if given."""
    parameters = private_pair.problem.parameters
    is_sum = parameters.statistic is Statistic.SUM and data.pairs is not None
    base = _base_options(
        parameters, data, data.pairs.value_column if is_sum and data.pairs is not None else ""
    )
    form = _pair_form(parameters, private_pair.max_groups, private_pair.max_amount)
    return build_forms(
        parameters.epsilon if epsilon is None else epsilon, base | {"disclosure": private_pair.facts}, [form]
    )


def _base_options(parameters: PerGroupParameters, data: Dataset, value_column: str) -> dict[str, Any]:
    base: dict[str, Any] = fields_of_data(data) | {
        "noise": parameters.noise,
        "delta": parameters.delta,
        "neighbours": parameters.neighbours,
        **ROWS_OF_THE_FILE,
        **one_group_column(data),
    }
    if value_column:
        base["value_column"] = value_column
    if parameters.statistic is Statistic.MEAN:
        base |= {"lower": parameters.lower, "upper": parameters.upper}
    return base


def _pair_form(parameters: PerGroupParameters, max_groups: int, amount: float) -> Form:
    statistic = parameters.statistic
    bounds: dict[str, Any] = {"max_groups": max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bounds["max_rows"] = int(amount)
    elif statistic is not Statistic.USERS:
        bounds |= {"max_total": amount, "min_total": -amount if statistic is Statistic.SIGNED_SUM else 0.0}
    name = f"Pair, {wording.number(max_groups)} × {wording.number(amount)}"
    return name, QUANTITIES[statistic], bounds


def _vector_forms(solution: PerGroupSolution) -> list[Form]:
    """Return the forms of one level and of scaling, the better first."""
    choices = sorted((x for x in (solution.cap, solution.radial) if x is not None), key=lambda x: x.error)
    quantity = QUANTITIES[solution.parameters.statistic]
    return [
        (
            f"{'One level' if x.rule is VectorRule.CAP else 'Scaling'}, bound {wording.number(round_up(x.max_norm))}",
            quantity,
            {"max_norm": round_up(x.max_norm), "scaled": x.rule is VectorRule.RADIAL},
        )
        for x in choices
    ]
