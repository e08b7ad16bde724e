"""Advice from three answers on the Start page: what to do, and which page to open."""

from __future__ import annotations

from pages.shared.base import catalogue
from pages.shared.base.question import Question

SEVERAL_ROWS = {
    "Yes": "",
    "No": (
        "Then there is nothing to choose: the bound is 1. Note that *one row per session* or *per device* can still "
        "be several rows per person."
    ),
    "Not sure": "*Your data* shows it: load your table there, and look at the largest number of rows of one user.",
}
USER_HELP = (
    "A user is whoever is to be protected, by one column or by several together (in *Your data*, *Further columns "
    "that only together with it identify a user*). Without such a column privacy holds per row, and needs no bound."
)
TOPICS = {"Numbers": "Choose a bound", "A model": "Models"}
"""Kinds of releases, and the group of pages for each."""


def list_releases(topic: str | None = None) -> list[str]:
    """Return what can be released and has a page; only that of one topic if it is given."""
    return [
        spec.release
        for spec in catalogue.PAGES
        if spec.release and spec.group == TOPICS.get(topic or "", spec.group)
    ]


def find_page(release: str | None) -> Question | None:
    """Return the page for a release; None if there is none."""
    return next((spec for spec in catalogue.PAGES if spec.release and spec.release == release), None)
