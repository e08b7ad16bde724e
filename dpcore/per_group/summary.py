"""Bounds from how pairs are distributed alone, where the pairs themselves are not known (`dpcore.dataset.PairSizes`).

Known are the numbers of pairs of each size (rows of the pair, groups of its user), and the rows and users of every
group; not known is which pairs lie in which group. Of the error this settles exactly: the sum of all groups' biases,
the sum of their sampling variances, and the noise. Only how the bias is spread over groups is not: it is taken to be
in proportion to their sizes, as if every group had the same mixture of pairs.

For the root mean square over groups the truth lies between two numbers, whatever the mixture: with B the sum of
biases, the sum of their squares is least, B^2 / G, where all groups have the same bias, and largest where the largest
groups lose everything, as no group's bias exceeds its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import MAX_SIZE, FloatArray, IntArray
from dpcore.dataset import PairSizes
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic

POINTS = 60
"""Numbers of groups, and half as many amounts, that the search begins with."""


@dataclass(frozen=True)
class SummaryChoice:
    """The best pair of bounds that was found from the distribution of pairs.

    Attributes:
        max_groups: L0; 0 where it is best to release nothing.
        max_amount: L-infinity in rows; 0 with it.
        error: The objective there, with every group of the same mixture.
        error_of_nothing: The same for publishing 0 in every group, exactly.
        lower: What the error there is at least, whatever the mixture; None for objectives but the root mean square.
        upper: What it is at most, likewise.
        looked_at: How many pairs of bounds were looked at.
    """

    max_groups: int
    max_amount: float
    error: float
    error_of_nothing: float
    lower: float | None
    upper: float | None
    looked_at: int

    @property
    def ended(self) -> str:
        """Return what is known and what is not, sentences."""
        found = f"Best of {self.looked_at:,} pairs of bounds; nothing proves that there is no better one."
        return f"{found} {APPROXIMATE}"


APPROXIMATE = (
    "Which pairs lie in which group is not known here: the sum of all biases, sampling and noise are exact, and the "
    "bias is taken to be in proportion to the groups' sizes."
)


class SummaryProblem:
    """The question on a distribution of pairs.

    Args:
        sizes: The distribution.
        parameters: The question: rows or distinct users, a public list of groups.

    Raises:
        InvalidInput: The question needs the pairs themselves.
    """

    def __init__(self, sizes: PairSizes, parameters: PerGroupParameters) -> None:
        with Problems() as problems:
            if parameters.statistic not in (Statistic.ROWS, Statistic.USERS):
                problems.add("sums and means need the pairs of user and group", remedy="Choose rows or users")
            if parameters.selection.private:
                problems.add("private groups need the pairs of user and group", remedy="Choose a public list")
            held = sizes.task_rows.size
            if parameters.num_groups is not None and parameters.num_groups < held:
                problems.add(
                    f"the data hold {held:,} groups, more than the {parameters.num_groups:,} entered"
                )
        self.sizes, self.parameters = sizes, parameters
        self.empty = 0 if parameters.num_groups is None else parameters.num_groups - held
        parameters.check_sizes(self.totals)

    @cached_property
    def amounts(self) -> FloatArray:
        """Return what a pair of each size adds, shape (num_sizes,)."""
        rows = self.sizes.rows.astype(np.float64)
        return np.ones_like(rows) if self.parameters.statistic is Statistic.USERS else rows

    @cached_property
    def totals(self) -> FloatArray:
        """True value of every group that has rows, shape (num_tasks,)."""
        users = self.parameters.statistic is Statistic.USERS
        return (self.sizes.task_users if users else self.sizes.task_rows).astype(np.float64)

    @property
    def num_groups(self) -> int:
        """Return the groups of the public list."""
        return self.totals.size + self.empty

    @cached_property
    def _merged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Distinct totals with how many groups have each, empty groups as 0; and the weight of one such group."""
        totals, times = np.unique(np.r_[self.totals, np.zeros(min(self.empty, 1))], return_counts=True)
        number = times.astype(np.float64)
        if self.empty:
            number[0] = self.empty
        return totals, number, self.parameters.group_weights(totals, number)

    def _sums(self, max_groups: int, max_amount: float) -> tuple[float, float]:
        """Return the bias of all groups together, and their sampling variance together; both exact."""
        number = self.sizes.pairs.astype(np.float64)
        kept = np.minimum(self.amounts, max_amount)
        share = np.minimum(1.0, max_groups / self.sizes.groups)
        bias = float(number @ (self.amounts - share * kept))
        return bias, float(number @ (share * (1.0 - share) * kept**2))

    def error(self, max_groups: int, max_amount: float) -> float:
        """Return the objective under a pair of bounds, with every group of the same mixture.

        Args:
            max_groups: L0, whole, at least 1.
            max_amount: L-infinity in rows, above 0.

        Raises:
            InvalidInput: A bound is out of its range.
        """
        with Problems() as problems:
            problems.whole(1, MAX_SIZE, max_groups=max_groups)
            problems.positive(max_amount=max_amount)
        return self.parts(max_groups, max_amount)[0]

    def parts(self, max_groups: int, max_amount: float) -> tuple[float, float, float]:
        """Return the error, and what sampling and noise add to it, as in `moments.ErrorParts`; arguments as `error`."""
        bias, variance = self._sums(max_groups, max_amount)
        noise = float(self.parameters.pair_noise(max_groups, max_amount)) ** 2
        totals, number, weights = self._merged
        share, weights = totals / float(self.totals.sum()), number * weights
        squares = (share * bias) ** 2 + share * variance + noise
        if self.parameters.objective.rooted:
            root = np.sqrt(squares)
            whole = float(root @ weights)
        else:
            whole = math.sqrt(float(squares @ weights))
            root = np.full(squares.shape, whole)
        weighed = np.divide(weights, root, out=np.zeros_like(weights), where=root > 0.0)
        return whole, float((share * variance) @ weighed), noise * float(weighed.sum())

    @property
    def error_of_nothing(self) -> float:
        """Return what it costs to publish 0 in every group."""
        totals, number, weights = self._merged
        if self.parameters.objective.rooted:
            return float((totals * number) @ weights)
        return math.sqrt(float((totals**2 * number) @ weights))

    def limits(self, max_groups: int, max_amount: float) -> tuple[float, float] | None:
        """Return what the root mean square over groups is at least and at most, whatever lies in which group."""
        if self.parameters.objective is not Objective.ROOT_MEAN_SQUARE:
            return None
        bias, variance = self._sums(max_groups, max_amount)
        noise = float(self.parameters.pair_noise(max_groups, max_amount)) ** 2
        least = bias**2 / self.totals.size
        lost = np.sort(self.totals)[::-1]
        lost = np.diff(np.minimum(np.cumsum(lost), bias), prepend=0.0)
        rest = variance / self.num_groups + noise
        return tuple(math.sqrt(x / self.num_groups + rest) for x in (least, float(lost @ lost)))  # type: ignore[return-value]


def best_summary_pair(problem: SummaryProblem) -> SummaryChoice:
    """The best pair that a search over the distribution finds: a grid over both bounds, then ever smaller steps."""
    most_groups = int(problem.sizes.groups.max())
    most_amount = int(problem.amounts.max())
    seen: dict[tuple[int, int], float] = {}

    def look(groups: int, amount: int) -> float:
        at = min(max(groups, 1), most_groups), min(max(amount, 1), most_amount)
        if at not in seen:
            seen[at] = problem.error(*at)
        return seen[at]

    for groups in _spread(most_groups, POINTS):
        for amount in _spread(most_amount, POINTS // 2):
            look(int(groups), int(amount))
    step = 1.3
    while True:
        best = min(seen, key=lambda at: seen[at])
        (g, c), before = best, seen[best]
        moves = {
            (max(round(g * a), g + 1) if a > 1.0 else min(round(g * a), g - 1) if a < 1.0 else g,
             max(round(c * b), c + 1) if b > 1.0 else min(round(c * b), c - 1) if b < 1.0 else c)
            for a in (1.0 / step, 1.0, step)
            for b in (1.0 / step, 1.0, step)
        }  # fmt: skip
        if min(look(*at) for at in moves) >= before:
            if step == 1.0 + 1e-9:
                break
            # At a step so near 1 all moves are to the next whole numbers; where none of these is better the search
            # ends.
            step = math.sqrt(step) if step > 1.001 else 1.0 + 1e-9
    nothing = problem.error_of_nothing
    if nothing <= before:
        return SummaryChoice(0, 0.0, nothing, nothing, nothing, nothing, len(seen))
    limits = problem.limits(*best)
    low, high = limits if limits is not None else (None, None)
    return SummaryChoice(best[0], float(best[1]), before, nothing, low, high, len(seen))


def _spread(most: int, count: int) -> IntArray:
    return np.unique(np.rint(np.geomspace(1, most, count))).astype(np.int64)
