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
from dpcore.total.nonnegative import TotalErrors, TotalProblem, build_errors, optimal_bound, short_bound


@dataclass(frozen=True)
class ClippedSum:
    """The error of sum_i clip(x_i, L, U) + noise, as an estimate of sum_i x_i. All in the totals' unit.

    Attributes:
        low: L.
        high: U.
        bias: sum_i clip(x_i, L, U) - x_i, of either sign: what is cut at one end may make up for the other.
        errors: The errors, each of shape (); they depend on the size of the bias alone, as the noise is symmetric.
        users_below: Users with less than L.
        users_above: Users with more than U.
    """

    low: float
    high: float
    bias: float
    errors: TotalErrors
    users_below: int
    users_above: int

    @property
    def sensitivity(self) -> float:
        """Return max(|L|, |U|), what adding or removing one user can change."""
        return max(abs(self.low), abs(self.high))


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
            ends = f"{wording.entered(low)} and {wording.entered(high)}"
            problems.add(f"low must not lie above high; got {ends}")
    bias = float(np.sum(np.clip(x, low, high) - x))
    unit_noise = noise_error.compute_unit_scale(mechanism, epsilon, delta)
    errors = build_errors(mechanism, unit_noise, max(abs(low), abs(high)), abs(bias))
    users_below, users_above = int(np.sum(x < low)), int(np.sum(x > high))
    return ClippedSum(float(low), float(high), bias, errors, users_below, users_above)


def propose_bound(
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
    problem = TotalProblem(amounts, epsilon, mechanism, delta, Measure.BOUND)
    return short_bound(problem, optimal_bound(problem))


def symmetric_errors(
    totals: npt.ArrayLike,
    bounds: npt.ArrayLike,
    epsilon: float,
    mechanism: NoiseKind = NoiseKind.LAPLACE,
    delta: float | None = None,
) -> TotalErrors:
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
    with Problems() as problems:
        noise_error.check_noise(problems, mechanism, epsilon, delta)
    unit_noise = noise_error.compute_unit_scale(mechanism, epsilon, delta)
    return build_errors(mechanism, unit_noise, bounds, np.abs(compute_shortfall(totals, bounds)))


def compute_shortfall(totals: npt.ArrayLike, bounds: npt.ArrayLike) -> FloatArray:
    """Return the sum less the sum of totals clipped to [-T, T], for many T; below 0 where the clipped sum is larger.

    Args:
        totals: One total per user, of either sign, shape (num_users,).
        bounds: T >= 0 in the totals' unit, any shape.
    """
    x, t = _finite(totals), np.asarray(bounds, dtype=np.float64)
    # The sum lacks what is cut above T, and has too much by what is raised to -T.
    positive, negative = (Amounts.from_totals(np.maximum(part, 0.0)) for part in (x, -x))
    return np.asarray(positive.excess(t) - negative.excess(t))


def _finite(totals: npt.ArrayLike) -> FloatArray:
    x = np.asarray(totals, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or not np.all(np.isfinite(x)):
        raise refuse("totals must be finite numbers, one per user, not empty")
    return x
