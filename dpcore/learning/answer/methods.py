"""The sentences on a learner under a cap for a methods section."""

from __future__ import annotations

from dpcore import learning
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.learning.answer.found import LearningSolution


def write_methods(
    solution: LearningSolution, data: Dataset, parameters: learning.LearningParameters
) -> Methods:
    """State the best cap; the bound on the excess risk that it minimises promises no accuracy, and is not stated."""
    cap = solution.choice.max_contributions
    return Methods(
        guarantee=write_guarantee(
            "A model was trained by a private learner, and released,",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
        ),
        sentences=f"The learner saw at most {wording.counted(cap, 'row')} of each user, which are "
        f"{wording.percent(solution.choice.fraction)} of all rows.",
        public_sentences="The learner saw at most a fixed number of rows of each user.",
        disclosure=data.provenance,
        rule="The bound minimises an upper bound on the excess risk of the learner [@amin2019, theorem 1], "
        f"with the bias counted twice, VC dimension {parameters.vc_dimension}, failure probability "
        f"{wording.entered(parameters.failure_probability)}, and hidden constants of "
        f"{wording.entered(parameters.finite_sample_constant)} and "
        f"{wording.entered(parameters.privacy_constant)} for the finite sample and for privacy; it compares "
        "bounds and promises no accuracy.",
    )
