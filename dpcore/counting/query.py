"""The group-by, written once: the same functions build it for files (`duck_tables`) and any engine of Ibis.

`select_events` reduces a table to user, task and value; every other function reduces that further. No query is run
here. Column names of the results are fixed, so that one place reads the results.

The expressions use only features on which all engines agree. NaN is tested by a function and never compared: in some
engines it equals itself, and DuckDB drops a comparison that a Parquet file's statistics decide, which exclude NaN. The
edges of bins are irrational numbers, which no short decimal equals.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpcore.contributions import MAX_SIZE
from dpcore.counting.duck_tables import find_functions
from dpcore.counting.public_rules import compare_yes, filter_rows, find_period
from dpcore.data.cell_numbers import MAX_NUMBER
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from dpcore.counting.duck_tables import Table, Value

BINS_PER_DECADE = 1_000
"""Number of bins per decade of totals: totals in one bin differ by at most 0.24 %, and each bin keeps its mean."""
_NO_NUMBER_VALUE = 1.5e308
_TOO_LARGE_SIZE = 4_000_000_000_000  # above `MAX_SIZE`, and still a 64-bit integer in every engine
USER_PREFIX = "who_"
TASK_COLUMN = "task"
MARK_PREFIX = "mark_"
UNIT_ROUNDING = 1.0 - 1e-12
"""Factor that removes rounding errors of a sum before it is rounded up: 0.1 + 0.2 + 2.7 counts as 3."""


def to_sql(table_expression: Table, sql_dialect: str) -> str:
    """Return an Ibis expression as SQL of a dialect; references to it that Ibis keeps are removed afterwards."""
    import ibis
    from ibis.backends.sql.compilers import base

    try:
        return str(ibis.to_sql(table_expression, dialect=sql_dialect))
    finally:
        # Ibis 12 shares one node of each of these among all expressions. The node points to the last expression that it
        # was part of, and so to the names of a user's columns.
        for node_name in ("NULL", "FALSE", "TRUE", "STAR"):
            if (node := getattr(base, node_name, None)) is not None:
                node.parent = None


def strip_text(text_column: Value) -> Value:
    """Return a text column without blanks around its cells; cells with nothing left become null."""
    return text_column.strip().nullif("")


def select_events(
    table: Table,
    roles: Roles,
    value_expression: Value | None = None,
    *,
    has_nan: bool,
    strip_cells: Callable[[Value], Value] = strip_text,
    further_columns: Sequence[str] = (),
) -> Table:
    """Build the query for the user columns ``who_0`` ..., the group columns ``task``, ``task_1`` ... and ``value``.

    All of ``who_0`` ... are null if the row names no user; all of ``task`` ... are null if it names no task. Without a
    user column every row is a separate user. Without a role of tasks or values, these columns are missing. If there are
    periods of time, the last of ``who_0`` ... is the row's period, and rows in none are left out.

    Args:
        table: The rows.
        roles: Roles of the columns.
        value_expression: The value column as a number; None for the column itself, by the rules of the roles.
        has_nan: True if the engine has NaN.
        strip_cells: Function that strips a column of text.
        further_columns: Names of further columns to keep.
    """
    table = filter_rows(table, roles.filters)
    stripped_users = [_null_blanks(table[column], has_nan, strip_cells) for column in roles.privacy_unit]
    user_expressions = _blank_all_or_none(stripped_users) or [find_functions(table).row_number()]
    if roles.periods is not None:
        # Only rows in a period count. Without a user they have null in all columns of the user.
        table = table.mutate(period_=find_period(table[roles.periods.column], roles.periods))
        table = table.filter(table["period_"].notnull())
        user_expressions.append(user_expressions[0].isnull().ifelse(None, table["period_"]))
    columns_by_name: dict[str, Any] = {f"{USER_PREFIX}{i}": user for i, user in enumerate(user_expressions)}
    columns_by_name |= {column: table[column] for column in further_columns}
    stripped_groups = [_null_blanks(table[column], has_nan, strip_cells) for column in roles.groups]
    for group_index, group_expression in enumerate(_blank_all_or_none(stripped_groups)):
        columns_by_name[f"{TASK_COLUMN}_{group_index}" if group_index else TASK_COLUMN] = group_expression
    if roles.value is not None and value_expression is None:
        values = table[roles.value]
        value_expression = (
            compare_yes(values, roles.yes_text) if roles.yes_text else replace_non_numbers(values, has_nan)
        )
    columns_by_name |= {} if value_expression is None else {"value": value_expression}
    return table.select(**columns_by_name)


def _blank_all_or_none(naming_columns: list[Value]) -> list[Value]:
    """Return columns that name something together, with null in all of them if one is null."""
    if len(naming_columns) < 2:
        return naming_columns
    any_null_mask = functools.reduce(operator.or_, [expression.isnull() for expression in naming_columns])
    return [any_null_mask.ifelse(expression.nullif(expression), expression) for expression in naming_columns]


def replace_non_numbers(number_column: Value, has_nan: bool) -> Value:
    """Return the column as floats, with one large number in place of NaN and values below `-MAX_NUMBER`.

    A single comparison with `MAX_NUMBER` then finds all cells that are no number to count.
    """
    float_column = number_column.cast("float64")
    too_low_mask = float_column < -MAX_NUMBER
    return (float_column.isnan() | too_low_mask if has_nan else too_low_mask).ifelse(
        _NO_NUMBER_VALUE, float_column
    )


def _null_blanks(key_column: Value, has_nan: bool, strip_cells: Callable[[Value], Value]) -> Value:
    """Return the column stripped if it is text, or with null in place of NaN if it has floats; else unchanged."""
    expression_type = key_column.type()
    if expression_type.is_string():
        return strip_cells(key_column)
    # Ids that were read as numbers have NaN where they were missing.
    if expression_type.is_floating() and has_nan:
        return key_column.isnan().ifelse(None, key_column)
    return key_column


def list_user_columns(rows: Table) -> tuple[str, ...]:
    """Return the columns of `select_events` that identify the user."""
    return tuple(column_name for column_name in rows.columns if column_name.startswith(USER_PREFIX))


def list_task_columns(rows: Table) -> tuple[str, ...]:
    """Return the columns of `select_events` that name a task."""
    return tuple(
        column for column in rows.columns if column == TASK_COLUMN or column.startswith(f"{TASK_COLUMN}_")
    )


def list_text_columns(rows: Table) -> tuple[str, ...]:
    """Return the text columns of `select_events` that identify the user."""
    return tuple(column for column in list_user_columns(rows) if rows[column].type().is_string())


def select_counted(rows: Table, missing_users: MissingUsers) -> Table:
    """Build the query for the rows that count: all if unnamed rows are one user, else only those that name a user."""
    if missing_users is MissingUsers.ONE_USER:
        return rows
    return rows.filter(rows[list_user_columns(rows)[0]].notnull())


def settle_missing(rows: Table, missing_constant: float | None) -> Table:
    """Build the query that replaces missing and unusable values by a constant, or (None) leaves out their rows."""
    usable_mask = rows["value"].between(-MAX_NUMBER, MAX_NUMBER)  # null for a missing one
    if missing_constant is None:
        return rows.filter(usable_mask)
    return rows.mutate(value=usable_mask.ifelse(rows["value"], float(missing_constant)))


def count_odd_cells(rows: Table, missing_users: MissingUsers, is_integer: bool = False) -> Table:
    """Build the query that counts all rows (``rows``) and the rows of each mask of `mask_odd_cells`, as one row.

    Args:
        rows: Result of `select_events`.
        missing_users: Treatment of rows that name no user.
        is_integer: True if the value must be an integer.
    """
    masks_by_kind = mask_odd_cells(rows, missing_users, is_integer)
    counts_by_kind = {cell_kind: _count_true(odd_mask) for cell_kind, odd_mask in masks_by_kind.items()}
    return rows.aggregate(rows=rows.count(), **counts_by_kind)


def mask_odd_cells(rows: Table, missing_users: MissingUsers, is_integer: bool = False) -> dict[str, Value]:
    """Return masks of rows by kind of cell: no user (``nobody``), no task, and values that are odd in some way.

    Except for ``nobody``, only rows that count are marked. Kinds of values are ``blank``, ``not_finite``, ``text``,
    ``negative`` and, if values must be integers, ``broken`` (no integer), ``large`` and ``zero``.
    """
    unnamed_mask: Any = rows[list_user_columns(rows)[0]].isnull()
    counted_mask = unnamed_mask | ~unnamed_mask if missing_users is MissingUsers.ONE_USER else ~unnamed_mask
    masks_by_kind: dict[str, Value] = {"nobody": unnamed_mask}
    if "task" in rows.columns:
        masks_by_kind["no_task"] = counted_mask & rows["task"].isnull()
    if "value" not in rows.columns:
        return masks_by_kind
    values = rows["value"]
    finite_mask = counted_mask & values.between(-MAX_NUMBER, MAX_NUMBER)
    masks_by_kind |= {
        "blank": counted_mask & values.isnull(),
        "not_finite": counted_mask & values.notnull() & (values > MAX_NUMBER),
        "text": counted_mask & values.notnull() & (values < -MAX_NUMBER),
        "negative": finite_mask & (values < 0),
    }
    if is_integer:
        # Ibis converts a floor to a 64-bit integer, so the value is limited first.
        limited_values = find_functions(rows).least(values, float(_TOO_LARGE_SIZE))
        masks_by_kind["broken"] = finite_mask & (values >= 0) & (limited_values != limited_values.floor())
        masks_by_kind["large"] = finite_mask & (values > MAX_SIZE)
        masks_by_kind["zero"] = counted_mask & (values == 0)
    return masks_by_kind


def _count_true(row_mask: Any) -> Any:
    """Return the expression of the number of rows for which a mask is true, a 64-bit integer."""
    return row_mask.ifelse(1, 0).sum().cast("int64")


def count_copies(table: Table, columns: Sequence[str], roles: Roles, has_nan: bool) -> Table:
    """Build the query of the number of rows that are exact copies of earlier ones.

    Its result is one row, with the column ``copies``. Rows that do not count are left out.
    """
    rows = table.select(**{column: _null_blanks(table[column], has_nan, strip_text) for column in columns})
    if roles.missing_users is MissingUsers.LEAVE_OUT:
        rows = rows.filter(*(rows[column].notnull() for column in roles.privacy_unit))
    copy_groups = rows.group_by(list(rows.columns)).aggregate(times=rows.count())
    copy_groups = copy_groups.filter(copy_groups["times"] > 1)
    return copy_groups.aggregate(copies=(copy_groups["times"] - 1).sum().cast("int64"))


def count_placeholders(rows: Table, placeholder_names: Sequence[str]) -> Table:
    """Build the query that counts the rows of users with these names, such as NA, in one row (``placeholders``)."""
    return rows.aggregate(placeholders=rows[list_user_columns(rows)[0]].isin(placeholder_names).sum())


def select_pairs(rows: Table) -> Table:
    """Build the query for the distinct pairs of user and task; rows without a task have none."""
    rows_with_task = rows.filter(rows["task"].notnull())
    return rows_with_task.select(*list_user_columns(rows), *list_task_columns(rows)).distinct()


def count_per_user(rows: Table, contribution: Contribution) -> Table:
    """Build the query that counts contributions per user: user columns, ``size``, and ``total`` if totals are counted.

    ``size`` is an integer, a total rounded up. The user whose columns are null represents the rows that name no user.
    """
    user_columns = list_user_columns(rows)
    if contribution is Contribution.DISTINCT_TASKS:
        distinct_pairs = select_pairs(rows)
        return distinct_pairs.group_by(*user_columns).aggregate(size=distinct_pairs.count().cast("int64"))
    if contribution is Contribution.ROWS:
        return rows.group_by(*user_columns).aggregate(size=rows.count().cast("int64"))
    totals_table, functions = sum_per_user(rows), find_functions(rows)
    # Rows that name no user form a group, too, with any values: text becomes a number below all others.
    limited_totals = functions.greatest(functions.least(totals_table["total"], float(_TOO_LARGE_SIZE)), 0.0)
    # Integers stay unchanged: removing a rounding error would reduce 1e12 by one.
    rounded_totals = (limited_totals * UNIT_ROUNDING).ceil().cast("int64")
    whole_mask = limited_totals == limited_totals.floor()
    return totals_table.mutate(size=whole_mask.ifelse(limited_totals.cast("int64"), rounded_totals))


def sum_per_user(rows: Table) -> Table:
    """Build the query that sums the values of each user: user columns and ``total``, as float64."""
    return rows.group_by(*list_user_columns(rows)).aggregate(total=rows["value"].sum().cast("float64"))


def count_users_by_size(users_table: Table, contribution: Contribution) -> Table:
    """Build the query that counts the users of each size from `count_per_user`: (``size``, ``nobody``, ``users``).

    ``nobody`` is true in the row of the unnamed users. If totals are counted, ``broken`` is the number of rounded
    totals. Every further column of the users that begins with `MARK_PREFIX` is summed, under its name without it.
    """
    flagged_users = users_table.mutate(nobody=users_table[list_user_columns(users_table)[0]].isnull())
    sum_columns: dict[str, Any] = {"users": flagged_users.count().cast("int64")}
    if contribution is Contribution.TOTAL:
        float_sizes = flagged_users["size"].cast("float64")
        sum_columns["broken"] = _count_true(float_sizes > flagged_users["total"] / UNIT_ROUNDING)
    for mark_column in [column for column in users_table.columns if column.startswith(MARK_PREFIX)]:
        sum_columns[mark_column.removeprefix(MARK_PREFIX)] = flagged_users[mark_column].sum().cast("int64")
    return flagged_users.group_by("size", "nobody").aggregate(**sum_columns)


def bin_totals(rows: Table) -> Table:
    """Build the query that counts users by total in bins of equal ratio: (``bin``, ``users``, ``mean`` of the totals).

    Totals of 0 have a bin of their own, null.
    """
    totals_table = sum_per_user(rows)
    # A bin is a rounded logarithm, so its edges are irrational. The logarithm of 0 is an error in some engines.
    log10_totals = find_functions(rows).least(totals_table["total"], _NO_NUMBER_VALUE).nullif(0.0).log10()
    binned_totals = totals_table.mutate(bin=(log10_totals * BINS_PER_DECADE).round().cast("int64"))
    return binned_totals.group_by("bin").aggregate(
        users=binned_totals.count().cast("int64"), mean=binned_totals["total"].mean().cast("float64")
    )


def bin_user_values(rows: Table, lower: float, upper: float, num_bins: int) -> Table:
    """Build the query for the values of each user by bin: (``user``, ``rows``, ``mean``, ``standard_deviation``).

    Users are ranks, as in `rank_pairs`. The bins are those of `dpcore.data.value_bins.ValueBins`; two more hold the
    values below and above, where the standard deviation is 0. Of equal values it is 0, and their mean is exact.
    """
    import ibis

    bin_width = (upper - lower) / num_bins
    limited_values = ibis.greatest(ibis.least(rows["value"], upper), lower - bin_width)
    bin_numbers = ((limited_values - lower) / bin_width).floor().cast("int64")
    # Distances from the middle of the bin, so that shifts do not cancel and no square is large.
    offset = limited_values - ((bin_numbers.cast("float64") + 0.5) * bin_width + lower)
    binned_rows = rows.mutate(bin=bin_numbers, offset=offset, square=offset * offset)
    entries = binned_rows.group_by([*list_user_columns(rows), "bin"]).aggregate(
        rows=binned_rows.count().cast("int64"), total=binned_rows["value"].sum().cast("float64"),
        least=binned_rows["value"].min(), largest=binned_rows["value"].max(),
        offset=binned_rows["offset"].mean(), square=binned_rows["square"].mean(),
    )  # fmt: skip
    mean = ibis.greatest(ibis.least(entries["total"] / entries["rows"], entries["largest"]), entries["least"])
    user_ranks = ibis.dense_rank().over(order_by=[entries[column] for column in list_user_columns(rows)])
    within_variances = ibis.greatest(entries["square"] - entries["offset"] * entries["offset"], 0.0)
    spread_mask = (entries["least"] < entries["largest"]) & (entries["bin"] >= 0)
    standard_deviation = spread_mask.ifelse(within_variances.sqrt(), 0.0)
    return entries.select(
        user=user_ranks, rows=entries["rows"], mean=mean, standard_deviation=standard_deviation
    )


def count_task_sizes(rows: Table) -> Table:
    """Build the query that counts the tasks with each number of distinct users: (``users``, ``tasks``), no names."""
    distinct_pairs = select_pairs(rows)
    count_expression = distinct_pairs.count().cast("int64")
    tasks_table = distinct_pairs.group_by(*list_task_columns(rows)).aggregate(users=count_expression)
    return tasks_table.group_by("users").aggregate(tasks=tasks_table.count().cast("int64"))


def number_cells(rows: Table, key_columns: Sequence[str], order_column: str = "") -> Table:
    """Build the query for the distinct cells of columns, each with a ``code`` from 1; null in the first has none.

    Codes follow the first occurrence if a column numbers the rows (``order_column``); else (empty) they are arbitrary.
    """
    named_rows, row_number = rows.filter(rows[key_columns[0]].notnull()), find_functions(rows).row_number()
    if not order_column:
        return named_rows.select(*key_columns).distinct().mutate(code=row_number + 1)
    cell_table = named_rows.group_by(*key_columns).aggregate(first=named_rows[order_column].min())
    return cell_table.select(*key_columns, code=row_number.over(order_by=cell_table["first"]) + 1)


def code_values(rows: Table, user_table: Table, task_table: Table | None, order_column: str = "") -> Table:
    """Build the query for ``user``, ``value`` and, if given, ``task`` and ``order`` of all rows, as codes.

    Codes are those of the tables of `number_cells`. Rows without a user have the user code 0. Rows without a task have
    the task code null, so that they are sorted last.
    """
    order_columns = [order_column] if order_column else []
    coded_rows = rows.left_join(user_table.rename(user="code"), list_user_columns(rows))
    codes_and_values = {"user": _shrink_codes(coded_rows["user"].fill_null(0)), "value": coded_rows["value"]}
    if task_table is not None:
        coded_rows = coded_rows.select(*list_task_columns(rows), *order_columns, **codes_and_values)
        coded_rows = coded_rows.left_join(task_table.rename(number="code"), list_task_columns(rows))
        codes_and_values = {column_name: coded_rows[column_name] for column_name in ("user", "value")}
        codes_and_values["task"] = _shrink_codes(coded_rows["number"])
    if order_column:
        codes_and_values["order"] = coded_rows[order_column]
    return coded_rows.select(**codes_and_values)


def _shrink_codes(code_column: Any) -> Value:
    """Return a column of codes with half the bytes, as there are at most about 20 million users or tasks."""
    small_codes: Value = code_column.cast("uint32")
    return small_codes


def _compute_pair_amounts(rows: Table) -> tuple[Table, list[str]]:
    """Build the query for one row per pair of user and task, with its amounts; return it and the amounts' names.

    The amounts are ``rows`` and, with values, ``sums`` and ``squared_values``, as in `code_pairs`.
    """
    rows_with_task = rows.filter(rows["task"].notnull())
    sum_columns: dict[str, Any] = {"rows": rows_with_task.count().cast("int64")}
    if "value" in rows.columns:
        values = rows_with_task["value"]
        squared_values = values * values
        sum_columns |= {
            "sums": values.sum().cast("float64"),
            "squares": squared_values.sum().cast("float64"),
        }
    key_columns = [*list_user_columns(rows), *list_task_columns(rows)]
    return rows_with_task.group_by(*key_columns).aggregate(**sum_columns), list(sum_columns)


def compute_value_range(rows: Table) -> Table:
    """Build the query for the range of the values in rows that name a task: one row (``least``, ``largest``)."""
    rows_with_task = rows.filter(rows["task"].notnull())
    values = rows_with_task["value"]
    return rows_with_task.aggregate(least=values.min().cast("float64"), largest=values.max().cast("float64"))


def rank_pairs(rows: Table) -> Table:
    """Build the query for the columns of `code_pairs`, with codes from ranks, for engines that store no table.

    Anyone who knows all users can compute their codes, as these are ranks.
    """
    import ibis

    pairs, pair_amount_names = _compute_pair_amounts(rows)
    user_ranks = ibis.dense_rank().over(order_by=[pairs[column] for column in list_user_columns(rows)])
    task_ranks = ibis.dense_rank().over(order_by=[pairs[column] for column in list_task_columns(rows)])
    # Ibis counts ranks from 0.
    return pairs.select(*pair_amount_names, user=user_ranks + 1, task=task_ranks + 1)


def count_pair_sizes(rows: Table) -> Table:
    """Build the query that counts pairs by groups of their user and by rows: (``groups``, ``rows``, ``pairs``)."""
    pairs, _ = _compute_pair_amounts(rows)
    sized_pairs = pairs.mutate(groups=pairs.count().over(group_by=list_user_columns(rows)))
    return sized_pairs.group_by("groups", "rows").aggregate(pairs=sized_pairs.count().cast("int64"))


def count_group_totals(rows: Table) -> Table:
    """Build the query that counts groups by their rows and users: (``rows``, ``users``, ``groups``), no names."""
    pairs, _ = _compute_pair_amounts(rows)
    sum_columns = {"rows": pairs["rows"].sum().cast("int64"), "users": pairs.count().cast("int64")}
    group_totals = pairs.group_by(*list_task_columns(rows)).aggregate(**sum_columns)
    return group_totals.group_by("rows", "users").aggregate(groups=group_totals.count().cast("int64"))


def code_pairs(rows: Table, user_codes_table: Table, task_codes_table: Table) -> Table:
    """Build the query for the distinct pairs, as codes of users and tasks: (``user``, ``task``, ``rows``).

    Codes are those of the tables of `number_cells`, 0 for no user. If there is a value, the query also returns its
    ``sums`` and ``squares`` (sums of squares).
    """
    task_columns = list_task_columns(rows)
    pairs, pair_amount_names = _compute_pair_amounts(rows)
    user_coded_pairs = pairs.left_join(user_codes_table.rename(user="code"), list_user_columns(rows))
    user_codes = user_coded_pairs["user"].fill_null(0)
    user_coded_pairs = user_coded_pairs.select(*task_columns, *pair_amount_names, user=user_codes)
    coded_pairs = user_coded_pairs.inner_join(task_codes_table.rename(number="code"), task_columns)
    codes_by_name = {"user": _shrink_codes(coded_pairs["user"]), "task": _shrink_codes(coded_pairs["number"])}
    return coded_pairs.select(*pair_amount_names, **codes_by_name)
