"""The least squared error of a line at a given noise over all bounds, and the bound that has it.

Noise of scale b at sensitivity 1 has v = b^2. A bound h costs alpha(h) + beta(h) v with squares of bias and of
sampling in alpha and the variance of the noise in beta. The best over h is the least of many straight lines in
v: it never falls as v grows, and it is concave in v, whatever the data. The proof of a plan uses no other
property of a line. A quantile has no such form; `RankCurve` says so.

Whole noise of users and rows has a little less variance than beta v, and alpha plus that variance is convex in v
instead: chords then lie above by at most ``bulge`` (b / a - 1)^2 / 8 between v = a and b.

Every `LineCurve` finds its best bounds at v > 0, infinite without a budget (`find_optimum`). If ``is_concave``, chords
in v lie below it, but for what ``bulge`` says. A proof covers all bounds of its kind if ``has_all_bounds``, else only
the candidates. ``floor`` is its squared error without any noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import DrawnNoise
from dpcore.contributions import FloatArray, build_log_grid
from dpcore.data.totals_per_user import Amounts
from dpcore.total.nonnegative import round_to_few_digits


@dataclass(frozen=True, eq=False)
class CurveOptimum:
    """The best bounds at some v, each array of their shape.

    Attributes:
        squared_errors: Least squared error, alpha + beta v.
        noise_slopes: By how much the variance of the noise grows with v: beta for real noise.
        bounds: The bound; of pairs the first one.
        second_bounds: The second one of pairs; NaN for others.
    """

    squared_errors: FloatArray
    noise_slopes: FloatArray
    bounds: FloatArray
    second_bounds: FloatArray


MAX_VARIANCE_SAVED = 1.0 / 6.0
"""By how much the variance of whole noise is smaller than that of real noise, at most."""
MAX_OFFSET_OF_WHOLE_BOUND = 32.0
"""Whole bounds compared on either side, which is enough up to an epsilon of 100 for the line. Beyond, a bound that cuts
nothing is best, or `MAX_VARIANCE_SAVED` is about 1e-4 of the squared error."""
BULGE_BY_NOISE = {NoiseKind.LAPLACE: 0.06, NoiseKind.GAUSSIAN: 0.24}
"""No less than the largest v^2 f''(v), with f the variance of whole noise of scale sqrt(v): found numerically."""


def compute_noise_variance(noise_scale_variance: FloatArray, whole_noise: NoiseKind | None) -> FloatArray:
    """Compute the variance of noise at given beta v: that itself, or of whole noise of the same scale.

    ``whole_noise`` is None for noise of real numbers.
    """
    if whole_noise is None:
        return noise_scale_variance
    with np.errstate(divide="ignore"):
        return DrawnNoise(whole_noise, 1.0, True).compute_variance(
            np.sqrt(noise_scale_variance / whole_noise.unit_variance)
        )


def _evaluate(
    alpha: FloatArray, beta: FloatArray, v: FloatArray, whole_noise: NoiseKind | None = None
) -> FloatArray:
    """Compute the squared error: alpha plus the variance of the noise, or alpha alone where beta is 0."""
    beta_v = np.multiply(beta, v, out=np.zeros(np.shape(beta)), where=beta > 0.0)
    return np.asarray(alpha + compute_noise_variance(beta_v, whole_noise))


def _find_slope(beta: FloatArray, v: FloatArray, whole_noise: NoiseKind | None) -> FloatArray:
    """Compute the derivative of the noise's variance in v; beta for real noise, and for an infinite v."""
    if whole_noise is None:
        return beta
    finite_v = np.where(np.isfinite(v), v, 1.0)
    variance_above = compute_noise_variance(beta * finite_v * (1.0 + 1e-4), whole_noise)
    variance_below = compute_noise_variance(beta * finite_v * (1.0 - 1e-4), whole_noise)
    return np.where(np.isfinite(v), (variance_above - variance_below) / (2e-4 * finite_v), beta)


@dataclass(frozen=True, eq=False)
class TotalCurve:
    """A sum of one total of at least 0 per user, each clipped at T: ((sum of the excess))^2 + variance T^2 v.

    Attributes:
        amounts: The totals.
        unit_variance: Of the noise at scale 1: 2 for Laplace, 1 for Gaussian noise.
        is_integer: Whether T is whole, as a number of rows is.
        whole_noise: The noise if it is drawn in whole numbers, else None; T is then whole.

    Source: Amin et al. 2019, section 3, for the release; the error is exact.
    """

    amounts: Amounts
    unit_variance: float
    is_integer: bool = False
    whole_noise: NoiseKind | None = None

    is_concave = True
    has_all_bounds = True
    floor = 0.0  # A bound above all totals cuts nothing.

    @property
    def bulge(self) -> float:
        """Return the factor in how far the curve may lie below its chords (see the module); 0 for real noise."""
        return 0.0 if self.whole_noise is None else BULGE_BY_NOISE[self.whole_noise]

    @cached_property
    def _bias_slopes(self) -> FloatArray:
        """Compute users above times excess, over T, at every total T: minus half the slope of the squared bias, over T.

        It falls with T.
        """
        totals = self.amounts.values
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = self.amounts.count_users_above(totals) * self.amounts.sum_excess(totals) / totals
        return np.asarray(np.where(totals > 0.0, slopes, np.inf))

    def find_optimum(self, v: npt.ArrayLike) -> CurveOptimum:
        """Find the best bound T at each v; a whole one if `is_integer` or if noise is whole.

        With whole noise it is the best of those near the best bound for real noise.
        """
        v = np.asarray(v, dtype=np.float64)
        distinct_totals, scaled_v = self.amounts.values, self.unit_variance * v
        # Half the slope at T is variance v T - users above * excess: at the first total where it is not negative the
        # piece ends.
        piece_indices = np.searchsorted(-self._bias_slopes, -scaled_v, side="left")
        piece_indices = np.minimum(piece_indices, distinct_totals.size - 1)
        left_ends = np.where(piece_indices > 0, distinct_totals[piece_indices - 1], 0.0)
        num_above, sum_above = self.amounts.count_users_above(left_ends), self.amounts.sum_above(left_ends)
        with np.errstate(invalid="ignore"):
            # On a piece the error is (sum above - users T)^2 + k T^2.
            bounds = num_above * sum_above / (num_above**2 + scaled_v)
        bounds = np.where(np.isinf(scaled_v) | (num_above == 0.0), 0.0, bounds)
        bounds = np.clip(bounds, np.where(np.isinf(scaled_v), 0.0, left_ends), distinct_totals[piece_indices])
        if self.is_integer:
            # The excess is convex and at least 0, and so is its square: the best whole bound is next to the best real
            # one.
            bounds_below, bounds_above = np.floor(bounds), np.ceil(bounds)
            floor_mask = self._compute_real_square_error(bounds_below, v) <= self._compute_real_square_error(
                bounds_above, v
            )
            bounds = np.where(floor_mask, bounds_below, bounds_above)
        if self.whole_noise is not None:
            bounds = self._search_around(bounds, v)
        noise_slopes = _find_slope(self.unit_variance * bounds**2, v, self.whole_noise)
        return CurveOptimum(
            self._compute_square_error(bounds, v), noise_slopes, bounds, np.full(bounds.shape, np.nan)
        )

    def _search_around(self, bounds: FloatArray, v: FloatArray) -> FloatArray:
        """Find the best whole bounds under whole noise, among those near the given ones."""
        # With real noise a bound m steps away errs more by variance v m (m - 1) or more: differences of the squared
        # error grow by twice variance v with each step. Whole noise makes up for `MAX_VARIANCE_SAVED` at most.
        finite_v = np.where(np.isfinite(v), v, 1.0)
        offset_limits = np.floor(0.5 + np.sqrt(0.25 + MAX_VARIANCE_SAVED / (self.unit_variance * finite_v)))
        largest_offset = min(offset_limits.max(initial=1.0), MAX_OFFSET_OF_WHOLE_BOUND)
        offsets = np.arange(-largest_offset, largest_offset + 1.0)
        candidate_bounds = np.clip(bounds[..., None] + offsets, 0.0, self.amounts.values[-1])
        best_indices = np.argmin(self._compute_square_error(candidate_bounds, v[..., None]), axis=-1)
        return np.take_along_axis(candidate_bounds, best_indices[..., None], axis=-1)[..., 0]

    def find_short_bound(self, bound: float, v: float) -> tuple[float, float]:
        """Find a best bound in few digits, or the whole bound as it is, and its squared error.

        Args:
            bound: The best T at v.
            v: Above 0, finite.
        """

        def square_error(bounds: FloatArray) -> FloatArray:
            """Return the squared error under each bound at the given v."""
            return self._compute_square_error(bounds, np.array([v]))

        if not self.is_integer:
            bound = round_to_few_digits(bound, lambda bounds: np.sqrt(square_error(bounds)))
        return bound, float(square_error(np.array([bound]))[0])

    def _compute_square_error(self, bounds: FloatArray, v: FloatArray) -> FloatArray:
        """Compute the squared error under each bound at v."""
        beta = np.broadcast_to(self.unit_variance * bounds**2, np.broadcast_shapes(bounds.shape, v.shape))
        return _evaluate(self.amounts.sum_excess(bounds) ** 2, beta, v, self.whole_noise)

    def _compute_real_square_error(self, bounds: FloatArray, v: FloatArray) -> FloatArray:
        """Compute the squared error under each bound at v, with noise of real numbers."""
        return _evaluate(self.amounts.sum_excess(bounds) ** 2, self.unit_variance * bounds**2, v)


class BoundCurve:
    """A line with a list of bounds, each of which costs alpha + beta v.

    Args:
        alpha: Squared error without noise under each bound, shape (k,).
        beta: Variance of the noise at v = 1, likewise.
        bounds: The bounds, likewise.
        second_bounds: The second numbers of pairs; None where a bound is one number.
        has_all_bounds: Whether these are all bounds that there are.
        whole_noise: The noise if it is drawn in whole numbers, else None.
        measure_release: The squared errors of releases under bounds at v, if alpha + beta v is an approximation or
            counts no last step.
    """

    is_concave = True

    def __init__(
        self,
        alpha: npt.ArrayLike,
        beta: npt.ArrayLike,
        bounds: npt.ArrayLike,
        second_bounds: npt.ArrayLike | None = None,
        has_all_bounds: bool = True,
        whole_noise: NoiseKind | None = None,
        measure_release: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
    ) -> None:
        self.has_all_bounds, self.whole_noise = has_all_bounds, whole_noise
        self.measure_release = measure_release
        self.bulge = 0.0 if whole_noise is None else BULGE_BY_NOISE[whole_noise]
        alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        if second_bounds is None:
            second_bounds = np.full(alpha.shape, np.nan)
        # In the order of their noise. A bound with more noise is kept only if it has less error without noise.
        order = np.lexsort((alpha, beta))
        undominated_indices = order[alpha[order] < np.minimum.accumulate(np.r_[np.inf, alpha[order][:-1]])]
        kept_indices = undominated_indices
        while True:
            # v below which the next bound is better. A bound is lowest at some v only if it becomes the better one
            # before the next does: only at corners of the lower hull of (beta, alpha) is that so. A corner is better
            # than any mix of two others, so none is dropped, whatever is dropped at the same time.
            crossings = -np.diff(alpha[kept_indices]) / np.diff(beta[kept_indices])
            corner_mask = np.r_[True, crossings[:-1] > crossings[1:], True][: kept_indices.size]
            if corner_mask.all():
                break
            kept_indices = kept_indices[corner_mask]
        self._crossings = crossings
        if whole_noise is not None:
            # Under whole noise no bound is best that exceeds the hull by more than `MAX_VARIANCE_SAVED` at every v. The
            # difference to the hull is convex between its corners' crossings: it is smallest at one of them, or at 0.
            v = np.r_[0.0, crossings]
            hull_errors = (alpha[kept_indices, None] + beta[kept_indices, None] * v).min(axis=0)
            squared_errors = alpha[undominated_indices, None] + beta[undominated_indices, None] * v
            kept_indices = undominated_indices[
                (squared_errors - hull_errors).min(axis=1) <= MAX_VARIANCE_SAVED * (1.0 + 1e-9)
            ]
        self._alpha, self._beta = alpha[kept_indices], beta[kept_indices]
        self._bounds = np.asarray(bounds, dtype=np.float64)[kept_indices]
        self._second_bounds = np.asarray(second_bounds, dtype=np.float64)[kept_indices]

    @property
    def floor(self) -> float:
        """Return the least squared error of any bound without noise."""
        return float(self._alpha[-1])

    def find_optimum(self, v: npt.ArrayLike) -> CurveOptimum:
        """Find the best bound at each v, with its squared error and slope.

        With real noise it is a corner of the lower convex hull of the errors. With whole noise all bounds near the
        hull are compared.
        """
        v = np.asarray(v, dtype=np.float64)
        hull_indices = np.searchsorted(-self._crossings, -v, side="left")
        if self.whole_noise is not None:
            beta_v = self._beta * np.where(np.isfinite(v), v, 1.0)[..., None]
            hull_indices = np.argmin(self._alpha + compute_noise_variance(beta_v, self.whole_noise), axis=-1)
        hull_indices = np.where(np.isinf(v), 0, hull_indices)
        beta = self._beta[hull_indices]
        return CurveOptimum(
            _evaluate(self._alpha[hull_indices], beta, v, self.whole_noise),
            _find_slope(beta, v, self.whole_noise),
            self._bounds[hull_indices],
            self._second_bounds[hull_indices],
        )

    @cached_property
    def release_ratios(self) -> FloatArray:
        """Return the squared error of releases over alpha + beta v, at `RELEASE_VS`."""
        return measure_squared_errors(self, RELEASE_VS) / self.find_optimum(RELEASE_VS).squared_errors


RELEASE_VS = np.geomspace(1e-8, 1e18, 120)
"""Between these the squared error of a release is interpolated, to about 1 %."""


class RankCurve:
    """A quantile: expected rank errors at some v, minimised over the candidate bounds, interpolated between them.

    They may fall as v grows: then the line is released with the larger v, which spends less than its share.

    Args:
        v: Ascending, shape (k,).
        errors: Expected rank error of each bound at each v, shape (bounds, k).
        bounds: The bounds.
    """

    is_concave = False
    has_all_bounds = False
    bulge = 0.0

    def __init__(self, v: FloatArray, rank_errors: FloatArray, bounds: FloatArray) -> None:
        least_errors = rank_errors.min(axis=0)
        # The smallest error at this v or at any larger one, and where it is attained first.
        reachable_errors = np.minimum.accumulate(least_errors[::-1])[::-1]
        reachable_minimum_indices = np.flatnonzero(least_errors == reachable_errors)
        release_indices = reachable_minimum_indices[
            np.searchsorted(reachable_minimum_indices, np.arange(v.size))
        ]
        self._v, self._release_v, self._least_errors = v, v[release_indices], reachable_errors
        self._best_bounds = bounds[rank_errors.argmin(axis=0)[release_indices]]

    @property
    def floor(self) -> float:
        """Return the least squared error on the whole grid of v."""
        return float(self._least_errors[0] ** 2)

    def _find_position(self, v: FloatArray) -> FloatArray:
        """Return the fractional index of each v on the logarithmic grid; beyond its ends that of the end."""
        grid_positions = np.interp(
            np.log(np.minimum(v, self._v[-1])), np.log(self._v), np.arange(self._v.size)
        )
        return np.asarray(grid_positions)

    def find_optimum(self, v: npt.ArrayLike) -> CurveOptimum:
        """Find the best bound at each v, with the least squared error and its slope.

        Errors are interpolated on the grid of v; beyond the grid, that of its end counts.
        """
        v = np.asarray(v, dtype=np.float64)
        grid_positions = self._find_position(v)
        # Errors are read between points by their logarithms, and an error of 0 has none.
        log_errors = np.log(np.maximum(self._least_errors, 1e-150))
        slopes_between = np.maximum(np.diff(self._least_errors**2) / np.diff(self._v), 0.0)
        return CurveOptimum(
            np.exp(2.0 * np.interp(grid_positions, np.arange(self._v.size), log_errors)),
            slopes_between[np.minimum(grid_positions.astype(np.int64), self._v.size - 2)],
            self._best_bounds[np.round(grid_positions).astype(np.int64)],
            np.full(v.shape, np.nan),
        )

    def find_release_v(self, v: float) -> float:
        """Return the v at which to release: a larger one than given if the line errs less there, else the given one."""
        index = int(np.ceil(self._find_position(np.array([v]))[0] - 1e-9))
        return max(v, float(self._release_v[index])) if self._release_v[index] > self._v[index] else v


LineCurve = TotalCurve | BoundCurve | RankCurve


def measure_squared_errors(curve: LineCurve, v: FloatArray) -> FloatArray:
    """Return the squared errors of the releases at each v, under the bounds that are best by the curve."""
    optimum = curve.find_optimum(v)
    if not isinstance(curve, BoundCurve) or curve.measure_release is None:
        return optimum.squared_errors
    finite_mask, squared_errors = np.isfinite(v), optimum.squared_errors.copy()
    squared_errors[finite_mask] = curve.measure_release(optimum.bounds[finite_mask], v[finite_mask])
    return squared_errors


def estimate_squared_errors(curve: LineCurve, v: FloatArray) -> FloatArray:
    """Estimate what `measure_squared_errors` returns, for searches that ask often: read between `RELEASE_VS`."""
    squared_errors = curve.find_optimum(v).squared_errors
    if not isinstance(curve, BoundCurve) or curve.measure_release is None:
        return squared_errors
    log_ratios = np.interp(np.log(v), np.log(RELEASE_VS), np.log(curve.release_ratios))
    return np.asarray(squared_errors * np.exp(log_ratios))


def list_caps(max_size: int, max_num_bounds: int = 2048) -> tuple[FloatArray, bool]:
    """List whole bounds from 1 to ``max_size``, all or log-spaced; and True if these are all.

    All are listed if they are at most ``max_num_bounds``.
    """
    if max_size <= max_num_bounds:
        return np.arange(1.0, max_size + 1.0), True
    return np.unique(np.round(build_log_grid(1.0, float(max_size), max_num_bounds))), False


def round_bounds(bounds: npt.ArrayLike) -> FloatArray:
    """Return the bounds on amounts rounded to four digits, ascending, without repetition.

    An exact one may be a single user's value.
    """
    return np.unique([float(f"{bound:.4g}") for bound in np.asarray(bounds, dtype=np.float64).tolist()])
