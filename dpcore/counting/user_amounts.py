"""Rows and amounts of users for a private selection, read by public rules: no user's cells decide how reading ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, refusal
from dpcore.common.privacy import Disclosure
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting import formats, query, reading
from dpcore.counting.duck import MEMORY_LIMIT, Duck, literal, sql_of
from dpcore.counting.files import Source, open_files
from dpcore.counting.formats import Format, Kind, Packing
from dpcore.counting.held import File, Held, name_of
from dpcore.counting.memory_tables import refuse_missing
from dpcore.counting.pair_table import count_pairs, take_pairs
from dpcore.counting.parts import Part, safe_path
from dpcore.counting.reduce import Reduced
from dpcore.counting.reduce_files import Files
from dpcore.counting.running import Steps
from dpcore.counting.text import read_table
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data.column_names import refuse_many_columns, shown
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.delimited_text import BLANKS
from dpcore.data.layout import FileKind, FileLayout, TableLayout
from dpcore.data.numbers import read_cell
from dpcore.data.tables import Table, table_of_cells
from dpcore.data.user_amounts import LARGEST_CELL, UserAmounts
from dpcore.dataset import Dataset

if TYPE_CHECKING:
    from ibis.expr.types import Table as EngineTable


def read_user_amounts(
    paths: Sequence[File], names: Sequence[str] | None, roles: Roles, named: Sequence[str]
) -> UserAmounts | Dataset:
    """Read files for a private selection.

    A row that names no user is left out. A cell that holds no finite number counts as 0, and numbers are clamped to
    `LARGEST_CELL`. A file without rows holds nobody.

    Args:
        paths: Files with the same columns.
        names: What to call them; their own names where None.
        roles: Which columns say who and name a group, and which values are added up; None for those not needed.
        named: All columns that the person named.

    Returns:
        The amounts; of a table of pairs that an engine counted, its data set.

    Raises:
        InvalidInput: A column is missing or holds no numbers by its type, or the files are no table. What was wrong
            with rows is not said.
    """
    try:
        source = open_files(paths, names)
    except InvalidInput:
        source = _open_by_header(paths, names)
    with Problems() as problems:
        refuse_missing(problems, source.columns, named)
    with Problems() as problems:
        refuse_times(problems, source.head.times, roles.value)
    of_pairs = take_pairs(source.roles, roles)
    if of_pairs.kind is TableKind.PAIRS:
        try:
            return count_pairs(source, of_pairs, Disclosure.PRIVATE, MEMORY_LIMIT)
        except InvalidInput:
            raise _unreadable() from None
    files = _Amounts(source.parts, roles, MEMORY_LIMIT, None, Steps(None, 4), [])
    try:
        files.reduce()
    except InvalidInput:
        if files.column_problem is not None:
            raise files.column_problem from None
        raise _unreadable() from None
    assert files.amounts is not None
    layout = TableLayout(source.head.layouts, tuple(files.decimals.items())) if source.head.layouts else None
    return replace(files.amounts, layout=layout, name=source.name)


def _unreadable() -> InvalidInput:
    return refusal(
        "the data cannot be read as a table",
        remedy="Ask without a draw to see why. Nothing was drawn, and no ε was spent",
    )


def _open_by_header(paths: Sequence[File], names: Sequence[str] | None) -> Source:
    """Look at the column names of files alone, whatever their rows hold."""
    called = list(names) if names is not None else [name_of(path) for path in paths]
    looked = []
    for path, name in zip(paths, called, strict=True):
        kind = formats.kind_of(path, name)
        try:
            if kind.format is Format.TEXT:
                looked.append(_text_header(path, name, kind))
                continue
            if kind.format is Format.PARQUET:
                looked.append(_parquet_header(path, name))
                continue
        except InvalidInput:
            pass
        raise _unreadable()
    parts, heads = [part for part, _ in looked], [head for _, head in looked]
    if len({part.columns for part in parts}) > 1:
        raise _unreadable()
    layouts = tuple(layout for head in heads for layout in head.layouts)
    return Source(parts[0].name, replace(heads[0], layouts=layouts), False, tuple(parts))


def _text_header(path: File, name: str, kind: Kind) -> tuple[Part, Table]:
    """Return a text file and its header, with one made-up row in the place of all rows."""
    lines = kind.head.split(b"\n")
    skip = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(b"#")), 0)
    header = lines[skip].rstrip(b"\r")
    mark = max((b",", b";", b"\t", b"|"), key=header.count)
    head = read_table(header + b"\n" + mark.join([b"0"] * (header.count(mark) + 1)) + b"\n", name)
    packing = "" if kind.packing is Packing.NONE else kind.packing.value
    head = replace(head, layouts=(replace(head.layouts[0], skip=skip, packing=packing),))
    read = head.encoding, head.delimiter, skip, "", True
    return Part(path, name, Format.TEXT, kind.packing, head.columns, *read), head


def _parquet_header(path: File, name: str) -> tuple[Part, Table]:
    """Return a Parquet file and its columns, with one made-up row in the place of all rows."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            columns = [str(field.name) for field in file.schema_arrow]
            refuse_many_columns(len(columns))
            times = arrow_times(file.schema_arrow)
        with closing(Workspace()) as workspace:
            safe = path if isinstance(path, Held) else safe_path(path, workspace)
            with closing(Duck([safe], workspace.folder)) as duck:
                described = duck.rows(f"DESCRIBE SELECT * FROM {reading.parquet_scan(safe, len(columns))}")
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, duckdb.Error):
        raise _unreadable() from None
    head = table_of_cells(columns, [["0"] * len(columns)], np.arange(2, dtype=np.int64), name, "row")
    head = replace(head, layouts=(FileLayout(name, FileKind.PARQUET),), times=times)
    types = tuple(str(row[1]) for row in described)
    return Part(path, name, Format.PARQUET, Packing.NONE, head.columns, types=types), head


class _Amounts(Files):
    """Files on their way to `UserAmounts`.

    Attributes:
        amounts: The result, once `reduce` has run.
        column_problem: Why a column can hold no numbers by its type; None where it can.
    """

    amounts: UserAmounts | None = None
    column_problem: InvalidInput | None = None
    _num_rows: int = 0
    _cells_without_number: int | None = None

    def _open_source(self, duck: Duck) -> None:
        """The view ``source``: all rows as text, and the values as numbers, each cell read by itself."""
        self._numbers = {}
        view = "CREATE OR REPLACE TEMP VIEW source AS"
        duck.connection.execute(f"{view} {self._view(self._readings, False)}")
        self._kinds = kinds = duck.table("source").schema()
        self._num_rows = int(duck.rows("SELECT count(*) FROM source")[0][0])
        if (name := self.roles.value) is None:
            return
        column = f"c{self.columns.index(name)}"
        if kinds[column].is_string():
            # The program's mark is the column's; no number here depends on it.
            self.decimals[name] = self._marks(duck, column, name).decimal
            semicolons = all(part.delimiter == ";" for part in self._parts)
            number = read_cell(f"trim({column}, {literal(BLANKS)})", "," if semicolons else ".")
        elif kinds[column].is_numeric() or kinds[column].is_null():
            number, self.decimals[name] = f"CAST({column} AS DOUBLE)", ""
        else:
            what = "the column does not hold numbers"
            self.column_problem = refusal(what, f"column {shown(name)}", "Choose another column")
            raise self.column_problem
        count = f"SELECT count(*) FROM source WHERE NOT coalesce(isfinite({number}), false)"
        self._cells_without_number = int(duck.rows(count)[0][0])
        finite = f"CASE WHEN isfinite({number}) THEN {number} ELSE 0.0 END"
        self._numbers[column] = f"coalesce(greatest(least({finite}, {LARGEST_CELL}), -{LARGEST_CELL}), 0.0)"
        duck.connection.execute(f"{view} {self._view(self._readings, False)}")

    def _reduce(self) -> Reduced:
        for at, its in enumerate(self._readings):
            if its.part.format is Format.JSON and its.part.encoding != "utf-8":
                self._readings[at] = self._recode(at, its.part.encoding)
        with self._duck() as duck:
            self._open_source(duck)
            roles = reading.renamed(self.roles, self.columns)
            table = duck.table("source")
            value = None if roles.value is None else table[f"n{roles.value}"]
            rows = query.used(query.events(table, roles, value, has_nan=True), roles.missing_users)
            self.amounts = self._amounts_of(duck, duck.keep("rows", rows), roles)
        return Reduced(self.amounts.histogram)

    def _amounts_of(self, duck: Duck, rows: EngineTable, roles: Roles) -> UserAmounts:
        who = ", ".join(query.who_columns(rows))
        table = f"({sql_of(rows)})"
        users = duck.columns(
            f"SELECT size, count(*) AS users FROM (SELECT count(*) AS size FROM {table} GROUP BY {who}) GROUP BY size"
        )
        histogram = ContributionHistogram.nobody()
        if users["size"].size:
            histogram = ContributionHistogram.from_table(users["size"], users["users"])
        amounts = UserAmounts(
            histogram,
            rows_without_user=self._num_rows - histogram.num_rows,
            cells_without_number=self._cells_without_number,
        )
        added = "" if roles.value is None else ", sum(value) AS sums"
        if roles.task is None:
            totals = None
            if added:
                asked = f"SELECT sum(value) AS sums FROM {table} GROUP BY {who}"
                totals = np.asarray(duck.columns(asked)["sums"], np.float64)
            return replace(amounts, totals=totals)
        groups = ", ".join(query.task_columns(rows))
        named = f"SELECT {who}, count(*) AS rows{added} FROM {table} WHERE task IS NOT NULL GROUP BY {who}, {groups}"
        pairs = duck.columns(
            f"SELECT * EXCLUDE ({who}), dense_rank() OVER (ORDER BY {who}) AS code FROM ({named})"
        )
        order = np.argsort(pairs["code"], kind="stable")
        listed = f"SELECT DISTINCT {groups} FROM {table} WHERE task IS NOT NULL"
        return replace(
            amounts,
            user_codes=np.asarray(pairs["code"], np.int64)[order],
            rows=np.asarray(pairs["rows"], np.int64)[order],
            sums=np.asarray(pairs["sums"], np.float64)[order] if added else None,
            num_groups=int(duck.rows(f"SELECT count(*) FROM ({listed})")[0][0]),
        )


def roles_for(
    user: Sequence[str], group: Sequence[str], value: str | None, *, of_groups: bool, of_values: bool
) -> Roles:
    """Return the roles of the columns that a selection reads."""
    return Roles(
        TableKind.EVENTS,
        user=user[0],
        value=value if of_values else None,
        task=group[0] if of_groups and group else None,
        further_user=tuple(user[1:]),
        further_task=tuple(group[1:]) if of_groups else (),
    )
