"""Pinned answers: the curve of a page's main figure, frozen with its label, and its ghost behind later ones.

A pin keeps the label of the data that it was made of, and every figure that shows its ghost carries that label. Pins
are in no link and in no report; a session file holds them. When a private copy takes the place of the data, pins of
private data are set aside with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray
from dpcore.report import charts
from pages.shared.base import keys

MOST = 24
"""Pins that a session holds."""
MOST_GHOSTS = 4
"""Ghosts that a figure shows, the latest ones: more could not be told apart."""
MOST_POINTS = 600
"""Points that a pinned curve may have; the curves of the pages have fewer."""
MAIN_WIDTH = 2.0
"""Width in pixels from which a curve is one of the figure's main ones, in the browser too."""
MAIN_MODES = ("lines", "lines+markers")
DASHES = ("dot", "dash", "longdash", "dashdot")


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve on its axes.

    Attributes:
        x: Along the horizontal axis, finite, shape (points,).
        y: Along the vertical one.
        axes: Title and type of both axes: on others it is not drawn.
        best: (x, y) of the point that the figure marks as best; None where it marks none.
        on: Plotly's names of the two axes, of a figure with several.
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    axes: tuple[str, str, str, str]
    best: tuple[float, float] | None = field(default=None, repr=False)
    on: tuple[str, str] = ("x", "y")


@dataclass(frozen=True, eq=False)
class Pin:
    """One pinned answer.

    Attributes:
        question: Name of the question.
        name: What the person calls it.
        data: Name of the data.
        epsilon: Privacy budget; None where the question has none.
        bound: Label and value of the card's number.
        error: Label and value of its error; empty where there is none.
        rows_lost: Share of all rows that the bound leaves out; None where it is not about rows.
        half_or_double: What half and double of the bound cost, a sentence; empty where the card does not say.
        settings: (what, value) of everything else that was asked and is not as at first.
        disclosure: Of the data.
        curve: Of the main figure; None where it is no curve.
    """

    question: str
    name: str
    data: str
    epsilon: float | None
    bound: tuple[str, str]
    error: tuple[str, str]
    rows_lost: float | None
    half_or_double: str
    settings: tuple[tuple[str, str], ...]
    disclosure: Provenance
    curve: Curve | None = None


def all_pins() -> tuple[Pin, ...]:
    """Every pin of the session, oldest first."""
    pinned: tuple[Pin, ...] = st.session_state.get(keys.PINS, ())
    return pinned


def of(question: str) -> tuple[Pin, ...]:
    """The pins of a question."""
    return tuple(pin for pin in all_pins() if pin.question == question)


def keep(pins: Iterable[Pin]) -> None:
    """Make these the session's pins; beyond `MOST` the oldest go."""
    st.session_state[keys.PINS] = tuple(pins)[-MOST:]


def parted(held: Iterable[object]) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """The pins of private data, and the others."""
    pins = [pin for pin in held if isinstance(pin, Pin)]
    private = tuple(pin for pin in pins if pin.disclosure is Disclosure.PRIVATE)
    return private, tuple(pin for pin in pins if pin not in private)


def joined(first: Iterable[Pin], more: Iterable[Pin]) -> tuple[Pin, ...]:
    """All pins of both; one that both have stands once, under its first name. Names are unique within a question."""
    together = list(first)
    known = {_what(pin) for pin in together}
    for pin in more:
        if _what(pin) not in known:
            taken = {other.name for other in together if other.question == pin.question}
            together.append(replace(pin, name=_free(pin.name, taken)))
            known.add(_what(pin))
    return tuple(together)


def _what(pin: Pin) -> tuple[str, ...]:
    """What a pin says, whatever it is called."""
    return (pin.question, *(text for heading, text in said(pin).items() if heading != "Pin"))


def pin(question: str) -> None:
    """Keep what the page offers. That it was kept is said by the run that follows: a callback draws nothing."""
    offered: Callable[[], Pin | None] | None = st.session_state.get(keys.PIN_OFFERED)
    made = None if offered is None else offered()
    if made is None or made.question != question:
        return
    keep((*all_pins(), replace(made, name=_name(made))))
    st.session_state[f"{question}_pin_new"] = all_pins()[-1].name


def _name(pin: Pin) -> str:
    """Its own name; where another pin has it, with the first setting that differs from that one, or a number."""
    taken = {other.name: other for other in of(pin.question)}
    if pin.name not in taken:
        return pin.name
    before = dict(taken[pin.name].settings)
    differs = next((f", {what} {value}" for what, value in pin.settings if before.get(what) != value), "")
    return free_name(pin.question, pin.name + differs)


def free_name(question: str, wanted: str) -> str:
    """The name; with a number where another pin of the question has it."""
    return _free(wanted, {pin.name for pin in of(question)})


def _free(wanted: str, taken: Collection[str]) -> str:
    count, name = 2, wanted
    while name in taken:
        count, name = count + 1, f"{wanted} ({count})"
    return name


# --- Curves -----------------------------------------------------------------------------------------------------------


def curve_of(fig: go.Figure) -> Curve | None:
    """The first main curve of a figure with its best point; None where it has none, as a heat map, or over names."""
    lines = [t for t in fig.data if t.type == "scatter" and t.x is not None and t.y is not None]
    main = (t for t in lines if t.mode in MAIN_MODES and (t.line.width or 0) >= MAIN_WIDTH and len(t.x) > 2)
    curve = next(main, None)
    if curve is None:
        return None
    try:
        x, y = (np.asarray(values, dtype=np.float64) for values in (curve.x, curve.y))
    except (TypeError, ValueError):  # Over names or dates it is none that could be laid over another.
        return None
    if x.size > MOST_POINTS or not np.isfinite(x).all():
        return None
    on = _axes_named(curve)
    marked = (
        (float(t.x[0]), float(t.y[0]))
        for t in lines
        if t.mode == "markers" and len(t.x) == 1 and _axes_named(t) == on and _finite(t.x[0], t.y[0])
    )
    return Curve(x, y, axes_of(fig, on), next(marked, None), on)


def _axes_named(trace: go.Scatter) -> tuple[str, str]:
    return trace.xaxis or "x", trace.yaxis or "y"


def _finite(*values: object) -> bool:
    return all(isinstance(v, int | float | np.number) and math.isfinite(v) for v in values)


def axes_of(fig: go.Figure, on: tuple[str, str] = ("x", "y")) -> tuple[str, str, str, str]:
    """Title and type of both axes; empty where the figure has no such axes."""
    x, y = (_axis(fig, name) for name in on)
    return str(x.title.text or ""), str(x.type or ""), str(y.title.text or ""), str(y.type or "")


def _axis(fig: go.Figure, name: str) -> go.layout.XAxis | go.layout.YAxis:
    """The axis of this name; one without a word where the figure has none."""
    return fig.layout[_key(name)] if _key(name) in fig.layout else go.layout.XAxis()


def _key(name: str) -> str:
    """What the layout calls an axis that traces call by this name."""
    return f"{name[0]}axis{name[1:]}"


def ghosts(fig: go.Figure, pins: Iterable[Pin]) -> tuple[go.Figure, tuple[Pin, ...]]:
    """The figure with the latest pins behind its own curves, and which they are: those on the same axes.

    Args:
        fig: As the page made it; it is not changed.
        pins: Of the question, oldest first.
    """
    shown = tuple(pin for pin in pins if pin.curve is not None and _fits(fig, pin.curve))[-MOST_GHOSTS:]
    if not shown:
        return fig, ()
    behind = []
    for dash, pin in zip(DASHES, shown, strict=False):
        assert pin.curve is not None
        line = {"color": charts.NEUTRAL, "dash": dash, "width": 1.5}
        name = plain_name(pin.name)
        trace = charts.curve(name, pin.curve.x, pin.curve.y, line, f"{name}<br>%{{x:,.3~r}}, %{{y:.3g}}")
        if pin.curve.best is not None:
            # One trace with the point in it, and no group of the legend: those would stack the figure's own legend.
            sizes = np.where(np.arange(pin.curve.x.size) == _nearest(pin.curve.x, pin.curve.best[0]), 9, 0)
            trace.update(mode="lines+markers", marker={"size": sizes, "symbol": "circle-open", "opacity": 1})
        behind.append(trace.update(legend="legend2", xaxis=pin.curve.on[0], yaxis=pin.curve.on[1]))
    with_ghosts = go.Figure(data=[*behind, *fig.data], layout=fig.layout)
    # A legend of their own within the plot: the other one, below, would take its room from the plot's height.
    with_ghosts.layout.legend2 = {
        **_emptiest(fig, shown), "orientation": "v", "bgcolor": "rgba(0,0,0,0)", "font": {"size": 11},
    }  # fmt: skip
    return with_ghosts, shown


def _fits(fig: go.Figure, curve: Curve) -> bool:
    return all(_key(name) in fig.layout for name in curve.on) and curve.axes == axes_of(fig, curve.on)


def _nearest(x: FloatArray, to: float) -> int:
    return int(np.argmin(np.abs(x - to)))


LEGEND_SHARE = (0.6, 0.3)
"""Share of the plot's width, and of its height, that a legend of ghosts may take."""


def _emptiest(fig: go.Figure, shown: tuple[Pin, ...]) -> dict[str, object]:
    """The corner of the plot in which the ghosts have fewest points. It does not move with a slider: ghosts stand."""
    curves = [pin.curve for pin in shown if pin.curve is not None]
    across, upwards = (_axis(fig, name) for name in curves[-1].on)
    along = np.concatenate([_places(across, curve.x) for curve in curves])
    up = np.concatenate([_places(upwards, curve.y) for curve in curves])
    width, height = LEGEND_SHARE
    corners = [
        (vertical, horizontal) for vertical in ("bottom", "top") for horizontal in ("left", "right", "center")
    ]

    def points(corner: tuple[str, str]) -> int:
        low = 1.0 - height if corner[0] == "top" else 0.0
        left = {"left": 0.0, "center": (1.0 - width) / 2.0, "right": 1.0 - width}[corner[1]]
        return int(np.sum((along >= left) & (along <= left + width) & (up >= low) & (up <= low + height)))

    vertical, horizontal = min(corners, key=points)
    # Below the words on pale curves, which stand at the top on the right.
    y = 0.92 if vertical == "top" else 0.01
    x = {"left": 0.01, "center": 0.5, "right": 0.99}[horizontal]
    return {"x": _on_paper(across, x), "xanchor": horizontal, "y": _on_paper(upwards, y), "yanchor": vertical}


def _on_paper(axis: go.layout.XAxis | go.layout.YAxis, place: float) -> float:
    """A place on an axis as one in the whole figure, of which the axis may take a part."""
    low, high = axis.domain or (0.0, 1.0)
    return float(low + place * (high - low))


def _places(axis: go.layout.XAxis | go.layout.YAxis, values: FloatArray) -> FloatArray:
    """Where values stand on an axis, 0 at its beginning and 1 at its end; nowhere on one that has no range."""
    if axis.range is None:
        return np.full(values.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.log10(values) if axis.type == "log" else values
    low, high = (float(end) for end in axis.range)
    return np.asarray((places - low) / (high - low))


def plain_name(text: str, most: int = 48) -> str:
    """A name as a figure shows it, where a few signs of HTML have a meaning; cut where it is long."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def said(pin: Pin) -> dict[str, str]:
    """A pin as a row of a table, by heading."""
    return {
        "Pin": pin.name,
        "ε": "" if pin.epsilon is None else wording.entered(pin.epsilon),
        "Bound": f"{pin.bound[1]} ({pin.bound[0].lower()})" if pin.bound[1] else "",
        "Error": f"{pin.error[1]} ({pin.error[0].lower()})" if pin.error[1] else "",
        "Rows left out": "" if pin.rows_lost is None else wording.percent(pin.rows_lost),
        "Half or double": pin.half_or_double,
        "Data": pin.data,
        "Settings": "; ".join(f"{what}: {value}" for what, value in pin.settings),
        "These numbers are": pin.disclosure.label,
    }
