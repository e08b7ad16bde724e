"""The noise of T steps if a user may have up to G examples: a quick bound, and the exact number.

A step adds Gaussian noise to a sum of vectors of norm 1 at most (the clip norm is the unit). Each example, or
each user, takes part with a given probability; a user's examples are chosen by a rule that looks at that user
alone, and the sum is divided by a constant. A neighbour has one user more or less.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.privacy import GaussianNoise, bound_mixture_epsilon, bound_sampled_epsilon
from dpcore.common.progress import ShouldStop, never
from dpcore.examples_per_user.rdp import Mixture, choose_orders, compute_epsilon

RDP_TOLERANCE, PLD_TOLERANCE = 5e-3, 1e-3
"""Relative, of the noise multiplier; what is returned is on the safe side."""
MOVED_TAIL = 1e-15
"""Mass of the binomial that the accounting by privacy losses moves to G, the worst case."""


def _full_batch_multiplier(examples: int, epsilon: float, delta: float, steps: int) -> float:
    """Return the multiplier if all users are in every step: a Gaussian that a user moves by G √T (Dong et al. 2022)."""
    return examples * math.sqrt(steps) * GaussianNoise.for_release(1.0, epsilon, delta).scale


@functools.lru_cache(maxsize=1024)
def bound_multiplier(
    examples: int, rate: float, epsilon: float, delta: float, steps: int, is_replaced: bool = False
) -> float:
    """Bound the sufficient noise by Rényi accounting: quick, and up to about 12 % more than `find_multiplier`.

    Args:
        examples: G, by how many clip norms a user may move a step, each by a draw of its own.
        rate: q, the probability of each draw, in (0, 1]; 1 has no draw, and its noise is exact.
        epsilon: Of all steps together.
        delta: Likewise.
        steps: T.
        is_replaced: Whether neighbours differ in a user's contents, replaced by others, and not in a user's presence.

    Returns:
        Standard deviation of the noise on the sum, in clip norms.

    Raises:
        InvalidInput: No noise was found.

    Source: see `dpcore.examples_per_user.rdp`.
    """
    if rate >= 1.0:
        return _full_batch_multiplier(2 * examples if is_replaced else examples, epsilon, delta, steps)
    mixture, orders = Mixture(examples, rate).compute_log_weights(), choose_orders(epsilon, delta)
    return find_least_noise(
        lambda sigma: compute_epsilon(mixture, sigma, steps, delta, orders, 3.0 * epsilon, is_replaced),
        epsilon,
        (1.5 if is_replaced else 1.0) * _guess_multiplier(examples, rate, epsilon, delta, steps),
        RDP_TOLERANCE,
    )


def _guess_multiplier(examples: int, rate: float, epsilon: float, delta: float, steps: int) -> float:
    """Guess the multiplier from the limit of many steps, where only mean and variance of a user's effect count."""
    unit_noise = GaussianNoise.for_release(1.0, epsilon, delta).scale
    mean = examples * rate
    noise_of_many_steps = math.sqrt(steps) * unit_noise * mean
    return (
        max(1.15 * noise_of_many_steps, 0.4 * unit_noise, 0.3)
        if examples == 1
        else max(1.15 * noise_of_many_steps, 0.3 * unit_noise * mean, 0.3)
    )


def choose_grid(epsilon: float, steps: int) -> float:
    """Choose the distance of the points to which privacy losses are rounded up, at a cost of at most 0.1 % of ε.

    The cost is near T times half the square of the distance, as measured: 0.07 at 4e-3 and 5,000 steps. A grid
    of 1e-2 makes 0.33 of ε = 0.13 after 755 steps; one below 1e-4 would take minutes.
    """
    return float(f"{min(4e-3, epsilon / 20.0, max(math.sqrt(1e-3 * epsilon / steps), 1e-4)):.2g}")


def truncate_mixture(examples: int, rate: float) -> tuple[list[float], list[float]]:
    """Return (k, probability) for the accounting by privacy losses; the binomial's tail is moved to its worst end.

    k = 0 … K in order, and G behind them where a tail was moved; probabilities sum to 1.
    """
    weights = np.exp(Mixture(examples, rate).compute_log_weights())
    tail_sums = np.cumsum(weights[::-1])[::-1]
    last_term = max(int(np.flatnonzero(tail_sums > MOVED_TAIL)[-1]), 1)
    # Light terms at the lower end stay in place; each costs a term.
    moves = [*map(float, range(last_term + 1))]
    probabilities = weights[: last_term + 1].tolist()
    if last_term < examples:
        moves.append(float(examples))
        probabilities.append(float(weights[last_term + 1 :].sum()))
    total = math.fsum(probabilities)
    return moves, [probability / total for probability in probabilities]


def bound_epsilon(sigma: float, examples: int, rate: float, steps: int, delta: float, grid: float) -> float:
    """Bound ε of T steps: privacy losses of both directions, rounded upwards to a grid and composed.

    Source: Choquette-Choo et al. 2023 for the pair, Doroshenko et al. 2022 for the grid, by dp-accounting.
    """
    if examples == 1:
        return bound_sampled_epsilon(sigma, rate, steps, 0.0, delta, grid)
    moves, weights = truncate_mixture(examples, rate)
    return bound_mixture_epsilon(sigma, moves, weights, steps, delta, grid)


MAX_TERMS = 400
"""Of a mixture, by privacy losses: more take minutes."""


def is_too_slow(examples: int, rate: float) -> bool:
    """Return True if the accounting of privacy losses takes too long, so that only the quick bound is known."""
    return rate < 1.0 and examples > 1 and len(truncate_mixture(examples, rate)[0]) > MAX_TERMS


class _StoppedSearch(Exception):
    """The signal that the search was asked to end."""


def find_multiplier(
    examples: int, rate: float, epsilon: float, delta: float, steps: int, should_stop: ShouldStop = never
) -> float | None:
    """Find the least noise by privacy losses, to 0.1 % and from above; never above `bound_multiplier`.

    Args:
        examples: As of `bound_multiplier`, as are all others.
        rate: q.
        epsilon: Of all steps together.
        delta: Likewise.
        steps: T.
        should_stop: Asked before each step of the search.

    Returns:
        Standard deviation of the noise on the sum, in clip norms; None where it was stopped. Seconds of work.

    Raises:
        InvalidInput: No noise was found.
    """
    multiplier_bound = bound_multiplier(examples, rate, epsilon, delta, steps)
    if rate >= 1.0:
        return multiplier_bound
    grid_step = choose_grid(epsilon, steps)

    def compute_epsilon(sigma: float) -> float:
        if should_stop():
            raise _StoppedSearch
        return bound_epsilon(sigma, examples, rate, steps, delta, grid_step)

    try:
        return min(
            find_least_noise(compute_epsilon, epsilon, 0.93 * multiplier_bound, PLD_TOLERANCE),
            multiplier_bound,
        )
    except _StoppedSearch:
        return None
