"""The solution for a classifier: put together once for a question, its data, and the finished runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.answer.against import MAX_CACHED_EPSILONS, BoundComparison
from dpcore.common import weights
from dpcore.common.checks import refuse
from dpcore.common.progress import Progress, ShouldStop, Stage, never, silent
from dpcore.common.text_fields import build_from
from dpcore.common.weights import compute_smooth_losses
from dpcore.contributions import FloatArray
from dpcore.training import decision, experiment
from dpcore.training.account import Cell, Method
from dpcore.training.decision import BestCell
from dpcore.training.experiment import Experiment, References, ReferenceScores, RunTable, SplitSummary
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.parameters import GENERATOR_FIELDS, DataSource, TrainingParameters
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit, prepare_rows
from dpcore.training.training_data import TrainingData, load_sample


@dataclass(frozen=True, eq=False)
class Runs:
    """The finished runs of a training.

    Attributes:
        table: With the runs that are done.
        references: What it is compared with.
        close_table: More runs of methods that those of the table do not tell apart; None where there are none.
        is_complete: True if no run is missing, nor one that decides between methods.
    """

    table: RunTable
    references: References
    close_table: RunTable | None = None
    is_complete: bool = False

    @property
    def user_share(self) -> float:
        """Return the share of all users that the runs are made on: below 1 for a first look, else 1."""
        return self.table.experiment.mechanism.user_share

    @property
    def digest(self) -> Hashable:
        """Return a key of the finished runs: each table's experiment and the number of runs of each cell."""
        tables = [table for table in (self.table, self.close_table) if table is not None]
        return tuple((table.experiment.key, *table.runs_done.tolist()) for table in tables)


def complete_runs(
    full_experiment: Experiment,
    runs: Runs | None = None,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    on_runs: Callable[[Runs], None] | None = None,
) -> Runs | None:
    """Make the missing runs, then those that decide a close call; return all runs, or None if there are none.

    Args:
        full_experiment: The methods, bounds and splits.
        runs: The runs that there are; None for none.
        progress: Told the share of runs done.
        should_stop: Asked between steps.
        on_runs: Given the runs as they come. A large table then begins with a first look at some of its users.

    Returns:
        The runs that are there, all of them unless it was stopped; None if it was stopped before the first.
    """
    references, table, first_look_runs = None, full_experiment.make_empty_table(), None
    if runs is not None and runs.user_share == 1.0:
        references, table = runs.references, runs.table
    if references is None:
        first_look_runs = None if on_runs is None else _take_first_look(full_experiment, should_stop, on_runs)
        references = experiment.compute_references(full_experiment, should_stop)
    if references is None:
        return first_look_runs
    finished_references = references
    table = experiment.fill_table(
        table,
        progress=progress,
        should_stop=should_stop,
        on_update=None if on_runs is None else lambda table: on_runs(Runs(table, finished_references)),
    )
    if first_look_runs is not None and not table.runs_done.any():
        return first_look_runs
    close_experiment = decision.plan_close_call(table)
    if close_experiment is None:
        return Runs(table, references, is_complete=table.is_finished)
    close_table = experiment.fill_table(close_experiment.make_empty_table(), should_stop=should_stop)
    if not close_table.runs_done.min():
        return Runs(table, references)
    return Runs(table, references, close_table=close_table, is_complete=True)


def _take_first_look(
    full_experiment: Experiment, should_stop: ShouldStop, on_runs: Callable[[Runs], None]
) -> Runs | None:
    """Make a few runs on some of the users of a large table; None if the table is small, or if no run was done."""
    subset_experiment = experiment.make_first_look(full_experiment)
    if subset_experiment is None:
        return None
    references = experiment.compute_references(subset_experiment, should_stop)
    if references is None:
        return None
    table = experiment.fill_table(
        subset_experiment.make_empty_table(),
        should_stop=should_stop,
        on_update=lambda table: on_runs(Runs(table, references)),
    )
    return Runs(table, references) if table.runs_done.any() else None


@dataclass(frozen=True, eq=False)
class TrainingSolution:
    """All results that sentences and plots are made of.

    Attributes:
        data: With a scaling.
        parameters: What was entered.
        runs: The finished runs.
        stage: Whether it is for the question as it is asked now, and whether more is to come.
    """

    data: TrainingData
    parameters: TrainingParameters
    runs: Runs
    stage: Stage = Stage.FINAL

    @property
    def table(self) -> RunTable:
        """Return the table of all cells; that of a close call is ``runs.close_table``."""
        return self.runs.table

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the methods and bounds of the table."""
        return self.table.experiment.cells

    @cached_property
    def best_cell(self) -> BestCell | None:
        """Choose the cell that answers; None before the first run."""
        return decision.choose_answer(self.table, self.runs.close_table, not self.data.dataset.is_private)

    @cached_property
    def best_cell_by_method(self) -> Mapping[Method, BestCell]:
        """Find the best cell of every method that has runs; for the method that answers, the cell that answers."""
        best_by_method = {method: decision.find_best_cell(self.table, method) for method in Method}
        if self.best_cell is not None:
            best_by_method[self.answer_cell.method] = self.best_cell
        return {method: best_cell for method, best_cell in best_by_method.items() if best_cell is not None}

    @cached_property
    def verdict(self) -> SplitSummary | None:
        """Return the mean of the answer's loss less that of guessing, with its errors; None before the first run."""
        if self.best_cell is None:
            return None
        return decision.compare_with_guessing(self.table, self.runs.references, self.best_cell.cell_index)

    @cached_property
    def trade_offs(self) -> tuple[float, float]:
        """Compute A in W² + A Σ c²: of plain descent with its constants, and of theorem 4 with constant 1."""
        rows, mechanism = self.table.experiment.train, build_plain_mechanism(self.parameters)
        eigenvalues = decision.compute_public_eigenvalues(rows, mechanism)
        theorem_trade_off = decision.compute_theorem_trade_off(rows.histogram, rows.num_features, mechanism)
        return decision.calibrate_trade_off(eigenvalues, mechanism), theorem_trade_off

    def average(self, measure: Measure, cell_index: int | None = None) -> float:
        """Return a cell's mean score on rows held out; for None, that of the cell that answers."""
        mean_scores = self.table.summarise(measure).means
        return float(mean_scores[self.answer_index if cell_index is None else cell_index])

    def average_references(
        self, measure: Measure = Measure.LOSS, score_unit: ScoreUnit = ScoreUnit.ROWS
    ) -> ReferenceScores:
        """Return the scores on users held out: without privacy, guessing, without noise, also without clipping."""
        return self.runs.references.average(measure, score_unit)

    @property
    def answer_index(self) -> int:
        """Return the position of the cell that answers."""
        assert self.best_cell is not None
        return self.best_cell.cell_index

    @property
    def answer_cell(self) -> Cell:
        """Return the method that answers, at its best bound."""
        return self.cells[self.answer_index]

    @property
    def reaches(self) -> FloatArray:
        """Return bound × clip of each cell, in rows; of clipped sums that adapt, the smallest first bound."""
        return np.array([cell.reach for cell in self.cells])

    @property
    def largest_weights(self) -> FloatArray:
        """Compute W of each cell, as of smooth weights at its bound: the heaviest user's share; NaN if it follows."""
        training_rows = self.table.experiment.train
        cell_bounds = np.clip([cell.bound for cell in self.cells], 1e-9, float(training_rows.sizes.max()))
        largest_weights = compute_smooth_losses(training_rows.histogram, cell_bounds).largest_weight
        adaptive_bound_mask = np.array([cell.method is Method.FOLLOWED for cell in self.cells])
        return np.where(adaptive_bound_mask, np.nan, largest_weights)

    @property
    def is_useless(self) -> bool:
        """Return True if even the best method clearly does no better than guessing; False before the first run."""
        return self.verdict is not None and bool(self.verdict.is_clear and self.verdict.means > 0.0)

    @property
    def is_unclear(self) -> bool:
        """Return True if the runs do not distinguish the best method from guessing; False before the first run."""
        return self.verdict is not None and not self.verdict.is_clear


IGNORED_FIELD_NAMES = ("bound", "bounded_by", "pace", "runs", "splits", "radius", *GENERATOR_FIELDS, "source")


def compare_over_epsilon(data: TrainingData, parameters: TrainingParameters) -> BoundComparison:
    """Build the comparison over epsilon by theory: functions for best bound and predicted excess loss.

    Curves from runs would be simulations, one training of all bounds for every ε; theory answers at once.
    """
    training_rows = parameters.make_experiment(scale_rows(data, parameters.positive_above)).train
    mechanism, histogram = build_plain_mechanism(parameters), training_rows.histogram
    eigenvalues = decision.compute_public_eigenvalues(training_rows, mechanism)

    @functools.lru_cache(MAX_CACHED_EPSILONS)
    def compute_costs(epsilon: float) -> tuple[float, float]:
        """Compute the costs (a, b) of sampling and of noise at an epsilon, as `decision.calibrate_costs`."""
        return decision.calibrate_costs(eigenvalues, replace(mechanism, epsilon=epsilon))

    def find_best_bound(epsilon: float) -> tuple[float, float]:
        """Return the best bound at an epsilon, in rows, and the predicted excess of the loss under it."""
        sampling_cost, noise_cost = compute_costs(epsilon)
        bound = weights.find_best_smooth(
            histogram, sampling_cost / noise_cost if noise_cost > 0.0 else 0.0
        ).bound
        return bound, float(decision.predict_excess(histogram, np.array(bound), (sampling_cost, noise_cost)))

    return BoundComparison(
        "Best bound h (rows per user)",
        "Predicted excess of the loss",
        find_best_bound,
        # Accounting for a share of the users in a step takes seconds for one ε: no table follows the slider then.
        None
        if mechanism.sampled < 1.0
        else lambda epsilon, bounds: decision.predict_excess(histogram, bounds, compute_costs(epsilon)),
        histogram.sizes,
        histogram.users,
        is_integer=False,
        is_slow=mechanism.sampled < 1.0,
        caption="Predicted for smooth weights, as in the tab Theory: it ignores clipping, too few steps and heavy "
        "users who differ.",
    )


def build_plain_mechanism(parameters: TrainingParameters) -> Mechanism:
    """Return the descent that the theory is about: steps and step size as entered, without any rule for them."""
    return build_from(Mechanism, parameters, pace=Pace.ENTERED)


def scale_rows(data: TrainingData, positive_above: float) -> ClassifierRows:
    """Scale rows and sort them by user; a label above the threshold is 1, any other -1.

    Raises:
        InvalidInput: The data have no labels and features, or no ranges.
    """
    if data.dataset.table is None or data.scaling is None:
        remedy_text = "See dpcore.training.training_data.TrainingData"
        raise refuse("the data have no labels and features, or their ranges are missing", remedy=remedy_text)
    return prepare_rows(data.dataset.table, data.scaling, positive_above)


def solve(data: TrainingData | None, parameters: TrainingParameters) -> TrainingSolution:
    """Train all runs of every method at every bound, and those of a close call; return the solution.

    Args:
        data: With a scaling; None where the parameters name the sample, or say how the data are generated.
        parameters: The question.

    Raises:
        InvalidInput: The data have no labels, features or ranges, or do not fit the question.
    """
    if data is None:
        if parameters.source is DataSource.UPLOAD:
            raise refuse("no data were given, and the settings name a table of one's own")
        data = load_sample() if parameters.source is DataSource.SAMPLE else parameters.generator.generate()
    else:
        parameters = replace(parameters, source=DataSource.UPLOAD)
    runs = complete_runs(parameters.make_experiment(scale_rows(data, parameters.positive_above)))
    assert runs is not None  # Nobody stops it.
    return TrainingSolution(data, parameters, runs)
