"""Values that are missing or no number: page and programs leave out the same rows, or put the same number there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import counting
from dpcore.cli.ask import ask
from dpcore.code import LIBRARIES, Quantity, ReleaseSpec, write
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.counting.__main__ import main as count_from_shell
from dpcore.counting.frames import write_parquet
from dpcore.counting.user_amounts import read_user_amounts
from dpcore.data.column_roles import Roles
from dpcore.dataset import Dataset
from dpcore.mean import Counts
from dpcore.report import settings_file
from tests.dpcore.code.specs import MODULES, run_program

CELLS = ["1.5", "", "2", "oops", "3.25", "nan", "inf", "4", "N/A", "-1.1e100"]
NUMBERS = [1.5, None, 2.0, None, 3.25, None, None, 4.0, None, None]
"""What stands in the cells by hand; None where no number up to ±1e100 does."""
USERS = [f"u{index % 4}" for index in range(len(CELLS))]
RULES = ["drop", 2.5]
BOTH_LABELS = pytest.mark.parametrize("disclosure", [Disclosure.PUBLIC, Disclosure.PRIVATE])
RANGE = {"lower": 0.0, "upper": 5.0}
BOUNDS: dict[Quantity, dict[str, Any]] = {
    Quantity.COUNT: {"max_rows": 9},
    Quantity.SUM: {"max_total": 90.0},
    Quantity.MEAN: {"max_rows": 9, **RANGE},
    Quantity.GROUP_MEANS: {"max_rows": 9, "max_groups": 1, **RANGE},
}


def frame_of(cells=CELLS) -> pd.DataFrame:
    return pd.DataFrame({"user": USERS[: len(cells)], "product": "p", "amount": cells})


def write_table(name: str, cells=CELLS) -> None:
    """Write the table as text, as JSON, or typed with what Parquet has for a missing number."""
    frame = frame_of(cells)
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".jsonl"):
        frame.to_json(name, orient="records", lines=True)
    else:
        numbers = [number if cell != "inf" else np.inf for cell, number in zip(cells, NUMBERS, strict=False)]
        frame.assign(amount=pd.array(numbers, dtype="Float64")).to_parquet(name)


def read(name: str, rule: Any, disclosure=Disclosure.PRIVATE, small_bytes: int = 5_000_000) -> Dataset:
    roles = Roles.of_events(["user"], "amount", ["product"], missing=rule)
    dataset = counting.count(counting.open_files([name], small_bytes=small_bytes), roles, disclosure).dataset
    assert dataset is not None
    return dataset


def expected_rows(rule: Any) -> list[tuple[str, float]]:
    """Return user and value of the rows that count, by hand."""
    rows = zip(USERS, NUMBERS, strict=True)
    replaced = [(user, rule if number is None else number) for user, number in rows]
    return [row for row in replaced if row[1] != "drop"]


@pytest.mark.few(2)
@pytest.mark.thinned
@pytest.mark.parametrize("small_bytes", [5_000_000, 0])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize("rule", RULES)
def test_the_app_leaves_out_or_replaces(rule: Any, name: str, small_bytes: int, empty_folder: Path) -> None:
    write_table(name)
    dataset = read(name, rule, small_bytes=small_bytes)
    rows = expected_rows(rule)
    assert sorted(dataset.values.values) == sorted(value for _, value in rows)
    assert dataset.histogram.num_users == len({user for user, _ in rows})
    assert dataset.pairs.rows.sum() == len(rows)
    assert any(note.startswith("6 rows without a number in column amount") for note in dataset.notes)
    with pytest.raises(InvalidInput, match="replaced by a public number or their rows left out"):
        read(name, None, small_bytes=small_bytes)


def choice_of(quantity: Quantity, dataset: Dataset, **fields: Any) -> ReleaseSpec:
    """Build a choice with hardly any noise, which reads the file as the page has read it."""
    return ReleaseSpec(
        quantity, 1000.0, dataset.disclosure, file=dataset.name, layout=dataset.layout, has_known_columns=True,
        privacy_unit=("user",), value_column="amount", group_column="product", **BOUNDS[quantity], **fields,
    )  # fmt: skip


def run_reading(choice: ReleaseSpec, library: Program, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Run a program up to the rows that it has read, and return them."""
    if library not in (Program.PYTHON, Program.OPENDP):
        for module_name in MODULES:
            monkeypatch.setitem(sys.modules, module_name, MagicMock())
    text = write(choice, library).text.replace("GROUPS: list[str] = []", 'GROUPS = ["p"]')
    reading = re.split(
        r"\nunits = |\nspark = |\nSCHEMA = |\nevents = events.sample|\nusers = |\ntotals = ", text
    )[0]
    names: dict[str, Any] = {}
    exec(compile(reading, "program", "exec"), names)
    events: pd.DataFrame = names["events"]
    return events.rename(columns={"privacy_unit": "user", "value": "amount"})


@pytest.mark.few(3)
@pytest.mark.thinned
@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("library", [each for each in LIBRARIES if each is not Program.BIGQUERY])
@pytest.mark.parametrize("quantity", [Quantity.COUNT, Quantity.GROUP_MEANS])
@BOTH_LABELS
def test_every_program_reads_the_rows_of_the_page(
    disclosure, quantity, library, rule, name, empty_folder: Path, monkeypatch
) -> None:
    write_table(name)
    events = run_reading(choice_of(quantity, read(name, rule, disclosure)), library, monkeypatch)
    rows = expected_rows(rule)
    assert sorted(events["user"]) == sorted(user for user, _ in rows)
    if quantity is not Quantity.COUNT:
        assert sorted(events["amount"]) == sorted(value for _, value in rows)


@pytest.mark.few(3)
@pytest.mark.thinned
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
@BOTH_LABELS
def test_a_release_is_that_of_the_rows_of_the_page(disclosure, library, rule, empty_folder: Path) -> None:
    """Noise of scale 9 / 1000 and 90 / 1000: it is off by 1 and 3 with probability below e^-33."""
    write_table("t.csv")
    dataset, rows = read("t.csv", rule, disclosure), expected_rows(rule)
    counted = run_program(choice_of(Quantity.COUNT, dataset), library)["count"]
    assert counted == pytest.approx(len(rows), abs=1)
    total = run_program(choice_of(Quantity.SUM, dataset), library)["total"]
    assert total == pytest.approx(sum(value for _, value in rows), abs=3)
    mean = run_program(choice_of(Quantity.MEAN, dataset), library)["mean"]
    assert mean == pytest.approx(np.mean([value for _, value in rows]), abs=0.2)


def test_one_cell_of_a_user_changes_no_more_than_the_user(empty_folder: Path) -> None:
    """Rows that are left out are those of the user who wrote the cell: all others stay, whatever it holds."""
    write_table("t.csv")
    dataset = read("t.csv", "drop")
    for cell in ("oops", "", "1e999", "1.234,5", "7"):
        write_table("t.csv", [*CELLS[:-1], cell])
        names = run_program(choice_of(Quantity.COUNT, dataset), Program.PYTHON)
        others = names["events"][names["events"]["user"] != USERS[len(CELLS) - 1]]
        assert sorted(others["user"]) == sorted(
            u for u, _ in expected_rows("drop") if u != USERS[len(CELLS) - 1]
        )


@pytest.mark.parametrize("rule", RULES)
def test_bigquery_has_the_rule(rule: Any, empty_folder: Path) -> None:
    write_table("t.csv")
    dataset = read("t.csv", rule)
    for quantity in (Quantity.COUNT, Quantity.SUM):
        text = write(choice_of(quantity, dataset), Program.BIGQUERY).text
        assert ("WHERE ABS(`amount`) <= 1e100" in text) == (rule == "drop")
    assert ("`amount`, 2.5)" in text) == (rule == 2.5)


@pytest.mark.parametrize("rule", RULES)
def test_a_program_has_the_rule_where_the_data_hold_no_blank(
    rule: Any, empty_folder: Path, monkeypatch
) -> None:
    write_table("t.csv", ["1", "2", "3"])
    dataset = read("t.csv", rule)
    assert dataset.digest != read("t.csv", None).digest  # else a kept program of other data would be shown
    write_table("t.csv")
    events = run_reading(choice_of(Quantity.SUM, dataset), Program.PYTHON, monkeypatch)
    assert sorted(events["amount"]) == sorted(value for _, value in expected_rows(rule))


@pytest.mark.long
def test_counts_are_private_where_values_decide_which_rows_count() -> None:
    frame, columns = (
        frame_of(),
        {
            "user": "user",
            "value": "amount",
            "epsilon": 1,
            "disclosure": "public",
            **RANGE,
            "program": Program.PYTHON,
        },
    )
    for call, name, public in (
        (ss.mean_bound, "counts", Counts.PUBLIC),
        (ss.quantile_bound, "neighbours", Neighbours.REPLACE_VALUES),
    ):
        assert getattr(call(frame, missing=2.5, **columns).parameters, name) is public
        assert getattr(call(frame, missing="drop", **columns).parameters, name) is not public
        with pytest.raises(
            InvalidInput, match=r"numbers of rows cannot be public.*refuse missing values or replace"
        ):
            call(frame, missing="drop", **{name: public}, **columns)


@pytest.mark.long_but("drop")
@pytest.mark.parametrize("rule", RULES)
def test_commands_have_the_rule(rule: Any, empty_folder: Path, capsys) -> None:
    write_table("t.csv")
    options = ["t.csv", "--user", "user", "--value", "amount", "--missing", str(rule)]
    ask(
        "mean", "mean_bound", [*options, "--epsilon", "1", "--lower", "0", "--upper", "5", "--code", "python"]
    )
    assert ("are left out, as on the page" if rule == "drop" else "100), 2.5)") in capsys.readouterr().out
    assert count_from_shell(["--from", *options]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    counts = [tuple(map(int, line.split(",")[:2])) for line in lines]
    assert sum(size * users for size, users in counts) == len(expected_rows(rule))
    # Settings that are saved have it, too.
    reply = ss.sum_bound("t.csv", user="user", value="amount", missing=rule, epsilon=1)
    assert settings_file.list_columns(reply.data)["missing"] == rule


@pytest.mark.parametrize("rule", ["none", float("nan"), True, [1]])
def test_another_rule_is_refused(rule: Any) -> None:
    with pytest.raises(InvalidInput, match='"drop" or a finite number'):
        ss.sum_bound(frame_of(), user="user", value="amount", epsilon=1, missing=rule)


@pytest.mark.parametrize("rule", RULES)
def test_a_private_draw_follows_the_rule(rule: Any) -> None:
    content = write_parquet(frame_of(), [])
    roles = Roles.of_events(["user"], "amount", [], missing=rule)
    amounts = read_user_amounts([counting.MemoryFile(content)], ["data.parquet"], roles, ["user", "amount"])
    rows = expected_rows(rule)
    totals = {user: sum(value for name, value in rows if name == user) for user, _ in rows}
    assert sorted(amounts.totals) == pytest.approx(sorted(totals.values()))
    assert amounts.histogram.num_rows == len(rows)
    settings = {"user": "user", "value": "amount", "epsilon": 1.0, "highest_total": 100.0, "missing": rule}
    drawn = ss.select_privately("sum_bound", frame_of(), settings, 5.0)
    assert ("are left out, as on the page" if rule == "drop" else "2.5") in drawn.code("python")
