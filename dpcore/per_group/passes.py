"""One pass over the pairs: the error at every L0 for one L-infinity, or a lower bound over an interval of it.

At a fixed L-infinity one pass over the pairs, sorted by their user's number of groups, gives the error at every L0: the
users above L0 are the same for all L0 between two neighbouring numbers of groups. In such a *segment* the bias of a
group is linear in L0 and its sampling variance a parabola.

The steps of a pass (`Passes.compute_bounds`):

1. *Columns*: compute for each entry its clipped amount (linear part) and its square (varying part).
2. *Carry*: sum these over the users with more groups than the last L0. They lose pairs at every L0 of the pass.
3. *Blocks of k*, the number of groups of a user, from the largest down: add running sums. Invariant: row i of the
   sums covers exactly the users above segment i.
4. *Segments*: evaluate the bound at every L0 of each segment from its row of sums, for all groups together if the
   result is a parabola (`_compute_parabola_bounds`), else group by group (`_compute_explicit_bounds`).

Lower bound for L-infinity = C in [a, b], at each L0, for amounts of at least 0. |bias| of a group is convex in C, so it
lies above its tangent at b: |bias|(C) >= |bias|(b) + s (b - C), with s the kept shares of the pairs of amount b or
more. The sampling variance is a multiple of C^2 for those pairs and at least its value at a for the others; the noise
is at least a multiple of C. So the weighted mean square lies above a parabola in C, whose minimum has a closed form. A
mean of roots lies above a convex function of C, and above its tangents at a and b. In an interval that contains no
amount the bound is the error itself, so that real L-infinity, too, is solved to a small gap in few passes.

Amounts of any sign: bias = (missing negative part) - (missing positive part). Both fall in C, which confines the bias
to an interval; the bound is its smallest square there, with variance and noise at a.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs

BLOCK_ENTRIES = 1 << 16
"""Entries of a block of 0.5 MB, in the processor's cache."""


@dataclass(frozen=True)
class IntervalMinimum:
    """The smallest lower bound of the error over an interval of L-infinity; L0 is 0 if none is below a limit.

    Attributes:
        error_bound: The smallest bound; the limit itself if none is below it.
        max_groups: L0 of that bound; 0 if none is below the limit.
        amount: L-infinity of that bound.
        group_window: Smallest and largest L0 with a bound below the limit; (1, 0) if there is none.
    """

    error_bound: float
    max_groups: int
    amount: float = 0.0
    group_window: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class _Sums:
    """Sums of the columns of a pass over the users above each k, shape (columns, 2, ..., groups).

    The axis of length 2 has two sums, with k the number of groups of a pair's user: ``linear_sums`` has sum x and
    sum x / k of each linear column, and ``square_sums`` has sum v / k and sum v / k^2 of each square column. For
    objectives without a root per group, ``square_sums`` is weighted and added up over groups: it has one group.
    """

    linear_sums: FloatArray
    square_sums: FloatArray


@dataclass(frozen=True)
class _Columns:
    """The columns that a pass sums for C in [low, high], with an entry per entry of the pairs; cut amounts by group.

    Attributes:
        amount_interval: The ends of C.
        linear_columns: Clipped amounts at one or two C; for an interval of unsigned amounts the second has the counts
            of entries that are cut at high.
        square_columns: Lower bounds of the squares: the constant part, then the coefficient of C^2.
        cut_amounts: Amount that each C cuts away, per group; with a second linear column of counts, also the number of
            pairs cut.
    """

    amount_interval: tuple[float, float]
    linear_columns: list[FloatArray]
    square_columns: list[FloatArray]
    cut_amounts: list[FloatArray]


@dataclass(frozen=True)
class _Segments:
    """All L0 of some segments, within which each linear part is ``base_values - offset * slopes``.

    Attributes:
        base_values: Values at the first L0 of each segment: |bias| at one or more C, or |bias| and the kept shares of
            the pairs that reach the larger C; each of shape (segments, groups).
        slopes: How much each falls from one L0 to the next, likewise.
        square_sums: As in `_Sums`, shape (columns, 2, segments, groups).
        segment_indices: Segment of each L0, shape (L0,).
        offsets: L0 minus the first one of its segment.
        l0_values: The L0 themselves, ascending within a segment.
    """

    base_values: list[FloatArray]
    slopes: list[FloatArray]
    square_sums: FloatArray
    segment_indices: IntArray
    offsets: IntArray
    l0_values: IntArray

    def compute_sampling_variances(self, column_index: int) -> FloatArray:
        """Return sampling variances for a square column v at L0 = l, l sum v / k - l^2 sum v / k^2: (L0, groups)."""
        sums_over_k, sums_over_k_squared = self.square_sums[column_index]
        l0 = self.l0_values[:, None].astype(np.float64)
        variances = (
            l0 * sums_over_k[self.segment_indices] - l0 * l0 * sums_over_k_squared[self.segment_indices]
        )
        return np.asarray(np.maximum(variances, 0.0))


_Bounds = tuple[FloatArray, FloatArray]
"""Lower bounds of the error, and the C at which each is attained, by L0."""


class Passes:
    """The errors, or their lower bounds, at every L0 for an interval of L-infinity.

    Attributes:
        parameters: The parameters of the problem.
        weights: Weight of each group, as in `PerGroupProblem.weights`.
        pairs: The sorted pairs.
        num_passes: Number of passes so far.
        num_groups: Number of entries of arrays by group.
        is_rooted: True if the root is taken group by group, as in `Objective.is_rooted`.
        noise_weight: Error that noise of standard deviation 1 in every group alone would have.
        weight_roots: Root of each group's weight.
        equal_weight: The weight of every group with pairs; None if their weights differ.
        is_signed: True if an amount is negative.
        most_groups: Largest number of groups of a user.
        largest_amount: Largest absolute amount of a pair.
        part_errors: Sampling and noise parts of the error at every L0, shape (2, most_groups), which a pass at one C
            fills in; None if nobody asks for them.
    """

    def __init__(
        self, parameters: PerGroupParameters, weights: FloatArray, sorted_pairs: SortedPairs
    ) -> None:
        self.parameters, self.weights, self.pairs, self.num_passes = parameters, weights, sorted_pairs, 0
        self.num_groups = weights.size
        self.is_rooted = parameters.objective.is_rooted
        self.noise_weight = float(weights.sum()) if self.is_rooted else math.sqrt(float(weights.sum()))
        self.weight_roots = np.sqrt(weights)
        # The last entry is for groups without pairs, whose weight matters only for the noise.
        occupied_weights = weights[: int(sorted_pairs.groups.max()) + 1]
        has_equal_weights = bool(occupied_weights.min() == occupied_weights.max())
        self.equal_weight = float(occupied_weights[0]) if has_equal_weights else None
        self.is_signed = bool((sorted_pairs.signed_counts < 0.0).any())
        self.most_groups = int(sorted_pairs.k_values[0])
        self.largest_amount = float(sorted_pairs.amounts.max())
        self.part_errors: FloatArray | None = None

    def find_minimum(
        self, low: float, high: float, error_limit: float, group_window: tuple[int, int] | None = None
    ) -> IntervalMinimum:
        """Find the smallest lower bound of the error over a range of L0 and an interval [low, high] of L-infinity.

        The result has also the L0 and amount where it is attained, and the range of L0 in which the bound is below
        ``error_limit``. If no bound is below ``error_limit``, the result has the limit and an L0 of 0.
        """
        first_l0, last_l0 = group_window or (1, self.most_groups)
        last_l0 = min(last_l0, self.most_groups)
        # From this L0 on the noise alone exceeds the limit.
        noise_stds = self.parameters.compute_pair_noise_std(np.arange(1, last_l0 + 1), low)
        last_l0 = int(np.searchsorted(self.noise_weight * noise_stds, error_limit))
        if last_l0 < first_l0:
            return IntervalMinimum(error_limit, 0)
        error_bounds, best_amounts = self.compute_bounds(low, high, first_l0, last_l0)
        best_index = int(np.argmin(error_bounds))
        if not error_bounds[best_index] < error_limit:
            return IntervalMinimum(error_limit, 0)
        open_indices = np.flatnonzero(error_bounds < error_limit)
        open_window = int(open_indices[0]) + first_l0, int(open_indices[-1]) + first_l0
        amount = float(best_amounts[best_index])
        return IntervalMinimum(float(error_bounds[best_index]), best_index + first_l0, amount, open_window)

    def _compute_noise_per_amount(self, group_bounds: IntArray, low: float) -> FloatArray:
        """Return the smallest ratio of the noise's standard deviation to C, over all C >= low: that at low.

        The ratio is the same at every C for noise of real numbers, and rises with C for whole noise.
        """
        positive_amount = low or 1.0  # Whole noise is for counts, whose C is at least 1.
        return np.asarray(
            self.parameters.compute_pair_noise_std(group_bounds, positive_amount) / positive_amount
        )

    def compute_bounds(self, low: float, high: float, first_l0: int, last_l0: int) -> _Bounds:
        """Return the lower bound at every L0 from first to last, and the C in [low, high] that attains it.

        If low = high, the bound is the error itself.
        """
        self.num_passes += 1
        sorted_pairs = self.pairs
        # Users of at most `first` groups lose no pairs; those of more than `last` lose pairs at every L0 of the pass.
        num_pass_ks, num_merged_ks = (int(np.sum(sorted_pairs.k_values > l0)) for l0 in (first_l0, last_l0))
        next_ks = np.append(sorted_pairs.k_values, 1)
        pass_columns = self._build_columns(low, high, int(sorted_pairs.starts[num_pass_ks]))
        error_bounds = np.full(last_l0 - first_l0 + 1, np.inf)
        best_amounts = np.full(error_bounds.shape, high)
        is_explicit = self._is_explicit(pass_columns)
        bound_segments = self._compute_explicit_bounds if is_explicit else self._compute_parabola_bounds

        def store_bounds(column_sums: _Sums, first_l0s: IntArray, last_l0s: IntArray) -> None:
            """Store the bounds of all L0 from first to last of the segment that each row of sums belongs to."""
            for segments in self._list_segments(pass_columns, column_sums, first_l0s, last_l0s):
                indices = segments.l0_values - first_l0
                error_bounds[indices], best_amounts[indices] = bound_segments(pass_columns, segments)

        carry = self._compute_merged_sums(pass_columns, num_merged_ks)
        block_edges, block_size = [num_merged_ks], max(1, BLOCK_ENTRIES // self.num_groups)
        while block_edges[-1] < num_pass_ks:
            block_edges.append(min(block_edges[-1] + block_size, num_pass_ks))
        # The segment at and below `last` needs only the carry; then come the segments between the k.
        column_sums = _Sums(carry.linear_sums[:, :, None], carry.square_sums[:, :, None])
        first_l0s = np.array([max(first_l0, int(next_ks[num_merged_ks]))])
        store_bounds(column_sums, first_l0s, np.array([last_l0]))
        for begin, end in pairwise(block_edges):
            column_sums = self._compute_running_sums(pass_columns, begin, end, carry)
            carry = _Sums(column_sums.linear_sums[:, :, -1], column_sums.square_sums[:, :, -1])
            first_l0s = np.maximum(next_ks[begin + 1 : end + 1], first_l0)
            store_bounds(column_sums, first_l0s, sorted_pairs.k_values[begin:end] - 1)
        return error_bounds, best_amounts

    def _build_columns(self, low: float, high: float, num_entries: int) -> _Columns:
        """Build the columns that a pass sums, over the first ``num_entries`` entries of the sorted pairs.

        They are those of one C if low = high, else of an interval of C, with separate columns by sign if an amount is
        negative.
        """
        amounts, signed_counts = self.pairs.amounts[:num_entries], self.pairs.signed_counts[:num_entries]
        if low == high:
            magnitudes = np.minimum(amounts, high)
            clipped_amounts = magnitudes * signed_counts
            clipped_squares = magnitudes * (np.abs(clipped_amounts) if self.is_signed else clipped_amounts)
            return _Columns((low, high), [clipped_amounts], [clipped_squares], [self._sum_cut_amounts(high)])
        amounts_up_to_low = np.minimum(amounts, low)
        if self.is_signed:
            clipped_columns = [np.minimum(amounts, high), amounts_up_to_low]
            return _Columns(
                (low, high),
                [x * np.maximum(sign * signed_counts, 0.0) for sign in (1.0, -1.0) for x in clipped_columns],
                [amounts_up_to_low * amounts_up_to_low * np.abs(signed_counts)],
                [self._sum_cut_amounts(end, sign) for sign in (1.0, -1.0) for end in (high, low)],
            )
        reach_counts = (amounts >= high) * signed_counts
        low_squares = amounts_up_to_low**2 * (signed_counts - reach_counts)
        return _Columns(
            (low, high),
            [np.minimum(amounts, high) * signed_counts, reach_counts],
            [low_squares, reach_counts],
            [self._sum_cut_amounts(high), self._count_reaching(high)],
        )

    def _sum_cut_amounts(self, max_amount: float, sign: float = 0.0) -> FloatArray:
        """Return the amount that L-infinity cuts off each group's pairs, shape (groups,).

        It is net of signs if ``sign`` is 0; for 1 or -1 it is that of the pairs of this sign.
        """
        cut_indices = np.flatnonzero(self.pairs.amounts >= max_amount)
        pair_counts = self.pairs.signed_counts[cut_indices]
        pair_counts = np.maximum(sign * pair_counts, 0.0) if sign else pair_counts
        cut_amounts = (self.pairs.amounts[cut_indices] - max_amount) * pair_counts
        return self._sum_by_group(self.pairs.groups[cut_indices], cut_amounts)

    def _count_reaching(self, min_amount: float) -> FloatArray:
        """Return the number of pairs of each group whose amount is at least the given one."""
        indices = np.flatnonzero(self.pairs.amounts >= min_amount)
        return self._sum_by_group(self.pairs.groups[indices], self.pairs.signed_counts[indices])

    def _sum_by_group(self, entry_groups: IntArray, entry_values: FloatArray) -> FloatArray:
        """Add up the values of entries by group, shape (groups,)."""
        return np.asarray(np.bincount(entry_groups, entry_values, self.num_groups), dtype=np.float64)

    def _compute_merged_sums(self, pass_columns: _Columns, num_ks: int) -> _Sums:
        """Return the sums over all users whose number of groups k is among the ``num_ks`` largest."""
        linear_sums = np.zeros((len(pass_columns.linear_columns), 2, self.num_groups))
        num_square_groups = self.num_groups if self._is_explicit(pass_columns) else 1
        square_sums = np.zeros((len(pass_columns.square_columns), 2, num_square_groups))
        entry_slice = slice(0, int(self.pairs.starts[num_ks]))
        entry_groups = self.pairs.groups[entry_slice]
        inverses = np.repeat(1.0 / self.pairs.k_values[:num_ks], np.diff(self.pairs.starts[: num_ks + 1]))
        for column_index, column_values in enumerate(pass_columns.linear_columns):
            entry_values = column_values[entry_slice]
            linear_sums[column_index, 0] = self._sum_by_group(entry_groups, entry_values)
            linear_sums[column_index, 1] = self._sum_by_group(entry_groups, entry_values * inverses)
        for column_index, column_values in enumerate(pass_columns.square_columns):
            values_over_k = column_values[entry_slice] * inverses
            for k_power, scaled_values in enumerate((values_over_k, values_over_k * inverses)):
                square_sums[column_index, k_power] = (
                    self._sum_by_group(entry_groups, scaled_values)
                    if self._is_explicit(pass_columns)
                    else float(scaled_values @ self.weights[entry_groups])
                )
        return _Sums(linear_sums, square_sums)

    def _is_explicit(self, pass_columns: _Columns) -> bool:
        """Return True if every L0 and group is evaluated separately: their sum over groups is no parabola in C."""
        return self.is_rooted or len(pass_columns.linear_columns) == 4

    def _compute_running_sums(self, pass_columns: _Columns, begin: int, end: int, carry: _Sums) -> _Sums:
        """Return running sums: row i covers the users of k at index begin to begin + i, and of all larger k."""
        sorted_pairs, num_rows = self.pairs, end - begin
        entry_slice = slice(int(sorted_pairs.starts[begin]), int(sorted_pairs.starts[end]))
        entry_groups = sorted_pairs.groups[entry_slice]
        row_codes = np.repeat(np.arange(num_rows), np.diff(sorted_pairs.starts[begin : end + 1]))
        cell_codes = entry_groups + row_codes * self.num_groups
        inverses = 1.0 / sorted_pairs.k_values[begin:end, None]

        def add_up(codes: IntArray, entry_values: FloatArray, num_codes_per_row: int) -> FloatArray:
            """Add up values by row and column code, shape (rows, width)."""
            cell_sums = np.bincount(codes, entry_values, num_rows * num_codes_per_row)
            return cell_sums.reshape(num_rows, num_codes_per_row).astype(np.float64)

        linear_sums = np.empty((len(pass_columns.linear_columns), 2, num_rows, self.num_groups))
        for column_index, column_values in enumerate(pass_columns.linear_columns):
            linear_sums[column_index, 0] = add_up(cell_codes, column_values[entry_slice], self.num_groups)
            np.multiply(linear_sums[column_index, 0], inverses, out=linear_sums[column_index, 1])
        width = carry.square_sums.shape[2]
        square_sums = np.empty((len(pass_columns.square_columns), 2, num_rows, width))
        for column_index, column_values in enumerate(pass_columns.square_columns):
            codes, entry_values = cell_codes, column_values[entry_slice]
            if not self._is_explicit(pass_columns):
                codes, entry_values = row_codes, entry_values * self.weights[entry_groups]
            square_sums[column_index, 0] = add_up(codes, entry_values, width) * inverses
            np.multiply(square_sums[column_index, 0], inverses, out=square_sums[column_index, 1])
        linear_sums[:, :, 0] += carry.linear_sums
        square_sums[:, :, 0] += carry.square_sums
        for running_sums in (linear_sums, square_sums):
            # Row by row: NumPy's cumsum along an axis other than the last took three times as long.
            for row_index in range(1, num_rows):
                running_sums[:, :, row_index] += running_sums[:, :, row_index - 1]
        return _Sums(linear_sums, square_sums)

    def _list_segments(
        self, pass_columns: _Columns, column_sums: _Sums, first_l0s: IntArray, last_l0s: IntArray
    ) -> Iterator[_Segments]:
        """Yield the L0 of the segments, one per row of the sums: all at once, or in blocks if `_is_explicit`.

        Args:
            pass_columns: The columns of the pass.
            column_sums: Over the users above each segment.
            first_l0s: Smallest L0 of each segment, shape (segments,).
            last_l0s: Largest L0 of each segment; a segment whose largest L0 is below its smallest one is empty.
        """
        lengths = np.maximum(last_l0s - first_l0s + 1, 0)
        segment_indices = np.repeat(np.arange(first_l0s.size), lengths)
        offsets = np.arange(segment_indices.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        l0s = (first_l0s[segment_indices] + offsets).astype(np.int64)
        # |bias| = cut + S0 - l S1, expanded from the segment's first l, so that little cancels.
        base_values = [
            cut_amounts + x[0] - first_l0s[:, None] * x[1]
            for cut_amounts, x in zip(pass_columns.cut_amounts, column_sums.linear_sums, strict=True)
        ]
        slopes = [x[1] for x in column_sums.linear_sums]
        if len(base_values) == 2:
            # The kept shares of the pairs that reach b: all of them minus the missing part.
            base_values[1] = np.maximum(2.0 * pass_columns.cut_amounts[1] - base_values[1], 0.0)
            slopes[1] = -slopes[1]
        if not self.is_signed:
            base_values[0] = np.maximum(base_values[0], 0.0)
        block_size = max(1, BLOCK_ENTRIES // self.num_groups) if self._is_explicit(pass_columns) else l0s.size
        for block_start in range(0, l0s.size, block_size):
            block_slice = slice(block_start, block_start + block_size)
            block_arrays = segment_indices[block_slice], offsets[block_slice], l0s[block_slice]
            yield _Segments(base_values, slopes, column_sums.square_sums, *block_arrays)

    def _compute_parabola_bounds(self, pass_columns: _Columns, segments: _Segments) -> _Bounds:
        """Return the bound at each L0, the root of a mean square that is a parabola in C, and the C that attains it."""
        (low, high), f = pass_columns.amount_interval, segments.offsets.astype(np.float64)

        def multiply_lines(x: FloatArray, x_by: FloatArray, y: FloatArray, y_by: FloatArray) -> FloatArray:
            """Return sum w (x - f x_by)(y - f y_by) over the groups, at each L0, f above its segment's first."""
            constants, slope_squares = np.einsum("ij,ij->i", x, y), np.einsum("ij,ij->i", x_by, y_by)
            linear_terms = np.einsum("ij,ij->i", x, y_by) + np.einsum("ij,ij->i", x_by, y)
            c0, c1, c2 = (
                terms[segments.segment_indices] for terms in (constants, linear_terms, slope_squares)
            )
            return np.asarray(equal_weight * (c0 - f * c1 + f * f * c2))

        # An equal weight of all groups is applied last, so that the tables of k and groups need no multiplication.
        equal_weight = self.equal_weight or 1.0
        bias_lines = list(zip(segments.base_values, segments.slopes, strict=True))
        if self.equal_weight is None:
            bias_lines = [(x * self.weight_roots, y * self.weight_roots) for x, y in bias_lines]
        bias_squares = np.maximum(multiply_lines(*bias_lines[0], *bias_lines[0]), 0.0)
        noise_per_amount = self.noise_weight * self._compute_noise_per_amount(segments.l0_values, low)
        variances = segments.compute_sampling_variances(0)[:, 0]
        if low == high:
            noise_variances = (noise_per_amount * high) ** 2
            errors = np.sqrt(bias_squares + variances + noise_variances)
            if self.part_errors is not None:
                self.part_errors[:, segments.l0_values - 1] = variances / errors, noise_variances / errors
            return errors, np.full(errors.shape, high)
        slope_products = np.maximum(multiply_lines(*bias_lines[0], *bias_lines[1]), 0.0)
        slope_squares = np.maximum(multiply_lines(*bias_lines[1], *bias_lines[1]), 0.0)
        # bias_squares + 2 x slope_products + x^2 slope_squares + variances + square_factors (high - x)^2 at
        # x = high - C in [0, high - low].
        square_factors = segments.compute_sampling_variances(1)[:, 0] + noise_per_amount**2
        # If slope_squares and square_factors are 0 the mean square does not fall in x: its minimum is at x = 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            x = (square_factors * high - slope_products) / (slope_squares + square_factors)
        x = np.clip(np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0), 0.0, high - low)
        mean_squares = bias_squares + x * (2.0 * slope_products + x * slope_squares)
        mean_squares += variances + square_factors * (high - x) ** 2
        return np.sqrt(mean_squares), high - x

    def _compute_explicit_bounds(self, pass_columns: _Columns, segments: _Segments) -> _Bounds:
        """Return the bounds and their C from arrays of shape (L0, groups), each group evaluated separately."""
        w, l0s, (low, high) = self.weights, segments.l0_values, pass_columns.amount_interval
        noise_factors = self._compute_noise_per_amount(l0s, low)[:, None] ** 2
        variances = segments.compute_sampling_variances(0)

        def compute_objective(mean_squares: FloatArray) -> FloatArray:
            """Return the objective at each L0 from the groups' mean squares, shape (L0, groups)."""
            return np.asarray(np.sqrt(mean_squares) @ w if self.is_rooted else np.sqrt(mean_squares @ w))

        values_at_l0 = [
            x[segments.segment_indices] - segments.offsets[:, None] * slopes[segments.segment_indices]
            for x, slopes in zip(segments.base_values, segments.slopes, strict=True)
        ]
        if low == high:
            noise_variances = noise_factors * high**2
            mean_squares = values_at_l0[0] ** 2 + variances + noise_variances
            if self.part_errors is not None:
                # The error is sum w s / d, with d the root of each group's s, or of all of them together.
                d = np.sqrt(mean_squares) if self.is_rooted else compute_objective(mean_squares)[:, None]
                noise_parts = noise_variances / d * np.ones(mean_squares.shape)
                self.part_errors[:, l0s - 1] = (variances / d) @ w, noise_parts @ w
            return compute_objective(mean_squares), np.full(l0s.shape, high)
        if self.is_signed:
            # The bias lies in [negative missing at high - positive at low, negative at low - positive at high].
            high_positives, low_positives, high_negatives, low_negatives = values_at_l0
            min_biases = np.maximum(high_negatives - low_positives, high_positives - low_negatives)
            mean_squares = np.maximum(min_biases, 0.0) ** 2 + variances + noise_factors * low**2
            return compute_objective(mean_squares), np.full(l0s.shape, high)
        biases, slopes = np.maximum(values_at_l0[0], 0.0), values_at_l0[1]
        square_factors, interval_width = segments.compute_sampling_variances(1) + noise_factors, high - low

        def evaluate_with_slope(x: float) -> tuple[FloatArray, FloatArray]:
            """Return the bound at C = high - x and its derivative in x, at each L0."""
            biases_at_c, c = biases + x * slopes, high - x
            roots = np.sqrt(biases_at_c * biases_at_c + variances + square_factors * c * c)
            derivatives = np.zeros_like(roots)
            np.divide(biases_at_c * slopes - square_factors * c, roots, out=derivatives, where=roots > 0.0)
            return roots @ w, derivatives @ w

        (y0, s0), (y1, s1) = evaluate_with_slope(0.0), evaluate_with_slope(interval_width)
        # A convex function lies above the crossing of its tangents at both ends; if it rises from an end, that end is
        # its minimum.
        x = np.where(s1 > s0, (y0 - y1 + interval_width * s1) / np.where(s1 > s0, s1 - s0, 1.0), 0.0)
        x = np.where(s0 >= 0.0, 0.0, np.where(s1 <= 0.0, interval_width, np.clip(x, 0.0, interval_width)))
        y = np.where(s0 >= 0.0, y0, np.where(s1 <= 0.0, y1, y0 + s0 * x))
        return np.maximum(y, 0.0), high - x


def compute_parts_by_max_groups(
    problem: PerGroupProblem, max_amount: float, sorted_pairs: SortedPairs | None = None
) -> FloatArray:
    """Return error, sampling part and noise part at every L0 from 1 to the most groups of a user, shape (3, L0).

    Args:
        problem: The problem; not a mean.
        max_amount: L-infinity, above 0.
        sorted_pairs: As in `find_best_pair`.

    Returns:
        Errors, and their parts from sampling and noise as in `moments.ErrorParts`, shape (3, largest L0). The rest of
        the error is bias.
    """
    passes = Passes(problem.parameters, problem.weights, sorted_pairs or SortedPairs.from_problem(problem))
    passes.part_errors = part_errors = np.zeros((2, passes.most_groups))
    errors_per_l0, _ = passes.compute_bounds(float(max_amount), float(max_amount), 1, passes.most_groups)
    return np.vstack((errors_per_l0, part_errors))
