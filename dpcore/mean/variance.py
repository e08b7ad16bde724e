"""The variance of a column from three sums under one budget: the error of a bound on rows per user.

With values moved to t in [0, 1], t = (x - L) / (U - L), a row adds the Bernstein polynomials of degree 2,

    b_0 = (1 - t)^2,    b_1 = 2 t (1 - t),    b_2 = t^2,    b_0 + b_1 + b_2 = 1,

to three sums. From these follow the number of rows n, the mean p = (b_1 / 2 + b_2) / n and the variance b_2 / n - p^2.

**Privacy.** A user with at most h rows moves the three sums by at most h in L1, whatever the values: Laplace noise of
scale h / epsilon on each is epsilon-DP, and no budget is split. In L2, with b_1 counted w times and y = t (1 - t),

    b_0^2 + (w b_1)^2 + b_2^2 = 1 - 4 y + (2 + 4 w^2) y^2 <= 1    for all y in [0, 1/4]    iff    w^2 <= 7 / 2,

so that with Gaussian noise the middle sum is released w = sqrt(7 / 2) times as large, at no cost. In L1 w is 1.

**Error.** To first order the released variance errs by the mean of phi(t) = (t - p)^2 - s^2 over the kept rows, less
that over all rows, with s^2 the variance, and by noise on the sums. On b_0, b_1, b_2 phi has the coefficients

    p^2 - s^2,    p^2 - s^2 - p,    (1 - p)^2 - s^2,

and the noise adds V (phi_0^2 + (phi_1 / w)^2 + phi_2^2), with V the variance of the noise on each sum over n_h^2. The
first part is the error of the mean of (x - mean)^2 under the bound (`dpcore.mean`), to second order less what the mean
itself errs by. The root of the variance has the bias of the root, and errs otherwise by as much over twice the root.

**Which sums.** Whatever sums f_i of a row are released, of a norm of at most 1, phi = sum a_i f_i gives sum a_i^2 >=
max |phi|^2 (Hoelder for L1, Cauchy and Schwarz for L2). At the worst values, all at one end, phi(t) = t^2 has max 1,
and the noise of the three sums is V: no sums have less noise at worst. The sum of (x - c)^2 with its rest, next to that
of x - c, splits the budget and has 2.24 V at worst with Laplace noise, at c = (L + U) / 2.

The three sums, their weights and this argument are ours.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Values
from dpcore.mean.models import MeanError
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.public_counts import MeanProblem, capped_error
from dpcore.mean.table_values import ClampedValues, TableValues, clamp

MAX_VARIANCE_OF_SQUARES = 1.0 / 16.0
"""Largest variance of (x - mean)^2 over (U - L)^4: that of two values, one with a share of 0.15 or 0.85."""


def find_phi(
    mean_share: npt.ArrayLike, variance_share: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the coefficients of phi on the three sums.

    Args:
        mean_share: p, the mean less L over U - L, in [0, 1], any shape.
        variance_share: s^2 over (U - L)^2, in [0, 1/4], likewise.
    """
    p, squared_s = np.asarray(mean_share, dtype=np.float64), np.asarray(variance_share, dtype=np.float64)
    low_coefficient = np.asarray(p**2 - squared_s)
    return low_coefficient, np.asarray(low_coefficient - p), np.asarray((1.0 - p) ** 2 - squared_s)


def compute_noise_factor(
    mean_share: npt.ArrayLike, variance_share: npt.ArrayLike, noise_kind: NoiseKind
) -> FloatArray:
    """Compute the variance of the noise on the variance, over that of the noise on each sum times (U - L)^4 / n_h^2.

    It is at most 1, which it is if all values lie at one end.
    """
    low_coefficient, middle_coefficient, high_coefficient = find_phi(mean_share, variance_share)
    return np.asarray(
        low_coefficient**2 + (middle_coefficient / noise_kind.middle_weight) ** 2 + high_coefficient**2
    )


def measure_variance(values: Values) -> float:
    """Return the variance of all rows before clamping, with the number of rows as divisor; infinite if too large."""
    within_variances = 0.0 if values.standard_deviations is None else values.standard_deviations**2
    with np.errstate(over="ignore", invalid="ignore"):
        rows_mean = float(values.weigh(values.values).sum()) / values.num_rows
        squared_distances = values.weigh((values.values - rows_mean) ** 2 + within_variances)
        return float(np.nan_to_num(squared_distances.sum() / values.num_rows, nan=math.inf))


def measure_error(
    problem: PrivateCountsProblem,
    values: Values,
    clamped_values: ClampedValues,
    bounds: FloatArray,
    noise_kind: NoiseKind,
    takes_noise_at_values: bool,
) -> MeanError:
    """Measure the error of a variance about that of `measure_variance`, or of a population, at bounds on rows.

    Args:
        problem: The problem of a mean of the same values, with its model of users.
        values: The values before clamping.
        clamped_values: Their summary.
        bounds: h in rows per user, shape (k,).
        noise_kind: The noise, which decides on the weight of the middle sum.
        takes_noise_at_values: True to take the noise at the mean and variance of these values; else at the worst ones.
    """
    mean_error = capped_error(problem, bounds)
    largest_square = problem.value_bound**2
    clamped_deviations = (
        np.clip(values.values, clamped_values.lower, clamped_values.upper) - clamped_values.mean
    )
    entry_variances = np.zeros(clamped_deviations.shape)
    if values.standard_deviations is not None:
        is_inside_range = (values.values >= clamped_values.lower) & (values.values <= clamped_values.upper)
        entry_variances = np.where(is_inside_range, values.standard_deviations**2, 0.0)
    # Of rows that are known by their mean and variance alone, squares scatter as those of normal values.
    square_values = Values(
        values.user_codes,
        clamped_deviations**2 + entry_variances,
        values.column,
        values.num_rows_each,
        np.sqrt(4.0 * clamped_deviations**2 * entry_variances + 2.0 * entry_variances**2)
        if values.bins is not None
        else None,
    )
    clamped_squares = clamp(square_values, 0.0, largest_square)
    spread = MAX_VARIANCE_OF_SQUARES * largest_square**2
    if takes_noise_at_values:
        spread = min(clamped_squares.variance, spread)
    else:
        # Most of the variance that values of this variance can have about a mean that is as far from an end as it can.
        share = min(problem.value_variance / largest_square, 0.25)
        farthest_square_distance = (1.0 + math.sqrt(1.0 - 4.0 * share)) ** 2 / 4.0
        spread = (
            min(spread, share * max(farthest_square_distance - share, 0.0) * largest_square**2)
            if share < 0.25
            else spread
        )
    table_values, mean_shift, variance = None, mean_error.shift, clamped_squares.mean
    if problem.table_values is not None:
        # By bounding alone.
        mean_shift, variance = mean_shift - problem.table_values.clamping_shift, measure_variance(values)
        clamped_squares_about_variance = replace(clamped_squares, unclamped_mean=variance)
        table_values = TableValues.from_clamped(problem.histogram, clamped_squares_about_variance)
    squares_error = capped_error(
        MeanProblem(
            problem.histogram,
            problem.epsilon,
            largest_square,
            spread,
            target=problem.target,
            user_share=problem.user_share,
            table_values=table_values,
        ),
        bounds,
    )
    # The mean of the kept rows is nearer to them than that of all rows.
    variance_shift = np.asarray(squares_error.shift - mean_error.sampling_variance - mean_shift**2)
    noise_factor = np.ones(())
    if takes_noise_at_values:  # Noise at the mean and variance of the kept rows.
        mean_share = (clamped_values.mean + mean_shift - clamped_values.lower) / problem.value_bound
        noise_factor = compute_noise_factor(
            mean_share, np.clip((variance + variance_shift) / largest_square, 0.0, 0.25), noise_kind
        )
    privacy_variance = np.asarray(squares_error.privacy_variance * noise_factor)
    return MeanError(squares_error.sampling_variance, privacy_variance, variance_shift)


def take_root(variance_error: MeanError, variance: float) -> tuple[MeanError, float]:
    """Return the error of the standard deviation by the delta method at the expected release, and its own value.

    Args:
        variance_error: The error of the variance.
        variance: The variance of the rows, above 0.
    """
    expected_release = np.maximum(variance + variance_error.shift, 1e-12 * variance)
    root_shift = np.sqrt(expected_release) - math.sqrt(variance)
    sampling_variance = np.asarray(variance_error.sampling_variance / (4.0 * expected_release))
    privacy_variance = np.asarray(variance_error.privacy_variance / (4.0 * expected_release))
    return MeanError(sampling_variance, privacy_variance, root_shift), math.sqrt(variance)
