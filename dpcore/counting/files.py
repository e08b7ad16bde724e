"""Files of any size: small ones become a table in memory, large ones a description for DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpcore.checks import Problems
from dpcore.counting import formats, small
from dpcore.counting.duck import Workspace, identifier, literal
from dpcore.counting.formats import Format, Kind, Packing
from dpcore.counting.running import ShouldStop
from dpcore.errors import InvalidInput, Problem
from dpcore.roles import Roles, guess_roles
from dpcore.tables import (
    BLANKS,
    Table,
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
    """

    path: Path
    name: str
    format: Format
    packing: Packing
    columns: tuple[str, ...]
    encoding: str = "utf-8"
    delimiter: str = ""
    skip: int = 0


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
    tables = [found for found in looked if isinstance(found, Table)]
    if len(tables) == len(looked):
        table = join_tables(tables)
        return Source(table.name, table, True, (), size, owned)
    parts, heads = [], []
    for path, name, found in zip(files, called, looked, strict=True):
        if isinstance(found, Table):  # small beside large ones
            kind = formats.kind_of(path, name)
            if kind.format is Format.WORKBOOK:
                problems.add("an Excel workbook cannot be counted together with large files", f"file {shown(name)}",
                             "Save it as CSV (UTF-8)")  # fmt: skip
                continue
            found = _part(path, name, kind)
        parts.append(found[0])
        heads.append(found[1])
    problems.raise_if_any()
    refuse_other_columns([(part.name, part.columns) for part in parts])
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    head = heads[0]
    return Source(f"{parts[0].name}{more}", head, False, tuple(parts), size, owned)


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
    if kind.format is Format.JSON and kind.head.lstrip().startswith(b"["):
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
        table = small.json_table(head, name)
        return Part(path, name, Format.JSON, kind.packing, table.columns), table
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
        newline = "\n".encode({4: "utf-32-le", 2: "utf-16-le", 1: "utf-8"}[width])
        cut = head.rfind(newline if width == 1 else newline.rstrip(b"\0"), 0, len(head) - width)
        if cut < 0:
            cut = head.rfind(b"\r", 0, len(head) - 1)  # lines may end in carriage returns alone
        end = cut + 1 if width == 1 else (cut // width + 1) * width
        if cut <= 0 or end <= 0:
            break
        head = head[:end]
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


def _head(table: Table) -> Table:
    """The first rows; what is said of rows is said once, when all have been read."""
    notes = tuple(note for note in table.notes if "blank row" not in note and "fewer fields" not in note)
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

    from dpcore.tables import table_of_cells

    remedy = "Export it again; a Parquet file must be copied whole"
    try:
        with pq.ParquetFile(path) as file:
            columns = tuple(str(field.name) for field in file.schema_arrow)
            rows = file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        raise InvalidInput([Problem("the Parquet file is damaged or cut off", "", remedy)]) from None
    if not columns:
        raise InvalidInput([Problem("the Parquet file has no columns", "", "Choose another file")])
    complete = rows * len(columns) <= small_cells
    part = Part(path, name, Format.PARQUET, Packing.NONE, columns)
    # DuckDB writes the cells, so that they read as they will be counted.
    cells = first_cells(part, rows if complete else HEAD_ROWS)
    lines = np.arange(1, len(cells) + 2, dtype=np.int64)
    table = table_of_cells(list(columns), cells, lines, name)
    return table if complete else (part, table)


def first_cells(part: Part, rows: int) -> list[list[str]]:
    """The first rows of a Parquet file as text."""
    import duckdb

    from dpcore.counting.duck import Duck

    workspace = Workspace()
    path = safe_path(part.path, workspace)
    duck = Duck([path], workspace.folder)
    try:
        scan = f"FROM read_parquet({literal(str(path))})"
        types = duck.connection.execute(f"DESCRIBE SELECT * {scan}").fetchall()
        cells = ", ".join(_as_text(identifier(str(row[0])), str(row[1])) for row in types)
        found = duck.connection.execute(f"SELECT {cells} {scan} LIMIT {rows}").fetchall()
    except duckdb.Error:
        remedy = "Export it again; a Parquet file must be copied whole"
        raise InvalidInput([Problem("the Parquet file is damaged or cut off", "", remedy)]) from None
    finally:
        duck.close()
        workspace.close()
    return [["" if cell is None else str(cell).strip(BLANKS) for cell in row] for row in found]


def _as_text(column: str, kind: str) -> str:
    text = f"{column}::VARCHAR"
    # Whole numbers that stand in a column of floats, as ids with gaps do, are written as such; NaN is a gap.
    if kind not in ("DOUBLE", "FLOAT"):
        return text
    whole = f"{column} = trunc({column}) AND abs({column}) < 1e15"
    return f"CASE WHEN isnan({column}) THEN NULL WHEN {whole} THEN {column}::BIGINT::VARCHAR ELSE {text} END"


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
