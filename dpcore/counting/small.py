"""Files that fit in memory, as tables of text cells: JSON, Excel workbooks, and DuckDB's answers."""

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
from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.duck import Duck, literal
from dpcore.counting.formats import Format, Packing
from dpcore.counting.held import File, Held
from dpcore.counting.parts import Part
from dpcore.counting.reading import Reading, cells_of
from dpcore.counting.rejects import at_lines
from dpcore.counting.running import StoppedError, check_stop
from dpcore.counting.text import TooManyCells
from dpcore.data.column_names import MAX_COLUMNS, titles_above, word_set
from dpcore.data.delimited_text import BLANKS
from dpcore.data.layout import FileKind, FileLayout
from dpcore.data.tables import Table, table_of_cells

if TYPE_CHECKING:
    import pandas as pd

MAX_WORKBOOK_BYTES = 1_000_000_000
"""Largest unpacked size of a workbook; some grow a thousandfold when unpacked."""
MAX_BESIDE_BYTES = 100_000_000
"""Largest unpacked size of what is read before the first row and cannot be stopped: shared texts and styles. Short
texts take six times as much in Python."""
MAX_SHEET_ROWS = 1_048_576
"""As many as Excel has. A file may claim any number, and a kilobyte of it unpacks to millions of empty ones."""
MAX_SHEET_CELLS = 12_000_000
"""Cells that are looked at, the empty ones before the last of a row among them: half a minute of work."""
PACKED_CELLS = 200_000
"""Cells of a sheet that are held as Python objects at most, and a row more."""
_MERGED = b"<mergeCell "
_AS_CSV = "Save it as CSV (UTF-8) and choose that file"


def json_table(content: bytes, name: str, most: int | None = None) -> tuple[Table, tuple[str, ...]]:
    """JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Args:
        content: The file.
        name: File name, for messages.
        most: How many rows are read; all where None.

    Returns:
        The table, whose names are tidied, and the keys as they are written.

    Raises:
        TooManyCells: Its objects lack so many keys that it is not to be held in memory.
        InvalidInput: Not UTF-8, not JSON, not objects ...; the first lines that are wrong are named.
    """
    import duckdb

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = content.count(b"\n", 0, error.start) + 1
        what = "the file is not UTF-8, which JSON must be"
        raise refuse(what, f"line {at:,}", "Save it as UTF-8") from None
    is_array = text.lstrip().startswith("[")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if is_array:
        text = _array_as_lines(text)
    held = Held(text.encode())
    with closing(Duck()) as duck:
        try:
            keys = _keys(duck, held)
            part = Part(held, name, Format.JSON, Packing.NONE, keys, keys=keys)
            if most is None:
                TooManyCells.refuse(text.count("\n") + 1, len(keys), len(held.content))
            frame = cells_of(duck, Reading(part), most)
        except duckdb.Error:
            refuse_bad_lines(held.open(), "")
            raise refuse("this is not JSON", remedy=NOT_JSON) from None
    numbers = range(2, len(frame) + 2) if is_array else lines[: len(frame)]
    table = table_of_cells(keys, frame, np.array([1, *numbers], np.int64), name)
    table = replace(table, layouts=(FileLayout(name, FileKind.JSON),))
    if is_array:
        note = "In an array of objects, line 2 stands for the first object."
        table = replace(table, notes=(note, *table.notes))
    return table, keys


NOT_JSON = 'Write one JSON object per line, such as {"user": "a", "value": 1}'


def _array_as_lines(text: str) -> str:
    """The objects of an array, one per line."""
    import duckdb

    try:
        with closing(Duck()) as duck:
            cast = "SELECT unnest(CAST(CAST($1 AS JSON) AS JSON[]))::VARCHAR"
            cells = duck.connection.execute(cast, [text.strip()]).fetchall()
    except duckdb.Error:
        what = "this is not JSON"
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            raise refuse(what, f"line {error.lineno:,}", NOT_JSON) from None
        except RecursionError:
            what = "the JSON is nested too deeply"
        raise refuse(what, remedy=NOT_JSON) from None
    if any(row[0] is None or not row[0].startswith("{") for row in cells):
        raise refuse("the JSON is not an array of objects", remedy=NOT_JSON)
    return "".join(f"{row[0]}\n" for row in cells)


def _keys(duck: Duck, held: Held) -> tuple[str, ...]:
    """The keys of all objects, in the order in which they come first."""
    scan = f"read_json_objects({literal(str(held))}, format = 'newline_delimited')"
    every = f"SELECT unnest(json_keys(json)) AS key FROM {scan}"
    numbered = f"SELECT key, row_number() OVER () AS n FROM ({every})"
    keys = duck.connection.execute(f"SELECT key FROM ({numbered}) GROUP BY key ORDER BY min(n)").fetchall()
    if len(keys) > MAX_COLUMNS:
        what = f"the objects have more than {MAX_COLUMNS:,} different keys"
        raise refuse(what, remedy="Keep the keys that say who, what and how much")
    if not keys:
        refuse_bad_lines(held.open(), "")
        raise refuse("no object has a key", remedy="Write one object per row, with a key for who")
    return tuple(row[0] for row in keys)


def refuse_bad_lines(stream: IO[bytes], of: str, should_stop: ShouldStop | None = None) -> None:
    """Refuse lines that are no JSON object, or one that has a key twice; asked once DuckDB has refused some.

    Args:
        stream: Lines of UTF-8.
        of: What follows a line in messages: `` of file.jsonl``, or nothing.
        should_stop: Asked while it is read.

    Raises:
        InvalidInput: The first lines, and how many there are.
    """
    places: dict[str, list[int]] = {}
    for number, line in enumerate(stream, 1):
        if number % 10_000 == 0:
            check_stop(should_stop)
        if line.strip(b" \t\r\n\xef\xbb\xbf") and (what := _what_is_wrong(line)):
            places.setdefault(what, []).append(number)
    problems = Problems()
    for what, lines in places.items():
        problems.add(at_lines(what, lines, len(lines)), f"line {lines[0]:,}{of}", NOT_JSON)
    problems.raise_if_any()


def _what_is_wrong(line: bytes) -> str:
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
    return str(value).strip(BLANKS)


def workbook_table(path: File, name: str, should_stop: ShouldStop | None = None) -> Table:
    """The first sheet of an Excel workbook; formulas count with the value Excel last saw, and are not run.

    Raises:
        InvalidInput: Damaged, protected, empty, or too large.
    """
    _refuse_bombs(path)
    import openpyxl

    try:
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = book.worksheets
            seen = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
            sheet = (seen or sheets)[0] if sheets else None
            rows = _SheetRows() if sheet is None else _sheet_rows(sheet, should_stop)
    except (InvalidInput, StoppedError):
        raise
    except Exception:  # openpyxl raises anything on damaged files, and may quote their cells
        what = "the Excel workbook is damaged or protected"
        raise refuse(what, remedy="Save it again, or save it as CSV (UTF-8)") from None
    if not rows.numbers:
        raise refuse("the first sheet is empty", remedy="Put the table on the first sheet")
    notes = [*_merged_cells(path, sheet), *rows.errors()]
    if len(sheets) > 1:
        which = "first" if not seen or seen[0] is sheets[0] else "first visible one"
        notes.insert(0, f"The {which} of {len(sheets)} sheets was read.")
    lines = np.array(rows.numbers, np.int64)
    cells = rows.cells()
    if above := titles_above(cells):
        lines, cells = lines[above:], cells.iloc[above:].reset_index(drop=True)
        notes.append(f"The names of the columns are in line {lines[0]:,}; the title above them was left out.")
    header = [str(cell) for cell in cells.iloc[0]]
    table = table_of_cells(header, cells.iloc[1:].reset_index(drop=True), lines, name)
    of_sheet = "" if sheet is None or sheet is sheets[0] else sheet.title
    layout = FileLayout(name, FileKind.WORKBOOK, skip=int(lines[0]) - 1, sheet=of_sheet)
    return replace(table, notes=(*notes, *table.notes), layouts=(layout,))


# What stands in a cell whose formula failed; a sheet that looks users up has one for every user not found.
_ERRORS = word_set(
    "#N/A #REF! #VALUE! #NAME? #DIV/0! #NUM! #NULL! #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT!"
)


class _SheetRows:
    """The rows of a sheet that hold anything, as text: all but the last thousands of cells packed.

    A cell that Python holds takes 60 bytes and more; packed it takes its text and 8 bytes.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._held: list[list[str]] = []
        self._cells = 0
        self._packed: list[pd.DataFrame] = []
        self._errors, self._first_error = 0, 0

    def add(self, number: int, row: Sequence[Any]) -> None:
        """Take a row, and empty its cells that hold an error of a formula."""
        cells = [_cell(value) for value in row]
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
        for at, cell in enumerate(cells):
            if cell in _ERRORS:
                cells[at] = ""
                self._errors, self._first_error = self._errors + 1, self._first_error or number
        self.numbers.append(number)
        self._held.append(cells)
        self._cells += len(cells)
        if self._cells > PACKED_CELLS:
            self._pack()

    def _pack(self) -> None:
        import pandas as pd

        width = max(map(len, self._held))
        full = [cells + [""] * (width - len(cells)) for cells in self._held]
        self._packed.append(pd.DataFrame(full, dtype="str"))
        self._held, self._cells = [], 0

    def cells(self) -> pd.DataFrame:
        """All rows, as wide as the widest; what is missing is the empty string. To be called once."""
        import pandas as pd

        if self._held:
            self._pack()
        packed, self._packed = self._packed, []
        return packed[0] if len(packed) == 1 else pd.concat(packed, ignore_index=True).fillna("")

    def errors(self) -> list[str]:
        """A note on the cells that held an error."""
        if not self._errors:
            return []
        cells = wording.counted(self._errors, "cell holds", "cells hold")
        count = wording.agreeing(self._errors, "counts", "count")
        first = f"(first: line {self._first_error:,})"
        return [f"{cells} an error of a formula, such as #N/A, and {count} as missing {first}."]


def _merged_cells(path: File, sheet: Any) -> list[str]:
    """A note on ranges of merged cells, in which only the first cell holds anything."""
    number, before, its_path = 0, b"", sheet._worksheet_path
    with path.open("rb") as file, zipfile.ZipFile(file) as book, book.open(its_path) as content:
        # They stand behind the rows, and a reader that does not hold the sheet does not tell them.
        for block in iter(lambda: content.read(1 << 20), b""):
            number += (before + block).count(_MERGED)
            before = block[1 - len(_MERGED) :]
    if not number:
        return []
    ranges = wording.counted(number, "range of cells is", "ranges of cells are")
    return [f"{ranges} merged: the first cell of each counts, and the others as missing. Fill them first."]


def _sheet_rows(sheet: Any, should_stop: ShouldStop | None) -> _SheetRows:
    # The size that a sheet says it has is often wrong; rows beyond it would not be read.
    sheet.reset_dimensions()
    rows, cells = _SheetRows(), 0
    # Rows that are not in the file come as empty ones, however many they are, and so do cells before the first.
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if number % 1_000 == 0:
            check_stop(should_stop)
        if number > MAX_SHEET_ROWS:
            what = f"the sheet has more than {MAX_SHEET_ROWS:,} rows, which Excel cannot have"
            raise refuse(what, remedy=_AS_CSV)
        cells += len(row)
        if cells > MAX_SHEET_CELLS:
            what = f"the sheet has more than {MAX_SHEET_CELLS:,} cells"
            raise refuse(what, f"row {number:,}", f"{_AS_CSV}, or leave out columns")
        if any(value is not None for value in row):
            rows.add(number, row)
    return rows


def _refuse_bombs(path: File) -> None:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            beside = size - sum(m.file_size for m in members if "worksheets/" in m.filename)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        raise refuse("the Excel workbook is damaged", remedy="Save it again, or as CSV") from None
    if size > MAX_WORKBOOK_BYTES:
        what = f"the workbook unpacks to {size:,} bytes; at most {MAX_WORKBOOK_BYTES:,} are read"
        raise refuse(what, remedy=_AS_CSV)
    if beside > MAX_BESIDE_BYTES:
        what = f"the workbook has {beside:,} bytes beside its sheets; at most {MAX_BESIDE_BYTES:,} are read"
        raise refuse(what, remedy=_AS_CSV)
