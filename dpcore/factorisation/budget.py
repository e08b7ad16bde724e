"""One Gaussian budget for the counts and for all sweeps.

A user moves the counts by at most sqrt(k) and, in each of T sweeps, the matrices and the vectors of all items
by at most sqrt(k) each, in units of what a rating of weight 1 may add. With noise s_0 on counts and s on the
others, all releases together are one Gaussian mechanism with mu^2 = k / s_0^2 + R T k / s^2, R = 2 releases a
sweep. In terms of `dpcore.multitask.budget` that is beta = mu^2 / 2, and betas add. A further release per sweep
for all items together, which a user moves by at most 1, adds 1 to R k.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from dpcore.common.checks import Problems
from dpcore.multitask.budget import PrivacyTarget, compute_exact_budget

# 7 ms a root, and a page asks for the same one several times.
_exact_budget = functools.lru_cache(maxsize=256)(compute_exact_budget)


@dataclass(frozen=True)
class Spending:
    """The division of the budget of all users among the releases.

    Attributes:
        budget: beta, all of it, above 0.
        count_share: Share of beta for the noisy counts, in [0, 1); 0 where none are released.
        sweeps: T, releases of all item vectors.
        max_items: k: a user's squared weights sum to at most this.
        releases: Gaussian releases in one sweep: 2 for matrices and vectors, the steps for gradient descent.
        unit_releases: Further ones in a sweep that a user moves by at most 1, not sqrt(k), with the same noise: 1
            where the Gram matrix of all users is released, for implicit feedback.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    budget: float
    count_share: float
    sweeps: int
    max_items: int
    releases: int = 2
    unit_releases: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.positive(budget=self.budget)
            problems.between(0.0, 0.99, count_share=self.count_share)
            problems.whole(1, 1_000, sweeps=self.sweeps)
            problems.whole(1, 10**9, max_items=self.max_items)
            problems.whole(1, 10_000, releases=self.releases)
            problems.whole(0, 10_000, for_all=self.unit_releases)

    @classmethod
    def from_target(
        cls,
        target: PrivacyTarget,
        count_share: float,
        sweeps: int,
        max_items: int,
        releases: int = 2,
        unit_releases: int = 0,
    ) -> Spending:
        """Create the division from the guarantee that every user gets."""
        return cls(_exact_budget(target), count_share, sweeps, max_items, releases, unit_releases)

    @property
    def count_noise(self) -> float:
        """Return s_0, the standard deviation of the noise on each count; infinite where no counts are released."""
        budget = self.budget * self.count_share
        return math.sqrt(self.max_items / (2.0 * budget)) if budget else math.inf

    @property
    def noise(self) -> float:
        """Return s, the standard deviation of the noise on each released sum; a rating of weight 1 adds at most 1."""
        budget = self.budget * (1.0 - self.count_share)
        # In units of what a rating of weight 1 may add.
        squared_sensitivity = self.sweeps * (self.releases * self.max_items + self.unit_releases)
        return math.sqrt(squared_sensitivity / (2.0 * budget))
