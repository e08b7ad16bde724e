"""The budget of rare and of popular items under each scheme, without training."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme, allocate, count_with_noise
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.measures import BUCKETS, assign_buckets
from dpcore.factorisation.ratings import Ratings


@dataclass(frozen=True, eq=False)
class BudgetShares:
    """The budget that one scheme gives to the items of each bucket, rarest first.

    Attributes:
        scheme: Who gets a user's budget.
        shares: Of all squared weights, shape (BUCKETS,), summing to 1.
        weight: Average over a bucket's items of the sum of an item's weights, shape (BUCKETS,).
        noise: s: standard deviation of the noise on each released sum.
        used_share: Mean over users with a rating of their squared weights over k: what they do not use is lost.
    """

    scheme: Scheme
    shares: FloatArray
    weight: FloatArray
    noise: float
    used_share: float

    @property
    def noise_to_signal(self) -> FloatArray:
        """Return noise over the sum of weights, of an average item of each bucket; infinite where no rating counts."""
        infinite = np.full(BUCKETS, np.inf)
        return np.asarray(np.divide(self.noise, self.weight, out=infinite, where=self.weight > 0.0))


def divide_budget(
    ratings: Ratings, scheme: Scheme, spending: Spending, exponent: float, seed: int = 0
) -> BudgetShares:
    """Compute how a scheme divides the budget, for one draw of samples and noisy counts.

    Args:
        ratings: The table.
        scheme: Who gets a user's budget.
        spending: The budget and how it is divided.
        exponent: mu of the adaptive scheme.
        seed: Of draws and noise.
    """
    if not scheme.needs_counts:
        spending = replace(spending, count_share=0.0)
    count_rng, draw_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    max_items = spending.max_items
    counts = (
        count_with_noise(ratings, max_items, spending.count_noise, count_rng) if scheme.needs_counts else None
    )
    weighted = allocate(ratings, scheme, max_items, counts, exponent, draw_rng)
    buckets = assign_buckets(ratings.item_counts)
    squared_weights = weighted.weights.astype(np.float64) ** 2
    bucket_budgets = np.bincount(buckets, weighted.sum_by_item(squared_weights), BUCKETS)
    bucket_weights = np.bincount(buckets, weighted.sum_by_item(weighted.weights), BUCKETS)
    num_active_users = int(np.count_nonzero(np.diff(ratings.starts)))
    return BudgetShares(
        scheme,
        bucket_budgets / bucket_budgets.sum(),
        bucket_weights / np.maximum(np.bincount(buckets, minlength=BUCKETS), 1),
        spending.noise,
        float(bucket_budgets.sum() / max_items / max(num_active_users, 1)),
    )
