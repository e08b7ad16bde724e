"""Sum and count: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Contribution, Dataset
from dpcore.total.parameters import Summed, TotalParameters
from pages.shared.base.question import Facet, FieldOrigin, Question


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Propose to sum values if a contribution is a total, else rows: settings by name, empty if chosen otherwise."""
    if current_values["summed"] is not (current_values["summed_proposed"] or Summed.ROWS):
        return {}
    summed = Summed.VALUES if dataset.contribution is Contribution.TOTAL else Summed.ROWS
    return {"summed": summed, "summed_proposed": summed}


QUESTION = Question(
    name="total",
    title="Sum and count",
    icon=":material/add_circle:",
    url_path="sum-and-count",
    navigation_group="Choose a bound",
    lead_text="You release a count or a sum with differential privacy. **How much may one user add?**",
    chooses_bound=True,
    is_quick_to_answer=True,
    question_sentence="I release a sum or a count: how much may one user add?",
    release_phrase="A sum or a count",
    answering_facets=(Facet.ROWS, Facet.VALUES),
    parameters_type=TotalParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("tabs", "signed_tabs", "summed_proposed")
    | FieldOrigin.DATA.each("job"),
    propose_values=propose_values,
    proposed_field_names=("summed",),
    replacements_by_former_name={"noise": "mechanism"},
)
