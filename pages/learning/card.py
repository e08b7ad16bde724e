"""The answer of the page Learning under a cap in words. Pure."""

from __future__ import annotations

import math

from dpcore import learning
from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import LearningCap
from pages.learning import code
from pages.learning.answer import LearningView


def card(view: LearningView, dataset: Dataset, parameters: learning.LearningParameters) -> Answer:
    """The answer in words."""
    choice = view.choice
    rows = wording.counted(choice.max_contributions, "row")
    facts = {"Half or double": _half_or_double(view), "Who is capped": _who(view)}
    if parameters.own_cap is not None:
        facts[f"Your cap, {wording.counted(parameters.own_cap, 'row')}"] = _own_sentence(view, parameters)
    return Answer(
        headline=f"Keep at most {rows} of each user.",
        detail=_detail(view, dataset),
        numbers=(
            Number("Best cap", rows, "per user", _CAP, copied=str(choice.max_contributions)),
            Number("Bound on the excess risk", wording.number(choice.total), _largest_part(choice), _BOUND),
            Number("As a share of all rows, τ₀", wording.number(choice.fraction), help=_FRACTION),
            Number("Bias, twice", wording.number(choice.bias), _share(choice.bias, choice), _BIAS),
            Number(
                "Finite sample",
                wording.number(choice.finite_sample),
                _share(choice.finite_sample, choice),
                _FINITE,
            ),
            Number("Privacy noise", wording.number(choice.privacy), _share(choice.privacy, choice), _PRIVACY),
        ),
        good_enough=_good_enough(view),
        facts=facts,
        assumptions=learning.ASSUMPTIONS,
        proofs=(("Cap", choice.certificate, choice.ended),),
        disclosure=dataset.provenance,
        code=code.of_learning(view, dataset, parameters.epsilon),
    )


_CAP = "The upper bound on contributions per user, τ."
_FRACTION = "The same cap as a share of all rows: τ₀ = τ/n. The paper states its results in it."
_BOUND = (
    "The most by which the risk of the model found exceeds that of the best model, with probability 1 − δ (theorem "
    "1). A risk is an expected loss, between 0 and 1."
)
_BIAS = (
    "Capping changes whose rows count how much; a model is then judged on the wrong mix of users. Theorem 1 carries "
    "this bias twice: once for the model returned, once for the best one."
)
_FINITE = (
    "What any learner pays for seeing a finite sample: C √(d log(n/δ) / n_τ). It grows as rows are "
    "thrown away."
)
_PRIVACY = (
    "What hiding one user costs: F(largest share, 1/ε, 3/δ). It grows with the largest share of a user."
)


def _share(part: float, choice: LearningCap) -> str:
    return f"{wording.percent(part / choice.total)} of the bound" if choice.total > 0.0 else ""


def _largest_part(choice: LearningCap) -> str:
    parts = {"bias": choice.bias, "finite sample": choice.finite_sample, "privacy noise": choice.privacy}
    name = max(parts, key=parts.__getitem__)
    return f"({wording.percent(parts[name] / choice.total)} {name})" if choice.total > 0.0 else ""


LEAKS = (
    "Your data are private, and a cap read off them is too: using it in a release reveals something about who has "
    "how many rows."
)


def _detail(view: LearningView, dataset: Dataset) -> str:
    choice, settings = view.choice, view.problem
    sentences = []
    if choice.total >= 1.0:
        sentences.append(
            "**A bound above 1 promises nothing**, since losses lie in [0, 1]: it only says which cap is better."
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
        return (
            f"nobody has more rows than that; the heaviest user holds {wording.percent(before)} of all rows."
        )
    at = optimal_cap.statistics(histogram, choice.fraction)
    return (
        f"{wording.counted(choice.users_capped, 'user')} of {wording.number(histogram.num_users)} "
        f"{wording.agreeing(choice.users_capped, 'has', 'have')} more rows than that, and "
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


def what_is_used(parameters: learning.LearningParameters) -> str:
    """How the bias and the privacy noise are bounded, with the formulae."""
    term, privacy = parameters.bias, parameters.privacy
    factor = privacy.constant * math.log(3.0 / parameters.failure_probability) ** privacy.log_power
    form = f"F = {wording.number(factor)} {_power(privacy.power)}"
    if privacy.log_power:
        form += f", that is $C \\ln^2(3/\\delta)$ {_power(2.0)} with C = {wording.number(privacy.constant)}"
    words = [f"Bias at most ${term.formula}$. It needs: {term.needs[:1].lower()}{term.needs[1:]}."]
    if term is BiasTerm.TIGHTEST and parameters.loss_variance == 0.25:
        words.append("At Var(H) = 1/4 the worst case is always the smaller of the two.")
    if not term.needs_variance:
        words.append("Var(H) is not used.")
    words.append(f"{form}; share is the largest that one user holds of what is kept.")
    return " ".join(words)


def _power(power: float) -> str:
    return r"$(\text{share}/\varepsilon)" + ("$" if power == 1.0 else f"^{{{wording.digits(power)}}}$")
