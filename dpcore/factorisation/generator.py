"""Ratings with a planted low rank and Zipf items, at any size up to that of MovieLens 10M."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.graph import TaskCodes

MAX_CELLS = 800_000_000
"""Users times items: each cell costs a random number, about 8 ns."""
_BLOCK_CELLS = 4_000_000
_Cells = npt.NDArray[np.float32]
_Tastes = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class GeneratedRatings:
    """A population of users and items.

    Item i, in the order of popularity, is as popular as (i + 1)^-zipf_exponent; users are as active as a
    logarithmic normal variable. User j rates item i independently with probability 1 - exp(-t_j popularity_i),
    where t_j gives them as many ratings as they are active, in expectation. A rating is overall + offset_i +
    offset_j + <taste_j, trait_i> + error, rounded to steps and clipped to the range.

    Attributes:
        num_users: 2 to 10 million.
        num_items: 2 to 1 million.
        ratings_per_user: On average, 1 to half of the items.
        zipf_exponent: 0 to 3.
        user_spread: Standard deviation of the logarithm of a user's activity, 0 to 3.
        rank: r, 1 to 50.
        overall: Mean rating.
        item_offset_spread: Standard deviation of the items' offsets.
        user_offset_spread: Standard deviation of the users' own offsets: some rate everything higher than others.
        taste_spread: Standard deviation of <taste, trait>.
        error_spread: Standard deviation of the error.
        choice_spread: How much taste decides what is rated: the standard deviation of log a_ij, 0 to 5; 0 for not at
            all. With it, user j rates item i with probability 1 - exp(-t_j popularity_i a_ij), where log a_ij is
            <taste_j, trait_i> in a unit of its own.
        step: What ratings are rounded to; 0 for no rounding.
        lowest, highest: Range of the ratings.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    num_users: int = 6_000
    num_items: int = 3_700
    ratings_per_user: float = 100.0
    zipf_exponent: float = 0.9
    user_spread: float = 1.0
    rank: int = 6
    overall: float = 3.5
    item_offset_spread: float = 0.45
    user_offset_spread: float = 0.4
    taste_spread: float = 0.5
    error_spread: float = 0.8
    choice_spread: float = 0.0
    step: float = 0.5
    lowest: float = 0.5
    highest: float = 5.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            sizes = problems.whole(2, 10**7, num_users=self.num_users)
            sizes &= problems.whole(2, 10**6, num_items=self.num_items)
            if sizes and self.num_users * self.num_items > MAX_CELLS:
                problems.add(f"users times items must be at most {MAX_CELLS:,}")
            if sizes:
                problems.between(1.0, max(self.num_items / 2.0, 1.0), ratings_per_user=self.ratings_per_user)
            problems.between(0.0, 3.0, zipf_exponent=self.zipf_exponent, user_spread=self.user_spread)
            problems.whole(1, 50, rank=self.rank)
            problems.between(0.0, 5.0, choice_spread=self.choice_spread)
            if self.choice_spread and not self.taste_spread:
                problems.add("taste_spread must be above 0 where taste decides what is rated")
            problems.non_negative(
                item_offset_spread=self.item_offset_spread,
                user_offset_spread=self.user_offset_spread,
                taste_spread=self.taste_spread,
                error_spread=self.error_spread,
            )
            problems.non_negative(step=self.step)
            problems.finite(overall=self.overall)
            problems.ascending(**{"the lowest rating": self.lowest, "the highest": self.highest})

    def draw(self, rng: np.random.Generator) -> Ratings:
        """Draw one table of ratings, users with no rating included; codes of items are shuffled."""
        return self.draw_with_traits(rng)[0]

    def draw_with_traits(self, rng: np.random.Generator) -> tuple[Ratings, npt.NDArray[np.float32]]:
        """Draw a table, and return with it the planted traits of the items, shape (num_items, rank)."""
        # Draw tastes first only if they decide which items are rated: the other streams then stay as they are.
        taste = self._draw_tastes(rng) if self.choice_spread else None
        starts, items = self._draw_pairs(rng, taste)
        offsets = self.item_offset_spread * rng.standard_normal(self.num_items, dtype=np.float32)
        traits, tastes = self._draw_tastes(rng) if taste is None else taste
        own_offsets = self.user_offset_spread * rng.standard_normal(self.num_users, dtype=np.float32)
        values = np.empty(items.size, dtype=np.float32)
        users_at_once = max(int(_BLOCK_CELLS / self.rank / max(items.size / self.num_users, 1.0)), 1)
        for first in range(0, self.num_users, users_at_once):
            stop = min(first + users_at_once, self.num_users)
            rating_slice = slice(int(starts[first]), int(starts[stop]))
            user_rows = np.repeat(np.arange(first, stop), np.diff(starts[first : stop + 1]))
            affinities = np.einsum("pr,pr->p", tastes[user_rows], traits[items[rating_slice]])
            errors = self.error_spread * rng.standard_normal(affinities.size, dtype=np.float32)
            values[rating_slice] = (
                self.overall + offsets[items[rating_slice]] + own_offsets[user_rows] + affinities + errors
            )
        if self.step:
            np.round(values / np.float32(self.step), out=values)
            values *= np.float32(self.step)
        values = np.clip(values, self.lowest, self.highest).astype(np.float32)
        return Ratings(starts, items, values, self.num_items), traits

    def _draw_tastes(self, rng: np.random.Generator) -> _Tastes:
        """Draw traits of the items and tastes of the users."""
        # <taste, trait> has variance r a^2 a^2 with entries of standard deviation a.
        entry_scale = math.sqrt(self.taste_spread / math.sqrt(self.rank))
        traits = entry_scale * rng.standard_normal((self.num_items, self.rank), dtype=np.float32)
        tastes = entry_scale * rng.standard_normal((self.num_users, self.rank), dtype=np.float32)
        return traits, tastes

    def _draw_pairs(self, rng: np.random.Generator, taste: _Tastes | None) -> tuple[np.ndarray, TaskCodes]:
        """Draw which items each user rates, as row starts and item codes."""
        popularity = np.arange(1.0, self.num_items + 1.0) ** -self.zipf_exponent
        popularity = rng.permutation(popularity / popularity.sum())
        activities, rates = self._draw_rates(popularity, rng)
        negative = (-popularity).astype(np.float32)
        counts_per_user: list[np.ndarray] = []
        items: list[np.ndarray] = []
        users_per_block = max(_BLOCK_CELLS // self.num_items, 1)
        for first in range(0, self.num_users, users_per_block):
            block_rates = rates[first : first + users_per_block].astype(np.float32)
            expected = block_rates[:, None] * negative
            if taste is not None:
                expected = self._scale_by_taste(
                    expected, taste, slice(first, first + block_rates.size), activities
                )
            # Independent cells need no sorting and no search, unlike draws without replacement.
            hits = rng.random((block_rates.size, self.num_items), dtype=np.float32) < -np.expm1(expected)
            counts_per_user.append(np.count_nonzero(hits, axis=1))
            items.append((np.flatnonzero(hits) % self.num_items).astype(np.int32))
        starts = np.concatenate(([0], np.cumsum(np.concatenate(counts_per_user)))).astype(np.int64)
        return starts, np.concatenate(items)

    def _scale_by_taste(
        self, negative: _Cells, taste: _Tastes, users: slice, activities: FloatArray
    ) -> _Cells:
        """Compute -t_j popularity_i a_ij for some users from -t_j popularity_i; each stays as active, or nearly."""
        traits, tastes = taste
        affinities = (tastes[users] * np.float32(self.choice_spread / self.taste_spread)) @ traits.T
        exponents = negative * np.exp(affinities - affinities.max(axis=1, keepdims=True))
        for _ in range(4):  # Nobody rates an item twice, so a much-liked item adds less than its rate.
            exponents *= (activities[users] / np.maximum(-np.expm1(exponents).sum(axis=1), 1e-3)).astype(
                np.float32
            )[:, None]
        return np.asarray(exponents, dtype=np.float32)

    def _draw_rates(self, popularity: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw how active users are, and t_j, for which user j has as many ratings in expectation, taste apart."""
        max_ratings = 0.9 * self.num_items
        activities = np.exp(self.user_spread * rng.standard_normal(self.num_users))
        for _ in range(20):  # Bounded at both ends, the mean of the others makes up for it.
            activities = np.clip(
                activities * (self.ratings_per_user / activities.mean()), min(1.0, max_ratings), max_ratings
            )
        # The expected ratings at rate t, on a grid from almost none to almost all, inverted for each user.
        smallest_popularity = float(popularity[popularity > 0.0].min())
        grid = np.geomspace(1e-3, 50.0 / smallest_popularity, 200)
        expected = np.array([-np.expm1(-rate * popularity).sum() for rate in grid])
        return activities, np.exp(np.interp(np.log(activities), np.log(expected), np.log(grid)))
