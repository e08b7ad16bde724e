"""Plots of a release per group as data. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpcore.answer import Axis, Cells, Column, Curve, Item, Level, Mark, Plot, Points, Style, linear_axis
from dpcore.answer.answer import BIAS, NOISE, PART_STYLES, SAMPLING
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars, draw_normal, draw_unit_noise
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.answer.solution import (
    NEAR_OPTIMAL,
    USEFUL_ERROR,
    DistributionSolution,
    PairSolution,
    PerGroupSolution,
)
from dpcore.per_group.answer.words import OBJECTIVES, format_error, name_norm
from dpcore.per_group.means import compute_errors_of_one_mean
from dpcore.per_group.parameters import PerGroupParameters, Statistic

MOST_POINTS = 1500
"""Most groups in a figure."""
GROUPS_AXIS, USERS_AXIS = "groups per user", "users in the group"
"""Axes of integers."""
PART_COLUMNS = {BIAS: "bias", SAMPLING: "sampling", NOISE: "noise"}
MAX_ERRORS = 3.0
"""Ends of the axis of simulated releases, in best errors."""


def plot_pair_errors(solution: PairSolution, provenance: Provenance) -> Plot:
    """Plot the error over both bounds with the marked pairs, or over the only one that there is: the main figure."""
    error_map, parameters = solution.error_map, solution.parameters
    title = f"Error over both bounds{', about' if isinstance(solution, DistributionSolution) else ''}"
    marked_pairs = [
        (name, pair, style, symbol)
        for name, pair, style, symbol in (
            ("Best pair", solution.pair, Style.SMOOTH, "diamond"),
            ("PipelineDP's rule", solution.tuner_pair, Style.SAMPLING, "circle"),
            ("Your own pair", solution.own_pair, Style.ENTERED, "square"),
        )
        if pair is not None
    ]
    groups, amounts, errors = error_map.group_bounds, error_map.amounts, error_map.errors
    columns = {
        "max_groups": np.tile(groups, amounts.size),
        "max_amount": np.repeat(amounts, groups.size),
        "error": errors.ravel(),
    }
    columns |= {name: np.sqrt(square).ravel() for name, square in error_map.split_squares().items()}
    items: list[Item]
    x = _build_axis(GROUPS_AXIS, "", groups, *(float(pair.max_groups) for _, pair, _, _ in marked_pairs))
    y = _build_axis(
        "amount per user and group",
        "1 each" if parameters.statistic is Statistic.USERS else _name_unit(parameters.statistic, "rows"),
        amounts,
        *(pair.max_amount for _, pair, _, _ in marked_pairs),
    )
    if min(amounts.size, groups.size) > 1:
        best_error = float(min(errors.min(), np.inf if solution.pair is None else solution.pair_error))
        contour = f"5{wording.PERCENT} more than the best", NEAR_OPTIMAL
        items = [Cells("error", groups, amounts, errors, best_error, named_contour=contour)]
        for name, pair, style, symbol in marked_pairs:
            hover_text = f"error: {format_error(parameters, pair.error)}"
            items.append(Mark(name, pair.max_groups, pair.max_amount, style, symbol, hover_text=hover_text))
    else:  # Distinct users, or one group for everybody.
        is_over_groups = amounts.size == 1
        bounds = columns["max_groups" if is_over_groups else "max_amount"]
        items = [Curve("Error of the pair", bounds, columns["error"], Style.TOTAL)]
        for name, column in PART_COLUMNS.items():
            if column in columns:
                items.append(Curve(name, bounds, columns[column], PART_STYLES[name]))
        # A part is seen down to a tenth of the least error.
        visible_errors = np.append(errors, errors.min() / 10.0) if len(items) > 1 else errors
        for name, pair, style, symbol in marked_pairs:
            bound = pair.max_groups if is_over_groups else pair.max_amount
            items.append(Mark(name, bound, pair.error, style, symbol))
        x = x if is_over_groups else y
        marked_errors = [pair.error for _, pair, _, _ in marked_pairs]
        y = _build_axis("error", _name_error_unit(parameters), visible_errors, *marked_errors)
    handle, alt = build_handle(solution, columns), _describe_error_map(solution)
    return Plot("per-group-error", title, alt, x, y, items, provenance, columns, is_main=True, handle=handle)


def _name_unit(statistic: Statistic, mean_unit: str = "unit of the values") -> str:
    """Return the unit of a statistic, for axes."""
    units = {Statistic.ROWS: "rows", Statistic.USERS: "users", Statistic.MEAN: mean_unit}
    return units.get(statistic, "unit of the column")


def _name_error_unit(parameters: PerGroupParameters) -> str:
    """Return the unit of the objective, for axes."""
    return (
        "share of the group's size" if parameters.objective.is_relative else _name_unit(parameters.statistic)
    )


def _build_axis(name: str, unit: str, values: FloatArray, *marked_values: float) -> Axis:
    """Build an axis that holds all values."""
    low, high = (
        min(float(values.min()), *marked_values, np.inf),
        max(float(values.max()), *marked_values, 0.0),
    )
    number_format = "," if name in (GROUPS_AXIS, USERS_AXIS) else ",.3~g"
    return Axis(name, unit, (low, max(high, low * 1.5)), number_format=number_format)


def _describe_error_map(solution: PairSolution) -> str:
    """Write the alternative text of the error map: the pair with the smallest error, or that there is none."""
    objective = OBJECTIVES[solution.parameters.objective]
    if solution.pair is None:
        return f"Every pair of bounds has a larger {objective} than publishing 0."
    pair = (
        f"{wording.counted(solution.pair.max_groups, 'group')} × {wording.number(solution.pair.max_amount)}"
    )
    return f"The {objective} is smallest at {pair}: {wording.number(solution.pair.error)}."


def plot_norm_errors(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot the error against the bound on the norm, for one level and for scaling, with the best pair as a line."""
    (norms, cap, radial), scaled, pair_error = solution.norm_curves, solution.best_vector, solution.pair_error
    assert scaled is not None
    assert solution.best_cap is not None
    assert solution.best_radial is not None
    errors = np.r_[cap, radial, pair_error]
    norm = name_norm(solution.parameters)
    name = "Best pair of bounds" if solution.pair is not None else "Publishing 0"
    x, cap_errors, radial_errors = map(
        Column, ("max_norm", "error_of_cap", "error_of_scaling"), solution.norm_curves
    )
    items: list[Item] = [
        Curve("Cut at one level", x, cap_errors, Style.SAMPLING, dash="solid", width=2.5),
        Curve("All groups scaled alike", x, radial_errors, Style.SMOOTH, dash="dash", width=2.5),
        Curve(name, norms[[0, -1]], [pair_error] * 2, Style.CAP, dash="dot", width=2.0),
        Mark("Best level", solution.best_cap.max_norm, solution.best_cap.error, Style.SAMPLING, "circle"),
        Mark(
            "Best scaling", solution.best_radial.max_norm, solution.best_radial.error, Style.SMOOTH, "diamond"
        ),
    ]
    # A bound of 0 lies beyond the axis.
    items = [item for item in items if not (isinstance(item, Mark) and item.x == 0.0)]
    low, high = float(errors.min()), float(errors.max())
    alt = f"Smallest error {wording.number(scaled.error)}; best pair {wording.number(pair_error)}."
    x_axis = _build_axis(f"bound on the {norm} norm of a user's vector", "", norms)
    visible_errors = np.array([low * 0.9, min(high, 8.0 * low)])
    y_axis = _build_axis("error", _name_error_unit(solution.parameters), visible_errors)
    return Plot("per-group-norm", "Error over the norm", alt, x_axis, y_axis, items, provenance, height=420)


def _choose_groups(sizes: FloatArray | IntArray) -> IntArray:
    """Choose the groups to plot: those with rows, ascending by size, at most `MOST_POINTS`."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if order.size > MOST_POINTS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_POINTS)).astype(int))]
    return order


def plot_groups(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot every group's error against its size; below the line of 100 % a number says more than 0 does."""
    is_mean, all_sizes = solution.is_mean, np.abs(solution.problem.totals)
    indices = _choose_groups(all_sizes)
    sizes = Column("size", all_sizes[indices])
    units = np.ones(indices.size) if is_mean else all_sizes[indices]
    pair_name = "Best pair" if solution.pair is not None else f"Publishing {'the middle' if is_mean else '0'}"
    one_mean = compute_errors_of_one_mean(solution.problem) if is_mean else None
    items: list[Item] = []
    for name, column, errors, style, symbol in (
        (pair_name, "error_of_pair", solution.group_errors, Style.CAP, "circle"),
        ("Users scaled", "error_scaled", solution.vector_group_errors, Style.SMOOTH, "diamond"),
        ("One mean for all groups", "error_of_one_mean", one_mean, Style.SAMPLING, "diamond"),
    ):
        if errors is not None:
            errors_column = Column(column, errors[indices] / units)
            items.append(Points(name, sizes, errors_column, style, opacity=0.75, symbol=symbol, size=6))
    heights = np.concatenate([np.asarray(points.y) for points in items if isinstance(points, Points)])
    heights = heights[heights > 0.0]
    levels: list[float] = []
    alt = "The error of a group's own mean falls with its rows."
    size_name, unit = "rows of the group", "unit of the values"
    if not is_mean:
        alt = "The relative error falls as groups grow."
        size_name, unit = "size of the group, t", "1 = the group's size"
        levels = [USEFUL_ERROR / 2.0, 1.5]
        useful_name = f"{wording.percent(USEFUL_ERROR)} of the group's size"
        items += [Level("As large as the group", 1.0), Level(useful_name, USEFUL_ERROR, dash="longdash")]
    is_empty = not (indices.size and heights.size)
    x = _build_axis(size_name, "", np.array([1.0, 10.0]) if is_empty else all_sizes[indices])
    y = _build_axis("error of a group", unit, np.array([0.1, 1.0]) if is_empty else heights, *levels)
    return Plot("per-group-sizes", "Error of each group", alt, x, y, items, provenance, height=420)


def plot_survival(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot the probability that a group is released, against its users."""
    selected = solution.selected
    assert selected is not None
    order = _choose_groups(selected.users_per_group)
    users = Column("users", selected.users_per_group[order].astype(np.float64))
    scaled_name = "Users scaled"
    items = [
        Points(name, users, Column(column, groups.keep_probabilities[order]), style, symbol=symbol, size=size)
        for name, column, key, style, symbol, size in (
            ("Best pair", "kept_at_pair", "pair", Style.CAP, "circle", 6),
            (scaled_name, "kept_where_scaled", "scaled", Style.SMOOTH, "diamond-open", 9),
            ("PipelineDP's rule", "kept_at_tuner", "tuner", Style.SAMPLING, "square-open", 12),
        )
        if (groups := selected.groups_by_bounds.get(key))
    ]
    alt = "The more users a group has, the likelier it is released."
    x = _build_axis(USERS_AXIS, "", np.asarray(users))
    y = linear_axis("probability of release", (-0.03, 1.03))
    return Plot("per-group-survival", "Which groups survive", alt, x, y, items, provenance)


def plot_over_epsilon(solution: PerGroupSolution, provenance: Provenance) -> tuple[Plot, Plot]:
    """Plot the groups released and the parts of the error, against epsilon."""
    assert solution.selected is not None
    columns = dict[str, FloatArray]()
    group_items, error_items = list[Item](), list[Item]()
    styles_by_bounds = {
        "pair": ("Best pair", Style.CAP, "dot"),
        "scaled": ("Users scaled", Style.SMOOTH, "dash"),
    }
    curves = solution.selected.curves_by_bounds
    for key, (epsilons, num_released, error_kept, error_lost) in curves.items():
        name, style, dash = styles_by_bounds[key]
        columns |= {
            "epsilon": epsilons,
            f"groups_{key}": num_released,
            f"error_of_released_{key}": error_kept,
            f"error_of_lost_{key}": error_lost,
        }
        group_items.append(Curve(name, epsilons, num_released, style, dash=dash))
        error_items += [
            Curve(f"{name}: lost groups", epsilons, error_lost, style, dash="solid"),
            Curve(f"{name}: released groups", epsilons, error_kept, style, dash="dot"),
        ]
    alt = "With a larger ε more groups are released, and lost groups add less to the error."
    max_error = max(float((error_kept + error_lost).max()) for *_, error_kept, error_lost in curves.values())
    group_limits = (0.0, float(solution.num_groups))
    group_axis = linear_axis("groups released on average", group_limits, number_format=",.3~g")
    unit = _name_error_unit(solution.parameters)
    error_axis = linear_axis("part of the error", (0.0, max_error), unit, number_format=",.3~g")
    x = _build_axis("privacy budget ε, same bounds", "", columns["epsilon"])

    def build_plot(key: str, title: str, y: Axis, items: list[Item]) -> Plot:
        """Plot the curves against the total budget."""
        return Plot(f"per-group-{key}-over-epsilon", title, alt, x, y, items, provenance, columns, height=340)

    return (
        build_plot("kept", "Groups released over ε", group_axis, group_items),
        build_plot("error", "Parts of the error over ε", error_axis, error_items),
    )


# --- both bounds by hand ------------------------------------------------------------------------------------


def build_handle(solution: PairSolution, columns: Mapping[str, FloatArray]) -> Handle:
    """Build the handle of the error over both bounds; ``columns`` are those of the figure."""
    statistic, error_map = solution.parameters.statistic, solution.error_map
    best = int(np.argmin(error_map.errors))
    initial_groups, initial_amount = float(columns["max_groups"][best]), float(columns["max_amount"][best])
    if pair := solution.own_pair or solution.pair:
        initial_groups, initial_amount = float(pair.max_groups), pair.max_amount
    error_parts = {name: columns[column] for name, column in PART_COLUMNS.items() if column in columns}
    amount_name = "Rows" if statistic in (Statistic.ROWS, Statistic.MEAN) else "Amount"
    groups, amounts = Column("max_groups", error_map.group_bounds), Column("max_amount", error_map.amounts)
    groups_bound = SecondBound("Groups", groups, "", initial_groups, "own_groups", True)
    amounts_bound = SecondBound(
        amount_name, amounts, "in each", initial_amount, "own_amount", statistic.is_integer
    )
    # Where a user is in one group at most, the figure is a curve over the amount.
    is_swapped = error_map.group_bounds.size == 1 < error_map.amounts.size
    first, second = (amounts_bound, groups_bound) if is_swapped else (groups_bound, amounts_bound)
    return Handle(
        first.name,
        first.bounds,
        columns["error"],
        first.initial_value,
        first.field_name,
        first.is_integer,
        error_parts=error_parts,
        user_bars=_sample_users(solution, is_swapped),
        dots=_build_dots(solution, columns["error"], error_parts),
        second_bound=second,
    )


def _build_dots(solution: PairSolution, errors: FloatArray, error_parts: Mapping[str, FloatArray]) -> Dots:
    """Build dots: one is a group's number whose error has the size of the objective.

    Its bias, its sampling and its noise are the roots of their mean squares over the groups, so that the dots' mean
    square is that of the error: the objective where that is a root mean square, and as large as it elsewhere. An error
    without known error_parts, as that of a ratio, is drawn as one normal variable of its size.
    """
    unit, noise = _name_error_unit(solution.parameters), solution.parameters.noise.kind
    # The mean magnitude of noise of standard deviation 1.
    magnitude = noise.mean_magnitude / math.sqrt(noise.unit_variance)
    return Dots(
        error_parts.get(BIAS),
        error_parts[NOISE] * magnitude if error_parts else None,
        draw_unit_noise(noise),
        Spread.ROOT_MEAN_SQUARE,
        MAX_ERRORS * solution.pair_error,
        unit if unit in ("rows", "users") else "",
        error_parts.get(SAMPLING, errors),
        draw_normal(noise),
        # Of an error whose parts are not known the size alone is drawn, and the line above the dots says so.
        dots_name="groups" if error_parts else "errors of this size",
    )


def _sample_users(solution: PairSolution, is_swapped: bool) -> tuple[UserBars, ...]:
    """Sample users by their groups, and pairs of a user and a group by what they add, if these are of several sizes."""
    groups, users, amounts, pairs = solution.bounded_sizes
    # The line below the bars names the bound that cuts them.
    user_bars = sample_users(groups, users, "rows", is_cut_by_second=is_swapped)
    has_amount = amounts > 0.0
    if not has_amount.any():
        return (user_bars,)
    pair_bars = sample_users(
        amounts[has_amount], pairs[has_amount], "rows", "pair", is_cut_by_second=not is_swapped
    )
    bars_of_several_sizes = tuple(
        bars for bars in (user_bars, pair_bars) if bars.contributions[0] > bars.contributions[-1]
    )
    return bars_of_several_sizes or (user_bars,)
