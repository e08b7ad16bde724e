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

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.totals_per_user import user_starts
from dpcore.dataset import Dataset, Values
from dpcore.plan.curves import BoundCurve, list_caps
from dpcore.plan.least_sum import find_least_sum, find_needed_budgets, split_by_largest_error
from dpcore.plan.lines import Budget, LineStatistic
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, build_mean_problem, split_mean_error

MAX_BOUNDS = 2**13
"""Common bounds that are looked at: all where no user has more rows, else so many, log-spaced."""
SUPPORTED_STATISTICS = (
    LineStatistic.USERS,
    LineStatistic.ROWS,
    LineStatistic.SUM,
    LineStatistic.MEAN,
    LineStatistic.GROUP_ROWS,
)
"""Lines of which the error under a common truncation is known."""
_HALVINGS = 50
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
    objective: Objective = Objective.SUM

    def compute_cost(self, own_bounds: float) -> float:
        """Compute the error, or epsilon, as a multiple of that of a plan with a bound per line.

        For sums of squares the root is compared. It may be less than 1 with groups: a bound on all rows of a
        user, whatever group they are in, is no pair of a bound on groups and one on rows in each.

        Args:
            own_bounds: The objective of that plan, as ``value`` has it.
        """
        return self._compare_values(self.value, own_bounds)

    @property
    def sharing_cost(self) -> float:
        """Return the part of `compute_cost` that is due to one bound on rows for all lines, instead of one for each."""
        return self._compare_values(self.value, self.own_caps_value)

    def compute_rows_cost(self, own_bounds: float) -> float:
        """Compute the part of `compute_cost` that is due to bounding rows, instead of totals and of groups."""
        return self._compare_values(self.own_caps_value, own_bounds)

    def _compare_values(self, value: float, reference: float) -> float:
        """Return the ratio of two values of the objective, as a ratio of errors or of epsilons."""
        if value == reference:
            return 1.0
        ratio = value / reference if reference > 0.0 else math.inf
        return math.sqrt(ratio) if self.objective is Objective.SUM else ratio


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
        dataset: What the lines were read off.
        parameters: What was asked for.
        planned_lines: The lines.
        budget: What is divided, where it is not that of the parameters; of the least epsilon only its noise counts.

    Raises:
        InvalidInput: A line whose error under a common truncation is not known, or a sum without a range.
    """
    divided_budget = parameters.budget if budget is None else budget
    with Problems() as problems:
        for line in planned_lines:
            _check_line(problems, dataset, parameters, line)
    caps, has_all_bounds = list_caps(dataset.histogram.max_size, MAX_BOUNDS)
    parts_of_lines = [_compute_alpha_beta(dataset, parameters, line, caps) for line in planned_lines]
    alpha, beta = (
        np.array([alpha_of_line for alpha_of_line, _ in parts_of_lines]),
        np.array([beta_of_line for _, beta_of_line in parts_of_lines]),
    )
    weights = np.array([line.weight for line in planned_lines])
    target_errors = np.array([line.target_error for line in planned_lines])
    curves = [
        BoundCurve(alpha_of_line, beta_of_line, caps, has_all_bounds=has_all_bounds)
        for alpha_of_line, beta_of_line in parts_of_lines
    ]
    objective, power = parameters.objective, divided_budget.power
    if objective is Objective.SUM:
        roots = (weights[:, None] * beta) ** (1.0 / (power + 1))
        sums = weights @ alpha + divided_budget.full_v * roots.sum(axis=0) ** (power + 1)
        best_index = int(np.argmin(sums))
        amounts = (
            roots[:, best_index]
            / roots[:, best_index].sum()
            * float(divided_budget.compute_amount(divided_budget.full_v))
        )
        value = float(sums[best_index])
        own_certificate = find_least_sum(curves, weights, divided_budget).certificate
        assert own_certificate is not None  # Every line here is a list of bounds.
        own_caps = own_certificate.value
    elif objective is Objective.LARGEST:
        levels = _find_least_levels(alpha, beta, target_errors, divided_budget)
        best_index = int(np.argmin(levels))
        value = float(levels[best_index])
        amounts = _compute_amounts(alpha[:, best_index], beta[:, best_index], value * target_errors, power)
        line_vs = divided_budget.divide(split_by_largest_error(curves, target_errors, divided_budget))
        squares = [
            curve.best(line_vs[line_index : line_index + 1]).squares[0]
            for line_index, curve in enumerate(curves)
        ]
        own_caps = float(np.max(np.sqrt(squares) / target_errors))
    else:
        amounts_of_lines = _compute_amounts(alpha, beta, target_errors[:, None], power)
        best_index = int(np.argmin(amounts_of_lines.sum(axis=0)))
        amounts = amounts_of_lines[:, best_index]
        if not np.isfinite(amounts).all():
            raise refuse(
                "no ε is enough under one bound on rows: under each, some line keeps more than its wanted error "
                "without any noise",
                remedy="Want less of it",
            )
        value = divided_budget.convert_to_epsilon(float(amounts.sum()))
        own_caps = divided_budget.convert_to_epsilon(
            float(find_needed_budgets(curves, target_errors, divided_budget).sum())
        )
    errors = np.sqrt(alpha[:, best_index] + beta[:, best_index] * amounts ** -float(power))
    return OneTruncation(
        int(caps[best_index]),
        amounts / amounts.sum(),
        errors,
        value,
        own_caps,
        has_all_bounds,
        parameters.objective,
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
    full_amount, target_column = float(budget.compute_amount(budget.full_v)), target_errors[:, None]

    def evaluate_level(share: float) -> FloatArray:
        return np.asarray((np.sqrt(alpha + beta * float(budget.divide(share))) / target_column).max(axis=0))

    low, high = evaluate_level(1.0), evaluate_level(1.0 / target_errors.size)
    for _ in range(_HALVINGS):
        middles = (low + high) / 2.0
        is_sufficient = (
            _compute_amounts(alpha, beta, middles * target_column, budget.power).sum(axis=0) <= full_amount
        )
        low, high = np.where(is_sufficient, low, middles), np.where(is_sufficient, middles, high)
    return high


def _check_line(problems: Problems, dataset: Dataset, parameters: PlanParameters, line: PlannedLine) -> None:
    """Add the problems of a line under one truncation."""
    statistic, label = line.line.statistic, line.line.label
    if statistic not in SUPPORTED_STATISTICS:
        problems.add(f"of {label} the error under one truncation of all rows is not known")
    if statistic is LineStatistic.SUM and (parameters.lower is None or dataset.values is None):
        problems.add(
            "a sum under a bound on rows needs the values and their range",
            remedy="Enter lower and upper, from what the quantity is and not from data",
        )
    if (
        statistic is LineStatistic.GROUP_ROWS
        and dataset.pairs is not None
        and dataset.pairs.rows_without_group
    ):
        problems.add("some rows are in no group, and how many of each user is not known")


def _compute_alpha_beta(
    dataset: Dataset, parameters: PlanParameters, line: PlannedLine, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute the squared error without noise and the noise variance at v = 1 of a line under every common bound."""
    statistic, variance = line.line.statistic, parameters.mechanism.unit_variance
    if statistic is LineStatistic.USERS:
        return np.zeros(caps.shape), np.full(caps.shape, variance)
    if statistic is LineStatistic.ROWS:
        lost_rows = dataset.histogram.num_rows - dataset.histogram.kept_rows(caps)
        return lost_rows**2, variance * caps**2
    if statistic is LineStatistic.SUM:
        assert dataset.values is not None
        assert parameters.lower is not None
        assert parameters.upper is not None
        largest_value = max(abs(parameters.lower), abs(parameters.upper))
        clamped = np.clip(dataset.values.values, parameters.lower, parameters.upper)
        expected, sampling_variance = _moments_of_sampled_sums(
            Values(dataset.values.user_codes, clamped, dataset.values.column), caps
        )
        return (expected - line.value) ** 2 + sampling_variance, variance * (largest_value * caps) ** 2
    if statistic is LineStatistic.MEAN:
        return split_mean_error(build_mean_problem(dataset, parameters)[0], caps, parameters.mechanism)
    # A user has at most h rows in all groups: in L1 they move h, and in L2 at most h, where all are in one group.
    return _errors_of_sampled_groups(dataset, caps), variance * caps**2


def find_bound_over_groups(
    dataset: Dataset, parameters: PlanParameters, line: PlannedLine, v: float
) -> tuple[int, float]:
    """Find the best bound on a user's rows in all groups together, and the error of rows per group under it.

    It is no pair of a bound on groups and one on rows in each, and can err less: where some users have many
    rows in few groups and others few rows in many, a pair leaves room for many rows in many.

    Args:
        dataset: What the line was read off.
        parameters: What was asked for.
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
    squares = alpha + beta * v
    best_index = int(np.argmin(squares))
    return int(caps[best_index]), math.sqrt(squares[best_index])


def _sum_above(sizes: FloatArray, caps: FloatArray, values_of_sizes: FloatArray) -> FloatArray:
    """Sum the values of distinct sizes over the sizes above each cap, shape (..., caps)."""
    tail_sums = np.concatenate(
        [np.cumsum(values_of_sizes[..., ::-1], axis=-1)[..., ::-1], 0.0 * values_of_sizes[..., :1]], axis=-1
    )
    return np.asarray(tail_sums[..., np.searchsorted(sizes, caps, side="right")])


def _find_distinct(size: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find the distinct sizes, ascending, and the index of each size among them."""
    sizes, indices = np.unique(size, return_inverse=True)
    return sizes, indices.astype(np.int64)


def _sum_by_bin(indices: IntArray, amounts: FloatArray, size: int) -> FloatArray:
    """Sum amounts by index."""
    return np.asarray(np.bincount(indices, amounts, size), dtype=np.float64)


def _moments_of_sampled_sums(values: Values, caps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute (expectation, variance) of the sum of at most h rows of each user, drawn without replacement."""
    starts = user_starts(values)
    user_sizes = np.diff(np.append(starts, values.values.size)).astype(np.float64)
    user_totals = np.add.reduceat(values.values, starts)
    squares = np.add.reduceat(
        (values.values - np.repeat(user_totals / user_sizes, user_sizes.astype(np.int64))) ** 2, starts
    )
    sizes, size_indices = _find_distinct(user_sizes)
    totals = _sum_by_bin(size_indices, user_totals, sizes.size)
    # Squares around the mean of one row are 0, whatever they are divided by.
    spread = _sum_by_bin(size_indices, squares / np.maximum(user_sizes - 1.0, 1.0), sizes.size)
    # A user with s > h rows contributes h / s of the total, with h (1 - h / s) times the variance of their rows.
    expected = totals.sum() - _sum_above(sizes, caps, totals) + caps * _sum_above(sizes, caps, totals / sizes)
    variances = caps * _sum_above(sizes, caps, spread) - caps**2 * _sum_above(sizes, caps, spread / sizes)
    # Where those who are cut lose few rows, the two parts nearly cancel.
    return expected, np.maximum(variances, 0.0)


def _errors_of_sampled_groups(dataset: Dataset, caps: FloatArray) -> FloatArray:
    """Average the squared error of the groups' rows, if at most h rows of each user are drawn."""
    pairs = dataset.pairs
    assert pairs is not None
    assert pairs.rows is not None
    rows = pairs.rows.astype(np.float64)
    users = pairs.user_codes
    user_sizes = _sum_by_bin(users, rows, int(users[-1]) + 1)[users]
    sizes, size_indices = _find_distinct(user_sizes)
    shape = (pairs.num_tasks, sizes.size)
    cell_indices = np.ravel_multi_index((pairs.task_codes, size_indices), shape)

    def sum_above(pair_values: FloatArray) -> FloatArray:
        """Sum per group and cap over pairs of users with more rows."""
        return _sum_above(
            sizes, caps, _sum_by_bin(cell_indices, pair_values, shape[0] * shape[1]).reshape(shape)
        )

    # A user with r of s > h rows in a group keeps h r / s there, with the variance of a hypergeometric draw,
    # h (r / s) (1 - r / s) (s - h) / (s - 1).
    share = rows / user_sizes
    spread_factors = share * (1.0 - share) / np.maximum(user_sizes - 1.0, 1.0)
    lost_rows = sum_above(rows) - caps * sum_above(share)
    variances = caps * sum_above(spread_factors * user_sizes) - caps**2 * sum_above(spread_factors)
    return np.asarray(np.mean(lost_rows**2 + np.maximum(variances, 0.0), axis=0))
