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
from dpcore.data.task_facets import PairSizes
from dpcore.per_group.moments import compute_moments
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem

RESOLUTION = 2**20
"""Steps per user."""
GRID_GROWTH = 1.3
"""Ratio of neighbouring bounds of the grid, about."""
MAX_GRID_GROUPS = 1_000
"""Largest L0 of the grid."""
MAX_AMOUNT = 10**9
"""Largest public maximum, in units."""
PRIOR_POWER = 2
"""Pairs have the weight D^-POWER."""
MECHANISM_NAME = "exponential mechanism"
QUALITIES_AND_EXCESSES = ((5.0, 0.05), (2.0, 0.15), (1.0, 0.30))
"""Public figures and their excess; see `find_expected_excess`."""
_MAX_MAGNITUDE = 2**61
AnyPairs = UserGroupPairs | PairSizes
"""The pairs of user and group, or their distribution."""


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
        parameters = self.parameters
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, MAX_AMOUNT, largest=self.largest)
            problems.between(1e-12, 1e12, unit=self.unit)
            if not parameters.statistic.is_non_negative:  # The kept amount must grow with both bounds.
                refusal_text = "a pair is chosen privately for rows, users and sums of amounts of at least 0"
                problems.add(refusal_text, remedy="For a mean or a signed sum, enter bounds that you know")
            elif parameters.statistic is not Statistic.SUM and self.unit != 1.0:
                problems.add("a unit goes with a sum; counts have the unit 1")
            if parameters.selection.is_private:
                refusal_text = "a pair is chosen privately for a public list of groups only"
                problems.add(refusal_text, remedy="Enter bounds that you know")
            elif parameters.num_listed_groups is None:
                refusal_text = "the number of groups on the public list must be entered"
                problems.add(refusal_text, remedy="Take it from the list, not from private data")

    @property
    def num_groups(self) -> int:
        """Return the number of groups on the public list."""
        assert self.parameters.num_listed_groups is not None
        return self.parameters.num_listed_groups

    @cached_property
    def candidates(self) -> tuple[IntArray, IntArray]:
        """Return the public grid of pairs: their L0, and their L-infinity in units, both int64 of shape (c,)."""
        largest_amount = 1 if self.parameters.statistic is Statistic.USERS else int(self.largest)
        group_bounds, amount_bounds = (
            np.array(_build_grid(largest_bound), dtype=np.int64)
            for largest_bound in (min(self.num_groups, MAX_GRID_GROUPS), largest_amount)
        )
        return np.repeat(group_bounds, amount_bounds.size), np.tile(amount_bounds, group_bounds.size)

    @cached_property
    def _pair_norms(self) -> IntArray:
        """Return D = l C of every pair, below 2^40."""
        group_bounds, amount_bounds = self.candidates
        return np.asarray(group_bounds * amount_bounds)

    @property
    def sensitivity(self) -> int:
        """Return by how many steps one user can change a candidate's distance at most.

        One user is `RESOLUTION` steps; the rest covers rounding.
        """
        return RESOLUTION + (3 if self.neighbours is Neighbours.REPLACE_USER else 1)

    @property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation."""
        return self.parameters.neighbours

    @cached_property
    def total_noises(self) -> FloatArray:
        """Return N of every pair, the sum of the groups' mean |noise|, in the statistic's unit, shape (c,)."""
        group_bounds, amount_bounds = self.candidates
        sensitivities = self.parameters.compute_pair_sensitivity(group_bounds, amount_bounds * self.unit)
        return np.asarray(self.num_groups * self.parameters.noise.compute_mean_magnitude(sensitivities))

    @cached_property
    def log_prior(self) -> FloatArray:
        """Return the logarithm of every pair's public weight, at most 0, shape (c,)."""
        return np.asarray(-PRIOR_POWER * np.log(self._pair_norms.astype(np.float64)))

    def sum_kept_amounts(self, any_pairs: AnyPairs) -> npt.NDArray[np.object_]:
        """Return K, the amount that every pair of bounds keeps, in steps; integers of any size, from private data."""
        k, kept_sums = self.sum_kept_by_groups(any_pairs)
        # Python's integers have no limit, so sums of any size are exact.
        return self.combine_shares(k.astype(object), kept_sums.astype(object))

    def sum_kept_by_groups(self, any_pairs: AnyPairs) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return the total of min(a, C) over users in k groups, for each L-infinity C of the grid, in units.

        Returns:
            Distinct numbers of groups k per user, ascending, shape (n,); and sums of min(a, C) over their users, shape
            (n, C).
        """
        num_groups_of_user, pair_amounts, pair_weights = self._build_pair_table(any_pairs)
        order_by_groups = np.argsort(num_groups_of_user, kind="stable")
        k, first_indices = np.unique(num_groups_of_user[order_by_groups], return_index=True)
        pair_amounts, pair_weights = pair_amounts[order_by_groups], pair_weights[order_by_groups]
        # No sum of min(a, C) exceeds the sum of all amounts: if that fits 64 bits, all do.
        if float(np.dot(pair_amounts.astype(np.float64), pair_weights)) >= _MAX_MAGNITUDE:
            pair_amounts, pair_weights = pair_amounts.astype(object), pair_weights.astype(object)
        amount_bounds = np.unique(self.candidates[1])
        kept_sums = [
            np.add.reduceat(np.minimum(pair_amounts, max_amount) * pair_weights, first_indices)
            for max_amount in amount_bounds
        ]
        return k, np.stack(kept_sums, axis=-1)

    def combine_shares(self, user_groups: npt.NDArray[Any], kept_sums: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return K, the amount that every pair of bounds keeps, in steps, shape (..., c), from `sum_kept_by_groups`.

        Args:
            user_groups: Distinct numbers of groups k per user, ascending, shape (n,).
            kept_sums: Sums of min(a, C) over their users, shape (..., n, C).
        """
        group_bounds, amount_bounds = self.candidates
        amount_indices = np.searchsorted(np.unique(amount_bounds), amount_bounds)
        kept_amounts = [
            (kept_sums[..., i] * RESOLUTION * np.minimum(user_groups, max_groups) // user_groups).sum(axis=-1)
            for i, max_groups in zip(amount_indices.tolist(), group_bounds.tolist(), strict=True)
        ]
        return np.stack(kept_amounts, axis=-1)

    def _build_pair_table(self, any_pairs: AnyPairs) -> tuple[IntArray, IntArray, IntArray]:
        """Return three columns: groups of the user, whole amount up to the public maximum, number of such pairs.

        Amounts of a sum are in units; negative ones count as 0.
        """
        if isinstance(any_pairs, PairSizes):
            num_groups_of_user, pair_counts = any_pairs.groups, any_pairs.pairs
        else:
            num_groups_of_user = np.repeat(any_pairs.groups_per_user, any_pairs.groups_per_user)
            pair_counts = np.ones(any_pairs.num_pairs, dtype=np.int64)
        whole_amounts = np.ones_like(any_pairs.rows)
        if self.parameters.statistic is Statistic.ROWS:
            whole_amounts = np.minimum(any_pairs.rows, int(self.largest))
        elif self.parameters.statistic is Statistic.SUM and isinstance(any_pairs, UserGroupPairs):
            # A negative amount counts as 0: one user must not decide whether a choice is possible.
            pair_sums = np.zeros(any_pairs.num_pairs) if any_pairs.sums is None else any_pairs.sums
            whole_amounts = np.rint(np.clip(pair_sums / self.unit, 0.0, float(self.largest))).astype(np.int64)
        return num_groups_of_user, whole_amounts, pair_counts

    def compute_distances(self, any_pairs: AnyPairs | None) -> list[int]:
        """Return the distance s of every pair in steps, the smaller the better.

        From private data; None means data without users.
        """
        kept_amounts = np.zeros(self._pair_norms.size, dtype=object)
        if any_pairs is not None:
            kept_amounts = self.sum_kept_amounts(any_pairs)
        return [int(distance) for distance in self.score_distances(kept_amounts)]

    def score_distances(self, kept_amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the distance s of every pair in steps from kept amounts K; both have shape (..., c).

        The smaller s, the better the pair.
        """
        pair_norms = self._pair_norms
        exact_unit, norm_price = Fraction(self.unit), Fraction(2.0 / self.epsilon)
        # These numbers are public, so their rounding does not affect the sensitivity.
        public_costs = [
            round((Fraction(float(n)) / exact_unit + norm_price * int(w)) * RESOLUTION)
            for n, w in zip(self.total_noises, pair_norms, strict=True)
        ]
        pair_costs: npt.NDArray[Any] = np.array(public_costs, dtype=object) - kept_amounts
        # The same integers either way; machine words if all differences fit.
        if np.abs(pair_costs).max() < _MAX_MAGNITUDE:
            pair_costs = pair_costs.astype(np.int64)
        group_bounds, amount_bounds = self.candidates
        distances = np.zeros_like(pair_costs)
        for i in range(pair_norms.size):
            min_norms = np.minimum(group_bounds, group_bounds[i]) * np.minimum(
                amount_bounds, amount_bounds[i]
            )
            max_changes = np.maximum(pair_norms, pair_norms[i]) - min_norms
            if self.neighbours is Neighbours.REPLACE_USER:
                max_changes = pair_norms + pair_norms[i] - 2 * min_norms
            other_pair_mask = max_changes > 0  # 0 for the pair itself alone.
            if other_pair_mask.any():
                # If a difference changes by at most d 2^20 + r steps, r an integer, its floor over d changes by at most
                # 2^20 + r.
                excess_costs = pair_costs[..., i, None] - pair_costs[..., other_pair_mask]
                distances[..., i] = (excess_costs // max_changes[other_pair_mask]).max(axis=-1)
        return distances

    def compute_scores(self, any_pairs: AnyPairs | None) -> list[int]:
        """Compute each candidate pair's score for the exponential mechanism, a whole number of steps; higher is better.

        It is minus the candidate's distance, clipped at 2^61, plus a weight that does not depend on data.
        """
        # This many steps correspond to a factor of e. Clipping a score does not increase its sensitivity.
        steps_per_log_unit = 2.0 * self.sensitivity / self.epsilon
        return [
            round(steps_per_log_unit * float(w)) - max(min(int(s), _MAX_MAGNITUDE), -_MAX_MAGNITUDE)
            for w, s in zip(self.log_prior, self.compute_distances(any_pairs), strict=True)
        ]


def _build_grid(largest_bound: int) -> list[int]:
    """Return integers from 1 to ``largest_bound``, each the next integer or about `GRID_GROWTH` times the last."""
    grid_bounds = [1]
    while grid_bounds[-1] < largest_bound:
        grid_bounds.append(min(max(grid_bounds[-1] + 1, round(grid_bounds[-1] * GRID_GROWTH)), largest_bound))
    return grid_bounds


def compute_probabilities(problem: PrivatePairProblem, any_pairs: AnyPairs | None) -> FloatArray:
    """Return the probability of every pair, in closed form, shape (c,); computed from private data."""
    scores = np.array([float(s) for s in problem.compute_scores(any_pairs)])
    logits = problem.epsilon / (2.0 * problem.sensitivity) * (scores - scores.max())
    return np.asarray(np.exp(logits) / np.exp(logits).sum())


def compute_errors(problem: PrivatePairProblem, any_pairs: AnyPairs) -> FloatArray:
    """Return F, the groups' |bias| plus mean |noise| added up, of every pair of bounds; from private data.

    It is in the statistic's unit, with amounts rounded to the problem's unit.
    """
    kept_amounts = np.array([float(k) / RESOLUTION for k in problem.sum_kept_amounts(any_pairs)])
    _, whole_amounts, pair_counts = problem._build_pair_table(any_pairs)
    total_amount = float(np.dot(whole_amounts.astype(np.float64), pair_counts))
    return np.asarray((total_amount - kept_amounts) * problem.unit + problem.total_noises)


@dataclass(frozen=True)
class DrawnPair:
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
    problem: PrivatePairProblem, any_pairs: AnyPairs | None, charge: Charge | None = None, column: str = ""
) -> DrawnPair:
    """Choose the pair privately: a DP release of both numbers together, drawn anew at every call.

    Args:
        problem: The question.
        any_pairs: The pairs of user and group, or their distribution (not for a sum); private. None for data without
            users.
        charge: Called with the guarantee before anything is drawn.
        column: Name of the group column.
    """

    def build_facts(epsilon: float) -> ReleaseFacts:
        """Return the guarantee and mechanism of the choice for an epsilon."""
        return ReleaseFacts(epsilon, 0.0, problem.parameters.neighbours, MECHANISM_NAME)

    charge_release = None if charge is None else lambda epsilon, _: charge(build_facts(epsilon))
    selection_release = mechanisms.exponential_mechanism(
        problem.compute_scores(any_pairs), problem.sensitivity, problem.epsilon, charge_release
    )
    max_groups, whole_amount = (bound_values[selection_release.index] for bound_values in problem.candidates)
    release_facts = build_facts(selection_release.epsilon)
    return DrawnPair(int(max_groups), float(whole_amount * problem.unit), release_facts, problem, column)


def find_expected_excess(problem: PrivatePairProblem) -> float | None:
    """Return by which share the error of a private choice usually exceeds that of the best pair, or None.

    Measured on 13 tables of at least 1,000 users, for epsilon of the release from 0.3 to 10 and of the choice from 0.05
    to 2: mean over draws, geometric mean over tables. If a few users hold nearly everything, the choice can be as bad
    as releasing nothing; a public figure cannot show that.

    Returns:
        The share; None if a private choice is little better than a guess.
    """
    # The epsilon of the choice times groups, over that of the release; larger means a better choice.
    relative_budget = problem.epsilon * problem.num_groups / problem.parameters.epsilon
    return next(
        (excess for min_quality, excess in QUALITIES_AND_EXCESSES if relative_budget >= min_quality), None
    )


MAX_TUNER_CANDIDATES = 50
MAX_PAIRS = 1_000_000
"""Pairs up to which the pick is computed, in about 2 s."""


def spread_numbers(largest_number: int, max_count: int) -> list[int]:
    """Return at most ``max_count`` numbers of three leading digits, evenly spread up to and including the largest."""
    numbers, last_digit_unit = [1], 1
    while numbers[-1] + last_digit_unit <= largest_number:
        numbers.append(numbers[-1] + last_digit_unit)
        if numbers[-1] == 1000 * last_digit_unit:
            last_digit_unit *= 10
    if max_count == 1:
        return [largest_number]
    if len(numbers) > max_count - 1:
        numbers = [numbers[int(i * len(numbers) / (max_count - 1))] for i in range(max_count - 1)]
    return numbers if numbers[-1] == largest_number else [*numbers, largest_number]


def list_tuner_candidates(problem: PerGroupProblem) -> list[tuple[int, int]]:
    """Return the pairs (L0, L-infinity) that PipelineDP's tuner compares, at most about `MAX_TUNER_CANDIDATES`."""
    num_per_bound = math.isqrt(MAX_TUNER_CANDIDATES)
    most_groups = int(problem.pairs.groups_per_user.max())
    largest_amount = max(1, math.ceil(float(problem.amounts.max())))
    group_bounds = spread_numbers(most_groups, num_per_bound)
    amount_bounds = spread_numbers(largest_amount, num_per_bound)
    if len(amount_bounds) < num_per_bound:
        group_bounds = spread_numbers(most_groups, MAX_TUNER_CANDIDATES // len(amount_bounds))
    elif len(group_bounds) < num_per_bound:
        amount_bounds = spread_numbers(largest_amount, MAX_TUNER_CANDIDATES // len(group_bounds))
    return [(max_groups, max_amount) for max_groups in group_bounds for max_amount in amount_bounds]


def pick_as_tuner(
    problem: PerGroupProblem, compute_keep_probabilities: Callable[[int], FloatArray] | None = None
) -> tuple[int, int]:
    """Find the pair (L0, L-infinity) that PipelineDP's tuner would pick.

    The tuner minimises the mean over groups of the root mean squared error, which may not be the error that the
    problem minimises.

    Args:
        problem: The problem.
        compute_keep_probabilities: For privately selected groups, the probability of each group at an L0. The tuner
            then weighs the errors that the groups would have if they were always released: dropped groups cost nothing.

    Raises:
        InvalidInput: The statistic is a mean or a sum of any sign, or there are more pairs than `MAX_PAIRS`.
    """
    if not problem.parameters.statistic.is_non_negative:
        raise refuse("the rule is for amounts of at least 0")
    if problem.pairs.num_pairs > MAX_PAIRS:
        raise refuse(f"the rule takes at most {MAX_PAIRS:,} pairs")

    def compute_objective(bound_pair: tuple[int, int]) -> float:
        """Return the mean of the groups' root mean squared errors, as the tuner weighs them."""
        group_weights = problem.pairs.multiplicities
        if compute_keep_probabilities is not None:
            group_weights = compute_keep_probabilities(bound_pair[0])
        if not group_weights.any():
            return math.inf
        group_errors = np.sqrt(compute_moments(problem, *bound_pair).mean_squares)
        return float(group_weights @ group_errors) / float(group_weights.sum())

    return min(list_tuner_candidates(problem), key=compute_objective)
