"""Steps and step size by a rule that looks at no private data but the number of users, which is paid for.

All T steps together are one Gaussian (`account`), so that their number costs nothing: noise of a step is √T times that
of one release. What costs is how far the descent travels. With every step divided by the bound h, the noise of one step
has standard deviation κ √T on each coordinate, and momentum m carries it on by 1 / (1 - m) steps. Where the loss is
flat, T steps of length η leave noise of norm η κ √d T / (1 - m) on θ: the rule travels until that is `NOISE_NORM`, and
no faster than is stable on the sum of all users' losses. Many users are so given all the way to the minimum, few are
stopped early.

That length is right where the minimum is near. Where it is far, noisy gradients still point one way after a third of
all steps: their fading mean is then longer than noise would make it, and steps grow, up to `MAX_GROWTH` times, as
long as it is. Gradients are released anyway, with noise of a size that is public, so that this costs no privacy.

The model is a mean of all iterates with weights that rise with their number, and that forgets what was before while
noisy gradients point one way: near the minimum noise has a third less variance in it than in the mean of the last half,
and where the descent is still under way it lies nearer to its end. It costs no privacy, either.

The constants were chosen on generated data and samples, on no data of the person who trains.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.training.mechanism import Average, Mechanism, Pace

STEPS = 200
MOMENTUM = 0.9
NOISE_NORM = 5.0
"""Norm that the noise on θ may come to where no curvature holds it back, the ball having a radius of 20."""
STABLE_SHARE = 0.75
"""Share of 1 / (smoothness × number of users), the longest step that is taken."""
FADE = 0.95
"""What is left in a step of the mean of the noisy gradients before it."""
SETTLED_SHARE = 0.35
"""Share of the steps after which they may grow: until then gradients point one way on all data."""
AGREEMENT_TO_GROW = 3.5
"""How many times as long, squared, that mean must be as noise makes it on average. At 2.5 steps also grew where the
descent was about to settle: with one row per user at ε = 1, the excess rose by a third."""
GROWTH, MAX_GROWTH = 1.05, 3.0
"""By how much steps grow, or shrink again, at a time; and to how many times their length at most."""
AGREEMENT_TO_FORGET = 2.0
"""As `AGREEMENT_TO_GROW`, for what the mean of the iterates forgets by `FADE` in a step; a wrong guess costs little."""


def apply_rule(mechanism: Mechanism) -> Mechanism:
    """Return the same training with steps and step size by the rule."""
    return replace(
        mechanism,
        steps=STEPS,
        step_size=Mechanism.step_size,
        average=Average.LAST_HALF,
        sampled=1.0,
        pace=Pace.RULE,
    )


def choose_step_length(
    unit_noise: float,
    num_features: int,
    num_users: FloatArray,
    mechanism: Mechanism,
    stable_share: FloatArray | float = 1.0,
    step_factor: FloatArray | float = 1.0,
) -> FloatArray:
    """Choose η, the factor of the summed gradient over the bound, shape of ``num_users``.

    Args:
        unit_noise: κ, noise of one release of the whole budget of a vector that a user moves by 1 (or comes or goes
            with 1).
        num_features: d.
        num_users: n, public or as a private release says.
        mechanism: Its loss and steps.
        stable_share: Of the longest stable step: below 1 where a fixed bound below a row makes gradients over it
            steeper.
        step_factor: What the travel is multiplied with, by `grow_steps`.
    """
    travel = (1.0 - MOMENTUM) * NOISE_NORM / (unit_noise * np.sqrt(num_features) * mechanism.steps)
    return np.asarray(
        np.minimum(
            step_factor * travel, STABLE_SHARE * stable_share / (mechanism.loss.smoothness * num_users)
        )
    )


def fade_mean(fading_mean: FloatArray, direction: FloatArray) -> FloatArray:
    """Update the fading mean of noisy gradients over the bound with one more step."""
    return FADE * fading_mean + (1.0 - FADE) * direction


def compute_faded_variance(noise: float) -> float:
    """Return the variance of a coordinate of `fade_mean` after many steps of pure noise."""
    # (1 - f)² times the sum of f^(2k) over the steps before.
    return noise**2 * (1.0 - FADE) / (1.0 + FADE)


def measure_agreement(fading_mean: FloatArray, noise: float, step: int) -> FloatArray:
    """Measure how many times as long, squared, the fading mean is as under noise alone, shape (runs,).

    Args:
        fading_mean: `fade_mean`, with the gradient of this step in it, shape (d, runs).
        noise: Standard deviation of the noise on each coordinate of a gradient over the bound.
        step: Number of this step, from 1.
    """
    squared = np.einsum("kr,kr->r", fading_mean, fading_mean)
    # The mean began at 0: after few steps it holds less noise.
    noise_length = fading_mean.shape[0] * compute_faded_variance(noise) * (1.0 - FADE ** (2 * step))
    return np.asarray(squared / noise_length)


def grow_steps(step_factors: FloatArray, agreements: FloatArray, step: int, steps: int) -> FloatArray:
    """Update the factors of the following steps, shape (runs,).

    Args:
        step_factors: How many times as long they were until now.
        agreements: `measure_agreement` at this step.
        step: Its number, from 1.
        steps: T.
    """
    if step <= SETTLED_SHARE * steps:
        return step_factors
    return np.where(
        agreements > AGREEMENT_TO_GROW,
        np.minimum(step_factors * GROWTH, MAX_GROWTH),
        np.maximum(step_factors / GROWTH, 1.0),
    )


def average_iterate(
    model: FloatArray, weight: FloatArray, theta: FloatArray, agreements: FloatArray, step: int
) -> tuple[FloatArray, FloatArray]:
    """Update the mean of the iterates, and the weight of all of them, with one more.

    Args:
        model: Until now, shape (d, runs).
        weight: Likewise, shape (runs,); 0 before the first step.
        theta: Iterate of this step, shape of ``model``.
        agreements: `measure_agreement` at this step.
        step: Its number, from 1.
    """
    new_weight = weight * np.where(agreements > AGREEMENT_TO_FORGET, FADE, 1.0) + step
    return model + step / new_weight * (theta - model), new_weight
