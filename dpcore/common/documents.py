"""JSON that a person takes away: one head for all of it, and one form for the choice of a bound."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from dpcore.common.certificate import Certificate
from dpcore.common.version import VERSION
from dpcore.dataset import Dataset

MADE_WITH = f"Sweet Spot {VERSION}"
CHOICE_SCHEMA = "sweetspot/choice/1"


def document(schema: str, **sections: object) -> str:
    """Sections under their schema and the program that made them, indented."""
    whole = {"schema": schema, "made_with": MADE_WITH, **sections}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def choice_document(
    dataset: Dataset,
    release: str,
    question: Mapping[str, object],
    data: Mapping[str, object],
    answer: Mapping[str, object],
    assumptions: Sequence[str],
    schema: str = CHOICE_SCHEMA,
) -> str:
    """The choice of a bound: what was asked, on which data, and the answer, each beside its label.

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
    return document(
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


def finite(value: float) -> float | None:
    """The value as JSON holds it: null where it is not finite."""
    return value if math.isfinite(value) else None


def proof(certificate: Certificate | None) -> dict[str, object]:
    """What is proved, as every file of choices says it; ``none`` where nothing is."""
    if certificate is None:
        return {"proved_relative_gap": None, "proof": "none"}
    document: dict[str, object] = {
        "proved_relative_gap": finite(certificate.relative_gap),
        "proof": certificate.argument,
    }
    if certificate.approximation:
        document["approximate"] = certificate.approximation
    return document
