"""The methods section of many tasks."""

from __future__ import annotations

from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.multitask.answer.found import MultitaskSolution
from dpcore.multitask.fit import BudgetFit

FIT_SENTENCES = {
    BudgetFit.CLIPPED: "the weights of a user above the budget were scaled down to it",
    BudgetFit.LOGARITHMIC: "the weights of a user above the budget were scaled down to it",
    BudgetFit.NOBODY_CLIPPED: "all weights were made so small that no user exceeds the budget",
    BudgetFit.FULL: "the weights of every user were scaled to the whole budget",
}


def write_methods(solution: MultitaskSolution) -> Methods:
    """Write the recommended exponent, and the total error bound compared with that of equal weights."""
    parameters, (best_exponent, ratio) = solution.parameters, solution.comparison.recommendation
    fit_text = (
        f"and {FIT_SENTENCES[parameters.fit]}, so that squared weights of a user sum to at most a common bound. All "
        "releases together are one Gaussian mechanism [@dong2022], calibrated exactly [@balle2018]."
    )
    return Methods(
        guarantee=write_guarantee(
            "One model per task was released",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
            parameters.delta,
        ),
        sentences="A task with n users was given a weight proportional to n to the power "
        f"{wording.entered(-best_exponent)} [@krichene2023], {fit_text} The upper bound on the excess error of all "
        f"tasks together is {wording.number(ratio, 3)} times that of equal weights.",
        public_sentences=f"A task with n users was given a weight proportional to n to the power −μ "
        f"[@krichene2023], {fit_text}",
        disclosure=solution.tasks.disclosure,
        rule="The exponent brings that upper bound to within 5 % of the least over all exponents from 0 to 1; "
        "the numbers of users per task are treated as public.",
        subject="The exponent",
    )
