"""A plan as a program releases it: shares as integer parts, and the bound and the exact error of every line.

Shares are first found as real numbers. A program gets integer parts of 2^20, whose sum no rounding lifts above
the whole budget; the error of a line is then computed again from them, so that the page and the program have
the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.dataset import Dataset
from dpcore.plan.budget import Budget
from dpcore.plan.curves import RankCurve, TotalCurve
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.rounding import NUM_PARTS, round_amount_down, round_to_parts
from dpcore.plan.table import PlannedLine, compute_rank_error


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
