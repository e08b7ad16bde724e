"""Numbers out of text cells: decimal points or commas, thousands marks, and what is no number.

The marks are settled once for a whole column, never cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.common.errors import Problem
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.tables import BoolArray, Table, shown

# Both Python's re and RE2, which DuckDB uses, read these patterns; a cell must match as a whole.
NOT_FINITE = r"(?i:[+-]?(?:nan|inf|infinity)|n/?a|null|none|#n/?a|<na>)"
SPACES = " '\u2019\u00a0\u202f"
SPACED = f"[+-]?[1-9][0-9]{{0,2}}(?:[{SPACES}][0-9]{{3}})+(?:[.,][0-9]*)?"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,6})?"


def one_group(mark: str) -> str:
    """Numbers such as 1.234, which can be read with decimals or with thousands."""
    return rf"[+-]?[1-9][0-9]{{0,2}}\{mark}[0-9]{{3}}"


def number_pattern(point: str) -> str:
    """Numbers with ``point`` before the decimals, and the other mark between full groups of thousands."""
    group = "," if point == "." else r"\."
    mark = r"\." if point == "." else ","
    before = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+)"
    return rf"[+-]?(?:{before}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}"


@dataclass(frozen=True, eq=False)
class Numbers:
    """A text column read as numbers; all arrays have one entry per cell that was asked for.

    Attributes:
        values: float64; NaN wherever one of the masks below is set, or the marks are ambiguous.
        blank: Nothing stands there.
        not_finite: NaN, inf, null and the like, or a number beyond float64.
        text: Anything else that is not a number.
        problem: Why points and commas cannot be told apart in this column; None where they can.
        note: How points and commas were read where another reading was thinkable; else empty.
    """

    values: FloatArray
    blank: BoolArray
    not_finite: BoolArray
    text: BoolArray
    problem: Problem | None = None
    note: str = ""


def read_numbers(table: Table, column: str, rows: IntArray | None = None, *, whole: bool = False) -> Numbers:
    """Read a column of text as numbers, with decimal points or commas and thousands marks.

    The marks are settled once for the whole column. A cell such as 1,5 or 1.234,5 or 1.234.567 settles them;
    where all cells are like 1,234 the delimiter does if it can (a file between commas cannot have decimal
    commas unless quoted), with a note; else the column is refused. Points as in 1.234 are decimal points,
    with a note, except between semicolons and in columns of whole numbers, where they are refused.

    Args:
        table: The table.
        column: One of its columns.
        rows: Rows to read, counted from 0, shape (k,); None for all.
        whole: Whether the column must hold whole numbers.
    """
    cells = table.frame[column] if rows is None else table.frame[column].iloc[rows]
    cells = cells.reset_index(drop=True)
    if _has(cells, "\u2212"):  # the typographic minus
        cells = cells.str.replace("\u2212", "-", regex=False)
    if any(_has(cells, mark) for mark in SPACES):
        spaced = _matches(cells, SPACED)
        cells = cells.mask(spaced, cells.str.replace(f"[{SPACES}]", "", regex=True))
    point, problem, note = _decimal_mark(table, column, cells, rows, whole)
    fine = _matches(cells, number_pattern(point))
    blank = (cells == "").to_numpy(bool)
    not_finite = ~fine & ~blank & _matches(cells, NOT_FINITE)
    plain = cells[fine]
    if point == "," or _has(plain, ","):
        group = "," if point == "." else "."
        plain = plain.str.replace(group, "", regex=False).str.replace(",", ".", regex=False)
    values = np.full(len(cells), np.nan)
    if problem is None:
        values[fine] = plain.to_numpy(dtype=np.float64)
        beyond = np.isinf(values)
        not_finite |= beyond
        values[beyond] = np.nan
    return Numbers(values, blank, not_finite, ~fine & ~blank & ~not_finite, problem, note)


def _has(cells: pd.Series, part: str) -> bool:
    return bool(cells.str.contains(part, regex=False).any())


def _matches(cells: pd.Series, pattern: str) -> BoolArray:
    return cells.str.fullmatch(pattern).to_numpy(bool)


def _decimal_mark(
    table: Table, column: str, cells: pd.Series, rows: IntArray | None, whole: bool
) -> tuple[str, Problem | None, str]:
    """The mark before the decimals in a column, a problem or None, and a note or nothing."""
    marked = cells[cells.str.contains("[.,]", regex=True).to_numpy(bool)]
    grouped = {m: _matches(marked, one_group(m)) for m in ".,"}
    either = {m: _matches(marked, number_pattern(m)) for m in ".,"}
    only = {m: either[m] & ~either[o] for m, o in (".,", ",.")}
    where = {m: f"column {shown(column)}" for m in ".,"}
    for m in ".,":
        if (mask := only[m] | grouped[m]).any():
            row = int(marked.index[int(np.argmax(mask))])
            where[m] = f"{table.place(row if rows is None else int(rows[row]))}, column {shown(column)}"
    seen = Marks(*(bool(kind[m].any()) for kind in (only, grouped) for m in ".,"))
    return settle_marks(seen, column, where, table.delimiter, whole)


@dataclass(frozen=True)
class Marks:
    """Which readings of points and commas the cells of a column admit.

    Attributes:
        only_point: Some cell is a number with decimal points and none with decimal commas.
        only_comma: Some cell is one with decimal commas only.
        group_point: Some cell is like 1.234.
        group_comma: Some cell is like 1,234.
    """

    only_point: bool
    only_comma: bool
    group_point: bool
    group_comma: bool


def settle_marks(
    seen: Marks, column: str, where: dict[str, str], delimiter: str, whole: bool
) -> tuple[str, Problem | None, str]:
    """The mark before the decimals, a problem or None, and a note or nothing.

    Args:
        seen: What the cells admit.
        column: Name, for messages.
        where: For either mark, the place of a cell that shows it, for messages.
        delimiter: What stands between fields of the file; empty where nothing does.
        whole: Whether the column must hold whole numbers.
    """
    if seen.only_point and seen.only_comma:
        what = "numbers with decimal points and numbers with decimal commas stand in one column"
        return ".", Problem(f"{what}; the first with a comma", where[","], "Write all in one way"), ""
    points, commas = seen.group_point, seen.group_comma
    if seen.only_point or seen.only_comma or not (points or commas):
        return ("," if seen.only_comma else "."), None, ""
    example, where_ = ("1.234", where["."]) if points else ("1,234", where[","])
    here = f"Column {shown(column)}: numbers like {example} are read"
    if commas and not points and delimiter == ",":
        return ".", None, f"{here} with a comma between thousands."
    if not whole and points and not commas and delimiter != ";":
        return ".", None, f"{here} with a decimal point, not with a point between thousands."
    if not whole and commas and not points and delimiter == ";":
        return ",", None, f"{here} with a decimal comma, not with a comma between thousands."
    what = f"numbers like {example} can be read with decimals or with thousands, and no cell settles which"
    return ".", Problem(what, where_, "Write them without marks between thousands"), ""
