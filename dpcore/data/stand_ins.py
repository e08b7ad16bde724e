"""Simulated rows with the sizes of public datasets that must not be redistributed, for otherwise empty figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Rows of a regression with their users.

    Attributes:
        features: Shape (rows, features).
        labels: Labels, shape (rows,).
        users: Codes 0 .. num_users - 1, shape (rows,).
    """

    features: FloatArray
    labels: FloatArray
    users: IntArray


def build_sizes(users: int, rows: int, largest: int) -> IntArray:
    """Build the numbers of rows of users, descending from the largest to 1, with a given sum, shape (users,).

    Above 1 they fall as a power of the share of smaller users; the remainder of rounding goes to the first users.
    """
    shares = np.linspace(1.0, 0.0, users)
    low, high = 0.0, 1000.0
    for _ in range(60):
        exponent = (low + high) / 2.0
        total = np.rint(1.0 + (largest - 1) * shares**exponent).sum()
        low, high = (exponent, high) if total > rows else (low, exponent)
    sizes = np.rint(1.0 + (largest - 1) * shares**high).astype(np.int64)
    sizes[1 : 1 + rows - int(sizes.sum())] += 1
    return sizes


def simulate_drugs(seed: int, users: int = 502, rows: int = 3107, largest: int = 63) -> RegressionRows:
    """Simulate reviews with the sizes of *drugs*: two rated properties, and a rating from 1 to 10 as the label.

    A property has a column for each of its five levels except the first.

    Source of the sizes: Epasto et al. 2020, section 6.
    """
    rng = np.random.default_rng((seed, 1))
    owners = np.repeat(np.arange(users), build_sizes(users, rows, largest))
    effect = rng.choice(5, owners.size, p=(0.1, 0.1, 0.2, 0.25, 0.35))
    harm = rng.choice(5, owners.size, p=(0.05, 0.1, 0.2, 0.35, 0.3))
    labels = np.clip(np.rint(1.6 * effect + 0.8 * harm + 1.4 * rng.standard_normal(owners.size)), 1.0, 10.0)
    features = np.column_stack([levels == level for levels in (effect, harm) for level in range(1, 5)])
    return RegressionRows(features.astype(np.float64), labels, owners)


def simulate_news(seed: int) -> RegressionRows:
    """Simulate posts with the sizes of *news*: 3,452 rows of 297 users, the largest with 878; counts up to 71.

    The final count of a post has a heavy tail; the count at each full hour is a non-decreasing part of it.

    Source of the sizes: Epasto et al. 2020, section 6.
    """
    rng = np.random.default_rng((seed, 2))
    owners = np.repeat(np.arange(297), build_sizes(297, 3452, 878))
    labels = np.minimum(np.floor(np.exp(rng.normal(0.5, 1.2, owners.size))), 71.0)
    counts = np.zeros_like(labels)
    features: list[FloatArray] = []
    for _ in range(10):
        counts = counts + rng.binomial((labels - counts).astype(np.int64), 0.12)
        features.append(counts)
    return RegressionRows(np.column_stack(features), labels, owners)
