"""Private copy and direct choice side by side: what either costs against choosing in the clear.

The direct choice's figures are exact; the copy's are simulated, with NumPy's noise and a fixed seed. All of it is
computed from the data in use, and as private as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced
from dpcore.private_choice import choice_regret, regret
from dpcore.private_choice.choice import ChoiceProblem, probabilities
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.fixed_point import MAX_TOTAL_USERS
from dpcore.private_choice.parameters import PrivateParameters, Wanted

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


def question(parameters: PrivateParameters, truth: ContributionHistogram) -> regret.Question:
    """Return the same number, chosen on a histogram; with the same errors as the direct choice."""
    condition = parameters.condition
    return regret.Question(
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
    (regrets,) = regret.simulate([copy_question], parameters.copy_at(budget), runs)
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
