"""What a bound costs in theory: theorem 4's trade-off, and one whose constants are computed.

Near its minimiser θ* the mean loss is a quadratic with Hessian H. Descent θ ← θ - η (H (θ - θ*) + noise) is then
linear, and the error of the averaged iterate has a closed form in the eigenvalues λ of H. With a_s the weight of the
noise of step s in the average and b that of the start,

    a_s = η · mean over averaged t >= s of (1 - η λ)^(t - s),      b = mean over averaged t of (1 - η λ)^t,

noise of variance v on each coordinate of each step's mean gradient costs an expected excess of ½ Σ_k λ_k v Σ_s a_s²,
and stopping after T steps from 0 one of ½ Σ_k λ_k (b_k θ*_k)². As T grows and all iterates are averaged, T Σ a_s² goes
to 1/λ², and the noise costs ½ κ² (Δ/n_h)² tr H⁻¹, κ the noise of one Gaussian of sensitivity 1 and v = T κ² (Δ/n_h)²;
averaging the last half costs twice that. Sampling costs ½ Σ c² tr(H⁻¹ V), V the variance of a row's gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common import weights
from dpcore.common.privacy import GaussianNoise
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.training.descent import noise_plan
from dpcore.training.mechanism import Average, Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import gradient_steps


@dataclass(frozen=True, eq=False)
class LinearDescent:
    """Descent on a quadratic, by eigenvalue.

    Attributes:
        start_share: b, what is left of the start, shape (num_features,).
        noise_gain: Σ_s a_s², shape (num_features,).
    """

    start_share: FloatArray
    noise_gain: FloatArray


def linear_descent(eigenvalues: FloatArray, rate: float, steps: int, average: Average) -> LinearDescent:
    """b and Σ a_s² of the averaged iterate, for each eigenvalue λ of H.

    Args:
        eigenvalues: λ, shape (num_features,).
        rate: η.
        steps: T.
        average: Which iterates are averaged.
    """
    factor = 1.0 - rate * eigenvalues[:, None]
    first = average.first(steps)
    count = steps - first + 1
    powers = factor ** np.arange(steps + 1)
    start_share = powers[:, first:].mean(axis=1)
    # Noise of step s is in iterate t >= s with η (1 - η λ)^(t - s): sums over t = max(s, first) .. T.
    sums = np.concatenate((np.zeros((factor.size, 1)), np.cumsum(powers, axis=1)), axis=1)
    s = np.arange(1, steps + 1)
    a = rate / count * (sums[:, steps - s + 1] - sums[:, np.maximum(first - s, 0)])
    return LinearDescent(start_share, np.asarray((a * a).sum(axis=1)))


def public_hessian(rows: ClassifierRows, mechanism: Mechanism) -> FloatArray:
    """Eigenvalues of H where every row's loss has its largest curvature (p = ½ of the logistic one), ascending.

    It needs features and no labels. Where features are private, so is it: ε does not cover a choice that rests on it.
    """
    moment = rows.features.T @ rows.features / rows.num_rows
    return np.asarray(np.maximum(np.linalg.eigvalsh(moment) * mechanism.loss.smoothness, 0.0))


def calibrated_trade_off(eigenvalues: FloatArray, mechanism: Mechanism) -> float:
    """A in W² + A Σ c², with the constants of this descent: what sampling costs over what noise costs.

    With V = H, which holds for the logistic loss where the model is right. It leaves out clipping, what drawing users
    for each step adds, and what the sum of weights takes of the budget (which moves no bound).

    Returns:
        A; 0 where no feature varies.
    """
    sampling, noise = calibrated_parts(eigenvalues, mechanism)
    return sampling / noise if noise > 0.0 else 0.0


def calibrated_parts(eigenvalues: FloatArray, mechanism: Mechanism) -> tuple[float, float]:
    """(a, b) of the expected excess (a Σ c² + b W²) / 2: what sampling and what noise cost, near the minimum.

    As in `calibrated_trade_off`, whose A is a / b. What stopping after so many steps costs depends on no bound.
    """
    descent = linear_descent(eigenvalues, mechanism.rate, mechanism.steps, mechanism.average)
    one = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    if mechanism.sampled < 1.0:  # The noise of a step over what takes part in it, in place of κ √T.
        noise_of_step = noise_plan(mechanism, 1.0).gradient / mechanism.clip / mechanism.sampled
        one = noise_of_step / math.sqrt(mechanism.steps)
    moved = one * gradient_steps(mechanism.neighbours) * mechanism.clip
    # With V = H every direction with any curvature costs 1, and less where the descent has not come to its end.
    sampling = float(((1.0 - descent.start_share) ** 2)[eigenvalues > 0.0].sum())
    return sampling, moved**2 * mechanism.steps * float((eigenvalues * descent.noise_gain).sum())


def predicted_excess(
    histogram: ContributionHistogram, thresholds: FloatArray, parts: tuple[float, float]
) -> FloatArray:
    """The expected excess of smooth weights, (a Σ c² + b W²) / 2, shape of ``thresholds``.

    Args:
        histogram: Rows of the users trained on.
        thresholds: h > 0 in rows per user; above the heaviest user's rows nothing changes.
        parts: (a, b) from `calibrated_parts`.
    """
    losses = weights.smooth_losses(
        histogram, np.minimum(np.asarray(thresholds, dtype=np.float64), histogram.max_size)
    )
    sampling, noise = parts
    return np.asarray(0.5 * (sampling * losses.squared_weights + noise * losses.largest_weight**2))


def theorem_trade_off(
    histogram: ContributionHistogram, num_features: int, mechanism: Mechanism, constant: float = 1.0
) -> float:
    """A of theorem 4, log(d) log(n) ε² / log⁴(m/δ) times a constant that the paper leaves open.

    With one feature log(d) is 0 and A with it: the theorem is an upper bound up to constants.

    Source: Epasto et al. 2020, theorem 4 and "Tradeoff weights".
    """
    logs = math.log(num_features) * math.log(histogram.num_rows)
    below = math.log(histogram.num_users / mechanism.delta) ** 4
    return constant * logs * mechanism.epsilon**2 / below


@dataclass(frozen=True)
class TheoryBound:
    """The bound that a trade-off calls for.

    Attributes:
        trade_off: A.
        threshold: Best h of smooth weights, proved.
        cap: Best whole cap, proved.
    """

    trade_off: float
    threshold: weights.Optimum
    cap: weights.Optimum


def theory_bound(histogram: ContributionHistogram, trade_off: float) -> TheoryBound:
    """Best weights and best cap under W² + A Σ c²."""
    return TheoryBound(
        trade_off, weights.best_smooth(histogram, trade_off), weights.best_cap(histogram, trade_off)
    )
