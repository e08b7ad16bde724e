"""README and docs: complete, of one piece, and short. `test_docs_code` runs their code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import dpcore
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
        for picture in runpy.run_path(str(DOCS / "pictures.py"))["list_pictures"]()
    }
    shown = {name for text in TEXTS.values() for name in re.findall(r"\]\((?:docs/)?img/([^)]+)\)", text)}
    assert made == shown == {path.name for path in (DOCS / "img").iterdir()}


def test_the_documentation_is_short_enough_to_be_finished() -> None:
    """Technical notes apart; a word has a letter or a digit."""
    notes = ("gap.md", "mean.md", "papers.md", "papers_data.md")
    words = [word for path, text in TEXTS.items() if path.name not in notes for word in text.split()]
    assert len([word for word in words if re.search(r"\w", word)]) <= 20_000


COMPUTED = (
    re.compile(
        r"Keep at most \d+ rows per user|Bounds from 9 to 28 rows .+|DP, ε = 0\.1|Add (…|mean)|Within 5 %"
    ),
    re.compile(r"How to DP-fy ML|Harvard Data Science Review|Differential Privacy Overview"),
)
"""Slanted texts that the app computes, and titles of works."""


def test_each_control_that_is_named_is_one_of_the_app() -> None:
    files = [
        path
        for room in ("pages", "dpcore")
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    app = " ".join(" ".join(path.read_text("utf-8").replace("**", "") for path in files).split())
    for path, text in TEXTS.items():
        if path.name in ("gap.md", "papers.md", "papers_data.md"):
            continue
        prose = re.sub(r"^```.*?^```$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL).replace("**", "")
        # An exercise begins with its page, which `test_teaching` reads.
        prose = re.sub(r"^(### .+\n\n)\*.+?\*", r"\1", prose, flags=re.MULTILINE)
        for name in re.findall(r"(?<![*\w])\*([A-Z][^*]*?)\*(?![*\w])", prose):
            control = " ".join(name.split()).rstrip(".,")
            known = all(part in app for part in control.split(": "))
            assert known or any(pattern.fullmatch(control) for pattern in COMPUTED), f"{path.name}: {control}"
