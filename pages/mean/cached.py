"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.answer import MeanFound, answered, find
from dpcore.mean.user_effects import Clamped, clamp
from pages.shared.base.cache import cached


@cached(max_entries=8)
def _clamped(digest: str, lower: float, upper: float, _data: Dataset) -> Clamped | None:
    return clamp(_data.values, lower, upper) if _data.values is not None else None


@cached(max_entries=16)
def _found(digest: str, parameters: MeanParameters, _data: Dataset) -> MeanFound:
    return find(_data, parameters, _clamped(digest, parameters.lower, parameters.upper, _data))


def mean_answer(data: Dataset, parameters: MeanParameters) -> Answer:
    """The answer; a cap of the person's own moves one mark and is no part of what is kept."""
    return answered(data, parameters, _found(data.digest, replace(parameters, own_cap=None), data))
