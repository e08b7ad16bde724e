"""Files that fit in memory, as tables of text cells: JSON, Excel workbooks, and DuckDB's answers."""

from __future__ import annotations

import datetime
import functools
import json
import math
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dpcore.common.errors import InvalidInput, Problem
from dpcore.common.progress import ShouldStop
from dpcore.counting.running import StoppedError, check_stop
from dpcore.data.tables import BLANKS, MAX_COLUMNS, Table, table_of_cells, word_set

MAX_WORKBOOK_BYTES = 2_000_000_000
"""Largest unpacked size of a workbook; some grow a thousandfold when unpacked."""
_SHOWN_PROBLEMS = 3


def json_table(content: bytes, name: str) -> Table:
    """JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Raises:
        InvalidInput: Not UTF-8, not JSON, not objects ...; the first lines that are wrong are named.
    """
    return json_table_and_keys(content, name)[0]


def json_table_and_keys(content: bytes, name: str) -> tuple[Table, tuple[str, ...]]:
    """As `json_table`, with the keys as they are written; the names of the columns are tidied."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            [Problem("the file is not UTF-8, which JSON must be", f"line {at:,}", "Save it as UTF-8")]
        ) from None
    records, lines = _array(text) if text.lstrip().startswith("[") else _json_lines(text)
    columns: dict[str, None] = {}
    for record in records:
        columns.update(dict.fromkeys(record))
        if len(columns) > MAX_COLUMNS:
            what = f"the objects have more than {MAX_COLUMNS:,} different keys"
            raise InvalidInput([Problem(what, "", "Keep the keys that say who, what and how much")])
    if not columns:
        raise InvalidInput(
            [Problem("no object has a key", "", "Write one object per row, with a key for who")]
        )
    rows = [[_cell(record.get(key)) for key in columns] for record in records]
    table = table_of_cells(list(columns), rows, np.array([1, *lines], np.int64), name)
    if text.lstrip().startswith("["):
        note = "In an array of objects, line 2 stands for the first object."
        table = replace(table, notes=(note, *table.notes))
    return table, tuple(columns)


_NOT_JSON = 'Write one JSON object per line, such as {"user": "a", "value": 1}'


def _number(text: str) -> str:
    """A number with a point or an exponent, one text for one number: 7.0 is 7, as in a Parquet file."""
    value = float(text)
    return text if math.isinf(value) else _cell(value)


def _constant(text: str) -> str:
    """What JSON does not know and Python writes: NaN, where something is missing, and the infinities."""
    return "" if text == "NaN" else text


# Whole numbers stay as they are written: ids may have any number of digits.
_loads = functools.partial(json.loads, parse_float=_number, parse_int=str, parse_constant=_constant)


def _array(text: str) -> tuple[list[dict[str, Any]], list[int]]:
    try:
        found = _loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput([Problem("this is not JSON", f"line {error.lineno:,}", _NOT_JSON)]) from None
    except RecursionError:
        raise InvalidInput([Problem("the JSON is nested too deeply", "", _NOT_JSON)]) from None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise InvalidInput([Problem("the JSON is not an array of objects", "", _NOT_JSON)])
    return found, list(range(2, len(found) + 2))


def _json_lines(text: str) -> tuple[list[dict[str, Any]], list[int]]:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    wrong = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = _loads(line)
        except (json.JSONDecodeError, RecursionError):
            found = None
        if isinstance(found, dict):
            records.append(found)
            lines.append(number)
            continue
        wrong += 1
        if wrong <= _SHOWN_PROBLEMS:
            problems.append(Problem("this is not a JSON object", f"line {number:,}", _NOT_JSON))
    if wrong > _SHOWN_PROBLEMS:
        problems.append(Problem(f"{wrong - _SHOWN_PROBLEMS:,} more lines are no JSON objects"))
    if problems:
        raise InvalidInput(problems)
    return records, lines


def _cell(value: Any) -> str:
    """A value as text; what is missing is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip(BLANKS)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return (
        json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value).strip(BLANKS)
    )


def workbook_table(path: Path, name: str, should_stop: ShouldStop | None = None) -> Table:
    """The first sheet of an Excel workbook; formulas count with the value Excel last saw, and are not run.

    Raises:
        InvalidInput: Damaged, protected, empty, or too large.
    """
    _refuse_bombs(path)
    import openpyxl

    try:
        book = openpyxl.load_workbook(BytesIO(path.read_bytes()), read_only=True, data_only=True)
        sheets = book.worksheets
        seen = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
        rows = [] if not sheets else _sheet_rows((seen or sheets)[0], should_stop)
    except (InvalidInput, StoppedError):
        raise
    except Exception:  # openpyxl raises anything on damaged files, and may quote their cells
        what, remedy = (
            "the Excel workbook is damaged or protected",
            "Save it again, or save it as CSV (UTF-8)",
        )
        raise InvalidInput([Problem(what, "", remedy)]) from None
    filled = [(number, row) for number, row in rows if any(row)]
    if not filled:
        raise InvalidInput([Problem("the first sheet is empty", "", "Put the table on the first sheet")])
    notes = _without_errors(filled)
    if len(sheets) > 1:
        which = "first" if not seen or seen[0] is sheets[0] else "first visible one"
        notes.insert(0, f"The {which} of {len(sheets)} sheets was read.")
    width = max(at + 1 for _, row in filled for at, cell in enumerate(row) if cell)
    if width > MAX_COLUMNS:
        raise InvalidInput([Problem(f"there are {width:,} columns; at most {MAX_COLUMNS:,} are read", "row 1",
                                    "Keep the columns that say who, what and how much")])  # fmt: skip
    cells = [(row + [""] * width)[:width] for _, row in filled]
    lines = np.array([number for number, _ in filled], np.int64)
    table = table_of_cells(cells[0], cells[1:], lines, name)
    return replace(table, notes=(*notes, *table.notes))


# What stands in a cell whose formula failed; a sheet that looks users up has one for every user not found.
_ERRORS = word_set(
    "#N/A #REF! #VALUE! #NAME? #DIV/0! #NUM! #NULL! #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT!"
)


def _without_errors(rows: list[tuple[int, list[str]]]) -> list[str]:
    """Empty the cells that hold an error, and say so."""
    found = [(row, at, number) for number, row in rows for at, cell in enumerate(row) if cell in _ERRORS]
    if not found:
        return []
    for row, at, _ in found:
        row[at] = ""
    first = f"(first: line {found[0][2]:,})"
    if len(found) == 1:
        return [f"1 cell holds an error of a formula, such as #N/A, and counts as missing {first}."]
    return [f"{len(found):,} cells hold an error of a formula, such as #N/A, and count as missing {first}."]


def _sheet_rows(sheet: Any, should_stop: ShouldStop | None) -> list[tuple[int, list[str]]]:
    # The size that a sheet says it has is often wrong; rows beyond it would not be read.
    sheet.reset_dimensions()
    rows = []
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if number % 1_000 == 0:
            check_stop(should_stop)
        rows.append((number, [_cell(value) for value in row]))
    return rows


def _refuse_bombs(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        raise InvalidInput(
            [Problem("the Excel workbook is damaged", "", "Save it again, or as CSV")]
        ) from None
    if size > MAX_WORKBOOK_BYTES:
        what = f"the workbook unpacks to {size:,} bytes; at most {MAX_WORKBOOK_BYTES:,} are read"
        raise InvalidInput([Problem(what, "", "Save it as CSV (UTF-8) and choose that file")])
