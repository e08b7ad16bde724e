"""The tour on Choose privately: the best bound is read off the data, and what it costs to hide that."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer.words import format_share
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from pages.private_choice.question import PageParameters
from pages.shared.session import session
from pages.shared.session.tour import Step


def write_answer(dataset: Dataset, parameters: PrivateParameters) -> str:
    """Write the costs of the private choice and of that for a sum at the same epsilon."""
    sum_parameters, epsilon = replace(parameters, purpose=BoundPurpose.SUM), parameters.selection_epsilon
    choice_cost = comparison.compute_direct_cost(parameters.choice, dataset.histogram)
    sum_cost = comparison.compute_direct_cost(sum_parameters.choice, dataset.histogram)
    sum_bound = wording.counted(sum_parameters.condition.best_bound(dataset.histogram), "row")
    return (
        f"With ε = {wording.entered(epsilon)} of its own, {format_share(choice_cost.median)} more error in the median "
        f"and {format_share(choice_cost.percentile_95)} in 1 draw of 20. A sum, whose best bound is {sum_bound}, costs "
        f"{format_share(sum_cost.median)}."
    )


_BEGIN = PageParameters(1.0, purpose=BoundPurpose.SMOOTH, selection_epsilon=0.01)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_BEGIN,
    field_name="selection_epsilon",
    goal_value=0.1,
    is_enough=lambda epsilon: epsilon >= 0.05,
    question_sentence="A bound that is read off the data leaks. What does a private choice cost?",
    instruction="Raise *ε of the choice* from 0.01 to 0.1",
    write_answer=write_answer,
)
