"""Files in memory, read as if they lay in a folder: small uploads never touch a disk."""

from __future__ import annotations

import datetime
import functools
import io
import itertools
import os
import stat
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

SCHEME = "held"
_numbers = itertools.count()


class Held:
    """A file in memory, with as much of `pathlib.Path` as reading a file needs.

    Args:
        content: Its bytes.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._name = f"{SCHEME}://{next(_numbers)}"
        _held[self._name] = self

    def __str__(self) -> str:
        return self._name

    def open(self, _mode: str = "rb") -> IO[bytes]:
        """Return the content as a file."""
        return io.BytesIO(self.content)

    def stat(self) -> Any:
        """Return its size; nobody writes to it."""
        return SimpleNamespace(st_size=len(self.content), st_mtime_ns=0, st_mode=stat.S_IFREG)


File = Path | Held


_held: weakref.WeakValueDictionary[str, Held] = weakref.WeakValueDictionary()


@functools.cache
def file_system() -> Any:
    """Return all of them as DuckDB takes them: it reads by the interface of fsspec."""
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

        def _file(self, path: str) -> Held:
            return _held[f"{SCHEME}://{self._strip_protocol(path)}"]

    return _InMemory()


def same_file(one: File, other: File) -> bool:
    """Return True if two names are of one file; two in memory with the same content are not."""
    if isinstance(one, Held) or isinstance(other, Held):
        return one is other
    return one.samefile(other)


def same_bytes(one: File, other: File) -> bool:
    """Return True if two files of the same size hold the same."""
    with one.open("rb") as first, other.open("rb") as second:
        return all(block == second.read(len(block)) for block in iter(lambda: first.read(1 << 20), b""))


def name_of(file: str | os.PathLike[str] | Held) -> str:
    """Return what a file is called; one in memory has no name."""
    return "file" if isinstance(file, Held) else Path(file).name
