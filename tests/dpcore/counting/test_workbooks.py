"""Workbooks: their cells are those that openpyxl reads, and hostile ones take no memory and get their sentence."""

import datetime
import io
import re
import tracemalloc
import zipfile

import openpyxl
import pandas as pd
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.counting import workbooks
from dpcore.data.column_names import check_header_row, count_titles
from tests.dpcore.counting.counts import count_files, histogram_of, sentences

CELLS = [["user_id", "v"], ["a", 1]]
LONG_TEXT = "x" * 30_000


def refused(path):
    with pytest.raises(InvalidInput) as error:
        counting.open_files([path])
    return str(error.value)


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reader():
    return workbooks.SheetReader(openpyxl.Workbook(), [], 1_000, 100_000, None)


@pytest.mark.parametrize("rich_text", [False, True])
def test_cells_are_those_that_openpyxl_reads(workbook, rich_text):
    rows = [
        ["user_id", "amount", "day", "duration", "moment", "paid"],
        ["a", 1.5, datetime.date(2024, 2, 29), datetime.timedelta(hours=30), datetime.time(8, 5), True],
        [],
        ["_x0041_ < & >", 12345678901234567, datetime.datetime(2024, 1, 2, 3, 4, 5), None, None, False],
        [None, None, None, None, "far right", "=1+1"],
        ["#N/A", -1e-7, 1e300, "2024", " blanks ", "é😀"],
    ]
    if rich_text:
        rows.append([CellRichText("plain ", TextBlock(InlineFont(b=True), "bold")), 1])
    path = workbook(rows)
    expected = openpyxl.load_workbook(path, data_only=True).active
    rows_read = workbooks._SheetRows()
    with path.open("rb") as file, workbooks._Archive(file) as archive:
        workbooks._read_sheet(archive, rows_read, None, "")
    rows_by_openpyxl = workbooks._SheetRows()
    for number, row in enumerate(expected.iter_rows(values_only=True), 1):
        rows_by_openpyxl.add(number, row)
    assert rows_read.row_numbers == rows_by_openpyxl.row_numbers
    assert rows_read.build_frame().to_numpy().tolist() == rows_by_openpyxl.build_frame().to_numpy().tolist()


def test_a_long_cell_gives_no_other_cell_its_room():
    rows = pd.DataFrame([["Title"] + [""] * 99, [LONG_TEXT] + ["1"] * 99], dtype="str")
    names = ["user_id"] + [f"column {k}" for k in range(2, 20)]
    narrow = rows.iloc[:, :19]
    # NumPy's own texts take 4 * 30,000 bytes in each of 200 cells.
    assert peak_bytes(lambda: count_titles(rows)) < 2_000_000
    assert peak_bytes(lambda: check_header_row(names, narrow, range(2), 1, None, [])) < 2_000_000


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "content",
    [
        b"<a/>" * 60_000,
        b'<row r="1">' + b"<c/>" * 60_000 + b"</row>",
        b'<row r="1"><c><f>' + b"x" * 8_000_000 + b"</f><v>1</v></c></row>",
        b'<row r="1"><mergeCell ref="A1:B1"/></row>' * 20_000,
    ],
    ids=["elements", "cells", "formula", "merged"],
)
def test_what_is_no_value_is_not_held(content):
    stream = io.BytesIO(b"<worksheet><sheetData>" + content + b"</sheetData></worksheet>")
    # A tree holds 64 bytes and more for each element.
    assert peak_bytes(lambda: list(reader().read_rows(stream))) < 1_500_000


def test_a_cell_that_is_too_long_is_refused(workbook, monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_CELL_CHARACTERS", 20)
    assert "Row 2: a cell has more than 20 characters." in refused(
        workbook(CELLS, sheet=lambda xml: xml.replace(b"<v>1</v>", b"<v>" + b"1" * 21 + b"</v>"))
    )
    assert "Row 3: a cell has more than 20 characters." in refused(workbook([*CELLS, ["b" * 21, 2]]))
    assert counting.open_files([workbook([*CELLS, ["b" * 20, 2]])]).head.frame.iloc[1, 0] == "b" * 20


def test_shared_texts_are_those_that_are_written(monkeypatch):
    texts = ["plain", "", "b" * 20, "_x005F_x0041_"]
    runs = "<si><r><rPr/><t>two </t></r><r><t>runs</t></r><rPh sb='0' eb='1'><t>sound</t></rPh></si>"
    content = f"<sst>{''.join(f'<si><t>{text}</t></si>' for text in texts)}{runs}<x:si xmlns:x='y'/></sst>"
    rows_read = workbooks.read_shared_texts(io.BytesIO(content.encode()), None)
    # What looks like an escape is written with one of its underscore before it.
    assert rows_read == ["plain", "", "b" * 20, "_x0041_", "two runs", ""]
    monkeypatch.setattr(workbooks, "MAX_CELL_CHARACTERS", 19)
    with pytest.raises(InvalidInput, match=r"A cell has more than 19 characters\."):
        workbooks.read_shared_texts(io.BytesIO(content.encode()), None)


def test_a_row_of_endless_cells_is_refused_before_it_ends():
    stream = io.BytesIO(b'<worksheet><sheetData><row r="7">' + b"<c/>" * 110_000)
    with pytest.raises(InvalidInput, match=r"Row 7: the sheet has more than 100,000 cells\."):
        list(reader().read_rows(stream))


def test_endless_elements_that_are_no_cells_are_refused():
    stream = io.BytesIO(b"<worksheet>" + b"<a/>" * 210_000)
    with pytest.raises(ValueError, match="more elements than its cells need"):
        list(reader().read_rows(stream))


def test_texts_are_counted_over_all_cells(workbook, monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_SHEET_CHARACTERS", 100)
    rows = [*CELLS, *(["b" * 20, 2] for _ in range(4))]
    assert len(counting.open_files([workbook(rows)]).head.frame) == 5
    assert "Row 7: the cells have more than 100 characters." in refused(workbook([*rows, ["c" * 20, 1]]))


def test_long_cells_are_packed_as_they_are_read(monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_UNPACKED_CHARACTERS", 1_000)
    rows = workbooks._SheetRows()
    for number in range(1, 6):
        rows.add(number, ["x" * 400, number])
        assert rows._num_unpacked_characters <= 1_000
    assert rows.build_frame().iloc[:, 1].tolist() == ["1", "2", "3", "4", "5"]


def test_one_wide_row_does_not_make_all_rows_as_wide(workbook, monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_SHEET_CELLS", 1_000)
    rows = [["user_id", "v"], [*[None] * 99, "x"], *(["a", 1] for _ in range(9))]
    assert "Row 11: the sheet has more than 1,000 cells." in refused(workbook(rows))
    assert len(counting.open_files([workbook(rows[:-1])]).head.frame) == 9


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: xml.replace(b"<sheetData>", b"<!--" + b"x" * 200_000 + b"--><sheetData>"),
        lambda xml: xml.replace(b"<worksheet", b'<!DOCTYPE x [<!ENTITY a "1">]><worksheet'),
        lambda xml: xml.replace(b"</worksheet>", b""),
        lambda xml: xml.replace(b"<sheetData>", b"<a>" * 100 + b"</a>" * 100 + b"<sheetData>"),
        lambda xml: xml.replace(b"<v>1</v>", b"<v>one</v>"),
    ],
    ids=["comment", "entity", "cut off", "deep", "no number"],
)
def test_a_sheet_that_no_program_writes_is_refused(workbook, monkeypatch, change):
    monkeypatch.setattr(workbooks, "MAX_TAG_BYTES", 100_000)
    assert counting.open_files([workbook(CELLS)]).columns == ("user_id", "v")
    assert "The Excel workbook is damaged or protected." in refused(workbook(CELLS, sheet=change))


def test_formats_beyond_those_of_excel_are_refused(workbook, monkeypatch):
    path = workbook(CELLS)
    with zipfile.ZipFile(path) as archive:
        tags = max(archive.read(name).count(b"<") for name in ("xl/styles.xml", "[Content_Types].xml"))
        size = archive.getinfo("xl/styles.xml").file_size
    for name, most in (("MAX_TREE_TAGS", tags), ("MAX_TREE_BYTES", size)):
        with monkeypatch.context() as limits:
            limits.setattr(workbooks, name, most)
            assert counting.open_files([path]).columns == ("user_id", "v")
            limits.setattr(workbooks, name, most - 1)
            assert "The Excel workbook is damaged or protected." in refused(path)


def longer(more):
    """Puts more rows at the end of a sheet."""
    return lambda sheet: sheet.replace(b"</sheetData>", more + b"</sheetData>")


def test_workbooks_that_unpack_to_endless_rows_are_refused(workbook):
    far = workbook(CELLS, sheet=lambda xml: re.sub(rb'(<row r="|r="[AB])2"', rb'\g<1>2000000000"', xml))
    assert far.stat().st_size < 6_000
    assert "The sheet has more than 1,048,576 rows" in sentences(far)[0]


def test_workbooks_of_too_many_rows_or_cells_are_refused(workbook, monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_SHEET_ROWS", 1_000)
    monkeypatch.setattr(workbooks, "MAX_SHEET_CELLS", 100_000)
    blank = workbook(CELLS, sheet=longer(b"<row/>" * 1_000))
    assert "The sheet has more than 1,000 rows." in sentences(blank)[0]
    last_rows = b"".join(b'<row r="%d"><c r="ALL%d"><v>1</v></c></row>' % (row, row) for row in range(3, 120))
    assert (
        "Row 101: the sheet has more than 100,000 cells."
        in sentences(workbook(CELLS, sheet=longer(last_rows)))[0]
    )
    wide = workbook(CELLS, sheet=longer(b'<row r="3"><c r="ALM3"><v>1</v></c></row>'))
    assert "Row 3: there are 1,001 columns; at most 1,000 are read." in sentences(wide)[0]
    monkeypatch.setattr(workbooks, "MAX_OTHER_BYTES", 100)
    assert "bytes are beside the sheets" in sentences(workbook(CELLS))[0]
    monkeypatch.setattr(workbooks, "MAX_WORKBOOK_BYTES", 100)
    assert "unpacks to" in sentences(workbook(CELLS))[0]


def test_formulas_of_a_workbook_are_not_run(workbook):
    # Excel never computed these, so that no value stands there.
    data = count_files(workbook([["user_id", "v"], ["=cmd|' /C calc'!A0", 1], ["b", 2], ["b", "=1+1"]]))
    assert data.histogram == histogram_of([2])


def test_a_title_above_the_names_of_a_workbook_is_left_out_and_said(workbook):
    path = workbook(
        [
            ["Sales of 2025", None, None],
            [],
            ["by Jo"],
            ["user_id", "v", "group"],
            ["a", 1, "x"],
            ["a", 2, "y"],
        ]
    )
    head = counting.open_files([path]).head
    assert head.columns == ("user_id", "v", "group")
    assert head.line_numbers.tolist() == [5, 6]
    assert head.layouts[0].skip == 3  # What a program skips, which reads the sheet by itself.
    assert head.notes == ("The names of the columns are in line 4, below a title.",)
    assert count_files(path).histogram == histogram_of([2])
    # A second column without a name stays one: what stands below is no row of names.
    for rows_below in (
        (["anna", "country"], ["bert", 3]),
        (["user", "group"], ["user", "x"]),
        (["anna", "rock"],),
    ):
        assert counting.open_files([workbook([["user id", None], *rows_below])]).head.columns == (
            "user id",
            "column 2",
        )


def test_reading_a_workbook_can_be_stopped(workbook):
    path = workbook(CELLS, sheet=longer(b"<row/>" * 3_000))
    with pytest.raises(counting.StoppedError):
        counting.open_files([path], should_stop=lambda: True)
