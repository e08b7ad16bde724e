"""The contributions of users to groups: one entry per pair of user and group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data import group_pairs
from dpcore.data.task_facets import Pairs
from dpcore.dataset import Values

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
        checked_facet = Pairs(
            self.user_codes, self.group_codes, self.num_groups, rows=self.rows, sums=self.sums
        )
        code_columns = {"user_codes": checked_facet.user_codes, "group_codes": checked_facet.task_codes}
        vars(self).update(code_columns, rows=checked_facet.rows, sums=checked_facet.sums)

    @classmethod
    def from_arrays(
        cls,
        user_codes: npt.ArrayLike,
        group_codes: npt.ArrayLike,
        num_groups: int,
        row_values: FloatArray | None = None,
    ) -> UserGroupPairs:
        """Build the pairs from at least one row, in any order, as `dpcore.data.group_pairs.build_pairs` does.

        Args:
            user_codes: One per row, whole numbers of at least 0, shape (num_rows,).
            group_codes: One per row, 0 .. num_groups - 1.
            num_groups: Groups of the public list.
            row_values: One per row, for sums and their squares; None for rows alone.

        Raises:
            InvalidInput: As the class.
        """
        facet = group_pairs.build_pairs(user_codes, group_codes, num_groups, "", row_values)
        assert facet is not None
        return cls.from_facet(facet)

    @classmethod
    def from_facet(cls, facet: Pairs, num_groups: int | None = None) -> UserGroupPairs:
        """Build the pairs from the facet of a `Dataset`; a public list may have more groups than the data.

        Args:
            facet: With or without rows; without them every pair counts one row.
            num_groups: At least the number of groups in the data; None for just these.

        Raises:
            InvalidInput: As the class; fewer groups than the data hold.
        """
        num_listed_groups = facet.num_tasks if num_groups is None else num_groups
        if num_listed_groups < facet.num_tasks:
            too_many_groups_sentence = (
                f"the data hold {facet.num_tasks:,} groups, more than the {num_listed_groups:,} entered"
            )
            raise refuse(too_many_groups_sentence, "", "Enter the number of all groups, empty ones included")
        rows_of_pairs = np.ones(facet.user_codes.size, dtype=np.int64) if facet.rows is None else facet.rows
        sums_squares_and_range = facet.sums, facet.sums_of_squares, facet.value_range
        return cls(
            facet.user_codes, facet.task_codes, rows_of_pairs, num_listed_groups, *sums_squares_and_range
        )

    @classmethod
    def from_clamped(
        cls, facet: Pairs, values: Values, lower: float, upper: float, num_groups: int | None = None
    ) -> UserGroupPairs | None:
        """Build the pairs with sums of clamped values; None if the values are in another order.

        Args:
            facet: With rows and sums.
            values: The same rows, sorted by user and group; a user's rows without a group come last.
            lower: Lower end L of the range, in the values' unit.
            upper: Upper end U.
            num_groups: As for `from_facet`.

        Returns:
            The pairs; None if the values are in another order.
        """
        assert facet.rows is not None
        assert facet.sums is not None
        pair_ends = np.cumsum(facet.rows)
        pair_starts = pair_ends - facet.rows
        user_first_rows = np.searchsorted(values.user_codes, facet.user_codes)
        user_first_pairs = np.searchsorted(facet.user_codes, facet.user_codes)
        # Number of rows without a group, of earlier users, before each pair.
        ungrouped_rows_before = user_first_rows - pair_starts[user_first_pairs]
        row_indices = np.arange(pair_ends[-1]) + np.repeat(ungrouped_rows_before, facet.rows)
        if row_indices[-1] >= values.values.size:
            return None
        grouped_values = values.values[row_indices]
        absolute_sums = np.add.reduceat(np.abs(grouped_values), pair_starts)
        if np.any(np.abs(np.add.reduceat(grouped_values, pair_starts) - facet.sums) > 1e-9 * absolute_sums):
            return None
        clamped_grouped_values = np.clip(grouped_values, lower, upper)
        clamped_sums, clamped_squares = (
            np.add.reduceat(values_or_squares, pair_starts)
            for values_or_squares in (clamped_grouped_values, clamped_grouped_values**2)
        )
        value_range = float(clamped_grouped_values.min()), float(clamped_grouped_values.max())
        clamped_facet = replace(
            facet, sums=clamped_sums, sums_of_squares=clamped_squares, value_range=value_range
        )
        return cls.from_facet(clamped_facet, num_groups)

    def regroup(self, listed_codes_per_group: IntArray, num_groups: int) -> UserGroupPairs:
        """Return the pairs with the groups of a public list: others are left out, and some are counted as one.

        Args:
            listed_codes_per_group: Place on the list of each group, -1 for none, shape (self.num_groups,); at least one
                has a place.
            num_groups: Groups on the list.
        """
        listed_codes = listed_codes_per_group[self.group_codes]
        indices = np.flatnonzero(listed_codes >= 0)
        indices = indices[np.lexsort((listed_codes[indices], self.user_codes[indices]))]
        user_codes, group_codes = self.user_codes[indices], listed_codes[indices]
        pair_starts = np.flatnonzero(np.r_[True, (np.diff(user_codes) != 0) | (np.diff(group_codes) != 0)])
        row_counts = np.add.reduceat(self.rows[indices], pair_starts)
        pair_sums, pair_squares = (
            None if pair_values is None else np.add.reduceat(pair_values[indices], pair_starts)
            for pair_values in (self.sums, self.sums_of_squares)
        )
        user_and_group_codes = user_codes[pair_starts], group_codes[pair_starts]
        return UserGroupPairs(
            *user_and_group_codes, row_counts, num_groups, pair_sums, pair_squares, self.value_range
        )

    @cached_property
    def num_entries(self) -> int:
        """Return the length of arrays by group: all groups up to the last with rows, and one entry for all after it.

        On a long public list few groups may have rows; the others have equal errors, so one entry represents them.
        """
        num_occupied_groups = int(self.group_codes.max()) + 1
        return num_occupied_groups + (num_occupied_groups < self.num_groups)

    @cached_property
    def multiplicities(self) -> FloatArray:
        """Return the number of groups that each entry represents, shape (num_entries,); they sum to num_groups."""
        groups_per_entry = np.ones(self.num_entries)
        groups_per_entry[-1] += self.num_groups - self.num_entries
        return groups_per_entry

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

    def compute_sample_probabilities(self, max_groups: int) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that each pair is, and is not, in its user's random sample of L0 of their groups.

        Both have shape (num_pairs,). The second is not computed as 1 minus the first, which would cancel.
        """
        groups_per_user = self.groups_per_user
        kept_shares = np.minimum(1.0, max_groups / groups_per_user)
        dropped_shares = np.maximum(groups_per_user - max_groups, 0) / groups_per_user
        return np.repeat(kept_shares, groups_per_user), np.repeat(dropped_shares, groups_per_user)
