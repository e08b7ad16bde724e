"""A private quantile from users with several values each: the exact distribution of the answer.

Setting (Epasto et al. 2020, appendix B): contribution counts are public; neighbours differ in one user's
values, or (`NEIGHBOURS`) by one whole user; the answer is drawn with density proportional to

    nu(y) exp(-epsilon |rank(y) - q| / (2 W)),    rank(y) = sum_i c_i 1{y >= y_i},

with weights c that sum to 1, W the largest total weight of one user, and a base distribution nu. The rank is
a step function, so the density is known in closed form between neighbouring values: nothing here uses a grid.

Where a user may be added or removed, the score is not divided by the total weight: |sum_i w_i (1{y >= y_i} - q)|
with w the rows' weights before that division. The terms of one user lie between -q h and (1 - q) h, so that they move
the score by at most h max(q, 1 - q), against h where only their values change. So the same draw has two guarantees:
epsilon by replacement is epsilon max(q, 1 - q) by addition, and neither answer is better than the other.
A cap keeps a random subsample of the rows, and whoever releases draws their own: the figures of a cap are averages
over several random subsamples, with their standard error.
F is the unweighted empirical distribution function: the error of an answer y is |F(y) - q|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.dataset import Values
from dpcore.quantile.base_distribution import Base
from dpcore.quantile.rows import SLACK, Rows, ThinRows, WeightKind, affordable_subsamples

NEIGHBOURS = (Neighbours.REPLACE_VALUES, Neighbours.ADD_OR_REMOVE_USER)
"""The relations with a guarantee."""
_PROTECTED = {
    Neighbours.REPLACE_VALUES: "the values of one user's rows; rows per user are public",
    Neighbours.ADD_OR_REMOVE_USER: "one user, added or removed with all their rows",
}
_ALWAYS = (
    "The base distribution was chosen without looking at the values",
    "The error |F(answer) − q| is about these rows, with F their unweighted empirical distribution; only the paper's "
    "bound has the sampling error of the population",
    "Bounded rows are a random subsample, independent of the values; the release draws its own",
    "A bound that is best for the values leaks, unless they are public",
)

SUBSAMPLES = 400
"""Subsamples of a cap's averages."""
MAX_SUBSAMPLES = 10_000
_ROWS_OF_SUBSAMPLES = 4_000_000  # Rows times subsamples.
_CELLS = 4_000_000


def assumptions(neighbours: Neighbours) -> tuple[str, ...]:
    """Return the assumptions of the answers under a neighbouring relation; sentences without their full stop."""
    return f"Neighbouring data sets differ in {_PROTECTED[neighbours]}", *_ALWAYS


def user_reach(quantile: float, neighbours: Neighbours) -> float:
    """Return the sensitivity of the score of a quantile q to a user of weight 1; smaller if users come or go."""
    return max(quantile, 1.0 - quantile) if neighbours is Neighbours.ADD_OR_REMOVE_USER else 1.0


@dataclass(frozen=True)
class QuantileProblem:
    """The question: release the q-quantile of all rows with epsilon-DP.

    Attributes:
        values: One value per row, sorted by user.
        quantile: q, strictly between 0 and 1.
        epsilon: Privacy budget, above 0.
        base: The base distribution nu; chosen without looking at the values.
        subsample: Seed of the first random subsample under a cap; the next ones count up. A subsample does not
            depend on the values, and the rows kept under a smaller cap are among those under a larger one.
        subsamples: Number of subsamples that the figures of a cap are averaged over, 1 to `MAX_SUBSAMPLES`; None
            for `SUBSAMPLES`, fewer down to `FEWEST_SUBSAMPLES` where there are many rows. Smooth weights draw none.
        neighbours: What epsilon protects: one of `NEIGHBOURS`.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    values: Values
    quantile: float
    epsilon: float
    base: Base
    subsample: int = 0
    subsamples: int | None = None
    neighbours: Neighbours = Neighbours.REPLACE_VALUES

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.neighbours not in NEIGHBOURS:
                problems.add("neighbours must differ in one user's values, or by one user added or removed")
            problems.of_kind(Values, values=self.values)
            problems.inside(0.0, 1.0, quantile=self.quantile)
            problems.positive(epsilon=self.epsilon)
            problems.whole(0, 2**63 - 1, subsample=self.subsample)
            if self.subsamples is not None:
                problems.whole(1, MAX_SUBSAMPLES, subsamples=self.subsamples)
            if not hasattr(self.base, "log_mass"):
                remedy = "See dpcore.quantile.base_distribution"
                problems.add("base must be a base distribution", remedy)

    @cached_property
    def rows(self) -> Rows:
        """Return the rows, sorted; computed once."""
        count = self.values.values.size
        subsamples = self.subsamples or affordable_subsamples(_ROWS_OF_SUBSAMPLES, count, SUBSAMPLES)
        return Rows(self.values, self.base, self.subsample, subsamples)

    @property
    def histogram(self) -> ContributionHistogram:
        """Return the rows per user; public in this setting."""
        return self.rows.histogram

    def with_changes(self, rows: Rows | None = None, **changes: Any) -> QuantileProblem:
        """Return the question with changed fields; its rows are known, as to sort them takes most of the time.

        Args:
            rows: The rows of the changed question; None for the same.
            changes: Changed epsilon, quantile, neighbours or subsamples.
        """
        changed = replace(self, **changes)
        object.__setattr__(changed, "rows", self.rows if rows is None else rows)
        return changed

    def with_base(self, base: Base) -> QuantileProblem:
        """Return the same question and subsamples under another base distribution; the rows are sorted again."""
        changed = replace(self, base=base)
        # Random orders are of rows sorted by value, which no base changes.
        return changed.with_changes(changed.rows.with_draws(self.rows.draws))

    def with_subsamples(self, num_subsamples: int) -> QuantileProblem:
        """Return the same question with a cap's figures averaged over so many subsamples, without sorting again."""
        draws = replace(self.rows.draws, count=num_subsamples)
        return self.with_changes(self.rows.with_draws(draws), subsamples=num_subsamples)

    def largest_move(self, bound: float) -> float:
        """Return the sensitivity of the weighted rank, counted from q, to one user."""
        if self.neighbours is Neighbours.REPLACE_VALUES:
            return self.rows.largest_user_weight(bound)
        # Whoever comes may have more rows than anybody who is there: it is the bound that holds them.
        reach = user_reach(self.quantile, self.neighbours)
        return bound * reach / float(self.histogram.kept_rows(bound))

    def thinned(self) -> QuantileProblem:
        """Return the same question for weights by user, on `ThinRows`."""
        return self.with_changes(ThinRows(self.values, self.base, self.quantile))

    def on_search_subsamples(self) -> QuantileProblem:
        """Return the same question on the subsamples of a search, none of which is its own.

        Among many caps one looks best by luck; it must be judged by subsamples that it was not picked on.
        """
        return self.with_changes(self.rows.with_draws(self.rows.draws.for_search))


@dataclass(frozen=True, eq=False)
class QuantileOutput:
    """The distribution of the private answer: exact, or under a cap averaged over subsamples, each of them exact.

    Attributes:
        quantile: q.
        base: The base distribution.
        edges: Ends of the intervals, shape (k + 1,), from -inf to inf, in the values' unit.
        weighted_rank: sum of c_i over the values at or below, on each interval, shape (k,); average over subsamples.
        share_below: F on each interval, shape (k,).
        log_base: Log base mass of each interval, shape (k,).
        log_tilt: Log of the density over the base density, shape (k,).
        largest_user_weight: W.
        subsample_errors: E|F(answer) - q| under each subsample, shape (subsamples,); one entry where none matters.
    """

    quantile: float
    base: Base
    edges: FloatArray
    weighted_rank: FloatArray
    share_below: FloatArray
    log_base: FloatArray
    log_tilt: FloatArray
    largest_user_weight: float
    subsample_errors: FloatArray

    @cached_property
    def log_probability(self) -> FloatArray:
        """Return the log probability that the answer falls in each interval, shape (k,)."""
        return np.asarray(self.log_base + self.log_tilt)

    @cached_property
    def probability(self) -> FloatArray:
        """Return the probability of each interval, shape (k,); underflows to 0 where it is below 1e-308."""
        return np.asarray(np.exp(self.log_probability))

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.concatenate(([0.0], np.minimum(np.cumsum(self.probability), 1.0)))

    @cached_property
    def _rank_error(self) -> FloatArray:
        return np.abs(self.share_below - self.quantile)

    def _interval(self, y: FloatArray) -> IntArray:
        return np.clip(np.searchsorted(self.edges, y, side="right") - 1, 0, self.edges.size - 2)

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Return the log density of the answer at y, of its shape; at a value that of the interval to the right."""
        points = np.asarray(y, dtype=np.float64)
        return np.asarray(self.base.log_density(points) + self.log_tilt[self._interval(points)])

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """Return the probability that the answer is at most y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        k = self._interval(points)
        partial = np.exp(self.base.log_mass(self.edges[k], points) + self.log_tilt[k])
        return np.asarray(np.minimum(self._cumulative[k] + partial, 1.0))

    def answer_at(self, shares: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of the answer's own distribution; ``shares`` in (0, 1), any shape."""
        u = np.asarray(shares, dtype=np.float64)
        k = np.clip(np.searchsorted(self._cumulative, u, side="left") - 1, 0, self.probability.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (u - self._cumulative[k]) / self.probability[k]
        # 0 / 0 where the interval's probability underflows: any point of it will do.
        inside = np.clip(np.nan_to_num(inside, nan=0.5), 0.0, 1.0)
        return self.base.draw_between(self.edges[k], self.edges[k + 1], inside)

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Return the central interval that holds the answer with probability ``coverage``, in the values' unit."""
        low, high = self.answer_at([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
        return float(low), float(high)

    @cached_property
    def mean(self) -> float:
        """Return the expected answer, in the values' unit."""
        return float(self.probability @ self.base.mean_between(self.edges[:-1], self.edges[1:]))

    @cached_property
    def expected_rank_error(self) -> float:
        """Return E|F(answer) - q|, over the noise and over the subsamples."""
        return float(np.mean(self.subsample_errors))

    @cached_property
    def least_rank_error(self) -> float:
        """Return the least |F(y) - q| where the base has mass: what ties alone cost, at any epsilon."""
        return float(np.min(self._rank_error[self.log_base > -np.inf]))

    def probability_within(self, distances: npt.ArrayLike) -> FloatArray:
        """Return P(|F(answer) - q| <= t), for t of any shape; t may fall short by 1e-12."""
        order = np.argsort(self._rank_error, kind="stable")
        cumulated = np.concatenate(([0.0], np.minimum(np.cumsum(self.probability[order]), 1.0)))
        t = np.asarray(distances, dtype=np.float64) + SLACK
        return np.asarray(cumulated[np.searchsorted(self._rank_error[order], t, side="right")])

    def binned_density(self, edges: FloatArray) -> FloatArray:
        """Return the mean density on bins between ascending edges, shape (bins,), for drawing."""
        return np.asarray(np.diff(self.cdf(edges)) / np.diff(edges))

    def sample(self, size: int, generator: np.random.Generator) -> FloatArray:
        """Draw answers exactly: Gumbel-max over the intervals in log space, then within one by its base mass.

        No grid and no underflow, whatever epsilon. For simulations: NumPy's generator is not meant for
        release.

        Args:
            size: Number of independent answers; the cost is ``size`` times the number of intervals.
            generator: NumPy generator.

        Returns:
            Shape (size,), in the values' unit.
        """
        logs = self.log_probability
        live = np.flatnonzero(logs > -np.inf)
        block = max(1, _CELLS // live.size)
        intervals = np.empty(size, dtype=np.int64)
        for start in range(0, size, block):
            noise = generator.gumbel(size=(min(block, size - start), live.size))
            intervals[start : start + block] = live[np.argmax(logs[live] + noise, axis=1)]
        share = generator.random(size)
        return self.base.draw_between(self.edges[intervals], self.edges[intervals + 1], share)


def output(problem: QuantileProblem, weighting: WeightKind, bound: float) -> QuantileOutput:
    """Return the exact distribution of the answer under a bound h.

    Args:
        problem: The question.
        weighting: Smooth weights or a cap.
        bound: h > 0 in rows per user, whole for a cap. At or above the heaviest user's rows all rows weigh
            the same: no bound.

    Raises:
        InvalidInput: ``bound`` not positive, or not whole for a cap.

    Source: Epasto et al. 2020, algorithm 4.
    """
    return outputs([problem], weighting, bound)[0]


def outputs(
    problems: Sequence[QuantileProblem], weighting: WeightKind, bound: float
) -> tuple[QuantileOutput, ...]:
    """Return `output` for questions on the same rows (see `QuantileProblem.with_changes`), which are ranked once."""
    check_bound(weighting, bound)
    rows = problems[0].rows
    subsamples = rows.subsamples_for(weighting, bound)
    rank_sum = np.zeros(rows.share_below.shape)
    log_density_sums = [np.full(rows.share_below.shape, -np.inf) for _ in problems]
    errors: list[list[FloatArray]] = [[] for _ in problems]
    # Invariant after each block: the sums hold the ranks and the normalised densities (as logs, over the base density)
    # of all subsamples so far, and `errors` one expected rank error of each.
    for ranks in rows.weighted_ranks(weighting, bound):
        rank_sum += ranks.sum(axis=0)
        for k, problem in enumerate(problems):
            tilt, log_total, block_errors = _tilt(problem, ranks, bound)
            errors[k].append(block_errors)
            # Summed in log space: far from the quantile every subsample's density may underflow.
            block_sum = np.logaddexp.reduce(tilt - log_total[:, None], axis=0)
            log_density_sums[k] = np.logaddexp(log_density_sums[k], block_sum)
    return tuple(
        QuantileOutput(
            quantile=problem.quantile,
            base=problem.base,
            edges=rows.edges,
            weighted_rank=rank_sum / subsamples,
            share_below=rows.share_below,
            log_base=rows.log_base,
            log_tilt=log_density_sum - math.log(subsamples),
            largest_user_weight=rows.largest_user_weight(bound),
            subsample_errors=np.concatenate(subsample_errors),
        )
        for problem, log_density_sum, subsample_errors in zip(problems, log_density_sums, errors, strict=True)
    )


def subsample_errors(problems: Sequence[QuantileProblem], weighting: WeightKind, bound: float) -> FloatArray:
    """Return E|F(answer) - q| under each subsample, mean over questions on the same rows, shape (subsamples,).

    It computes what `outputs` does and keeps only the errors, which is what a search needs.
    """
    return np.asarray(_compute_errors(problems, weighting, bound).mean(axis=0))


def errors_over_epsilon(
    problem: QuantileProblem, weighting: WeightKind, bound: float, epsilons: FloatArray
) -> FloatArray:
    """Return E|F(answer) - q| at each epsilon under a bound, the mean over subsamples, shape (k,), from one ranking."""
    at_each = [problem.with_changes(epsilon=float(e)) for e in epsilons]
    return np.asarray(_compute_errors(at_each, weighting, bound).mean(axis=1))


def _compute_errors(problems: Sequence[QuantileProblem], weighting: WeightKind, bound: float) -> FloatArray:
    """Return E|F(answer) - q| of each problem on the same rows, shape (problems, subsamples)."""
    check_bound(weighting, bound)
    blocks = problems[0].rows.weighted_ranks(weighting, bound)
    return np.hstack([[_tilt(problem, ranks, bound)[2] for problem in problems] for ranks in blocks])


def standard_error(errors: FloatArray, weighting: WeightKind, bound: float, rows: Rows) -> float:
    """Return the standard error of the mean of `subsample_errors`: 0 without subsamples, NaN with a single one."""
    if weighting is WeightKind.SMOOTH or bound >= rows.histogram.max_size:
        return 0.0
    return float(np.std(errors, ddof=1)) / math.sqrt(errors.size) if errors.size > 1 else math.nan


def _tilt(
    problem: QuantileProblem, ranks: FloatArray, bound: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log tilt, the log of its total mass, and E|F(answer) - q|, per subsample.

    Args:
        problem: The question.
        ranks: Weighted ranks, shape (subsamples, k).
        bound: The bound of these ranks; W is the largest move of the rank by one user under it.
    """
    rows = problem.rows
    # Step 3. Epasto et al. 2020, algorithm 4: density proportional to nu(y) exp(-epsilon |rank(y) - q| / (2 W)). In
    # place, since the arrays of one block are as large as the processor's cache (`_SUBSAMPLE_CELLS`).
    tilt = ranks - problem.quantile
    np.abs(tilt, out=tilt)
    tilt *= -problem.epsilon / (2.0 * problem.largest_move(bound))
    # Step 4. Invariant: the largest mass of each subsample is exp(0) = 1. Without that, all masses would underflow to 0
    # at a large epsilon.
    log_masses = tilt + rows.log_base
    largest = np.max(log_masses, axis=1)
    log_masses -= largest[:, None]
    masses = np.exp(log_masses, out=log_masses)
    total = masses.sum(axis=1)
    # Step 6 for the error: F is constant on each interval, so that the expectation is a sum over intervals.
    errors = (masses @ np.abs(rows.share_below - problem.quantile)) / total
    return tilt, largest + np.log(total), errors


def check_bound(weighting: WeightKind, bound: float) -> None:
    """Raise `InvalidInput` where a bound cannot be one of its kind."""
    with Problems() as problems:
        if weighting is WeightKind.CAP:
            problems.whole(1, 10**12, bound=bound)
        else:
            problems.positive(bound=bound)


def compute_outputs(
    problem: QuantileProblem, quantiles: npt.ArrayLike, weighting: WeightKind, bound: float
) -> tuple[QuantileOutput, ...]:
    """Return the distributions of several quantiles at once, epsilon split evenly (basic composition).

    Args:
        problem: The question; its own ``quantile`` does not matter, its epsilon is for all together.
        quantiles: Each strictly between 0 and 1, shape (j,), j at least 1.
        weighting: Smooth weights or a cap.
        bound: h as in `output`.

    Returns:
        One distribution per quantile, in the order of ``quantiles``.

    Raises:
        InvalidInput: A figure is out of its range.
    """
    return outputs(split_epsilon(problem, quantiles), weighting, bound)


def split_epsilon(problem: QuantileProblem, quantiles: npt.ArrayLike) -> list[QuantileProblem]:
    """Return the questions for several quantiles of the same rows, epsilon split evenly."""
    levels = np.asarray(quantiles, dtype=np.float64)
    epsilon = problem.epsilon / levels.size
    return [problem.with_changes(epsilon=epsilon, quantile=float(q)) for q in levels]
