"""Discrete Gaussian noise with the account of the continuous one: simulations and releases have the same σ.

OpenDP's sampler draws whole numbers k with probability p(k) ∝ e^(-k²/(2 σ²)), exactly. Rounding a normal draw of the
same σ to the nearest whole number has probabilities q(k). On sums of whole numbers the latter is the Gaussian mechanism
with its result rounded, whose privacy is known exactly. And the two are nearly the same:

    p(k) / q(k) <= 1 / (1 - 1/(24 σ²))                for every k,
    q(k) / p(k) <= e^(K²/(8 σ²)) (1 + 3 e^(-2π²σ²))   for |k| <= K σ.

With u uniform on [-1/2, 1/2], q(k) = e^(-k²/(2 σ²)) / (σ √(2π)) · E[e^(-u²/(2 σ²)) cosh(k u/σ²)], where E u² = 1/12,
cosh >= 1 and cosh(x) <= e^(x²/2), and by Poisson's summation Σ_k e^(-k²/(2 σ²)) lies between σ √(2π) and that times
1 + 3 e^(-2π²σ²). Over N draws, each in the light of those before, the ratios multiply: where rounded normal noise is
(ε₀, δ₀)-DP, discrete noise is so with ε = ε₀ + N (log ratios) and δ = e^(…) (δ₀ + e^ε₀ N P(|k| > K σ)). On the grids
used here σ is above 10⁵, and what is added is below a millionth of ε and δ.
"""

from __future__ import annotations

import math

from dpcore.common.mechanisms import GaussianSteps, start_gaussian_steps
from dpcore.common.privacy import GaussianNoise

_RESERVED_SHARE = 1e-6
"""Of ε and δ, as a share, for what tells discrete noise from rounded normal noise."""


def bound_difference(sigma: float, draws: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Bound how much discrete noise adds to ε and to δ, if rounded normal noise is (ε, δ)-DP.

    Args:
        sigma: Standard deviation, in whole numbers; infinite answers below 10, where the bounds above are of no use.
        draws: N, whole numbers drawn in all.
        epsilon: ε₀.
        delta: δ₀.
    """
    if sigma < 10.0:
        return math.inf, math.inf
    # K such that the tail is below δ₀ e^(-ε₀ - 40) / N: P(|k| > K σ) <= 2 e^(-(K - 1/(2 σ))²/2).
    tail_width = math.sqrt(2.0 * (epsilon + 40.0 + math.log(2.0 * draws / delta))) + 0.5 / sigma
    log_ratio_down = -math.log1p(-1.0 / (24.0 * sigma**2))
    log_ratio_up = tail_width * tail_width / (8.0 * sigma**2) + 1e-300
    added_epsilon = draws * (log_ratio_down + log_ratio_up)
    return added_epsilon, math.expm1(draws * log_ratio_down) * delta + math.exp(
        draws * log_ratio_down - 40.0
    ) * delta


def account_exactly(
    squared_sensitivity: int,
    draws: int,
    epsilon: float,
    delta: float,
) -> GaussianSteps:
    """Account a sequence of noisy integer vectors as one Gaussian mechanism; nothing is drawn.

    Args:
        squared_sensitivity: The sum over all vectors, whole, at least 1.
        draws: Entries of all vectors together.
        epsilon: Of all of them together.
        delta: Strictly between 0 and 1, likewise.

    Returns:
        The noise, and an (ε, δ) that it keeps, at most what was asked for. Where σ is too small for the argument
        above, OpenDP's own account through zCDP, with more noise.

    Raises:
        InvalidInput: A parameter is out of range.

    Source: the bounds above; Dong, Roth and Su 2022, corollary 3.3; Balle and Wang 2018, theorem 8, by dp-accounting;
        Canonne, Kamath and Steinke 2020 for the sampler.
    """
    usable_share = 1.0 - _RESERVED_SHARE
    unit = GaussianNoise.for_release(1.0, usable_share * epsilon, usable_share * delta).scale
    # A little more, so that the rounding of root and product leaves no less noise than is accounted for.
    sigma = unit * math.sqrt(squared_sensitivity) * (1.0 + 1e-15)
    additions = bound_difference(sigma, draws, usable_share * epsilon, usable_share * delta)
    total = usable_share * epsilon + additions[0], usable_share * delta + additions[1]
    if total[0] <= epsilon and total[1] <= delta:
        # The rest of a millionth is not worth a number of its own: the requested ε and δ are returned.
        return GaussianSteps(epsilon, delta, sigma, squared_sensitivity)
    return start_gaussian_steps(squared_sensitivity, epsilon, delta)
