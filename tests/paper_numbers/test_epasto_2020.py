"""Numbers printed in Epasto et al. 2020."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpcore import mean
from dpcore.contributions import ContributionHistogram
from dpcore.data.samples import TwoGroups


def example_2(g: int) -> mean.MeanProblem:
    """g users with 1 row, g users with g rows, sigma = 1, B / eps = sqrt(g / 2)."""
    histogram = (
        ContributionHistogram(sizes=[1], users=[2]) if g == 1 else TwoGroups(g, 1, g, g).build_histogram()
    )
    return mean.MeanProblem(histogram, epsilon=1.0, value_bound=math.sqrt(g / 2), value_variance=1.0)


@pytest.mark.parametrize("g", [1, 2, 3, 10, 1000, 10**6, 10**12])
def test_theorem_2(g: int) -> None:
    problem = example_2(g)
    printed_smooth, printed_capped = Fraction(2 * g + 1, 4 * g * g), Fraction(3, 4 * g)
    assert mean.compute_smooth_variance(problem, 1) == pytest.approx(float(printed_smooth), rel=1e-13)
    assert mean.compute_capped_variance(problem, 1) == pytest.approx(float(printed_capped), rel=1e-13)
    # "At least 3/(4g)": attained at h = 1. "Less than (2g + 1)/(4g^2)": the proof says at most, and it is
    # equality, since at h = 1 the optimality condition g h - sum (1 - h/s)_+ = g - (g - 1) is above 0.
    smooth, cap = mean.find_best_smooth(problem), mean.find_best_cap(problem)
    assert (smooth.threshold, cap.max_contributions) == (1, 1)
    assert smooth.squared_error == pytest.approx(float(printed_smooth), rel=1e-13)
    assert cap.squared_error == pytest.approx(float(printed_capped), rel=1e-13)
    assert smooth.certificate.proves(1e-9)
    assert cap.certificate.proves(1.001e-6)
    assert printed_capped >= printed_smooth


def test_theorem_2_ratio_converges_to_three_halves() -> None:
    ratios = []
    for g in (1, 10, 100, 10**6):
        problem = example_2(g)
        ratios.append(
            mean.find_best_cap(problem).squared_error / mean.find_best_smooth(problem).squared_error
        )
        assert ratios[-1] == pytest.approx(3 * g / (2 * g + 1), rel=1e-12)
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(3 / 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_3_factor_four_is_never_reached(seed: int) -> None:
    import numpy as np

    rng = np.random.default_rng(seed)
    for _ in range(20):
        sizes = np.unique(rng.integers(1, 10 ** rng.integers(1, 6), size=rng.integers(1, 8)))
        users = rng.integers(1, 1000, size=sizes.size)
        problem = mean.MeanProblem(ContributionHistogram(sizes, users), 10 ** rng.uniform(-3, 3), 1.0, 0.25)
        ratio = mean.find_best_cap(problem).squared_error / mean.find_best_smooth(problem).squared_error
        assert 1 - 1e-12 <= ratio <= 4
