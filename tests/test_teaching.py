"""docs/teaching.md and docs/solutions.ipynb: each program prints what stands there, and the texts have its numbers."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import nbformat
import pytest
from streamlit.testing.v1 import AppTest

from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.data.column_roles import Roles
from pages.shared.base import catalogue
from pages.shared.session import tour
from tests.pages import driving

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "teaching.md").read_text(encoding="utf-8")
LECTURE, *EXERCISES = re.split(r"^### ", PAGE, flags=re.MULTILINE)
TITLES = [exercise.partition("\n")[0] for exercise in EXERCISES]
SOLUTIONS = nbformat.read(DOCS / "solutions.ipynb", as_version=4).cells[1:]

# What names a place in a paper is no result: a year, or a word with its number.
CITATION = re.compile(r"\((?:19|20)\d\d|\b(?:section|theorem|Example|lemma|equation) \d+(?:\.\d+)?")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> set[float]:
    """Every number of a text; thousands stand apart by commas."""
    return {
        float(number.rstrip(",").replace(",", "").replace("_", ""))
        for number in NUMBER.findall(re.sub(r"(?<=\d)_(?=\d)", "", text))
    }


def parts(number: int) -> tuple[str, str, str]:
    """Of an exercise: the program of its solution, what that prints, and all text without citations."""
    title, program, comment = SOLUTIONS[3 * number : 3 * number + 3]
    assert title.source == f"## {TITLES[number]}"
    (printed,) = program.outputs
    statement = EXERCISES[number].partition("\n")[2].partition("*Settings:*")[0]
    return program.source, printed.text, CITATION.sub("", statement + comment.source)


def test_each_exercise_has_a_solution() -> None:
    assert len(SOLUTIONS) == 3 * len(EXERCISES)


def test_each_exercise_names_its_page() -> None:
    for exercise in EXERCISES:
        (named,) = re.findall(r"\A.*\n\n\*(.+?)\.?\*", exercise)
        assert any(spec.title in named for spec in catalogue.PAGES)


@pytest.mark.parametrize("number", range(len(TITLES)), ids=TITLES)
def test_a_solution_prints_what_stands_there_and_the_text_says_no_other_number(number: int) -> None:
    program, printed, text = parts(number)
    out = io.StringIO()
    names: dict[str, Any] = {"__name__": "exercise"}
    with contextlib.redirect_stdout(out):
        exec(compile(program, "docs/solutions.ipynb", "exec"), names)
    assert out.getvalue() == printed
    numbers_in_text, given = numbers(text), numbers(program) | numbers(printed)
    assert numbers_in_text - given == set()


def test_a_number_that_no_program_gives_is_found() -> None:
    program, printed, text = parts(0)
    assert numbers(text + " The error is 13.5.") - numbers(program) - numbers(printed) == {13.5}
    assert numbers("1,772 rows, 0.0349; 60_000 and T = 20,000: (2019)") == {
        1772,
        0.0349,
        60_000,
        20_000,
        2019,
    }
    assert numbers(CITATION.sub("", "(2019, section 3), theorem 1; L0 of x2")) == set()


def test_the_lecture_names_the_steps_of_the_tour_and_nothing_else_in_numbers() -> None:
    matches = re.findall(r"^\| `/\?tour=(\d)` \| (.+?) \|", LECTURE, flags=re.MULTILINE)
    assert matches == [(str(k), question.title) for k, question in enumerate(tour.list_questions(), 1)]
    assert numbers(re.sub(r"`[^`]*`", "", LECTURE)) == set()


SHOWN = [
    ["3 rows", "13 rows"],
    ["With **20 rows** the count is off by **33 %**: bias 33 %"],
    ["7,983 rows", "Your own bound, 319 rows", "9.3 times as much"],
    ["2 rows", "Standard error 0.306"],
    ["90 rows", "25.6 %", "weights have the bound 81.8"],
    ["1.499"],
    ["16 rows", "Standard error 0.00416"],
    ["2 groups × 2 rows", "1.73 rows"],
    ["9 groups × 3 rows", "79.1 rows", "Bound of the scaling 24", "53.8 rows"],
    ["10 rows:** rank error 1.3 %", "1 row", "Error 3.99"],
    ["1,772 rows", "0.144"],
    ["140 rows"],
    ["The paper's 1/4 would gain 1.5×", "The paper's 1/2 would gain 23×"],
    ["Mean over users:** error 0.0141"],
]
"""Per exercise, what its page shows with the settings that the exercise states."""
PREPARED = {"users": {"bound": "20"}, "g": {"tab": "Paper's example"}}
"""What a person does besides, by a field of the address: drag the ring, open a tab."""


def write_file(words: str, folder: Path) -> Path:
    path = folder / "file.csv"
    path.write_text("\n".join(words.split()) + "\n", encoding="utf-8")
    return path


def open_settings(address: str, words: str, folder: Path) -> AppTest:
    """Open an address of an exercise; with words for a file, bring their lines as public data."""
    path, _, query = address.partition("?")
    (title,) = [page.title for page in catalogue.PAGES if page.url_path == path.lstrip("/")]
    link = dict(parse_qsl(query))
    prepared = next((more for name, more in PREPARED.items() if name in link), {})
    app = driving.open_app(title, **link, **{name: text for name, text in prepared.items() if name != "tab"})
    if words:
        source = counting.open_files([write_file(words, folder)])
        roles = source.roles
        if not words.startswith("size"):
            user, task = words.split()[0].split(",")
            roles = Roles.of_events([user], None, [task])
        dataset = counting.count(source, roles, Disclosure.PUBLIC).dataset
        assert dataset is not None
        driving.check(driving.use_dataset(app, dataset).run())
    assert not words or "Your data" in driving.errors(app) or not driving.errors(app)
    return driving.open_tab(app, "gap_examples", prepared["tab"]) if "tab" in prepared else app


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(TITLES)), ids=TITLES)
def test_the_page_shows_the_numbers_of_the_solution(number: int, tmp_path: Path) -> None:
    stated = EXERCISES[number].partition("*Settings:*")[2].partition("\n## ")[0]
    addresses = re.findall(r"`(/\S*)`", stated)
    (words,) = re.findall(r"with\s+the\s+file\s+`(\w+,.+?)`", stated) or [""]
    if "user and task" in stated:
        tasks = ["a"] * 1000 + ["b", "c"] * 10
        words = " ".join(["user,task", *(f"u{user},{task}" for user, task in enumerate(tasks))])
        addresses.append(addresses[0].replace("convex", "strongly-convex"))
    apps = [open_settings(address, words, tmp_path) for address in addresses]
    shown = "\n".join(driving.shown_texts(app) for app in apps).replace("\xa0", " ")
    program, printed, _ = parts(number)
    computed = numbers(program) | numbers(printed)
    for text in SHOWN[number]:
        assert text in shown
        for shown_number in re.findall(r"(?<![\d/])\d[\d,]*(?:\.\d+)?(?!/)", re.sub(r"\d/\d", "", text)):
            value, decimals = float(shown_number.replace(",", "")), len(shown_number.partition(".")[2])
            candidates = [round(scale * each, decimals) for each in computed for scale in (1, 100)]
            assert value in candidates, (text, value)
