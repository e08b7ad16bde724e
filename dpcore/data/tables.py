"""Tables of text cells with known file lines, and joins of them.

Nothing is coerced on reading: a user called "NA" stays a user. Messages name the lines of a file; they never quote
cells that may contain a user id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import IntArray
from dpcore.data.column_names import and_more, check_header_row, check_names, is_header_word, shorten
from dpcore.data.layout import FileLayout

if TYPE_CHECKING:
    import pandas as pd

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of text cells, stripped of surrounding blanks.

    Attributes:
        frame: The cells, every column of text; a missing cell is the empty string.
        name: File name.
        encoding: Python's name of the encoding of the file.
        delimiter: Delimiter of fields; empty if there is one column.
        lines: First file line of each row, counted from 1, shape (rows,), int64.
        notes: Notes for the user on the reading, sentences.
        header_line: First file line of the header, counted from 1.
        files: If several files were joined, the first row and the name of each.
        word: Word for a line in messages.
        layouts: Layouts of the files; empty if unknown.
        times: Kinds of time of the columns of durations, dates or times, by name, if the file has types.
    """

    frame: pd.DataFrame
    name: str
    encoding: str
    delimiter: str
    lines: IntArray
    notes: tuple[str, ...] = ()
    header_line: int = 1
    files: tuple[tuple[int, str], ...] = ()
    word: str = "line"
    layouts: tuple[FileLayout, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the column names from left to right."""
        return tuple(str(name) for name in self.frame.columns)

    def line(self, row: int) -> int:
        """Return the first file line of a row; rows are counted from 0."""
        return int(self.lines[row])

    def describe_row(self, row: int) -> str:
        """Return the location of a row as text, with the file if several were joined."""
        names = [name for first, name in self.files if first <= row]
        return f"{self.word} {self.line(row):,}" + (f" of {shorten(names[-1])}" if names else "")


def build_table(
    header: Sequence[str],
    cells: pd.DataFrame | list[list[str]],
    lines: IntArray,
    name: str,
    word: str = "line",
) -> Table:
    """Build a table from cells that were read elsewhere, such as from a workbook, with the same checks.

    Args:
        header: Column names.
        cells: Text, stripped; each row as long as the header.
        lines: Line (or row of the sheet) of the header and of each row, shape (rows + 1,).
        name: File name, for messages.
        word: Word for such a line.

    Raises:
        InvalidInput: No header, no rows ...; all problems at once.
    """
    import pandas as pd

    problems = Problems()
    notes: list[str] = []
    names = check_names(list(header), int(lines[0]), problems, notes)
    if not len(cells):
        message, location = (
            ("there is a header and no rows", f"line {lines[0]}") if lines[0] else ("there are no rows", "")
        )
        problems.add(message, location, "Add a row for each contribution")
    problems.raise_if_any()
    frame = pd.DataFrame(cells, dtype=str)
    frame.columns = pd.Index(names)
    frame, starts = drop_blank_rows(frame, lines[1:], notes)
    check_header_row(names, frame, starts, int(lines[0]), problems, notes)
    problems.raise_if_any()
    return Table(frame, name, "", "", starts, tuple(notes), int(lines[0]), word=word)


def join_tables(tables: list[Table]) -> Table:
    """Join tables with the same columns, in any order; locations then name the file.

    Raises:
        InvalidInput: The columns differ.
    """
    import pandas as pd

    first = tables[0]
    if len(tables) == 1:
        return first
    refuse_other_columns([(table.name, table.columns) for table in tables])
    frame = pd.concat([table.frame[list(first.columns)] for table in tables], ignore_index=True)
    firsts = np.cumsum([0, *(len(table.frame) for table in tables[:-1])])
    return Table(
        frame,
        f"{first.name} and {len(tables) - 1} more",
        first.encoding,
        first.delimiter if len({table.delimiter for table in tables}) == 1 else "",
        np.concatenate([table.lines for table in tables]),
        tuple(f"{shorten(table.name)}: {note}" for table in tables for note in table.notes),
        first.header_line,
        tuple((int(first_row), table.name) for first_row, table in zip(firsts, tables, strict=True)),
        layouts=tuple(layout for table in tables for layout in table.layouts),
        times=join_times(tables),
    )


def join_times(tables: Sequence[Table]) -> dict[str, str]:
    """Return the columns of durations, dates or times of all tables."""
    return {column: time_type for table in tables for column, time_type in table.times.items()}


def refuse_other_columns(files: list[tuple[str, tuple[str, ...]]]) -> None:
    """Raise InvalidInput if files have other columns than the first one, in any order."""

    def has_names(header: tuple[str, ...]) -> bool:
        return any(map(is_header_word, header))

    problems = Problems()
    name, columns = files[0]
    for other_name, other_columns in files[1:]:
        lacks, has = (
            [c for c in columns if c not in other_columns],
            [c for c in other_columns if c not in columns],
        )
        # Without a header word a line may be data, as in pieces of one file, with ids in its cells.
        differences: list[str] = []
        if lacks and has_names(columns):
            differences.append(f"lacks column {shorten(lacks[0])}{and_more(len(lacks) - 1)}")
        if has and has_names(other_columns):
            differences.append(f"has column {shorten(has[0])}{and_more(len(has) - 1)}")
        if (lacks or has) and not differences:
            differences = ["begins with a line of other cells, which may be no names of columns"]
        if differences:
            message = (
                f"the columns differ from those of {shorten(name)}: this file {' and '.join(differences)}"
            )
            problems.add(message, f"file {shorten(other_name)}", "Choose files with the same columns")
    problems.raise_if_any()


def drop_blank_rows(
    frame: pd.DataFrame, starts: IntArray, notes: list[str], lines: Sequence[int] = ()
) -> tuple[pd.DataFrame, IntArray]:
    """Drop blank rows and return the others with their lines; in one column a blank row is a missing cell.

    Args:
        frame: The cells.
        starts: The line of each row.
        notes: List to which a note on blank rows is added.
        lines: Blank lines that are not rows of the frame.
    """
    blank = np.full(len(frame), frame.shape[1] > 1)
    for index in range(frame.shape[1]):
        if not blank.any():
            break
        blank &= (frame.iloc[:, index] == "").to_numpy(bool)
    if blank.all():
        raise refuse("all rows under the header are blank", f"line {starts[0]:,}", "Choose a file with rows")
    if blank_lines := sorted([*starts[blank].tolist(), *lines]):
        count = "One blank row was" if len(blank_lines) == 1 else f"{len(blank_lines):,} blank rows were"
        notes.append(f"{count} left out (first: line {blank_lines[0]:,}).")
    return (frame[~blank].reset_index(drop=True), starts[~blank]) if blank.any() else (frame, starts)
