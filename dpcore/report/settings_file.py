"""The settings of one call as a TOML file, which the command and the call itself accept.

The file holds what was entered and the names of the columns; no number of the data.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.data.column_names import shorten
from dpcore.dataset import Dataset
from dpcore.report.script import Call

SUFFIX = ".toml"
MAX_BYTES = 1_000_000
"""Largest file that is read; the longest settings have a few thousand bytes."""
MOST_KEY_PARTS = 20
"""Parts of a key that dots divide: the time that Python's reader takes grows with their square."""
_LONG_KEY = re.compile(
    rb"""(?m)(?:^|[\[{,])\s*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % MOST_KEY_PARTS
)


def write_settings(call: Call, command: str, dataset: Dataset, columns: Collection[str]) -> str:
    """Write the file.

    Args:
        call: Name of the function of `dpcore`, and its settings as a person writes them.
        command: Its name in a shell.
        dataset: The data set; the names of its columns stand in the file.
        columns: The arguments of the call that say how data are read.
    """
    name, settings = call
    columns_used = {key: value for key, value in list_columns(dataset).items() if key in columns}
    lines = [
        f"{key} = {_to_toml(value)}"
        for key, value in {**columns_used, **settings}.items()
        if value is not None
    ]
    return "\n".join([_HEADER.format(name=name, command=command), *lines, ""])


_HEADER = """\
# Settings of dpcore.{name}, as they were entered. With this file as settings.toml:
#     sweet-spot {command} settings.toml DATA
#     dpcore.{name}(DATA, **tomllib.loads(Path("settings.toml").read_text("utf-8")))
"""


def list_columns(dataset: Dataset) -> dict[str, Any]:
    """List the known columns that data were read from, and whether they are public, as arguments of a call."""
    groups = dataset.pairs or dataset.tasks
    names_by_role: dict[str, tuple[str, ...]] = {
        "user": dataset.privacy_unit,
        "value": (dataset.value_column,),
        "group": () if groups is None else (groups.column, *groups.further_columns),
    }
    if not dataset.privacy_unit:  # Counts, or a histogram: they come without columns of rows.
        names_by_role = {}
    settings: dict[str, Any] = {
        key: columns[0] if len(columns) == 1 else list(columns)
        for key, columns in names_by_role.items()
        if any(columns)
    }
    return settings | ({"disclosure": "public"} if dataset.provenance is Disclosure.PUBLIC else {})


def can_read_again(dataset: Dataset) -> bool:
    """Return whether a call can read these data from their files again if it knows only the names of columns."""
    layout = dataset.layout
    return layout is None or not (layout.missing_is_a_user or any(file.names for file in layout.files))


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the settings that such a file holds, whoever wrote it; the call checks what they mean.

    Raises:
        InvalidInput: It cannot be read, or is no TOML.
    """
    name = shorten(Path(path).name)
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise refuse(f"{name} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise refuse(f"{name} has more than {MAX_BYTES:,} bytes, which no settings have")
    if _LONG_KEY.search(content):
        raise refuse(f"{name} has a key of more than {MOST_KEY_PARTS} parts, which no setting has")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise refuse(f"{name} is no text in UTF-8, as TOML is") from None
    except (ValueError, RecursionError) as error:
        raise refuse(
            f"{name} is no TOML: {error}", remedy='Write settings like epsilon = 1 or user = "id"'
        ) from None


def _to_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_to_toml(str(key))} = {_to_toml(item)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[\n" + "".join(f"    {_to_toml(item)},\n" for item in value) + "]" if value else "[]"
    # A basic string of TOML is one of JSON, except that it holds no plain DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
