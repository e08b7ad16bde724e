"""The pairs of user and group in the order in which a pass over them goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.problem import PerGroupProblem


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The pairs of a problem in descending order of k, the number of groups of their user.

    Pairs of integer amounts with the same number of groups, group and amount are one entry.

    Attributes:
        groups: Group codes, shape (num_entries,).
        amounts: Absolute amount that each pair adds to its group.
        signed_counts: Number of pairs of an entry, with a minus sign if the amount is negative.
        k_values: The distinct numbers of groups per user, descending, shape (n,).
        starts: Index of the first entry of each k, and the number of entries, shape (n + 1,).
    """

    groups: IntArray
    amounts: FloatArray
    signed_counts: FloatArray
    k_values: IntArray
    starts: IntArray

    @classmethod
    def from_problem(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        groups_per_user = problem.pairs.groups_per_user
        max_groups_per_user, num_entries = int(groups_per_user.max()), problem.pairs.num_entries
        largest_amount = float(np.abs(problem.amounts).max())
        k_ranks = np.repeat(max_groups_per_user - groups_per_user, groups_per_user)
        num_keys = max_groups_per_user * num_entries * (largest_amount + 1.0)
        if problem.parameters.statistic.is_integer and num_keys < 2.0**62:
            # One integer key per pair is sorted in place, by k of the user, descending, group and amount; equal keys
            # become one entry.
            num_amounts = int(largest_amount) + 1
            k_and_group_keys = k_ranks * num_entries + problem.pairs.group_codes
            pair_keys = k_and_group_keys * num_amounts + problem.amounts.astype(np.int64)
            pair_keys.sort()
            entry_starts = np.flatnonzero(np.r_[True, pair_keys[1:] != pair_keys[:-1]])
            entry_counts = np.diff(np.r_[entry_starts, pair_keys.size]).astype(np.float64)
            pair_keys = pair_keys[entry_starts]
            amounts = (pair_keys % num_amounts).astype(np.float64)
            pair_keys //= num_amounts
            entry_ks, group_codes = max_groups_per_user - pair_keys // num_entries, pair_keys % num_entries
            return cls._from_sorted(entry_ks, group_codes, amounts, entry_counts)
        order_by_k = np.argsort(k_ranks, kind="stable")
        amounts = problem.amounts[order_by_k]
        signs = np.where(amounts < 0.0, -1.0, 1.0)
        entry_ks = max_groups_per_user - k_ranks[order_by_k]
        group_codes = problem.pairs.group_codes[order_by_k]
        return cls._from_sorted(entry_ks, group_codes, np.abs(amounts), signs)

    @classmethod
    def _from_sorted(
        cls, entry_ks: IntArray, entry_groups: IntArray, amounts: FloatArray, signed_counts: FloatArray
    ) -> SortedPairs:
        """Build the object from sorted entries; ``entry_ks`` is the number of groups of each entry's user."""
        first_entry_indices = np.flatnonzero(np.r_[True, entry_ks[1:] != entry_ks[:-1]])
        return cls(
            entry_groups,
            amounts,
            signed_counts,
            entry_ks[first_entry_indices],
            np.r_[first_entry_indices, entry_ks.size],
        )

    def select_groups(self, group_codes: IntArray, num_codes: int) -> SortedPairs:
        """Return the entries of the given groups, which get the codes 0, 1, 2 … in the given order.

        ``num_codes`` is the number of old codes.
        """
        new_codes = np.full(num_codes, -1, dtype=np.int64)
        new_codes[group_codes] = np.arange(group_codes.size)
        entry_groups = new_codes[self.groups]
        selected_mask = entry_groups >= 0
        entry_ks = np.repeat(self.k_values, np.diff(self.starts))[selected_mask]
        amounts, signed_counts = self.amounts[selected_mask], self.signed_counts[selected_mask]
        return self._from_sorted(entry_ks, entry_groups[selected_mask], amounts, signed_counts)
