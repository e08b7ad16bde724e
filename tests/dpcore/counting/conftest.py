"""Files to be counted."""

import itertools

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def put(tmp_path):
    """Writes a file and returns its path."""

    def write(content, name="file.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    """Writes columns as a Parquet file of a name of its own and returns its path."""
    numbers = itertools.count()

    def write(name="", **columns):
        path = tmp_path / (name or f"{next(numbers)}.parquet")
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)
        return path

    return write


@pytest.fixture
def workbook(tmp_path):
    """Writes rows as an Excel workbook, changed before it is saved, and returns its path."""

    def write(rows, change=lambda book: None):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        change(book)
        book.save(tmp_path / "file.xlsx")
        return tmp_path / "file.xlsx"

    return write
