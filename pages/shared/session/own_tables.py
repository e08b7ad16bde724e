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
from dpcore.data.saved_table import compute_seal, table_to_json
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
        table: What the page keeps.
        entries: What was entered about its columns, by what the session calls it under the page's name.
    """

    table: Any
    entries: Mapping[str, float] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        """Return the data, with the facet `table`."""
        dataset: Dataset = self.table.dataset
        return dataset


def upload_of(question: Question) -> TableUpload | None:
    """Return the page's upload; None where it has none."""
    if not question.own_file:
        return None
    upload: TableUpload = importlib.import_module(f"pages.{question.name}.upload").UPLOAD
    return upload


def take(state: Mapping[Any, Any]) -> dict[str, OwnTable]:
    """Return the tables in use in a session of this state, by name of the page."""
    tables: dict[str, OwnTable] = {}
    for question in catalogue.PAGES:
        table = state.get(question.file_key) if question.file_key else None
        upload = upload_of(question) if table is not None else None
        if upload is not None:
            tables[question.name] = OwnTable(table, _read_entries(question, upload, state))
    return tables


def _read_entries(question: Question, upload: TableUpload, state: Mapping[Any, Any]) -> dict[str, float]:
    if not upload.about_columns:
        return {}
    start = question.key(upload.about_columns)
    return {
        key.removeprefix(f"{question.name}."): float(value)
        for key, value in list(state.items())
        if str(key).startswith(start) and isinstance(value, int | float)
    }


def apply(tables: Mapping[str, OwnTable]) -> None:
    """Put tables in use on their pages, in place of those that are in use there."""
    for name, table in tables.items():
        question = catalogue.named(name)
        upload = None if question is None else upload_of(question)
        if question is None or upload is None:
            continue
        entries = {question.own_file: table.table, **upload.beside(table.table)}
        for entry, value in entries.items():
            st.session_state[question.key(entry)] = value
        for entry, value in table.entries.items():
            st.session_state[f"{question.name}.{entry}"] = value


# --- Writing ----------------------------------------------------------------------------------------------------------


def to_json(tables: Mapping[str, OwnTable], room: int) -> tuple[dict[str, Any], list[str]]:
    """Return the tables as far as there is room, and what is left out, a sentence each.

    Args:
        tables: By name of the page.
        room: Bytes that their arrays may take.
    """
    entries: dict[str, Any] = {}
    left_out: list[str] = []
    for name, table in tables.items():
        saved = saved_dataset.to_json(table.dataset, room)
        if saved.content is None or "table" not in saved.content["facets"]:
            question = catalogue.named(name)
            left_out.append(
                f"{name if question is None else question.title}: its own table is too large for a file"
            )
            continue
        room = saved.room
        left_out += saved.left_out
        design = getattr(table.table, "design", None)
        entries[name] = table_to_json(saved.content, table.table.account, design, table.entries)
    return entries, left_out


# --- Reading ----------------------------------------------------------------------------------------------------------


def from_json(node: JsonValue) -> dict[str, OwnTable]:
    """Return the tables that `to_json` wrote, by name of the page; problems are noted."""
    pages = {page.name: page for page in catalogue.PAGES if page.own_file}
    tables: dict[str, OwnTable] = {}
    for name, entry in (node.get_members((), tuple(pages)) or {}).items():
        upload = upload_of(pages[name])
        assert upload is not None
        table = _table(entry, pages[name], upload)
        if table is not None:
            tables[name] = table
    return tables


def _table(node: JsonValue, question: Question, upload: TableUpload) -> OwnTable | None:
    members = node.read_members(
        {
            "content": saved_dataset.from_json,
            "account": read_text(DIGEST),
            "design": read_optional(lambda design: (design.value, _design(design))),
            "entered": lambda entry: _entries_from_json(entry, question, upload),
            "seal": read_text(DIGEST),
        }
    )
    if members is None:
        return None
    dataset, (description, design) = members["content"], members["design"] or (None, None)
    if members["seal"] != compute_seal(members["account"], dataset.digest, description):
        node.refuse("this is not the account of these data: the file was changed or damaged")
    elif dataset.table is None or dataset.disclosure is Disclosure.DP_RELEASE:
        node.refuse("a table of a page's own holds features and labels, and is no release")
    elif design is not None and any(
        feature.encoding is FeatureKind.NUMERIC and feature.column not in dataset.table.feature_names
        for feature in design.features
    ):
        node.refuse("there is no such feature in the table")
    else:
        return node.build(_rebuild_table, upload, dataset, members["account"], design, members["entered"])
    return None


def _rebuild_table(
    upload: TableUpload, data: Dataset, account: str, design: Design | None, entries: Mapping[str, float]
) -> OwnTable:
    upload.check(data)
    return OwnTable(upload.used(data, account, design), entries)


def _design(node: JsonValue) -> Design | None:
    members = node.read_members(
        {
            "label": read_text(saved_dataset.NAME),
            "user": read_text(saved_dataset.NAME),
            "features": lambda features: tuple(map(_feature, features.get_entries(MAX_FEATURES) or ())),
            "intercept": _yes_or_no,
        },
        {"positive": read_text(saved_dataset.NAME)},
    )
    if members is None:
        return None
    if len({feature.column for feature in members["features"]}) < len(members["features"]):
        node.refuse("a column stands at two features")
        return None
    return Design(**members)


def _feature(node: JsonValue) -> Feature | None:
    entries = node.get_entries(3 + MAX_LEVELS) or []
    if len(entries) < 3:
        node.refuse("a feature is a column, its kind, a reference level and the levels that are listed")
        return None
    column, reference, *levels = (
        entry.get_text(saved_dataset.NAME) or "" for entry in (entries[0], *entries[2:])
    )
    kind_of_feature = read_enum(FeatureKind)(entries[1])
    return None if kind_of_feature is None else Feature(column, kind_of_feature, reference, tuple(levels))


def _yes_or_no(node: JsonValue) -> bool:
    if not isinstance(node.value, bool):
        node.must_be("true or false")
    return bool(node.value)


def _entries_from_json(node: JsonValue, question: Question, upload: TableUpload) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, entry in (node.get_named(MOST_ENTRIES) or {}).items():
        number = entry.get_number()
        is_about_column = bool(upload.about_columns) and name.startswith(upload.about_columns)
        if (
            not is_about_column
            or JsonValue(name, entry.location, entry.problems).get_text(saved_dataset.NAME) is None
        ):
            entry.refuse(f"there is no such field on the page {question.title}")
        elif number is not None and not math.isfinite(number * 2.0):
            entry.refuse("this number is beyond what a range can hold")
        elif number is not None:
            numbers[name] = number
    return numbers
