"""What an error is made of, and errors with several valleys over the bound: every piece between sizes is looked at.

Between two neighbouring sizes every error of this package is (a + b h + d h^2) / n_h^2 + c with
n_h = S + q h, S the rows of the users below and q the users above. Its derivative has the sign of
(b S - 2 q a) + (2 d S - q b) h, which is linear in h. So a piece has one turning point at most, and between sizes and
turning points the error only rises or only falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, Reached

EVERY_PIECE = "every piece between two neighbouring sizes was looked at, with its turning point"
STEPS = 200
"""Divisions of an interval at most; float64 has no number left between its ends long before."""
PROBES = 15
"""Bounds looked at at once within an interval: a call costs more than so many bounds in it."""


@dataclass(frozen=True)
class Losses:
    """The parts of an error at given bounds, before the noise has its unit; each of the shape of the bounds.

    Attributes:
        shift: Bias before noise with its sign, in the values' unit.
        sampling: Variance before noise, (unit)^2.
        largest_weight: Weight of a user at the bound; all weights sum to 1.
    """

    shift: FloatArray
    sampling: FloatArray
    largest_weight: FloatArray

    def error(self, unit_noise: float) -> FloatArray:
        """Expected squared error, with ``unit_noise`` the variance of the noise for a user who holds all weight."""
        return np.asarray(self.shift**2 + self.sampling + unit_noise * self.largest_weight**2)


@dataclass(frozen=True)
class Best:
    """The best bound of one kind.

    Attributes:
        bound: In rows per user; whole for a cap.
        certificate: The squared error there beside what no choice of this kind goes below.
        ended: How the search ended, a sentence.
    """

    bound: float
    certificate: Certificate
    ended: str


@dataclass(frozen=True)
class Pieces:
    """a, b and d of the numerator on each piece z_(k-1) <= h <= z_k, k = 1 .. K - 1, each of shape (K - 1,)."""

    constant: FloatArray
    linear: FloatArray
    square: FloatArray


@dataclass(frozen=True)
class Found:
    """The best bound of a curve.

    Attributes:
        bound: h in rows per user; whole where only whole bounds count.
        value: The error there.
        certificate: The error beside the smallest on any piece.
    """

    bound: float
    value: float
    certificate: Certificate


@dataclass(frozen=True)
class BoundCurve:
    """An error over bounds from the smallest to the largest size.

    Attributes:
        histogram: Rows per user.
        error_after: The error at bounds, of their shape, and how many sizes lie at or below them; continuous.
        pieces: Its numerators, which say where it turns.
    """

    histogram: ContributionHistogram
    error_after: Callable[[FloatArray, Reached], FloatArray]
    pieces: Pieces

    def error(self, bounds: FloatArray) -> FloatArray:
        """Return the error at any bounds, of their shape."""
        return self.error_after(bounds, np.searchsorted(self.histogram.sizes, bounds, side="right"))

    @cached_property
    def _turning(self) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """Pieces that have a turning point inside, counted from 0, and where it lies."""
        sizes = self.histogram.sizes.astype(np.float64)
        at = self.histogram.pieces_at_sizes()
        below, above = at.rows_at_or_below[:-1], at.users_above[:-1]
        a, b, d = self.pieces.constant, self.pieces.linear, self.pieces.square
        slope = 2.0 * d * below - above * b
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            point = (2.0 * above * a - b * below) / slope
        inside = np.flatnonzero((point > sizes[:-1]) & (point < sizes[1:]))
        return inside, point[inside]

    @cached_property
    def _at_sizes(self) -> FloatArray:
        sizes = self.histogram.sizes
        found = np.empty(sizes.size)
        for block in self.histogram.blocks:
            at = slice(block.start + 1, block.stop + 1)
            found[block] = self.error_after(sizes[block].astype(np.float64), at)
        return found

    def _tried(self, whole: bool) -> tuple[FloatArray, FloatArray]:
        """Sizes and turning points, in place of which stand the whole bounds beside them, and the error there."""
        sizes = self.histogram.sizes.astype(np.float64)
        pieces, point = self._turning
        if whole:
            # Between the ends of its piece: at a size the next piece begins.
            low, high = np.tile(sizes[pieces], 2), np.tile(sizes[pieces + 1], 2)
            point = np.clip(np.concatenate((np.floor(point), np.ceil(point))), low, high)
            pieces = np.tile(pieces, 2)
        # On a piece the error is the same with its right end counted as above.
        return np.concatenate((sizes, point)), np.concatenate(
            (self._at_sizes, self.error_after(point, pieces + 1))
        )

    def best(self, whole: bool) -> Found:
        """Return the best bound of all from the smallest to the largest size; among equals the smallest."""
        tried, values = self._tried(whole)
        least = float(values.min())
        bound = float(tried[values == least].min())
        # The error turns at most once on a piece, so that the best whole bound is among those that were tried.
        lowest = least if whole else self.lower_bound()
        return Found(bound, least, Certificate(least, min(lowest, least), EVERY_PIECE))

    def lower_bound(self) -> float:
        """Return what no bound goes below, from three values of the error on every piece that turns inside.

        The error is a quadratic in 1 / n_h there, so that its values at both ends and in the middle of 1 / n_h say
        all, without the numerators that the turning points were found with.
        """
        pieces, _ = self._turning
        lowest = float(self._at_sizes.min())
        if not pieces.size:
            return lowest
        sizes = self.histogram.sizes.astype(np.float64)
        left, right = sizes[pieces], sizes[pieces + 1]
        at = self.histogram.pieces_at_sizes()
        below, above = at.rows_at_or_below[pieces], at.users_above[pieces]
        kept = 2.0 / (1.0 / (below + above * left) + 1.0 / (below + above * right))
        first, last = self._at_sizes[pieces], self._at_sizes[pieces + 1]
        middle = self.error_after(np.clip((kept - below) / above, left, right), pieces + 1)
        # The error is first + v (slope + v bend), v linear in 1 / n_h from 0 at the left end to 1 at the right one.
        bend = 2.0 * (first + last - 2.0 * middle)
        slope = last - first - bend
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.clip(np.where(bend > 0.0, -slope / (2.0 * bend), 0.0), 0.0, 1.0)
        return min(lowest, float((first + vertex * (slope + vertex * bend)).min()))

    def stretches(self, limit: float, whole: bool) -> tuple[tuple[float, float], ...]:
        """Return all stretches of bounds on which the error is at most ``limit``, ascending.

        Args:
            limit: At least the best value.
            whole: Whether only whole bounds count; they then begin at 1, as a cap below the smallest size is one, too.

        Returns:
            (lowest, highest) bound of each, both inside, to one unit (whole) or to rounding.
        """
        points = self._monotone_between(whole)
        fine = self.error(points) <= limit
        change = np.flatnonzero(np.diff(fine.astype(np.int8)))
        edges = self._edges(points[change], points[change + 1], fine[change], limit, whole)
        begins = ([float(points[0])] if fine[0] else []) + [
            float(e) for e, was in zip(edges, fine[change], strict=True) if not was
        ]
        stops = [float(e) for e, was in zip(edges, fine[change], strict=True) if was]
        stops += [float(points[-1])] if fine[-1] else []
        return _joined(list(zip(begins, stops, strict=True)), whole)

    def _monotone_between(self, whole: bool) -> FloatArray:
        """Return the bounds between neighbours of which the error only rises or only falls."""
        _, point = self._turning
        if whole:
            point = np.concatenate((np.floor(point), np.ceil(point), [1.0]))
        # Two sorted runs: a stable sort merges them.
        return np.sort(
            np.concatenate((self.histogram.sizes.astype(np.float64), np.sort(point))), kind="stable"
        )

    def _edges(
        self, left: FloatArray, right: FloatArray, fine_left: npt.NDArray[np.bool_], limit: float, whole: bool
    ) -> FloatArray:
        """Return the last bound within the limit between a fine one and one that is not, for all such pairs at once."""
        inside, outside = np.where(fine_left, left, right), np.where(fine_left, right, left)
        shares = np.arange(1.0, PROBES + 1.0) / (PROBES + 1.0)
        rows = np.arange(inside.size)
        for _ in range(STEPS):
            probes = inside[:, None] + (outside - inside)[:, None] * shares
            if whole:
                probes = np.floor(probes)
            fine = self.error(probes.ravel()).reshape(probes.shape) <= limit
            # The ends among the probes: the error is fine up to one of them, and from there on it is not.
            path = np.column_stack((inside, probes, outside))
            last = np.where(fine.all(axis=1), PROBES, np.argmin(fine, axis=1))
            nearer, further = path[rows, last], path[rows, last + 1]
            if np.array_equal(nearer, inside) and np.array_equal(further, outside):
                break
            inside, outside = nearer, further
        return inside


def _joined(stretches: list[tuple[float, float]], whole: bool) -> tuple[tuple[float, float], ...]:
    """Stretches of whole numbers without a whole number between them are one."""
    found: list[tuple[float, float]] = []
    for low, high in stretches:
        if found and (low - found[-1][1] <= 1.0 if whole else low <= found[-1][1]):
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def holding(stretches: tuple[tuple[float, float], ...], bound: float) -> tuple[float, float]:
    """Return the stretch that holds a bound; the bound alone where rounding left it out of all."""
    for low, high in stretches:
        if low <= bound <= high:
            return low, high
    return bound, bound


ALL_PIECES = "Exact: the best of every piece between two sizes."


def rows_only(histogram: ContributionHistogram) -> str:
    """Return how a search ended where there is nothing to search; empty where there is."""
    if histogram.num_users == 1:
        return "There is one user: every bound gives the same weights."
    if histogram.sizes.size == 1:
        return "All users have equally many rows: there is only one bound to choose."
    return ""
