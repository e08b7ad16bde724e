"""The group-by, written once with Ibis: the same expressions run in DuckDB, Spark, PostgreSQL ...

`events` reduces a table to who, task and value; every other function reduces that further. Nothing here runs
a query. Column names of the results are fixed, so that what comes back is read in one place.

Only what all engines agree on is used: NaN is asked for by name and never compared (some engines hold it for
equal to itself, and DuckDB drops a comparison that a Parquet file's statistics, which leave NaN out, decide), and
bins are cut at irrational numbers, where no short decimal lies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dpcore.contributions import MAX_SIZE
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.dataset import Contribution

if TYPE_CHECKING:
    from ibis.expr.types import Table, Value

Make = TypeVar("Make", bound=Callable[..., "Table"])
BINS_PER_DECADE = 1_000
"""Bins of totals: the totals in one differ by at most 0.24 %, and each bin keeps its own mean."""
FINITE = 1e308
"""Numbers beyond it count as not finite."""
_BEYOND = 1.5e308
_TOO_LARGE = 4_000_000_000_000  # above `MAX_SIZE`, and still a 64-bit whole number in every engine
WHO = "who_"
TASK = "task"
MARK = "mark_"
UNIT_ROUNDING = 1.0 - 1e-12
"""An error of rounding in a sum is no further unit: 0.1 + 0.2 + 2.7 counts as 3."""
MAX_SQUARED = 1e100
"""Largest value whose square is added up."""


def to_sql(expression: Table, dialect: str) -> str:
    """Return an expression as SQL, and let nothing hold it afterwards."""
    import ibis
    from ibis.backends.sql.compilers import base

    try:
        return str(ibis.to_sql(expression, dialect=dialect))
    finally:
        # Ibis 12 has one node of each of these for all expressions. The node points to the last one that it stood in,
        # and so to the names of a person's columns.
        for name in ("NULL", "FALSE", "TRUE", "STAR"):
            if (node := getattr(base, name, None)) is not None:
                node.parent = None


def _kept(make: Make) -> Make:
    """Keep the last expressions over tables of no engine, such as DuckDB's here.

    To make one takes 5 ms, as long as DuckDB takes to answer it for a small table. These tables call their columns
    ``c0``, ``c1`` ..., and no argument holds another name, so that none outlives its session.
    """

    @functools.lru_cache(maxsize=500)
    def of_operations(*arguments: Any, **options: Any) -> Any:
        expressions = [a.to_expr() if hasattr(a, "to_expr") else a for a in arguments]
        return make(*expressions, **options)

    @functools.wraps(make)
    def kept(*arguments: Any, **options: Any) -> Any:
        from ibis.expr.operations import Node, PhysicalTable, UnboundTable

        # Unlike expressions, operations are equal where they do the same.
        operations = [a.op() if hasattr(a, "op") else a for a in arguments]
        tables = [leaf for op in operations if isinstance(op, Node) for leaf in op.find(PhysicalTable)]
        if all(isinstance(table, UnboundTable) for table in tables):
            return of_operations(*operations, **options)
        return make(*arguments, **options)

    return cast(Make, kept)


def stripped(column: Value) -> Value:
    """Return the text without blanks around it; null where nothing is left."""
    return column.strip().nullif("")


@_kept
def events(
    table: Table,
    roles: Roles,
    value: Value | None = None,
    *,
    has_nan: bool,
    strip: Callable[[Value], Value] = stripped,
    also: Sequence[str] = (),
) -> Table:
    """Return one row per row: columns ``who_0`` ..., ``task`` (of several ``task_1`` ..., too) and ``value``.

    All of ``who_0`` ... are null where the row names no user, all of ``task`` ... where it names no task.

    Where no column says who, every row is a user of its own.

    Args:
        table: The rows.
        roles: What each column means.
        value: The value column as a number; the column itself where it is None.
        has_nan: Whether the engine has NaN.
        strip: How text is stripped.
        also: Further columns to keep.
    """
    import ibis

    unit = [_blank_is_null(table[column], has_nan, strip) for column in roles.privacy_unit]
    unit = _all_or_none(unit)
    columns: dict[str, Any] = {f"{WHO}{at}": part for at, part in enumerate(unit or [ibis.row_number()])}
    columns |= {name: table[name] for name in also}
    tasks = _all_or_none([_blank_is_null(table[column], has_nan, strip) for column in roles.groups])
    columns |= {f"{TASK}_{at}" if at else TASK: part for at, part in enumerate(tasks)}
    if roles.value is not None:
        columns["value"] = value if value is not None else finite_or_beyond(table[roles.value], has_nan)
    return table.select(**columns)


def _all_or_none(parts: list[Value]) -> list[Value]:
    """Return the columns that only together name something: null in all of them where one is."""
    if len(parts) < 2:
        return parts
    missing = parts[0].isnull()
    for part in parts[1:]:
        missing = missing | part.isnull()
    return [missing.ifelse(part.nullif(part), part) for part in parts]


def finite_or_beyond(column: Value, has_nan: bool) -> Value:
    """Return what is not finite, of either sign, as one number: from here on, one comparison tells it."""
    number = column.cast("float64")
    beyond = number < -FINITE
    return (number.isnan() | beyond if has_nan else beyond).ifelse(_BEYOND, number)


def _blank_is_null(column: Value, has_nan: bool, strip: Callable[[Value], Value]) -> Value:
    kind = column.type()
    if kind.is_string():
        return strip(column)
    if kind.is_floating() and has_nan:  # ids that were read as numbers have NaN where they were missing
        return column.isnan().ifelse(None, column)
    return column


def who_columns(rows: Table) -> tuple[str, ...]:
    """Return the columns of `events` that say who."""
    return tuple(column for column in rows.columns if column.startswith(WHO))


def task_columns(rows: Table) -> tuple[str, ...]:
    """Return the columns of `events` that name a task."""
    return tuple(column for column in rows.columns if column == TASK or column.startswith(f"{TASK}_"))


def text_columns(rows: Table) -> tuple[str, ...]:
    """Return the columns of `events` that say who, in text."""
    return tuple(column for column in who_columns(rows) if rows[column].type().is_string())


@_kept
def used(rows: Table, missing: MissingUsers) -> Table:
    """Return the rows that count, given what is to be done with those that name no user."""
    if missing is MissingUsers.ONE_USER:
        return rows
    return rows.filter(rows[who_columns(rows)[0]].notnull())


@_kept
def survey(rows: Table, missing: MissingUsers, whole: bool = False) -> Table:
    """Return one row on what stands in the cells: how many rows, and how many of them have what is to be said.

    Args:
        rows: As `events` gives it.
        missing: What is to be done with rows that name no user.
        whole: Whether the value must be a whole number.
    """
    asked: dict[str, Any] = {"rows": rows.count()}
    asked |= {kind: _how_many(mask) for kind, mask in odd_cells(rows, missing, whole).items()}
    return rows.aggregate(**asked)


def odd_cells(rows: Table, missing: MissingUsers, whole: bool = False) -> dict[str, Value]:
    """For each kind of cell that is left out or refused, where it stands."""
    import ibis

    nobody: Any = rows[who_columns(rows)[0]].isnull()
    counts = nobody | ~nobody if missing is MissingUsers.ONE_USER else ~nobody
    kinds: dict[str, Value] = {"nobody": nobody}
    if "task" in rows.columns:
        kinds["no_task"] = counts & rows["task"].isnull()
    if "value" not in rows.columns:
        return kinds
    value = rows["value"]
    finite = counts & value.between(-FINITE, FINITE)
    kinds |= {
        "blank": counts & value.isnull(),
        "not_finite": counts & value.notnull() & (value > FINITE),
        "text": counts & value.notnull() & (value < -FINITE),
        "negative": finite & (value < 0),
    }
    if whole:
        # Rounded down, Ibis takes a number for a 64-bit whole one.
        size = ibis.least(value, float(_TOO_LARGE))
        kinds["broken"] = finite & (value >= 0) & (size != size.floor())
        kinds["large"] = finite & (value > MAX_SIZE)
        kinds["zero"] = counts & (value == 0)
    return kinds


def _how_many(mask: Any) -> Any:
    return mask.ifelse(1, 0).sum().cast("int64")


def copies(table: Table, columns: Sequence[str], roles: Roles, has_nan: bool) -> Table:
    """Return one row (``copies``): how many of the rows that count are exact copies of another one."""
    rows = table.select(**{column: _blank_is_null(table[column], has_nan, stripped) for column in columns})
    if roles.missing_users is MissingUsers.LEAVE_OUT:
        rows = rows.filter(*(rows[column].notnull() for column in roles.privacy_unit))
    groups = rows.group_by(list(rows.columns)).aggregate(times=rows.count())
    groups = groups.filter(groups["times"] > 1)
    return groups.aggregate(copies=(groups["times"] - 1).sum().cast("int64"))


def placeholders(rows: Table, names: Sequence[str]) -> Table:
    """One row (``placeholders``): how many rows are of users of these names, which stand where nobody is named."""
    return rows.aggregate(placeholders=rows[who_columns(rows)[0]].isin(names).sum())


@_kept
def pairs(rows: Table) -> Table:
    """Distinct pairs of user and task; rows without a task have none."""
    return rows.filter(rows["task"].notnull()).select(*who_columns(rows), *task_columns(rows)).distinct()


@_kept
def per_user(rows: Table, contribution: Contribution) -> Table:
    """Return one row per user: ``size``, contributions as whole numbers, and ``total`` where there is a value.

    The user whose columns are null stands for the rows that name no user.
    """
    who = who_columns(rows)
    if contribution is Contribution.DISTINCT_TASKS:
        distinct = pairs(rows)
        return distinct.group_by(who).aggregate(size=distinct.count().cast("int64"))
    if contribution is Contribution.ROWS:
        return rows.group_by(who).aggregate(size=rows.count().cast("int64"))
    totals = totals_per_user(rows)
    import ibis

    # Rows that name no user are a group here, whatever their values: text is less than any number.
    units = ibis.greatest(ibis.least(totals["total"], float(_TOO_LARGE)), 0.0)
    # What is whole stays as it is: taking an error of rounding off would make 1e12 one less.
    up = (units * UNIT_ROUNDING).ceil().cast("int64")
    return totals.mutate(size=(units == units.floor()).ifelse(units.cast("int64"), up))


@_kept
def totals_per_user(rows: Table) -> Table:
    """Return one row per user: ``total``, the sum of their values as float64."""
    return rows.group_by(who_columns(rows)).aggregate(total=rows["value"].sum().cast("float64"))


@_kept
def histogram(users: Table, contribution: Contribution) -> Table:
    """Return the rows (``size``, ``nobody``, ``users``): how many users have each size, given `per_user`.

    ``nobody`` marks the row of those who are not named. Where totals are counted, ``broken`` counts those that were
    rounded up. Every further column of the users (`MARK`) is added up.
    """
    named = users.mutate(nobody=users[who_columns(users)[0]].isnull())
    asked: dict[str, Any] = {"users": named.count().cast("int64")}
    if contribution is Contribution.TOTAL:
        asked["broken"] = _how_many(named["size"].cast("float64") > named["total"] / UNIT_ROUNDING)
    marks = [column for column in users.columns if column.startswith(MARK)]
    asked |= {mark.removeprefix(MARK): named[mark].sum().cast("int64") for mark in marks}
    return named.group_by("size", "nobody").aggregate(**asked)


@_kept
def binned_totals(rows: Table) -> Table:
    """Rows (``bin``, ``users``, ``mean``): totals per user in bins of equal ratio; a bin of their own for zeros."""
    import ibis

    totals = totals_per_user(rows)
    # A bin is a rounded logarithm, so its edges are irrational. The logarithm of 0 is an error in some engines.
    bins = (ibis.least(totals["total"], _BEYOND).nullif(0.0).log10() * BINS_PER_DECADE).round().cast("int64")
    binned = totals.mutate(bin=bins)
    return binned.group_by("bin").aggregate(
        users=binned.count().cast("int64"), mean=binned["total"].mean().cast("float64")
    )


@_kept
def task_sizes(rows: Table) -> Table:
    """Return the rows (``users``, ``tasks``): how many tasks have so many distinct users. No task is named."""
    distinct = pairs(rows)
    sizes = distinct.group_by(task_columns(rows)).aggregate(users=distinct.count().cast("int64"))
    return sizes.group_by("users").aggregate(tasks=sizes.count().cast("int64"))


@_kept
def numbered(rows: Table, columns: Sequence[str], order: str = "") -> Table:
    """Return the distinct cells of columns, each with a ``code`` from 1; rows that are null in the first have none.

    Where a column numbers the rows (``order``), codes go by it, else in no order.
    """
    import ibis

    named = rows.filter(rows[columns[0]].notnull())
    if not order:
        return named.select(*columns).distinct().mutate(code=ibis.row_number() + 1)
    first = named.group_by(list(columns)).aggregate(first=named[order].min())
    return first.mutate(code=ibis.row_number().over(order_by=first["first"]) + 1).drop("first")


@_kept
def coded_values(rows: Table, users: Table, tasks: Table | None, order: str = "") -> Table:
    """Select ``user``, ``value``, ``task`` and ``order`` of all rows, users and tasks as codes (`numbered`).

    The code of nobody is 0. That of no task is null: such rows come last where rows are sorted.
    """
    columns = {"order": order} if order else {}
    coded = rows.left_join(users.rename(user="code"), who_columns(rows))
    selected = {"user": _code(coded["user"].fill_null(0)), "value": coded["value"]}
    if tasks is not None:
        coded = coded.select(
            *task_columns(rows), **selected, **{name: coded[name] for name in columns.values()}
        )
        coded = coded.left_join(tasks.rename(number="code"), task_columns(rows))
        selected = {"user": coded["user"], "value": coded["value"], "task": _code(coded["number"])}
    return coded.select(**selected, **{name: coded[column] for name, column in columns.items()})


def _code(column: Any) -> Value:
    """Return codes in half the bytes: of users and tasks that come back there are at most some 20 million."""
    code: Value = column.cast("uint32")
    return code


def _amounts_of_pairs(rows: Table) -> tuple[Table, list[str]]:
    """One row per pair of user and task that has rows, with what `coded_pairs` says; and the names of these columns."""
    named = rows.filter(rows["task"].notnull())
    asked: dict[str, Any] = {"rows": named.count().cast("int64")}
    if "value" in rows.columns:
        value = named["value"]
        square = (value.abs() <= MAX_SQUARED).ifelse(value * value, 0.0)
        asked |= {"sums": value.sum(), "squares": square.sum()}
        asked = {name: column.cast("float64") if name != "rows" else column for name, column in asked.items()}
    return named.group_by([*who_columns(rows), *task_columns(rows)]).aggregate(**asked), list(asked)


@_kept
def value_range(rows: Table) -> Table:
    """Return one row (``least``, ``largest``): the ends of the values in rows that name a task."""
    named = rows.filter(rows["task"].notnull())
    return named.aggregate(
        least=named["value"].min().cast("float64"), largest=named["value"].max().cast("float64")
    )


@_kept
def ranked_pairs(rows: Table) -> Table:
    """As `coded_pairs`, with codes from 1 that the one query makes itself: for engines that keep no tables for us.

    Codes go by rank, so that who has which one can be told by whoever knows all users.
    """
    import ibis

    pairs, asked = _amounts_of_pairs(rows)
    user = ibis.dense_rank().over(order_by=[pairs[column] for column in who_columns(rows)])
    task = ibis.dense_rank().over(order_by=[pairs[column] for column in task_columns(rows)])
    # Ibis counts ranks from 0.
    return pairs.select(*asked, user=user + 1, task=task + 1)


@_kept
def pair_sizes(rows: Table) -> Table:
    """Rows (``groups``, ``rows``, ``pairs``): how many pairs have so many rows, of users in so many groups."""
    pairs, _ = _amounts_of_pairs(rows)
    sized = pairs.mutate(groups=pairs.count().over(group_by=who_columns(rows)))
    return sized.group_by("groups", "rows").aggregate(pairs=sized.count().cast("int64"))


@_kept
def group_totals(rows: Table) -> Table:
    """Rows (``rows``, ``users``, ``groups``): how many groups have so many rows, of so many users. None is named."""
    pairs, _ = _amounts_of_pairs(rows)
    totals = pairs.group_by(task_columns(rows)).aggregate(
        rows=pairs["rows"].sum().cast("int64"), users=pairs.count().cast("int64")
    )
    return totals.group_by("rows", "users").aggregate(groups=totals.count().cast("int64"))


@_kept
def coded_pairs(rows: Table, users: Table, tasks: Table) -> Table:
    """Rows (``user``, ``task``, ``rows``): distinct pairs with the codes of users and tasks (`numbered`).

    Where there is a value, also its ``sums`` and ``squares``; the square of one beyond `MAX_SQUARED` counts as 0.
    """
    named_by = task_columns(rows)
    pairs, asked = _amounts_of_pairs(rows)
    found = pairs.left_join(users.rename(user="code"), who_columns(rows))
    found = found.select(*named_by, *asked, user=found["user"].fill_null(0))
    coded = found.inner_join(tasks.rename(number="code"), named_by)
    return coded.select(*asked, user=_code(coded["user"]), task=_code(coded["number"]))
