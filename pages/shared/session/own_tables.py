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

from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import Part
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


def from_json(part: Part) -> dict[str, OwnTable]:
    """The tables that `to_json` wrote, by name of the page; problems are noted."""
    pages = {of.name: of for of in catalogue.PAGES if of.own_file}
    tables: dict[str, OwnTable] = {}
    for name, entry in (part.members((), tuple(pages)) or {}).items():
        upload = upload_of(pages[name])
        assert upload is not None
        table = _table(entry, pages[name], upload)
        if table is not None:
            tables[name] = table
    return tables


def _table(part: Part, of: Question, upload: TableUpload) -> OwnTable | None:
    before = len(part.problems.found)
    members = part.members(["content", "account", "design", "entered", "seal"])
    if members is None:
        return None
    account, seal = members["account"].text(DIGEST), members["seal"].text(DIGEST)
    dataset = saved_dataset.from_json(members["content"])
    design = None if members["design"].value is None else _design(members["design"])
    if len(part.problems.found) > before or dataset is None or account is None:
        return None
    if seal != seal_of(account, dataset.digest, members["design"].value):
        members["account"].refuse("this is not the account of these data: the file was changed or damaged")
    if dataset.table is None or dataset.disclosure is Disclosure.DP_RELEASE:
        members["content"].refuse("a table of a page's own holds features and labels, and is no release")
        return None
    entered = _entered_of(members["entered"], of, upload)
    names = dataset.table.feature_names
    for one in () if design is None else design.features:
        if one.kind is FeatureKind.NUMERIC and one.column not in names:
            members["design"].refuse("there is no such feature in the table")
    if len(part.problems.found) > before:
        return None
    try:
        upload.check(dataset)
        used = upload.used(dataset, account, design)
    except InvalidInput as refused:
        for problem in refused.problems:
            part.refuse(problem.what)
        return None
    return OwnTable(used, entered)


def _design(part: Part) -> Design | None:
    members = part.members(["label", "user", "features", "intercept"], ["positive"])
    if members is None:
        return None
    before = len(part.problems.found)
    kinds = {kind.value: kind for kind in FeatureKind}
    label, user = (members[name].text(saved_dataset.NAME) for name in ("label", "user"))
    positive = members["positive"].text(saved_dataset.NAME) if "positive" in members else ""
    features = []
    for entry in members["features"].entries(MAX_FEATURES) or ():
        parts = entry.entries(3 + MAX_LEVELS) or []
        if len(parts) < 3:
            entry.refuse("a feature is a column, its kind, a reference level and the levels that are listed")
            continue
        column, reference = (parts[at].text(saved_dataset.NAME) for at in (0, 2))
        kind = parts[1].one_of(kinds)
        levels = [part.text(saved_dataset.NAME) for part in parts[3:]]
        if column is not None and kind is not None and reference is not None:
            listed = tuple(level for level in levels if level is not None)
            features.append(Feature(column, kind, reference, listed))
    intercept = members["intercept"].value
    if not isinstance(intercept, bool):
        members["intercept"].must_be("true or false")
    if len({one.column for one in features}) < len(features):
        members["features"].refuse("a column stands at two features")
    if len(part.problems.found) > before or label is None or user is None:
        return None
    return Design(label, user, tuple(features), intercept, positive or "")


def _entered_of(part: Part, of: Question, upload: TableUpload) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, entry in (part.named(MOST_ENTRIES) or {}).items():
        number = entry.number()
        known = bool(upload.about_columns) and name.startswith(upload.about_columns)
        if not known or Part(name, entry.place, entry.problems).text(saved_dataset.NAME) is None:
            entry.refuse(f"there is no such field on the page {of.title}")
        elif number is not None and not math.isfinite(number * 2.0):
            entry.refuse("this number is beyond what a range can hold")
        elif number is not None:
            numbers[name] = number
    return numbers
