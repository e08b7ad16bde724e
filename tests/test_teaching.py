"""docs/teaching.md: every solution prints what stands there, and no number stands there that it does not give."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from pages.shared.base import catalogue
from pages.shared.session import tour

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "teaching.md").read_text(encoding="utf-8")
LECTURE, *EXERCISES = re.split(r"^### ", PAGE, flags=re.MULTILINE)
TITLES = [exercise.partition("\n")[0] for exercise in EXERCISES]

# What names a place in a paper is no result: a year, or a word with its number.
CITATION = re.compile(r"\((?:19|20)\d\d|\b(?:section|theorem|Example|lemma|equation) \d+(?:\.\d+)?")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> set[float]:
    """Every number of a text; thousands stand apart by commas."""
    return {
        float(number.rstrip(",").replace(",", "").replace("_", ""))
        for number in NUMBER.findall(re.sub(r"(?<=\d)_(?=\d)", "", text))
    }


def parts(exercise: str) -> tuple[str, str, str]:
    """Of an exercise: its program, what that prints, and all other text without citations."""
    (program,) = re.findall(r"^```python\n(.*?)^```", exercise, flags=re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```", exercise, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```.*?^```", "", exercise.partition("\n")[2], flags=re.MULTILINE | re.DOTALL)
    return program, printed, CITATION.sub("", text)


def test_each_exercise_names_its_page() -> None:
    for exercise in EXERCISES:
        (named,) = re.findall(r"\A.*\n\n\*(.+?)\.?\*", exercise)
        assert any(spec.title in named for spec in catalogue.PAGES)


@pytest.mark.parametrize("exercise", EXERCISES, ids=TITLES)
def test_a_solution_prints_what_the_page_shows_and_the_text_says_no_other_number(exercise: str) -> None:
    program, printed, text = parts(exercise)
    out = io.StringIO()
    names: dict[str, Any] = {"__name__": "exercise"}
    with contextlib.redirect_stdout(out):
        exec(compile(program, "docs/teaching.md", "exec"), names)
    assert out.getvalue() == printed
    numbers_in_text, given = numbers(text), numbers(program) | numbers(printed)
    assert numbers_in_text - given == set()


def test_a_number_that_no_program_gives_is_found() -> None:
    program, printed, text = parts(EXERCISES[0])
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
