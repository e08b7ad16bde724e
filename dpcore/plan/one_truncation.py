"""One truncation for all lines: at most h rows of each user are kept, and all lines are computed from these.

That is what OpenDP and Tumult do to a table before it is queried. Under a common h every line has one error without
noise, alpha(h), and one variance of the noise at scale 1, beta(h). With h fixed, the shares of least weighted sum are
in proportion to (weight beta(h))^(1 / (P + 1)), so the best sum at h is

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

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.totals_per_user import user_starts
from dpcore.dataset import Dataset, Values
from dpcore.plan.budget import Budget
from dpcore.plan.curves import BoundCurve, caps_to_try
from dpcore.plan.least_sum import least_sum
from dpcore.plan.lines import Released
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.reach import largest_error, needed_budgets
from dpcore.plan.table import PlannedLine, mean_parts, mean_problem

MOST_BOUNDS = 2**13
"""Common bounds that are looked at: all where no user has more rows, else so many, log-spaced."""
HAS = (Released.USERS, Released.ROWS, Released.SUM, Released.MEAN, Released.GROUP_ROWS)
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
        own_caps: The same of a plan in which each line has a bound on rows of its own, drawn from all rows of a user.
        every: Whether all whole bounds were looked at, so that none is better.
        objective: What is made small.
    """

    max_rows: int
    shares: FloatArray
    errors: FloatArray
    value: float
    own_caps: float
    every: bool
    objective: Objective = Objective.SUM

    def cost(self, own_bounds: float) -> float:
        """How many times as much error, or epsilon, as a plan with a bound per line needs.

        Of sums of squares the root is compared. It may be less than 1 with groups: a bound on all rows of a user,
        whatever group they are in, is no pair of a bound on groups and one on rows in each.

        Args:
            own_bounds: The objective of that plan, as ``value`` has it.
        """
        return self._times(self.value, own_bounds)

    @property
    def of_sharing(self) -> float:
        """The part of `cost` that is due to one bound on rows for all, in place of one for each."""
        return self._times(self.value, self.own_caps)

    def of_rows(self, own_bounds: float) -> float:
        """The part of `cost` that is due to bounding rows, in place of totals and of groups."""
        return self._times(self.own_caps, own_bounds)

    def _times(self, more: float, less: float) -> float:
        if more == less:
            return 1.0
        times = more / less if less > 0.0 else math.inf
        return math.sqrt(times) if self.objective is Objective.SUM else times


def best_common_bound(
    data: Dataset, parameters: PlanParameters, planned: Sequence[PlannedLine], budget: Budget | None = None
) -> OneTruncation:
    """The common bound on rows and the shares that are best by the objective of the parameters.

    Values are clamped to the range [lower, upper] of the parameters, in sums, too. Draws of the rows that are kept are
    part of the error. Every line is released, none published as 0.

    Args:
        data: What the lines were read off.
        parameters: What was asked for.
        planned: The lines.
        budget: What is divided, where it is not that of the parameters; of the least epsilon only its noise counts.

    Raises:
        InvalidInput: A line whose error under a common truncation is not known, or a sum without a range.
    """
    whole = parameters.budget if budget is None else budget
    with Problems() as problems:
        for line in planned:
            _check(problems, data, parameters, line)
    caps, every = caps_to_try(data.histogram.max_size, MOST_BOUNDS)
    parts = [_alpha_beta(data, parameters, line, caps) for line in planned]
    alpha, beta = np.array([a for a, _ in parts]), np.array([b for _, b in parts])
    weights = np.array([line.weight for line in planned])
    wanted = np.array([line.wanted for line in planned])
    curves = [BoundCurve(a, b, caps, every=every) for a, b in parts]
    objective, power = parameters.objective, whole.power
    if objective is Objective.SUM:
        roots = (weights[:, None] * beta) ** (1.0 / (power + 1))
        sums = weights @ alpha + whole.whole * roots.sum(axis=0) ** (power + 1)
        at = int(np.argmin(sums))
        amounts = roots[:, at] / roots[:, at].sum() * float(whole.amount(whole.whole))
        value = float(sums[at])
        own = least_sum(curves, weights, whole).certificate
        assert own is not None  # Every line here is a list of bounds.
        own_caps = own.value
    elif objective is Objective.LARGEST:
        levels = _least_levels(alpha, beta, wanted, whole)
        at = int(np.argmin(levels))
        value = float(levels[at])
        amounts = _amounts(alpha[:, at], beta[:, at], value * wanted, power)
        v = whole.v(largest_error(curves, wanted, whole))
        squares = [curve.best(v[j : j + 1]).squares[0] for j, curve in enumerate(curves)]
        own_caps = float(np.max(np.sqrt(squares) / wanted))
    else:
        needed = _amounts(alpha, beta, wanted[:, None], power)
        at = int(np.argmin(needed.sum(axis=0)))
        amounts = needed[:, at]
        if not np.isfinite(amounts).all():
            raise refusal(
                "no ε is enough under one bound on rows: under each, some line keeps more than its wanted error "
                "without any noise",
                remedy="Want less of it",
            )
        value = whole.epsilon_of(float(amounts.sum()))
        own_caps = whole.epsilon_of(float(needed_budgets(curves, wanted, whole).sum()))
    errors = np.sqrt(alpha[:, at] + beta[:, at] * amounts ** -float(power))
    return OneTruncation(
        int(caps[at]), amounts / amounts.sum(), errors, value, own_caps, every, parameters.objective
    )


def _amounts(alpha: FloatArray, beta: FloatArray, wanted: FloatArray, power: int) -> FloatArray:
    """What lines need of a budget for their wanted errors; infinite where none is enough."""
    left = np.maximum(wanted**2 - alpha, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray((beta / left) ** (1.0 / power))


def _least_levels(alpha: FloatArray, beta: FloatArray, wanted: FloatArray, budget: Budget) -> FloatArray:
    """The least of the largest error over wanted error under every bound, by bisection.

    Each line takes no more than all of the budget, and equal shares are one way to divide it.
    """
    amount, each = float(budget.amount(budget.whole)), wanted[:, None]

    def alone(share: float) -> FloatArray:
        return np.asarray((np.sqrt(alpha + beta * float(budget.v(share))) / each).max(axis=0))

    low, high = alone(1.0), alone(1.0 / wanted.size)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = _amounts(alpha, beta, middle * each, budget.power).sum(axis=0) <= amount
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _check(problems: Problems, data: Dataset, parameters: PlanParameters, line: PlannedLine) -> None:
    kind, what = line.line.released, line.line.what
    if kind not in HAS:
        problems.add(f"of {what} the error under one truncation of all rows is not known")
    if kind is Released.SUM and (parameters.lower is None or data.values is None):
        problems.add(
            "a sum under a bound on rows needs the values and their range",
            remedy="Enter lower and upper, from what the quantity is and not from data",
        )
    if kind is Released.GROUP_ROWS and data.pairs is not None and data.pairs.rows_without_group:
        problems.add("some rows are in no group, and how many of each user is not known")


def _alpha_beta(
    data: Dataset, parameters: PlanParameters, line: PlannedLine, caps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(Squared error without noise, variance of the noise at v = 1) of a line under every common bound."""
    kind, variance = line.line.released, parameters.noise.unit_variance
    if kind is Released.USERS:
        return np.zeros(caps.shape), np.full(caps.shape, variance)
    if kind is Released.ROWS:
        lost = data.histogram.num_rows - data.histogram.kept_rows(caps)
        return lost**2, variance * caps**2
    if kind is Released.SUM:
        assert data.values is not None
        assert parameters.lower is not None
        assert parameters.upper is not None
        most = max(abs(parameters.lower), abs(parameters.upper))
        clamped = np.clip(data.values.values, parameters.lower, parameters.upper)
        expected, drawn = _sums_of_drawn(Values(data.values.user_codes, clamped, data.values.column), caps)
        return (expected - line.value) ** 2 + drawn, variance * (most * caps) ** 2
    if kind is Released.MEAN:
        return mean_parts(mean_problem(data, parameters)[0], caps, parameters.noise)
    # A user has at most h rows in all groups: in L1 they move h, and in L2 at most h, where all are in one group.
    return _groups_of_drawn(data, caps), variance * caps**2


def rows_in_all_groups(
    data: Dataset, parameters: PlanParameters, line: PlannedLine, v: float
) -> tuple[int, float]:
    """The best bound on the rows of a user in all groups together, and the error of rows per group under it.

    It is no pair of a bound on groups and one on rows in each, and can err less: where some users have many rows in few
    groups and others few rows in many, a pair leaves room for many rows in many.

    Args:
        data: What the line was read off.
        parameters: What was asked for.
        line: Of rows per group.
        v: Square of its noise scale at sensitivity 1.

    Returns:
        Rows of each user, drawn at random, and the root of the mean squared error, in rows.

    Raises:
        InvalidInput: Some rows are in no group.
    """
    with Problems() as problems:
        _check(problems, data, parameters, line)
    caps, _ = caps_to_try(data.histogram.max_size, MOST_BOUNDS)
    alpha, beta = _alpha_beta(data, parameters, line, caps)
    squares = alpha + beta * v
    at = int(np.argmin(squares))
    return int(caps[at]), math.sqrt(squares[at])


def _above(sizes: FloatArray, caps: FloatArray, of_sizes: FloatArray) -> FloatArray:
    """Sum of what is given per distinct size over the sizes above each cap, shape (..., caps)."""
    tail = np.concatenate(
        [np.cumsum(of_sizes[..., ::-1], axis=-1)[..., ::-1], 0.0 * of_sizes[..., :1]], axis=-1
    )
    return np.asarray(tail[..., np.searchsorted(sizes, caps, side="right")])


def _distinct(size: FloatArray) -> tuple[FloatArray, IntArray]:
    """(Distinct sizes, ascending, the place of each size among them)."""
    sizes, at = np.unique(size, return_inverse=True)
    return sizes, at.astype(np.int64)


def _binned(at: IntArray, amounts: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(at, amounts, size), dtype=np.float64)


def _sums_of_drawn(values: Values, caps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(Expectation, variance) of the sum of at most h rows of each user, drawn without replacement."""
    starts = user_starts(values)
    size = np.diff(np.append(starts, values.values.size)).astype(np.float64)
    total = np.add.reduceat(values.values, starts)
    squares = np.add.reduceat((values.values - np.repeat(total / size, size.astype(np.int64))) ** 2, starts)
    sizes, at = _distinct(size)
    totals = _binned(at, total, sizes.size)
    # Squares around the mean of one row are 0, whatever they are divided by.
    spread = _binned(at, squares / np.maximum(size - 1.0, 1.0), sizes.size)
    # Of a user with s > h rows: h / s of the total; and h (1 - h / s) times the variance of their rows.
    expected = totals.sum() - _above(sizes, caps, totals) + caps * _above(sizes, caps, totals / sizes)
    drawn = caps * _above(sizes, caps, spread) - caps**2 * _above(sizes, caps, spread / sizes)
    # Where those who are cut lose few rows, the two parts nearly cancel.
    return expected, np.maximum(drawn, 0.0)


def _groups_of_drawn(data: Dataset, caps: FloatArray) -> FloatArray:
    """Mean over the groups of the squared error of their rows, where at most h rows of each user are drawn."""
    pairs = data.pairs
    assert pairs is not None
    assert pairs.rows is not None
    rows = pairs.rows.astype(np.float64)
    users = pairs.user_codes
    size = _binned(users, rows, int(users[-1]) + 1)[users]
    sizes, at = _distinct(size)
    shape = (pairs.num_tasks, sizes.size)
    place = np.ravel_multi_index((pairs.task_codes, at), shape)

    def above(of_pairs: FloatArray) -> FloatArray:
        """Per group and cap: the sum over pairs of users with more rows."""
        return _above(sizes, caps, _binned(place, of_pairs, shape[0] * shape[1]).reshape(shape))

    # Of r rows in a group among s > h: h r / s are kept, with the variance of a hypergeometric draw,
    # h (r / s) (1 - r / s) (s - h) / (s - 1).
    share = rows / size
    mixed = share * (1.0 - share) / np.maximum(size - 1.0, 1.0)
    lost = above(rows) - caps * above(share)
    drawn = caps * above(mixed * size) - caps**2 * above(mixed)
    return np.asarray(np.mean(lost**2 + np.maximum(drawn, 0.0), axis=0))
