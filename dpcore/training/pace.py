"""Steps and step size by a rule that looks at no private data but the number of users, which is paid for.

All T steps together are one Gaussian (`account`), so that their number costs nothing: noise of a step is √T times that
of one release. What costs is how far the descent travels. With every step divided by the bound h, the noise of one step
has standard deviation κ √T on each coordinate, and momentum m carries it on by 1 / (1 - m) steps. Where the loss is
flat, T steps of length η leave noise of norm η κ √d T / (1 - m) on θ: the rule travels until that is `NOISE_NORM`, and
no faster than is stable on the sum of all users' losses. Many users are so given all the way to the minimum, few are
stopped early.

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
STABLE = 0.75
"""Share of 1 / (smoothness × number of users), the longest step that is taken."""


def by_rule(mechanism: Mechanism) -> Mechanism:
    """The same training with steps and step size by the rule."""
    return replace(
        mechanism,
        steps=STEPS,
        step_size=Mechanism.step_size,
        average=Average.LAST_HALF,
        sampled=1.0,
        pace=Pace.RULE,
    )


def step_length(
    one: float, num_features: int, num_users: FloatArray, mechanism: Mechanism, share: float = 1.0
) -> FloatArray:
    """η, what the summed gradient over the bound is multiplied with, shape of ``num_users``.

    Args:
        one: κ, noise of one release of the whole budget of a vector that a user moves by 1 (or comes or goes with 1).
        num_features: d.
        num_users: n, public or as a private release says.
        mechanism: Its loss and steps.
        share: Of the longest stable step: below 1 where a fixed bound below a row makes gradients over it steeper.
    """
    travel = (1.0 - MOMENTUM) * NOISE_NORM / (one * np.sqrt(num_features) * mechanism.steps)
    return np.asarray(np.minimum(travel, STABLE * share / (mechanism.loss.smoothness * num_users)))
