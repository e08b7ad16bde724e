"""What the page Training has to say in a methods section."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.report.methods import Methods, guarantee
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Average
from dpcore.training.parameters import TrainingParameters
from dpcore.training.scores import Measure, Over
from pages.training.answer import TrainingView

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


def methods(view: TrainingView) -> Methods | None:
    """The best bound of smooth weights, and the loss of models trained with it; None before the first run."""
    p = view.parameters
    limited = "Rows were weighted [@epasto2020, section 4] such that no user weighs more than "
    trained = _trained(p)
    if view.best is None:
        return None
    bound, losses = view.cell(view.best.at).bound, view.summary(Measure.LOSS, Over.ROWS)
    mean, half = float(losses.mean[view.best.at]), float(losses.half_width[view.best.at])
    found = (
        f"{limited}{wording.number(bound, 6)} {'row' if bound == 1.0 else 'rows'}. {trained} On users held "
        f"out the mean loss of a row is {wording.number(mean)} ± {wording.number(half, 2)} (95 % interval "
        f"over {wording.counted(int(losses.runs[view.best.at]), 'simulated run')})."
    )
    nothing = ""
    if view.is_useless:
        nothing = (
            f"At ε = {wording.entered(p.epsilon)} and δ = {wording.entered(p.delta)} no bound on a user's weight "
            "trained a classifier better than guessing, and nothing was released."
        )
    return Methods(
        guarantee=guarantee("A linear classifier was released", p.epsilon, p.neighbours, p.delta),
        found=found,
        withheld=f"{limited}a fixed number of rows. {trained}",
        disclosure=view.loaded.dataset.provenance,
        rule="The bound has the smallest mean loss of those tried on users held out.",
        nothing=nothing,
    )


def _trained(p: TrainingParameters) -> str:
    steps = wording.counted(p.steps, "step")
    text = (
        f"The model is {AVERAGES[p.average]} of {steps} of projected gradient descent on {LOSSES[p.loss]} with "
        "Gaussian noise in every step [@bassily2014]; every row's gradient was clipped to norm 1."
    )
    if p.sampled < 1.0:
        return text + (
            f" Each user took part in a step with probability {wording.entered(p.sampled)}, and the privacy "
            "losses of all steps were composed numerically [@doroshenko2022] with [@dpaccounting]."
        )
    return (
        text
        + " The noise of all steps together is that of one Gaussian mechanism, calibrated exactly [@balle2018]."
    )
