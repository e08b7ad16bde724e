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

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.training import account, optimum
from dpcore.training.descent import noise_of, total_weight
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import Cell, smooth_weights

REGULARISATION = 0.01
"""Λ. Public, chosen on generated data and no others."""


def perturb(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    seed: int,
    runs: range,
    *,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Models of several runs, smooth weights of h = ``cell.bound``; arguments as in `descent.train`.

    Returns:
        θ, shape (num_features, runs), projected onto the ball; None where it was stopped.

    Raises:
        ValueError: The loss has no bounded slope, so that no noise covers a user.
    """
    if not mechanism.loss.has_bounded_slope:
        raise ValueError("output perturbation needs a loss of bounded slope")
    # One step whose gradient sensitivity is h: the same split of the budget, the rest for the minimiser.
    noise = account.plan(mechanism.epsilon, mechanism.delta, mechanism.neighbours, cell.bound, 1)
    gradient_noise, weight_noise = noise_of(mechanism, rows.num_features, seed, runs)
    weights = smooth_weights(rows.sizes, cell.bound)[rows.users]
    whole = total_weight(rows, cell)
    found = np.empty((rows.num_features, len(runs)))
    theta = None
    for at in range(len(runs)):
        if should_stop():
            return None
        divisor = max(whole + noise.weight * weight_noise[at], cell.bound)
        # The sum of losses over N, plus Λ/2 |θ|²: `fit` divides by the true sum of weights instead.
        penalty = REGULARISATION * divisor / whole
        if theta is None or noise.weight:
            theta = optimum.fit(rows, mechanism.loss, weights, math.inf, penalty, theta).theta
        found[:, at] = theta + noise.gradient / (divisor * REGULARISATION) * gradient_noise[0, :, at]
    found /= np.maximum(np.sqrt(np.einsum("kr,kr->r", found, found)) / mechanism.radius, 1.0)
    return found
