"""Tables in memory of several libraries: their column names, and selected columns as Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcore.common.checks import Problems, refuse
from dpcore.counting.duck import identifier
from dpcore.data.column_names import and_more, shorten

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MAX_LISTED = 20
"""Largest number of columns that a sentence lists."""
LOCAL_BACKENDS = ("duckdb", "polars", "datafusion", "pandas")
"""Engines of Ibis that run in this process."""
INTO_PANDAS = "Convert it first: pandas, Polars, Arrow and DuckDB tables are read"


def is_table(data: Any) -> bool:
    """Return True if the data are a table in memory."""
    # A pandas or Polars series also supports Arrow, but is a list of counts. A LazyFrame warns if its columns are read,
    # so only the existence of attributes is checked.
    is_like_one = any(hasattr(data, name) for name in ("collect_schema", "columns", "column_names"))
    return is_like_one and not isinstance(data, type)


def column_names(table: Any) -> list[str]:
    """Return the column names as text, those of a named pandas index first."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return [str(name) for name in [*_levels(table), *table.columns]]
    if hasattr(table, "collect_schema"):  # Polars; the columns of a LazyFrame cost as much as this
        return list(table.collect_schema().names())
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        return list(table.schema.names)
    return [str(name) for name in table.columns]


def _levels(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the index levels if any has one: after a groupby the user may be in the index."""
    if all(name is None for name in frame.index.names):
        return []
    return [f"level_{index}" if name is None else name for index, name in enumerate(frame.index.names)]


def to_frame(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return these columns and index levels of a pandas table, with their names as text."""
    import pandas as pd

    levels = len(_levels(frame))
    cells = {}
    for index, name in enumerate(column_names(frame)):
        if name in names:
            cells[name] = (
                pd.Series(frame.index.get_level_values(index))
                if index < levels
                else frame.iloc[:, index - levels]
            ).reset_index(drop=True)
    return pd.DataFrame(cells, copy=False)


def to_arrow(table: Any, names: Sequence[str]) -> pa.Table:
    """Return these columns as an Arrow table, without computing or fetching others.

    Raises:
        InvalidInput: The table is in a remote engine, or its library does not support Arrow.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(table, pd.DataFrame):
        return _frame_to_arrow(to_frame(table, names))
    names, library = list(names), type(table).__module__.partition(".")[0].removeprefix("_")
    if library == "ibis":
        _refuse_remote(table)
        return table.select(*names).to_pyarrow()
    if library == "duckdb":
        return table.project(", ".join(map(identifier, names))).to_arrow_table()
    if library == "polars":
        picked = table.select(names)
        return (picked.collect() if hasattr(picked, "collect") else picked).to_arrow()
    if isinstance(table, pa.Table | pa.RecordBatch):
        return pa.table(table.select(names))
    try:
        return pa.table(table).select(names)
    except (TypeError, ValueError, AttributeError):
        message = f"a table of the type {type(table).__name__} cannot be read"
        raise refuse(message, remedy=INTO_PANDAS) from None


def _refuse_remote(table: Any) -> None:
    """Raise InvalidInput if an Ibis table belongs to an engine outside this process."""
    try:
        backend = table.get_backend().name
    except Exception:  # an unbound table, or tables of several engines
        message = "no engine holds the Ibis table"
        raise refuse(message, remedy="Bind it to a connection first") from None
    if backend not in LOCAL_BACKENDS:
        message = f"the Ibis table lies in another engine ({backend}), and its rows would have to be fetched"
        remedy = "Let the engine count: sweet-spot count --from ADDRESS --table NAME (docs/engines.md)"
        raise refuse(message, remedy=f"{remedy}, and ask about the file that it writes")


def _frame_to_arrow(frame: pd.DataFrame) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    columns = {}
    for name, column in frame.items():
        try:
            columns[name] = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            # A mixture of texts and numbers is converted to text, as in a text file.
            columns[name] = pa.array([None if pd.isna(cell) else str(cell) for cell in column])
    return pa.table(columns)


def refuse_missing(problems: Problems, columns: Sequence[str], names: Sequence[str]) -> None:
    """Add a problem for every name that is not a column."""
    for name in names:
        if name not in columns:
            problems.add(f"there is no column {shorten(str(name))}; there are {list_names(columns)}")


def refuse_twice(problems: Problems, columns: Sequence[str], names: Sequence[str]) -> None:
    """Add a problem for each of these names that several columns have."""
    for name, times in Counter(columns).items():
        if times > 1 and name in names:
            message = f"{times} columns are called {shorten(name)}"
            problems.add(message, remedy="Rename or drop all but one of them")


def list_names(columns: Sequence[str]) -> str:
    """List the names of columns for a sentence."""
    names = ", ".join(shorten(name) for name in columns[:MAX_LISTED]) + and_more(len(columns) - MAX_LISTED)
    return names or "none"
