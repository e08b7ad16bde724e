"""The paper's two regression instances row by row, and every sample of sample limiting with its own least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse, require
from dpcore.contributions import FloatArray, IntArray, read_only
from dpcore.gap_examples.regression import SampleLimiting
from dpcore.regression.examples import kinds_1, kinds_3

MAX_OUTCOMES = 100_000
"""Largest number of samples that `enumerate_sample_limiting` lists, each with its own least squares."""


@dataclass(frozen=True, eq=False)
class RegressionInstance:
    """A regression problem as counts of distinct rows: one user's rows with the same features are one kind.

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
        for name, dtype in (("features", np.float64), ("user_codes", np.int64), ("counts", np.int64)):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=dtype)))
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
        """Return m."""
        return int(self.user_codes[-1]) + 1

    @property
    def num_rows(self) -> int:
        """Return n."""
        return int(self.counts.sum())

    def rows(self) -> tuple[IntArray, FloatArray]:
        """Return one entry per row: user codes, shape (n,), and features, shape (n, d)."""
        return np.repeat(self.user_codes, self.counts), np.repeat(self.features, self.counts, axis=0)


@dataclass(frozen=True)
class WeightedVariance:
    """Total variance of a linear unbiased estimate C y and of its noise, (unit of the coefficients)^2.

    Attributes:
        sampling_variance: sigma^2 times the sum of the squared weights.
        privacy_variance: 2 d (B / epsilon)^2 times the square of the largest user's summed absolute weights.
    """

    sampling_variance: float
    privacy_variance: float

    @property
    def variance(self) -> float:
        """Return both parts together."""
        return self.sampling_variance + self.privacy_variance


def weighted_variance(instance: RegressionInstance, weights: npt.ArrayLike) -> WeightedVariance:
    """Compute the variance of generalised weighted averaging.

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
    user_weights = np.bincount(instance.user_codes, weights=instance.counts * np.abs(c).sum(axis=0))
    squared_weights = float((instance.counts * (c**2).sum(axis=0)).sum())
    return WeightedVariance(
        instance.residual_variance * squared_weights, instance.release_noise * float(user_weights.max()) ** 2
    )


def enumerate_sample_limiting(instance: RegressionInstance, threshold: int) -> SampleLimiting:
    """List every sample that sample limiting can draw, each with its own least squares: for small instances.

    Args:
        instance: The rows.
        threshold: h, rows kept of each user, at least 1.

    Raises:
        InvalidInput: More than `MAX_OUTCOMES` distinct samples.

    Source: Epasto et al. 2020, section 5.2.
    """
    require.whole(1, 10**12, threshold=threshold)
    user_samples = [
        _enumerate_user_samples(instance.counts[instance.user_codes == user], int(threshold))
        for user in range(instance.num_users)
    ]
    num_samples = math.prod(len(probabilities) for _, probabilities in user_samples)
    if num_samples > MAX_OUTCOMES:
        raise refuse(
            f"there are {num_samples:,} distinct samples; at most {MAX_OUTCOMES:,} are listed",
            remedy="Choose a smaller instance",
        )
    samples_per_user = [len(probabilities) for _, probabilities in user_samples]
    block_size = max(1, 2_000_000 // instance.counts.size // instance.features.shape[1] ** 2)
    all_probabilities, variances, undefined = [], [], 0.0
    for start in range(0, num_samples, block_size):
        mixed_index, chosen_samples = np.arange(start, min(start + block_size, num_samples)), []
        for size in samples_per_user:  # Mixed radix; np.unravel_index stops at 64 users.
            mixed_index, sample_index = np.divmod(mixed_index, size)
            chosen_samples.append(sample_index)
        kept_counts = np.concatenate(
            [counts[i] for (counts, _), i in zip(user_samples, chosen_samples, strict=True)], axis=1
        )
        probability = np.prod(
            [probabilities[i] for (_, probabilities), i in zip(user_samples, chosen_samples, strict=True)],
            axis=0,
        )
        variance = _least_squares_variance(instance, kept_counts)
        is_defined = np.isfinite(variance)
        all_probabilities.append(probability[is_defined])
        variances.append(variance[is_defined])
        undefined += float(probability[~is_defined].sum())
    return SampleLimiting(
        int(threshold), np.concatenate(all_probabilities), np.concatenate(variances), undefined
    )


def _enumerate_user_samples(counts: IntArray, threshold: int) -> tuple[FloatArray, FloatArray]:
    """List the ways to keep min(h, s) of one user's rows, as counts per kind (ways, kinds), with probabilities."""
    total = int(counts.sum())
    num_kept = min(threshold, total)
    samples: list[tuple[int, ...]] = [()]
    for i, count in enumerate(counts):
        rows_after = int(counts[i + 1 :].sum())
        samples = [
            (*sample, num_chosen)
            for sample in samples
            for num_chosen in range(
                max(0, num_kept - sum(sample) - rows_after), min(int(count), num_kept - sum(sample)) + 1
            )
        ]
        # The caller refuses so many samples by their number, and does not use the list.
        if len(samples) > MAX_OUTCOMES:
            break
    probabilities = [
        math.prod(math.comb(int(c), k) for c, k in zip(counts, sample, strict=False)) for sample in samples
    ]
    return np.array(samples, dtype=np.float64), np.array(
        [combinations / math.comb(total, num_kept) for combinations in probabilities]
    )


def _least_squares_variance(instance: RegressionInstance, kept_counts: FloatArray) -> FloatArray:
    """Compute theorem 6 with C^s = (U^T U)^-1 U^T for each sample; infinite where U has not full rank."""
    x = instance.features
    gram = np.einsum("ok,ki,kj->oij", kept_counts, x, x)
    variances = np.full(len(kept_counts), np.inf)
    has_full_rank = np.linalg.matrix_rank(gram, hermitian=True) == x.shape[1]
    if has_full_rank.any():
        kept_counts = kept_counts[has_full_rank]
        weights = np.einsum("oij,kj->oki", np.linalg.inv(gram[has_full_rank]), x)
        squared_weights = (kept_counts * (weights**2).sum(axis=2)).sum(axis=1)
        absolute_weights = kept_counts * np.abs(weights).sum(axis=2)
        first_of_user = np.flatnonzero(np.diff(instance.user_codes, prepend=-1))
        largest_user_weight = np.add.reduceat(absolute_weights, first_of_user, axis=1).max(axis=1)
        variances[has_full_rank] = (
            instance.residual_variance * squared_weights + instance.release_noise * largest_user_weight**2
        )
    return variances


def instance(number: int, g: int) -> RegressionInstance:
    """Return the rows of an example."""
    return (
        RegressionInstance(*kinds_1(g), 0.0, 1.0)
        if number == 1
        else RegressionInstance(*kinds_3(g), 1.0, float(g))
    )


def paper_weights(number: int, g: int) -> FloatArray:
    """Return the paper's feasible C, one column per kind of row, shape (2, kinds)."""
    if number == 3:
        weights = np.zeros((2, 2 * g + 1))
        weights[0, 1::2] = 1.0 / g
        weights[1, 2::2] = 1.0 / (g * (g - 1))
        return weights
    weights = np.zeros((2, 2 * g * g + 2))
    weights[0, 1 : g * g + 1] = 1.0 / g**3
    weights[1, g * g + 2 :] = 1.0 / g**2
    return weights
