"""The solution for a plan on data: shares, bounds and errors, an equal split, and the need of each line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.common.checks import EPSILON_RANGE, refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.allocation import AllocatedLine, allocate_lines, sum_weighted_squares
from dpcore.plan.least_sum import Split, find_least_sum, find_needed_budgets, split_by_largest_error
from dpcore.plan.lines import NUM_PARTS, Budget, LineStatistic
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, plan_lines
from dpcore.total.nonnegative import SHORT_COST

SPARE_PARTS = 2
"""Parts of 2^20 of the budget that each line gets beyond its need: shares are rounded to whole parts."""
_MAX_TRIES = 40
_NEED_FACTORS = {
    # A curve is read between points; what a quantile needs for its exact error is approached in such steps.
    LineStatistic.QUANTILE: 1.02,
    # A rounded bound on totals errs at most `SHORT_COST` more, for which so much more budget makes up.
    LineStatistic.SUM: 1.0 + 2.0 * SHORT_COST,
}


@dataclass(frozen=True, eq=False)
class PlanSolution:
    """A plan on given data.

    Attributes:
        parameters: The settings.
        planned: The lines with their curves.
        budget: What is divided: as entered, or the least one that is enough.
        lines: As a program releases them, in the order in which they were written.
        equal_split: The same lines at equal shares, each under its best bound there.
        split: The search for the least sum; None where the objective is another.
        needed_amounts: What each line needs for its wanted error of what adds up (epsilon, or mu^2); infinite where
            none is enough, shape (lines,).
    """

    parameters: PlanParameters
    planned: tuple[PlannedLine, ...]
    budget: Budget
    lines: tuple[AllocatedLine, ...]
    equal_split: tuple[AllocatedLine, ...]
    split: Split | None
    needed_amounts: FloatArray

    @property
    def num_reached(self) -> int:
        """Count the lines that reach their target error."""
        return sum(line.is_reached for line in self.lines)

    @cached_property
    def sufficient_epsilon(self) -> float:
        """Return the least epsilon at which all lines reach their target errors at once; infinite if there is none."""
        return self.budget.convert_to_epsilon(float(self.needed_amounts.sum()))

    @property
    def most_expensive(self) -> int:
        """Return the index of the line that needs most of the budget."""
        return int(np.argmax(self.needed_amounts))

    @cached_property
    def reaching_epsilons(self) -> tuple[float, ...]:
        """Return the epsilon of the whole plan at which each line reaches its target error, with its share."""
        epsilons = []
        for line, amount in zip(self.lines, self.needed_amounts.tolist(), strict=True):
            if line.is_dropped:
                epsilons.append(0.0 if line.is_reached else math.inf)
            else:
                epsilons.append(self.budget.convert_to_epsilon(amount / line.share))
        return tuple(epsilons)

    @cached_property
    def equal_split_factor(self) -> float:
        """Return the root of the equal split's weighted sum of squares over that of the plan."""
        plan_sum = sum_weighted_squares(self.lines)
        return math.sqrt(sum_weighted_squares(self.equal_split) / plan_sum) if plan_sum > 0.0 else 1.0

    def summarise_errors(self, lines: Sequence[AllocatedLine]) -> float:
        """Return the root of the weighted mean square of error over target error; the largest of them without a sum."""
        if self.parameters.objective is not Objective.SUM:
            return max(line.error_ratio for line in lines)
        return math.sqrt(sum_weighted_squares(lines) / math.fsum(line.line.weight for line in self.planned))

    @property
    def objective_value(self) -> float:
        """Return the quantity that the objective minimises: the size of the errors, the largest, or the epsilon."""
        if self.parameters.objective is Objective.REACH:
            return self.budget.epsilon
        return self.summarise_errors(self.lines)

    def compute_error_ratios(self, line: AllocatedLine, full_budget_v: FloatArray) -> FloatArray:
        """Compute error over target error of a line at its share, for other values of v at the full budget.

        Args:
            line: With its share.
            full_budget_v: Squares of noise scales at sensitivity 1, shape (k,).
        """
        with np.errstate(divide="ignore"):
            v = full_budget_v / np.float64(line.share) ** self.budget.power
        return np.asarray(np.sqrt(line.planned.curve.find_best(v).squared_errors) / line.planned.target_error)


def solve(
    dataset: Dataset, parameters: PlanParameters, planned_lines: tuple[PlannedLine, ...] | None = None
) -> PlanSolution:
    """Divide the budget.

    Args:
        dataset: The data.
        parameters: The settings.
        planned_lines: Result of `plan_lines` for both, which does not depend on epsilon.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.
    """
    planned_lines = plan_lines(dataset, parameters) if planned_lines is None else planned_lines
    curves = [line.curve for line in planned_lines]
    target_errors = np.array([line.target_error for line in planned_lines])
    budget, least_sum_split = parameters.budget, None
    equal_shares = np.full(len(curves), 1.0 / len(curves))
    needed_amounts = find_needed_budgets(curves, target_errors, budget)
    if parameters.objective is Objective.SUM:
        least_sum_split = find_least_sum(curves, np.array([line.weight for line in planned_lines]), budget)
        shares = least_sum_split.shares
    elif parameters.objective is Objective.LARGEST:
        shares = split_by_largest_error(curves, target_errors, budget)
    else:
        budget, shares, needed_amounts = _find_least_budget(
            dataset, parameters, planned_lines, needed_amounts
        )
    lines, equal_split = (
        allocate_lines(dataset, parameters, planned_lines, line_shares, budget)
        for line_shares in (shares, equal_shares)
    )
    return PlanSolution(
        parameters, planned_lines, budget, lines, equal_split, least_sum_split, needed_amounts
    )


def _find_least_budget(
    dataset: Dataset,
    parameters: PlanParameters,
    planned_lines: Sequence[PlannedLine],
    needed_amounts: FloatArray,
) -> tuple[Budget, FloatArray, FloatArray]:
    """Find the least budget at which all lines reach their target errors, their shares of it, and their needs."""
    labels = [line.line.label for line in planned_lines]
    unreachable_labels = [labels[index] for index in np.flatnonzero(np.isinf(needed_amounts))]
    if unreachable_labels:
        raise refuse(
            f"no ε is enough for {' and '.join(unreachable_labels)}: more than the wanted error stays without any "
            "noise",
            remedy="Want less of it",
        )
    smallest_epsilon, largest_epsilon = EPSILON_RANGE
    for _ in range(_MAX_TRIES):
        amounts_with_spare = needed_amounts + needed_amounts.sum() * (SPARE_PARTS / NUM_PARTS)
        total_amount = float(amounts_with_spare.sum())
        epsilon = parameters.budget.convert_to_epsilon(total_amount)
        if epsilon > largest_epsilon:
            raise refuse(
                f"all wanted errors need ε = {epsilon:.3g}, which promises nothing; most of it is for "
                f"{labels[int(np.argmax(needed_amounts))]}",
                remedy="Want less of it, or leave it out",
            )
        if total_amount == 0.0 or epsilon < smallest_epsilon:
            # Publishing 0 is nearly as good as wanted: the least that may be entered is more than enough.
            equal_shares = np.full(len(labels), 1.0 / len(labels))
            return replace(parameters.budget, epsilon=smallest_epsilon), equal_shares, needed_amounts
        # Larger by more than `compute_total_amount` rounds off.
        budget = replace(parameters.budget, epsilon=epsilon * (1.0 + 1e-6))
        lines = allocate_lines(dataset, parameters, planned_lines, amounts_with_spare / total_amount, budget)
        # A line whose program errs a little more than its curve needs a little more.
        factors = [1.0 if line.is_reached else _NEED_FACTORS.get(line.statistic, 1.0) for line in lines]
        if max(factors) == 1.0:
            break
        needed_amounts = needed_amounts * factors
    return budget, amounts_with_spare / total_amount, needed_amounts


def compute_exact_epsilon(solution: PlanSolution) -> float | None:
    """Compute epsilon of the plan's noise by an exact account.

    None if the program's account is exact already, or if no exact account is known, as beside a quantile.
    """
    has_quantile = any(line.statistic is LineStatistic.QUANTILE for line in solution.lines)
    is_laplace = solution.budget.mechanism is NoiseKind.LAPLACE
    return None if has_quantile or is_laplace else solution.budget.exact_epsilon


def against_epsilon(dataset: Dataset, parameters: PlanParameters) -> str:
    """Say why *Compare* has no curve over epsilon for a plan."""
    return "A plan has a bound and an error for each of its numbers: its own figure shows all of them over ε."
