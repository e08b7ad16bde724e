"""The chosen bounds with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, Form, forms, of_data, one_group_column
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group import Statistic, VectorRule
from dpcore.per_group.answer.found import PerGroupFound
from dpcore.per_group.words import short

RELEASED = {
    Statistic.ROWS: Released.GROUP_ROWS,
    Statistic.USERS: Released.GROUP_COUNTS,
    Statistic.SUM: Released.GROUP_SUMS,
    Statistic.SIGNED_SUM: Released.GROUP_SUMS,
    Statistic.MEAN: Released.GROUP_MEANS,
}


def of_found(found: PerGroupFound, data: Dataset) -> CodeChoice | None:
    """The best pair first, as the card says it; then the bounds on whole vectors."""
    asked = found.parameters
    if asked.selection.private:  # The programs release every group of a public list.
        return None
    base: dict[str, Any] = of_data(data) | {
        "noise": asked.noise,
        "delta": asked.delta,
        "neighbours": asked.neighbours,
        **ROWS_OF_THE_FILE,
        **one_group_column(data),
    }
    if found.value_column:
        base["value_column"] = found.value_column
    if asked.statistic is Statistic.MEAN:
        base |= {"lower": asked.lower, "upper": asked.upper}
    return forms(asked.epsilon, base, [*_pair(found), *_vectors(found)])


def _pair(found: PerGroupFound) -> list[Form]:
    if found.pair is None:
        return []
    statistic, amount = found.parameters.statistic, found.pair.max_amount
    bounds: dict[str, Any] = {"max_groups": found.pair.max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bounds["max_rows"] = int(amount)
    elif statistic is not Statistic.USERS:
        bounds |= {"max_total": amount, "min_total": -amount if statistic is Statistic.SIGNED_SUM else 0.0}
    name = f"Pair, {wording.number(found.pair.max_groups)} × {wording.number(amount)}"
    return [(name, RELEASED[statistic], bounds)]


def _vectors(found: PerGroupFound) -> list[Form]:
    """Cap and scaling, the better first."""
    chosen = sorted((x for x in (found.cap, found.radial) if x is not None), key=lambda x: x.error)
    released = RELEASED[found.parameters.statistic]
    return [
        (
            f"{'Cap' if x.rule is VectorRule.CAP else 'Scaling'}, T = {wording.number(short(x.max_norm))}",
            released,
            {"max_norm": short(x.max_norm), "scaled": x.rule is VectorRule.RADIAL},
        )
        for x in chosen
    ]
