"""Who gets the budget, without training: what each scheme gives to rare and to popular items."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme, allocate, noisy_counts
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.measures import BUCKETS, buckets_of
from dpcore.factorisation.ratings import Ratings


@dataclass(frozen=True, eq=False)
class BudgetShares:
    """What one scheme gives to the items of each bucket, rarest first.

    Attributes:
        scheme: Who gets a user's budget.
        shares: Of all squared weights, shape (BUCKETS,), summing to 1.
        weight: Average over a bucket's items of the sum of an item's weights, shape (BUCKETS,).
        noise: s: standard deviation of the noise on each released sum.
        used: Mean over users with a rating of their squared weights over k: what they do not use is lost.
    """

    scheme: Scheme
    shares: FloatArray
    weight: FloatArray
    noise: float
    used: float

    @property
    def noise_to_signal(self) -> FloatArray:
        """Noise over the sum of weights, of an average item of each bucket; infinite where no rating counts."""
        infinite = np.full(BUCKETS, np.inf)
        return np.asarray(np.divide(self.noise, self.weight, out=infinite, where=self.weight > 0.0))


def budget_shares(
    ratings: Ratings, scheme: Scheme, spending: Spending, exponent: float, seed: int = 0
) -> BudgetShares:
    """What a scheme does with the budget, for one draw of samples and noisy counts.

    Args:
        ratings: The table.
        scheme: Who gets a user's budget.
        spending: The budget and how it is divided.
        exponent: mu of the adaptive scheme.
        seed: Of draws and noise.
    """
    if not scheme.needs_counts:
        spending = replace(spending, count_share=0.0)
    for_counts, for_draw = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    k = spending.max_items
    counts = noisy_counts(ratings, k, spending.count_noise, for_counts) if scheme.needs_counts else None
    weighted = allocate(ratings, scheme, k, counts, exponent, for_draw)
    buckets = buckets_of(ratings.item_counts)
    squared = weighted.weights.astype(np.float64) ** 2
    per_bucket = np.bincount(buckets, weighted.item_sums(squared), BUCKETS)
    sums = np.bincount(buckets, weighted.item_sums(weighted.weights), BUCKETS)
    with_ratings = int(np.count_nonzero(np.diff(ratings.starts)))
    return BudgetShares(
        scheme,
        per_bucket / per_bucket.sum(),
        sums / np.maximum(np.bincount(buckets, minlength=BUCKETS), 1),
        spending.noise,
        float(per_bucket.sum() / k / max(with_ratings, 1)),
    )
