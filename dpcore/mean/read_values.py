"""Summary of the values that a mean needs, computed once per range; as private as the values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpcore.dataset import Dataset
from dpcore.mean.this_table import TableValues
from dpcore.mean.user_effects import Clamped, UserShare, clamp, size_slope, user_share

MAX_MEAN = 1e100
"""Largest magnitude of the mean before clamping for which the error is computed."""


@dataclass(frozen=True, eq=False)
class ValueSummary:
    """Values clamped to [L, U], summarised per user and per size.

    Attributes:
        clamped: The values per user.
        table: The same per size, for the error on this very table.
    """

    clamped: Clamped
    table: TableValues

    @classmethod
    def from_dataset(cls, data: Dataset, lower: float, upper: float) -> ValueSummary | None:
        """Summarise the values of a dataset, or return None if it has none.

        Raises:
            InvalidInput: Bounds not finite or not in order.
        """
        if data.values is None:
            return None
        clamped = clamp(data.values, lower, upper)
        return cls(clamped, TableValues.from_clamped(data.histogram, clamped))

    @property
    def has_finite_error(self) -> bool:
        """Return True if the error about this table's mean is finite; squares of a mean beyond 1e100 could overflow."""
        return abs(self.clamped.unclamped_mean) <= MAX_MEAN

    @cached_property
    def share(self) -> UserShare:
        """Return the share of the variance that lies between users, with its interval."""
        return user_share(self.clamped)

    @cached_property
    def slope(self) -> float:
        """Return the slope of user means over the logarithm of sizes, in standard errors."""
        return size_slope(self.clamped)
