"""How much noise training needs: all steps, and the sum of weights where it is private, as one Gaussian.

A sequence of Gaussian mechanisms, each chosen in the light of those before, with sensitivities Δ_k and standard
deviations σ_k is exactly as private as one Gaussian mechanism with (Δ/σ)² = Σ (Δ_k/σ_k)² (Dong, Roth, Su 2022,
corollary 3.3). So the noise of T equal steps is √T times that of one, and nothing is lost in composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcore.common.privacy import GaussianNoise, Neighbours
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
    """

    gradient: float
    weight: float
    steps: int
    gradient_sensitivity: float
    weight_sensitivity: float

    @property
    def squared_ratio(self) -> float:
        """(Δ/σ)² of everything together."""
        found = self.steps * (self.gradient_sensitivity / self.gradient) ** 2
        return found + ((self.weight_sensitivity / self.weight) ** 2 if self.weight else 0.0)


def plan(
    epsilon: float, delta: float, neighbours: Neighbours, bound: float, steps: int, clip: float = 1.0
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
    """
    one = GaussianNoise.for_release(1.0, epsilon, delta).scale
    moved = gradient_steps(neighbours) * bound * clip
    weight = weight_sensitivity(neighbours, bound)
    share = WEIGHT_SHARE if weight else 0.0
    return NoisePlan(
        gradient=one * moved * math.sqrt(steps / (1.0 - share)),
        weight=one * weight / math.sqrt(share) if weight else 0.0,
        steps=steps,
        gradient_sensitivity=moved,
        weight_sensitivity=weight,
    )
