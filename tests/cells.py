"""Which cells of parameters `make test` runs, and which it leaves to `make test-long`."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pytest

Cell = TypeVar("Cell")


def leave_repeats(cells: Iterable[Cell], kind_of: Callable[[Cell], Hashable]) -> list[Any]:
    """Return cells as parameters of a test: of each kind the first is for `make test`, all others are long."""
    seen_kinds: set[Hashable] = set()
    parameters = []
    for cell in cells:
        cell_kind = kind_of(cell)
        values = cell if isinstance(cell, tuple) else (cell,)
        parameters.append(pytest.param(*values, marks=[pytest.mark.long] if cell_kind in seen_kinds else []))
        seen_kinds.add(cell_kind)
    return parameters


def choose_telling(cells: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return few cells of a product that hold every value of two lists, or every pair of values of more.

    The marker `thinned` leaves all others to `make test-long`.
    """
    size = 2 if len(cells[0]) > 2 else 1
    open_pairs = {cell: {*itertools.combinations(enumerate(cell), size)} for cell in cells}
    num_uses: collections.Counter[tuple[int, str]] = collections.Counter()
    chosen_cells: set[tuple[str, ...]] = set()
    while any(open_pairs.values()):
        best = max(
            cells, key=lambda cell: (len(open_pairs[cell]), -sum(num_uses[each] for each in enumerate(cell)))
        )
        chosen_cells.add(best)
        num_uses.update(enumerate(best))
        covered = set(open_pairs[best])
        for pairs in open_pairs.values():
            pairs -= covered
    return chosen_cells


def leave_named(ids: list[str], ids_by_marker: dict[str, set[str]]) -> set[str]:
    """Return the ids that are long: all but those of the marker `long_but`, and those of `long_for`."""
    kept = ids_by_marker.get("long_but", set(ids))
    return {text for text in ids if text not in kept or text in ids_by_marker.get("long_for", ())}


def spread_evenly(cells: list[Cell], number: int) -> list[Cell]:
    """Return so many of the cells, at least two, from the first to the last and evenly spread."""
    if len(cells) <= number:
        return cells
    return [cells[round(i * (len(cells) - 1) / (number - 1))] for i in range(number)]
