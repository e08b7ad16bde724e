"""JSON files that a person takes away: one head for all of them, and one form for the choice of a bound."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from dpcore.common.certificate import Certificate
from dpcore.common.version import VERSION
from dpcore.dataset import Dataset

MADE_WITH = f"Sweet Spot {VERSION}"
CHOICE_SCHEMA = "sweetspot/choice/1"


def write_document(schema: str, **sections: object) -> str:
    """Write sections under their schema and the program that made them, indented."""
    content = {"schema": schema, "made_with": MADE_WITH, **sections}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_choice_document(
    dataset: Dataset,
    release: str,
    question: Mapping[str, object],
    data: Mapping[str, object],
    answer: Mapping[str, object],
    assumptions: Sequence[str],
    schema: str = CHOICE_SCHEMA,
) -> str:
    """Write the choice of a bound: the question, its data, and the answer, each with its label.

    Args:
        dataset: The data; their label stands at every number computed from them.
        release: What is released, a phrase.
        question: What the person entered, and what it means.
        data: What was computed from the data before the question came up, besides how much there is of them.
        answer: What was computed to answer it.
        assumptions: Sentences.
        schema: Name and version of the form of question and answer.
    """
    label = dataset.provenance.label
    return write_document(
        schema,
        question={"release": release, "label": "public input", **question},
        data={
            "label": label,
            "name": dataset.name,
            "source": dataset.source,
            "contribution": dataset.contribution.value,
            "num_users": dataset.histogram.num_users,
            "num_rows": dataset.histogram.num_rows,
            **data,
        },
        answer={"label": label, **answer},
        assumptions=list(assumptions),
    )


def finite_or_none(value: float) -> float | None:
    """Return the value as JSON holds it: None if it is not finite."""
    return value if math.isfinite(value) else None


def certificate_fields(certificate: Certificate | None) -> dict[str, object]:
    """Return the certificate as every file of choices has it; ``none`` if there is none."""
    if certificate is None:
        return {"proved_relative_gap": None, "proof": "none"}
    document: dict[str, object] = {
        "proved_relative_gap": finite_or_none(certificate.relative_gap),
        "proof": certificate.argument,
    }
    if certificate.approximation:
        document["approximate"] = certificate.approximation
    return document
