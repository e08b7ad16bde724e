"""Base distributions of a private quantile: where the answer is looked for before the data speak.

The paper's bases have a density and no atoms; between two neighbouring ``breaks`` it has one form, so that masses are
computed from lengths and local densities, never as differences of two numbers near 1. Programs pick one of several
candidates: `CandidateBase` has atoms only.

Source: the nu of Epasto et al. 2020, appendix B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse, require
from dpcore.contributions import FloatArray, read_only


class Base(Protocol):
    """The interface of a base distribution. Intervals never have one of ``breaks`` strictly inside."""

    is_discrete: ClassVar[bool]
    """True if the base has atoms: all its mass lies on its breaks."""

    @property
    def breaks(self) -> FloatArray:
        """Finite points where the density changes its form, ascending."""

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density at y (any shape); -inf outside the support."""

    def log_mass(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """Return the log probability of each interval [low, high]; ends may be infinite."""

    def mean_between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """Return the mean within each interval of positive probability; 0 for the others."""

    def draw_between(self, low: npt.ArrayLike, high: npt.ArrayLike, uniform: npt.ArrayLike) -> FloatArray:
        """Return the point of each interval (of positive probability) at the share ``uniform`` of its mass."""


@dataclass(frozen=True, eq=False)
class HistogramBase:
    """A density that is constant on each bin.

    Attributes:
        edges: Bin edges, strictly ascending, shape (bins + 1,), in the values' unit.
        weights: Weight of each bin, at least 0 and not all 0, shape (bins,); scaled to sum to 1.

    Raises:
        InvalidInput: Anything else; all problems at once.
    """

    is_discrete: ClassVar[bool] = False

    edges: FloatArray
    weights: FloatArray
    _densities: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges, weights = np.array(self.edges, dtype=np.float64), np.array(self.weights, dtype=np.float64)
        ascending = edges.ndim == 1 and edges.size >= 2 and bool(np.all(edges[1:] > edges[:-1]))
        with Problems() as problems:
            if not (ascending and np.all(np.isfinite(edges))):
                problems.add("edges must be at least two finite numbers, strictly ascending")
            if (
                weights.ndim != 1
                or not np.all(np.isfinite(weights))
                or np.any(weights < 0)
                or not weights.sum()
            ):
                problems.add("weights must be finite numbers of at least 0, not all 0")
            if weights.shape != (edges.size - 1,):
                problems.add(
                    f"there must be one weight per bin; got {weights.size} for {edges.size - 1} bins"
                )
        if math.isinf(float(edges[-1]) - float(edges[0])):
            raise refuse("the edges are further apart than float64 holds")
        weights = weights / weights.sum()
        # One empty bin at either end stands for what lies outside.
        with np.errstate(over="ignore"):
            densities = np.concatenate(([0.0], weights / np.diff(edges), [0.0]))
        if not np.all(np.isfinite(densities)):
            raise refuse("a bin is so narrow that its density leaves float64")
        for name, array in (("edges", edges), ("weights", weights), ("_densities", densities)):
            object.__setattr__(self, name, read_only(array))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HistogramBase) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[bytes, bytes]:
        return self.edges.tobytes(), self.weights.tobytes()

    @property
    def breaks(self) -> FloatArray:
        """Return the bin edges."""
        return self.edges

    def _log_density_from(self, edges_from: FloatArray) -> FloatArray:
        """Return the log density of the bin that begins at or before each point."""
        with np.errstate(divide="ignore"):
            return np.log(self._densities[np.searchsorted(self.edges, edges_from, side="right")])

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """See `Base`; at an edge that of the bin to the right."""
        return self._log_density_from(np.asarray(y, dtype=np.float64))

    def log_mass(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        a, b = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        density = self._log_density_from(a)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Outside the support the density is 0 and the interval may be infinite.
            return np.where(density > -np.inf, density + np.log(b - a), -np.inf)

    def mean_between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        # The density is constant within an interval, so that the mean is its middle.
        return self.draw_between(low, high, 0.5)

    def draw_between(self, low: npt.ArrayLike, high: npt.ArrayLike, uniform: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        a, b = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = np.where(finite, a, 0.0), np.where(finite, b, 0.0)
        return np.asarray(np.clip(a + np.asarray(uniform) * (b - a), a, b))


def uniform_base(low: float, high: float) -> HistogramBase:
    """Return the uniform distribution on [low, high].

    Raises:
        InvalidInput: Not finite, or ``low`` not below ``high``.
    """
    require.ascending(low=low, high=high)
    return HistogramBase(np.array([low, high]), np.array([1.0]))


@dataclass(frozen=True, eq=False)
class CandidateBase:
    """Atoms at candidates; an interval has the mass of the candidates in [low, high), its lower end always among them.

    Attributes:
        points: The candidates, strictly ascending, in the values' unit, shape (k,).
        weights: Their masses, which sum to 1, shape (k,).
    """

    is_discrete: ClassVar[bool] = True

    points: FloatArray
    weights: FloatArray

    @staticmethod
    def evenly(points: FloatArray) -> CandidateBase:
        """Return candidates of equal mass."""
        return CandidateBase(points, np.full(points.shape, 1.0 / points.size))

    @property
    def breaks(self) -> FloatArray:
        """Return the candidates."""
        return self.points

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log mass of the candidate at y, as `log_mass` has it; there is no density."""
        return self.log_mass(y, y)

    def log_mass(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        cumulated = np.concatenate(([0.0], np.cumsum(self.weights)))
        first = np.searchsorted(self.points, low, side="left")
        stop = np.maximum(
            np.searchsorted(self.points, high, side="left"), np.searchsorted(self.points, low, side="right")
        )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(cumulated[stop] - cumulated[first]))

    def mean_between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """Return the lower end of each interval that begins at a candidate; 0 for infinite ones."""
        return np.where(np.isfinite(low), low, 0.0)

    def draw_between(self, low: npt.ArrayLike, high: npt.ArrayLike, uniform: npt.ArrayLike) -> FloatArray:
        """Return the lower end of each interval that begins at a candidate."""
        return self.mean_between(low, high)


# Gauss-Legendre nodes for intervals on which the normal density hardly bends: relative error below 1e-15
# where (length in standard deviations) * max(1, distance of its middle from the mean) <= 0.1.
_NODES, _WEIGHTS = (np.array(x) for x in np.polynomial.legendre.leggauss(6))
_NARROW = 0.1


@dataclass(frozen=True)
class NormalBase:
    """The normal distribution.

    Attributes:
        mean: In the values' unit.
        standard_deviation: Above 0, in the values' unit.

    Raises:
        InvalidInput: Not finite, or a standard deviation that is not positive.
    """

    is_discrete: ClassVar[bool] = False

    mean: float
    standard_deviation: float

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.finite(mean=self.mean)
            problems.positive(standard_deviation=self.standard_deviation)

    @property
    def breaks(self) -> FloatArray:
        """Return the mean: no interval then straddles it, and tails are computed on their own side."""
        return np.array([self.mean])

    def _standard(self, y: npt.ArrayLike) -> FloatArray:
        # Beyond 1e150 standard deviations squares overflow; the mass there is 0 in any case.
        with np.errstate(over="ignore"):
            z = (np.asarray(y, dtype=np.float64) - self.mean) / self.standard_deviation
        return np.clip(z, -1e150, 1e150)

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        z = self._standard(y)
        return np.asarray(-z * z / 2.0 - math.log(self.standard_deviation * math.sqrt(2.0 * math.pi)))

    def _mirror(
        self, low: npt.ArrayLike, high: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Return the ends in standard units, mirrored to the left of 0, and which intervals were mirrored."""
        a, b = np.broadcast_arrays(self._standard(low), self._standard(high))
        # Right of the mean Phi is near 1, and differences of it lose their digits; left of it they do not.
        mirrored = a >= 0.0
        return np.where(mirrored, -b, a), np.minimum(np.where(mirrored, -a, b), 0.0), mirrored

    @staticmethod
    def _narrow(a: FloatArray, b: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray((b - a) * np.maximum(1.0, np.abs(a)) <= _NARROW)

    @staticmethod
    def _bend(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the middle, half length, and density over that of the middle at the nodes (last axis)."""
        midpoint, half_width = (a + b) / 2.0, (b - a) / 2.0
        t = half_width[..., None] * _NODES
        return midpoint, half_width, np.exp(-t * (midpoint[..., None] + t / 2.0))

    def log_mass(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        a, b, _ = self._mirror(low, high)
        return self._log_mass(a, b)

    def _log_mass(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the log probability of a <= Z <= b <= 0 for a standard normal Z."""
        from scipy.special import log_ndtr

        narrow = self._narrow(a, b)
        out = np.empty(a.shape)
        midpoint, half_width, bend = self._bend(a[narrow], b[narrow])
        with np.errstate(divide="ignore"):
            out[narrow] = (
                np.log(half_width)
                - midpoint**2 / 2.0
                - math.log(2.0 * math.pi) / 2.0
                + np.log(bend @ _WEIGHTS)
            )
        # log(Phi(b) - Phi(a)) in logs throughout, as both may underflow. They are far enough apart here not to
        # cancel.
        upper, lower = log_ndtr(b[~narrow]), log_ndtr(a[~narrow])
        out[~narrow] = upper + np.log1p(-np.exp(lower - upper))
        return out

    def mean_between(self, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        a, b, mirrored = self._mirror(low, high)
        narrow = self._narrow(a, b)
        z = np.empty(a.shape)
        midpoint, half_width, bend = self._bend(a[narrow], b[narrow])
        z[narrow] = midpoint + half_width * ((bend * _NODES) @ _WEIGHTS) / (bend @ _WEIGHTS)
        # (phi(a) - phi(b)) / mass, both sides over phi(b): the mean of a normal variable within [a, b].
        wide_a, wide_b = a[~narrow], b[~narrow]
        log_phi_b = -(wide_b**2) / 2.0 - math.log(2.0 * math.pi) / 2.0
        mass = self._log_mass(wide_a, wide_b)
        z[~narrow] = np.expm1((wide_b**2 - wide_a**2) / 2.0) * np.exp(log_phi_b - mass)
        z = np.clip(z, a, b)
        return np.asarray(self.mean + self.standard_deviation * np.where(mirrored, -z, z))

    def draw_between(self, low: npt.ArrayLike, high: npt.ArrayLike, uniform: npt.ArrayLike) -> FloatArray:
        """See `Base`."""
        from scipy.special import log_ndtr, ndtri_exp

        a, b, mirrored = self._mirror(low, high)
        # A mirrored interval runs the other way.
        u = np.where(mirrored, 1.0 - np.asarray(uniform), np.asarray(uniform, dtype=np.float64))
        with np.errstate(divide="ignore"):
            # The z sought has Phi(z) = (1 - u) Phi(a) + u Phi(b), at most 1/2 as b <= 0.
            log_share = np.logaddexp(log_ndtr(a) + np.log1p(-u), log_ndtr(b) + np.log(u))
        z = np.clip(ndtri_exp(np.minimum(log_share, math.log(0.5))), a, b)
        inside = self.mean + self.standard_deviation * np.where(mirrored, -z, z)
        return np.clip(inside, low, high)
