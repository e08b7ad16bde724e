"""Every page of the app, once: navigation, links, Home's advice and the README's table read this."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from pages.shared.base.question import Question

PAGE_FOLDERS = (
    "start",
    "your_data",
    "mean",
    "total",
    "per_group",
    "quantile",
    "plan",
    "release_sheet",
    "gap_examples",
    "learning",
    "multitask",
    "papers",
    "examples_per_user",
    "training",
    "regression",
    "factorisation",
    "data_owners",
)
"""The folders of all pages, in the order of the sidebar. A new question adds its own here, and nowhere else."""
STEP_FOLDERS = ("private_choice",)
"""The folders of steps on the pages of others: their fields live in the session and in files as those of pages do."""

FOLDED_GROUPS = frozenset({"Models"})
"""Groups of the sidebar that are closed unless one of their pages is open."""


def read_questions(folder_names: Iterable[str]) -> tuple[Question, ...]:
    """Return the declarations of the questions in these folders.

    Raises:
        ValueError: One calls itself otherwise than its folder.
    """
    questions = tuple(
        importlib.import_module(f"pages.{folder_name}.question").QUESTION for folder_name in folder_names
    )
    for folder_name, question in zip(folder_names, questions, strict=True):
        if question.name != folder_name:
            raise ValueError(f"the question in folder {folder_name} calls itself {question.name}")
    return questions


PAGES = read_questions(PAGE_FOLDERS)
QUESTION_BY_NAME = {question.name: question for question in (*PAGES, *read_questions(STEP_FOLDERS))}
"""The questions of pages and of steps, by folder."""
FIELD_KEYS = frozenset(
    question.get_key(name) for question in QUESTION_BY_NAME.values() for name in question.fields
)
"""The session keys of all fields."""
PRIVATE_SELECTION_STEP = next(
    (question for question in QUESTION_BY_NAME.values() if question.selects_bounds_privately), None
)
"""The step that chooses the bounds of other questions privately; None where there is none."""
PLAN_PAGE = next((question for question in PAGES if question.is_budget_plan), None)
"""The question that takes the releases of other questions into a plan; None where there is none."""
SHEET_PAGE = next((question for question in PAGES if question.is_release_sheet), None)
"""The question that states what other questions release; None where there is none."""


def find_page(title: str) -> Question:
    """Return the page with this title, which must exist."""
    return next(question for question in PAGES if question.title == title)
