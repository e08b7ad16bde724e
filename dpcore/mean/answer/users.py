"""The answer for a mean that clamps what users deviate in place of rows: the best weights, in words and plots.

The bound h has the least error on the values at hand, or in `dpcore.mean.user_model` if the variance of a value is
entered. Else values are taken to lie in [L, U]: nothing is clamped then, and the error is that of clamped rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import standard
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLE_BY_PART, ErrorPart, Number, build_error_parts
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis, build_user_bars
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise, draw_unit_sampling
from dpcore.answer.limits import fit_limits
from dpcore.answer.methods import Methods, cite_noise
from dpcore.answer.plot import Axis, Curve, Mark, Plot, Style, Toggle
from dpcore.common.certificate import Certificate
from dpcore.common.programs import MEAN_SPLITTING_PROGRAMS
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import (
    capitalise,
    choose_word,
    describe_change,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.answer.users_solution import UsersSolution
from dpcore.mean.clamped_users import ClampedUsersProblem, find_best_joint
from dpcore.mean.moved_mean import find_mean
from dpcore.mean.parameters import Clamp, MeanParameters
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.value_range import RangeChoice

VALUE_UNIT = "unit of the values"
ROWS_FIELD, USERS_FIELD = "*Rows*", "*Users' deviations*"
SAME_ERROR_SENTENCE = (
    "The error is the same as for clamped rows: this σ² is of values in [L, U], which no clamp cuts. "
    "Enter the σ² of the unclamped values for a model of what is cut."
)


def propose_clamp(solution: UsersSolution, rows_choice: mean.SmoothChoice, clamp: Clamp) -> str:
    """Write the other clamp's error on this table, and propose it if it errs less with biases added.

    If no value is clamped there is nothing to compare: the error is the same.

    On one table the biases of clamping and weighting can cancel, which says nothing of other tables. So the better way
    is the one with the smaller error if they are added.

    Args:
        solution: The best smooth weights if users are clamped.
        rows_choice: The best smooth weights if rows are clamped.
        clamp: The way in use.
    """
    user_deviations = solution.user_deviations
    if user_deviations is None and solution.user_model is None:
        return SAME_ERROR_SENTENCE
    errors_by_clamp = {Clamp.ROWS: solution.rows_error, Clamp.USERS: solution.standard_error}
    added_errors_by_clamp = errors_by_clamp
    if user_deviations is not None:
        rows_clamped_bias = user_deviations.sum_biases(rows_choice.threshold, clamps_users=False)
        users_clamped_bias = user_deviations.sum_biases(solution.threshold, clamps_users=True)
        added_errors_by_clamp = {
            Clamp.ROWS: math.hypot(rows_clamped_bias, math.sqrt(rows_choice.privacy_variance)),
            Clamp.USERS: math.hypot(users_clamped_bias, math.sqrt(solution.mean_error.privacy_variance)),
        }
    other_clamp = Clamp.USERS if clamp is Clamp.ROWS else Clamp.ROWS
    other_error, current_error = errors_by_clamp[other_clamp], errors_by_clamp[clamp]
    other_name = USERS_FIELD if other_clamp is Clamp.USERS else ROWS_FIELD
    is_better = added_errors_by_clamp[other_clamp] < added_errors_by_clamp[clamp] * (1.0 - 1e-9)
    advice_sentence = f" Choose {other_name} under *Clamp*." if is_better else ""
    cancelling_sentence = ""
    if (other_error < current_error * (1.0 - 1e-9)) != is_better:
        rows_error_text, users_error_text = map(format_number, added_errors_by_clamp.values())
        added_phrase = f"added up, the errors are {rows_error_text} (rows), {users_error_text} (users)."
        cancelling_sentence = f" Biases cancel on this table: {added_phrase}"
    comparison_phrase = f"error {format_number(other_error)}, {describe_change(other_error, current_error)}"
    return f"{other_name} clamped: {comparison_phrase}.{cancelling_sentence}{advice_sentence}"


def write_headline(solution: UsersSolution) -> str:
    """Write the instruction to weigh users by the bound and to limit their deviation."""
    threshold_text = format_count(solution.threshold, "row")
    limit_text = format_number(solution.deviation_limit)
    return f"Weigh a user as at most {threshold_text}, and limit their total deviation to ± {limit_text}."


def write_user_detail(
    solution: UsersSolution,
    rows_choice: mean.SmoothChoice,
    further_sentences: Sequence[str],
) -> str:
    """Write the sentences that qualify the headline, most important first.

    The first compares with clamped rows, and the last are ``further_sentences``.
    """
    sentences = [propose_clamp(solution, rows_choice, Clamp.USERS)]
    if solution.user_deviations is not None:
        sentences.append("Error about **the mean of these rows**, smooth weights both.")
    if (user_model := solution.user_model) is not None:
        worst_variance = user_model.compute_error(solution.threshold, has_any_distribution=True).squared_error
        worst_error = math.sqrt(float(worst_variance))
        sentences.append(
            "**Assumed: the mean is (L + U)/2**, and users' means are normal around it. A mean one standard deviation "
            "of users away costs what clamping users gains. In these errors the clamped parts never cancel. "
            f"For any distribution of users' means the error is at most {format_number(worst_error)}."
        )
    if isinstance(solution.problem, PrivateCountsProblem):
        sentences.append("Counts are **private too**.")
    return " ".join([*sentences, *further_sentences])


def build_user_numbers(solution: UsersSolution, error_key: str, num_users: int) -> tuple[Number, ...]:
    """Build the bound, its error, the deviation limit, and the error if rows are clamped.

    Args:
        solution: The best smooth weights if users are clamped.
        error_key: Name of the error in programs.
        num_users: Number of all users.
    """
    threshold, error, deviation_limit = solution.threshold, solution.standard_error, solution.deviation_limit
    rows_error = solution.rows_error
    threshold_text, error_text, limit_text, rows_error_text = map(
        format_number, (threshold, error, deviation_limit, rows_error)
    )
    noise_share = float(solution.mean_error.privacy_variance) / float(solution.mean_error.squared_error)
    threshold_unit = choose_word(threshold, "row per user", "rows per user")
    threshold_help = "The rows of a heavier user together weigh as much as this many."
    error_note = f"({format_percent(noise_share)} noise)"
    error_label = capitalise(error_key.replace("_", " "))
    error_help = "Root mean square distance of a release from the mean."
    cut_note, limit_unit = "", "rows × unit of the values"
    if solution.user_deviations is not None:
        num_clamped = solution.user_deviations.count_cut(threshold)
        cut_note = f"cuts {format_count(num_clamped, 'user')} ({format_percent(num_clamped / num_users)})"
    limit_help = "T = h (U − L)/2, on the rows' weight times the distance of the user's mean from (L + U)/2."
    rows_note = describe_change(rows_error, error)
    rows_help = "The error of the best smooth weights, with each row clamped to [L, U]."
    threshold_args = threshold_text, threshold_unit, threshold_help, threshold, ROWS_UNIT, "threshold"
    limit_args = f"± {limit_text}", cut_note, limit_help, deviation_limit, limit_unit, "deviation_limit"
    return (
        Number("Bound of the weights", *threshold_args),
        Number(error_label, error_text, error_note, error_help, error, VALUE_UNIT, error_key),
        Number("Deviation limit", *limit_args),
        Number(
            "Error, rows clamped", rows_error_text, rows_note, rows_help, rows_error, VALUE_UNIT, "rows_error"
        ),
    )


def list_user_error_parts(solution: UsersSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error, bias (without values: sampling) and noise; their squares add up to its square."""
    errors_by_part = split_errors(solution, solution.mean_error)
    return build_error_parts(
        {part_name: float(part_errors) for part_name, part_errors in errors_by_part.items()}, format_number
    )


def split_errors(solution: UsersSolution, mean_errors: mean.MeanError) -> dict[str, FloatArray]:
    """Return the parts of errors by name, as root mean squares: bias if values or a model are used, sampling, noise.

    Sampling is left out if the values are used.
    """
    errors_by_part = {}
    if (solution.user_deviations, solution.user_model) != (None, None):
        errors_by_part[BIAS] = np.abs(mean_errors.shift)
    if solution.user_deviations is None:
        errors_by_part[SAMPLING] = np.sqrt(mean_errors.sampling_variance)
    return {**errors_by_part, NOISE: np.sqrt(mean_errors.privacy_variance)}


def build_user_facts(
    solution: UsersSolution, problem: mean.MeanProblem, rows_facts: Mapping[str, str], own_bound: int | None
) -> dict[str, str]:
    """Build the facts behind the answer; those on users, noise and counts are the same as of clamped rows."""
    user_deviations, threshold = solution.user_deviations, solution.threshold
    half_and_double_text = standard.compare_half_and_double(
        threshold, solution.compute_standard_errors, format_number, is_integer=False
    )
    facts = {"Half or double": half_and_double_text}
    if own_bound is not None:
        own_and_best_errors = (
            float(solution.compute_standard_errors([float(own_bound)])[0]),
            solution.standard_error,
        )
        own_bound_sentence = standard.compare_own_bound("error", *own_and_best_errors, format_number)
        facts[f"Your own bound, {format_count(own_bound, 'row')}"] = own_bound_sentence
    if user_deviations is not None:
        num_clamped = user_deviations.count_cut(threshold)
        facts["Who is affected"] = (
            f"{format_count(num_clamped, 'user')} ({format_percent(num_clamped / problem.histogram.num_users)}) "
            f"{choose_word(num_clamped, 'deviates', 'deviate')} by more than the limit. Users with fewer rows "
            "than the bound may lie farther from the middle."
        )
    kept_headings = ("How users differ", "Noise", "Where counts are private", "At which mean")
    return facts | {name: fact_text for name, fact_text in rows_facts.items() if name in kept_headings}


def plot_user_errors(
    solution: UsersSolution,
    bounds: FloatArray,
    problem: mean.MeanProblem,
    dataset: Dataset,
    own_bound: int | None,
) -> Plot:
    """Plot the main figure: the error over the bound, of clamped users with its parts, and of clamped rows."""
    mean_errors, best_error = solution.mean_errors, solution.standard_error
    users_errors, rows_errors = np.sqrt(mean_errors.squared_error), solution.rows_errors
    errors_by_part = split_errors(solution, mean_errors)
    axis_limits = fit_limits(np.append(users_errors, rows_errors), np.concatenate([*errors_by_part.values()]))
    columns = {"bound": bounds, "users_error": users_errors, "rows_error": rows_errors}
    columns |= {
        f"users_{part_name.lower()}": part_errors for part_name, part_errors in errors_by_part.items()
    }
    counts_protection_texts = np.full(bounds.size, "private too" if problem.num_aggregates == 2 else "public")
    marks = [Mark("Best bound", solution.threshold, best_error, Style.TOTAL)]
    if own_bound is not None:
        own_error = math.sqrt(solution.compute_error(float(own_bound)).squared_error)
        marks.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "square"))
    start_bound = float(own_bound or max(round(solution.threshold), 1))
    return Plot(
        "mean-error",
        "Error over the bound",
        f"With users' deviations clamped the error is least at {format_number(solution.threshold)} rows, "
        f"{format_number(best_error)}.",
        build_bound_axis(problem.histogram),
        Axis("error", VALUE_UNIT, axis_limits),
        (
            Curve("Users clamped", bounds, users_errors, Style.TOTAL),
            *(
                Curve(part_name, bounds, part_errors, STYLE_BY_PART[part_name])
                for part_name, part_errors in errors_by_part.items()
            ),
            Curve("Rows clamped", bounds, rows_errors, Style.ENTERED, dash="solid", width=2.0),
            *marks,
        ),
        dataset.provenance,
        {**columns, "contribution_counts": counts_protection_texts},
        is_main=True,
        handle=build_handle(problem, bounds, mean_errors, errors_by_part, start_bound, best_error),
        toggles=(Toggle("Parts of the error", tuple(errors_by_part)),),
    )


MAX_DOTS_IN_ERRORS = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def build_handle(
    problem: mean.MeanProblem,
    bounds: FloatArray,
    mean_errors: mean.MeanError,
    errors_by_part: Mapping[str, FloatArray],
    initial_bound: float,
    best_error: float,
) -> Handle:
    """Build the handle: whose rows the bound cuts, and what releases it gives, by the model of the error alone.

    Args:
        problem: The problem.
        bounds: The bounds at which the handle may stand, shape (points,).
        mean_errors: The error at these bounds, an array for each part.
        errors_by_part: Root mean square errors at these bounds, by the name of the part in the figure.
        initial_bound: The bound at which the handle stands at first.
        best_error: Root mean square error of the best bound.
    """
    histogram, noise_kind = problem.histogram, problem.noise.kind
    dots = Dots(
        # What a release lacks of the truth.
        -np.broadcast_to(mean_errors.shift, bounds.shape),
        errors_by_part[NOISE] * (noise_kind.mean_magnitude / math.sqrt(noise_kind.unit_variance)),
        draw_unit_noise(noise_kind),
        Spread.ROOT_MEAN_SQUARE,
        MAX_DOTS_IN_ERRORS * best_error,
        sampling_deviations=np.sqrt(mean_errors.sampling_variance),
        unit_sampling_draws=draw_unit_sampling(noise_kind),
    )
    return Handle(
        "Bound",
        bounds,
        np.sqrt(mean_errors.squared_error),
        initial_bound,
        "own_bound",
        is_integer=True,
        error_parts=errors_by_part,
        user_bars=(build_user_bars(histogram.sizes, histogram.users, "rows"),),
        dots=dots,
    )


def write_user_methods(
    methods: Methods, solution: UsersSolution, problem: mean.MeanProblem, parameters: MeanParameters
) -> Methods:
    """Write the methods text of clamped users; guarantee and rule are taken from that of clamped rows."""
    range_middle_text = format_entered((parameters.lower + parameters.upper) / 2.0)
    released_sum_text = "the sum of these deviations"
    if problem.num_aggregates == 2:
        released_sum_text = (
            "the two sums of users' weights times half of the width of the range, plus "
            "and minus their deviations"
        )

    def write_steps(weight_text: str, limit_text: str) -> str:
        """Write what was clamped and released, with the weight and the limit in the given words."""
        return (
            f"All rows of a user together weighed at most as much as {weight_text}. The deviation of each user's mean "
            f"from {range_middle_text}, times that weight, was clamped to {limit_text}, and "
            f"{cite_noise(problem.noise.kind.value, problem.program)} for a sensitivity of twice this limit was added "
            f"to {released_sum_text}. A mean that no users can have was moved to the nearest that they can."
        )

    error_text = format_number(solution.standard_error)
    at_most_text = "at most " if find_mean(solution.problem) is None else ""
    limit_text = f"± {format_number(solution.deviation_limit)}"
    steps_text = write_steps(format_count(solution.threshold, "row"), limit_text)
    return replace(
        methods,
        procedure=f"{steps_text} The expected error of the released mean is {at_most_text}{error_text} in the unit of "
        "the values, noise included.",
        public_procedure=write_steps("a fixed number of rows", "a fixed limit"),
        rule_sentence=methods.rule_sentence.replace(
            "The bound on rows per user", "The bound on a user's weight"
        ),
    )


# --- the range ---


def build_problem(dataset: Dataset, problem: mean.MeanProblem) -> ClampedUsersProblem | None:
    """Build the problem of the best range and bound if users are clamped; None if it has no answer.

    None if the data have no values, all users have the same mean, or the program cannot clamp users.
    """
    if dataset.values is None or problem.program in MEAN_SPLITTING_PROGRAMS:
        return None
    unit_noise_variance = float(problem.noise.compute_variance(1.0))
    users_problem = ClampedUsersProblem(dataset.values, unit_noise_variance, problem.num_aggregates == 2)
    centred_user_means = users_problem.users.means
    return users_problem if centred_user_means.min() < centred_user_means.max() else None


def build_choice(
    problem: ClampedUsersProblem,
    threshold: float,
    lower: float,
    upper: float,
    certificate: Certificate | None,
) -> RangeChoice:
    """Return a range for users as a `RangeChoice`, with the parts of its error.

    Without a certificate (None) the range is not claimed to be the best.
    """
    error_parts = problem.measure_parts(threshold, (lower + upper) / 2.0, threshold * (upper - lower) / 2.0)
    certificate = certificate or Certificate(error_parts.error, 0.0, "it is not claimed to be the best")
    error_field_values = error_parts.clamping, error_parts.bounding, error_parts.noise, error_parts.error
    return RangeChoice(lower, upper, threshold, *error_field_values, certificate)


def find_best_choice(
    problem: ClampedUsersProblem, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> RangeChoice:
    """Find the best range and bound for users together, by `dpcore.mean.clamped_users.find_best_joint`."""
    limit_choice = find_best_joint(problem, progress=progress, should_stop=should_stop)
    half_range_width = limit_choice.width / 2.0
    lower_and_upper = limit_choice.centre - half_range_width, limit_choice.centre + half_range_width
    return build_choice(problem, limit_choice.threshold, *lower_and_upper, limit_choice.certificate)


def is_usable(problem: ClampedUsersProblem, range_choice: RangeChoice) -> bool:
    """Return True if a release can use a range: half of the users' weight or more is not clamped.

    If noise is very large, the best range is next to a single value, which it publishes.
    """
    lower, upper, threshold = range_choice.lower, range_choice.upper, range_choice.threshold
    weights, limit = np.minimum(threshold, problem.users.sizes), threshold * (upper - lower) / 2.0
    deviations = np.abs(weights * (problem.users.means - ((lower + upper) / 2.0 - problem.mean)))
    clamped_weight = float(weights[deviations > limit * (1.0 + 1e-9)].sum())
    return range_choice.is_wide and clamped_weight <= 0.5 * float(weights.sum())


def compute_errors(
    problem: ClampedUsersProblem, threshold: float, lowers: npt.ArrayLike, uppers: npt.ArrayLike
) -> FloatArray:
    """Compute the error of clamping users to each range; the biases are added up as if they never cancelled.

    Args:
        problem: The question.
        threshold: h, in rows per user.
        lowers: L, a number or shape (ranges,).
        uppers: U, likewise.
    """
    user_points, sum_weights = problem.points, problem.sum_weights(threshold)
    weights = np.minimum(threshold, user_points.sizes)
    lowers, uppers = np.broadcast_arrays(np.asarray(lowers, float), np.asarray(uppers, float))
    offsets, deviation_limits = (lowers + uppers) / 2.0 - problem.mean, threshold * (uppers - lowers) / 2.0
    clamping_bias_sums = [
        np.maximum(np.abs(weights * (user_points.means - offset)) - limit, 0.0) @ user_points.num_users
        for offset, limit in zip(offsets.tolist(), deviation_limits.tolist(), strict=True)
    ]
    total_biases = np.array(clamping_bias_sums) / sum_weights + abs(problem.compute_shift(threshold))
    squared_sensitivities = 4.0 * deviation_limits**2
    if problem.has_private_counts:
        squared_sensitivities = 2.0 * (deviation_limits**2 + (threshold * offsets) ** 2)
    noise_variances = problem.unit_noise_variance * squared_sensitivities / sum_weights**2
    return np.asarray(np.sqrt(total_biases**2 + noise_variances))
