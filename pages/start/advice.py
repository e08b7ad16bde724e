"""From three answers on the Start page to what to do and where to go."""

from __future__ import annotations

from pages.shared.base import catalogue
from pages.shared.base.question import Question

SEVERAL = {
    "Yes": "A bound is what you need: without one, a single person can move the result as far as they like.",
    "No, each has one row": (
        "Then there is nothing to choose: the upper bound is 1. Note that *one row per session* or *per device* "
        "can still be several rows per person."
    ),
    "I do not know": (
        "*Your data* shows it: load your table there and look at the largest number of rows of one user."
    ),
}
WHO = {
    "There is one": "Choose that column as the user column in *Your data*.",
    "Several together identify a person": (
        "In *Your data*, choose one of them as the user column and the others under *Further columns that only "
        "together with it identify a user*. A table with one row per user needs them joined into one column."
    ),
    "I only have counts": "*Your data* also takes a table of counts per user, or a histogram.",
    "None": (
        "This table cannot give privacy per *user*: no column says which user owns a row. "
        "Privacy per row protects less and needs no bound."
    ),
}


def releases() -> list[str]:
    """What can be released, as far as there is a page for it."""
    return [spec.release for spec in catalogue.PAGES if spec.release]


def page_for(release: str | None) -> Question | None:
    """The page that answers what is released."""
    return next((spec for spec in catalogue.PAGES if spec.release and spec.release == release), None)


def sentences(several: str | None, who: str | None) -> list[str]:
    """What follows from the first two answers."""
    return [table[answer] for table, answer in ((SEVERAL, several), (WHO, who)) if answer is not None]
