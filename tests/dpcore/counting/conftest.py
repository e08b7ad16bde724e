"""Files to be counted."""

import itertools
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def put(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(content, name="file.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    """Return a function that writes columns as a Parquet file of a name of its own and returns its path."""
    numbers = itertools.count()

    def write(name="", **columns):
        path = tmp_path / (name or f"{next(numbers)}.parquet")
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)
        return path

    return write


@pytest.fixture
def workbook(tmp_path):
    """Return a function that writes rows as an Excel workbook and returns its path.

    ``change`` is told the book before it is saved, and ``sheet`` is the XML of its sheet to what stands there instead.
    """

    def write(rows, change=lambda book: None, sheet=None):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        change(book)
        path = tmp_path / "file.xlsx"
        book.save(path)
        if sheet is None:
            return path
        changed = tmp_path / "changed.xlsx"
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, sheet(content) if name.endswith("sheet1.xml") else content)
        return changed

    return write
