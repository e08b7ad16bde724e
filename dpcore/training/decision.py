"""The choice of a method and bound, by the losses in a table of runs, and the bounds that theory calls for.

The cost of a bound in theory: theorem 4's trade-off, and one whose constants are computed.

Near its minimiser θ* the mean loss is a quadratic with Hessian H. Descent θ ← θ - η (H (θ - θ*) + noise) is
then linear, and the error of the averaged iterate has a closed form in the eigenvalues λ of H. With a_s the
weight of the noise of step s in the average and b that of the start,

a_s = η · mean over averaged t >= s of (1 - η λ)^(t - s),      b = mean over averaged t of (1 - η λ)^t,

noise of variance v on each coordinate of each step's mean gradient costs an expected excess of ½ Σ_k λ_k v Σ_s
a_s², and stopping after T steps from 0 one of ½ Σ_k λ_k (b_k θ*_k)². As T grows and all iterates are averaged,
T Σ a_s² goes to 1/λ², and the noise costs ½ κ² (Δ/n_h)² tr H⁻¹, κ the noise of one Gaussian of sensitivity 1
and v = T κ² (Δ/n_h)²; averaging the last half costs twice that. Sampling costs ½ Σ c² tr(H⁻¹ V), V the variance
of a row's gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common import weights
from dpcore.common.privacy import GaussianNoise
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.training.account import Method, gradient_sensitivity, plan_noise
from dpcore.training.experiment import (
    FIRST_LOOK_ROWS,
    MAX_RUNS,
    Experiment,
    References,
    SplitSummary,
    Table,
    select_score,
    summarise_splits,
)
from dpcore.training.mechanism import Average, Mechanism
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit, concatenate_rows

CLOSE_RUNS, CLOSE_SPLITS, CLOSE_CELLS = 4, 4, 3
"""Factors by which runs and splits grow to decide between methods that are close, and the most cells compared."""


@dataclass(frozen=True)
class BestBound:
    """The bound of smallest mean loss in the table.

    Attributes:
        cell_index: Position of its cell.
        low: Smallest bound of the stretch around it whose mean loss is within 5 % of it.
        high: Largest.
    """

    cell_index: int
    low: float
    high: float


def find_best(table: Table, method: Method, cell_index: int | None = None) -> BestBound | None:
    """Find the best bound of a method on the users held out; None if it has no finished run.

    Args:
        table: The finished runs.
        method: The method.
        cell_index: Position of the cell that is taken as the best; None for that of the smallest mean loss.
    """
    cells = table.find_cells(method)
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).means[cells]
    if not np.isfinite(means).any():
        return None
    position = int(np.nanargmin(means)) if cell_index is None else cells.tolist().index(cell_index)
    is_near_optimal = means <= 1.05 * means[position]
    low = high = position
    while low > 0 and is_near_optimal[low - 1]:
        low -= 1
    while high < is_near_optimal.size - 1 and is_near_optimal[high + 1]:
        high += 1
    reaches = [table.experiment.cells[index].reach for index in cells]
    return BestBound(int(cells[position]), reaches[low], reaches[high])


def plan_close_call(table: Table) -> Experiment | None:
    """Plan more runs to decide between the bound that follows and the cells that the table does not distinguish.

    Returns:
        The question for them, with noise of its own; None where the table is not finished, or nothing is open.
    """
    adaptive = find_best(table, Method.FOLLOWED)
    if adaptive is None or not table.is_finished:
        return None
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).means
    least_cell, *_ = cells_by_loss = np.argsort(means).tolist()
    # Step 1: the cells whose loss is within two standard errors of the smallest, about a 95 % interval.
    comparisons = {cell_index: compare_losses(table, cell_index, least_cell) for cell_index in cells_by_loss}
    undecided = [
        cell_index for cell_index, (difference, error) in comparisons.items() if difference <= 2.0 * error
    ]
    compared_cells = sorted({adaptive.cell_index, least_cell, *undecided[:CLOSE_CELLS]})
    if len(compared_cells) < 2 or adaptive.cell_index not in undecided:
        return None
    previous = table.experiment
    # Step 2: fresh runs for them. In the runs that chose it, the best of many looks better than it is.
    seed = (previous.seed + 1_000_003) % 2**31
    runs = min(CLOSE_RUNS * previous.runs, MAX_RUNS)
    cells = tuple(previous.cells[cell_index] for cell_index in compared_cells)
    splits = tuple(_draw_more_splits(previous, seed, runs))
    return Experiment(splits, previous.mechanism, cells, runs, seed)


def _draw_more_splits(
    experiment: Experiment, seed: int, max_splits: int
) -> list[tuple[ClassifierRows, ClassifierRows]]:
    """Draw new splits with as many users held out, nobody twice in a permutation; keep the old ones for many rows.

    At a large ε the users who are held out move a difference more than noise does, of few rows above all.
    """
    if experiment.train.num_rows > 2 * FIRST_LOOK_ROWS or len(experiment.splits) < 2:
        return list(experiment.splits)
    rows, num_test = concatenate_rows(experiment.train, experiment.test), experiment.test.num_users
    splits_per_permutation = max(rows.num_users // num_test, 1)
    splits: list[tuple[ClassifierRows, ClassifierRows]] = []
    for split_index in range(min(CLOSE_SPLITS * len(experiment.splits), max_splits)):
        permutation_index, part_index = divmod(split_index, splits_per_permutation)
        order = np.random.default_rng([seed, 7, permutation_index]).permutation(rows.num_users)
        test_positions = np.arange(part_index * num_test, (part_index + 1) * num_test)
        sides = np.delete(order, test_positions), order[test_positions]
        train, test = (rows.select_users(np.sort(users)) for users in sides)
        splits.append((train, test))
    return splits


def choose_answer(
    table: Table, close_table: Table | None = None, choice_is_free: bool = False
) -> BestBound | None:
    """Choose the method that answers, at its best bound; None before the first run.

    It is the method of the smallest mean loss, unless followed clipped sums are within one standard error of
    it, run by run: they need no choice of a bound by these curves, which ε would not cover.

    Args:
        table: Of all methods.
        close_table: Of the question of `plan_close_call`, which then decides; with whatever runs are done of all its
            cells.
        choice_is_free: The rows are public, so that a bound chosen by the curves costs nothing: what ``close_table``
            finds best answers, by however little.
    """
    if close_table is not None and close_table.runs_done.min() > 1:
        close_cells = close_table.experiment.cells
        decided_index = int(np.argmin(close_table.summarise(Measure.LOSS, ScoreUnit.ROWS).means))
        if not choice_is_free:
            decided_index = _choose_least_loss(close_table, range(len(close_cells)))
        cell = close_cells[decided_index]
        return find_best(table, cell.method, table.experiment.cells.index(cell))
    best_bounds = [find_best(table, method) for method in Method]
    by_cell = {bound.cell_index: bound for bound in best_bounds if bound is not None}
    return by_cell[_choose_least_loss(table, list(by_cell))] if by_cell else None


def _choose_least_loss(table: Table, cells: Sequence[int]) -> int:
    """Choose the cell of the smallest mean loss, or followed clipped sums if they are within one standard error."""
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).means
    least_cell = min(cells, key=lambda cell_index: means[cell_index])
    for cell_index in cells:
        if table.experiment.cells[cell_index].method is Method.FOLLOWED:
            loss_difference, error = compare_losses(table, cell_index, least_cell)
            # Without a standard error, the method that needs no choice answers.
            return cell_index if not math.isfinite(error) or loss_difference <= error else least_cell
    return least_cell


def compare_losses(table: Table, cell_index: int, other_index: int) -> tuple[float, float]:
    """Return the mean of loss(cell) - loss(other) on users held out, and its standard error, by noise or by splits.

    Runs of the same number share their noise, so this is far more certain than the difference of two means.
    """
    losses = table.select_scores(Measure.LOSS, ScoreUnit.ROWS)
    difference = summarise_splits(losses[cell_index] - losses[other_index], table.experiment)
    return float(difference.means), float(np.fmax(difference.standard_errors, difference.split_error))


def compare_with_guessing(table: Table, references: References, cell_index: int) -> SplitSummary:
    """Summarise loss - loss of guessing on the same splits, over rows held out; below 0 where training pays."""
    experiment = table.experiment
    guessing_losses = select_score(references.guessing, Measure.LOSS, ScoreUnit.ROWS)
    losses = table.select_scores(Measure.LOSS, ScoreUnit.ROWS)[cell_index]
    splits = np.arange(experiment.runs) % len(experiment.splits)
    return summarise_splits(losses - guessing_losses[splits], experiment)


def solve_linear_descent(
    eigenvalues: FloatArray, rate: float, num_steps: int, average: Average
) -> tuple[FloatArray, FloatArray]:
    """Compute b and Σ a_s² of the averaged iterate, for each eigenvalue λ of H.

    Args:
        eigenvalues: λ, shape (num_features,).
        rate: η.
        num_steps: T.
        average: Which iterates are averaged.

    Returns:
        b, what is left of the start, and Σ_s a_s², each of shape (num_features,).
    """
    factor = 1.0 - rate * eigenvalues[:, None]
    first_averaged = average.find_first_step(num_steps)
    num_averaged = num_steps - first_averaged + 1
    powers = factor ** np.arange(num_steps + 1)
    start_share = powers[:, first_averaged:].mean(axis=1)
    # Noise of step s is in iterate t >= s with η (1 - η λ)^(t - s): sums over t = max(s, first) .. T.
    sums = np.concatenate((np.zeros((factor.size, 1)), np.cumsum(powers, axis=1)), axis=1)
    step_numbers = np.arange(1, num_steps + 1)
    later_sums = sums[:, num_steps - step_numbers + 1] - sums[:, np.maximum(first_averaged - step_numbers, 0)]
    noise_weights = rate / num_averaged * later_sums
    return start_share, np.asarray((noise_weights * noise_weights).sum(axis=1))


def compute_public_hessian(rows: ClassifierRows, mechanism: Mechanism) -> FloatArray:
    """Compute the eigenvalues of H if every row's loss has its largest curvature (p = ½ if logistic), ascending.

    It needs features and no labels. If the features are private, so are the eigenvalues: ε does not cover a
    choice that rests on them.
    """
    moment = rows.features.T @ rows.features / rows.num_rows
    return np.asarray(np.maximum(np.linalg.eigvalsh(moment) * mechanism.loss.smoothness, 0.0))


def calibrate_trade_off(eigenvalues: FloatArray, mechanism: Mechanism) -> float:
    """Compute A in W² + A Σ c² with the constants of this descent: the cost of sampling over that of noise.

    With V = H, which holds for the logistic loss where the model is right. It leaves out clipping, the sampling
    of users in each step, and the share of the budget for the sum of weights (which moves no bound).

    Returns:
        A; 0 where no feature varies.
    """
    sampling, noise = calibrate_parts(eigenvalues, mechanism)
    return sampling / noise if noise > 0.0 else 0.0


def calibrate_parts(eigenvalues: FloatArray, mechanism: Mechanism) -> tuple[float, float]:
    """Compute (a, b) of the expected excess (a Σ c² + b W²) / 2: the costs of sampling and of noise.

    As in `calibrate_trade_off`, whose A is a / b. The cost of stopping after so many steps depends on no bound.
    """
    start_share, noise_gain = solve_linear_descent(
        eigenvalues, mechanism.learning_rate, mechanism.steps, mechanism.average
    )
    unit_noise = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    if mechanism.sampled < 1.0:  # The noise of a step over what takes part in it, in place of κ √T.
        noise_of_step = plan_noise(mechanism, 1.0).gradient / mechanism.clip / mechanism.sampled
        unit_noise = noise_of_step / math.sqrt(mechanism.steps)
    noise_of_user = unit_noise * gradient_sensitivity(mechanism.neighbours) * mechanism.clip
    # With V = H every direction with any curvature costs 1, and less where the descent has not come to its end.
    sampling = float(((1.0 - start_share) ** 2)[eigenvalues > 0.0].sum())
    return sampling, noise_of_user**2 * mechanism.steps * float((eigenvalues * noise_gain).sum())


def predict_excess(
    histogram: ContributionHistogram, thresholds: FloatArray, cost_parts: tuple[float, float]
) -> FloatArray:
    """Predict the expected excess of smooth weights, (a Σ c² + b W²) / 2, shape of ``thresholds``.

    Args:
        histogram: Rows of the users trained on.
        thresholds: h > 0 in rows per user; above the heaviest user's rows nothing changes.
        cost_parts: (a, b) from `calibrate_parts`.
    """
    losses = weights.smooth_losses(
        histogram, np.minimum(np.asarray(thresholds, dtype=np.float64), histogram.max_size)
    )
    sampling, noise = cost_parts
    return np.asarray(0.5 * (sampling * losses.squared_weights + noise * losses.largest_weight**2))


def compute_theorem_trade_off(
    histogram: ContributionHistogram, num_features: int, mechanism: Mechanism
) -> float:
    """Compute A of theorem 4, log(d) log(n) ε² / log⁴(m/δ), with 1 for a constant that the paper leaves open.

    With one feature log(d) is 0 and A with it: the theorem is an upper bound up to constants.

    Source: Epasto et al. 2020, theorem 4 and "Tradeoff weights".
    """
    numerator = math.log(num_features) * math.log(histogram.num_rows)
    denominator = math.log(histogram.num_users / mechanism.delta) ** 4
    return numerator * mechanism.epsilon**2 / denominator
