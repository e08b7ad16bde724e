"""The short programs for OpenDP: 33 lines for a tidy file, which count as Sweet Spot does or stop."""

from __future__ import annotations

import io
import json
import math
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpcore import plan_bounds
from dpcore.code import write
from dpcore.code.with_opendp import has_short_program
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting import count, open_files
from dpcore.data.column_roles import Roles, TableKind
from tests.dpcore.code.specs import SPEC_BY_NAME

SHORT = [name for name, choice in SPEC_BY_NAME.items() if has_short_program(choice)]
# Polars adds a line for columns of Parquet that hold floats. A mean that clamps users' deviations takes five more.
MAX_LINES = {"csv": 33, "parquet": 34}
ROWS = [
    ("u1", "p1", 12.5), ("u1", "p1", 7.5), ("u1", "p2", 150.0), ("NA", "p2", 30.0), ("Müller", "p1", -20.0),
    ("O'Neil, Ann", "p1", 5.25), ("7", "p3", 99.0), ("", "p3", 50.0), ("8", "", 60.0),
]  # fmt: skip
"""User, product and amount; a row names no user, and a row no product."""
CELLS_AS_PEOPLE_TYPE = """ user_id , product,amount,note
u1,p1,12.5,
 u1 , "p1" ,7.5
"u1 ", p2,150,x
NA,p2,3e1
Müller,p1, -20
"O'Neil, Ann", p1 , "5.25"
7,p3,99.0,
 ,p3,50,

8, ,60,
"""


def run_short(name: str, ending: str) -> tuple[Any, str]:
    """Run a program at epsilon = 1e7 on the file of that ending: what it released, and its standard error."""
    choice = replace(SPEC_BY_NAME[name], file=f"shop_events.{ending}", epsilon=1000.0)
    text = write(choice, Program.OPENDP).text.replace("1000.0", "1e7")
    assert f"pl.scan_{ending}(" in text
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
        exec(compile(text, "program", "exec"), {})
    return json.loads(printed.getvalue())["released"], errors.getvalue()


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    """Write the rows as a text file that people typed, and as a Parquet file with ids of one type."""
    (empty_folder / "shop_events.csv").write_text(CELLS_AS_PEOPLE_TYPE, encoding="utf-8")
    users, groups, amounts = zip(*ROWS, strict=True)
    columns = {"user_id": [user or None for user in users], " product": groups, "amount": amounts}
    pl.DataFrame(columns).write_parquet("shop_events.parquet")
    return empty_folder


@pytest.mark.parametrize("ending", MAX_LINES)
@pytest.mark.parametrize("name", SHORT)
def test_a_short_program_has_at_most_33_lines(name: str, ending: str) -> None:
    text = write(replace(SPEC_BY_NAME[name], file=f"shop_events.{ending}"), Program.OPENDP).text
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= MAX_LINES[ending] + 5 * SPEC_BY_NAME[name].clamps_users
    assert max(map(len, lines)) <= 120
    assert ("pandas" in text) is ("def " in text) is False
    is_query = "dp.Context.compositor(" in text
    assert ("query.summarize()" in text) == ("query.release()" in text) == is_query


@pytest.mark.long
def test_a_plan_of_counts_is_short(folder: Path) -> None:
    settings = {"user": "user_id", "epsilon": 1000, "lines": "users; rows", "disclosure": "public"}
    for ending in MAX_LINES:
        text = plan_bounds(folder / f"shop_events.{ending}", **settings).code("opendp")
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(lines) <= MAX_LINES[ending] - 7
        assert f"pl.scan_{ending}(" in text
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(text.replace("(epsilon=1000.0)", "(epsilon=1e7)"), "program", "exec"), {})
        releases = [json.loads(line) for line in printed.getvalue().splitlines()]
        assert [release["released"] for release in releases] == [6, 8]


TRUTHS: dict[str, Any] = {
    "count": 8.0,
    "sum": 150.25 + 30.0 - 0.0 + 5.25 + 99.0 + 60.0,
    "groups": {"p1": 3, "p2": 2, "p3": 1},
    "rows per group": {"p1": 4, "p2": 2, "p3": 1},
    "sums per group, any sign": {"p1": 20.0 - 20.0 + 5.25, "p2": 133.5 + 30.0, "p3": 99.0},
    "mean, cap": (12.5 + 7.5 + 100.0 + 30.0 + 5.0 + 5.25 + 99.0 + 60.0) / 8,
    "mean, cap, private counts": (12.5 + 7.5 + 100.0 + 30.0 + 5.0 + 5.25 + 99.0 + 60.0) / 8,
    "mean, smooth, private counts": (12.5 + 7.5 + 100.0 + 30.0 + 5.0 + 5.25 + 99.0 + 60.0) / 8,
    "means per group": {"p1": (12.5 + 7.5 + 5.0 + 5.25) / 4, "p2": 65.0, "p3": 99.0},
}
"""What is released of the rows without noise. No bound leaves out a row; totals and values are clamped."""


@pytest.mark.thinned
@pytest.mark.parametrize("ending", MAX_LINES)
@pytest.mark.parametrize("name", TRUTHS)
def test_a_short_program_reads_cells_as_people_type_them(name: str, ending: str, folder: Path) -> None:
    """With noise of a scale below 2e-4, of which 100 times have a probability of e^-100."""
    released, errors = run_short(name, ending)
    assert released == pytest.approx(TRUTHS[name], abs=0.02)
    assert ("scale" in errors) == ("private" not in name and name != "means per group")


def test_the_app_counts_the_same_rows(folder: Path) -> None:
    roles = Roles(TableKind.EVENTS, user="user_id", value="amount", task="product")
    for ending in MAX_LINES:
        dataset = count(open_files([folder / f"shop_events.{ending}"]), roles, Disclosure.PUBLIC).dataset
        assert (dataset.histogram.num_users, dataset.histogram.num_rows) == (6, 8)
        assert math.fsum(dataset.values.values) == pytest.approx(sum(row[2] for row in ROWS if row[0]))


@pytest.mark.few(12)
@pytest.mark.thinned
@pytest.mark.parametrize("cell", [None, "", "abc", "nan", "inf", "1e999", "1.1e100", "1,5"])
@pytest.mark.parametrize("name", ["sum", "mean, cap, private counts", "means per group", "quantile, cap"])
@pytest.mark.parametrize("ending", MAX_LINES)
def test_a_cell_that_is_no_number_stops_a_short_program(
    name: str, cell: str | None, ending: str, folder: Path
) -> None:
    """Nothing is released, nor is any query built; the exit code is 1, as that of any message."""
    columns = {"user_id": ["u1", "u2"], "product": ["p1", "p1"], "amount": ["3.5", cell]}
    table = pl.DataFrame(columns)
    table.write_csv("shop_events.csv")
    is_number = cell in (None, "nan", "inf")
    (table.cast({"amount": pl.Float64}) if is_number else table).write_parquet("shop_events.parquet")
    message = r"no number up to ±1e100\. Nothing was released, and no epsilon was spent\.$"
    with pytest.raises(SystemExit, match=message):
        run_short(name, ending)
    if cell == "1.1e100":  # The app refuses it, too, by the same rule.
        roles = Roles(TableKind.EVENTS, user="user_id", value="amount")
        with pytest.raises(InvalidInput, match="no number up to ±1e100"):
            count(open_files([folder / f"shop_events.{ending}"]), roles, Disclosure.PUBLIC)
        table.with_columns(amount=pl.lit("1e100")).write_csv("shop_events.csv")
        run_short(name, "csv")


def test_a_line_with_more_fields_than_columns_stops_a_short_program(folder: Path) -> None:
    """The app refuses it, too; a quotation mark behind a blank keeps no comma, as in the last line."""
    for line in ("u1,p1,1,2,3\n", 'u1, "p1, p2", 1, x\n'):
        (folder / "shop_events.csv").write_text(CELLS_AS_PEOPLE_TYPE + line, encoding="utf-8")
        with pytest.raises(SystemExit, match="cannot be read") as ending:
            run_short("count", "csv")
        assert "more fields" in str(ending.value.__context__)


@pytest.mark.long
def test_ids_of_parquet_are_told_apart_as_in_the_app(folder: Path) -> None:
    """Whole numbers stored as floats, large ones that no float holds, and a missing or undefined user."""
    for users, num_users in (
        ([7.0, 7.0, 8.5, None, float("nan")], 2),
        ([10**17, 10**17 + 1, None, None, None], 2),
        (["NaN", "7", "7.0", " 7 ", ""], 3),
        ([True, False, True, None, None], 2),
    ):
        table = pl.DataFrame({"user_id": users, "product": [1.0, 1.0, 1.0, 2.0, None], "amount": 1.0})
        table.write_parquet("shop_events.parquet")
        roles = Roles(TableKind.EVENTS, user="user_id", task="product")
        dataset = count(open_files([folder / "shop_events.parquet"]), roles, Disclosure.PUBLIC).dataset
        assert dataset.histogram.num_users == num_users
        released, _ = run_short("groups", "parquet")
        assert released["1"] == num_users


def test_private_data_and_lists_of_groups_have_the_long_program() -> None:
    choice = SPEC_BY_NAME["groups"]
    assert has_short_program(choice)
    assert not has_short_program(replace(choice, disclosure=Disclosure.PRIVATE))
    assert not has_short_program(replace(choice, groups=("p1", "p2")))
