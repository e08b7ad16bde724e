"""The paper's figure 1 on a power law, its simulation, and the choice between two noises."""

import numpy as np
import pytest

from dpcore import total
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.total import TotalProblem
from dpcore.total import strategies as total_strategies
from dpcore.total.answer import solve
from dpcore.total.parameters import TotalParameters
from dpcore.total.strategies import BEST_STRATEGY, MEDIAN_STRATEGY, QUANTILE_95_STRATEGY, Strategy


@pytest.fixture
def power_law():
    """20,000 users; the share with more than x rows is about x^-1.1."""
    shares = (np.arange(20_000) + 0.5) / 20_000
    return TotalProblem(Amounts.from_totals(np.ceil(shares ** (-1.0 / 1.1))), epsilon=1.0)


def test_a_fixed_quantile_is_near_the_best_around_one_epsilon_only(power_law):
    epsilons = np.geomspace(1e-5, 10.0, 61)
    strategies = (BEST_STRATEGY, MEDIAN_STRATEGY, QUANTILE_95_STRATEGY, Strategy(0.999))
    curves = total_strategies.compute_strategy_curves(power_law, epsilons, strategies)
    best, fixed = curves.relative_errors[0], curves.relative_errors[1:]
    assert np.all(fixed >= best * (1.0 - 1e-9))
    assert np.all(np.diff(best) < 0.0)  # More budget, less error.
    touching = []
    for error in fixed:
        near = error <= 1.1 * best
        indices = np.flatnonzero(near)
        assert near.any()
        assert np.all(np.diff(indices) == 1)  # One stretch of epsilons ...
        assert (
            np.log10(epsilons[indices[-1]] / epsilons[indices[0]]) < 2.0
        )  # ... of less than two decades of six.
        assert error[-1] > 5.0 * best[-1]  # Too much bias where epsilon is large: the curve is flat.
        assert error[-1] == pytest.approx(error[-2], rel=0.05)
        touching.append(epsilons[indices].mean())
    assert touching == sorted(touching)  # A higher quantile is for a larger epsilon.


def test_curves_are_the_errors_of_the_bounds_they_name(power_law):
    curves = total_strategies.compute_strategy_curves(
        power_law, [0.01, 0.5], (BEST_STRATEGY, MEDIAN_STRATEGY)
    )
    for k, epsilon in enumerate((0.01, 0.5)):
        problem = TotalProblem(power_law.amounts, epsilon)
        assert curves.bounds[0, k] == total.find_best_choice(problem).max_total
        direct = total.compute_errors(problem, curves.bounds[:, k]).absolute_errors / power_law.amounts.total
        assert curves.relative_errors[:, k] == pytest.approx(direct)
    assert [s.name for s in (BEST_STRATEGY, MEDIAN_STRATEGY, QUANTILE_95_STRATEGY)] == [
        "best bound",
        "median",
        "95 % quantile",
    ]


@pytest.mark.parametrize("noise", list(NoiseKind))
def test_simulation_agrees_with_the_exact_curves(power_law, noise):
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    problem = TotalProblem(power_law.amounts, 1.0, noise, delta)
    epsilons = np.geomspace(1e-4, 1.0, 6)
    told = []
    points = total_strategies.simulate_strategies(
        problem, epsilons, num_runs=4000, seed=3, progress=told.append
    )
    exact = total_strategies.compute_strategy_curves(problem, epsilons).relative_errors
    # 18 points at 4.5 standard errors: fails with probability 1.2e-4 if all is right (and the seed is set).
    assert np.all(np.abs(points.relative_errors - exact) <= 4.5 * points.standard_errors)
    assert np.all(points.standard_errors < 0.02 * exact)
    assert told == pytest.approx(np.arange(1, 19) / 18)
    assert not points.is_cancelled


def test_a_stopped_simulation_is_a_result(power_law):
    asked = iter([False, False, True])
    points = total_strategies.simulate_strategies(
        power_law, [0.1, 1.0], num_runs=10, should_stop=lambda: next(asked)
    )
    assert points.is_cancelled
    assert np.isfinite(points.relative_errors).sum() == 2


def test_laplace_is_better_for_one_number_at_a_small_delta(power_law):
    amounts = power_law.amounts
    histogram = ContributionHistogram(amounts.values.astype(np.int64), amounts.users)
    data = Dataset("power law", "", Disclosure.PUBLIC, histogram)

    def is_laplace_better(delta):
        view = solve(data, TotalParameters(1.0, mechanism=NoiseKind.GAUSSIAN, delta=delta))
        laplace, gaussian = (view.find_best_by_noise(noise).certificate.value for noise in NoiseKind)
        return laplace < gaussian

    # sigma_1 sqrt(2 / pi) = 3.37 at (1, 1e-6) against 1 for Laplace; at delta 0.3 it is 0.58.
    assert is_laplace_better(1e-6)
    assert not is_laplace_better(0.3)
