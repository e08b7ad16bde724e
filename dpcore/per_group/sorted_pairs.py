"""The pairs of user and group in the order in which a pass over them goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The pairs of a problem in descending order of their user's number of groups.

    Pairs of integer amounts with the same number of groups, group and amount are one entry.

    Attributes:
        groups: Group codes, shape (num_entries,).
        amounts: Absolute amount that each pair adds to its group.
        signed_counts: Number of pairs of an entry, with a minus sign if the amount is negative.
        sizes: The distinct numbers of groups per user, descending, shape (num_sizes,).
        starts: Index of the first entry of each size, and the number of entries, shape (num_sizes + 1,).
    """

    groups: IntArray
    amounts: FloatArray
    signed_counts: FloatArray
    sizes: IntArray
    starts: IntArray

    @classmethod
    def from_problem(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        groups_per_user = problem.pairs.groups_per_user
        max_groups_per_user, num_entries = int(groups_per_user.max()), problem.pairs.num_entries
        largest_amount = float(np.abs(problem.amounts).max())
        descending_groups = np.repeat(max_groups_per_user - groups_per_user, groups_per_user)
        if (
            problem.parameters.statistic.is_integer
            and max_groups_per_user * num_entries * (largest_amount + 1.0) < 2.0**62
        ):
            # One integer key per pair is sorted in place, in order of users' sizes, groups and amounts; equal keys
            # become one entry.
            width = int(largest_amount) + 1
            keys = (
                descending_groups * num_entries + problem.pairs.group_codes
            ) * width + problem.amounts.astype(np.int64)
            keys.sort()
            first_indices = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            counts = np.diff(np.r_[first_indices, keys.size]).astype(np.float64)
            keys = keys[first_indices]
            amounts = (keys % width).astype(np.float64)
            keys //= width
            return cls._from_sorted(
                max_groups_per_user - keys // num_entries, keys % num_entries, amounts, counts
            )
        order = np.argsort(descending_groups, kind="stable")
        amounts = problem.amounts[order]
        signs = np.where(amounts < 0.0, -1.0, 1.0)
        return cls._from_sorted(
            max_groups_per_user - descending_groups[order],
            problem.pairs.group_codes[order],
            np.abs(amounts),
            signs,
        )

    @classmethod
    def _from_sorted(
        cls, entry_sizes: IntArray, groups: IntArray, amounts: FloatArray, counts: FloatArray
    ) -> SortedPairs:
        """Build the object from sorted entries; ``entry_sizes`` is the number of groups of each entry's user."""
        starts = np.flatnonzero(np.r_[True, entry_sizes[1:] != entry_sizes[:-1]])
        return cls(groups, amounts, counts, entry_sizes[starts], np.r_[starts, entry_sizes.size])

    def select_groups(self, group_codes: IntArray, num_groups: int) -> SortedPairs:
        """Return the entries of the given groups, with new codes from 0 on."""
        new_codes = np.full(num_groups, -1, dtype=np.int64)
        new_codes[group_codes] = np.arange(group_codes.size)
        groups = new_codes[self.groups]
        is_selected = groups >= 0
        entry_sizes = np.repeat(self.sizes, np.diff(self.starts))[is_selected]
        return self._from_sorted(
            entry_sizes, groups[is_selected], self.amounts[is_selected], self.signed_counts[is_selected]
        )
