"""What is found for a plan on data: shares, bounds and errors, beside an equal split, and what each line needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.errors import refusal
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.budget import Budget
from dpcore.plan.drawn import DrawnLine, drawn, weighted_sum
from dpcore.plan.least_sum import Split, least_sum
from dpcore.plan.lines import Released
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.reach import largest_error, needed_budgets
from dpcore.plan.rounding import PARTS
from dpcore.plan.table import PlannedLine, planned
from dpcore.total.nonnegative import SHORT_COST

SPARE = 2
"""Parts of 2^20 of the budget that each line gets beyond its need: shares are rounded to whole parts."""
_DEARER, _TRIES = 1.02, 40
"""A quantile's curve is read between points; what it needs for its error exactly is approached in such steps."""
_ROUNDED = 1.0 + 2.0 * SHORT_COST
"""A bound on totals that is rounded errs at most `SHORT_COST` more, for which so much more budget makes up."""


@dataclass(frozen=True, eq=False)
class PlanFound:
    """A plan on given data.

    Attributes:
        planned: The lines with their curves.
        budget: What is divided: as entered, or the least one that is enough.
        lines: As a program draws them, in the order in which they were written.
        equal: The same lines at equal shares, each under its best bound there.
        split: The search for the least sum; None where the objective is another.
        needed: What each line needs for its wanted error of what adds up (epsilon, or mu^2); infinite where none is
            enough, shape (lines,).
    """

    planned: tuple[PlannedLine, ...]
    budget: Budget
    lines: tuple[DrawnLine, ...]
    equal: tuple[DrawnLine, ...]
    split: Split | None
    needed: FloatArray

    @property
    def reached(self) -> int:
        """How many lines have their wanted error."""
        return sum(line.reached for line in self.lines)

    @cached_property
    def enough(self) -> float:
        """The least epsilon at which all lines have their wanted errors at once; infinite where there is none."""
        return self.budget.epsilon_of(float(self.needed.sum()))

    @property
    def eater(self) -> int:
        """Number of the line that needs most of the budget."""
        return int(np.argmax(self.needed))

    @cached_property
    def reached_at(self) -> tuple[float, ...]:
        """Epsilon of the whole plan at which each line has its wanted error, its share kept."""
        found = []
        for line, needs in zip(self.lines, self.needed.tolist(), strict=True):
            if line.dropped:
                found.append(0.0 if line.reached else math.inf)
            else:
                found.append(self.budget.epsilon_of(needs / line.share))
        return tuple(found)

    @cached_property
    def more_by_equal(self) -> float:
        """How many times the root of the weighted sum of squares an equal split has."""
        best = weighted_sum(self.lines)
        return math.sqrt(weighted_sum(self.equal) / best) if best > 0.0 else 1.0

    def size(self, lines: Sequence[DrawnLine], largest: bool) -> float:
        """Root of the weighted mean square of error over wanted error, or the largest of them."""
        if largest:
            return max(line.error / line.planned.wanted for line in lines)
        return math.sqrt(weighted_sum(lines) / math.fsum(line.line.weight for line in self.planned))

    def ratios(self, lines: Sequence[DrawnLine], v_whole: FloatArray) -> list[FloatArray]:
        """Error over wanted error of each line, its share kept, where a line that takes all of the budget has these v.

        Args:
            lines: At their shares.
            v_whole: Squares of noise scales at sensitivity 1, shape (k,).
        """
        found = []
        for line in lines:
            with np.errstate(divide="ignore"):
                v = v_whole / np.float64(line.share) ** self.budget.power
            found.append(np.sqrt(line.planned.curve.best(v).squares) / line.planned.wanted)
        return found


def find(
    data: Dataset, parameters: PlanParameters, lines: tuple[PlannedLine, ...] | None = None
) -> PlanFound:
    """Divide the budget.

    Args:
        data: The data.
        parameters: The question.
        lines: `planned` of both, which do not depend on epsilon.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.
    """
    of = planned(data, parameters) if lines is None else lines
    curves = [line.curve for line in of]
    wanted = np.array([line.wanted for line in of])
    budget, split = parameters.budget, None
    needed = needed_budgets(curves, wanted, budget)
    if parameters.objective is Objective.SUM:
        split = least_sum(curves, np.array([line.weight for line in of]), budget)
        shares = split.shares
    elif parameters.objective is Objective.LARGEST:
        shares = largest_error(curves, wanted, budget)
    else:
        budget, shares, needed = _least(data, parameters, of, needed)
    equal = np.full(len(of), 1.0 / len(of))
    return PlanFound(
        of,
        budget,
        drawn(data, parameters, of, shares, budget),
        drawn(data, parameters, of, equal, budget),
        split,
        needed,
    )


def _least(
    data: Dataset, parameters: PlanParameters, of: Sequence[PlannedLine], needed: FloatArray
) -> tuple[Budget, FloatArray, FloatArray]:
    """The least budget with which all lines have their wanted errors, their shares of it, and what each needs."""
    budget = parameters.budget
    never = [line.line.what for line, needs in zip(of, needed.tolist(), strict=True) if math.isinf(needs)]
    if never:
        raise refusal(
            f"no ε is enough for {' and '.join(never)}: more than the wanted error stays without any noise",
            remedy="Want less of it",
        )
    low, high = EPSILON_RANGE
    for _ in range(_TRIES):
        with_spare = needed + needed.sum() * (SPARE / PARTS)
        total = float(with_spare.sum())
        epsilon = budget.epsilon_of(total)
        if epsilon > high:
            which = of[int(np.argmax(needed))].line.what
            raise refusal(
                f"all wanted errors need ε = {epsilon:.3g}, which promises nothing; most of it is for {which}",
                remedy="Want less of it, or leave it out",
            )
        if total == 0.0 or epsilon < low:
            # Publishing 0 is nearly as good as wanted: the least that may be entered is more than enough.
            return replace(budget, epsilon=low), np.full(len(of), 1.0 / len(of)), needed
        # By more than `total_amount` rounds off.
        least = replace(budget, epsilon=epsilon * (1.0 + 1e-6))
        lines = drawn(data, parameters, of, with_spare / total, least)
        dearer = np.array([1.0 if line.reached else _dearer(line) for line in lines])
        if (dearer == 1.0).all():
            break
        needed = needed * dearer
    return least, with_spare / total, needed


def _dearer(line: DrawnLine) -> float:
    """By how much more is tried of a line that errs a little more as it is drawn than by its curve."""
    if line.planned.line.released is Released.QUANTILE:
        return _DEARER
    return _ROUNDED if line.planned.line.released is Released.SUM else 1.0


def exact_epsilon(found: PlanFound) -> float | None:
    """Epsilon that the drawn noise spends by an exact account; None where the program's account is exact itself."""
    ranked = any(line.line.released is Released.QUANTILE for line in found.planned)
    return None if ranked or found.budget.noise is NoiseKind.LAPLACE else found.budget.spent


def against_epsilon(data: Dataset, parameters: PlanParameters) -> str:
    """Why *Compare* has no curve over epsilon for a plan."""
    return "A plan has a bound and an error for each of its numbers: its own figure shows all of them over ε."
