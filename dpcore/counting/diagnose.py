"""Diagnosis of large files: read them again and describe their problems in sentences that name lines.

DuckDB's messages are not passed on, as they quote lines of the file, which contain user ids.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from dpcore.common.checks import InputProblem, Problems
from dpcore.common.progress import ShouldStop
from dpcore.counting import formats, reading, rejects, small
from dpcore.counting.duck import Duck
from dpcore.counting.formats import Format, Packing
from dpcore.counting.reading import ROW, InputFile, Reading
from dpcore.counting.rejects import MAX_PLACES
from dpcore.counting.running import check_stop
from dpcore.data.column_names import shorten
from dpcore.data.delimited_text import LONG_LINE, MAX_LINE_BYTES, QUOTES

_CHUNK = 8_000_000
_END = MAX_LINE_BYTES + 3
"""Bytes at the end of a file that contain the complete last line, or show that it is too long."""

OpenDuck = Callable[[], AbstractContextManager[Duck]]


def describe_damage(input_file: InputFile) -> InputProblem:
    """Describe a file that cannot be read to its end, as a problem."""
    if input_file.packing is not Packing.NONE:
        return formats.damaged_archive(input_file.packing, input_file.name)
    message = {
        Format.TEXT: "the file cannot be read as a table to its end",
        Format.JSON: "some line is not a JSON object",
    }.get(input_file.format, "the Parquet file is damaged or cut off")
    return InputProblem(message, f"file {shorten(input_file.name)}", "Export it again")


def describe_windows_1252(input_file: InputFile) -> str:
    """Write the note on a file that is not UTF-8."""
    return (
        f"{shorten(input_file.name)} is not UTF-8, so it was read as Windows-1252; if letters look wrong, "
        "save it as UTF-8."
    )


class TruncationCheck:
    """A check of the ends of files, in a thread, while they are counted: DuckDB silently drops some of them.

    DuckDB accepts a truncated Zstandard file, checks no checksum of gzip files, and drops a last line that is longer
    than its buffer without an error (https://github.com/duckdb/duckdb/issues/25825). Compressed files must be unpacked
    for this check.

    Args:
        parts: The files.
        should_stop: Called in the calling thread.
    """

    def __init__(self, input_files: Sequence[InputFile], should_stop: ShouldStop | None) -> None:
        self._stop, self._given_up = should_stop, threading.Event()
        self._problems, self._failed = Problems(), list[BaseException]()
        self._input_files = [
            input_file
            for input_file in input_files
            if input_file.packing is not Packing.NONE or _may_end_overlong(input_file)
        ]
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def should_stop(self) -> bool:
        """Return True if counting can end: a file is truncated, or the user wants to stop."""
        cut_off = bool(self._failed or self._problems.entries)
        return cut_off or (self._stop is not None and self._stop())

    def verdict(self) -> None:
        """Wait for the result of the check.

        Raises:
            InvalidInput: A file is cut off, or ends in an overlong line.
            StoppedError: Stop was pressed.
        """
        while self._thread.is_alive():
            self._thread.join(0.05)
            check_stop(self._stop)
        if self._failed:
            raise self._failed[0]
        self._problems.raise_if_any()

    def close(self) -> None:
        """End the check without the remaining files."""
        self._given_up.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            for input_file in self._input_files:
                self._look_at(input_file)
        except BaseException as error:
            self._failed.append(error)

    def _look_at(self, input_file: InputFile) -> None:
        breaks, behind, end, gap = 0, 0, b"", b""
        with formats.plain_bytes(input_file.path, input_file.packing, input_file.name) as file:
            while block := file.read(_CHUNK):
                if self._given_up.is_set():
                    return
                if filled := block.rstrip(b"\r\n"):
                    end = (end + gap + filled)[-_END:]
                    breaks, behind = breaks + behind + filled.count(b"\n"), 0
                behind += block.count(b"\n", len(filled))
                gap = b"\n" if len(filled) < len(block) else b""
        if input_file.format is Format.TEXT and _is_overlong(end):
            message, remedy = LONG_LINE
            self._problems.add(message, f"line {breaks + 1:,} of {shorten(input_file.name)}", remedy)


def _may_end_overlong(input_file: InputFile) -> bool:
    if input_file.format is not Format.TEXT:
        return False
    with input_file.path.open("rb") as file:
        file.seek(-min(input_file.path.stat().st_size, _END), 2)
        end = file.read()
    return _is_overlong(end) or not end.strip(
        b"\r\n"
    )  # after so many line ends the last line is not in `end`


def _is_overlong(end: bytes) -> bool:
    """Return True if the last line is longer than a row may be, given the end of the file."""
    end = end.rstrip(b"\r\n")
    return len(end) - max(end.rfind(b"\n"), end.rfind(b"\r")) - 1 > MAX_LINE_BYTES


def refuse_open_quotes(input_files: Sequence[InputFile], should_stop: ShouldStop | None) -> None:
    """Raise InvalidInput if a quotation mark is opened and never closed.

    DuckDB reports this if several threads read. A single thread takes the end of the file as the end of the quotation,
    and drops its content.
    """
    problems = Problems()
    for input_file in input_files:
        marks = 0
        with formats.plain_bytes(input_file.path, input_file.packing, input_file.name) as file:
            for _ in range(input_file.skip):
                file.readline()
            while block := file.read(_CHUNK):
                check_stop(should_stop)
                marks += block.count(b'"')
        if marks % 2:  # inside a quotation they are doubled
            message = "a quotation mark is opened and never closed"
            problems.add(
                message,
                f"line {_open_quote(input_file, should_stop):,} of {shorten(input_file.name)}",
                QUOTES,
            )
    problems.raise_if_any()


def refuse_reopened_marks(
    input_files: Sequence[InputFile], should_stop: ShouldStop | None, reads_all: bool
) -> None:
    """Raise InvalidInput if text has a field like ``"a" "b"``; see `rejects.find_reopened_mark`."""
    problems = Problems()
    for input_file in input_files:
        if input_file.format is Format.TEXT and (
            line := rejects.find_reopened_mark(input_file, should_stop, reads_all=reads_all)
        ):
            problems.add(rejects.REOPENED, f"line {line:,} of {shorten(input_file.name)}", QUOTES)
    problems.raise_if_any()


def _open_quote(input_file: InputFile, should_stop: ShouldStop | None) -> int:
    """Return the first line of the record that does not end, or the last line if all records end."""
    first_line, last_line = 0, 0
    with formats.plain_bytes(input_file.path, input_file.packing, input_file.name) as file:
        records = csv.reader(formats.open_lines(file), delimiter=input_file.separator, strict=True)
        try:
            for _ in records:
                first_line, last_line = last_line, records.line_num
                if last_line % 10_000 == 0:
                    check_stop(should_stop)
            return first_line + 1
        except (csv.Error, UnicodeDecodeError):
            return last_line + 1


# --- cells that are refused --------------------------------------------------------------------------------


@dataclass
class RowLocator:
    """A locator of the first rows that fulfil a condition; it reads the files again, so it is used only for messages.

    Attributes:
        view: Function that returns the SQL of the numbered rows of one file.
        readings: The files.
        open_duck: Function that opens DuckDB.
        should_stop: Called while lines are counted.
    """

    view: Callable[[Reading], str]
    readings: Sequence[Reading]
    open_duck: OpenDuck
    should_stop: ShouldStop | None

    def find(self, write_sql: Callable[[Duck], str], max_rows: int = MAX_PLACES) -> list[tuple[str, str]]:
        """Return the location of the first bad rows, each with a detail for the message.

        Args:
            write_sql: Function that returns SQL over ``source`` with the columns ``bad``, `reading.ROW` and ``detail``.
                A detail is a number or a text, or an integer for another row, which is replaced by its location.
            max_rows: Largest number of rows.
        """
        examples: list[tuple[str, str]] = []
        for file_reading in self.readings:
            with self.open_duck() as duck, duck.in_order():
                duck.connection.execute(f"CREATE TEMP VIEW source AS {self.view(file_reading)}")
                limit = f"ORDER BY {ROW} LIMIT {max_rows - len(examples)}"
                rows = duck.rows(f"SELECT {ROW}, detail FROM ({write_sql(duck)}) WHERE bad {limit}")
            other_rows = [detail for _, detail in rows if isinstance(detail, int)]
            locations = self._describe_rows(file_reading, [row for row, _ in rows] + other_rows)
            examples += [
                (locations[row], locations[detail] if isinstance(detail, int) else _format_detail(detail))
                for row, detail in rows
            ]
            if len(examples) == max_rows:
                break
        return examples

    def _describe_rows(self, file_reading: Reading, rows: Sequence[int]) -> dict[Any, str]:
        """Return the location of each row as text, with the file name if there are several files."""
        input_file = file_reading.file
        if input_file.table is not None:
            return {row: input_file.table.describe_row(row - 1) for row in rows}
        suffix = f" of {shorten(input_file.name)}" if len(self.readings) > 1 else ""
        if input_file.format is Format.PARQUET:
            return {row: f"row {row:,}{suffix}" for row in rows}
        return {
            row: f"line {line:,}{suffix}"
            for row, line in find_lines(input_file, rows, self.should_stop).items()
        }


def _format_detail(detail: object) -> str:
    # Rounded: a column of ids chosen by mistake contains large numbers, and messages must not quote ids.
    return f"{detail:.3g}" if isinstance(detail, float) else str(detail or "")[:20]


def find_lines(input_file: InputFile, rows: Sequence[int], should_stop: ShouldStop | None) -> dict[int, int]:
    """Return the first line of each row; both are counted from 1."""
    row_set, first_lines = set(rows), dict[int, int]()
    with formats.plain_bytes(input_file.path, input_file.packing, input_file.name) as file:
        lines = formats.open_lines(file, input_file.skip, newline=None)
        row = 0
        for start, filled in _records(input_file, lines):
            row += filled
            if filled and row in row_set:
                first_lines[row] = start
                if len(first_lines) == len(row_set):
                    break
            if row % 10_000 == 0:
                check_stop(should_stop)
    return first_lines


def _records(input_file: InputFile, lines: io.TextIOWrapper) -> Iterator[tuple[int, bool]]:
    """Yield the first line of each record, and True if the record is a row."""
    if input_file.format is Format.JSON:
        yield from ((number, bool(line.strip())) for number, line in enumerate(lines, 1))
        return
    records = csv.reader(lines, delimiter=input_file.separator, skipinitialspace=True)
    next(records, None)
    start = records.line_num + 1
    for record in records:
        yield input_file.skip + start, bool(record) or len(input_file.columns) == 1
        start = records.line_num + 1


# --- lines that DuckDB refuses -----------------------------------------------------------------------------


@dataclass
class Diagnosis:
    """The reasons why DuckDB refused files, and another way to read them.

    Attributes:
        readings: The files with their reading options.
        open_duck: Function that opens DuckDB.
        recode: Function that writes a file as UTF-8, from the given encoding.
        notes: List to which notes for the user are added.
        should_stop: Called while a file is read.
    """

    readings: Sequence[Reading]
    open_duck: OpenDuck
    recode: Callable[[int, str], Reading]
    notes: list[str]
    should_stop: ShouldStop | None
    _problems: Problems = field(default_factory=Problems)

    def recover(self) -> list[Reading]:
        """Return the files with reading options that should work.

        Raises:
            InvalidInput: They cannot be read; all problems at once, with their lines.
        """
        recovered = [self._recover(index, its) for index, its in enumerate(self.readings)]
        self._problems.raise_if_any()
        if all(new is old for new, old in zip(recovered, self.readings, strict=True)):
            self._problems.extend([describe_damage(self.readings[0].file)])
            self._problems.raise_if_any()
        return recovered

    def _recover(self, index: int, its: Reading) -> Reading:
        import duckdb

        input_file = its.file
        try:
            with self.open_duck() as duck:
                rejected = self._rejected(duck, its)
        except duckdb.Error:
            return self._recode_or_refuse(index, its)
        reasons = {entry.reason for entry in rejected}
        if "INVALID ENCODING" in reasons or "INVALID UNICODE" in reasons:
            self.notes.append(describe_windows_1252(input_file))
            return self.recode(index, "cp1252")
        if not reasons <= {rejects.SHORT} and self._mixes_line_ends(input_file):
            return self.recode(index, "utf-8")
        if rejects.report_rejected(
            rejected, input_file, self._problems, self.notes, 0, f" of {shorten(input_file.name)}"
        ):
            return replace(its, short_rows=True, is_single_threaded=True)
        if not rejected:
            return self._recode_or_refuse(index, its)
        return its

    def _recode_or_refuse(self, index: int, its: Reading) -> Reading:
        """Handle a file refused without a reason: bad JSON lines, mixed line ends, or a multi-part archive."""
        input_file = its.file
        if input_file.format is Format.JSON:
            with formats.plain_bytes(input_file.path, input_file.packing, input_file.name) as file:
                small.refuse_bad_lines(file, f" of {shorten(input_file.name)}", self.should_stop)
        if self._mixes_line_ends(input_file) or input_file.packing is not Packing.NONE:
            return self.recode(index, "utf-8")
        self._problems.extend([describe_damage(input_file)])
        return its

    def _mixes_line_ends(self, input_file: InputFile) -> bool:
        text = input_file.format is Format.TEXT and input_file.encoding.startswith("utf-8")
        return text and formats.has_mixed_line_ends(
            input_file.path, input_file.packing, input_file.name, self.should_stop
        )

    def _rejected(self, duck: Duck, its: Reading) -> list[rejects.Rejected]:
        """Return the lines that DuckDB refuses, by reason."""
        if its.file.format is Format.TEXT:
            return rejects.list_rejected(duck, its, self.should_stop)
        duck.columns(f"SELECT count(*) AS n FROM (SELECT COLUMNS(*)::VARCHAR FROM {reading.scan(its)})")
        return []
