"""The plots of the solution for a mean, its verdict, and the range [L, U] that suits the values, in figures and words.

All are pure functions of the solution. The range is as private as the values. Its error counts what clamping cuts off
and what weighing shifts without letting them cancel, and takes smooth weights (`dpcore.mean.value_range`). The exact
error has a minimum that is no answer and is never offered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLE_BY_PART
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis, choose_bound_limits, choose_curve_bounds
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import Axis, Band, Curve, Item, Mark, Plot, Scale, Style, Toggle, linear_axis
from dpcore.common.wording import PERCENT, capitalise, format_count, format_number
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import value_range
from dpcore.mean.answer import users
from dpcore.mean.answer.solution import MAX_LISTED_INTERVALS, MeanSolution, choose_error_limits
from dpcore.mean.answer.users import VALUE_UNIT
from dpcore.mean.clamped_users import ClampedUsersProblem
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.table_values import ClampedValues, compute_bounded_mean
from dpcore.mean.value_range import RangeChoice, ValueRangeProblem, WeightedRows

MIN_GAIN_TO_SHOW_WEIGHTS = 0.02
"""Share of the error that smooth weights have to save for their curve to be shown at first."""


def plot_errors(solution: MeanSolution, dataset: Dataset, own_bound: int | None) -> Plot:
    """Plot the main figure: the error against the bound, of bounded rows with its parts, and of smooth weights."""
    bounds, problem, error_name = solution.bounds, solution.problem, solution.error_name
    cap_choice, smooth_choice = solution.cap_choice, solution.smooth_choice
    has_table_values, split_curves = problem.table_values is not None, []
    columns: dict[str, FloatArray] = {}
    if solution.split_release is not None:
        usual_split_errors = np.sqrt(solution.split_release.capped_errors.squared_error)
        columns["usual_split_standard_error"] = usual_split_errors
        curve_name = "Total, bounded rows, usual split of ε"
        split_curves = [Curve(curve_name, bounds, usual_split_errors, Style.CUSTOMARY)]
    columns["bound"] = bounds
    for column_prefix, mean_error in (("cap", solution.capped_errors), ("smooth", solution.smooth_errors)):
        columns[f"{column_prefix}_standard_error"] = np.sqrt(mean_error.squared_error)
        columns[f"{column_prefix}_sampling_error"] = np.sqrt(mean_error.sampling_variance)
        columns[f"{column_prefix}_privacy_noise"] = np.sqrt(mean_error.privacy_variance)
        if has_table_values:
            columns[f"{column_prefix}_shift"] = np.broadcast_to(np.abs(mean_error.shift), bounds.shape)
    # The parts are those of the bound, as on the card: of both ways there would be eight curves.
    errors_by_part = {SAMPLING: columns["cap_sampling_error"], NOISE: columns["cap_privacy_noise"]}
    if has_table_values:
        errors_by_part = {BIAS: columns["cap_shift"], **errors_by_part}
    # The stretches of more than one bound, the best one's first, and not too many.
    wide_stretches = [stretch for stretch in solution.stretches if stretch[0] < stretch[1]]
    wide_stretches.sort(key=lambda stretch: stretch != solution.near_optimal)
    smooth_curve = Curve("Total, smooth weights", bounds, columns["smooth_standard_error"], Style.ENTERED)
    items: list[Item] = [
        Curve("Total, bounded rows", bounds, columns["cap_standard_error"], Style.CAP, label="Bounded rows"),
        replace(smooth_curve, dash="solid", width=2.0, label="Smooth weights"),
        *(Curve(name, bounds, errors, STYLE_BY_PART[name]) for name, errors in errors_by_part.items()),
        *split_curves,
        *(
            Band(f"Within 5{PERCENT} of the best", *stretch)
            for stretch in wide_stretches[:MAX_LISTED_INTERVALS]
        ),
    ]
    cap, cap_error = cap_choice.max_contributions, solution.cap_standard_error
    threshold, smooth_error = smooth_choice.threshold, solution.smooth_standard_error
    shows_weights = smooth_error <= (1.0 - MIN_GAIN_TO_SHOW_WEIGHTS) * cap_error
    smooth_mark = Mark("Best smooth weights", threshold, smooth_error, Style.ENTERED, "circle")
    marks = [Mark("Best bound", cap, cap_error, Style.CAP), smooth_mark]
    if own_bound is not None:
        own_error = float(solution.compute_standard_errors(own_bound))
        marks.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "square"))
    all_total_errors = [errors for name, errors in columns.items() if name.endswith("_standard_error")]
    all_errors = np.concatenate([errors for name, errors in columns.items() if name != "bound"])
    axis_limits = fit_limits(np.append(all_total_errors, [mark.y for mark in marks]), all_errors)
    is_linearised = solution.has_private_counts and not solution.includes_step
    error_axis_name = "delta-method error" if is_linearised else error_name
    return Plot(
        "mean-error",
        f"{capitalise(error_name)} against the bound",
        f"The {error_name} is smallest at {format_count(cap, 'row')} per user, {format_number(cap_error)}; "
        f"smooth weights reach {format_number(smooth_error)}.",
        build_bound_axis(problem.histogram),
        Axis(error_axis_name, VALUE_UNIT, axis_limits, settable_range=choose_error_limits(problem)),
        (*items, *marks),
        dataset.provenance,
        add_counts_column(columns, solution.has_private_counts),
        is_main=True,
        handle=users.build_handle(
            problem, bounds, solution.capped_errors, errors_by_part, own_bound or cap, cap_error
        ),
        toggles=(
            Toggle("Parts of the error", tuple(errors_by_part)),
            Toggle("Smooth weights", (smooth_curve.name, smooth_mark.name), shows_weights),
            *(Toggle("Usual split of ε", (curve.name,)) for curve in split_curves),
        ),
    )


def plot_weights(solution: MeanSolution, dataset: Dataset) -> Plot:
    """Plot how much a row counts over the rows of its user, relative to an unbounded mean's 1 / n."""
    histogram, cap = solution.problem.histogram, solution.cap_choice.max_contributions
    sizes, equal_weight = choose_curve_bounds(histogram), 1.0 / histogram.num_rows
    row_weights = (
        mean.compute_row_weight(solution.problem, solution.smooth_choice.threshold, sizes) / equal_weight
    )
    capped_row_weights = np.minimum(sizes, cap) / sizes / float(histogram.count_kept_rows(cap)) / equal_weight
    plotted_columns = {"size": sizes, "smooth_row_weight": row_weights}
    plotted_columns["capped_row_weight_on_average"] = capped_row_weights
    # No bound leads beyond these limits.
    mean_size = histogram.num_rows / histogram.num_users
    weight_limits = mean_size / histogram.max_size / 1.5, 1.5 * mean_size / histogram.min_size
    capped_name = "Bounded rows (average over kept and dropped)"
    return Plot(
        "mean-weights",
        "Weight of one row",
        "The more rows a user has beyond the bound, the less each counts.",
        Axis("rows of the user", ROWS_UNIT, choose_bound_limits(histogram), number_format=",.3~r"),
        Axis("weight of one row", "1 = its share without any bound", weight_limits),
        (
            Curve("Smooth weights", sizes, row_weights, Style.SMOOTH),
            Curve(capped_name, sizes, capped_row_weights, Style.CAP, dash="dot"),
        ),
        dataset.provenance,
        add_counts_column(plotted_columns, solution.has_private_counts),
    )


def plot_shift(solution: MeanSolution, dataset: Dataset, clamped_values: ClampedValues) -> Plot:
    """Plot over the bound how far weights min(h, s) of users move the mean itself, beside the error of smooth weights.

    That is the standard error, or the noise alone if the error is about the mean of this table and contains the shift.
    """
    problem, bounds = solution.problem, solution.bounds
    smooth_errors = mean.compute_smooth_error(problem, bounds)
    has_table_values = problem.table_values is not None
    shifts = compute_bounded_mean(clamped_values, bounds) - clamped_values.mean
    # The vertical axis depends on the values and bounds alone, so that it does not move with epsilon: the standard
    # error of the best cap at epsilon = 1 fits into it.
    axis_problem = mean.MeanProblem(problem.histogram, 1.0, problem.value_bound, clamped_values.variance)
    half_height = 1.3 * max(float(np.abs(shifts).max()), mean.find_best_cap(axis_problem).standard_error)
    smooth_half_widths = np.sqrt(
        smooth_errors.privacy_variance if has_table_values else smooth_errors.squared_error
    )
    band_name = f"± {'the noise' if has_table_values else f'one {solution.error_name}'}"
    band_column = "smooth_privacy_noise" if has_table_values else "smooth_standard_error"
    plotted_columns = {"bound": bounds, "shift_of_the_mean": shifts, band_column: smooth_half_widths}
    return Plot(
        "mean-shift",
        "When users differ",
        "How far the bound moves the mean because heavy and light users differ.",
        build_bound_axis(problem.histogram),
        linear_axis("shift of the mean", (-half_height, half_height), VALUE_UNIT),
        (
            Curve("Bounded mean minus plain mean", bounds, shifts, Style.TOTAL),
            Curve(band_name, bounds, smooth_half_widths, Style.ENTERED),
            Curve(band_name, bounds, -smooth_half_widths, Style.ENTERED, is_unnamed=True),
        ),
        dataset.provenance,
        add_counts_column(plotted_columns, solution.has_private_counts),
    )


def add_counts_column(
    columns: Mapping[str, npt.ArrayLike], has_private_counts: bool
) -> dict[str, npt.ArrayLike]:
    """Return a file's columns by name and one more, ``contribution_counts``: "private too" or "public" in every row."""
    counts_protection_text = "private too" if has_private_counts else "public"
    return {
        **columns,
        "contribution_counts": np.full(np.size(next(iter(columns.values()))), counts_protection_text),
    }


NUM_PLOTTED_ENDS = 120
"""Ends of a curve."""
MAX_ABS_VALUE = 1e100
"""Size of values up to which a range is looked for."""
_MIN_DISTANCE_RATIO = 1e-4
"""Narrowest range that is drawn, over the widest."""
SEPARATE_BIASES_SENTENCE = "Clamping and bounding are counted without cancelling."


@dataclass(frozen=True, eq=False)
class ComparedRanges:
    """The ranges that are compared: the one in use and the best ones, for rows at one bound and for users.

    Attributes:
        weighted_rows: The rows at that bound, with smooth weights.
        current_range: The range in use.
        best_range: The best range at this bound.
        best_range_at_lower: The best range with the L in use; None where no value lies above it.
        has_private_counts: True if contribution counts are private too.
        users_cut_per_tail: Mean size of the noise at width 1, in users at the bound: 1 / epsilon for Laplace noise.
        equal_tails_range: (L, U) beyond which lies, at either end, the weight of so many users: best where the mean
            size of the noise counts in the place of its standard deviation.
        users_problem: The problem if users are clamped in place of rows; None if it has no answer.
        current_users_range: The range in use if users are clamped, at their own best bound.
    """

    weighted_rows: WeightedRows
    current_range: RangeChoice
    best_range: RangeChoice
    best_range_at_lower: RangeChoice | None
    has_private_counts: bool
    users_cut_per_tail: float
    equal_tails_range: tuple[float, float]
    users_problem: ClampedUsersProblem | None = None
    current_users_range: RangeChoice | None = None

    @property
    def users_beyond(self) -> float:
        """Return the number of users at the bound who weigh as much as the rows above the U of the best range."""
        problem, weighted_rows = self.weighted_rows.problem, self.weighted_rows
        largest_weight = weighted_rows.noise / problem.unit_deviation
        return weighted_rows.compute_weight_share_above(self.best_range.upper - problem.mean) / largest_weight


def has_range_choice(dataset: Dataset) -> bool:
    """Return True if there are values, not all the same, whose squares are numbers."""
    if dataset.values is None:
        return False
    min_value, max_value = float(dataset.values.values.min()), float(dataset.values.values.max())
    return min_value < max_value and max(-min_value, max_value) <= MAX_ABS_VALUE


def choose_ranges(dataset: Dataset, solution: MeanSolution, parameters: MeanParameters) -> ComparedRanges:
    """Choose the ranges [L, U] to compare, for data with `has_range_choice`: the entered one and the best ones.

    Rows weigh by the best smooth weights.
    """
    assert dataset.values is not None
    noise_kind = solution.problem.noise.kind
    problem = ValueRangeProblem(dataset.values, parameters.epsilon, solution.problem.relative_noise)
    weighted_rows = WeightedRows(problem, max(solution.smooth_choice.threshold, 1.0))
    best_range_at_lower = None
    if float(dataset.values.values.max()) > parameters.lower:
        best_range_at_lower = value_range.find_best_range(problem, weighted_rows.threshold, parameters.lower)
    # The noise is in proportion to the largest weight of a user.
    magnitude_per_std = noise_kind.mean_magnitude / math.sqrt(noise_kind.unit_variance)
    tail_weight = min(weighted_rows.noise * magnitude_per_std, 0.5)
    centred_low, centred_high = weighted_rows.find_range_at_quantile(tail_weight, None)

    best_range = value_range.find_best_range(problem, weighted_rows.threshold)
    current_ends = (parameters.lower, parameters.upper)
    users_problem, current_users_range = users.build_problem(dataset, solution.problem), None
    if users_problem is not None and solution.users_solution is not None:
        threshold = solution.users_solution.threshold
        current_users_range = users.build_choice(users_problem, threshold, *current_ends, None)
    return ComparedRanges(
        weighted_rows,
        weighted_rows.build_choice(*current_ends, best_range.certificate.lower_bound),
        best_range,
        best_range_at_lower,
        solution.has_private_counts,
        problem.unit_deviation * magnitude_per_std,
        (centred_low + problem.mean, centred_high + problem.mean),
        users_problem,
        current_users_range,
    )


def is_usable(problem: ValueRangeProblem, range_choice: RangeChoice) -> bool:
    """Return True if a release can use a range: it is wider than nothing, and half of the weight lies within it.

    If noise is very large, a single value would be best, which publishes the middle of the values as a bound.
    """
    if not range_choice.is_wide:
        return False
    weighted_rows = WeightedRows(problem, range_choice.threshold)
    weight_above = weighted_rows.compute_weight_share_above(range_choice.upper - problem.mean)
    return weight_above + weighted_rows.compute_weight_share_below(range_choice.lower - problem.mean) <= 0.5


def round_outward(range_choice: RangeChoice) -> tuple[float, float]:
    """Return L and U of the range, rounded outward by at most a hundredth of its width."""
    rounding_step = 10.0 ** math.floor(math.log10(range_choice.upper - range_choice.lower) - 2.0)
    lower = math.floor(range_choice.lower / rounding_step) * rounding_step
    upper = math.ceil(range_choice.upper / rounding_step) * rounding_step
    # A multiple of 0.01 has digits behind the second only by rounding.
    num_digits = max(-math.floor(math.log10(rounding_step)), 0)
    return round(lower, num_digits), round(upper, num_digits)


def plot_upper(ranges: ComparedRanges, dataset: Dataset) -> Plot:
    """Plot the error over U at the entered L, with a mark at the best U if a release can use that range."""
    problem, best_range = ranges.weighted_rows.problem, ranges.best_range_at_lower
    lower, upper = ranges.current_range.lower, ranges.current_range.upper
    all_row_values = problem.values.values
    largest_upper = max(float(all_row_values.max()), upper, lower + 1e-9 * max(abs(lower), 1.0))
    smallest_upper = min(max(lower, float(np.median(all_row_values))), largest_upper)
    plotted_uppers = _choose_ends(
        lower, smallest_upper, largest_upper, upper, *([] if best_range is None else [best_range.upper])
    )
    if best_range is not None and not is_usable(problem, best_range):
        best_range = None
    return _plot_range_end("upper", plotted_uppers, (lower, plotted_uppers), ranges, dataset, best_range)


def plot_lower(ranges: ComparedRanges, dataset: Dataset) -> Plot:
    """Plot the error over L at the entered U, without a mark at the best L."""
    all_row_values = ranges.weighted_rows.problem.values.values
    lower, upper = ranges.current_range.lower, ranges.current_range.upper
    # The same seen from above: distances from U.
    max_distance = max(upper - min(float(all_row_values.min()), lower), 1e-9 * max(abs(upper), 1.0))
    min_distance = min(
        max(upper - float(np.median(all_row_values)), _MIN_DISTANCE_RATIO * max_distance), max_distance
    )
    # Subtracted from 0, so that no end is −0.
    plotted_lowers = 0.0 - _choose_ends(-upper, -upper + min_distance, -upper + max_distance, -lower)[::-1]
    return _plot_range_end("lower", plotted_lowers, (plotted_lowers, upper), ranges, dataset, None)


def _choose_ends(fixed_end: float, min_end: float, max_end: float, *ends_to_add: float) -> FloatArray:
    """Choose ends to plot, ascending: log-spaced distances from ``fixed_end``, and ``ends_to_add`` above it."""
    largest_distance = max_end - fixed_end
    smallest_distance = max(min_end - fixed_end, _MIN_DISTANCE_RATIO * largest_distance)
    plotted_ends = np.append(
        fixed_end + np.geomspace(smallest_distance, largest_distance, NUM_PLOTTED_ENDS), ends_to_add
    )
    return np.unique(plotted_ends[plotted_ends > fixed_end])


def _plot_range_end(
    field_of_end: str,
    plotted_ends: FloatArray,
    plotted_ranges: tuple[npt.ArrayLike, npt.ArrayLike],
    ranges: ComparedRanges,
    dataset: Dataset,
    marked_range: RangeChoice | None,
) -> Plot:
    """Plot the error over one end of the range, of clamped rows with its parts, and that of clamped users if known.

    Args:
        field_of_end: The end that varies: upper or lower.
        plotted_ends: Its values, ascending, shape (points,).
        plotted_ranges: L and U; one of them is ``plotted_ends``, the other is a number.
        ranges: The best ranges and the range in use.
        dataset: The data.
        marked_range: The best range with the other end, which gets a mark; None for no mark.
    """
    end_name, other_end_name = ("U", "L") if field_of_end == "upper" else ("L", "U")
    error_parts_over_end = ranges.weighted_rows.compute_error_parts(*plotted_ranges)
    columns = {"error": error_parts_over_end.error, **vars(error_parts_over_end)}
    current_error = ranges.current_range.error
    current_end = getattr(ranges.current_range, field_of_end)
    style_by_part_name = {"clamping": Style.BIAS, "bounding": Style.SAMPLING, "noise": Style.PRIVACY}
    items: list[Item] = [
        Curve("Together", plotted_ends, error_parts_over_end.error, Style.TOTAL),
        *(
            Curve(capitalise(name), plotted_ends, columns[name], style)
            for name, style in style_by_part_name.items()
        ),
        Mark(f"{end_name} in use", current_end, current_error, Style.ENTERED, "square"),
    ]
    alt_text = f"The error over {end_name}, with {other_end_name} as entered."
    if marked_range is not None:
        items.append(Mark("Best U", marked_range.upper, marked_range.error, Style.TOTAL))
        alt_text = (
            f"With L as entered the error is least at U = {format_number(marked_range.upper)}, "
            f"{format_number(marked_range.error)}. {marked_range.certificate.sentence}"
        )
    max_error = 1.5 * max(float(error_parts_over_end.error.max()), current_error)
    if ranges.users_problem is not None and ranges.current_users_range is not None:
        users_threshold = ranges.current_users_range.threshold
        columns["users_error"] = users.compute_errors(ranges.users_problem, users_threshold, *plotted_ranges)
        items.append(Curve("Together, users clamped", plotted_ends, columns["users_error"], Style.SMOOTH))
    first_end, last_end = float(plotted_ends[0]), float(plotted_ends[-1])
    axis_limits = first_end, last_end if last_end > first_end else first_end + max(abs(first_end), 1.0)
    axis_scale = Scale.LOG if first_end > 0.0 and last_end > 20.0 * first_end else Scale.LINEAR
    return Plot(
        f"mean-range-{field_of_end}",
        f"Error over {end_name}",
        f"{alt_text} {SEPARATE_BIASES_SENTENCE}",
        Axis(end_name, VALUE_UNIT, axis_limits, axis_scale, number_format=",.3~g"),
        Axis("error without cancelling", VALUE_UNIT, (max_error / 1e4, max_error)),
        items,
        dataset.provenance,
        add_counts_column({field_of_end: plotted_ends, **columns}, ranges.has_private_counts),
    )


def build_table(
    ranges: ComparedRanges, joint_choice: RangeChoice | None, joint_users_choice: RangeChoice | None = None
) -> dict[str, list[str]]:
    """Build a table that compares ranges for rows and for users, as lists of texts by column title.

    Ranges that are None have no row, nor have best ranges for rows that no release can use.
    """
    choices_by_row_title = {
        "In use": ranges.current_range,
        "Best U for this L": ranges.best_range_at_lower,
        "Best range at this bound": ranges.best_range,
        "Best range and bound": joint_choice,
    }
    problem = ranges.weighted_rows.problem
    shown_choices_by_title = {
        row_title: range_choice
        for row_title, range_choice in choices_by_row_title.items()
        if range_choice is ranges.current_range or (range_choice and is_usable(problem, range_choice))
    }
    users_choices_by_title = {
        "Users clamped, in use": ranges.current_users_range,
        BEST_FOR_USERS: joint_users_choice,
    }
    shown_choices_by_title |= {
        row_title: choice for row_title, choice in users_choices_by_title.items() if choice is not None
    }
    fields_by_title = {"L": "lower", "U": "upper", "Bound, rows": "threshold"}
    fields_by_title |= {capitalise(name): name for name in ("clamping", "bounding", "noise", "error")}
    return {"": [*shown_choices_by_title]} | {
        column_title: [
            format_number(getattr(choice, field_name)) for choice in shown_choices_by_title.values()
        ]
        for column_title, field_name in fields_by_title.items()
    }


BEST_FOR_USERS = "Users clamped, best range and bound"


def describe_ranges(
    ranges: ComparedRanges, joint_choice: RangeChoice | None, joint_users_choice: RangeChoice | None = None
) -> list[str]:
    """Write sentences on the bound and the noise, on the rule of equal tails, and on the proofs of the best ranges.

    If no release can use the best range for rows, a warning stands in place of its proof.
    """
    problem = ranges.weighted_rows.problem
    equal_tails_lower_text, equal_tails_upper_text = map(format_number, ranges.equal_tails_range)
    private_counts_sentence = (
        " Noise is for a mean at L or U, where it is largest." if ranges.has_private_counts else ""
    )
    users_sentences = []
    if joint_users_choice is not None:
        users_sentences.append(f"**{BEST_FOR_USERS}:** {joint_users_choice.certificate.sentence}")
        if private_counts_sentence:
            users_sentences.append("If users are clamped, the noise is for the mean of this table.")
    sentences = [
        f"All is at the bound of the best smooth weights, {format_number(ranges.weighted_rows.threshold)}. "
        f"{SEPARATE_BIASES_SENTENCE}"
        f"{private_counts_sentence}",
        f"**Equal tails**, a simple rule: L = {equal_tails_lower_text}, U = {equal_tails_upper_text} cut off the "
        "weight of "
        f"{format_count(ranges.users_cut_per_tail, 'user')} at the bound at either end; the best range cuts off "
        f"{format_number(ranges.users_beyond)} users.",
    ]
    if not is_usable(problem, ranges.best_range):
        sentences.append(
            "At this ε no range of these values pays: the best is next to a single value, and publishes it. Take a "
            "range from knowledge, or more ε."
        )
        return sentences + users_sentences
    sentences.append(f"**Best range at this bound:** {ranges.best_range.certificate.sentence}")
    if joint_choice is not None:
        sentences.append(f"**Best range and bound:** {joint_choice.certificate.sentence}")
    return sentences + users_sentences
