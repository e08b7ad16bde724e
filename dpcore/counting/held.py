"""Files in memory with the interface of paths, so that small uploads never touch a disk."""

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
