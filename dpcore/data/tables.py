"""Tables of text cells: their lines, how they were read out of files, and the numbers in their cells.

Nothing is coerced on reading: a user called "NA" stays a user. Messages name lines, and never quote cells that may
contain a user id. Numbers may have decimal points or commas, and thousands marks, which are determined once for a
whole column. The rules are SQL for DuckDB, both for a table in memory and for a file.
"""

from __future__ import annotations

import atexit
import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.checks import InputProblem, Problems, refuse
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.column_names import check_header_row, check_names, refuse_other_columns, shorten
from dpcore.data.periods import Periods

if TYPE_CHECKING:
    import duckdb
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
    """The layout of one file.

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
    def by_name(cls, name: str) -> FileLayout:
        """Build the usual layout of a file of this name, which has not been read yet."""
        name_ending = "." + name.lower().rpartition(".")[2]
        separator = "\t" if name_ending in (".tsv", ".tab") else ","
        return cls(name, _KINDS_BY_ENDING.get(name_ending, FileKind.TEXT), separator)


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
        yes: The cell of values that counts as 1, in any case; all other filled ones count as 0. Empty to read numbers.
        periods: Periods of time, each of which makes a user another unit; None for the user as the unit.
    """

    files: tuple[FileLayout, ...]
    numbers: tuple[tuple[str, str], ...] = ()
    missing_is_a_user: bool = False
    filled: tuple[str, ...] = ()
    dropped_column: str = ""
    missing_constant: float | None = None
    share_column: str = ""
    yes: str = ""
    periods: Periods | None = None

    @property
    def has_missing_rule(self) -> bool:
        """Return True if it is settled what happens to values that are missing or unusable."""
        return bool(self.dropped_column) or self.missing_constant is not None

    def decimal(self, column: str) -> str:
        """Return the decimal mark of a column of numbers; empty for plain numbers."""
        return dict(self.numbers).get(column, "")


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
    lines: IntArray
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
        return tuple(str(name) for name in self.frame.columns)

    def line(self, row: int) -> int:
        """Return the first file line of a row; rows are counted from 0."""
        return int(self.lines[row])

    def describe_row(self, row: int) -> str:
        """Return the location of a row as text, with the file if several were joined."""
        file_phrases = [f" of {shorten(name)}" for start_row, name in self.files if start_row <= row]
        return f"{self.line_word} {self.line(row):,}{''.join(file_phrases[-1:])}"


def build_table(
    header: Sequence[str],
    cells: pd.DataFrame | list[list[str]],
    lines: IntArray,
    name: str,
    line_word: str = "line",
) -> Table:
    """Build a table from cells that were read elsewhere, such as from a workbook, with the same checks.

    Args:
        header: Column names.
        cells: Text, stripped; each row as long as the header.
        lines: Line (or row of the sheet) of the header and of each row, shape (rows + 1,).
        name: File name, for messages.
        line_word: Word for such a line.

    Raises:
        InvalidInput: No header, no rows ...; all problems at once.
    """
    import pandas as pd

    notes: list[str] = []
    header_line = int(lines[0])
    with Problems() as problems:
        names = check_names(list(header), header_line, problems, notes)
        if not len(cells):
            location = f"line {header_line}" if header_line else ""
            problems.add("there are no rows", location, "Add one for each contribution")
    frame = pd.DataFrame(cells, dtype=str)
    frame.columns = pd.Index(names)
    frame, row_lines = drop_blank_rows(frame, lines[1:], notes)
    with Problems() as problems:
        check_header_row(names, frame, row_lines, header_line, problems, notes)
    return Table(frame, name, "", "", row_lines, tuple(notes), line_word=line_word)


def join_tables(tables: list[Table]) -> Table:
    """Join tables with the same columns, in any order; locations then name the file. One table is returned as it is.

    Raises:
        InvalidInput: The columns differ.
    """
    import pandas as pd

    first_table = tables[0]
    if len(tables) == 1:
        return first_table
    refuse_other_columns([(table.name, table.columns) for table in tables])
    frame = pd.concat([table.frame[list(first_table.columns)] for table in tables], ignore_index=True)
    first_rows = np.cumsum([0, *(len(table.frame) for table in tables[:-1])])
    return Table(
        frame, f"{first_table.name} and {len(tables) - 1} more", first_table.encoding,
        first_table.delimiter if len({table.delimiter for table in tables}) == 1 else "",
        np.concatenate([table.lines for table in tables]),
        tuple(f"{shorten(table.name)}: {note}" for table in tables for note in table.notes),
        tuple((int(first_row), table.name) for first_row, table in zip(first_rows, tables, strict=True)),
        layouts=tuple(file_layout for table in tables for file_layout in table.layouts), **join_types(tables),
    )  # fmt: skip


def join_types(tables: Sequence[Table]) -> dict[str, Any]:
    """Return as fields of `Table` the columns that are times in any of the tables, and booleans in all of them."""
    times = {column: time_type for table in tables for column, time_type in table.times.items()}
    return {"times": times, "booleans": frozenset.intersection(*(table.booleans for table in tables))}


def drop_blank_rows(
    frame: pd.DataFrame, row_lines: IntArray, notes: list[str], further_blank_lines: Sequence[int] = ()
) -> tuple[pd.DataFrame, IntArray]:
    """Return the rows that are not blank, and their lines; in one column a blank row is a missing cell and stays.

    Args:
        frame: The cells.
        row_lines: The line of each row.
        notes: List to which a note on blank rows is added.
        further_blank_lines: Blank lines that are not rows of the frame.
    """
    blank_mask = np.full(len(frame), frame.shape[1] > 1)
    for column_index in range(frame.shape[1] if blank_mask.any() else 0):
        blank_mask &= (frame.iloc[:, column_index] == "").to_numpy(bool)
    if blank_mask.all():
        location = f"line {row_lines[0]:,}"
        raise refuse("all rows under the header are blank", location, "Choose a file with rows")
    if blank_lines := sorted([*row_lines[blank_mask].tolist(), *further_blank_lines]):
        rows_text = wording.counted(len(blank_lines), "blank row was", "blank rows were")
        notes.append(f"{rows_text} left out (first: line {blank_lines[0]:,}).")
    if not blank_mask.any():
        return frame, row_lines
    return frame[~blank_mask].reset_index(drop=True), row_lines[~blank_mask]


_PLAIN_PATTERN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
"""Numbers whose marks are unambiguous."""
_NOT_FINITE_PATTERN = r"(?i:[+-]?(?:nan|inf|infinity)|n/?a|null|none|#n/?a|<na>)"
YES_WORDS, NO_WORDS = ("true", "yes"), ("false", "no")
"""Words that count as 1 and as 0 in a column of values, in any case."""
_WORD_PATTERN = f"(?i:{'|'.join((*YES_WORDS, *NO_WORDS))})"
_SPACES = " '\u2019\u00a0\u202f"
_SPACED_PATTERN = f"[+-]?[1-9][0-9]{{0,2}}(?:[{_SPACES}][0-9]{{3}})+(?:[.,][0-9]*)?"
_EXPONENT_PATTERN = r"(?:[eE][+-]?[0-9]{1,6})?"
TEXT_CODE = float("-inf")
"""Code for text that is not a number; numbers that are not finite become positive infinity."""

MaskCheck = Callable[[Mapping[str, str]], dict[str, bool]]
"""Function that tells for each of some SQL masks, by name, if it is true in any row."""


def _write_group_pattern(mark: str) -> str:
    """Return the regular expression of numbers such as 1.234, with one mark, which may be decimal or part thousands."""
    return rf"[+-]?[1-9][0-9]{{0,2}}\{mark}[0-9]{{3}}"


def _write_pattern(decimal_mark: str) -> str:
    """Return the pattern of numbers with ``decimal_mark`` as decimal mark and the other mark between thousands."""
    thousands_pattern = "," if decimal_mark == "." else r"\."
    decimal_pattern = r"\." if decimal_mark == "." else ","
    int_pattern = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{thousands_pattern}[0-9]{{3}})+)"
    return rf"[+-]?(?:{int_pattern}(?:{decimal_pattern}[0-9]*)?|{decimal_pattern}[0-9]+){_EXPONENT_PATTERN}"


def _match_sql(cells_sql: str, pattern: str) -> str:
    """Return the SQL condition that cells match a pattern completely."""
    return f"regexp_full_match({cells_sql}, '{pattern.replace(chr(39), chr(39) * 2)}')"


def _read_word_sql(cells_sql: str) -> str:
    """Return the WHEN clauses of a CASE that read cells that say yes or no as 1 and 0."""
    word_lists_sql = [", ".join(f"'{word}'" for word in words) for words in (YES_WORDS, NO_WORDS)]
    yes_sql, no_sql = (f"lower({cells_sql}) IN ({list_sql})" for list_sql in word_lists_sql)
    return f"WHEN {yes_sql} THEN 1.0::DOUBLE WHEN {no_sql} THEN 0.0::DOUBLE"


def _cast_sql(cells_sql: str) -> str:
    """Return the SQL of cells as float64; numbers beyond it, of either sign, become infinity, and text null."""
    number_sql = f"TRY_CAST({cells_sql} AS DOUBLE)"
    return f"CASE WHEN isinf({number_sql}) THEN 'inf'::DOUBLE ELSE {number_sql} END"


def _remove_spaces_sql(cells_sql: str) -> str:
    """Return the SQL of cells with an ordinary minus sign, and without blanks and the like between thousands."""
    text_sql, spaces_text = f"replace({cells_sql}, '\u2212', '-')", _SPACES.replace("'", "''")
    is_spaced_sql = _match_sql(text_sql, _SPACED_PATTERN)
    return f"(CASE WHEN {is_spaced_sql} THEN translate({text_sql}, '{spaces_text}', '') ELSE {text_sql} END)"


def _write_number_sql(cells_sql: str, decimal_mark: str) -> str:
    """Return the SQL of cells with a point for this decimal mark, and without the other mark, which parts thousands."""
    return f"replace(replace({cells_sql}, '{',' if decimal_mark == '.' else '.'}', ''), ',', '.')"


@dataclass(frozen=True)
class Marks:
    """The decimal and thousands marks of a column.

    Attributes:
        number_sql: SQL of the numbers, float64: null for a blank cell, `TEXT_CODE` for text, infinity if not finite.
        problem: The problem that points and commas are ambiguous in this column; None if they are not.
        note_text: Note on the reading of points and commas if another one was possible; else empty.
        decimal_mark: Decimal mark, if it had to be determined; empty for plain numbers.
    """

    number_sql: str
    problem: InputProblem | None = None
    note_text: str = ""
    decimal_mark: str = ""


def settle_marks(
    cells_sql: str,
    check_masks: MaskCheck,
    find_place: Callable[[str], str],
    column: str,
    delimiter: str,
    is_integer: bool = False,
) -> Marks:
    """Determine the decimal and thousands marks of a column for all its cells, by one or two queries.

    A cell such as 1,5 or 1.234,5 or 1.234.567 decides. If all cells are like 1,234, the delimiter decides if it can (a
    comma-separated file has no unquoted decimal commas), with a note; else the column is refused. Points as in 1.234
    are decimal points, with a note, except in files with semicolons and in integer columns, where they are refused.

    Args:
        cells_sql: SQL of the column, text without blanks around it; blank cells are empty or null.
        check_masks: Function that tells which masks are true in any row.
        find_place: Function that returns the first location where a mask is true; called only for messages.
        column: Name, for messages.
        delimiter: Delimiter of the file; empty if there is none.
        is_integer: True if the column must have integers.
    """
    group_sql = _match_sql(cells_sql, _write_group_pattern("."))
    odd_sql = f"({cells_sql} <> '' AND NOT {_match_sql(cells_sql, _PLAIN_PATTERN)}) OR {group_sql}"
    if not check_masks({"odd": odd_sql})["odd"]:  # Plain numbers need two patterns instead of eight.
        return Marks(f"CASE WHEN {cells_sql} <> '' THEN {_cast_sql(cells_sql)} END")
    cells_sql = _remove_spaces_sql(cells_sql)
    match_sqls = {mark: _match_sql(cells_sql, _write_pattern(mark)) for mark in ".,"}
    group_sqls = {mark: _match_sql(cells_sql, _write_group_pattern(mark)) for mark in ".,"}
    only_sqls = {mark: f"({match_sqls[mark]} AND NOT {match_sqls[other]})" for mark, other in (".,", ",.")}
    masks = {f"only{mark}": only_sqls[mark] for mark in ".,"}
    masks["words"] = "false" if is_integer else _match_sql(cells_sql, _WORD_PATTERN)
    any_match_sql = f"{match_sqls['.']} OR {match_sqls[',']}"
    masks["beside"] = f"(({any_match_sql}) AND {cells_sql} NOT IN ('0', '1', '0.0', '1.0'))"
    any_by_mask = check_masks(masks | {f"group{mark}": group_sqls[mark] for mark in ".,"})

    def find_location(mark: str) -> str:
        """Return the location of the first cell that needs this decimal mark or may have it."""
        return f"{find_place(f'{only_sqls[mark]} OR {group_sqls[mark]}')}, column {shorten(column)}"

    decimal_mark, problem, note_text = _decide_mark(any_by_mask, find_location, column, delimiter, is_integer)
    word_cases_sql = ""
    if any_by_mask["words"]:
        word_cases_sql = _read_word_sql(cells_sql)
        note_text = f"Column {shorten(column)}: yes counts as 1, and no as 0."
        if any_by_mask["beside"]:
            location = f"{find_place(masks['words'])}, column {shorten(column)}"
            message = "yes or no stands in a column with other numbers than 0 and 1"
            problem = InputProblem(message, location, "Write all in one way")
    number_sql = (
        f"CASE WHEN {cells_sql} = '' THEN NULL {word_cases_sql} WHEN {match_sqls[decimal_mark]} THEN "
        f"{_cast_sql(_write_number_sql(cells_sql, decimal_mark))} "
        f"WHEN {_match_sql(cells_sql, _NOT_FINITE_PATTERN)} THEN 'inf'::DOUBLE "
        f"WHEN {cells_sql} IS NOT NULL THEN '-inf'::DOUBLE END"
    )
    return Marks(number_sql, problem, note_text, decimal_mark)


def read_cell_sql(cell_sql: str, first_mark: str) -> str:
    """Return the SQL of a cell as a number, read by itself; 1 for yes, 0 for no, null for other text.

    Args:
        cell_sql: SQL of the cell, text without blanks around it.
        first_mark: Decimal mark for ambiguous cells such as 1,234.
    """
    text_sql = _remove_spaces_sql(cell_sql)
    mark_cases = [
        f"WHEN {_match_sql(text_sql, _write_pattern(decimal_mark))} "
        f"THEN TRY_CAST({_write_number_sql(text_sql, decimal_mark)} AS DOUBLE)"
        for decimal_mark in (".,", ",.")[first_mark == ","]
    ]
    plain_case = f"WHEN {_match_sql(text_sql, _PLAIN_PATTERN)} THEN TRY_CAST({text_sql} AS DOUBLE)"
    return f"CASE {_read_word_sql(text_sql)} {plain_case} {' '.join(mark_cases)} END"


def _decide_mark(
    any_by_mask: dict[str, bool], locate: Callable[[str], str], column: str, delimiter: str, is_integer: bool
) -> tuple[str, InputProblem | None, str]:
    """Decide the decimal mark; return it, a problem or None, and a note, which is empty for none."""
    if any_by_mask["only."] and any_by_mask["only,"]:
        message = "numbers with decimal points and with decimal commas stand in one column"
        return ".", InputProblem(message, locate(","), "Write all in one way"), ""
    has_points, has_commas = any_by_mask["group."], any_by_mask["group,"]  # cells such as 1.234 and 1,234
    if any_by_mask["only."] or any_by_mask["only,"] or not (has_points or has_commas):
        return ("," if any_by_mask["only,"] else "."), None, ""
    example_text, mark = ("1.234", ".") if has_points else ("1,234", ",")
    is_decimal = not is_integer and has_points != has_commas and has_commas == (delimiter == ";")
    if is_decimal or (has_commas and not has_points and delimiter == ","):
        place_text = "before decimals" if is_decimal else "between thousands"
        decimal_mark = mark if is_decimal else "."
        note_text = f"Column {shorten(column)}: numbers like {example_text} have their mark {place_text}."
        return decimal_mark, None, note_text
    message = f"numbers like {example_text} can be read with decimals or with thousands"
    return ".", InputProblem(message, locate(mark), "Write them without marks between thousands"), ""


MAX_NUMBER = 1e100
"""Largest magnitude of a number: a cell beyond it holds none. So sums of numbers and of squares are finite."""
NUMBER_TEXT = "number up to ±1e100"


@dataclass(frozen=True, eq=False)
class Numbers:
    """A text column read as numbers; all arrays have one entry per cell.

    Attributes:
        values: float64; NaN if one of the masks below is set, or the marks are ambiguous.
        blank_mask: Mask of blank cells.
        not_finite_mask: Mask of NaN, inf, null and the like, and of numbers beyond float64.
        text_mask: Mask of all other cells that are not numbers.
        marks: The marks by which they were read.
    """

    values: FloatArray
    blank_mask: BoolArray
    not_finite_mask: BoolArray
    text_mask: BoolArray
    marks: Marks


@functools.cache
def _open_connection() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB without files, opened once, as that takes ten times as long as a query on a thousand cells."""
    import duckdb

    connection = duckdb.connect(config={"threads": "1", "enable_external_access": "false"})
    atexit.register(connection.close)
    return connection


def read_numbers(
    table: Table, column: str, max_rows: int | None = None, *, is_integer: bool = False
) -> Numbers:
    """Read the first cells or all of a text column as numbers, with the marks of `settle_marks`.

    Args:
        table: The table.
        column: One of its columns.
        max_rows: Number of rows to read from the first on; None for all.
        is_integer: True if the column must have integers.
    """
    import pyarrow as pa

    cells = table.frame[column].iloc[:max_rows]
    with _open_connection().cursor() as connection:
        connection.register("cells", pa.table({"x": pa.array(cells, pa.string(), from_pandas=True)}))

        def check_masks(masks_by_name: Mapping[str, str]) -> dict[str, bool]:
            """Return by name whether each SQL mask is true in any cell."""
            anywhere_sql = ", ".join(f"bool_or({mask})" for mask in masks_by_name.values())
            (mask_values,) = connection.execute(f"SELECT {anywhere_sql} FROM cells").fetchall()
            return dict(zip(masks_by_name, map(bool, mask_values), strict=True))

        def find_place(mask_sql: str) -> str:
            """Return the location of the first row for which an SQL mask is true."""
            rows_sql = f"SELECT row_number() OVER () - 1 AS n, {mask_sql} AS bad FROM cells"
            ((row_index,),) = connection.execute(f"SELECT n FROM ({rows_sql}) WHERE bad LIMIT 1").fetchall()
            return table.describe_row(int(row_index))

        marks = settle_marks("x", check_masks, find_place, column, table.delimiter, is_integer)
        numbers_sql = f"SELECT {marks.number_sql} AS v, x = '' AS blank FROM cells"
        result_columns = connection.execute(numbers_sql).fetchnumpy()
    values = np.ma.filled(np.ma.asarray(result_columns["v"], np.float64), np.nan)
    text_mask, not_finite_mask = values == TEXT_CODE, values == np.inf
    values = np.where(text_mask | not_finite_mask | (marks.problem is not None), np.nan, values)
    return Numbers(values, np.asarray(result_columns["blank"], bool), not_finite_mask, text_mask, marks)
