"""The stage of a search that an answer comes from."""

from __future__ import annotations

import enum


class Stage(enum.Enum):
    """While a search goes on beside a page, another answer may stand in for its result."""

    FINAL = "the search has ended, or was stopped"
    FIRST = "the search goes on; this is what there is until now"
    EARLIER = "it is for the settings before"
