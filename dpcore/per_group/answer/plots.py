"""The figures of a release per group as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Cells, Curve, Item, Level, Mark, Plot, Points, Scale, Style
from dpcore.answer.parts import STYLES
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.answer import handles
from dpcore.per_group.answer.error_map import MappedSolution
from dpcore.per_group.answer.found import NEAR_OPTIMAL, USEFUL_ERROR, PerGroupSolution
from dpcore.per_group.answer.selected import OverEpsilon
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.words import OBJECTIVES, error_words, unit_of

MOST_POINTS = 1500
"""Groups that a figure draws; of more, as many evenly spread over their sizes."""
L0, USERS = "groups per user", "users in the group"
"""Whole numbers, which are written in full."""
SURVIVAL = (
    Points("Best pair", "users", "kept_at_pair", Style.CAP, symbol="circle", size=6),
    Points(
        "Users scaled, bound on groups for the selection alone",
        "users",
        "kept_where_scaled",
        Style.SMOOTH,
        symbol="diamond-open",
        size=9,
    ),
    Points("PipelineDP's rule", "users", "kept_at_tuner", Style.SAMPLING, symbol="square-open", size=12),
)


def over_both(of: MappedSolution, kind: Provenance, title: str = "Error over both bounds") -> Plot:
    """Return the main figure: the error over both bounds with the marked pairs, or over the only one that there is."""
    whole, errors = of.map, of.map.errors
    marked = [
        (name, pair, look, symbol)
        for name, pair, look, symbol in (
            ("Best pair", of.pair, Style.SMOOTH, "diamond"),
            ("PipelineDP's rule", of.tuner, Style.SAMPLING, "circle"),
            ("Your own pair", of.own_pair, Style.ENTERED, "square"),
        )
        if pair is not None
    ]
    x = _across(L0, "", whole.groups, *(float(pair.max_groups) for _, pair, _, _ in marked))
    y = _across(
        "amount per user and group",
        _amount_unit(of.parameters),
        whole.amounts,
        *(pair.max_amount for _, pair, _, _ in marked),
    )
    columns = {
        "max_groups": np.tile(whole.groups, whole.amounts.size),
        "max_amount": np.repeat(whole.amounts, whole.groups.size),
        "error": errors.ravel(),
    }
    squares = whole.squares()
    if squares is not None:
        columns |= {name: np.sqrt(square).ravel() for name, square in squares.items()}
    items: list[Item]
    if min(whole.amounts.size, whole.groups.size) > 1:
        least = min(of.pair_error if of.pair is not None else np.inf, float(errors.min()))
        edge = f"5{wording.PERCENT} more than the best"
        items = [Cells("error", "max_groups", "max_amount", "error", least, contour=(edge, NEAR_OPTIMAL))]
        items += [
            Mark(
                name,
                pair.max_groups,
                pair.max_amount,
                look,
                symbol,
                hover_text=f"error: {error_words(of.parameters, pair.error)}",
            )
            for name, pair, look, symbol in marked
        ]
    else:  # Distinct users, or one group for everybody.
        by_groups = whole.amounts.size == 1
        bound, seen = "max_groups" if by_groups else "max_amount", errors
        items = [Curve("Error of the pair", bound, "error", Style.TOTAL)]
        if squares is not None:  # A part is seen down to a tenth of the least error.
            items += [
                Curve(part.name, bound, part.column, STYLES[part.name]) for part in handles.PART_COLUMNS
            ]
            seen = np.append(errors, errors.min() / 10.0)
        items += [
            Mark(name, pair.max_groups if by_groups else pair.max_amount, pair.error, look, symbol)
            for name, pair, look, symbol in marked
        ]
        x = x if by_groups else y
        y = _across("error", unit_of(of.parameters), seen, *(pair.error for _, pair, _, _ in marked))
    moves, guides = handles.build_handle(of, columns)
    return Plot(
        "per-group-error",
        title,
        _alt(of),
        x,
        y,
        columns,
        tuple(items),
        kind,
        guides,
        is_main=True,
        handle=moves,
    )


def _amount_unit(parameters: PerGroupParameters) -> str:
    units = {Statistic.ROWS: "rows", Statistic.USERS: "1 each", Statistic.MEAN: "rows"}
    return units.get(parameters.statistic, "unit of the column")


def _across(name: str, unit: str, values: FloatArray, *more: float) -> Axis:
    """Return an axis that holds all values."""
    low, high = min(float(values.min()), *more, np.inf), max(float(values.max()), *more, 0.0)
    number = "," if name in (L0, USERS) else ",.3~g"
    return Axis(name, unit, (low, max(high, low * 1.5)), number_format=number)


def _alt(of: MappedSolution) -> str:
    what = OBJECTIVES[of.parameters.objective]
    if of.pair is None:
        return f"Every pair of bounds has a larger {what} than publishing 0 in every group."
    return (
        f"The {what} is smallest at {wording.counted(of.pair.max_groups, 'group')} and an amount of "
        f"{wording.number(of.pair.max_amount)} in each: {wording.number(of.pair.error)}. It rises in all directions."
    )


def over_norm(of: PerGroupSolution, kind: Provenance) -> Plot:
    """Return the error against the bound on the norm, for one level and for scaling, with the best pair as a line."""
    curves, scaled = of.norm_curves, of.scaled
    assert scaled is not None
    errors = np.r_[curves.cap, curves.radial, of.pair_error]
    norm = "L1" if of.parameters.delta is None else "L2"
    name = "Best pair of bounds" if of.pair is not None else "Publishing 0"
    items: list[Item] = [
        Curve("Cut at one level", "max_norm", "error_of_cap", Style.SAMPLING, dash="solid", width=2.5),
        Curve(
            "All groups scaled alike", "max_norm", "error_of_scaling", Style.SMOOTH, dash="dash", width=2.5
        ),
        Curve(name, "ends", "error_of_pair", Style.CAP, dash="dot", width=2.0),
    ]
    for choice, label, look, symbol in (
        (of.cap, "Best level", Style.SAMPLING, "circle"),
        (of.radial, "Best scaling", Style.SMOOTH, "diamond"),
    ):
        if choice is not None and choice.max_norm > 0.0:
            items.append(Mark(label, choice.max_norm, choice.error, look, symbol))
    low, high = float(errors.min()), float(errors.max())
    return Plot(
        "per-group-norm",
        "Error over the norm",
        f"Bounding whole vectors has an error of {wording.number(scaled.error)} at its best, against "
        f"{wording.number(of.pair_error)} of the best pair of bounds.",
        _across(f"bound on the {norm} norm of a user's vector", "", curves.norms),
        _across("error", unit_of(of.parameters), np.array([low * 0.9, min(high, 8.0 * low)])),
        {"max_norm": curves.norms, "error_of_cap": curves.cap, "error_of_scaling": curves.radial},
        tuple(items),
        kind,
        guides={"ends": curves.norms[[0, -1]], "error_of_pair": np.full(2, of.pair_error)},
        height=420,
    )


def _drawn(sizes: FloatArray | IntArray) -> IntArray:
    """Which groups are drawn: those with rows, ascending by size, at most so many."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if order.size > MOST_POINTS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_POINTS)).astype(int))]
    return order


def of_groups(of: PerGroupSolution, kind: Provenance) -> Plot:
    """Return every group's error against its size; below the line of 100 % a number says more than 0 does."""
    shown = _drawn(np.abs(of.sizes))
    size = np.abs(of.sizes)[shown]
    by = np.ones(size.size) if of.is_mean else size
    name = "Best pair" if of.pair is not None else f"Publishing {'the middle' if of.is_mean else '0'}"
    ways = [
        (name, "error_of_pair", of.errors, Style.CAP, "circle"),
        ("Every row kept, users scaled", "error_scaled", of.errors_scaled, Style.SMOOTH, "diamond"),
        ("One mean for all groups", "error_of_one_mean", of.one_mean, Style.SAMPLING, "diamond"),
    ]
    columns, items = {"size": size}, list[Item]()
    for name, column, errors, look, symbol in ways:
        if errors is not None:
            columns[column] = errors[shown] / by
            items.append(Points(name, "size", column, look, symbol=symbol, size=6, opacity=0.75))
    every = np.concatenate([values for column, values in columns.items() if column != "size"])
    every = every[every > 0.0]
    useful = [USEFUL_ERROR / 2.0, 1.5]
    if of.is_mean:
        alt = "The error of a group's own mean falls with its rows; that of one mean for all groups does not."
        useful = []
    else:
        alt = (
            "The error of a group, divided by its size, falls as groups grow: "
            f"{wording.number(of.count_useless(of.errors))} of {wording.counted(of.num_groups, 'group')} are not "
            "better than publishing 0."
        )
        items += [Level("As large as the group", 1.0)]
        items += [
            Level(f"{wording.percent(USEFUL_ERROR)} of the group's size", USEFUL_ERROR, dash="longdash")
        ]
    unit = "unit of the values" if of.is_mean else "1 = the group's size"
    some = bool(size.size and every.size)
    return Plot(
        "per-group-sizes",
        "Error of each group",
        alt,
        _across(
            "rows of the group" if of.is_mean else "size of the group, t",
            "",
            size if some else np.array([1.0, 10.0]),
        ),
        _across("error of a group", unit, every if some else np.array([0.1, 1.0]), *useful),
        columns,
        tuple(items),
        kind,
        height=420,
    )


def survival(of: PerGroupSolution, kind: Provenance) -> Plot:
    """Return the probability that a group is released, against its users."""
    selected = of.selected
    assert selected is not None
    order = _drawn(selected.users)
    columns = {"users": selected.users[order].astype(np.float64)}
    for points, groups in zip(
        SURVIVAL, (selected.pair, selected.vector_groups, selected.tuner_groups), strict=True
    ):
        if groups is not None:
            columns[points.y] = groups.keep_probability[order]
    alt = "With the best pair no group is released."
    if selected.pair is not None:
        alt = (
            "The more users a group has, the likelier it is released: "
            f"{wording.number(selected.pair.expected_groups)} of {wording.counted(of.num_groups, 'group')} on "
            "average with the best pair."
        )
    return Plot(
        "per-group-survival",
        "Which groups survive",
        alt,
        _across(USERS, "", columns["users"]),
        Axis("probability that it is released", "", (-0.03, 1.03), Scale.LINEAR),
        columns,
        tuple(points for points in SURVIVAL if points.y in columns),
        kind,
    )


def over_epsilon(of: PerGroupSolution, kind: Provenance) -> tuple[Plot, Plot]:
    """Return the groups released and the parts of the error, against epsilon."""
    curves, columns = _budgets(of), dict[str, FloatArray]()
    released, parts = list[Item](), list[Item]()
    for name, short, curve, look, dash in curves:
        columns |= {
            "epsilon": curve.epsilons,
            f"groups_{short}": curve.groups,
            f"error_of_released_{short}": curve.error_kept,
            f"error_of_lost_{short}": curve.error_lost,
        }
        released.append(Curve(name, "epsilon", f"groups_{short}", look, dash=dash))
        for what, how in (("lost", "solid"), ("released", "dot")):
            column = f"error_of_{what}_{short}"
            parts.append(Curve(f"{name}: {what} groups", "epsilon", column, look, dash=how))
    _, _, first, _, _ = curves[0]
    alt = (
        f"From ε = {wording.number(first.epsilons[0])} to {wording.number(first.epsilons[-1])} the groups released on "
        f"average go from {wording.number(first.groups[0])} to {wording.number(first.groups[-1])}, and what lost "
        f"groups add to the error from {wording.number(first.error_lost[0])} to {wording.number(first.error_lost[-1])}."
    )
    most = max(float((curve.error_kept + curve.error_lost).max()) for _, _, curve, _, _ in curves)
    x = _across("privacy budget ε in all, bounds as they are", "", columns["epsilon"])
    groups = Axis(
        "groups released on average", "", (0.0, float(of.num_groups)), Scale.LINEAR, number_format=",.3~g"
    )
    error = Axis(
        "part of the error", unit_of(of.parameters), (0.0, most), Scale.LINEAR, number_format=",.3~g"
    )
    kept, lost = "per-group-kept-over-epsilon", "per-group-error-over-epsilon"
    return (
        Plot(kept, "Groups released over ε", alt, x, groups, columns, tuple(released), kind, height=340),
        Plot(lost, "Parts of the error over ε", alt, x, error, columns, tuple(parts), kind, height=340),
    )


def _budgets(of: PerGroupSolution) -> list[tuple[str, str, OverEpsilon, Style, str]]:
    assert of.selected is not None
    both = (
        ("Best pair", "pair", of.selected.over_epsilon, Style.CAP, "dot"),
        ("Users scaled", "scaled", of.selected.vector_over_epsilon, Style.SMOOTH, "dash"),
    )
    return [(name, short, curve, look, dash) for name, short, curve, look, dash in both if curve is not None]
