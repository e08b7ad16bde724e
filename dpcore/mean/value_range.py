"""The best range [L, U] to which the values of a table are clamped for a mean.

A user of s rows weighs u = min(h, s) / n_h, each of their rows w = u / s; t is the largest u. Values are clamped to
[L, U], and the noise is in proportion to t (U - L). The released mean differs from that of the table by the bias of
clamping, the bias of weighting, and noise. The error here adds the two biases without letting them cancel:

    f(L, U, h) = (|D| + a)^2 + kappa (U - L)^2,    a = sum w (L - y)_+ + sum w (y - U)_+,    kappa = 2 (t / epsilon)^2

for Laplace noise, with D the weighted mean minus the mean of the table, both before clamping. The minimum of the exact
error is useless: at L = U = the mean it is 0 and reveals the mean as a bound. At every other width some range has no
shift at all. The root of f is at least the root mean square error, and f is convex in (L, U) for given h.

**One path holds all optima.** a + lambda (U - L) is least at the lambda-quantiles by weight, from below and from above.
So the rows above U weigh as much as those below L, and the best range for given h is where lambda (|D| + a) = kappa (U
- L). Along the path the left side rises in lambda and the right side falls. Bisection finds it in the sorted values;
where the path jumps from one value to the next, an end lies between them, and a linear equation gives it. With L known
the same holds for U alone, and lambda = all the weight above L means U = L.

**Certificate.** With c = |D| + a + lambda (U - L) at the pair that was found, a >= c - |D| - lambda W at any width W;
f >= min over W of (c - lambda W)^2 + kappa W^2 = c^2 kappa / (lambda^2 + kappa).

**Over h as well.** n_h a and t rise in h, and D is monotone between two sizes. So on [h1, h2]
f >= min over (L, U) of (min |D| + (n_1 / n_2) a_1)^2 + kappa_1 (U - L)^2 with a and kappa at h1, which the same search
solves: branch and bound.

The module is ours; the condition on the rows above U is that of Amin et al. 2019, equation 6, for values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import MAX_SIZE, FloatArray, IntArray, sum_suffixes
from dpcore.dataset import Values
from dpcore.mean.threshold_search import search_thresholds
from dpcore.mean.user_sums import sum_prefixes

_MAX_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class ValueRangeProblem:
    """The problem of clamping the values of a table for a mean with epsilon-DP; the solution is as private as they are.

    Attributes:
        values: One value per row, sorted by user.
        epsilon: Privacy budget of the release.
        relative_noise: kappa / t^2, as `dpcore.mean.MeanProblem.relative_noise`; None for Laplace noise.

    Raises:
        InvalidInput: epsilon is out of its range.
    """

    values: Values
    epsilon: float
    relative_noise: float | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.of_kind(Values, values=self.values)
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if self.relative_noise is not None:
                problems.positive(relative_noise=self.relative_noise)

    @property
    def unit_deviation(self) -> float:
        """Return the standard deviation of the noise for a range of width 1 if one user holds all the weight."""
        return math.sqrt(2.0 / self.epsilon**2 if self.relative_noise is None else self.relative_noise)

    @cached_property
    def mean(self) -> float:
        """Return the mean of all rows, in the values' unit."""
        return float(self.values.weigh(self.values.values).sum()) / self.values.num_rows

    @cached_property
    def _sizes_of_entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the distinct sizes, the number of users of each, and for every value the index of its user's size."""
        values = self.values
        sizes, size_indices, num_users_per_size = np.unique(
            values.rows_per_user, return_inverse=True, return_counts=True
        )
        entries_per_user = np.diff(np.append(values.first_entries, values.values.size))
        return (
            sizes.astype(np.int64),
            num_users_per_size.astype(np.int64),
            np.repeat(size_indices, entries_per_user),
        )

    @property
    def sizes(self) -> IntArray:
        """Return the distinct numbers of rows per user, ascending, shape (K,)."""
        return self._sizes_of_entries[0]

    @cached_property
    def _sorted_values(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return the centred values in ascending order, and for each the index of its user's size and its rows.

        Values are centred so that shifts do not cancel.
        """
        order_by_value = np.argsort(self.values.values, kind="stable")
        num_rows = self.values.weigh(np.ones(order_by_value.size))[order_by_value]
        return (
            self.values.values[order_by_value] - self.mean,
            self._sizes_of_entries[2][order_by_value].astype(np.int32),
            num_rows,
        )

    @cached_property
    def _mean_sums_per_size(self) -> FloatArray:
        """Return the sum of the users' centred means for each distinct size, shape (K,)."""
        size_indices = self._sizes_of_entries[2]
        weighted_centred_values = self.values.weigh(self.values.values - self.mean)
        return np.bincount(size_indices, weighted_centred_values, self.sizes.size) / self.sizes

    def count_kept_rows(self, thresholds: npt.ArrayLike) -> FloatArray:
        """Return n_h, the number of kept rows; any shape."""
        h = np.asarray(thresholds, dtype=np.float64)[..., None]
        return np.asarray(np.minimum(h, self.sizes) @ self._sizes_of_entries[1].astype(np.float64))

    def compute_shifts(self, thresholds: npt.ArrayLike) -> FloatArray:
        """Return D, the weighted mean minus that of the table, both before clamping, in the values' unit; any shape."""
        h = np.asarray(thresholds, dtype=np.float64)
        return np.asarray(
            np.minimum(h[..., None], self.sizes) @ self._mean_sums_per_size / self.count_kept_rows(h)
        )

    def compute_noise_stds(self, thresholds: npt.ArrayLike) -> FloatArray:
        """Return the root of kappa, the standard deviation of the noise for a range of width 1; any shape."""
        h = np.minimum(np.asarray(thresholds, dtype=np.float64), float(self.sizes[-1]))
        return np.asarray(self.unit_deviation * h / self.count_kept_rows(h))


@dataclass(frozen=True)
class RangeParts:
    """The parts of the error of ranges, in the values' unit.

    Attributes:
        clamping: a, the bias of clamping.
        bounding: |D|, the bias of weighting users.
        noise: Standard deviation of the noise.
    """

    clamping: FloatArray
    bounding: FloatArray
    noise: FloatArray

    @property
    def error(self) -> FloatArray:
        """Return the root of f, the total error: both biases added up, and the noise."""
        return np.asarray(np.hypot(self.clamping + self.bounding, self.noise))


@dataclass(frozen=True)
class RangeChoice:
    """A range with the parts of its error: the best one, or one that is compared with it.

    Attributes:
        lower: L, in the values' unit.
        upper: U.
        threshold: h, in rows per user.
        clamping: The bias of clamping, in the values' unit.
        bounding: The bias of weighting users.
        noise: Standard deviation of the noise.
        error: Root of f, the total error.
        certificate: The error and a lower bound, for every range at this h, or for every h as well.
    """

    lower: float
    upper: float
    threshold: float
    clamping: float
    bounding: float
    noise: float
    error: float
    certificate: Certificate

    @property
    def is_wide(self) -> bool:
        """Return True if the range is wider than rounding, so that it holds more than a single value."""
        return self.upper - self.lower > 1e-9 * max(abs(self.lower), abs(self.upper))


class WeightedRows:
    """The rows at one threshold h in the order of their values, with the total weight below and above each.

    Args:
        problem: The question.
        threshold: h, at least 1 row per user.

    Raises:
        InvalidInput: h is out of its range.
    """

    def __init__(self, problem: ValueRangeProblem, threshold: float) -> None:
        """Weigh the rows at this threshold, and sum weights and weighted values in the order of the values."""
        with Problems() as problems:
            problems.between(1.0, MAX_SIZE, threshold=threshold)
        self.problem, self.threshold = problem, float(threshold)
        self.values, num_distinct_up_to, num_rows = problem._sorted_values
        self.kept_rows = float(problem.count_kept_rows(threshold))
        row_weights = (np.minimum(threshold, problem.sizes) / problem.sizes / self.kept_rows)[
            num_distinct_up_to
        ] * num_rows
        weighted_values = row_weights * self.values
        # Weight of the first i rows and of the last n - i rows, in separate sums: a difference would cancel.
        self._weights_below, self._weights_above = sum_prefixes(row_weights), sum_suffixes(row_weights)
        self._sums_below, self._sums_above = sum_prefixes(weighted_values), sum_suffixes(weighted_values)
        self.bounding = abs(float(problem.compute_shifts(threshold)))
        self.noise = float(problem.compute_noise_stds(threshold))

    def sum_cuts_below(self, lowers: npt.ArrayLike) -> FloatArray:
        """Return sum w (L - y)_+ for centred lower ends, any shape."""
        centred_lowers = np.asarray(lowers, dtype=np.float64)
        num_values_below = np.searchsorted(self.values, centred_lowers, side="left")
        return np.maximum(
            centred_lowers * self._weights_below[num_values_below] - self._sums_below[num_values_below], 0.0
        )

    def sum_cuts_above(self, uppers: npt.ArrayLike) -> FloatArray:
        """Return sum w (y - U)_+ for centred upper ends, any shape."""
        centred_uppers = np.asarray(uppers, dtype=np.float64)
        num_values_up_to = np.searchsorted(self.values, centred_uppers, side="right")
        return np.maximum(
            self._sums_above[num_values_up_to] - centred_uppers * self._weights_above[num_values_up_to], 0.0
        )

    def compute_error_parts(self, lowers: npt.ArrayLike, uppers: npt.ArrayLike) -> RangeParts:
        """Return the parts of the error of ranges in the values' unit; L and U broadcast."""
        lowers, uppers = np.asarray(lowers, dtype=np.float64), np.asarray(uppers, dtype=np.float64)
        clamping = self.sum_cuts_below(lowers - self.problem.mean) + self.sum_cuts_above(
            uppers - self.problem.mean
        )
        bounding, noise = np.full(clamping.shape, self.bounding), np.asarray(self.noise * (uppers - lowers))
        return RangeParts(clamping, bounding, noise)

    def build_choice(self, lower: float, upper: float, squared_lower_bound: float) -> RangeChoice:
        """Return the range from ``lower`` to ``upper`` as a `RangeChoice`, with the parts of its error.

        ``squared_lower_bound`` is a lower bound on the error of every range at this threshold.
        """
        range_parts = self.compute_error_parts(lower, upper)
        clamping, bounding, noise = map(float, vars(range_parts).values())
        error = float(range_parts.error)
        certificate = Certificate(
            error, min(squared_lower_bound, error), "every range at this bound is covered"
        )
        return RangeChoice(lower, upper, self.threshold, clamping, bounding, noise, error, certificate)

    def compute_weight_share_above(self, centred_end: float) -> float:
        """Return the share of all weight of the rows whose centred value is above ``centred_end``."""
        return float(self._weights_above[np.searchsorted(self.values, centred_end, side="right")])

    def compute_weight_share_below(self, centred_end: float) -> float:
        """Return the share of all weight of the rows whose centred value is below ``centred_end``."""
        return float(self._weights_below[np.searchsorted(self.values, centred_end, side="left")])

    def find_range_at_quantile(self, tail_weight: float, fixed_lower: float | None) -> tuple[float, float]:
        """Return centred L and U with at most this weight below L and above U.

        If L is fixed (not None), it is returned as it is, and only U is chosen, at least L.
        """
        last_index = self.values.size - 1
        num_below, num_above = (
            min(int(np.searchsorted(cumulated_weights[1:], tail_weight, side="left")), last_index)
            for cumulated_weights in (self._weights_below, self._weights_above[::-1])
        )
        centred_lower = float(self.values[num_below]) if fixed_lower is None else fixed_lower
        return centred_lower, max(float(self.values[last_index - num_above]), centred_lower)


def _solve_range(
    weighted_rows: WeightedRows, bounding: float, clamping_factor: float, fixed_lower: float | None
) -> tuple[float, float, float, float]:
    """Minimise f = (bounding + clamping_factor a)^2 + kappa W^2 over (L, U), or over U if ``fixed_lower`` is a number.

    Returns centred L and U, f there, and a lower bound on f over all such ranges.

    The optimum lies on the path of the module. Step 1 bisects the weight lambda beyond the ends; step 2 moves the ends
    within the last jump of the path; step 3 takes the best of the tangent bounds.
    """
    kappa = weighted_rows.noise**2

    def evaluate(cut_weight: float) -> tuple[float, float, float]:
        """Return centred L and U that cut off ``cut_weight`` at either end, and the condition there.

        The condition is lambda (bounding + clamping) - kappa W, with lambda = clamping_factor weight.
        """
        low_end, high_end = weighted_rows.find_range_at_quantile(cut_weight, fixed_lower)
        return (
            low_end,
            high_end,
            clamping_factor * cut_weight * (bounding + compute_clamping(low_end, high_end))
            - kappa * (high_end - low_end),
        )

    def compute_clamping(low_end: float, high_end: float) -> float:
        """Return the bias of clamping to a centred range, multiplied by the factor."""
        return clamping_factor * float(
            weighted_rows.sum_cuts_below(low_end) + weighted_rows.sum_cuts_above(high_end)
        )

    # All weights sum to 1: with half of it beyond either end, L and U meet at the median.
    max_weight = 0.5 if fixed_lower is None else weighted_rows.compute_weight_share_above(fixed_lower)
    low_weight, high_weight = 0.0, max_weight
    # Step 1. Invariant: the condition is negative at the left weight and non-negative at the right one. It rises in the
    # weight, as more is cut off and the width shrinks.
    for _ in range(_MAX_HALVINGS):
        middle_weight = 0.5 * (low_weight + high_weight)
        if not low_weight < middle_weight < high_weight:
            break
        if evaluate(middle_weight)[2] < 0.0:
            low_weight = middle_weight
        else:
            high_weight = middle_weight
    low_end, high_end, _ = evaluate(max(low_weight, math.ulp(0.0)))
    range_width, slope = high_end - low_end, clamping_factor * high_weight
    # Step 2. At this weight one end may move up to the next point of the path; at the full weight, up to the other end.
    inner_low_end, inner_high_end, _ = evaluate(high_weight)
    if high_weight >= max_weight:
        inner_low_end = inner_high_end = high_end if fixed_lower is None else low_end
    # Up to there each unit of width less cuts off `slope` more: the objective is a quadratic in the step.
    width_decrease = (kappa * range_width - slope * (bounding + compute_clamping(low_end, high_end))) / (
        slope**2 + kappa
    )
    width_decrease = min(max(width_decrease, 0.0), range_width - max(inner_high_end - inner_low_end, 0.0))
    lower_rise = min(width_decrease, max(inner_low_end - low_end, 0.0)) if fixed_lower is None else 0.0
    low_end, high_end = (
        low_end + lower_rise,
        max(high_end - (width_decrease - lower_rise), low_end + lower_rise),
    )
    summed_bias = bounding + compute_clamping(low_end, high_end)
    squared_error = summed_bias**2 + kappa * (high_end - low_end) ** 2
    # Step 3. Any lambda gives a bound; that of the equation at this point is the best if the point is inside a jump.
    lower_bounds = []
    tail_weights = {high_weight, low_weight}
    if summed_bias > 0.0:
        tail_weights.add(kappa * (high_end - low_end) / (clamping_factor * summed_bias))
    for tail_weight in tail_weights:
        if 0.0 < tail_weight <= max_weight:
            *best_ends, _ = evaluate(tail_weight)
            tangent_slope = clamping_factor * tail_weight
            tangent_intercept = (
                bounding + compute_clamping(*best_ends) + tangent_slope * (best_ends[1] - best_ends[0])
            )
            # The minimum of (height - tangent_slope W)^2 + kappa W^2 over all widths W.
            lower_bounds.append(tangent_intercept**2 * kappa / (tangent_slope**2 + kappa))
    return low_end, high_end, squared_error, min(max(lower_bounds, default=0.0), squared_error)


def find_best_range(problem: ValueRangeProblem, threshold: float, lower: float | None = None) -> RangeChoice:
    """Return the best range at one threshold, or the best U for a fixed L.

    Args:
        problem: The question.
        threshold: h, at least 1 row per user.
        lower: L if it is fixed; None to choose both ends.

    Returns:
        `RangeChoice`; its certificate covers every range with this L, or every range, at this h.

    Raises:
        InvalidInput: h is out of its range, or no value lies above L, or all values are the same.
    """
    return _find_best_choice(WeightedRows(problem, threshold), _check_lower(problem, lower))


def _check_lower(problem: ValueRangeProblem, lower: float | None) -> float | None:
    """Return L less the mean of the values, or None for None; raise InvalidInput if no range can be best."""
    centred_values = problem._sorted_values[0]
    if lower is None:
        if centred_values[0] == centred_values[-1]:
            raise refuse("all values are the same, so that no range can be told from another")
        return None
    with Problems() as problems:
        problems.between(-1e300, 1e300, lower=lower)
    if centred_values[-1] <= lower - problem.mean:
        raise refuse("no value lies above L", remedy="Enter a lower L")
    return lower - problem.mean


def _find_best_choice(weighted_rows: WeightedRows, fixed_lower: float | None) -> RangeChoice:
    """Return the best range at the rows' threshold; ``fixed_lower`` is a centred L, or None to choose both ends."""
    low_end, high_end, _, squared_lower_bound = _solve_range(
        weighted_rows, weighted_rows.bounding, 1.0, fixed_lower
    )
    values_mean = weighted_rows.problem.mean
    return weighted_rows.build_choice(
        low_end + values_mean, high_end + values_mean, math.sqrt(squared_lower_bound)
    )


def find_best_joint(
    problem: ValueRangeProblem, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> RangeChoice:
    """Return the best range and threshold together, by branch and bound over h.

    Args:
        problem: The question.
        progress: Called with the share of the passes over the rows that is done.
        should_stop: Called after every pass; True ends the search with its present gap.

    Returns:
        `RangeChoice`; its certificate covers every range and every h from 1.

    Raises:
        InvalidInput: As `find_best_range`.
    """
    _check_lower(problem, None)
    build_weighted_rows = lru_cache(maxsize=1)(lambda threshold: WeightedRows(problem, threshold))
    choices_by_threshold: dict[float, RangeChoice] = {}

    def solve_threshold(threshold: float) -> float:
        """Return the error of the best range at one threshold, and keep that range."""
        choices_by_threshold[threshold] = _find_best_choice(build_weighted_rows(threshold), None)
        return choices_by_threshold[threshold].error

    def bound_cell(min_threshold: float, max_threshold: float) -> float:
        """Return a lower bound on the error of every range at every h from ``min_threshold`` on."""
        shifts = problem.compute_shifts(
            np.r_[
                min_threshold,
                problem.sizes[(problem.sizes > min_threshold) & (problem.sizes < max_threshold)],
                max_threshold,
            ]
        )
        # D is monotone between two sizes: its smallest magnitude is at an end, at a size inside, or 0 if its sign
        # changes.
        least_abs_shift = 0.0 if shifts.min() <= 0.0 <= shifts.max() else float(np.abs(shifts).min())
        clamping_factor = build_weighted_rows(min_threshold).kept_rows / float(
            problem.count_kept_rows(max_threshold)
        )
        return math.sqrt(
            _solve_range(build_weighted_rows(min_threshold), least_abs_shift, clamping_factor, None)[3]
        )

    threshold, cells_lower_bound = search_thresholds(
        problem.sizes, solve_threshold, bound_cell, progress, should_stop
    )
    range_choice = choices_by_threshold[threshold]
    lower_bound = min(cells_lower_bound, range_choice.certificate.lower_bound)
    certificate_argument = "every range and, by intervals, every bound on rows is covered"
    return replace(
        range_choice, certificate=Certificate(range_choice.error, lower_bound, certificate_argument)
    )
