"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.common.privacy import Provenance
from dpcore.data_owners.answer import OwnersFound, find
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.data_owners.question import disclosure_of
from pages.shared.base.cache import cached


@cached(max_entries=16)
def _found(digest: str, parameters: OwnersParameters, disclosure: Provenance, _data: Dataset) -> OwnersFound:
    return find(_data if digest else disclosure, parameters)


def owners_found(parameters: OwnersParameters, data: Dataset, own: Dataset | None) -> OwnersFound:
    """What is found for data owners; of owners who are entered the data matter for the label alone."""
    digest = data.digest if parameters.source is OwnersSource.DATA else ""
    return _found(digest, parameters.about_bounds, disclosure_of(parameters, data, own), data)
