"""The mean of the rows in this very table, its values at hand: what the release misses it by, exactly.

User l has s_l rows, whose clamped values have the mean c_l and the variance V_l (s_l - 1 below). A cap that keeps
k_l = min(h, s_l) rows of each user, drawn without replacement, misses the mean of the table by

    (sum_l k_l (c_l - y) / n_h)^2 + sum_l k_l (1 - k_l / s_l) V_l / n_h^2 + noise,      y the mean before clamping,

on average of the square: the shift, what the draw of rows adds, and the noise. Smooth weights with the threshold h
shift as much and draw nothing. Nothing is assumed of users.

Source: the variance of a sum of k out of s without replacement is k (1 - k / s) V, Cochran, *Sampling Techniques*
(1977), theorem 2.2; users are drawn from independently. The rest follows by expansion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, Reached, suffix_sums
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import ALL_PIECES, Best, BoundCurve, Losses, Pieces, rows_only
from dpcore.mean.user_effects import Clamped


@dataclass(frozen=True, eq=False)
class TableValues:
    """The values of a table, summed over the users of each size.

    Attributes:
        histogram: Rows per user.
        distances: Per size, the sum over its users of c_l - y, in the values' unit, shape (K,).
        variances: Per size, the sum over its users of V_l, (unit)^2, shape (K,).
        clamping: Mean of all clamped rows less y: what clamping alone shifts, in the values' unit.
    """

    histogram: ContributionHistogram
    distances: FloatArray
    variances: FloatArray
    clamping: float

    @classmethod
    def of(cls, histogram: ContributionHistogram, clamped: Clamped) -> TableValues:
        """Sum up clamped values; the histogram must be theirs."""
        at = np.searchsorted(histogram.sizes, clamped.sizes)
        away, size = clamped.user_means - clamped.unclamped_mean, histogram.sizes.size
        with np.errstate(over="ignore"):  # `ReadValues.tells_table` looks before this is used.
            distances = np.bincount(at, weights=away, minlength=size)
        return cls(
            histogram,
            np.asarray(distances, dtype=np.float64),
            np.asarray(np.bincount(at, weights=clamped.within_variances, minlength=size), dtype=np.float64),
            clamped.mean - clamped.unclamped_mean,
        )

    # P = sum of s c below, C = sum of c above, V0 = sum of V above, V1 = sum of V / s above, at 0 .. K sizes below.
    @cached_property
    def _below(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(self.histogram.sizes * self.distances)))

    @cached_property
    def _above(self) -> FloatArray:
        return suffix_sums(self.distances)

    @cached_property
    def _variance_above(self) -> FloatArray:
        return suffix_sums(self.variances)

    @cached_property
    def _per_row_above(self) -> FloatArray:
        return suffix_sums(self.variances / self.histogram.sizes)

    @property
    def sums_between(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sum of s c below, of c, of V and of V / s above, on every piece between two sizes."""
        parts = (self._below, self._above, self._variance_above, self._per_row_above)
        return tuple(part[1:-1] for part in parts)  # type: ignore[return-value]

    def losses(self, bounds: FloatArray, reached: Reached | None, capped: bool) -> Losses:
        """Shift, what the draw of a cap's rows adds, and the largest weight, at bounds."""
        h = np.asarray(bounds, dtype=np.float64)
        k = self.histogram.reached(h) if reached is None else reached
        below, above, _ = self.histogram.pieces_after(k)
        kept = below + h * above
        shift, weight = (self._below[k] + h * self._above[k]) / kept, h / kept
        if not capped:
            return Losses(np.asarray(shift), np.zeros(shift.shape), np.asarray(weight))
        spread = np.maximum(self._variance_above[k] - h * self._per_row_above[k], 0.0)
        return Losses(np.asarray(shift), np.asarray(weight * (spread / kept)), np.asarray(weight))


@dataclass(frozen=True)
class AtHand:
    """The model that assumes nothing; see `dpcore.mean.models.Model` for what it says.

    Attributes:
        table: The values, per size.
        unit_noise: Variance of the noise for a user who holds all the weight, (unit)^2.
    """

    table: TableValues
    unit_noise: float

    def smooth(self, thresholds: FloatArray, reached: Reached | None = None) -> Losses:
        """When a user with s rows weighs min(h, s)."""
        return self.table.losses(thresholds, reached, capped=False)

    def capped(self, caps: FloatArray, reached: Reached | None = None) -> Losses:
        """When at most h rows of each user are kept, drawn at random."""
        return self.table.losses(caps, reached, capped=True)

    def cap_curve(self) -> BoundCurve:
        """Return the error of caps over the bound."""
        return self._curve(capped=True)

    def smooth_curve(self) -> BoundCurve:
        """Return the error of smooth weights over the threshold."""
        return self._curve(capped=False)

    def _curve(self, capped: bool) -> BoundCurve:
        p, c, drawn, per_row = self.table.sums_between
        linear, square = 2.0 * p * c, c**2 + self.unit_noise
        if capped:
            # k (1 - k / s) V with k = h is h V - h^2 V / s.
            linear, square = linear + drawn, square - per_row
        losses = self.capped if capped else self.smooth
        pieces = Pieces(p**2, linear, square)
        return BoundCurve(self.table.histogram, lambda h, k: losses(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> Best:
        """Return the best cap over every piece."""
        found = self.cap_curve().best(whole=True)
        return Best(found.bound, found.certificate, rows_only(self.table.histogram) or ALL_PIECES)

    def best_smooth(self) -> Best:
        """Return the best threshold over every piece."""
        found = self.smooth_curve().best(whole=False)
        return Best(found.bound, found.certificate, rows_only(self.table.histogram) or ALL_PIECES)

    def growth(self, threshold: float) -> Growth:
        """Every row counts for itself."""
        return Growth()
