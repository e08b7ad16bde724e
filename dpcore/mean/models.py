"""Which mean is meant, and what every model of users must be able to say."""

from __future__ import annotations

from typing import Protocol

from dpcore.common.parameters import Option
from dpcore.contributions import FloatArray, Reached
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import Best, BoundCurve, Losses


class Target(Option):
    """Which mean the release is to come close to."""

    TABLE = "table", "This table"
    """That of the rows in this very table."""
    POPULATION = "population", "People like these"
    """That of the distribution which users and their rows come from."""


class Model(Protocol):
    """What is assumed of users, and so what a bound costs."""

    def capped(self, caps: FloatArray, reached: Reached | None = None) -> Losses:
        """When at most h rows of each user are kept, drawn at random; ``reached``: `ContributionHistogram.reached`."""

    def smooth(self, thresholds: FloatArray, reached: Reached | None = None) -> Losses:
        """When a user with s rows weighs as one with min(h, s)."""

    def best_cap(self) -> Best:
        """Return the best whole cap from the smallest to the largest size."""

    def best_smooth(self) -> Best:
        """Return the best weights, with the rows from which on a user's weight grows no more."""

    def growth(self, threshold: float) -> Growth:
        """Return how users weigh below that threshold."""

    def cap_curve(self) -> BoundCurve:
        """Return the error of caps, for what needs more than the best one."""
