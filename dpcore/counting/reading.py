"""How DuckDB reads files: what is known of each, and one view over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import formats
from dpcore.counting.duck import WHOLE_NUMBERS, Duck, as_text, identifier, literal
from dpcore.counting.formats import File, Format, MemoryFile, Packing
from dpcore.counting.running import Steps
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.data.delimited_text import ASCII_SEPARATORS, BLANKS, MAX_LINE_BYTES
from dpcore.data.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class InputFile:
    """A file to count; the files of one source have the same columns.

    Attributes:
        path: Path of the file.
        name: Display name.
        format: Format of the content.
        packing: Compression.
        columns: Its columns, from left to right.
        encoding: Python's name of the encoding of text.
        delimiter: Delimiter of text; empty if there is one column.
        skip: Number of lines of text above the header, or above the first row if there is no header.
        split: Separator of `BETWEEN` in text, which is rewritten before it is counted; empty for none.
        has_header: True if the first line of text names the columns.
        keys: Keys of the columns of JSON, as they are written.
        types: DuckDB's types of the columns of Parquet.
        stamp: Result of `stamp_of` when the file was inspected.
        table: All its rows, if they are in memory; the file is then not read again.
    """

    path: File
    name: str
    format: Format
    packing: Packing
    columns: tuple[str, ...]
    encoding: str = "utf-8"
    delimiter: str = ""
    skip: int = 0
    split: str = ""
    has_header: bool = True
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    stamp: tuple[int, int] = (0, 0)
    table: Table | None = None

    @property
    def separator(self) -> str:
        """Return the delimiter for readers; for one column, a character that occurs in no text."""
        return self.delimiter or ASCII_SEPARATORS[0]


def file_of_table(table: Table) -> InputFile:
    """Describe a table in memory as an input file."""
    kinds, delimiter = (Format.TABLE, Packing.NONE), table.delimiter
    return InputFile(MemoryFile(b""), table.name, *kinds, table.columns, delimiter=delimiter, table=table)


def stamp_of(path: File) -> tuple[int, int]:
    """Return the size and the modification time, which change when the file is written to."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def refuse_changed(input_files: Sequence[InputFile], since: str) -> None:
    """Raise InvalidInput if files are gone or were written to; ``since`` is the end of that sentence."""
    problems = Problems()
    for input_file in input_files:
        if input_file.table is not None:
            continue
        location = f"file {shorten(input_file.name)}"
        try:
            is_changed = stamp_of(input_file.path) != input_file.stamp
        except OSError:
            message = "the file is no longer there, or cannot be read"
            problems.add(message, location, "Put it back, or choose it anew")
            continue
        if is_changed:
            remedy = "Choose it again once nothing writes to it, or count a copy"
            problems.add(f"the file was written to {since}", location, remedy)
    problems.raise_if_any()


def safe_path(path: File, workspace: Workspace) -> File:
    """Return the path, or a link to it if DuckDB would take it as a pattern."""
    if isinstance(path, MemoryFile):
        return path
    path = path.resolve()
    if not set("*?[]{}") & set(str(path)):
        return path
    link = workspace.folder / f"file{len(list(workspace.folder.iterdir()))}"
    try:
        link.symlink_to(path)
    except OSError:
        message = "the path holds one of the characters * ? [ ] { }"
        raise refuse(message, remedy="Rename the file or its folder") from None
    return link


LARGE_BUFFER, SMALL_BUFFER = 32_000_000, 1_000_000
"""Bytes of text read at once: DuckDB's default, and a small one for little memory (10 % slower)."""


@dataclass(frozen=True)
class Reading:
    """A file with its reading options, which may change after DuckDB refused the file.

    Attributes:
        file: The file.
        short_rows: True if some rows have fewer fields than the header.
        buffer: Bytes of text that are read at once; every thread has several buffers. DuckDB requires a multiple of 16.
        is_single_threaded: True if a single thread reads the file.
        texts: Columns that are read as text, as their types differ between the files (`find_mixed_columns`).
    """

    file: InputFile
    short_rows: bool = False
    buffer: int = LARGE_BUFFER
    is_single_threaded: bool = False
    texts: frozenset[str] = frozenset()


FAR_QUOTED = r"^ {2,}\"([^\"]*)\" *$"
"""A quoted field after several blanks; DuckDB takes its quotation marks as text, but not after one blank."""
ROW = "row_"
"""Name of the column of `union` that numbers the rows of a file from 1."""


def union(
    readings: Sequence[Reading], columns: Sequence[str], missing: MissingUsers, numbered: bool = False
) -> str:
    """Return the SQL of all rows of all files: ``c0``, ``c1`` ... in the order of ``columns``, and `ROW`."""
    return " UNION ALL ".join(_rows(reading, columns, missing, numbered) for reading in readings)


def _rows(reading: Reading, columns: Sequence[str], missing: MissingUsers, numbered: bool) -> str:
    input_file = reading.file
    inner = {column: _cell(reading, index) for index, column in enumerate(input_file.columns)}
    picked = [f"{inner[column]} AS c{index}" for index, column in enumerate(columns)]
    source = scan(reading)
    if numbered:
        picked.append(ROW)
        if input_file.table is None:
            source = f"(SELECT *, row_number() OVER () AS {ROW} FROM {source})"
    condition = ""
    if input_file.format is Format.TEXT and missing is MissingUsers.ONE_USER and len(input_file.columns) > 1:
        # A blank line names no user, but it is not a row either.
        filled = " OR ".join(
            f"trim(x{index}, {literal(BLANKS)}) <> ''" for index in range(len(input_file.columns))
        )
        condition = f" WHERE {filled}"
    return f"SELECT {', '.join(picked)} FROM {source}{condition}"


def to_arrow_table(input_file: InputFile) -> pa.Table:
    """Return a table in memory as an Arrow table for DuckDB; an empty cell is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert input_file.table is not None
    frame = input_file.table.frame
    cells = [pa.chunked_array(pa.array(frame.iloc[:, index], pa.string())) for index in range(frame.shape[1])]
    columns = {
        f"x{index}": pc.if_else(pc.equal(column, ""), None, column) for index, column in enumerate(cells)
    }
    return pa.table({**columns, ROW: np.arange(1, len(frame) + 1)})


def read_cells(duck: Duck, reading: Reading, max_rows: int | None = None) -> pd.DataFrame:
    """Read the rows of one file as text without blanks around it, in their order; missing cells are empty."""
    columns = reading.file.columns
    texts = [f"{_cell(reading, index)}::VARCHAR AS x{index}" for index in range(len(columns))]
    quoted = reading.file.format is Format.TEXT
    cells = [f"coalesce({trim_sql(f'x{index}', quoted)}, '') AS x{index}" for index in range(len(columns))]
    limit = "" if max_rows is None else f" LIMIT {max_rows}"
    rows = f"(SELECT {', '.join(texts)} FROM {scan(reading)}{limit})"
    with duck.in_order():
        table = duck.connection.sql(f"SELECT {', '.join(cells)} FROM {rows}").to_arrow_table()
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_axis(columns, axis=1)


def trim_sql(cell: str, quoted: bool = True) -> str:
    """Return the SQL of a cell without blanks around it; testing first takes a third of the time of trimming all."""
    inner = f"regexp_replace({cell}, {literal(FAR_QUOTED)}, '\\1')" if quoted else cell
    return f"CASE WHEN {is_padded_sql(cell)} THEN trim({inner}, {literal(BLANKS)}) ELSE {cell} END"


def is_padded_sql(cell: str) -> str:
    """Return the SQL condition that a cell is empty or has blanks around it. Null for null.

    By code point, every blank and the empty text sort before "!". If a cell begins without a blank, it has no quoted
    field after several blanks.
    """
    return f"({cell} < '!' OR {cell}[-1] <= ' ')"


def _cell(reading: Reading, index: int) -> str:
    """Return the SQL of one column of a file, as it is counted."""
    input_file, column = reading.file, f"x{index}"
    if input_file.format is Format.JSON:
        text, number = f"{column}->>'$'", f"TRY_CAST({column}->>'$' AS DOUBLE)"
        return (
            f"CASE json_type({column}) WHEN 'DOUBLE' THEN {as_text(number, 'DOUBLE', text)} ELSE {text} END"
        )
    if input_file.format is Format.PARQUET and (
        input_file.columns[index] in reading.texts or input_file.types[index] == "BLOB"
    ):
        return as_text(column, input_file.types[index])
    return column


def find_mixed_columns(input_files: Sequence[InputFile]) -> frozenset[str]:
    """Return the columns whose types in the files have no common exact type."""

    def types(column: str) -> set[str]:
        types_in_files = {
            input_file.types[input_file.columns.index(column)] if input_file.types else "VARCHAR"
            for input_file in input_files
        }
        return {"BIGINT" if column_type in WHOLE_NUMBERS else column_type for column_type in types_in_files}

    return frozenset(column for column in input_files[0].columns if len(types(column)) > 1)


def scan(reading: Reading, rejects: bool = False) -> str:
    """Return the SQL that reads one file, with the columns ``x0``, ``x1`` and so on.

    With ``rejects``, lines that cannot be read go to DuckDB's table of rejected lines.
    """
    input_file = reading.file
    if input_file.table is not None:
        return identifier(str(input_file.path))
    path = literal(str(input_file.path))
    if input_file.format is Format.PARQUET:
        return parquet_scan(input_file.path, len(input_file.columns))
    packing = f"hive_partitioning = false, compression = '{input_file.packing.value}'"
    if input_file.format is Format.JSON:
        return _scan_json(input_file, f"{path}, format = 'newline_delimited', {packing}")
    # DuckDB includes the line end in the size of a line.
    columns = ", ".join(f"'x{index}': 'VARCHAR'" for index in range(len(input_file.columns)))
    options = [
        "auto_detect = false", f"header = {str(input_file.has_header).lower()}", f"skip = {input_file.skip}", packing,
        f"columns = {{{columns}}}", f"delim = {literal(input_file.separator)}",
        "quote = '\"'", "escape = '\"'", f"max_line_size = {MAX_LINE_BYTES + 2}",
        f"buffer_size = {reading.buffer}",
    ]  # fmt: skip
    if reading.short_rows:
        options.append("null_padding = true")
    if reading.is_single_threaded:
        options.append("parallel = false")
    if rejects:
        options.append("store_rejects = true")
    return f"read_csv({path}, {', '.join(options)})"


def parquet_scan(path: File, columns: int) -> str:
    """Return the SQL that reads a Parquet file, with the columns ``x0``, ``x1``, … in place of their names.

    DuckDB treats names that differ only in case as equal, and takes ``name=value`` in a path as a column. It also takes
    a column as free of NaN because its statistics, which exclude NaN, show none
    (https://github.com/duckdb/duckdb/issues/25521).
    """
    names = ", ".join(f"x{index}" for index in range(columns))
    options = "hive_partitioning = false, can_have_nan = true"
    return f"read_parquet({literal(str(path))}, {options}) AS rows({names})"


def _scan_json(input_file: InputFile, options: str) -> str:
    names = ", ".join(f"x{index}" for index in range(len(input_file.keys)))
    if len({key.lower() for key in input_file.keys}) == len(input_file.keys) and "" not in input_file.keys:
        columns = ", ".join(f"{literal(key)}: 'JSON'" for key in input_file.keys)
        return f"read_json({options}, columns = {{{columns}}}) AS rows({names})"
    # Keys that differ only in case, or an empty key, cannot be DuckDB columns, but their values can be extracted.
    pointers = ["/" + key.replace("~", "~0").replace("/", "~1") for key in input_file.keys]
    picked = ", ".join(f"json->{literal(pointer)} AS x{index}" for index, pointer in enumerate(pointers))
    is_object = "CASE json_type(json) WHEN 'OBJECT' THEN true ELSE error('not an object') END"
    return f"(SELECT {picked} FROM read_json_objects({options}) WHERE {is_object}) AS rows"


def recode_file(
    reading: Reading, encoding: str, target: Path, should_stop: ShouldStop | None, steps: Steps
) -> Reading:
    """Write the file as uncompressed UTF-8 under another path, and return its reading."""
    input_file = reading.file
    steps.total += 1
    formats.recode(
        input_file.path,
        input_file.packing,
        encoding,
        target,
        input_file.name,
        should_stop,
        steps,
        input_file.split,
    )
    return replace(
        reading, file=replace(input_file, path=target, packing=Packing.NONE, encoding="utf-8", split="")
    )


def rename_roles(roles: Roles, columns: Sequence[str]) -> Roles:
    """Return the roles with the column names of `union`."""
    names: dict[str | None, str | None] = {column: f"c{index}" for index, column in enumerate(columns)} | {
        None: None
    }
    return replace(
        roles, further_user=tuple(str(names[column]) for column in roles.further_user), user=names[roles.user],
        further_task=tuple(str(names[column]) for column in roles.further_task),
        task=names[roles.task], value=names[roles.value], size=names[roles.size], users=names[roles.users],
    )  # fmt: skip
