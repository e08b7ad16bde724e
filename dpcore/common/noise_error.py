"""The error of noisy numbers: biased, correlated, or averaged over runs.

A biased number has exact formulas for Laplace and Gaussian noise. A released sum is off by noise - a, where a >= 0 is
the sum that the contribution bound cut away and the noise is symmetric with scale s. Each measure of that error is s
M(a / s), with M convex and nondecreasing: jointly convex in (a, s) and growing with both. The optimisers of
`dpcore.total` use no other property.

Correlated rows of one user change formulas for independent rows. With a share rho of the variance between users, rows
of one user have correlation rho. The mean of n rows, s_l of them from user l, has the variance sigma^2 / n^2 sum s_l
(1 + (s_l - 1) rho): that of independent rows times 1 + (sum s_l^2 / n - 1) rho. Source: Kish 1965, *Survey Sampling*,
section 5.4, there for clusters of one size.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.privacy import GaussianNoise, LaplaceNoise
from dpcore.contributions import FloatArray, IntArray

ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
"""E|Z| of a standard normal variable."""
DEFAULT_DELTA = 1e-6


class NoiseKind(enum.Enum):
    """The kind of noise of a release."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"

    @property
    def mean_magnitude(self) -> float:
        """Return E|noise| at scale 1 (Laplace: b = 1, Gaussian: standard deviation 1)."""
        return 1.0 if self is NoiseKind.LAPLACE else ROOT_TWO_OVER_PI

    @property
    def unit_variance(self) -> float:
        """Return the variance at scale 1."""
        return 2.0 if self is NoiseKind.LAPLACE else 1.0

    @property
    def middle_weight(self) -> float:
        """Return the factor by which the middle one of three released sums is scaled, for a variance.

        The scaling costs no privacy: see `dpcore.mean.variance`.
        """
        return 1.0 if self is NoiseKind.LAPLACE else math.sqrt(3.5)


class Measure(enum.Enum):
    """The measure of a release's error: bias plus mean noise (the paper's bound), or an exact one."""

    BOUND = "bound"
    ABSOLUTE = "absolute"
    RMSE = "rmse"


def check_noise(problems: Problems, noise: object, epsilon: object, delta: object) -> None:
    """Add problems of a kind of noise with its epsilon and delta; delta must be None for Laplace noise."""
    problems.positive(epsilon=epsilon)
    if not isinstance(noise, NoiseKind):
        problems.add("noise must be a NoiseKind")
    elif noise is NoiseKind.GAUSSIAN:
        if delta is None:
            delta_remedy = "Give one strictly between 0 and 1, such as 1e-6"
            problems.add("Gaussian noise needs a delta", remedy=delta_remedy)
        else:
            problems.inside(0.0, 1.0, delta=delta)
    elif delta is not None:
        problems.add("Laplace noise has no delta", remedy="Leave delta out, or choose Gaussian noise")


def compute_unit_scale(noise: NoiseKind, epsilon: float, delta: float | None) -> float:
    """Compute the scale of the noise at sensitivity 1: 1 / epsilon, or the exact Gaussian standard deviation."""
    if noise is NoiseKind.LAPLACE:
        return LaplaceNoise.for_release(1.0, epsilon).scale
    assert delta is not None
    return GaussianNoise.for_release(1.0, epsilon, delta).scale


def _divide_or_infinite(shift: FloatArray, scale: FloatArray) -> FloatArray:
    """Return shift / scale, same shape; infinite where the scale is 0."""
    # Without noise the ratio is infinite, 0 / 0 included: every term of the noise is then 0, and the bias is left.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(scale > 0.0, shift / scale, np.inf)


def compute_mean_absolute(noise: NoiseKind, shift: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """Compute E|a + noise|, exactly.

    Args:
        noise: Kind of noise.
        shift: a >= 0, any shape.
        scale: Scale of the noise >= 0 (b of Laplace, standard deviation of Gaussian), broadcast with it.

    Returns:
        Laplace: a + b e^(-a/b). Gaussian (the folded normal's mean):
        s sqrt(2/pi) e^(-a^2 / (2 s^2)) + a erf(a / (s sqrt 2)).
    """
    a, s = np.asarray(shift, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    # Beyond 1e100 the exponentials are 0 anyway; r^2 stays finite.
    r = np.minimum(_divide_or_infinite(a, s), 1e100)
    if noise is NoiseKind.LAPLACE:
        return np.asarray(a + s * np.exp(-r))
    from scipy.special import erf

    return np.asarray(s * ROOT_TWO_OVER_PI * np.exp(-r * r / 2.0) + a * erf(r / math.sqrt(2.0)))


def compute_rms(noise: NoiseKind, shift: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """Compute the root mean square of a + noise, sqrt(a^2 + variance).

    ``shift`` is a, and ``scale`` is the scale of the noise, b of Laplace or the standard deviation of Gaussian noise.
    """
    a, s = np.asarray(shift, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    return np.hypot(a, math.sqrt(noise.unit_variance) * s)


def find_magnitude(noise: NoiseKind, coverage: float) -> float:
    """Compute the m at which |noise| <= m scale with probability ``coverage``, which is in [0, 1)."""
    with Problems() as problems:
        if problems.between(0.0, 1.0, coverage=coverage) and coverage == 1.0:
            problems.add("coverage must be below 1: both noises reach arbitrarily far")
    if noise is NoiseKind.LAPLACE:
        return -math.log1p(-coverage)
    from scipy.special import erfinv

    return float(erfinv(coverage)) * math.sqrt(2.0)


@dataclass(frozen=True)
class Perspective:
    """One measure of error as s M(r), of bias a and noise scale s with r = a / s, by what its derivatives need.

    Attributes:
        compute_slope: M'(r), nondecreasing from 0 to 1: how much one more unit of bias counts.
        compute_intercept: M(r) - r M'(r), nonincreasing: how much one more unit of noise scale counts.
    """

    compute_slope: Callable[[FloatArray], FloatArray]
    compute_intercept: Callable[[FloatArray], FloatArray]


def make_perspective(noise: NoiseKind, measure: Measure) -> Perspective:
    """Build the `Perspective` of a measure under a noise; r = infinity (no noise) is allowed."""
    if measure is Measure.BOUND:
        return Perspective(np.ones_like, lambda r: np.full_like(r, noise.mean_magnitude))
    if measure is Measure.RMSE:
        # M(r) = sqrt(r^2 + v).
        unit_noise_deviation = math.sqrt(noise.unit_variance)
        return Perspective(
            lambda r: np.minimum(r, 1e100) / np.hypot(np.minimum(r, 1e100), unit_noise_deviation),
            lambda r: noise.unit_variance / np.hypot(r, unit_noise_deviation),
        )
    if noise is NoiseKind.LAPLACE:
        # M(r) = r + e^-r.
        return Perspective(
            lambda r: -np.expm1(-r), lambda r: (1.0 + np.minimum(r, 1e100)) * np.exp(-np.minimum(r, 1e100))
        )
    from scipy.special import erf

    # M(r) = sqrt(2/pi) e^(-r^2/2) + r erf(r / sqrt 2).
    return Perspective(
        lambda r: np.asarray(erf(r / math.sqrt(2.0))),
        lambda r: ROOT_TWO_OVER_PI * np.exp(-np.square(np.minimum(r, 1e100)) / 2.0),
    )


def measure_error(
    measure: Measure, noise: NoiseKind, shift: npt.ArrayLike, scale: npt.ArrayLike
) -> FloatArray:
    """Compute the error of a release with bias ``shift`` and noise of scale ``scale``, by one measure."""
    if measure is Measure.BOUND:
        s = np.asarray(scale, dtype=np.float64)
        return np.asarray(np.asarray(shift, dtype=np.float64) + noise.mean_magnitude * s)
    return (compute_mean_absolute if measure is Measure.ABSOLUTE else compute_rms)(noise, shift, scale)


def find_balance(perspective: Perspective, pull: float) -> float:
    """Find the root r >= 0 of intercept(r) = pull * slope(r), where the push of noise equals the pull of bias.

    Args:
        perspective: Of the expected absolute error or the RMSE; of the bound there is no such root.
        pull: Users above the bound over the unit noise scale, above 0.

    Returns:
        The bias-to-noise ratio at which a piece of the error curve has its minimum.
    """
    from scipy.optimize import brentq

    def compute_excess(r: float) -> float:
        """Return intercept(r) - pull * slope(r)."""
        ratio_array = np.array(r)
        return float(perspective.compute_intercept(ratio_array)) - pull * float(
            perspective.compute_slope(ratio_array)
        )

    # The excess falls: from above 0 at r = 0, where the slope is 0, to below 0, as the intercept goes to 0.
    ratio_upper_end = 1.0
    while compute_excess(ratio_upper_end) > 0.0:
        ratio_upper_end *= 2.0
    # A root may lie near 0, where only digits relative to it mean something.
    return float(brentq(compute_excess, 0.0, ratio_upper_end, xtol=1e-300))


ASSUMED_USER_SHARE = 0.2
"""rho where nobody says otherwise: an assumption, for what people do. Read off values it was 0.3 to 0.5 for purchases,
and 0 to 0.2 for ratings and for waiting times (`benchmarks/mean_on_tables.py`)."""
ASSUMPTION_LABEL = "Users who differ"
"""Label of the fact that says what an answer assumes of users."""


def compute_design_effect(
    sizes: npt.ArrayLike, user_counts: npt.ArrayLike, user_share: float = ASSUMED_USER_SHARE
) -> float:
    """Compute the variance of the mean of all rows at user share rho, as a multiple of that of independent rows.

    Args:
        sizes: Rows per user, shape (k,).
        user_counts: How many users have each, shape (k,).
        user_share: rho in [0, 1].
    """
    size_array, count_array = np.asarray(sizes, dtype=np.float64), np.asarray(user_counts, dtype=np.float64)
    row_counts = count_array * size_array
    return 1.0 + user_share * (float((row_counts * size_array).sum()) / float(row_counts.sum()) - 1.0)


def compute_weighted_effect(
    weights: FloatArray, user_codes: npt.ArrayLike, user_share: float = ASSUMED_USER_SHARE
) -> float:
    """Compute the variance of weighted sums of rows at user share rho, as a multiple of that of independent rows.

    Args:
        weights: c_ij, one sum per row of the matrix, shape (d, n); not all 0.
        user_codes: The user of each row, shape (n,).
        user_share: rho in [0, 1].
    """
    _, user_indices = np.unique(np.asarray(user_codes), return_inverse=True)
    sums_by_weighting = [np.bincount(user_indices, weights=row_weights) for row_weights in weights]
    sum_of_squares = sum(float((user_sums**2).sum()) for user_sums in sums_by_weighting)
    return 1.0 - user_share + user_share * sum_of_squares / float((weights * weights).sum())


CONFIDENCE = 0.95
"""Confidence of the intervals of a mean over runs."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Means over the finished runs; every array without the axis of the runs.

    Attributes:
        means: NaN where no run is there.
        standard_errors: Of the mean; NaN below two runs.
        run_counts: How many are there.
        spreads: Standard deviation of one run; NaN below two.
    """

    means: FloatArray
    standard_errors: FloatArray
    run_counts: IntArray
    spreads: FloatArray

    @property
    def half_widths(self) -> FloatArray:
        """Return half of a `CONFIDENCE` interval of each mean, by Student's t; NaN below two runs."""
        from scipy.special import stdtrit

        t_quantiles = stdtrit(np.maximum(self.run_counts - 1, 1), 0.5 + CONFIDENCE / 2.0)
        return np.asarray(np.where(self.run_counts > 1, t_quantiles * self.standard_errors, np.nan))


def summarise_runs(run_values: FloatArray, axis: int = 1) -> Summary:
    """Compute mean, standard error, number and spread of runs over their axis; a NaN is a run that is missing."""
    finished_run_mask = np.isfinite(run_values)
    run_counts = np.asarray(finished_run_mask.sum(axis=axis))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(finished_run_mask, run_values, 0.0).sum(axis=axis) / run_counts
        run_deviations = np.where(finished_run_mask, run_values - np.expand_dims(means, axis), 0.0)
        squared_deviation_sums = (run_deviations * run_deviations).sum(axis=axis)
        spreads = np.sqrt(squared_deviation_sums / np.where(run_counts > 1, run_counts - 1, np.nan))
        return Summary(means, spreads / np.sqrt(run_counts), run_counts, spreads)
