"""Multi-task weights: what it asks, and what a person enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcore.common.parameters import LINE, MORE, OWN
from dpcore.dataset import Dataset
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.shared.base.question import Facet, FieldOrigin, Question
from pages.shared.base.upload_entries import ITEM_NAMES_ORIGINS


def propose_values(dataset: Dataset, current_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new source of tasks by field name: the data if they have tasks, else the default in place of the data.

    Another source stays for data without tasks: the result is then empty.
    """
    if dataset.pairs is not None:
        return {"source": TaskSource.DATA}
    return (
        {"source": MultitaskParameters.source} if current_values["source"] in (None, TaskSource.DATA) else {}
    )


QUESTION = Question(
    name="multitask",
    title="Multi-task weights",
    icon=":material/account_tree:",
    url_path="many-tasks",
    navigation_group="The trade-off, live",
    lead_text="You train one private model per task. **How much of a user's budget does each task get?**",
    result_noun="Weights",
    question_sentence="I train one model per task: which get a user's budget?",
    release_phrase="One model per task",
    answering_facets=(Facet.GROUPS,),
    parameters_type=MultitaskParameters,
    symbols_by_phrase={
        "Weight and error bound against the size of the task": "ω<sub>i</sub> against n<sub>i</sub>",
        "users of the task": "n<sub>i</sub>",
        "weight ω": "ω<sub>i</sub> / √β",
        "Uniform weights": "μ = 0",
    },
    origins_by_entry=ITEM_NAMES_ORIGINS
    | FieldOrigin.PUBLIC.each("tabs", "relative", "paper_figure")
    | FieldOrigin.DATA.each(
        *(f"{name}_job{end}" for name in ("optimum", "cvxpy", "experiment") for end in ("", "_earlier")),
        "download",
    ),
    propose_values=propose_values,
    proposed_field_names=("source",),
)


def list_answer_fields(parameters: MultitaskParameters) -> list[str]:
    """List the fields that the answer depends on: not those of tabs, nor those that do not go with the choices."""
    return [
        field_name
        for field_name in QUESTION.list_fields(LINE, MORE, OWN)
        if field_name not in parameters.unused_names
    ]
