"""One pair of bounds for several data sets: the one whose worst regret is least, with its proof.

A pass (`passes`) bounds the error from below at every L0, for all L-infinity of an interval, and is the error
itself where the interval is one number. Over several data sets the largest of these, each over the error of its own
best pair, bounds the worst ratio; intervals of L-infinity are halved, the least bound first, as there.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.per_group.moments import pair_error
from dpcore.per_group.pair_of_bounds import PairChoice
from dpcore.per_group.parameters import PerGroupProblem, Statistic
from dpcore.per_group.passes import interval_errors

TOLERANCE = 1e-4
"""Relative gap at which the search ends. Whole L-infinity, too: a wide valley of two data sets is flat."""
MAX_PASSES = 5_000
ARGUMENT = (
    "every number of groups and, by intervals, every amount is covered for all data sets at once; so is to release "
    "nothing"
)


@dataclass(frozen=True)
class SharedPair:
    """The pair that serves all best.

    Attributes:
        max_groups: L0; 0 where it is best to release nothing.
        max_amount: L-infinity; 0 with it.
        errors: Of every data set there, by the objective.
        regrets: By how much each exceeds that of its own best pair, as a share of it.
        certificate: The worst ratio of errors, each over its proven lower bound, beside a number that no pair's worst
            ratio goes below.
        passes: Passes over the pairs of one data set that it took.
    """

    max_groups: int
    max_amount: float
    errors: tuple[float, ...]
    regrets: tuple[float, ...]
    certificate: Certificate
    passes: int


@dataclass(frozen=True, order=True)
class _Open:
    """An interval of L-infinity with what no pair in it goes below, for L0 from first to last."""

    under: float
    low: float
    high: float
    first: int
    last: int


def shared_pair(
    problems: Sequence[PerGroupProblem],
    choices: Sequence[PairChoice],
    *,
    tolerance: float = TOLERANCE,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> SharedPair:
    """The pair with the least worst ratio of a data set's error to that of its own best pair.

    Args:
        problems: The question on every data set, at least one; no means.
        choices: The best pair of each, from `best_pair`.
        tolerance: Relative gap at which the search ends.
        progress: Told the share of `MAX_PASSES` that is done.
        should_stop: Asked after every interval; ends the search likewise.

    Raises:
        InvalidInput: There is no data set, or not one choice for each, the statistic is a mean, or an error is 0 at
            its best, so that nothing can be compared with it.
    """
    with Problems() as wrong:
        if not problems or len(problems) != len(choices):
            wrong.add("at least one data set is needed, and one best pair for each")
        for at, (problem, choice) in enumerate(zip(problems, choices, strict=False), start=1):
            if problem.parameters.statistic is Statistic.MEAN:
                wrong.add("of means nothing bounds the error from below over ranges of bounds")
            wrong.positive(**{f"the least error of data set {at}": choice.error})
    search = _Search(problems, choices)
    search.begin()
    while search.is_open(tolerance) and search.passes < MAX_PASSES and not should_stop():
        search.split()
        progress(min(search.passes / MAX_PASSES, 1.0))
    groups, amount = search.pair
    errors = tuple(
        pair_error(problem, groups, amount) if groups else choice.error_of_nothing
        for problem, choice in zip(problems, choices, strict=True)
    )
    # Safe on both sides: the value divides by what is proved of the least errors, the lower bound of the search by
    # errors that were reached.
    value = max(
        error / choice.certificate.lower_bound if choice.certificate.lower_bound > 0.0 else math.inf
        for error, choice in zip(errors, choices, strict=True)
    )
    return SharedPair(
        groups,
        amount,
        errors,
        tuple(max(error / choice.error - 1.0, 0.0) for error, choice in zip(errors, choices, strict=True)),
        Certificate(value, min(search.lower_bound, value), ARGUMENT),
        search.passes,
    )


class _Search:
    """Intervals of L-infinity by what no pair in them goes below, least first."""

    def __init__(self, problems: Sequence[PerGroupProblem], choices: Sequence[PairChoice]) -> None:
        self.errors = [interval_errors(problem) for problem in problems]
        self.least = [choice.error for choice in choices]
        self.own = [choice.max_amount for choice in choices if choice.max_groups]
        self.whole = problems[0].whole
        self.most = max(int(problem.pairs.groups_per_user.max()) for problem in problems)
        self.largest = max(float(np.abs(problem.amounts).max()) for problem in problems)
        self.pair, self.passes = (0, 0.0), 0
        self.best = max(choice.error_of_nothing / choice.error for choice in choices)
        self.heap: list[_Open] = []

    @property
    def lower_bound(self) -> float:
        """What no pair goes below."""
        return min(self.best, self.heap[0].under) if self.heap else self.best

    def is_open(self, tolerance: float) -> bool:
        """Whether an interval may still hold a better pair."""
        return bool(self.heap) and self.heap[0].under < self.best * (1.0 - tolerance)

    def begin(self) -> None:
        """The best amounts of the data sets, then the whole range between and around them."""
        if self.largest <= 0.0:
            return
        for amount in self.own:
            self.evaluate(amount, 1, self.most)
        self.add(1.0 if self.whole else 0.0, self.largest, 1, self.most)

    def ratios(self, low: float, high: float, first: int, last: int) -> FloatArray:
        """The worst ratio at every L0 from first to last, or what it does not go below, over the interval."""
        self.passes += len(self.errors)
        every = [
            errors(low, high, first, last) / least
            for errors, least in zip(self.errors, self.least, strict=True)
        ]
        return np.asarray(np.max(every, axis=0))

    def evaluate(self, amount: float, first: int, last: int) -> None:
        """The worst ratio at one L-infinity, at every L0."""
        ratios = self.ratios(amount, amount, first, last)
        at = int(np.argmin(ratios))
        if ratios[at] < self.best:
            self.best, self.pair = float(ratios[at]), (at + first, amount)

    def add(self, low: float, high: float, first: int, last: int) -> None:
        """One more interval, with the L0 that are left in it."""
        if low > high:
            return
        if low == high:
            self.evaluate(low, first, last)
            return
        ratios = self.ratios(low, high, first, last)
        left = np.flatnonzero(ratios < self.best)
        if left.size:
            span = int(left[0]) + first, int(left[-1]) + first
            heapq.heappush(self.heap, _Open(float(ratios.min()), low, high, *span))

    def split(self) -> None:
        """Evaluate the middle of the most promising interval, and bound both sides."""
        here = heapq.heappop(self.heap)
        low, high, window = here.low, here.high, (here.first, here.last)
        middle = (low + high) / 2.0
        if high > 2.0 * low:
            middle = math.sqrt(low * high) if low > 0.0 else high / 8.0
        if self.whole:
            middle = min(max(math.floor(middle), low), high)
            self.evaluate(middle, *window)
            self.add(low, middle - 1.0, *window)
            self.add(middle + 1.0, high, *window)
            return
        if not low < middle < high:
            self.evaluate(high, *window)
            return
        self.evaluate(middle, *window)
        self.add(low, middle, *window)
        self.add(middle, high, *window)
