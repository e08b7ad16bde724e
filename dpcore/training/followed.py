"""Descent by the rule of `pace`, with a bound that is fixed, or one that follows a private quantile of the users.

Clipping the users' summed gradients at h costs a bias of at most one bound for each user that is clipped, if all pull
one way, and noise of κ √d bounds. The two balance where about κ √d users are clipped, whatever the data: so the bound
goes to the quantile that leaves `CLIPPED` times as many above it. In every step the users within the bound are counted,
with noise of their own, and the bound moves by the ratio of what is asked and what is found. It starts near where the
best bounds of fixed ones were, which grow with the root of users over noise, so that it has no long way to go.

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

CLIPPED = 12.0
"""Users that are to be clipped, in κ √d; never more than half of all."""
START = 12.0
"""The first bound is the root of the number of users over κ √d, divided by this; at least `FIRST_BOUND`."""
TURN = 5.0
"""How fast the bound moves: if nobody of those who are to be clipped is, its logarithm falls by this in T steps."""
LARGEST = 0.3
"""Most that the logarithm of the bound moves in a step."""
ENDS = (1e-3, 100.0)
"""The bound stays within."""

Gradient = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), and the bound of each run to the bounded sum of gradients, shape of θ, and how many users
are within the bound, shape (runs,), or None where nobody asks."""
Slopes = Callable[[FloatArray, slice], FloatArray]
"""From the margins of some rows to the slopes of their clipped losses."""


def clipped_sums(
    sums: UserSums, signed: FloatArray, slopes: Slopes, trained: FloatArray | None = None
) -> Gradient:
    """Each user's sum of gradients shortened to the bound of its run; and how many are within.

    Args:
        sums: Of the users.
        signed: As `ClassifierRows.signed`.
        slopes: Of the loss.
        trained: 1 for users who are there, 0 for others, shape (num_users, runs), where runs are on splits of their
            own; None for all users in all runs.
    """

    def gradient(theta: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        total, within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in sums.blocks():
            found = slopes(signed[block.rows] @ theta, block.rows)
            norms = sums.norms(block, found)
            factors = bounds / np.maximum(norms, bounds)
            inside = norms <= bounds
            if trained is not None:
                factors *= trained[block.users]
                inside = inside & (trained[block.users] > 0.0)
            within += inside.sum(axis=0)
            total += signed[block.rows].T @ (found * factors[block.owners])
        return total, within

    return gradient


def quantile(one: float, num_features: int, num_users: FloatArray) -> FloatArray:
    """γ, the share of users that the bound is to leave as they are, shape of ``num_users``."""
    return np.asarray(1.0 - np.minimum(0.5, CLIPPED * one * np.sqrt(num_features) / num_users))


def first_bound(
    least: FloatArray | float, one: float, num_features: int, num_users: FloatArray
) -> FloatArray:
    """Where the bound begins: a rule that looks at the number of users alone, as it is released; its shape."""
    start = np.sqrt(num_users / (one * np.sqrt(num_features))) / START
    return np.asarray(np.clip(np.maximum(start, least), *ENDS))


def next_bound(bounds: FloatArray, within: FloatArray, target: FloatArray, steps: int) -> FloatArray:
    """The bound of the next step.

    Without the division by 1 - γ it would be slow where few users are to be clipped: there the share within can be off
    by 1 - γ at most, however far the bound is from where it belongs.

    Args:
        bounds: Of this step.
        within: Share of the users within it, as released.
        target: γ.
        steps: T.
    """
    turned = np.clip(TURN / steps * (target - within) / (1.0 - target), -LARGEST, LARGEST)
    return np.asarray(np.clip(bounds * np.exp(turned), *ENDS))


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
    follows: bool,
    plan: account.RulePlan,
    should_stop: ShouldStop,
) -> tuple[FloatArray, FloatArray] | None:
    """Models and last bounds of several runs at each of several bounds; the runs have the same noise at each.

    Nesterov's momentum; the model is the mean of the iterates by `pace.averaged`.

    Args:
        gradient: Of the users, bounded.
        mechanism: By the rule.
        num_users: m.
        bound: How far a user moves the sum at most, shape (bounds,); where the bound follows, the least that it may
            begin with.
        noise: Of the runs.
        follows: Whether the bound follows the users.
        plan: How large the noise is.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, bounds × runs), the runs at each bound in turn, and the bound after the last step, shape
        (bounds × runs,); None where it was stopped.
    """
    _, d, of_one = noise.gradient.shape
    runs = bound.size * of_one

    def at_each(of_runs: FloatArray) -> FloatArray:
        return of_runs if bound.size == 1 else np.tile(of_runs, bound.size)

    counted = np.maximum(num_users + plan.number * noise.number, plan.one) if plan.number else num_users
    users = at_each(np.broadcast_to(np.asarray(counted, dtype=np.float64), (of_one,)))
    target = quantile(plan.one, d, users)
    bounds = np.repeat(bound, of_one)
    share = 1.0 if follows else np.minimum(bounds * mechanism.clip, 1.0)
    times, mean = np.ones(runs), np.zeros((d, runs))
    bounds = first_bound(bounds, plan.one, d, users) if follows else bounds
    theta = before = np.zeros((d, runs))
    model, weight = np.zeros((d, runs)), np.zeros(runs)
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        ahead = theta + pace.MOMENTUM * (theta - before)
        exact, within = gradient(ahead, bounds * mechanism.clip)
        before = theta
        direction = exact / (bounds * mechanism.clip) + plan.gradient * at_each(noise.gradient[step - 1])
        mean = pace.faded(mean, direction)
        agreeing = pace.agreement(mean, plan.gradient, step)
        times = pace.growth(times, agreeing, step, mechanism.steps)
        theta = ahead - pace.step_length(plan.one, d, users, mechanism, share, times) * direction
        theta = theta / np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / mechanism.radius, 1.0)
        if follows:
            assert within is not None
            # The count is taken from half of all, so that a user moves it by half of one.
            count = within - num_users / 2.0 + plan.count * at_each(noise.count[step - 1])
            bounds = next_bound(bounds, count / users + 0.5, target, mechanism.steps)
        model, weight = pace.averaged(model, weight, theta, agreeing, step)
    return model, bounds
