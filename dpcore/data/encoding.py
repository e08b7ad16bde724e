"""Decoding the bytes of a file to text: detection of its encoding, and of files that are not text."""

from __future__ import annotations

import codecs
import re

import numpy as np

from dpcore.common.checks import refuse
from dpcore.data.column_names import is_header_word, looks_like_data

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
