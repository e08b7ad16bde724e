"""The methods section of a plan."""

from __future__ import annotations

from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanSolution
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import NEIGHBOURS

RULES = {
    Objective.SUM: "Bounds and shares minimise the weighted sum of squared errors over wanted errors.",
    Objective.LARGEST: "Bounds and shares minimise the largest error over wanted error.",
    Objective.REACH: "Bounds and shares have every wanted error at the least budget.",
}


def write_methods(solution: PlanSolution, dataset: Dataset, parameters: PlanParameters) -> Methods:
    """Describe the plan, line by line."""
    names = ", ".join(line.line.label for line in solution.planned)
    noise_text = "Laplace noise [@dwork2006]" if parameters.noise is NoiseKind.LAPLACE else "Gaussian noise"
    shares_text = "; ".join(
        f"{line.planned.line.label} got {wording.percent(line.share)} of the budget"
        + (
            ", and 0 was published"
            if line.is_dropped
            else f" under a bound of {wording.number(line.bound, 6)}"
        )
        for line in solution.lines
    )
    # If the least budget is searched for, epsilon itself depends on the data.
    epsilon = solution.budget.epsilon
    verb = "was" if len(solution.planned) == 1 else "were"
    return Methods(
        guarantee=write_guarantee(
            f"{wording.capital(names)} {verb} released", epsilon, NEIGHBOURS, parameters.delta or 0.0
        ),
        sentences=f"One budget was divided among the releases, and {noise_text} was added to each: {shares_text}.",
        public_sentences=f"One budget was divided among the releases, and {noise_text} was added to each.",
        disclosure=dataset.provenance,
        rule=RULES[parameters.objective],
        subject="The division",
    )
