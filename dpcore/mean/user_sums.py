"""Sums over the users at or below a bound on rows, and above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, NumSizes, sum_excesses, sum_suffixes


def sum_prefixes(terms: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1 .. n of n terms, shape (n + 1,)."""
    return np.concatenate(([0.0], np.cumsum(terms)))


@dataclass(frozen=True)
class UserSums:
    """Sums over users at or below a bound, and above it; entry k of each array is for k sizes at or below the bound.

    Attributes:
        rows_below: Sum of s over the users at or below.
        squares_below: Sum of s^2 over them.
        effective_below: Sum of x, the effective sizes, over them.
        users_above: Number of users above.
        rows_above: Sum of s over the users above.
        squares_above: Sum of s^2 over them.
        inverse_sizes_above: Sum of 1 / s over them.
        next_sizes: The smallest size above, 0 after the last one.
        excess_at_next: Rows that a cap at the next size cuts.
    """

    rows_below: FloatArray
    squares_below: FloatArray
    effective_below: FloatArray
    users_above: FloatArray
    rows_above: FloatArray
    squares_above: FloatArray
    inverse_sizes_above: FloatArray
    next_sizes: FloatArray
    excess_at_next: FloatArray

    @classmethod
    def from_histogram(cls, histogram: ContributionHistogram, effective_sizes: FloatArray) -> UserSums:
        """Sum over the users of a histogram; ``effective_sizes`` has x of each distinct size, shape (K,)."""
        s, num_users_per_size = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
        # The histogram keeps these three sums.
        rows_below, num_users_above, inverse_above = histogram.compute_sums_after(slice(None))
        return cls(
            rows_below,
            sum_prefixes(s * s * num_users_per_size),
            sum_prefixes(effective_sizes * num_users_per_size),
            num_users_above,
            sum_suffixes(s * num_users_per_size),
            sum_suffixes(s * s * num_users_per_size),
            inverse_above,
            np.append(s, 0.0),  # After the last size there are no users above, so the value has no effect.
            sum_excesses(s, num_users_above),
        )

    def sum_excess(self, h: FloatArray) -> FloatArray:
        """Return the rows that a cap at h cuts; all terms have one sign, as in `ContributionHistogram.sum_excess`."""
        return np.asarray((self.next_sizes - h) * self.users_above + self.excess_at_next)

    def take(self, num_sizes: NumSizes) -> UserSums:
        """Return the sums for the given numbers of sizes at or below."""
        return UserSums(*(sums_per_num_sizes[num_sizes] for sums_per_num_sizes in vars(self).values()))

    @property
    def between_sizes(self) -> UserSums:
        """Return the sums for bounds between two neighbouring sizes, an entry per such pair, shape (K − 1,)."""
        return self.take(slice(1, -1))
