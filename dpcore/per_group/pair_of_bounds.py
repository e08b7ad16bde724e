"""The exact best pair of bounds: groups per user (L0) and amount per user and group (L-infinity).

At a fixed L-infinity one pass over the pairs, sorted by their user's number of groups, gives the error at every L0: the
users above L0 are the same for all L0 between two neighbouring numbers of groups, and there the bias of a group is
linear in L0, its sampling variance a parabola. So only L-infinity is searched, by branch and bound.

Lower bound for L-infinity in [a, b], at each L0: |bias| falls as L-infinity grows, sampling variance and noise rise; so
bias at b with variance and noise at a is no more than any of them. Every objective rises in all three. The bound
of the interval is the least over L0. At a = b it is the error itself, so that for whole L-infinity the search ends
with no gap but rounding.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.moments import GroupMoments, moments, pair_error
from dpcore.per_group.parameters import PerGroupProblem

BLOCK = 1 << 16
"""Entries of the arrays that a pass holds at once, 0.5 MB each. On a million pairs arrays of 8 MB, which leave the
processor's cache, took twice to three times as long."""
TOLERANCE = 1e-6
"""Relative gap at which the search over real L-infinity stops."""
ROUNDING = 1e-12
"""Whole L-infinity: intervals whose bound lies within this of the best found are not opened."""


@dataclass(frozen=True)
class PairChoice:
    """The best pair of bounds.

    Attributes:
        max_groups: L0, groups per user; 0 where it is best to release nothing.
        max_amount: L-infinity per user and group, in the statistic's unit; 0 where it is best to release nothing.
        error: The problem's objective there.
        error_of_nothing: The same for publishing 0 in every group.
        certificate: The error beside a lower bound for every pair, and for releasing nothing.
        passes: Passes over the pairs that it took.
        ended: How the search ended, a sentence.
    """

    max_groups: int
    max_amount: float
    error: float
    error_of_nothing: float
    certificate: Certificate
    passes: int
    ended: str

    @property
    def releases_nothing(self) -> bool:
        """Whether publishing 0 in every group is better than any pair of bounds."""
        return self.max_groups == 0

    def moments(self, problem: PerGroupProblem) -> GroupMoments | None:
        """Bias and variance of every group at the pair; None where nothing is released."""
        return None if self.releases_nothing else moments(problem, self.max_groups, self.max_amount)


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The pairs of a problem in descending order of their user's number of groups: what a pass reads.

    Attributes:
        groups: Group codes, shape (num_pairs,).
        amounts: What each pair adds to its group.
        inverse: 1 / (groups of the pair's user).
        sizes: The distinct numbers of groups per user, descending, shape (num_sizes,).
        starts: Where the pairs of each size begin, and their number, shape (num_sizes + 1,).
    """

    groups: IntArray
    amounts: FloatArray
    inverse: FloatArray
    sizes: IntArray
    starts: IntArray

    @classmethod
    def of(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        per_user = problem.pairs.groups_per_user
        size = np.repeat(per_user, per_user)
        order = np.argsort(-size, kind="stable")
        size = size[order]
        starts = np.flatnonzero(np.r_[True, np.diff(size) != 0])
        return cls(
            problem.pairs.group_codes[order],
            problem.amounts[order],
            1.0 / size,
            size[starts],
            np.r_[starts, size.size],
        )


@dataclass(frozen=True)
class _Lowest:
    value: float
    max_groups: int


class _Passes:
    """Errors, or their lower bounds, at every L0 for an interval of L-infinity."""

    def __init__(self, problem: PerGroupProblem, facet: SortedPairs) -> None:
        self.problem, self.facet, self.done = problem, facet, 0
        self.weights = problem.weights
        self.rooted = problem.parameters.objective.rooted

    def lowest(self, low: float, high: float, limit: float) -> _Lowest:
        """The least bound over all L0 for L-infinity in [low, high], or ``limit`` where that is less."""
        facet, parameters = self.facet, self.problem.parameters
        best = _Lowest(limit, 0)
        # From some L0 on, noise alone exceeds the limit.
        caps = np.arange(1, facet.sizes[0] + 1)
        noise = parameters.pair_noise(caps, low)
        reach = int(np.searchsorted(self.problem.noise_weight * noise, limit))
        if reach == 0:
            return best
        self.done += 1
        clipped = np.minimum(facet.amounts, high)
        below = clipped if low == high else np.minimum(facet.amounts, low)
        number = self.problem.pairs.num_groups
        lost = np.bincount(facet.groups, weights=facet.amounts - clipped, minlength=number)
        cut = lost.astype(np.float64)
        carry = np.zeros((4 if self.rooted else 2, number))
        scalars = np.zeros(2)
        # Users of more than `reach` groups stay above every L0 that is left: they enter at once.
        first = int(np.sum(facet.sizes > reach))
        edges = [0, first] if first else [0]
        step = max(1, BLOCK // number)
        while edges[-1] < facet.sizes.size:
            edges.append(min(edges[-1] + step, facet.sizes.size))
        if first == 0:  # At the largest size nobody lies above: only clipping and noise remain.
            best = self._of_segments(best, cut, carry[:, None], scalars[:, None], [reach], [reach], noise)
        for begin, end in pairwise(edges):
            merged = end <= first
            sums, totals = self._sums(begin, end, merged, clipped, below)
            sums[:, 0] += carry
            totals[:, 0] += scalars
            np.cumsum(sums, axis=1, out=sums)
            np.cumsum(totals, axis=1, out=totals)
            carry, scalars = sums[:, -1].copy(), totals[:, -1].copy()
            sizes = facet.sizes[begin:end]
            lows = np.append(facet.sizes, 1)[begin + 1 : end + 1]
            highs = np.array([reach]) if merged else sizes - 1
            lows = lows[-1:] if merged else lows
            best = self._of_segments(best, cut, sums, totals, lows, highs, noise)
        return best

    def _sums(
        self, begin: int, end: int, merged: bool, clipped: FloatArray, below: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Per size and group the sums of m, m/k (and of v^2/k, v^2/k^2); per size those of w v^2/k and w v^2/k^2."""
        facet, number = self.facet, self.problem.pairs.num_groups
        here = slice(int(facet.starts[begin]), int(facet.starts[end]))
        rows = 1 if merged else end - begin
        groups, inverse = facet.groups[here], facet.inverse[here]
        lengths = np.diff(facet.starts[begin : end + 1])
        row = np.zeros(groups.size, dtype=np.int64) if merged else np.repeat(np.arange(rows), lengths)
        code = groups + row * number
        m, squares = clipped[here], below[here] ** 2 * inverse
        columns = [m, m * inverse, *([squares, squares * inverse] if self.rooted else [])]
        sums = np.empty((len(columns), rows, number))
        for place, column in enumerate(columns):
            sums[place] = np.bincount(code, column, rows * number).reshape(rows, number)
        totals = np.zeros((2, rows))
        if not self.rooted:
            weighed = squares * self.weights[groups]
            totals[0] = np.bincount(row, weighed, rows)
            totals[1] = np.bincount(row, weighed * inverse, rows)
        return sums, totals

    def _of_segments(
        self,
        best: _Lowest,
        cut: FloatArray,
        sums: FloatArray,
        totals: FloatArray,
        lows: list[int] | IntArray,
        highs: list[int] | IntArray,
        noise: FloatArray,
    ) -> _Lowest:
        """The better of ``best`` and the least error at all L0 of the segments [low, high], one per row of sums."""
        low, high = np.asarray(lows), np.asarray(highs)
        count = np.maximum(high - low + 1, 0)
        if not count.sum():
            return best
        segment = np.repeat(np.arange(low.size), count)
        start = np.cumsum(count) - count
        further = np.arange(segment.size) - start[segment]
        caps = low[segment] + further
        variance = noise[caps - 1] ** 2
        # |bias| = cut + S0 - l S1, taken from the segment's first l on, so that little cancels.
        base = cut + np.maximum(sums[0] - low[:, None] * sums[1], 0.0)
        if not self.rooted:
            # Three weighted sums per segment: |bias|^2 is a parabola in l, and so is the sampling variance.
            w, slope = self.weights, sums[1]
            a, b, d = (base * base) @ w, (base * slope) @ w, (slope * slope) @ w
            squares = a[segment] - 2.0 * further * b[segment] + further**2.0 * d[segment]
            sampling = caps * totals[0][segment] - caps**2.0 * totals[1][segment]
            mean = np.maximum(squares, 0.0) + np.maximum(sampling, 0.0) + float(w.sum()) * variance
            at = int(np.argmin(mean))
            value = math.sqrt(float(mean[at]))
            return _Lowest(value, int(caps[at])) if value < best.value else best
        step = max(1, BLOCK // cut.size)
        for begin in range(0, caps.size, step):
            s, f = segment[begin : begin + step], further[begin : begin + step, None]
            c = caps[begin : begin + step, None].astype(np.float64)
            mean = np.maximum(base[s] - f * sums[1][s], 0.0) ** 2
            mean += (
                np.maximum(c * sums[2][s] - c * c * sums[3][s], 0.0) + variance[begin : begin + step, None]
            )
            values = np.sqrt(mean) @ self.weights
            at = int(np.argmin(values))
            if values[at] < best.value:
                best = _Lowest(float(values[at]), int(caps[begin + at]))
        return best


def best_pair(
    problem: PerGroupProblem,
    facet: SortedPairs | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = 5_000,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> PairChoice:
    """The best pair of bounds, or to release nothing, with a certificate.

    Args:
        problem: The question. L-infinity is whole for rows and distinct users, real for a sum.
        facet: The pairs sorted before, where several questions share them; its amounts must be the problem's.
        tolerance: Relative gap at which a search over real L-infinity stops; whole ones are settled exactly.
        max_passes: Passes after which the search ends with the gap that it has.
        progress: Told the share of ``max_passes`` that is done.
        should_stop: Asked after every pass; ends the search with the gap that it has.

    Returns:
        `PairChoice`; its certificate is about the objective, over every L0 >= 1 and L-infinity > 0 of the kind.

    Raises:
        InvalidInput: An option is out of its range.
    """
    problems = Problems()
    problems.between(1e-12, 1.0, tolerance=tolerance)
    problems.whole(1, 10**9, max_passes=max_passes)
    problems.raise_if_any()
    passes = _Passes(problem, SortedPairs.of(problem) if facet is None else facet)
    search = _Search(passes, ROUNDING if problem.whole else tolerance)
    while search.open and passes.done < max_passes and not (should_stop and should_stop()):
        search.split()
        if progress is not None:
            progress(min(passes.done / max_passes, 1.0))
    found = search.best
    nothing = problem.error_of_nothing
    value = pair_error(problem, found.max_groups, search.amount) if found.max_groups else nothing
    lower = min(value, search.lower_bound)
    kind = "whole" if problem.whole else "real"
    certificate = Certificate(
        value,
        lower,
        f"every L0 and, by intervals, every {kind} L-infinity is covered; so is to release nothing",
    )
    return PairChoice(
        found.max_groups,
        search.amount if found.max_groups else 0.0,
        value,
        nothing,
        certificate,
        passes.done,
        _ended(found.max_groups, bool(search.open), passes.done),
    )


class _Search:
    """Intervals of L-infinity by their lower bound, least first."""

    def __init__(self, passes: _Passes, tolerance: float) -> None:
        self.passes, self.tolerance = passes, tolerance
        self.whole = passes.problem.whole
        self.best, self.amount = _Lowest(passes.problem.error_of_nothing, 0), 0.0
        self.heap: list[tuple[float, float, float]] = []
        amounts = passes.facet.amounts
        largest = float(amounts.max())
        if self.whole:
            self._evaluate(1.0)
            self._add(2.0, largest)
        elif largest > 0.0:
            self._add(0.0, largest)

    @property
    def lower_bound(self) -> float:
        """What no pair goes below."""
        return min(self.best.value, self.heap[0][0]) if self.heap else self.best.value

    @property
    def open(self) -> bool:
        """Whether an interval may still hold a better pair."""
        return bool(self.heap) and self.heap[0][0] < self.best.value * (1.0 - self.tolerance)

    def _evaluate(self, amount: float) -> None:
        found = self.passes.lowest(amount, amount, self.best.value)
        if found.max_groups and found.value < self.best.value:
            self.best, self.amount = found, amount

    def _add(self, low: float, high: float) -> None:
        if low > high:
            return
        if low == high:  # The bound would be the error itself.
            self._evaluate(low)
            return
        heapq.heappush(self.heap, (self.passes.lowest(low, high, self.best.value).value, low, high))

    def split(self) -> None:
        """Evaluate one L-infinity of the most promising interval, and bound both sides."""
        _, low, high = heapq.heappop(self.heap)
        # The geometric middle: the error depends on ratios of L-infinity more than on differences.
        if self.whole:
            middle = float(min(max(math.isqrt(int(low) * int(high)), int(low)), int(high)))
            self._evaluate(middle)
            self._add(low, middle - 1.0)
            self._add(middle + 1.0, high)
            return
        middle = math.sqrt(low * high) if low > 0.0 else high / 8.0
        if not low < middle < high:
            self._evaluate(high)
            return
        self._evaluate(middle)
        self._add(low, middle)
        self._add(middle, high)


def _ended(max_groups: int, stopped: bool, passes: int) -> str:
    if stopped:
        return f"Stopped after {passes:,} passes over the pairs; the certificate says how far a better pair can lie."
    if not max_groups:
        return (
            "Nothing useful can be released: publishing 0 in every group errs less than any pair of bounds."
        )
    return f"Exact: {passes:,} passes over the pairs, each for every L0."
