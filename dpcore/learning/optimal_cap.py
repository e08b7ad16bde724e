"""Learning under a bound: keep at most tau = tau_0 n rows per user, then run a private learner.

The bound that is minimised, written (*), is that of `dpcore.learning.error_bound`; its bias is bounded in one of
the ways of `dpcore.learning.bias_bounds`. The population side, n toward infinity, is `dpcore.learning.population`.

Source: Amin et al. 2019, sections 4 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import Minimum, find_interval_within, minimise
from dpcore.common.checks import Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, log_spaced
from dpcore.learning.bias_bounds import AboveSums, BiasTerm, CapStatistics, cap_statistics, evaluate
from dpcore.learning.error_bound import (
    TOLERANCE,
    BoundSettings,
    ErrorParts,
    LearningCap,
    build_cap,
    describe_search,
)


@dataclass(frozen=True, kw_only=True)
class BiasProblem(BoundSettings):
    """The question: which cap gives the smallest bound (*) for these users?

    Attributes:
        histogram: Rows per user. Whatever is computed from it, the best cap too, is as private as it is.
    """

    histogram: ContributionHistogram

    def _check_contributors(self, problems: Problems) -> None:
        problems.of_kind(ContributionHistogram, histogram=self.histogram)


@dataclass(frozen=True)
class CappedUsers:
    """The users who lose rows under a cap, heaviest first, one entry per distinct size.

    Attributes:
        sizes: Rows per user, above the cap.
        users: Users who have that many.
        rows_cut: Rows lost, by all of them.
        share_before: Share of all rows that one such user holds, n_j / n.
        share_after: Share of the kept rows that one such user holds, tau / n_tau.
        sizes_left_out: Further distinct sizes above the cap that were not asked for.
    """

    sizes: IntArray
    users: IntArray
    rows_cut: FloatArray
    share_before: FloatArray
    share_after: float
    sizes_left_out: int


def _caps(histogram: ContributionHistogram, fractions: npt.ArrayLike) -> FloatArray:
    """Return the caps tau_0 n in rows; a product within rounding of a whole number counts as that number."""
    tau_0 = np.asarray(fractions, dtype=np.float64)
    if not np.all((tau_0 > 0.0) & (tau_0 <= 1.0)):
        raise refuse("tau_0 must lie above 0 and at most at 1")
    caps = tau_0 * histogram.num_rows
    rounded = np.rint(caps)
    return np.where(np.abs(caps - rounded) <= 1e-12 * caps, rounded, caps)


def _statistics(histogram: ContributionHistogram, caps: FloatArray) -> CapStatistics:
    n = float(histogram.num_rows)
    is_empty = caps < 1.0
    s = cap_statistics(
        histogram.pieces,
        np.where(is_empty, 1.0, caps),
        total=n,
        largest=float(histogram.max_size),
        above_sums=AboveSums(histogram.rows_above, histogram.excess),
    )
    unknown = dict.fromkeys(("max_share", "total_variation", "chi_squared"), np.nan)
    below_one_row = {
        "kept_share": 0.0,
        "cut_share": 1.0,
        "users_capped": float(histogram.num_users),
        **unknown,
    }
    adjusted = {name: np.where(is_empty, value, getattr(s, name)) for name, value in below_one_row.items()}
    return replace(
        s, fraction=np.asarray(caps / n), rows_capped=np.where(is_empty, 1.0, s.rows_capped), **adjusted
    )


def statistics(histogram: ContributionHistogram, fractions: npt.ArrayLike) -> CapStatistics:
    """Compute which shares the users hold, and how much is cut, under caps of tau = tau_0 n rows.

    Args:
        histogram: Rows per user.
        fractions: tau_0 in (0, 1], any shape. tau may be real, for curves; below one row it keeps nothing.

    Returns:
        `CapStatistics` of the shape of ``fractions``; O(log k) each for k distinct sizes.

    Raises:
        InvalidInput: A fraction outside (0, 1].

    Source: Amin et al. 2019, section 5.
    """
    return _statistics(histogram, _caps(histogram, fractions))


def bias_terms(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[BiasTerm, FloatArray]:
    """Return every bound on the bias (once, not twice) at each tau_0; see `dpcore.learning.bias_bounds.evaluate`."""
    s = statistics(problem.histogram, fractions)
    return {term: evaluate(term, s, problem.loss_variance) for term in BiasTerm}


def error_parts(problem: BiasProblem, fractions: npt.ArrayLike) -> ErrorParts:
    """Return the bound (*) in its parts at each tau_0 in (0, 1]; arguments as `statistics`.

    Source: Amin et al. 2019, theorem 1; the largest share is min(tau, max n_j) / n_tau.
    """
    return problem.error_parts(statistics(problem.histogram, fractions), float(problem.histogram.num_rows))


def fractions_for_curves(histogram: ContributionHistogram, points: int = 200) -> FloatArray:
    """Return log-spaced tau_0 at whole caps from one row to n, the heaviest user's size among them."""
    n = float(histogram.num_rows)
    return np.unique(np.rint(log_spaced(1.0, n, points, extra=(float(histogram.max_size),)))) / n


def best_cap(
    problem: BiasProblem,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
    is_integer: bool = True,
) -> LearningCap:
    """Return the best cap between one row and n, proved by branch and bound.

    Args:
        problem: The question.
        progress: Told the settled share of the range, from 0 to 1.
        should_stop: Asked between rounds; where it says yes the best so far is returned, with its proof.
        is_integer: Whether tau = tau_0 n is a whole number.

    Returns:
        `LearningCap`; its certificate covers every such cap. Above the heaviest user's size nothing changes
        but the forms in tau_0 alone.
    """
    histogram, n = problem.histogram, float(problem.histogram.num_rows)
    minimum = minimise(
        lambda caps: problem.split(_statistics(histogram, caps), n),
        1.0,
        largest_cap(problem),
        is_integer=is_integer,
        tolerance=TOLERANCE,
        progress=progress,
        should_stop=should_stop,
    )
    best_statistics = _statistics(histogram, np.asarray(minimum.argument))
    return build_cap(
        problem,
        best_statistics,
        minimum,
        n,
        minimum.argument,
        _describe_stop(minimum, float(best_statistics.users_capped) == 0.0),
    )


def caps_within(problem: BiasProblem, choice: LearningCap, excess: float = 0.05) -> tuple[int, int]:
    """Return the caps around the best one whose bound (*) is at most (1 + ``excess``) times the best.

    Args:
        problem: The question.
        choice: Its answer, from `best_cap`.
        excess: By how much the bound may be larger, at least 0.

    Returns:
        (smallest, largest) cap in rows per user; every whole cap between them is as good, proved. The largest
        ends at the heaviest user's size, beyond which nothing changes but the forms in tau_0 alone.
    """
    n = float(problem.histogram.num_rows)
    low, high = find_interval_within(
        lambda caps: problem.split(_statistics(problem.histogram, caps), n),
        choice.cap,
        1.0,
        largest_cap(problem),
        # A rounding more, so that the best cap itself is never beyond it.
        choice.total * (1.0 + excess) * (1.0 + 1e-12),
    )
    return int(low), int(high)


def largest_cap(problem: BiasProblem) -> float:
    """Return the cap in rows beyond which no larger one changes anything."""
    histogram = problem.histogram
    return float(histogram.num_rows if problem.bias.needs_only_the_fraction else histogram.max_size)


def _describe_stop(minimum: Minimum, nobody_capped: bool) -> str:
    search_result = describe_search(minimum)
    if nobody_capped:
        return f"Nobody loses rows. {search_result}"
    return f"One row per user is best. {search_result}" if minimum.argument == 1.0 else search_result


def capped_users(histogram: ContributionHistogram, fraction: float, limit: int = 50) -> CappedUsers:
    """List who loses rows under a cap of tau_0 n rows, heaviest first.

    Args:
        histogram: Rows per user.
        fraction: tau_0 in (0, 1].
        limit: Distinct sizes listed at most.

    Raises:
        InvalidInput: ``fraction`` outside (0, 1].
    """
    cap = float(_caps(histogram, fraction))
    n = float(histogram.num_rows)
    kept_cap = cap if cap >= 1.0 else 0.0
    first = int(np.searchsorted(histogram.sizes, kept_cap, side="right"))
    start = max(first, histogram.sizes.size - limit)
    sizes, users = histogram.sizes[start:][::-1], histogram.users[start:][::-1]
    return CappedUsers(
        sizes=sizes,
        users=users,
        rows_cut=(sizes.astype(np.float64) - kept_cap) * users,
        share_before=sizes / n,
        share_after=kept_cap / float(histogram.kept_rows(kept_cap)) if kept_cap else 0.0,
        sizes_left_out=start - first,
    )
