"""The rows of a quantile in the order of their values, and their weighted ranks under a bound."""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.totals_per_user import find_user_starts
from dpcore.dataset import Values
from dpcore.quantile.base_distribution import Base

SEARCH_SUBSAMPLES = 50
"""Subsamples of a search, other ones than those of the averages."""
FEWEST_SUBSAMPLES = 8
"""Fewest subsamples of many rows."""
_ROWS_OF_SEARCH = 1_000_000  # Rows times subsamples; with more, a search would take minutes.
_SUBSAMPLE_CELLS = 40_000  # Rows times subsamples of one pass: its arrays stay in the processor's cache.
_KEPT_CELLS = 10_000_000  # Rows times subsamples up to which the subsamples are kept once drawn, 40 MB.
SLACK = 1e-12  # F - q is a difference of rounded numbers: 0.55 - 0.5 > 0.05 in float64.


class WeightKind(enum.Enum):
    """How the rows of a user share weight under a bound h."""

    SMOOTH = "all rows, min(h, s) / s each"
    CAP = "at most h rows, drawn at random"


def affordable_subsamples(num_cells: int, num_rows: int, limit: int) -> int:
    """Return the number of subsamples that keeps rows times subsamples below ``num_cells``; enough for a spread."""
    return min(max(num_cells // num_rows, FEWEST_SUBSAMPLES), limit)


@dataclass(frozen=True, eq=False)
class Draws:
    """Random orders of each user's rows; the values play no part in them.

    A cap of h keeps the first h rows of each order. So the rows under a smaller cap are among those under a larger one,
    and curves over h do not jump for want of common rows.

    Attributes:
        starts: Where each user's rows begin, shape (users,).
        per_user: How many rows each has, shape (users,).
        order: The rows, sorted by value, shape (n,).
        seed: Of the first order; the next ones follow.
        count: How many orders there are.
    """

    starts: IntArray
    per_user: IntArray
    order: IntArray
    seed: int
    count: int

    @cached_property
    def for_search(self) -> Draws:
        """Return other draws for the search: none is among these, and no more than a search can afford."""
        count = min(affordable_subsamples(_ROWS_OF_SEARCH, self.order.size, SEARCH_SUBSAMPLES), self.count)
        return replace(self, seed=self.seed + self.count, count=count)

    def positions(self, first: int, stop: int) -> npt.NDArray[np.int32]:
        """Return the random position of each row, in value order, within its user, shape (subsamples, n)."""
        if self.count * self.order.size > _KEPT_CELLS:
            return self._sample_orders(first, stop)
        return self._all_orders[first:stop]

    @cached_property
    def _all_orders(self) -> npt.NDArray[np.int32]:
        return self._sample_orders(0, self.count)

    def _sample_orders(self, first: int, stop: int) -> npt.NDArray[np.int32]:
        user = np.repeat(np.arange(self.per_user.size), self.per_user)
        ranks = np.arange(user.size) - np.repeat(self.starts, self.per_user)
        orders = np.empty((stop - first, user.size), dtype=np.int32)
        positions = np.empty(user.size, dtype=np.int32)
        for k in range(first, stop):
            # 1e-6 off the draw, so that user + draw never rounds up to the next user (codes stay below 2e7).
            order = np.argsort(user + np.random.default_rng(self.seed + k).random(user.size) * (1.0 - 1e-6))
            positions[order] = ranks
            orders[k - first] = positions[self.order]
        return orders


class Rows:
    """The rows in the order of their values, cut into intervals on which rank and base density are simple.

    Attributes:
        histogram: Rows per user.
        edges: Distinct values and breaks of the base, shape (k + 1,), from -inf to inf.
        log_base: Log base mass of each interval, shape (k,).
        share_below: F on each interval, shape (k,); at its lower end if the base is discrete.
        rows_strictly_below: How many rows lie below the lower end of each interval; only of a discrete base, whose
            candidates may tie with values.
        ordered_values: The values, ascending, shape (n,).
        draws: Random orders of each user's rows, by which caps choose.
    """

    def __init__(self, values: Values, base: Base, subsample: int, num_subsamples: int) -> None:
        """Sort the rows of ``values``; ``base`` and ``subsample`` as in `QuantileProblem`."""
        n, starts, per_user = self._count_users(values)
        order = np.argsort(values.values)  # Not stable, but several times as fast; equal values are one step.
        self.ordered_values = in_order = values.values[order]
        row_ends = np.flatnonzero(np.concatenate((np.diff(in_order) > 0, [True])))
        distinct = in_order[row_ends]
        size_index = np.searchsorted(self.histogram.sizes, per_user)
        self._size_index = np.repeat(size_index, per_user)[order]
        self.draws = Draws(starts, per_user, order, subsample, num_subsamples)
        rows_up_to = np.concatenate(([0], row_ends + 1))
        self._rows_below = rows_up_to[self._cut(distinct, base)]
        self.rows_strictly_below = self._rows_below
        if base.is_discrete:
            self.rows_strictly_below = np.searchsorted(in_order, self.edges[:-1], side="left")
        self.share_below = self._rows_below / n

    def _count_users(self, values: Values) -> tuple[int, IntArray, IntArray]:
        """Set the histogram; return the number of rows, where each user's rows begin, and how many each user has."""
        starts = find_user_starts(values)
        per_user = np.diff(np.append(starts, values.values.size))
        self.histogram = ContributionHistogram.from_counts(per_user)
        return values.values.size, starts, per_user

    def _cut(self, distinct: FloatArray, base: Base) -> IntArray:
        """Set the intervals with their base masses; return how many distinct values lie at or below each left end."""
        cuts = base.breaks if base.is_discrete else np.union1d(distinct, base.breaks)
        self.edges = np.concatenate(([-np.inf], cuts, [np.inf]))
        self.log_base = base.log_mass(self.edges[:-1], self.edges[1:])
        return np.searchsorted(distinct, self.edges[:-1], side="right")

    def value_at(self, share: float) -> float:
        """Return the least value with F(value) >= ``share``, for a share in (0, 1]: the exact quantile of the rows."""
        n = self.ordered_values.size
        return float(self.ordered_values[min(max(math.ceil(share * (1.0 - SLACK) * n), 1), n) - 1])

    def with_draws(self, draws: Draws) -> Rows:
        """Return the same rows with these subsamples."""
        changed = copy.copy(self)
        changed.draws = draws
        return changed

    def subsamples_for(self, weighting: WeightKind, bound: float) -> int:
        """Return the number of subsamples to average over: one if all rows are kept or weighted smoothly."""
        return self.draws.count if weighting is WeightKind.CAP and bound < self.histogram.max_size else 1

    def largest_user_weight(self, bound: float) -> float:
        """Return W, which is the same in every subsample."""
        return min(bound, float(self.histogram.max_size)) / float(self.histogram.kept_rows(bound))

    @property
    def has_ties(self) -> bool:
        """Return True if a candidate of a discrete base equals a value."""
        return self.rows_strictly_below is not self._rows_below and bool(
            np.any(self.rows_strictly_below < self._rows_below)
        )

    def weighted_ranks(
        self, weighting: WeightKind, bound: float, uncounted_share: float = 0.0
    ) -> Iterator[FloatArray]:
        """Yield the rank on each interval for one bound, in blocks of shape (subsamples in the block, k).

        Args:
            weighting: Smooth weights or a cap.
            bound: The bound.
            uncounted_share: The share of rows equal to a candidate that is not counted; 0 for smooth weights.
        """
        sizes, subsamples = self.histogram.sizes.astype(np.float64), self.subsamples_for(weighting, bound)
        if subsamples == 1 and (weighting is WeightKind.SMOOTH or bound >= sizes[-1]):
            weights = (np.minimum(bound, sizes) / sizes)[self._size_index]
            cumulated = np.concatenate(([0.0], np.cumsum(weights)))
            # Divided by the last entry itself, so that the rank ends at 1 exactly.
            blocks: Iterable[npt.NDArray[Any]] = (cumulated[None, :],)
        else:
            blocks = self.count_kept(bound)
        for block in blocks:
            below = np.take(block, self._rows_below, axis=1)
            if uncounted_share > 0.0:
                strictly_below = np.take(block, self.rows_strictly_below, axis=1)
                below = below - uncounted_share * (below - strictly_below)
            yield below / block[:, -1:]

    def count_kept(self, bound: float) -> Iterator[npt.NDArray[np.int32]]:
        """Yield how many of the first i rows, by value, a cap keeps, in blocks of shape (subsamples, n + 1)."""
        count, subsamples = self._size_index.size, self.subsamples_for(WeightKind.CAP, bound)
        block = max(1, _SUBSAMPLE_CELLS // count)
        for first in range(0, subsamples, block):
            stop = min(first + block, subsamples)
            num_kept = np.zeros((stop - first, count + 1), dtype=np.int32)
            np.cumsum(self.draws.positions(first, stop) < bound, axis=1, out=num_kept[:, 1:])
            yield num_kept


class ThinRows(Rows):
    """Rows lowered to few distinct values and counted per value and size of user: far less to hold and to rank.

    No rank's distance from q changes by more than 1 %, or by one row. They are for weights by user, which draw nothing.
    """

    def __init__(self, values: Values, base: Base, quantile: float) -> None:
        """Sort the rows of ``values`` once; ``base`` and ``quantile`` as in `QuantileProblem`."""
        n, _, per_user = self._count_users(values)
        ordered = np.sort(values.values)
        # Distances from the quantile's place that grow by 1 % or one row each: lowered to the next, no row's distance
        # changes by more. The smallest value is among them, so that every row has one at or below it.
        steps = np.unique(np.round(np.geomspace(1.0, n, math.ceil(math.log(n) / 0.01) + 1)))
        target = quantile * n
        positions = np.clip(np.concatenate((target - steps, [0.0, target], target + steps)), 0.0, n - 1.0)
        few = np.unique(ordered[positions.astype(np.int64)])
        few_index = np.searchsorted(few, values.values, side="right") - 1
        size = np.repeat(np.searchsorted(self.histogram.sizes, per_user), per_user)
        cells, self._counts = np.unique(few_index * self.histogram.sizes.size + size, return_counts=True)
        self._value_index, self._size_index = np.divmod(cells, self.histogram.sizes.size)
        self._rows_below = self._cut(few, base)  # Here it counts values, not rows.
        up_to = np.cumsum(np.bincount(few_index, minlength=few.size))
        self.share_below = np.concatenate(([0.0], up_to))[self._rows_below] / n

    def weighted_ranks(
        self, weighting: WeightKind, bound: float, uncounted_share: float = 0.0
    ) -> Iterator[FloatArray]:
        """See `Rows`."""
        if weighting is not WeightKind.SMOOTH:
            raise ValueError("a cap needs single rows")
        sizes = self.histogram.sizes.astype(np.float64)
        weights = (np.minimum(bound, sizes) / sizes)[self._size_index] * self._counts
        cumulated = np.concatenate(([0.0], np.cumsum(np.bincount(self._value_index, weights))))
        yield (cumulated[self._rows_below] / cumulated[-1])[None, :]
