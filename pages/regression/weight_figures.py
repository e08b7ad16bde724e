"""Figures of who weighs how much under each method, and of the paper's examples. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, log_spaced
from dpcore.regression.estimate import UserWeights
from dpcore.regression.study import ExampleSweep
from dpcore.report import charts
from pages.regression.answer import RegressionView
from pages.regression.figures import NO_CAP, rounded_limits
from pages.shared.figures.figures import Picture

MAX_POINTS = 400
WEIGHTS_ALT = "With no cap the weight of a user grows with their rows; the best weights hold it at one level."
# From next to nothing, so that it lies well on a light and on a dark page.
SHADES = [[0.0, "rgba(44, 127, 184, 0.06)"], [1.0, "rgba(44, 127, 184, 1)"]]


def weights_columns(found: dict[str, UserWeights]) -> dict[str, FloatArray]:
    """Mean weight of a user of each size under each method, as columns; sizes thinned to `MAX_POINTS` classes."""
    first = next(iter(found.values()))
    edges = size_edges(first.sizes, MAX_POINTS)
    group = np.searchsorted(edges, first.sizes, side="right") - 1
    users = np.bincount(group, minlength=edges.size)
    some = users > 0
    columns = {
        "rows_of_user": (np.bincount(group, weights=first.sizes, minlength=edges.size)[some] / users[some]),
        "users": users[some].astype(np.float64),
    }
    for name, weights in found.items():
        total = np.bincount(group, weights=weights.total, minlength=edges.size)
        columns[name.replace(" ", "_") + "_user_weight"] = total[some] / users[some]
    return columns


def size_edges(sizes: FloatArray | Any, most: int) -> FloatArray:
    """Lower ends of classes of sizes: every size where they are few, else log-spaced."""
    distinct = np.unique(sizes).astype(np.float64)
    return distinct if distinct.size <= most else log_spaced(float(distinct[0]), float(distinct[-1]), most)


WEIGHT_STYLES = {
    "no cap": ("No cap", NO_CAP["color"], "square-open"),
    "best cap": ("Best cap (one draw)", charts.CAP["color"], "diamond-open"),
    "ours": ("Best weights C", charts.SMOOTH["color"], "circle"),
}


def weights_figure(columns: dict[str, FloatArray]) -> go.Figure:
    """How much a user's labels weigh, against the user's rows; the heaviest user sets the noise."""
    sizes = columns["rows_of_user"]
    weights = np.concatenate([values for name, values in columns.items() if name.endswith("_user_weight")])
    limits = rounded_limits(weights)
    fig = charts.figure(
        charts.log_axis("Rows of the user (rows per user)", (1.0, max(float(sizes.max()), 2.0))),
        charts.log_axis("Weight of a user, Σ |c| (1 / unit of feature)", (max(limits[0], limits[1] / 1e6), limits[1])),
        height=420,
    )  # fmt: skip
    for method, (name, color, symbol) in WEIGHT_STYLES.items():
        values = columns.get(method.replace(" ", "_") + "_user_weight")
        if values is None:
            continue
        look = {"color": color, "symbol": symbol, "size": 8}
        charts.add_points(
            fig, name, sizes, values, look, name + "<br>rows of the user: %{x:,.3~g}<br>mean weight %{y:.3g}"
        )
    return fig


def weights_of(view: RegressionView) -> dict[str, UserWeights]:
    """What users weigh, by method; without the best cap where there is none."""
    return {name: found for name in WEIGHT_STYLES if (found := view.weights(name)) is not None}


def weights_picture(view: RegressionView) -> Picture:
    """Weight of a user against their rows."""
    columns = weights_columns(weights_of(view))
    return Picture(
        "regression-weights",
        "Weight of a user, by their rows",
        lambda: weights_figure(columns),
        WEIGHTS_ALT,
        columns,
        view.loaded.dataset.provenance,
    )


def direction_columns(weights: UserWeights, names: Sequence[str]) -> dict[str, Any]:
    """Share of each direction's weight that users of each size class hold; one line per class."""
    lows = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000]
    lows = [low for low in lows if low <= int(weights.sizes.max())]
    group = np.searchsorted(lows, weights.sizes, side="right") - 1
    total = np.zeros((len(lows), weights.weights.shape[1]))
    np.add.at(total, group, weights.weights)
    users = np.bincount(group, minlength=len(lows))
    some = users > 0
    shares = total / np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    ends = [f"{high - 1:,}" if high - 1 > low else "" for low, high in itertools.pairwise(lows)]
    classes = [f"{low:,}–{end}" if end else f"{low:,}" for low, end in zip(lows, [*ends, ""], strict=True)]
    classes[-1] = f"{lows[-1]:,} or more" if int(weights.sizes.max()) > lows[-1] else classes[-1]
    rows = [label for label, kept in zip(classes, some, strict=True) if kept]
    columns: dict[str, Any] = {"rows_of_user": rows, "users": users[some]}
    columns.update({name: shares[some, j] for j, name in enumerate(names)})
    return columns


def direction_figure(columns: dict[str, Any], names: Sequence[str]) -> go.Figure:
    """A heat map: features by size classes of users."""
    shares = np.array([columns[name] for name in names])
    short = [name if len(name) <= 28 else name[:27] + "…" for name in names]
    fig = charts.figure(
        {"title": {"text": "Rows of the user (rows per user)"}, "type": "category"},
        {
            "title": {"text": "Feature"},
            "type": "category",
            "autorange": "reversed",
            "tickvals": list(range(len(short))),
            "ticktext": short,
        },
        height=max(240, 110 + 24 * len(names)),
    )
    fig.add_trace(
        go.Heatmap(
            x=columns["rows_of_user"],
            y=list(range(len(short))),
            z=shares,
            zmin=0.0,
            zmax=1.0,
            colorscale=SHADES,
            colorbar={"tickformat": ".0%", "title": {"text": "Share"}, "thickness": 14},
            hovertemplate="rows of the user: %{x}<br>%{z:.1%} of this coefficient's weight<extra></extra>",
        )
    )
    return fig


def direction_picture(view: RegressionView, method: str) -> Picture:
    """Whose labels each coefficient rests on, under a method that there is."""
    names, weights = view.problem.feature_names, view.weights(method)
    assert weights is not None
    columns = direction_columns(weights, names)
    return Picture(
        "regression-directions",
        "Whose labels each coefficient rests on",
        lambda: direction_figure(columns, names),
        "Which users' rows each coefficient rests on, by how many rows they have.",
        columns,
        view.loaded.dataset.provenance,
    )


# --- examples 1 and 3 ---------------------------------------------------------------------------------------

EXAMPLES = {
    1: ("Optimum 1/(g² + 1)², in closed form", "Paper: every cap ≥ 1/(4g³)"),
    3: ("Paper: optimum ≤ 6/g", "Paper: g/9, exceeded in half of the draws"),
}


def example_figure(sweep: ExampleSweep, example: int) -> go.Figure:
    """Total variance of ours and of the best cap against g, beside what is known of both."""
    limits = rounded_limits(np.concatenate((sweep.ours, sweep.cap, sweep.known, sweep.claimed)))
    g = sweep.g.astype(np.float64)
    fig = charts.figure(
        charts.log_axis("Size g of the example", (float(g.min()), max(float(g.max()), float(g.min()) + 1.0))),
        charts.log_axis("Total variance", limits),
        height=420,
    )
    hover = "%{fullData.name}<br>g = %{x}: %{y:.4g}"
    known, claimed = EXAMPLES[example]
    lines: tuple[tuple[str, FloatArray, dict[str, Any]], ...] = (
        ("Best cap", sweep.cap, charts.CAP),
        (claimed, sweep.claimed, {**charts.CAP, "dash": "dot", "width": 1.5}),
        ("Best weights, proved", sweep.ours, charts.SMOOTH),
        (known, sweep.known, {**charts.SMOOTH, "dash": "dot", "width": 1.5}),
    )
    for name, values, line in lines:
        trace = charts.curve(name, g, values, line, hover)
        if line["dash"] == "solid":
            trace.mode, trace.marker = "lines+markers", {"size": 7, "color": line["color"]}
        fig.add_trace(trace)
    return fig


def example_picture(sweep: ExampleSweep, example: int) -> Picture:
    """An example of the paper at several sizes."""
    columns = {
        "g": sweep.g.astype(np.float64),
        "ours_variance": sweep.ours,
        "ours_lower_bound": sweep.lower_bound,
        "known": sweep.known,
        "best_cap_variance": sweep.cap,
        "best_cap": sweep.max_contributions.astype(np.float64),
        "claimed_of_caps": sweep.claimed,
    }
    ratio = sweep.cap / sweep.ours
    alt = (
        f"The best cap's variance is {wording.number(float(ratio[0]))} times the optimum at g = {sweep.g[0]} and "
        f"{wording.number(float(ratio[-1]))} times at g = {sweep.g[-1]}: the gap grows without bound."
    )
    return Picture(
        f"regression-example-{example}",
        f"Example {example}",
        lambda: example_figure(sweep, example),
        alt,
        columns,
        Disclosure.PUBLIC,
    )
