"""Plots of a release per group as data. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpcore.answer import Axis, Cells, Column, Curve, Item, Level, Mark, Plot, Points, Style, linear_axis
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLES
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars, draw_normal, draw_unit_noise
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.answer.error_map import MappedSolution, OverEpsilon
from dpcore.per_group.answer.solution import NEAR_OPTIMAL, USEFUL_ERROR, PerGroupSolution
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.summary import OBJECTIVES, error_words, unit_of

MOST_POINTS = 1500
"""Groups that a figure draws; of more, as many evenly spread over their sizes."""
GROUPS_AXIS, USERS_AXIS = "groups per user", "users in the group"
"""Whole numbers, which are written in full."""
PART_COLUMNS = {BIAS: "bias", SAMPLING: "sampling", NOISE: "noise"}
MAX_ERRORS = 3.0
"""Ends of the axis of simulated releases, in best errors: at the best pair hardly one of them lies beyond."""


def plot_pair_errors(
    solution: MappedSolution, provenance: Provenance, title: str = "Error over both bounds"
) -> Plot:
    """Plot the error over both bounds with the marked pairs, or over the only one that there is: the main figure."""
    error_map, errors = solution.map, solution.map.errors
    marked_pairs = [
        (name, pair, style, symbol)
        for name, pair, style, symbol in (
            ("Best pair", solution.pair, Style.SMOOTH, "diamond"),
            ("PipelineDP's rule", solution.tuner, Style.SAMPLING, "circle"),
            ("Your own pair", solution.own_pair, Style.ENTERED, "square"),
        )
        if pair is not None
    ]
    groups, amounts = error_map.groups, error_map.amounts
    x = _build_axis(GROUPS_AXIS, "", groups, *(float(pair.max_groups) for _, pair, _, _ in marked_pairs))
    amount_unit = _name_amount_unit(solution.parameters)
    marked_amounts = [pair.max_amount for _, pair, _, _ in marked_pairs]
    y = _build_axis("amount per user and group", amount_unit, amounts, *marked_amounts)
    columns = {
        "max_groups": np.tile(groups, amounts.size),
        "max_amount": np.repeat(amounts, groups.size),
        "error": errors.ravel(),
    }
    squares = error_map.squares() or {}
    columns |= {name: np.sqrt(square).ravel() for name, square in squares.items()}
    items: list[Item]
    if min(amounts.size, groups.size) > 1:
        best_error = min(solution.pair_error if solution.pair is not None else np.inf, float(errors.min()))
        contour = f"5{wording.PERCENT} more than the best", NEAR_OPTIMAL
        items = [Cells("error", groups, amounts, errors, best_error, contour=contour)]
        for name, pair, style, symbol in marked_pairs:
            hover_text = f"error: {error_words(solution.parameters, pair.error)}"
            items.append(Mark(name, pair.max_groups, pair.max_amount, style, symbol, hover_text=hover_text))
    else:  # Distinct users, or one group for everybody.
        is_over_groups = amounts.size == 1
        bounds = columns["max_groups" if is_over_groups else "max_amount"]
        items = [Curve("Error of the pair", bounds, columns["error"], Style.TOTAL)]
        visible_errors = errors
        if squares:  # A part is seen down to a tenth of the least error.
            for name, column in PART_COLUMNS.items():
                items.append(Curve(name, bounds, columns[column], STYLES[name]))
            visible_errors = np.append(errors, errors.min() / 10.0)
        for name, pair, style, symbol in marked_pairs:
            bound = pair.max_groups if is_over_groups else pair.max_amount
            items.append(Mark(name, bound, pair.error, style, symbol))
        x = x if is_over_groups else y
        marked_errors = [pair.error for _, pair, _, _ in marked_pairs]
        y = _build_axis("error", unit_of(solution.parameters), visible_errors, *marked_errors)
    return Plot(
        "per-group-error",
        title,
        _describe(solution),
        x,
        y,
        items,
        provenance,
        columns,
        is_main=True,
        handle=build_handle(solution, columns),
    )


def _name_amount_unit(parameters: PerGroupParameters) -> str:
    units = {Statistic.ROWS: "rows", Statistic.USERS: "1 each", Statistic.MEAN: "rows"}
    return units.get(parameters.statistic, "unit of the column")


def _build_axis(name: str, unit: str, values: FloatArray, *more: float) -> Axis:
    """Build an axis that holds all values."""
    low, high = min(float(values.min()), *more, np.inf), max(float(values.max()), *more, 0.0)
    number_format = "," if name in (GROUPS_AXIS, USERS_AXIS) else ",.3~g"
    return Axis(name, unit, (low, max(high, low * 1.5)), number_format=number_format)


def _describe(solution: MappedSolution) -> str:
    objective = OBJECTIVES[solution.parameters.objective]
    if solution.pair is None:
        return f"Every pair of bounds has a larger {objective} than publishing 0 in every group."
    return (
        f"The {objective} is smallest at {wording.counted(solution.pair.max_groups, 'group')} and an amount of "
        f"{wording.number(solution.pair.max_amount)} in each: {wording.number(solution.pair.error)}. It rises in all "
        "directions."
    )


def plot_norm_errors(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot the error against the bound on the norm, for one level and for scaling, with the best pair as a line."""
    curves, scaled, pair_error = solution.norm_curves, solution.scaled, solution.pair_error
    assert scaled is not None
    errors = np.r_[curves.cap, curves.radial, pair_error]
    norm = "L1" if solution.parameters.delta is None else "L2"
    name = "Best pair of bounds" if solution.pair is not None else "Publishing 0"
    norms = Column("max_norm", curves.norms)
    of_cap, of_scaling = Column("error_of_cap", curves.cap), Column("error_of_scaling", curves.radial)
    items: list[Item] = [
        Curve("Cut at one level", norms, of_cap, Style.SAMPLING, dash="solid", width=2.5),
        Curve("All groups scaled alike", norms, of_scaling, Style.SMOOTH, dash="dash", width=2.5),
        Curve(name, curves.norms[[0, -1]], [pair_error] * 2, Style.CAP, dash="dot", width=2.0),
    ]
    for choice, label, style, symbol in (
        (solution.cap, "Best level", Style.SAMPLING, "circle"),
        (solution.radial, "Best scaling", Style.SMOOTH, "diamond"),
    ):
        if choice is not None and choice.max_norm > 0.0:
            items.append(Mark(label, choice.max_norm, choice.error, style, symbol))
    low, high = float(errors.min()), float(errors.max())
    return Plot(
        "per-group-norm",
        "Error over the norm",
        f"Bounding whole vectors has an error of {wording.number(scaled.error)} at its best, against "
        f"{wording.number(pair_error)} of the best pair of bounds.",
        _build_axis(f"bound on the {norm} norm of a user's vector", "", curves.norms),
        _build_axis("error", unit_of(solution.parameters), np.array([low * 0.9, min(high, 8.0 * low)])),
        items,
        provenance,
        height=420,
    )


def _choose_groups(sizes: FloatArray | IntArray) -> IntArray:
    """Choose the groups to plot: those with rows, ascending by size, at most `MOST_POINTS`."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if order.size > MOST_POINTS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_POINTS)).astype(int))]
    return order


def plot_groups(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot every group's error against its size; below the line of 100 % a number says more than 0 does."""
    is_mean, all_sizes = solution.is_mean, np.abs(solution.sizes)
    indices = _choose_groups(all_sizes)
    sizes = Column("size", all_sizes[indices])
    units = np.ones(indices.size) if is_mean else all_sizes[indices]
    pair_name = "Best pair" if solution.pair is not None else f"Publishing {'the middle' if is_mean else '0'}"
    items: list[Item] = []
    for name, column, errors, style, symbol in (
        (pair_name, "error_of_pair", solution.errors, Style.CAP, "circle"),
        ("Every row kept, users scaled", "error_scaled", solution.errors_scaled, Style.SMOOTH, "diamond"),
        ("One mean for all groups", "error_of_one_mean", solution.one_mean, Style.SAMPLING, "diamond"),
    ):
        if errors is not None:
            y = Column(column, errors[indices] / units)
            items.append(Points(name, sizes, y, style, opacity=0.75, symbol=symbol, size=6))
    heights = np.concatenate([np.asarray(points.y) for points in items if isinstance(points, Points)])
    heights = heights[heights > 0.0]
    levels = [] if is_mean else [USEFUL_ERROR / 2.0, 1.5]
    if is_mean:
        alt = "The error of a group's own mean falls with its rows; that of one mean for all groups does not."
    else:
        alt = (
            "The error of a group, divided by its size, falls as groups grow: "
            f"{wording.number(solution.count_useless(solution.errors))} of "
            f"{wording.counted(solution.num_groups, 'group')} are not better than publishing 0."
        )
        items += [Level("As large as the group", 1.0)]
        items += [
            Level(f"{wording.percent(USEFUL_ERROR)} of the group's size", USEFUL_ERROR, dash="longdash")
        ]
    size_name = "rows of the group" if is_mean else "size of the group, t"
    unit = "unit of the values" if is_mean else "1 = the group's size"
    is_empty = not (indices.size and heights.size)
    return Plot(
        "per-group-sizes",
        "Error of each group",
        alt,
        _build_axis(size_name, "", np.array([1.0, 10.0]) if is_empty else all_sizes[indices]),
        _build_axis("error of a group", unit, np.array([0.1, 1.0]) if is_empty else heights, *levels),
        items,
        provenance,
        height=420,
    )


def plot_survival(solution: PerGroupSolution, provenance: Provenance) -> Plot:
    """Plot the probability that a group is released, against its users."""
    selected = solution.selected
    assert selected is not None
    order = _choose_groups(selected.users)
    users = Column("users", selected.users[order].astype(np.float64))
    scaled_name = "Users scaled, bound on groups for the selection alone"
    items = [
        Points(name, users, Column(column, groups.keep_probability[order]), style, symbol=symbol, size=size)
        for name, column, groups, style, symbol, size in (
            ("Best pair", "kept_at_pair", selected.pair, Style.CAP, "circle", 6),
            (scaled_name, "kept_where_scaled", selected.vector_groups, Style.SMOOTH, "diamond-open", 9),
            ("PipelineDP's rule", "kept_at_tuner", selected.tuner_groups, Style.SAMPLING, "square-open", 12),
        )
        if groups is not None
    ]
    alt = "With the best pair no group is released."
    if selected.pair is not None:
        alt = (
            "The more users a group has, the likelier it is released: "
            f"{wording.number(selected.pair.expected_groups)} of {wording.counted(solution.num_groups, 'group')} on "
            "average with the best pair."
        )
    return Plot(
        "per-group-survival",
        "Which groups survive",
        alt,
        _build_axis(USERS_AXIS, "", np.asarray(users)),
        linear_axis("probability that it is released", (-0.03, 1.03)),
        items,
        provenance,
    )


def plot_over_epsilon(solution: PerGroupSolution, provenance: Provenance) -> tuple[Plot, Plot]:
    """Plot the groups released and the parts of the error, against epsilon."""
    curves, columns = _list_curves(solution), dict[str, FloatArray]()
    group_items, error_items = list[Item](), list[Item]()
    for name, key, curve, style, dash in curves:
        columns |= {
            "epsilon": curve.epsilons,
            f"groups_{key}": curve.groups,
            f"error_of_released_{key}": curve.error_kept,
            f"error_of_lost_{key}": curve.error_lost,
        }
        group_items.append(Curve(name, curve.epsilons, curve.groups, style, dash=dash))
        error_items += [
            Curve(f"{name}: lost groups", curve.epsilons, curve.error_lost, style, dash="solid"),
            Curve(f"{name}: released groups", curve.epsilons, curve.error_kept, style, dash="dot"),
        ]
    _, _, first, _, _ = curves[0]
    alt = (
        f"From ε = {wording.number(first.epsilons[0])} to {wording.number(first.epsilons[-1])} the groups released on "
        f"average go from {wording.number(first.groups[0])} to {wording.number(first.groups[-1])}, and what lost "
        f"groups add to the error from {wording.number(first.error_lost[0])} to {wording.number(first.error_lost[-1])}."
    )
    max_error = max(float((curve.error_kept + curve.error_lost).max()) for _, _, curve, _, _ in curves)
    x = _build_axis("privacy budget ε in all, bounds as they are", "", columns["epsilon"])
    group_limits = (0.0, float(solution.num_groups))
    group_axis = linear_axis("groups released on average", group_limits, number_format=",.3~g")
    unit = unit_of(solution.parameters)
    error_axis = linear_axis("part of the error", (0.0, max_error), unit, number_format=",.3~g")
    return (
        Plot(
            "per-group-kept-over-epsilon",
            "Groups released over ε",
            alt,
            x,
            group_axis,
            group_items,
            provenance,
            columns,
            height=340,
        ),
        Plot(
            "per-group-error-over-epsilon",
            "Parts of the error over ε",
            alt,
            x,
            error_axis,
            error_items,
            provenance,
            columns,
            height=340,
        ),
    )


def _list_curves(solution: PerGroupSolution) -> list[tuple[str, str, OverEpsilon, Style, str]]:
    """List name, key, curve, style and dash of what was computed over epsilon."""
    assert solution.selected is not None
    curves = (
        ("Best pair", "pair", solution.selected.over_epsilon, Style.CAP, "dot"),
        ("Users scaled", "scaled", solution.selected.vector_over_epsilon, Style.SMOOTH, "dash"),
    )
    return [(name, key, curve, style, dash) for name, key, curve, style, dash in curves if curve is not None]


# --- both bounds by hand ------------------------------------------------------------------------------------


def build_handle(solution: MappedSolution, columns: Mapping[str, FloatArray]) -> Handle:
    """Build the handle of the error over both bounds; ``columns`` are those of the figure."""
    parameters, error_map = solution.parameters, solution.map
    pair = solution.own_pair or solution.pair
    if pair is None:
        best = int(np.argmin(error_map.errors))
        groups, amount = (float(columns[name][best]) for name in ("max_groups", "max_amount"))
    else:
        groups, amount = float(pair.max_groups), pair.max_amount
    parts = {name: columns[column] for name, column in PART_COLUMNS.items() if column in columns}
    is_count = parameters.statistic in (Statistic.ROWS, Statistic.MEAN)
    of_groups = "Groups", Column("max_groups", error_map.groups), "", groups, "own_groups", True
    of_amounts = (
        "Rows" if is_count else "Amount",
        Column("max_amount", error_map.amounts),
        "in each",
        amount,
        "own_amount",
        parameters.statistic.whole,
    )
    # Where a user is in one group at most, the figure is a curve over the amount.
    is_swapped = error_map.groups.size == 1 < error_map.amounts.size
    first, second = (of_amounts, of_groups) if is_swapped else (of_groups, of_amounts)
    name, bounds, _, initial_value, field, is_integer = first
    return Handle(
        name,
        bounds,
        columns["error"],
        initial_value,
        field,
        is_integer,
        parts=parts,
        users=_sample_users(solution, is_swapped),
        dots=_build_dots(solution, columns["error"], parts),
        second=SecondBound(*second),
    )


def _build_dots(solution: MappedSolution, errors: FloatArray, parts: Mapping[str, FloatArray]) -> Dots:
    """Build dots: one is a group's number whose error has the size of the objective.

    Its bias, its sampling and its noise are the roots of their mean squares over the groups, so that the dots' mean
    square is that of the error: the objective where that is a root mean square, and as large as it elsewhere. An error
    without known parts, as that of a ratio, is drawn as one normal variable of its size.
    """
    unit, noise = unit_of(solution.parameters), solution.parameters.noise
    # The mean magnitude of noise of standard deviation 1.
    magnitude = noise.mean_magnitude / math.sqrt(noise.unit_variance)
    return Dots(
        parts.get(BIAS),
        parts[NOISE] * magnitude if parts else None,
        draw_unit_noise(noise),
        Spread.ROOT_MEAN_SQUARE,
        MAX_ERRORS * solution.pair_error,
        unit if unit in ("rows", "users") else "",
        parts.get(SAMPLING, errors),
        draw_normal(noise),
        # Of an error whose parts are not known the size alone is drawn, and the line above the dots says so.
        unit_name="groups" if parts else "errors of this size",
    )


def _sample_users(solution: MappedSolution, is_swapped: bool) -> tuple[UserBars, ...]:
    """Sample users by their groups, and pairs of a user and a group by what they add, if these are of several sizes."""
    bounded = solution.bounded_sizes
    # What they are cut by, the line below them says.
    users = sample_users(bounded.groups, bounded.users, "rows", is_cut_by_second=is_swapped)
    has_amount = bounded.amounts > 0.0
    if not has_amount.any():
        return (users,)
    amounts, pairs = bounded.amounts[has_amount], bounded.pairs[has_amount]
    pair_bars = sample_users(amounts, pairs, "rows", "pair", is_cut_by_second=not is_swapped)
    return tuple(bars for bars in (users, pair_bars) if bars.contributions[0] > bars.contributions[-1]) or (
        users,
    )
