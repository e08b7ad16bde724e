"""The largest error of a released mean over all values in [L, U]; it depends on no variance of a `MeanProblem`.

This differs from a worst-case variance: no population is sampled, and the target is the mean of this table. B = U - L;
user l has the share p_l = s_l / n of the rows and weighs u_l, with t the largest weight.

**Weights with public counts.** The release is off by sum_l (u_l - p_l) (mean of user l's values) before noise. As both
sum to 1, that is largest in size if every user with p_l > u_l has all values at one end, and all others at the other
end. It is then B sum (p_l - u_l)_+. For smooth weights u = min(h, s) / n_h, and h / n_h = t, only users of more than t
n rows lose: B sum (p_l - t)_+. No weights with the largest weight t lose less, since u <= t. So the least over all
weights is that over t alone, from 1 / m on, as the weights sum to 1. The error is then B / n times that of a sum of row
counts with the upper bound T = t n, as `dpcore.total` has it, and its square

    L(T)^2 + 2 (T / epsilon)^2,    L(T) = sum_l (s_l - T)_+,

(with Laplace noise; other noise has `MeanProblem.relative_noise` in the place of 2 / epsilon^2)
is convex, and quadratic between two sizes, where q users have more than T rows: half its slope, 2 T / epsilon^2 - q L,
is evaluated at every size.

**A cap that draws its rows** loses the same in expectation, and which rows it draws adds
sum k (1 - k / s) V_l / n_h^2, k = min(h, s) and V_l the variance of the user's values: with c_l = k_l / n_h - p_l and
x_l the share of the user's rows that lie at U, the squared error is at most

    B^2 [ (sum_l c_l x_l)^2 + sum_l v_l x_l (1 - x_l) ] + noise,    v_l = k (s - k) / ((s - 1) n_h^2).

It is convex in every value, so the worst values lie at the ends. Written as the largest over mu of
-mu^2 + sum_l max over x_l of (2 mu c_l x_l + v_l x_l (1 - x_l)), it is maximised piece by piece between the mu at which
a size of user reaches an end. x_l counts as any number from 0 to 1: where a user has few rows and an odd number of
them, that is slightly more than any values give.

**Private counts.** The ratio of the two noisy sums (`private_counts`) is linearised. Its noise is largest for a mean at
either end, where it is as large as with public counts. So the same figure stands, as an approximation, and a poor one
where the noise on the sum of weights is not small beside it (`PrivateCountsProblem.noise_share`).

Source: Rameshwar and Tandon 2025 (arXiv 2502.04749) for the worst case over values in a bounded set; the reduction to a
sum, its proof and the part of caps are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, sum_suffixes
from dpcore.mean.public_counts import MeanProblem
from dpcore.mean.user_sums import sum_prefixes


def _compute_largest_weights(problem: MeanProblem, bounds: npt.ArrayLike) -> FloatArray:
    """Return min(h, largest size) / n_h, the largest weight of a user under a cap or smooth weights; any shape."""
    h = np.minimum(np.asarray(bounds, dtype=np.float64), float(problem.histogram.max_size))
    return np.asarray(h / problem.histogram.count_kept_rows(h))


def _add_noise(
    problem: MeanProblem, lost_weight_shares: npt.ArrayLike, largest_user_weights: npt.ArrayLike
) -> FloatArray:
    """Return the root mean square of a bias and of noise.

    The bias is the share ``lost_weight_shares`` of B; the noise is that at the largest weights.
    """
    noise_stds = math.sqrt(problem.relative_noise) * np.asarray(largest_user_weights, dtype=np.float64)
    return np.asarray(problem.value_bound * np.hypot(lost_weight_shares, noise_stds))


def compute_smooth_worst_error(problem: MeanProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the largest root mean square error of smooth weights over all values in [L, U].

    Args:
        problem: The question; counts are public.
        thresholds: h > 0 in rows per user, any shape.

    Returns:
        In the values' unit, of the shape of ``thresholds``; reached by values at L and U.
    """
    num_rows, t = float(problem.histogram.num_rows), _compute_largest_weights(problem, thresholds)
    return _add_noise(problem, problem.histogram.sum_excess(t * num_rows) / num_rows, t)


def compute_worst_error(problem: MeanProblem, user_weights: npt.ArrayLike) -> float:
    """Return the largest root mean square error over all values in [L, U] of any weights of users.

    Args:
        problem: The question; counts are public.
        user_weights: Weight of one user of each distinct size, shape (K,); over all users they sum to 1.

    Returns:
        In the values' unit: B sum (p - u)_+ and the noise of the largest weight together.
    """
    u = np.asarray(user_weights, dtype=np.float64)
    lost_shares = np.maximum(problem.histogram.sizes / problem.histogram.num_rows - u, 0.0)
    return float(_add_noise(problem, lost_shares @ problem.histogram.users, u.max()))


def bound_worst_cap_error(problem: MeanProblem, cap: int) -> float:
    """Return an upper bound on the root mean square error of a cap with random rows, over all values in [L, U].

    Args:
        problem: The question; counts are public.
        cap: h in rows per user, at least 1.

    Returns:
        In the values' unit; reached where every user has an even number of rows.
    """
    lost_share = math.sqrt(_maximise_cap_square(problem.histogram, cap))
    return float(_add_noise(problem, lost_share, _compute_largest_weights(problem, cap)))


def _maximise_cap_square(histogram: ContributionHistogram, cap: float) -> float:
    """Return the largest squared error of a cap before noise, over B^2: the maximum over all shares x_l."""
    sizes, num_users_per_size = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
    kept_rows = np.minimum(cap, sizes)
    total_kept = float(kept_rows @ num_users_per_size)
    c = kept_rows / total_kept - sizes / float(histogram.num_rows)
    # Of k out of s rows, drawn without replacement from s of which a share x is 1, the sum has variance k x (1 - x)
    # (s - k) / (s - 1).
    v = kept_rows * (sizes - kept_rows) / np.maximum(sizes - 1.0, 1.0) / total_kept**2
    with np.errstate(divide="ignore", invalid="ignore"):
        multipliers = np.where(v == 0.0, 0.0, v / (2.0 * np.abs(c)))  # mu from which x is 0 or 1.
        unconstrained_maxima = np.where(v > 0.0, c**2 / v, 0.0)
    order_by_multiplier = np.argsort(multipliers, kind="stable")
    multipliers, c, v, unconstrained_maxima, num_users_per_size = (
        column[order_by_multiplier]
        for column in (multipliers, c, v, unconstrained_maxima, num_users_per_size)
    )
    # On the i-th piece the first i sizes are at an end: phi(mu) = A2 mu^2 + A1 mu + A0.
    end_sums = sum_prefixes(num_users_per_size * np.maximum(c, 0.0))
    a2 = sum_suffixes(num_users_per_size * unconstrained_maxima) - 1.0
    a1 = sum_suffixes(num_users_per_size * c) + 2.0 * end_sums
    a0 = sum_suffixes(num_users_per_size * v) / 4.0
    # Beyond the largest sum c x the squared error falls in mu.
    interval_starts = np.r_[0.0, multipliers]
    interval_stops = np.minimum(np.r_[multipliers, math.inf], end_sums[-1])
    reached_mask = interval_starts <= interval_stops
    interval_starts, interval_stops, a2, a1, a0 = (
        column[reached_mask] for column in (interval_starts, interval_stops, a2, a1, a0)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        turning_points = np.where(a2 < 0.0, -a1 / (2.0 * a2), interval_starts)
    candidate_multipliers = np.stack(
        (interval_starts, interval_stops, np.clip(turning_points, interval_starts, interval_stops))
    )
    return max(float(np.max(a2 * candidate_multipliers**2 + a1 * candidate_multipliers + a0)), 0.0)


@dataclass(frozen=True)
class WorstCaseChoice:
    """The weights with the smallest worst-case error.

    Attributes:
        threshold: h of the smooth weights, in rows per user.
        largest_weight: t, the weight of the users with most.
        error: The largest error over all values, in the values' unit.
        certificate: The error and a lower bound for all weights of users.
    """

    threshold: float
    largest_weight: float
    error: float
    certificate: Certificate


OPTIMALITY_ARGUMENT = "the error is convex in the largest weight, and its slope was looked at"


def find_best_weights(problem: MeanProblem) -> WorstCaseChoice:
    """Return the weights with the smallest worst-case root mean square error, exactly; counts are public.

    Returns:
        `WorstCaseChoice`: smooth weights are among the best.
    """
    histogram = problem.histogram
    num_rows = float(histogram.num_rows)
    equal_row_bound = num_rows / float(histogram.num_users)
    best_row_bound = max(_find_row_bound(problem), equal_row_bound)
    threshold = _find_threshold_for_weight(histogram, best_row_bound / num_rows)
    largest_weight = float(threshold / histogram.count_kept_rows(threshold))
    error = float(
        _add_noise(problem, histogram.sum_excess(largest_weight * num_rows) / num_rows, largest_weight)
    )
    lower_bound = min(_compute_lower_bound(problem, best_row_bound, equal_row_bound), error)
    return WorstCaseChoice(
        threshold, largest_weight, error, Certificate(error, lower_bound, OPTIMALITY_ARGUMENT)
    )


def _find_row_bound(problem: MeanProblem) -> float:
    """Return T, n times the largest weight, at which the worst-case error of smooth weights is least.

    It is at a size, or where q (R - q T) = noise T below that size; R and q are the rows and users above the piece.
    """
    histogram, relative_noise_variance = problem.histogram, problem.relative_noise
    sizes = histogram.sizes.astype(np.float64)
    _, users_above, _ = histogram.compute_sums_at_sizes()
    k = int(
        np.argmax(
            relative_noise_variance * sizes >= users_above * histogram.sum_excess(sizes, slice(1, None))
        )
    )
    piece_start = float(sizes[k - 1]) if k else 0.0
    num_users_above = float(users_above[k - 1]) if k else float(histogram.num_users)
    # No rows are cut at the largest size, so there is such a k. The piece is expanded from its left end, in terms of
    # one sign: R - q T = (excess at the end) - q (T - end).
    num_cut_rows = float(histogram.sum_excess(piece_start, np.asarray(k)))
    slope_at_start = num_users_above * num_cut_rows - relative_noise_variance * piece_start
    return min(
        max(piece_start + slope_at_start / (num_users_above**2 + relative_noise_variance), piece_start),
        float(sizes[k]),
    )


def _compute_lower_bound(problem: MeanProblem, row_bound: float, min_row_bound: float) -> float:
    """Return a lower bound on the error at every largest weight: a tangent of the convex square of the error.

    Args:
        problem: The question.
        row_bound: T, the largest weight times n, at least ``min_row_bound``.
        min_row_bound: T of equal weights, the smallest possible.
    """
    histogram, relative_noise_variance = problem.histogram, problem.relative_noise
    above_mask, at_or_above_mask = histogram.sizes > row_bound, histogram.sizes >= row_bound
    num_cut_rows = float((histogram.users[above_mask] * (histogram.sizes[above_mask] - row_bound)).sum())
    left_slope, right_slope = (
        relative_noise_variance * row_bound - float(histogram.users[size_mask].sum()) * num_cut_rows
        for size_mask in (at_or_above_mask, above_mask)
    )
    # Every slope between the one-sided slopes gives a line under the square of the error. A level line gives the best
    # bound, if it is among them.
    tangent_slope = 2.0 * min(max(0.0, left_slope), right_slope)
    max_row_bound = max(float(histogram.max_size), row_bound)
    largest_fall = min(
        tangent_slope * (max_row_bound - row_bound), -tangent_slope * (row_bound - min_row_bound), 0.0
    )
    squared_lower_bound = max(num_cut_rows**2 + relative_noise_variance * row_bound**2 + largest_fall, 0.0)
    return problem.value_bound / histogram.num_rows * math.sqrt(squared_lower_bound)


def _find_threshold_for_weight(histogram: ContributionHistogram, largest_weight: float) -> float:
    """Return h with h / n_h = t: between two sizes n_h = S + q h, so that h = t S / (1 - t q)."""
    sizes = histogram.sizes.astype(np.float64)
    # h / n_h rises with h, so that its values at the sizes are in order.
    num_distinct_up_to = int(
        np.searchsorted(sizes / histogram.count_kept_rows(sizes), largest_weight, side="left")
    )
    if num_distinct_up_to == 0:
        return float(sizes[0])
    if num_distinct_up_to == sizes.size:
        return float(sizes[-1])
    rows_below, num_users_above, _ = histogram.compute_sums_at(float(sizes[num_distinct_up_to - 1]))
    remaining_weight = 1.0 - largest_weight * float(num_users_above)
    threshold = (
        largest_weight * float(rows_below) / remaining_weight
        if remaining_weight > 0.0
        else float(sizes[num_distinct_up_to])
    )
    return float(np.clip(threshold, sizes[num_distinct_up_to - 1], sizes[num_distinct_up_to]))
