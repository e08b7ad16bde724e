"""The setting of a release, whichever page asks about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from dpcore.code.choice import Quantity
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Neighbours

WORST_SHARE = 0.25
"""Variance of a value over (U - L)^2 that no values exceed (Popoviciu's inequality)."""


@dataclass(frozen=True)
class ReleaseSetting:
    """The setting of a release. On the same data, settings with the same `basis` have the same best bound.

    Attributes:
        statistic: The released statistic.
        epsilon: The epsilon of the release, without that of a private selection of its bound.
        neighbours: The neighbouring relation.
        column: The column that is released; empty for the rows themselves.
        lower: Smaller values are raised to it; None if values do not matter, or no range is known.
        upper: Larger values are lowered to it.
        variance_share: sigma^2 over (upper - lower)^2 that the bound depends on; None if it depends on none.
        mean_share: (mean - lower) / (upper - lower) that it depends on; None for the mean with the largest error.
        uses_values: Whether anything was computed from the values.
        is_table_mean: Whether the mean that the bound is best for is that of the table itself, not of a population.
        is_exact_for_values: Whether it is best on the values themselves, so that nothing is assumed of them.
        user_share: rho, the share of the variance that is taken to lie between users; 0 for independent rows.
        noise: The noise that is added.
        delta: The delta of the release; None with pure epsilon-DP.
        measure: The error that the best bound of a sum or a count minimises; None for other releases.
        margin: How many users more than 1/epsilon the bound of a count leaves above it.
    """

    statistic: Quantity
    epsilon: float
    neighbours: Neighbours
    column: str = ""
    lower: float | None = None
    upper: float | None = None
    variance_share: float | None = None
    mean_share: float | None = None
    uses_values: bool = False
    is_table_mean: bool = False
    is_exact_for_values: bool = False
    user_share: float = 0.0
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None
    measure: Measure | None = None
    margin: float = 0.0

    @property
    def protects_counts(self) -> bool:
        """Return True if the number of rows of each user is protected, too."""
        return self.neighbours is not Neighbours.REPLACE_VALUES

    @property
    def basis(self) -> ReleaseSetting:
        """Return only what the best bound depends on, without names and the range itself.

        At the mean with the worst error, a release with private counts errs as one with public counts. For
        independent rows the mean of a table errs less than that of a population by a constant.
        """
        is_public_count_mean = self.mean_share is None and self.statistic is Quantity.MEAN
        return replace(
            self,
            column="",
            lower=None,
            upper=None,
            uses_values=False,
            is_table_mean=self.is_table_mean and self.user_share > 0.0,
            variance_share=None if self.is_exact_for_values else self.variance_share,
            neighbours=Neighbours.REPLACE_VALUES if is_public_count_mean else self.neighbours,
            # A mean of 0.3 errs as one of 0.7: p^2 + (1 - p)^2.
            mean_share=None if self.mean_share is None else min(self.mean_share, 1.0 - self.mean_share),
        )

    def list_differences(self, other: ReleaseSetting) -> tuple[str, ...]:
        """List the fields that differ and decide the best bound; empty if both have the same best bound."""
        own_basis, other_basis = self.basis, other.basis
        pairs = ((f.name, getattr(own_basis, f.name), getattr(other_basis, f.name)) for f in fields(self))
        return tuple(name for name, a, b in pairs if not _is_same(a, b))


def _is_same(first_value: Any, second_value: Any) -> bool:
    """Return True if the values are the same; numbers may differ by rounding."""
    if isinstance(first_value, float) and isinstance(second_value, float):
        return math.isclose(first_value, second_value, rel_tol=1e-9)
    return bool(first_value == second_value)
