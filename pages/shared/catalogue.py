"""Every page of the app, once: navigation, links, Start's advice and the README's table read this."""

from __future__ import annotations

import importlib

from pages.shared.question import Question

ORDER = (
    "start",
    "your_data",
    "mean",
    "total",
    "quantile",
    "learning",
    "regression",
    "multitask",
    "gap_examples",
    "private_choice",
)
"""The folders of all questions, in the order of the sidebar. A new question adds its own here, and nowhere else."""


def _declared(name: str) -> Question:
    found: Question = importlib.import_module(f"pages.{name}.question").QUESTION
    if found.name != name:
        raise ValueError(f"the question in folder {name} calls itself {found.name}")
    return found


PAGES: tuple[Question, ...] = tuple(map(_declared, ORDER))


QUESTIONS = {question.name: question for question in PAGES}
"""By the name of their folders."""


def page(title: str) -> Question:
    """The page with this title."""
    return next(spec for spec in PAGES if spec.title == title)
