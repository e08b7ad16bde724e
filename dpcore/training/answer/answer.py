"""The answer for a classifier: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.training import files
from dpcore.training.answer import plots, words
from dpcore.training.answer.code import choose_programs
from dpcore.training.answer.found import TrainingSolution, solve
from dpcore.training.answer.methods import write_methods
from dpcore.training.parameters import TrainingParameters, list_assumptions
from dpcore.training.scores import Measure, ScoreUnit
from dpcore.training.training_data import TrainingData, describe_label_rule


def build_answer(
    data: TrainingData | None, parameters: TrainingParameters, solution: TrainingSolution | None = None
) -> Answer:
    """Find how much a user may weigh when a private classifier is trained.

    Args:
        data: A table with the public ranges of its features; None where the parameters name the sample, or say how the
            data are generated.
        parameters: The question.
        solution: What `solve` found for both, with at least the first runs; by default all runs are made here.

    Returns:
        The answer; its ``solution`` is a `TrainingSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels, features or ranges, or do not fit the question.

    Source: Epasto et al. 2020, section 4.
    """
    solution = solve(data, parameters) if solution is None else solution
    label_rule = describe_label_rule(solution.data, solution.parameters.positive_above)
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=(*((label_rule,) if label_rule else ()), *list_assumptions(solution.parameters)),
        disclosure=solution.data.provenance,
        facts=words.build_facts(solution),
        proofs=(("Model without privacy", solution.references.certificate, "Newton's method."),),
        code=choose_programs(solution),
        near_optimal=words.describe_near_optimal(solution),
        parameters=solution.parameters,
        solution=solution,
        plots={
            "training-methods-loss": lambda: plots.plot_methods(solution, Measure.LOSS, ScoreUnit.ROWS),
            "training-loss": lambda: plots.plot_bounds(solution, Measure.LOSS, ScoreUnit.ROWS),
            "training-accuracy": lambda: plots.plot_bounds(solution, Measure.ACCURACY, ScoreUnit.ROWS),
            "training-sides": lambda: plots.plot_sides(solution),
        },
        make_methods=lambda: write_methods(solution),
        choice=lambda: files.write_choice(
            solution.data.dataset,
            solution.parameters,
            solution.table,
            solution.references,
            solution.calibrated_bound,
            solution.best,
        ),
    )
