"""Numbers out of text cells: decimal points or commas, thousands marks, and what is no number.

The marks are settled once for a whole column, never cell by cell. The rules are SQL for DuckDB, whether the cells stand
in a table in memory or in a file.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.errors import InputProblem
from dpcore.contributions import FloatArray
from dpcore.data.column_names import shown
from dpcore.data.tables import BoolArray, Table

if TYPE_CHECKING:
    import duckdb

_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
"""Numbers that need no settling of marks."""
_NOT_FINITE = r"(?i:[+-]?(?:nan|inf|infinity)|n/?a|null|none|#n/?a|<na>)"
_SPACES = " '\u2019\u00a0\u202f"
_SPACED = f"[+-]?[1-9][0-9]{{0,2}}(?:[{_SPACES}][0-9]{{3}})+(?:[.,][0-9]*)?"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,6})?"
TEXT = float("-inf")
"""Stands for text that is no number; what is a number but not finite becomes the positive infinity."""

Ask = Callable[[Mapping[str, str]], Mapping[str, bool]]
"""Whether each of some masks in SQL, by name, is true of any row."""


def _one_group(mark: str) -> str:
    """Return the numbers such as 1.234, which can be read with decimals or with thousands."""
    return rf"[+-]?[1-9][0-9]{{0,2}}\{mark}[0-9]{{3}}"


def _pattern(point: str) -> str:
    """Return the numbers with ``point`` before the decimals, and the other mark between full groups of thousands."""
    group = "," if point == "." else r"\."
    mark = r"\." if point == "." else ","
    before = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+)"
    return rf"[+-]?(?:{before}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}"


def _is(cells: str, pattern: str) -> str:
    return f"regexp_full_match({cells}, '{pattern.replace(chr(39), chr(39) * 2)}')"


def _as_double(cells: str) -> str:
    """Return a cast for which every number beyond float64, of either sign, is the positive infinity."""
    number = f"TRY_CAST({cells} AS DOUBLE)"
    return f"CASE WHEN isinf({number}) THEN 'inf'::DOUBLE ELSE {number} END"


@dataclass(frozen=True)
class Marks:
    """How the cells of a column are read.

    Attributes:
        sql: The numbers, float64: null for a blank cell, `TEXT` for text, infinity for what is not finite.
        problem: Why points and commas cannot be told apart in this column; None where they can.
        note: How points and commas were read where another reading was thinkable; else empty.
        decimal: What stands before the decimals, where that had to be settled; empty for plain numbers.
    """

    sql: str
    problem: InputProblem | None = None
    note: str = ""
    decimal: str = ""


def settled(
    cells: str, ask: Ask, place: Callable[[str], str], column: str, delimiter: str, whole: bool = False
) -> Marks:
    """Return the marks of a column, settled for all its cells by one or two queries.

    A cell such as 1,5 or 1.234,5 or 1.234.567 settles them; where all cells are like 1,234 the delimiter does if it can
    (a file between commas cannot have decimal commas unless quoted), with a note; else the column is refused. Points as
    in 1.234 are decimal points, with a note, except between semicolons and in columns of whole numbers, where they are
    refused.

    Args:
        cells: SQL of the column, text without blanks around it; nothing is empty or null.
        ask: Answers whether masks are true anywhere.
        place: The first place where a mask is true, for messages; asked only where it is to be said.
        column: Name, for messages.
        delimiter: What stands between fields of the file; empty where nothing does.
        whole: Whether the column must hold whole numbers.
    """
    odd = f"({cells} <> '' AND NOT {_is(cells, _PLAIN)}) OR {_is(cells, _one_group('.'))}"
    if not ask({"odd": odd})["odd"]:  # Plain numbers settle it with two patterns instead of eight.
        return Marks(f"CASE WHEN {cells} <> '' THEN {_as_double(cells)} END")
    cells = f"replace({cells}, '\u2212', '-')"
    spaces = _SPACES.replace("'", "''")
    cells = f"CASE WHEN {_is(cells, _SPACED)} THEN translate({cells}, '{spaces}', '') ELSE {cells} END"
    cells = f"({cells})"
    either = {mark: _is(cells, _pattern(mark)) for mark in ".,"}
    group = {mark: _is(cells, _one_group(mark)) for mark in ".,"}
    only = {mark: f"({either[mark]} AND NOT {either[other]})" for mark, other in (".,", ",.")}
    counts = ask({f"{kind}{m}": masks[m] for kind, masks in (("only", only), ("group", group)) for m in ".,"})

    def where(mark: str) -> str:
        return f"{place(f'{only[mark]} OR {group[mark]}')}, column {shown(column)}"

    point, problem, note = _decided(counts, where, column, delimiter, whole)
    plain = f"replace(replace({cells}, '{',' if point == '.' else '.'}', ''), ',', '.')"
    sql = (
        f"CASE WHEN {cells} = '' THEN NULL WHEN {either[point]} THEN {_as_double(plain)} "
        f"WHEN {_is(cells, _NOT_FINITE)} THEN 'inf'::DOUBLE WHEN {cells} IS NOT NULL THEN '-inf'::DOUBLE END"
    )
    return Marks(sql, problem, note, point)


def read_cell(cell: str, first: str) -> str:
    """Return SQL of a cell as a number by itself, whatever others hold: null where it holds none.

    Args:
        cell: SQL of the cell, text without blanks around it.
        first: What stands before the decimals where a cell such as 1,234 leaves it open.
    """
    spaces = _SPACES.replace("'", "''")
    text = f"replace({cell}, '\u2212', '-')"
    text = f"(CASE WHEN {_is(text, _SPACED)} THEN translate({text}, '{spaces}', '') ELSE {text} END)"
    readings = []
    for point in (first, "," if first == "." else "."):
        plain = f"replace(replace({text}, '{',' if point == '.' else '.'}', ''), ',', '.')"
        readings.append(f"WHEN {_is(text, _pattern(point))} THEN TRY_CAST({plain} AS DOUBLE)")
    return f"CASE WHEN {_is(text, _PLAIN)} THEN TRY_CAST({text} AS DOUBLE) {' '.join(readings)} END"


def _decided(
    found: Mapping[str, bool], where: Callable[[str], str], column: str, delimiter: str, whole: bool
) -> tuple[str, InputProblem | None, str]:
    """Return the mark before the decimals, a problem or None, and a note or nothing."""
    if found["only."] and found["only,"]:
        what = "numbers with decimal points and numbers with decimal commas stand in one column"
        return ".", InputProblem(f"{what}; the first with a comma", where(","), "Write all in one way"), ""
    points, commas = found["group."], found["group,"]
    if found["only."] or found["only,"] or not (points or commas):
        return ("," if found["only,"] else "."), None, ""
    example, mark = ("1.234", ".") if points else ("1,234", ",")
    here = f"Column {shown(column)}: numbers like {example} are read"
    if commas and not points and delimiter == ",":
        return ".", None, f"{here} with a comma between thousands."
    if not whole and points and not commas and delimiter != ";":
        return ".", None, f"{here} with a decimal point, not with a point between thousands."
    if not whole and commas and not points and delimiter == ";":
        return ",", None, f"{here} with a decimal comma, not with a comma between thousands."
    what = f"numbers like {example} can be read with decimals or with thousands, and no cell settles which"
    return ".", InputProblem(what, where(mark), "Write them without marks between thousands"), ""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A text column read as numbers; all arrays have one entry per cell.

    Attributes:
        values: float64; NaN wherever one of the masks below is set, or the marks are ambiguous.
        blank: Nothing stands there.
        not_finite: NaN, inf, null and the like, or a number beyond float64.
        text: Anything else that is not a number.
        problem: Why points and commas cannot be told apart in this column; None where they can.
        note: How points and commas were read where another reading was thinkable; else empty.
        decimal: What stands before the decimals, where that had to be settled; empty for plain numbers.
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
    """A DuckDB without files, opened once: that takes ten times as long as a question about a thousand cells."""
    import duckdb

    connection = duckdb.connect(config={"threads": "1", "enable_external_access": "false"})
    atexit.register(connection.close)
    return connection


def read_numbers(table: Table, column: str, most: int | None = None, *, whole: bool = False) -> Numbers:
    """Read a column of text as numbers, as `settled` says.

    Args:
        table: The table.
        column: One of its columns.
        most: Rows to read from the first on; None for all.
        whole: Whether the column must hold whole numbers.
    """
    import pyarrow as pa

    cells = table.frame[column].iloc[:most]
    with _memory().cursor() as connection:
        connection.register("cells", pa.table({"x": pa.array(cells, pa.string(), from_pandas=True)}))

        def ask(masks: Mapping[str, str]) -> dict[str, bool]:
            row = connection.execute(
                f"SELECT {', '.join(f'bool_or({mask})' for mask in masks.values())} FROM cells"
            ).fetchone()
            return dict(zip(masks, map(bool, row or [False] * len(masks)), strict=True))

        def place(mask: str) -> str:
            row = connection.execute(
                f"SELECT n FROM (SELECT row_number() OVER () - 1 AS n, {mask} AS bad FROM cells) WHERE bad LIMIT 1"
            ).fetchone()
            assert row is not None
            return table.place(int(row[0]))

        marks = settled("x", ask, place, column, table.delimiter, whole)
        columns = connection.execute(f"SELECT {marks.sql} AS v, x = '' AS blank FROM cells").fetchnumpy()
    values = np.ma.filled(np.ma.asarray(columns["v"], np.float64), np.nan)
    blank = np.asarray(columns["blank"], bool)
    text, not_finite = values == TEXT, values == np.inf
    values = np.where(text | not_finite | (marks.problem is not None), np.nan, values)
    return Numbers(values, blank, not_finite, text, marks.problem, marks.note, marks.decimal)
