"""A Monte-Carlo check of the formulas: both mechanisms run many times on one instance.

A simulation, not a release. Values are B / 2 - sigma or B / 2 + sigma with equal chance: independent, in [0,
B], of variance exactly sigma^2. All rows of one size weigh the same, so their sum is binomial and one run
costs what the distinct sizes cost; see `benchmarks/_mean_simulation.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from benchmarks._mean_simulation import Moments, misses
from dpcore import mean
from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.mean import MeanProblem

LABEL = "simulation with made-up values"
MIN_RUNS = 500
"""Fewest runs for which the interval was found to hold its rate (between 93 % and 96 % at 95 %)."""
_BLOCK = 200_000  # Random numbers per block: a few MB, some 10 ms.


@dataclass(frozen=True)
class Simulation:
    """The question: do the formulas hold?

    Attributes:
        problem: The instance; sigma may not exceed B / 2, as no values in [0, B] vary more.
        threshold: Of the smooth weights; by default the best.
        max_contributions: The cap; by default the best.
        runs: How often each mechanism runs, 500 to 1e8.
        confidence: Of the intervals, 0.5 to 0.9999.
        seed: Seed of the random numbers.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    problem: MeanProblem
    threshold: float | None = None
    max_contributions: int | None = None
    runs: int = 20_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.problem.value_variance > self.problem.value_bound**2 / 4.0:
                problems.add(
                    f"value_variance {wording.entered(self.problem.value_variance)} exceeds value_bound²/4, the most "
                    "that values in [0, B] can vary",
                    remedy="Lower value_variance, or raise value_bound and epsilon together",
                )
            largest = self.problem.histogram.sizes.astype(np.float64) * self.problem.histogram.users
            if largest.sum() > 2.0**62:
                problems.add("the instance has more than 4.6e18 rows, too many for whole random numbers")
            if self.threshold is not None:
                problems.positive(threshold=self.threshold)
            if self.max_contributions is not None:
                problems.whole(1, 10**12, max_contributions=self.max_contributions)
            problems.whole(MIN_RUNS, 10**8, runs=self.runs)
            problems.between(0.5, 0.9999, confidence=self.confidence)
            problems.whole(0, 2**63 - 1, seed=self.seed)


@dataclass(frozen=True)
class Estimate:
    """One mechanism's simulated expected squared error beside its formula, (unit of the values)^2.

    Attributes:
        variance: Mean squared distance of the outputs from the true mean B / 2.
        low: Lower end of the confidence interval.
        high: Upper end of the confidence interval.
        formula: v(h) or v'(h).
    """

    variance: float
    low: float
    high: float
    formula: float

    @property
    def covers(self) -> bool:
        """Whether the interval contains the formula."""
        return self.low <= self.formula <= self.high


@dataclass(frozen=True)
class SimulationResult:
    """What came out.

    Attributes:
        smooth: The smooth weights at ``threshold``.
        capped: The cap at ``max_contributions``.
        threshold: Threshold that was used, in rows per user.
        max_contributions: Cap that was used, in rows per user.
        runs: Runs done.
        cancelled: Whether it was stopped early.
        ended: How it ended, a sentence.
        label: What the numbers are: `LABEL`.
    """

    smooth: Estimate
    capped: Estimate
    threshold: float
    max_contributions: int
    runs: int
    cancelled: bool
    ended: str
    label: str = LABEL


def _estimate(squares: Moments, formula: float, confidence: float) -> Estimate:
    """Interval for the mean of squared errors from their own spread, on a log scale.

    It makes no use of normal kurtosis, so Laplace's does not break it as it breaks chi-squared intervals;
    the log scale takes out most of the skewness of squares.
    """
    mean, z = squares.mean, NormalDist().inv_cdf(0.5 + confidence / 2.0)
    spread = math.exp(z * squares.standard_error / mean) if mean > 0.0 else 1.0
    return Estimate(mean, mean / spread, mean * spread, formula)


def simulate(
    question: Simulation, progress: Progress = silent, should_stop: ShouldStop = never
) -> SimulationResult:
    """Run both mechanisms on made-up values.

    Args:
        question: What to run and how often.
        progress: Called with the share done, in (0, 1].
        should_stop: Asked between blocks once `MIN_RUNS` runs are done; true ends with what there is.

    Returns:
        `SimulationResult`; the same question gives the same answer, unless stopped.
    """
    problem = question.problem
    h = question.threshold if question.threshold is not None else mean.best_smooth(problem).threshold
    cap = question.max_contributions
    cap = int(cap) if cap is not None else mean.best_cap(problem).max_contributions
    rng = np.random.default_rng(question.seed)
    smooth, capped = Moments(), Moments()
    block = max(1, _BLOCK // problem.histogram.sizes.size)
    cancelled = False
    while smooth.count < question.runs:
        if smooth.count >= MIN_RUNS and should_stop():
            cancelled = True
            break
        size = min(block, question.runs - smooth.count)
        smooth.add(misses(problem, float(h), False, size, rng) ** 2)
        capped.add(misses(problem, float(cap), True, size, rng) ** 2)
        progress(smooth.count / question.runs)
    return SimulationResult(
        smooth=_estimate(smooth, float(mean.smooth_variance(problem, h)), question.confidence),
        capped=_estimate(capped, float(mean.capped_variance(problem, float(cap))), question.confidence),
        threshold=float(h),
        max_contributions=cap,
        runs=smooth.count,
        cancelled=cancelled,
        ended=f"{'Stopped' if cancelled else 'Finished'} after {wording.counted(smooth.count, 'run')} of each "
        "mechanism.",
    )


def simulate_curve(
    problem: MeanProblem,
    bounds: Sequence[int],
    runs: int,
    seed: int = 0,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> tuple[SimulationResult, ...]:
    """Run both mechanisms at several bounds, each bound serving as threshold and as cap.

    Args:
        problem: As in `Simulation`.
        bounds: Whole bounds in rows per user.
        runs: How often each mechanism runs at each bound.
        seed: Seed at the first bound; the others follow on, so that no bound repeats another's draws.
        progress: Called with the share done, in (0, 1].
        should_stop: Asked as by `simulate`; true ends with the bounds done so far, the last one cut short.

    Returns:
        One `SimulationResult` per bound that was begun, in order.

    Raises:
        InvalidInput: As `Simulation`.
    """
    questions = [
        Simulation(problem, float(bound), bound, runs, seed=seed + i) for i, bound in enumerate(bounds)
    ]
    results: list[SimulationResult] = []

    def report(share: float) -> None:
        progress((len(results) + share) / len(questions))

    for question in questions:
        if results and should_stop():
            break
        results.append(simulate(question, report, should_stop))
        if results[-1].cancelled:
            break
    return tuple(results)
