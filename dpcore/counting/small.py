"""Reading JSON and Excel files that fit in memory, as tables of text cells."""

from __future__ import annotations

import datetime
import json
import zipfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.duck import Duck, literal
from dpcore.counting.formats import File, Format, MemoryFile, Packing
from dpcore.counting.reading import InputFile, Reading, read_cells
from dpcore.counting.rejects import describe_lines
from dpcore.counting.running import StoppedError, check_stop
from dpcore.counting.sheet_xml import AS_CSV, SheetReader, shared_texts, too_many_cells
from dpcore.counting.text import TooManyCells
from dpcore.data.column_names import MAX_COLUMNS, count_titles, word_set
from dpcore.data.delimited_text import BLANKS
from dpcore.data.tables import FileKind, FileLayout, Table, build_table

if TYPE_CHECKING:
    import pandas as pd

MAX_WORKBOOK_BYTES = 1_000_000_000
"""Largest unpacked size of a workbook; some grow a thousandfold when unpacked."""
MAX_BESIDE_BYTES = 100_000_000
"""Largest unpacked size besides the sheets, mostly shared texts, which take six times as much memory in Python."""
MAX_TREE_BYTES = 20_000_000
"""Largest unpacked size of a part that openpyxl parses to a tree of objects, such as formats."""
MAX_TREE_TAGS = 300_000
"""Largest number of tags in such a part, a kilobyte each in Python; Excel has at most 64,000 cell formats."""
MAX_SHEET_ROWS = 1_048_576
"""Largest number of rows, as in Excel. A file may claim any number; a kilobyte unpacks to millions of empty rows."""
MAX_SHEET_CELLS = 12_000_000
"""Largest number of cells read, and of cells of the table (as wide as its widest row): half a minute of work."""
MAX_SHEET_CHARACTERS = 250_000_000
"""Largest number of characters in all cells of a sheet."""
PACKED_CELLS = 200_000
"""Largest number of cells of a sheet that are kept as Python objects, plus a row."""
PACKED_CHARACTERS = 10_000_000
"""Largest number of characters that are kept as Python objects, plus those of a row."""


def read_json(content: bytes, name: str, max_rows: int | None = None) -> tuple[Table, tuple[str, ...]]:
    """Read JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Args:
        content: The file.
        name: File name, for messages.
        max_rows: Largest number of rows; None for all.

    Returns:
        The table, with cleaned column names, and the keys as they are written.

    Raises:
        TooManyCells: Its objects lack so many keys that the table would be too large for memory.
        InvalidInput: Not UTF-8, not JSON, not objects ...; the first wrong lines are named.
    """
    import duckdb

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_number = content.count(b"\n", 0, error.start) + 1
        message = "the file is not UTF-8, which JSON must be"
        raise refuse(message, f"line {line_number:,}", "Save it as UTF-8") from None
    is_array = text.lstrip().startswith("[")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if is_array:
        text = _array_as_lines(text)
    memory_file = MemoryFile(text.encode())
    with closing(Duck()) as duck:
        try:
            keys = _list_keys(duck, memory_file)
            input_file = InputFile(memory_file, name, Format.JSON, Packing.NONE, keys, keys=keys)
            if max_rows is None:
                TooManyCells.refuse(text.count("\n") + 1, len(keys), len(memory_file.content))
            frame = read_cells(duck, Reading(input_file), max_rows)
        except duckdb.Error:
            refuse_bad_lines(memory_file.open(), "")
            raise refuse("this is not JSON", remedy=NOT_JSON) from None
    numbers = range(2, len(frame) + 2) if is_array else lines[: len(frame)]
    table = build_table(keys, frame, np.array([1, *numbers], np.int64), name)
    table = replace(table, layouts=(FileLayout(name, FileKind.JSON),))
    if is_array:
        note = "In an array of objects, line 2 stands for the first object."
        table = replace(table, notes=(note, *table.notes))
    return table, keys


NOT_JSON = 'Write one JSON object per line, such as {"user": "a", "value": 1}'


def _array_as_lines(text: str) -> str:
    """Return the objects of an array, one per line."""
    import duckdb

    try:
        with closing(Duck()) as duck:
            cast = "SELECT unnest(CAST(CAST($1 AS JSON) AS JSON[]))::VARCHAR"
            cells = duck.connection.execute(cast, [text.strip()]).fetchall()
    except duckdb.Error:
        message = "this is not JSON"
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            raise refuse(message, f"line {error.lineno:,}", NOT_JSON) from None
        except RecursionError:
            message = "the JSON is nested too deeply"
        raise refuse(message, remedy=NOT_JSON) from None
    if any(row[0] is None or not row[0].startswith("{") for row in cells):
        raise refuse("the JSON is not an array of objects", remedy=NOT_JSON)
    return "".join(f"{row[0]}\n" for row in cells)


def _list_keys(duck: Duck, memory_file: MemoryFile) -> tuple[str, ...]:
    """Return the keys of all objects, in the order of their first occurrence."""
    scan = f"read_json_objects({literal(str(memory_file))}, format = 'newline_delimited')"
    all_keys = f"SELECT unnest(json_keys(json)) AS key FROM {scan}"
    numbered = f"SELECT key, row_number() OVER () AS n FROM ({all_keys})"
    keys = duck.connection.execute(f"SELECT key FROM ({numbered}) GROUP BY key ORDER BY min(n)").fetchall()
    if len(keys) > MAX_COLUMNS:
        message = f"the objects have more than {MAX_COLUMNS:,} different keys"
        raise refuse(message, remedy="Keep the keys that say who, what and how much")
    if not keys:
        refuse_bad_lines(memory_file.open(), "")
        raise refuse("no object has a key", remedy="Write one object per row, with a key for who")
    return tuple(row[0] for row in keys)


def refuse_bad_lines(stream: IO[bytes], suffix: str, should_stop: ShouldStop | None = None) -> None:
    """Raise InvalidInput for lines that are not a JSON object or repeat a key; called after DuckDB has refused some.

    Args:
        stream: Lines of UTF-8.
        suffix: Text after a line number in messages: `` of file.jsonl``, or empty.
        should_stop: Called while it is read.

    Raises:
        InvalidInput: There are such lines; names the first ones and their number.
    """
    lines_by_message: dict[str, list[int]] = {}
    for number, line in enumerate(stream, 1):
        if number % 10_000 == 0:
            check_stop(should_stop)
        if line.strip(b" \t\r\n\xef\xbb\xbf") and (message := _describe_bad_line(line)):
            lines_by_message.setdefault(message, []).append(number)
    problems = Problems()
    for message, lines in lines_by_message.items():
        problems.add(describe_lines(message, lines, len(lines)), f"line {lines[0]:,}{suffix}", NOT_JSON)
    problems.raise_if_any()


def _describe_bad_line(line: bytes) -> str:
    def distinct(pairs: list[tuple[str, Any]]) -> Any:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else None

    try:
        text = line.decode("utf-8-sig")
        if not isinstance(json.loads(text), dict):
            return "this is not a JSON object"
        twice = json.loads(text, object_pairs_hook=distinct) is None
        return "a key stands twice in one object" if twice else ""
    except (ValueError, RecursionError):
        return "this is not a JSON object"


def _cell_text(value: Any) -> str:
    """Return a value as text; a missing one is empty."""
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
    return str(value).strip(BLANKS)


def read_workbook(path: File, name: str, should_stop: ShouldStop | None = None) -> Table:
    """Read the first sheet of an Excel workbook; formulas have the value that Excel stored, and are not run.

    Raises:
        InvalidInput: Damaged, protected, empty, or too large.
    """
    _refuse_bombs(path)
    rows = _SheetRows()
    try:
        with path.open("rb") as file, _Archive(file) as archive:
            sheet_name, notes = _read_first_sheet(archive, rows, should_stop)
    except (InvalidInput, StoppedError):
        raise
    except Exception:  # openpyxl raises any exception on damaged files, and may quote their cells
        message = "the Excel workbook is damaged or protected"
        raise refuse(message, remedy="Save it again, or save it as CSV (UTF-8)") from None
    if not rows.numbers:
        raise refuse("the first sheet is empty", remedy="Put the table on the first sheet")
    lines = np.array(rows.numbers, np.int64)
    cells = rows.cells()
    if num_titles := count_titles(cells):
        lines, cells = lines[num_titles:], cells.iloc[num_titles:].reset_index(drop=True)
        notes.append(f"The names of the columns are in line {lines[0]:,}; the title above them was left out.")
    header = [str(cell) for cell in cells.iloc[0]]
    table = build_table(header, cells.iloc[1:].reset_index(drop=True), lines, name)
    layout = FileLayout(name, FileKind.WORKBOOK, skip=int(lines[0]) - 1, sheet=sheet_name)
    return replace(table, notes=(*notes, *table.notes), layouts=(layout,))


class _Archive(zipfile.ZipFile):
    """A workbook archive that limits the size of parts that are parsed to trees of objects."""

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        """Return a part; raise ValueError if it is too large."""
        content = b"" if self.getinfo(name).file_size > MAX_TREE_BYTES else super().read(name, pwd)
        if not content or content.count(b"<") > MAX_TREE_TAGS or b"<!DOCTYPE" in content:
            raise ValueError("a list of formats or sheets is longer than Excel can write it")
        return content


def _read_first_sheet(
    archive: _Archive, rows: _SheetRows, should_stop: ShouldStop | None
) -> tuple[str, list[str]]:
    """Read the first visible sheet into ``rows``; return its name, empty for the first sheet of all, and the notes."""
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet
    from openpyxl.xml.constants import SHARED_STRINGS

    reader = ExcelReader(archive.fp, read_only=True, data_only=True, keep_links=False)
    reader.archive = archive
    reader.read_manifest()
    reader.read_workbook()
    apply_stylesheet(archive, reader.wb)
    sheets = [
        (sheet, sheet_part.target)
        for sheet, sheet_part in reader.parser.find_sheets()
        if sheet_part.target in reader.valid_files and "chartsheet" not in sheet_part.Type
    ]
    if not sheets:
        return "", []
    sheet, part_name = next((each for each in sheets if each[0].state == "visible"), sheets[0])
    texts: list[str] = []
    if (shared := reader.package.find(SHARED_STRINGS)) is not None:
        with archive.open(shared.PartName[1:]) as stream:
            texts = shared_texts(stream, should_stop)
    content = SheetReader(reader.wb, texts, MAX_SHEET_ROWS, MAX_SHEET_CELLS, should_stop)
    with archive.open(part_name) as stream:
        for number, row in content.rows(stream):
            rows.add(number, row)
    is_first = sheet is sheets[0][0]
    which = "first" if is_first or sheet.state != "visible" else "first visible one"
    notes = [f"The {which} of {len(sheets)} sheets was read."] if len(sheets) > 1 else []
    if merged := content.merged_ranges:
        ranges = wording.counted(merged, "range of cells is", "ranges of cells are")
        notes.append(
            f"{ranges} merged: the first cell of each counts, and the others as missing. Fill them first."
        )
    return "" if is_first else sheet.name, [*notes, *rows.errors()]


# Content of a cell whose formula failed; a sheet with lookups of users has one for every user not found.
_ERRORS = word_set(
    "#N/A #REF! #VALUE! #NAME? #DIV/0! #NUM! #NULL! #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT!"
)


class _SheetRows:
    """The rows of a sheet with content, as text; all but the last thousands of cells are packed.

    A cell as a Python object takes 60 bytes or more; packed it takes its text and 8 bytes.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._unpacked: list[list[str]] = []
        self._unpacked_cells, self._unpacked_characters = 0, 0
        self._characters, self._widest = 0, 0
        self._packed: list[pd.DataFrame] = []
        self._errors, self._first_error = 0, 0

    def add(self, number: int, row: Sequence[Any]) -> None:
        """Add a row, with cells of failed formulas emptied."""
        cells = [_cell_text(value) for value in row]
        if not any(cells):
            return
        while not cells[-1]:
            cells.pop()
        if len(cells) > MAX_COLUMNS:
            raise refuse(
                f"there are {len(cells):,} columns; at most {MAX_COLUMNS:,} are read",
                f"row {number:,}",
                "Keep the columns that say who, what and how much",
            )
        for index, cell in enumerate(cells):
            if cell in _ERRORS:
                cells[index] = ""
                self._errors, self._first_error = self._errors + 1, self._first_error or number
        self.numbers.append(number)
        self._unpacked.append(cells)
        self._unpacked_cells += len(cells)
        self._unpacked_characters += (characters := sum(map(len, cells)))
        self._characters += characters
        self._widest = max(self._widest, len(cells))
        if self._widest * len(self.numbers) > MAX_SHEET_CELLS:
            raise too_many_cells(MAX_SHEET_CELLS, number)
        if self._characters > MAX_SHEET_CHARACTERS:
            message = f"the cells have more than {MAX_SHEET_CHARACTERS:,} characters"
            raise refuse(message, f"row {number:,}", "Leave out columns of long text")
        if self._unpacked_cells > PACKED_CELLS or self._unpacked_characters > PACKED_CHARACTERS:
            self._pack()

    def _pack(self) -> None:
        import pandas as pd

        width = max(map(len, self._unpacked))
        full = [cells + [""] * (width - len(cells)) for cells in self._unpacked]
        self._packed.append(pd.DataFrame(full, dtype="str"))
        self._unpacked, self._unpacked_cells, self._unpacked_characters = [], 0, 0

    def cells(self) -> pd.DataFrame:
        """Return all rows, as wide as the widest, with empty strings for missing cells. Call it once."""
        import pandas as pd

        if self._unpacked:
            self._pack()
        packed, self._packed = self._packed, []
        return packed[0] if len(packed) == 1 else pd.concat(packed, ignore_index=True).fillna("")

    def errors(self) -> list[str]:
        """Write the note on the cells of failed formulas."""
        if not self._errors:
            return []
        cells = wording.counted(self._errors, "cell holds", "cells hold")
        count = wording.agreeing(self._errors, "counts", "count")
        first = f"(first: line {self._first_error:,})"
        return [f"{cells} an error of a formula, such as #N/A, and {count} as missing {first}."]


def _refuse_bombs(path: File) -> None:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            other_bytes = size - sum(m.file_size for m in members if "worksheets/" in m.filename)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        raise refuse("the Excel workbook is damaged", remedy="Save it again, or as CSV") from None
    if size > MAX_WORKBOOK_BYTES:
        message = f"the workbook unpacks to {size:,} bytes; at most {MAX_WORKBOOK_BYTES:,} are read"
        raise refuse(message, remedy=AS_CSV)
    if other_bytes > MAX_BESIDE_BYTES:
        message = (
            f"the workbook has {other_bytes:,} bytes beside its sheets; at most {MAX_BESIDE_BYTES:,} are read"
        )
        raise refuse(message, remedy=AS_CSV)
