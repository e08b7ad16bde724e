"""Recommender: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.dataset import Dataset
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from pages.shared.base.question import SIMULATION, Facet, FieldOrigin, Question
from pages.shared.base.upload_entries import ITEM_NAMES_ORIGINS

RANGE_FIELDS = ("lowest", "highest")
"""Fields that only ratings of one's own use."""
JOB_ENTRY_NAMES = ("train_job", "implicit_job")


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return new values of the source of ratings and of their range, by field name; other fields stay.

    If the data hold ratings, they become the source. If not, generated ratings do, unless a source was chosen already.

    The range of public ratings is read off them. The range of private ratings must come from what a rating is.
    """
    pairs = dataset.pairs
    if pairs is None or pairs.value_range is None:
        return (
            {"source": RatingSource.GENERATED}
            if current_values["source"] in (None, RatingSource.DATA)
            else {}
        )
    lowest, highest = (None, None) if dataset.is_private else pairs.value_range
    return {"source": RatingSource.DATA, "lowest": lowest, "highest": highest}


QUESTION = Question(
    name="factorisation",
    title="Recommender",
    icon=":material/grid_on:",
    url_path="factorisation",
    navigation_group="Models",
    lead_text="You learn a private recommender. **Is matrix factorisation worth it, or are item means better?**",
    result_noun=SIMULATION,
    question_sentence="I learn a recommender from ratings: which items get a user's budget, and is it worth it?",
    release_phrase="A recommender from ratings",
    answering_facets=(Facet.GROUPS,),
    parameters_type=FactorisationParameters,
    origins_by_entry=ITEM_NAMES_ORIGINS
    | FieldOrigin.PUBLIC.each("tabs", "measure", "paper_figure")
    | FieldOrigin.DATA.each(*JOB_ENTRY_NAMES, *(f"{job}_earlier" for job in JOB_ENTRY_NAMES)),
    propose_values=propose_values,
    proposed_field_names=("source", "lowest", "highest"),
)
