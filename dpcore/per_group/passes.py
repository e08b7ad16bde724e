"""One pass over the pairs: the error at every L0 for one L-infinity, or what it does not go below in an interval of it.

At a fixed L-infinity one pass over the pairs, sorted by their user's number of groups, gives the error at every L0: the
users above L0 are the same for all L0 between two neighbouring numbers of groups, and there the bias of a group is
linear in L0, its sampling variance a parabola.

Lower bound for L-infinity = C in [a, b], at each L0, for amounts of at least 0. |bias| of a group is convex in C, so it
lies above its tangent at b: |bias|(C) >= |bias|(b) + s (b - C), s the kept shares of the pairs of amount b or more.
The sampling variance keeps C^2 for those pairs and at least its value at a for the others, and the noise is a
multiple of C. So the weighted mean square lies above a parabola in C, which has its least value in closed form; a
mean of roots lies above a convex function of C, and above its tangents at a and b. Within an interval that holds no
amount the bound is the error itself, so that real L-infinity, too, is settled to a small gap in few passes.

Amounts of any sign: bias = (negative part that is missing) - (positive part that is missing), both falling in C, which
holds it in an interval; its least square there, with variance and noise at a, is the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dpcore.common.checks import require
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem
from dpcore.per_group.sorted_pairs import Merged, SortedPairs

BLOCK = 1 << 16
"""Entries of the arrays that a pass holds at once, 0.5 MB each. On a million pairs arrays of 8 MB, which leave the
processor's cache, took twice to three times as long."""


@dataclass(frozen=True)
class Lowest:
    """The least bound of an interval, where it is, and the L0 for which the interval is still of interest."""

    value: float
    max_groups: int
    amount: float = 0.0
    window: tuple[int, int] = (1, 0)


@dataclass
class _Sums:
    """Sums over users of more than so many groups, per size (rows) and group; the columns are those of a pass.

    ``missing`` holds sum x and sum x / k of linear columns, ``varying`` sum v / k and sum v / k^2 per group, and
    ``scalars`` the same weighed and added up over groups, where no root is taken group by group.
    """

    missing: FloatArray
    varying: FloatArray
    scalars: FloatArray


@dataclass(frozen=True)
class _Columns:
    """What a pass adds up for C in [low, high]; every column has one entry per entry of the facet that is read.

    linear: what is kept of each amount at one or two C, and, third for unsigned intervals, whether it is cut at high.
    varying: lower bounds of the squares, constant ones first, then the coefficient of C^2.
    """

    linear: list[FloatArray]
    varying: list[FloatArray]
    cut: list[FloatArray] = field(default_factory=list)


class Passes:
    """Errors, or their lower bounds, at every L0 for an interval of L-infinity."""

    def __init__(self, parameters: PerGroupParameters, weights: FloatArray, facet: SortedPairs) -> None:
        self.parameters, self.weights, self.facet, self.done = parameters, weights, facet, 0
        self.number = weights.size
        self.rooted = parameters.objective.rooted
        self.noise_weight = float(weights.sum()) if self.rooted else math.sqrt(float(weights.sum()))
        self.root = np.sqrt(weights)
        # Of groups without pairs, the last entry's, only the weight of the noise counts.
        held = weights[: int(facet.groups.max()) + 1]
        self.even = float(held[0]) if bool(held.min() == held.max()) else None
        self.signed = bool((facet.counts < 0.0).any())
        self.most = int(facet.sizes[0])
        self.largest = float(facet.amounts.max())
        self.parts: FloatArray | None = None  # Of the error at one L-infinity, where it is asked for them.

    def lowest(self, low: float, high: float, limit: float, window: tuple[int, int] | None = None) -> Lowest:
        """The least bound over the L0 of a window, for L-infinity in [low, high]; ``limit`` where that is less."""
        first, last = window or (1, self.most)
        last = min(last, self.most)
        # From some L0 on, noise alone exceeds the limit.
        noise = self.parameters.pair_noise(np.arange(1, last + 1), low)
        last = int(np.searchsorted(self.noise_weight * noise, limit))
        if last < first:
            return Lowest(limit, 0)
        values, at = self.bounds(low, high, first, last)
        best = int(np.argmin(values))
        if not values[best] < limit:
            return Lowest(limit, 0)
        open_ = np.flatnonzero(values < limit)
        span = int(open_[0]) + first, int(open_[-1]) + first
        return Lowest(float(values[best]), best + first, float(at[best]), span)

    def bounds(self, low: float, high: float, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Return the bound at every L0 from first to last, and the C in the interval at which it stands."""
        self.done += 1
        facet = self.facet
        # Users of at most `first` groups never miss any; those of more than `last` miss some at every L0 that is left.
        whole = int(np.sum(facet.sizes > first))
        merged = int(np.sum(facet.sizes > last))
        until = int(facet.starts[whole])
        columns = self._columns(low, high, facet.amounts[:until], facet.counts[:until])
        values = np.full(last - first + 1, np.inf)
        at = np.full(values.shape, high)
        carry = self._merged(columns, merged, low, high)
        edges, step = [merged], max(1, BLOCK // self.number)
        while edges[-1] < whole:
            edges.append(min(edges[-1] + step, whole))
        # L0 from the smallest size above `last` down, then between the sizes.
        sums = _Sums(carry.missing[:, :, None], carry.varying[:, :, None], carry.scalars[:, :, None])
        top = np.array([max(first, int(np.append(facet.sizes, 1)[merged]))])
        self._segments(columns, sums, top, np.array([last]), (low, high), values, at, first)
        for begin, end in pairwise(edges):
            sums = self._rows(columns, begin, end, carry)
            carry = _Sums(sums.missing[:, :, -1], sums.varying[:, :, -1], sums.scalars[:, :, -1])
            sizes = facet.sizes[begin:end]
            lows = np.maximum(np.append(facet.sizes, 1)[begin + 1 : end + 1], first)
            self._segments(columns, sums, lows, sizes - 1, (low, high), values, at, first)
        return values, at

    def _columns(self, low: float, high: float, amounts: FloatArray, counts: FloatArray) -> _Columns:
        if low == high:
            kept = np.minimum(amounts, high)
            linear = kept * counts
            kept *= np.abs(linear) if self.signed else linear
            return _Columns([linear], [kept], [self._cut(high)])
        below = np.minimum(amounts, low)
        if self.signed:
            ends = [np.minimum(amounts, high), below]
            return _Columns(
                [end * np.maximum(sign * counts, 0.0) for sign in (1.0, -1.0) for end in ends],
                [below * below * np.abs(counts)],
                [self._cut(end, sign) for sign in (1.0, -1.0) for end in (high, low)],
            )
        reaches = (amounts >= high) * counts
        below *= below
        below *= counts - reaches
        return _Columns(
            [np.minimum(amounts, high) * counts, reaches],
            [below, reaches],
            [self._cut(high), self._reaching(high)],
        )

    def _every_entry(self) -> list[SortedPairs | Merged]:
        return [part for part in (self.facet, self.facet.ahead, self.facet.behind) if part is not None]

    def _cut(self, amount: float, sign: float = 0.0) -> FloatArray:
        """Return what L-infinity cuts away in every group; of one sign's amounts alone, where one is given."""
        total = np.zeros(self.number)
        for part in self._every_entry():
            over = np.flatnonzero(part.amounts > amount)
            counts = part.counts[over]
            if sign:
                counts = np.maximum(sign * counts, 0.0)
            total += self._bincount(part.groups[over], (part.amounts[over] - amount) * counts)
        return total

    def _reaching(self, amount: float) -> FloatArray:
        """Return the pairs of every group with at least this amount."""
        total = np.zeros(self.number)
        for part in self._every_entry():
            at = np.flatnonzero(part.amounts >= amount)
            total += self._bincount(part.groups[at], part.counts[at])
        return total

    def _bincount(self, codes: IntArray, weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(codes, weights, self.number), dtype=np.float64)

    def _merged(self, columns: _Columns, sizes: int, low: float, high: float) -> _Sums:
        """Return the sums over the users of the largest sizes, all at once."""
        by_group = self._explicit(columns)
        missing = np.zeros((len(columns.linear), 2, self.number))
        varying = np.zeros((len(columns.varying), 2, self.number if by_group else 0))
        scalars = np.zeros((len(columns.varying), 2))

        def add(groups: IntArray, place: int, once: FloatArray, twice: FloatArray) -> None:
            if by_group:
                varying[place, 0] += self._bincount(groups, once)
                varying[place, 1] += self._bincount(groups, twice)
            else:
                w = self.weights[groups]
                scalars[place] += [float(once @ w), float(twice @ w)]

        if sizes:
            here = slice(0, int(self.facet.starts[sizes]))
            groups = self.facet.groups[here]
            inverse = np.repeat(1.0 / self.facet.sizes[:sizes], np.diff(self.facet.starts[: sizes + 1]))
            for place, column in enumerate(columns.linear):
                missing[place, 0] += self._bincount(groups, column[here])
                missing[place, 1] += self._bincount(groups, column[here] * inverse)
            for place, column in enumerate(columns.varying):
                once = column[here] * inverse
                add(groups, place, once, once * inverse)
        ahead = self.facet.ahead
        if ahead is not None:
            # Whole amounts of at least 0: per pair, then times how many, and times 1 / k and 1 / k^2 of these.
            unit = self._columns(low, high, ahead.amounts, np.ones(ahead.amounts.size))
            for place, column in enumerate(unit.linear):
                missing[place, 0] += self._bincount(ahead.groups, column * ahead.counts)
                missing[place, 1] += self._bincount(ahead.groups, column * ahead.once)
            for place, column in enumerate(unit.varying):
                add(ahead.groups, place, column * ahead.once, column * ahead.twice)
        return _Sums(missing, varying, scalars)

    def _note(self, caps: IntArray, drawn: FloatArray, added: FloatArray) -> None:
        """Keep what sampling and noise add to the error at these L0, where that was asked for."""
        if self.parts is not None:
            self.parts[:, caps - 1] = drawn, added

    def _explicit(self, columns: _Columns) -> bool:
        """Whether every L0 and group is looked at by itself, because what is added up over groups is no parabola."""
        return self.rooted or len(columns.linear) == 4

    def _rows(self, columns: _Columns, begin: int, end: int, carry: _Sums) -> _Sums:
        """Running sums over these sizes and all larger ones."""
        facet, number = self.facet, self.number
        here = slice(int(facet.starts[begin]), int(facet.starts[end]))
        rows, lengths = end - begin, np.diff(facet.starts[begin : end + 1])
        groups = facet.groups[here]
        code = groups + np.repeat(np.arange(rows) * number, lengths)
        inverse = 1.0 / facet.sizes[begin:end, None]
        missing = np.empty((len(columns.linear), 2, rows, number))
        for place, column in enumerate(columns.linear):
            missing[place, 0] = np.bincount(code, column[here], rows * number).reshape(rows, number)
            np.multiply(missing[place, 0], inverse, out=missing[place, 1])
        varying = np.empty((len(columns.varying), 2, rows, carry.varying.shape[2]))
        scalars = np.zeros((len(columns.varying), 2, rows))
        offsets = facet.starts[begin:end] - facet.starts[begin]
        for place, column in enumerate(columns.varying):
            if carry.varying.shape[2]:
                once = np.bincount(code, column[here], rows * number).reshape(rows, number) * inverse
                varying[place, 0], varying[place, 1] = once, once * inverse
            else:
                weighed = np.add.reduceat(column[here] * self.weights[groups], offsets) * inverse[:, 0]
                scalars[place, 0], scalars[place, 1] = weighed, weighed * inverse[:, 0]
        missing[:, :, 0] += carry.missing
        varying[:, :, 0] += carry.varying
        scalars[:, :, 0] += carry.scalars
        np.cumsum(scalars, axis=2, out=scalars)
        for array in (missing, varying):
            # Row by row: NumPy's running sum along an axis that is not the last took three times as long.
            for row in range(1, rows):
                array[:, :, row] += array[:, :, row - 1]
        return _Sums(missing, varying, scalars)

    def _segments(
        self,
        columns: _Columns,
        sums: _Sums,
        lows: IntArray,
        highs: IntArray,
        interval: tuple[float, float],
        values: FloatArray,
        at: FloatArray,
        first: int,
    ) -> None:
        """Write the bounds at all L0 of the segments [low, high], one per row of the sums, and the C they stand at."""
        count = np.maximum(highs - lows + 1, 0)
        if not count.sum():
            return
        segment = np.repeat(np.arange(lows.size), count)
        further = np.arange(segment.size) - (np.cumsum(count) - count)[segment]
        caps = (lows[segment] + further).astype(np.int64)
        # |bias| = cut + S0 - l S1, taken from the segment's first l on, so that little cancels.
        base = [cut + x[0] - lows[:, None] * x[1] for cut, x in zip(columns.cut, sums.missing, strict=True)]
        if len(base) == 2:
            # The kept shares of what reaches b: all of it, less the missed part.
            reaching = columns.cut[1]
            base[1] = np.maximum(2.0 * reaching - base[1], 0.0)
        if not self.signed:
            base[0] = np.maximum(base[0], 0.0)
        if not self._explicit(columns):
            found, where = self._parabolas(base, sums, segment, further, caps, interval)
            values[caps - first], at[caps - first] = found, where
            return
        step = max(1, BLOCK // base[0].shape[1])
        for begin in range(0, caps.size, step):
            some = slice(begin, begin + step)
            found, where = self._by_group(base, sums, segment[some], further[some], caps[some], interval)
            values[caps[some] - first], at[caps[some] - first] = found, where

    def _parabolas(
        self,
        base: list[FloatArray],
        sums: _Sums,
        segment: IntArray,
        further: IntArray,
        caps: IntArray,
        interval: tuple[float, float],
    ) -> tuple[FloatArray, FloatArray]:
        """Roots of the weighted mean square, whose parts are parabolas in l within a segment, and in C."""
        f, (low, high) = further.astype(np.float64), interval

        def product(x: FloatArray, x_by: FloatArray, y: FloatArray, y_by: FloatArray) -> FloatArray:
            """Weighted sums over groups of (x - f x_by)(y - f y_by) where x is y, else of (x - f x_by)(y + f y_by)."""
            constant = np.einsum("ij,ij->i", x, y)
            square = np.einsum("ij,ij->i", x_by, y_by)
            if x is y:
                slope = -2.0 * np.einsum("ij,ij->i", x, x_by)
            else:
                slope = np.einsum("ij,ij->i", x, y_by) - np.einsum("ij,ij->i", x_by, y)
                square = -square
            return np.asarray(even * (constant[segment] + f * slope[segment] + f * f * square[segment]))

        def sampling(place: int) -> FloatArray:
            # Of p (1 - p) v with p = l / k the sum is l sum v / k - l^2 sum v / k^2.
            once, twice = sums.scalars[place]
            return np.asarray(np.maximum(caps * once[segment] - caps**2.0 * twice[segment], 0.0))

        # Equal weights of all groups come last, so that the tables of sizes and groups need not be multiplied.
        even, by = self.even or 1.0, [x[1] for x in sums.missing]
        if self.even is None:
            base, by = [b * self.root for b in base], [x * self.root for x in by]
        squares = np.maximum(product(base[0], by[0], base[0], by[0]), 0.0)
        noise = self.noise_weight * self.parameters.pair_noise(caps, 1.0)
        if low == high:
            drawn, added = sampling(0), (noise * high) ** 2
            whole = np.sqrt(squares + drawn + added)
            self._note(caps, drawn / whole, added / whole)
            return whole, np.full(caps.shape, high)
        rises = by[1]
        cross = np.maximum(product(base[0], by[0], base[1], rises), 0.0)
        slopes = np.maximum(product(base[1], -rises, base[1], -rises), 0.0)
        # squares + 2 x cross + x^2 slopes + constant + grows (high - x)^2 at x = high - C in [0, high - low].
        constant, grows = sampling(0), sampling(1) + noise**2
        # Where slopes and grows are 0 the mean square never falls in x: it is least at x = 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.nan_to_num((grows * high - cross) / (slopes + grows), nan=0.0, posinf=0.0, neginf=0.0)
        x = np.clip(x, 0.0, high - low)
        mean = squares + x * (2.0 * cross + x * slopes) + constant + grows * (high - x) ** 2
        return np.sqrt(mean), high - x

    def _by_group(
        self,
        base: list[FloatArray],
        sums: _Sums,
        segment: IntArray,
        further: IntArray,
        caps: IntArray,
        interval: tuple[float, float],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same where each group is looked at by itself, shape (L0, groups)."""
        w, f, (low, high) = self.weights, further[:, None], interval
        kept = caps[:, None].astype(np.float64)
        noise = self.parameters.pair_noise(caps, 1.0)[:, None] ** 2

        def sampling(place: int) -> FloatArray:
            once, twice = sums.varying[place]
            return np.asarray(np.maximum(kept * once[segment] - kept * kept * twice[segment], 0.0))

        def weighed(mean: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(mean) @ w if self.rooted else np.sqrt(mean @ w))

        missing = [b[segment] - f * x[1][segment] for b, x in zip(base, sums.missing, strict=True)]
        if low == high:
            drawn, added = sampling(0), noise * high**2
            mean = missing[0] ** 2 + drawn + added
            if self.parts is not None:
                # The error is sum w s / d, with d the root of each group's s, or of all of them together.
                root = np.sqrt(mean) if self.rooted else weighed(mean)[:, None]
                self._note(caps, (drawn / root) @ w, (added / root * np.ones(mean.shape)) @ w)
            return weighed(mean), np.full(caps.shape, high)
        if self.signed:
            # In [negative missing at high - positive missing at low, negative at low - positive at high].
            positive_high, positive_low, negative_high, negative_low = missing
            least = np.maximum(np.maximum(negative_high - positive_low, positive_high - negative_low), 0.0)
            return weighed(least**2 + sampling(0) + noise * low**2), np.full(caps.shape, high)
        bias = np.maximum(missing[0], 0.0)
        slope = base[1][segment] + f * sums.missing[1, 1][segment]
        constant, grows, width = sampling(0), sampling(1) + noise, high - low

        def at(x: float) -> tuple[FloatArray, FloatArray]:
            cut, c = bias + x * slope, high - x
            root = np.sqrt(cut * cut + constant + grows * c * c)
            falls = np.zeros_like(root)
            np.divide(cut * slope - grows * c, root, out=falls, where=root > 0.0)
            return root @ w, falls @ w

        (start, rise), (stop, fall) = at(0.0), at(width)
        # A convex function lies above the crossing of its tangents at both ends, and is least at an end from which
        # it rises.
        turn = np.where(
            fall > rise, (start - stop + width * fall) / np.where(fall > rise, fall - rise, 1.0), 0.0
        )
        turn = np.where(rise >= 0.0, 0.0, np.where(fall <= 0.0, width, np.clip(turn, 0.0, width)))
        value = np.where(rise >= 0.0, start, np.where(fall <= 0.0, stop, start + rise * turn))
        return np.maximum(value, 0.0), high - turn


def errors_by_groups(
    problem: PerGroupProblem, max_amount: float, facet: SortedPairs | None = None
) -> FloatArray:
    """Return the error at every L0 from 1 to the most groups that a user has, in one pass; shape (that many,).

    Args:
        problem: The question; no mean.
        max_amount: L-infinity, above 0.
        facet: As in `best_pair`.

    Raises:
        InvalidInput: L-infinity is out of its range.
    """
    require.positive(max_amount=max_amount)
    passes = Passes(problem.parameters, problem.weights, SortedPairs.of(problem) if facet is None else facet)
    return passes.bounds(float(max_amount), float(max_amount), 1, passes.most)[0]


@dataclass(frozen=True, eq=False)
class PartsByGroups:
    """The error at every L0 for one L-infinity, and what of it comes from where; each array of shape (most L0,).

    Attributes:
        errors: The problem's objective.
        sampling: What the random choice of groups adds to it, as in `moments.ErrorParts`.
        noise: What the noise adds.
    """

    errors: FloatArray
    sampling: FloatArray
    noise: FloatArray

    @property
    def bias(self) -> FloatArray:
        """Return what clipping and leaving out groups add: the parts add up to the error."""
        return np.maximum(self.errors - self.sampling - self.noise, 0.0)


def parts_by_groups(
    problem: PerGroupProblem, max_amount: float, facet: SortedPairs | None = None
) -> PartsByGroups:
    """As `errors_by_groups`, in the same pass with the parts of the error."""
    require.positive(max_amount=max_amount)
    passes = Passes(problem.parameters, problem.weights, SortedPairs.of(problem) if facet is None else facet)
    passes.parts = np.zeros((2, passes.most))
    errors = passes.bounds(float(max_amount), float(max_amount), 1, passes.most)[0]
    return PartsByGroups(errors, *passes.parts)
