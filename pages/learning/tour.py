"""The tour's step on Bias curves over τ₀: why users who differ call for a higher cap."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common.wording import format_count, format_number
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, optimal_cap
from dpcore.learning.optimal_cap import LearningCap
from pages.shared.session import session
from pages.shared.session.tour import Step


def find_best_cap(dataset: Dataset, parameters: LearningParameters) -> LearningCap:
    """Return the best cap for these data under these parameters."""
    return optimal_cap.find_best_cap(parameters.build_problem(dataset.histogram))


def write_answer(dataset: Dataset, parameters: LearningParameters) -> str:
    """Write how the best cap moves from users who are alike to the variance that is set, with the noise at both."""
    current_choice = find_best_cap(dataset, parameters)
    first_choice = find_best_cap(dataset, replace(parameters, loss_variance=_FIRST_PARAMETERS.loss_variance))
    cap_change = current_choice.max_contributions - first_choice.max_contributions
    change_text = "It rises" if cap_change > 0 else "It falls" if cap_change < 0 else "It stays"
    rows_text = format_count(current_choice.max_contributions, "row")
    return (
        f"**{change_text}**, from {format_number(first_choice.max_contributions)} to {rows_text}: if users differ, a "
        f"better mix of them is worth noise of {format_number(current_choice.privacy)} instead of "
        f"{format_number(first_choice.privacy)}."
    )


_FIRST_PARAMETERS = LearningParameters(1.0, loss_variance=0.0)
STEP = Step(
    origin=session.Origin("online-retail-lines"),
    parameters=_FIRST_PARAMETERS,
    field_name="loss_variance",
    goal_value=0.25,
    is_far_enough=lambda variance: variance >= 0.05,
    question_sentence="If users are alike, a low bound costs little. Must it rise or fall if they differ?",
    instruction="Move Var(H) from 0 to its right end, 0.25",
    write_answer=write_answer,
)
