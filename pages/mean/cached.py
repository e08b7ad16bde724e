"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore import mean
from dpcore.dataset import Dataset
from dpcore.mean import user_effects
from pages.mean import answer as mean_view
from pages.shared.cache import cached


@cached(max_entries=8)
def clamped_values(digest: str, lower: float, upper: float, _dataset: Dataset) -> user_effects.Clamped | None:
    """Values forced into [lower, upper], per user; None where the data have no values."""
    return user_effects.clamp(_dataset.values, lower, upper) if _dataset.values is not None else None


@cached(max_entries=16)
def mean_answer(
    digest: str, parameters: mean.MeanParameters, _clamped: user_effects.Clamped | None, _dataset: Dataset
) -> mean_view.MeanView:
    """The Mean page's answer; ``_clamped`` follows from data and parameters."""
    if _clamped is None:
        return mean_view.compute(_dataset.histogram, parameters, None)
    return mean_view.compute(_dataset.histogram, parameters, _clamped.variance, _clamped.mean)
