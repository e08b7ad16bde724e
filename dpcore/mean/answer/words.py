"""The solution of a mean in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore import mean
from dpcore.answer import standard
from dpcore.answer.answer import (
    BIAS,
    NOISE,
    SAMPLING,
    Alternative,
    ErrorPart,
    Number,
    RelativeError,
    build_error_parts,
)
from dpcore.answer.axes import RANGE_SOURCE_PHRASE, ROWS_UNIT, OutsideCounts
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program, describe_program
from dpcore.common.wording import (
    PERCENT,
    capitalise,
    choose_word,
    describe_change,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.mean.answer.solution import MAX_LISTED_INTERVALS, MeanSolution
from dpcore.mean.answer.users import VALUE_UNIT, propose_clamp
from dpcore.mean.moved_mean import find_mean
from dpcore.mean.parameters import Clamp, MeanParameters
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import ValueSummary

MEAN_OVER_USERS = "Mean over users"
MIN_CLEAR_SLOPE = 3.0
"""Smallest slope, in standard errors, that is reported as a difference of users with more rows."""
MAX_STDS_FROM_END = 3.0
"""Standard deviations of the noise from an end of the range within which the mean is said to leave it."""
MIN_MOVED_ERROR_SHARE = 0.01
"""Share by which the step changes the error from which on near-optimal bounds are said to be those before it."""
MIN_GAIN_OF_ALTERNATIVE = 0.02
"""Least share of the cap's error that smooth weights must save to stand on the card."""
VALUES_LEAK_SENTENCE = standard.warn_of_leak(
    "this bound was",
    "their values and row counts",
    "Take σ² and ρ from elsewhere, and choose the bound with DP, or without these data.",
)
COUNTS_PUBLIC_SENTENCE = "**How many rows each user has is assumed to be public**."


def build_numbers(solution: MeanSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: bound and error of the best cap, and of the best smooth weights.

    The worst-case error comes last if it is known.
    """
    cap, threshold = solution.cap_choice.max_contributions, solution.smooth_choice.threshold
    which_mean_phrase = "of the rows in this table" if solution.is_about_table else "of the population"
    error_help = f"Root mean square distance of a release from the mean {which_mean_phrase}."
    if solution.includes_step:
        error_help += " It counts that a release outside [L, U] is moved to its nearer end."
    else:
        error_help += " It is an upper bound, as a release outside [L, U] is moved to its nearer end."
    error_label, error_key = capitalise(solution.error_name), solution.error_name.replace(" ", "_")

    def build_error_number(mean_error: mean.MeanError, error_label: str, number_key: str) -> Number:
        """Build the number of an error, with the share of noise in its square."""
        error = math.sqrt(float(mean_error.squared_error))
        noise_note = (
            f"({format_percent(float(mean_error.privacy_variance / mean_error.squared_error))} noise)"
        )
        return Number(
            error_label, format_number(error), noise_note, error_help, error, VALUE_UNIT, number_key
        )

    cap_text, threshold_text = format_count(cap, "row"), format_number(threshold)
    threshold_unit = choose_word(threshold, "row per user", "rows per user")
    cap_help = "Upper bound on contributions per user."
    threshold_help = "The rows of a heavier user together weigh as much as this many."
    threshold_number_arguments = (
        threshold_text,
        threshold_unit,
        threshold_help,
        threshold,
        ROWS_UNIT,
        "threshold",
    )
    numbers = (
        Number("Best bound", cap_text, "per user", cap_help, cap, ROWS_UNIT, "max_contributions"),
        build_error_number(solution.cap_error, error_label, error_key),
        Number("Bound of the smooth weights", *threshold_number_arguments),
        build_error_number(solution.smooth_error, f"{error_label}, smooth weights", f"smooth_{error_key}"),
    )
    if solution.worst_case_errors is None:
        return numbers
    error = solution.worst_case_errors.cap_error_bound
    worst_case_help = "The worst case of the best bound over all values in [L, U], not a forecast."
    upper_bound_note = "at most, linearised" if solution.has_private_counts else "at most"
    worst_case_error_text = format_number(error)
    return *numbers, Number(
        "Error whatever the values",
        worst_case_error_text,
        upper_bound_note,
        worst_case_help,
        error,
        VALUE_UNIT,
    )


def list_error_parts(solution: MeanSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the best cap's error: bias if it is known, sampling, noise.

    Their squares add up to its square.
    """
    cap_error = solution.cap_error
    errors_by_part = {BIAS: abs(float(cap_error.shift))} if solution.problem.table_values is not None else {}
    errors_by_part[SAMPLING] = math.sqrt(float(cap_error.sampling_variance))
    errors_by_part[NOISE] = math.sqrt(float(cap_error.privacy_variance))
    return build_error_parts(errors_by_part, format_number)


def write_detail(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> str:
    """Write the sentences that qualify the headline, most important first."""
    sentences, problem, clamped_values = [], solution.problem, solution.clamped_values
    if clamped_values is not None:
        num_below_and_above = clamped_values.num_below, clamped_values.num_above
        outside_counts = OutsideCounts(*num_below_and_above, problem.histogram.num_rows)
        if outside_counts.exceeds_warning:
            uncounted_clamping_phrase = (
                ", and no number here counts that error" if problem.table_values is None else ""
            )
            sentences.append(
                f"**{outside_counts.percent_text} of the values are clamped**{uncounted_clamping_phrase}: set L and "
                f"U {RANGE_SOURCE_PHRASE}"
            )
    sentences += _describe_target(solution, parameters)
    if isinstance(problem, PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
    noise_variance = max(solution.cap_choice.privacy_variance, solution.smooth_choice.privacy_variance)
    sentences += warn_of_range(problem, noise_variance)
    sentences += warn_of_leaks(solution, dataset, parameters)
    if solution.cap_choice.max_contributions == problem.histogram.max_size:
        sentences.append("The best bound keeps every row.")
    return " ".join(sentences)


def warn_of_range(problem: mean.MeanProblem, noise_variance: float, reach: float = 1.0) -> list[str]:
    """Write a sentence on the step into the range if noise can leave it, else none.

    Args:
        problem: The question; if it knows no mean, that is taken to be the middle of the range.
        noise_variance: Variance of the noise of the mean.
        reach: Half of the range that a mean is moved into, over half of that of the values.
    """
    mean_above_lower, half_range = find_mean(problem), problem.value_bound / 2.0
    distance = 0.0 if mean_above_lower is None else abs(mean_above_lower - half_range)
    if reach * half_range - distance >= MAX_STDS_FROM_END * math.sqrt(noise_variance):
        return []
    if mean_above_lower is None:
        return [
            "**Noise can leave the range**: this error is an upper bound, as the program moves the mean into it."
        ]
    return [
        "**Noise can leave the range**: the program moves the mean into it. The error counts that; the bound is the "
        "best before it."
    ]


def warn_of_leaks(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> list[str]:
    """Write sentences on what a bound from private data reveals, and on the bound that reveals less.

    Empty if the data are not private.
    """
    if not dataset.is_private:
        return []
    reads_values = solution.clamped_values is not None and parameters.reads_values
    if not reads_values and solution.has_private_counts:
        return [standard.warn_of_leak("this bound was")]
    safer_cap_text = format_count(_find_safer_cap(solution, parameters), "row")
    if not reads_values:
        sentences, worst_case_phrase = [standard.PUBLIC_COUNTS_CAVEAT], ""
    else:
        sentences, worst_case_phrase = [VALUES_LEAK_SENTENCE], "σ² of the worst case and "
        if not solution.has_private_counts:
            sentences.append(COUNTS_PUBLIC_SENTENCE)
    return [*sentences, f"With {worst_case_phrase}private counts the best bound is **{safer_cap_text}**."]


def _find_safer_cap(solution: MeanSolution, parameters: MeanParameters) -> int:
    """Find the best cap with private counts, worst-case variance and assumed user share: no values are read."""
    changed_fields: dict[str, object] = {"counts": mean.Counts.PRIVATE}
    if parameters.variance_source is mean.VarianceSource.FROM_VALUES:
        changed_fields["variance_source"] = mean.VarianceSource.WORST_CASE
    if parameters.likeness is mean.Likeness.FROM_VALUES:
        changed_fields["likeness"] = mean.Likeness.ENTERED
    problem = replace(parameters, **changed_fields).build_problem(solution.problem.histogram)  # type: ignore[arg-type]
    return mean.find_best_cap(problem).max_contributions


def _describe_target(solution: MeanSolution, parameters: MeanParameters) -> list[str]:
    """Write sentences on which mean the error is about, what is assumed, and whether users with more rows differ."""
    value_summary, problem = solution.value_summary, solution.problem
    sentences = []
    if value_summary is not None and not value_summary.has_finite_error and solution.is_about_table:
        sentences.append("**Some values are beyond 1e100**: the error cannot be computed from them.")
    if value_summary is not None and problem.table_values is not None:
        clamping_shift = value_summary.table_values.clamping_shift
        sentences.append(
            "Error about **the mean of these rows**. Shift by leaving rows out: {}, by clamping: {}.".format(
                *map(format_number, (solution.cap_choice.shift - clamping_shift, clamping_shift))
            )
        )
    elif solution.is_about_table or problem.user_share:
        assumption_phrase = "rows are independent"
        if problem.user_share:
            assumption_phrase = f"{format_percent(problem.user_share, 2)} of the variance lies between users"
        which_mean_phrase = (
            "about **this table's mean**" if solution.is_about_table else "**for people like these**"
        )
        sentences.append(f"Error {which_mean_phrase}. Assumed: {assumption_phrase}.")
    if (
        value_summary is not None
        and parameters.reads_values
        and abs(value_summary.size_slope) > MIN_CLEAR_SLOPE
    ):
        clamped_values = value_summary.clamped_values
        mean_over_users = float(clamped_values.user_means.mean())
        heavier_users_comparative = "higher" if value_summary.size_slope > 0.0 else "lower"
        sentences.append(
            f"**Users with more rows have {heavier_users_comparative} values**: the mean over rows is "
            f"{format_number(clamped_values.mean)}, over users {format_number(mean_over_users)}. This bound is for "
            "the first."
        )
    return sentences


def describe_near_optimal(solution: MeanSolution) -> str:
    """Write which caps have an error within 5 % of the best.

    Several intervals are listed, or only counted if there are more than `MAX_LISTED_INTERVALS`.
    """
    min_cap, max_cap = solution.near_optimal
    objective_text = f"the least {solution.error_name}"
    if not math.isclose(
        solution.cap_standard_error, solution.cap_choice.standard_error, rel_tol=MIN_MOVED_ERROR_SHARE
    ):
        objective_text += " before the mean is moved into [L, U]"
    if len(solution.stretches) > MAX_LISTED_INTERVALS:
        intervals_text = f"{len(solution.stretches)} stretches"
    elif len(solution.stretches) > 1:
        interval_texts = [
            format_number(a) + (f" to {format_number(b)}" if b > a else "") for a, b in solution.stretches
        ]
        intervals_text = f"{', '.join(interval_texts)} rows"
    else:
        smaller_caps_phrase = "smaller bounds" if min_cap > 1 else ""
        worse_caps_phrase = (
            "all other bounds" if max_cap < solution.problem.histogram.max_size else smaller_caps_phrase
        )
        return standard.write_near_optimal_range(
            min_cap, max_cap, "row", objective_text=objective_text, worse_choices_phrase=worse_caps_phrase
        )
    return f"bounds of {intervals_text} are within 5{PERCENT} of {objective_text}."


def build_facts(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> dict[str, str]:
    """Build the facts behind the answer: texts by heading."""
    histogram, error_name = solution.problem.histogram, solution.error_name
    cap, best_error = solution.cap_choice.max_contributions, solution.cap_standard_error
    lost_share_of_rows = 1.0 - float(histogram.count_kept_rows(cap)) / histogram.num_rows
    share_of_rows_of_affected = (
        1.0 - float(histogram.compute_sums_at(cap).rows_at_or_below) / histogram.num_rows
    )
    num_affected = histogram.count_users_above(cap)
    affected_users_text = standard.describe_affected(num_affected, histogram.num_users, lost_share_of_rows)
    holds_phrase = choose_word(num_affected, "This user holds", "These users hold")
    compute_errors = solution.compute_standard_errors
    texts_by_heading = {
        "Half or double": standard.compare_half_and_double(cap, compute_errors, format_number, error_name),
        "Who is affected by the bound": f"{affected_users_text} {holds_phrase} "
        f"{format_percent(share_of_rows_of_affected)} of all rows.",
    }
    if solution.value_summary is not None and parameters.reads_values:
        texts_by_heading["How users differ"] = describe_user_share(solution.value_summary)
    users_solution = solution.users_solution
    if users_solution is not None and users_solution.user_deviations is not None:
        clamp_proposal = propose_clamp(users_solution, solution.smooth_choice, Clamp.ROWS)
        texts_by_heading["Against clamped users"] = clamp_proposal
    texts_by_heading["Noise"] = describe_noise(solution.problem)
    if (split_release := solution.split_release) is not None:
        split_error = split_release.cap_choice.standard_error
        split_cap_text = format_count(split_release.cap_choice.max_contributions, "row")
        count_budget_text = "a third of ε" if solution.problem.program is Program.BIGQUERY else "ε/2"
        if solution.problem.noise.kind is NoiseKind.GAUSSIAN:
            count_budget_text = "half of the budget"
        change_text = describe_change(split_error, solution.cap_choice.standard_error)
        before_text = ", before a mean is moved into [L, U]" if solution.includes_step else ""
        texts_by_heading["Against the usual split"] = (
            f"numerator and denominator with {count_budget_text} each: error {format_number(split_error)} at their "
            f"best bound of {split_cap_text}, {change_text}{before_text}."
        )
    if dataset.is_private and not solution.has_private_counts:
        texts_by_heading["Where counts are private"] = "choose *Private too* under *Contribution counts are*."
    if parameters.own_bound is not None:
        own_and_best_errors = float(compute_errors(parameters.own_bound)), best_error
        own_bound_sentence = standard.compare_own_bound(error_name, *own_and_best_errors, format_number)
        texts_by_heading[f"Your own bound, {format_count(parameters.own_bound, 'row')}"] = own_bound_sentence
    linearised_note = ", linearised" if solution.has_private_counts else ""
    if (errors := solution.worst_case_errors) is not None:
        texts_by_heading["Whatever the values"] = (
            f"for values in [L, U] the error is at most {format_number(errors.cap_error_bound)} with the best "
            f"bound, {format_number(errors.smooth_error)} with its smooth weights, "
            f"{format_number(errors.best_weights_error)} with the best weights for that{linearised_note}. Reached "
            "if heavy users have all values at one end."
        )
    if isinstance(solution.problem, PrivateCountsProblem):
        is_unknown = solution.problem.mean_above_lower is None
        worst_mean_phrase = "at which it is largest, L or U" if is_unknown else "of all rows, for every bound"
        texts_by_heading["At which mean"] = f"the noise is computed for the mean {worst_mean_phrase}."
    texts_by_heading[MEAN_OVER_USERS] = (
        f"error {format_number(solution.error_over_users)}, all of it noise{linearised_note}; clamping comes on top. "
        "*Get code* has it."
    )
    return texts_by_heading


def describe_noise(problem: mean.MeanProblem) -> str:
    """Write a phrase on the noise that the program draws.

    If Laplace noise is split between sum and rows, a sentence says what that costs.
    """
    budget_arguments = problem.mechanism, problem.epsilon, problem.delta
    noise_text = describe_program(problem.program, *budget_arguments, num_aggregates=problem.num_aggregates)
    released_sums = problem.released_sums if isinstance(problem, PrivateCountsProblem) else None
    is_split = released_sums is ReleasedSums.CENTRED_SPLIT
    if is_split and problem.noise.kind is NoiseKind.LAPLACE and problem.program is not Program.BIGQUERY:
        noise_text += " The split of ε between sum and rows costs 1.41 times the noise of OpenDP's program."
    return noise_text


def describe_user_share(value_summary: ValueSummary) -> str:
    """Write which share of the variance lies between users, with its interval; or why it cannot be estimated."""
    user_share = value_summary.user_share
    if math.isnan(user_share.estimate):
        return "it cannot be estimated: nobody has two rows, or there is only one user."
    return (
        f"about {format_percent(user_share.clipped_estimate)} of the variance lies between users "
        f"({format_percent(user_share.low)} to {format_percent(user_share.high)}), as private as these values."
    )


def describe_shifts(solution: MeanSolution, value_summary: ValueSummary) -> tuple[str, ...]:
    """Write sentences on how far the best cap and smooth weights shift the mean, and on the variance between users."""
    clamped_values, sentences = value_summary.clamped_values, []
    cap_choice, smooth_choice = solution.cap_choice, solution.smooth_choice
    smooth_growth = mean.find_weight_growth(solution.problem, smooth_choice.threshold)
    cap_arguments = float(cap_choice.max_contributions), mean.WeightGrowth(), solution.cap_standard_error
    smooth_arguments = smooth_choice.threshold, smooth_growth, solution.smooth_standard_error
    for bounding_adjective, (bound, weight_growth, error) in (
        ("bounded", cap_arguments),
        ("smoothly weighted", smooth_arguments),
    ):
        weights_of_users = weight_growth.compute_scaled_weights(bound, clamped_values.sizes)
        shift_of_mean = (
            float(weights_of_users @ clamped_values.user_means / weights_of_users.sum()) - clamped_values.mean
        )
        sentence = (
            f"The {bounding_adjective} mean differs from the plain mean by {format_number(shift_of_mean)}"
        )
        if solution.problem.table_values is None:
            shift_in_errors_text = format_number(abs(shift_of_mean) / error, 2)
            sentence += f", {shift_in_errors_text} times the {solution.error_name}, which does not contain it"
        sentences.append(f"{sentence}.")
    return (*sentences, f"How users differ: {describe_user_share(value_summary)}")


def find_alternative(solution: MeanSolution) -> Alternative | None:
    """Return smooth weights as an `Alternative` if they save at least 2 % of the cap's error; else None."""
    smooth_error, cap_error = solution.smooth_standard_error, solution.cap_standard_error
    if smooth_error > (1.0 - MIN_GAIN_OF_ALTERNATIVE) * cap_error:
        return None
    threshold_text = format_number(solution.smooth_choice.threshold)
    comparison_sentence = (
        f"Smooth weights, bound {threshold_text}: error {format_number(smooth_error)}, "
        f"{describe_change(smooth_error, cap_error)}."
    )
    return Alternative(comparison_sentence, "Smooth weights")


def measure_relative_error(
    dataset: Dataset, solution: MeanSolution, standard_error: float, parameters: MeanParameters
) -> RelativeError:
    """Return the error over the size of the mean, or over half the range.

    Half the range stands in if the mean is 0 or unknown, or if it must not be read.
    """
    may_read_values = dataset.values is not None and (parameters.reads_values or not dataset.is_private)
    if (
        may_read_values
        and solution.clamped_values is not None
        and (abs_mean := abs(solution.clamped_values.mean))
    ):
        return RelativeError(standard_error / abs_mean, "the share" if dataset.has_shares else "the mean")
    return RelativeError(standard_error / (solution.problem.value_bound / 2.0), "half the range")


def write_methods(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Methods:
    """Write the methods text: guarantee, best cap, released sums and expected error."""
    value_range_text = f"[{format_entered(parameters.lower)}, {format_entered(parameters.upper)}]"
    problem = solution.problem
    sum_phrase, approximation_phrase = "the mean of the kept values [@epasto2020, section 3].", ""
    if isinstance(problem, PrivateCountsProblem):
        approximation_phrase = "" if solution.includes_step else " (by the delta method)"
        sum_phrase = "the sums of the kept values' distances from both ends of that interval."
        if problem.released_sums is not ReleasedSums.PAIR:
            sum_phrase = "the sum of the kept values around the middle of that interval, and to their number."
    noise_phrase = cite_noise(problem.noise.kind.value, problem.program)
    release_sentence = (
        f"Values were clamped to {value_range_text}, which is treated as public, and {noise_phrase} was added"
    )
    release_sentence += f" to {sum_phrase} A mean outside that interval was moved to its nearer end."
    cap_choice = solution.cap_choice
    at_most_phrase = "" if solution.includes_step else "at most "
    cap, error_text = cap_choice.max_contributions, format_number(solution.cap_standard_error)
    cap_text, was_or_were = format_count(cap, "row"), choose_word(cap, "was", "were")
    error_name = "error, as root mean square," if solution.is_about_table else "standard error"
    budget_arguments = parameters.epsilon, solution.neighbours, parameters.delta or 0.0
    return Methods(
        guarantee_text=write_guarantee(
            f"The {dataset.share_phrase or 'mean'} was released", *budget_arguments
        ),
        procedure=f"At most {cap_text} per user, drawn at random, {was_or_were} kept. {release_sentence} The "
        f"expected {error_name} of the released mean is {at_most_phrase}{error_text} in the unit of the values, noise "
        f"included{approximation_phrase}.",
        public_procedure=f"At most a fixed number of rows per user, drawn at random, were kept. {release_sentence}",
        disclosure=dataset.provenance,
        rule_sentence="The bound on rows per user minimises the expected squared error of the released mean"
        f"{_describe_rule(solution)}.",
    )


def _describe_rule(solution: MeanSolution) -> str:
    """Write the end of a sentence on the mean that the error is about, and on what is assumed of users."""
    problem, which_mean_phrase = solution.problem, " about the mean of the rows at hand"
    if problem.table_values is not None:
        return f"{which_mean_phrase} before clamping, computed from the values"
    user_share_phrase = (
        f" if a share of {format_number(problem.user_share, 2)} of the variance lies between users"
    )
    if not solution.is_about_table:
        return user_share_phrase if problem.user_share else " for rows that are independent draws"
    condition_phrase = " if numbers of rows say nothing about the values"
    return f"{which_mean_phrase}{condition_phrase}{f' and{user_share_phrase}' if problem.user_share else ''}"
