"""The XML of a workbook's sheet and of its shared texts, read in blocks: one row is held at a time, and no tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any
from xml.parsers import expat

from dpcore.common.errors import InvalidInput, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.running import check_stop

if TYPE_CHECKING:
    from openpyxl import Workbook

MAX_CELL_CHARACTERS = 120_000
"""Longest text of a cell. Excel has 32,767 characters, and other programs write more."""
MAX_TAG_BYTES = 1_000_000
"""Longest tag or comment: expat holds it until it ends."""
MAX_DEPTH = 100
"""Elements within each other: expat holds those that are open."""
AS_CSV = "Save it as CSV (UTF-8) and choose that file"
_BLOCK = 1 << 16
_DIGITS = "0123456789"


class _TextCollector:
    """The text of the elements that `_begin` marks; nothing else of the XML is held."""

    def __init__(self, should_stop: ShouldStop | None) -> None:
        self._should_stop = should_stop
        self._collects, self._pieces, self._length = False, list[str](), 0
        self._in_phonetic, self._depth = False, 0

    def parse(self, stream: IO[bytes]) -> Iterator[None]:
        """Read the XML, and pause after each block.

        Raises:
            ValueError: It is no XML, or no workbook would hold it.
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

    def _begin(self, name: str, attributes: dict[str, str]) -> bool:
        """Take note of an element; return True if its text is to be collected."""
        raise NotImplementedError

    def _finish(self, name: str) -> None:
        """Take note of the end of an element."""
        raise NotImplementedError

    @property
    def _place(self) -> str:
        """Return the place in words; empty where there is none to name."""
        return ""

    def _take_text(self) -> str:
        """Return what was collected, and begin anew."""
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
                what = f"a cell has more than {MAX_CELL_CHARACTERS:,} characters"
                raise refuse(what, self._place, "Leave out columns of long text")


def _refuse_declarations(*_: object) -> None:
    """Refuse declarations, which no workbook has: a text of a few bytes can stand for billions."""
    raise ValueError("a sheet declares entities")


def too_many_cells(most: int, number: int) -> InvalidInput:
    """Return the sentence for a sheet that has more cells than are looked at, with the number of a row."""
    what = f"the sheet has more than {most:,} cells"
    return refuse(what, f"row {number:,}", f"{AS_CSV}, or leave out columns")


class _SharedTexts(_TextCollector):
    def __init__(self, should_stop: ShouldStop | None) -> None:
        super().__init__(should_stop)
        self.texts: list[str] = []

    def _begin(self, name: str, attributes: dict[str, str]) -> bool:
        return name == "t"

    def _finish(self, name: str) -> None:
        if name == "si":
            # An underscore before what looks like an escape is written x005F_.
            self.texts.append(self._take_text().replace("x005F_", ""))


def shared_texts(stream: IO[bytes], should_stop: ShouldStop | None) -> list[str]:
    """Return the texts that cells refer to by their number.

    Raises:
        InvalidInput: A text is too long.
        ValueError: The XML is damaged.
    """
    collector = _SharedTexts(should_stop)
    for _ in collector.parse(stream):
        pass
    return collector.texts


class SheetReader(_TextCollector):
    """The rows of a sheet.

    Args:
        book: Its workbook, which knows the formats of dates.
        texts: The shared texts.
        max_rows: Highest number of a row.
        max_cells: Most cells, those without a value among them.
        should_stop: Asked all the time.

    Attributes:
        merged_ranges: Ranges of merged cells, once all rows were read.
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
        """Read the numbers of rows that hold anything, and their values from the first column on.

        Raises:
            InvalidInput: There are too many rows, or a text is too long.
            ValueError: The XML is damaged.
        """
        for _ in self.parse(stream):
            yield from self._rows
            self._rows.clear()

    @property
    def _place(self) -> str:
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
                what = f"the sheet has more than {self._max_rows:,} rows, which Excel cannot have"
                raise refuse(what, remedy=AS_CSV)
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
            # A row behind a later one is passed over, as openpyxl does in the programs.
            if self._number > self._last_number:
                self._rows.append((self._number, self._row))
                self._last_number = self._number
            self._row = []

    def _value(self, text: str) -> Any:
        """Return the value of a cell, as openpyxl has it."""
        kind = self._cell.get("t", "n")
        if kind == "s":
            return self._texts[int(text)]
        if kind == "b":
            return bool(int(text))
        if kind == "d":
            return self._datetime.from_ISO8601(text)
        if kind != "n":
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
