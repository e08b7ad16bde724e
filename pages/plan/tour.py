"""The tour on Plan: which number needs most of the budget, and what the others would get of it in equal shares."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.plan.answer import PlanSolution, solve
from dpcore.plan.parameters import PlanParameters
from pages.shared.session import session
from pages.shared.session.tour import Step


def answer(data: Dataset, asked: PlanParameters) -> str:
    """Return how many numbers have their wanted error at the epsilon that is set, and which one needs most of
    the budget.
    """
    found = solve(data, asked)
    name = found.planned[found.most_expensive].line.label
    return (
        f"**{wording.capital(name)}**. At ε = {wording.entered(asked.epsilon)}, {found.num_reached} of "
        f"{len(found.lines)} "
        f"are as exact as wanted; it alone needs {_share(found)} of the ε that is enough for all."
    )


def _share(found: PlanSolution) -> str:
    return wording.percent(float(found.needed_amounts[found.most_expensive] / found.needed_amounts.sum()))


_BEGIN = PlanParameters(1.0, lines="users; rows; sum; mean; rows per group", lower=0.0, upper=100.0)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_BEGIN,
    field="epsilon",
    goal=10.0,
    is_enough=lambda epsilon: epsilon >= 3.0,
    question="Five numbers share one ε, and each is wanted within 5 %. Which one eats most of the budget?",
    move="Move ε from 1 up to 10, and watch which curve stays above 1",
    answer=answer,
)
