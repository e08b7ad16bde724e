"""What is known of a file before it is counted, and how DuckDB is told to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.common.workspace import Workspace
from dpcore.counting.formats import Format, Packing
from dpcore.counting.held import File, Held
from dpcore.data.column_names import shown
from dpcore.data.delimited_text import ASCII_SEPARATORS
from dpcore.data.tables import Table


@dataclass(frozen=True)
class Part:
    """One file.

    Attributes:
        path: Where it is.
        name: What a person calls it.
        format: What it holds.
        packing: How it is compressed.
        columns: Its columns, from left to right.
        encoding: Of text, as Python names it.
        delimiter: Of text; empty where there is one column.
        skip: Lines of text above the header, or above the first row where there is none.
        split: Of text, what of `BETWEEN` stands between fields, so that it is written anew before it is counted.
        named: Of such text, whether its first line names the columns.
        keys: Of JSON, the keys of the columns as they are written.
        types: Of Parquet, DuckDB's types of the columns.
        stamp: As `stamp_of` found it.
        table: All its rows, where they are in memory; then nothing of it is read again.
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
    named: bool = True
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    stamp: tuple[int, int] = (0, 0)
    table: Table | None = None

    @property
    def separator(self) -> str:
        """Return what readers are told stands between fields; for one column, a character that no text holds."""
        return self.delimiter or ASCII_SEPARATORS[0]


def in_memory(table: Table) -> Part:
    """Return a table whose rows are in memory."""
    kinds, delimiter = (Format.TABLE, Packing.NONE), table.delimiter
    return Part(Held(b""), table.name, *kinds, table.columns, delimiter=delimiter, table=table)


def stamp_of(path: File) -> tuple[int, int]:
    """Return what changes when a file is written to: its size, and when that last happened."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def refuse_changed(parts: Sequence[Part], since: str) -> None:
    """Refuse files that are gone or were written to ``since`` they were looked at: their rows are not what was seen."""
    problems = Problems()
    for part in parts:
        if part.table is not None:
            continue
        where = f"file {shown(part.name)}"
        try:
            changed = stamp_of(part.path) != part.stamp
        except OSError:
            what = "the file is no longer there, or cannot be read"
            problems.add(what, where, "Put it back, or choose it anew")
            continue
        if changed:
            remedy = "Choose it again once nothing writes to it, or count a copy"
            problems.add(f"the file was written to {since}", where, remedy)
    problems.raise_if_any()


def safe_path(path: File, workspace: Workspace) -> File:
    """Return the path, or a link to it where its name holds what DuckDB takes for a pattern."""
    if isinstance(path, Held):
        return path
    path = path.resolve()
    if not set("*?[]{}") & set(str(path)):
        return path
    link = workspace.folder / f"file{len(list(workspace.folder.iterdir()))}"
    try:
        link.symlink_to(path)
    except OSError:
        what = "the path holds one of the characters * ? [ ] { }"
        raise refuse(what, remedy="Rename the file or its folder") from None
    return link
