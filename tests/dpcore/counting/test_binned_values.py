"""Values by user in public bins, which an engine counts: they answer as the rows that were counted."""

import functools
import hashlib
import json
import math

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcore as ss
from dpcore import counting
from dpcore.cli import command
from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue
from dpcore.contributions import ContributionHistogram
from dpcore.counting.__main__ import main
from dpcore.counting.count import to_dataset
from dpcore.data import binned_values, samples, saved_dataset
from dpcore.data.binned_values import expand_rows
from dpcore.data.column_roles import MissingUsers, Roles
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Contribution, Dataset, Values
from dpcore.mean.parameters import Counts
from dpcore.mean.table_values import clamp
from dpcore.private_selection import select_privately, select_range
from dpcore.report import script

# Ibis 12.0 still calls what DuckDB 2.0 renames.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
EVENTS = str(samples.FOLDER / "shop_events.csv")
TENTHS = ValueBins(0.0, 10.0, 10)
NASTY = pd.DataFrame(
    [
        ("a", 1.0), ("a", 2.5), ("a", 2.75), (" a ", -3.0), ("a", -0.5), ("a", float("nan")), ("b", float("inf")),
        ("b", 10.0), ("b", -float("inf")), ("", 4.0), ("  ", 5.0), (None, 6.0), ("c", 12.5), ("c", 14.0),
        ("d", 9.999), ("d", None), ("e", 0.1), ("e", 0.1), ("e", 0.1), ("f", -1.5), ("f", 1e308), ("g", 1e99),
        ("g", 1e99),
    ],
    columns=["who", "amount"], dtype=object,
)  # fmt: skip


def open_in_duckdb(table):
    """The table as one of DuckDB in memory, NaN and null told apart."""
    backend = counting.connect("duckdb:")
    backend.raw_sql("CREATE TABLE events (who VARCHAR, amount DOUBLE, shop VARCHAR)")
    for who, amount in table.itertuples(index=False):
        backend.con.execute("INSERT INTO events VALUES (?, ?, 's')", [who, amount])
    return counting.open_table(backend, "events")


def count_in_duckdb(table, bins, missing="drop", missing_users=MissingUsers.LEAVE_OUT):
    roles = Roles.of_events(["who"], "amount", [], missing_users=missing_users, missing=missing)
    options = {"name": "values.json", "value_bins": bins}
    return counting.count_table(open_in_duckdb(table), roles, Disclosure.PRIVATE, **options).dataset


def count_rows(table, missing="drop", missing_users=MissingUsers.LEAVE_OUT):
    """The ordinary reading of a file, whose blanks are what a database calls null."""
    content = table.to_csv(index=False, na_rep="").encode()
    source = counting.open_files([counting.MemoryFile(content)], ["rows.csv"])
    roles = Roles.of_events(["who"], "amount", [], missing_users=missing_users, missing=missing)
    return counting.count(source, roles, Disclosure.PRIVATE).dataset


def build(user_codes, row_values, bins):
    """Bin rows by hand, in Python."""
    cells = {}
    for user, value in zip(user_codes, row_values, strict=True):
        place = min(max(math.floor((value - bins.lower) / bins.width), -1), bins.num_bins)
        cells.setdefault((user, place), []).append(value)
    users, places = zip(*cells, strict=True)
    rows = [len(each) for each in cells.values()]
    deviations = [
        float(np.std(each)) if 0 <= place < bins.num_bins else 0.0
        for place, each in zip(places, cells.values(), strict=True)
    ]
    means = [float(np.mean(each)) for each in cells.values()]
    return binned_values.build_values(users, rows, means, deviations, column="amount", bins=bins)


def describe(dataset, lower, upper):
    """All that a mean reads of the values, users in an order of their own."""
    clamped = clamp(dataset.values, lower, upper)
    per_user = np.stack([clamped.sizes, clamped.user_means, clamped.within_variances])
    per_user = per_user[:, np.lexsort(per_user[::-1].round(9))]
    return [*per_user.ravel(), clamped.variance, clamped.mean, clamped.num_below, clamped.num_above]


@pytest.mark.long_but("0.0-5.0-MissingUsers.ONE_USER-drop", "2.0-3.0-MissingUsers.LEAVE_OUT-drop")
@pytest.mark.parametrize("missing", ["drop", 3.5])
@pytest.mark.parametrize("missing_users", list(MissingUsers))
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 10.0), (2.0, 3.0), (0.0, 5.0)])
def test_nasty_values_are_counted_by_the_rules_of_the_ordinary_reading(missing, missing_users, lower, upper):
    rules = {"missing": missing, "missing_users": missing_users}
    there, here = count_in_duckdb(NASTY, TENTHS, **rules), count_rows(NASTY, **rules)
    assert there.histogram == here.histogram
    np.testing.assert_allclose(
        describe(there, lower, upper), describe(here, lower, upper), rtol=1e-12, atol=1e-12
    )
    sums = [np.sort(each.values.sum_per_user(each.values.values)) for each in (there, here)]
    np.testing.assert_allclose(*sums, rtol=1e-12, atol=1e-12)
    outside_mask = (there.values.values < 0.0) | (there.values.values >= 10.0)
    assert not there.values.standard_deviations[outside_mask].any()
    # Equal values stay equal, which ties in a rank need.
    assert expand_rows(there.values).values.tolist().count(0.1) == 3


def test_values_that_are_none_are_refused_without_a_rule_as_in_the_ordinary_reading():
    for count_it in (lambda: count_in_duckdb(NASTY, TENTHS, missing=None), lambda: count_rows(NASTY, None)):
        with pytest.raises(InvalidInput, match="no number up to ±1e100") as refused:
            count_it()
        assert "the cell is blank" in str(refused.value)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.floats(-3.0, 13.0)), min_size=1, max_size=60),
    low_edge=st.integers(0, 9),
    num_edges=st.integers(1, 10),
    shifts=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
)
def test_a_mean_is_exact_at_edges_and_else_off_by_no_more_than_is_said(rows, low_edge, num_edges, shifts):
    users, numbers = (np.array(each) for each in zip(*sorted(rows), strict=True))
    binned, exact = build(users, numbers, TENTHS), Values(users, numbers)
    dataset, truth = (
        Dataset("", "", Disclosure.PRIVATE, histogram_of(values), values=values) for values in (binned, exact)
    )
    ends = float(low_edge), float(min(low_edge + num_edges, 10))
    np.testing.assert_allclose(describe(dataset, *ends), describe(truth, *ends), rtol=1e-9, atol=1e-9)
    lower, upper = ends[0] + shifts[0], ends[1] - shifts[1]
    if lower < upper:
        near, clamped = clamp(binned, lower, upper), clamp(exact, lower, upper)
        means = {(size, mean) for size, mean in zip(clamped.sizes, clamped.user_means, strict=True)}
        for size, mean in zip(near.sizes, near.user_means, strict=True):
            distances = [abs(mean - other_mean) for other_size, other_mean in means if other_size == size]
            assert min(distances) <= TENTHS.width / 4.0 + 1e-9
        assert abs(near.mean - clamped.mean) <= TENTHS.width / 4.0 + 1e-9
        assert abs(math.sqrt(near.variance) - math.sqrt(clamped.variance)) <= TENTHS.width


def histogram_of(values):
    return ContributionHistogram.from_counts(values.rows_per_user)


def test_the_bound_on_the_mean_is_reached():
    """Half of a user's values at either edge of a bin: cut in its middle, their mean falls short by a quarter of it."""
    users, numbers = np.zeros(2, dtype=int), np.array([2.0, 3.0 - 1e-9])
    gap = clamp(build(users, numbers, TENTHS), 0.0, 2.5).mean - clamp(Values(users, numbers), 0.0, 2.5).mean
    assert gap == pytest.approx(TENTHS.width / 4.0)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 6), st.floats(-3.0, 13.0)), min_size=1, max_size=60))
def test_ranks_of_edges_are_exact_and_others_within_a_bin(rows):
    users, numbers = (np.array(each) for each in zip(*rows, strict=True))
    expanded = expand_rows(build(users, numbers, TENTHS))
    assert np.bincount(np.bincount(users)).tolist()[1:] == np.bincount(expanded.rows_per_user).tolist()[1:]
    for edge in range(11):
        assert np.sum(expanded.values < edge) == np.sum(numbers < edge)
    for point in np.linspace(-4.0, 14.0, 37):
        below, above = math.floor(point), math.floor(point) + 1
        low = np.sum(numbers < below) if below >= 0 else 0
        high = np.sum(numbers < above) if above <= 10 else numbers.size
        assert low <= np.sum(expanded.values <= point) <= high


@pytest.mark.long
def test_without_spread_within_bins_all_answers_are_those_of_the_rows():
    """Whole numbers in bins of width 1: every bin holds one value, so that no rank and no variance is lost."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"who": [f"u{k}" for k in rng.zipf(1.7, 400) % 60], "amount": rng.integers(0, 11, 400)}
    )
    there, here = (
        count_in_duckdb(table, TENTHS, missing=None),
        count_rows(table.astype({"amount": float}), None),
    )
    for call, options in (
        (ss.mean_bound, {"target": "table", "variance_source": "values", "likeness": "values"}),
        (ss.mean_bound, {"clamp": "users", "variance_source": "values"}),
        (ss.quantile_bound, {"weighting": "smooth", "program": "python"}),
        (ss.plan_bounds, {"lines": "mean\nmedian", "program": "python"}),
    ):
        answers = [call(each, epsilon=1, lower=0, upper=10, **options) for each in (there, here)]
        assert answers[0].error == pytest.approx(answers[1].error, rel=1e-9)
    assert ss.sum_bound(there, epsilon=1).error == pytest.approx(
        ss.sum_bound(here, epsilon=1).error, rel=1e-9
    )


def test_the_sql_that_the_page_shows_gives_the_same_values():
    table = open_in_duckdb(NASTY)
    roles = Roles.of_events(["who"], "amount", [], missing="drop")
    sql = counting.write_recipe(counting.ENGINES["duckdb"], roles, "events", TENTHS)[2]
    shown = table.get_backend().con.execute(sql.rpartition(";")[2]).fetchnumpy()
    arrays = (shown[name] for name in ("user", "rows", "mean", "standard_deviation"))
    values = binned_values.build_values(*arrays, column="amount", bins=TENTHS)
    assert values == count_in_duckdb(NASTY, TENTHS).values


def test_rows_that_values_leave_out_make_counts_private_from_an_engine_too():
    for dataset in (count_in_duckdb(NASTY, TENTHS), count_in_duckdb(NASTY, TENTHS, missing=3.5)):
        content = binned_values.write_values(dataset).encode()
        again = binned_values.read_values(content, "values.json", Disclosure.PUBLIC)
        assert again.drops_missing == dataset.drops_missing == json.loads(content)["drops_missing"]
        is_public = ss.mean_bound(again, epsilon=1, lower=0, upper=10).parameters.counts is Counts.PUBLIC
        assert is_public != again.drops_missing


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The file that the command wrote of a DuckDB file, with the histogram."""
    folder = tmp_path_factory.mktemp("binned")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE events AS SELECT * FROM read_csv('{EVENTS}')")
    arguments = ["--from", f"duckdb://{folder / 'shop.duckdb'}", "--table", "events", "--user", "user_id"]
    arguments += ["--value", "amount", "--to", str(folder / "histogram.csv")]
    arguments += ["--values-to", str(folder / "values.json"), "--value-bins", "0", "100", "50"]
    assert main(arguments) == 0
    return folder / "values.json"


def test_the_file_answers_in_python_and_in_the_command_alike(counted, capsys):
    events = to_dataset(EVENTS, user="user_id", value="amount")
    truth = ss.mean_bound(events, epsilon=1, lower=0, upper=60, variance_source="values")
    reply = ss.mean_bound(counted, epsilon=1, lower=0, upper=60, variance_source="values")
    assert (reply.bound, reply.error) == (truth.bound, pytest.approx(truth.error, rel=1e-9))
    assert any("counted in 50 bins of width 2 from 0 to 100" in text for text in reply.assumptions)
    assert (
        to_dataset(counted).histogram
        == events.histogram
        == to_dataset(counted.parent / "histogram.csv").histogram
    )
    options = ["--epsilon", "1", "--lower", "0", "--upper", "60", "--variance-source", "values"]
    assert command.main(["mean", str(counted), *options]) == 0
    assert capsys.readouterr().out == f"{reply}\n"
    # The label, and no name of a user, in the order of nothing but what they did.
    content = json.loads(counted.read_text())
    assert content["label"] == "computed from private data (do not publish)"
    users = np.repeat(np.arange(len(content["bins_per_user"])), content["bins_per_user"])
    assert np.all(np.diff(np.bincount(users, content["rows"])) >= 0)
    assert "u0" not in counted.read_text()
    assert main(["--from", str(counted), "--user", "user_id"]) == 1
    assert "binned values is counted already" in capsys.readouterr().err


@pytest.mark.long
def test_quantiles_of_the_file_are_near_those_of_the_rows(counted):
    settings_given = {"epsilon": 1, "lower": 0, "upper": 100, "weighting": "smooth", "program": "python"}
    truth = ss.quantile_bound(EVENTS, user="user_id", value="amount", **settings_given)
    reply = ss.quantile_bound(counted, **settings_given)
    plan = ss.plan_bounds(counted, epsilon=1, lower=0, upper=100, lines="mean\nmedian")
    assert sum("counted in 50 bins" in text and text.startswith("Median: ") for text in plan.assumptions) == 1
    for mine, exact in zip(reply.solution.exact_quantiles, truth.solution.exact_quantiles, strict=True):
        assert abs(mine - exact) <= 2.0
    assert any("ranks of edges are exact" in text for text in reply.assumptions)


def test_a_bound_and_a_range_are_drawn_from_the_file(counted):
    settings_given = {"epsilon": 1, "highest_total": 20_000}
    drawn = [ss.sum_bound(each, **settings_given).draw(100.0) for each in (counted, to_dataset(counted))]
    truth = ss.sum_bound(EVENTS, user="user_id", value="amount", epsilon=1).bound
    for each in (*drawn, select_privately("sum_bound", str(counted), settings_given, 100.0)):
        # At an epsilon of 100 a draw lies next to the best bound.
        assert each.bound == pytest.approx(truth, rel=0.25)
    selection = select_range(counted, epsilon=1, unit=1, largest=200, users=400, max_contributions=17)
    assert "DP release" in str(selection)


def test_a_script_reads_the_file_again(counted, monkeypatch):
    dataset, code, names = to_dataset(counted), script.CodeBuilder(), {}
    monkeypatch.chdir(counted.parent)
    for public_only in (False, True):
        cell_code = script.write_dataset_cell(
            code, script.ScriptSource(dataset, needs_rows=True), public_only
        )
        assert "'values.json'" in cell_code
        exec("\n".join([*code.list_import_lines(), cell_code]), names)
        assert names["data"] == dataset


def test_a_file_and_a_session_file_hold_what_was_counted(counted):
    dataset = to_dataset(counted)
    again = binned_values.read_values(
        binned_values.write_values(dataset).encode(), dataset.name, Disclosure.PRIVATE
    )
    assert again == dataset
    content = json.loads(json.dumps(saved_dataset.to_json(dataset).dataset_json))
    problems = Problems()
    assert saved_dataset.from_json(JsonValue(content, "", problems)) == dataset
    assert not problems.entries


def test_the_digest_of_single_rows_is_that_of_older_session_files():
    values = Values(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]), "amount")
    hasher = hashlib.sha256(b"Values")
    hasher.update(
        np.array([0, 0, 1], dtype="<i8").tobytes() + np.array([1.0, 2.0, 3.0]).tobytes() + b"'amount'"
    )
    assert values.digest == hasher.hexdigest()


def test_a_range_beyond_the_bins_is_refused_where_values_lie_there(counted):
    beyond = count_in_duckdb(pd.DataFrame({"who": list("ab"), "amount": [5.0, 200.0]}), TENTHS)
    assert ss.mean_bound(beyond, epsilon=1, lower=0, upper=5).error > 0
    for call in (ss.mean_bound, functools.partial(ss.plan_bounds, lines="mean")):
        with pytest.raises(InvalidInput, match="bins from 0 to 10, and this range reaches beyond"):
            call(beyond, epsilon=1, lower=0, upper=20)
    # All values lie within the bins, so that a wider range cuts nothing of them.
    assert ss.mean_bound(counted, epsilon=1, lower=-10, upper=110).error > 0


def test_too_many_pairs_of_user_and_bin_are_refused_before_they_are_fetched(monkeypatch):
    monkeypatch.setattr(binned_values, "MAX_ENTRIES", 6)
    with pytest.raises(
        InvalidInput, match=r"fill up to \d+ pairs of user and bin; at most 6 fit. Take fewer bins"
    ):
        count_in_duckdb(NASTY, TENTHS)


def test_rows_one_by_one_are_refused_where_they_are_too_many(monkeypatch):
    values = Values(np.zeros(1), np.ones(1), "amount", np.array([10**12]), np.ones(1), TENTHS)
    assert clamp(values, 0.0, 10.0).sizes.tolist() == [1e12]
    with pytest.raises(InvalidInput, match="rows one by one, and there are 1,000,000,000,000"):
        expand_rows(values)


@pytest.mark.parametrize(
    ("value", "groups", "contribution"),
    [
        (None, [], Contribution.ROWS),
        ("amount", ["shop"], Contribution.ROWS),
        ("amount", [], Contribution.TOTAL),
    ],
)
def test_what_does_not_go_together_is_refused(value, groups, contribution):
    roles = Roles.of_events(["who"], value, groups, contribution)
    options = {"name": "events", "value_bins": TENTHS}
    with pytest.raises(InvalidInput, match="a column of values, no groups, and rows as contributions"):
        counting.count_table(open_in_duckdb(NASTY), roles, Disclosure.PRIVATE, **options)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((5, 5, 10), "must lie below"),
        ((0, 10, 0), "a whole number between 1 and 10,000"),
        ((0, 10, 2.5), "a whole number"),
        ((0, float("inf"), 10), "finite number"),
        ((-1e200, 1e200, 10), "between"),
        ((1e9, 1e9 + 1e-3, 100), "too narrow"),
    ],
)
def test_bins_that_cannot_be_are_refused(numbers, words):
    with pytest.raises(InvalidInput, match=words):
        ValueBins(*numbers)


@pytest.mark.parametrize(
    ("key", "entry", "words"),
    [
        ("rows", [1, 2], "one entry for each bin"),
        ("rows", [0, 1, 1], "a whole number from 1"),
        ("means", [1.0, True, 3.0], "a number from"),
        ("means", [1.0, 2.0, 2e100], "a number from"),
        ("standard_deviations", [-1.0, 0.0, 0.0], "a number from 0"),
        ("bins", {"lower": 0, "upper": 10}, "num_bins is missing"),
        ("bins", {"lower": 10, "upper": 0, "num_bins": 2}, "must lie below"),
        ("bins_per_user", [], "a list of 1 to"),
        ("schema", "sweetspot/binned-values/2", "one of sweetspot/binned-values/1"),
        ("names", ["Zoe"], "not known here"),
        ("drops_missing", "keep", "must be true or false"),
        ("rows", [10**11] * 3, None),
    ],
)
def test_a_file_that_fits_no_data_is_refused_in_a_sentence(key, entry, words):
    good = {
        "schema": binned_values.SCHEMA, "label": "x", "value_column": "amount", "drops_missing": False,
        "bins": {"lower": 0, "upper": 10, "num_bins": 10}, "bins_per_user": [1, 2], "rows": [3, 1, 4],
        "means": [0.5, 2, 3.5], "standard_deviations": [0, 0.0, 0.25],
    }  # fmt: skip
    content = json.dumps(good | {key: entry}).encode()
    if words is None:
        assert binned_values.read_values(content, "x", Disclosure.PUBLIC).values.num_rows == 3 * 10**11
        return
    with pytest.raises(InvalidInput, match=words):
        binned_values.read_values(content, "x", Disclosure.PUBLIC)
