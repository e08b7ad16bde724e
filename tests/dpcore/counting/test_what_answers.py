"""The table of docs/engines.md: what each file that was counted answers, by asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.counting.__main__ import main, write_pairs_csv
from dpcore.counting.count import to_dataset
from dpcore.data import samples

# Ibis 12.0 still calls what DuckDB 2.0 renames.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
EVENTS = str(samples.FOLDER / "shop_events.csv")
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (Path(__file__).parents[3] / "docs" / "engines.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]
FILES = ("rows", "histogram", "totals", "values", "pairs", "distribution")
SETTINGS: dict[str, dict[str, Any]] = {
    "mean_bound": {"lower": 0, "upper": 100},
    "variance_bound": {"lower": 0, "upper": 100},
    "quantile_bound": {"lower": 0, "upper": 100, "quantiles": [0.5]},
    "plan_bounds": {"lower": 0, "upper": 100},
}
LINES = {
    "yes": [
        "users",
        "rows",
        "sum",
        "mean",
        "variance",
        "median",
        "users per group",
        "rows per group",
        "sums per group",
    ],
    "users, rows": ["users", "rows"],
    "all but groups": ["users", "rows", "sum", "mean", "variance", "median"],
    "all but means, variances and quantiles": [
        "users",
        "rows",
        "sum",
        "users per group",
        "rows per group",
        "sums per group",
    ],
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("counted")
    names = {"rows": EVENTS} | {name: str(folder / name) for name in FILES[1:]}
    user, value = ["--from", EVENTS, "--user", "user_id"], ["--value", "amount", "--count", "total"]
    distribution = ["--task", "product", "--distribution-to", names["distribution"]]
    assert main([*user, *distribution, "--to", names["histogram"]]) == 0
    assert main([*user, *value, "--to", names["totals"]]) == 0
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE events AS SELECT * FROM read_csv('{EVENTS}')")
    engine = ["--from", f"duckdb://{folder / 'shop.duckdb'}", "--table", "events", "--user", "user_id"]
    bins = ["--value", "amount", "--values-to", names["values"], "--value-bins", "0", "100", "50"]
    assert main([*engine, *bins, "--to", str(folder / "same_histogram")]) == 0
    events = to_dataset(EVENTS, user="user_id", group="product", value="amount")
    Path(names["pairs"]).write_text(write_pairs_csv(events.pairs))
    return names


def answers(call: str, path: str, settings: dict[str, Any]) -> bool:
    columns = {"user": "user_id", "value": "amount", "group": "product"} if path == EVENTS else {}
    question = ss.questions.QUESTIONS[call]
    columns = {key: column for key, column in columns.items() if key in question.column_arguments}
    try:
        getattr(ss, call)(path, epsilon=1, **columns, **settings)
    except InvalidInput:
        return False
    return True


@pytest.mark.few(3)
@pytest.mark.long_for("`plan_bounds`", "`quantile_bound`", "`group_bounds`", "`task_weights`")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_a_file_answers_what_the_table_says(row: list[str], paths: dict[str, str]) -> None:
    call = row[0].strip("`")
    for name, cell in zip(FILES, row[1:], strict=True):
        settings = SETTINGS.get(call, {})
        if call == "plan_bounds":
            for line in LINES["yes"]:
                is_answered = answers(call, paths[name], settings | {"lines": line})
                assert is_answered == (line in LINES.get(cell, [])), (name, line)
        elif call == "group_bounds" and cell != "–":
            for statistic in ("rows", "users", "sum"):
                is_answered = answers(call, paths[name], {"statistic": statistic})
                assert is_answered == (cell == "yes" or statistic in cell), (name, statistic)
        else:
            assert answers(call, paths[name], settings) == (cell != "–"), name


def test_the_table_has_its_rows() -> None:
    assert len(TABLE) == 9
    assert all(len(row) == 1 + len(FILES) for row in TABLE)
