"""A table with a label that is predicted from features, of whatever a person has in hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.counting.files import expand_patterns
from dpcore.counting.frames import Columns, provenance_of, refuse_no_names, several
from dpcore.counting.memory_tables import (
    column_names,
    is_table,
    listed,
    refuse_missing,
    refuse_twice,
    to_arrow,
    to_frame,
)
from dpcore.counting.text import read_table
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data import design_matrix
from dpcore.data.column_names import shown
from dpcore.data.design_matrix import MAX_LEVELS, Design, Feature, FeatureKind
from dpcore.data.tables import Table

FRAME = "data.csv"
"""What a table in memory is called: programs read it from a file of this name."""


def of_labels(
    made: Callable[..., Any],
    data: Any,
    user: Columns = None,
    label: str | None = None,
    features: Columns = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    intercept: bool = True,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    **further: Any,
) -> Any:
    """Return what a question takes of a table with a label, read as its page reads an upload.

    Args:
        made: Of table, design and disclosure, it makes what the question takes.
        data: A table in memory, or the path of a text file.
        user: The column that says who a row belongs to: one, here.
        label: The column that is predicted: numbers, or words where the question takes one of them for 1.
        features: The columns that it is predicted from: numbers as they are, others one-hot. By default all others that
            can be used.
        levels: The public list of a column's levels, the reference level first, by column.
        intercept: Whether a column of ones comes first.
        disclosure: ``"public"`` or ``"private"``.
        further: What ``made`` takes besides.

    Raises:
        InvalidInput: The table cannot be read so; all problems at once.
    """
    problems = Problems()
    provenance: Provenance = Disclosure.PRIVATE
    with problems.collecting():
        provenance = provenance_of(disclosure)
    if not isinstance(provenance, Disclosure):
        problems.add("a table with labels cannot be a DP release")
        provenance = Disclosure.PRIVATE
    if not isinstance(intercept, bool):
        problems.add(f"intercept must be True or False; got {str(intercept)[:40]!r}")
    with problems.collecting():
        refuse_no_names(user=user, label=label, features=features)
        _refuse_no_lists("levels", "['DE', 'FR']", levels)
        _refuse_no_lists("ranges", "(0, 100)", further.get("ranges"), 2)
        table = _table(data, several(user), label, several(features))
        design = _design(table, several(user), label, several(features) or None, levels or {}, intercept)
    problems.raise_if_any()
    return made(table, design, provenance, **further)


def _refuse_no_lists(name: str, example: str, entries: object, length: int = 0) -> None:
    """Refuse what does not hold a list by column, of this length unless it is 0."""
    if entries is None:
        return
    lists = list(entries.values()) if isinstance(entries, Mapping) else [None]
    if not all(isinstance(each, list | tuple) and (not length or len(each) == length) for each in lists):
        raise refuse(
            f"{name} must hold entries by column, such as {name}={{'column': {example}}}; got {str(entries)[:40]}"
        )


def _table(data: Any, users: list[str], label: str | None, features: list[str]) -> Table:
    """Read one table, in memory or in a text file."""
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        files = expand_patterns(data)
        if len(files) > 1:
            raise refuse(f"a table with labels is one file; there are {len(files)} here")
        return read_table(_content(files[0]), Path(files[0]).name)
    if is_table(data):
        return _table_of(data, users, label, features)
    raise refuse(f"data must be a table or the path of a text file; got {type(data).__name__}")


def _table_of(data: Any, users: list[str], label: str | None, features: list[str]) -> Table:
    """Return a table in memory as its text file is read: the columns that are named, or all."""
    names = column_names(data)
    named = [*users, *([] if label is None else [label]), *features]
    is_named = bool(users and features) and label is not None and set(named) <= set(names)
    kept = [name for name in names if name in named or not is_named]
    with Problems() as problems:
        refuse_twice(problems, names, kept)
    frame = to_frame(data, kept) if isinstance(data, pd.DataFrame) else to_arrow(data, kept).to_pandas()
    times = arrow_times(pa.Schema.from_pandas(frame.select_dtypes(["datetime", "datetimetz", "timedelta"])))
    with Problems() as problems:
        refuse_times(problems, times, label)
        for name in features:
            refuse_times(problems, {key: kind for key, kind in times.items() if kind == "durations"}, name)
    return read_table(frame.to_csv(index=False).encode(), FRAME)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise refuse(f"{os.fspath(path)} cannot be read: {error.strerror}") from None


def _design(
    table: Table,
    users: list[str],
    label: str | None,
    features: list[str] | None,
    levels: Mapping[str, Sequence[str]],
    intercept: bool,
) -> Design:
    with Problems() as problems:
        if len(users) > 1:
            problems.add("a table with labels needs one column that says who: join them into one")
        user = users[0] if users else None
        for role, column in (("user", user), ("label", label)):
            if column is None:
                problems.add(f"say which column names the {role}: {role}=…, one of {listed(table.columns)}")
            else:
                refuse_missing(problems, table.columns, [column])
        refuse_missing(problems, table.columns, features or [])
        entered = {}
        for column, names in levels.items():
            try:
                entered[column] = design_matrix.listed(column, "\n".join(map(str, names)))
            except InvalidInput as refused:
                problems.extend(refused.problems)
        chosen = (
            [name for name in table.columns if name not in (user, label)] if features is None else features
        )
        if unknown := [column for column in levels if column not in chosen]:
            problems.add(f"levels names {', '.join(map(shown, unknown))}, which is no feature")
    found = []
    for column in chosen:
        if column in entered:
            found.append(entered[column])
        elif design_matrix.is_numeric(table, column):
            found.append(Feature(column))
        elif (
            2 <= len(ordered := design_matrix.levels(table, column)) <= MAX_LEVELS // 2
            or features is not None
        ):
            found.append(Feature(column, FeatureKind.CATEGORIES, ordered[0] if ordered else ""))
    assert user is not None
    assert label is not None
    return Design(label, user, tuple(found), intercept)
