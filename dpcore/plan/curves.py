"""The least squared error of a line at a given noise over all bounds, and the bound that has it.

Noise of scale b at sensitivity 1 has v = b^2. A bound h costs alpha(h) + beta(h) v with squares of bias and of
sampling in alpha and the variance of the noise in beta. The best over h is the least of many straight lines in
v: it never falls as v grows, and it is concave in v, whatever the data. The proof of a plan uses no other
property of a line. A quantile has no such form; `RankCurve` says so.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.total.nonnegative import round_to_few_digits

_MANY = 1024
"""Bounds of a list up to which its hull is made one by one."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best bounds at some v, each array of their shape.

    Attributes:
        squares: Least squared error.
        alpha: Its part that no noise is in.
        beta: The rest over v.
        bounds: The bound; of pairs the first one.
        seconds: The second one of pairs; NaN for others.
    """

    squares: FloatArray
    alpha: FloatArray
    beta: FloatArray
    bounds: FloatArray
    seconds: FloatArray


class Curve(Protocol):
    """The least squared error of a line."""

    @property
    def is_concave(self) -> bool:
        """Return True if the curve is concave in v, so that chords lie below it."""

    @property
    def floor(self) -> float:
        """Return the squared error without any noise."""

    def best(self, v: npt.ArrayLike) -> Optimum:
        """Find the best bounds at v > 0 (infinite for no budget at all), shape (k,)."""


def _sum_squares(alpha: FloatArray, beta: FloatArray, v: FloatArray) -> FloatArray:
    """Compute alpha + beta v, which is alpha at an infinite v if beta is 0."""
    return np.asarray(alpha + np.multiply(beta, v, out=np.zeros(np.shape(beta)), where=beta > 0.0))


@dataclass(frozen=True, eq=False)
class TotalCurve:
    """A sum of one total of at least 0 per user, each clipped at T: ((sum of the excess))^2 + variance T^2 v.

    Attributes:
        amounts: The totals.
        variance: Of the noise at scale 1: 2 for Laplace, 1 for Gaussian noise.
        is_integer: Whether T is whole, as a number of rows is.

    Source: Amin et al. 2019, section 3, for the release; the error is exact.
    """

    amounts: Amounts
    variance: float
    is_integer: bool = False
    is_concave: bool = True

    @property
    def floor(self) -> float:
        """Return 0: a bound above all totals cuts nothing."""
        return 0.0

    @cached_property
    def _bias_slopes(self) -> FloatArray:
        """Compute users above times excess over T at every total, which falls with T."""
        totals = self.amounts.values
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = self.amounts.users_above(totals) * self.amounts.excess(totals) / totals
        return np.asarray(np.where(totals > 0.0, slopes, np.inf))

    def best(self, v: npt.ArrayLike) -> Optimum:
        """Find the best bounds as in `Curve`: the piece by the sign of the slope, and T on it in closed form."""
        v_array = np.asarray(v, dtype=np.float64)
        totals, scaled_v = self.amounts.values, self.variance * v_array
        # Half the slope at T is variance v T - users above * excess: at the first total where it is not negative the
        # piece ends.
        piece = np.minimum(np.searchsorted(-self._bias_slopes, -scaled_v, side="left"), totals.size - 1)
        left_ends = np.where(piece > 0, totals[piece - 1], 0.0)
        users, total = self.amounts.users_above(left_ends), self.amounts.sum_above(left_ends)
        with np.errstate(invalid="ignore"):
            # On a piece the error is (sum above - users T)^2 + k T^2.
            bounds = np.where(np.isinf(scaled_v) | (users == 0.0), 0.0, users * total / (users**2 + scaled_v))
        bounds = np.clip(bounds, np.where(np.isinf(scaled_v), 0.0, left_ends), totals[piece])
        if self.is_integer:
            # The excess is convex and at least 0, and so is its square: the best whole bound is next to the best real
            # one.
            low, high = np.floor(bounds), np.ceil(bounds)
            bounds = np.where(self._evaluate(low, v_array) <= self._evaluate(high, v_array), low, high)
        alpha, beta = self.amounts.excess(bounds) ** 2, self.variance * bounds**2
        return Optimum(_sum_squares(alpha, beta, v_array), alpha, beta, bounds, np.full(bounds.shape, np.nan))

    def find_short_bound(self, bound: float, v: float) -> tuple[float, float]:
        """Find a best bound in few digits, as the exact one is often one user's total, and its squared error.

        Args:
            bound: The best T at v.
            v: Above 0, finite.
        """
        v_array = np.array([v])
        short_bound = (
            bound
            if self.is_integer
            else round_to_few_digits(bound, lambda bounds: np.sqrt(self._evaluate(bounds, v_array)))
        )
        return short_bound, float(self._evaluate(np.array([short_bound]), v_array)[0])

    def _evaluate(self, t: FloatArray, v: FloatArray) -> FloatArray:
        """Evaluate the squared error of bounds."""
        return _sum_squares(self.amounts.excess(t) ** 2, self.variance * t**2, v)


class BoundCurve:
    """A line with a list of bounds, each of which costs alpha + beta v.

    Args:
        alpha: Squared error without noise under each bound, shape (k,).
        beta: Variance of the noise at v = 1, likewise.
        bounds: The bounds, likewise.
        seconds: The second numbers of pairs; None where a bound is one number.
        has_all_bounds: Whether these are all bounds that there are.
    """

    is_concave = True

    def __init__(
        self,
        alpha: npt.ArrayLike,
        beta: npt.ArrayLike,
        bounds: npt.ArrayLike,
        seconds: npt.ArrayLike | None = None,
        has_all_bounds: bool = True,
    ) -> None:
        alpha_array, beta_array = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        bound_array = np.asarray(bounds, dtype=np.float64)
        second_bounds = (
            np.full(bound_array.shape, np.nan) if seconds is None else np.asarray(seconds, dtype=np.float64)
        )
        self.num_bounds, self.has_all_bounds = bound_array.size, has_all_bounds
        order = np.lexsort((alpha_array, beta_array))
        alpha_array, beta_array, bound_array, second_bounds = (
            alpha_array[order],
            beta_array[order],
            bound_array[order],
            second_bounds[order],
        )
        # A bound with more noise is kept only if it has less bias.
        candidates = np.flatnonzero(alpha_array < np.minimum.accumulate(np.r_[np.inf, alpha_array[:-1]]))
        candidates = self._drop_dominated(alpha_array, beta_array, candidates)
        hull: list[int] = []
        for i in candidates.tolist():
            while len(hull) > 1 and self._find_crossing(
                alpha_array, beta_array, hull[-2], i
            ) >= self._find_crossing(alpha_array, beta_array, hull[-2], hull[-1]):
                hull.pop()
            # Only corners of the lower hull of (beta, alpha) are best at some v. If, as v falls, the new line overtakes
            # the last but one no later than the last line does, the last is lowest nowhere.
            hull.append(i)
        self._alpha, self._beta, self._bounds, self._seconds = (
            alpha_array[hull],
            beta_array[hull],
            bound_array[hull],
            second_bounds[hull],
        )
        # v below which the next bound is better: descending, as beta ascends.
        self._crossings = np.array(
            [self._find_crossing(alpha_array, beta_array, i, j) for i, j in pairwise(hull)]
        )

    @staticmethod
    def _drop_dominated(a: FloatArray, b: FloatArray, candidates: IntArray) -> IntArray:
        """Drop bounds that their neighbours dominate, many at once, while there are many.

        A corner of the hull is better than any mix of two others, so none is dropped, whatever else is dropped
        at the same time.
        """
        while candidates.size > _MANY:
            crossing = -np.diff(a[candidates]) / np.diff(b[candidates])
            is_corner = np.r_[True, crossing[:-1] > crossing[1:], True]
            if is_corner.all():
                break
            candidates = candidates[is_corner]
        return candidates

    @staticmethod
    def _find_crossing(a: FloatArray, b: FloatArray, i: int, j: int) -> float:
        """Return the v at which two bounds are equally good."""
        return float((a[i] - a[j]) / (b[j] - b[i])) if b[j] > b[i] else math.inf

    @property
    def floor(self) -> float:
        """Return the least squared error without noise."""
        return float(self._alpha[-1])

    def best(self, v: npt.ArrayLike) -> Optimum:
        """Find the best bounds; see `Curve`."""
        v_array = np.asarray(v, dtype=np.float64)
        hull_index = np.searchsorted(-self._crossings, -v_array, side="left")
        hull_index = np.where(np.isinf(v_array), 0, hull_index)
        a, b = self._alpha[hull_index], self._beta[hull_index]
        return Optimum(_sum_squares(a, b, v_array), a, b, self._bounds[hull_index], self._seconds[hull_index])


class RankCurve:
    """A quantile: expected rank errors at some v, minimised over the candidate bounds, interpolated between them.

    They may fall as v grows: then the line is released with the larger v, which spends less than its share.

    Args:
        v: Ascending, shape (k,).
        errors: Expected rank error of each bound at each v, shape (bounds, k).
        bounds: The bounds.
    """

    is_concave = False

    def __init__(self, v: FloatArray, errors: FloatArray, bounds: FloatArray) -> None:
        self._v, self._bounds = v, bounds
        best_bounds = np.argmin(errors, axis=0)
        least_errors = errors[best_bounds, np.arange(v.size)]
        # From large v to small: the smallest error at this v or at any larger one.
        best_v_index = np.arange(v.size)
        for v_index in range(v.size - 2, -1, -1):
            if least_errors[best_v_index[v_index + 1]] < least_errors[v_index]:
                best_v_index[v_index] = best_v_index[v_index + 1]
        self._v_of_release, self._least_errors, self._best_bounds = (
            v[best_v_index],
            least_errors[best_v_index],
            best_bounds[best_v_index],
        )

    @property
    def floor(self) -> float:
        """Return the square at the smallest v."""
        return float(self._least_errors[0] ** 2)

    def stretch(self, v_factor: float) -> RankCurve:
        """Return the same errors, each at so many times its v."""
        rescaled = copy.copy(self)
        rescaled._v, rescaled._v_of_release = self._v * v_factor, self._v_of_release * v_factor
        return rescaled

    def _find_position(self, v: FloatArray) -> FloatArray:
        """Find the position of v on the logarithmic grid."""
        positions = np.interp(np.log(np.minimum(v, self._v[-1])), np.log(self._v), np.arange(self._v.size))
        return np.asarray(positions)

    def best(self, v: npt.ArrayLike) -> Optimum:
        """Find the best bounds as in `Curve`; beta is the local slope. No budget gives the error at the largest v."""
        v_array = np.asarray(v, dtype=np.float64)
        positions = self._find_position(v_array)
        low = np.minimum(np.floor(positions).astype(np.int64), self._v.size - 2)
        # Errors are read between points by their logarithms, and an error of 0 has none.
        squares = np.interp(
            positions, np.arange(self._v.size), np.log(np.maximum(self._least_errors, 1e-150))
        )
        squares = np.exp(2.0 * squares)
        slope = np.diff(self._least_errors**2) / np.diff(self._v)
        beta = np.maximum(slope[low], 0.0)
        nearest_index = np.minimum(np.round(positions).astype(np.int64), self._v.size - 1)
        with np.errstate(invalid="ignore"):
            alpha = squares - np.where(np.isinf(v_array), 0.0, beta * v_array)
        return Optimum(
            squares,
            alpha,
            beta,
            self._bounds[self._best_bounds[nearest_index]],
            np.full(v_array.shape, np.nan),
        )

    def find_v_of_release(self, v: float) -> float:
        """Find the v of the release: at least the given one, larger if that errs less."""
        low = int(np.ceil(self._find_position(np.array([v]))[0] - 1e-9))
        return max(v, float(self._v_of_release[low]) if self._v_of_release[low] > self._v[low] else v)


def list_caps(max_size: int, max_bounds: int = 2048) -> tuple[FloatArray, bool]:
    """List integer bounds up to ``max_size``: all if they are few, else log-spaced; and whether these are all."""
    if max_size <= max_bounds:
        return np.arange(1.0, max_size + 1.0), True
    return np.unique(np.round(log_spaced(1.0, float(max_size), max_bounds))), False


def round_bounds(bounds: npt.ArrayLike) -> FloatArray:
    """Round bounds on amounts to four digits, ascending and each once: an exact one may be a single user's value."""
    bound_array = np.asarray(bounds, dtype=np.float64)
    return np.unique(np.array([float(f"{bound:.4g}") for bound in bound_array.tolist()]))
