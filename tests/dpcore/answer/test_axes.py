"""Where an axis that follows its curves begins and ends."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.axes import SMALLEST_PART, fit_limits


def test_ends_are_1_2_or_5_times_a_power_of_ten_and_next_to_the_curves():
    random = np.random.default_rng(5)
    for low, spread in zip(10 ** random.uniform(-9, 9, 300), 10 ** random.uniform(0, 6, 300), strict=True):
        first, last = fit_limits(np.array([np.nan, low, 0.0, low * spread, np.inf]))
        assert first <= low / 1.1 <= 2.5 * first * (1 + 1e-12)
        assert last / 2.5 * (1 - 1e-12) <= low * spread * 1.1 <= last
        for end in (first, last):
            digits = end / 10.0 ** math.floor(math.log10(end * (1 + 1e-12)))
            assert min(abs(digits - step) for step in (1.0, 2.0, 5.0)) < 1e-9


def test_parts_are_seen_unless_they_are_negligible():
    whole = np.array([3.0, 40.0])
    assert fit_limits(whole) == (2.0, 50.0)
    assert fit_limits(whole, np.array([0.0, 0.3, 39.0, np.nan])) == (0.2, 50.0)
    assert fit_limits(whole, np.array([3.0 / SMALLEST_PART * 0.99, 39.0])) == (2.0, 50.0)
    assert fit_limits(np.array([np.nan])) == (1.0, 10.0)
