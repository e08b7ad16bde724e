"""Simulation of a mean, with private or public counts: an independent check of the delta-method error.

Noise comes from NumPy, whose floating-point Laplace is fit for this and not for a release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.privacy import LaplaceNoise
from dpcore.contributions import FloatArray
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.public_counts import (
    MeanProblem,
    WeightGrowth,
    compute_capped_error,
    compute_smooth_error,
    find_weight_growth,
)

BINOMIAL_LIMIT = 10**15
"""Rows above which a binomial count is drawn as normal (Berry-Esseen: off by 0.5 / sqrt(rows p (1 - p)))."""
_CELLS = 4_000_000


@dataclass(frozen=True)
class MeanSimulation:
    """Simulation of the whole mechanism (NumPy noise): for looking at, not a release.

    Attributes:
        mean_squared_error: Mean of (release - mu)^2, in the values' unit squared.
        standard_error: Estimated standard deviation of that mean.
    """

    mean_squared_error: float
    standard_error: float


@dataclass
class Moments:
    """Running count, mean and sum of squared distances of batches (Chan, Golub and LeVeque 1979)."""

    count: int = 0
    mean: float = math.nan
    distance: float = 0.0

    def add(self, batch: FloatArray) -> None:
        """Add one more batch."""
        n, m = self.count + batch.size, float(batch.mean())
        shift = m - self.mean if self.count else 0.0
        self.distance += float(((batch - m) ** 2).sum()) + shift**2 * self.count * batch.size / n
        self.mean = m if not self.count else self.mean + shift * batch.size / n
        self.count = n

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean; NaN with fewer than two values."""
        return math.sqrt(self.distance / (self.count - 1) / self.count) if self.count > 1 else math.nan


def simulate(
    problem: PrivateCountsProblem, bound: float, capped: bool = False, runs: int = 10_000, seed: int = 0
) -> MeanSimulation:
    """Draw rows and noise, release, clamp to [0, B]; the noisy sum of weights is at least 1, as in programs.

    Where users differ or the target is the mean of a table, the weighted sum before noise is drawn as normal, with the
    mean and the variance of the model. Else rows are independent and take two values,
    mu - sigma sqrt(p / (1 - p)) and mu + sigma sqrt((1 - p) / p) with p = mu / B the probability of the larger: mean
    and variance are the problem's, and both lie in [0, B].

    Args:
        problem: The question; ``mean_above_lower`` is given, strictly inside (0, B), and ``value_variance`` is at most
            mu (B - mu), the most that values in [0, B] with that mean can vary.
        bound: h > 0 in rows per user; whole where ``capped``.
        capped: A cap, instead of smooth weights.
        runs: At least 2.
        seed: Seed of NumPy's generator.
    """
    generator = np.random.default_rng(seed)
    block = min(max(1, _CELLS // problem.histogram.sizes.size), 50_000)
    squares = Moments()
    while squares.count < runs:
        deviations = simulate_deviations(problem, bound, capped, min(block, runs - squares.count), generator)
        squares.add(deviations**2)
    return MeanSimulation(squares.mean, squares.standard_error)


def simulate_deviations(
    problem: PrivateCountsProblem, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate releases less the true mean, shape (runs,); arguments and values as of `simulate`."""
    mu = problem.mean_above_lower
    assert mu is not None
    deviations, weight = _draw_deviations(problem, mu, bound, capped, runs, generator)
    shift = 0.0 if problem.table_values is None else problem.table_values.clamping_shift
    releases = _compute_releases(problem, bound, mu * weight + deviations, weight, generator)
    return np.asarray(np.clip(releases, 0.0, problem.value_bound) - mu + shift)


def _draw_deviations(
    problem: MeanProblem, mu: float, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> tuple[FloatArray, float]:
    """Draw the sum of w (y - mu) over fresh rows, shape (runs,), once per distinct size; also return n_h = sum of w."""
    if problem.model is not None:
        return _draw_model_deviations(problem, mu, bound, capped, runs, generator)
    p = mu / problem.value_bound
    sigma = math.sqrt(problem.value_variance)
    low, high = mu - sigma * math.sqrt(p / (1.0 - p)), mu + sigma * math.sqrt((1.0 - p) / p)
    sizes, users = problem.histogram.sizes.astype(np.float64), problem.histogram.users.astype(np.float64)
    kept_rows = np.minimum(bound, sizes)
    # Rows that weigh the same are one binomial draw: under a cap all that are kept, else all of users of one size.
    rows = np.array([np.sum(users * kept_rows)]) if capped else users * sizes
    weight = np.ones(1) if capped else kept_rows / sizes
    few = rows <= BINOMIAL_LIMIT
    ones = np.empty((runs, rows.size))
    ones[:, few] = generator.binomial(rows[few].astype(np.int64), p, size=(runs, int(few.sum())))
    many = rows[~few]
    ones[:, ~few] = generator.normal(many * p, np.sqrt(many * p * (1.0 - p)), size=(runs, many.size))
    # Not the sums themselves: nothing cancels when rows are many.
    return (high - low) * ((ones - rows * p) @ weight), float(weight @ rows)


def _draw_model_deviations(
    problem: MeanProblem, mu: float, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> tuple[FloatArray, float]:
    """Draw the same where the problem's own model says how far the weighted mean lies from the target."""
    error = (compute_capped_error if capped else compute_smooth_error)(problem, bound)
    sizes, users = problem.histogram.sizes.astype(np.float64), problem.histogram.users.astype(np.float64)
    grows = WeightGrowth() if capped else find_weight_growth(problem, bound)
    weight = float(grows.compute_scaled_weights(bound, sizes) @ users)
    expected_mean = mu + float(error.shift)
    if problem.table_values is not None:
        # Of the clamped values alone: what clamping shifts is added at the end, by `misses`.
        expected_mean -= problem.table_values.clamping_shift
    weighted_means = generator.normal(expected_mean, math.sqrt(float(error.sampling_variance)), runs)
    return (np.clip(weighted_means, 0.0, problem.value_bound) - mu) * weight, weight


def _compute_releases(
    problem: PrivateCountsProblem,
    bound: float,
    sums: FloatArray,
    weight: float,
    generator: np.random.Generator,
) -> FloatArray:
    """Compute the mean from the noisy statistics, not yet clamped, shape (runs,)."""
    big_b, h, eps, runs = problem.value_bound, float(bound), problem.epsilon, sums.size
    if problem.released_sums is ReleasedSums.PAIR:
        scale = LaplaceNoise.for_release(big_b * h, eps).scale
        p = sums + generator.laplace(0.0, scale, runs)
        complement = big_b * weight - sums + generator.laplace(0.0, scale, runs)
        top, bottom, offset = (p - complement) / 2.0, (p + complement) / big_b, big_b / 2.0
    else:
        offset = big_b / 2.0 if problem.released_sums is ReleasedSums.CENTRED_SPLIT else 0.0
        # How far a row's value may lie from the offset: B/2 where that is the middle of the range, else B.
        largest = max(big_b - offset, offset)
        top = sums - offset * weight
        top = top + generator.laplace(0.0, LaplaceNoise.for_release(largest * h, eps / 2.0).scale, runs)
        bottom = weight + generator.laplace(0.0, LaplaceNoise.for_release(h, eps / 2.0).scale, runs)
    return np.asarray(offset + top / np.maximum(bottom, 1.0))
