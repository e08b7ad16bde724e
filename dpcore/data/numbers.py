"""Numbers from text cells: decimal points or commas, thousands marks, and cells that are not numbers.

The marks are determined once for a whole column, never cell by cell. The rules are SQL for DuckDB, both for a table in
memory and for a file.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import InputProblem
from dpcore.contributions import FloatArray
from dpcore.data.column_names import shorten
from dpcore.data.tables import BoolArray, Table

if TYPE_CHECKING:
    import duckdb

_PLAIN_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
"""Numbers whose marks are unambiguous."""
_NOT_FINITE = r"(?i:[+-]?(?:nan|inf|infinity)|n/?a|null|none|#n/?a|<na>)"
_SPACES = " '\u2019\u00a0\u202f"
_SPACED = f"[+-]?[1-9][0-9]{{0,2}}(?:[{_SPACES}][0-9]{{3}})+(?:[.,][0-9]*)?"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,6})?"
TEXT = float("-inf")
"""Code for text that is not a number; numbers that are not finite become positive infinity."""

Ask = Callable[[Mapping[str, str]], Mapping[str, bool]]
"""Function that tells for each of some SQL masks, by name, if it is true in any row."""


def _one_group(mark: str) -> str:
    """Return the pattern of numbers such as 1.234, in which the mark may be decimal or between thousands."""
    return rf"[+-]?[1-9][0-9]{{0,2}}\{mark}[0-9]{{3}}"


def _pattern(point: str) -> str:
    """Return the pattern of numbers with ``point`` as decimal mark and the other mark between thousands."""
    group = "," if point == "." else r"\."
    mark = r"\." if point == "." else ","
    integer_part = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+)"
    return rf"[+-]?(?:{integer_part}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}"


def _is(cells: str, pattern: str) -> str:
    return f"regexp_full_match({cells}, '{pattern.replace(chr(39), chr(39) * 2)}')"


def _as_double(cells: str) -> str:
    """Return the SQL of a cast in which numbers beyond float64, of either sign, become positive infinity."""
    number = f"TRY_CAST({cells} AS DOUBLE)"
    return f"CASE WHEN isinf({number}) THEN 'inf'::DOUBLE ELSE {number} END"


@dataclass(frozen=True)
class Marks:
    """The decimal and thousands marks of a column.

    Attributes:
        sql: SQL of the numbers, float64: null for a blank cell, `TEXT` for text, infinity if not finite.
        problem: The problem that points and commas are ambiguous in this column; None if they are not.
        note: Note on the reading of points and commas if another one was possible; else empty.
        decimal: Decimal mark, if it had to be determined; empty for plain numbers.
    """

    sql: str
    problem: InputProblem | None = None
    note: str = ""
    decimal: str = ""


def settle_marks(
    cells: str,
    ask: Ask,
    find_place: Callable[[str], str],
    column: str,
    delimiter: str,
    is_integer: bool = False,
) -> Marks:
    """Determine the marks of a column for all its cells, by one or two queries.

    A cell such as 1,5 or 1.234,5 or 1.234.567 decides. If all cells are like 1,234, the delimiter decides if it can (a
    comma-separated file has no unquoted decimal commas), with a note; else the column is refused. Points as in 1.234
    are decimal points, with a note, except in files with semicolons and in integer columns, where they are refused.

    Args:
        cells: SQL of the column, text without blanks around it; blank cells are empty or null.
        ask: Function that tells which masks are true in any row.
        find_place: Function that returns the first location where a mask is true; called only for messages.
        column: Name, for messages.
        delimiter: Delimiter of the file; empty if there is none.
        is_integer: True if the column must have integers.
    """
    odd = f"({cells} <> '' AND NOT {_is(cells, _PLAIN_NUMBER)}) OR {_is(cells, _one_group('.'))}"
    if not ask({"odd": odd})["odd"]:  # Plain numbers need two patterns instead of eight.
        return Marks(f"CASE WHEN {cells} <> '' THEN {_as_double(cells)} END")
    cells = f"replace({cells}, '\u2212', '-')"
    spaces = _SPACES.replace("'", "''")
    cells = f"CASE WHEN {_is(cells, _SPACED)} THEN translate({cells}, '{spaces}', '') ELSE {cells} END"
    cells = f"({cells})"
    either = {mark: _is(cells, _pattern(mark)) for mark in ".,"}
    group = {mark: _is(cells, _one_group(mark)) for mark in ".,"}
    only = {mark: f"({either[mark]} AND NOT {either[other_mark]})" for mark, other_mark in (".,", ",.")}
    counts = ask(
        {f"{mask_name}{m}": masks[m] for mask_name, masks in (("only", only), ("group", group)) for m in ".,"}
    )

    def locate(mark: str) -> str:
        return f"{find_place(f'{only[mark]} OR {group[mark]}')}, column {shorten(column)}"

    point, problem, note = _decide_mark(counts, locate, column, delimiter, is_integer)
    plain_number = f"replace(replace({cells}, '{',' if point == '.' else '.'}', ''), ',', '.')"
    sql = (
        f"CASE WHEN {cells} = '' THEN NULL WHEN {either[point]} THEN {_as_double(plain_number)} "
        f"WHEN {_is(cells, _NOT_FINITE)} THEN 'inf'::DOUBLE WHEN {cells} IS NOT NULL THEN '-inf'::DOUBLE END"
    )
    return Marks(sql, problem, note, point)


def read_cell_sql(cell: str, first_mark: str) -> str:
    """Return the SQL of a cell as a number, read independently of other cells; null if it is not a number.

    Args:
        cell: SQL of the cell, text without blanks around it.
        first_mark: Decimal mark for ambiguous cells such as 1,234.
    """
    spaces = _SPACES.replace("'", "''")
    text = f"replace({cell}, '\u2212', '-')"
    text = f"(CASE WHEN {_is(text, _SPACED)} THEN translate({text}, '{spaces}', '') ELSE {text} END)"
    readings = []
    for point in (first_mark, "," if first_mark == "." else "."):
        plain_number = f"replace(replace({text}, '{',' if point == '.' else '.'}', ''), ',', '.')"
        readings.append(f"WHEN {_is(text, _pattern(point))} THEN TRY_CAST({plain_number} AS DOUBLE)")
    return f"CASE WHEN {_is(text, _PLAIN_NUMBER)} THEN TRY_CAST({text} AS DOUBLE) {' '.join(readings)} END"


def _decide_mark(
    exists: Mapping[str, bool], locate: Callable[[str], str], column: str, delimiter: str, is_integer: bool
) -> tuple[str, InputProblem | None, str]:
    """Decide the decimal mark; return it with a problem or None, and a note or an empty text."""
    if exists["only."] and exists["only,"]:
        message = "numbers with decimal points and numbers with decimal commas stand in one column"
        return (
            ".",
            InputProblem(f"{message}; the first with a comma", locate(","), "Write all in one way"),
            "",
        )
    points, commas = exists["group."], exists["group,"]
    if exists["only."] or exists["only,"] or not (points or commas):
        return ("," if exists["only,"] else "."), None, ""
    example, mark = ("1.234", ".") if points else ("1,234", ",")
    sentence = f"Column {shorten(column)}: numbers like {example} are read"
    if commas and not points and delimiter == ",":
        return ".", None, f"{sentence} with a comma between thousands."
    if not is_integer and points and not commas and delimiter != ";":
        return ".", None, f"{sentence} with a decimal point, not with a point between thousands."
    if not is_integer and commas and not points and delimiter == ";":
        return ",", None, f"{sentence} with a decimal comma, not with a comma between thousands."
    message = f"numbers like {example} can be read with decimals or with thousands, and no cell settles which"
    return ".", InputProblem(message, locate(mark), "Write them without marks between thousands"), ""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A text column read as numbers; all arrays have one entry per cell.

    Attributes:
        values: float64; NaN if one of the masks below is set, or the marks are ambiguous.
        blank: Mask of blank cells.
        not_finite: Mask of NaN, inf, null and the like, and of numbers beyond float64.
        text: Mask of all other cells that are not numbers.
        problem: As in `Marks`.
        note: As in `Marks`.
        decimal: As in `Marks`.
    """

    values: FloatArray
    blank: BoolArray
    not_finite: BoolArray
    text: BoolArray
    problem: InputProblem | None = None
    note: str = ""
    decimal: str = ""


@functools.cache
def _memory() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB without files, opened once, as that takes ten times as long as a query on a thousand cells."""
    import duckdb

    connection = duckdb.connect(config={"threads": "1", "enable_external_access": "false"})
    atexit.register(connection.close)
    return connection


def read_numbers(
    table: Table, column: str, max_rows: int | None = None, *, is_integer: bool = False
) -> Numbers:
    """Read a column of text as numbers, with the marks of `settle_marks`.

    Args:
        table: The table.
        column: One of its columns.
        max_rows: Number of rows to read from the first on; None for all.
        is_integer: True if the column must have integers.
    """
    import pyarrow as pa

    cells = table.frame[column].iloc[:max_rows]
    with _memory().cursor() as connection:
        connection.register("cells", pa.table({"x": pa.array(cells, pa.string(), from_pandas=True)}))

        def ask(masks: Mapping[str, str]) -> dict[str, bool]:
            row = connection.execute(
                f"SELECT {', '.join(f'bool_or({mask})' for mask in masks.values())} FROM cells"
            ).fetchone()
            return dict(zip(masks, map(bool, row or [False] * len(masks)), strict=True))

        def find_place(mask: str) -> str:
            row = connection.execute(
                f"SELECT n FROM (SELECT row_number() OVER () - 1 AS n, {mask} AS bad FROM cells) WHERE bad LIMIT 1"
            ).fetchone()
            assert row is not None
            return table.describe_row(int(row[0]))

        marks = settle_marks("x", ask, find_place, column, table.delimiter, is_integer)
        columns = connection.execute(f"SELECT {marks.sql} AS v, x = '' AS blank FROM cells").fetchnumpy()
    values = np.ma.filled(np.ma.asarray(columns["v"], np.float64), np.nan)
    blank = np.asarray(columns["blank"], bool)
    text, not_finite = values == TEXT, values == np.inf
    values = np.where(text | not_finite | (marks.problem is not None), np.nan, values)
    return Numbers(values, blank, not_finite, text, marks.problem, marks.note, marks.decimal)
