"""A plan as a program: every line at its whole parts of one budget, under its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcore.code import Part, Several
from dpcore.code.choice import Choice
from dpcore.code.choice import Released as Written
from dpcore.code.forms import of_data
from dpcore.dataset import Dataset
from dpcore.plan.budget import Budget
from dpcore.plan.drawn import DrawnLine, total_amount
from dpcore.plan.lines import Released
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.table import rank_weights
from dpcore.quantile import WeightKind
from dpcore.total.parameters import Summed, user_totals


def program_of(
    data: Dataset, parameters: PlanParameters, lines: Sequence[DrawnLine], budget: Budget | None = None
) -> Several | None:
    """What `dpcore.code.write` writes for a library; None where every line is published as 0.

    Args:
        data: What the lines were read off.
        parameters: What was asked for.
        lines: As they are drawn.
        budget: What is divided, where it is not that of the parameters.
    """
    kept = [line for line in lines if not line.dropped]
    if not kept:
        return None
    whole = parameters.budget if budget is None else budget
    return Several(
        tuple(
            Part(line.planned.line.what, choice_of(data, parameters, line, whole.epsilon), line.parts)
            for line in kept
        ),
        whole.epsilon,
        total_amount(whole),
        whole.noise,
        whole.delta,
        tuple(line.planned.line.what for line in lines if line.dropped),
    )


def choice_of(data: Dataset, parameters: PlanParameters, line: DrawnLine, epsilon: float) -> Choice:
    """One line as a release with the names that the data have; its noise is that of the plan."""
    kind = line.planned.line.released
    sums = data.pairs.sums if kind is Released.GROUP_SUMS and data.pairs is not None else None
    signed = kind is Released.SUM and user_totals(data, Summed.VALUES).amounts is None
    signed |= sums is not None and float(sums.min(initial=0.0)) < 0.0
    released, bounds = _bounds(line, rank_weights(parameters))
    if signed:
        bounds["min_total"] = -bounds["max_total"]
    if kind.ranged:
        bounds |= {"lower": parameters.lower, "upper": parameters.upper}
    return Choice(released, epsilon, **of_data(data), **bounds)


def _bounds(line: DrawnLine, ranks: WeightKind) -> tuple[Written, dict[str, Any]]:
    bound, second = line.bound, line.second
    match line.planned.line.released:
        case Released.USERS:
            return Written.COUNT, {"max_rows": 1}
        case Released.ROWS:
            return Written.COUNT, {"max_rows": int(bound)}
        case Released.SUM:
            return Written.SUM, {"max_total": bound}
        case Released.MEAN:
            return Written.MEAN, {"max_rows": int(bound)}
        case Released.QUANTILE:
            by_user = {"max_rows": int(bound)} if ranks is WeightKind.CAP else {"threshold": bound}
            return Written.QUANTILE, {"quantiles": (line.planned.line.quantile,), **by_user}
        case Released.GROUP_USERS:
            return Written.GROUP_COUNTS, {"max_groups": int(bound)}
        case Released.GROUP_ROWS:
            return Written.GROUP_ROWS, {"max_groups": int(bound), "max_rows": int(second)}
        case Released.GROUP_SUMS:
            return Written.GROUP_SUMS, {"max_groups": int(bound), "max_total": second}
