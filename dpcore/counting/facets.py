"""What a reduction returns, notes on its rows, and conversions of the columns of its queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcore import dataset
from dpcore.common.checks import refuse
from dpcore.common.wording import format_count
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.counting import query
from dpcore.counting.duck import Columns, Duck
from dpcore.counting.duck_tables import DuckTable
from dpcore.data import binned_values, task_facets
from dpcore.data.value_bins import ValueBins

if TYPE_CHECKING:
    from dpcore.counting.duck_tables import Table

NO_COPIES_NOTE = "Exact copies of rows were not looked for: that takes another pass, on request."
RowPlaces = list[tuple[str, str]]
"""Locations of rows as text, each with a detail for the message."""


def describe_first(row_places: RowPlaces, num_rows: int) -> str:
    """Return the first of these locations in brackets, as the end of a note on ``num_rows`` rows; empty for none."""
    return f" ({'first: ' if num_rows > 1 else ''}{row_places[0][0]})" if row_places else ""


def note_copies(num_copies: int | None, notes: list[str], row_places: RowPlaces | None = None) -> None:
    """Add a note on the number of copies and the first one's location, or (None) that they were not looked for."""
    if num_copies is None:
        notes.append(NO_COPIES_NOTE)
    elif num_copies:
        rows_text = format_count(num_copies, "row is an exact copy", "rows are exact copies")
        notes.append(f"{rows_text} of an earlier one{describe_first(row_places or [], 2)}.")


@dataclass
class Facets:
    """The histogram and further facets of a dataset, by the names that they have there."""

    histogram: ContributionHistogram
    values: dataset.Values | None = None
    totals: dataset.Totals | None = None
    pairs: task_facets.Pairs | None = None
    tasks: task_facets.TaskSizes | None = None
    pair_sizes: task_facets.PairSizes | None = None
    task_names: tuple[str, ...] = ()


def list_task_names(duck: Duck, codes_table: DuckTable) -> tuple[str, ...]:
    """Return the name of each task by code: its cells, each cut to `LONGEST_TASK_NAME`, with × between several."""
    max_characters, task_columns = dataset.LONGEST_TASK_NAME, query.list_task_columns(codes_table)
    cell_sqls = [f"substr(CAST({column} AS VARCHAR), 1, {max_characters})" for column in task_columns]
    names_sql = f"SELECT {', '.join(cell_sqls)} FROM ({codes_table.sql}) ORDER BY code"
    return tuple(" × ".join(str(cell) for cell in name_cells) for name_cells in duck.fetch_rows(names_sql))


def fetch_binned_values(
    run_query: Callable[[Table], Columns],
    column: str,
    bins: ValueBins,
    rows: Table,
    histogram: ContributionHistogram,
) -> dataset.Values:
    """Fetch the values of each user by bin from an engine; raise InvalidInput if there may be too many entries."""
    # A user has at most one entry per row, and at most one per bin.
    num_entries, max_entries = int(histogram.count_kept_rows(bins.num_bins + 2)), binned_values.MAX_ENTRIES
    if num_entries > max_entries:
        message = (
            f"the rows of users fill up to {num_entries:,} pairs of user and bin; at most {max_entries:,} fit"
        )
        raise refuse(message, remedy="Take fewer bins, or a sample of whole users")
    bin_columns = run_query(query.bin_user_values(rows, bins.lower, bins.upper, bins.num_bins))
    bin_arrays = (bin_columns[array_name] for array_name in ("user", "rows", "mean", "standard_deviation"))
    return binned_values.build_values(*bin_arrays, column=column, bins=bins)


def convert_to_floats(arrays_by_column: Columns) -> dict[str, FloatArray]:
    """Return the columns as float64, which is exact below 2^53; nulls, such as empty sums, become 0."""
    return {
        column_name: np.nan_to_num(np.asarray(array, np.float64))
        for column_name, array in arrays_by_column.items()
    }
