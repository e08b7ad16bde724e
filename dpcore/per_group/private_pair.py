"""A pair of bounds for a release per group: selected privately, and by the rule of PipelineDP's tuner.

The private selection is from a public grid of pairs (L0, L-infinity), with one epsilon.

The objective. With D = l C for the pair (l, C), the sum over the groups of |bias| plus mean |noise| is

    F(i) = (A - K_i) + N_i,    K_i = sum_u min(1, l / k_u) sum_g min(a_ug, C),

where user u is in k_u groups and adds a_ug >= 0 to group g. A, the sum of all amounts, is the same for all pairs and
drops out. N_i is public: it depends on the number of groups on the public list, the bounds and the noise. K_i is a sum
over users, each of whom adds between 0 and D_i. (The root mean square over groups has no bounded sensitivity: one user
can change the difference between two pairs by any amount.)

The score. For two pairs i and j, with m = (min l, min C) of both, one user adds to K_i - K_j between -(D_j - D_m)
and D_i - D_m: as K is monotone, K_i - K_j <= K_i - K_m; and K_m >= (D_m / D_i) K_i for each user, since
min(1, l_m / k) >= (l_m / l_i) min(1, l_i / k) and min(a, C_m) >= (C_m / C_i) min(a, C_i). With q_i = N_i - K_i the
difference q_i - q_j thus changes by at most

    d_ij = max(D_i, D_j) - D_m  if a user is added or removed,   D_i + D_j - 2 D_m  if a user is replaced by another,

both attained by users in many groups with large or with small amounts. So

    s_i = max_j (q_i - q_j + t (D_i - D_j)) / d_ij,    t = 2 / epsilon public,

changes by at most 1, as a maximum of functions with that property. Pair i is drawn with a probability proportional to
D_i^-2 exp(-epsilon s_i / 2), which is epsilon-DP for both numbers together (McSherry and Talwar 2007, theorem 6).
Pairs that are much too large are G / epsilon users from the best, for any data. Without the weights they would still
be drawn, as they are many, and their error is proportional to D.

Everything is computed in integer steps. Amounts are integers of a public unit; the total kept of users with k groups
is rounded down to steps of 2^-20 once. Adding one user changes that total by less than a step more than its exact
change, and so K_i - K_j by at most one step more than d_ij steps; replacing one by at most three, as two numbers of
groups may be affected. This gives the sensitivity in steps, `PrivatePairProblem.sensitivity`.

Source: Raskhodnikova and Smith 2016 for scores relative to each candidate's own sensitivity; d_ij, its proof and the
weights are ours. The objective is the sum of the groups' errors in the sense of Amin et al. 2019, equation 5.

For comparison, the rule of PipelineDP's tuner picks a pair, too. PipelineDP (analysis/parameter_tuning.py, read
2026-11-22) takes a limited number of candidates. Each bound is evenly spread over the list of numbers of three
leading digits up to its largest value. It minimises the mean of the groups' root mean squared errors. Its wheel 0.2.1
lacks this part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import PairSizes
from dpcore.per_group.moments import compute_moments
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic

RESOLUTION = 2**20
"""Steps per user."""
GROWTH = 1.3
"""Ratio of neighbouring bounds of the grid, about."""
MOST_GROUPS = 1_000
"""Largest L0 of the grid."""
MAX_AMOUNT = 10**9
"""Largest public maximum, in units."""
POWER = 2
"""Pairs have the weight D^-POWER."""
MECHANISM = "exponential mechanism"
EXPECTED_EXCESS = ((5.0, 0.05), (2.0, 0.15), (1.0, 0.30))
"""Public figures and their excess; see `expected_excess`."""
_FAR = 2**61


@dataclass(frozen=True)
class PrivatePairProblem:
    """The problem of choosing a pair of bounds for a release per group with epsilon-DP.

    Attributes:
        parameters: The release: rows, distinct users or a sum of amounts of at least 0, on a public list with a given
            number of groups. Its objective is not used; the module states the objective of the choice.
        epsilon: Budget of the choice alone, in `dpcore.common.checks.EPSILON_RANGE`.
        largest: Public maximum of L-infinity: in rows, or in units for a sum. An integer from 1 to `MAX_AMOUNT`; for
            distinct users L-infinity is 1.
        unit: Public step to which amounts of a sum are rounded, in the column's unit; 1 for counts.

    Raises:
        InvalidInput: All problems at once.
    """

    parameters: PerGroupParameters
    epsilon: float
    largest: int
    unit: float = 1.0

    def __post_init__(self) -> None:
        p = self.parameters
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, MAX_AMOUNT, largest=self.largest)
            problems.between(1e-12, 1e12, unit=self.unit)
            if not p.statistic.is_non_negative:  # The kept amount must grow with both bounds.
                problems.add(
                    "a pair is chosen privately for rows, users and sums of amounts of at least 0",
                    remedy="For a mean or a signed sum, enter bounds that you know",
                )
            elif p.statistic is not Statistic.SUM and self.unit != 1.0:
                problems.add("a unit goes with a sum; counts have the unit 1")
            if p.selection.is_private:
                problems.add(
                    "a pair is chosen privately for a public list of groups only",
                    remedy="Enter bounds that you know",
                )
            elif p.num_groups is None:
                problems.add(
                    "the number of groups on the public list must be entered",
                    remedy="Take it from the list, not from private data",
                )

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list."""
        assert self.parameters.num_groups is not None
        return self.parameters.num_groups

    @property
    def public_figure(self) -> float:
        """Return epsilon of the choice times groups, over epsilon of the release; larger means a better choice."""
        return self.epsilon * self.num_groups / self.parameters.epsilon

    @cached_property
    def candidates(self) -> tuple[IntArray, IntArray]:
        """Return the public grid: L0 and L-infinity in units of every pair, both int64 of shape (c,)."""
        max_amount = 1 if self.parameters.statistic is Statistic.USERS else int(self.largest)
        groups, amounts = (
            np.array(_geometric_grid(top), dtype=np.int64)
            for top in (min(self.num_groups, MOST_GROUPS), max_amount)
        )
        return np.repeat(groups, amounts.size), np.tile(amounts, groups.size)

    @cached_property
    def _weights(self) -> IntArray:
        """Return D = l C of every pair, below 2^40."""
        groups, amounts = self.candidates
        return np.asarray(groups * amounts)

    @property
    def sensitivity(self) -> int:
        """Return the largest change of a score by one user, in steps; see the module."""
        return RESOLUTION + (3 if self._replaces_user else 1)

    @property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation."""
        return self.parameters.neighbours

    @property
    def _replaces_user(self) -> bool:
        return self.neighbours is Neighbours.REPLACE_USER

    @cached_property
    def noise(self) -> FloatArray:
        """Return N, the sum of the groups' mean |noise|, in the statistic's unit, shape (c,)."""
        groups, amounts = self.candidates
        sensitivity = self.parameters.pair_sensitivity(groups, amounts * self.unit)
        return np.asarray(self.num_groups * self.parameters.noise.mean_magnitude(sensitivity))

    @cached_property
    def log_prior(self) -> FloatArray:
        """Return the log weight of every pair, the largest 0."""
        return np.asarray(-POWER * np.log(self._weights.astype(np.float64)))

    def kept_amounts(self, pairs: UserGroupPairs | PairSizes) -> npt.NDArray[np.object_]:
        """Return K of every pair of bounds in steps, integers of any size; computed from private data."""
        k, shares = self.kept_by_groups(pairs)
        # Python's integers have no limit, so sums of any size are exact.
        return self.combine_shares(k.astype(object), shares.astype(object))

    def kept_by_groups(self, pairs: UserGroupPairs | PairSizes) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return the total of min(a, C) over users in k groups, for each L-infinity C of the grid, in units.

        Returns:
            Distinct numbers of groups k per user, ascending, shape (n,); and sums of min(a, C) over their users, shape
            (n, C).
        """
        user_groups, pair_amounts, times = self._pair_table(pairs)
        order = np.argsort(user_groups, kind="stable")
        k, first = np.unique(user_groups[order], return_index=True)
        pair_amounts, times = pair_amounts[order], times[order]
        # No sum of min(a, C) exceeds the sum of all amounts: if that fits 64 bits, all do.
        if float(np.dot(pair_amounts.astype(np.float64), times)) >= _FAR:
            pair_amounts, times = pair_amounts.astype(object), times.astype(object)
        amounts = np.unique(self.candidates[1])
        sums = [
            np.add.reduceat(np.minimum(pair_amounts, max_amount) * times, first) for max_amount in amounts
        ]
        return k, np.stack(sums, axis=-1)

    def combine_shares(self, k: npt.NDArray[Any], shares: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return K of every pair of bounds, shape (..., c), from `kept_by_groups`, shape (..., n, C)."""
        groups, amounts = self.candidates
        columns = np.searchsorted(np.unique(amounts), amounts)
        totals = [
            (shares[..., column] * RESOLUTION * np.minimum(k, max_groups) // k).sum(axis=-1)
            for column, max_groups in zip(columns.tolist(), groups.tolist(), strict=True)
        ]
        return np.stack(totals, axis=-1)

    def _pair_table(self, pairs: UserGroupPairs | PairSizes) -> tuple[IntArray, IntArray, IntArray]:
        """Return columns for pairs of user and group: groups of the user, integer amount, number of such pairs."""
        if isinstance(pairs, PairSizes):
            user_groups, times = pairs.groups, pairs.pairs
        else:
            user_groups = np.repeat(pairs.groups_per_user, pairs.groups_per_user)
            times = np.ones(pairs.num_pairs, dtype=np.int64)
        amounts = np.ones_like(pairs.rows)
        if self.parameters.statistic is Statistic.ROWS:
            amounts = np.minimum(pairs.rows, int(self.largest))
        elif self.parameters.statistic is Statistic.SUM and isinstance(pairs, UserGroupPairs):
            # A negative amount counts as 0: one user must not decide whether a choice is possible.
            sums = np.zeros(pairs.num_pairs) if pairs.sums is None else pairs.sums
            amounts = np.rint(np.clip(sums / self.unit, 0.0, float(self.largest))).astype(np.int64)
        return user_groups, amounts, times

    def distances(self, pairs: UserGroupPairs | PairSizes | None) -> list[int]:
        """Return s of every pair in steps; None means data without users. Computed from private data."""
        kept_amounts = (
            np.zeros(self._weights.size, dtype=object) if pairs is None else self.kept_amounts(pairs)
        )
        return [int(distance) for distance in self.score_distances(kept_amounts)]

    def score_distances(self, kept_amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the score s of every pair in steps, from K of every pair; both of shape (..., c)."""
        weights = self._weights
        unit, price = Fraction(self.unit), Fraction(2.0 / self.epsilon)
        # These numbers are public, so their rounding does not affect the sensitivity.
        public_costs = [
            round((Fraction(float(n)) / unit + price * int(w)) * RESOLUTION)
            for n, w in zip(self.noise, weights, strict=True)
        ]
        level: npt.NDArray[Any] = np.array(public_costs, dtype=object) - kept_amounts
        # The same integers either way; machine words if all differences fit.
        if np.abs(level).max() < _FAR:
            level = level.astype(np.int64)
        groups, amounts = self.candidates
        scores = np.zeros_like(level)
        for i in range(weights.size):
            overlap = np.minimum(groups, groups[i]) * np.minimum(amounts, amounts[i])
            difference_bounds = np.maximum(weights, weights[i]) - overlap
            if self._replaces_user:
                difference_bounds = weights + weights[i] - 2 * overlap
            is_other = difference_bounds > 0  # 0 for the pair itself alone.
            if is_other.any():
                # If a difference changes by at most d 2^20 + r steps, r an integer, its floor over d changes by at most
                # 2^20 + r.
                scores[..., i] = (
                    (level[..., i, None] - level[..., is_other]) // difference_bounds[is_other]
                ).max(axis=-1)
        return scores

    def scores(self, pairs: UserGroupPairs | PairSizes | None) -> list[int]:
        """Return the scores of the exponential mechanism: -s plus the public weights, in steps."""
        # This many steps correspond to a factor of e. Clipping a score does not increase its sensitivity.
        per_unit = 2.0 * self.sensitivity / self.epsilon
        return [
            round(per_unit * float(w)) - max(min(int(s), _FAR), -_FAR)
            for w, s in zip(self.log_prior, self.distances(pairs), strict=True)
        ]


def _geometric_grid(largest: int) -> list[int]:
    """Return integers from 1 to ``largest``, each the next integer or about `GROWTH` times the previous one."""
    grid = [1]
    while grid[-1] < largest:
        grid.append(min(max(grid[-1] + 1, round(grid[-1] * GROWTH)), largest))
    return grid


def compute_probabilities(
    problem: PrivatePairProblem, pairs: UserGroupPairs | PairSizes | None
) -> FloatArray:
    """Return the probability of every pair, in closed form, shape (c,); computed from private data."""
    scores = np.array([float(s) for s in problem.scores(pairs)])
    logits = problem.epsilon / (2.0 * problem.sensitivity) * (scores - scores.max())
    return np.asarray(np.exp(logits) / np.exp(logits).sum())


def compute_errors(problem: PrivatePairProblem, pairs: UserGroupPairs | PairSizes) -> FloatArray:
    """Return F of every pair in the statistic's unit, with amounts rounded to units; computed from private data."""
    kept_amounts = np.array([float(k) / RESOLUTION for k in problem.kept_amounts(pairs)])
    _, amounts, times = problem._pair_table(pairs)
    return np.asarray(
        (float(np.dot(amounts.astype(np.float64), times)) - kept_amounts) * problem.unit + problem.noise
    )


@dataclass(frozen=True)
class PrivatePair:
    """A pair that was chosen with epsilon-DP and may be published.

    Attributes:
        max_groups: L0.
        max_amount: L-infinity, in the statistic's unit.
        facts: Guarantee and mechanism of the choice.
        problem: The problem, all of it public.
        column: Name of the group column, public.
    """

    max_groups: int
    max_amount: float
    facts: ReleaseFacts
    problem: PrivatePairProblem
    column: str = ""


def choose_pair(
    problem: PrivatePairProblem,
    pairs: UserGroupPairs | PairSizes | None,
    charge: Charge | None = None,
    column: str = "",
) -> PrivatePair:
    """Choose the pair privately: a DP release of both numbers together, drawn anew at every call.

    Args:
        problem: The question.
        pairs: The pairs of user and group, or their distribution (not for a sum); private. None for data without
            users.
        charge: Called with the guarantee before anything is drawn.
        column: Name of the group column.
    """

    def facts(epsilon: float) -> ReleaseFacts:
        return ReleaseFacts(epsilon, 0.0, problem.parameters.neighbours, MECHANISM)

    selection = mechanisms.exponential_mechanism(
        problem.scores(pairs),
        problem.sensitivity,
        problem.epsilon,
        None if charge is None else lambda epsilon, _: charge(facts(epsilon)),
    )
    groups, amounts = problem.candidates
    return PrivatePair(
        int(groups[selection.index]),
        float(amounts[selection.index] * problem.unit),
        facts(selection.epsilon),
        problem,
        column,
    )


def expected_excess(problem: PrivatePairProblem) -> float | None:
    """Return the usual excess error of a private choice over the best pair, as a share, from the public figure alone.

    Measured on 13 tables of at least 1,000 users, for epsilon of the release from 0.3 to 10 and of the choice from 0.05
    to 2: mean over draws, geometric mean over tables. If a few users hold nearly everything, the choice can be as bad
    as releasing nothing; a public figure cannot show that.

    Returns:
        The share; None if a private choice is little better than a guess.
    """
    return next((share for min_figure, share in EXPECTED_EXCESS if problem.public_figure >= min_figure), None)


CANDIDATES = 50
MAX_PAIRS = 1_000_000
"""Pairs up to which the pick is computed, in about 2 s."""


def spread_numbers(largest: int, max_count: int) -> list[int]:
    """Return at most ``max_count`` numbers of three leading digits, evenly spread up to and including the largest."""
    numbers, step = [1], 1
    while numbers[-1] + step <= largest:
        numbers.append(numbers[-1] + step)
        if numbers[-1] == 1000 * step:
            step *= 10
    if max_count == 1:
        return [largest]
    if len(numbers) > max_count - 1:
        numbers = [numbers[int(i * len(numbers) / (max_count - 1))] for i in range(max_count - 1)]
    return numbers if numbers[-1] == largest else [*numbers, largest]


def list_tuner_candidates(problem: PerGroupProblem) -> list[tuple[int, int]]:
    """Return the pairs of bounds that the tuner compares."""
    per_bound = math.isqrt(CANDIDATES)
    most_groups = int(problem.pairs.groups_per_user.max())
    largest_amount = max(1, math.ceil(float(problem.amounts.max())))
    group_bounds, amounts = spread_numbers(most_groups, per_bound), spread_numbers(largest_amount, per_bound)
    if len(amounts) < per_bound:
        group_bounds = spread_numbers(most_groups, CANDIDATES // len(amounts))
    elif len(group_bounds) < per_bound:
        amounts = spread_numbers(largest_amount, CANDIDATES // len(group_bounds))
    return [(l0, linf) for l0 in group_bounds for linf in amounts]


def pick_as_tuner(
    problem: PerGroupProblem, keep_probability: Callable[[int], FloatArray] | None = None
) -> tuple[int, int]:
    """Return the tuner's pair (L0, L-infinity); the objective of the problem is not used.

    Args:
        problem: The problem.
        keep_probability: For privately selected groups, the probability of each group at an L0. The tuner then weighs
            the errors that the groups would have if they were always released: dropped groups cost nothing.

    Raises:
        InvalidInput: The statistic is a mean or a sum of any sign, or there are more pairs than `MAX_PAIRS`.
    """
    if not problem.parameters.statistic.is_non_negative:
        raise refuse("the rule is for amounts of at least 0")
    if problem.pairs.num_pairs > MAX_PAIRS:
        raise refuse(f"the rule takes at most {MAX_PAIRS:,} pairs")

    def objective(pair: tuple[int, int]) -> float:
        weights = problem.pairs.times if keep_probability is None else keep_probability(pair[0])
        total = float(weights.sum())
        return (
            float(weights @ np.sqrt(compute_moments(problem, *pair).mean_squares)) / total
            if total > 0.0
            else math.inf
        )

    return min(list_tuner_candidates(problem), key=objective)
