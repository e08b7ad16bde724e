"""Noisy full-batch gradient descent, all runs at once as the columns of matrices.

One step adds up every row's gradient, clipped and weighted so that no user moves the sum by more than the bound, adds
Gaussian noise, divides by the sum of weights (public, or noisy), and goes down. Runs differ in their noise, and under
a cap in their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import account, adaptive_bound
from dpcore.training.account import Cell, Method, compute_smooth_weights, draw_ranks
from dpcore.training.adaptive_bound import BLOCK, Gradient, RuleNoise, UserSums, make_clipped_sums
from dpcore.training.mechanism import Mechanism, Pace, apply_rule
from dpcore.training.rows import ClassifierRows


def draw_noise(
    mechanism: Mechanism, num_features: int, seed: int, runs: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Draw standard normal noise for every run: (steps, num_features, runs) and (runs,).

    It depends on the seed and the number of the run alone, so that bounds are compared on the same noise, and
    so that a run is the same whichever others are made with it.
    """
    gradient_noise = np.empty((mechanism.steps, num_features, len(runs)))
    weight_noise = np.empty(len(runs))
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
        mechanism: Loss and clip.
        weights: Of each row, shape (num_rows, 1), or (num_rows, runs) where runs differ.
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
        return make_clipped_sums(
            UserSums(rows, len(cells) * len(runs)),
            rows.signed,
            lambda margins, row_slice: clip_slopes(rows, mechanism, margins, row_slice),
        )
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
    result = adaptive_bound.simulate(
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


def compute_total_weight(rows: ClassifierRows, cell: Cell) -> float:
    """Compute n_h, the weight of all users in rows; the same for smooth weights, caps and clipped sums."""
    return float(rows.histogram.kept_rows(cell.bound))


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
    iterate_sum, first_averaged = np.zeros_like(theta), mechanism.average.first_step(mechanism.steps)
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
    rows takes nearly as long for one bound as for ten: 40 methods and bounds, 20 runs, 1,900 rows on five splits took
    14 s one by one, and take 5 s.

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
        result = adaptive_bound.simulate(
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
    divisor = np.maximum(compute_total_weight(rows, first_cell) + noise.weight * number_noise, bound)
    divisor *= mechanism.sampled  # What takes part in a step is that share of all, in expectation.
    rngs = [np.random.default_rng([seed, 4, run]) for run in runs] if mechanism.sampled < 1.0 else []

    def take_gradient(theta: FloatArray, step: int) -> FloatArray:
        # The users who take part in this step, 1 or 0, shape (num_users, runs).
        chosen = [rng.random(rows.num_users) < mechanism.sampled for rng in rngs]
        is_chosen = np.stack(chosen, axis=1).astype(np.float64) if chosen else None
        return np.asarray(gradient(theta, bounds, is_chosen)[0] + noise.gradient * steps_noise[step - 1])

    return descend_as_entered(take_gradient, mechanism, rows.num_features, divisor, should_stop)
