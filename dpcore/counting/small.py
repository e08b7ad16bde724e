"""Files that fit in memory, as tables of text cells: JSON, Excel workbooks, and DuckDB's answers."""

from __future__ import annotations

import datetime
import json
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dpcore.counting.running import ShouldStop, StoppedError, check_stop
from dpcore.errors import InvalidInput, Problem
from dpcore.tables import BLANKS, MAX_COLUMNS, Table, table_of_cells

MAX_WORKBOOK_BYTES = 2_000_000_000
"""Largest unpacked size of a workbook; some grow a thousandfold when unpacked."""
_SHOWN_PROBLEMS = 3


def json_table(content: bytes, name: str) -> Table:
    """JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Raises:
        InvalidInput: Not UTF-8, not JSON, not objects ...; the first lines that are wrong are named.
    """
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
    if not text.lstrip().startswith("["):
        return table
    return replace(table, notes=("In an array of objects, line 2 stands for the first object.", *table.notes))


_NOT_JSON = 'Write one JSON object per line, such as {"user": "a", "value": 1}'


def _array(text: str) -> tuple[list[dict[str, Any]], list[int]]:
    try:
        # Numbers stay as they are written, so that 007 or 1e400 cannot turn into something else.
        found = json.loads(text, parse_float=str, parse_int=str)
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
            found = json.loads(line, parse_float=str, parse_int=str)
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
        rows = [] if not sheets else _sheet_rows(sheets[0], should_stop)
    except (InvalidInput, StoppedError):
        raise
    except Exception as error:  # openpyxl raises anything on damaged files
        raise InvalidInput(
            [
                Problem(
                    "the Excel workbook is damaged or protected",
                    "",
                    "Save it again, or save it as CSV (UTF-8)",
                )
            ]
        ) from error
    filled = [(number, row) for number, row in rows if any(row)]
    if not filled:
        raise InvalidInput([Problem("the first sheet is empty", "", "Put the table on the first sheet")])
    width = max(at + 1 for _, row in filled for at, cell in enumerate(row) if cell)
    if width > MAX_COLUMNS:
        raise InvalidInput([Problem(f"there are {width:,} columns; at most {MAX_COLUMNS:,} are read", "row 1",
                                    "Keep the columns that say who, what and how much")])  # fmt: skip
    cells = [(row + [""] * width)[:width] for _, row in filled]
    lines = np.array([number for number, _ in filled], np.int64)
    table = table_of_cells(cells[0], cells[1:], lines, name)
    if len(sheets) > 1:
        table = replace(table, notes=(f"The first of {len(sheets)} sheets was read.", *table.notes))
    return table


def _sheet_rows(sheet: Any, should_stop: ShouldStop | None) -> list[tuple[int, list[str]]]:
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
