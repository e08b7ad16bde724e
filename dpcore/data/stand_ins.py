"""Made-up rows with the sizes of public data sets that may not be passed on, for figures that would be empty else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Rows of a regression with their users.

    Attributes:
        features: Shape (rows, features).
        labels: What is predicted, shape (rows,).
        users: Codes 0 .. num_users - 1, shape (rows,).
    """

    features: FloatArray
    labels: FloatArray
    users: IntArray


def sizes_like(users: int, rows: int, largest: int) -> IntArray:
    """Return the rows of each user, descending from the largest to 1, with this sum, shape (users,).

    Above 1 they fall as a power of the share of users below; what rounding leaves over falls to users in front.
    """
    below = np.linspace(1.0, 0.0, users)
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2.0
        total = np.rint(1.0 + (largest - 1) * below**middle).sum()
        low, high = (middle, high) if total > rows else (low, middle)
    sizes = np.rint(1.0 + (largest - 1) * below**high).astype(np.int64)
    sizes[1 : 1 + rows - int(sizes.sum())] += 1
    return sizes


def like_drugs(seed: int, users: int = 502, rows: int = 3107, largest: int = 63) -> RegressionRows:
    """Draw reviews with the sizes of *drugs*: two rated properties, and a rating from 1 to 10 as the label.

    A property has a column for each of its five levels but the first.

    Source of the sizes: Epasto et al. 2020, section 6.
    """
    rng = np.random.default_rng((seed, 1))
    owners = np.repeat(np.arange(users), sizes_like(users, rows, largest))
    effect = rng.choice(5, owners.size, p=(0.1, 0.1, 0.2, 0.25, 0.35))
    harm = rng.choice(5, owners.size, p=(0.05, 0.1, 0.2, 0.35, 0.3))
    labels = np.clip(np.rint(1.6 * effect + 0.8 * harm + 1.4 * rng.standard_normal(owners.size)), 1.0, 10.0)
    features = np.column_stack([levels == level for levels in (effect, harm) for level in range(1, 5)])
    return RegressionRows(features.astype(np.float64), labels, owners)


def like_news(seed: int) -> RegressionRows:
    """Draw posts with the sizes of *news*: 3,452 rows of 297 users, the largest with 878; counts up to 71.

    The final count of a post has a heavy tail; at each full hour the post has a part of it, which never falls.

    Source of the sizes: Epasto et al. 2020, section 6.
    """
    rng = np.random.default_rng((seed, 2))
    owners = np.repeat(np.arange(297), sizes_like(297, 3452, 878))
    labels = np.minimum(np.floor(np.exp(rng.normal(0.5, 1.2, owners.size))), 71.0)
    seen = np.zeros_like(labels)
    features: list[FloatArray] = []
    for _ in range(10):
        seen = seen + rng.binomial((labels - seen).astype(np.int64), 0.12)
        features.append(seen)
    return RegressionRows(np.column_stack(features), labels, owners)
