"""Delimited text: its delimiter, its records and the lines they start on, and its cells."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pandas as pd

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, Problem
from dpcore.contributions import IntArray
from dpcore.data.encoding import CONTROL_DELIMITERS

MAX_LINE_BYTES = 120_000
"""Longest line, below the 131,072 characters at which Python's csv module gives up on a field."""

BLANKS = " \t\n\r\v\f"
"""What is stripped from cells; a no-break space is not, as engines that count the same table keep it."""

_SNIFF_BYTES = 2 * MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_DELIMITERS = "\t;|,"  # on a tie the one that seldom stands inside text comes first
_OTHER_DELIMITERS = CONTROL_DELIMITERS + "^~#!:&%=*@$"
"""Tried where none of the usual ones fits. A blank is none of them: names have as many words as their header has."""
_DELIMITER_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"


QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"


def refuse_long_lines(data: bytes, skipped: int) -> None:
    """Refuse text with a line that no row of a table has."""
    lengths = np.diff(_newlines(data), prepend=-1) - 1
    longest = int(lengths.max())
    if longest > MAX_LINE_BYTES:
        where = f"line {skipped + int(np.argmax(lengths > MAX_LINE_BYTES)) + 1:,}"
        raise InvalidInput(
            [
                Problem(
                    f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
                    where,
                    "Leave out columns of long text; user, value and task columns are enough",
                )
            ]
        )


def _newlines(data: bytes) -> IntArray:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def sniffed_delimiter(data: bytes) -> str:
    """The delimiter under which the first records have as many fields as the header; empty for none."""
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
    return best or next((other for other in _OTHER_DELIMITERS if _fits(text, other)), "")


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    """The header and the first records that are not blank."""
    found: list[list[str]] = []
    try:
        for record in _reader(io.StringIO(text, newline="\n"), delimiter):
            if record:
                found.append(record)
            if len(found) > _SNIFF_RECORDS:
                break
    except csv.Error:
        pass  # judged by the records before the error; the structure pass names it
    return found


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


def first_record(data: bytes, separator: str) -> tuple[list[str], int]:
    """The fields of the first record, and how many lines it takes."""
    records = _reader(_lines(data), separator)
    try:
        return next(records), records.line_num
    except csv.Error:
        raise InvalidInput(
            [Problem("a quotation mark is opened and never closed", "line 1", QUOTES)]
        ) from None


def structure(data: bytes, separator: str, skipped: int) -> tuple[IntArray, IntArray]:
    """Number of fields of each record under the header (0 for a blank line), and the line it starts on."""
    if b'"' not in data:  # a record is a line: count delimiters between newlines
        ends = _newlines(data)
        delimiters = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(separator))
        fields = np.diff(np.searchsorted(delimiters, ends), prepend=0) + 1
        fields[np.diff(ends, prepend=-1) == 1] = 0
        return fields[1:].astype(np.int64), np.arange(2, ends.size + 1, dtype=np.int64) + skipped
    counts, ends_at = [], []
    records = _reader(_lines(data), separator)
    try:
        for record in records:
            counts.append(len(record))
            ends_at.append(records.line_num)
    except csv.Error:
        where = f"line {skipped + (ends_at[-1] if ends_at else 0) + 1:,}"
        raise InvalidInput([Problem("a quotation mark is opened and never closed", where, QUOTES)]) from None
    starts = np.array(ends_at[:-1], dtype=np.int64) + 1 + skipped
    return np.array(counts[1:], dtype=np.int64), starts


def check_fields(
    fields: IntArray, starts: IntArray, columns: int, delimiter: str, problems: Problems, notes: list[str]
) -> None:
    """Say which records have more fields, or fewer, than the header names."""
    many = np.flatnonzero(fields > columns)
    if many.size:
        others = ", ".join(f"{starts[row]:,}" for row in many[1:3])
        also = f"; also line {others}" if others else ""
        total = f"; {many.size:,} lines in all" if many.size > 3 else ""
        problems.add(
            f"{fields[many[0]]} fields, but the header names {columns}{also}{total}",
            f"line {starts[many[0]]:,}",
            f"Put quotation marks around text (or numbers with decimal commas) that contains "
            f"{_DELIMITER_NAMES.get(delimiter, 'the delimiter')}, or add the missing column names",
        )
    few = np.flatnonzero((fields < columns) & (fields > 0))
    if few.size:
        lines = f"{few.size:,} lines have" if few.size > 1 else "One line has"
        notes.append(
            f"{lines} fewer fields than the header (first: line {starts[few[0]]:,}); "
            "the cells that are not there count as missing."
        )


def say_long_records(starts: IntArray, end: int, notes: list[str]) -> None:
    """Say which records take several lines: a mark that stands for inches opens a quotation, too, up to the next one.

    Args:
        starts: The line on which each record starts.
        end: The last line of all.
        notes: Takes the sentence.
    """
    lines = np.diff(starts, append=end + 1)
    long = np.flatnonzero(lines > 1)
    if long.size:
        rows = "1 row takes" if long.size == 1 else f"{long.size:,} rows take"
        most = int(np.argmax(lines))
        notes.append(
            f"{rows} several lines, by quotation marks (at most {lines[most]:,}, from line {starts[most]:,}). "
            "If that is wrong, double these marks inside quoted fields."
        )


def parsed(data: bytes, separator: str, names: list[str], last_line: int) -> pd.DataFrame:
    """The cells under the header, as text. Field counts are checked before, so nothing can be cut off."""
    try:
        frame = pd.read_csv(
            io.BytesIO(data), sep=separator, header=0, names=list(range(len(names))), dtype=str,
            na_filter=False, keep_default_na=False, skip_blank_lines=False, index_col=False, engine="c",
            encoding="utf-8", skipinitialspace=True,
        )  # fmt: skip
    except pd.errors.ParserError:
        # Counted fields leave it one complaint: the end of the file inside quotes, hence in the last record.
        where = f"line {last_line:,}"
        raise InvalidInput([Problem("a quotation mark is opened and never closed", where, QUOTES)]) from None
    stripped: pd.DataFrame = frame.apply(lambda column: column.str.strip(BLANKS))
    stripped.columns = pd.Index(names)
    return stripped
