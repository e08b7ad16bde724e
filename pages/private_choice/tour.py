"""The tour on Choose privately: the best bound is read off the data, and what it costs to hide that."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer.words import cost
from dpcore.private_choice.comparison import DirectCost
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from pages.private_choice.forms import PageParameters
from pages.shared.session import session
from pages.shared.session.tour import Step


def direct(data: Dataset, asked: PrivateParameters) -> DirectCost:
    """Return what the direct choice costs."""
    return comparison.direct_cost(asked.choice, data.histogram)


def answer(data: Dataset, asked: PrivateParameters) -> str:
    """Return what the private choice costs at its epsilon, and what that of a sum would."""
    now = direct(data, asked)
    of_sum = replace(asked, wanted=Wanted.SUM)
    heaviest = of_sum.condition.best_bound(data.histogram)
    return (
        f"With ε = {wording.entered(asked.epsilon_choice)} of its own, {cost(now.median)} more error in the median and "
        f"{cost(now.percentile_95)} in 1 draw of 20. A sum is harder: its best bound is "
        f"{wording.counted(heaviest, 'row')}, and the median cost {cost(direct(data, of_sum).median)}."
    )


_BEGIN = PageParameters(1.0, wanted=Wanted.SMOOTH, epsilon_choice=0.01)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_BEGIN,
    field="epsilon_choice",
    goal=0.1,
    is_enough=lambda epsilon: epsilon >= 0.05,
    question="Every bound so far was read off the data, so it tells about them. What does a private choice cost?",
    move="Raise *ε of the choice* from 0.01 to 0.1",
    answer=answer,
    tab="Why the number leaks",
)
