"""Tables in memory, of whatever library: their columns by name, and only those that are needed as Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.counting.duck import identifier
from dpcore.data.column_names import and_more, shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_NAMED = 20
"""Columns that a sentence lists."""
LOCAL_BACKENDS = ("duckdb", "polars", "datafusion", "pandas")
"""Engines of Ibis that run in this process."""
INTO_PANDAS = "Convert it first: pandas, Polars, Arrow and DuckDB tables are read"


def is_table(data: Any) -> bool:
    """Return True if it is a table in memory."""
    # A pandas or Polars series offers Arrow as well, and is a list of counts.
    # Nor may a LazyFrame be asked for its columns, which warns.
    is_like_one = any(hasattr(data, name) for name in ("collect_schema", "columns", "column_names"))
    return is_like_one and not isinstance(data, type)


def column_names(table: Any) -> list[str]:
    """Return the names of the columns as text, those of a named pandas index first; the table stays as it is."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return [str(name) for name in [*_levels(table), *table.columns]]
    if hasattr(table, "collect_schema"):  # Polars; to ask a LazyFrame for its columns costs as much as this
        return list(table.collect_schema().names())
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        return list(table.schema.names)
    return [str(name) for name in table.columns]


def _levels(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the index levels where any has one: after a groupby the user may stand there."""
    if all(name is None for name in frame.index.names):
        return []
    return [f"level_{at}" if name is None else name for at, name in enumerate(frame.index.names)]


def to_frame(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return these columns of a pandas table under their names as text, its index levels among them."""
    import pandas as pd

    levels = len(_levels(frame))
    cells = {}
    for at, name in enumerate(column_names(frame)):
        if name in names:
            cells[name] = (
                pd.Series(frame.index.get_level_values(at)) if at < levels else frame.iloc[:, at - levels]
            ).reset_index(drop=True)
    return pd.DataFrame(cells, copy=False)


def to_arrow(table: Any, names: Sequence[str]) -> pa.Table:
    """Return these columns as an Arrow table; no others are fetched from an engine or computed.

    Raises:
        InvalidInput: A remote engine holds the table, or its library gives no Arrow.
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
        what = f"a table of the type {type(table).__name__} cannot be read"
        raise refusal(what, remedy=INTO_PANDAS) from None


def _refuse_remote(table: Any) -> None:
    """Refuse an Ibis table of an engine that does not run in this process."""
    try:
        backend = table.get_backend().name
    except Exception:  # an unbound table, or tables of several engines
        what = "no engine holds the Ibis table"
        raise refusal(what, remedy="Bind it to a connection first") from None
    if backend not in LOCAL_BACKENDS:
        what = f"the Ibis table lies in another engine ({backend}), and its rows would have to be fetched"
        remedy = "Let the engine count: sweet-spot count --from ADDRESS --table NAME (docs/engines.md)"
        raise refusal(what, remedy=f"{remedy}, and ask about the file that it writes")


def _frame_to_arrow(frame: pd.DataFrame) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    columns = {}
    for name, column in frame.items():
        try:
            columns[name] = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            # Texts beside numbers: as a text file holds them.
            columns[name] = pa.array([None if pd.isna(cell) else str(cell) for cell in column])
    return pa.table(columns)


def refuse_missing(problems: Problems, columns: Sequence[str], named: Sequence[str]) -> None:
    """Add a problem for every name that is no column."""
    for name in named:
        if name not in columns:
            problems.add(f"there is no column {shown(str(name))}; there are {listed(columns)}")


def refuse_twice(problems: Problems, columns: Sequence[str], named: Sequence[str]) -> None:
    """Add a problem for every one of these names that several columns have."""
    for name, times in Counter(columns).items():
        if times > 1 and name in named:
            what = f"{times} columns are called {shown(name)}"
            problems.add(what, remedy="Rename or drop all but one of them")


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for a sentence."""
    names = ", ".join(shown(name) for name in columns[:MOST_NAMED]) + and_more(len(columns) - MOST_NAMED)
    return names or "none"
