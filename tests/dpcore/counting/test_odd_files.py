"""Folders, patterns, cells that are located, and ids that a spreadsheet has shortened."""

from __future__ import annotations

import io

import openpyxl
import pandas as pd
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.counting.count import to_dataset
from dpcore.counting.files import expand_patterns

SHORTENED = "different people may have become one"


@pytest.fixture
def parts(tmp_path):
    """Two files of one table, in a folder."""
    for number in (1, 2):
        (tmp_path / f"part{number}.csv").write_text(f"user,v\nu{number},1\nu{number},2\n")
    return tmp_path


def test_a_pattern_names_all_files_of_a_table(parts):
    dataset = to_dataset(str(parts / "part*.csv"), user="user")
    assert (dataset.histogram.num_users, dataset.histogram.num_rows) == (2, 4)


def test_a_folder_is_refused_with_what_to_do(parts):
    with pytest.raises(InvalidInput, match=r"a folder is no table.*folder/part\*.csv"):
        expand_patterns([parts])


@pytest.mark.parametrize("name", ["", "*.csv", "part1.csv"])
def test_a_delta_table_is_refused_however_it_is_named(name, parts):
    """Its files also hold rows that were deleted, so that reading them would count these."""
    (parts / "_delta_log").mkdir()
    with pytest.raises(InvalidInput, match="Delta table, whose files also hold rows that were deleted"):
        to_dataset(str(parts / name), user="user")


@pytest.mark.long
def test_columns_that_folders_name_count_among_those_of_a_table(tmp_path):
    (tmp_path / "year=2024").mkdir()
    for num_columns, message in ((999, None), (1_000, "There are 1,001 columns; at most 1,000 are read")):
        table = pd.DataFrame({f"c{index}": ["u"] for index in range(num_columns)})
        table.to_parquet(tmp_path / "year=2024" / "part.parquet")
        if message is None:
            assert to_dataset(str(tmp_path), user="c0").histogram.num_rows == 1
        else:
            with pytest.raises(InvalidInput, match=message):
                to_dataset(str(tmp_path), user="c0")


@pytest.mark.parametrize("separator", [";", ","])
def test_a_separator_that_is_not_that_of_all_files_is_said(parts, separator):
    (parts / "part2.csv").write_text("user;v\nu2;1,5\nu2;2,5\n")
    files = str(parts / "part*.csv")
    assert to_dataset(files, user="user").histogram.num_rows == 4
    with pytest.raises(InvalidInput, match="With this separator, which holds for all files"):
        to_dataset(files, user="user", separator=separator)


def test_a_bad_cell_is_located_among_the_rows_that_conditions_on_decimal_commas_keep(tmp_path):
    # Line 3 has a bad cell, too, but a row that is left out.
    (tmp_path / "t.csv").write_text("user;quantity;amount\na;1,5;3\nb;0,5;x\nc;2,5;y\n")
    with pytest.raises(InvalidInput, match="Line 4, column amount: text where a number must stand"):
        to_dataset(tmp_path / "t.csv", user="user", value="amount", filters="quantity > 1")


def write_workbook(path, ids):
    book = openpyxl.Workbook()
    for row in (["user", "v"], *([user, 1] for user in ids)):
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    path.write_bytes(content.getvalue())
    return str(path)


def test_ids_that_a_spreadsheet_shortened_get_a_note(tmp_path):
    ids = [790_000_000_000_000_123, 790_000_000_000_000_234]
    shortened = write_workbook(tmp_path / "t.xlsx", [float(f"{user:.14e}") for user in ids])
    dataset = to_dataset(shortened, user="user")
    assert dataset.histogram.num_users == 1  # of two
    assert SHORTENED in " ".join(dataset.notes)
    as_text = write_workbook(tmp_path / "u.xlsx", map(str, ids))
    assert SHORTENED not in " ".join(to_dataset(as_text, user="user").notes)
    for cells, is_noted in (
        (["7.9E+17", "7.9E+17"], True),
        (["7,9E+17", "u"], True),
        (["9E", "1E5x"], False),
    ):
        notes = to_dataset(pd.DataFrame({"user": cells, "v": 1}), user="user").notes
        assert (SHORTENED in " ".join(notes)) == is_noted
