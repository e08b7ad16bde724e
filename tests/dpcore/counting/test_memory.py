"""What reading and counting take of memory, measured in a process of their own, whatever the file."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.counting import attempts, heads, workbooks
from dpcore.counting import text as counting_text
from dpcore.data.column_roles import Roles, TableKind

ROOT = Path(__file__).resolve().parents[3]
MAX_MEGABYTES = 150
"""Megabytes above what the process had before; DuckDB's threads take some, and a kilobyte per odd line 300 and more."""
MEASURED = """
import json, re, sys
from pathlib import Path

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure


def mb(of):
    return int(re.search(of + r":\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024


def users(path, small):
    try:
        source = counting.open_files([path], small_bytes=small)
        return int(counting.count(source, source.roles, Disclosure.PRIVATE).dataset.histogram.num_users)
    except InvalidInput as refused:
        return str(refused)


first, *paths = sys.argv[1:]
found = []
for small in (0, counting.MAX_SMALL_BYTES):
    users(first, small)
    for path in paths[small > 0 :]:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = mb("VmRSS")
        found.append([path, small, users(path, small), mb("VmHWM") - before])
print(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_files_of_few_bytes_take_little_memory(put):
    few, columns = "user_id,amount\n" + "u1,2\n" * 100, ",".join(f"c{k}" for k in range(120))
    files = {
        # Without their last cells, a few or many, or with one too many.
        "short": ("user_id,amount,v\n" + "".join(f"u{k % 50},1\n" for k in range(150_000)), 50),
        "wide": (f"user_id,{columns}\n" + "".join(f"u{k % 50},1\n" for k in range(10_000)), 50),
        "long": ("user_id,amount\n" + "u1,1,2\n" * 150_000, "Line 2: 3 fields, but the header names 2"),
        "ragged": (
            "user_id,amount\nu1,1\nu1" + ",1" * 20_000,
            "Line 3: 20,001 fields, but the header names 2",
        ),
    }
    paths = [put(few, "first.csv"), *(put(content, f"{name}.csv") for name, (content, _) in files.items())]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for path, small_bytes, users, mb in json.loads(done.stdout):
        name = Path(path).stem
        expected = files[name][1]
        if isinstance(expected, str):
            assert users.replace(f" of {name}.csv", "").startswith(expected), name
        else:
            assert users == expected, name
        assert mb < MAX_MEGABYTES, (name, small_bytes, mb)


@pytest.mark.long
def test_a_table_of_more_cells_than_bytes_is_not_held(put, monkeypatch):
    monkeypatch.setattr(counting_text, "MAX_CELLS", 60_000)
    few = put("user_id,a,b\n" + "u1\n" * 3 + "u1,,\n" * 30_000)  # 90,012 cells, 150,025 bytes
    keys = ",".join(f'"k{k}":1' for k in range(30))
    files = [
        put("user_id," + ",".join(f"c{k}" for k in range(50)) + "\n" + "u1,2\n" * 2_000, "wide.csv"),
        put(f'{{"user_id":1,{keys}}}\n' + '{"user_id":1,"k7":1}\n' * 1_999, "sparse.jsonl"),
    ]
    assert counting.open_files([few]).is_complete
    for path in files:
        source = counting.open_files([path])
        assert not source.is_complete
        assert len(source.head.frame) <= 1_000
        data = counting.count(source, source.roles, Disclosure.PRIVATE).dataset
        assert (data.histogram.num_users, data.histogram.num_rows) == (1, 2_000)
    with pytest.raises(InvalidInput, match="Most of its 2,000 rows lack most of the 51 columns"):
        counting_text.read_table(files[0].read_bytes(), "wide.csv")


@pytest.mark.long
def test_a_sheet_is_packed_as_it_is_read() -> None:
    rows = workbooks._SheetRows()
    tracemalloc.start()
    try:
        for number in range(1, 10_001):
            rows.add(number, [f"a text of its own {number * 60 + at}" for at in range(60)] + [None] * 40)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # 600,000 texts take 47 MB and more as Python holds them.
    assert peak < 30_000_000
    cells = rows.build_frame()
    assert cells.shape == (10_000, 60)
    assert cells.iloc[9_999, 59] == "a text of its own 600059"


def test_rows_of_a_sheet_are_as_wide_as_the_widest(monkeypatch) -> None:
    monkeypatch.setattr(workbooks, "MAX_UNPACKED_CELLS", 3)
    rows = workbooks._SheetRows()
    for number, row in enumerate(([1, None], [None, None], [None, "x ", "#N/A"], [2.0], [True, 3, 4, 5]), 1):
        rows.add(number, row)
    assert rows.row_numbers == [1, 3, 4, 5]
    assert rows.build_frame().to_numpy().tolist() == [
        ["1", "", "", ""],
        ["", "x", "", ""],
        ["2", "", "", ""],
        ["true", "3", "4", "5"],
    ]
    (note,) = rows.write_notes()
    assert "1 cell holds an error, such as #N/A (first: line 3); it counts as missing." in note


def test_a_table_of_many_cells_is_counted_by_a_duckdb_that_goes_with_it(put, monkeypatch) -> None:
    path = put("user_id,amount,product\n" + "".join(f"u{k % 7},{k % 5},p{k % 3}\n" for k in range(500)))
    source = counting.open_files([path])
    assert source.is_complete
    once = counting.count(source, source.roles, Disclosure.PRIVATE)
    monkeypatch.setattr(attempts, "MAX_SHARED_CELLS", 100)
    recounted = counting.count(source, source.roles, Disclosure.PRIVATE)
    assert recounted.dataset.histogram == once.dataset.histogram
    assert recounted.dataset.notes == once.dataset.notes
    np.testing.assert_array_equal(recounted.dataset.values.values, once.dataset.values.values)


@pytest.mark.long
def test_values_and_pairs_take_little_more_than_they_hold(parquet) -> None:
    rows, rng = 400_000, np.random.default_rng(3)
    users, tasks, values = rng.integers(0, 60_000, rows), rng.integers(0, 900, rows), rng.integers(0, 9, rows)
    path = parquet(user_id=users, task=tasks, v=values.astype(float))
    roles = Roles(TableKind.EVENTS, user="user_id", value="v", task="task")
    source = counting.open_files([path], small_bytes=0)
    counting.count(source, roles, Disclosure.PRIVATE)  # the first takes what later ones share
    tracemalloc.start()
    try:
        data = counting.count(source, roles, Disclosure.PRIVATE).dataset
        bytes_held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert data.values.values.size == rows
    pairs, which = np.unique(users * 900 + tasks, return_inverse=True)
    assert data.pairs.rows.size == pairs.size
    np.testing.assert_array_equal(np.sort(data.pairs.sums), np.sort(np.bincount(which, values)))
    assert data.pairs.value_range == (0.0, 8.0)
    assert peak < 1.5 * bytes_held, (peak, bytes_held)


def test_a_huge_cell_of_a_small_parquet_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    parquet_file, text = tmp_path / "huge.parquet", pa.array(["x" * 40_000_000, "1"])
    pq.write_table(pa.table({"user": ["a", "b"], "value": text}), parquet_file, compression="zstd")
    assert parquet_file.stat().st_size < 100_000
    monkeypatch.setattr(heads, "Duck", None)  # What reads the cells is not reached.
    with pytest.raises(InvalidInput, match="more than 120,000 bytes"):
        counting.open_files([parquet_file])


def test_long_cells_below_the_limit_are_read(tmp_path):
    parquet_file = tmp_path / "long.parquet"
    pq.write_table(pa.table({"user": ["a", "b"], "value": ["x" * 100_000, "1"]}), parquet_file)
    assert counting.open_files([parquet_file]).columns == ("user", "value")
