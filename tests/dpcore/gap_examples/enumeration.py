"""The paper's two regression instances row by row, and every sample of sample limiting with its own least squares."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.gap_examples.regression import SampleLimiting
from dpcore.regression.parameters import list_rows_of_example_1, list_rows_of_example_3


class RegressionInstance(NamedTuple):
    """A regression problem as counts of distinct rows: one user's rows with the same features are one kind."""

    features: FloatArray
    user_codes: IntArray
    counts: IntArray
    residual_variance: float
    release_noise: float

    @property
    def num_users(self) -> int:
        return int(self.user_codes[-1]) + 1

    def rows(self) -> tuple[IntArray, FloatArray]:
        """One entry per row: user codes, shape (n,), and features, shape (n, d)."""
        return np.repeat(self.user_codes, self.counts), np.repeat(self.features, self.counts, axis=0)


def build_instance(number: int, g: int) -> RegressionInstance:
    """Build the rows of an example."""
    if number == 1:
        return RegressionInstance(*list_rows_of_example_1(g), 0.0, 1.0)
    return RegressionInstance(*list_rows_of_example_3(g), 1.0, float(g))


def compute_row_variance(instance: RegressionInstance, users: IntArray, weights: FloatArray) -> float:
    """Compute theorem 6 with one column of C per row."""
    user_weights = np.bincount(users, weights=np.abs(weights).sum(axis=0))
    noise = instance.release_noise * user_weights.max() ** 2
    return float(instance.residual_variance * (weights**2).sum() + noise)


def compute_least_squares_variance(
    instance: RegressionInstance, users: IntArray, features: FloatArray
) -> float:
    """Compute theorem 6 with C = (U^T U)^-1 U^T of the rows kept; infinite where U has not full rank."""
    if np.linalg.matrix_rank(features) < features.shape[1]:
        return math.inf
    return compute_row_variance(instance, users, np.linalg.pinv(features))


def enumerate_sample_limiting(instance: RegressionInstance, threshold: int) -> SampleLimiting:
    """Return every distinct sample that sample limiting can draw (Epasto et al. 2020, section 5.2)."""
    user_samples = []
    for user in range(instance.num_users):
        counts = instance.counts[instance.user_codes == user].tolist()
        num_kept = min(threshold, sum(counts))
        samples = itertools.product(*(range(count + 1) for count in counts))
        num_samples = math.comb(sum(counts), num_kept)
        user_samples.append(
            [
                (sample, math.prod(map(math.comb, counts, sample)) / num_samples)
                for sample in samples
                if sum(sample) == num_kept
            ]
        )
    outcomes = []
    for combination in itertools.product(*user_samples):
        kept_counts = np.concatenate([sample for sample, _ in combination])
        users, features = instance._replace(counts=kept_counts).rows()
        probability = math.prod(probability for _, probability in combination)
        outcomes.append((probability, compute_least_squares_variance(instance, users, features)))
    probabilities, variances = np.array(outcomes).T
    is_defined = np.isfinite(variances)
    undefined = float(probabilities[~is_defined].sum())
    return SampleLimiting(threshold, probabilities[is_defined], variances[is_defined], undefined)
