"""The error of a mean over bounds, its minimum, and the model in which only the counts of rows are known.

**Curves.** Between two neighbouring sizes every error of this package is (a + b h + d h^2) / n_h^2 + c with
n_h = S + q h, S the rows of the users below and q the users above. Its derivative has the sign of
(b S - 2 q a) + (2 d S - q b) h, which is linear in h. So a piece has one turning point at most, and between sizes and
turning points the error is monotone. The search evaluates every piece.

**Only counts.** The mean is that of the rows in this table; counts, sigma^2 and rho are known. The number of rows of
a user tells nothing about the values: users are exchangeable. Weights u then miss the mean of the table by an error
of variance sigma^2 sum_l (u_l - p_l)^2 / x_l, with p_l = s_l / n and the effective sizes x_l = s_l / (1 + (s_l - 1)
rho). A cap also draws rows:

    sigma^2 [rho sum_l (k_l / n_h - p_l)^2 + (1 - rho) (1 / n_h - 1 / n)],      k_l = min(h, s_l).

sigma^2 is the variance of the rows of the table with the divisor n - 1, so that at rho = 0 a cap is a sample of n_h
out of n rows without replacement. The best of all weights are u_l = min(t, p_l + nu x_l), by the conditions of
Karush, Kuhn and Tucker; ours.

`CountsOnly.find_best_smooth` finds them in three steps:

1. *Piece*: check the optimality condition in t at every size; the first size where it holds ends the piece.
2. *Point*: on that piece nu is linear in t, so the condition is a linear equation in t.
3. *Bound*: convert t back to a number of rows h by bisection, as t rises with h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, NumSizes
from dpcore.mean.user_sums import UserSums

EVERY_PIECE_ARGUMENT = "every piece between two neighbouring sizes was looked at, with its turning point"
MAX_BISECTIONS = 200
"""Most subdivisions of an interval; the ends are neighbouring float64 numbers long before."""
NUM_PROBES = 15
"""Bounds evaluated together within an interval; one call costs more than this many bounds in it."""


@dataclass(frozen=True)
class MeanError:
    """Expected squared error of the released mean, in its parts, at given bounds.

    Attributes:
        sampling_variance: Variance of the (weighted) mean before noise, (unit of the values)^2.
        privacy_variance: Variance of the noise, (unit of the values)^2.
        shift: Bias before noise with its sign, in the values' unit; 0 where it is not known.
    """

    sampling_variance: FloatArray
    privacy_variance: FloatArray
    shift: FloatArray = field(default_factory=lambda: np.zeros(()))

    @cached_property
    def squared_error(self) -> FloatArray:
        """Return the expected squared error, the sum of all parts with the shift squared."""
        return np.asarray(self.shift**2 + self.sampling_variance + self.privacy_variance)


@dataclass(frozen=True)
class BoundOptimum:
    """The best cap or the best threshold of a model.

    Attributes:
        bound: In rows per user; an integer for a cap.
        certificate: The squared error there and a lower bound for all caps or thresholds.
        stop_reason: Sentence on how the search ended.
    """

    bound: float
    certificate: Certificate
    stop_reason: str


@dataclass(frozen=True)
class Numerators:
    """Coefficients a, b, d of the numerators a + b h + d h^2 of an error, one for each of K - 1 pieces, shape (K - 1,).

    Piece k = 1 .. K - 1 holds the bounds from the size s_k to the size s_(k+1).

    Attributes:
        constant_terms: a.
        linear_terms: b.
        square_terms: d.
    """

    constant_terms: FloatArray
    linear_terms: FloatArray
    square_terms: FloatArray


@dataclass(frozen=True)
class BoundCurve:
    """An error over bounds from the smallest to the largest size.

    Attributes:
        histogram: Rows per user.
        compute_error: Function of bounds and of the numbers of sizes at or below them; returns the squared error,
            continuous.
        numerators: Numerators of the squared error, which give its turning points.
    """

    histogram: ContributionHistogram
    compute_error: Callable[[FloatArray, NumSizes], FloatArray]
    numerators: Numerators

    def compute_errors(self, bounds: FloatArray) -> FloatArray:
        """Return the squared error at any bounds, of their shape."""
        return self.compute_error(bounds, np.searchsorted(self.histogram.sizes, bounds, side="right"))

    @cached_property
    def _turning_points(self) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """Return the indices of the pieces inside which the squared error turns, and the bounds where it turns."""
        sizes = self.histogram.sizes.astype(np.float64)
        rows_below, users_above, _ = self.histogram.compute_sums_after(slice(1, -1))
        a, b, d = vars(self.numerators).values()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            turns = (2.0 * users_above * a - b * rows_below) / (2.0 * d * rows_below - users_above * b)
        piece_indices = np.flatnonzero((turns > sizes[:-1]) & (turns < sizes[1:]))
        return piece_indices, turns[piece_indices]

    @cached_property
    def _errors_at_sizes(self) -> FloatArray:
        """Return the squared error at each distinct size, shape (K,); it is computed block by block."""
        sizes = self.histogram.sizes
        squared_errors = np.empty(sizes.size)
        for size_slice in self.histogram.blocks:
            num_distinct_up_to = slice(size_slice.start + 1, size_slice.stop + 1)
            squared_errors[size_slice] = self.compute_error(
                sizes[size_slice].astype(np.float64), num_distinct_up_to
            )
        return squared_errors

    def _list_candidates(self, is_integer: bool) -> tuple[FloatArray, FloatArray]:
        """Return the bounds that may be best, and their squared errors.

        They are all sizes and all turning points; for integers, the two integers around each turning point.
        """
        sizes = self.histogram.sizes.astype(np.float64)
        piece_indices, turns = self._turning_points
        if is_integer:
            piece_indices = np.tile(piece_indices, 2)
            turns = np.concatenate((np.floor(turns), np.ceil(turns)))
            # Stay within the piece: at a size the next piece begins.
            turns = np.clip(turns, sizes[piece_indices], sizes[piece_indices + 1])
        # The error is continuous, so a point on the right end of a piece may count as inside the piece.
        squared_errors = np.concatenate((self._errors_at_sizes, self.compute_error(turns, piece_indices + 1)))
        return np.concatenate((sizes, turns)), squared_errors

    def minimise(self, is_integer: bool) -> BoundOptimum:
        """Return the bound from the smallest to the largest size with the least error; of equal ones, the smallest."""
        candidate_bounds, squared_errors = self._list_candidates(is_integer)
        least_error = float(squared_errors.min())
        best_bound = float(candidate_bounds[squared_errors == least_error].min())
        # The error turns at most once on a piece, so the best integer is among the candidates.
        lower_bound = least_error if is_integer else self.compute_lower_bound()
        certificate = Certificate(least_error, min(lower_bound, least_error), EVERY_PIECE_ARGUMENT)
        return BoundOptimum(
            best_bound, certificate, describe_trivial_search(self.histogram) or ALL_PIECES_REASON
        )

    def compute_lower_bound(self) -> float:
        """Return a lower bound on the squared error at all bounds: three values on each piece with a turning point.

        The error is a quadratic in 1 / n_h there, so its values at both ends and in the middle of 1 / n_h determine it.
        This check does not use the numerators that gave the turning points.
        """
        piece_indices, _ = self._turning_points
        least_error = float(self._errors_at_sizes.min())
        if not piece_indices.size:
            return least_error
        sizes = self.histogram.sizes.astype(np.float64)
        left_sizes, right_sizes = sizes[piece_indices], sizes[piece_indices + 1]
        rows_below, users_above, _ = self.histogram.compute_sums_after(piece_indices + 1)
        kept_rows_left, kept_rows_right = (
            rows_below + users_above * piece_ends for piece_ends in (left_sizes, right_sizes)
        )
        middle_bounds = (2.0 / (1.0 / kept_rows_left + 1.0 / kept_rows_right) - rows_below) / users_above
        middle_bounds = np.clip(middle_bounds, left_sizes, right_sizes)
        left_errors, right_errors = (self._errors_at_sizes[piece_indices + i] for i in (0, 1))
        middle_errors = self.compute_error(middle_bounds, piece_indices + 1)
        # The error is left_error + v (slope + v bend), with v linear in 1 / n_h from 0 at the left end to 1 at the
        # right.
        bends = 2.0 * (left_errors + right_errors - 2.0 * middle_errors)
        slopes = right_errors - left_errors - bends
        with np.errstate(divide="ignore", invalid="ignore"):
            vertices = np.clip(np.where(bends > 0.0, -slopes / (2.0 * bends), 0.0), 0.0, 1.0)
        return min(least_error, float((left_errors + vertices * (slopes + vertices * bends)).min()))

    def find_intervals_within(self, max_error: float, is_integer: bool) -> tuple[tuple[float, float], ...]:
        """Return all intervals of bounds on which the squared error is at most ``max_error``, ascending.

        Args:
            max_error: Squared error, at least the least one.
            is_integer: True if only integers are allowed; these begin at 1, as a cap may be below the smallest size.

        Returns:
            (lowest, highest) bound of each, both inside, to one unit (integers) or to rounding.
        """
        breakpoints = self._list_breakpoints(is_integer)
        within_mask = self.compute_errors(breakpoints) <= max_error
        change_indices = np.flatnonzero(np.diff(within_mask))
        stop_mask = within_mask[change_indices]
        left_bounds, right_bounds = breakpoints[change_indices], breakpoints[change_indices + 1]
        interval_ends = self._find_edges(left_bounds, right_bounds, stop_mask, max_error, is_integer)
        interval_starts = np.concatenate((breakpoints[:1][within_mask[:1]], interval_ends[~stop_mask]))
        interval_stops = np.concatenate((interval_ends[stop_mask], breakpoints[-1:][within_mask[-1:]]))
        # Intervals that touch are one; of integers, also those without an integer between them.
        apart_mask = interval_starts[1:] - interval_stops[:-1] > (1.0 if is_integer else 0.0)
        interval_starts = interval_starts[np.r_[True, apart_mask]]
        interval_stops = interval_stops[np.r_[apart_mask, True]]
        return tuple(zip(interval_starts.tolist(), interval_stops.tolist(), strict=True))

    def _list_breakpoints(self, is_integer: bool) -> FloatArray:
        """Return sorted bounds from the smallest size (1 for integers) on; between neighbours the error is monotone."""
        _, turns = self._turning_points
        if is_integer:
            turns = np.concatenate((np.floor(turns), np.ceil(turns), [1.0]))
        # Two sorted runs: a stable sort merges them.
        return np.sort(np.concatenate((self.histogram.sizes, np.sort(turns))), kind="stable")

    def _find_edges(
        self,
        left_bounds: FloatArray,
        right_bounds: FloatArray,
        left_within_mask: npt.NDArray[np.bool_],
        max_error: float,
        is_integer: bool,
    ) -> FloatArray:
        """Return, for pairs of a bound within the error limit and one beyond it, the last bound within it between them.

        Args:
            left_bounds: The smaller bound of each pair, shape (pairs,).
            right_bounds: The larger one.
            left_within_mask: True where the squared error at the smaller bound is at most ``max_error``.
            max_error: The limit on the squared error.
            is_integer: True if only integers are allowed.
        """
        inner_bounds = np.where(left_within_mask, left_bounds, right_bounds)
        outer_bounds = np.where(left_within_mask, right_bounds, left_bounds)
        probe_positions = np.arange(1.0, NUM_PROBES + 1.0) / (NUM_PROBES + 1.0)
        pair_indices = np.arange(inner_bounds.size)
        for _ in range(MAX_BISECTIONS):
            probe_bounds = inner_bounds[:, None] + (outer_bounds - inner_bounds)[:, None] * probe_positions
            if is_integer:
                probe_bounds = np.floor(probe_bounds)
            within_mask = self.compute_errors(probe_bounds.ravel()).reshape(probe_bounds.shape) <= max_error
            # With its two ends among the probes: the error is within the limit up to one of them and beyond it from the
            # next.
            ordered_bounds = np.column_stack((inner_bounds, probe_bounds, outer_bounds))
            last_index_within = np.where(within_mask.all(axis=1), NUM_PROBES, np.argmin(within_mask, axis=1))
            new_inner, new_outer = (ordered_bounds[pair_indices, last_index_within + i] for i in (0, 1))
            if np.array_equal(new_inner, inner_bounds) and np.array_equal(new_outer, outer_bounds):
                break
            inner_bounds, outer_bounds = new_inner, new_outer
        return inner_bounds


def find_interval_around(intervals: tuple[tuple[float, float], ...], bound: float) -> tuple[float, float]:
    """Return the interval that contains a bound, or (bound, bound) if rounding left it outside of all."""
    for interval_start, interval_stop in intervals:
        if interval_start <= bound <= interval_stop:
            return interval_start, interval_stop
    return bound, bound


ALL_PIECES_REASON = "Exact: the best of every piece between two sizes."


def describe_trivial_search(histogram: ContributionHistogram) -> str:
    """Return the sentence on a trivial search (one user, or one size); empty if there is something to search."""
    if histogram.num_users == 1:
        return "There is one user: every bound gives the same weights."
    if histogram.sizes.size == 1:
        return "All users have equally many rows: there is only one bound to choose."
    return ""


@dataclass(frozen=True)
class CountsModel:
    """A model of users of whom the numbers of rows, sigma^2 and rho are known, but no values.

    Attributes:
        histogram: Rows per user.
        unit_noise_variance: Variance of the noise if one user holds all the weight, (unit)^2.
        value_variance: sigma^2, (unit)^2.
        user_share: rho in [0, 1].
    """

    histogram: ContributionHistogram
    unit_noise_variance: float
    value_variance: float
    user_share: float


class CountsOnly(CountsModel):
    """The model of exchangeable users for the mean of this table."""

    @cached_property
    def _effective_sizes(self) -> FloatArray:
        """Return the effective size x of each distinct size, shape (K,)."""
        s = self.histogram.sizes.astype(np.float64)
        return np.asarray(s / (1.0 + (s - 1.0) * self.user_share))

    @cached_property
    def _user_sums(self) -> UserSums:
        """Return the sums over the users of the first k sizes and over all others, for k = 0 ..

        K.
        """
        return UserSums.from_histogram(self.histogram, self._effective_sizes)

    def _user_sums_at(self, h: FloatArray, num_distinct_up_to: NumSizes | None = None) -> UserSums:
        """Return the sums over the users at or below each bound, and above it.

        ``num_distinct_up_to`` is the number of sizes at or below each bound; None to look it up here.
        """
        size_indices = (
            np.searchsorted(self.histogram.sizes, h, side="right")
            if num_distinct_up_to is None
            else num_distinct_up_to
        )
        return self._user_sums.take(size_indices)

    def _weight_coefficients(self, h: FloatArray, user_sums: UserSums) -> tuple[FloatArray, FloatArray]:
        """Return nu and t at each h, so that users of h rows or more have the largest weight t.

        The weights are u_l = min(t, p_l + nu x_l), with p_l = s_l / n and the effective sizes x_l.

        All weights sum to 1, which gives nu as a quotient of positive terms, so that nothing cancels: the rows that a
        cap at h would cut, over n and sum_l min(x_l, x(h)).
        """
        rho, n = self.user_share, float(self.histogram.num_rows)
        effective_size = h / (1.0 + (h - 1.0) * rho)
        nu = (
            user_sums.sum_excess(h) / n / (user_sums.effective_below + user_sums.users_above * effective_size)
        )
        return np.asarray(nu), np.asarray(np.minimum(h, self.histogram.max_size) / n + nu * effective_size)

    def measure_smooth(self, thresholds: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error of the weights min(t, p + nu x) that are constant from h rows on."""
        h = np.asarray(thresholds, dtype=np.float64)
        user_sums = self._user_sums_at(h, num_distinct_up_to)
        n, rho = float(self.histogram.num_rows), self.user_share
        nu, t = self._weight_coefficients(h, user_sums)

        inverse_sum, share_sum = self._sum_inverse_sizes(user_sums)
        weighted_square_sum = (1.0 - rho) * user_sums.rows_above + rho * user_sums.squares_above
        # The sum over the users above of (t - p)^2 / x, as three terms; rounding can make it negative if t is near
        # every p.
        terms_above = np.maximum(t * (t * inverse_sum - 2.0 * share_sum) + weighted_square_sum / n**2, 0.0)
        sampling_variances = self.value_variance * (nu * (nu * user_sums.effective_below) + terms_above)
        return MeanError(np.asarray(sampling_variances), self.unit_noise_variance * t**2)

    def _sum_inverse_sizes(self, user_sums: UserSums) -> tuple[FloatArray, FloatArray]:
        """Return the sums of 1 / x and of p / x over the users above, with 1 / x = rho + (1 - rho) / s."""
        rho, users_above = self.user_share, user_sums.users_above
        share_sum = ((1.0 - rho) * users_above + rho * user_sums.rows_above) / float(self.histogram.num_rows)
        return (1.0 - rho) * user_sums.inverse_sizes_above + rho * users_above, share_sum

    def _weight_coefficients_at(self, threshold: float) -> tuple[float, float]:
        """Return nu and t of `_weight_coefficients` at one threshold."""
        h = np.asarray(float(threshold))
        nu, t = self._weight_coefficients(h, self._user_sums_at(h))
        return float(nu), float(t)

    def measure_capped(self, caps: FloatArray, num_distinct_up_to: NumSizes | None = None) -> MeanError:
        """Return the error of a cap that keeps at most h rows of each user, drawn at random."""
        h = np.asarray(caps, dtype=np.float64)
        user_sums = self._user_sums_at(h, num_distinct_up_to)
        n, rho = float(self.histogram.num_rows), self.user_share
        cut_shares = user_sums.sum_excess(h) / n  # 1 - n_h / n
        kept_rows = user_sums.rows_below + h * user_sums.users_above
        t = h / kept_rows
        # The sums of (k / n_h - p)^2 over the users above, and over those below.
        changes_of_squares_above = t * (t * user_sums.users_above - 2.0 * user_sums.rows_above / n)
        square_sum = np.maximum(changes_of_squares_above + user_sums.squares_above / n**2, 0.0)
        square_sum += user_sums.squares_below * (cut_shares / kept_rows) ** 2
        sampling_variances = self.value_variance * (rho * square_sum + (1.0 - rho) * cut_shares / kept_rows)
        return MeanError(np.asarray(sampling_variances), self.unit_noise_variance * t**2)

    @cached_property
    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        user_sums, rho, n = self._user_sums.between_sizes, self.user_share, float(self.histogram.num_rows)
        rows_below, value_variance = user_sums.rows_below, self.value_variance
        # The formula of the module and the noise, times n_h^2, without the constant sigma^2 (rho sum p^2 - (1 - rho) /
        # n).
        users_above, squares_below = user_sums.users_above, user_sums.squares_below
        cross_terms = user_sums.rows_above * rows_below + squares_below * users_above
        numerators = Numerators(
            value_variance * (rho * squares_below * (1.0 - 2.0 * rows_below / n) + (1.0 - rho) * rows_below),
            value_variance * ((1.0 - rho) * users_above - 2.0 * rho * cross_terms / n),
            self.unit_noise_variance
            + value_variance * rho * users_above * (1.0 - 2.0 * user_sums.rows_above / n),
        )
        return BoundCurve(self.histogram, lambda h, k: self.measure_capped(h, k).squared_error, numerators)

    def find_best_cap(self) -> BoundOptimum:
        """Return the best whole cap from the smallest to the largest size."""
        return self.cap_curve.minimise(is_integer=True)

    def compute_coefficients(self, threshold: float) -> tuple[float, float]:
        """Return the coefficients of `WeightGrowth` for the best weights below a threshold: n u_l = s_l + n nu x_l."""
        return 1.0, self._weight_coefficients_at(threshold)[0] * self.histogram.num_rows

    def find_best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with a dual bound."""
        threshold, max_size = self._solve_threshold(), float(self.histogram.max_size)
        lower_bound = self.unit_noise_variance * max(
            self.compute_lower_bound(threshold), self.compute_lower_bound(max_size)
        )
        certificate_argument = "a dual bound computed from the same data"
        certificate = Certificate(self._compute_exact_error(threshold), lower_bound, certificate_argument)
        stop_reason = (
            describe_trivial_search(self.histogram) or "Exact: the root of the optimality condition."
        )
        return BoundOptimum(threshold, certificate, stop_reason)

    def _compute_exact_error(self, h: float) -> float:
        """Return the squared error of the weights, summed over sizes; prefix sums lose digits where u is near p."""
        nu, t = self._weight_coefficients_at(h)
        sum_of_squares = 0.0
        for size_slice in self.histogram.blocks:
            x, users = self._effective_sizes[size_slice], self.histogram.users[size_slice]
            p = self.histogram.sizes[size_slice] / self.histogram.num_rows
            sum_of_squares += float((np.minimum(t - p, nu * x) ** 2 / x * users).sum())
        return self.value_variance * sum_of_squares + self.unit_noise_variance * t**2

    def _solve_threshold(self) -> float:
        """Return h at which t = A sum_l (nu - (t - p_l) / x_l)_+, the optimality condition; its sides cross once.

        The condition is checked at all sizes at once; on the piece where it changes, nu is linear in t.
        """
        sizes, a = self.histogram.sizes.astype(np.float64), self.value_variance / self.unit_noise_variance
        meets_condition = np.empty(sizes.size, dtype=bool)
        for size_slice in self.histogram.blocks:
            user_sums = self._user_sums.take(slice(size_slice.start + 1, size_slice.stop + 1))
            nu, t = self._weight_coefficients(sizes[size_slice], user_sums)
            inverse_sum, share_sum = self._sum_inverse_sizes(user_sums)
            meets_condition[size_slice] = t >= a * (nu * user_sums.users_above - t * inverse_sum + share_sum)
        # Step 1. Invariant: `meets_condition` is False before size k and True from it on; the optimum is in (k - 1, k].
        meets_condition[-1] = True  # No user lies above the largest size.
        k = int(np.argmax(meets_condition))
        if k == 0:
            return float(sizes[0])
        user_sums = self._user_sums.take(np.asarray(k))
        n, rho = float(self.histogram.num_rows), self.user_share
        inverse_total, share_total = map(float, self._sum_inverse_sizes(user_sums))
        users_above, share_above = float(user_sums.users_above), float(user_sums.rows_above) / n
        effective_below = float(user_sums.effective_below)
        # Step 2. As weights sum to 1, nu = (share_above - users_above t) / effective_below; the condition is then
        # linear in t.
        t_best = a * (users_above * share_above / effective_below + share_total)
        t_best /= 1.0 + a * (inverse_total + users_above**2 / effective_below)
        nu_best = max((share_above - users_above * t_best) / effective_below, 0.0)
        # Step 3. Solve h / n + nu h / (1 + (h - 1) rho) = t by bisection: the roots of the quadratic would cancel.
        # Invariant: the left side is below t at `size_below` and at least t at `size_above`.
        size_below, size_above = float(sizes[k - 1]), float(sizes[k])
        for _ in range(100):
            h = (size_below + size_above) / 2.0
            if h / n + nu_best * h / (1.0 + (h - 1.0) * rho) < t_best:
                size_below = h
            else:
                size_above = h
        return (size_below + size_above) / 2.0

    def compute_lower_bound(self, h: float) -> float:
        """Return a lower bound on the error of all weights, in units of the noise's variance; tight at the optimum.

        Lagrangian of  t^2 + A sum_l (u_l - p_l)^2 / x_l  with t >= u_l (multipliers lambda_l >= 0) and sum u = 1:
        minimising over t and u leaves  sum lambda p - (sum lambda)^2 / 4 - sum_l (mu - lambda_l)^2 x_l / (4 A).
        Take mu = 2 A nu and lambda_l = 2 A (nu - (t - p_l) / x_l)_+, and, where every user lies above h and
        sum lambda < 2 t, raise all of them until it is 2 t.
        """
        a, n = self.value_variance / self.unit_noise_variance, float(self.histogram.num_rows)
        nu, t = self._weight_coefficients_at(h)
        multiplier_sum = multiplier_share_sum = residual_cost = 0.0
        for size_slice in self.histogram.blocks:
            x, users = self._effective_sizes[size_slice], self.histogram.users[size_slice].astype(np.float64)
            p = self.histogram.sizes[size_slice] / n
            scaled_multipliers = np.maximum(nu - (t - p) / x, 0.0)
            residuals = nu - scaled_multipliers  # (mu - lambda) / (2 A)
            # Not a product of matrices: for so few terms its threads cost more than they save.
            multiplier_sum += 2.0 * a * float((users * scaled_multipliers).sum())
            multiplier_share_sum += 2.0 * a * float((users * scaled_multipliers * p).sum())
            residual_cost += a * float((users * residuals**2 * x).sum())
        if h <= float(self.histogram.min_size):
            missing_multiplier = max(2.0 * t - multiplier_sum, 0.0)
            multiplier_sum += missing_multiplier
            multiplier_share_sum += missing_multiplier / float(self.histogram.num_users)  # The sum of p is 1.
        return multiplier_share_sum - multiplier_sum**2 / 4.0 - residual_cost
