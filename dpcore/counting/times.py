"""Columns of durations, dates and times: they have no unit that a bound could be in, so they are no values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpcore.common.checks import Problems
from dpcore.data.column_names import shown

if TYPE_CHECKING:
    import pyarrow as pa

_REMEDIES = {
    "durations": "Convert them to numbers in a unit that you choose, such as seconds: "
    "column.dt.total_seconds() in pandas and Polars, epoch(column) in DuckDB",
    "dates": "Convert them to numbers, such as days since a public date, or choose another column",
    "times of day": "Convert them to numbers, such as seconds since midnight, or choose another column",
    "points in time": "Convert them to numbers, such as seconds since a public date, or choose another column",
}


def arrow_times(schema: pa.Schema) -> dict[str, str]:
    """Return what the columns hold that are durations, dates or times, by name."""
    import pyarrow as pa

    kinds = {
        "durations": lambda kind: pa.types.is_duration(kind) or pa.types.is_interval(kind),
        "dates": pa.types.is_date,
        "times of day": pa.types.is_time,
        "points in time": pa.types.is_timestamp,
    }
    return {
        str(field.name): held for field in schema for held, is_kind in kinds.items() if is_kind(field.type)
    }


def duckdb_times(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the same of DuckDB's types by the names of the columns."""
    kinds = {"INTERVAL": "durations", "DATE": "dates", "TIMESTAMP": "points in time", "TIME": "times of day"}
    return {
        name: held
        for name, kind in columns.items()
        if (held := next((held for start, held in kinds.items() if kind.startswith(start)), None)) is not None
    }


def refuse_times(problems: Problems, times: Mapping[str, str], column: str | None) -> None:
    """Add a problem where numbers are needed and the column holds durations, dates or times."""
    if column is not None and column in times:
        held = times[column]
        problems.add(f"column {shown(column)} holds {held}, not numbers", remedy=_REMEDIES[held])
