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

import heapq
import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import MAX_SIZE, FloatArray, suffix_sums
from dpcore.dataset import Values

TOLERANCE = 0.02
"""Relative gap at which the search over (M, T, h) ends."""
MAX_PASSES = 400
FIRST_CELLS = 16
MAX_GROUPS = 20_000
"""Points that the search works on; more users than these are grouped."""
_CENTRE_STEPS = 80
_CENTRE_TOLERANCE = 1e-9
_CELL_TOLERANCE = 1e-3
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

    def group(self, max_points: int) -> UserPoints:
        """Group users of equal size and nearby means, up to about this many points; the means are averaged.

        Few users are cut, and which ones decides the error: those farthest from the middle stay by themselves.
        """
        if self.sizes.size <= max_points:
            return self
        distances = np.abs(self.means - np.median(self.means))
        num_apart = max_points // 4
        is_apart = np.zeros(self.sizes.size, dtype=bool)
        for reach in (distances, distances * self.sizes):
            is_apart[np.argpartition(reach, -num_apart)[-num_apart:]] = True
        # Edges at quantiles of a regular part of the other means: about equally many users between two of them.
        sampled_means = np.sort(self.means[~is_apart][:: max(self.means.size // 50_000, 1)])
        distinct_sizes, size_index = np.unique(self.sizes, return_inverse=True)
        num_bins = max(max_points // (2 * distinct_sizes.size), 16)
        edges = np.unique(sampled_means[np.linspace(0, sampled_means.size - 1, num_bins).astype(np.int64)])
        labels = size_index * (edges.size + 1) + np.searchsorted(edges, self.means)
        labels[is_apart] = distinct_sizes.size * (edges.size + 1) + np.arange(np.count_nonzero(is_apart))
        _, first, point_index = np.unique(labels, return_index=True, return_inverse=True)
        num_users = np.bincount(point_index, self.num_users).astype(np.float64)
        means = np.bincount(point_index, self.num_users * self.means) / num_users
        return UserPoints(self.sizes[first], means, num_users)


@dataclass(frozen=True, eq=False)
class ClampedUsersProblem:
    """The problem of limiting the deviation of each user for a mean; the solution is as private as the values.

    Attributes:
        values: One value per row, sorted by user.
        unit_variance: v, the variance of the noise at sensitivity 1, above 0; 2 / epsilon^2 for Laplace noise.
        has_private_counts: True if neighbours add or remove a user, and the pair is released; False if they differ in
            the values of one user.

    Raises:
        InvalidInput: The variance is out of its range.
    """

    values: Values
    unit_variance: float
    has_private_counts: bool = True

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.of_kind(Values, values=self.values)
            problems.between(1e-12, 1e18, unit_variance=self.unit_variance)

    @cached_property
    def mean(self) -> float:
        """Return y, the mean of all rows, in the values' unit."""
        return float(self.values.values.mean())

    @cached_property
    def users(self) -> UserPoints:
        """Return all users, centred so that shifts do not cancel."""
        starts = np.flatnonzero(np.r_[True, np.diff(self.values.user_codes) != 0])
        sizes = np.diff(np.r_[starts, self.values.user_codes.size]).astype(np.float64)
        means = np.add.reduceat(self.values.values - self.mean, starts) / sizes
        return UserPoints(sizes, means, np.ones(sizes.size))

    @cached_property
    def points(self) -> UserPoints:
        """Return the points that the search works on."""
        return self.users.group(MAX_GROUPS)

    @cached_property
    def _sums_by_size(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distinct sizes, and for each its number of users and the sum of their centred means."""
        sizes, size_index = np.unique(self.users.sizes, return_inverse=True)
        num_users, sums_of_means = (
            np.bincount(size_index, terms).astype(np.float64)
            for terms in (self.users.num_users, self.users.means)
        )
        return sizes, num_users, sums_of_means

    @property
    def sizes(self) -> FloatArray:
        """Return the distinct numbers of rows per user, ascending, shape (K,)."""
        return self._sums_by_size[0]

    def sum_weights(self, threshold: float) -> float:
        """Return n_h, the sum of the users' weights at h."""
        return float(np.minimum(threshold, self.sizes) @ self._sums_by_size[1])

    def compute_shift(self, threshold: float) -> float:
        """Return D, the weighted mean less that of the table, both before clamping, in the values' unit."""
        weighted_sum = float(np.minimum(threshold, self.sizes) @ self._sums_by_size[2])
        return weighted_sum / self.sum_weights(threshold)

    def _least_shift(self, low: float, high: float) -> float:
        """Return the least |D| at thresholds from ``low`` to ``high``."""
        inside = self.sizes[(self.sizes > low) & (self.sizes < high)]
        shifts = [self.compute_shift(threshold) for threshold in (low, *inside.tolist(), high)]
        # D is monotone between two sizes: its least magnitude is at an end, at a size, or 0 if its sign changes.
        return 0.0 if min(shifts) <= 0.0 <= max(shifts) else min(map(abs, shifts))

    def measure_parts(self, threshold: float, centre: float, limit: float) -> ErrorParts:
        """Measure the error of a choice, of all users.

        Args:
            threshold: h, in rows per user.
            centre: M, in the values' unit.
            limit: T, in rows times the values' unit.
        """
        sizes, means = self.users.sizes, self.users.means
        weights = np.minimum(threshold, sizes)
        deviations = weights * (means - (centre - self.mean))
        sum_weights = float(weights.sum())
        cut = float(np.maximum(np.abs(deviations) - limit, 0.0).sum()) / sum_weights
        signed_shift = centre - self.mean + float(np.clip(deviations, -limit, limit).sum()) / sum_weights
        cost = _build_costs(self, threshold, sum_weights)
        offset = centre - self.mean
        return ErrorParts(
            clamping=cut,
            bounding=abs(self.compute_shift(threshold)),
            noise=math.sqrt(cost.limit_cost * limit**2 + cost.centre_cost * offset**2),
            signed_shift=signed_shift,
            answer_noise=math.sqrt(
                cost.limit_cost * limit**2 + cost.centre_cost * (offset - signed_shift) ** 2
            ),
        )


@dataclass(frozen=True)
class ErrorParts:
    """The parts of the error of one choice, in the values' unit.

    Attributes:
        clamping: C, the bias of clamping users.
        bounding: |D|, the bias of weighting users.
        noise: Standard deviation of the noise, as f has it.
        signed_shift: Expected answer less y, where the two biases may cancel.
        answer_noise: Standard deviation of the noise with the clamped mean in the place of y.
    """

    clamping: float
    bounding: float
    noise: float
    signed_shift: float
    answer_noise: float

    @property
    def error(self) -> float:
        """Return the root of f, which no cancelling bias makes smaller."""
        return math.hypot(self.clamping + self.bounding, self.noise)

    @property
    def table_error(self) -> float:
        """Return the root mean square error on this very table."""
        return math.hypot(self.signed_shift, self.answer_noise)


@dataclass(frozen=True)
class _Costs:
    """Factors of T^2 and (y - M)^2 in the variance of the noise."""

    limit_cost: float
    centre_cost: float


def _build_costs(
    problem: ClampedUsersProblem, threshold: float, sum_weights: float, threshold_share: float | None = None
) -> _Costs:
    """Return the costs at one h; ``threshold_share`` stands in for h / n_h."""
    if not problem.has_private_counts:
        return _Costs(4.0 * problem.unit_variance / sum_weights**2, 0.0)
    # Weights do not rise beyond the largest size, and the noise needs no higher h.
    share = min(threshold, float(problem.sizes[-1])) / sum_weights
    share = share if threshold_share is None else threshold_share
    return _Costs(2.0 * problem.unit_variance / sum_weights**2, 2.0 * problem.unit_variance * share**2)


@dataclass(frozen=True, eq=False)
class _Objective:
    """f at one h, or a lower bound on it over some h: (shift + sum w (|u (c - M)| - T)_+)^2 + noise.

    Attributes:
        weights: u of each point, shape (P,).
        means: c - y of each point, shape (P,).
        shares: w, the number of users over n_h, shape (P,).
        shift: |D|.
        costs: Of T^2 and (y - M)^2.
    """

    weights: FloatArray
    means: FloatArray
    shares: FloatArray
    shift: float
    costs: _Costs

    def find_limit(self, offset: float) -> _Tangent:
        """Find the best T for the centre M = y + offset, with the tangent of the least f there."""
        deviations = self.weights * (self.means - offset)
        sizes_of_deviation = np.abs(deviations)
        order = np.argsort(sizes_of_deviation, kind="stable")
        sorted_sizes, shares = sizes_of_deviation[order], self.shares[order]
        # Shares and cut sums of the points from index i on; the last entry is that of no point.
        shares_above, sums_above = suffix_sums(shares), suffix_sums(shares * sorted_sizes)
        cost = self.costs.limit_cost
        # Half the slope of f in T just above each value; it rises in T.
        cuts = np.maximum(sums_above[1:] - sorted_sizes * shares_above[1:], 0.0)
        slopes = cost * sorted_sizes - shares_above[1:] * (self.shift + cuts)
        index = int(np.searchsorted(slopes >= 0.0, True))
        share, cut_sum = float(shares_above[index]), float(sums_above[index])
        below = float(sorted_sizes[index - 1]) if index else 0.0
        limit = share * (self.shift + cut_sum) / (share**2 + cost)
        limit = min(max(limit, below), float(sorted_sizes[index]))
        bias = self.shift + max(cut_sum - limit * share, 0.0)
        value = bias**2 + cost * limit**2 + self.costs.centre_cost * offset**2
        # A subgradient of f in (M, T) that is 0 in T: users just at T count with the part that makes it so.
        outside = sizes_of_deviation > limit
        directions = self.shares * self.weights * np.sign(deviations)
        slope = float(directions[outside].sum())
        on_limit = sizes_of_deviation == limit
        if share_on_limit := float(self.shares[on_limit].sum()):
            missing = cost * limit / bias - float(self.shares[outside].sum()) if bias > 0.0 else 0.0
            slope += min(max(missing / share_on_limit, 0.0), 1.0) * float(directions[on_limit].sum())
        slope = -2.0 * bias * slope + 2.0 * self.costs.centre_cost * offset
        return _Tangent(offset, limit, value, slope)

    def find_optimum(self, tolerance: float, start: float | None = None) -> tuple[_Tangent, float]:
        """Find the best centre and limit; return them with a lower bound on f.

        Invariant: the optimum lies between a point whose tangent falls and one whose tangent rises. Each step tries a
        point between them, and the tangents at both bound the optimum from below where they cross.
        """
        left, right = (self.find_limit(float(end)) for end in (self.means.min(), self.means.max()))
        best = min(left, right, key=lambda tangent: tangent.value)
        if left.slope >= 0.0 or right.slope <= 0.0:
            return best, best.value
        offset = min(max(0.0 if start is None else start, left.offset), right.offset)
        bound = 0.0
        for step in range(_CENTRE_STEPS):
            if not left.offset < offset < right.offset:
                offset = 0.5 * (left.offset + right.offset)
            if not left.offset < offset < right.offset:
                break
            middle = self.find_limit(offset)
            best = min(best, middle, key=lambda tangent: tangent.value)
            if middle.slope == 0.0:
                return best, middle.value
            left, right = (middle, right) if middle.slope < 0.0 else (left, middle)
            crossing = (right.value - left.value + left.slope * left.offset - right.slope * right.offset) / (
                left.slope - right.slope
            )
            bound = max(bound, left.value + left.slope * (crossing - left.offset))
            if best.value - bound <= tolerance * best.value:
                break
            # The crossing is good near kinks; every third step halves the interval, whatever the curve is.
            offset = crossing if step % 3 else 0.5 * (left.offset + right.offset)
        return best, min(max(bound, 0.0), best.value)


@dataclass(frozen=True)
class _Tangent:
    """The least f over T at one centre, as a function of it: its value and slope there.

    Attributes:
        offset: M - y.
        limit: The best T at this centre.
        value: f at both.
        slope: A subgradient in M.
    """

    offset: float
    limit: float
    value: float
    slope: float


@dataclass(frozen=True)
class DeviationLimit:
    """The best centre and limit.

    Attributes:
        centre: M, in the values' unit.
        limit: T, in rows times the values' unit.
        threshold: h, in rows per user.
        parts: The parts of the error, of all users.
        certificate: The root of f and a lower bound, for every (M, T) at this h, or for every h as well.
        num_passes: Thresholds and cells that were solved.
    """

    centre: float
    limit: float
    threshold: float
    parts: ErrorParts
    certificate: Certificate
    num_passes: int = 1

    @property
    def width(self) -> float:
        """Return W = 2 T / h, the width of the range of users with h rows or more, in the values' unit."""
        return 2.0 * self.limit / self.threshold


def _build_objective(problem: ClampedUsersProblem, threshold: float) -> _Objective:
    points, sum_weights = problem.points, problem.sum_weights(threshold)
    return _Objective(
        np.minimum(threshold, points.sizes),
        points.means,
        points.num_users / sum_weights,
        abs(problem.compute_shift(threshold)),
        _build_costs(problem, threshold, sum_weights),
    )


def best_limit(problem: ClampedUsersProblem, threshold: float) -> DeviationLimit:
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
    best, lower_bound = _build_objective(problem, threshold).find_optimum(_CENTRE_TOLERANCE)
    return _build_choice(problem, threshold, best, lower_bound)


def _check_means_differ(problem: ClampedUsersProblem) -> None:
    means = problem.users.means
    if means.min() == means.max():
        raise refuse("all users have the same mean, so that no limit can be told from another")


def _build_choice(
    problem: ClampedUsersProblem, threshold: float, best: _Tangent, lower_bound: float
) -> DeviationLimit:
    centre = best.offset + problem.mean
    parts = problem.measure_parts(threshold, centre, best.limit)
    lower_bound = min(math.sqrt(lower_bound), parts.error)
    certificate = Certificate(parts.error, lower_bound, "every centre and limit at this bound is covered")
    return DeviationLimit(centre, best.limit, threshold, parts, certificate)


def best_joint(
    problem: ClampedUsersProblem, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> DeviationLimit:
    """Find the best centre, deviation limit and threshold together, by branch and bound over h.

    Args:
        problem: The question.
        progress: Called with the share of `MAX_PASSES` that is done; the search ends after these passes.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        `DeviationLimit`; its certificate covers every centre, every limit and every h from 1.

    Raises:
        InvalidInput: All users have the same mean.
    """
    _check_means_differ(problem)
    # A heap of cells [h1, h2], each with a lower bound on f in it.
    cells: list[tuple[float, float, float]] = []
    solved: dict[float, tuple[_Tangent, float]] = {}

    def solve(threshold: float) -> None:
        objective = _build_objective(problem, threshold)
        solved[threshold] = objective.find_optimum(_CELL_TOLERANCE)

    def push(h1: float, h2: float) -> None:
        sum_weights = problem.sum_weights(h2)
        objective = _Objective(
            np.minimum(h1, problem.points.sizes),
            problem.points.means,
            problem.points.num_users / sum_weights,
            problem._least_shift(h1, h2),
            _build_costs(problem, h1, sum_weights, h1 / problem.sum_weights(h1)),
        )
        start = solved[h1][0].offset
        heapq.heappush(cells, (objective.find_optimum(_CELL_TOLERANCE, start)[1], h1, h2))

    smallest, largest = float(problem.sizes[0]), float(problem.sizes[-1])
    ends = np.unique(np.geomspace(smallest, largest, FIRST_CELLS + 1))
    ends[0], ends[-1] = smallest, largest
    # Above the largest size the weights are constant.
    for end in ends.tolist():
        solve(end)
    for h1, h2 in pairwise(ends.tolist()):
        push(h1, h2)
    passes = ends.size
    best = min(solved, key=lambda threshold: solved[threshold][0].value)
    while (
        cells
        and cells[0][0] * (1.0 + TOLERANCE) ** 2 < solved[best][0].value
        and passes < MAX_PASSES
        and not should_stop()
    ):
        _, h1, h2 = heapq.heappop(cells)
        midpoint = math.sqrt(h1 * h2)
        if h1 < midpoint < h2:  # Else it is a cell of one number, which is already solved.
            solve(midpoint)
            push(midpoint, h2)
            push(h1, midpoint)
            passes += 2
            best = min(best, midpoint, key=lambda threshold: solved[threshold][0].value)
        progress(min(passes / MAX_PASSES, 1.0))
    choice = best_limit(problem, best)
    lower_bound = min(math.sqrt(cells[0][0]) if cells else math.inf, choice.certificate.lower_bound)
    lower_bound = min([lower_bound, *(math.sqrt(bound) for _, bound in solved.values())])
    argument = "every centre and limit and, by intervals, every bound on rows is covered"
    certificate = Certificate(choice.parts.error, min(lower_bound, choice.parts.error), argument)
    return replace(choice, certificate=certificate, num_passes=passes)
