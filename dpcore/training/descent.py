"""Noisy full-batch gradient descent, all runs at once as the columns of matrices.

One step adds up every row's gradient, clipped and weighted so that no user moves the sum by more than the bound, adds
Gaussian noise, and goes down. Steps and step size are as entered, or by the rule of `mechanism`, with a bound that is
fixed, or follows a private quantile of users' norms.

Clipping the users' summed gradients at h costs a bias of at most one bound for each user that is clipped, if all pull
one way, and noise of κ √d bounds. The two balance where about κ √d users are clipped, whatever the data: so the bound
goes to the quantile that leaves `CLIPPED_USERS` times as many above it. In every step the users within the bound are
counted, with noise of their own, and the bound moves by the ratio of the target and the count. It starts near where the
best fixed bounds were, which grow with the root of users over noise.

Everything about a step by the rule is divided by its bound, which may therefore depend on all that was released before
(`account`). A bound below one row shortens single rows, too: the model then minimises a loss that is linear far out,
and a target that is nearer to one voice per user than to one per row.

Source: Andrew, Thakkar, McMahan and Ramaswamy 2021, whose bound moves by a fixed rate toward a quantile chosen by hand.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import account
from dpcore.training.account import Cell, Method, RulePlan, compute_smooth_weights, draw_ranks
from dpcore.training.mechanism import (
    MOMENTUM,
    Mechanism,
    Pace,
    apply_rule,
    average_iterate,
    choose_step_length,
    fade_mean,
    grow_steps,
    measure_agreement,
)
from dpcore.training.rows import ClassifierRows

BLOCK = 200_000
"""Entries of a rows × runs matrix in one block: 1.6 MB, about a core's own cache."""


@dataclass(frozen=True, eq=False)
class _UserBlock:
    """A block of users with the sparse matrix from their rows' slopes to their sums, a line per user and feature."""

    users: slice
    rows: slice
    owners: IntArray  # The position of each row's user in the block.
    matrix: Any


def _cut_into_blocks(rows: ClassifierRows, num_runs: int) -> list[_UserBlock]:
    """Cut users into blocks of about `BLOCK` entries of a rows × runs matrix, each of whole users.

    One sparse matrix takes the slopes of a block's rows to the sums of its users, with no array of rows × features ×
    num_runs: ten times as fast as adding up feature by feature at 7 features and 50 runs.
    """
    from scipy.sparse import coo_array

    starts = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, max(BLOCK // num_runs, 1)))
    cuts = np.unique(np.append(starts, rows.num_users)).tolist()
    blocks = []
    for first_user, last_user in itertools.pairwise(cuts):
        first_row = int(rows.starts[first_user])
        row_slice = slice(first_row, int(rows.starts[last_user - 1] + rows.sizes[last_user - 1]))
        owners = rows.users[row_slice] - first_user
        # One line per user and feature, with the signed feature of each of the user's rows.
        lines = (owners[:, None] * rows.num_features + np.arange(rows.num_features)).ravel()
        columns = np.repeat(np.arange(owners.size), rows.num_features)
        shape = ((last_user - first_user) * rows.num_features, owners.size)
        matrix = coo_array((rows.signed[row_slice].ravel(), (lines, columns)), shape=shape).tocsr()
        blocks.append(_UserBlock(slice(first_user, last_user), row_slice, owners, matrix))
    return blocks


CLIPPED_USERS = 12.0
"""Target of the users who are clipped, in κ √d; never more than half of all."""
START_DIVISOR = 12.0
"""The first bound is the root of (number of users / κ √d), divided by this; at least `FIRST_BOUND`."""
BOUND_RATE = 5.0
"""The logarithm of the bound falls by this in T steps if nobody is clipped."""
MAX_LOG_CHANGE = 0.3
BOUND_RANGE = (1e-3, 100.0)

Gradient = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), the bound of each run, and who takes part (1 or 0, shape (num_users, runs), None:
everybody) to the bounded sum of gradients, shape of θ, and the number of users within the bound, shape (runs,), or
None."""


def make_clipped_sums(rows: ClassifierRows, mechanism: Mechanism, num_runs: int) -> Gradient:
    """Make the function that clips each user's sum of gradients to the bound of its run, and counts users within."""
    blocks, signed = _cut_into_blocks(rows, num_runs), rows.signed

    def gradient(
        theta: FloatArray, bounds: FloatArray, is_chosen: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        total, num_within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in blocks:
            row_slopes = clip_slopes(rows, mechanism, signed[block.rows] @ theta, block.rows)
            sums = (block.matrix @ row_slopes).reshape(-1, *theta.shape)
            norms = np.sqrt(np.einsum("ukr,ukr->ur", sums, sums))
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
bound, shape of θ, and the noisy share of users within the bound, shape (runs,), or None for a fixed bound."""


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

    repeat_for_bounds = functools.partial(np.tile, reps=bound.size)
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


def draw_noise(
    mechanism: Mechanism, num_features: int, seed: int, runs: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Draw standard normal noise for every run: (steps, num_features, runs) and (runs,).

    It depends on the seed and the number of the run alone, so that bounds are compared on the same noise.
    """
    gradient_noise, weight_noise = np.empty((mechanism.steps, num_features, len(runs))), np.empty(len(runs))
    for run_index, run in enumerate(runs):
        # Second numbers keep the streams of a seed apart: 0 noise, 1 rows under a cap, 2 users held out, 3 the paper's
        # learner, 4 users of a step, 5 counts, 6 a first look, 7 further splits.
        rng = np.random.default_rng([seed, 0, run])
        weight_noise[run_index] = rng.standard_normal()
        gradient_noise[:, :, run_index] = rng.standard_normal((mechanism.steps, num_features))
    return gradient_noise, weight_noise


def clip_slopes(
    rows: ClassifierRows, mechanism: Mechanism, margins: FloatArray, row_slice: slice
) -> FloatArray:
    """Compute the slope of each row's loss, clipped so that the row's gradient has norm at most ``clip``."""
    slopes = mechanism.loss.differentiate(margins)
    # Rows have norm 1 at most, and such slopes are at most 1: the clip would change nothing.
    if mechanism.loss.has_bounded_slope and mechanism.clip >= 1.0:
        return slopes
    with np.errstate(divide="ignore"):
        # A row of zeros has no gradient, whatever its slope.
        max_slopes = mechanism.clip / rows.norms[row_slice, None]
    return np.clip(slopes, -max_slopes, max_slopes)


def make_weighted_gradient(rows: ClassifierRows, mechanism: Mechanism, weights: FloatArray) -> Gradient:
    """Make the function that sums weight × clipped gradient over rows.

    Args:
        rows: The data.
        mechanism: The loss and the clip.
        weights: The weight of each row, shape (num_rows, 1), or (num_rows, runs) where runs differ.
    """

    def gradient(
        theta: FloatArray, bounds: FloatArray, is_chosen: FloatArray | None = None
    ) -> tuple[FloatArray, None]:
        total = np.zeros_like(theta)
        block = max(BLOCK // theta.shape[1], 1)
        for start in range(0, rows.num_rows, block):
            row_slice = slice(start, start + block)
            slopes = clip_slopes(rows, mechanism, rows.signed[row_slice] @ theta, row_slice)
            slopes = slopes * weights[row_slice]
            if is_chosen is not None:
                slopes *= is_chosen[rows.users[row_slice]]
            total += rows.signed[row_slice].T @ slopes
        return total, None

    return gradient


def make_bounded_gradient(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    runs: Sequence[int],
    ranks: IntArray | None = None,
) -> Gradient:
    """Make the gradient of a method; ``mechanism`` includes the cells' clip.

    Its columns are the runs at each bound in turn. Clipped sums alone read the bounds that it is called with.
    """
    method = cells[0].method
    if method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        return make_clipped_sums(rows, mechanism, len(cells) * len(runs))
    if method is Method.CAP:
        row_ranks = draw_ranks(rows, seed, runs) if ranks is None else ranks
        weights = np.concatenate([row_ranks < cell.bound for cell in cells], axis=1).astype(np.float64)
    else:
        cell_weights = [compute_smooth_weights(rows.sizes, cell.bound)[rows.users] for cell in cells]
        # With a single bound, one column serves all runs.
        weights = np.repeat(np.stack(cell_weights, axis=1), 1 if len(cells) == 1 else len(runs), axis=1)
    return make_weighted_gradient(rows, mechanism, weights)


def descend_without_noise(
    rows: ClassifierRows, mechanism: Mechanism, has_clipping: bool, should_stop: ShouldStop = never
) -> FloatArray | None:
    """Run followed clipped sums with the same steps and bounds but without noise, with or without clipping.

    It is not private: it splits the excess into noise, clipping, and stopping early.

    Returns:
        θ, shape (num_features, 1); None where it was stopped.
    """
    mechanism, cell = apply_rule(mechanism), Cell(Method.FOLLOWED)
    bounded_gradient = make_bounded_gradient(rows, mechanism, [cell], 0, range(1))
    weighted_gradient = make_weighted_gradient(rows, mechanism, np.ones((rows.num_rows, 1)))

    def gradient(
        theta: FloatArray, bounds: FloatArray, is_chosen: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray | None]:
        total, num_within = bounded_gradient(theta, bounds, is_chosen)
        return total if has_clipping else weighted_gradient(theta, bounds, is_chosen)[0], num_within

    steps, num_features = mechanism.steps, rows.num_features
    result = simulate(
        gradient,
        mechanism,
        rows.num_users,
        np.array([cell.bound]),
        RuleNoise(np.zeros((steps, num_features, 1)), np.zeros((steps, 1)), np.zeros(1)),
        bound_follows=True,
        plan=account.plan_rule_noise(replace(mechanism, user_share=1.0), True),
        should_stop=should_stop,
    )
    return None if result is None else result[0]


def descend_as_entered(
    take_gradient: Callable[[FloatArray, int], FloatArray],
    mechanism: Mechanism,
    num_features: int,
    divisor: FloatArray,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Descend with the steps and the step size that were entered, in one or several runs.

    Args:
        take_gradient: From θ and the number of the step to the noisy sum of gradients, shape of θ.
        mechanism: With the steps as entered.
        num_features: d.
        divisor: The sum of weights, public or noisy, shape (runs,).
        should_stop: Asked between steps.

    Returns:
        The average of the iterates, shape (num_features, runs); None where it was stopped.
    """
    theta = np.zeros((num_features, divisor.size))
    iterate_sum, first_averaged = np.zeros_like(theta), mechanism.average.find_first_step(mechanism.steps)
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        theta = mechanism.project(theta - mechanism.learning_rate / divisor * take_gradient(theta, step))
        if step >= first_averaged:
            iterate_sum += theta
    return np.asarray(iterate_sum / (mechanism.steps - first_averaged + 1))


def train_cells(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    runs: Sequence[int],
    *,
    ranks: IntArray | None = None,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Train models of several runs at one bound, or by the rule at several bounds in one descent.

    With the pace of the rule all methods descend by it; followed clipped sums do, whatever was entered. A step of few
    rows takes nearly as long for one bound as for ten.

    Args:
        rows: Users to train on.
        mechanism: What is trained and how.
        cells: A method (not output perturbation, which is `optimum.perturb_minimiser`) with its bound; by the rule,
            several that differ only in their bound.
        seed: Of all runs.
        runs: Their numbers; the same noise at every bound.
        ranks: As `draw_ranks` gives them for these runs, for a cap; made here where they are not given.
        should_stop: Asked between steps.

    Returns:
        θ, shape (num_features, bounds × runs), the runs at each bound in turn; None where it was stopped.
    """
    first_cell = cells[0]
    mechanism = replace(mechanism, clip=mechanism.clip * first_cell.clip)
    bound_follows = first_cell.method is Method.FOLLOWED
    if bound_follows:
        mechanism = apply_rule(mechanism)
    gradient = make_bounded_gradient(rows, mechanism, cells, seed, runs, ranks)
    steps_noise, number_noise = draw_noise(mechanism, rows.num_features, seed, runs)
    if mechanism.pace is Pace.RULE:
        count_noise = [np.random.default_rng([seed, 5, run]).standard_normal(mechanism.steps) for run in runs]
        result = simulate(
            gradient,
            mechanism,
            rows.num_users,
            np.array([cell.bound for cell in cells]),
            RuleNoise(steps_noise, np.stack(count_noise, axis=1), number_noise),
            bound_follows=bound_follows,
            plan=account.plan_rule_noise(mechanism, bound_follows),
            should_stop=should_stop,
        )
        return None if result is None else result[0]
    bound = first_cell.bound
    noise, bounds = account.plan_noise(mechanism, bound), np.full(len(runs), bound * mechanism.clip)
    # At least one user's weight: a sum that noise made 0 or negative would reverse the steps.
    divisor = np.maximum(float(rows.histogram.kept_rows(bound)) + noise.weight * number_noise, bound)
    divisor *= mechanism.sampled  # What takes part in a step is that share of all, in expectation.
    rngs = [np.random.default_rng([seed, 4, run]) for run in runs] if mechanism.sampled < 1.0 else []

    def take_gradient(theta: FloatArray, step: int) -> FloatArray:
        # The users who take part in this step, 1 or 0, shape (num_users, runs).
        chosen = [rng.random(rows.num_users) < mechanism.sampled for rng in rngs]
        is_chosen = np.stack(chosen, axis=1).astype(np.float64) if chosen else None
        return np.asarray(gradient(theta, bounds, is_chosen)[0] + noise.gradient * steps_noise[step - 1])

    return descend_as_entered(take_gradient, mechanism, rows.num_features, divisor, should_stop)
