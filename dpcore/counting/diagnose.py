"""What is wrong with large files: found by reading them again, and said in sentences that name lines.

Nothing that DuckDB says is passed on, as its messages quote lines of the file, which hold user ids.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem
from dpcore.common.progress import ShouldStop
from dpcore.counting import formats, reading, rejects, small
from dpcore.counting.duck import Duck
from dpcore.counting.formats import Format, Packing
from dpcore.counting.parts import Part
from dpcore.counting.reading import ROW, Reading
from dpcore.counting.rejects import PLACES
from dpcore.counting.running import check_stop
from dpcore.data.column_names import shown
from dpcore.data.delimited_text import LONG_LINE, MAX_LINE_BYTES, QUOTES

_CHUNK = 8_000_000
_END = MAX_LINE_BYTES + 3
"""Bytes at the end of a file that hold a whole last line and its line end, or show that it is overlong."""

OpenDuck = Callable[[], AbstractContextManager[Duck]]


def damaged(part: Part) -> InputProblem:
    """Return the sentence for a file that cannot be read to its end."""
    if part.packing is not Packing.NONE:
        return formats.damaged_archive(part.packing, part.name)
    what = {
        Format.TEXT: "the file cannot be read as a table to its end",
        Format.JSON: "some line is not a JSON object",
    }.get(part.format, "the Parquet file is damaged or cut off")
    return InputProblem(what, f"file {shown(part.name)}", "Export it again")


def windows_1252(part: Part) -> str:
    """Return the note on a file that is not UTF-8."""
    return f"{shown(part.name)} is not UTF-8, so it was read as Windows-1252; if letters look wrong, save it as UTF-8."


class TruncationCheck:
    """Looks at the ends of files while they are counted: DuckDB drops some of what may stand there without a word.

    It takes a Zstandard file that was cut off for whole, looks at the checksum of no gzip file, and drops a last line
    that is longer than its buffer (https://github.com/duckdb/duckdb/issues/25825; it says so of every other line).
    Compressed files must be unpacked to be looked at, which a thread of its own does meanwhile.

    Args:
        parts: The files.
        should_stop: Asked in the calling thread.
    """

    def __init__(self, parts: Sequence[Part], should_stop: ShouldStop | None) -> None:
        self._stop, self._given_up = should_stop, threading.Event()
        self._problems, self._failed = Problems(), list[BaseException]()
        self._parts = [part for part in parts if part.packing is not Packing.NONE or _may_end_overlong(part)]
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def should_stop(self) -> bool:
        """Return whether counting can end: a file is known to be cut off, or the person wants to stop."""
        cut_off = bool(self._failed or self._problems.entries)
        return cut_off or (self._stop is not None and self._stop())

    def verdict(self) -> None:
        """Wait for the answer.

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
        """Give up what has not been looked at."""
        self._given_up.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            for part in self._parts:
                self._look_at(part)
        except BaseException as error:
            self._failed.append(error)

    def _look_at(self, part: Part) -> None:
        breaks, behind, end, gap = 0, 0, b"", b""
        with formats.plain_bytes(part.path, part.packing, part.name) as file:
            while block := file.read(_CHUNK):
                if self._given_up.is_set():
                    return
                if filled := block.rstrip(b"\r\n"):
                    end = (end + gap + filled)[-_END:]
                    breaks, behind = breaks + behind + filled.count(b"\n"), 0
                behind += block.count(b"\n", len(filled))
                gap = b"\n" if len(filled) < len(block) else b""
        if part.format is Format.TEXT and _is_overlong(end):
            what, remedy = LONG_LINE
            self._problems.add(what, f"line {breaks + 1:,} of {shown(part.name)}", remedy)


def _may_end_overlong(part: Part) -> bool:
    if part.format is not Format.TEXT:
        return False
    with part.path.open("rb") as file:
        file.seek(-min(part.path.stat().st_size, _END), 2)
        end = file.read()
    return _is_overlong(end) or not end.strip(b"\r\n")  # behind so many line ends the last line is not seen


def _is_overlong(end: bytes) -> bool:
    """Return True if the last line is longer than a row may be, given the end of the file."""
    end = end.rstrip(b"\r\n")
    return len(end) - max(end.rfind(b"\n"), end.rfind(b"\r")) - 1 > MAX_LINE_BYTES


def refuse_open_quotes(parts: Sequence[Part], should_stop: ShouldStop | None) -> None:
    """Refuse text in which a quotation mark is opened and never closed.

    DuckDB says so where several threads read; one thread alone takes the end of the file for the end of the quotation,
    and drops what stands in it.
    """
    problems = Problems()
    for part in parts:
        marks = 0
        with formats.plain_bytes(part.path, part.packing, part.name) as file:
            for _ in range(part.skip):
                file.readline()
            while block := file.read(_CHUNK):
                check_stop(should_stop)
                marks += block.count(b'"')
        if marks % 2:  # inside a quotation they are doubled
            what = "a quotation mark is opened and never closed"
            problems.add(what, f"line {_open_quote(part, should_stop):,} of {shown(part.name)}", QUOTES)
    problems.raise_if_any()


def refuse_reopened_marks(parts: Sequence[Part], should_stop: ShouldStop | None, whole: bool) -> None:
    """Refuse text with a field like ``"a" "b"``; see `rejects.reopened_mark`."""
    problems = Problems()
    for part in parts:
        if part.format is Format.TEXT and (line := rejects.reopened_mark(part, should_stop, whole=whole)):
            problems.add(rejects.REOPENED, f"line {line:,} of {shown(part.name)}", QUOTES)
    problems.raise_if_any()


def _open_quote(part: Part, should_stop: ShouldStop | None) -> int:
    """Return the line on which the record starts that does not end; the last line where there is none."""
    began, ended = 0, 0
    with formats.plain_bytes(part.path, part.packing, part.name) as file:
        records = csv.reader(formats.lines_of(file), delimiter=part.separator, strict=True)
        try:
            for _ in records:
                began, ended = ended, records.line_num
                if ended % 10_000 == 0:
                    check_stop(should_stop)
            return began + 1
        except (csv.Error, UnicodeDecodeError):
            return ended + 1


# --- cells that are refused --------------------------------------------------------------------------------


@dataclass
class Places:
    """Finds the first rows with a kind of cell; asked only where one is to be said, as it reads the files again.

    Attributes:
        view: SQL of the rows of one file, numbered.
        readings: The files.
        open_duck: Opens DuckDB.
        should_stop: Asked while lines are counted.
    """

    view: Callable[[Reading], str]
    readings: Sequence[Reading]
    open_duck: OpenDuck
    should_stop: ShouldStop | None

    def find(self, ask: Callable[[Duck], str], most: int = PLACES) -> list[tuple[str, str]]:
        """Where the first rows stand, and what is to be said of each.

        Args:
            ask: SQL over ``source`` with the columns ``bad``, `reading.ROW` and ``said``, of which a number stands for
                itself, a number of another row for its place, and text for itself.
            most: How many are named.
        """
        examples: list[tuple[str, str]] = []
        for at in self.readings:
            with self.open_duck() as duck, duck.in_order():
                duck.connection.execute(f"CREATE TEMP VIEW source AS {self.view(at)}")
                limit = f"ORDER BY {ROW} LIMIT {most - len(examples)}"
                rows = duck.rows(f"SELECT {ROW}, said FROM ({ask(duck)}) WHERE bad {limit}")
            others = [said for _, said in rows if isinstance(said, int)]
            places = self._places(at, [row for row, _ in rows] + others)
            examples += [
                (places[row], places[said] if isinstance(said, int) else _said(said)) for row, said in rows
            ]
            if len(examples) == most:
                break
        return examples

    def _places(self, at: Reading, rows: Sequence[int]) -> dict[Any, str]:
        """Return the places of rows in words, with the file where there are several."""
        part = at.part
        if part.table is not None:
            return {row: part.table.place(row - 1) for row in rows}
        of = f" of {shown(part.name)}" if len(self.readings) > 1 else ""
        if part.format is Format.PARQUET:
            return {row: f"row {row:,}{of}" for row in rows}
        return {
            row: f"line {line:,}{of}" for row, line in lines_of_rows(part, rows, self.should_stop).items()
        }


def _said(said: object) -> str:
    # Rounded: a column of ids chosen by mistake holds large numbers, and ids are not to be quoted.
    return f"{said:.3g}" if isinstance(said, float) else str(said or "")[:20]


def lines_of_rows(part: Part, rows: Sequence[int], should_stop: ShouldStop | None) -> dict[int, int]:
    """Return the lines on which rows start, counted from 1 as the rows are."""
    wanted, found = set(rows), dict[int, int]()
    with formats.plain_bytes(part.path, part.packing, part.name) as file:
        lines = formats.lines_of(file, part.skip, newline=None)
        row = 0
        for start, filled in _records(part, lines):
            row += filled
            if filled and row in wanted:
                found[row] = start
                if len(found) == len(wanted):
                    break
            if row % 10_000 == 0:
                check_stop(should_stop)
    return found


def _records(part: Part, lines: io.TextIOWrapper) -> Iterator[tuple[int, bool]]:
    """Yield the line on which each record starts, and whether it is a row."""
    if part.format is Format.JSON:
        yield from ((number, bool(line.strip())) for number, line in enumerate(lines, 1))
        return
    records = csv.reader(lines, delimiter=part.separator, skipinitialspace=True)
    next(records, None)
    began = records.line_num + 1
    for record in records:
        yield part.skip + began, bool(record) or len(part.columns) == 1
        began = records.line_num + 1


# --- lines that DuckDB refuses -----------------------------------------------------------------------------


@dataclass
class Diagnosis:
    """Why DuckDB refused files, and how they are to be read instead.

    Attributes:
        readings: How the files were read.
        open_duck: Opens DuckDB.
        recode: Writes a file as UTF-8, from the encoding named.
        notes: Takes what a person should know.
        should_stop: Asked while a file is read.
    """

    readings: Sequence[Reading]
    open_duck: OpenDuck
    recode: Callable[[int, str], Reading]
    notes: list[str]
    should_stop: ShouldStop | None
    _problems: Problems = field(default_factory=Problems)

    def recovered(self) -> list[Reading]:
        """Return how the files are to be read.

        Raises:
            InvalidInput: They cannot be read; all problems at once, with their lines.
        """
        recovered = [self._recovered(at, its) for at, its in enumerate(self.readings)]
        self._problems.raise_if_any()
        if all(new is old for new, old in zip(recovered, self.readings, strict=True)):
            self._problems.extend([damaged(self.readings[0].part)])
            self._problems.raise_if_any()
        return recovered

    def _recovered(self, at: int, its: Reading) -> Reading:
        import duckdb

        part = its.part
        try:
            with self.open_duck() as duck:
                rejected = self._rejected(duck, its)
        except duckdb.Error:
            return self._unpacked_or_refused(at, its)
        kinds = {kind.kind for kind in rejected}
        if "INVALID ENCODING" in kinds or "INVALID UNICODE" in kinds:
            self.notes.append(windows_1252(part))
            return self.recode(at, "cp1252")
        if not kinds <= {rejects.SHORT} and self._mixes_line_ends(part):
            return self.recode(at, "utf-8")
        if rejects.say(rejected, part, self._problems, self.notes, 0, f" of {shown(part.name)}"):
            return replace(its, short_rows=True, alone=True)
        if not rejected:
            return self._unpacked_or_refused(at, its)
        return its

    def _unpacked_or_refused(self, at: int, its: Reading) -> Reading:
        """What DuckDB gives no reason for: lines of JSON, line ends of two systems, or an archive with a rest."""
        part = its.part
        if part.format is Format.JSON:
            with formats.plain_bytes(part.path, part.packing, part.name) as file:
                small.refuse_bad_lines(file, f" of {shown(part.name)}", self.should_stop)
        if self._mixes_line_ends(part) or part.packing is not Packing.NONE:
            return self.recode(at, "utf-8")
        self._problems.extend([damaged(part)])
        return its

    def _mixes_line_ends(self, part: Part) -> bool:
        text = part.format is Format.TEXT and part.encoding.startswith("utf-8")
        return text and formats.has_mixed_line_ends(part.path, part.packing, part.name, self.should_stop)

    def _rejected(self, duck: Duck, its: Reading) -> list[rejects.Rejected]:
        """Return the lines that DuckDB refuses, by kind."""
        if its.part.format is Format.TEXT:
            return rejects.lines_of(duck, its, self.should_stop)
        duck.columns(f"SELECT count(*) AS n FROM (SELECT COLUMNS(*)::VARCHAR FROM {reading.scan(its)})")
        return []
