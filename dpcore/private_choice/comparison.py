"""Private copy and direct choice side by side: what either costs against choosing in the clear.

The direct choice's figures are exact. The copy's are simulated, with NumPy's noise and a fixed seed: a simulation for
looking at, not a release. All of it is computed from the data in use, and as private as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import BoundComparison
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, log_spaced
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, private_histogram
from dpcore.private_choice.choice import ChoiceProblem, ChoiceRegret
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.private_histogram import CopyNoise, NoiseShape, PrivateCopyParameters
from dpcore.private_choice.scores import MAX_TOTAL_USERS, check_users
from dpcore.private_choice.table_scores import compute_least_error

_BLOCK = 25
"""Copies whose noise is drawn at once."""
RUNS = 200
"""Simulated copies behind one figure: the median is then good to about 4 percentage points of rank."""
EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class ChoiceCost:
    """The cost of a way of choosing, in shares; for copies infinite or NaN if none had users.

    Attributes:
        median: Median regret (rank error for a quantile).
        percentile_95: Its 95th percentile.
        low: 5th percentile of the number chosen, in rows per user.
        high: Its 95th percentile.
        empty_share: Share of copies in which no user was left.
    """

    median: float
    percentile_95: float
    low: float
    high: float
    empty_share: float = 0.0


CostCurve = tuple[tuple[float, ChoiceCost], ...]
"""Simulated costs of a copy, each with its place on the axis."""


@dataclass(frozen=True)
class Copies:
    """The simulated costs of private copies; the work of a job.

    Attributes:
        at_budget: At the budget of the choice; None if that is not known yet.
        over_epsilon: Over budgets of the choice.
        over_users: Over how many times every user is there.
        cancelled: True if the simulation was stopped early; the curves then end where it was.
        earlier: True if the curve is that of the settings before.
    """

    at_budget: ChoiceCost | None = None
    over_epsilon: CostCurve = ()
    over_users: CostCurve = ()
    cancelled: bool = False
    earlier: bool = False


NO_COPIES = Copies()


def compute_direct_cost(problem: ChoiceProblem, histogram: ContributionHistogram) -> ChoiceCost:
    """Return the exact cost of the direct choice, and the range of what is drawn."""
    costs = choice.summarise_regret(problem, histogram)
    cumulated = np.cumsum(choice.compute_probabilities(problem, histogram))
    low, high = np.minimum(np.searchsorted(cumulated, (0.05, 0.95)), cumulated.size - 1)
    range_drawn = float(problem.candidates[low]), float(problem.candidates[high])
    return ChoiceCost(float(costs.median[0, 0]), float(costs.percentile_95[0, 0]), *range_drawn)


def list_scales(histogram: ContributionHistogram) -> tuple[float, ...]:
    """Return the `SCALES` at which the number of users can still be added up; at least the first three."""
    limit = MAX_TOTAL_USERS / histogram.num_users
    return tuple(k for k in SCALES if k <= max(limit, 1.0))


def regret_over_epsilon(parameters: PrivateParameters, histogram: ContributionHistogram) -> ChoiceRegret:
    """Return the exact regret over budgets of the choice, whatever the budget of ``parameters`` is."""
    return choice.summarise_regret(parameters.choice, histogram, log_spaced(EPSILONS[0], EPSILONS[-1], 61))


def regret_over_users(parameters: PrivateParameters, histogram: ContributionHistogram) -> ChoiceRegret:
    """Return the exact regret over numbers of users: each is taken so many times."""
    scales = log_spaced(SCALES[0], list_scales(histogram)[-1], 19, extra=[1.0])
    return choice.summarise_regret(parameters.choice, histogram, None, scales)


def simulate_bounds(
    histogram: ContributionHistogram,
    choose: Callable[[ContributionHistogram], float],
    parameters: PrivateCopyParameters,
    runs: int = RUNS,
    seed: int = 0,
    post_process: Callable[[IntArray, NoiseShape, IntArray], IntArray] = private_histogram.fit_users,
) -> FloatArray:
    """Simulate private copies, and choose on each.

    Args:
        histogram: Rows per user, private.
        choose: Returns the best bound on a histogram.
        parameters: Of the copies.
        runs: Number of copies; 300 take about 0.3 seconds on 4,372 users for a mean's two bounds.
        seed: Seed of NumPy's generator.
        post_process: Returns the users per bin, given noisy counts, their noise and the bins; releases use the default.

    Returns:
        The bounds, ascending, shape (runs,); NaN, at the end, for copies without users.
    """
    bins, counts = parameters.bins, parameters.bins.count_users(histogram)
    shape, generator = parameters.noise_shape, np.random.default_rng(seed)
    bounds = np.full(runs, math.nan)
    for first in range(0, runs, _BLOCK):
        size = min(_BLOCK, runs - first), counts.size
        noise = simulate_noise(parameters.noise, parameters.scale, size, generator)
        for run, row in enumerate(noise, first):
            copy = private_histogram.build_histogram(post_process(counts + row, shape, bins.lower), bins)
            if copy is not None:
                bounds[run] = choose(copy)
    return np.sort(bounds)


def simulate_noise(
    noise: CopyNoise, scale: float, shape: tuple[int, ...], generator: np.random.Generator
) -> IntArray:
    """Draw whole noise by NumPy, for simulation only.

    Discrete Laplace is the difference of two geometric numbers. Discrete Gaussian is drawn by inverting its
    distribution within 12 sigma (beyond lie 1e-32); above sigma = 10,000 a rounded normal number stands in.
    """
    if noise is CopyNoise.LAPLACE:
        p = -math.expm1(-1.0 / scale)
        return np.asarray(generator.geometric(p, shape) - generator.geometric(p, shape), dtype=np.int64)
    if scale > 1e4:
        return np.rint(generator.normal(0.0, scale, shape)).astype(np.int64)
    reach = math.ceil(12.0 * scale) + 1
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(np.exp(-0.5 * (support / scale) ** 2))
    index = np.searchsorted(cumulative, generator.random(shape) * cumulative[-1], side="right")
    return np.asarray(support[np.minimum(index, support.size - 1)], dtype=np.int64)


def simulate_cost(
    parameters: PrivateParameters,
    truth: ContributionHistogram,
    epsilon_choice: float | None = None,
    runs: int = RUNS,
) -> ChoiceCost:
    """Return the simulated cost of choosing on a private copy, at the parameters' budget or another."""
    condition = parameters.condition
    budget = parameters.selection_epsilon if epsilon_choice is None else epsilon_choice
    bounds = simulate_bounds(truth, condition.best_bound, parameters.build_copy(budget), runs)
    finite = bounds[np.isfinite(bounds)]
    regrets = choice.compute_regrets(condition, truth, np.maximum(finite, 1e-12))
    costs = np.append(np.sort(regrets), np.full(runs - finite.size, math.inf))
    low, high = (find_rank_value(finite, share) for share in (0.05, 0.95))
    empty_share = 1.0 - finite.size / runs
    return ChoiceCost(find_rank_value(costs, 0.5), find_rank_value(costs, 0.95), low, high, empty_share)


def find_rank_value(ascending: FloatArray, share: float) -> float:
    """Return the smallest entry that at least this share of them do not exceed; NaN if there are none."""
    if not ascending.size:
        return math.nan
    # Less a little, as a product may be rounded above its whole number.
    return float(ascending[max(math.ceil(share * ascending.size - 1e-9), 1) - 1])


def scale_users(histogram: ContributionHistogram, scale: float) -> ContributionHistogram:
    """Get every user ``scale`` times: numbers of users at or above each size are rounded, at least one user stays."""
    at_or_above = np.cumsum(histogram.users[::-1].astype(np.float64))[::-1]
    tails = np.rint(at_or_above * scale)
    tails[0] = max(tails[0], 1.0)
    users = tails - np.append(tails[1:], 0.0)
    return ContributionHistogram(histogram.sizes[users > 0], users[users > 0])


def simulate_curves(
    parameters: PrivateParameters,
    histogram: ContributionHistogram,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    runs: int = RUNS,
    epsilons: Sequence[float] = EPSILONS,
    scales: Sequence[float] | None = None,
) -> Copies:
    """Simulate copies at several budgets and numbers of users; the work of a job.

    Args:
        parameters: The question; its own budget of the choice does not matter over ``epsilons``.
        histogram: Rows per user, private.
        progress: Told the share done, from 0 to 1.
        should_stop: Asked before each point; True ends with what there is.
        runs: Copies at each point.
        epsilons: Budgets of the choice.
        scales: How many times every user is there; None for `list_scales` of the histogram.
    """
    over_epsilon: list[tuple[float, ChoiceCost]] = []
    over_users: list[tuple[float, ChoiceCost]] = []
    scales = list_scales(histogram) if scales is None else scales
    steps, cancelled = max(len(epsilons), len(scales)), False
    for done, (epsilon, k) in enumerate(itertools.zip_longest(epsilons, scales)):
        if cancelled := should_stop():
            break
        if epsilon is not None:
            over_epsilon.append((epsilon, simulate_cost(parameters, histogram, epsilon, runs)))
        if k is not None:
            over_users.append((k, simulate_cost(parameters, scale_users(histogram, k), None, runs)))
        progress((done + 1) / steps)
    return Copies(None, tuple(over_epsilon), tuple(over_users), cancelled)


@dataclass(frozen=True, eq=False)
class Leak:
    """How one more user moves the number chosen in the clear.

    Attributes:
        added: Rows of that user.
        with_user: The number with that user, in rows per user.
        without: The number without.
        number: What that number is: if one user does not move the number asked for, that of a sum.
    """

    added: FloatArray
    with_user: FloatArray
    without: float
    number: BoundPurpose


def compute_leak(histogram: ContributionHistogram, parameters: PrivateParameters) -> Leak:
    """Return the effect of one more user on the number chosen in the clear."""
    condition = parameters.condition
    rows = np.unique(np.rint(log_spaced(1.0, float(max(parameters.largest, 2)), 61)))
    users = np.append(histogram.users, 1)
    larger = (ContributionHistogram.from_table(np.append(histogram.sizes, np.int64(s)), users) for s in rows)
    with_user = np.array([condition.best_bound(table) for table in larger])
    without = condition.best_bound(histogram)
    if np.all(with_user == without) and parameters.purpose is not BoundPurpose.SUM:
        of_sum = PrivateParameters(parameters.epsilon, BoundPurpose.SUM, largest=parameters.largest)
        return compute_leak(histogram, of_sum)
    return Leak(rows, with_user, without, parameters.purpose)


@dataclass(frozen=True, eq=False)
class PrivateSolution:
    """Everything that words and plots are made of.

    Attributes:
        parameters: The question.
        best: The number chosen in the clear, in rows per user.
        direct: Exact cost of the direct choice.
        over_epsilon: The same over budgets of the choice.
        data: What it is computed from.
        copies: What private copies cost; the others are exact, and without simulation.
    """

    parameters: PrivateParameters
    best: float
    direct: ChoiceCost
    over_epsilon: ChoiceRegret
    data: Dataset
    copies: Copies = NO_COPIES

    @property
    def is_rank_error(self) -> bool:
        """Return True if costs are rank errors, not relative errors."""
        return self.parameters.purpose is BoundPurpose.QUANTILE


def with_usual_budget(parameters: PrivateParameters) -> PrivateParameters:
    """Return the question with the budget of the choice set to one value: what curves over that budget depend on."""
    return replace(parameters, selection_epsilon=PrivateParameters(1.0).selection_epsilon)


def solve_exactly(
    dataset: Dataset, parameters: PrivateParameters, over_epsilon: ChoiceRegret
) -> PrivateSolution:
    """Solve, and evaluate at the budget of the choice; ``over_epsilon`` from `regret_over_epsilon`."""
    best = parameters.condition.best_bound(dataset.histogram)
    direct = compute_direct_cost(parameters.choice, dataset.histogram)
    return PrivateSolution(parameters, best, direct, over_epsilon, dataset)


def solve(dataset: Dataset, parameters: PrivateParameters) -> PrivateSolution:
    """Return what either way costs, copies simulated.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.
    """
    check_users(dataset.histogram)
    over_epsilon = regret_over_epsilon(with_usual_budget(parameters), dataset.histogram)
    return replace(
        solve_exactly(dataset, parameters, over_epsilon), copies=simulate(dataset.histogram, parameters)
    )


NOT_COMPARED = ("mechanism", "delta")


def against_epsilon(dataset: Dataset, parameters: PrivateParameters) -> BoundComparison | str:
    """Get the number chosen in the clear at any epsilon of the release, and what choosing it privately costs there."""
    if parameters.purpose is BoundPurpose.QUANTILE:
        return "A quantile of the rows per user is the same at every ε of a release."
    histogram = dataset.histogram

    def compute_best(epsilon: float) -> tuple[float, float]:
        at_epsilon = replace(parameters, epsilon=epsilon)
        extra = choice.summarise_regret(at_epsilon.choice, histogram).mean
        return at_epsilon.condition.best_bound(histogram), float(extra[0, 0])

    def compute_error(epsilon: float, bounds: FloatArray) -> FloatArray:
        condition = replace(parameters, epsilon=epsilon).condition
        least_error = compute_least_error(condition, histogram)
        return np.asarray(condition.errors(histogram, np.asarray(bounds, dtype=np.float64)) / least_error)

    return BoundComparison(
        "Number chosen in the clear (rows per user)",
        "Expected extra error (share)",
        compute_best,
        compute_error,
        histogram.sizes,
        histogram.users,
        is_integer=parameters.purpose is not BoundPurpose.SMOOTH,
        caption="The second curve is what the direct choice adds on average, exact. In the table, the bound called "
        "best is chosen in the clear and leaks.",
        candidate_error_note="Error (1 = chosen in the clear)",
    )


def simulate(
    histogram: ContributionHistogram,
    parameters: PrivateParameters,
    known_curve: CostCurve = (),
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Copies:
    """Costs of copies at and over budgets of the choice; ``known_curve``: the curve, where it was simulated before."""
    cost = simulate_cost(parameters, histogram)
    if known_curve:
        return Copies(cost, known_curve)
    return replace(simulate_curves(parameters, histogram, progress, should_stop, scales=()), at_budget=cost)
