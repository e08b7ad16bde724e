"""The tables that pages have for themselves, as JSON and back, for the session file.

A page with one has an ``UPLOAD`` in its ``upload.py`` (`pages.shared.data.table_upload`), which says what it takes.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue, read_enum, read_optional, read_text
from dpcore.data import saved_dataset
from dpcore.data.design_matrix import MAX_FEATURES, MAX_LEVELS, Design, Feature, FeatureKind
from dpcore.data.saved_table import seal_of, table_to_json
from dpcore.dataset import Dataset
from pages.shared.base import catalogue
from pages.shared.base.question import Question
from pages.shared.data.table_upload import TableUpload

MOST_ENTRIES = 2 * MAX_FEATURES
"""Fields about columns: a lowest and a highest value of each."""
DIGEST = 64
"""Characters of an account: SHA-256 of what was read."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A table in use on one page.

    Attributes:
        used: What the page keeps.
        entered: What was entered about its columns, by what the session calls it under the page's name.
    """

    used: Any
    entered: Mapping[str, float] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        """The data, with the facet `table`."""
        dataset: Dataset = self.used.dataset
        return dataset


def upload_of(of: Question) -> TableUpload | None:
    """The page's upload; None where it has none."""
    if not of.own_file:
        return None
    upload: TableUpload = importlib.import_module(f"pages.{of.name}.upload").UPLOAD
    return upload


def take(state: Mapping[Any, Any]) -> dict[str, OwnTable]:
    """The tables in use in a session of this state, by name of the page."""
    tables: dict[str, OwnTable] = {}
    for of in catalogue.PAGES:
        used = state.get(of.file_key) if of.file_key else None
        upload = upload_of(of) if used is not None else None
        if upload is not None:
            tables[of.name] = OwnTable(used, _entered(of, upload, state))
    return tables


def _entered(of: Question, upload: TableUpload, state: Mapping[Any, Any]) -> dict[str, float]:
    if not upload.about_columns:
        return {}
    start = of.key(upload.about_columns)
    return {
        key.removeprefix(f"{of.name}."): float(value)
        for key, value in list(state.items())
        if str(key).startswith(start) and isinstance(value, int | float)
    }


def apply(tables: Mapping[str, OwnTable]) -> None:
    """Put tables in use on their pages, in place of those that are in use there."""
    for name, table in tables.items():
        of = catalogue.named(name)
        upload = None if of is None else upload_of(of)
        if of is None or upload is None:
            continue
        entries = {of.own_file: table.used, **upload.beside(table.used)}
        for entry, value in entries.items():
            st.session_state[of.key(entry)] = value
        for entry, value in table.entered.items():
            st.session_state[f"{of.name}.{entry}"] = value


# --- Writing ----------------------------------------------------------------------------------------------------------


def to_json(tables: Mapping[str, OwnTable], room: int) -> tuple[dict[str, Any], list[str]]:
    """The tables as far as there is room, and what is left out, a sentence each.

    Args:
        tables: By name of the page.
        room: Bytes that their arrays may take.
    """
    written: dict[str, Any] = {}
    left_out: list[str] = []
    for name, table in tables.items():
        saved = saved_dataset.to_json(table.dataset, room)
        if saved.content is None or "table" not in saved.content["facets"]:
            of = catalogue.named(name)
            left_out.append(f"{name if of is None else of.title}: its own table is too large for a file")
            continue
        room = saved.room
        left_out += saved.left_out
        design = getattr(table.used, "design", None)
        written[name] = table_to_json(saved.content, table.used.account, design, table.entered)
    return written, left_out


# --- Reading ----------------------------------------------------------------------------------------------------------


def from_json(part: JsonValue) -> dict[str, OwnTable]:
    """The tables that `to_json` wrote, by name of the page; problems are noted."""
    pages = {of.name: of for of in catalogue.PAGES if of.own_file}
    tables: dict[str, OwnTable] = {}
    for name, entry in (part.get_members((), tuple(pages)) or {}).items():
        upload = upload_of(pages[name])
        assert upload is not None
        table = _table(entry, pages[name], upload)
        if table is not None:
            tables[name] = table
    return tables


def _table(part: JsonValue, of: Question, upload: TableUpload) -> OwnTable | None:
    given = part.read_members(
        {
            "content": saved_dataset.from_json,
            "account": read_text(DIGEST),
            "design": read_optional(lambda design: (design.value, _design(design))),
            "entered": lambda entered: _entered_of(entered, of, upload),
            "seal": read_text(DIGEST),
        }
    )
    if given is None:
        return None
    dataset, (written, design) = given["content"], given["design"] or (None, None)
    if given["seal"] != seal_of(given["account"], dataset.digest, written):
        part.refuse("this is not the account of these data: the file was changed or damaged")
    elif dataset.table is None or dataset.disclosure is Disclosure.DP_RELEASE:
        part.refuse("a table of a page's own holds features and labels, and is no release")
    elif design is not None and any(
        one.kind is FeatureKind.NUMERIC and one.column not in dataset.table.feature_names
        for one in design.features
    ):
        part.refuse("there is no such feature in the table")
    else:
        return part.build(_used, upload, dataset, given["account"], design, given["entered"])
    return None


def _used(
    upload: TableUpload, data: Dataset, account: str, design: Design | None, entered: Mapping[str, float]
) -> OwnTable:
    upload.check(data)
    return OwnTable(upload.used(data, account, design), entered)


def _design(part: JsonValue) -> Design | None:
    given = part.read_members(
        {
            "label": read_text(saved_dataset.NAME),
            "user": read_text(saved_dataset.NAME),
            "features": lambda features: tuple(map(_feature, features.get_entries(MAX_FEATURES) or ())),
            "intercept": _yes_or_no,
        },
        {"positive": read_text(saved_dataset.NAME)},
    )
    if given is None:
        return None
    if len({one.column for one in given["features"]}) < len(given["features"]):
        part.refuse("a column stands at two features")
        return None
    return Design(**given)


def _feature(part: JsonValue) -> Feature | None:
    parts = part.get_entries(3 + MAX_LEVELS) or []
    if len(parts) < 3:
        part.refuse("a feature is a column, its kind, a reference level and the levels that are listed")
        return None
    column, reference, *levels = (one.get_text(saved_dataset.NAME) or "" for one in (parts[0], *parts[2:]))
    of = read_enum(FeatureKind)(parts[1])
    return None if of is None else Feature(column, of, reference, tuple(levels))


def _yes_or_no(part: JsonValue) -> bool:
    if not isinstance(part.value, bool):
        part.must_be("true or false")
    return bool(part.value)


def _entered_of(part: JsonValue, of: Question, upload: TableUpload) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, entry in (part.get_named(MOST_ENTRIES) or {}).items():
        number = entry.get_number()
        known = bool(upload.about_columns) and name.startswith(upload.about_columns)
        if not known or JsonValue(name, entry.location, entry.problems).get_text(saved_dataset.NAME) is None:
            entry.refuse(f"there is no such field on the page {of.title}")
        elif number is not None and not math.isfinite(number * 2.0):
            entry.refuse("this number is beyond what a range can hold")
        elif number is not None:
            numbers[name] = number
    return numbers
