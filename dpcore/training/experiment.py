"""Loss and accuracy of every method at every bound, over many runs: a table that fills while it is computed.

Runs are made in batches (`_order_missing_runs`), each split by split (`_fill_batch`): train the models of some bounds
of one method together, score them on both sides of the split, write the scores. `compute_references` has the models
that they are compared with, and `summarise_splits` the means with their errors.

Each entry depends on the experiment, its method and bound, and the number of its run, on nothing else: a
stopped computation continues later with the same numbers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.noise_error import CONFIDENCE, Summary, summarise_runs
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import descent, optimum
from dpcore.training.account import Cell, Method, draw_ranks
from dpcore.training.descent import BLOCK_CELLS
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.rows import SCORE_SHAPE, ClassifierRows, Measure, ScoreUnit, score_guess, score_models

MAX_RUNS = 500
BATCH_SIZE = 10
"""Runs made at once."""
MAX_FIRST_LOOK_ROWS, MAX_FIRST_LOOK_RUNS, MAX_FIRST_LOOK_REACH = 5_000, 5, 8.0
"""Rows to train on of a first look, its runs, and its largest bound: half a second."""
MIN_SPLITS = 3
"""Fewest splits for an interval over users: of two, Student's is 13 times their spread."""
MAX_CACHED_RANKS = 40_000_000
"""Ranks of rows that are kept for all caps at once: 320 MB."""


class Side:
    """Positions in the axis of a table that says on whom models were judged."""

    TRAINED, HELD_OUT = 0, 1


SplitRows = tuple[ClassifierRows, ClassifierRows]
"""The rows of the users to train on, and of the users held out."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """The methods, bounds, splits and runs of a table.

    Attributes:
        splits: Splits of the same users, (users to train on, users held out): run r is made on split r modulo their
            number, so that any few runs are on all splits.
        mechanism: What is trained and how.
        cells: The cells (a method at a bound) that are trained.
        num_runs: The number of runs of each cell, 2 to `MAX_RUNS`.
        seed: The seed of all runs.

    Raises:
        InvalidInput: No cells, or ``num_runs`` or ``seed`` out of range.
    """

    splits: tuple[SplitRows, ...]
    mechanism: Mechanism
    cells: tuple[Cell, ...]
    num_runs: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every problem of cells, number of runs and seed."""
        with Problems() as problems:
            problems.whole(2, MAX_RUNS, runs=self.num_runs)
            problems.whole(0, 2**31, seed=self.seed)
            if not self.cells:
                problems.add("there is no method to try")

    @property
    def train(self) -> ClassifierRows:
        """Return the rows of the users to train on in the first split."""
        return self.splits[0][0]

    @property
    def test(self) -> ClassifierRows:
        """Return the rows of the users held out in the first split."""
        return self.splits[0][1]

    def make_empty_table(self) -> RunTable:
        """Make the table before the first run: every score is NaN."""
        return RunTable(self, np.full((len(self.cells), self.num_runs, 2, *SCORE_SHAPE), np.nan))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Return what identifies this experiment's table: digests of rows, mechanism, cells, number of runs, seed."""
        digests = tuple(side_rows.digest for split in self.splits for side_rows in split)
        return (digests, self.mechanism, self.cells, self.num_runs, self.seed)


def make_first_look(experiment: Experiment) -> Experiment | None:
    """Return a small experiment on some of the users: one split, few runs, small bounds; None if there are few rows.

    The noise of a mean gradient is that of the whole data. The model without privacy alone is less certain.
    """
    if experiment.train.num_rows <= 2 * MAX_FIRST_LOOK_ROWS:
        return None
    row_share = MAX_FIRST_LOOK_ROWS / experiment.train.num_rows
    # The second number keeps this stream apart from those of the noise and of the splits.
    rng = np.random.default_rng([experiment.seed, 6])

    def draw_users(rows: ClassifierRows) -> ClassifierRows:
        """Draw the share ``row_share`` of the users, at least one, and return their rows."""
        num_chosen = max(round(row_share * rows.num_users), 1)
        return rows.select_users(np.sort(rng.choice(rows.num_users, num_chosen, replace=False)))

    training_rows, test_rows = draw_users(experiment.train), draw_users(experiment.test)
    user_share = training_rows.num_users / experiment.train.num_users
    mechanism = replace(experiment.mechanism, user_share=user_share)
    cells = tuple(cell for cell in experiment.cells if cell.reach <= MAX_FIRST_LOOK_REACH)
    num_runs = min(MAX_FIRST_LOOK_RUNS, experiment.num_runs)
    return Experiment(((training_rows, test_rows),), mechanism, cells, num_runs, experiment.seed)


@dataclass(frozen=True, eq=False)
class RunTable:
    """Scores of every run.

    Attributes:
        experiment: The question.
        scores: Shape (cells, runs, 2, 2, 2): users trained on and held out; over rows and over users; loss and
            accuracy. NaN where a run is not done.
    """

    experiment: Experiment
    scores: FloatArray

    @property
    def runs_done(self) -> IntArray:
        """Count the finished runs of each cell."""
        return np.asarray(np.isfinite(self.scores[:, :, 0, 0, 0]).sum(axis=1))

    @property
    def is_finished(self) -> bool:
        """Return True if every run is finished."""
        return bool((self.runs_done == self.experiment.num_runs).all())

    def summarise(
        self,
        measure: Measure = Measure.LOSS,
        score_unit: ScoreUnit = ScoreUnit.ROWS,
        side: int = Side.HELD_OUT,
    ) -> SplitSummary:
        """Return means, over the finished runs, and errors of one score of each cell."""
        return summarise_splits(select_score(self.scores, measure, score_unit, side), self.experiment)

    def find_cell_indices(self, method: Method) -> IntArray:
        """Return the positions of a method's cells, ordered by bound times clip; empty if it has none."""
        cells = self.experiment.cells
        cell_indices = [cell_index for cell_index, cell in enumerate(cells) if cell.method is method]
        return np.array(sorted(cell_indices, key=lambda i: cells[i].reach), dtype=np.int64)


def select_score(
    scores: FloatArray,
    measure: Measure = Measure.LOSS,
    score_unit: ScoreUnit = ScoreUnit.ROWS,
    side: int = Side.HELD_OUT,
) -> FloatArray:
    """Select one score from an array whose last axes are the side, the unit and the measure; the other axes stay."""
    return np.asarray(scores[..., side, list(ScoreUnit).index(score_unit), list(Measure).index(measure)])


@dataclass(frozen=True, eq=False)
class SplitSummary(Summary):
    """Means over runs on several splits of the users (fields of `Summary`), with errors over noise and over users.

    ``standard_errors``, ``half_widths`` and ``spreads`` are within the splits: how noise and drawn rows vary on
    these users. ``users_half_widths`` estimate how far other users held out would move the mean.

    Attributes:
        degrees_of_freedom: Within the splits, one entry per mean.
        users_half_widths: Half of a 95 % interval over the splits; NaN with fewer than `MIN_SPLITS`.
        split_standard_errors: Standard error of the mean, from the means of the splits; NaN with one.
    """

    degrees_of_freedom: IntArray
    users_half_widths: FloatArray
    split_standard_errors: FloatArray

    @property
    def half_widths(self) -> FloatArray:
        """Return half of a 95 % interval of the mean over noise, by Student's t; NaN without a degree of freedom."""
        return np.asarray(_compute_student_quantile(self.degrees_of_freedom) * self.standard_errors)

    @property
    def is_clear(self) -> NDArray[np.bool_]:
        """Return True where the interval for other users, or for noise if splits are too few, excludes 0."""
        half_widths = np.where(np.isfinite(self.users_half_widths), self.users_half_widths, self.half_widths)
        return np.asarray(np.abs(self.means) > half_widths)


def _compute_student_quantile(degrees_of_freedom: IntArray) -> FloatArray:
    """Return Student's quantile of a 95 % interval, in the shape of the degrees of freedom; NaN at 0 of them."""
    from scipy.special import stdtrit

    student_quantiles = stdtrit(np.maximum(degrees_of_freedom, 1), 0.5 + CONFIDENCE / 2.0)
    return np.asarray(np.where(degrees_of_freedom > 0, student_quantiles, np.nan))


def summarise_splits(run_values: FloatArray, experiment: Experiment) -> SplitSummary:
    """Return means and errors of a number per run, the runs along the last axis; NaN marks a run not done.

    The splits share users, so their means are not independent draws. The variance of their mean is taken as (1/S + held
    out / trained on) times that between them.

    Source: Nadeau and Bengio 2003, Inference for the generalization error, equation 7, for the correction.
    """
    num_splits = len(experiment.splits)
    finished_mask = np.isfinite(run_values)
    num_finished_runs = finished_mask.sum(axis=-1)
    # The mean of the runs on each split; NaN where there is none.
    values_per_split = [run_values[..., i::num_splits] for i in range(num_splits)]
    split_means = np.stack([summarise_runs(x, axis=-1).means for x in values_per_split], axis=-1)
    # Step 1: the noise is what runs deviate from the mean of their own split. Invariant: no residual depends on how
    # splits differ, which is the uncertainty about users; a run that is not done has the residual 0.
    split_indices = np.arange(run_values.shape[-1]) % num_splits
    residuals = np.where(finished_mask, run_values - split_means[..., split_indices], 0.0)
    num_finished_splits = np.isfinite(split_means).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Each mean of a split takes one degree of freedom.
        degrees_of_freedom = np.maximum(num_finished_runs - num_finished_splits, 0)
        residual_variances = (residuals * residuals).sum(axis=-1) / degrees_of_freedom
        noise_stds = np.sqrt(np.where(degrees_of_freedom > 0, residual_variances, np.nan))
        mean_values = np.where(finished_mask, run_values, 0.0).sum(axis=-1) / num_finished_runs
        # Step 2: other users, from the means of the splits. Invariant: the width uses nothing but these means and the
        # ratio of users, so that more runs on the same splits make it no smaller than the users allow.
        split_mean_summary = summarise_runs(split_means, axis=-1)
        test_to_training_ratio = experiment.test.num_users / experiment.train.num_users
        users_half_widths = (
            _compute_student_quantile(num_finished_splits - 1)
            * split_mean_summary.spreads
            * np.sqrt(1.0 / np.maximum(num_finished_splits, 1) + test_to_training_ratio)
        )
        users_half_widths = np.where(num_finished_splits >= MIN_SPLITS, users_half_widths, np.nan)
        return SplitSummary(
            mean_values,
            noise_stds / np.sqrt(num_finished_runs),
            num_finished_runs,
            noise_stds,
            degrees_of_freedom,
            users_half_widths,
            split_mean_summary.standard_errors,
        )


class ReferenceScores(NamedTuple):
    """One score on users held out of each model of `References`, averaged over the splits."""

    without_privacy: float
    guessing: float
    without_noise: float
    without_noise_and_clipping: float

    @property
    def distance(self) -> float:
        """Return how far guessing is from no privacy, at least 0.02: the scale of figures."""
        return max(abs(self.guessing - self.without_privacy), 0.02)


@dataclass(frozen=True, eq=False)
class References:
    """Scores of the models that the table is compared with, each of shape (splits, 2, 2, 2) as in `RunTable.scores`.

    Attributes:
        certificate: That of the model without privacy, on the first split.
        scores_without_privacy: Of the model with weight 1 for all rows and no noise, in the same ball.
        guessing_scores: Of the best constant, the same for every row.
        scores_without_noise: Of followed clipped sums as trained, without their noise.
        scores_without_noise_and_clipping: Of the same without clipping, too: what is left is stopping early.
    """

    certificate: Certificate
    scores_without_privacy: FloatArray
    guessing_scores: FloatArray
    scores_without_noise: FloatArray
    scores_without_noise_and_clipping: FloatArray

    def average(self, measure: Measure, score_unit: ScoreUnit) -> ReferenceScores:
        """Return one score on users held out of each model, averaged over the splits."""
        scores_per_model = [self.scores_without_privacy, self.guessing_scores, self.scores_without_noise]
        scores_per_model.append(self.scores_without_noise_and_clipping)
        return ReferenceScores(
            *(float(select_score(x, measure, score_unit).mean()) for x in scores_per_model)
        )


def compute_references(experiment: Experiment, should_stop: ShouldStop = never) -> References | None:
    """Compute the scores of four models to compare with: no privacy, guessing, no noise, neither noise nor clipping.

    None if stopped.

    On a large table the descent without noise is run on the first split alone. On every other split its scores are
    those without privacy, plus the difference between the two on the first split.

    Returns:
        The scores of the four models on every split; None where it was stopped.
    """
    mechanism, loss = experiment.mechanism, experiment.mechanism.loss
    # Invariant: each split that is done has four arrays of scores, in the order of the fields of `References`: without
    # privacy, of guessing, without noise, and without noise and clipping.
    scores_per_split: list[list[FloatArray]] = []
    certificate: Certificate | None = None
    for training_rows, test_rows in experiment.splits:
        # Step 1: train without privacy, and without noise; the latter takes long, so on a large table just once.
        # Invariant: no model has seen a row of a user held out, and a list of one model or three holds no None.
        ones = np.ones(training_rows.num_rows)
        fitted_model = optimum.fit_model(training_rows, loss, ones, mechanism.radius, should_stop=should_stop)
        split_has_descent = certificate is None or training_rows.num_rows <= 2 * MAX_FIRST_LOOK_ROWS
        thetas = [fitted_model.theta[:, None]] + [
            descent.descend_without_noise(training_rows, mechanism, has_clipping, should_stop)
            for has_clipping in (True, False)
            if split_has_descent
        ]
        if should_stop() or any(model_theta is None for model_theta in thetas):
            return None
        # Step 2: score the models on both sides of the split. Invariant: every array has shape (2, 2, 2), the side
        # first.
        rows_of_both_sides = (training_rows, test_rows)
        scores_without_privacy, *scores_without_noise = (
            np.stack([score_models(rows, loss, model_theta)[0] for rows in rows_of_both_sides])
            for model_theta in thetas
            if model_theta is not None
        )
        if not split_has_descent:  # Its losses over the model without privacy are those on the first split.
            baseline_scores, _, *first_scores = scores_per_split[0]
            scores_without_noise = [scores_without_privacy + x - baseline_scores for x in first_scores]
        best_constant = optimum.find_best_constant(training_rows, loss)
        guessing_scores = np.stack([score_guess(rows, loss, best_constant) for rows in rows_of_both_sides])
        scores_per_split.append([scores_without_privacy, guessing_scores, *scores_without_noise])
        certificate = certificate or fitted_model.certificate
    assert certificate is not None
    return References(certificate, *map(np.stack, zip(*scores_per_split, strict=True)))


def fill_table(
    table: RunTable,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    on_update: Callable[[RunTable], None] | None = None,
) -> RunTable:
    """Make the runs that a table lacks, and return a copy of the table with them.

    After a stop, the copy has the runs that were made until then. With ``on_update``, all cells get their first
    `BATCH_SIZE` runs before any gets later ones, so that there is a whole curve soon.

    Args:
        table: What there is already.
        progress: Told the share of runs done.
        should_stop: Asked between steps; what is done by then is in the table.
        on_update: Given the table whenever all bounds of a method have more runs.

    Returns:
        The table with what was made; the one given stays as it is.
    """
    experiment, scores = table.experiment, table.scores.copy()
    # Invariant of the scores: an entry is NaN until its run is finished on its split, and never changes after that.
    # Hence every table that is passed on or returned is valid, and NaN alone says what is missing.
    #
    # Step 1: put the missing runs in order. Invariant: each of them is in exactly one batch.
    batches = _order_missing_runs(
        experiment, scores, experiment.num_runs if on_update is None else BATCH_SIZE
    )
    num_missing = int(np.isnan(scores[:, :, 0, 0, 0]).sum())
    # All caps of a batch share the ranks of their rows: those of one batch are kept at a time.
    draw_ranks_once = functools.lru_cache(len(experiment.splits))(draw_ranks)
    for (cell_indices, run_numbers), next_batch in itertools.zip_longest(batches, batches[1:]):
        # Step 2: train and score a batch, split by split. Invariant: what is finished before a stop is in the scores.
        if not _fill_batch(experiment, scores, cell_indices, run_numbers, draw_ranks_once, should_stop):
            break
        num_missing -= len(cell_indices) * len(run_numbers)
        progress(1.0 - num_missing / (len(experiment.cells) * experiment.num_runs))
        # Step 3: pass on a copy when all bounds of a method have as many runs. Invariant: its curve has no steps that
        # come from more runs at one bound than at another.
        is_last_of_method = (
            next_batch is None
            or experiment.cells[next_batch[0][0]].method is not experiment.cells[cell_indices[0]].method
            or next_batch[1][0] > run_numbers[0]
        )
        if on_update is not None and is_last_of_method:
            on_update(RunTable(experiment, scores.copy()))
    return RunTable(experiment, scores)


Batch = tuple[list[int], tuple[int, ...]]
"""The indices of the cells that are trained together, and the numbers of the runs that each of them lacks."""


def _order_missing_runs(experiment: Experiment, scores: FloatArray, first_batch_size: int) -> list[Batch]:
    """List the batches of cells and run numbers that fill what is missing, the first runs of all cells first.

    Args:
        experiment: The cells and splits.
        scores: As `RunTable.scores`, NaN where a run is missing.
        first_batch_size: Most runs in a batch of the first runs.
    """
    # Step 1: cut the runs into intervals, a small one first, so that a whole curve is shown soon, and then large ones,
    # for larger matrices and one set of ranks for all caps, within the memory of `MAX_CACHED_RANKS`. Invariant: the
    # intervals cover all runs once.
    later_batch_size = max(
        min(4 * BATCH_SIZE * len(experiment.splits), MAX_CACHED_RANKS // experiment.train.num_rows), 1
    )
    run_interval_ends = [0, min(first_batch_size, later_batch_size, experiment.num_runs)]
    while run_interval_ends[-1] < experiment.num_runs:
        run_interval_ends.append(min(run_interval_ends[-1] + later_batch_size, experiment.num_runs))
    # Step 2: list what each interval lacks, method by method, output perturbation last. A cell joins the batch before
    # it if both lack the same runs and are trained in one descent. Invariant: the runs of a batch are of one interval.
    batches: list[Batch] = []
    for first_run, stop_run in itertools.pairwise(run_interval_ends):
        for method in Method:
            for cell_index, cell in enumerate(experiment.cells):
                missing_mask = np.isnan(scores[cell_index, first_run:stop_run, 0, 0, 0])
                missing_runs = tuple((np.flatnonzero(missing_mask) + first_run).tolist())
                if cell.method is not method or not missing_runs:
                    continue
                if batches and _can_join(experiment, batches[-1], cell_index, missing_runs):
                    batches[-1][0].append(cell_index)
                else:
                    batches.append(([cell_index], missing_runs))
    return batches


def _can_join(experiment: Experiment, batch: Batch, cell_index: int, missing_runs: tuple[int, ...]) -> bool:
    """Return True if one more cell can be trained in one descent with a batch, whose step still fits into the cache.

    It must lack the same runs, differ only in its bound, and descend by the rule. For few rows a step is mostly the
    calls of some thirty functions, which take as long for one bound as for all.
    """
    cell_indices, run_numbers = batch
    first_cell, joining_cell = experiment.cells[cell_indices[0]], experiment.cells[cell_index]
    num_models = (len(cell_indices) + 1) * -(-len(run_numbers) // len(experiment.splits))
    return (
        run_numbers == missing_runs
        and num_models * experiment.train.num_rows <= BLOCK_CELLS
        and (first_cell.method, first_cell.clip) == (joining_cell.method, joining_cell.clip)
        and joining_cell.method is not Method.OUTPUT
        and experiment.mechanism.pace is Pace.RULE
    )


def _fill_batch(
    experiment: Experiment,
    scores: FloatArray,
    cell_indices: Sequence[int],
    run_numbers: Sequence[int],
    draw_ranks_once: Callable[..., IntArray],
    should_stop: ShouldStop,
) -> bool:
    """Train the missing runs of some cells and write their scores into ``scores``; return False if it was stopped.

    ``scores`` has the shape of `RunTable.scores`. Cells of output perturbation come one at a time.
    """
    splits, mechanism, seed = experiment.splits, experiment.mechanism, experiment.seed
    cells = [experiment.cells[cell_index] for cell_index in cell_indices]
    for split_index, (train_rows, test_rows) in enumerate(splits):
        # Invariant: a run is made on one split, by its number, so that it is the same whichever runs are made together;
        # and its scores are written when all of its split are there, or not at all.
        run_numbers_of_split = tuple(
            run_number for run_number in run_numbers if run_number % len(splits) == split_index
        )
        if not run_numbers_of_split:
            continue
        if cells[0].method is Method.OUTPUT:
            theta = optimum.perturb_minimiser(
                train_rows, mechanism, cells[0], seed, run_numbers_of_split, should_stop
            )
        else:
            is_cap = cells[0].method is Method.CAP
            ranks = draw_ranks_once(train_rows, seed, run_numbers_of_split) if is_cap else None
            theta = descent.train_cells(
                train_rows, mechanism, cells, seed, run_numbers_of_split, ranks, should_stop
            )
        if theta is None:
            return False
        score_positions = np.array(cell_indices)[:, None], np.array(run_numbers_of_split)
        for side_index, side_rows in enumerate((train_rows, test_rows)):
            model_scores = score_models(side_rows, mechanism.loss, theta)
            scores[*score_positions, side_index] = model_scores.reshape(len(cells), -1, *SCORE_SHAPE)
    return True
