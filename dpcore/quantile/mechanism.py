"""A private quantile from users with several values each: the exact distribution of the answer.

Setting (Epasto et al. 2020, appendix B): contribution counts are public; neighbours differ in one user's
values, or (`NEIGHBOURS`) by one whole user; the answer is drawn with density proportional to

    nu(y) exp(-epsilon |rank(y) - q| / (2 W)),    rank(y) = sum_i c_i 1{y >= y_i},

with weights c that sum to 1, W the largest total weight of one user, and a base distribution nu. The rank is
a step function, so the density is known in closed form between neighbouring values: nothing here uses a grid.

Where a user may be added or removed, the score is not divided by the total weight: |sum_i w_i (1{y >= y_i} - q)|
with w the rows' weights before that division. The terms of one user lie between -q h and (1 - q) h. So they move the
score by at most h max(q, 1 - q), against h if only their values change. So the same draw has two guarantees: epsilon by
replacement is epsilon max(q, 1 - q) by addition, and neither answer is better than the other. A cap keeps a random
subsample of the rows, and whoever releases draws their own: the figures of a cap are averages over several random
subsamples, with their standard error. F is the unweighted empirical distribution function: the error of an answer y is
|F(y) - q|.

The steps under one bound, and what each keeps true (the invariant):

1. Intervals (`Rows`): the line is cut at values and breaks, so that rank, F and the form of nu are constant on each.
2. Ranks (`Rows.compute_weighted_ranks`): each subsample's rank rises from 0 to 1; all bounds order the rows alike.
3. Tilts (`_compute_tilts`): the tilt is the log of the answer's density over nu, up to a constant per subsample.
4. Masses (`_compute_tilts`): the largest mass of each subsample is 1, so that not all of them underflow.
5. Sums (`outputs`): they hold the ranks and the normalised densities of all subsamples so far.
6. Errors (`_compute_tilts`): F is constant on each interval, so that the expected error is a sum over intervals.

That is the paper's mechanism. `dpcore.quantile.programs` has those of the libraries' programs: with candidates in place
of the line, by permute-and-flip, or by a tree of counts, whose answers are simulated.
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
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data.binned_values import expand_rows
from dpcore.dataset import Values
from dpcore.quantile.base_distribution import Base, CandidateBase
from dpcore.quantile.programs import (
    BIGQUERY_ROWS,
    TREE_PROGRAMS,
    WEIGHTED_PROGRAMS,
    compute_permute_and_flip,
    count_trials,
    divide_epsilon,
    simulate_tree,
)
from dpcore.quantile.rows import QuantileOutput, Rows, ThinRows, WeightKind, choose_num_subsamples

NEIGHBOURS = (Neighbours.REPLACE_VALUES, Neighbours.ADD_OR_REMOVE_USER)
"""The relations with a guarantee."""
_PROTECTED_BY_RELATION = {
    Neighbours.REPLACE_VALUES: "the values of one user's rows; rows per user are public",
    Neighbours.ADD_OR_REMOVE_USER: "one user, added or removed with all their rows",
}
_COMMON_ASSUMPTIONS = (
    "The base distribution was chosen without looking at the values",
    "The error |F(answer) − q| is about these rows, with F their unweighted empirical distribution; only the paper's "
    "bound has the sampling error of the population",
    "Bounded rows are a random subsample, independent of the values; the release draws its own",
    "A bound that is best for the values leaks, unless they are public",
)

DEFAULT_SUBSAMPLES = 400
"""Subsamples of a cap's averages."""
MAX_SUBSAMPLES = 10_000
_MAX_SUBSAMPLE_CELLS = 4_000_000  # Rows times subsamples.


ASSUMPTIONS_BY_PROGRAM = {
    Program.BEST: (
        "The mechanism that errs least on these values leaks, as such a bound does, unless they are public; a tree's "
        "errors are averages over simulated releases",
    ),
    Program.TUMULT: (
        "Tumult picks the rows that stay by a hash, the same in every run; the errors are averages over "
        "random choices",
    ),
    Program.PIPELINEDP: ("The errors are averages over simulated releases",),
    Program.BIGQUERY: (
        "The errors are averages over simulated releases",
        "BigQuery draws a percentile as ZetaSQL's APPROX_QUANTILES does; nobody ran BigQuery",
    ),
}


def list_assumptions(neighbours: Neighbours, program: Program = Program.BEST) -> tuple[str, ...]:
    """Return the assumptions of a program's answers under a relation, sentences without their full stop."""
    return (
        f"Neighbouring data sets differ in {_PROTECTED_BY_RELATION[neighbours]}",
        *_COMMON_ASSUMPTIONS,
        *ASSUMPTIONS_BY_PROGRAM.get(program, ()),
    )


def compute_user_reach(quantile: float, neighbours: Neighbours) -> float:
    """Return the most that a user of weight 1 moves the score: max(q, 1 - q) if users come or go, else 1."""
    return max(quantile, 1.0 - quantile) if neighbours is Neighbours.ADD_OR_REMOVE_USER else 1.0


@dataclass(frozen=True)
class QuantileProblem:
    """The question: release the q-quantile of all rows with epsilon-DP.

    Attributes:
        values: One value per row, sorted by user; binned values are expanded to rows.
        quantile: q, strictly between 0 and 1.
        epsilon: Privacy budget, above 0.
        base: The base distribution nu; chosen without looking at the values.
        first_seed: Seed of the first random subsample under a cap; the next ones count up. A subsample does not
            depend on the values, and the rows kept under a smaller cap are among those under a larger one.
        num_subsamples: Number of subsamples that the figures of a cap are averaged over, 1 to `MAX_SUBSAMPLES`; None
            for `DEFAULT_SUBSAMPLES`, or as few as `MIN_SUBSAMPLES` of many rows. Smooth weights draw none.
        neighbours: What epsilon protects: one of `NEIGHBOURS`.
        program: The program whose mechanism answers, with the base that `programs.lay_base` has for it; by default the
            paper's. Programs other than `programs.WEIGHTED_PROGRAMS` take caps alone, and protect users who come or go;
            OpenDP stands for permute-and-flip on its candidates, with any weights and under either relation.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    values: Values
    quantile: float
    epsilon: float
    base: Base
    first_seed: int = 0
    num_subsamples: int | None = None
    neighbours: Neighbours = Neighbours.REPLACE_VALUES
    program: Program = Program.BEST

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range or does not fit the program."""
        protects_values = self.neighbours is Neighbours.REPLACE_VALUES
        with Problems() as problems:
            if self.neighbours not in NEIGHBOURS:
                problems.add("neighbours must differ in one user's values, or by one user added or removed")
            # Permute-and-flip is private under either relation; it is its library that knows one alone.
            elif protects_values and self.program not in (*WEIGHTED_PROGRAMS, Program.OPENDP):
                problems.add(f"neighbours of {self.program.value} differ by one user added or removed")
            problems.of_kind(Values, values=self.values)
            problems.inside(0.0, 1.0, quantile=self.quantile)
            problems.positive(epsilon=self.epsilon)
            problems.whole(0, 2**63 - 1, seed=self.first_seed)
            if self.num_subsamples is not None:
                problems.whole(1, MAX_SUBSAMPLES, subsamples=self.num_subsamples)
            if not hasattr(self.base, "log_mass"):
                problems.add("base must be a base distribution", "See dpcore.quantile.base_distribution")
        object.__setattr__(self, "values", expand_rows(self.values))

    @cached_property
    def rows(self) -> Rows:
        """Return the rows, sorted; computed once."""
        num_rows = self.values.values.size
        num_orders = self.num_subsamples or choose_num_subsamples(
            _MAX_SUBSAMPLE_CELLS, num_rows, DEFAULT_SUBSAMPLES
        )
        return Rows(self.values, self.base, self.first_seed, num_orders)

    @property
    def histogram(self) -> ContributionHistogram:
        """Return the rows per user; public in this setting."""
        return self.rows.histogram

    def with_changes(self, rows: Rows | None = None, **changes: Any) -> QuantileProblem:
        """Return the question with changed fields; its rows are known, as to sort them takes most of the time.

        Args:
            rows: The rows of the changed question; None for the same.
            changes: Changed epsilon, quantile, neighbours, program or number of subsamples.
        """
        changed_problem = replace(self, **changes)
        object.__setattr__(changed_problem, "rows", self.rows if rows is None else rows)
        return changed_problem

    def with_base(self, base: Base) -> QuantileProblem:
        """Return the same question and subsamples under another base distribution; the rows are sorted again."""
        changed_problem = replace(self, base=base)
        # Random orders are of rows sorted by value, which no base changes.
        return changed_problem.with_changes(changed_problem.rows.with_orders(self.rows.random_orders))

    def with_subsamples(self, num_subsamples: int) -> QuantileProblem:
        """Return the same question with a cap's figures averaged over so many subsamples, without sorting again."""
        changed_orders = replace(self.rows.random_orders, num_orders=num_subsamples)
        return self.with_changes(self.rows.with_orders(changed_orders), num_subsamples=num_subsamples)

    @property
    def trial_name(self) -> str:
        """Return the noun for what an error is averaged over: a "simulated release" of a tree, else a "subsample"."""
        return "simulated release" if self.program in TREE_PROGRAMS else "subsample"

    def count_trials(self, weight_kind: WeightKind, bound: float) -> int:
        """Return how many subsamples, of a tree simulated releases, an error is averaged over; 1 if it is exact."""
        if self.program in TREE_PROGRAMS:
            return self.rows.random_orders.num_orders * count_trials(self.rows)
        return self.rows.count_subsamples(weight_kind, bound)

    @property
    def uncounted_share(self) -> float:
        """Return the share of rows equal to a candidate that does not count as below it; 0 but for OpenDP with ties.

        OpenDP's score is below - q (n - equal), which is the rank less q n if a share q of them counts as below.
        """
        has_ties = self.program is Program.OPENDP and self.rows.has_ties
        return 1.0 - self.quantile if has_ties else 0.0

    def find_largest_move(self, bound: float) -> float:
        """Return the most that one user moves the weighted rank less q, under the problem's relation."""
        if self.neighbours is Neighbours.REPLACE_VALUES:
            return self.rows.compute_largest_user_weight(bound)
        # Whoever comes may have more rows than anybody who is there: it is the bound that holds them.
        largest_score_change = compute_user_reach(self.quantile, self.neighbours)
        return bound * largest_score_change / float(self.histogram.count_kept_rows(bound))

    def with_thin_rows(self) -> QuantileProblem:
        """Return the same question on `ThinRows`, far fewer rows, which serve smooth weights alone."""
        return self.with_changes(ThinRows(self.values, self.base, self.quantile))

    def with_search_subsamples(self) -> QuantileProblem:
        """Return the same question on the subsamples of a search, which are none of those of this question.

        Among many caps one looks best by luck; it must be judged by subsamples that it was not picked on.
        """
        return self.with_changes(self.rows.with_orders(self.rows.random_orders.search_orders))


def compute_output(problem: QuantileProblem, weight_kind: WeightKind, bound: float) -> QuantileOutput:
    """Return the distribution of the answer under a bound h: exact, or of a tree simulated.

    Args:
        problem: The question.
        weight_kind: Smooth weights or a cap.
        bound: h > 0 in rows per user, whole for a cap. At or above the heaviest user's rows all rows weigh
            the same: no bound.

    Raises:
        InvalidInput: ``bound`` not positive, or not whole for a cap.

    Source: Epasto et al. 2020, algorithm 4.
    """
    return compute_problem_outputs([problem], weight_kind, bound)[0]


def compute_problem_outputs(
    problems: Sequence[QuantileProblem], weight_kind: WeightKind, bound: float
) -> tuple[QuantileOutput, ...]:
    """Return the distribution of the answer for each of several questions on the same rows, which are ranked once."""
    check_bound(weight_kind, bound)
    rows = problems[0].rows
    if problems[0].program in TREE_PROGRAMS:
        return tuple(_simulate_output(problem, bound) for problem in problems)
    if _differ_in_ties(problems):
        return tuple(compute_output(problem, weight_kind, bound) for problem in problems)
    num_subsamples = rows.count_subsamples(weight_kind, bound)
    rank_sums = np.zeros(rows.shares_below.shape)
    log_density_sums = [np.full(rows.shares_below.shape, -np.inf) for _ in problems]
    error_blocks: list[list[FloatArray]] = [[] for _ in problems]
    # Steps 1 and 2 give the ranks. Step 5. Invariant after each block: the sums hold the ranks and the normalised
    # densities (as logs, over the base density) of all subsamples so far, and `error_blocks` one expected rank error
    # of each.
    for weighted_ranks in rows.compute_weighted_ranks(weight_kind, bound, problems[0].uncounted_share):
        rank_sums += weighted_ranks.sum(axis=0)
        for k, problem in enumerate(problems):
            log_tilts, log_total_masses, block_errors = _compute_tilts(problem, weighted_ranks, bound)
            error_blocks[k].append(block_errors)
            # Summed in log space: far from the quantile every subsample's density may underflow.
            log_block_sum = np.logaddexp.reduce(log_tilts - log_total_masses[:, None], axis=0)
            log_density_sums[k] = np.logaddexp(log_density_sums[k], log_block_sum)
    return tuple(
        QuantileOutput(
            quantile=problem.quantile,
            base=problem.base,
            edges=rows.edges,
            weighted_ranks=rank_sums / num_subsamples,
            shares_below=rows.shares_below,
            log_base_masses=rows.log_base_masses,
            log_tilts=log_density_sum - math.log(num_subsamples),
            largest_user_weight=rows.compute_largest_user_weight(bound),
            subsample_errors=np.concatenate(error_blocks_of_problem),
        )
        for problem, log_density_sum, error_blocks_of_problem in zip(
            problems, log_density_sums, error_blocks, strict=True
        )
    )


def compute_subsample_errors(
    problems: Sequence[QuantileProblem], weight_kind: WeightKind, bound: float
) -> FloatArray:
    """Return E|F(answer) - q| under each subsample, as the mean over questions on the same rows.

    Of a tree, there is an entry for each simulated release.

    It computes what `outputs` does and keeps only the errors, which is what a search needs.
    """
    return np.asarray(_compute_errors(problems, weight_kind, bound).mean(axis=0))


def compute_errors_over_epsilon(
    problem: QuantileProblem, weight_kind: WeightKind, bound: float, epsilons: FloatArray
) -> FloatArray:
    """Return E|F(answer) - q| at each epsilon under a bound, the mean over subsamples, shape (k,), from one ranking."""
    epsilon_problems = [problem.with_changes(epsilon=float(e)) for e in epsilons]
    return np.asarray(_compute_errors(epsilon_problems, weight_kind, bound).mean(axis=1))


def _compute_errors(problems: Sequence[QuantileProblem], weight_kind: WeightKind, bound: float) -> FloatArray:
    """Return E|F(answer) - q| of each problem on the same rows, per subsample or, of a tree, per simulated release.

    Shape (problems, trials).
    """
    check_bound(weight_kind, bound)
    if problems[0].program in TREE_PROGRAMS:
        return np.array([_simulate(problem, bound)[1] for problem in problems])
    if _differ_in_ties(problems):
        return np.vstack([_compute_errors([problem], weight_kind, bound) for problem in problems])
    rank_blocks = problems[0].rows.compute_weighted_ranks(weight_kind, bound, problems[0].uncounted_share)
    error_blocks = [
        [_compute_tilts(problem, weighted_ranks, bound, needs_tilts=False)[2] for problem in problems]
        for weighted_ranks in rank_blocks
    ]
    return np.hstack(error_blocks)


def _differ_in_ties(quantile_problems: Sequence[QuantileProblem]) -> bool:
    """Return True if the problems, on the same rows, differ in `QuantileProblem.uncounted_share`: in how ties count."""
    return len({problem.uncounted_share for problem in quantile_problems}) > 1


def _simulate(problem: QuantileProblem, bound: float) -> tuple[FloatArray, FloatArray]:
    """Simulate answers of a tree, and return them with their errors |F(answer) - q|, shape (trials,) each."""
    max_rows, sensitivity_rows = bound, bound
    if problem.program is Program.BIGQUERY:
        max_rows, sensitivity_rows = min(bound, BIGQUERY_ROWS), float(BIGQUERY_ROWS)
    base_ends = float(problem.base.breaks[0]), float(problem.base.breaks[-1])
    # A row of a user is counted on every one of the four levels.
    noise_scale = 4.0 * sensitivity_rows / problem.epsilon
    simulated_answers = simulate_tree(problem.rows, base_ends, problem.quantile, noise_scale, max_rows)
    ordered_values = problem.rows.ordered_values
    share_below_answer = (
        np.searchsorted(ordered_values, simulated_answers, side="right") / ordered_values.size
    )
    return simulated_answers, np.abs(share_below_answer - problem.quantile)


def _simulate_output(problem: QuantileProblem, bound: float) -> QuantileOutput:
    """Simulate releases of a tree, and build the distribution in which each simulated answer is equally likely."""
    simulated_answers, rank_errors = _simulate(problem, bound)
    distinct_answers, answer_counts = np.unique(simulated_answers, return_counts=True)
    base = CandidateBase(distinct_answers, answer_counts / simulated_answers.size)
    interval_edges = np.concatenate(([-np.inf], distinct_answers, [np.inf]))
    ordered_values = problem.rows.ordered_values
    shares_below = np.searchsorted(ordered_values, interval_edges[:-1], side="right") / ordered_values.size
    return QuantileOutput(
        quantile=problem.quantile,
        base=base,
        edges=interval_edges,
        weighted_ranks=shares_below,
        shares_below=shares_below,
        log_base_masses=base.log_mass(interval_edges[:-1], interval_edges[1:]),
        log_tilts=np.zeros(interval_edges.size - 1),
        largest_user_weight=problem.rows.compute_largest_user_weight(bound),
        subsample_errors=rank_errors,
        is_simulated=True,
    )


def compute_standard_error(
    trial_errors: FloatArray, weight_kind: WeightKind, bound: float, rows: Rows
) -> float:
    """Return the standard error of the mean of ``trial_errors``, one per subsample or simulated release.

    0 if one error is there because it is exact; NaN if it is there because only one subsample was drawn.
    """
    if trial_errors.size > 1:
        return float(np.std(trial_errors, ddof=1)) / math.sqrt(trial_errors.size)
    return 0.0 if weight_kind is WeightKind.SMOOTH or bound >= rows.histogram.max_size else math.nan


def _compute_tilts(
    problem: QuantileProblem, weighted_ranks: FloatArray, bound: float, needs_tilts: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log tilt on each interval, the log of its total mass, and E|F(answer) - q|, per subsample.

    Args:
        problem: The question.
        weighted_ranks: Weighted ranks, shape (subsamples, k).
        bound: The bound of these ranks; W is the largest move of the rank by one user under it.
        needs_tilts: False if the errors alone are needed; of permute-and-flip there are no tilts then.
    """
    rows = problem.rows
    # Step 3. Epasto et al. 2020, algorithm 4: density proportional to nu(y) exp(-epsilon |rank(y) - q| / (2 W)). In
    # place, since the arrays of one block are as large as the processor's cache (`rows._CELLS_PER_PASS`).
    log_tilts = weighted_ranks - problem.quantile
    np.abs(log_tilts, out=log_tilts)
    log_tilts *= -problem.epsilon / (2.0 * problem.find_largest_move(bound))
    rank_distances = np.abs(rows.shares_below - problem.quantile)
    if problem.program is Program.OPENDP:
        # The first interval lies below all candidates. The others have one each, of the same mass.
        probabilities = compute_permute_and_flip(log_tilts[:, 1:])
        if needs_tilts:
            with np.errstate(divide="ignore"):
                log_tilts[:, 1:] = np.log(probabilities) - rows.log_base_masses[1:]
            log_tilts[:, 0] = -np.inf
        return log_tilts, np.zeros(log_tilts.shape[0]), probabilities @ rank_distances[1:]
    # Step 4. Invariant: the largest mass of each subsample is exp(0) = 1. Without that, all masses would underflow to 0
    # at a large epsilon.
    log_masses = log_tilts + rows.log_base_masses
    largest_log_masses = np.max(log_masses, axis=1)
    log_masses -= largest_log_masses[:, None]
    scaled_masses = np.exp(log_masses, out=log_masses)
    scaled_totals = scaled_masses.sum(axis=1)
    # Step 6 for the error: F is constant on each interval, so that the expectation is a sum over intervals.
    expected_errors = (scaled_masses @ rank_distances) / scaled_totals
    return log_tilts, largest_log_masses + np.log(scaled_totals), expected_errors


def check_bound(weight_kind: WeightKind, bound: float) -> None:
    """Raise `InvalidInput` if a bound is not positive, or not whole for a cap."""
    with Problems() as problems:
        if weight_kind is WeightKind.CAP:
            problems.whole(1, 10**12, bound=bound)
        else:
            problems.positive(bound=bound)


def compute_outputs(
    problem: QuantileProblem, quantiles: npt.ArrayLike, weight_kind: WeightKind, bound: float
) -> tuple[QuantileOutput, ...]:
    """Return the distributions of several quantiles at once, epsilon divided as the program does.

    Args:
        problem: The question; its own ``quantile`` does not matter, its epsilon is for all together.
        quantiles: Each strictly between 0 and 1, shape (j,), j at least 1.
        weight_kind: Smooth weights or a cap.
        bound: h as in `output`.

    Returns:
        One distribution per quantile, in the order of ``quantiles``.

    Raises:
        InvalidInput: A figure is out of its range.
    """
    return compute_problem_outputs(split_epsilon(problem, quantiles), weight_kind, bound)


def split_epsilon(problem: QuantileProblem, quantiles: npt.ArrayLike) -> list[QuantileProblem]:
    """Return the questions for several quantiles of the same rows, epsilon divided as the program does."""
    distinct_quantiles = np.asarray(quantiles, dtype=np.float64)
    epsilon = divide_epsilon(problem.program, problem.epsilon, distinct_quantiles.size)
    return [problem.with_changes(epsilon=epsilon, quantile=float(q)) for q in distinct_quantiles]
