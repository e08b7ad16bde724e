"""Large files, read again as they turn out to be: second headers, blanks, counts, copies, little memory."""

import time
from collections import Counter
from contextlib import closing
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import attempts, diagnose, facets, reduce_files, user_amounts
from dpcore.counting.duck import Duck, StoppedError
from dpcore.counting.formats import MAX_LINE_BYTES
from dpcore.data.column_names import MAX_COLUMNS
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import (
    SIZES,
    SMALL,
    WHO,
    count_files,
    gzipped,
    histogram_of,
    histogram_of_users,
    sentences,
    zstd,
)

TASKS = replace(WHO, task="product")
ROWS = "".join(f"u{k % 50},p{k % 7},{k % 11}\n" for k in range(40_000))


@pytest.mark.long
@pytest.mark.parametrize(
    ("header", "pack", "lines_above", "roles"),
    [
        ("user_id,product,amount", bytes, "\n\n", TASKS),
        ("user_id,product,amount", gzipped, "sep=,\n", WHO),
        ('"user  id","product","amount"', bytes, "", replace(WHO, user="user id")),
        (" user_id ,product, amount", bytes, "", WHO),
    ],
)
def test_a_second_header_is_refused_with_its_line(put, header, pack, lines_above, roles):
    path = put(pack(f"{lines_above}{header}\n{ROWS}{header}\n{ROWS}".encode()))
    sentences_found = sentences(path, roles)
    line = 40_002 + lines_above.count("\n")
    assert sentences_found[0].startswith(f"Line {line:,}: the header row stands among the data again")


@pytest.mark.long
@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize(
    ("missing", "end", "contribution"),
    [
        (MissingUsers.ONE_USER, "were counted as one user", Contribution.ROWS),
        (MissingUsers.LEAVE_OUT, "were left out", Contribution.DISTINCT_TASKS),
    ],
)
def test_what_is_left_out_is_named_with_its_first_row(put, missing, end, contribution, small_bytes):
    header, block = "user_id,product\n", "a,p\n" * 5 + "b,q\n" * 5
    one, two = put(header + block, "one.csv"), put(f"{header}{block}a,\n{block} ,p\n,q\n", "two.csv")
    roles = replace(TASKS, missing_users=missing, contribution=contribution)
    for paths, text in (([two], ""), ([one, two], " of two.csv")):
        nobody = f"2 rows without a user {end} (first: line 23{text})."
        notes = count_files(paths, roles, small_bytes).notes
        assert nobody in notes
        (task,) = (note for note in notes if note.startswith("1 row without a task was left out"))
        assert task.endswith(f" (line 12{text}).")
        assert nobody in count_files(paths, replace(WHO, missing_users=missing), small_bytes).notes


@pytest.mark.long
@pytest.mark.parametrize("roles", [TASKS, replace(WHO, user="product")])
def test_windows_1252_that_shows_late_and_in_any_column_is_read_as_such(put, roles):
    # The last byte is one of five that Windows-1252 leaves undefined.
    late = "u1,café,1\nu1,café\nu1,".encode("cp1252") + b"\x81,1\n"
    path = put(f"user_id,product,amount\n{ROWS}".encode() + late)
    data = count_files(path, roles)
    assert any("read as Windows-1252" in note for note in data.notes)
    assert any("One line has fewer fields" in note and "line 40,003" in note for note in data.notes)
    further = ["u1"] * 3 if roles.user == "user_id" else ["café", "café", "\x81"]
    at = 0 if roles.user == "user_id" else 1
    assert data.histogram == histogram_of_users(
        [*(row.split(",")[at] for row in ROWS.splitlines()), *further]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("pack", "end"),
    [
        (bytes, ""),
        (bytes, "\n"),
        (bytes, "\n" * 130_000),
        (gzipped, "\r\n"),
        (gzipped, "\n" * 130_000),
        (zstd, ""),
    ],
    ids=["plain", "newline", "130,000 newlines", "gzip", "gzip, 130,000 newlines", "Zstandard"],
)
def test_the_longest_last_line_is_counted_and_a_longer_one_is_refused(put, pack, end):
    def file(more):
        last_text = f"{'x' * (MAX_LINE_BYTES - 4 + more)},1,1{end}"
        return put(pack(f"user_id,product,amount\n{ROWS}{last_text}".encode()))

    assert count_files(file(0)).histogram.num_rows == 40_001
    for more in (2, 9_000_000):  # far longer than what is read at once
        (said,) = sentences(file(more), memory_limit=40_000_000)
        assert said.startswith("Line 40,002 of file.csv: the line is longer than 120,000 bytes"), more


def test_stop_ends_the_look_at_the_ends(put, monkeypatch):
    path = put(gzipped(f"user_id,product,amount\n{ROWS}".encode()))
    monkeypatch.setattr(diagnose.TruncationCheck, "_check_end", lambda self, *_: self._end_event.wait(60))
    source = counting.open_files([path], small_bytes=0)
    real, counted_by = diagnose.TruncationCheck.raise_if_damaged, []
    # Only when the rows are counted are the ends waited for.
    monkeypatch.setattr(
        diagnose.TruncationCheck, "raise_if_damaged", lambda self: counted_by.append(self) or real(self)
    )
    stopped = counting.count(source, WHO, Disclosure.PRIVATE, should_stop=lambda: bool(counted_by))
    assert stopped.dataset is None
    assert counted_by


@pytest.mark.long
def test_an_open_quotation_mark_is_refused_with_its_line(put):
    short = put(f'user_id,product,amount\n{ROWS}u1,p\n"u2,p,1\n{ROWS}')
    opened = "Line 40,003 of file.csv: a quotation mark is opened and"
    assert sentences(short)[0].startswith(f"{opened} not closed")
    with pytest.raises(InvalidInput, match=f"{opened} never closed"):
        diagnose.refuse_open_quotes(counting.open_files([short], small_bytes=0).relations, None)
    fine = put(f'user_id,product,amount\n{ROWS}u1,p\n"u""2,p",1\n{ROWS}', "fine.csv")
    assert count_files(fine).histogram.num_rows == 80_002


@pytest.mark.thinned
@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize(
    ("filler", "odd"),
    [
        ("u,1\n", '"a" "b",1\n'), ('"u",1\n', 'a,"b" "c"\n'), ("u,1\n", '"a ""b""" "c",1\n'),
        ("u,1\n", '"a"  "b\nc",1\n'),
    ],
)  # fmt: skip
def test_a_field_that_opens_a_second_quotation_is_refused_with_its_line(put, small_bytes, filler, odd):
    rows = 10 if small_bytes else 100_000  # beyond what is looked at first
    file = put("user_id,note\n" + rows * filler + odd + filler)
    (said,) = sentences(file, small_bytes=small_bytes)
    of = " of file.csv" if not small_bytes else ""
    assert said.startswith(f"Line {rows + 2:,}{of}: a field has a second quotation behind a closed one")


@pytest.mark.long
def test_marks_inside_a_quotation_open_none(put):
    body = '"a ""b"" ""c""",1\n"" ,2\nd"" "e,3\n' + 100_000 * "f g,1\n"
    file = put('# "of" "all"\nuser_id,note\n' + body)
    assert [count_files(file, small_bytes=small_bytes).histogram.num_users for small_bytes in SIZES] == [3, 3]
    endless = put('user_id,note\na,1\n"b" ,"' + 200_000 * "c d\n" + '"" "e')
    opened = "Line 3: a quotation mark is opened and not closed within 131,072 characters"
    assert opened in sentences(endless, small_bytes=SMALL)[0]


def test_where_threads_do_not_fit_together_one_reads_alone(put, monkeypatch):
    path = put(f"user_id,product,amount\n{ROWS * 6}")
    monkeypatch.setattr(
        "dpcore.counting.relation.LARGE_BUFFER_BYTES", 1_000_001
    )  # not a multiple of 16: DuckDB refuses
    sizes_read_alone = []
    real = diagnose.refuse_open_quotes
    monkeypatch.setattr(
        diagnose,
        "refuse_open_quotes",
        lambda in_parts, stop: sizes_read_alone.append(len(in_parts)) or real(in_parts, stop),
    )
    assert count_files(path).histogram == ContributionHistogram([4_800], [50])
    assert sizes_read_alone == [1]


@pytest.mark.long
@pytest.mark.parametrize("missing", MissingUsers)
@pytest.mark.parametrize(
    "odd", ["", " u1,a,1\n", "u1\t,a,1\n", '" ",a,1\n', '"",a,1\n', "   ,a,1\n", ",a,1\n", "\u00a0u1,a,1\n"]
)
def test_blanks_around_users_are_none_of_their_name(put, missing, odd):
    people = ["u1", "u2", "u1", "007", "7", "7.0", "+7", "1e3", "1000"]
    path = put("user_id,product,amount\n" + "".join(f"{who},a,1\n" for who in people) + odd * 2)
    truth = Counter(people)
    name = odd.split(",")[0].strip('"').strip(" \t")  # a no-break space is no blank: engines keep it, too
    if odd and (name or missing is MissingUsers.ONE_USER):
        truth[name] += 2
    assert count_files(path, replace(WHO, missing_users=missing)).histogram == histogram_of(truth.values())


COUNTS = Roles(TableKind.COUNTS, user="user", count="count")


def test_counts_per_user_up_to_the_largest(put):
    path = put("user,count\na,1000000000000\nb,999999999999\nc,0\n,4\n,5\n")
    data = count_files(path, COUNTS)
    assert data.histogram == ContributionHistogram([999999999999, 10**12], [1, 1])
    one = count_files(path, replace(COUNTS, missing_users=MissingUsers.ONE_USER))
    assert one.histogram == ContributionHistogram([9, 999999999999, 10**12], [1, 1, 1])
    (twice,) = sentences(put("user,count\na,1\nb,2\na,3\nb,3\n"), COUNTS)
    places_named = "Line 4, column user: the user has a row already (line 2); also line 5 (line 3)."
    assert twice.startswith(places_named)
    assert "one row is one contribution" in twice


def test_bad_counts_each_get_their_sentence(put):
    cells = ["3", "many", "-1", "0", "NaN", "1e300", "2.5", "", "inf", "-2", "1e12", "1000000000001"]
    bad = put("user,count\n" + "".join(f"u{index},{cell}\n" for index, cell in enumerate(cells)))
    starts = [
        "Line 9, column count: the cell is blank.",
        "Line 6, column count: no number up to ±1e100 (NaN); also line 7 (1e300) and line 10 (inf).",
        "Line 3, column count: text where a number must stand.",
        "Line 4, column count: a negative number (-1); also line 11 (-2).",
        "Line 8, column count: not a whole number (2.5).",
        "Line 13, column count: more than 1,000,000,000,000 (1e+12).",
    ]
    for sentence, start in zip(sentences(bad, COUNTS), starts, strict=True):
        assert sentence.startswith(start)


@pytest.mark.long
def test_histograms_of_every_size_count(put):
    sizes = range(1, 30_000)
    path = put("size,users\n" + "".join(f"{size},{size % 7}\n" for size in sizes) + "3,2\n0,1\n")
    data = count_files(path, Roles(TableKind.HISTOGRAM, size="size", users="users"))
    truth = Counter({size: size % 7 for size in sizes if size % 7}) + Counter({3: 2})
    assert data.histogram == ContributionHistogram(sorted(truth), [truth[size] for size in sorted(truth)])
    assert "4,286 rows of size 0 or without users were left out (first: line 8)." in data.notes
    assert any("repeats a size that stood before (first: line 30,001)" in note for note in data.notes)


def test_totals_beyond_what_a_number_holds_are_said(put):
    path = put("user_id,product,amount\na,x,1e100\na,x,1e100\nb,x,1\n")
    roles = replace(WHO, value="amount")
    assert count_files(path, roles).totals.totals.tolist() == [1.0, 2e100]
    sentences_found = sentences(path, replace(roles, contribution=Contribution.TOTAL))
    assert sentences_found[0].startswith("Column amount: the total of one user is above 1,000,000,000,000")


def test_copies_are_counted_on_request_and_otherwise_it_is_said_that_they_were_not(put):
    path = put("user_id,product,amount\na,x,1\na,x,1\na, x,1\nb,x,1\n,x,1\n,x,1\nb,y,1\n")
    assert facets.NO_COPIES_NOTE in count_files(path).notes
    with_copies = count_files(path, counts_copies=True).notes
    assert "2 rows are exact copies of an earlier one." in with_copies
    assert facets.NO_COPIES_NOTE not in with_copies
    both = replace(WHO, missing_users=MissingUsers.ONE_USER)
    assert "3 rows are exact copies of an earlier one." in count_files(path, both, counts_copies=True).notes
    in_memory = count_files(path, WHO, SMALL).notes
    assert "2 rows are exact copies of an earlier one (first: line 3)." in in_memory
    two = put("user_id,product\na,x\na,x\n", "two.csv")
    assert not any("copies" in note for note in count_files(two, counts_copies=True).notes)


@pytest.mark.long_but("Contribution.ROWS-MissingUsers.LEAVE_OUT-False")
@pytest.mark.parametrize(
    ("contribution", "missing", "several"),
    [
        (Contribution.ROWS, MissingUsers.ONE_USER, True),
        (Contribution.ROWS, MissingUsers.LEAVE_OUT, False),
        (Contribution.DISTINCT_TASKS, MissingUsers.LEAVE_OUT, True),
        (Contribution.TOTAL, MissingUsers.ONE_USER, False),
    ],
)
def test_in_parts_the_answer_is_the_same(put, monkeypatch, contribution, missing, several):
    rng = np.random.default_rng(5)
    text = "user_id,shop,product,amount\n" + "".join(
        f"{'' if r == 3 else f'u{r}'},{['s', 't', ''][r % 3]},p{rng.integers(9)},{rng.integers(100) / 4}\n"
        for r in rng.zipf(1.7, 2_000).tolist()
    )
    path = put(text)
    value = contribution is not Contribution.DISTINCT_TASKS
    roles = Roles(
        TableKind.EVENTS, user="user_id", further_user=("shop",) if several else (), task="product",
        value="amount" if value else None, missing_users=missing, contribution=contribution,
    )  # fmt: skip
    full = count_files(path, roles, counts_copies=True)
    monkeypatch.setattr(attempts, "PASS_COUNTS", (1, 5))
    real, calls = reduce_files.FileReduction._reduce, []

    def too_little(self):
        calls.append(self._num_passes)
        if len(calls) < 3:
            raise duckdb.OutOfMemoryException
        return real(self)

    monkeypatch.setattr(reduce_files.FileReduction, "_reduce", too_little)
    shares_seen = []
    in_parts = count_files(path, roles, counts_copies=True, progress=shares_seen.append)
    assert calls == [1, 1, 5]
    assert in_parts.histogram == full.histogram
    assert in_parts.totals == full.totals
    assert sorted(in_parts.task_sizes.tolist()) == sorted(full.task_sizes.tolist())
    assert in_parts.values is None
    assert in_parts.pairs is None
    assert shares_seen == sorted(shares_seen)
    other_notes = [note for note in in_parts.notes if "memory limit is too small" not in note]
    assert other_notes == list(full.notes)
    assert len(in_parts.notes) > len(other_notes)
    calls.clear()
    users = [line.split(",")[0] or None for line in text.splitlines()[1:]]
    truth = Counter(users if missing is MissingUsers.ONE_USER else filter(None, users))
    assert count_files(path, replace(WHO, missing_users=missing)).histogram == histogram_of(truth.values())


@pytest.mark.long
def test_more_users_than_memory_holds_are_counted(tmp_path):
    path = tmp_path / "file.csv"
    duckdb.sql(
        f"COPY (SELECT md5((range // 2)::VARCHAR) || '-' || md5(range::VARCHAR)[:20] AS user_id, 1 AS v, 2 AS w "
        f"FROM range(1500000)) TO '{path}'"
    )
    data = count_files(path, memory_limit=60_000_000)
    assert data.histogram == ContributionHistogram([1], [1_500_000])


@pytest.mark.long
@pytest.mark.parametrize("small_bytes", SIZES)
def test_parquet_is_held_to_the_limit_of_columns(parquet, small_bytes):
    path = parquet(**{f"c{at}": [1] for at in range(MAX_COLUMNS)})
    assert len(counting.open_files([path], small_bytes=small_bytes).columns) == MAX_COLUMNS
    assert len(user_amounts._open_by_header([path], None, "").columns) == MAX_COLUMNS
    path = parquet(**{f"c{at}": [1] for at in range(MAX_COLUMNS + 1)})
    with pytest.raises(InvalidInput, match="There are 1,001 columns; at most 1,000 are read"):
        counting.open_files([path], small_bytes=small_bytes)
    with pytest.raises(InvalidInput, match="The data cannot be read as a table"):
        user_amounts._open_by_header([path], None, "")


def test_duckdb_does_not_compare_every_two_columns(tmp_path):
    with closing(Duck()) as held, closing(Duck([], tmp_path)) as large:
        for duck in (held, large):
            # What two cells have in common would be a projection of its own.
            plan = str(duck.fetch_rows("EXPLAIN SELECT range ** 7 AS a, range ** 7 + 1 AS b FROM range(9)"))
            assert plan.count("Projection ─") == 1


def test_blank_lines_above_a_large_table_are_said(put):
    path = put("\n" * 300_000 + "user_id,v\na,1\n")
    with pytest.raises(InvalidInput, match=r"The first 262,144 bytes are blank\. Remove the blank lines"):
        counting.open_files([path], small_bytes=0)
    assert counting.open_files([path]).columns == ("user_id", "v")


@pytest.mark.parametrize("pack", [gzipped, zstd])
def test_a_file_that_is_cut_off_is_not_counted_to_its_end(put, monkeypatch, pack):
    def count_for_long(files):
        for _ in range(1_000):
            if files._should_stop():
                raise StoppedError
            time.sleep(0.01)
        raise AssertionError("nothing has ended it")

    monkeypatch.setattr(reduce_files.FileReduction, "_mend_and_reduce", count_for_long)
    users = (
        np.random.default_rng(1).bytes(400_000).hex("\n", 16)
    )  # too many bytes to be unpacked at the first look
    path = put(pack(f"user_id\n{users}\n".encode())[:-20], "file")
    assert "file is damaged or cut off" in sentences(path)[0]


def test_a_histogram_of_too_many_sizes_is_refused(put, monkeypatch):
    roles = Roles(TableKind.HISTOGRAM, size="size", users="users")
    path = put("size,users\n" + "".join(f"{k},1\n" for k in (1, 2, 3, 3)))
    monkeypatch.setattr(reduce_files, "MAX_SIZES", 3)
    assert count_files(path, roles).histogram.num_users == 4
    monkeypatch.setattr(reduce_files, "MAX_SIZES", 2)
    assert sentences(path, roles)[0].startswith("Column size: there are more than 2 distinct sizes.")
