"""Tables in memory and Parquet files: durations, names that stand twice, and what is fetched of a table."""

import datetime
import json
import subprocess
import sys

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcore as ss
from dpcore.cli import command
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.counting import files
from dpcore.counting.count import to_dataset

USERS = ["a", "a", "b", "c"]
SECONDS = [90, 30, 60, 600]
TRUTH = ContributionHistogram.from_counts([2, 1, 1])
MEAN = {"user": "who", "value": "wait", "epsilon": 1, "lower": 0, "upper": 600}
# Ibis 12.0 still calls a function that DuckDB 2.0 renamed.
ibis_on_duckdb = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")


def pandas_table(kind="timedelta64[us]"):
    return pd.DataFrame({"who": USERS, "wait": pd.to_timedelta(SECONDS, "s").astype(kind)})


def duckdb_table(cell="to_seconds(90)"):
    return duckdb.sql(f"SELECT unnest({USERS}) AS who, {cell} AS wait, 'long text' AS further")


def parquet_of(folder, table):
    path = folder / "waits.parquet"
    pq.write_table(table, path)
    return path


def waits(folder):
    """Yield a table with a duration from each library, and how it is called."""
    frame = pandas_table()
    yield frame
    yield pandas_table("timedelta64[s]")
    yield pa.Table.from_pandas(frame)
    yield pl.DataFrame({"who": USERS, "wait": [datetime.timedelta(seconds=s) for s in SECONDS]})
    yield duckdb_table()
    yield parquet_of(folder, pa.Table.from_pandas(frame))
    path = folder / "interval.parquet"
    duckdb_table().write_parquet(str(path))
    yield path
    large = pa.table({"who": USERS * 150_000, "wait": pa.array(SECONDS * 150_000, pa.duration("ms"))})
    path = folder / "large.parquet"
    pq.write_table(large, path)
    yield path


@pytest.mark.long
def test_durations_are_no_numbers(tmp_path, capsys):
    for table in waits(tmp_path):
        for call, settings in (
            (ss.mean_bound, MEAN),
            (ss.sum_bound, {"user": "who", "value": "wait", "epsilon": 1}),
        ):
            with pytest.raises(InvalidInput, match=r"wait holds durations.*total_seconds"):
                call(table, **settings)
        # They count where their values are not asked for.
        assert set(to_dataset(table, user="who").histogram.sizes) <= {1, 2, 4, 150_000, 300_000}
    options = [word for key, value in MEAN.items() for word in (f"--{key}", str(value))]
    assert command.main(["mean", str(tmp_path / "waits.parquet"), *options]) != 0
    assert "wait holds durations" in capsys.readouterr().err.replace("\n", " ")
    seconds = pandas_table().assign(wait=lambda table: table["wait"].dt.total_seconds())
    assert to_dataset(seconds, user="who", value="wait").values.values.tolist() == SECONDS


@pytest.mark.parametrize(
    ("cell", "type_name"),
    [
        ("DATE '2024-01-01'", "dates"),
        ("TIME '10:00:00'", "times of day"),
        ("TIMESTAMP '2024-01-01 10:00:00'", "points in time"),
    ],
)
def test_dates_and_times_are_no_numbers(tmp_path, cell, type_name):
    path = tmp_path / "times.parquet"
    duckdb_table(cell).write_parquet(str(path))
    for table in (path, pq.read_table(path), duckdb_table(cell)):
        with pytest.raises(InvalidInput, match=f"wait holds {type_name}, not numbers.*Convert them"):
            ss.mean_bound(table, **MEAN)


def test_a_label_is_no_duration():
    table = pandas_table().assign(size=[1.0, 2.0, 3.0, 4.0])
    fit = {"user": "who", "epsilon": 1, "lower": 0, "upper": 600}
    with pytest.raises(InvalidInput, match=r"wait holds durations.*total_seconds"):
        ss.regression_weights(table, label="wait", features=["size"], **fit)
    with pytest.raises(InvalidInput, match=r"wait holds durations.*total_seconds"):
        ss.regression_weights(pa.Table.from_pandas(table), label="size", features=["wait"], **fit)


def test_a_name_that_stands_twice_is_refused():
    frame = pd.DataFrame([["a", 1, 2], ["b", 3, 4]], columns=["who", "wait", "wait"])
    indexed = pd.DataFrame({"who": ["x", "y"], "wait": [1, 2]}, index=pd.Index(["a", "b"], name="who"))
    arrow = pa.Table.from_arrays(
        [pa.array(["a", "b"]), pa.array([1, 3]), pa.array([2, 4])], ["who", "wait", "wait"]
    )
    batch = arrow.to_batches()[0]
    for table, name in ((frame, "wait"), (arrow, "wait"), (batch, "wait"), (indexed, "who")):
        with pytest.raises(InvalidInput, match=f"2 columns are called {name}. Rename them"):
            ss.mean_bound(table, **MEAN)
        with pytest.raises(InvalidInput, match=f"2 columns are called {name}. Rename them"):
            ss.regression_weights(table, user="who", label="wait", epsilon=1, lower=0, upper=1)
    # Names that become one as text are one, and a name that is not needed may stand twice.
    mixed = pd.DataFrame([["a", 1, 2]], columns=["who", 1, "1"])
    with pytest.raises(InvalidInput, match="2 columns are called 1"):
        ss.sum_bound(mixed, user="who", value="1", epsilon=1)
    assert to_dataset(arrow, user="who").histogram == ContributionHistogram.from_counts([1, 1])


def lazy_table():
    def fail(cells):
        raise AssertionError("a column was computed that nobody needs")

    table = pl.LazyFrame({"who": USERS, "wait": [float(s) for s in SECONDS], "further": USERS})
    return table.with_columns(pl.col("further").map_batches(fail, return_dtype=pl.String))


def test_a_lazy_table_computes_only_what_is_needed():
    dataset = to_dataset(lazy_table(), user="who", value="wait")
    assert dataset.histogram == TRUTH
    assert dataset.values.values.tolist() == SECONDS
    with pytest.raises(InvalidInput, match="no column whom; there are who, wait, further"):
        to_dataset(lazy_table(), user="whom")


@ibis_on_duckdb
def test_only_needed_columns_are_fetched_from_an_engine(monkeypatch):
    unneeded = 'error(\'a column that nobody needs\') AS "fur""ther"'
    relation = duckdb.sql(f"SELECT unnest({USERS}) AS who, unnest({SECONDS}) AS wait, {unneeded}")
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE held AS SELECT unnest({USERS}) AS who, unnest({SECONDS}) AS wait, 1 AS further"
    )
    table = ibis.duckdb.from_connection(connection).table("held")
    fetched = []
    write = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda arrow, *rest: (fetched.append(arrow), write(arrow, *rest)))
    for table_given in (relation, table):
        dataset = to_dataset(table_given, user="who", value="wait")
        assert dataset.histogram == TRUTH
        assert sorted(dataset.values.values.tolist()) == sorted(SECONDS)
        assert fetched.pop().column_names == ["who", "wait"]


def test_a_table_in_another_engine_is_refused_before_anything_is_fetched(monkeypatch):
    table = ibis.table({"who": "string", "wait": "float64"}, name="waits")
    with pytest.raises(InvalidInput, match="No engine holds"):
        to_dataset(table, user="who")

    class Remote:
        name = "postgres"

    monkeypatch.setattr(type(table), "get_backend", lambda _self: Remote())
    monkeypatch.setattr(type(table), "to_pyarrow", lambda *_: pytest.fail("rows were fetched"))
    with pytest.raises(InvalidInput, match=r"another engine \(postgres\).*sweet-spot count --from ADDRESS"):
        ss.mean_bound(table, **MEAN)


def test_a_table_that_gives_no_arrow_is_refused():
    class Foreign:
        columns = ("who", "wait")

    assert files.is_table(Foreign())
    with pytest.raises(InvalidInput, match=r"[Tt]ype Foreign cannot be read\. Convert it to pandas"):
        ss.mean_bound(Foreign(), **MEAN)


@pytest.mark.long
def test_programs_read_a_pandas_index_in_parquet(tmp_path):
    frame = pd.DataFrame({"who": USERS, "wait": SECONDS}).set_index("who")
    frame.to_parquet(tmp_path / "waits.parquet")
    program = ss.mean_bound(tmp_path / "waits.parquet", **MEAN).code("python")
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert np.isfinite(json.loads(ran.stdout)["released"])
