"""The cost of privacy: what learning under a bound costs when rows are plentiful.

For a power-law population the bound (*) of `dpcore.learning.optimal_cap` is a function of tau_0 alone once n is
large: user j keeps min(p_j, tau_0) of the whole. A small tau_0 drives the largest share, hence the noise, to zero, but
leaves a sample in which ever more users weigh the same. A large tau_0 leaves users who hold a constant share and must
be hidden. Neither end vanishes with n, so the smallest bound flattens above zero: the cost of privacy of Amin et al.
2019, section 7. Users who are alike (Var(H) = 0, in a bound that uses it) escape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import ObjectiveParts, minimise, move_to_kink
from dpcore.common.checks import Problems
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm, CapStatistics, compute_cap_statistics
from dpcore.learning.optimal_cap import SEARCH_TOLERANCE, BoundSettings, ErrorParts, LearningCap
from dpcore.learning.participation import (
    MAX_EXPECTED_ROWS,
    PowerLaw,
    SimulatedSamples,
    build_statistics,
    check_fractions,
    compute_expectations,
)

MAX_SAMPLE_EVALUATIONS = 20_000
"""At finite n each point costs two thousand binomials; a search as a rule takes a few hundred points."""

ROWS_FOR_COST = tuple(10**k for k in range(2, 10))


@dataclass(frozen=True, kw_only=True)
class PopulationProblem(BoundSettings):
    """The problem of the best tau_0 for a population instead of a data set. Public: no data enter.

    Attributes:
        participation: Who contributes how often.
        num_rows: n, whole, from 1 to 1e9; None for the limit of many rows, where the finite-sample term is 0.
            At finite n the expected share of rows kept stands for the share itself, as the average over 100
            draws does in the paper's figure 3, so a bias term that needs every user's share is refused there.

    Raises:
        InvalidInput: A parameter out of its range; all problems at once.
    """

    participation: PowerLaw
    num_rows: int | None = None

    def _check_contributors(self, problems: Problems) -> None:
        """Add problems of the power law, of n, and of a bias term that needs shares unknown in a sample of n rows."""
        problems.of_kind(PowerLaw, participation=self.participation)
        if self.num_rows is None:
            return
        has_rows = problems.whole(1, MAX_EXPECTED_ROWS, num_rows=self.num_rows)
        if has_rows and isinstance(self.bias, BiasTerm) and self.bias.needs_shares:
            problems.add(
                f"the bias term {self.bias.value!r} needs every user's share, unknown in an expected sample",
                remedy="Take a term that needs the share kept only, or the limit of many rows",
            )

    @property
    def smallest_fraction(self) -> float:
        """Return the smallest tau_0 that is searched: 1 / n, or 1e-12 in the limit of many rows."""
        return 1e-12 if self.num_rows is None else 1.0 / self.num_rows

    def list_kinks_around(self, fraction: float) -> FloatArray:
        """Return the two or three kinks of the bound closest to a tau_0, in (0, 1].

        In a sample they are multiples of 1 / n; in the limit they are users' shares. A user whose share is tau_0
        exactly is not capped.
        """
        if self.num_rows is not None:
            whole_cap = math.floor(fraction * self.num_rows)
            return np.arange(max(whole_cap, 1), min(whole_cap + 2, self.num_rows) + 1) / self.num_rows
        num_users_above = float(self.participation.count_users_above(fraction))
        return self.participation.compute_probabilities(
            np.arange(num_users_above + 2.0, max(num_users_above - 1.0, 0.0), -1.0)
        )

    @property
    def _row_limit(self) -> float:
        """Return n as a float; infinity in the limit of many rows."""
        return math.inf if self.num_rows is None else float(self.num_rows)


def compute_statistics(problem: PopulationProblem, fractions: npt.ArrayLike) -> CapStatistics:
    """Compute the population's shares, and how much is cut, under caps of tau_0 n rows.

    Args:
        problem: The question.
        fractions: tau_0 in [1e-15, 1], any shape. At finite n below one row nothing is kept.

    Returns:
        `CapStatistics` of the shape of ``fractions``; at finite n the kept share, the users capped and with
        them the largest share are those expected, and what needs every user's share is nan.

    Raises:
        InvalidInput: A fraction out of its range.

    Source: Amin et al. 2019, sections 5 and 7; proposition 5.
    """
    tau_0 = check_fractions(fractions)
    law = problem.participation
    if problem.num_rows is None:
        return compute_cap_statistics(
            law.compute_sums_at, tau_0, total_rows=1.0, largest_size=law.largest_share
        )
    return compute_expectations(law, problem.num_rows, tau_0)


def compute_error_parts(problem: PopulationProblem, fractions: npt.ArrayLike) -> ErrorParts:
    """Return the bound (*) in its parts at each tau_0 in [1e-15, 1]; infinite where nothing is kept (figure 3a)."""
    return problem.compute_error_parts(compute_statistics(problem, fractions), problem._row_limit)


def compute_simulated_error_parts(problem: PopulationProblem, draws: SimulatedSamples) -> ErrorParts:
    """Return `compute_error_parts` with averages over draws for the expectations: figure 3a as the paper made it.

    Args:
        problem: The question, with the number of rows that was drawn.
        draws: From `dpcore.learning.participation.simulate`, at least one.
    """
    mean_kept_shares, mean_users_capped = draws.kept_shares.mean(axis=0), draws.users_capped.mean(axis=0)
    mean_cut_shares = np.maximum(1.0 - mean_kept_shares, 0.0)
    average_statistics = build_statistics(
        draws.fractions, mean_kept_shares, mean_cut_shares, mean_users_capped
    )
    return problem.compute_error_parts(average_statistics, problem._row_limit)


def find_best_fraction(
    problem: PopulationProblem, progress: Progress = silent, should_stop: ShouldStop = never
) -> LearningCap:
    """Find the best tau_0, proved by branch and bound over (0, 1]; where it is a kink of the bound, it is exact.

    Args:
        problem: The question.
        progress: Told the settled share of the range, from 0 to 1.
        should_stop: Asked between rounds; where it says yes the best so far is returned, with its proof.

    Returns:
        `LearningCap`; its ``cap`` is tau in rows, nan in the limit. Where users are alike, so that ever smaller
        caps are ever better, the limit has no best: the smallest tau_0 searched is returned, and the
        certificate shows that nothing is proved.
    """
    is_limit = problem.num_rows is None
    depends_on_shares = is_limit and not problem.bias.needs_only_the_fraction
    smallest_fraction = problem.smallest_fraction
    fraction_limits = (smallest_fraction, problem.participation.largest_share if depends_on_shares else 1.0)

    def split_bound(tau_0: FloatArray) -> ObjectiveParts:
        """Return the bound (*) at each tau_0 as a falling and a rising part."""
        return problem.split_objective(compute_statistics(problem, tau_0), problem._row_limit)

    minimum = minimise(
        split_bound,
        *fraction_limits,
        is_integer=False,
        tolerance=SEARCH_TOLERANCE,
        max_evaluations=4_000_000 if is_limit else MAX_SAMPLE_EVALUATIONS,
        progress=progress,
        should_stop=should_stop,
    )
    if not minimum.stop_reason:
        minimum = move_to_kink(split_bound, minimum, problem.list_kinks_around, *fraction_limits)
    stop_text = optimal_cap.describe_search(minimum)
    if is_limit:  # Below the smallest fraction: no less falling part than there, and at least no noise.
        smallest_falling_part = float(split_bound(np.asarray(smallest_fraction)).falling_at_least)
        minimum = replace(minimum, lower_bound=min(minimum.lower_bound, smallest_falling_part))
        if minimum.minimiser == smallest_fraction:
            stop_text = f"The smallest τ₀ searched is best: in the limit there may be no best. {stop_text}"
    best_statistics = compute_statistics(problem, np.asarray(minimum.minimiser))
    cap = math.nan if problem.num_rows is None else minimum.minimiser * problem.num_rows
    return optimal_cap.build_choice(problem, best_statistics, minimum, problem._row_limit, cap, stop_text)


@dataclass(frozen=True)
class CostOfPrivacy:
    """The smallest bias plus privacy noise at each n and in the limit; if the search was stopped, what it had found.

    Attributes:
        rows_per_sample: The values of n that were done.
        best_choices: The best tau_0 at each n, and its parts.
        limit_choice: The same as n grows without end: the curves' floor.
    """

    rows_per_sample: tuple[int, ...]
    best_choices: tuple[LearningCap, ...]
    limit_choice: LearningCap


def find_cost_of_privacy(
    problem: PopulationProblem,
    rows_per_sample: Sequence[int] = ROWS_FOR_COST,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> CostOfPrivacy:
    """Find the smallest sum of bias and privacy noise over tau_0 at each n, and in the limit.

    The finite-sample term is left out. After a stop, the result holds the n that were completed before.

    Args:
        problem: The question; its ``num_rows`` is not used.
        rows_per_sample: The n to look at, each from 1 to 1e9.
        progress: Told the share of n done.
        should_stop: Asked between rounds of each search.

    Raises:
        InvalidInput: An n out of range, or a bias term that needs every user's share.

    Source: Amin et al. 2019, section 7.
    """
    limit_problem = replace(problem, finite_sample_constant=0.0, num_rows=None)
    problems_by_rows: dict[int, PopulationProblem] = {}
    with Problems() as problems:
        for sample_rows in rows_per_sample:
            with problems.collecting():
                problems_by_rows[sample_rows] = replace(limit_problem, num_rows=sample_rows)
    limit_choice = find_best_fraction(limit_problem, should_stop=should_stop)
    choices_by_rows: dict[int, LearningCap] = {}
    for sample_rows, sample_problem in problems_by_rows.items():
        best_choice = find_best_fraction(sample_problem, should_stop=should_stop)
        if not best_choice.is_complete:
            break
        choices_by_rows[sample_rows] = best_choice
        progress(len(choices_by_rows) / len(rows_per_sample))
    return CostOfPrivacy(tuple(choices_by_rows), tuple(choices_by_rows.values()), limit_choice)
