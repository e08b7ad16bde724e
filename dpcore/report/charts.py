"""The look of all figures, and the pieces they share. Pure: numbers in, a Plotly figure out."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import plotly.io as pio

TEMPLATE = "sweetspot"
MAIN_HEIGHT = 440
"""Of a page's main figure, in pixels: it is seen whole on a screen of 1280 x 800, below title and inputs."""

# Colours by meaning, after Okabe and Ito; each has at least 3:1 against both the light and the dark page.
# Dash patterns repeat the meaning for those who do not see the colours.
CAP: dict[str, Any] = {"color": "#2C7FB8", "dash": "solid", "width": 2.5}
SMOOTH: dict[str, Any] = {"color": "#D55E00", "dash": "solid", "width": 2.5}
SAMPLING: dict[str, Any] = {"color": "#009E73", "dash": "dot", "width": 1.5}
PRIVACY: dict[str, Any] = {"color": "#B0609C", "dash": "dash", "width": 1.5}
BIAS: dict[str, Any] = {"color": "#D55E00", "dash": "dashdot", "width": 1.5}
OWN: dict[str, Any] = {"color": "#7F7F7F", "dash": "longdash", "width": 1.5}
USUAL: dict[str, Any] = {"color": "#B57A00", "dash": "dashdot", "width": 1.5}
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
    return {"title": {"text": title}, "range": list(limits), "tickformat": ".0%" if percent else NUMBER}


def figure(x: Mapping[str, object], y: Mapping[str, object], height: int = 420) -> go.Figure:
    """An empty figure with these axes."""
    # On the right there is room for half of the last tick label: Plotly hides labels that would be cut, and
    # Streamlit's theme overrides the margins of a template.
    layout = {"height": height, "xaxis": x, "yaxis": y, "margin": {"r": 28}}
    # Plotly checks a template anew in every figure that names it, which took half of the time here; that of figures
    # that name none it takes as it is. Streamlit sets its own as that one when it is imported.
    if pio.templates.default != TEMPLATE:
        pio.templates.default = TEMPLATE
    return go.Figure(layout=layout)


def log_log(
    x: str, x_limits: tuple[float, float], y: str, y_limits: tuple[float, float], height: int = 420
) -> go.Figure:
    """An empty figure with two log axes: their titles and limits."""
    return figure(log_axis(x, x_limits), log_axis(y, y_limits), height)


def log_linear(
    x: str,
    x_limits: tuple[float, float],
    y: str,
    y_limits: tuple[float, float],
    height: int = 420,
    percent: bool = False,
) -> go.Figure:
    """An empty figure with a log axis across and a linear one upwards, of shares of 1 where ``percent``."""
    return figure(log_axis(x, x_limits), linear_axis(y, y_limits, percent), height)


def without_legend(fig: go.Figure) -> go.Figure:
    """No legend, and no room kept for one."""
    return fig.update_layout(showlegend=False)


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


def curve(
    name: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    line: Mapping[str, object],
    hover: str,
    opacity: float = 1.0,
    symbol: str = "",
    **more: Any,
) -> go.Scatter:
    """A line with a hover text (a Plotly hover template), and with markers where they have a symbol.

    ``more`` are further properties of the trace, as Plotly has them.
    """
    marked = (
        {"mode": "lines+markers", "marker": {"size": 8, "symbol": symbol}} if symbol else {"mode": "lines"}
    )
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        line=line,
        opacity=opacity,
        hovertemplate=hover + "<extra></extra>",
        **marked | more,
    )


def points(
    name: str, x: npt.ArrayLike, y: npt.ArrayLike, look: Mapping[str, object], hover: str, **more: Any
) -> go.Scatter:
    """Marked points with a hover text; ``look`` is Plotly's ``marker``, ``more`` further properties of the trace."""
    return go.Scatter(
        x=x, y=y, name=name, mode="markers", marker=look, hovertemplate=hover + "<extra></extra>", **more
    )


Look = str | Mapping[str, Any]
"""A colour, or a line whose colour it is."""


def marker(name: str, x: float, y: float, of: Look, symbol: str, hover: str) -> go.Scatter:
    """One marked point."""
    color = of if isinstance(of, str) else of["color"]
    look = {"color": color, "size": 13, "symbol": symbol, "line": {"color": "white", "width": 1.5}}
    return points(name, [x], [y], look, hover)


def whiskers(above: npt.ArrayLike, below: npt.ArrayLike | None = None, **more: Any) -> dict[str, Any]:
    """Error bars of points, as Plotly's ``error_y``; as long below as above where nothing else is said."""
    sides: dict[str, Any] = {"array": above}
    if below is not None:
        sides |= {"symmetric": False, "arrayminus": below}
    return {"type": "data", **sides, "thickness": 1.2, "width": 4, **more}


def add_curve(fig: go.Figure, *of: Any, **more: Any) -> None:
    """Draw a `curve`."""
    fig.add_trace(curve(*of, **more))


def add_points(fig: go.Figure, *of: Any, **more: Any) -> None:
    """Draw `points`."""
    fig.add_trace(points(*of, **more))


def add_marker(fig: go.Figure, name: str, x: float, y: float, of: Look, symbol: str, hover: str) -> None:
    """Draw a `marker`."""
    fig.add_trace(marker(name, x, y, of, symbol, hover))


def add_bars(
    fig: go.Figure, name: str, x: npt.ArrayLike, y: npt.ArrayLike, of: Look, hover: str, **more: Any
) -> None:
    """Draw bars with a hover text; ``more`` are further properties of the trace, ``opacity`` that of their colour."""
    look: dict[str, Any] = {"color": of if isinstance(of, str) else of["color"]}
    if "opacity" in more:
        look["opacity"] = more.pop("opacity")
    fig.add_trace(go.Bar(x=x, y=y, name=name, marker=look, hovertemplate=hover + "<extra></extra>", **more))


def add_area(
    fig: go.Figure, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, color: str, **more: Any
) -> None:
    """Fill between two curves; ``more`` are further properties of the trace."""
    along, below, above = (np.asarray(values, dtype=np.float64) for values in (x, low, high))
    outline = {"x": np.concatenate((along, along[::-1])), "y": np.concatenate((above, below[::-1]))}
    fig.add_trace(
        go.Scatter(**outline, fill="toself", fillcolor=color, line={"width": 0}, hoverinfo="skip", **more)
    )


def line_across(
    fig: go.Figure, y: float, name: str, width: float = 1.2, dash: str = "dash", yref: str = "y"
) -> None:
    """A level over the whole width; its name stands in the legend."""
    # Not `add_hline`, which looks through all axes of the figure and takes as long as three curves.
    line = {"color": NEUTRAL, "width": width, "dash": dash}
    fig.add_shape(type="line", xref="paper", x0=0, x1=1, yref=yref, y0=y, y1=y, line=line)
    legend_line(fig, name, line, group=name)


def line_with_words(fig: go.Figure, y: float, words: str) -> None:
    """A level on a log axis with words above its right end."""
    fig.add_hline(y=y, line={"color": NEUTRAL, "width": 1, "dash": "dot"})
    place = {"x": 1, "xref": "paper", "xanchor": "right", "y": math.log10(y), "yanchor": "bottom"}
    fig.add_annotation(text=words, showarrow=False, **place)


def band(fig: go.Figure, low: float, high: float, text: str) -> None:
    """Shade an interval of the horizontal axis; its name stands in the legend."""
    # Not `add_vrect`, which looks through all axes of the figure and takes as long as three curves.
    fig.add_shape(
        type="rect", x0=low, x1=high, yref="paper", y0=0, y1=1, fillcolor=BAND, line_width=0, layer="below"
    )
    swatch = {"color": BAND, "size": 14, "symbol": "square", "line": {"width": 0}}
    fig.add_trace(go.Scatter(x=[None], y=[None], name=text, mode="markers", marker=swatch, hoverinfo="skip"))


def legend_line(fig: go.Figure, name: str, line: dict[str, Any], group: str) -> None:
    """An entry of the legend for several lines that share a dash pattern but not a colour."""
    fig.add_trace(
        go.Scatter(x=[None], y=[None], name=name, mode="lines", line={**line, "color": NEUTRAL},
                   legendgroup=group, hoverinfo="skip")
    )  # fmt: skip
