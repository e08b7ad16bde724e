"""The best bound for a private quantile, by the exact error on the given values and by the paper's bound.

Two answers to one question. The expected rank error depends on the values: the bound that minimises it
leaks unless the values are public. The paper's bound depends on the numbers of rows (public there) and on
what the person believes of the base distribution (alpha, beta): its best bound leaks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.common import weights
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, require
from dpcore.common.programs import Program
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import format_count
from dpcore.contributions import ContributionHistogram, FloatArray, build_log_grid
from dpcore.quantile.base_distribution import Base
from dpcore.quantile.mechanism import (
    QuantileProblem,
    check_bound,
    compute_standard_error,
    compute_subsample_errors,
    split_epsilon,
)
from dpcore.quantile.programs import BIGQUERY_ROWS
from dpcore.quantile.rows import WeightKind

MAX_TRIED_CAPS = 200
"""Most caps that are all tried."""
NUM_SEARCH_BOUNDS = 32
"""Points of either grid of a search."""


@dataclass(frozen=True)
class RankErrors:
    """Expected rank error against the bound. Computed from the values: as private as they are.

    Attributes:
        bounds: The bounds h that were tried, in rows per user, shape (k,).
        expected_errors: E|F(answer) - q|, shape (k,); under a cap the average over subsamples.
        standard_errors: Standard error of that average over subsamples, shape (k,); 0 where none matters, NaN where
            not known.
        is_cancelled: True if the search was stopped before all bounds were tried.
    """

    bounds: FloatArray
    expected_errors: FloatArray
    standard_errors: FloatArray
    is_cancelled: bool = False

    def with_more(self, other_errors: RankErrors) -> RankErrors:
        """Return these errors and those of another search together, by ascending bound."""
        order_by_bound = np.argsort(all_bounds := np.concatenate((self.bounds, other_errors.bounds)))
        return RankErrors(
            all_bounds[order_by_bound],
            np.concatenate((self.expected_errors, other_errors.expected_errors))[order_by_bound],
            np.concatenate((self.standard_errors, other_errors.standard_errors))[order_by_bound],
            self.is_cancelled or other_errors.is_cancelled,
        )


def compute_rank_errors(
    problem: QuantileProblem,
    weight_kind: WeightKind,
    bounds: npt.ArrayLike,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    quantiles: Sequence[float] | None = None,
) -> RankErrors:
    """Compute E|F(answer) - q| at each bound; each costs a pass over the rows, caps one per subsample.

    Exact for smooth weights; for caps the average over the problem's subsamples, each exact, the same for all caps. Of
    a tree the average over simulated releases, with the same noise for all caps.

    Args:
        problem: The question.
        weight_kind: Smooth weights or a cap.
        bounds: h > 0 in rows per user, whole for caps, shape (k,).
        progress: Called with the share done, from 0 to 1.
        should_stop: Called before each bound; True ends the search with the bounds tried so far.
        quantiles: Several quantiles in place of the problem's own, epsilon split evenly: the error is then the
            mean of theirs.

    Raises:
        InvalidInput: A bound cannot be one of its kind.
    """
    quantile_problems = [problem] if quantiles is None else split_epsilon(problem, quantiles)
    h = np.atleast_1d(np.asarray(bounds, dtype=np.float64))
    for bound in h:
        check_bound(weight_kind, float(bound))
    expected_errors, standard_errors = np.empty(h.shape), np.empty(h.shape)
    for i, bound in enumerate(h.tolist()):
        if should_stop():
            return RankErrors(h[:i], expected_errors[:i], standard_errors[:i], is_cancelled=True)
        trial_errors = compute_subsample_errors(quantile_problems, weight_kind, bound)
        expected_errors[i] = np.mean(trial_errors)
        standard_errors[i] = compute_standard_error(trial_errors, weight_kind, bound, problem.rows)
        progress((i + 1) / h.size)
    return RankErrors(h, expected_errors, standard_errors)


@dataclass(frozen=True)
class QuantileChoice:
    """The best bound found for the given values. It leaks: computed from the values themselves.

    Attributes:
        weight_kind: Smooth weights or a cap.
        bound: h in rows per user; whole for a cap.
        rank_error: E|F(answer) - q| there; for a cap on subsamples that it was not picked on.
        standard_error: Standard error of ``rank_error`` over the subsamples of a cap; 0 where none matters, NaN
            with one.
        num_subsamples: Number of subsamples, or of simulated releases, that ``rank_error`` is averaged over; 1 if
            exact.
        unbounded_rank_error: The same with no bound, all rows weighing the same.
        certificate: A lower bound only where every cap was tried, and then for the average over the subsamples of
            the search; otherwise none is claimed.
        stop_reason: How the search ended, a sentence.
        search_errors: All bounds tried, ascending, with their errors; those of caps on the subsamples of the search.
    """

    weight_kind: WeightKind
    bound: float
    rank_error: float
    standard_error: float
    num_subsamples: int
    unbounded_rank_error: float
    certificate: Certificate
    stop_reason: str
    search_errors: RankErrors


def find_best_bound(
    problem: QuantileProblem,
    weight_kind: WeightKind,
    num_bounds: int = NUM_SEARCH_BOUNDS,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    quantiles: Sequence[float] | None = None,
    max_tried_caps: int = MAX_TRIED_CAPS,
) -> QuantileChoice:
    """Find the bound with the least expected rank error of those tried: all of few caps, else two log-spaced grids.

    BigQuery's bound is fixed, so it alone is tried.

    The error has no known shape in h. All whole caps are tried where there are at most `MAX_TRIED_CAPS`; otherwise
    a log-spaced grid from the lightest user's rows to the heaviest's, then a finer one between the neighbours
    of its best point. Caps are compared by their average over the same random subsamples: on a single subsample the
    luckiest cap would win. On the sample of shop purchases (best cap 8, error 1.4 % over 600 subsamples) a search on
    one subsample understates the error of the cap that it picks by 0.32 % on average. The cap found is judged by other
    subsamples than those it was picked on.

    Args:
        problem: The question.
        weight_kind: Smooth weights or a cap.
        num_bounds: Points of either grid, at least 3.
        progress: Called with the share done, from 0 to 1.
        should_stop: Called before each bound; True ends the search with the best so far.
        quantiles: As in `rank_errors`.
        max_tried_caps: Up to so many whole caps are all tried; 0 for a grid in any case, which is faster.

    Raises:
        InvalidInput: ``num_bounds`` below 3.
    """
    require.whole(3, 100_000, points=num_bounds)
    min_size, max_size = problem.histogram.min_size, problem.histogram.max_size
    search_problem = problem.with_search_subsamples() if weight_kind is WeightKind.CAP else problem
    tries_all = weight_kind is WeightKind.CAP and max_size - min_size < max_tried_caps

    def compute_tried_errors(tried_bounds: FloatArray, progress_before: float) -> RankErrors:
        """Compute the errors of bounds on the subsamples of the search, after a progress of ``progress_before``."""

        def report_share(evaluation_progress: float) -> None:
            """Report the share of the whole search that is done."""
            progress(progress_before + evaluation_progress * (1.0 if tries_all else 0.5))

        return compute_rank_errors(
            search_problem, weight_kind, tried_bounds, report_share, should_stop, quantiles
        )

    grid_bounds = (
        np.arange(min_size, max_size + 1.0)
        if tries_all
        else _build_grid(weight_kind, min_size, max_size, num_bounds)
    )
    if problem.program is Program.BIGQUERY:
        grid_bounds, tries_all = np.array([float(BIGQUERY_ROWS)]), True
    # The unbounded case first: it is there whenever anything is.
    tried_errors = coarse_errors = compute_tried_errors(grid_bounds[::-1], 0.0)
    # Refined once: the error may have several local minima, so more digits at one of them would prove nothing.
    if not (tries_all or coarse_errors.is_cancelled or grid_bounds.size < 3):
        best_index = int(np.argmin(coarse_errors.expected_errors))
        # `coarse_errors` runs from the largest bound down.
        next_smaller_bound = coarse_errors.bounds[min(best_index + 1, grid_bounds.size - 1)]
        next_larger_bound = coarse_errors.bounds[max(best_index - 1, 0)]
        finer_grid = _build_grid(weight_kind, next_smaller_bound, next_larger_bound, num_bounds)
        finer_bounds = np.setdiff1d(finer_grid, grid_bounds)
        if finer_bounds.size:
            tried_errors = coarse_errors.with_more(compute_tried_errors(finer_bounds, 0.5))
    if not tried_errors.bounds.size:  # Stopped before the first: the unbounded case is owed all the same.
        tried_errors = compute_rank_errors(search_problem, weight_kind, grid_bounds[-1:], quantiles=quantiles)
        tried_errors = replace(tried_errors, is_cancelled=True)
    quantile_choice = _build_choice(search_problem, weight_kind, tried_errors, tries_all)
    if weight_kind is WeightKind.SMOOTH:
        return quantile_choice
    # The least of many noisy averages is too low on average, so the winner is measured again on other subsamples.
    errors_of_best = compute_rank_errors(problem, weight_kind, quantile_choice.bound, quantiles=quantiles)
    num_subsamples = problem.count_trials(weight_kind, quantile_choice.bound)
    trials_sentence = (
        f" The error is the average over {num_subsamples:,} other ones." if num_subsamples > 1 else ""
    )
    return replace(
        quantile_choice,
        rank_error=float(errors_of_best.expected_errors[0]),
        standard_error=float(errors_of_best.standard_errors[0]),
        num_subsamples=num_subsamples,
        stop_reason=quantile_choice.stop_reason + trials_sentence,
    )


def _build_grid(
    weight_kind: WeightKind, smallest_bound: float, largest_bound: float, max_num_bounds: int
) -> FloatArray:
    """Return at most about ``max_num_bounds`` log-spaced bounds, ascending; whole ones for a cap."""
    grid_bounds = build_log_grid(smallest_bound, largest_bound, max_num_bounds)
    return np.unique(np.round(grid_bounds)) if weight_kind is WeightKind.CAP else grid_bounds


def _build_choice(
    problem: QuantileProblem, weight_kind: WeightKind, tried_errors: RankErrors, tries_all: bool
) -> QuantileChoice:
    """Build the choice of the bound with the least error of those tried, with certificate and stop reason."""
    num_subsamples = problem.count_trials(weight_kind, float(tried_errors.bounds.min()))
    best_index = int(np.argmin(tried_errors.expected_errors))
    least_error, num_bounds = float(tried_errors.expected_errors[best_index]), tried_errors.bounds.size
    is_proved = tries_all and not tried_errors.is_cancelled
    bounds_text = format_count(num_bounds, "bound")
    if tried_errors.is_cancelled:
        stop_reason = f"Stopped early: the best of {bounds_text} tried."
    elif not is_proved:
        stop_reason = f"The best of {bounds_text} tried; nothing is proved between them."
    elif num_bounds > 1:
        stop_reason = f"All {num_bounds:,} bounds were tried."
    else:
        stop_reason = "Exact: there is only one bound to try."
    certificate_argument = "every bound was tried"
    if num_subsamples > 1:
        stop_reason += f" All used the same {num_subsamples:,} {problem.trial_name}s."
        certificate_argument = (
            f"{certificate_argument}, for the average over {num_subsamples:,} {problem.trial_name}s alone"
        )
    if not is_proved:
        certificate_argument = "only some bounds were tried"
    return QuantileChoice(
        weight_kind=weight_kind,
        bound=float(tried_errors.bounds[best_index]),
        rank_error=least_error,
        standard_error=float(tried_errors.standard_errors[best_index]),
        num_subsamples=num_subsamples,
        unbounded_rank_error=float(tried_errors.expected_errors[int(np.argmax(tried_errors.bounds))]),
        certificate=Certificate(least_error, least_error if is_proved else -math.inf, certificate_argument),
        stop_reason=stop_reason,
        search_errors=tried_errors.with_more(RankErrors(*np.empty((3, 0)))),
    )


def compute_base_errors(
    problem: QuantileProblem,
    bases: Sequence[Base],
    weight_kind: WeightKind,
    bound: float,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    quantiles: Sequence[float] | None = None,
) -> FloatArray:
    """Return E|F(answer) - q| under each of several base distributions, in place of the problem's own.

    Args:
        problem: The question.
        bases: The base distributions; each costs a sort of the rows.
        weight_kind: Smooth weights or a cap.
        bound: h > 0 in rows per user, whole for a cap.
        progress: Called with the share done, from 0 to 1.
        should_stop: Called before each; True ends with what there is.
        quantiles: As in `rank_errors`.

    Returns:
        Shape (len(bases),); NaN where not computed.

    Raises:
        InvalidInput: ``bound`` cannot be one of its kind.
    """
    base_errors = np.full(len(bases), np.nan)
    for k, base in enumerate(bases):
        if should_stop():
            break
        base_problem = problem.with_base(base)
        base_errors[k] = compute_rank_errors(
            base_problem, weight_kind, bound, quantiles=quantiles
        ).expected_errors[0]
        progress((k + 1) / len(bases))
    return base_errors


def compute_base_mass(problem: QuantileProblem, alpha: float) -> float:
    """Return nu{y : |F(y) - q| <= alpha} on the given values, beta of assumption 1. As private as the values are.

    A base distribution that gives little mass to where the quantile lies hurts: the answer pays
    (2 W / epsilon) ln(1 / beta) in rank. With ties it can be 0.

    Args:
        problem: The question.
        alpha: Distance in rank, at least 0.

    Raises:
        InvalidInput: ``alpha`` negative or not finite.
    """
    require.non_negative(alpha=alpha)
    rows = problem.rows
    near_quantile_mask = np.abs(rows.shares_below - problem.quantile) <= alpha + 1e-12
    return min(float(np.sum(np.exp(rows.log_base_masses[near_quantile_mask]))), 1.0)


def compute_trade_off(
    num_rows: float, epsilon: float, beta: float, gamma: float, is_for_population: bool
) -> float:
    """Return A of `RankBound.trade_off` for a number of rows; public if ``num_rows`` is."""
    log_rows, log_inverse_mass = math.log(2.0 * num_rows) - math.log(gamma), -math.log(gamma) - math.log(beta)
    trade_off = epsilon**2 * log_rows / (8.0 * log_inverse_mass**2)
    return 4.0 * trade_off if is_for_population else trade_off


@dataclass(frozen=True)
class RankBound:
    """The paper's bound on the rank error, as a question about the numbers of rows alone.

    With probability 1 - 2 gamma (claims 5 and 6 together),

        |weighted-rank(answer) - q| <= alpha + eta + (2 W / epsilon) ln(1 / (gamma beta)),
        eta = sqrt(ln(2 n / gamma) / 2 * sum c_i^2) + max c_i.

    The text prints max c_i under the root; the proof has it outside, as here. The distance to the quantile of
    the population takes eta once more (claim 5 again; corollary 1 hides that in its O).

    Attributes:
        histogram: Rows per user; public in this setting.
        epsilon: Privacy budget, above 0.
        alpha: Distance in rank at which the base is judged, at least 0.
        beta: Mass that the base gives to within alpha of the quantile, in (0, 1].
        gamma: Half the probability that the bound fails, in (0, 1/2).
        is_for_population: Whether the distance is to the population's quantile (eta twice) or in weighted rank.
        public_rows: n as the best bound takes it, where that of the data is private; None for that of the data. It
            stands under a logarithm: 100 times as many rows change A by less than half.

    Raises:
        InvalidInput: A figure is out of its range; all problems at once.

    Source: Epasto et al. 2020, appendix B, claims 5 and 6, corollary 1.
    """

    histogram: ContributionHistogram
    epsilon: float
    alpha: float
    beta: float
    gamma: float = 0.05
    is_for_population: bool = False
    public_rows: int | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every parameter that is out of its range."""
        with Problems() as problems:
            problems.of_kind(ContributionHistogram, histogram=self.histogram)
            problems.positive(epsilon=self.epsilon)
            problems.non_negative(alpha=self.alpha)
            if problems.positive(beta=self.beta) and self.beta > 1.0:
                problems.add(f"beta is a probability; got {self.beta!r}")
            problems.inside(0.0, 0.5, gamma=self.gamma)

    @property
    def trade_off(self) -> float:
        """Return A such that W^2 + A sum c_i^2 is, up to a factor, the sum of the bound's two squared main terms.

        epsilon^2 ln(2 n / gamma) / (8 ln^2(1 / (gamma beta))); four times that for the population's quantile.
        The bound itself adds the two terms: that is at most sqrt(2) times the root of the sum of squares.
        """
        num_rows = self.histogram.num_rows if self.public_rows is None else self.public_rows
        return compute_trade_off(num_rows, self.epsilon, self.beta, self.gamma, self.is_for_population)

    def compute(self, weight_kind: WeightKind, bounds: npt.ArrayLike) -> FloatArray:
        """Return the paper's bound on the rank error at each h > 0 (any shape)."""
        h = np.asarray(bounds, dtype=np.float64)
        # Heaviest row: one of the lightest user's, min(h, s_1) / (s_1 n_h); under a cap every kept row.
        min_size = float(self.histogram.min_size)
        max_row_weights = 1.0 / self.histogram.count_kept_rows(h)
        if weight_kind is WeightKind.SMOOTH:
            weight_losses = weights.compute_smooth_losses(self.histogram, h)
            max_row_weights = max_row_weights * np.minimum(h, min_size) / min_size
        else:
            weight_losses = weights.compute_capped_losses(self.histogram, h)
        # A user with h rows or more weighs most; above s_m nobody has h rows.
        max_user_weights = weight_losses.largest_weight * np.minimum(h, self.histogram.max_size) / h
        log_rows = math.log(2.0 * self.histogram.num_rows) - math.log(self.gamma)
        eta = np.sqrt(log_rows / 2.0 * weight_losses.squared_weights) + max_row_weights
        log_inverse_mass = -math.log(self.gamma) - math.log(self.beta)
        total_eta = eta * (2.0 if self.is_for_population else 1.0)
        return np.asarray(self.alpha + total_eta + 2.0 * max_user_weights / self.epsilon * log_inverse_mass)

    def find_optimum(self, weight_kind: WeightKind) -> weights.Optimum:
        """Return the h that minimises the trade-off form, exactly, with a certificate for that form."""
        find_optimum = weights.find_best_smooth if weight_kind is WeightKind.SMOOTH else weights.find_best_cap
        return find_optimum(self.histogram, self.trade_off)
