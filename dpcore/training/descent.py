"""Noisy full-batch gradient descent, all runs at once as the columns of matrices.

One step adds up every row's gradient, clipped and weighted so that no user moves the sum by more than the bound, adds
Gaussian noise, and goes down. Steps and step size are as entered, or by the rule of `mechanism`, with a bound that is
fixed, or follows a private quantile of users' norms.

Clipping the users' summed gradients at h costs noise of κ √d bounds, and a bias of at most one bound for each clipped
user, if all pull one way. The two balance where about κ √d users are clipped, whatever the data: so the bound goes to
the quantile that leaves `CLIPPED_USERS_FACTOR` times as many above it. In every step the users within the bound are
counted, with noise of their own, and the bound moves by the ratio of the target and the count. It starts near where
the best fixed bounds were, which grow with the root of users over noise.

Everything about a step by the rule is divided by its bound, which may therefore depend on all that was released before
(`account`). A bound below one row shortens single rows, too. The model then minimises a loss that is linear far out,
and its target is nearer to one voice per user than to one per row.

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
from dpcore.training import mechanism as descent_rule
from dpcore.training.account import Cell, Method, RulePlan, compute_smooth_weights, draw_ranks
from dpcore.training.mechanism import Mechanism, Pace, apply_rule, average_iterate
from dpcore.training.rows import ClassifierRows

BLOCK_CELLS = 200_000
"""Entries of a rows × runs matrix in one block: 1.6 MB, about a core's own cache."""


@dataclass(frozen=True, eq=False)
class _UserBlock:
    """Consecutive users, with the sparse matrix from their rows' slopes to their summed gradients."""

    user_slice: slice
    row_slice: slice
    user_of_rows: IntArray  # The position of each row's user in the block.
    summing_matrix: Any  # SciPy sparse array: a line per user and feature, a column per row.


def _cut_into_blocks(rows: ClassifierRows, num_runs: int) -> list[_UserBlock]:
    """Cut users into blocks of about `BLOCK_CELLS` entries of a rows × runs matrix, each of whole users.

    One sparse matrix takes the slopes of a block's rows to the sums of its users, with no array of rows × features ×
    num_runs. This is ten times as fast as adding up feature by feature at 7 features and 50 runs.
    """
    from scipy.sparse import coo_array

    first_users = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, max(BLOCK_CELLS // num_runs, 1)))
    block_first_users = np.unique(np.append(first_users, rows.num_users)).tolist()
    first_row_of_users = np.append(rows.starts, rows.num_rows)
    user_blocks = []
    for first_user, last_user in itertools.pairwise(block_first_users):
        row_slice = slice(int(first_row_of_users[first_user]), int(first_row_of_users[last_user]))
        user_of_rows = rows.user_codes[row_slice] - first_user
        # One line per user and feature, with the signed feature of each of the user's rows.
        matrix_rows = (user_of_rows[:, None] * rows.num_features + np.arange(rows.num_features)).ravel()
        matrix_columns = np.repeat(np.arange(user_of_rows.size), rows.num_features)
        matrix_shape = ((last_user - first_user) * rows.num_features, user_of_rows.size)
        coo_entries = (rows.signed_features[row_slice].ravel(), (matrix_rows, matrix_columns))
        summing_matrix = coo_array(coo_entries, shape=matrix_shape).tocsr()
        user_blocks.append(_UserBlock(slice(first_user, last_user), row_slice, user_of_rows, summing_matrix))
    return user_blocks


CLIPPED_USERS_FACTOR = 12.0
"""Target of the users who are clipped, in κ √d; never more than half of all."""
START_DIVISOR = 12.0
"""The first bound is the root of (number of users / κ √d), divided by this; at least `FIRST_BOUND`."""
BOUND_ADAPTATION_RATE = 5.0
"""The logarithm of the bound falls by this in T steps if nobody is clipped."""
MAX_LOG_BOUND_CHANGE = 0.3
BOUND_RANGE = (1e-3, 100.0)

Gradient = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]]
"""Takes θ, shape (d, runs), the bound of each run, and who takes part (1 or 0, shape (num_users, runs), None:
everybody). Returns the bounded sum of gradients, shape of θ, and the number of users within the bound, shape (runs,),
or None."""


def make_clipped_gradient(rows: ClassifierRows, mechanism: Mechanism, num_runs: int) -> Gradient:
    """Return a `Gradient` function that clips users' sums of gradients and counts users within the bound."""
    user_blocks, signed_rows = _cut_into_blocks(rows, num_runs), rows.signed_features

    def sum_clipped_gradients(
        theta: FloatArray, bounds: FloatArray, participation: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the clipped sum of users whose ``participation`` is 1 (None: all), and how many are within bounds."""
        gradient_sum, num_within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in user_blocks:
            row_slopes = clip_slopes(rows, mechanism, signed_rows[block.row_slice] @ theta, block.row_slice)
            user_sums = (block.summing_matrix @ row_slopes).reshape(-1, *theta.shape)
            user_norms = np.sqrt(np.einsum("ukr,ukr->ur", user_sums, user_sums))
            clip_factors = bounds / np.maximum(user_norms, bounds)
            within_bound_mask = user_norms <= bounds
            if participation is not None:
                clip_factors *= participation[block.user_slice]
                within_bound_mask &= participation[block.user_slice] > 0.0
            num_within += within_bound_mask.sum(axis=0)
            gradient_sum += signed_rows[block.row_slice].T @ (row_slopes * clip_factors[block.user_of_rows])
        return gradient_sum, num_within

    return sum_clipped_gradients


def choose_quantile(unit_noise: float, num_features: int, num_users_per_run: FloatArray) -> FloatArray:
    """Compute the share of users that the adaptive bound aims to leave unclipped, at least ½, for each run."""
    clipped_shares = CLIPPED_USERS_FACTOR * unit_noise * np.sqrt(num_features) / num_users_per_run
    return np.asarray(1.0 - np.minimum(0.5, clipped_shares))


DirectionAndShare = tuple[FloatArray, FloatArray | None]
Direction = Callable[[FloatArray, FloatArray, int], DirectionAndShare]
"""Takes θ, shape (d, runs), the bound of each run, and the number of the step. Returns the noisy sum of gradients over
the bound, shape of θ, and the noisy share of users within the bound, shape (runs,), or None for a fixed bound."""


def descend_by_rule(
    take_direction: Direction,
    mechanism: Mechanism,
    num_features: int,
    num_users_per_run: FloatArray,
    first_bounds: FloatArray,
    rule_plan: RulePlan,
    should_stop: ShouldStop = never,
) -> tuple[FloatArray, FloatArray] | None:
    """Descend with steps by the rule and Nesterov's momentum; return models and last bounds, None if stopped.

    Return the models and the last bounds, None if stopped.

    It reads the data through ``take_direction`` alone: step lengths, bounds and the mean of the iterates follow from
    numbers that were released with noise, and cost no privacy.

    Args:
        take_direction: Reads the data, with noise.
        mechanism: By the rule.
        num_features: d.
        num_users_per_run: The number of users, as released in each run, shape (runs,).
        first_bounds: How far a user moves the sum at most in every step, shape (runs,); where the bound follows, the
            least that it may begin with.
        rule_plan: How large the noise is, and whether the bound follows the users.
        should_stop: Asked between steps.

    Returns:
        The mean of the iterates θ, shape (d, runs), and the bounds of the last step, shape (runs,); None where it was
        stopped.
    """
    unit_noise = rule_plan.unit_noise
    target_quantiles = choose_quantile(unit_noise, num_features, num_users_per_run)
    stable_step_share = 1.0 if rule_plan.bound_follows else np.minimum(first_bounds * mechanism.clip, 1.0)
    current_bounds = next_bounds = first_bounds
    if rule_plan.bound_follows:  # The first bound reads only the released number of users.
        users_over_noise = num_users_per_run / (unit_noise * np.sqrt(num_features))
        next_bounds = np.clip(
            np.maximum(np.sqrt(users_over_noise) / START_DIVISOR, current_bounds), *BOUND_RANGE
        )
    step_factors, averaging_weight_sums = np.ones(current_bounds.size), np.zeros(current_bounds.size)
    theta = previous_theta = mean_theta = fading_mean = np.zeros((num_features, current_bounds.size))
    for step_number in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        current_bounds = next_bounds
        extrapolated_theta = theta + descent_rule.MOMENTUM * (theta - previous_theta)
        direction, shares_within_bound = take_direction(extrapolated_theta, current_bounds, step_number)
        fading_mean = descent_rule.fade_mean(fading_mean, direction)
        agreements = descent_rule.measure_agreement(fading_mean, rule_plan.direction_noise_std, step_number)
        step_factors = descent_rule.grow_steps(step_factors, agreements, step_number, mechanism.steps)
        step_lengths = descent_rule.choose_step_length(
            unit_noise, num_features, num_users_per_run, mechanism, stable_step_share, step_factors
        )
        previous_theta, theta = theta, mechanism.project(extrapolated_theta - step_lengths * direction)
        mean_theta, averaging_weight_sums = average_iterate(
            mean_theta, averaging_weight_sums, theta, agreements, step_number
        )
        if shares_within_bound is not None:
            # Without the division by 1 - γ it would be slow where few users are to be clipped: there the share within
            # can be off by 1 - γ at most, however far the bound is from its target.
            log_bound_changes = (
                BOUND_ADAPTATION_RATE / mechanism.steps * (target_quantiles - shares_within_bound)
            )
            log_bound_changes /= 1.0 - target_quantiles
            bound_factors = np.exp(np.clip(log_bound_changes, -MAX_LOG_BOUND_CHANGE, MAX_LOG_BOUND_CHANGE))
            next_bounds = np.clip(current_bounds * bound_factors, *BOUND_RANGE)
    return mean_theta, current_bounds


@dataclass(frozen=True, eq=False)
class RuleNoise:
    """Standard normal noise of several runs.

    Attributes:
        gradient_draws: Shape (steps, d, runs).
        count_draws: Shape (steps, runs).
        num_users_draws: Shape (runs,).
    """

    gradient_draws: FloatArray
    count_draws: FloatArray
    num_users_draws: FloatArray


def simulate_descents(
    sum_gradients: Gradient,
    mechanism: Mechanism,
    num_users: int,
    first_bounds: FloatArray,
    rule_noise: RuleNoise,
    rule_plan: RulePlan,
    should_stop: ShouldStop = never,
) -> tuple[FloatArray, FloatArray] | None:
    """Simulate runs of the descent by the rule at several bounds, with the same noise at each; return None if stopped.

    Args:
        sum_gradients: The bounded gradient of the users.
        mechanism: By the rule.
        num_users: m.
        first_bounds: As ``first_bounds`` in `descend_by_rule`, one for all runs at a bound, shape (bounds,).
        rule_noise: Standard normal noise of the runs.
        rule_plan: How large the noise is, and whether the bound follows the users.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, bounds × runs), the runs at each bound in turn, and the bounds of the last step, shape
        (bounds × runs,); None where it was stopped.
    """
    _, num_features, runs_per_bound = rule_noise.gradient_draws.shape
    tile_for_bounds = functools.partial(np.tile, reps=first_bounds.size)
    num_users_per_run = np.full(runs_per_bound * first_bounds.size, float(num_users))
    if rule_plan.num_users_noise_std:
        num_all_users_errors = rule_plan.num_users_noise_std * tile_for_bounds(rule_noise.num_users_draws)
        num_users_per_run = np.maximum(num_users + num_all_users_errors, rule_plan.unit_noise)

    def take_direction(theta: FloatArray, bounds: FloatArray, step_number: int) -> DirectionAndShare:
        """Return the noisy sum of gradients over the bound, and the noisy share of users within it, as `Direction`."""
        gradient_sum, num_within = sum_gradients(theta, bounds * mechanism.clip, None)
        gradient_errors = rule_plan.direction_noise_std * tile_for_bounds(
            rule_noise.gradient_draws[step_number - 1]
        )
        direction = gradient_sum / (bounds * mechanism.clip) + gradient_errors
        if not rule_plan.bound_follows or num_within is None:
            return direction, None
        # The count is taken from half of all, so that a user moves it by half of one.
        num_within_errors = rule_plan.count_noise_std * tile_for_bounds(
            rule_noise.count_draws[step_number - 1]
        )
        return direction, (num_within - num_users / 2.0 + num_within_errors) / num_users_per_run + 0.5

    bounds_per_run = np.repeat(first_bounds, runs_per_bound)
    return descend_by_rule(
        take_direction, mechanism, num_features, num_users_per_run, bounds_per_run, rule_plan, should_stop
    )


def draw_noise(
    mechanism: Mechanism, num_features: int, seed: int, run_numbers: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Draw standard normal noise: for gradients, shape (steps, num_features, runs), and for another sum, shape (runs,).

    The other sum is that of weights, or by the rule the number of users. Noise depends on the seed and the number of
    the run alone, so that bounds are compared on the same noise.
    """
    gradient_draws = np.empty((mechanism.steps, num_features, len(run_numbers)))
    weight_sum_draws = np.empty(len(run_numbers))
    for run_index, run_number in enumerate(run_numbers):
        # Second numbers keep the streams of a seed apart: 0 noise, 1 rows under a cap, 2 users held out, 3 the paper's
        # learner, 4 users of a step, 5 counts, 6 a first look, 7 further splits.
        rng = np.random.default_rng([seed, 0, run_number])
        weight_sum_draws[run_index] = rng.standard_normal()
        gradient_draws[:, :, run_index] = rng.standard_normal((mechanism.steps, num_features))
    return gradient_draws, weight_sum_draws


def clip_slopes(
    rows: ClassifierRows, mechanism: Mechanism, margins: FloatArray, row_slice: slice
) -> FloatArray:
    """Compute the slope of each loss in a block of rows, clipped so that a row's gradient has norm at most the clip."""
    loss_slopes = mechanism.loss.differentiate(margins)
    # Rows have norm 1 at most, and such slopes are at most 1: the clip would change nothing.
    if mechanism.loss.has_bounded_slope and mechanism.clip >= 1.0:
        return loss_slopes
    with np.errstate(divide="ignore"):
        # A row of zeros has no gradient, whatever its slope.
        max_slopes = mechanism.clip / rows.norms[row_slice, None]
    return np.clip(loss_slopes, -max_slopes, max_slopes)


def make_weighted_gradient(rows: ClassifierRows, mechanism: Mechanism, row_weights: FloatArray) -> Gradient:
    """Return a `Gradient` function that sums weight times clipped gradient over the rows of the users who take part.

    In place of a number of users, it returns None.

    Args:
        rows: The data.
        mechanism: The loss and the clip.
        row_weights: The weight of each row, shape (num_rows, 1), or (num_rows, runs) where runs differ.
    """

    def sum_weighted_gradients(
        theta: FloatArray, bounds: FloatArray, participation: FloatArray | None = None
    ) -> tuple[FloatArray, None]:
        """Return the weighted sum and None: the bounds are not read, and nobody is counted."""
        gradient_sum = np.zeros_like(theta)
        block_size = max(BLOCK_CELLS // theta.shape[1], 1)
        for first_row_index in range(0, rows.num_rows, block_size):
            row_slice = slice(first_row_index, first_row_index + block_size)
            loss_slopes = clip_slopes(rows, mechanism, rows.signed_features[row_slice] @ theta, row_slice)
            loss_slopes = loss_slopes * row_weights[row_slice]
            if participation is not None:
                loss_slopes *= participation[rows.user_codes[row_slice]]
            gradient_sum += rows.signed_features[row_slice].T @ loss_slopes
        return gradient_sum, None

    return sum_weighted_gradients


def make_bounded_gradient(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    run_numbers: Sequence[int],
    known_ranks: IntArray | None = None,
) -> Gradient:
    """Return the `Gradient` function of cells that differ only in their bound; ``mechanism`` includes their clip.

    Its columns are the runs at each bound in turn. Clipped sums alone read the bounds that it is called with.
    """
    method = cells[0].method
    if method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        return make_clipped_gradient(rows, mechanism, len(cells) * len(run_numbers))
    if method is Method.CAP:
        row_ranks = draw_ranks(rows, seed, run_numbers) if known_ranks is None else known_ranks
        row_weights = np.concatenate([row_ranks < cell.bound for cell in cells], axis=1).astype(np.float64)
    else:
        weights_per_cell = [compute_smooth_weights(rows.sizes, cell.bound)[rows.user_codes] for cell in cells]
        # With a single bound, one column serves all runs.
        columns_per_cell = 1 if len(cells) == 1 else len(run_numbers)
        row_weights = np.repeat(np.stack(weights_per_cell, axis=1), columns_per_cell, axis=1)
    return make_weighted_gradient(rows, mechanism, row_weights)


def descend_without_noise(
    rows: ClassifierRows, mechanism: Mechanism, has_clipping: bool, should_stop: ShouldStop = never
) -> FloatArray | None:
    """Run clipped sums with an adaptive bound without noise, and without clipping if asked; return θ, None if stopped.

    It is not private: it splits the excess into noise, clipping, and stopping early.

    Returns:
        θ, shape (num_features, 1); None where it was stopped.
    """
    mechanism = apply_rule(mechanism)
    sum_clipped_gradients = make_clipped_gradient(rows, mechanism, 1)
    sum_plain_gradients = make_weighted_gradient(rows, mechanism, np.ones((rows.num_rows, 1)))

    def sum_gradients(
        theta: FloatArray, bounds: FloatArray, participation: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the sum of gradients, clipped only if ``has_clipping``, and the number of users within the bound."""
        gradient_sum, num_within = sum_clipped_gradients(theta, bounds, participation)
        if not has_clipping:
            gradient_sum, _ = sum_plain_gradients(theta, bounds, participation)
        return gradient_sum, num_within

    num_steps, num_features = mechanism.steps, rows.num_features
    theta_and_bounds = simulate_descents(
        sum_gradients,
        mechanism,
        rows.num_users,
        np.array([account.FIRST_BOUND]),
        RuleNoise(np.zeros((num_steps, num_features, 1)), np.zeros((num_steps, 1)), np.zeros(1)),
        account.plan_rule_noise(replace(mechanism, user_share=1.0), True),
        should_stop,
    )
    return None if theta_and_bounds is None else theta_and_bounds[0]


def descend_as_entered(
    take_gradient: Callable[[FloatArray, int], FloatArray],
    mechanism: Mechanism,
    num_features: int,
    weight_sums: FloatArray,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Descend with the entered steps and step size; return each run's average of the iterates, or None if stopped.

    Args:
        take_gradient: From θ and the number of the step to the noisy sum of gradients, shape of θ.
        mechanism: With the steps as entered.
        num_features: d.
        weight_sums: The sum of weights, public or noisy, shape (runs,).
        should_stop: Asked between steps.

    Returns:
        The average of the iterates, shape (num_features, runs); None where it was stopped.
    """
    theta = np.zeros((num_features, weight_sums.size))
    iterate_sum = np.zeros_like(theta)
    first_averaged_step = mechanism.average.find_first_step(mechanism.steps)
    for step_number in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        theta = mechanism.project(
            theta - mechanism.learning_rate / weight_sums * take_gradient(theta, step_number)
        )
        if step_number >= first_averaged_step:
            iterate_sum += theta
    return np.asarray(iterate_sum / (mechanism.steps - first_averaged_step + 1))


def train_cells(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    run_numbers: Sequence[int],
    known_ranks: IntArray | None = None,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Train a method several times at one bound, or by the rule at several bounds at once.

    With the pace of the rule, and for a bound that follows, steps and step size are those of the rule in place of the
    entered ones. A step of few rows takes nearly as long for one bound as for ten.

    Args:
        rows: Users to train on.
        mechanism: What is trained and how.
        cells: A method (not output perturbation, which is `optimum.perturb_minimiser`) with its bound; by the rule,
            several that differ only in their bound.
        seed: Of all runs.
        run_numbers: The numbers of the runs; a run has the same noise at every bound.
        known_ranks: As `draw_ranks` gives them for these runs, for a cap; made here where they are not given.
        should_stop: Asked between steps.

    Returns:
        θ, shape (num_features, bounds × runs), the runs at each bound in turn; None where it was stopped.
    """
    first_cell = cells[0]
    mechanism = replace(mechanism, clip=mechanism.clip * first_cell.clip)
    bound_follows = first_cell.method is Method.FOLLOWED
    if bound_follows:
        mechanism = apply_rule(mechanism)
    sum_gradients = make_bounded_gradient(rows, mechanism, cells, seed, run_numbers, known_ranks)
    gradient_draws, weight_sum_draws = draw_noise(mechanism, rows.num_features, seed, run_numbers)
    if mechanism.pace is Pace.RULE:
        count_rngs = [np.random.default_rng([seed, 5, run_number]) for run_number in run_numbers]
        count_draws = np.stack([rng.standard_normal(mechanism.steps) for rng in count_rngs], axis=1)
        theta_and_bounds = simulate_descents(
            sum_gradients,
            mechanism,
            rows.num_users,
            np.array([cell.bound for cell in cells]),
            RuleNoise(gradient_draws, count_draws, weight_sum_draws),
            account.plan_rule_noise(mechanism, bound_follows),
            should_stop,
        )
        return None if theta_and_bounds is None else theta_and_bounds[0]
    bound, noise_plan = first_cell.bound, account.plan_noise(mechanism, first_cell.bound)
    gradient_bounds = np.full(len(run_numbers), bound * mechanism.clip)
    # At least one user's weight: a sum that noise made 0 or negative would reverse the steps.
    noisy_weight_sums = (
        float(rows.histogram.count_kept_rows(bound)) + noise_plan.weight_noise_std * weight_sum_draws
    )
    weight_sums = np.maximum(noisy_weight_sums, bound)
    weight_sums *= mechanism.sampled  # What takes part in a step is that share of all, in expectation.
    is_sampled = mechanism.sampled < 1.0
    sampling_rngs = [np.random.default_rng([seed, 4, run_number]) for run_number in run_numbers if is_sampled]

    def take_gradient(theta: FloatArray, step_number: int) -> FloatArray:
        """Return the noisy sum of the bounded gradients of the users who take part in the step, shape of θ."""
        participant_masks = [rng.random(rows.num_users) < mechanism.sampled for rng in sampling_rngs]
        participation = np.stack(participant_masks, axis=1).astype(np.float64) if is_sampled else None
        gradient_sum, _ = sum_gradients(theta, gradient_bounds, participation)
        return np.asarray(gradient_sum + noise_plan.gradient_noise_std * gradient_draws[step_number - 1])

    return descend_as_entered(take_gradient, mechanism, rows.num_features, weight_sums, should_stop)
