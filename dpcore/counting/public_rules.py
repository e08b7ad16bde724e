"""Public rules for cells: the period of a date, the text that says yes, and conditions on rows."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.checks import refuse
from dpcore.common.wording import format_count
from dpcore.data.cell_numbers import MAX_NUMBER
from dpcore.data.column_names import shorten
from dpcore.data.periods import DATE_PATTERN, Periods
from dpcore.data.row_filter import WHOLE_PATTERN, RowFilter, fold_text
from dpcore.data.tables import BLANKS

if TYPE_CHECKING:
    from dpcore.counting.duck_tables import Table, Value


def find_period(dates: Any, periods: Periods) -> Value:
    """Return the public period of each cell of a column of dates as an integer; null for a cell in none.

    A date counts as it is written, or as the engine states its year, month and day.
    """
    if dates.type().is_temporal():
        day_numbers = dates.year() * 10_000 + dates.month() * 100 + dates.day()
    else:
        date_cells = dates.cast("string").strip()
        date_digits = date_cells.replace("-", "").replace("/", "").replace(".", "").substr(0, 8)
        day_numbers = date_cells.re_search(DATE_PATTERN).ifelse(date_digits, "0").cast("int64")
    edge_days = [int(edge_text.replace("-", "")) for edge_text in periods.edges]
    divisor, first_day = {"day": (1, 0), "month": (100, 1), "year": (10_000, 101)}.get(periods.noun, (1, -1))
    inside_mask = (day_numbers >= edge_days[0]) & (day_numbers < edge_days[-1])
    if all(edge_day % divisor == first_day for edge_day in edge_days):
        unmasked_period_numbers: Any = day_numbers // divisor
        # Not 30 February, which is no day of a person that the price knows.
        inside_mask &= unmasked_period_numbers.isin([edge_day // divisor for edge_day in edge_days[:-1]])
    else:  # The number of edges up to the day, after the first one.
        edge_counts = [(day_numbers >= edge_day).ifelse(1, 0) for edge_day in edge_days[:-1]]
        unmasked_period_numbers = functools.reduce(operator.add, edge_counts) - 1
    period_numbers: Value = inside_mask.ifelse(unmasked_period_numbers.cast("int64"), None)
    return period_numbers


def count_outside(table: Table, periods: Periods) -> Table:
    """Build the query that counts the rows in none of the periods (``outside``) and all rows (``rows``), in one row."""
    outside_mask = find_period(table[periods.column], periods).isnull()
    return table.aggregate(
        outside=outside_mask.ifelse(1, 0).sum().cast("int64"), rows=table.count().cast("int64")
    )


def note_outside(outside_columns: Mapping[str, Any], periods: Periods, dataset_notes: list[str]) -> None:
    """Add a note on the rows in none of the periods; raise InvalidInput if all are.

    Args:
        outside_columns: Result of `count_outside`.
        periods: The periods.
        dataset_notes: List to which the note is added.
    """
    num_outside, num_rows = (
        int(np.nan_to_num(outside_columns[count_name])[0]) for count_name in ("outside", "rows")
    )
    if num_rows and num_outside == num_rows:
        remedy = "Check the span. A date begins with year, month and day, such as 2025-01-31 or 20250131"
        raise refuse(f"no row has a date {periods.span_text}", f"column {shorten(periods.column)}", remedy)
    if num_outside:
        rows_text = format_count(num_outside, "row has", "rows have")
        dataset_notes.append(
            f"{rows_text} no date in {shorten(periods.column)} {periods.span_text}, and were left out."
        )


def write_yes_sql(cell_sql: str, yes_text: str) -> str:
    """Return the SQL of a cell as 1 if it is ``yes_text`` in any case, 0 for any other text, and null if it is empty.

    Args:
        cell_sql: SQL of the cell, of any type; 1.0 is 1.
        yes_text: The text.
    """
    text_sql = f"lower(regexp_replace(trim({cell_sql}::VARCHAR, '{BLANKS}'), '^([0-9]+)\\.0$', '\\1'))"
    yes_sql = "'" + fold_text(yes_text).replace("'", "''") + "'"
    return f"CASE WHEN {text_sql} <> '' THEN ({text_sql} = {yes_sql})::DOUBLE END"


def compare_yes(cells: Any, yes_text: str) -> Value:
    """Return cells as 1 where they are ``yes_text`` in any case, 0 for others, and null if empty; 1.0 is 1."""
    cell_texts = cells.cast("string").strip().nullif("").lower()
    # Without a reference to a group, which engines write differently.
    cell_texts = cell_texts.re_search(WHOLE_PATTERN).ifelse(cell_texts.replace(".0", ""), cell_texts)
    yes_or_no_numbers = (cell_texts == fold_text(yes_text)).ifelse(1.0, 0.0)
    known_numbers: Value = cell_texts.isnull().ifelse(None, yes_or_no_numbers)
    return known_numbers


_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def filter_rows(table: Table, filters: Sequence[RowFilter], number_prefix: str = "") -> Table:
    """Build the query for the rows that satisfy all conditions.

    Args:
        table: The rows.
        filters: The conditions.
        number_prefix: Prefix of the columns that hold the numbers of others; empty if cells are read as they are.
    """
    filter_masks = []
    for row_filter in filters:
        cells: Any = table[row_filter.column]
        if row_filter.is_of_text:
            filter_masks.append(compare_yes(cells, row_filter.value) == float(row_filter.sign == "="))
            continue
        if number_prefix:
            cell_numbers = table[number_prefix + row_filter.column]
        elif cells.type().is_numeric():
            cell_numbers = cells
        else:
            cell_numbers = cells.cast("string").replace("_", "?").try_cast("float64")
        number_mask = cell_numbers.between(-MAX_NUMBER, MAX_NUMBER)
        filter_masks.append(number_mask & _OPERATORS[row_filter.sign](cell_numbers, float(row_filter.value)))
    return table.filter(*filter_masks) if filter_masks else table
