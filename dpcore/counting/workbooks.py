"""Reading Excel workbooks as tables of text cells, with one row of XML in memory at a time."""

from __future__ import annotations

import datetime
import string
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np

from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.extras import import_extra
from dpcore.common.progress import ShouldStop
from dpcore.common.wording import format_count
from dpcore.counting.duck import StoppedError, check_stop
from dpcore.counting.formats import SAVE_AS_CSV_REMEDY, File
from dpcore.data.column_names import count_titles, list_names, refuse_many_columns, shorten, split_words
from dpcore.data.tables import BLANKS, FileKind, FileLayout, Table, build_table

if TYPE_CHECKING:
    import pandas as pd
    from openpyxl import Workbook

MAX_WORKBOOK_BYTES = 1_000_000_000
"""Largest unpacked size of a workbook; some grow a thousandfold when unpacked."""
MAX_OTHER_BYTES = 100_000_000
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
MAX_UNPACKED_CELLS = 200_000
"""Largest number of cells of a sheet that are kept as Python objects, plus a row."""
MAX_UNPACKED_CHARACTERS = 10_000_000
"""Largest number of characters that are kept as Python objects, plus those of a row."""
MAX_CELL_CHARACTERS = 120_000
"""Longest text of a cell. Excel's limit is 32,767 characters, but other programs write more."""
MAX_TAG_BYTES = 1_000_000
"""Longest tag or comment, which expat keeps in memory until it ends."""
MAX_DEPTH = 100
"""Largest depth of nested elements, which expat keeps in memory while they are open."""
_BLOCK_BYTES = 1 << 16
_LONG_TEXT_REMEDY = "Leave out columns of long text"


def _format_cell(cell_value: Any) -> str:
    """Return a cell's value as text; a missing one is empty."""
    if cell_value is None:
        return ""
    if isinstance(cell_value, bool):
        return "true" if cell_value else "false"
    if isinstance(cell_value, float):
        return (
            repr(int(cell_value)) if cell_value.is_integer() and abs(cell_value) < 1e15 else repr(cell_value)
        )
    if isinstance(cell_value, datetime.datetime | datetime.date | datetime.time):
        return cell_value.isoformat()
    return str(cell_value).strip(BLANKS)


def read_workbook(
    file: File, display_name: str, should_stop: ShouldStop | None = None, stated_sheet: str = ""
) -> Table:
    """Read a sheet of an Excel workbook, the first if none is stated; formulas have the value that Excel stored.

    Raises:
        InvalidInput: Damaged, protected, empty, or too large.
    """
    _refuse_zip_bombs(file)
    sheet_rows = _SheetRows()
    try:
        with file.open("rb") as workbook_stream, _Archive(workbook_stream) as workbook_archive:
            sheet_names, sheet_name, workbook_notes = _read_sheet(
                workbook_archive, sheet_rows, should_stop, stated_sheet
            )
    except (InvalidInput, StoppedError):
        raise
    except Exception:  # openpyxl raises any exception on damaged files, and may quote their cells
        raise refuse("the Excel workbook is damaged or protected", remedy=SAVE_AS_CSV_REMEDY) from None
    if not sheet_rows.row_numbers:
        raise refuse(
            f"the {'sheet' if stated_sheet else 'first sheet'} is empty", remedy="Choose another sheet"
        )
    line_numbers = np.array(sheet_rows.row_numbers, np.int64)
    cell_frame = sheet_rows.build_frame()
    if num_titles := count_titles(cell_frame):
        line_numbers = line_numbers[num_titles:]
        cell_frame = cell_frame.iloc[num_titles:].reset_index(drop=True)
        workbook_notes.append(f"The names of the columns are in line {line_numbers[0]:,}, below a title.")
    header_cells = [str(header_cell) for header_cell in cell_frame.iloc[0]]
    table = build_table(header_cells, cell_frame.iloc[1:].reset_index(drop=True), line_numbers, display_name)
    file_layout = FileLayout(display_name, FileKind.WORKBOOK, skip=int(line_numbers[0]) - 1, sheet=sheet_name)
    listed_sheets = sheet_names if len(sheet_names) > 1 else ()
    return replace(table, notes=(*workbook_notes, *table.notes), layouts=(file_layout,), sheets=listed_sheets)


class _Archive(zipfile.ZipFile):
    """A workbook archive that limits the size of parts that are parsed to trees of objects."""

    def read(self, part_name: Any, password: bytes | None = None) -> bytes:
        """Return a part's bytes; raise ValueError if it is empty, too large, or has too many tags or a doctype."""
        part_bytes = (
            b"" if self.getinfo(part_name).file_size > MAX_TREE_BYTES else super().read(part_name, password)
        )
        if not part_bytes or part_bytes.count(b"<") > MAX_TREE_TAGS or b"<!DOCTYPE" in part_bytes:
            raise ValueError("a list of formats or sheets is longer than Excel can write it")
        return part_bytes


def _read_sheet(
    workbook_archive: _Archive, sheet_rows: _SheetRows, should_stop: ShouldStop | None, stated_sheet: str
) -> tuple[tuple[str, ...], str, list[str]]:
    """Read the stated or the first visible sheet into ``sheet_rows``.

    Returns:
        The names of all sheets; that of the sheet, empty if it is the first of all; and the notes.
    """
    import_extra("openpyxl")
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet
    from openpyxl.xml.constants import SHARED_STRINGS

    excel_reader = ExcelReader(workbook_archive.fp, read_only=True, data_only=True, keep_links=False)
    excel_reader.archive = workbook_archive
    excel_reader.read_manifest()
    excel_reader.read_workbook()
    apply_stylesheet(workbook_archive, excel_reader.wb)
    sheets_with_parts = [
        (sheet, sheet_part.target)
        for sheet, sheet_part in excel_reader.parser.find_sheets()
        if sheet_part.target in excel_reader.valid_files and "chartsheet" not in sheet_part.Type
    ]
    if not sheets_with_parts:
        return (), "", []
    sheet_names = tuple(sheet.name for sheet, _ in sheets_with_parts)
    if stated_sheet and stated_sheet not in sheet_names:
        sheet_message = f"there is no sheet {shorten(stated_sheet)}; there are {list_names(sheet_names)}"
        raise refuse(sheet_message, remedy="Choose another sheet")
    visible_sheets_with_parts = [(s, part_name) for s, part_name in sheets_with_parts if s.state == "visible"]
    sheet, part_name = (visible_sheets_with_parts or sheets_with_parts)[0]
    if stated_sheet:
        sheet, part_name = sheets_with_parts[sheet_names.index(stated_sheet)]
    shared_texts: list[str] = []
    if (shared_part := excel_reader.package.find(SHARED_STRINGS)) is not None:
        with workbook_archive.open(shared_part.PartName[1:]) as part_stream:
            shared_texts = read_shared_texts(part_stream, should_stop)
    sheet_reader = SheetReader(excel_reader.wb, shared_texts, MAX_SHEET_ROWS, MAX_SHEET_CELLS, should_stop)
    with workbook_archive.open(part_name) as part_stream:
        for row_number, row_values in sheet_reader.read_rows(part_stream):
            sheet_rows.add(row_number, row_values)
    notes = []
    if len(sheet_names) > 1 and not stated_sheet:
        notes.append(f"The first visible one of {len(sheet_names)} sheets was read.")
    if num_merged := sheet_reader.num_merged_ranges:
        ranges_text = format_count(num_merged, "range of cells is", "ranges of cells are")
        notes.append(f"{ranges_text} merged: only the first cell of each counts. Fill the others first.")
    sheet_name = "" if sheet is sheets_with_parts[0][0] else sheet.name
    return sheet_names, sheet_name, [*notes, *sheet_rows.write_notes()]


# Content of a cell whose formula failed; a sheet with lookups of users has one for every user not found.
_ERROR_WORDS = "#N/A #REF! #VALUE! #NAME? #DIV/0! #NUM! #NULL! #SPILL! #CALC! #FIELD! #BLOCKED! #CONNECT!"
_ERROR_CELLS = split_words(_ERROR_WORDS)


class _SheetRows:
    """The rows of a sheet with content, as text; all but the last thousands of cells are packed.

    A cell as a Python object takes 60 bytes or more; packed it takes its text and 8 bytes.
    """

    def __init__(self) -> None:
        self.row_numbers: list[int] = []
        self._unpacked_rows: list[list[str]] = []
        self._num_unpacked_cells, self._num_unpacked_characters = 0, 0
        self._num_characters, self._max_width = 0, 0
        self._packed_frames: list[pd.DataFrame] = []
        self._num_errors, self._first_error_row = 0, 0

    def add(self, row_number: int, row_values: Sequence[Any]) -> None:
        """Add a row with content, with cells of failed formulas emptied; raise InvalidInput beyond a limit."""
        cell_texts = [_format_cell(cell_value) for cell_value in row_values]
        if not any(cell_texts):
            return
        while not cell_texts[-1]:
            cell_texts.pop()
        refuse_many_columns(len(cell_texts), f"row {row_number:,}")
        for cell_index, cell_text in enumerate(cell_texts):
            if cell_text in _ERROR_CELLS:
                cell_texts[cell_index] = ""
                self._num_errors += 1
                self._first_error_row = self._first_error_row or row_number
        self.row_numbers.append(row_number)
        self._unpacked_rows.append(cell_texts)
        self._num_unpacked_cells += len(cell_texts)
        self._num_unpacked_characters += (num_characters := sum(map(len, cell_texts)))
        self._num_characters += num_characters
        self._max_width = max(self._max_width, len(cell_texts))
        if self._max_width * len(self.row_numbers) > MAX_SHEET_CELLS:
            raise build_cell_limit_error(MAX_SHEET_CELLS, row_number)
        if self._num_characters > MAX_SHEET_CHARACTERS:
            characters_message = f"the cells have more than {MAX_SHEET_CHARACTERS:,} characters"
            raise refuse(characters_message, f"row {row_number:,}", _LONG_TEXT_REMEDY)
        has_many_characters = self._num_unpacked_characters > MAX_UNPACKED_CHARACTERS
        if has_many_characters or self._num_unpacked_cells > MAX_UNPACKED_CELLS:
            self._pack_rows()

    def _pack_rows(self) -> None:
        """Move the rows held as Python objects to a packed table."""
        import pandas as pd

        width = max(map(len, self._unpacked_rows))
        full_rows = [cell_texts + [""] * (width - len(cell_texts)) for cell_texts in self._unpacked_rows]
        self._packed_frames.append(pd.DataFrame(full_rows, dtype="str"))
        self._unpacked_rows, self._num_unpacked_cells, self._num_unpacked_characters = [], 0, 0

    def build_frame(self) -> pd.DataFrame:
        """Return all rows, as wide as the widest, with empty strings for missing cells. Call it once."""
        import pandas as pd

        if self._unpacked_rows:
            self._pack_rows()
        frames, self._packed_frames = self._packed_frames, []
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True).fillna("")

    def write_notes(self) -> list[str]:
        """Write the note on the cells of failed formulas, as a list of one; empty if there are none."""
        if not self._num_errors:
            return []
        cells_text = format_count(self._num_errors, "cell holds", "cells hold")
        first_text = f"first: line {self._first_error_row:,}"
        return [f"{cells_text} an error, such as #N/A ({first_text}); it counts as missing."]


def _refuse_zip_bombs(path: File) -> None:
    """Raise InvalidInput if a workbook unpacks to more bytes than are read, or is no archive."""
    try:
        with path.open("rb") as binary_stream, zipfile.ZipFile(binary_stream) as zip_archive:
            zip_members = zip_archive.infolist()
            num_unpacked_bytes = sum(zip_member.file_size for zip_member in zip_members)
            num_other_bytes = sum(m.file_size for m in zip_members if "worksheets/" not in m.filename)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        raise refuse("the Excel workbook is damaged", remedy=SAVE_AS_CSV_REMEDY) from None
    if num_unpacked_bytes > MAX_WORKBOOK_BYTES:
        message = f"it unpacks to {num_unpacked_bytes:,} bytes; at most {MAX_WORKBOOK_BYTES:,} are read"
        raise refuse(message, remedy=SAVE_AS_CSV_REMEDY)
    if num_other_bytes > MAX_OTHER_BYTES:
        message = f"{num_other_bytes:,} bytes are beside the sheets, more than can be read"
        raise refuse(message, remedy=SAVE_AS_CSV_REMEDY)


# --- the XML of a sheet and of its shared texts ------------------------------------------------------------


class _TextCollector(ABC):
    """A parser that collects the text of the elements that `_begin_element` marks, and nothing else."""

    def __init__(self, should_stop: ShouldStop | None) -> None:
        self._should_stop = should_stop
        self._collects, self._pieces, self._num_characters = False, list[str](), 0
        self._is_in_phonetic, self._depth, self._row_number = False, 0, 0

    def parse(self, xml_stream: IO[bytes]) -> Iterator[None]:
        """Read the XML, and yield after each block.

        Raises:
            ValueError: It is not XML, or no workbook would contain it.
        """
        xml_parser, num_bytes = expat.ParserCreate(), 0
        xml_parser.StartElementHandler, xml_parser.EndElementHandler = self._handle_start, self._handle_end
        xml_parser.CharacterDataHandler = self._collect_text
        xml_parser.StartDoctypeDeclHandler = _refuse_declarations
        while xml_block := xml_stream.read(_BLOCK_BYTES):
            check_stop(self._should_stop)
            xml_parser.Parse(xml_block, False)
            num_bytes += len(xml_block)
            if num_bytes - xml_parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise ValueError("a tag of a sheet does not end")
            yield
        xml_parser.Parse(b"", True)
        yield

    @abstractmethod
    def _begin_element(self, element_name: str, attributes: dict[str, str]) -> bool:
        """Handle the start of an element; return True if its text must be collected."""

    @abstractmethod
    def _finish_element(self, element_name: str) -> None:
        """Handle the end of an element."""

    def _take_text(self) -> str:
        """Return the text collected so far, and forget it."""
        collected_text = "".join(self._pieces)
        self._pieces, self._num_characters = [], 0
        return collected_text

    def _handle_start(self, element_name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element of any name, and decide whether its text is collected."""
        element_name = element_name.rpartition(":")[2]
        self._is_in_phonetic |= element_name == "rPh"
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("elements of a sheet lie too deep within each other")
        self._collects = self._begin_element(element_name, attributes) and not self._is_in_phonetic

    def _handle_end(self, element_name: str) -> None:
        """Handle the end of an element of any name."""
        element_name = element_name.rpartition(":")[2]
        self._is_in_phonetic &= element_name != "rPh"
        self._depth -= 1
        self._collects = False
        self._finish_element(element_name)

    def _collect_text(self, element_text: str) -> None:
        """Keep text of an element whose text is collected; raise InvalidInput if it is too long for a cell."""
        if self._collects:
            self._pieces.append(element_text)
            self._num_characters += len(element_text)
            if self._num_characters > MAX_CELL_CHARACTERS:
                cell_message = f"a cell has more than {MAX_CELL_CHARACTERS:,} characters"
                row_location = f"row {self._row_number:,}" if self._row_number else ""
                raise refuse(cell_message, row_location, _LONG_TEXT_REMEDY)


def _refuse_declarations(*_: object) -> None:
    """Raise ValueError for declarations, which no workbook has: an entity of a few bytes can expand to billions."""
    raise ValueError("a sheet declares entities")


def build_cell_limit_error(max_cells: int, row_number: int) -> InvalidInput:
    """Return the error for a sheet with more cells than the limit, which names a row."""
    return refuse(f"the sheet has more than {max_cells:,} cells", f"row {row_number:,}", SAVE_AS_CSV_REMEDY)


class _SharedTexts(_TextCollector):
    """The parser of the texts that cells refer to by number."""

    def __init__(self, should_stop: ShouldStop | None) -> None:
        super().__init__(should_stop)
        self.texts: list[str] = []

    def _begin_element(self, element_name: str, attributes: dict[str, str]) -> bool:
        """Return True for an element of text."""
        return element_name == "t"

    def _finish_element(self, element_name: str) -> None:
        """Add the collected text to the list at the end of an item."""
        if element_name == "si":
            # Excel writes an underscore before an apparent escape as x005F_.
            self.texts.append(self._take_text().replace("x005F_", ""))


def read_shared_texts(xml_stream: IO[bytes], should_stop: ShouldStop | None) -> list[str]:
    """Read the shared texts, to which cells refer by their index.

    Raises:
        InvalidInput: A text is too long.
        ValueError: The XML is damaged.
    """
    collector = _SharedTexts(should_stop)
    for _ in collector.parse(xml_stream):
        pass
    return collector.texts


class SheetReader(_TextCollector):
    """A reader of the rows of a sheet.

    Args:
        book: Its book, which has the formats of dates.
        texts: The shared texts.
        max_rows: Largest row number.
        max_cells: Largest number of cells, including those without a value.
        should_stop: Called often.

    Attributes:
        num_merged_ranges: Number of ranges of merged cells, after all rows were read.
    """

    def __init__(
        self,
        book: Workbook,
        shared_texts: list[str],
        max_rows: int,
        max_cells: int,
        should_stop: ShouldStop | None,
    ) -> None:
        super().__init__(should_stop)
        from openpyxl.utils import column_index_from_string, datetime

        self.num_merged_ranges, self._num_cells, self._num_other_elements = 0, 0, 0
        self._workbook, self._texts, self._max_rows, self._max_cells = book, shared_texts, max_rows, max_cells
        self._convert_letters, self._date_converter = column_index_from_string, datetime
        self._last_number, self._column_number, self._cell_attributes = 0, 0, dict[str, str]()
        self._text_element, self._row_values = "", list[Any]()
        self._finished_rows: list[tuple[int, list[Any]]] = []

    def read_rows(self, xml_stream: IO[bytes]) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number of each row with content, and its values from the first column on.

        Raises:
            InvalidInput: There are too many rows, or a text is too long.
            ValueError: The XML is damaged.
        """
        for _ in self.parse(xml_stream):
            yield from self._finished_rows
            self._finished_rows.clear()

    def _begin_element(self, element_name: str, attributes: dict[str, str]) -> bool:
        """Note the cell or row that begins, within the limits; return True if the element holds a cell's value."""
        if element_name == self._text_element:
            return True
        if element_name == "c":
            self._num_cells += 1
            if self._num_cells > self._max_cells:
                raise build_cell_limit_error(self._max_cells, self._row_number)
            self._cell_attributes = attributes
            self._text_element = "t" if attributes.get("t") == "inlineStr" else "v"
            letters = attributes.get("r", "").rstrip(string.digits)
            self._column_number = self._convert_letters(letters) if letters else self._column_number + 1
        elif element_name == "row":
            self._row_number = int(float(attributes["r"])) if "r" in attributes else self._row_number + 1
            self._column_number, self._row_values = 0, []
            if self._row_number > self._max_rows:
                raise refuse(f"the sheet has more than {self._max_rows:,} rows", remedy=SAVE_AS_CSV_REMEDY)
        elif element_name == "mergeCell":
            self.num_merged_ranges += 1
        else:
            self._num_other_elements += 1
            if self._num_other_elements > 2 * self._max_cells:
                raise ValueError("a sheet holds more elements than its cells need")
        return False

    def _finish_element(self, element_name: str) -> None:
        """Put a cell's value into its row, or a complete row on the list."""
        if element_name == "c":
            self._text_element = ""
            if element_text := self._take_text():
                self._row_values += [None] * (self._column_number - len(self._row_values))
                self._row_values[self._column_number - 1] = self._convert_value(element_text)
        elif element_name == "row" and self._row_values:
            # A row after a later one is skipped, as openpyxl does in the programs.
            if self._row_number > self._last_number:
                self._finished_rows.append((self._row_number, self._row_values))
                self._last_number = self._row_number
            self._row_values = []

    def _convert_value(self, cell_text: str) -> Any:
        """Return the value of the current cell from its text, as openpyxl would."""
        cell_type = self._cell_attributes.get("t", "n")
        if cell_type == "s":
            return self._texts[int(cell_text)]
        if cell_type == "b":
            return bool(int(cell_text))
        if cell_type == "d":
            return self._date_converter.from_ISO8601(cell_text)
        if cell_type != "n":
            return cell_text
        number_value = float(cell_text) if "." in cell_text or "e" in cell_text.lower() else int(cell_text)
        style_index = int(self._cell_attributes.get("s", 0))
        if style_index not in self._workbook._date_formats:
            return number_value
        try:
            is_duration = style_index in self._workbook._timedelta_formats
            return self._date_converter.from_excel(number_value, self._workbook.epoch, timedelta=is_duration)
        except (OverflowError, ValueError):
            return "#VALUE!"
