"""A column of text as numbers inside DuckDB: the rules of `dpcore.data.numbers`, as expressions over all cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpcore.common.errors import InvalidInput
from dpcore.data.numbers import NOT_FINITE, SPACED, SPACES, Marks, number_pattern, one_group, settle_marks
from dpcore.data.tables import shown

if TYPE_CHECKING:
    from ibis.expr.types import StringValue, Table, Value

    from dpcore.counting.running import Runner

PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
"""Numbers that need no settling of marks."""
TEXT = float("-inf")
"""Stands for text that is no number; what is a number but not finite becomes the positive infinity."""


@dataclass(frozen=True)
class Column:
    """A column of text in large files.

    Attributes:
        cells: The column.
        table: Its table.
        name: What the person calls it.
        delimiter: What stands between fields of the files; empty where they differ or there is none.
        run: Runs a query.
        place: The first place where a mask over the rows of the table is true; asked only where it is to be said.
        whole: Whether the column must hold whole numbers.
    """

    cells: StringValue
    table: Table
    name: str
    delimiter: str
    run: Runner
    place: Callable[[Any], str]
    whole: bool = False


def number(column: Column, notes: list[str]) -> Value:
    """The column as numbers, with the marks settled once for all cells, by one or two queries.

    Args:
        column: The column of text.
        notes: Takes how the marks were read.

    Returns:
        float64; null for a blank cell, `TEXT` for text, and not finite where the number is not.

    Raises:
        InvalidInput: The marks cannot be told apart.
    """
    cells = column.cells.strip()
    # Plain numbers settle it with two patterns instead of eight.
    odd = (cells != "") & ~_is(cells, PLAIN) | _is(cells, one_group("."))
    asked = column.table.aggregate(odd=odd.ifelse(1, 0).max().cast("int64"))
    if not column.run(asked)["odd"][0] > 0:
        return cells.nullif("").try_cast("float64")
    cells = cells.replace("\u2212", "-")
    cells = _is(cells, SPACED).ifelse(cells.re_replace(f"[{SPACES}]", ""), cells)
    either = {mark: _is(cells, number_pattern(mark)) for mark in ".,"}
    point, note = _settled(column, cells, either)
    notes += [note] if note else []
    plain = cells.replace("," if point == "." else ".", "").replace(",", ".")
    other = _is(cells, NOT_FINITE).ifelse(float("inf"), TEXT)
    return cells.nullif("").isnull().ifelse(None, either[point].ifelse(plain.try_cast("float64"), other))


def _is(cells: StringValue, pattern: str) -> Any:
    return cells.re_search(f"^(?:{pattern})$")


def _settled(column: Column, cells: StringValue, either: dict[str, Any]) -> tuple[str, str]:
    """The mark before the decimals, and a note or nothing."""
    marked = cells.re_search("[.,]")
    only = {mark: marked & either[mark] & ~either[other] for mark, other in (".,", ",.")}
    group = {mark: marked & _is(cells, one_group(mark)) for mark in ".,"}
    asked = {
        f"{kind}_{at}": masks[mark].ifelse(1, 0).sum().cast("int64")
        for kind, masks in (("only", only), ("group", group))
        for at, mark in enumerate(".,")
    }
    found = {kind: bool(n[0] > 0) for kind, n in column.run(column.table.aggregate(**asked)).items()}
    seen = Marks(found["only_0"], found["only_1"], found["group_0"], found["group_1"])
    where = dict.fromkeys(".,", f"column {shown(column.name)}")
    point, problem, note = settle_marks(seen, column.name, where, column.delimiter, column.whole)
    if problem is not None:
        where = {m: f"{column.place(only[m] | group[m])}, {where[m]}" for m in ".,"}
        _, problem, _ = settle_marks(seen, column.name, where, column.delimiter, column.whole)
        assert problem is not None
        raise InvalidInput([problem])
    return point, note
