"""From the bytes of a file to a table of text cells whose file lines are known; and numbers out of text.

Nothing is coerced on reading: a user called "NA" stays a user. What is wrong with a file is said in
sentences that name its lines; cells that may hold a user id are never quoted.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpcore.checks import Problems
from dpcore.contributions import IntArray
from dpcore.errors import InvalidInput, Problem

MAX_BYTES = 200_000_000
"""Largest file that is read; reading takes up to about nine times its size in memory (measured)."""
MAX_COLUMNS = 1_000
"""Most columns a table may have."""
MAX_LINE_BYTES = 120_000
"""Longest line, below the 131,072 characters at which Python's csv module gives up on a field."""

BLANKS = " \t\n\r\v\f"
"""What is stripped from cells; a no-break space is not, as engines that count the same table keep it."""

_SNIFF_BYTES = 2 * MAX_LINE_BYTES
_SNIFF_RECORDS = 50
_DELIMITERS = "\t;|,"  # on a tie the one that seldom stands inside text comes first
_DELIMITER_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
_ASCII_SEPARATORS = "\x1f\x1e\x1d\x1c"

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
_ARCHIVES = ("archive", "workbook")

BoolArray = npt.NDArray[np.bool_]


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read: all cells text, stripped of surrounding blanks, nothing coerced.

    Attributes:
        frame: The cells, every column of text; a missing cell is the empty string.
        name: File name.
        encoding: Encoding the file was read in, as Python names it.
        delimiter: What stands between fields; empty where there is one column.
        first_row: File line of the first data row, counted from 1.
        notes: What a person should know of the reading, sentences.
        lines: File line on which each row starts, shape (rows,), int64; None where rows follow each other
            line by line from ``first_row``.
        header_line: File line on which the header starts, counted from 1.
        files: Where several files were joined: for each, its first row and its name.
    """

    frame: pd.DataFrame
    name: str
    encoding: str
    delimiter: str
    first_row: int
    notes: tuple[str, ...] = ()
    lines: IntArray | None = None
    header_line: int = 1
    files: tuple[tuple[int, str], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names from left to right."""
        return tuple(str(name) for name in self.frame.columns)

    def line(self, row: int) -> int:
        """File line, counted from 1, on which row ``row`` (counted from 0) starts."""
        return self.first_row + row if self.lines is None else int(self.lines[row])

    @property
    def all_lines(self) -> IntArray:
        """File line on which each row starts, shape (rows,)."""
        if self.lines is not None:
            return self.lines
        return np.arange(len(self.frame), dtype=np.int64) + self.first_row

    def place(self, row: int) -> str:
        """The place of a row in words; with the file where several were joined."""
        of = [name for first, name in self.files if first <= row]
        return f"line {self.line(row):,}" + (f" of {shown(of[-1])}" if of else "")


def read_table(content: bytes, name: str) -> Table:
    """Read a text table: encoding and delimiter are recognised, the first line must name the columns.

    Args:
        content: The file, at most `MAX_BYTES` bytes: UTF-8, UTF-16 or UTF-32, else Windows-1252, with
            fields between commas, semicolons, tabs or vertical bars, or one column.
        name: File name, for messages.

    Raises:
        InvalidInput: Not a text table, no header, more fields than columns ...; all problems at once.
    """
    _refuse_what_is_no_text(content)
    text, encoding, notes = _decoded(content)
    data, skipped, delimiter = _without_preamble(text)
    _refuse_long_lines(data, skipped)
    delimiter = delimiter if delimiter is not None else _sniffed_delimiter(data)
    separator = delimiter or next((s for s in _ASCII_SEPARATORS if s.encode() not in data), ",")
    header, header_lines = _header(data, separator)
    fields, starts = _structure(data, separator, skipped, len(header))

    problems = Problems()
    names = _column_names(header, skipped + 1, problems, notes)
    _check_fields(fields, starts, len(names), delimiter, problems, notes)
    first_row = skipped + header_lines + 1
    if not fields.size:
        problems.add(
            "the file has a header and no rows",
            f"line {skipped + 1}",
            "Add a row for each contribution (or each user, or each size)",
        )
    problems.raise_if_any()
    frame = _parsed(data, separator, names, int(starts[-1]))
    if len(frame) != fields.size:
        raise InvalidInput([Problem("the quotation marks in the file do not match", "", _QUOTES)])
    kept = _rows_with_content(frame, starts, notes)
    if kept is not None:
        frame, starts = frame[kept].reset_index(drop=True), starts[kept]
    _check_header_row(names, frame, starts, skipped + 1, problems, notes)
    problems.raise_if_any()
    plain = np.array_equal(starts, np.arange(starts.size) + first_row)
    return Table(
        frame, name, encoding, delimiter, first_row if plain else int(starts[0]), tuple(notes),
        None if plain else starts, skipped + 1,
    )  # fmt: skip


def table_of_cells(header: list[str], rows: list[list[str]], lines: IntArray, name: str) -> Table:
    """A table of cells that something else has read, such as a workbook, under the same checks.

    Args:
        header: Column names.
        rows: Cells as text, stripped; each row as long as the header.
        lines: Line (or row of the sheet) of the header and of each row, shape (rows + 1,).
        name: File name, for messages.

    Raises:
        InvalidInput: No header, no rows ...; all problems at once.
    """
    problems = Problems()
    notes: list[str] = []
    names = _column_names(header, int(lines[0]), problems, notes)
    if not rows:
        problems.add("there is a header and no rows", f"line {lines[0]}", "Add a row for each contribution")
    problems.raise_if_any()
    frame = pd.DataFrame(rows, columns=pd.Index(names), dtype=str)
    starts = lines[1:]
    kept = _rows_with_content(frame, starts, notes)
    if kept is not None:
        frame, starts = frame[kept].reset_index(drop=True), starts[kept]
    _check_header_row(names, frame, starts, int(lines[0]), problems, notes)
    problems.raise_if_any()
    return Table(frame, name, "", "", int(starts[0]), tuple(notes), starts, int(lines[0]))


def join_tables(tables: list[Table]) -> Table:
    """Tables of the same columns, in any order, one under the other; places then name the file.

    Raises:
        InvalidInput: The columns differ.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    refuse_other_columns([(table.name, table.columns) for table in tables])
    frame = pd.concat([table.frame[list(first.columns)] for table in tables], ignore_index=True)
    starts = np.concatenate([table.all_lines for table in tables])
    firsts = np.cumsum([0, *(len(table.frame) for table in tables[:-1])])
    return Table(
        frame,
        f"{first.name} and {len(tables) - 1} more",
        first.encoding,
        first.delimiter if len({table.delimiter for table in tables}) == 1 else "",
        first.first_row,
        tuple(f"{shown(table.name)}: {note}" for table in tables for note in table.notes),
        starts,
        first.header_line,
        tuple((int(at), table.name) for at, table in zip(firsts, tables, strict=True)),
    )


def refuse_other_columns(files: list[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse files whose columns are not those of the first, in whatever order."""
    problems = Problems()
    name, columns = files[0]
    for other, its in files[1:]:
        lacks, has = [c for c in columns if c not in its], [c for c in its if c not in columns]
        said = ([f"lacks column {shown(lacks[0])}{_and_more(len(lacks) - 1)}"] if lacks else []) + (
            [f"has column {shown(has[0])}{_and_more(len(has) - 1)}"] if has else []
        )
        if said:
            problems.add(
                f"the columns differ from those of {shown(name)}: this file {' and '.join(said)}",
                f"file {shown(other)}",
                "Choose files with the same columns",
            )
    problems.raise_if_any()


_QUOTES = "Check that every quotation mark that opens a field is closed, and doubled inside a field"
_SAVE_AS = "Save it as CSV (UTF-8) and choose that file"


def _refuse_what_is_no_text(content: bytes) -> None:
    if not content.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe"):
        what = "the file is empty" if not content else "the file holds nothing but blanks"
        raise InvalidInput([Problem(what, "", "Choose a file with a line of column names and rows under it")])
    if len(content) > MAX_BYTES:
        raise InvalidInput(
            [
                Problem(
                    f"the file has {len(content):,} bytes; at most {MAX_BYTES:,} are read into memory",
                    "",
                    "Reduce it first to one row per user with their count, or to a histogram (size, users)",
                )
            ]
        )
    kind = next((what for magic, what in _MAGIC if content.startswith(magic)), "")
    if content.startswith(b"PK\x03\x04"):
        kind = "an Excel workbook (XLSX)" if b"xl/" in content else "a ZIP archive"
    if kind:
        remedy = (
            "Unpack it and choose the CSV file inside" if kind.endswith(_ARCHIVES[:1]) else
            "Choose the CSV file itself" if kind.endswith(("picture", "document", "program")) else _SAVE_AS
        )  # fmt: skip
        raise InvalidInput([Problem(f"this is {kind}, not a table in text form", "", remedy)])
    head = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InvalidInput([Problem("this is a web page or XML, not a table in text form", "", _SAVE_AS)])
    if head.startswith((b"{", b"[{", b"[[")):
        raise InvalidInput([Problem("this looks like JSON, not like a table", "", _SAVE_AS)])


def encoding_by_marks(content: bytes) -> str:
    """Encoding told by a byte-order mark, or by zeros in every other byte; empty where neither tells."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return encoding
    head = np.frombuffer(content[:4096], np.uint8)
    even, odd = (float(np.mean(head[at::2] == 0)) if head[at::2].size else 0.0 for at in (0, 1))
    if odd > 0.3 and even < 0.02:
        return "utf-16-le"
    return "utf-16-be" if even > 0.3 and odd < 0.02 else ""


def _decoded(content: bytes) -> tuple[str, str, list[str]]:
    """Text with line ends as newlines, the encoding, and notes on it."""
    notes: list[str] = []
    encoding = encoding_by_marks(content) or "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if not encoding.startswith("utf-8"):
            what = f"the file looks like {encoding.upper()}, but byte {error.start + 1:,} does not fit"
            raise InvalidInput(
                [Problem(what, "", "It may have been cut off or damaged; save it as UTF-8")]
            ) from None
        at = content.count(b"\n", 0, error.start) + 1
        encoding = "cp1252"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            encoding = "latin-1"
            text = content.decode(encoding)
        shown = "Windows-1252" if encoding == "cp1252" else "Latin-1"
        notes.append(
            f"The file is not UTF-8 (first on line {at:,}), so it was read as {shown}; "
            f"if letters look wrong, save it as UTF-8."
        )
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    head = text[:65536]
    odd = sum(head.count(chr(code)) for code in (*range(9), *range(14, 32), 0x7F, 0xFFFD))
    if odd > 0.01 * len(head) and odd > 1:
        raise InvalidInput([Problem("the file holds binary data, not a table in text form", "", _SAVE_AS)])
    if "\0" in text:
        zero = text.index("\0")
        where = f"line {text.count(chr(10), 0, zero) + 1:,}"
        raise InvalidInput(
            [Problem("there is a NUL byte, which no text has", where, "The file is damaged; export it again")]
        )
    return text, "utf-16" if encoding.startswith("utf-16") else encoding, notes


def _without_preamble(text: str) -> tuple[bytes, int, str | None]:
    """UTF-8 without blank lines at the top and bottom; lines skipped; a delimiter named by ``sep=``."""
    lead = re.match(r"(?:[ \t]*\n)*", text)
    start = lead.end() if lead else 0
    delimiter = None
    hint = re.compile(r"sep=([,;|\t])[ \t]*\n", re.IGNORECASE).match(text, start)
    if hint:  # Excel's own first line
        start, delimiter = hint.end(), hint.group(1)
    skipped = text.count("\n", 0, start)
    body = text[start:].rstrip("\n")
    if not body.strip():
        raise InvalidInput([Problem("the file holds nothing but blanks", "", "Choose a file with rows")])
    # A lone surrogate can stand in UTF-16 only where Python already refused it; so this cannot fail.
    return (body + "\n").encode(), skipped, delimiter


def _refuse_long_lines(data: bytes, skipped: int) -> None:
    lengths = np.diff(_newlines(data), prepend=-1) - 1
    longest = int(lengths.max())
    if longest > MAX_LINE_BYTES:
        where = f"line {skipped + int(np.argmax(lengths > MAX_LINE_BYTES)) + 1:,}"
        raise InvalidInput(
            [
                Problem(
                    f"the line is longer than the {MAX_LINE_BYTES:,} bytes a row of a table may have",
                    where,
                    "Leave out columns of long text; user, value and task columns are enough",
                )
            ]
        )


def _newlines(data: bytes) -> IntArray:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def _sniffed_delimiter(data: bytes) -> str:
    """The delimiter under which the first records have as many fields as the header; empty for none."""
    head = data[:_SNIFF_BYTES]
    if len(data) > len(head):
        head = head[: head.rfind(b"\n") + 1]
    text = head.decode("utf-8", "ignore")
    best, best_score = "", (0.0, 0.0, 0)
    for delimiter in _DELIMITERS:
        counts: list[int] = []
        try:
            for record in csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter):
                if record:
                    counts.append(len(record))
                if len(counts) > _SNIFF_RECORDS:
                    break
        except csv.Error:
            pass  # judged by the records before the error; the structure pass names it
        if not counts:
            continue
        columns, rows = counts[0], counts[1:] or counts[:1]
        same = sum(n == columns for n in rows) / len(rows)
        several = sum(n > 1 for n in rows) / len(rows)
        # A header without the delimiter over rows that all have it: ragged, and to be called so.
        ragged = columns == 1 and several == 1.0 and len(set(rows)) == 1
        score = (same if columns > 1 else 0.0, several, columns)
        if ((columns > 1 and several >= 0.5) or ragged) and score > best_score:
            best, best_score = delimiter, score
    return best


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")


def _header(data: bytes, separator: str) -> tuple[list[str], int]:
    """The fields of the first record, and how many lines it takes."""
    records = csv.reader(_lines(data), delimiter=separator)
    try:
        return next(records), records.line_num
    except csv.Error:
        raise InvalidInput(
            [Problem("a quotation mark is opened and never closed", "line 1", _QUOTES)]
        ) from None


def _structure(data: bytes, separator: str, skipped: int, columns: int) -> tuple[IntArray, IntArray]:
    """Number of fields of each record under the header (0 for a blank line), and the line it starts on."""
    if b'"' not in data:  # a record is a line: count delimiters between newlines
        ends = _newlines(data)
        delimiters = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(separator))
        fields = np.diff(np.searchsorted(delimiters, ends), prepend=0) + 1
        fields[np.diff(ends, prepend=-1) == 1] = 0
        return fields[1:].astype(np.int64), np.arange(2, ends.size + 1, dtype=np.int64) + skipped
    counts, ends_at = [], []
    records = csv.reader(_lines(data), delimiter=separator)
    try:
        for record in records:
            counts.append(len(record))
            ends_at.append(records.line_num)
    except csv.Error:
        where = f"line {skipped + (ends_at[-1] if ends_at else 0) + 1:,}"
        raise InvalidInput([Problem("a quotation mark is opened and never closed", where, _QUOTES)]) from None
    starts = np.array(ends_at[:-1], dtype=np.int64) + 1 + skipped
    return np.array(counts[1:], dtype=np.int64), starts


def _column_names(header: list[str], line: int, problems: Problems, notes: list[str]) -> list[str]:
    names = [" ".join(cell.split()) for cell in header]
    if len(names) > MAX_COLUMNS:
        problems.add(
            f"there are {len(names):,} columns; at most {MAX_COLUMNS:,} are read",
            f"line {line}",
            "Keep the columns that say who, what and how much",
        )
        problems.raise_if_any()
    kinds = [_looks_like_data(cell) for cell in names if cell]
    strong = any(_is_header_word(cell) for cell in names)
    if not any(names) or (kinds and (all(kinds) or (any(kinds) and not strong))):
        problems.add(
            "there is no header row: the first line looks like data",
            f"line {line}",
            "Put a line of column names on top, such as user,value",
        )
    elif twice := [cell for cell, times in Counter(names).items() if times > 1 and cell]:
        which = " and ".join(str(k + 1) for k, cell in enumerate(names) if cell == twice[0])
        # Without a usual word the line may be no header, and its cells ids, which are not to be quoted.
        quoted = f' ("{shown(twice[0])}")' if strong else ""
        problems.add(
            f"columns {which} have the same name{quoted}{_and_more(len(twice) - 1)}",
            f"line {line}",
            "Give every column its own name",
        )
    unnamed = [at for at, cell in enumerate(names) if not cell]
    taken = set(names)
    for at in unnamed:
        names[at] = next(c for c in (f"column {at + 1}" + "'" * k for k in range(99)) if c not in taken)
    if unnamed and len(unnamed) < len(names):
        first = names[unnamed[0]]
        notes.append(
            f'A column without a name is called "{first}".' if len(unnamed) == 1 else
            f'{len(unnamed)} columns without a name are called "{first}" and so on.'
        )  # fmt: skip
    return names


def _check_fields(
    fields: IntArray, starts: IntArray, columns: int, delimiter: str, problems: Problems, notes: list[str]
) -> None:
    many = np.flatnonzero(fields > columns)
    if many.size:
        others = ", ".join(f"{starts[row]:,}" for row in many[1:3])
        also = f"; also line {others}" if others else ""
        total = f"; {many.size:,} lines in all" if many.size > 3 else ""
        problems.add(
            f"{fields[many[0]]} fields, but the header names {columns}{also}{total}",
            f"line {starts[many[0]]:,}",
            f"Put quotation marks around text (or numbers with decimal commas) that contains "
            f"{_DELIMITER_NAMES.get(delimiter, 'the delimiter')}, or add the missing column names",
        )
    few = np.flatnonzero((fields < columns) & (fields > 0))
    if few.size:
        lines = f"{few.size:,} lines have" if few.size > 1 else "One line has"
        notes.append(
            f"{lines} fewer fields than the header (first: line {starts[few[0]]:,}); "
            "the cells that are not there count as missing."
        )


def _parsed(data: bytes, separator: str, names: list[str], last_line: int) -> pd.DataFrame:
    """The cells under the header, as text. Field counts are checked before, so nothing can be cut off."""
    try:
        frame = pd.read_csv(
            io.BytesIO(data), sep=separator, header=0, names=list(range(len(names))), dtype=str,
            na_filter=False, keep_default_na=False, skip_blank_lines=False, index_col=False, engine="c",
            encoding="utf-8",
        )  # fmt: skip
    except pd.errors.ParserError:
        # Counted fields leave it one complaint: the end of the file inside quotes, hence in the last record.
        where = f"line {last_line:,}"
        raise InvalidInput([Problem("a quotation mark is opened and never closed", where, _QUOTES)]) from None
    stripped: pd.DataFrame = frame.apply(lambda column: column.str.strip(BLANKS))
    stripped.columns = pd.Index(names)
    return stripped


def _rows_with_content(frame: pd.DataFrame, starts: IntArray, notes: list[str]) -> BoolArray | None:
    """Rows that hold anything, where some hold nothing; in one column a blank row is a missing cell."""
    if frame.shape[1] == 1:
        return None
    blank = np.ones(len(frame), bool)
    for at in range(frame.shape[1]):
        blank &= (frame.iloc[:, at] == "").to_numpy(bool)
        if not blank.any():
            return None
    if blank.all():
        raise InvalidInput(
            [Problem("all rows under the header are blank", f"line {starts[0]:,}", "Choose a file with rows")]
        )
    rows = np.flatnonzero(blank)
    count = "One blank row was" if rows.size == 1 else f"{rows.size:,} blank rows were"
    notes.append(f"{count} left out (first: line {starts[rows[0]]:,}).")
    return ~blank


def _check_header_row(
    names: list[str], frame: pd.DataFrame, starts: IntArray, line: int, problems: Problems, notes: list[str]
) -> None:
    """Say where the header comes again among the rows, or looks like a row itself."""
    if len(names) > 20:
        return
    again = [(frame.iloc[:, at] == name).to_numpy(bool) for at, name in enumerate(names)]
    whole = np.logical_and.reduce(again)
    strong = any(_is_header_word(name) for name in names)
    if whole.any() and len(names) > 1:
        rows = np.flatnonzero(whole)
        problems.add(
            f"the header row stands among the data again{_and_more(rows.size - 1)}",
            f"line {starts[rows[0]]:,}",
            "Remove it (were several files joined, or is there no header?)",
        )
        return
    if strong:
        return
    seen = [bool(rows.any()) for rows in again]
    numbered = [_same_shape(name, frame.iloc[:50, at]) for at, name in enumerate(names)]
    if all(s or n for s, n in zip(seen, numbered, strict=True)) or any(numbered):
        problems.add(
            "there is no header row: the first line looks like data, as the same cells stand below it",
            f"line {line}",
            "Put a line of column names on top, such as user,value",
        )
    elif any(seen):
        notes.append(
            f"The name of column {seen.index(True) + 1} also stands among its rows: "
            "check that the first line holds column names."
        )


def _same_shape(name: str, cells: pd.Series) -> bool:
    """Whether a name with digits, such as u17, is built like nearly all cells below it, such as u203."""
    if not re.search(r"[0-9]", name) or name.startswith("column "):
        return False
    shape = re.sub(r"[0-9]+", "0", name)
    alike = [re.sub(r"[0-9]+", "0", str(cell)) == shape for cell in cells]
    return bool(alike) and sum(alike) >= 0.8 * len(alike)


_DATA_LIKE = re.compile(
    r"[+-]?[0-9][0-9.,' ]*(?:[eE][+-]?[0-9]+)?|[+-]?[.,][0-9]+|nan|-?inf"  # numbers
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[ T].*)?"  # dates
    r"|[^@\s]+@[^@\s]+\.[a-z]+"  # mail addresses
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_HEADER_WORDS = word_set(
    """
    id uid user users customer customers client clients author authors account session member patient person
    email count counts n rows size sizes contributions value values amount price rating score total task tasks
    product item category group date time timestamp day month year name country index
    """
)


def _looks_like_data(cell: str) -> bool:
    return _DATA_LIKE.fullmatch(cell) is not None


def _is_header_word(cell: str) -> bool:
    return not re.search(r"[0-9]", cell) and any(word in _HEADER_WORDS for word in name_words(cell))


def name_words(name: str) -> tuple[str, ...]:
    """The words of a column name in lower case: ``CustomerID`` is ``customer``, ``id``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", split.lower()))


def shown(name: str) -> str:
    """A column name short enough for a sentence."""
    return name if len(name) <= 60 else name[:57] + "..."


def _and_more(count: int) -> str:
    return f" (and {count:,} more)" if count > 0 else ""
