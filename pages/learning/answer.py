"""The answer of the page Learning under a cap, computed once for a question and a data set, and put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore import learning
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.optimal_cap import BiasProblem, BiasTerm, CapChoice
from pages.shared import code_choices
from pages.shared.cards import AnswerCard, Figure

CURVE_POINTS = 240
MINIMA = (BiasTerm.PROPOSITION_1, BiasTerm.TIGHTEST)
"""Bounds that are the smaller of two others: in the table, not among the curves."""


@dataclass(frozen=True)
class LearningView:
    """Everything the page shows that depends on data and question.

    Attributes:
        problem: The question on these data.
        choice: The best whole cap.
        within: Smallest and largest cap within 5 % of the best bound.
        fractions: tau_0 of the curves, at whole caps, ascending, shape (points,).
        statistics: What the caps do, over ``fractions``.
        parts: The bound in its parts, over ``fractions``.
    """

    problem: BiasProblem
    choice: CapChoice
    within: tuple[int, int]
    fractions: FloatArray
    statistics: optimal_cap.CapStatistics
    parts: optimal_cap.ErrorParts

    @property
    def num_rows(self) -> float:
        return float(self.problem.histogram.num_rows)

    @property
    def caps(self) -> FloatArray:
        """Caps of the curves in rows per user."""
        return np.asarray(np.rint(self.fractions * self.num_rows))

    def fraction(self, cap: float) -> float:
        """tau_0 of a cap in rows per user; above all rows together it stays 1."""
        return min(cap / self.num_rows, 1.0)

    def parts_at(self, cap: float) -> optimal_cap.ErrorParts:
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
        fractions=tau_0,
        statistics=optimal_cap.statistics(problem.histogram, tau_0),
        parts=optimal_cap.error_parts(problem, tau_0),
    )


@dataclass(frozen=True)
class Rivals:
    """The same question under every bound on the bias.

    Attributes:
        choices: Best cap under each bound.
    """

    choices: Mapping[BiasTerm, CapChoice]


def rivals(problem: BiasProblem) -> Rivals:
    """The best cap under every bound on the bias."""
    return Rivals({term: optimal_cap.best_cap(replace(problem, bias=term)) for term in BiasTerm})


def axis_limits(view: LearningView) -> tuple[tuple[float, float], tuple[float, float]]:
    """(from, to) of the axis of tau_0 and of the bound's; they depend on the data alone.

    The bound's axis starts below what sampling alone costs at d = 1, since a smaller bound would be of no
    interest, and ends at 10: above 1 a bound says nothing.
    """
    n = view.num_rows
    least = math.sqrt(math.log(20.0 * n) / n)
    return (min(1.0 / n, 0.5), 1.0), (10.0 ** math.floor(math.log10(max(least, 1e-9) / 2.0)), 10.0)


def card(view: LearningView, dataset: Dataset, parameters: learning.LearningParameters) -> AnswerCard:
    """The answer in words."""
    choice = view.choice
    rows = wording.counted(choice.max_contributions, "row")
    facts = [
        ("Good enough", _good_enough(view)),
        ("Half or double", _half_or_double(view)),
        ("Who is capped", _who(view)),
    ]
    if parameters.own_cap is not None:
        facts.append(
            (f"Your cap, {wording.counted(parameters.own_cap, 'row')}", own_sentence(view, parameters))
        )
    return AnswerCard(
        headline=(
            f"Keep at most {rows} per user: the bound on the excess risk is smallest, "
            f"{wording.number(choice.total)}."
        ),
        detail=_detail(view, dataset),
        figures=(
            Figure("Best cap", rows, f"τ₀ = {wording.number(choice.fraction)}", _CAP),
            Figure("Bias, twice", wording.number(choice.bias), _share(choice.bias, choice), _BIAS),
            Figure(
                "Finite sample",
                wording.number(choice.finite_sample),
                _share(choice.finite_sample, choice),
                _FINITE,
            ),
            Figure("Privacy noise", wording.number(choice.privacy), _share(choice.privacy, choice), _PRIVACY),
        ),
        facts=tuple(facts),
        assumptions=learning.ASSUMPTIONS,
        proofs=(("Cap", choice.certificate, choice.ended),),
        sensitivity=dataset.provenance,
        code=code_choices.of_learning(view, dataset, parameters.epsilon),
    )


_CAP = "Upper bound on contributions per user, τ. τ₀ is the same as a share of all rows."
_BIAS = (
    "Capping changes whose rows count how much; a model is then judged on the wrong mix of users. Theorem 1 carries "
    "this bias twice: once for the model returned, once for the best one."
)
_FINITE = (
    "What any learner pays for seeing a finite sample: $C \\sqrt{d \\log(n/\\delta)/n_\\tau}$. It grows as rows are "
    "thrown away."
)
_PRIVACY = (
    "What hiding one user costs: F(largest share, 1/ε, 3/δ). It grows with the largest share of a user."
)


def _share(part: float, choice: CapChoice) -> str:
    return f"{wording.percent(part / choice.total)} of the bound" if choice.total > 0.0 else ""


LEAKS = (
    "Your data are private, and a cap read off them is too: using it in a release reveals something about who has "
    "how many rows."
)


def _detail(view: LearningView, dataset: Dataset) -> str:
    choice, settings = view.choice, view.problem
    sentences = []
    if choice.total >= 1.0:
        sentences.append(
            "**Above 1 the bound promises nothing**, since losses lie in [0, 1]: it only says which cap is better."
        )
    if choice.users_capped == 0:
        sentences.append("This caps nobody: here privacy noise is cheap beside the bias of any lower cap.")
    if settings.loss_variance == 0.0 and settings.bias.needs_variance:
        sentences.append("Users are taken to be alike (Var(H) = 0), so capping them biases nothing.")
    if view.problem.histogram.num_users == 1:
        sentences.append("There is one user only, who is everything that can be learnt.")
    if dataset.is_private:
        sentences.append(LEAKS)
    return " ".join(sentences)


def _good_enough(view: LearningView) -> str:
    low, high = view.within
    if low == high:
        if view.problem.histogram.max_size == 1:
            return "nobody has more than one row, so there is nothing to choose."
        return f"only {wording.counted(low, 'row')}; its neighbours are more than 5{wording.PERCENT} worse."
    no_more = (
        " or more, as nobody has more rows"
        if high == view.problem.histogram.max_size and not view.problem.bias.needs_only_the_fraction
        else ""
    )
    return (
        f"any cap from {wording.number(low)} to {wording.counted(high, 'row')}{no_more} stays within "
        f"5{wording.PERCENT} of the best bound."
    )


def _half_or_double(view: LearningView) -> str:
    cap, best = view.choice.max_contributions, view.choice.total
    parts = []
    for name, other in (("half", cap // 2), ("double", 2 * cap)):
        if other < 1:
            continue
        bound = view.bound_at(other)
        costs = (
            f"costs {wording.change(bound, best)}"
            if math.isfinite(bound)
            else "is where this bound does not apply"
        )
        parts.append(f"{name} ({wording.number(other)}) {costs}")
    return ", ".join(parts) + "."


def _who(view: LearningView) -> str:
    histogram, choice = view.problem.histogram, view.choice
    before = histogram.max_size / histogram.num_rows
    if choice.users_capped == 0:
        return f"nobody; the heaviest user holds {wording.percent(before)} of all rows."
    at = optimal_cap.statistics(histogram, choice.fraction)
    return (
        f"{wording.counted(choice.users_capped, 'user')} of {wording.number(histogram.num_users)}; "
        f"{wording.percent(float(at.cut_share))} of all rows are left out. The heaviest user's share falls from "
        f"{wording.percent(before)} to {wording.percent(float(at.max_share))}."
    )


def own_sentence(view: LearningView, parameters: learning.LearningParameters) -> str:
    """The person's own cap beside the best one."""
    cap = parameters.own_cap or 1
    parts = view.parts_at(cap)
    total = float(parts.total)
    if not math.isfinite(total):
        return "this bound on the bias says nothing there: less than a quarter of the rows is kept."
    split = ", ".join(
        f"{name} {wording.number(float(part))}"
        for name, part in (
            ("bias", parts.bias),
            ("finite sample", parts.finite_sample),
            ("privacy noise", parts.privacy),
        )
    )
    return (
        f"bound {wording.number(total)} ({split}), {wording.change(total, view.choice.total)}"
        " compared with the best cap."
    )


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
