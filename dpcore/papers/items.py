"""All numbered items of the four papers, and those of them that can be made again."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from dpcore.answer.paper_figure import PaperFigure
from dpcore.data_owners import paper as huang
from dpcore.factorisation import paper as krichene
from dpcore.learning import paper as amin_learning
from dpcore.multitask import experiment as krichene_tasks
from dpcore.regression import study as epasto
from dpcore.total import strategies as amin
from dpcore.training import bassily as epasto_training

_MODULES = (epasto, epasto_training, amin, amin_learning, huang, krichene, krichene_tasks)
FIGURES: tuple[PaperFigure, ...] = tuple(figure for module in _MODULES for figure in module.FIGURES)
"""All, by paper and in its order."""


def find_figure(key: str) -> PaperFigure:
    """Return the figure of the papers with this key; raise KeyError if there is none.

    Raises:
        KeyError: There is none.
    """
    return {figure.key: figure for figure in FIGURES}[key]


EMPTY = "–"
"""Stands where an item has no page, no code, or nothing that differs."""


@dataclass(frozen=True)
class Item:
    """One line of the list, about one or several numbered items.

    Attributes:
        items: As the paper numbers them, with commas between them.
        says: Its content, in a few words.
        places: Pages and tabs, Markdown.
        code: Where the core has it, Markdown.
        differs: What differs from the paper, or why it is left out, Markdown.
    """

    items: str
    says: str
    places: str
    code: str
    differs: str

    @property
    def first_place(self) -> tuple[str, str] | None:
        """Return (title of the first page, title of its tab) where the item is; None if it is on no page.

        The tab is empty for the first screen of the page.
        """
        link_match = re.match(r"\*\*([^*]+)\*\*(?:, \*([^*]+)\*)?", self.places)
        return (link_match[1], link_match[2] or "") if link_match else None

    @property
    def state(self) -> str:
        """Return in words whether the item is on a page, and whether it differs from the paper."""
        if self.first_place is None:
            return "not on a page"
        return "there" if self.differs == EMPTY else "there, with a difference"


@dataclass(frozen=True)
class Paper:
    """A paper and what of it the app reproduces.

    Attributes:
        title: As sections and figures name it.
        introduction: Its reference, Markdown.
        items: In its order.
    """

    title: str
    introduction: str
    items: tuple[Item, ...]


@functools.cache
def load_content() -> dict[str, Any]:
    """Parse ``items.toml``; return its tables: head and tail of ``docs/papers.md``, and the papers."""
    return tomllib.loads(resources.files("dpcore.papers").joinpath("items.toml").read_text(encoding="utf-8"))


@functools.cache
def list_papers() -> tuple[Paper, ...]:
    """List the four papers with their items."""
    return tuple(
        Paper(members["title"], members["introduction"], tuple(Item(**item) for item in members["items"]))
        for members in load_content()["papers"]
    )
