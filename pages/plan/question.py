"""Budget plan: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.plan.parameters import FIELDS_PROPOSED_FOR_MEANS, PlanParameters, choose_defaults
from pages.shared.base.question import Facet, FieldOrigin, Question, propose_range, propose_settings
from pages.shared.base.upload_entries import GROUP_LIST_ORIGINS

RANGE_FIELDS = ("lower", "upper")


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return new values of fields by name: an empty plan, the range of public values, and the assumptions of *Mean*.

    The plan is set only before a person has seen the page.

    Choices of the user stay, except that private values may be read: the user said so of other data.
    """
    reset_names = ("variance_source", "likeness") if dataset.is_private else ()
    proposals = propose_settings(current_values, choose_defaults(dataset), reset_names)
    if current_values["lines"] is None:  # Nobody has seen the page yet: it starts empty.
        proposals["lines"] = ""
    return proposals | propose_range(dataset, current_values, RANGE_FIELDS)


QUESTION = Question(
    name="plan",
    title="Budget plan",
    icon=":material/splitscreen:",
    url_path="plan",
    navigation_group="Choose a bound",
    lead_text="Several numbers share one privacy budget. **How much of it does each get, and under which bound?**",
    question_sentence="I release several numbers about one table: how do they share one ε?",
    release_phrase="Several numbers from one budget",
    answering_facets=(Facet.ROWS, Facet.VALUES, Facet.GROUPS),
    parameters_type=PlanParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each(
        "tabs", "proposed", *(f"{name}_proposed" for name in FIELDS_PROPOSED_FOR_MEANS)
    )
    | GROUP_LIST_ORIGINS,
    propose_values=propose_values,
    proposed_field_names=("lines", *RANGE_FIELDS, *FIELDS_PROPOSED_FOR_MEANS),
    is_budget_plan=True,
)
