"""The figures of Per group. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

import functools
import math
from typing import Any, Protocol

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group import PerGroupParameters, Statistic
from dpcore.report import charts
from pages.per_group.answer import GOOD, OBJECTIVES, USEFUL, ErrorMap, NormCurves, Pair, PerGroupView, unit_of
from pages.per_group.selected import OverEpsilon
from pages.shared.figures import Picture

CAP: dict[str, Any] = {"color": "#009E73", "dash": "solid", "width": 2.5}
RADIAL: dict[str, Any] = {"color": "#D55E00", "dash": "dash", "width": 2.5}
PAIR: dict[str, Any] = {"color": "#2C7FB8", "dash": "dot", "width": 2}
BEST_PAIR = "Best pair"
SCALE = "Cividis_r"
"""Readable without colours: it goes from light to dark."""
MOST_POINTS = 1500
"""Groups that a figure draws; of more, as many evenly spread over their sizes."""
SHOWN_RATIO = 4.0
"""Errors above this many times the best have the darkest colour."""


class MapView(Protocol):
    """What the figure of the error over both bounds reads."""

    @property
    def parameters(self) -> PerGroupParameters:
        """What was asked."""

    @property
    def map(self) -> ErrorMap:
        """The error over both bounds."""

    @property
    def pair(self) -> Pair | None:
        """The best pair."""

    @property
    def tuner(self) -> Pair | None:
        """The pair of PipelineDP's rule."""

    @property
    def own(self) -> Pair | None:
        """The person's own pair."""

    @property
    def pair_error(self) -> float:
        """Error of the best pair, or of releasing nothing."""


def amount_axis(view: MapView) -> str:
    """Title of the axis of L-infinity."""
    unit = {Statistic.ROWS: "rows", Statistic.USERS: "1 each", Statistic.MEAN: "rows"}.get(
        view.parameters.statistic, "unit of the column"
    )
    return f"L∞, amount per user and group ({unit})"


def _limits(values: FloatArray, *more: float) -> tuple[float, float]:
    low = min(float(values.min()), *more) if more else float(values.min())
    high = max(float(values.max()), *more) if more else float(values.max())
    return low, max(high, low * 1.5)


def map_figure(view: MapView) -> go.Figure:
    """The error over both bounds: a heat map, the contour of 5 %, and the marked pairs."""
    found = view.map
    marked = [pair for pair in (view.pair, view.tuner, view.own) if pair is not None]
    x = _limits(found.groups, *(float(p.max_groups) for p in marked))
    y = _limits(found.amounts, *(p.max_amount for p in marked))
    fig = charts.log_log("L0, groups per user", x, amount_axis(view), y, 430)
    best = view.pair_error if view.pair is not None else float(found.errors.min())
    best = min(best, float(found.errors.min()))
    # Ratios to the best on a log scale: the colour of 1 is the lightest.
    ratio = np.log10(np.clip(found.errors / max(best, 1e-300), 1.0, SHOWN_RATIO))
    ticks = [1.0, 1.5, 2.0, 3.0, SHOWN_RATIO]
    hover = "L0 %{x:,}, L∞ %{y:,.3~g}<br>error %{customdata:,.3~g}<extra></extra>"
    if found.amounts.size > 1 and found.groups.size > 1:
        fig.add_trace(
            go.Heatmap(
                x=found.groups,
                y=found.amounts,
                z=ratio,
                customdata=found.errors,
                colorscale=SCALE,
                zmin=0.0,
                zmax=math.log10(SHOWN_RATIO),
                colorbar={
                    "title": {"text": "times the best", "side": "right"},
                    "tickvals": [math.log10(t) for t in ticks],
                    "ticktext": ["1", "1.5", "2", "3", f"≥ {SHOWN_RATIO:g}"],
                    "thickness": 12,
                    "len": 0.9,
                },
                hovertemplate=hover,
                name="Error",
            )
        )
        fig.add_trace(
            go.Contour(
                x=found.groups,
                y=found.amounts,
                z=found.errors / max(best, 1e-300),
                contours={"type": "constraint", "operation": "=", "value": GOOD},
                line={"color": "#D55E00", "width": 2, "dash": "dash"},
                name=f"5{wording.PERCENT} more than the best",
                showlegend=True,
                hoverinfo="skip",
            )
        )
    else:  # Distinct users, or one group for everybody: a single line of values.
        line = found.errors[0] if found.amounts.size == 1 else found.errors[:, 0]
        return _line_figure(view, line)
    for name, pair, color, symbol in _marks(view):
        text = f"{name}: L0 %{{x:,}}, L∞ %{{y:,.3~g}}<br>error {wording.number(pair.error)}"
        charts.add_marker(fig, name, pair.max_groups, pair.max_amount, color, symbol, text)
    return fig


def _marks(view: MapView) -> list[tuple[str, Pair, str, str]]:
    found = [
        ("Best pair", view.pair, "#D55E00", "diamond"),
        ("PipelineDP's rule", view.tuner, "#009E73", "circle"),
        ("Your own pair", view.own, "#7F7F7F", "square"),
    ]
    return [(name, pair, color, symbol) for name, pair, color, symbol in found if pair is not None]


def _line_figure(view: MapView, errors: FloatArray) -> go.Figure:
    """The error against the one bound that there is to choose."""
    by_groups = view.map.amounts.size == 1
    x = view.map.groups if by_groups else view.map.amounts
    title = "L0, groups per user" if by_groups else amount_axis(view)
    marks = _marks(view)
    shown = [*errors.tolist(), *(pair.error for _, pair, _, _ in marks)]
    fig = charts.figure(
        charts.log_axis(
            title,
            _limits(
                x, *(float(pair.max_groups if by_groups else pair.max_amount) for _, pair, _, _ in marks)
            ),
        ),
        charts.log_axis(f"Error ({unit_of(view.parameters)})", _limits(np.array(shown))),
        height=430,
    )
    charts.add_curve(fig, "Error of the pair", x, errors, charts.TOTAL, "%{x:,.3~g}: error %{y:,.3~g}")
    for name, pair, color, symbol in marks:
        at = pair.max_groups if by_groups else pair.max_amount
        charts.add_marker(fig, name, at, pair.error, color, symbol, f"{name}: %{{x:,}}<br>error %{{y:,.3~g}}")
    return fig


def map_picture(view: PerGroupView, kind: Provenance, demonstration: str = "") -> Picture:
    """The error over both bounds; ``demonstration`` says of invented data that they are."""

    def draw() -> go.Figure:
        figure = map_figure(view)
        return charts.labelled(figure, demonstration) if demonstration else figure

    alt = f"{demonstration}. {map_alt(view)}" if demonstration else map_alt(view)
    return Picture("per-group-error", "Error over both bounds", draw, alt, map_columns(view), kind)


def map_columns(view: MapView) -> dict[str, FloatArray]:
    """What `map_figure` draws, a line per pair of bounds."""
    groups, amounts = np.meshgrid(view.map.groups, view.map.amounts)
    return {"max_groups": groups.ravel(), "max_amount": amounts.ravel(), "error": view.map.errors.ravel()}


def map_alt(view: MapView) -> str:
    """The takeaway of `map_figure`."""
    what = OBJECTIVES[view.parameters.objective]
    if view.pair is None:
        return f"Every pair of bounds has a larger {what} than publishing 0 in every group."
    return (
        f"The {what} is smallest at L0 = {wording.number(view.pair.max_groups)} and L∞ = "
        f"{wording.number(view.pair.max_amount)}: {wording.number(view.pair.error)}. It rises in all directions."
    )


def norm_figure(view: PerGroupView, curves: NormCurves) -> go.Figure:
    """The error against T for cap and radial clip, with the best pair as a line."""
    errors = np.r_[curves.cap, curves.radial, view.pair_error]
    norm = "L1" if view.parameters.delta is None else "L2"
    fig = charts.figure(
        charts.log_axis(f"T, bound on the {norm} norm of a user's vector", _limits(curves.norms)),
        charts.log_axis(
            f"Error ({unit_of(view.parameters)})",
            _limits(np.array([errors.min() * 0.9, min(errors.max(), 8.0 * errors.min())])),
        ),
        height=420,
    )
    hover = "%{fullData.name}<br>T = %{x:,.3~g}: error %{y:,.3~g}"
    charts.add_curve(fig, "Cap", curves.norms, curves.cap, CAP, hover)
    charts.add_curve(fig, "All groups scaled alike", curves.norms, curves.radial, RADIAL, hover)
    flat = np.full(2, view.pair_error)
    name = "Best pair of bounds" if view.pair is not None else "Publishing 0"
    charts.add_curve(fig, name, curves.norms[[0, -1]], flat, PAIR, f"{name}: error %{{y:,.3~g}}")
    for choice, label, line, symbol in (
        (view.cap, "Best cap", CAP, "circle"),
        (view.radial, "Best scaling", RADIAL, "diamond"),
    ):
        if choice is not None and choice.max_norm > 0.0:
            hover = f"{label}: T = %{{x:,.4~g}}<br>error %{{y:,.3~g}}"
            charts.add_marker(fig, label, choice.max_norm, choice.error, line, symbol, hover)
    return fig


def norm_picture(view: PerGroupView, curves: NormCurves, kind: Provenance) -> Picture:
    """The error against the bound on a user's vector."""
    assert view.scaled is not None
    alt = (
        f"Bounding whole vectors has an error of {wording.number(view.scaled.error)} at its best, against "
        f"{wording.number(view.pair_error)} of the best pair of bounds."
    )
    columns = {"max_norm": curves.norms, "error_of_cap": curves.cap, "error_of_scaling": curves.radial}
    return Picture(
        "per-group-norm", "Error over the norm", lambda: norm_figure(view, curves), alt, columns, kind
    )


def _drawn(view: PerGroupView) -> IntArray:
    """Which groups are drawn: those with rows, ascending by size, at most so many."""
    size = np.abs(view.sizes)
    order = np.argsort(size, kind="stable")
    order = order[size[order] > 0.0]
    if order.size > MOST_POINTS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_POINTS)).astype(int))]
    return order


def group_figure(view: PerGroupView) -> go.Figure:
    """Every group's error against its size; below the line of 100 % a number says more than 0 does."""
    shown = _drawn(view)
    size = np.abs(view.sizes)[shown]
    columns = group_columns(view)
    series = [("Best pair", columns["error_of_pair"], PAIR["color"], "circle")]
    if view.pair is None:
        series = [("Publishing the middle" if view.is_mean else "Publishing 0", *series[0][1:])]
    if "error_scaled" in columns:
        series.append(("Every row kept, users scaled", columns["error_scaled"], RADIAL["color"], "diamond"))
    if "error_of_one_mean" in columns:
        series.append(("One mean for all groups", columns["error_of_one_mean"], CAP["color"], "diamond"))
    every = np.concatenate([values for _, values, _, _ in series])
    every = every[every > 0.0]
    unit = "unit of the values" if view.is_mean else "1 = the group's size"
    what = "Rows of the group" if view.is_mean else "Size of the group, t"
    if not size.size or not every.size:
        return charts.log_log(what, (1.0, 10.0), f"Error ({unit})", (0.1, 1.0))
    limits = _limits(every, *(() if view.is_mean else (USEFUL / 2.0, 1.5)))
    fig = charts.log_log(what, _limits(size), f"Error of a group ({unit})", limits, 420)
    for name, values, color, symbol in series:
        above = values > 0.0
        look = {"color": color, "size": 6, "symbol": symbol, "opacity": 0.75}
        hover = f"{name}<br>group of %{{x:,.4~g}}: error %{{y:,.3~g}}"
        charts.add_points(fig, name, size[above], values[above], look, hover)
    if not view.is_mean:
        for at, words in ((1.0, "as large as the group"), (USEFUL, f"10{wording.PERCENT}")):
            charts.line_with_words(fig, at, words)
    return fig


def group_columns(view: PerGroupView) -> dict[str, FloatArray]:
    """What `group_figure` draws."""
    shown = _drawn(view)
    size = np.abs(view.sizes)[shown]
    by = np.ones(size.size) if view.is_mean else size
    found = {"size": size, "error_of_pair": view.errors[shown] / by}
    if view.errors_scaled is not None:
        found["error_scaled"] = view.errors_scaled[shown] / by
    if view.one_mean is not None:
        found["error_of_one_mean"] = view.one_mean[shown]
    return found


def group_picture(view: PerGroupView, kind: Provenance) -> Picture:
    """Every group's error against its size."""
    if view.is_mean:
        alt = "The error of a group's own mean falls with its rows; that of one mean for all groups does not."
    else:
        alt = (
            "The error of a group, divided by its size, falls as groups grow: "
            f"{wording.number(view.useless(view.errors))} of {wording.counted(view.num_groups, 'group')} are not "
            "better than publishing 0."
        )
    columns = group_columns(view)
    return Picture("per-group-sizes", "Error of each group", lambda: group_figure(view), alt, columns, kind)


def survival_figure(view: PerGroupView) -> go.Figure:
    """The probability that a group is released, against its users."""
    columns = survival_columns(view)
    users = columns["users"]
    fig = charts.log_linear(
        "Users in the group", _limits(users), "Probability that it is released", (-0.03, 1.03), 380
    )
    for name, column, color, symbol, size in SURVIVAL:
        if column in columns:
            look = {"color": color, "size": size, "symbol": symbol}
            hover = f"{name}<br>group of %{{x:,}} users: %{{y:.3~g}}"
            charts.add_points(fig, name, users, columns[column], look, hover)
    return fig


SURVIVAL = (
    (BEST_PAIR, "kept_at_pair", PAIR["color"], "circle", 6),
    ("Users scaled, L0 for the selection alone", "kept_where_scaled", RADIAL["color"], "diamond-open", 9),
    ("PipelineDP's rule", "kept_at_tuner", CAP["color"], "square-open", 12),
)


def survival_columns(view: PerGroupView) -> dict[str, FloatArray]:
    """What `survival_figure` draws."""
    assert view.selected is not None
    found = view.selected
    order = np.argsort(found.users, kind="stable")
    order = order[found.users[order] > 0]
    if order.size > MOST_POINTS:
        order = order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_POINTS)).astype(int))]
    columns = {"users": found.users[order].astype(np.float64)}
    for (_, name, *_), groups in zip(SURVIVAL, (found.pair, found.of_vector, found.of_tuner), strict=True):
        if groups is not None:
            columns[name] = groups.kept[order]
    return columns


def survival_picture(view: PerGroupView, kind: Provenance) -> Picture:
    """The probability that a group is released, against its users."""
    assert view.selected is not None
    alt = "With the best pair no group is released."
    if view.selected.pair is not None:
        alt = (
            "The more users a group has, the likelier it is released: "
            f"{wording.number(view.selected.pair.expected_groups)} of {wording.counted(view.num_groups, 'group')} on "
            "average with the best pair."
        )
    columns = survival_columns(view)
    draw = functools.partial(survival_figure, view)
    return Picture("per-group-survival", "Which groups survive", draw, alt, columns, kind)


def _budgets(view: PerGroupView) -> list[tuple[str, OverEpsilon, dict[str, Any]]]:
    assert view.selected is not None
    found = view.selected
    both = ((BEST_PAIR, found.over_epsilon, PAIR), ("Users scaled", found.vector_over_epsilon, RADIAL))
    return [(name, curve, line) for name, curve, line in both if curve is not None]


def kept_over_epsilon(view: PerGroupView) -> go.Figure:
    """How many groups are released on average, against epsilon."""
    curves = _budgets(view)
    every = np.concatenate([curve.epsilons for _, curve, _ in curves])
    across = charts.log_axis("Privacy budget ε in all, bounds as they are", _limits(every))
    upwards = charts.linear_axis("Groups released on average", (0.0, float(view.num_groups)))
    fig = charts.figure(across, upwards, 340)
    hover = "%{fullData.name}<br>ε = %{x:.3~g}: %{y:,.3~g} groups"
    for name, curve, line in curves:
        charts.add_curve(fig, name, curve.epsilons, curve.groups, line, hover)
    return fig


def error_over_epsilon(view: PerGroupView) -> go.Figure:
    """What released and lost groups add to the error, against epsilon."""
    curves = _budgets(view)
    every = np.concatenate([curve.epsilons for _, curve, _ in curves])
    most = max(float((curve.error_kept + curve.error_lost).max()) for _, curve, _ in curves)
    across = charts.log_axis("Privacy budget ε in all, bounds as they are", _limits(every))
    upwards = charts.linear_axis(f"Part of the error ({unit_of(view.parameters)})", (0.0, most))
    fig = charts.figure(across, upwards, 340)
    hover = "%{fullData.name}<br>ε = %{x:.3~g}: %{y:,.3~g}"
    for name, curve, line in curves:
        lost = {**line, "dash": "solid"}
        charts.add_curve(fig, f"{name}: lost groups", curve.epsilons, curve.error_lost, lost, hover)
        released = {**line, "dash": "dot"}
        charts.add_curve(fig, f"{name}: released groups", curve.epsilons, curve.error_kept, released, hover)
    return fig


def epsilon_columns(view: PerGroupView) -> dict[str, FloatArray]:
    """What `kept_over_epsilon` and `error_over_epsilon` draw."""
    columns: dict[str, FloatArray] = {}
    for called, curve, _ in _budgets(view):
        name = "pair" if called == BEST_PAIR else "scaled"
        columns["epsilon"] = curve.epsilons
        columns[f"groups_{name}"] = curve.groups
        columns[f"error_of_released_{name}"] = curve.error_kept
        columns[f"error_of_lost_{name}"] = curve.error_lost
    return columns


def epsilon_pictures(view: PerGroupView, kind: Provenance) -> list[Picture]:
    """Groups released and the parts of the error, against epsilon."""
    _, curve, _ = _budgets(view)[0]
    alt = (
        f"From ε = {wording.number(curve.epsilons[0])} to {wording.number(curve.epsilons[-1])} the groups released on "
        f"average go from {wording.number(curve.groups[0])} to {wording.number(curve.groups[-1])}, and what lost "
        f"groups add to the error from {wording.number(curve.error_lost[0])} to {wording.number(curve.error_lost[-1])}."
    )
    columns = epsilon_columns(view)
    return [
        Picture(f"per-group-{name}-over-epsilon", title, functools.partial(draw, view), alt, columns, kind)
        for name, title, draw in (
            ("kept", "Groups released over ε", kept_over_epsilon),
            ("error", "Parts of the error over ε", error_over_epsilon),
        )
    ]
