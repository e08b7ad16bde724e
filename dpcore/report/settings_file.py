"""The settings of one call as a TOML file, which the command and the call itself take back.

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

from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure
from dpcore.data.column_names import shown
from dpcore.dataset import Dataset
from dpcore.report.script import Call

ENDING = ".toml"
MOST_BYTES = 1_000_000
"""Of a file that is read; the longest settings have a few thousand."""
MOST_KEY_PARTS = 20
"""Parts of a key that dots divide: the time that Python's reader takes grows with their square."""
_LONG_KEY = re.compile(
    rb"""(?m)(?:^|[\[{,])\s*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % MOST_KEY_PARTS
)


def text(call: Call, command: str, data: Dataset, columns: Collection[str]) -> str:
    """The file.

    Args:
        call: Name of the function of `dpcore`, and its settings as a person writes them.
        command: What it is called in a shell.
        data: What is asked about; the names of its columns stand in the file.
        columns: Which arguments that say how data are read the call takes.
    """
    name, settings = call
    taken = {key: value for key, value in columns_of(data).items() if key in columns}
    lines = [f"{key} = {_toml(value)}" for key, value in {**taken, **settings}.items() if value is not None]
    return "\n".join([_HEAD.format(name=name, command=command), *lines, ""])


_HEAD = """\
# Settings of dpcore.{name}, as they were entered. With this file as settings.toml:
#     sweet-spot {command} settings.toml DATA
#     dpcore.{name}(DATA, **tomllib.loads(Path("settings.toml").read_text("utf-8")))
"""


def columns_of(data: Dataset) -> dict[str, Any]:
    """The columns that data were read from, and whether they are public, as a call takes them; those that are known."""
    value = data.values.column if data.values is not None else data.totals.column if data.totals else ""
    groups = data.pairs or data.tasks
    named: dict[str, tuple[str, ...]] = {
        "user": data.privacy_unit,
        "value": (value,),
        "group": () if groups is None else (groups.column, *groups.further_columns),
    }
    if not data.privacy_unit:  # Counts, or a histogram: they come without columns of rows.
        named = {}
    found: dict[str, Any] = {
        key: columns[0] if len(columns) == 1 else list(columns)
        for key, columns in named.items()
        if any(columns)
    }
    return found | ({"disclosure": "public"} if data.provenance is Disclosure.PUBLIC else {})


def reads_back(data: Dataset) -> bool:
    """Whether a call reads these data from their files as they were read, knowing no more than names of columns."""
    layout = data.layout
    return layout is None or not (layout.missing_is_a_user or any(file.names for file in layout.files))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings that such a file holds, whoever wrote it; what they mean, the call judges.

    Raises:
        InvalidInput: It cannot be read, or is no TOML.
    """
    name = shown(Path(path).name)
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise refusal(f"{name} cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise refusal(f"{name} has more than {MOST_BYTES:,} bytes, which no settings have")
    if _LONG_KEY.search(content):
        raise refusal(f"{name} has a key of more than {MOST_KEY_PARTS} parts, which no setting has")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise refusal(f"{name} is no text in UTF-8, as TOML is") from None
    except (ValueError, RecursionError) as error:
        raise refusal(
            f"{name} is no TOML: {error}", remedy='Write settings like epsilon = 1 or user = "id"'
        ) from None


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[\n" + "".join(f"    {_toml(one)},\n" for one in value) + "]" if value else "[]"
    # A basic string of TOML is one of JSON, but that it holds no plain DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
