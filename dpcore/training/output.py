"""Output perturbation, the baseline: minimise exactly with a penalty, then add noise to the minimiser once.

The sum of weighted losses plus N Λ/2 |θ|² is N Λ-strongly convex. A user adds a convex function whose gradient has
norm at most h, so that the minimiser moves by at most h / (N Λ), twice that where a user is replaced (Chaudhuri,
Monteleoni, Sarwate 2011, lemma 7, for users instead of rows). N is the sum of weights where that is public, else what
the same noisy release as in `descent` says of it; given that, everything else is one Gaussian.

Gaussian objective perturbation is not offered: its analysis is for losses of one margin per person, and a user with
two rows has a loss of two margins.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.training import account, optimum
from dpcore.training.descent import compute_total_weight, draw_noise, plan_noise
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import Cell, compute_smooth_weights

REGULARISATION = 0.01
"""Λ. Public, chosen on generated data and no others."""


PENALTY = 0.8
"""Of the rule, in κ √d h: the noise on θ then has norm 1 / `PENALTY`, at any ε. Chosen on generated data."""


def choose_penalty(unit_noise: float, num_features: int, bound: float) -> float:
    """Choose μ of the penalty μ/2 |θ|² beside the SUM of weighted losses, without data and at no cost.

    Args:
        unit_noise: κ, noise of one release of the whole budget over how far a user moves it in bounds.
        num_features: d.
        bound: h, what a user weighs at most.
    """
    return PENALTY * unit_noise * math.sqrt(num_features) * bound


def _perturb_by_rule(
    rows: ClassifierRows, mechanism: Mechanism, cell: Cell, seed: int, runs: range
) -> FloatArray:
    """Perturb the minimiser with the penalty by the rule."""
    unit_noise = account.plan_rule_noise(
        mechanism.epsilon, mechanism.delta, mechanism.neighbours, 1, False, mechanism.user_share
    ).unit_noise
    penalty = choose_penalty(unit_noise, rows.num_features, cell.bound)
    weights = compute_smooth_weights(rows.sizes, cell.bound)[rows.users]
    # `fit_model` takes the mean of the losses: μ beside their sum is μ over the sum of weights beside that.
    theta = optimum.fit_model(
        rows, mechanism.loss, weights, math.inf, penalty / compute_total_weight(rows, cell)
    ).theta
    gradient_noise, _ = draw_noise(replace(mechanism, steps=1), rows.num_features, seed, runs)
    # A user moves the minimiser by at most h / μ; κ includes the factor 2 for a user who is replaced.
    return np.asarray(theta[:, None] + unit_noise * cell.bound / penalty * gradient_noise[0])


def perturb_minimiser(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    seed: int,
    runs: range,
    *,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Release the minimiser with noise in several runs, smooth weights of h = ``cell.bound``, as `descent.train_cell`.

    Returns:
        θ, shape (num_features, runs), projected onto the ball; None where it was stopped.

    Raises:
        ValueError: The loss has no bounded slope, so that no noise covers a user.
    """
    if not mechanism.loss.has_bounded_slope:
        raise ValueError("output perturbation needs a loss of bounded slope")
    if mechanism.pace is Pace.RULE:
        if should_stop():
            return None
        models = _perturb_by_rule(rows, mechanism, cell, seed, runs)
        return np.asarray(
            models / np.maximum(np.sqrt(np.einsum("kr,kr->r", models, models)) / mechanism.radius, 1.0)
        )
    # One step whose gradient sensitivity is h: the same split of the budget, the rest for the minimiser.
    noise = plan_noise(replace(mechanism, steps=1, sampled=1.0, clip=1.0), cell.bound)
    gradient_noise, weight_noise = draw_noise(mechanism, rows.num_features, seed, runs)
    weights = compute_smooth_weights(rows.sizes, cell.bound)[rows.users]
    weight_sum = compute_total_weight(rows, cell)
    models = np.empty((rows.num_features, len(runs)))
    theta = None
    for run_index in range(len(runs)):
        if should_stop():
            return None
        divisor = max(weight_sum + noise.weight * weight_noise[run_index], cell.bound)
        # The sum of losses over N, plus Λ/2 |θ|²: `fit_model` divides by the true sum of weights instead.
        penalty = REGULARISATION * divisor / weight_sum
        if theta is None or noise.weight:
            theta = optimum.fit_model(rows, mechanism.loss, weights, math.inf, penalty, theta).theta
        models[:, run_index] = (
            theta + noise.gradient / (divisor * REGULARISATION) * gradient_noise[0, :, run_index]
        )
    models /= np.maximum(np.sqrt(np.einsum("kr,kr->r", models, models)) / mechanism.radius, 1.0)
    return models
