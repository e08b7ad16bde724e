"""Tables of ratings, one row of items per user: their split and buckets, and generated ones with a planted low rank."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.task_facets import Pairs
from dpcore.multitask.problem import TaskCodes, TaskGraph

RatingValues = npt.NDArray[np.floating]
NUM_BUCKETS = 5
Buckets = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings user by user, each user's items ascending and distinct.

    Attributes:
        starts: Where each user's ratings begin, and the end, shape (num_users + 1,), int64.
        items: Item codes 0 .. num_items - 1, shape (num_ratings,), int32.
        values: Ratings in their own unit, finite, shape (num_ratings,), float32 or float64.
        num_items: Number of items; an item may have no rating.

    Raises:
        InvalidInput: Shapes do not fit, a code is out of range, an item stands twice in a user, or a rating is not
            finite.
    """

    starts: IntArray
    items: TaskCodes
    values: RatingValues
    num_items: int

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if shapes do not fit, or codes, the order of items or ratings are wrong."""
        starts, item_codes = self.starts, self.items
        with Problems() as problems:
            if starts.ndim != 1 or starts.size < 2 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
                problems.add("starts must ascend from 0, with one entry per user and the end")
            elif item_codes.shape != (int(starts[-1]),) or self.values.shape != item_codes.shape:
                problems.add(f"items and values must have {int(starts[-1]):,} entries each")
            elif item_codes.size and (item_codes.min() < 0 or item_codes.max() >= self.num_items):
                problems.add(f"item codes must lie between 0 and {self.num_items - 1:,}")
            else:
                ascending_mask = item_codes[1:] > item_codes[:-1]
                inner_starts = starts[1:-1]
                ascending_mask[inner_starts[(inner_starts > 0) & (inner_starts < item_codes.size)] - 1] = True
                if not ascending_mask.all():
                    problems.add("each user's items must ascend and be distinct")
                if not np.all(np.isfinite(self.values)):
                    problems.add("ratings must be finite numbers")

    @classmethod
    def from_columns(
        cls,
        user_codes: npt.ArrayLike,
        item_codes: npt.ArrayLike,
        values: npt.ArrayLike,
        num_items: int | None = None,
        num_users: int = 0,
    ) -> Ratings:
        """Create the table from one entry per rating, in any order.

        Args:
            user_codes: Codes 0 .. num_users - 1, shape (num_ratings,).
            item_codes: Codes 0 .. num_items - 1, shape (num_ratings,).
            values: Ratings, shape (num_ratings,).
            num_items: Number of items; None for the largest code + 1.
            num_users: Number of users; the largest code + 1 if that is more, as it is by default.

        Raises:
            InvalidInput: As for the class; also where a user rates an item twice.
        """
        users, items = np.asarray(user_codes, dtype=np.int64), np.asarray(item_codes, dtype=np.int64)
        num_items = int(items.max()) + 1 if num_items is None else num_items
        rating_order = np.argsort(users * num_items + items, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=num_users)))).astype(np.int64)
        return cls(starts, items[rating_order].astype(np.int32), np.asarray(values)[rating_order], num_items)

    @classmethod
    def from_pairs(cls, pairs: Pairs | None) -> Ratings | None:
        """Create the table from distinct pairs of user and item; a pair of several rows has their mean rating.

        Returns:
            None without pairs, and where they carry no sums of a value.
        """
        if pairs is None or pairs.sums is None or pairs.rows is None:
            return None
        starts = np.concatenate(([0], np.cumsum(np.bincount(pairs.user_codes)))).astype(np.int64)
        mean_ratings = (pairs.sums / pairs.rows).astype(np.float32)
        return cls(starts, pairs.task_codes.astype(np.int32), mean_ratings, pairs.num_tasks)

    @property
    def num_users(self) -> int:
        """Return the number of users, those without a rating too."""
        return self.starts.size - 1

    @property
    def num_ratings(self) -> int:
        """Return the number of ratings."""
        return self.items.size

    @cached_property
    def graph(self) -> TaskGraph:
        """Return users and items without the ratings, as a task graph; it shares the arrays."""
        return TaskGraph(self.starts, self.items, self.num_items)

    @cached_property
    def item_counts(self) -> IntArray:
        """Count the ratings of each item, shape (num_items,)."""
        return np.bincount(self.items, minlength=self.num_items).astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the table, hexadecimal, by which caches know it."""
        table_bytes = b"".join(a.tobytes() for a in (self.starts, self.items, self.values))
        return hashlib.sha256(table_bytes).hexdigest()

    def select(self, selected_mask: npt.NDArray[np.bool_]) -> Ratings:
        """Select the ratings under a mask of shape (num_ratings,); users and items keep their codes."""
        cumulative_counts = np.concatenate(([0], np.cumsum(selected_mask)))
        starts = cumulative_counts[self.starts].astype(np.int64)
        return Ratings(starts, self.items[selected_mask], self.values[selected_mask], self.num_items)

    def split(self, test_share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
        """Split the ratings into training and test, each rating held out with the same probability.

        Args:
            test_share: Probability, in (0, 1).
            rng: Source of the draw.

        Raises:
            InvalidInput: Nothing is left on one side.
        """
        held_out_mask = rng.random(self.num_ratings, dtype=np.float32) < test_share
        if held_out_mask.all() or not held_out_mask.any():
            raise refuse("nothing is left to train on or to test", remedy="Bring more ratings")
        return self.select(~held_out_mask), self.select(held_out_mask)

    def iterate_blocks(self, block_size: int) -> Iterator[RatingBlock]:
        """Yield blocks of ``block_size`` consecutive users; the last one may be smaller."""
        for first_user in range(0, self.num_users, block_size):
            yield RatingBlock(self, slice(first_user, min(first_user + block_size, self.num_users)))


@dataclass(frozen=True, eq=False)
class RatingBlock:
    """Consecutive users of a table, with their ratings.

    Attributes:
        table: The whole table.
        users: Where the users stand among all users.
    """

    table: Ratings
    users: slice

    @property
    def rating_slice(self) -> slice:
        """Return the slice of the table's ratings that these users have."""
        return slice(int(self.table.starts[self.users.start]), int(self.table.starts[self.users.stop]))

    @property
    def items(self) -> TaskCodes:
        """Return the item code of each rating of these users."""
        return self.table.items[self.rating_slice]

    @property
    def rating_users(self) -> IntArray:
        """Return the user code, in the whole table, of each rating of these users."""
        return self.repeat_for_ratings(np.arange(self.users.start, self.users.stop))

    def repeat_for_ratings(self, user_values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat the value of each user of the block for each of their ratings."""
        return np.repeat(user_values, np.diff(self.table.starts[self.users.start : self.users.stop + 1]))

    def build_matrix(self, rating_values: RatingValues) -> Any:
        """Build the sparse matrix of these users by all items, with one entry for each rating."""
        from scipy.sparse import csr_matrix

        starts = self.table.starts[self.users.start : self.users.stop + 1]
        shape = (starts.size - 1, self.table.num_items)
        return csr_matrix((rating_values, self.items, (starts - starts[0]).astype(np.int32)), shape=shape)


OUTSIDE = -1
"""The bucket of items that are in none."""


def assign_buckets(item_counts: IntArray, top_share: float = 1.0) -> Buckets:
    """Assign each item to a bucket, 0 for the rarest to `NUM_BUCKETS` - 1, with equally many items in each (up to one).

    Args:
        item_counts: Ratings of each item in *training*, shape (num_items,).
        top_share: Share of the items that are in buckets, the most popular ones; all others are `OUTSIDE`.

    Source: Krichene et al. 2023, section 5, "Impact on head and tail tasks". Its public code takes a tenth of the items
    for implicit feedback.
    """
    num_outside = item_counts.size - max(round(top_share * item_counts.size), 1)
    top_items = np.argsort(item_counts, kind="stable")[num_outside:]
    bucket_of_item = np.full(item_counts.size, OUTSIDE, dtype=np.int8)
    bucket_of_item[top_items] = np.arange(top_items.size) * NUM_BUCKETS // top_items.size
    return bucket_of_item


_BLOCK_CELLS = 4_000_000
_Cells = npt.NDArray[np.float32]
_Tastes = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class GeneratedRatings:
    """A population of users and items.

    Item i, in the order of popularity, is as popular as (i + 1)^-zipf_exponent; users are as active as a
    logarithmic normal variable. User j rates item i independently with probability 1 - exp(-t_j popularity_i),
    where t_j gives them as many ratings as they are active, in expectation. A rating is mean + offset_i +
    offset_j + <taste_j, trait_i> + error, rounded to steps and clipped to the range.

    Attributes:
        num_users: 2 to 10 million.
        num_items: 2 to 1 million.
        ratings_per_user: On average, 1 to half of the items.
        zipf_exponent: 0 to 3.
        activity_spread: Standard deviation of the logarithm of a user's expected number of ratings, 0 to 3.
        rank: r, 1 to 50.
        mean_rating: Mean rating.
        item_offset_spread: Standard deviation of the items' offsets.
        user_offset_spread: Standard deviation of the users' own offsets: some rate everything higher than others.
        taste_spread: Standard deviation of <taste, trait>.
        error_spread: Standard deviation of the error.
        choice_spread: How much taste decides what is rated: the standard deviation of log a_ij, 0 to 5; 0 for not at
            all. With it, user j rates item i with probability 1 - exp(-t_j popularity_i a_ij), where log a_ij is
            <taste_j, trait_i> in a unit of its own.
        rounding_step: What ratings are rounded to a multiple of; 0 for no rounding.
        lowest, highest: Range of the ratings.
    """

    num_users: int = 6_000
    num_items: int = 3_700
    ratings_per_user: float = 100.0
    zipf_exponent: float = 0.9
    activity_spread: float = 1.0
    rank: int = 6
    mean_rating: float = 3.5
    item_offset_spread: float = 0.45
    user_offset_spread: float = 0.4
    taste_spread: float = 0.5
    error_spread: float = 0.8
    choice_spread: float = 0.0
    rounding_step: float = 0.5
    lowest: float = 0.5
    highest: float = 5.0

    def draw(self, rng: np.random.Generator) -> Ratings:
        """Draw one table of ratings; users without a rating are in it, and item codes are in random order."""
        return self.draw_with_traits(rng)[0]

    def draw_with_traits(self, rng: np.random.Generator) -> tuple[Ratings, npt.NDArray[np.float32]]:
        """Draw a table, and return with it the planted traits of the items, shape (num_items, rank)."""
        # Draw tastes first only if they decide which items are rated: the other streams then stay as they are.
        traits_and_tastes = self._draw_tastes(rng) if self.choice_spread else None
        starts, item_codes = self._draw_pairs(rng, traits_and_tastes)
        item_offsets = self.item_offset_spread * rng.standard_normal(self.num_items, dtype=np.float32)
        traits, tastes = self._draw_tastes(rng) if traits_and_tastes is None else traits_and_tastes
        user_offsets = np.zeros(self.num_users, dtype=np.float32)
        if self.user_offset_spread:  # Without them nothing is drawn: the sample data were made so.
            user_offsets = self.user_offset_spread * rng.standard_normal(self.num_users, dtype=np.float32)
        rating_values = np.empty(item_codes.size, dtype=np.float32)
        users_per_block = max(int(_BLOCK_CELLS / self.rank / max(item_codes.size / self.num_users, 1.0)), 1)
        for first_user in range(0, self.num_users, users_per_block):
            stop_user = min(first_user + users_per_block, self.num_users)
            rating_slice = slice(int(starts[first_user]), int(starts[stop_user]))
            users = np.repeat(np.arange(first_user, stop_user), np.diff(starts[first_user : stop_user + 1]))
            items = item_codes[rating_slice]
            affinities = np.einsum("pr,pr->p", tastes[users], traits[items])
            rating_errors = self.error_spread * rng.standard_normal(affinities.size, dtype=np.float32)
            rating_values[rating_slice] = (
                self.mean_rating + item_offsets[items] + user_offsets[users] + affinities + rating_errors
            )
        if self.rounding_step:
            np.round(rating_values / np.float32(self.rounding_step), out=rating_values)
            rating_values *= np.float32(self.rounding_step)
        rating_values = np.clip(rating_values, self.lowest, self.highest).astype(np.float32)
        return Ratings(starts, item_codes, rating_values, self.num_items), traits

    def _draw_tastes(self, rng: np.random.Generator) -> _Tastes:
        """Draw the traits of the items, shape (num_items, rank), and the tastes of the users, (num_users, rank)."""
        # <taste, trait> has variance r a^2 a^2 with entries of standard deviation a.
        entry_scale = math.sqrt(self.taste_spread / math.sqrt(self.rank))
        item_traits = entry_scale * rng.standard_normal((self.num_items, self.rank), dtype=np.float32)
        user_tastes = entry_scale * rng.standard_normal((self.num_users, self.rank), dtype=np.float32)
        return item_traits, user_tastes

    def _draw_pairs(
        self, rng: np.random.Generator, traits_and_tastes: _Tastes | None
    ) -> tuple[np.ndarray, TaskCodes]:
        """Draw which items each user rates; return starts and item codes, as in `Ratings`."""
        item_popularity = np.arange(1.0, self.num_items + 1.0) ** -self.zipf_exponent
        item_popularity = rng.permutation(item_popularity / item_popularity.sum())
        activities, user_rates = self._draw_rates(item_popularity, rng)
        negative_popularity = (-item_popularity).astype(np.float32)
        rating_counts_by_block: list[np.ndarray] = []
        items_by_block: list[np.ndarray] = []
        users_per_block = max(_BLOCK_CELLS // self.num_items, 1)
        for first_user in range(0, self.num_users, users_per_block):
            block_rates = user_rates[first_user : first_user + users_per_block].astype(np.float32)
            log_unrated = block_rates[:, None] * negative_popularity
            if traits_and_tastes is not None:
                block_users = slice(first_user, first_user + block_rates.size)
                log_unrated = self._scale_by_taste(log_unrated, traits_and_tastes, block_users, activities)
            # Independent cells need no sorting and no search, unlike draws without replacement.
            uniform_draws = rng.random((block_rates.size, self.num_items), dtype=np.float32)
            rated_mask = uniform_draws < -np.expm1(log_unrated)
            rating_counts_by_block.append(np.count_nonzero(rated_mask, axis=1))
            items_by_block.append((np.flatnonzero(rated_mask) % self.num_items).astype(np.int32))
        starts = np.concatenate(([0], np.cumsum(np.concatenate(rating_counts_by_block)))).astype(np.int64)
        return starts, np.concatenate(items_by_block)

    def _scale_by_taste(
        self, log_unrated: _Cells, traits_and_tastes: _Tastes, user_slice: slice, activities: FloatArray
    ) -> _Cells:
        """Return exponents -t_j popularity_i a_ij of some users, from those without taste a_ij.

        Each user keeps about their expected number of ratings.
        """
        traits, tastes = traits_and_tastes
        affinities = (tastes[user_slice] * np.float32(self.choice_spread / self.taste_spread)) @ traits.T
        taste_log_unrated = log_unrated * np.exp(affinities - affinities.max(axis=1, keepdims=True))
        for _ in range(4):  # Nobody rates an item twice, so a much-liked item adds less than its rate.
            factors = activities[user_slice] / np.maximum(-np.expm1(taste_log_unrated).sum(axis=1), 1e-3)
            taste_log_unrated *= factors.astype(np.float32)[:, None]
        return np.asarray(taste_log_unrated, dtype=np.float32)

    def _draw_rates(self, popularity: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw each user's activity, their expected number of ratings, and the rate t_j that gives it without taste."""
        max_ratings = 0.9 * self.num_items
        activities = np.exp(self.activity_spread * rng.standard_normal(self.num_users))
        for _ in range(20):  # Bounded at both ends, the mean of the others makes up for it.
            activities = activities * (self.ratings_per_user / activities.mean())
            activities = np.clip(activities, min(1.0, max_ratings), max_ratings)
        # The expected ratings at rate t, on a grid from almost none to almost all, inverted for each user.
        smallest_popularity = float(popularity[popularity > 0.0].min())
        rate_grid = np.geomspace(1e-3, 50.0 / smallest_popularity, 200)
        expected_counts = np.array([-np.expm1(-rate * popularity).sum() for rate in rate_grid])
        return activities, np.exp(np.interp(np.log(activities), np.log(expected_counts), np.log(rate_grid)))
