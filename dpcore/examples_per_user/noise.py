"""The noise of a private training if a user may have up to G examples: a quick bound, and the exact number.

A step adds Gaussian noise to a sum of vectors of norm 1 at most (the clip norm is the unit). Each example, or each
user, takes part with a given probability. A user's examples are chosen by a rule that reads only this user's data, and
the sum is divided by a constant. A neighbour has one user more or less.

The quick bound is Rényi accounting, by quadrature, of a step in which a user moves the sum by 0, 1, … G clip norms.
Each of a user's G examples is sampled independently, so that k of them are in the step with a binomial probability.
The dominating pair is a normal at 0 against the mixture of normals at 0 … G with these weights (Choquette-Choo et al.
2023, arXiv 2310.15526, for vectors; collinear gradients of full norm attain it). Both directions are computed, as
integrals over the line of powers of the ratio w of the two densities:

    (α − 1) D_α(P ‖ Q) = log E_Q[w^α],    (α − 1) D_α(Q ‖ P) = log E_Q[w^(1 − α)].

The trapezoidal rule converges exponentially there, since the integrands are analytic around the line and fall as
normals do. The binomial's tail is never cut by its probability: a tail of 1e-16 that is moved to k = G multiplies
ε by 15 at G = 128, q = 0.003, T = 100. Terms are left out by their share of the density at each point of the line.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left

import numpy as np
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.privacy import GaussianNoise, bound_mixture_epsilon, bound_sampled_epsilon
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray

NEGLIGIBLE_LOG = 50.0
"""Terms below e to the minus this are left out."""
POINTS_PER_NORMAL = 8
ORDER_FACTORS = tuple(np.geomspace(0.1, 4.0, 20))
"""Orders less 1, over 2 log(1/δ)/ε, the best one of a Gaussian of small ε."""
CHUNK_SIZE = 128


def compute_log_weights(num_examples: int, sampling_rate: float) -> FloatArray:
    """Compute the log probability that k of a user's G examples are drawn in a step, for k = 0 … G, shape (G + 1,).

    Args:
        num_examples: G, at least 1.
        sampling_rate: q, in (0, 1].
    """
    k = np.arange(num_examples + 1.0)
    log_weights = xlogy(k, sampling_rate) + xlog1py(num_examples - k, -sampling_rate)
    log_weights = log_weights - gammaln(k + 1.0) - gammaln(num_examples - k + 1.0)
    # Normalised: the constant log G! drops out, and with it its rounding, which would shift all of them equally.
    return np.asarray(log_weights - logsumexp(log_weights))


class DensityRatio:
    """The ratio w of two densities: of the mixture of normals at k = 0 … G, and of the normal at 0.

    Args:
        log_weights: Log probabilities of k = 0 … G; see `compute_log_weights`.
        sigma: Standard deviation of both, in clip norms.
    """

    def __init__(self, log_weights: FloatArray, sigma: float) -> None:
        self.sigma = sigma
        k = np.arange(log_weights.size, dtype=np.float64)
        self._k, self._terms_at_0 = k, log_weights - 0.5 * (k / sigma) ** 2
        self._log_weights = log_weights
        self._decreases = -np.diff(self._terms_at_0)
        likely_indices = np.flatnonzero(log_weights > -120.0)
        self._likely_slice = slice(likely_indices[0], likely_indices[-1] + 1)
        self._weights = np.exp(log_weights[self._likely_slice])

    @property
    def step_length(self) -> float:
        """Return the distance of the points of integration; 1 is a whole multiple of it."""
        return 1.0 / math.ceil(POINTS_PER_NORMAL / min(1.0, self.sigma))

    def evaluate_ratio(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute (w − 1, log w) at ascending points, in standard deviations.

        w − 1 keeps its digits if it is small.
        """
        chunk_starts = range(0, points.size, CHUNK_SIZE)
        chunk_results = (self._evaluate_chunk(points[start : start + CHUNK_SIZE]) for start in chunk_starts)
        ratios_less_1, log_ratios = zip(*chunk_results, strict=True)
        return np.concatenate(ratios_less_1), np.concatenate(log_ratios)

    def _evaluate_chunk(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute (w − 1, log w) at the ascending points of a chunk."""
        first_k, stop_k = self._find_window(points[0], points[-1])
        if self._likely_slice.start <= first_k and stop_k <= self._likely_slice.stop:
            k = self._k[self._likely_slice]
            likely_exponents = np.outer(points, k / self.sigma) - 0.5 * (k / self.sigma) ** 2
            if likely_exponents.max() < 30.0:
                # w - 1 as the sum of p_k (e^x - 1), which keeps its digits where w is near 1. All terms that count
                # anywhere in the chunk are among the likely ones.
                ratios_less_1 = np.expm1(likely_exponents) @ self._weights
                return ratios_less_1, np.log1p(ratios_less_1)
        term_slice = slice(first_k, stop_k)
        log_terms = np.outer(points, self._k[term_slice] / self.sigma) + self._terms_at_0[term_slice]
        largest_log_terms = log_terms.max(axis=1)
        log_ratios = largest_log_terms + np.log(np.exp(log_terms - largest_log_terms[:, None]).sum(axis=1))
        with np.errstate(over="ignore"):
            return np.expm1(log_ratios), log_ratios

    def _find_window(self, first_point: float, last_point: float) -> tuple[int, int]:
        """Return (the first k whose term counts anywhere between two points, one above the last such k)."""
        ks, first_peak = range(self._k.size), self._find_largest_term(first_point)
        last_peak = self._find_largest_term(last_point)
        first_limit = self._evaluate_term(first_peak, first_point) - NEGLIGIBLE_LOG
        last_limit = self._evaluate_term(last_peak, last_point) - NEGLIGIBLE_LOG
        return (
            bisect_left(ks, first_limit, hi=first_peak, key=lambda k: self._evaluate_term(k, first_point)),
            bisect_left(ks, -last_limit, lo=last_peak, key=lambda k: -self._evaluate_term(k, last_point)),
        )

    def _find_largest_term(self, point: float) -> int:
        """Return the k whose term is largest at a point; terms rise up to that k."""
        return int(np.searchsorted(self._decreases, point / self.sigma))

    def _evaluate_term(self, k: int, point: float) -> float:
        """Compute the logarithm of term k at a point."""
        return float(self._terms_at_0[k]) + k * (point / self.sigma)

    def bound_divergence(self, orders: FloatArray) -> FloatArray:
        """Compute a lower bound on D_α(P ‖ Q) from single terms; shape of ``orders``."""
        tried_ks = np.unique(np.geomspace(1.0, self._k.size, 60).astype(np.int64)) - 1
        half_squares = 0.5 * (self._k[tried_ks] / self.sigma) ** 2
        # w is at least any one of its terms, and E_Q of term k to the power α is p_k^α exp(α (α − 1) (k/σ)²/2).
        log_bounds = orders[:, None] * (self._log_weights[tried_ks] + np.outer(orders - 1.0, half_squares))
        return np.asarray(np.maximum(log_bounds.max(axis=1), 0.0) / (orders - 1.0))

    def find_upper_ends(self, order: float) -> tuple[float, float]:
        """Find the two ends between which nearly all of the integral of w^α lies, in standard deviations.

        w^α is at most (G + 1)^α times the largest power of a single term, and that of term k with the normal's
        density is a normal around αk/σ.
        """
        exponents = order * self._log_weights + 0.5 * order * (order - 1.0) * (self._k / self.sigma) ** 2
        log_slack = NEGLIGIBLE_LOG + order * math.log(self._k.size)
        relevant_ks = np.flatnonzero(exponents > exponents.max() - log_slack)
        end_distance = math.sqrt(2.0 * log_slack)
        return order * relevant_ks[0] / self.sigma - end_distance, order * relevant_ks[
            -1
        ] / self.sigma + end_distance

    def find_lower_end(self, renyi_order: float) -> float:
        """Find the point above which nearly all of the integral of w^(1 − α) lies; it ends below 10."""
        finite_mask = np.isfinite(self._terms_at_0)
        term_weights = np.exp(self._terms_at_0[finite_mask] - self._terms_at_0[finite_mask].max())
        mean_k_slope = float(term_weights @ self._k[finite_mask]) / float(term_weights.sum()) / self.sigma
        return -(renyi_order - 1.0) * mean_k_slope - 10.0


def compute_divergences(density_ratio: DensityRatio, renyi_orders: FloatArray) -> FloatArray:
    """Compute the larger of D_α(P ‖ Q) and D_α(Q ‖ P) of one step at each order, shape of ``renyi_orders``.

    P is the mixture and Q the normal at 0.
    """
    lower_ends, upper_ends = zip(*map(density_ratio.find_upper_ends, renyi_orders.tolist()), strict=True)
    log_moments = _integrate_powers(density_ratio, min(lower_ends), max(upper_ends), renyi_orders)
    lower_end = density_ratio.find_lower_end(float(renyi_orders.max()))
    reverse_log_moments = _integrate_powers(density_ratio, lower_end, 10.0, 1.0 - renyi_orders)
    return np.maximum(log_moments, reverse_log_moments) / (renyi_orders - 1.0)


def compute_replaced_divergences(density_ratio: DensityRatio, orders: FloatArray) -> FloatArray:
    """Compute D_α of one step at each order if a user's contents are replaced: the mixture at k against that at −k.

    No user is added or removed: k records of the user are there either way, and their gradients turn around. The pair
    is its own mirror image, so that both directions are one. Its density ratio is w(z)/w(−z).
    """
    upper_end = max(density_ratio.find_upper_ends(float(renyi_order))[1] for renyi_order in orders)
    half_width = upper_end - density_ratio.find_lower_end(float(orders.max()))
    step_length = density_ratio.step_length
    coarse_points = np.arange(0.0, math.ceil(half_width) + 2.0, 1.0)
    coarse_points = np.concatenate((-coarse_points[:0:-1], coarse_points))
    kept_point_mask = np.abs(coarse_points) <= 10.0
    log_ratios = density_ratio.evaluate_ratio(coarse_points)[1]
    for renyi_order in orders:
        exponents = renyi_order * log_ratios + (1.0 - renyi_order) * log_ratios[::-1] - 0.5 * coarse_points**2
        kept_point_mask |= exponents > exponents.max() - NEGLIGIBLE_LOG
    kept_point_mask |= kept_point_mask[::-1]  # Ratios are needed at the mirror images, too.
    # One set of points that is its own mirror image.
    point_offsets = step_length * (np.arange(round(1.0 / step_length)) + 0.5)
    points = (coarse_points[kept_point_mask][:, None] - 0.5 + point_offsets).ravel()
    log_ratios = density_ratio.evaluate_ratio(points)[1]
    with np.errstate(over="ignore"):
        quotients_less_1 = np.expm1(log_ratios - log_ratios[::-1])
    log_rule_weights = -0.5 * points**2 + math.log(step_length / math.sqrt(2.0 * math.pi))
    return _sum_powers(orders, log_ratios, log_ratios[::-1], quotients_less_1, log_rule_weights) / (
        orders - 1.0
    )


def _integrate_powers(ratio: DensityRatio, low_end: float, high_end: float, powers: FloatArray) -> FloatArray:
    """Compute log E_Q[w^a] by integration between two ends, for each power a, shape of ``powers``."""
    rule_points = _choose_points(ratio, low_end, high_end, powers)
    ratios_less_1, log_ratios = ratio.evaluate_ratio(rule_points)
    log_rule_weights = -0.5 * rule_points**2 + math.log(ratio.step_length / math.sqrt(2.0 * math.pi))
    return _sum_powers(powers, log_ratios, np.zeros_like(log_ratios), ratios_less_1, log_rule_weights)


def _sum_powers(
    powers: FloatArray,
    log_numerators: FloatArray,
    log_denominators: FloatArray,
    quotients_less_1: FloatArray,
    log_rule_weights: FloatArray,
) -> FloatArray:
    """Compute log Σ q r^a over the points of the rule for each power a, r the quotient of densities at a point.

    Here r = e^(log_numerator - log_denominator) and q = e^(log_denominator + log_weight).

    q and q r sum to 1. So q (1 + a (r − 1)), which sums to 1, may be subtracted where the sum is near 1: the
    difference has one sign, and small numbers stay exact.

    Args:
        powers: a.
        log_numerators: At the points of the rule.
        log_denominators: Likewise.
        quotients_less_1: r − 1, likewise.
        log_rule_weights: Log of the weights of the rule.
    """
    scaled_logs = powers[:, None] * (log_numerators - log_denominators)
    exponents = scaled_logs + (log_denominators + log_rule_weights)
    log_sums = np.asarray(logsumexp(exponents, axis=1))
    exact_rows = np.flatnonzero(log_sums < 1.0)
    if exact_rows.size:
        exact_powers, scaled_logs = powers[exact_rows, None], scaled_logs[exact_rows]
        densities = np.exp(log_denominators + log_rule_weights)
        numerators = np.exp(log_numerators + log_rule_weights)
        small_mask = np.abs(scaled_logs) < 1.0
        small_logs, small_quotients = (np.where(small_mask, x, 0.0) for x in (scaled_logs, quotients_less_1))
        sum_excesses = np.where(
            small_mask,
            densities * (np.expm1(small_logs) - exact_powers * small_quotients),
            np.exp(exponents[exact_rows]) - densities - exact_powers * numerators + exact_powers * densities,
        )
        log_sums[exact_rows] = np.log1p(np.maximum(sum_excesses.sum(axis=1), 0.0))
    return log_sums


def _choose_points(ratio: DensityRatio, low_end: float, high_end: float, powers: FloatArray) -> FloatArray:
    """Choose the points of integration: all between the ends, except where no integrand counts.

    The exponent a log w − z²/2 bends upwards at most as much as log w lets it, and downwards at most as a normal's.
    So half a standard deviation from its largest value, it is lower by at most 1/8.
    """
    step_length = ratio.step_length
    coarse_points = np.arange(math.floor(low_end) - 1.0, math.ceil(high_end) + 2.0, 1.0)
    if (high_end - low_end) / step_length <= 4 * CHUNK_SIZE:
        return np.arange(coarse_points[0], coarse_points[-1], step_length)
    _, log_ratios = ratio.evaluate_ratio(coarse_points)
    exponents = np.outer(powers, log_ratios) - 0.5 * coarse_points**2
    kept_point_mask = (exponents > exponents.max(axis=1, keepdims=True) - NEGLIGIBLE_LOG).any(axis=0)
    # The subtracted part has its mass where w is 1.
    kept_point_mask |= np.abs(coarse_points) <= 10.0
    # Each coarse point stands for the unit around it.
    point_offsets = step_length * np.arange(round(1.0 / step_length)) - 0.5
    return np.asarray((coarse_points[kept_point_mask][:, None] + point_offsets).ravel())


def choose_orders(epsilon: float, delta: float) -> FloatArray:
    """Choose the Rényi orders to try for this ε and δ, ascending, all above 1."""
    return 1.0 + np.array(ORDER_FACTORS) * 2.0 * math.log(1.0 / delta) / epsilon


def compute_epsilon(
    log_weights: FloatArray,
    noise_multiplier: float,
    num_steps: int,
    delta: float,
    orders: FloatArray,
    epsilon_limit: float = math.inf,
    replaces_user: bool = False,
) -> float:
    """Compute an upper bound on the ε of so many steps.

    If it exceeds ``epsilon_limit``, the result is some number above that.

    Args:
        log_weights: Log probabilities of k = 0 … G.
        noise_multiplier: Noise multiplier.
        num_steps: T.
        delta: At which ε is asked.
        orders: That are tried.
        replaces_user: Whether a user's contents are replaced, and no user added or removed.
        epsilon_limit: Above this nobody needs to know ε: large orders, whose integrals reach far, are then left out.

    Source: Mironov 2017 for the composition; Canonne, Kamath and Steinke 2020, proposition 12, for ε.
    """
    density_ratio = DensityRatio(log_weights, noise_multiplier)

    def convert_to_epsilon(divergences: FloatArray, orders: FloatArray) -> FloatArray:
        """Convert the Rényi divergences of one step to the ε of all steps, shape of ``orders``."""
        log_terms = np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
        return np.asarray(num_steps * divergences + log_terms)

    # An order whose ε exceeds the limit gains nothing: its integrals are not computed.
    lower_bounds = convert_to_epsilon(density_ratio.bound_divergence(orders), orders)
    orders = orders[lower_bounds <= epsilon_limit]
    if not orders.size:
        return float(lower_bounds.min())
    compute_order_divergences = compute_replaced_divergences if replaces_user else compute_divergences
    return max(float(convert_to_epsilon(compute_order_divergences(density_ratio, orders), orders).min()), 0.0)


RDP_TOLERANCE, PLD_TOLERANCE = 5e-3, 1e-3
"""Relative, of the noise multiplier; results are on the safe side."""
MOVED_TAIL_PROBABILITY = 1e-15
"""Mass of the binomial that the accounting by privacy losses moves to G."""


@functools.lru_cache(maxsize=1024)
def bound_multiplier(
    num_examples: int, rate: float, epsilon: float, delta: float, num_steps: int, replaces_user: bool = False
) -> float:
    """Compute a noise multiplier that suffices, quickly, by Rényi accounting.

    It is up to about 12 % above that of `find_multiplier`.

    Args:
        num_examples: G, by how many clip norms a user may move a step, each by a draw of its own.
        rate: q, the probability of each draw, in (0, 1]; 1 has no draw, and its noise is exact.
        epsilon: Of all steps together.
        delta: Likewise.
        num_steps: T.
        replaces_user: Whether neighbours differ in a user's contents, replaced by others, and not in a user's presence.

    Returns:
        Standard deviation of the noise on the sum, in clip norms.

    Raises:
        InvalidInput: No noise was found.

    Source: see `dpcore.examples_per_user.noise`.
    """
    unit_noise = GaussianNoise.for_release(1.0, epsilon, delta).scale
    if rate >= 1.0:
        # A Gaussian that a user moves by G √T (Dong et al. 2022), or by twice that if contents turn around.
        return (2 * num_examples if replaces_user else num_examples) * math.sqrt(num_steps) * unit_noise
    log_weights, orders = compute_log_weights(num_examples, rate), choose_orders(epsilon, delta)
    # The search starts from the limit of many steps, where only the mean of a user's effect counts, but not below
    # what single steps need.
    mean_move = num_examples * rate
    first_guess = max(1.15 * math.sqrt(num_steps) * unit_noise * mean_move, 0.3)
    first_guess = max(first_guess, 0.4 * unit_noise if num_examples == 1 else 0.3 * unit_noise * mean_move)
    return find_least_noise(
        lambda x: compute_epsilon(log_weights, x, num_steps, delta, orders, 3.0 * epsilon, replaces_user),
        epsilon,
        1.5 * first_guess if replaces_user else first_guess,
        RDP_TOLERANCE,
    )


def choose_grid(epsilon: float, num_steps: int) -> float:
    """Choose the grid to which privacy losses are rounded up, so that the ε grows by about 0.1 %."""
    return float(f"{min(4e-3, epsilon / 20.0, max(math.sqrt(1e-3 * epsilon / num_steps), 1e-4)):.2g}")


def truncate_mixture(num_examples: int, sampling_rate: float) -> tuple[list[float], list[float]]:
    """Return (numbers k of drawn examples, their probabilities), with the tail of the binomial moved to G.

    The numbers are 0 … K in order, and G behind them if a tail was moved. Probabilities sum to 1.
    """
    move_probabilities = np.exp(compute_log_weights(num_examples, sampling_rate))
    last_k = max(
        int(np.flatnonzero(np.cumsum(move_probabilities[::-1])[::-1] > MOVED_TAIL_PROBABILITY)[-1]), 1
    )
    # Light terms at the lower end stay in place; each costs a term.
    drawn_counts = [*map(float, range(last_k + 1))]
    count_probabilities = move_probabilities[: last_k + 1].tolist()
    if last_k < num_examples:
        drawn_counts.append(float(num_examples))
        count_probabilities.append(float(move_probabilities[last_k + 1 :].sum()))
    probability_sum = math.fsum(count_probabilities)
    return drawn_counts, [probability / probability_sum for probability in count_probabilities]


def bound_epsilon(
    sigma: float, num_examples: int, sampling_rate: float, num_steps: int, delta: float, grid_step: float
) -> float:
    """Compute an upper bound on the ε of T steps, by privacy losses rounded up to a grid and composed.

    Source: Choquette-Choo et al. 2023 for the pair, Doroshenko et al. 2022 for the grid, by dp-accounting.
    """
    if num_examples == 1:
        return bound_sampled_epsilon(sigma, sampling_rate, num_steps, 0.0, delta, grid_step)
    drawn_counts, move_probabilities = truncate_mixture(num_examples, sampling_rate)
    return bound_mixture_epsilon(sigma, drawn_counts, move_probabilities, num_steps, delta, grid_step)


MAX_TERMS = 400
"""Most terms of a mixture, by privacy losses: more take minutes."""


def is_too_slow(num_examples: int, rate: float) -> bool:
    """Return True if accounting by privacy losses would take minutes."""
    return rate < 1.0 and num_examples > 1 and len(truncate_mixture(num_examples, rate)[0]) > MAX_TERMS


class _StoppedError(Exception):
    """The signal that the search was asked to end."""


def find_multiplier(
    num_examples: int,
    sampling_rate: float,
    epsilon: float,
    delta: float,
    num_steps: int,
    should_stop: ShouldStop = never,
) -> float | None:
    """Find the least noise multiplier by privacy losses, at most 0.1 % too large; None if the search was stopped.

    Args:
        num_examples: As of `bound_multiplier`, as are all others.
        sampling_rate: q.
        epsilon: Of all steps together.
        delta: Likewise.
        num_steps: T.
        should_stop: Asked before each step of the search.

    Returns:
        Standard deviation of the noise on the sum, in clip norms, no larger than `bound_multiplier`. Seconds of work.

    Raises:
        InvalidInput: No noise was found.
    """
    multiplier_bound = bound_multiplier(num_examples, sampling_rate, epsilon, delta, num_steps)
    if sampling_rate >= 1.0:
        return multiplier_bound
    grid_step = choose_grid(epsilon, num_steps)

    def compute_epsilon(noise_multiplier: float) -> float:
        """Compute an upper bound on the ε of all steps; raise `_StoppedError` if the search is to end."""
        if should_stop():
            raise _StoppedError
        return bound_epsilon(noise_multiplier, num_examples, sampling_rate, num_steps, delta, grid_step)

    try:
        least_multiplier = find_least_noise(compute_epsilon, epsilon, 0.93 * multiplier_bound, PLD_TOLERANCE)
    except _StoppedError:
        return None
    return min(least_multiplier, multiplier_bound)
