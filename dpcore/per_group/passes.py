"""One pass over the pairs: the error at every L0 for one L-infinity, or a lower bound over an interval of it.

At a fixed L-infinity one pass over the pairs, sorted by their user's number of groups, gives the error at every L0: the
users above L0 are the same for all L0 between two neighbouring numbers of groups. In such a *segment* the bias of a
group is linear in L0 and its sampling variance a parabola.

The steps of a pass (`Passes.compute_bounds`):

1. *Columns*: compute for each entry its clipped amount (linear part) and its square (varying part).
2. *Carry*: sum these over the users with more groups than the last L0. They lose pairs at every L0 of the pass.
3. *Blocks of sizes*, from the largest down: add running sums. Invariant: row i of the sums covers exactly the users
   above segment i.
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
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs

BLOCK = 1 << 16
"""Entries of a block of 0.5 MB, in the processor's cache."""


@dataclass(frozen=True)
class IntervalMinimum:
    """The smallest bound over an interval, its L0 and L-infinity, and the window of L0 with bounds below the limit."""

    bound: float
    max_groups: int
    amount: float = 0.0
    group_window: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class _Sums:
    """Sums of the columns of a pass over the users above each size, shape (columns, 2, ..., groups).

    ``linear_sums`` has sum x and sum x / k of the linear columns, and ``square_sums`` has sum v / k and sum v / k^2.
    For objectives without a root per group, ``square_sums`` is weighted and added up over groups: it has one group.
    """

    linear_sums: FloatArray
    square_sums: FloatArray


@dataclass(frozen=True)
class _Columns:
    """The columns that a pass sums for C in [low, high]; each has one entry per entry of the pairs.

    Attributes:
        interval: The ends of C.
        linear_columns: Clipped amounts at one or two C; for an interval of unsigned amounts the second has the counts
            of entries that are cut at high.
        square_columns: Lower bounds of the squares: the constant part, then the coefficient of C^2.
        cut_amounts: Amount that each C cuts away, per group; with a second linear column of counts, also the number of
            pairs cut.
    """

    interval: tuple[float, float]
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
        caps: L0.
    """

    base_values: list[FloatArray]
    slopes: list[FloatArray]
    square_sums: FloatArray
    segment_indices: IntArray
    offsets: IntArray
    caps: IntArray

    def compute_sampling_variances(self, column_index: int) -> FloatArray:
        """Return the sum of p (1 - p) v with p = l / k, l sum v / k - l^2 sum v / k^2, shape (L0, groups)."""
        once, twice = self.square_sums[column_index]
        l0 = self.caps[:, None].astype(np.float64)
        return np.asarray(
            np.maximum(l0 * once[self.segment_indices] - l0 * l0 * twice[self.segment_indices], 0.0)
        )


class Passes:
    """The errors, or their lower bounds, at every L0 for an interval of L-infinity."""

    def __init__(self, parameters: PerGroupParameters, weights: FloatArray, pairs: SortedPairs) -> None:
        self.parameters, self.weights, self.pairs, self.num_passes = parameters, weights, pairs, 0
        self.num_groups = weights.size
        self.is_rooted = parameters.objective.is_rooted
        self.noise_weight = float(weights.sum()) if self.is_rooted else math.sqrt(float(weights.sum()))
        self.weight_roots = np.sqrt(weights)
        # The last entry is for groups without pairs, whose weight matters only for the noise.
        occupied_weights = weights[: int(pairs.groups.max()) + 1]
        is_even = bool(occupied_weights.min() == occupied_weights.max())
        self.equal_weight = float(occupied_weights[0]) if is_even else None
        self.is_signed = bool((pairs.signed_counts < 0.0).any())
        self.most_groups = int(pairs.sizes[0])
        self.largest_amount = float(pairs.amounts.max())
        self.error_parts: FloatArray | None = None  # Sampling and noise parts of the error, if requested.

    def find_minimum(
        self, low: float, high: float, limit: float, group_window: tuple[int, int] | None = None
    ) -> IntervalMinimum:
        """Return the smallest bound over the L0 of a window for L-infinity in [low, high], if it is below ``limit``."""
        first_cap, last_cap = group_window or (1, self.most_groups)
        last_cap = min(last_cap, self.most_groups)
        # From this L0 on the noise alone exceeds the limit.
        noise = self.parameters.pair_noise(np.arange(1, last_cap + 1), low)
        last_cap = int(np.searchsorted(self.noise_weight * noise, limit))
        if last_cap < first_cap:
            return IntervalMinimum(limit, 0)
        bounds, amounts = self.compute_bounds(low, high, first_cap, last_cap)
        best_index = int(np.argmin(bounds))
        if not bounds[best_index] < limit:
            return IntervalMinimum(limit, 0)
        open_indices = np.flatnonzero(bounds < limit)
        open_window = int(open_indices[0]) + first_cap, int(open_indices[-1]) + first_cap
        return IntervalMinimum(
            float(bounds[best_index]), best_index + first_cap, float(amounts[best_index]), open_window
        )

    def _compute_noise_per_amount(self, caps: IntArray, low: float) -> FloatArray:
        """Return the smallest ratio of the noise's standard deviation to C, over all C >= low: that at low.

        The ratio is the same at every C for noise of real numbers, and rises with C for whole noise.
        """
        amount = low or 1.0  # Whole noise is for counts, whose C is at least 1.
        return np.asarray(self.parameters.pair_noise(caps, amount) / amount)

    def compute_bounds(
        self, low: float, high: float, first_cap: int, last_cap: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bound at every L0 from first to last, and the C in the interval at which it is attained."""
        self.num_passes += 1
        pairs = self.pairs
        # Users of at most `first` groups lose no pairs; those of more than `last` lose pairs at every L0 of the pass.
        num_explicit = int(np.sum(pairs.sizes > first_cap))
        num_merged = int(np.sum(pairs.sizes > last_cap))
        num_entries = int(pairs.starts[num_explicit])
        columns = self._build_columns(
            low, high, pairs.amounts[:num_entries], pairs.signed_counts[:num_entries]
        )
        values = np.full(last_cap - first_cap + 1, np.inf)
        amounts = np.full(values.shape, high)
        compute_segment_bounds = (
            self._compute_explicit_bounds if self._is_explicit(columns) else self._compute_parabola_bounds
        )

        def store_bounds(sums: _Sums, lows: IntArray, highs: IntArray) -> None:
            """Store the bounds of the L0 in [low, high] of each row of sums."""
            for segments in self._list_segments(columns, sums, lows, highs):
                indices = segments.caps - first_cap
                values[indices], amounts[indices] = compute_segment_bounds(columns, segments)

        carry = self._compute_merged_sums(columns, num_merged)
        edges, step = [num_merged], max(1, BLOCK // self.num_groups)
        while edges[-1] < num_explicit:
            edges.append(min(edges[-1] + step, num_explicit))
        # The segment at and below `last` needs only the carry; then come the segments between the sizes.
        sums = _Sums(carry.linear_sums[:, :, None], carry.square_sums[:, :, None])
        top = np.array([max(first_cap, int(np.append(pairs.sizes, 1)[num_merged]))])
        store_bounds(sums, top, np.array([last_cap]))
        for begin, end in pairwise(edges):
            sums = self._compute_running_sums(columns, begin, end, carry)
            carry = _Sums(sums.linear_sums[:, :, -1], sums.square_sums[:, :, -1])
            sizes = pairs.sizes[begin:end]
            lows = np.maximum(np.append(pairs.sizes, 1)[begin + 1 : end + 1], first_cap)
            store_bounds(sums, lows, sizes - 1)
        return values, amounts

    def _build_columns(self, low: float, high: float, amounts: FloatArray, counts: FloatArray) -> _Columns:
        """Build the columns that a pass sums: at one C, over an interval, or over one with amounts of any sign."""
        if low == high:
            clipped = np.minimum(amounts, high)
            linear = clipped * counts
            clipped *= np.abs(linear) if self.is_signed else linear
            return _Columns((low, high), [linear], [clipped], [self._sum_cut_amounts(high)])
        clipped_low = np.minimum(amounts, low)
        if self.is_signed:
            ends = [np.minimum(amounts, high), clipped_low]
            return _Columns(
                (low, high),
                [end * np.maximum(sign * counts, 0.0) for sign in (1.0, -1.0) for end in ends],
                [clipped_low * clipped_low * np.abs(counts)],
                [self._sum_cut_amounts(end, sign) for sign in (1.0, -1.0) for end in (high, low)],
            )
        reaches = (amounts >= high) * counts
        clipped_low *= clipped_low
        clipped_low *= counts - reaches
        return _Columns(
            (low, high),
            [np.minimum(amounts, high) * counts, reaches],
            [clipped_low, reaches],
            [self._sum_cut_amounts(high), self._count_reaching(high)],
        )

    def _sum_cut_amounts(self, amount: float, sign: float = 0.0) -> FloatArray:
        """Return the amount that L-infinity cuts away in every group, optionally for amounts of one sign only."""
        indices = np.flatnonzero(self.pairs.amounts >= amount)
        counts = self.pairs.signed_counts[indices]
        counts = np.maximum(sign * counts, 0.0) if sign else counts
        return self._sum_by_group(self.pairs.groups[indices], (self.pairs.amounts[indices] - amount) * counts)

    def _count_reaching(self, amount: float) -> FloatArray:
        """Return the number of pairs of each group whose amount is at least the given one."""
        indices = np.flatnonzero(self.pairs.amounts >= amount)
        return self._sum_by_group(self.pairs.groups[indices], self.pairs.signed_counts[indices])

    def _sum_by_group(self, codes: IntArray, weights: FloatArray) -> FloatArray:
        """Add up weights by group, shape (groups,)."""
        return np.asarray(np.bincount(codes, weights, self.num_groups), dtype=np.float64)

    def _compute_merged_sums(self, columns: _Columns, num_sizes: int) -> _Sums:
        """Return the sums over all users of the given number of largest sizes."""
        linear_sums = np.zeros((len(columns.linear_columns), 2, self.num_groups))
        square_sums = np.zeros(
            (len(columns.square_columns), 2, self.num_groups if self._is_explicit(columns) else 1)
        )
        entries = slice(0, int(self.pairs.starts[num_sizes]))
        groups = self.pairs.groups[entries]
        inverse = np.repeat(1.0 / self.pairs.sizes[:num_sizes], np.diff(self.pairs.starts[: num_sizes + 1]))
        for column_index, column in enumerate(columns.linear_columns):
            linear_sums[column_index, 0] = self._sum_by_group(groups, column[entries])
            linear_sums[column_index, 1] = self._sum_by_group(groups, column[entries] * inverse)
        for column_index, column in enumerate(columns.square_columns):
            once = column[entries] * inverse
            for power, value in enumerate((once, once * inverse)):
                square_sums[column_index, power] = (
                    self._sum_by_group(groups, value)
                    if self._is_explicit(columns)
                    else float(value @ self.weights[groups])
                )
        return _Sums(linear_sums, square_sums)

    def _is_explicit(self, columns: _Columns) -> bool:
        """Return True if every L0 and group is evaluated separately, as their sum over groups is not a parabola."""
        return self.is_rooted or len(columns.linear_columns) == 4

    def _compute_running_sums(self, columns: _Columns, begin: int, end: int, carry: _Sums) -> _Sums:
        """Return running sums: row i covers the users of the sizes up to index begin + i and of all larger sizes."""
        pairs, rows = self.pairs, end - begin
        entries = slice(int(pairs.starts[begin]), int(pairs.starts[end]))
        groups = pairs.groups[entries]
        row_codes = np.repeat(np.arange(rows), np.diff(pairs.starts[begin : end + 1]))
        codes = groups + row_codes * self.num_groups
        inverse = 1.0 / pairs.sizes[begin:end, None]

        def add_up(codes: IntArray, values: FloatArray, width: int) -> FloatArray:
            """Add up values by row and column code, shape (rows, width)."""
            return np.bincount(codes, values, rows * width).reshape(rows, width).astype(np.float64)

        linear_sums = np.empty((len(columns.linear_columns), 2, rows, self.num_groups))
        for column_index, column in enumerate(columns.linear_columns):
            linear_sums[column_index, 0] = add_up(codes, column[entries], self.num_groups)
            np.multiply(linear_sums[column_index, 0], inverse, out=linear_sums[column_index, 1])
        width = carry.square_sums.shape[2]
        square_sums = np.empty((len(columns.square_columns), 2, rows, width))
        for column_index, column in enumerate(columns.square_columns):
            if self._is_explicit(columns):
                square_sums[column_index, 0] = add_up(codes, column[entries], width) * inverse
            else:
                square_sums[column_index, 0] = (
                    add_up(row_codes, column[entries] * self.weights[groups], 1) * inverse
                )
            np.multiply(square_sums[column_index, 0], inverse, out=square_sums[column_index, 1])
        linear_sums[:, :, 0] += carry.linear_sums
        square_sums[:, :, 0] += carry.square_sums
        for array in (linear_sums, square_sums):
            # Row by row: NumPy's cumsum along an axis other than the last took three times as long.
            for row in range(1, rows):
                array[:, :, row] += array[:, :, row - 1]
        return _Sums(linear_sums, square_sums)

    def _list_segments(
        self, columns: _Columns, sums: _Sums, lows: IntArray, highs: IntArray
    ) -> Iterator[_Segments]:
        """Yield the segments [low, high], one per row of the sums, in blocks if groups are evaluated one by one."""
        count = np.maximum(highs - lows + 1, 0)
        if not count.sum():
            return
        index = np.repeat(np.arange(lows.size), count)
        offsets = np.arange(index.size) - (np.cumsum(count) - count)[index]
        caps = (lows[index] + offsets).astype(np.int64)
        # |bias| = cut + S0 - l S1, expanded from the segment's first l, so that little cancels.
        base = [
            cut + x[0] - lows[:, None] * x[1]
            for cut, x in zip(columns.cut_amounts, sums.linear_sums, strict=True)
        ]
        slopes = [x[1] for x in sums.linear_sums]
        if len(base) == 2:
            # The kept shares of the pairs that reach b: all of them minus the missing part.
            base[1], slopes[1] = np.maximum(2.0 * columns.cut_amounts[1] - base[1], 0.0), -slopes[1]
        if not self.is_signed:
            base[0] = np.maximum(base[0], 0.0)
        step = max(1, BLOCK // self.num_groups) if self._is_explicit(columns) else caps.size
        for begin in range(0, caps.size, step):
            block = slice(begin, begin + step)
            yield _Segments(base, slopes, sums.square_sums, index[block], offsets[block], caps[block])

    def _compute_parabola_bounds(
        self, columns: _Columns, segments: _Segments
    ) -> tuple[FloatArray, FloatArray]:
        """Return the roots of the weighted mean squares, which are parabolas in l within a segment, and in C."""
        low, high = columns.interval
        index, f = segments.segment_indices, segments.offsets.astype(np.float64)

        def multiply_lines(x: FloatArray, x_by: FloatArray, y: FloatArray, y_by: FloatArray) -> FloatArray:
            """Return the weighted sums over groups of (x - f x_by)(y - f y_by)."""
            constant, square = np.einsum("ij,ij->i", x, y), np.einsum("ij,ij->i", x_by, y_by)
            slope = np.einsum("ij,ij->i", x, y_by) + np.einsum("ij,ij->i", x_by, y)
            return np.asarray(equal_weight * (constant[index] - f * slope[index] + f * f * square[index]))

        # An equal weight of all groups is applied last, so that the tables of sizes and groups need no multiplication.
        equal_weight, lines = (
            self.equal_weight or 1.0,
            list(zip(segments.base_values, segments.slopes, strict=True)),
        )
        if self.equal_weight is None:
            lines = [(base * self.weight_roots, slope * self.weight_roots) for base, slope in lines]
        squares = np.maximum(multiply_lines(*lines[0], *lines[0]), 0.0)
        noise = self.noise_weight * self._compute_noise_per_amount(segments.caps, low)
        constant = segments.compute_sampling_variances(0)[:, 0]
        if low == high:
            noise_variance = (noise * high) ** 2
            errors = np.sqrt(squares + constant + noise_variance)
            if self.error_parts is not None:
                self.error_parts[:, segments.caps - 1] = constant / errors, noise_variance / errors
            return errors, np.full(errors.shape, high)
        cross = np.maximum(multiply_lines(*lines[0], *lines[1]), 0.0)
        slopes = np.maximum(multiply_lines(*lines[1], *lines[1]), 0.0)
        # squares + 2 x cross + x^2 slopes + constant + grows (high - x)^2 at x = high - C in [0, high - low].
        grows = segments.compute_sampling_variances(1)[:, 0] + noise**2
        # If slopes and grows are 0 the mean square does not fall in x: its minimum is at x = 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.nan_to_num((grows * high - cross) / (slopes + grows), nan=0.0, posinf=0.0, neginf=0.0)
        x = np.clip(x, 0.0, high - low)
        mean = squares + x * (2.0 * cross + x * slopes) + constant + grows * (high - x) ** 2
        return np.sqrt(mean), high - x

    def _compute_explicit_bounds(
        self, columns: _Columns, segments: _Segments
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bounds and their C from arrays of shape (L0, groups), each group evaluated separately."""
        w, caps, index, (low, high) = self.weights, segments.caps, segments.segment_indices, columns.interval
        noise = self._compute_noise_per_amount(caps, low)[:, None] ** 2
        constant = segments.compute_sampling_variances(0)

        def compute_objective(mean: FloatArray) -> FloatArray:
            """Return the objective at each L0 from the groups' mean squares, shape (L0, groups)."""
            return np.asarray(np.sqrt(mean) @ w if self.is_rooted else np.sqrt(mean @ w))

        missing = [
            base[index] - segments.offsets[:, None] * slope[index]
            for base, slope in zip(segments.base_values, segments.slopes, strict=True)
        ]
        if low == high:
            noise_variance = noise * high**2
            mean = missing[0] ** 2 + constant + noise_variance
            if self.error_parts is not None:
                # The error is sum w s / d, with d the root of each group's s, or of all of them together.
                root_weights = np.sqrt(mean) if self.is_rooted else compute_objective(mean)[:, None]
                self.error_parts[:, caps - 1] = (
                    (constant / root_weights) @ w,
                    (noise_variance / root_weights * np.ones(mean.shape)) @ w,
                )
            return compute_objective(mean), np.full(caps.shape, high)
        if self.is_signed:
            # The bias lies in [negative missing at high - positive at low, negative at low - positive at high].
            positive_high, positive_low, negative_high, negative_low = missing
            min_bias = np.maximum(np.maximum(negative_high - positive_low, positive_high - negative_low), 0.0)
            return compute_objective(min_bias**2 + constant + noise * low**2), np.full(caps.shape, high)
        bias, slope = np.maximum(missing[0], 0.0), missing[1]
        grows, width = segments.compute_sampling_variances(1) + noise, high - low

        def evaluate_with_slope(x: float) -> tuple[FloatArray, FloatArray]:
            """Return the bound at C = high - x and its derivative in x, at each L0."""
            cut, c = bias + x * slope, high - x
            root = np.sqrt(cut * cut + constant + grows * c * c)
            falls = np.zeros_like(root)
            np.divide(cut * slope - grows * c, root, out=falls, where=root > 0.0)
            return root @ w, falls @ w

        (start, rise), (stop, fall) = evaluate_with_slope(0.0), evaluate_with_slope(width)
        # A convex function lies above the crossing of its tangents at both ends; if it rises from an end, that end is
        # its minimum.
        turn = np.where(
            fall > rise, (start - stop + width * fall) / np.where(fall > rise, fall - rise, 1.0), 0.0
        )
        turn = np.where(rise >= 0.0, 0.0, np.where(fall <= 0.0, width, np.clip(turn, 0.0, width)))
        value = np.where(rise >= 0.0, start, np.where(fall <= 0.0, stop, start + rise * turn))
        return np.maximum(value, 0.0), high - turn


def compute_errors_by_max_groups(
    problem: PerGroupProblem, max_amount: float, sorted_pairs: SortedPairs | None = None
) -> FloatArray:
    """Return the error at every L0 from 1 to the largest number of groups of a user, in one pass.

    Args:
        problem: The problem; not a mean.
        max_amount: L-infinity, above 0.
        sorted_pairs: As in `best_pair`.
    """
    return np.asarray(compute_parts_by_max_groups(problem, max_amount, sorted_pairs)[0])


def compute_parts_by_max_groups(
    problem: PerGroupProblem, max_amount: float, sorted_pairs: SortedPairs | None = None
) -> FloatArray:
    """Return the error at every L0 and its parts from sampling and noise; arguments as `compute_errors_by_max_groups`.

    Returns:
        Errors, and the parts as in `moments.ErrorParts`, shape (3, largest L0). The rest of the error is bias.
    """
    passes = Passes(problem.parameters, problem.weights, sorted_pairs or SortedPairs.from_problem(problem))
    passes.error_parts = parts = np.zeros((2, passes.most_groups))
    errors, _ = passes.compute_bounds(float(max_amount), float(max_amount), 1, passes.most_groups)
    return np.vstack((errors, parts))
