"""Progress reports of long work, requests to stop it, and the stage of its result."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable

Progress = Callable[[float], None]
"""A callback that gets the finished share, from 0 to 1."""
ShouldStop = Callable[[], bool]
"""A callback that is called between steps; True ends the work with the results so far."""


def silent(share: float) -> None:
    """Do nothing with the progress: the default of ``progress``."""


def never() -> bool:
    """Return False: the default of ``should_stop``."""
    return False


def measure_progress(gap: float, tolerance: float) -> float:
    """Return how far a relative gap has closed to its tolerance, from 0 to 1, on a logarithmic scale."""
    if gap <= tolerance or gap >= 1.0:
        return float(gap <= tolerance)
    return math.log(gap) / math.log(tolerance)


class Stage(enum.Enum):
    """The stage of the answer that a page shows: of an ended search, of one that goes on, or of earlier settings."""

    FINAL = "the search has ended, or was stopped"
    FIRST = "the search goes on; this is what there is until now"
    EARLIER = "it is for the settings before"
