"""A public list of items with their names: ``movies.dat``, ``u.item``, ``movies.csv``, or any text of two columns."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence

from dpcore.common.errors import refuse
from dpcore.data.encoding import decoded
from dpcore.dataset import LONGEST_TASK_NAME

MOST_LINES = 1_000_000
_DELIMITERS = ("::", "\t", "|", ";", ",")


def read_names(content: bytes) -> dict[str, str]:
    """Return what each item is called.

    Args:
        content: Text, one item a line: its id as rows of data have it, its name, and whatever follows. Between them
            stand ``::`` (MovieLens 1M and 10M), ``|`` (100K), tabs, semicolons or commas (20M).

    Returns:
        Name by id; a header line counts as one more item, which no row names.

    Raises:
        InvalidInput: It is no text, too long, or has no two columns.
    """
    text, _, _ = decoded(content)
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        raise refuse(
            f"the list has more than {MOST_LINES:,} lines", remedy="Leave out items that nobody rated"
        )
    best = Counter(_first_mark(line) for line in lines[:50]).most_common(1)[0][0] if lines else ","
    rows = [line.split(best) for line in lines] if len(best) > 1 or best == "|" else _quoted(lines, best)
    found = {
        row[0].strip(): row[1].strip()[:LONGEST_TASK_NAME] for row in rows if len(row) > 1 and row[1].strip()
    }
    if len(found) < len(lines) / 2 or not found:
        raise refuse(
            "the list has no two columns",
            remedy="Bring one item a line, its id first and then its name, with a comma, a tab or :: between them",
        )
    return found


def _first_mark(line: str) -> str:
    """Return what ends the id: later ones may stand in names, or between genres."""
    there = {line.index(mark): mark for mark in reversed(_DELIMITERS) if mark in line}
    return there[min(there)] if there else ","


def _quoted(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    except csv.Error:
        return []


def named(
    ids: Sequence[str], names: Mapping[str, str] | None, is_private: bool, noun: str = "item"
) -> tuple[str, ...]:
    """Return what items are called on a page.

    Of public data that is their id in the rows, or the list's name for it. Of private data an id may be known to one
    user alone: an item of the list has its name there, and any other one its number from 0.

    Args:
        ids: Of each item in the rows, `Dataset.task_names`.
        names: The public list, by id; None where none was brought.
        is_private: Whether the rows are private.
        noun: What stands before a number.
    """
    held = names or {}
    return tuple(held.get(each, f"{noun} {at}" if is_private else each) for at, each in enumerate(ids))
