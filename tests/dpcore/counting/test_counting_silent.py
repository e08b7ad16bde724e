"""What once was counted wrong without a word, against counters of what was written into the files."""

import datetime
import itertools
import json
import os
import re
import uuid
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting.__main__ import main
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import (
    SIZES,
    SMALL,
    WHO,
    count_files,
    gzipped,
    histogram_of,
    sentences,
    zstd,
)
from tests.dpcore.counting.counts import histogram_of_users as of

VALUE = Roles(TableKind.EVENTS, user="user_id", value="v")


def refused(paths, roles=WHO, small_bytes=0):
    return " ".join(sentences(paths, roles, small_bytes))


# Users and tasks as floats, with NaN beyond the rows that are looked at first.
GAPS = np.random.default_rng(2).integers(1, 300, 20_000).astype(np.float64)
GAPS[5_000::7] = np.nan


@pytest.mark.parametrize("missing", MissingUsers)
def test_nan_among_float_users_is_nobody(parquet, missing):
    truth = Counter(None if np.isnan(user) else user for user in GAPS.tolist())
    nobody = truth[None]
    if missing is MissingUsers.LEAVE_OUT:
        del truth[None]
    data = count_files(parquet(user_id=GAPS, v=np.arange(GAPS.size)), replace(WHO, missing_users=missing))
    assert data.histogram == histogram_of(truth.values())
    (said,) = (note for note in data.notes if note.startswith(f"{nobody:,} rows without a user"))
    assert said.endswith("(first: row 5,001).")


def test_nan_among_float_tasks_is_no_task(parquet):
    users = np.arange(GAPS.size) % 40
    pairs = {(u, t) for u, t in zip(users.tolist(), GAPS.tolist(), strict=True) if t == t}
    roles = replace(WHO, task="t", contribution=Contribution.DISTINCT_TASKS)
    assert count_files(parquet(user_id=users, t=GAPS), roles).histogram == of(user for user, _ in pairs)


def test_nan_among_whole_floats_is_no_damage(parquet):
    path = parquet(user_id=list("abca"), v=pa.array([1.0, np.nan, 3.0, 1.0]))
    assert count_files(path).histogram == of("abca")
    assert "no number up to ±1e100 (nan)" in refused(path, VALUE)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis 12.0 still calls what DuckDB 2.0 renames
def test_nan_in_a_file_that_duckdb_reads_as_an_engine_is_nobody(parquet):
    table = counting.open_table(counting.connect("duckdb://"), str(parquet(user_id=GAPS, v=GAPS)))
    data = counting.count_table(table, WHO, Disclosure.PRIVATE, name="events").dataset
    assert data.histogram == of(GAPS[~np.isnan(GAPS)].tolist())


def json_lines(users, name="user_id", **further):
    return "".join(json.dumps({name: user, **further}) + "\n" for user in users)


def test_columns_that_differ_in_case_are_told_apart(parquet, put):
    upper, lower = ["x", "x", "y"], ["a", "b", "c"]
    lines = "".join(json.dumps({"User": u, "user": w}) + "\n" for u, w in zip(upper, lower, strict=True))
    for path in (parquet(User=upper, user=lower), put(lines, "file.jsonl")):
        assert count_files(path, replace(WHO, user="User")).histogram == of(upper), path
        assert count_files(path, replace(WHO, user="user")).histogram == of(lower), path
    other_path = put('{"user":"a","User":"z"}\n{"USER":"q","User":"z","user":"b"}\n', "b.jsonl")
    first = put('{"USER":"q","User":"x","user":"a"}\n', "a.jsonl")
    assert count_files([first, other_path], replace(WHO, user="user")).histogram == of("aab")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["user  id", " user id ", "user\nid", "user\u00a0id"])
def test_untidy_names_are_the_same_columns(parquet, put, name):
    users, roles = ["a", "b", "a"], replace(WHO, user="user id")
    lines = json_lines(users, name, **{"": 1, "~/v": 2})
    for path in (parquet(**{"": [0, 1, 2], name: users}), put(lines, "file.jsonl")):
        assert count_files(path, roles).histogram == of(users), path
    two = [parquet(**{name: users, "v": [1, 2, 3]}), parquet(**{"v ": [4], "user id": ["a"]})]
    assert count_files(two, roles).histogram == of([*users, "a"])


@pytest.mark.parametrize("folder", ["user_id=5", "x0=7"])
def test_folders_called_like_columns_are_folders(parquet, put, folder):
    users = ["a", "b", "a"]
    for path in (
        parquet(f"{folder}/f.parquet", user_id=users, v=[1, 2, 3]),
        put("user_id,v\n" + "".join(f"{user},1\n" for user in users), f"{folder}/f.csv"),
        put(json_lines(users, v=1), f"{folder}/f.jsonl"),
    ):
        assert count_files(path).histogram == of(users), path


KINDS = {  # of users in a file: as they are written, and who they are
    "whole": ([7, 8, 9], ["7", "8", "9"]),
    "small": (pa.array([7, 8], pa.int8()), ["7", "8"]),
    "unsigned": (pa.array([7, 2**64 - 1], pa.uint64()), ["7", str(2**64 - 1)]),
    "float": (pa.array([7.0, np.nan, 8.0, None, 2.5]), ["7", "8", "2.5"]),
    "float32": (pa.array([7.0, np.nan, 2.5], pa.float32()), ["7", "2.5"]),
    "decimal": ([Decimal("7.00"), Decimal("2.50")], ["7", "2.5"]),
    "text": (["7", "08", "2.5", " 8 ", ""], ["7", "08", "2.5", "8"]),
    "bytes": (pa.array([b"7", b"", b"08 ", None], pa.binary()), ["7", "08"]),
    "large": ([2**53, 2**53 + 1, 2**53 + 2], [str(2**53 + k) for k in range(3)]),
    "k.csv": ("user_id\n7\n08\n\n2.5\n", ["7", "08", "2.5"]),
    "k.jsonl": (
        '{"user_id":7.0}\n{"user_id":"7"}\n{"user_id":7}\n{"user_id":2.50}\n{"user_id":NaN}\n{"user_id":null}\n'
        '{"user_id":8e0}\n{"user_id":9007199254740993}\n{"user_id":18446744073709551615}\n',
        ["7", "7", "7", "2.5", "8", str(2**53 + 1), str(2**64 - 1)],
    ),
}


@pytest.mark.long
def test_users_are_the_same_whatever_the_types_of_the_files(parquet, put):
    paths = {
        kind: put(cells, kind) if isinstance(cells, str) else parquet(user_id=cells)
        for kind, (cells, _) in KINDS.items()
    }
    # In memory each file is text before it meets another, so that all of them can be joined at once.
    everybody = of(user for _, users in KINDS.values() for user in users)
    assert count_files(list(paths.values()), WHO, SMALL).histogram == everybody
    # DuckDB has to find a type for the files of each pair: that of text stands for all that are text already.
    sources = {kind: counting.open_files([path], small_bytes=0) for kind, path in paths.items()}
    texts = {"text", "k.csv", "k.jsonl", "bytes"}
    for one, other_path in itertools.combinations(KINDS, 2):
        if {one, other_path} & texts and "text" not in (one, other_path):
            continue
        parts = (*sources[one].relations, *sources[other_path].relations)
        dataset = counting.count(replace(sources[one], relations=parts), WHO, Disclosure.PRIVATE).dataset
        assert dataset.histogram == of([*KINDS[one][1], *KINDS[other_path][1]]), (one, other_path)


@pytest.mark.long
@pytest.mark.parametrize("small_bytes", SIZES)
def test_values_of_several_types_are_one_column(parquet, put, small_bytes):
    paths = [
        parquet(user_id=["a"], v=pa.array([1], pa.uint32())), parquet(user_id=["b"], v=pa.array([1.25])),
        parquet(user_id=["a"], v=[Decimal("2.50")]), put("user_id,v\nb,7\n"),
        put('{"user_id":"b","v":1e2}\n', "j.jsonl"),
    ]  # fmt: skip
    assert count_files(paths, VALUE, small_bytes).totals.totals.tolist() == [3.5, 108.25]
    paths.append(put("user_id,v\nb,oh\n", "bad.csv"))
    assert "of bad.csv" in refused(paths, VALUE, small_bytes)


DAY = datetime.date(2024, 5, 1)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("column", "users"),
    [
        (pa.array([1, 2, 1, None, 3, 1], pa.int32()), [1, 2, 1, None, 3, 1]),
        (pa.array([Decimal(1), Decimal(2), None], pa.decimal128(25, 2)), [1, 2, None]),
        (pa.array([True, False, True, None]), [True, False, True, None]),
        (pa.array(["1", "2", "1", None], pa.large_string()), ["1", "2", "1", None]),
        (pa.array(["1", "2", "1", None]).dictionary_encode(), ["1", "2", "1", None]),
        (pa.array([b"a", b"a\0", b"", b" a ", None, b"\xff"], pa.binary()), ["a", "a\0", None, "a", None, "ÿ"]),
        (pa.array([uuid.UUID(int=k).bytes for k in (5, 6, 5)], pa.uuid()), [5, 6, 5]),
        (pa.array([{"a": 1, "b": b} if b else None for b in ["x", "y", "x", ""]]), ["x", "y", "x", None]),
        (pa.array([["a, b"], ["a", "b"], ["a", "b"]]), ["ab", "a b", "a b"]),
        (pa.array([DAY, None, DAY]), [DAY, None, DAY]),
        (pa.array([1, 2, 1]).cast(pa.timestamp("ns")), [1, 2, 1]),
        (pa.array([1, 2, 1]).cast(pa.timestamp("us", "Europe/Berlin")), [1, 2, 1]),
    ],
    ids=lambda its: str(its.type).replace(" ", "") if isinstance(its, pa.Array) else "",
)  # fmt: skip
def test_parquet_users_of_every_type(parquet, column, users):
    path = parquet(user_id=column, v=[1] * len(users))
    assert [count_files(path, WHO, small_bytes).histogram for small_bytes in SIZES] == [of(users)] * 2


def test_numbers_of_more_digits_than_duckdb_keeps_are_said(parquet):
    wide = pa.array([Decimal(10**60), Decimal(10**60 + 1)], pa.decimal256(70, 0))
    notes = count_files(parquet(user_id=wide, v=[1, 2])).notes
    assert any("only the first 15" in note for note in notes)


@pytest.mark.parametrize("small_bytes", SIZES)
def test_numbers_in_json_are_numbers(put, small_bytes):
    cells = [
        ("1", "1"), ("1.0", "1"), ("1e0", "1"), ("10e-1", "1"), ('"1"', "1"), ('"1.0"', "1.0"), ("1.5", "1.5"),
        ("1.50", "1.5"), ("NaN", None), ("NaN", None), ("null", None), ('""', None), ("1e400", "1e400"),
        ("true", "true"), ("123456789012345678901234567890", "…0"), ("123456789012345678901234567891", "…1"),
        ('{"a":1}', "a"), ('{"a": 1}', "a"),
    ]  # fmt: skip
    path = put("".join(f'{{"user_id":{cell}}}\n' for cell, _ in cells), "file.jsonl")
    assert count_files(path, WHO, small_bytes).histogram == of(user for _, user in cells)


@pytest.mark.long
@pytest.mark.parametrize("small_bytes", SIZES)
def test_a_key_that_stands_twice_is_refused_and_a_late_one_said(put, small_bytes):
    lines = '{"user_id":"a","v":1}\n' * 20_000
    twice = put(lines + '{"user_id":"a","v":1,"user_id":"b"}\n', "twice.jsonl")
    assert re.search(r"Line 20,001.*: a key stands twice in one object", refused(twice, WHO, small_bytes))
    late = put(lines + '{"user_id":"b","t":7}\n', "late.jsonl")
    source = counting.open_files([late], small_bytes=small_bytes)
    is_said = any("later keys are not offered" in note for note in source.head.notes)
    assert ("t" in source.columns, is_said) == ((False, True) if small_bytes == 0 else (True, False))
    assert count_files(late, WHO, small_bytes).histogram == of(["a"] * 20_000 + ["b"])


@pytest.mark.parametrize("small_bytes", SIZES)
def test_json_may_begin_with_a_byte_order_mark(put, small_bytes):
    lines = b"\xef\xbb\xbf" + json_lines("abbc").encode()
    assert count_files(put(lines, "file.jsonl"), WHO, small_bytes).histogram == of("abbc")
    assert count_files(put(gzipped(lines), "file.jsonl.gz"), WHO, small_bytes).histogram == of("abbc")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_json_array_and_a_workbook_count_beside_a_large_file(put, workbook, mark):
    array = put(mark + b'[{"user_id":"a"},{"user_id":"b"},{"user_id":"b"}]', "file.json")
    big = put("user_id\n" + "z\n" * 1_000)
    paths = [array, big, workbook([["user_id"], ["a"], ["z"], [None]])]
    assert count_files(paths).histogram == of([*"abbaz", *"z" * 1_000])


@pytest.mark.few(4)
@pytest.mark.parametrize("delimiter", ["\x01", "\x1f", "^", "~", ":", "#", "!", "%", "@", "*", "$", "&", "="])
def test_any_delimiter_that_every_line_has_is_one(put, delimiter):
    users = [f"u{k % 7}" for k in range(100)]
    rows = "".join(f'{user}{delimiter}"p{delimiter}{index % 3}"\n' for index, user in enumerate(users))
    path = put(f"user_id{delimiter}product\n{rows}")
    assert counting.open_files([path]).columns == ("user_id", "product")
    assert count_files(path).histogram == of(users)


@pytest.mark.parametrize("delimiter", [" ", "^", "/", "-"])
def test_a_delimiter_can_be_named(put, delimiter):
    path = put(f"sep={delimiter}\nuser_id{delimiter}v\na{delimiter}1\nb{delimiter}2\na{delimiter}3\n")
    assert count_files(path, VALUE).totals.totals.tolist() == [2, 4]


@pytest.mark.parametrize(
    "text",
    [
        "user id\nAnna Smith\nBo Li\n", "user\n12:30\n12:40\n", "mail\na@b.c\nd@e.f\n", "who#\n1#\n2#\n",
        "user\n#a\n#b\n",
    ],
)  # fmt: skip
def test_one_column_stays_one(put, text):
    assert len(counting.open_files([put(text)]).columns) == 1


@pytest.mark.parametrize("small_bytes", SIZES)
def test_a_quotation_mark_behind_a_blank_opens_a_field(put, small_bytes):
    path = put('user_id, product, v\n  "a" , "x, y", 1\nb, "", 2\n "a", "say ""z""", 3\n "", "q\nr", 4\n')
    data = count_files(path, replace(WHO, task="product"), small_bytes)
    assert data.histogram == of("aba")
    assert sorted(data.task_sizes.tolist()) == [1, 1]


@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize(("header", "task"), [("user_id,product", None), ("product,user_id", "product")])
def test_files_joined_with_byte_order_marks_are_refused(put, header, task, small_bytes):
    text = f"\ufeff{header}\n" + "".join(f"a{k % 5},b{k % 5}\n" for k in range(2_000))
    roles = replace(WHO, task=task)
    assert "header row stands among the data again" in refused(put(text + text), roles, small_bytes)
    assert count_files(put(text), roles, small_bytes).histogram == of(k % 5 for k in range(2_000))


@pytest.mark.parametrize("small_bytes", SIZES)
def test_rows_of_blanks_are_no_rows(put, small_bytes):
    roles = replace(WHO, missing_users=MissingUsers.ONE_USER)
    data = count_files(put('user_id,v\na,1\n,\n\t,\t\n " " , \n\v,\n,2\n'), roles, small_bytes)
    assert data.histogram == ContributionHistogram([1], [2])


def test_rows_that_a_quotation_mark_makes_one_are_said(put):
    # The mark in line 3 opens a quotation that the one in line 5 ends: lines 3 to 5 are one row.
    path = put('user_id\tnote\nu1\tfine\nu2\t"great\nu3\tx\nu4\tso "z"\nu5\ty\n')
    # It ends in the middle of a field, so it was no quotation.
    assert refused(path).startswith(
        "Line 3: a quotation mark is opened and not closed at the end of its field"
    )
    # One that ends at the end of a field can be meant.
    data = count_files(put(path.read_text().replace('so "z"', 'z"')), WHO, SMALL)
    assert data.histogram == of(["u1", "u2", "u5"])
    several = "1 row takes several lines (the longest from line 3)"
    assert any(note.startswith(several) for note in data.notes)
    data_without_marks = count_files(put('user_id,note\nu1,"fine"\n\n\nu2,"a ""z"""\n'), WHO, SMALL)
    assert not any("several lines" in note for note in data_without_marks.notes)


def test_a_long_quotation_over_the_end_of_what_is_looked_at_first(put):
    users = [f"u{k % 7}" for k in range(32_000)]
    note = '"' + "a line\n" * 2_000 + '"'
    for number in (29_000, 29_500, 30_000):  # some 250,000 bytes lie before it
        rows = "".join(f"{u},{note if k == number else k}\n" for k, u in enumerate(users))
        assert count_files(put(f"user_id,note\n{rows}")).histogram == of(users)


@pytest.mark.parametrize("small_bytes", SIZES)
def test_ids_in_a_piece_without_a_header_are_not_quoted(put, small_bytes):
    first, second = put("user_id,v\na,1\n", "one.csv"), put("s3cr3t,x\nb,2\n", "two.csv")
    said = refused([first, second], WHO, small_bytes)
    assert "File two.csv: unlike one.csv, this file" in said
    assert "s3cr3t" not in said
    assert "s3cr3t" not in refused([second, first], replace(WHO, user="v"), small_bytes)


@pytest.mark.parametrize("says", [b"A1", b"A1:B3", b"A1:A900"])
def test_a_sheet_that_says_a_wrong_size_is_read_whole(workbook, says):
    def wrong(sheet):
        sheet, changed = re.subn(rb'<dimension ref="[^"]*"', b'<dimension ref="%s"' % says, sheet)
        assert changed == 1
        return sheet

    users = [f"u{k % 7}" for k in range(60)]
    data = count_files(workbook([["user_id", "v"], *([user, 1] for user in users)], sheet=wrong), VALUE)
    assert data.histogram == of(users)
    assert data.totals.totals.sum() == 60


def test_errors_of_formulas_are_no_users(workbook):
    users = ["a", "#N/A", "b", "#N/A", "#REF!", "a"]
    data = count_files(workbook([["user_id", "v"], *([user, 1] for user in users)]))
    assert data.histogram == of("aba")
    errors = "3 cells hold an error, such as #N/A (first: line 3); it counts as missing."
    assert errors in data.notes
    assert "3 rows without a user were left out (first: line 3)." in data.notes


def test_merged_cells_are_said(workbook):
    def merge(book):
        book.active.merge_cells("A2:A4")
        book.active.merge_cells("B3:B4")

    data = count_files(workbook([["user_id", "v"], ["a", 1], ["", 2], ["", ""], ["b", 3]], merge))
    assert data.histogram == of("ab")
    assert any(
        note.startswith("2 ranges of cells are merged: only the first cell of each") for note in data.notes
    )


def test_a_hidden_sheet_is_passed_over(workbook):
    def hide(book):
        book.active.sheet_state = "hidden"
        visible_sheet = book.create_sheet("Seen")
        for cell in ("user_id", "z", "z"):
            visible_sheet.append([cell])
        book.active = 1

    data = count_files(workbook([["user_id"], ["a"], ["b"]], hide))
    assert data.histogram == of("zz")
    assert "The first visible one of 2 sheets was read." in data.notes


@pytest.mark.parametrize("text", ["user,count\na,1.000\nb,2.000\n", "user;count\na;1,000\nb;2,000\n"])
def test_counts_with_a_mark_for_thousands_are_refused(put, text):
    roles = Roles(TableKind.COUNTS, user="user", count="count")
    assert "can be read with decimals or with thousands" in refused(put(text), roles)


def test_text_beside_nobody_is_no_matter_where_values_are_added_up(put):
    data = count_files(
        put("user_id,v\n,oh\nb,2\n,-1\na,1\nb,5\n"), replace(VALUE, contribution=Contribution.TOTAL), SMALL
    )
    assert data.histogram == ContributionHistogram([1, 7], [1, 1])
    assert data.totals.totals.tolist() == [1, 7]


LINES = "user_id,v\n" + "".join(f"u{k % 97},{k}\n" for k in range(50_000))
USERS = of(k % 97 for k in range(50_000))


PACKED = gzipped(LINES.encode())
ZSTANDARD_TO_SKIP = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"


def with_a_bit_changed(packed, at):
    return packed[:at] + bytes([packed[at] ^ 1]) + packed[at:][1:]


@pytest.mark.thinned
@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize(
    ("content", "is_counted"),
    [
        (with_a_bit_changed(PACKED, -8), False), (with_a_bit_changed(PACKED, -4), False),
        (PACKED + b"\0" * 512, True), (PACKED + b"junk", False), (ZSTANDARD_TO_SKIP + zstd(LINES.encode()), True),
    ],
    ids=["wrong checksum", "wrong length", "zeros behind it", "other bytes behind it", "a frame to skip before it"],
)  # fmt: skip
def test_a_packed_file_is_counted_whole_or_called_damaged(put, content, is_counted, small_bytes):
    path = put(content, "file")
    if is_counted:
        assert count_files(path, WHO, small_bytes).histogram == USERS
    else:
        assert "gzip file is damaged or cut off" in refused(path, WHO, small_bytes)


def test_a_file_named_twice_is_refused_and_a_copy_is_said(put, tmp_path):
    one, copy = put(LINES, "one.csv"), put(LINES, "copy.csv")
    other_path = put(LINES.replace(",49999", ",49998"), "other.csv")
    (tmp_path / "link.csv").symlink_to(one)
    for path_again in (one, tmp_path / "link.csv", tmp_path / ".." / tmp_path.name / "one.csv"):
        assert f"File {path_again.name}: this file is named twice" in refused([one, other_path, path_again])
    for small_bytes in SIZES:
        data = count_files([one, other_path, copy], WHO, small_bytes)
        assert "copy.csv is an exact copy of one.csv." in data.notes
    assert data.histogram == of([k % 97 for k in range(50_000)] * 3)
    assert not any("copy.csv" in note for note in count_files([one, other_path]).notes)


def test_pipes_are_refused(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with names here")
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe or a device cannot be read twice" in refused(tmp_path / "pipe")


def test_what_is_to_be_counted_is_not_written_over(put, tmp_path, capsys):
    path = put(LINES)
    (tmp_path / "link.csv").symlink_to(path)
    for target in (path, tmp_path / "link.csv"):
        assert main(["--from", str(path), "--user", "user_id", "--to", str(target)]) == 1
    assert "is to be read" in capsys.readouterr().err
    assert path.read_text() == LINES
