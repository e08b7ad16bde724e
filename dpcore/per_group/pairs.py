"""The contributions of users to groups: one entry per pair of user and group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import Pairs, Values

MAX_GROUPS = 100_000_000
"""Most groups on a public list."""


@dataclass(frozen=True, eq=False)
class UserGroupPairs:
    """The rows, and optionally sums, of every pair of user and group with rows; sorted by user, then by group.

    Attributes:
        user_codes: Whole numbers of at least 0, ascending, shape (num_pairs,), int64. Never ids.
        group_codes: Codes 0 .. num_groups - 1, ascending within a user, shape (num_pairs,), int64.
        rows: Rows of the user in the group, at least 1, shape (num_pairs,), int64.
        num_groups: Groups on the public list, including those without rows.
        sums: Sum of a column over these rows, any sign, shape (num_pairs,), float64; None if no column is summed.
        sums_of_squares: Sum of the column's squares; only with ``sums``.
        value_range: Smallest and largest value of the column's rows; only with ``sums``, and None if unknown.

    Raises:
        InvalidInput: As `Pairs`.
    """

    user_codes: IntArray
    group_codes: IntArray
    rows: IntArray
    num_groups: int
    sums: FloatArray | None = None
    sums_of_squares: FloatArray | None = None
    value_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        # The facet has the same columns and checks them.
        facet = Pairs(self.user_codes, self.group_codes, self.num_groups, rows=self.rows, sums=self.sums)
        columns = {"user_codes": facet.user_codes, "group_codes": facet.task_codes}
        vars(self).update(columns, rows=facet.rows, sums=facet.sums)

    @classmethod
    def from_arrays(
        cls,
        user_codes: npt.ArrayLike,
        group_codes: npt.ArrayLike,
        num_groups: int,
        rows: npt.ArrayLike | None = None,
        sums: npt.ArrayLike | None = None,
        sums_of_squares: npt.ArrayLike | None = None,
    ) -> UserGroupPairs:
        """Return the pairs from entries in any order; entries of the same user and group are added up.

        Args:
            user_codes: One per entry, whole numbers of at least 0, shape (num_entries,).
            group_codes: One per entry, 0 .. num_groups - 1.
            num_groups: Groups of the public list.
            rows: Rows per entry; None if every entry is one row.
            sums: Sum of a column per entry (its value if every entry is one row); None for no sums.
            sums_of_squares: Sum of its squares per entry; None means the squares of ``sums`` if ``rows`` is None, and
                no squares otherwise.

        Raises:
            InvalidInput: As the class.
        """
        users, groups = np.asarray(user_codes), np.asarray(group_codes)
        order = np.lexsort((groups, users))
        users, groups = users[order], groups[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(users) != 0) | (np.diff(groups) != 0)])

        def add_up(values: npt.ArrayLike) -> npt.NDArray[Any]:
            """Add up an array over the entries of each pair."""
            return np.add.reduceat(np.asarray(values)[order], starts)

        count = add_up(np.ones(users.size, dtype=np.int64) if rows is None else rows)
        if sums is None:
            return cls(users[starts], groups[starts], count, num_groups)
        amounts, value_range = np.asarray(sums, dtype=np.float64), None
        if rows is None:
            sums_of_squares, value_range = amounts**2, (float(amounts.min()), float(amounts.max()))
        squares = None if sums_of_squares is None else add_up(sums_of_squares)
        return cls(users[starts], groups[starts], count, num_groups, add_up(amounts), squares, value_range)

    @classmethod
    def from_facet(cls, pairs: Pairs, num_groups: int | None = None) -> UserGroupPairs:
        """Build the pairs from the facet of a `Dataset`; a public list may have more groups than the data.

        Args:
            pairs: With or without rows; without them every pair counts one row.
            num_groups: At least the number of groups in the data; None for just these.

        Raises:
            InvalidInput: As the class; fewer groups than the data hold.
        """
        groups = pairs.num_tasks if num_groups is None else num_groups
        if groups < pairs.num_tasks:
            raise refuse(
                f"the data hold {pairs.num_tasks:,} groups, more than the {groups:,} entered",
                "",
                "Enter the number of all groups, empty ones included",
            )
        rows = np.ones(pairs.user_codes.size, dtype=np.int64) if pairs.rows is None else pairs.rows
        columns = pairs.sums, pairs.sums_of_squares, pairs.value_range
        return cls(pairs.user_codes, pairs.task_codes, rows, groups, *columns)

    @classmethod
    def from_clamped(
        cls, pairs: Pairs, values: Values, lower: float, upper: float, num_groups: int | None = None
    ) -> UserGroupPairs | None:
        """Build the pairs with sums of clamped values.

        Args:
            pairs: With rows and sums.
            values: The same rows, sorted by user and group; a user's rows without a group come last.
            lower: Lower end L of the range, in the values' unit.
            upper: Upper end U.
            num_groups: As for `from_facet`.

        Returns:
            The pairs; None if the values are in another order.
        """
        assert pairs.rows is not None
        assert pairs.sums is not None
        ends = np.cumsum(pairs.rows)
        starts = ends - pairs.rows
        user_starts = np.searchsorted(values.user_codes, pairs.user_codes)
        first_pairs = np.searchsorted(pairs.user_codes, pairs.user_codes)
        # Number of rows without a group, of earlier users, before each pair.
        skipped = user_starts - starts[first_pairs]
        rows = np.arange(ends[-1]) + np.repeat(skipped, pairs.rows)
        if rows[-1] >= values.values.size:
            return None
        grouped_values = values.values[rows]
        sizes = np.add.reduceat(np.abs(grouped_values), starts)
        if np.any(np.abs(np.add.reduceat(grouped_values, starts) - pairs.sums) > 1e-9 * sizes):
            return None
        clamped = np.clip(grouped_values, lower, upper)
        return cls.from_facet(
            replace(
                pairs,
                sums=np.add.reduceat(clamped, starts),
                sums_of_squares=np.add.reduceat(clamped**2, starts),
                value_range=(float(clamped.min()), float(clamped.max())),
            ),
            num_groups,
        )

    @cached_property
    def num_entries(self) -> int:
        """Return the length of arrays by group: all groups up to the last with rows, and one entry for all after it.

        On a long public list few groups may have rows; the others have equal errors, so one entry represents them.
        """
        num_occupied = int(self.group_codes.max()) + 1
        return num_occupied + (num_occupied < self.num_groups)

    @cached_property
    def multiplicities(self) -> FloatArray:
        """Return the number of groups that each entry represents, shape (num_entries,); they sum to num_groups."""
        times = np.ones(self.num_entries)
        times[-1] += self.num_groups - self.num_entries
        return times

    @property
    def num_pairs(self) -> int:
        """Return the number of pairs of user and group with rows."""
        return int(self.user_codes.size)

    @cached_property
    def user_starts(self) -> IntArray:
        """Return the index of each user's first pair, ascending, shape (num_users,)."""
        return np.flatnonzero(np.r_[True, np.diff(self.user_codes) != 0])

    @cached_property
    def groups_per_user(self) -> IntArray:
        """Return the number of groups in which each user has rows, shape (num_users,)."""
        return np.asarray(np.diff(np.r_[self.user_starts, self.num_pairs]))
