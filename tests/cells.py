"""Which cells of a list of parameters `make test` runs; the marker `thinned` (conftest.py) is for products of lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pytest

Cell = TypeVar("Cell")


def leave_repeats(cells: Iterable[Cell], kind_of: Callable[[Cell], Hashable]) -> list[Any]:
    """Return cells as parameters of a test: of each kind the first is for `make test`, all others are long."""
    seen_kinds: set[Hashable] = set()
    parameters = []
    for cell in cells:
        kind = kind_of(cell)
        values = cell if isinstance(cell, tuple) else (cell,)
        parameters.append(pytest.param(*values, marks=[pytest.mark.long] if kind in seen_kinds else []))
        seen_kinds.add(kind)
    return parameters
