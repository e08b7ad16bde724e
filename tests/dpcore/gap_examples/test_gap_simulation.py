"""The Monte-Carlo check: its intervals hold their rate, and would show a wrong formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.gap_examples.compare import build_problem_of_noise_ratio
from dpcore.gap_examples.two_groups import supremum, theorem_2_problem
from tests.dpcore.gap_examples.simulation import Simulation, simulate, simulate_curve


@pytest.mark.parametrize(
    "problem",
    [
        supremum().problem(heavy_size=1000),
        # Nearly all noise: the outputs are Laplace, whose kurtosis breaks chi-squared intervals.
        build_problem_of_noise_ratio(ContributionHistogram.from_table([1, 5, 80], [10, 5, 2]), 1000.0),
    ],
)
def test_intervals_cover_the_formula_at_their_rate(problem: mean.MeanProblem) -> None:
    repeats, confidence = 200, 0.9
    covered = np.zeros(2, int)
    for seed in range(repeats):
        found = simulate(Simulation(problem, runs=1000, confidence=confidence, seed=seed))
        covered += (found.smooth.covers, found.capped.covers)
    # Central 99.99 % of Binomial(200, 0.9); normal kurtosis would give 70 % in the second.
    low, high = binom.ppf([5e-5, 1 - 5e-5], repeats, confidence)
    assert np.all((covered >= low) & (covered <= high))


def test_a_formula_wrong_by_three_percent_would_show() -> None:
    found = simulate(Simulation(theorem_2_problem(10), runs=200_000, confidence=0.99))
    for estimate in (found.smooth, found.capped):
        assert estimate.low > 0.97 * estimate.formula
        assert estimate.high < 1.03 * estimate.formula
        assert estimate.low <= estimate.variance <= estimate.high


def test_row_by_row_runs_of_algorithm_1_agree() -> None:
    """Each row drawn, weighted and added up, without the binomial short cut; within 5 standard errors."""
    problem = build_problem_of_noise_ratio(ContributionHistogram.from_table([1, 3, 7], [4, 3, 2]), 2.0)
    h, cap, runs = 2.5, 2, 40_000
    rng = np.random.default_rng(11)
    sizes = np.repeat(problem.histogram.sizes, problem.histogram.users)
    owner = np.repeat(np.arange(sizes.size), sizes)
    place = np.concatenate([np.arange(s) for s in sizes])
    values = rng.choice([-1.0, 1.0], size=(runs, owner.size))
    smooth = np.minimum(h, sizes)[owner] / sizes[owner] / np.minimum(h, sizes).sum()
    capped = (place < cap) / np.minimum(cap, sizes).sum()
    b = problem.value_bound / problem.epsilon
    found = simulate(Simulation(problem, threshold=h, max_contributions=cap, runs=runs))
    for weights, estimate in ((smooth, found.smooth), (capped, found.capped)):
        scale = b * np.bincount(owner, weights=weights).max()
        squares = (values @ weights + rng.laplace(scale=scale, size=runs)) ** 2
        error = np.hypot(squares.std() / runs**0.5, (estimate.high - estimate.low) / 3.92)
        assert abs(squares.mean() - estimate.variance) < 5.0 * error


def test_a_stopped_simulation_keeps_what_it_has() -> None:
    seen: list[float] = []
    question = Simulation(theorem_2_problem(10), runs=10**7)
    found = simulate(question, progress=seen.append, should_stop=lambda: len(seen) >= 2)
    assert found.cancelled
    assert found.runs == round(seen[-1] * 10**7)
    assert found.ended.startswith("Stopped after")
    assert found.smooth.low < found.smooth.high
    assert found.label == "simulation with made-up values"


def test_impossible_values_are_refused() -> None:
    histogram = ContributionHistogram.from_table([1, 4], [3, 3])
    with pytest.raises(InvalidInput) as refused:
        Simulation(mean.MeanProblem(histogram, 1.0, 1.0, 0.5), runs=10, confidence=2.0)
    assert len(refused.value.problems) == 3
    assert "value_bound²/4" in str(refused.value)
    huge = build_problem_of_noise_ratio(ContributionHistogram.from_table([10**12], [10**12]), 1.0)
    with pytest.raises(InvalidInput, match="too many"):
        Simulation(huge)


def test_a_curve_is_simulated_point_by_point_and_can_be_stopped() -> None:
    problem = theorem_2_problem(5)
    shares: list[float] = []
    found = simulate_curve(problem, (1, 2, 5), runs=1000, seed=3, progress=shares.append)
    assert [(r.threshold, r.max_contributions, r.runs) for r in found] == [
        (1, 1, 1000),
        (2, 2, 1000),
        (5, 5, 1000),
    ]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    for r in found:
        assert r.capped.formula == pytest.approx(float(mean.capped_variance(problem, r.threshold)))
        assert r.smooth.formula == pytest.approx(float(mean.smooth_variance(problem, r.threshold)))
    stopped = simulate_curve(problem, (1, 2, 5), runs=1000, should_stop=lambda: True)
    assert len(stopped) == 1


def test_many_sizes_are_simulated_in_small_blocks_until_stopped() -> None:
    histogram = ContributionHistogram(sizes=np.arange(1, 3001), users=np.ones(3000, int))
    found = simulate(
        Simulation(build_problem_of_noise_ratio(histogram, 10.0), runs=100_000),
        should_stop=lambda: True,
    )
    assert found.cancelled
    assert 500 <= found.runs < 1000
