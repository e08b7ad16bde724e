"""The chosen bounds with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, Form, forms, of_data, one_group_column
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group import Statistic, VectorRule
from dpcore.per_group.words import short
from pages.per_group.answer import PerGroupView

RELEASED = {
    Statistic.ROWS: Released.GROUP_ROWS,
    Statistic.USERS: Released.GROUP_COUNTS,
    Statistic.SUM: Released.GROUP_SUMS,
    Statistic.SIGNED_SUM: Released.GROUP_SUMS,
    Statistic.MEAN: Released.GROUP_MEANS,
}


def of_view(view: PerGroupView, data: Dataset) -> CodeChoice | None:
    """The best pair first, as the card says it; then the bounds on whole vectors."""
    asked = view.parameters
    if asked.selection.private:  # The programs release every group of a public list.
        return None
    base: dict[str, Any] = of_data(data) | {
        "noise": asked.noise,
        "delta": asked.delta,
        "neighbours": asked.neighbours,
        **ROWS_OF_THE_FILE,
        **one_group_column(data),
    }
    if view.value_column:
        base["value_column"] = view.value_column
    if asked.statistic is Statistic.MEAN:
        base |= {"lower": asked.lower, "upper": asked.upper}
    return forms(asked.epsilon, base, [*_pair(view), *_vectors(view)])


def _pair(view: PerGroupView) -> list[Form]:
    if view.pair is None:
        return []
    statistic, amount = view.parameters.statistic, view.pair.max_amount
    bounds: dict[str, Any] = {"max_groups": view.pair.max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bounds["max_rows"] = int(amount)
    elif statistic is not Statistic.USERS:
        bounds |= {"max_total": amount, "min_total": -amount if statistic is Statistic.SIGNED_SUM else 0.0}
    name = f"Pair, {wording.number(view.pair.max_groups)} × {wording.number(amount)}"
    return [(name, RELEASED[statistic], bounds)]


def _vectors(view: PerGroupView) -> list[Form]:
    """Cap and scaling, the better first."""
    chosen = sorted((x for x in (view.cap, view.radial) if x is not None), key=lambda x: x.error)
    released = RELEASED[view.parameters.statistic]
    return [
        (
            f"{'Cap' if x.rule is VectorRule.CAP else 'Scaling'}, T = {wording.number(short(x.max_norm))}",
            released,
            {"max_norm": short(x.max_norm), "scaled": x.rule is VectorRule.RADIAL},
        )
        for x in chosen
    ]
