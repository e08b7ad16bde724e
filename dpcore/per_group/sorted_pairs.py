"""The pairs of a problem as a pass over them reads them: sorted by their user's number of groups, and merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupProblem


@dataclass(frozen=True, eq=False)
class Merged:
    """Entries of users of several sizes k: pairs, and their sums of 1 / k and 1 / k^2."""

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    once: FloatArray
    twice: FloatArray


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The pairs of a problem in descending order of their user's number of groups: what a pass reads.

    Pairs of whole amounts with the same number of groups, group and amount are one entry.

    Attributes:
        groups: Group codes, shape (num_entries,).
        amounts: Size of what each pair adds to its group, at least 0.
        counts: How many pairs an entry stands for; those whose amount is negative count below 0.
        sizes: The distinct numbers of groups per user, descending, shape (num_sizes,).
        starts: Where the entries of each size begin, and their number, shape (num_sizes + 1,).
        ahead: Entries of users of more groups than any of ``sizes``, whatever their number.
        behind: Entries of users of fewer groups.
    """

    groups: IntArray
    amounts: FloatArray
    counts: FloatArray
    sizes: IntArray
    starts: IntArray
    ahead: Merged | None = None
    behind: Merged | None = None

    @classmethod
    def of(cls, problem: PerGroupProblem) -> SortedPairs:
        """Sort the pairs of a problem."""
        per_user = problem.pairs.groups_per_user
        most, number = int(per_user.max()), problem.pairs.num_entries
        largest = float(np.abs(problem.amounts).max())
        above = np.repeat(most - per_user, per_user)
        if problem.whole and most * number * (largest + 1.0) < 2.0**62:
            # One whole key per pair is sorted in place, in order of users' sizes, groups and amounts; equal ones
            # become one entry.
            width = int(largest) + 1
            key = (above * number + problem.pairs.group_codes) * width + problem.amounts.astype(np.int64)
            key.sort()
            first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
            counts = np.diff(np.r_[first, key.size]).astype(np.float64)
            key = key[first]
            amounts = (key % width).astype(np.float64)
            key //= width
            return cls._cut(most - key // number, key % number, amounts, counts)
        order = np.argsort(above, kind="stable")
        amounts = problem.amounts[order]
        signs = np.where(amounts < 0.0, -1.0, 1.0)
        return cls._cut(most - above[order], problem.pairs.group_codes[order], np.abs(amounts), signs)

    @classmethod
    def _cut(cls, size: IntArray, groups: IntArray, amounts: FloatArray, counts: FloatArray) -> SortedPairs:
        starts = np.flatnonzero(np.r_[True, size[1:] != size[:-1]])
        return cls(groups, amounts, counts, size[starts], np.r_[starts, size.size])

    def of_groups(self, chosen: IntArray, num_groups: int) -> SortedPairs:
        """Return the entries of some groups alone, which are numbered anew."""
        number = np.full(num_groups, -1, dtype=np.int64)
        number[chosen] = np.arange(chosen.size)
        groups = number[self.groups]
        kept = groups >= 0
        size = np.repeat(self.sizes, np.diff(self.starts))[kept]
        return self._cut(size, groups[kept], self.amounts[kept], self.counts[kept])

    def narrowed(self, window: tuple[int, int], num_groups: int) -> SortedPairs:
        """The same for L0 in a window alone: users above and below it are merged by group and amount, where whole."""
        parts = (self, self.ahead, self.behind)
        width = 1 + int(max(part.amounts.max(initial=0.0) for part in parts if part is not None))
        if num_groups * width > 4 * self.amounts.size:
            return self
        first, last = (int(np.sum(self.sizes > at)) for at in (window[1], window[0]))
        inverse = 1.0 / self.sizes

        def merged(begin: int, end: int, more: Merged | None) -> Merged:
            here = slice(int(self.starts[begin]), int(self.starts[end]))
            # Amounts first: most are small, so that most of the table's entries that are met lie close together.
            key = self.amounts[here].astype(np.int64)
            key *= num_groups
            key += self.groups[here]
            counts = self.counts[here]
            shares = np.repeat(inverse[begin:end], np.diff(self.starts[begin : end + 1]))
            once = counts * shares
            shares *= once
            # Only the cells of the table that are met: three whole ones of 8 bytes each took twice as long.
            met = np.zeros(num_groups * width, dtype=bool)
            met[key] = True
            if more is not None:
                old = more.amounts.astype(np.int64) * num_groups + more.groups
                met[old] = True
            held = np.flatnonzero(met)
            place = np.cumsum(met, dtype=np.int32)
            at = place[key] - 1
            sums = [
                np.asarray(np.bincount(at, column, held.size), dtype=np.float64)
                for column in (counts, once, shares)
            ]
            if more is not None:
                for total, column in zip(sums, (more.counts, more.once, more.twice), strict=True):
                    total[place[old] - 1] += column
            return Merged(held % num_groups, (held // num_groups).astype(np.float64), *sums)

        here = slice(int(self.starts[first]), int(self.starts[last]))
        return SortedPairs(
            self.groups[here],
            self.amounts[here],
            self.counts[here],
            self.sizes[first:last],
            self.starts[first : last + 1] - self.starts[first],
            merged(0, first, self.ahead),
            merged(last, self.sizes.size, self.behind),
        )
