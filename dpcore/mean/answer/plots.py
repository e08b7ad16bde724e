"""Plots of a mean as data. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import Axis, Band, Curve, Item, Mark, Plot, Style, linear_axis
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLES
from dpcore.answer.axes import (
    ROWS_UNIT,
    build_bound_axis,
    choose_bound_limits,
    choose_curve_bounds,
    fit_limits,
    sample_users,
)
from dpcore.answer.handle import Dots, Handle, Spread, draw_normal, draw_unit_noise
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import MeanSolution, offered_errors
from dpcore.mean.answer.words import BOUNDED_ROWS, MAX_LISTED_INTERVALS, UNIT
from dpcore.mean.user_effects import Clamped, bounded_mean


def plot_errors(solution: MeanSolution, dataset: Dataset, own_cap: int | None) -> Plot:
    """Plot the error against the bound, of both methods, that of bounded rows with its parts: the main figure."""
    bounds, cap, smooth, problem = solution.bounds, solution.cap, solution.smooth, solution.problem
    error_name, is_of_table = solution.error_name, problem.table is not None
    columns: dict[str, FloatArray] = {}
    if solution.split_release is not None:
        columns["usual_split_standard_error"] = np.sqrt(solution.split_release.capped.variance)
    columns["bound"] = bounds
    for key, error in (("cap", solution.capped), ("smooth", solution.smoothed)):
        columns[f"{key}_standard_error"] = np.sqrt(error.variance)
        columns[f"{key}_sampling_error"] = np.sqrt(error.sampling_variance)
        columns[f"{key}_privacy_noise"] = np.sqrt(error.privacy_variance)
        if is_of_table:
            columns[f"{key}_shift"] = np.broadcast_to(np.abs(error.shift), bounds.shape)
    # The parts are those of the bound, as on the card: of both ways there would be eight curves.
    parts = {SAMPLING: columns["cap_sampling_error"], NOISE: columns["cap_privacy_noise"]}
    if is_of_table:
        parts = {BIAS: columns["cap_shift"], **parts}
    items: list[Item] = [
        Curve(f"Total, {BOUNDED_ROWS}", bounds, columns["cap_standard_error"], Style.CAP),
        Curve("Total, smooth weights", bounds, columns["smooth_standard_error"], Style.SMOOTH),
        *(Curve(name, bounds, values, STYLES[name]) for name, values in parts.items()),
    ]
    if solution.split_release is not None:
        name, usual = f"Total, {BOUNDED_ROWS}, usual split of ε", columns["usual_split_standard_error"]
        items.append(Curve(name, bounds, usual, Style.CUSTOMARY))
    items += [Band(f"Within 5{wording.PERCENT}", low, high) for low, high in _list_bands(solution)]
    marks = [
        Mark("Best bound", cap.max_contributions, cap.standard_error, Style.CAP),
        Mark("Best smooth weights", smooth.threshold, smooth.standard_error, Style.SMOOTH, "circle"),
    ]
    if own_cap is not None:
        (own_error,) = solution.standard_errors([own_cap])
        marks.append(Mark("Your own bound", own_cap, own_error, Style.ENTERED, "square"))
    totals = np.concatenate([values for name, values in columns.items() if name.endswith("_standard_error")])
    all_errors = np.concatenate([values for name, values in columns.items() if name != "bound"])
    limits = fit_limits(np.append(totals, [mark.y for mark in marks]), all_errors)
    rising_part = "what is left out or weighs less" if solution.is_about_table else "sampling error"
    error_axis_name = "delta-method error" if solution.has_private_counts else error_name
    limits_range = offered_errors(problem.histogram, problem.value_bound)
    return Plot(
        "mean-error",
        f"{wording.capital(error_name)} against the bound",
        f"The {error_name} of a bound on rows is smallest at {wording.counted(cap.max_contributions, 'row')} per "
        f"user, {wording.number(cap.standard_error)}; smooth weights reach "
        f"{wording.number(smooth.standard_error)}. Below, {rising_part} rises; above, the noise.",
        build_bound_axis(problem.histogram),
        Axis(error_axis_name, UNIT, limits, limits_range=limits_range),
        (*items, *marks),
        dataset.provenance,
        add_setting(columns, solution.has_private_counts),
        is_main=True,
        handle=_build_handle(solution, own_cap, columns["cap_standard_error"], parts),
    )


MAX_ERRORS = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def _build_handle(
    solution: MeanSolution, own_cap: int | None, error: FloatArray, parts: dict[str, FloatArray]
) -> Handle:
    """Build the handle: whose rows the bound cuts, and what releases it gives, by the model of the error alone."""
    histogram, bounds = solution.problem.histogram, solution.bounds
    dots = Dots(
        # What a release lacks of the truth.
        -np.broadcast_to(solution.capped.shift, bounds.shape),
        # A Laplace draw with a mean magnitude of 1 has a standard deviation of sqrt(2).
        parts[NOISE] / math.sqrt(2.0),
        draw_unit_noise(NoiseKind.LAPLACE),
        Spread.ROOT_MEAN_SQUARE,
        MAX_ERRORS * solution.cap.standard_error,
        sampling=parts[SAMPLING],
        unit_sampling_draws=draw_normal(NoiseKind.LAPLACE),
    )
    return Handle(
        "Bound",
        bounds,
        error,
        own_cap or solution.cap.max_contributions,
        "own_cap",
        is_integer=True,
        parts=parts,
        users=(sample_users(histogram.sizes, histogram.users, "rows"),),
        dots=dots,
    )


def plot_weights(solution: MeanSolution, dataset: Dataset) -> Plot:
    """Plot how much a row counts over the rows of its user, relative to an unbounded mean's 1 / n."""
    histogram, cap = solution.problem.histogram, solution.cap.max_contributions
    sizes, equal = choose_curve_bounds(histogram), 1.0 / histogram.num_rows
    columns = {
        "size": sizes,
        "smooth_row_weight": mean.user_weight(solution.problem, solution.smooth.threshold, sizes) / equal,
        "capped_row_weight_on_average": np.minimum(sizes, cap)
        / sizes
        / float(histogram.kept_rows(cap))
        / equal,
    }
    _, smooth, capped = columns.values()
    # No bound leads beyond these limits.
    mean_size = histogram.num_rows / histogram.num_users
    limits = mean_size / histogram.max_size / 1.5, 1.5 * mean_size / histogram.min_size
    on_average = "Bounded rows (average over kept and dropped)"
    return Plot(
        "mean-weights",
        "Weight of one row",
        "Rows of light users all weigh the same; the more rows a user has beyond the bound, the less each counts.",
        Axis("rows of the user", ROWS_UNIT, choose_bound_limits(histogram), number_format=",.3~r"),
        Axis("weight of one row", "1 = its share without any bound", limits),
        (
            Curve("Smooth weights", sizes, smooth, Style.SMOOTH),
            Curve(on_average, sizes, capped, Style.CAP, dash="dot"),
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
    usual = mean.best_cap(mean.MeanProblem(problem.histogram, 1.0, problem.value_bound, clamped.variance))
    half_height = 1.3 * max(float(np.abs(shift).max()), usual.standard_error)
    error = np.sqrt(smoothed.privacy_variance if is_of_table else smoothed.variance)
    error_name = f"± {'the noise' if is_of_table else f'one {solution.error_name}'}"
    columns = {
        "bound": bounds,
        "shift_of_the_mean": shift,
        "smooth_privacy_noise" if is_of_table else "smooth_standard_error": error,
    }
    return Plot(
        "mean-shift",
        "When users differ",
        "How far the bound moves the mean because heavy and light users differ, beside what else the error is.",
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


def _list_bands(solution: MeanSolution) -> list[tuple[int, int]]:
    """List the stretches to plot: those of more than one bound, the best one's first, and not too many."""
    wide = [stretch for stretch in solution.stretches if stretch[0] < stretch[1]]
    return sorted(wide, key=lambda stretch: stretch != solution.near_optimal)[:MAX_LISTED_INTERVALS]


def add_setting(columns: Mapping[str, npt.ArrayLike], private_counts: bool) -> dict[str, npt.ArrayLike]:
    """Add a column that says which setting the numbers are for."""
    words = "private too" if private_counts else "public"
    return {**columns, "contribution_counts": np.full(len(np.asarray(next(iter(columns.values())))), words)}
