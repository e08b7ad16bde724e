"""How a user's budget is divided: which ratings count, and with which weight.

Squared weights of a user sum to at most k under every scheme. A user's weights may depend on their own items,
on public numbers and on the noisy counts, never on other users' data.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, require
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.weights import scale_to_budget

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

    def sum_by_item(self, numbers: npt.ArrayLike) -> FloatArray:
        """Sum one number per rating over each item, shape (num_items,)."""
        return np.asarray(np.bincount(self.ratings.items, numbers, self.ratings.num_items), dtype=np.float64)


def draw_exactly(graph: TaskGraph, max_items: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw exactly ``max_items`` ratings of each user, or all where they have fewer; return a mask.

    Args:
        graph: Who rated what.
        max_items: k, at least 1.
        rng: Source of the draw.

    Returns:
        Shape (num_ratings,); every set of k of a user's ratings is equally likely.
    """
    return _keep_smallest(graph, max_items, rng)


def keep_rarest(graph: TaskGraph, max_items: int, counts: FloatArray) -> npt.NDArray[np.bool_]:
    """Keep each user's ``max_items`` rarest items by the given counts; return a mask.

    Source: tail sampling of Chien et al. 2021, as in Krichene et al. 2023, section 5.

    Source: tail sampling of Chien et al. 2021, as in Krichene et al. 2023, section 5.
    """
    ranks = np.empty(counts.size, dtype=np.int64)
    ranks[np.argsort(counts, kind="stable")] = np.arange(counts.size)
    return _keep_smallest(graph, max_items, ranks)


def _keep_smallest(
    graph: TaskGraph, max_items: int, sort_numbers: np.random.Generator | IntArray
) -> npt.NDArray[np.bool_]:
    """Keep each user's ``max_items`` smallest ratings by an item's number, or by random numbers.

    Row, number and index stand in one integer each, and these are sorted: five times as fast as sorting by two
    columns. Users with few ratings keep all and are not sorted.
    """
    require.whole(1, 10**9, max_items=max_items)
    lengths = graph.tasks_per_user
    long_users = np.flatnonzero(lengths > max_items)
    is_kept = np.ones(graph.num_pairs, dtype=bool)
    if not long_users.size:
        return is_kept
    row_lengths = lengths[long_users]
    row_ends = np.cumsum(row_lengths)
    index_in_row = np.arange(int(row_ends[-1])) - np.repeat(row_ends - row_lengths, row_lengths)
    position = np.repeat(graph.starts[long_users], row_lengths) + index_in_row
    index_bits = int(row_lengths.max()).bit_length()
    row_bits = int(long_users.size).bit_length()
    number_bits = 63 - index_bits - row_bits
    if isinstance(sort_numbers, np.random.Generator):
        # Among equal numbers the first rating is taken; the bits that are left make equal numbers rare.
        numbers = sort_numbers.integers(0, 1 << number_bits, size=position.size)
    else:
        numbers = sort_numbers[graph.tasks[position]]
    key = np.repeat(np.arange(long_users.size), row_lengths) << (index_bits + number_bits)
    key |= numbers << index_bits
    key |= index_in_row
    key.sort()
    sorted_index = key & ((1 << index_bits) - 1)
    is_kept[position] = False
    # Rows are as long as before, so the index in the sorted row is the old index.
    is_within_bound = index_in_row < max_items
    is_kept[(position - index_in_row + sorted_index)[is_within_bound]] = True
    return is_kept


def count_with_noise(ratings: Ratings, max_items: int, noise: float, rng: np.random.Generator) -> FloatArray:
    """Count the ratings of each item over k of each user's, with noise; at least 1, shape (num_items,).

    Args:
        ratings: The table.
        max_items: k: exactly so many of each user's ratings are counted, drawn uniformly.
        noise: s_0, the standard deviation.
        rng: Source of the draw and of the noise.

    Source: Krichene et al. 2023, appendix D.1.
    """
    counted_items = ratings.items[draw_exactly(ratings.graph, max_items, rng)]
    counts = np.bincount(counted_items, minlength=ratings.num_items).astype(np.float64)
    return np.maximum(counts + rng.normal(scale=noise, size=counts.size), SMALLEST_COUNT)


def allocate(
    ratings: Ratings,
    scheme: Scheme,
    max_items: int,
    counts: FloatArray | None,
    exponent: float,
    rng: np.random.Generator,
) -> WeightedRatings:
    """Compute which ratings count under one scheme, and their weights.

    Uniform: k ratings of each user, drawn uniformly, of weight 1. Tail: the k rarest of each, of weight 1.
    Adaptive: all, w_ij proportional to counts_i^-mu and scaled so that every user's squared weights sum to k.

    Args:
        ratings: The table.
        scheme: Which.
        max_items: k.
        counts: Noisy counts, above 0, shape (num_items,); not read by the uniform scheme.
        exponent: mu in [0, 1], of the adaptive scheme.
        rng: Source of the uniform scheme's draw.

    Raises:
        InvalidInput: A scheme that needs counts is given none, or an argument is out of its range.

    Source: Krichene et al. 2023, section 5 and appendix D.1; the adaptive weights as in its public code.
    """
    with Problems() as problems:
        problems.whole(1, 10**9, max_items=max_items)
        problems.between(0.0, 1.0, exponent=exponent)
        if scheme.needs_counts and (
            counts is None or counts.shape != (ratings.num_items,) or counts.min() <= 0
        ):
            problems.add(f"the {scheme.value} scheme needs a count above 0 for each item")
    if scheme is Scheme.ADAPTIVE:
        assert counts is not None
        item_weights = counts**-exponent
        # Numbers near 1: the users' factors then keep their digits whatever the counts are.
        item_weights /= math.sqrt(float(np.mean(item_weights**2)))
        scales = scale_to_budget(ratings.graph, item_weights, float(max_items)) * _SINGLE_MARGIN
        weights = np.repeat(scales.astype(np.float32), np.diff(ratings.starts))
        weights *= item_weights.astype(np.float32)[ratings.items]
        return WeightedRatings(ratings, weights)
    if scheme is Scheme.UNIFORM:
        is_kept = draw_exactly(ratings.graph, max_items, rng)
    else:
        assert counts is not None
        is_kept = keep_rarest(ratings.graph, max_items, counts)
    kept_ratings = ratings if is_kept.all() else ratings.select(is_kept)
    return WeightedRatings(kept_ratings, np.ones(kept_ratings.num_ratings, dtype=np.float32))
