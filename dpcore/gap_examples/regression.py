"""Linear regression under label privacy: variance of given weights, and of sample limiting by enumeration.

Features are public; neighbours differ in one user's labels. Rows of one user with the same features are
interchangeable, so an instance is a list of kinds of rows (user, features, how many), never one entry per
row.

Source: Epasto et al. 2020, sections 5.1 and 5.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, require
from dpcore.common.errors import refusal
from dpcore.contributions import FloatArray, IntArray, read_only

MAX_OUTCOMES = 100_000
"""Largest number of samples that `enumerate_sample_limiting` lists, each with its own least squares."""


@dataclass(frozen=True, eq=False)
class RegressionInstance:
    """Rows grouped into kinds: one user's rows with the same features.

    Attributes:
        features: Features of each kind, shape (kinds, d).
        user_codes: Whose rows they are, 0 .. num_users - 1, ascending, shape (kinds,).
        counts: How many rows, at least 1, shape (kinds,).
        residual_variance: sigma^2 of a label, at least 0, in the labels' unit squared.
        release_noise: 2 d (B / epsilon)^2: total variance of the noise, were one user's weights to sum to 1.

    Raises:
        InvalidInput: Shapes, codes, counts or noise are not as above; all problems at once.
    """

    features: FloatArray
    user_codes: IntArray
    counts: IntArray
    residual_variance: float
    release_noise: float

    def __post_init__(self) -> None:
        for name, kind in (("features", np.float64), ("user_codes", np.int64), ("counts", np.int64)):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=kind)))
        with Problems() as problems:
            if self.features.ndim != 2 or not (
                self.user_codes.shape == self.counts.shape == self.features.shape[:1]
            ):
                problems.add("features must have one row, user_codes and counts one entry, per kind of row")
            elif not (self.features.size and np.all(np.isfinite(self.features))):
                problems.add("features must be finite numbers, at least one")
            if self.user_codes.size and (
                self.user_codes[0] != 0 or not np.isin(np.diff(self.user_codes), (0, 1)).all()
            ):
                problems.add("user_codes must ascend from 0 without a gap")
            if np.any(self.counts < 1):
                problems.add("counts must be at least 1")
            problems.non_negative(residual_variance=self.residual_variance, release_noise=self.release_noise)

    @property
    def num_users(self) -> int:
        """m."""
        return int(self.user_codes[-1]) + 1

    @property
    def num_rows(self) -> int:
        """n."""
        return int(self.counts.sum())

    def rows(self) -> tuple[IntArray, FloatArray]:
        """One entry per row: user codes, shape (n,), and features, shape (n, d)."""
        return np.repeat(self.user_codes, self.counts), np.repeat(self.features, self.counts, axis=0)


@dataclass(frozen=True)
class WeightedVariance:
    """Total variance of a linear unbiased estimate C y plus its noise, (unit of the coefficients)^2.

    Attributes:
        sampling_variance: sigma^2 times the sum of the squared weights.
        privacy_variance: 2 d (B / epsilon)^2 times the square of the largest user's summed absolute weights.
    """

    sampling_variance: float
    privacy_variance: float

    @property
    def variance(self) -> float:
        """Both parts together."""
        return self.sampling_variance + self.privacy_variance


def weighted_variance(instance: RegressionInstance, weights: npt.ArrayLike) -> WeightedVariance:
    """Variance of generalised weighted averaging.

    Args:
        instance: The rows.
        weights: C for one row of each kind, shape (d, kinds).

    Raises:
        InvalidInput: The shape is wrong, or C X is not the identity (to 1e-9), so that the estimate would be
            biased.

    Source: Epasto et al. 2020, theorem 6.
    """
    c = np.asarray(weights, dtype=np.float64)
    d = instance.features.shape[1]
    with Problems() as problems:
        if c.shape != (d, instance.counts.size):
            problems.add(f"weights must have shape {(d, instance.counts.size)}; got {c.shape}")
        elif not np.allclose((c * instance.counts) @ instance.features, np.eye(d), rtol=0.0, atol=1e-9):
            problems.add("weights must satisfy C X = I: as they are, the estimate is biased")
    per_user = np.bincount(instance.user_codes, weights=instance.counts * np.abs(c).sum(axis=0))
    squared = float((instance.counts * (c**2).sum(axis=0)).sum())
    return WeightedVariance(
        instance.residual_variance * squared, instance.release_noise * float(per_user.max()) ** 2
    )


@dataclass(frozen=True)
class SampleLimiting:
    """Sample limiting at one threshold: its variance given the sample, over all samples.

    Attributes:
        threshold: h, rows kept per user.
        probabilities: Probability of each distinct sample whose least squares are defined, shape (outcomes,).
        variances: Total variance given that sample, shape (outcomes,).
        undefined: Probability that the sample does not determine the coefficients.
    """

    threshold: int
    probabilities: FloatArray
    variances: FloatArray
    undefined: float

    @property
    def mean_variance(self) -> float:
        """Expected squared error, given a sample that determines the coefficients (infinite: none does)."""
        defined = float(self.probabilities.sum())
        return float(self.probabilities @ self.variances) / defined if defined > 0.0 else math.inf

    def probability_at_least(self, variance: float) -> float:
        """Probability that the variance given the sample is at least that; undefined counts as infinite."""
        # The relative 1e-12 forgives rounding where the bound is met with equality.
        reached = float(self.probabilities[self.variances >= variance * (1.0 - 1e-12)].sum())
        return min(reached + self.undefined, 1.0)


def enumerate_sample_limiting(instance: RegressionInstance, threshold: int) -> SampleLimiting:
    """Every sample that sample limiting can draw, each with its own least squares: for small instances.

    Args:
        instance: The rows.
        threshold: h, rows kept of each user, at least 1.

    Raises:
        InvalidInput: More than `MAX_OUTCOMES` distinct samples.

    Source: Epasto et al. 2020, section 5.2.
    """
    require.whole(1, 10**12, threshold=threshold)
    draws = [
        _draws(instance.counts[instance.user_codes == user], int(threshold))
        for user in range(instance.num_users)
    ]
    outcomes = math.prod(len(chances) for _, chances in draws)
    if outcomes > MAX_OUTCOMES:
        raise refusal(
            f"there are {outcomes:,} distinct samples; at most {MAX_OUTCOMES:,} are listed",
            remedy="Choose a smaller instance",
        )
    shape = [len(chances) for _, chances in draws]
    block = max(1, 2_000_000 // instance.counts.size // instance.features.shape[1] ** 2)
    probabilities, variances, undefined = [], [], 0.0
    for start in range(0, outcomes, block):
        index, picks = np.arange(start, min(start + block, outcomes)), []
        for size in shape:  # Mixed radix; np.unravel_index stops at 64 users.
            index, pick = np.divmod(index, size)
            picks.append(pick)
        kept = np.concatenate([taken[i] for (taken, _), i in zip(draws, picks, strict=True)], axis=1)
        chance = np.prod([chances[i] for (_, chances), i in zip(draws, picks, strict=True)], axis=0)
        variance = _least_squares_variance(instance, kept)
        fine = np.isfinite(variance)
        probabilities.append(chance[fine])
        variances.append(variance[fine])
        undefined += float(chance[~fine].sum())
    return SampleLimiting(int(threshold), np.concatenate(probabilities), np.concatenate(variances), undefined)


def _draws(counts: IntArray, threshold: int) -> tuple[FloatArray, FloatArray]:
    """Ways to keep min(h, s) of one user's rows, (ways, kinds): how many of each kind; and their chances."""
    total = int(counts.sum())
    keep = min(threshold, total)
    ways: list[tuple[int, ...]] = [()]
    for i, count in enumerate(counts):
        rest = int(counts[i + 1 :].sum())
        ways = [
            (*way, here)
            for way in ways
            for here in range(max(0, keep - sum(way) - rest), min(int(count), keep - sum(way)) + 1)
        ]
        # Their number alone is refused where this is called; the ways listed so far are not used.
        if len(ways) > MAX_OUTCOMES:
            break
    chances = [math.prod(math.comb(int(c), k) for c, k in zip(counts, way, strict=False)) for way in ways]
    return np.array(ways, dtype=np.float64), np.array([chance / math.comb(total, keep) for chance in chances])


def _least_squares_variance(instance: RegressionInstance, kept: FloatArray) -> FloatArray:
    """Theorem 6 with C^s = (U^T U)^-1 U^T for each sample; infinite where U has not full rank."""
    x = instance.features
    gram = np.einsum("ok,ki,kj->oij", kept, x, x)
    variances = np.full(len(kept), np.inf)
    fine = np.linalg.matrix_rank(gram, hermitian=True) == x.shape[1]
    if fine.any():
        kept = kept[fine]
        weights = np.einsum("oij,kj->oki", np.linalg.inv(gram[fine]), x)
        squared = (kept * (weights**2).sum(axis=2)).sum(axis=1)
        loads = kept * np.abs(weights).sum(axis=2)
        starts = np.flatnonzero(np.diff(instance.user_codes, prepend=-1))
        largest = np.add.reduceat(loads, starts, axis=1).max(axis=1)
        variances[fine] = instance.residual_variance * squared + instance.release_noise * largest**2
    return variances
