"""Tables of text cells whose file lines are known, and several of them as one.

Nothing is coerced on reading: a user called "NA" stays a user. What is wrong with a file is said in
sentences that name its lines; cells that may hold a user id are never quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.contributions import IntArray
from dpcore.data.column_names import and_more, check_header_row, checked_names, is_header_word, shown
from dpcore.data.layout import FileLayout

if TYPE_CHECKING:
    import pandas as pd

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read: all cells text, stripped of surrounding blanks, nothing coerced.

    Attributes:
        frame: The cells, every column of text; a missing cell is the empty string.
        name: File name.
        encoding: Encoding the file was read in, as Python names it.
        delimiter: What stands between fields; empty where there is one column.
        lines: File line on which each row starts, counted from 1, shape (rows,), int64.
        notes: What a person should know of the reading, sentences.
        header_line: File line on which the header starts, counted from 1.
        files: Where several files were joined: for each, its first row and its name.
        word: What a line is called in messages.
        layouts: How the files were read, one entry each; empty where nobody knows.
        times: What the columns hold that are durations, dates or times, by name, where the file says so.
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
        """Column names from left to right."""
        return tuple(str(name) for name in self.frame.columns)

    def line(self, row: int) -> int:
        """File line on which row ``row`` (counted from 0) starts."""
        return int(self.lines[row])

    def place(self, row: int) -> str:
        """Return the place of a row in words; with the file where several were joined."""
        of = [name for first, name in self.files if first <= row]
        return f"{self.word} {self.line(row):,}" + (f" of {shown(of[-1])}" if of else "")


def table_of_cells(
    header: Sequence[str],
    cells: pd.DataFrame | list[list[str]],
    lines: IntArray,
    name: str,
    word: str = "line",
) -> Table:
    """Return a table of cells that something else has read, such as a workbook, under the same checks.

    Args:
        header: Column names.
        cells: Text, stripped; each row as long as the header.
        lines: Line (or row of the sheet) of the header and of each row, shape (rows + 1,).
        name: File name, for messages.
        word: What such a line is called.

    Raises:
        InvalidInput: No header, no rows ...; all problems at once.
    """
    import pandas as pd

    problems = Problems()
    notes: list[str] = []
    names = checked_names(list(header), int(lines[0]), problems, notes)
    if not len(cells):
        what, place = (
            ("there is a header and no rows", f"line {lines[0]}") if lines[0] else ("there are no rows", "")
        )
        problems.add(what, place, "Add a row for each contribution")
    problems.raise_if_any()
    frame = pd.DataFrame(cells, dtype=str)
    frame.columns = pd.Index(names)
    frame, starts = with_content(frame, lines[1:], notes)
    check_header_row(names, frame, starts, int(lines[0]), problems, notes)
    problems.raise_if_any()
    return Table(frame, name, "", "", starts, tuple(notes), int(lines[0]), word=word)


def join_tables(tables: list[Table]) -> Table:
    """Return the tables of the same columns, in any order, one under the other; places then name the file.

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
        tuple(f"{shown(table.name)}: {note}" for table in tables for note in table.notes),
        first.header_line,
        tuple((int(at), table.name) for at, table in zip(firsts, tables, strict=True)),
        layouts=tuple(layout for table in tables for layout in table.layouts),
        times=times_of(tables),
    )


def times_of(tables: Sequence[Table]) -> dict[str, str]:
    """Return the columns that hold durations, dates or times in any of the tables."""
    return {column: held for table in tables for column, held in table.times.items()}


def refuse_other_columns(files: list[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse files whose columns are not those of the first, in whatever order."""

    def named(header: tuple[str, ...]) -> bool:
        return any(map(is_header_word, header))

    problems = Problems()
    name, columns = files[0]
    for other, its in files[1:]:
        lacks, has = [c for c in columns if c not in its], [c for c in its if c not in columns]
        # Without a usual word a line may be no header, as in pieces of one file, and its cells ids.
        said: list[str] = []
        if lacks and named(columns):
            said.append(f"lacks column {shown(lacks[0])}{and_more(len(lacks) - 1)}")
        if has and named(its):
            said.append(f"has column {shown(has[0])}{and_more(len(has) - 1)}")
        if (lacks or has) and not said:
            said = ["begins with a line of other cells, which may be no names of columns"]
        if said:
            what = f"the columns differ from those of {shown(name)}: this file {' and '.join(said)}"
            problems.add(what, f"file {shown(other)}", "Choose files with the same columns")
    problems.raise_if_any()


def with_content(
    frame: pd.DataFrame, starts: IntArray, notes: list[str], lines: Sequence[int] = ()
) -> tuple[pd.DataFrame, IntArray]:
    """Return the rows that hold anything, and their lines; in one column a blank row is a missing cell.

    Args:
        frame: The cells.
        starts: The line of each row.
        notes: Takes how many rows were blank.
        lines: Blank lines that are no rows of the frame already.
    """
    blank = np.full(len(frame), frame.shape[1] > 1)
    for at in range(frame.shape[1]):
        if not blank.any():
            break
        blank &= (frame.iloc[:, at] == "").to_numpy(bool)
    if blank.all():
        raise refuse("all rows under the header are blank", f"line {starts[0]:,}", "Choose a file with rows")
    if out := sorted([*starts[blank].tolist(), *lines]):
        count = "One blank row was" if len(out) == 1 else f"{len(out):,} blank rows were"
        notes.append(f"{count} left out (first: line {out[0]:,}).")
    return (frame[~blank].reset_index(drop=True), starts[~blank]) if blank.any() else (frame, starts)
