"""The error of a mean that clamps users, in a model without values.

A user of s rows has a mean c around mu with the variance tau^2 = sigma^2 (rho + (1 - rho) / s), users are independent,
and **mu is the middle M of [L, U]**, which only a trusted centre makes true. With weights u that sum to 1, p = s / n,
and T the deviation limit over n_h, a user adds u x, where x is c clamped to M +- d, d = T / u.

**Normal means**, with a = d / tau, phi and Q the density and the upper tail of the normal distribution:

    E (|c - mu| - d)_+ = 2 tau (phi(a) - a Q(a)),            P = P(|c - mu| < d) = 1 - 2 Q(a),
    Var x = tau^2 v,  v = P - 2 a phi(a) + 2 a^2 Q(a),       Cov(x, c) = tau^2 P  (Stein's lemma).

What is cut on both sides cancels, as the distribution is symmetric. The error counts it as a bias all the same:
otherwise T = 0 looks best. It is (sum u E(|c - mu| - d)_+)^2 + noise and, about the mean of a population,
sum u^2 tau^2 v; about that of the table, sum tau^2 (u^2 v - 2 u p P + p^2).

**Any distribution** with this mean and variance: E (c - mu - d)_+ and E (mu - c - d)_+ are each at most
k = (sqrt(tau^2 + d^2) - d) / 2, and the bias, which is their difference, is too. For tau <= sqrt(3) d it is k if c is
mu + d +- sqrt(tau^2 + d^2) with the mean mu: the lower point is not cut. A clamp is a contraction, so Var x <= tau^2,
and u x - p c has no steeper slope in c than max(p, |u - p|).

Clamped rows, in the same normal model: a row is cut by 2 sigma (phi(a) - a Q(a)) with a = (U - L) / (2 sigma), whatever
the weights. That rows then scatter less is not counted.

Source: Scarf 1958, *A min-max solution of an inventory problem*, for k; the rest is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray
from dpcore.mean.models import MeanError
from dpcore.mean.public_counts import MeanProblem, Target, compute_row_weight

NUM_ZOOMS = 4
NUM_GRID_POINTS = 33
"""Grids of `UserModel.find_threshold` and their points; each zooms in on the two steps around the best point."""

MODEL_ASSUMPTION = (
    "Users' means are normal around (L + U)/2, and σ² is the variance of the values before clamping; this is "
    "assumed, not read off data"
)


def measure_clamp(deviations: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for normal x of standard deviation tau, clamped to +- d: mean cut, v = variance / tau^2, P(|x| < d).

    For tau = 0 nothing is cut, and v and P are 1.

    Args:
        deviations: tau, at least 0, any shape.
        limits: d, above 0, of the same shape.
    """
    from scipy.special import ndtr

    a = np.divide(limits, deviations, out=np.full(limits.shape, np.inf), where=deviations > 0.0)
    a = np.minimum(a, 40.0)  # Beyond, nothing is left of the tail.
    normal_density, normal_tail = np.exp(-(a**2) / 2.0) / math.sqrt(2.0 * math.pi), ndtr(-a)
    shares_within_limits = 1.0 - 2.0 * normal_tail
    mean_cuts = 2.0 * deviations * np.maximum(normal_density - a * normal_tail, 0.0)
    return (
        mean_cuts,
        shares_within_limits - 2.0 * a * normal_density + 2.0 * a**2 * normal_tail,
        shares_within_limits,
    )


@dataclass(frozen=True, eq=False)
class UserModel:
    """The error of smooth weights if users are clamped, in the model without values.

    Attributes:
        problem: The problem of clamped rows. If counts are private, its mean is the middle of the range.
    """

    problem: MeanProblem

    @cached_property
    def deviations(self) -> FloatArray:
        """Return tau, the standard deviation of a user's mean, for each distinct size, shape (K,)."""
        rho, sizes = self.problem.user_share, self.problem.histogram.sizes.astype(np.float64)
        return np.sqrt(self.problem.value_variance * (rho + (1.0 - rho) / sizes))

    @cached_property
    def row_cut(self) -> float:
        """Return what clamping to [L, U] cuts of a row in expectation, in the values' unit."""
        value_deviation = math.sqrt(self.problem.value_variance)
        half_range_width = self.problem.value_bound / 2.0
        return float(measure_clamp(np.array(value_deviation), np.array(half_range_width))[0])

    def compute_error(self, thresholds: npt.ArrayLike, has_any_distribution: bool = False) -> MeanError:
        """Return the error at thresholds; its shift is the expected cut of all users together, without cancelling.

        Args:
            thresholds: h > 0 in rows per user, any shape.
            has_any_distribution: True for an upper bound for every distribution of users' means with this variance;
                False for normal means.
        """
        h = np.minimum(np.asarray(thresholds, dtype=np.float64), float(self.problem.histogram.max_size))
        cuts_and_variances = [
            self._measure(threshold, has_any_distribution) for threshold in h.ravel().tolist()
        ]
        shifts, sampling_variances = np.moveaxis(np.reshape(cuts_and_variances, (*h.shape, 2)), -1, 0)
        noise_variances = self.problem.model.measure_smooth(h).privacy_variance
        if has_any_distribution and self.problem.num_aggregates == 2:
            # The clamped mean may lie off the middle, where the noise of the count matters.
            noise_variances = noise_variances * (1.0 + (2.0 * shifts / self.problem.value_bound) ** 2)
        return MeanError(sampling_variances, np.asarray(noise_variances), shifts)

    def _measure(self, threshold: float, has_any_distribution: bool) -> tuple[float, float]:
        """Return the expected cut of the mean at one threshold, in the values' unit, and the variance before noise."""
        histogram, deviations = self.problem.histogram, self.deviations
        sizes, num_users_per_size = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
        u = compute_row_weight(self.problem, threshold, sizes) * sizes
        # In units of n_h the limit T = h (U - L) / 2 is that of the largest weight.
        limits_on_means = float(u.max()) * self.problem.value_bound / 2.0 / u
        p = sizes / histogram.num_rows if self.problem.target is Target.TABLE else np.zeros(sizes.shape)
        if has_any_distribution:
            mean_cuts = (np.hypot(deviations, limits_on_means) - limits_on_means) / 2.0
            squared_weight_changes = np.maximum(p, np.abs(u - p)) ** 2
        else:
            mean_cuts, variance_shares, inside_shares = measure_clamp(deviations, limits_on_means)
            squared_weight_changes = u**2 * variance_shares - 2.0 * u * p * inside_shares + p**2
        return float(num_users_per_size @ (u * mean_cuts)), float(
            num_users_per_size @ (np.maximum(squared_weight_changes, 0.0) * deviations**2)
        )

    def find_threshold(self, bounds: FloatArray, squared_errors: FloatArray) -> float:
        """Find the h with the least squared error by grids that zoom in on the best of the given bounds.

        ``bounds`` are ascending, and ``squared_errors`` are the squared errors there.
        """
        for _ in range(NUM_ZOOMS):
            best_index = int(np.argmin(squared_errors))
            threshold, nearby_bounds = bounds[best_index], bounds[max(best_index - 1, 0) : best_index + 2]
            bounds = np.unique(
                np.append(np.linspace(nearby_bounds[0], nearby_bounds[-1], NUM_GRID_POINTS), threshold)
            )
            squared_errors = self.compute_error(bounds).squared_error
        return float(bounds[np.argmin(squared_errors)])
