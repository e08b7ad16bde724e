"""The values of a table and its mean: summaries, differences between users, and exact errors.

The assumption of independent rows hides differences between users and the shift of the mean by bounding. Epasto et
al. 2020, section 2.2, take all rows as draws from one distribution. If users differ, weighting users differently
shifts the mean (Amin et al. 2019 is about that bias). These numbers measure the shift on the given values and are as
private as those.

The error of a release about the mean of the rows in this table is exact. User l has s_l rows, whose clamped values
have the mean c_l and the variance V_l (s_l - 1 below). A cap that keeps k_l = min(h, s_l) rows of each user, drawn
without replacement, misses the mean of the table by

    (sum_l k_l (c_l - y) / n_h)^2 + sum_l k_l (1 - k_l / s_l) V_l / n_h^2 + noise,      y the mean before clamping,

in mean square: the shift, the variance from drawing rows, and the noise. Smooth weights with the threshold h have the
same shift and draw no rows. Nothing is assumed about users.

Source: the variance of a sum of k out of s without replacement is k (1 - k / s) V, Cochran, *Sampling Techniques*
(1977), theorem 2.2; the draws of different users are independent. The rest follows by expansion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import require
from dpcore.contributions import ContributionHistogram, FloatArray, NumSizes, sum_suffixes
from dpcore.dataset import Dataset, Values
from dpcore.mean.models import BoundCurve, BoundOptimum, MeanError, Numerators
from dpcore.mean.user_sums import sum_prefixes


@dataclass(frozen=True)
class ClampedValues:
    """Values clamped to [lower, upper], summarised per user.

    Attributes:
        lower: L, in the values' unit.
        upper: U, in the values' unit.
        num_below: Rows with a value below L, raised to L.
        num_above: Rows with a value above U, lowered to U.
        variance: Sample variance of all clamped rows around their mean, (unit)^2, cut at (U - L)^2 / 4. 0 for a single
            row.
        mean: Mean of all clamped rows.
        sizes: Rows per user, shape (num_users,).
        user_means: Mean of each user's clamped rows, shape (num_users,).
        within_variances: Variance of each user's clamped rows, divisor size - 1, (unit)^2, shape (num_users,); 0 for a
            single row.
        unclamped_mean: Mean of all rows before clamping.
    """

    lower: float
    upper: float
    num_below: int
    num_above: int
    variance: float
    mean: float
    sizes: FloatArray
    user_means: FloatArray
    within_variances: FloatArray
    unclamped_mean: float


def clamp(values: Values, lower: float, upper: float) -> ClampedValues:
    """Clamp values to [lower, upper] and summarise them per user.

    Raises:
        InvalidInput: Bounds not finite or not in order.
    """
    require.ascending(**{"the lower value bound": lower, "the upper one": upper})
    if values.bins is not None:
        values.bins.refuse_range(lower, upper, float(values.values.min()), float(values.values.max()))
    clamped_entries, num_rows = np.clip(values.values, lower, upper), values.num_rows
    sizes = values.rows_per_user.astype(np.float64)
    user_means = values.sum_per_user(clamped_entries) / sizes
    entries_per_user = np.diff(np.append(values.first_entries, clamped_entries.size))
    within_distances = clamped_entries - np.repeat(user_means, entries_per_user)
    clamped_mean = float(values.weigh(clamped_entries).sum()) / num_rows
    # Rows of one entry scatter, too, unless all of them are clamped.
    variances = np.zeros(clamped_entries.shape)
    if values.standard_deviations is not None:
        variances = np.where(clamped_entries == values.values, values.standard_deviations**2, 0.0)
    sum_of_squares = float(values.weigh((clamped_entries - clamped_mean) ** 2 + variances).sum())
    # The mean may overflow; callers check that it is finite before they use it.
    with np.errstate(over="ignore", invalid="ignore"):
        unclamped_mean = float(values.weigh(values.values).sum()) / num_rows
    return ClampedValues(
        lower=lower,
        upper=upper,
        num_below=int(values.weigh(values.values < lower).sum()),
        num_above=int(values.weigh(values.values > upper).sum()),
        variance=min(sum_of_squares / max(num_rows - 1, 1), (upper - lower) ** 2 / 4.0),
        mean=clamped_mean,
        sizes=sizes,
        user_means=user_means,
        within_variances=values.sum_per_user(within_distances**2 + variances) / np.maximum(sizes - 1.0, 1.0),
        unclamped_mean=unclamped_mean,
    )


def compute_bounded_mean(clamped_values: ClampedValues, bounds: npt.ArrayLike) -> FloatArray:
    """Return the mean before noise if user l weighs min(h, s_l).

    It is the mean under smooth weights with threshold h. It is also the expected mean under a cap of h that keeps rows
    at random.

    Args:
        clamped_values: Values per user.
        bounds: h > 0 in rows per user, any shape.

    Returns:
        Means in the values' unit, float64, of the shape of ``bounds``.
    """
    h = np.asarray(bounds, dtype=np.float64)
    # Users in order of size, then prefix sums: no array of bounds times users.
    order_by_size = np.argsort(clamped_values.sizes, kind="stable")
    sizes, sorted_means = clamped_values.sizes[order_by_size], clamped_values.user_means[order_by_size]
    sums_below, mean_sums_above = sum_prefixes(sizes * sorted_means), sum_suffixes(sorted_means)
    rows_below, k = sum_prefixes(sizes), np.searchsorted(sizes, h, side="right")
    return np.asarray((sums_below[k] + h * mean_sums_above[k]) / (rows_below[k] + h * (sizes.size - k)))


@dataclass(frozen=True)
class UserShare:
    """The share of the variance of a row that lies between users, estimated from values.

    Attributes:
        estimate: The estimate, not clipped to [0, 1]; nan if it is undefined.
        low: Lower end of its 95 % interval by the jackknife, cut at 0.
        high: Upper end, cut at 1.
    """

    estimate: float
    low: float
    high: float

    @property
    def clipped_estimate(self) -> float:
        """Return the estimate clipped to [0, 1]."""
        return min(max(self.estimate, 0.0), 1.0)


def compute_size_slope(clamped_values: ClampedValues) -> float:
    """Return the t value of the slope of user means over the log of their numbers of rows; 0 if there is none.

    Each user's mean is regressed on the logarithm of their number of rows, with equal weights.

    Returns:
        Slope over its standard error, negative where users with more rows have lower values; 0 where all users have
        equally many rows, there are fewer than three, or all means are the same.
    """
    x, y = np.log(clamped_values.sizes), clamped_values.user_means
    x, y = x - x.mean(), y - y.mean()
    sum_of_squared_x = float(x @ x)
    if x.size < 3 or sum_of_squared_x <= 1e-12 * x.size:
        return 0.0
    slope = float(x @ y) / sum_of_squared_x
    residual_variance = float(((y - slope * x) ** 2).sum()) / (x.size - 2)
    # If the means lie on a line up to rounding, the scatter is set to the size of rounding.
    residual_variance = max(residual_variance, 1e-24 * float((clamped_values.user_means**2).sum()) / x.size)
    return slope / math.sqrt(residual_variance / sum_of_squared_x) if residual_variance > 0.0 else 0.0


NORMAL_QUANTILE_95 = 1.96


def estimate_user_share(clamped_values: ClampedValues) -> UserShare:
    """Return the intraclass correlation with an interval that leaves each user out in turn.

    One-way random-effects analysis of variance for unequal group sizes: with MSB and MSW the mean squares
    between and within users and n_0 = (n - sum s_l^2 / n) / (m - 1), it is
    (MSB - MSW) / (MSB + (n_0 - 1) MSW); nan if it is undefined (one user, or no user with two rows).

    The usual interval for normal values is several times too narrow where users differ in size and are not normal;
    that of the jackknife is about right (`tests/dpcore/mean/test_user_effects.py` measures both).

    Source: Miller 1974, "The jackknife: a review", Biometrika 61; the estimate is that of Searle, Casella and
        McCulloch, *Variance Components* (1992), section 3.6.
    """
    sizes, centred_means = clamped_values.sizes, clamped_values.user_means - clamped_values.mean
    centred_sums, within_squares = sizes * centred_means, clamped_values.within_variances * (sizes - 1.0)
    # The terms of each user in the sums of the analysis of variance: users, rows, squared sizes, distances from the
    # mean, and squares between and within users.
    user_terms = np.stack(
        (np.ones(sizes.size), sizes, sizes**2, centred_sums, centred_sums * centred_means, within_squares)
    )
    term_sums = user_terms.sum(axis=1)
    estimate = float(_compute_correlation(term_sums))
    if math.isnan(estimate):
        return UserShare(math.nan, math.nan, math.nan)
    left_out_estimates = _compute_correlation(term_sums[:, None] - user_terms)
    # It may be undefined without some users, for example if only one user has two rows.
    defined_estimates = left_out_estimates[~np.isnan(left_out_estimates)]
    m, jackknife_variance = sizes.size, math.inf
    if defined_estimates.size > 1:
        jackknife_variance = float(((defined_estimates - defined_estimates.mean()) ** 2).sum()) * (m - 1) / m
    half_width = NORMAL_QUANTILE_95 * math.sqrt(jackknife_variance)
    return UserShare(estimate, max(estimate - half_width, 0.0), min(estimate + half_width, 1.0))


def _compute_correlation(term_sums: FloatArray) -> FloatArray:
    """Return the intraclass correlation from the sums of `user_share`, shape (6, ...); nan if undefined."""
    m, n, squared_sizes, distance_sum, between_squares, within_squares = term_sums
    with np.errstate(divide="ignore", invalid="ignore"):
        # Re-centred from the mean of all rows to the mean of the remaining rows: a small step, so that little cancels.
        between_mean_square = np.maximum(between_squares - distance_sum**2 / n, 0.0) / (m - 1.0)
        within_mean_square = np.maximum(within_squares, 0.0) / (n - m)
        typical_size = (n - squared_sizes / n) / (m - 1.0)
        variance_sum = between_mean_square + (typical_size - 1.0) * within_mean_square
        ratios = np.where(variance_sum > 0.0, (between_mean_square - within_mean_square) / variance_sum, 0.0)
    return np.asarray(np.where((m >= 2.0) & (n > m), ratios, np.nan))


@dataclass(frozen=True, eq=False)
class TableValues:
    """The values of a table, summed over the users of each size.

    Attributes:
        histogram: Rows per user.
        distance_sums: Per size, the sum over its users of c_l - y, in the values' unit, shape (K,).
        variance_sums: Per size, the sum over its users of V_l, (unit)^2, shape (K,).
        clamping_shift: Mean of all clamped rows minus y: the shift by clamping alone, in the values' unit.
        mean_above_lower: y - L, in the values' unit.
    """

    histogram: ContributionHistogram
    distance_sums: FloatArray
    variance_sums: FloatArray
    clamping_shift: float
    mean_above_lower: float

    @classmethod
    def from_clamped(cls, histogram: ContributionHistogram, clamped_values: ClampedValues) -> TableValues:
        """Sum clamped values per size; the histogram must be that of the same rows."""
        size_indices = np.searchsorted(histogram.sizes, clamped_values.sizes)
        distances_from_mean = clamped_values.user_means - clamped_values.unclamped_mean
        with np.errstate(over="ignore"):  # `ValueSummary.has_finite_error` is checked before this is used.
            distance_sums, variance_sums = (
                np.asarray(np.bincount(size_indices, user_terms, histogram.sizes.size), dtype=np.float64)
                for user_terms in (distances_from_mean, clamped_values.within_variances)
            )
        clamping_shift = clamped_values.mean - clamped_values.unclamped_mean
        mean_above_lower = clamped_values.unclamped_mean - clamped_values.lower
        return cls(histogram, distance_sums, variance_sums, clamping_shift, mean_above_lower)

    # The sums below are at 0 .. K sizes at or below a bound; they do not depend on epsilon.
    @cached_property
    def row_distances_below(self) -> FloatArray:
        """Return the sum of s (c_l - y) over the users at or below 0 .. K sizes, shape (K + 1,)."""
        return sum_prefixes(self.histogram.sizes * self.distance_sums)

    @cached_property
    def distances_above(self) -> FloatArray:
        """Return the sum of c_l - y over the users above 0 .. K sizes, shape (K + 1,)."""
        return sum_suffixes(self.distance_sums)

    @cached_property
    def variances_above(self) -> FloatArray:
        """Return the sum of V_l over the users above 0 .. K sizes, shape (K + 1,)."""
        return sum_suffixes(self.variance_sums)

    @cached_property
    def row_variances_above(self) -> FloatArray:
        """Return the sum of V_l / s over the users above 0 .. K sizes, shape (K + 1,)."""
        return sum_suffixes(self.variance_sums / self.histogram.sizes)


@dataclass(frozen=True)
class KnownValues:
    """The model that uses the values and assumes nothing about users.

    Attributes:
        table_values: The values, per size.
        unit_noise_variance: Variance of the noise if one user holds all the weight, (unit)^2.
    """

    table_values: TableValues
    unit_noise_variance: float

    def measure_smooth(self, thresholds: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error of smooth weights, which draw no rows: a user with s rows weighs min(h, s)."""
        _, kept_rows, shifts, t = self._measure_shifts(thresholds, num_distinct_up_to)
        return MeanError(np.zeros(kept_rows.shape), self.unit_noise_variance * t**2, shifts)

    def measure_capped(self, caps: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error of caps that keep at most h rows of each user, drawn at random."""
        k, kept_rows, shifts, t = self._measure_shifts(caps, num_distinct_up_to)
        variance_sums = self.table_values.variances_above[k] - caps * self.table_values.row_variances_above[k]
        sampling_variances = np.asarray(t * (np.maximum(variance_sums, 0.0) / kept_rows))
        return MeanError(sampling_variances, self.unit_noise_variance * t**2, shifts)

    def _measure_shifts(
        self, bounds: FloatArray, num_distinct_up_to: NumSizes | None
    ) -> tuple[NumSizes, FloatArray, FloatArray, FloatArray]:
        """Return four arrays by bound: number of sizes up to it, kept rows, shift, and t, the largest weight."""
        table_values = self.table_values
        k = (
            table_values.histogram.count_sizes_up_to(bounds)
            if num_distinct_up_to is None
            else num_distinct_up_to
        )
        rows_below, num_users_above, _ = table_values.histogram.compute_sums_after(k)
        kept_rows = rows_below + bounds * num_users_above
        shifts = (table_values.row_distances_below[k] + bounds * table_values.distances_above[k]) / kept_rows
        return k, kept_rows, np.asarray(shifts), np.asarray(bounds / kept_rows)

    @cached_property
    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        return self._curve(is_cap=True)

    def _curve(self, is_cap: bool) -> BoundCurve:
        """Return the curve of the error over the bound, of caps, or of smooth weights if ``is_cap`` is False."""
        table_values = self.table_values
        p, c = table_values.row_distances_below[1:-1], table_values.distances_above[1:-1]
        numerators = Numerators(p**2, 2.0 * p * c, c**2 + self.unit_noise_variance)
        if is_cap:
            # k (1 - k / s) V with k = h is h V - h^2 V / s.
            numerators.linear_terms[:] += table_values.variances_above[1:-1]
            numerators.square_terms[:] -= table_values.row_variances_above[1:-1]
        compute_error = self.measure_capped if is_cap else self.measure_smooth
        return BoundCurve(table_values.histogram, lambda h, k: compute_error(h, k).squared_error, numerators)

    def find_best_cap(self) -> BoundOptimum:
        """Return the best whole cap from the smallest to the largest size."""
        return self.cap_curve.minimise(is_integer=True)

    def find_best_smooth(self) -> BoundOptimum:
        """Return the best threshold, from the minimum of every piece."""
        return self._curve(is_cap=False).minimise(is_integer=False)

    def compute_coefficients(self, threshold: float) -> tuple[float, float]:
        """Return the coefficients of plain `WeightGrowth`: a user weighs the number of their rows."""
        return 1.0, 0.0


MAX_MEAN = 1e100
"""Largest magnitude of the mean before clamping for which the error is computed."""


@dataclass(frozen=True, eq=False)
class UserDeviations:
    """What users deviate from M, the middle of [L, U], clamped to T = h (U - L) / 2, for every h at once.

    A user of s rows whose mean lies d from M deviates by clamp(min(h, s) d, -T, T) = a min(h, e), with a = d clamped to
    half of the width, and e = s d / a. So sums over users are linear between sorted e (`dpcore.mean.clamped_users`).

    Attributes:
        histogram: Rows per user.
        growth_ends: e, in rows, ascending, shape (users,): the h from which on the deviation is constant.
        clamped_distances: a of the same users, in the values' unit.
        width: U - L.
        offset: M less the mean of the table.
        sizes: Rows of each user, shape (users,).
        distances: d of each user, in the same order.
        mean_row_cuts: Mean of what clamping each of their rows to [L, U] would cut.
    """

    histogram: ContributionHistogram
    growth_ends: FloatArray
    clamped_distances: FloatArray
    width: float
    offset: float
    sizes: FloatArray
    distances: FloatArray
    mean_row_cuts: FloatArray

    @classmethod
    def from_values(
        cls, histogram: ContributionHistogram, values: Values, clamped_values: ClampedValues
    ) -> UserDeviations:
        """Summarise the unclamped values per user; ``clamped_values`` has L, U, and the sizes of the same users."""
        lower, upper, sizes = clamped_values.lower, clamped_values.upper, clamped_values.sizes
        range_middle, width = (lower + upper) / 2.0, upper - lower
        # `ValueSummary.has_finite_error` is checked before this is used.
        with np.errstate(over="ignore", invalid="ignore"):
            distances = values.sum_per_user(values.values) / sizes - range_middle
            clamped_distances = np.clip(distances, -width / 2.0, width / 2.0)
            row_cuts = np.abs(values.values - np.clip(values.values, lower, upper))
            mean_row_cuts = values.sum_per_user(row_cuts) / sizes
            ones, is_off_middle = np.ones_like(distances), clamped_distances != 0.0
            growth_ends = sizes * np.divide(distances, clamped_distances, out=ones, where=is_off_middle)
        order_by_end, offset = np.argsort(growth_ends), range_middle - clamped_values.unclamped_mean
        sorted_arrays = growth_ends[order_by_end], clamped_distances[order_by_end]
        return cls(histogram, *sorted_arrays, width, offset, sizes, distances, mean_row_cuts)

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of a e over the users below, and of a over those above, shape (users + 1,)."""
        return sum_prefixes(self.clamped_distances * self.growth_ends), sum_suffixes(self.clamped_distances)

    def compute_error(
        self, thresholds: npt.ArrayLike, noise_variance: float, has_private_counts: bool
    ) -> MeanError:
        """Return the error about the mean of the table, with private counts by the delta method.

        Args:
            thresholds: h > 0 in rows per user, any shape.
            noise_variance: Variance of the noise at sensitivity 1.
            has_private_counts: True if the pair of sums is released; False if only the sum of deviations is.
        """
        h = np.asarray(thresholds, dtype=np.float64)
        sums_below, sums_above = self._sums
        k, kept_rows = np.searchsorted(self.growth_ends, h, side="right"), self.histogram.count_kept_rows(h)
        average_deviations = (sums_below[k] + h * sums_above[k]) / kept_rows
        squares = self.width**2 / 2.0 + 2.0 * average_deviations**2 if has_private_counts else self.width**2
        privacy_variances = np.asarray(noise_variance * (h / kept_rows) ** 2 * squares)
        return MeanError(np.zeros(h.shape), privacy_variances, np.asarray(self.offset + average_deviations))

    def sum_biases(self, threshold: float, clamps_users: bool) -> float:
        """Return the sum of two biases at h, as if they never cancelled: of weighting users, and of clamping.

        The second is that of clamping users' deviations if ``clamps_users``, else that of clamping each row.
        """
        weights = np.minimum(threshold, self.sizes)
        deviations, limit = weights * self.distances, threshold * self.width / 2.0
        cuts = np.maximum(np.abs(deviations) - limit, 0.0) if clamps_users else weights * self.mean_row_cuts
        sum_weights = float(weights.sum())
        return abs(self.offset + float(deviations.sum()) / sum_weights) + float(cuts.sum()) / sum_weights

    def count_cut(self, threshold: float) -> int:
        """Count the users whose deviation is clamped at this threshold."""
        far_mask = np.abs(self.clamped_distances) >= self.width / 2.0
        return int(np.count_nonzero(far_mask & (self.growth_ends > threshold)))

    def find_threshold(self, noise_variance: float, has_private_counts: bool) -> float:
        """Find the h between the smallest and the largest size with the least error, by grids that zoom in.

        The best of the grids' points is returned; nothing is proved.
        """
        sizes = self.histogram.sizes
        grid = np.unique(
            np.append(
                np.geomspace(sizes[0], sizes[-1], NUM_GRID_BOUNDS),
                sizes[:: sizes.size // NUM_GRID_BOUNDS + 1],
            )
        )
        for _ in range(NUM_ZOOMS):
            best_index = int(
                np.argmin(self.compute_error(grid, noise_variance, has_private_counts).squared_error)
            )
            threshold, nearby_bounds = grid[best_index], grid[max(best_index - 1, 0) : best_index + 2]
            grid = np.unique(
                np.append(np.linspace(nearby_bounds[0], nearby_bounds[-1], NUM_GRID_BOUNDS), threshold)
            )
        return float(threshold)


NUM_GRID_BOUNDS = 256
NUM_ZOOMS = 4
"""Grids of `UserDeviations.find_threshold`; the last one has steps of 1e-6 of h or less."""


@dataclass(frozen=True, eq=False)
class ValueSummary:
    """Values clamped to [L, U], summarised per user and per size.

    Attributes:
        clamped_values: The values per user.
        table_values: The same per size, for the error on this very table.
        user_deviations: What users deviate, where users are clamped in place of rows.
    """

    clamped_values: ClampedValues
    table_values: TableValues
    user_deviations: UserDeviations

    @classmethod
    def from_dataset(cls, dataset: Dataset, lower: float, upper: float) -> ValueSummary | None:
        """Summarise the values of a dataset, or return None if it has none.

        Raises:
            InvalidInput: Bounds not finite or not in order.
        """
        if dataset.values is None:
            return None
        clamped_values = clamp(dataset.values, lower, upper)
        histogram = dataset.histogram
        user_deviations = UserDeviations.from_values(histogram, dataset.values, clamped_values)
        return cls(clamped_values, TableValues.from_clamped(histogram, clamped_values), user_deviations)

    @property
    def has_finite_error(self) -> bool:
        """Return True if the error about this table's mean is finite; squares of a mean beyond 1e100 could overflow."""
        return abs(self.clamped_values.unclamped_mean) <= MAX_MEAN

    @cached_property
    def user_share(self) -> UserShare:
        """Return the share of the variance that lies between users, with its interval."""
        return estimate_user_share(self.clamped_values)

    @cached_property
    def size_slope(self) -> float:
        """Return the t value of the slope of user means over the logarithm of their sizes; 0 if there is no slope."""
        return compute_size_slope(self.clamped_values)
