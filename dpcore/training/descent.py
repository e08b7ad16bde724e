"""Noisy full-batch gradient descent, all runs at once as the columns of matrices.

One step adds up every row's gradient, clipped and weighted so that no user moves the sum by more than the bound, adds
Gaussian noise, divides by the sum of weights (public, or noisy), and goes down. Runs differ in their noise, and under
a cap in their rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import account
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import Cell, Method, random_ranks, smooth_weights

_BLOCK = 200_000
"""Entries of a rows × runs matrix that are worked on at once: 1.6 MB, about what a core's own cache holds."""

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
        rng = np.random.default_rng([seed, 0, run])
        weight[at] = rng.standard_normal()
        gradient[:, :, at] = rng.standard_normal((mechanism.steps, num_features))
    return gradient, weight


def clipped_slopes(
    rows: ClassifierRows, mechanism: Mechanism, margins: FloatArray, part: slice
) -> FloatArray:
    """Slope of each row's loss, held so that the row's gradient has norm at most ``clip``."""
    slopes = mechanism.loss.slope(margins)
    if mechanism.loss.has_bounded_slope and mechanism.clip >= 1.0:
        return slopes
    with np.errstate(divide="ignore"):
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
        block = max(_BLOCK // theta.shape[1], 1)
        for start in range(0, rows.num_rows, block):
            part = slice(start, start + block)
            slopes = clipped_slopes(rows, mechanism, rows.signed[part] @ theta, part)
            slopes = slopes * weights[part]
            if chosen is not None:
                slopes *= chosen[rows.users[part]]
            total += rows.signed[part].T @ slopes
        return total

    return gradient


def clipped_user_sums(rows: ClassifierRows, mechanism: Mechanism, bound: float) -> Gradient:
    """Σ over users of their summed gradient (rows clipped, weight 1), shortened to norm ``bound`` × clip.

    About d times the work of weights, since every user's sum is formed: 10 times at d = 9.
    """

    def gradient(theta: FloatArray, chosen: FloatArray | None = None) -> FloatArray:
        total = np.zeros_like(theta)
        for first, last in _user_blocks(rows, max(_BLOCK // theta.shape[1], 1)):
            begin, end = int(rows.starts[first]), int(rows.starts[last - 1] + rows.sizes[last - 1])
            part, starts = slice(begin, end), rows.starts[first:last] - begin
            slopes = clipped_slopes(rows, mechanism, rows.signed[part] @ theta, part)
            sums = np.stack(
                [np.add.reduceat(slopes * column[:, None], starts, axis=0) for column in rows.signed[part].T]
            )
            norms = np.sqrt(np.einsum("kur,kur->ur", sums, sums))
            factors = bound * mechanism.clip / np.maximum(norms, bound * mechanism.clip)
            if chosen is not None:
                factors *= chosen[first:last]
            total += np.einsum("kur,ur->kr", sums, factors)
        return total

    return gradient


def _user_blocks(rows: ClassifierRows, block: int) -> list[tuple[int, int]]:
    """Users from and to, each block with about so many rows."""
    marks = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, block))
    cuts = np.unique(np.append(marks, rows.num_users))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _chosen_users(draws: list[np.random.Generator], num_users: int, sampled: float) -> FloatArray | None:
    """Who takes part in a step, 1 or 0, shape (num_users, runs); None for everybody."""
    if not draws:
        return None
    return np.stack([rng.random(num_users) < sampled for rng in draws], axis=1).astype(np.float64)


def noise_plan(mechanism: Mechanism, bound: float) -> account.NoisePlan:
    """The noise of this training at a bound."""
    return account.plan(
        mechanism.epsilon,
        mechanism.delta,
        mechanism.neighbours,
        bound,
        mechanism.steps,
        mechanism.clip,
        mechanism.sampled,
    )


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
    if cell.method is Method.CAP:
        order = random_ranks(rows, seed, runs) if ranks is None else ranks
        gradient = summed_gradient(rows, mechanism, (order < cell.bound).astype(np.float64))
    elif cell.method is Method.SMOOTH:
        weights = smooth_weights(rows.sizes, cell.bound)[rows.users]
        gradient = summed_gradient(rows, mechanism, weights[:, None])
    else:
        gradient = clipped_user_sums(rows, mechanism, cell.bound)
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
        theta /= np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / mechanism.radius, 1.0)
        if step >= first:
            kept += theta
    return kept / (mechanism.steps - first + 1)
