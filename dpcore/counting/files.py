"""Files of any size: small ones become a table in memory, large ones a description for DuckDB."""

from __future__ import annotations

import codecs
import filecmp
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, Problem
from dpcore.common.progress import ShouldStop
from dpcore.counting import formats, small
from dpcore.counting.duck import Duck, Workspace, as_text, literal
from dpcore.counting.formats import Format, Kind, Packing
from dpcore.data.column_roles import Roles, guess_roles
from dpcore.data.tables import (
    BLANKS,
    Table,
    and_more,
    encoding_by_marks,
    join_tables,
    read_table,
    refuse_other_columns,
    shown,
)

SMALL_BYTES = 20_000_000
"""Plain bytes, over all files, up to which text is read into memory, where every problem can name its line."""
SMALL_CELLS = 1_000_000
"""Cells up to which a Parquet file is read into memory."""
HEAD_ROWS = 1_000
"""Rows of a large file that are looked at before it is counted."""
_ALIKE_BYTES = 4_096


@dataclass(frozen=True)
class Part:
    """One large file.

    Attributes:
        path: Where it is.
        name: What a person calls it.
        format: What it holds.
        packing: How it is compressed.
        columns: Its columns, from left to right.
        encoding: Of text, as Python names it.
        delimiter: Of text; empty where there is one column.
        skip: Lines of text above the header.
        keys: Of JSON, the keys of the columns as they are written.
        types: Of Parquet, DuckDB's types of the columns.
    """

    path: Path
    name: str
    format: Format
    packing: Packing
    columns: tuple[str, ...]
    encoding: str = "utf-8"
    delimiter: str = ""
    skip: int = 0
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Source:
    """Files that were looked at and can be counted; close it when done.

    Attributes:
        name: What a person calls it.
        head: The first rows, as text; all of them where ``complete``.
        complete: Whether the head holds every row.
        parts: The files, where they are to be counted by DuckDB; empty where ``complete``.
        num_bytes: Size on disk.
        owned: A temporary folder that holds the files and goes with the source.
    """

    name: str
    head: Table
    complete: bool
    parts: tuple[Part, ...] = ()
    num_bytes: int = 0
    owned: Workspace | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return self.head.columns

    @property
    def roles(self) -> Roles:
        """What its columns seem to mean."""
        return guess_roles(self.head)

    def close(self) -> None:
        """Remove the temporary folder it owns, if any; the person's own files stay."""
        if self.owned is not None:
            self.owned.close()


def open_files(
    paths: Sequence[str | Path],
    names: Sequence[str] | None = None,
    *,
    small_bytes: int = SMALL_BYTES,
    owned: Workspace | None = None,
    should_stop: ShouldStop | None = None,
) -> Source:
    """Look at files: what they are, their columns and first rows.

    Args:
        paths: Files with the same columns: text tables, JSON Lines, Parquet or Excel workbooks; text and JSON
            may be compressed with gzip or Zstandard.
        names: What to call them; their own names where None.
        small_bytes: Plain bytes up to which they are read into memory; 0 sends all but workbooks to DuckDB.
        owned: A temporary folder that goes when the source is closed.
        should_stop: Asked while a workbook is read.

    Raises:
        InvalidInput: They cannot be read, or do not belong together; all problems at once.
    """
    files = [Path(path) for path in paths]
    called = list(names) if names is not None else [path.name for path in files]
    problems = Problems()
    if not files:
        problems.add("no file is chosen", "", "Choose at least one")
        problems.raise_if_any()
    looked: list[Table | tuple[Part, Table]] = []
    budget = small_bytes
    for path, name in zip(files, called, strict=True):
        try:
            found, used = _look(path, name, budget, should_stop)
            looked.append(found)
            budget -= used
        except InvalidInput as refused:
            problems.extend(_named(refused.problems, name) if len(files) > 1 else refused.problems)
    problems.raise_if_any()
    size = sum(path.stat().st_size for path in files)
    again = _repeated(files, called)
    tables = [found for found in looked if isinstance(found, Table)]
    if len(tables) == len(looked):
        table = join_tables(tables)
        return Source(table.name, _noted(table, again), True, (), size, owned)
    parts, heads = [], []
    for path, name, found in zip(files, called, looked, strict=True):
        if isinstance(found, Table):  # small beside large ones
            kind = formats.kind_of(path, name)
            if kind.format is Format.WORKBOOK:
                problems.add("an Excel workbook cannot be counted together with large files", f"file {shown(name)}",
                             "Save it as CSV (UTF-8)")  # fmt: skip
                continue
            if kind.is_json_array:
                problems.add("a JSON array cannot be counted together with large files", f"file {shown(name)}",
                             "Write one JSON object per line instead of an array")  # fmt: skip
                continue
            found = _part(path, name, kind)
        parts.append(found[0])
        heads.append(found[1])
    problems.raise_if_any()
    refuse_other_columns([(part.name, part.columns) for part in parts])
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    head = _noted(heads[0], again)
    return Source(f"{parts[0].name}{more}", head, False, tuple(parts), size, owned)


def _noted(table: Table, notes: Sequence[str]) -> Table:
    return replace(table, notes=(*notes, *table.notes)) if notes else table


def _repeated(files: Sequence[Path], called: Sequence[str]) -> list[str]:
    """What is to be said of files that hold the same bytes as an earlier one; a file named twice is refused."""
    problems, notes = Problems(), []
    first: dict[tuple[int, bytes], int] = {}
    for at, (path, name) in enumerate(zip(files, called, strict=True)):
        with path.open("rb") as file:
            earlier = first.setdefault((path.stat().st_size, file.read(_ALIKE_BYTES)), at)
        if earlier == at:
            continue
        if path.samefile(files[earlier]):
            problems.add(
                "this file is named twice", f"file {shown(name)}", "Name it once, or its rows count twice"
            )
        elif filecmp.cmp(path, files[earlier], shallow=False):
            notes.append(
                f"{shown(name)} is an exact copy of {shown(called[earlier])}; its rows count once more."
            )
    problems.raise_if_any()
    return notes


def _named(problems: Sequence[Problem], name: str) -> list[Problem]:
    file = f"file {shown(name)}"
    return [
        Problem(p.what, p.where if file in p.where else f"{file}{', ' if p.where else ''}{p.where}", p.remedy)
        for p in problems
    ]


def _look(
    path: Path, name: str, budget: int, should_stop: ShouldStop | None
) -> tuple[Table | tuple[Part, Table], int]:
    """A table, or a description with a head; and the plain bytes taken from the budget."""
    kind = formats.kind_of(path, name)
    if kind.format is Format.WORKBOOK:
        return small.workbook_table(path, name, should_stop), 0
    if kind.format is Format.PARQUET:
        return _parquet(path, name, SMALL_CELLS if budget > 0 else 0), 0
    if kind.is_json_array:
        content = formats.read_small(path, kind, max(budget, SMALL_BYTES), name)
        if content is None:
            what = f"the JSON array is longer than the {SMALL_BYTES:,} bytes that are read into memory"
            raise InvalidInput([Problem(what, "", "Write one JSON object per line instead of an array")])
        return small.json_table(content, name), len(content)
    content = formats.read_small(path, kind, budget, name) if budget > 0 else None
    if content is None:
        return _part(path, name, kind), 0
    read = small.json_table if kind.format is Format.JSON else read_table
    return read(content, name), len(content)


def _part(path: Path, name: str, kind: Kind) -> tuple[Part, Table]:
    if kind.format is Format.PARQUET:
        found = _parquet(path, name, 0)
        assert not isinstance(found, Table)
        return found
    if kind.format is Format.JSON:
        head = kind.head if kind.whole else kind.head[: kind.head.rfind(b"\n") + 1]
        table, keys = small.json_table_and_keys(head, name)
        encoding = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
        return Part(path, name, Format.JSON, kind.packing, table.columns, encoding, keys=keys), table
    table = _text_head(kind, name)
    part = Part(
        path,
        name,
        Format.TEXT,
        kind.packing,
        table.columns,
        encoding_by_marks(kind.head) or table.encoding,  # which knows of UTF-16 without a mark
        table.delimiter,
        table.header_line - 1,
    )
    return part, table


def _text_head(kind: Kind, name: str) -> Table:
    """The rows in the first bytes. The cut may fall inside a character, a line, or a quoted line break."""
    if kind.whole:
        return _head(read_table(kind.head, name))
    head = kind.head
    refused: InvalidInput | None = None
    for _ in range(30):
        width = 4 if head[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") else 2 if _is_wide(head) else 1
        cut = _last_line_end(head[:-width])
        if cut <= 0:
            break
        head = head[: (cut // width + 1) * width]
        try:
            table = read_table(head, name)
        except InvalidInput as error:
            refused = refused or error
            if "quotation mark" not in str(error):
                raise
            continue
        return _head(table)
    raise refused or InvalidInput(
        [
            Problem(
                "the first line is longer than a row of a table may be",
                "line 1",
                "Is this a table in text form?",
            )
        ]
    )


def _last_line_end(head: bytes) -> int:
    """Where the last line ends that is not inside quotation marks, before which their number is even; 0 for none."""
    import numpy as np

    codes = np.frombuffer(head, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not ends.size:
        ends = np.flatnonzero(codes == ord("\r"))  # lines may end in carriage returns alone
    outside = ends[np.cumsum(codes == ord('"'))[ends] % 2 == 0]
    return int(outside[-1]) if outside.size else 0


def _head(table: Table) -> Table:
    """The first rows; what is said of rows is said once, when all have been read."""
    of_rows = ("blank row", "fewer fields", "several lines")
    notes = tuple(note for note in table.notes if not any(words in note for words in of_rows))
    return Table(
        table.frame.iloc[:HEAD_ROWS], table.name, table.encoding, table.delimiter, table.first_row, notes,
        None if table.lines is None else table.lines[:HEAD_ROWS], table.header_line,
    )  # fmt: skip


def _is_wide(head: bytes) -> bool:
    return head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:64]


def _parquet(path: Path, name: str, small_cells: int) -> Table | tuple[Part, Table]:
    """The footer and the first rows of a Parquet file; all rows where they are few."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dpcore.data.tables import table_of_cells

    remedy = "Export it again; a Parquet file must be copied whole"
    try:
        with pq.ParquetFile(path) as file:
            columns = tuple(str(field.name) for field in file.schema_arrow)
            rows = file.metadata.num_rows
            # DuckDB reads these as floating-point numbers.
            rounded = [
                f.name for f in file.schema_arrow if pa.types.is_decimal256(f.type) and f.type.precision > 38
            ]
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        raise InvalidInput([Problem("the Parquet file is damaged or cut off", "", remedy)]) from None
    if not columns:
        raise InvalidInput([Problem("the Parquet file has no columns", "", "Choose another file")])
    complete = rows * len(columns) <= small_cells
    # DuckDB writes the cells, so that they read as they will be counted.
    types, cells = _first_cells(path, len(columns), rows if complete else HEAD_ROWS)
    lines = np.arange(1, len(cells) + 2, dtype=np.int64)
    table = table_of_cells(list(columns), cells, lines, name)
    if rounded:
        what = f"Column {shown(rounded[0])}{and_more(len(rounded) - 1)} may hold more than 38 digits"
        table = replace(table, notes=(f"{what}: only the first 15 of a number count.", *table.notes))
    return (
        table
        if complete
        else (Part(path, name, Format.PARQUET, Packing.NONE, table.columns, types=types), table)
    )


def parquet_scan(path: Path, columns: int) -> str:
    """SQL that reads a Parquet file, with the columns ``x0``, ``x1`` ... whatever they are called.

    DuckDB holds names that differ in case only for the same, takes ``name=value`` in a path for a column of that
    name, and holds a column to be free of NaN where its statistics, which leave NaN out, name none
    (https://github.com/duckdb/duckdb/issues/25521).
    """
    names = ", ".join(f"x{at}" for at in range(columns))
    options = "hive_partitioning = false, can_have_nan = true"
    return f"read_parquet({literal(str(path))}, {options}) AS rows({names})"


def _first_cells(path: Path, columns: int, rows: int) -> tuple[tuple[str, ...], list[list[str]]]:
    """The types of the columns of a Parquet file, and its first rows as text."""
    import duckdb

    workspace = Workspace()
    path = safe_path(path, workspace)
    duck = Duck([path], workspace.folder)
    try:
        scan = f"FROM {parquet_scan(path, columns)}"
        described = duck.connection.execute(f"DESCRIBE SELECT * {scan}").fetchall()
        types = tuple(str(row[1]) for row in described)
        cells = ", ".join(as_text(f"x{at}", kind) for at, kind in enumerate(types))
        found = duck.connection.execute(f"SELECT {cells} {scan} LIMIT {rows}").fetchall()
    except duckdb.Error:
        remedy = "Export it again; a Parquet file must be copied whole"
        raise InvalidInput([Problem("the Parquet file is damaged or cut off", "", remedy)]) from None
    finally:
        duck.close()
        workspace.close()
    return types, [["" if cell is None else str(cell).strip(BLANKS) for cell in row] for row in found]


def safe_path(path: Path, workspace: Workspace) -> Path:
    """The path, or a link to it where its name holds what DuckDB takes for a pattern."""
    path = path.resolve()
    if not set("*?[]{}") & set(str(path)):
        return path
    link = workspace.folder / f"file{len(list(workspace.folder.iterdir()))}"
    try:
        link.symlink_to(path)
    except OSError:
        raise InvalidInput(
            [Problem("the path holds one of the characters * ? [ ] { }", "", "Rename the file or its folder")]
        ) from None
    return link
