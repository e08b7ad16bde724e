"""Rows and amounts of users for a private selection, read by public rules: no user's cells affect the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import InvalidInput, Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.workspace import Workspace
from dpcore.contributions import ContributionHistogram
from dpcore.counting import formats, query, reading
from dpcore.counting.duck import MEMORY_LIMIT, Duck, literal, sql_of
from dpcore.counting.files import Source, open_files
from dpcore.counting.formats import DetectedFormat, File, Format, MemoryFile, Packing, name_of
from dpcore.counting.frames import refuse_missing
from dpcore.counting.reading import InputFile, safe_path
from dpcore.counting.reduce_files import Files
from dpcore.counting.reduced import Reduced
from dpcore.counting.run import count_pairs, take_pairs
from dpcore.counting.running import Steps
from dpcore.counting.text import read_table
from dpcore.counting.times import arrow_times, refuse_times
from dpcore.data.column_names import refuse_many_columns, shorten
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.delimited_text import BLANKS
from dpcore.data.tables import FileKind, FileLayout, Table, TableLayout, build_table, read_cell_sql
from dpcore.data.totals_per_user import LARGEST_CELL, UserAmounts
from dpcore.dataset import Dataset

if TYPE_CHECKING:
    from ibis.expr.types import Table as EngineTable


def read_user_amounts(
    paths: Sequence[File], names: Sequence[str] | None, roles: Roles, named_columns: Sequence[str]
) -> UserAmounts | Dataset:
    """Read files for a private selection.

    A row that names no user is left out. A cell without a finite number counts as 0, and numbers are clamped to
    `LARGEST_CELL`. A file without rows has no users.

    Args:
        paths: Files with the same columns.
        names: Display names; None for the names of the files.
        roles: The columns of user, group and value; None for those not needed.
        named_columns: All columns that the user named.

    Returns:
        The amounts; for a table of pairs that an engine counted, its dataset.

    Raises:
        InvalidInput: A column is missing or its type has no numbers, or the files are not a table. Problems of rows are
            not described.
    """
    try:
        source = open_files(paths, names)
    except InvalidInput:
        source = _open_by_header(paths, names)
    with Problems() as problems:
        refuse_missing(problems, source.columns, named_columns)
    with Problems() as problems:
        refuse_times(problems, source.head.times, roles.value)
    pair_roles = take_pairs(source.roles, roles)
    if pair_roles.kind is TableKind.PAIRS:
        try:
            return count_pairs(source, pair_roles, Disclosure.PRIVATE, MEMORY_LIMIT)
        except InvalidInput:
            raise _unreadable() from None
    files = _Amounts(source.input_files, roles, MEMORY_LIMIT, None, Steps(None, 4), [])
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
    return refuse(
        "the data cannot be read as a table",
        remedy="Ask without a draw to see why. Nothing was drawn, and no ε was spent",
    )


def _open_by_header(paths: Sequence[File], names: Sequence[str] | None) -> Source:
    """Open files by their column names alone, independent of their rows."""
    file_names = list(names) if names is not None else [name_of(path) for path in paths]
    inspected = []
    for path, name in zip(paths, file_names, strict=True):
        detected = formats.detect_format(path, name)
        try:
            if detected.format is Format.TEXT:
                inspected.append(_text_header(path, name, detected))
                continue
            if detected.format is Format.PARQUET:
                inspected.append(_parquet_header(path, name))
                continue
        except InvalidInput:
            pass
        raise _unreadable()
    input_files, heads = [input_file for input_file, _ in inspected], [head for _, head in inspected]
    if len({input_file.columns for input_file in input_files}) > 1:
        raise _unreadable()
    layouts = tuple(layout for head in heads for layout in head.layouts)
    return Source(input_files[0].name, replace(heads[0], layouts=layouts), False, tuple(input_files))


def _text_header(path: File, name: str, detected: DetectedFormat) -> tuple[InputFile, Table]:
    """Return a text file and its header, with one dummy row in place of all rows."""
    lines = detected.head.split(b"\n")
    skip = next((index for index, line in enumerate(lines) if line.strip() and not line.startswith(b"#")), 0)
    header = lines[skip].rstrip(b"\r")
    mark = max((b",", b";", b"\t", b"|"), key=header.count)
    head = read_table(header + b"\n" + mark.join([b"0"] * (header.count(mark) + 1)) + b"\n", name)
    packing = "" if detected.packing is Packing.NONE else detected.packing.value
    head = replace(head, layouts=(replace(head.layouts[0], skip=skip, packing=packing),))
    text_options = head.encoding, head.delimiter, skip, "", True
    return InputFile(path, name, Format.TEXT, detected.packing, head.columns, *text_options), head


def _parquet_header(path: File, name: str) -> tuple[InputFile, Table]:
    """Return a Parquet file and its columns, with one dummy row in place of all rows."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            columns = [str(field.name) for field in file.schema_arrow]
            refuse_many_columns(len(columns))
            times = arrow_times(file.schema_arrow)
        with closing(Workspace()) as workspace:
            safe = path if isinstance(path, MemoryFile) else safe_path(path, workspace)
            with closing(Duck([safe], workspace.folder)) as duck:
                described = duck.rows(f"DESCRIBE SELECT * FROM {reading.parquet_scan(safe, len(columns))}")
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, duckdb.Error):
        raise _unreadable() from None
    head = build_table(columns, [["0"] * len(columns)], np.arange(2, dtype=np.int64), name, "row")
    head = replace(head, layouts=(FileLayout(name, FileKind.PARQUET),), times=times)
    types = tuple(str(row[1]) for row in described)
    return InputFile(path, name, Format.PARQUET, Packing.NONE, head.columns, types=types), head


class _Amounts(Files):
    """The reduction of files to `UserAmounts`.

    Attributes:
        amounts: The result, after `reduce` has run.
        column_problem: The error of a column whose type has no numbers; None if there is none.
    """

    amounts: UserAmounts | None = None
    column_problem: InvalidInput | None = None
    _num_rows: int = 0
    _cells_without_number: int | None = None

    def _open_source(self, duck: Duck) -> None:
        """Create the view ``source``: all rows as text, and the values as numbers, each cell read separately."""
        self._numbers = {}
        view = "CREATE OR REPLACE TEMP VIEW source AS"
        duck.connection.execute(f"{view} {self._view(self._readings, False)}")
        self._kinds = kinds = duck.table("source").schema()
        self._num_rows = int(duck.rows("SELECT count(*) FROM source")[0][0])
        if (name := self.roles.value) is None:
            return
        column = f"c{self.columns.index(name)}"
        if kinds[column].is_string():
            # The decimal mark of the column is for the program only; no number here depends on it.
            self.decimals[name] = self._marks(duck, column, name).decimal
            semicolons = all(input_file.delimiter == ";" for input_file in self._input_files)
            number = read_cell_sql(f"trim({column}, {literal(BLANKS)})", "," if semicolons else ".")
        elif kinds[column].is_numeric() or kinds[column].is_null():
            number, self.decimals[name] = f"CAST({column} AS DOUBLE)", ""
        else:
            message = "the column does not hold numbers"
            self.column_problem = refuse(message, f"column {shorten(name)}", "Choose another column")
            raise self.column_problem
        count = f"SELECT count(*) FROM source WHERE NOT coalesce(isfinite({number}), false)"
        self._cells_without_number = int(duck.rows(count)[0][0])
        finite = f"CASE WHEN isfinite({number}) THEN {number} ELSE 0.0 END"
        self._numbers[column] = f"coalesce(greatest(least({finite}, {LARGEST_CELL}), -{LARGEST_CELL}), 0.0)"
        duck.connection.execute(f"{view} {self._view(self._readings, False)}")

    def _reduce(self) -> Reduced:
        for index, its in enumerate(self._readings):
            if its.file.format is Format.JSON and its.file.encoding != "utf-8":
                self._readings[index] = self._recode(index, its.file.encoding)
        with self._duck() as duck:
            self._open_source(duck)
            roles = reading.rename_roles(self.roles, self.columns)
            table = duck.table("source")
            value = None if roles.value is None else table[f"n{roles.value}"]
            rows = query.select_counted(query.events(table, roles, value, has_nan=True), roles.missing_users)
            self.amounts = self._count_amounts(duck, duck.keep("rows", rows), roles)
        return Reduced(self.amounts.histogram)

    def _count_amounts(self, duck: Duck, rows: EngineTable, roles: Roles) -> UserAmounts:
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
        sums_sql = "" if roles.value is None else ", sum(value) AS sums"
        if roles.task is None:
            totals = None
            if sums_sql:
                totals_sql = f"SELECT sum(value) AS sums FROM {table} GROUP BY {who}"
                totals = np.asarray(duck.columns(totals_sql)["sums"], np.float64)
            return replace(amounts, totals=totals)
        groups = ", ".join(query.task_columns(rows))
        pairs_sql = (
            f"SELECT {who}, count(*) AS rows{sums_sql} FROM {table} WHERE task IS NOT NULL "
            f"GROUP BY {who}, {groups}"
        )
        pairs = duck.columns(
            f"SELECT * EXCLUDE ({who}), dense_rank() OVER (ORDER BY {who}) AS code FROM ({pairs_sql})"
        )
        order = np.argsort(pairs["code"], kind="stable")
        groups_sql = f"SELECT DISTINCT {groups} FROM {table} WHERE task IS NOT NULL"
        return replace(
            amounts,
            user_codes=np.asarray(pairs["code"], np.int64)[order],
            rows=np.asarray(pairs["rows"], np.int64)[order],
            sums=np.asarray(pairs["sums"], np.float64)[order] if sums_sql else None,
            num_groups=int(duck.rows(f"SELECT count(*) FROM ({groups_sql})")[0][0]),
        )


def build_roles(
    user: Sequence[str], group: Sequence[str], value: str | None, *, of_groups: bool, of_values: bool
) -> Roles:
    """Build the roles of the columns that a private selection reads."""
    return Roles(
        TableKind.EVENTS,
        user=user[0],
        value=value if of_values else None,
        task=group[0] if of_groups and group else None,
        further_user=tuple(user[1:]),
        further_task=tuple(group[1:]) if of_groups else (),
    )
