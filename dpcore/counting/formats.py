"""What kind of file it is, told by its first bytes, and its plain bytes as a stream."""

from __future__ import annotations

import codecs
import enum
import gzip
import io
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from dpcore.common.errors import FULL_DISK, InputProblem, InvalidInput, is_full_disk, refuse
from dpcore.common.progress import ShouldStop
from dpcore.counting.held import File
from dpcore.counting.running import Steps, check_stop
from dpcore.data.column_names import shown
from dpcore.data.delimited_text import BETWEEN, unspaced

NOT_ENCRYPTED = "Write it without encryption, or decrypt it first"
HEAD_BYTES = 262_144
"""How much of a file is read to learn what it is."""
_CHUNK = 1 << 20
# A Zstandard file may begin with one, as pzstd writes it.
_SKIPPED_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")


class Format(enum.Enum):
    """Kinds of file, once unpacked."""

    TEXT = "text table"
    JSON = "JSON"
    PARQUET = "Parquet file"
    WORKBOOK = "Excel workbook"
    TABLE = "table in memory"


class Packing(enum.Enum):
    """How a file is compressed, by DuckDB's name."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True)
class Kind:
    """What a file is, with the beginning of its plain bytes.

    Attributes:
        format: What it holds.
        packing: How it is compressed.
        head: The first plain bytes, at most `HEAD_BYTES`.
        whole: Whether the head is all of it.
    """

    format: Format
    packing: Packing
    head: bytes
    whole: bool

    @property
    def is_json_array(self) -> bool:
        """Return True if it is one JSON array, not an object per line."""
        return self.format is Format.JSON and _beginning(self.head).startswith(b"[")


def _beginning(head: bytes) -> bytes:
    return head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")


def kind_of(path: File, name: str) -> Kind:
    """Look at the beginning of a file.

    Raises:
        InvalidInput: It cannot be read or unpacked.
    """
    with _readable(name):
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            what = "this is a pipe or a device, which cannot be read twice"
            raise refuse(what, _of(name), "Write it into a file first")
        with path.open("rb") as file:
            start = file.read(8)
    packing = Packing.GZIP if start.startswith(b"\x1f\x8b") else Packing.NONE
    if start.startswith(b"\x28\xb5\x2f\xfd") or _SKIPPED_FRAME.match(start):
        packing = Packing.ZSTD
    if start.startswith(b"PARE"):
        raise refuse("the Parquet file is encrypted", _of(name), NOT_ENCRYPTED)
    if start.startswith(b"PAR1"):
        return Kind(Format.PARQUET, packing, start, False)
    with plain_bytes(path, packing, name) as stream:
        head = _read_up_to(stream, HEAD_BYTES + 1)
    whole = len(head) <= HEAD_BYTES
    head = head[:HEAD_BYTES]
    if head.startswith(b"PAR1") and packing is not Packing.NONE:
        what = "this is a compressed Parquet file"
        raise refuse(what, _of(name), "Unpack it; Parquet compresses by itself")
    if head.startswith(b"PK\x03\x04") and packing is Packing.NONE and _is_workbook(path, head):
        return Kind(Format.WORKBOOK, packing, head, whole)
    is_json = re.match(rb"\{|\[\s*[{\]]", _beginning(head))
    return Kind(Format.JSON if is_json else Format.TEXT, packing, head, whole)


def _of(name: str) -> str:
    return f"file {shown(name)}"


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = {FileNotFoundError: "there is no such file", IsADirectoryError: "this is a folder, not a file"}
        what = why.get(type(error), "the file cannot be opened")
        raise refuse(what, _of(name), "Check the path and your rights to read it") from None


def _is_workbook(path: File, head: bytes) -> bool:
    import zipfile

    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return any(member.startswith("xl/") for member in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return b"xl/" in head  # damaged, and to be called so


@contextmanager
def plain_bytes(path: File, packing: Packing, name: str) -> Iterator[IO[bytes]]:
    """Yield the unpacked bytes of a file as a stream; what is damaged becomes a sentence while it is read."""
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
            if is_full_disk(error):  # of what is written meanwhile
                raise InvalidInput([FULL_DISK]) from None
            if packing is not Packing.NONE:
                raise InvalidInput([damaged_archive(packing, name)]) from None
            what = "the file cannot be read to its end"
            raise refuse(what, _of(name), "Copy or export it again") from None


def damaged_archive(packing: Packing, name: str) -> InputProblem:
    """Return the sentence for a compressed file that cannot be unpacked to its end."""
    which = "Zstandard" if packing is Packing.ZSTD else packing.value
    return InputProblem(f"the {which} file is damaged or cut off", _of(name), "Copy or export it again")


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    """Up to ``size`` bytes; less only at the end."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def read_small(path: File, kind: Kind, most: int, name: str) -> bytes | None:
    """Return all plain bytes, or None where they are more than ``most``."""
    if kind.whole:
        return kind.head
    with plain_bytes(path, kind.packing, name) as stream:
        content = _read_up_to(stream, most + 1)
    return content if len(content) <= most else None


def recode(
    path: File, packing: Packing, encoding: str, target: Path, name: str,
    should_stop: ShouldStop | None = None, steps: Steps | None = None, split: str = "",
) -> None:  # fmt: skip
    """Write a text file as plain UTF-8 with newlines between lines, a piece at a time.

    Args:
        path: The file.
        packing: How it is compressed.
        encoding: As Python names it; bytes that Windows-1252 leaves undefined are read as Latin-1 does.
        target: Where to write.
        name: For messages.
        should_stop: Asked after every piece.
        steps: Told how much has been read.
        split: What of `BETWEEN` stands between fields, in whose place a mark is written; empty for none.

    Raises:
        InvalidInput: The bytes do not fit the encoding; or such text holds quotation marks.
    """
    size = max(path.stat().st_size, 1)
    # The five undefined bytes are control characters in Latin-1, as in every browser.
    errors = "windows-1252-rest" if encoding == "cp1252" else "strict"
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(errors), translate=True)
    with plain_bytes(path, packing, name) as stream, target.open("w", encoding="utf-8", newline="") as out:
        read, rest = 0, ""
        while True:
            part = stream.read(_CHUNK)
            try:
                text = decoder.decode(part, final=not part)
            except UnicodeError:
                what = f"the file looks like {encoding.upper()}, but some bytes do not fit"
                remedy = "It may have been cut off or damaged; save it as UTF-8"
                raise refuse(what, _of(name), remedy) from None
            if split:
                if '"' in text:
                    what = f"there is a quotation mark, and fields stand between {BETWEEN[split]}"
                    raise refuse(what, _of(name), "Save the file with commas between fields")
                *lines, rest = (rest + text).split("\n")
                text = "".join(unspaced(line, split) + "\n" for line in lines)
                text += unspaced(rest, split) if not part else ""
            out.write(text)
            if not part:
                break
            read += len(part)
            check_stop(should_stop)
            if steps is not None:
                steps.inside(read / size if packing is Packing.NONE else 0.5)
    if steps is not None:
        steps.finish()


def has_mixed_line_ends(
    path: File, packing: Packing, name: str, should_stop: ShouldStop | None = None
) -> bool:
    """Return True if lines end in more than one way, as where files of two systems were joined."""
    breaks = {b"\r\n": 0, b"\n": 0, b"\r": 0}
    with plain_bytes(path, packing, name) as stream:
        before = b""
        while block := stream.read(_CHUNK):
            check_stop(should_stop)
            for end in breaks:
                breaks[end] += block.count(end)
            breaks[b"\r\n"] += before == b"\r" and block.startswith(b"\n")
            before = block[-1:]
    both = breaks[b"\r\n"]
    return sum(count > 0 for count in (both, breaks[b"\n"] - both, breaks[b"\r"] - both)) > 1


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("windows-1252-rest", _as_latin_1)


def lines_of(stream: IO[bytes], skip: int = 0, newline: str | None = "\n") -> io.TextIOWrapper:
    """Return a stream of UTF-8 as lines of text, without those that are skipped."""
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline=newline)
    for _ in range(skip):
        lines.readline()
    return lines
