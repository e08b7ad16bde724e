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
from dpcore.training import account, followed, pace
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.rows import ClassifierRows
from dpcore.training.user_sums import BLOCK, UserSums
from dpcore.training.weighting import FIRST_BOUND, Cell, Method, random_ranks, smooth_weights

Gradient = Callable[[FloatArray, FloatArray | None], FloatArray]
"""From θ, shape (num_features, runs), and which users take part, 1 or 0, shape (num_users, runs), to the summed
gradients, shape of θ. None for all users."""


def noise_of(
    mechanism: Mechanism, num_features: int, seed: int, runs: range
) -> tuple[FloatArray, FloatArray]:
    """Standard normal noise of every run: (steps, num_features, runs) and (runs,).

    It depends on the seed and the number of the run alone, so that bounds are compared on the same noise, and so that
    a run is the same whichever others are made with it.
    """
    gradient = np.empty((mechanism.steps, num_features, len(runs)))
    weight = np.empty(len(runs))
    for at, run in enumerate(runs):
        # Second numbers keep the streams of a seed apart: 0 noise, 1 rows under a cap, 2 users held out, 3 the paper's
        # learner, 4 users of a step, 5 counts, 6 a first look, 7 further splits.
        rng = np.random.default_rng([seed, 0, run])
        weight[at] = rng.standard_normal()
        gradient[:, :, at] = rng.standard_normal((mechanism.steps, num_features))
    return gradient, weight


def clipped_slopes(
    rows: ClassifierRows, mechanism: Mechanism, margins: FloatArray, part: slice
) -> FloatArray:
    """Slope of each row's loss, held so that the row's gradient has norm at most ``clip``."""
    slopes = mechanism.loss.slope(margins)
    # Rows have norm 1 at most, and such slopes are at most 1: the clip would change nothing.
    if mechanism.loss.has_bounded_slope and mechanism.clip >= 1.0:
        return slopes
    with np.errstate(divide="ignore"):
        # A row of zeros has no gradient, whatever its slope.
        most = mechanism.clip / rows.norms[part, None]
    return np.clip(slopes, -most, most)


def summed_gradient(rows: ClassifierRows, mechanism: Mechanism, weights: FloatArray) -> Gradient:
    """Σ over rows of weight × clipped gradient.

    Args:
        rows: The data.
        mechanism: Loss and clip.
        weights: Of each row, shape (num_rows, 1), or (num_rows, runs) where runs differ.
    """

    def gradient(theta: FloatArray, chosen: FloatArray | None = None) -> FloatArray:
        total = np.zeros_like(theta)
        block = max(BLOCK // theta.shape[1], 1)
        for start in range(0, rows.num_rows, block):
            part = slice(start, start + block)
            slopes = clipped_slopes(rows, mechanism, rows.signed[part] @ theta, part)
            slopes = slopes * weights[part]
            if chosen is not None:
                slopes *= chosen[rows.users[part]]
            total += rows.signed[part].T @ slopes
        return total

    return gradient


def clipped_user_sums(rows: ClassifierRows, mechanism: Mechanism, bound: float, runs: int) -> Gradient:
    """Σ over users of their summed gradient (rows clipped, weight 1), shortened to norm ``bound`` × clip."""
    sums = UserSums(rows, runs)

    def gradient(theta: FloatArray, chosen: FloatArray | None = None) -> FloatArray:
        total = np.zeros_like(theta)
        for block in sums.blocks():
            slopes = clipped_slopes(rows, mechanism, rows.signed[block.rows] @ theta, block.rows)
            norms = sums.norms(block, slopes)
            # 1 for a user within the bound, so that a sum of 0 is divided by no 0.
            factors = bound * mechanism.clip / np.maximum(norms, bound * mechanism.clip)
            if chosen is not None:
                factors *= chosen[block.users]
            total += rows.signed[block.rows].T @ (slopes * factors[block.owners])
        return total

    return gradient


def _chosen_users(draws: list[np.random.Generator], num_users: int, sampled: float) -> FloatArray | None:
    """Who takes part in a step, 1 or 0, shape (num_users, runs); None for everybody."""
    if not draws:
        return None
    return np.stack([rng.random(num_users) < sampled for rng in draws], axis=1).astype(np.float64)


def without_noise(
    rows: ClassifierRows, mechanism: Mechanism, clipped: bool, should_stop: ShouldStop = never
) -> FloatArray | None:
    """Followed clipped sums with steps and bounds as they are, but no noise; and with no clipping, too.

    It is not private: it says what of the excess is noise, what clipping, and what stopping early.

    Returns:
        θ, shape (num_features, 1); None where it was stopped.
    """
    mechanism = pace.by_rule(mechanism)
    bounded = bounded_gradient(rows, mechanism, [Cell(Method.FOLLOWED)], 0, range(1))
    whole = summed_gradient(rows, mechanism, np.ones((rows.num_rows, 1)))

    def gradient(theta: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        total, within = bounded(theta, bounds)
        return total if clipped else whole(theta, None), within

    plan = account.rule_plan(mechanism.epsilon, mechanism.delta, mechanism.neighbours, mechanism.steps, True)
    none = followed.RuleNoise(
        np.zeros((mechanism.steps, rows.num_features, 1)), np.zeros((mechanism.steps, 1)), np.zeros(1)
    )
    found = followed.descend(
        gradient,
        mechanism,
        rows.num_users,
        np.array([FIRST_BOUND]),
        none,
        follows=True,
        plan=plan,
        should_stop=should_stop,
    )
    return None if found is None else found[0]


def bounded_gradient(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    runs: range,
    ranks: IntArray | None = None,
) -> followed.Gradient:
    """The sum of gradients of a method, for a descent by the rule; ``mechanism`` has the cells' clip in it.

    Its columns are the runs at each bound in turn.
    """
    method = cells[0].method
    if method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        return followed.clipped_sums(
            UserSums(rows, len(cells) * len(runs)),
            rows.signed,
            lambda margins, part: clipped_slopes(rows, mechanism, margins, part),
        )
    if method is Method.CAP:
        order = random_ranks(rows, seed, runs) if ranks is None else ranks
        weights = np.concatenate([order < cell.bound for cell in cells], axis=1).astype(np.float64)
    else:
        of_cells = [smooth_weights(rows.sizes, cell.bound)[rows.users] for cell in cells]
        # Of one bound, a column serves all runs.
        weights = np.repeat(np.stack(of_cells, axis=1), 1 if len(cells) == 1 else len(runs), axis=1)
    weighted = summed_gradient(rows, mechanism, weights)
    return lambda theta, _: (weighted(theta, None), None)


def noise_plan(mechanism: Mechanism, bound: float) -> account.NoisePlan:
    """The noise of this training at a bound."""
    found = account.plan(
        mechanism.epsilon,
        mechanism.delta,
        mechanism.neighbours,
        bound,
        mechanism.steps,
        mechanism.clip,
        mechanism.sampled,
    )
    # On a share of the users the same share of the noise leaves a mean gradient as noisy as on all of them.
    return replace(found, gradient=mechanism.look * found.gradient, weight=mechanism.look * found.weight)


def total_weight(rows: ClassifierRows, cell: Cell) -> float:
    """n_h: what all users weigh together, in rows; the same for smooth weights, caps and clipped sums."""
    return float(rows.histogram.kept_rows(cell.bound))


def train(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    seed: int,
    runs: range,
    *,
    ranks: IntArray | None = None,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """Models of several runs, all of the same mechanism at the same bound.

    With the pace of the rule this is `followed.descend`, for all methods alike; followed clipped sums have that pace,
    whatever was entered.

    Args:
        rows: Users to train on.
        mechanism: What is trained and how.
        cell: The method (not output perturbation, which is `output.perturb`) and its bound.
        seed: Of all runs.
        runs: Their numbers.
        ranks: As `random_ranks` gives them for these runs, for a cap; made here where they are not given.
        should_stop: Asked between steps.

    Returns:
        θ, shape (num_features, runs); None where it was stopped.
    """
    if mechanism.pace is Pace.RULE or cell.method is Method.FOLLOWED:
        return train_together(rows, mechanism, [cell], seed, runs, ranks=ranks, should_stop=should_stop)
    mechanism = replace(mechanism, clip=mechanism.clip * cell.clip)
    if cell.method is Method.CAP:
        order = random_ranks(rows, seed, runs) if ranks is None else ranks
        gradient = summed_gradient(rows, mechanism, (order < cell.bound).astype(np.float64))
    elif cell.method is Method.SMOOTH:
        weights = smooth_weights(rows.sizes, cell.bound)[rows.users]
        gradient = summed_gradient(rows, mechanism, weights[:, None])
    else:
        gradient = clipped_user_sums(rows, mechanism, cell.bound, len(runs))
    noise = noise_plan(mechanism, cell.bound)
    steps_noise, weight_noise = noise_of(mechanism, rows.num_features, seed, runs)
    # One user's weight at least: a sum that noise has brought to 0 or below would turn the steps around.
    divisor = np.maximum(total_weight(rows, cell) + noise.weight * weight_noise, cell.bound)
    divisor *= mechanism.sampled  # What takes part in a step is that share of all, in expectation.
    draws = [np.random.default_rng([seed, 4, run]) for run in runs] if mechanism.sampled < 1.0 else []
    theta = np.zeros((rows.num_features, len(runs)))
    kept, first = np.zeros_like(theta), mechanism.average.first(mechanism.steps)
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        chosen = _chosen_users(draws, rows.num_users, mechanism.sampled)
        theta = theta - mechanism.rate / divisor * (
            gradient(theta, chosen) + noise.gradient * steps_noise[step - 1]
        )
        # Back into the ball, and the average below: both read noisy numbers alone, and cost no privacy.
        theta /= np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / mechanism.radius, 1.0)
        if step >= first:
            kept += theta
    return kept / (mechanism.steps - first + 1)


def are_trained_together(one: Cell, other: Cell, mechanism: Mechanism) -> bool:
    """Whether `train_together` takes both: they differ in their bound alone, and descend by the rule."""
    return (
        one.method is other.method
        and one.method is not Method.OUTPUT
        and one.clip == other.clip
        and mechanism.pace is Pace.RULE
    )


def train_together(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cells: Sequence[Cell],
    seed: int,
    runs: range,
    *,
    ranks: IntArray | None = None,
    should_stop: ShouldStop = never,
) -> FloatArray | None:
    """As `train` by the rule for each of several bounds, in one descent.

    A step of few rows takes nearly as long for one bound as for ten: 40 methods and bounds, 20 runs, 1,900 rows on five
    splits took 14 s one by one, and take 5 s.

    Args:
        rows: Users to train on.
        mechanism: What is trained and how.
        cells: Any two of them `are_trained_together`.
        seed: Of all runs.
        runs: Their numbers; the same noise at every bound.
        ranks: As for `train`.
        should_stop: Asked between steps.

    Returns:
        θ, shape (num_features, bounds × runs), the runs at each bound in turn; None where it was stopped.
    """
    mechanism = replace(mechanism, clip=mechanism.clip * cells[0].clip)
    follows = cells[0].method is Method.FOLLOWED
    if follows:
        mechanism = pace.by_rule(mechanism)
    gradient = bounded_gradient(rows, mechanism, cells, seed, runs, ranks)
    plan = account.rule_plan(
        mechanism.epsilon,
        mechanism.delta,
        mechanism.neighbours,
        mechanism.steps,
        follows,
        mechanism.look,
    )
    steps_noise, number = noise_of(mechanism, rows.num_features, seed, runs)
    counts = [np.random.default_rng([seed, 5, run]).standard_normal(mechanism.steps) for run in runs]
    found = followed.descend(
        gradient,
        mechanism,
        rows.num_users,
        np.array([cell.bound for cell in cells]),
        followed.RuleNoise(steps_noise, np.stack(counts, axis=1), number),
        follows=follows,
        plan=plan,
        should_stop=should_stop,
    )
    return None if found is None else found[0]
