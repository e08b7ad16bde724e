"""How a table was read out of its files, so that a program reads it in the same way. It holds no cell of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FileKind(enum.Enum):
    """What a file holds, once unpacked."""

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
    """One file.

    Attributes:
        name: What a person calls it.
        kind: What it holds.
        separator: What stands between fields of text: one character, or ``::``; a blank and a plus sign stand for one
            or more blanks.
        encoding: Of text, as Python names it.
        skip: Lines of text, or rows of a sheet, above the header, or above the first row where there is none.
        names: What the columns are called where the file does not say it; else empty.
        sheet: Of a workbook, the name of the sheet that was read; empty for the first one.
        packing: ``gzip`` or ``zstd`` where it is compressed, else empty.
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
        """Return the usual layout of a file of this name, which nobody has read yet."""
        ending = "." + name.lower().rpartition(".")[2]
        separator = "\t" if ending in (".tsv", ".tab") else ","
        return cls(name, _BY_ENDING.get(ending, FileKind.TEXT), separator)


@dataclass(frozen=True)
class TableLayout:
    """The files of a table, and how its cells were read.

    Attributes:
        files: One entry per file, at least one.
        numbers: The columns that were read as numbers, each with the mark before its decimals, ``.`` or ``,``, where
            one had to be settled (thousands, decimal commas); else with nothing.
        missing_is_a_user: Whether all rows that name no user count as one user; else they are left out.
        filled: Of a table for models, the further columns that a row must hold something in to count.
    """

    files: tuple[FileLayout, ...]
    numbers: tuple[tuple[str, str], ...] = ()
    missing_is_a_user: bool = False
    filled: tuple[str, ...] = ()

    def decimal(self, column: str) -> str:
        """Return the mark before the decimals of a column of numbers; empty for plain numbers."""
        return dict(self.numbers).get(column, "")
