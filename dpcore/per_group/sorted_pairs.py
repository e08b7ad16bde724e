"""The pairs of a problem, sorted by their user's number of groups and merged, as a pass needs them."""

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
        counts: Number of pairs of an entry, with a minus sign if the amount is negative.
        sizes: The distinct numbers of groups per user, descending, shape (num_sizes,).
        starts: Index of the first entry of each size, and the number of entries, shape (num_sizes + 1,).
    """

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    sizes: IntArray
    starts: IntArray

    @classmethod
    def from_problem(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        per_user = problem.pairs.groups_per_user
        most_groups, number = int(per_user.max()), problem.pairs.num_entries
        largest = float(np.abs(problem.amounts).max())
        descending_groups = np.repeat(most_groups - per_user, per_user)
        if problem.parameters.statistic.is_integer and most_groups * number * (largest + 1.0) < 2.0**62:
            # One integer key per pair is sorted in place, in order of users' sizes, groups and amounts; equal keys
            # become one entry.
            width = int(largest) + 1
            key = (descending_groups * number + problem.pairs.group_codes) * width + problem.amounts.astype(
                np.int64
            )
            key.sort()
            first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
            counts = np.diff(np.r_[first, key.size]).astype(np.float64)
            key = key[first]
            amounts = (key % width).astype(np.float64)
            key //= width
            return cls._from_sorted(most_groups - key // number, key % number, amounts, counts)
        order = np.argsort(descending_groups, kind="stable")
        amounts = problem.amounts[order]
        signs = np.where(amounts < 0.0, -1.0, 1.0)
        return cls._from_sorted(
            most_groups - descending_groups[order], problem.pairs.group_codes[order], np.abs(amounts), signs
        )

    @classmethod
    def _from_sorted(
        cls, size: IntArray, groups: IntArray, amounts: FloatArray, counts: FloatArray
    ) -> SortedPairs:
        starts = np.flatnonzero(np.r_[True, size[1:] != size[:-1]])
        return cls(groups, amounts, counts, size[starts], np.r_[starts, size.size])

    def select_groups(self, group_codes: IntArray, num_groups: int) -> SortedPairs:
        """Return the entries of the given groups, with new codes from 0 on."""
        number = np.full(num_groups, -1, dtype=np.int64)
        number[group_codes] = np.arange(group_codes.size)
        groups = number[self.groups]
        is_selected = groups >= 0
        size = np.repeat(self.sizes, np.diff(self.starts))[is_selected]
        return self._from_sorted(
            size, groups[is_selected], self.amounts[is_selected], self.counts[is_selected]
        )
