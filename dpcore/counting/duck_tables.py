"""Tables and columns that write DuckDB's SQL, with the methods of Ibis's that the queries of files call.

The queries of `dpcore.counting.query` are written once. On a person's own engine their tables are Ibis's. For files
they are these: Ibis takes longer to load than DuckDB takes to count, and 20 ms to compile a query. The names and the
meaning of methods are Ibis's, and a test compares the results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from typing import TYPE_CHECKING, Any

from dpcore.data.tables import BLANKS

if TYPE_CHECKING:
    from ibis.expr import types as ibis_types

    Table = ibis_types.Table | "DuckTable"
    Value = ibis_types.Value | "DuckColumn"

FLOAT_TYPES = ("DOUBLE", "FLOAT")
_SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGER_TYPES = (*_SIGNED_TYPES, *(f"U{size}" for size in _SIGNED_TYPES))
"""DuckDB's integer types; any two of them have a common type that represents both exactly."""
DECIMAL_PATTERN = re.compile(r"DECIMAL\([0-9]+,[0-9]+\)")
_DUCKDB_TYPES = {"float64": "DOUBLE", "int64": "BIGINT", "uint32": "UINTEGER", "string": "VARCHAR"}
"""DuckDB's types by Ibis's names."""


def quote_literal(literal_text: str) -> str:
    """Return the text as an SQL literal in quotation marks."""
    return "'" + literal_text.replace("'", "''") + "'"


def quote_identifier(column_name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + column_name.replace('"', '""') + '"'


class ColumnType(str):
    """The name of a DuckDB type; of types beyond text, numbers and booleans only the equality of cells matters."""

    def is_string(self) -> bool:
        """Return True for text."""
        return self == "VARCHAR"

    def is_floating(self) -> bool:
        """Return True for floating-point numbers."""
        return self in FLOAT_TYPES

    def is_numeric(self) -> bool:
        """Return True for numbers of any kind."""
        return self in FLOAT_TYPES + INTEGER_TYPES or DECIMAL_PATTERN.fullmatch(self) is not None

    def is_boolean(self) -> bool:
        """Return True for booleans."""
        return self == "BOOLEAN"

    def is_null(self) -> bool:
        """Return True for the type of a column without any cell that is filled."""
        return self == '"NULL"'

    def is_temporal(self) -> bool:
        """Return True for all other types, among them dates."""
        return not (self.is_string() or self.is_numeric() or self.is_boolean())


def _write_sql(value: object) -> str:
    """Return a column, or a constant, as SQL."""
    if isinstance(value, DuckColumn):
        return value.sql
    if isinstance(value, str):
        return quote_literal(value)
    if isinstance(value, float):  # A number with a point alone would be a decimal.
        return f"'{float(value)!r}'::DOUBLE"
    return "NULL" if value is None else str(value)


def _define(sql_template: str, type_name: str = "") -> Callable[..., DuckColumn]:
    """Return a method or function that fills a template with its arguments, of this type or that of the first one."""

    def write_column(first_value: Any, *further_values: Any) -> DuckColumn:
        """Return the column of the filled template."""
        column_type = ColumnType(type_name) if type_name else first_value.type()
        return DuckColumn(sql_template.format(*map(_write_sql, (first_value, *further_values))), column_type)

    return write_column


@dataclass(frozen=True, eq=False)
class DuckColumn:
    """A column of a `DuckTable`, or a result computed from its columns.

    Attributes:
        sql: SQL of its cells, in which the table is called ``t``.
        column_type: Type, as far as it matters here: of results of arithmetic it is that of the first operand.
        window_template: SQL with ``{}`` for a window, if it differs from the SQL followed by one.
    """

    sql: str
    column_type: ColumnType
    window_template: str = ""

    def type(self) -> ColumnType:
        """Return the type."""
        return self.column_type

    def cast(self, type_name: str) -> DuckColumn:
        """Return the cells as another type, by its name in Ibis."""
        return _define(f"CAST({{}} AS {_DUCKDB_TYPES[type_name]})", _DUCKDB_TYPES[type_name])(self)

    def ifelse(self, true_value: Any, false_value: Any) -> DuckColumn:
        """Return one value where this mask is true, and another elsewhere."""
        typed_value = next((v for v in (true_value, false_value) if isinstance(v, DuckColumn)), self)
        case_sql = f"CASE WHEN {self.sql} THEN {_write_sql(true_value)} ELSE {_write_sql(false_value)} END"
        return DuckColumn(case_sql, typed_value.column_type)

    def isin(self, values: Sequence[object]) -> DuckColumn:
        """Return the mask of cells that are among some constants."""
        return DuckColumn(f"({self.sql} IN ({', '.join(map(_write_sql, values))}))", ColumnType("BOOLEAN"))

    def over(self, *, order_by: DuckColumn | None = None, group_by: Sequence[str] = ()) -> DuckColumn:
        """Return this result for each row: of the rows in this order, or with equal cells in these columns."""
        keys_sql = ", ".join(map(quote_identifier, group_by))
        window_sql = f"PARTITION BY {keys_sql}" if order_by is None else f"ORDER BY {order_by.sql}"
        # Not one template for both: the name of a column may have braces.
        sql = (
            self.window_template.format(window_sql)
            if self.window_template
            else f"{self.sql} OVER ({window_sql})"
        )
        return replace(self, sql=sql)

    isnull, notnull = _define("({} IS NULL)", "BOOLEAN"), _define("({} IS NOT NULL)", "BOOLEAN")
    isnan, between = _define("isnan({})", "BOOLEAN"), _define("({} BETWEEN {} AND {})", "BOOLEAN")
    re_search = _define("regexp_matches({}, {})", "BOOLEAN")
    nullif, fill_null = _define("nullif({}, {})"), _define("coalesce({}, {})")
    strip, lower = _define(f"trim({{}}, {quote_literal(BLANKS)})"), _define("lower({})")
    replace, substr = _define("replace({}, {}, {})"), _define("substr({}, {} + 1, {})")
    sum, min, max, mean = (_define(f"{name}({{}})") for name in ("sum", "min", "max", "avg"))
    floor, ceil, round = (_define(f"CAST({n}({{}}) AS BIGINT)", "BIGINT") for n in ("floor", "ceil", "round"))
    year, month, day = (_define(f"{name}({{}})", "BIGINT") for name in ("year", "month", "day"))
    log10 = _define("log10({})", "DOUBLE")
    __add__, __sub__, __mul__ = _define("({} + {})"), _define("({} - {})"), _define("({} * {})")
    __truediv__ = _define("({} / {})", "DOUBLE")
    __floordiv__ = _define("CAST(floor({} / {}) AS BIGINT)", "BIGINT")
    __and__, __or__, __invert__ = _define("({} AND {})"), _define("({} OR {})"), _define("(NOT {})")
    __lt__, __le__ = _define("({} < {})", "BOOLEAN"), _define("({} <= {})", "BOOLEAN")
    __gt__, __ge__ = _define("({} > {})", "BOOLEAN"), _define("({} >= {})", "BOOLEAN")
    __eq__ = _define("({} = {})", "BOOLEAN")  # type: ignore[assignment]
    __ne__ = _define("({} <> {})", "BOOLEAN")  # type: ignore[assignment]


least, greatest = _define("least({}, {})"), _define("greatest({}, {})")


def row_number() -> DuckColumn:
    """Return the number of each row from 0, in any order."""
    return DuckColumn("(row_number() OVER () - 1)", ColumnType("BIGINT"), "(row_number() OVER ({}) - 1)")


def find_functions(expression: Any) -> Any:
    """Return the module with `least`, `row_number` and the like for a table or column: this one, or Ibis."""
    if isinstance(expression, DuckTable | DuckColumn):
        return sys.modules[__name__]
    import ibis

    return ibis


@dataclass(frozen=True)
class DuckTable:
    """A query of DuckDB, whose rows further queries reduce.

    Attributes:
        sql: SQL of its rows.
        types_by_column: Type of each column.
        key_columns: The columns by which `aggregate` groups rows.
    """

    sql: str
    types_by_column: Mapping[str, ColumnType]
    key_columns: tuple[str, ...] = ()

    @classmethod
    def of_name(cls, table_name: str, types_by_column: Mapping[str, str]) -> DuckTable:
        """Build the table or view of this name, with DuckDB's types of its columns."""
        column_types = {column: ColumnType(type_name) for column, type_name in types_by_column.items()}
        return cls(f"SELECT * FROM {quote_identifier(table_name)}", column_types)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.types_by_column)

    def __getitem__(self, column_name: str) -> DuckColumn:
        return DuckColumn(f"t.{quote_identifier(column_name)}", self.types_by_column[column_name])

    def select(self, *names: str, **results: DuckColumn) -> DuckTable:
        """Return some columns, and results under their names."""
        return self._select({name: self[name] for name in names} | results)

    def mutate(self, **results: DuckColumn) -> DuckTable:
        """Return all columns, and results under their names, which may replace columns."""
        return self.select(**{name: self[name] for name in self.columns} | results)

    def rename(self, **columns_by_name: str) -> DuckTable:
        """Return all columns, some of them under new names."""
        names_by_column = {column: name for name, column in columns_by_name.items()}
        return self.select(**{names_by_column.get(name, name): self[name] for name in self.columns})

    def filter(self, *masks: DuckColumn) -> DuckTable:
        """Return the rows for which all masks are true."""
        condition_sql = " AND ".join(mask.sql for mask in masks)
        return replace(self, sql=f"SELECT * FROM ({self.sql}) AS t WHERE {condition_sql}")

    def distinct(self) -> DuckTable:
        """Return every row once."""
        return replace(self, sql=f"SELECT DISTINCT * FROM ({self.sql})")

    def count(self) -> DuckColumn:
        """Return the number of rows, for `aggregate`."""
        return DuckColumn("count(*)", ColumnType("BIGINT"))

    def group_by(self, *names: str) -> DuckTable:
        """Return the table for `aggregate` in groups of rows with equal cells in these columns."""
        return replace(self, key_columns=names)

    def aggregate(self, **results: DuckColumn) -> DuckTable:
        """Return one row per group, or one of all rows, with the cells of the group and results."""
        keys = {name: self[name] for name in self.key_columns}
        group_sql = f" GROUP BY {', '.join(key.sql for key in keys.values())}" if keys else ""
        return self._select(keys | results, group_sql)

    def _select(self, columns_by_name: Mapping[str, DuckColumn], end_sql: str = "") -> DuckTable:
        """Return columns under these names, with this end of the query."""
        column_sqls = [
            f"{column.sql} AS {quote_identifier(name)}" for name, column in columns_by_name.items()
        ]
        types_by_column = {name: column.column_type for name, column in columns_by_name.items()}
        return DuckTable(f"SELECT {', '.join(column_sqls)} FROM ({self.sql}) AS t{end_sql}", types_by_column)

    def _join(self, side: str, other_table: DuckTable, names: Sequence[str]) -> DuckTable:
        """Return each row with those of another table that have equal cells in these columns."""
        names_sql = ", ".join(map(quote_identifier, names))
        join_sql = f"SELECT * FROM ({self.sql}) {side} JOIN ({other_table.sql}) USING ({names_sql})"
        return DuckTable(join_sql, {**self.types_by_column, **other_table.types_by_column})

    left_join, inner_join = partialmethod(_join, "LEFT"), partialmethod(_join, "INNER")
