"""The answer of the page Learning under a cap, computed once for a question and a data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import Against
from dpcore.common import wording
from dpcore.common.shared_bound import Sharer
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import files, optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import ErrorParts, LearningCap
from dpcore.learning.optimal_cap import BiasProblem
from dpcore.learning.parameters import NOT_ABOUT_DATA, LearningParameters

CURVE_POINTS = 240
MINIMA = (BiasTerm.PROPOSITION_1, BiasTerm.TIGHTEST)
"""Bounds that are the smaller of two others: they stand in the table, and not among the curves."""

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the cap's axis and of the bound's."""


@dataclass(frozen=True)
class LearningView:
    """Everything the page shows that depends on data and question.

    Attributes:
        problem: The question on these data.
        choice: The best whole cap.
        within: Smallest and largest cap within 5 % of the best bound.
        curves: What the figures draw at whole caps, ascending, as columns of shape (points,);
            see `dpcore.learning.files.learning_curves`.
    """

    problem: BiasProblem
    choice: LearningCap
    within: tuple[int, int]
    curves: Mapping[str, FloatArray]

    def fraction(self, cap: float) -> float:
        """tau_0 of a cap in rows per user; above all rows together it stays 1."""
        return min(cap / float(self.problem.histogram.num_rows), 1.0)

    def parts_at(self, cap: float) -> ErrorParts:
        """The bound in its parts at one cap, in rows per user."""
        return optimal_cap.error_parts(self.problem, self.fraction(cap))

    def bound_at(self, cap: float) -> float:
        """The bound at one cap, in rows per user."""
        return float(self.parts_at(cap).total)


def compute(problem: BiasProblem) -> LearningView:
    """Solve and evaluate."""
    choice = optimal_cap.best_cap(problem)
    tau_0 = np.union1d(optimal_cap.fractions_for_curves(problem.histogram, CURVE_POINTS), [choice.fraction])
    return LearningView(
        problem=problem,
        choice=choice,
        within=optimal_cap.caps_within(problem, choice),
        curves=files.learning_curves(problem, tau_0),
    )


NOT_COMPARED = NOT_ABOUT_DATA


def against_epsilon(data: Dataset, parameters: LearningParameters) -> Against:
    """The best cap and its bound on the excess risk at any epsilon."""
    problem, rows = parameters.problem(data.histogram), float(data.histogram.num_rows)

    def best(epsilon: float) -> tuple[float, float]:
        found = optimal_cap.best_cap(replace(problem, epsilon=epsilon))
        return float(found.cap), found.total

    def error(epsilon: float, caps: FloatArray) -> FloatArray:
        fractions = np.minimum(caps / rows, 1.0)
        return np.asarray(optimal_cap.error_parts(replace(problem, epsilon=epsilon), fractions).total)

    def sharer(epsilon: float) -> Sharer:
        at = replace(problem, epsilon=epsilon)
        found = optimal_cap.best_cap(at)
        return Sharer(
            lambda cap: float(error(epsilon, np.array([cap]))[0]),
            float(found.cap),
            found.total,
            found.certificate.lower_bound,
            lambda caps: optimal_cap.parts(at, caps),
            (1.0, optimal_cap.largest_cap(at)),
        )

    histogram = data.histogram
    return Against(
        "Best cap (rows per user)",
        "Bound on the excess risk",
        best,
        error,
        histogram.sizes,
        histogram.users,
        sharer=sharer,
    )


@dataclass(frozen=True)
class Rivals:
    """The same question under every bound on the bias.

    Attributes:
        choices: Best cap under each bound.
    """

    choices: Mapping[BiasTerm, LearningCap]


def rivals(problem: BiasProblem) -> Rivals:
    """The best cap under every bound on the bias."""
    return Rivals({term: optimal_cap.best_cap(replace(problem, bias=term)) for term in BiasTerm})


def axis_limits(view: LearningView) -> Limits:
    """(from, to) of the cap's axis, in rows per user, and of the bound's; no number that is entered moves them.

    The cap's axis ends where nobody has more rows, or at n where the bound on the bias goes on falling. The
    bound's axis starts below what sampling alone costs at d = 1, since a smaller bound would be of no interest,
    and ends at 10: above 1 a bound says nothing.
    """
    n, heaviest = float(view.problem.histogram.num_rows), float(view.problem.histogram.max_size)
    most = n if view.problem.bias.needs_only_the_fraction else min(n, 2.0 * heaviest)
    least = math.sqrt(math.log(20.0 * n) / n)
    return (1.0, max(most, 2.0)), (10.0 ** math.floor(math.log10(max(least, 1e-9) / 2.0)), 10.0)


def rival_rows(view: LearningView, others: Rivals, own_cap: int | None) -> list[dict[str, str]]:
    """The table of all bounds on the bias, one entry per bound, each twice as in theorem 1."""
    at_best = optimal_cap.bias_terms(view.problem, view.choice.fraction)
    at_own = optimal_cap.bias_terms(view.problem, view.fraction(own_cap)) if own_cap is not None else {}
    rows = []
    for term in BiasTerm:
        choice = others.choices[term]
        row = {
            "Way": term.group,
            "Bound": term.title,
            "Needs": _needs(term),
            "Twice, at the best cap": _bound(2.0 * float(at_best[term])),
        }
        if at_own:
            row["Twice, at your cap"] = _bound(2.0 * float(at_own[term]))
        row["Best cap under it"] = wording.counted(round(choice.cap), "row")
        row["Its bound"] = wording.number(choice.total)
        row["Formula"] = f"${term.formula}$"
        rows.append(row)
    return rows


def _needs(term: BiasTerm) -> str:
    what = "τ₀" if term.needs_only_the_fraction else "all shares" if term.needs_shares else "$n_\\tau/n$"
    return f"{what}, Var(H)" if term.needs_variance else what


def _bound(value: float) -> str:
    return wording.number(value) if math.isfinite(value) else "does not apply"


def capped_rows(view: LearningView, cap: int, limit: int = 50) -> tuple[dict[str, FloatArray], int]:
    """Who loses rows under a cap, as columns, and how many further sizes are not listed."""
    found = optimal_cap.capped_users(view.problem.histogram, view.fraction(cap), limit)
    return {
        "size": found.sizes,
        "users": found.users,
        "rows_cut": found.rows_cut,
        "share_before": found.share_before,
        "share_after": np.full(found.sizes.shape, found.share_after),
    }, found.sizes_left_out
