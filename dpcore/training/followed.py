"""Descent by the rule of `pace`, with a bound that is fixed, or one that follows a private quantile of the users.

Clipping the users' summed gradients at h costs a bias of at most one bound for each user that is clipped, if all pull
one way, and noise of κ √d bounds. The two balance where about κ √d users are clipped, whatever the data: so the bound
goes to the quantile that leaves `CLIPPED_USERS` times as many above it. In every step the users within the bound are
counted, with noise of their own, and the bound moves by the ratio of what is asked and what is found. It starts near
where the best bounds of fixed ones were, which grow with the root of users over noise, so that it has no long way to
go.

Everything about a step is divided by its bound, which may therefore depend on all that was released before (`account`).
A bound below one row shortens single rows, too: the model then minimises a loss that is linear far out, and a target
that is nearer to one voice per user than to one per row.

The idea of a bound that follows a private quantile is that of Andrew, Thakkar, McMahan and Ramaswamy 2021; theirs moves
by a fixed rate toward a quantile that is chosen by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray
from dpcore.training import account, pace
from dpcore.training.mechanism import Mechanism
from dpcore.training.user_sums import UserSums

CLIPPED_USERS = 12.0
"""Users that are to be clipped, in κ √d; never more than half of all."""
START_DIVISOR = 12.0
"""The first bound is the root of the number of users over κ √d, divided by this; at least `FIRST_BOUND`."""
BOUND_RATE = 5.0
"""How fast the bound moves: if nobody of those who are to be clipped is, its logarithm falls by this in T steps."""
MAX_LOG_CHANGE = 0.3
"""Most that the logarithm of the bound moves in a step."""
BOUND_RANGE = (1e-3, 100.0)
"""The bound stays within."""

Gradient = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), and the bound of each run to the bounded sum of gradients, shape of θ, and how many users
are within the bound, shape (runs,), or None where nobody asks."""
Slopes = Callable[[FloatArray, slice], FloatArray]
"""From the margins of some rows to the slopes of their clipped losses."""


def make_clipped_sums(
    sums: UserSums, signed: FloatArray, slopes: Slopes, is_trained: FloatArray | None = None
) -> Gradient:
    """Make the function that clips each user's sum of gradients to the bound of its run, and counts users within.

    Args:
        sums: Of the users.
        signed: As `ClassifierRows.signed`.
        slopes: Of the loss.
        is_trained: 1 for users who are there, 0 for others, shape (num_users, runs), where runs are on splits of their
            own; None for all users in all runs.
    """

    def gradient(theta: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        total, num_within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in sums.iterate_blocks():
            row_slopes = slopes(signed[block.rows] @ theta, block.rows)
            norms = sums.compute_norms(block, row_slopes)
            factors = bounds / np.maximum(norms, bounds)
            is_inside = norms <= bounds
            if is_trained is not None:
                factors *= is_trained[block.users]
                is_inside = is_inside & (is_trained[block.users] > 0.0)
            num_within += is_inside.sum(axis=0)
            total += signed[block.rows].T @ (row_slopes * factors[block.owners])
        return total, num_within

    return gradient


def choose_quantile(unit_noise: float, num_features: int, num_users: FloatArray) -> FloatArray:
    """Compute γ, the share of users within the bound that the bound aims at, shape of ``num_users``."""
    return np.asarray(1.0 - np.minimum(0.5, CLIPPED_USERS * unit_noise * np.sqrt(num_features) / num_users))


def choose_first_bound(
    smallest_bound: FloatArray | float, unit_noise: float, num_features: int, num_users: FloatArray
) -> FloatArray:
    """Choose the first bound by a rule that reads only the released number of users; its shape."""
    start = np.sqrt(num_users / (unit_noise * np.sqrt(num_features))) / START_DIVISOR
    return np.asarray(np.clip(np.maximum(start, smallest_bound), *BOUND_RANGE))


def update_bound(bounds: FloatArray, share_within: FloatArray, target: FloatArray, steps: int) -> FloatArray:
    """Compute the bound of the next step.

    Without the division by 1 - γ it would be slow where few users are to be clipped: there the share within can
    be off by 1 - γ at most, however far the bound is from its target.

    Args:
        bounds: Of this step.
        share_within: Share of the users within it, as released.
        target: γ.
        steps: T.
    """
    log_change = np.clip(
        BOUND_RATE / steps * (target - share_within) / (1.0 - target), -MAX_LOG_CHANGE, MAX_LOG_CHANGE
    )
    return np.asarray(np.clip(bounds * np.exp(log_change), *BOUND_RANGE))


@dataclass(frozen=True, eq=False)
class RuleNoise:
    """Standard normal noise of several runs.

    Attributes:
        gradient: Shape (steps, d, runs).
        count: Shape (steps, runs).
        number: Shape (runs,).
    """

    gradient: FloatArray
    count: FloatArray
    number: FloatArray


def descend(
    gradient: Gradient,
    mechanism: Mechanism,
    num_users: int,
    bound: FloatArray,
    noise: RuleNoise,
    *,
    bound_follows: bool,
    plan: account.RulePlan,
    should_stop: ShouldStop,
) -> tuple[FloatArray, FloatArray] | None:
    """Descend in several runs at each of several bounds; the runs have the same noise at each bound.

    Nesterov's momentum; the model is the mean of the iterates by `pace.average_iterate`.

    Args:
        gradient: Of the users, bounded.
        mechanism: By the rule.
        num_users: m.
        bound: How far a user moves the sum at most, shape (bounds,); where the bound follows, the least that it may
            begin with.
        noise: Of the runs.
        bound_follows: Whether the bound follows the users.
        plan: How large the noise is.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, bounds × runs), the runs at each bound in turn, and the bound after the last step, shape
        (bounds × runs,); None where it was stopped.
    """
    _, num_features, runs_per_bound = noise.gradient.shape
    runs = bound.size * runs_per_bound

    def repeat_for_bounds(run_values: FloatArray) -> FloatArray:
        return run_values if bound.size == 1 else np.tile(run_values, bound.size)

    noisy_users = (
        np.maximum(num_users + plan.number * noise.number, plan.unit_noise) if plan.number else num_users
    )
    users = repeat_for_bounds(np.broadcast_to(np.asarray(noisy_users, dtype=np.float64), (runs_per_bound,)))
    target = choose_quantile(plan.unit_noise, num_features, users)
    bounds = np.repeat(bound, runs_per_bound)
    stable_share = 1.0 if bound_follows else np.minimum(bounds * mechanism.clip, 1.0)
    step_factors, fading_mean = np.ones(runs), np.zeros((num_features, runs))
    bounds = choose_first_bound(bounds, plan.unit_noise, num_features, users) if bound_follows else bounds
    theta = previous = np.zeros((num_features, runs))
    model, weight = np.zeros((num_features, runs)), np.zeros(runs)
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        extrapolated = theta + pace.MOMENTUM * (theta - previous)
        gradient_sum, num_within = gradient(extrapolated, bounds * mechanism.clip)
        previous = theta
        direction = gradient_sum / (bounds * mechanism.clip) + plan.gradient * repeat_for_bounds(
            noise.gradient[step - 1]
        )
        fading_mean = pace.fade_mean(fading_mean, direction)
        agreements = pace.measure_agreement(fading_mean, plan.gradient, step)
        step_factors = pace.grow_steps(step_factors, agreements, step, mechanism.steps)
        theta = (
            extrapolated
            - pace.choose_step_length(
                plan.unit_noise, num_features, users, mechanism, stable_share, step_factors
            )
            * direction
        )
        theta = theta / np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / mechanism.radius, 1.0)
        if bound_follows:
            assert num_within is not None
            # The count is taken from half of all, so that a user moves it by half of one.
            count = num_within - num_users / 2.0 + plan.count * repeat_for_bounds(noise.count[step - 1])
            bounds = update_bound(bounds, count / users + 0.5, target, mechanism.steps)
        model, weight = pace.average_iterate(model, weight, theta, agreements, step)
    return model, bounds
