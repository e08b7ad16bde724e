"""The exact best pair of bounds: groups per user (L0) and amount per user and group (L-infinity).

A pass (`passes`) gives the error at every L0, or a lower bound of it over an interval of L-infinity; so only L-infinity
is searched, by branch and bound. Numbers of L0 whose bound in an interval lies above the best error found are left out
of its parts.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.per_group.moments import pair_error
from dpcore.per_group.parameters import PerGroupProblem, Statistic
from dpcore.per_group.passes import Lowest, Passes
from dpcore.per_group.sorted_pairs import SortedPairs

TOLERANCE = 1e-6
"""Relative gap at which the search over real L-infinity stops."""
ROUNDING = 1e-12
"""Whole L-infinity: intervals whose bound lies within this of the best found are not opened."""
SAMPLED = 200_000
"""Entries from which on a first guess comes from a sample of the groups, so that whole passes leave out most L0."""
NARROWED = 50_000
"""Entries from which on what lies outside the L0 that are left is merged."""


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
        settled: Whether the search came to its end, and was not stopped. Else a better pair than nothing may be left.
    """

    max_groups: int
    max_amount: float
    error: float
    error_of_nothing: float
    certificate: Certificate
    passes: int
    ended: str
    settled: bool = True

    @property
    def releases_nothing(self) -> bool:
        """Return True if no pair of bounds was found that errs less than publishing 0 in every group."""
        return self.max_groups == 0


def best_pair(
    problem: PerGroupProblem,
    facet: SortedPairs | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = 5_000,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> PairChoice:
    """Return the best pair of bounds, or to release nothing, with a certificate.

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
        InvalidInput: An option is out of its range, or the statistic is a mean.
    """
    with Problems() as problems:
        problems.between(1e-12, 1.0, tolerance=tolerance)
        problems.whole(1, 10**9, max_passes=max_passes)
        if problem.parameters.statistic is Statistic.MEAN:
            problems.add("means have a search of their own", remedy="Use best_mean_pair")
    facet = SortedPairs.of(problem) if facet is None else facet
    passes = Passes(problem.parameters, problem.weights, facet)
    search = _Search(
        passes, problem.error_of_nothing, problem.whole, ROUNDING if problem.whole else tolerance
    )
    only_one = problem.whole and search.largest == 1.0  # One pass settles it, which a guess would double.
    if facet.amounts.size > SAMPLED and not only_one and not should_stop():
        search.start_near(_guess(problem, facet))
    search.begin()
    while search.open and passes.done < max_passes and not should_stop():
        search.split()
        progress(min(passes.done / max_passes, 1.0))
    best = search.best
    nothing = problem.error_of_nothing
    value = nothing
    if best.max_groups:
        # From the pairs themselves, by another formula than that of the pass.
        value = pair_error(problem, best.max_groups, best.amount)
    lower = min(value, search.lower_bound)
    kind = "whole" if problem.whole else "real"
    certificate = Certificate(
        value,
        lower,
        f"every number of groups and, by intervals, every {kind} L-infinity is covered; so is to release nothing",
    )
    return PairChoice(
        best.max_groups,
        best.amount if best.max_groups else 0.0,
        value,
        nothing,
        certificate,
        passes.done,
        _ended(best.max_groups, search.open, passes.done, None if problem.whole else tolerance),
        not search.open,
    )


def _guess(problem: PerGroupProblem, facet: SortedPairs) -> Lowest:
    """Return a pair near the best, from some groups of every size; it saves time and proves nothing."""
    pairs = problem.pairs
    held = int(pairs.group_codes.max()) + 1
    step = -(-2 * facet.amounts.size // SAMPLED)
    # Groups at even steps in the order of their sizes, so that small and large ones are among them.
    chosen = np.sort(np.argsort(problem.totals[:held], kind="stable")[step // 2 :: step])
    if not np.any(problem.totals[chosen]):
        return Lowest(math.inf, 0)
    of_chosen = facet.of_groups(chosen, pairs.num_entries)
    # The chosen groups stand for all that have rows; groups without rows keep their own entry.
    weights = np.r_[problem.weights[chosen] * (held / chosen.size), problem.weights[held:]]
    passes = Passes(problem.parameters, weights, of_chosen)
    search = _Search(passes, problem.error_of_nothing, problem.whole, 1e-3)
    search.begin()
    while search.open and passes.done < 100:
        search.split()
    return search.best


class _Search:
    """Intervals of L-infinity by their lower bound, least first."""

    def __init__(self, passes: Passes, of_nothing: float, whole: bool, tolerance: float) -> None:
        self.passes, self.tolerance, self.whole = passes, tolerance, whole
        self.best = Lowest(of_nothing, 0)
        self.heap: list[tuple[float, float, float, Lowest]] = []
        self.largest = passes.largest
        self.distinct = np.zeros(0) if whole else np.unique(passes.facet.amounts)

    def start_near(self, guess: Lowest) -> None:
        """Evaluate a guess, at its own L0 alone."""
        if guess.max_groups:
            amount = min(guess.amount, self.largest)
            self._evaluate(amount, (guess.max_groups, guess.max_groups))

    def begin(self) -> None:
        """The whole range as one interval."""
        if self.whole and self.best.max_groups == 0:
            self._evaluate(1.0, None)
            self._add(2.0, self.largest, None)
        elif self.whole:
            # Around the guess, so that the widest ranges of L0 are looked at with the narrowest of L-infinity.
            near, wide = self.best.amount, 2.0
            edges = [1.0, max(math.floor(near / wide), 1.0), min(math.ceil(near * wide), self.largest)]
            self._add(edges[0], edges[1], None)
            self._add(edges[1] + 1.0, edges[2], None)
            self._add(edges[2] + 1.0, self.largest, None)
        elif self.largest > 0.0:
            self._add(0.0, self.largest, None)

    @property
    def lower_bound(self) -> float:
        """Return what no pair goes below."""
        return min(self.best.value, self.heap[0][0]) if self.heap else self.best.value

    @property
    def open(self) -> bool:
        """Return True if an interval may still hold a better pair."""
        return bool(self.heap) and self.heap[0][0] < self.best.value * (1.0 - self.tolerance)

    def _evaluate(self, amount: float, window: tuple[int, int] | None) -> None:
        lowest = self.passes.lowest(amount, amount, self.best.value, window)
        if lowest.max_groups and lowest.value < self.best.value:
            self.best = lowest

    def _add(self, low: float, high: float, window: tuple[int, int] | None) -> None:
        if low > high:
            return
        if low == high:  # The bound would be the error itself.
            self._evaluate(low, window)
            return
        lowest = self.passes.lowest(low, high, self.best.value, window)
        if lowest.max_groups:
            heapq.heappush(self.heap, (lowest.value, low, high, lowest))

    def split(self) -> None:
        """Evaluate one L-infinity of the most promising interval, and bound both sides."""
        self._narrow()
        _, low, high, found = heapq.heappop(self.heap)
        if not found.max_groups:
            return
        # While an interval is wide, its geometric middle: ratios of L-infinity matter more than differences. Then
        # where its bound is least, away from the ends.
        wide = high > 2.0 * low
        middle = (math.sqrt(low * high) if low > 0.0 else high / 8.0) if wide else found.amount
        if self.whole:
            if wide and self.best.max_groups:  # Such a wide interval is hardly closed by a better pair in it.
                middle = float(min(max(math.floor(middle), low), high - 1.0))
                self._add(low, middle, found.window)
                self._add(middle + 1.0, high, found.window)
                return
            near = 0.0 if wide else 0.25 * (high - low)
            middle = float(round(min(max(middle, low + near), high - near)))
            self._evaluate(middle, found.window)
            self._add(low, middle - 1.0, found.window)
            self._add(middle + 1.0, high, found.window)
            return
        near = 0.0 if wide else 0.1 * (high - low)
        middle = min(max(middle, low + near), high - near)
        # At an amount that occurs, as there the error bends. Between two of them the bound of a mean square is exact.
        first, last = (int(x) for x in np.searchsorted(self.distinct, (low, high), side="right"))
        last -= int(last > 0 and self.distinct[last - 1] == high)
        if first < last:
            place = min(max(int(np.searchsorted(self.distinct, middle)), first), last - 1)
            middle = float(self.distinct[place])
        elif not self.passes.rooted and not self.passes.signed:
            self._evaluate(found.amount, found.window)
            return
        if not low < middle < high:
            self._evaluate(high, found.window)
            return
        self._evaluate(middle, found.window)
        self._add(low, middle, found.window)
        self._add(middle, high, found.window)

    def _narrow(self) -> None:
        """Merge what lies outside the L0 that any open interval has left, where that makes passes much shorter."""
        facet = self.passes.facet
        if not self.whole or facet.amounts.size < NARROWED or not self.heap:
            return
        windows = [found.window for *_, found in self.heap]
        window = min(first for first, _ in windows), max(last for _, last in windows)
        first, last = (int(facet.starts[int(np.sum(facet.sizes > at))]) for at in (window[1], window[0]))
        if last > first and 4 * (last - first) < 3 * facet.amounts.size:
            self.passes.facet = facet.narrowed(window, self.passes.number)


def _ended(max_groups: int, stopped: bool, passes: int, tolerance: float | None) -> str:
    if stopped:
        return f"Stopped after {passes:,} passes over the pairs; the certificate says how far a better pair can lie."
    if not max_groups:
        return (
            "Nothing useful can be released: publishing 0 in every group errs less than any pair of bounds."
        )
    if tolerance is not None:
        return f"Within {tolerance:g} of the best pair: {passes:,} passes over the pairs, each for all group bounds."
    return f"Exact: {passes:,} passes over the pairs, each for all group bounds."
