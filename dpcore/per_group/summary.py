"""Bounds per group from the distribution of pairs alone, and the assumptions, words and file of all answers.

The pairs themselves are then not known (`dpcore.dataset.PairSizes`). The numbers of pairs of each size (rows of the
pair, groups of its user) and the rows and users of every group are known, but not which pairs lie in which group.
These determine the sum of all groups' biases, the sum of their sampling variances, and the noise. They do not
determine how the bias is spread over groups: it is taken to be proportional to their sizes, as if every group had the
same mixture of pairs.

The root mean square over groups has limits for any mixture. With B the sum of biases, the sum of their squares is
smallest, B^2 / G, if all groups have the same bias, and largest if the largest groups lose everything, as no group's
bias exceeds its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.contributions import MAX_SIZE, FloatArray, IntArray
from dpcore.dataset import PairSizes
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic

DIGITS = 3


def round_up(amount: float) -> float:
    """Round an amount up to few digits, as the exact amount may reveal that of one user."""
    if amount <= 0.0 or not math.isfinite(amount):
        return amount
    step = 10.0 ** (math.floor(math.log10(amount)) - DIGITS + 1)
    return float(f"{math.ceil(amount / step * (1.0 - 1e-12)) * step:.12g}")


def amount_words(parameters: PerGroupParameters, amount: float) -> str:
    """Format a bound on an amount with its unit: rows, or a number without a unit."""
    if parameters.statistic in (Statistic.ROWS, Statistic.MEAN):
        return wording.counted(amount, "row")
    return wording.number(amount)


def pair_words(parameters: PerGroupParameters, max_groups: int, max_amount: float) -> str:
    """Format a pair of bounds, such as ``9 groups × 3 rows``; groups alone if users count once in each."""
    groups = wording.counted(max_groups, "group")
    if parameters.statistic is Statistic.USERS:
        return groups
    return f"{groups} × {amount_words(parameters, max_amount)}"


def pair_label(parameters: PerGroupParameters) -> str:
    """Return the label of the pair."""
    return "Best bound" if parameters.statistic is Statistic.USERS else "Best pair of bounds"


def error_words(parameters: PerGroupParameters, error: float) -> str:
    """Format an error with its unit: per cent, rows, users, or a number without a unit."""
    if parameters.objective.relative:
        return wording.percent(error)
    name = {Statistic.ROWS: "row", Statistic.USERS: "user"}.get(parameters.statistic)
    return wording.number(error) if name is None else wording.counted(float(f"{error:.3g}"), name)


def unit_of(parameters: PerGroupParameters) -> str:
    """Return the unit of errors, for axes."""
    if parameters.objective.relative:
        return "share of the group's size"
    return {
        Statistic.ROWS: "rows",
        Statistic.USERS: "users",
        Statistic.SUM: "unit of the column",
        Statistic.SIGNED_SUM: "unit of the column",
        Statistic.MEAN: "unit of the values",
    }[parameters.statistic]


OBJECTIVES = {
    Objective.ROOT_MEAN_SQUARE: "root mean squared error over the groups",
    Objective.MEAN_RMSE: "mean of the groups' errors",
    Objective.RELATIVE_ROOT_MEAN_SQUARE: "root mean square of the groups' relative errors",
    Objective.MEAN_RELATIVE: "mean of the groups' relative errors",
    Objective.LARGE_GROUPS: "root mean squared error over the large groups",
}


def list_assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return the assumptions of the answers, sentences without their full stop."""
    mean, private = parameters.statistic is Statistic.MEAN, parameters.selection.private
    sentences = [
        f"Neighbouring data sets differ thus: {parameters.neighbours.value}",
        "The list of groups is public and does not depend on the data; groups without rows are released, too",
        "The budget is for all groups together; every further release needs its own",
        "Under a pair of bounds each user keeps at most so many of their groups, drawn at random, and in each at "
        "most the other bound",
        "The errors are those on the very data given, averaged over the noise and the random choice of groups",
        "The bounds themselves are taken as public. Read off private data they are not, and ε does not cover them",
    ]
    if private:
        sentences[1] = (
            "Groups are selected by how many users keep them in their sample; a group that is not released "
            "counts as 0, so that its error is its size"
        )
        sentences[2] = (
            "Selection and noise each have their share of ε and δ, which add up; the budget is for all groups together"
        )
        sentences[3] += (
            ", the same for selection and sum; where users are scaled, only the selection has a sample"
        )
    if mean:
        sentences[3:5] = [
            "Under a pair of bounds each user keeps at most so many of their groups, and in each at most so many rows, "
            "all drawn at random",
            "For every group the rows' distances from the lower and from the upper end of the range are added up, and "
            "released as one vector with the whole of ε and δ; from both follows the mean, brought into the range",
            "In the errors the noise is exact, and the random choice of groups and rows stands by its moments up to "
            "the third",
        ]
    return tuple(sentences)


def list_summary_assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return the assumptions of the answers if only the distribution of pairs is known."""
    return (*list_assumptions(parameters), "Every group holds the same mixture of pairs")


POINTS = 60
"""Numbers of groups of the first grid of the search; it has half as many amounts."""


@dataclass(frozen=True)
class SummaryChoice:
    """The best pair of bounds found from the distribution of pairs.

    Attributes:
        max_groups: L0; 0 if it is best to release nothing.
        max_amount: L-infinity in rows; 0 if ``max_groups`` is 0.
        error: The objective there, if every group has the same mixture of pairs.
        error_of_nothing: The objective for publishing 0 in every group, exactly.
        lower: Lower bound on the error for any mixture; None unless the objective is the root mean square.
        upper: Upper bound on the error, likewise.
        evaluations: Number of evaluated pairs of bounds.
    """

    max_groups: int
    max_amount: float
    error: float
    error_of_nothing: float
    lower: float | None
    upper: float | None
    evaluations: int

    @property
    def stop_reason(self) -> str:
        """Return the sentences on how the search ended and on the approximation."""
        sentence = (
            f"Best of {self.evaluations:,} pairs of bounds; nothing proves that there is no better one."
        )
        return f"{sentence} {APPROXIMATE}"


APPROXIMATE = (
    "Which pairs lie in which group is not known here: the sum of all biases, sampling and noise are exact, and the "
    "bias is taken to be in proportion to the groups' sizes."
)


class SummaryProblem:
    """The problem on a distribution of pairs.

    Args:
        sizes: The distribution.
        parameters: The parameters: rows or distinct users, a public list of groups.

    Raises:
        InvalidInput: The parameters need the pairs themselves.
    """

    def __init__(self, sizes: PairSizes, parameters: PerGroupParameters) -> None:
        with Problems() as problems:
            if parameters.statistic not in (Statistic.ROWS, Statistic.USERS):
                problems.add("sums and means need the pairs of user and group", remedy="Choose rows or users")
            if parameters.selection.private:
                problems.add("private groups need the pairs of user and group", remedy="Choose a public list")
            num_occupied = sizes.task_rows.size
            if parameters.num_groups is not None and parameters.num_groups < num_occupied:
                problems.add(
                    f"the data hold {num_occupied:,} groups, more than the {parameters.num_groups:,} entered"
                )
        self.sizes, self.parameters = sizes, parameters
        self.empty = 0 if parameters.num_groups is None else parameters.num_groups - num_occupied
        parameters.check_sizes(self.totals)

    @cached_property
    def amounts(self) -> FloatArray:
        """Return the amount of a pair of each size, shape (num_sizes,)."""
        rows = self.sizes.rows.astype(np.float64)
        return np.ones_like(rows) if self.parameters.statistic is Statistic.USERS else rows

    @cached_property
    def totals(self) -> FloatArray:
        """Return the true value of every group with rows, shape (num_tasks,)."""
        users = self.parameters.statistic is Statistic.USERS
        return (self.sizes.task_users if users else self.sizes.task_rows).astype(np.float64)

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list."""
        return self.totals.size + self.empty

    @cached_property
    def _merged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distinct totals (0 for empty groups), the number of groups with each, and the weight of one."""
        totals, times = np.unique(np.r_[self.totals, np.zeros(min(self.empty, 1))], return_counts=True)
        number = times.astype(np.float64)
        if self.empty:
            number[0] = self.empty
        return totals, number, self.parameters.group_weights(totals, number)

    def _sums(self, max_groups: int, max_amount: float) -> tuple[float, float]:
        """Return the exact sums over all groups of bias and of sampling variance."""
        number = self.sizes.pairs.astype(np.float64)
        clipped = np.minimum(self.amounts, max_amount)
        share = np.minimum(1.0, max_groups / self.sizes.groups)
        bias = float(number @ (self.amounts - share * clipped))
        return bias, float(number @ (share * (1.0 - share) * clipped**2))

    def error(self, max_groups: int, max_amount: float) -> float:
        """Return the objective under a pair of bounds, if every group has the same mixture of pairs.

        Args:
            max_groups: L0, whole, at least 1.
            max_amount: L-infinity in rows, above 0.

        Raises:
            InvalidInput: A bound is out of its range.
        """
        with Problems() as problems:
            problems.whole(1, MAX_SIZE, max_groups=max_groups)
            problems.positive(max_amount=max_amount)
        return self.error_parts(max_groups, max_amount)[0]

    def error_parts(self, max_groups: int, max_amount: float) -> tuple[float, float, float]:
        """Return the error and its sampling and noise parts, as in `moments.ErrorParts`; arguments as `error`."""
        bias, variance = self._sums(max_groups, max_amount)
        noise = float(self.parameters.pair_noise(max_groups, max_amount)) ** 2
        totals, number, weights = self._merged
        share, weights = totals / float(self.totals.sum()), number * weights
        squares = (share * bias) ** 2 + share * variance + noise
        if self.parameters.objective.rooted:
            root = np.sqrt(squares)
            error = float(root @ weights)
        else:
            error = math.sqrt(float(squares @ weights))
            root = np.full(squares.shape, error)
        root_weights = np.divide(weights, root, out=np.zeros_like(weights), where=root > 0.0)
        return error, float((share * variance) @ root_weights), noise * float(root_weights.sum())

    @property
    def error_of_nothing(self) -> float:
        """Return the objective for publishing 0 in every group."""
        totals, number, weights = self._merged
        if self.parameters.objective.rooted:
            return float((totals * number) @ weights)
        return math.sqrt(float((totals**2 * number) @ weights))

    def limits(self, max_groups: int, max_amount: float) -> tuple[float, float] | None:
        """Return lower and upper limits of the root mean square over groups for any mixture, or None."""
        if self.parameters.objective is not Objective.ROOT_MEAN_SQUARE:
            return None
        bias, variance = self._sums(max_groups, max_amount)
        noise = float(self.parameters.pair_noise(max_groups, max_amount)) ** 2
        min_bias_square = bias**2 / self.totals.size
        lost = np.sort(self.totals)[::-1]
        lost = np.diff(np.minimum(np.cumsum(lost), bias), prepend=0.0)
        other_variance = variance / self.num_groups + noise
        return tuple(
            math.sqrt(x / self.num_groups + other_variance) for x in (min_bias_square, float(lost @ lost))
        )  # type: ignore[return-value]


def best_summary_pair(problem: SummaryProblem) -> SummaryChoice:
    """Search the best pair for a distribution: a grid over both bounds, then steps of decreasing size."""
    most_groups = int(problem.sizes.groups.max())
    most_amount = int(problem.amounts.max())
    errors: dict[tuple[int, int], float] = {}

    def evaluate(groups: int, amount: int) -> float:
        pair = min(max(groups, 1), most_groups), min(max(amount, 1), most_amount)
        if pair not in errors:
            errors[pair] = problem.error(*pair)
        return errors[pair]

    for groups in _log_spaced_integers(most_groups, POINTS):
        for amount in _log_spaced_integers(most_amount, POINTS // 2):
            evaluate(int(groups), int(amount))
    step = 1.3
    while True:
        best = min(errors, key=lambda at: errors[at])
        (g, c), best_error = best, errors[best]
        moves = {
            (max(round(g * a), g + 1) if a > 1.0 else min(round(g * a), g - 1) if a < 1.0 else g,
             max(round(c * b), c + 1) if b > 1.0 else min(round(c * b), c - 1) if b < 1.0 else c)
            for a in (1.0 / step, 1.0, step)
            for b in (1.0 / step, 1.0, step)
        }  # fmt: skip
        if min(evaluate(*at) for at in moves) >= best_error:
            if step == 1.0 + 1e-9:
                break
            # At a step so near 1 all moves go to the next integers; if none of these is better, the search ends.
            step = math.sqrt(step) if step > 1.001 else 1.0 + 1e-9
    error_of_nothing = problem.error_of_nothing
    if error_of_nothing <= best_error:
        return SummaryChoice(
            0, 0.0, error_of_nothing, error_of_nothing, error_of_nothing, error_of_nothing, len(errors)
        )
    limits = problem.limits(*best)
    low, high = limits if limits is not None else (None, None)
    return SummaryChoice(best[0], float(best[1]), best_error, error_of_nothing, low, high, len(errors))


def _log_spaced_integers(largest: int, count: int) -> IntArray:
    return np.unique(np.rint(np.geomspace(1, largest, count))).astype(np.int64)
