"""The distribution of a private quantile under one bound: probabilities of intervals, errors, samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.quantile.base_distribution import Base
from dpcore.quantile.rows import SLACK

_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class QuantileOutput:
    """The distribution of the private answer: exact, or under a cap averaged over subsamples, each of them exact.

    Attributes:
        quantile: q.
        base: The base distribution.
        edges: Ends of the intervals, shape (k + 1,), from -inf to inf, in the values' unit.
        weighted_ranks: sum of c_i over the values at or below, on each interval, shape (k,); average over subsamples.
        shares_below: F on each interval, shape (k,).
        log_base_masses: Log base mass of each interval, shape (k,).
        log_tilts: Log of the density over the base density, shape (k,).
        largest_user_weight: W.
        subsample_errors: E|F(answer) - q| under each subsample, shape (subsamples,); one entry where none matters. Of a
            tree the error of each simulated answer.
        is_simulated: True if the distribution is that of simulated answers.
    """

    quantile: float
    base: Base
    edges: FloatArray
    weighted_ranks: FloatArray
    shares_below: FloatArray
    log_base_masses: FloatArray
    log_tilts: FloatArray
    largest_user_weight: float
    subsample_errors: FloatArray
    is_simulated: bool = False

    @cached_property
    def log_probabilities(self) -> FloatArray:
        """Return the log probability that the answer falls in each interval, shape (k,)."""
        return np.asarray(self.log_base_masses + self.log_tilts)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Return the probability of each interval, shape (k,); underflows to 0 where it is below 1e-308."""
        return np.asarray(np.exp(self.log_probabilities))

    @cached_property
    def _cumulative_probabilities(self) -> FloatArray:
        """Return the probability that the answer lies below each edge, shape (k + 1,)."""
        return np.concatenate(([0.0], np.minimum(np.cumsum(self.probabilities), 1.0)))

    @cached_property
    def _rank_errors(self) -> FloatArray:
        """Return |F - q| on each interval, shape (k,)."""
        return np.abs(self.shares_below - self.quantile)

    def _find_intervals(self, y: FloatArray) -> IntArray:
        """Return the index of the interval that holds each y."""
        return np.clip(np.searchsorted(self.edges, y, side="right") - 1, 0, self.edges.size - 2)

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density of the answer at y, of its shape; at a value that of the interval to the right."""
        points = np.asarray(y, dtype=np.float64)
        return np.asarray(self.base.log_density(points) + self.log_tilts[self._find_intervals(points)])

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """Return the probability that the answer is at most y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        k = self._find_intervals(points)
        partial_masses = np.exp(self.base.log_mass(self.edges[k], points) + self.log_tilts[k])
        return np.asarray(np.minimum(self._cumulative_probabilities[k] + partial_masses, 1.0))

    def find_answers(self, shares: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of the answer's own distribution at ``shares`` in (0, 1), any shape."""
        u = np.asarray(shares, dtype=np.float64)
        k = np.searchsorted(self._cumulative_probabilities, u, side="left") - 1
        k = np.clip(k, 0, self.probabilities.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            interval_shares = (u - self._cumulative_probabilities[k]) / self.probabilities[k]
        # 0 / 0 where the interval's probability underflows: any point of it will do.
        interval_shares = np.clip(np.nan_to_num(interval_shares, nan=0.5), 0.0, 1.0)
        return self.base.draw_between(self.edges[k], self.edges[k + 1], interval_shares)

    def find_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Return the central interval that holds the answer with probability ``coverage``, in the values' unit."""
        low, high = self.find_answers([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
        return float(low), float(high)

    @cached_property
    def mean(self) -> float:
        """Return the expected answer, in the values' unit."""
        return float(self.probabilities @ self.base.mean_between(self.edges[:-1], self.edges[1:]))

    @cached_property
    def expected_rank_error(self) -> float:
        """Return E|F(answer) - q|, over the noise and over the subsamples."""
        return float(np.mean(self.subsample_errors))

    @cached_property
    def least_rank_error(self) -> float:
        """Return the least |F(y) - q| where the base has mass: what ties alone cost, at any epsilon."""
        return float(np.min(self._rank_errors[self.log_base_masses > -np.inf]))

    def compute_probability_within(self, distances: npt.ArrayLike) -> FloatArray:
        """Return P(|F(answer) - q| <= t), for t of any shape; t may fall short by 1e-12."""
        order = np.argsort(self._rank_errors, kind="stable")
        cumulated_masses = np.concatenate(([0.0], np.minimum(np.cumsum(self.probabilities[order]), 1.0)))
        t = np.asarray(distances, dtype=np.float64) + SLACK
        return np.asarray(cumulated_masses[np.searchsorted(self._rank_errors[order], t, side="right")])

    def compute_binned_density(self, edges: FloatArray) -> FloatArray:
        """Return the mean density on bins between ascending edges, shape (bins,), for drawing."""
        return np.asarray(np.diff(self.cdf(edges)) / np.diff(edges))

    def sample(self, size: int, generator: np.random.Generator) -> FloatArray:
        """Draw answers exactly: Gumbel-max over the intervals in log space, then within one by its base mass.

        No grid and no underflow, whatever epsilon. For simulations: NumPy's generator is not meant for
        release.

        Args:
            size: Number of independent answers; the cost is ``size`` times the number of intervals.
            generator: NumPy generator.

        Returns:
            Shape (size,), in the values' unit.
        """
        log_masses = self.log_probabilities
        possible_indices = np.flatnonzero(log_masses > -np.inf)
        block_size = max(1, _CELLS // possible_indices.size)
        intervals = np.empty(size, dtype=np.int64)
        for start in range(0, size, block_size):
            gumbel_noise = generator.gumbel(size=(min(block_size, size - start), possible_indices.size))
            drawn_indices = np.argmax(log_masses[possible_indices] + gumbel_noise, axis=1)
            intervals[start : start + block_size] = possible_indices[drawn_indices]
        interval_shares = generator.random(size)
        return self.base.draw_between(self.edges[intervals], self.edges[intervals + 1], interval_shares)
