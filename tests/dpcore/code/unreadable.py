"""Files that no program can read, and what programs say then."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from dpcore import plan_bounds
from dpcore.code import write
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.reply import Reply
from tests.dpcore.code.specs import SPEC_BY_NAME, run_text

SENTENCE = "A file or one of its columns cannot be read. Nothing was released, and no epsilon was spent."
CELL_SENTENCE = "Fix cells that hold no number up to ±1e100. Nothing was released, and no epsilon was spent."
SECRET = "Ann-Lee-4711"
"""Stands in cells; no program may print it."""
HEADER = "user_id,product,amount\n"
ROWS = "".join(f"{SECRET}{i % 5},p{i % 3},{i}.5\n" for i in range(40))
FILE = "shop_events.csv"


def _write_text(text: str) -> Callable[[], object]:
    return lambda: Path(FILE).write_text(text, encoding="utf-8")


UNREADABLE: dict[str, Callable[[], object]] = {
    "not there": lambda: None,
    "empty": _write_text(""),
    "blank lines": _write_text("\n\n\n"),
    "a directory": lambda: Path(FILE).mkdir(),
    "binary": lambda: Path(FILE).write_bytes(bytes(range(256)) * 64 + SECRET.encode()),
    "a picture": lambda: Path(FILE).write_bytes(b"\x89PNG\r\n\x1a\n" + SECRET.encode() + bytes(999)),
    "no column of users": _write_text((HEADER + ROWS).replace("user_id", SECRET)),
    "only a header of other names": _write_text(f"{SECRET},b\n"),
}
DISCLOSURES = (Disclosure.PUBLIC, Disclosure.PRIVATE)
IN_PROCESS = (Program.PYTHON, Program.OPENDP)


@functools.cache
def _make_plan(lines: str, disclosure: Disclosure) -> Reply:
    Path("small.csv").write_text(HEADER + ROWS, encoding="utf-8")
    settings = {"user": "user_id", "value": "amount", "group": "product", "lower": 0, "upper": 50}
    return plan_bounds("small.csv", **settings, lines=lines, epsilon=100, disclosure=disclosure.value)


def make_text(name: str, library: Program, disclosure: Disclosure) -> str:
    """Write the program of a choice by its name, or of a plan of all kinds of releases, with its list of groups."""
    if name == "plan":
        lines = "users; sum; mean; rows per group" + ("; median; variance" if library in IN_PROCESS else "")
        text = _make_plan(lines, disclosure).code(library.value.lower().removeprefix("plain "))
        text = text.replace("small.csv", FILE)
    else:
        text = write(replace(SPEC_BY_NAME[name], disclosure=disclosure), library).text
    return text.replace("GROUPS: list[str] = []", 'GROUPS = ["p0", "p1"]')


def check_endings(names: Iterable[str], library: Program, disclosure: Disclosure) -> None:
    """Check that programs of choices by name end with the sentence on each file, in the working folder."""
    for name in names:
        text = make_text(name, library, disclosure)
        for title, make_file in UNREADABLE.items():
            make_file()
            with pytest.raises(SystemExit) as ending:
                run_text(text)
            assert ending.value.code == SENTENCE, (name, title)
            if Path(FILE).is_dir():
                Path(FILE).rmdir()
            Path(FILE).unlink(missing_ok=True)
