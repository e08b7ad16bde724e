"""The methods section of a training with several examples of a user."""

from __future__ import annotations

from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer.found import ExamplesSolution
from dpcore.examples_per_user.answer.words import round_up
from dpcore.examples_per_user.parameters import NEIGHBOURS, Sampling

ACCOUNT = "Its account is that of [@choquettechoo2023], by [@dpaccounting]."


def write_methods(solution: ExamplesSolution, dataset: Dataset) -> Methods:
    """Write how the model is trained, and how the bound was chosen."""
    best, parameters = solution.best, solution.parameters
    sampling_text = (
        "users were drawn, and the mean of a user's gradients was clipped"
        if best.sampling is Sampling.USERS
        else "examples were drawn, and each gradient was clipped"
    )
    steps = f"{wording.counted(parameters.steps, 'step')} of DP-SGD"
    opening = f"The model was trained by {steps} on a bounded number of examples of each user [@charles2024]"
    return Methods(
        guarantee=write_guarantee(
            "A model was trained and released", parameters.epsilon, NEIGHBOURS, parameters.delta
        ),
        sentences=f"{opening}: at most {wording.number(best.bound)} of each. In every step {sampling_text}, each drawn "
        f"independently with probability {wording.number(best.rate)}. Gaussian noise of "
        f"{wording.number(round_up(best.multiplier), 4)} clip norms was added to the sum, which was divided by the "
        f"constant {wording.number(best.divisor, 4)}. {ACCOUNT}",
        public_sentences=f"{opening}; Gaussian noise was added to sums of clipped gradients. {ACCOUNT}",
        disclosure=dataset.provenance,
        rule="The bound minimises a heuristic estimate of the error for "
        f"{wording.counted(parameters.dimension, 'parameter')}, {wording.entered(parameters.batch)} examples expected "
        f"per step and a share {wording.entered(parameters.alike)} of a gradient common to a user's examples.",
    )
