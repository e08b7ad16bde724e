"""The part of the Start page that reruns repeat, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.start.answer import Tradeoff, solve
from dpcore.start.parameters import StartParameters
from pages.shared.base.cache import cached


@cached(max_entries=16)
def solve_cached(digest: str, epsilon: float, _data: Dataset) -> Tradeoff:
    """Return the Start page's curves and their best bound; the person's own bound moves marks only."""
    return solve(_data, StartParameters(epsilon))
