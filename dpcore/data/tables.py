"""Tables of text cells: their lines, and how they were read out of files.

Nothing is coerced on reading: a user called "NA" stays a user. Messages name lines, and never quote cells that may
contain a user id.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.wording import format_count
from dpcore.contributions import IntArray
from dpcore.data.column_names import check_header_row, check_names, refuse_other_columns, shorten
from dpcore.data.periods import Periods
from dpcore.data.row_filter import RowFilter

if TYPE_CHECKING:
    import pandas as pd

BLANKS = " \t\n\r\v\f"
"""Characters that are stripped from cells; no-break spaces are kept, as engines keep them, too."""
SPACED = {" +": "blanks", "::": "double colons"}
"""Further separators of text if every line has equally many: one or more blanks (`` +``), or ``::``."""
SPACED_PATTERN = r'[ \t\r\v\f]+(?=(?:[^"]*"[^"]*")*[^"]*$)'
"""Blanks that are not between quotation marks: an even number of these follows."""


class FileKind(enum.Enum):
    """The format of an uncompressed file."""

    TEXT = "text"
    JSON = "JSON"
    PARQUET = "Parquet"
    WORKBOOK = "workbook"


_KINDS_BY_ENDING = {
    **dict.fromkeys((".parquet", ".pq"), FileKind.PARQUET),
    **dict.fromkeys((".xlsx", ".xlsm"), FileKind.WORKBOOK),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), FileKind.JSON),
}


@dataclass(frozen=True)
class FileLayout:
    """How one file was read: format, separator, encoding, lines above the header.

    Attributes:
        name: Display name.
        kind: Format of the file.
        separator: Separator of fields of text: one character, or ``::``; a blank and a plus sign mean one or more
            blanks.
        encoding: Python's name of the encoding of text.
        skip: Lines of text, or rows of a sheet, above the header, or above the first row if there is no header.
        names: Names of the columns if the file has none; else empty.
        sheet: Name of the sheet of a workbook that was read; empty for the first one.
        packing: ``gzip`` or ``zstd`` if it is compressed, else empty.
        folder_cells: Name and cell of each column that the file's folders name, as in ``year=2024``.
        has_stated_separator: True if a person named the separator.
    """

    name: str
    kind: FileKind = FileKind.TEXT
    separator: str = ","
    encoding: str = "utf-8"
    skip: int = 0
    sheet: str = ""
    packing: str = ""
    names: tuple[str, ...] = ()
    folder_cells: tuple[tuple[str, str], ...] = ()
    has_stated_separator: bool = False

    @classmethod
    def by_name(cls, file_name: str) -> FileLayout:
        """Build the usual layout of a file of this name, which has not been read yet."""
        name_ending = "." + file_name.lower().rpartition(".")[2]
        separator = "\t" if name_ending in (".tsv", ".tab") else ","
        return cls(file_name, _KINDS_BY_ENDING.get(name_ending, FileKind.TEXT), separator)


@dataclass(frozen=True)
class TableLayout:
    """The layout of a table: its files, the reading of its cells, and the columns that are filled in all rows.

    Attributes:
        files: One entry per file, at least one.
        numbers: The columns of numbers, each with its decimal mark, ``.`` or ``,``, if it had to be determined
            (thousands, decimal commas); else with an empty text.
        missing_is_a_user: True if all rows that name no user count as one user; else they are left out.
        filled: For a table for models, the further columns in which a row must not be blank.
        dropped_column: Column of values whose missing or unusable cells leave out their rows; empty for none.
        missing_constant: Public number that replaces such cells of the values; None for none.
        share_column: Column of values that is known to say yes and no, so that they lie in [0, 1]; empty for none.
        yes_text: The cell of values that counts as 1, in any case; other filled ones count as 0. Empty for numbers.
        periods: Periods of time, each of which makes a user another unit; None for the user as the unit.
        filters: Public conditions; rows that do not satisfy all of them are left out.
        count_column: Column of rows per user, or per pair of user and group; empty if each row is one contribution.
    """

    files: tuple[FileLayout, ...]
    numbers: tuple[tuple[str, str], ...] = ()
    missing_is_a_user: bool = False
    filled: tuple[str, ...] = ()
    dropped_column: str = ""
    missing_constant: float | None = None
    share_column: str = ""
    yes_text: str = ""
    periods: Periods | None = None
    filters: tuple[RowFilter, ...] = ()
    count_column: str = ""

    @property
    def has_missing_rule(self) -> bool:
        """Return True if there is a rule for values that are missing or unusable."""
        return bool(self.dropped_column) or self.missing_constant is not None

    def find_decimal_mark(self, column_name: str) -> str:
        """Return the decimal mark of a column; empty for plain numbers and for columns that are not of numbers."""
        return dict(self.numbers).get(column_name, "")


@dataclass(frozen=True, eq=False)
class Table:
    """A table of text cells, stripped of surrounding blanks.

    Attributes:
        frame: The cells, every column of text; a missing cell is the empty string.
        name: File name.
        encoding: Python's name of the encoding of the file.
        delimiter: Delimiter of fields; empty if there is one column.
        line_numbers: First file line of each row, counted from 1, shape (rows,), int64.
        notes: Notes for the user on the reading, sentences.
        files: If several files were joined, the first row and the name of each.
        line_word: Word for a line in messages.
        layouts: Layouts of the files; empty if unknown.
        times: Kinds of time of the columns of durations, dates or times, by name, if the file has types.
        booleans: Columns that the file's types declare as true or false.
        sheets: Names of the sheets of a workbook with several.
    """

    frame: pd.DataFrame
    name: str
    encoding: str
    delimiter: str
    line_numbers: IntArray
    notes: tuple[str, ...] = ()
    files: tuple[tuple[int, str], ...] = ()
    line_word: str = "line"
    layouts: tuple[FileLayout, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    booleans: frozenset[str] = frozenset()
    sheets: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the column names from left to right."""
        return tuple(str(column_name) for column_name in self.frame.columns)

    def get_line_number(self, row_index: int) -> int:
        """Return the first file line of a row; rows count from 0, lines from 1."""
        return int(self.line_numbers[row_index])

    def describe_row(self, row_index: int) -> str:
        """Return the location of a row as text, with the file if several were joined."""
        file_phrases = [
            f" of {shorten(file_name)}" for start_row, file_name in self.files if start_row <= row_index
        ]
        return f"{self.line_word} {self.get_line_number(row_index):,}{''.join(file_phrases[-1:])}"


def build_table(
    header_cells: Sequence[str],
    body_cells: pd.DataFrame | list[list[str]],
    line_numbers: IntArray,
    table_name: str,
    line_word: str = "line",
) -> Table:
    """Build a table from cells that were read elsewhere, such as from a workbook; check its header and drop blank rows.

    Args:
        header_cells: Column names.
        body_cells: Text, stripped; each row as long as the header.
        line_numbers: Line (or row of the sheet) of the header and of each row, shape (rows + 1,).
        table_name: File name, for messages.
        line_word: Word for such a line.

    Raises:
        InvalidInput: No header, no rows ...; all problems at once.
    """
    import pandas as pd

    table_notes: list[str] = []
    header_line_number = int(line_numbers[0])
    with Problems() as problems:
        column_names = check_names(list(header_cells), header_line_number, problems, table_notes)
        if not len(body_cells):
            header_location = f"line {header_line_number}" if header_line_number else ""
            problems.add("there are no rows", header_location, "Add one for each contribution")
    cell_frame = pd.DataFrame(body_cells, dtype=str)
    cell_frame.columns = pd.Index(column_names)
    cell_frame, line_of_row = drop_blank_rows(cell_frame, line_numbers[1:], table_notes)
    with Problems() as problems:
        check_header_row(column_names, cell_frame, line_of_row, header_line_number, problems, table_notes)
    return Table(cell_frame, table_name, "", "", line_of_row, tuple(table_notes), line_word=line_word)


def join_tables(tables: list[Table]) -> Table:
    """Join tables with the same columns, in any order, and keep each row's file for messages.

    One table is returned as it is.

    Raises:
        InvalidInput: The columns differ.
    """
    import pandas as pd

    first_table = tables[0]
    if len(tables) == 1:
        return first_table
    refuse_other_columns([(table.name, table.columns) for table in tables])
    joined_frame = pd.concat([table.frame[list(first_table.columns)] for table in tables], ignore_index=True)
    first_rows = np.cumsum([0, *(len(table.frame) for table in tables[:-1])])
    return Table(
        joined_frame, f"{first_table.name} and {len(tables) - 1} more", first_table.encoding,
        first_table.delimiter if len({table.delimiter for table in tables}) == 1 else "",
        np.concatenate([table.line_numbers for table in tables]),
        tuple(f"{shorten(table.name)}: {table_note}" for table in tables for table_note in table.notes),
        tuple((int(first_row), table.name) for first_row, table in zip(first_rows, tables, strict=True)),
        layouts=tuple(file_layout for table in tables for file_layout in table.layouts), **join_types(tables),
    )  # fmt: skip


def join_types(tables: Sequence[Table]) -> dict[str, Any]:
    """Return two fields of `Table`: columns that are times in any of the tables, and that are booleans in all."""
    times = {column_name: time_kind for table in tables for column_name, time_kind in table.times.items()}
    return {"times": times, "booleans": frozenset.intersection(*(table.booleans for table in tables))}


def drop_blank_rows(
    cell_frame: pd.DataFrame, line_of_row: IntArray, notes: list[str], further_blank_lines: Sequence[int] = ()
) -> tuple[pd.DataFrame, IntArray]:
    """Return the rows that are not blank, and their lines; add a note on the others.

    In a table of one column a blank row is a missing cell and stays. Raise InvalidInput if all rows are blank.

    Args:
        cell_frame: The cells.
        line_of_row: The line of each row.
        notes: List to which a note on blank rows is added.
        further_blank_lines: Blank lines that are not rows of the frame.
    """
    blank_row_mask = np.full(len(cell_frame), cell_frame.shape[1] > 1)
    for column_index in range(cell_frame.shape[1] if blank_row_mask.any() else 0):
        blank_row_mask &= (cell_frame.iloc[:, column_index] == "").to_numpy(bool)
    if blank_row_mask.all():
        first_blank_location = f"line {line_of_row[0]:,}"
        raise refuse("all rows under the header are blank", first_blank_location, "Choose a file with rows")
    if blank_line_numbers := sorted([*line_of_row[blank_row_mask].tolist(), *further_blank_lines]):
        rows_text = format_count(len(blank_line_numbers), "blank row was", "blank rows were")
        notes.append(f"{rows_text} left out (first: line {blank_line_numbers[0]:,}).")
    if not blank_row_mask.any():
        return cell_frame, line_of_row
    return cell_frame[~blank_row_mask].reset_index(drop=True), line_of_row[~blank_row_mask]
