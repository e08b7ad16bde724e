"""Files that `sweet-spot count` writes answer as the rows that were counted."""

import io

import pandas as pd
import pytest

import dpcore as ss
from dpcore.cli import command
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import count, open_files, read_table
from dpcore.counting.__main__ import main, write_histogram_csv, write_pairs_csv
from dpcore.counting.count import to_dataset
from dpcore.data import group_pairs, samples
from dpcore.data.column_roles import TableKind
from dpcore.data.guessed_roles import guess_roles
from dpcore.dataset import Contribution
from dpcore.per_group.parameters import Statistic
from dpcore.report import content

EVENTS = str(samples.FOLDER / "shop_events.csv")
COLUMNS = {"user": "user_id", "group": "product"}


@pytest.fixture(scope="module")
def events():
    return to_dataset(EVENTS, **COLUMNS, value="amount")


@pytest.fixture
def pairs(events, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(write_pairs_csv(events.pairs))
    return path


def bounds_of(reply):
    return reply.bound, reply.error


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["rows", "users", "sum"])
def test_pairs_answer_as_the_rows_that_were_counted(events, pairs, statistic):
    value = "sum" if statistic == "sum" else None
    truth = bounds_of(ss.group_bounds(events, epsilon=1, statistic=statistic))
    columns_named = {"user": "user", "group": "group"}
    for table_given in (pairs, pd.read_csv(pairs)):
        assert (
            bounds_of(
                ss.group_bounds(table_given, **columns_named, value=value, epsilon=1, statistic=statistic)
            )
            == truth
        )
    assert bounds_of(ss.group_bounds(pairs, value=value, epsilon=1, statistic=statistic)) == truth
    # Rows of all groups are rows, too.
    assert to_dataset(pairs, user="user").histogram == events.histogram
    assert to_dataset(
        pairs, user="user", contribution=Contribution.DISTINCT_TASKS, group="group"
    ).histogram == (to_dataset(EVENTS, **COLUMNS, contribution=Contribution.DISTINCT_TASKS).histogram)


@pytest.mark.long
def test_pairs_answer_in_a_shell(pairs, capsys):
    truth = str(ss.group_bounds(pairs, epsilon=1))
    for columns_named in ([], ["--user", "user", "--group", "group"]):
        assert command.main(["group", str(pairs), *columns_named, "--epsilon", "1"]) == 0
        assert capsys.readouterr().out == f"{truth}\n"
    assert main(["--from", EVENTS, "--user", "user_id"]) == 0
    rows = capsys.readouterr().out
    assert main(["--from", str(pairs), "--user", "user"]) == 0
    assert capsys.readouterr().out == rows


def test_large_files_of_pairs_are_read_alike(events, pairs):
    source = open_files([pairs], small_bytes=0)
    assert not source.is_complete
    assert source.roles.kind is TableKind.PAIRS
    read_again = count(source, source.roles, Disclosure.PRIVATE).dataset
    assert read_again.histogram == events.histogram
    assert read_again.pairs.rows.tolist() == events.pairs.rows.tolist()
    assert read_again.pairs.sums.tolist() == events.pairs.sums.tolist()
    with pytest.raises(InvalidInput, match="sums of squares"):
        ss.group_bounds(read_again, epsilon=1, statistic=Statistic.MEAN, lower=0, upper=100)


def test_a_distribution_of_pairs_answers_without_columns(events, tmp_path, capsys):
    path = tmp_path / "distribution.json"
    path.write_text(group_pairs.write_distribution(events))
    truth = bounds_of(
        ss.group_bounds(group_pairs.read_distribution(path.read_bytes(), "x", Disclosure.PRIVATE), epsilon=1)
    )
    assert bounds_of(ss.group_bounds(path, epsilon=1)) == truth
    assert bounds_of(ss.group_bounds([str(path)], user="user", group="group", epsilon=1)) == truth
    assert command.main(["group", str(path), "--epsilon", "1"]) == 0
    capsys.readouterr()
    with pytest.raises(InvalidInput, match="one file"):
        ss.group_bounds([path, EVENTS], epsilon=1)
    assert main(["--from", str(path), "--user", "users"]) == 1
    assert "counted already" in capsys.readouterr().err


def test_a_histogram_answers_without_columns(events, tmp_path):
    path = tmp_path / "histogram.csv"
    path.write_text(write_histogram_csv(events))
    assert to_dataset(path).histogram == events.histogram
    assert to_dataset(pd.read_csv(path)).histogram == events.histogram


def test_the_histogram_of_the_page_is_read_as_that_of_the_command(tmp_path):
    rows = pd.DataFrame({"who": [1, 1, 2, 3], "spent": [2, 3, 5, 7]})
    dataset = to_dataset(rows, user="who", value="spent", contribution=Contribution.TOTAL)
    for index, text in enumerate((write_histogram_csv(dataset), content.write_histogram(dataset))):
        path = tmp_path / f"{index}.csv"
        path.write_text(text)
        read_again = to_dataset(path)
        assert (read_again.contribution, read_again.value_column) == (Contribution.TOTAL, "spent")
        assert read_again.histogram == ContributionHistogram.from_counts([5, 5, 7])


@pytest.mark.long
def test_totals_answer_as_the_rows_that_were_added_up(tmp_path, capsys):
    """The file names the column: its sizes are totals and not rows, whatever characters the name has."""
    column = 'net "amount", EUR'
    rows = pd.read_csv(EVENTS).rename(columns={"amount": column})
    rows[column] = rows[column].round()
    source, path = tmp_path / "rounded.csv", tmp_path / "totals.csv"
    rows.to_csv(source, index=False)
    options = ["--user", "user_id", "--value", column, "--count", "total"]
    assert main(["--from", str(source), *options, "--to", str(path)]) == 0
    truth = ss.sum_bound(str(source), user="user_id", value=column, epsilon=1)
    for reply in (ss.sum_bound(path, epsilon=1), ss.sum_bound(pd.read_csv(path), epsilon=1)):
        assert bounds_of(reply) == bounds_of(truth)
    read_again = to_dataset(path)
    assert (read_again.contribution, read_again.value_column) == (Contribution.TOTAL, column)
    capsys.readouterr()
    assert command.main(["sum", str(path), "--epsilon", "1"]) == 0
    assert capsys.readouterr().out == f"{ss.sum_bound(path, epsilon=1)}\n"


@pytest.mark.long
def test_sums_beside_pairs_answer_without_columns(events, pairs):
    truth = ss.sum_bound(events, epsilon=1)
    assert bounds_of(ss.sum_bound(pairs, epsilon=1)) == bounds_of(ss.sum_bound(pairs, value="sum", epsilon=1))
    assert ss.sum_bound(pairs, epsilon=1).error == pytest.approx(truth.error, rel=1e-9)
    assert bounds_of(ss.group_bounds(pairs, statistic="sum", epsilon=1)) == bounds_of(
        ss.group_bounds(events, statistic="sum", epsilon=1)
    )


def test_cells_that_are_no_codes_are_refused_and_other_tables_are_rows(pairs):
    table = pd.read_csv(pairs)
    for column, cell in (("rows", 0), ("user", 0.5), ("sum", float("nan"))):
        late = pd.concat([table] * 3, ignore_index=True).astype({"rows": float, "user": float})
        late.loc[len(late) - 1, column] = cell
        late[["user", "group"]] += 0
        late["user"] += late.index // len(table) * 1e6
        with pytest.raises(InvalidInput, match=column):
            ss.group_bounds(io_path(late, pairs), value="sum", epsilon=1)
    # Users that are no codes, and pairs that repeat within the first rows, are events.
    for table_of_events in (
        table.assign(user="u" + table["user"].astype(str)),
        pd.concat([table.head(3)] * 2),
    ):
        read_again = open_files([io_path(table_of_events, pairs)])
        assert read_again.roles.kind is not TableKind.PAIRS
    second_path = pairs.with_name("second.csv")
    second_path.write_text(pairs.read_text())
    with pytest.raises(InvalidInput, match="not those of another"):
        to_dataset([pairs, second_path], user="user", group="group")


def io_path(table, pairs):
    stream = io.StringIO()
    table.to_csv(stream, index=False)
    path = pairs.with_name("changed.csv")
    path.write_text(stream.getvalue())
    return path


@pytest.mark.parametrize(
    ("header", "size", "users"),
    [
        ("size,users,label", "size", "users"),
        ("total_of_amount,users,label", "total_of_amount", "users"),
        ("rows,customers", "rows", "customers"),
        ("patients,count", "count", "patients"),
        ("users,products", "users", "products"),
        ("x,y", "x", "y"),
    ],
)
def test_headers_of_histograms_in_the_documentation_are_read_so(header, size, users):
    names = header.split(",")
    frame = pd.DataFrame({name: ["public"] * 3 if name == "label" else [1, 2, 5] for name in names})
    roles = guess_roles(read_table(frame.to_csv(index=False).encode(), "file.csv"))
    assert (roles.kind, roles.size, roles.users) == (TableKind.HISTOGRAM, size, users)
