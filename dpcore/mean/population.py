"""The mean of the population that users come from, where rows of one user are alike.

A row is mu + a_l + e with Var a = rho sigma^2 and Var e = (1 - rho) sigma^2, independent of each other and of how many
rows a user has. For given weights of users it is best to spread each over the user's rows evenly, which leaves the
variance sigma^2 sum_l u_l^2 / x_l with x_l = s_l / (1 + (s_l - 1) rho): the problem of `dpcore.common.weights` in
effective sizes. So its optimum is the best among all weights of users. At rho = 0 it is Epasto et al. 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common import weights
from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, Reached
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import ALL_PIECES, Best, BoundCurve, Losses, Pieces, rows_only


@dataclass(frozen=True)
class Population:
    """The model; see `dpcore.mean.models.Model` for what it says.

    Attributes:
        histogram: Rows per user.
        unit_noise: Variance of the noise for a user who holds all the weight, (unit)^2.
        value_variance: sigma^2, (unit)^2.
        user_share: rho in [0, 1].
    """

    histogram: ContributionHistogram
    unit_noise: float
    value_variance: float
    user_share: float

    @cached_property
    def _effective(self) -> weights.EffectiveSizes:
        return weights.EffectiveSizes(self.histogram, self.user_share)

    @cached_property
    def _squares_before(self) -> FloatArray:
        sizes = self.histogram.sizes.astype(np.float64)
        return np.concatenate(([0.0], np.cumsum(sizes**2 * self.histogram.users)))

    def smooth(self, thresholds: FloatArray, reached: Reached | None = None) -> Losses:
        """When a user with s rows weighs as one with min(h, s)."""
        found = weights.smooth_losses(self._effective, self._effective.convert(thresholds))
        sampling = self.value_variance * found.squared_weights
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), found.largest_weight)

    def capped(self, caps: FloatArray, reached: Reached | None = None) -> Losses:
        """sigma^2 (rho sum_l k_l^2 + (1 - rho) n_h) / n_h^2, the rows that are kept drawn at random."""
        h = np.asarray(caps, dtype=np.float64)
        k = self.histogram.reached(h) if reached is None else reached
        below, above, _ = self.histogram.pieces_after(k)
        kept = below + h * above
        alike = self._squares_before[k] / kept + h * (h / kept) * above
        rho = self.user_share
        sampling = self.value_variance * ((rho * alike + (1.0 - rho)) / kept)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), np.asarray(h / kept))

    def best_smooth(self) -> Best:
        """Return the best weights of all, with the dual bound of `dpcore.common.weights`."""
        best = weights.best_smooth(self._effective, self.value_variance / self.unit_noise)
        bound = self._rows_of(best.bound)
        value = float(self.smooth(np.asarray(bound)).error(self.unit_noise))
        lower = self.unit_noise * best.certificate.lower_bound
        ended = rows_only(self.histogram) or best.stop_reason
        return Best(bound, Certificate(value, lower, best.certificate.argument), ended)

    def _rows_of(self, effective: float) -> float:
        """Return the rows of a user that are worth so many independent ones, between the sizes around them."""
        sizes, rho = self.histogram.sizes, self.user_share
        each = self._effective.convert(sizes)
        k = min(int(np.searchsorted(each, effective)), sizes.size - 1)
        low, high = float(sizes[max(k - 1, 0)]), float(sizes[k])
        # x = s / (1 + (s - 1) rho), solved for s; at rho = 1 every user is worth one row, and nothing tells them
        # apart.
        left = 1.0 - rho * effective
        rows = effective * (1.0 - rho) / left if left > 0.0 else high
        return min(max(rows, low), high)

    def growth(self, threshold: float) -> Growth:
        """Users weigh what their rows are worth."""
        return Growth(0.0, 1.0, self.user_share) if self.user_share else Growth()

    def cap_curve(self) -> BoundCurve:
        """Return the error of caps over the bound."""
        at, rho = self.histogram.pieces_at_sizes(), self.user_share
        below, above = at.rows_at_or_below[:-1], at.users_above[:-1]
        pieces = Pieces(
            self.value_variance * (rho * self._squares_before[1:-1] + (1.0 - rho) * below),
            self.value_variance * (1.0 - rho) * above,
            self.unit_noise + self.value_variance * rho * above,
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> Best:
        """Return the best cap; the curve has one valley, yet every piece is looked at."""
        found = self.cap_curve().best(whole=True)
        return Best(found.bound, found.certificate, rows_only(self.histogram) or ALL_PIECES)
