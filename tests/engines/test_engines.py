"""The same question to PostgreSQL, Spark and DuckDB: equal to the last user, and to counters written by hand."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import __main__ as counting_command
from dpcore.counting import facets
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Contribution
from dpcore.mean.table_values import clamp

ROOT = Path(__file__).resolve().parents[2]
NUM_ROWS = 30_000
ROLES = Roles(TableKind.EVENTS, user="customer", task="product", value="amount")
QUESTIONS = {
    "rows": replace(ROLES, task=None, value=None),
    "rows of a number": replace(ROLES, user="account", task=None, value=None),
    "values and tasks": ROLES,
    "distinct tasks": replace(ROLES, value=None, contribution=Contribution.DISTINCT_TASKS),
    "totals": replace(ROLES, task=None, contribution=Contribution.TOTAL),
    "two columns": replace(ROLES, further_user=("shop",)),
    "two columns of groups": replace(ROLES, further_task=("shop",)),
    "one user for all without": replace(ROLES, further_user=("shop",), missing_users=MissingUsers.ONE_USER),
}


@pytest.fixture(scope="session")
def events():
    """Logs with a heavy tail, blanks, ids with spaces around them and letters beyond ASCII."""
    rng = np.random.default_rng(20_201)
    ranks = np.minimum(rng.zipf(1.6, NUM_ROWS), 3_000)
    customers = [
        None if r == 7 else "  " if r == 11 else f" Zoë {r} " if r % 5 == 0 else f"u{r}" for r in ranks
    ]
    amounts = rng.integers(0, 10_000, NUM_ROWS) / 4.0
    amounts[ranks % 13 == 0] = 0.0
    return pa.table(
        {
            "customer": pa.array(customers, pa.string()),
            "account": pa.array([None if r == 7 else int(r) for r in ranks], pa.int64()),
            "shop": pa.array(
                [None if r == 3 else f"s{r % 3}" for r in rng.integers(0, 40, NUM_ROWS)], pa.string()
            ),
            "product": pa.array(
                [None if p == 0 else f"p{p}" for p in rng.integers(0, 25, NUM_ROWS)], pa.string()
            ),
            "amount": pa.array(amounts, pa.float64()),
        }
    )


@pytest.fixture(scope="session")
def parquet(events, tmp_path_factory):
    path = tmp_path_factory.mktemp("engines") / "events.parquet"
    pq.write_table(events, path)
    return path


@pytest.fixture(scope="session")
def postgres(events):
    import psycopg

    kinds = {"string": "text", "int64": "bigint", "double": "double precision"}
    columns = ", ".join(f'"{field.name}" {kinds[str(field.type)]}' for field in events.schema)
    with psycopg.connect(dbname="postgres", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA logs; CREATE TABLE logs.events ({columns})")
        with cursor.copy("COPY logs.events FROM STDIN") as copy:
            for row in zip(*(events.column(name).to_pylist() for name in events.column_names), strict=True):
                copy.write_row(row)
    # No password in the address: libpq takes it from PGPASSWORD.
    address = f"postgres://{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/postgres"
    return address, "logs.events"


@pytest.fixture(scope="session")
def spark(parquet, tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("sweetspot")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield "spark:", str(parquet)
    session.stop()


@pytest.fixture(scope="session", params=["postgres", "spark"])
def table(request):
    address, name = request.getfixturevalue(request.param)
    backend = counting.connect(address)
    yield counting.open_table(backend, name)
    backend.disconnect()


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_engine_gives_what_duckdb_gives(table, parquet, question):
    roles = QUESTIONS[question]
    source = counting.open_files([parquet], small_bytes=0)
    here = counting.count(source, roles, Disclosure.PRIVATE, counts_copies=True).dataset
    there = counting.count_table(table, roles, Disclosure.PRIVATE, name="events", counts_copies=True).dataset
    assert there.histogram == here.histogram
    assert there.contribution is here.contribution
    # Only counts come back.
    assert there.values is None
    assert there.pairs is None
    if roles.task is not None:
        assert sorted(there.task_sizes.tolist()) == sorted(here.task_sizes.tolist())
    # The binned totals hold every user, and their sum, as quarters add up without rounding, to a few last digits.
    one_each = here.totals.totals
    if here.totals.users is not None:
        one_each = np.repeat(one_each, here.totals.users)
    assert there.totals.users.sum() == one_each.size
    assert float(there.totals.totals @ there.totals.users) == pytest.approx(one_each.sum(), rel=1e-12)
    # Expanded, every user's total lies within half a bin of what it is.
    expanded = np.repeat(there.totals.totals, there.totals.users)
    np.testing.assert_allclose(np.sort(expanded), np.sort(one_each), rtol=0.0024)
    dropped = [note for note in there.notes if "bins" not in note and "pairs of user and group" not in note]
    # Rows of an engine have no order, so that it names no place.
    assert dropped == [re.sub(r" \(first: row [\d,]+\)", "", note) for note in here.notes]
    assert any("exact cop" in note for note in dropped)


@pytest.mark.parametrize(
    "question", ["values and tasks", "two columns of groups", "one user for all without"]
)
def test_pairs_come_back_where_they_were_allowed_and_else_their_distribution(table, parquet, question):
    roles = QUESTIONS[question]
    source = counting.open_files([parquet], small_bytes=0)
    here = counting.count(source, roles, Disclosure.PRIVATE).dataset.pairs
    groups = np.bincount(here.user_codes)[here.user_codes]
    first = counting.count_table(table, roles, Disclosure.PRIVATE, name="events").dataset
    assert any(f"There are {here.rows.size:,} pairs of user and group" in note for note in first.notes)
    sizes = first.pair_sizes
    assert Counter(zip(groups.tolist(), here.rows.tolist(), strict=True)) == {
        (k, c): n
        for k, c, n in zip(sizes.groups.tolist(), sizes.rows.tolist(), sizes.pairs.tolist(), strict=True)
    }
    assert sorted(sizes.task_rows.tolist()) == sorted(
        np.bincount(here.task_codes, here.rows).astype(int).tolist()
    )
    dataset = counting.count_table(
        table, roles, Disclosure.PRIVATE, name="events", max_pairs=here.rows.size
    ).dataset
    there = dataset.pairs
    assert there.num_tasks == here.num_tasks

    def shape(pairs):
        """Per user, whatever their code: rows and sums of their groups."""
        users = [[] for _ in range(int(pairs.user_codes.max()) + 1)]
        for user, rows, total in zip(
            pairs.user_codes.tolist(), pairs.rows.tolist(), pairs.sums.tolist(), strict=True
        ):
            users[user].append((rows, total))
        return sorted(sorted(user) for user in users if user)

    assert shape(there) == shape(here)


NASTY = pa.table(
    {
        "customer": pa.array(
            ["a", "a", " a ", "a", "a", "b", "b", "b", "", "  ", None, "c", "c", "d", "d", "e", "e", "e", "f", "g",
             "g"],
            pa.string(),
        ),
        "amount": pa.array(
            [1.0, 2.5, 2.75, -3.0, float("nan"), float("inf"), 10.0, -float("inf"), 4.0, 5.0, 6.0, 1e308, 1e308,
             9.999, None, 0.1, 0.1, 0.1, -1.5, 1e99, 1e99],
            pa.float64(),
        ),
    }
)  # fmt: skip


@pytest.fixture(scope="session", params=["postgres", "spark"])
def nasty(request, tmp_path_factory):
    """Values that are none, or so large that their sum is, in an engine; and the same rows as a file."""
    path = tmp_path_factory.mktemp("nasty") / "nasty.parquet"
    pq.write_table(NASTY, path)
    address, name = request.getfixturevalue(request.param)[0], str(path)
    if request.param == "postgres":
        import psycopg

        name = "logs.nasty"
        with psycopg.connect(dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE TABLE logs.nasty (customer text, amount double precision)")
            with connection.cursor().copy("COPY logs.nasty FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in NASTY.columns), strict=True):
                    copy.write_row(row)
    backend = counting.connect(address)
    yield counting.open_table(backend, name), path
    backend.disconnect()


@pytest.mark.parametrize("missing_users", MissingUsers)
@pytest.mark.parametrize("missing", ["drop", 3.5, None])
def test_values_by_user_are_those_of_the_rows_whatever_they_are(nasty, missing, missing_users):
    table, path = nasty
    roles = Roles.of_events(["customer"], "amount", [], missing_users=missing_users, missing=missing)
    bins = ValueBins(0.0, 10.0, 10)

    def count_there():
        return counting.count_table(table, roles, Disclosure.PRIVATE, name="nasty", value_bins=bins).dataset

    if missing is None:
        with pytest.raises(InvalidInput, match="no number up to ±1e100"):
            count_there()
        return
    there = count_there()
    here = counting.count(counting.open_files([path]), roles, Disclosure.PRIVATE).dataset
    assert there.histogram == here.histogram
    assert there.drops_missing == here.drops_missing == (missing == "drop")
    for lower, upper in ((0.0, 10.0), (2.0, 3.0), (0.0, 5.0)):
        users = []
        for dataset in (there, here):
            of_users = clamp(dataset.values, lower, upper)
            array = np.stack([of_users.sizes, of_users.user_means, of_users.within_variances])
            users.append(array[:, np.lexsort(array[::-1].round(9))])
            assert of_users.variance == pytest.approx(clamp(here.values, lower, upper).variance, rel=1e-12)
        np.testing.assert_allclose(*users, rtol=1e-12, atol=1e-12)
    assert there.values.values.max() == 1e99


def test_values_by_user_of_many_rows_are_those_that_duckdb_counts(table, parquet):
    roles, bins = replace(ROLES, task=None), ValueBins(0.0, 2_500.0, 40)
    engine = counting.connect("duckdb:")
    there, here = (
        counting.count_table(each, roles, Disclosure.PRIVATE, name="events", value_bins=bins).dataset
        for each in (table, counting.open_table(engine, str(parquet)))
    )
    assert there.histogram == here.histogram
    assert there.values.num_rows_each.tolist() == here.values.num_rows_each.tolist()
    np.testing.assert_allclose(there.values.values, here.values.values, rtol=1e-12)
    np.testing.assert_allclose(
        there.values.standard_deviations, here.values.standard_deviations, rtol=1e-9, atol=1e-9
    )


def test_the_truth_is_that_of_a_counter(table, events):
    people = [p.strip() for p in events.column("customer").to_pylist() if p is not None and p.strip()]
    counted = counting.count_table(table, QUESTIONS["rows"], Disclosure.PRIVATE, name="events")
    assert counted.dataset.histogram == ContributionHistogram.from_counts(list(Counter(people).values()))
    without = NUM_ROWS - len(people)
    assert counted.dataset.notes == (f"{without:,} rows without a user were left out.", facets.NO_COPIES_NOTE)


def test_text_is_not_taken_for_numbers_and_missing_columns_are_named(table):
    with pytest.raises(InvalidInput, match="not numbers"):
        counting.count_table(
            table, replace(ROLES, value="shop", task=None), Disclosure.PRIVATE, name="events"
        )
    with pytest.raises(InvalidInput, match='no column "nobody"'):
        counting.count_table(table, replace(ROLES, user="nobody"), Disclosure.PRIVATE, name="events")


def test_a_table_that_is_not_there_gets_a_sentence(postgres):
    with pytest.raises(InvalidInput, match=r"[Tt]able nothing cannot be opened"):
        counting.open_table(counting.connect(postgres[0]), "nothing")


def test_the_shell_counts_in_postgresql(postgres, events, tmp_path):
    target = tmp_path / "histogram.csv"
    words = ["--from", postgres[0], "--table", postgres[1], "--user", "customer", "--to", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", "dpcore.counting", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert os.environ["PGPASSWORD"] not in done.stdout + done.stderr
    source = counting.open_files([target])
    people = Counter(p.strip() for p in events.column("customer").to_pylist() if p is not None and p.strip())
    opened = counting.count(source, source.roles, Disclosure.PRIVATE).dataset
    assert opened.histogram == ContributionHistogram.from_counts(list(people.values()))


def test_the_documented_commands_count_in_postgresql(postgres, tmp_path, monkeypatch):
    import psycopg

    view = "CREATE SCHEMA sales; CREATE VIEW sales.orders AS SELECT customer AS customer_id, amount FROM logs.events"
    with psycopg.connect(dbname="postgres", autocommit=True) as connection:
        connection.execute(view)
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    commands = re.findall(r"^sweet-spot count (.*postgres://.*)$", text, re.MULTILINE)
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    for command in commands:
        words = [postgres[0] if word.startswith("postgres://") else word for word in command.split()]
        assert counting_command.main(words) == 0
    assert (tmp_path / "histogram.csv").read_text().startswith("size,users,label\n")
    assert (tmp_path / "values.json").stat().st_size > 10_000


def test_a_query_ends_with_the_program_that_was_killed(postgres):
    import psycopg

    running = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    slow = "CREATE VIEW logs.slow AS SELECT 'a' AS customer FROM pg_sleep(600)"
    with psycopg.connect(dbname="postgres", autocommit=True) as connection:
        connection.execute(slow)

        def wait_for(count: int) -> None:
            deadline = time.monotonic() + 60
            while connection.execute(running).fetchone() != (count,):
                assert time.monotonic() < deadline
                time.sleep(0.2)

        words = ["--from", postgres[0], "--table", "logs.slow", "--user", "customer"]
        with subprocess.Popen([sys.executable, "-m", "dpcore.counting", *words], cwd=ROOT) as process:
            wait_for(1)
            process.kill()
        wait_for(0)


def test_the_code_that_the_page_shows_runs(postgres, events, capsys):
    address, name = postgres
    engine = replace(counting.ENGINES["postgres"], example_address=address)
    exec(counting.write_recipe(engine, QUESTIONS["distinct tasks"], name)[1], {})
    backend = counting.connect(address)
    table = counting.count_table(
        counting.open_table(backend, name), QUESTIONS["distinct tasks"], Disclosure.PRIVATE, name=name
    )
    backend.disconnect()
    assert capsys.readouterr().out.strip() == repr(table.dataset.histogram)


def test_a_server_that_does_not_answer_gets_a_sentence():
    with pytest.raises(InvalidInput, match="PostgreSQL does not answer as it should"):
        counting.connect("postgres://nobody@127.0.0.1:1/postgres")
