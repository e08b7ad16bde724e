"""Public conditions on rows: those that do not satisfy all of them are left out before anything is counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpcore.common.checks import refuse

_CONDITION_PATTERN = re.compile(r"(.+?)\s*(!=|<=|>=|=|<|>)\s*(.+)")


WHOLE_PATTERN = r"^[0-9]+\.0$"
"""Whole numbers as a column of floats writes them."""


def fold_text(text: str) -> str:
    """Return a text as it is compared with cells: in lower case, and 1.0 as 1."""
    return text.lower().removesuffix(".0") if re.match(WHOLE_PATTERN, text) else text.lower()


@dataclass(frozen=True)
class RowFilter:
    """One condition on a row; a cell that is empty, or no number for an order, never satisfies it.

    Attributes:
        column: The column.
        sign: ``=`` and ``!=`` compare texts in any case, ``<``, ``<=``, ``>`` and ``>=`` numbers.
        value: What its cells are compared with, as entered.
    """

    column: str
    sign: str
    value: str

    @property
    def is_of_text(self) -> bool:
        """Return True if texts are compared."""
        return self.sign in ("=", "!=")

    @classmethod
    def of_number(cls, column_name: str) -> RowFilter:
        """Build the condition that a cell holds a number up to ±1e100."""
        return cls(column_name, ">=", "-1e100")

    @property
    def text(self) -> str:
        """Return the condition as a person writes it."""
        if self == RowFilter.of_number(self.column):
            return f"a number in {self.column}"
        return f"{self.column} {self.sign} {self.value}"


def list_compared_columns(filters: Iterable[RowFilter]) -> tuple[str, ...]:
    """List the columns whose cells are compared as numbers, each once."""
    return tuple(dict.fromkeys(f.column for f in filters if not f.is_of_text))


def parse_filters(conditions_text: str | None) -> tuple[RowFilter, ...]:
    """Parse conditions such as ``quantity > 0; country = France``; empty for none.

    Raises:
        InvalidInput: A condition cannot be read.
    """
    row_filters = []
    for piece in filter(None, (piece.strip() for piece in (conditions_text or "").split(";"))):
        condition_match = _CONDITION_PATTERN.fullmatch(piece)
        row_filter = RowFilter(*condition_match.groups()) if condition_match else RowFilter("", "=", "")
        is_number = re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", row_filter.value) is not None
        if not row_filter.column or not (row_filter.is_of_text or is_number):
            condition_remedy = "Write quantity > 0 or country = France, with ; between several"
            raise refuse(f"the condition {piece[:40]!r} cannot be read", remedy=condition_remedy)
        row_filters.append(row_filter)
    return tuple(row_filters)
