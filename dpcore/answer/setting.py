"""The setting of a release: what it is, whichever page asks about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from dpcore.code.choice import Released
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Neighbours

WORST_SHARE = 0.25
"""Variance of a value over (U - L)^2 that no values exceed (Popoviciu's inequality)."""


@dataclass(frozen=True)
class ReleaseSetting:
    """What a release is: two answers on the same data whose `basis` is the same have the same best bound.

    Attributes:
        released: What is released.
        epsilon: Of the release, without that of a private choice of its bound.
        neighbours: Who is protected against what.
        column: What is released of every row; empty for the rows themselves.
        lower: Values below are raised to it; None where values do not matter, or no range is known.
        upper: Values above are lowered to it.
        variance_share: sigma^2 over (upper - lower)^2 that the bound goes by; None where it goes by none.
        mean_share: (mean - lower) / (upper - lower) that it goes by; None for the mean at which the error is worst.
        values_read: Whether anything was read off the values.
        of_table: Whether the mean that the bound is best for is that of the table itself, not of a population.
        on_values: Whether it is best on the values themselves, so that nothing is assumed of them.
        user_share: rho, the share of the variance that is taken to lie between users; 0 for independent rows.
        noise: Added to what is released.
        delta: Of the release; None with pure epsilon-DP.
        measure: What the best bound of a sum or a count minimises; None for other releases.
        margin: How many users more than 1/epsilon the bound of a count leaves above it.
    """

    released: Released
    epsilon: float
    neighbours: Neighbours
    column: str = ""
    lower: float | None = None
    upper: float | None = None
    variance_share: float | None = None
    mean_share: float | None = None
    values_read: bool = False
    of_table: bool = False
    on_values: bool = False
    user_share: float = 0.0
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    measure: Measure | None = None
    margin: float = 0.0

    @property
    def private_counts(self) -> bool:
        """Whether how many rows each user has is protected, too."""
        return self.neighbours is not Neighbours.REPLACE_VALUES

    @property
    def basis(self) -> ReleaseSetting:
        """The same without what the best bound does not depend on: names, the range itself, where numbers come from.

        At the mean where the error is worst, a release with private counts errs as one with public counts. For
        independent rows the mean of a table errs less than that of a population by what no bound changes.
        """
        same = self.mean_share is None and self.released is Released.MEAN
        return replace(
            self,
            column="",
            lower=None,
            upper=None,
            values_read=False,
            of_table=self.of_table and self.user_share > 0.0,
            variance_share=None if self.on_values else self.variance_share,
            neighbours=Neighbours.REPLACE_VALUES if same else self.neighbours,
            # A mean of 0.3 errs as one of 0.7: p^2 + (1 - p)^2.
            mean_share=None if self.mean_share is None else min(self.mean_share, 1.0 - self.mean_share),
        )

    def differing(self, other: ReleaseSetting) -> tuple[str, ...]:
        """Names of what decides the best bound and is another there; empty where both have the same best bound."""
        mine, theirs = self.basis, other.basis
        pairs = ((f.name, getattr(mine, f.name), getattr(theirs, f.name)) for f in fields(self))
        return tuple(name for name, a, b in pairs if not _same(a, b))


def _same(a: Any, b: Any) -> bool:
    """Whether they are the same; numbers, to within what computing them by two routes rounds."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)
