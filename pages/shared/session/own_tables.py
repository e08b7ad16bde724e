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
from dpcore.data.saved_dataset import compute_seal, table_to_json
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
        table: The page's entry for its table.
        entries: Numbers that were entered about its columns, by name of the field.
    """

    table: Any
    entries: Mapping[str, float] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        """Return the data, with the facet `table`."""
        dataset: Dataset = self.table.dataset
        return dataset


def find_upload(question: Question) -> TableUpload | None:
    """Return the page's upload; None if it has none."""
    if not question.own_file:
        return None
    upload: TableUpload = importlib.import_module(f"pages.{question.name}.upload").UPLOAD
    return upload


def list_tables(state: Mapping[Any, Any]) -> dict[str, OwnTable]:
    """Return the tables in use in a session, by name of the page."""
    tables: dict[str, OwnTable] = {}
    for question in catalogue.PAGES:
        table = state.get(question.file_key) if question.file_key else None
        upload = find_upload(question) if table is not None else None
        if upload is not None:
            tables[question.name] = OwnTable(table, _read_entries(question, upload, state))
    return tables


def _read_entries(question: Question, upload: TableUpload, state: Mapping[Any, Any]) -> dict[str, float]:
    """Return what was entered about the table's columns, by name of the field."""
    if not upload.column_field_prefix:
        return {}
    start = question.key(upload.column_field_prefix)
    return {
        key.removeprefix(f"{question.name}."): float(value)
        for key, value in list(state.items())
        if str(key).startswith(start) and isinstance(value, int | float)
    }


def apply(tables: Mapping[str, OwnTable]) -> None:
    """Put tables in use on their pages, in place of the present ones."""
    for name, table in tables.items():
        question = catalogue.named(name)
        upload = None if question is None else find_upload(question)
        if question is None or upload is None:
            continue
        entries = {question.own_file: table.table, **upload.list_extra_state(table.table)}
        for entry, value in entries.items():
            st.session_state[question.key(entry)] = value
        for entry, value in table.entries.items():
            st.session_state[f"{question.name}.{entry}"] = value


# --- Writing ----------------------------------------------------------------------------------------------------------


def to_json(tables: Mapping[str, OwnTable], room: int) -> tuple[dict[str, Any], list[str]]:
    """Return the tables as far as there is room, and a sentence about each that is left out.

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
    """Return the tables that `to_json` wrote, by name of the page; problems are added to ``node``."""
    pages = {page.name: page for page in catalogue.PAGES if page.own_file}
    tables: dict[str, OwnTable] = {}
    for name, entry in (node.get_members((), tuple(pages)) or {}).items():
        upload = find_upload(pages[name])
        assert upload is not None
        table = _read_table(entry, pages[name], upload)
        if table is not None:
            tables[name] = table
    return tables


def _read_table(node: JsonValue, question: Question, upload: TableUpload) -> OwnTable | None:
    """Return a table in use from its JSON; None, with a problem, if it was changed or damaged."""
    members = node.read_members(
        {
            "content": saved_dataset.from_json,
            "account": read_text(DIGEST),
            "design": read_optional(lambda design: (design.value, _read_design(design))),
            "entered": lambda entry: _read_json_entries(entry, question, upload),
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
    return OwnTable(upload.build_entry(data, account, design), entries)


def _read_design(node: JsonValue) -> Design | None:
    members = node.read_members(
        {
            "label": read_text(saved_dataset.NAME),
            "user": read_text(saved_dataset.NAME),
            "features": lambda features: tuple(map(_read_feature, features.get_entries(MAX_FEATURES) or ())),
            "intercept": _read_boolean,
        },
        {"positive": read_text(saved_dataset.NAME)},
    )
    if members is None:
        return None
    if len({feature.column for feature in members["features"]}) < len(members["features"]):
        node.refuse("a column stands at two features")
        return None
    return Design(**members)


def _read_feature(node: JsonValue) -> Feature | None:
    entries = node.get_entries(3 + MAX_LEVELS) or []
    if len(entries) < 3:
        node.refuse("a feature is a column, its kind, a reference level and the levels that are listed")
        return None
    column, reference, *levels = (
        entry.get_text(saved_dataset.NAME) or "" for entry in (entries[0], *entries[2:])
    )
    kind_of_feature = read_enum(FeatureKind)(entries[1])
    return None if kind_of_feature is None else Feature(column, kind_of_feature, reference, tuple(levels))


def _read_boolean(node: JsonValue) -> bool:
    if not isinstance(node.value, bool):
        node.must_be("true or false")
    return bool(node.value)


def _read_json_entries(node: JsonValue, question: Question, upload: TableUpload) -> dict[str, float]:
    """Return the numbers entered about columns from their JSON; others are refused."""
    numbers: dict[str, float] = {}
    for name, entry in (node.get_named(MOST_ENTRIES) or {}).items():
        number = entry.get_number()
        is_about_column = bool(upload.column_field_prefix) and name.startswith(upload.column_field_prefix)
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
