"""Rows that a page refuses: a private draw reads them one by one, as its program does, and others as without them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.cli import command
from dpcore.common.checks import InvalidInput
from dpcore.counting import user_amounts
from dpcore.counting.frames import write_parquet
from dpcore.counting.user_amounts import read_user_amounts
from dpcore.data.column_roles import Roles
from dpcore.data.totals_per_user import UserAmounts
from tests.dpcore.code.specs import run_text
from tests.dpcore.private_choice.test_select_privately import chances, form

pytestmark = pytest.mark.usefixtures("few_subsamples")

ROWS = [("u1", "3.5", "a"), ("u2", "1 000", "b"), ("u1", "2", "b"), ("ü", "4", "a"), ("Á", "5", "Ý")] * 12
TEXT = "who,amount,place\n" + "".join(",".join(row) + "\n" for row in ROWS).replace(" ", "\u00a0")
JSON = "".join(json.dumps(dict(zip(("who", "amount", "place"), row, strict=True))) + "\n" for row in ROWS)
COLUMNS = ["who", "amount", "place"]
TEXT_LINES: dict[str, tuple[bytes, float]] = {
    "one field too many": (b"zz,7,a,oops", 7.0),
    "many fields too many": (b"zz,7,a" + b",oops" * 2_000, 7.0),
    "too few": (b"zz", 0.0),
    "a long cell": (b"zz,7," + b"x" * 140_000, 7.0),
    "a long number": (b"zz," + b"9" * 140_000 + b",a", 0.0),
    "text behind a quotation": (b'zz,"7","a" "b"', 7.0),
    "marks that do not match": (b'zz,7,"a"b"c"', 7.0),
    "no UTF-8": (b"z\xff,7,a", 7.0),
    "a line end of another kind": (b"zz,7,a\rzz,1,a", 8.0),
}
"""A line of one more user by name, and what it adds up to."""
JSON_LINES: dict[str, tuple[str, float | None]] = {
    "a key twice": ('{"who": "yy", "who": "zz", "amount": 7}', 7.0),
    "many keys": (json.dumps({"who": "zz", "amount": 7, **{f"key {at}": at for at in range(3_000)}}), 7.0),
    "two spellings of a key": ('{"who": "zz", "amount": 1, " amount": 7}', 7.0),
    "half a character": (r'{"who": "\ud800", "amount": 7}', 7.0),
    "a long number": ('{"who": "zz", "amount": ' + "9" * 5_000 + "}", 0.0),
    "nested lists": ('{"who": "zz", "amount": ' + "[" * 2_000 + "]" * 2_000 + "}", None),
    "a list": ('{"who": "zz", "amount": [7]}', 0.0),
    "no object": ("7", None),
    "no JSON": ('{"who": "zz"', None),
}
"""None as the sum where the line is left out."""
NO_PROGRAM = {
    "two spellings of a key",
    "half a character",
    "a long number",
    "nested lists",
    "no object",
    "no JSON",
}
"""Lines of JSON that stop a program (docs/privacy.md)."""


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: Path) -> UserAmounts:
    amounts = read_user_amounts([path], None, Roles.of_events(["who"], "amount", ["place"]), COLUMNS)
    assert isinstance(amounts, UserAmounts)
    return amounts


def read_totals(path: Path) -> list[float]:
    """The sum of each user, sorted: users have no names in the result."""
    amounts = read_user_amounts([path], None, Roles.of_events(["who"], "amount", []), COLUMNS)
    assert isinstance(amounts, UserAmounts)
    assert amounts.totals is not None
    return sorted(amounts.totals.tolist())


TRUTH = sorted([12 * 5.5, 12 * 1_000.0, 12 * 4.0, 12 * 5.0])


def draw_all(data: Any) -> tuple[str, ...]:
    """Draw a bound of every kind of reading, and a range; return what they say without numbers."""
    settings = {"user": "who", "epsilon": 1}
    drawn = [
        ss.select_privately("count_bound", data, settings, 1.0),
        ss.select_privately("sum_bound", data, {**settings, "value": "amount", "highest_total": 20_000}, 1.0),
        ss.select_privately("group_bounds", data, {**settings, "group": "place", "num_groups": 3}, 1.0),
        ss.select_range(data, user="who", value="amount", epsilon=1, unit=1, largest=2_000, lower=0),
    ]
    return tuple(form(str(reply)) for reply in drawn)


@pytest.mark.few(6)
@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize("name", TEXT_LINES)
def test_a_line_of_text_is_a_row_and_changes_no_other(name: str, position: str, empty_folder: None) -> None:
    line, total = TEXT_LINES[name]
    header, rows = TEXT.encode().split(b"\n", 1)
    parts = (
        [header + b"\n", line + b"\n", rows] if position == "first" else [header + b"\n", rows, line + b"\n"]
    )
    path = Path("t.csv.gz" if position == "first" else "t.csv")
    path.write_bytes(gzip.compress(b"".join(parts)) if position == "first" else b"".join(parts))
    assert read_totals(path) == sorted([*TRUTH, total])
    if position == "last":
        # The groups of the others, Ý among them, and the one group that the line may name.
        group_names = set(read(path).group_names)
        assert group_names >= {"a", "b", "Ý"}
        assert len(group_names) <= 4


@pytest.mark.few(3)
@pytest.mark.long_but("text behind a quotation")
@pytest.mark.parametrize("name", ["one field too many", "a long cell", "text behind a quotation"])
def test_a_program_reads_the_same_rows(name: str, empty_folder: None) -> None:
    Path("t.csv").write_bytes(TEXT.encode() + TEXT_LINES[name][0] + b"\n")
    settings = {"user": "who", "value": "amount", "epsilon": 1, "highest_total": 20_000}
    program = ss.select_privately("sum_bound", "t.csv", settings).code("python")
    events = run_text(program)["events"]
    assert sorted(events.groupby("who")["amount"].sum()) == read_totals(Path("t.csv"))


@pytest.mark.parametrize("name", JSON_LINES)
def test_a_line_of_json_is_a_row_or_none_and_changes_no_other(name: str, empty_folder: None) -> None:
    line, total = JSON_LINES[name]
    path = Path("t.jsonl")
    path.write_text(JSON + line + "\n")
    assert read_totals(path) == sorted([*TRUTH, *([] if total is None else [total])])
    if total is not None:
        path.write_text("[" + ",\n".join([*JSON.splitlines(), line]) + "]")
        assert read_totals(path) == sorted([*TRUTH, total])


@pytest.mark.few(3)
@pytest.mark.long_but("a key twice", "half a character")
@pytest.mark.parametrize("name", JSON_LINES)
def test_a_program_reads_the_same_objects_or_stops(name: str, empty_folder: None) -> None:
    Path("t.jsonl").write_text(JSON + JSON_LINES[name][0] + "\n")
    settings = {"user": "who", "value": "amount", "epsilon": 1, "highest_total": 20_000}
    program = ss.select_privately("sum_bound", "t.jsonl", settings).code("python")
    if name in NO_PROGRAM:
        with pytest.raises(SystemExit, match="Nothing was released, and no epsilon was spent"):
            run_text(program)
        return
    events = run_text(program)["events"]
    assert sorted(events.groupby("who")["amount"].sum()) == read_totals(Path("t.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize("file_name", ["t.csv", "t.jsonl"])
def test_draws_end_alike_with_and_without_such_a_line(
    file_name: str, empty_folder: None, capsys: Any
) -> None:
    path = Path(file_name)
    lines = [b""]
    lines += [line for line, _ in TEXT_LINES.values()] if file_name == "t.csv" else []
    lines += [] if file_name == "t.csv" else [line.encode() for line, _ in JSON_LINES.values()]
    forms, ends = set(), set()
    arguments = ["--user", "who", "--value", "amount", "--epsilon", "1", "--highest-total", "20000"]
    for line in lines:
        path.write_bytes((TEXT if file_name == "t.csv" else JSON).encode() + line + b"\n")
        forms.add(draw_all(path))
        code = command.main(["sum", file_name, *arguments, "--draw", "1"])
        output = capsys.readouterr()
        ends.add((code, form(output.out), output.err))
    assert len(forms) == len(ends) == 1
    assert next(iter(ends))[0] == 0


def test_a_key_that_no_object_has_is_refused_by_its_name(empty_folder: None) -> None:
    for line in ("", JSON_LINES["many keys"][0]):
        Path("t.jsonl").write_text(JSON + line + "\n")
        with pytest.raises(InvalidInput, match="There is no column shop; there are"):
            ss.select_privately("count_bound", "t.jsonl", {"user": "shop", "epsilon": 1})


def test_first_rows_of_one_user_do_not_decide_which_columns_there_are(empty_folder: None) -> None:
    header, rows = TEXT.split("\n", 1)
    Path("t.csv").write_text(header + "\n" + "zz;7;a;b\n" * 60 + rows)
    assert read_totals(Path("t.csv")) == sorted([*TRUTH, 0.0])
    Path("t.jsonl").write_text((json.dumps({"other": "x" * 1_000}) + "\n") * 6_000 + JSON)
    assert read_totals(Path("t.jsonl")) == TRUTH


@pytest.mark.parametrize(
    ("above", "old", "new", "user"),
    [
        ("sep=,\n", "who", "who", "who"),
        ("# made today\n\n", "who", "who", "who"),
        ("#", "who", "who", "#who"),
        ("", ",", ";", "who"),
        ("", ",", "\t", "who"),
        ("", "\n", "\r", "who"),
        ("", ",place", ',"place"', "who"),
    ],
)
def test_the_header_is_found_by_the_columns_that_are_named(
    above: str, old: str, new: str, user: str, empty_folder: None
) -> None:
    text = above + (TEXT + "zz,7,a,oops\n").replace(old, new)
    Path("t.csv").write_bytes(text.encode())
    roles = Roles.of_events([user], "amount", ["place"])
    amounts = read_user_amounts([Path("t.csv")], None, roles, [user, "amount", "place"])
    assert isinstance(amounts, UserAmounts)
    assert amounts.pair_sums is not None
    assert np.sum(amounts.pair_sums) == pytest.approx(sum(TRUTH) + 7.0)


@pytest.mark.parametrize("separator", ["::", " "])
def test_lines_without_a_character_of_their_own_between_fields(separator: str, empty_folder: None) -> None:
    text = TEXT.replace(",", separator).replace("1\u00a0000", "1000")
    Path("t.txt").write_text(text + separator.join(["zz", "7", "a", "oops"]) + "\n")
    roles = Roles.of_events(["who"], "amount", [])
    for stated_separator in ("", {" ": "blank"}.get(separator, separator)):
        amounts = read_user_amounts([Path("t.txt")], None, roles, COLUMNS, separator=stated_separator)
        assert isinstance(amounts, UserAmounts)
        assert amounts.totals is not None
        assert sorted(amounts.totals) == sorted([*TRUTH, 7.0])


@pytest.mark.few(2)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
def test_encodings_are_those_of_the_first_bytes(encoding: str, empty_folder: None) -> None:
    for line in ("", "zz,7,a,oops\n"):
        Path("t.csv").write_text(TEXT.replace("Á", "Ä") + line, encoding=encoding)
        assert read_totals(Path("t.csv")) == sorted([*TRUTH, *([7.0] if line else [])])
        assert set(read(Path("t.csv")).group_names) == {"a", "b", "Ý"}


def test_chunks_of_rows_and_files_in_any_order_of_columns_add_up(
    empty_folder: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpcore.counting import single_rows

    monkeypatch.setattr(single_rows, "_CHUNK_ROWS", 7)
    Path("t.csv").write_text(TEXT)
    Path("other.csv").write_text("place,who,amount\na,u1,100\n" + "a,zz,7,oops\n")
    Path("t.jsonl").write_text(JSON)
    roles = Roles.of_events(["who"], "amount", [])
    for first_file in ("t.csv", "t.jsonl"):
        files = [Path(first_file), Path("other.csv")]
        amounts = read_user_amounts(files, None, roles, COLUMNS)
        assert isinstance(amounts, UserAmounts)
        assert amounts.totals is not None
        assert sorted(amounts.totals) == sorted([166.0, 12_000.0, 48.0, 60.0, 7.0])


HOSTILE_CELLS: dict[str, dict[str, Any]] = {
    "a list that names the user": {"who": ["a", "b"], "amount": 1.0, "place": "x"},
    "a list as the value": {"who": "z", "amount": [1, 2], "place": "x"},
    "a list as the group": {"who": "z", "amount": 1.0, "place": ["x", "y"]},
    "an array as the value": {"who": "z", "amount": np.array([1.0, 2.0]), "place": "x"},
    "a mapping": {"who": {"a": 1}, "amount": 1.0, "place": "x"},
    "half a character that names the user": {"who": "c\ud800", "amount": 1.0, "place": "x"},
    "half a character in the group": {"who": "z", "amount": 1.0, "place": "c\ud800"},
}
FRAME = pd.DataFrame(
    {"who": ["a", "b", "a", 7], "amount": [1.0, 2.0, 3.0, 4.0], "place": ["x", "x", "y", 3.0]}, dtype=object
)


def extend(frame: pd.DataFrame, row: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([*frame.to_dict("records"), row], dtype=object)


@pytest.mark.few(2)
@pytest.mark.long_but("a list as the value", "half a character that names the user")
@pytest.mark.parametrize("name", HOSTILE_CELLS)
def test_cells_of_a_table_in_memory_that_hold_several_entries(name: str, monkeypatch: Any) -> None:
    row = HOSTILE_CELLS[name]
    bad_column = next(c for c, cell in row.items() if str(cell) not in ("z", "x", "1.0"))
    table = extend(FRAME, row)
    calls = {
        "who": (ss.count_bound, {}),
        "amount": (ss.mean_bound, {"value": "amount", "lower": 0, "upper": 5}),
        "place": (ss.group_bounds, {"group": "place"}),
    }
    call, settings = calls[bad_column]
    with pytest.raises(
        InvalidInput, match=f"Column {bad_column}, row 5: 1 cell holds several entries or broken text"
    ) as error:
        call(table, user="who", epsilon=1, **settings)
    assert "ne text or number into each" in str(error.value)
    assert draw_all(table) == draw_all(FRAME)
    group_settings = {"user": "who", "group": "place", "num_groups": 2, "epsilon": 1}
    laws = [
        chances(lambda data=data: ss.select_privately("group_bounds", data, group_settings, 1.0), monkeypatch)
        for data in (FRAME, table)
    ]
    assert np.abs(laws[0] - laws[1]).max() <= 1.0 + 1e-6


def test_a_cell_with_several_entries_is_no_user_no_number_and_no_group() -> None:
    def read_frame(table: pd.DataFrame, roles: Roles) -> UserAmounts:
        content = user_amounts.MemoryFile(write_parquet(table, COLUMNS, empties_cells=True))
        amounts = read_user_amounts([content], ["data.parquet"], roles, COLUMNS)
        assert isinstance(amounts, UserAmounts)
        return amounts

    totals, pairs = Roles.of_events(["who"], "amount", []), Roles.of_events(["who"], None, ["place"])
    truth = read_frame(FRAME, totals)
    assert sorted(truth.totals) == [2.0, 4.0, 4.0]
    for table in (extend(FRAME, HOSTILE_CELLS["a list that names the user"]), FRAME):
        assert read_frame(table, totals).histogram == truth.histogram
    with_value = read_frame(extend(FRAME, HOSTILE_CELLS["a list as the value"]), totals)
    assert sorted(with_value.totals) == [0.0, 2.0, 4.0, 4.0]
    with_group = read_frame(extend(FRAME, HOSTILE_CELLS["a list as the group"]), pairs)
    assert sorted(with_group.group_names) == ["3", "x", "y"]
    # Lists alone would be a type of their own.
    alone = extend(FRAME.iloc[:0], HOSTILE_CELLS["a list as the value"])
    assert read_frame(alone, totals).totals.tolist() == [0.0]
