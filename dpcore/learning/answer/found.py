"""The solution for a learner under a cap: the best cap, its curves, and the limits of their axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.answer.against import BoundComparison
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import ErrorParts, LearningCap
from dpcore.learning.optimal_cap import BiasProblem
from dpcore.learning.parameters import NOT_ABOUT_DATA, LearningParameters

CURVE_POINTS = 240

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the cap's axis and of the bound's."""


@dataclass(frozen=True)
class LearningSolution:
    """All that depends on data and question, but not on a cap of the person's own.

    Attributes:
        problem: The question on these data.
        choice: The best whole cap.
        near_optimal: Smallest and largest cap within 5 % of the best bound.
        curves: What the figures draw at whole caps, ascending, as columns of shape (points,);
            see `compute_curves`.
    """

    problem: BiasProblem
    choice: LearningCap
    near_optimal: tuple[int, int]
    curves: Mapping[str, FloatArray]

    def fraction(self, cap: float) -> float:
        """Return tau_0 of a cap in rows per user; above all rows together it stays 1."""
        return min(cap / float(self.problem.histogram.num_rows), 1.0)

    def error_parts_at(self, cap: float) -> ErrorParts:
        """Return the bound in its parts at one cap, in rows per user."""
        return optimal_cap.error_parts(self.problem, self.fraction(cap))

    def bound_at(self, cap: float) -> float:
        """Return the bound at one cap, in rows per user."""
        return float(self.error_parts_at(cap).total)


def solve(data: Dataset, parameters: LearningParameters) -> LearningSolution:
    """Find the best cap for these data, and compute the curves around it."""
    problem = parameters.problem(data.histogram)
    choice = optimal_cap.best_cap(problem)
    tau_0 = np.union1d(optimal_cap.fractions_for_curves(problem.histogram, CURVE_POINTS), [choice.fraction])
    return LearningSolution(
        problem=problem,
        choice=choice,
        near_optimal=optimal_cap.caps_within(problem, choice),
        curves=compute_curves(problem, tau_0),
    )


def compute_curves(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """Return the bound of a capped learner in its parts, and every bound on the bias (twice), as columns.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. What
    does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    cap_statistics, parts = (
        optimal_cap.statistics(problem.histogram, tau_0),
        optimal_cap.error_parts(problem, tau_0),
    )
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": cap_statistics.kept_share,
        "largest_share": cap_statistics.max_share,
        "users_capped": cap_statistics.users_capped,
        "bias_twice": parts.bias,
        "finite_sample": parts.finite_sample,
        "privacy_noise": parts.privacy,
        "bound": parts.total,
        **{
            f"twice_{term.value}": 2.0 * values
            for term, values in optimal_cap.bias_terms(problem, tau_0).items()
        },
    }


NOT_COMPARED = NOT_ABOUT_DATA


def against_epsilon(data: Dataset, parameters: LearningParameters) -> BoundComparison:
    """Return the best cap and its bound on the excess risk at any epsilon."""
    problem, rows = parameters.problem(data.histogram), float(data.histogram.num_rows)

    def best(epsilon: float) -> tuple[float, float]:
        choice = optimal_cap.best_cap(replace(problem, epsilon=epsilon))
        return float(choice.cap), choice.total

    def error(epsilon: float, caps: FloatArray) -> FloatArray:
        fractions = np.minimum(caps / rows, 1.0)
        return np.asarray(optimal_cap.error_parts(replace(problem, epsilon=epsilon), fractions).total)

    histogram = data.histogram
    return BoundComparison(
        "Best bound (rows per user)",
        "Bound on the excess risk",
        best,
        error,
        histogram.sizes,
        histogram.users,
    )


def solve_rivals(problem: BiasProblem) -> dict[BiasTerm, LearningCap]:
    """Return the best cap under every bound on the bias."""
    return {term: optimal_cap.best_cap(replace(problem, bias=term)) for term in BiasTerm}


def axis_limits(solution: LearningSolution) -> Limits:
    """Return (from, to) of the cap's axis, in rows per user, and of the bound's; no number that is entered moves them.

    The cap's axis ends where nobody has more rows, or at n where the bound on the bias goes on falling. The
    bound's axis starts below what sampling alone costs at d = 1, since a smaller bound would be of no interest,
    and ends at 10: above 1 a bound says nothing.
    """
    n, heaviest = float(solution.problem.histogram.num_rows), float(solution.problem.histogram.max_size)
    largest_cap = n if solution.problem.bias.needs_only_the_fraction else min(n, 2.0 * heaviest)
    smallest_bound = math.sqrt(math.log(20.0 * n) / n)
    return (1.0, max(largest_cap, 2.0)), (
        10.0 ** math.floor(math.log10(max(smallest_bound, 1e-9) / 2.0)),
        10.0,
    )


def list_capped_users(
    solution: LearningSolution, cap: int, limit: int = 50
) -> tuple[dict[str, FloatArray], int]:
    """Return who loses rows under a cap, as columns, and how many further sizes are not listed."""
    capped = optimal_cap.capped_users(solution.problem.histogram, solution.fraction(cap), limit)
    return {
        "size": capped.sizes,
        "users": capped.users,
        "rows_cut": capped.rows_cut,
        "share_before": capped.share_before,
        "share_after": np.full(capped.sizes.shape, capped.share_after),
    }, capped.sizes_left_out
