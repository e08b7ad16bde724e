"""Calls of the core that a rerun of the Training page repeats; keyed as in `pages.shared.base.cache`, and why."""

from __future__ import annotations

from dpcore.answer.stage import Stage
from dpcore.training import training_data
from dpcore.training.answer import TrainingSolution, build_solution
from dpcore.training.answer.solution import Runs, scale_rows
from dpcore.training.experiment import Experiment
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import ClassifierRows, TrainingGenerator
from dpcore.training.training_data import TrainingData
from pages.shared.base.cache import cached, cached_for_all


@cached_for_all(max_entries=1)
def sample() -> TrainingData:
    """Return the sample."""
    return training_data.load_sample()


@cached(max_entries=4, own_data=True)
def generated(generator: TrainingGenerator) -> TrainingData:
    """Return generated features, labels and owners."""
    return training_data.generate_data(generator)


@cached(max_entries=4, own_data=True)
def rows(digest: str, positive_above: float, _data: TrainingData) -> ClassifierRows:
    """Return the rows, scaled and sorted by user."""
    return scale_rows(_data, positive_above)


@cached(max_entries=8, own_data=True)
def experiment(
    digest: str, parameters: TrainingParameters, most_runs: int, _rows: ClassifierRows
) -> Experiment:
    """Return the question that a table answers; the rows are split once for it."""
    return parameters.make_experiment(_rows, most_runs)


@cached(max_entries=8, own_data=True)
def load_solution(
    key: tuple[object, ...],
    stage: Stage,
    _data: TrainingData,
    _parameters: TrainingParameters,
    _runs: Runs,
) -> TrainingSolution:
    """Return the solution that the page shows; ``key`` names the question and how many runs are done."""
    return build_solution(_data, _parameters, _runs, stage)
