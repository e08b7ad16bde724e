"""The design of a table with a label as JSON, and the seal that ties its privacy account to the data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dpcore.data.design_matrix import Design


def design_to_json(design: Design | None) -> dict[str, Any] | None:
    """Return a design as JSON for a session file, or None if there is none."""
    if design is None:
        return None
    features = [
        [feature.column, feature.encoding.value, feature.reference, *feature.levels]
        for feature in design.features
    ]
    # Left out if empty, so that seals of earlier files stay valid.
    optional_fields = {"positive": design.positive} if design.positive else {}
    return {
        "label": design.label,
        "user": design.user,
        "features": features,
        "intercept": design.intercept,
        **optional_fields,
    }


def compute_seal(account: str, digest: str, design: Mapping[str, Any] | None) -> str:
    """Compute the seal of account, data and design, which detects an account of other data."""
    return hashlib.sha256(json.dumps([account, digest, design]).encode()).hexdigest()


def table_to_json(
    content: Mapping[str, Any], account: str, design: Design | None, settings: Mapping[str, float]
) -> dict[str, Any]:
    """Return a table that belongs to one page as JSON.

    Args:
        content: The data, from `dpcore.data.saved_dataset.to_json`.
        account: Privacy account of the rows.
        design: Roles of its columns.
        settings: Entries of the user about its columns, by session key.
    """
    saved_design = design_to_json(design)
    return {
        "content": content,
        "account": account,
        "design": saved_design,
        "entered": dict(settings),
        "seal": compute_seal(account, content["digest"], saved_design),
    }
