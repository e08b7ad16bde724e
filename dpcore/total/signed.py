"""A sum of totals of either sign, clipped to [L, U]: what to offer where `dpcore.total` must refuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error, wording
from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.contributions import FloatArray
from dpcore.data.totals_per_user import Amounts
from dpcore.total import nonnegative


@dataclass(frozen=True)
class ClippedSum:
    """The error of sum_i clip(x_i, L, U) + noise, as an estimate of sum_i x_i. All in the totals' unit.

    Attributes:
        low: L.
        high: U.
        sensitivity: max(|L|, |U|), what adding or removing one user can change.
        bias: sum_i clip(x_i, L, U) - x_i, of either sign: what is cut at one end may make up for the other.
        noise: Mean magnitude of the noise.
        absolute_error: E|release - sum|, exactly.
        rmse: Root mean squared error, exactly.
        users_below: Users with less than L.
        users_above: Users with more than U.
    """

    low: float
    high: float
    sensitivity: float
    bias: float
    noise: float
    absolute_error: float
    rmse: float
    users_below: int
    users_above: int


def clipped_sum(
    totals: npt.ArrayLike,
    low: float,
    high: float,
    epsilon: float,
    mechanism: NoiseKind = NoiseKind.LAPLACE,
    delta: float | None = None,
) -> ClippedSum:
    """Compute the error of clipping every total to [L, U].

    Args:
        totals: One total per user, of either sign, shape (num_users,).
        low: L, at most ``high``.
        high: U.
        epsilon: Privacy budget, above 0.
        mechanism: Laplace or Gaussian.
        delta: With Gaussian noise only.

    Raises:
        InvalidInput: A figure is out of its range; all problems at once.
    """
    x = _finite(totals)
    with Problems() as problems:
        noise_error.check_noise(problems, mechanism, epsilon, delta)
        if problems.finite(low=low, high=high) and low > high:
            problems.add(
                f"low must not lie above high; got {wording.entered(low)} and {wording.entered(high)}"
            )
    sensitivity = max(abs(low), abs(high))
    bias = float(np.sum(np.clip(x, low, high) - x))
    scale = noise_error.compute_unit_scale(mechanism, epsilon, delta) * sensitivity
    return ClippedSum(
        low=float(low),
        high=float(high),
        sensitivity=sensitivity,
        bias=bias,
        noise=mechanism.mean_magnitude * scale,
        # Both noises are symmetric: only the size of the bias counts.
        absolute_error=float(noise_error.expected_absolute(mechanism, abs(bias), scale)),
        rmse=float(noise_error.root_mean_square(mechanism, abs(bias), scale)),
        users_below=int(np.sum(x < low)),
        users_above=int(np.sum(x > high)),
    )


def proposed_bound(
    totals: npt.ArrayLike,
    epsilon: float,
    mechanism: NoiseKind = NoiseKind.LAPLACE,
    delta: float | None = None,
) -> float:
    """Propose T for a range [-T, T]: the one that minimises sum_i (|x_i| - T)_+ plus the mean noise.

    The rank rule of `dpcore.total` on |x_i|. The amounts that are cut at the two ends may cancel, so the error itself
    can be smaller; this bound does not count on it. It comes in few digits (`dpcore.total.short_bound`), because the
    exact value equals one user's total. Arguments as `clipped_sum`.
    """
    amounts = Amounts.from_totals(np.abs(_finite(totals)))
    problem = nonnegative.TotalProblem(amounts, epsilon, mechanism, delta, Measure.BOUND)
    return nonnegative.short_bound(problem, nonnegative.optimal_bound(problem))


def symmetric_errors(
    totals: npt.ArrayLike,
    bounds: npt.ArrayLike,
    epsilon: float,
    mechanism: NoiseKind = NoiseKind.LAPLACE,
    delta: float | None = None,
) -> nonnegative.TotalErrors:
    """Compute the errors of clipping to [-T, T], for many T at once.

    Args:
        totals: One total per user, of either sign, shape (num_users,).
        bounds: T >= 0 in the totals' unit, any shape.
        epsilon: Privacy budget, above 0.
        mechanism: Laplace or Gaussian.
        delta: With Gaussian noise only.

    Returns:
        `TotalErrors` with the size of the bias, whatever its sign. Cuts at the two ends may partly cancel,
        so the bias need not fall as T grows.
    """
    x, t = _finite(totals), np.asarray(bounds, dtype=np.float64)
    with Problems() as problems:
        noise_error.check_noise(problems, mechanism, epsilon, delta)
    bias = np.abs(lacking(x, t))
    scale = noise_error.compute_unit_scale(mechanism, epsilon, delta) * t
    return nonnegative.TotalErrors(
        bounds=t,
        bias=bias,
        noise=np.asarray(mechanism.mean_magnitude * scale),
        absolute_error=noise_error.expected_absolute(mechanism, bias, scale),
        rmse=noise_error.root_mean_square(mechanism, bias, scale),
    )


def lacking(totals: npt.ArrayLike, bounds: npt.ArrayLike) -> FloatArray:
    """Return the sum less the sum of totals clipped to [-T, T], for many T; below 0 where the clipped sum is larger.

    Args:
        totals: One total per user, of either sign, shape (num_users,).
        bounds: T >= 0 in the totals' unit, any shape.
    """
    x, t = _finite(totals), np.asarray(bounds, dtype=np.float64)
    positive, negative = Amounts.from_totals(np.maximum(x, 0.0)), Amounts.from_totals(np.maximum(-x, 0.0))
    # The sum lacks what is cut above T, and has too much by what is raised to -T.
    return np.asarray(positive.excess(t) - negative.excess(t))


def _finite(totals: npt.ArrayLike) -> FloatArray:
    x = np.asarray(totals, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or not np.all(np.isfinite(x)):
        raise refuse("totals must be finite numbers, one per user, not empty")
    return x
