"""The layout of a table's files, so that a program reads them in the same way. It contains no cells."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FileKind(enum.Enum):
    """The format of an uncompressed file."""

    TEXT = "text"
    JSON = "JSON"
    PARQUET = "Parquet"
    WORKBOOK = "workbook"


_BY_ENDING = {
    **dict.fromkeys((".parquet", ".pq"), FileKind.PARQUET),
    **dict.fromkeys((".xlsx", ".xlsm"), FileKind.WORKBOOK),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), FileKind.JSON),
}


@dataclass(frozen=True)
class FileLayout:
    """The layout of one file.

    Attributes:
        name: Display name.
        kind: Format of the file.
        separator: Separator of fields of text: one character, or ``::``; a blank and a plus sign mean one or more
            blanks.
        encoding: Python's name of the encoding of text.
        skip: Lines of text, or rows of a sheet, above the header, or above the first row if there is no header.
        names: Names of the columns if the file has none; else empty.
        sheet: Name of the sheet of a workbook that was read; empty for the first one.
        packing: ``gzip`` or ``zstd`` if it is compressed, else empty.
    """

    name: str
    kind: FileKind = FileKind.TEXT
    separator: str = ","
    encoding: str = "utf-8"
    skip: int = 0
    sheet: str = ""
    packing: str = ""
    names: tuple[str, ...] = ()

    @classmethod
    def by_name(cls, name: str) -> FileLayout:
        """Return the usual layout of a file of this name, which has not been read yet."""
        ending = "." + name.lower().rpartition(".")[2]
        separator = "\t" if ending in (".tsv", ".tab") else ","
        return cls(name, _BY_ENDING.get(ending, FileKind.TEXT), separator)


@dataclass(frozen=True)
class TableLayout:
    """The layout of a table: its files, and the reading of its cells.

    Attributes:
        files: One entry per file, at least one.
        numbers: The columns of numbers, each with its decimal mark, ``.`` or ``,``, if it had to be determined
            (thousands, decimal commas); else with an empty text.
        missing_is_a_user: True if all rows that name no user count as one user; else they are left out.
        filled: For a table for models, the further columns in which a row must not be blank.
    """

    files: tuple[FileLayout, ...]
    numbers: tuple[tuple[str, str], ...] = ()
    missing_is_a_user: bool = False
    filled: tuple[str, ...] = ()

    def decimal(self, column: str) -> str:
        """Return the decimal mark of a column of numbers; empty for plain numbers."""
        return dict(self.numbers).get(column, "")
