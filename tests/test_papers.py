"""docs/papers.md: every numbered item of the four papers has its line, and no line names what is not there."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import pytest

from pages.shared.base import catalogue
from pages.shared.screen import layout

ROOT = Path(__file__).parents[1]
NOTHING = {"–", "—"}


def numbered(**options: int) -> set[str]:
    """``Theorem 1`` to the last one, by kind."""
    return {f"{name} {n}" for name, most in options.items() for n in range(1, most + 1)}


def listed(**numbers: str) -> set[str]:
    return {f"{name} {n}" for name, number in numbers.items() for n in number.split()}


ITEMS = {
    "Epasto et al. 2020": numbered(
        Definition=7, Theorem=12, Algorithm=4, Lemma=4, Claim=9, Example=3, Assumption=1, Corollary=3, Fact=1,
        Figure=3, Table=2,
    ),
    "Amin et al. 2019": numbered(
        Definition=8, Theorem=1, Algorithm=1, Figure=3, Proposition=5, Corollary=2, Lemma=4
    ) | {"Lemma 2 of appendix C"},
    "Huang et al. 2023": listed(
        Theorem="1.1 3.1 B.1 B.3", Definition="2.1 2.2 B.2", Algorithm="1 2", Lemma="3.2 3.3 3.4 3.5 3.6 B.4 B.5",
        Table="1 2 3 4", Figure="1",
    ) | {"Table of section 3.2"},
    "Krichene et al. 2023": listed(
        Definition="2.1 2.2", Remark="3.1 3.2 3.4 3.5 3.7 B.1 D.1", Assumption="3.6 3.9 3.10 4.1",
        Theorem="3.3 3.8 3.11 3.12 4.2 B.2", Algorithm="1 2 3", Lemma="A.1 A.2 A.3 A.4", Table="1 2 3 4",
        Figure="1 2 3 4 5 6 7 8 9 10 11",
    ),
}  # fmt: skip
"""What the papers number, as printed: facts about the papers, read in them."""


@dataclass(frozen=True)
class Line:
    items: tuple[str, ...]
    says: str
    places: tuple[tuple[str, str], ...]
    code: tuple[str, ...]
    differs: str


def sections() -> dict[str, list[Line]]:
    lines_by_paper: dict[str, list[Line]] = {}
    page_text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    head, rule, *rows = (
        page_text[page_text.index("\n| paper | item |") :].strip().partition("\n\n")[0].splitlines()
    )
    assert head.startswith("| paper | item |")
    assert set(rule) == set("| -")
    for row in rows:
        paper, *cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 7, row
        lines_by_paper.setdefault(paper, []).append(read(cells))
    return lines_by_paper


def read(cells: list[str]) -> Line:
    items, says, places, code, _difference, _claims, differs = cells
    matches = re.findall(r"\*\*([^*]+)\*\*(?:, \*([^*]+)\*)?", places)
    text = re.sub(r"\*\*[^*]+\*\*(, \*[^*]+\*)?", "", places).replace(";", "").strip()
    assert text in ("", *NOTHING), f"not understood: {places}"
    names = re.findall(r"`([^`]+)`", code)
    assert ", ".join(f"`{name}`" for name in names) == code or code in NOTHING, f"not understood: {code}"
    return Line(tuple(items.split(", ")), says, tuple(matches), tuple(names), differs)


SECTIONS = sections()
LINES = [line for lines in SECTIONS.values() for line in lines]


def tabs(folder: str) -> set[str]:
    """Names of a page's tabs: of its sections, and keys of mappings in its modules whose values are drawn as tabs."""
    tab_names = {layout.BEHIND, layout.DOWNLOADS, layout.COMPUTED}
    paths = [*(ROOT / "pages" / folder).glob("*.py"), *(ROOT / "dpcore" / folder / "answer").glob("*.py")]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.name != "page.py" and "answer_tabs" not in text and "Sections" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            keys: list[ast.expr | None] = []
            if isinstance(node, ast.Dict):
                keys = [
                    k for k, v in zip(node.keys, node.values, strict=True) if not isinstance(v, ast.Constant)
                ]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                keys = [node.targets[0].slice]
            tab_names |= {
                key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return tab_names


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one: functions, classes and what classes have."""
    pieces = dotted.split(".")
    for cut in range(len(pieces), 0, -1):
        try:
            member = importlib.import_module(".".join(pieces[:cut]))
        except ModuleNotFoundError:
            continue
        for name in pieces[cut:]:
            declared = is_dataclass(member) and name in {field.name for field in fields(member)}
            if not hasattr(member, name) and not declared:
                return False
            member = getattr(member, name, None)
        return True
    return False


def test_every_item_of_the_papers_has_its_line_once() -> None:
    assert list(SECTIONS) == list(ITEMS)
    for paper, lines in SECTIONS.items():
        items = [item for line in lines for item in line.items]
        assert len(items) == len(set(items)), paper
        assert set(items) == ITEMS[paper], (paper, set(items) ^ ITEMS[paper])


@pytest.mark.long
def test_pages_and_tabs_are_there() -> None:
    by_title = {page.title: page.name for page in catalogue.PAGES}
    for line in LINES:
        for page, tab in line.places:
            assert page in by_title, f"{line.items}: there is no page {page}"
            assert not tab or tab in tabs(by_title[page]), f"{line.items}: {page} has no tab {tab}"


def test_modules_and_functions_are_there() -> None:
    for line in LINES:
        for name in line.code:
            assert exists(name), f"{line.items}: there is no {name}"


def test_what_is_left_out_says_why() -> None:
    for line in LINES:
        assert line.says
        if not line.places or not line.code:
            assert line.differs not in NOTHING, line.items


def test_pages_and_tabs_named_in_sentences_are_there() -> None:
    titles = {page.title for page in catalogue.PAGES}
    every = set().union(*(tabs(page.name) for page in catalogue.PAGES))
    for line in LINES:
        assert set(re.findall(r"\*\*([^*]+)\*\*", line.differs)) <= titles, line.items
        plain_text = re.sub(r"\*\*[^*]+\*\*", "", line.differs)
        assert set(re.findall(r"\*([^*]+)\*", plain_text)) <= every | {"drugs", "news"}, line.items
        for path in re.findall(r"`(docs/[^`]+)`", line.differs):
            assert (ROOT / path).is_file()


@pytest.mark.parametrize(
    "name",
    ["dpcore.mean.public_counts.nothing", "dpcore.nowhere.f", "dpcore.total.nonnegative.TotalProblem.no"],
)
def test_a_dead_name_is_found(name: str) -> None:
    assert not exists(name)


def test_the_tabs_of_a_page_are_those_it_draws() -> None:
    assert tabs("mean") >= {"Weight of a row", layout.BEHIND}
    assert "Curves" not in tabs("mean")
    assert "Budget" in tabs("multitask")
