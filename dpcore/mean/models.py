"""Which mean is meant, how users weigh, and what every model of users must be able to say."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, Reached
from dpcore.mean.curves import Best, BoundCurve, Losses


class Target(enum.Enum):
    """Which mean the release is to come close to."""

    TABLE = "table"
    """That of the rows in this very table."""
    POPULATION = "population"
    """That of the distribution which users and their rows come from."""


@dataclass(frozen=True)
class Growth:
    """How much users weigh up to a bound: w(s) = s (extra_rows + extra_users / (1 + (s - 1) rho)).

    A user with s rows weighs w(min(s, h)), spread evenly over the rows. At rho = 0, or without ``extra_users``, that is
    min(s, h) up to a factor, the smooth weights of Epasto et al. 2020.

    Attributes:
        extra_rows: 1 where every row counts for itself, 0 where only users do.
        extra_users: Weight of what a user's rows are worth together.
        user_share: rho in [0, 1].
    """

    extra_rows: float = 1.0
    extra_users: float = 0.0
    user_share: float = 0.0

    def of(self, rows: npt.ArrayLike) -> FloatArray:
        """w(s) at numbers of rows above 0, of their shape; it rises with them."""
        s = np.asarray(rows, dtype=np.float64)
        return np.asarray(s * (self.extra_rows + self.extra_users / (1.0 + (s - 1.0) * self.user_share)))

    def in_rows(self, threshold: float, rows: npt.ArrayLike) -> FloatArray:
        """Weights of users scaled so that at the threshold they are the threshold, which none exceeds."""
        if self.plain:
            return np.asarray(np.minimum(threshold, rows))
        return np.asarray(np.minimum(threshold, self.of(rows) * self._scale(threshold)))

    def coefficients(self, threshold: float) -> tuple[float, float]:
        """``extra_rows`` and ``extra_users`` of weights that are scaled so."""
        scale = 1.0 if self.plain else self._scale(threshold)
        return self.extra_rows * scale, self.extra_users * scale

    def _scale(self, threshold: float) -> float:
        return threshold / float(self.of(threshold))

    @property
    def plain(self) -> bool:
        """Whether w(s) is s."""
        return self.extra_users == 0.0


class Model(Protocol):
    """What is assumed of users, and so what a bound costs."""

    def capped(self, caps: FloatArray, reached: Reached | None = None) -> Losses:
        """When at most h rows of each user are kept, drawn at random; ``reached``: `ContributionHistogram.reached`."""

    def smooth(self, thresholds: FloatArray, reached: Reached | None = None) -> Losses:
        """When a user with s rows weighs as one with min(h, s)."""

    def best_cap(self) -> Best:
        """The best whole cap from the smallest to the largest size."""

    def best_smooth(self) -> Best:
        """The best weights, with the rows from which on a user's weight grows no more."""

    def growth(self, threshold: float) -> Growth:
        """How users weigh below that threshold."""

    def cap_curve(self) -> BoundCurve:
        """The error of caps, for what needs more than the best one."""
