"""Means per group: noisy sums and numbers of rows, and their ratios, clamped to the range of the values.

Each user keeps L0 of their groups at random and in each at most L-infinity rows, drawn at random. With S~ the noisy sum
of a group's values minus the middle of their range, and N~ its noisy number of rows, the release is
middle + clamp(S~ / max(N~, 1)) to the range. The program settles the noise:

- OpenDP and plain Python: the kept rows' distances from the lower end of the range are added up, and those from the
  upper end; both entries of all groups are released as one vector, for which epsilon and delta are spent once. S~ is
  half the difference of the two, N~ their sum divided by the length of the range.
- The others: S~ and N~ have independent noise, for a part of the budget each.

The error is exact over the noise (`compute_laplace_squares`, `compute_normal_squares`). The distribution over the
random choice of groups and rows is represented by its moments up to the third, which are exact except that of the sum
alone; values of single rows are not kept. If nothing is left out at random the error is exact. Over 200,000 runs with
about 15 rows left in each group it was within 0.7 % of the truth in every group (a normal pair of the first two
moments: 6 %). There is no lower bound over ranges of L0 and L-infinity, so there is a certificate only if every pair
was evaluated; it names the approximation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.noise_error import NoiseKind
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.per_group.pair_of_bounds import PairChoice, search_pairs
from dpcore.per_group.problem import PerGroupProblem

GRID_SHAPE = 6, 6
"""Points of the first grid."""
ONE_POINT_RULE = ((0.0, 1.0),)
NORMAL_RULE = ((-math.sqrt(3.0), 1.0 / 6.0), (0.0, 2.0 / 3.0), (math.sqrt(3.0), 1.0 / 6.0))
"""The Gauss-Hermite rule of three points."""
APPROXIMATION_TEXT = "the noise is exact, and the random choice has its moments up to the third"


@dataclass(frozen=True, eq=False)
class MeanMoments:
    """Exact moments of every group's kept sum, of values less the range's middle, and kept rows, and their noise.

    Arrays have shape (num_entries,).

    Attributes:
        mean_sums: Mean of the sum of values minus the middle of their range.
        mean_rows: Mean of the number of rows.
        sum_variances: Variance of the sum from the random choice of groups and rows.
        rows_variances: Variance of the number of rows from the random choice of groups.
        covariances: Covariance of sum and number of rows. The noise adds nothing to it.
        third_cumulants: Third cumulants before noise, of (rows, rows, rows), (rows, rows, sum) and (rows, sum, sum),
            shape (3, num_entries).
        sum_noise_std: Standard deviation of the sum's noise.
        rows_noise_std: Standard deviation of the noise of the rows.
    """

    mean_sums: FloatArray
    mean_rows: FloatArray
    sum_variances: FloatArray
    rows_variances: FloatArray
    covariances: FloatArray
    third_cumulants: FloatArray
    sum_noise_std: float
    rows_noise_std: float


def compute_mean_moments(problem: PerGroupProblem, max_groups: int, max_rows: int) -> MeanMoments:
    """Return the moments of every group's kept sum and kept rows under a pair of bounds, and the noise of both.

    Args:
        problem: The question; its statistic is a mean.
        max_groups: L0, whole, at least 1.
        max_rows: L-infinity, rows per user and group, whole, at least 1.
    """
    pairs = problem.pairs
    assert pairs.sums is not None
    assert pairs.sums_of_squares is not None
    p, q = pairs.compute_sample_probabilities(max_groups)
    pq = p * q
    pair_rows = pairs.rows.astype(np.float64)
    centred_sums = pairs.sums - problem.range_middle * pair_rows
    kept_rows = np.minimum(pair_rows, max_rows)
    kept_row_shares = kept_rows / pair_rows
    # Rows drawn without replacement: variance k (1 - k / rows) S^2, S^2 with divisor rows - 1 (Cochran 1977, theorem
    # 2.2).
    squared_deviations = pairs.sums_of_squares - pairs.sums**2 / pair_rows
    row_variances = np.maximum(squared_deviations, 0.0) / np.maximum(pair_rows - 1.0, 1.0)
    drawn_variances = kept_rows * (1.0 - kept_row_shares) * row_variances
    sum_noise_std, rows_noise_std = problem.parameters.mean_noise(max_groups, max_rows)
    kept_sums = kept_row_shares * centred_sums
    # The third cumulant of a Bernoulli variable.
    k3 = pq * (1.0 - 2.0 * p)
    cumulant_factors = k3 * kept_rows**2, k3 * kept_sums * kept_rows, pq * drawn_variances + k3 * kept_sums**2
    return MeanMoments(
        mean_sums=problem.sum_by_group(p * kept_sums),
        mean_rows=problem.sum_by_group(p * kept_rows),
        sum_variances=problem.sum_by_group(pq * kept_sums**2 + p * drawn_variances),
        rows_variances=problem.sum_by_group(pq * kept_rows**2),
        covariances=problem.sum_by_group(pq * kept_sums * kept_rows),
        third_cumulants=np.array(
            [problem.sum_by_group(kept_rows * cumulant_terms) for cumulant_terms in cumulant_factors]
        ),
        sum_noise_std=sum_noise_std,
        rows_noise_std=rows_noise_std,
    )


def compute_mean_squares(problem: PerGroupProblem, max_groups: int, max_rows: int) -> FloatArray:
    """Return the mean squared error of every group's mean, shape (num_entries,).

    For groups without rows the number means nothing; their weight in every objective is 0.
    """
    m = compute_mean_moments(problem, max_groups, max_rows)
    lower, upper = problem.parameters.mean_range
    half_range, centred_means = (upper - lower) / 2.0, problem.centred_means
    is_split = problem.parameters.splits_means
    mean_squares = np.zeros(centred_means.size)
    for conditional_rows, conditional_sums, sum_variances, weight_of_point in _condition_sums(m):
        if problem.parameters.noise.kind is NoiseKind.GAUSSIAN:
            noisy_variances = sum_variances + m.sum_noise_std**2
            squares_at_point = compute_normal_squares(
                conditional_sums,
                conditional_rows,
                noisy_variances,
                m.rows_noise_std,
                half_range,
                centred_means,
            )
        else:
            # Half the difference of two entries with noise of scale b has variance b^2; noise of the sum itself 2 b^2.
            noise_scale = m.sum_noise_std / math.sqrt(2.0) if is_split else m.sum_noise_std
            sum_stds, squares_at_point = np.sqrt(sum_variances), np.zeros(centred_means.size)
            for normal_node, node_weight in NORMAL_RULE if sum_stds.any() else ONE_POINT_RULE:
                node_sums = conditional_sums + normal_node * sum_stds
                squares_at_point += node_weight * compute_laplace_squares(
                    node_sums, conditional_rows, noise_scale, half_range, centred_means, is_split=is_split
                )
        mean_squares += weight_of_point * squares_at_point
    return mean_squares


def _condition_sums(m: MeanMoments) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Yield quadrature points over the random choice: rows, mean and variance of the sum given these, and weights.

    The points for the rows are their mean and the roots z of z^2 - skew z - 3, in standard deviations from it. They
    match the first three moments; the fourth is 3 + skew^2, as for a Poisson variable. Given the rows the sum is taken
    as normal. Its mean is quadratic and its variance linear in the rows, which matches the mixed third moments.
    """
    if not m.sum_variances.any() and not m.rows_variances.any():
        yield m.mean_rows, m.mean_sums, np.zeros_like(m.mean_sums), np.ones_like(m.mean_sums)
        return
    rows_stds = np.sqrt(m.rows_variances)
    rows_scales = np.where(rows_stds > 0.0, rows_stds, 1.0)
    # In standard deviations of the rows: the sum's mean given z is its mean + b z + c (z^2 - skew z - 1), its variance
    # v + d z.
    k3 = m.third_cumulants / rows_scales
    skewness, k, b = k3[0] / rows_scales**2, k3[1] / rows_scales, m.covariances / rows_scales
    c = (k - b * skewness) / 2.0
    v = np.maximum(m.sum_variances - b**2 - 2.0 * c**2, 0.0)
    d = k3[2] - 2.0 * b * k + b**2 * skewness
    yield m.mean_rows, m.mean_sums - c, v, np.full_like(v, 2.0 / 3.0)
    half_gap = np.sqrt(3.0 + skewness**2 / 4.0)
    for z in (skewness / 2.0 - half_gap, skewness / 2.0 + half_gap):
        sum_means, sum_variances = m.mean_sums + b * z + 2.0 * c, np.maximum(v + d * z, 0.0)
        yield m.mean_rows + rows_stds * z, sum_means, sum_variances, 0.5 / (half_gap * np.abs(z))


def compute_mean_error(problem: PerGroupProblem, max_groups: int, max_rows: int) -> float:
    """Return the problem's objective for means under a pair of bounds."""
    return problem.combine_errors(compute_mean_squares(problem, max_groups, max_rows))


def compute_errors_of_one_mean(problem: PerGroupProblem) -> FloatArray:
    """Return the absolute error of every group, shape (num_entries,), if the mean of all rows is published for it."""
    assert problem.pairs.sums is not None
    centred_mean = float(problem.pairs.sums.sum()) / float(problem.pairs.rows.sum()) - problem.range_middle
    return np.abs(problem.centred_means - centred_mean)


def find_useful_size(problem: PerGroupProblem, error_by_group: FloatArray) -> float | None:
    """Return the smallest number of rows from which groups' own means err less than one mean for all, or None.

    Args:
        problem: The question; its statistic is a mean.
        error_by_group: Root mean squared error of every group, shape (num_entries,).

    Returns:
        The smallest n for which, over the groups of at least n rows, the mean squared error is below that of one
        overall mean; None if there is none.
    """
    group_sizes = problem.totals
    order_by_rows = np.argsort(-group_sizes, kind="stable")
    order_by_rows = order_by_rows[group_sizes[order_by_rows] > 0.0]
    cumulated_gains = np.cumsum(
        compute_errors_of_one_mean(problem)[order_by_rows] ** 2 - error_by_group[order_by_rows] ** 2
    )
    # Groups of equal size belong together: only the last of each size is a candidate.
    is_last_of_size = np.r_[group_sizes[order_by_rows][1:] != group_sizes[order_by_rows][:-1], True]
    indices_with_gain = np.flatnonzero((cumulated_gains > 0.0) & is_last_of_size)
    return float(group_sizes[order_by_rows][indices_with_gain[-1]]) if indices_with_gain.size else None


def best_mean_pair(problem: PerGroupProblem, *, should_stop: ShouldStop = never) -> PairChoice:
    """Return the best pair of bounds for means, or 0 and 0 if publishing the middle of the range is better.

    All pairs are tried if they are few. Else it is the best of a search, without a certificate.

    Args:
        problem: The question; its statistic is a mean.
        should_stop: Called after every evaluation; True ends the search with the best so far.
    """
    max_bounds = int(problem.pairs.groups_per_user.max()), int(problem.pairs.rows.max())
    compute_error = functools.partial(compute_mean_error, problem)
    errors_by_pair, is_settled = search_pairs(compute_error, max_bounds, GRID_SHAPE, 2.0, should_stop)
    best_bounds, num_tried = min(errors_by_pair, key=errors_by_pair.__getitem__), len(errors_by_pair)
    least_error, beats_nothing = min((problem.error_of_nothing, False), (errors_by_pair[best_bounds], True))
    certificate = None
    if num_tried == max_bounds[0] * max_bounds[1]:
        approximation = APPROXIMATION_TEXT if max(max_bounds) > 1 else ""
        certificate = Certificate(least_error, least_error, "every pair was tried", approximation)
        stop_reason = f"All {num_tried:,} pairs were tried."
        nothing_sentence = "Publishing the middle of the range is best."
    else:
        num_tried_text = wording.counted(num_tried, "pair")
        stop_reason = (
            f"{'Best' if is_settled else 'Stopped: best'} of {num_tried_text} tried, without a proof."
        )
        nothing_sentence = "No pair tried is better than publishing the middle of the range."
    if not beats_nothing:
        best_bounds, stop_reason = (0, 0), f"{nothing_sentence} {stop_reason}"
    max_groups, max_rows = best_bounds
    return PairChoice(
        max_groups, float(max_rows), least_error, certificate, num_tried, stop_reason, is_settled
    )


# --- the mean squared error of a noisy ratio ------------------------------------------------------------------
#
# Mean squared error of a noisy mean, clamp(S / max(N, 1)) in [-h, h], for a noisy sum S and a noisy number of rows N.
#
# Without a split the noise is that of a vector with two entries per group, the kept rows' distances from the lower and
# from the upper end of the range (`PerGroupParameters.mean_noise`): S is half their difference, N their sum divided by
# the range 2 h.
#
# - Gaussian noise: S and N stay independent, and the clamp of a normal S has closed moments. The integral over N has
#   panels that meet where N = 1.
# - Laplace noise of scale b on both entries: with g = b / (2 h), the noise T of N and D of S / h have the density
#   exp(-max(|T|, |D|) / g) / (8 g^2). Given T, D is uniform up to |T| and has exponential tails beyond, so that the
#   clamp's moments are closed again. The integral over T has panels that meet at T = 0, where N = 1, and where the
#   clamp leaves the uniform part.
# - Laplace noise on S and on N, where the budget is split: T and D are independent. It is the same integral without the
#   uniform part, in scales of b / h.

MIN_NOISY_ROWS = 1.0
"""The smallest divisor."""
NUM_NODES = 12
"""Nodes of a panel: relative errors up to 3e-4 (Laplace) and 2e-5 (Gaussian noise)."""
MAX_NOISE_SCALES = 36.0
"""Ends of the integrals in scales of Laplace noise; a quarter in standard deviations."""
BLOCK_ENTRIES = 1 << 16
"""Entries of a block, in the processor's cache."""


def compute_laplace_squares(
    kept_sums: FloatArray,
    kept_row_counts: FloatArray,
    noise_scale: float,
    half_range: float,
    centred_means: FloatArray,
    *,
    is_split: bool = False,
) -> FloatArray:
    """Return each group's mean squared error of the ratio with Laplace noise; sums and means are centred.

    Args:
        kept_sums: Sum of the values minus the middle of their range, before noise, shape (n,).
        kept_row_counts: Number of rows, before noise, shape (n,).
        noise_scale: Scale b of the noise on the two entries of each group, or of the sum if it is split; above 0, in
            the unit of values.
        half_range: Half of the range, h.
        centred_means: True mean minus the middle of the range, shape (n,).
        is_split: True if sum and rows have independent noise; that of the rows then has the scale b / h.
    """
    g = noise_scale / half_range if is_split else noise_scale / (2.0 * half_range)
    integrate = functools.partial(_integrate_laplace, min_rows=MIN_NOISY_ROWS / g, is_split=is_split)
    scaled_arrays = kept_sums / (half_range * g), kept_row_counts / g, centred_means / half_range
    return half_range**2 * _integrate_in_blocks(integrate, *scaled_arrays)


def _integrate_laplace(
    x: FloatArray, n: FloatArray, centred_means: FloatArray, min_rows: float, is_split: bool
) -> FloatArray:
    """Return the mean squared error over h^2, shape (n,), by a rule over the Laplace noise of the rows.

    Half of the range is h, the scale of the noise of the rows is g: ``x`` holds sums over h g, ``n`` rows over g,
    ``centred_means`` means over h, each of shape (n, 1).
    """
    # Nodes u and v, with their weights; t0 is the noise at which N is least. From 0 to t0 there are two panels, of
    # lengths b and c: the clamp leaves the uniform part between them. At the nodes N has the noise t.
    (u, wu), (v, wv) = _build_laguerre_rule(), _build_legendre_rule()
    t0 = min_rows - n
    lo, hi, c = np.minimum(t0, 0.0), np.maximum(t0, 0.0), np.minimum(np.abs(t0), MAX_NOISE_SCALES)
    b = np.clip((n - np.abs(x)) / (1.0 if is_split else 2.0), 0.0, c)
    c, s = c - b, np.sign(t0)
    t = np.hstack((lo - u, hi + u, s * b * v, s * (b + c * v)))
    panel_weights = np.hstack((b * np.exp(-b * v), c * np.exp(-b - c * v))) * np.tile(wv, 2)
    node_weights = np.hstack((np.exp(lo) * wu, np.exp(-hi) * wu, panel_weights))
    abs_noise = np.zeros_like(t) if is_split else np.abs(t)
    divisors = np.maximum(n + t, min_rows)
    # The error times the divisor is D, clamped to [-divisor - x, divisor - x], plus this shift.
    shifts_times_divisors = x - centred_means * divisors
    e1, e2 = _integrate_tails(divisors - x, abs_noise)
    f1, f2 = _integrate_tails(divisors + x, abs_noise)
    squares_at_nodes = (
        e2 + f2 + 2.0 * shifts_times_divisors * (e1 - f1) + shifts_times_divisors**2
    ) / divisors**2
    # The density of T is (|T| + 1) exp(-|T|) / 4, or exp(-|T|) / 2; the exponential is part of the weights.
    node_weights = node_weights * (0.5 if is_split else (abs_noise + 1.0) / 4.0)
    return np.asarray(np.einsum("ij,ij->i", squares_at_nodes, node_weights))


def _integrate_tails(upper_ends: FloatArray, abs_noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals over y from 0 to ``upper_ends`` of P(D > y) and of 2 y P(D > y).

    D is the scaled noise of the sum, given that the scaled noise T of the rows has the size ``abs_noise``.
    E clamp(D; -a, b) is the first at b minus that at a; E clamp^2 is the sum of the second at both, also for negative a
    or b.
    """
    y = np.abs(upper_ends)
    # The density of D is f up to u = min(y, |T|), and falls exponentially over the rest, r.
    u = np.minimum(y, abs_noise)
    r, f = y - u, 1.0 / (abs_noise + 1.0)
    decayed_shares = -np.expm1(-r)
    e1 = u / 2.0 - u**2 * f / 4.0 + f * decayed_shares / 2.0
    e2 = u**2 / 2.0 - u**3 * f / 3.0 + decayed_shares - f * r * (1.0 - decayed_shares)
    negative_mask = upper_ends < 0.0
    return np.where(negative_mask, e1 - y, e1), np.where(negative_mask, y * y - e2, e2)


def compute_normal_squares(
    kept_sums: FloatArray,
    kept_row_counts: FloatArray,
    sum_variances: FloatArray,
    rows_noise_std: float,
    half_range: float,
    centred_means: FloatArray,
) -> FloatArray:
    """Return each group's mean squared error of the ratio if sum and rows are normal; sums and means are centred.

    Args:
        kept_sums: Mean of the sum of values less the middle of their range, shape (n,).
        kept_row_counts: Number of rows, before noise, shape (n,).
        sum_variances: Variance of the noisy sum, above 0, shape (n,).
        rows_noise_std: Standard deviation of the noise of the rows, above 0.
        half_range: Half of the range.
        centred_means: True mean minus the middle of the range, shape (n,).
    """
    integrate = functools.partial(_integrate_normal, rows_noise_std=rows_noise_std, half_range=half_range)
    return _integrate_in_blocks(integrate, kept_sums, kept_row_counts, sum_variances, centred_means)


def _integrate_normal(
    kept_sums: FloatArray,
    kept_row_counts: FloatArray,
    sum_variances: FloatArray,
    centred_means: FloatArray,
    rows_noise_std: float,
    half_range: float,
) -> FloatArray:
    """Return the mean squared error by a Gauss-Legendre rule over the noise of the rows; arguments of shape (n, 1)."""
    from scipy.special import ndtr

    v, wv = _build_legendre_rule()
    max_node = MAX_NOISE_SCALES / 4.0
    # From -9 to 9 standard deviations of the rows, split where N reaches its minimum and in the middle of the longer
    # part.
    z0 = np.clip((MIN_NOISY_ROWS - kept_row_counts) / rows_noise_std, -max_node, max_node)
    z1 = np.where(z0 > 0.0, (z0 - max_node) / 2.0, (z0 + max_node) / 2.0)
    last_edges, inner_edges = np.full_like(z0, max_node), (np.minimum(z0, z1), np.maximum(z0, z1))
    panel_edges = np.hstack((-last_edges, *inner_edges, last_edges))
    panel_lengths = np.diff(panel_edges)[..., None]
    z = (panel_edges[:, :-1, None] + panel_lengths * v).reshape(z0.size, -1)
    node_weights = (panel_lengths * wv).reshape(z.shape) * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    divisors = np.maximum(kept_row_counts + rows_noise_std * z, MIN_NOISY_ROWS)
    conditional_means, conditional_deviations = kept_sums / divisors, np.sqrt(sum_variances) / divisors
    # Beyond 100 standard deviations the density is 0, and infinity times 0 would be NaN.
    lo, hi = (
        np.clip(x / conditional_deviations, -1e2, 1e2)
        for x in (-half_range - conditional_means, half_range - conditional_means)
    )
    shares_below, shares_above = ndtr(lo), ndtr(-hi)
    f0, f1 = (np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in (lo, hi))
    # E (clamp - truth)^2: the parts above, below and inside the range.
    errors_at_mean = conditional_means - centred_means
    squares_at_nodes = (
        (half_range - centred_means) ** 2 * shares_above
        + (half_range + centred_means) ** 2 * shares_below
        + (errors_at_mean**2 + conditional_deviations**2) * np.maximum(1.0 - shares_below - shares_above, 0.0)
        - 2.0 * errors_at_mean * conditional_deviations * (f1 - f0)
        - conditional_deviations**2 * (hi * f1 - lo * f0)
    )
    return np.asarray(np.einsum("ij,ij->i", np.maximum(squares_at_nodes, 0.0), node_weights))


def _integrate_in_blocks(integrate_block: Callable[..., FloatArray], *arrays: FloatArray) -> FloatArray:
    """Return the result of ``integrate_block`` for all groups, in blocks of groups that fit the processor's cache.

    Args:
        integrate_block: Takes the arrays with a second axis of length 1; returns shape (groups,).
        arrays: One entry per group, shape (num_groups,) each; at least one group.
    """
    block_size = max(1, BLOCK_ENTRIES // (4 * NUM_NODES))
    results_of_blocks = [
        integrate_block(
            *(group_array[block_start : block_start + block_size, None] for group_array in arrays)
        )
        for block_start in range(0, arrays[0].size, block_size)
    ]
    return np.concatenate(results_of_blocks)


@functools.cache
def _build_laguerre_rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes above 0 and weights of the Gauss-Laguerre rule; cached, as it costs as much as 30 groups."""
    nodes, weights = np.polynomial.laguerre.laggauss(NUM_NODES)
    return nodes, weights


@functools.cache
def _build_legendre_rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes in [0, 1] and weights of the Gauss-Legendre rule."""
    nodes, weights = np.polynomial.legendre.leggauss(NUM_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0
