"""All numbered items of the four papers: where each stands, and what differs."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

NOTHING = "–"
"""Stands where an item has no page, no code, or nothing that differs."""


@dataclass(frozen=True)
class Item:
    """One line of the list.

    Attributes:
        items: As the paper numbers them, with commas between them.
        says: What it says.
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
    def place(self) -> tuple[str, str] | None:
        """Title of the first page and the tab there, which is empty for the first screen; None for nowhere."""
        found = re.match(r"\*\*([^*]+)\*\*(?:, \*([^*]+)\*)?", self.places)
        return (found[1], found[2] or "") if found else None

    @property
    def state(self) -> str:
        """Whether it is there, in words."""
        if self.place is None:
            return "not on a page"
        return "there" if self.differs == NOTHING else "there, with a difference"


@dataclass(frozen=True)
class Paper:
    """A paper.

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
    """Read ``items.toml``: head and tail of ``docs/papers.md``, and the papers."""
    return tomllib.loads(resources.files("dpcore.papers").joinpath("items.toml").read_text(encoding="utf-8"))


@functools.cache
def papers() -> tuple[Paper, ...]:
    """Return all four."""
    return tuple(
        Paper(paper["title"], paper["introduction"], tuple(Item(**item) for item in paper["items"]))
        for paper in load_content()["papers"]
    )
