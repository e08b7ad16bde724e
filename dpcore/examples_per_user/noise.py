"""The noise that T steps need when a user may bring up to G examples: a quick bound, and the figure itself.

A step adds Gaussian noise to a sum of vectors of norm 1 at most (the clip norm is the unit). Who is in it is drawn, by
each example for itself or by each user; a user's examples are chosen by a rule that looks at that user alone, and the
sum is divided by a constant. A neighbour has one user more or less.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dpcore.common.least_noise import least_noise
from dpcore.common.privacy import GaussianNoise, mixture_epsilon, sampled_gaussian_epsilon
from dpcore.common.progress import ShouldStop, never
from dpcore.examples_per_user.rdp import Mixture, epsilon_of, orders_for

RDP_TOLERANCE, PLD_TOLERANCE = 5e-3, 1e-3
"""Relative, of the noise multiplier; what is returned is on the safe side."""
MOVED_TAIL = 1e-15
"""Mass of the binomial that the accounting by privacy losses moves to G, the worst case."""


def _full_batch(examples: int, epsilon: float, delta: float, steps: int) -> float:
    """Where everybody is in every step nothing is drawn: one Gaussian that a user moves by G √T (Dong et al. 2022)."""
    return examples * math.sqrt(steps) * GaussianNoise.for_release(1.0, epsilon, delta).scale


@functools.lru_cache(maxsize=1024)
def multiplier_at_most(
    examples: int, rate: float, epsilon: float, delta: float, steps: int, replaced: bool = False
) -> float:
    """Noise that is enough, by Rényi accounting: up to about 12 % more than `multiplier`, and soon there.

    Args:
        examples: G, by how many clip norms a user may move a step, each by a draw of its own.
        rate: q, the probability of each draw, in (0, 1]; 1 has no draw, and its noise is exact.
        epsilon: Of all steps together.
        delta: Likewise.
        steps: T.
        replaced: Whether neighbours differ in a user's contents, replaced by others, and not in a user's presence.

    Returns:
        Standard deviation of the noise on the sum, in clip norms.

    Raises:
        InvalidInput: No noise was found.

    Source: see `dpcore.examples_per_user.rdp`.
    """
    if rate >= 1.0:
        return _full_batch(2 * examples if replaced else examples, epsilon, delta, steps)
    mixture, orders = Mixture(examples, rate).log_weights(), orders_for(epsilon, delta)
    return least_noise(
        lambda sigma: epsilon_of(mixture, sigma, steps, delta, orders, 3.0 * epsilon, replaced),
        epsilon,
        (1.5 if replaced else 1.0) * _guess(examples, rate, epsilon, delta, steps),
        RDP_TOLERANCE,
    )


def _guess(examples: int, rate: float, epsilon: float, delta: float, steps: int) -> float:
    """By the limit of many steps, in which only the mean and the variance of what a user adds count."""
    one = GaussianNoise.for_release(1.0, epsilon, delta).scale
    mean = examples * rate
    many = math.sqrt(steps) * one * mean
    return max(1.15 * many, 0.4 * one, 0.3) if examples == 1 else max(1.15 * many, 0.3 * one * mean, 0.3)


def grid_of(epsilon: float, steps: int) -> float:
    """Distance of the points to which privacy losses are rounded, upwards, so that this adds a thousandth of ε at most.

    What it adds is near T times half the square of the distance, as measured: 0.07 at 4e-3 and 5,000 steps. A grid of
    1e-2 makes 0.33 of ε = 0.13 after 755 steps; one below 1e-4 would take minutes.
    """
    return float(f"{min(4e-3, epsilon / 20.0, max(math.sqrt(1e-3 * epsilon / steps), 1e-4)):.2g}")


def kept_terms(examples: int, rate: float) -> tuple[list[float], list[float]]:
    """(k, probability) for the accounting by privacy losses; the binomial's tail is moved to its worst end.

    k = 0 … K in order, and G behind them where a tail was moved; probabilities sum to 1.
    """
    weights = np.exp(Mixture(examples, rate).log_weights())
    above = np.cumsum(weights[::-1])[::-1]
    last = max(int(np.flatnonzero(above > MOVED_TAIL)[-1]), 1)
    # From the light end nothing is moved upwards but what is light as well: it would cost a term each.
    k = [*map(float, range(last + 1))]
    kept = weights[: last + 1].tolist()
    if last < examples:
        k.append(float(examples))
        kept.append(float(weights[last + 1 :].sum()))
    total = math.fsum(kept)
    return k, [one / total for one in kept]


def epsilon_by_losses(
    sigma: float, examples: int, rate: float, steps: int, delta: float, grid: float
) -> float:
    """An upper bound of ε of T steps: privacy losses of both directions, rounded upwards to a grid and composed.

    Source: Choquette-Choo et al. 2023 for the pair, Doroshenko et al. 2022 for the grid, by dp-accounting.
    """
    if examples == 1:
        return sampled_gaussian_epsilon(sigma, rate, steps, 0.0, delta, grid)
    k, weights = kept_terms(examples, rate)
    return mixture_epsilon(sigma, k, weights, steps, delta, grid)


MOST_TERMS = 400
"""Of a mixture, by privacy losses: more take minutes."""


def takes_too_long(examples: int, rate: float) -> bool:
    """Whether the accounting of privacy losses is left out, and the quick bound is all there is."""
    return rate < 1.0 and examples > 1 and len(kept_terms(examples, rate)[0]) > MOST_TERMS


class _Stopped(Exception):
    """The search was asked to end."""


def multiplier(
    examples: int, rate: float, epsilon: float, delta: float, steps: int, should_stop: ShouldStop = never
) -> float | None:
    """The least noise by the accounting of privacy losses, to 0.1 % and from above; never above `multiplier_at_most`.

    Args:
        examples: As of `multiplier_at_most`, as are all others.
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
    enough = multiplier_at_most(examples, rate, epsilon, delta, steps)
    if rate >= 1.0:
        return enough
    grid = grid_of(epsilon, steps)

    def spent(sigma: float) -> float:
        if should_stop():
            raise _Stopped
        return epsilon_by_losses(sigma, examples, rate, steps, delta, grid)

    try:
        return min(least_noise(spent, epsilon, 0.93 * enough, PLD_TOLERANCE), enough)
    except _Stopped:
        return None
