"""Item vectors, the user vectors that follow from them, and predicted ratings.

Every user's vector begins with the same number o (the offset coordinate), which is not learned: the item's
coordinate there is the item's own level. Without it a private model would spend its noise on finding the levels
as a product. With o = 0 there is no such coordinate, and the objective is (D.1) of Krichene et al. 2023 on
ratings less the midpoint.

Every item's vector may end with the same number (the own coordinate), which is public: a user's coordinate
there is how far they rate above what items explain, their own offset. It is computed at home, costs no privacy,
and is subtracted from their ratings before these enter a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.normal_equations import (
    Vectors,
    choose_block_size,
    multiply_coordinates,
    solve_rows,
    sum_for_users,
)
from dpcore.factorisation.ratings import Ratings, RatingValues

OFFSET = 0.9
"""o. Most of a user vector's length 1 goes to the level of the item, which explains more of a rating than taste does;
on generated ratings 0.9 did better than 0.7 at every epsilon from 1 to 20."""


OWN_COORDINATE = 1.5
"""The own coordinate of every item: a user's offset has a ridge of user_ridge / `OWN_COORDINATE`², 4.4 by default."""
LARGEST_RATING = 1e30
"""Ends of the range: beyond, sums of squares would leave float32."""


@dataclass(frozen=True)
class RatingRange:
    """The public range of ratings: they are clipped to it, and centred at its midpoint.

    Attributes:
        lowest, highest: Its ends, in the ratings' unit. They must not be read off private ratings.

    Raises:
        InvalidInput: Not finite, or empty.
    """

    lowest: float = 0.5
    highest: float = 5.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            names = {"the lowest rating": self.lowest, "the highest": self.highest}
            if problems.ascending(**names):
                for name, end in names.items():
                    problems.between(-LARGEST_RATING, LARGEST_RATING, **{name: end})

    @property
    def midpoint(self) -> float:
        """Return the midpoint of the range."""
        return (self.lowest + self.highest) / 2.0

    @property
    def label_bound(self) -> float:
        """Return Gamma_y, the largest distance of a clipped rating from the midpoint."""
        return (self.highest - self.lowest) / 2.0

    def centre(self, values: RatingValues) -> RatingValues:
        """Subtract the midpoint, and clip: the results, as stored, are never farther from 0 than `label_bound`."""
        # Rounded to float32 before the midpoint is taken off, a rating between 1000.1 and 1000.7 may lie 1.6e-4 of the
        # bound too far out. The margin covers the rounding at the end.
        bound = self.label_bound * (1.0 - float(np.finfo(values.dtype).eps))
        centred = np.clip(values.astype(np.float64) - self.midpoint, -bound, bound)
        return np.asarray(centred, dtype=values.dtype)


@dataclass(frozen=True)
class FactorSettings:
    """The settings of alternating least squares, with or without privacy.

    Attributes:
        dimension: d, coordinates of an item vector, the offset coordinate among them; 1 to 128.
        sweeps: T, each a solution for all users and then for all items; 1 to 50.
        user_ridge: lambda of the users, above 0. Users solve for their own vector at home: it touches no privacy.
        item_ridge: lambda of the items, above 0, the same number for each item, so that it is public.
        offset: o, in [0, 1]; 0 for no offset coordinate.
        own_coordinate: The own coordinate of every item, at least 0; 0 for users without an offset of their own.
        seed: Of the first item vectors, which are public.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    dimension: int = 4
    sweeps: int = 2
    user_ridge: float = 10.0
    item_ridge: float = 5.0
    offset: float = OFFSET
    own_coordinate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(0.0, 1e3, own=self.own_coordinate)
            problems.whole(1, 128, dimension=self.dimension)
            problems.whole(1, 50, sweeps=self.sweeps)
            problems.positive(user_ridge=self.user_ridge, item_ridge=self.item_ridge)
            problems.between(0.0, 1.0, offset=self.offset)
            problems.whole(0, 2**32 - 1, seed=self.seed)

    def first_item_vectors(self, num_items: int) -> FloatArray:
        """Draw random vectors of expected squared length 1, with nothing in the offset coordinate."""
        num_free = self.dimension - (self.offset > 0.0)
        rng = np.random.default_rng(self.seed)
        random_vectors = rng.standard_normal((num_items, num_free)) / math.sqrt(max(num_free, 1))
        return self.append_own_coordinate(
            np.hstack([np.zeros((num_items, self.dimension - num_free)), random_vectors])
        )

    def append_own_coordinate(self, item_vectors: FloatArray) -> FloatArray:
        """Append the own coordinate to item vectors of d coordinates, where there is one."""
        if not self.own_coordinate:
            return item_vectors
        return np.hstack([item_vectors, np.full((item_vectors.shape[0], 1), self.own_coordinate)])


@dataclass(frozen=True, eq=False)
class FactorModel:
    """The released item vectors, and the predictions that follow from them.

    Attributes:
        item_vectors: One per item, shape (num_items, d), with the own coordinate behind where there is one.
        settings: How they were found.
        range: Of the ratings.
    """

    item_vectors: FloatArray
    settings: FactorSettings
    range: RatingRange

    def solve_user_vectors(self, ratings: Ratings) -> FloatArray:
        """Compute each user's vector at home, from the item vectors and their own ratings, shape (num_users, d)."""
        blocks = [
            vectors for _, _, vectors in solve_users(ratings, self.item_vectors, self.settings, self.range)
        ]
        return np.concatenate(blocks)

    def predict(self, user_vectors: Vectors, pairs: Ratings) -> FloatArray:
        """Predict the rating of each pair of a table, within the range, shape (num_ratings,)."""
        predictions = np.empty(pairs.num_ratings)
        # 4 million numbers at a time.
        users_per_block = max(
            int(4e6 / self.item_vectors.shape[1] * pairs.num_users / (pairs.num_ratings + 1)), 1
        )
        for users, rating_slice in pairs.blocks(users_per_block):
            user_rows = np.repeat(
                np.arange(users.start, users.stop), np.diff(pairs.starts[users.start : users.stop + 1])
            )
            predictions[rating_slice] = np.einsum(
                "pd,pd->p", user_vectors[user_rows], self.item_vectors[pairs.items[rating_slice]]
            )
        return np.asarray(np.clip(predictions + self.range.midpoint, self.range.lowest, self.range.highest))


def solve_users(
    ratings: Ratings,
    item_vectors: npt.NDArray[np.floating],
    settings: FactorSettings,
    limits: RatingRange,
) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Solve for the exact least-squares vectors of all users, block by block.

    Args:
        ratings: The table.
        item_vectors: Shape (num_items, d).
        settings: Ridge and offset.
        limits: The range of ratings.

    Yields:
        The block's users, their ratings, and their vectors, shape (block, d).

    Source: Krichene et al. 2023, algorithm 3, line 4.
    """
    num_fixed = int(settings.offset > 0.0)
    vectors = np.ascontiguousarray(item_vectors[:, num_fixed:], dtype=ratings.values.dtype)
    item_products = multiply_coordinates(vectors)
    levels = (settings.offset * item_vectors[:, 0]).astype(vectors.dtype) if num_fixed else None
    for users, rating_slice in ratings.blocks(choose_block_size(item_vectors.shape[1])):
        num_block_users = users.stop - users.start
        x = np.empty((num_block_users, item_vectors.shape[1]))
        x[:, :num_fixed] = settings.offset
        if vectors.shape[1]:
            labels = limits.centre(ratings.values[rating_slice])
            if levels is not None:
                labels = labels - levels[ratings.items[rating_slice]]
            sums = sum_for_users(
                ratings, users, rating_slice, vectors, item_products, np.ones_like(labels), labels
            )
            x[:, num_fixed:] = solve_rows(sums, settings.user_ridge)
        yield users, rating_slice, x
