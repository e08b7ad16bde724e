"""DP histogram and direct choice side by side: what either costs against choosing in the clear.

The direct choice's figures are exact. The copy's are simulated, with NumPy's noise and a fixed seed: a simulation for
looking at, not a release. All of it is computed from the data in use, and as private as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, build_log_grid
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, private_histogram
from dpcore.private_choice.choice import ChoiceProblem, ChoiceRegret
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.private_histogram import HistogramNoise, HistogramParameters, NoiseShape
from dpcore.private_choice.scores import check_users

_RUNS_PER_BLOCK = 25
"""Copies whose noise is drawn at once."""
NUM_SIMULATED_HISTOGRAMS = 200
"""Simulated copies behind one figure: the median is then good to about 4 percentage points of rank."""
EPSILON_AXIS_RANGE = (0.003, 3.0)
"""Least and largest budget of the choice in the plot."""


@dataclass(frozen=True)
class ChoiceCost:
    """The cost of a way of choosing, in shares; infinite where most simulated copies have no users.

    Attributes:
        median: Median regret (rank error for a quantile).
        percentile_95: Its 95th percentile.
    """

    median: float
    percentile_95: float


def compute_direct_cost(problem: ChoiceProblem, histogram: ContributionHistogram) -> ChoiceCost:
    """Compute the median and 95th percentile of the regret of the direct choice, exactly."""
    regret = choice.summarise_regret(problem, histogram)
    return ChoiceCost(float(regret.median_regrets[0, 0]), float(regret.percentile_95_regrets[0, 0]))


def compute_regret_over_epsilon(
    parameters: PrivateParameters, histogram: ContributionHistogram
) -> ChoiceRegret:
    """Compute mean, median and 95th percentile of the direct choice's regret at 61 budgets, exactly."""
    return choice.summarise_regret(parameters.choice, histogram, build_log_grid(*EPSILON_AXIS_RANGE, 61))


def simulate_chosen_bounds(
    histogram: ContributionHistogram,
    choose_bound: Callable[[ContributionHistogram], float],
    parameters: HistogramParameters,
    num_runs: int = NUM_SIMULATED_HISTOGRAMS,
    seed: int = 0,
    fit_counts: Callable[[IntArray, NoiseShape, IntArray], IntArray] = private_histogram.fit_users,
) -> FloatArray:
    """Simulate DP histograms; return the bounds chosen on them, ascending, NaN for those without users.

    Args:
        histogram: Rows per user, private.
        choose_bound: Returns the best bound on a histogram.
        parameters: Of the copies.
        num_runs: Number of copies; 300 take about 0.3 seconds on 4,372 users for a mean's two bounds.
        seed: Seed of NumPy's generator.
        fit_counts: Returns the users per bin, given noisy counts, their noise and the bins; releases use the default.

    Returns:
        The bounds, ascending, shape (runs,); NaN, at the end, for copies without users.
    """
    bins, bin_counts = parameters.bins, parameters.bins.count_users(histogram)
    noise_shape, generator = parameters.noise_shape, np.random.default_rng(seed)
    chosen_bounds = np.full(num_runs, math.nan)
    for first_run_index in range(0, num_runs, _RUNS_PER_BLOCK):
        block_shape = min(_RUNS_PER_BLOCK, num_runs - first_run_index), bin_counts.size
        noise_per_run = simulate_noise(parameters.noise, parameters.scale, block_shape, generator)
        for run_index, noise_of_run in enumerate(noise_per_run, first_run_index):
            fitted_users = fit_counts(bin_counts + noise_of_run, noise_shape, bins.lower)
            copied_histogram = private_histogram.build_histogram(fitted_users, bins)
            if copied_histogram is not None:
                chosen_bounds[run_index] = choose_bound(copied_histogram)
    return np.sort(chosen_bounds)


def simulate_noise(
    noise_kind: HistogramNoise,
    noise_scale: float,
    array_shape: tuple[int, ...],
    generator: np.random.Generator,
) -> IntArray:
    """Draw an array of integer noise with NumPy, for simulations only.

    Discrete Laplace is the difference of two geometric numbers. Discrete Gaussian is drawn by inverting its
    distribution within 12 sigma (beyond lie 1e-32); above sigma = 10,000 a rounded normal number stands in.
    """
    if noise_kind is HistogramNoise.LAPLACE:
        p = -math.expm1(-1.0 / noise_scale)
        return np.asarray(
            generator.geometric(p, array_shape) - generator.geometric(p, array_shape), dtype=np.int64
        )
    if noise_scale > 1e4:
        return np.rint(generator.normal(0.0, noise_scale, array_shape)).astype(np.int64)
    largest_noise = math.ceil(12.0 * noise_scale) + 1
    noise_values = np.arange(-largest_noise, largest_noise + 1)
    cumulative_weights = np.cumsum(np.exp(-0.5 * (noise_values / noise_scale) ** 2))
    scaled_uniforms = generator.random(array_shape) * cumulative_weights[-1]
    noise_indices = np.searchsorted(cumulative_weights, scaled_uniforms, side="right")
    return np.asarray(noise_values[np.minimum(noise_indices, noise_values.size - 1)], dtype=np.int64)


def simulate_cost(
    parameters: PrivateParameters, histogram: ContributionHistogram, num_runs: int = NUM_SIMULATED_HISTOGRAMS
) -> ChoiceCost:
    """Simulate the median and 95th percentile of the regret of choosing on a DP histogram.

    A copy without users has an infinite regret.
    """
    condition = parameters.condition
    chosen_bounds = simulate_chosen_bounds(
        histogram, condition.find_best_bound, parameters.histogram_parameters, num_runs
    )
    finite_bounds = chosen_bounds[np.isfinite(chosen_bounds)]
    regrets = choice.compute_regrets(condition, histogram, np.maximum(finite_bounds, 1e-12))
    sorted_regrets = np.append(np.sort(regrets), np.full(num_runs - finite_bounds.size, math.inf))
    return ChoiceCost(find_rank_value(sorted_regrets, 0.5), find_rank_value(sorted_regrets, 0.95))


def find_rank_value(ascending_values: FloatArray, min_share: float) -> float:
    """Return the smallest entry that at least this share of the entries do not exceed; NaN if there are none."""
    if not ascending_values.size:
        return math.nan
    # Less a little, as a product may be rounded above its whole number.
    return float(ascending_values[max(math.ceil(min_share * ascending_values.size - 1e-9), 1) - 1])


@dataclass(frozen=True, eq=False)
class PrivateSolution:
    """The best number in the clear, and what choosing it directly or on a DP histogram costs.

    Attributes:
        parameters: The question, its epsilon divided.
        best: The number chosen in the clear, in rows per user.
        direct_cost: Exact cost of the direct choice.
        histogram_cost: Simulated cost of choosing on a DP histogram.
        dataset: What it is computed from.
    """

    parameters: PrivateParameters
    best: float
    direct_cost: ChoiceCost
    histogram_cost: ChoiceCost
    dataset: Dataset

    @property
    def is_rank_error(self) -> bool:
        """Return True if costs are rank errors, not relative errors."""
        return self.parameters.purpose is BoundPurpose.QUANTILE


def solve(dataset: Dataset, parameters: PrivateParameters) -> PrivateSolution:
    """Compute what the direct choice and a choice on a DP histogram cost; a total epsilon is divided first.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.
    """
    histogram, parameters = dataset.histogram, parameters.divide()
    check_users(histogram)
    best_bound = parameters.condition.find_best_bound(histogram)
    direct_cost = compute_direct_cost(parameters.choice, histogram)
    return PrivateSolution(parameters, best_bound, direct_cost, simulate_cost(parameters, histogram), dataset)
