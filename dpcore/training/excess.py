"""The cost of a bound in theory: theorem 4's trade-off, and one whose constants are computed.

Near its minimiser θ* the mean loss is a quadratic with Hessian H. Descent θ ← θ - η (H (θ - θ*) + noise) is
then linear, and the error of the averaged iterate has a closed form in the eigenvalues λ of H. With a_s the
weight of the noise of step s in the average and b that of the start,

a_s = η · mean over averaged t >= s of (1 - η λ)^(t - s),      b = mean over averaged t of (1 - η λ)^t,

noise of variance v on each coordinate of each step's mean gradient costs an expected excess of ½ Σ_k λ_k v Σ_s
a_s², and stopping after T steps from 0 one of ½ Σ_k λ_k (b_k θ*_k)². As T grows and all iterates are averaged,
T Σ a_s² goes to 1/λ², and the noise costs ½ κ² (Δ/n_h)² tr H⁻¹, κ the noise of one Gaussian of sensitivity 1
and v = T κ² (Δ/n_h)²; averaging the last half costs twice that. Sampling costs ½ Σ c² tr(H⁻¹ V), V the variance
of a row's gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common import weights
from dpcore.common.privacy import GaussianNoise
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.training.account import gradient_sensitivity, plan_noise
from dpcore.training.mechanism import Average, Mechanism
from dpcore.training.rows import ClassifierRows


def solve_linear_descent(
    eigenvalues: FloatArray, rate: float, steps: int, average: Average
) -> tuple[FloatArray, FloatArray]:
    """Compute b and Σ a_s² of the averaged iterate, for each eigenvalue λ of H.

    Args:
        eigenvalues: λ, shape (num_features,).
        rate: η.
        steps: T.
        average: Which iterates are averaged.

    Returns:
        b, what is left of the start, and Σ_s a_s², each of shape (num_features,).
    """
    factor = 1.0 - rate * eigenvalues[:, None]
    first_averaged = average.first_step(steps)
    num_averaged = steps - first_averaged + 1
    powers = factor ** np.arange(steps + 1)
    start_share = powers[:, first_averaged:].mean(axis=1)
    # Noise of step s is in iterate t >= s with η (1 - η λ)^(t - s): sums over t = max(s, first) .. T.
    sums = np.concatenate((np.zeros((factor.size, 1)), np.cumsum(powers, axis=1)), axis=1)
    step_numbers = np.arange(1, steps + 1)
    later_sums = sums[:, steps - step_numbers + 1] - sums[:, np.maximum(first_averaged - step_numbers, 0)]
    noise_weights = rate / num_averaged * later_sums
    return start_share, np.asarray((noise_weights * noise_weights).sum(axis=1))


def compute_public_hessian(rows: ClassifierRows, mechanism: Mechanism) -> FloatArray:
    """Compute the eigenvalues of H if every row's loss has its largest curvature (p = ½ if logistic), ascending.

    It needs features and no labels. If the features are private, so are the eigenvalues: ε does not cover a
    choice that rests on them.
    """
    moment = rows.features.T @ rows.features / rows.num_rows
    return np.asarray(np.maximum(np.linalg.eigvalsh(moment) * mechanism.loss.smoothness, 0.0))


def calibrate_trade_off(eigenvalues: FloatArray, mechanism: Mechanism) -> float:
    """Compute A in W² + A Σ c² with the constants of this descent: the cost of sampling over that of noise.

    With V = H, which holds for the logistic loss where the model is right. It leaves out clipping, the sampling
    of users in each step, and the share of the budget for the sum of weights (which moves no bound).

    Returns:
        A; 0 where no feature varies.
    """
    sampling, noise = calibrate_parts(eigenvalues, mechanism)
    return sampling / noise if noise > 0.0 else 0.0


def calibrate_parts(eigenvalues: FloatArray, mechanism: Mechanism) -> tuple[float, float]:
    """Compute (a, b) of the expected excess (a Σ c² + b W²) / 2: the costs of sampling and of noise.

    As in `calibrate_trade_off`, whose A is a / b. The cost of stopping after so many steps depends on no bound.
    """
    start_share, noise_gain = solve_linear_descent(
        eigenvalues, mechanism.learning_rate, mechanism.steps, mechanism.average
    )
    unit_noise = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    if mechanism.sampled < 1.0:  # The noise of a step over what takes part in it, in place of κ √T.
        noise_of_step = plan_noise(mechanism, 1.0).gradient / mechanism.clip / mechanism.sampled
        unit_noise = noise_of_step / math.sqrt(mechanism.steps)
    noise_of_user = unit_noise * gradient_sensitivity(mechanism.neighbours) * mechanism.clip
    # With V = H every direction with any curvature costs 1, and less where the descent has not come to its end.
    sampling = float(((1.0 - start_share) ** 2)[eigenvalues > 0.0].sum())
    return sampling, noise_of_user**2 * mechanism.steps * float((eigenvalues * noise_gain).sum())


def predict_excess(
    histogram: ContributionHistogram, thresholds: FloatArray, cost_parts: tuple[float, float]
) -> FloatArray:
    """Predict the expected excess of smooth weights, (a Σ c² + b W²) / 2, shape of ``thresholds``.

    Args:
        histogram: Rows of the users trained on.
        thresholds: h > 0 in rows per user; above the heaviest user's rows nothing changes.
        cost_parts: (a, b) from `calibrate_parts`.
    """
    losses = weights.smooth_losses(
        histogram, np.minimum(np.asarray(thresholds, dtype=np.float64), histogram.max_size)
    )
    sampling, noise = cost_parts
    return np.asarray(0.5 * (sampling * losses.squared_weights + noise * losses.largest_weight**2))


def compute_theorem_trade_off(
    histogram: ContributionHistogram, num_features: int, mechanism: Mechanism
) -> float:
    """Compute A of theorem 4, log(d) log(n) ε² / log⁴(m/δ), with 1 for a constant that the paper leaves open.

    With one feature log(d) is 0 and A with it: the theorem is an upper bound up to constants.

    Source: Epasto et al. 2020, theorem 4 and "Tradeoff weights".
    """
    numerator = math.log(num_features) * math.log(histogram.num_rows)
    denominator = math.log(histogram.num_users / mechanism.delta) ** 4
    return numerator * mechanism.epsilon**2 / denominator


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


def find_theory_bound(histogram: ContributionHistogram, trade_off: float) -> TheoryBound:
    """Find the best weights and the best cap under W² + A Σ c²."""
    return TheoryBound(
        trade_off, weights.best_smooth(histogram, trade_off), weights.best_cap(histogram, trade_off)
    )
