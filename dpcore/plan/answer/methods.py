"""What a plan has to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Methods, guarantee
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanFound
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import NEIGHBOURS

RULES = {
    Objective.SUM: "Bounds and shares minimise the weighted sum of squared errors over wanted errors.",
    Objective.LARGEST: "Bounds and shares minimise the largest error over wanted error.",
    Objective.REACH: "Bounds and shares have every wanted error at the least budget.",
}


def methods(found: PlanFound, data: Dataset, parameters: PlanParameters) -> Methods:
    """The plan, line by line."""
    names = ", ".join(line.line.what for line in found.planned)
    kind = "Laplace noise [@dwork2006]" if parameters.noise is NoiseKind.LAPLACE else "Gaussian noise"
    each = "; ".join(
        f"{line.planned.line.what} got {wording.percent(line.share)} of the budget"
        + (", and 0 was published" if line.dropped else f" under a bound of {wording.number(line.bound, 6)}")
        for line in found.lines
    )
    # Where the least budget is looked for, epsilon itself was read off the data.
    epsilon = found.budget.epsilon
    verb = "was" if len(found.planned) == 1 else "were"
    return Methods(
        guarantee=guarantee(
            f"{wording.capital(names)} {verb} released", epsilon, NEIGHBOURS, parameters.delta or 0.0
        ),
        found=f"One budget was divided among the releases, and {kind} was added to each: {each}.",
        withheld=f"One budget was divided among the releases, and {kind} was added to each.",
        disclosure=data.provenance,
        rule=RULES[parameters.objective],
        what="The division",
    )
