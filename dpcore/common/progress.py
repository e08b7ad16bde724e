"""How long work reports, and how it is asked to stop."""

from __future__ import annotations

import math
from collections.abc import Callable

Progress = Callable[[float], None]
"""Told the share done, from 0 to 1."""
ShouldStop = Callable[[], bool]
"""Asked between steps; yes ends the work with what there is."""


def silent(share: float) -> None:
    """`Progress` for work that nobody watches."""


def never() -> bool:
    """`ShouldStop` for work that nobody stops."""
    return False


def closed(gap: float, tolerance: float) -> float:
    """How far a relative gap has closed to its tolerance, on a logarithmic scale, from 0 to 1."""
    if gap <= tolerance or gap >= 1.0:
        return float(gap <= tolerance)
    return math.log(gap) / math.log(tolerance)
