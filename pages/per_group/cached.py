"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.per_group import PerGroupParameters
from pages.per_group import answer
from pages.shared.cache import cached


@cached(max_entries=8)
def per_group_answer(digest: str, parameters: PerGroupParameters, _data: Dataset) -> answer.PerGroupView:
    """The answer of Per group."""
    return answer.compute(_data, parameters)


@cached(max_entries=8)
def norm_curves(digest: str, parameters: PerGroupParameters, _view: answer.PerGroupView) -> answer.NormCurves:
    """Error against the bound on a user's vector."""
    return answer.norm_curves(_view)
