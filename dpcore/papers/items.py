"""All numbered items of the four papers: their pages, code and differences. It makes ``docs/papers.md``."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

EMPTY = "–"
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
    def first_place(self) -> tuple[str, str] | None:
        """Return the title of the first page and its tab, empty for the first screen; None if there is none."""
        link = re.match(r"\*\*([^*]+)\*\*(?:, \*([^*]+)\*)?", self.places)
        return (link[1], link[2] or "") if link else None

    @property
    def state(self) -> str:
        """Return the state of the item as text."""
        if self.first_place is None:
            return "not on a page"
        return "there" if self.differs == EMPTY else "there, with a difference"


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
def _load_items() -> dict[str, Any]:
    """Load the list of items."""
    return tomllib.loads(resources.files("dpcore.papers").joinpath("items.toml").read_text(encoding="utf-8"))


@functools.cache
def list_papers() -> tuple[Paper, ...]:
    """List the four papers."""
    return tuple(
        Paper(content["title"], content["introduction"], tuple(Item(**item) for item in content["items"]))
        for content in _load_items()["papers"]
    )


def write_markdown() -> str:
    """Write ``docs/papers.md``."""
    content = _load_items()
    sections = [content["head"].rstrip("\n")]
    for paper in list_papers():
        rows = [
            f"| {listed_item.items} | {listed_item.says} | {listed_item.places} | {listed_item.code} | "
            f"{listed_item.differs} |"
            for listed_item in paper.items
        ]
        table = "\n".join(
            [
                "| item | what it says | page, tab | code | what differs, or why it is left out |",
                "|---|---|---|---|---|",
                *rows,
            ]
        )
        sections.append(f"## {paper.title}\n\n{paper.introduction}\n\n{table}")
    return "\n\n".join([*sections, content["tail"].strip("\n")]) + "\n"
