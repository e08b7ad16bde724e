"""Tables in memory: their columns, their rows as Parquet, and tables with a label and features."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure, Provenance, check_provenance
from dpcore.common.wording import format_count
from dpcore.counting.duck_tables import quote_identifier
from dpcore.counting.files import is_table, list_paths
from dpcore.counting.relation import find_times, refuse_times
from dpcore.counting.text import read_table
from dpcore.data import column_names, design_matrix
from dpcore.data.column_roles import PAIRS_HEADER, PAIRS_SUM
from dpcore.data.design_matrix import Design
from dpcore.data.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FRAME_FILE, LABELLED_FRAME_FILE = "data.parquet", "data.csv"
"""File names for a table in memory; generated programs read this file."""
LOCAL_BACKENDS = ("duckdb", "polars", "datafusion", "pandas")
"""Engines of Ibis that run in this process."""


def list_table_columns(table: Any) -> list[str]:
    """Return the column names of any table in memory as text, those of a named pandas index first."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return [str(column_name) for column_name in [*_list_level_names(table), *table.columns]]
    if hasattr(table, "collect_schema"):  # Polars; the columns of a LazyFrame cost as much as this
        return list(table.collect_schema().names())
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        return list(table.schema.names)
    return [str(column_name) for column_name in table.columns]


def _list_level_names(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the index levels if any level has one (unnamed ones as ``level_0``); else none."""
    if all(level_name is None for level_name in frame.index.names):
        return []
    return [
        f"level_{level}" if level_name is None else level_name
        for level, level_name in enumerate(frame.index.names)
    ]


def select_frame_columns(frame: pd.DataFrame, selected_names: Sequence[str]) -> pd.DataFrame:
    """Return these columns and index levels of a pandas table as columns, with their names as text."""
    import pandas as pd

    num_levels, series_by_name = len(_list_level_names(frame)), {}
    for column_index, column_name in enumerate(list_table_columns(frame)):
        if column_name in selected_names and column_index < num_levels:
            series_by_name[column_name] = pd.Series(frame.index.get_level_values(column_index)).reset_index(
                drop=True
            )
        elif column_name in selected_names:
            series_by_name[column_name] = frame.iloc[:, column_index - num_levels].reset_index(drop=True)
    return pd.DataFrame(series_by_name, copy=False)


def select_arrow_columns(table: Any, selected_names: Sequence[str], empties_cells: bool = False) -> pa.Table:
    """Return these columns of any table in memory as an Arrow table, without computing or fetching others.

    Args:
        table: The table.
        selected_names: Names of its columns.
        empties_cells: True to read cells of pandas that hold several entries or half a character as missing.

    Raises:
        InvalidInput: The table is in a remote engine, its library does not support Arrow, or cells cannot be read.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(table, pd.DataFrame):
        return _frame_to_arrow(select_frame_columns(table, selected_names), empties_cells)
    selected_names, library_name = (
        list(selected_names),
        type(table).__module__.partition(".")[0].removeprefix("_"),
    )
    if library_name == "ibis":
        _refuse_remote(table)
        return table.select(*selected_names).to_pyarrow()
    if library_name == "duckdb":
        return table.project(", ".join(map(quote_identifier, selected_names))).to_arrow_table()
    if library_name == "polars":
        selected_table = table.select(selected_names)
        return (selected_table.collect() if hasattr(selected_table, "collect") else selected_table).to_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return pa.table(table.select(selected_names))
    try:
        return pa.table(table).select(selected_names)
    except (TypeError, ValueError, AttributeError):
        raise refuse(f"type {type(table).__name__} cannot be read", remedy="Convert it to pandas") from None


def _refuse_remote(table: Any) -> None:
    """Raise InvalidInput if an Ibis table belongs to an engine outside this process."""
    try:
        engine_name = table.get_backend().name
    except Exception:  # an unbound table, or tables of several engines
        raise refuse("no engine holds the Ibis table", remedy="Bind it to a connection first") from None
    if engine_name not in LOCAL_BACKENDS:
        remedy = "Let the engine count: sweet-spot count --from ADDRESS --table NAME (docs/engines.md)"
        raise refuse(f"the Ibis table lies in another engine ({engine_name})", remedy=remedy)


def _frame_to_arrow(frame: pd.DataFrame, empties_cells: bool) -> pa.Table:
    """Convert a pandas table to Arrow; columns that mix texts and numbers become text, as in a text file."""
    import pyarrow as pa

    arrow_columns = {}
    with Problems() as problems:
        for column_name, series in frame.items():
            try:
                arrow_columns[column_name] = pa.Array.from_pandas(series)
                is_readable = not (empties_cells and pa.types.is_nested(arrow_columns[column_name].type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeError):
                is_readable = False
            if is_readable:
                continue
            cell_texts, unreadable_rows = list[str | None](), list[int]()
            for row_number, cell in enumerate(series, 1):
                try:
                    cell_texts.append(_write_cell(cell))
                except ValueError:
                    cell_texts.append(None)
                    unreadable_rows.append(row_number)
            if unreadable_rows and not empties_cells:
                cells_text = format_count(len(unreadable_rows), "cell holds", "cells hold")
                location = f"column {column_names.shorten(str(column_name))}, row {unreadable_rows[0]:,}"
                remedy = "Put one text or number into each"
                problems.add(f"{cells_text} several entries or broken text", location, remedy)
            arrow_columns[column_name] = pa.array(cell_texts, pa.string())
    return pa.table(arrow_columns)


def _write_cell(cell: Any) -> str | None:
    """Return a cell as text; None if it is missing. Raise ValueError for several entries or half a character."""
    import pandas as pd

    if pd.api.types.is_list_like(cell):
        raise ValueError
    if pd.isna(cell):
        return None
    # 7.0 is 7, as in a column of numbers alone.
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15
    cell_text = str(int(cell)) if is_whole else str(cell)
    cell_text.encode()
    return cell_text


def refuse_repeated_names(
    problems: Problems, table_columns: Sequence[str], named_columns: Sequence[str]
) -> None:
    """Add a problem for each of these names that several columns have."""
    for column_name, num_columns in Counter(table_columns).items():
        if num_columns > 1 and column_name in named_columns:
            problems.add(
                f"{num_columns} columns are called {column_names.shorten(column_name)}", "", "Rename them"
            )


def write_parquet(
    table: Any,
    named_columns: list[str],
    missing_arguments: Sequence[str] = (),
    *,
    empties_cells: bool = False,
) -> bytes:
    """Write the named columns as Parquet bytes: all if none is named, or in a table of pairs.

    Raise InvalidInput for named columns that are not there, for repeated names, and, without ``empties_cells``, for
    cells of pandas that hold several entries. If columns are missing and the table is not one of pairs, name missing
    arguments of the question (``missing_arguments``), too.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table_columns = list_table_columns(table)
    # A table of pairs is recognised by all its columns, and needs its rows.
    is_pair_table = tuple(table_columns) in (PAIRS_HEADER, (*PAIRS_HEADER, PAIRS_SUM))
    writes_all_columns = is_pair_table or not named_columns
    selected_columns = [
        column_name for column_name in table_columns if writes_all_columns or column_name in named_columns
    ]
    with Problems() as problems:
        column_names.refuse_missing(problems, table_columns, named_columns)
        refuse_repeated_names(problems, table_columns, selected_columns)
        if problems.entries and not is_pair_table:
            column_names.add_missing_arguments(problems, missing_arguments)
    arrow_table = select_arrow_columns(table, selected_columns, empties_cells)
    with Problems() as problems:
        for field_index, arrow_field in enumerate(arrow_table.schema):
            if pa.types.is_interval(arrow_field.type):  # a type that Parquet does not support
                time_kinds = find_times(arrow_table.schema.names, arrow_table.schema.types)
                refuse_times(problems, time_kinds, arrow_field.name)
                arrow_table = arrow_table.set_column(
                    field_index, arrow_field.name, pa.nulls(len(arrow_table))
                )
    parquet_buffer = io.BytesIO()
    pq.write_table(arrow_table, parquet_buffer)
    return parquet_buffer.getvalue()


# --- tables with a label -------------------------------------------------------------------------------------


def read_labelled(
    build_result: Callable[..., Any],
    data: Any,
    user: column_names.Columns = None,
    label: str | None = None,
    features: column_names.Columns = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    intercept: bool = True,
    disclosure: str | Provenance = Disclosure.PRIVATE,
    **further_arguments: Any,
) -> Any:
    """Read a table with a label, as its page reads an upload, and return the result of ``build_result``.

    Args:
        build_result: Function of table, design and disclosure; its result is returned.
        data: A table in memory, or the path of a text file.
        user: The one column that identifies the user of a row.
        label: The column that is predicted: numbers, or words if the question maps one of them to 1.
        features: The columns that it is predicted from: numbers unchanged, others one-hot. By default all other usable
            columns.
        levels: The public list of levels by column, the reference level first.
        intercept: True to begin with a column of ones.
        disclosure: ``"public"`` or ``"private"``.
        further_arguments: Further arguments of ``build_result``.

    Raises:
        InvalidInput: The table cannot be read with these columns; all problems at once.
    """
    with Problems() as problems:
        with problems.collecting():
            if not isinstance(check_provenance(disclosure), Disclosure):
                problems.add("a table with labels cannot be a DP release")
        if not isinstance(intercept, bool):
            problems.add(f"intercept must be True or False; got {str(intercept)[:40]!r}")
        with problems.collecting():
            column_names.refuse_wrong_names(user=user, label=label, features=features)
            _check_lists_by_column("levels", "['DE', 'FR']", levels)
            _check_lists_by_column("ranges", "(0, 100)", further_arguments.get("ranges"), 2)
            user_label_features = column_names.list_columns(user), label, column_names.list_columns(features)
            table = _read_table(data, *user_label_features)
            design = _build_design(table, *user_label_features, levels or {}, intercept)
    return build_result(table, design, check_provenance(disclosure), **further_arguments)


def _check_lists_by_column(argument_name: str, example_text: str, argument: object, length: int = 0) -> None:
    """Raise InvalidInput unless an argument is None or a mapping of columns to lists of this length (0 for any)."""
    lists = [None] if argument is not None else []
    if isinstance(argument, Mapping):
        lists = list(argument.values())
    if not all(isinstance(entry, list | tuple) and len(entry) == (length or len(entry)) for entry in lists):
        allowed_text = f"entries by column, such as {argument_name}={{'column': {example_text}}}"
        raise refuse(f"{argument_name} must hold {allowed_text}; got {str(argument)[:40]}")


def _read_table(data: Any, user_columns: list[str], label: str | None, feature_columns: list[str]) -> Table:
    """Read one table, in memory or in a text file, as a table of text; raise InvalidInput for other data."""
    if table_paths := list_paths(data):
        if len(table_paths) > 1:
            raise refuse(f"a table with labels is one file; there are {len(table_paths)} here")
        path = Path(table_paths[0])
        try:
            file_bytes = path.read_bytes()
        except OSError as error:
            raise refuse(f"{path} cannot be read: {error.strerror}") from None
        return read_table(file_bytes, path.name)
    if is_table(data):
        return _convert_table(data, user_columns, label, feature_columns)
    raise refuse(f"data must be a table or the path of a text file; got {type(data).__name__}")


def _convert_table(data: Any, user_columns: list[str], label: str | None, features: list[str]) -> Table:
    """Convert a table in memory as if its text file were read.

    If user, label and features are all named and exist, only these columns are converted, else all.
    """
    import pandas as pd
    import pyarrow as pa

    table_columns = list_table_columns(data)
    named_columns = [*user_columns, *([] if label is None else [label]), *features]
    is_fully_named = bool(user_columns and features) and label is not None
    selects_named = is_fully_named and set(named_columns) <= set(table_columns)
    selected_columns = [name for name in table_columns if name in named_columns or not selects_named]
    with Problems() as problems:
        refuse_repeated_names(problems, table_columns, selected_columns)
    if isinstance(data, pd.DataFrame):
        frame = select_frame_columns(data, selected_columns)
    else:
        frame = select_arrow_columns(data, selected_columns).to_pandas()
    time_schema = pa.Schema.from_pandas(frame.select_dtypes(["datetime", "datetimetz", "timedelta"]))
    time_kinds = find_times(time_schema.names, time_schema.types)
    duration_kind_by_column = {
        name: time_kind for name, time_kind in time_kinds.items() if time_kind == "durations"
    }
    with Problems() as problems:
        refuse_times(problems, time_kinds, label)
        for feature_column in features:
            refuse_times(problems, duration_kind_by_column, feature_column)
    return read_table(frame.to_csv(index=False).encode(), LABELLED_FRAME_FILE)


def _build_design(
    table: Table,
    user_columns: list[str],
    label: str | None,
    features: list[str],
    levels_by_column: Mapping[str, Sequence[str]],
    has_intercept: bool,
) -> Design:
    """Build the design of label, user and features; raise InvalidInput for missing columns or unknown levels."""
    with Problems() as problems:
        if len(user_columns) > 1:
            problems.add("a table with labels needs one column that says who: join them into one")
        user_column = user_columns[0] if user_columns else None
        for role_name, column in (("user", user_column), ("label", label)):
            if column is None:
                names_text = column_names.list_names(table.columns)
                problems.add(f"say which column names the {role_name}: {role_name}=…, one of {names_text}")
        named_columns = [*user_columns[:1], *column_names.list_columns(label), *features]
        column_names.refuse_missing(problems, table.columns, named_columns)
        features_by_column = {}
        for column, level_names in levels_by_column.items():
            with problems.collecting():
                features_by_column[column] = design_matrix.read_levels(
                    column, "\n".join(map(str, level_names))
                )
        feature_names = features or [
            column_name for column_name in table.columns if column_name not in (user_column, label)
        ]
        if unknown_columns := [column for column in levels_by_column if column not in feature_names]:
            unknown_text = ", ".join(map(column_names.shorten, unknown_columns))
            problems.add(f"levels names {unknown_text}, which is no feature")
    design_features = design_matrix.guess_features(table, feature_names, features_by_column, bool(features))
    assert user_column is not None
    assert label is not None
    return Design(label, user_column, design_features, has_intercept)
