"""A plan as a program: every line with its integer parts of one budget, under its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcore.code import ReleaseShare, Several
from dpcore.code.choice import Choice
from dpcore.code.choice import Quantity as CodeStatistic
from dpcore.code.forms import fields_of_data
from dpcore.dataset import Dataset
from dpcore.plan.budget import Budget
from dpcore.plan.drawn import AllocatedLine, compute_total_amount
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.table import choose_rank_weights
from dpcore.quantile import WeightKind
from dpcore.total.parameters import Summed, user_totals


def make_program(
    dataset: Dataset, parameters: PlanParameters, lines: Sequence[AllocatedLine], budget: Budget | None = None
) -> Several | None:
    """Make the choice that `dpcore.code.write` writes for a library; None if every line is published as 0.

    Args:
        dataset: What the lines were read off.
        parameters: What was asked for.
        lines: As they are drawn.
        budget: What is divided, where it is not that of the parameters.
    """
    released_lines = [line for line in lines if not line.is_dropped]
    if not released_lines:
        return None
    divided_budget = parameters.budget if budget is None else budget
    return Several(
        tuple(
            ReleaseShare(
                line.planned.line.label,
                make_choice(dataset, parameters, line, divided_budget.epsilon),
                line.num_parts,
            )
            for line in released_lines
        ),
        divided_budget.epsilon,
        compute_total_amount(divided_budget),
        divided_budget.noise,
        divided_budget.delta,
        tuple(line.planned.line.label for line in lines if line.is_dropped),
    )


def make_choice(dataset: Dataset, parameters: PlanParameters, line: AllocatedLine, epsilon: float) -> Choice:
    """Make a release of one line with the names that the data have; its noise is that of the plan."""
    statistic = line.planned.line.statistic
    sums = dataset.pairs.sums if statistic is LineStatistic.GROUP_SUMS and dataset.pairs is not None else None
    is_signed = statistic is LineStatistic.SUM and user_totals(dataset, Summed.VALUES).amounts is None
    is_signed |= sums is not None and float(sums.min(initial=0.0)) < 0.0
    released_statistic, bounds = _convert_bounds(line, choose_rank_weights(parameters))
    if is_signed:
        bounds["min_total"] = -bounds["max_total"]
    if statistic.needs_range:
        bounds |= {"lower": parameters.lower, "upper": parameters.upper}
    return Choice(released_statistic, epsilon, **fields_of_data(dataset), **bounds)


def _convert_bounds(
    line: AllocatedLine, rank_weights_kind: WeightKind
) -> tuple[CodeStatistic, dict[str, Any]]:
    """Convert the bounds of a line to the fields of a release."""
    bound, second_bound = line.bound, line.second_bound
    match line.planned.line.statistic:
        case LineStatistic.USERS:
            return CodeStatistic.COUNT, {"max_rows": 1}
        case LineStatistic.ROWS:
            return CodeStatistic.COUNT, {"max_rows": int(bound)}
        case LineStatistic.SUM:
            return CodeStatistic.SUM, {"max_total": bound}
        case LineStatistic.MEAN:
            return CodeStatistic.MEAN, {"max_rows": int(bound)}
        case LineStatistic.QUANTILE:
            user_bounds = (
                {"max_rows": int(bound)} if rank_weights_kind is WeightKind.CAP else {"threshold": bound}
            )
            return CodeStatistic.QUANTILE, {"quantiles": (line.planned.line.quantile,), **user_bounds}
        case LineStatistic.GROUP_USERS:
            return CodeStatistic.GROUP_COUNTS, {"max_groups": int(bound)}
        case LineStatistic.GROUP_ROWS:
            return CodeStatistic.GROUP_ROWS, {"max_groups": int(bound), "max_rows": int(second_bound)}
        case LineStatistic.GROUP_SUMS:
            return CodeStatistic.GROUP_SUMS, {"max_groups": int(bound), "max_total": second_bound}
