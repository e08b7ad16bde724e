"""The rows of a quantile in the order of their values, and the distribution of a private quantile under one bound."""

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
from dpcore.dataset import Values
from dpcore.quantile.base_distribution import Base

MAX_SEARCH_SUBSAMPLES = 50
"""Subsamples of a search, other ones than those of the averages."""
MIN_SUBSAMPLES = 8
"""Fewest subsamples of many rows."""
_MAX_SEARCH_CELLS = 1_000_000  # Rows times subsamples; with more, a search would take minutes.
_CELLS_PER_PASS = 40_000  # Rows times subsamples of one pass: its arrays stay in the processor's cache.
_MAX_CACHED_CELLS = 10_000_000  # Rows times subsamples up to which the subsamples are kept once drawn, 40 MB.
_MAX_CACHED_COUNTS, _MAX_COUNT = 8_000_000, 2**16 - 1
"""Intervals times subsamples up to which counts of kept rows stay, 32 MB with ties; the most rows that they count."""
RANK_ROUNDING = 1e-12  # F - q is a difference of rounded numbers: 0.55 - 0.5 > 0.05 in float64.


class WeightKind(enum.Enum):
    """How the rows of a user share weight under a bound h."""

    SMOOTH = "all rows, min(h, s) / s each"
    CAP = "at most h rows, drawn at random"


def choose_num_subsamples(num_cells: int, num_rows: int, max_num_subsamples: int) -> int:
    """Return how many subsamples fit into ``num_cells`` cells of rows times subsamples.

    At least `MIN_SUBSAMPLES`, which is enough for a spread, but never more than ``max_num_subsamples``.
    """
    return min(max(num_cells // num_rows, MIN_SUBSAMPLES), max_num_subsamples)


@dataclass(frozen=True, eq=False)
class RandomOrders:
    """Random orders of each user's rows, all orders equally likely whatever the values.

    The order in which the rows of a user came plays no part: a file of other order has the same figures.
    A cap of h keeps the first h rows of each order. So the rows under a smaller cap are among those under a larger one,
    and curves over h do not jump for want of common rows.

    Attributes:
        starts: Where each user's rows begin, shape (users,).
        rows_per_user: How many rows each has, shape (users,).
        value_order: The indices of the rows, sorted by value, shape (n,).
        first_seed: The seed of the first order; the next ones count up.
        num_orders: How many orders there are.
    """

    starts: IntArray
    rows_per_user: IntArray
    value_order: IntArray
    first_seed: int
    num_orders: int

    @cached_property
    def search_orders(self) -> RandomOrders:
        """Return the draws of a search: other seeds than these, and at most `MAX_SEARCH_SUBSAMPLES` of them."""
        max_orders = min(MAX_SEARCH_SUBSAMPLES, self.num_orders)
        num_orders = choose_num_subsamples(_MAX_SEARCH_CELLS, self.value_order.size, max_orders)
        return replace(self, first_seed=self.first_seed + self.num_orders, num_orders=num_orders)

    def find_positions(self, first_subsample: int, stop_subsample: int) -> npt.NDArray[np.int32]:
        """Return each row's random position within its user, in value order, for subsamples from first to stop.

        Shape (subsamples, n).
        """
        if self.num_orders * self.value_order.size > _MAX_CACHED_CELLS:
            return self._sample_orders(first_subsample, stop_subsample)
        return self._all_orders[first_subsample:stop_subsample]

    @cached_property
    def _all_orders(self) -> npt.NDArray[np.int32]:
        """Return all random positions, shape (subsamples, n); only for few enough cells."""
        return self._sample_orders(0, self.num_orders)

    @cached_property
    def _places(self) -> IntArray:
        """Return the place of each row, in value order, when every user's rows are sorted by value."""
        user_indices = np.repeat(np.arange(self.rows_per_user.size), self.rows_per_user)
        places_of_rows = np.empty(self.value_order.size, dtype=np.int64)
        places_of_rows[np.argsort(user_indices[self.value_order], kind="stable")] = np.arange(
            places_of_rows.size
        )
        return places_of_rows

    def _sample_orders(self, first_seed_offset: int, stop_seed_offset: int) -> npt.NDArray[np.int32]:
        """Draw the random position of each row within its user for the seeds from first to stop, shape (seeds, n)."""
        user_indices = np.repeat(np.arange(self.rows_per_user.size), self.rows_per_user)
        indices_in_user = np.arange(user_indices.size) - np.repeat(self.starts, self.rows_per_user)
        sorted_positions = np.empty((stop_seed_offset - first_seed_offset, user_indices.size), dtype=np.int32)
        row_positions = np.empty(user_indices.size, dtype=np.int32)
        for k in range(first_seed_offset, stop_seed_offset):
            # 1e-6 off the draw, so that user + draw never rounds up to the next user (codes stay below 2e7).
            uniform_draws = np.random.default_rng(self.first_seed + k).random(user_indices.size)
            shuffled_rows = np.argsort(user_indices + uniform_draws * (1.0 - 1e-6))
            row_positions[shuffled_rows] = indices_in_user
            sorted_positions[k - first_seed_offset] = row_positions[self._places]
        return sorted_positions


class Rows:
    """The rows in the order of their values, cut into intervals on which rank and base density are simple.

    Attributes:
        histogram: Rows per user.
        edges: Distinct values and breaks of the base, shape (k + 1,), from -inf to inf.
        log_base_masses: Log base mass of each interval, shape (k,).
        shares_below: F on each interval, shape (k,); at its lower end if the base is discrete.
        num_rows_strictly_below: How many rows lie below the lower end of each interval; only of a discrete base, whose
            candidates may tie with values.
        ordered_values: The values, ascending, shape (n,).
        random_orders: Random orders of each user's rows, by which caps choose.
    """

    def __init__(self, values: Values, base: Base, first_seed: int, num_subsamples: int) -> None:
        """Sort the rows of ``values``; ``base`` and ``first_seed`` as in `QuantileProblem`."""
        n, first_row_indices, rows_per_user = self._count_users(values)
        # Not stable, but several times as fast; equal values are one step.
        value_order = np.argsort(values.values)
        self.ordered_values = ordered_values = values.values[value_order]
        last_row_indices = np.flatnonzero(np.concatenate((np.diff(ordered_values) > 0, [True])))
        distinct_values = ordered_values[last_row_indices]
        size_indices = np.searchsorted(self.histogram.sizes, rows_per_user)
        self._size_index = np.repeat(size_indices, rows_per_user)[value_order]
        self.random_orders = RandomOrders(
            first_row_indices, rows_per_user, value_order, first_seed, num_subsamples
        )
        num_rows_up_to = np.concatenate(([0], last_row_indices + 1))
        self._num_rows_below = num_rows_up_to[self._cut(distinct_values, base)]
        # Shared by copies with other draws, as the seed is part of a key.
        self._kept_blocks: dict[tuple[int, int, float], list[tuple[npt.NDArray[Any], ...]]] = {}
        self.num_rows_strictly_below = self._num_rows_below
        if base.is_discrete:
            self.num_rows_strictly_below = np.searchsorted(ordered_values, self.edges[:-1], side="left")
        self.shares_below = self._num_rows_below / n

    def _count_users(self, values: Values) -> tuple[int, IntArray, IntArray]:
        """Set the histogram; return the number of rows, where each user's rows begin, and how many each user has."""
        self.histogram = ContributionHistogram.from_counts(values.rows_per_user)
        return values.values.size, values.first_entries, values.rows_per_user

    def _cut(self, distinct_values: FloatArray, base: Base) -> IntArray:
        """Set the intervals with their base masses; return the number of distinct values at or below each left end."""
        cut_points = base.breaks if base.is_discrete else np.union1d(distinct_values, base.breaks)
        self.edges = np.concatenate(([-np.inf], cut_points, [np.inf]))
        self.log_base_masses = base.log_mass(self.edges[:-1], self.edges[1:])
        return np.searchsorted(distinct_values, self.edges[:-1], side="right")

    def find_quantile(self, row_share: float) -> float:
        """Return the least value with F(value) >= ``row_share`` in (0, 1]: the exact quantile of the rows."""
        n = self.ordered_values.size
        return float(
            self.ordered_values[min(max(math.ceil(row_share * (1.0 - RANK_ROUNDING) * n), 1), n) - 1]
        )

    def with_orders(self, random_orders: RandomOrders) -> Rows:
        """Return a copy of these sorted rows with other random orders."""
        changed_rows = copy.copy(self)
        changed_rows.random_orders = random_orders
        return changed_rows

    def count_subsamples(self, weight_kind: WeightKind, bound: float) -> int:
        """Return the number of subsamples to average over: 1 for smooth weights, and if the cap keeps all rows."""
        return (
            self.random_orders.num_orders
            if weight_kind is WeightKind.CAP and bound < self.histogram.max_size
            else 1
        )

    def compute_largest_user_weight(self, bound: float) -> float:
        """Return W, the largest total weight of one user; the same in every subsample."""
        return min(bound, float(self.histogram.max_size)) / float(self.histogram.count_kept_rows(bound))

    @cached_property
    def has_ties(self) -> bool:
        """Return True if a candidate of a discrete base equals a value."""
        return bool(np.any(self.num_rows_strictly_below < self._num_rows_below))

    def compute_weighted_ranks(
        self, weight_kind: WeightKind, bound: float, uncounted_share: float = 0.0
    ) -> Iterator[FloatArray]:
        """Yield the weighted rank on each interval for one bound, in blocks of shape (subsamples in the block, k).

        Args:
            weight_kind: Smooth weights or a cap.
            bound: The bound.
            uncounted_share: The share of rows equal to a candidate that is not counted; 0 for smooth weights.
        """
        sizes = self.histogram.sizes.astype(np.float64)
        if weight_kind is WeightKind.SMOOTH or bound >= sizes[-1]:
            row_weights = (np.minimum(bound, sizes) / sizes)[self._size_index]
            cumulated_weights = np.concatenate(([0.0], np.cumsum(row_weights)))
            # Divided by the last entry itself, so that the rank ends at 1 exactly.
            weight_blocks: Iterable[tuple[npt.NDArray[Any], ...]] = (
                self._take_below(cumulated_weights[None, :]),
            )
        else:
            weight_blocks = self._count_kept_below(bound)
        for weights_below, strictly_below, total_weights in weight_blocks:
            if uncounted_share > 0.0:
                weights_below = (1.0 - uncounted_share) * weights_below + uncounted_share * strictly_below
            yield np.divide(weights_below, total_weights, dtype=np.float64)

    def _take_below(self, cumulated_weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Return the weight at or below each interval's lower end and strictly below it, (subsamples, k), and all."""
        weights_below = np.take(cumulated_weights, self._num_rows_below, axis=1)
        strictly_below = weights_below
        if self.has_ties:
            strictly_below = np.take(cumulated_weights, self.num_rows_strictly_below, axis=1)
        return weights_below, strictly_below, cumulated_weights[:, -1:]

    def _count_kept_below(self, bound: float) -> Iterable[tuple[npt.NDArray[Any], ...]]:
        """Return the counts of kept rows as `_take_below` does, in blocks of subsamples; cached if they are few."""
        block_key = self.random_orders.first_seed, self.random_orders.num_orders, bound
        if block_key in self._kept_blocks:
            return self._kept_blocks[block_key]
        num_cells = self.random_orders.num_orders * self._num_rows_below.size
        if (
            len(self._kept_blocks) + 1
        ) * num_cells > _MAX_CACHED_COUNTS or self._size_index.size > _MAX_COUNT:
            return map(self._take_below, self.count_kept(bound))
        kept_blocks = [
            self._take_below(kept_counts.astype(np.uint16)) for kept_counts in self.count_kept(bound)
        ]
        self._kept_blocks[block_key] = kept_blocks
        return kept_blocks

    def count_kept(self, cap: float) -> Iterator[npt.NDArray[np.int32]]:
        """Yield how many of the first i rows, by value, a cap keeps, in blocks of shape (subsamples, n + 1)."""
        num_rows, num_subsamples = self._size_index.size, self.count_subsamples(WeightKind.CAP, cap)
        block_size = max(1, _CELLS_PER_PASS // num_rows)
        for first_subsample in range(0, num_subsamples, block_size):
            stop_subsample = min(first_subsample + block_size, num_subsamples)
            kept_counts = np.zeros((stop_subsample - first_subsample, num_rows + 1), dtype=np.int32)
            np.cumsum(
                self.random_orders.find_positions(first_subsample, stop_subsample) < cap,
                axis=1,
                out=kept_counts[:, 1:],
            )
            yield kept_counts


class ThinRows(Rows):
    """Rows lowered to few distinct values and counted per value and size of user: far less to hold and to rank.

    No rank's distance from q changes by more than 1 %, or by one row. They are for weights by user, which draw nothing.
    """

    def __init__(self, values: Values, base: Base, quantile: float) -> None:
        """Sort the rows of ``values`` once; ``base`` and ``quantile`` as in `QuantileProblem`."""
        n, _, rows_per_user = self._count_users(values)
        ordered_values = np.sort(values.values)
        # Distances from the quantile's place that grow by 1 % or one row each: lowered to the next, no row's distance
        # changes by more. The smallest value is among them, so that every row has one at or below it.
        rank_distances = np.unique(np.round(np.geomspace(1.0, n, math.ceil(math.log(n) / 0.01) + 1)))
        target_position = quantile * n
        row_distances = np.concatenate((-rank_distances, [-target_position, 0.0], rank_distances))
        row_positions = np.clip(target_position + row_distances, 0.0, n - 1.0)
        lowered_values = np.unique(ordered_values[row_positions.astype(np.int64)])
        value_codes = np.searchsorted(lowered_values, values.values, side="right") - 1
        row_size_codes = np.repeat(np.searchsorted(self.histogram.sizes, rows_per_user), rows_per_user)
        num_sizes = self.histogram.sizes.size
        cell_codes, self._counts = np.unique(value_codes * num_sizes + row_size_codes, return_counts=True)
        self._value_index, self._size_index = np.divmod(cell_codes, num_sizes)
        self._num_rows_below = self._cut(lowered_values, base)  # Here it counts values, not rows.
        num_rows_up_to = np.cumsum(np.bincount(value_codes, minlength=lowered_values.size))
        self.shares_below = np.concatenate(([0.0], num_rows_up_to))[self._num_rows_below] / n

    def compute_weighted_ranks(
        self, weight_kind: WeightKind, bound: float, uncounted_share: float = 0.0
    ) -> Iterator[FloatArray]:
        """Yield the weighted rank on each interval under smooth weights, one block of shape (1, k).

        Raises:
            ValueError: ``weight_kind`` is a cap, which needs single rows.
        """
        if weight_kind is not WeightKind.SMOOTH:
            raise ValueError("a cap needs single rows")
        sizes = self.histogram.sizes.astype(np.float64)
        cell_weights = (np.minimum(bound, sizes) / sizes)[self._size_index] * self._counts
        cumulated_weights = np.concatenate(([0.0], np.cumsum(np.bincount(self._value_index, cell_weights))))
        yield (cumulated_weights[self._num_rows_below] / cumulated_weights[-1])[None, :]


_CELLS_PER_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class QuantileOutput:
    """The distribution of the private answer: exact, or under a cap averaged over subsamples, each of them exact.

    Attributes:
        quantile: q.
        base: The base distribution.
        edges: Ends of the intervals, shape (k + 1,), from -inf to inf, in the values' unit.
        weighted_ranks: sum of c_i over the values at or below, on each interval, shape (k,); average over subsamples.
        shares_below: F on each interval, shape (k,).
        log_base_masses: Log base mass of each interval, shape (k,).
        log_tilts: Log of the density over the base density, shape (k,).
        largest_user_weight: W.
        subsample_errors: E|F(answer) - q| under each subsample, shape (subsamples,); one entry where none matters. Of a
            tree the error of each simulated answer.
        is_simulated: True if the distribution is that of simulated answers.
    """

    quantile: float
    base: Base
    edges: FloatArray
    weighted_ranks: FloatArray
    shares_below: FloatArray
    log_base_masses: FloatArray
    log_tilts: FloatArray
    largest_user_weight: float
    subsample_errors: FloatArray
    is_simulated: bool = False

    @cached_property
    def log_probabilities(self) -> FloatArray:
        """Return the log probability that the answer falls in each interval, shape (k,)."""
        return np.asarray(self.log_base_masses + self.log_tilts)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Return the probability of each interval, shape (k,); underflows to 0 where it is below 1e-308."""
        return np.asarray(np.exp(self.log_probabilities))

    @cached_property
    def _cumulative_probabilities(self) -> FloatArray:
        """Return the probability that the answer lies below each edge, shape (k + 1,)."""
        return np.concatenate(([0.0], np.minimum(np.cumsum(self.probabilities), 1.0)))

    @cached_property
    def _rank_errors(self) -> FloatArray:
        """Return |F - q| on each interval, shape (k,)."""
        return np.abs(self.shares_below - self.quantile)

    def _find_intervals(self, answers: FloatArray) -> IntArray:
        """Return the index of the interval that holds each y."""
        return np.clip(np.searchsorted(self.edges, answers, side="right") - 1, 0, self.edges.size - 2)

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density of the answer at y, of its shape; at a value that of the interval to the right."""
        answers = np.asarray(y, dtype=np.float64)
        return np.asarray(self.base.log_density(answers) + self.log_tilts[self._find_intervals(answers)])

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """Return the probability that the answer is at most y, of the shape of y."""
        answers = np.asarray(y, dtype=np.float64)
        interval_indices = self._find_intervals(answers)
        partial_masses = np.exp(
            self.base.log_mass(self.edges[interval_indices], answers) + self.log_tilts[interval_indices]
        )
        return np.asarray(np.minimum(self._cumulative_probabilities[interval_indices] + partial_masses, 1.0))

    def find_answers(self, probabilities_below: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of the answer's own distribution at ``probabilities_below`` in (0, 1), any shape."""
        probabilities = np.asarray(probabilities_below, dtype=np.float64)
        interval_indices = np.searchsorted(self._cumulative_probabilities, probabilities, side="left") - 1
        interval_indices = np.clip(interval_indices, 0, self.probabilities.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            interval_shares = (
                probabilities - self._cumulative_probabilities[interval_indices]
            ) / self.probabilities[interval_indices]
        # 0 / 0 where the interval's probability underflows: any point of it will do.
        interval_shares = np.clip(np.nan_to_num(interval_shares, nan=0.5), 0.0, 1.0)
        return self.base.find_points_at_shares(
            self.edges[interval_indices], self.edges[interval_indices + 1], interval_shares
        )

    def find_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Return the central interval that holds the answer with probability ``coverage``, in the values' unit."""
        lower_end, upper_end = self.find_answers([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
        return float(lower_end), float(upper_end)

    @cached_property
    def mean(self) -> float:
        """Return the expected answer, in the values' unit."""
        return float(self.probabilities @ self.base.mean_between(self.edges[:-1], self.edges[1:]))

    @cached_property
    def expected_rank_error(self) -> float:
        """Return E|F(answer) - q|, over the noise and over the subsamples."""
        return float(np.mean(self.subsample_errors))

    @cached_property
    def least_rank_error(self) -> float:
        """Return the least |F(y) - q| where the base has mass: what ties alone cost, at any epsilon."""
        return float(np.min(self._rank_errors[self.log_base_masses > -np.inf]))

    def compute_probability_within(self, rank_distances: npt.ArrayLike) -> FloatArray:
        """Return P(|F(answer) - q| <= t), for t of any shape; t may fall short by 1e-12."""
        order_by_error = np.argsort(self._rank_errors, kind="stable")
        cumulated_masses = np.concatenate(
            ([0.0], np.minimum(np.cumsum(self.probabilities[order_by_error]), 1.0))
        )
        t = np.asarray(rank_distances, dtype=np.float64) + RANK_ROUNDING
        return np.asarray(
            cumulated_masses[np.searchsorted(self._rank_errors[order_by_error], t, side="right")]
        )

    def compute_binned_density(self, bin_edges: FloatArray) -> FloatArray:
        """Return the mean density on bins between ascending edges, shape (bins,), for drawing."""
        return np.asarray(np.diff(self.cdf(bin_edges)) / np.diff(bin_edges))

    def sample(self, num_answers: int, generator: np.random.Generator) -> FloatArray:
        """Draw answers exactly, without a grid and without underflow at any epsilon.

        They are for simulations: NumPy's generator is not meant for release.

        Args:
            num_answers: Number of independent answers; the cost is ``num_answers`` times the number of intervals.
            generator: NumPy generator.

        Returns:
            Shape (size,), in the values' unit.
        """
        log_masses = self.log_probabilities
        possible_indices = np.flatnonzero(log_masses > -np.inf)
        block_size = max(1, _CELLS_PER_BLOCK // possible_indices.size)
        interval_indices = np.empty(num_answers, dtype=np.int64)
        for first_answer_index in range(0, num_answers, block_size):
            gumbel_noise = generator.gumbel(
                size=(min(block_size, num_answers - first_answer_index), possible_indices.size)
            )
            drawn_indices = np.argmax(log_masses[possible_indices] + gumbel_noise, axis=1)
            interval_indices[first_answer_index : first_answer_index + block_size] = possible_indices[
                drawn_indices
            ]
        interval_shares = generator.random(num_answers)
        return self.base.find_points_at_shares(
            self.edges[interval_indices], self.edges[interval_indices + 1], interval_shares
        )
