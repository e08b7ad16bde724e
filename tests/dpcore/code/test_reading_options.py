"""Sheets, separators, logs and folders that name cells: page and programs read the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpcore import counting, private_selection
from dpcore.cli import command
from dpcore.code import Quantity, ReleaseSpec
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting.__main__ import main
from dpcore.counting.count import to_dataset
from dpcore.counting.files import expand_patterns
from dpcore.data.column_roles import Roles
from dpcore.report import settings_file
from tests.dpcore.code.specs import run_program

FRAME = pd.DataFrame({"user": [f"u{row % 5}" for row in range(12)], "amount": range(12)})
TOTAL = float(FRAME.amount.sum())


def write_workbook() -> None:
    book = openpyxl.Workbook()
    for row in (["user", "note"], ["u9", "read me"]):
        book.active.append(row)
    sheet = book.create_sheet("Käufe")
    for row in (FRAME.columns.tolist(), *FRAME.to_numpy(object).tolist()):
        sheet.append(row)
    book.save("t.xlsx")


def write_log() -> None:
    """Lines as a web server writes them: blanks, commas and colons stand between quotation marks, too."""
    when = "[10/Oct/2024:13:55:36 +0000]"
    agent = '"Mozilla (KHTML, like Gecko)"'
    rows = zip(FRAME.user, FRAME.amount, strict=True)
    lines = [f'{user} - - {when} "GET /a?b={amount} HTTP/1.0" {amount} {agent}' for user, amount in rows]
    Path("t.log").write_text("\n".join(lines) + "\n")


def write_folders(ending: str) -> None:
    for row, (day, rows) in enumerate(FRAME.groupby(FRAME.index % 3)):
        folder = Path(f"sales/day={day}/shop=a%20{row}")
        folder.mkdir(parents=True)
        if ending == "csv":
            rows.to_csv(folder / "part.csv", index=False)
        else:
            rows.to_parquet(folder / "part.parquet")
    Path("sales/_SUCCESS").write_text("")


CASES: dict[str, tuple[Callable[[], Any], str, dict[str, str], str, str]] = {
    "sheet": (write_workbook, "t.xlsx", {"sheet": "Käufe"}, "user", "amount"),
    "separator": (
        lambda: FRAME.assign(note="a;b,c").to_csv("t.csv", sep="*", index=False),
        "t.csv", {"separator": "*"}, "user", "amount",
    ),
    "stated blanks": (
        lambda: Path("t.txt").write_text(FRAME.to_string(index=False)),
        "t.txt", {"separator": "blank"}, "user", "amount",
    ),
    "log": (write_log, "t.log", {}, "column 1", "column 7"),
    "folders of text": (lambda: write_folders("csv"), "sales", {}, "user", "amount"),
    "folders of Parquet": (lambda: write_folders("parquet"), "sales", {}, "user", "amount"),
}  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.long_for(
    "folders of Parquet-Program.OPENDP-0", "folders of text-Program.OPENDP-0", "sheet-Program.OPENDP-0"
)
@pytest.mark.thinned
@pytest.mark.parametrize("small_bytes", [5_000_000, 0])
@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
@pytest.mark.parametrize("name", CASES)
def test_page_and_programs_read_the_same_rows(name, library, small_bytes, empty_folder: Path) -> None:
    """Noise of scale 0.1 on the sum: it is off by 5 with probability e^-50."""
    write, path, options, user, value = CASES[name]
    write()
    source = counting.open_files(expand_patterns([path]), small_bytes=small_bytes, **options)
    groups = ["day", "shop"] if path == "sales" else []
    dataset = counting.count(source, Roles.of_events([user], value, groups), Disclosure.PUBLIC).dataset
    assert dataset.values.values.sum() == TOTAL
    assert dataset.histogram.num_users == FRAME.user.nunique()
    if groups:
        assert set(dataset.task_names) == {"0 × a 0", "1 × a 1", "2 × a 2"}
        assert dataset.pairs.rows.sum() == len(FRAME)
    choice = ReleaseSpec(
        Quantity.SUM, 1e3, Disclosure.PUBLIC, file=path, layout=dataset.layout, has_known_columns=True,
        privacy_unit=(user,), value_column=value, max_total=100.0,
    )  # fmt: skip
    assert run_program(choice, library)["total"] == pytest.approx(TOTAL, abs=5.0)


@pytest.mark.long
def test_call_command_draw_and_script_take_sheet_and_separator(empty_folder: Path, capsys) -> None:
    write_workbook()
    FRAME.to_csv("t.csv", sep="*", index=False)
    for path, options in (("t.xlsx", {"sheet": "Käufe"}), ("t.csv", {"separator": "*"})):
        dataset = to_dataset(path, user="user", value="amount", **options)
        assert dataset.values.values.sum() == TOTAL
        assert options.items() <= settings_file.list_columns(dataset).items()
        ((option, text),) = options.items()
        arguments = ["--user", "user", f"--{option}", text]
        assert main(["--from", path, *arguments]) == 0
        assert "2,3,computed" in capsys.readouterr().out  # three users have two rows
        assert command.main(["sum", path, *arguments, "--value", "amount", "--epsilon", "1"]) == 0
        capsys.readouterr()
        drawn = private_selection.select_privately(
            "count_bound", path, {"user": "user", "epsilon": 1.0, **options}, 0.1
        )
        assert drawn.bound > 0


def test_a_wrong_sheet_or_separator_is_refused(empty_folder: Path) -> None:
    write_workbook()
    FRAME.to_csv("t.csv", index=False)
    with pytest.raises(InvalidInput, match="here is no sheet Sales; there are Sheet, Käufe"):
        to_dataset("t.xlsx", user="user", sheet="Sales")
    with pytest.raises(InvalidInput, match='eparator must be one character, "::", "tab" or "blank"'):
        to_dataset("t.csv", user="user", separator="ab")
    with pytest.raises(InvalidInput, match="nly workbooks have sheets"):
        to_dataset("t.csv", user="user", sheet="Sales")
    with pytest.raises(InvalidInput, match="nly text has a separator"):
        to_dataset("t.xlsx", user="user", separator=";")


@pytest.mark.parametrize(
    "text", ['user,"a b",v\nx, "c d", 7\ny, "e f", 8\n', 'user,title\nx,"c d"\ny,"e f"\n']
)
def test_quotation_marks_do_not_turn_commas_into_blanks(text, empty_folder: Path) -> None:
    Path("t.csv").write_text(text)
    assert counting.open_files(["t.csv"]).columns[0] == "user"
    assert np.all(counting.open_files(["t.csv"]).head.frame.user == ["x", "y"])
