"""Rows of text and JSON read one by one, as generated programs read them: no row decides how another one is read."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dpcore.common.checks import Problems, refuse
from dpcore.counting import formats
from dpcore.counting.formats import File
from dpcore.counting.rejects import JSON_REMEDY
from dpcore.counting.text import split_fields
from dpcore.data.column_names import check_names, refuse_missing
from dpcore.data.tables import SPACED, FileKind, FileLayout

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_ROWS = 100_000


def write_rows(file: File, layout: FileLayout, columns: Sequence[str], output: Path | IO[bytes]) -> set[str]:
    """Write columns of a text or JSON file as texts into Parquet, and return those that any JSON object has.

    Every row is read by itself. Text that a row has beyond the fields of the header is left out, as is a line of JSON
    that holds no readable object. Bytes that are not UTF-8 count as Windows-1252.

    Args:
        file: The file.
        layout: How it is read.
        columns: Cleaned names; a key that no object has is an empty column.
        output: The Parquet file.

    Raises:
        InvalidInput: The file is damaged, a quotation mark is never closed, its header lacks a column, or an array of
            JSON cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file_start = formats.read_start(file, layout.name)
    encoding = formats.detect_encoding(file_start.content) or "utf-8-sig"
    # Not the encoding of the layout, which a byte of one row may decide.
    error_handler = "windows-1252" if encoding == "utf-8-sig" else "replace"
    schema = pa.schema([(column, pa.string()) for column in columns])
    found_columns = set[str]()
    with (
        formats.open_plain_bytes(file, layout.packing, layout.name) as stream,
        pq.ParquetWriter(output, schema) as writer,
    ):
        is_json = layout.kind is FileKind.JSON
        text_stream = io.TextIOWrapper(stream, encoding, error_handler, newline="\n" if is_json else "")
        for _ in range(layout.skip):
            text_stream.readline()
        if is_json:
            rows = _read_objects(text_stream, file_start.is_json_array)
            tables = _build_tables(rows, schema, found_columns)
        elif layout.separator in SPACED or layout.names:
            tables = _build_tables(_split_lines(text_stream, layout), schema, found_columns)
        else:
            tables = _read_fields(text_stream, layout.separator, schema)
        for table in tables:
            writer.write_table(table)
    return found_columns


def _build_tables(
    rows: Iterator[dict[str, str | None]], schema: pa.Schema, found_columns: set[str]
) -> Iterator[pa.Table]:
    """Yield tables of rows, and note the columns that any row has."""
    import pyarrow as pa

    while chunk_rows := list(islice(rows, _CHUNK_ROWS)):
        found_columns.update(column for column in schema.names if any(column in row for row in chunk_rows))
        yield pa.Table.from_pylist(chunk_rows, schema)


def _read_fields(text_stream: io.TextIOWrapper, separator: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables of text with one character between fields, below its header."""
    import pandas as pd
    import pyarrow as pa

    try:
        header_cells = next(csv.reader(text_stream, delimiter=separator, skipinitialspace=True), [])
        names = check_names(header_cells, 1, Problems(), [])
        with Problems() as problems:
            refuse_missing(problems, names, schema.names)
        index_texts = {str(names.index(column)) for column in schema.names}
        # The options are those of the programs.
        frames = pd.read_csv(
            _HeadedStream(text_stream, separator.join(map(str, range(len(names)))) + "\n"),
            sep=separator, dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False,
            usecols=lambda index_text: index_text in index_texts, chunksize=_CHUNK_ROWS,
        )  # fmt: skip
        for frame in frames:
            frame.columns = [names[int(index_text)] for index_text in frame.columns]
            yield pa.Table.from_pandas(frame, schema, preserve_index=False)
    except (csv.Error, ValueError):
        raise refuse("a quotation mark is opened and never closed") from None


class _HeadedStream(io.TextIOBase):
    """A text stream behind a line of its own."""

    def __init__(self, text_stream: io.TextIOWrapper, first_line: str) -> None:
        self._text_stream, self._first_line = text_stream, first_line

    def read(self, size: int | None = -1, /) -> str:
        """Return the line at first, and then characters of the stream."""
        first_line, self._first_line = self._first_line, ""
        return first_line or self._text_stream.read(size)


def _split_lines(text_stream: io.TextIOWrapper, layout: FileLayout) -> Iterator[dict[str, str | None]]:
    """Yield the cells of each line by name, where fields stand between blanks, double colons or nameless tabs."""
    names: Sequence[str] = layout.names
    for line in filter(str.strip, text_stream):
        fields = split_fields(line, layout.separator)
        cells = [re.sub(r'^"(.*)"$', r"\1", field).replace('""', '"') for field in fields]
        if names:
            yield dict(zip(names, cells, strict=False))
        names = names or check_names(cells, 1, Problems(), [])


def _read_objects(text_stream: io.TextIOWrapper, is_array: bool) -> Iterator[dict[str, str | None]]:
    """Yield the cells of each JSON object by cleaned key; of a key that stands twice, the last cell."""
    if is_array:
        try:
            yield from [
                _clean_object(entry) for entry in _parse_json(text_stream.read()) if isinstance(entry, dict)
            ]
        except (ValueError, RecursionError):
            raise refuse("this is not JSON", remedy=JSON_REMEDY) from None
        return
    for line in text_stream:
        try:
            entry = _parse_json(line)
            if isinstance(entry, dict):
                yield _clean_object(entry)
        except (ValueError, RecursionError):
            continue


def _parse_json(json_text: str) -> Any:
    """Parse JSON with its numbers as texts; 7.0 is 7."""
    return json.loads(
        json_text, parse_int=str, parse_float=lambda digits: f"{float(digits):.17g}", parse_constant=str
    )


def _clean_object(json_object: dict[str, Any]) -> dict[str, str | None]:
    """Return the cells of an object as texts by cleaned key; half a character is a question mark."""
    return {" ".join(key.split()): _write_cell(cell) for key, cell in json_object.items()}


def _write_cell(cell: Any) -> str | None:
    """Return a cell of a JSON object as text; None for null."""
    if cell is None:
        return None
    cell_text = cell if isinstance(cell, str) else json.dumps(cell)
    return cell_text.encode("utf-8", "replace").decode()


def _read_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that caused a decoding error as Windows-1252; return the text and the position behind them."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "windows-1252-rest"), error.end


codecs.register_error("windows-1252", _read_as_windows_1252)
