"""JSON in memory, the first rows of files that are too large for a table in memory, and small Parquet files."""

from __future__ import annotations

import codecs
import json
import re
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.workspace import Workspace
from dpcore.counting import formats
from dpcore.counting.duck import Duck
from dpcore.counting.duck_tables import quote_literal
from dpcore.counting.formats import MemoryFile
from dpcore.counting.rejects import JSON_REMEDY, QUOTES_REMEDY, refuse_bad_lines
from dpcore.counting.relation import Relation, find_safe_path, find_times, read_cells, write_parquet_scan
from dpcore.counting.text import TooManyCells, read_table, refuse_long_line
from dpcore.data.column_names import MAX_COLUMNS, and_more, refuse_many_columns, shorten
from dpcore.data.tables import SPACED, FileKind, FileLayout, Table, build_table

if TYPE_CHECKING:
    import pandas as pd


def read_json(json_bytes: bytes, name: str, max_rows: int | None = None) -> tuple[Table, tuple[str, ...]]:
    """Read JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Args:
        json_bytes: The file.
        name: File name, for messages.
        max_rows: Largest number of rows; None for all.

    Returns:
        The table, with cleaned column names, and the keys as they are written.

    Raises:
        TooManyCells: Its objects lack so many keys that the table would be too large for memory.
        InvalidInput: Not UTF-8, not JSON, not objects ...; the first wrong lines are named.
    """
    import duckdb

    try:
        json_text = json_bytes.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_number = json_bytes.count(b"\n", 0, error.start) + 1
        raise refuse("JSON must be UTF-8", f"line {line_number:,}", "Save it as UTF-8") from None
    is_array = json_text.lstrip().startswith("[")
    filled_line_numbers = [number for number, line in enumerate(json_text.split("\n"), 1) if line.strip()]
    if is_array:
        json_text = _convert_array_to_lines(json_text)
    memory_file = MemoryFile(json_text.encode())
    with closing(Duck()) as duck:
        try:
            keys = _list_keys(duck, memory_file)
            if max_rows is None:
                TooManyCells.refuse(json_text.count("\n") + 1, len(keys), len(memory_file.content))
            frame = read_cells(duck, Relation(memory_file, name, FileKind.JSON, keys, keys=keys), max_rows)
        except duckdb.Error:
            refuse_bad_lines(memory_file.open(), "")
            raise refuse("this is not JSON", remedy=JSON_REMEDY) from None
    row_line_numbers = range(2, len(frame) + 2) if is_array else filled_line_numbers[: len(frame)]
    table = build_table(keys, frame, np.array([1, *row_line_numbers], np.int64), name)
    json_notes = ["In an array of objects, line 2 stands for the first object."] if is_array else []
    return replace(table, layouts=(FileLayout(name, FileKind.JSON),), notes=(*json_notes, *table.notes)), keys


def _convert_array_to_lines(array_text: str) -> str:
    """Return a JSON array as text with one object per line; raise InvalidInput if it is not an array of objects."""
    import duckdb

    try:
        with closing(Duck()) as duck:
            objects_sql = "SELECT unnest(CAST(CAST($1 AS JSON) AS JSON[]))::VARCHAR"
            object_rows = duck.connection.execute(objects_sql, [array_text.strip()]).fetchall()
    except duckdb.Error:
        object_location = ""
        with suppress(RecursionError):
            try:
                json.loads(array_text)
            except json.JSONDecodeError as error:
                object_location = f"line {error.lineno:,}"
        raise refuse("this is not JSON", object_location, JSON_REMEDY) from None
    if any(object_row[0] is None or not object_row[0].startswith("{") for object_row in object_rows):
        raise refuse("the JSON is not an array of objects", remedy=JSON_REMEDY)
    return "".join(f"{object_row[0]}\n" for object_row in object_rows)


def _list_keys(duck: Duck, memory_file: MemoryFile) -> tuple[str, ...]:
    """Return the keys of all JSON objects, in the order of their first occurrence; refuse objects without keys."""
    scan_sql = f"read_json_objects({quote_literal(str(memory_file))}, format = 'newline_delimited')"
    all_keys_sql = f"SELECT unnest(json_keys(json)) AS key FROM {scan_sql}"
    numbered_keys_sql = f"SELECT key, row_number() OVER () AS n FROM ({all_keys_sql})"
    ordered_keys_sql = f"SELECT key FROM ({numbered_keys_sql}) GROUP BY key ORDER BY min(n)"
    key_rows = duck.connection.execute(ordered_keys_sql).fetchall()
    if len(key_rows) > MAX_COLUMNS:
        raise refuse(f"there are more than {MAX_COLUMNS:,} different keys", remedy="Leave out unneeded ones")
    if not key_rows:
        refuse_bad_lines(memory_file.open(), "")
        raise refuse("no object has a key", remedy="Write one object per row, with a key for who")
    return tuple(key_row[0] for key_row in key_rows)


HEAD_ROWS = 1_000
"""Rows of a large file that are inspected before it is counted."""
_COMMENTS_PATTERN = re.compile(rb"(?:#[^\n]*\n|[ \t\r]*\n)*")
_GROUP_BYTES = 1_000_000
"""Bytes that a row group of a Parquet file may have besides its rows: page headers and dictionaries."""


def inspect_json(file: formats.File, name: str, file_start: formats.FileStart) -> tuple[Relation, Table]:
    """Return the relation of a large file of JSON Lines, and its first rows as a table."""
    start_bytes = file_start.content
    start_bytes = start_bytes if file_start.is_complete else start_bytes[: start_bytes.rfind(b"\n") + 1]
    if not start_bytes:
        raise refuse(f"the line is longer than {formats.HEAD_BYTES:,} bytes", "line 1", JSON_REMEDY)
    table, keys = read_json(start_bytes, name, HEAD_ROWS)
    if not file_start.is_complete:
        num_objects = sum(1 for line_bytes in start_bytes.split(b"\n") if line_bytes.strip())
        keys_note = f"Columns are the keys of the first {num_objects:,} objects; later keys are not offered."
        table = replace(table, notes=(*table.notes, keys_note))
    encoding = "utf-8-sig" if start_bytes.startswith(codecs.BOM_UTF8) else "utf-8"
    return Relation(file, name, FileKind.JSON, table.columns, file_start.packing, encoding, keys=keys), table


def inspect_text(
    file: formats.File, display_name: str, file_start: formats.FileStart, stated_separator: str = ""
) -> tuple[Relation, Table]:
    """Return the relation of a large text file, and its first rows as a table."""
    table = _read_first_rows(file_start, display_name, stated_separator)
    encoding = formats.detect_encoding(file_start.content) or table.encoding  # also UTF-16 without a mark
    (file_layout,) = table.layouts
    relation = Relation(
        file, display_name, FileKind.TEXT, table.columns, file_start.packing, encoding, table.delimiter,
        file_layout.skip,
        marked_separator=file_layout.separator if file_layout.separator in SPACED or file_layout.names else "",
        has_header=not file_layout.names,
    )  # fmt: skip
    return relation, table


def _read_first_rows(file_start: formats.FileStart, display_name: str, stated_separator: str) -> Table:
    """Read the rows in the first bytes, which may end inside a character, a line, or a quoted line break."""
    content = file_start.content
    if file_start.is_complete:
        with suppress(TooManyCells):
            return _cut_rows(read_table(content, display_name, stated_separator))
    elif formats.is_blank(content):
        raise refuse(f"the first {len(content):,} bytes are blank", remedy="Remove the blank lines on top")
    # For most files the first rows are enough, which takes a third of the time.
    with suppress(InvalidInput):
        if end_position := _find_line_end(content, HEAD_ROWS):
            return _cut_rows(read_table(content[:end_position], display_name, stated_separator))
    first_error: InvalidInput | None = None
    for _ in range(30):
        end_position = max(content.rfind(b"\n"), content.rfind(b"\r")) + 1
        last_line_length = (len(content) - end_position) // _measure_character(content)
        if last_line_length > formats.MAX_LINE_BYTES:  # though it is cut off
            num_line_ends = content.count(b"\n", 0, end_position) or content.count(b"\r", 0, end_position)
            raise refuse_long_line(num_line_ends + 1)
        end_position = _find_line_end(content[: -_measure_character(content)])
        if not end_position:
            break
        content = content[:end_position]
        try:
            return _cut_rows(read_table(content, display_name, stated_separator))
        except InvalidInput as refused:
            first_error, error_text = first_error or refused, str(refused)
            if "a header and no rows" in error_text:
                # Under the header stands a row that does not end in what was read.
                message = f"a quotation mark is opened and not closed within {formats.HEAD_BYTES:,} bytes"
                last_line_number = content.count(b"\n") + 1
                raise refuse(message, f"line {last_line_number:,}", QUOTES_REMEDY) from None
            if "quotation mark" not in error_text:
                raise
    raise first_error or refuse("the first line is too long", "line 1", "Is this a table in text form?")


def _find_line_end(start_bytes: bytes, max_lines: int | None = None) -> int:
    """Return the position after the last line end outside quotation marks; 0 if there is none.

    With ``max_lines``, the lines end this many below the header; comments above it are not counted.
    A line end is outside if an even number of quotation marks precedes it.
    """
    num_comment_bytes = len(_COMMENTS_PATTERN.match(start_bytes).group())  # type: ignore[union-attr]  # marks in comments open nothing
    byte_codes = np.frombuffer(start_bytes, np.uint8)
    end_positions = np.flatnonzero(byte_codes == ord("\n"))
    if not end_positions.size:
        end_positions = np.flatnonzero(byte_codes == ord("\r"))  # lines may end in carriage returns alone
    quote_mask = byte_codes == ord('"')
    quote_mask[:num_comment_bytes] = False
    outer_positions = end_positions[np.cumsum(quote_mask)[end_positions] % 2 == 0]
    if max_lines is not None:
        outer_positions = outer_positions[outer_positions >= num_comment_bytes][: max_lines + 1]
    character_bytes = _measure_character(start_bytes)
    return (int(outer_positions[-1]) // character_bytes + 1) * character_bytes if outer_positions.any() else 0


def _measure_character(encoded_bytes: bytes) -> int:
    """Return the number of bytes of an ASCII character, and so of a line end, in the encoding of the content."""
    if encoded_bytes[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return 4
    return 2 if encoded_bytes[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in encoded_bytes[:64] else 1


def _cut_rows(table: Table) -> Table:
    """Return the table cut to `HEAD_ROWS` rows, without notes on rows, which are written when all have been read."""
    row_note_phrases = ("blank row", "fewer fields", "several lines")
    kept_notes = tuple(note for note in table.notes if not any(phrase in note for phrase in row_note_phrases))
    return replace(
        table,
        frame=table.frame.iloc[:HEAD_ROWS],
        line_numbers=table.line_numbers[:HEAD_ROWS],
        notes=kept_notes,
    )


def inspect_parquet(
    file: formats.File, name: str, max_cells: int, reads_header_only: bool = False
) -> tuple[Relation, Table]:
    """Return the relation of a Parquet file with its first rows, or all rows if it has at most ``max_cells`` cells.

    With ``reads_header_only``, one dummy row stands in place of all rows, and nothing depends on these.
    """
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged_error = refuse("the Parquet file is damaged or cut off", remedy="Copy or export it again")
    try:
        with file.open("rb") as stream, pq.ParquetFile(stream) as parquet_file:
            arrow_schema, metadata = parquet_file.schema_arrow, parquet_file.metadata
            row_groups = [metadata.row_group(group_index) for group_index in range(metadata.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        raise damaged_error from None
    parquet_columns = tuple(map(str, arrow_schema.names))
    if not parquet_columns:
        raise refuse("the Parquet file has no columns", remedy="Choose another file")
    refuse_many_columns(len(parquet_columns))
    # A kilobyte can hold hundreds of megabytes of one cell; lines of text are held to the same size.
    max_row_bytes = formats.MAX_LINE_BYTES
    has_large_rows = any(g.total_byte_size > max_row_bytes * g.num_rows + _GROUP_BYTES for g in row_groups)
    if has_large_rows and not reads_header_only:
        row_bytes_message = f"rows have more than {max_row_bytes:,} bytes"
        raise refuse(row_bytes_message, remedy="Leave out long texts and pictures")
    keeps_all_rows = not reads_header_only and metadata.num_rows * len(parquet_columns) <= max_cells
    with nullcontext(None) if isinstance(file, formats.MemoryFile) else closing(Workspace()) as workspace:
        safe_file = file if workspace is None else find_safe_path(file, workspace)
        try:
            with closing(Duck([safe_file], None if workspace is None else workspace.folder)) as duck:
                scan_sql = write_parquet_scan(safe_file, len(parquet_columns))
                type_rows = duck.fetch_rows(f"DESCRIBE SELECT * FROM {scan_sql}")
                column_types = tuple(str(type_row[1]) for type_row in type_rows)
                relation = Relation(safe_file, name, FileKind.PARQUET, parquet_columns, types=column_types)
                # DuckDB writes the cells as text, so that they look as they will be counted.
                relation_as_text = replace(relation, text_columns=frozenset(parquet_columns))
                table_cells: pd.DataFrame | list[list[str]] = [["0"] * len(parquet_columns)]
                if not reads_header_only:
                    table_cells = read_cells(
                        duck, relation_as_text, metadata.num_rows if keeps_all_rows else HEAD_ROWS
                    )
        except duckdb.Error as error:
            if "encrypted" in str(error):  # its columns, under a footer that is not
                raise refuse("the Parquet file is encrypted", remedy=formats.DECRYPT_REMEDY) from None
            raise damaged_error from None
    table = build_table(parquet_columns, table_cells, np.arange(len(table_cells) + 1), name, "row")
    time_kinds = find_times(table.columns, arrow_schema.types) | find_times(table.columns, column_types)
    # DuckDB reads these as floating-point numbers.
    decimal_fields = [field for field in arrow_schema if pa.types.is_decimal256(field.type)]
    if rounded_columns := [field.name for field in decimal_fields if field.type.precision > 38]:
        subject_text = f"Column {shorten(rounded_columns[0])}{and_more(len(rounded_columns) - 1)}"
        digits_note = f"{subject_text} may hold more than 38 digits: only the first 15 count."
        table = replace(table, notes=(digits_note, *table.notes))
    types_by_column = dict(zip(table.columns, column_types, strict=True))
    booleans = frozenset(column for column in table.columns if types_by_column[column] == "BOOLEAN")
    table = replace(table, layouts=(FileLayout(name, FileKind.PARQUET),), times=time_kinds, booleans=booleans)
    if keeps_all_rows:
        return Relation.of_table(table), table
    return replace(relation, path=file, columns=table.columns), table
