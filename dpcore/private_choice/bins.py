"""Public bins of rows per user: exact sizes up to a limit, then geometric up to a public maximum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.contributions import MAX_SIZE, ContributionHistogram, IntArray, read_only

MAX_BINS = 20_000
"""More bins than that only add noise; each is drawn by OpenDP at about 7 microseconds."""
GROWTH_RANGE = (1.001, 1000.0)


@dataclass(frozen=True)
class PublicBins:
    """Bins of rows per user, chosen without looking at the data.

    Sizes 1 to ``exact_up_to`` have a bin each; above, bins grow geometrically up to ``largest``. A user with
    more than ``largest`` rows counts as one with ``largest``: every user sits in exactly one bin.

    Attributes:
        exact_up_to: Largest size with a bin of its own, at least 1.
        largest: Public maximum of rows per user, at least ``exact_up_to``: from what the quantity is, or from
            how the data were collected, not from the data.
        growth: How much wider each further bin is, in `GROWTH_RANGE`; bins hold at least one size.

    Raises:
        InvalidInput: A figure is out of its range, or there would be more than `MAX_BINS` bins.
    """

    exact_up_to: int = 10
    largest: int = 10_000
    growth: float = 1.3

    def __post_init__(self) -> None:
        with Problems() as problems:
            fits = problems.whole(1, MAX_BINS, exact_up_to=self.exact_up_to)
            fits &= problems.whole(1, MAX_SIZE, largest=self.largest)
            fits &= problems.between(*GROWTH_RANGE, growth=self.growth)
            if fits and self.largest < self.exact_up_to:
                problems.add(
                    f"largest must be at least exact_up_to; got {self.largest:,} and {self.exact_up_to:,}"
                )
            elif fits and self.lower.size > MAX_BINS:
                problems.add(f"these are more than {MAX_BINS:,} bins", remedy="Use a larger growth")

    @cached_property
    def lower(self) -> IntArray:
        """Return the smallest size of each bin, ascending from 1, shape (k,)."""
        edges = list(range(1, int(self.exact_up_to) + 1))
        start = int(self.exact_up_to) + 1
        while start <= self.largest and len(edges) <= MAX_BINS:
            edges.append(start)
            start = max(start + 1, math.floor(start * self.growth))
        return read_only(np.array(edges, dtype=np.int64))

    @cached_property
    def upper(self) -> IntArray:
        """Return the largest size of each bin, shape (k,); that of the last bin is ``largest``."""
        return read_only(np.append(self.lower[1:] - 1, np.int64(self.largest)))

    @cached_property
    def representative(self) -> IntArray:
        """Return the size that stands for all users of a bin after release, shape (k,): its geometric middle, rounded.

        It must not depend on the data. The geometric middle sqrt(lower upper) is the exact mean of sizes in a
        bin where users fall off as size^(-3/2), between log-uniform (size^-1) and Zipf (size^-2), as
        contribution counts do; the arithmetic middle is right for a flat histogram and overstates rows.
        Measured without noise at growth 1.3 on the Online Retail samples: rows 0.0 to 0.5 % too many, with the
        arithmetic middle 0.5 to 1.3 % (`benchmarks/private.py`).
        """
        midpoints = np.rint(np.sqrt(self.lower.astype(np.float64) * self.upper.astype(np.float64)))
        return read_only(midpoints.astype(np.int64))

    def counts(self, histogram: ContributionHistogram) -> IntArray:
        """Return the users per bin, shape (k,), zeros included; as private as the histogram.

        Raises:
            InvalidInput: More users in all than 64 bits count.
        """
        if histogram.num_users >= 2**63:  # The sums below would wrap around.
            raise refuse("there are more users than 64 bits can count")
        # The last bin has no upper end here: it takes those above ``largest`` too.
        bin_index = np.searchsorted(self.lower, histogram.sizes, side="right") - 1
        users = np.zeros(self.lower.size, dtype=np.int64)
        np.add.at(users, bin_index, histogram.users)
        return users

    @property
    def sentence(self) -> str:
        """Return what the bins are, in words."""
        k, largest = self.lower.size, int(self.largest)
        wider = k - int(self.exact_up_to)
        grow = wording.agreeing(wider, "grows", "grow")
        return (
            f"{wording.counted(k, 'bin')}: each size up to {int(self.exact_up_to):,}, then {wider:,} that {grow} by a "
            f"factor of {wording.entered(self.growth)} up to {wording.counted(largest, 'row')} per user; who has more "
            f"counts as having {largest:,}"
        )
