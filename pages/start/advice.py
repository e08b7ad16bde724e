"""From three answers on the Start page to what to do and where to go."""

from __future__ import annotations

from pages.shared.base import catalogue
from pages.shared.base.question import Question

SEVERAL = {
    "Yes": "",
    "No": (
        "Then there is nothing to choose: the bound is 1. Note that *one row per session* or *per device* can still "
        "be several rows per person."
    ),
    "Not sure": "*Your data* shows it: load your table there, and look at the largest number of rows of one user.",
}
WHO = (
    "A user is whoever is to be protected, by one column or by several together (in *Your data*, *Further columns "
    "that only together with it identify a user*). Without such a column privacy holds per row, and needs no bound."
)
KINDS = {"Numbers": "Choose a bound", "A model": "Models"}
"""What is released, and the group of pages that answer it."""


def releases(kind: str | None = None) -> list[str]:
    """Return what can be released, as far as there is a page for it; of one kind where it is given."""
    return [
        spec.release
        for spec in catalogue.PAGES
        if spec.release and spec.group == KINDS.get(kind or "", spec.group)
    ]


def page_for(release: str | None) -> Question | None:
    """Return the page that answers what is released."""
    return next((spec for spec in catalogue.PAGES if spec.release and spec.release == release), None)
