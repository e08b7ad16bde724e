"""A table of ratings, one row of items per user, and its split for testing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import IntArray
from dpcore.dataset import Pairs
from dpcore.multitask.graph import TaskCodes, TaskGraph

RatingValues = npt.NDArray[np.floating]


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
        starts, items = self.starts, self.items
        with Problems() as problems:
            if starts.ndim != 1 or starts.size < 2 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
                problems.add("starts must ascend from 0, with one entry per user and the end")
            elif items.shape != (int(starts[-1]),) or self.values.shape != items.shape:
                problems.add(f"items and values must have {int(starts[-1]):,} entries each")
            elif items.size and (items.min() < 0 or items.max() >= self.num_items):
                problems.add(f"item codes must lie between 0 and {self.num_items - 1:,}")
            else:
                ascends = items[1:] > items[:-1]
                inside = starts[1:-1]
                ascends[inside[(inside > 0) & (inside < items.size)] - 1] = True
                if not ascends.all():
                    problems.add("each user's items must ascend and be distinct")
                if not np.all(np.isfinite(self.values)):
                    problems.add("ratings must be finite numbers")

    @classmethod
    def from_columns(
        cls,
        users: npt.ArrayLike,
        items: npt.ArrayLike,
        values: npt.ArrayLike,
        num_items: int | None = None,
        num_users: int = 0,
    ) -> Ratings:
        """Create the table from one entry per rating, in any order.

        Args:
            users: Codes 0 .. num_users - 1, shape (num_ratings,).
            items: Codes 0 .. num_items - 1, shape (num_ratings,).
            values: Ratings, shape (num_ratings,).
            num_items: Number of items; None for the largest code + 1.
            num_users: Number of users, where it is more than the largest code + 1.

        Raises:
            InvalidInput: As for the class; also where a user rates an item twice.
        """
        u, i = np.asarray(users, dtype=np.int64), np.asarray(items, dtype=np.int64)
        num_codes = int(i.max()) + 1 if num_items is None else num_items
        order = np.argsort(u * num_codes + i, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(u, minlength=num_users)))).astype(np.int64)
        return cls(starts, i[order].astype(np.int32), np.asarray(values)[order], num_codes)

    @classmethod
    def from_pairs(cls, pairs: Pairs) -> Ratings | None:
        """Create the table from the facet of distinct pairs; a pair of several rows has their mean rating.

        Returns:
            None where the pairs carry no sums of a value.
        """
        if pairs.sums is None or pairs.rows is None:
            return None
        starts = np.concatenate(([0], np.cumsum(np.bincount(pairs.user_codes)))).astype(np.int64)
        values = (pairs.sums / pairs.rows).astype(np.float32)
        return cls(starts, pairs.task_codes.astype(np.int32), values, pairs.num_tasks)

    @property
    def num_users(self) -> int:
        """Return the number of users, those without a rating included."""
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
        """Return what names this table in caches."""
        return hashlib.sha256(
            b"".join(a.tobytes() for a in (self.starts, self.items, self.values))
        ).hexdigest()

    def select(self, mask: npt.NDArray[np.bool_]) -> Ratings:
        """Select the ratings under a mask of shape (num_ratings,); users and items keep their codes."""
        kept_before = np.concatenate(([0], np.cumsum(mask)))
        return Ratings(
            kept_before[self.starts].astype(np.int64), self.items[mask], self.values[mask], self.num_items
        )

    def split(self, test_share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
        """Split the ratings into training and test, each rating held out with the same probability.

        Args:
            test_share: Probability, in (0, 1).
            rng: Source of the draw.

        Raises:
            InvalidInput: Nothing is left on one side.
        """
        held_out = rng.random(self.num_ratings, dtype=np.float32) < test_share
        if held_out.all() or not held_out.any():
            raise refuse("nothing is left to train on or to test", remedy="Bring more ratings")
        return self.select(~held_out), self.select(held_out)

    def blocks(self, block_size: int) -> Iterator[RatingBlock]:
        """Yield blocks of ``block_size`` users."""
        for first in range(0, self.num_users, block_size):
            yield RatingBlock(self, slice(first, min(first + block_size, self.num_users)))


@dataclass(frozen=True, eq=False)
class RatingBlock:
    """Consecutive users of a table, with their ratings.

    Attributes:
        table: The table.
        users: Which users.
    """

    table: Ratings
    users: slice

    @property
    def ratings(self) -> slice:
        """Return where their ratings stand in the table."""
        return slice(int(self.table.starts[self.users.start]), int(self.table.starts[self.users.stop]))

    @property
    def items(self) -> TaskCodes:
        """Return the items that they rated, one for each rating."""
        return self.table.items[self.ratings]

    @property
    def user_rows(self) -> IntArray:
        """Return the user of each rating."""
        return self.repeat(np.arange(self.users.start, self.users.stop))

    def repeat(self, user_numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat the number of each user for each of their ratings."""
        return np.repeat(user_numbers, np.diff(self.table.starts[self.users.start : self.users.stop + 1]))

    def build_matrix(self, entries: RatingValues) -> Any:
        """Build the sparse matrix of these users by all items, with one entry for each rating."""
        from scipy.sparse import csr_matrix

        starts = self.table.starts[self.users.start : self.users.stop + 1]
        shape = (starts.size - 1, self.table.num_items)
        return csr_matrix((entries, self.items, (starts - starts[0]).astype(np.int32)), shape=shape)
