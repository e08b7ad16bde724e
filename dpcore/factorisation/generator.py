"""Ratings with a planted low rank and Zipf items, at any size up to that of MovieLens 10M."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.graph import TaskCodes

MOST_CELLS = 800_000_000
"""Users times items: each cell costs a random number, about 8 ns."""
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class GeneratedRatings:
    """A population of users and items.

    Item i, in the order of popularity, is as popular as (i + 1)^-zipf_exponent; users are as active as a logarithmic
    normal variable. User j rates item i independently with probability 1 - exp(-t_j popularity_i), where t_j gives
    them as many ratings as they are active, in expectation. A rating is

        overall + offset_i + offset_j + <taste_j, trait_i> + error,

    rounded to steps and brought into the range.

    Attributes:
        num_users: 2 to 10 million.
        num_items: 2 to 1 million.
        ratings_per_user: On average, 1 to half of the items.
        zipf_exponent: 0 to 3.
        user_spread: Standard deviation of the logarithm of a user's activity, 0 to 3.
        rank: r, 1 to 50.
        overall: Mean rating.
        offset_spread: Standard deviation of the items' offsets.
        own_spread: Standard deviation of the users' own offsets: some rate everything higher than others.
        taste_spread: Standard deviation of <taste, trait>.
        error_spread: Standard deviation of the error.
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
    offset_spread: float = 0.45
    own_spread: float = 0.4
    taste_spread: float = 0.5
    error_spread: float = 0.8
    step: float = 0.5
    lowest: float = 0.5
    highest: float = 5.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            sizes = problems.whole(2, 10**7, num_users=self.num_users)
            sizes &= problems.whole(2, 10**6, num_items=self.num_items)
            if sizes and self.num_users * self.num_items > MOST_CELLS:
                problems.add(f"users times items must be at most {MOST_CELLS:,}")
            if sizes:
                problems.between(1.0, max(self.num_items / 2.0, 1.0), ratings_per_user=self.ratings_per_user)
            problems.between(0.0, 3.0, zipf_exponent=self.zipf_exponent, user_spread=self.user_spread)
            problems.whole(1, 50, rank=self.rank)
            problems.non_negative(
                offset_spread=self.offset_spread,
                own_spread=self.own_spread,
                taste_spread=self.taste_spread,
                error_spread=self.error_spread,
            )
            problems.non_negative(step=self.step)
            problems.finite(overall=self.overall)
            problems.ascending(**{"the lowest rating": self.lowest, "the highest": self.highest})

    def draw(self, rng: np.random.Generator) -> Ratings:
        """One table of ratings, users with no rating included; codes of items are shuffled."""
        starts, items = self._who_rates_what(rng)
        offsets = self.offset_spread * rng.standard_normal(self.num_items, dtype=np.float32)
        # <taste, trait> has variance r a^2 a^2 with entries of standard deviation a.
        each = math.sqrt(self.taste_spread / math.sqrt(self.rank))
        traits = each * rng.standard_normal((self.num_items, self.rank), dtype=np.float32)
        tastes = each * rng.standard_normal((self.num_users, self.rank), dtype=np.float32)
        own = self.own_spread * rng.standard_normal(self.num_users, dtype=np.float32)
        values = np.empty(items.size, dtype=np.float32)
        users_at_once = max(int(_BLOCK_CELLS / self.rank / max(items.size / self.num_users, 1.0)), 1)
        for first in range(0, self.num_users, users_at_once):
            last = min(first + users_at_once, self.num_users)
            at = slice(int(starts[first]), int(starts[last]))
            who = np.repeat(np.arange(first, last), np.diff(starts[first : last + 1]))
            agree = np.einsum("pr,pr->p", tastes[who], traits[items[at]])
            errors = self.error_spread * rng.standard_normal(agree.size, dtype=np.float32)
            values[at] = self.overall + offsets[items[at]] + own[who] + agree + errors
        if self.step:
            np.round(values / np.float32(self.step), out=values)
            values *= np.float32(self.step)
        return Ratings(
            starts,
            items,
            np.clip(values, self.lowest, self.highest).astype(np.float32),
            self.num_items,
        )

    def _who_rates_what(self, rng: np.random.Generator) -> tuple[np.ndarray, TaskCodes]:
        popularity = np.arange(1.0, self.num_items + 1.0) ** -self.zipf_exponent
        popularity = rng.permutation(popularity / popularity.sum())
        rates = self._rates(popularity, rng)
        negative = (-popularity).astype(np.float32)
        per_user: list[np.ndarray] = []
        found: list[np.ndarray] = []
        rows = max(_BLOCK_CELLS // self.num_items, 1)
        for first in range(0, self.num_users, rows):
            some = rates[first : first + rows].astype(np.float32)
            # Independent cells need no sorting and no search, unlike draws without replacement.
            hits = rng.random((some.size, self.num_items), dtype=np.float32) < -np.expm1(
                some[:, None] * negative
            )
            per_user.append(np.count_nonzero(hits, axis=1))
            found.append((np.flatnonzero(hits) % self.num_items).astype(np.int32))
        starts = np.concatenate(([0], np.cumsum(np.concatenate(per_user)))).astype(np.int64)
        return starts, np.concatenate(found)

    def _rates(self, popularity: FloatArray, rng: np.random.Generator) -> FloatArray:
        """t_j, for which user j has as many ratings as they are active, in expectation."""
        most = 0.9 * self.num_items
        active = np.exp(self.user_spread * rng.standard_normal(self.num_users))
        for _ in range(20):  # Bounded at both ends, the mean of the others makes up for it.
            active = np.clip(active * (self.ratings_per_user / active.mean()), min(1.0, most), most)
        # As many ratings as there are of rate t, on a grid from almost none to almost all.
        least = float(popularity[popularity > 0.0].min())
        grid = np.geomspace(1e-3, 50.0 / least, 200)
        expected = np.array([-np.expm1(-rate * popularity).sum() for rate in grid])
        return np.asarray(np.exp(np.interp(np.log(active), np.log(expected), np.log(grid))))
