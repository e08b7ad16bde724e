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

and the noise adds V (phi_0^2 + (phi_1 / w)^2 + phi_2^2), with V the variance of the noise on each sum over n_h^2. To
second order the bias is less by what the mean itself errs by, in mean square. This chooses a bound. The error that is
stated is that of the release as programs compute it, clamped and with its root: its mean square over the three noises
and over the means of t and t^2 among the kept rows, which are taken as normal (`KeptRows.measure_release`).

**Which sums.** Whatever sums f_i of a row are released, of a norm of at most 1, phi = sum a_i f_i gives sum a_i^2 >=
max |phi|^2 (Hoelder for L1, Cauchy and Schwarz for L2). At the worst values, all at one end, phi(t) = t^2 has max 1,
and the noise of the three sums is V: no sums have less noise at worst. The sum of (x - c)^2 with its rest, next to that
of x - c, splits the budget and has 2.24 V at worst with Laplace noise, at c = (L + U) / 2.

The three sums, their weights and this argument are ours.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Values
from dpcore.mean.models import MeanError
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.public_counts import MeanProblem, compute_capped_error
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


@dataclass(frozen=True, eq=False)
class KeptRows:
    """What bounds keep of given values, moved to t in [0, 1]; all arrays have shape (k,).

    Attributes:
        bounds: h in rows per user, ascending.
        num_rows: Rows that are kept.
        means: Expected mean of t among these.
        mean_squares: Expected mean of t^2.
        mean_variances: Variance of the mean of t, over the rows that may be kept.
        square_variances: That of the mean of t^2.
        covariances: The covariance of both means.
        variance: What the release estimates, over (U - L)^2.
        width: U - L, in the values' unit.
    """

    bounds: FloatArray
    num_rows: FloatArray
    means: FloatArray
    mean_squares: FloatArray
    mean_variances: FloatArray
    square_variances: FloatArray
    covariances: FloatArray
    variance: float
    width: float

    @classmethod
    def from_values(
        cls, problem: MeanProblem, values: Values, clamped_values: ClampedValues, bounds: FloatArray
    ) -> KeptRows:
        """Measure what bounds keep, by the model of users of the problem of a mean of the same values."""
        lower, width = clamped_values.lower, problem.value_bound
        value_shares = (np.clip(values.values, lower, clamped_values.upper) - lower) / width
        share_stds = np.zeros(value_shares.shape)
        if values.standard_deviations is not None:
            inside_mask = (values.values >= lower) & (values.values <= clamped_values.upper)
            share_stds = np.where(inside_mask, values.standard_deviations / width, 0.0)
        mean_error, square_error, sum_error = (
            _measure_moment(problem, values, value_shares, share_stds, factors, bounds)
            for factors in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
        )
        mean_variances, square_variances = mean_error.sampling_variance, square_error.sampling_variance
        covariances = (sum_error.sampling_variance - mean_variances - square_variances) / 2.0
        means, squares = (
            np.broadcast_to(moment_error.shift, bounds.shape) for moment_error in (mean_error, square_error)
        )
        if problem.table_values is not None:
            variance = measure_variance(values) / width**2
        else:
            # A model of users expects the same under every bound.
            variance = float(squares[0] - means[0] ** 2)
        kept_rows = problem.histogram.count_kept_rows(bounds)
        moments = means, squares, mean_variances, square_variances, covariances
        return cls(bounds, kept_rows, *moments, variance, width)

    def linearise(self, noise_kind: NoiseKind, unit_noise_variance: float) -> MeanError:
        """Return the error of the variance to first order, in (unit of the values)^4.

        Args:
            noise_kind: The noise, which decides on the weight of the middle sum.
            unit_noise_variance: Variance of the noise at sensitivity 1.
        """
        p = self.means
        sampling_variance = (
            self.square_variances - 4.0 * p * self.covariances + 4.0 * p**2 * self.mean_variances
        )
        shift = self.mean_squares - p**2 - self.mean_variances - self.variance
        noise_factor = compute_noise_factor(p, np.clip(self.variance + shift, 0.0, 0.25), noise_kind)
        privacy_variance = unit_noise_variance * (self.bounds / self.num_rows) ** 2 * noise_factor
        squared_width = self.width**2
        return MeanError(
            np.maximum(sampling_variance, 0.0) * squared_width**2,
            privacy_variance * squared_width**2,
            shift * squared_width,
        )

    def measure_release(
        self, bound: float, noise_scale: float, noise_kind: NoiseKind, is_root: bool
    ) -> float:
        """Measure the mean squared error of a release as programs compute it, its clamping and its root included.

        Args:
            bound: One of ``bounds``.
            noise_scale: Scale of the noise at sensitivity 1.
            noise_kind: The noise.
            is_root: True for the standard deviation.

        Returns:
            In (unit of the values)^4; of a standard deviation in (unit of the values)^2.
        """
        bound_index = int(np.searchsorted(self.bounds, bound))
        unit_noises, normals = lay_nodes(noise_kind)
        low_noises, middle_noises, high_noises = unit_noises * (
            noise_scale * bound / self.num_rows[bound_index]
        )
        middle_noises = middle_noises / noise_kind.middle_weight
        mean_deviation = math.sqrt(max(self.mean_variances[bound_index], 0.0))
        slope = self.covariances[bound_index] / mean_deviation if mean_deviation > 0.0 else 0.0
        rest_deviation = math.sqrt(max(self.square_variances[bound_index] - slope**2, 0.0))
        # All sums over the number of kept rows; the program divides by at least one row.
        row_ratios = np.maximum(
            1.0 + low_noises + middle_noises + high_noises, 1.0 / self.num_rows[bound_index]
        )
        sums = self.means[bound_index] + mean_deviation * normals[0] + middle_noises / 2.0 + high_noises
        squares = (
            self.mean_squares[bound_index] + slope * normals[0] + rest_deviation * normals[1] + high_noises
        )
        released_values, true_value = (
            np.clip(squares / row_ratios - (sums / row_ratios) ** 2, 0.0, 0.25),
            self.variance,
        )
        if is_root:
            released_values, true_value = np.sqrt(released_values), math.sqrt(true_value)
        return float(((released_values - true_value) ** 2).mean()) * self.width ** (2 if is_root else 4)


def _measure_moment(
    problem: MeanProblem,
    values: Values,
    value_shares: FloatArray,
    share_stds: FloatArray,
    factors: tuple[float, float],
    bounds: FloatArray,
) -> MeanError:
    """Measure the mean of a t + b t^2 among kept rows about 0, with t a value as a share of the range.

    ``factors`` are a and b, whose sum is the largest value. ``share_stds`` are standard deviations of the rows of an
    entry about its t: squares scatter as those of normal values.
    """
    a, b = factors
    moment_values = a * value_shares + b * (value_shares**2 + share_stds**2)
    moment_stds = share_stds * np.sqrt((a + 2.0 * b * value_shares) ** 2 + 2.0 * (b * share_stds) ** 2)
    moment_column = replace(
        values,
        values=moment_values,
        standard_deviations=None if values.standard_deviations is None else moment_stds,
        bins=None,
    )
    clamped_values, table_values = clamp(moment_column, 0.0, a + b), None
    if problem.table_values is not None:
        table_values = TableValues.from_clamped(
            problem.histogram, replace(clamped_values, unclamped_mean=0.0)
        )
    model_fields: dict[str, Any] = {
        "target": problem.target,
        "user_share": problem.user_share,
        "table_values": table_values,
    }
    column_problem = MeanProblem(
        problem.histogram, problem.epsilon, a + b, clamped_values.variance, **model_fields
    )
    column_error = compute_capped_error(column_problem, bounds)
    return (
        column_error
        if table_values is not None
        else replace(column_error, shift=np.asarray(clamped_values.mean))
    )


NUM_NODES, GENERATOR = 8191, 1386
"""Size and generator of the lattice: the best of 1,500 generators for five numbers by the criterion P_2."""


@functools.cache
def lay_nodes(noise_kind: NoiseKind) -> tuple[FloatArray, FloatArray]:
    """Lay nodes of equal weight for three noises of scale 1, shape (3, nodes), and two normal numbers, (2, nodes).

    They are symmetric around 0, and integrate the errors of a release to 0.5 %.

    Source: Niederreiter 1992, *Random Number Generation and Quasi-Monte Carlo Methods*, section 5.1 (good lattice
    points).
    """
    from scipy.special import ndtri

    generator_powers = np.array([pow(GENERATOR, power, NUM_NODES) for power in range(5)])[:, None]
    # The point 0 is left out; each coordinate of the others is the middle of one of as many intervals.
    points = (np.arange(1, NUM_NODES) * generator_powers % NUM_NODES - 0.5) / (NUM_NODES - 1)
    normals = ndtri(points)
    if noise_kind is NoiseKind.GAUSSIAN:
        return normals[:3], normals[3:]
    laplace_magnitudes = -np.log(2.0 * np.minimum(points[:3], 1.0 - points[:3]))
    return np.copysign(laplace_magnitudes, points[:3] - 0.5), normals[3:]


def measure_worst_error(problem: PrivateCountsProblem, bounds: FloatArray) -> MeanError:
    """Measure the error of a variance to first order at the worst values of a given variance.

    Args:
        problem: The problem of a mean of the same values, with its model of users.
        bounds: h in rows per user, shape (k,).
    """
    largest_square = problem.value_bound**2
    # Most of the variance that values of this variance can have about a mean that is as far from an end as it can.
    variance_share = min(problem.value_variance / largest_square, 0.25)
    farthest_square = (1.0 + math.sqrt(1.0 - 4.0 * variance_share)) ** 2 / 4.0
    square_variance = (
        MAX_VARIANCE_OF_SQUARES
        if variance_share == 0.25
        else min(MAX_VARIANCE_OF_SQUARES, variance_share * max(farthest_square - variance_share, 0.0))
    )
    model_fields: dict[str, Any] = {"target": problem.target, "user_share": problem.user_share}
    squares_problem = MeanProblem(
        problem.histogram,
        problem.epsilon,
        largest_square,
        square_variance * largest_square**2,
        **model_fields,
    )
    squares_error = compute_capped_error(squares_problem, bounds)
    # The mean of the kept rows is nearer to them than that of all rows.
    return replace(squares_error, shift=-compute_capped_error(problem, bounds).sampling_variance)


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
