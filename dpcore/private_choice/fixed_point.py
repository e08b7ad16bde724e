"""Users counted in whole steps of 1 / `RESOLUTION` user, so that what one of them adds is exact.

Each user's share of a query is rounded to steps *before* it is added up, and sums of whole numbers are exact:
floating-point sums could not promise a sensitivity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.errors import refuse
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray

RESOLUTION = 2**20
"""Steps per user. Shares of a query are rounded down to steps: an error below one user in a million users."""
MAX_TOTAL_USERS = 2**59 // RESOLUTION
"""5.5e11 users: sums of steps stay below 2^59."""
FAR = 2**61
"""Steps at which a distance is cut off: beyond any number of users."""


def in_steps(value: float | Fraction) -> int:
    """Return a public real number of users as whole steps, nearest; cut off far beyond any number of users."""
    return min(round(Fraction(value) * RESOLUTION), FAR)


def checked_users(histogram: ContributionHistogram, scale: float = 1.0) -> None:
    """Refuse more users (taken ``scale`` times) than steps can add up.

    Raises:
        InvalidInput: More than `MAX_TOTAL_USERS` users.
    """
    if histogram.num_users * scale > MAX_TOTAL_USERS:
        raise refuse(f"there must be at most {MAX_TOTAL_USERS:,} users")


def tails(histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
    """Return #{s >= t} and #{s > t}, shape (2, c)."""
    users_above = np.concatenate((np.cumsum(histogram.users[::-1])[::-1], [0]))
    return np.stack(
        (
            users_above[np.searchsorted(histogram.sizes, candidates, side="left")],
            users_above[np.searchsorted(histogram.sizes, candidates, side="right")],
        )
    )


def scaled(statistics: IntArray, scales: Sequence[float]) -> IntArray:
    """Return what ``scale`` times the users add up to, with a leading axis of scales; exact at scale 1."""
    return np.stack([statistics if k == 1.0 else np.rint(statistics * k).astype(np.int64) for k in scales])


def interval_distance(lower: IntArray, upper: IntArray, target: IntArray | float) -> npt.NDArray[Any]:
    """Return the distance of a target from [lower, upper]; it moves by no more than these ends do."""
    return np.asarray(np.maximum(np.maximum(lower - target, target - upper), 0))


class SumsOverUsers(ABC):
    """A condition on sums over users, which a candidate meets where they reach a public target."""

    def sensitivity(self, neighbours: Neighbours) -> int:
        """Return the steps by which one user can move a distance: each adds between 0 and 1 under either relation."""
        return RESOLUTION

    def statistics(self, histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
        """Return the sums in steps, shape (2, c): with users at the candidate, #{s >= T}, and without, #{s > T}.

        Those that jump nowhere have shape (1, c).
        """
        return tails(histogram, candidates) * RESOLUTION

    @abstractmethod
    def targets(self, candidates: FloatArray) -> IntArray:
        """Return what the sum is at each candidate where that is best, in steps, shape (c,); without the data."""

    def far(self, statistics: IntArray, candidates: FloatArray) -> IntArray:
        """Distances of the targets from [without, with], given `statistics` of shape (..., 2, c): shape (..., c)."""
        # Where the sum jumps nowhere, the one row there is stands for both.
        return interval_distance(statistics[..., -1, :], statistics[..., 0, :], self.targets(candidates))

    def distances(
        self, histogram: ContributionHistogram, candidates: FloatArray, scales: Sequence[float] = (1.0,)
    ) -> IntArray:
        """Return `far` in steps, with every user so many times there, shape (n, c)."""
        return self.far(scaled(self.statistics(histogram, candidates), scales), candidates)
