"""Columns of durations, dates and times, which cannot be values, as a bound on them would have no unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpcore.common.checks import Problems
from dpcore.data.column_names import shorten

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
    """Return the kind of time of each column of durations, dates or times, by name."""
    import pyarrow as pa

    kinds = {
        "durations": lambda arrow_type: pa.types.is_duration(arrow_type) or pa.types.is_interval(arrow_type),
        "dates": pa.types.is_date,
        "times of day": pa.types.is_time,
        "points in time": pa.types.is_timestamp,
    }
    return {
        str(field.name): time_type
        for field in schema
        for time_type, is_kind in kinds.items()
        if is_kind(field.type)
    }


def duckdb_times(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the kind of time of each column of durations, dates or times, from DuckDB's types by name."""
    kinds = {"INTERVAL": "durations", "DATE": "dates", "TIMESTAMP": "points in time", "TIME": "times of day"}
    return {
        name: time_type
        for name, type_name in columns.items()
        if (
            time_type := next(
                (time_type_name for start, time_type_name in kinds.items() if type_name.startswith(start)),
                None,
            )
        )
        is not None
    }


def refuse_times(problems: Problems, times: Mapping[str, str], column: str | None) -> None:
    """Add a problem if a column that must be numbers has durations, dates or times."""
    if column is not None and column in times:
        time_type = times[column]
        problems.add(f"column {shorten(column)} holds {time_type}, not numbers", remedy=_REMEDIES[time_type])
