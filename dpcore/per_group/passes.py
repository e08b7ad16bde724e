"""One pass over the pairs: the error at every L0 for one L-infinity, or a lower bound over an interval of it.

At a fixed L-infinity one pass over the pairs, sorted by their user's number of groups, gives the error at every L0: the
users above L0 are the same for all L0 between two neighbouring numbers of groups. In such a *segment* the bias of a
group is linear in L0 and its sampling variance a parabola.

The steps of a pass (`Passes.bounds`):

1. *Columns*: compute for each entry its clipped amount (linear part) and its square (varying part).
2. *Carry*: sum these over the users with more groups than the last L0. They lose pairs at every L0 of the pass.
3. *Blocks of sizes*, from the largest down: add running sums. Invariant: row i of the sums covers exactly the users
   above segment i.
4. *Segments*: evaluate the bound at every L0 of each segment from its row of sums, for all groups together if the
   result is a parabola (`_parabola_bounds`), else group by group (`_explicit_bounds`).

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

BLOCK = 1 << 16
"""Entries of a block of 0.5 MB, in the processor's cache."""


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The pairs of a problem in descending order of their user's number of groups.

    Pairs of integer amounts with the same number of groups, group and amount are one entry.

    Attributes:
        groups: Group codes, shape (num_entries,).
        amounts: Absolute amount that each pair adds to its group.
        counts: Number of pairs of an entry, with a minus sign if the amount is negative.
        sizes: The distinct numbers of groups per user, descending, shape (num_sizes,).
        starts: Index of the first entry of each size, and the number of entries, shape (num_sizes + 1,).
    """

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    sizes: IntArray
    starts: IntArray

    @classmethod
    def from_problem(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        per_user = problem.pairs.groups_per_user
        most_groups, number = int(per_user.max()), problem.pairs.num_entries
        largest = float(np.abs(problem.amounts).max())
        descending_groups = np.repeat(most_groups - per_user, per_user)
        if problem.parameters.statistic.is_integer and most_groups * number * (largest + 1.0) < 2.0**62:
            # One integer key per pair is sorted in place, in order of users' sizes, groups and amounts; equal keys
            # become one entry.
            width = int(largest) + 1
            key = (descending_groups * number + problem.pairs.group_codes) * width + problem.amounts.astype(
                np.int64
            )
            key.sort()
            first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
            counts = np.diff(np.r_[first, key.size]).astype(np.float64)
            key = key[first]
            amounts = (key % width).astype(np.float64)
            key //= width
            return cls._from_sorted(most_groups - key // number, key % number, amounts, counts)
        order = np.argsort(descending_groups, kind="stable")
        amounts = problem.amounts[order]
        signs = np.where(amounts < 0.0, -1.0, 1.0)
        return cls._from_sorted(
            most_groups - descending_groups[order], problem.pairs.group_codes[order], np.abs(amounts), signs
        )

    @classmethod
    def _from_sorted(
        cls, size: IntArray, groups: IntArray, amounts: FloatArray, counts: FloatArray
    ) -> SortedPairs:
        starts = np.flatnonzero(np.r_[True, size[1:] != size[:-1]])
        return cls(groups, amounts, counts, size[starts], np.r_[starts, size.size])

    def select_groups(self, group_codes: IntArray, num_groups: int) -> SortedPairs:
        """Return the entries of the given groups, with new codes from 0 on."""
        number = np.full(num_groups, -1, dtype=np.int64)
        number[group_codes] = np.arange(group_codes.size)
        groups = number[self.groups]
        is_selected = groups >= 0
        size = np.repeat(self.sizes, np.diff(self.starts))[is_selected]
        return self._from_sorted(
            size, groups[is_selected], self.amounts[is_selected], self.counts[is_selected]
        )


@dataclass(frozen=True)
class IntervalMinimum:
    """The smallest bound over an interval, its L0 and L-infinity, and the window of L0 with bounds below the limit."""

    value: float
    max_groups: int
    amount: float = 0.0
    window: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class _Sums:
    """Sums of the columns of a pass over the users above each size, shape (columns, 2, ..., groups).

    ``missing`` has sum x and sum x / k of the linear columns, and ``varying`` has sum v / k and sum v / k^2. For
    objectives without a root per group, ``varying`` is weighted and added up over groups: it has one group.
    """

    missing: FloatArray
    varying: FloatArray


@dataclass(frozen=True)
class _Columns:
    """The columns that a pass sums for C in [low, high]; each has one entry per entry of the facet.

    Attributes:
        interval: The ends of C.
        linear: Clipped amounts at one or two C; for an interval of unsigned amounts the second has the counts of
            entries that are cut at high.
        varying: Lower bounds of the squares: the constant part, then the coefficient of C^2.
        cut: Amount that each C cuts away, per group.
    """

    interval: tuple[float, float]
    linear: list[FloatArray]
    varying: list[FloatArray]
    cut: list[FloatArray]


@dataclass(frozen=True)
class _Segments:
    """All L0 of some segments, within which each linear part is ``base - offset * slope``.

    Attributes:
        base: Values at the first L0 of each segment: |bias| at one or more C, or |bias| and the kept shares of the
            pairs that reach the larger C; each of shape (segments, groups).
        slopes: How much each falls from one L0 to the next, likewise.
        varying: As in `_Sums`, shape (columns, 2, segments, groups).
        index: Segment of each L0, shape (L0,).
        offsets: L0 minus the first one of its segment.
        caps: L0.
    """

    base: list[FloatArray]
    slopes: list[FloatArray]
    varying: FloatArray
    index: IntArray
    offsets: IntArray
    caps: IntArray

    def sampling(self, column_index: int) -> FloatArray:
        """Return the sum of p (1 - p) v with p = l / k, l sum v / k - l^2 sum v / k^2, shape (L0, groups)."""
        once, twice = self.varying[column_index]
        l0 = self.caps[:, None].astype(np.float64)
        return np.asarray(np.maximum(l0 * once[self.index] - l0 * l0 * twice[self.index], 0.0))


class Passes:
    """The errors, or their lower bounds, at every L0 for an interval of L-infinity."""

    def __init__(self, parameters: PerGroupParameters, weights: FloatArray, facet: SortedPairs) -> None:
        self.parameters, self.weights, self.facet, self.num_passes = parameters, weights, facet, 0
        self.num_groups = weights.size
        self.is_rooted = parameters.objective.is_rooted
        self.noise_weight = float(weights.sum()) if self.is_rooted else math.sqrt(float(weights.sum()))
        self.weight_roots = np.sqrt(weights)
        # The last entry is for groups without pairs, whose weight matters only for the noise.
        occupied_weights = weights[: int(facet.groups.max()) + 1]
        is_even = bool(occupied_weights.min() == occupied_weights.max())
        self.even_weight = float(occupied_weights[0]) if is_even else None
        self.is_signed = bool((facet.counts < 0.0).any())
        self.most_groups = int(facet.sizes[0])
        self.largest_amount = float(facet.amounts.max())
        self.error_parts: FloatArray | None = None  # Sampling and noise parts of the error, if requested.

    def find_minimum(
        self, low: float, high: float, limit: float, window: tuple[int, int] | None = None
    ) -> IntervalMinimum:
        """Return the smallest bound over the L0 of a window for L-infinity in [low, high], if it is below ``limit``."""
        first_cap, last_cap = window or (1, self.most_groups)
        last_cap = min(last_cap, self.most_groups)
        # From this L0 on the noise alone exceeds the limit.
        noise = self.parameters.pair_noise(np.arange(1, last_cap + 1), low)
        last_cap = int(np.searchsorted(self.noise_weight * noise, limit))
        if last_cap < first_cap:
            return IntervalMinimum(limit, 0)
        values, amounts = self.bounds(low, high, first_cap, last_cap)
        best = int(np.argmin(values))
        if not values[best] < limit:
            return IntervalMinimum(limit, 0)
        open_ = np.flatnonzero(values < limit)
        span = int(open_[0]) + first_cap, int(open_[-1]) + first_cap
        return IntervalMinimum(float(values[best]), best + first_cap, float(amounts[best]), span)

    def _noise_per_amount(self, caps: IntArray, low: float) -> FloatArray:
        """Return the smallest ratio of the noise's standard deviation to C, over all C >= low: that at low.

        The ratio is the same at every C for noise of real numbers, and rises with C for whole noise.
        """
        amount = low or 1.0  # Whole noise is for counts, whose C is at least 1.
        return np.asarray(self.parameters.pair_noise(caps, amount) / amount)

    def bounds(self, low: float, high: float, first_cap: int, last_cap: int) -> tuple[FloatArray, FloatArray]:
        """Return the bound at every L0 from first to last, and the C in the interval at which it is attained."""
        self.num_passes += 1
        facet = self.facet
        # Users of at most `first` groups lose no pairs; those of more than `last` lose pairs at every L0 of the pass.
        num_explicit = int(np.sum(facet.sizes > first_cap))
        num_merged = int(np.sum(facet.sizes > last_cap))
        num_entries = int(facet.starts[num_explicit])
        columns = self._columns(low, high, facet.amounts[:num_entries], facet.counts[:num_entries])
        values = np.full(last_cap - first_cap + 1, np.inf)
        amounts = np.full(values.shape, high)
        bound = self._explicit_bounds if self._is_explicit(columns) else self._parabola_bounds

        def evaluate(sums: _Sums, lows: IntArray, highs: IntArray) -> None:
            for segments in self._list_segments(columns, sums, lows, highs):
                indices = segments.caps - first_cap
                values[indices], amounts[indices] = bound(columns, segments)

        carry = self._merged_sums(columns, num_merged)
        edges, step = [num_merged], max(1, BLOCK // self.num_groups)
        while edges[-1] < num_explicit:
            edges.append(min(edges[-1] + step, num_explicit))
        # The segment at and below `last` needs only the carry; then come the segments between the sizes.
        sums = _Sums(carry.missing[:, :, None], carry.varying[:, :, None])
        top = np.array([max(first_cap, int(np.append(facet.sizes, 1)[num_merged]))])
        evaluate(sums, top, np.array([last_cap]))
        for begin, end in pairwise(edges):
            sums = self._running_sums(columns, begin, end, carry)
            carry = _Sums(sums.missing[:, :, -1], sums.varying[:, :, -1])
            sizes = facet.sizes[begin:end]
            lows = np.maximum(np.append(facet.sizes, 1)[begin + 1 : end + 1], first_cap)
            evaluate(sums, lows, sizes - 1)
        return values, amounts

    def _columns(self, low: float, high: float, amounts: FloatArray, counts: FloatArray) -> _Columns:
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
        indices = np.flatnonzero(self.facet.amounts >= amount)
        counts = self.facet.counts[indices]
        counts = np.maximum(sign * counts, 0.0) if sign else counts
        return self._bincount(self.facet.groups[indices], (self.facet.amounts[indices] - amount) * counts)

    def _count_reaching(self, amount: float) -> FloatArray:
        indices = np.flatnonzero(self.facet.amounts >= amount)
        return self._bincount(self.facet.groups[indices], self.facet.counts[indices])

    def _bincount(self, codes: IntArray, weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(codes, weights, self.num_groups), dtype=np.float64)

    def _merged_sums(self, columns: _Columns, num_sizes: int) -> _Sums:
        """Return the sums over all users of the given number of largest sizes."""
        missing = np.zeros((len(columns.linear), 2, self.num_groups))
        varying = np.zeros((len(columns.varying), 2, self.num_groups if self._is_explicit(columns) else 1))
        entries = slice(0, int(self.facet.starts[num_sizes]))
        groups = self.facet.groups[entries]
        inverse = np.repeat(1.0 / self.facet.sizes[:num_sizes], np.diff(self.facet.starts[: num_sizes + 1]))
        for column_index, column in enumerate(columns.linear):
            missing[column_index, 0] = self._bincount(groups, column[entries])
            missing[column_index, 1] = self._bincount(groups, column[entries] * inverse)
        for column_index, column in enumerate(columns.varying):
            once = column[entries] * inverse
            for power, value in enumerate((once, once * inverse)):
                varying[column_index, power] = (
                    self._bincount(groups, value)
                    if self._is_explicit(columns)
                    else float(value @ self.weights[groups])
                )
        return _Sums(missing, varying)

    def _is_explicit(self, columns: _Columns) -> bool:
        """Return True if every L0 and group is evaluated separately, as their sum over groups is not a parabola."""
        return self.is_rooted or len(columns.linear) == 4

    def _running_sums(self, columns: _Columns, begin: int, end: int, carry: _Sums) -> _Sums:
        """Return running sums: row i covers the users of the sizes up to index begin + i and of all larger sizes."""
        facet, rows = self.facet, end - begin
        entries = slice(int(facet.starts[begin]), int(facet.starts[end]))
        groups = facet.groups[entries]
        row_codes = np.repeat(np.arange(rows), np.diff(facet.starts[begin : end + 1]))
        codes = groups + row_codes * self.num_groups
        inverse = 1.0 / facet.sizes[begin:end, None]

        def add_up(code: IntArray, values: FloatArray, width: int) -> FloatArray:
            return np.bincount(code, values, rows * width).reshape(rows, width).astype(np.float64)

        missing = np.empty((len(columns.linear), 2, rows, self.num_groups))
        for column_index, column in enumerate(columns.linear):
            missing[column_index, 0] = add_up(codes, column[entries], self.num_groups)
            np.multiply(missing[column_index, 0], inverse, out=missing[column_index, 1])
        width = carry.varying.shape[2]
        varying = np.empty((len(columns.varying), 2, rows, width))
        for column_index, column in enumerate(columns.varying):
            if self._is_explicit(columns):
                varying[column_index, 0] = add_up(codes, column[entries], width) * inverse
            else:
                varying[column_index, 0] = (
                    add_up(row_codes, column[entries] * self.weights[groups], 1) * inverse
                )
            np.multiply(varying[column_index, 0], inverse, out=varying[column_index, 1])
        missing[:, :, 0] += carry.missing
        varying[:, :, 0] += carry.varying
        for array in (missing, varying):
            # Row by row: NumPy's cumsum along an axis other than the last took three times as long.
            for row in range(1, rows):
                array[:, :, row] += array[:, :, row - 1]
        return _Sums(missing, varying)

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
        base = [cut + x[0] - lows[:, None] * x[1] for cut, x in zip(columns.cut, sums.missing, strict=True)]
        slopes = [x[1] for x in sums.missing]
        if len(base) == 2:
            # The kept shares of the pairs that reach b: all of them minus the missing part.
            base[1], slopes[1] = np.maximum(2.0 * columns.cut[1] - base[1], 0.0), -slopes[1]
        if not self.is_signed:
            base[0] = np.maximum(base[0], 0.0)
        step = max(1, BLOCK // self.num_groups) if self._is_explicit(columns) else caps.size
        for begin in range(0, caps.size, step):
            block = slice(begin, begin + step)
            yield _Segments(base, slopes, sums.varying, index[block], offsets[block], caps[block])

    def _parabola_bounds(self, columns: _Columns, segments: _Segments) -> tuple[FloatArray, FloatArray]:
        """Return the roots of the weighted mean squares, which are parabolas in l within a segment, and in C."""
        low, high = columns.interval
        index, f = segments.index, segments.offsets.astype(np.float64)

        def product(x: FloatArray, x_by: FloatArray, y: FloatArray, y_by: FloatArray) -> FloatArray:
            """Return the weighted sums over groups of (x - f x_by)(y - f y_by)."""
            constant, square = np.einsum("ij,ij->i", x, y), np.einsum("ij,ij->i", x_by, y_by)
            slope = np.einsum("ij,ij->i", x, y_by) + np.einsum("ij,ij->i", x_by, y)
            return np.asarray(equal_weight * (constant[index] - f * slope[index] + f * f * square[index]))

        # An equal weight of all groups is applied last, so that the tables of sizes and groups need no multiplication.
        equal_weight, lines = self.even_weight or 1.0, list(zip(segments.base, segments.slopes, strict=True))
        if self.even_weight is None:
            lines = [(base * self.weight_roots, slope * self.weight_roots) for base, slope in lines]
        squares = np.maximum(product(*lines[0], *lines[0]), 0.0)
        noise = self.noise_weight * self._noise_per_amount(segments.caps, low)
        constant = segments.sampling(0)[:, 0]
        if low == high:
            noise_variance = (noise * high) ** 2
            errors = np.sqrt(squares + constant + noise_variance)
            if self.error_parts is not None:
                self.error_parts[:, segments.caps - 1] = constant / errors, noise_variance / errors
            return errors, np.full(errors.shape, high)
        cross = np.maximum(product(*lines[0], *lines[1]), 0.0)
        slopes = np.maximum(product(*lines[1], *lines[1]), 0.0)
        # squares + 2 x cross + x^2 slopes + constant + grows (high - x)^2 at x = high - C in [0, high - low].
        grows = segments.sampling(1)[:, 0] + noise**2
        # If slopes and grows are 0 the mean square does not fall in x: its minimum is at x = 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.nan_to_num((grows * high - cross) / (slopes + grows), nan=0.0, posinf=0.0, neginf=0.0)
        x = np.clip(x, 0.0, high - low)
        mean = squares + x * (2.0 * cross + x * slopes) + constant + grows * (high - x) ** 2
        return np.sqrt(mean), high - x

    def _explicit_bounds(self, columns: _Columns, segments: _Segments) -> tuple[FloatArray, FloatArray]:
        """Return the bounds and their C from arrays of shape (L0, groups), each group evaluated separately."""
        w, caps, index, (low, high) = self.weights, segments.caps, segments.index, columns.interval
        noise = self._noise_per_amount(caps, low)[:, None] ** 2
        constant = segments.sampling(0)

        def objective(mean: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(mean) @ w if self.is_rooted else np.sqrt(mean @ w))

        missing = [
            base[index] - segments.offsets[:, None] * slope[index]
            for base, slope in zip(segments.base, segments.slopes, strict=True)
        ]
        if low == high:
            noise_variance = noise * high**2
            mean = missing[0] ** 2 + constant + noise_variance
            if self.error_parts is not None:
                # The error is sum w s / d, with d the root of each group's s, or of all of them together.
                root_weights = np.sqrt(mean) if self.is_rooted else objective(mean)[:, None]
                self.error_parts[:, caps - 1] = (
                    (constant / root_weights) @ w,
                    (noise_variance / root_weights * np.ones(mean.shape)) @ w,
                )
            return objective(mean), np.full(caps.shape, high)
        if self.is_signed:
            # The bias lies in [negative missing at high - positive at low, negative at low - positive at high].
            positive_high, positive_low, negative_high, negative_low = missing
            min_bias = np.maximum(np.maximum(negative_high - positive_low, positive_high - negative_low), 0.0)
            return objective(min_bias**2 + constant + noise * low**2), np.full(caps.shape, high)
        bias, slope = np.maximum(missing[0], 0.0), missing[1]
        grows, width = segments.sampling(1) + noise, high - low

        def value_and_slope(x: float) -> tuple[FloatArray, FloatArray]:
            cut, c = bias + x * slope, high - x
            root = np.sqrt(cut * cut + constant + grows * c * c)
            falls = np.zeros_like(root)
            np.divide(cut * slope - grows * c, root, out=falls, where=root > 0.0)
            return root @ w, falls @ w

        (start, rise), (stop, fall) = value_and_slope(0.0), value_and_slope(width)
        # A convex function lies above the crossing of its tangents at both ends; if it rises from an end, that end is
        # its minimum.
        turn = np.where(
            fall > rise, (start - stop + width * fall) / np.where(fall > rise, fall - rise, 1.0), 0.0
        )
        turn = np.where(rise >= 0.0, 0.0, np.where(fall <= 0.0, width, np.clip(turn, 0.0, width)))
        value = np.where(rise >= 0.0, start, np.where(fall <= 0.0, stop, start + rise * turn))
        return np.maximum(value, 0.0), high - turn


def errors_by_groups(
    problem: PerGroupProblem, max_amount: float, facet: SortedPairs | None = None
) -> FloatArray:
    """Return the error at every L0 from 1 to the largest number of groups of a user, in one pass.

    Args:
        problem: The problem; not a mean.
        max_amount: L-infinity, above 0.
        facet: As in `best_pair`.
    """
    return np.asarray(parts_by_groups(problem, max_amount, facet)[0])


def parts_by_groups(
    problem: PerGroupProblem, max_amount: float, facet: SortedPairs | None = None
) -> FloatArray:
    """Return the error at every L0 and its parts from sampling and noise; arguments as `errors_by_groups`.

    Returns:
        Errors, and the parts as in `moments.ErrorParts`, shape (3, largest L0). The rest of the error is bias.
    """
    passes = Passes(problem.parameters, problem.weights, facet or SortedPairs.from_problem(problem))
    passes.error_parts = parts = np.zeros((2, passes.most_groups))
    errors, _ = passes.bounds(float(max_amount), float(max_amount), 1, passes.most_groups)
    return np.vstack((errors, parts))
