"""Means over repeated runs with their uncertainty, as every table of simulations shows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray, IntArray

CONFIDENCE = 0.95
"""Confidence of the intervals of a mean over runs."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Means over the finished runs; every array without the axis of the runs.

    Attributes:
        mean: NaN where no run is there.
        standard_error: Of the mean; NaN below two runs.
        runs: How many are there.
        spread: Standard deviation of one run; NaN below two.
    """

    mean: FloatArray
    standard_error: FloatArray
    runs: IntArray
    spread: FloatArray

    @property
    def half_width(self) -> FloatArray:
        """Return half of a `CONFIDENCE` interval of the mean, by Student's t; NaN below two runs."""
        from scipy.special import stdtrit

        quantile = stdtrit(np.maximum(self.runs - 1, 1), 0.5 + CONFIDENCE / 2.0)
        return np.asarray(np.where(self.runs > 1, quantile * self.standard_error, np.nan))


def summarise_runs(values: FloatArray, axis: int = 1) -> Summary:
    """Compute mean, standard error and spread over one axis; an unfinished run is NaN."""
    is_finished = np.isfinite(values)
    runs = np.asarray(is_finished.sum(axis=axis))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_finished, values, 0.0).sum(axis=axis) / runs
        deviations = np.where(is_finished, values - np.expand_dims(mean, axis), 0.0)
        spread = np.sqrt((deviations * deviations).sum(axis=axis) / np.where(runs > 1, runs - 1, np.nan))
        return Summary(mean, spread / np.sqrt(runs), runs, spread)
