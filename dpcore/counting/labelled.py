"""Reading a table with a label and features, from memory or from a text file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.counting.files import expand_patterns
from dpcore.counting.frames import (
    Columns,
    check_provenance,
    column_names,
    is_table,
    list_columns,
    list_names,
    refuse_missing,
    refuse_no_names,
    refuse_twice,
    to_arrow,
    to_frame,
)
from dpcore.counting.text import read_table
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data import design_matrix
from dpcore.data.column_names import shorten
from dpcore.data.design_matrix import MAX_LEVELS, Design, Feature, FeatureKind
from dpcore.data.tables import Table

FRAME = "data.csv"
"""Name of a table in memory: programs read it from a file of this name."""


def read_labelled(
    build: Callable[..., Any],
    data: Any,
    user: Columns = None,
    label: str | None = None,
    features: Columns = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    intercept: bool = True,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    **further: Any,
) -> Any:
    """Read a table with a label, as its page reads an upload, and return what ``build`` makes of it.

    Args:
        build: Function of table, design and disclosure; its result is returned.
        data: A table in memory, or the path of a text file.
        user: The one column that identifies the user of a row.
        label: The column that is predicted: numbers, or words if the question maps one of them to 1.
        features: The columns that it is predicted from: numbers unchanged, others one-hot. By default all other usable
            columns.
        levels: The public list of levels by column, the reference level first.
        intercept: True to begin with a column of ones.
        disclosure: ``"public"`` or ``"private"``.
        further: Further arguments of ``build``.

    Raises:
        InvalidInput: The table cannot be read with these columns; all problems at once.
    """
    problems = Problems()
    provenance: Provenance = Disclosure.PRIVATE
    with problems.collecting():
        provenance = check_provenance(disclosure)
    if not isinstance(provenance, Disclosure):
        problems.add("a table with labels cannot be a DP release")
        provenance = Disclosure.PRIVATE
    if not isinstance(intercept, bool):
        problems.add(f"intercept must be True or False; got {str(intercept)[:40]!r}")
    with problems.collecting():
        refuse_no_names(user=user, label=label, features=features)
        _refuse_no_lists("levels", "['DE', 'FR']", levels)
        _refuse_no_lists("ranges", "(0, 100)", further.get("ranges"), 2)
        table = _read_table(data, list_columns(user), label, list_columns(features))
        design = _build_design(
            table, list_columns(user), label, list_columns(features) or None, levels or {}, intercept
        )
    problems.raise_if_any()
    return build(table, design, provenance, **further)


def _refuse_no_lists(name: str, example: str, entries: object, length: int = 0) -> None:
    """Raise InvalidInput if entries are not lists by column, of the given length unless it is 0."""
    if entries is None:
        return
    lists = list(entries.values()) if isinstance(entries, Mapping) else [None]
    if not all(isinstance(each, list | tuple) and (not length or len(each) == length) for each in lists):
        raise refuse(
            f"{name} must hold entries by column, such as {name}={{'column': {example}}}; got {str(entries)[:40]}"
        )


def _read_table(data: Any, users: list[str], label: str | None, features: list[str]) -> Table:
    """Read one table, in memory or in a text file."""
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | os.PathLike) for path in data):
        files = expand_patterns(data)
        if len(files) > 1:
            raise refuse(f"a table with labels is one file; there are {len(files)} here")
        return read_table(_content(files[0]), Path(files[0]).name)
    if is_table(data):
        return _convert_table(data, users, label, features)
    raise refuse(f"data must be a table or the path of a text file; got {type(data).__name__}")


def _convert_table(data: Any, users: list[str], label: str | None, features: list[str]) -> Table:
    """Convert a table in memory as if its text file were read: the named columns, or all."""
    names = column_names(data)
    named_columns = [*users, *([] if label is None else [label]), *features]
    is_named = bool(users and features) and label is not None and set(named_columns) <= set(names)
    selected = [name for name in names if name in named_columns or not is_named]
    with Problems() as problems:
        refuse_twice(problems, names, selected)
    frame = (
        to_frame(data, selected) if isinstance(data, pd.DataFrame) else to_arrow(data, selected).to_pandas()
    )
    times = arrow_times(pa.Schema.from_pandas(frame.select_dtypes(["datetime", "datetimetz", "timedelta"])))
    with Problems() as problems:
        refuse_times(problems, times, label)
        for name in features:
            refuse_times(
                problems,
                {key: time_type for key, time_type in times.items() if time_type == "durations"},
                name,
            )
    return read_table(frame.to_csv(index=False).encode(), FRAME)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise refuse(f"{os.fspath(path)} cannot be read: {error.strerror}") from None


def _build_design(
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
                problems.add(
                    f"say which column names the {role}: {role}=…, one of {list_names(table.columns)}"
                )
            else:
                refuse_missing(problems, table.columns, [column])
        refuse_missing(problems, table.columns, features or [])
        category_features = {}
        for column, names in levels.items():
            try:
                category_features[column] = design_matrix.read_levels(column, "\n".join(map(str, names)))
            except InvalidInput as refused:
                problems.extend(refused.problems)
        feature_names = (
            [name for name in table.columns if name not in (user, label)] if features is None else features
        )
        if unknown := [column for column in levels if column not in feature_names]:
            problems.add(f"levels names {', '.join(map(shorten, unknown))}, which is no feature")
    design_features = []
    for column in feature_names:
        if column in category_features:
            design_features.append(category_features[column])
        elif design_matrix.is_numeric(table, column):
            design_features.append(Feature(column))
        elif (
            2 <= len(ordered := design_matrix.levels(table, column)) <= MAX_LEVELS // 2
            or features is not None
        ):
            design_features.append(Feature(column, FeatureKind.CATEGORIES, ordered[0] if ordered else ""))
    assert user is not None
    assert label is not None
    return Design(label, user, tuple(design_features), intercept)
