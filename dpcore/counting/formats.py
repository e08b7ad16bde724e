"""The bytes of files: in memory or in a folder, packed or not, what their beginning says, and the text in them."""

from __future__ import annotations

import codecs
import datetime
import functools
import gzip
import io
import itertools
import re
import stat
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import numpy as np

from dpcore.common.checks import FULL_DISK_PROBLEM, InputProblem, InvalidInput, is_full_disk, refuse
from dpcore.data.column_names import shorten
from dpcore.data.tables import FileKind

MEMORY_SCHEME = "held"
_file_counter = itertools.count()


class MemoryFile:
    """A file in memory, with the methods of `pathlib.Path` that reading needs.

    Args:
        content: The bytes of the file.
    """

    name = "file"

    def __init__(self, file_bytes: bytes) -> None:
        self.content = file_bytes
        self._address = f"{MEMORY_SCHEME}://{next(_file_counter)}"
        _memory_files[self._address] = self

    def __str__(self) -> str:
        return self._address

    def open(self, _mode: str = "rb") -> IO[bytes]:
        """Return the content as a binary stream."""
        return io.BytesIO(self.content)

    def stat(self) -> Any:
        """Return the size and a constant time, as the file never changes."""
        return SimpleNamespace(st_size=len(self.content), st_mtime_ns=0, st_mode=stat.S_IFREG)


File = Path | MemoryFile
_memory_files: weakref.WeakValueDictionary[str, MemoryFile] = weakref.WeakValueDictionary()


@functools.cache
def build_memory_file_system() -> Any:
    """Return the fsspec file system of all files in memory, through which DuckDB reads them."""
    import fsspec

    class _MemoryFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
        """The fsspec file system of the files in memory."""

        protocol, cachable = MEMORY_SCHEME, False

        def _open(self, path: str, **_options: Any) -> IO[bytes]:
            """Open a file in memory as a binary stream."""
            return self._find_file(path).open()

        def info(self, path: str, **_options: Any) -> dict[str, Any]:
            """Return the name, the size in bytes and the type of a file."""
            return {"name": path, "size": len(self._find_file(path).content), "type": "file"}

        def glob(self, path: str, **_options: Any) -> list[str]:
            """Return the path itself without its scheme, as no path is a pattern."""
            return [self._strip_protocol(path)]

        def modified(self, _path: str) -> datetime.datetime:
            """Return a constant time, as the files never change."""
            return datetime.datetime.fromtimestamp(0)

        def _find_file(self, path: str) -> MemoryFile:
            """Return the file in memory of a path with or without the scheme; raise KeyError if it is gone."""
            return _memory_files[f"{MEMORY_SCHEME}://{self._strip_protocol(path)}"]

    return _MemoryFileSystem()


def describe_file(display_name: str) -> str:
    """Return the location text of a problem of a whole file."""
    return f"file {shorten(display_name)}"


# --- the format ---------------------------------------------------------------------------------------------

DECRYPT_REMEDY = "Write it without encryption, or decrypt it first"
HEAD_BYTES = 262_144
"""Bytes of a file that are read to detect its format."""
# A Zstandard file may begin with a skippable frame, as pzstd writes it.
_SKIPPED_FRAME_PATTERN = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")


@dataclass(frozen=True)
class FileStart:
    """The beginning of a file, and the format that it shows.

    Attributes:
        kind: Format of the uncompressed content.
        packing: ``gzip`` or ``zstd`` if it is compressed, else empty.
        content: The first uncompressed bytes, at most `HEAD_BYTES`.
        is_complete: True if these are all bytes.
    """

    kind: FileKind
    packing: str
    content: bytes
    is_complete: bool

    @property
    def is_json_array(self) -> bool:
        """Return True if the file is one JSON array, not an object per line."""
        return self.kind is FileKind.JSON and _skip_blanks(self.content).startswith(b"[")


def _skip_blanks(file_bytes: bytes) -> bytes:
    """Return the content without a UTF-8 byte-order mark and blanks at its beginning."""
    return file_bytes.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")


def read_start(path: File, display_name: str) -> FileStart:
    """Read the beginning of a file, and detect its format.

    Raises:
        InvalidInput: It cannot be read or unpacked.
    """
    with _refuse_unreadable(display_name):
        file_mode = path.stat().st_mode
        if not (stat.S_ISREG(file_mode) or stat.S_ISDIR(file_mode)):
            raise refuse(
                "a pipe or a device cannot be read twice", describe_file(display_name), "Copy it to a file"
            )
        with path.open("rb") as binary_stream:
            magic_bytes = binary_stream.read(8)
    packing = "gzip" if magic_bytes.startswith(b"\x1f\x8b") else ""
    if magic_bytes.startswith(b"\x28\xb5\x2f\xfd") or _SKIPPED_FRAME_PATTERN.match(magic_bytes):
        packing = "zstd"
    if magic_bytes.startswith(b"PARE"):
        raise refuse("the Parquet file is encrypted", describe_file(display_name), DECRYPT_REMEDY)
    if magic_bytes.startswith(b"PAR1"):
        return FileStart(FileKind.PARQUET, packing, magic_bytes, False)
    with open_plain_bytes(path, packing, display_name) as plain_stream:
        start_bytes = _read_up_to(plain_stream, HEAD_BYTES + 1)
    is_complete, start_bytes = len(start_bytes) <= HEAD_BYTES, start_bytes[:HEAD_BYTES]
    if start_bytes.startswith(b"PAR1") and packing:
        raise refuse("this is a compressed Parquet file", describe_file(display_name), "Unpack it")
    if start_bytes.startswith(b"PK\x03\x04") and not packing and _is_workbook(path, start_bytes):
        return FileStart(FileKind.WORKBOOK, packing, start_bytes, is_complete)
    json_match = re.match(rb"\{|\[\s*[{\]]", _skip_blanks(start_bytes))
    return FileStart(FileKind.JSON if json_match else FileKind.TEXT, packing, start_bytes, is_complete)


def read_small(file: File, file_start: FileStart, max_bytes: int, display_name: str) -> bytes | None:
    """Return all uncompressed bytes, or None if they are more than ``max_bytes`` and than the beginning of the file."""
    if file_start.is_complete:
        return file_start.content
    with open_plain_bytes(file, file_start.packing, display_name) as plain_stream:
        plain_bytes = _read_up_to(plain_stream, max_bytes + 1)
    return plain_bytes if len(plain_bytes) <= max_bytes else None


@contextmanager
def _refuse_unreadable(display_name: str) -> Iterator[None]:
    """Raise InvalidInput within this context in place of OSError."""
    try:
        yield
    except OSError as error:
        open_message = f"it cannot be opened: {error.strerror}"
        raise refuse(
            open_message, describe_file(display_name), "Check the path and your rights to read it"
        ) from None


def _is_workbook(file: File, start_bytes: bytes) -> bool:
    """Return True if a ZIP archive has Excel's folder; if it is damaged, judge by the bytes of its beginning."""
    try:
        with file.open("rb") as stream, zipfile.ZipFile(stream) as zip_archive:
            return any(member_name.startswith("xl/") for member_name in zip_archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return b"xl/" in start_bytes  # a damaged workbook, which is reported as such


@contextmanager
def open_plain_bytes(file: File, packing: str, display_name: str) -> Iterator[IO[bytes]]:
    """Open the uncompressed bytes of a file as a stream; raise InvalidInput if it turns out to be damaged."""
    import pyarrow as pa

    with _refuse_unreadable(display_name):
        packed_stream = file.open("rb")
    with packed_stream:
        try:
            if packing == "gzip":
                yield cast(IO[bytes], gzip.GzipFile(fileobj=packed_stream))
            elif packing:
                python_file = pa.PythonFile(packed_stream, mode="r")
                yield io.BufferedReader(pa.CompressedInputStream(python_file, packing))
            else:
                yield packed_stream
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            if is_full_disk(error):  # raised by code that writes inside this context
                raise InvalidInput([FULL_DISK_PROBLEM]) from None
            if packing:
                raise InvalidInput([describe_damaged_archive(packing, display_name)]) from None
            raise refuse(
                "it cannot be read to its end", describe_file(display_name), "Export it again"
            ) from None


def describe_damaged_archive(packing: str, display_name: str) -> InputProblem:
    """Describe a compressed file that cannot be unpacked to its end, as a problem."""
    damage_message = f"the {'Zstandard' if packing == 'zstd' else packing} file is damaged or cut off"
    return InputProblem(damage_message, describe_file(display_name), "Copy or export it again")


def _read_up_to(stream: IO[bytes], num_bytes: int) -> bytes:
    """Read up to ``num_bytes`` bytes; return fewer only at the end of the stream."""
    byte_blocks, num_missing_bytes = [], num_bytes
    while num_missing_bytes and (byte_block := stream.read(num_missing_bytes)):
        byte_blocks.append(byte_block)
        num_missing_bytes -= len(byte_block)
    return b"".join(byte_blocks)


def open_lines(stream: IO[bytes], num_skipped_lines: int = 0, newline: str | None = "\n") -> io.TextIOWrapper:
    """Return a stream of UTF-8 as a stream of text lines, behind this number of skipped ones."""
    line_stream = io.TextIOWrapper(stream, "utf-8-sig", newline=newline)
    for _ in range(num_skipped_lines):
        line_stream.readline()
    return line_stream


# --- text ---------------------------------------------------------------------------------------------------

MAX_BYTES = 200_000_000
"""Largest text that is read into memory, which takes up to about nine times its size (measured)."""
MAX_LINE_BYTES = 120_000
"""Longest line, below the limit of 131,072 characters of a field in Python's csv module."""
CONTROL_DELIMITERS = "\x01\x1c\x1d\x1e\x1f"
"""Control characters that may separate fields; Hive writes the first."""
_FORMAT_NAMES_BY_MAGIC = {
    b"\x89PNG": "a PNG picture",
    b"%PDF": "a PDF document",
    b"\x1f\x8b": "a gzip archive",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow (Feather) file",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook or another Office document",
}
SAVE_AS_CSV_REMEDY = "Save it as CSV (UTF-8) and choose that file"
SAVE_AS_UTF_8_REMEDY = "It may be cut off or damaged; save it as UTF-8"
IF_LETTERS_WRONG_TEXT = "; if letters look wrong, save it as UTF-8."


def is_blank(start_bytes: bytes) -> bool:
    """Return True if the bytes are only blanks and byte-order marks, in any encoding."""
    return not start_bytes.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe")


def check_text(file_bytes: bytes) -> None:
    """Raise InvalidInput if the content is empty, too large, or by its first bytes not a text table."""
    if is_blank(file_bytes):
        size_message = "the file holds nothing but blanks" if file_bytes else "the file is empty"
        raise refuse(size_message, remedy="Choose a file with column names and rows")
    if len(file_bytes) > MAX_BYTES:
        size_message = f"the file has {len(file_bytes):,} bytes; at most {MAX_BYTES:,} are read into memory"
        raise refuse(size_message, remedy="Reduce it to counts per user")
    magic_bytes = next(filter(file_bytes.startswith, _FORMAT_NAMES_BY_MAGIC), b"")
    format_phrase = _FORMAT_NAMES_BY_MAGIC.get(magic_bytes, "")
    if file_bytes.startswith(b"PK\x03\x04"):
        format_phrase = "an Excel workbook (XLSX)" if b"xl/" in file_bytes else "a ZIP archive"
    if format_phrase:
        is_archive = format_phrase.endswith("archive")
        format_remedy = "Unpack it and choose the CSV file inside" if is_archive else SAVE_AS_CSV_REMEDY
        raise refuse(f"this is {format_phrase}, not a table in text form", remedy=format_remedy)
    lowercase_start = file_bytes[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if lowercase_start.startswith((b"<!doctype", b"<html", b"<?xml", b"{", b"[{", b"[[")):
        raise refuse("this is a web page, XML or JSON, not a table in text form", remedy=SAVE_AS_CSV_REMEDY)


def detect_encoding(file_bytes: bytes) -> str:
    """Return the encoding that a byte-order mark, or zeros in every other byte, show; empty if neither does."""
    for detected_encoding, *byte_order_marks in (  # UTF-32 first, as its mark begins with that of UTF-16
        ("utf-8-sig", codecs.BOM_UTF8),
        ("utf-32", codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
        ("utf-16", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    ):
        if file_bytes.startswith(tuple(byte_order_marks)):
            return detected_encoding
    byte_codes = np.frombuffer(file_bytes[:4096], np.uint8)
    even_zero_share, odd_zero_share = (
        np.count_nonzero(byte_codes[offset::2] == 0) / max(byte_codes[offset::2].size, 1) for offset in (0, 1)
    )
    if odd_zero_share > 0.3 and even_zero_share < 0.02:
        return "utf-16-le"
    return "utf-16-be" if even_zero_share > 0.3 and odd_zero_share < 0.02 else ""


def decode(file_bytes: bytes) -> tuple[str, str, list[str]]:
    """Decode the content; return the text with newlines as line ends, Python's name of the encoding, and notes."""
    decoding_notes: list[str] = []
    encoding = detect_encoding(file_bytes) or "utf-8"
    try:
        decoded_text = file_bytes.decode(encoding)
    except UnicodeDecodeError as error:
        if not encoding.startswith("utf-8"):
            message = f"the file looks like {encoding.upper()}, but byte {error.start + 1:,} does not fit"
            raise refuse(message, remedy=SAVE_AS_UTF_8_REMEDY) from None
        line_number = file_bytes.count(b"\n", 0, error.start) + 1
        encoding, encoding_name = "cp1252", "Windows-1252"
        try:
            decoded_text = file_bytes.decode(encoding)
        except UnicodeDecodeError:
            encoding, encoding_name = "latin-1", "Latin-1"
            decoded_text = file_bytes.decode(encoding)
        note = f"The file is not UTF-8 (first on line {line_number:,}), so it was read as {encoding_name}"
        decoding_notes.append(note + IF_LETTERS_WRONG_TEXT)
    decoded_text = decoded_text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    decoded_text = decoded_text.replace("\n\ufeff", "\n")  # files with byte-order marks were joined
    text_start = decoded_text[:65536]
    header_text = next((s for s in text_start.split("\n") if s.strip() and not s.startswith("#")), "")
    delimiter_codes = {ord(delimiter) for delimiter in CONTROL_DELIMITERS if delimiter in header_text}
    control_codes = {*range(9), *range(14, 32), 0x7F, 0xFFFD} - delimiter_codes
    num_controls = sum(text_start.count(chr(control_code)) for control_code in control_codes)
    if num_controls > 0.01 * len(text_start) and num_controls > 1:
        raise refuse("the file holds binary data, not a table in text form", remedy=SAVE_AS_CSV_REMEDY)
    if "\0" in decoded_text:
        nul_location = f"line {decoded_text.count(chr(10), 0, decoded_text.index(chr(0))) + 1:,}"
        raise refuse("there is a NUL byte, which no text has", nul_location, "Export it again")
    return decoded_text, "utf-16" if encoding.startswith("utf-16") else encoding, decoding_notes
