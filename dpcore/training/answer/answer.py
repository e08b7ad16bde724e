"""The answer for a classifier: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.training import files
from dpcore.training.answer import plots, words
from dpcore.training.answer.code import of_training
from dpcore.training.answer.found import TrainingFound, find
from dpcore.training.answer.methods import methods
from dpcore.training.parameters import TrainingParameters, assumptions
from dpcore.training.scores import Measure, Over
from dpcore.training.training_data import TrainingData, how_labels_are_cut


def build_answer(
    data: TrainingData | None, parameters: TrainingParameters, found: TrainingFound | None = None
) -> Answer:
    """How much a user may weigh when a private classifier is trained.

    Args:
        data: A table with the public ranges of its features; None where the parameters name the sample, or say how the
            data are generated.
        parameters: The question.
        found: What `find` found for both, with at least the first runs; by default all runs are made here.

    Returns:
        The answer; its ``found`` is a `TrainingFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels, features or ranges, or do not fit the question.

    Source: Epasto et al. 2020, section 4.
    """
    of = find(data, parameters) if found is None else found
    cut = how_labels_are_cut(of.data, of.parameters.positive_above)
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of),
        numbers=words.numbers(of),
        assumptions=(*((cut,) if cut else ()), *assumptions(of.parameters)),
        disclosure=of.data.provenance,
        facts=words.facts(of),
        proofs=(("Model without privacy", of.known.certificate, "Newton's method."),),
        code=of_training(of),
        good_enough=words.good_enough(of),
        parameters=of.parameters,
        found=of,
        plots={
            "training-methods-loss": lambda: plots.methods(of, Measure.LOSS, Over.ROWS),
            "training-loss": lambda: plots.bounds(of, Measure.LOSS, Over.ROWS),
            "training-accuracy": lambda: plots.bounds(of, Measure.ACCURACY, Over.ROWS),
            "training-sides": lambda: plots.sides(of),
        },
        written=lambda: methods(of),
        choice=lambda: files.choice_json(
            of.data.dataset, of.parameters, of.table, of.known, of.calibrated, of.best
        ),
    )
