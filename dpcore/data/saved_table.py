"""What the columns of a table with a label mean, as JSON, and the seal that ties its account to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dpcore.data.design_matrix import Design


def design_to_json(design: Design | None) -> dict[str, Any] | None:
    """Return a design as a session file holds it, or None if there is none."""
    if design is None:
        return None
    features = [[one.column, one.kind.value, one.reference, *one.levels] for one in design.features]
    # Not where none is named: files of before have their seal.
    named = {"positive": design.positive} if design.positive else {}
    return {
        "label": design.label,
        "user": design.user,
        "features": features,
        "intercept": design.intercept,
        **named,
    }


def seal_of(account: str, digest: str, design: Mapping[str, Any] | None) -> str:
    """Ties the account to the data: what was released of them is found by it, and no slip may part the two."""
    return hashlib.sha256(json.dumps([account, digest, design]).encode()).hexdigest()


def table_to_json(
    content: Mapping[str, Any], account: str, design: Design | None, entered: Mapping[str, float]
) -> dict[str, Any]:
    """Return a table that a page has for itself.

    Args:
        content: The data, as `dpcore.data.saved_dataset.to_json` has them.
        account: Whose rows they are.
        design: What its columns mean.
        entered: What was entered about its columns, by what the session calls it under the page's name.
    """
    written = design_to_json(design)
    return {
        "content": content,
        "account": account,
        "design": written,
        "entered": dict(entered),
        "seal": seal_of(account, content["digest"], written),
    }
