"""What a training with several examples of a user has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Methods, guarantee
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer.found import ExamplesFound
from dpcore.examples_per_user.answer.words import above
from dpcore.examples_per_user.parameters import NEIGHBOURS, Way

ACCOUNT = "Its account is that of [@choquettechoo2023], by [@dpaccounting]."


def methods(found: ExamplesFound, data: Dataset) -> Methods:
    """How the model is trained, and by what the bound was chosen."""
    of, asked = found.best, found.parameters
    drawn = (
        "users were drawn, and the mean of a user's gradients was clipped"
        if of.way is Way.USERS
        else "examples were drawn, and each gradient was clipped"
    )
    steps = f"{wording.counted(asked.steps, 'step')} of DP-SGD"
    begin = f"The model was trained by {steps} on a bounded number of examples of each user [@charles2024]"
    return Methods(
        guarantee=guarantee("A model was trained and released", asked.epsilon, NEIGHBOURS, asked.delta),
        found=f"{begin}: at most {wording.number(of.bound)} of each. In every step {drawn}, each drawn independently "
        f"with probability {wording.number(of.rate)}; Gaussian noise of {wording.number(above(of.multiplier), 4)} clip "
        f"norms was added to the sum, which was divided by the constant {wording.number(of.divisor, 4)}. {ACCOUNT}",
        withheld=f"{begin}; Gaussian noise was added to sums of clipped gradients. {ACCOUNT}",
        disclosure=data.provenance,
        rule="The bound minimises a heuristic estimate of the error for "
        f"{wording.counted(asked.dimension, 'parameter')}, {wording.entered(asked.batch)} examples expected per step "
        f"and a share {wording.entered(asked.alike)} of a gradient common to a user's examples.",
    )
