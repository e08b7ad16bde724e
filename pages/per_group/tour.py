"""The tour's step on Group by: which of the two bounds falls when there is less budget."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common.wording import format_count, format_entered
from dpcore.dataset import Dataset
from dpcore.per_group.pair_of_bounds import PairChoice, find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.problem import PerGroupProblem
from pages.shared.session import session
from pages.shared.session.tour import Step


def find_pair(dataset: Dataset, parameters: PerGroupParameters) -> PairChoice:
    """Return the best pair of bounds on data that have groups."""
    assert dataset.pairs is not None
    return find_best_pair(PerGroupProblem(UserGroupPairs.from_facet(dataset.pairs), parameters))


def write_answer(dataset: Dataset, parameters: PerGroupParameters) -> str:
    """Write which bounds of the best pair fell from the first epsilon to the one that is set, with both pairs.

    If no pair is worth its noise at the epsilon that is set, write only that.
    """
    current_choice = find_pair(dataset, parameters)
    first_choice = find_pair(dataset, replace(parameters, epsilon=_FIRST_PARAMETERS.epsilon))
    epsilon_text = format_entered(parameters.epsilon)
    if current_choice.releases_nothing:
        return f"At ε = {epsilon_text} no pair is worth its noise."
    first_text, current_text = (
        f"{format_count(choice.max_groups, 'product')} with {format_count(choice.max_amount, 'row')} each"
        for choice in (first_choice, current_choice)
    )
    has_fewer_groups = current_choice.max_groups < first_choice.max_groups
    has_fewer_rows = current_choice.max_amount < first_choice.max_amount
    fallen_text = "Products per user" if has_fewer_groups else "Rows in each" if has_fewer_rows else "Neither"
    if has_fewer_groups and has_fewer_rows:
        fallen_text = "Both"
    change_text = f"from {first_text} to {current_text}"
    return f"**{fallen_text}**: {change_text}. The noise grows with one bound times the other."


_FIRST_PARAMETERS = PerGroupParameters(10.0)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_FIRST_PARAMETERS,
    field_name="epsilon",
    goal_value=1.0,
    is_far_enough=lambda epsilon: epsilon <= 3.0,
    question_sentence="With less budget, which bound falls: products per user, or rows in each?",
    instruction="Move ε from 10 down to 1",
    write_answer=write_answer,
)
