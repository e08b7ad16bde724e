"""Lines of a plan that name a value column and a range of their own: how they are read, and what they err."""

import json

import pandas as pd
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.plan.lines import change_target, parse_lines, split_lines
from tests.dpcore.code.specs import run_text

pytestmark = pytest.mark.usefixtures("few_subsamples")

TICKETS = samples.FOLDER / "support_tickets.csv"
SETTINGS = {"user": "customer", "value": "words", "disclosure": "public", "lower": 0, "upper": 400}
LINES = "users; rows; mean; mean of hours_waited from 0 to 72; standard deviation of years from 0 to 20; sum of years"


@pytest.mark.parametrize("column", ["Tax", '"Unit Price"', '"paid within weight 2"', "ÄÖ"])
def test_a_column_is_read_as_it_is_written_whatever_the_case_of_the_words(column):
    text, problems = f"ROWS; MEAN of {column} From -1e3 TO 2.5 Within 5% WEIGHT 2", Problems()
    line = parse_lines(text, problems)[1]
    assert not problems.entries
    assert (line.column, line.lower, line.upper) == (column.strip('"'), -1000.0, 2.5)
    assert (line.target_error, line.is_relative, line.weight) == (0.05, True, 2.0)
    assert parse_lines(line.text, problems) == (line,)
    assert split_lines(text)[1] == (f"mean of {column} from -1e3 to 2.5", "5% weight 2")
    (changed,) = parse_lines(change_target(line.text, 0, "3"), problems)
    assert (changed.column, changed.target_error, changed.is_relative) == (line.column, 3.0, False)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("median of tax", "only a sum, mean, variance or standard deviation names its column"),
        ("sum of tax from 0 to 3", "names its range"),
        ("mean of tax", "needs its range. Write mean of tax from 0 to 100"),
        ("mean of tax from 3 to 0", "lower end of mean of tax"),
        ("mean of years from 0 to 9; mean of years from 0 to 3", "stands there twice"),
        ("mean of days from 0 to 9", "no column days"),
    ],
)
def test_a_line_that_cannot_be_says_why(line, message):
    with pytest.raises(InvalidInput) as caught:
        ss.plan_bounds(TICKETS, **SETTINGS, epsilon=1, lines=line)
    assert message.lower() in str(caught.value).lower()


@pytest.mark.long
def test_a_line_of_another_column_is_that_of_a_plan_of_this_column():
    plan = ss.plan_bounds(TICKETS, **SETTINGS, epsilon=2, lines=LINES)
    for line in plan.solution.lines[2:]:
        own = line.planned_line.line
        settings = SETTINGS | {"value": own.column or "words"}
        settings |= {} if own.lower is None else {"lower": own.lower, "upper": own.upper}
        alone = ss.plan_bounds(TICKETS, **settings, epsilon=line.spent_budget, lines=own.statistic.value)
        assert (line.bound, line.error) == (
            alone.solution.lines[0].bound,
            pytest.approx(alone.solution.lines[0].error, rel=1e-4),
        )
        assert line.planned_line.reference_value == alone.solution.planned_lines[0].reference_value
    # Without a first column, and of a table in memory.
    frame = pd.read_csv(TICKETS)
    settings = {"user": "customer", "disclosure": "public", "epsilon": 1}
    (only,) = ss.plan_bounds(frame, **settings, lines=["mean of years from 0 to 20"]).solution.lines
    assert only.planned_line.reference_value == pytest.approx(frame["years"].mean())
    with pytest.raises(InvalidInput, match="no program in Tumult"):
        ss.plan_bounds(TICKETS, **SETTINGS, epsilon=1, lines=LINES, program="Tumult")


@pytest.mark.long
def test_a_row_counts_if_all_columns_of_values_hold_a_number(tmp_path, monkeypatch, capsys):
    frame = pd.read_csv(TICKETS).astype({"years": object})
    frame.loc[:99, "years"], frame.loc[50:149, "words"] = "none", None
    monkeypatch.chdir(tmp_path)
    frame.to_csv("tickets.csv", index=False)
    settings = SETTINGS | {
        "disclosure": "private",
        "variance_source": "values",
        "epsilon": 500,
        "missing": "drop",
    }
    lines = "rows; mean; mean of years from 0 to 20"
    plan = ss.plan_bounds("tickets.csv", **settings, lines=lines)
    complete = frame.iloc[150:].astype({"years": float})
    values = [line.reference_value for line in plan.solution.planned_lines]
    assert values == pytest.approx([len(complete), complete["words"].mean(), complete["years"].mean()])
    for library in (Program.PYTHON, Program.OPENDP):
        run_text(plan.code({Program.PYTHON: "python", Program.OPENDP: "opendp"}[library]))
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        released = {facts["release"]: facts["released"] for facts in told}
        assert [released[name.split(" from")[0]] for name in lines.split("; ")] == pytest.approx(
            values, rel=0.02
        )


PRICES = {"1,5": 1.5, "1.234,5": 1234.5, "1 234 567": 1234567.0, "\u22123,5": -3.5, "2e2": 200.0, " 7 ": 7.0}
PAID = {"2.5": 2.5, "1,234.5": 1234.5, "12": 12.0, ".5": 0.5, "-1\u00a0000.25": -1000.25, "3": 3.0}
CELLS_WITHOUT_NUMBER = ("", "n/a", "oops", "inf", "1e200", "1,2,3", "1;5")


@pytest.mark.long
@pytest.mark.parametrize("disclosure", ["public", "private"])
def test_marks_of_every_column_are_read_as_those_of_one(disclosure, tmp_path, monkeypatch, capsys):
    """A nasty file, read by page, call and programs; each column has other marks, and cells without a number.

    Of 30 copies, the noise of a mean is about 0.1 % of it, a fiftieth of what is allowed.
    """
    prices, paid = [*PRICES, *CELLS_WITHOUT_NUMBER], [*PAID, *CELLS_WITHOUT_NUMBER]
    cells = pd.DataFrame(
        [(price, amount) for price in prices for amount in paid] * 30, columns=["price", "paid"]
    )
    cells["user"] = [f"u{row}" for row in range(len(cells))]
    numbers = pd.DataFrame({"price": cells["price"].map(PRICES), "paid": cells["paid"].map(PAID)})
    monkeypatch.chdir(tmp_path)
    cells.to_csv("nasty.csv", index=False)
    settings = {"user": "user", "disclosure": disclosure, "missing": "drop", "epsilon": 1000}
    bounds = {"lower": -10, "upper": 2000, "variance_source": "values"}
    lines = "rows; mean; mean of paid from -2000 to 2000"
    plan = ss.plan_bounds("nasty.csv", **settings, **bounds, value="price", lines=lines)
    complete = numbers.dropna()
    values = [len(complete), *complete.mean()]
    assert [line.reference_value for line in plan.solution.planned_lines] == pytest.approx(values)
    # Each column alone is read in the same way, and so is a condition on it.
    for column in numbers:
        alone = to_dataset("nasty.csv", user="user", value=column, missing="drop", disclosure=disclosure)
        assert sorted(alone.values.values) == pytest.approx(sorted(numbers[column].dropna()))
    filtered = to_dataset(
        "nasty.csv", user="user", filters="price > 1.4; paid <= 1234.4", disclosure=disclosure
    )
    satisfied = (numbers["price"] > 1.4) & (numbers["paid"] <= 1234.4)
    assert filtered.histogram.num_rows == satisfied.sum()
    clipped = complete.assign(price=complete["price"].clip(-10, 2000))
    for library in ("python", "opendp"):
        run_text(plan.code(library))
        facts = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        released = [fact["released"] for fact in facts]
        assert released == pytest.approx([len(clipped), *clipped.mean()], rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("disclosure", ["public", "private"])
@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
def test_programs_release_every_column_within_its_own_range(
    library, disclosure, tmp_path, monkeypatch, capsys
):
    frame = pd.read_csv(TICKETS)
    settings = SETTINGS | {
        "disclosure": disclosure,
        "epsilon": 1000,
        "variance_source": "values",
        "likeness": "values",
    }
    plan = ss.plan_bounds(TICKETS, **settings, lines=f"{LINES}; sum; median")
    if disclosure == "private":  # A cell that is no number counts as the lower end of its own column.
        frame["years"] = frame["years"].astype(object)
        frame.loc[0, "years"] = "?"
    (tmp_path / "support_tickets.csv").write_text(frame.to_csv(index=False))
    (tmp_path / "sample_data").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    ((_, several),) = plan.answer.code.forms
    run_text(write(several, library).text)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    released = {facts["release"]: facts["released"] for facts in told}
    years = pd.to_numeric(frame["years"], errors="coerce").fillna(0.0)
    expected = {
        "mean": frame["words"].mean(),
        "mean of hours_waited": frame["hours_waited"].mean(),
        "standard deviation of years": years.std(),
        "sum of years": years.sum(),
        "sum": frame["words"].sum(),
        "median": frame["words"].median(),
    }
    for name, value in expected.items():
        assert released[name] == pytest.approx(value, rel=0.03), name
    with pytest.raises(InvalidInput, match="no program with a variance"):
        plan.code("pipelinedp")
