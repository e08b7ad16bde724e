"""Plots of a linear regression as data. Pure functions of the solution. Errors are roots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Points, Style
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import FIT, Limits, linear_axis, names_axis
from dpcore.common.privacy import Provenance
from dpcore.common.wording import capitalise, format_count, format_number
from dpcore.contributions import FloatArray, IntArray, build_log_grid
from dpcore.regression import sample_limiting, study
from dpcore.regression.answer.solution import Method, RegressionSolution
from dpcore.regression.estimate import ErrorTarget, SearchStep, compute_user_weights
from dpcore.regression.study import PREFIX_BY_METHOD

ERROR_PLOT_HEIGHT = 420
GAP_PLOT_HEIGHT = 340
MAX_SIZE_CLASSES = 400
POWER_OF_TEN_TICKS = tuple(
    (10.0**power, f"10<sup>{power}</sup>" if power else "1") for power in range(-12, 1, 2)
)
BEST_WEIGHTS_NAME = "Best weights"
ERROR_PLOT_KEY_BY_TARGET = dict(
    zip(ErrorTarget, ("regression-errors", "regression-errors-predictions"), strict=True)
)
CAP_PLOT_KEY_BY_TARGET = dict(zip(ErrorTarget, ("regression-caps", "regression-predictions"), strict=True))
"""Keys of the main figure and of that against the cap, by target."""


def build_error_axis(label_unit: str, target: ErrorTarget, axis_limits: Limits = FIT) -> Axis:
    """Build the axis of errors, whose title names the labels' column as the unit."""
    # The unit stands in the title alone: a control is named after the axis, and a column's name may be Markdown.
    is_coefficients = target is ErrorTarget.COEFFICIENTS
    axis_name = (
        "standard error, all coefficients" if is_coefficients else "root mean squared prediction error"
    )
    unit_phrase = f"{label_unit} per unit" if is_coefficients else label_unit
    return Axis(axis_name, "", axis_limits, title=f"{capitalise(axis_name)} ({unit_phrase})")


def plot_errors(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the main figure: the error of every method with a finite error above 0.

    Errors of coefficients are also shown in their two parts.
    """
    is_coefficients, best_weights_method = target is ErrorTarget.COEFFICIENTS, solution.methods_by_key["ours"]
    shown_methods = [m for m in solution.methods_by_key.values() if 0.0 < m.compute_error(target) < math.inf]
    method_errors = np.array([method.compute_error(target) for method in shown_methods])
    error_ratios = np.array([m.compute_error_ratio(best_weights_method, target) for m in shown_methods])
    method_labels = np.array([write_two_line_label(method) for method in shown_methods])
    part_points, stacked_errors = list[Points](), None
    if is_coefficients:
        noise_shares = np.array([method.noise_share for method in shown_methods])
        stacked_errors = method_errors * np.sqrt((1.0 - noise_shares, noise_shares))
        part_points = [
            Points(
                part_name,
                method_labels,
                Column(column_name, part_errors),
                item_style,
                symbol=mark_symbol,
                size=9,
            )
            for part_name, column_name, part_errors, item_style, mark_symbol in (
                ("Sampling error", "sampling_error", stacked_errors[0], Style.SAMPLING, "circle"),
                ("Privacy noise", "privacy_noise", stacked_errors[1], Style.PRIVACY, "circle"),
            )
        ]
    label_spread = float(np.std(solution.labels))
    compared_errors = method_errors if is_coefficients else np.append(method_errors, label_spread)
    error_limits = fit_limits(compared_errors, stacked_errors)
    reference_levels = [] if is_coefficients else [Level("Guessing the mean", label_spread, dash="dash")]
    best_weights_mask = np.array([method is best_weights_method for method in shown_methods])
    method_bars = []
    for group_name, group_mask, item_style, bar_opacity in (
        (BEST_WEIGHTS_NAME, best_weights_mask, Style.CAP, 1.0),
        ("Other ways", ~best_weights_mask, Style.ENTERED, 0.6),
    ):
        group_bars = Bars(
            group_name,
            method_labels[group_mask],
            method_errors[group_mask],
            item_style,
            hover_numbers=(("times the best", error_ratios[group_mask]),),
            base_value=error_limits[0],
            gap_share=0.4,
            is_overlaid=True,
            is_unnamed=True,
            opacity=bar_opacity,
        )
        method_bars.append(group_bars)
    errors_phrase = ", ".join(
        f"{m.name.lower()} {format_number(m.compute_error(target))}" for m in shown_methods
    )
    return Plot(
        ERROR_PLOT_KEY_BY_TARGET[target],
        "Error of every method" if is_coefficients else "Error of predictions of every method",
        f"Errors: {errors_phrase}.",
        names_axis("method"),
        build_error_axis(solution.unit, target, error_limits),
        (*method_bars, *part_points, *reference_levels),
        solution.dataset.provenance,
        {
            "method": [method.name for method in shown_methods],
            "error": method_errors,
            "times_the_best": error_ratios,
        },
        is_main=True,
    )


def write_two_line_label(method: Method) -> str:
    """Return a method's label in two lines: its name over its cap, or the name's first word over the others."""
    if method.note.startswith("at most "):
        return f"{method.name}<br>{method.note.removeprefix('at most ').removesuffix(' per user')}"
    return method.name.replace(" ", "<br>", 1)


def plot_caps(solution: RegressionSolution, target: ErrorTarget) -> Plot:
    """Plot the error and its parts against the cap, the best weights as a level, and marks at best cap and no cap."""
    cap_curve, best_weights_error = solution.cap_curve, solution.methods_by_key["ours"].compute_error(target)
    assert cap_curve is not None
    is_coefficients, best_index = target is ErrorTarget.COEFFICIENTS, cap_curve.find_best_index(target)
    noise_variances = cap_curve.privacy_variances if is_coefficients else cap_curve.prediction_noise_variances
    squared_errors = cap_curve.get_squared_errors(target)
    part_name = "sampling error" if is_coefficients else "error before noise"
    # NaN where a draw lost rank.
    non_noise_squares = np.maximum(squared_errors - noise_variances, 0.0)
    stacked_errors = np.sqrt([squared_errors, non_noise_squares, noise_variances])
    (total_errors, non_noise_errors, noise_errors), x = stacked_errors, cap_curve.caps.astype(np.float64)
    best_error, error_without_cap = float(total_errors[best_index]), float(total_errors[-1])
    cap_limits = (1.0, max(float(x[-1]), 2.0))
    error_limits = fit_limits(np.append(total_errors, best_weights_error), stacked_errors)
    return Plot(
        CAP_PLOT_KEY_BY_TARGET[target],
        "Error against the bound" if is_coefficients else "Error of predictions against the bound",
        f"The best weights have an error of {format_number(best_weights_error)}; the best bound has, at "
        f"{format_count(int(x[best_index]), 'row')} per user, {format_number(best_error)}; no bound has "
        f"{format_number(error_without_cap)}.",
        Axis("bound", "rows per user", cap_limits, title="Bound (rows per user)", number_format=","),
        build_error_axis(solution.unit, target, error_limits),
        (
            Curve("Bounded rows, total", x, total_errors, Style.CAP),
            Curve(f"Bounded rows, {part_name}", x, non_noise_errors, Style.SAMPLING, color_style=Style.CAP),
            Curve("Bounded rows, privacy noise", x, noise_errors, Style.PRIVACY, color_style=Style.CAP),
            Curve(
                f"{BEST_WEIGHTS_NAME} (no bound)",
                cap_limits,
                (best_weights_error, best_weights_error),
                Style.SMOOTH,
            ),
            Mark("Best bound", float(x[best_index]), best_error, Style.CAP),
            Mark("No bound", float(x[-1]), error_without_cap, Style.ENTERED, "square"),
        ),
        solution.dataset.provenance,
        {
            "cap": cap_curve.caps,
            "cap_error": total_errors,
            "cap_sampling_error" if is_coefficients else "cap_fit_error": non_noise_errors,
            "cap_privacy_noise": noise_errors,
            "ours_error": np.full(x.size, best_weights_error),
            "draws_without_estimate": cap_curve.num_rank_deficient_draws,
        },
    )


def plot_sweep(sweep: Mapping[str, FloatArray], solution: RegressionSolution) -> Plot:
    """Plot the error of best weights, best cap and no cap against ε; the plot's file also has squared errors."""
    columns = {"epsilon": sweep["epsilon"]}
    for error_target, column_prefix in itertools.product(ErrorTarget, PREFIX_BY_METHOD.values()):
        column_name = f"{column_prefix}_{error_target.value}"
        columns |= {column_name: np.sqrt(sweep[column_name]), f"{column_name}_squared": sweep[column_name]}
    columns["best_cap"], target_key = sweep["best_cap"], solution.target.value
    cap_error_ratios = columns[f"best_cap_{target_key}"] / columns[f"ours_{target_key}"]
    items: list[Item] = [
        Curve(
            curve_name,
            sweep["epsilon"],
            columns[f"{PREFIX_BY_METHOD[method_key]}_{target_key}"],
            curve_style,
            symbol=mark_symbol,
        )
        for method_key, curve_name, curve_style, mark_symbol in study.METHOD_LINES
    ]
    return Plot(
        "regression-epsilon",
        "Error against ε",
        f"Against ε, the best bound's error is {format_number(float(cap_error_ratios.min()))} to "
        f"{format_number(float(cap_error_ratios.max()))} times that of the best weights.",
        Axis("privacy budget ε", "", (min(study.SWEPT_EPSILONS), max(study.SWEPT_EPSILONS))),
        build_error_axis(solution.unit, solution.target),
        (*items, Level("Your setting", solution.problem.epsilon, is_vertical=True)),
        solution.dataset.provenance,
        columns,
        height=ERROR_PLOT_HEIGHT,
    )


def plot_gap(search_steps: Sequence[SearchStep], provenance: Provenance) -> Plot:
    """Plot the proved relative gap of the best C so far by iteration."""
    step_rows = [(s.seconds, s.variance, s.lower_bound, s.relative_gap, s.num_entries) for s in search_steps]
    column_names = ("seconds", "variance", "lower_bound", "relative_gap", "entries")
    columns = dict(zip(column_names, np.array(step_rows, dtype=np.float64).T, strict=True))
    seconds, relative_gaps = columns["seconds"], columns["relative_gap"]
    x, y = np.arange(1.0, relative_gaps.size + 1.0), np.maximum(relative_gaps, 1e-12)
    gap_curve = Curve("Gap", x, y, Style.SMOOTH, symbol="circle", hover_number=("seconds", seconds))
    iterations_phrase = format_count(relative_gaps.size, "iteration")
    alt_text = f"After {iterations_phrase} and {seconds[-1]:.2f} seconds the gap is {relative_gaps[-1]:.1e}."
    x_axis = linear_axis("iteration", (0.0, max(float(relative_gaps.size), 9.0) + 1.0), number_format=",")
    y_axis = Axis(
        "proved gap to the best",
        "relative",
        (1e-12, 1.0),
        number_format=".1e",
        named_ticks=POWER_OF_TEN_TICKS,
    )
    gap_curves, plot_title = [gap_curve], "The gap closes"
    return Plot(
        "regression-gap",
        plot_title,
        alt_text,
        x_axis,
        y_axis,
        gap_curves,
        provenance,
        columns,
        height=GAP_PLOT_HEIGHT,
    )


NAME_STYLE_SYMBOL_BY_METHOD = {
    "no bound": ("No bound", Style.ENTERED, "square-open"),
    "best bound": ("Best bound (one draw)", Style.CAP, "triangle-up-open"),
    "ours": (BEST_WEIGHTS_NAME, Style.SMOOTH, "circle"),
}


def tabulate_weights(
    rows_of_each_user: IntArray, user_weights_by_method: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Build columns by name with the mean user weight of each method, for users of each number of rows.

    Beyond `MAX_SIZE_CLASSES` different numbers, they are grouped into as many classes.
    """
    size_class_edges = np.unique(rows_of_each_user).astype(np.float64)
    if size_class_edges.size > MAX_SIZE_CLASSES:
        size_class_edges = build_log_grid(
            float(size_class_edges[0]), float(size_class_edges[-1]), MAX_SIZE_CLASSES
        )
    weight_columns = {
        f"{method_key.replace(' ', '_')}_user_weight": user_weights
        for method_key, user_weights in user_weights_by_method.items()
    }
    user_table = pd.DataFrame({"rows_of_user": rows_of_each_user, "users": 1.0, **weight_columns})
    grouped_users = user_table.groupby(np.searchsorted(size_class_edges, rows_of_each_user, side="right"))
    class_table = grouped_users.mean().assign(users=grouped_users["users"].sum())
    return dict(zip(map(str, class_table), class_table.to_numpy().T, strict=True))


def plot_weights(solution: RegressionSolution) -> Plot:
    """Plot the mean user weight of each method against a user's number of rows."""
    problem, estimate_by_method = solution.problem, {"no bound": solution.uncapped_estimate}
    if solution.cap_curve is not None:
        cap = solution.cap_curve.max_contributions
        estimate_by_method["best bound"] = sample_limiting.draw_estimate(problem, cap)
    estimate_by_method["ours"] = solution.best_estimate
    weights_by_method = {key: compute_user_weights(problem, c) for key, c in estimate_by_method.items()}
    columns = tabulate_weights(problem.whitened.sizes, weights_by_method)
    rows_of_user, _, *mean_weights_per_method = columns.values()
    lowest_weight, highest_weight = fit_limits(np.concatenate(mean_weights_per_method))
    method_styles = [NAME_STYLE_SYMBOL_BY_METHOD[method_key] for method_key in weights_by_method]
    method_points = [
        Points(method_name, rows_of_user, mean_user_weights, curve_style, symbol=mark_symbol)
        for (method_name, curve_style, mark_symbol), mean_user_weights in zip(
            method_styles, mean_weights_per_method, strict=True
        )
    ]
    alt_text = (
        "With no bound the weight of a user grows with their rows; the best weights hold it at one level."
    )
    size_limits = (1.0, max(float(rows_of_user.max()), 2.0))
    x_axis = Axis("rows of the user", "rows per user", size_limits, number_format=",.3~g")
    weight_limits = (max(lowest_weight, highest_weight / 1e6), highest_weight)
    y_axis = Axis("weight of a user, Σ |c|", "1 / unit of feature", weight_limits)
    plot_title, provenance = "Weight of a user, by their rows", solution.dataset.provenance
    return Plot(
        "regression-weights",
        plot_title,
        alt_text,
        x_axis,
        y_axis,
        method_points,
        provenance,
        columns,
        height=ERROR_PLOT_HEIGHT,
    )
