"""The answer with a range of values that was selected privately: its words, and the program of a mean that uses it."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.code import Quantity, forms
from dpcore.code.forms import OfferedPrograms
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import escape_text, format_count, format_entered
from dpcore.dataset import Dataset
from dpcore.private_choice.answer.selection import write_json
from dpcore.private_choice.answer.words import describe_range_cost, describe_spending, format_selection
from dpcore.private_choice.private_range import DrawnRange
from dpcore.private_choice.release_bounds import SelectionRequest


def build_range_answer(selection: DrawnRange, request: SelectionRequest, dataset: Dataset) -> Answer:
    """Build the answer on a range that was drawn; it may be published under its label.

    Args:
        selection: The released range.
        request: What was selected.
        dataset: Gives the names of file and columns.
    """
    problem, lower_and_upper = selection.problem, (selection.lower, selection.upper)
    clamped_amount_text = escape_text(selection.column) or "each value"
    if problem.clamps_users:
        max_contributions_text = format_count(problem.max_contributions, "row")
        clamped_amount_text = f"users' deviations, for weights of at most {max_contributions_text},"
    chosen_lower_text, chosen_upper_text = map(format_entered, lower_and_upper)
    clipboard_text = "{:.12g}, {:.12g}".format(*lower_and_upper)
    range_number = Number("Range, chosen with DP", format_selection(selection), clipboard_text=clipboard_text)
    return Answer(
        headline=f"Clamp {clamped_amount_text} to L = {chosen_lower_text}, U = {chosen_upper_text}.",
        detail=f"{describe_spending(selection.facts, request)} {describe_range_cost(problem)}",
        numbers=(range_number,),
        assumptions=(
            f"Neighbouring data sets differ thus: {selection.facts.neighbours.value}",
            "The settings of the draw are public: none was read off these data",
            request.describe_budget(),
        ),
        disclosure=selection.facts,
        parameters=problem,
        code=_build_code(selection, dataset, request.release_epsilon),
        write_json=lambda: write_json(selection, request.number, request),
        bound=selection,
    )


def _build_code(selection: DrawnRange, dataset: Dataset, epsilon: float) -> OfferedPrograms | None:
    """Build the program of a mean under smooth weights, with the drawn range and the public bound on rows."""
    problem, release_facts = selection.problem, selection.facts
    choice_fields = forms.list_data_fields(dataset) | {
        "neighbours": release_facts.neighbours,
        "range_facts": release_facts,
    }
    # The bound was entered.
    choice_fields |= {"disclosure": Disclosure.PUBLIC, "lower": selection.lower, "upper": selection.upper}
    bound_fields = {"threshold": float(problem.max_contributions), "clamps_users": problem.clamps_users}
    form_name = forms.name_smooth_form(problem.max_contributions)
    return forms.build_forms(epsilon, choice_fields, [(form_name, Quantity.MEAN, bound_fields)])
