"""Join or train alone: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.common.privacy import Disclosure, Provenance
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.shared.base.question import SIMULATION, FieldOrigin, Question
from pages.shared.base.upload_entries import TABLE_ORIGINS

QUESTION = Question(
    name="data_owners",
    title="Join or train alone",
    icon=":material/hub:",
    url_path="data-owners",
    navigation_group="Models",
    lead_text="Hospitals, phones or shops could train one model together. **Should they join, or train alone?**",
    result_noun=SIMULATION,
    question_sentence="Data owners could train a model together: should they?",
    release_phrase="A model trained across several data owners",
    own_file_entry_name="loaded",
    parameters_type=OwnersParameters,
    origins_by_entry=TABLE_ORIGINS
    | FieldOrigin.PUBLIC.each("tabs", "paper_figure")
    | FieldOrigin.DATA.each("training_job"),
)


def find_disclosure(
    parameters: OwnersParameters, dataset: Dataset, own_dataset: Dataset | None = None
) -> Provenance:
    """Return the label of the answer: for owners of the data, the label of the data.

    For entered owners it is private if a field was changed beside private data of session or page; else it is public.

    Owners that are entered beside private data may have been read off them: what such a field does not hold from the
    start is as private as they are. A DP histogram empties these fields (see `dpcore.common.parameters.FieldOrigin`).

    Args:
        parameters: What was asked.
        dataset: The data in use.
        own_dataset: The page's own table, where there is one.
    """
    if parameters.source is OwnersSource.DATA:
        return dataset.provenance
    is_entered = any(
        getattr(parameters, field_name) not in (None, QUESTION.get_initial_value(field_name))
        for field_name, field in QUESTION.fields.items()
        if field.origin is not FieldOrigin.PUBLIC
    )
    is_private = dataset.is_private or (own_dataset is not None and own_dataset.is_private)
    return Disclosure.PRIVATE if is_entered and is_private else Disclosure.PUBLIC
