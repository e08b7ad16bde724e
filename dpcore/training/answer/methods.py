"""What a classifier has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Chosen, Methods, guarantee
from dpcore.common import wording
from dpcore.training.answer.found import TrainingFound
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average
from dpcore.training.parameters import TrainingParameters
from dpcore.training.release import Model
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method

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


def methods(found: TrainingFound, released: Model | None = None) -> Methods | None:
    """What is said of a model that was released on the page, or of the program that trains one at the best bound.

    The two differ in bound and mechanism: the page releases with the bound that was entered, all users in every step
    and OpenDP's discrete noise; the program has the best bound of smooth weights, and may sample users.

    Args:
        found: What was simulated.
        released: The page's own release for these settings; None where there is none.

    Returns:
        The sentences; None where nothing was released and no run is finished.
    """
    p = found.parameters
    if released is not None:
        return _of_release(p, released)
    limited = "Rows were weighted [@epasto2020, section 4] such that no user weighs more than "
    trained = _trained(p)
    if found.best is None:
        return None
    bound, losses = found.cell(found.best.at).bound, found.summary(Measure.LOSS, Over.ROWS)
    mean, half = float(losses.mean[found.best.at]), float(losses.half_width[found.best.at])
    told = (
        f"{limited}{wording.number(bound, 6)} {'row' if bound == 1.0 else 'rows'}. {trained} On users held "
        f"out the mean loss of a row is {wording.number(mean)} ± {wording.number(half, 2)} (95 % interval "
        f"over {wording.counted(int(losses.runs[found.best.at]), 'simulated run')})."
    )
    nothing = ""
    if found.is_useless:
        nothing = (
            f"At ε = {wording.entered(p.epsilon)} and δ = {wording.entered(p.delta)} no bound on a user's weight "
            "trained a classifier better than guessing, and nothing was released."
        )
    return Methods(
        guarantee=guarantee("A linear classifier was released", p.epsilon, p.neighbours, p.delta),
        found=told,
        withheld=f"{limited}a fixed number of rows. {trained}",
        disclosure=found.data.dataset.provenance,
        rule="The bound has the smallest mean loss of those tried on users held out.",
        nothing=nothing,
    )


def _of_release(p: TrainingParameters, model: Model) -> Methods:
    """The model that the page released, by the guarantee that was charged for it."""
    facts, cell = model.facts, model.cell
    rows = f"{wording.number(cell.bound, 6)} {wording.agreeing(cell.bound, 'row', 'rows')}"
    limited = (
        f"Of each user at most {rows}, drawn once at random, were kept [@amin2019, algorithm 1]."
        if cell.method is Method.CAP
        else f"Rows were weighted [@epasto2020, section 4] such that no user weighs more than {rows}."
    )
    done = (
        f"{limited} {_descent(p, 'discrete Gaussian')} Gradients were rounded onto a public grid, and all users took "
        "part in every step. The noise was drawn by OpenDP; that of all steps is one Gaussian mechanism, whose "
        "guarantee is exact [@balle2018], but for what tells discrete noise from normal, which is counted."
    )
    return Methods(
        guarantee=guarantee("A linear classifier was released", facts.epsilon, facts.neighbours, facts.delta),
        found=done,
        withheld=done,
        disclosure=facts,
        rule="The bound was chosen before the release; its choice is not covered by the guarantee.",
        what="The model",
        chosen=Chosen.DRAWN,
    )


def _descent(p: TrainingParameters, noise: str) -> str:
    steps = wording.counted(p.steps, "step")
    return (
        f"The model is {AVERAGES[p.average]} of {steps} of projected gradient descent on {LOSSES[p.loss]} with "
        f"{noise} noise in every step [@bassily2014]; every row's gradient was clipped to norm 1."
    )


def _trained(p: TrainingParameters) -> str:
    text = _descent(p, "Gaussian")
    if p.sampled < 1.0:
        return text + (
            f" Each user took part in a step with probability {wording.entered(p.sampled)}, and the privacy "
            "losses of all steps were composed numerically [@doroshenko2022] with [@dpaccounting]."
        )
    return (
        text
        + " The noise of all steps together is that of one Gaussian mechanism, calibrated exactly [@balle2018]."
    )
