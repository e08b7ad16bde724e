"""A mean that clamps what each user adds, not each row.

User l has s_l rows with the mean c_l, weighs u_l = min(h, s_l), and may deviate from a public centre M by

    z_l = clamp(u_l (c_l - M), -T, T),        T the deviation limit, in rows times the values' unit.

With W = 2 T / h the release is the pair A = sum (W u_l / 2 + z_l), B = sum (W u_l / 2 - z_l) with noise, and the
answer is M + W (A - B) / (2 (A + B)). Where counts are public, it is M + (sum z_l + noise) / n_h, n_h = sum u_l.

**Privacy.** One user adds |W u / 2 + z| + |W u / 2 - z| = 2 max(W u / 2, |z|) <= 2 T = h W to the pair, in L1 and, at
z = T and u = h, in L2: exactly the sensitivity of a pair whose rows are clamped to [M - W / 2, M + W / 2]. A user with
u < h rows may lie h / u times as far from M, at no cost. M must be the middle: any other point costs more. Where
counts are public, replacing a user's values changes sum z_l by at most 2 T.

**Less is cut.** At equal h, M and W let C = sum (|u_l (c_l - M)| - T)_+ / n_h be the cut. It is never more than that of
users' means clamped to M +- W / 2, as |u (c - M)| - T <= u (|c - M| - W / 2), and that never more than that of clamped
rows, by Jensen's inequality.

**The error** about the mean of the table, y, adds the biases without letting them cancel: with D the weighted mean
less y, both before clamping, and v the variance of the noise at sensitivity 1,

    f(M, T, h) = (|D| + C)^2 + 4 v T^2 / n_h^2                              counts public,
    f(M, T, h) = (|D| + C)^2 + 2 v (T^2 + h^2 (y - M)^2) / n_h^2            counts private, by the delta method.

The least signed error is useless: at T near 0 and M = y it is 0. The root of f is at least the root mean square error
with public counts.

**At fixed h** f is jointly convex in (M, T). For given M the best T lies between two of the sorted |z_l|, where f is a
quadratic. The least f over T is convex in M; two of its tangents bracket the optimum and bound it from below.

**Over h** there are several valleys. n_h C and n_h rise in h, and so does h / n_h; D is monotone between two sizes. So
on [h1, h2] f is at least the same function with D at its least, C(h1) n_1 / n_2, T / n_2 and h1 / n_1: the search is by
branch and bound.

**Many users** are grouped: the users of a size whose means lie close together count as one point. C is convex in each
user's mean, so that the grouped error is a lower bound on f; the error at the answer is that of all users.

The mechanism, its proof and the module are ours; Amin et al. 2019 clamp the sum of each user, with 0 as the centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import MAX_SIZE, FloatArray, sum_suffixes
from dpcore.dataset import Values
from dpcore.mean.threshold_search import search_thresholds

MAX_USER_POINTS = 20_000
"""Points that the search works on; more users than these are grouped."""
_MAX_CENTRE_STEPS = 80
_CENTRE_TOLERANCE = 1e-9
_SEARCH_TOLERANCE = 1e-3
"""Relative gap of f at which the search for a centre ends, for an answer and within a cell."""


@dataclass(frozen=True, eq=False)
class UserPoints:
    """Users as points, one for each user or for users who are much alike.

    Attributes:
        sizes: Rows per user, shape (P,).
        means: Mean of the rows less the mean of the table, in the values' unit, shape (P,).
        num_users: Users at each point, shape (P,).
    """

    sizes: FloatArray
    means: FloatArray
    num_users: FloatArray

    def merge(self, max_points: int) -> UserPoints:
        """Return at most about ``max_points`` points: users of equal size and nearby means are averaged to one.

        Few users are cut, and which ones decides the error: those farthest from the middle stay by themselves. Few
        points are returned as they are.
        """
        if self.sizes.size <= max_points:
            return self
        distances_from_median = np.abs(self.means - np.median(self.means))
        num_per_measure = max_points // 4
        ungrouped_mask = np.zeros(self.sizes.size, dtype=bool)
        for outlier_measures in (distances_from_median, distances_from_median * self.sizes):
            ungrouped_mask[np.argpartition(outlier_measures, -num_per_measure)[-num_per_measure:]] = True
        # Edges at quantiles of a regular part of the other means: about equally many users between two of them.
        sampled_means = np.sort(self.means[~ungrouped_mask][:: max(self.means.size // 50_000, 1)])
        distinct_sizes, size_indices = np.unique(self.sizes, return_inverse=True)
        num_bins = max(max_points // (2 * distinct_sizes.size), 16)
        edges = np.unique(sampled_means[np.linspace(0, sampled_means.size - 1, num_bins).astype(np.int64)])
        point_codes = size_indices * (edges.size + 1) + np.searchsorted(edges, self.means)
        point_codes[ungrouped_mask] = distinct_sizes.size * (edges.size + 1) + np.arange(ungrouped_mask.sum())
        _, first_user_indices, point_indices = np.unique(point_codes, return_index=True, return_inverse=True)
        num_users_per_point = np.bincount(point_indices, self.num_users).astype(np.float64)
        means_per_point = np.bincount(point_indices, self.num_users * self.means) / num_users_per_point
        return UserPoints(self.sizes[first_user_indices], means_per_point, num_users_per_point)


@dataclass(frozen=True, eq=False)
class ClampedUsersProblem:
    """The problem of limiting the deviation of each user for a mean; the solution is as private as the values.

    Attributes:
        values: The values, sorted by user.
        unit_noise_variance: v, the variance of the noise at sensitivity 1, above 0; 2 / epsilon^2 for Laplace noise.
        has_private_counts: True if neighbours add or remove a user, and the pair is released; False if they differ in
            the values of one user.

    Raises:
        InvalidInput: The variance is out of its range.
    """

    values: Values
    unit_noise_variance: float
    has_private_counts: bool = True

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if ``values`` is not a `Values`, or the variance is out of its range."""
        with Problems() as problems:
            problems.of_kind(Values, values=self.values)
            problems.between(1e-12, 1e18, unit_noise_variance=self.unit_noise_variance)

    @cached_property
    def mean(self) -> float:
        """Return y, the mean of all rows, in the values' unit."""
        return float(self.values.weigh(self.values.values).sum()) / self.values.num_rows

    @cached_property
    def users(self) -> UserPoints:
        """Return every user as a point of their own; means are less the mean of the table."""
        sizes = self.values.rows_per_user.astype(np.float64)
        centred_means = self.values.sum_per_user(self.values.values - self.mean) / sizes
        return UserPoints(sizes, centred_means, np.ones(sizes.size))

    @cached_property
    def points(self) -> UserPoints:
        """Return the points that the search works on: all users, or groups of them above `MAX_USER_POINTS`."""
        return self.users.merge(MAX_USER_POINTS)

    @cached_property
    def _sums_per_size(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distinct sizes, and for each its number of users and the sum of their centred means."""
        sizes, size_indices = np.unique(self.users.sizes, return_inverse=True)
        num_users_per_size = np.bincount(size_indices, self.users.num_users).astype(np.float64)
        return sizes, num_users_per_size, np.bincount(size_indices, self.users.means).astype(np.float64)

    @property
    def sizes(self) -> FloatArray:
        """Return the distinct numbers of rows per user, ascending, shape (K,)."""
        return self._sums_per_size[0]

    def sum_weights(self, threshold: float) -> float:
        """Return n_h, the sum of the users' weights at h."""
        return float(np.minimum(threshold, self.sizes) @ self._sums_per_size[1])

    def compute_shift(self, threshold: float) -> float:
        """Return D, the weighted mean less that of the table, both before clamping, in the values' unit."""
        return float(np.minimum(threshold, self.sizes) @ self._sums_per_size[2]) / self.sum_weights(threshold)

    def _find_least_shift(self, low: float, high: float) -> float:
        """Return the least |D|, in the values' unit, over all thresholds from ``low`` to ``high``."""
        sizes_between = self.sizes[(self.sizes > low) & (self.sizes < high)].tolist()
        shifts = [self.compute_shift(threshold) for threshold in (low, *sizes_between, high)]
        # D is monotone between two sizes: its least magnitude is at an end, at a size, or 0 if its sign changes.
        return 0.0 if min(shifts) <= 0.0 <= max(shifts) else min(map(abs, shifts))

    def measure_parts(self, threshold: float, centre: float, limit: float) -> ErrorParts:
        """Measure the parts of the error of a threshold, centre and limit, over all users.

        Args:
            threshold: h, in rows per user.
            centre: M, in the values' unit.
            limit: T, in rows times the values' unit.
        """
        user_weights, offset = np.minimum(threshold, self.users.sizes), centre - self.mean
        deviations, sum_weights = user_weights * (self.users.means - offset), float(user_weights.sum())
        signed_shift = offset + float(np.clip(deviations, -limit, limit).sum()) / sum_weights
        noise_costs = _build_noise_costs(self, threshold, sum_weights)
        return ErrorParts(
            clamping=float(np.maximum(np.abs(deviations) - limit, 0.0).sum()) / sum_weights,
            bounding=abs(self.compute_shift(threshold)),
            noise=math.sqrt(noise_costs.compute_variance(limit, offset)),
            signed_shift=signed_shift,
            noise_at_clamped_mean=math.sqrt(noise_costs.compute_variance(limit, offset - signed_shift)),
        )


@dataclass(frozen=True)
class ErrorParts:
    """The parts of the error of one choice, in the values' unit.

    Attributes:
        clamping: C, the bias of clamping users.
        bounding: |D|, the bias of weighting users.
        noise: Standard deviation of the noise, as f has it.
        signed_shift: Expected answer less y, where the two biases may cancel.
        noise_at_clamped_mean: Standard deviation of the noise with the clamped mean in the place of y.
    """

    clamping: float
    bounding: float
    noise: float
    signed_shift: float
    noise_at_clamped_mean: float

    @property
    def error(self) -> float:
        """Return the root mean square error if the biases of clamping and weighting add up, and never cancel."""
        return math.hypot(self.clamping + self.bounding, self.noise)

    @property
    def table_error(self) -> float:
        """Return the root mean square error on this very table, where the two biases may cancel."""
        return math.hypot(self.signed_shift, self.noise_at_clamped_mean)


@dataclass(frozen=True)
class _NoiseCosts:
    """The factors of T^2 (``limit_cost``) and of (y - M)^2 (``centre_cost``) in the variance of the noise."""

    limit_cost: float
    centre_cost: float

    def compute_variance(self, limit: float, offset: float) -> float:
        """Return the variance of the noise at the limit T, if M lies ``offset`` from y."""
        return self.limit_cost * limit**2 + self.centre_cost * offset**2


def _build_noise_costs(
    problem: ClampedUsersProblem,
    threshold: float,
    sum_weights: float,
    share_of_heaviest_user: float | None = None,
) -> _NoiseCosts:
    """Return the factors of the noise at one h; ``share_of_heaviest_user`` stands in for h / n_h unless it is None."""
    if not problem.has_private_counts:
        return _NoiseCosts(4.0 * problem.unit_noise_variance / sum_weights**2, 0.0)
    # Weights do not rise beyond the largest size, and the noise needs no higher h.
    if share_of_heaviest_user is None:
        share_of_heaviest_user = min(threshold, float(problem.sizes[-1])) / sum_weights
    pair_variance = 2.0 * problem.unit_noise_variance
    return _NoiseCosts(pair_variance / sum_weights**2, pair_variance * share_of_heaviest_user**2)


@dataclass(frozen=True, eq=False)
class _Objective:
    """f at one h, or a lower bound on it over some h: (bounding + sum w (|u (c - M)| - T)_+)^2 + noise.

    Attributes:
        weights: u of each point, shape (P,).
        means: c - y of each point, shape (P,).
        user_shares: w, the number of users of each point over n_h, shape (P,).
        bounding: |D|, or the least |D| over some h.
        noise_costs: Factors of T^2 and (y - M)^2 in the variance of the noise.
    """

    weights: FloatArray
    means: FloatArray
    user_shares: FloatArray
    bounding: float
    noise_costs: _NoiseCosts

    def find_limit(self, offset: float) -> _Tangent:
        """Find the best T for the centre M = y + offset; return f there, and its slope in M, as a `_Tangent`."""
        deviations = self.weights * (self.means - offset)
        abs_deviations = np.abs(deviations)
        order_by_magnitude = np.argsort(abs_deviations, kind="stable")
        sorted_magnitudes = abs_deviations[order_by_magnitude]
        sorted_shares = self.user_shares[order_by_magnitude]
        # Shares and cut sums of the points from index i on; the last entry is that of no point.
        shares_above, sums_above = (
            sum_suffixes(sorted_shares),
            sum_suffixes(sorted_shares * sorted_magnitudes),
        )
        limit_cost = self.noise_costs.limit_cost
        # Half the slope of f in T just above each value; it rises in T.
        clamped_sums = np.maximum(sums_above[1:] - sorted_magnitudes * shares_above[1:], 0.0)
        slopes_at_magnitudes = limit_cost * sorted_magnitudes - shares_above[1:] * (
            self.bounding + clamped_sums
        )
        first_rising_index = int(np.searchsorted(slopes_at_magnitudes >= 0.0, True))
        share_above = float(shares_above[first_rising_index])
        weighted_sum_above = float(sums_above[first_rising_index])
        limit_below = float(sorted_magnitudes[first_rising_index - 1]) if first_rising_index else 0.0
        limit = share_above * (self.bounding + weighted_sum_above) / (share_above**2 + limit_cost)
        limit = min(max(limit, limit_below), float(sorted_magnitudes[first_rising_index]))
        total_bias = self.bounding + max(weighted_sum_above - limit * share_above, 0.0)
        # A subgradient of f in (M, T) that is 0 in T: users just at T count with the part that makes it so.
        beyond_mask = abs_deviations > limit
        centre_slopes = self.user_shares * self.weights * np.sign(deviations)
        centre_slope = float(centre_slopes[beyond_mask].sum())
        on_limit_mask = abs_deviations == limit
        if share_on_limit := float(self.user_shares[on_limit_mask].sum()):
            needed_share = limit_cost * limit / total_bias if total_bias > 0.0 else 0.0
            counted_part = (needed_share - float(self.user_shares[beyond_mask].sum())) / share_on_limit
            centre_slope += min(max(counted_part, 0.0), 1.0) * float(centre_slopes[on_limit_mask].sum())
        centre_slope = -2.0 * total_bias * centre_slope + 2.0 * self.noise_costs.centre_cost * offset
        squared_error = total_bias**2 + self.noise_costs.compute_variance(limit, offset)
        return _Tangent(offset, limit, squared_error, centre_slope)

    def find_optimum(self, tolerance: float, first_offset: float | None = None) -> tuple[_Tangent, float]:
        """Find the best centre and limit; return the tangent there, and a lower bound on f at every centre and limit.

        The search begins at M = y + ``first_offset``, or at y for None. It ends where the bound is within the relative
        ``tolerance`` of f, or after `_MAX_CENTRE_STEPS`.

        Invariant: the optimum lies between a point whose tangent falls and one whose tangent rises. Each step tries a
        point between them, and the tangents at both bound the optimum from below where they cross.
        """
        left_tangent = self.find_limit(float(self.means.min()))
        right_tangent = self.find_limit(float(self.means.max()))
        best_tangent = min(left_tangent, right_tangent, key=lambda tangent: tangent.squared_error)
        if left_tangent.slope >= 0.0 or right_tangent.slope <= 0.0:
            return best_tangent, best_tangent.squared_error
        offset = min(
            max(0.0 if first_offset is None else first_offset, left_tangent.offset), right_tangent.offset
        )
        lower_bound = 0.0
        for _step in range(_MAX_CENTRE_STEPS):
            if not left_tangent.offset < offset < right_tangent.offset:
                offset = 0.5 * (left_tangent.offset + right_tangent.offset)
            if not left_tangent.offset < offset < right_tangent.offset:
                break
            middle_tangent = self.find_limit(offset)
            best_tangent = min(best_tangent, middle_tangent, key=lambda tangent: tangent.squared_error)
            if middle_tangent.slope == 0.0:
                return best_tangent, middle_tangent.squared_error
            if middle_tangent.slope < 0.0:
                left_tangent = middle_tangent
            else:
                right_tangent = middle_tangent
            crossing_offset, crossing_height = left_tangent.cross(right_tangent)
            lower_bound = max(lower_bound, crossing_height)
            if best_tangent.squared_error - lower_bound <= tolerance * best_tangent.squared_error:
                break
            # The crossing is good near kinks; every third step halves the interval, whatever the curve is.
            offset = crossing_offset if _step % 3 else 0.5 * (left_tangent.offset + right_tangent.offset)
        return best_tangent, min(max(lower_bound, 0.0), best_tangent.squared_error)


@dataclass(frozen=True)
class _Tangent:
    """The least f over T at one centre, as a function of it: its value and slope there.

    Attributes:
        offset: M - y.
        limit: The best T at this centre.
        squared_error: f at both.
        slope: A subgradient in M.
    """

    offset: float
    limit: float
    squared_error: float
    slope: float

    def cross(self, other: _Tangent) -> tuple[float, float]:
        """Return the offset at which this line and another cross, and their common height there."""
        intercept_difference = (
            other.squared_error - self.squared_error + self.slope * self.offset - other.slope * other.offset
        )
        crossing_offset = intercept_difference / (self.slope - other.slope)
        return crossing_offset, self.squared_error + self.slope * (crossing_offset - self.offset)


@dataclass(frozen=True)
class DeviationLimit:
    """The best centre and limit at one threshold, or the best of all thresholds.

    Attributes:
        centre: M, in the values' unit.
        limit: T, in rows times the values' unit.
        threshold: h, in rows per user.
        error_parts: The parts of the error, of all users.
        certificate: The root of f and a lower bound, for every (M, T) at this h, or for every h as well.
    """

    centre: float
    limit: float
    threshold: float
    error_parts: ErrorParts
    certificate: Certificate

    @property
    def width(self) -> float:
        """Return W = 2 T / h, the width of the range of users with h rows or more, in the values' unit."""
        return 2.0 * self.limit / self.threshold


def _build_objective(problem: ClampedUsersProblem, threshold: float) -> _Objective:
    """Build the objective f at one h, over the points that the search works on."""
    user_points, sum_weights = problem.points, problem.sum_weights(threshold)
    return _Objective(
        np.minimum(threshold, user_points.sizes),
        user_points.means,
        user_points.num_users / sum_weights,
        abs(problem.compute_shift(threshold)),
        _build_noise_costs(problem, threshold, sum_weights),
    )


def find_best_limit(problem: ClampedUsersProblem, threshold: float) -> DeviationLimit:
    """Find the best centre and deviation limit at one threshold.

    Args:
        problem: The question.
        threshold: h, at least 1 row per user.

    Returns:
        `DeviationLimit`; its certificate covers every centre and limit at this h.

    Raises:
        InvalidInput: h is out of its range, or all users have the same mean.
    """
    with Problems() as problems:
        problems.between(1.0, MAX_SIZE, threshold=threshold)
    _check_means_differ(problem)
    best_tangent, lower_bound = _build_objective(problem, threshold).find_optimum(_CENTRE_TOLERANCE)
    centre = best_tangent.offset + problem.mean
    error_parts = problem.measure_parts(threshold, centre, best_tangent.limit)
    lower_bound = min(math.sqrt(lower_bound), error_parts.error)
    argument = "every centre and limit at this bound is covered"
    certificate = Certificate(error_parts.error, lower_bound, argument)
    return DeviationLimit(centre, best_tangent.limit, threshold, error_parts, certificate)


def _check_means_differ(problem: ClampedUsersProblem) -> None:
    """Raise InvalidInput if all users have the same mean."""
    centred_user_means = problem.users.means
    if centred_user_means.min() == centred_user_means.max():
        raise refuse("all users have the same mean, so that no limit can be told from another")


def find_best_joint(
    problem: ClampedUsersProblem, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> DeviationLimit:
    """Find the best centre, deviation limit and threshold together, by branch and bound over h.

    Args:
        problem: The question.
        progress: Called with the share of the passes that is done.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        `DeviationLimit`; its certificate covers every centre, every limit and every h from 1.

    Raises:
        InvalidInput: All users have the same mean.
    """
    _check_means_differ(problem)
    tangents_by_threshold: dict[float, _Tangent] = {}
    f_lower_bounds: list[float] = []

    def solve_threshold(threshold: float) -> float:
        """Return the root of the least f at one h; keep its tangent, and the lower bound on f at that h."""
        objective = _build_objective(problem, threshold)
        tangents_by_threshold[threshold], lower_bound = objective.find_optimum(_SEARCH_TOLERANCE)
        f_lower_bounds.append(lower_bound)
        return math.sqrt(tangents_by_threshold[threshold].squared_error)

    def bound_cell(smallest_threshold: float, largest_threshold: float) -> float:
        """Return a lower bound on the root of f at every h between these."""
        largest_sum_of_weights = problem.sum_weights(largest_threshold)
        objective = _Objective(
            np.minimum(smallest_threshold, problem.points.sizes),
            problem.points.means,
            problem.points.num_users / largest_sum_of_weights,
            problem._find_least_shift(smallest_threshold, largest_threshold),
            _build_noise_costs(
                problem,
                smallest_threshold,
                largest_sum_of_weights,
                smallest_threshold / problem.sum_weights(smallest_threshold),
            ),
        )
        return math.sqrt(
            objective.find_optimum(_SEARCH_TOLERANCE, tangents_by_threshold[smallest_threshold].offset)[1]
        )

    threshold, cells_lower_bound = search_thresholds(
        problem.sizes, solve_threshold, bound_cell, progress, should_stop
    )
    limit_choice = find_best_limit(problem, threshold)
    lower_bound = min(limit_choice.certificate.lower_bound, math.sqrt(min(f_lower_bounds)), cells_lower_bound)
    best_error = limit_choice.error_parts.error
    argument = "every centre and limit and, by intervals, every bound on rows is covered"
    return replace(limit_choice, certificate=Certificate(best_error, min(lower_bound, best_error), argument))
