"""What many tasks have to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Methods, guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.multitask.answer.found import MultitaskFound
from dpcore.multitask.fit import BudgetFit

FITTED = {
    BudgetFit.CLIPPED: "the weights of a user above the budget were scaled down to it",
    BudgetFit.LOGARITHMIC: "the weights of a user above the budget were scaled down to it",
    BudgetFit.NOBODY_CLIPPED: "all weights were made so small that no user exceeds the budget",
    BudgetFit.FULL: "the weights of every user were scaled to the whole budget",
}


def methods(found: MultitaskFound) -> Methods:
    """The exponent recommended, and what the total error bound is beside that of equal weights."""
    parameters, (best, ratio) = found.parameters, found.weighed.recommended
    fitted = (
        f"and {FITTED[parameters.fit]}, so that squared weights of a user sum to at most a common bound. All "
        "releases together are one Gaussian mechanism [@dong2022], calibrated exactly [@balle2018]."
    )
    return Methods(
        guarantee=guarantee(
            "One model per task was released",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
            parameters.delta,
        ),
        found=f"A task with n users was given a weight proportional to n to the power {wording.entered(-best)} "
        f"[@krichene2023], {fitted} The upper bound on the excess error of all tasks together is "
        f"{wording.number(ratio, 3)} "
        "times that of equal weights.",
        withheld=f"A task with n users was given a weight proportional to n to the power −μ "
        f"[@krichene2023], {fitted}",
        disclosure=found.tasks.disclosure,
        rule="The exponent brings that upper bound to within 5 % of the least over all exponents from 0 to 1; "
        "the numbers of users per task are treated as public.",
        what="The exponent",
    )
