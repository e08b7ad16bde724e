"""The figures of Data owners. Pure: an answer in, pictures and Plotly figures out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.data_owners.regimes import RANGES, Axis, Regime, RegimeMap
from dpcore.dataset import Dataset
from dpcore.report import charts
from pages.data_owners import answer
from pages.data_owners.answer import CapCurve, OwnersView
from pages.data_owners.question import AXES
from pages.shared.figures import Picture

COLORS = {Regime.ALONE: "#B57A00", Regime.JOINT_ONLY: "#2C7FB8", Regime.FULL_TOO: "#009E73"}
NAMES = {
    Regime.ALONE: "Work alone",
    Regime.JOINT_ONLY: "Join: joint privacy only",
    Regime.FULL_TOO: "Join: full privacy pays, too",
}
PALE = 0.45
"""Opacity of the regimes, on which lines and words are seen on a light and on a dark page."""
JOINT_LINE: dict[str, Any] = {"color": "#2C7FB8", "dash": "solid", "width": 2.5}
FULL_LINE: dict[str, Any] = {"color": "#009E73", "dash": "dash", "width": 2.5}
LEAST_SHARE = 0.16
"""Of the map's width, which a regime has at least that is named inside the map."""


def map_picture(view: OwnersView) -> Picture:
    """The map of regimes with the person's point."""
    return Picture(
        "owners-map",
        "Who should join",
        lambda: map_figure(view),
        map_alt(view),
        map_columns(view),
        view.disclosure,
    )


def map_figure(view: OwnersView) -> go.Figure:
    """Regimes as areas, the crossings as lines, what the bounds do not cover as hatched areas."""
    found = view.map
    fig = charts.log_log(
        AXES[found.x_axis], RANGES[found.x_axis], AXES[found.y_axis], RANGES[found.y_axis], charts.MAIN_HEIGHT
    )
    regimes = found.regimes
    fig.add_trace(
        go.Heatmap(
            x=found.x,
            y=found.y,
            z=regimes.astype(np.int8),
            customdata=np.exp(found.joint_gain).astype(np.float32),
            colorscale=[
                [low, COLORS[regime]]
                for regime in Regime
                for low in (regime / len(Regime), (regime + 1) / len(Regime))
            ],
            zmin=-0.5,
            zmax=len(Regime) - 0.5,
            opacity=PALE,
            showscale=False,
            name="Regime",
            hovertemplate=f"{AXES[found.x_axis]}: %{{x:,.3~g}}<br>{AXES[found.y_axis]}: %{{y:,.3~g}}<br>"
            "bound alone : joint = %{customdata:.3~g}<extra></extra>",
        )
    )
    _areas(fig, found)
    _lines(fig, found)
    _words(fig, found)
    _own_point(fig, view)
    return fig


def _areas(fig: go.Figure, found: RegimeMap) -> None:
    for mask, name, shape in (
        (found.vacuous, "The bound says nothing", "/"),
        (found.outside, "Not covered: ε > 10 or δ ≥ 1/n", "."),
    ):
        xs: list[float] = []
        ys: list[float] = []
        for x, y in _rectangles(mask, found.x, found.y):
            xs += [x[0], x[1], x[1], x[0], x[0], math.nan]
            ys += [y[0], y[0], y[1], y[1], y[0], math.nan]
        if xs:
            fig.add_trace(
                go.Scatter(
                    # Arrays: Plotly checks a list entry by entry, which took 8 ms of the 20 that the figure takes.
                    x=np.array(xs[:-1]),
                    y=np.array(ys[:-1]),
                    mode="lines",
                    line={"width": 0},
                    fill="toself",
                    fillpattern={
                        "shape": shape,
                        "fgcolor": charts.NEUTRAL,
                        "bgcolor": "rgba(0,0,0,0)",
                        "size": 7,
                        "solidity": 0.22,
                        "fillmode": "overlay",
                    },
                    fillcolor="rgba(0,0,0,0)",
                    name=name,
                    hoverinfo="skip",
                )
            )


def _rectangles(
    mask: npt.NDArray[np.bool_], x: FloatArray, y: FloatArray
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Rectangles that cover a mask: stretches of rows that are alike over neighbouring columns."""

    def edges(values: FloatArray) -> FloatArray:
        middle = np.sqrt(values[1:] * values[:-1])
        return np.asarray(np.r_[values[0], middle, values[-1]])

    x_edges, y_edges = edges(x), edges(y)
    found = []
    column = 0
    while column < x.size:
        end = column + 1
        while end < x.size and np.array_equal(mask[:, end], mask[:, column]):
            end += 1
        inside = np.flatnonzero(np.diff(np.r_[0, mask[:, column].astype(int), 0]))
        for low, high in zip(inside[::2], inside[1::2], strict=True):
            found.append(((x_edges[column], x_edges[end]), (y_edges[low], y_edges[high])))
        column = end
    return found


def _lines(fig: go.Figure, found: RegimeMap) -> None:
    same = np.array_equal(found.joint_gain, found.full_gain, equal_nan=True)
    lines = [("Joint privacy begins to pay", found.joint_gain, JOINT_LINE)]
    if same:
        lines = [("Joining begins to pay", found.joint_gain, JOINT_LINE)]
    else:
        lines.append(("Full privacy begins to pay", found.full_gain, FULL_LINE))
    for name, gain, line in lines:
        if np.nanmin(gain) >= 0.0 or np.nanmax(gain) <= 0.0:
            continue
        fig.add_trace(
            go.Contour(
                x=found.x,
                y=found.y,
                z=gain.astype(np.float32),
                contours={"type": "constraint", "operation": "=", "value": 0.0},
                line=line,
                name=name,
                showlegend=True,
                hoverinfo="skip",
            )
        )


def _words(fig: go.Figure, found: RegimeMap) -> None:
    """The name of each regime inside it, where there is room; else in the legend."""
    taken: list[tuple[int, int]] = []
    for regime in Regime:
        inside = found.regimes == regime
        place = _place(inside & ~found.vacuous & ~found.outside, taken) or _place(inside, taken)
        if place is None:
            if np.any(inside):
                swatch = {"color": COLORS[regime], "size": 12, "symbol": "square", "opacity": PALE}
                fig.add_trace(
                    go.Scatter(
                        x=[None],
                        y=[None],
                        name=NAMES[regime],
                        mode="markers",
                        marker=swatch,
                        hoverinfo="skip",
                    )
                )
            continue
        taken.append(place)
        row, column = place
        words = NAMES[regime].replace(": ", ":<br>")
        if regime is Regime.FULL_TOO and np.array_equal(found.joint_gain, found.full_gain, equal_nan=True):
            words = "Join"
        fig.add_annotation(
            x=math.log10(found.x[column]), y=math.log10(found.y[row]), text=f"<b>{words}</b>", showarrow=False
        )


def _place(mask: npt.NDArray[np.bool_], taken: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The cell with the most of its regime around it, away from other words; None where there is too little room."""
    rows, columns = mask.shape
    best, found = 0.0, None
    for row in range(rows // 10, rows - rows // 10, 4):
        inside = np.flatnonzero(np.diff(np.r_[0, mask[row].astype(int), 0]))
        for low, high in zip(inside[::2], inside[1::2], strict=True):
            column = (int(low) + int(high) - 1) // 2
            if any(abs(row - r) < rows / 7 and abs(column - c) < columns / 2.5 for r, c in taken):
                continue
            up = np.argmin(np.r_[mask[row:, column], False])
            down = np.argmin(np.r_[mask[row::-1, column], False])
            room = min((high - low) / columns, 4.0 * min(up, down) / rows)
            if room > best:
                best, found = room, (row, column)
    return found if best >= LEAST_SHARE else None


def _own_point(fig: go.Figure, view: OwnersView) -> None:
    found = view.map
    at = {axis: view.at(axis) for axis in (found.x_axis, found.y_axis)}
    shown = {axis: min(max(value, RANGES[axis][0]), RANGES[axis][1]) for axis, value in at.items()}
    moved = any(shown[axis] != at[axis] for axis in at)
    hover = "<br>".join(f"{AXES[axis]}: {wording.number(value)}" for axis, value in at.items())
    marker = charts.marker(
        "You (outside the map)" if moved else "You",
        shown[found.x_axis],
        shown[found.y_axis],
        charts.SMOOTH,
        "diamond-open" if moved else "diamond",
        f"You<br>{hover}",
    )
    fig.add_trace(marker)


def map_columns(view: OwnersView) -> dict[str, npt.ArrayLike]:
    """What the map draws, a line per point; every fourth in each direction."""
    found = view.map
    x, y = np.meshgrid(found.x[::4], found.y[::4])
    part = (slice(None, None, 4), slice(None, None, 4))
    regimes = found.regimes[part].ravel()
    return {
        found.x_axis.value: x.ravel(),
        found.y_axis.value: y.ravel(),
        "regime": [
            "" if math.isnan(value) else Regime(int(value)).name.lower() for value in regimes.tolist()
        ],
        "alone_over_joint": np.exp(found.joint_gain[part]).ravel(),
        "alone_over_full": np.exp(found.full_gain[part]).ravel(),
        "says_nothing": found.vacuous[part].ravel().astype(int),
        "not_covered": found.outside[part].ravel().astype(int),
    }


def map_alt(view: OwnersView) -> str:
    """The takeaway of the map."""
    where = " and ".join(
        f"{AXES[axis]} = {wording.number(view.at(axis))}" for axis in (view.map.x_axis, view.map.y_axis)
    )
    what = {
        Regime.ALONE: "working alone has the smaller bound",
        Regime.JOINT_ONLY: "joining pays with joint privacy and not with full privacy",
        Regime.FULL_TOO: "joining pays with joint and with full privacy",
    }[view.regime]
    return f"At {where}, your point, {what}. The map shows where each is so."


def bound_picture(view: OwnersView) -> Picture:
    """Every bound against the number of owners."""
    columns = answer.bound_curves(view)
    return Picture(
        "owners-bounds",
        "Bounds against the number of owners",
        lambda: _bound_figure(view, columns),
        "The bound of working alone does not fall with the number of owners; the others do, and cross it.",
        columns,
        view.disclosure,
    )


def _bound_figure(view: OwnersView, columns: dict[str, FloatArray]) -> go.Figure:
    shown = np.r_[columns["alone"], columns["no_privacy"], view.nothing]
    fig = charts.figure(
        charts.log_axis("Owners, n", RANGES[Axis.OWNERS]),
        charts.log_axis("Bound on the excess loss", (float(shown.min()), 4.0 * float(shown.max()))),
    )
    hover = "%{fullData.name}<br>n = %{x:,.3~g}: %{y:,.3~g}"
    for name, column, line in (
        ("Alone", "alone", charts.OWN),
        ("Together, no privacy", "no_privacy", charts.SAMPLING),
        ("Together, joint privacy", "joint_privacy", charts.CAP),
        ("Together, full privacy", "full_privacy", charts.PRIVACY),
    ):
        charts.add_curve(fig, name, columns["owners"], columns[column], line, hover)
    charts.line_with_words(fig, view.nothing, "above: nothing is said")
    at = view.at(Axis.OWNERS)
    charts.add_marker(fig, "You", at, view.joint, charts.SMOOTH, "diamond", "You<br>n = %{x:,}: %{y:,.3~g}")
    return fig


def cap_picture(view: OwnersView, curve: CapCurve, data: Dataset) -> Picture:
    """The bound against the cap per owner."""
    columns = {
        "cap": curve.caps,
        "bound": curve.bound,
        "sampling_part": curve.sampling,
        "kept_records": curve.kept,
    }
    if view.cap is None:
        alt = "The bound against the cap on records per owner."
    else:
        alt = (
            f"The bound is smallest at {wording.counted(view.cap.cap, 'record')} per owner: "
            f"{wording.number(view.cap.bound)}."
        )
    return Picture(
        "owners-cap",
        "Records kept of each owner",
        lambda: _cap_figure(view, curve),
        alt,
        columns,
        data.provenance,
    )


def _cap_figure(view: OwnersView, curve: CapCurve) -> go.Figure:
    noise = curve.bound - curve.sampling
    low = min(float(curve.sampling.min()), max(float(noise.min()), float(curve.bound.min()) / 30.0))
    fig = charts.figure(
        charts.log_axis("Cap τ, records per owner", (1.0, float(curve.caps[-1]))),
        charts.log_axis("Bound on the excess loss", (low, float(curve.bound.max()))),
    )
    hover = "%{fullData.name}<br>τ = %{x:,.3~g}: %{y:,.3~g}"
    charts.add_curve(fig, "Bound, whole owners protected", curve.caps, curve.bound, charts.CAP, hover)
    charts.add_curve(fig, "its sampling part", curve.caps, curve.sampling, charts.SAMPLING, hover)
    charts.add_curve(fig, "its privacy part", curve.caps, noise, charts.PRIVACY, hover)
    if view.cap is not None:
        text = "Best cap: %{x:,} records<br>bound %{y:,.3~g}"
        charts.add_marker(fig, "Best cap", view.cap.cap, view.cap.bound, charts.SMOOTH, "diamond", text)
    return fig
