"""The JSON file of a choice, read from its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from dpcore.answer.answer import Answer
from dpcore.common.documents import CHOICE_SCHEMA, write_document
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset


def add_choice(
    answer: Answer,
    dataset: Dataset | None,
    release: str,
    details: Callable[[], Mapping[str, object]],
    *,
    number_keys: Collection[str] = (),
    question: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    left_out: Collection[str] = (),
    schema: str = CHOICE_SCHEMA,
) -> Answer:
    """Return the answer with the file of its choice.

    Args:
        answer: Its parameters and assumptions go into the file.
        dataset: The data, whose label stands at every number computed from them; None if the settings are all of
            the input, and the answer's label stands there.
        release: What is released, a phrase.
        details: Makes the numbers of the file, by key, when the file is written.
        number_keys: Numbers of the answer that stand before them, by key.
        question: What the parameters mean; it replaces parameters of the same name.
        data: What was computed from the data before the question came up, besides how much there is of them.
        left_out: Names of parameters that the answer does not depend on.
        schema: Name and version of the form of question and answer.
    """

    def write() -> str:
        label = (answer.disclosure if dataset is None else dataset.provenance).label
        parameters = to_values(answer.parameters)
        numbers = {number.key: number.value for number in answer.numbers if number.key in number_keys}
        sections = {
            "question": {
                "release": release,
                "label": label if dataset is None else "public input",
                **{name: value for name, value in parameters.items() if name not in left_out},
                **(question or {}),
            },
            "data": {} if dataset is None else {"label": label, **_summarise(dataset), **(data or {})},
            "answer": {"label": label, **numbers, **details()},
            "assumptions": list(answer.assumptions),
        }
        return write_document(schema, **{name: section for name, section in sections.items() if section})

    return replace(answer, choice=write)


def _summarise(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "source": dataset.source,
        "contribution": dataset.contribution.value,
        "num_users": dataset.histogram.num_users,
        "num_rows": dataset.histogram.num_rows,
    }
