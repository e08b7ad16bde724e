"""The solution for a mean in words: sentences and numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore import mean
from dpcore.answer import standard
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, Number, build_error_parts
from dpcore.answer.axes import RANGE_SOURCE, ROWS_UNIT, OutsideCounts
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer.solution import MeanSolution
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.table_values import ValueSummary, bounded_mean

UNIT = "unit of the values"
SMOOTH_BOUND = "Bound of the smooth weights"
MEAN_OVER_USERS = "Mean over users"
CLEAR_SLOPE = 3.0
"""Smallest slope, in standard errors, that is reported as a difference of users with more rows."""
MAX_LISTED_INTERVALS = 4
"""Most intervals that a sentence lists."""
_STANDARD_ERROR = (
    "Root of the expected squared error. About two thirds of releases fall this close to the truth."
)
_DISTANCE = "Root mean square distance of a release from the mean of the rows in this table"
_ERROR_READ = (
    f"{_DISTANCE}, computed from the values: shifts by bounding and clamping, the draw of rows, and noise."
)
_ERROR_EXPECTED = f"{_DISTANCE}, expected if who has many rows says nothing about the values."
_NOISE_SHARE = " The note is the share of noise in the squared error."
_THRESHOLD = "The rows of a heavier user together weigh as much as this many. All other rows weigh the same."
_WORST_CASE = "The root mean square error is at most this, whatever the values in [L, U]. No forecast."
VALUES_LEAK = standard.warn_of_leak(
    "this bound was",
    "their values and row counts",
    "Take σ² and ρ from elsewhere, and choose the bound under *Choose privately*, or without these data.",
)
COUNTS_PUBLIC = "**How many rows each user has is assumed to be public**."


def numbers(solution: MeanSolution) -> tuple[Number, ...]:
    """Return the numbers of the answer: the best bound and the best smooth weights, each with its error."""
    cap, smooth, worst_case = solution.cap, solution.smooth, solution.worst_case
    if not solution.is_about_table:
        error_help = _STANDARD_ERROR + _NOISE_SHARE
    else:
        error_help = (_ERROR_EXPECTED if solution.problem.table is None else _ERROR_READ) + _NOISE_SHARE
    label, key = wording.capital(solution.error_name), solution.error_name.replace(" ", "_")
    bound, help_text = cap.max_contributions, "Upper bound on contributions per user."
    rows, threshold = wording.counted(bound, "row"), wording.number(smooth.threshold)
    per_user = wording.agreeing(smooth.threshold, "row per user", "rows per user")

    def build_error(label: str, choice: mean.CapChoice | mean.SmoothChoice, key: str) -> Number:
        note = f"({wording.percent(choice.privacy_variance / choice.variance)} noise)"
        error = choice.standard_error
        return Number(label, wording.number(error), note, error_help, error, UNIT, key)

    answer_numbers = (
        Number("Best bound", rows, "per user", help_text, bound, ROWS_UNIT, "max_contributions"),
        build_error(label, cap, key),
        Number(SMOOTH_BOUND, threshold, per_user, _THRESHOLD, smooth.threshold, ROWS_UNIT, "threshold"),
        build_error(f"{label}, smooth weights", smooth, f"smooth_{key}"),
    )
    if worst_case is None:
        return answer_numbers
    note = "at most, linearised" if solution.has_private_counts else "at most"
    error = worst_case.cap
    return (
        *answer_numbers,
        Number("Error whatever the values", wording.number(error), note, _WORST_CASE, error, UNIT),
    )


def error_parts(solution: MeanSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error of the best bound; their squares add up to its square."""
    cap = solution.cap
    shift = {BIAS: abs(cap.shift)} if solution.problem.table is not None else {}
    sizes = {**shift, SAMPLING: math.sqrt(cap.sampling_variance), NOISE: math.sqrt(cap.privacy_variance)}
    return build_error_parts(sizes, wording.number)


# --- On the card ------------------------------------------------------------------------------------------------------


def detail(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> str:
    """Build the sentences that qualify the headline, most important first."""
    sentences, clamped, problem = [], solution.clamped, solution.problem
    smooth_error, cap_error = solution.smooth.standard_error, solution.cap.standard_error
    if clamped is not None:
        values = OutsideCounts(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        if values.exceeds_warning:
            caveat = "" if problem.table is not None else ", and no number here counts that error"
            sentences.append(
                f"**{values.percent} of the values are clamped**{caveat}: set L and U {RANGE_SOURCE}"
            )
    sentences += _describe_target(solution, parameters)
    if (change := wording.change(smooth_error, cap_error)) == "the same":
        sentences.append("Smooth weights would gain nothing.")
    else:
        sentences.append(
            f"Smooth weights with a bound of {wording.number(solution.smooth.threshold)} "
            f"err by {wording.number(smooth_error)}: {change}."
        )
    if isinstance(problem, private_counts.PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
        cap_share = problem.noise_share(solution.cap.max_contributions)
        share = max(cap_share, problem.noise_share(solution.smooth.threshold, smooth=True))
        if share > private_counts.ROUGH_NOISE:
            sentences.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: this error is rough. Take a larger "
                "ε, or do not rely on it."
            )
    if dataset.is_private:
        reads_values = clamped is not None and parameters.reads_values
        if reads_values:
            sentences += [VALUES_LEAK, *([] if solution.has_private_counts else [COUNTS_PUBLIC])]
        else:
            counts_leak = standard.warn_of_leak("this bound was")
            sentences.append(counts_leak if solution.has_private_counts else standard.ASSUMES_PUBLIC_COUNTS)
        if reads_values or not solution.has_private_counts:
            rows = wording.counted(_find_safer_cap(solution, parameters), "row")
            worst_case = "σ² of the worst case and " if reads_values else ""
            sentences.append(f"With {worst_case}private counts the best bound is **{rows}**.")
    if problem.histogram.sizes.size == 1:
        sentences.append("All users have equally many rows: keep everything.")
    elif solution.cap.max_contributions == problem.histogram.max_size:
        sentences.append("The best bound keeps every row: noise is small beside the sampling error.")
    return " ".join(sentences)


def _find_safer_cap(solution: MeanSolution, parameters: MeanParameters) -> int:
    """Find the best cap with private counts and without the values."""
    changes: dict[str, object] = {"counts": mean.Counts.PRIVATE}
    if parameters.variance_source is mean.VarianceSource.FROM_VALUES:
        changes["variance_source"] = mean.VarianceSource.WORST_CASE
    if parameters.likeness is mean.Likeness.FROM_VALUES:
        changes["likeness"] = mean.Likeness.ENTERED
    problem = replace(parameters, **changes).problem(solution.problem.histogram)  # type: ignore[arg-type]
    return mean.best_cap(problem).max_contributions


def _describe_target(solution: MeanSolution, parameters: MeanParameters) -> list[str]:
    """Describe the target of the error, its assumptions, and if the means over rows and over users clearly differ."""
    summary, problem = solution.values, solution.problem
    sentences = []
    if summary is not None and not summary.has_finite_error and solution.is_about_table:
        sentences.append("**Some values are beyond 1e100**: the error cannot be computed from them.")
    if summary is not None and problem.table is not None:
        clamping = summary.table.clamping
        shift_text = f"leaving rows out shifts the mean by {wording.number(solution.cap.shift - clamping)}"
        if clamping:
            shift_text += f", clamping by {wording.number(clamping)}"
        sentences.append(f"Error about **the mean of these rows**: {shift_text}.")
    elif solution.is_about_table or problem.user_share:
        assumed = "rows are independent"
        if problem.user_share:
            assumed = f"{wording.percent(problem.user_share, 2)} of the variance lies between users"
        target = "about **this table's mean**" if solution.is_about_table else "**for people like these**"
        sentences.append(f"Error {target}. Assumed: {assumed}.")
    if summary is not None and parameters.reads_values and abs(summary.slope) > CLEAR_SLOPE:
        mean_over_users = wording.number(float(summary.clamped.user_means.mean()))
        sentences.append(
            f"**Users with more rows have {'higher' if summary.slope > 0.0 else 'lower'} values**: the mean over rows "
            f"is {wording.number(summary.clamped.mean)}, that over users {mean_over_users}. This bound is for the "
            "first; *Behind the answer* has the second."
        )
    return sentences


def describe_near_optimal(solution: MeanSolution) -> str:
    """Describe the bounds whose error is within 5 % of the best."""
    if len(solution.stretches) > 1:
        return f"{_describe_intervals(solution)}."
    low, high = solution.near_optimal
    is_largest = high >= solution.problem.histogram.max_size
    worse_bounds = "all other bounds" if not is_largest else "smaller bounds" if low > 1 else ""
    return standard.write_range(
        low, high, "row", objective=f"the least {solution.error_name}", others=worse_bounds
    )


def _describe_intervals(solution: MeanSolution) -> str:
    """List the intervals of near-optimal bounds, or only count them if there are many."""
    end = f"within 5{wording.PERCENT} of the least {solution.error_name}"
    if len(solution.stretches) > MAX_LISTED_INTERVALS:
        return f"{wording.number(len(solution.stretches))} stretches of bounds, {end}"
    intervals = [
        wording.number(low) if low == high else f"{wording.number(low)} to {wording.number(high)}"
        for low, high in solution.stretches
    ]
    return f"{', '.join(intervals[:-1])} and {intervals[-1]} rows, {end}"


# --- Behind the answer ------------------------------------------------------------------------------------------------


def facts(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> dict[str, str]:
    """Build the facts behind the answer, one sentence each."""
    cap, histogram, error_name = solution.cap, solution.problem.histogram, solution.error_name
    bound, best_error = cap.max_contributions, cap.standard_error
    lost_share = 1.0 - float(histogram.kept_rows(bound)) / histogram.num_rows
    held_share = 1.0 - float(histogram.pieces(bound).rows_at_or_below) / histogram.num_rows
    num_affected = histogram.users_above(bound)
    affected = standard.describe_affected(num_affected, histogram.num_users, lost_share)
    held_by = wording.agreeing(num_affected, "This user holds", "These users hold")
    sentences = _describe_users(solution, parameters) | {
        "Half or double": standard.compare_half_and_double(
            bound, solution.standard_error, wording.number, error_name
        ),
        "Who is affected by the bound": (
            f"{affected} {held_by} {wording.percent(held_share)} of all rows. Smooth weights leave none out."
        ),
    }
    if (split := solution.split_release) is not None:
        split_error, centred_error = split.cap.standard_error, split.centred.standard_error
        rows = wording.counted(split.cap.max_contributions, "row")
        sentences["Against the usual split"] = (
            f"numerator and denominator with ε/2 each err by {wording.number(split_error)} at their best bound of "
            f"{rows}: {wording.change(split_error, best_error)}. With values centred first: "
            f"{wording.number(centred_error)}, {wording.change(centred_error, best_error)}."
        )
    if dataset.is_private and not solution.has_private_counts:
        sentences["Where counts are private"] = "choose *Private too* under *Contribution counts are*."
    if parameters.own_bound is not None:
        name, own_error = (
            wording.counted(parameters.own_bound, "row"),
            solution.standard_error(parameters.own_bound),
        )
        sentences[f"Your own bound, {name}"] = standard.compare_own_bound(
            error_name, own_error, best_error, wording.number
        )
    if solution.worst_case is not None:
        sentences["Whatever the values"] = _describe_worst_case(solution)
    return sentences | _describe_noise(solution) | {MEAN_OVER_USERS: _describe_mean_over_users(solution)}


def _describe_users(solution: MeanSolution, parameters: MeanParameters) -> dict[str, str]:
    """Build the facts about users: the parts of the error, the assumed share, and the estimated share."""
    sentences: dict[str, str] = {}
    problem, values, cap = solution.problem, solution.values, solution.cap
    if values is not None and problem.table is not None:
        clamping, sampling_error = values.table.clamping, math.sqrt(cap.sampling_variance)
        sentences["What the error is made of"] = (
            f"rows that are left out shift the mean by {wording.number(cap.shift - clamping)}, clamping by "
            f"{wording.number(clamping)}; the draw of rows adds {wording.number(sampling_error)} and the noise "
            f"{wording.number(math.sqrt(cap.privacy_variance))} (root mean square). Shifts can cancel by luck."
        )
    elif parameters.likeness is mean.Likeness.ENTERED:
        safe = "" if solution.is_about_table else ", safe for every smaller one"
        sentences["Assumed of users"] = f"ρ = {wording.number(problem.user_share, 2)} is an assumption{safe}."
    if len(solution.stretches) > 1:
        sentences["Several stretches are good"] = "between them the error is larger."
    if values is not None and parameters.reads_values:
        sentences["How users differ"] = describe_user_share(values)
    return sentences


def _describe_worst_case(solution: MeanSolution) -> str:
    """Describe the worst-case errors of both choices, and the smallest one of any weights."""
    problem, clamped, worst_case = solution.problem, solution.clamped, solution.worst_case
    assert worst_case is not None
    cap, smooth, any_weights = (
        wording.number(error) for error in (worst_case.cap, worst_case.smooth, worst_case.any_weights)
    )
    is_clamped = clamped is not None and clamped.num_below + clamped.num_above > 0
    sentence = (
        f"the error is at most {cap} under the best bound, {smooth} under its smooth weights and {any_weights} under "
        f"the best weights for that, whatever the values {'after clamping' if is_clamped else 'between L and U'}. No "
        "forecast: it is met where heavy users have all their values at one end."
    )
    if isinstance(problem, private_counts.PrivateCountsProblem):
        share = wording.percent(problem.noise_share(solution.cap.max_contributions))
        sentence += (
            f" The ratio is linearised; noise on the sum of weights, {share} of it, adds an error of its own."
        )
    return sentence


def _describe_noise(solution: MeanSolution) -> dict[str, str]:
    """Describe at which mean the noise is computed; empty with public counts, whose noise does not depend on the mean.

    The answer takes the mean of all rows for every bound. With one factor for all bounds the error is a quadratic on
    every piece, so that the best bound is exact.
    """
    problem, clamped = solution.problem, solution.clamped
    if not isinstance(problem, private_counts.PrivateCountsProblem):
        return {}
    if problem.value_mean is None or clamped is None:
        return {"At which mean": "the noise is computed for the mean at which it is largest, L or U."}
    kept_mean = float(bounded_mean(clamped, float(solution.cap.max_contributions)))
    kept_problem = replace(problem, value_mean=min(max(kept_mean - clamped.lower, 0.0), problem.value_bound))
    change = wording.change(math.sqrt(kept_problem.privacy_factor), math.sqrt(problem.privacy_factor))
    sentence = (
        f"the noise is computed at the mean of the rows, {wording.number(clamped.mean)}, for all bounds alike. At "
        f"that of the bounded rows, {wording.number(kept_mean)}, it is {change}."
    )
    return {"At which mean": sentence}


def _describe_mean_over_users(solution: MeanSolution) -> str:
    """Describe the release of the mean over users, with its error."""
    linearised = ", linearised" if solution.has_private_counts else ""
    return (
        f"its error is {wording.number(solution.error_over_users)} for every bound on rows, all of it "
        f"noise{linearised}; clamping comes on top. *Code for your library* writes it under *{MEAN_OVER_USERS}*."
    )


def describe_user_share(values: ValueSummary) -> str:
    """Describe the share of the variance that lies between users, with its interval."""
    share = values.share
    if math.isnan(share.estimate):
        return "How much users differ cannot be told: nobody has two rows, or there is only one user."
    interval = f"{wording.percent(share.low)} to {wording.percent(share.high)}"
    return (
        f"About {wording.percent(share.clipped_estimate)} ({interval}, leaving out each user in turn) of the variance "
        "lies between users, read off these values and as private as they are."
    )


def describe_shifts(solution: MeanSolution, values: ValueSummary) -> tuple[str, ...]:
    """Describe how far each choice shifts the mean of the values, and the share of variance between users."""
    plain_mean, clamped, sentences = values.clamped.mean, values.clamped, []
    growth = mean.growth(solution.problem, solution.smooth.threshold)
    for name, bound, weights, choice in (
        ("bounded", float(solution.cap.max_contributions), mean.Growth(), solution.cap),
        ("smoothly weighted", solution.smooth.threshold, growth, solution.smooth),
    ):
        if weights.is_plain:
            shift = float(bounded_mean(clamped, bound)) - plain_mean
        else:
            user_weights = weights.scaled_weights(bound, clamped.sizes)
            shift = float(user_weights @ clamped.user_means / user_weights.sum()) - plain_mean
        sentence = f"The {name} mean differs from the plain mean by {wording.number(shift)}"
        if solution.problem.table is None:
            errors = wording.number(abs(shift) / choice.standard_error, 2)
            sentence += f", {errors} times the {solution.error_name} above, which does not contain this shift"
        sentences.append(f"{sentence}.")
    return (*sentences, describe_user_share(values))


def describe_files(solution: MeanSolution) -> str:
    """Describe the contents of the files of weights and of the choice."""
    counts, sums = "public", "Over the file, users × size × row_weight adds up to 1."
    if solution.has_private_counts:
        counts, sums = "private too", "Weights are not divided by their sum, which is private."
    return (
        "**Weights** hold one line per number of rows a user can have: give each row of such a user the weight "
        f"`row_weight`, or keep `rows_kept_at_cap` of them at random. {sums} **Choice** holds the question and "
        f"the answer. Both are for contribution counts that are **{counts}**."
    )
