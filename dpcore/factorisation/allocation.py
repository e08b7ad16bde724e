"""Who gets a user's budget: which ratings count, and with which weight.

Squared weights of a user sum to at most k under every scheme. A user's weights may depend on their own items, on
public numbers and on the noisy counts, never on other users' data.
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
from dpcore.multitask.weights import full_scales

SMALLEST_COUNT = 1.0
"""Floor of a noisy count."""
_SINGLE_MARGIN = 1.0 - 1e-6
"""Weights are kept in float32: this much below the budget, no rounding lifts a user above it."""


class Scheme(enum.Enum):
    """How a user's budget is divided over the items that they rated."""

    UNIFORM = "uniform"
    TAIL = "tail"
    ADAPTIVE = "adaptive"

    @property
    def needs_counts(self) -> bool:
        """Whether it reads noisy counts, which cost budget."""
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

    def item_sums(self, of: npt.ArrayLike) -> FloatArray:
        """Sum over each item of one number per rating, shape (num_items,)."""
        return np.asarray(np.bincount(self.ratings.items, of, self.ratings.num_items), dtype=np.float64)


def draw_exactly(graph: TaskGraph, most: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which ratings are kept when each user keeps exactly ``most``, or all where they have fewer.

    Args:
        graph: Who rated what.
        most: k, at least 1.
        rng: Source of the draw.

    Returns:
        Shape (num_ratings,); every set of k of a user's ratings is equally likely.
    """
    return _smallest(graph, most, rng)


def keep_rarest(graph: TaskGraph, most: int, counts: FloatArray) -> npt.NDArray[np.bool_]:
    """Which ratings are kept when each user keeps their ``most`` rarest items by the counts given.

    Source: tail sampling of Chien et al. 2021, as in Krichene et al. 2023, section 5.
    """
    ranks = np.empty(counts.size, dtype=np.int64)
    ranks[np.argsort(counts, kind="stable")] = np.arange(counts.size)
    return _smallest(graph, most, ranks)


def _smallest(graph: TaskGraph, most: int, by: np.random.Generator | IntArray) -> npt.NDArray[np.bool_]:
    """Each user's ``most`` smallest ratings by an item's number, or by random ones.

    Row, number and place stand in one whole number each, and these are sorted: five times as fast as sorting by two
    columns. Users with few ratings keep all and are not sorted.
    """
    require.whole(1, 10**9, max_items=most)
    lengths = graph.tasks_per_user
    rows = np.flatnonzero(lengths > most)
    keep = np.ones(graph.num_pairs, dtype=bool)
    if not rows.size:
        return keep
    of_rows = lengths[rows]
    ends = np.cumsum(of_rows)
    place = np.arange(int(ends[-1])) - np.repeat(ends - of_rows, of_rows)
    position = np.repeat(graph.starts[rows], of_rows) + place
    place_bits = int(of_rows.max()).bit_length()
    row_bits = int(rows.size).bit_length()
    number_bits = 63 - place_bits - row_bits
    if isinstance(by, np.random.Generator):
        # Of equal numbers the rating that stands first is taken: so many bits as are left make that rare.
        numbers = by.integers(0, 1 << number_bits, size=position.size)
    else:
        numbers = by[graph.tasks[position]]
    key = np.repeat(np.arange(rows.size), of_rows) << (place_bits + number_bits)
    key |= numbers << place_bits
    key |= place
    key.sort()
    place_sorted = key & ((1 << place_bits) - 1)
    keep[position] = False
    # Rows are as long as before, so the place in the sorted row is the old ``place``.
    first = place < most
    keep[(position - place + place_sorted)[first]] = True
    return keep


def noisy_counts(ratings: Ratings, most: int, noise: float, rng: np.random.Generator) -> FloatArray:
    """Ratings of each item, counted over k of each user's, with noise; at least 1, shape (num_items,).

    Args:
        ratings: The table.
        most: k: exactly so many of each user's ratings are counted, drawn uniformly.
        noise: s_0, the standard deviation.
        rng: Source of the draw and of the noise.

    Source: Krichene et al. 2023, appendix D.1.
    """
    counted = ratings.items[draw_exactly(ratings.graph, most, rng)]
    counts = np.bincount(counted, minlength=ratings.num_items).astype(np.float64)
    return np.maximum(counts + rng.normal(scale=noise, size=counts.size), SMALLEST_COUNT)


def allocate(
    ratings: Ratings,
    scheme: Scheme,
    most: int,
    counts: FloatArray | None,
    exponent: float,
    rng: np.random.Generator,
) -> WeightedRatings:
    """The weights of one scheme.

    Uniform: k ratings of each user, drawn uniformly, of weight 1. Tail: the k rarest of each, of weight 1. Adaptive:
    all, w_ij proportional to counts_i^-mu and scaled so that every user's squared weights sum to k.

    Args:
        ratings: The table.
        scheme: Which.
        most: k.
        counts: Noisy counts, above 0, shape (num_items,); not read by the uniform scheme.
        exponent: mu in [0, 1], of the adaptive scheme.
        rng: Source of the uniform scheme's draw.

    Raises:
        InvalidInput: A scheme that needs counts is given none, or an argument is out of its range.

    Source: Krichene et al. 2023, section 5 and appendix D.1; the adaptive weights as in its public code.
    """
    with Problems() as problems:
        problems.whole(1, 10**9, max_items=most)
        problems.between(0.0, 1.0, exponent=exponent)
        if scheme.needs_counts and (
            counts is None or counts.shape != (ratings.num_items,) or counts.min() <= 0
        ):
            problems.add(f"the {scheme.value} scheme needs a count above 0 for each item")
    if scheme is Scheme.ADAPTIVE:
        assert counts is not None
        of_items = counts**-exponent
        # Numbers near 1: the users' factors then keep their digits whatever the counts are.
        of_items /= math.sqrt(float(np.mean(of_items**2)))
        scales = full_scales(ratings.graph, of_items, float(most)) * _SINGLE_MARGIN
        weights = np.repeat(scales.astype(np.float32), np.diff(ratings.starts))
        weights *= of_items.astype(np.float32)[ratings.items]
        return WeightedRatings(ratings, weights)
    if scheme is Scheme.UNIFORM:
        keep = draw_exactly(ratings.graph, most, rng)
    else:
        assert counts is not None
        keep = keep_rarest(ratings.graph, most, counts)
    kept = ratings if keep.all() else ratings.kept(keep)
    return WeightedRatings(kept, np.ones(kept.num_ratings, dtype=np.float32))
