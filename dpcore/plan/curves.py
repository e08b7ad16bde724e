"""What a line costs at a given noise: its least squared error over all bounds, and the bound that has it.

Noise of scale b at sensitivity 1 has v = b^2. A bound h costs alpha(h) + beta(h) v with squares of bias and of sampling
in alpha and the variance of the noise in beta. The best over h is the least of many straight lines in v: it never falls
as v grows, and it is concave in v, whatever the data. Nothing else of a line is used to prove a plan. A quantile has no
such form; `RankCurve` says so.
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
from dpcore.total.nonnegative import in_few_digits

_MANY = 1024
"""Bounds of a list up to which its hull is made one by one."""


@dataclass(frozen=True, eq=False)
class Best:
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
    def concave(self) -> bool:
        """Whether it is concave in v, so that chords lie below it."""

    @property
    def floor(self) -> float:
        """The squared error without any noise."""

    def best(self, v: npt.ArrayLike) -> Best:
        """At v > 0 (infinite for no budget at all), shape (k,)."""


def _squares(alpha: FloatArray, beta: FloatArray, v: FloatArray) -> FloatArray:
    """alpha + beta v, where no noise at all (beta 0) is worth nothing at an infinite v, too."""
    return np.asarray(alpha + np.multiply(beta, v, out=np.zeros(np.shape(beta)), where=beta > 0.0))


@dataclass(frozen=True, eq=False)
class TotalCurve:
    """A sum of one total of at least 0 per user, each cut at T: ((sum of what is cut))^2 + variance T^2 v.

    Attributes:
        amounts: The totals.
        variance: Of the noise at scale 1: 2 for Laplace, 1 for Gaussian noise.
        whole: Whether T is whole, as a number of rows is.

    Source: Amin et al. 2019, section 3, for the release; the error is exact.
    """

    amounts: Amounts
    variance: float
    whole: bool = False
    concave: bool = True

    @property
    def floor(self) -> float:
        """0: a bound above all totals cuts nothing."""
        return 0.0

    @cached_property
    def _turning(self) -> FloatArray:
        """users above times excess over T at every total: the pull of the bias on T, which falls with T."""
        x = self.amounts.values
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = self.amounts.users_above(x) * self.amounts.excess(x) / x
        return np.asarray(np.where(x > 0.0, pull, np.inf))

    def best(self, v: npt.ArrayLike) -> Best:
        """See `Curve`: the piece is found by the sign of the slope, and T on it in closed form."""
        at = np.asarray(v, dtype=np.float64)
        x, k = self.amounts.values, self.variance * at
        # Half the slope at T is variance v T - users above * excess: at the first total where it is not negative the
        # piece ends.
        j = np.minimum(np.searchsorted(-self._turning, -k, side="left"), x.size - 1)
        left = np.where(j > 0, x[j - 1], 0.0)
        users, total = self.amounts.users_above(left), self.amounts.sum_above(left)
        with np.errstate(invalid="ignore"):
            # On a piece the error is (sum above - users T)^2 + k T^2.
            t = np.where(np.isinf(k) | (users == 0.0), 0.0, users * total / (users**2 + k))
        t = np.clip(t, np.where(np.isinf(k), 0.0, left), x[j])
        if self.whole:
            # The excess is convex and at least 0, and so is its square: the best whole bound is next to the best real
            # one.
            low, high = np.floor(t), np.ceil(t)
            t = np.where(self._at(low, at) <= self._at(high, at), low, high)
        alpha, beta = self.amounts.excess(t) ** 2, self.variance * t**2
        return Best(_squares(alpha, beta, at), alpha, beta, t, np.full(t.shape, np.nan))

    def short(self, bound: float, v: float) -> tuple[float, float]:
        """A best bound in few digits, as the exact one is often one user's total, and the squared error there.

        Args:
            bound: The best T at v.
            v: Above 0, finite.
        """
        at = np.array([v])
        t = bound if self.whole else in_few_digits(bound, lambda bounds: np.sqrt(self._at(bounds, at)))
        return t, float(self._at(np.array([t]), at)[0])

    def _at(self, t: FloatArray, v: FloatArray) -> FloatArray:
        return _squares(self.amounts.excess(t) ** 2, self.variance * t**2, v)


class BoundCurve:
    """A line with a list of bounds, of which each costs alpha + beta v.

    Args:
        alpha: Squared error without noise under each bound, shape (k,).
        beta: Variance of the noise at v = 1, likewise.
        bounds: The bounds, likewise.
        seconds: The second numbers of pairs; None where a bound is one number.
        every: Whether these are all bounds that there are.
    """

    concave = True

    def __init__(
        self,
        alpha: npt.ArrayLike,
        beta: npt.ArrayLike,
        bounds: npt.ArrayLike,
        seconds: npt.ArrayLike | None = None,
        every: bool = True,
    ) -> None:
        a, b = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        h = np.asarray(bounds, dtype=np.float64)
        more = np.full(h.shape, np.nan) if seconds is None else np.asarray(seconds, dtype=np.float64)
        self.tried, self.every = h.size, every
        order = np.lexsort((a, b))
        a, b, h, more = a[order], b[order], h[order], more[order]
        # More noise for less bias only.
        kept = np.flatnonzero(a < np.minimum.accumulate(np.r_[np.inf, a[:-1]]))
        kept = self._few(a, b, kept)
        hull: list[int] = []
        for i in kept.tolist():
            while len(hull) > 1 and self._crossing(a, b, hull[-2], i) >= self._crossing(
                a, b, hull[-2], hull[-1]
            ):
                hull.pop()
            # Only corners of the lower hull of (beta, alpha) are best at some v. As v falls, the new line overtakes the
            # last but one no later than the last line does: then the last is lowest nowhere.
            hull.append(i)
        self._alpha, self._beta, self._bounds, self._seconds = a[hull], b[hull], h[hull], more[hull]
        # v below which the next bound is better: descending, as beta ascends.
        self._until = np.array([self._crossing(a, b, i, j) for i, j in pairwise(hull)])

    @staticmethod
    def _few(a: FloatArray, b: FloatArray, kept: IntArray) -> IntArray:
        """Drop bounds that those on either side make up for, many at once, while there are many.

        A corner of the hull is better than any two others mixed: none is dropped, whatever else goes meanwhile.
        """
        while kept.size > _MANY:
            crossing = -np.diff(a[kept]) / np.diff(b[kept])
            stays = np.r_[True, crossing[:-1] > crossing[1:], True]
            if stays.all():
                break
            kept = kept[stays]
        return kept

    @staticmethod
    def _crossing(a: FloatArray, b: FloatArray, i: int, j: int) -> float:
        return float((a[i] - a[j]) / (b[j] - b[i])) if b[j] > b[i] else math.inf

    @property
    def floor(self) -> float:
        """The least squared error without noise."""
        return float(self._alpha[-1])

    def best(self, v: npt.ArrayLike) -> Best:
        """See `Curve`."""
        at = np.asarray(v, dtype=np.float64)
        j = np.searchsorted(-self._until, -at, side="left")
        j = np.where(np.isinf(at), 0, j)
        a, b = self._alpha[j], self._beta[j]
        return Best(_squares(a, b, at), a, b, self._bounds[j], self._seconds[j])


class RankCurve:
    """A quantile: expected rank errors at some v, the least over the bounds tried, read between them.

    It may fall as v grows: then the line is drawn with the larger v, which spends less than its share.

    Args:
        v: Ascending, shape (k,).
        errors: Expected rank error of each bound at each v, shape (bounds, k).
        bounds: The bounds.
    """

    concave = False

    def __init__(self, v: FloatArray, errors: FloatArray, bounds: FloatArray) -> None:
        self._v, self._bounds = v, bounds
        best = np.argmin(errors, axis=0)
        least = errors[best, np.arange(v.size)]
        # From large v to small: the least error at this v or at any larger one.
        place = np.arange(v.size)
        for i in range(v.size - 2, -1, -1):
            if least[place[i + 1]] < least[i]:
                place[i] = place[i + 1]
        self._spent_at, self._least, self._best = v[place], least[place], best[place]

    @property
    def floor(self) -> float:
        """The square at the least v."""
        return float(self._least[0] ** 2)

    def stretched(self, times: float) -> RankCurve:
        """The same errors, each at so many times its v."""
        other = copy.copy(self)
        other._v, other._spent_at = self._v * times, self._spent_at * times
        return other

    def _place(self, v: FloatArray) -> FloatArray:
        place = np.interp(np.log(np.minimum(v, self._v[-1])), np.log(self._v), np.arange(self._v.size))
        return np.asarray(place)

    def best(self, v: npt.ArrayLike) -> Best:
        """See `Curve`; beta is the local slope. No budget at all gives the error at the largest v."""
        at = np.asarray(v, dtype=np.float64)
        place = self._place(at)
        low = np.minimum(np.floor(place).astype(np.int64), self._v.size - 2)
        # Errors are read between points by their logarithms, and an error of 0 has none.
        squares = np.interp(place, np.arange(self._v.size), np.log(np.maximum(self._least, 1e-150)))
        squares = np.exp(2.0 * squares)
        slope = np.diff(self._least**2) / np.diff(self._v)
        beta = np.maximum(slope[low], 0.0)
        nearest = np.minimum(np.round(place).astype(np.int64), self._v.size - 1)
        with np.errstate(invalid="ignore"):
            alpha = squares - np.where(np.isinf(at), 0.0, beta * at)
        return Best(squares, alpha, beta, self._bounds[self._best[nearest]], np.full(at.shape, np.nan))

    def spent_at(self, v: float) -> float:
        """The v to draw with: at least the given one, larger where that errs less."""
        low = int(np.ceil(self._place(np.array([v]))[0] - 1e-9))
        return max(v, float(self._spent_at[low]) if self._spent_at[low] > self._v[low] else v)


def caps_to_try(most: int, all_up_to: int = 2048) -> tuple[FloatArray, bool]:
    """Whole bounds from 1 to ``most``: all of them where they are few, else log-spaced; and whether these are all."""
    if most <= all_up_to:
        return np.arange(1.0, most + 1.0), True
    return np.unique(np.round(log_spaced(1.0, float(most), all_up_to))), False


def few_digits(bounds: npt.ArrayLike) -> FloatArray:
    """Bounds on amounts in four digits, ascending and each once: an exact one may be what a single user adds."""
    at = np.asarray(bounds, dtype=np.float64)
    return np.unique(np.array([float(f"{bound:.4g}") for bound in at.tolist()]))
