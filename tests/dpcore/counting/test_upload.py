"""Files, good and hostile, against the csv module, counters and sentences written by hand."""

import csv
import dataclasses
import gzip
import io
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import build_dataset, read_table
from dpcore.counting import formats as text_bytes
from dpcore.data.cell_numbers import read_numbers
from dpcore.data.column_roles import Roles, TableKind, explain_roles
from dpcore.data.guessed_roles import guess_roles
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import histogram_of

EVENTS = "user_id,product,amount\nu1,a,1.5\nu2,b,2\nu1,a,3\nNA,c,0\nu1,b,0.25\n"
NA_IS_A_USER = (
    "1 contribution is of a user called NA, null or the like. If that means nobody, empty these cells first."
)


def table_of(text, name="file.csv", encoding="utf-8"):
    return read_table(text.encode(encoding) if isinstance(text, str) else text, name)


def dataset_of(text, **roles):
    table = table_of(text)
    all_roles = dataclasses.replace(guess_roles(table), **roles)
    return build_dataset(table, all_roles, Disclosure.PRIVATE)


def sentences(text, **roles):
    with pytest.raises(InvalidInput) as refused:
        dataset_of(text, **roles)
    return [problem.sentence for problem in refused.value.problems]


def test_a_delimiter_inside_the_cells_of_another_does_not_win():
    assert table_of("user;amount\na;1,5\nb;2,5\nc;3,0\n").delimiter == ";"
    assert table_of("user,count; drop table\na,1\nb,2\n").columns == ("user", "count; drop table")
    assert table_of('user,tags\na,"x;y;z"\nb,"y;z"\n').delimiter == ","
    assert table_of("sep=|\nuser|a,b\nx|1,2\ny|2,3\n").columns == ("user", "a,b")


def test_quoted_line_breaks_keep_the_line_numbers():
    table = table_of('\n\nuser,"no\nte",value\na,"x\ny\nz",1\n\nb,"q ""r"", s",2\n')
    assert table.columns == ("user", "no te", "value")
    assert table.frame["no te"].tolist() == ["x\ny\nz", 'q "r", s']
    assert table.line_numbers.tolist() == [5, 9]
    assert any("blank row" in note and "line 8" in note for note in table.notes)
    (said,) = sentences('user,note,value\na,"x\ny",1\nb,z,oops\n', value="value")
    assert said.startswith("Line 4, column value: text")


def test_short_rows_count_as_missing_with_a_note():
    table = table_of("user,a,b\nx,1,2\ny,1\nz\n")
    assert table.frame.to_numpy().tolist() == [["x", "1", "2"], ["y", "1", ""], ["z", "", ""]]
    assert "2 lines" in table.notes[0]
    assert "line 3" in table.notes[0]


def test_a_written_row_index_is_named_and_not_taken_for_users():
    table = table_of(",user,v\n0,a,1\n1,b,2\n2,a,3\n")
    assert table.columns[0] == "column 1"
    assert guess_roles(table).user == "user"


CELLS = st.text(st.sampled_from('ab ,;|"\t\n0é日'), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=12),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_the_csv_module_writes_is_read_back(rows, delimiter, encoding, quoting):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(["user", "note", "amount"])
    starts = []
    for row in rows:
        starts.append(stream.getvalue().count("\n") + 1)
        writer.writerow(row)
    # The first line sets the delimiter: say it, as random cells can favour another one.
    content = (f"sep={delimiter}\n" + stream.getvalue()).encode(encoding)
    stripped = [[cell.strip() for cell in row] for row in rows]
    expected = [(line + 1, row) for line, row in zip(starts, stripped, strict=True) if any(row)]
    if not expected:
        with pytest.raises(InvalidInput, match="blank"):
            read_table(content, "x.csv")
        return
    table = read_table(content, "x.csv")
    assert table.frame.to_numpy().tolist() == [row for _, row in expected]
    assert table.line_numbers.tolist() == [line for line, _ in expected]


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('ab,"\n '), max_size=40))
def test_loose_quotation_marks_are_read_as_the_csv_module_reads_them_or_refused(body):
    text = "user,note\n" + body.rstrip("\n") + "\n"  # blank lines at the end are no rows
    assume('  "' not in text)  # behind several blanks a mark that is not closed is text to DuckDB
    try:
        table = table_of("sep=,\n" + text)
    except InvalidInput:
        return
    rows = list(csv.reader(io.StringIO(text, newline="\n"), skipinitialspace=True))[1:]
    padded = [[cell.strip() for cell in (*row, "", "")[:2]] for row in rows]
    assert table.frame.to_numpy().tolist() == [row for row in padded if any(row)]


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "file is empty"),
        (b" \r\n\t\n ", "nothing but blanks"),
        (b"\0\0\0\0", "nothing but blanks"),
        (b"sep=,\n\n", "nothing but blanks"),
        (PNG, "a PNG picture"),
        (gzip.compress(EVENTS.encode(), mtime=0), "gzip archive, .* Unpack it"),
        (b"PK\x03\x04abc", "a ZIP archive"),
        (b"PK\x03\x04abc xl/workbook.xml", "Excel workbook .* Save it as CSV"),
        (b"PAR1abc", "a Parquet file"),
        (b"%PDF-1.7", "a PDF document"),
        (b'[{"user": 1}]', "JSON"),
        (b"<!DOCTYPE html><html>", "web page"),
        (bytes(range(1, 32)) * 20, "binary data"),
        (b"user,count\n", "Line 1: the file has a header and no rows"),
        (b"user,count", "Line 1: the file has a header and no rows"),
        (b"user,count\n,\n,\n", "Line 2: all rows under the header are blank"),
        (b"u1,3\nu2,4\n", "Line 1: there is no header row: the first line looks like data"),
        (b"alice,3\nbob,4\n", "no header row"),
        (b"Sales 2025,,\n,,\nuser_id,amount,group\na,1,x\n", "Line 1: a title stands above .* are in line 3"),
        (
            b"Sales 2025\n\nuser_id,amount,group\na,1,x\nb,2,y\n",
            "Line 1: a title stands above .* are in line 3",
        ),
        (b"Report\nOf May, 2025\nuser;amount\na;1\nb;2\n", "Line 1: a title stands above .* are in line 3"),
        (b"1,3\n2,4\n", "no header row"),
        (b"2024-01-05,x\n2024-01-06,y\n", "no header row"),
        (b"a@b.org,x\nc@d.org,y\n", "no header row"),
        (b"u1\nu2\nu1\n", "no header row"),
        (b"2019\t2020\t2021\n5\t2\t3\n", "no header row"),
        (b"u17,x\nu203,y\nu4,z\n", "no header row"),
        (b"alice,toys\nbob,toys\nalice,books\n", "no header row"),
        (b",,\n1,2,3\n", "no header row"),
        (b"user,a,a,b,b\n1,2,3,4,5\n", r'Line 1: columns 2 and 3 have the same name \("a"\) \(and 1 more\)'),
        (
            b"user,a,a,a,a,a\n1,2,3,4,5,6\n",
            r'columns 2 and 3 and 4 \(and 2 more\) have the same name \("a"\)\.',
        ),
        (b"user,count\na,1\nb,2,3\nc\nd,1,1\n", "Line 3: 3 fields, but the header names 2; also line 5"),
        (b"user\na,1\nb,2\n", "Line 2: 2 fields, but the header names 1"),
        (b"user,v\na,1\nb\0,2\n", "Line 3: there is a NUL byte"),
        (b"user,v\na,1\nb," + b"x" * 200_000 + b"\n", "Line 3: the line is longer than"),
        (b'user,v\na,"1\nb,2\n', "Line 2: a quotation mark is opened and not closed"),
        (
            b'user,v\n"a,1\n' + b"x,1\n" * 50_000,
            "Line 2: (the line is longer than|a quotation mark is opened)",
        ),
        (b'user,"v\na,1\n', "quotation mark|no rows"),
        (b"user,v\na,1\nuser,v\nb,2\n", "Line 3: the header row stands among the data again"),
        (",".join(f"name_{chr(97 + k % 26)}{k}" for k in range(1001)).encode() + b"\n", "1,001 columns"),
        ("user,v\na,1\n".encode("utf-16")[:-1], "looks like UTF-16"),
    ],
)
def test_hostile_files_get_their_sentence(content, says):
    with pytest.raises(InvalidInput) as refused:
        read_table(content, "x.csv")
    assert all(problem.remedy for problem in refused.value.problems)
    assert pytest.RaisesExc(InvalidInput, match=says).matches(refused.value), str(refused.value)


def test_all_that_is_wrong_with_a_file_is_said_at_once():
    with pytest.raises(InvalidInput) as refused:
        table_of("user,a,a\n1,2,3,4\n")
    names, fields = refused.value.problems
    assert "same name" in names.message
    assert "4 fields" in fields.message


def test_a_file_above_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(text_bytes, "MAX_BYTES", 10)
    with pytest.raises(InvalidInput, match="at most 10 are read"):
        table_of(EVENTS)


@pytest.mark.parametrize(
    "header", ["user,2023,2024", "ts,who did", "Name,Wert", "x,y", "q1,q2", "country,other", "user"]
)
def test_headers_are_not_taken_for_data(header):
    columns = header.count(",") + 1
    rows = "".join(",".join(["other" if k else f"p{k}", "7"][:columns]) + "\n" for k in range(3))
    if columns == 3:
        rows = "p,1,2\nq,3,4\n"
    assert table_of(header + "\n" + rows).columns == tuple(header.split(","))


def numbers_of(cells, delimiter=";", whole=False):
    table = table_of(f"sep={delimiter}\nuser{delimiter}x\n" + "".join(f'u{delimiter}"{c}"\n' for c in cells))
    return read_numbers(table, "x", is_integer=whole)


@pytest.mark.parametrize(
    ("cells", "delimiter", "values"),
    [
        (["1", "-2", "+3", "4.", ".5", "1e3", "2E-2"], ",", [1, -2, 3, 4, 0.5, 1000, 0.02]),
        (["1,5", "2", "-0,25"], ";", [1.5, 2, -0.25]),
        (["1.234,5", "1.234", "7"], ";", [1234.5, 1234, 7]),
        (["1,234.5", "1,234", "7"], ";", [1234.5, 1234, 7]),
        (["1.234.567", "1.234"], ",", [1234567, 1234]),
        (["1,234,567", "1,234"], "|", [1234567, 1234]),
        (["1 234,5", "1\u00a0000", "\u22122"], ";", [1234.5, 1000, -2]),
        (["1'234.50", "2"], ";", [1234.5, 2]),
        (["1,234", "0,5"], ",", [1.234, 0.5]),
    ],
)
def test_marks_are_settled_by_the_column(cells, delimiter, values):
    numbers = numbers_of(cells, delimiter)
    assert numbers.marks.problem is None
    assert numbers.marks.note_text == ""
    assert numbers.values.tolist() == values


@pytest.mark.parametrize(
    ("cells", "delimiter", "whole", "value"),
    [
        (["5", "1,234"], ",", False, 1234), (["5", "1,234"], ",", True, 1234), (["5", "1,234"], ";", False, 1.234),
        (["5", "1.234"], ",", False, 1.234), (["5", "1.234"], "\t", False, 1.234),
    ],
)  # fmt: skip
def test_an_ambiguous_column_with_a_usual_reading_gets_a_note(cells, delimiter, whole, value):
    numbers = numbers_of(cells, delimiter, whole)
    assert numbers.values.tolist() == [5, value]
    assert "column x" in numbers.marks.note_text.lower()


@pytest.mark.parametrize(
    ("cells", "delimiter", "whole"),
    [
        (["5", "1.234"], ";", False), (["5", "1,234"], "\t", False), (["1.234", "1,234"], ",", False),
        (["5", "1.000"], ",", True), (["5", "1.000"], ";", True), (["5", "1,000"], ";", True),
        (["1.5", "1,5"], ";", False),
    ],
)  # fmt: skip
def test_an_ambiguous_column_is_refused_with_its_line(cells, delimiter, whole):
    numbers = numbers_of(cells, delimiter, whole)
    # Rows start on line 3, under sep= and the header; where both marks stand, 1.234 is the first example.
    assert numbers.marks.problem.location == f"line {3 if cells[0] == '1.234' else 4}, column x"
    assert numbers.marks.problem.remedy
    assert np.isnan(numbers.values).all()


def test_what_is_no_number_is_told_apart():
    numbers = numbers_of(
        ["", "NaN", "-inf", "1e999", "N/A", "abc", "1,2,3", "0x10", "1_000", "1e", "٣", "12"]
    )
    assert np.flatnonzero(numbers.blank_mask).tolist() == [0]
    assert np.flatnonzero(numbers.not_finite_mask).tolist() == [1, 2, 3, 4]
    assert np.flatnonzero(numbers.text_mask).tolist() == [5, 6, 7, 8, 9, 10]
    assert np.isnan(numbers.values[:-1]).all()
    assert numbers.values[-1] == 12


def events(user, value=None, task=None):
    return Roles(TableKind.EVENTS, user=user, value=value, task=task)


def counts(user, count):
    return Roles(TableKind.COUNTS, user=user, count=count)


def histogram(size, users):
    return Roles(TableKind.HISTOGRAM, size=size, users=users)


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (EVENTS, events("user_id", "amount", "product")),
        ("rating,movie_id,timestamp,customer\n4,9,1,a\n5,9,2,b\n4,8,3,a\n", events("customer", "rating", "movie_id")),
        ("InvoiceNo,StockCode,Quantity,CustomerID\n1,x,2,17850\n1,y,-3,17850\n2,x,9,13047\n",
         events("CustomerID", "Quantity", "StockCode")),
        ("session_id,user_id\n1,a\n2,a\n3,b\n", events("user_id")),
        ("order_id,email\n1,a\n2,a\n3,b\n", events("email")),
        ("price,seller_name\n1,a\n2,a\n3,b\n", events("seller_name", "price")),
        ("user,price\na,many\nb,3\n", events("user")),
        ("user\na\nb\na\n", events("user")),
        ("user,count\na,3\nb,4\n", counts("user", "count")),
        ("num_rows,author\n3,a\n4,b\n", counts("author", "num_rows")),
        ("user,count\na,3\na,x\n", counts("user", "count")),
        ("user,country,count\na,x,3\nb,y,4\n", counts("user", "count")),
        ("who knows,how often\na,3\nb,4\n", counts("who knows", "how often")),
        ("count\n3\n4\n", counts(None, "count")),
        ("user_id,n\n1,9\n2,3\n5,3\n", counts("user_id", "n")),
        ("size,users\n1,9\n2,3\n", histogram("size", "users")),
        ("contributions,users\n1,9\n2,3\n", histogram("contributions", "users")),
        ("users,contributions\n9,1\n3,2\n", histogram("contributions", "users")),
        ("rows_per_user,num_users\n1,9\n2,3\n", histogram("rows_per_user", "num_users")),
        ("users,tasks\n1,9\n2,3\n", histogram("users", "tasks")),
        ("k,f\n1,9\n2,3\n5,3\n", histogram("k", "f")),
    ],
)  # fmt: skip
def test_roles_are_recognised(text, roles):
    table = table_of(text)
    assert guess_roles(table) == roles
    sentence = explain_roles(roles)
    for column in roles.columns.values():
        assert column in sentence


def test_events_are_reduced_to_histogram_values_totals_and_pairs():
    data = dataset_of(EVENTS)
    # u1 has rows (a, 1.5), (a, 3), (b, 0.25); u2 has (b, 2); the user called NA has (c, 0).
    assert data.histogram == histogram_of([3, 1, 1])
    assert data.totals.totals.tolist() == [0, 2, 4.75]
    assert data.totals.column == data.values.column == "amount"
    assert data.values.user_codes.tolist() == [0, 0, 0, 1, 2]
    assert data.values.values.tolist() == [1.5, 3, 0.25, 2, 0]
    assert data.pairs.num_tasks == 3
    assert data.pairs.user_codes.tolist() == [0, 0, 1, 2]
    assert sorted(data.task_sizes.tolist()) == [1, 1, 2]
    assert data.privacy_unit == ("user_id",)
    assert data.is_private
    assert data.notes == (NA_IS_A_USER, "There are only 3 users: does user_id really say who?")


def test_where_a_value_is_negative_the_totals_count_rows(monkeypatch):
    text, roles = "user,value\na,2\nb,-1\na,3\n", {"user": "user", "value": "value"}
    data = dataset_of(text, kind=TableKind.EVENTS, **roles)
    assert sorted(data.values.values.tolist()) == [-1, 2, 3]
    assert (data.totals.column, data.totals.totals.tolist()) == ("", [1, 2])
    # Every answer adds up the values themselves, whatever their sign.
    assert not any("negative" in note for note in data.notes)
    monkeypatch.setattr("dpcore.dataset.MAX_VALUES", 2)
    data = dataset_of(text, kind=TableKind.EVENTS, **roles)
    assert (data.values, data.totals.column) == (None, "")
    assert "Column value has negative values, so no totals were kept." in data.notes


def test_counts_are_reduced_and_zeros_left_out_with_a_note():
    data = dataset_of("user,count\na,3\nb,0\nc,1\nd,3\n")
    assert data.histogram == histogram_of([3, 1, 3])
    assert (data.totals.totals.tolist(), data.totals.users.tolist()) == ([1, 3], [1, 2])
    assert data.values is None
    assert data.notes[0] == "1 user with a total of 0 is not in the histogram (line 3)."
    assert "all totals are 0" in sentences("user,count\na,0\nb,0\n")[0]
    assert dataset_of("count\n3\n4\n").histogram == histogram_of([3, 4])
    assert dataset_of('user,count\na,"1,234,000"\nb,2\n').histogram == histogram_of([1_234_000, 2])


def test_histograms_are_reduced_and_repeated_sizes_added_up():
    data = dataset_of("size,users\n4,1\n1,10\n2,5\n2,1\n0,3\n9,0\n")
    assert data.histogram == ContributionHistogram(sizes=[1, 2, 4], users=[10, 6, 1])
    assert data.privacy_unit == ()
    for note, (text, message) in zip(data.notes, [("size 0", "line 6"), ("repeats", "line 5")], strict=True):
        assert text in note
        assert message in note
    sentences_found = sentences("size,users\n1,ten\n-2,5\n3,3\n4,4\n5,5\n")
    assert [s.split(":")[0] for s in sentences_found] == ["Line 3, column size", "Line 2, column users"]
    assert "a size above 0" in sentences("size,users\n0,1\n1,0\n")[0]


def test_suspicious_users_get_a_hint():
    one_row_each = dataset_of("user,price\na,1\nb,2\n")
    assert "Every user has exactly one contribution" in one_row_each.notes[0]
    only = dataset_of("user,price\na,1\na,2\n")
    assert "only one user" in only.notes[0]


def test_wrong_roles_are_all_named():
    sentences_found = sentences(EVENTS, user="product", value="nobody", task="product")
    assert len(sentences_found) == 2
    assert '"nobody"' in sentences_found[0]
    assert "chosen for user and for task" in sentences_found[1]
    assert len(sentences(EVENTS, kind=TableKind.HISTOGRAM)) == 2


def test_large_ids_chosen_as_counts_are_not_quoted():
    card = "4539148803436467"
    sentences_found = sentences(
        f"card,user\n{card},a\n{card},b\n", kind=TableKind.COUNTS, user="user", count="card"
    )
    assert "4.54e+15" in sentences_found[0]
    assert card not in " ".join(sentences_found)


def test_totals_are_rounded_up_to_whole_units_and_say_so():
    data = dataset_of("user,value\na,0.1\na,0.2\na,2.7\nb,0.5\nc,0\n", contribution=Contribution.TOTAL)
    assert data.histogram == histogram_of([3, 1])  # 3.0000000000000004 is an error of rounding, not a unit
    assert sorted(data.totals.totals) == pytest.approx([0.0, 0.5, 3.0])
    assert any("1 user with a total of 0" in note for note in data.notes)
    assert any("not whole" in note for note in data.notes)


def test_distinct_tasks_say_how_many_rows_repeat():
    data = dataset_of(EVENTS, contribution=Contribution.DISTINCT_TASKS)
    assert any("1 row repeats a user and task" in note for note in data.notes)
    (unnamed,) = sentences("user,task\na,\nb,\n", task="task", contribution=Contribution.DISTINCT_TASKS)
    assert "no row names a task" in unnamed
    (unchosen,) = sentences("user,value\na,1\n", task=None, contribution=Contribution.DISTINCT_TASKS)
    assert "No column is chosen for task" in unchosen


@pytest.mark.parametrize(
    ("content", "columns", "rows"),
    [
        (" 1  2 3\n 4 5  6\n", 3, 2),
        ("1::2::3\n4::5::6\n", 3, 2),
        ("user day\nana 1\nbob 2\n", 2, 2),
        (
            "full name\nAnn Lee\nJohn Smith\n",
            1,
            2,
        ),  # names have as many words as their header, and no numbers
        ("when\n2024-01-01 12:00\n2024-01-02 13:00\n", 1, 2),
        ("note\n7 dwarfs\n3 little pigs\n", 1, 2),  # not every line has as many
        ("id::note\n1::a b\n2::c:d\n", 2, 2),
        ('a b\n1 "2 3"\n4 5\n', 2, 2),  # as in a log
        ("196\t242\t3\t881250949\n186\t302\t\t\n", 4, 2),  # as MovieLens 100K is published
        (
            "b80344d0\tSOAKIMP12A\t1\nb80344d0\tSOAPDEY12A\t2\n85c1f87f\tSOAKIMP12A\t5\n",
            3,
            3,
        ),  # as Taste Profile
        ("user\t2019\t2020\na\t3\t4\nb\t1\t7\n", 3, 2),
        ("land\tarea\tyear 1\na\t3\t4\nb\t1\t7\n", 3, 2),
    ],
)
def test_blanks_and_double_colons_separate_where_every_line_has_as_many_and_tabs_need_no_names(
    content, columns, rows
):
    table = counting.read_table(content.encode(), "file.txt")
    assert (len(table.columns), len(table.frame)) == (columns, rows)


def test_a_line_with_more_fields_between_blanks_is_named(put):
    path = put(
        " 1 2 3\n" * 60_000 + " 1 2 3 4\n" + " 1 2 3\n", "file.txt"
    )  # far behind what is looked at first

    def counted(small_bytes):
        source = counting.open_files([path], small_bytes=small_bytes)
        return counting.count(source, replace(source.roles, user="column 1"), Disclosure.PRIVATE)

    for small_bytes in (counting.MAX_SMALL_BYTES, 0):
        with pytest.raises(InvalidInput, match="60,001"):
            counted(small_bytes)


def test_names_of_columns_fit_the_file_and_only_where_it_has_none(put):
    unnamed, named = put("1 2\n3 4\n", "a.txt"), put("user,day\na,1\n", "b.csv")
    source = counting.open_files([unnamed])
    for names, says in (
        (("a",), "There are 2 columns, and 1 name"),
        (("a", " a"), "every column needs a name of its own".capitalize()),
        (("", "b"), "Every column needs a name of its own"),
    ):
        with pytest.raises(InvalidInput, match=says):
            source.with_names(names)
    assert source.with_names(("who", "how  much")).columns == ("who", "how much")
    with pytest.raises(InvalidInput, match="name their columns themselves"):
        counting.open_files([named]).with_names(("a", "b"))
