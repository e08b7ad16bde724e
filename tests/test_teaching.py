"""docs/teaching.md and docs/solutions.ipynb: each program prints what stands there, and the texts have its numbers."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from pages.shared.base import catalogue
from pages.shared.session import tour

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
    statement = EXERCISES[number].partition("\n")[2]
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
