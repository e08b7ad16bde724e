"""The parts of an error, and the minimum over the bound of an error with several local minima.

Between two neighbouring sizes every error of this package is (a + b h + d h^2) / n_h^2 + c with
n_h = S + q h, S the rows of the users below and q the users above. Its derivative has the sign of
(b S - 2 q a) + (2 d S - q b) h, which is linear in h. So a piece has one turning point at most, and between sizes and
turning points the error is monotone. The search evaluates every piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, SizeIndex

EVERY_PIECE = "every piece between two neighbouring sizes was looked at, with its turning point"
MAX_STEPS = 200
"""Most subdivisions of an interval; the ends are neighbouring float64 numbers long before."""
PROBES = 15
"""Bounds evaluated together within an interval; one call costs more than this many bounds in it."""


@dataclass(frozen=True)
class Losses:
    """The parts of an error at given bounds, without the scale of the noise; each of the shape of the bounds.

    Attributes:
        shift: Bias before noise with its sign, in the values' unit.
        sampling: Variance before noise, (unit)^2.
        largest_weight: Weight of a user at the bound; all weights sum to 1.
    """

    shift: FloatArray
    sampling: FloatArray
    largest_weight: FloatArray

    def error(self, unit_noise: float) -> FloatArray:
        """Return the expected squared error; ``unit_noise`` is the noise variance if one user holds all weight."""
        return np.asarray(self.shift**2 + self.sampling + unit_noise * self.largest_weight**2)


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
class CurveMinimum:
    """The minimum of a curve.

    Attributes:
        bound: h in rows per user; an integer if only integers are allowed.
        value: The error there.
        certificate: The error and the smallest error on any piece.
    """

    bound: float
    value: float
    certificate: Certificate


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
            # Stay within the piece: at a size the next piece begins.
            low, high = np.tile(sizes[pieces], 2), np.tile(sizes[pieces + 1], 2)
            point = np.clip(np.concatenate((np.floor(point), np.ceil(point))), low, high)
            pieces = np.tile(pieces, 2)
        # The error is continuous, so a point on the right end of a piece may count as inside the piece.
        return np.concatenate((sizes, point)), np.concatenate(
            (self._errors_at_sizes, self.error_after(point, pieces + 1))
        )

    def minimise(self, is_integer: bool) -> CurveMinimum:
        """Return the minimum from the smallest to the largest size; the smallest bound if several are equal."""
        candidates, values = self._candidates(is_integer)
        smallest = float(values.min())
        bound = float(candidates[values == smallest].min())
        # The error turns at most once on a piece, so the best integer is among the candidates.
        lower_bound = smallest if is_integer else self.lower_bound()
        return CurveMinimum(bound, smallest, Certificate(smallest, min(lower_bound, smallest), EVERY_PIECE))

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
        change = np.flatnonzero(np.diff(is_fine.astype(np.int8)))
        edges = self._edges(points[change], points[change + 1], is_fine[change], limit, is_integer)
        begins = ([float(points[0])] if is_fine[0] else []) + [
            float(e) for e, was in zip(edges, is_fine[change], strict=True) if not was
        ]
        stops = [float(e) for e, was in zip(edges, is_fine[change], strict=True) if was]
        stops += [float(points[-1])] if is_fine[-1] else []
        return _join_intervals(list(zip(begins, stops, strict=True)), is_integer)

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


def _join_intervals(
    intervals: list[tuple[float, float]], is_integer: bool
) -> tuple[tuple[float, float], ...]:
    """Join intervals that touch; intervals of integers also if no integer lies between them."""
    unions: list[tuple[float, float]] = []
    for low, high in intervals:
        if unions and (low - unions[-1][1] <= 1.0 if is_integer else low <= unions[-1][1]):
            unions[-1] = (unions[-1][0], high)
        else:
            unions.append((low, high))
    return tuple(unions)


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
