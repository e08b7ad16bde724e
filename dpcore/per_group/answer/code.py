"""The chosen bounds with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from typing import Any

from dpcore.code import Released
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, Form, forms, of_data, one_group_column
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group.answer.found import PerGroupFound
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair
from dpcore.per_group.whole_vector import VectorRule
from dpcore.per_group.words import short

RELEASED = {
    Statistic.ROWS: Released.GROUP_ROWS,
    Statistic.USERS: Released.GROUP_COUNTS,
    Statistic.SUM: Released.GROUP_SUMS,
    Statistic.SIGNED_SUM: Released.GROUP_SUMS,
    Statistic.MEAN: Released.GROUP_MEANS,
}


def of_found(found: PerGroupFound, data: Dataset) -> CodeChoice | None:
    """Return the best pair first, as the card says it; then the bounds on whole vectors."""
    asked = found.parameters
    if asked.selection.private:  # The programs release every group of a public list.
        return None
    pair = [] if found.pair is None else [_pair(asked, found.pair.max_groups, found.pair.max_amount)]
    return forms(asked.epsilon, _base(asked, data, found.value_column), [*pair, *_vectors(found)])


def of_private(drawn: PrivatePair, data: Dataset, epsilon: float | None = None) -> CodeChoice | None:
    """A pair that was chosen privately; ``epsilon`` of the release where it is another than the choice was for."""
    asked = drawn.problem.parameters
    summed = asked.statistic is Statistic.SUM and data.pairs is not None
    base = _base(asked, data, data.pairs.value_column if summed and data.pairs is not None else "")
    form = _pair(asked, drawn.max_groups, drawn.max_amount)
    return forms(asked.epsilon if epsilon is None else epsilon, base | {"disclosure": drawn.facts}, [form])


def _base(asked: PerGroupParameters, data: Dataset, value_column: str) -> dict[str, Any]:
    base: dict[str, Any] = of_data(data) | {
        "noise": asked.noise,
        "delta": asked.delta,
        "neighbours": asked.neighbours,
        **ROWS_OF_THE_FILE,
        **one_group_column(data),
    }
    if value_column:
        base["value_column"] = value_column
    if asked.statistic is Statistic.MEAN:
        base |= {"lower": asked.lower, "upper": asked.upper}
    return base


def _pair(asked: PerGroupParameters, max_groups: int, amount: float) -> Form:
    statistic = asked.statistic
    bounds: dict[str, Any] = {"max_groups": max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bounds["max_rows"] = int(amount)
    elif statistic is not Statistic.USERS:
        bounds |= {"max_total": amount, "min_total": -amount if statistic is Statistic.SIGNED_SUM else 0.0}
    name = f"Pair, {wording.number(max_groups)} × {wording.number(amount)}"
    return name, RELEASED[statistic], bounds


def _vectors(found: PerGroupFound) -> list[Form]:
    """Return one level and scaling, the better first."""
    chosen = sorted((x for x in (found.cap, found.radial) if x is not None), key=lambda x: x.error)
    released = RELEASED[found.parameters.statistic]
    return [
        (
            f"{'One level' if x.rule is VectorRule.CAP else 'Scaling'}, bound {wording.number(short(x.max_norm))}",
            released,
            {"max_norm": short(x.max_norm), "scaled": x.rule is VectorRule.RADIAL},
        )
        for x in chosen
    ]
