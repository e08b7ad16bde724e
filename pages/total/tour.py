"""The tour's step on Sum and count: how many users the best bound cuts."""

from __future__ import annotations

from dataclasses import replace

from dpcore import total
from dpcore.common.noise_error import Measure
from dpcore.common.programs import Program
from dpcore.common.wording import format_count, format_number
from dpcore.dataset import Dataset
from dpcore.total.parameters import TotalParameters, compute_user_totals
from pages.shared.session import session
from pages.shared.session.tour import Step


def find_best_bound(dataset: Dataset, parameters: TotalParameters) -> total.TotalChoice:
    """Return the best bound on rows."""
    amounts = compute_user_totals(dataset, parameters.summed).amounts
    assert amounts is not None  # Rows are never negative.
    return total.find_best_choice(parameters.build_problem(amounts))


def write_answer(dataset: Dataset, parameters: TotalParameters) -> str:
    """Write the best bound at the epsilon that is set and at the first one, and how many users are above it."""
    current_choice = find_best_bound(dataset, parameters)
    first_choice = find_best_bound(dataset, replace(parameters, epsilon=_FIRST_PARAMETERS.epsilon))
    first_text, current_text = (format_number(choice.max_total) for choice in (first_choice, current_choice))
    return (
        f"**{format_count(current_choice.num_users_affected, 'user')}**: it falls from {first_text} to "
        f"{current_text}. Raising it by 1 saves one row per user above it and costs 1/ε = "
        f"{format_number(1.0 / parameters.epsilon)} rows of noise."
    )


# By the noise of the papers, with which the rule is exact.
_FIRST_PARAMETERS = TotalParameters(1.0, objective=Measure.BOUND, program=Program.PYTHON)
STEP = Step(
    origin=session.Origin("online-retail-lines"),
    parameters=_FIRST_PARAMETERS,
    field_name="epsilon",
    goal_value=0.1,
    is_far_enough=lambda epsilon: epsilon <= 0.3,
    question_sentence="At ε = 1 the best bound cuts nobody. How many users at ε = 0.1?",
    instruction="Move ε down to 0.1",
    write_answer=write_answer,
)
