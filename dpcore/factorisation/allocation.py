"""How a user's budget is divided among ratings, and what rare and popular items get of it.

The counts and all sweeps share one Gaussian budget. A user moves the counts by at most sqrt(k) and, in each of T
sweeps, the matrices and the vectors of all items by at most sqrt(k) each, in units of what a rating of weight 1 may
add. With noise s_0 on counts and s on the others, all releases together are one Gaussian mechanism with mu^2 = k /
s_0^2 + R T k / s^2, R = 2 releases a sweep. In terms of `dpcore.multitask.problem` that is beta = mu^2 / 2, and betas
add. A further release per sweep for all items together, which a user moves by at most 1, adds 1 to R k.

The division says which ratings count, and with which weight. Squared weights of a user sum to at most k under every
scheme. A user's weights may depend on their own items, on public numbers and on the noisy counts, never on other
users' data.
"""

from __future__ import annotations

import enum
import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.ratings import NUM_BUCKETS, Ratings, assign_buckets
from dpcore.multitask.problem import PrivacyTarget, TaskGraph, compute_exact_budget
from dpcore.multitask.weights import scale_to_budget

# 7 ms a root, and a page asks for the same one several times.
_exact_budget = functools.lru_cache(maxsize=256)(compute_exact_budget)


@dataclass(frozen=True)
class Spending:
    """The division of the budget of all users among the releases.

    Attributes:
        budget: beta = mu^2 / 2 of all releases together, above 0.
        count_share: Share of beta for the noisy counts, in [0, 1); 0 where none are released.
        sweeps: T, releases of all item vectors.
        max_items: k: a user's squared weights sum to at most this.
        releases_per_sweep: Gaussian releases in one sweep: 2 for matrices and vectors, the steps for gradient descent.
        gram_releases_per_sweep: Further ones in a sweep that a user moves by at most 1, not sqrt(k), with the same
            noise: 1 for the Gram matrix of all users under implicit feedback, else 0.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    budget: float
    count_share: float
    sweeps: int
    max_items: int
    releases_per_sweep: int = 2
    gram_releases_per_sweep: int = 0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every number that is out of its range."""
        with Problems() as problems:
            problems.positive(budget=self.budget)
            problems.between(0.0, 0.99, count_share=self.count_share)
            problems.whole(1, 1_000, sweeps=self.sweeps)
            problems.whole(1, 10**9, max_items=self.max_items)
            problems.whole(1, 10_000, releases=self.releases_per_sweep)
            problems.whole(0, 10_000, for_all=self.gram_releases_per_sweep)

    @classmethod
    def from_target(cls, target: PrivacyTarget, *attributes: Any, **named_attributes: int) -> Spending:
        """Create the division whose budget gives every user this guarantee, with the attributes after ``budget``."""
        return cls(_exact_budget(target), *attributes, **named_attributes)

    @property
    def count_noise_std(self) -> float:
        """Return s_0, the standard deviation of the noise on each count; infinite where no counts are released."""
        count_budget = self.budget * self.count_share
        return math.sqrt(self.max_items / (2.0 * count_budget)) if count_budget else math.inf

    @property
    def noise_std(self) -> float:
        """Return s, the standard deviation of the noise on each released sum, for ratings that add at most 1 each."""
        sum_budget = self.budget * (1.0 - self.count_share)
        # In units of what a rating of weight 1 may add.
        squared_sweep_sensitivity = self.releases_per_sweep * self.max_items + self.gram_releases_per_sweep
        return math.sqrt(self.sweeps * squared_sweep_sensitivity / (2.0 * sum_budget))


SMALLEST_COUNT = 1.0
"""Floor of a noisy count."""
_SINGLE_MARGIN = 1.0 - 1e-6
"""Weights are kept in float32: this much below the budget, no rounding lifts a user above it."""


class Scheme(enum.Enum):
    """The rule by which a user's budget is divided over the items that they rated."""

    UNIFORM = "uniform"
    TAIL = "tail"
    ADAPTIVE = "adaptive"

    @property
    def needs_counts(self) -> bool:
        """Return True if the scheme reads noisy counts, which cost budget."""
        return self is not Scheme.UNIFORM


@dataclass(frozen=True, eq=False)
class WeightedRatings:
    """The ratings that count, and their weights.

    Attributes:
        ratings: Those of weight above 0.
        weights: w_ij, shape (ratings.num_ratings,), float32.
    """

    ratings: Ratings
    weights: npt.NDArray[np.float32]

    def sum_by_item(self, rating_values: npt.ArrayLike) -> FloatArray:
        """Sum one number per rating over each item, shape (num_items,)."""
        item_sums = np.bincount(self.ratings.items, rating_values, self.ratings.num_items)
        return np.asarray(item_sums, dtype=np.float64)


def mask_kept_ratings(
    graph: TaskGraph, max_items: int, generator_or_keys: np.random.Generator | IntArray
) -> npt.NDArray[np.bool_]:
    """Return a mask of the ratings to keep: at most k of each user, smallest by ``generator_or_keys`` or random.

    Row, number and index stand in one integer each, and these are sorted: five times as fast as sorting by two
    columns. Users with at most ``max_items`` ratings keep all and are not sorted.

    Args:
        graph: Who rated what.
        max_items: k, at least 1.
        generator_or_keys: A number for each item, below 2^31: the ratings of a user's smallest ones are kept. Or a
            random generator: then every set of k of a user's ratings is equally likely.

    Returns:
        Shape (num_ratings,).
    """
    ratings_per_user = graph.tasks_per_user
    capped_users = np.flatnonzero(ratings_per_user > max_items)
    kept_mask = np.ones(graph.num_pairs, dtype=bool)
    if not capped_users.size:
        return kept_mask
    ratings_of_capped = ratings_per_user[capped_users]
    row_ends = np.cumsum(ratings_of_capped)
    unsorted_indices_in_row = np.arange(int(row_ends[-1])) - np.repeat(
        row_ends - ratings_of_capped, ratings_of_capped
    )
    indices_in_table = np.repeat(graph.starts[capped_users], ratings_of_capped) + unsorted_indices_in_row
    num_index_bits = int(ratings_of_capped.max()).bit_length()
    num_row_bits = int(capped_users.size).bit_length()
    num_free_bits = 63 - num_index_bits - num_row_bits
    if isinstance(generator_or_keys, np.random.Generator):
        # Among equal numbers the first rating is taken; the bits that are left make equal numbers rare.
        rating_numbers = generator_or_keys.integers(0, 1 << num_free_bits, size=indices_in_table.size)
    else:
        rating_numbers = generator_or_keys[graph.task_codes[indices_in_table]]
    sort_keys = np.repeat(np.arange(capped_users.size), ratings_of_capped) << (num_index_bits + num_free_bits)
    sort_keys |= rating_numbers << num_index_bits
    sort_keys |= unsorted_indices_in_row
    sort_keys.sort()
    sorted_indices_in_row = sort_keys & ((1 << num_index_bits) - 1)
    kept_mask[indices_in_table] = False
    # Rows are as long as before, so the index in the sorted row is the old index.
    within_bound_mask = unsorted_indices_in_row < max_items
    kept_mask[(indices_in_table - unsorted_indices_in_row + sorted_indices_in_row)[within_bound_mask]] = True
    return kept_mask


def count_with_noise(
    ratings: Ratings, max_items: int, noise_std: float, rng: np.random.Generator
) -> FloatArray:
    """Count each item's ratings among k random ones of each user, add Gaussian noise, and raise to at least 1.

    Args:
        ratings: The table.
        max_items: k: exactly so many of each user's ratings are counted, drawn uniformly.
        noise_std: s_0, the standard deviation.
        rng: Source of the draw and of the noise.

    Source: Krichene et al. 2023, appendix D.1.
    """
    counted_items = ratings.items[mask_kept_ratings(ratings.graph, max_items, rng)]
    exact_counts = np.bincount(counted_items, minlength=ratings.num_items).astype(np.float64)
    return np.maximum(exact_counts + rng.normal(scale=noise_std, size=exact_counts.size), SMALLEST_COUNT)


def weigh_ratings(
    ratings: Ratings,
    scheme: Scheme,
    max_items: int,
    noisy_counts: FloatArray,
    weight_exponent: float,
    rng: np.random.Generator,
) -> WeightedRatings:
    """Return the ratings that count under one scheme, with their weights.

    Uniform: k ratings of each user, drawn uniformly, of weight 1. Tail: the k rarest of each, of weight 1. Adaptive:
    all, w_ij proportional to counts_i^-mu and scaled so that every user's squared weights sum to k.

    Args:
        ratings: The table.
        scheme: Which.
        max_items: k.
        noisy_counts: Noisy counts, above 0, shape (num_items,); not read by the uniform scheme.
        weight_exponent: mu in [0, 1], of the adaptive scheme.
        rng: Source of the uniform scheme's draw.

    Source: Krichene et al. 2023, section 5 and appendix D.1, and its public code; Chien et al. 2021 for tail sampling.
    """
    if scheme is Scheme.ADAPTIVE:
        item_weights = noisy_counts**-weight_exponent
        # Numbers near 1: the users' factors then keep their digits whatever the counts are.
        item_weights /= math.sqrt(float(np.mean(item_weights**2)))
        user_scales = scale_to_budget(ratings.graph, item_weights, float(max_items)) * _SINGLE_MARGIN
        rating_weights = np.repeat(user_scales.astype(np.float32), np.diff(ratings.starts))
        rating_weights *= item_weights.astype(np.float32)[ratings.items]
        return WeightedRatings(ratings, rating_weights)
    generator_or_keys: np.random.Generator | IntArray = rng
    if scheme is Scheme.TAIL:
        generator_or_keys = np.empty(noisy_counts.size, dtype=np.int64)
        generator_or_keys[np.argsort(noisy_counts, kind="stable")] = np.arange(noisy_counts.size)
    kept_mask = mask_kept_ratings(ratings.graph, max_items, generator_or_keys)
    kept_ratings = ratings if kept_mask.all() else ratings.select(kept_mask)
    return WeightedRatings(kept_ratings, np.ones(kept_ratings.num_ratings, dtype=np.float32))


def weigh_with_counts(
    ratings: Ratings, scheme: Scheme, spending: Spending, exponent: float, seed: int, uses_counts: bool = True
) -> tuple[FloatArray, WeightedRatings, np.random.Generator]:
    """Count each item's ratings with noise, and return which ratings then count, and with which weights.

    Returns:
        Noisy counts of the items, all 1 unless they are used; the ratings that count; the source of further noise.
    """
    # A stream for each: a scheme that takes no counts has the same noise on its sums.
    count_rng, draw_rng, noise_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    noisy_counts = np.ones(ratings.num_items)
    if uses_counts:
        noisy_counts = count_with_noise(ratings, spending.max_items, spending.count_noise_std, count_rng)
    weighted_ratings = weigh_ratings(ratings, scheme, spending.max_items, noisy_counts, exponent, draw_rng)
    return noisy_counts, weighted_ratings, noise_rng


@dataclass(frozen=True, eq=False)
class BudgetShares:
    """The budget that one scheme gives to the items of each bucket, rarest first.

    Attributes:
        scheme: Who gets a user's budget.
        bucket_shares: Of all squared weights, shape (NUM_BUCKETS,), summing to 1.
        mean_weight_sums: Average over a bucket's items of the sum of an item's weights, shape (NUM_BUCKETS,).
        noise_std: s: standard deviation of the noise on each released sum.
        used_share: Mean over users with a rating of their squared weights over k: what they do not use is lost.
    """

    scheme: Scheme
    bucket_shares: FloatArray
    mean_weight_sums: FloatArray
    noise_std: float
    used_share: float

    @property
    def noise_to_signal(self) -> FloatArray:
        """Return noise over the sum of weights, of an average item of each bucket; infinite where no rating counts."""
        ratios = np.full(NUM_BUCKETS, np.inf)
        mean_weight_sums = self.mean_weight_sums
        return np.asarray(np.divide(self.noise_std, mean_weight_sums, ratios, where=mean_weight_sums > 0.0))


def divide_budget(
    ratings: Ratings, scheme: Scheme, spending: Spending, exponent: float, seed: int = 0
) -> BudgetShares:
    """Compute which share of the budget the items of each bucket get under a scheme, for one draw.

    Args:
        ratings: The table.
        scheme: Who gets a user's budget.
        spending: The budget and how it is divided.
        exponent: mu of the adaptive scheme.
        seed: Of draws and noise.
    """
    if not scheme.needs_counts:
        spending = replace(spending, count_share=0.0)
    weighted_ratings = weigh_with_counts(ratings, scheme, spending, exponent, seed, scheme.needs_counts)[1]
    buckets = assign_buckets(ratings.item_counts)
    squared_weights = weighted_ratings.weights.astype(np.float64) ** 2
    squared_bucket_weights = np.bincount(buckets, weighted_ratings.sum_by_item(squared_weights), NUM_BUCKETS)
    bucket_weight_sums = np.bincount(
        buckets, weighted_ratings.sum_by_item(weighted_ratings.weights), NUM_BUCKETS
    )
    num_active_users = int(np.count_nonzero(np.diff(ratings.starts)))
    return BudgetShares(
        scheme,
        squared_bucket_weights / squared_bucket_weights.sum(),
        bucket_weight_sums / np.maximum(np.bincount(buckets, minlength=NUM_BUCKETS), 1),
        spending.noise_std,
        float(squared_bucket_weights.sum() / spending.max_items / max(num_active_users, 1)),
    )
