"""Text out of the bytes of a file, and delimited text: its records, their lines, and its cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import InputProblem, InvalidInput, refuse
from dpcore.contributions import IntArray
from dpcore.data.column_names import MOST_TITLES, is_header_word, looks_like_data

MAX_BYTES = 200_000_000
"""Largest file that is read; reading takes up to about nine times its size in memory (measured)."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow (Feather) file"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook or another Office document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x7fELF", "a program"),
)
CONTROL_DELIMITERS = "\x01\x1c\x1d\x1e\x1f"
"""Control characters that may separate fields; Hive writes the first."""
_SAVE_AS = "Save it as CSV (UTF-8) and choose that file"


def is_blank(content: bytes) -> bool:
    """Return True if the bytes are only blanks and byte-order marks, in any encoding."""
    return not content.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe")


def check_text(content: bytes) -> None:
    """Raise InvalidInput if the content is empty, too large, or by its first bytes not a text table."""
    if is_blank(content):
        message = "the file is empty" if not content else "the file holds nothing but blanks"
        raise refuse(message, remedy="Choose a file with a line of column names and rows under it")
    if len(content) > MAX_BYTES:
        raise refuse(
            f"the file has {len(content):,} bytes; at most {MAX_BYTES:,} are read into memory",
            remedy="Reduce it first to one row per user with their count, or to a histogram (size, users)",
        )
    content_name = next((format_name for magic, format_name in _MAGIC if content.startswith(magic)), "")
    if content.startswith(b"PK\x03\x04"):
        content_name = "an Excel workbook (XLSX)" if b"xl/" in content else "a ZIP archive"
    if content_name:
        remedy = (
            "Unpack it and choose the CSV file inside" if content_name.endswith("archive") else
            "Choose the CSV file itself" if content_name.endswith(("picture", "document", "program")) else _SAVE_AS
        )  # fmt: skip
        raise refuse(f"this is {content_name}, not a table in text form", remedy=remedy)
    head = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise refuse("this is a web page or XML, not a table in text form", remedy=_SAVE_AS)
    if head.startswith((b"{", b"[{", b"[[")):
        raise refuse("this looks like JSON, not like a table", remedy=_SAVE_AS)


def detect_encoding(content: bytes) -> str:
    """Detect the encoding from a byte-order mark, or from zeros in every other byte; empty if neither helps."""
    for encoding, *marks in (  # UTF-32 first, as its mark begins with that of UTF-16
        ("utf-8-sig", codecs.BOM_UTF8),
        ("utf-32", codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
        ("utf-16", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    ):
        if content.startswith(tuple(marks)):
            return encoding
    head = np.frombuffer(content[:4096], np.uint8)
    even, odd = (float(np.mean(head[offset::2] == 0)) if head[offset::2].size else 0.0 for offset in (0, 1))
    if odd > 0.3 and even < 0.02:
        return "utf-16-le"
    return "utf-16-be" if even > 0.3 and odd < 0.02 else ""


def decode(content: bytes) -> tuple[str, str, list[str]]:
    """Decode the content; return the text with newlines as line ends, the encoding, and notes."""
    notes: list[str] = []
    encoding = detect_encoding(content) or "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if not encoding.startswith("utf-8"):
            message = f"the file looks like {encoding.upper()}, but byte {error.start + 1:,} does not fit"
            raise refuse(message, remedy="It may have been cut off or damaged; save it as UTF-8") from None
        line_number = content.count(b"\n", 0, error.start) + 1
        encoding, encoding_name = "cp1252", "Windows-1252"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            encoding, encoding_name = "latin-1", "Latin-1"
            text = content.decode(encoding)
        sentence = f"The file is not UTF-8 (first on line {line_number:,}), so it was read as {encoding_name}"
        notes.append(f"{sentence}; if letters look wrong, save it as UTF-8.")
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\n\ufeff", "\n")  # files with byte-order marks were joined
    head = text[:65536]
    header = next((line for line in head.split("\n") if line.strip() and not line.startswith("#")), "")
    separators = set(header) & set(CONTROL_DELIMITERS)
    controls = {*range(9), *range(14, 32), 0x7F, 0xFFFD} - set(map(ord, separators))
    odd = sum(head.count(chr(code)) for code in controls)
    if odd > 0.01 * len(head) and odd > 1:
        raise refuse("the file holds binary data, not a table in text form", remedy=_SAVE_AS)
    if "\0" in text:
        zero = text.index("\0")
        location = f"line {text.count(chr(10), 0, zero) + 1:,}"
        raise refuse(
            "there is a NUL byte, which no text has", location, "The file is damaged; export it again"
        )
    return text, "utf-16" if encoding.startswith("utf-16") else encoding, notes


_COMMENTS = re.compile(r"(?:#[^\n]*\n|[ \t]*\n)+")
_MARKS = ("\t", ";", "|", ",")


def _comments(text: str, start: int, delimiter: str | None) -> int:
    """Return the length of the comment lines above the header: lines that begin with #, and blanks between them.

    The header itself may begin with #, as in ``#user,value``: if the last such line has as many fields as the line
    below it, and that line has no column names. In one column this cannot be decided, so all lines are read.
    """
    comments = _COMMENTS.match(text, start)
    if comments is None:
        return 0
    header = text[comments.end() :].partition("\n")[0]
    marks = [mark for mark in ([delimiter] if delimiter else _MARKS) if mark in header]
    if not marks:
        return 0
    lines = comments.group().splitlines(keepends=True)
    last_comment = max(index for index, line in enumerate(lines) if line.startswith("#"))
    cells = [cell.strip(' "') for cell in header.split(marks[0])]
    has_names = any(map(is_header_word, cells)) and not any(map(looks_like_data, cells))
    if not has_names and any(lines[last_comment].count(mark) == header.count(mark) for mark in marks):
        return sum(map(len, lines[:last_comment]))
    return comments.end() - start


def strip_preamble(text: str) -> tuple[bytes, int, str | None]:
    """Return UTF-8 without blank lines and comments at the top, the skipped lines, and a ``sep=`` delimiter."""
    lead = re.match(r"(?:[ \t]*\n)*", text)
    start = lead.end() if lead else 0
    delimiter = None
    hint = re.compile(r"sep=([^\w\s\"']|[ \t\x01\x1c-\x1f])[ \t]*\n", re.IGNORECASE).match(text, start)
    if hint:  # Excel's own first line
        start, delimiter = hint.end(), hint.group(1)
    start += _comments(text, start, delimiter)
    skipped = text.count("\n", 0, start)
    body = text[start:].rstrip("\n")
    if not body.strip():
        raise refuse("the file holds nothing but blanks", remedy="Choose a file with rows")
    # Python has already refused lone surrogates in UTF-16, so this cannot fail.
    return (body + "\n").encode(), skipped, delimiter


MAX_LINE_BYTES = 120_000
"""Longest line, below the limit of 131,072 characters of a field in Python's csv module."""

BLANKS = " \t\n\r\v\f"
"""Characters that are stripped from cells; no-break spaces are kept, as engines keep them, too."""

_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?")
_RUN = re.compile(r"[ \t\r\v\f]+")
_SNIFF_BYTES = 2 * MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_DELIMITERS = "\t;|,"  # on a tie the delimiter that is rarer inside text wins
_OTHER_DELIMITERS = CONTROL_DELIMITERS + "^~#!:&%=*@$"
"""Tried if none of the usual ones fits. A blank is not included, as names may consist of several words."""
DELIMITER_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
SPACED = {" +": "blanks", "::": "double colons"}
"""Further separators if every line has equally many: one or more blanks (`` +``), or ``::``."""
SEPARATOR_NAMES = {**SPACED, "\t": "tabs"}
"""Separators of text whose lines are rewritten: `SPACED`, or tabs without column names (`has_unnamed_tabs`)."""
FIELD_MARK = "\x1f"
"""Separator of rewritten lines (`mark_fields`); it occurs in no text."""
ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"


LONG_LINE = (
    f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
    "Leave out columns of long text; user, value and task columns are enough",
)
QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"


def refuse_long_lines(data: bytes, skipped: int) -> None:
    """Raise InvalidInput if a line is longer than a row of a table may be."""
    lengths = np.diff(_newlines(data), prepend=-1) - 1
    longest = int(lengths.max())
    if longest > MAX_LINE_BYTES:
        raise InvalidInput([describe_long_line(skipped + int(np.argmax(lengths > MAX_LINE_BYTES)) + 1)])


def describe_long_line(line: int) -> InputProblem:
    """Describe a line that is longer than a row may be, as a problem."""
    message, remedy = LONG_LINE
    return InputProblem(message, f"line {line:,}", remedy)


def _newlines(data: bytes) -> IntArray:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def sniff_delimiter(data: bytes) -> str:
    """Detect the delimiter under which the first records have as many fields as the header; empty for none."""
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    text = head.decode("utf-8", "ignore")
    best, best_score = "", (0.0, 0.0, 0)
    for delimiter in _DELIMITERS:
        counts = [len(record) for record in _first_records(text, delimiter)]
        if not counts:
            continue
        columns, rows = counts[0], counts[1:] or counts[:1]
        same = sum(n == columns for n in rows) / len(rows)
        several = sum(n > 1 for n in rows) / len(rows)
        # A header without the delimiter above rows that all have it: a ragged table, which later gets a message.
        ragged = columns == 1 and several == 1.0 and len(set(rows)) == 1
        score = (same if columns > 1 else 0.0, several, columns)
        if ((columns > 1 and several >= 0.5) or ragged) and score > best_score:
            best, best_score = delimiter, score
    if best_score[0]:
        return best
    return next((candidate for candidate in _OTHER_DELIMITERS if _fits(text, candidate)), best)


def find_names_below_title(data: bytes) -> int:
    """Return the line of column names if a title with fewer fields is above it; else 0.

    It is such a line if every line below has as many fields, no name looks like data, and half of the names have a
    header word.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    for delimiter in _DELIMITERS:
        reader = _reader(io.StringIO(head.decode("utf-8", "ignore"), newline="\n"), delimiter)
        records: list[tuple[int, list[str]]] = []
        with suppress(csv.Error):  # judged by the records before the error
            for record in reader:
                if any(cell.strip(BLANKS) for cell in record):
                    records.append((reader.line_num, record))
                if len(records) > _SNIFF_RECORDS:
                    break
        title = len(records[0][1]) if records else 0
        num_titles = next((index for index, (_, cells) in enumerate(records) if len(cells) > title), 0)
        if not 0 < num_titles < len(records) - 1 or num_titles > MOST_TITLES:
            continue
        (line, cells), *further_records = records[num_titles:]
        names = [" ".join(cell.split()) for cell in cells]
        num_header_words = sum(map(is_header_word, names))
        if (
            all(names)
            and 2 * num_header_words >= len(names)
            and not any(map(looks_like_data, names))
            and {len(record) for _, record in further_records} == {len(names)}
        ):
            return line
    return 0


def sniff_spacing(data: bytes) -> str:
    """Detect the separator of `SPACED` that all first lines have equally often, with a column of numbers; else empty.

    Lines of names may also have equally many words, but no column of numbers.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return ""
    for split in reversed(SPACED):
        rows = [split_fields(line, split) for line in lines]
        if (
            len(rows[0]) > 1
            and len(set(map(len, rows))) == 1
            and any(map(_numeric, zip(*rows[1:], strict=True)))
        ):
            return split
    return ""


def has_unnamed_tabs(data: bytes) -> bool:
    """Return True if tab-separated text has no column names, like ``u.data`` of MovieLens 100K.

    The conditions: no quotation mark, at least three columns, at least one column of numbers including its first cell,
    and no header word in the first line. Names may be consecutive numbers, such as years; first cells of data are not.
    """
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    lines = [line for line in head.decode("utf-8", "ignore").split("\n") if line.strip(BLANKS)]
    if b'"' in head or len(lines) < 2:
        return False
    first, *rows = [split_fields(line, "\t") for line in lines]
    if len(first) < 3 or {len(row) for row in rows} != {len(first)} or any(map(is_header_word, first)):
        return False
    integers = [int(cell) for cell in first if re.fullmatch(r"[0-9]{1,18}", cell)]
    counting_up = len(integers) > 1 and set(np.diff(integers)) == {1}
    return not counting_up and not names_columns(first, rows)


def split_fields(line: str, split: str) -> list[str]:
    """Split a line into fields by a separator of `SEPARATOR_NAMES`, without blanks around them."""
    if split == "\t":  # A tab at either end means an empty field.
        return [field.strip(BLANKS) for field in line.split(split)]
    line = line.strip(BLANKS)
    return _RUN.split(line) if split == " +" else [field.strip(BLANKS) for field in line.split(split)]


def mark_fields(line: str, split: str) -> str:
    """Return the line with `FIELD_MARK` between its fields."""
    return FIELD_MARK.join(split_fields(line, split))


def names_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first line has names: no column has only numbers including its first cell."""
    return not any(
        _numeric([name, *column]) for name, column in zip(header, zip(*rows, strict=True), strict=True)
    )


def _numeric(cells: Iterable[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells)


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    """Return the header and the first records that are not blank."""
    rows: list[list[str]] = []
    try:
        for record in _reader(io.StringIO(text, newline="\n"), delimiter):
            if record:
                rows.append(record)
            if len(rows) > _SNIFF_RECORDS:
                break
    except csv.Error:
        pass  # judged by the records before the error; the structure pass names it
    return rows


def _fits(text: str, delimiter: str) -> bool:
    """Return True if under this delimiter every record has as many fields as the header, more than one."""
    header, *records = _first_records(text, delimiter) or [[]]
    has_names = len(header) > 1 and all(cell.strip() for cell in header)
    return has_names and bool(records) and all(len(record) == len(header) for record in records)


def _reader(lines: io.TextIOBase, delimiter: str) -> Any:
    # As in DuckDB, a quotation mark after a blank opens a field: people write a, "b" by hand.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")


def read_first_record(data: bytes, separator: str) -> list[str]:
    """Read the fields of the first record."""
    try:
        cells: list[str] = next(_reader(_lines(data), separator))
        return cells
    except csv.Error:
        raise refuse("a quotation mark is opened and never closed", "line 1", QUOTES) from None


def find_record_lines(data: bytes, separator: str, columns: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for the records below the header, their first lines, their numbers of lines, and the blank lines.

    In a table of one column a blank line is a record.
    """
    if b'"' not in data:  # a record is a line
        lengths = np.diff(_newlines(data), prepend=-1)
        lines = np.arange(1, lengths.size + 1, dtype=np.int64)
        is_record = (lengths > 1) | (columns == 1)
        return lines[is_record][1:], np.ones(int(is_record.sum()) - 1, np.int64), lines[~is_record]
    spans, blank, last_line = [], [], 0
    records = _reader(_lines(data), separator)
    try:
        for record in records:
            if record or columns == 1:
                spans.append((last_line + 1, records.line_num - last_line))
            else:
                blank.append(last_line + 1)
            last_line = records.line_num
    except csv.Error:
        pass  # DuckDB has refused it
    starts, lengths = np.array(spans[1:], dtype=np.int64).reshape(-1, 2).T
    return starts, lengths, np.array(blank, dtype=np.int64)


def note_long_records(starts: IntArray, lengths: IntArray, notes: list[str]) -> None:
    """Add a note on records of several lines: a quotation mark for inches also opens a quotation.

    Args:
        starts: First line of each record.
        lengths: Number of lines of each record.
        notes: List to which the note is added.
    """
    long = np.flatnonzero(lengths > 1)
    if long.size:
        rows = wording.counted(long.size, "row takes", "rows take")
        longest = int(np.argmax(lengths))
        notes.append(
            f"{rows} several lines, by quotation marks (at most {lengths[longest]:,}, from line {starts[longest]:,}). "
            "If that is wrong, double these marks inside quoted fields."
        )
