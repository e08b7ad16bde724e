"""What a session file holds of the pages' own tables and releases, of pins, and of files that were put to use.

A page with a table has an ``UPLOAD`` in its ``upload.py`` (`pages.shared.data.table_upload`), which says what it takes.

A page with releases that it has drawn holds them as `RELEASES_ENTRY` and has a ``saved.py`` with

    def to_json(releases) -> Any                              # the JSON for the file
    def from_json(node: JsonValue, accounts: Mapping[str, Ledger]) -> releases     # problems are added to the node
    def merge(current, added) -> releases                     # those of the session and of a file together

``accounts`` are the file's ledgers of the page's data, those of its own data if it has some.

A file with the same columns as one that was put to use gets the same roles. The session file holds names and roles, so
that data too large for it can be read again without choosing the roles anew, and nothing else of such files.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.privacy import Disclosure, Ledger, Provenance, ReleaseFacts
from dpcore.common.strict_json import JsonValue, read_optional, read_text
from dpcore.data import saved_dataset
from dpcore.data.column_roles import Roles
from dpcore.data.design_matrix import MAX_FEATURES, Design, FeatureKind
from dpcore.data.saved_dataset import CODEC, compute_seal, table_to_json
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys
from pages.shared.data.table_upload import TableUpload
from pages.shared.figures.figures import MAX_PINS, Pin

DISCLOSURE_BY_TEXT = {disclosure.value: disclosure for disclosure in (Disclosure.PUBLIC, Disclosure.PRIVATE)}


def _read_disclosure(node: JsonValue) -> Provenance | None:
    """Return the facts of a release, or public or private; None, with a problem, for anything else."""
    return CODEC.read(node, ReleaseFacts) if isinstance(node.value, dict) else node.choose(DISCLOSURE_BY_TEXT)


def _read_number(low: float, high: float, node: JsonValue) -> float | None:
    """Return a node's number, or None for null; add a problem for other values and outside [low, high]."""
    number = None if node.value is None else node.get_number()
    if number is not None and not low <= number <= high:
        node.refuse(f"this must lie between {low:g} and {high:g}")
    return number


PIN_CODEC = replace(
    CODEC,
    max_text=400,
    max_entries=60,
    readers_by_type={
        **CODEC.readers_by_type,
        Provenance: _read_disclosure,
        (Pin, "epsilon"): functools.partial(_read_number, *EPSILON_RANGE),
        (Pin, "rows_lost"): functools.partial(_read_number, 0.0, 1.0),
    },
)
"""The form of a pin in a session file."""


def pins_from_json(node: JsonValue) -> tuple[Pin, ...]:
    """Return the pins of a file without those of unknown questions; problems are added to ``node``."""
    required_readers, _ = PIN_CODEC.list_readers(Pin)
    pins = []
    for pin_node in node.get_entries(MAX_PINS) or ():
        # Pins of before had a curve, which no figure shows any more.
        values_by_attribute = pin_node.read_members(required_readers, {"curve": lambda _: None})
        if values_by_attribute is not None and values_by_attribute["question"] in catalogue.QUESTION_BY_NAME:
            pins.append(
                Pin(
                    **{
                        attribute_name: values_by_attribute[attribute_name]
                        for attribute_name in required_readers
                    }
                )
            )
    return tuple(pins)


MAX_COLUMN_ENTRIES = 2 * MAX_FEATURES
"""Fields about columns: a lowest and a highest value of each."""
MAX_DIGEST_LENGTH = 64
"""Characters of an account: SHA-256 of what was read."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A table in use on one page.

    Attributes:
        table_entry: The page's entry for its table.
        numbers_by_field: Numbers that were entered about its columns, by name of the field.
    """

    table_entry: Any
    numbers_by_field: Mapping[str, float] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        """Return the data, with the facet `table`."""
        dataset: Dataset = self.table_entry.dataset
        return dataset


def find_upload(page_name: str) -> TableUpload:
    """Return the upload of a page with a file of its own."""
    upload: TableUpload = importlib.import_module(f"pages.{page_name}.upload").UPLOAD
    return upload


def list_tables(values_by_key: Mapping[Any, Any]) -> dict[str, OwnTable]:
    """Return the tables in use in a session, by name of the page."""
    tables_by_page: dict[str, OwnTable] = {}
    for question in catalogue.QUESTION_BY_NAME.values():
        if not question.own_file_key or (table_entry := values_by_key.get(question.own_file_key)) is None:
            continue
        prefix = find_upload(question.name).column_field_prefix
        numbers_by_field = {
            session_key.removeprefix(f"{question.name}."): float(value)
            for session_key, value in (list(values_by_key.items()) if prefix else ())
            if str(session_key).startswith(f"{question.name}.{prefix}") and isinstance(value, int | float)
        }
        tables_by_page[question.name] = OwnTable(table_entry, numbers_by_field)
    return tables_by_page


def apply_tables(tables_by_page: Mapping[str, OwnTable]) -> None:
    """Put tables in use on their pages, in place of the present ones."""
    for page_name, own_table in tables_by_page.items():
        table_entry, file_entry_name = (
            own_table.table_entry,
            catalogue.QUESTION_BY_NAME[page_name].own_file_entry_name,
        )
        extra_state = find_upload(page_name).list_extra_state(table_entry)
        values_by_entry = {file_entry_name: table_entry, **extra_state, **own_table.numbers_by_field}
        for entry_name, entry_value in values_by_entry.items():
            st.session_state[f"{page_name}.{entry_name}"] = entry_value


# --- Writing ----------------------------------------------------------------------------------------------------------


def tables_to_json(
    tables_by_page: Mapping[str, OwnTable], room_bytes: int
) -> tuple[dict[str, Any], list[str]]:
    """Return the tables as JSON by name of the page, as far as there is room, and a phrase on all that is left out.

    Args:
        tables_by_page: By name of the page.
        room_bytes: Bytes that their arrays may take.
    """
    json_by_page: dict[str, Any] = {}
    omission_phrases: list[str] = []
    for page_name, own_table in tables_by_page.items():
        saved_dataset_json = saved_dataset.to_json(own_table.dataset, room_bytes)
        if (
            saved_dataset_json.dataset_json is None
            or "table" not in saved_dataset_json.dataset_json["facets"]
        ):
            omission_phrases.append(
                f"{catalogue.QUESTION_BY_NAME[page_name].title}: its own table is too large for a file"
            )
            continue
        room_bytes = saved_dataset_json.remaining_bytes
        omission_phrases += saved_dataset_json.left_out_phrases
        design = getattr(own_table.table_entry, "design", None)
        json_by_page[page_name] = table_to_json(
            saved_dataset_json.dataset_json, own_table.table_entry.account, design, own_table.numbers_by_field
        )
    return json_by_page, omission_phrases


# --- Reading ----------------------------------------------------------------------------------------------------------


def tables_from_json(node: JsonValue) -> dict[str, OwnTable]:
    """Return the tables that `tables_to_json` wrote, by name of the page; problems are added to ``node``."""
    page_names = tuple(
        question.name for question in catalogue.QUESTION_BY_NAME.values() if question.own_file_entry_name
    )
    nodes_by_page = node.get_members((), page_names) or {}
    tables_by_page = {
        page_name: _read_table(table_node, find_upload(page_name))
        for page_name, table_node in nodes_by_page.items()
    }
    return {page_name: own_table for page_name, own_table in tables_by_page.items() if own_table is not None}


def _read_table(node: JsonValue, upload: TableUpload) -> OwnTable | None:
    """Return a table in use from its JSON; None, with a problem, if the page cannot use it or it was changed."""
    values_by_member = node.read_members(
        {
            "content": saved_dataset.from_json,
            "account": read_text(MAX_DIGEST_LENGTH),
            "design": read_optional(lambda design: (design.value, _read_design(design))),
            "entered": lambda entry: _read_column_numbers(entry, upload),
            "seal": read_text(MAX_DIGEST_LENGTH),
        }
    )
    if values_by_member is None:
        return None
    dataset, (design_json, design) = values_by_member["content"], values_by_member["design"] or (None, None)
    if values_by_member["seal"] != compute_seal(values_by_member["account"], dataset.digest, design_json):
        node.refuse("this is not the account of these data: the file was changed or damaged")
    elif dataset.table is None or dataset.disclosure is Disclosure.DP_RELEASE:
        node.refuse("a table of a page's own holds features and labels, and is no release")
    elif design is not None and any(
        feature.encoding is FeatureKind.NUMERIC and feature.column not in dataset.table.feature_names
        for feature in design.features
    ):
        node.refuse("there is no such feature in the table")
    else:
        file_digest, numbers_by_field = values_by_member["account"], values_by_member["entered"]
        table_entry = node.build(
            lambda: (upload.check_dataset(dataset), upload.build_entry(dataset, file_digest, design))[1]
        )
        return None if table_entry is None else OwnTable(table_entry, numbers_by_field)
    return None


def _read_design(node: JsonValue) -> Design | None:
    """Return a design; None, with a problem, if a column stands at two features."""
    design: Design | None = CODEC.read(node, Design)
    if design is not None and len({feature.column for feature in design.features}) < len(design.features):
        node.refuse("a column stands at two features")
        return None
    return design


def _read_column_numbers(node: JsonValue, upload: TableUpload) -> dict[str, float]:
    """Return the numbers entered about columns, by name of the field; fields about something else are refused."""
    numbers_by_field: dict[str, float] = {}
    for field_name, number_node in (node.get_named(MAX_COLUMN_ENTRIES) or {}).items():
        number = number_node.get_number()
        is_about_column = bool(upload.column_field_prefix) and field_name.startswith(
            upload.column_field_prefix
        )
        name_node = JsonValue(field_name, number_node.location, number_node.problems)
        if not is_about_column or name_node.get_text(saved_dataset.NAME) is None:
            number_node.refuse(f"there is no such field on the page {upload.question.title}")
        elif number is not None and not math.isfinite(number * 2.0):
            number_node.refuse("this number is beyond what a range can hold")
        elif number is not None:
            numbers_by_field[field_name] = number
    return numbers_by_field


RELEASES_ENTRY = "choices"
"""The name under which a page with a module ``saved`` holds its releases."""


def _import_saved(page_name: str) -> Any:
    """Return the module ``saved`` of a page."""
    return importlib.import_module(f"pages.{page_name}.saved")


def list_releases(values_by_key: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the releases in a session by name of the page, without pages that have none."""
    releasing_pages = [
        page for page in catalogue.QUESTION_BY_NAME.values() if RELEASES_ENTRY in page.origins_by_entry
    ]
    return {
        page.name: releases
        for page in releasing_pages
        if (releases := values_by_key.get(page.get_key(RELEASES_ENTRY)))
    }


def releases_to_json(releases_by_page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the releases as JSON for the file, by name of the page."""
    return {
        page_name: _import_saved(page_name).to_json(releases)
        for page_name, releases in releases_by_page.items()
    }


def releases_from_json(node: JsonValue, accounts: Mapping[str, Mapping[str, Ledger]]) -> dict[str, Any]:
    """Return the releases of a file by name of the page, without pages that have none; add problems to ``node``."""
    page_names = tuple(
        question.name
        for question in catalogue.QUESTION_BY_NAME.values()
        if RELEASES_ENTRY in question.origins_by_entry
    )
    releases_by_page: dict[str, Any] = {}
    for page_name, page_node in (node.get_members((), page_names) or {}).items():
        ledgers_by_digest = accounts.get(
            page_name if catalogue.QUESTION_BY_NAME[page_name].ledgers_key else "", {}
        )
        releases_by_page[page_name] = _import_saved(page_name).from_json(page_node, ledgers_by_digest)
    return {page_name: releases for page_name, releases in releases_by_page.items() if releases}


def apply_releases(releases_by_page: Mapping[str, Any]) -> None:
    """Add the releases of a file to those of the session."""
    for page_name, added_releases in releases_by_page.items():
        releases_key = catalogue.QUESTION_BY_NAME[page_name].get_key(RELEASES_ENTRY)
        st.session_state[releases_key] = _import_saved(page_name).merge(
            st.session_state.get(releases_key, {}), added_releases
        )


MAX_KNOWN_FILES = 20


@dataclass(frozen=True)
class KnownFile:
    """A file that was put to use.

    Attributes:
        name: Its name.
        column_names: Names of all its columns.
        roles: The roles of the columns.
        disclosure: Whether its data were called public. It is not proposed again: other data may have the same columns.
    """

    name: str
    column_names: tuple[str, ...]
    roles: Roles
    disclosure: Disclosure


def list_known_files() -> tuple[KnownFile, ...]:
    """Return all known files, the latest first."""
    known_files: tuple[KnownFile, ...] = st.session_state.get(keys.KNOWN_FILES, ())
    return known_files


def add_known_files(known_files: Sequence[KnownFile]) -> None:
    """Put files before the known ones; of those with the same columns the first is kept, `MAX_KNOWN_FILES` in all."""
    files_by_columns: dict[tuple[str, ...], KnownFile] = {}
    for known_file in (*known_files, *list_known_files()):
        files_by_columns.setdefault(known_file.column_names, known_file)
    st.session_state[keys.KNOWN_FILES] = tuple(files_by_columns.values())[:MAX_KNOWN_FILES]


def find_known_file(column_names: Sequence[str]) -> KnownFile | None:
    """Return the known file with exactly these columns, in this order; None if there is none."""
    return next(
        (known_file for known_file in list_known_files() if known_file.column_names == tuple(column_names)),
        None,
    )


def known_files_to_json(known_files: Sequence[KnownFile]) -> list[dict[str, Any]]:
    """Return the known files as JSON for the session file, a dict each."""
    return [
        {
            "name": CODEC.write(known_file.name),
            "columns": CODEC.write(known_file.column_names),
            "label": known_file.disclosure.value,
            **CODEC.write_fields(known_file.roles),
        }
        for known_file in known_files
    ]


def known_files_from_json(node: JsonValue) -> tuple[KnownFile, ...]:
    """Return the files of a session file; problems are added to ``node``."""
    return tuple(filter(None, map(_read_known_file, node.get_entries(MAX_KNOWN_FILES) or ())))


def _read_known_file(node: JsonValue) -> KnownFile | None:
    """Return a known file from its JSON; None, with a problem, if damaged or if a role names a column it lacks."""
    required_readers, optional_readers = CODEC.list_readers(Roles)
    values_by_member = node.read_members(
        {
            "name": CODEC.make_reader(str),
            "columns": CODEC.make_reader(tuple[str, ...]),
            "label": lambda label: label.choose(DISCLOSURE_BY_TEXT),
            **required_readers,
        },
        optional_readers,
    )
    if values_by_member is None:
        return None
    file_name, column_names, disclosure = (
        values_by_member.pop(member_name) for member_name in ("name", "columns", "label")
    )
    roles = Roles(**values_by_member)
    single_columns = (roles.user, roles.count, roles.size, roles.users, roles.value, roles.task)
    used_columns = [*(c for c in single_columns if c is not None), *roles.further_user, *roles.further_task]
    used_columns += roles.further_values
    if missing_columns := [column for column in used_columns if column not in column_names]:
        node.refuse(f"the file has no column {missing_columns[0]}")
        return None
    return KnownFile(file_name, column_names, roles, disclosure)
