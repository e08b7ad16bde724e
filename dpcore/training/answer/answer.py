"""The answer for a classifier: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.answer.answer import add_choice
from dpcore.common.strict_json import finite_or_none
from dpcore.common.weights import smooth_losses
from dpcore.training.answer import plots, words
from dpcore.training.answer.code import choose_programs
from dpcore.training.answer.found import TrainingSolution, solve
from dpcore.training.answer.methods import write_methods
from dpcore.training.experiment import Side, Table
from dpcore.training.parameters import TrainingParameters, list_assumptions
from dpcore.training.scores import Measure, ScoreUnit
from dpcore.training.training_data import TrainingData, describe_label_rule
from dpcore.training.weighting import Method


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
    answer = Answer(
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
    )
    return add_choice(
        answer,
        solution.data.dataset,
        "private linear classifier",
        lambda: _list_details(solution),
        question={
            "data_source": solution.parameters.source.value,  # In every choice, ``source`` is the work with the method.
            "mechanism": "noisy full-batch gradient descent",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 4 and appendix E.2",
        },
        data={"users_held_out": solution.table.experiment.test.num_users},
        schema="sweetspot/training/2",
    )


def _list_details(solution: TrainingSolution) -> dict[str, object]:
    best, references, cells = solution.best, solution.references, solution.table.experiment.cells
    theory = solution.calibrated_bound
    cell = None if best is None else cells[best.cell_index]
    bound_follows = cell is not None and cell.method is Method.FOLLOWED
    held_out_loss = (Side.HELD_OUT, ScoreUnit.ROWS, Measure.LOSS)
    return {
        "method": None if cell is None else cell.method.value,
        "bound": None if cell is None or bound_follows else cell.reach,
        "good_enough": None if best is None or bound_follows else [best.low, best.high],
        "loss_without_privacy": references.average(references.no_privacy, *held_out_loss),
        "loss_of_guessing": references.average(references.guessing, *held_out_loss),
        "loss_without_noise": references.average(references.without_noise, *held_out_loss),
        "loss_without_noise_and_clipping": references.average(
            references.without_noise_and_clipping, *held_out_loss
        ),
        "proved_relative_gap": finite_or_none(references.certificate.relative_gap),
        "trade_off_of_theory": finite_or_none(theory.trade_off),
        "bound_of_theory": theory.threshold.bound,
        "methods": _list_methods(solution.table),
    }


def _list_methods(table: Table) -> list[dict[str, object]]:
    """List every method at every bound, with its scores on the users held out."""
    losses, user_losses = (table.summarise(Measure.LOSS, unit) for unit in (ScoreUnit.ROWS, ScoreUnit.USERS))
    accuracies = table.summarise(Measure.ACCURACY, ScoreUnit.ROWS)
    histogram = table.experiment.train.histogram
    entries: list[dict[str, object]] = []
    for i, cell in enumerate(table.experiment.cells):
        bound, largest_weight = None, None
        if cell.method is not Method.FOLLOWED:
            bound = cell.reach
            weights = smooth_losses(histogram, min(cell.bound, histogram.max_size))
            largest_weight = float(weights.largest_weight)
        scores = {
            "loss": losses.mean,
            "half_width_95": losses.half_width,
            "half_width_95_users": losses.users_half_width,
            "loss_over_users": user_losses.mean,
            "rows_told_right": accuracies.mean,
        }
        entries.append(
            {
                "method": cell.method.value,
                "bound": bound,
                "row_clip": cell.clip,
                "largest_user_weight": largest_weight,
                "runs": int(losses.runs[i]),
                **{name: finite_or_none(float(values[i])) for name, values in scores.items()},
            }
        )
    return entries
