"""Rényi accounting of a step in which a user moves the sum by 0, 1, … G clip norms, by quadrature: the quick bound.

Of G examples of a user each is in the step by a draw of its own, so that k of them are there with a binomial
probability. The dominating pair is a normal at 0 against the mixture of normals at 0 … G with these weights
(Choquette-Choo et al. 2023, arXiv 2310.15526, for vectors; collinear gradients of full norm attain it). Both directions
are computed, as integrals over the line of powers of the ratio w of the two densities:

    (α − 1) D_α(P ‖ Q) = log E_Q[w^α],    (α − 1) D_α(Q ‖ P) = log E_Q[w^(1 − α)].

The trapezoidal rule converges exponentially there, since the integrands are analytic around the line and fall as
normals do. Nothing of the binomial's tail is cut by its probability: a tail of 1e-16 that is moved to k = G multiplies
ε by 15 at G = 128, q = 0.003, T = 100. What is left out is left out by its share of the density at the point of the
line.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from dpcore.contributions import FloatArray

NEGLIGIBLE = 50.0
"""e to the minus this is left out, relative to what is summed: 2e-22."""
POINTS_PER_NORMAL = 8
FACTORS = tuple(np.geomspace(0.1, 4.0, 20))
"""Orders less 1, over 2 log(1/δ)/ε, the best one of a single Gaussian of a small ε."""
CHUNK = 128


@dataclass(frozen=True)
class Mixture:
    """How many clip norms a user moves a step: binomial.

    Attributes:
        examples: G, at least 1.
        rate: q, in (0, 1].
    """

    examples: int
    rate: float

    def log_weights(self) -> FloatArray:
        """Log probabilities of k = 0 … G, shape (G + 1,)."""
        n, k = self.examples, np.arange(self.examples + 1.0)
        if self.rate >= 1.0:
            return np.where(k < n, -np.inf, 0.0)
        found = k * math.log(self.rate) + (n - k) * math.log1p(-self.rate)
        found += gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        # What rounding of gammaln(n) puts on all of them alike is taken off.
        found -= found.max() + math.log(np.exp(found - found.max()).sum())
        return np.asarray(found)


class Ratio:
    """w, the density of the mixture over that of the normal at 0.

    Args:
        log_weights: Of `Mixture`.
        sigma: Standard deviation of both, in clip norms.
    """

    def __init__(self, log_weights: FloatArray, sigma: float) -> None:
        self.sigma = sigma
        k = np.arange(log_weights.size, dtype=np.float64)
        self._k, self._at_0 = k, log_weights - 0.5 * (k / sigma) ** 2
        self._log_weights = log_weights
        self._falls = -np.diff(self._at_0)
        likely = np.flatnonzero(log_weights > -120.0)
        self._likely = slice(likely[0], likely[-1] + 1)
        self._weights = np.exp(log_weights[self._likely])

    @property
    def step(self) -> float:
        """Of the rule; a unit of the line is a whole number of steps, so that pieces of it join."""
        return 1.0 / math.ceil(POINTS_PER_NORMAL / min(1.0, self.sigma))

    def less_1(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(w − 1, log w) at points of the line in standard deviations, ascending; without cancellation near 0."""
        parts = [self._of_chunk(z[at : at + CHUNK]) for at in range(0, z.size, CHUNK)]
        return np.concatenate([one for one, _ in parts]), np.concatenate([log for _, log in parts])

    def _of_chunk(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self._window(z[0], z[-1])
        likely = self._likely
        if likely.start <= low and high <= likely.stop:
            k = self._k[likely]
            moved = np.outer(z, k / self.sigma) - 0.5 * (k / self.sigma) ** 2
            if moved.max() < 30.0:
                # w - 1 as the sum of p_k (e^x - 1), which keeps its digits where w is near 1. All terms that count
                # anywhere in the chunk are among the likely ones.
                less_1 = np.expm1(moved) @ self._weights
                return less_1, np.log1p(less_1)
        terms = np.outer(z, self._k[low:high] / self.sigma) + self._at_0[low:high]
        most = terms.max(axis=1)
        log = most + np.log(np.exp(terms - most[:, None]).sum(axis=1))
        with np.errstate(over="ignore"):
            return np.expm1(log), log

    def _window(self, first: float, last: float) -> tuple[int, int]:
        """From which k to which one terms count anywhere between two points: they are log-concave in k."""
        k, at_first, at_last = range(self._k.size), self._largest(first), self._largest(last)
        least_first = self._term(at_first, first) - NEGLIGIBLE
        least_last = self._term(at_last, last) - NEGLIGIBLE
        low = bisect_left(k, least_first, 0, at_first, key=lambda at: self._term(at, first))
        high = bisect_left(k, -least_last, at_last, key=lambda at: -self._term(at, last))
        return low, high

    def _largest(self, z: float) -> int:
        """The k of the largest term at a point: up to there terms rise."""
        return int(np.searchsorted(self._falls, z / self.sigma))

    def _term(self, k: int, z: float) -> float:
        return float(self._at_0[k]) + k * (z / self.sigma)

    def at_least(self, orders: FloatArray) -> FloatArray:
        """What D_α(P ‖ Q) is not below, by the integral of single terms; shape of ``orders``."""
        some = np.unique(np.geomspace(1.0, self._k.size, 60).astype(np.int64)) - 1
        squares = 0.5 * (self._k[some] / self.sigma) ** 2
        # w is at least any one of its terms, and E_Q of term k to the power α is p_k^α exp(α (α − 1) (k/σ)²/2).
        height = orders[:, None] * (self._log_weights[some] + np.outer(orders - 1.0, squares))
        return np.asarray(np.maximum(height.max(axis=1), 0.0) / (orders - 1.0))

    def upper_ends(self, order: float) -> tuple[float, float]:
        """Between which points the integral of w^α has its mass.

        w^α is at most (G + 1)^α times the largest power of a single term, and that of term k with the normal's density
        is a normal around αk/σ.
        """
        height = order * self._log_weights + 0.5 * order * (order - 1.0) * (self._k / self.sigma) ** 2
        slack = NEGLIGIBLE + order * math.log(self._k.size)
        counts = np.flatnonzero(height > height.max() - slack)
        reach = math.sqrt(2.0 * slack)
        return order * counts[0] / self.sigma - reach, order * counts[-1] / self.sigma + reach

    def lower_end(self, order: float) -> float:
        """Above which point the integral of w^(1 − α) has its mass, a concave exponent; below 10 it ends."""
        finite = np.isfinite(self._at_0)
        weights = np.exp(self._at_0[finite] - self._at_0[finite].max())
        slope = float(weights @ self._k[finite]) / float(weights.sum()) / self.sigma
        return -(order - 1.0) * slope - 10.0


def divergences(ratio: Ratio, orders: FloatArray) -> FloatArray:
    """The larger of D_α(P ‖ Q) and D_α(Q ‖ P) of one step, shape of ``orders``."""
    ends = [ratio.upper_ends(float(order)) for order in orders]
    up = _powers(ratio, min(e[0] for e in ends), max(e[1] for e in ends), orders)
    down = _powers(ratio, ratio.lower_end(float(orders.max())), 10.0, 1.0 - orders)
    return np.maximum(up, down) / (orders - 1.0)


def replaced_divergences(ratio: Ratio, orders: FloatArray) -> FloatArray:
    """D_α of one step where a user's contents are replaced: the mixture at k against the mixture at −k.

    No user is added or removed: k records of the user are there either way, and their gradients turn around. The
    pair is its own mirror image, so that both directions are one. Its density ratio is w(z)/w(−z).
    """
    largest = float(orders.max())
    end = max(ratio.upper_ends(float(order))[1] for order in orders) - ratio.lower_end(largest)
    step = ratio.step
    coarse = np.arange(0.0, math.ceil(end) + 2.0, 1.0)
    coarse = np.concatenate((-coarse[:0:-1], coarse))
    kept = np.abs(coarse) <= 10.0
    up, down = (logs := ratio.less_1(coarse)[1]), logs[::-1]
    for order in orders:
        exponent = order * up + (1.0 - order) * down - 0.5 * coarse**2
        kept |= exponent > exponent.max() - NEGLIGIBLE
    kept |= kept[::-1]  # Ratios are needed at the mirror images, too.
    # One set of points that is its own mirror image.
    z = (coarse[kept][:, None] - 0.5 + step * (np.arange(round(1.0 / step)) + 0.5)).ravel()
    log = ratio.less_1(z)[1]
    moved = log - log[::-1]
    with np.errstate(over="ignore"):
        less_1 = np.expm1(moved)
    normal = -0.5 * z**2 + math.log(step / math.sqrt(2.0 * math.pi))
    return _summed(orders, log, log[::-1], less_1, normal) / (orders - 1.0)


def _powers(ratio: Ratio, low: float, high: float, powers: FloatArray) -> FloatArray:
    """log E_Q[w^a] for each power a, shape of ``powers``."""
    z = _where_mass_is(ratio, low, high, powers, ratio.step)
    less_1, log = ratio.less_1(z)
    normal = -0.5 * z**2 + math.log(ratio.step / math.sqrt(2.0 * math.pi))
    return _summed(powers, log, np.zeros_like(log), less_1, normal)


def _summed(
    powers: FloatArray, log: FloatArray, other: FloatArray, less_1: FloatArray, normal: FloatArray
) -> FloatArray:
    """log Σ q r^a for each power a, with r = e^log / e^other and q = e^(other + normal), which sum to 1, as q r do.

    So q (1 + a (r − 1)), which sums to 1, may be taken off where the sum is near 1: what is left is of one sign, and
    small numbers stay exact.

    Args:
        powers: a.
        log: At the points of the rule.
        other: Likewise.
        less_1: r − 1, likewise.
        normal: Log of the weights of the rule.
    """
    moved = log - other
    scaled = powers[:, None] * moved
    exponent = scaled + (other + normal)
    most = exponent.max(axis=1)
    whole = most + np.log(np.exp(exponent - most[:, None]).sum(axis=1))
    near = np.flatnonzero(whole < 1.0)
    if near.size:
        a, scaled = powers[near, None], scaled[near]
        small = np.abs(scaled) < 1.0
        density, moved_density = np.exp(other + normal), np.exp(log + normal)
        left = np.where(
            small,
            density * (np.expm1(np.where(small, scaled, 0.0)) - a * np.where(small, less_1, 0.0)),
            np.exp(exponent[near]) - density - a * moved_density + a * density,
        )
        whole[near] = np.log1p(np.maximum(left.sum(axis=1), 0.0))
    return np.asarray(whole)


def _where_mass_is(ratio: Ratio, low: float, high: float, powers: FloatArray, step: float) -> FloatArray:
    """The points of the rule: all but those around which no integrand has any mass.

    The exponent a log w − z²/2 bends upwards at most as much as log w lets it, and never downwards by more than a
    normal's: half a standard deviation beside its largest value it has lost 1/8 at most.
    """
    coarse = np.arange(math.floor(low) - 1.0, math.ceil(high) + 2.0, 1.0)
    if (high - low) / step <= 4 * CHUNK:
        return np.arange(coarse[0], coarse[-1], step)
    _, log = ratio.less_1(coarse)
    exponent = np.outer(powers, log) - 0.5 * coarse**2
    kept = (exponent > exponent.max(axis=1, keepdims=True) - NEGLIGIBLE).any(axis=0)
    # Where w is 1 the part that is taken off has its mass, too.
    kept |= np.abs(coarse) <= 10.0
    inner = step * np.arange(round(1.0 / step))
    # Each coarse point stands for the unit around it.
    return np.asarray((coarse[kept][:, None] - 0.5 + inner).ravel())


def orders_for(epsilon: float, delta: float) -> FloatArray:
    """The orders that are tried, ascending, all above 1."""
    return 1.0 + np.array(FACTORS) * 2.0 * math.log(1.0 / delta) / epsilon


def epsilon_of(
    mixture: FloatArray,
    sigma: float,
    steps: int,
    delta: float,
    orders: FloatArray,
    enough: float = math.inf,
    replaced: bool = False,
) -> float:
    """An upper bound of ε of so many steps; where that is above ``enough``, some number above it.

    Args:
        mixture: Log probabilities of k = 0 … G.
        sigma: Noise multiplier.
        steps: T.
        delta: At which ε is asked.
        orders: That are tried.
        replaced: Whether a user's contents are replaced, and no user added or removed.
        enough: Above this nobody needs to know ε: large orders, whose integrals reach far, are then left out.

    Source: Mironov 2017 for the composition; Canonne, Kamath and Steinke 2020, proposition 12, for ε.
    """
    ratio = Ratio(mixture, sigma)

    def converted(divergence: FloatArray, at: FloatArray) -> FloatArray:
        found = steps * divergence + np.log1p(-1.0 / at) - (math.log(delta) + np.log(at)) / (at - 1.0)
        return np.asarray(found)

    # By an order whose ε is not below `enough` nothing can be gained: its integrals are not computed.
    least = converted(ratio.at_least(orders), orders)
    tried = orders[least <= enough]
    if not tried.size:
        return float(least.min())
    divergence = replaced_divergences if replaced else divergences
    return max(float(converted(divergence(ratio, tried), tried).min()), 0.0)
