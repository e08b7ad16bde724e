"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice import answer as private_view
from pages.shared.cache import cached


@cached(max_entries=16)
def private_answer(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> private_view.PrivateView:
    """The answer of Choose privately; its simulated part is short."""
    return private_view.compute(_dataset.histogram, parameters)
