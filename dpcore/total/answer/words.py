"""The solution for a sum or a count in words: sentences, numbers, the methods section, programs."""

from __future__ import annotations

import numpy as np

from dpcore import total
from dpcore.answer import standard
from dpcore.answer.answer import Number
from dpcore.answer.methods import ChoiceSource, Methods, cite_program_noise, write_guarantee
from dpcore.code import forms
from dpcore.code.release_spec import Quantity
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import choose_library, describe_program
from dpcore.common.wording import (
    PERCENT,
    choose_word,
    escape_text,
    format_count,
    format_digits,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.total.answer.solution import NAME_BY_MEASURE, SignedSolution, TotalSolution
from dpcore.total.parameters import Summed, TotalParameters, UserTotals

MIN_ERROR_OF_LITTLE_USE = 0.5
"""Relative error above which a release is of little use."""
ON_DP_RELEASE_SENTENCE = (
    "**The DP release is treated as the true data.** Its noise hides the few largest users, so the error on the "
    "original data can be far larger."
)
LABEL_BY_MEASURE = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Error, at most"}
HELP_BY_MEASURE = {
    Measure.ABSOLUTE: "Mean of |release − truth|.",
    Measure.RMSE: "Root of the mean of (release − truth)².",
    Measure.BOUND: "Bias plus mean noise (Amin et al., equation 5).",
}
LARGEST_RATIO_BY_NOISE = {NoiseKind.LAPLACE: 1.466, NoiseKind.GAUSSIAN: 1.543}
"""The paper's bound over the expected error, at most, by the noise."""


def write_headline(solution: TotalSolution) -> str:
    """Write one sentence: at which bound to keep rows or clamp totals, or that nothing useful can be released."""
    unit = solution.unit
    if solution.choice.max_total == 0.0:
        epsilon_text = format_entered(solution.problem.epsilon)
        return f"Nothing useful can be released at ε = {epsilon_text}: publishing 0 is no worse."
    bound_text = unit.format_amount(solution.bound, 4)
    if unit.column_name:
        return f"Clamp each user's total of {escape_text(unit.column_name)} at {bound_text}."
    return standard.instruct_to_cap(bound_text)


def list_numbers(solution: TotalSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: the bound, its error, bias and noise."""
    unit, measure, best_bound = solution.unit, solution.measure, solution.bound

    def build_number(label: str, value: float, number_help: str, key: str) -> Number:
        """Build the number of an error or of a part of it, with its ratio to the error of publishing 0."""
        error_share = value / solution.choice.error_of_nothing
        share_text = f"({format_percent(error_share)} of the {unit.result_name})"
        return Number(label, unit.format_amount(value), share_text, number_help, value, unit.axis_unit, key)

    bound_help = "Larger totals count as this much." if unit.column_name else ""
    bound_key = "max_total" if unit.column_name else "max_contributions"
    bound_text = unit.format_amount(best_bound, 4)
    cut_help = f"The {unit.result_name} is always too low by this much."
    noise_label = "RMS noise" if measure is Measure.RMSE else "Mean noise"
    noise_size = float(solution.bound_errors.measure_noise(measure))
    best_error = solution.compute_error(best_bound)
    return (
        Number("Best bound", bound_text, "per user", bound_help, best_bound, unit.per_user_unit, bound_key),
        build_number(LABEL_BY_MEASURE[measure], best_error, HELP_BY_MEASURE[measure], "error"),
        build_number("Cut away (bias)", float(solution.bound_errors.bias), cut_help, "bias"),
        build_number(noise_label, noise_size, "It can cancel a part of the bias.", "noise"),
    )


def describe_near_optimal(solution: TotalSolution) -> str:
    """Write the range of bounds whose error stays near the best."""
    if not solution.unit.column_name:
        return standard.write_near_optimal_range(*solution.near_optimal_bounds, "row")
    # In few digits, as an end may equal one user's total.
    smallest_bound, largest_bound = (float(f"{range_end:.3g}") for range_end in solution.near_optimal_bounds)
    return standard.write_near_optimal_range(smallest_bound, largest_bound)


def write_detail(solution: TotalSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline, most important first; empty if there are none."""
    best_choice, sentences = solution.choice, []
    if best_choice.gain < MIN_ERROR_OF_LITTLE_USE and best_choice.max_total > 0.0:
        sentences.append(
            f"**Of little use**: publishing 0 has only {format_number(1.0 / (1.0 - best_choice.gain))} times the "
            "error. "
            "Use more users or a larger ε."
        )
    if dataset.is_private:
        sentences.append(standard.warn_of_leak("this bound was"))
    if dataset.release is not None:
        sentences.append(ON_DP_RELEASE_SENTENCE)
    if solution.bound >= solution.problem.amounts.largest:
        sentences.append("The best bound keeps everything.")
    return " ".join(sentences)


def list_facts(solution: TotalSolution, parameters: TotalParameters) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading, among them those on an own bound or range."""
    own_bound = parameters.own_bound
    best_choice, unit, problem, best_bound = solution.choice, solution.unit, solution.problem, solution.bound
    amounts, texts_by_heading = problem.amounts, dict[str, str]()
    if best_bound != best_choice.max_total:
        texts_by_heading["Rounded"] = (
            f"the exact bound may equal one user's total. Rounding costs at most 0.1{PERCENT} in error."
        )
    if best_bound > 0.0:
        texts_by_heading["Half or double"] = standard.compare_half_and_double(
            best_bound,
            lambda bounds: map(solution.compute_error, bounds),
            unit.format_amount,
            is_integer=problem.is_integer,
        )
    texts_by_heading["Who is affected"] = standard.describe_affected(
        int(amounts.count_users_above(best_bound)),
        amounts.num_users,
        float(solution.bound_errors.bias) / best_choice.error_of_nothing,
        f"the {unit.result_name} is cut away",
    )
    if best_choice.max_total > 0.0:
        least_error, most_error = total.compute_error_interval(problem, best_bound)
        low_error_text, high_error_text = format_number(least_error), unit.format_amount(most_error)
        texts_by_heading[f"Error of 95{PERCENT} of releases"] = f"from {low_error_text} to {high_error_text}."
    program_arguments = problem.program, problem.mechanism, problem.epsilon, problem.delta
    texts_by_heading["Noise"] = describe_program(*program_arguments, is_of_counts=problem.is_integer)
    if parameters.lower is not None:
        texts_by_heading["Your own range"] = (
            "not used, as no total is negative: the best bound is found. Enter your own bound to compare it."
        )
    if own_bound is not None:
        texts_by_heading[f"Your own bound, {unit.format_amount(own_bound, 4)}"] = standard.compare_own_bound(
            NAME_BY_MEASURE[problem.measure],
            solution.compute_error(own_bound),
            best_choice.certificate.value,
            unit.format_amount,
        )
    return texts_by_heading


def write_measures_table(solution: TotalSolution) -> str:
    """Write a Markdown table: each measure's error at this bound, and its own best bound."""
    table_lines = ["| error | at this bound | best bound |", "|---|---|---|"]
    for measure, measure_name in NAME_BY_MEASURE.items():
        measure_title = measure_name.capitalize()
        name_cell = f"**{measure_title}**" if measure is solution.measure else measure_title
        error_at_bound_text = solution.unit.format_amount(float(solution.bound_errors.measure_error(measure)))
        best_bound_text = solution.unit.format_amount(solution.bounds_by_measure[measure], 4)
        table_lines.append(f"| {name_cell} | {error_at_bound_text} | {best_bound_text} |")
    return "\n".join(table_lines)


def describe_bound(solution: TotalSolution) -> str:
    """Write one sentence: how many times the expected error the paper's upper bound is."""
    bound_errors = solution.bound_errors
    bound_over_error_text = format_number(float(bound_errors.bias_plus_noise / bound_errors.absolute_errors))
    noise_kind = solution.problem.noise.kind
    return (
        f"The paper's bound is {bound_over_error_text} times the expected error; with {noise_kind.value} noise it is "
        "at most "
        f"{LARGEST_RATIO_BY_NOISE[noise_kind]} times (the paper proves 2)."
    )


def compare_noises(solution: TotalSolution) -> str:
    """Write one sentence with the best error under Laplace and under Gaussian noise."""
    laplace_text, gaussian_text = (
        solution.unit.format_amount(solution.find_best_by_noise(noise_kind).certificate.value)
        for noise_kind in (NoiseKind.LAPLACE, NoiseKind.GAUSSIAN)
    )
    return (
        f"**Which noise?** The best error is {laplace_text} with Laplace noise, whose guarantee is stronger (no "
        f"delta), and {gaussian_text} with Gaussian noise at δ = {format_entered(solution.delta)}."
    )


def describe_totals(user_totals: UserTotals, dataset: Dataset) -> str:
    """Write one sentence: how many users there are, and what their rows or totals add up to."""
    users_text = format_count(dataset.histogram.num_users, "user")
    if user_totals.amounts is None or not user_totals.column_name:
        return f"{users_text} with {format_count(dataset.histogram.num_rows, 'row')}."
    sum_text = format_number(user_totals.amounts.total, 4)
    return f"{users_text}; the totals of {escape_text(user_totals.column_name)} add up to {sum_text}."


NAME_BY_ANY_MEASURE = NAME_BY_MEASURE | {Measure.BOUND: "sum of the bias and the mean size of the noise"}


def write_methods(solution: TotalSolution, dataset: Dataset, parameters: TotalParameters) -> Methods:
    """Write the methods text: the best bound on what a user adds, the noise, and the error."""
    # By what was entered, and not by the view's column: that there is one is part of the question.
    result_name, public_phrase = "sum", "The total of each user was limited"
    bounding_phrase = f"{public_phrase} to {format_number(solution.bound, 6)}"
    rounding_phrase = ", and was then rounded to few digits"
    if parameters.summed is Summed.ROWS:
        result_name, rounding_phrase = "count of rows", ""
        bounding_phrase = f"At most {format_count(solution.bound, 'row')} per user were counted"
        public_phrase = "The rows counted per user were limited"
    noise_phrase = cite_program_noise(parameters.program, solution.problem.noise.kind, parameters.mechanism)
    measure_name = NAME_BY_ANY_MEASURE[solution.measure]
    error_text = solution.unit.format_amount(solution.compute_error(solution.bound))
    epsilon_text = format_entered(parameters.epsilon)
    no_release_sentence = f"At ε = {epsilon_text} publishing 0 is no worse, and nothing was released."
    return Methods(
        guarantee_text=_write_guarantee(parameters, result_name),
        procedure=f"{bounding_phrase}, and {noise_phrase} was added to the {result_name}. The {measure_name} of the "
        f"release is {error_text}, with a bias of {solution.unit.format_amount(float(solution.bound_errors.bias))}.",
        public_procedure=f"{public_phrase}, and {noise_phrase} was added to the {result_name}.",
        disclosure=dataset.provenance,
        rule_sentence=f"The bound minimises the {measure_name} [@amin2019, section 3]{rounding_phrase}.",
        no_release_sentence=no_release_sentence if solution.choice.max_total == 0.0 else "",
    )


def _write_guarantee(parameters: TotalParameters, quantity_name: str) -> str:
    """Write the sentence on the privacy guarantee of the released sum or count."""
    release_phrase, delta = f"The {quantity_name} was released", parameters.delta or 0.0
    return write_guarantee(release_phrase, parameters.epsilon, Neighbours.ADD_OR_REMOVE_USER, delta)


def write_forms(
    solution: TotalSolution | SignedSolution, dataset: Dataset, parameters: TotalParameters
) -> forms.OfferedPrograms | None:
    """Build the programs for the best bound, or for the range of totals of both signs; None if no library has them."""
    shared_options = forms.list_data_fields(dataset) | {
        "noise": parameters.mechanism,
        "delta": parameters.delta,
    }
    column = solution.unit.column_name or forms.find_summed_column(dataset)
    noise_library = choose_library(parameters.program, parameters.mechanism)
    if isinstance(solution, SignedSolution):
        bound_options = {"max_total": solution.clipped_sum.high, "min_total": solution.clipped_sum.low}
        if solution.is_entered:  # A public input, whatever the data are.
            shared_options["disclosure"] = Disclosure.PUBLIC
    elif column:
        bound_options = {"max_total": solution.bound}
    else:
        named_forms = [(forms.name_cap_form(solution.bound), Quantity.COUNT, {"max_rows": solution.bound})]
        return forms.build_forms(parameters.epsilon, shared_options, named_forms, noise_library)
    form_options = bound_options | {"value_column": column} | forms.FILE_ROW_FIELDS
    return forms.build_forms(
        parameters.epsilon, shared_options, [("Clamp", Quantity.SUM, form_options)], noise_library
    )


# --- totals of both signs -----------------------------------------------------------------------------------


def _format_range(solution: SignedSolution, num_digits: int = 4) -> str:
    """Format the range as ``[L, U]``, each end with ``num_digits`` digits."""
    range_ends = solution.clipped_sum.low, solution.clipped_sum.high
    return "[{}, {}]".format(*(format_number(range_end, num_digits) for range_end in range_ends))


def write_signed_headline(solution: SignedSolution) -> str:
    """Write one sentence: to which range to clip each user's total."""
    return f"Clip each user's total of {escape_text(solution.user_totals.column_name)} to {_format_range(solution)}."


def list_signed_numbers(solution: SignedSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: the range, its error, the largest change by one user, bias and noise."""
    clipped_sum, axis_unit = solution.clipped_sum, solution.unit.axis_unit
    noise_label = "RMS noise" if solution.measure is Measure.RMSE else "Mean noise"
    abs_sum = abs(float(solution.problem.totals.sum()))
    share_of_sum_text = (
        f"({format_percent(solution.error / abs_sum)} of the sum)" if abs_sum else "(the sum is 0)"
    )
    bias_note = "too low" if clipped_sum.bias < 0.0 else "too high" if clipped_sum.bias else "none"
    clipboard_text = f"{format_digits(clipped_sum.low)}, {format_digits(clipped_sum.high)}"
    range_help = "A total outside counts as the nearer end."

    def build_number(
        label: str, value: float, number_note: str = "", num_digits: int = 3, key: str = ""
    ) -> Number:
        """Build a number whose text is the size of the value; the number itself keeps the sign."""
        return Number(label, format_number(abs(value), num_digits), number_note, "", value, axis_unit, key)

    return (
        Number("Range", _format_range(solution), "", range_help, clipboard_text=clipboard_text),
        build_number(LABEL_BY_MEASURE[solution.measure], solution.error, share_of_sum_text, key="error"),
        build_number("Largest change by one user", clipped_sum.sensitivity, num_digits=4),
        build_number("Bias", clipped_sum.bias, bias_note),
        build_number(noise_label, float(clipped_sum.errors.measure_noise(solution.measure))),
    )


def list_signed_facts(solution: SignedSolution, parameters: TotalParameters) -> dict[str, str]:
    """Build the facts beside a range: texts by heading."""
    clipped_sum, texts_by_heading = solution.clipped_sum, dict[str, str]()
    num_below, num_above = clipped_sum.num_users_below, clipped_sum.num_users_above
    num_cut = num_below + num_above
    if parameters.own_bound and (own_error := solution.compute_own_error(parameters)) is not None:
        own_bound_text = format_number(parameters.own_bound, 4)
        texts_by_heading[f"Your own bound, [−{own_bound_text}, {own_bound_text}]"] = (
            standard.compare_own_bound(
                NAME_BY_MEASURE[solution.measure], own_error, solution.error, format_number, "the range"
            )
        )
    if not solution.is_entered:
        texts_by_heading["How the range was chosen"] = (
            "noise plus all cuts is least, then rounded, as the exact bound is one user's total. If the curve is "
            "lower elsewhere, cuts at both ends partly cancel there."
        )
    return texts_by_heading | {
        "Who is affected": (
            f"{format_count(num_cut, 'user')} ({format_percent(num_cut / solution.problem.totals.size)}): "
            f"{format_number(num_below)} below L, {format_number(num_above)} above U."
        )
    }


def write_signed_detail(solution: SignedSolution, dataset: Dataset) -> str:
    """Write why both ends need a bound, and a warning if the range was read off private data."""
    user_totals = solution.problem.totals
    num_negative = int(np.sum(user_totals < 0.0))
    signs_sentence = (
        f"{format_number(num_negative)} of {format_count(user_totals.size, 'user')} "
        f"{choose_word(num_negative, 'has', 'have')} a negative total, so both sides need a bound."
    )
    is_leak = dataset.is_private and not solution.is_entered
    return f"{signs_sentence} {standard.warn_of_leak('this range was')}" if is_leak else signs_sentence


def write_signed_methods(solution: SignedSolution, dataset: Dataset, parameters: TotalParameters) -> Methods:
    """Write the methods text for totals of both signs: the range, the noise, and the error."""
    clipping_range_text, public_interval_text = _format_range(solution, 6), "an interval"
    is_entered = solution.is_entered
    rule_sentence = "The interval is symmetric about 0 and minimises privacy noise plus all cuts."
    if is_entered:
        public_interval_text = clipping_range_text
        rule_sentence = "The interval was fixed without looking at the data."
    noise_kind = solution.problem.size_problem.noise.kind
    cited_noise = cite_program_noise(parameters.program, noise_kind, parameters.mechanism)
    noise_phrase = f"and {cited_noise} was added to the sum."
    return Methods(
        guarantee_text=_write_guarantee(parameters, "sum"),
        procedure=f"The total of each user was clipped to {clipping_range_text}, {noise_phrase} The "
        f"{NAME_BY_ANY_MEASURE[solution.measure]} of the release is {format_number(solution.error)}, with a bias of "
        f"{format_number(solution.clipped_sum.bias)}.",
        public_procedure=f"The total of each user was clipped to {public_interval_text}, {noise_phrase}",
        disclosure=dataset.provenance,
        rule_sentence=rule_sentence,
        subject_phrase="The error" if is_entered else "The interval",
        choice_source=ChoiceSource.ENTERED if is_entered else ChoiceSource.COMPUTED,
    )
