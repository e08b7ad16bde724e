"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.common.privacy import Provenance
from dpcore.data_owners.answer import OwnersSolution, solve
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.dataset import Dataset
from pages.data_owners.question import disclosure_of
from pages.shared.base.cache import cached


@cached(max_entries=16)
def _found(
    digest: str, parameters: OwnersParameters, disclosure: Provenance, _data: Dataset
) -> OwnersSolution:
    return solve(_data if digest else disclosure, parameters)


def owners_found(parameters: OwnersParameters, data: Dataset, own: Dataset | None) -> OwnersSolution:
    """Return what is found for data owners; of owners who are entered the data matter for the label alone."""
    digest = data.digest if parameters.source is OwnersSource.DATA else ""
    return _found(digest, parameters.without_training, disclosure_of(parameters, data, own), data)
