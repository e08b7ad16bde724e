"""Finds the pages that can answer from the data in use, column by column."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.dataset import Dataset
from pages.shared.base import catalogue
from pages.shared.base.question import Facet, Question


@dataclass(frozen=True)
class Offer:
    """A column, and the pages that answer from it.

    Attributes:
        column: Its name; "Rows per user" if no column is needed.
        pages: In the order of the sidebar, at least one.
    """

    column: str
    pages: tuple[Question, ...]


def list_offers(data: Dataset) -> list[Offer]:
    """Return every page that the data can answer, once, under the column that it needs."""
    columns = {}
    if data.values is not None:
        columns[Facet.VALUES] = data.values.column
    if data.pairs is not None:
        columns[Facet.GROUPS] = data.pairs.label
    elif data.tasks is not None:
        columns[Facet.GROUPS] = data.tasks.label
    columns[Facet.ROWS] = "Rows per user"
    offers: list[Offer] = []
    offered_names: set[str] = set()
    for facet, column in columns.items():
        pages = tuple(q for q in catalogue.PAGES if facet in q.answers_from and q.name not in offered_names)
        offered_names |= {q.name for q in pages}
        if pages:
            offers.append(Offer(column, pages))
    return offers
