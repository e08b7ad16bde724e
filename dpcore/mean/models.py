"""The target of a mean, and the protocol of the models of users."""

from __future__ import annotations

from typing import Protocol

from dpcore.common.parameters import Option
from dpcore.contributions import FloatArray, SizeIndex
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import BoundCurve, BoundOptimum, Losses


class Target(Option):
    """The mean that the release estimates."""

    TABLE = "table", "This table"
    """The mean of the rows in this table."""
    POPULATION = "population", "People like these"
    """The mean of the distribution that users and their rows come from."""


class Model(Protocol):
    """A model of users, which gives the error of every bound."""

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of caps that keep at most h rows of each user, drawn at random.

        ``size_index`` is `ContributionHistogram.count_sizes_up_to`, if known.
        """

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses if a user with s rows weighs as much as one with min(h, s)."""

    def best_cap(self) -> BoundOptimum:
        """Return the best integer cap from the smallest to the largest size."""

    def best_smooth(self) -> BoundOptimum:
        """Return the best weights; the bound is the number of rows from which on a user's weight is constant."""

    def growth(self, threshold: float) -> Growth:
        """Describe the growth of a user's weight with their rows below that threshold."""

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
