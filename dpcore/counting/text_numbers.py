"""A column of text as numbers inside DuckDB: the rules of `dpcore.numerals`, as expressions over all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpcore.errors import InvalidInput
from dpcore.numerals import NOT_FINITE, SPACED, SPACES, Marks, number_pattern, one_group, settle_marks
from dpcore.tables import shown

if TYPE_CHECKING:
    from ibis.expr.types import StringValue, Table, Value

    from dpcore.counting.running import Runner

PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
"""Numbers that need no settling of marks."""
TEXT = float("-inf")
"""Stands for text that is no number; what is a number but not finite becomes the positive infinity."""


def number(
    cells: StringValue, table: Table, run: Runner, name: str, delimiter: str, notes: list[str]
) -> Value:
    """The text column as numbers, with the marks settled once for all cells.

    Args:
        cells: The column.
        table: Its table.
        run: Runs a query; asked once or twice.
        name: What the person calls the column.
        delimiter: What stands between fields of the files; empty where they differ or there is none.
        notes: Takes how the marks were read.

    Returns:
        float64; null for a blank cell, `TEXT` for text, and not finite where the number is not.

    Raises:
        InvalidInput: The marks cannot be told apart.
    """
    cells = cells.strip()
    # Plain numbers settle it with two patterns instead of eight.
    odd = (cells != "") & ~_is(cells, PLAIN) | _is(cells, one_group("."))
    if not run(table.aggregate(odd=odd.ifelse(1, 0).max().cast("int64")))["odd"][0] > 0:
        return cells.nullif("").try_cast("float64")
    cells = cells.replace("\u2212", "-")
    cells = _is(cells, SPACED).ifelse(cells.re_replace(f"[{SPACES}]", ""), cells)
    either = {mark: _is(cells, number_pattern(mark)) for mark in ".,"}
    point, note = _settled(cells, either, table, run, name, delimiter)
    notes += [note] if note else []
    plain = cells.replace("," if point == "." else ".", "").replace(",", ".")
    other = _is(cells, NOT_FINITE).ifelse(float("inf"), TEXT)
    return cells.nullif("").isnull().ifelse(None, either[point].ifelse(plain.try_cast("float64"), other))


def _is(cells: StringValue, pattern: str) -> Any:
    return cells.re_search(f"^(?:{pattern})$")


def _settled(
    cells: StringValue, either: dict[str, Any], table: Table, run: Runner, name: str, delimiter: str
) -> tuple[str, str]:
    """The mark before the decimals, and a note or nothing."""
    marked = cells.re_search("[.,]")
    asked = {
        f"{kind}_{at}": (marked & mask).ifelse(1, 0).sum().cast("int64")
        for at, (mark, other) in enumerate(((".", ","), (",", ".")))
        for kind, mask in (("only", either[mark] & ~either[other]), ("group", _is(cells, one_group(mark))))
    }
    found = {kind: bool(numbers[0] > 0) for kind, numbers in run(table.aggregate(**asked)).items()}
    seen = Marks(found["only_0"], found["only_1"], found["group_0"], found["group_1"])
    where = dict.fromkeys(".,", f"column {shown(name)}")
    point, problem, note = settle_marks(seen, name, where, delimiter, whole=False)
    if problem is not None:
        raise InvalidInput([problem])
    return point, note
