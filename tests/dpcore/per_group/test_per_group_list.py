"""A public list of groups, or public edges of bins: page, call and program count the same groups."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.data.bin_edges import name_bins, parse_edges
from dpcore.data.group_list import code_cells, parse_groups, write_groups
from tests.dpcore.code.specs import SURE, run_text

NASTY = [
    "it's",
    'say "hi"',
    "back\\slash",
    "naïve 組",
    "two\nlines",
    "  lead",
    "NA",
    "1.0",
    "{x}",
    "'''",
    "a,b",
    "%s",
    "[0",
]
RNG = np.random.default_rng(4)
ROWS = [(f"u{u}", NASTY[RNG.integers(len(NASTY))]) for u in range(60) for _ in range(1 + u % 5)]
OFF_LIST = [(f"u{u}", f"off {k}") for u in range(0, 60, 3) for k in range(4)] + [("u1", "")]
LISTED = [*NASTY[:-1], "without rows"]


def write_rows(path: Path, rows: list[tuple[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("u", "g"), *rows])
    return str(path)


def run(reply: Any, library: str, line: str = "") -> dict[str, float]:
    """Run the program of a reply; return the released number of every group."""
    names = run_text(reply.code(library))
    if line:
        return dict(names["released"][line])
    if library == "opendp":
        return dict(names["counts" if "counts" in names else "totals"].iter_rows())
    return dict(zip(names["groups"], names["noisy"], strict=True))


@pytest.mark.long_but("private-opendp")
@pytest.mark.parametrize("library", ["python", "opendp"])
@pytest.mark.parametrize("disclosure", ["public", "private"])
def test_programs_count_the_listed_groups_whatever_their_names(
    library: str, disclosure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "d.csv", ROWS + OFF_LIST)
    columns = {"user": "u", "group": "g", "disclosure": disclosure, "epsilon": 1000.0, "groups": LISTED}
    # Under bounds that bind nobody: those off the list would bind, as a third of the users have four of them.
    expected = {name.strip(): len({u for u, g in ROWS if g == name}) for name in LISTED}
    counts = run(ss.group_bounds("d.csv", statistic="users", **columns), library)
    plan = run(
        ss.plan_bounds("d.csv", lines=["rows", "users per group"], **columns), library, "users per group"
    )
    for released in (counts, plan):
        assert released.keys() == expected.keys()
        assert max(abs(released[name] - count) for name, count in expected.items()) < 0.01 * SURE + 0.01


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [{"statistic": "rows"}, {"statistic": "mean", "lower": 2.0, "upper": 7.5}]
)
def test_the_page_s_numbers_are_those_of_the_data_without_other_groups(settings: dict[str, Any]) -> None:
    """The same question about the rows of the listed groups alone, with the number of groups entered."""
    frame = pd.DataFrame(ROWS + OFF_LIST, columns=["u", "g"]).assign(v=lambda f: RNG.uniform(0, 10, len(f)))
    columns = {"user": "u", "group": "g", "value": "v", "epsilon": 50.0, **settings}
    listed = ss.group_bounds(frame, groups=LISTED, **columns)
    kept = frame[frame["g"].isin(LISTED)]
    expected = ss.group_bounds(kept, num_groups=len(LISTED), **columns)
    assert listed.bound.max_groups == expected.bound.max_groups
    assert listed.error == pytest.approx(expected.error, rel=1e-12)
    assert listed.error != pytest.approx(ss.group_bounds(frame, **columns).error, rel=1e-3)
    plan = {"user": "u", "group": "g", "lines": "rows per group", "epsilon": 2.0}
    answers = ss.plan_bounds(frame, groups=LISTED, **plan), ss.plan_bounds(kept, groups=LISTED, **plan)
    assert answers[0].error == answers[1].error != ss.plan_bounds(frame, **plan).error


NUMBERS = ["0", "9.99", "10", "1e1", "-0.0", "24.9", "25", "-3", "x", "", "nan", "inf", "10.0", "1,5", "7"]
DATES = [
    "2025-01-31",
    "2025-02-01 00:00:00",
    "2025-02-28 23:59:59",
    "2025-03-01",
    "2024-12-31",
    "31.01.2025",
    "x",
]


@pytest.mark.parametrize(
    ("cells", "edges", "expected"),
    [
        # [0, 10) holds 0, 9.99, -0.0 and 7; [10, 25) holds 10, 1e1, 24.9 and 10.0.
        (NUMBERS, [0, 10, 25], {"[0, 10)": 4, "[10, 25)": 4}),
        (
            DATES,
            "2025-01-01 to 2025-03-01 by month",
            {"[2025-01-01, 2025-02-01)": 1, "[2025-02-01, 2025-03-01)": 2},
        ),
    ],
)
@pytest.mark.parametrize("library", ["python", "opendp"])
def test_bins_hold_the_same_rows_in_page_and_program(
    cells: list[str],
    edges: Any,
    expected: dict[str, int],
    library: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "d.csv", [(f"u{i}", cell) for i, cell in enumerate(cells)])
    reply = ss.group_bounds("d.csv", user="u", group="g", epsilon=1000.0, edges=edges)
    assert reply.solution.problem.pairs.num_pairs == sum(expected.values())
    assert {name: round(count) for name, count in run(reply, library).items()} == expected
    parts = parse_edges(edges if isinstance(edges, str) else "; ".join(map(str, edges)))
    codes = code_cells(cells, name_bins(parts), parts)
    assert Counter(name_bins(parts)[code] for code in codes if code >= 0) == expected


@pytest.mark.long
def test_dates_of_other_kinds_of_files_lie_in_the_same_bins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    days = pd.Series(pd.date_range("2025-01-20", periods=40, freq="17h"))
    frame = pd.DataFrame({"u": [f"u{i % 7}" for i in range(40)], "g": days})
    frame.to_parquet("d.parquet")
    frame.to_excel("d.xlsx", index=False)
    frame.assign(g=days.dt.date).to_parquet("dates.parquet")
    # pandas' own count of the weeks from Monday, 20 January 2025.
    weeks = days.dt.to_period("W-SUN").value_counts().sort_index().tolist()
    for file in ("d.parquet", "d.xlsx", "dates.parquet"):
        columns = {"user": "u", "group": "g", "epsilon": 1000.0, "edges": "2025-01-20 to 2025-02-17 by week"}
        reply = ss.group_bounds(file, **columns)
        assert list(reply.solution.problem.totals) == weeks
        assert [round(count) for count in run(reply, "python").values()] == weeks, file


def test_lists_and_edges_are_read_or_refused_with_a_sentence(tmp_path: Path) -> None:
    assert parse_groups(" a \r\n\n[b\n") == ("a", "[b")
    assert parse_groups(write_groups(NASTY)) == tuple(name.strip() for name in NASTY)
    (tmp_path / "list.txt").write_text("\ufeffé\nb\n", encoding="utf-8")
    assert parse_groups(write_groups(tmp_path / "list.txt")) == ("é", "b")
    assert parse_edges("0 to 1 by 0.25") == ("0", "0.25", "0.5", "0.75", "1")
    assert parse_edges("2024-02-28 to 2024-03-02 by day") == (
        "2024-02-28",
        "2024-02-29",
        "2024-03-01",
        "2024-03-02",
    )
    for text, sentence in {
        "a\na ": "twice",
        json.dumps(["a", ""]): "empty name",
        "x" * 600_000: "characters",
    }.items():
        with pytest.raises(InvalidInput, match=sentence):
            parse_groups(text)
    for text in (
        "1",
        "3, 2",
        "1, 2025-01-01",
        "x",
        "0 to 1 by 0",
        "0 to 1 by 1e-9",
        "nan, 1",
        "2025-01-31 to 2026-01-01 by month",
    ):
        with pytest.raises(InvalidInput, match="edges of bins"):
            parse_edges(text)
    frame = pd.DataFrame({"u": ["a", "b"], "g": ["x", "y"]})
    columns = {"user": "u", "group": "g", "epsilon": 1.0}
    for settings, sentence in (
        ({"groups": ["z"]}, "no group on the public list is in the data"),
        ({"groups": ["x"], "num_groups": 3}, "the public list has 1 group, and 3 were entered"),
        ({"groups": ["x"], "edges": [0, 1]}, "do not go together"),
        ({"groups": tmp_path / "none.txt"}, "none.txt cannot be read"),
        (
            {
                "groups": ["x"],
                "selection": "laplace threshold",
                "selection_share": 0.5,
                "selection_delta": 1e-6,
            },
            "can be set only with",
        ),
    ):
        with pytest.raises(InvalidInput, match=f"(?i){sentence}"):
            ss.group_bounds(frame, **columns, **settings)
