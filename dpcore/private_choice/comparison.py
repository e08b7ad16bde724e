"""What choosing a bound on a private copy costs against choosing it in the clear, over simulated copies.

The noise is NumPy's and seeded: a simulation for looking at, not a release. What it gives is computed from the
private data, and as private as they are.

Private copy and direct choice side by side: what either costs against choosing in the clear.

The direct choice's figures are exact; the copy's are simulated, with NumPy's noise and a fixed seed. All of it is
computed from the data in use, and as private as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import mean, total
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.private_choice import choice_regret
from dpcore.private_choice.choice import ChoiceProblem, probabilities
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.fixed_point import MAX_TOTAL_USERS
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.private_choice.private_histogram import (
    CopyNoise,
    Fit,
    PrivateCopyParameters,
    consistent_users,
    fitted,
)

MAX_RUNS = 100_000
_BLOCK = 25


@dataclass(frozen=True)
class Question:
    """A bound that is wanted: how it is chosen on a histogram, and what it costs on the true one.

    Attributes:
        name: In words.
        truth: Rows per user, private.
        choose: Histogram to the best bound on it.
        errors: Bounds to their errors on the true histogram, of the same shape: root mean squared error for a
            mean, the problem's own measure for a sum.
    """

    name: str
    truth: ContributionHistogram
    choose: Callable[[ContributionHistogram], float]
    errors: Callable[[FloatArray], FloatArray]


def smooth_question(problem: mean.MeanProblem) -> Question:
    """Return the threshold of the best smooth weights for a mean (also with private counts)."""
    return Question(
        "Mean, smooth weights",
        problem.histogram,
        lambda copy: mean.best_smooth(replace(problem, histogram=copy)).threshold,
        lambda bounds: np.sqrt(mean.smooth_variance(problem, bounds)),
    )


def cap_question(problem: mean.MeanProblem) -> Question:
    """Return the best cap for a mean (also with private counts)."""
    return Question(
        "Mean",
        problem.histogram,
        lambda copy: float(mean.best_cap(replace(problem, histogram=copy)).max_contributions),
        lambda bounds: np.sqrt(mean.capped_variance(problem, bounds)),
    )


def total_question(problem: total.TotalProblem, histogram: ContributionHistogram) -> Question:
    """Return the best bound for a count of rows.

    Args:
        problem: Its amounts are replaced by rows per user.
        histogram: Rows per user.
    """
    own_problem = replace(problem, amounts=Amounts.from_histogram(histogram))
    return Question(
        "Sum",
        histogram,
        lambda copy: total.optimal_bound(replace(own_problem, amounts=Amounts.from_histogram(copy))),
        lambda bounds: total.measured(own_problem, bounds),
    )


@dataclass(frozen=True, eq=False)
class RegretDistribution:
    """Regrets of one question over simulated copies.

    Attributes:
        name: Of the question.
        regrets: error(bound chosen on the copy) / error(bound chosen in the clear) - 1, both on the true data;
            ascending, shape (runs,), infinite where the copy was empty.
        bounds: The bounds chosen, ascending, shape (runs,); NaN where the copy was empty.
        best: The bound chosen in the clear.
        cancelled: Whether the simulation was stopped early.
    """

    name: str
    regrets: FloatArray
    bounds: FloatArray
    best: float
    cancelled: bool

    @property
    def runs(self) -> int:
        """Return the copies that were made."""
        return int(self.regrets.size)

    @property
    def empty_share(self) -> float:
        """Return the share of copies in which no user was left."""
        return float(np.mean(np.isinf(self.regrets))) if self.runs else math.nan

    @property
    def median(self) -> float:
        """Median regret."""
        return self.quantile(0.5)

    @property
    def high(self) -> float:
        """Return the 95th percentile of regret."""
        return self.quantile(0.95)

    def quantile(self, share: float) -> float:
        """Return the smallest regret that at least this share of copies do not exceed; NaN without copies."""
        if not self.runs:
            return math.nan
        # 0.95 * 20 is a rounding below 19: it must not become 18, nor 19.000000000000004 become 20.
        rank = math.ceil(share * self.runs * (1.0 - 2.0**-50))
        return float(self.regrets[min(max(rank, 1), self.runs) - 1])

    def interval(self, share: float, confidence: float = 0.95) -> tuple[float, float]:
        """Interval for the quantile over all possible copies, from order statistics: no distribution is assumed.

        Returns:
            (low, high) that holds it with probability at least ``confidence``; the ends are 0 and infinity
            where there are too few copies to tell.

        Source: David, Nagaraja 2003, Order Statistics, section 7.1: the number of draws below a quantile is
            binomial.
        """
        from scipy.stats import binom

        if not self.runs:
            return 0.0, math.inf
        outside = (1.0 - confidence) / 2.0
        low = int(binom.ppf(outside, self.runs, share))
        high = int(binom.ppf(1.0 - outside, self.runs, share)) + 1
        return (
            float(self.regrets[low - 1]) if low >= 1 else 0.0,
            float(self.regrets[high - 1]) if high <= self.runs else math.inf,
        )


def simulate(
    questions: Sequence[Question],
    parameters: PrivateCopyParameters,
    runs: int = 300,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    fit: Fit = Fit.EXTENDED,
) -> tuple[RegretDistribution, ...]:
    """Make copies, choose on each, and compare on the true data.

    Args:
        questions: All on one histogram; the same copies serve all.
        parameters: Of the copies.
        runs: 1 to `MAX_RUNS`; 300 take about 0.3 seconds on 4,372 users for a mean's two bounds.
        seed: Seed of NumPy's generator.
        progress: Told the share done, from 0 to 1.
        should_stop: Asked between blocks; True ends it with what there is.
        fit: Post-processing, to compare; releases use the default.

    Returns:
        One distribution per question.

    Raises:
        InvalidInput: No question, questions on different histograms, or runs out of range.
    """
    _check(questions, runs)
    counts = parameters.bins.counts(questions[0].truth)
    shape, generator = parameters.noise_shape, np.random.default_rng(seed)
    bounds = np.full((len(questions), runs), math.nan)
    done, cancelled = 0, False
    while done < runs and not cancelled:
        size = min(_BLOCK, runs - done)
        noise = simulated_noise(parameters.noise, parameters.scale, (size, counts.size), generator)
        for k in range(size):
            copy = fitted(
                consistent_users(counts + noise[k], shape, parameters.bins.lower, fit), parameters.bins
            )
            if copy is not None:
                bounds[:, done + k] = [question.choose(copy) for question in questions]
        done += size
        progress(done / runs)
        cancelled = done < runs and should_stop()
    return tuple(_distribution(item, bounds[k, :done], cancelled) for k, item in enumerate(questions))


def _check(questions: Sequence[Question], runs: int) -> None:
    with Problems() as problems:
        if not questions:
            problems.add("there is no question to simulate")
        elif any(question.truth != questions[0].truth for question in questions):
            problems.add("all questions must be about one histogram")
        problems.whole(1, MAX_RUNS, runs=runs)


def _distribution(question: Question, bounds: FloatArray, cancelled: bool) -> RegretDistribution:
    best = question.choose(question.truth)
    least_error = float(question.errors(np.array([best]))[0])
    regrets = np.full(bounds.shape, math.inf)
    finite = np.isfinite(bounds)
    if np.any(finite):
        regrets[finite] = relative_regret(question.errors(bounds[finite]), least_error)
    return RegretDistribution(question.name, np.sort(regrets), np.sort(bounds), best, cancelled)


def relative_regret(errors: npt.ArrayLike, best: float) -> FloatArray:
    """Return errors / best - 1; where the best error is 0, 0 for errors that are 0 too and infinity for others."""
    regrets = np.asarray(errors, dtype=np.float64)
    if best > 0.0:
        return np.asarray(regrets / best - 1.0)
    return np.where(regrets > 0.0, math.inf, 0.0)


def simulated_noise(
    noise: CopyNoise, scale: float, shape: tuple[int, ...], generator: np.random.Generator
) -> IntArray:
    """Whole noise from NumPy, for simulation only.

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


RUNS = 200
"""Simulated copies behind one figure: the median is then good to about 4 percentage points of rank."""
EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class CopyCost:
    """What choosing on a private copy costs, over simulated copies; shares, infinite where no copy had users.

    Attributes:
        median: Median regret (rank error for a quantile).
        percentile_95: Its 95th percentile.
        empty_share: Share of copies in which no user was left.
        low: 5th percentile of the bounds chosen, in rows per user; NaN where no copy had users.
        high: 95th percentile.
        runs: Copies simulated.
    """

    median: float
    percentile_95: float
    empty_share: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, eq=False)
class DirectCost:
    """What the direct choice costs, exactly.

    Attributes:
        mean: Expected regret (rank error for a quantile).
        median: Its median.
        percentile_95: Its 95th percentile.
        low: 5th percentile of the number drawn, in rows per user.
        high: 95th percentile.
    """

    mean: float
    median: float
    percentile_95: float
    low: float
    high: float


def direct_cost(problem: ChoiceProblem, histogram: ContributionHistogram) -> DirectCost:
    """Return the exact costs and the range of what is drawn."""
    costs = choice_regret.regret(problem, histogram)
    cumulated = np.cumsum(probabilities(problem, histogram))
    low, high = (
        float(problem.candidates[min(int(np.searchsorted(cumulated, share)), cumulated.size - 1)])
        for share in (0.05, 0.95)
    )
    return DirectCost(
        float(costs.mean[0, 0]), float(costs.median[0, 0]), float(costs.percentile_95[0, 0]), low, high
    )


def scales_for(histogram: ContributionHistogram) -> tuple[float, ...]:
    """Return those of `SCALES` that keep the number of users within what can be added up; at least the first three."""
    limit = MAX_TOTAL_USERS / histogram.num_users
    return tuple(k for k in SCALES if k <= max(limit, 1.0))


def direct_over_epsilon(parameters: PrivateParameters, histogram: ContributionHistogram) -> ChoiceRegret:
    """Return the exact regret over budgets of the choice, whatever the budget of ``parameters`` is."""
    return choice_regret.regret(parameters.choice, histogram, log_spaced(EPSILONS[0], EPSILONS[-1], 61))


def direct_over_users(parameters: PrivateParameters, histogram: ContributionHistogram) -> ChoiceRegret:
    """Return the exact regret over numbers of users: each is taken so many times."""
    scales = log_spaced(SCALES[0], scales_for(histogram)[-1], 19, extra=[1.0])
    return choice_regret.regret(parameters.choice, histogram, None, scales)


def question(parameters: PrivateParameters, truth: ContributionHistogram) -> Question:
    """Return the same number, chosen on a histogram; with the same errors as the direct choice."""
    condition = parameters.condition
    return Question(
        parameters.wanted.value,
        truth,
        lambda copy: condition.best_bound(copy),
        lambda bounds: condition.errors(truth, np.maximum(bounds, 1e-12)),
    )


def copy_cost(
    parameters: PrivateParameters,
    truth: ContributionHistogram,
    epsilon_choice: float | None = None,
    runs: int = RUNS,
) -> CopyCost:
    """Return the simulated cost of choosing on a private copy, at the parameters' budget or another."""
    copy_question = question(parameters, truth)
    budget = parameters.epsilon_choice if epsilon_choice is None else epsilon_choice
    (regrets,) = simulate([copy_question], parameters.copy_at(budget), runs)
    finite = regrets.bounds[np.isfinite(regrets.bounds)]
    costs = regrets.regrets
    if parameters.wanted is Wanted.QUANTILE:  # A rank error, as it is: nothing to divide by.
        costs = np.sort(
            np.append(copy_question.errors(finite), np.full(regrets.runs - finite.size, math.inf))
        )
    low, high = (_ranked(finite, share) for share in (0.05, 0.95))
    return CopyCost(
        _ranked(costs, 0.5), _ranked(costs, 0.95), 1.0 - finite.size / regrets.runs, low, high, regrets.runs
    )


def _ranked(ascending: FloatArray, share: float) -> float:
    """Return the smallest entry that at least this share of them do not exceed; NaN where there are none."""
    if not ascending.size:
        return math.nan
    # Less a little, as a product may be rounded above its whole number.
    return float(ascending[max(math.ceil(share * ascending.size - 1e-9), 1) - 1])


def scaled(histogram: ContributionHistogram, scale: float) -> ContributionHistogram:
    """Get every user ``scale`` times: numbers of users at or above each size are rounded, at least one user stays."""
    at_or_above = np.cumsum(histogram.users[::-1].astype(np.float64))[::-1]
    tails = np.rint(at_or_above * scale)
    tails[0] = max(tails[0], 1.0)
    users = tails - np.append(tails[1:], 0.0)
    return ContributionHistogram(histogram.sizes[users > 0], users[users > 0])


@dataclass(frozen=True)
class CopyCurves:
    """Simulated costs over `EPSILONS` and over `SCALES`; shorter where it was stopped early.

    Attributes:
        over_epsilon: (budget of the choice, cost), as far as it came.
        over_users: (how many times every user is there, cost), as far as it came.
        cancelled: Whether it was stopped.
    """

    over_epsilon: tuple[tuple[float, CopyCost], ...]
    over_users: tuple[tuple[float, CopyCost], ...]
    cancelled: bool


def copy_curves(
    parameters: PrivateParameters,
    histogram: ContributionHistogram,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    runs: int = RUNS,
    epsilons: Sequence[float] = EPSILONS,
    scales: Sequence[float] | None = None,
) -> CopyCurves:
    """Simulate copies at several budgets and numbers of users; the work of a job.

    Args:
        parameters: The question; its own budget of the choice does not matter over ``epsilons``.
        histogram: Rows per user, private.
        progress: Told the share done, from 0 to 1.
        should_stop: Asked before each point; True ends with what there is.
        runs: Copies at each point.
        epsilons: Budgets of the choice.
        scales: How many times every user is there; None for `scales_for` the histogram.
    """
    over_epsilon: list[tuple[float, CopyCost]] = []
    over_users: list[tuple[float, CopyCost]] = []
    scales = scales_for(histogram) if scales is None else scales
    steps = max(len(epsilons), len(scales))
    for done, (epsilon, k) in enumerate(itertools.zip_longest(epsilons, scales)):
        if should_stop():
            return CopyCurves(tuple(over_epsilon), tuple(over_users), True)
        if epsilon is not None:
            over_epsilon.append((epsilon, copy_cost(parameters, histogram, epsilon, runs)))
        if k is not None:
            over_users.append((k, copy_cost(parameters, scaled(histogram, k), None, runs)))
        progress((done + 1) / steps)
    return CopyCurves(tuple(over_epsilon), tuple(over_users), False)


def bound_with_one_more(
    parameters: PrivateParameters, histogram: ContributionHistogram
) -> tuple[FloatArray, FloatArray, float]:
    """Return how the number chosen in the clear moves when one user is added.

    Returns:
        (rows of that user, the number chosen with them, the number chosen without), all in rows per user.
    """
    condition = parameters.condition
    rows = np.unique(np.rint(log_spaced(1.0, float(max(parameters.largest, 2)), 61)))
    bounds = [
        condition.best_bound(
            ContributionHistogram.from_table(
                np.append(histogram.sizes, np.int64(s)), np.append(histogram.users, 1)
            )
        )
        for s in rows
    ]
    return rows, np.array(bounds), condition.best_bound(histogram)
