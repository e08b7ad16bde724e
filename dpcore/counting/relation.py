"""Files as relations: the SQL through which DuckDB reads the rows of each, and the cells of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.workspace import Workspace
from dpcore.counting.duck import Duck, write_text_sql
from dpcore.counting.duck_tables import INTEGER_TYPES, ColumnType, DuckColumn, quote_identifier, quote_literal
from dpcore.counting.formats import MAX_LINE_BYTES, File, MemoryFile, describe_file, open_plain_bytes
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.data.tables import BLANKS, FileKind, Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"
"""Characters that occur in no text."""
LARGE_BUFFER_BYTES, SMALL_BUFFER_BYTES = 32_000_000, 1_000_000
"""Bytes of text read at once: DuckDB's default, and a small one for little memory (10 % slower)."""


@dataclass(frozen=True)
class Relation:
    """The rows of a file to count, and how DuckDB reads them; all relations of a source have the same columns.

    Attributes:
        path: Path of the file.
        name: Display name.
        kind: Format of the content.
        columns: Its columns, from left to right.
        packing: ``gzip`` or ``zstd`` if it is compressed, else empty.
        encoding: Python's name of the encoding of text.
        delimiter: Delimiter of text; empty if there is one column.
        num_skipped_lines: Number of lines of text above the header, or above the first row if there is no header.
        marked_separator: Separator of text whose lines are rewritten before they are counted; empty for none.
        has_header: True if the first line of text names the columns.
        keys: Keys of the columns of JSON, as they are written; empty for other files.
        types: DuckDB's types of the columns of Parquet; empty for other files.
        stamp: Result of `read_stamp` when the file was inspected; zeros for a table in memory.
        table: All its rows, if they are in memory; the file is then not read again.
        has_short_rows: True if some rows have fewer fields than the header.
        buffer_bytes: Bytes of text that are read at once; each thread has several buffers. It must be a multiple of 16.
        is_single_threaded: True if a single thread reads the file.
        text_columns: Columns that are read as text, as their types differ between the files (`find_mixed_columns`).
        folder_cells: Cells of the last columns, which the file's folders name.
    """

    path: File
    name: str
    kind: FileKind
    columns: tuple[str, ...]
    packing: str = ""
    encoding: str = "utf-8"
    delimiter: str = ""
    num_skipped_lines: int = 0
    marked_separator: str = ""
    has_header: bool = True
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    stamp: tuple[int, int] = (0, 0)
    table: Table | None = None
    has_short_rows: bool = False
    buffer_bytes: int = LARGE_BUFFER_BYTES
    is_single_threaded: bool = False
    text_columns: frozenset[str] = frozenset()
    folder_cells: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: Table) -> Relation:
        """Build the relation of a table in memory."""
        path = MemoryFile(b"")
        return cls(path, table.name, FileKind.TEXT, table.columns, delimiter=table.delimiter, table=table)

    @property
    def is_text(self) -> bool:
        """Return True if the rows are read from a text file, not from a table in memory."""
        return self.kind is FileKind.TEXT and self.table is None

    @property
    def num_stored_columns(self) -> int:
        """Return the number of columns that the file itself has."""
        return len(self.columns) - len(self.folder_cells)

    @property
    def separator(self) -> str:
        """Return the delimiter for readers; for one column, a character that occurs in no text."""
        return self.delimiter or ASCII_SEPARATORS[0]

    def open_bytes(self) -> AbstractContextManager[IO[bytes]]:
        """Open the uncompressed bytes of the file as a stream; raise InvalidInput if it turns out to be damaged."""
        return open_plain_bytes(self.path, self.packing, self.name)


def read_stamp(file: File) -> tuple[int, int]:
    """Return the size in bytes and the modification time in ns, which change when the file is written to."""
    file_status = file.stat()
    return file_status.st_size, file_status.st_mtime_ns


def refuse_changed(relations: Sequence[Relation], since_text: str) -> None:
    """Raise InvalidInput if files are gone or were written to; ``since_text`` is the end of that sentence."""
    with Problems() as problems:
        for relation in relations:
            file_location = describe_file(relation.name)
            try:
                if relation.table is None and read_stamp(relation.path) != relation.stamp:
                    changed_message = f"the file was written to {since_text}"
                    problems.add(changed_message, file_location, "Choose it again, or a copy of it")
            except OSError:
                problems.add("the file is gone, or cannot be read", file_location, "Put it back")


def find_safe_path(file: File, workspace: Workspace) -> File:
    """Return the file, or a link to it if DuckDB would take its path as a pattern; raise InvalidInput if that fails."""
    if isinstance(file, MemoryFile):
        return file
    file = file.resolve()
    if not set("*?[]{}") & set(str(file)):
        return file
    link_path = workspace.folder / f"file{len(list(workspace.folder.iterdir()))}"
    try:
        link_path.symlink_to(file)
    except OSError:
        raise refuse("the path holds one of * ? [ ] { }", remedy="Rename the file or its folder") from None
    return link_path


def rename_roles(roles: Roles, file_columns: Sequence[str]) -> Roles:
    """Return the roles with the column names of `write_union` (``c0`` ...) in place of the files'."""
    alias_by_column: dict[Any, Any] = {
        column: f"c{column_index}" for column_index, column in enumerate(file_columns)
    }
    role_names = ("user", "task", "value", "size", "users")
    aliases_by_role: dict[str, Any] = {role: alias_by_column.get(getattr(roles, role)) for role in role_names}
    for role in ("further_user", "further_task"):
        aliases_by_role[role] = tuple(alias_by_column[column] for column in getattr(roles, role))
    aliases_by_role["filters"] = tuple(replace(f, column=alias_by_column[f.column]) for f in roles.filters)
    if roles.periods is not None:
        aliases_by_role["periods"] = replace(roles.periods, column=alias_by_column[roles.periods.column])
    return replace(roles, **aliases_by_role)


# --- rows ---------------------------------------------------------------------------------------------------

ROW_COLUMN = "row_"
"""Name of the column of `write_union` that numbers the rows of a file from 1."""


def write_union(
    relations: Sequence[Relation], columns: Sequence[str], missing_users: MissingUsers, has_row_numbers: bool
) -> str:
    """Return the SQL of all rows of all files: ``c0``, ``c1`` … in the order of ``columns``, numbered if asked."""
    rows_sqls = [_write_rows_sql(relation, columns, missing_users, has_row_numbers) for relation in relations]
    return " UNION ALL ".join(rows_sqls)


def _write_rows_sql(
    relation: Relation, selected_columns: Sequence[str], missing_users: MissingUsers, has_row_numbers: bool
) -> str:
    """Return the SQL of one file's rows: cells in the order of ``selected_columns``, and `ROW_COLUMN` if numbered."""
    cell_sqls = [_write_cell_sql(relation, index) for index in range(len(relation.columns))]
    sql_by_column = dict(zip(relation.columns, cell_sqls, strict=True))
    selected_sqls = [f"{sql_by_column[column]} AS c{index}" for index, column in enumerate(selected_columns)]
    rows_sql = write_scan(relation)
    if has_row_numbers:
        selected_sqls.append(ROW_COLUMN)
        if relation.table is None:
            rows_sql = f"(SELECT *, row_number() OVER () AS {ROW_COLUMN} FROM {rows_sql})"
    condition_sql = ""
    if relation.is_text and missing_users is MissingUsers.ONE_USER and relation.num_stored_columns > 1:
        # A blank line names no user, but it is not a row either.
        stored_indices = range(relation.num_stored_columns)
        filled_sqls = [f"trim(x{index}, {quote_literal(BLANKS)}) <> ''" for index in stored_indices]
        condition_sql = f" WHERE {' OR '.join(filled_sqls)}"
    return f"SELECT {', '.join(selected_sqls)} FROM {rows_sql}{condition_sql}"


def convert_to_arrow(table: Table) -> pa.Table:
    """Return a table as Arrow texts for DuckDB, in columns x0, x1 …, with row numbers; an empty cell is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_columns: dict[str, Any] = {}
    for column_index in range(table.frame.shape[1]):
        arrow_cells = pa.chunked_array(pa.array(table.frame.iloc[:, column_index], pa.string()))
        arrow_columns[f"x{column_index}"] = pc.if_else(pc.equal(arrow_cells, ""), None, arrow_cells)
    return pa.table({**arrow_columns, ROW_COLUMN: np.arange(1, len(table.frame) + 1)})


def read_cells(duck: Duck, relation: Relation, max_rows: int | None = None) -> pd.DataFrame:
    """Read all rows of one file, or the first ones, as text without blanks around it; missing cells are empty."""
    column_indices = range(len(relation.columns))
    text_sqls = [f"{_write_cell_sql(relation, index)}::VARCHAR AS x{index}" for index in column_indices]
    trimmed_sqls = [trim_sql(f"x{index}", relation.kind is FileKind.TEXT) for index in column_indices]
    cell_sqls = [f"coalesce({sql}, '') AS x{index}" for index, sql in enumerate(trimmed_sqls)]
    limit_sql = "" if max_rows is None else f" LIMIT {max_rows}"
    rows_sql = f"(SELECT {', '.join(text_sqls)} FROM {write_scan(relation)}{limit_sql})"
    with duck.keep_order():
        arrow_table = duck.connection.sql(f"SELECT {', '.join(cell_sqls)} FROM {rows_sql}").to_arrow_table()
    frame: pd.DataFrame = arrow_table.to_pandas()
    return frame.set_axis(relation.columns, axis=1)


def find_mixed_columns(relations: Sequence[Relation]) -> frozenset[str]:
    """Return the columns whose types in the files have no common exact type."""
    types_by_column: dict[str, set[str]] = {column: set() for column in relations[0].columns}
    for relation in relations:
        for column, column_type in zip(relation.columns, relation.types or repeat("VARCHAR"), strict=False):
            types_by_column[column].add("BIGINT" if column_type in INTEGER_TYPES else column_type)
    return frozenset(column for column, distinct_types in types_by_column.items() if len(distinct_types) > 1)


def write_scan(relation: Relation, stores_rejects: bool = False) -> str:
    """Return the SQL that reads one file or table in memory, with the columns ``x0``, ``x1`` and so on.

    With ``stores_rejects``, lines that cannot be read go to DuckDB's table of rejected lines.
    """
    if relation.table is not None:
        return quote_identifier(str(relation.path))
    if relation.kind is FileKind.PARQUET:
        return write_parquet_scan(relation.path, relation.num_stored_columns)
    path_sql = quote_literal(str(relation.path))
    packing_sql = f"hive_partitioning = false, compression = '{relation.packing or 'none'}'"
    if relation.kind is FileKind.JSON:
        return _write_json_scan(relation.keys, f"{path_sql}, format = 'newline_delimited', {packing_sql}")
    columns_sql = ", ".join(f"'x{index}': 'VARCHAR'" for index in range(relation.num_stored_columns))
    # DuckDB includes the line end in the size of a line.
    option_sqls = [
        f"auto_detect = false, header = {relation.has_header}, skip = {relation.num_skipped_lines}, {packing_sql}",
        f"columns = {{{columns_sql}}}, delim = {quote_literal(relation.separator)}, quote = '\"', escape = '\"'",
        f"max_line_size = {MAX_LINE_BYTES + 2}, buffer_size = {relation.buffer_bytes}",
        *(["null_padding = true"] if relation.has_short_rows else []),
        *(["parallel = false"] if relation.is_single_threaded else []),
        *(["store_rejects = true"] if stores_rejects else []),
    ]
    return f"read_csv({path_sql}, {', '.join(option_sqls)})"


def write_parquet_scan(path: File, num_columns: int) -> str:
    """Return the SQL that reads a Parquet file, with the columns ``x0``, ``x1``, … in place of their names.

    DuckDB treats names that differ only in case as equal, and takes ``name=value`` in a path as a column. It also takes
    a column as free of NaN because its statistics, which exclude NaN, show none
    (https://github.com/duckdb/duckdb/issues/25521).
    """
    names_sql = ", ".join(f"x{column_index}" for column_index in range(num_columns))
    options_sql = "hive_partitioning = false, can_have_nan = true"
    return f"read_parquet({quote_literal(str(path))}, {options_sql}) AS rows({names_sql})"


def _write_json_scan(json_keys: Sequence[str], options_sql: str) -> str:
    """Return the SQL that reads JSON Lines, with the values of the keys as columns ``x0``, ``x1`` and so on."""
    if len({json_key.lower() for json_key in json_keys}) == len(json_keys) and "" not in json_keys:
        columns_sql = ", ".join(f"{quote_literal(json_key)}: 'JSON'" for json_key in json_keys)
        names_sql = ", ".join(f"x{column_index}" for column_index in range(len(json_keys)))
        return f"read_json({options_sql}, columns = {{{columns_sql}}}) AS rows({names_sql})"
    # Keys that differ only in case, or an empty key, cannot be DuckDB columns, but their values can be extracted.
    key_pointers = ["/" + json_key.replace("~", "~0").replace("/", "~1") for json_key in json_keys]
    cells_sql = ", ".join(f"json->{quote_literal(pointer)} AS x{i}" for i, pointer in enumerate(key_pointers))
    is_object_sql = "CASE json_type(json) WHEN 'OBJECT' THEN true ELSE error('not an object') END"
    return f"(SELECT {cells_sql} FROM read_json_objects({options_sql}) WHERE {is_object_sql}) AS rows"


# --- cells --------------------------------------------------------------------------------------------------

FAR_QUOTED_PATTERN = r"^ {2,}\"([^\"]*)\" *$"
"""A quoted field after several blanks; DuckDB takes its quotation marks as text, but not after one blank."""


def _write_cell_sql(relation: Relation, index: int) -> str:
    """Return the SQL of one column of a file, as it is counted."""
    column_sql = f"x{index}"
    if index >= relation.num_stored_columns:
        return quote_literal(relation.folder_cells[index - relation.num_stored_columns])
    if relation.kind is FileKind.JSON:
        text_sql, number_sql = f"{column_sql}->>'$'", f"TRY_CAST({column_sql}->>'$' AS DOUBLE)"
        number_text_sql = write_text_sql(number_sql, "DOUBLE", text_sql)
        return f"CASE json_type({column_sql}) WHEN 'DOUBLE' THEN {number_text_sql} ELSE {text_sql} END"
    if relation.kind is FileKind.PARQUET:
        column_type, must_be_text = relation.types[index], relation.columns[index] in relation.text_columns
        if must_be_text or column_type == "BLOB":
            return write_text_sql(column_sql, column_type)
    return column_sql


def trim_sql(cell_sql: str, may_be_quoted: bool = True) -> str:
    """Return the SQL of a cell without blanks around it; testing first takes a third of the time of trimming all."""
    unquoted_sql = cell_sql
    if may_be_quoted:
        unquoted_sql = f"regexp_replace({cell_sql}, {quote_literal(FAR_QUOTED_PATTERN)}, '\\1')"
    return f"CASE WHEN {is_padded_sql(cell_sql)} THEN trim({unquoted_sql}, {quote_literal(BLANKS)}) ELSE {cell_sql} END"


def is_padded_sql(cell_sql: str) -> str:
    """Return the SQL condition that a cell is empty or has blanks around it; it is null for a null cell.

    By code point, every blank and the empty text sort before "!". If a cell begins without a blank, it has no quoted
    field after several blanks.
    """
    return f"({cell_sql} < '!' OR {cell_sql}[-1] <= ' ')"


def clean_sql(cell_sql: str) -> str:
    """Return the SQL of a cell cleaned like a column name; 65279 is a byte-order mark."""
    return f"trim(regexp_replace(replace({cell_sql}, chr(65279), ''), '\\s+', ' ', 'g'))"


def make_comparable_sql(column_sql: str, column_type: ColumnType) -> str:
    """Return the SQL of a cell for comparing rows, text without blanks around it; null for an empty cell or NaN."""
    if column_type.is_string():
        return f"nullif({trim_sql(column_sql)}, '')"
    if column_type.is_floating():
        return f"CASE WHEN NOT isnan({column_sql}) THEN {column_sql} END"
    return column_sql


def strip_padded(column: DuckColumn) -> DuckColumn:
    """Return a text column without blanks around its cells, and null for cells with nothing left.

    Only cells that need it are stripped: stripping 10 million cells takes 2 s, the test 0.2 s.
    """
    return replace(column, sql=make_comparable_sql(column.sql, column.type()))


_TIME_KINDS_BY_TYPE = dict.fromkeys(("interval", "month_day_nano_interval", "duration"), "durations")
_TIME_KINDS_BY_TYPE |= {"date": "dates", "time": "times of day", "timestamp": "points in time"}
"""Contents of columns, by the beginning of their type's name in DuckDB or Arrow; the last that fits counts."""


def find_times(columns: Iterable[str], types: Iterable[object]) -> dict[str, str]:
    """Return the kind of time, such as ``dates``, by name of each column whose type, of DuckDB or Arrow, is a time."""
    type_names_by_column = {column: str(type_).lower() for column, type_ in zip(columns, types, strict=True)}
    return {
        column: time_kind
        for column, type_name in type_names_by_column.items()
        for type_beginning, time_kind in _TIME_KINDS_BY_TYPE.items()
        if type_name.startswith(type_beginning)
    }


def refuse_times(problems: Problems, time_kinds: Mapping[str, str], column: str | None) -> None:
    """Add a problem if this column has durations, dates or times: a bound on them would have no unit."""
    if column is not None and column in time_kinds:
        remedy = (
            "Convert them to numbers: seconds since a public date, or column.dt.total_seconds() in pandas"
        )
        problems.add(f"column {shorten(column)} holds {time_kinds[column]}, not numbers", remedy=remedy)
