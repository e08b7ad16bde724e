"""How DuckDB reads files: one view over all of them, every column of text as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.progress import ShouldStop
from dpcore.counting import formats
from dpcore.counting.duck import WHOLE_NUMBERS, Duck, as_text, identifier, literal
from dpcore.counting.formats import Format, Packing
from dpcore.counting.held import File
from dpcore.counting.parts import Part
from dpcore.counting.running import Steps
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.data.delimited_text import BLANKS, MAX_LINE_BYTES

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LARGE_BUFFER, SMALL_BUFFER = 32_000_000, 1_000_000
"""Bytes of text read at once: DuckDB's own choice, and one that a tenth of the memory can afford (a tenth slower)."""


@dataclass(frozen=True)
class Reading:
    """How one part is read: as it was found, or as it had to be changed after DuckDB refused it.

    Attributes:
        part: The file.
        short_rows: Whether some rows have fewer fields than the header.
        buffer: Bytes of text that are read at once; every thread has some of these. DuckDB wants a multiple of 16.
        alone: Whether one thread reads the file.
        texts: Columns that are read as text, as their types in the files differ (`mixed`).
    """

    part: Part
    short_rows: bool = False
    buffer: int = LARGE_BUFFER
    alone: bool = False
    texts: frozenset[str] = frozenset()


FAR_QUOTED = r"^ {2,}\"([^\"]*)\" *$"
"""A quoted field behind several blanks, whose marks DuckDB takes for text; behind one it does not."""
ROW = "row_"
"""The column of `union` that numbers the rows of a file from 1."""


def union(
    readings: Sequence[Reading], columns: Sequence[str], missing: MissingUsers, numbered: bool = False
) -> str:
    """SQL of all rows of all files, with the columns ``c0``, ``c1`` ... in the order of ``columns``, and `ROW`."""
    return " UNION ALL ".join(_rows(reading, columns, missing, numbered) for reading in readings)


def _rows(reading: Reading, columns: Sequence[str], missing: MissingUsers, numbered: bool) -> str:
    part = reading.part
    inner = {column: _cell(reading, at) for at, column in enumerate(part.columns)}
    picked = [f"{inner[column]} AS c{at}" for at, column in enumerate(columns)]
    source = scan(reading)
    if numbered:
        picked.append(ROW)
        if part.table is None:
            source = f"(SELECT *, row_number() OVER () AS {ROW} FROM {source})"
    where = ""
    if part.format is Format.TEXT and missing is MissingUsers.ONE_USER and len(part.columns) > 1:
        # A blank line names nobody, but it is no row either.
        filled = " OR ".join(f"trim(x{at}, {literal(BLANKS)}) <> ''" for at in range(len(part.columns)))
        where = f" WHERE {filled}"
    return f"SELECT {', '.join(picked)} FROM {source}{where}"


def table_of(part: Part) -> pa.Table:
    """Return a table in memory as DuckDB takes it; an empty cell is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert part.table is not None
    frame = part.table.frame
    cells = [pa.chunked_array(pa.array(frame.iloc[:, at], pa.string())) for at in range(frame.shape[1])]
    columns = {f"x{at}": pc.if_else(pc.equal(column, ""), None, column) for at, column in enumerate(cells)}
    return pa.table({**columns, ROW: np.arange(1, len(frame) + 1)})


def cells_of(duck: Duck, reading: Reading, most: int | None = None) -> pd.DataFrame:
    """Return the rows of one file as text without blanks around it, in their order; what is missing is empty."""
    columns = reading.part.columns
    texts = [f"{_cell(reading, at)}::VARCHAR AS x{at}" for at in range(len(columns))]
    quoted = reading.part.format is Format.TEXT
    cells = [f"coalesce({trimmed(f'x{at}', quoted)}, '') AS x{at}" for at in range(len(columns))]
    limit = "" if most is None else f" LIMIT {most}"
    rows = f"(SELECT {', '.join(texts)} FROM {scan(reading)}{limit})"
    with duck.in_order():
        table = duck.connection.sql(f"SELECT {', '.join(cells)} FROM {rows}").to_arrow_table()
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_axis(columns, axis=1)


def trimmed(cell: str, quoted: bool = True) -> str:
    """SQL of a cell without blanks around it. To look for them first takes a third of the time of trimming all."""
    inner = f"regexp_replace({cell}, {literal(FAR_QUOTED)}, '\\1')" if quoted else cell
    return f"CASE WHEN {padded(cell)} THEN trim({inner}, {literal(BLANKS)}) ELSE {cell} END"


def padded(cell: str) -> str:
    """SQL of whether blanks stand around a cell, or nothing stands there. Null for null.

    Every blank sorts before "!", by code point, and so does nothing at all; where a cell begins with none, no quotation
    mark stands far.
    """
    return f"({cell} < '!' OR {cell}[-1] <= ' ')"


def _cell(reading: Reading, at: int) -> str:
    """SQL of one column of a file, as it is counted."""
    part, column = reading.part, f"x{at}"
    if part.format is Format.JSON:
        text, number = f"{column}->>'$'", f"TRY_CAST({column}->>'$' AS DOUBLE)"
        return (
            f"CASE json_type({column}) WHEN 'DOUBLE' THEN {as_text(number, 'DOUBLE', text)} ELSE {text} END"
        )
    if part.format is Format.PARQUET and (part.columns[at] in reading.texts or part.types[at] == "BLOB"):
        return as_text(column, part.types[at])
    return column


def mixed(parts: Sequence[Part]) -> frozenset[str]:
    """Return the columns whose types in the files have no common type that holds both exactly."""

    def types(column: str) -> set[str]:
        kinds = {part.types[part.columns.index(column)] if part.types else "VARCHAR" for part in parts}
        return {"BIGINT" if kind in WHOLE_NUMBERS else kind for kind in kinds}

    return frozenset(column for column in parts[0].columns if len(types(column)) > 1)


def scan(reading: Reading, rejects: bool = False) -> str:
    """SQL that reads one file, with the columns ``x0``, ``x1`` ...

    With ``rejects``, lines that cannot be read go to DuckDB's table of them.
    """
    part = reading.part
    if part.table is not None:
        return identifier(str(part.path))
    path = literal(str(part.path))
    if part.format is Format.PARQUET:
        return parquet_scan(part.path, len(part.columns))
    packing = f"hive_partitioning = false, compression = '{part.packing.value}'"
    if part.format is Format.JSON:
        return _scan_json(part, f"{path}, format = 'newline_delimited', {packing}")
    # DuckDB counts the line end in.
    columns = ", ".join(f"'x{at}': 'VARCHAR'" for at in range(len(part.columns)))
    options = [
        "auto_detect = false", f"header = {str(part.named).lower()}", f"skip = {part.skip}", packing,
        f"columns = {{{columns}}}", f"delim = {literal(part.separator)}",
        "quote = '\"'", "escape = '\"'", f"max_line_size = {MAX_LINE_BYTES + 2}",
        f"buffer_size = {reading.buffer}",
    ]  # fmt: skip
    if reading.short_rows:
        options.append("null_padding = true")
    if reading.alone:
        options.append("parallel = false")
    if rejects:
        options.append("store_rejects = true")
    return f"read_csv({path}, {', '.join(options)})"


def parquet_scan(path: File, columns: int) -> str:
    """SQL that reads a Parquet file, with the columns ``x0``, ``x1`` ... whatever they are called.

    DuckDB holds names that differ in case only for the same, takes ``name=value`` in a path for a column of that
    name, and holds a column to be free of NaN where its statistics, which leave NaN out, name none
    (https://github.com/duckdb/duckdb/issues/25521).
    """
    names = ", ".join(f"x{at}" for at in range(columns))
    options = "hive_partitioning = false, can_have_nan = true"
    return f"read_parquet({literal(str(path))}, {options}) AS rows({names})"


def _scan_json(part: Part, options: str) -> str:
    names = ", ".join(f"x{at}" for at in range(len(part.keys)))
    if len({key.lower() for key in part.keys}) == len(part.keys) and "" not in part.keys:
        columns = ", ".join(f"{literal(key)}: 'JSON'" for key in part.keys)
        return f"read_json({options}, columns = {{{columns}}}) AS rows({names})"
    # Keys that differ in case only, or an empty one, cannot be columns of DuckDB, but their values can be asked for.
    pointers = ["/" + key.replace("~", "~0").replace("/", "~1") for key in part.keys]
    picked = ", ".join(f"json->{literal(pointer)} AS x{at}" for at, pointer in enumerate(pointers))
    is_object = "CASE json_type(json) WHEN 'OBJECT' THEN true ELSE error('not an object') END"
    return f"(SELECT {picked} FROM read_json_objects({options}) WHERE {is_object}) AS rows"


def recoded(
    reading: Reading, encoding: str, target: Path, should_stop: ShouldStop | None, steps: Steps
) -> Reading:
    """Return the same file as plain UTF-8 under another path."""
    part = reading.part
    steps.total += 1
    formats.recode(part.path, part.packing, encoding, target, part.name, should_stop, steps, part.split)
    return replace(reading, part=replace(part, path=target, packing=Packing.NONE, encoding="utf-8", split=""))


def renamed(roles: Roles, columns: Sequence[str]) -> Roles:
    """Return the roles with the names that the columns have in `union`."""
    names: dict[str | None, str | None] = {column: f"c{at}" for at, column in enumerate(columns)} | {
        None: None
    }
    return replace(
        roles, further_user=tuple(str(names[column]) for column in roles.further_user), user=names[roles.user],
        further_task=tuple(str(names[column]) for column in roles.further_task),
        task=names[roles.task], value=names[roles.value], size=names[roles.size], users=names[roles.users],
    )  # fmt: skip
