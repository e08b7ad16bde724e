"""The answer for a sum or a count in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

from dpcore import total
from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Provenance
from dpcore.dataset import Dataset
from dpcore.total.answer.found import TotalFound, largest_ratio
from dpcore.total.parameters import UserTotals

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


def numbers(found: TotalFound) -> tuple[Number, ...]:
    """Return the bound with its error, and the two parts of that."""
    unit, measure = found.unit, found.problem.measure

    def said(label: str, value: float, explained: str, key: str) -> Number:
        share = f"({wording.percent(value / found.choice.error_of_nothing)} of the {unit.result})"
        return Number(label, unit.amount(value), share, explained, value, unit.axis, key)

    cut = f"What users hold beyond the bound: the released {unit.result} is always too low by this much."
    return (
        Number(
            "Best bound",
            unit.amount(found.bound, 4),
            "per user",
            _CLAMPED if unit.column else "Upper bound on contributions per user.",
            found.bound,
            unit.per_user,
            "max_total" if unit.column else "max_contributions",
        ),
        said(ERROR_LABELS[measure], found.error(found.bound), _ERROR_HELP[measure], "error"),
        said("Cut away (bias)", float(found.at_bound.bias), cut, "bias"),
        said(NOISE_LABELS[measure], float(found.at_bound.noise_by(measure)), _NOISE_HELP[measure], "noise"),
    )


_CLAMPED = "A user's total above it counts as this much: upper bound on what one user adds."
ERROR_LABELS = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Error, at most"}
NOISE_LABELS = {Measure.ABSOLUTE: "Mean noise", Measure.RMSE: "RMS noise", Measure.BOUND: "Mean noise"}
_NOISE_HELP = {
    Measure.ABSOLUTE: "Mean size of the noise, in either direction. Noise and what is cut away cancel in part, so the "
    "expected error is below their sum.",
    Measure.RMSE: "Root mean square of the noise. Its square and that of what is cut away add up to that of the RMSE.",
    Measure.BOUND: "Mean size of the noise, in either direction. It and what is cut away add up to the error.",
}
_ERROR_HELP = {
    Measure.ABSOLUTE: "Mean of |release − truth| over the noise, exactly.",
    Measure.RMSE: "Square root of the mean of (release − truth)² over the noise, exactly.",
    Measure.BOUND: "Bias plus mean noise: at least the mean of |release − truth| (Amin et al., equation 5).",
}


def headline(found: TotalFound) -> str:
    """Say what to do."""
    unit = found.unit
    if found.choice.max_total == 0.0:
        epsilon = wording.entered(found.problem.epsilon)
        return f"Nothing useful can be released at ε = {epsilon}: publishing 0 is no worse."
    at_most = unit.amount(found.bound, 4)
    if unit.column:
        return f"Clamp each user's total of {wording.plain(unit.column)} at {at_most}."
    return f"Keep at most {at_most} of each user."


def good_enough(found: TotalFound) -> str:
    """From which bound to which one the error stays near the best."""
    low, high = (found.unit.amount(x) for x in found.within)
    five = f"5{wording.PERCENT}"
    if low == high:
        return f"only {low}."
    low = low if found.unit.column else wording.number(found.within[0])
    return f"any bound from {low} to {high} stays within {five} of the best error."


def detail(found: TotalFound, dataset: Dataset) -> str:
    """Say what changes how the headline is to be read, most important first; empty where nothing does."""
    choice, said = found.choice, []
    if choice.gain < OF_LITTLE_USE and choice.max_total > 0.0:
        said.append(
            f"**Of little use**: always publishing 0 would have only {_times(1.0 / (1.0 - choice.gain))} the error. A "
            "useful answer needs more users or a larger ε."
        )
    if dataset.is_private:
        said.append(LEAKS)
    if dataset.release is not None:
        said.append(ON_RELEASE)
    if found.bound >= found.problem.amounts.largest:
        said.append(
            "Here the best bound keeps everything: the noise for the heaviest user is cheaper than any cut."
        )
    return " ".join(said)


def _times(ratio: float) -> str:
    return f"{wording.number(ratio)} times"


def facts(found: TotalFound, own_bound: float | None) -> dict[str, str]:
    """Say what stands behind the choice, a sentence each, beside a bound of the person's own."""
    choice, unit, problem = found.choice, found.unit, found.problem
    affected = int(problem.amounts.users_above(found.bound))
    said = {"Rounded": _rounded(found)} if found.rounded else {}
    said["Half or double"] = _half_or_double(found)
    said["Who is affected"] = (
        f"{wording.counted(affected, 'user')} ({wording.percent(affected / problem.amounts.num_users)}) "
        f"{wording.agreeing(affected, 'holds', 'hold')} more than the bound; "
        f"{wording.percent(float(found.at_bound.bias) / choice.error_of_nothing)} of the {unit.result} is cut away."
    )
    if choice.max_total > 0.0:
        said[f"95{wording.PERCENT} of releases"] = f"lie {_around(found)}."
    if own_bound is not None:
        own = found.error(own_bound)
        said[f"Your own bound, {unit.amount(own_bound, 4)}"] = (
            f"{MEASURE_NAMES[problem.measure]} {unit.amount(own)}, "
            f"{wording.change(own, choice.certificate.value)} compared with the best bound."
        )
    return said


def _rounded(found: TotalFound) -> str:
    """Say what rounding costs, why it is done, and which answers are about the exact bound."""
    cost = wording.change(found.error(found.bound), found.choice.certificate.value)
    costs = "next to nothing" if cost == "the same" else f"{cost} in error"
    return (
        f"the bound is the best one rounded to few digits, which costs {costs}. It is rounded because the exact "
        "value may equal one user's total. *How sure* and the figure are about the exact value."
    )


def _around(found: TotalFound) -> str:
    low, high = total.error_interval(found.problem, found.bound)
    if high > 0.0:
        return f"between {found.unit.amount(-low)} too low and {found.unit.amount(high)} too high"
    return f"between {found.unit.amount(-high)} and {found.unit.amount(-low)} too low"


def _half_or_double(found: TotalFound) -> str:
    t, best = found.bound, found.error(found.bound)
    if t == 0.0:
        return "does not apply: the bound is 0."
    parts = []
    half = max(t // 2.0, 1.0) if found.problem.whole else t / 2.0
    if half < t:
        parts.append(f"half ({found.unit.amount(half)}) costs {wording.change(found.error(half), best)}")
    parts.append(f"double ({found.unit.amount(2.0 * t)}) costs {wording.change(found.error(2.0 * t), best)}")
    return ", ".join(parts) + " in error."


def measures_table(found: TotalFound) -> str:
    """Return the three measures side by side, as a Markdown table."""
    rows = ["| measure of the error | at the best bound | its own best bound |", "|---|---|---|"]
    for measure, said in MEASURE_NAMES.items():
        name = said.capitalize()
        shown = f"**{name}**" if measure is found.problem.measure else name
        here = found.unit.amount(float(found.at_bound.by(measure)))
        rows.append(f"| {shown} | {here} | {found.unit.amount(found.others[measure], 4)} |")
    return "\n".join(rows)


def bound_sentence(found: TotalFound) -> str:
    """Say how far the paper's bound lies above the truth."""
    ratio = float(found.at_bound.bound / found.at_bound.absolute_error)
    kind = found.problem.mechanism
    return (
        f"At this bound the paper's limit on the error is {_times(ratio)} the exact expected error. The paper proves "
        f"at most 2 times; with {kind.value} noise it is never more than {largest_ratio(kind):.3f} times."
    )


def noises(found: TotalFound, entered: bool) -> str:
    """Which noise has the smaller error; ``entered``: whether δ was."""
    compared = found.noises
    if compared.laplace.max_total == compared.gaussian.max_total == 0.0:
        return "**Which noise?** Neither: under both, publishing 0 is no worse."
    how = "" if entered else "; choose Gaussian in *More settings* to change it"
    delta = wording.entered(found.delta)
    return f"**Which noise?** {compared.sentence} (Gaussian noise is taken at δ = {delta}{how}.)"


def summed(held: UserTotals, dataset: Dataset) -> str:
    """Say what is added up, in figures."""
    users = wording.counted(dataset.histogram.num_users, "user")
    if held.amounts is None or not held.column:
        return f"{users} with {wording.counted(dataset.histogram.num_rows, 'row')}."
    return f"{users}; the totals of {wording.plain(held.column)} add up to {wording.number(held.amounts.total, 4)}."


def files(disclosure: Provenance, signed: bool) -> str:
    """Say what the file of the choice holds."""
    if signed:
        return f"**Choice** holds the question, the range and what it costs. Label: *{disclosure.label}*."
    return (
        "**Choice** holds the question, the best bound with its errors, and the proof. The numbers behind each "
        f"figure are below the figure. Label in all: *{disclosure.label}*."
    )
