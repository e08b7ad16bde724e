"""The exact best pair of bounds: groups per user (L0) and amount per user and group (L-infinity).

A pass (`passes`) gives the error at every L0, or a lower bound of it over an interval of L-infinity. So the search is
branch and bound over L-infinity alone. Values of L0 whose bound in an interval exceeds the best error are excluded from
its subintervals.

Where no lower bound is known, `search_pairs` is a local search over integer pairs; it proves nothing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import refuse
from dpcore.common.progress import ShouldStop, never
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.passes import IntervalMinimum, Passes
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs

SEARCH_TOLERANCE = 1e-6
"""Relative gap of the search over real L-infinity."""
ROUNDING_TOLERANCE = 1e-12
"""Relative gap of the search over integers."""
MIN_SAMPLED_ENTRIES = 200_000
"""Entries from which a sample of the groups gives a first guess."""
MAX_ENUMERATED_PAIRS = 300
"""Pairs of bounds that are all evaluated."""
MIN_INTERVAL_RATIO = 1.0 + 1e-9
"""Steps of this ratio go to the next integers."""
NUM_LEADING_DIGITS = 3
"""Of a rounded amount."""


def round_up(amount: float) -> float:
    """Round an amount up to three digits, as the exact amount may reveal a user's; keep 0, negatives, infinity."""
    if amount <= 0.0 or not math.isfinite(amount):
        return amount
    last_digit_unit = 10.0 ** (math.floor(math.log10(amount)) - NUM_LEADING_DIGITS + 1)
    return float(f"{math.ceil(amount / last_digit_unit * (1.0 - 1e-12)) * last_digit_unit:.12g}")


@dataclass(frozen=True)
class PairChoice:
    """The best pair of bounds that a search found; 0 and 0 if releasing nothing is better.

    Attributes:
        max_groups: L0, groups per user; 0 if it is best to release nothing.
        max_amount: L-infinity per user and group, in the statistic's unit (of a mean, in rows); 0 likewise.
        error: The problem's objective there.
        certificate: The error and a lower bound for every pair, and for releasing nothing; None if nothing is proved.
        num_evaluations: Number of passes over the pairs, or of evaluated pairs of bounds.
        stop_reason: Sentences on how the search ended.
        is_settled: True if the search was completed. If it was stopped, a better pair may exist.
    """

    max_groups: int
    max_amount: float
    error: float
    certificate: Certificate | None
    num_evaluations: int
    stop_reason: str
    is_settled: bool = True

    @property
    def releases_nothing(self) -> bool:
        """Return True if no pair was found with a smaller error than releasing nothing."""
        return self.max_groups == 0


def find_best_pair(
    problem: PerGroupProblem,
    sorted_pairs: SortedPairs | None = None,
    *,
    tolerance: float = SEARCH_TOLERANCE,
    max_passes: int = 5_000,
    should_stop: ShouldStop = never,
) -> PairChoice:
    """Return the best pair of bounds with a certificate; it may be to release nothing.

    Args:
        problem: The problem. L-infinity is an integer for rows and distinct users, real for a sum.
        sorted_pairs: The pairs, already sorted, if several problems share them; its amounts must be the problem's.
        tolerance: Relative gap at which a search over real L-infinity stops; integer ones are solved exactly.
        max_passes: Passes after which the search ends with the gap that it has.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        `PairChoice`; its certificate covers the objective at every L0 >= 1 and every L-infinity > 0 (integer or real).

    Raises:
        InvalidInput: The statistic is a mean.
    """
    if problem.parameters.statistic is Statistic.MEAN:
        raise refuse("means have a search of their own", "", "Use find_best_mean_pair")
    sorted_pairs = SortedPairs.from_problem(problem) if sorted_pairs is None else sorted_pairs
    passes = Passes(problem.parameters, problem.weights, sorted_pairs)
    is_integer, error_of_nothing = problem.parameters.statistic.is_integer, problem.error_of_nothing
    search = _Search(passes, error_of_nothing, is_integer, ROUNDING_TOLERANCE if is_integer else tolerance)
    # One pass settles it, which a guess would double.
    has_one_amount = is_integer and passes.largest_amount == 1.0
    if sorted_pairs.amounts.size > MIN_SAMPLED_ENTRIES and not has_one_amount and not should_stop():
        guessed_minimum = _guess_pair(problem, sorted_pairs)
        if guessed_minimum.max_groups:
            best_amount = min(guessed_minimum.amount, passes.largest_amount)
            search.add(best_amount, best_amount, (guessed_minimum.max_groups, guessed_minimum.max_groups))
    search.begin()
    while search.is_open and passes.num_passes < max_passes and not should_stop():
        search.split()
    max_groups, best_amount = search.best_minimum.max_groups, search.best_minimum.amount
    passes_text = f"{passes.num_passes:,} passes over the pairs"
    # Computed from the pairs themselves, by another formula than that of the pass.
    best_error = compute_pair_error(problem, max_groups, best_amount) if max_groups else error_of_nothing
    certificate = Certificate(
        best_error,
        min(best_error, search.lower_bound),
        f"every number of groups and, by intervals, every {'whole' if is_integer else 'real'} L-infinity is covered",
    )
    if search.is_open:
        stop_reason = f"Stopped after {passes_text}; the certificate has the gap."
    elif not max_groups:
        stop_reason = "Nothing useful can be released: publishing 0 is best."
    else:
        claim_phrase = "Exact" if is_integer else f"Within {tolerance:g} of the best pair"
        stop_reason = f"{claim_phrase}: {passes_text}."
    num_passes, is_settled = passes.num_passes, not search.is_open
    return PairChoice(max_groups, best_amount, best_error, certificate, num_passes, stop_reason, is_settled)


def _guess_pair(problem: PerGroupProblem, sorted_pairs: SortedPairs) -> IntervalMinimum:
    """Return the minimum of a quick search over a sample of the groups: a pair near the best, which no proof uses.

    Its L0 is 0 if the sample holds nothing, or if releasing nothing is best for the sample.
    """
    num_occupied = int(problem.pairs.group_codes.max()) + 1
    sampling_step = -(-2 * sorted_pairs.amounts.size // MIN_SAMPLED_ENTRIES)
    # Groups at even steps in the order of their sizes, so that small and large ones are among them.
    sampled_groups = np.sort(
        np.argsort(problem.totals[:num_occupied], kind="stable")[sampling_step // 2 :: sampling_step]
    )
    if not np.any(problem.totals[sampled_groups]):
        return IntervalMinimum(math.inf, 0)
    # The sampled groups represent all groups with rows; groups without rows keep their own entry.
    sampling_factor = num_occupied / sampled_groups.size
    sampled_weights = np.r_[problem.weights[sampled_groups] * sampling_factor, problem.weights[num_occupied:]]
    sampled_pairs = sorted_pairs.select_groups(sampled_groups, problem.pairs.num_entries)
    passes = Passes(problem.parameters, sampled_weights, sampled_pairs)
    search = _Search(passes, problem.error_of_nothing, problem.parameters.statistic.is_integer, 1e-3)
    search.begin()
    while search.is_open and passes.num_passes < 100:
        search.split()
    return search.best_minimum


class _Search:
    """Branch and bound over L-infinity.

    Invariant: every L-infinity is evaluated, inside an interval of the heap, or in an interval whose lower bound is at
    least the best error. Each interval keeps the window of L0 that may still be better there.

    Attributes:
        best_minimum: Error, L0 and L-infinity of the best pair so far; L0 is 0 while releasing nothing is best.
        heap: Open intervals as (lower bound, low, high, minimum of the bound), by their lower bounds.
        distinct_amounts: Amounts of the pairs, ascending; empty if L-infinity is an integer.
    """

    def __init__(self, passes: Passes, error_of_nothing: float, is_integer: bool, tolerance: float) -> None:
        self.passes, self.tolerance, self.is_integer = passes, tolerance, is_integer
        self.best_minimum = IntervalMinimum(error_of_nothing, 0)
        self.heap: list[tuple[float, float, float, IntervalMinimum]] = []
        self.distinct_amounts = np.zeros(0) if is_integer else np.unique(passes.pairs.amounts)

    def begin(self) -> None:
        """Add all L-infinity that are worth a look: of sums one interval, of integers 1 and an interval for the rest.

        With a guess, integers are divided into three intervals around it.
        """
        largest_amount = self.passes.largest_amount
        if not self.is_integer:
            if largest_amount > 0.0:
                self.add(0.0, largest_amount, None)
        elif self.best_minimum.max_groups == 0:
            self.add(1.0, 1.0, None)
            self.add(2.0, largest_amount, None)
        else:
            # Around the guess, so that the widest windows of L0 go with the narrowest interval of L-infinity.
            low_amount = max(math.floor(self.best_minimum.amount / 2.0), 1.0)
            high_amount = min(math.ceil(self.best_minimum.amount * 2.0), largest_amount)
            self.add(1.0, low_amount, None)
            self.add(low_amount + 1.0, high_amount, None)
            self.add(high_amount + 1.0, largest_amount, None)

    @property
    def lower_bound(self) -> float:
        """Return a lower bound on the error of every pair, and of releasing nothing."""
        return min([self.best_minimum.error_bound, *(error_bound for error_bound, *_ in self.heap[:1])])

    @property
    def is_open(self) -> bool:
        """Return True if an interval may still contain a pair that is better by more than the tolerance."""
        return self.lower_bound < self.best_minimum.error_bound * (1.0 - self.tolerance)

    def add(self, low_amount: float, high_amount: float, group_window: tuple[int, int] | None) -> None:
        """Evaluate one L-infinity (low = high), or bound [low, high] and keep it if it may contain a better pair.

        The window has the smallest and largest L0 to look at, None for all. If low > high, nothing is done.
        """
        if low_amount > high_amount:
            return
        interval_minimum = self.passes.find_minimum(
            low_amount, high_amount, self.best_minimum.error_bound, group_window
        )
        if not interval_minimum.max_groups:
            return
        if low_amount == high_amount:  # The bound is the error itself.
            self.best_minimum = interval_minimum
        else:
            heapq.heappush(
                self.heap, (interval_minimum.error_bound, low_amount, high_amount, interval_minimum)
            )

    def split(self) -> None:
        """Divide the open interval with the smallest lower bound in two, and evaluate an L-infinity between them.

        A wide interval of integers is only halved once a pair is known. An interval that holds no new kink is settled
        at its minimum.
        """
        _, low_amount, high_amount, interval_minimum = heapq.heappop(self.heap)
        group_window = interval_minimum.group_window
        # Split a wide interval at its geometric mean, as ratios of L-infinity matter more than differences; a narrow
        # one where its bound is smallest, away from the ends.
        is_wide = high_amount > 2.0 * low_amount
        middle_amount = interval_minimum.amount
        if is_wide:
            middle_amount = math.sqrt(low_amount * high_amount) if low_amount > 0.0 else high_amount / 8.0
        if self.is_integer and is_wide and self.best_minimum.max_groups:
            # A better pair at the midpoint would hardly close so wide an interval.
            middle_amount = float(min(max(math.floor(middle_amount), low_amount), high_amount - 1.0))
            self.add(low_amount, middle_amount, group_window)
            self.add(middle_amount + 1.0, high_amount, group_window)
            return
        end_margin = 0.0 if is_wide else (0.25 if self.is_integer else 0.1) * (high_amount - low_amount)
        middle_amount = min(max(middle_amount, low_amount + end_margin), high_amount - end_margin)
        midpoint_gap = 0.0
        if self.is_integer:
            middle_amount, midpoint_gap = float(round(middle_amount)), 1.0
        else:
            # Split at an occurring amount, where the error has a kink. Between two of these the bound of a mean square
            # is exact.
            inner_slice = slice(
                *np.searchsorted(self.distinct_amounts, (np.nextafter(low_amount, high_amount), high_amount))
            )
            inner_amounts = self.distinct_amounts[inner_slice]
            if inner_amounts.size:
                amount_index = min(int(np.searchsorted(inner_amounts, middle_amount)), inner_amounts.size - 1)
                middle_amount = float(inner_amounts[amount_index])
            elif not self.passes.is_rooted and not self.passes.is_signed:
                self.add(interval_minimum.amount, interval_minimum.amount, group_window)
                return
            if not low_amount < middle_amount < high_amount:
                self.add(high_amount, high_amount, group_window)
                return
        self.add(middle_amount, middle_amount, group_window)
        self.add(low_amount, middle_amount - midpoint_gap, group_window)
        self.add(middle_amount + midpoint_gap, high_amount, group_window)


# --- where no lower bound is known ----------------------------------------------------------------------------


def search_pairs(
    compute_pair_error: Callable[[int, int], float],
    max_bounds: tuple[int, int],
    max_grid_sizes: tuple[int, int],
    step_ratio: float,
    should_stop: ShouldStop = never,
) -> tuple[dict[tuple[int, int], float], bool]:
    """Return the errors of all pairs if they are few, else of a grid and of ever smaller steps from its best pair.

    Args:
        compute_pair_error: The error of a pair (L0, L-infinity).
        max_bounds: The largest_bound value of both; the smallest is 1.
        max_grid_sizes: Number of values of both in the grid.
        step_ratio: First ratio of the steps, above 1. It falls when no step helps.
        should_stop: Called before every evaluation but the first; True ends the search.

    Returns:
        The errors of the evaluated pairs, and True if the search was not stopped. Then no neighbour of the best pair
        is better.
    """
    errors_by_pair: dict[tuple[int, int], float] = {}
    is_stopped = False

    def evaluate(max_groups: int, amount_bound: int) -> float:
        """Return the error of a pair, computed once; infinity if it is new and the search was stopped."""
        nonlocal is_stopped
        bound_pair = max_groups, amount_bound
        if bound_pair not in errors_by_pair:
            is_stopped = is_stopped or (bool(errors_by_pair) and should_stop())
            if is_stopped:
                return math.inf
            errors_by_pair[bound_pair] = compute_pair_error(*bound_pair)
        return errors_by_pair[bound_pair]

    is_enumerated = math.prod(max_bounds) <= MAX_ENUMERATED_PAIRS
    grid_axes = [
        range(1, largest_bound + 1) if is_enumerated else space_evenly(largest_bound, max_grid_size)
        for largest_bound, max_grid_size in zip(max_bounds, max_grid_sizes, strict=True)
    ]
    for bound_pair in product(*grid_axes):
        evaluate(*bound_pair)
    while not is_stopped:
        best_bounds = min(errors_by_pair, key=errors_by_pair.__getitem__)
        best_error = errors_by_pair[best_bounds]
        bounds_nearby = map(_step_from, best_bounds, (step_ratio, step_ratio), max_bounds)
        if min(evaluate(*bound_pair) for bound_pair in product(*bounds_nearby)) >= best_error:
            if step_ratio == MIN_INTERVAL_RATIO:
                break
            step_ratio = math.sqrt(step_ratio) if step_ratio > 1.001 else MIN_INTERVAL_RATIO
    return errors_by_pair, not is_stopped


def _step_from(bound: int, step_ratio: float, largest_bound: int) -> list[int]:
    """Return the bound and those beside it, in this ratio but at least 1 away, within 1 and ``largest_bound``."""
    candidates = (min(round(bound / step_ratio), bound - 1), bound, max(round(bound * step_ratio), bound + 1))
    return [min(max(candidate, 1), largest_bound) for candidate in candidates]


def space_evenly(largest_integer: int, max_count: int) -> list[int]:
    """Return at most ``max_count`` integers from 1 to ``largest_integer``, evenly spaced on a log axis."""
    spaced_integers = np.unique(np.rint(np.geomspace(1.0, max(largest_integer, 1), max_count)))
    return [int(integer) for integer in spaced_integers]
