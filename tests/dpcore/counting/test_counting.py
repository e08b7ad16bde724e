"""Files of every kind and size, against counters written by hand."""

import base64
import gc
import gzip
import os
import pickle
import tempfile
import threading
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import replace

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.counting import duck, reduce, reduce_files
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import (
    LONG,
    SIZES,
    SMALL,
    WHO,
    count_files,
    histogram_of,
    histogram_of_users,
    sentences,
    zstd,
)

EVENTS = "user_id,product,amount\nu1,a,1.5\nu2,b,2\nu1,a,3\nNA,c,0\nu1,b,0.25\n"
ROLES = Roles(TableKind.EVENTS, user="user_id", value="amount", task="product")


def test_the_place_of_a_mark_that_does_not_fit_is_said(put):
    path = put("user;value\na;1.5\nb;2\nc;1,5\n")
    sentences_found = sentences(path, Roles(TableKind.EVENTS, user="user", value="value"))
    assert sentences_found[0].startswith("Line 4, column value: numbers with decimal points and with")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("bom.csv", lambda text: b"\xef\xbb\xbf" + text.encode()),
        ("utf16be.csv", lambda text: b"\xfe\xff" + text.encode("utf-16-be")),
        ("no mark.csv", lambda text: text.encode("utf-16-le")),
        ("no mark be.csv.gz", lambda text: gzip.compress(text.encode("utf-16-be"))),
        ("utf32.csv", lambda text: text.encode("utf-32")),
        ("latin.csv", lambda text: text.encode("latin-1")),
        ("windows.csv", lambda text: text.replace("é", "€").encode("cp1252")),
        ("two.gz", lambda text: gzip.compress(text[:20].encode()) + gzip.compress(text[20:].encode())),
        ("file.csv.zst", lambda text: zstd(text.encode())),
        ("latin.gz", lambda text: gzip.compress(text.encode("latin-1"))),
        ("cr.csv", lambda text: text.replace("\n", "\r").encode()),
        ("two systems.csv", lambda text: text.replace("\n", "\r\n", 900).encode()),
        ("two other systems.csv", lambda text: text.replace("\n", "\r", 900).encode()),
        ("blank lines.csv", lambda text: b"\n\n" + text.encode() + b"\n\n"),
        ("odd [1]*?.csv", str.encode),
        ("it's; drop table.csv", str.encode),
    ],
)
def test_every_form_of_a_text_file_gives_the_same_counts(put, name, encode):
    path = put(encode("user,amount\n" + "".join(f"né{k % 7},{k}\n" for k in range(4_000))), name)
    data = count_files(path, Roles(TableKind.EVENTS, user="user", value="amount"), counts_copies=True)
    assert data.histogram == histogram_of_users(k % 7 for k in range(4_000))
    assert data.totals.totals.sum() == sum(range(4_000))
    notes = [note for note in data.notes if "not UTF-8" not in note]
    assert notes == ["There are only 7 users: does user really say who?"]
    assert len(data.notes) - 1 == ("latin" in name or "windows" in name)


@pytest.mark.parametrize("small_bytes", SIZES)
def test_several_files_are_one_and_their_columns_may_stand_in_any_order(put, small_bytes):
    one = put("user_id,product,amount\na,x,1\nb,y,2\n", "one.csv")
    two = put("amount;user_id;product\n3,5;a;x\n4;c;z\n", "two.csv")
    data = count_files([one, two], replace(ROLES, value=None), small_bytes)
    assert data.histogram == histogram_of([2, 1, 1])
    assert data.pairs.num_tasks == 3
    assert "one.csv and 1 more" in data.name
    (said,) = sentences([one, put("user_id,produkt,amount\na,x,1\n", "three.csv")], ROLES, small_bytes)
    differ = "File three.csv: unlike one.csv, this file lacks column product"
    assert said.startswith(differ)


def test_columns_that_differ_only_in_case_or_hold_sql_are_told_apart(put):
    path = put('User,user,"count; drop table source",""" OR 1=1"\na,x,1,2\na,y,2,3\nb,z,4,5\n')
    data = count_files(
        path, Roles(TableKind.EVENTS, user="User", value="count; drop table source", task='" OR 1=1')
    )
    assert data.histogram == histogram_of([2, 1])
    assert data.totals.totals.tolist() == [3, 4]


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(LONG.encode())[:-500], "gzip file is damaged or cut off"),
        (gzip.compress(LONG.encode())[:60_000], "gzip file is damaged or cut off"),
        (b"\x1f\x8b\x08\x00rubbish", "gzip file is damaged or cut off"),
        (zstd(LONG.encode())[:-100], "Zstandard file is damaged or cut off"),
        (f"{LONG}u\0x,1\n".encode(), "Line 60,002.*: there is a NUL byte, which no text has"),
        (b"\x28\xb5\x2f\xfdrubbish", "Zstandard file is damaged or cut off"),
        (gzip.compress(gzip.compress(LONG.encode())), "gzip archive"),
        (b"PAR1rubbishPAR1", "Parquet file is damaged"),
        (b"PK\x03\x04xl/rubbish", "Excel workbook|ZIP"),
        (LONG.encode() + b"u1,1,1\nu2\nu3,1,2\n",
         "Line 60,002 of file.csv: 3 fields, but the header names 2; also line 60,004"),
        (LONG.encode() + b'u1,"1\n', "Line 60,002 of file.csv: a quotation mark is opened and not closed"),
        (b'{"user_id": 1}\nnot json\n', "Line 2: this is not a JSON object"),
        (b'{"user_id": 1}\n' * 30_000 + b"{]\n", "Line 30,001 of file.csv: this is not a JSON object"),
        (b'{"user_id": ' + b"[" * 100_000, "not a JSON object"),
        (b"[1, 2, {}]", "no header|text table|not an array|one object|one column|only one|no row|there is no"),
        (b"[{}, 2]", "not an array of objects"),
        (b"PARE" + bytes(range(256)), "File file.csv: the Parquet file is encrypted. Write it without"),
        (b"user_id,v\n" + b"x" * 300_000 + b"\na,1\n", "Line 2: the line is longer than 120,000 bytes"),
        (("user_id,v\n" + "x" * 300_000 + "\n").encode("utf-16"), "Line 2: the line is longer than"),
        (b'user_id,v\na,"' + b"x\n" * 200_000, "Line 2: a quotation mark is opened and not closed within"),
        (b"x" * 300_000, "Line 1: the line is longer than"),
        (b'{"user_id": "' + b"x" * 300_000 + b'"}\n', "Line 1: the line is longer than 262,144 bytes"),
        (b"# a note\n" * 3, "no header row|header and no rows|first line"),
        (b"# a note\nuser_id,v\n" + b"a,1,2\n", "Line 3( of file.csv)?: "),
    ],
)  # fmt: skip
def test_hostile_files_get_their_sentence(put, content, says):
    sentences_found = sentences(put(content))
    assert pytest.RaisesExc(InvalidInput, match=says).matches(InvalidInput(sentences_found)), sentences_found


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_parquet_file_is_called_so(tmp_path, plaintext_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class OwnKeys(encryption.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return base64.b64encode(key)

    factory = encryption.CryptoFactory(OwnKeys)
    config = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["user_id"]}, plaintext_footer=plaintext_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), config)
    table, path = pa.table({"user_id": ["a", "b"], "v": [1, 2]}), tmp_path / "file.parquet"
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    # Whether its footer is encrypted, too, is whether the sentence names the file.
    assert "parquet file is encrypted. write it without" in sentences(path)[0].lower()


COMMENTED = [
    ("# made on Monday, by x\nuser_id,v\n", 1, "user_id"),
    ('# it is 5" long\n\n#\nuser_id,v\n', 2, "user_id"),
    ("##fileformat=1\n#user_id,v\n", 1, "#user_id"),
    ("# user_id,v\n", 0, "# user_id"),
    ("#user_id,v\n", 0, "#user_id"),
]


@pytest.mark.few(3)
@pytest.mark.thinned
@pytest.mark.parametrize(("head", "comments", "user"), COMMENTED)
@pytest.mark.parametrize("repeats", [10, 20_000], ids=["read at once", "longer than what is looked at first"])
def test_comment_lines_above_the_header_are_left_out_and_said(put, head, comments, user, repeats):
    path = put(head + "u1,1\nu2,2\nu1,3\n" * repeats)
    data = count_files(path, Roles(TableKind.EVENTS, user=user, value="v"))
    assert data.histogram == histogram_of([2 * repeats, repeats])
    said = [note for note in data.notes if "above the column names" in note]
    assert [note.split(" line")[0] for note in said] == ([f"{comments} comment"] if comments else [])
    assert any("line of column names begins with #" in note for note in data.notes) == ("#" in user)


def test_comments_do_not_move_the_lines_that_are_named(put):
    path = put('# 5" long\n# of it\nuser_id,v\na,1\nb,x\n')
    sentences_found = sentences(path, Roles(TableKind.EVENTS, user="user_id", value="v"), SMALL)
    assert sentences_found[0].startswith("Line 5, column v: text where a number must stand")
    assert "header row stands among the data again" in sentences(put("# of it\n" + LONG + "user_id,v\n"))[0]


def test_a_file_that_grew_or_went_is_called_so(put, monkeypatch):
    path = put(LONG)
    source = counting.open_files([path], small_bytes=0)

    def refused():
        with pytest.raises(InvalidInput) as error:
            counting.count(source, WHO, Disclosure.PRIVATE)
        return str(error.value)

    real = reduce_files.FileReduction.reduce

    def grow_and_reduce(self, more):
        with path.open("ab") as file:
            file.write(more)
        return real(self)

    # Whatever was counted, or refused, of a file that was written to meanwhile is not what it holds.
    for more in (b"u1,1\n", b"u1,1,1\n", b'u1,"'):
        path.write_text(LONG)
        source = counting.open_files([path], small_bytes=0)
        monkeypatch.setattr(
            reduce_files.FileReduction, "reduce", lambda self, more=more: grow_and_reduce(self, more)
        )
        assert "File file.csv: the file was written to while it was counted. Choose it again" in refused()
    monkeypatch.undo()
    assert "the file was written to since it was looked at" in refused()
    path.unlink()
    assert "File file.csv: the file is gone, or cannot be read. Put it back" in refused()


def test_broken_parquet_in_the_middle_gets_a_sentence(parquet):
    path = parquet(user_id=[f"u{k}" for k in range(300_000)], v=list(range(300_000)))
    content = bytearray(path.read_bytes())
    content[1000:200_000] = os.urandom(199_000)
    path.write_bytes(content)
    assert "Parquet file is damaged or cut off" in sentences(path)[0]


def test_a_missing_file_a_folder_and_none_get_a_sentence(tmp_path):
    assert "No such file" in sentences(tmp_path / "nothing.csv")[0]
    assert "folder" in sentences(tmp_path)[0]
    assert "no file is chosen" in sentences([])[0].lower()


def test_bad_values_are_named_three_times_and_counted(put):
    path = put("user_id,v\na,1\nb,x\nc,\nd,NaN\ne,-2.5\nf,\ng,y\nh,z\ni,w\n")
    roles = replace(ROLES, value="v", task=None)
    starts = (
        "Line 4, column v: the cell is blank; also line 7.", "Line 5, column v: no number up to ±1e100 (NaN).",
        "Line 3, column v: text where a number must stand; also line 8 and line 9; 4 rows in all.",
        "Line 6, column v: a negative number (-2.5).",
    )  # fmt: skip
    # Where rows are counted a negative value is one like others.
    for contribution, wrong in ((Contribution.TOTAL, starts), (Contribution.ROWS, starts[:3])):
        sentences_found = sentences(path, replace(roles, contribution=contribution))
        for item, start in zip(sentences_found, wrong, strict=True):
            assert item.startswith(start)


def test_users_whose_names_hold_nul_bytes_are_counted_as_users(parquet):
    path = parquet(user_id=["u\0a", "u\0a", "u\0b", "u\0c", "u\0d"], amount=[1, 2, 3, 4, 5])
    (sentence,) = sentences(path, replace(ROLES, task=None))
    # Five rows of four users.
    assert sentence.startswith("Row 1, column user_id: there is a NUL byte")
    assert "; also row 2 and row 3; 4 users in all." in sentence


# Ids that say so: they may stand in no message, no note and no data set, whatever is wrong.
SECRET = "s3cr3t"
EVENTS_OF = Roles(TableKind.EVENTS, user="user", value="v")
COUNTS_OF = Roles(TableKind.COUNTS, user="user", count="v")


@pytest.mark.few(7)
@pytest.mark.thinned
@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("user,v\n{0}1,1\n{0}2,2\n{0}1,3\n", EVENTS_OF), ("user,v\n{0}1,x\n{0}2,\n", EVENTS_OF),
        ("user,v\nx,{0}1\ny,{0}2\n", COUNTS_OF), ("user,v\nx,{0}1\ny,{0}2\n", EVENTS_OF),
        ("user,v\n{0}1,1\n{0}1,2\n", COUNTS_OF),
        ("user,v\n{0}1,1\n,2\n{0}2,0\n", replace(COUNTS_OF, missing_users=MissingUsers.ONE_USER)),
        ("user,v\n{0}1,1\n{0}2,2,3\n", EVENTS_OF), ("user,v\n{0}1,1,2\n{0}2,2\n", EVENTS_OF),
        ('user,v\n{0}1,1\n"{0}2,2\n', EVENTS_OF), ('user,v\n"{0}1,1\n{0}2,2\n', EVENTS_OF),
        ("user,v\n{0},{0}\n{0},3\n", EVENTS_OF), ("{0}1,5\n{0}2,6\n", EVENTS_OF), ("{0}1,5\n{0}1,5\n", EVENTS_OF),
        ("{0}1,{0}1\n{0}1,7\n", EVENTS_OF), ("user,v\n" + "u,1\n" * 50_000 + "{0},1,1\n", EVENTS_OF),
        ("user,v\n" + "u,1\n" * 50_000 + '{0},"1\n', EVENTS_OF),
        ("user,v\n" + "u,1\n" * 50_000 + '"{0}"x,1\n', EVENTS_OF),
    ],
)  # fmt: skip
@pytest.mark.parametrize("small_bytes", SIZES)
def test_ids_stand_nowhere(put, text, roles, small_bytes):
    try:
        said = pickle.dumps(count_files(put(text.format(SECRET)), roles, small_bytes))
    except InvalidInput as refused:
        said, behind = "".join(traceback.format_exception(refused)), refused
        while behind := behind.__cause__ or behind.__context__:  # of which a traceback shows not all
            said += str(behind)
        said = said.encode()
    assert SECRET.encode() not in said


def damaged(good, random_):
    broken = bytearray(good)
    for _ in range(int(random_.integers(1, 5))):
        odd = [b'"', b",", b"\n", b"\0", b"\r", b"1e999", b"\xff", b"{"][int(random_.integers(8))]
        cut_out = int(random_.integers(1, 40))
        changes = [(1, random_.bytes(1)), (cut_out, b""), (0, odd), (len(broken), b""), (8, random_.bytes(8))]
        at, (length, new) = int(random_.integers(len(broken))), changes[int(random_.integers(5))]
        broken[at : at + length] = new
        broken = broken or bytearray(b"x")
    return bytes(broken)


def workspaces():
    """Folders of this process."""
    return {
        name for name in os.listdir(tempfile.gettempdir()) if name.startswith(f"sweetspot-{os.getpid()}-")
    }


@pytest.mark.long
def test_corrupt_files_give_a_sentence_or_an_answer(put, parquet, workbook):
    text = "user_id,product,amount\n" + "".join(f'u{k % 9},"p,{k % 4}",{k}.5\n' for k in range(60))
    records = "".join(f'{{"user_id": "u{k % 9}", "product": {k % 4}, "amount": {k}}}\n' for k in range(60))
    goods = {
        "a.csv": text.encode(), "b.csv": text.encode("utf-16"), "c.csv.gz": gzip.compress(text.encode()),
        "d.zst": zstd(text.encode()), "e.jsonl": records.encode(),
        "f.parquet": parquet(user_id=list("aabbc"), product=list("xyxyx"), amount=[*range(5)]).read_bytes(),
        "g.xlsx": workbook([["user_id", "product", "amount"], ["a", "x", 1], ["b", "y", 2]]).read_bytes(),
    }  # fmt: skip
    workspaces_before = workspaces()
    outcomes, said = Counter(), []
    number = 70 * int(os.environ.get("SWEETSPOT_SEARCH") or 1)
    for seed in range(number):
        name = list(goods)[seed % len(goods)]
        path = put(damaged(goods[name], np.random.default_rng(seed)), name)
        try:
            # To describe a file and to read it later takes longer than to read it: every fifth.
            source = counting.open_files([path], small_bytes=0 if seed % 5 == 0 else SMALL)
            counting.count(source, source.roles, Disclosure.PRIVATE)
            outcomes[name, "read"] += 1
        except InvalidInput as refused:
            said += [problem.sentence for problem in refused.problems]
            outcomes[name, "refused"] += 1
    assert sum(outcomes.values()) == number
    assert all(sentence.endswith(".") and len(sentence) < 700 for sentence in said)
    assert all(outcomes[name, "refused"] for name in goods), outcomes
    assert not workspaces() - workspaces_before


def test_facets_above_their_limit_are_said(put, monkeypatch):
    for limit in ("MAX_VALUES", "MAX_TOTALS", "MAX_PAIRS"):
        monkeypatch.setattr(reduce.dataset, limit, 2)
    data = count_files(put(EVENTS), ROLES)
    assert data.values is None
    assert data.pairs is None
    assert sorted(data.task_sizes.tolist()) == [1, 1, 2]  # a: u1; b: u1, u2; c: NA
    # The binned totals have the users and, bin by bin, the mean: so the sum is kept.
    assert data.totals.users.sum() == 3
    assert float(data.totals.totals @ data.totals.users) == pytest.approx(6.75)
    text = " ".join(data.notes)
    assert "values of 5 rows were not kept" in text
    assert "pairs of user and task were not kept" in text
    assert "bins in which they differ by at most 0.23\N{NO-BREAK SPACE}%" in text


@pytest.mark.long
def test_progress_rises_to_one_and_stop_is_a_result(parquet):
    rng = np.random.default_rng(1)
    path = parquet(user_id=rng.integers(0, 200_000, 1_500_000), v=rng.random(1_500_000))
    shares_seen = []
    data = count_files(path, progress=shares_seen.append)
    assert data.histogram.num_rows == 1_500_000
    assert shares_seen == sorted(shares_seen)
    assert shares_seen[-1] == 1.0
    source = counting.open_files([path])
    before = set(threading.enumerate())
    stopped = counting.count(source, WHO, Disclosure.PRIVATE, should_stop=lambda: True)
    assert stopped.dataset is None
    assert "Stopped" in stopped.summary_sentence
    # No query runs on, and the same source counts again.
    assert not [item for item in set(threading.enumerate()) - before if "(work)" in item.name]
    assert counting.count(source, WHO, Disclosure.PRIVATE).dataset.histogram == data.histogram


def test_what_progress_raises_ends_the_query_and_comes_out(parquet):
    path = parquet(user_id=np.arange(400_000), v=np.arange(400_000))

    class Rerun(BaseException):
        pass

    def rerun(fraction):
        raise Rerun

    with pytest.raises(Rerun):
        count_files(path, progress=rerun)


@pytest.mark.long
def test_memory_limits_too_small_get_a_sentence(parquet):
    path = parquet(user_id=np.arange(2_000_000), v=np.arange(2_000_000))
    source = counting.open_files([path])
    with pytest.raises(InvalidInput, match=r"memory limit of 2,000,000 bytes"):
        counting.count(source, WHO, Disclosure.PRIVATE, memory_limit=2_000_000)


@pytest.mark.parametrize("in_memory", [False, True])
def test_duckdb_reads_only_its_files_and_fetches_nothing(put, tmp_path, in_memory):
    allowed = counting.MemoryFile(b"a\n1\n") if in_memory else put("a\n1\n", "a.csv")
    workspace = None if in_memory else counting.Workspace()
    with closing(duck.Duck() if workspace is None else duck.Duck([allowed], workspace.folder)) as session:
        assert session.fetch_rows(f"SELECT a FROM read_csv('{allowed}')") == [(1,)]
        for statement in (
            f"SELECT * FROM read_csv('{put('b', 'b.csv')}')",
            "SELECT * FROM read_csv('https://example.org/a.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/c.csv'",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                session.fetch_rows(statement)
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert session.fetch_rows(f"SELECT current_setting('{setting}')") == [(False,)]


def test_codes_of_users_are_the_same_in_every_facet(put):
    # u1 has values 1 and 3 and tasks a and b; u2 has one value and no task.
    path = put("user_id,product,amount\nu1,a,1\nu2,,2\nu1,b,3\n,a,9\n")
    data = count_files(path, replace(ROLES, missing_users=MissingUsers.ONE_USER))
    code_of_value = dict(zip(data.values.values.tolist(), data.values.user_codes.tolist(), strict=True))
    tasks = Counter(data.pairs.user_codes.tolist())
    assert tasks == {code_of_value[1.0]: 2, code_of_value[9.0]: 1}
    assert code_of_value[1.0] == code_of_value[3.0]


@pytest.mark.long
def test_no_name_of_a_column_outlives_what_was_counted(put):
    def remembered(name):
        gc.collect()
        names = {
            Roles: lambda roles: (roles.user,),
            ibis.Schema: lambda schema: schema.names,
            sqlglot.exp.Identifier: lambda identifier: (identifier.name,),
        }
        return [one for one in gc.get_objects() if type(one) in names and name in names[type(one)](one)]

    roles = Roles(TableKind.EVENTS, user="maiden_name", value="sick_days", task="ward")
    content = "maiden_name,ward,sick_days\nmaiden_name1,a,1\nb,a,2\nb,c,1\n"
    for small_bytes in SIZES:
        count_files(put(content), roles, small_bytes)
    assert "maiden_name" in counting.write_recipe(counting.ENGINES["duckdb"], roles, "source")[2]
    del roles
    assert not remembered("maiden_name")


@pytest.mark.parametrize("small_bytes", [0, SMALL])
def test_tasks_are_named_in_the_order_of_their_codes(put, small_bytes):
    rows = [("u2", 7, "b"), ("u1", 12, "a"), ("u2", 12, "a"), ("u2", 7, "c"), ("u3", "", "a")]
    path = put("user,film,day\n" + "".join(f"{user},{film},{day}\n" for user, film, day in rows))
    for columns in (("film",), ("day", "film")):
        roles = Roles(TableKind.EVENTS, user="user", task=columns[0], further_task=columns[1:])
        sentences_found = count_files(path, roles, small_bytes)
        cells = [(user, {"film": str(film), "day": day}) for user, film, day in rows if film]
        expected_pairs = [(user, " × ".join(cell[column] for column in columns)) for user, cell in cells]
        users = list(dict.fromkeys(user for user, *_ in rows))
        pairs = {
            (users[u], sentences_found.task_names[t]) for u, t in zip(*_codes(sentences_found), strict=True)
        }
        assert pairs == set(expected_pairs)
        assert sentences_found.digest == replace(sentences_found, task_names=()).digest


def _codes(sentences_found):
    return sentences_found.pairs.user_codes.tolist(), sentences_found.pairs.task_codes.tolist()
