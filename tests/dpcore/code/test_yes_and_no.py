"""Columns of yes and no: page and programs count them as 1 and 0, and one other cell is never passed over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

from dpcore import counting
from dpcore.code import Quantity, ReleaseSpec, write
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.counting.user_amounts import read_user_amounts
from dpcore.data.column_roles import Roles
from dpcore.data.row_filter import parse_filters
from pages.shared.base.question import propose_range
from tests.dpcore.code.specs import run_program

USERS = [f"u{index}" for index in range(8)]
TRUTHS = [True, False, True, True, False, True, True, False]
SPELLINGS: dict[str, tuple[str, list[Any]]] = {
    "words": ("t.csv", [("Yes", "yes", "TRUE")[k % 3] if truth else "No" for k, truth in enumerate(TRUTHS)]),
    "digits": ("t.csv", [str(int(truth)) for truth in TRUTHS]),
    "pandas": ("t.csv", list(TRUTHS)),
    "Arrow": ("t.parquet", list(TRUTHS)),
    "Arrow with a blank": ("t.parquet", [*TRUTHS[:-1], None]),
    "JSON": ("t.jsonl", list(TRUTHS)),
}


def write_table(name: str, cells: list[Any]) -> None:
    frame = pd.DataFrame({"user": USERS, "churned": cells})
    if name.endswith("csv"):
        frame.to_csv(name, index=False)
    elif name.endswith("jsonl"):
        frame.to_json(name, orient="records", lines=True)
    else:
        frame.assign(churned=pd.array(cells, dtype="boolean")).to_parquet(name)


def read(name: str, small_bytes: int = 5_000_000, disclosure=Disclosure.PRIVATE, rule: Any = None):
    roles = Roles.of_events(["user"], "churned", [], missing=rule)
    return counting.count(counting.open_files([name], small_bytes=small_bytes), roles, disclosure).dataset


@pytest.mark.thinned
@pytest.mark.parametrize("small_bytes", [5_000_000, 0])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_app_counts_yes_as_1_and_no_as_0(spelling: str, small_bytes: int, empty_folder: Path) -> None:
    name, cells = SPELLINGS[spelling]
    write_table(name, cells)
    dataset = read(name, small_bytes, rule=0.0 if None in cells else None)
    assert sorted(dataset.values.values) == sorted(map(float, TRUTHS))


@pytest.mark.long_but(
    "Program.OPENDP-Disclosure.PRIVATE-words",
    "Program.OPENDP-Disclosure.PUBLIC-Arrow",
    "Program.PYTHON-Disclosure.PRIVATE-Arrow with a blank",
    "Program.PYTHON-Disclosure.PUBLIC-JSON",
)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("disclosure", [Disclosure.PUBLIC, Disclosure.PRIVATE])
@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
def test_programs_release_the_same_share(library, disclosure, spelling, empty_folder: Path) -> None:
    """Noise of scale 0.001 on a sum of 5: it is off by 0.1 with probability e^-100."""
    name, cells = SPELLINGS[spelling]
    write_table(name, cells)
    dataset = read(name, disclosure=disclosure, rule=0.0 if None in cells else None)
    choice = ReleaseSpec(
        Quantity.SUM, 1000.0, disclosure, file=name, layout=dataset.layout, has_known_columns=True,
        privacy_unit=("user",), value_column="churned", max_total=1.0,
    )  # fmt: skip
    assert run_program(choice, library)["total"] == pytest.approx(sum(TRUTHS), abs=0.1)


def test_one_other_cell_is_refused_with_its_line_or_follows_the_rule(empty_folder: Path) -> None:
    write_table("t.csv", ["yes", "no", "maybe", *["yes"] * 5])
    with pytest.raises(InvalidInput, match="Line 4, column churned: text where a number must stand"):
        read("t.csv")
    assert read("t.csv", rule="drop").values.values.tolist() == [1, 0, 1, 1, 1, 1, 1]
    write_table("t.csv", ["yes", "no", "7", *["yes"] * 5])
    with pytest.raises(InvalidInput, match="yes or no stands in a column with other numbers than 0 and 1"):
        read("t.csv")


def test_a_private_draw_reads_them_alike(empty_folder: Path) -> None:
    for spelling in ("words", "Arrow", "digits"):
        name, cells = SPELLINGS[spelling]
        write_table(name, cells)
        content = counting.MemoryFile(Path(name).read_bytes())
        amounts = read_user_amounts(
            [content], [name], Roles.of_events(["user"], "churned", []), ["user", "churned"]
        )
        assert sorted(amounts.totals) == sorted(map(float, TRUTHS)), spelling


def test_a_type_of_the_file_is_read_off_its_schema() -> None:
    table = pa.table({"user": USERS, "churned": pa.array(TRUTHS, pa.bool_())})
    assert to_dataset(table, user="user", value="churned").values.values.sum() == sum(TRUTHS)
    assert to_dataset(table, user="user", value="churned").has_shares
    assert not to_dataset(table, user="user", value="churned", missing=-1.0).has_shares


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_such_a_column_is_proposed_as_the_value_and_its_type_as_a_share(spelling, empty_folder: Path) -> None:
    name, cells = SPELLINGS[spelling]
    write_table(name, cells)
    source = counting.open_files([name])
    assert source.roles.value == "churned"
    roles = replace(source.roles, missing_constant=0.0, is_share=spelling == "words")
    dataset = counting.count(source, roles, Disclosure.PRIVATE).dataset
    assert dataset.has_shares == (spelling == "words" or name.endswith("parquet"))
    current = {"lower": None, "upper": None, "proposed": None}
    proposed_range = propose_range(dataset, current, ("lower", "upper"))["proposed"]
    assert proposed_range == ((0.0, 1.0) if dataset.has_shares else (None, None))


def test_another_cell_does_not_change_the_proposal(empty_folder: Path) -> None:
    write_table("t.csv", ["yes", "no", "maybe", *["yes"] * 5])
    assert counting.open_files(["t.csv"]).roles.value == "churned"
    write_table("t.csv", ["yes", "no", "maybe", "later", *["yes"] * 4])
    assert counting.open_files(["t.csv"]).roles.value is None


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("yes", ["1", "1.0", "Yes", "10.0"])
def test_the_text_that_says_yes_is_found_alike_in_files_engines_and_programs(
    yes: str, empty_folder: Path
) -> None:
    """Texts such as 1.0, as pandas writes a column with missing cells; BigQuery's condition is run in DuckDB."""
    cells = ["1.0", "1", " 1 ", "yes", "YES", "10.0", "10", "100", "1.00", "-1.0", "1.0.0", "no", "0"]
    frame = pd.DataFrame({"user": [f"u{k}" for k in range(len(cells))], "said": cells})
    folded = {"1.0": "1", "Yes": "yes", "10.0": "10"}.get(yes, yes)
    expected = sum(cell.strip().lower().replace("10.0", "10") in (folded, f"{folded}.0") for cell in cells)
    assert expected >= 2
    roles = Roles.of_events(["user"], "said", [], yes=yes)
    connection = ibis.duckdb.connect()
    connection.con.register("t", pa.Table.from_pandas(frame))
    of_engine = counting.count_table(connection.table("t"), roles, Disclosure.PRIVATE, name="t").dataset
    frame.to_csv("t.csv", index=False)
    of_file = to_dataset("t.csv", user="user", value="said", yes=yes)
    totals = of_engine.totals
    assert of_file.values.values.sum() == expected
    assert (totals.totals * (1 if totals.users is None else totals.users)).sum() == expected
    condition = "said = " + yes
    filtered = [
        counting.count_table(
            connection.table("t"), replace(roles, value=None, yes_text="", filters=parse_filters(condition)),
            Disclosure.PRIVATE, name="t",
        ).dataset,
        to_dataset("t.csv", user="user", filters=condition),
    ]  # fmt: skip
    assert [dataset.histogram.num_rows for dataset in filtered] == [expected, expected]
    fields: dict[str, Any] = {"file": "t.csv", "has_known_columns": True, "privacy_unit": ("user",)}
    spec = ReleaseSpec(
        Quantity.SUM,
        1000.0,
        Disclosure.PRIVATE,
        layout=of_file.layout,
        value_column="said",
        max_total=1.0,
        **fields,
    )
    assert run_program(spec, Program.PYTHON)["total"] == pytest.approx(expected, abs=0.1)
    count_spec = ReleaseSpec(
        Quantity.COUNT, 1000.0, Disclosure.PRIVATE, layout=filtered[1].layout, max_rows=1, **fields
    )
    assert run_program(count_spec, Program.PYTHON)["count"] == pytest.approx(expected, abs=0.1)
    sql = write(spec, Program.BIGQUERY).text
    case_sql = sql[sql.index("CASE") : sql.index("END AS") + 3]
    (duck_sql,) = sqlglot.transpile(f"SELECT SUM({case_sql}) FROM t", read="bigquery", write="duckdb")
    assert connection.con.execute(duck_sql).fetchone() == (expected,)
    (duck_sql,) = sqlglot.transpile(f"SELECT {case_sql} FROM n", read="bigquery", write="duckdb")
    connection.con.execute("CREATE TABLE n AS SELECT * FROM (VALUES (NULL), (''), (' ')) AS v(said)")
    assert connection.con.execute(duck_sql).fetchall() == [(None,)] * 3
