"""The description of a file before it is counted, which tells DuckDB how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcore.common.checks import Problems, refuse
from dpcore.common.workspace import Workspace
from dpcore.counting.formats import Format, Packing
from dpcore.counting.held import File, MemoryFile
from dpcore.data.column_names import shorten
from dpcore.data.delimited_text import ASCII_SEPARATORS
from dpcore.data.tables import Table


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
