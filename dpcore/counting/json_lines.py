"""Reading JSON in memory as a table of text cells."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import numpy as np

from dpcore.common.checks import refuse
from dpcore.counting.duck import Duck, literal
from dpcore.counting.formats import MemoryFile
from dpcore.counting.rejects import NOT_JSON, refuse_bad_lines
from dpcore.counting.relation import Relation, read_cells
from dpcore.counting.text import TooManyCells
from dpcore.data.column_names import MAX_COLUMNS
from dpcore.data.tables import FileKind, FileLayout, Table, build_table


def read_json(content: bytes, name: str, max_rows: int | None = None) -> tuple[Table, tuple[str, ...]]:
    """Read JSON Lines, or one array of objects, as a table: a column per key, nested values as JSON.

    Args:
        content: The file.
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
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_number = content.count(b"\n", 0, error.start) + 1
        message = "the file is not UTF-8, which JSON must be"
        raise refuse(message, f"line {line_number:,}", "Save it as UTF-8") from None
    is_array = text.lstrip().startswith("[")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if is_array:
        text = _array_as_lines(text)
    memory_file = MemoryFile(text.encode())
    with closing(Duck()) as duck:
        try:
            keys = _list_keys(duck, memory_file)
            if max_rows is None:
                TooManyCells.refuse(text.count("\n") + 1, len(keys), len(memory_file.content))
            relation = Relation(memory_file, name, FileKind.JSON, keys, keys=keys)
            frame = read_cells(duck, relation, max_rows)
        except duckdb.Error:
            refuse_bad_lines(memory_file.open(), "")
            raise refuse("this is not JSON", remedy=NOT_JSON) from None
    numbers = range(2, len(frame) + 2) if is_array else lines[: len(frame)]
    table = build_table(keys, frame, np.array([1, *numbers], np.int64), name)
    notes = ["In an array of objects, line 2 stands for the first object."] if is_array else []
    layouts = (FileLayout(name, FileKind.JSON),)
    return replace(table, layouts=layouts, notes=(*notes, *table.notes)), keys


def _array_as_lines(text: str) -> str:
    """Return the objects of an array, one per line."""
    import duckdb

    try:
        with closing(Duck()) as duck:
            cast = "SELECT unnest(CAST(CAST($1 AS JSON) AS JSON[]))::VARCHAR"
            cells = duck.connection.execute(cast, [text.strip()]).fetchall()
    except duckdb.Error:
        message = "this is not JSON"
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            raise refuse(message, f"line {error.lineno:,}", NOT_JSON) from None
        except RecursionError:
            message = "the JSON is nested too deeply"
        raise refuse(message, remedy=NOT_JSON) from None
    if any(row[0] is None or not row[0].startswith("{") for row in cells):
        raise refuse("the JSON is not an array of objects", remedy=NOT_JSON)
    return "".join(f"{row[0]}\n" for row in cells)


def _list_keys(duck: Duck, memory_file: MemoryFile) -> tuple[str, ...]:
    """Return the keys of all objects, in the order of their first occurrence."""
    scan = f"read_json_objects({literal(str(memory_file))}, format = 'newline_delimited')"
    all_keys = f"SELECT unnest(json_keys(json)) AS key FROM {scan}"
    numbered = f"SELECT key, row_number() OVER () AS n FROM ({all_keys})"
    keys = duck.connection.execute(f"SELECT key FROM ({numbered}) GROUP BY key ORDER BY min(n)").fetchall()
    if len(keys) > MAX_COLUMNS:
        message = f"the objects have more than {MAX_COLUMNS:,} different keys"
        raise refuse(message, remedy="Keep the keys that say who, what and how much")
    if not keys:
        refuse_bad_lines(memory_file.open(), "")
        raise refuse("no object has a key", remedy="Write one object per row, with a key for who")
    return tuple(row[0] for row in keys)
