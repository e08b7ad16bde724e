"""The mean of the population that users come from, if rows of one user are correlated.

A row is mu + a_l + e with Var a = rho sigma^2 and Var e = (1 - rho) sigma^2, independent of each other and of the
number of rows of a user. For given weights of users it is best to spread each over the user's rows evenly. The variance
is then sigma^2 sum_l u_l^2 / x_l with x_l = s_l / (1 + (s_l - 1) rho): the problem of `dpcore.common.weights` in
effective sizes. So its optimum is the best among all weights of users. At rho = 0 it is Epasto et al. 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common import weights
from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, SizeIndex
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import ALL_PIECES, BoundCurve, BoundOptimum, Losses, Pieces, trivial_stop_reason


@dataclass(frozen=True)
class Population:
    """The model of correlated rows for the mean of a population; see `dpcore.mean.models.Model`.

    Attributes:
        histogram: Rows per user.
        unit_noise: Variance of the noise if one user holds all the weight, (unit)^2.
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

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses if a user with s rows weighs as much as one with min(h, s)."""
        losses = weights.smooth_losses(self._effective, self._effective.convert(thresholds))
        sampling = self.value_variance * losses.squared_weights
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), losses.largest_weight)

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of caps: sigma^2 (rho sum_l k_l^2 + (1 - rho) n_h) / n_h^2, with rows kept at random."""
        h = np.asarray(caps, dtype=np.float64)
        k = self.histogram.count_sizes_up_to(h) if size_index is None else size_index
        rows_below, users_above, _ = self.histogram.pieces_after(k)
        kept_rows = rows_below + h * users_above
        correlated = self._squares_before[k] / kept_rows + h * (h / kept_rows) * users_above
        rho = self.user_share
        sampling = self.value_variance * ((rho * correlated + (1.0 - rho)) / kept_rows)
        return Losses(np.zeros(sampling.shape), np.asarray(sampling), np.asarray(h / kept_rows))

    def best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with the dual bound of `dpcore.common.weights`."""
        best = weights.best_smooth(self._effective, self.value_variance / self.unit_noise)
        bound = self._convert_to_rows(best.bound)
        value = float(self.smooth(np.asarray(bound)).error(self.unit_noise))
        lower = self.unit_noise * best.certificate.lower_bound
        stop_reason = trivial_stop_reason(self.histogram) or best.stop_reason
        return BoundOptimum(bound, Certificate(value, lower, best.certificate.argument), stop_reason)

    def _convert_to_rows(self, effective: float) -> float:
        """Return the number of rows with the given effective size, clipped to the two sizes around it."""
        sizes, rho = self.histogram.sizes, self.user_share
        effective_sizes = self._effective.convert(sizes)
        k = min(int(np.searchsorted(effective_sizes, effective)), sizes.size - 1)
        low, high = float(sizes[max(k - 1, 0)]), float(sizes[k])
        # x = s / (1 + (s - 1) rho), solved for s; at rho = 1 every user has the effective size 1, whatever s.
        remainder = 1.0 - rho * effective
        rows = effective * (1.0 - rho) / remainder if remainder > 0.0 else high
        return min(max(rows, low), high)

    def growth(self, threshold: float) -> Growth:
        """Return the growth of the best weights: a user weighs their effective size."""
        return Growth(0.0, 1.0, self.user_share) if self.user_share else Growth()

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        sums, rho = self.histogram.pieces_at_sizes(), self.user_share
        rows_below, users_above = sums.rows_at_or_below[:-1], sums.users_above[:-1]
        pieces = Pieces(
            self.value_variance * (rho * self._squares_before[1:-1] + (1.0 - rho) * rows_below),
            self.value_variance * (1.0 - rho) * users_above,
            self.unit_noise + self.value_variance * rho * users_above,
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> BoundOptimum:
        """Return the best cap, from the minimum of every piece (though the curve has only one local minimum)."""
        minimum = self.cap_curve().minimise(is_integer=True)
        return BoundOptimum(
            minimum.bound, minimum.certificate, trivial_stop_reason(self.histogram) or ALL_PIECES
        )
