"""How much noise training needs: all steps, and the sum of weights where it is private, as one Gaussian.

A sequence of Gaussian mechanisms, each chosen in the light of those before, with sensitivities Δ_k and standard
deviations σ_k is exactly as private as one Gaussian mechanism with (Δ/σ)² = Σ (Δ_k/σ_k)² (Dong, Roth, Su 2022,
corollary 3.3). So the noise of T equal steps is √T times that of one, and nothing is lost in composition.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from dpcore.common.privacy import GaussianNoise, Neighbours, sampled_gaussian_epsilon
from dpcore.training.weighting import gradient_steps, weight_sensitivity

WEIGHT_SHARE = 0.05
"""Of the budget, as a share of (Δ/σ)², for the sum of weights where that is private. Public, chosen on no data."""


@dataclass(frozen=True)
class NoisePlan:
    """Noise of one training.

    Attributes:
        gradient: Standard deviation of the noise on each coordinate of a step's summed gradient (rows × clip).
        weight: Of that on the sum of weights, in rows; 0 where the sum is public.
        steps: T.
        gradient_sensitivity: L2 sensitivity of a step's summed gradient that it rests on.
        weight_sensitivity: That of the sum of weights.
        sampled: Probability with which a user takes part in a step.
    """

    gradient: float
    weight: float
    steps: int
    gradient_sensitivity: float
    weight_sensitivity: float
    sampled: float = 1.0


def plan(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    bound: float,
    steps: int,
    clip: float = 1.0,
    sampled: float = 1.0,
) -> NoisePlan:
    """The least noise at which ``steps`` steps and the sum of weights are (ε, δ)-DP together.

    Args:
        epsilon: Of the whole training.
        delta: Likewise, strictly between 0 and 1.
        neighbours: Add or remove a user; replace a user (their number is public); or change one user's values (all
            counts are public).
        bound: h, what a user weighs at most, in rows.
        steps: T, at least 1.
        clip: Norm to which a row's gradient is clipped.
        sampled: Probability with which each user takes part in a step; below 1 only to add or remove a user.

    Returns:
        Standard deviations that are never too small: what is rounded is rounded upwards.

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Dong, Roth and Su 2022, corollary 3.3, for the steps together; Balle and Wang 2018, theorem 8, for the one
        Gaussian; Doroshenko et al. 2022, by dp-accounting, where users are sampled.
    """
    one = GaussianNoise.for_release(1.0, epsilon, delta).scale
    moved = gradient_steps(neighbours) * bound * clip
    weight = weight_sensitivity(neighbours, bound)
    share = WEIGHT_SHARE if weight else 0.0
    multiplier = one * math.sqrt(steps / (1.0 - share))
    if sampled < 1.0:
        weight_multiplier = one / math.sqrt(share) if weight else 0.0
        multiplier = _sampled_multiplier(epsilon, delta, sampled, steps, weight_multiplier, multiplier)
    return NoisePlan(
        gradient=multiplier * moved,
        weight=one * weight / math.sqrt(share) if weight else 0.0,
        steps=steps,
        gradient_sensitivity=moved,
        weight_sensitivity=weight,
        sampled=sampled,
    )


@functools.lru_cache(maxsize=256)
def _sampled_multiplier(
    epsilon: float, delta: float, sampled: float, steps: int, weight_multiplier: float, enough: float
) -> float:
    """The least noise multiplier of a step, to 0.1 % and from above; ``enough`` is that without sampling."""
    # A grid of a thousandth of a small ε would take minutes; the rounding is upwards, so it only costs noise.
    grid = min(1e-3, max(epsilon / 1000.0, 1e-4))

    def holds(multiplier: float) -> bool:
        return sampled_gaussian_epsilon(multiplier, sampled, steps, weight_multiplier, delta, grid) <= epsilon

    low, high = 0.0, enough
    while high - low > 1e-3 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
