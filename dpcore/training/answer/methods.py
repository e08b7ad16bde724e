"""The methods section of a classifier."""

from __future__ import annotations

from dpcore.answer.methods import ChoiceSource, Methods, write_guarantee
from dpcore.common import wording
from dpcore.training.answer.found import TrainingSolution
from dpcore.training.answer.words import format_uncertainty
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average, Pace
from dpcore.training.pace import apply_rule
from dpcore.training.parameters import TrainingParameters
from dpcore.training.release import Model
from dpcore.training.scores import Measure, ScoreUnit
from dpcore.training.weighting import Cell, Method

LOSSES = {
    LossKind.LOGISTIC: "the logistic loss",
    LossKind.SQUARED: "the squared loss",
    LossKind.HINGE: "a smoothed hinge loss",
}
AVERAGES = {
    Average.ALL: "the average of all iterates",
    Average.LAST_HALF: "the average of the last half of the iterates",
    Average.LAST: "the last iterate",
}
WEIGHTED_AVERAGE = "a weighted average of the iterates"


def write_methods(solution: TrainingSolution, model: Model | None = None) -> Methods | None:
    """Write the methods section of a model that the page released, or of the program at the best bound.

    The two differ in bound and mechanism: the page releases with the entered settings, all users in every step
    and OpenDP's discrete noise; the program has the method that answers, and may sample users.

    Args:
        solution: What was simulated.
        model: The page's own release for these settings; None where there is none.

    Returns:
        The sentences; None where nothing was released and no run is finished.
    """
    parameters = solution.parameters
    if model is not None:
        return _describe_release(parameters, model)
    if solution.best is None:
        return None
    cell, loss_summary = (
        solution.get_cell(solution.best.cell_index),
        solution.summarise(Measure.LOSS, ScoreUnit.ROWS),
    )
    mean_loss = float(loss_summary.mean[solution.best.cell_index])
    training_text = _describe_training(parameters, cell)
    text = (
        f"{_describe_bound(cell)} {training_text} On users held out the mean loss of a row is "
        f"{wording.number(mean_loss)} ({format_uncertainty(solution)}; 95 % intervals over "
        f"{wording.counted(int(loss_summary.runs[solution.best.cell_index]), 'simulated run')} on "
        f"{wording.counted(len(solution.table.experiment.splits), 'split')} of the users)."
    )
    nothing_text = ""
    if solution.is_useless:
        nothing_text = (
            f"At ε = {wording.entered(parameters.epsilon)} and δ = {wording.entered(parameters.delta)} no method and "
            "no bound trained a classifier better than guessing, and nothing was released."
        )
    bound_follows = cell.method is Method.FOLLOWED
    bound_text = _describe_bound(cell) if bound_follows else "Users were bounded by a fixed number of rows."
    return Methods(
        guarantee=write_guarantee(
            "A linear classifier was released", parameters.epsilon, parameters.neighbours, parameters.delta
        ),
        sentences=text,
        public_sentences=f"{bound_text} {training_text}",
        disclosure=solution.data.dataset.provenance,
        rule="The method has the smallest mean loss of those tried on users held out, or is within one standard error "
        "of it; the bound follows the users, within the guarantee."
        if bound_follows
        else "Method and bound have the smallest mean loss of those tried on users held out.",
        empty_sentence=nothing_text,
    )


def _describe_bound(cell: Cell) -> str:
    """Describe how users are bounded, with the source."""
    rows = f"{wording.number(cell.bound, 6)} {wording.agreeing(cell.bound, 'row', 'rows')}"
    clipping_text = (
        f" Gradients of rows were shortened to norm {wording.number(cell.clip)}." if cell.clip < 1.0 else ""
    )
    return {
        Method.FOLLOWED: "Each user's sum of gradients was clipped at a bound that follows a private quantile of their "
        "norms [@andrew2021].",
        Method.CLIPPED_SUM: f"Each user's sum of gradients was clipped to norm {wording.number(cell.bound, 6)} "
        "[@mcmahan2018].",
        Method.CAP: f"At most {rows} of each user, drawn once at random, were kept [@amin2019, algorithm 1]."
        f"{clipping_text}",
    }.get(
        cell.method,
        f"Rows were weighted [@epasto2020, section 4] such that no user weighs more than {rows}.{clipping_text}",
    )


def _describe_release(parameters: TrainingParameters, model: Model) -> Methods:
    """Describe the model that the page released, by the guarantee that was charged for it."""
    facts, cell = model.facts, model.cell
    text = (
        f"{_describe_bound(cell)} {_describe_descent(parameters, cell, 'discrete Gaussian')} Contributions were "
        "rounded onto a public grid, and all users took part in every step. OpenDP drew the noise. That of all steps "
        "is one Gaussian mechanism, calibrated exactly [@balle2018]; the difference between discrete and normal noise "
        "is counted."
    )
    return Methods(
        guarantee=write_guarantee(
            "A linear classifier was released", facts.epsilon, facts.neighbours, facts.delta
        ),
        sentences=text,
        public_sentences=text,
        disclosure=facts,
        rule="The bound followed the users, within the guarantee."
        if cell.method is Method.FOLLOWED
        else "The bound was chosen before the release; its choice is not covered by the guarantee.",
        subject="The model",
        choice_source=ChoiceSource.DRAWN,
    )


def _describe_descent(parameters: TrainingParameters, cell: Cell, noise: str) -> str:
    """Describe the descent."""
    if cell.method is Method.OUTPUT:
        return (
            f"The model is the minimiser of {LOSSES[parameters.loss]} with a quadratic penalty and {noise} noise "
            "[@chaudhuri2011]."
        )
    mechanism = apply_rule(parameters.mechanism) if cell.method is Method.FOLLOWED else parameters.mechanism
    steps = wording.counted(mechanism.steps, "step")
    by_rule_alone = mechanism.pace is Pace.RULE
    momentum_text = "with momentum " if by_rule_alone else ""
    average_text = WEIGHTED_AVERAGE if by_rule_alone else AVERAGES[mechanism.average]
    return (
        f"The model is {average_text} of {steps} of projected gradient descent {momentum_text}on "
        f"{LOSSES[parameters.loss]} with {noise} noise in every step [@bassily2014]; every row's gradient was clipped "
        "to norm 1."
    )


def _describe_training(parameters: TrainingParameters, cell: Cell) -> str:
    """Describe the descent and the composition of its steps."""
    text = _describe_descent(parameters, cell, "Gaussian")
    if parameters.mechanism.sampled < 1.0 and cell.method is not Method.FOLLOWED:
        return text + (
            f" Each user took part in a step with probability {wording.entered(parameters.sampled)}, and the privacy "
            "losses of all steps were composed numerically [@doroshenko2022] with [@dpaccounting]."
        )
    return (
        text
        + " The noise of all steps together is that of one Gaussian mechanism, calibrated exactly [@balle2018]."
    )
