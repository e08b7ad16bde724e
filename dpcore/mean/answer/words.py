"""The solution for a mean in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpcore import mean
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, Number
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.distribution import RANGE_SOURCE, OutsideCounts
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import CodeChoice, Form, Forms, build_forms, cap_form, fields_of_data, smooth_form
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer.solution import MeanSolution, SplitRelease
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.table_values import ValueSummary, bounded_mean


def headline(solution: MeanSolution) -> str:
    """Return the recommendation: the best bound on rows per user."""
    return f"Keep at most {wording.counted(solution.cap.max_contributions, 'row')} of each user."


CLEAR_SLOPE = 3.0
"""Smallest slope, in standard errors, that is reported as a difference of users with more rows."""


def numbers(solution: MeanSolution) -> tuple[Number, ...]:
    """Return the numbers of the answer: the best bound and the best smooth weights, each with its error."""
    cap, smooth, name = solution.cap, solution.smooth, solution.error_name
    help_text = _STANDARD_ERROR
    if solution.is_about_table:
        help_text = _ERROR_READ if solution.problem.table is not None else _ERROR_EXPECTED
    errors = cap.standard_error, smooth.standard_error
    noise = cap.privacy_variance / cap.variance, smooth.privacy_variance / smooth.variance
    rows, threshold_text = wording.counted(cap.max_contributions, "row"), wording.number(smooth.threshold)
    per_user = wording.agreeing(smooth.threshold, "row per user", "rows per user")
    texts = [wording.number(error) for error in errors]
    notes = [f"({wording.percent(share)} noise)" for share in noise]
    label, key = wording.capital(name), name.replace(" ", "_")
    smooth_label = f"{label}, smooth weights"
    bound = "Upper bound on contributions per user."
    return (
        Number("Best bound", rows, "per user", bound, cap.max_contributions, ROWS_UNIT, "max_contributions"),
        Number(label, texts[0], notes[0], help_text, errors[0], UNIT, key),
        Number(SMOOTH_BOUND, threshold_text, per_user, _THRESHOLD, smooth.threshold, ROWS_UNIT, "threshold"),
        Number(smooth_label, texts[1], notes[1], help_text, errors[1], UNIT, f"smooth_{key}"),
    )


SMOOTH_BOUND = "Bound of the smooth weights"


def error_parts(solution: MeanSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error of the best bound; their squares add up to its square."""
    cap = solution.cap
    sampling, noise = math.sqrt(cap.sampling_variance), math.sqrt(cap.privacy_variance)
    shift = {BIAS: abs(cap.shift)} if solution.problem.table is not None else {}
    sizes = {**shift, SAMPLING: sampling, NOISE: noise}
    return tuple([ErrorPart(name, float(size), wording.number(size)) for name, size in sizes.items()])


def facts(solution: MeanSolution, dataset: Dataset, parameters: mean.MeanParameters) -> dict[str, str]:
    """Build the facts behind the answer, one sentence each."""
    cap, histogram = solution.cap, solution.problem.histogram
    h = cap.max_contributions
    affected = histogram.users_above(h)
    lost = histogram.num_rows - float(histogram.kept_rows(h))
    over_rows = histogram.num_rows - float(histogram.pieces(h).rows_at_or_below)
    sentences = _describe_users(solution, parameters)
    sentences |= {
        "Half or double": _half_or_double(solution),
        "Who is affected by the bound": (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) with "
            f"{wording.percent(over_rows / histogram.num_rows)} of all rows "
            f"{wording.agreeing(affected, 'lies', 'lie')} over it; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows would be left out. "
            "Smooth weights leave none out."
        ),
    }
    if solution.split_release is not None:
        sentences["Against the usual split"] = _compare_split_release(solution, solution.split_release)
    if dataset.is_private and not solution.has_private_counts:
        sentences["Where counts are private"] = COUNTS_TOO
    if parameters.own_cap is not None:
        (own_error,) = solution.standard_errors([parameters.own_cap])
        sentences[f"Your own bound, {wording.counted(parameters.own_cap, 'row')}"] = (
            f"{solution.error_name} {wording.number(own_error)}, {wording.change(own_error, cap.standard_error)}"
            " compared with the best bound."
        )
    return sentences


UNIT = "unit of the values"
MEAN_OVER_USERS = "Mean over users"
BOUNDED_ROWS = "bounded rows"
"""Name of capped rows in a legend, beside smooth weights."""
_STANDARD_ERROR = (
    "Standard error: square root of the expected squared error of the released mean, in the values' unit. About two "
    "thirds of releases fall within one standard error of the truth. The note says how much of the squared error is "
    "privacy noise."
)
_ERROR_READ = (
    "Root mean square of how far a release lies from the mean of the rows in this table: what leaving rows out and "
    "clamping shift, what the draw of rows adds, and the noise. Computed from the values themselves. The note says how "
    "much of the square is privacy noise."
)
_ERROR_EXPECTED = (
    "Root mean square of how far a release is expected to lie from the mean of the rows in this table, where who has "
    "many rows says nothing about the values. The note says how much of the square is privacy noise."
)
_THRESHOLD = (
    "Every row of a user with at most this many rows weighs the same; the rows of a heavier user together "
    "weigh as much as this many."
)


LEAKS = (
    "Your data are private, and so is a bound read off them: **how many rows each user has is assumed to be public**. "
    "Where it is not, the bound gives some of it away: choose it without these data, or under *Choose privately*."
)
COUNTS_TOO = (
    "choose *Private too* under *Contribution counts are*, and the ε of the release also protects how many rows each "
    "user has."
)
VALUES_LEAK = (
    "**This is a private look**: the bound was read off the private values, so it leaks too. Take the worst case, or "
    "numbers from elsewhere."
)
LEAKS_COUNTS = "A bound read off private data is private too: draw it, or choose it without these data."
PRIVATE_COUNTS = "Counts are **private too**."


def _noise_share(solution: MeanSolution) -> float:
    """Return the noise on the sum of weights over that sum, the larger of both choices; requires private counts."""
    assert isinstance(solution.problem, private_counts.PrivateCountsProblem)
    return max(
        solution.problem.noise_share(solution.cap.max_contributions),
        solution.problem.noise_share(solution.smooth.threshold, smooth=True),
    )


def _compare_split_release(solution: MeanSolution, split_release: SplitRelease) -> str:
    best = solution.cap.standard_error
    return (
        f"numerator and denominator, released with ε/2 each, have {_an(solution.error_name)} of "
        f"{wording.number(split_release.cap.standard_error)} at their own best bound of "
        f"{wording.counted(split_release.cap.max_contributions, 'row')}: "
        f"{wording.change(split_release.cap.standard_error, best)}. With values centred first it is "
        f"{wording.number(split_release.centred.standard_error)}: "
        f"{wording.change(split_release.centred.standard_error, best)}."
    )


def detail(solution: MeanSolution, dataset: Dataset, parameters: mean.MeanParameters) -> str:
    """Build the sentences that qualify the headline, most important first."""
    sentences, clamped = [], solution.clamped
    if clamped is not None:
        values = OutsideCounts(clamped.num_below, clamped.num_above, solution.problem.histogram.num_rows)
        if values.exceeds_warning:
            caveat = "" if solution.problem.table is not None else ", and no number here counts that error"
            sentences.append(
                f"**{values.percent} of the values are clamped**{caveat}: set L and U {RANGE_SOURCE}"
            )
    sentences += _describe_target(solution, parameters)
    sentences.append(_compare_smooth_weights(solution))
    if solution.has_private_counts:
        sentences.append(PRIVATE_COUNTS)
        share = _noise_share(solution)
        if share > private_counts.ROUGH_NOISE:
            sentences.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: the delta method is rough here. "
                "Take a larger ε, or do not rely on this error."
            )
    if dataset.is_private:
        sentences.append(LEAKS_COUNTS if solution.has_private_counts else LEAKS)
        if clamped is not None and reads_values(parameters):
            sentences.append(VALUES_LEAK)
        sentences += _describe_private_bound(solution, parameters)
    if solution.problem.histogram.sizes.size == 1:
        sentences.append("All users have equally many rows, so there is nothing to choose: keep everything.")
    elif solution.cap.max_contributions == solution.problem.histogram.max_size:
        sentences.append(
            "Here the best bound keeps every row: privacy noise is small beside the sampling error."
        )
    return " ".join(sentences)


def reads_values(parameters: mean.MeanParameters) -> bool:
    """Return True if the variance or the user share is to be computed from the values."""
    reads_variance = parameters.variance_source is mean.VarianceSource.FROM_VALUES
    return reads_variance or parameters.likeness is mean.Likeness.FROM_VALUES


def _describe_private_bound(solution: MeanSolution, parameters: mean.MeanParameters) -> list[str]:
    """Describe the best bound with private counts and without the values; empty if the answer is already for these."""
    uses_values = reads_values(parameters) and solution.clamped is not None
    if solution.has_private_counts and not uses_values:
        return []
    private_parameters = replace(parameters, counts=mean.Counts.PRIVATE)
    if private_parameters.variance_source is mean.VarianceSource.FROM_VALUES:
        private_parameters = replace(private_parameters, variance_source=mean.VarianceSource.WORST_CASE)
    if private_parameters.likeness is mean.Likeness.FROM_VALUES:
        private_parameters = replace(private_parameters, likeness=mean.Likeness.ENTERED)
    problem = private_parameters.problem(solution.problem.histogram)
    assert isinstance(problem, private_counts.PrivateCountsProblem)
    rows = wording.counted(private_counts.best_cap(problem).max_contributions, "row")
    return [
        f"With {'σ² of the worst case and ' if uses_values else ''}private counts the best bound is **{rows}**."
    ]


def _describe_target(solution: MeanSolution, parameters: mean.MeanParameters) -> list[str]:
    """Describe the target of the error, its assumptions, and if the means over rows and over users clearly differ."""
    summary, problem = solution.values, solution.problem
    sentences = []
    if summary is not None and not summary.has_finite_error and solution.is_about_table:
        sentences.append(
            "**Some values are beyond 1e100**: the error about their mean cannot be computed from them."
        )
    share = f"a share ρ of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if summary is not None and problem.table is not None:
        clamping = summary.table.clamping
        shift_text = f"leaving rows out shifts the mean by {wording.number(solution.cap.shift - clamping)}"
        if clamping:
            shift_text += f", clamping by {wording.number(clamping)}"
        sentences.append(f"Error about **the mean of these rows**: {shift_text}.")
    elif solution.is_about_table:
        # This is on the first screen; the tab has the other assumptions.
        share_text = f"{wording.percent(problem.user_share, 2)} of the variance lies between users"
        assumption = share_text if problem.user_share else "rows are independent"
        sentences.append(f"Error about **this table's mean**. Assumed: {assumption}.")
    elif problem.user_share:
        sentences.append(f"Error as an estimate **for people like these**. Assumed: {share}.")
    if summary is not None and reads_values(parameters) and abs(summary.slope) > CLEAR_SLOPE:
        clamped = summary.clamped
        direction = "higher" if summary.slope > 0.0 else "lower"
        sentences.append(
            f"**Users with more rows have {direction} values**: the mean over rows is {wording.number(clamped.mean)}, "
            f"that over users {wording.number(float(clamped.user_means.mean()))}. Which do you want? This is for the "
            "first; *Behind the answer* has the second."
        )
    return sentences


def _describe_users(solution: MeanSolution, parameters: mean.MeanParameters) -> dict[str, str]:
    """Build the facts about users: the parts of the error, the assumed share, and the estimated share."""
    facts: dict[str, str] = {}
    problem, values = solution.problem, solution.values
    if values is not None and problem.table is not None:
        cap, sampling_error = solution.cap, math.sqrt(solution.cap.sampling_variance)
        facts["What the error is made of"] = (
            f"rows that are left out shift the mean by {wording.number(cap.shift - values.table.clamping)}, clamping "
            f"by {wording.number(values.table.clamping)}; the draw of rows adds {wording.number(sampling_error)} and "
            f"the noise {wording.number(math.sqrt(cap.privacy_variance))} (root mean square). Shifts can cancel by "
            "luck."
        )
    elif parameters.likeness is mean.Likeness.ENTERED:
        safe = "" if solution.is_about_table else " The error for a larger ρ is safe for every smaller one."
        facts["Assumed of users"] = (
            f"the share ρ = {wording.number(problem.user_share, 2)} is an assumption. Purchases had 0.3 to 0.5, "
            f"ratings and waiting times 0 to 0.2.{safe}"
        )
    if len(solution.stretches) > 1:
        facts["Several stretches are good"] = (
            f"{_describe_intervals(solution)}; between them the error is larger."
        )
    if values is not None and reads_values(parameters):
        facts["How users differ"] = describe_user_share(values)
    return facts


def describe_user_share(values: ValueSummary) -> str:
    """Describe the share of the variance that lies between users, with its interval."""
    share = values.share
    if math.isnan(share.estimate):
        return "How much users differ cannot be told: nobody has two rows, or there is only one user."
    estimate = wording.percent(share.clipped_estimate)
    interval = f"{wording.percent(share.low)} to {wording.percent(share.high)}"
    return (
        f"About {estimate} ({interval}, leaving out each user in turn) of the variance of a value lies between users, "
        "read off these values and as private as they are. The larger this share, the less a further row of the same "
        "user tells."
    )


def _describe_intervals(solution: MeanSolution) -> str:
    """List the intervals of near-optimal bounds, or only count them if there are many."""
    if len(solution.stretches) > MAX_LISTED_INTERVALS:
        count = wording.number(len(solution.stretches))
        return f"{count} stretches of bounds stay within 5{wording.PERCENT} of the best error"
    intervals = [
        wording.number(low) if low == high else f"{wording.number(low)} to {wording.number(high)}"
        for low, high in solution.stretches
    ]
    interval_text = f"{', '.join(intervals[:-1])} and {intervals[-1]}"
    return f"bounds of {interval_text} rows stay within 5{wording.PERCENT} of the best error"


MAX_LISTED_INTERVALS = 4
"""Most intervals that a sentence lists."""


def _an(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _compare_smooth_weights(solution: MeanSolution) -> str:
    smooth, best = solution.smooth.standard_error, solution.cap.standard_error
    change = wording.change(smooth, best)
    if change == "the same":
        return "Smooth weights would gain nothing."
    return (
        f"If your library can weight rows, smooth weights with a bound of {wording.number(solution.smooth.threshold)} "
        f"err by {wording.number(smooth)}: {change}."
    )


def describe_near_optimal(solution: MeanSolution) -> str:
    """Describe the bounds whose error is within 5 % of the best."""
    interval, share = solution.near_optimal, f"5{wording.PERCENT}"
    if len(solution.stretches) > 1:
        return f"{_describe_intervals(solution)}."
    if interval[0] == interval[1]:
        bound = wording.counted(interval[0], "row")
        if interval[1] < solution.problem.histogram.max_size:
            return f"only {bound}; every other bound is more than {share} worse in {solution.error_name}."
        smaller = (
            f"every smaller bound is more than {share} worse in {solution.error_name}, and "
            if interval[0] > 1
            else ""
        )
        return f"only {bound}; {smaller}a larger one keeps no more rows."
    return f"{wording.number(interval[0])} to {wording.counted(interval[1], 'row')}, within {share}."


def _half_or_double(solution: MeanSolution) -> str:
    h, best = solution.cap.max_contributions, solution.cap.standard_error
    caps = ([("half", max(h // 2, 1))] if h > 1 else []) + [("double", 2 * h)]
    errors = solution.standard_errors([cap for _, cap in caps])
    comparisons = [
        f"{name} ({wording.number(cap)}) costs {wording.change(error, best)}"
        for (name, cap), error in zip(caps, errors, strict=True)
    ]
    return ", ".join(comparisons) + f" in {solution.error_name}."


def describe_shifts(solution: MeanSolution, values: ValueSummary) -> tuple[str, ...]:
    """Describe how far each choice shifts the mean of the values, and the share of variance between users."""
    plain_mean, shifts = values.clamped.mean, []
    for name, bound, choice in (
        ("bounded", float(solution.cap.max_contributions), solution.cap),
        ("smoothly weighted", solution.smooth.threshold, solution.smooth),
    ):
        weights = mean.growth(solution.problem, bound) if choice is solution.smooth else mean.Growth()
        if weights.is_plain:
            shift = float(bounded_mean(values.clamped, bound)) - plain_mean
        else:
            user_weights = weights.scaled_weights(bound, values.clamped.sizes)
            shift = float(user_weights @ values.clamped.user_means / user_weights.sum()) - plain_mean
        sentence = f"The {name} mean differs from the plain mean by {wording.number(shift)}"
        if solution.problem.table is None:
            errors = wording.number(abs(shift) / choice.standard_error, 2)
            sentence += f", {errors} times the {solution.error_name} above, which does not contain this shift"
        shifts.append(f"{sentence}.")
    return (*shifts, describe_user_share(values))


def describe_files(solution: MeanSolution) -> str:
    """Describe the contents of the files of weights and of the choice."""
    counts = "private too" if solution.has_private_counts else "public"
    if solution.has_private_counts:
        sums = (
            "Weights are not divided by their sum, which is private here: it comes out of the two noisy sums."
        )
    else:
        sums = "Over the file, users × size × row_weight adds up to 1."
    return (
        "**Weights** hold one line per number of rows a user can have: give each row of such a user the weight "
        f"`row_weight`, or keep `rows_kept_at_cap` of them at random. {sums} **Choice** holds the question and "
        f"the answer. Both are for contribution counts that are **{counts}**."
    )


def write_methods(solution: MeanSolution, data: Dataset, parameters: mean.MeanParameters) -> Methods:
    """Write the sentences of a methods section: guarantee, best cap, released sums and expected error."""
    private = solution.has_private_counts
    relation = Neighbours.ADD_OR_REMOVE_USER if private else Neighbours.REPLACE_VALUES
    interval = f"[{wording.entered(parameters.lower)}, {wording.entered(parameters.upper)}]"
    sentences = f"Values were clamped to {interval}, which is treated as public, and "
    if private:
        sentences += (
            f"{cite_noise('Laplace')} was added to the sums of the kept values' distances from both ends of that "
            "interval; the mean is computed from these two noisy sums."
        )
    else:
        sentences += (
            f"{cite_noise('Laplace')} was added to the mean of the kept values [@epasto2020, section 3]."
        )
    rows = wording.counted(solution.cap.max_contributions, "row")
    error = wording.number(solution.cap.standard_error)
    approximately = " (by the delta method)" if private else ""
    error_name = "error, as root mean square," if solution.is_about_table else "standard error"
    verb = wording.agreeing(solution.cap.max_contributions, "was", "were")
    return Methods(
        guarantee=write_guarantee("The mean was released", parameters.epsilon, relation),
        sentences=f"At most {rows} of each user, drawn at random, {verb} kept. {sentences} The expected "
        f"{error_name} of the released mean is {error} in the unit of the values, privacy noise "
        f"included{approximately}.",
        public_sentences=f"At most a fixed number of rows of each user, drawn at random, were kept. {sentences}",
        disclosure=data.provenance,
        rule="The bound on rows per user minimises the expected squared error of the released mean"
        f"{_describe_rule(solution)}.",
    )


def _describe_rule(solution: MeanSolution) -> str:
    """Describe the target of the error, its parts, and the assumptions about users."""
    problem = solution.problem
    if problem.table is not None:
        return (
            " about the mean of the rows at hand before clamping: the shift by bounding and clamping, the draw of rows "
            "and privacy noise together"
        )
    error_phrase = ", sampling error and privacy noise together,"
    share = f"if a share of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if solution.is_about_table:
        condition = f" and {share}" if problem.user_share else ""
        condition = f" if numbers of rows say nothing about the values{condition}"
        return f" about the mean of the rows at hand{error_phrase}{condition}"
    return (
        f"{error_phrase} for rows that are independent draws"
        if not problem.user_share
        else f"{error_phrase} {share}"
    )


def write_mean_forms(solution: MeanSolution, dataset: Dataset, parameters: MeanParameters) -> Forms:
    """Write programs for the best cap, the best smooth weights, and the mean over users (a bound of 1 row)."""
    relation = Neighbours.ADD_OR_REMOVE_USER if solution.has_private_counts else Neighbours.REPLACE_VALUES
    growth = mean.growth(solution.problem, solution.smooth.threshold)
    choice = mean_forms(
        solution.cap.max_contributions,
        solution.smooth.threshold,
        relation,
        dataset,
        parameters,
        growth,
        # A user weighs min(1, s) = 1 then, and each of their rows 1 / s.
        [(MEAN_OVER_USERS, Quantity.MEAN, {"threshold": 1.0})],
    )
    assert choice is not None  # The range is not empty, and every bound is at least one row.
    return choice.forms


def mean_forms(
    cap: int,
    smooth: float,
    relation: Neighbours,
    dataset: Dataset,
    parameters: MeanParameters,
    growth: mean.Growth | None = None,
    further_forms: Sequence[Form] = (),
) -> CodeChoice | None:
    """Write programs for a cap and for smooth weights, or return None if none can be written.

    Without a growth, a user's weight grows with the number of their rows.
    """
    row_weight, user_weight = (1.0, 0.0) if growth is None else growth.coefficients(smooth)
    weights = {
        "threshold": smooth,
        "weight_of_rows": row_weight,
        "weight_of_users": user_weight,
        "user_share": 0.0 if growth is None else growth.user_share,
    }
    base = fields_of_data(dataset) | {
        "lower": parameters.lower,
        "upper": parameters.upper,
        "neighbours": relation,
    }
    return build_forms(
        parameters.epsilon,
        base,
        [
            (cap_form(cap), Quantity.MEAN, {"max_rows": cap}),
            (smooth_form(smooth), Quantity.MEAN, weights),
            *further_forms,
        ],
    )
