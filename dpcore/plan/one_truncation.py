"""One truncation for all lines: at most h rows of each user are kept, and all lines are computed from these.

OpenDP and Tumult do so to a table before it is queried. Under a common h every line has one error without noise,
alpha(h), and one variance of the noise at scale 1, beta(h). With h fixed, the shares of least weighted sum are in
proportion to (weight beta(h))^(1 / (P + 1)), so the best sum at h is

    F(h) = sum of weight alpha(h) + v(1) (sum of (weight beta(h))^(1 / (P + 1)))^(P + 1).

An error of t takes the amount (beta(h) / (t^2 - alpha(h)))^(1 / P) of the budget, infinite where alpha(h) is no less
than t^2: the sum over the lines is the least budget for all wanted errors at h. The least largest error over wanted
error is the least multiple of all of them for which that sum is at most the budget. Under every objective the best h is
found by computing it for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.totals_per_user import user_starts
from dpcore.dataset import Dataset
from dpcore.plan.curves import BoundCurve, list_caps
from dpcore.plan.least_sum import find_least_sum, find_needed_budgets, split_by_largest_error
from dpcore.plan.lines import Budget, LineStatistic
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, build_mean_problem, split_mean_error

MAX_BOUNDS = 2**13
"""Common bounds that are looked at: all where no user has more rows, else so many, log-spaced."""
UNSUPPORTED_STATISTICS = (LineStatistic.QUANTILE, LineStatistic.GROUP_USERS, LineStatistic.GROUP_SUMS)
"""Lines of which the error under a common truncation is not known."""
_NUM_HALVINGS = 50
"""Of a ratio that equal shares bound within the root of the number of lines, or that number."""


@dataclass(frozen=True, eq=False)
class OneTruncation:
    """The best common bound.

    Attributes:
        max_rows: Rows that are kept of each user, drawn at random.
        shares: Of the budget, adding up to 1, shape (lines,).
        errors: Root of the mean squared error of every line, in its unit, shape (lines,).
        value: What the objective makes small: the weighted sum of squared errors over wanted errors, the largest error
            over wanted error, or epsilon of the whole plan; infinite where no epsilon is enough.
        own_caps_value: The same of a plan in which each line has a bound on rows of its own, drawn from all rows of a
            user.
        has_all_bounds: Whether all whole bounds were looked at, so that none is better.
        objective: What is made small.
    """

    max_rows: int
    shares: FloatArray
    errors: FloatArray
    value: float
    own_caps_value: float
    has_all_bounds: bool
    objective: Objective

    def compute_costs(self, plan_value: float) -> tuple[float, float, float]:
        """Compute the error, or epsilon, as a multiple of that of a plan with a bound per line, and its two factors.

        The first factor is due to one bound on rows for all lines, instead of one for each; the second to bounding
        rows, instead of totals and of groups. For sums of squares the root is compared. With groups the multiple may
        be less than 1: a bound on all rows of a user, whatever group they are in, is no pair of a bound on groups and
        one on rows in each.

        Args:
            plan_value: The objective of that plan, as ``value`` has it.
        """

        def divide(value: float, reference: float) -> float:
            if value == reference:
                return 1.0
            ratio = value / reference if reference > 0.0 else math.inf
            return math.sqrt(ratio) if self.objective is Objective.SUM else ratio

        return (
            divide(self.value, plan_value),
            divide(self.value, self.own_caps_value),
            divide(self.own_caps_value, plan_value),
        )


def find_common_bound(
    dataset: Dataset,
    parameters: PlanParameters,
    planned_lines: Sequence[PlannedLine],
    budget: Budget | None = None,
) -> OneTruncation:
    """Find the common bound on rows and the shares that are best by the objective of the parameters.

    Values are clamped to the range [lower, upper] of the parameters, in sums, too. The random choice of rows is
    part of the error. Every line is released, none published as 0.

    Args:
        dataset: The data that the lines were planned on.
        parameters: The settings.
        planned_lines: The lines.
        budget: What is divided, where it is not that of the parameters; of the least epsilon only its noise counts.

    Raises:
        InvalidInput: A line whose error under a common truncation is not known, or a sum without a range.
    """
    budget = budget or parameters.budget
    with Problems() as problems:
        for line in planned_lines:
            _check_line(problems, dataset, parameters, line)
    caps, has_all_bounds = list_caps(dataset.histogram.max_size, MAX_BOUNDS)
    # Both of shape (lines, caps).
    alpha, beta = np.stack(
        [_compute_alpha_beta(dataset, parameters, line, caps) for line in planned_lines], axis=1
    )
    weights = np.array([line.weight for line in planned_lines])
    target_errors = np.array([line.target_error for line in planned_lines])
    curves = [BoundCurve(a, b, caps, has_all_bounds=has_all_bounds) for a, b in zip(alpha, beta, strict=True)]
    objective, power = parameters.objective, budget.power
    if objective is Objective.SUM:
        roots = (weights[:, None] * beta) ** (1.0 / (power + 1))
        values = weights @ alpha + budget.full_v * roots.sum(axis=0) ** (power + 1)
        best_index = int(np.argmin(values))
        full_amount = float(budget.compute_amount(budget.full_v))
        amounts = roots[:, best_index] / roots[:, best_index].sum() * full_amount
        certificate = find_least_sum(curves, weights, budget).certificate
        assert certificate is not None  # Every line here is a list of bounds.
        value, own_caps_value = float(values[best_index]), certificate.value
    elif objective is Objective.LARGEST:
        values = _find_least_levels(alpha, beta, target_errors, budget)
        best_index = int(np.argmin(values))
        value = float(values[best_index])
        amounts = _compute_amounts(alpha[:, best_index], beta[:, best_index], value * target_errors, power)
        line_vs = budget.divide(split_by_largest_error(curves, target_errors, budget)).tolist()
        squared_errors = [
            curve.find_best([v]).squared_errors[0] for curve, v in zip(curves, line_vs, strict=True)
        ]
        own_caps_value = float(np.max(np.sqrt(squared_errors) / target_errors))
    else:
        amounts_by_cap = _compute_amounts(alpha, beta, target_errors[:, None], power)
        best_index = int(np.argmin(amounts_by_cap.sum(axis=0)))
        amounts = amounts_by_cap[:, best_index]
        if not np.isfinite(amounts).all():
            raise refuse(
                "no ε is enough under one bound on rows: under each, some line keeps more than its wanted error "
                "without any noise",
                remedy="Want less of it",
            )
        value = budget.convert_to_epsilon(float(amounts.sum()))
        needed_amounts = find_needed_budgets(curves, target_errors, budget)
        own_caps_value = budget.convert_to_epsilon(float(needed_amounts.sum()))
    errors = np.sqrt(alpha[:, best_index] + beta[:, best_index] * amounts ** -float(power))
    shares = amounts / amounts.sum()
    return OneTruncation(
        int(caps[best_index]), shares, errors, value, own_caps_value, has_all_bounds, objective
    )


def _compute_amounts(
    alpha: FloatArray, beta: FloatArray, target_errors: FloatArray, power: int
) -> FloatArray:
    """Compute the amounts of a budget that lines need for their target errors; infinite if none suffices."""
    remaining = np.maximum(target_errors**2 - alpha, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray((beta / remaining) ** (1.0 / power))


def _find_least_levels(
    alpha: FloatArray, beta: FloatArray, target_errors: FloatArray, budget: Budget
) -> FloatArray:
    """Find the least of the largest error over target error under every bound, by bisection.

    Each line takes no more than all of the budget, and equal shares are one way to divide it.
    """
    full_amount, targets = float(budget.compute_amount(budget.full_v)), target_errors[:, None]
    # Invariant: under each bound the least level is at most ``high`` and at least ``low``.
    low, high = (
        (np.sqrt(alpha + beta * float(budget.divide(share))) / targets).max(axis=0)
        for share in (1.0, 1.0 / target_errors.size)
    )
    for _ in range(_NUM_HALVINGS):
        midpoint = (low + high) / 2.0
        needed_amounts = _compute_amounts(alpha, beta, midpoint * targets, budget.power).sum(axis=0)
        is_enough = needed_amounts <= full_amount
        low, high = np.where(is_enough, low, midpoint), np.where(is_enough, midpoint, high)
    return np.asarray(high)


def _check_line(problems: Problems, dataset: Dataset, parameters: PlanParameters, line: PlannedLine) -> None:
    """Add the problems of a line under one truncation."""
    statistic, label = line.line.statistic, line.line.label
    if statistic in UNSUPPORTED_STATISTICS:
        problems.add(f"of {label} the error under one truncation of all rows is not known")
    if statistic is LineStatistic.SUM and (parameters.lower is None or dataset.values is None):
        problems.add(
            "a sum under a bound on rows needs the values and their range",
            remedy="Enter lower and upper, from what the quantity is and not from data",
        )
    pairs = dataset.pairs
    if statistic is LineStatistic.GROUP_ROWS and pairs is not None and pairs.rows_without_group:
        problems.add("some rows are in no group, and how many of each user is not known")


def _compute_alpha_beta(
    dataset: Dataset, parameters: PlanParameters, line: PlannedLine, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute the squared error without noise and the noise variance at v = 1 of a line under every common bound."""
    statistic, variance = line.line.statistic, parameters.mechanism.unit_variance
    match statistic:
        case LineStatistic.USERS:
            return np.zeros(caps.shape), np.full(caps.shape, variance)
        case LineStatistic.ROWS:
            lost_rows = dataset.histogram.num_rows - dataset.histogram.kept_rows(caps)
            return lost_rows**2, variance * caps**2
        case LineStatistic.SUM:
            assert dataset.values is not None
            assert parameters.lower is not None
            assert parameters.upper is not None
            clamped = np.clip(dataset.values.values, parameters.lower, parameters.upper)
            starts = user_starts(dataset.values)
            expected_sum, sampling_variance = _compute_sampled_sum_moments(clamped, starts, caps)
            largest_value = max(abs(parameters.lower), abs(parameters.upper))
            alpha = (expected_sum - line.value) ** 2 + sampling_variance
            return alpha, variance * (largest_value * caps) ** 2
        case LineStatistic.MEAN:
            problem, _ = build_mean_problem(dataset, parameters)
            return split_mean_error(problem, caps, parameters.mechanism)
        case _:
            # A user has at most h rows in all groups: they move at most h in L1, and in L2 if all are in one group.
            return _compute_sampled_group_error(dataset, caps), variance * caps**2


def find_bound_over_groups(
    dataset: Dataset, parameters: PlanParameters, line: PlannedLine, v: float
) -> tuple[int, float]:
    """Find the best bound on a user's rows in all groups together, and the error of rows per group under it.

    It is no pair of a bound on groups and one on rows in each, and can err less: where some users have many
    rows in few groups and others few rows in many, a pair leaves room for many rows in many.

    Args:
        dataset: The data that the line was planned on.
        parameters: The settings.
        line: Of rows per group.
        v: Square of its noise scale at sensitivity 1.

    Returns:
        Rows of each user, drawn at random, and the root of the mean squared error, in rows.

    Raises:
        InvalidInput: Some rows are in no group.
    """
    with Problems() as problems:
        _check_line(problems, dataset, parameters, line)
    caps, _ = list_caps(dataset.histogram.max_size, MAX_BOUNDS)
    alpha, beta = _compute_alpha_beta(dataset, parameters, line, caps)
    squared_errors = alpha + beta * v
    best_index = int(np.argmin(squared_errors))
    return int(caps[best_index]), math.sqrt(squared_errors[best_index])


def _sum_above(sizes: FloatArray, caps: FloatArray, sums_by_size: FloatArray) -> FloatArray:
    """Sum over the distinct sizes above each cap, shape (..., caps)."""
    reversed_sums = np.cumsum(sums_by_size[..., ::-1], axis=-1)
    # Sums from each size on, and 0 beyond the largest.
    tail_sums = np.concatenate([reversed_sums[..., ::-1], np.zeros_like(sums_by_size[..., :1])], axis=-1)
    return np.asarray(tail_sums[..., np.searchsorted(sizes, caps, side="right")])


def _sum_by_index(indices: npt.ArrayLike, amounts: FloatArray, size: int = 0) -> FloatArray:
    """Sum amounts by index, shape (at least size,)."""
    return np.asarray(np.bincount(indices, amounts, size), dtype=np.float64)


def _compute_sampled_sum_moments(
    values: FloatArray, starts: IntArray, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute (expectation, variance) of the sum of at most h rows of each user, drawn without replacement."""
    row_counts = np.diff(np.append(starts, values.size))
    user_totals = np.add.reduceat(values, starts)
    deviations = values - np.repeat(user_totals / row_counts, row_counts)
    # A user with one row has no deviation, whatever it is divided by.
    user_variances = np.add.reduceat(deviations**2, starts) / np.maximum(row_counts - 1.0, 1.0)
    sizes, size_indices = np.unique(row_counts.astype(np.float64), return_inverse=True)
    totals, spreads = (
        _sum_by_index(size_indices, sums, sizes.size) for sums in (user_totals, user_variances)
    )

    def sum_above(sums_by_size: FloatArray) -> FloatArray:
        return _sum_above(sizes, caps, sums_by_size)

    # A user with s > h rows contributes h / s of the total, with h (1 - h / s) times the variance of their rows.
    expected_sum = totals.sum() - sum_above(totals) + caps * sum_above(totals / sizes)
    variances = caps * sum_above(spreads) - caps**2 * sum_above(spreads / sizes)
    # Where those who are cut lose few rows, the two parts nearly cancel.
    return expected_sum, np.maximum(variances, 0.0)


def _compute_sampled_group_error(dataset: Dataset, caps: FloatArray) -> FloatArray:
    """Average the squared error of the groups' rows, if at most h rows of each user are drawn."""
    pairs = dataset.pairs
    assert pairs is not None
    assert pairs.rows is not None
    rows = pairs.rows.astype(np.float64)
    user_sizes = _sum_by_index(pairs.user_codes, rows)[pairs.user_codes]
    sizes, size_indices = np.unique(user_sizes, return_inverse=True)
    shape = (pairs.num_tasks, sizes.size)
    cells = np.ravel_multi_index((pairs.task_codes, size_indices), shape)

    def sum_above(pair_values: FloatArray) -> FloatArray:
        """Sum per group and cap over pairs of users with more rows."""
        return _sum_above(sizes, caps, _sum_by_index(cells, pair_values, math.prod(shape)).reshape(shape))

    # A user with r of s > h rows in a group keeps h r / s there, with the variance of a hypergeometric draw,
    # h (r / s) (1 - r / s) (s - h) / (s - 1).
    share = rows / user_sizes
    spread_factors = share * (1.0 - share) / np.maximum(user_sizes - 1.0, 1.0)
    lost_rows = sum_above(rows) - caps * sum_above(share)
    variances = caps * sum_above(spread_factors * user_sizes) - caps**2 * sum_above(spread_factors)
    return np.asarray(np.mean(lost_rows**2 + np.maximum(variances, 0.0), axis=0))
