"""A plan as a program releases it: shares as integer parts, the bound and the exact error of every line.

Shares are first found as real numbers. A program gets integer parts of 2^20, whose sum no rounding lifts above
the whole budget; the error of a line is then computed again from them, so that the page and the program have
the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.code.choice import Choice
from dpcore.code.choice import Quantity as CodeStatistic
from dpcore.code.forms import fields_of_data
from dpcore.code.several import ReleaseShare, Several
from dpcore.dataset import Dataset
from dpcore.plan.curves import RankCurve, TotalCurve
from dpcore.plan.lines import NUM_PARTS, Budget, LineStatistic, round_amount_down, round_to_parts
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.table import PlannedLine, choose_rank_weights, compute_rank_error
from dpcore.quantile.rows import WeightKind
from dpcore.total.parameters import Summed, user_totals


@dataclass(frozen=True)
class AllocatedLine:
    """A line with its share of the budget.

    Attributes:
        planned: What is released, and what it costs.
        num_parts: Its share of the budget, in parts of 2^20; 0 where 0 is published in its place.
        amount: What it takes of what adds up: epsilon with Laplace noise, rho = mu^2 / 2 with Gaussian noise.
        v: Square of its noise scale at sensitivity 1; infinite where it is dropped.
        bound: Bound on rows, on a total, on groups; 0 where it is dropped.
        second_bound: Of pairs the bound on the amount in each group; NaN of others.
        error: Root of the mean square, in the line's unit; of a quantile the expected share of rows between.
    """

    planned: PlannedLine
    num_parts: int
    amount: float
    v: float
    bound: float
    second_bound: float
    error: float

    @property
    def is_dropped(self) -> bool:
        """Return True if 0 is published instead."""
        return self.num_parts == 0

    @property
    def share(self) -> float:
        """Return the share of the budget."""
        return self.num_parts / NUM_PARTS

    @property
    def is_reached(self) -> bool:
        """Return True if the error is at most the target error."""
        return self.error <= self.planned.target_error


def compute_total_amount(budget: Budget) -> float:
    """Compute the amount that a program may spend, in 32 binary digits: epsilon, or rho = mu^2 / 2 if Gaussian."""
    if budget.power == 2:
        return round_amount_down(budget.epsilon)
    # The search for sigma ends at 1e-9 of it: what is lost here keeps the conversion of rho on the safe side of it.
    return round_amount_down(0.5 / budget.full_v * (1.0 - 2.0**-32))


def allocate_lines(
    dataset: Dataset,
    parameters: PlanParameters,
    planned_lines: Sequence[PlannedLine],
    shares: npt.ArrayLike,
    budget: Budget | None = None,
) -> tuple[AllocatedLine, ...]:
    """Allocate integer parts of the budget to every line, under the best bound there.

    A bound on totals is rounded to few digits, as the exact one is often one user's total; its error is that of
    the rounded bound, at most 0.1 % more. A line whose best release at its share is 0 is dropped, and the
    others get its share. A quantile that errs less with less of the budget takes less.

    Args:
        dataset: What the lines were read off.
        parameters: What was asked for.
        planned_lines: The lines.
        shares: Of the budget, at least 0, not all 0, shape (lines,).
        budget: What is divided, where it is not that of the parameters.

    Returns:
        One per line; their parts add up to at most 2^20.
    """
    divided_budget = parameters.budget if budget is None else budget
    share_array = np.array(shares, dtype=np.float64)
    # A line that cannot be published as 0, a mean or a quantile, has at least one part.
    share_array = np.where(
        (share_array > 0.0) | [_can_be_zero(line) for line in planned_lines],
        share_array,
        share_array.sum() / NUM_PARTS,
    )
    amount_per_part = compute_total_amount(divided_budget) / NUM_PARTS
    num_parts = round_to_parts(share_array)
    # Each round drops a line, so that it ends. If all remaining lines are best published as 0, they keep their shares.
    while True:
        line_vs = [
            _convert_to_v(line_parts * amount_per_part, divided_budget) for line_parts in num_parts.tolist()
        ]
        optima = [
            line.curve.best(np.array([line_v])) for line, line_v in zip(planned_lines, line_vs, strict=True)
        ]
        is_zero = np.array([optimum.bounds[0] == 0.0 for optimum in optima]) & (num_parts > 0)
        if not is_zero.any() or is_zero[num_parts > 0].all():
            break
        share_array[is_zero] = 0.0
        num_parts = round_to_parts(np.where(num_parts > 0, share_array, 0.0))
    num_parts = np.where(is_zero, 0, num_parts)
    allocated = []
    for line, line_parts, line_v, optimum in zip(
        planned_lines, num_parts.tolist(), line_vs, optima, strict=True
    ):
        if line_parts == 0:
            zero_optimum = line.curve.best(np.array([math.inf]))
            allocated.append(
                AllocatedLine(line, 0, 0.0, math.inf, 0.0, math.nan, math.sqrt(zero_optimum.squares[0]))
            )
            continue
        bound, second_bound, error = (
            float(optimum.bounds[0]),
            float(optimum.seconds[0]),
            math.sqrt(max(optimum.squares[0], 0.0)),
        )
        if isinstance(line.curve, TotalCurve):
            bound, square = line.curve.find_short_bound(bound, line_v)
            error = math.sqrt(square)
        if line.line.statistic is LineStatistic.QUANTILE:
            assert isinstance(line.curve, RankCurve)
            line_parts = max(
                1,
                min(
                    line_parts,
                    math.floor(
                        _convert_to_amount(line.curve.find_v_of_release(line_v), divided_budget)
                        / amount_per_part
                    ),
                ),
            )
            line_v = _convert_to_v(line_parts * amount_per_part, divided_budget)
            bound = float(line.curve.best(np.array([line_v])).bounds[0])
            error = compute_rank_error(dataset, parameters, line, line_v, bound)
        allocated.append(
            AllocatedLine(line, line_parts, line_parts * amount_per_part, line_v, bound, second_bound, error)
        )
    return tuple(allocated)


def _can_be_zero(line: PlannedLine) -> bool:
    """Return True if 0 may be published instead of the line."""
    return bool(line.curve.best(np.array([math.inf])).bounds[0] == 0.0)


def _convert_to_v(amount: float, budget: Budget) -> float:
    """Convert an epsilon, or a rho, to the square of the noise scale at sensitivity 1."""
    if amount == 0.0:
        return math.inf
    return amount**-2.0 if budget.power == 2 else 0.5 / amount


def _convert_to_amount(v: float, budget: Budget) -> float:
    """Convert the square of the noise scale at sensitivity 1 to an epsilon, or to a rho."""
    return v**-0.5 if budget.power == 2 else 0.5 / v


def sum_weighted_squares(lines: Sequence[AllocatedLine]) -> float:
    """Sum squared errors over target errors, weighted, as the program releases them."""
    return math.fsum(allocated_line.planned.weight * allocated_line.error**2 for allocated_line in lines)


def describe_coverage(planned_lines: Sequence[PlannedLine]) -> str:
    """Describe the bounds that a certificate covers, without a full stop."""
    incomplete = [line.line.label for line in planned_lines if not line.has_all_bounds]
    has_totals = any(
        isinstance(line.curve, TotalCurve) and not line.curve.is_integer for line in planned_lines
    )
    rounding_text = "; rounding a bound on totals adds at most 0.1 % to its error" if has_totals else ""
    if any(line.line.statistic is LineStatistic.MEAN for line in planned_lines):
        rounding_text = f"; of a mean it is about the delta-method approximation of the error{rounding_text}"
    if not incomplete:
        return f"It covers all splits of the budget and all bounds of every line{rounding_text}"
    labels = ", ".join(incomplete)
    return (
        f"It covers all splits of the budget; of {labels} it covers the bounds that were looked at, not "
        f"all{rounding_text}"
    )


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
