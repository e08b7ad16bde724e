"""Mean: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.mean import Likeness, MeanParameters, VarianceSource, choose_defaults
from pages.shared.base.question import (
    DEFAULT_VALUE_BOUNDS,
    Facet,
    FieldOrigin,
    Question,
    propose_range,
    propose_settings,
)

FIELDS_FROM_DATA = ("variance_source", "counts", "target", "likeness")
"""Settings that follow from the data, as `dpcore.mean.choose_defaults` has them."""
RANGE_FIELDS = ("lower", "upper")
OPTIONS_WITHOUT_VALUES = {
    "variance_source": (VarianceSource.WORST_CASE, VarianceSource.ENTERED),
    "likeness": (Likeness.ENTERED, Likeness.INDEPENDENT),
}
"""Choices for a release, which has no values to read; the first one replaces *From values*."""


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return new values by field: the range of public values and the settings that follow from the data; others stay.

    For private data it is asked anew whether counts are public and whether values may be read: the answers before were
    about other data.
    """
    reset_names = [
        field_name for field_name in FIELDS_FROM_DATA if dataset.is_private and field_name != "target"
    ]
    proposals = propose_settings(current_values, choose_defaults(dataset), reset_names)
    if dataset.values is None and dataset.release is not None:
        choices_from_values = (VarianceSource.FROM_VALUES, Likeness.FROM_VALUES)
        proposals |= {
            field_name: offered_options[0]
            for field_name, offered_options in OPTIONS_WITHOUT_VALUES.items()
            if current_values[field_name] in choices_from_values
        }
    return proposals | propose_range(dataset, current_values, RANGE_FIELDS, DEFAULT_VALUE_BOUNDS)


QUESTION = Question(
    name="mean",
    title="Mean",
    icon=":material/functions:",
    url_path="mean",
    navigation_group="Choose a bound",
    lead_text="You release the mean of a column with differential privacy. **How many rows may one user "
    "contribute?**",
    chooses_bound=True,
    is_quick_to_answer=True,
    question_sentence="I release a mean: how many rows may one user contribute, or how should rows be weighted?",
    release_phrase="A mean (an average over rows)",
    answering_facets=(Facet.ROWS, Facet.VALUES),
    parameters_type=MeanParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each(
        "proposed", *(f"{name}_proposed" for name in FIELDS_FROM_DATA), "tabs"
    )
    | FieldOrigin.VALUES.each("range_search", "users_range_search"),
    propose_values=propose_values,
    proposed_field_names=(*FIELDS_FROM_DATA, *RANGE_FIELDS),
    replacements_by_former_name={"noise": "variance_source", "noise_variance": "value_variance"},
)
