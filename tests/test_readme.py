"""README and docs: complete, of one piece, and their commands and examples run."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dpcore
from dpcore.counting.__main__ import _build_parser
from pages.shared.base import catalogue

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = {path: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}


def test_each_page_and_call_of_the_table_of_questions_exists() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| ") and "**" in line]
    assert len(rows) == 6
    titles = {spec.title for spec in catalogue.PAGES} | {"Models"}
    for row in rows:
        assert set(re.findall(r"\*\*(.+?)\*\*", row)) <= titles
        assert all(callable(getattr(dpcore, name)) for name in re.findall(r"`(\w+)`", row)), row


def test_the_python_examples_run() -> None:
    examples = {
        path.name: re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        for path, text in TEXTS.items()
        if path.name != "python.md"  # A notebook, which `test_notebook` runs.
    }
    assert any(examples.values())
    # One after the other in one interpreter, each with names of its own: importing is what takes time.
    run_all = """if True:
        import contextlib, io, json, sys
        for name, example in json.load(sys.stdin):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(example, name, "exec"), {"__name__": "__main__"})
            assert said.getvalue().strip(), f"{name} says nothing"
            print(name)
    """
    given = [(name, example) for name, programs in examples.items() for example in programs]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", run_all],
        input=json.dumps(given),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [name for name, _ in given]


def test_the_commands_are_ones_that_are_understood_and_say_which_python_they_mean() -> None:
    num_commands = 0
    for path, text in TEXTS.items():
        commands = re.findall(r"^    python -m dpcore\.counting (.+)$", text, flags=re.MULTILINE)
        if commands:
            assert "`.venv/bin/python`" in text.split("    python -m")[0], path.name
        for command in commands:
            _build_parser().parse_args(shlex.split(command))
            num_commands += 1
    assert num_commands >= 3


def test_the_make_targets_that_are_named_exist() -> None:
    targets = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for path, text in TEXTS.items():
        for match in re.findall(
            r"(?:`|^    )(?:[A-Z_]+=\S+ )*make (?:[A-Z]+=\S+ )*([a-z][a-z-]*)", text, re.MULTILINE
        ):
            assert match in targets, f"{path.name}: make {match}"


def anchors(path: Path) -> set[str]:
    """What a link may name in a Markdown file, as GitHub makes it from headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_whatever_is_linked_to_is_there() -> None:
    for path, text in TEXTS.items():
        for target in re.findall(r"\]\(([^):]+)\)", text):
            file, _, anchor = target.partition("#")
            there = path.parent / file if file else path
            assert there.exists(), f"{path.name}: {target}"
            if anchor:
                assert anchor in anchors(there), f"{path.name}: {target}"


def test_the_contents_name_every_page_of_the_documentation() -> None:
    named = set(re.findall(r"\]\(([^)/]+\.md)\)", TEXTS[DOCS / "README.md"]))
    assert {path.name for path in DOCS.glob("*.md")} - {"README.md"} == named


def test_the_pictures_are_those_of_the_script() -> None:
    pytest.importorskip("playwright")
    made = {
        f"{picture.name.replace('_', '-')}.png"
        for picture in runpy.run_path(str(DOCS / "pictures.py"))["pictures"]()
    }
    shown = {name for text in TEXTS.values() for name in re.findall(r"\]\((?:docs/)?img/([^)]+)\)", text)}
    assert made == shown == {path.name for path in (DOCS / "img").iterdir()}
