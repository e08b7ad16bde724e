"""The look of all figures, and the pieces they share. Pure: numbers in, a Plotly figure out."""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import plotly.io as pio

_find = importlib.import_module("_plotly_utils.optional_imports").get_module
_LOOK_FOR_LIBRARIES = ("_plotly_utils.basevalidators", "_plotly_utils.utils", "plotly.basedatatypes")


def _whole_module(name: str, should_load: bool = True) -> Any:
    """What Plotly 7's own function returns, the module or None, once all of the module is there."""
    module = _find(name, should_load)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return importlib.import_module(name)  # It waits for the thread that is at it.
    return module


# Plotly looks for pandas in `sys.modules`, where it stands as soon as somebody begins to import it. Where one session
# drew while another one's run loaded pandas, the page ended in "partially initialized module 'pandas' has no attribute
# 'Series'": with 3 of 12 servers that were asked by two sessions as they started.
for _place in map(importlib.import_module, _LOOK_FOR_LIBRARIES):
    _place.get_module = _whole_module  # type: ignore[attr-defined]

TEMPLATE = "sweetspot"
MAIN_HEIGHT = 440
"""Height in pixels of a page's main figure: it is seen whole on a screen of 1280 x 800, below title and inputs."""

# Colours by meaning, after Okabe and Ito; each has at least 3:1 against both the light and the dark page.
# Dash patterns repeat the meaning for those who do not see the colours.
CAP: dict[str, Any] = {"color": "#2C7FB8", "dash": "solid", "width": 2.5}
SMOOTH: dict[str, Any] = {"color": "#D55E00", "dash": "solid", "width": 2.5}
SAMPLING: dict[str, Any] = {"color": "#009E73", "dash": "dot", "width": 1.5}
PRIVACY: dict[str, Any] = {"color": "#B0609C", "dash": "dash", "width": 1.5}
BIAS: dict[str, Any] = {"color": "#B57A00", "dash": "dashdot", "width": 1.5}
OWN: dict[str, Any] = {"color": "#7F7F7F", "dash": "longdash", "width": 1.5}
USUAL: dict[str, Any] = {"color": "#B57A00", "dash": "longdashdot", "width": 1.5}
TOTAL: dict[str, Any] = {"color": "#2C7FB8", "dash": "solid", "width": 2.5}
BAND = "rgba(44, 127, 184, 0.13)"
NEUTRAL = "#7F7F7F"
# A number at a tick, as `wording.number` has it. Without the 12, d3 writes 1e+6 beside 100,000.
NUMBER = ",.12~g"
# Share of a log axis left free at either end, so that a marker at the end is seen whole.
ROOM = 0.02

pio.templates[TEMPLATE] = go.layout.Template(
    layout={
        "colorway": [
            CAP["color"],
            SMOOTH["color"],
            SAMPLING["color"],
            PRIVACY["color"],
            "#B57A00",
            "#7F7F7F",
        ],
        "margin": {"l": 10, "r": 10, "t": 30, "b": 10},
        # Below the axis: above the plot it would lie under the buttons that appear on hover.
        "legend": {
            "orientation": "h",
            "yref": "container",
            "yanchor": "bottom",
            "y": 0,
            "x": 0,
            "title": {"text": ""},
        },
        "hovermode": "closest",
        "xaxis": {"automargin": True, "showgrid": True, "zeroline": False},
        "yaxis": {"automargin": True, "showgrid": True, "zeroline": False},
    }
)


def log_axis(title: str, limits: tuple[float, float]) -> dict[str, object]:
    """A log axis with fixed limits, so that it does not move with a slider; a little room at both ends."""
    low, high = limits
    decades = math.log10(high / low)
    room = ROOM * decades
    # Plotly's own ticks read 2, 5, 2, 5 without the power; whole decades with separators read better.
    # On a range like 5 to 10, D2 leaves labels at the two ends only, on which Plotly places the title wrongly.
    dtick = 1 if decades > 2.5 else "D2" if decades > 0.5 else "D1"
    return {
        "title": {"text": title},
        "type": "log",
        "range": [math.log10(low) - room, math.log10(high) + room],
        "dtick": dtick,
        **_written(dtick == 1, high <= 1e7 and low >= 1e-4),
        "minor": {"ticks": "inside", "ticklen": 3},
    }


def _written(whole_decades: bool, short: bool) -> dict[str, object]:
    """How the numbers of a log axis are written: in full where they are short, else as powers of ten."""
    if short:
        return {"tickformat": NUMBER}
    return {"exponentformat": "power"} if whole_decades else {"tickformat": ".0e"}


def linear_axis(title: str, limits: tuple[float, float], percent: bool = False) -> dict[str, object]:
    """A linear axis with fixed limits; shares of 1 are shown in per cent."""
    # Of a short one, several ticks would read the same without a decimal.
    shares = ".0%" if limits[1] - limits[0] >= 0.05 else ".1%"
    return {"title": {"text": title}, "range": list(limits), "tickformat": shares if percent else NUMBER}


class Sketch:
    """A figure in the making, its traces and shapes as data.

    Plotly checks every property of every trace that is added to a figure of its own, twice, which took 10 of the 14 ms
    of drawing Mean's. Here nothing is checked: the test of this module has Plotly check what is drawn.

    Args:
        x: The horizontal axis, as Plotly has it.
        y: The other one.
        height: In pixels.
    """

    def __init__(self, x: Mapping[str, object], y: Mapping[str, object], height: int = MAIN_HEIGHT) -> None:
        self.layout = _layout(x, y, height)
        self.data: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []

    def add_trace(self, trace: dict[str, Any] | go.Figure) -> None:
        """Draw above all others."""
        self.data.append(trace if isinstance(trace, dict) else trace.to_plotly_json())

    def add_shape(self, **shape: Any) -> None:
        """Draw a line or a rectangle."""
        self.shapes.append(shape)

    def add_annotation(self, **annotation: Any) -> None:
        """Write a text."""
        self.annotations.append(annotation)

    def figure(self) -> go.Figure:
        """The figure."""
        _with_template()
        drawn = {"shapes": self.shapes, "annotations": self.annotations}
        layout = self.layout | {name: items for name, items in drawn.items() if items}
        return go.Figure({"data": self.data, "layout": layout}, _validate=False)


class Drawing(Protocol):
    """What traces and shapes can be added to: a figure of Plotly's, or a sketch of one."""

    def add_trace(self, trace: dict[str, Any], /) -> Any:
        """Draw above all others."""

    def add_shape(self, **shape: Any) -> Any:
        """Draw a line or a rectangle."""

    def add_annotation(self, **annotation: Any) -> Any:
        """Write a text."""


def _layout(x: Mapping[str, object], y: Mapping[str, object], height: int) -> dict[str, object]:
    # On the right there is room for half of the last tick label: Plotly hides labels that would be cut, and
    # Streamlit's theme overrides the margins of a template.
    return {"height": height, "xaxis": x, "yaxis": y, "margin": {"r": 28}}


def _with_template() -> None:
    # Plotly checks a template anew in every figure that names it, which took half of the time here; that of figures
    # that name none it takes as it is. Streamlit sets its own as that one when it is imported.
    if pio.templates.default != TEMPLATE:
        pio.templates.default = TEMPLATE


LABEL_WIDTH = 34
"""Characters of a label that fit in one line above the narrowest figure, a third of a page beside a wide axis."""


BUTTONS, LABEL_LINE = 30, 14
"""Height in pixels of Plotly's row of buttons at the top, and of a line of a label."""


def labelled(fig: go.Figure, text: str) -> go.Figure:
    """The figure with a label above it that stays in its SVG; for what must not be taken for public.

    It stands below the buttons, which on a narrow figure take more than half of the width.
    """
    lines = _even_lines(text, LABEL_WIDTH)
    fig.add_annotation(
        x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False,
        text="<br>".join(lines), align="left",
        font={"size": 11},
    )  # fmt: skip
    top, height = BUTTONS + LABEL_LINE * len(lines), fig.layout.height
    # The plot itself stays as high as that of a figure without a label.
    taller = {} if height is None else {"height": height + top - (fig.layout.margin.t or BUTTONS)}
    return fig.update_layout(margin={"t": top}, **taller)


def _even_lines(text: str, width: int) -> list[str]:
    """As few lines as fit, none much shorter than the others."""
    fewest = len(textwrap.wrap(text, width))
    return next(
        lines
        for narrow in range(1, width + 1)
        if len(lines := textwrap.wrap(text, narrow, break_long_words=False)) == fewest
    )


EMPTY: dict[str, Any] = {"type": "scatter", "x": [None], "y": [None], "hoverinfo": "skip"}
"""A trace that stands in the legend only."""


def curve_data(
    name: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    line: Mapping[str, object],
    hover: str,
    opacity: float = 1.0,
    symbol: str = "",
    **more: Any,
) -> dict[str, Any]:
    """A line with a hover text (a Plotly hover template), and with markers where they have a symbol: a trace as data.

    ``more`` are further properties of the trace, as Plotly has them.
    """
    marked = (
        {"mode": "lines+markers", "marker": {"size": 8, "symbol": symbol}} if symbol else {"mode": "lines"}
    )
    words = {"hovertemplate": hover + "<extra></extra>"}
    return {
        "type": "scatter", "x": x, "y": y, "name": name, "line": line, "opacity": opacity, **words, **marked, **more
    }  # fmt: skip


def curve(*of: Any, **more: Any) -> go.Scatter:
    """A line, as `curve_data` has it."""
    return go.Scatter(curve_data(*of, **more))


def points_data(
    name: str, x: npt.ArrayLike, y: npt.ArrayLike, look: Mapping[str, object], hover: str, **more: Any
) -> dict[str, Any]:
    """Marked points with a hover text: a trace as data.

    ``look`` is Plotly's ``marker``, ``more`` further properties of the trace.
    """
    words = {"hovertemplate": hover + "<extra></extra>"}
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "name": name,
        "mode": "markers",
        "marker": look,
        **words,
        **more,
    }


Look = str | Mapping[str, Any]
"""A colour, or a line whose colour it is."""


def marker_data(name: str, x: float, y: float, of: Look, symbol: str, hover: str) -> dict[str, Any]:
    """One marked point: a trace as data."""
    color = of if isinstance(of, str) else of["color"]
    look = {"color": color, "size": 13, "symbol": symbol, "line": {"color": "white", "width": 1.5}}
    return points_data(name, [x], [y], look, hover)


def whiskers(above: npt.ArrayLike, below: npt.ArrayLike | None = None, **more: Any) -> dict[str, Any]:
    """Error bars of points, as Plotly's ``error_y``; as long below as above where nothing else is said."""
    sides: dict[str, Any] = {"array": above}
    if below is not None:
        sides |= {"symmetric": False, "arrayminus": below}
    return {"type": "data", **sides, "thickness": 1.2, "width": 4, **more}


def add_curve(fig: Drawing, *of: Any, **more: Any) -> None:
    """Draw a `curve`."""
    fig.add_trace(curve_data(*of, **more))


def add_area(
    fig: Drawing, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, color: str, **more: Any
) -> None:
    """Fill between two curves; ``more`` are further properties of the trace."""
    along, below, above = (np.asarray(values, dtype=np.float64) for values in (x, low, high))
    outline = {"x": np.concatenate((along, along[::-1])), "y": np.concatenate((above, below[::-1]))}
    fig.add_trace(
        {
            "type": "scatter",
            **outline,
            "mode": "lines",  # Of fewer than 20 points Plotly draws each as a dot, too.
            "fill": "toself",
            "fillcolor": color,
            "line": {"width": 0},
            "hoverinfo": "skip",
            **more,
        }
    )


def line_across(fig: Drawing, y: float, name: str, dash: str) -> None:
    """A level over the whole width; its name stands in the legend."""
    # Not `add_hline`, which looks through all axes of the figure and takes as long as three curves.
    line = {"color": NEUTRAL, "width": 1, "dash": dash}
    fig.add_shape(type="line", xref="paper", x0=0, x1=1, yref="y", y0=y, y1=y, line=line)
    legend_line(fig, name, line, group=name)


def band(fig: Drawing, low: float, high: float, text: str) -> None:
    """Shade an interval of the horizontal axis; its name stands in the legend."""
    # Not `add_vrect`, which looks through all axes of the figure and takes as long as three curves.
    fig.add_shape(
        type="rect",
        x0=low,
        x1=high,
        yref="paper",
        y0=0,
        y1=1,
        fillcolor=BAND,
        line={"width": 0},
        layer="below",
    )
    swatch = {"color": BAND, "size": 14, "symbol": "square", "line": {"width": 0}}
    fig.add_trace({**EMPTY, "name": text, "mode": "markers", "marker": swatch})


def legend_line(fig: Drawing, name: str, line: dict[str, Any], group: str) -> None:
    """An entry of the legend for several lines that share a dash pattern but not a colour."""
    fig.add_trace(
        {**EMPTY, "name": name, "mode": "lines", "line": {**line, "color": NEUTRAL}, "legendgroup": group}
    )  # fmt: skip
