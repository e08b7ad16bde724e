"""Delimited text: detection of its delimiter, its records with their lines, and its cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, refuse
from dpcore.contributions import IntArray
from dpcore.data.column_names import MOST_TITLES, is_header_word, looks_like_data
from dpcore.data.encoding import CONTROL_DELIMITERS

MAX_LINE_BYTES = 120_000
"""Longest line, below the limit of 131,072 characters of a field in Python's csv module."""

BLANKS = " \t\n\r\v\f"
"""Characters that are stripped from cells; no-break spaces are kept, as engines keep them, too."""

_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?")
_RUN = re.compile(r"[ \t\r\v\f]+")
_SNIFF_BYTES = 2 * MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_DELIMITERS = "\t;|,"  # on a tie the delimiter that is rarer inside text wins
_OTHER_DELIMITERS = CONTROL_DELIMITERS + "^~#!:&%=*@$"
"""Tried if none of the usual ones fits. A blank is not included, as names may consist of several words."""
DELIMITER_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
SPACED = {" +": "blanks", "::": "double colons"}
"""Further separators if every line has equally many: one or more blanks (`` +``), or ``::``."""
SEPARATOR_NAMES = {**SPACED, "\t": "tabs"}
"""Separators of text whose lines are rewritten: `SPACED`, or tabs without column names (`has_unnamed_tabs`)."""
FIELD_MARK = "\x1f"
"""Separator of rewritten lines (`mark_fields`); it occurs in no text."""
ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"


LONG_LINE = (
    f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
    "Leave out columns of long text; user, value and task columns are enough",
)
QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"


def refuse_long_lines(data: bytes, skipped: int) -> None:
    """Raise InvalidInput if a line is longer than a row of a table may be."""
    lengths = np.diff(_newlines(data), prepend=-1) - 1
    longest = int(lengths.max())
    if longest > MAX_LINE_BYTES:
        raise InvalidInput([describe_long_line(skipped + int(np.argmax(lengths > MAX_LINE_BYTES)) + 1)])


def describe_long_line(line: int) -> InputProblem:
    """Describe a line that is longer than a row may be, as a problem."""
    message, remedy = LONG_LINE
    return InputProblem(message, f"line {line:,}", remedy)


def _newlines(data: bytes) -> IntArray:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def sniff_delimiter(data: bytes) -> str:
    """Detect the delimiter under which the first records have as many fields as the header; empty for none."""
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
        # A header without the delimiter above rows that all have it: a ragged table, which later gets a message.
        ragged = columns == 1 and several == 1.0 and len(set(rows)) == 1
        score = (same if columns > 1 else 0.0, several, columns)
        if ((columns > 1 and several >= 0.5) or ragged) and score > best_score:
            best, best_score = delimiter, score
    if best_score[0]:
        return best
    return next((candidate for candidate in _OTHER_DELIMITERS if _fits(text, candidate)), best)


def find_names_below_title(data: bytes) -> int:
    """Return the line of column names if a title with fewer fields is above it; else 0.

    It is such a line if every line below has as many fields, no name looks like data, and half of the names have a
    header word.
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
        num_titles = next((index for index, (_, cells) in enumerate(records) if len(cells) > title), 0)
        if not 0 < num_titles < len(records) - 1 or num_titles > MOST_TITLES:
            continue
        (line, cells), *further_records = records[num_titles:]
        names = [" ".join(cell.split()) for cell in cells]
        num_header_words = sum(map(is_header_word, names))
        if (
            all(names)
            and 2 * num_header_words >= len(names)
            and not any(map(looks_like_data, names))
            and {len(record) for _, record in further_records} == {len(names)}
        ):
            return line
    return 0


def sniff_spacing(data: bytes) -> str:
    """Detect the separator of `SPACED` that all first lines have equally often, with a column of numbers; else empty.

    Lines of names may also have equally many words, but no column of numbers.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return ""
    for split in reversed(SPACED):
        rows = [split_fields(line, split) for line in lines]
        if (
            len(rows[0]) > 1
            and len(set(map(len, rows))) == 1
            and any(map(_numeric, zip(*rows[1:], strict=True)))
        ):
            return split
    return ""


def has_unnamed_tabs(data: bytes) -> bool:
    """Return True if tab-separated text has no column names, like ``u.data`` of MovieLens 100K.

    The conditions: no quotation mark, at least three columns, at least one column of numbers including its first cell,
    and no header word in the first line. Names may be consecutive numbers, such as years; first cells of data are not.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return False
    first, *rows = [split_fields(line, "\t") for line in lines]
    if len(first) < 3 or {len(row) for row in rows} != {len(first)} or any(map(is_header_word, first)):
        return False
    integers = [int(cell) for cell in first if re.fullmatch(r"[0-9]{1,18}", cell)]
    counting_up = len(integers) > 1 and set(np.diff(integers)) == {1}
    return not counting_up and not names_columns(first, rows)


def split_fields(line: str, split: str) -> list[str]:
    """Split a line into fields by a separator of `SEPARATOR_NAMES`, without blanks around them."""
    if split == "\t":  # A tab at either end means an empty field.
        return [field.strip(BLANKS) for field in line.split(split)]
    line = line.strip(BLANKS)
    return _RUN.split(line) if split == " +" else [field.strip(BLANKS) for field in line.split(split)]


def mark_fields(line: str, split: str) -> str:
    """Return the line with `FIELD_MARK` between its fields."""
    return FIELD_MARK.join(split_fields(line, split))


def names_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first line has names: no column has only numbers including its first cell."""
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
    """Return True if under this delimiter every record has as many fields as the header, more than one."""
    header, *records = _first_records(text, delimiter) or [[]]
    has_names = len(header) > 1 and all(cell.strip() for cell in header)
    return has_names and bool(records) and all(len(record) == len(header) for record in records)


def _reader(lines: io.TextIOBase, delimiter: str) -> Any:
    # As in DuckDB, a quotation mark after a blank opens a field: people write a, "b" by hand.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")


def read_first_record(data: bytes, separator: str) -> list[str]:
    """Read the fields of the first record."""
    try:
        cells: list[str] = next(_reader(_lines(data), separator))
        return cells
    except csv.Error:
        raise refuse("a quotation mark is opened and never closed", "line 1", QUOTES) from None


def find_record_lines(data: bytes, separator: str, columns: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for the records below the header, their first lines, their numbers of lines, and the blank lines.

    In a table of one column a blank line is a record.
    """
    if b'"' not in data:  # a record is a line
        lengths = np.diff(_newlines(data), prepend=-1)
        lines = np.arange(1, lengths.size + 1, dtype=np.int64)
        is_record = (lengths > 1) | (columns == 1)
        return lines[is_record][1:], np.ones(int(is_record.sum()) - 1, np.int64), lines[~is_record]
    spans, blank, last_line = [], [], 0
    records = _reader(_lines(data), separator)
    try:
        for record in records:
            if record or columns == 1:
                spans.append((last_line + 1, records.line_num - last_line))
            else:
                blank.append(last_line + 1)
            last_line = records.line_num
    except csv.Error:
        pass  # DuckDB has refused it
    starts, lengths = np.array(spans[1:], dtype=np.int64).reshape(-1, 2).T
    return starts, lengths, np.array(blank, dtype=np.int64)


def note_long_records(starts: IntArray, lengths: IntArray, notes: list[str]) -> None:
    """Add a note on records of several lines: a quotation mark for inches also opens a quotation.

    Args:
        starts: First line of each record.
        lengths: Number of lines of each record.
        notes: List to which the note is added.
    """
    long = np.flatnonzero(lengths > 1)
    if long.size:
        rows = wording.counted(long.size, "row takes", "rows take")
        longest = int(np.argmax(lengths))
        notes.append(
            f"{rows} several lines, by quotation marks (at most {lengths[longest]:,}, from line {starts[longest]:,}). "
            "If that is wrong, double these marks inside quoted fields."
        )
