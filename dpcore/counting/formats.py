"""The kind of a file, told by its first bytes, and its plain bytes, in memory or in a folder."""

from __future__ import annotations

import codecs
import datetime
import enum
import functools
import gzip
import io
import itertools
import os
import re
import stat
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

from dpcore.common.checks import FULL_DISK, InputProblem, InvalidInput, is_full_disk, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.running import Steps, check_stop
from dpcore.data.column_names import shorten
from dpcore.data.delimited_text import SEPARATOR_NAMES, mark_fields

SCHEME = "held"
_numbers = itertools.count()


class MemoryFile:
    """A file in memory, with the methods of `pathlib.Path` that reading needs.

    Args:
        content: The bytes of the file.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._name = f"{SCHEME}://{next(_numbers)}"
        _memory_files[self._name] = self

    def __str__(self) -> str:
        return self._name

    def open(self, _mode: str = "rb") -> IO[bytes]:
        """Return the content as a file."""
        return io.BytesIO(self.content)

    def stat(self) -> Any:
        """Return the size and a constant time, as the file never changes."""
        return SimpleNamespace(st_size=len(self.content), st_mtime_ns=0, st_mode=stat.S_IFREG)


File = Path | MemoryFile


_memory_files: weakref.WeakValueDictionary[str, MemoryFile] = weakref.WeakValueDictionary()


@functools.cache
def file_system() -> Any:
    """Return the fsspec file system of all files in memory, through which DuckDB reads them."""
    import fsspec

    class _InMemory(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol, cachable = SCHEME, False

        def _open(self, path: str, **_options: Any) -> IO[bytes]:
            return self._file(path).open()

        def info(self, path: str, **_options: Any) -> dict[str, Any]:
            return {"name": path, "size": len(self._file(path).content), "type": "file"}

        def glob(self, path: str, **_options: Any) -> list[str]:
            return [self._strip_protocol(path)]

        def modified(self, _path: str) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(0)

        def _file(self, path: str) -> MemoryFile:
            return _memory_files[f"{SCHEME}://{self._strip_protocol(path)}"]

    return _InMemory()


def same_file(first: File, second: File) -> bool:
    """Return True if two paths refer to one file; two files in memory with equal content are different files."""
    if isinstance(first, MemoryFile) or isinstance(second, MemoryFile):
        return first is second
    return first.samefile(second)


def same_bytes(first_file: File, second_file: File) -> bool:
    """Return True if two files of the same size have equal content."""
    with first_file.open("rb") as first_stream, second_file.open("rb") as second_stream:
        return all(
            block == second_stream.read(len(block)) for block in iter(lambda: first_stream.read(1 << 20), b"")
        )


def name_of(file: str | os.PathLike[str] | MemoryFile) -> str:
    """Return the name of a file; a file in memory is called "file"."""
    return "file" if isinstance(file, MemoryFile) else Path(file).name


NOT_ENCRYPTED = "Write it without encryption, or decrypt it first"
HEAD_BYTES = 262_144
"""Bytes of a file that are read to detect its format."""
_CHUNK = 1 << 20
# A Zstandard file may begin with a skippable frame, as pzstd writes it.
_SKIPPED_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")


class Format(enum.Enum):
    """The format of an uncompressed file."""

    TEXT = "text table"
    JSON = "JSON"
    PARQUET = "Parquet file"
    WORKBOOK = "Excel workbook"
    TABLE = "table in memory"


class Packing(enum.Enum):
    """The compression of a file, by DuckDB's name."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True)
class DetectedFormat:
    """The detected format of a file, with its first uncompressed bytes.

    Attributes:
        format: Format of the content.
        packing: Compression.
        head: The first uncompressed bytes, at most `HEAD_BYTES`.
        is_complete: True if the head is the complete file.
    """

    format: Format
    packing: Packing
    head: bytes
    is_complete: bool

    @property
    def is_json_array(self) -> bool:
        """Return True if the file is one JSON array, not an object per line."""
        return self.format is Format.JSON and _beginning(self.head).startswith(b"[")


def _beginning(head: bytes) -> bytes:
    return head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")


def detect_format(path: File, name: str) -> DetectedFormat:
    """Detect the format of a file from its first bytes.

    Raises:
        InvalidInput: It cannot be read or unpacked.
    """
    with _readable(name):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            message = "this is a pipe or a device, which cannot be read twice"
            raise refuse(message, _describe_file(name), "Write it into a file first")
        with path.open("rb") as file:
            start = file.read(8)
    packing = Packing.GZIP if start.startswith(b"\x1f\x8b") else Packing.NONE
    if start.startswith(b"\x28\xb5\x2f\xfd") or _SKIPPED_FRAME.match(start):
        packing = Packing.ZSTD
    if start.startswith(b"PARE"):
        raise refuse("the Parquet file is encrypted", _describe_file(name), NOT_ENCRYPTED)
    if start.startswith(b"PAR1"):
        return DetectedFormat(Format.PARQUET, packing, start, False)
    with plain_bytes(path, packing, name) as stream:
        head = _read_up_to(stream, HEAD_BYTES + 1)
    is_complete = len(head) <= HEAD_BYTES
    head = head[:HEAD_BYTES]
    if head.startswith(b"PAR1") and packing is not Packing.NONE:
        message = "this is a compressed Parquet file"
        raise refuse(message, _describe_file(name), "Unpack it; Parquet compresses by itself")
    if head.startswith(b"PK\x03\x04") and packing is Packing.NONE and _is_workbook(path, head):
        return DetectedFormat(Format.WORKBOOK, packing, head, is_complete)
    is_json = re.match(rb"\{|\[\s*[{\]]", _beginning(head))
    return DetectedFormat(Format.JSON if is_json else Format.TEXT, packing, head, is_complete)


def _describe_file(name: str) -> str:
    return f"file {shorten(name)}"


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = {FileNotFoundError: "there is no such file", IsADirectoryError: "this is a folder, not a file"}
        message = why.get(type(error), "the file cannot be opened")
        raise refuse(message, _describe_file(name), "Check the path and your rights to read it") from None


def _is_workbook(path: File, head: bytes) -> bool:
    import zipfile

    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return any(member.startswith("xl/") for member in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return b"xl/" in head  # a damaged workbook, which is reported as such


@contextmanager
def plain_bytes(path: File, packing: Packing, name: str) -> Iterator[IO[bytes]]:
    """Yield the uncompressed bytes of a file as a stream; raise InvalidInput if it turns out to be damaged."""
    import pyarrow as pa

    with _readable(name):
        file = path.open("rb")
    with file:
        try:
            if packing is Packing.GZIP:
                yield cast(IO[bytes], gzip.GzipFile(fileobj=file))
            elif packing is Packing.ZSTD:
                yield io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"))
            else:
                yield file
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            if is_full_disk(error):  # raised by code that writes inside this context
                raise InvalidInput([FULL_DISK]) from None
            if packing is not Packing.NONE:
                raise InvalidInput([damaged_archive(packing, name)]) from None
            message = "the file cannot be read to its end"
            raise refuse(message, _describe_file(name), "Copy or export it again") from None


def damaged_archive(packing: Packing, name: str) -> InputProblem:
    """Describe a compressed file that cannot be unpacked to its end, as a problem."""
    which = "Zstandard" if packing is Packing.ZSTD else packing.value
    return InputProblem(
        f"the {which} file is damaged or cut off", _describe_file(name), "Copy or export it again"
    )


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    """Return up to ``size`` bytes; fewer only at the end of the stream."""
    blocks, missing = [], size
    while missing and (block := stream.read(missing)):
        blocks.append(block)
        missing -= len(block)
    return b"".join(blocks)


def read_small(path: File, detected: DetectedFormat, max_bytes: int, name: str) -> bytes | None:
    """Return all uncompressed bytes, or None if they are more than ``max_bytes``."""
    if detected.is_complete:
        return detected.head
    with plain_bytes(path, detected.packing, name) as stream:
        content = _read_up_to(stream, max_bytes + 1)
    return content if len(content) <= max_bytes else None


def recode(
    path: File, packing: Packing, encoding: str, target: Path, name: str,
    should_stop: ShouldStop | None = None, steps: Steps | None = None, split: str = "",
) -> None:  # fmt: skip
    """Write a text file as uncompressed UTF-8 with newlines between lines, block by block.

    Args:
        path: The file.
        packing: Its compression.
        encoding: Python's name; bytes that Windows-1252 leaves undefined are read as Latin-1.
        target: Output file.
        name: File name, for messages.
        should_stop: Called after every block.
        steps: Receives the progress.
        split: Separator of `BETWEEN` between fields, which is replaced by a mark; empty for none.

    Raises:
        InvalidInput: The bytes do not fit the encoding; or text with such a separator contains quotation marks.
    """
    size = max(path.stat().st_size, 1)
    # The five undefined bytes are control characters in Latin-1, as in every browser.
    errors = "windows-1252-rest" if encoding == "cp1252" else "strict"
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(errors), translate=True)
    with plain_bytes(path, packing, name) as stream, target.open("w", encoding="utf-8", newline="") as out:
        num_read, remainder = 0, ""
        while True:
            block = stream.read(_CHUNK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError:
                message = f"the file looks like {encoding.upper()}, but some bytes do not fit"
                remedy = "It may have been cut off or damaged; save it as UTF-8"
                raise refuse(message, _describe_file(name), remedy) from None
            if split:
                if '"' in text:
                    message = f"there is a quotation mark, and fields stand between {SEPARATOR_NAMES[split]}"
                    raise refuse(message, _describe_file(name), "Save the file with commas between fields")
                *lines, remainder = (remainder + text).split("\n")
                text = "".join(mark_fields(line, split) + "\n" for line in lines)
                text += mark_fields(remainder, split) if not block else ""
            out.write(text)
            if not block:
                break
            num_read += len(block)
            check_stop(should_stop)
            if steps is not None:
                steps.inside(num_read / size if packing is Packing.NONE else 0.5)
    if steps is not None:
        steps.finish()


def has_mixed_line_ends(
    path: File, packing: Packing, name: str, should_stop: ShouldStop | None = None
) -> bool:
    """Return True if the file has several kinds of line ends, for example after files of two systems were joined."""
    breaks = {b"\r\n": 0, b"\n": 0, b"\r": 0}
    with plain_bytes(path, packing, name) as stream:
        last_byte = b""
        while block := stream.read(_CHUNK):
            check_stop(should_stop)
            for end in breaks:
                breaks[end] += block.count(end)
            breaks[b"\r\n"] += last_byte == b"\r" and block.startswith(b"\n")
            last_byte = block[-1:]
    crlf_count = breaks[b"\r\n"]
    return (
        sum(count > 0 for count in (crlf_count, breaks[b"\n"] - crlf_count, breaks[b"\r"] - crlf_count)) > 1
    )


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("windows-1252-rest", _as_latin_1)


def open_lines(stream: IO[bytes], skip: int = 0, newline: str | None = "\n") -> io.TextIOWrapper:
    """Return a stream of UTF-8 as lines of text, after the skipped ones."""
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline=newline)
    for _ in range(skip):
        lines.readline()
    return lines
