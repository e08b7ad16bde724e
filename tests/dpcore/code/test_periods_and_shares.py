"""A user in a period as the unit, and shares: the guarantee for a whole person, and what page and programs count."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import dpcore as ss
from dpcore.code import Quantity, ReleaseSpec, write
from dpcore.common.checks import InvalidInput
from dpcore.common.group_privacy import price_person
from dpcore.common.privacy import Disclosure, compute_gaussian_sigma
from dpcore.common.programs import Program
from dpcore.counting import __main__ as counting_command
from dpcore.counting.count import to_dataset
from dpcore.data.column_roles import name_users_column
from dpcore.data.periods import Periods
from dpcore.report import content
from dpcore.report.settings_file import list_columns
from tests.dpcore.code.specs import run_program, run_text

YEAR = "2025-01-01 to 2026-01-01 by month"
COLUMNS: dict[str, Any] = {"user": "user", "date": "day", "periods": YEAR}


def make_rows(num_rows: int = 400, seed: int = 3) -> pd.DataFrame:
    """Rows of 40 users from 2024-12 to 2026-02, some without a date."""
    rng = np.random.default_rng(seed)
    days = [date(2024, 12, 1) + timedelta(days=int(n)) for n in rng.integers(0, 440, num_rows)]
    answers = rng.choice(["Y", "n", "y", "maybe"], num_rows)
    users = [f"u{n}" for n in rng.integers(0, 40, num_rows)]
    texts = ["" if k % 50 == 0 else day.isoformat() for k, day in enumerate(days)]
    frame = pd.DataFrame(
        {"user": users, "day": texts, "said": answers, "group": rng.choice(["a", "b"], num_rows)}
    )
    return frame.assign(size=rng.integers(0, 9, num_rows), odd=rng.choice(["", "x", "2", "3.5"], num_rows))


def count_kept(frame: pd.DataFrame, cap: int) -> int:
    """Return the rows that a bound per user and month keeps, by pandas alone."""
    in_year = frame[frame["day"].str[:4] == "2025"]
    sizes = in_year.groupby(["user", in_year["day"].str[:7]]).size()
    return int(sizes.clip(upper=cap).sum())


@pytest.mark.parametrize(("epsilon", "num_units"), [(0.5, 1), (1.0, 3), (0.3, 12)])
def test_laplace_noise_protects_a_person_by_exactly_the_price(epsilon: float, num_units: int) -> None:
    """The exact log ratio over neighbours that differ in all rows of a person in k months."""
    rows = make_rows()
    months = [f"2025-{month:02}-11" for month in range(1, num_units + 1)]
    person = pd.DataFrame(
        {"user": "p", "day": [day for day in months for _ in range(5)], "said": "Y", "group": "a"}
    )
    cap = 2
    counts = [
        float(to_dataset(frame, **COLUMNS).histogram.count_kept_rows(cap))
        for frame in (rows, pd.concat([rows, person], ignore_index=True))
    ]
    law = stats.laplace(scale=cap / epsilon)
    outputs = np.linspace(counts[0] - 50, counts[1] + 50, 2001)
    log_ratios = law.logpdf(outputs - counts[0]) - law.logpdf(outputs - counts[1])
    assert np.abs(log_ratios).max() == pytest.approx(price_person(epsilon, 0.0, num_units).epsilon, rel=1e-12)


@pytest.mark.parametrize("num_units", [2, 5, 12])
def test_the_delta_of_a_group_is_reached(num_units: int) -> None:
    """Bernoulli laws of which neighbours are (epsilon, delta)-close, with equality: p = e^epsilon p' + delta."""
    epsilon, delta = 0.7, 1e-5
    chances = [0.0]
    for _ in range(num_units):
        chances.append(math.exp(epsilon) * chances[-1] + delta)
    price = price_person(epsilon, delta, num_units)
    assert price.epsilon == pytest.approx(num_units * epsilon)
    assert chances[-1] <= price.delta <= chances[-1] * (1 + 1e-12)
    assert price_person(50.0, 1e-5, 100).delta == 1.0
    twice = price_person(epsilon, delta, 1, num_units)
    assert (twice.epsilon, twice.delta) == pytest.approx((num_units * epsilon, num_units * delta))


@pytest.mark.parametrize(("counts", "distance"), [((4, 1), 4.0), ((1, 4), 2.0)])
def test_gaussian_noise_has_k_squared_rho_for_a_group_and_k_rho_for_releases(counts, distance: float) -> None:
    """Four months at sigma: one release moves by 4, four releases by 1 each, which is 2 in L2."""
    epsilon, delta = 1.0, 1e-6
    sigma = compute_gaussian_sigma(epsilon, delta)
    person = price_person(epsilon, delta, *counts, release_rho=0.5 / sigma**2)
    law, moved = stats.norm(scale=sigma), stats.norm(distance, sigma)
    for order in (1.5, 4.0):  # Renyi divergence, which rho bounds by order * rho, with equality.
        moment = integrate.quad(
            lambda x, a=order: math.exp(a * moved.logpdf(x) + (1 - a) * law.logpdf(x)),
            -80,
            160,
            points=[0, 30],
        )[0]
        assert math.log(moment) / (order - 1) == pytest.approx(order * person.rho, rel=1e-6)

    def find_delta(at_epsilon: float) -> float:
        """Return the exact delta: Balle and Wang 2018, theorem 8."""
        half, tilt = distance / (2 * sigma), at_epsilon * sigma / distance
        return float(stats.norm.cdf(half - tilt) - math.exp(at_epsilon) * stats.norm.cdf(-half - tilt))

    assert find_delta(person.epsilon) <= delta < find_delta(0.9 * person.epsilon)


@pytest.mark.long
def test_a_person_is_never_more_units_than_periods() -> None:
    rows = pd.DataFrame({"user": "p", "day": pd.date_range("2020-01-01", "2030-01-01").astype(str)})
    for span, num_units in (
        (YEAR, 12),
        ("2025-01-01 to 2025-12-31 by week", 52),
        ("2025-03-01, 2025-06-15", 1),
    ):
        periods = Periods("day", span)
        assert to_dataset(rows, user="user", date="day", periods=span).histogram.num_users == num_units
        assert periods.num_periods == num_units


@pytest.mark.long_but("Disclosure.PUBLIC-csv", "Disclosure.PRIVATE-parquet")
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "zone.parquet"])
@pytest.mark.parametrize("disclosure", [Disclosure.PUBLIC, Disclosure.PRIVATE])
def test_programs_count_units_and_shares_as_the_page(ending: str, disclosure, empty_folder: Path) -> None:
    frame = make_rows()
    typed = frame.assign(day=pd.to_datetime(frame["day"].replace("", None)))
    if ending == "csv":
        frame.to_csv("t.csv", index=False)
    elif ending == "jsonl":
        frame.to_json("t.jsonl", orient="records", lines=True)
    elif ending == "zone.parquet":
        typed.assign(day=typed["day"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")).to_parquet(
            "t.zone.parquet"
        )
    else:
        typed.to_parquet("t.parquet")
    name, label = f"t.{ending}", "public" if disclosure is Disclosure.PUBLIC else "private"
    filters = "group != B; size > 2; odd <= 3.5"
    dataset = to_dataset(name, value="said", yes="Y", filters=filters, disclosure=label, **COLUMNS)
    frame = frame[(frame["group"] == "a") & (frame["size"] > 2) & frame["odd"].isin(["2", "3.5"])]
    in_year = frame[frame["day"].str[:4] == "2025"]
    assert dataset.histogram.num_rows == len(in_year)
    assert dataset.values is not None
    assert dataset.values.values.sum() == (in_year["said"].str.lower() == "y").sum()
    assert "have no date in day from 2025-01-01 to before 2026-01-01" in dataset.notes[0]
    fields: dict[str, Any] = {"file": name, "layout": dataset.layout, "has_known_columns": True}
    fields |= {"privacy_unit": dataset.privacy_unit, "value_column": "said"}
    for library in (Program.PYTHON, Program.OPENDP):
        choice = ReleaseSpec(Quantity.COUNT, 1000.0, disclosure, max_rows=2, **fields)
        released = run_program(choice, library)["count"]
        assert released == pytest.approx(count_kept(frame, 2), abs=0.5)
    for library in (Program.PIPELINEDP, Program.TUMULT):
        compile(write(choice, library).text, "program", "exec")
    assert not write(choice, Program.BIGQUERY).text
    assert "no bins, periods and filters" in write(choice, Program.BIGQUERY).differences[0]
    yes_units = in_year[in_year["said"].str.lower() == "y"].groupby(["user", in_year["day"].str[:7]]).size()
    choice = ReleaseSpec(Quantity.SUM, 1000.0, disclosure, max_total=1.0, **fields)
    assert run_program(choice, Program.PYTHON)["total"] == pytest.approx(len(yes_units), abs=0.1)


@pytest.mark.long
def test_answers_say_unit_price_and_share_and_ask_again_alike(empty_folder: Path) -> None:
    make_rows().to_csv("t.csv", index=False)
    options: dict[str, Any] = {"value": "said", "yes": "Y", "epsilon": 0.5, "person_epsilon": 8, **COLUMNS}
    options["filters"] = "size >= 1"
    answer = ss.mean_bound("t.csv", **options)
    assert "Per user and month; whole person: ε = 6 of 8" in str(answer)
    assert "Of the total ε = 8, 2 remains." in answer.facts["Whole person"]
    assert "share of rows with Y in said was released" in answer.methods.text
    assert "Only rows with size >= 1 count. Rows with a date in day" in answer.methods.text
    assert "a person has rows in at most 12 months" in answer.methods.text
    assert "group privacy gives ε = 6" in answer.code("python")
    assert any("a person has rows" in sentence for sentence in json.loads(answer.write_json())["assumptions"])
    assert (answer.parameters.lower, answer.parameters.upper) == (0.0, 1.0)
    drawn = answer.draw(0.25, largest=20)
    assert "whole person: ε = 9 of 8" in str(drawn)
    assert "1 is missing" in drawn.facts["Whole person"]
    assert "group privacy gives ε = 9" in drawn.code("python").replace("\n# ", " ")
    for call, settings in (
        (ss.plan_bounds, {"lines": "share; rows"}),
        (ss.group_bounds, {"group": "group", "statistic": "mean"}),
    ):
        assert "share of rows with Y in said" in call("t.csv", **options, **settings).facts["Share"]
    names = {name: text for name, text in vars(ss).items() if name == "mean_bound"}
    exec(answer.script().split("# %% The answer")[0], names)
    assert names["data"].digest == answer.data.digest
    monthly = ss.count_bound(
        "t.csv", **{**COLUMNS, "periods": "2025-03-01 to 2025-04-01 by month"}, epsilon=0.5, releases=12
    )
    assert "over 12 such releases, one every month, composition gives ε = 6" in monthly.facts["Whole person"]


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (ss.task_weights, {}),
        (ss.weights_gain, {}),
    ],
)
def test_every_answer_of_a_release_states_the_price_of_a_person(call, settings) -> None:
    rows = make_rows().assign(task=[f"t{k % 37}" for k in range(400)]).drop_duplicates(["user", "task"])
    columns = {"value": "size", "group": "task", "disclosure": "public"}
    answer = call(to_dataset(rows, **columns, **COLUMNS), **settings, epsilon=0.5)
    assert "with rows in at most 12 months, group privacy gives ε = 6" in answer.facts["Whole person"]
    assert answer.answer.unit_text.startswith("Per user and month; whole person: ε = 6")
    of_user = call(to_dataset(rows, **columns, user="user"), **settings, epsilon=0.5)
    assert "Whole person" not in of_user.facts


@pytest.mark.long
@pytest.mark.parametrize("disclosure", ["public", "private"])
def test_a_written_histogram_keeps_the_unit(disclosure: str, empty_folder: Path) -> None:
    rows = make_rows().rename(columns={"user": "user_id", "day": 'day, "of" sale'})
    rows.to_csv("events.csv", index=False)
    date_column = str(rows.columns[1])
    of_rows = {"user": "user_id", "date": date_column, "periods": YEAR, "disclosure": disclosure}
    arguments = ["--from", "events.csv", "--user", "user_id", "--date", date_column, "--periods", YEAR]
    public_option = ["--public"] if disclosure == "public" else []
    assert counting_command.main([*arguments, *public_option, "--to", "h.csv"]) == 0
    answer = ss.count_bound("events.csv", **of_rows, epsilon=0.5)
    Path("page.csv").write_text(content.write_histogram(answer.data), encoding="utf-8")
    for name in ("h.csv", "page.csv"):
        opened = ss.count_bound(name, epsilon=0.5, disclosure=disclosure)
        assert (opened.bound, opened.answer.unit_text) == (answer.bound, answer.answer.unit_text)
        assert opened.facts["Whole person"] == answer.facts["Whole person"]
        # Asked again from its settings and its script, with the unit.
        assert not {"date", "periods"} & list_columns(opened.data).keys()
        cell = opened.script().split("# %% The answer")[0].split("# %% The data")[1]
        assert YEAR in cell
    # Its program bounds rows per user and month, with names to put in: here they are the file's.
    program_text = opened.code("python").replace("EPSILON = 0.5", "EPSILON = 1000.0")
    kept = count_kept(rows.rename(columns={date_column: "day", "user_id": "user"}), opened.bound)
    assert run_text(program_text)["count"] == pytest.approx(kept, abs=1)
    # One period is a condition on rows: the unit is the user.
    assert name_users_column(Periods("day", "2025-01-01 to 2026-01-01 by year")) == "users"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"date": "day"}, "eriods need a column of dates and a public span"),
        ({"periods": YEAR}, "eriods need a column of dates"),
        ({"date": "day", "periods": "0, 10"}, "eriods begin and end with dates"),
        ({"date": "day", "periods": YEAR, "releases": 2}, "do not mix"),
        (
            {"date": "day", "periods": "1990-01-01 to 1991-01-01 by month"},
            "o row has a date from 1990-01-01",
        ),
        ({"date": "user", "periods": YEAR}, "chosen for user and for date"),
        ({"person_epsilon": 2}, "go with periods"),
        ({"yes": "Y"}, "es is the text of a cell of values"),
        ({"filters": "size ~ 3"}, "he condition 'size ~ 3' cannot be read"),
        ({"filters": "size > many"}, "he condition 'size > many' cannot be read"),
        ({"filters": "length > 3"}, "here is no column length"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        to_dataset(make_rows(), user="user", **columns)


@pytest.mark.long_for("week-3")
@pytest.mark.parametrize(("step", "num_units"), [("day", 1), ("week", 3), ("month", 3)])
def test_impossible_dates_make_no_further_periods_of_a_person(step, num_units, empty_folder: Path) -> None:
    """A person could write 2025-13 to 2025-99; 2025-02-31 lies in February, and in the week of its digits."""
    days = [f"2025-{month:02}-01" for month in [0, *range(13, 100)]]
    days += ["2025-12-31", "2025-02-31", "2025-06-31", "2025-01-32", "2025-01-00"]
    pd.DataFrame({"user": "p", "day": days}).to_csv("t.csv", index=False)
    dataset = to_dataset("t.csv", user="user", date="day", periods=f"2025-01-01 to 2026-01-01 by {step}")
    assert dataset.histogram.num_users == num_units
    fields: dict[str, Any] = {"file": "t.csv", "layout": dataset.layout, "has_known_columns": True}
    choice = ReleaseSpec(
        Quantity.COUNT, 1000.0, Disclosure.PRIVATE, max_rows=1, privacy_unit=dataset.privacy_unit, **fields
    )
    assert run_program(choice, Program.PYTHON)["count"] == pytest.approx(num_units, abs=0.1)


@pytest.mark.parametrize("yes", ["1", "1.0"])
def test_a_column_of_floats_in_a_text_file_says_yes_to_programs_too(yes: str, empty_folder: Path) -> None:
    """A missing cell makes pandas write 1.0 for 1. A number with _ is no number of a filter."""
    cells = [1.0, 0.0, 1.0, None, 7.5, 10.0]
    frame = pd.DataFrame({"user": list("abcdef"), "said": cells, "size": ["1", "2", "3", "4", "1_0", "5"]})
    frame.to_csv("t.csv", index=False)
    dataset = to_dataset("t.csv", user="user", value="said", yes=yes, missing=0.0, filters="size > 0")
    assert dataset.values is not None
    assert sorted(dataset.values.values) == [0.0, 0.0, 0.0, 1.0, 1.0]
    fields: dict[str, Any] = {"file": "t.csv", "layout": dataset.layout, "has_known_columns": True}
    fields |= {"privacy_unit": ("user",), "value_column": "said"}
    choice = ReleaseSpec(Quantity.SUM, 1000.0, Disclosure.PRIVATE, max_total=1.0, **fields)
    assert run_program(choice, Program.PYTHON)["total"] == pytest.approx(2.0, abs=0.1)


@pytest.mark.long
def test_the_day_of_a_time_is_that_of_utc_wherever_the_app_runs(empty_folder: Path, monkeypatch) -> None:
    times = pd.to_datetime(["2025-02-01 01:00", "2026-01-01 02:00"]).tz_localize("UTC")
    pd.DataFrame({"user": ["a", "a"], "day": times}).to_parquet("t.parquet")
    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setenv("PYTHONPATH", str(Path(ss.__file__).parents[1]))
    code = "from dpcore.counting.count import to_dataset; "
    code += f"print(to_dataset('t.parquet', user='user', date='day', periods={YEAR!r}).histogram.num_rows)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(process.stdout) == 1


def test_a_column_with_the_name_of_the_period_is_refused() -> None:
    """Programs would write the period over its cells."""
    with pytest.raises(InvalidInput, match="olumn month of day: programs write the period"):
        to_dataset(make_rows().assign(**{"month of day": 1}), value="month of day", **COLUMNS)


def test_periods_change_the_digest_and_survive_a_session_file() -> None:
    from dpcore.common.checks import Problems
    from dpcore.common.strict_json import JsonValue
    from dpcore.data import saved_dataset

    dataset = to_dataset(make_rows(), **COLUMNS)
    assert dataset.layout is not None
    other = replace(
        dataset, layout=replace(dataset.layout, periods=replace(dataset.periods, person_epsilon=3.0))
    )
    assert other.digest != dataset.digest
    problems = Problems()
    read = saved_dataset.from_json(JsonValue(saved_dataset.to_json(dataset).dataset_json, "", problems))
    assert not problems.entries
    assert read is not None
    assert (read.periods, read.user_columns) == (dataset.periods, ("user",))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_an_engine_counts_units_shares_and_filters_as_files_are_counted() -> None:
    import ibis
    import pyarrow as pa

    from dpcore import counting
    from dpcore.counting.engines import ENGINES, write_recipe
    from dpcore.data.column_roles import Roles
    from dpcore.data.row_filter import parse_filters

    frame = make_rows()
    periods = Periods("day", "2025-01-01 to 2025-12-31 by week")
    roles = Roles.of_events(
        ["user"], "said", [], yes="Y", periods=periods, filters=parse_filters("size > 2; odd != x")
    )
    connection = ibis.duckdb.connect()
    for day_column in (frame["day"], pd.to_datetime(frame["day"].replace("", None))):
        connection.con.register("t", pa.Table.from_pandas(frame.assign(day=day_column)))
        counted = counting.count_table(connection.table("t"), roles, Disclosure.PRIVATE, name="t").dataset
        options = {"date": "day", "periods": periods.span, "filters": "size > 2; odd != x"}
        of_frame = to_dataset(frame.assign(day=day_column), user="user", value="said", yes="Y", **options)
        assert counted is not None
        assert (counted.histogram, counted.layout) == (
            of_frame.histogram,
            replace(of_frame.layout, files=counted.layout.files, numbers=()),
        )
    command, code, sql = write_recipe(ENGINES["duckdb"], roles, "t")
    assert (
        "--yes Y --filters 'size > 2; odd != x' --date day --periods '2025-01-01 to 2025-12-31 by week'"
        in command
    )
    names: dict[str, Any] = {}
    exec(code[code.index("from dpcore.common") : code.index("backend =")], names)
    exec(code[code.index("roles =") : code.index("counted =")], names)
    assert names["roles"] == roles
    connection.con.register("t", pa.Table.from_pandas(frame.assign(day=day_column)))
    users = connection.con.execute(sql).fetchall()
    assert sum(num for _, nobody, num in users if not nobody) == of_frame.histogram.num_users
