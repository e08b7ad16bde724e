"""Files of any size: small ones become a table in memory, large ones a description for DuckDB."""

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
from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput, convert_system_errors, refuse
from dpcore.common.privacy import LABEL_COLUMN, ReleaseFacts
from dpcore.common.progress import ShouldStop
from dpcore.common.workspace import Workspace
from dpcore.counting import formats, small
from dpcore.counting.duck import Duck
from dpcore.counting.formats import Format, Kind, Packing
from dpcore.counting.held import File, Held, name_of, same_bytes, same_file
from dpcore.counting.parts import Part, in_memory, safe_path, stamp_of
from dpcore.counting.reading import Reading, cells_of, parquet_scan
from dpcore.counting.text import TooManyCells, read_table
from dpcore.counting.times import arrow_times, duckdb_times
from dpcore.data.column_names import and_more, refuse_many_columns, shown
from dpcore.data.column_roles import Roles, guess_roles
from dpcore.data.delimited_text import MAX_LINE_BYTES, QUOTES, SPACED, long_line
from dpcore.data.encoding import encoding_by_marks, is_blank
from dpcore.data.layout import FileKind, FileLayout
from dpcore.data.tables import Table, join_tables, refuse_other_columns, table_of_cells, times_of

HELD_BYTES = 20_000_000
"""Size of uploads up to which they stay in memory as they are."""
SMALL_BYTES = 5_000_000
"""Plain bytes, over all files, up to which rows are kept as a table in memory."""
ARRAY_BYTES = 20_000_000
"""Plain bytes of a JSON array, which has no lines and is read at once."""
SMALL_CELLS = 1_000_000
"""Cells up to which the rows of a Parquet file are kept."""
HEAD_ROWS = 1_000
"""Rows of a large file that are looked at before it is counted."""
_ALIKE_BYTES = 4_096
_COMMENTS = re.compile(rb"(?:#[^\n]*\n|[ \t\r]*\n)*")


@dataclass(frozen=True, eq=False)
class Source:
    """Files that were looked at and can be counted; close it when done.

    Attributes:
        name: What a person calls it.
        head: The first rows, as text; all of them where ``complete``.
        complete: Whether the head holds every row.
        parts: The files as they are counted; the table of the head where ``complete``.
        num_bytes: Size on disk.
        owned: A temporary folder that holds the files and goes with the source.
    """

    name: str
    head: Table
    complete: bool
    parts: tuple[Part, ...]
    num_bytes: int = 0
    owned: Workspace | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return self.head.columns

    @property
    def roles(self) -> Roles:
        """Return what its columns seem to mean."""
        return guess_roles(self.head)

    @property
    def stated_release(self) -> ReleaseFacts | None:
        """Which DP release they say they are: the same in every line of the label column; None where they say none.

        That is the word of whoever wrote the file. Files that were joined are no one release: what they spent adds up.
        """
        if not self.complete or LABEL_COLUMN not in self.columns or self.head.files:
            return None
        labels = self.head.frame[LABEL_COLUMN]
        first = str(labels.iloc[0])
        return ReleaseFacts.from_label(first) if bool((labels == first).all()) else None

    @property
    def unnamed(self) -> bool:
        """Return True if the files do not say what their columns are called."""
        return any(layout.names for layout in self.head.layouts)

    def with_names(self, names: Sequence[str]) -> Source:
        """Return the same files with other names for their columns, where they hold none.

        Args:
            names: From left to right.

        Raises:
            InvalidInput: The files name their columns; or these are too few, too many, empty or not distinct.
        """
        with Problems() as problems:
            named = [" ".join(name.split()) for name in names]
            if not self.unnamed:
                problems.add("the files name their columns themselves")
            if len(named) != len(self.columns):
                columns = wording.counted(len(self.columns), "column")
                problems.add(f"there are {columns}, and {wording.counted(len(named), 'name')}")
            if not all(named) or len(set(named)) < len(named):
                problems.add("every column needs a name of its own")
        frame = self.head.frame.set_axis(named, axis=1)
        layouts = tuple(replace(its, names=tuple(named)) if its.names else its for its in self.head.layouts)
        head = replace(self.head, frame=frame, layouts=layouts)
        parts = tuple(
            replace(part, columns=tuple(named), table=None if part.table is None else head)
            for part in self.parts
        )
        return replace(self, head=head, parts=parts)

    def close(self) -> None:
        """Remove the temporary folder it owns, if any; the person's own files stay."""
        if self.owned is not None:
            self.owned.close()


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
                problems.add(f"no file is called like {shown(path)}", "", "Check the folder and the ending")
    return files


@convert_system_errors()
def open_files(
    paths: Sequence[str | Path | Held],
    names: Sequence[str] | None = None,
    *,
    small_bytes: int = SMALL_BYTES,
    owned: Workspace | None = None,
    should_stop: ShouldStop | None = None,
) -> Source:
    """Look at files: what they are, their columns and first rows.

    Args:
        paths: Files with the same columns: text tables, JSON Lines, Parquet or Excel workbooks; text and JSON
            may be compressed with gzip or Zstandard. Those in memory are never written to a disk while they are small.
        names: What to call them; their own names where None.
        small_bytes: Plain bytes up to which their rows are kept in memory; 0 sends all but workbooks to DuckDB.
        owned: A temporary folder that goes when the source is closed.
        should_stop: Asked while a workbook is read.

    Raises:
        InvalidInput: They cannot be read, or do not belong together; all problems at once.
    """
    files: list[File] = [path if isinstance(path, Held) else Path(path) for path in paths]
    called = list(names) if names is not None else [name_of(path) for path in files]
    if not files:
        raise refuse("no file is chosen", remedy="Choose at least one")
    problems = Problems()
    looked: list[tuple[Part, Table]] = []
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
    parts, heads = [part for part, _ in looked], [table for _, table in looked]
    if all(part.table is not None for part in parts):
        table = _noted(join_tables(heads), again)
        return Source(table.name, table, True, (in_memory(table),), size, owned)
    refuse_other_columns([(part.name, part.columns) for part in parts])
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    layouts = tuple(layout for table in heads for layout in table.layouts)
    head = replace(heads[0], layouts=layouts, times=times_of(heads))
    return Source(f"{parts[0].name}{more}", _noted(head, again), False, tuple(parts), size, owned)


def _noted(table: Table, notes: Sequence[str]) -> Table:
    return replace(table, notes=(*notes, *table.notes)) if notes else table


def _repeated(files: Sequence[File], called: Sequence[str]) -> list[str]:
    """Return what is to be said of files that hold the same bytes as an earlier one; a file named twice is refused."""
    problems, notes = Problems(), []
    first: dict[tuple[int, bytes], int] = {}
    for at, (path, name) in enumerate(zip(files, called, strict=True)):
        with path.open("rb") as file:
            earlier = first.setdefault((path.stat().st_size, file.read(_ALIKE_BYTES)), at)
        if earlier == at:
            continue
        if same_file(path, files[earlier]):
            remedy = "Name it once, or its rows count twice"
            problems.add("this file is named twice", f"file {shown(name)}", remedy)
        elif same_bytes(path, files[earlier]):
            copy = f"{shown(name)} is an exact copy of {shown(called[earlier])}"
            notes.append(f"{copy}; its rows count once more.")
    problems.raise_if_any()
    return notes


def _named(problems: Sequence[InputProblem], name: str) -> list[InputProblem]:
    file = f"file {shown(name)}"
    return [
        p if file in p.location else replace(p, location=f"{file}, {p.location}" if p.location else file)
        for p in problems
    ]


def _look(
    path: File, name: str, budget: int, should_stop: ShouldStop | None
) -> tuple[tuple[Part, Table], int]:
    """Return a file and its first rows, or all of them; and the plain bytes taken from the budget."""
    kind = formats.kind_of(path, name)
    stamp = stamp_of(path)  # Before anything is read of it: what is written from then on shows.
    if kind.format is Format.WORKBOOK:
        table = small.workbook_table(path, name, should_stop)
        return (in_memory(table), table), 0
    if kind.format is Format.PARQUET:
        part, table = _parquet(path, name, SMALL_CELLS if budget > 0 else 0)
        return (replace(part, stamp=stamp), table), 0
    most = max(budget, ARRAY_BYTES) if kind.is_json_array else budget
    content = formats.read_small(path, kind, most, name) if most > 0 else None
    if content is not None:
        is_json = kind.format is Format.JSON
        try:
            table = small.json_table(content, name)[0] if is_json else read_table(content, name)
            table = _packed(table, kind)
            return (in_memory(table), table), len(content)
        except TooManyCells:  # DuckDB reads them as it reads large files, of which it holds little
            if kind.is_json_array:
                raise
    if kind.is_json_array:
        what = f"the JSON array is longer than the {ARRAY_BYTES:,} bytes that are read into memory"
        raise refuse(what, remedy="Write one JSON object per line instead of an array")
    part, table = _described(path, name, kind)
    return (replace(part, stamp=stamp), _packed(table, kind)), 0


def _packed(table: Table, kind: Kind) -> Table:
    """Return the table, whose layout knows how its file is compressed."""
    packing = "" if kind.packing is Packing.NONE else kind.packing.value
    return replace(table, layouts=tuple(replace(layout, packing=packing) for layout in table.layouts))


def _described(path: File, name: str, kind: Kind) -> tuple[Part, Table]:
    if kind.format is Format.JSON:
        head = kind.head if kind.whole else kind.head[: kind.head.rfind(b"\n") + 1]
        if not head:
            what = f"the line is longer than the {formats.HEAD_BYTES:,} bytes that are looked at first"
            raise refuse(what, "line 1", "Write one JSON object per line, without long texts")
        table, keys = small.json_table(head, name, HEAD_ROWS)
        if not kind.whole:
            objects = sum(1 for line in head.split(b"\n") if line.strip())
            first = f"Columns are the keys of the first {objects:,} objects"
            table = replace(table, notes=(*table.notes, f"{first}; keys that come later are not offered."))
        encoding = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
        return Part(path, name, Format.JSON, kind.packing, table.columns, encoding, keys=keys), table
    table = _text_head(kind, name)
    encoding = encoding_by_marks(kind.head) or table.encoding  # which knows of UTF-16 without a mark
    (layout,) = table.layouts
    split = layout.separator if layout.separator in SPACED or layout.names else ""
    read = encoding, table.delimiter, layout.skip, split, not layout.names
    return Part(path, name, Format.TEXT, kind.packing, table.columns, *read), table


def _text_head(kind: Kind, name: str) -> Table:
    """Return the rows in the first bytes. The cut may fall inside a character, a line, or a quoted line break."""
    head = kind.head
    if kind.whole:
        with suppress(TooManyCells):
            return _head(read_table(head, name))
    elif is_blank(head):
        what = f"the first {len(head):,} bytes are blank"
        raise refuse(what, remedy="Remove the blank lines above the column names, or choose another file")
    # Most files need no more than the rows that are looked at, which takes a third of the time.
    with suppress(InvalidInput):
        if cut := _line_end(head, HEAD_ROWS):
            return _head(read_table(head[:cut], name))
    first: InvalidInput | None = None
    for _ in range(30):
        _refuse_long_line(head)
        cut = _line_end(head[: -_width(head)])
        if not cut:
            break
        head = head[:cut]
        try:
            return _head(read_table(head, name))
        except InvalidInput as refused:
            first, said = first or refused, str(refused)
            if "a header and no rows" in said:  # under it stands a row that does not end in what was read
                what = f"a quotation mark is opened and not closed within {formats.HEAD_BYTES:,} bytes"
                line = head.count(b"\n") + 1
                raise refuse(what, f"line {line:,}", QUOTES) from None
            if "quotation mark" not in said:
                raise
    what = "the first line is longer than a row of a table may be"
    raise first or refuse(what, "line 1", "Is this a table in text form?")


def _refuse_long_line(head: bytes) -> None:
    """Refuse a beginning of a file whose last line, cut off as it is, is longer than any row of a table."""
    ends = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
    if (len(head) - ends) // _width(head) > MAX_LINE_BYTES:
        line = head.count(b"\n", 0, ends) or head.count(b"\r", 0, ends)
        raise InvalidInput([long_line(line + 1)])


def _line_end(head: bytes, most: int | None = None) -> int:
    """Behind the last line, or so many under the first, that does not end inside quotation marks; 0 for none.

    Before such an end their number is even.
    """
    import numpy as np

    above = len(_COMMENTS.match(head).group())  # type: ignore[union-attr]  # marks in comments open nothing
    codes = np.frombuffer(head, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not ends.size:
        ends = np.flatnonzero(codes == ord("\r"))  # lines may end in carriage returns alone
    marks = codes == ord('"')
    marks[:above] = False
    outside = ends[np.cumsum(marks)[ends] % 2 == 0]
    if most is not None:
        outside = outside[outside >= above][: most + 1]
    return (int(outside[-1]) // _width(head) + 1) * _width(head) if outside.any() else 0


def _head(table: Table) -> Table:
    """Return the first rows; what is said of rows is said once, when all have been read."""
    of_rows = ("blank row", "fewer fields", "several lines")
    notes = tuple(note for note in table.notes if not any(words in note for words in of_rows))
    return replace(table, frame=table.frame.iloc[:HEAD_ROWS], lines=table.lines[:HEAD_ROWS], notes=notes)


def _width(head: bytes) -> int:
    """Return the bytes of a line end."""
    if head[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return 4
    return 2 if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:64] else 1


_GROUP_BYTES = 1_000_000
"""Bytes of a group of rows in a Parquet file that need no rows: headers of pages and dictionaries."""


def _parquet(path: File, name: str, small_cells: int) -> tuple[Part, Table]:
    """Return a Parquet file and its first rows; all rows where they are few."""
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
        what = f"rows of the Parquet file have more than {MAX_LINE_BYTES:,} bytes"
        raise refuse(what, remedy="Leave out columns of long texts or pictures")
    complete = rows * len(columns) <= small_cells
    with nullcontext(None) if isinstance(path, Held) else closing(Workspace()) as workspace:
        safe = path if workspace is None else safe_path(path, workspace)
        try:
            with closing(Duck([safe], None if workspace is None else workspace.folder)) as duck:
                described = duck.rows(f"DESCRIBE SELECT * FROM {parquet_scan(safe, len(columns))}")
                types = tuple(str(row[1]) for row in described)
                part = Part(safe, name, Format.PARQUET, Packing.NONE, columns, types=types)
                # DuckDB writes the cells, so that they read as they will be counted.
                as_texts = Reading(part, texts=frozenset(columns))
                frame = cells_of(duck, as_texts, rows if complete else HEAD_ROWS)
        except duckdb.Error as error:
            if "encrypted" in str(error):  # its columns, under a footer that is not
                what = "the Parquet file is encrypted"
                raise refuse(what, remedy=formats.NOT_ENCRYPTED) from None
            raise damaged from None
    table = table_of_cells(columns, frame, np.arange(len(frame) + 1, dtype=np.int64), name, "row")
    times |= duckdb_times(dict(zip(columns, types, strict=True)))
    called = dict(zip(columns, table.columns, strict=True))
    times = {called[column]: held for column, held in times.items()}
    table = replace(table, layouts=(FileLayout(name, FileKind.PARQUET),), times=times)
    if rounded:
        what = f"Column {shown(rounded[0])}{and_more(len(rounded) - 1)} may hold more than 38 digits"
        table = replace(table, notes=(f"{what}: only the first 15 of a number count.", *table.notes))
    return in_memory(table) if complete else replace(part, path=path, columns=table.columns), table
