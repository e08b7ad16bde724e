"""The answer of the page Learning under a cap in words."""

from __future__ import annotations

import math

from dpcore import learning
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.optimal_cap import LearningCap
from pages.learning import code
from pages.learning.answer import LearningView
from pages.shared.cards import AnswerCard, Figure


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
            (f"Your cap, {wording.counted(parameters.own_cap, 'row')}", _own_sentence(view, parameters))
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
        code=code.of_learning(view, dataset, parameters.epsilon),
    )


_CAP = "The upper bound on contributions per user, τ. τ₀ is the same cap as a share of all rows."
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


def _share(part: float, choice: LearningCap) -> str:
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
        sentences.append(
            "This cap cuts nobody's rows, since privacy noise costs less here than the bias of any lower cap."
        )
    if settings.loss_variance == 0.0 and settings.bias.needs_variance:
        sentences.append("Users are taken to be alike (Var(H) = 0), so capping them biases nothing.")
    if view.problem.histogram.num_users == 1:
        sentences.append("There is only one user, so the model learns from that user alone.")
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


def _own_sentence(view: LearningView, parameters: learning.LearningParameters) -> str:
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
