"""Descent under a bound that may follow a private quantile of users' norms, for simulations and for releases.

The descent has the rule of `mechanism`, with a bound that is fixed, or one that follows a private quantile. Clipping
the users' summed gradients at h costs a bias of at most one bound for each user that is clipped, if all pull one way,
and noise of κ √d bounds. The two balance where about κ √d users are clipped, whatever the data: so the bound goes to
the quantile that leaves `CLIPPED_USERS` times as many above it. In every step the users within the bound are counted,
with noise of their own, and the bound moves by the ratio of what is asked and what is found. It starts near where the
best bounds of fixed ones were, which grow with the root of users over noise, so that it has no long way to go.

Everything about a step is divided by its bound, which may therefore depend on all that was released before
(`account`). A bound below one row shortens single rows, too: the model then minimises a loss that is linear far out,
and a target that is nearer to one voice per user than to one per row.

The idea of a bound that follows a private quantile is that of Andrew, Thakkar, McMahan and Ramaswamy 2021; theirs
moves by a fixed rate toward a quantile that is chosen by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.training.account import RulePlan
from dpcore.training.mechanism import (
    MOMENTUM,
    Mechanism,
    average_iterate,
    choose_step_length,
    fade_mean,
    grow_steps,
    measure_agreement,
)
from dpcore.training.rows import ClassifierRows

BLOCK = 200_000
"""Entries of a rows × runs matrix that are worked on at once: 1.6 MB, about what a core's own cache holds."""


@dataclass(frozen=True, eq=False)
class _UserBlock:
    """A block of users with the matrix from their rows to their sums."""

    users: slice
    rows: slice
    owners: IntArray
    """Position of each row's user among the users of the block."""
    matrix: Any
    """Sparse: the rows' slopes to the users' sums, one line per user and feature."""


class UserSums:
    """The sums of some rows, prepared once for all steps.

    One sparse matrix takes the slopes of a block's rows to the sums of its users, with no array of rows × features ×
    runs: ten times as fast as adding up feature by feature at 7 features and 50 runs.
    """

    def __init__(self, rows: ClassifierRows, runs: int) -> None:
        self._rows = rows
        # Blocks of about `BLOCK` entries of a rows × runs matrix, each of whole users.
        starts = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, max(BLOCK // runs, 1)))
        cuts = np.unique(np.append(starts, rows.num_users)).tolist()
        self.blocks = [self._make_block(*user_range) for user_range in itertools.pairwise(cuts)]

    def _make_block(self, first_user: int, last_user: int) -> _UserBlock:
        """Make a block of users."""
        from scipy.sparse import coo_array

        rows, num_features = self._rows, self._rows.num_features
        first_row = int(rows.starts[first_user])
        row_slice = slice(first_row, int(rows.starts[last_user - 1] + rows.sizes[last_user - 1]))
        owners = rows.users[row_slice] - first_user
        # One line per user and feature, with the signed feature of each of the user's rows.
        lines = (owners[:, None] * num_features + np.arange(num_features)).ravel()
        columns = np.repeat(np.arange(owners.size), num_features)
        shape = ((last_user - first_user) * num_features, owners.size)
        matrix = coo_array((rows.signed[row_slice].ravel(), (lines, columns)), shape=shape).tocsr()
        return _UserBlock(slice(first_user, last_user), row_slice, owners, matrix)

    def compute_norms(self, block: _UserBlock, slopes: FloatArray) -> FloatArray:
        """Compute the norm of each user's sum from the slopes of the block's rows, shape (users, runs)."""
        users = block.users.stop - block.users.start
        sums = (block.matrix @ slopes).reshape(users, self._rows.num_features, slopes.shape[1])
        return np.asarray(np.sqrt(np.einsum("ukr,ukr->ur", sums, sums)))


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

Gradient = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), the bound of each run, and who takes part, 1 or 0, shape (num_users, runs), or None for
everybody, to the bounded sum of gradients, shape of θ, and how many users are within the bound, shape (runs,), or None
where nobody asks."""
Slopes = Callable[[FloatArray, slice], FloatArray]
"""From the margins of some rows to the slopes of their clipped losses."""


def make_clipped_sums(sums: UserSums, signed: FloatArray, slopes: Slopes) -> Gradient:
    """Make the function that clips each user's sum of gradients to the bound of its run, and counts users within.

    Args:
        sums: Of the users.
        signed: As `ClassifierRows.signed`.
        slopes: Of the loss.
    """

    def gradient(
        theta: FloatArray, bounds: FloatArray, is_chosen: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        total, num_within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in sums.blocks:
            row_slopes = slopes(signed[block.rows] @ theta, block.rows)
            norms = sums.compute_norms(block, row_slopes)
            factors = bounds / np.maximum(norms, bounds)
            is_within = norms <= bounds
            if is_chosen is not None:
                factors *= is_chosen[block.users]
                is_within = is_within & (is_chosen[block.users] > 0.0)
            num_within += is_within.sum(axis=0)
            total += signed[block.rows].T @ (row_slopes * factors[block.owners])
        return total, num_within

    return gradient


def choose_quantile(unit_noise: float, num_features: int, num_users: FloatArray) -> FloatArray:
    """Compute γ, the share of users within the bound that the bound aims at, shape of ``num_users``."""
    return np.asarray(1.0 - np.minimum(0.5, CLIPPED_USERS * unit_noise * np.sqrt(num_features) / num_users))


Direction = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), the bound of each run, and the number of the step to the noisy sum of gradients over the
bound, shape of θ, and the noisy share of the users within the bound, shape (runs,), or None if the bound is fixed."""


def descend_by_rule(
    take_direction: Direction,
    mechanism: Mechanism,
    num_features: int,
    num_users: FloatArray,
    bounds: FloatArray,
    *,
    unit_noise: float,
    step_noise: float,
    bound_follows: bool,
    should_stop: ShouldStop = never,
) -> tuple[FloatArray, FloatArray] | None:
    """Descend by the rule, with Nesterov's momentum, in one or several runs.

    It reads the data through ``take_direction`` alone: step lengths, bounds and the mean of the iterates follow from
    numbers that were released with noise, and cost no privacy.

    Args:
        take_direction: Reads the data, with noise.
        mechanism: By the rule.
        num_features: d.
        num_users: As released, shape (runs,).
        bounds: How far a user moves the sum at most, shape (runs,); where the bound follows, the least that it may
            begin with.
        unit_noise: κ.
        step_noise: Standard deviation of the noise of a direction.
        bound_follows: Whether the bound follows the users.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, runs), and the bounds of the last step; None where it was stopped.
    """
    target = choose_quantile(unit_noise, num_features, num_users)
    stable_share = 1.0 if bound_follows else np.minimum(bounds * mechanism.clip, 1.0)
    next_bounds = bounds
    if bound_follows:  # The first bound reads only the released number of users.
        start = np.sqrt(num_users / (unit_noise * np.sqrt(num_features))) / START_DIVISOR
        next_bounds = np.clip(np.maximum(start, bounds), *BOUND_RANGE)
    step_factors, weight = np.ones(bounds.size), np.zeros(bounds.size)
    theta = previous = model = fading_mean = np.zeros((num_features, bounds.size))
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        bounds = next_bounds
        extrapolated = theta + MOMENTUM * (theta - previous)
        direction, share_within = take_direction(extrapolated, bounds, step)
        fading_mean = fade_mean(fading_mean, direction)
        agreements = measure_agreement(fading_mean, step_noise, step)
        step_factors = grow_steps(step_factors, agreements, step, mechanism.steps)
        length = choose_step_length(
            unit_noise, num_features, num_users, mechanism, stable_share, step_factors
        )
        previous, theta = theta, mechanism.project(extrapolated - length * direction)
        model, weight = average_iterate(model, weight, theta, agreements, step)
        if share_within is not None:
            # Without the division by 1 - γ it would be slow where few users are to be clipped: there the share within
            # can be off by 1 - γ at most, however far the bound is from its target.
            log_change = BOUND_RATE / mechanism.steps * (target - share_within) / (1.0 - target)
            log_change = np.clip(log_change, -MAX_LOG_CHANGE, MAX_LOG_CHANGE)
            next_bounds = np.clip(bounds * np.exp(log_change), *BOUND_RANGE)
    return model, bounds


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


def simulate(
    gradient: Gradient,
    mechanism: Mechanism,
    num_users: int,
    bound: FloatArray,
    noise: RuleNoise,
    *,
    bound_follows: bool,
    plan: RulePlan,
    should_stop: ShouldStop = never,
) -> tuple[FloatArray, FloatArray] | None:
    """Simulate several runs at each of several bounds; the runs have the same noise at each bound.

    Args:
        gradient: Of the users, bounded.
        mechanism: By the rule.
        num_users: m.
        bound: As in `descend_by_rule`, shape (bounds,).
        noise: Of the runs.
        bound_follows: Whether the bound follows the users.
        plan: How large the noise is.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, bounds × runs), the runs at each bound in turn, and the bounds of the last step, shape
        (bounds × runs,); None where it was stopped.
    """
    _, num_features, runs_per_bound = noise.gradient.shape

    def repeat_for_bounds(run_values: FloatArray) -> FloatArray:
        return run_values if bound.size == 1 else np.tile(run_values, bound.size)

    users = np.full(runs_per_bound, float(num_users))
    if plan.number:
        users = np.maximum(num_users + plan.number * noise.number, plan.unit_noise)
    users = repeat_for_bounds(users)

    def take_direction(
        theta: FloatArray, bounds: FloatArray, step: int
    ) -> tuple[FloatArray, FloatArray | None]:
        gradient_sum, num_within = gradient(theta, bounds * mechanism.clip, None)
        direction = gradient_sum / (bounds * mechanism.clip) + plan.gradient * repeat_for_bounds(
            noise.gradient[step - 1]
        )
        if not bound_follows or num_within is None:
            return direction, None
        # The count is taken from half of all, so that a user moves it by half of one.
        count = num_within - num_users / 2.0 + plan.count * repeat_for_bounds(noise.count[step - 1])
        return direction, count / users + 0.5

    return descend_by_rule(
        take_direction,
        mechanism,
        num_features,
        users,
        np.repeat(bound, runs_per_bound),
        unit_noise=plan.unit_noise,
        step_noise=plan.gradient,
        bound_follows=bound_follows,
        should_stop=should_stop,
    )
