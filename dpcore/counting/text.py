"""Text tables in memory: encoding, header and delimiter are recognised here, and DuckDB reads the cells."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput, refuse
from dpcore.counting import rejects
from dpcore.counting.duck import Duck
from dpcore.counting.formats import Format, Packing
from dpcore.counting.held import Held
from dpcore.counting.parts import Part
from dpcore.counting.reading import Reading, cells_of
from dpcore.data.column_names import check_header_row, checked_names, title_above
from dpcore.data.delimited_text import (
    ASCII_SEPARATORS,
    BETWEEN,
    FIELD_MARK,
    QUOTES,
    fields_of,
    first_record,
    names_below_a_title,
    names_columns,
    record_lines,
    refuse_long_lines,
    say_long_records,
    sniffed_delimiter,
    spaced,
    unnamed_tabs,
    unspaced,
)
from dpcore.data.encoding import decoded, encoding_by_marks, refuse_what_is_no_text, without_preamble
from dpcore.data.layout import FileLayout
from dpcore.data.tables import Table, with_content

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 5_000_000
"""Cells of a table in memory, where they are more than its bytes: lines that lack the last fields say little of it."""


class TooManyCells(InvalidInput):
    """A file of few bytes whose table would be large, as its lines lack most of the fields that the header names."""

    def __init__(self, rows: int, columns: int) -> None:
        what = f"most of its {rows:,} rows lack most of the {columns:,} columns, which makes {rows * columns:,} cells"
        remedy = "Leave out the columns that few rows fill"
        super().__init__([InputProblem(f"{what}; at most {MAX_CELLS:,} are read into memory", "", remedy)])

    @classmethod
    def refuse(cls, rows: int, columns: int, num_bytes: int) -> None:
        """Refuse so many cells; where every line has its delimiters there are no more of them than bytes."""
        if rows * columns > max(MAX_CELLS, num_bytes):
            raise cls(rows, columns)


def read_table(content: bytes, name: str) -> Table:
    """Read a text table: encoding and delimiter are recognised, the first line must name the columns.

    Args:
        content: The file, at most `dpcore.data.encoding.MAX_BYTES` bytes: UTF-8, UTF-16 or UTF-32, else Windows-1252,
            with fields between commas, semicolons, tabs or vertical bars, or one column.
        name: File name, for messages.

    Raises:
        TooManyCells: Its lines lack so many fields that it is not to be held in memory.
        InvalidInput: Not a text table, no header, more fields than columns ...; all problems at once.
    """
    refuse_what_is_no_text(content)
    text, encoding, notes = decoded(content)
    data, skipped, delimiter = without_preamble(text)
    refuse_long_lines(data, skipped)
    if delimiter is None:
        delimiter = sniffed_delimiter(data)
        if below := names_below_a_title(data):
            raise title_above(skipped + below, skipped + 1)
    split, named = spaced(data) if delimiter in ("", " ") else "", True
    if delimiter == "\t" and unnamed_tabs(data):
        split = delimiter
    if split:
        data, named = _unspaced(data, split, notes)
        delimiter, skipped = FIELD_MARK, skipped - (not named)
    separator = delimiter or next((s for s in ASCII_SEPARATORS if s.encode() not in data), ",")
    header = first_record(data, separator)
    problems = Problems()
    names = checked_names(header, skipped + 1, problems, notes)
    TooManyCells.refuse(data.count(b"\n") - 1, len(names), len(data))
    _say_comments(text, skipped, header, notes)
    part = Part(Held(data), name, Format.TEXT, Packing.NONE, tuple(names), delimiter=separator)
    if line := rejects.reopened_mark(part):
        problems.add(rejects.REOPENED, f"line {skipped + line:,}", QUOTES)
    frame = _cells(part, skipped, problems, notes)
    starts, lengths, blank = record_lines(data, separator, len(names))
    starts = starts + skipped
    if frame is not None and not len(frame):
        remedy = "Add a row for each contribution (or each user, or each size)"
        problems.add("the file has a header and no rows", f"line {skipped + 1}", remedy)
    problems.raise_if_any()
    if frame is None or len(frame) != starts.size:
        raise refuse("the quotation marks in the file do not match", remedy=QUOTES)
    say_long_records(starts, lengths, notes)
    frame, starts = with_content(frame, starts, notes, (blank + skipped).tolist())
    if named:
        check_header_row(names, frame, starts, skipped + 1, problems, notes)
    problems.raise_if_any()
    layout = FileLayout(
        name,
        separator=split or separator,
        encoding=encoding_by_marks(content) or encoding,
        skip=skipped + (not named),
        names=() if named else tuple(names),
    )
    return Table(frame, name, encoding, delimiter, starts, tuple(notes), skipped + 1, layouts=(layout,))


def _unspaced(data: bytes, split: str, notes: list[str]) -> tuple[bytes, bool]:
    """The text with a mark between fields and a line of names above; and whether the file has that line itself."""
    lines = data.decode().split("\n")
    header, *rows = [fields_of(line, split) for line in lines if line.strip()]
    said = f"Fields stand between {BETWEEN[split]}"
    # Rows of other lengths are named when they are read.
    if named := names_columns(header, [row for row in rows if len(row) == len(header)]):
        notes.append(f"{said}.")
    else:
        names = [f"column {at}" for at in range(1, len(header) + 1)]
        notes.append(f'{said}. The first line holds no names, so columns are called "{names[0]}" and so on.')
        lines.insert(0, FIELD_MARK.join(names))
        return "\n".join([lines[0], *(unspaced(line, split) for line in lines[1:])]).encode(), named
    return "\n".join(unspaced(line, split) for line in lines).encode(), named


def _cells(part: Part, skipped: int, problems: Problems, notes: list[str]) -> pd.DataFrame | None:
    """Return the cells under the header, or None if lines are refused."""
    import duckdb

    reading = Reading(part)
    with closing(Duck()) as duck:
        try:
            return cells_of(duck, reading)
        except duckdb.Error:
            lines = rejects.lines_of(duck, reading)
        if rejects.say(lines, part, problems, notes, skipped, ""):
            with part.path.open("rb") as file:
                marks = file.read().count(b'"')
            # An odd one is taken for text in what follows, and dropped at the end.
            with suppress(duckdb.Error):
                return None if marks % 2 else cells_of(duck, replace(reading, short_rows=True, alone=True))
        return None


def _say_comments(text: str, skipped: int, header: list[str], notes: list[str]) -> None:
    """Say how many lines above the header begin with #, or that the header does."""
    comments = sum(line.startswith("#") for line in text.split("\n", skipped)[:skipped])
    if comments:
        lines = wording.counted(comments, "line that begins", "lines that begin")
        were = wording.agreeing(comments, "was", "were")
        notes.append(f"{lines} with # above the column names {were} left out.")
    if len(header) > 1 and header[0].startswith("#"):
        notes.append("The line of column names begins with #; if it is a comment, remove it.")
