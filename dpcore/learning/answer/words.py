"""The answer for a learner under a cap in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpcore.answer import Number
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, build_error_parts
from dpcore.answer.axes import ROWS_UNIT
from dpcore.common import noise_error, wording
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, optimal_cap
from dpcore.learning.answer.found import LearningSolution
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.error_bound import ErrorParts, LearningCap


def write_headline(solution: LearningSolution) -> str:
    """Say how many rows of each user to keep."""
    return f"Keep at most {wording.counted(solution.choice.max_contributions, 'row')} of each user."


def list_numbers(solution: LearningSolution) -> tuple[Number, ...]:
    """Return the best cap, the bound on the excess risk there, and the parts of that bound."""
    choice = solution.choice
    cap, total, share = choice.max_contributions, choice.total, choice.fraction
    largest = f"({_largest_part(choice)})" if total > 0.0 else ""

    def build_part(label: str, value: float, key: str, help: str) -> Number:
        note = f"{wording.percent(value / total)} of it" if total > 0.0 else ""
        return Number(label, wording.number(value), note, help, value, key=key)

    return (
        Number(
            "Best bound", wording.counted(cap, "row"), "per user", _CAP, cap, ROWS_UNIT, "max_contributions"
        ),
        Number("Excess risk, at most", wording.number(total), largest, _BOUND, total, key="bound"),
        Number("As a share of all rows", wording.number(share), help=_FRACTION, value=share, key="tau_0"),
        build_part(BIAS, choice.bias, "bias_twice", _BIAS),
        build_part(SAMPLING, choice.finite_sample, "finite_sample", _FINITE),
        build_part(NOISE, choice.privacy, "privacy_noise", _PRIVACY),
    )


def list_facts(solution: LearningSolution, own_cap: int | None) -> dict[str, str]:
    """Explain the choice in sentences, each under its heading."""
    sentences = {
        "Half or double": _half_or_double(solution),
        "Who is affected": _describe_affected(solution),
        noise_error.NAME: _describe_alike_rows(solution),
    }
    if own_cap is not None:
        sentences[f"Your own bound, {wording.counted(own_cap, 'row')}"] = _own_cap(solution, own_cap)
    return sentences


_CAP = "Upper bound on contributions per user."
_FRACTION = "The same bound as a share of all rows. The paper states its results in it."
_BOUND = (
    "The most by which the risk of the model found exceeds that of the best model, with probability 1 − δ (theorem "
    "1). A risk is an expected loss, between 0 and 1."
)
_BIAS = (
    "A bound changes whose rows count how much; a model is then judged on the wrong mix of users. Theorem 1 carries "
    "this bias twice: once for the model returned, once for the best one."
)
_FINITE = (
    "What any learner pays for seeing a finite sample: C √(d log(n/δ) / n_τ). It grows as rows are "
    "thrown away."
)
_PRIVACY = (
    "What hiding one user costs: F(largest share, 1/ε, 3/δ). It grows with the largest share of a user."
)


def _name_parts(bound: LearningCap | ErrorParts) -> dict[str, float]:
    values = {BIAS: bound.bias, SAMPLING: bound.finite_sample, NOISE: bound.privacy}
    return {name: float(value) for name, value in values.items()}


def _largest_part(choice: LearningCap) -> str:
    shares = _name_parts(choice)
    name = max(shares, key=shares.__getitem__)
    return f"{wording.percent(shares[name] / choice.total)} {name.lower()}"


def list_error_parts(solution: LearningSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the excess risk at the best cap; they add up to it."""
    return build_error_parts(_name_parts(solution.choice), wording.number)


LEAKS = (
    "Your data are private, and a bound read off them is too: using it in a release reveals something about who has "
    "how many rows."
)


def write_detail(solution: LearningSolution, dataset: Dataset) -> str:
    """Say how the headline must be qualified; empty where it need not be."""
    choice, settings = solution.choice, solution.problem
    sentences = []
    if choice.total >= 1.0:
        sentences.append(
            "**An excess risk above 1 promises nothing**, since losses lie in [0, 1]: it only says which bound is "
            "better."
        )
    if choice.users_capped == 0:
        sentences.append(
            "This bound cuts nobody's rows, since privacy noise costs less here than the bias of any lower one."
        )
    if settings.loss_variance == 0.0 and settings.bias.needs_variance:
        sentences.append("Users are taken to be alike (Var(H) = 0), so a bound biases nothing.")
    if solution.problem.histogram.num_users == 1:
        sentences.append("There is only one user, so the model learns from that user alone.")
    if dataset.is_private:
        sentences.append(LEAKS)
    return " ".join(sentences)


def describe_near_optimal(solution: LearningSolution) -> str:
    """Say from which cap to which one the excess risk stays near the least."""
    low, high = solution.near_optimal
    if low == high:
        if solution.problem.histogram.max_size == 1:
            return "nobody has more than one row, so there is nothing to choose."
        return f"only {wording.counted(low, 'row')}; its neighbours are more than 5{wording.PERCENT} worse."
    no_more = (
        " or more, as nobody has more rows"
        if high == solution.problem.histogram.max_size and not solution.problem.bias.needs_only_the_fraction
        else ""
    )
    return (
        f"any bound from {wording.number(low)} to {wording.counted(high, 'row')}{no_more} stays within "
        f"5{wording.PERCENT} of the least excess risk."
    )


def _half_or_double(solution: LearningSolution) -> str:
    cap, best = solution.choice.max_contributions, solution.choice.total
    phrases = []
    for name, other_cap in (("half", cap // 2), ("double", 2 * cap)):
        if other_cap < 1:
            continue
        bound = solution.bound_at(other_cap)
        costs = (
            f"costs {wording.change(bound, best)}"
            if math.isfinite(bound)
            else "is where this limit does not apply"
        )
        phrases.append(f"{name} ({wording.number(other_cap)}) {costs}")
    return ", ".join(phrases) + "."


def _describe_affected(solution: LearningSolution) -> str:
    histogram, choice = solution.problem.histogram, solution.choice
    share_before = histogram.max_size / histogram.num_rows
    if choice.users_capped == 0:
        return f"nobody has more rows than that; the heaviest user holds {wording.percent(share_before)} of all rows."
    statistics = optimal_cap.statistics(histogram, choice.fraction)
    return (
        f"{wording.counted(choice.users_capped, 'user')} of {wording.number(histogram.num_users)} "
        f"{wording.agreeing(choice.users_capped, 'has', 'have')} more rows than that, and "
        f"{wording.percent(float(statistics.cut_share))} of all rows are left out. The heaviest user's share falls "
        f"from {wording.percent(share_before)} to {wording.percent(float(statistics.max_share))}."
    )


def _describe_alike_rows(solution: LearningSolution) -> str:
    histogram = solution.problem.histogram
    kept_rows = np.minimum(histogram.sizes, max(solution.choice.cap, 1.0))
    times = math.sqrt(noise_error.design_effect(kept_rows, histogram.users))
    return (
        "the limit lets users differ in what is learnt from them, but takes the rows of one user as independent draws. "
        f"If a share ρ = {noise_error.ASSUMED_SHARE} of the variance of a loss lies between users, the finite-sample part is "
        f"about {wording.number(times)} times as large."
    )


def _own_cap(solution: LearningSolution, cap: int) -> str:
    error_parts = solution.error_parts_at(cap)
    total = float(error_parts.total)
    if not math.isfinite(total):
        return "this limit on the bias says nothing there: less than a quarter of the rows is kept."
    split = ", ".join(
        f"{name.lower()} {wording.number(value)}" for name, value in _name_parts(error_parts).items()
    )
    return (
        f"excess risk at most {wording.number(total)} ({split}), {wording.change(total, solution.choice.total)}"
        " compared with the best bound."
    )


def describe_formulae(parameters: LearningParameters) -> str:
    """Say how the bias and the privacy noise are bounded, with the formulae."""
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


def list_rival_rows(
    solution: LearningSolution, rivals: Mapping[BiasTerm, LearningCap], own_cap: int | None
) -> list[dict[str, str]]:
    """Return the table of all bounds on the bias, one entry per bound, each twice as in theorem 1."""
    at_best = optimal_cap.bias_terms(solution.problem, solution.choice.fraction)
    at_own = (
        optimal_cap.bias_terms(solution.problem, solution.fraction(own_cap)) if own_cap is not None else {}
    )
    rows = []
    for term in BiasTerm:
        choice = rivals[term]
        row = {
            "Way": term.group,
            "Bound": term.title,
            "Needs": _needs(term),
            "Twice, at the best bound": _bound(2.0 * float(at_best[term])),
        }
        if at_own:
            row["Twice, at your own bound"] = _bound(2.0 * float(at_own[term]))
        row["Best bound under it"] = wording.counted(round(choice.cap), "row")
        row["Its excess risk"] = wording.number(choice.total)
        row["Formula"] = f"${term.formula}$"
        rows.append(row)
    return rows


def _needs(term: BiasTerm) -> str:
    share_needed = (
        "the share of rows"
        if term.needs_only_the_fraction
        else "all shares"
        if term.needs_shares
        else "$n_\\tau/n$"
    )
    return f"{share_needed}, Var(H)" if term.needs_variance else share_needed


def _bound(value: float) -> str:
    return wording.number(value) if math.isfinite(value) else "does not apply"


def describe_files(label: str) -> str:
    """Describe the contents of the files of the curves and of the choice."""
    return (
        "**Choice** holds the question, the best bound, what each part contributes, and the proof. **Curves** hold "
        "the excess risk in its parts and every limit on the bias, twice, one line per bound; what does not apply "
        f"is `inf`. Label in both: *{label}*."
    )
