"""The command line and the recipes: what it writes opens, what it refuses it says, and the code shown runs."""

import shlex

import pytest

from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting.__main__ import main
from dpcore.counting.engines import COUNT_OPTIONS, is_address
from dpcore.data import group_pairs
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.dataset import Contribution

EVENTS = "user id,shop,product,amount\na,x,p,1.5\na,x,p,2\nb,x,q,0\n,x,q,9\na,y,q,1\n"


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("options", "sizes", "users", "label"),
    [
        (["--user", "user id"], [1, 3], [1, 1], "computed from private data (do not publish)"),
        (["--user", "user id", "--public"], [1, 3], [1, 1], "public input"),
        (["--user", "user id", "--user", "shop"], [1, 2], [2, 1], None),
        (["--user", "user id", "--missing-users", "one"], [1, 3], [2, 1], None),
        (["--user", "user id", "--task", "product", "--count", "distinct-tasks"], [1, 2], [1, 1], None),
        (["--user", "user id", "--value", "amount", "--count", "total"], [5], [1], None),
    ],
)
def test_what_the_shell_writes_opens_again(events, tmp_path, capsys, options, sizes, users, label):
    target = tmp_path / "histogram.csv"
    assert main(["--from", str(events), *options, "--to", str(target)]) == 0
    assert "Contributions of the heaviest users: " in capsys.readouterr().err
    if label:
        assert label in target.read_text()
    source = counting.open_files([target])
    assert source.roles.kind is TableKind.HISTOGRAM
    opened = counting.count(source, source.roles, Disclosure.PRIVATE).dataset
    assert opened.histogram == ContributionHistogram(sizes, users)


def test_a_pattern_that_no_shell_expanded_names_its_files(tmp_path, capsys):
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, user in (("b.csv", "anna"), ("a.csv", "bert"), ("c.txt", "carl")):
        (folder / name).write_text(f"user\n{user}\nanna\n")
    target = tmp_path / "histogram.csv"
    assert main(["--from", str(folder / "*.csv"), "--user", "user", "--to", str(target)]) == 0
    assert [line.split(",")[:2] for line in target.read_text().splitlines()[1:]] == [["1", "1"], ["3", "1"]]
    assert main(["--from", str(folder / "*.parquet"), "--user", "user"]) == 1
    assert "No file is called like" in capsys.readouterr().err
    # A file whose name holds such a sign is that file.
    (folder / "what[1].csv").write_text("user\nonly\n")
    assert main(["--from", str(folder / "what[1].csv"), "--user", "user", "--to", str(target)]) == 0
    assert len(target.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "name", ["x" * 5000, "a/" * 3000, "duckdb:" + "x" * 5000 + ".csv", "x" * 5000 + "*.csv"]
)
def test_a_path_that_no_system_has_is_no_file(name, capsys):
    assert main(["--from", name, *([] if ":" not in name else ["--table", "t"]), "--user", "user"]) == 1
    said = capsys.readouterr().err
    assert "cannot be written" not in said
    assert len(said) < 500
    assert any(
        words in said for words in ("cannot be opened", "No file is called like", "DuckDB file does not")
    )


def test_the_shell_writes_how_pairs_are_distributed(events, tmp_path, capsys):
    target = tmp_path / "pairs.json"
    arguments = ["--user", "user id", "--task", "product", "--distribution-to", str(target)]
    assert main(["--from", str(events), *arguments]) == 0
    assert "What was written is computed from private data" in capsys.readouterr().err
    back = group_pairs.read_distribution(target.read_bytes(), "pairs", Disclosure.PRIVATE)
    source = counting.open_files([events])
    roles = Roles(TableKind.EVENTS, user="user id", task="product")
    dataset = counting.count(source, roles, Disclosure.PRIVATE).dataset
    assert back.histogram == dataset.histogram
    assert back.pair_sizes == group_pairs.summarise_pairs(dataset.pairs)
    assert main(["--from", str(target), *arguments]) == 1  # It would write over what it reads.
    assert "--distribution-to names" in capsys.readouterr().err


def test_standard_output_holds_the_histogram_alone(events, capsys):
    assert main(["--from", str(events), "--user", "user id"]) == 0
    lines_written = capsys.readouterr().out.splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines_written] == ["size,users", "1,1", "3,1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--user", "nobody"], 'no column "nobody"'),
        (["--user", "user id", "--count", "total"], "No column is chosen for value"),
        (["--user", "user id", "--memory", "lots"], "--memory must be a size"),
        (["--user", "user id", "--table", "t"], "--table is for engines"),
        (["--user", "user id", "--to", "/nowhere/at/all.csv"], "cannot be written"),
        (["--user", "user id", "--distribution-to", "pairs.json"], "--distribution-to needs --task"),
        (["--user", "user id", "--pairs-to", "pairs.csv"], "is for engines"),
        (["--user", "user id", "--value-bins", "-1", "1", "2"], "--values-to is for engines"),
        (
            ["--user", "user id", "--task", "product", "--distribution-to", "/nowhere/p.json"],
            "/nowhere/p.json cannot",
        ),
    ],
)
def test_refusals_are_sentences_on_standard_error(events, capsys, arguments, says):
    assert main(["--from", str(events), *arguments]) == 1
    said = capsys.readouterr()
    assert says in said.err
    assert "Traceback" not in said.err


def test_addresses_are_told_from_files():
    assert all(is_address(text) for text in ("postgres://me@host/db", "spark:", "trino://host"))
    files = ("events.csv", r"C:\events.csv", "https://example.org/events.csv")
    assert not any(is_address(text) for text in files)


ROLES = [
    Roles(TableKind.EVENTS, user="user id"),
    Roles(TableKind.EVENTS, user="user id", further_user=("shop",), missing_users=MissingUsers.ONE_USER),
    Roles(TableKind.EVENTS, user="user id", task="product", contribution=Contribution.DISTINCT_TASKS),
    Roles(TableKind.EVENTS, user="user id", value="amount", contribution=Contribution.TOTAL),
]


@pytest.mark.parametrize("roles", ROLES)
def test_the_sql_shown_is_what_gives_the_histogram(events, roles):
    # A DuckDB file stands for an engine: its SQL, run as it is shown, gives the histogram of the command.
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE events AS SELECT * REPLACE (amount::DOUBLE AS amount) FROM read_csv(?)", [str(events)]
    )
    sql = counting.write_recipe(counting.ENGINES["duckdb"], roles, "events")[2]
    rows_found = [row for row in connection.execute(sql).fetchall() if row[0] > 0]
    if roles.missing_users is MissingUsers.LEAVE_OUT:
        rows_found = [row for row in rows_found if not row[1]]
    connection.close()
    source = counting.open_files([events])
    expected = counting.count(source, roles, Disclosure.PRIVATE).dataset.histogram
    assert (
        ContributionHistogram.from_table([row[0] for row in rows_found], [row[2] for row in rows_found])
        == expected
    )


@pytest.mark.few(2)
@pytest.mark.long_for("roles3")
@pytest.mark.parametrize("roles", ROLES)
def test_every_engine_has_a_command_code_and_sql(roles, events, tmp_path, capsys):
    commands = set()
    for engine in counting.ENGINES.values():
        command_text, python, sql = counting.write_recipe(engine, roles, "sales.events")
        words = shlex.split(command_text)[3:]
        at = words.index("--from") + 1
        assert words[at] == engine.example_address
        assert (
            f"--count {COUNT_OPTIONS[roles.contribution]}" in command_text
            or roles.contribution is Contribution.ROWS
        )
        compile(python, "recipe", "exec")
        assert "SELECT" in sql
        assert "password" not in command_text.lower()
        words[at] = str(events)
        commands.add(tuple(words))
    # The command's own words, on a file instead of the engine, are words that the shell understands.
    (command,) = commands
    words = list(command)
    words[words.index("--to") + 1] = str(tmp_path / "h.csv")
    at = words.index("--table")
    del words[at : at + 2]
    assert main(words) == 0, capsys.readouterr().err
