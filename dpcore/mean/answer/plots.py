"""The plots of the solution for a mean, and the range [L, U] that suits the values, in figures and words.

All are pure functions of the solution. The range is as private as the values. Its error counts what clamping cuts off
and what weighing shifts without letting them cancel, and takes smooth weights (`dpcore.mean.value_range`). The exact
error has a minimum that is no answer and is never offered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer.answer import BIAS, NOISE, PART_STYLES, SAMPLING
from dpcore.answer.axes import (
    ROWS_UNIT,
    build_bound_axis,
    choose_bound_limits,
    choose_curve_bounds,
)
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import Axis, Band, Curve, Item, Mark, Plot, Scale, Style, linear_axis
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean import value_range
from dpcore.mean.answer import users
from dpcore.mean.answer.solution import MAX_LISTED_INTERVALS, MeanSolution, offered_errors
from dpcore.mean.answer.users import UNIT
from dpcore.mean.clamped_users import ClampedUsersProblem
from dpcore.mean.parameters import MeanParameters
from dpcore.mean.table_values import Clamped, bounded_mean
from dpcore.mean.value_range import RangeChoice, RangeParts, ValueRangeProblem, WeightedRows


def plot_errors(solution: MeanSolution, dataset: Dataset, own_bound: int | None) -> Plot:
    """Plot the error against the bound, of both methods, that of bounded rows with its parts: the main figure."""
    bounds, cap, smooth, problem = solution.bounds, solution.cap, solution.smooth, solution.problem
    error_name, is_of_table = solution.error_name, problem.table is not None
    columns: dict[str, FloatArray] = {}
    split_curves = []
    if solution.split_release is not None:
        split_error = np.sqrt(solution.split_release.capped.variance)
        columns["usual_split_standard_error"] = split_error
        name = "Total, bounded rows, usual split of ε"
        split_curves = [Curve(name, bounds, split_error, Style.CUSTOMARY)]
    columns["bound"] = bounds
    for key, error in (("cap", solution.capped), ("smooth", solution.smoothed)):
        columns[f"{key}_standard_error"] = np.sqrt(error.variance)
        columns[f"{key}_sampling_error"] = np.sqrt(error.sampling_variance)
        columns[f"{key}_privacy_noise"] = np.sqrt(error.privacy_variance)
        if is_of_table:
            columns[f"{key}_shift"] = np.broadcast_to(np.abs(error.shift), bounds.shape)
    # The parts are those of the bound, as on the card: of both ways there would be eight curves.
    error_parts = {SAMPLING: columns["cap_sampling_error"], NOISE: columns["cap_privacy_noise"]}
    if is_of_table:
        error_parts = {BIAS: columns["cap_shift"], **error_parts}
    # The stretches of more than one bound, the best one's first, and not too many.
    wide = [stretch for stretch in solution.stretches if stretch[0] < stretch[1]]
    stretches = sorted(wide, key=lambda stretch: stretch != solution.near_optimal)[:MAX_LISTED_INTERVALS]
    items: list[Item] = [
        Curve("Total, bounded rows", bounds, columns["cap_standard_error"], Style.CAP),
        Curve("Total, smooth weights", bounds, columns["smooth_standard_error"], Style.SMOOTH),
        *(Curve(name, bounds, values, PART_STYLES[name]) for name, values in error_parts.items()),
        *split_curves,
        *(Band(f"Within 5{wording.PERCENT}", low, high) for low, high in stretches),
    ]
    marks = [
        Mark("Best bound", cap.max_contributions, cap.standard_error, Style.CAP),
        Mark("Best smooth weights", smooth.threshold, smooth.standard_error, Style.SMOOTH, "circle"),
    ]
    if own_bound is not None:
        own_error = float(solution.standard_errors(own_bound))
        marks.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "square"))
    totals = np.concatenate([values for name, values in columns.items() if name.endswith("_standard_error")])
    all_errors = np.concatenate([values for name, values in columns.items() if name != "bound"])
    limits = fit_limits(np.append(totals, [mark.y for mark in marks]), all_errors)
    error_axis_name = "delta-method error" if solution.has_private_counts else error_name
    limits_range = offered_errors(problem)
    return Plot(
        "mean-error",
        f"{wording.capital(error_name)} against the bound",
        f"The {error_name} is smallest at {wording.counted(cap.max_contributions, 'row')} per user, "
        f"{wording.number(cap.standard_error)}; smooth weights reach {wording.number(smooth.standard_error)}.",
        build_bound_axis(problem.histogram),
        Axis(error_axis_name, UNIT, limits, limits_range=limits_range),
        (*items, *marks),
        dataset.provenance,
        add_setting(columns, solution.has_private_counts),
        is_main=True,
        handle=users.build_handle(
            problem,
            bounds,
            solution.capped,
            error_parts,
            own_bound or cap.max_contributions,
            cap.standard_error,
        ),
    )


def plot_weights(solution: MeanSolution, dataset: Dataset) -> Plot:
    """Plot how much a row counts over the rows of its user, relative to an unbounded mean's 1 / n."""
    histogram, cap = solution.problem.histogram, solution.cap.max_contributions
    sizes, equal = choose_curve_bounds(histogram), 1.0 / histogram.num_rows
    smooth_row_weights = mean.user_weight(solution.problem, solution.smooth.threshold, sizes) / equal
    capped_row_weights = np.minimum(sizes, cap) / sizes / float(histogram.kept_rows(cap)) / equal
    columns = {
        "size": sizes,
        "smooth_row_weight": smooth_row_weights,
        "capped_row_weight_on_average": capped_row_weights,
    }
    # No bound leads beyond these limits.
    mean_size = histogram.num_rows / histogram.num_users
    limits = mean_size / histogram.max_size / 1.5, 1.5 * mean_size / histogram.min_size
    on_average = "Bounded rows (average over kept and dropped)"
    return Plot(
        "mean-weights",
        "Weight of one row",
        "The more rows a user has beyond the bound, the less each counts.",
        Axis("rows of the user", ROWS_UNIT, choose_bound_limits(histogram), number_format=",.3~r"),
        Axis("weight of one row", "1 = its share without any bound", limits),
        (
            Curve("Smooth weights", sizes, smooth_row_weights, Style.SMOOTH),
            Curve(on_average, sizes, capped_row_weights, Style.CAP, dash="dot"),
        ),
        dataset.provenance,
        add_setting(columns, solution.has_private_counts),
    )


def plot_shift(solution: MeanSolution, dataset: Dataset, clamped: Clamped) -> Plot:
    """Plot how far the bound moves the mean itself, because users differ, beside the standard error."""
    problem, bounds, smoothed = solution.problem, solution.bounds, solution.smoothed
    is_of_table = problem.table is not None
    shift = bounded_mean(clamped, bounds) - clamped.mean
    # The vertical axis depends on the values and bounds alone, so that it does not move with epsilon: the standard
    # error of the best cap at epsilon = 1 fits into it.
    best_cap = mean.best_cap(mean.MeanProblem(problem.histogram, 1.0, problem.value_bound, clamped.variance))
    half_height = 1.3 * max(float(np.abs(shift).max()), best_cap.standard_error)
    error = np.sqrt(smoothed.privacy_variance if is_of_table else smoothed.variance)
    error_name = f"± {'the noise' if is_of_table else f'one {solution.error_name}'}"
    column = "smooth_privacy_noise" if is_of_table else "smooth_standard_error"
    columns = {"bound": bounds, "shift_of_the_mean": shift, column: error}
    return Plot(
        "mean-shift",
        "When users differ",
        "How far the bound moves the mean because heavy and light users differ.",
        build_bound_axis(problem.histogram),
        linear_axis("shift of the mean", (-half_height, half_height), UNIT),
        (
            Curve("Bounded mean minus plain mean", bounds, shift, Style.TOTAL),
            Curve(error_name, bounds, error, Style.ENTERED),
            Curve(error_name, bounds, -error, Style.ENTERED, is_unnamed=True),
        ),
        dataset.provenance,
        add_setting(columns, solution.has_private_counts),
    )


def add_setting(columns: Mapping[str, npt.ArrayLike], private_counts: bool) -> dict[str, npt.ArrayLike]:
    """Add a column that says which setting the numbers are for."""
    num_lines, setting = np.size(next(iter(columns.values()))), "private too" if private_counts else "public"
    return {**columns, "contribution_counts": np.full(num_lines, setting)}


POINTS = 120
"""Ends of a curve."""
MAX_VALUE = 1e100
"""Size of values up to which a range is looked for."""
_SPAN = 1e-4
"""Narrowest range that is drawn, over the widest."""
SEPARATE = "Clamping and bounding are counted without cancelling."


@dataclass(frozen=True, eq=False)
class Ranges:
    """The result for given L and U, at one bound.

    Attributes:
        rows: The rows at that bound, with smooth weights.
        current: The range in use.
        best_range: The best range at this bound.
        best_upper: The best U for the L in use; None where no value lies above it.
        has_private_counts: True if contribution counts are private too.
        tail_users: Mean size of the noise for a range of width 1, in users at the bound: 1 / epsilon for Laplace noise.
        equal_tails: (L, U) beyond which lies, at either end, the weight of so many users: best where the mean size of
            the noise counts in the place of its standard deviation.
        users_problem: The problem if users are clamped in place of rows; None if it has no answer.
        current_users: The range in use if users are clamped, at their own best bound.
    """

    rows: WeightedRows
    current: RangeChoice
    best_range: RangeChoice
    best_upper: RangeChoice | None
    has_private_counts: bool
    tail_users: float
    equal_tails: tuple[float, float]
    users_problem: ClampedUsersProblem | None = None
    current_users: RangeChoice | None = None

    @property
    def users_beyond(self) -> float:
        """Return the number of users at the bound who weigh as much as the rows above the U of the best range."""
        largest = self.rows.noise / self.rows.problem.unit_deviation
        return self.rows.weight_above(self.best_range.upper - self.rows.problem.mean) / largest


def has_range_choice(dataset: Dataset) -> bool:
    """Return True if there are values, not all the same, whose squares are numbers."""
    if dataset.values is None:
        return False
    low, high = float(dataset.values.values.min()), float(dataset.values.values.max())
    return low < high and max(-low, high) <= MAX_VALUE


def choose_ranges(dataset: Dataset, solution: MeanSolution, parameters: MeanParameters) -> Ranges:
    """Return the best ranges at the bound of the best smooth weights, for data that `has_range_choice` accepts."""
    assert dataset.values is not None
    noise_kind = solution.problem.noise.kind
    problem = ValueRangeProblem(dataset.values, parameters.epsilon, solution.problem.relative_noise)
    rows, best_upper = WeightedRows(problem, max(solution.smooth.threshold, 1.0)), None
    if float(dataset.values.values.max()) > parameters.lower:
        best_upper = value_range.best_range(problem, rows.threshold, parameters.lower)
    # The noise is in proportion to the largest weight of a user.
    mean_size = noise_kind.mean_magnitude / math.sqrt(noise_kind.unit_variance)
    low, high = rows.range_at_quantile(min(rows.noise * mean_size, 0.5), None)
    equal_tails = low + problem.mean, high + problem.mean
    best = value_range.best_range(problem, rows.threshold)
    current = rows.choose(parameters.lower, parameters.upper, best.certificate.lower_bound)
    tail_users = problem.unit_deviation * mean_size
    users_problem, current_users = users.build_problem(dataset, solution.problem), None
    if users_problem is not None and solution.users is not None:
        ends = parameters.lower, parameters.upper
        current_users = users.describe_choice(users_problem, solution.users.threshold, *ends, None)
    return Ranges(
        rows,
        current,
        best,
        best_upper,
        solution.has_private_counts,
        tail_users,
        equal_tails,
        users_problem,
        current_users,
    )


def is_usable(problem: ValueRangeProblem, choice: RangeChoice) -> bool:
    """Return True if a release can use a range: it is wider than nothing, and half of the weight lies within it.

    If noise is very large, a single value would be best, which publishes the middle of the values as a bound.
    """
    if not choice.upper - choice.lower > 1e-9 * max(abs(choice.lower), abs(choice.upper)):
        return False
    rows = WeightedRows(problem, choice.threshold)
    return (
        rows.weight_above(choice.upper - problem.mean) + rows.weight_below(choice.lower - problem.mean) <= 0.5
    )


def round_outward(choice: RangeChoice) -> tuple[float, float]:
    """Return the range with ends rounded outward, to a hundredth of its width or somewhat more."""
    step = 10.0 ** math.floor(math.log10(choice.upper - choice.lower) - 2.0)
    low, high = math.floor(choice.lower / step) * step, math.ceil(choice.upper / step) * step
    # A multiple of 0.01 has digits behind the second only by rounding.
    digits = max(-math.floor(math.log10(step)), 0)
    return round(low, digits), round(high, digits)


def plot_upper(ranges: Ranges, dataset: Dataset) -> Plot:
    """Plot the error over U at the L in use."""
    values, best = ranges.rows.problem.values.values, ranges.best_upper
    lower, upper = ranges.current.lower, ranges.current.upper
    largest = max(float(values.max()), upper, lower + 1e-9 * max(abs(lower), 1.0))
    smallest = min(max(lower, float(np.median(values))), largest)
    ends = _choose_ends(lower, smallest, largest, upper, *([] if best is None else [best.upper]))
    if best is not None and not is_usable(ranges.rows.problem, best):
        best = None
    return _plot("upper", ends, ranges.rows.error_parts(lower, ends), ranges, dataset, best, (lower, ends))


def plot_lower(ranges: Ranges, dataset: Dataset) -> Plot:
    """Plot the error over L at the U in use."""
    values = ranges.rows.problem.values.values
    lower, upper = ranges.current.lower, ranges.current.upper
    # The same seen from above: distances from U.
    largest = max(upper - min(float(values.min()), lower), 1e-9 * max(abs(upper), 1.0))
    smallest = min(max(upper - float(np.median(values)), _SPAN * largest), largest)
    # Subtracted from 0, so that no end is −0.
    ends = 0.0 - _choose_ends(-upper, -upper + smallest, -upper + largest, -lower)[::-1]
    return _plot("lower", ends, ranges.rows.error_parts(ends, upper), ranges, dataset, None, (ends, upper))


def _choose_ends(fixed_end: float, smallest: float, largest: float, *more_ends: float) -> FloatArray:
    """Choose ends to plot, their distances from the fixed one log-spaced, with the current and the best one."""
    widest = largest - fixed_end
    narrowest = max(smallest - fixed_end, _SPAN * widest)
    ends = np.append(fixed_end + np.geomspace(narrowest, widest, POINTS), more_ends)
    return np.unique(ends[ends > fixed_end])


def _plot(
    side: str,
    ends: FloatArray,
    error_parts: RangeParts,
    ranges: Ranges,
    dataset: Dataset,
    best: RangeChoice | None,
    plotted_ranges: tuple[npt.ArrayLike, npt.ArrayLike],
) -> Plot:
    """Plot the error over one end of the range; ``side`` is upper or lower, ``plotted_ranges`` are L and U."""
    end, other_end = ("U", "L") if side == "upper" else ("L", "U")
    columns, error = {"error": error_parts.error, **vars(error_parts)}, ranges.current.error
    styles = {"clamping": Style.BIAS, "bounding": Style.SAMPLING, "noise": Style.PRIVACY}
    items: list[Item] = [
        Curve("Together", ends, error_parts.error, Style.TOTAL),
        *(Curve(wording.capital(name), ends, columns[name], style) for name, style in styles.items()),
        Mark(f"{end} in use", getattr(ranges.current, side), error, Style.ENTERED, "square"),
    ]
    alt = f"The error over {end}, with {other_end} as entered."
    if best is not None:
        items.append(Mark("Best U", best.upper, best.error, Style.TOTAL))
        alt = (
            f"With L as entered the error is least at U = {wording.number(best.upper)}, {wording.number(best.error)}. "
            f"{best.certificate.sentence}"
        )
    max_error = 1.5 * max(float(error_parts.error.max()), error)
    if ranges.users_problem is not None and ranges.current_users is not None:
        threshold = ranges.current_users.threshold
        columns["users_error"] = users.compute_errors(ranges.users_problem, threshold, *plotted_ranges)
        items.append(Curve("Together, users clamped", ends, columns["users_error"], Style.SMOOTH))
    low, high = float(ends[0]), float(ends[-1])
    limits = low, high if high > low else low + max(abs(low), 1.0)
    scale = Scale.LOG if low > 0.0 and high > 20.0 * low else Scale.LINEAR
    return Plot(
        f"mean-range-{side}",
        f"Error over {end}",
        f"{alt} {SEPARATE}",
        Axis(end, UNIT, limits, scale, number_format=",.3~g"),
        Axis("error without cancelling", UNIT, (max_error / 1e4, max_error)),
        items,
        dataset.provenance,
        add_setting({side: ends, **columns}, ranges.has_private_counts),
    )


def build_table(
    ranges: Ranges, joint: RangeChoice | None, joint_users: RangeChoice | None = None
) -> dict[str, list[str]]:
    """Return the range in use beside the best ones, a line each, for rows and then for users."""
    choices_by_name = {
        "In use": ranges.current,
        "Best U for this L": ranges.best_upper,
        "Best range at this bound": ranges.best_range,
        "Best range and bound": joint,
    }
    problem = ranges.rows.problem
    lines = [
        (name, choice)
        for name, choice in choices_by_name.items()
        if choice is not None and (choice is ranges.current or is_usable(problem, choice))
    ]
    users_choices = {"Users clamped, in use": ranges.current_users, BEST_FOR_USERS: joint_users}
    lines += [(name, choice) for name, choice in users_choices.items() if choice is not None]
    attributes = {"L": "lower", "U": "upper", "Bound, rows": "threshold"} | {
        wording.capital(name): name for name in ("clamping", "bounding", "noise", "error")
    }
    return {"": [name for name, _ in lines]} | {
        title: [wording.number(getattr(choice, attribute)) for _, choice in lines]
        for title, attribute in attributes.items()
    }


BEST_FOR_USERS = "Users clamped, best range and bound"


def describe_ranges(
    ranges: Ranges, joint: RangeChoice | None, joint_users: RangeChoice | None = None
) -> list[str]:
    """Write sentences on the cost of the range, the rule of equal tails, and the proofs."""
    number, problem = wording.number, ranges.rows.problem
    low, high = ranges.equal_tails
    users = f"{wording.counted(ranges.tail_users, 'user')} at the bound"
    private_note = " Noise is for a mean at L or U, where it is largest." if ranges.has_private_counts else ""
    users_note = [] if joint_users is None else [f"**{BEST_FOR_USERS}:** {joint_users.certificate.sentence}"]
    if joint_users is not None and private_note:
        users_note.append("If users are clamped, the noise is for the mean of this table.")
    sentences = [
        f"All is at the bound of the best smooth weights, {number(ranges.rows.threshold)}. {SEPARATE}{private_note}",
        f"**Equal tails**, a simple rule: L = {number(low)}, U = {number(high)} cut off the weight of {users} at "
        f"either end; the best range cuts off {number(ranges.users_beyond)} users.",
    ]
    if not is_usable(problem, ranges.best_range):
        sentences.append(
            "At this ε no range of these values pays: the best is next to a single value, and publishes it. Take a "
            "range from knowledge, or more ε."
        )
        return sentences + users_note
    choices = {"Best range at this bound": ranges.best_range, "Best range and bound": joint}
    return [
        *sentences,
        *(
            f"**{name}:** {choice.certificate.sentence}"
            for name, choice in choices.items()
            if choice is not None
        ),
        *users_note,
    ]
