"""The settings of one call as a TOML file, which the command and the call itself accept.

It holds what was entered and the names of the columns; no number of the data.
"""

from __future__ import annotations

import dataclasses
import enum
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
from dpcore.data.column_roles import DROP
from dpcore.data.row_filter import RowFilter
from dpcore.data.tables import TableLayout
from dpcore.dataset import Dataset

Call = tuple[str, Mapping[str, Any]]
"""Name of a function of `dpcore` that answers a question, and its settings as a person writes them."""
SETTINGS_SUFFIX = ".toml"
MAX_BYTES = 1_000_000
"""Largest file that is read; the longest settings have a few thousand bytes."""
MAX_KEY_PARTS = 20
"""Parts of a key that dots divide: the time that Python's reader takes grows with their square."""
_LONG_KEY_PATTERN = re.compile(
    rb"""(?m)(?:^|[\[{,])\s*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % MAX_KEY_PARTS
)


def write_settings(call: Call, command_name: str, dataset: Dataset, column_arguments: Collection[str]) -> str:
    """Return the settings of a call, and the columns of its data, as the text of a TOML file.

    Args:
        call: Name of the function of `dpcore`, and its settings as a person writes them.
        command_name: Its name in a shell.
        dataset: The data set; the names of its columns stand in the file.
        column_arguments: The arguments of the call that say how data are read.
    """
    call_name, call_settings = call
    data_settings = {key: value for key, value in list_columns(dataset).items() if key in column_arguments}
    all_settings = {**data_settings, **call_settings}
    setting_lines = [f"{key} = {_to_toml(value)}" for key, value in all_settings.items() if value is not None]
    return "\n".join([_SETTINGS_HEADER.format(name=call_name, command=command_name), *setting_lines, ""])


_SETTINGS_HEADER = """\
# Settings of dpcore.{name}, as they were entered. With this file as settings.toml:
#     sweet-spot {command} settings.toml DATA
#     dpcore.{name}(DATA, **tomllib.loads(Path("settings.toml").read_text("utf-8")))
"""


def write_call(call: Call, has_data: bool) -> str:
    """Return a call in Python, with `dpcore` under the name ``ss`` and its data under ``data``."""
    call_name, arguments = call
    argument_texts = ["data"] * has_data + [f"{name}={_to_python(arguments[name])}" for name in arguments]
    return f"ss.{call_name}({', '.join(argument_texts)})"


def _to_python(value: Any) -> str:
    """Return an argument in Python: the facts of a release and options by their names in `dpcore`, under ``ss``."""
    if isinstance(value, enum.Enum):
        return f"{_to_python(type(value))}.{value.name}"
    if isinstance(value, type):
        return f"ss.{value.__module__.removeprefix('dpcore.')}.{value.__qualname__}"
    if dataclasses.is_dataclass(value):
        field_texts = (f"{f.name}={_to_python(getattr(value, f.name))}" for f in dataclasses.fields(value))
        return f"{_to_python(type(value))}({', '.join(field_texts)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_to_python(key)}: {_to_python(value[key])}' for key in value)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_to_python, value))}]"
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def list_columns(dataset: Dataset) -> dict[str, Any]:
    """Return, by argument of a call, the columns and options by which data were read.

    ``disclosure`` is among them if the data are public.
    """
    pairs_or_tasks = dataset.pairs or dataset.tasks
    columns_by_argument: dict[str, tuple[str, ...]] = {
        "user": dataset.user_columns,
        "value": (dataset.value_column,),
        "group": () if pairs_or_tasks is None else (pairs_or_tasks.column, *pairs_or_tasks.further_columns),
    }
    if not dataset.privacy_unit:  # Counts, or a histogram: they come without columns of rows.
        columns_by_argument = {}
    data_settings: dict[str, Any] = {
        argument: argument_columns[0] if len(argument_columns) == 1 else list(argument_columns)
        for argument, argument_columns in columns_by_argument.items()
        if any(argument_columns)
    }
    if (layout := dataset.layout) is not None:
        if layout.has_missing_rule and "value" in data_settings:
            data_settings["missing"] = DROP if dataset.drops_missing else layout.missing_constant
        data_settings |= list_reading_options(layout)
        if layout.yes_text and "value" in data_settings:
            data_settings["yes"] = layout.yes_text
        own_filters = [f for f in layout.filters if f != RowFilter.of_number(f.column)]
        data_settings |= {"filters": "; ".join(f.text for f in own_filters) or None}
    if (periods := dataset.periods) is not None and dataset.privacy_unit:
        data_settings |= {"date": periods.column, "periods": periods.span, "releases": periods.num_releases}
        data_settings |= {"person_epsilon": periods.person_epsilon}
    return data_settings | ({"disclosure": "public"} if dataset.provenance is Disclosure.PUBLIC else {})


def list_reading_options(layout: TableLayout) -> dict[str, str]:
    """Return arguments of `open_files`: the sheet of a workbook, and a separator that a person named; or none."""
    first_file = layout.files[0]
    separator = first_file.separator if first_file.has_stated_separator else ""
    reading_options = {
        "sheet": first_file.sheet,
        "separator": {" +": "blank", "\t": "tab"}.get(separator, separator),
    }
    return {option_name: option_text for option_name, option_text in reading_options.items() if option_text}


def can_read_again(dataset: Dataset) -> bool:
    """Return True if a call that is given only the names of columns can read these data from their files again."""
    layout = dataset.layout
    return layout is None or not (
        layout.missing_is_a_user
        or layout.count_column
        or any(file_layout.names for file_layout in layout.files)
    )


def read_settings(settings_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the settings of a call from a TOML file; the call itself checks them.

    Raises:
        InvalidInput: It cannot be read, or is no TOML.
    """
    file_text = f"the file {shorten(Path(settings_path).name)}"
    try:
        with Path(settings_path).open("rb") as settings_file:
            content_bytes = settings_file.read(MAX_BYTES + 1)
    except OSError as error:
        raise refuse(f"{file_text} cannot be read: {error.strerror}") from None
    if len(content_bytes) > MAX_BYTES:
        raise refuse(f"{file_text} has more than {MAX_BYTES:,} bytes, which no settings have")
    if _LONG_KEY_PATTERN.search(content_bytes):
        raise refuse(f"{file_text} has a key of more than {MAX_KEY_PARTS} parts, which no setting has")
    try:
        return tomllib.loads(content_bytes.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise refuse(f"{file_text} is no text in UTF-8, as TOML is") from None
    except (ValueError, RecursionError) as error:
        remedy_sentence = 'Write settings like epsilon = 1 or user = "id"'
        raise refuse(f"{file_text} is no TOML: {error}", remedy=remedy_sentence) from None


def _to_toml(value: Any) -> str:
    """Return a value, a list or a mapping as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_to_toml(str(key))} = {_to_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return "[\n" + "".join(f"    {_to_toml(item)},\n" for item in value) + "]" if value else "[]"
    # A basic string of TOML is one of JSON, except that it holds no plain DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
