"""Public lists of the names of items."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dpcore.common.checks import refuse
from dpcore.counting.formats import decode
from dpcore.dataset import LONGEST_TASK_NAME

MAX_LINES = 1_000_000
_DELIMITERS = ("::", "\t", "|", ";", ",")


def read_names(content: bytes) -> dict[str, str]:
    """Read the name of each item.

    Args:
        content: Text with one item per line: its id as in the data, its name, and further fields, separated by ``::``
            (MovieLens 1M and 10M), ``|`` (100K), tabs, semicolons or commas (20M).

    Returns:
        Names by id; a header line counts as a further item, which no row names.

    Raises:
        InvalidInput: It is not text, too long, or does not have two columns.
    """
    text, _, _ = decode(content)
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        raise refuse(f"the list has more than {MAX_LINES:,} lines", remedy="Leave out items without ratings")
    # Later separators may be part of names, or between genres.
    first_marks = [re.search("|".join(map(re.escape, _DELIMITERS)), line) for line in lines[:50]]
    counts = Counter(mark.group() if mark else "," for mark in first_marks)
    best = counts.most_common(1)[0][0] if lines else ","
    rows = [line.split(best) for line in lines]
    if len(best) == 1 and best != "|":
        rows = []
        with suppress(csv.Error):
            rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=best))
    pairs = [(row[0].strip(), row[1].strip()[:LONGEST_TASK_NAME]) for row in rows if len(row) > 1]
    names = {item: name for item, name in pairs if name}
    if len(names) < len(lines) / 2 or not names:
        remedy = "Bring one item a line, its id and its name, with a comma, a tab or :: between them"
        raise refuse("the list has no two columns", remedy=remedy)
    return names


def choose_names(
    ids: Sequence[str], names: Mapping[str, str] | None, is_private: bool, noun: str = "item"
) -> tuple[str, ...]:
    """Return the names of items on a page.

    Items of the list have their name. Other items have their id if the data are public. In private data an id may be
    known to one user alone, so they have a number from 0.

    Args:
        ids: Ids of the items in the rows, `Dataset.task_names`.
        names: The public list, by id; None if there is none.
        is_private: True if the rows are private.
        noun: Word before a number.
    """
    default_names = [f"{noun} {index}" for index in range(len(ids))] if is_private else ids
    return tuple((names or {}).get(key, default) for key, default in zip(ids, default_names, strict=True))
