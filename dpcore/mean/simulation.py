"""Simulation of a mean: with private counts, beside the delta-method error of `dpcore.mean.private_counts`, or public.

Noise comes from NumPy, whose floating-point Laplace is fit for this and not for a release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.privacy import LaplaceNoise
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.mean.counts_only import Growth
from dpcore.mean.private_counts import PrivateCountsProblem, Release
from dpcore.mean.public_counts import MeanProblem, capped_error, growth, smooth_error

MAX_RUNS = 1_000_000
BINOMIAL_LIMIT = 10**15
"""Rows above which a binomial count is drawn as normal (Berry-Esseen: off by 0.5 / sqrt(rows p (1 - p)))."""
_CELLS = 4_000_000


@dataclass(frozen=True)
class MeanSimulation:
    """Simulation of the whole mechanism (NumPy noise): for looking at, not a release.

    Attributes:
        mean_squared_error: Mean of (release - mu)^2, in the values' unit squared; NaN where nothing was run.
        standard_error: Estimated standard deviation of that mean.
        bias: Mean of release - mu, in the values' unit.
        runs: Runs that were made.
        cancelled: Whether it was stopped before all were made.
    """

    mean_squared_error: float
    standard_error: float
    bias: float
    runs: int
    cancelled: bool


@dataclass
class Moments:
    """Running count, mean and sum of squared distances of batches (Chan, Golub and LeVeque 1979)."""

    count: int = 0
    mean: float = math.nan
    distance: float = 0.0

    def add(self, batch: FloatArray) -> None:
        """Take in one more batch."""
        n, m = self.count + batch.size, float(batch.mean())
        shift = m - self.mean if self.count else 0.0
        self.distance += float(((batch - m) ** 2).sum()) + shift**2 * self.count * batch.size / n
        self.mean = m if not self.count else self.mean + shift * batch.size / n
        self.count = n

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return math.sqrt(self.distance / (self.count - 1) / self.count) if self.count > 1 else math.nan


def simulate(
    problem: PrivateCountsProblem,
    bound: float,
    capped: bool = False,
    runs: int = 10_000,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> MeanSimulation:
    """Draw rows and noise, release, clamp to [0, B]; B/2 where the noisy sum of weights is not positive.

    Where users differ or the target is the mean of a table, the weighted sum before noise is drawn as normal, with the
    mean and the variance of the model. Else rows are independent and take two values,
    mu - sigma sqrt(p / (1 - p)) and mu + sigma sqrt((1 - p) / p) with p = mu / B the probability of the larger: mean
    and variance are the problem's, and both lie in [0, B].

    Args:
        problem: The question; ``value_mean`` must be given, strictly inside (0, B), and ``value_variance`` be
            at most mu (B - mu), the most that values in [0, B] with that mean can vary.
        bound: h > 0 in rows per user; whole where ``capped``.
        capped: A cap, instead of smooth weights.
        runs: 2 to `MAX_RUNS`.
        seed: Seed of NumPy's generator.
        progress: Told the share done, from 0 to 1.
        should_stop: Asked between blocks of runs; True ends the simulation with what there is.

    Raises:
        InvalidInput: A figure is out of its range; all problems at once.
    """
    _check_for_simulation(problem, bound, capped, runs)
    generator = np.random.default_rng(seed)
    block = min(max(1, _CELLS // problem.histogram.sizes.size), 50_000, runs)
    squares, off = Moments(), Moments()
    while squares.count < runs and not should_stop():
        missed = misses(problem, bound, capped, min(block, runs - squares.count), generator)
        squares.add(missed**2)
        off.add(missed)
        progress(squares.count / runs)
    return MeanSimulation(squares.mean, squares.standard_error, off.mean, squares.count, squares.count < runs)


def misses(
    problem: MeanProblem, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> FloatArray:
    """Release minus true mean in so many runs, shape (runs,); arguments and values as of `simulate`.

    With public counts the mean of the values is B/2, and nothing is clamped.
    """
    deviations, weight = _deviations(problem, bound, capped, runs, generator)
    shift = 0.0 if problem.table is None else problem.table.clamping
    if isinstance(problem, PrivateCountsProblem):
        mu = _mean_of(problem)
        released = _released(problem, bound, mu * weight + deviations, weight, generator)
        return np.asarray(np.clip(released, 0.0, problem.value_bound) - mu + shift)
    scale = LaplaceNoise.for_release(problem.value_bound * bound, problem.epsilon).scale
    return np.asarray((deviations + generator.laplace(0.0, scale, runs)) / weight + shift)


def _mean_of(problem: MeanProblem) -> float:
    mu = problem.value_mean if isinstance(problem, PrivateCountsProblem) else problem.value_bound / 2.0
    assert mu is not None
    return mu


@dataclass(frozen=True)
class Setup:
    """One mechanism to simulate: the arguments of `simulate`."""

    problem: PrivateCountsProblem
    bound: float
    capped: bool


def simulate_all(
    setups: Sequence[Setup],
    runs: int,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> tuple[tuple[Setup, MeanSimulation], ...]:
    """`simulate` for several mechanisms, each with fresh draws; those with runs, in the order given.

    Stopped early, the one at work keeps the runs it has made and those after it are left out.

    Raises:
        InvalidInput: As `simulate`.
    """
    found: list[tuple[Setup, MeanSimulation]] = []
    for k, setup in enumerate(setups):

        def tell(share: float, before: int = k) -> None:
            progress((before + share) / len(setups))

        own = seed + k
        one = simulate(setup.problem, setup.bound, setup.capped, runs, own, tell, should_stop)
        if one.runs > 1:
            found.append((setup, one))
        if one.cancelled:
            break
    return tuple(found)


def value_mean_for(problem: PrivateCountsProblem, value_mean: float | None = None) -> PrivateCountsProblem:
    """The problem as `simulate` needs it: with a mean, and no more variance than that mean allows.

    Args:
        problem: The question.
        value_mean: mu strictly inside (0, B); None for the problem's own where that lies inside, else B/2.
    """
    big_b = problem.value_bound
    own = problem.value_mean if problem.value_mean is not None and 0.0 < problem.value_mean < big_b else None
    mu = value_mean if value_mean is not None else own if own is not None else big_b / 2.0
    variance = min(problem.value_variance, mu * (big_b - mu))
    return replace(problem, value_mean=mu, value_variance=variance)


def _check_for_simulation(problem: PrivateCountsProblem, bound: float, capped: bool, runs: int) -> None:
    with Problems() as problems:
        problems.whole(2, MAX_RUNS, runs=runs)
        if capped:
            problems.whole(1, 10**12, bound=bound)
        else:
            problems.positive(bound=bound)
        mu, big_b = problem.value_mean, problem.value_bound
        if mu is None or not 0.0 < mu < big_b:
            problems.add("a simulation needs value_mean strictly between 0 and value_bound")
        elif problem.value_variance > mu * (big_b - mu) * (1.0 + 1e-12):
            most = wording.entered(mu * (big_b - mu))
            values = f"values in [0, {wording.entered(big_b)}] with mean {wording.entered(mu)}"
            given = wording.entered(problem.value_variance)
            problems.add(f"{values} cannot vary by more than {most}; value_variance is {given}")


def _deviations(
    problem: MeanProblem, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> tuple[FloatArray, float]:
    """The sum of w (y - mu) over fresh rows, shape (runs,), and n_h = sum of w; one draw per distinct size."""
    mu = _mean_of(problem)
    if problem.model is not None:
        return _deviations_of_model(problem, mu, bound, capped, runs, generator)
    p = mu / problem.value_bound
    sigma = math.sqrt(problem.value_variance)
    low, high = mu - sigma * math.sqrt(p / (1.0 - p)), mu + sigma * math.sqrt((1.0 - p) / p)
    sizes, users = problem.histogram.sizes.astype(np.float64), problem.histogram.users.astype(np.float64)
    kept = np.minimum(bound, sizes)
    # Rows that weigh the same are one binomial draw: under a cap all that are kept, else all of users of one size.
    rows = np.array([np.sum(users * kept)]) if capped else users * sizes
    weight = np.ones(1) if capped else kept / sizes
    few = rows <= BINOMIAL_LIMIT
    ones = np.empty((runs, rows.size))
    ones[:, few] = generator.binomial(rows[few].astype(np.int64), p, size=(runs, int(few.sum())))
    many = rows[~few]
    ones[:, ~few] = generator.normal(many * p, np.sqrt(many * p * (1.0 - p)), size=(runs, many.size))
    # Not the sums themselves: nothing cancels when rows are many.
    return (high - low) * ((ones - rows * p) @ weight), float(weight @ rows)


def _deviations_of_model(
    problem: MeanProblem, mu: float, bound: float, capped: bool, runs: int, generator: np.random.Generator
) -> tuple[FloatArray, float]:
    """The same where the problem's own model says how far the weighted mean lies from the target."""
    error = (capped_error if capped else smooth_error)(problem, bound)
    sizes, users = problem.histogram.sizes.astype(np.float64), problem.histogram.users.astype(np.float64)
    grows = Growth() if capped else growth(problem, bound)
    weight = float(grows.in_rows(bound, sizes) @ users)
    middle = mu + float(error.shift)
    if problem.table is not None:
        # Of the clamped values alone: what clamping shifts is added at the end, by `misses`.
        middle -= problem.table.clamping
    drawn = generator.normal(middle, math.sqrt(float(error.sampling_variance)), runs)
    return (np.clip(drawn, 0.0, problem.value_bound) - mu) * weight, weight


def _released(
    problem: PrivateCountsProblem,
    bound: float,
    sums: FloatArray,
    weight: float,
    generator: np.random.Generator,
) -> FloatArray:
    """The mean computed from the noisy statistics, not yet clamped."""
    big_b, h, eps, runs = problem.value_bound, float(bound), problem.epsilon, sums.size
    if problem.release is Release.PAIR:
        scale = LaplaceNoise.for_release(big_b * h, eps).scale
        p = sums + generator.laplace(0.0, scale, runs)
        top, bottom = big_b * p, p + (big_b * weight - sums) + generator.laplace(0.0, scale, runs)
        offset = 0.0
    else:
        offset = big_b / 2.0 if problem.release is Release.CENTRED_SPLIT else 0.0
        # How far a row's value may lie from the offset: B/2 where that is the middle of the range, else B.
        largest = max(big_b - offset, offset)
        top = sums - offset * weight
        top = top + generator.laplace(0.0, LaplaceNoise.for_release(largest * h, eps / 2.0).scale, runs)
        bottom = weight + generator.laplace(0.0, LaplaceNoise.for_release(h, eps / 2.0).scale, runs)
    usable = bottom > 0.0
    ratio = np.divide(top, bottom, out=np.full(runs, big_b / 2.0 - offset), where=usable)
    return np.asarray(offset + ratio)
