"""The XML of a workbook's sheet and of its shared texts, read in blocks with one row in memory at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any
from xml.parsers import expat

from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.running import check_stop

if TYPE_CHECKING:
    from openpyxl import Workbook

MAX_CELL_CHARACTERS = 120_000
"""Longest text of a cell. Excel's limit is 32,767 characters, but other programs write more."""
MAX_TAG_BYTES = 1_000_000
"""Longest tag or comment, which expat keeps in memory until it ends."""
MAX_DEPTH = 100
"""Largest depth of nested elements, which expat keeps in memory while they are open."""
AS_CSV = "Save it as CSV (UTF-8) and choose that file"
_BLOCK = 1 << 16
_DIGITS = "0123456789"


class _TextCollector(ABC):
    """A parser that collects the text of the elements that `_begin` marks, and nothing else."""

    def __init__(self, should_stop: ShouldStop | None) -> None:
        self._should_stop = should_stop
        self._collects, self._pieces, self._length = False, list[str](), 0
        self._in_phonetic, self._depth = False, 0

    def parse(self, stream: IO[bytes]) -> Iterator[None]:
        """Read the XML, and yield after each block.

        Raises:
            ValueError: It is not XML, or no workbook would contain it.
        """
        parser, num_bytes = expat.ParserCreate(), 0
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._collect
        parser.StartDoctypeDeclHandler = _refuse_declarations
        while block := stream.read(_BLOCK):
            check_stop(self._should_stop)
            parser.Parse(block, False)
            num_bytes += len(block)
            if num_bytes - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise ValueError("a tag of a sheet does not end")
            yield
        parser.Parse(b"", True)
        yield

    @abstractmethod
    def _begin(self, name: str, attributes: dict[str, str]) -> bool:
        """Handle the start of an element; return True if its text must be collected."""

    @abstractmethod
    def _finish(self, name: str) -> None:
        """Handle the end of an element."""

    @property
    def _location(self) -> str:
        """Return the location as text; empty if there is none."""
        return ""

    def _take_text(self) -> str:
        """Return the collected text, and reset it."""
        text = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._in_phonetic |= name == "rPh"
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("elements of a sheet lie too deep within each other")
        self._collects = self._begin(name, attributes) and not self._in_phonetic

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        self._in_phonetic &= name != "rPh"
        self._depth -= 1
        self._collects = False
        self._finish(name)

    def _collect(self, text: str) -> None:
        if self._collects:
            self._pieces.append(text)
            self._length += len(text)
            if self._length > MAX_CELL_CHARACTERS:
                message = f"a cell has more than {MAX_CELL_CHARACTERS:,} characters"
                raise refuse(message, self._location, "Leave out columns of long text")


def _refuse_declarations(*_: object) -> None:
    """Raise ValueError for declarations, which no workbook has: an entity of a few bytes can expand to billions."""
    raise ValueError("a sheet declares entities")


def too_many_cells(max_cells: int, number: int) -> InvalidInput:
    """Return the error for a sheet with too many cells, which names a row."""
    message = f"the sheet has more than {max_cells:,} cells"
    return refuse(message, f"row {number:,}", f"{AS_CSV}, or leave out columns")


class _SharedTexts(_TextCollector):
    def __init__(self, should_stop: ShouldStop | None) -> None:
        super().__init__(should_stop)
        self.texts: list[str] = []

    def _begin(self, name: str, attributes: dict[str, str]) -> bool:
        return name == "t"

    def _finish(self, name: str) -> None:
        if name == "si":
            # Excel writes an underscore before an apparent escape as x005F_.
            self.texts.append(self._take_text().replace("x005F_", ""))


def shared_texts(stream: IO[bytes], should_stop: ShouldStop | None) -> list[str]:
    """Read the shared texts, to which cells refer by number.

    Raises:
        InvalidInput: A text is too long.
        ValueError: The XML is damaged.
    """
    collector = _SharedTexts(should_stop)
    for _ in collector.parse(stream):
        pass
    return collector.texts


class SheetReader(_TextCollector):
    """A reader of the rows of a sheet.

    Args:
        book: Its workbook, which has the formats of dates.
        texts: The shared texts.
        max_rows: Largest row number.
        max_cells: Largest number of cells, including those without a value.
        should_stop: Called often.

    Attributes:
        merged_ranges: Number of ranges of merged cells, after all rows were read.
    """

    def __init__(
        self,
        book: Workbook,
        texts: Sequence[str],
        max_rows: int,
        max_cells: int,
        should_stop: ShouldStop | None,
    ) -> None:
        super().__init__(should_stop)
        from openpyxl.utils import column_index_from_string, datetime

        self.merged_ranges, self._num_cells, self._num_others = 0, 0, 0
        self._book, self._texts, self._max_rows, self._max_cells = book, texts, max_rows, max_cells
        self._column_of, self._datetime = column_index_from_string, datetime
        self._number, self._last_number = 0, 0
        self._column, self._cell = 0, dict[str, str]()
        self._text_element = ""
        self._row: list[Any] = []
        self._rows: list[tuple[int, list[Any]]] = []

    def rows(self, stream: IO[bytes]) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number of each row with content, and its values from the first column on.

        Raises:
            InvalidInput: There are too many rows, or a text is too long.
            ValueError: The XML is damaged.
        """
        for _ in self.parse(stream):
            yield from self._rows
            self._rows.clear()

    @property
    def _location(self) -> str:
        return f"row {self._number:,}"

    def _begin(self, name: str, attributes: dict[str, str]) -> bool:
        if name == self._text_element:
            return True
        if name == "c":
            self._num_cells += 1
            if self._num_cells > self._max_cells:
                raise too_many_cells(self._max_cells, self._number)
            self._cell = attributes
            self._text_element = "t" if attributes.get("t") == "inlineStr" else "v"
            coordinate = attributes.get("r")
            self._column = self._column_of(coordinate.rstrip(_DIGITS)) if coordinate else self._column + 1
        elif name == "row":
            self._number = int(float(attributes["r"])) if "r" in attributes else self._number + 1
            self._column, self._row = 0, []
            if self._number > self._max_rows:
                message = f"the sheet has more than {self._max_rows:,} rows, which Excel cannot have"
                raise refuse(message, remedy=AS_CSV)
        elif name == "mergeCell":
            self.merged_ranges += 1
        else:
            self._num_others += 1
            if self._num_others > 2 * self._max_cells:
                raise ValueError("a sheet holds more elements than its cells need")
        return False

    def _finish(self, name: str) -> None:
        if name == "c":
            self._text_element = ""
            if text := self._take_text():
                self._row += [None] * (self._column - len(self._row))
                self._row[self._column - 1] = self._value(text)
        elif name == "row" and self._row:
            # A row after a later one is skipped, as openpyxl does in the programs.
            if self._number > self._last_number:
                self._rows.append((self._number, self._row))
                self._last_number = self._number
            self._row = []

    def _value(self, text: str) -> Any:
        """Return the value of a cell, as openpyxl would."""
        cell_type = self._cell.get("t", "n")
        if cell_type == "s":
            return self._texts[int(text)]
        if cell_type == "b":
            return bool(int(text))
        if cell_type == "d":
            return self._datetime.from_ISO8601(text)
        if cell_type != "n":
            return text
        number = float(text) if "." in text or "e" in text.lower() else int(text)
        style = int(self._cell.get("s", 0))
        if style not in self._book._date_formats:
            return number
        try:
            is_duration = style in self._book._timedelta_formats
            return self._datetime.from_excel(number, self._book.epoch, timedelta=is_duration)
        except (OverflowError, ValueError):
            return "#VALUE!"
