"""Queries on files: built with `duck_tables` they give what Ibis gives in the same DuckDB."""

import math
import random
from contextlib import closing

import ibis
import pytest

from dpcore.counting import query
from dpcore.counting.duck import Duck
from dpcore.counting.duck_tables import DuckTable
from dpcore.counting.public_rules import count_outside, filter_rows
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.periods import build_periods
from dpcore.data.row_filter import parse_filters
from dpcore.dataset import Contribution

IBIS_TYPES = {
    "VARCHAR": "string",
    "DOUBLE": "float64",
    "BIGINT": "int64",
    "DATE": "date",
    "BOOLEAN": "boolean",
}
USERS = ["a", "b", " b", "b\t", "", "  ", "7", "7.0", "ü", None]
NUMBERS = [0.0, 0.5, 1.25, 3.0, -2.0, 4e12, 1e101, -1e101, math.inf, math.nan, None]
DAYS = ["2025-01-01", "20250209", "2025/03/31 12:00", "2025-02-30", "2026-01-01", "yesterday", "", None]
ROLES = Roles(TableKind.EVENTS, user="name", value="amount")
GROUPED = Roles(TableKind.EVENTS, user="name", further_user=("number",), task="shop", value="amount")
PERIODS = [build_periods("day", "2025-01-01 to 2025-04-01 by " + step, 1, None) for step in ("month", "week")]


def write_table(duck, name, columns):
    """Store random cells as a table, twice as many rows as there are kinds of users, and numbers of rows."""
    draw = random.Random(7)
    duck.connection.execute(
        f"CREATE TEMP TABLE {name} ({', '.join(f'{c} {t}' for c, (t, _) in columns.items())})"
    )
    rows = [[draw.choice(cells) for _, cells in columns.values()] for _ in range(200)]
    duck.connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    duck.connection.execute(f"ALTER TABLE {name} ADD COLUMN row_ BIGINT; UPDATE {name} SET row_ = rowid + 1")


@pytest.fixture(scope="module")
def duck():
    with closing(Duck()) as duck:
        columns = {"name": ("VARCHAR", USERS), "number": ("DOUBLE", [1.0, 2.0, math.nan, None])}
        columns |= {"shop": ("VARCHAR", ["s", "t", " t", "", None]), "amount": ("DOUBLE", NUMBERS)}
        columns |= {
            "day": ("VARCHAR", DAYS),
            "date": ("DATE", ["2025-01-31", "2025-02-01", "2027-01-01", None]),
        }
        write_table(duck, "source", columns | {"paid": ("VARCHAR", ["Yes", " yes", "1.0", "1", "", None])})
        # What `select_events` leaves: users without blanks, and values whose sums are exact in any order.
        events = {"who_0": ("VARCHAR", ["a", "b", "ü", None]), "who_1": ("DOUBLE", [1.0, 2.0])}
        events |= {"task": ("VARCHAR", ["s", "t", None]), "value": ("DOUBLE", [0.0, 0.5, 3.25, 1e5])}
        write_table(duck, "rows", events)
        yield duck


def fetch(duck, sql):
    """Return the names of the columns of a query, and its rows in one order."""
    result = duck.connection.execute(sql)
    names = [name for name, *_ in result.description]
    return names, sorted(map(repr, result.fetchall()))


def check(duck, name, build):
    """Build a query on both kinds of tables, and compare columns, text columns of users, and rows."""
    ours = duck.get_table(name)
    assert isinstance(ours, DuckTable)
    types = {column: IBIS_TYPES[type_name] for column, type_name in ours.types_by_column.items()}
    built, by_ibis = build(ours), build(ibis.table(types, name=name))
    assert built.columns == tuple(by_ibis.columns)
    assert query.list_text_columns(built) == query.list_text_columns(by_ibis)
    names, rows = fetch(duck, built.sql)
    assert names == list(built.columns)
    assert (names, rows) == fetch(duck, query.to_sql(by_ibis, "duckdb"))
    return rows


@pytest.mark.parametrize("roles", [ROLES, GROUPED, Roles(TableKind.EVENTS, value="amount")])
def test_events_are_the_same(duck, roles):
    rows = check(
        duck, "source", lambda t: query.select_events(t, roles, has_nan=True, further_columns=("row_",))
    )
    assert len(rows) == 200


@pytest.mark.parametrize("column", ["day", "date"])
@pytest.mark.parametrize("periods", PERIODS)
def test_periods_and_conditions_are_the_same(duck, column, periods):
    periods = build_periods(column, periods.span, 1, None)
    roles = Roles(TableKind.EVENTS, user="name", periods=periods)
    rows = check(
        duck, "source", lambda t: query.select_events(t, roles, has_nan=True, further_columns=("row_",))
    )
    assert 0 < len(rows) < 200
    check(duck, "source", lambda t: count_outside(t, periods))
    for text in ("paid = yes", "paid != 1", "amount > 0; amount <= 3", "number < 2"):
        rows = check(duck, "source", lambda t, text=text: filter_rows(t, parse_filters(text)))
        assert 0 < len(rows) < 200


REDUCTIONS = {
    "one user": lambda t: query.select_counted(t, MissingUsers.ONE_USER),
    "left out": lambda t: query.select_counted(t, MissingUsers.LEAVE_OUT),
    "pairs": query.select_pairs,
    "sums": query.sum_per_user,
    "task sizes": query.count_task_sizes,
    "numbered": lambda t: query.number_cells(t, ("who_0", "who_1"), "row_"),
    "range": query.compute_value_range,
    "bins": query.bin_totals,
    "pair sizes": query.count_pair_sizes,
    "group totals": query.count_group_totals,
}
REDUCTIONS |= {
    f"users {kind}": lambda t, kind=kind: query.count_users_by_size(query.count_per_user(t, kind), kind)
    for kind in Contribution
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions_are_the_same(duck, reduction):
    rows = check(duck, "rows", REDUCTIONS[reduction])
    assert rows


@pytest.mark.parametrize("missing_users", list(MissingUsers))
@pytest.mark.parametrize("constant", [None, 0.1])
def test_odd_cells_are_the_same(duck, missing_users, constant):
    def select(table):
        return query.select_events(table, GROUPED, has_nan=True)

    check(duck, "source", lambda t: query.settle_missing(select(t), constant))
    check(duck, "source", lambda t: query.count_odd_cells(select(t), missing_users, True))


def test_codes_are_the_same(duck):
    # Codes are stored first, since a table of them is numbered anew whenever it is read.
    rows, keys = duck.get_table("rows"), ("who_0", "who_1")
    duck.store_table("users", query.number_cells(rows, keys, "row_"))
    duck.store_table("tasks", query.number_cells(rows, ("task",)))
    tables = {
        DuckTable: {name: duck.get_table(name) for name in ("users", "tasks")},
        ibis.Table: {
            "users": ibis.table({"who_0": "string", "who_1": "float64", "code": "int64"}, name="users"),
            "tasks": ibis.table({"task": "string", "code": "int64"}, name="tasks"),
        },
    }
    for build in (lambda *t: query.code_values(*t, "row_"), query.code_pairs):
        rows = check(duck, "rows", lambda t, build=build: build(t, *tables[type(t)].values()))
        assert len(rows) > 10


def test_a_window_keeps_the_braces_in_the_name_of_a_column(duck):
    duck.connection.execute(
        """CREATE OR REPLACE TEMP TABLE braces AS SELECT unnest([1, 5, 2]) AS "a{}", 7 AS b"""
    )
    table = DuckTable.of_name("braces", {"a{}": "INTEGER", "b": "INTEGER"})
    largest = table.mutate(largest=table["a{}"].max().over(group_by=["b"]))
    assert duck.connection.execute(largest.sql).fetchall() == [(1, 7, 5), (5, 7, 5), (2, 7, 5)]
