"""Plots of a release per group as data. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpcore.answer import Axis, Cells, Column, Curve, Item, Level, Mark, Plot, Points, Style, linear_axis
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLE_BY_PART
from dpcore.answer.axes import build_user_bars
from dpcore.answer.handle import (
    Dots,
    Handle,
    SecondBound,
    Spread,
    UserBars,
    draw_unit_noise,
    draw_unit_sampling,
)
from dpcore.common.privacy import Provenance
from dpcore.common.wording import PERCENT, format_count, format_number, format_percent
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.answer.solution import (
    NEAR_OPTIMAL_RATIO,
    USEFUL_ERROR,
    DistributionSolution,
    PairSolution,
    PerGroupSolution,
)
from dpcore.per_group.answer.words import NAME_BY_OBJECTIVE, format_error, format_pair
from dpcore.per_group.means import compute_errors_of_one_mean
from dpcore.per_group.parameters import PerGroupParameters, Statistic

MAX_PLOTTED_GROUPS = 1500
"""Most groups in a figure."""
GROUPS_AXIS, USERS_AXIS = "groups per user", "users in the group"
"""Axes of integers."""
COLUMN_BY_PART = {BIAS: "bias", SAMPLING: "sampling", NOISE: "noise"}
MAP_HEIGHT = 510
"""In pixels: the map alone fills the first screen of 1280 x 800, as its cells are small."""
MAX_DOTS_IN_ERRORS = 3.0
"""Ends of the axis of simulated releases, in best errors."""


def plot_pair_errors(solution: PairSolution, provenance: Provenance) -> Plot:
    """Plot the main figure: the error as a map over both bounds, or a curve if only one bound has several values.

    Best pair, own pair and the pair of PipelineDP's rule are marked if they are known.
    """
    error_map, parameters = solution.error_map, solution.parameters
    plot_title = f"Error over both bounds{', about' if isinstance(solution, DistributionSolution) else ''}"
    pair_marks = [
        (mark_name, pair, mark_style, mark_symbol)
        for mark_name, pair, mark_style, mark_symbol in (
            ("Best pair", solution.pair, Style.CAP, "diamond"),
            ("PipelineDP", solution.tuner_pair, Style.ENTERED, "circle"),
            ("Your own pair", solution.own_pair, Style.ENTERED, "square"),
        )
        if pair is not None
    ]
    marked_pairs = [pair for _, pair, _, _ in pair_marks]
    group_bounds, amount_bounds, errors = error_map.group_bounds, error_map.amount_bounds, error_map.errors
    columns = {
        "max_groups": np.tile(group_bounds, amount_bounds.size),
        "max_amount": np.repeat(amount_bounds, group_bounds.size),
        "error": errors.ravel(),
    }
    columns |= {
        mark_name: np.sqrt(mean_squares).ravel()
        for mark_name, mean_squares in error_map.split_squares().items()
    }
    items: list[Item]
    x_axis = _build_axis(GROUPS_AXIS, "", group_bounds, *(float(pair.max_groups) for pair in marked_pairs))
    amount_unit = (
        "1 each" if parameters.statistic is Statistic.USERS else _name_unit(parameters.statistic, "rows")
    )
    amount_name, amount_unit = ("rows", "") if amount_unit == "rows" else ("amount", amount_unit)
    amounts_axis = f"{amount_name} per user in each group"
    y_axis = _build_axis(
        amounts_axis, amount_unit, amount_bounds, *(marked_pair.max_amount for marked_pair in marked_pairs)
    )
    if min(amount_bounds.size, group_bounds.size) > 1:
        best_error = float(min(errors.min(), np.inf if solution.pair is None else solution.pair_error))
        contour_name_and_ratio = f"within 5{PERCENT}", NEAR_OPTIMAL_RATIO
        items = [
            Cells(
                "error",
                group_bounds,
                amount_bounds,
                errors,
                best_error,
                named_contour_multiple=contour_name_and_ratio,
            )
        ]
        for mark_name, pair, mark_style, mark_symbol in pair_marks:
            hover_text = f"error: {format_error(parameters, pair.error)}"
            pair_text = f"{format_number(pair.max_groups)} × {format_number(pair.max_amount)}"
            mark_label = f"{mark_name}: {pair_text}"
            if pair is solution.pair:
                mark_label = format_pair(parameters, pair.max_groups, pair.max_amount)
            mark_options: dict[str, Any] = {"hover_text": hover_text, "label": mark_label}
            items.append(
                Mark(mark_name, pair.max_groups, pair.max_amount, mark_style, mark_symbol, **mark_options)
            )
    else:  # Distinct users, or one group for everybody.
        is_over_groups = amount_bounds.size == 1
        plotted_bounds = columns["max_groups" if is_over_groups else "max_amount"]
        items = [Curve("Error of the pair", plotted_bounds, columns["error"], Style.TOTAL)]
        for mark_name, column_name in COLUMN_BY_PART.items():
            if column_name in columns:
                items.append(Curve(mark_name, plotted_bounds, columns[column_name], STYLE_BY_PART[mark_name]))
        # A part is seen down to a tenth of the least error.
        visible_errors = np.append(errors, errors.min() / 10.0) if len(items) > 1 else errors
        for mark_name, pair, mark_style, mark_symbol in pair_marks:
            marked_bound = pair.max_groups if is_over_groups else pair.max_amount
            items.append(Mark(mark_name, marked_bound, pair.error, mark_style, mark_symbol))
        x_axis = x_axis if is_over_groups else y_axis
        error_unit = _name_error_unit(parameters)
        y_axis = _build_axis("error", error_unit, visible_errors, *(pair.error for pair in marked_pairs))
    bounds_handle, alt_text = build_handle(solution, columns), _describe_error_map(solution)
    plot_options: dict[str, Any] = {
        "is_main": True,
        "height": MAP_HEIGHT if isinstance(items[0], Cells) else None,
        "handle": bounds_handle,
    }
    return Plot(
        "per-group-error", plot_title, alt_text, x_axis, y_axis, items, provenance, columns, **plot_options
    )


def _name_unit(statistic: Statistic, mean_unit: str = "unit of the values") -> str:
    """Return the unit of a statistic for axes; ``mean_unit`` for means."""
    units_by_statistic = {Statistic.ROWS: "rows", Statistic.USERS: "users", Statistic.MEAN: mean_unit}
    return units_by_statistic.get(statistic, "unit of the column")


def _name_error_unit(parameters: PerGroupParameters) -> str:
    """Return the unit of the objective, for axes."""
    is_relative = parameters.objective.is_relative
    return "share of the group's size" if is_relative else _name_unit(parameters.statistic)


def _build_axis(axis_name: str, axis_unit: str, plotted_values: FloatArray, *marked_values: float) -> Axis:
    """Build an axis that holds all values and the marked ones; its upper end is at least 1.5 times the lower one."""
    lowest_value = min(float(plotted_values.min()), *marked_values, np.inf)
    highest_value = max(float(plotted_values.max()), *marked_values, 0.0)
    number_format = "," if axis_name in (GROUPS_AXIS, USERS_AXIS) else ",.3~g"
    return Axis(
        axis_name,
        axis_unit,
        (lowest_value, max(highest_value, lowest_value * 1.5)),
        number_format=number_format,
    )


def _describe_error_map(solution: PairSolution) -> str:
    """Write the alternative text of the error map: the pair with the smallest error, or that there is none."""
    objective_text = NAME_BY_OBJECTIVE[solution.parameters.objective]
    if solution.pair is None:
        return f"Every pair of bounds has a larger {objective_text} than publishing 0."
    groups_text = format_count(solution.pair.max_groups, "group")
    pair_text = f"{groups_text} × {format_number(solution.pair.max_amount)}"
    return f"The {objective_text} is smallest at {pair_text}: {format_number(solution.pair.error)}."


def plot_norm_errors(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot the error against the bound on the norm, for one level and for scaling, with the best pair as a line.

    Both must have been solved for (`PerGroupSolution.vector_choices`).
    """
    max_norms, cap_errors, radial_errors = solution.norm_curves
    (cap_choice, radial_choice), pair_error = solution.vector_choices, solution.pair_error
    all_errors = np.array([*cap_errors, *radial_errors, pair_error])
    norm_name = solution.parameters.norm_name
    pair_level_name = "Best pair of bounds" if solution.pair is not None else "Publishing 0"
    norm_column = Column("max_norm", max_norms)
    cap_column, radial_column = Column("error_of_cap", cap_errors), Column("error_of_scaling", radial_errors)
    items: list[Item] = [
        Curve("Cut at one level", norm_column, cap_column, Style.SAMPLING, dash="solid", width=2.5),
        Curve("All groups scaled alike", norm_column, radial_column, Style.SMOOTH, dash="dash", width=2.5),
        Curve(pair_level_name, max_norms[[0, -1]], [pair_error] * 2, Style.CAP, dash="dot", width=2.0),
        Mark("Best level", cap_choice.max_norm, cap_choice.error, Style.SAMPLING),
        Mark("Best scaling", radial_choice.max_norm, radial_choice.error, Style.SMOOTH),
    ]
    # A bound of 0 lies beyond the axis.
    items = [item for item in items if not (isinstance(item, Mark) and item.x == 0.0)]
    least_error, largest_error = float(all_errors.min()), float(all_errors.max())
    vector_error = min(cap_choice.error, radial_choice.error)
    alt_text = f"Smallest error {format_number(vector_error)}; best pair {format_number(pair_error)}."
    x_axis = _build_axis(f"bound on the {norm_name} norm of a user's vector", "", max_norms)
    visible_errors = np.array([least_error * 0.9, min(largest_error, 8.0 * least_error)])
    y_axis = _build_axis("error", _name_error_unit(solution.parameters), visible_errors)
    return Plot(
        "per-group-norm", "Error over the norm", alt_text, x_axis, y_axis, items, provenance, height=420
    )


def _choose_groups(group_sizes: FloatArray | IntArray) -> IntArray:
    """Return the indices of the groups to plot: those with rows, ascending by size, at most `MAX_PLOTTED_GROUPS`."""
    order = np.argsort(group_sizes, kind="stable")
    order = order[group_sizes[order] > 0]
    if order.size > MAX_PLOTTED_GROUPS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MAX_PLOTTED_GROUPS)).astype(int))]
    return order


def plot_groups(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot groups' errors against their sizes, relative to them but for means; of some groups if there are many."""
    is_mean, group_sizes = solution.is_mean, np.abs(solution.problem.totals)
    plotted_indices = _choose_groups(group_sizes)
    size_column = Column("size", group_sizes[plotted_indices])
    relative_to = np.ones(plotted_indices.size) if is_mean else group_sizes[plotted_indices]
    pair_curve_name = (
        "Best pair" if solution.pair is not None else f"Publishing {'the middle' if is_mean else '0'}"
    )
    one_mean_errors = compute_errors_of_one_mean(solution.problem) if is_mean else None
    items: list[Item] = []
    for curve_name, column_name, group_errors, curve_style, curve_symbol in (
        (pair_curve_name, "error_of_pair", solution.group_errors, Style.CAP, "circle"),
        ("Users scaled", "error_scaled", solution.vector_group_errors, Style.SMOOTH, "triangle-up"),
        ("One mean for all groups", "error_of_one_mean", one_mean_errors, Style.SAMPLING, "triangle-up"),
    ):
        if group_errors is not None:
            errors_column = Column(column_name, group_errors[plotted_indices] / relative_to)
            items.append(
                Points(
                    curve_name,
                    size_column,
                    errors_column,
                    curve_style,
                    opacity=0.75,
                    symbol=curve_symbol,
                    size=6,
                )
            )
    point_errors = np.concatenate([np.asarray(item.y) for item in items if isinstance(item, Points)])
    point_errors = point_errors[point_errors > 0.0]
    visible_errors: list[float] = []
    alt_text = "The error of a group's own mean falls with its rows."
    axis_name, error_unit = "rows of the group", "unit of the values"
    if not is_mean:
        alt_text = "The relative error falls as groups grow."
        axis_name, error_unit = "size of the group, t", "1 = the group's size"
        visible_errors = [USEFUL_ERROR / 2.0, 1.5]
        level_name = f"{format_percent(USEFUL_ERROR)} of the group's size"
        items += [
            Level("As large as the group", 1.0),
            Level(level_name, USEFUL_ERROR, dash="longdash"),
        ]
    is_empty = not (plotted_indices.size and point_errors.size)
    x_axis = _build_axis(axis_name, "", np.array([1.0, 10.0]) if is_empty else group_sizes[plotted_indices])
    point_errors = np.array([0.1, 1.0]) if is_empty else point_errors
    y_axis = _build_axis("error of a group", error_unit, point_errors, *visible_errors)
    return Plot(
        "per-group-sizes", "Error of each group", alt_text, x_axis, y_axis, items, provenance, height=420
    )


def plot_survival(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot groups' probability of release against their users, of some groups if many, for each choice of bounds."""
    selection_solution = solution.selection_solution
    assert selection_solution is not None
    plotted_indices = _choose_groups(selection_solution.users_per_group)
    group_users_column = Column(
        "users", selection_solution.users_per_group[plotted_indices].astype(np.float64)
    )
    items = []
    for curve_name, column_name, bounds_name, curve_style, curve_symbol, symbol_size in (
        ("Best pair", "kept_at_pair", "pair", Style.CAP, "circle", 6),
        ("Users scaled", "kept_where_scaled", "scaled", Style.SMOOTH, "triangle-up-open", 9),
        ("PipelineDP's rule", "kept_at_tuner", "tuner", Style.SAMPLING, "square-open", 12),
    ):
        if selected_groups := selection_solution.selected_groups_by_bounds_name.get(bounds_name):
            probability_column = Column(column_name, selected_groups.keep_probabilities[plotted_indices])
            items.append(
                Points(
                    curve_name,
                    group_users_column,
                    probability_column,
                    curve_style,
                    symbol=curve_symbol,
                    size=symbol_size,
                )
            )
    alt_text = "The more users a group has, the likelier it is released."
    x_axis = _build_axis(USERS_AXIS, "", np.asarray(group_users_column))
    y_axis = linear_axis("probability of release", (-0.03, 1.03))
    return Plot("per-group-survival", "Which groups survive", alt_text, x_axis, y_axis, items, provenance)


def plot_over_epsilon(solution: PerGroupSolution, provenance: Provenance) -> tuple[Plot, Plot]:
    """Plot against epsilon, in two plots, the expected number of released groups and the two parts of the error."""
    assert solution.selection_solution is not None
    columns_by_name, max_error = dict[str, FloatArray](), 0.0
    group_items, error_items = list[Item](), list[Item]()
    label_style_dash_by_bounds = {
        "pair": ("Best pair", Style.CAP, "dot"),
        "scaled": ("Users scaled", Style.SMOOTH, "dash"),
    }
    for bounds_name, bounds_curves in solution.selection_solution.curves_by_bounds_name.items():
        epsilons, released_counts, errors_of_released_groups, errors_of_lost_groups = bounds_curves
        bounds_label, curve_style, curve_dash = label_style_dash_by_bounds[bounds_name]
        max_error = max(max_error, float((errors_of_released_groups + errors_of_lost_groups).max()))
        columns_by_name |= {
            "epsilon": epsilons,
            f"groups_{bounds_name}": released_counts,
            f"error_of_released_{bounds_name}": errors_of_released_groups,
            f"error_of_lost_{bounds_name}": errors_of_lost_groups,
        }
        group_items.append(Curve(bounds_label, epsilons, released_counts, curve_style, dash=curve_dash))
        error_items += [
            Curve(f"{bounds_label}: lost groups", epsilons, errors_of_lost_groups, curve_style, dash="solid"),
            Curve(
                f"{bounds_label}: released groups",
                epsilons,
                errors_of_released_groups,
                curve_style,
                dash="dot",
            ),
        ]
    alt_text = "With a larger ε more groups are released, and lost groups add less to the error."
    x_axis = _build_axis("privacy budget ε, same bounds", "", columns_by_name["epsilon"])

    def build_plot(key_part: str, plot_title: str, items: list[Item], *axis_options: Any) -> Plot:
        """Build the plot of these items against the total budget; the options are those of its vertical axis."""
        plot_key = f"per-group-{key_part}-over-epsilon"
        error_axis = linear_axis(*axis_options, number_format=",.3~g")
        return Plot(
            plot_key, plot_title, alt_text, x_axis, error_axis, items, provenance, columns_by_name, height=340
        )

    group_axis_options = "groups released on average", (0.0, float(solution.num_groups))
    error_axis_options = "part of the error", (0.0, max_error), _name_error_unit(solution.parameters)
    return (
        build_plot("kept", "Groups released over ε", group_items, *group_axis_options),
        build_plot("error", "Parts of the error over ε", error_items, *error_axis_options),
    )


# --- both bounds by hand ------------------------------------------------------------------------------------


def build_handle(solution: PairSolution, columns: Mapping[str, FloatArray]) -> Handle:
    """Build the handle of the error over both bounds; ``columns`` has the figure's values by name."""
    statistic, error_map = solution.parameters.statistic, solution.error_map
    best_row, best_column = divmod(int(np.argmin(error_map.errors)), error_map.group_bounds.size)
    initial_pair = float(error_map.group_bounds[best_column]), float(error_map.amount_bounds[best_row])
    if pair := solution.own_pair or solution.pair:
        initial_pair = float(pair.max_groups), pair.max_amount
    errors_by_part = {
        part_name: columns[column_name]
        for part_name, column_name in COLUMN_BY_PART.items()
        if column_name in columns
    }
    amount_name = "Rows" if statistic in (Statistic.ROWS, Statistic.MEAN) else "Amount"
    group_column = Column("max_groups", error_map.group_bounds)
    amount_column = Column("max_amount", error_map.amount_bounds)
    amount_bound_arguments = "in each", initial_pair[1], "own_amount", statistic.is_integer
    handle_bounds = [
        SecondBound("Groups", group_column, "", initial_pair[0], "own_groups", True),
        SecondBound(amount_name, amount_column, *amount_bound_arguments),
    ]
    # Where a user is in one group at most, the figure is a curve over the amount.
    is_amount_first = error_map.group_bounds.size == 1 < error_map.amount_bounds.size
    first_bound, second_bound = reversed(handle_bounds) if is_amount_first else handle_bounds
    return Handle(
        first_bound.name,
        first_bound.bounds,
        columns["error"],
        first_bound.initial_value,
        first_bound.field_name,
        first_bound.is_integer,
        error_parts=errors_by_part,
        user_bars=_sample_users(solution, is_amount_first),
        dots=_build_dots(solution, columns["error"], errors_by_part),
        second_bound=second_bound,
    )


def _build_dots(
    solution: PairSolution, errors_on_map: FloatArray, errors_by_part: Mapping[str, FloatArray]
) -> Dots:
    """Build dots: one is a group's number whose error has the size of the objective.

    Its bias, its sampling and its noise are the roots of their mean squares over the groups, so that the dots' mean
    square is that of the error: the objective where that is a root mean square, and as large as it elsewhere. An error
    without known parts, as that of a ratio, is drawn as one normal variable of its size.
    """
    error_unit, noise_kind = _name_error_unit(solution.parameters), solution.parameters.noise.kind
    # The mean magnitude of noise of standard deviation 1.
    mean_magnitude = noise_kind.mean_magnitude / math.sqrt(noise_kind.unit_variance)
    return Dots(
        errors_by_part.get(BIAS),
        errors_by_part[NOISE] * mean_magnitude if errors_by_part else None,
        draw_unit_noise(noise_kind),
        Spread.ROOT_MEAN_SQUARE,
        MAX_DOTS_IN_ERRORS * solution.pair_error,
        error_unit if error_unit in ("rows", "users") else "",
        errors_by_part.get(SAMPLING, errors_on_map),
        draw_unit_sampling(noise_kind),
        # Of an error whose parts are not known the size alone is drawn, and the line above the dots says so.
        dots_name="groups" if errors_by_part else "errors of this size",
    )


def _sample_users(solution: PairSolution, is_amount_first: bool) -> tuple[UserBars, ...]:
    """Return bars of users by number of groups, and of pairs by amount; bars that are all equal are left out.

    If all bars are equal, those of users alone are returned.
    """
    groups_per_user, user_counts, amounts, pair_counts = solution.bounded_sizes
    # The line below the bars names the bound that cuts them.
    bars_of_both_bounds = [
        build_user_bars(groups_per_user, user_counts, "rows", second_bound_cuts=is_amount_first)
    ]
    positive_mask = amounts > 0.0
    if positive_mask.any():
        amounts_and_counts = amounts[positive_mask], pair_counts[positive_mask]
        bars_of_both_bounds.append(
            build_user_bars(
                *amounts_and_counts, "rows", "user–group pair", second_bound_cuts=not is_amount_first
            )
        )
    bars_that_differ = tuple(
        bars for bars in bars_of_both_bounds if bars.contributions[0] > bars.contributions[-1]
    )
    return bars_that_differ or (bars_of_both_bounds[0],)
