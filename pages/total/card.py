"""The answer of Sum and count in words."""

from __future__ import annotations

from dpcore import total
from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.common.noise_error import Measure
from dpcore.dataset import Dataset
from dpcore.total.parameters import ASSUMPTIONS, ASSUMPTIONS_ON_RELEASE, Summed, UserTotals
from pages.total import code
from pages.total.answer import TotalView, largest_ratio

MEASURE_NAMES = {
    Measure.ABSOLUTE: "expected absolute error",
    Measure.RMSE: "root mean squared error",
    Measure.BOUND: "paper's bound",
}
OF_LITTLE_USE = 0.5
"""A release whose error is more than this share of what is released is called of little use."""
ON_RELEASE = (
    "**The DP release is treated as the true data; the error on the original data is unknown.** For a sum that error "
    "can be far larger: a sum depends on its few largest users, and the noise of the release hides them."
)
LEAKS = (
    "Your data are private, and a bound read off them is too: using it in a release reveals something about the "
    "largest contributions."
)


def card(view: TotalView, dataset: Dataset, own_bound: float | None = None) -> Answer:
    """The answer in words, beside a bound of the person's own."""
    choice, unit, measure = view.choice, view.unit, view.problem.measure
    error, bias, noise = view.error(view.bound), float(view.at_bound.bias), float(view.at_bound.noise)

    def share(of: float) -> str:
        return f"({wording.percent(of / choice.error_of_nothing)} of the {unit.result})"

    return Answer(
        headline=_headline(view),
        detail=_detail(view, dataset),
        numbers=(
            Number(
                "Best bound T",
                unit.amount(view.bound, 4),
                "per user",
                "Upper bound on contributions per user." if not unit.column else _CLAMPED,
                copied=wording.digits(view.bound),
            ),
            Number(_ERROR_LABELS[measure], unit.amount(error), share(error), _ERROR_HELP[measure]),
            Number(
                "Cut away (bias)",
                unit.amount(bias),
                share(bias),
                f"What users hold beyond T: the released {unit.result} is always too low by this much.",
            ),
            Number("Noise", unit.amount(noise), share(noise), "Mean size of the noise, in either direction."),
        ),
        good_enough=_good_enough(view),
        facts=_facts(view, own_bound),
        assumptions=ASSUMPTIONS if dataset.release is None else ASSUMPTIONS_ON_RELEASE,
        proofs=(("Bound", choice.certificate, choice.ended),),
        disclosure=dataset.provenance,
        code=code.of_total(view, dataset),
    )


_CLAMPED = "A user's total above it counts as this much: upper bound on what one user adds."
_ERROR_LABELS = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Error, at most"}
_ERROR_HELP = {
    Measure.ABSOLUTE: "Mean of |release − truth| over the noise, exactly.",
    Measure.RMSE: "Square root of the mean of (release − truth)² over the noise, exactly.",
    Measure.BOUND: "Bias plus mean noise: at least the mean of |release − truth| (Amin et al., equation 5).",
}


def _headline(view: TotalView) -> str:
    unit = view.unit
    if view.choice.max_total == 0.0:
        epsilon = wording.entered(view.problem.epsilon)
        return f"Nothing useful can be released at ε = {epsilon}: publishing 0 is no worse."
    at_most = unit.amount(view.bound, 4)
    if unit.column:
        return f"Clamp each user's total of {plain(unit.column)} at {at_most}."
    return f"Keep at most {at_most} of each user."


def _good_enough(view: TotalView) -> str:
    low, high = (view.unit.amount(x) for x in view.within)
    five = f"5{wording.PERCENT}"
    if low == high:
        return f"only {low}."
    low = low if view.unit.column else wording.number(view.within[0])
    return f"any T from {low} to {high} stays within {five} of the best error."


def _detail(view: TotalView, dataset: Dataset) -> str:
    """What changes how the headline is to be read, most important first; empty where nothing does."""
    choice = view.choice
    found = []
    if choice.gain < OF_LITTLE_USE and choice.max_total > 0.0:
        found.append(
            f"**Of little use**: always publishing 0 would have only {_times(1.0 / (1.0 - choice.gain))} the error. A "
            "useful answer needs more users or a larger ε."
        )
    if dataset.is_private:
        found.append(LEAKS)
    if dataset.release is not None:
        found.append(ON_RELEASE)
    if view.bound >= view.problem.amounts.largest:
        found.append(
            "Here the best bound keeps everything: the noise for the heaviest user is cheaper than any cut."
        )
    return " ".join(found)


def _times(ratio: float) -> str:
    return f"{wording.number(ratio)} times"


def _facts(view: TotalView, own_bound: float | None) -> dict[str, str]:
    choice, unit, problem = view.choice, view.unit, view.problem
    affected = int(problem.amounts.users_above(view.bound))
    facts = {"Rounded": _rounded(view)} if view.rounded else {}
    facts["Half or double"] = _half_or_double(view)
    facts["Who is affected"] = (
        f"{wording.counted(affected, 'user')} ({wording.percent(affected / problem.amounts.num_users)}) "
        f"{wording.agreeing(affected, 'holds', 'hold')} more than T; "
        f"{wording.percent(float(view.at_bound.bias) / choice.error_of_nothing)} of the {unit.result} is cut away."
    )
    if choice.max_total > 0.0:
        facts[f"95{wording.PERCENT} of releases"] = f"lie {_around(view)}."
    if own_bound is not None:
        own = view.error(own_bound)
        facts[f"Your own T, {unit.amount(own_bound, 4)}"] = (
            f"{MEASURE_NAMES[problem.measure]} {unit.amount(own)}, "
            f"{wording.change(own, choice.certificate.value)} compared with the best T."
        )
    return facts


def _rounded(view: TotalView) -> str:
    """What rounding costs, why it is done, and which answers are about the exact bound."""
    cost = wording.change(view.error(view.bound), view.choice.certificate.value)
    costs = "next to nothing" if cost == "the same" else f"{cost} in error"
    return (
        f"T is the best bound rounded to few digits, which costs {costs}. It is rounded because the exact value "
        "may equal one user's total. *How sure*, the curves and their *Best T* are about the exact value."
    )


def _around(view: TotalView) -> str:
    low, high = total.error_interval(view.problem, view.bound)
    if high > 0.0:
        return f"between {view.unit.amount(-low)} too low and {view.unit.amount(high)} too high"
    return f"between {view.unit.amount(-high)} and {view.unit.amount(-low)} too low"


def _half_or_double(view: TotalView) -> str:
    t, best = view.bound, view.error(view.bound)
    if t == 0.0:
        return "does not apply: T is 0."
    parts = []
    half = max(t // 2.0, 1.0) if view.problem.whole else t / 2.0
    if half < t:
        parts.append(f"half ({view.unit.amount(half)}) costs {wording.change(view.error(half), best)}")
    parts.append(f"double ({view.unit.amount(2.0 * t)}) costs {wording.change(view.error(2.0 * t), best)}")
    return ", ".join(parts) + " in error."


def measures_table(view: TotalView) -> str:
    """The three measures side by side, as a Markdown table."""
    at = view.at_bound
    here = {Measure.ABSOLUTE: at.absolute_error, Measure.RMSE: at.rmse, Measure.BOUND: at.bound}
    rows = ["| measure of the error | at the best T | its own best T |", "|---|---|---|"]
    for measure, value in here.items():
        name = MEASURE_NAMES[measure].capitalize()
        shown = f"**{name}**" if measure is view.problem.measure else name
        rows.append(
            f"| {shown} | {view.unit.amount(float(value))} | {view.unit.amount(view.others[measure], 4)} |"
        )
    return "\n".join(rows)


def bound_sentence(view: TotalView) -> str:
    """How far the paper's bound lies above the truth."""
    ratio = float(view.at_bound.bound / view.at_bound.absolute_error)
    kind = view.problem.mechanism
    return (
        f"At this T the paper's bound is {_times(ratio)} the exact expected error. The paper proves at most 2 times; "
        f"with {kind.value} noise it is never more than {largest_ratio(kind):.3f} times."
    )


def summed_sentence(held: UserTotals, dataset: Dataset, summed: Summed) -> str:
    """What is added up, in figures."""
    users = wording.counted(dataset.histogram.num_users, "user")
    if summed is Summed.ROWS or held.amounts is None:
        return f"{users} with {wording.counted(dataset.histogram.num_rows, 'row')}."
    return f"{users}; the totals of {plain(held.column)} add up to {wording.number(held.amounts.total, 4)}."
