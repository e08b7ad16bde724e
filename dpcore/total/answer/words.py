"""The solution for a sum or a count in words: sentences, numbers, the methods section."""

from __future__ import annotations

from dpcore import total
from dpcore.answer.answer import Number
from dpcore.answer.methods import ChoiceSource, Methods, cite_noise, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    build_forms,
    cap_form,
    fields_of_data,
    summed_column,
)
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure, Neighbours, Provenance
from dpcore.dataset import Dataset
from dpcore.total.answer.solution import SignedSolution, TotalSolution, largest_ratio
from dpcore.total.parameters import Summed, TotalParameters, UserTotals

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


def list_numbers(solution: TotalSolution) -> tuple[Number, ...]:
    """Return the bound, its error and the two parts of the error."""
    unit, measure = solution.unit, solution.problem.measure

    def build_number(label: str, value: float, explained: str, key: str) -> Number:
        share = f"({wording.percent(value / solution.choice.error_of_nothing)} of the {unit.result})"
        return Number(label, unit.amount(value), share, explained, value, unit.axis, key)

    cut = f"What users hold beyond the bound: the released {unit.result} is always too low by this much."
    return (
        Number(
            "Best bound",
            unit.amount(solution.bound, 4),
            "per user",
            _CLAMPED if unit.column else "Upper bound on contributions per user.",
            solution.bound,
            unit.per_user,
            "max_total" if unit.column else "max_contributions",
        ),
        build_number(ERROR_LABELS[measure], solution.error(solution.bound), _ERROR_HELP[measure], "error"),
        build_number("Cut away (bias)", float(solution.at_bound.bias), cut, "bias"),
        build_number(
            NOISE_LABELS[measure], float(solution.at_bound.noise_by(measure)), _NOISE_HELP[measure], "noise"
        ),
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


def write_headline(solution: TotalSolution) -> str:
    """Say at which bound to keep rows or clamp totals, or that nothing useful can be released."""
    unit = solution.unit
    if solution.choice.max_total == 0.0:
        epsilon = wording.entered(solution.problem.epsilon)
        return f"Nothing useful can be released at ε = {epsilon}: publishing 0 is no worse."
    at_most = unit.amount(solution.bound, 4)
    if unit.column:
        return f"Clamp each user's total of {wording.plain(unit.column)} at {at_most}."
    return f"Keep at most {at_most} of each user."


def describe_near_optimal(solution: TotalSolution) -> str:
    """Say from which bound to which one the error stays near the best."""
    low, high = (solution.unit.amount(x) for x in solution.near_optimal)
    five = f"5{wording.PERCENT}"
    if low == high:
        return f"only {low}."
    low = low if solution.unit.column else wording.number(solution.near_optimal[0])
    return f"any bound from {low} to {high} stays within {five} of the best error."


def write_detail(solution: TotalSolution, dataset: Dataset) -> str:
    """Say how the headline must be qualified, most important first; empty where it need not be."""
    choice, sentences = solution.choice, []
    if choice.gain < OF_LITTLE_USE and choice.max_total > 0.0:
        sentences.append(
            f"**Of little use**: always publishing 0 would have only {_times(1.0 / (1.0 - choice.gain))} the error. A "
            "useful answer needs more users or a larger ε."
        )
    if dataset.is_private:
        sentences.append(LEAKS)
    if dataset.release is not None:
        sentences.append(ON_RELEASE)
    if solution.bound >= solution.problem.amounts.largest:
        sentences.append(
            "Here the best bound keeps everything: the noise for the heaviest user is cheaper than any cut."
        )
    return " ".join(sentences)


def _times(ratio: float) -> str:
    return f"{wording.number(ratio)} times"


def list_facts(solution: TotalSolution, own_bound: float | None) -> dict[str, str]:
    """Explain the choice in sentences, each under its heading; with a bound of the person's own, compare that."""
    choice, unit, problem = solution.choice, solution.unit, solution.problem
    affected = int(problem.amounts.users_above(solution.bound))
    sentences = {"Rounded": _describe_rounding(solution)} if solution.rounded else {}
    sentences["Half or double"] = _half_or_double(solution)
    sentences["Who is affected"] = (
        f"{wording.counted(affected, 'user')} ({wording.percent(affected / problem.amounts.num_users)}) "
        f"{wording.agreeing(affected, 'holds', 'hold')} more than the bound; "
        f"{wording.percent(float(solution.at_bound.bias) / choice.error_of_nothing)} of the {unit.result} is cut away."
    )
    if choice.max_total > 0.0:
        sentences[f"95{wording.PERCENT} of releases"] = f"lie {_describe_interval(solution)}."
    if own_bound is not None:
        own_error = solution.error(own_bound)
        sentences[f"Your own bound, {unit.amount(own_bound, 4)}"] = (
            f"{MEASURE_NAMES[problem.measure]} {unit.amount(own_error)}, "
            f"{wording.change(own_error, choice.certificate.value)} compared with the best bound."
        )
    return sentences


def _describe_rounding(solution: TotalSolution) -> str:
    """Say what rounding costs, why it is done, and which answers are about the exact bound."""
    cost = wording.change(solution.error(solution.bound), solution.choice.certificate.value)
    costs = "next to nothing" if cost == "the same" else f"{cost} in error"
    return (
        f"the bound is the best one rounded to few digits, which costs {costs}. It is rounded because the exact "
        "value may equal one user's total. *How sure* and the figure are about the exact value."
    )


def _describe_interval(solution: TotalSolution) -> str:
    low, high = total.error_interval(solution.problem, solution.bound)
    if high > 0.0:
        return f"between {solution.unit.amount(-low)} too low and {solution.unit.amount(high)} too high"
    return f"between {solution.unit.amount(-high)} and {solution.unit.amount(-low)} too low"


def _half_or_double(solution: TotalSolution) -> str:
    t, best = solution.bound, solution.error(solution.bound)
    if t == 0.0:
        return "does not apply: the bound is 0."
    phrases = []
    halved = max(t // 2.0, 1.0) if solution.problem.is_integer else t / 2.0
    if halved < t:
        phrases.append(
            f"half ({solution.unit.amount(halved)}) costs {wording.change(solution.error(halved), best)}"
        )
    phrases.append(
        f"double ({solution.unit.amount(2.0 * t)}) costs {wording.change(solution.error(2.0 * t), best)}"
    )
    return ", ".join(phrases) + " in error."


def write_measures_table(solution: TotalSolution) -> str:
    """Return the three measures side by side, as a Markdown table."""
    rows = ["| measure of the error | at the best bound | its own best bound |", "|---|---|---|"]
    for measure, measure_name in MEASURE_NAMES.items():
        name = measure_name.capitalize()
        cell = f"**{name}**" if measure is solution.problem.measure else name
        error = solution.unit.amount(float(solution.at_bound.error_by(measure)))
        rows.append(f"| {cell} | {error} | {solution.unit.amount(solution.bounds_by_measure[measure], 4)} |")
    return "\n".join(rows)


def describe_bound(solution: TotalSolution) -> str:
    """Say how far the paper's bound lies above the truth."""
    ratio = float(solution.at_bound.bound / solution.at_bound.absolute_error)
    noise = solution.problem.mechanism
    return (
        f"At this bound the paper's limit on the error is {_times(ratio)} the exact expected error. The paper proves "
        f"at most 2 times; with {noise.value} noise it is never more than {largest_ratio(noise):.3f} times."
    )


def compare_noises(solution: TotalSolution, has_delta: bool) -> str:
    """Say which noise has the smaller error; ``has_delta`` is True where δ was entered."""
    comparison = solution.noises
    if comparison.laplace.max_total == comparison.gaussian.max_total == 0.0:
        return "**Which noise?** Neither: under both, publishing 0 is no worse."
    how = "" if has_delta else "; choose Gaussian in *More settings* to change it"
    delta = wording.entered(solution.delta)
    return f"**Which noise?** {comparison.sentence} (Gaussian noise is taken at δ = {delta}{how}.)"


def describe_totals(totals: UserTotals, dataset: Dataset) -> str:
    """Say how many users there are, and to how much their rows or totals add up."""
    users = wording.counted(dataset.histogram.num_users, "user")
    if totals.amounts is None or not totals.column:
        return f"{users} with {wording.counted(dataset.histogram.num_rows, 'row')}."
    return f"{users}; the totals of {wording.plain(totals.column)} add up to {wording.number(totals.amounts.total, 4)}."


def describe_files(disclosure: Provenance, signed: bool) -> str:
    """Describe the contents of the file of the choice."""
    if signed:
        return f"**Choice** holds the question, the range and what it costs. Label: *{disclosure.label}*."
    return (
        "**Choice** holds the question, the best bound with its errors, and the proof. The numbers behind each "
        f"figure are below the figure. Label in all: *{disclosure.label}*."
    )


MEASURES = MEASURE_NAMES | {
    Measure.BOUND: "sum of the bias and the mean size of the noise, an upper bound on the expected absolute error"
}


def _guarantee(parameters: TotalParameters, quantity: str) -> str:
    return write_guarantee(
        f"The {quantity} was released",
        parameters.epsilon,
        Neighbours.ADD_OR_REMOVE_USER,
        parameters.delta or 0.0,
    )


def write_methods(solution: TotalSolution, data: Dataset, parameters: TotalParameters) -> Methods:
    """State the best bound on what a user adds, and its error."""
    # By what was entered, and not by the view's column: that there is one is part of the question.
    result = "count of rows" if parameters.summed is Summed.ROWS else "sum"
    noise, measure = cite_noise(parameters.mechanism.value), MEASURES[solution.problem.measure]
    amount = wording.number(solution.bound, 6)
    if parameters.summed is Summed.ROWS:
        limit_sentence = f"At most {wording.counted(solution.bound, 'row')} of each user were counted"
        public_limit = "At most a fixed number of rows of each user were counted"
    else:
        limit_sentence, public_limit = (
            f"The total of each user was limited to {amount}",
            "The total of each user was limited",
        )
    error = solution.unit.amount(solution.error(solution.bound))
    bias = solution.unit.amount(float(solution.at_bound.bias))
    sentence = (
        f"{limit_sentence}, and {noise} was added to the {result}. The {measure} of the release is {error}, with a "
        f"bias of {bias}."
    )
    empty_sentence = ""
    if solution.choice.max_total == 0.0:
        empty_sentence = (
            f"At ε = {wording.entered(parameters.epsilon)} no bound on what a user adds has a smaller {measure} than "
            "publishing 0, and nothing was released."
        )
    return Methods(
        guarantee=_guarantee(parameters, result),
        sentences=sentence,
        public_sentences=f"{public_limit}, and {noise} was added to the {result}.",
        disclosure=data.provenance,
        rule=f"The bound minimises the {measure} of the release [@amin2019, section 3]"
        f"{', and was then rounded to few digits' if parameters.summed is Summed.VALUES else ''}.",
        empty_sentence=empty_sentence,
    )


def write_signed_methods(solution: SignedSolution, data: Dataset, parameters: TotalParameters) -> Methods:
    """State the range for totals of both signs, and its error."""
    noise, clipped = cite_noise(parameters.mechanism.value), solution.clipped
    interval = f"[{wording.number(clipped.low, 6)}, {wording.number(clipped.high, 6)}]"
    is_entered = solution.is_entered
    rule = (
        "The interval was fixed without looking at the data."
        if is_entered
        else "The interval is symmetric about 0, with the end at which the privacy noise and the size of all cuts "
        "together are least."
    )
    return Methods(
        guarantee=_guarantee(parameters, "sum"),
        sentences=f"The total of each user was clipped to {interval}, and {noise} was added to the sum. The "
        f"{MEASURES[solution.measure]} of the release is {wording.number(solution.error)}, with a bias of "
        f"{wording.number(clipped.bias)}.",
        public_sentences=f"The total of each user was clipped to {interval if is_entered else 'an interval'}, and "
        f"{noise} was added to the sum.",
        disclosure=data.provenance,
        rule=rule,
        subject="The error" if is_entered else "The interval",
        choice_source=ChoiceSource.ENTERED if is_entered else ChoiceSource.COMPUTED,
    )


def write_total_forms(solution: TotalSolution, dataset: Dataset) -> CodeChoice | None:
    """Describe the best bound on a count of rows or a sum, for programs; None where no library has it."""
    problem, bound = solution.problem, solution.bound
    base = fields_of_data(dataset) | {"noise": problem.mechanism, "delta": problem.delta}
    if column := solution.unit.column or summed_column(dataset):
        fields = {"max_total": bound, "value_column": column} | ROWS_OF_THE_FILE
        return build_forms(problem.epsilon, base, [("Clamp", Quantity.SUM, fields)])
    return build_forms(problem.epsilon, base, [(cap_form(bound), Quantity.COUNT, {"max_rows": bound})])


def write_signed_forms(
    solution: SignedSolution, dataset: Dataset, parameters: TotalParameters
) -> CodeChoice | None:
    """Describe the range for totals of both signs, for programs; one that the person entered is a public input."""
    fields = {
        "max_total": solution.clipped.high,
        "min_total": solution.clipped.low,
        "value_column": solution.unit.column,
    }
    fields |= ROWS_OF_THE_FILE
    base = fields_of_data(dataset) | {"noise": parameters.mechanism, "delta": parameters.delta}
    if solution.is_entered:
        base["disclosure"] = Disclosure.PUBLIC
    return build_forms(parameters.epsilon, base, [("Clamp", Quantity.SUM, fields)])
