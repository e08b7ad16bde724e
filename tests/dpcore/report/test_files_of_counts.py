"""Files of rows per user and of rows per pair: scripts count them anew, programs ask for the table of rows instead."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpcore as ss
from dpcore.code import LIBRARIES
from dpcore.common.privacy import Disclosure
from dpcore.counting import count, open_files
from dpcore.data.column_roles import Roles, TableKind
from dpcore.report.settings_file import can_read_again

COUNTS = "user,count\na,3\nb,5\nc,40\nd,2\n"
PAIRS = "user,group,rows\n0,0,3\n0,1,5\n1,0,40\n2,1,2\n"
CASES = {
    "counts": (COUNTS, Roles(TableKind.COUNTS, user="user", count="count"), "plan_bounds", {"lines": "rows"}),
    "pairs": (PAIRS, Roles(TableKind.PAIRS, user="user", task="group", count="rows"), "group_bounds", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_script_counts_again_and_a_program_reads_the_rows(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, roles, call, settings = CASES[case]
    monkeypatch.chdir(tmp_path)
    Path("counted.csv").write_text(text, encoding="utf-8")
    dataset = count(open_files(["counted.csv"]), roles, Disclosure.PRIVATE).dataset
    reply = getattr(ss, call)(dataset, epsilon=1, **settings)
    exec(compile(reply.script(), "script", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert reply.answer.headline in printed
    for number in reply.numbers["text"]:
        assert str(number) in printed
    # Every user of such a file has one row of it, or one per group: a program that bounded them would count users.
    for library in LIBRARIES:
        program = reply.code(library.name.lower())
        assert "counted.csv" not in program
        assert "placeholders" in program
    assert not can_read_again(dataset)
