"""The tour on Choose privately: the best bound is read off the data, and what it costs to hide that."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer.words import format_share
from dpcore.private_choice.comparison import ChoiceCost
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from pages.private_choice.question import PageParameters
from pages.shared.session import session
from pages.shared.session.tour import Step


def direct(data: Dataset, parameters: PrivateParameters) -> ChoiceCost:
    """Return the cost of the direct choice."""
    return comparison.compute_direct_cost(parameters.choice, data.histogram)


def answer(data: Dataset, parameters: PrivateParameters) -> str:
    """Return the costs of the private choice and of that for a sum at the same epsilon."""
    current = direct(data, parameters)
    of_sum = replace(parameters, purpose=BoundPurpose.SUM)
    heaviest = of_sum.condition.best_bound(data.histogram)
    epsilon, sum_cost = wording.entered(parameters.selection_epsilon), direct(data, of_sum).median
    return (
        f"With ε = {epsilon} of its own, {format_share(current.median)} more error in the median and "
        f"{format_share(current.percentile_95)} in 1 draw of 20. A sum is harder: its best bound is "
        f"{wording.counted(heaviest, 'row')}, and the median cost {format_share(sum_cost)}."
    )


_BEGIN = PageParameters(1.0, purpose=BoundPurpose.SMOOTH, selection_epsilon=0.01)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_BEGIN,
    field="selection_epsilon",
    goal=0.1,
    is_enough=lambda epsilon: epsilon >= 0.05,
    question="Every bound so far was read off the data, so it tells about them. What does a private choice cost?",
    move="Raise *ε of the choice* from 0.01 to 0.1",
    answer=answer,
    tab="Why the number leaks",
)
