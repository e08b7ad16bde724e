"""The pairs of a problem, sorted by their user's number of groups and merged, as a pass needs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem


@dataclass(frozen=True, eq=False)
class MergedPairs:
    """Entries of users with several numbers of groups k: counts of pairs, and their sums of 1 / k and 1 / k^2."""

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    inverse_sums: FloatArray
    inverse_square_sums: FloatArray


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
        ahead: Merged entries of users with more groups than any of ``sizes``.
        behind: Merged entries of users with fewer groups.
    """

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    sizes: IntArray
    starts: IntArray
    users_with_more: MergedPairs | None = None
    users_with_fewer: MergedPairs | None = None

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

    def narrow(self, window: tuple[int, int], num_groups: int) -> SortedPairs:
        """Return the entries for L0 in a window: users above and below it are merged by group and integer amount."""
        tables = (self, self.users_with_more, self.users_with_fewer)
        width = 1 + int(max(table.amounts.max(initial=0.0) for table in tables if table is not None))
        if num_groups * width > 4 * self.amounts.size:
            return self
        first_size, last_size = (
            int(np.sum(self.sizes > max_groups)) for max_groups in (window[1], window[0])
        )
        inverse = 1.0 / self.sizes

        def merge(begin: int, end: int, merged_so_far: MergedPairs | None) -> MergedPairs:
            entries = slice(int(self.starts[begin]), int(self.starts[end]))
            # Amounts first: most are small, so that the occupied cells of the table lie close together.
            key = self.amounts[entries].astype(np.int64)
            key *= num_groups
            key += self.groups[entries]
            counts = self.counts[entries]
            shares = np.repeat(inverse[begin:end], np.diff(self.starts[begin : end + 1]))
            once = counts * shares
            shares *= once
            # Sums only for the occupied cells: three full tables of 8 bytes per cell took twice as long.
            is_present = np.zeros(num_groups * width, dtype=bool)
            is_present[key] = True
            if merged_so_far is not None:
                earlier_keys = merged_so_far.amounts.astype(np.int64) * num_groups + merged_so_far.groups
                is_present[earlier_keys] = True
            keys = np.flatnonzero(is_present)
            key_index = np.cumsum(is_present, dtype=np.int32)
            index = key_index[key] - 1
            sums = [
                np.asarray(np.bincount(index, column, keys.size), dtype=np.float64)
                for column in (counts, once, shares)
            ]
            if merged_so_far is not None:
                for total, column in zip(
                    sums,
                    (merged_so_far.counts, merged_so_far.inverse_sums, merged_so_far.inverse_square_sums),
                    strict=True,
                ):
                    total[key_index[earlier_keys] - 1] += column
            return MergedPairs(keys % num_groups, (keys // num_groups).astype(np.float64), *sums)

        entries = slice(int(self.starts[first_size]), int(self.starts[last_size]))
        return SortedPairs(
            self.groups[entries],
            self.amounts[entries],
            self.counts[entries],
            self.sizes[first_size:last_size],
            self.starts[first_size : last_size + 1] - self.starts[first_size],
            merge(0, first_size, self.users_with_more),
            merge(last_size, self.sizes.size, self.users_with_fewer),
        )
