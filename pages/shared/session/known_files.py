"""Files that were put to use, with the roles of their columns: a file with the same columns gets the same roles.

The session file holds them, so that data too large for it can be read again without choosing the roles anew. Only the
name of a file and the names of its columns are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue, read_enum, read_text, read_texts
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution
from pages.shared.base import keys

MAX_FILES = 20
NAME, MOST_COLUMNS = 400, 10_000
"""Characters of a file's or a column's name, and columns of a file, in a session file that is read."""
SINGLE = ("user", "count", "size", "users", "value", "task")
SEVERAL = ("further_user", "further_task")
_ENUMS: dict[str, Any] = {"kind": TableKind, "missing_users": MissingUsers, "contribution": Contribution}
_LABELS = {label.value: label for label in (Disclosure.PRIVATE, Disclosure.PUBLIC)}


@dataclass(frozen=True)
class KnownFile:
    """A file that was put to use.

    Attributes:
        name: Its name.
        columns: All its columns.
        roles: The roles of the columns.
        disclosure: Whether its data were called public. It is not proposed again: other data may have the same columns.
    """

    name: str
    columns: tuple[str, ...]
    roles: Roles
    disclosure: Disclosure


def list_files() -> tuple[KnownFile, ...]:
    """Return all known files, the latest first."""
    files: tuple[KnownFile, ...] = st.session_state.get(keys.KNOWN_FILES, ())
    return files


def add_files(files: Sequence[KnownFile]) -> None:
    """Add known files; of files with the same columns the first one is kept."""
    latest: dict[tuple[str, ...], KnownFile] = {}
    for file in (*files, *list_files()):
        latest.setdefault(file.columns, file)
    st.session_state[keys.KNOWN_FILES] = tuple(latest.values())[:MAX_FILES]


def find_file(columns: Sequence[str]) -> KnownFile | None:
    """Return the file with these columns; None if none is known."""
    return next((file for file in list_files() if file.columns == tuple(columns)), None)


def to_json(files: Sequence[KnownFile]) -> list[dict[str, Any]]:
    """Return the files as they stand in a session file."""
    return [
        {
            "name": file.name,
            "columns": list(file.columns),
            "label": file.disclosure.value,
            **{name: getattr(file.roles, name).value for name in _ENUMS},
            **{name: column for name in SINGLE if (column := getattr(file.roles, name)) is not None},
            **{name: list(getattr(file.roles, name)) for name in SEVERAL},
        }
        for file in files
    ]


def from_json(node: JsonValue) -> tuple[KnownFile, ...]:
    """Return the files of a session file; problems are added to ``node``."""
    files = [_file(entry) for entry in node.get_entries(MAX_FILES) or ()]
    return tuple(file for file in files if file is not None)


def _file(node: JsonValue) -> KnownFile | None:
    members = node.read_members(
        {
            "name": read_text(NAME),
            "columns": read_texts(MOST_COLUMNS, NAME),
            "label": lambda label: label.choose(_LABELS),
            **{field_name: read_enum(options) for field_name, options in _ENUMS.items()},
            **dict.fromkeys(SEVERAL, read_texts(MOST_COLUMNS, NAME)),
        },
        dict.fromkeys(SINGLE, read_text(NAME)),
    )
    if members is None:
        return None
    name, columns, label = (members.pop(field) for field in ("name", "columns", "label"))
    used_columns = [
        *(members[field_name] for field_name in SINGLE if field_name in members),
        *(column for field_name in SEVERAL for column in members[field_name]),
    ]
    if missing := [column for column in used_columns if column not in columns]:
        node.refuse(f"the file has no column {missing[0]}")
        return None
    return KnownFile(name, columns, Roles(**members), label)
