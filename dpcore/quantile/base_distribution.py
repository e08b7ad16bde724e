"""Base distributions of a private quantile: where the answer is looked for before the data speak.

The paper's bases have a density and no atoms. Between two neighbouring ``breaks`` the density has one form. So masses
are computed from lengths and local densities, never as differences of two numbers near 1. Programs pick one of several
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
        """Return the finite points where the density changes its form, ascending."""

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density at y (any shape), or the log mass of the atom at y; -inf outside the support."""

    def log_mass(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the log probability of each interval from ``lower_ends`` to ``upper_ends``; ends may be infinite."""

    def mean_between(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the mean within each interval of positive probability; a finite number without meaning for others."""

    def find_points_at_shares(
        self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike, shares: npt.ArrayLike
    ) -> FloatArray:
        """Return the point of each interval (of positive probability) below which ``shares`` of its mass lie."""


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
        """Check edges and weights, scale the weights to a sum of 1, and store them with the densities, read-only."""
        edges, bin_weights = np.array(self.edges, dtype=np.float64), np.array(self.weights, dtype=np.float64)
        is_ascending = edges.ndim == 1 and edges.size >= 2 and bool(np.all(edges[1:] > edges[:-1]))
        with Problems() as problems:
            if not (is_ascending and np.all(np.isfinite(edges))):
                problems.add("edges must be at least two finite numbers, strictly ascending")
            is_finite = bin_weights.ndim == 1 and np.all(np.isfinite(bin_weights))
            if not is_finite or np.any(bin_weights < 0) or not bin_weights.sum():
                problems.add("weights must be finite numbers of at least 0, not all 0")
            if bin_weights.shape != (edges.size - 1,):
                counts_text = f"{bin_weights.size} for {edges.size - 1} bins"
                problems.add(f"there must be one weight per bin; got {counts_text}")
        if math.isinf(float(edges[-1]) - float(edges[0])):
            raise refuse("the edges are further apart than float64 holds")
        bin_weights = bin_weights / bin_weights.sum()
        # One empty bin at either end stands for what lies outside.
        with np.errstate(over="ignore"):
            densities = np.concatenate(([0.0], bin_weights / np.diff(edges), [0.0]))
        if not np.all(np.isfinite(densities)):
            raise refuse("a bin is so narrow that its density leaves float64")
        for field_name, field_array in (
            ("edges", edges),
            ("weights", bin_weights),
            ("_densities", densities),
        ):
            object.__setattr__(self, field_name, read_only(field_array))

    def __eq__(self, other: object) -> bool:
        """Return True if the other object is a histogram with the same edges and weights."""
        return isinstance(other, HistogramBase) and self._content == other._content

    def __hash__(self) -> int:
        """Return the hash of edges and weights."""
        return hash(self._content)

    @property
    def _content(self) -> tuple[bytes, bytes]:
        """Return edges and weights as bytes, by which two histograms are compared."""
        return self.edges.tobytes(), self.weights.tobytes()

    @property
    def breaks(self) -> FloatArray:
        """Return the bin edges."""
        return self.edges

    def _log_density_from(self, points: FloatArray) -> FloatArray:
        """Return the log density of the bin that holds each point, at an edge of that to the right; -inf outside."""
        with np.errstate(divide="ignore"):
            return np.log(self._densities[np.searchsorted(self.edges, points, side="right")])

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density at y (any shape), -inf outside; at an edge that of the bin to the right."""
        return self._log_density_from(np.asarray(y, dtype=np.float64))

    def log_mass(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the log probability of each interval from ``lower_ends`` to ``upper_ends``; ends may be infinite."""
        a, b = np.asarray(lower_ends, dtype=np.float64), np.asarray(upper_ends, dtype=np.float64)
        log_densities = self._log_density_from(a)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Outside the support the density is 0 and the interval may be infinite.
            return np.where(log_densities > -np.inf, log_densities + np.log(b - a), -np.inf)

    def mean_between(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the middle of each interval, its mean where it has probability; 0 for infinite intervals."""
        # The density is constant within an interval, so that the mean is its middle.
        return self.find_points_at_shares(lower_ends, upper_ends, 0.5)

    def find_points_at_shares(
        self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike, shares: npt.ArrayLike
    ) -> FloatArray:
        """Return the point of each interval at the share ``shares`` of its length; 0 if it is infinite."""
        a, b = np.asarray(lower_ends, dtype=np.float64), np.asarray(upper_ends, dtype=np.float64)
        finite_mask = np.isfinite(a) & np.isfinite(b)
        a, b = np.where(finite_mask, a, 0.0), np.where(finite_mask, b, 0.0)
        return np.asarray(np.clip(a + np.asarray(shares) * (b - a), a, b))


def build_uniform_base(lower: float, upper: float) -> HistogramBase:
    """Build the uniform distribution on [lower, upper].

    Raises:
        InvalidInput: Not finite, or ``lower`` not below ``upper``.
    """
    require.ascending(low=lower, high=upper)
    return HistogramBase(np.array([lower, upper]), np.array([1.0]))


@dataclass(frozen=True, eq=False)
class CandidateBase:
    """Atoms at candidates; an interval has the mass of those from its lower end on and below its upper end.

    If both ends are equal, it has the mass of the candidate there.

    Attributes:
        points: The candidates, strictly ascending, in the values' unit, shape (k,).
        weights: Their masses, which sum to 1, shape (k,).
    """

    is_discrete: ClassVar[bool] = True

    points: FloatArray
    weights: FloatArray

    @staticmethod
    def build_even(candidate_points: FloatArray) -> CandidateBase:
        """Build a base of candidates with equal mass."""
        return CandidateBase(candidate_points, np.full(candidate_points.shape, 1.0 / candidate_points.size))

    @property
    def breaks(self) -> FloatArray:
        """Return the candidates."""
        return self.points

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log mass of the candidate at y, as `log_mass` has it; there is no density."""
        return self.log_mass(y, y)

    def log_mass(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the log probability of each interval from ``lower_ends`` to ``upper_ends``; ends may be infinite."""
        cumulated_weights = np.concatenate(([0.0], np.cumsum(self.weights)))
        first_indices = np.searchsorted(self.points, lower_ends, side="left")
        stop_indices = np.searchsorted(self.points, upper_ends, side="left")
        stop_indices = np.maximum(stop_indices, np.searchsorted(self.points, lower_ends, side="right"))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(cumulated_weights[stop_indices] - cumulated_weights[first_indices]))

    def mean_between(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the lower end of each interval: the candidate there, if it has mass; 0 for an infinite end."""
        return np.where(np.isfinite(lower_ends), lower_ends, 0.0)

    def find_points_at_shares(
        self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike, shares: npt.ArrayLike
    ) -> FloatArray:
        """Return the lower end of each interval, as `mean_between`; ``shares`` has no effect."""
        return self.mean_between(lower_ends, upper_ends)


# Gauss-Legendre nodes for intervals on which the normal density hardly bends: relative error below 1e-15
# where (length in standard deviations) * max(1, distance of its middle from the mean) <= 0.1.
_GAUSS_NODES, _GAUSS_WEIGHTS = (np.array(x) for x in np.polynomial.legendre.leggauss(6))
_MAX_NARROW_WIDTH = 0.1


@dataclass(frozen=True)
class NormalBase:
    """A normal distribution as the base of a quantile's mechanism.

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
        """Raise `InvalidInput` unless both numbers are finite and the standard deviation is positive."""
        with Problems() as problems:
            problems.finite(mean=self.mean)
            problems.positive(standard_deviation=self.standard_deviation)

    @property
    def breaks(self) -> FloatArray:
        """Return the mean: no interval then straddles it, and tails are computed on their own side."""
        return np.array([self.mean])

    def _standardise(self, y: npt.ArrayLike) -> FloatArray:
        """Return y in standard deviations from the mean, clipped to +- 1e150."""
        # Beyond 1e150 standard deviations squares overflow; the mass there is 0 in any case.
        with np.errstate(over="ignore"):
            z = (np.asarray(y, dtype=np.float64) - self.mean) / self.standard_deviation
        return np.clip(z, -1e150, 1e150)

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density at y (any shape)."""
        z = self._standardise(y)
        return np.asarray(-z * z / 2.0 - math.log(self.standard_deviation * math.sqrt(2.0 * math.pi)))

    def _mirror(
        self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        """Return the ends in standard units, mirrored to the left of 0, and which intervals were mirrored."""
        a, b = np.broadcast_arrays(self._standardise(lower_ends), self._standardise(upper_ends))
        # Right of the mean Phi is near 1, and differences of it lose their digits; left of it they do not.
        mirrored_mask = a >= 0.0
        return np.where(mirrored_mask, -b, a), np.minimum(np.where(mirrored_mask, -a, b), 0.0), mirrored_mask

    @staticmethod
    def _find_narrow(a: FloatArray, b: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which intervals are so narrow that the quadrature rule is exact on them."""
        return np.asarray((b - a) * np.maximum(1.0, np.abs(a)) <= _MAX_NARROW_WIDTH)

    @staticmethod
    def _evaluate_nodes(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return middles, half lengths, and the density at the nodes (last axis) over that of the middle."""
        midpoints, half_widths = (a + b) / 2.0, (b - a) / 2.0
        t = half_widths[..., None] * _GAUSS_NODES
        return midpoints, half_widths, np.exp(-t * (midpoints[..., None] + t / 2.0))

    def log_mass(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the log probability of each interval from ``lower_ends`` to ``upper_ends``; ends may be infinite."""
        a, b, _ = self._mirror(lower_ends, upper_ends)
        return self._log_mass(a, b)

    def _log_mass(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the log probability of a <= Z <= b <= 0 for a standard normal Z."""
        from scipy.special import log_ndtr

        narrow_mask = self._find_narrow(a, b)
        log_masses = np.empty(a.shape)
        midpoints, half_widths, node_densities = self._evaluate_nodes(a[narrow_mask], b[narrow_mask])
        with np.errstate(divide="ignore"):
            log_middle_masses = np.log(half_widths) - midpoints**2 / 2.0 - math.log(2.0 * math.pi) / 2.0
            log_masses[narrow_mask] = log_middle_masses + np.log(node_densities @ _GAUSS_WEIGHTS)
        # log(Phi(b) - Phi(a)) in logs throughout, as both may underflow. They are far enough apart here not to
        # cancel.
        log_upper, log_lower = log_ndtr(b[~narrow_mask]), log_ndtr(a[~narrow_mask])
        log_masses[~narrow_mask] = log_upper + np.log1p(-np.exp(log_lower - log_upper))
        return log_masses

    def mean_between(self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike) -> FloatArray:
        """Return the mean within each interval from ``lower_ends`` to ``upper_ends``; ends may be infinite."""
        a, b, mirrored_mask = self._mirror(lower_ends, upper_ends)
        narrow_mask = self._find_narrow(a, b)
        z = np.empty(a.shape)
        midpoints, half_widths, node_densities = self._evaluate_nodes(a[narrow_mask], b[narrow_mask])
        node_means = ((node_densities * _GAUSS_NODES) @ _GAUSS_WEIGHTS) / (node_densities @ _GAUSS_WEIGHTS)
        z[narrow_mask] = midpoints + half_widths * node_means
        # (phi(a) - phi(b)) / mass, both sides over phi(b): the mean of a normal variable within [a, b].
        wide_a, wide_b = a[~narrow_mask], b[~narrow_mask]
        log_phi_b = -(wide_b**2) / 2.0 - math.log(2.0 * math.pi) / 2.0
        log_masses = self._log_mass(wide_a, wide_b)
        z[~narrow_mask] = np.expm1((wide_b**2 - wide_a**2) / 2.0) * np.exp(log_phi_b - log_masses)
        z = np.clip(z, a, b)
        return np.asarray(self.mean + self.standard_deviation * np.where(mirrored_mask, -z, z))

    def find_points_at_shares(
        self, lower_ends: npt.ArrayLike, upper_ends: npt.ArrayLike, shares: npt.ArrayLike
    ) -> FloatArray:
        """Return the point of each interval (of positive probability) below which ``shares`` of its mass lie."""
        from scipy.special import log_ndtr, ndtri_exp

        a, b, mirrored_mask = self._mirror(lower_ends, upper_ends)
        # A mirrored interval runs the other way.
        u = np.where(mirrored_mask, 1.0 - np.asarray(shares), np.asarray(shares, dtype=np.float64))
        with np.errstate(divide="ignore"):
            # The z sought has Phi(z) = (1 - u) Phi(a) + u Phi(b), at most 1/2 as b <= 0.
            log_shares = np.logaddexp(log_ndtr(a) + np.log1p(-u), log_ndtr(b) + np.log(u))
        z = np.clip(ndtri_exp(np.minimum(log_shares, math.log(0.5))), a, b)
        points = self.mean + self.standard_deviation * np.where(mirrored_mask, -z, z)
        return np.clip(points, lower_ends, upper_ends)
