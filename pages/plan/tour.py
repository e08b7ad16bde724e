"""The tour's step on Budget plan: which number needs most of the budget."""

from __future__ import annotations

from dpcore.common.wording import capitalise, format_entered, format_percent
from dpcore.dataset import Dataset
from dpcore.plan.answer import solve
from dpcore.plan.parameters import PlanParameters
from pages.shared.session import session
from pages.shared.session.tour import Step


def write_answer(dataset: Dataset, parameters: PlanParameters) -> str:
    """Write how many numbers meet their target at the epsilon that is set, and which needs most budget."""
    solution = solve(dataset, parameters)
    line_label = solution.lines[solution.most_expensive_index].label
    share_text = format_percent(float(solution.needed_amounts.max() / solution.needed_amounts.sum()))
    return (
        f"**{capitalise(line_label)}**. At ε = {format_entered(parameters.epsilon)}, {solution.num_reached} of "
        f"{len(solution.lines)} meet their targets; it needs {share_text} of what all need."
    )


STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=PlanParameters(1.0, lines="users; rows; sum; mean; rows per group", lower=0.0, upper=100.0),
    field_name="epsilon",
    goal_value=10.0,
    is_far_enough=lambda epsilon: epsilon >= 3.0,
    question_sentence="Five numbers share one ε, each with a target of 5 %. How much of it does each need?",
    instruction="Move ε from 1 up to 10: which number misses its target longest?",
    write_answer=write_answer,
)
