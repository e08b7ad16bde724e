"""What a classifier has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Chosen, Methods, guarantee
from dpcore.common import wording
from dpcore.training.answer.found import TrainingFound
from dpcore.training.answer.words import doubts
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average, Pace
from dpcore.training.pace import by_rule
from dpcore.training.parameters import TrainingParameters
from dpcore.training.release import Model
from dpcore.training.scores import Measure, Over
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
RISING = "a weighted average of the iterates"


def methods(found: TrainingFound, released: Model | None = None) -> Methods | None:
    """What is said of a model that was released on the page, or of the program that trains one at the best bound.

    The two differ in bound and mechanism: the page releases with what was entered, all users in every step and
    OpenDP's discrete noise; the program has the method that answers, and may sample users.

    Args:
        found: What was simulated.
        released: The page's own release for these settings; None where there is none.

    Returns:
        The sentences; None where nothing was released and no run is finished.
    """
    p = found.parameters
    if released is not None:
        return _of_release(p, released)
    if found.best is None:
        return None
    cell, losses = found.cell(found.best.at), found.summary(Measure.LOSS, Over.ROWS)
    mean = float(losses.mean[found.best.at])
    trained = _trained(p, cell)
    told = (
        f"{_limited(cell)} {trained} On users held out the mean loss of a row is {wording.number(mean)} "
        f"({doubts(found)}; 95 % intervals over {wording.counted(int(losses.runs[found.best.at]), 'simulated run')} "
        f"on {wording.counted(len(found.table.experiment.splits), 'split')} of the users)."
    )
    nothing = ""
    if found.is_useless:
        nothing = (
            f"At ε = {wording.entered(p.epsilon)} and δ = {wording.entered(p.delta)} no method and no bound trained a "
            "classifier better than guessing, and nothing was released."
        )
    follows = cell.method is Method.FOLLOWED
    return Methods(
        guarantee=guarantee("A linear classifier was released", p.epsilon, p.neighbours, p.delta),
        found=told,
        withheld=f"{_limited(cell) if follows else 'Users were bounded by a fixed number of rows.'} {trained}",
        disclosure=found.data.dataset.provenance,
        rule="The method has the smallest mean loss of those tried on users held out, or is within one standard error "
        "of it; the bound follows the users, within the guarantee."
        if follows
        else "Method and bound have the smallest mean loss of those tried on users held out.",
        nothing=nothing,
    )


def _limited(cell: Cell) -> str:
    """What keeps a user within the bound, with its source."""
    rows = f"{wording.number(cell.bound, 6)} {wording.agreeing(cell.bound, 'row', 'rows')}"
    short = (
        f" Gradients of rows were shortened to norm {wording.number(cell.clip)}." if cell.clip < 1.0 else ""
    )
    return {
        Method.FOLLOWED: "Each user's sum of gradients was clipped at a bound that follows a private quantile of their "
        "norms [@andrew2021].",
        Method.CLIPPED_SUM: f"Each user's sum of gradients was clipped to norm {wording.number(cell.bound, 6)} "
        "[@mcmahan2018].",
        Method.CAP: f"At most {rows} of each user, drawn once at random, were kept [@amin2019, algorithm 1].{short}",
    }.get(
        cell.method,
        f"Rows were weighted [@epasto2020, section 4] such that no user weighs more than {rows}.{short}",
    )


def _of_release(p: TrainingParameters, model: Model) -> Methods:
    """The model that the page released, by the guarantee that was charged for it."""
    facts, cell = model.facts, model.cell
    done = (
        f"{_limited(cell)} {_descent(p, cell, 'discrete Gaussian')} Contributions were rounded onto a public grid, and "
        "all users took part in every step. The noise was drawn by OpenDP; that of all steps is one Gaussian "
        "mechanism, whose guarantee is exact [@balle2018], but for what tells discrete noise from normal, which is "
        "counted."
    )
    return Methods(
        guarantee=guarantee("A linear classifier was released", facts.epsilon, facts.neighbours, facts.delta),
        found=done,
        withheld=done,
        disclosure=facts,
        rule="The bound followed the users, within the guarantee."
        if cell.method is Method.FOLLOWED
        else "The bound was chosen before the release; its choice is not covered by the guarantee.",
        what="The model",
        chosen=Chosen.DRAWN,
    )


def _descent(p: TrainingParameters, cell: Cell, noise: str) -> str:
    if cell.method is Method.OUTPUT:
        return (
            f"The model is the minimiser of {LOSSES[p.loss]} with a quadratic penalty and {noise} noise "
            "[@chaudhuri2011]."
        )
    mechanism = by_rule(p.mechanism) if cell.method is Method.FOLLOWED else p.mechanism
    steps = wording.counted(mechanism.steps, "step")
    by_rule_alone = mechanism.pace is Pace.RULE
    how = "with momentum " if by_rule_alone else ""
    averaged = RISING if by_rule_alone else AVERAGES[mechanism.average]
    return (
        f"The model is {averaged} of {steps} of projected gradient descent {how}on "
        f"{LOSSES[p.loss]} with {noise} noise in every step [@bassily2014]; every row's gradient was clipped to norm 1."
    )


def _trained(p: TrainingParameters, cell: Cell) -> str:
    text = _descent(p, cell, "Gaussian")
    if p.mechanism.sampled < 1.0 and cell.method is not Method.FOLLOWED:
        return text + (
            f" Each user took part in a step with probability {wording.entered(p.sampled)}, and the privacy "
            "losses of all steps were composed numerically [@doroshenko2022] with [@dpaccounting]."
        )
    return (
        text
        + " The noise of all steps together is that of one Gaussian mechanism, calibrated exactly [@balle2018]."
    )
