"""What choosing a number privately costs against choosing it in the clear, exactly, from its probabilities.

Regret is error(chosen) / least error - 1, in the unit of what is released: the standard error of a mean (the root
of the expected squared error), bias plus mean noise of a sum. For a quantile of the sizes there is no such error;
there it is the rank error, the share of users by which the chosen size misses the quantile. All of it is computed
from private data.

The number of users is varied by taking every user ``scale`` times: shares stay, noise matters less.

`forecast` says the same before anything was drawn: from public samples, and never from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data import samples
from dpcore.private_choice import scores
from dpcore.private_choice.choice import ChoiceProblem, distances_over, log_softmax, logits
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.scores import Condition, SizeQuantile

SCALE_RANGE = (1e-6, 1e6)
USERS = (100, 1_000, 10_000)
"""Numbers of users that it is said for: of these everyone knows the one that is nearest to theirs."""
SAMPLES = ("shop-events", "online-retail-lines", "requests-commits")
"""Public samples whose users differ as people's do: a few have most of the rows."""


@dataclass(frozen=True)
class ChoiceRegret:
    """Regret over the draws of the mechanism, as a share (0.01 is one per cent).

    Attributes:
        epsilons: Budgets of the choice, shape (e,).
        scales: How many times every user is there, shape (n,).
        mean: Expected regret, shape (n, e).
        median: Smallest regret that is not exceeded with probability 1/2, shape (n, e).
        percentile_95: The same with probability 0.95, shape (n, e).
        least: Regret of the best candidate: what the grid costs, shape (n,).
    """

    epsilons: FloatArray
    scales: FloatArray
    mean: FloatArray
    median: FloatArray
    percentile_95: FloatArray
    least: FloatArray


def bound_regrets(
    condition: Condition, histogram: ContributionHistogram, bounds: FloatArray, scale: float = 1.0
) -> FloatArray:
    """Return the regret of every bound, shape (c,)."""
    errors = condition.errors(histogram, bounds, scale)
    if isinstance(condition, SizeQuantile):
        return errors
    best = scores.best_error(condition, histogram, scale)
    # A regret below 0 by a last digit is rounding: the best error is proved by its own certificate.
    return np.maximum(errors / best - 1.0, 0.0)


def regret(
    problem: ChoiceProblem,
    histogram: ContributionHistogram,
    epsilons: npt.ArrayLike | None = None,
    scales: npt.ArrayLike = 1.0,
) -> ChoiceRegret:
    """Return the mean, median and 95th percentile of the regret, for all pairs of budget and number of users.

    Args:
        problem: The question.
        histogram: Rows per user.
        epsilons: Budgets of the choice, in `dpcore.common.checks.EPSILON_RANGE`; None for the problem's own.
        scales: How many times every user is there, in `SCALE_RANGE`; may be a fraction.

    Raises:
        InvalidInput: A figure is out of its range.
    """
    eps = np.atleast_1d(np.asarray(problem.epsilon if epsilons is None else epsilons, dtype=np.float64))
    factors = np.atleast_1d(np.asarray(scales, dtype=np.float64))
    with Problems() as problems:
        for value in eps:
            problems.between(*EPSILON_RANGE, epsilon=float(value))
        for value in factors:
            problems.between(*SCALE_RANGE, scale=float(value))
    checked_users(histogram, float(factors.max()))
    far = distances_over(problem, histogram, eps, [float(k) for k in factors])
    rows = [
        _at_scale(problem, histogram, steps, eps, float(k)) for steps, k in zip(far, factors, strict=True)
    ]
    mean, median, high, least_error = (np.array(column) for column in zip(*rows, strict=True))
    return ChoiceRegret(eps, factors, mean, median, high, least_error)


def _at_scale(
    problem: ChoiceProblem,
    histogram: ContributionHistogram,
    distances: IntArray,
    epsilons: FloatArray,
    scale: float,
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    costs = bound_regrets(problem.condition, histogram, problem.candidates, scale)
    chances = np.exp(log_softmax(logits(problem, distances, epsilons)))
    # In the order of what candidates cost, their chances add up to the law of the regret.
    order = np.argsort(costs)
    cumulated = np.cumsum(chances[:, order], axis=1)
    return (
        chances @ costs,
        costs[order][_first(cumulated, 0.5)],
        costs[order][_first(cumulated, 0.95)],
        float(costs.min()),
    )


def _first(cumulated: FloatArray, chance: float) -> npt.NDArray[np.intp]:
    """Index of the first entry of each row that reaches ``chance``; a sum may fall short of 1 by rounding."""
    return np.asarray(np.argmax(cumulated >= min(chance, 1.0 - 1e-12), axis=1))


@dataclass(frozen=True)
class Forecast:
    """What a draw costs on public samples.

    Attributes:
        users: How many users they are scaled to; 0 where they are scaled to a number of rows.
        extra: What a draw adds to the error on average, as a share of the error of the best bound; the largest over
            the samples. For a quantile of the rows per user: the rank error, as a share of the users.
    """

    users: int
    extra: float


def forecast(
    problem: ChoiceProblem, rows: int | None = None, users: Sequence[int] = USERS
) -> tuple[Forecast, ...]:
    """Return what a selection costs if nothing is known but roughly how many users there are.

    It reads public samples alone, so that it says nothing of private data.

    Args:
        problem: The selection; its variance of a value is the worst case, or known from elsewhere.
        rows: Of a learner, the public number of rows; None for other bounds.
        users: Numbers of users; of a learner they are as many as its rows take.

    Returns:
        One forecast for each of them. Average costs are exact, by the probabilities of the exponential mechanism.

    Raises:
        InvalidInput: A number of users is beyond what samples are scaled to.
    """
    costs = []
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        scales = np.asarray(users, dtype=np.float64) / histogram.num_users
        if rows is not None:
            # Beyond what samples are scaled to, nothing changes any more.
            scales = np.clip([rows / histogram.num_rows], *SCALE_RANGE)
        costs.append(regret(problem, histogram, None, scales).mean[:, 0])
    worst = np.max(costs, axis=0)
    return tuple(Forecast(n, float(extra)) for n, extra in zip((0,) if rows else users, worst, strict=True))
