"""The mean squared error of a noisy mean that is moved into a range, exact over the noise.

A program releases clamp(S / max(N, 1)) to [-h, h], for a noisy sum S of values less the middle of their range and a
noisy number of rows N. If the number of rows is public, it releases the clamped sum alone over that number.

- Gaussian noise: S and N stay independent, and the clamp of a normal S has closed moments. The integral over N has
  panels that meet where N = 1.
- Laplace noise of scale b on two entries, the distances of all values from either end of their range, of width 2 r: S
  is half the difference, N the sum over 2 r. With g = b / (2 r), the noise T of N and D of S / r have the density
  exp(-max(|T|, |D|) / g) / (8 g^2). Given T, D is uniform up to |T| and has exponential tails beyond, so that the
  clamp's moments are closed again. The integral over T has panels that meet at T = 0, where N = 1, and where the
  clamp leaves the uniform part.
- Laplace noise on S and on N, where the budget is split: T and D are independent. It is the same integral without the
  uniform part, in scales of b / r.

The clamp's range is that of the values, h = r, unless users are clamped: their mean may lie farther out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray

MIN_ROWS = 1.0
"""The smallest divisor."""
NUM_NODES = 12
"""Nodes of a panel: relative errors up to 3e-4 (Laplace) and 2e-5 (Gaussian noise)."""
MAX_NOISE_SCALES = 36.0
"""Ends of the integrals in scales of Laplace noise; a quarter in standard deviations."""
BLOCK_ENTRIES = 1 << 16
"""Entries of a block, in the processor's cache."""


def compute_laplace_squares(
    sums: npt.ArrayLike,
    row_counts: npt.ArrayLike,
    scale: npt.ArrayLike,
    half_range: float,
    centred_means: npt.ArrayLike,
    *,
    is_split: bool = False,
    reach: npt.ArrayLike = 1.0,
    min_rows: npt.ArrayLike = MIN_ROWS,
) -> FloatArray:
    """Return the mean squared error of each ratio with Laplace noise; sums and means are centred.

    All arguments but ``half_range`` may be arrays, of shapes that broadcast to that of the result.

    Args:
        sums: Sum of the values minus the middle of their range, before noise.
        row_counts: Number of rows, before noise.
        scale: Scale b of the noise on the two entries, or of the sum if the budget is split; above 0, in the unit of
            values.
        half_range: Half of the range of the values, r.
        centred_means: True mean minus the middle of the range.
        is_split: True if sum and rows have independent noise; that of the rows then has the scale b / r.
        reach: h / r, half of the range of the means over that of the values.
        min_rows: The smallest divisor.
    """
    g = np.asarray(scale) / half_range * (1.0 if is_split else 0.5)
    integrate = functools.partial(_integrate_laplace, is_split=is_split)
    unit_free_arguments = (
        np.divide(sums, half_range * g),
        np.divide(row_counts, g),
        np.divide(centred_means, half_range),
    )
    return half_range**2 * _integrate_in_blocks(
        integrate, *unit_free_arguments, np.divide(min_rows, g), reach
    )


def _integrate_laplace(
    x: FloatArray,
    n: FloatArray,
    centred_means: FloatArray,
    min_rows: FloatArray,
    reach: FloatArray,
    is_split: bool,
) -> FloatArray:
    """Return the mean squared error over r^2, shape (n,), by a rule over the Laplace noise of the rows.

    Half of the values' range is r, the scale of the noise of the rows is g: ``x`` holds sums over r g, ``n`` rows over
    g, ``centred_means`` means over r, ``min_rows`` the smallest divisor over g, each of shape (n, 1) as ``reach``.
    """
    # Nodes u and v, with their weights; t0 is the noise at which N is least. From 0 to t0 there are two panels, of
    # lengths b and c: the clamp leaves the uniform part between them. At the nodes N has the noise t.
    (u, wu), (v, wv) = _build_laguerre_rule(), _build_legendre_rule()
    t0 = min_rows - n
    lo, hi, c = np.minimum(t0, 0.0), np.maximum(t0, 0.0), np.minimum(np.abs(t0), MAX_NOISE_SCALES)
    b = np.clip((reach * n - np.abs(x)) / (reach + (not is_split)), 0.0, c)
    c, s = c - b, np.sign(t0)
    t = np.hstack((lo - u, hi + u, s * b * v, s * (b + c * v)))
    panel_weights = np.hstack((b * np.exp(-b * v), c * np.exp(-b - c * v))) * np.tile(wv, 2)
    node_weights = np.hstack((np.exp(lo) * wu, np.exp(-hi) * wu, panel_weights))
    noise_sizes = np.zeros_like(t) if is_split else np.abs(t)
    divisors = np.maximum(n + t, min_rows)
    # The error times the divisor is D, clamped to [-reach divisor - x, reach divisor - x], plus this shift.
    shifts = x - centred_means * divisors
    e1, e2 = _integrate_tails(reach * divisors - x, noise_sizes)
    f1, f2 = _integrate_tails(reach * divisors + x, noise_sizes)
    squares = (e2 + f2 + 2.0 * shifts * (e1 - f1) + shifts**2) / divisors**2
    # The density of T is (|T| + 1) exp(-|T|) / 4, or exp(-|T|) / 2; the exponential is part of the weights.
    node_weights = node_weights * (0.5 if is_split else (noise_sizes + 1.0) / 4.0)
    return np.asarray(np.einsum("ij,ij->i", squares, node_weights))


def _integrate_tails(upper_ends: FloatArray, noise_sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals over y from 0 to ``upper_ends`` of P(D > y) and of 2 y P(D > y).

    D is the scaled noise of the sum, given that the scaled noise T of the rows has the size ``noise_sizes``.
    E clamp(D; -a, b) is the first at b minus that at a; E clamp^2 is the sum of the second at both, also for negative a
    or b.
    """
    y = np.abs(upper_ends)
    # The density of D is f up to u = min(y, |T|), and falls exponentially over the rest, r.
    u = np.minimum(y, noise_sizes)
    r, f = y - u, 1.0 / (noise_sizes + 1.0)
    passed_shares = -np.expm1(-r)
    e1 = u / 2.0 - u**2 * f / 4.0 + f * passed_shares / 2.0
    e2 = u**2 / 2.0 - u**3 * f / 3.0 + passed_shares - f * r * (1.0 - passed_shares)
    negative_mask = upper_ends < 0.0
    return np.where(negative_mask, e1 - y, e1), np.where(negative_mask, y * y - e2, e2)


def compute_normal_squares(
    sums: npt.ArrayLike,
    row_counts: npt.ArrayLike,
    sum_variances: npt.ArrayLike,
    rows_noise_deviation: npt.ArrayLike,
    half_range: npt.ArrayLike,
    centred_means: npt.ArrayLike,
    *,
    min_rows: npt.ArrayLike = MIN_ROWS,
) -> FloatArray:
    """Return the mean squared error of each ratio if sum and rows are normal; sums and means are centred.

    All arguments may be arrays, of shapes that broadcast to that of the result.

    Args:
        sums: Mean of the sum of values less the middle of their range.
        row_counts: Number of rows, before noise.
        sum_variances: Variance of the noisy sum, above 0.
        rows_noise_deviation: Standard deviation of the noise of the rows, above 0.
        half_range: Half of the range of the means, h.
        centred_means: True mean minus the middle of the range.
        min_rows: The smallest divisor.
    """
    arrays = sums, row_counts, sum_variances, rows_noise_deviation, half_range, centred_means, min_rows
    return _integrate_in_blocks(_integrate_normal, *arrays)


def _integrate_normal(
    sums: FloatArray,
    row_counts: FloatArray,
    sum_variances: FloatArray,
    rows_noise_deviation: FloatArray,
    half_range: FloatArray,
    centred_means: FloatArray,
    min_rows: FloatArray,
) -> FloatArray:
    """Return the mean squared error by a Gauss-Legendre rule over the noise of the rows; arguments of shape (n, 1)."""
    v, wv = _build_legendre_rule()
    max_node = MAX_NOISE_SCALES / 4.0
    # From -9 to 9 standard deviations of the rows, split where N reaches its minimum and in the middle of the longer
    # part.
    z0 = np.clip((min_rows - row_counts) / rows_noise_deviation, -max_node, max_node)
    z1 = np.where(z0 > 0.0, (z0 - max_node) / 2.0, (z0 + max_node) / 2.0)
    last_edges, inner_edges = np.full_like(z0, max_node), (np.minimum(z0, z1), np.maximum(z0, z1))
    edges = np.hstack((-last_edges, *inner_edges, last_edges))
    lengths = np.diff(edges)[..., None]
    z = (edges[:, :-1, None] + lengths * v).reshape(z0.size, -1)
    node_weights = (lengths * wv).reshape(z.shape) * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    divisors = np.maximum(row_counts + rows_noise_deviation * z, min_rows)
    shifts, deviations = sums / divisors - centred_means, np.sqrt(sum_variances) / divisors
    squares = square_clamped_normal(
        shifts, deviations, -half_range - centred_means, half_range - centred_means
    )
    return np.asarray(np.einsum("ij,ij->i", squares, node_weights))


def square_clamped_normal(
    shifts: FloatArray, deviations: FloatArray, low_ends: FloatArray, high_ends: FloatArray
) -> FloatArray:
    """Return E clamp(X, low, high)^2 for normal X, of any shape that the arguments broadcast to.

    Args:
        shifts: Mean of X.
        deviations: Standard deviation of X, above 0.
        low_ends: Lower end of the range.
        high_ends: Upper end of the range.
    """
    from scipy.special import ndtr

    # Beyond 100 standard deviations the density is 0, and infinity times 0 would be NaN.
    low_scores, high_scores = (
        np.clip((end - shifts) / deviations, -1e2, 1e2) for end in (low_ends, high_ends)
    )
    shares_below, shares_above = ndtr(low_scores), ndtr(-high_scores)
    f0, f1 = (np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in (low_scores, high_scores))
    # The parts above, below and inside the range.
    squares = (
        high_ends**2 * shares_above
        + low_ends**2 * shares_below
        + (shifts**2 + deviations**2) * np.maximum(1.0 - shares_below - shares_above, 0.0)
        - 2.0 * shifts * deviations * (f1 - f0)
        - deviations**2 * (high_scores * f1 - low_scores * f0)
    )
    return np.asarray(np.maximum(squares, 0.0))


def square_clamped_laplace(
    shifts: FloatArray, scales: FloatArray, low_ends: FloatArray, high_ends: FloatArray
) -> FloatArray:
    """Return E clamp(a + X, low, high)^2 for Laplace noise X, of any shape that the arguments broadcast to.

    Args:
        shifts: a.
        scales: Scale of X, above 0.
        low_ends: Lower end of the range.
        high_ends: Upper end of the range.
    """
    no_noise = np.zeros(np.broadcast_shapes(*map(np.shape, (shifts, scales, low_ends, high_ends))))
    e1, e2 = _integrate_tails((high_ends - shifts) / scales, no_noise)
    f1, f2 = _integrate_tails((shifts - low_ends) / scales, no_noise)
    squares = scales**2 * (e2 + f2) + 2.0 * shifts * scales * (e1 - f1) + shifts**2
    return np.asarray(np.maximum(squares, 0.0))


def _integrate_in_blocks(integrate: Callable[..., FloatArray], *arguments: npt.ArrayLike) -> FloatArray:
    """Return the result of ``integrate`` for all ratios, in blocks of ratios that fit the processor's cache.

    Args:
        integrate: Takes the arguments as arrays of shape (k, 1); returns shape (k,).
        arguments: Of any shapes that broadcast to that of the result, which is not empty.
    """
    arrays = np.broadcast_arrays(*arguments)
    columns = [array.reshape(-1, 1) for array in arrays]
    block_size = max(1, BLOCK_ENTRIES // (4 * NUM_NODES))
    blocks = [
        integrate(*(column[begin : begin + block_size] for column in columns))
        for begin in range(0, columns[0].size, block_size)
    ]
    return np.concatenate(blocks).reshape(arrays[0].shape)


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
