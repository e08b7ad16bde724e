"""All that a mean reads off values, computed once per range; as private as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpcore.dataset import Dataset
from dpcore.mean.this_table import TableValues
from dpcore.mean.user_effects import Clamped, UserShare, clamp, size_slope, user_share

LARGEST_MEAN = 1e100
"""Size of the mean of all rows before clamping up to which the error about it is computed."""


@dataclass(frozen=True, eq=False)
class ReadValues:
    """Values forced into [L, U], and what they say of users.

    Attributes:
        clamped: The values per user.
        table: The same per size, for the error on this very table.
    """

    clamped: Clamped
    table: TableValues

    @classmethod
    def of(cls, data: Dataset, lower: float, upper: float) -> ReadValues | None:
        """Read the values of data; None where they have none.

        Raises:
            InvalidInput: Bounds not finite or not in order.
        """
        if data.values is None:
            return None
        clamped = clamp(data.values, lower, upper)
        return cls(clamped, TableValues.of(data.histogram, clamped))

    @property
    def tells_table(self) -> bool:
        """Whether the error on this table is a number: squares of the distance to a mean beyond 1e100 leave float64."""
        return abs(self.clamped.unclamped_mean) <= LARGEST_MEAN

    @cached_property
    def share(self) -> UserShare:
        """Return the share of the variance that lies between users, with its interval."""
        return user_share(self.clamped)

    @cached_property
    def slope(self) -> float:
        """Return how many standard errors the values rise with the size of users."""
        return size_slope(self.clamped)
