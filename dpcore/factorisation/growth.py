"""How many users would be needed until a private factorisation beats DP item means with users' own offsets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray
from dpcore.factorisation import baselines
from dpcore.factorisation.fit import fit_private
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.measures import buckets_of, measure
from dpcore.factorisation.study import SCHEMES, Kind, Study


@dataclass(frozen=True)
class Growth:
    """What is simulated.

    Attributes:
        population: Of whom there are more and more; its number of users is not read.
        users: Numbers of users, ascending, at least two.
        study: One epsilon, and how models are fitted; each of its seeds draws its own ratings.
        kind: The private factorisation.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    population: GeneratedRatings
    users: tuple[int, ...]
    study: Study
    kind: Kind = Kind.ADAPTIVE

    def __post_init__(self) -> None:
        with Problems() as problems:
            if len(self.users) < 2 or any(a >= b for a, b in zip(self.users, self.users[1:], strict=False)):
                problems.add("users must be at least two ascending numbers")
            if len(self.study.epsilons) != 1:
                problems.add("growth is simulated at one epsilon")
            if self.kind not in SCHEMES:
                problems.add("kind must be a private factorisation")
        for number in self.users:  # It says itself what does not fit.
            replace(self.population, num_users=number)


@dataclass(frozen=True, eq=False)
class GrowthResult:
    """Test errors at each number of users.

    Attributes:
        growth: What was simulated.
        factorisation: RMSE of the private factorisation, shape (users, seeds); NaN where not reached.
        item_means: RMSE of DP item means with users' own offsets, likewise.
        finished: Whether all was reached.
    """

    growth: Growth
    factorisation: FloatArray
    item_means: FloatArray
    finished: bool

    @property
    def advantage(self) -> FloatArray:
        """By how much the factorisation's error is below that of item means, shape (users, seeds)."""
        return np.asarray(self.item_means - self.factorisation)

    def crossings(self) -> FloatArray:
        """Users from which the factorisation is better, for each seed that is complete, shape (complete seeds,).

        Between two numbers of users it is interpolated, linearly in their logarithm. Infinite where it is still worse
        at the largest number; the smallest number where it is better from there on. Where it gets worse again, the
        last crossing counts.
        """
        complete = np.isfinite(self.advantage).all(axis=0)
        logs = np.log(self.growth.users)
        found = []
        for gain in self.advantage[:, complete].T:
            if gain[-1] <= 0.0:
                found.append(math.inf)
            elif (gain > 0.0).all():
                found.append(float(self.growth.users[0]))
            else:
                low = int(np.flatnonzero(gain <= 0.0)[-1])
                share = -gain[low] / (gain[low + 1] - gain[low])
                found.append(float(np.exp(logs[low] + share * (logs[low + 1] - logs[low]))))
        return np.array(found)


class Tell(Protocol):
    """How growth reports."""

    def __call__(self, share: float, so_far: GrowthResult | None = None) -> None:
        """Told the share of users done, and what is there so far."""


def run(growth: Growth, tell: Tell | None = None, should_stop: ShouldStop = never) -> GrowthResult:
    """Draw ratings, fit both and measure them, for each seed and number of users.

    Args:
        growth: What to simulate.
        tell: Told after each number of users.
        should_stop: Asked before each; where it says yes, what is finished is returned.

    Returns:
        Test errors of both at each number of users, for every seed that was reached.

    Raises:
        InvalidInput: Some number of users draws no ratings to train on or to test.
    """
    shape = (len(growth.users), growth.study.repeats)
    errors = np.full((2, *shape), np.nan)
    done, whole = 0, sum(growth.users) * growth.study.repeats
    for seed in range(growth.study.repeats):
        for place, number in enumerate(growth.users):
            if should_stop():
                return GrowthResult(growth, errors[0], errors[1], finished=False)
            found = _errors(growth, number, seed, should_stop)
            if found is None:
                return GrowthResult(growth, errors[0], errors[1], finished=False)
            errors[:, place, seed] = found
            done += number
            if tell is not None:
                so_far = errors.copy()
                tell(done / whole, GrowthResult(growth, so_far[0], so_far[1], finished=False))
    return GrowthResult(growth, errors[0], errors[1], finished=True)


def _errors(growth: Growth, users: int, seed: int, should_stop: ShouldStop) -> tuple[float, float] | None:
    """RMSE of the factorisation and of item means; None where it was stopped."""
    study, scheme = growth.study, SCHEMES[growth.kind]
    for_ratings, for_split, for_noise = np.random.SeedSequence([study.seed, seed, users]).spawn(3)
    ratings = replace(growth.population, num_users=users).draw(np.random.default_rng(for_ratings))
    train, test = ratings.split(study.test_share, np.random.default_rng(for_split))
    noise = int(for_noise.generate_state(1)[0])
    spending = study.spending(study.epsilons[0])
    fitted = fit_private(
        train, study.settings, study.limits, scheme, spending, study.exponent, study.ridge_to_noise, noise,
        should_stop=should_stop, steps=study.steps,
    )  # fmt: skip
    if fitted is None:
        return None
    means = baselines.private_item_mean(
        train,
        study.limits,
        spending,
        baselines.exponent_at(study.epsilons[0], study.exponent),
        study.ridge_to_noise,
        noise,
    )
    buckets = buckets_of(train.item_counts)
    models = (fitted.model, baselines.with_own_offsets(means.model))
    ours, theirs = (float(measure(model, train, test, buckets, False).rmse[0]) for model in models)
    return ours, theirs
