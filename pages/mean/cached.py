"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters
from dpcore.mean.answer import MeanFound, answered, find
from dpcore.mean.read_values import ReadValues
from pages.shared.base.cache import cached


@cached(max_entries=8)
def _read(digest: str, lower: float, upper: float, _data: Dataset) -> ReadValues | None:
    return ReadValues.of(_data, lower, upper)


@cached(max_entries=16)
def _found(digest: str, parameters: MeanParameters, _data: Dataset) -> MeanFound:
    return find(_data, parameters, _read(digest, parameters.lower, parameters.upper, _data))


def mean_answer(data: Dataset, parameters: MeanParameters) -> Answer:
    """The answer; a cap of the person's own moves one mark and is no part of what is kept."""
    asked = parameters if parameters.own_cap is None else replace(parameters, own_cap=None)
    return answered(data, parameters, _found(data.digest, asked, data))
