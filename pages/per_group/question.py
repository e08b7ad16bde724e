"""Group by: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.per_group.parameters import PerGroupParameters
from pages.shared.base.question import Facet, FieldOrigin, Question, propose_range
from pages.shared.base.upload_entries import GROUP_LIST_ORIGINS


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return, by field, the range of public values, for a mean; a range that the user entered stays.

    For private values the page asks for the range. For a release nothing is proposed.
    """
    value_range = None if dataset.pairs is None else dataset.pairs.value_range
    return propose_range(dataset, current_values, ("lower", "upper"), value_limits=value_range)


QUESTION = Question(
    name="per_group",
    title="Group by",
    icon=":material/table_rows:",
    url_path="per-group",
    navigation_group="Choose a bound",
    lead_text="You release a number per group. **In how many groups may one user count, and how often in each?**",
    chooses_bound=True,
    question_sentence="I release counts, sums or means per group: to how many groups may one user add, and how much?",
    release_phrase="A count, sum or mean per group (GROUP BY)",
    answering_facets=(Facet.GROUPS,),
    parameters_type=PerGroupParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("proposed", "tabs")
    | FieldOrigin.DATA.each("job", "job_earlier")
    | GROUP_LIST_ORIGINS,
    propose_values=propose_values,
    proposed_field_names=("lower", "upper"),
)
