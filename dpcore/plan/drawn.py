"""A plan as a program draws it: shares in whole parts, and bound and error of every line at that share exactly.

Shares are first found as real numbers. A program gets whole parts of 2^20, whose sum no rounding lifts above the
whole; what a line is told about its error is computed anew from them, so that the page and the program speak of the
same noise.
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
from dpcore.plan.lines import Released
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.rounding import PARTS, in_parts, short
from dpcore.plan.table import PlannedLine, exact_rank_error


@dataclass(frozen=True)
class DrawnLine:
    """A line at its share of the budget.

    Attributes:
        planned: What is released, and what it costs.
        parts: Its share of the budget, in parts of 2^20; 0 where 0 is published in its place.
        amount: What it takes of what adds up: epsilon with Laplace noise, rho = mu^2 / 2 with Gaussian noise.
        v: Square of its noise scale at sensitivity 1; infinite where it is dropped.
        bound: Bound on rows, on a total, on groups; 0 where it is dropped.
        second: Of pairs the bound on the amount in each group; NaN of others.
        error: Root of the mean square, in the line's unit; of a quantile the expected share of rows between.
    """

    planned: PlannedLine
    parts: int
    amount: float
    v: float
    bound: float
    second: float
    error: float

    @property
    def dropped(self) -> bool:
        """Whether 0 is published in its place."""
        return self.parts == 0

    @property
    def share(self) -> float:
        """Of the budget."""
        return self.parts / PARTS

    @property
    def reached(self) -> bool:
        """Whether its error is at most the wanted one."""
        return self.error <= self.planned.wanted


def total_amount(budget: Budget) -> float:
    """What a program may spend in all, in 32 binary digits: epsilon, or rho = mu^2 / 2 with Gaussian noise."""
    if budget.power == 2:
        return short(budget.epsilon)
    # The search for sigma ends at 1e-9 of it: what is lost here keeps the conversion of rho on the safe side of it.
    return short(0.5 / budget.whole * (1.0 - 2.0**-32))


def drawn(
    data: Dataset,
    parameters: PlanParameters,
    planned: Sequence[PlannedLine],
    shares: npt.ArrayLike,
    budget: Budget | None = None,
) -> tuple[DrawnLine, ...]:
    """Every line at whole parts of the budget, under the best bound there.

    A bound on totals is rounded to few digits, as the exact one is often one user's total; its error is that of the
    rounded bound, at most 0.1 % more. A line that is best published as 0 at its share is dropped, and the others share
    what it had. A quantile that errs less with less of the budget takes less.

    Args:
        data: What the lines were read off.
        parameters: What was asked for.
        planned: The lines.
        shares: Of the budget, at least 0, not all 0, shape (lines,).
        budget: What is divided, where it is not that of the parameters.

    Returns:
        One per line; their parts add up to at most 2^20.
    """
    whole = parameters.budget if budget is None else budget
    s = np.array(shares, dtype=np.float64)
    # What cannot be published as 0, a mean or a quantile, has a part at least.
    s = np.where((s > 0.0) | [_is_nothing(line) for line in planned], s, s.sum() / PARTS)
    unit = total_amount(whole) / PARTS
    parts = in_parts(s)
    # Each round drops a line, so that it ends. Where all that are left are best published as 0, nobody takes their
    # shares.
    while True:
        v = [_v(p * unit, whole) for p in parts.tolist()]
        best = [line.curve.best(np.array([at])) for line, at in zip(planned, v, strict=True)]
        nothing = np.array([one.bounds[0] == 0.0 for one in best]) & (parts > 0)
        if not nothing.any() or nothing[parts > 0].all():
            break
        s[nothing] = 0.0
        parts = in_parts(np.where(parts > 0, s, 0.0))
    parts = np.where(nothing, 0, parts)
    found = []
    for line, p, at, one in zip(planned, parts.tolist(), v, best, strict=True):
        if p == 0:
            of_nothing = line.curve.best(np.array([math.inf]))
            found.append(DrawnLine(line, 0, 0.0, math.inf, 0.0, math.nan, math.sqrt(of_nothing.squares[0])))
            continue
        bound, second, error = (
            float(one.bounds[0]),
            float(one.seconds[0]),
            math.sqrt(max(one.squares[0], 0.0)),
        )
        if isinstance(line.curve, TotalCurve):
            bound, square = line.curve.short(bound, at)
            error = math.sqrt(square)
        if line.line.released is Released.QUANTILE:
            assert isinstance(line.curve, RankCurve)
            p = max(1, min(p, math.floor(_amount(line.curve.spent_at(at), whole) / unit)))
            at = _v(p * unit, whole)
            bound = float(line.curve.best(np.array([at])).bounds[0])
            error = exact_rank_error(data, parameters, line, at, bound)
        found.append(DrawnLine(line, p, p * unit, at, bound, second, error))
    return tuple(found)


def _is_nothing(line: PlannedLine) -> bool:
    return bool(line.curve.best(np.array([math.inf])).bounds[0] == 0.0)


def _v(amount: float, budget: Budget) -> float:
    """Square of the noise scale at sensitivity 1 for an epsilon, or for a rho."""
    if amount == 0.0:
        return math.inf
    return amount**-2.0 if budget.power == 2 else 0.5 / amount


def _amount(v: float, budget: Budget) -> float:
    return v**-0.5 if budget.power == 2 else 0.5 / v


def weighted_sum(lines: Sequence[DrawnLine]) -> float:
    """Sum of squared errors over wanted errors, weighted, as the program draws them."""
    return math.fsum(one.planned.weight * one.error**2 for one in lines)


def covered(planned: Sequence[PlannedLine]) -> str:
    """Which bounds a certificate covers, a sentence without its full stop."""
    some = [line.line.what for line in planned if not line.every]
    totals = any(isinstance(line.curve, TotalCurve) and not line.curve.whole for line in planned)
    rounded = "; rounding a bound on totals adds at most 0.1 % to its error" if totals else ""
    if any(line.line.released is Released.MEAN for line in planned):
        rounded = f"; of a mean it is about the delta-method approximation of the error{rounded}"
    if not some:
        return f"It covers all splits of the budget and all bounds of every line{rounded}"
    which = ", ".join(some)
    return f"It covers all splits of the budget; of {which} it covers the bounds that were looked at, not all{rounded}"
