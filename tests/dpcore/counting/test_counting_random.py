"""Random tables in every form a file may have, against counters that saw the rows and no file."""

import csv
import gzip
import io
import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import SIZES, histogram_of

USERS = [
    "a", "b", "c", " a ", "a\t", "", "", " ", "NA", "null", "007", "7", "7.0", "1e5", "-", "true", "A", "x" * 300,
    "zoë", "Ünal", "日本", "a b", "a;b", "a,b", 'say "hi"', '"q"', "'q", "two\nlines", "#1", "=1+1", "a|b", "1,5",
    "\u00a0a", "a\u200b", "\U0001f600", "-3", "2024-01-05", "o'neil", "tab\there", "a\\b", "nan", "inf", "0",
]  # fmt: skip
SHOPS = ["s", "t", " s", ""]
TASKS = ["", "p", "q", "p ", "x;y", "x,y", "two\nlines", "5'", "ß", "P", "0", "None"]
NOTES = ["", "fine", 'a "quoted" word', "a;b|c", "line\nbreak", "1,5", "  two blanks", "tail ", "é", "\t"]
BLANKS = " \t\n\r\v\f"
COLUMNS = ("user_id", "shop", "product", "amount", "note")
Rows = list[tuple[str, str, str, float, str]]
FORMS = ["text"] * 7 + ["JSON"] * 2 + ["Parquet", "workbook"]


def table(draw: random.Random) -> Rows:
    users, tasks = draw.sample(USERS, draw.randint(1, 9)), draw.sample(TASKS, draw.randint(1, 5))
    largest = draw.choice([5, 9_999_99])  # few values make some totals zero or whole
    return [
        (
            draw.choice(users),
            draw.choice(SHOPS),
            draw.choice(tasks),
            draw.randint(0, largest) / 100,
            draw.choice(NOTES),
        )
        for _ in range(draw.choice([1, 2, 5, 30, 300]))
    ]


def number(value: float, comma: bool, thousands: bool) -> str:
    text = f"{value:,.2f}" if thousands else f"{value:.2f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


def as_text(draw: random.Random, rows: Rows) -> bytes:
    """A delimited text in some quotation, delimiter, line end and encoding."""
    stream, comma, thousands = io.StringIO(newline=""), draw.random() < 0.4, draw.random() < 0.3
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
    writer.writerow(COLUMNS)
    for user, shop, task, value, note in rows:
        if draw.random() < 0.05:
            stream.write("\n")  # a blank line is no row
        writer.writerow([user, shop, task, number(value, comma, thousands), note])
    text = stream.getvalue().replace("\n", end)
    encodings = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]
    encoding = draw.choice(encodings)
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode("utf-8")


def as_json(draw: random.Random, rows: Rows) -> bytes:
    """JSON Lines or an array; blank cells are null, empty, or not there."""
    objects = []
    for row in rows:
        cells: dict[str, Any] = dict(reversed(list(zip(COLUMNS, row, strict=True))))
        for key in ("user_id", "shop", "product"):
            if not cells[key]:
                cells[key] = draw.choice(["", None])
        objects.append(json.dumps(cells, ensure_ascii=draw.random() < 0.5))
    return f"[{','.join(objects)}]".encode() if draw.random() < 0.3 else ("\n".join(objects) + "\n").encode()


def as_parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))), sink)
    return sink.getvalue()


def as_workbook(rows: Rows) -> bytes:
    book, sink = openpyxl.Workbook(), io.BytesIO()
    for index, row in enumerate([COLUMNS, *rows], 1):
        for column, value in enumerate(row, 1):
            if value != "":
                cell = book.active.cell(index, column, value)
                cell.data_type = "s" if isinstance(value, str) else "n"  # =1+1 is a name here
    book.save(sink)
    return sink.getvalue()


def as_file(draw: random.Random, form: str, rows: Rows) -> bytes:
    if form in ("Parquet", "workbook"):
        return as_parquet(rows) if form == "Parquet" else as_workbook(rows)
    content = as_text(draw, rows) if form == "text" else as_json(draw, rows)
    packing = draw.choice(["", "", "gzip", "padded", "zstd"])
    if packing == "zstd":
        return bytes(pa.Codec("zstd").compress(content, asbytes=True))
    return gzip.compress(content) + b"\0" * 600 * (packing == "padded") if packing else content


Who = tuple[str, ...] | None


def expected(rows: Rows, roles: Roles) -> tuple[Counter[Who], dict[Who, list[float]], set[tuple[Who, str]]]:
    """Contributions and values per user and the pairs of user and task, by plain Python."""
    values: dict[Who, list[float]] = defaultdict(list)
    pairs = set()
    for user, shop, task, value, _ in rows:
        cells = [cell.strip(BLANKS) for cell in ([user, shop] if roles.further_user else [user])]
        who = tuple(cells) if all(cells) else None
        if who is not None or roles.missing_users is MissingUsers.ONE_USER:
            values[who].append(value)
            pairs |= {(who, task.strip(BLANKS))} if task.strip(BLANKS) else set()
    if roles.contribution is Contribution.DISTINCT_TASKS:
        return Counter(who for who, _ in pairs), values, pairs
    if roles.contribution is Contribution.ROWS:
        return Counter({who: len(its) for who, its in values.items()}), values, pairs
    # In cents, which are whole; a user whose total is 0 is in no histogram.
    cents = {who: round(100 * sum(its)) for who, its in values.items()}
    return +Counter({who: -(-total // 100) for who, total in cents.items()}), values, pairs


def check(seed: int, form: str, folder: Path) -> None:
    draw = random.Random(seed)
    rows = table(draw)
    content = as_file(draw, form, rows)
    contribution = draw.choice(list(Contribution))
    with_value = contribution is Contribution.TOTAL or draw.random() < 0.7
    roles = Roles(
        TableKind.EVENTS, user="user_id", further_user=("shop",) if draw.random() < 0.3 else (), task="product",
        value="amount" if with_value else None, missing_users=draw.choice(list(MissingUsers)),
        contribution=contribution,
    )  # fmt: skip
    counts, values, pairs = expected(rows, roles)
    totals = {who: sum(its) for who, its in values.items()}
    path: Path | counting.MemoryFile = counting.MemoryFile(content)
    if draw.random() < 0.5:
        path = folder / "file"
        path.write_bytes(content)
    try:
        source = counting.open_files([path], ["file"], small_bytes=draw.choice(SIZES))
        data = counting.count(source, roles, Disclosure.PRIVATE).dataset
    except InvalidInput as refused:
        refusal = str(refused)
        assert not counts or not totals, (seed, refusal)
        assert any(why in refusal for why in ("names a user", "names a task", "all totals are 0")), (
            seed,
            refusal,
        )
        return
    assert counts, seed
    assert (data.privacy_unit, data.contribution) == (roles.privacy_unit, contribution), seed
    assert data.histogram == histogram_of(counts.values()), seed
    assert (data.values is None) == (not with_value or contribution is not Contribution.ROWS), seed
    assert data.pairs is None or data.pairs.user_codes.size == len(pairs), seed
    if with_value and data.totals is not None:
        totals_held = np.repeat(data.totals.totals, 1 if data.totals.users is None else data.totals.users)
        assert np.allclose(np.sort(totals_held), sorted(totals.values())), seed
    if data.values is not None:
        codes = data.values.user_codes
        values_by_user = [data.values.values[codes == code].tolist() for code in np.unique(codes)]
        assert sorted(map(sorted, values_by_user)) == sorted(map(sorted, values.values())), seed
    tasks = Counter(task for _, task in pairs)
    assert data.pairs is None or sorted(data.task_sizes.tolist()) == sorted(tasks.values()), seed


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**9), form=st.sampled_from(FORMS))
def test_random_tables_are_counted_as_plain_python_counts_them(tmp_path: Path, seed: int, form: str) -> None:
    # `make test-search` takes as many of 2,000 as it is told (SEARCH_TIMES=50 for all of them).
    check(seed, form, tmp_path)
