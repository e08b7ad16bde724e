"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.data_owners import answer
from pages.shared.cache import cached


@cached(max_entries=16)
def _owners_answer(digest: str, parameters: OwnersParameters, _data: Dataset) -> answer.OwnersView:
    return answer.compute(_data, parameters)


def owners_answer(parameters: OwnersParameters, data: Dataset) -> answer.OwnersView:
    """The answer of Data owners; the data matter only where the owners are theirs."""
    digest = data.digest if parameters.source is OwnersSource.DATA else ""
    return _owners_answer(digest, parameters.about_bounds, data)
