"""Quantile: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.common.programs import Program
from dpcore.dataset import Dataset
from dpcore.quantile.parameters import QuantileParameters, choose_defaults
from pages.shared.base.question import Facet, FieldOrigin, Question, propose_range


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the range of public values, the source of the bound, and what ε protects; the user's own choices stay.

    For private values there is no range, and the page asks for one. Their bound comes from the counts, which are
    protected, too: a bound read off the values leaks. A choice for other data is proposed anew.
    """
    proposals: dict[str, Any] = {}
    for field_name, proposed_value in choose_defaults(dataset).items():
        if dataset.is_private or current_values[field_name] == (
            current_values[f"{field_name}_proposed"] or QUESTION.get_initial_value(field_name)
        ):
            proposals |= {field_name: proposed_value, f"{field_name}_proposed": proposed_value}
    return proposals | propose_range(dataset, current_values, ("low", "high"))


QUESTION = Question(
    name="quantile",
    title="Quantile",
    icon=":material/align_horizontal_center:",
    url_path="quantile",
    navigation_group="Choose a bound",
    lead_text="You release a median or another quantile with user-level differential privacy. **How many rows may one "
    "user contribute?**",
    chooses_bound=True,
    question_sentence="I release a median or other quantiles: how should I weight users' values?",
    release_phrase="A quantile or median",
    answering_facets=(Facet.VALUES,),
    parameters_type=QuantileParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("proposed", "bound_from_proposed", "neighbours_proposed", "tabs")
    | FieldOrigin.DATA.each("search_job", "search_job_earlier", "poorer", "poorer_job", "draws", "draws_job"),
    propose_values=propose_values,
    proposed_field_names=("bound_from", "neighbours", "low", "high"),
    # It was in every link before there were programs, and is in none of a program that lacks smooth weights.
    replacements_by_former_name={"weighting": {"program": Program.BEST}},
)
