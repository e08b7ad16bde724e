"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.per_group.answer import DistributionSolution, PerGroupSolution, distribution, solve
from dpcore.per_group.parameters import PerGroupParameters
from pages.shared.base.cache import cached


@cached(max_entries=8)
def found(
    digest: str, parameters: PerGroupParameters, _data: Dataset
) -> PerGroupSolution | DistributionSolution:
    """Return what is found for a question on pairs, or on how these are distributed."""
    return distribution.solve(_data, parameters) if _data.pairs is None else solve(_data, parameters)
