"""Reading text tables and lists of names in memory: encoding and delimiter are detected here, DuckDB reads the cells.

Our own detection comes first. DuckDB's `sniff_csv` reads 39 of 317 texts in the tests differently: those with odd
delimiters, ragged lines and damaged quotation marks. It takes 2 to 13 ms for each.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.common.checks import InputProblem, InvalidInput, Problems, refuse
from dpcore.common.wording import format_count
from dpcore.contributions import IntArray
from dpcore.counting import formats, rejects
from dpcore.counting.duck import Duck
from dpcore.counting.formats import decode
from dpcore.counting.rejects import LONG_LINE_MESSAGE_AND_REMEDY, QUOTES_REMEDY
from dpcore.counting.relation import ASCII_SEPARATORS, Relation, read_cells
from dpcore.data import column_names
from dpcore.data.tables import BLANKS, SPACED, SPACED_PATTERN, FileKind, FileLayout, Table, drop_blank_rows
from dpcore.dataset import LONGEST_TASK_NAME

if TYPE_CHECKING:
    import pandas as pd


MAX_CELLS = 5_000_000
"""Largest number of cells of a table in memory that has more cells than bytes, as its lines lack fields."""


class TooManyCells(InvalidInput):
    """The error of a small file with a large table, as its lines lack most of the fields that the header names."""

    @classmethod
    def refuse(cls, num_rows: int, num_columns: int, num_bytes: int) -> None:
        """Raise the error if there are too many cells; lines with all delimiters have no more cells than bytes."""
        if num_rows * num_columns > max(MAX_CELLS, num_bytes):
            message = f"most of its {num_rows:,} rows lack most of the {num_columns:,} columns"
            raise cls([InputProblem(message, "", "Leave out the columns that few rows fill")])


def read_separator(text: str) -> str:
    """Return the separator of fields that a person names, as in a `FileLayout`: `` +`` for blanks, empty for no text.

    Raises:
        InvalidInput: It is no character between fields, ``::``, ``tab`` or ``blank``.
    """
    separator = {"tab": "\t", "\\t": "\t", "blank": " +", " ": " +"}.get(text.lower(), text)
    if separator and separator not in SPACED and not re.fullmatch(r"[^\w\n\r\"' ]", separator):
        raise refuse(f'separator must be one character, "::", "tab" or "blank"; got {text[:20]!r}')
    return separator


def read_table(content: bytes, name: str, stated_separator: str = "") -> Table:
    """Read a text table; encoding and delimiter are detected, and the first line must name the columns.

    Args:
        content: The file, at most `dpcore.counting.formats.MAX_BYTES` bytes: UTF-8, UTF-16 or UTF-32, else
            Windows-1252, with fields between commas, semicolons, tabs or vertical bars, or one column.
        name: File name, for messages.
        stated_separator: Result of `read_separator`; empty to detect the separator.

    Raises:
        TooManyCells: Its lines lack so many fields that the table would be too large for memory.
        InvalidInput: Not a text table, no header, more fields than columns ...; all problems at once.
    """
    formats.check_text(content)
    file_text, encoding, notes = formats.decode(content)
    table_bytes, num_skipped, delimiter = _strip_preamble(file_text)
    long_line_mask = _measure_lines(table_bytes) - 1 > formats.MAX_LINE_BYTES
    if long_line_mask.any():
        raise refuse_long_line(num_skipped + int(np.argmax(long_line_mask)) + 1)
    sample_bytes = table_bytes[:_SNIFF_BYTES]
    sample_text = sample_bytes[: sample_bytes.rfind(b"\n") + 1].decode("utf-8", "ignore")
    if stated_separator:
        delimiter = stated_separator
    elif delimiter is None:
        delimiter = _sniff_delimiter(sample_text)
        if names_line_number := _find_names_below_title(sample_text):
            raise column_names.refuse_title(num_skipped + names_line_number, num_skipped + 1)
    marked_separator, has_header = _find_marked_separator(sample_text, delimiter), True
    if marked_separator:
        table_bytes, has_header = _mark_lines(table_bytes, marked_separator, notes)
        delimiter, num_skipped = FIELD_MARK, num_skipped - (not has_header)
    separator = delimiter or next((s for s in ASCII_SEPARATORS if s.encode() not in table_bytes), ",")
    try:
        header_cells: list[str] = next(_open_csv_reader(_open_text_lines(table_bytes), separator))
    except csv.Error:
        raise refuse("a quotation mark is opened and never closed", "line 1", QUOTES_REMEDY) from None
    problems = Problems()
    names = column_names.check_names(header_cells, num_skipped + 1, problems, notes)
    TooManyCells.refuse(table_bytes.count(b"\n") - 1, len(names), len(table_bytes))
    _note_comments(file_text, num_skipped, header_cells, notes)
    memory_file = formats.MemoryFile(table_bytes)
    relation = Relation(memory_file, name, FileKind.TEXT, tuple(names), delimiter=separator)
    if b'"' in table_bytes and (line_number := rejects.find_second_quotation(relation)):
        problems.add(rejects.SECOND_QUOTATION_MESSAGE, f"line {num_skipped + line_number:,}", QUOTES_REMEDY)
    frame = _read_rows(relation, num_skipped, problems, notes)
    first_lines, lines_per_record, blank_line_numbers = _find_record_lines(table_bytes, separator, len(names))
    first_lines = first_lines + num_skipped
    if frame is not None and not len(frame):
        problems.add("the file has a header and no rows", f"line {num_skipped + 1}", "Add rows")
    problems.raise_if_any()
    if frame is None or len(frame) != first_lines.size:
        raise refuse("the quotation marks in the file do not match", remedy=QUOTES_REMEDY)
    _note_long_records(first_lines, lines_per_record, notes)
    blank_line_numbers = blank_line_numbers + num_skipped
    frame, first_lines = drop_blank_rows(frame, first_lines, notes, blank_line_numbers.tolist())
    if has_header:
        column_names.check_header_row(names, frame, first_lines, num_skipped + 1, problems, notes)
    problems.raise_if_any()
    file_layout = FileLayout(
        name, separator=marked_separator or separator, encoding=formats.detect_encoding(content) or encoding,
        skip=num_skipped + (not has_header), names=() if has_header else tuple(names),
        has_stated_separator=bool(stated_separator),
    )  # fmt: skip
    return Table(frame, name, encoding, delimiter, first_lines, tuple(notes), layouts=(file_layout,))


def _read_rows(
    relation: Relation, num_skipped: int, problems: Problems, notes: list[str]
) -> pd.DataFrame | None:
    """Read the cells below the header; return None if lines are refused, with problems or if marks do not match."""
    import duckdb

    with closing(Duck()) as duck:
        try:
            return read_cells(duck, relation)
        except duckdb.Error:
            rejected_lines = rejects.list_rejected(duck, relation)
        has_short_rows = rejects.report_rejected(rejected_lines, relation, problems, notes, num_skipped, "")
        with relation.open_bytes() as binary_stream:
            num_quote_marks = binary_stream.read().count(b'"')
        # With an odd number of marks DuckDB takes the following text as quoted and drops it at the end.
        if has_short_rows and not num_quote_marks % 2:
            with suppress(duckdb.Error):
                return read_cells(duck, replace(relation, has_short_rows=True, is_single_threaded=True))
    return None


# --- lines above the table ----------------------------------------------------------------------------------

_COMMENTS_PATTERN = re.compile(r"(?:#[^\n]*\n|[ \t]*\n)+")
_DELIMITERS = "\t;|,"  # on a tie the delimiter that is rarer inside text wins


def _strip_preamble(file_text: str) -> tuple[bytes, int, str | None]:
    """Return UTF-8 without blank lines and comments at the top, the number of these lines, and a ``sep=`` delimiter."""
    start_position = file_text.rfind("\n", 0, len(file_text) - len(file_text.lstrip(" \t\n"))) + 1
    stated_delimiter = None
    hint_pattern = re.compile(r"sep=([^\w\s\"']|[ \t\x01\x1c-\x1f])[ \t]*\n", re.IGNORECASE)
    if hint_match := hint_pattern.match(file_text, start_position):  # Excel's own first line
        start_position, stated_delimiter = hint_match.end(), hint_match.group(1)
    start_position += _measure_comments(file_text, start_position, stated_delimiter)
    body_text = file_text[start_position:].rstrip("\n")
    if not body_text.strip():
        raise refuse("the file holds nothing but blanks", remedy="Choose a file with rows")
    # Python has already refused lone surrogates in UTF-16, so this cannot fail.
    return (body_text + "\n").encode(), file_text.count("\n", 0, start_position), stated_delimiter


def _measure_comments(file_text: str, start_position: int, delimiter: str | None) -> int:
    """Return the number of characters of comments above the header: lines that begin with #, and blanks between them.

    The header itself may begin with #, as in ``#user,value``: if the last such line has as many fields as the line
    below it, and that line has no column names. In one column this cannot be decided, so all lines are read.
    """
    comments_match = _COMMENTS_PATTERN.match(file_text, start_position)
    if comments_match is None:
        return 0
    line_below = file_text[comments_match.end() :].partition("\n")[0]
    delimiters = [d for d in delimiter or _DELIMITERS if d in line_below]
    if not delimiters:
        return 0
    comment_lines = comments_match.group().splitlines(keepends=True)
    last_comment_index = max(
        comment_index for comment_index, line in enumerate(comment_lines) if line.startswith("#")
    )
    cells_below = [cell_text.strip(' "') for cell_text in line_below.split(delimiters[0])]
    has_data_below = any(map(column_names.looks_like_data, cells_below))
    has_names_below = any(map(column_names.is_header_word, cells_below)) and not has_data_below
    last_comment_line = comment_lines[last_comment_index]
    if not has_names_below and any(last_comment_line.count(d) == line_below.count(d) for d in delimiters):
        return sum(map(len, comment_lines[:last_comment_index]))
    return comments_match.end() - start_position


def _note_comments(file_text: str, num_skipped: int, header_cells: list[str], table_notes: list[str]) -> None:
    """Add a note on comment lines above the header, or on a header that begins with #."""
    num_comments = sum(line.startswith("#") for line in file_text.split("\n", num_skipped)[:num_skipped])
    if num_comments:
        comment_lines_text = format_count(num_comments, "comment line was", "comment lines were")
        table_notes.append(f"{comment_lines_text} left out above the column names.")
    if len(header_cells) > 1 and header_cells[0].startswith("#"):
        table_notes.append("The line of column names begins with #; if it is a comment, remove it.")


# --- the delimiter ------------------------------------------------------------------------------------------

_SNIFF_BYTES = 2 * formats.MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_OTHER_DELIMITERS = formats.CONTROL_DELIMITERS + "^~#!:&%=*@$"
"""Tried if none of the usual ones fits. A blank is not included, as names may consist of several words."""
FIELD_MARK = "\x1f"
"""Separator of rewritten lines (`mark_fields`); it occurs in no text."""
NAME_BY_SEPARATOR = {**SPACED, "\t": "tabs"}
"""Separators of text whose lines are rewritten: `SPACED`, or tabs without column names (`_lacks_names`)."""
_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?")
_BLANKS_PATTERN, _SPACED_PATTERN = re.compile(r"[ \t\r\v\f]+"), re.compile(SPACED_PATTERN)


def _sniff_delimiter(sample_text: str) -> str:
    """Return the delimiter under which the first records have as many fields as the header; empty for none."""
    best_delimiter, best_score = "", (0.0, 0.0, 0)
    for delimiter in _DELIMITERS:
        record_lengths = [len(record) for _, record in _list_first_records(sample_text, delimiter)] or [0]
        num_columns, row_lengths = record_lengths[0], record_lengths[1:] or record_lengths[:1]
        equal_share = sum(fields_in_row == num_columns for fields_in_row in row_lengths) / len(row_lengths)
        several_share = sum(fields_in_row > 1 for fields_in_row in row_lengths) / len(row_lengths)
        # A header without the delimiter above rows that all have it: a ragged table, which later gets a message.
        header_lacks_delimiter = num_columns == 1 and several_share == 1.0 and len(set(row_lengths)) == 1
        score = (equal_share if num_columns > 1 else 0.0, several_share, num_columns)
        if ((num_columns > 1 and several_share >= 0.5) or header_lacks_delimiter) and score > best_score:
            best_delimiter, best_score = delimiter, score
    if best_score[0]:
        return best_delimiter
    return next((d for d in _OTHER_DELIMITERS if _has_equal_records(sample_text, d)), best_delimiter)


def _has_equal_records(sample_text: str, delimiter: str) -> bool:
    """Return True if under this delimiter every record has as many fields as the header, more than one."""
    header, *records_below = [record for _, record in _list_first_records(sample_text, delimiter)] or [[]]
    has_names = len(header) > 1 and all(header_cell.strip() for header_cell in header)
    return has_names and bool(records_below) and all(len(record) == len(header) for record in records_below)


def _find_names_below_title(sample_text: str) -> int:
    """Return the number of the line of column names if a title with fewer fields is above it; else 0.

    It is such a line if every line below has as many fields, no name looks like data, and half of the names have a
    header word.
    """
    for delimiter in _DELIMITERS:
        numbered_records = _list_first_records(sample_text, delimiter, skips_blanks=True)
        row_lengths = [len(record_cells) for _, record_cells in numbered_records]
        num_titles = next(
            (record_index for record_index, length in enumerate(row_lengths) if length > row_lengths[0]), 0
        )
        if not 0 < num_titles < len(numbered_records) - 1 or num_titles > column_names.MAX_TITLES:
            continue
        (line_number, record_cells), *records_below = numbered_records[num_titles:]
        cleaned_names = [" ".join(name_cell.split()) for name_cell in record_cells]
        if (
            all(cleaned_names)
            and 2 * sum(map(column_names.is_header_word, cleaned_names)) >= len(cleaned_names)
            and not any(map(column_names.looks_like_data, cleaned_names))
            and {len(record) for _, record in records_below} == {len(cleaned_names)}
        ):
            return line_number
    return 0


def _list_first_records(
    sample_text: str, delimiter: str, skips_blanks: bool = False
) -> list[tuple[int, list[str]]]:
    """Return the header and the first records that are not empty (or not blank), each behind its last line's number."""
    numbered_records: list[tuple[int, list[str]]] = []
    csv_reader = _open_csv_reader(io.StringIO(sample_text, newline="\n"), delimiter)
    with suppress(csv.Error):  # judged by the records before the error, which is reported later
        for csv_record in csv_reader:
            if any(record_cell.strip(BLANKS) for record_cell in csv_record) if skips_blanks else csv_record:
                numbered_records.append((csv_reader.line_num, csv_record))
            if len(numbered_records) > _SNIFF_RECORDS:
                break
    return numbered_records


def _find_marked_separator(sample_text: str, delimiter: str) -> str:
    """Return the separator of `NAME_BY_SEPARATOR` between the fields of all first lines; empty for none.

    Blanks or ``::`` are one if all lines have equally many, and there is a column of numbers: lines of names may also
    have equally many words. In a log with quotation marks, other delimiters may stand between these, or in every time.
    """
    full_lines = [line for line in sample_text.split("\n") if line.strip(BLANKS)]
    has_quotes = '"' in sample_text
    if delimiter in SPACED:
        return delimiter
    if len(full_lines) < 2 or not (delimiter in ("", " ", "\t") or has_quotes):
        return ""
    if delimiter == "\t":
        is_nameless = not has_quotes and _lacks_names([split_fields(line, delimiter) for line in full_lines])
        return delimiter if is_nameless else ""
    for separator in (" +",) if has_quotes else reversed(SPACED):
        rows = [split_fields(line, separator) for line in full_lines]
        has_equal_rows = len(rows[0]) > 1 and len(set(map(len, rows))) == 1
        # Else the blank of "7, 8" would separate fields, too.
        unquoted_cells = [cell for row_fields in rows for cell in row_fields if not cell.startswith('"')]
        splits_unquoted = delimiter in list(_DELIMITERS) and any(delimiter in cell for cell in unquoted_cells)
        if has_equal_rows and not splits_unquoted and any(map(_are_numbers, zip(*rows[1:], strict=True))):
            return separator
    return ""


def _lacks_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if tab-separated text has no column names, like ``u.data`` of MovieLens 100K.

    The conditions: at least three columns, at least one column of numbers including its first cell, and no header word
    in the first line. Names may be consecutive numbers, such as years; first cells of data are not.
    """
    first_row = rows[0]
    if len(first_row) < 3 or len(set(map(len, rows))) > 1 or any(map(column_names.is_header_word, first_row)):
        return False
    first_integers = [int(cell) for cell in first_row if re.fullmatch(r"[0-9]{1,18}", cell)]
    is_counting_up = len(first_integers) > 1 and set(np.diff(first_integers)) == {1}
    return not is_counting_up and not _has_names(rows)


def _has_names(rows_of_cells: Iterable[Sequence[str]]) -> bool:
    """Return True if the first row has names: no column has only numbers including its first cell."""
    return not any(map(_are_numbers, zip(*rows_of_cells, strict=True)))


def _are_numbers(cells: Iterable[str]) -> bool:
    """Return True if all cells are numbers."""
    return all(_NUMBER_PATTERN.fullmatch(cell.strip('"')) for cell in cells)


def _mark_lines(table_bytes: bytes, separator: str, table_notes: list[str]) -> tuple[bytes, bool]:
    """Put `FIELD_MARK` for the separator, and names first; return the text, and True if the file has the names."""
    table_lines = table_bytes.decode().split("\n")
    header_fields, *rows_of_fields = [split_fields(line, separator) for line in table_lines if line.strip()]
    fields_text = f"Fields stand between {NAME_BY_SEPARATOR[separator]}"
    marked_lines = [mark_fields(line, separator) for line in table_lines]
    # Rows of other lengths are reported when they are read.
    full_rows = [row_fields for row_fields in rows_of_fields if len(row_fields) == len(header_fields)]
    if has_header := _has_names([header_fields, *full_rows]):
        table_notes.append(f"{fields_text}.")
    else:
        made_up_names = [f"column {column_number}" for column_number in range(1, len(header_fields) + 1)]
        table_notes.append(f'{fields_text}. It has no column names, so these are "column 1" and so on.')
        marked_lines.insert(0, FIELD_MARK.join(made_up_names))
    return "\n".join(marked_lines).encode(), has_header


def split_fields(text_line: str, separator: str) -> list[str]:
    """Split a line into fields by a separator of `NAME_BY_SEPARATOR`, without blanks around them."""
    if separator == " +":  # The pattern with marks takes several times as long.
        return (_SPACED_PATTERN if '"' in text_line else _BLANKS_PATTERN).split(text_line.strip(BLANKS))
    if separator != "\t":  # A tab at either end means an empty field.
        text_line = text_line.strip(BLANKS)
    return [field_text.strip(BLANKS) for field_text in text_line.split(separator)]


def mark_fields(text_line: str, separator: str) -> str:
    """Return the line with `FIELD_MARK` between its fields."""
    return FIELD_MARK.join(split_fields(text_line, separator))


# --- records and lines --------------------------------------------------------------------------------------


def _open_csv_reader(lines: io.TextIOBase, delimiter: str) -> Any:
    """Return a reader of records that drops blanks before a field."""
    # As in DuckDB, a quotation mark after a blank opens a field: people write a, "b" by hand.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _open_text_lines(table_bytes: bytes) -> io.TextIOWrapper:
    """Return UTF-8 bytes as a stream of text lines."""
    return io.TextIOWrapper(io.BytesIO(table_bytes), "utf-8", newline="\n")


def _measure_lines(table_bytes: bytes) -> IntArray:
    """Return the number of bytes of each line, its end included."""
    return np.diff(np.flatnonzero(np.frombuffer(table_bytes, np.uint8) == ord("\n")), prepend=-1)


def refuse_long_line(line_number: int) -> InvalidInput:
    """Return the error of a line that is longer than a row may be."""
    return refuse(LONG_LINE_MESSAGE_AND_REMEDY[0], f"line {line_number:,}", LONG_LINE_MESSAGE_AND_REMEDY[1])


def _find_record_lines(
    table_bytes: bytes, separator: str, num_columns: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the first line and the number of lines of each record below the header, and the numbers of blank lines.

    In a table of one column a blank line is a record.
    """
    if b'"' not in table_bytes:  # a record is a line
        bytes_per_line = _measure_lines(table_bytes)
        line_numbers = np.arange(1, bytes_per_line.size + 1, dtype=np.int64)
        record_mask = (bytes_per_line > 1) | (num_columns == 1)
        first_line_numbers = line_numbers[record_mask][1:]
        return first_line_numbers, np.ones_like(first_line_numbers), line_numbers[~record_mask]
    record_starts_and_lengths, blank_line_numbers, last_line_number = [], [], 0
    csv_reader = _open_csv_reader(_open_text_lines(table_bytes), separator)
    with suppress(csv.Error):  # DuckDB has refused it
        for csv_record in csv_reader:
            if csv_record or num_columns == 1:
                record_starts_and_lengths.append(
                    (last_line_number + 1, csv_reader.line_num - last_line_number)
                )
            else:
                blank_line_numbers.append(last_line_number + 1)
            last_line_number = csv_reader.line_num
    first_line_numbers, lines_per_record = (
        np.array(record_starts_and_lengths[1:], dtype=np.int64).reshape(-1, 2).T
    )
    return first_line_numbers, lines_per_record, np.array(blank_line_numbers, dtype=np.int64)


def _note_long_records(first_lines: IntArray, lines_per_record: IntArray, table_notes: list[str]) -> None:
    """Add a note on records of several lines: a quotation mark for inches also opens a quotation.

    Args:
        first_lines: First line of each record.
        lines_per_record: Number of lines of each record.
        table_notes: List to which the note is added.
    """
    if num_long := int((lines_per_record > 1).sum()):
        rows_text = format_count(num_long, "row takes", "rows take")
        longest_text = f"the longest from line {first_lines[np.argmax(lines_per_record)]:,}"
        advice_text = "If that is wrong, double the marks inside fields."
        table_notes.append(f"{rows_text} several lines ({longest_text}). {advice_text}")


MAX_NAMES = 1_000_000
_LIST_DELIMITERS = ("::", "\t", "|", ";", ",")


def read_names(file_bytes: bytes) -> dict[str, str]:
    """Read a list of items: the name of each by its id.

    Args:
        file_bytes: Text with one item per line: its id as in the data, its name, and further fields, separated by
            ``::`` (MovieLens 1M and 10M), ``|`` (100K), tabs, semicolons or commas (20M).

    Returns:
        Names by id; a header line counts as a further item, which no row names.

    Raises:
        InvalidInput: It is not text, too long, or does not have two columns.
    """
    file_text, _, _ = decode(file_bytes)
    lines = [line for line in file_text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) > MAX_NAMES:
        raise refuse(f"the list has more than {MAX_NAMES:,} lines", remedy="Leave out items without ratings")
    # Later separators may be part of names, or between genres.
    delimiter_matches = [re.search("|".join(map(re.escape, _LIST_DELIMITERS)), line) for line in lines[:50]]
    delimiter_counts = Counter(match.group() if match else "," for match in delimiter_matches)
    best_delimiter = delimiter_counts.most_common(1)[0][0] if lines else ","
    rows_of_fields = [line.split(best_delimiter) for line in lines]
    if len(best_delimiter) == 1 and best_delimiter != "|":
        rows_of_fields = []
        with suppress(csv.Error):
            rows_of_fields = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=best_delimiter))
    full_rows = [fields for fields in rows_of_fields if len(fields) > 1]
    ids_with_names = [(fields[0].strip(), fields[1].strip()[:LONGEST_TASK_NAME]) for fields in full_rows]
    names_by_id = {item_id: item_name for item_id, item_name in ids_with_names if item_name}
    if len(names_by_id) < len(lines) / 2 or not names_by_id:
        remedy = "Bring one item a line, its id and its name, with a comma, a tab or :: between them"
        raise refuse("the list has no two columns", remedy=remedy)
    return names_by_id


def choose_names(
    ids: Sequence[str], names_by_id: Mapping[str, str] | None, is_private: bool, item_noun: str = "item"
) -> tuple[str, ...]:
    """Return the name of each item for a page: from the list, or else its id if the data are public, or a number.

    Items of the list have their name. Other items have their id if the data are public. In private data an id may be
    known to one user alone, so they have a number from 0.

    Args:
        ids: Ids of the items in the rows, `Dataset.task_names`.
        names_by_id: The public list, by id; None if there is none.
        is_private: True if the rows are private.
        item_noun: Word before a number.
    """
    default_names = [f"{item_noun} {item_index}" for item_index in range(len(ids))] if is_private else ids
    ids_with_defaults = zip(ids, default_names, strict=True)
    return tuple((names_by_id or {}).get(item_id, default) for item_id, default in ids_with_defaults)
