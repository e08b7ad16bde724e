"""Calls of the core that a rerun of the Training page repeats; keyed as in `pages.shared.base.cache`, and why."""

from __future__ import annotations

from dpcore.training.experiment import Experiment
from dpcore.training.generator import TrainingGenerator
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import ClassifierRows, Scaling, prepare
from dpcore.training.sample import DESIGN, RANGES, ticket_data
from pages.shared.base.cache import cached, cached_for_all
from pages.training import answer
from pages.training.upload import TrainingData


@cached_for_all(max_entries=1)
def sample() -> TrainingData:
    """The sample."""
    data, scaling = ticket_data()
    return TrainingData(data, data.digest, DESIGN, scaling, RANGES)


@cached(max_entries=4, own_data=True)
def generated(generator: TrainingGenerator) -> TrainingData:
    """Generated features, labels and owners."""
    made = generator.generate()
    return TrainingData(made.dataset, made.dataset.digest, scaling=made.scaling)


@cached(max_entries=4, own_data=True)
def rows(digest: str, scaling: Scaling, positive_above: float, _loaded: TrainingData) -> ClassifierRows:
    """Rows scaled and sorted by user."""
    assert _loaded.dataset.table is not None
    return prepare(_loaded.dataset.table, scaling, positive_above)


@cached(max_entries=8, own_data=True)
def experiment(
    digest: str, parameters: TrainingParameters, most_runs: int, _rows: ClassifierRows
) -> Experiment:
    """The question that a table answers; the rows are split once for it."""
    return parameters.experiment(_rows, most_runs)


@cached(max_entries=8, own_data=True)
def view(
    known: tuple[object, ...], stage: answer.Stage, _loaded: TrainingData, _parameters: TrainingParameters,
    _found: answer.Found,
) -> answer.TrainingView:  # fmt: skip
    """What the page shows; ``known`` names the question and how many runs are done."""
    return answer.compute(_loaded, _parameters, _found, stage)
