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
from dpcore.training import experiment
from dpcore.training.account import Method, get_gradient_sensitivity, plan_noise
from dpcore.training.experiment import (
    Experiment,
    References,
    RunTable,
    SplitRows,
    select_score,
    summarise_splits,
)
from dpcore.training.mechanism import Average, Mechanism
from dpcore.training.rows import ClassifierRows, concatenate_rows

CLOSE_RUN_FACTOR, CLOSE_SPLIT_FACTOR, MAX_CLOSE_CELLS = 4, 4, 3
"""Factors by which runs and splits grow to decide between methods that are close, and the most cells compared."""


@dataclass(frozen=True)
class BestCell:
    """The cell of smallest mean loss of one method, and the near-optimal bounds around its bound.

    Attributes:
        cell_index: Position of the cell in the table.
        lowest_near_optimal: Smallest bound (times clip, in rows) down to which every cell has a mean loss of at most
            1.05 times the smallest.
        highest_near_optimal: Largest bound up to which every cell has.
    """

    cell_index: int
    lowest_near_optimal: float
    highest_near_optimal: float


def find_best_cell(table: RunTable, method: Method, cell_index: int | None = None) -> BestCell | None:
    """Return a method's cell of least mean loss on users held out, with its near-optimal bounds; None without a run.

    Args:
        table: The finished runs.
        method: The method.
        cell_index: Position of the cell that is taken as the best; None for that of the smallest mean loss.
    """
    cell_indices = table.find_cell_indices(method)
    mean_losses = table.summarise().means[cell_indices]
    if not np.isfinite(mean_losses).any():
        return None
    if cell_index is None:
        cell_index = int(cell_indices[np.nanargmin(mean_losses)])
    position_of_best = cell_indices.tolist().index(cell_index)
    # A NaN is not near-optimal, either.
    positions_not_near = np.flatnonzero(~(mean_losses <= 1.05 * mean_losses[position_of_best]))
    lowest_position = max(positions_not_near[positions_not_near < position_of_best], default=-1) + 1
    highest_position = (
        min(positions_not_near[positions_not_near > position_of_best], default=mean_losses.size) - 1
    )
    reaches_of_ends = [
        table.experiment.cells[i].reach for i in cell_indices[[lowest_position, highest_position]]
    ]
    return BestCell(cell_index, *reaches_of_ends)


def plan_close_call(table: RunTable) -> Experiment | None:
    """Plan new runs of the cells that are about as good as clipped sums with an adaptive bound; None if not needed.

    Returns:
        The experiment with new runs of these cells, with noise of its own; None where the table is not finished, where
        the bound that follows is clearly worse than the best cell, or where it is the only cell in question.
    """
    adaptive_best_cell = find_best_cell(table, Method.FOLLOWED)
    if adaptive_best_cell is None or not table.is_finished:
        return None
    mean_losses = table.summarise().means
    # Step 1: the cells whose loss is within two standard errors of the smallest, about a 95 % interval.
    ordered_indices = np.argsort(mean_losses).tolist()
    undecided_indices = []
    for cell_index in ordered_indices:
        mean_loss_difference, standard_error = compare_losses(table, cell_index, ordered_indices[0])
        if mean_loss_difference <= 2.0 * standard_error:
            undecided_indices.append(cell_index)
    required_indices = {adaptive_best_cell.cell_index, ordered_indices[0]}
    compared_indices = sorted(required_indices | {*undecided_indices[:MAX_CLOSE_CELLS]})
    if len(compared_indices) < 2 or adaptive_best_cell.cell_index not in undecided_indices:
        return None
    previous_experiment = table.experiment
    # Step 2: fresh runs for them. In the runs that chose it, the best of many looks better than it is.
    new_seed = (previous_experiment.seed + 1_000_003) % 2**31
    num_runs = min(CLOSE_RUN_FACTOR * previous_experiment.num_runs, experiment.MAX_RUNS)
    cells = tuple(previous_experiment.cells[cell_index] for cell_index in compared_indices)
    splits = tuple(_draw_more_splits(previous_experiment, new_seed, num_runs))
    return Experiment(splits, previous_experiment.mechanism, cells, num_runs, new_seed)


def _draw_more_splits(previous_experiment: Experiment, new_seed: int, max_splits: int) -> list[SplitRows]:
    """Draw new splits with as many users held out, up to ``max_splits``.

    The old splits are returned if there is only one, or if their rows are many.

    A permutation of the users is cut into parts, each held out in one split. At a large ε the users who are held out
    move a difference more than noise does, of few rows above all.
    """
    if (
        previous_experiment.train.num_rows > 2 * experiment.MAX_FIRST_LOOK_ROWS
        or len(previous_experiment.splits) < 2
    ):
        return list(previous_experiment.splits)
    all_rows = concatenate_rows(previous_experiment.train, previous_experiment.test)
    num_test = previous_experiment.test.num_users
    splits_per_permutation = max(all_rows.num_users // num_test, 1)
    splits: list[SplitRows] = []
    for split_index in range(min(CLOSE_SPLIT_FACTOR * len(previous_experiment.splits), max_splits)):
        permutation_index, part_index = divmod(split_index, splits_per_permutation)
        user_order = np.random.default_rng([new_seed, 7, permutation_index]).permutation(all_rows.num_users)
        test_positions = np.arange(part_index * num_test, (part_index + 1) * num_test)
        training_rows = all_rows.select_users(np.sort(np.delete(user_order, test_positions)))
        splits.append((training_rows, all_rows.select_users(np.sort(user_order[test_positions]))))
    return splits


def choose_answer(
    table: RunTable, close_table: RunTable | None = None, is_public: bool = False
) -> BestCell | None:
    """Choose the cell that answers, by mean loss on users held out; None before the first run.

    It is the method of the smallest mean loss, unless followed clipped sums are within one standard error of it, run by
    run. They need no choice of a bound by these curves, which ε would not cover.

    Args:
        table: The runs of all methods.
        close_table: The runs of the experiment of `plan_close_call`, which decide if every cell has at least two.
        is_public: True if the rows are public, so that a bound chosen by the curves costs nothing:
            what ``close_table`` finds best answers, by however little.
    """
    if close_table is not None and close_table.runs_done.min() > 1:
        close_cells = close_table.experiment.cells
        close_winner_index = int(np.argmin(close_table.summarise().means))
        if not is_public:
            close_winner_index = _choose_winner(close_table, range(len(close_cells)))
        close_cell = close_cells[close_winner_index]
        return find_best_cell(table, close_cell.method, table.experiment.cells.index(close_cell))
    best_cells = [find_best_cell(table, method) for method in Method]
    best_by_index = {best_cell.cell_index: best_cell for best_cell in best_cells if best_cell is not None}
    return best_by_index[_choose_winner(table, list(best_by_index))] if best_by_index else None


def _choose_winner(table: RunTable, cell_indices: Sequence[int]) -> int:
    """Return the index of the cell of least mean loss.

    Clipped sums with an adaptive bound win if they are within one standard error of it.
    """
    mean_losses = table.summarise().means
    least_loss_index = min(cell_indices, key=lambda cell_index: mean_losses[cell_index])
    for cell_index in cell_indices:
        if table.experiment.cells[cell_index].method is Method.FOLLOWED:
            loss_difference, standard_error = compare_losses(table, cell_index, least_loss_index)
            # Without a standard error, the method that needs no choice answers.
            if not math.isfinite(standard_error) or loss_difference <= standard_error:
                return cell_index
    return least_loss_index


def compare_losses(table: RunTable, cell_index: int, other_cell_index: int) -> tuple[float, float]:
    """Return the mean of loss(cell) - loss(other) on rows held out, and its standard error.

    The error is the larger of that over noise and that over users. Runs of the same number share their noise, so this
    is far more certain than the difference of two means.
    """
    run_losses = select_score(table.scores)
    summary = summarise_splits(run_losses[cell_index] - run_losses[other_cell_index], table.experiment)
    return float(summary.means), float(np.fmax(summary.standard_errors, summary.split_standard_errors))


def compare_with_guessing(
    table: RunTable, references: References, cell_index: int
) -> experiment.SplitSummary:
    """Summarise by how much a cell's loss on held-out rows differs from that of guessing, run by run.

    It is below 0 if training helps.
    """
    split_indices = np.arange(table.experiment.num_runs) % len(table.experiment.splits)
    guessing_losses = select_score(references.guessing_scores)[split_indices]
    return summarise_splits(select_score(table.scores)[cell_index] - guessing_losses, table.experiment)


def solve_linear_descent(
    eigenvalues: FloatArray, rate: float, num_steps: int, average: Average
) -> tuple[FloatArray, FloatArray]:
    """Compute what is left of the start, and the noise gain, in the averaged iterate, per eigenvalue of the Hessian.

    Args:
        eigenvalues: λ, shape (num_features,).
        rate: η.
        num_steps: T.
        average: Which iterates are averaged.

    Returns:
        b, what is left of the start, and Σ_s a_s², each of shape (num_features,).
    """
    contraction_factors = 1.0 - rate * eigenvalues[:, None]
    first_averaged_step = average.find_first_step(num_steps)
    num_averaged = num_steps - first_averaged_step + 1
    factor_powers = contraction_factors ** np.arange(num_steps + 1)
    start_share = factor_powers[:, first_averaged_step:].mean(axis=1)
    # Noise of step s is in iterate t >= s with η (1 - η λ)^(t - s): sums over t = max(s, first) .. T.
    running_sums = np.pad(np.cumsum(factor_powers, axis=1), ((0, 0), (1, 0)))
    s = np.arange(1, num_steps + 1)
    later_power_sums = (
        running_sums[:, num_steps - s + 1] - running_sums[:, np.maximum(first_averaged_step - s, 0)]
    )
    noise_weights = rate / num_averaged * later_power_sums
    return start_share, np.asarray((noise_weights * noise_weights).sum(axis=1))


def compute_public_eigenvalues(rows: ClassifierRows, mechanism: Mechanism) -> FloatArray:
    """Compute an upper bound on the Hessian's eigenvalues from the features alone, ascending, shape (num_features,).

    Every row's loss has its largest curvature there (p = ½ if logistic). If the features are private, so are the
    eigenvalues: ε does not cover a choice that rests on them.
    """
    moment_matrix = rows.features.T @ rows.features / rows.num_rows
    return np.asarray(np.maximum(np.linalg.eigvalsh(moment_matrix) * mechanism.loss.smoothness, 0.0))


def calibrate_trade_off(eigenvalues: FloatArray, mechanism: Mechanism) -> float:
    """Compute A in W² + A Σ c² with the constants of this descent: the cost of sampling over that of noise.

    It takes V = H, which holds for the logistic loss where the model is right. It leaves out clipping, the sampling
    of users in each step, and the share of the budget for the sum of weights (which moves no bound).

    Returns:
        A; 0 where no feature varies.
    """
    sampling_cost, noise_cost = calibrate_costs(eigenvalues, mechanism)
    return sampling_cost / noise_cost if noise_cost > 0.0 else 0.0


def calibrate_costs(eigenvalues: FloatArray, mechanism: Mechanism) -> tuple[float, float]:
    """Compute the costs (a, b) of sampling and of noise in the expected excess loss (a Σ c² + b W²) / 2.

    As in `calibrate_trade_off`, whose A is a / b. The cost of stopping after so many steps depends on no bound.
    """
    start_share, noise_gain = solve_linear_descent(
        eigenvalues, mechanism.learning_rate, mechanism.steps, mechanism.average
    )
    unit_noise = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    if mechanism.sampled < 1.0:  # The noise of a step over what takes part in it, in place of κ √T.
        step_noise_std = plan_noise(mechanism, 1.0).gradient_noise_std / mechanism.clip / mechanism.sampled
        unit_noise = step_noise_std / math.sqrt(mechanism.steps)
    noise_std_at_bound_1 = unit_noise * get_gradient_sensitivity(mechanism.neighbours) * mechanism.clip
    # With V = H every direction with any curvature costs 1, and less where the descent has not come to its end.
    sampling_cost = float(((1.0 - start_share) ** 2)[eigenvalues > 0.0].sum())
    return sampling_cost, noise_std_at_bound_1**2 * mechanism.steps * float((eigenvalues * noise_gain).sum())


def predict_excess(
    histogram: ContributionHistogram, thresholds: FloatArray, sampling_and_noise_costs: tuple[float, float]
) -> FloatArray:
    """Predict by how much the loss of smooth weights exceeds the least one, (a Σ c² + b W²) / 2, at each threshold.

    Args:
        histogram: Rows of the users trained on.
        thresholds: h > 0 in rows per user; above the heaviest user's rows nothing changes.
        sampling_and_noise_costs: (a, b) from `calibrate_costs`.
    """
    clipped_thresholds = np.minimum(np.asarray(thresholds, dtype=np.float64), histogram.max_size)
    smooth_losses = weights.compute_smooth_losses(histogram, clipped_thresholds)
    sampling_cost, noise_cost = sampling_and_noise_costs
    sampling_terms = sampling_cost * smooth_losses.squared_weights
    return np.asarray(0.5 * (sampling_terms + noise_cost * smooth_losses.largest_weight**2))


def compute_theorem_trade_off(
    histogram: ContributionHistogram, num_features: int, mechanism: Mechanism
) -> float:
    """Compute A of theorem 4, log(d) log(n) ε² / log⁴(m/δ), with 1 for a constant that the paper leaves open.

    With one feature log(d) is 0 and A with it: the theorem is an upper bound up to constants.

    Source: Epasto et al. 2020, theorem 4 and "Tradeoff weights".
    """
    log_rows_and_features = math.log(num_features) * math.log(histogram.num_rows)
    return log_rows_and_features * mechanism.epsilon**2 / math.log(histogram.num_users / mechanism.delta) ** 4
