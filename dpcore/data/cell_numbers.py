"""Numbers in the cells of a table of text.

Numbers may have decimal points or commas, and thousands marks, which are determined once for a whole column. The rules
are SQL for DuckDB, both for a table in memory and for a file.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import InputProblem
from dpcore.contributions import FloatArray
from dpcore.data.column_names import shorten
from dpcore.data.tables import Table

if TYPE_CHECKING:
    import duckdb

BoolArray = npt.NDArray[np.bool_]
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


def _write_group_pattern(thousands_mark: str) -> str:
    """Return the regular expression of numbers such as 1.234: one mark before three digits.

    The mark may be decimal or stand between thousands.
    """
    return rf"[+-]?[1-9][0-9]{{0,2}}\{thousands_mark}[0-9]{{3}}"


def _write_pattern(decimal_mark: str) -> str:
    """Return the regular expression of numbers with this decimal mark and the other one between thousands."""
    thousands_pattern = "," if decimal_mark == "." else r"\."
    decimal_pattern = r"\." if decimal_mark == "." else ","
    int_pattern = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{thousands_pattern}[0-9]{{3}})+)"
    return rf"[+-]?(?:{int_pattern}(?:{decimal_pattern}[0-9]*)?|{decimal_pattern}[0-9]+){_EXPONENT_PATTERN}"


def _match_sql(cells_sql: str, regular_expression: str) -> str:
    """Return the SQL condition that cells match a pattern completely."""
    return f"regexp_full_match({cells_sql}, '{regular_expression.replace(chr(39), chr(39) * 2)}')"


def _read_word_sql(cells_sql: str) -> str:
    """Return the WHEN clauses of an SQL CASE that turn yes and true into 1, and no and false into 0."""
    word_lists_sql = [", ".join(f"'{word}'" for word in words) for words in (YES_WORDS, NO_WORDS)]
    yes_sql, no_sql = (f"lower({cells_sql}) IN ({word_list_sql})" for word_list_sql in word_lists_sql)
    return f"WHEN {yes_sql} THEN 1.0::DOUBLE WHEN {no_sql} THEN 0.0::DOUBLE"


def _cast_sql(cells_sql: str) -> str:
    """Return the SQL of cells as float64: infinity for numbers beyond it, of either sign, and null for text."""
    number_sql = f"TRY_CAST({cells_sql} AS DOUBLE)"
    return f"CASE WHEN isinf({number_sql}) THEN 'inf'::DOUBLE ELSE {number_sql} END"


def _remove_spaces_sql(cells_sql: str) -> str:
    """Return the SQL of cells with an ordinary minus sign, and without blanks or apostrophes between thousands."""
    text_sql, spaces_text = f"replace({cells_sql}, '\u2212', '-')", _SPACES.replace("'", "''")
    is_spaced_sql = _match_sql(text_sql, _SPACED_PATTERN)
    return f"(CASE WHEN {is_spaced_sql} THEN translate({text_sql}, '{spaces_text}', '') ELSE {text_sql} END)"


def _write_number_sql(cells_sql: str, decimal_mark: str) -> str:
    """Return the SQL of cells with a point as the decimal mark and without marks between thousands."""
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
    """Determine the decimal and thousands marks of a column from all its cells, by one or two queries.

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
    has_group_sql = _match_sql(cells_sql, _write_group_pattern("."))
    is_odd_sql = f"({cells_sql} <> '' AND NOT {_match_sql(cells_sql, _PLAIN_PATTERN)}) OR {has_group_sql}"
    if not check_masks({"odd": is_odd_sql})["odd"]:  # Plain numbers need two patterns instead of eight.
        return Marks(f"CASE WHEN {cells_sql} <> '' THEN {_cast_sql(cells_sql)} END")
    cells_sql = _remove_spaces_sql(cells_sql)
    match_by_mark = {mark: _match_sql(cells_sql, _write_pattern(mark)) for mark in ".,"}
    group_by_mark = {mark: _match_sql(cells_sql, _write_group_pattern(mark)) for mark in ".,"}
    only_by_mark = {
        mark: f"({match_by_mark[mark]} AND NOT {match_by_mark[other]})" for mark, other in (".,", ",.")
    }
    mask_sql_by_name = {f"only{mark}": only_by_mark[mark] for mark in ".,"}
    mask_sql_by_name["words"] = "false" if is_integer else _match_sql(cells_sql, _WORD_PATTERN)
    any_match_sql = f"{match_by_mark['.']} OR {match_by_mark[',']}"
    mask_sql_by_name["beside"] = f"(({any_match_sql}) AND {cells_sql} NOT IN ('0', '1', '0.0', '1.0'))"
    any_by_mask = check_masks(mask_sql_by_name | {f"group{mark}": group_by_mark[mark] for mark in ".,"})

    def find_location(mark: str) -> str:
        """Return the location of the first cell that has, or may have, this decimal mark."""
        return f"{find_place(f'{only_by_mark[mark]} OR {group_by_mark[mark]}')}, column {shorten(column)}"

    decimal_mark, problem, note_text = _decide_mark(any_by_mask, find_location, column, delimiter, is_integer)
    word_cases_sql = ""
    if any_by_mask["words"]:
        word_cases_sql = _read_word_sql(cells_sql)
        note_text = f"Column {shorten(column)}: yes counts as 1, and no as 0."
        if any_by_mask["beside"]:
            word_location = f"{find_place(mask_sql_by_name['words'])}, column {shorten(column)}"
            word_message = "yes or no stands in a column with other numbers than 0 and 1"
            problem = InputProblem(word_message, word_location, "Write all in one way")
    number_sql = (
        f"CASE WHEN {cells_sql} = '' THEN NULL {word_cases_sql} WHEN {match_by_mark[decimal_mark]} THEN "
        f"{_cast_sql(_write_number_sql(cells_sql, decimal_mark))} "
        f"WHEN {_match_sql(cells_sql, _NOT_FINITE_PATTERN)} THEN 'inf'::DOUBLE "
        f"WHEN {cells_sql} IS NOT NULL THEN '-inf'::DOUBLE END"
    )
    return Marks(number_sql, problem, note_text, decimal_mark)


def read_cell_sql(cell_sql: str, preferred_mark: str) -> str:
    """Return the SQL of a cell as a number, whatever the other cells are.

    It is 1 for yes, 0 for no, and null for other text.

    Args:
        cell_sql: SQL of the cell, text without blanks around it.
        preferred_mark: Decimal mark for ambiguous cells such as 1,234.
    """
    text_sql = _remove_spaces_sql(cell_sql)
    mark_case_sqls = [
        f"WHEN {_match_sql(text_sql, _write_pattern(decimal_mark))} "
        f"THEN TRY_CAST({_write_number_sql(text_sql, decimal_mark)} AS DOUBLE)"
        for decimal_mark in (".,", ",.")[preferred_mark == ","]
    ]
    plain_case_sql = f"WHEN {_match_sql(text_sql, _PLAIN_PATTERN)} THEN TRY_CAST({text_sql} AS DOUBLE)"
    return f"CASE {_read_word_sql(text_sql)} {plain_case_sql} {' '.join(mark_case_sqls)} END"


def _decide_mark(
    any_by_mask: dict[str, bool],
    find_location: Callable[[str], str],
    column: str,
    delimiter: str,
    is_integer: bool,
) -> tuple[str, InputProblem | None, str]:
    """Decide the decimal mark; return (mark, a problem or None, a note or an empty text)."""
    if any_by_mask["only."] and any_by_mask["only,"]:
        message = "numbers with decimal points and with decimal commas stand in one column"
        return ".", InputProblem(message, find_location(","), "Write all in one way"), ""
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
    return ".", InputProblem(message, find_location(mark), "Write them without marks between thousands"), ""


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
    """Return a DuckDB connection without files, opened once: opening takes ten times as long as a small query."""
    import duckdb

    connection = duckdb.connect(config={"threads": "1", "enable_external_access": "false"})
    atexit.register(connection.close)
    return connection


def read_numbers(
    table: Table, column_name: str, max_rows: int | None = None, *, is_integer: bool = False
) -> Numbers:
    """Read all or the first cells of a text column as numbers, with the marks that `settle_marks` determines.

    The marks are determined from the cells that are read.

    Args:
        table: The table.
        column_name: One of its columns.
        max_rows: Number of rows to read from the first on; None for all.
        is_integer: True if the column must have integers.
    """
    import pyarrow as pa

    column_cells = table.frame[column_name].iloc[:max_rows]
    with _open_connection().cursor() as connection:
        connection.register("cells", pa.table({"x": pa.array(column_cells, pa.string(), from_pandas=True)}))

        def check_masks(masks_by_name: Mapping[str, str]) -> dict[str, bool]:
            """Return for each SQL mask, by name, whether it is true in any cell."""
            anywhere_sql = ", ".join(f"bool_or({mask_sql})" for mask_sql in masks_by_name.values())
            (mask_values,) = connection.execute(f"SELECT {anywhere_sql} FROM cells").fetchall()
            return dict(zip(masks_by_name, map(bool, mask_values), strict=True))

        def find_place(mask_sql: str) -> str:
            """Return the location of the first row for which an SQL mask is true."""
            rows_sql = f"SELECT row_number() OVER () - 1 AS n, {mask_sql} AS bad FROM cells"
            ((row_index,),) = connection.execute(f"SELECT n FROM ({rows_sql}) WHERE bad LIMIT 1").fetchall()
            return table.describe_row(int(row_index))

        marks = settle_marks("x", check_masks, find_place, column_name, table.delimiter, is_integer)
        numbers_sql = f"SELECT {marks.number_sql} AS v, x = '' AS blank FROM cells"
        result_columns = connection.execute(numbers_sql).fetchnumpy()
    values = np.ma.filled(np.ma.asarray(result_columns["v"], np.float64), np.nan)
    text_mask, not_finite_mask = values == TEXT_CODE, values == np.inf
    values = np.where(text_mask | not_finite_mask | (marks.problem is not None), np.nan, values)
    return Numbers(values, np.asarray(result_columns["blank"], bool), not_finite_mask, text_mask, marks)
