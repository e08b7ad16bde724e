"""Write dpcore/__init__.pyi, the types of the calls for editors and type checkers.

    .venv/bin/python .make/stubs.py

A test compares the file with what this writes.
"""

from __future__ import annotations

import inspect
import sys
import typing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import dpcore  # noqa: E402
from dpcore import questions  # noqa: E402
from dpcore.common import text_fields  # noqa: E402

STUB_PATH = ROOT / "dpcore" / "__init__.pyi"
STUB_HEAD = '''"""The calls of Sweet Spot with their types. Written by .make/stubs.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import pandas as pd

from dpcore.private_selection import dropped_cells as dropped_cells
from dpcore.private_selection import select_privately as select_privately
from dpcore.private_selection import select_range as select_range
from dpcore.reply import Reply

__version__: str
'''
COLUMN_TYPES = {
    "user": "str | Sequence[str] | None",
    "value": "str | None",
    "group": "str | Sequence[str] | None",
    "missing": "Literal['drop'] | float | None",
    "yes": "str | None",
    "filters": "str | None",
    "date": "str | None",
    "periods": "str | None",
    "releases": "int",
    "person_epsilon": "float | None",
    "sheet": "str | None",
    "separator": "str | None",
    "label": "str | None",
    "features": "Sequence[str] | None",
    "levels": "Mapping[str, Sequence[str]] | None",
    "intercept": "bool",
    "ranges": "Mapping[str, tuple[float, float]] | None",
    "positive": "str | None",
    "disclosure": "Any",
}
# Settings that a call also takes as a list.
LIST_SETTINGS = {"lines", "q", "quantiles", "groups", "edges"}


def write_type(setting_name: str, type_hint: Any) -> str:
    """Write the type of a setting; an option is named in its own letters or in small ones."""
    options_type = text_fields.find_options_type(type_hint)
    if options_type is not None:
        option_names = [text_fields.name_option(option) for option in options_type]
        literals = ", ".join(
            f'"{text}"' for text in dict.fromkeys([*option_names, *map(str.lower, option_names)])
        )
        return f"Literal[{literals}]" + " | None" * (type(None) in typing.get_args(type_hint))
    type_text = type_hint.__name__ if isinstance(type_hint, type) else str(type_hint)
    return f"{type_text} | Sequence[Any]" if setting_name in LIST_SETTINGS else type_text


def write_call(call_name: str) -> str:
    """Write both forms of a call: a reply for one epsilon, a table for several."""
    types_by_name = {
        name: write_type(name, hint) for name, hint in questions.find_setting_types(call_name).items()
    }
    types_by_name |= COLUMN_TYPES
    data, *named_arguments = inspect.signature(getattr(dpcore, call_name)).parameters.values()
    arguments = ["data: Any" + " = ..." * (data.default is None), "*"]
    for argument in named_arguments:
        type_text = types_by_name[argument.name]
        has_default = argument.default is not inspect.Parameter.empty
        if argument.default is None and "None" not in type_text:
            type_text += " | None"
        arguments.append(f"{argument.name}: {type_text}" + " = ..." * has_default)
    arguments_of_table = ["epsilon: Sequence[float]" if a.startswith("epsilon:") else a for a in arguments]
    return "".join(
        f"@overload\ndef {call_name}({', '.join(form_arguments)}) -> {result_type}: ...\n"
        for form_arguments, result_type in ((arguments, "Reply"), (arguments_of_table, "pd.DataFrame"))
    )


def write_stub() -> str:
    """Write the text of `dpcore/__init__.pyi`."""
    return STUB_HEAD + "".join(map(write_call, questions.QUESTIONS))


if __name__ == "__main__":
    STUB_PATH.write_text(write_stub(), encoding="utf-8")
