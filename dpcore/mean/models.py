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

`CountsOnly.best_smooth` finds them in three steps:

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
from dpcore.contributions import ContributionHistogram, FloatArray, SizeIndex, excess_sums, suffix_sums

EVERY_PIECE = "every piece between two neighbouring sizes was looked at, with its turning point"
MAX_STEPS = 200
"""Most subdivisions of an interval; the ends are neighbouring float64 numbers long before."""
PROBES = 15
"""Bounds evaluated together within an interval; one call costs more than this many bounds in it."""


@dataclass(frozen=True)
class MeanError:
    """Expected squared error of the released mean, in its parts, at given bounds.

    Attributes:
        sampling_variance: Variance of the (weighted) mean before noise, (unit of the values)^2.
        privacy_variance: Variance of the Laplace noise, (unit of the values)^2.
        shift: Bias before noise with its sign, in the values' unit; 0 where it is not known.
    """

    sampling_variance: FloatArray
    privacy_variance: FloatArray
    shift: FloatArray = field(default_factory=lambda: np.zeros(()))

    @cached_property
    def variance(self) -> FloatArray:
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
class Pieces:
    """Coefficients a, b, d of the numerator on each piece z_(k-1) <= h <= z_k, k = 1 .. K - 1, of shape (K - 1,)."""

    constant: FloatArray
    linear: FloatArray
    square: FloatArray


@dataclass(frozen=True)
class BoundCurve:
    """An error over bounds from the smallest to the largest size.

    Attributes:
        histogram: Rows per user.
        error_after: Function of bounds and of the numbers of sizes at or below them; returns the error, continuous.
        pieces: Numerators of the error, which give its turning points.
    """

    histogram: ContributionHistogram
    error_after: Callable[[FloatArray, SizeIndex], FloatArray]
    pieces: Pieces

    def error(self, bounds: FloatArray) -> FloatArray:
        """Return the error at any bounds, of their shape."""
        return self.error_after(bounds, np.searchsorted(self.histogram.sizes, bounds, side="right"))

    @cached_property
    def _turning_points(self) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """Return the indices of pieces with a turning point inside, and those points."""
        sizes = self.histogram.sizes.astype(np.float64)
        sums = self.histogram.pieces_at_sizes()
        rows_below, users_above = sums.rows_at_or_below[:-1], sums.users_above[:-1]
        a, b, d = self.pieces.constant, self.pieces.linear, self.pieces.square
        slope = 2.0 * d * rows_below - users_above * b
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            point = (2.0 * users_above * a - b * rows_below) / slope
        inside = np.flatnonzero((point > sizes[:-1]) & (point < sizes[1:]))
        return inside, point[inside]

    @cached_property
    def _errors_at_sizes(self) -> FloatArray:
        sizes = self.histogram.sizes
        errors = np.empty(sizes.size)
        for block in self.histogram.blocks:
            index = slice(block.start + 1, block.stop + 1)
            errors[block] = self.error_after(sizes[block].astype(np.float64), index)
        return errors

    def _candidates(self, is_integer: bool) -> tuple[FloatArray, FloatArray]:
        """Return the candidates and their errors: sizes, and turning points (or the integers around them)."""
        sizes = self.histogram.sizes.astype(np.float64)
        pieces, point = self._turning_points
        if is_integer:
            pieces, point = np.tile(pieces, 2), np.concatenate((np.floor(point), np.ceil(point)))
            # Stay within the piece: at a size the next piece begins.
            point = np.clip(point, sizes[pieces], sizes[pieces + 1])
        # The error is continuous, so a point on the right end of a piece may count as inside the piece.
        errors = np.concatenate((self._errors_at_sizes, self.error_after(point, pieces + 1)))
        return np.concatenate((sizes, point)), errors

    def minimise(self, is_integer: bool) -> BoundOptimum:
        """Return the minimum from the smallest to the largest size; the smallest bound if several are equal."""
        candidates, values = self._candidates(is_integer)
        smallest = float(values.min())
        bound = float(candidates[values == smallest].min())
        # The error turns at most once on a piece, so the best integer is among the candidates.
        lower_bound = smallest if is_integer else self.lower_bound()
        stop_reason = trivial_stop_reason(self.histogram) or ALL_PIECES
        certificate = Certificate(smallest, min(lower_bound, smallest), EVERY_PIECE)
        return BoundOptimum(bound, certificate, stop_reason)

    def lower_bound(self) -> float:
        """Return a lower bound on the error at all bounds, from three values on every piece with a turning point.

        The error is a quadratic in 1 / n_h there, so its values at both ends and in the middle of 1 / n_h determine it.
        This check does not use the numerators that gave the turning points.
        """
        pieces, _ = self._turning_points
        lowest = float(self._errors_at_sizes.min())
        if not pieces.size:
            return lowest
        sizes = self.histogram.sizes.astype(np.float64)
        low, high = sizes[pieces], sizes[pieces + 1]
        sums = self.histogram.pieces_at_sizes()
        rows_below, users_above = sums.rows_at_or_below[pieces], sums.users_above[pieces]
        middle_rows = 2.0 / (1.0 / (rows_below + users_above * low) + 1.0 / (rows_below + users_above * high))
        first_error, last_error = self._errors_at_sizes[pieces], self._errors_at_sizes[pieces + 1]
        middle_error = self.error_after(
            np.clip((middle_rows - rows_below) / users_above, low, high), pieces + 1
        )
        # The error is first_error + v (slope + v bend), with v linear in 1 / n_h from 0 at the left end to 1 at the
        # right.
        bend = 2.0 * (first_error + last_error - 2.0 * middle_error)
        slope = last_error - first_error - bend
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.clip(np.where(bend > 0.0, -slope / (2.0 * bend), 0.0), 0.0, 1.0)
        return min(lowest, float((first_error + vertex * (slope + vertex * bend)).min()))

    def intervals_within(self, limit: float, is_integer: bool) -> tuple[tuple[float, float], ...]:
        """Return all intervals of bounds on which the error is at most ``limit``, ascending.

        Args:
            limit: At least the best value.
            is_integer: True if only integers are allowed; these begin at 1, as a cap may be below the smallest size.

        Returns:
            (lowest, highest) bound of each, both inside, to one unit (integers) or to rounding.
        """
        points = self._breakpoints(is_integer)
        is_fine = self.error(points) <= limit
        change = np.flatnonzero(np.diff(is_fine))
        is_stop = is_fine[change]
        edges = self._edges(points[change], points[change + 1], is_stop, limit, is_integer)
        begins = np.concatenate((points[:1][is_fine[:1]], edges[~is_stop]))
        stops = np.concatenate((edges[is_stop], points[-1:][is_fine[-1:]]))
        # Intervals that touch are one; of integers, also those without an integer between them.
        is_apart = begins[1:] - stops[:-1] > (1.0 if is_integer else 0.0)
        begins, stops = begins[np.r_[True, is_apart]], stops[np.r_[is_apart, True]]
        return tuple(zip(begins.tolist(), stops.tolist(), strict=True))

    def _breakpoints(self, is_integer: bool) -> FloatArray:
        """Return sorted bounds between neighbours of which the error is monotone."""
        _, point = self._turning_points
        if is_integer:
            point = np.concatenate((np.floor(point), np.ceil(point), [1.0]))
        # Two sorted runs: a stable sort merges them.
        return np.sort(
            np.concatenate((self.histogram.sizes.astype(np.float64), np.sort(point))), kind="stable"
        )

    def _edges(
        self,
        low: FloatArray,
        high: FloatArray,
        is_low_fine: npt.NDArray[np.bool_],
        limit: float,
        is_integer: bool,
    ) -> FloatArray:
        """Return the last bound within the limit between each pair of a bound within it and a bound beyond it."""
        inside, outside = np.where(is_low_fine, low, high), np.where(is_low_fine, high, low)
        shares = np.arange(1.0, PROBES + 1.0) / (PROBES + 1.0)
        rows = np.arange(inside.size)
        for _ in range(MAX_STEPS):
            probes = inside[:, None] + (outside - inside)[:, None] * shares
            if is_integer:
                probes = np.floor(probes)
            is_fine = self.error(probes.ravel()).reshape(probes.shape) <= limit
            # With its two ends among the probes: the error is within the limit up to one of them and beyond it from the
            # next.
            path = np.column_stack((inside, probes, outside))
            last_fine = np.where(is_fine.all(axis=1), PROBES, np.argmin(is_fine, axis=1))
            nearer, further = path[rows, last_fine], path[rows, last_fine + 1]
            if np.array_equal(nearer, inside) and np.array_equal(further, outside):
                break
            inside, outside = nearer, further
        return inside


def interval_around(intervals: tuple[tuple[float, float], ...], bound: float) -> tuple[float, float]:
    """Return the interval that contains a bound, or (bound, bound) if rounding left it outside of all."""
    for low, high in intervals:
        if low <= bound <= high:
            return low, high
    return bound, bound


ALL_PIECES = "Exact: the best of every piece between two sizes."


def trivial_stop_reason(histogram: ContributionHistogram) -> str:
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
        unit_noise: Variance of the noise if one user holds all the weight, (unit)^2.
        value_variance: sigma^2, (unit)^2.
        user_share: rho in [0, 1].
    """

    histogram: ContributionHistogram
    unit_noise: float
    value_variance: float
    user_share: float


class CountsOnly(CountsModel):
    """The model of exchangeable users for the mean of this table."""

    @cached_property
    def _effective(self) -> FloatArray:
        s = self.histogram.sizes.astype(np.float64)
        return np.asarray(s / (1.0 + (s - 1.0) * self.user_share))

    @cached_property
    def _sums(self) -> _BelowAboveSums:
        return _BelowAboveSums.from_histogram(self.histogram, self._effective)

    def _sums_at(self, h: FloatArray, size_index: SizeIndex | None = None) -> _BelowAboveSums:
        """Return the sums below and above bounds; ``size_index`` is the number of sizes at or below each, if known."""
        index = np.searchsorted(self.histogram.sizes, h, side="right") if size_index is None else size_index
        return self._sums.take(index)

    def _weight_coefficients(self, h: FloatArray, sums: _BelowAboveSums) -> tuple[FloatArray, FloatArray]:
        """Return nu and t of the weights u_l = min(t, p_l + nu x_l) that are constant from h rows on.

        All weights sum to 1, which gives nu as a quotient of positive terms, so that nothing cancels: the rows that a
        cap at h would cut, over n and sum_l min(x_l, x(h)).
        """
        rho, n = self.user_share, float(self.histogram.num_rows)
        worth = h / (1.0 + (h - 1.0) * rho)
        nu = sums.excess(h) / n / (sums.worth_below + sums.users * worth)
        return np.asarray(nu), np.asarray(np.minimum(h, self.histogram.max_size) / n + nu * worth)

    def smooth(self, thresholds: FloatArray, size_index: SizeIndex | None = None) -> MeanError:
        """Return the error of the weights min(t, p + nu x) that are constant from h rows on."""
        h = np.asarray(thresholds, dtype=np.float64)
        sums, n, rho = self._sums_at(h, size_index), float(self.histogram.num_rows), self.user_share
        nu, t = self._weight_coefficients(h, sums)
        # Sums of 1 / x, s / x and s^2 / x over the users above, with 1 / x = rho + (1 - rho) / s.
        inverse = (1.0 - rho) * sums.inverse + rho * sums.users
        rows = (1.0 - rho) * sums.users + rho * sums.rows
        squares = (1.0 - rho) * sums.rows + rho * sums.squares
        # The sum over the users above of (t - p)^2 / x, as three terms; rounding can make it negative if t is near
        # every p.
        terms_above = np.maximum(t * (t * inverse - 2.0 * rows / n) + squares / n**2, 0.0)
        sampling = self.value_variance * (nu * (nu * sums.worth_below) + terms_above)
        return MeanError(np.asarray(sampling), self.unit_noise * t**2)

    def _weight_coefficients_at(self, threshold: float) -> tuple[float, float]:
        h = np.asarray(float(threshold))
        nu, t = self._weight_coefficients(h, self._sums_at(h))
        return float(nu), float(t)

    def capped(self, caps: FloatArray, size_index: SizeIndex | None = None) -> MeanError:
        """Return the error of a cap that keeps at most h rows of each user, drawn at random."""
        h = np.asarray(caps, dtype=np.float64)
        sums, n, rho = self._sums_at(h, size_index), float(self.histogram.num_rows), self.user_share
        cut = sums.excess(h) / n  # 1 - n_h / n
        kept_rows = sums.rows_below + h * sums.users
        weight = h / kept_rows
        terms_above = weight * (weight * sums.users - 2.0 * sums.rows / n) + sums.squares / n**2
        uneven = sums.squares_below * (cut / kept_rows) ** 2 + np.maximum(terms_above, 0.0)
        sampling = self.value_variance * (rho * uneven + (1.0 - rho) * cut / kept_rows)
        return MeanError(np.asarray(sampling), self.unit_noise * weight**2)

    @cached_property
    def cap_curve(self) -> BoundCurve:
        """Return the curve of the error of caps over the bound."""
        sums, rho, n = self._sums.between_sizes, self.user_share, float(self.histogram.num_rows)
        rows_below, variance = sums.rows_below, self.value_variance
        # The formula of the module and the noise, times n_h^2, without the constant sigma^2 (rho sum p^2 - (1 - rho) /
        # n).
        crossed = sums.rows * rows_below + sums.squares_below * sums.users
        pieces = Pieces(
            variance * (rho * sums.squares_below * (1.0 - 2.0 * rows_below / n) + (1.0 - rho) * rows_below),
            variance * ((1.0 - rho) * sums.users - 2.0 * rho * crossed / n),
            self.unit_noise + variance * rho * sums.users * (1.0 - 2.0 * sums.rows / n),
        )
        return BoundCurve(self.histogram, lambda h, k: self.capped(h, k).variance, pieces)

    def best_cap(self) -> BoundOptimum:
        """Return the best cap."""
        return self.cap_curve.minimise(is_integer=True)

    def coefficients(self, threshold: float) -> tuple[float, float]:
        """Return the coefficients of `Growth` for the best weights below a threshold: n u_l = s_l + n nu x_l."""
        return 1.0, self._weight_coefficients_at(threshold)[0] * self.histogram.num_rows

    def best_smooth(self) -> BoundOptimum:
        """Return the best of all weights, with a dual bound."""
        bound = self._solve_threshold()
        value = self._exact_error(bound)
        stop_reason = trivial_stop_reason(self.histogram) or "Exact: the root of the optimality condition."
        lower = self.unit_noise * max(self.lower_bound(h) for h in (bound, float(self.histogram.max_size)))
        return BoundOptimum(
            bound, Certificate(value, lower, "a dual bound computed from the same data"), stop_reason
        )

    def _exact_error(self, h: float) -> float:
        """Return the squared error of the weights, summed over sizes; prefix sums lose digits where u is near p."""
        nu, t = self._weight_coefficients_at(h)
        squared_errors = 0.0
        for block in self.histogram.blocks:
            x, p = self._effective[block], self.histogram.sizes[block] / self.histogram.num_rows
            squared_errors += float((np.minimum(t - p, nu * x) ** 2 / x * self.histogram.users[block]).sum())
        return self.value_variance * squared_errors + self.unit_noise * t**2

    def _solve_threshold(self) -> float:
        """Return h at which t = A sum_l (nu - (t - p_l) / x_l)_+, the optimality condition; its sides cross once.

        The condition is checked at all sizes at once; on the piece where it changes, nu is linear in t.
        """
        sizes, a = self.histogram.sizes.astype(np.float64), self.value_variance / self.unit_noise
        is_reached = np.empty(sizes.size, dtype=bool)
        for block in self.histogram.blocks:
            sums_above = self._sums.take(slice(block.start + 1, block.stop + 1))
            nu, t = self._weight_coefficients(sizes[block], sums_above)
            is_reached[block] = t >= a * self._total_pull(sums_above, nu, t)
        # Step 1. Invariant: `is_reached` is False before size k and True from it on, so the optimum lies in (k - 1, k].
        is_reached[-1] = True  # No user lies above the largest size.
        k = int(np.argmax(is_reached))
        if k == 0:
            return float(sizes[0])
        sums, n, rho = self._sums.take(np.asarray(k)), float(self.histogram.num_rows), self.user_share
        users, rows = float(sums.users), float(sums.rows)
        inverse = (1.0 - rho) * float(sums.inverse) + rho * users
        leaning = ((1.0 - rho) * users + rho * rows) / n
        worth, share_above = float(sums.worth_below), rows / n  # 1 - sum of p below
        # Step 2. As weights sum to 1, nu = (share_above - users t) / worth; the condition is then linear in t.
        t_best = a * (users * share_above / worth + leaning) / (1.0 + a * (inverse + users**2 / worth))
        nu_best = max((share_above - users * t_best) / worth, 0.0)
        # Step 3. Solve h / n + nu h / (1 + (h - 1) rho) = t by bisection: the roots of the quadratic would cancel.
        # Invariant: the left side is below t at `low` and at least t at `high`.
        low, high = float(sizes[k - 1]), float(sizes[k])
        for _ in range(100):
            h = (low + high) / 2.0
            if h / n + nu_best * h / (1.0 + (h - 1.0) * rho) < t_best:
                low = h
            else:
                high = h
        return (low + high) / 2.0

    def _total_pull(self, sums_above: _BelowAboveSums, nu: FloatArray, t: FloatArray) -> FloatArray:
        """Return the sum over the users above of nu - (t - p) / x."""
        rho, n = self.user_share, float(self.histogram.num_rows)
        inverse = (1.0 - rho) * sums_above.inverse + rho * sums_above.users
        leaning = ((1.0 - rho) * sums_above.users + rho * sums_above.rows) / n
        return np.asarray(nu * sums_above.users - t * inverse + leaning)

    def lower_bound(self, h: float) -> float:
        """Return a lower bound on the error of all weights, in units of the noise's variance; tight at the optimum.

        Lagrangian of  t^2 + A sum_l (u_l - p_l)^2 / x_l  with t >= u_l (multipliers lambda_l >= 0) and sum u = 1:
        minimising over t and u leaves  sum lambda p - (sum lambda)^2 / 4 - sum_l (mu - lambda_l)^2 x_l / (4 A).
        Take mu = 2 A nu and lambda_l = 2 A (nu - (t - p_l) / x_l)_+, and, where every user lies above h and
        sum lambda < 2 t, raise all of them until it is 2 t.
        """
        a, n = self.value_variance / self.unit_noise, float(self.histogram.num_rows)
        nu, t = self._weight_coefficients_at(h)
        total = leaning = cost = 0.0
        for block in self.histogram.blocks:
            x, users = self._effective[block], self.histogram.users[block].astype(np.float64)
            p = self.histogram.sizes[block] / n
            pulls = np.maximum(nu - (t - p) / x, 0.0)
            residuals = nu - pulls  # (mu - lambda) / (2 A)
            # Not a product of matrices: for so few terms its threads cost more than they save.
            total += 2.0 * a * float((users * pulls).sum())
            leaning += 2.0 * a * float((users * pulls * p).sum())
            cost += a * float((users * residuals**2 * x).sum())
        if h <= float(self.histogram.min_size):
            missing = max(2.0 * t - total, 0.0)
            total += missing
            leaning += missing / float(self.histogram.num_users)  # The sum of p is 1.
        return leaning - total**2 / 4.0 - cost


@dataclass(frozen=True)
class _BelowAboveSums:
    """Sums over users below and above a bound; entry k of each array is for k sizes at or below the bound."""

    rows_below: FloatArray
    squares_below: FloatArray
    worth_below: FloatArray
    users: FloatArray
    rows: FloatArray
    squares: FloatArray
    inverse: FloatArray
    next_size: FloatArray
    excess_from: FloatArray

    @classmethod
    def from_histogram(cls, histogram: ContributionHistogram, worth: FloatArray) -> _BelowAboveSums:
        s, c = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)

        def prefix_sums(terms: FloatArray) -> FloatArray:
            return np.concatenate(([0.0], np.cumsum(terms)))

        rows = s * c
        squares = s * rows
        squares_below, worth_below = prefix_sums(squares), prefix_sums(worth * c)
        pieces = histogram.pieces_after(slice(None))  # The histogram keeps these three sums.
        return cls(
            pieces.rows_at_or_below,
            squares_below,
            worth_below,
            pieces.users_above,
            suffix_sums(rows),
            suffix_sums(squares),
            pieces.inverse_above,
            np.append(s, 0.0),  # After the last size there are no users above, so the value has no effect.
            excess_sums(s, pieces.users_above),
        )

    def excess(self, h: FloatArray) -> FloatArray:
        """Return the rows that a cap at h cuts; all terms have one sign, as in `ContributionHistogram.excess`."""
        return np.asarray((self.next_size - h) * self.users + self.excess_from)

    def take(self, k: SizeIndex) -> _BelowAboveSums:
        """Return the sums for the given numbers of sizes at or below."""
        return _BelowAboveSums(*(sums[k] for sums in vars(self).values()))

    @property
    def between_sizes(self) -> _BelowAboveSums:
        """Return the sums for every piece between two neighbouring sizes."""
        return self.take(slice(1, -1))
