"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.common.privacy import Provenance
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.data_owners import answer
from pages.data_owners.question import disclosure_of
from pages.shared.cache import cached


@cached(max_entries=16)
def _owners_answer(
    digest: str, parameters: OwnersParameters, disclosure: Provenance, _data: Dataset
) -> answer.OwnersView:
    return answer.compute(_data, parameters, disclosure)


def owners_answer(parameters: OwnersParameters, data: Dataset, own: Dataset | None) -> answer.OwnersView:
    """The answer of Data owners; of owners who are entered the data matter for the label alone."""
    digest = data.digest if parameters.source is OwnersSource.DATA else ""
    disclosure = disclosure_of(parameters, data, own)
    return _owners_answer(digest, parameters.about_bounds, disclosure, data)
