"""Reading text tables in memory: encoding, header and delimiter are detected here, and DuckDB reads the cells."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse
from dpcore.counting import rejects
from dpcore.counting.duck import Duck
from dpcore.counting.formats import Format, MemoryFile, Packing
from dpcore.counting.reading import InputFile, Reading, read_cells
from dpcore.data.column_names import check_header_row, check_names, refuse_title
from dpcore.data.delimited_text import (
    ASCII_SEPARATORS,
    FIELD_MARK,
    QUOTES,
    SEPARATOR_NAMES,
    check_text,
    decode,
    detect_encoding,
    find_names_below_title,
    find_record_lines,
    has_unnamed_tabs,
    mark_fields,
    names_columns,
    note_long_records,
    read_first_record,
    refuse_long_lines,
    sniff_delimiter,
    sniff_spacing,
    split_fields,
    strip_preamble,
)
from dpcore.data.tables import FileLayout, Table, drop_blank_rows

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 5_000_000
"""Largest number of cells of a table in memory that has more cells than bytes, as its lines lack fields."""


class TooManyCells(InvalidInput):
    """The error of a small file with a large table, as its lines lack most of the fields that the header names."""

    def __init__(self, rows: int, columns: int) -> None:
        cells = f"{rows * columns:,} cells"
        message = f"most of its {rows:,} rows lack most of the {columns:,} columns, which makes {cells}"
        remedy = "Leave out the columns that few rows fill"
        super().__init__([InputProblem(f"{message}; at most {MAX_CELLS:,} are read into memory", "", remedy)])

    @classmethod
    def refuse(cls, rows: int, columns: int, num_bytes: int) -> None:
        """Raise the error if there are too many cells; lines with all delimiters have no more cells than bytes."""
        if rows * columns > max(MAX_CELLS, num_bytes):
            raise cls(rows, columns)


def read_table(content: bytes, name: str) -> Table:
    """Read a text table; encoding and delimiter are detected, and the first line must name the columns.

    Args:
        content: The file, at most `dpcore.data.delimited_text.MAX_BYTES` bytes: UTF-8, UTF-16 or UTF-32, else
            Windows-1252, with fields between commas, semicolons, tabs or vertical bars, or one column.
        name: File name, for messages.

    Raises:
        TooManyCells: Its lines lack so many fields that the table would be too large for memory.
        InvalidInput: Not a text table, no header, more fields than columns ...; all problems at once.
    """
    check_text(content)
    text, encoding, notes = decode(content)
    data, skipped, delimiter = strip_preamble(text)
    refuse_long_lines(data, skipped)
    if delimiter is None:
        delimiter = sniff_delimiter(data)
        if title_lines := find_names_below_title(data):
            raise refuse_title(skipped + title_lines, skipped + 1)
    split, has_header = sniff_spacing(data) if delimiter in ("", " ") else "", True
    if delimiter == "\t" and has_unnamed_tabs(data):
        split = delimiter
    if split:
        data, has_header = _mark_fields(data, split, notes)
        delimiter, skipped = FIELD_MARK, skipped - (not has_header)
    separator = delimiter or next((s for s in ASCII_SEPARATORS if s.encode() not in data), ",")
    header = read_first_record(data, separator)
    problems = Problems()
    names = check_names(header, skipped + 1, problems, notes)
    TooManyCells.refuse(data.count(b"\n") - 1, len(names), len(data))
    _note_comments(text, skipped, header, notes)
    input_file = InputFile(
        MemoryFile(data), name, Format.TEXT, Packing.NONE, tuple(names), delimiter=separator
    )
    if line := rejects.find_reopened_mark(input_file):
        problems.add(rejects.REOPENED, f"line {skipped + line:,}", QUOTES)
    frame = _cells(input_file, skipped, problems, notes)
    starts, lengths, blank = find_record_lines(data, separator, len(names))
    starts = starts + skipped
    if frame is not None and not len(frame):
        remedy = "Add a row for each contribution (or each user, or each size)"
        problems.add("the file has a header and no rows", f"line {skipped + 1}", remedy)
    problems.raise_if_any()
    if frame is None or len(frame) != starts.size:
        raise refuse("the quotation marks in the file do not match", remedy=QUOTES)
    note_long_records(starts, lengths, notes)
    frame, starts = drop_blank_rows(frame, starts, notes, (blank + skipped).tolist())
    if has_header:
        check_header_row(names, frame, starts, skipped + 1, problems, notes)
    problems.raise_if_any()
    layout = FileLayout(
        name,
        separator=split or separator,
        encoding=detect_encoding(content) or encoding,
        skip=skipped + (not has_header),
        names=() if has_header else tuple(names),
    )
    return Table(frame, name, encoding, delimiter, starts, tuple(notes), skipped + 1, layouts=(layout,))


def _mark_fields(data: bytes, split: str, notes: list[str]) -> tuple[bytes, bool]:
    """Return the text with a mark between fields and a line of names, and True if that line is from the file."""
    lines = data.decode().split("\n")
    header, *rows = [split_fields(line, split) for line in lines if line.strip()]
    sentence = f"Fields stand between {SEPARATOR_NAMES[split]}"
    # Rows of other lengths are reported when they are read.
    if has_header := names_columns(header, [row for row in rows if len(row) == len(header)]):
        notes.append(f"{sentence}.")
    else:
        names = [f"column {number}" for number in range(1, len(header) + 1)]
        notes.append(
            f'{sentence}. The first line holds no names, so columns are called "{names[0]}" and so on.'
        )
        lines.insert(0, FIELD_MARK.join(names))
        return "\n".join([lines[0], *(mark_fields(line, split) for line in lines[1:])]).encode(), has_header
    return "\n".join(mark_fields(line, split) for line in lines).encode(), has_header


def _cells(input_file: InputFile, skipped: int, problems: Problems, notes: list[str]) -> pd.DataFrame | None:
    """Read the cells below the header, or return None if lines are refused."""
    import duckdb

    reading = Reading(input_file)
    with closing(Duck()) as duck:
        try:
            return read_cells(duck, reading)
        except duckdb.Error:
            lines = rejects.list_rejected(duck, reading)
        if rejects.report_rejected(lines, input_file, problems, notes, skipped, ""):
            with input_file.path.open("rb") as file:
                marks = file.read().count(b'"')
            # With an odd number of marks DuckDB takes the following text as quoted and drops it at the end.
            with suppress(duckdb.Error):
                return (
                    None
                    if marks % 2
                    else read_cells(duck, replace(reading, short_rows=True, is_single_threaded=True))
                )
        return None


def _note_comments(text: str, skipped: int, header: list[str], notes: list[str]) -> None:
    """Add a note on comment lines above the header, or on a header that begins with #."""
    comments = sum(line.startswith("#") for line in text.split("\n", skipped)[:skipped])
    if comments:
        lines = wording.counted(comments, "line that begins", "lines that begin")
        were = wording.agreeing(comments, "was", "were")
        notes.append(f"{lines} with # above the column names {were} left out.")
    if len(header) > 1 and header[0].startswith("#"):
        notes.append("The line of column names begins with #; if it is a comment, remove it.")
