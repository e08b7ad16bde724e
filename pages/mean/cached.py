"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dataclasses import replace

from dpcore import mean
from dpcore.dataset import Dataset
from dpcore.mean import user_effects
from pages.mean import answer as mean_view
from pages.shared.cache import cached


@cached(max_entries=8)
def clamped_values(digest: str, lower: float, upper: float, _dataset: Dataset) -> user_effects.Clamped | None:
    """Values forced into [lower, upper], per user; None where the data have no values."""
    return user_effects.clamp(_dataset.values, lower, upper) if _dataset.values is not None else None


def mean_answer(
    data: Dataset, parameters: mean.MeanParameters, clamped: user_effects.Clamped | None
) -> mean_view.MeanView:
    """The Mean page's answer; ``clamped`` follows from data and parameters.

    A cap of the person's own moves one marker and is no part of the key.
    """
    return _answer(data.digest, replace(parameters, own_cap=None), clamped, data)


@cached(max_entries=16)
def _answer(
    digest: str, parameters: mean.MeanParameters, _clamped: user_effects.Clamped | None, _dataset: Dataset
) -> mean_view.MeanView:
    if _clamped is None:
        return mean_view.compute(_dataset.histogram, parameters, None)
    return mean_view.compute(_dataset.histogram, parameters, _clamped.variance, _clamped.mean)


@cached(max_entries=4)
def error_axis(
    digest: str, value_bound: float, _dataset: Dataset
) -> tuple[mean_view.Limits, tuple[float, float]]:
    """Where the main figure's axes begin and end, and from where to where the error's axis can be set."""
    return (
        mean_view.axis_limits(_dataset.histogram, value_bound),
        mean_view.offered_errors(_dataset.histogram, value_bound),
    )
