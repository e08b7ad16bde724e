"""Opening files of any size: small ones become a table in memory, large ones a description for DuckDB."""

from __future__ import annotations

import codecs
import glob
import os
import re
from collections.abc import Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, Problems, convert_system_errors, refuse
from dpcore.common.privacy import LABEL_COLUMN, ReleaseFacts
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import formats, small
from dpcore.counting.duck import Duck
from dpcore.counting.formats import (
    DetectedFormat,
    File,
    Format,
    MemoryFile,
    Packing,
    name_of,
    same_bytes,
    same_file,
)
from dpcore.counting.reading import (
    InputFile,
    Reading,
    file_of_table,
    parquet_scan,
    read_cells,
    safe_path,
    stamp_of,
)
from dpcore.counting.text import TooManyCells, read_table
from dpcore.counting.times import arrow_times, duckdb_times
from dpcore.data.column_names import and_more, refuse_many_columns, shorten
from dpcore.data.column_roles import Roles, guess_roles
from dpcore.data.delimited_text import (
    MAX_LINE_BYTES,
    QUOTES,
    SPACED,
    describe_long_line,
    detect_encoding,
    is_blank,
)
from dpcore.data.tables import (
    FileKind,
    FileLayout,
    Table,
    build_table,
    join_tables,
    join_times,
    refuse_other_columns,
)

HELD_BYTES = 20_000_000
"""Largest size of uploads that stay in memory unchanged."""
SMALL_BYTES = 5_000_000
"""Largest number of uncompressed bytes of all files whose rows are kept as a table in memory."""
ARRAY_BYTES = 20_000_000
"""Largest number of uncompressed bytes of a JSON array, which has no lines and is read at once."""
SMALL_CELLS = 1_000_000
"""Largest number of cells of a Parquet file whose rows are kept."""
HEAD_ROWS = 1_000
"""Rows of a large file that are inspected before it is counted."""
_COMPARED_BYTES = 4_096
_COMMENTS = re.compile(rb"(?:#[^\n]*\n|[ \t\r]*\n)*")


@dataclass(frozen=True, eq=False)
class Source:
    """Files that were inspected and can be counted; close it when done.

    Attributes:
        name: Display name.
        head: The first rows, as text; all rows if ``complete``.
        complete: True if the head has every row.
        input_files: The files to count; the table of the head if ``complete``.
        num_bytes: Size on disk.
        owned_folder: Temporary folder with the files, which is removed with the source.
    """

    name: str
    head: Table
    complete: bool
    input_files: tuple[InputFile, ...]
    num_bytes: int = 0
    owned_folder: Workspace | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the column names."""
        return self.head.columns

    @property
    def roles(self) -> Roles:
        """Guess the roles of the columns."""
        return guess_roles(self.head)

    @property
    def stated_release(self) -> ReleaseFacts | None:
        """Return the DP release that the label column states, if it is the same in every line; else None.

        The statement is not verified. Several joined files are not one release, as their budgets add up.
        """
        if not self.complete or LABEL_COLUMN not in self.columns or self.head.files:
            return None
        labels = self.head.frame[LABEL_COLUMN]
        first = str(labels.iloc[0])
        return ReleaseFacts.from_label(first) if bool((labels == first).all()) else None

    @property
    def unnamed(self) -> bool:
        """Return True if the files have no column names."""
        return any(layout.names for layout in self.head.layouts)

    def with_names(self, names: Sequence[str]) -> Source:
        """Return the source with names for its columns, if the files have none.

        Args:
            names: From left to right.

        Raises:
            InvalidInput: The files name their columns; or these are too few, too many, empty or not distinct.
        """
        with Problems() as problems:
            clean_names = [" ".join(name.split()) for name in names]
            if not self.unnamed:
                problems.add("the files name their columns themselves")
            if len(clean_names) != len(self.columns):
                columns = wording.counted(len(self.columns), "column")
                problems.add(f"there are {columns}, and {wording.counted(len(clean_names), 'name')}")
            if not all(clean_names) or len(set(clean_names)) < len(clean_names):
                problems.add("every column needs a name of its own")
        frame = self.head.frame.set_axis(clean_names, axis=1)
        layouts = tuple(
            replace(its, names=tuple(clean_names)) if its.names else its for its in self.head.layouts
        )
        head = replace(self.head, frame=frame, layouts=layouts)
        input_files = tuple(
            replace(input_file, columns=tuple(clean_names), table=None if input_file.table is None else head)
            for input_file in self.input_files
        )
        return replace(self, head=head, input_files=input_files)

    def close(self) -> None:
        """Remove the temporary folder of the source, if any; the user's own files stay."""
        if self.owned_folder is not None:
            self.owned_folder.close()


def expand_patterns(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return paths with each pattern, such as ``logs/*.csv``, replaced by the files that it matches.

    Raises:
        InvalidInput: A pattern matches no file.
    """
    files: list[str] = []
    with Problems() as problems:
        for path in [os.fspath(path) for path in paths]:
            if "\0" in path:
                problems.add("a path holds a NUL character, which no name of a file has")
            elif os.path.exists(path) or not glob.has_magic(path):
                files.append(path)
            elif matches := sorted(filter(os.path.isfile, glob.glob(path, recursive=True))):
                files += matches
            else:
                problems.add(f"no file is called like {shorten(path)}", "", "Check the folder and the ending")
    return files


@convert_system_errors()
def open_files(
    paths: Sequence[str | Path | MemoryFile],
    names: Sequence[str] | None = None,
    *,
    small_bytes: int = SMALL_BYTES,
    owned: Workspace | None = None,
    should_stop: ShouldStop | None = None,
) -> Source:
    """Inspect files: their formats, columns and first rows.

    Args:
        paths: Files with the same columns: text tables, JSON Lines, Parquet or Excel workbooks; text and JSON
            may be compressed with gzip or Zstandard. Small files in memory are never written to a disk.
        names: Display names; None for the names of the files.
        small_bytes: Largest number of uncompressed bytes whose rows are kept in memory; 0 sends all but workbooks
            to DuckDB.
        owned: A temporary folder that is removed when the source is closed.
        should_stop: Called while a workbook is read.

    Raises:
        InvalidInput: They cannot be read, or do not belong together; all problems at once.
    """
    files: list[File] = [path if isinstance(path, MemoryFile) else Path(path) for path in paths]
    file_names = list(names) if names is not None else [name_of(path) for path in files]
    if not files:
        raise refuse("no file is chosen", remedy="Choose at least one")
    problems = Problems()
    inspected: list[tuple[InputFile, Table]] = []
    budget = small_bytes
    for path, name in zip(files, file_names, strict=True):
        try:
            entry, num_bytes = _inspect(path, name, budget, should_stop)
            inspected.append(entry)
            budget -= num_bytes
        except InvalidInput as refused:
            problems.extend(_add_file_name(refused.problems, name) if len(files) > 1 else refused.problems)
    problems.raise_if_any()
    size = sum(path.stat().st_size for path in files)
    copy_notes = _note_copies(files, file_names)
    input_files, heads = [input_file for input_file, _ in inspected], [table for _, table in inspected]
    if all(part.table is not None for part in input_files):
        table = _add_notes(join_tables(heads), copy_notes)
        return Source(table.name, table, True, (file_of_table(table),), size, owned)
    refuse_other_columns([(part.name, part.columns) for part in input_files])
    further = f" and {len(input_files) - 1} more" if len(input_files) > 1 else ""
    layouts = tuple(layout for table in heads for layout in table.layouts)
    head = replace(heads[0], layouts=layouts, times=join_times(heads))
    return Source(
        f"{input_files[0].name}{further}",
        _add_notes(head, copy_notes),
        False,
        tuple(input_files),
        size,
        owned,
    )


def _add_notes(table: Table, notes: Sequence[str]) -> Table:
    return replace(table, notes=(*notes, *table.notes)) if notes else table


def _note_copies(files: Sequence[File], names: Sequence[str]) -> list[str]:
    """Write notes on files with the same content as an earlier one; raise InvalidInput if a file is named twice."""
    problems, notes = Problems(), []
    first: dict[tuple[int, bytes], int] = {}
    for index, (path, name) in enumerate(zip(files, names, strict=True)):
        with path.open("rb") as file:
            earlier = first.setdefault((path.stat().st_size, file.read(_COMPARED_BYTES)), index)
        if earlier == index:
            continue
        if same_file(path, files[earlier]):
            remedy = "Name it once, or its rows count twice"
            problems.add("this file is named twice", f"file {shorten(name)}", remedy)
        elif same_bytes(path, files[earlier]):
            copy = f"{shorten(name)} is an exact copy of {shorten(names[earlier])}"
            notes.append(f"{copy}; its rows count once more.")
    problems.raise_if_any()
    return notes


def _add_file_name(problems: Sequence[InputProblem], name: str) -> list[InputProblem]:
    file = f"file {shorten(name)}"
    return [
        p if file in p.location else replace(p, location=f"{file}, {p.location}" if p.location else file)
        for p in problems
    ]


def _inspect(
    path: File, name: str, budget: int, should_stop: ShouldStop | None
) -> tuple[tuple[InputFile, Table], int]:
    """Return a file with its first rows, or all of them, and the uncompressed bytes taken from the budget."""
    detected = formats.detect_format(path, name)
    stamp = stamp_of(path)  # Before anything is read, so that later writes are detected.
    if detected.format is Format.WORKBOOK:
        table = small.read_workbook(path, name, should_stop)
        return (file_of_table(table), table), 0
    if detected.format is Format.PARQUET:
        input_file, table = _inspect_parquet(path, name, SMALL_CELLS if budget > 0 else 0)
        return (replace(input_file, stamp=stamp), table), 0
    max_bytes = max(budget, ARRAY_BYTES) if detected.is_json_array else budget
    content = formats.read_small(path, detected, max_bytes, name) if max_bytes > 0 else None
    if content is not None:
        is_json = detected.format is Format.JSON
        try:
            table = small.read_json(content, name)[0] if is_json else read_table(content, name)
            table = _add_packing(table, detected)
            return (file_of_table(table), table), len(content)
        except TooManyCells:  # DuckDB reads it like a large file, with little memory
            if detected.is_json_array:
                raise
    if detected.is_json_array:
        message = f"the JSON array is longer than the {ARRAY_BYTES:,} bytes that are read into memory"
        raise refuse(message, remedy="Write one JSON object per line instead of an array")
    input_file, table = _describe_large(path, name, detected)
    return (replace(input_file, stamp=stamp), _add_packing(table, detected)), 0


def _add_packing(table: Table, detected: DetectedFormat) -> Table:
    """Return the table with the compression of its file in its layout."""
    packing = "" if detected.packing is Packing.NONE else detected.packing.value
    return replace(table, layouts=tuple(replace(layout, packing=packing) for layout in table.layouts))


def _describe_large(path: File, name: str, detected: DetectedFormat) -> tuple[InputFile, Table]:
    if detected.format is Format.JSON:
        head = detected.head if detected.is_complete else detected.head[: detected.head.rfind(b"\n") + 1]
        if not head:
            message = f"the line is longer than the {formats.HEAD_BYTES:,} bytes that are looked at first"
            raise refuse(message, "line 1", "Write one JSON object per line, without long texts")
        table, keys = small.read_json(head, name, HEAD_ROWS)
        if not detected.is_complete:
            objects = sum(1 for line in head.split(b"\n") if line.strip())
            first = f"Columns are the keys of the first {objects:,} objects"
            table = replace(table, notes=(*table.notes, f"{first}; keys that come later are not offered."))
        encoding = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
        return InputFile(path, name, Format.JSON, detected.packing, table.columns, encoding, keys=keys), table
    table = _text_head(detected, name)
    encoding = detect_encoding(detected.head) or table.encoding  # which recognises UTF-16 without a mark
    (layout,) = table.layouts
    split = layout.separator if layout.separator in SPACED or layout.names else ""
    text_options = encoding, table.delimiter, layout.skip, split, not layout.names
    return InputFile(path, name, Format.TEXT, detected.packing, table.columns, *text_options), table


def _text_head(detected: DetectedFormat, name: str) -> Table:
    """Read the rows in the first bytes; these may end inside a character, a line, or a quoted line break."""
    head = detected.head
    if detected.is_complete:
        with suppress(TooManyCells):
            return _cut_head(read_table(head, name))
    elif is_blank(head):
        message = f"the first {len(head):,} bytes are blank"
        raise refuse(message, remedy="Remove the blank lines above the column names, or choose another file")
    # For most files the first rows are enough, which takes a third of the time.
    with suppress(InvalidInput):
        if cut := _line_end(head, HEAD_ROWS):
            return _cut_head(read_table(head[:cut], name))
    first: InvalidInput | None = None
    for _ in range(30):
        _refuse_long_line(head)
        cut = _line_end(head[: -_width(head)])
        if not cut:
            break
        head = head[:cut]
        try:
            return _cut_head(read_table(head, name))
        except InvalidInput as refused:
            first, text = first or refused, str(refused)
            if "a header and no rows" in text:  # under it stands a row that does not end in what was read
                message = f"a quotation mark is opened and not closed within {formats.HEAD_BYTES:,} bytes"
                line = head.count(b"\n") + 1
                raise refuse(message, f"line {line:,}", QUOTES) from None
            if "quotation mark" not in text:
                raise
    message = "the first line is longer than a row of a table may be"
    raise first or refuse(message, "line 1", "Is this a table in text form?")


def _refuse_long_line(head: bytes) -> None:
    """Raise InvalidInput if the last line of the head, though cut off, is longer than a row may be."""
    ends = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
    if (len(head) - ends) // _width(head) > MAX_LINE_BYTES:
        line = head.count(b"\n", 0, ends) or head.count(b"\r", 0, ends)
        raise InvalidInput([describe_long_line(line + 1)])


def _line_end(head: bytes, max_lines: int | None = None) -> int:
    """Return the position after the last line end outside quotation marks, within the given lines; 0 if there is none.

    A line end is outside if an even number of quotation marks precedes it.
    """
    import numpy as np

    comment_bytes = len(_COMMENTS.match(head).group())  # type: ignore[union-attr]  # marks in comments open nothing
    codes = np.frombuffer(head, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not ends.size:
        ends = np.flatnonzero(codes == ord("\r"))  # lines may end in carriage returns alone
    marks = codes == ord('"')
    marks[:comment_bytes] = False
    outside = ends[np.cumsum(marks)[ends] % 2 == 0]
    if max_lines is not None:
        outside = outside[outside >= comment_bytes][: max_lines + 1]
    return (int(outside[-1]) // _width(head) + 1) * _width(head) if outside.any() else 0


def _cut_head(table: Table) -> Table:
    """Return the first rows without notes on rows, which are written when all rows have been read."""
    of_rows = ("blank row", "fewer fields", "several lines")
    notes = tuple(note for note in table.notes if not any(words in note for words in of_rows))
    return replace(table, frame=table.frame.iloc[:HEAD_ROWS], lines=table.lines[:HEAD_ROWS], notes=notes)


def _width(head: bytes) -> int:
    """Return the number of bytes of a character, and so of a line end, in the encoding of the head."""
    if head[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return 4
    return 2 if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:64] else 1


_GROUP_BYTES = 1_000_000
"""Bytes that a row group of a Parquet file may have besides its rows: page headers and dictionaries."""


def _inspect_parquet(path: File, name: str, small_cells: int) -> tuple[InputFile, Table]:
    """Return a Parquet file with its first rows, or all rows if they are few."""
    import duckdb
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "Export it again; a Parquet file must be copied whole"
    damaged = refuse("the Parquet file is damaged or cut off", remedy=remedy)
    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            columns = tuple(str(field.name) for field in file.schema_arrow)
            rows = file.metadata.num_rows
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            times = arrow_times(file.schema_arrow)
            # DuckDB reads these as floating-point numbers.
            wide = [field for field in file.schema_arrow if pa.types.is_decimal256(field.type)]
            rounded = [str(field.name) for field in wide if field.type.precision > 38]
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        raise damaged from None
    if not columns:
        raise refuse("the Parquet file has no columns", remedy="Choose another file")
    refuse_many_columns(len(columns))
    # A kilobyte can hold hundreds of megabytes of one cell; lines of text are held to the same size.
    if any(group.total_byte_size > MAX_LINE_BYTES * group.num_rows + _GROUP_BYTES for group in groups):
        message = f"rows of the Parquet file have more than {MAX_LINE_BYTES:,} bytes"
        raise refuse(message, remedy="Leave out columns of long texts or pictures")
    complete = rows * len(columns) <= small_cells
    with nullcontext(None) if isinstance(path, MemoryFile) else closing(Workspace()) as workspace:
        safe = path if workspace is None else safe_path(path, workspace)
        try:
            with closing(Duck([safe], None if workspace is None else workspace.folder)) as duck:
                described = duck.rows(f"DESCRIBE SELECT * FROM {parquet_scan(safe, len(columns))}")
                types = tuple(str(row[1]) for row in described)
                input_file = InputFile(safe, name, Format.PARQUET, Packing.NONE, columns, types=types)
                # DuckDB writes the cells as text, so that they look as they will be counted.
                as_texts = Reading(input_file, texts=frozenset(columns))
                frame = read_cells(duck, as_texts, rows if complete else HEAD_ROWS)
        except duckdb.Error as error:
            if "encrypted" in str(error):  # its columns, under a footer that is not
                message = "the Parquet file is encrypted"
                raise refuse(message, remedy=formats.NOT_ENCRYPTED) from None
            raise damaged from None
    table = build_table(columns, frame, np.arange(len(frame) + 1, dtype=np.int64), name, "row")
    times |= duckdb_times(dict(zip(columns, types, strict=True)))
    table_names = dict(zip(columns, table.columns, strict=True))
    times = {table_names[column]: time_type for column, time_type in times.items()}
    table = replace(table, layouts=(FileLayout(name, FileKind.PARQUET),), times=times)
    if rounded:
        message = f"Column {shorten(rounded[0])}{and_more(len(rounded) - 1)} may hold more than 38 digits"
        table = replace(table, notes=(f"{message}: only the first 15 of a number count.", *table.notes))
    return file_of_table(table) if complete else replace(input_file, path=path, columns=table.columns), table
