"""Bounds on the norm of each user's whole vector of amounts, without sampling of groups.

The norm is L1 with Laplace and L2 with Gaussian noise, and T bounds it. Two rules, both a function of the user's own
vector c_u >= 0 alone:

- cap: y_ug = min(c_ug, lambda_u) with the largest lambda_u for which the norm of y_u is at most T;
- radial: y_u = c_u min(1, T / |c_u|).

**For every pair of bounds there is a cap with no larger error in any group**, for rows, distinct users and sums of
amounts of at least 0 on a public list of groups. So over all groups the best cap errs no more than the best pair; in a
single group it may err more. Take L0 = l, Linf = C, and T = l C (L1) or sqrt(l) C (L2), for which the noise is the
same, under either relation. Write k for the user's number of groups and p = min(1, l/k). We show y_ug >=
p min(c_ug, C), so that no group has more bias; and there is no sampling variance.

- If the norm of min(c_u, C) is at most T, then lambda >= C and y_ug >= min(c_ug, C).
- Else the norm of min(c_u, C) exceeds T, hence k > l, and lambda < max c_u, so that the norm of y_u is T. That norm is
  at most lambda k (L1) or lambda sqrt(k) (L2); so lambda >= (l/k) C = p C, or lambda >= sqrt(l/k) C >= p C. Then
  y_ug = min(c_ug, lambda) >= min(c_ug, p C) >= p min(c_ug, C).

The noise of a pair on a count may be whole, which has a variance that is up to 1/6 smaller. The proof needs amounts of
at least 0 and groups that are always released: with negative amounts clipping within a group can cancel bias, and a
private selection of groups also needs a bound on groups per user. The radial rule has no such guarantee group by group,
but its error is convex in T.
"""

from __future__ import annotations

import enum
import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.problem import PerGroupProblem

SEARCH_TOLERANCE = 1e-3
"""Relative gap of the search for the best cap."""
MAX_CACHED_ENTRIES = 1 << 23
"""Most entries of cached biases, 64 MB."""


class VectorRule(enum.Enum):
    """A rule that bounds the norm of a user's vector by T."""

    CAP = "one level for all of a user's groups"
    RADIAL = "all of a user's groups scaled alike"


@dataclass(frozen=True)
class VectorChoice:
    """The best bound on the norm of a user's vector.

    Attributes:
        vector_rule: The rule that bounds the norm.
        max_norm: T, in the statistic's unit; 0 if it is best to release nothing.
        error: The problem's objective there.
        certificate: The error and a lower bound for every T >= 0 under the same rule.
        num_evaluations: Number of evaluations of the error.
        stop_reason: Sentence on how the search ended.
    """

    vector_rule: VectorRule
    max_norm: float
    error: float
    certificate: Certificate
    num_evaluations: int
    stop_reason: str


def keep_amounts(problem: PerGroupProblem, vector_rule: VectorRule, max_norm: float) -> FloatArray:
    """Return the kept part of every pair's amount, shape (num_pairs,), in the order of the problem's pairs.

    Args:
        problem: The question.
        vector_rule: The rule that bounds the norm.
        max_norm: T >= 0, in the statistic's unit.

    Raises:
        InvalidInput: The statistic allows negative amounts.
    """
    return (_Cap if vector_rule is VectorRule.CAP else _Radial)(problem).keep(max_norm)


def compute_norms(problem: PerGroupProblem) -> FloatArray:
    """Return the norm of each user's vector, shape (num_users,)."""
    return _Vectors(problem).norms


def sum_cut_amounts(problem: PerGroupProblem, vector_rule: VectorRule, max_norm: float) -> FloatArray:
    """Sum for each group the part of the amounts that a rule with norm T cuts off, shape (num_entries,)."""
    return problem.sum_by_group(problem.amounts - keep_amounts(problem, vector_rule, max_norm))


def compute_mean_squares(problem: PerGroupProblem, vector_rule: VectorRule, max_norm: float) -> FloatArray:
    """Compute every group's mean squared error under a rule with norm T, shape (num_entries,).

    It is the squared bias plus the variance of the noise.
    """
    noise_variance = float(problem.parameters.compute_norm_noise_std(max_norm)) ** 2
    return np.asarray(sum_cut_amounts(problem, vector_rule, max_norm) ** 2 + noise_variance)


def compute_vector_error(problem: PerGroupProblem, vector_rule: VectorRule, max_norm: float) -> float:
    """Compute the error that the problem minimises, under a rule with norm T."""
    return problem.combine_errors(compute_mean_squares(problem, vector_rule, max_norm))


class _Vectors:
    """The users' vectors and their norms; a subclass has the rule."""

    def __init__(self, problem: PerGroupProblem) -> None:
        if not problem.parameters.statistic.is_non_negative:
            raise refuse("a bound on the whole vector is for amounts of at least 0")
        self.problem = problem
        self.is_squared = problem.parameters.vector_noise.kind is NoiseKind.GAUSSIAN
        self.groups_per_user = problem.pairs.groups_per_user
        self.user_starts = problem.pairs.user_starts
        # The noise's standard deviation per unit of T.
        self.noise_per_norm = float(problem.parameters.compute_norm_noise_std(1.0))

    def raise_to_power(self, entries_or_norms: FloatArray) -> FloatArray:
        """Return the terms that a norm adds up: squares for L2, the values themselves for L1."""
        return entries_or_norms**2 if self.is_squared else entries_or_norms

    def take_root(self, power_sums: FloatArray) -> FloatArray:
        """Return the norms from sums of powers: roots for L2, the sums themselves for L1."""
        return np.sqrt(power_sums) if self.is_squared else power_sums

    @cached_property
    def norms(self) -> FloatArray:
        """Return the norm of each user's vector."""
        return self.take_root(np.add.reduceat(self.raise_to_power(self.problem.amounts), self.user_starts))


class _Radial(_Vectors):
    """The radial rule: |bias| of a group is sum of c_ug (1 - T / |c_u|) over users of norm above T, convex in T."""

    def keep(self, max_norm: float) -> FloatArray:
        """Return the kept part of every pair's amount, in the order of the problem's pairs."""
        is_above_norm = self.norms > max_norm
        kept_shares = np.divide(max_norm, self.norms, out=np.ones(self.norms.size), where=is_above_norm)
        return np.asarray(self.problem.amounts * np.repeat(kept_shares, self.groups_per_user))

    def compute_bias_line(self, max_norm: float, is_left: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return A and B of each group, shape (num_entries,): |bias| is A - B T just to the right, or left, of T."""
        is_above_norm = self.norms >= max_norm if is_left else self.norms > max_norm
        inverse_norms = np.divide(1.0, self.norms, out=np.zeros(self.norms.size), where=is_above_norm)
        a, b = (
            self.problem.sum_by_group(self.problem.amounts * np.repeat(user_factors, self.groups_per_user))
            for user_factors in (is_above_norm, inverse_norms)
        )
        return a, b

    def evaluate_objective(self, a: FloatArray, b: FloatArray, t: float) -> tuple[float, float]:
        """Return value and slope at T of the mean square, or of the weighted mean of roots, if |bias| is a - b T."""
        w, unit_noise = self.problem.weights, self.noise_per_norm
        biases = np.maximum(a - b * t, 0.0)
        noise_slope = unit_noise * unit_noise * t
        if not self.problem.parameters.objective.is_rooted:
            objective_value = float((biases * biases) @ w) + noise_slope * t * float(w.sum())
            return objective_value, 2.0 * (noise_slope * float(w.sum()) - float((biases * b) @ w))
        group_errors = np.hypot(biases, unit_noise * t)
        # A group without rows has an error of noise T, also at T = 0.
        error_slopes = np.full(group_errors.size, unit_noise)
        np.divide(noise_slope - biases * b, group_errors, out=error_slopes, where=group_errors > 0.0)
        return float(group_errors @ w), float(error_slopes @ w)

    def evaluate_with_slope(self, t: float, is_left: bool = False) -> tuple[float, float]:
        """Return `evaluate_objective` at T: value, and slope just to the right of T or, for ``is_left``, left."""
        return self.evaluate_objective(*self.compute_bias_line(t, is_left), t)


class _Cap(_Vectors):
    """The cap: pairs sorted by user and amount, with the norm of min(c_u, c) at each amount c of the user."""

    def __init__(self, problem: PerGroupProblem) -> None:
        super().__init__(problem)
        user_indices = np.repeat(np.arange(self.groups_per_user.size), self.groups_per_user)
        self.order: IntArray = np.lexsort((problem.amounts, user_indices))
        self.amounts = problem.amounts[self.order]
        self.groups = problem.pairs.group_codes[self.order]
        self.amount_powers = self.raise_to_power(self.amounts)
        cumulative_powers = np.cumsum(self.amount_powers)
        # Sum of the smaller amounts' powers, over all users before.
        powers_of_earlier_pairs = cumulative_powers - self.amount_powers
        amount_ranks = np.arange(self.amounts.size) - np.repeat(self.user_starts, self.groups_per_user)
        num_at_least = np.repeat(self.groups_per_user, self.groups_per_user) - amount_ranks
        powers_of_earlier_users = np.repeat(powers_of_earlier_pairs[self.user_starts], self.groups_per_user)
        # A difference of running sums over all users, which rounding can make negative.
        smaller_powers = np.maximum(powers_of_earlier_pairs - powers_of_earlier_users, 0.0)
        self.norms_at_amounts = self.take_root(smaller_powers + num_at_least * self.amount_powers)

    def _keep_sorted(self, max_norm: float) -> FloatArray:
        """Return the kept part of every amount under the cap, in the order of users and amounts."""
        uncut_mask = self.norms_at_amounts <= max_norm
        # lambda solves P + (k - j) lambda^q = T^q, with P the sum of powers of the j smallest amounts, which are not
        # cut. P is summed per user, so that the norm is at most T despite rounding in `norms_at_amounts`.
        uncut_powers = np.add.reduceat(np.where(uncut_mask, self.amount_powers, 0.0), self.user_starts)
        num_cut = self.groups_per_user - np.add.reduceat(uncut_mask.astype(np.int64), self.user_starts)
        max_power = max_norm**2 if self.is_squared else max_norm
        rest_powers = np.maximum(max_power - uncut_powers, 0.0)
        cut_levels = np.repeat(self.take_root(rest_powers / np.maximum(num_cut, 1)), self.groups_per_user)
        return np.where(uncut_mask, self.amounts, np.minimum(self.amounts, cut_levels))

    def keep(self, max_norm: float) -> FloatArray:
        """Return the kept part of every pair's amount, in the order of the problem's pairs."""
        kept_amounts = np.empty(self.amounts.size)
        kept_amounts[self.order] = self._keep_sorted(max_norm)
        return kept_amounts

    def compute_biases(self, max_norm: float) -> FloatArray:
        """Return |bias| of every group, shape (num_entries,)."""
        lost_amounts = self.amounts - self._keep_sorted(max_norm)
        return np.bincount(self.groups, lost_amounts, self.problem.pairs.num_entries).astype(np.float64)


def find_best_radial(problem: PerGroupProblem) -> VectorChoice:
    """Return the best T of the radial rule, exactly.

    |bias| of each group is convex and at least 0, noise linear in T; every objective is convex and rising in both, so
    the error is convex in T. Bisection over the users' norms by the sign of the slope finds the piece; within it the
    mean square is a parabola, and a mean of roots has one root of its slope.
    """
    radial_vectors = _Radial(problem)
    distinct_norms = np.unique(np.r_[0.0, radial_vectors.norms])
    # Beyond the largest norm there is only noise, which rises.
    low_index, high_index, num_evaluations = 0, distinct_norms.size - 1, 0
    while low_index < high_index:
        middle_index = (low_index + high_index) // 2
        num_evaluations += 1
        if radial_vectors.evaluate_with_slope(float(distinct_norms[middle_index]))[1] >= 0.0:
            high_index = middle_index
        else:
            low_index = middle_index + 1
    max_norm = 0.0
    # If the error rises from T = 0 on, the noise outweighs every gain, and it is best to release nothing.
    if low_index > 0:
        norm_below, norm_above = float(distinct_norms[low_index - 1]), float(distinct_norms[low_index])
        a, b = radial_vectors.compute_bias_line(norm_below)
        falls_to_end = radial_vectors.evaluate_objective(a, b, norm_above)[1] <= 0.0
        max_norm = (
            norm_above
            if falls_to_end
            else _find_stationary_point(radial_vectors, a, b, norm_below, norm_above)
        )
    best_error, lower_bound = _compute_tangent_bound(radial_vectors, max_norm)
    if not problem.parameters.objective.is_rooted:
        best_error, lower_bound = math.sqrt(best_error), math.sqrt(max(lower_bound, 0.0))
    certificate = Certificate(
        best_error, min(best_error, lower_bound), "convex in the bound; tangents on both sides"
    )
    stop_reason = "Nothing useful can be released: publishing 0 is best."
    if max_norm > 0.0:
        stop_reason = "Exact: bisection over the users' norms, then one minimum."
    return VectorChoice(VectorRule.RADIAL, max_norm, best_error, certificate, num_evaluations, stop_reason)


def _find_stationary_point(
    radial: _Radial, a: FloatArray, b: FloatArray, start_norm: float, stop_norm: float
) -> float:
    """Return T between two norms at which the slope is 0, with |bias| a - b T; ``start_norm`` if it rises there."""
    if not radial.problem.parameters.objective.is_rooted:
        w = radial.problem.weights
        # The zero of the derivative of sum w ((a - b T)^2 + noise^2 T^2).
        half_slope_per_norm = float((w * b) @ b) + radial.noise_per_norm**2 * float(w.sum())
        stationary_norm = float((w * a) @ b) / half_slope_per_norm
        return min(max(stationary_norm, start_norm), stop_norm)
    from scipy.optimize import brentq

    if radial.evaluate_objective(a, b, start_norm)[1] >= 0.0:
        return start_norm
    return float(
        brentq(
            lambda t: radial.evaluate_objective(a, b, t)[1], start_norm, stop_norm, xtol=1e-300, rtol=1e-14
        )
    )


def _compute_tangent_bound(radial: _Radial, max_norm: float) -> tuple[float, float]:
    """Return `evaluate_objective` at T and its lower bound for all T >= 0, at the crossing of tangents on both sides.

    The bound is minus infinity if T is not near a minimum.
    """
    objective_value, right_slope = radial.evaluate_with_slope(max_norm)
    if max_norm == 0.0:
        return objective_value, objective_value if right_slope >= 0.0 else -math.inf
    # Closer tangents give a better bound; if they are too close, rounding decides the signs of their slopes.
    for relative_distance in (1e-9, 1e-7, 1e-5, 1e-3):
        a, b = max_norm * (1.0 - relative_distance), max_norm * (1.0 + relative_distance)
        objective_at_a, slope_a = radial.evaluate_with_slope(a)
        objective_at_b, slope_b = radial.evaluate_with_slope(b, is_left=True)
        if slope_a <= 0.0 <= slope_b:
            if slope_b == slope_a:
                return objective_value, min(objective_at_a, objective_at_b)
            # Follow the tangent at a to the point where both tangents cross.
            crossing_distance = (objective_at_b - objective_at_a - slope_b * (b - a)) / (slope_a - slope_b)
            return objective_value, objective_at_a + slope_a * min(max(crossing_distance, 0.0), b - a)
    return objective_value, -math.inf


def find_best_cap(
    problem: PerGroupProblem,
    *,
    tolerance: float = SEARCH_TOLERANCE,
    max_evaluations: int = 5_000,
    should_stop: ShouldStop = never,
) -> VectorChoice:
    """Return the best T of the cap, by branch and bound.

    |bias| falls and noise rises in T, so bias at b with noise at a bounds the error on [a, b] from below. The error is
    not convex, so the search ends at a gap of ``tolerance``, not at the exact minimum.

    Args:
        problem: The question.
        tolerance: Relative gap at which it stops.
        max_evaluations: Evaluations after which it stops with its present gap.
        should_stop: Called after every evaluation; True ends the search.
    """
    cap_vectors = _Cap(problem)
    largest_norm, num_entries = float(cap_vectors.norms.max()), problem.pairs.num_entries
    biases_by_norm: dict[float, FloatArray] = {}
    smallest_error, max_norm, num_evaluations = problem.error_of_nothing, 0.0, 0

    def combine(cut_amounts: FloatArray, t: float) -> float:
        """Return the objective for the lost amounts of every group and the noise of T."""
        return problem.combine_errors(cut_amounts**2 + (cap_vectors.noise_per_norm * t) ** 2)

    def evaluate_biases(t: float) -> FloatArray:
        """Return |bias| of every group at T, cached, and keep T if its error is the smallest so far."""
        nonlocal smallest_error, max_norm, num_evaluations
        if t not in biases_by_norm:
            # An entry that is dropped from the cache is recomputed when needed.
            while biases_by_norm and (len(biases_by_norm) + 1) * num_entries > MAX_CACHED_ENTRIES:
                biases_by_norm.pop(next(iter(biases_by_norm)))
            biases_by_norm[t] = cap_vectors.compute_biases(t)
            num_evaluations += 1
            error = combine(biases_by_norm[t], t)
            if error < smallest_error:
                smallest_error, max_norm = error, t
        return biases_by_norm[t]

    interval_heap: list[tuple[float, float, float]] = []
    closed_error_bounds: list[float] = []

    def add_interval(low_norm: float, high_norm: float) -> None:
        """Bound the error on an interval of T, and keep the interval if it may hold a better T."""
        error_bound = combine(evaluate_biases(high_norm), low_norm)
        if error_bound < smallest_error * (1.0 - tolerance):
            heapq.heappush(interval_heap, (error_bound, low_norm, high_norm))
        else:
            closed_error_bounds.append(error_bound)

    add_interval(0.0, largest_norm)
    while interval_heap and interval_heap[0][0] < smallest_error * (1.0 - tolerance):
        if num_evaluations >= max_evaluations or should_stop():
            break
        error_bound, low_norm, high_norm = heapq.heappop(interval_heap)
        # The geometric mean, as ratios of T matter in a wide interval.
        middle_norm = high_norm / 8.0 if low_norm == 0.0 else math.sqrt(low_norm * high_norm)
        if low_norm < middle_norm < high_norm:
            add_interval(low_norm, middle_norm)
            add_interval(middle_norm, high_norm)
        else:
            closed_error_bounds.append(error_bound)
    # The bounds of closed intervals count, too: otherwise the proof would not cover their T.
    lower_bound = min(
        smallest_error, *closed_error_bounds, *(error_bound for error_bound, _, _ in interval_heap)
    )
    certificate_argument = "in every interval, bias at its upper and noise at its lower end bound the error"
    certificate = Certificate(smallest_error, lower_bound, certificate_argument)
    stop_reason = f"Stopped after {num_evaluations:,} evaluations; the certificate has the gap."
    if certificate.proves(tolerance * (1.0 + 1e-9)):
        stop_reason = f"Within {tolerance:g} of the best bound, after {num_evaluations:,} evaluations."
    return VectorChoice(VectorRule.CAP, max_norm, smallest_error, certificate, num_evaluations, stop_reason)
