"""A question with its data as a session file, which the app opens: no data are in its address."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpcore.common.documents import document
from dpcore.common.privacy import Provenance
from dpcore.data import saved_dataset
from dpcore.data.design_matrix import Design
from dpcore.data.saved_table import table_to_json
from dpcore.dataset import Dataset

SCHEMA = "sweetspot/session/1"
UPLOADED, RELEASED = "upload", "dp-release"
"""What the session calls data that a person brought, and those that are a release."""
ROOM = 50_000_000
"""Bytes of the arrays of a file that is read at once, by the app on this computer."""


@dataclasses.dataclass(frozen=True)
class OwnTable:
    """A table with a label, which its page has for itself.

    Attributes:
        dataset: With the facet `table`.
        account: Whose rows they are.
        design: What its columns mean; None where that is not known.
        ranges: Of the columns that enter as numbers, by name.
    """

    dataset: Dataset
    account: str
    design: Design | None = None
    ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


def session_document(
    of: str, parameters: Any, label: Provenance, data: Dataset | None, own: OwnTable | None
) -> str:
    """The file: the settings of one question, and the data that it is about.

    Args:
        of: Package of the question, which its page has for its name.
        parameters: What was entered.
        label: Of all that is in it.
        data: The data in use; None where the settings say all.
        own: The table that the page has for itself; None where it has none.
    """
    room, left_out, held, table = ROOM, [], None, {}
    if data is not None:
        saved = saved_dataset.to_json(data, room)
        room, left_out = saved.room, [*saved.left_out]
        if saved.content is not None:
            kind = UPLOADED if data.release is None else RELEASED
            held = {"origin": kind, "generator": {}, "content": saved.content}
    if own is not None:
        saved = saved_dataset.to_json(own.dataset, room)
        left_out += saved.left_out
        if saved.content is not None and "table" in saved.content["facets"]:
            entered = {
                f"range_{end}_{column}": number
                for column, pair in own.ranges.items()
                for end, number in zip(("low", "high"), pair, strict=True)
            }
            table = {of: table_to_json(saved.content, own.account, own.design, entered)}
    fields = [one.name for one in dataclasses.fields(parameters) if one.init and one.name != "epsilon"]
    return document(
        SCHEMA,
        label=label.label,
        saved=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        left_out=left_out,
        data=held,
        second=None,
        epsilon=parameters.epsilon,
        settings={of: {name: written(getattr(parameters, name)) for name in fields}},
        accounts={},
        pins=[],
        own=table,
        page=of,
    )


def written(value: Any) -> Any:
    """What a field holds, as a session file has it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else None
