"""Files that a program cannot read: it ends with one fixed sentence, before it spends epsilon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from tests.dpcore.code.specs import run_text
from tests.dpcore.code.unreadable import (
    CELL_SENTENCE,
    DISCLOSURES,
    FILE,
    HEADER,
    IN_PROCESS,
    ROWS,
    SECRET,
    SENTENCE,
    UNREADABLE,
    check_endings,
    make_text,
)

COLUMNS = {"amount": ("sum", "mean, cap, private counts"), "product": ("groups", "means per group")}
"""Columns that some releases need, and these."""
NAMES = (
    "count",
    "sum",
    "groups",
    "mean, cap, private counts",
    "quantile, cap",
    "mean, users, private counts",
)


@pytest.mark.parametrize("disclosure", DISCLOSURES, ids=lambda disclosure: disclosure.value)
@pytest.mark.parametrize("library", IN_PROCESS, ids=lambda library: library.value)
@pytest.mark.parametrize("name", [*NAMES, "plan"])
def test_a_program_ends_with_one_sentence(
    name: str,
    library: Program,
    disclosure: Disclosure,
    empty_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_endings([name], library, disclosure)
    assert SECRET not in "".join(capsys.readouterr())


@pytest.mark.parametrize("disclosure", DISCLOSURES, ids=lambda disclosure: disclosure.value)
@pytest.mark.parametrize("library", IN_PROCESS, ids=lambda library: library.value)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_ends_the_programs_that_need_it(
    column: str, library: Program, disclosure: Disclosure, empty_folder: Path
) -> None:
    Path(FILE).write_text((HEADER + ROWS).replace(column, "other"), encoding="utf-8")
    for name in (*COLUMNS[column], "plan"):
        with pytest.raises(SystemExit) as ending:
            run_text(make_text(name, library, disclosure))
        assert ending.value.code == SENTENCE, name
    run_text(make_text("count", library, disclosure))


BAD_CELLS = {
    "text": f"u1,p1,{SECRET}\n",
    "a lone quotation mark": f'u1,p1,"{SECRET}\n',
    "a lone quotation mark in a name": f'"{SECRET},p1,1\n',
    "many fields": f"u1,p1,1,2,3,{SECRET}\n",
    "a huge number": "u1,p1,1e999\n",
}


@pytest.mark.few(6)
@pytest.mark.parametrize("disclosure", DISCLOSURES, ids=lambda disclosure: disclosure.value)
@pytest.mark.parametrize("library", IN_PROCESS, ids=lambda library: library.value)
@pytest.mark.parametrize("name", ["sum", "mean, cap, private counts", "groups", "plan"])
def test_an_odd_cell_ends_a_program_by_a_fixed_sentence_or_not_at_all(
    name: str,
    library: Program,
    disclosure: Disclosure,
    empty_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Public data are refused or read; a cell of private data that can be read stops nothing."""
    text = make_text(name, library, disclosure)
    for title, line in BAD_CELLS.items():
        Path(FILE).write_text(HEADER + ROWS + line + ROWS, encoding="utf-8")
        ended_by = None
        try:
            run_text(text)
        except SystemExit as ending:
            ended_by = ending.code
        assert ended_by in (None, SENTENCE, CELL_SENTENCE), title
        if "quotation" not in title and disclosure is Disclosure.PRIVATE:
            assert ended_by is None, title
        printed = capsys.readouterr()
        assert ("released" in printed.out) is (ended_by is None), title
        assert SECRET not in printed.out + printed.err


@pytest.mark.long
@pytest.mark.parametrize("library", IN_PROCESS, ids=lambda library: library.value)
def test_a_program_of_its_own_process_prints_the_sentence_alone_and_exits_with_1(
    library: Program, empty_folder: Path
) -> None:
    for name in ("count", "plan"):
        for disclosure in DISCLOSURES:
            Path("program.py").write_text(make_text(name, library, disclosure), encoding="utf-8")
            for title in ("not there", "no column of users", "binary"):
                UNREADABLE[title]()
                environment = {**os.environ, "PYTHONUTF8": "1"}
                arguments = [sys.executable, "program.py"]
                run = subprocess.run(arguments, capture_output=True, encoding="utf-8", env=environment)
                assert (run.returncode, run.stdout, run.stderr.strip()) == (1, "", SENTENCE), title
                Path(FILE).unlink(missing_ok=True)
    Path(FILE).write_text(HEADER + ROWS, encoding="utf-8")
    run = subprocess.run(arguments, capture_output=True, encoding="utf-8", env=environment)
    assert run.returncode == 0
    assert all(json.loads(line)["released"] is not None for line in run.stdout.splitlines())
