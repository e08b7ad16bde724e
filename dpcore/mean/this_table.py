"""The exact error of a release about the mean of the rows in this table, computed from its values.

User l has s_l rows, whose clamped values have the mean c_l and the variance V_l (s_l - 1 below). A cap that keeps
k_l = min(h, s_l) rows of each user, drawn without replacement, misses the mean of the table by

    (sum_l k_l (c_l - y) / n_h)^2 + sum_l k_l (1 - k_l / s_l) V_l / n_h^2 + noise,      y the mean before clamping,

in mean square: the shift, the variance from drawing rows, and the noise. Smooth weights with the threshold h have the
same shift and draw no rows. Nothing is assumed about users.

Source: the variance of a sum of k out of s without replacement is k (1 - k / s) V, Cochran, *Sampling Techniques*
(1977), theorem 2.2; the draws of different users are independent. The rest follows by expansion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, SizeIndex, suffix_sums
from dpcore.mean.counts_only import Growth
from dpcore.mean.curves import ALL_PIECES, BoundCurve, BoundOptimum, Losses, Pieces, trivial_stop_reason
from dpcore.mean.user_effects import Clamped


@dataclass(frozen=True, eq=False)
class TableValues:
    """The values of a table, summed over the users of each size.

    Attributes:
        histogram: Rows per user.
        distances: Per size, the sum over its users of c_l - y, in the values' unit, shape (K,).
        variances: Per size, the sum over its users of V_l, (unit)^2, shape (K,).
        clamping: Mean of all clamped rows minus y: the shift by clamping alone, in the values' unit.
    """

    histogram: ContributionHistogram
    distances: FloatArray
    variances: FloatArray
    clamping: float

    @classmethod
    def from_clamped(cls, histogram: ContributionHistogram, clamped: Clamped) -> TableValues:
        """Sum clamped values per size; the histogram must be that of the same rows."""
        size_index = np.searchsorted(histogram.sizes, clamped.sizes)
        offsets, size = clamped.user_means - clamped.unclamped_mean, histogram.sizes.size
        with np.errstate(over="ignore"):  # `ValueSummary.has_finite_error` is checked before this is used.
            distances = np.bincount(size_index, weights=offsets, minlength=size)
        return cls(
            histogram,
            np.asarray(distances, dtype=np.float64),
            np.asarray(
                np.bincount(size_index, weights=clamped.within_variances, minlength=size), dtype=np.float64
            ),
            clamped.mean - clamped.unclamped_mean,
        )

    # P = sum of s c below, C = sum of c above, V0 = sum of V above, V1 = sum of V / s above, at 0 .. K sizes below.
    @cached_property
    def _sums_below(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(self.histogram.sizes * self.distances)))

    @cached_property
    def _distances_above(self) -> FloatArray:
        return suffix_sums(self.distances)

    @cached_property
    def _variance_above(self) -> FloatArray:
        return suffix_sums(self.variances)

    @cached_property
    def _per_row_above(self) -> FloatArray:
        return suffix_sums(self.variances / self.histogram.sizes)

    @property
    def sums_between(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the sums of s c below, and of c, V and V / s above, for every piece between two sizes."""
        sums = (self._sums_below, self._distances_above, self._variance_above, self._per_row_above)
        return tuple(values[1:-1] for values in sums)  # type: ignore[return-value]

    def losses(self, bounds: FloatArray, size_index: SizeIndex | None, is_cap: bool) -> Losses:
        """Return the losses of caps or of smooth weights at bounds; only a cap draws rows."""
        h = np.asarray(bounds, dtype=np.float64)
        k = self.histogram.count_sizes_up_to(h) if size_index is None else size_index
        rows_below, users_above, _ = self.histogram.pieces_after(k)
        kept_rows = rows_below + h * users_above
        shift, weight = (self._sums_below[k] + h * self._distances_above[k]) / kept_rows, h / kept_rows
        if not is_cap:
            return Losses(np.asarray(shift), np.zeros(shift.shape), np.asarray(weight))
        spread = np.maximum(self._variance_above[k] - h * self._per_row_above[k], 0.0)
        return Losses(np.asarray(shift), np.asarray(weight * (spread / kept_rows)), np.asarray(weight))


@dataclass(frozen=True)
class KnownValues:
    """The model that uses the values and assumes nothing about users; see `dpcore.mean.models.Model`.

    Attributes:
        table: The values, per size.
        unit_noise: Variance of the noise if one user holds all the weight, (unit)^2.
    """

    table: TableValues
    unit_noise: float

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of smooth weights: a user with s rows weighs min(h, s)."""
        return self.table.losses(thresholds, size_index, is_cap=False)

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> Losses:
        """Return the losses of caps that keep at most h rows of each user, drawn at random."""
        return self.table.losses(caps, size_index, is_cap=True)

    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        return self._curve(is_cap=True)

    def smooth_curve(self) -> BoundCurve:
        """Return the curve of the error of smooth weights over the threshold."""
        return self._curve(is_cap=False)

    def _curve(self, is_cap: bool) -> BoundCurve:
        p, c, variances, per_row = self.table.sums_between
        linear, square = 2.0 * p * c, c**2 + self.unit_noise
        if is_cap:
            # k (1 - k / s) V with k = h is h V - h^2 V / s.
            linear, square = linear + variances, square - per_row
        losses = self.capped if is_cap else self.smooth
        pieces = Pieces(p**2, linear, square)
        return BoundCurve(self.table.histogram, lambda h, k: losses(h, k).error(self.unit_noise), pieces)

    def best_cap(self) -> BoundOptimum:
        """Return the best cap, from the minimum of every piece."""
        minimum = self.cap_curve().minimise(is_integer=True)
        return BoundOptimum(
            minimum.bound, minimum.certificate, trivial_stop_reason(self.table.histogram) or ALL_PIECES
        )

    def best_smooth(self) -> BoundOptimum:
        """Return the best threshold, from the minimum of every piece."""
        minimum = self.smooth_curve().minimise(is_integer=False)
        return BoundOptimum(
            minimum.bound, minimum.certificate, trivial_stop_reason(self.table.histogram) or ALL_PIECES
        )

    def growth(self, threshold: float) -> Growth:
        """Return the plain growth: a user weighs the number of their rows."""
        return Growth()
