"""The methods section of a recommender."""

from __future__ import annotations

import math

from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.factorisation.answer.found import FactorisationSolution
from dpcore.factorisation.parameters import Algorithm, FactorisationParameters
from dpcore.factorisation.study import BASELINE, FACTORISATION

RATINGS_USED = {
    FACTORISATION: "all ratings, with weights that fall with the noisy number of ratings of an item"
}


def write_methods(solution: FactorisationSolution) -> Methods | None:
    """Write the methods section with the recommendation and its error; None before a training."""
    parameters, verdict, result = solution.parameters, solution.verdict, solution.result
    if result is None or verdict is None:
        return None
    learning_text = _describe_learning(parameters)
    model_kind = FACTORISATION if verdict.is_worth_it else BASELINE
    mean, half_width = (
        float(values[result.study.epsilons.index(verdict.epsilon), 0])
        for values in result.summarise(model_kind)
    )
    spread = f" ± {half_width:.4f}" if math.isfinite(half_width) else ""
    runs = wording.counted(result.study.repeats, "simulated run")
    step = (
        f"{learning_text} It used {RATINGS_USED[model_kind]}."
        if model_kind in RATINGS_USED
        else "Noisy means of the items' ratings were released; users add offsets of their own, computed at home."
    )
    text = f"{step} The root mean squared error on ratings held out is {mean:.4f}{spread} ({runs})."
    return Methods(
        # That of the training which the choice and its error come from, not the one entered since, if they differ.
        guarantee=write_guarantee(
            "A recommender was released", verdict.epsilon, Neighbours.ADD_OR_REMOVE_USER, parameters.delta
        ),
        sentences=text,
        public_sentences=f"{learning_text} It was compared with noisy item means and users' own offsets.",
        disclosure=solution.table.disclosure,
        rule="A factorisation with adaptive weights was compared with noisy item means and users' own offsets, on "
        "ratings held out. It was preferred only if the difference is larger than its interval.",
        subject="The choice",
    )


def _describe_learning(parameters: FactorisationParameters) -> str:
    """Describe how the vectors are learned."""
    sweeps = wording.counted(parameters.sweeps, "sweep")
    method = (
        "least squares on noisy sums [@chien2021]"
        if parameters.algorithm is Algorithm.STATISTICS
        else "noisy gradient steps"
    )
    return (
        f"Vectors of {parameters.dimension} entries were learned in {sweeps} of alternating minimisation "
        f"[@krichene2023, algorithm 3] by {method}, with squared weights of a user that sum to at most "
        f"{parameters.max_items:,}. Counts and sweeps together are one Gaussian mechanism [@dong2022], calibrated "
        "exactly [@balle2018]."
    )
