"""A plan on given data, as a program releases it: shares as integer parts, bounds and exact errors.

Shares are first found as real numbers. A program gets integer parts of 2^20, whose sum no rounding lifts above
the whole budget. The error of a line is then computed again from them: the page and the program have the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.code.forms import list_data_fields
from dpcore.code.release_spec import Quantity, ReleaseSpec
from dpcore.code.several import SHARED_COUNT_NAME, ReleasePlan, ReleaseShare
from dpcore.common.checks import EPSILON_RANGE, refuse
from dpcore.contributions import FloatArray
from dpcore.data import group_list
from dpcore.dataset import Dataset
from dpcore.mean import Clamp
from dpcore.plan import mean_lines, table
from dpcore.plan.curves import BoundCurve, RankCurve, TotalCurve
from dpcore.plan.least_sum import BudgetSplit, find_least_sum, find_needed_amounts, split_by_largest_error
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import NUM_PARTS, Budget, Objective, PlanParameters, round_to_parts
from dpcore.plan.shared_rows import list_shared_splits
from dpcore.quantile.rows import WeightKind
from dpcore.total.nonnegative import MAX_COST_OF_ROUNDING
from dpcore.total.parameters import Summed, compute_user_totals

_V_WITHOUT_BUDGET = np.array([math.inf])


@dataclass(frozen=True)
class AllocatedLine:
    """A line with its share of the budget.

    Attributes:
        planned_line: What is released, and what it costs.
        num_parts: Its share of the budget, in parts of 2^20; 0 where 0 is published in its place.
        spent_budget: What it takes of `Budget.total`: epsilon with Laplace noise, rho = mu^2 / 2 with Gaussian noise.
        v: Square of its noise scale at sensitivity 1; infinite where it is dropped.
        bound: Bound on rows, on a total, on groups; 0 where it is dropped.
        second_bound: Of pairs the bound on the amount in each group; NaN of others.
        curve_error: Root of the mean square, in the line's unit; of a quantile the expected share of rows between.
        moved_error: That of a mean or variance after it is moved into its range; None of other lines, and if values
            are not read.
    """

    planned_line: table.PlannedLine
    num_parts: int
    spent_budget: float
    v: float
    bound: float
    second_bound: float
    curve_error: float
    moved_error: float | None = None

    @property
    def error(self) -> float:
        """Return the error of the release, in the line's unit."""
        return self.curve_error if self.moved_error is None else self.moved_error

    @property
    def label(self) -> str:
        """Return the name of the released statistic."""
        return self.planned_line.line.label

    @property
    def statistic(self) -> LineStatistic:
        """Return the released statistic."""
        return self.planned_line.line.statistic

    @property
    def is_dropped(self) -> bool:
        """Return True if the line has no share of the budget, and 0 is published in its place."""
        return self.num_parts == 0

    @property
    def share(self) -> float:
        """Return the share of the budget."""
        return self.num_parts / NUM_PARTS

    @property
    def error_ratio(self) -> float:
        """Return the error over the target error."""
        return self.error / self.planned_line.target_error

    @property
    def is_reached(self) -> bool:
        """Return True if the error is at most the target error."""
        return self.error <= self.planned_line.target_error


def allocate_lines(
    dataset: Dataset,
    parameters: PlanParameters,
    planned_lines: Sequence[table.PlannedLine],
    shares: npt.ArrayLike,
    budget: Budget | None = None,
) -> tuple[AllocatedLine, ...]:
    """Allocate integer parts of the budget to every line but those that are dropped, under the best bound there.

    A bound on totals is rounded to few digits, as the exact one is often one user's total; its error is that of
    the rounded bound, at most 0.1 % more. Where a curve has not all pairs of bounds of a line per group, these are
    searched at its share, which may err less than the curve. A line whose best release at its share is 0 is dropped,
    and the others get its share. A quantile that errs less with less of the budget takes less.

    Args:
        dataset: The data that the lines were planned on.
        parameters: The settings.
        planned_lines: The lines.
        shares: Of the budget, at least 0, not all 0, shape (lines,).
        budget: What is divided, where it is not that of the parameters.

    Returns:
        One per line; their parts add up to at most 2^20.
    """
    budget = budget or parameters.budget
    budget_per_part = budget.total / NUM_PARTS
    no_budget_optima = [planned_line.curve.find_optimum(_V_WITHOUT_BUDGET) for planned_line in planned_lines]
    # A line that cannot be published as 0, a mean or a quantile, has at least one part.
    unbudgeted_drop_mask = np.array([optimum.bounds[0] == 0.0 for optimum in no_budget_optima])
    shares = np.array(shares, dtype=np.float64)
    shares = np.where((shares > 0.0) | unbudgeted_drop_mask, shares, shares.sum() / NUM_PARTS)
    part_counts = round_to_parts(shares)
    # Each round drops a line, so that it ends. If all that are left are best published as 0, all are dropped.
    while True:
        line_vs = budget.divide(part_counts / NUM_PARTS)
        lines_and_vs = zip(planned_lines, line_vs, strict=True)
        line_optima = [planned_line.curve.find_optimum(np.array([v])) for planned_line, v in lines_and_vs]
        dropped_mask = np.array([optimum.bounds[0] == 0.0 for optimum in line_optima]) & (part_counts > 0)
        if not dropped_mask.any() or dropped_mask[part_counts > 0].all():
            break
        shares[dropped_mask] = 0.0
        part_counts = round_to_parts(np.where(part_counts > 0, shares, 0.0))
    part_counts = np.where(dropped_mask, 0, part_counts)
    plan_lines = []
    for line_index, planned_line in enumerate(planned_lines):
        num_parts, v = int(part_counts[line_index]), float(line_vs[line_index])
        if num_parts == 0:
            line_error = math.sqrt(no_budget_optima[line_index].squared_errors[0])
            plan_lines.append(AllocatedLine(planned_line, 0, 0.0, math.inf, 0.0, math.nan, line_error))
            continue
        optimum = line_optima[line_index]
        bound, second_bound = float(optimum.bounds[0]), float(optimum.second_bounds[0])
        line_error = math.sqrt(max(optimum.squared_errors[0], 0.0))
        if isinstance(planned_line.curve, TotalCurve):
            bound, squared_error = planned_line.curve.find_short_bound(bound, v)
            line_error = math.sqrt(squared_error)
        elif isinstance(planned_line.curve, RankCurve):
            useful_share = (budget.full_v / planned_line.curve.find_release_v(v)) ** (1.0 / budget.power)
            num_parts = max(1, min(num_parts, math.floor(useful_share * NUM_PARTS * (1.0 + 1e-12))))
            v = float(budget.divide(num_parts / NUM_PARTS))
            bound, line_error = table.search_rank_bound(dataset, parameters, planned_line, v)
        elif planned_line.group_problem is not None:
            max_groups, max_amount, squared_error = table.search_pairs_at(planned_line, v)
            if max_groups and math.sqrt(squared_error) < line_error:
                bound, second_bound, line_error = float(max_groups), max_amount, math.sqrt(squared_error)
        moved_error = None
        if isinstance(planned_line.curve, BoundCurve) and planned_line.curve.measure_release is not None:
            moved_error = float(planned_line.measure_errors(np.array([v]))[0])
        line_fields = num_parts, num_parts * budget_per_part, v, bound, second_bound, line_error, moved_error
        plan_lines.append(AllocatedLine(planned_line, *line_fields))
    return tuple(plan_lines)


def sum_weighted_squares(allocated_lines: Sequence[AllocatedLine]) -> float:
    """Return the weighted sum of the lines' squared errors."""
    return math.fsum(line.planned_line.weight * line.error**2 for line in allocated_lines)


def _sum_minimised_squares(allocated_lines: Sequence[AllocatedLine]) -> float:
    """Return the sum that a search minimises: of errors before numbers are moved into their range."""
    return math.fsum(line.planned_line.weight * line.curve_error**2 for line in allocated_lines)


def make_program(
    dataset: Dataset,
    parameters: PlanParameters,
    allocated_lines: Sequence[AllocatedLine],
    budget: Budget | None = None,
    count_line: AllocatedLine | None = None,
) -> ReleasePlan | None:
    """Build the releases of a plan from which `dpcore.code` writes a program; None if every line is dropped.

    Args:
        dataset: The data that the lines were planned on.
        parameters: The settings.
        allocated_lines: The lines with their shares.
        budget: What is divided, where it is not that of the parameters.
        count_line: A count of rows that the means share, if it is not among the lines.
    """
    budget = budget or parameters.budget
    rows_line_name = LineStatistic.ROWS.value if count_line is None else SHARED_COUNT_NAME
    releases = tuple(
        ReleaseShare(
            SHARED_COUNT_NAME if line is count_line else line.label,
            _build_spec(dataset, parameters, line, budget.epsilon),
            line.num_parts,
            rows_line_name if line.planned_line.shares_rows and line.statistic is LineStatistic.MEAN else "",
        )
        for line in (*allocated_lines, *filter(None, [count_line]))
        if not line.is_dropped
    )
    dropped_labels = tuple(line.label for line in allocated_lines if line.is_dropped)
    if not releases:
        return None
    return ReleasePlan(releases, budget.epsilon, parameters.mechanism, parameters.delta, dropped_labels)


def _build_spec(
    dataset: Dataset, parameters: PlanParameters, line: AllocatedLine, epsilon: float
) -> ReleaseSpec:
    """Build the `ReleaseSpec` that releases one line under its bounds, with the names of columns in the data."""
    data_options = list_data_fields(dataset)
    if line.planned_line.line.column:
        data_options["value_column"] = line.planned_line.line.column
    dataset = dataset.find_column(line.planned_line.line.column)
    parameters = parameters.choose_for(line.planned_line.line)
    bound_options: dict[str, Any]
    match line.statistic:
        case LineStatistic.USERS:
            quantity, bound_options = Quantity.COUNT, {"max_rows": 1}
        case LineStatistic.ROWS:
            quantity, bound_options = Quantity.COUNT, {"max_rows": int(line.bound)}
        case LineStatistic.SUM:
            quantity, bound_options = Quantity.SUM, {"max_total": line.bound}
            if compute_user_totals(dataset, Summed.VALUES).amounts is None:
                bound_options["min_total"] = -line.bound
        case LineStatistic.MEAN:
            quantity, bound_options = Quantity.MEAN, {"max_rows": int(line.bound)}
            if parameters.clamp is Clamp.USERS:
                weight_growth = mean.find_weight_growth(
                    mean_lines.build_mean_problem(dataset, parameters)[0], line.bound
                )
                row_factor, effective_factor = weight_growth.compute_coefficients(line.bound)
                bound_options = {
                    "threshold": line.bound,
                    "user_share": weight_growth.user_share,
                    "clamps_users": True,
                }
                bound_options |= {"weight_of_rows": row_factor, "weight_of_users": effective_factor}
        case LineStatistic.VARIANCE | LineStatistic.DEVIATION:
            quantity, bound_options = Quantity(line.statistic.value), {"max_rows": int(line.bound)}
        case LineStatistic.QUANTILE:
            quantity, bound_options = Quantity.QUANTILE, {"quantiles": (line.planned_line.line.quantile,)}
            if table.choose_rank_weights(parameters) is WeightKind.CAP:
                bound_options["max_rows"] = int(line.bound)
            else:
                bound_options["threshold"] = line.bound
        case LineStatistic.GROUP_USERS:
            quantity, bound_options = Quantity.GROUP_COUNTS, {"max_groups": int(line.bound)}
        case LineStatistic.GROUP_ROWS:
            quantity = Quantity.GROUP_ROWS
            bound_options = {"max_groups": int(line.bound), "max_rows": int(line.second_bound)}
        case LineStatistic.GROUP_SUMS:
            quantity = Quantity.GROUP_SUMS
            bound_options = {"max_groups": int(line.bound), "max_total": line.second_bound}
            pair_sums = None if dataset.pairs is None else dataset.pairs.sums
            if pair_sums is not None and float(pair_sums.min(initial=0.0)) < 0.0:
                bound_options["min_total"] = -line.second_bound
    if line.statistic.needs_range:
        bound_options |= {"lower": parameters.lower, "upper": parameters.upper}
    if line.statistic.is_per_group:
        groups_and_edges = group_list.find_groups(parameters.groups, parameters.edges)
        bound_options |= dict(zip(("groups", "edges"), groups_and_edges, strict=True))
    return ReleaseSpec(quantity, epsilon, **data_options, **bound_options)


SPARE_PARTS = 2
"""Parts of 2^20 beyond its need that each line gets: shares are rounded to whole parts."""
_MAX_BUDGET_TRIES = 40
_NEED_FACTORS = {
    # A curve is read between points; what a quantile needs for its exact error is approached in such steps.
    LineStatistic.QUANTILE: 1.02,
    # Where the bound changes, a moved number may err a little more with a little more budget.
    LineStatistic.MEAN: 1.01,
    LineStatistic.VARIANCE: 1.01,
    LineStatistic.DEVIATION: 1.01,
    # A rounded bound on totals errs at most `MAX_COST_OF_ROUNDING` more, for which so much more budget makes up.
    LineStatistic.SUM: 1.0 + 2.0 * MAX_COST_OF_ROUNDING,
}


@dataclass(frozen=True, eq=False)
class PlanSolution:
    """The division of a plan's budget among its lines, with the bound and error of each.

    Attributes:
        parameters: The settings.
        planned_lines: The lines with their curves.
        budget: What is divided: as entered, or the least one that is enough.
        lines: As a program releases them, in the order in which they were written.
        equal_split_lines: The same lines at equal shares, each under its best bound there.
        split: The search for the least sum; None where the objective is another.
        needed_amounts: What each line needs for its target error of what adds up (epsilon, or mu^2); infinite where
            none is enough, shape (lines,).
        apart_lines: If means share one count of rows, the lines as they would be without that; else empty.
        count_line: That count, if it is no line of the plan.
    """

    parameters: PlanParameters
    planned_lines: tuple[table.PlannedLine, ...]
    budget: Budget
    lines: tuple[AllocatedLine, ...]
    equal_split_lines: tuple[AllocatedLine, ...]
    split: BudgetSplit | None
    needed_amounts: FloatArray
    apart_lines: tuple[AllocatedLine, ...] = ()
    count_line: AllocatedLine | None = None

    @property
    def labels(self) -> list[str]:
        """Return the names of all that is released: of the lines, and of a count that only means need."""
        return [*(line.label for line in self.lines), *([SHARED_COUNT_NAME] if self.count_line else [])]

    @property
    def num_reached(self) -> int:
        """Count the lines that reach their target error."""
        return sum(line.is_reached for line in self.lines)

    @cached_property
    def sufficient_epsilon(self) -> float:
        """Return the least epsilon at which all lines reach their target errors at once; infinite if there is none."""
        return self.budget.convert_to_epsilon(float(self.needed_amounts.sum()))

    @property
    def most_expensive_index(self) -> int:
        """Return the index of the line that needs most of the budget."""
        return int(np.argmax(self.needed_amounts))

    @cached_property
    def reaching_epsilons(self) -> tuple[float, ...]:
        """Return for each line the plan's epsilon at which it reaches its target with the same share.

        For a dropped line it is 0 if publishing 0 reaches the target, else infinite.
        """
        epsilons, needed_amounts = [], self.needed_amounts
        if self.apart_lines:  # Lines that share rows depend on the share of these, too.
            line_curves = [line.planned_line.curve for line in self.lines]
            target_errors = np.array([line.target_error for line in self.planned_lines])
            needed_amounts = find_needed_amounts(line_curves, target_errors, self.budget)
        for line, needed_amount in zip(self.lines, needed_amounts.tolist(), strict=True):
            if line.is_dropped:
                epsilons.append(0.0 if line.is_reached else math.inf)
            else:
                epsilons.append(self.budget.convert_to_epsilon(needed_amount / line.share))
        return tuple(epsilons)

    @cached_property
    def equal_split_factor(self) -> float:
        """Return the root of the equal split's weighted sum of squared errors over the plan's; 1 if that is 0."""
        plan_sum = sum_weighted_squares(self.lines)
        return math.sqrt(sum_weighted_squares(self.equal_split_lines) / plan_sum) if plan_sum > 0.0 else 1.0

    def summarise_errors(self, lines: Sequence[AllocatedLine]) -> float:
        """Summarise the lines' ratios of error to target in one number.

        For the objective `SUM` it is the root of their weighted mean square, and for other objectives the largest
        one.
        """
        if self.parameters.objective is not Objective.SUM:
            return max(line.error_ratio for line in lines)
        weight_sum = math.fsum(line.line.weight for line in self.planned_lines)
        return math.sqrt(sum_weighted_squares(lines) / weight_sum)

    def compute_error_ratios(self, line: AllocatedLine, full_budget_v: FloatArray) -> FloatArray:
        """Compute error over target error of a line at its share, for other values of v at the full budget.

        Args:
            line: With its share.
            full_budget_v: Squares of noise scales at sensitivity 1, shape (k,).
        """
        with np.errstate(divide="ignore"):
            v = full_budget_v / np.float64(line.share) ** self.budget.power
        return np.asarray(line.planned_line.measure_errors(v) / line.planned_line.target_error)


def solve(
    dataset: Dataset, parameters: PlanParameters, planned_lines: tuple[table.PlannedLine, ...] | None = None
) -> PlanSolution:
    """Divide the budget by the objective: least sum, least largest error, or least budget for all target errors.

    Args:
        dataset: The data.
        parameters: The settings.
        planned_lines: Result of `plan_lines` for both, which does not depend on epsilon.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all target errors.
    """
    planned_lines = table.plan_lines(dataset, parameters) if planned_lines is None else planned_lines
    line_curves = [line.curve for line in planned_lines]
    target_errors = np.array([line.target_error for line in planned_lines])
    budget, split = parameters.budget, None
    equal_shares = np.full(len(line_curves), 1.0 / len(line_curves))
    needed_amounts = find_needed_amounts(line_curves, target_errors, budget)
    if parameters.objective is Objective.SUM:
        split = find_least_sum(line_curves, np.array([line.weight for line in planned_lines]), budget)
        shares = split.shares
    elif parameters.objective is Objective.LARGEST:
        shares = split_by_largest_error(line_curves, target_errors, budget)
    else:
        least_budget = _find_least_budget(dataset, parameters, planned_lines, needed_amounts)
        budget, shares, needed_amounts = least_budget
    lines, equal_split_lines = (
        allocate_lines(dataset, parameters, planned_lines, line_shares, budget)
        for line_shares in (shares, equal_shares)
    )
    apart_lines: tuple[AllocatedLine, ...] = ()
    count_line: AllocatedLine | None = None
    shared_splits = (
        list_shared_splits(dataset, parameters, planned_lines, budget) if split is not None else []
    )
    for shared_lines, shared_split in shared_splits:
        allocated_lines = allocate_lines(dataset, parameters, shared_lines, shared_split.shares, budget)
        if _sum_minimised_squares(allocated_lines) < _sum_minimised_squares(lines):
            apart_lines, lines = apart_lines or lines, allocated_lines[: len(planned_lines)]
            count_line = next(iter(allocated_lines[len(planned_lines) :]), None)
            split = _join_proofs(shared_split, split)
        else:
            split = _join_proofs(split, shared_split)
    solution_fields = lines, equal_split_lines, split, needed_amounts, apart_lines, count_line
    return PlanSolution(parameters, planned_lines, budget, *solution_fields)


def _join_proofs(chosen_split: BudgetSplit | None, rejected_split: BudgetSplit | None) -> BudgetSplit | None:
    """Return a split with a lower bound for it and for the other kind of splits, which has none that is better."""
    if (
        chosen_split is None
        or rejected_split is None
        or chosen_split.certificate is None
        or rejected_split.certificate is None
    ):
        return chosen_split
    lower_bound = min(chosen_split.certificate.lower_bound, rejected_split.certificate.lower_bound)
    return replace(chosen_split, certificate=replace(chosen_split.certificate, lower_bound=lower_bound))


def _find_least_budget(
    dataset: Dataset,
    parameters: PlanParameters,
    planned_lines: Sequence[table.PlannedLine],
    needed_amounts: FloatArray,
) -> tuple[Budget, FloatArray, FloatArray]:
    """Find the least budget at which all lines reach their targets; return it with shares and needed amounts.

    Raises: InvalidInput if a line reaches its target with no budget, or all together need too large an epsilon.
    """
    line_labels = [line.line.label for line in planned_lines]
    unreachable_labels = [line_labels[line_index] for line_index in np.flatnonzero(np.isinf(needed_amounts))]
    if unreachable_labels:
        raise refuse(
            f"no ε is enough for {' and '.join(unreachable_labels)}: the error without noise is too large",
            remedy="Want less of it",
        )
    smallest_epsilon, largest_epsilon = EPSILON_RANGE
    for _ in range(_MAX_BUDGET_TRIES):
        amounts_with_spare = needed_amounts + needed_amounts.sum() * (SPARE_PARTS / NUM_PARTS)
        total_amount = float(amounts_with_spare.sum())
        epsilon = parameters.budget.convert_to_epsilon(total_amount)
        if epsilon > largest_epsilon:
            raise refuse(
                f"all target errors need ε = {epsilon:.3g}, mostly for "
                f"{line_labels[int(np.argmax(needed_amounts))]}; that "
                "promises nothing",
                remedy="Want less of it, or leave it out",
            )
        if total_amount == 0.0 or epsilon < smallest_epsilon:
            # Publishing 0 is nearly as good as wanted: the least that may be entered is more than enough.
            equal_shares = np.full(len(line_labels), 1.0 / len(line_labels))
            return replace(parameters.budget, epsilon=smallest_epsilon), equal_shares, needed_amounts
        # Larger by more than `Budget.total` rounds off.
        budget = replace(parameters.budget, epsilon=epsilon * (1.0 + 1e-6))
        shares = amounts_with_spare / total_amount
        allocated_lines = allocate_lines(dataset, parameters, planned_lines, shares, budget)
        # A line whose program errs a little more than its curve needs a little more.
        need_factors = [
            1.0 if line.is_reached else _NEED_FACTORS.get(line.statistic, 1.0) for line in allocated_lines
        ]
        if max(need_factors) == 1.0:
            break
        needed_amounts = needed_amounts * need_factors
    return budget, shares, needed_amounts


def compare_over_epsilon(dataset: Dataset, parameters: PlanParameters) -> str:
    """Return a sentence on why *Compare* has no curve over epsilon for a plan."""
    return "The plan's own figure shows its errors over ε."
