"""The decision of a training: which method and bound answer, by the losses in a table of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.training.account import Method
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
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit, concatenate_rows

CLOSE_RUNS, CLOSE_SPLITS, CLOSE_CELLS = 4, 4, 3
"""How many times as many runs decide between methods that a table does not tell apart, on how many times as many
splits, and between how many at most."""


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
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).mean[cells]
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
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).mean
    least_cell, *_ = cells_by_loss = np.argsort(means).tolist()
    # Step 1: the cells whose loss is within two standard errors of the smallest, about a 95 % interval.
    comparisons = {cell_index: _compare_losses(table, cell_index, least_cell) for cell_index in cells_by_loss}
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
        decided_index = int(np.argmin(close_table.summarise(Measure.LOSS, ScoreUnit.ROWS).mean))
        if not choice_is_free:
            decided_index = _choose_least_loss(close_table, range(len(close_cells)))
        cell = close_cells[decided_index]
        return find_best(table, cell.method, table.experiment.cells.index(cell))
    best_bounds = [find_best(table, method) for method in Method]
    by_cell = {bound.cell_index: bound for bound in best_bounds if bound is not None}
    return by_cell[_choose_least_loss(table, list(by_cell))] if by_cell else None


def _choose_least_loss(table: Table, cells: Sequence[int]) -> int:
    """Choose the cell of the smallest mean loss, or followed clipped sums if they are within one standard error."""
    means = table.summarise(Measure.LOSS, ScoreUnit.ROWS).mean
    least_cell = min(cells, key=lambda cell_index: means[cell_index])
    for cell_index in cells:
        if table.experiment.cells[cell_index].method is Method.FOLLOWED:
            loss_difference, error = _compare_losses(table, cell_index, least_cell)
            # Without a standard error, the method that needs no choice answers.
            return cell_index if not math.isfinite(error) or loss_difference <= error else least_cell
    return least_cell


def compare_cells(table: Table, cell_index: int, other_index: int) -> SplitSummary:
    """Summarise loss(cell) - loss(other) on users held out, run by run.

    Runs of the same number share their noise, so this is far more certain than the difference of two means.
    """
    losses = table.select_scores(Measure.LOSS, ScoreUnit.ROWS)
    return summarise_splits(losses[cell_index] - losses[other_index], table.experiment)


def _compare_losses(table: Table, cell_index: int, other_index: int) -> tuple[float, float]:
    """Return the mean of loss(cell) - loss(other) on users held out, and its standard error, by noise or by splits."""
    difference = compare_cells(table, cell_index, other_index)
    return float(difference.mean), float(np.fmax(difference.standard_error, difference.split_error))


def compare_with_guessing(table: Table, references: References, cell_index: int) -> SplitSummary:
    """Summarise loss - loss of guessing on the same splits, over rows held out; below 0 where training pays."""
    experiment = table.experiment
    guessing_losses = select_score(references.guessing, Measure.LOSS, ScoreUnit.ROWS)
    losses = table.select_scores(Measure.LOSS, ScoreUnit.ROWS)[cell_index]
    splits = np.arange(experiment.runs) % len(experiment.splits)
    return summarise_splits(losses - guessing_losses[splits], experiment)
