"""JSON files that a person takes away: one head for all of them, and one form for the choice of a bound."""

from __future__ import annotations

import json
import math

from dpcore.common.certificate import Certificate
from dpcore.common.version import VERSION

MADE_WITH = f"Sweet Spot {VERSION}"
CHOICE_SCHEMA = "sweetspot/choice/1"


def write_document(schema: str, **sections: object) -> str:
    """Write sections under their schema and the program that made them, indented."""
    content = {"schema": schema, "made_with": MADE_WITH, **sections}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
