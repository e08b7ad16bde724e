"""The README: its table of pages is complete, and its Python example runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from dpcore.counting.__main__ import _parser
from pages.shared import catalogue

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table_rows() -> dict[str, str]:
    """First column, without marks, to the rest, of all table rows of the README."""
    rows = {}
    for line in README.splitlines():
        if line.startswith("|"):
            first, rest = line.strip("|").split("|", 1)
            rows[first.strip(" *`")] = rest.strip(" |")
    return rows


def test_the_table_names_every_page_with_its_question():
    rows = table_rows()
    for spec in catalogue.PAGES:
        assert spec.title in rows, f"README's table of pages lacks {spec.title}"
        assert spec.question in rows[spec.title]


def test_the_python_example_runs():
    (example,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readme_says_which_python_its_commands_mean():
    assert "`.venv/bin/python`" in README.split("## From Python")[1].split("python -m")[0]
    commands = re.findall(r"^    python -m dpcore\.counting (.+)$", README, flags=re.MULTILINE)
    assert commands
    for command in commands:
        _parser().parse_args(shlex.split(command))


def test_files_that_the_readme_shows_are_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
