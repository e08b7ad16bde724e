"""Means per group: noisy sums and numbers of rows, and their ratios, clamped to the range of the values.

Each user keeps L0 of their groups at random and in each at most L-infinity rows, drawn at random. With S~ the noisy sum
of a group's values minus the middle of their range, and N~ its noisy number of rows, the release is
middle + clamp(S~ / max(N~, 1)) to the range. The program settles the noise:

- OpenDP and plain Python: the kept rows' distances from the lower end of the range are added up, and those from the
  upper end; both entries of all groups are released as one vector, for which epsilon and delta are spent once. S~ is
  half the difference of the two, N~ their sum divided by the length of the range.
- The others: S~ and N~ have independent noise, for a part of the budget each.

The error is exact over the noise (`laplace_squares`, `normal_squares`). The distribution over the random choice of
groups and rows is represented by its moments up to the third, which are exact except that of the sum alone; values of
single rows are not kept. If nothing is left out at random the error is exact. Over 200,000 runs with about 15 rows
left in each group it was within 0.7 % of the truth in every group (a normal pair of the first two moments: 6 %). There
is no lower bound over ranges of L0 and L-infinity, so there is a certificate only if every pair was evaluated; it names
the approximation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.noise_error import NoiseKind
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.per_group.pair_of_bounds import PairChoice, search_pairs
from dpcore.per_group.parameters import PerGroupProblem

GRID_POINTS = 6, 6
"""Points of the first grid."""
ONE_NODE = ((0.0, 1.0),)
NORMAL = ((-math.sqrt(3.0), 1.0 / 6.0), (0.0, 2.0 / 3.0), (math.sqrt(3.0), 1.0 / 6.0))
"""The Gauss-Hermite rule of three points."""
APPROXIMATE = "the noise is exact, and the random choice has its moments up to the third"


@dataclass(frozen=True, eq=False)
class MeanMoments:
    """Moments of every group's noisy sum and noisy rows, each array of shape (num_entries,), exactly.

    Attributes:
        sum_mean: Mean of the sum of values minus the middle of their range.
        rows_mean: Mean of the number of rows.
        sum_sampling: Variance of the sum from the random choice of groups and rows.
        rows_sampling: Variance of the number of rows from the random choice of groups.
        covariance: Covariance of sum and number of rows. The noise adds nothing to it.
        third: Third cumulants before noise, of (rows, rows, rows), (rows, rows, sum) and (rows, sum, sum), shape
            (3, num_entries).
        sum_noise: Standard deviation of the sum's noise.
        rows_noise: Standard deviation of the noise of the rows.
    """

    sum_mean: FloatArray
    rows_mean: FloatArray
    sum_sampling: FloatArray
    rows_sampling: FloatArray
    covariance: FloatArray
    third: FloatArray
    sum_noise: float
    rows_noise: float


def compute_mean_moments(problem: PerGroupProblem, max_groups: int, max_rows: int) -> MeanMoments:
    """Return the moments under a pair of bounds.

    Args:
        problem: The question; its statistic is a mean.
        max_groups: L0, whole, at least 1.
        max_rows: L-infinity, rows per user and group, whole, at least 1.
    """
    pairs, sizes = problem.pairs, problem.pairs.groups_per_user
    assert pairs.sums is not None
    assert pairs.sums_of_squares is not None
    keep_probability = np.repeat(np.minimum(1.0, max_groups / sizes), sizes)
    # p (1 - p) of a Bernoulli variable, without taking a number near 1 from 1.
    mixed = keep_probability * np.repeat(np.maximum(sizes - max_groups, 0) / sizes, sizes)
    rows = pairs.rows.astype(np.float64)
    centred = pairs.sums - problem.range_middle * rows
    kept_rows = np.minimum(rows, max_rows)
    share = kept_rows / rows
    # Rows drawn without replacement: variance k (1 - k / rows) S^2, S^2 with divisor rows - 1 (Cochran 1977, theorem
    # 2.2).
    squares = pairs.sums_of_squares - pairs.sums**2 / rows
    row_variance = kept_rows * (1.0 - share) * np.maximum(squares, 0.0) / np.maximum(rows - 1.0, 1.0)
    sum_noise, rows_noise = problem.parameters.mean_noise(max_groups, max_rows)
    kept_sums = share * centred
    # The third cumulant of a Bernoulli variable.
    skewed = mixed * (1.0 - 2.0 * keep_probability)
    mixed_squares = mixed * row_variance + skewed * kept_sums**2
    thirds = (skewed * kept_rows**2, skewed * kept_sums * kept_rows, mixed_squares)
    return MeanMoments(
        sum_mean=problem.per_group(keep_probability * kept_sums),
        rows_mean=problem.per_group(keep_probability * kept_rows),
        sum_sampling=problem.per_group(mixed * kept_sums**2 + keep_probability * row_variance),
        rows_sampling=problem.per_group(mixed * kept_rows**2),
        covariance=problem.per_group(mixed * kept_sums * kept_rows),
        third=np.array([problem.per_group(kept_rows * cumulant) for cumulant in thirds]),
        sum_noise=sum_noise,
        rows_noise=rows_noise,
    )


def compute_mean_squares(problem: PerGroupProblem, max_groups: int, max_rows: int) -> FloatArray:
    """Return the mean squared error of every group's mean, shape (num_entries,); undefined for groups without rows."""
    m = compute_mean_moments(problem, max_groups, max_rows)
    lower, upper = problem.parameters.mean_range
    half_range, truth = (upper - lower) / 2.0, problem.centred_means
    is_gaussian = problem.parameters.noise.kind is NoiseKind.GAUSSIAN
    is_split = problem.parameters.splits_means
    errors = np.zeros(truth.size)
    for rows, sums, variance, weight in _conditional_sums(m):
        if is_gaussian:
            squares = normal_squares(sums, rows, variance + m.sum_noise**2, m.rows_noise, half_range, truth)
        else:
            # Half the difference of two entries with noise of scale b has variance b^2; noise of the sum itself 2 b^2.
            scale = m.sum_noise / math.sqrt(2.0) if is_split else m.sum_noise
            deviation, squares = np.sqrt(variance), np.zeros(truth.size)
            for step, share in NORMAL if deviation.any() else ONE_NODE:
                squares += share * laplace_squares(
                    sums + step * deviation, rows, scale, half_range, truth, is_split=is_split
                )
        errors += weight * squares
    return errors


def _conditional_sums(m: MeanMoments) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Yield quadrature points over the random choice: rows, mean and variance of the sum given these, and weights.

    The points for the rows are their mean and the roots z of z^2 - skew z - 3, in standard deviations from it. They
    match the first three moments; the fourth is 3 + skew^2, as for a Poisson variable. Given the rows the sum is taken
    as normal. Its mean is quadratic and its variance linear in the rows, which matches the mixed third moments.
    """
    if not m.sum_sampling.any() and not m.rows_sampling.any():
        yield m.rows_mean, m.sum_mean, np.zeros_like(m.sum_mean), np.ones_like(m.sum_mean)
        return
    spread = np.sqrt(m.rows_sampling)
    unit = np.where(spread > 0.0, spread, 1.0)
    skew, mixed = m.third[0] / unit**3, m.third[1] / unit**2
    slope = m.covariance / unit
    bend = (mixed - slope * skew) / 2.0
    sum_variance = np.maximum(m.sum_sampling - slope**2 - 2.0 * bend**2, 0.0)
    tilt = m.third[2] / unit - 2.0 * slope * mixed + slope**2 * skew
    yield m.rows_mean, m.sum_mean - bend, sum_variance, np.full_like(sum_variance, 2.0 / 3.0)
    root = np.sqrt(3.0 + skew**2 / 4.0)
    for z in (skew / 2.0 - root, skew / 2.0 + root):
        mean, variance = m.sum_mean + slope * z + 2.0 * bend, np.maximum(sum_variance + tilt * z, 0.0)
        yield m.rows_mean + spread * z, mean, variance, 0.5 / (root * np.abs(z))


def mean_error(problem: PerGroupProblem, max_groups: int, max_rows: int) -> float:
    """Return the problem's objective under a pair of bounds."""
    return problem.error(compute_mean_squares(problem, max_groups, max_rows))


def error_of_one_mean(problem: PerGroupProblem) -> FloatArray:
    """Return the error of every group if the mean of all rows is published for it, without noise."""
    assert problem.pairs.sums is not None
    overall = float(problem.pairs.sums.sum()) / float(problem.pairs.rows.sum()) - problem.range_middle
    return np.abs(problem.centred_means - overall)


def find_useful_size(problem: PerGroupProblem, errors: FloatArray) -> float | None:
    """Return the smallest number of rows from which groups' own means err less than one mean for all.

    Args:
        problem: The question; its statistic is a mean.
        errors: Root mean squared error of every group, shape (num_entries,).

    Returns:
        The smallest n for which, over the groups of at least n rows, the mean squared error is below that of one
        overall mean; None if there is none.
    """
    size = problem.totals
    order = np.argsort(-size, kind="stable")
    order = order[size[order] > 0.0]
    gain = np.cumsum(error_of_one_mean(problem)[order] ** 2 - errors[order] ** 2)
    # Groups of equal size belong together: only the last of each size is a candidate.
    is_last = np.r_[size[order][1:] != size[order][:-1], True]
    better = np.flatnonzero((gain > 0.0) & is_last)
    return float(size[order][better[-1]]) if better.size else None


def best_mean_pair(problem: PerGroupProblem, *, should_stop: ShouldStop = never) -> PairChoice:
    """Return the best pair of bounds for means: of all pairs if they are few, else the best of a search.

    Args:
        problem: The question; its statistic is a mean.
        should_stop: Called after every evaluation; True ends the search with the best so far.
    """
    largest = int(problem.pairs.groups_per_user.max()), int(problem.pairs.rows.max())
    errors, settled = search_pairs(
        lambda groups, rows: mean_error(problem, groups, rows), largest, GRID_POINTS, 2.0, should_stop
    )
    best = min(errors, key=errors.__getitem__)
    error, releases = min((problem.error_of_nothing, False), (errors[best], True))
    certificate = None
    if len(errors) == largest[0] * largest[1]:
        approximation = APPROXIMATE if max(largest) > 1 else ""
        certificate = Certificate(error, error, "every pair was tried", approximation)
        stop_reason = f"All {len(errors):,} pairs were tried."
        opening = "Publishing the middle of the range is best."
    else:
        pairs = wording.counted(len(errors), "pair")
        stop_reason = f"{'Best' if settled else 'Stopped: best'} of {pairs} tried, without a proof."
        opening = "No pair tried is better than publishing the middle of the range."
    if not releases:
        best, stop_reason = (0, 0), f"{opening} {stop_reason}"
    return PairChoice(best[0], float(best[1]), error, certificate, len(errors), stop_reason, settled)


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

MIN_ROWS = 1.0
"""The smallest divisor."""
NODES = 12
"""Nodes of a panel: relative errors up to 3e-4 (Laplace) and 2e-5 (Gaussian noise)."""
MAX_SCALES = 36.0
"""Ends of the integrals in scales of Laplace noise; a quarter in standard deviations."""
BLOCK = 1 << 16
"""Entries of a block, in the processor's cache."""


def laplace_squares(
    sums: FloatArray,
    rows: FloatArray,
    scale: float,
    half_range: float,
    truth: FloatArray,
    *,
    is_split: bool = False,
) -> FloatArray:
    """Return the mean squared error of the ratio with Laplace noise, of the shape of ``sums``.

    Args:
        sums: Sum of the values minus the middle of their range, before noise, shape (n,).
        rows: Number of rows, before noise, shape (n,).
        scale: Scale b of the noise on the two entries of each group, or of the sum if it is split; above 0, in the unit
            of values.
        half_range: Half of the range, h.
        truth: True mean minus the middle of the range, shape (n,).
        is_split: True if sum and rows have independent noise; that of the rows then has the scale b / h.
    """
    unit = scale / half_range if is_split else scale / (2.0 * half_range)
    x, n, mean = sums / (half_range * unit), rows / unit, truth / half_range
    blocks = [
        _laplace(x[i, None], n[i, None], mean[i, None], MIN_ROWS / unit, is_split) for i in _blocks(sums.size)
    ]
    return np.concatenate(blocks) * half_range**2


def _laplace(x: FloatArray, n: FloatArray, truth: FloatArray, min_rows: float, is_split: bool) -> FloatArray:
    """Return the mean squared error in scaled units: sums over h g, rows over g, means over h, noise of scale 1."""
    tail_nodes, by_tail = _laguerre_rule()
    share, by_share = _legendre_rule()
    turn = min_rows - n  # The noise at which N is least.
    low, high, length = np.minimum(turn, 0.0), np.maximum(turn, 0.0), np.minimum(np.abs(turn), MAX_SCALES)
    bend = np.clip((n - np.abs(x)) / (1.0 if is_split else 2.0), 0.0, length)
    rest, sign = length - bend, np.sign(turn)
    noise = np.hstack(
        (low - tail_nodes, high + tail_nodes, sign * bend * share, sign * (bend + rest * share))
    )
    tail_weights = np.hstack((np.exp(low) * by_tail, np.exp(-high) * by_tail))
    panel_weights = np.hstack((bend * np.exp(-bend * share), rest * np.exp(-bend - rest * share)))
    weight = np.hstack((tail_weights, panel_weights * np.tile(by_share, 2)))
    size = np.zeros_like(noise) if is_split else np.abs(noise)
    divisor = np.maximum(n + noise, min_rows)
    # The error times the divisor is D, clamped to [-divisor - x, divisor - x], plus this shift.
    shift = x - truth * divisor
    up, up_square = _tail_integrals(divisor - x, size)
    down, down_square = _tail_integrals(divisor + x, size)
    square = (up_square + down_square + 2.0 * shift * (up - down) + shift * shift) / (divisor * divisor)
    # The density of T is (|T| + 1) exp(-|T|) / 4, or exp(-|T|) / 2; the exponential is part of the weights.
    return np.asarray(np.einsum("ij,ij->i", square, weight * (0.5 if is_split else (size + 1.0) / 4.0)))


def _tail_integrals(end: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals from 0 to ``end`` of P(D > y) and of 2 y P(D > y), for D given |T| = ``size``.

    E clamp(D; -a, b) is the first at b minus that at a; E clamp^2 is the sum of the second at both, also for negative a
    or b.
    """
    far = np.abs(end)
    inside = np.minimum(far, size)
    beyond = far - inside
    density = 1.0 / (size + 1.0)
    passed = -np.expm1(-beyond)
    once = inside / 2.0 - inside**2 * density / 4.0 + density * passed / 2.0
    twice = inside**2 / 2.0 - inside**3 * density / 3.0 + passed - density * beyond * (1.0 - passed)
    negative = end < 0.0
    return np.where(negative, once - far, once), np.where(negative, far * far - twice, twice)


def normal_squares(
    sums: FloatArray,
    rows: FloatArray,
    variance: FloatArray,
    rows_noise: float,
    half_range: float,
    truth: FloatArray,
) -> FloatArray:
    """Return the mean squared error of the ratio if sum and rows are normal and independent, shape of ``sums``.

    Args:
        sums: Mean of the sum of values less the middle of their range, shape (n,).
        rows: Number of rows, before noise, shape (n,).
        variance: Variance of the noisy sum, above 0, shape (n,).
        rows_noise: Standard deviation of the noise of the rows, above 0.
        half_range: Half of the range.
        truth: True mean minus the middle of the range, shape (n,).
    """
    blocks = [
        _normal(sums[i, None], rows[i, None], variance[i, None], truth[i, None], rows_noise, half_range)
        for i in _blocks(sums.size)
    ]
    return np.concatenate(blocks)


def _normal(
    sums: FloatArray,
    rows: FloatArray,
    variance: FloatArray,
    truth: FloatArray,
    spread: float,
    half_range: float,
) -> FloatArray:
    from scipy.special import ndtr

    share, by_share = _legendre_rule()
    end = MAX_SCALES / 4.0
    # From -9 to 9 standard deviations of the rows, split where N reaches its minimum and in the middle of the longer
    # part.
    turn = np.clip((MIN_ROWS - rows) / spread, -end, end)
    split = np.where(turn > 0.0, (turn - end) / 2.0, (turn + end) / 2.0)
    first_edge, second_edge = np.minimum(turn, split), np.maximum(turn, split)
    edges = [np.full_like(turn, -end), first_edge, second_edge, np.full_like(turn, end)]
    nodes = np.concatenate([a + (b - a) * share for a, b in pairwise(edges)], axis=1)
    weights = np.concatenate([(b - a) * by_share for a, b in pairwise(edges)], axis=1)
    weights *= np.exp(-0.5 * nodes**2) / math.sqrt(2.0 * math.pi)
    divisor = np.maximum(rows + spread * nodes, MIN_ROWS)
    mean, deviation = sums / divisor, np.sqrt(variance) / divisor
    # Beyond 100 standard deviations the density is 0, and infinity times 0 would be NaN.
    low, high = (np.clip(end / deviation, -1e2, 1e2) for end in (-half_range - mean, half_range - mean))
    share_below, share_above = ndtr(low), ndtr(-high)
    inside = np.maximum(1.0 - share_below - share_above, 0.0)
    at_low, at_high = (np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in (low, high))
    # E (clamp - truth)^2: the parts above, below and inside the range.
    shift = mean - truth
    square = (
        (half_range - truth) ** 2 * share_above
        + (half_range + truth) ** 2 * share_below
        + (shift**2 + deviation**2) * inside
        - 2.0 * shift * deviation * (at_high - at_low)
        - deviation**2 * (high * at_high - low * at_low)
    )
    return np.asarray(np.einsum("ij,ij->i", np.maximum(square, 0.0), weights))


def _blocks(number: int) -> list[slice]:
    step = max(1, BLOCK // (4 * NODES))
    return [slice(start, start + step) for start in range(0, number, step)]


@functools.cache
def _laguerre_rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes above 0 and weights of the Gauss-Laguerre rule; cached, as it costs as much as 30 groups."""
    nodes, weights = np.polynomial.laguerre.laggauss(NODES)
    return nodes, weights


@functools.cache
def _legendre_rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes in [0, 1] and weights of the Gauss-Legendre rule."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0
