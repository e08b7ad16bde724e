"""How long work reports, and how it is asked to stop."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]
"""Told the share done, from 0 to 1."""
ShouldStop = Callable[[], bool]
"""Asked between steps; yes ends the work with what there is."""
