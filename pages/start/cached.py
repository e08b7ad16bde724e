"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from pages.shared.cache import cached
from pages.start import answer


@cached(max_entries=16)
def start_tradeoff(digest: str, epsilon: float, _dataset: Dataset) -> answer.Tradeoff:
    """The Start page's curves and their sweet spot."""
    return answer.tradeoff(_dataset.histogram, epsilon)


@cached(max_entries=16)
def rows_of_users(digest: str, _dataset: Dataset) -> answer.RowsOfUsers:
    """Some users with their rows as dots."""
    return answer.rows_of_users(_dataset.histogram)
