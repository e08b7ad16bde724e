"""Delimited text: its delimiter, its records and the lines they start on, and its cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.errors import InputProblem, InvalidInput, refuse
from dpcore.contributions import IntArray
from dpcore.data.column_names import MOST_TITLES, is_header_word, looks_like_data
from dpcore.data.encoding import CONTROL_DELIMITERS

MAX_LINE_BYTES = 120_000
"""Longest line, below the 131,072 characters at which Python's csv module gives up on a field."""

BLANKS = " \t\n\r\v\f"
"""What is stripped from cells; a no-break space is not, as engines that count the same table keep it."""

_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?")
_RUN = re.compile(r"[ \t\r\v\f]+")
_SNIFF_BYTES = 2 * MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_DELIMITERS = "\t;|,"  # on a tie the one that seldom stands inside text comes first
_OTHER_DELIMITERS = CONTROL_DELIMITERS + "^~#!:&%=*@$"
"""Tried where none of the usual ones fits. A blank is none of them: names have as many words as their header has."""
DELIMITER_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
SPACED = {" +": "blanks", "::": "double colons"}
"""What else may stand between fields, where every line has as many: one or more blanks (`` +``), or ``::``."""
BETWEEN = {**SPACED, "\t": "tabs"}
"""What may stand between the fields of text whose lines are written anew: such text, or `unnamed_tabs`."""
FIELD_MARK = "\x1f"
"""What stands between the fields of such a file once `unspaced` has read it; text holds no such character."""
ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"


LONG_LINE = (
    f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
    "Leave out columns of long text; user, value and task columns are enough",
)
QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"


def refuse_long_lines(data: bytes, skipped: int) -> None:
    """Refuse text with a line that no row of a table has."""
    lengths = np.diff(_newlines(data), prepend=-1) - 1
    longest = int(lengths.max())
    if longest > MAX_LINE_BYTES:
        raise InvalidInput([long_line(skipped + int(np.argmax(lengths > MAX_LINE_BYTES)) + 1)])


def long_line(line: int) -> InputProblem:
    """Return the sentence for a line that no row of a table has."""
    what, remedy = LONG_LINE
    return InputProblem(what, f"line {line:,}", remedy)


def _newlines(data: bytes) -> IntArray:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def sniffed_delimiter(data: bytes) -> str:
    """Return the delimiter under which the first records have as many fields as the header; empty for none."""
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    text = head.decode("utf-8", "ignore")
    best, best_score = "", (0.0, 0.0, 0)
    for delimiter in _DELIMITERS:
        counts = [len(record) for record in _first_records(text, delimiter)]
        if not counts:
            continue
        columns, rows = counts[0], counts[1:] or counts[:1]
        same = sum(n == columns for n in rows) / len(rows)
        several = sum(n > 1 for n in rows) / len(rows)
        # A header without the delimiter over rows that all have it: ragged, and to be called so.
        ragged = columns == 1 and several == 1.0 and len(set(rows)) == 1
        score = (same if columns > 1 else 0.0, several, columns)
        if ((columns > 1 and several >= 0.5) or ragged) and score > best_score:
            best, best_score = delimiter, score
    if best_score[0]:
        return best
    return next((other for other in _OTHER_DELIMITERS if _fits(text, other)), best)


def names_below_a_title(data: bytes) -> int:
    """Return the line that names the columns where a title, of fewer fields, stands above it; 0 where none does.

    So it is where every line below has as many fields, each has a name that is no data, and half of the names hold a
    usual word.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    for delimiter in _DELIMITERS:
        reader = _reader(io.StringIO(head.decode("utf-8", "ignore"), newline="\n"), delimiter)
        records: list[tuple[int, list[str]]] = []
        with suppress(csv.Error):  # judged by the records before the error
            for record in reader:
                if any(cell.strip(BLANKS) for cell in record):
                    records.append((reader.line_num, record))
                if len(records) > _SNIFF_RECORDS:
                    break
        title = len(records[0][1]) if records else 0
        above = next((at for at, (_, cells) in enumerate(records) if len(cells) > title), 0)
        if not 0 < above < len(records) - 1 or above > MOST_TITLES:
            continue
        (line, cells), *below = records[above:]
        names = [" ".join(cell.split()) for cell in cells]
        usual = sum(map(is_header_word, names))
        if (
            all(names)
            and 2 * usual >= len(names)
            and not any(map(looks_like_data, names))
            and {len(record) for _, record in below} == {len(names)}
        ):
            return line
    return 0


def spaced(data: bytes) -> str:
    """What of `SPACED` stands between fields: all first lines have as many, and one column holds numbers; else empty.

    Names have as many words as their header has, and no numbers.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return ""
    for split in reversed(SPACED):
        rows = [fields_of(line, split) for line in lines]
        if (
            len(rows[0]) > 1
            and len(set(map(len, rows))) == 1
            and any(map(_numeric, zip(*rows[1:], strict=True)))
        ):
            return split
    return ""


def unnamed_tabs(data: bytes) -> bool:
    """Return True if text between tabs has no names above its rows, as MovieLens 100K's ``u.data`` has none.

    So it is where no line has a quotation mark, there are three columns or more, in one of them at least all cells are
    numbers, the first too, and no first cell is a usual word for a column. Names may be numbers that count up, as years
    do; the first cells of data do not.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return False
    first, *rows = [fields_of(line, "\t") for line in lines]
    if len(first) < 3 or {len(row) for row in rows} != {len(first)} or any(map(is_header_word, first)):
        return False
    whole = [int(cell) for cell in first if re.fullmatch(r"[0-9]{1,18}", cell)]
    counting_up = len(whole) > 1 and set(np.diff(whole)) == {1}
    return not counting_up and not names_columns(first, rows)


def fields_of(line: str, split: str) -> list[str]:
    """Return the fields of a line between what of `BETWEEN` stands there; blanks around them are no part of them."""
    if split == "\t":  # At an end a tab means an empty field.
        return [field.strip(BLANKS) for field in line.split(split)]
    line = line.strip(BLANKS)
    return _RUN.split(line) if split == " +" else [field.strip(BLANKS) for field in line.split(split)]


def unspaced(line: str, split: str) -> str:
    """Return a line with `FIELD_MARK` between its fields."""
    return FIELD_MARK.join(fields_of(line, split))


def names_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a first line holds names: no number stands there above numbers alone."""
    return not any(
        _numeric([name, *column]) for name, column in zip(header, zip(*rows, strict=True), strict=True)
    )


def _numeric(cells: Iterable[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells)


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    """Return the header and the first records that are not blank."""
    rows: list[list[str]] = []
    try:
        for record in _reader(io.StringIO(text, newline="\n"), delimiter):
            if record:
                rows.append(record)
            if len(rows) > _SNIFF_RECORDS:
                break
    except csv.Error:
        pass  # judged by the records before the error; the structure pass names it
    return rows


def _fits(text: str, delimiter: str) -> bool:
    """Whether every record has as many fields under an unusual delimiter as the header names, and more than one."""
    header, *records = _first_records(text, delimiter) or [[]]
    named = len(header) > 1 and all(cell.strip() for cell in header)
    return named and bool(records) and all(len(record) == len(header) for record in records)


def _reader(lines: io.TextIOBase, delimiter: str) -> Any:
    # A quotation mark behind a blank opens a field, as DuckDB has it: a, "b" is written by hand.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")


def first_record(data: bytes, separator: str) -> list[str]:
    """Return the fields of the first record."""
    try:
        cells: list[str] = next(_reader(_lines(data), separator))
        return cells
    except csv.Error:
        raise refuse("a quotation mark is opened and never closed", "line 1", QUOTES) from None


def record_lines(data: bytes, separator: str, columns: int) -> tuple[IntArray, IntArray, IntArray]:
    """Under the header, the line on which each record starts, how many it takes, and the blank lines between.

    A blank line is a record where there is one column.
    """
    if b'"' not in data:  # a record is a line
        lengths = np.diff(_newlines(data), prepend=-1)
        lines = np.arange(1, lengths.size + 1, dtype=np.int64)
        kept = (lengths > 1) | (columns == 1)
        return lines[kept][1:], np.ones(int(kept.sum()) - 1, np.int64), lines[~kept]
    found, blank, ended = [], [], 0
    records = _reader(_lines(data), separator)
    try:
        for record in records:
            if record or columns == 1:
                found.append((ended + 1, records.line_num - ended))
            else:
                blank.append(ended + 1)
            ended = records.line_num
    except csv.Error:
        pass  # DuckDB has refused it
    starts, lengths = np.array(found[1:], dtype=np.int64).reshape(-1, 2).T
    return starts, lengths, np.array(blank, dtype=np.int64)


def say_long_records(starts: IntArray, lengths: IntArray, notes: list[str]) -> None:
    """Say which records take several lines: a mark that stands for inches opens a quotation, too, up to the next one.

    Args:
        starts: The line on which each record starts.
        lengths: How many lines each takes.
        notes: Takes the sentence.
    """
    long = np.flatnonzero(lengths > 1)
    if long.size:
        rows = wording.counted(long.size, "row takes", "rows take")
        most = int(np.argmax(lengths))
        notes.append(
            f"{rows} several lines, by quotation marks (at most {lengths[most]:,}, from line {starts[most]:,}). "
            "If that is wrong, double these marks inside quoted fields."
        )
