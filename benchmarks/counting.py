"""Counting contributions per user beside pandas and bare DuckDB, in one run on one machine.

    python benchmarks/counting.py [--scale 1] [--repeats 3] [--hardest]

The data are made first, in a temporary folder that goes afterwards (5 GB at most): a heavy-tailed draw of users, a
task and an amount. Every way runs in a process of its own, so that peak memory is its own; importing is not in the
time, as the app has imported everything before, but what a process does once is: of ours 0.05 s of CPU, for queries
put into SQL and a DuckDB for small tables. A million rows are therefore also counted as the second file of a process.
Only ratios are to be compared. The times of a busy machine vary: the best of `REPEATS` rounds is shown, CPU beside it,
and the ways take turns within a round. The hardest case, on request as it takes minutes, has no repeats at all and a
tenth of its size as memory: its users must be counted in parts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 3
MEMORY_LIMIT = 1_000_000_000

BARE = "SELECT n, count(*) FROM (SELECT user_id, count(*) AS n FROM {source} GROUP BY 1) GROUP BY 1"
PROGRAMS = {
    "Sweet Spot": """
from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.data.column_roles import Roles, TableKind
import duckdb, fsspec, pyarrow.pandas_compat, pyarrow.parquet
began = time.perf_counter()
source = counting.open_files([path])
roles = Roles(TableKind.EVENTS, user="user_id")
data = counting.count(source, roles, Disclosure.PRIVATE, memory_limit=limit).dataset
users, rows = data.histogram.num_users, data.histogram.num_rows
""",
    "bare DuckDB": """
import duckdb
began = time.perf_counter()
con = duckdb.connect()
con.execute(f"SET memory_limit = '{limit}B'; SET temp_directory = '{folder}'")
found = con.execute(bare).fetchall()
users, rows = sum(m for _, m in found), sum(n * m for n, m in found)
""",
    "DuckDB, as text": """
import duckdb
began = time.perf_counter()
con = duckdb.connect()
con.execute(f"SET memory_limit = '{limit}B'; SET temp_directory = '{folder}'")
found = con.execute(bare.replace(repr(path), f"read_csv({path!r}, all_varchar = true)")).fetchall()
users, rows = sum(m for _, m in found), sum(n * m for n, m in found)
""",
    "pandas": """
import pandas as pd, pyarrow.parquet
began = time.perf_counter()
read = pd.read_parquet(path, columns=["user_id"]) if path.endswith(".parquet") else pd.read_csv(path)
sizes = read["user_id"].value_counts().value_counts()
users, rows = int(sizes.sum()), int((sizes.index.to_numpy() * sizes.to_numpy()).sum())
""",
}
_RUN = """
import json, resource, sys, time
sys.path.insert(0, {root!r})
for path in {paths!r}:
    folder, limit, bare = {folder!r}, {limit}, {bare!r}.format(source=repr(path))
{way}
    seconds = time.perf_counter() - began
    cpu = time.process_time() - began_cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print()  # DuckDB leaves its progress bar on the line
print(json.dumps([seconds, users, rows, peak, cpu]))
"""


Run = tuple[float, int, int, int, float]
"""Seconds, users, rows, peak bytes, seconds of CPU."""


def run_program(name: str, path: Path, limit: int, earlier: Path | None) -> Run:
    """Run one program in a process of its own; if ``earlier`` is given, the process counts that file first."""
    code = _RUN.format(
        root=str(ROOT),
        paths=[str(file) for file in (earlier, path) if file is not None],
        folder=str(path.parent / "spill"),
        limit=limit,
        bare=BARE,
        way=indent(PROGRAMS[name], "    ").replace(
            "began = time.perf_counter()", "began, began_cpu = time.perf_counter(), time.process_time()"
        ),
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
    seconds, users, rows, peak, cpu = json.loads(done.stdout.splitlines()[-1])
    return seconds, users, rows, peak, cpu


def compare(
    title: str,
    path: Path,
    names: tuple[str, ...],
    limit: int,
    repeats: int = REPEATS,
    earlier_path: Path | None = None,
) -> None:
    """Print one table: every program on one file, with ours as a multiple of it.

    Multiples are those of time, and of CPU, which a busy machine changes less. The least of the rounds is shown, of
    each by itself. Every process has counted the file ``earlier_path`` first, where there is one.
    """
    best_results: dict[str, Run] = {}
    for _ in range(repeats):
        for name in names:
            result = run_program(name, path, limit, earlier_path)
            seconds, users, rows, peak, cpu = result
            best_result = best_results.get(name, result)
            best_results[name] = (
                min(best_result[0], seconds),
                users,
                rows,
                min(best_result[3], peak),
                min(best_result[4], cpu),
            )
    if len({(users, rows) for _, users, rows, _, _ in best_results.values()}) != 1:
        raise SystemExit(f"{title}: the answers differ")
    our_seconds, users, rows, _, our_cpu = best_results[names[0]]
    size = path.stat().st_size
    print(f"\n{title}: {rows:,} rows, {users:,} users, {size / 1e6:,.0f} MB on disk, "
          f"DuckDB limited to {limit / 1e6:,.0f} MB")  # fmt: skip
    print(f"{'':16}{'seconds':>10}{'CPU s':>10}{'ours is':>10}{'in CPU':>10}{'peak MB':>10}")
    for name, (seconds, _, _, peak, cpu) in best_results.items():
        print(
            f"{name:16}{seconds:10.2f}{cpu:10.2f}{our_seconds / seconds:9.2f}x{our_cpu / cpu:9.2f}x{peak / 1e6:10.0f}",
            flush=True,
        )


NUMBERS = "(hash(user_id) >> 1)::BIGINT"
"""Ids over 63 bits. Ids that are counted up would favour every way, pandas most."""
TEXT = "md5(user_id::VARCHAR) || '-' || substr(md5(user_id::VARCHAR), 1, 15)"
"""48 characters an id: about 59 bytes a row."""


SHORT = "'user_' || lpad(user_id::VARCHAR, 7, '0')"
"""12 characters an id: about 23 bytes a row."""
DIFFERENT = TEXT.replace("user_id", "(row_number() OVER ())")


def write_events(folder: Path, name: str, rows: float, users: float, ids: str, options: str = "") -> Path:
    """Write a file of events and return its path; few of the users have many rows."""
    import duckdb

    path = folder / name
    con = duckdb.connect()
    con.execute(f"SET memory_limit = '2GB'; SET temp_directory = '{folder / 'spill'}'; SELECT setseed(0.5)")
    con.execute(
        f"COPY (SELECT {ids} AS user_id, (random() * 1000)::INT AS task, round(random() * 100, 2) AS amount FROM "
        f"(SELECT ({int(users)} * power(random(), 2))::INT AS user_id FROM range({int(rows)}))) TO '{path}' {options}"
    )
    con.close()
    return path


def compress(path: Path) -> Path:
    """Write the file as gzip beside it, and return the path."""
    packed_path = path.with_name(f"{path.name}.gz")
    with path.open("rb") as unpacked_file, gzip.open(packed_path, "wb", 1) as file:
        shutil.copyfileobj(unpacked_file, file, 1 << 20)
    return packed_path


def main() -> None:
    """Make the files one after another, count them, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the rows and users, for a quick look"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--hardest", action="store_true", help="all users different, at a tenth of the file's size"
    )
    arguments = parser.parse_args()
    names, million = ("Sweet Spot", "bare DuckDB", "pandas"), 1e6 * arguments.scale
    # Bare DuckDB reads ids of digits as numbers, for which 7, 07 and 7.0 are one user: as text it tells them apart.
    names_for_text = (*names[:2], "DuckDB, as text", names[2])
    with tempfile.TemporaryDirectory(prefix="sweetspot-bench-") as name:
        folder = Path(name)
        path = write_events(folder, "events.parquet", 50 * million, 5 * million, NUMBERS)
        compare("Parquet", path, names, MEMORY_LIMIT, arguments.repeats)
        path.unlink()
        for title, ids in (("CSV, ids are numbers", "user_id"), ("CSV, ids are text", TEXT)):
            path = write_events(folder, "events.csv", 10 * million, million, ids, "(HEADER)")
            compare(title, path, names_for_text, MEMORY_LIMIT, arguments.repeats)
            if ids == TEXT:
                packed = compress(path)
                compare("The same, gzip", packed, names, MEMORY_LIMIT, arguments.repeats)
                packed.unlink()
            path.unlink()
        earlier_path = write_events(folder, "before.csv", 1_000, 100, SHORT, "(HEADER)")
        for title, ids in (
            ("A million rows, ids are numbers", "user_id"),
            ("A million rows, ids are short texts", SHORT),
            ("A million rows, ids are text", TEXT),
        ):
            path = write_events(folder, "million.csv", million, million / 10, ids, "(HEADER)")
            compare(title, path, names_for_text, MEMORY_LIMIT, arguments.repeats)
            compare(
                "The same, the second file of a process",
                path,
                names_for_text,
                MEMORY_LIMIT,
                arguments.repeats,
                earlier_path,
            )
            path.unlink()
        path = write_events(folder, "large.csv", 70 * million, 4.5 * million, TEXT, "(HEADER)")
        compare("A file ten times the memory limit", path, names[:1], path.stat().st_size // 10, 1)
        path.unlink()
        if arguments.hardest:
            path = write_events(folder, "different.csv", 45 * million, 0, DIFFERENT, "(HEADER)")
            compare("All users different", path, names[:1], path.stat().st_size // 10, 1)


if __name__ == "__main__":
    main()
