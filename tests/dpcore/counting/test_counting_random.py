"""Random tables in every form a file may have, against counters that saw the rows and no file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from dpcore import counting
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting.duck import Duck
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution

USERS = [
    "a", "b", "c", " a ", "a\t", "", "", " ", "NA", "null", "007", "7", "7.0", "1e5", "-", "true", "A", "x" * 300,
    "zoë", "Ünal", "日本", "a b", "a;b", "a,b", 'say "hi"', '"q"', "'q", "two\nlines", "#1", "=1+1", "a|b", "1,5",
    "\u00a0a", "a\u200b", "\U0001f600", "-3", "2024-01-05", "o'neil", "tab\there", "a\\b", "nan", "inf", "0",
]  # fmt: skip
TASKS = ["", "p", "q", "p ", "x;y", "x,y", "two\nlines", "5'", "ß", "P", "0", "None"]
NOTES = ["", "fine", 'a "quoted" word', "a;b|c", "line\nbreak", "1,5", "  two blanks", "tail ", "é", "\t"]
BLANKS = " \t\n\r\v\f"


def table(draw: random.Random) -> tuple[list[tuple[str, str, float, str]], bool]:
    """Rows of user, task, value and a note; and whether decimals have commas."""
    users, tasks = draw.sample(USERS, draw.randint(1, 9)), draw.sample(TASKS, draw.randint(1, 5))
    rows = [
        (draw.choice(users), draw.choice(tasks), draw.randint(0, 9_999_99) / 100, draw.choice(NOTES))
        for _ in range(draw.choice([1, 2, 5, 30, 300]))
    ]
    return rows, draw.random() < 0.4


def number(value: float, comma: bool, thousands: bool) -> str:
    text = f"{value:,.2f}" if thousands else f"{value:.2f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


def as_text(draw: random.Random, rows: list[tuple[str, str, float, str]], comma: bool) -> bytes:
    """A delimited text in some quotation, delimiter, line end and encoding."""
    stream, thousands = io.StringIO(newline=""), draw.random() < 0.3
    delimiter = draw.choice(",;\t|\x1f^" if not comma else ";\t|")
    end = draw.choice(["\n", "\r\n", "\r"])
    writer = csv.writer(
        stream,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    )
    comment = "# made by hand\n" if delimiter in ",;\t|" else ""  # elsewhere a comment is refused
    stream.write(draw.choice(["", "", "", "\n", f"sep={delimiter}\n", comment]))
    writer.writerow(["user_id", "product", "amount", "note"])
    for user, task, value, note in rows:
        if draw.random() < 0.05:
            stream.write("\n")  # a blank line is no row
        cells = [user, task, number(value, comma, thousands), note]
        writer.writerow(cells)
    text = stream.getvalue().replace("\n", end)
    encodings = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]
    encoding = draw.choice(encodings)
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode("utf-8")


def as_json(draw: random.Random, rows: list[tuple[str, str, float, str]]) -> bytes:
    """JSON Lines or an array; blank cells are null, empty, or not there."""
    objects = []
    for user, task, value, note in rows:
        cells = {"note": note, "amount": value, "user_id": user, "product": task}
        for key in ("user_id", "product"):
            if not cells[key]:
                cells[key] = draw.choice(["", None])
        objects.append(json.dumps(cells, ensure_ascii=draw.random() < 0.5))
    return f"[{','.join(objects)}]".encode() if draw.random() < 0.3 else ("\n".join(objects) + "\n").encode()


def as_parquet(rows: list[tuple[str, str, float, str]]) -> bytes:
    sink = io.BytesIO()
    columns = dict(
        zip(("user_id", "product", "amount", "note"), map(list, zip(*rows, strict=True)), strict=True)
    )
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def as_file(draw: random.Random, rows: list[tuple[str, str, float, str]], comma: bool) -> bytes:
    form = draw.choice(["text"] * 7 + ["JSON"] * 2 + ["Parquet"])
    if form == "Parquet":
        return as_parquet(rows)
    content = as_text(draw, rows, comma) if form == "text" else as_json(draw, rows)
    packing = draw.choice(["", "", "gzip", "padded", "zstd"])
    if packing == "zstd":
        return bytes(pa.Codec("zstd").compress(content, asbytes=True))
    return gzip.compress(content) + b"\0" * 600 * (packing == "padded") if packing else content


def expected(
    rows: list[tuple[str, str, float, str]], missing: MissingUsers, contribution: Contribution
) -> tuple[Counter[str | None], dict[str | None, list[float]], set[tuple[str | None, str]]]:
    """Contributions and values per user and the pairs of user and task, by plain Python."""
    kept = []
    for user, task, value, _ in rows:
        who: str | None = user.strip(BLANKS) or None
        if who is not None or missing is MissingUsers.ONE_USER:
            kept.append((who, task.strip(BLANKS), value))
    values: dict[str | None, list[float]] = defaultdict(list)
    for who, _, value in kept:
        values[who].append(value)
    pairs = {(who, task) for who, task, _ in kept if task}
    if contribution is Contribution.DISTINCT_TASKS:
        return Counter(who for who, _ in pairs), values, pairs
    return Counter(who for who, _, _ in kept), values, pairs


def check(seed: int, folder: Path) -> None:
    draw = random.Random(seed)
    rows, comma = table(draw)
    content = as_file(draw, rows, comma)
    missing = draw.choice(list(MissingUsers))
    contribution = draw.choice([Contribution.ROWS, Contribution.DISTINCT_TASKS])
    counts, values, pairs = expected(rows, missing, contribution)
    totals = {who: sum(its) for who, its in values.items()}
    with_value = draw.random() < 0.7
    roles = Roles(
        TableKind.EVENTS, user="user_id", task="product", value="amount" if with_value else None,
        missing_users=missing, contribution=contribution,
    )  # fmt: skip
    path: Path | counting.Held = counting.Held(content)
    if draw.random() < 0.5:
        path = folder / "file"
        path.write_bytes(content)
    small = draw.choice([0, counting.SMALL_BYTES])
    try:
        source = counting.open_files([path], ["file"], small_bytes=small)
        data = counting.count(source, roles, Disclosure.PRIVATE).dataset
    except InvalidInput as refused:
        said = str(refused)
        assert not counts or not totals, (seed, said)
        assert "names a user" in said or "names a task" in said, (seed, said)
        return
    assert data is not None
    assert counts, seed
    assert data.histogram == ContributionHistogram.from_counts(list(counts.values())), seed
    assert data.pairs is None or data.pairs.user_codes.size == len(pairs), seed
    if with_value and data.totals is not None:
        held = np.repeat(data.totals.totals, 1 if data.totals.users is None else data.totals.users)
        assert np.allclose(np.sort(held), sorted(totals.values())), seed
    if data.values is not None:
        codes = data.values.user_codes
        found = [data.values.values[codes == code].tolist() for code in np.unique(codes)]
        assert sorted(map(sorted, found)) == sorted(map(sorted, values.values())), seed
    tasks = Counter(task for _, task in pairs)
    assert data.pairs is None or sorted(data.task_sizes.tolist()) == sorted(tasks.values()), seed


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**9))
def test_random_tables_are_counted_as_plain_python_counts_them(tmp_path: Path, seed: int) -> None:
    # `make test-long` takes as many of 2,000 as it is told (SEARCH_TIMES=67 for all of them).
    check(seed, tmp_path)


def test_what_cannot_be_text_is_refused_with_its_line(tmp_path: Path) -> None:
    rows = "".join(f"u{k % 50},{k}\n" for k in range(3_000))
    path = tmp_path / "nul.csv"
    path.write_text(f"user_id,v\n{rows}u\0x,1\n{rows}")
    for small in (0, counting.SMALL_BYTES):
        with pytest.raises(InvalidInput, match=r"Line 3,002.*: there is a NUL byte, which no text has"):
            counting.count(
                counting.open_files([path], small_bytes=small),
                Roles(TableKind.EVENTS, user="user_id"),
                Disclosure.PRIVATE,
            )


def test_files_in_memory_are_all_that_a_connection_without_a_folder_reads(tmp_path: Path) -> None:
    import duckdb

    (tmp_path / "a.csv").write_text("a\n1\n")
    duck, held = Duck(), counting.Held(b"a\n1\n")
    try:
        assert duck.rows(f"SELECT a FROM read_csv('{held}')") == [(1,)]
        for statement in (
            f"SELECT * FROM read_csv('{tmp_path / 'a.csv'}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'b.csv'}'",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                duck.rows(statement)
    finally:
        duck.close()
