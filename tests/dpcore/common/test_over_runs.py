"""Means over runs and their intervals, beside SciPy's."""

import numpy as np
import pytest
from scipy import stats

from dpcore.common.noise_error import summarise_runs


def test_intervals_are_those_of_student() -> None:
    values = np.random.default_rng(2).normal(size=(3, 5, 6))
    summary = summarise_runs(values)
    mean, half_widths = summary.means, summary.half_widths
    reference = stats.ttest_1samp(values, 0.0, axis=1).confidence_interval(0.95)
    assert mean == pytest.approx(values.mean(axis=1))
    assert mean + half_widths == pytest.approx(reference.high)
    values[0, 2:] = np.nan
    values[1, 1:] = np.nan
    values[2] = np.nan
    summary = summarise_runs(values)
    mean, half_widths = summary.means, summary.half_widths
    assert mean[0] == pytest.approx(values[0, :2].mean(axis=0))
    assert np.isfinite(half_widths[0]).all()
    assert np.isfinite(mean[1]).all()
    assert np.isnan(half_widths[1]).all()
    assert np.isnan(mean[2]).all()
    single_run = summarise_runs(values[0, :, 0], axis=0)
    assert (single_run.means, single_run.half_widths) == (mean[0, 0], half_widths[0, 0])
