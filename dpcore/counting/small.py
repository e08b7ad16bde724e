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
from dpcore.counting.sheet_xml import AS_CSV, SheetReader, shared_texts, too_many_cells
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
"""Largest unpacked size of all but the sheets. Most of it are shared texts, which take six times as much in Python."""
MAX_TREE_BYTES = 20_000_000
"""Largest unpacked size of what openpyxl makes trees of objects of, such as formats."""
MAX_TREE_TAGS = 300_000
"""Most tags in it: a kilobyte each in Python, and 64,000 formats of cells are as many as Excel has."""
MAX_SHEET_ROWS = 1_048_576
"""As many as Excel has. A file may claim any number, and a kilobyte of it unpacks to millions of empty ones."""
MAX_SHEET_CELLS = 12_000_000
"""Cells that are looked at, and those of the table, as wide as its widest row: half a minute of work."""
MAX_SHEET_CHARACTERS = 250_000_000
"""Characters in all cells of a sheet."""
PACKED_CELLS = 200_000
"""Cells of a sheet that are held as Python objects at most, and a row more."""
PACKED_CHARACTERS = 10_000_000
"""Characters that are held so at most, and those of a row more."""


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
    """Return the objects of an array, one per line."""
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
    """Return the keys of all objects, in the order in which they come first."""
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
    """Return a value as text; what is missing is empty."""
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
    """Read the first sheet of an Excel workbook; formulas count with the value Excel last saw, and are not run.

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
    except Exception:  # openpyxl raises anything on damaged files, and may quote their cells
        what = "the Excel workbook is damaged or protected"
        raise refuse(what, remedy="Save it again, or save it as CSV (UTF-8)") from None
    if not rows.numbers:
        raise refuse("the first sheet is empty", remedy="Put the table on the first sheet")
    lines = np.array(rows.numbers, np.int64)
    cells = rows.cells()
    if above := titles_above(cells):
        lines, cells = lines[above:], cells.iloc[above:].reset_index(drop=True)
        notes.append(f"The names of the columns are in line {lines[0]:,}; the title above them was left out.")
    header = [str(cell) for cell in cells.iloc[0]]
    table = table_of_cells(header, cells.iloc[1:].reset_index(drop=True), lines, name)
    layout = FileLayout(name, FileKind.WORKBOOK, skip=int(lines[0]) - 1, sheet=sheet_name)
    return replace(table, notes=(*notes, *table.notes), layouts=(layout,))


class _Archive(zipfile.ZipFile):
    """A workbook whose parts that are held as trees of objects are small."""

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        """Return a part."""
        content = b"" if self.getinfo(name).file_size > MAX_TREE_BYTES else super().read(name, pwd)
        if not content or content.count(b"<") > MAX_TREE_TAGS or b"<!DOCTYPE" in content:
            raise ValueError("a list of formats or sheets is longer than Excel can write it")
        return content


def _read_first_sheet(
    archive: _Archive, rows: _SheetRows, should_stop: ShouldStop | None
) -> tuple[str, list[str]]:
    """Read the first visible sheet into ``rows``; return its name, empty for the first of all, and the notes."""
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet
    from openpyxl.xml.constants import SHARED_STRINGS

    reader = ExcelReader(archive.fp, read_only=True, data_only=True, keep_links=False)
    reader.archive = archive
    reader.read_manifest()
    reader.read_workbook()
    apply_stylesheet(archive, reader.wb)
    sheets = [
        (sheet, part.target)
        for sheet, part in reader.parser.find_sheets()
        if part.target in reader.valid_files and "chartsheet" not in part.Type
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
        self._held_cells, self._held_characters = 0, 0
        self._characters, self._widest = 0, 0
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
        self._held_cells += len(cells)
        self._held_characters += (characters := sum(map(len, cells)))
        self._characters += characters
        self._widest = max(self._widest, len(cells))
        if self._widest * len(self.numbers) > MAX_SHEET_CELLS:
            raise too_many_cells(MAX_SHEET_CELLS, number)
        if self._characters > MAX_SHEET_CHARACTERS:
            what = f"the cells have more than {MAX_SHEET_CHARACTERS:,} characters"
            raise refuse(what, f"row {number:,}", "Leave out columns of long text")
        if self._held_cells > PACKED_CELLS or self._held_characters > PACKED_CHARACTERS:
            self._pack()

    def _pack(self) -> None:
        import pandas as pd

        width = max(map(len, self._held))
        full = [cells + [""] * (width - len(cells)) for cells in self._held]
        self._packed.append(pd.DataFrame(full, dtype="str"))
        self._held, self._held_cells, self._held_characters = [], 0, 0

    def cells(self) -> pd.DataFrame:
        """Return all rows, as wide as the widest; what is missing is the empty string. To be called once."""
        import pandas as pd

        if self._held:
            self._pack()
        packed, self._packed = self._packed, []
        return packed[0] if len(packed) == 1 else pd.concat(packed, ignore_index=True).fillna("")

    def errors(self) -> list[str]:
        """Return a note on the cells that held an error."""
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
            beside = size - sum(m.file_size for m in members if "worksheets/" in m.filename)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        raise refuse("the Excel workbook is damaged", remedy="Save it again, or as CSV") from None
    if size > MAX_WORKBOOK_BYTES:
        what = f"the workbook unpacks to {size:,} bytes; at most {MAX_WORKBOOK_BYTES:,} are read"
        raise refuse(what, remedy=AS_CSV)
    if beside > MAX_BESIDE_BYTES:
        what = f"the workbook has {beside:,} bytes beside its sheets; at most {MAX_BESIDE_BYTES:,} are read"
        raise refuse(what, remedy=AS_CSV)
