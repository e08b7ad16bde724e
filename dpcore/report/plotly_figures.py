"""A plot as a Plotly figure: the one place where data become a picture, for page, report, script and notebook."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import plotly.io as pio

from dpcore.answer.plot import (
    Axis,
    Band,
    Bars,
    Border,
    Cells,
    Curve,
    Hatching,
    Level,
    Mark,
    Plot,
    Points,
    Regions,
    Scale,
    Shares,
    Style,
)
from dpcore.common.privacy import Disclosure
from dpcore.report import charts, regions

HEIGHT = 380
"""Height in pixels of a figure that is not the main one."""
MOVED_HEIGHT = 400
"""Height in pixels of a main figure with a handle: it is seen whole with what stands below it while it moves."""
TYPED = {np.dtype(name): name for name in ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")}
"""Of NumPy, to the names that Plotly's script knows the same types by."""
LINES: dict[Style, Mapping[str, Any]] = {
    Style.CAP: charts.CAP,
    Style.SMOOTH: charts.SMOOTH,
    Style.SAMPLING: charts.SAMPLING,
    Style.PRIVACY: charts.PRIVACY,
    Style.BIAS: charts.BIAS,
    Style.ENTERED: charts.OWN,
    Style.CUSTOMARY: charts.USUAL,
    Style.TOTAL: charts.TOTAL,
}


def figure(plot: Plot) -> go.Figure:
    """The picture; the same plot gives the same picture."""
    fig = _drawn(plot)
    if plot.note:
        fig.add_annotation(
            text=plot.note, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.62, font={"size": 12}
        )
    if plot.lower_plot is not None:
        share, lower = plot.lower_share, _drawn(plot.lower_plot)
        below = {"domain": [0.0, share], "nticks": 4, "automargin": True, "zeroline": False}
        fig.layout |= {
            "xaxis": {**_axis(plot.x), "anchor": "y2"},
            "yaxis": {**_axis(plot.y), "domain": [share + 0.09, 1.0]},
            "yaxis2": {**_axis(plot.lower_plot.y), **below},
        }
        named = {trace["name"]: trace for trace in fig.data if "name" in trace}
        for trace in lower.data:
            group = trace.get("name")
            if group in named:
                named[group]["legendgroup"] = trace["legendgroup"] = group
            level = trace["x"] is charts.EMPTY["x"]  # Its entry in the legend; the line is a shape.
            fig.add_trace(trace | {"yaxis": "y2"} | ({} if level else {"showlegend": False}))
        for shape in lower.shapes:
            fig.add_shape(**(shape | {"yref": "y2"} if shape.get("yref") == "y" else shape))
    return fig.figure()


def _drawn(plot: Plot) -> charts.Sketch:
    usual = MOVED_HEIGHT if plot.handle is not None else charts.MAIN_HEIGHT if plot.is_main else HEIGHT
    height = plot.height or usual
    fig = charts.Sketch(_axis(plot.x), _axis(plot.y), height)
    shared: dict[str, dict[str, Any]] = {}
    # Several items read the same grid, and to find it takes longer than to draw them.
    grid = functools.cache(lambda x, y: regions.Grid.of(plot.all_columns[x], plot.all_columns[y]))
    for item in plot.items:
        if shared and not getattr(item, "legend", ""):
            _share(fig, shared)
        match item:
            case Curve():
                if item.is_shaded:
                    _shade(fig, plot, item)
                fig.add_trace(_curve(plot, item))
                if item.legend:
                    dash = {"dash": item.dash} if item.dash else {}
                    shared[item.legend] = {
                        "mode": "lines",
                        "line": {**LINES[item.style], **dash, "color": charts.NEUTRAL},
                    }
            case Points():
                fig.add_trace(_points(plot, item))
                if item.legend:
                    shared[item.legend] = {
                        "mode": "markers",
                        "marker": {"color": charts.NEUTRAL, "size": item.size},
                    }
            case Bars():
                fig.add_trace(_bars(plot, item))
                fig.layout |= {"bargap": item.gap, "barmode": "overlay" if item.is_overlaid else "group"}
            case Cells():
                for trace in _cells(plot, item, grid(item.x, item.y)):
                    fig.add_trace(trace)
            case Shares():
                fig.add_trace(_shares(plot, item))
            case Regions():
                _regions(fig, plot, item, grid(item.x, item.y))
            case Hatching():
                regions.hatch(
                    fig, grid(item.x, item.y), plot.all_columns[item.column], item.name, item.pattern
                )
            case Border():
                line = {"color": LINES[item.style]["color"], "dash": item.dash, "width": 2.5}
                regions.border(fig, grid(item.x, item.y), plot.all_columns[item.column], item.name, line)
            case Mark():
                words = hover(plot, item.name) + (f"<br>{item.hover_text}" if item.hover_text else "")
                point = charts.marker_data(item.name, item.x, item.y, LINES[item.style], item.symbol, words)
                fig.add_trace(point | {"showlegend": False} if item.is_unnamed else point)
            case Band():
                charts.band(fig, item.low, item.high, item.name)
            case Level(is_vertical=True):
                line = {"color": LINES[item.style]["color"], "dash": item.dash, "width": 1.5}
                words = f"{item.name}<br>{plot.x.label}: %{{x:{plot.x.number_format}}}"
                grouped = {"showlegend": False, "legendgroup": item.legend} if item.legend else {}
                charts.add_curve(
                    fig, item.name, [item.value, item.value], plot.y.limits, line, words, **grouped
                )
                if item.legend:
                    shared[item.legend] = {"mode": "lines", "line": {**line, "color": charts.NEUTRAL}}
            case Level():
                charts.line_across(fig, item.value, item.name, item.dash)
    _share(fig, shared)
    named = [item for item in plot.items if not isinstance(item, Band)]
    alone = len(named) == 1 and not isinstance(named[0], Cells)
    if alone:
        fig.layout["showlegend"] = False
    return fig


def on_white(plot: Plot) -> go.Figure:
    """The picture as it stands by itself, on white paper; one of data that are not public says so."""
    fig = figure(plot)
    if plot.disclosure is not Disclosure.PUBLIC:
        charts.labelled(fig, plot.disclosure.label)
    return fig.update_layout(template=white(), title={"text": plot.title})


@functools.cache
def white() -> go.layout.Template:
    """The template of figures on white paper. Plotly would put it together anew for each, in 20 ms."""
    return pio.templates.merge_templates("plotly_white", charts.TEMPLATE)


def as_json(fig: go.Figure) -> str:
    """A figure as JSON, arrays of numbers in base64: what Plotly's `to_json` writes, in an eighth of its time.

    That copies everything first. Where it has a word of its own, as null for NaN in a list, it writes the whole.
    """
    try:
        # Of Plotly's, these two are not public; a test compares what is written with what Plotly writes.
        return json.dumps(_sent({"data": fig._data, "layout": fig._layout}), allow_nan=False)
    except (AttributeError, TypeError, ValueError):
        return str(pio.to_json(fig, validate=False))


def _sent(value: Any) -> Any:
    """A part of a figure as JSON has it: arrays of numbers as Plotly's typed arrays, in base64."""
    if isinstance(value, dict):
        # Plotly's script takes the ends of an axis as a list only.
        return {
            name: part.tolist() if name == "range" and isinstance(part, np.ndarray) else _sent(part)
            for name, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_sent(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "iu" and value.size:
        value = value.astype(np.result_type(np.min_scalar_type(value.min()), np.min_scalar_type(value.max())))
    if value.dtype not in TYPED or not value.size:
        return _sent(value.tolist())
    typed = {
        "dtype": TYPED[value.dtype],
        "bdata": base64.b64encode(value.tobytes()).decode("ascii"),
    }
    return typed | ({"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {})


def _share(fig: charts.Sketch, shared: dict[str, dict[str, Any]]) -> None:
    """Entries of the legend for what several items share, in no one's colour."""
    for name, look in shared.items():
        fig.add_trace({**charts.EMPTY, "name": name, "legendgroup": name, **look})
    shared.clear()


def hover(plot: Plot, name: str) -> str:
    """What stands where the pointer is, in Plotly's template language: the name, then both numbers with their units."""
    return f"{name}<br>{_place(plot.x, 'x')}<br>{_place(plot.y, 'y')}"


def _place(axis: Axis, of: str) -> str:
    return f"%{{{of}}}" if axis.scale is Scale.NAMES else f"{axis.label}: %{{{of}:{axis.number_format}}}"


def _axis(axis: Axis) -> dict[str, object]:
    if not axis.shows_ticks:
        bare = {"showticklabels": False, "showgrid": False}
        return {"title": {"text": axis.heading}, "range": list(axis.limits), **bare}
    if axis.scale is Scale.NAMES:
        return {"title": {"text": axis.heading}, "type": "category", "tickangle": 0, "tickfont": {"size": 11}}
    if axis.scale is Scale.LOG:
        drawn = charts.log_axis(axis.heading, axis.limits)
        if axis.number_format.endswith("%"):
            drawn["tickformat"] = "~%"
    else:
        drawn = charts.linear_axis(axis.heading, axis.limits, percent=axis.scale is Scale.PERCENT)
    if axis.named_ticks:
        places, words = zip(*axis.named_ticks, strict=True)
        drawn.pop("minor", None)
        drawn |= {"tickvals": places, "ticktext": words}
    return drawn


def _curve(plot: Plot, of: Curve) -> dict[str, Any]:
    line = dict(LINES[of.style])
    if of.color_style is not None:
        line["color"] = LINES[of.color_style]["color"]
    if of.dash:
        line["dash"] = of.dash
    if of.width is not None:
        line["width"] = of.width
    if of.is_step:
        line["shape"] = "hv"
    if of.is_backward_step:
        line["shape"] = "vh"
    if of.is_binned:
        line["shape"] = "hvh"
    meant = _meant(plot, of)
    across, upwards = np.asarray(plot.all_columns[of.x])[meant], _upwards(plot, of.y)[meant] * of.factor
    group: dict[str, Any] = {"showlegend": False} if of.legend or of.is_unnamed else {}
    if of.legend:
        group["legendgroup"] = of.legend
    if of.is_first:
        group["legendrank"] = 1
    if of.opacity < 1.0:
        group["opacity"] = of.opacity
    words = hover(plot, of.name)
    if of.hover_column is not None:
        words += f"<br>{of.hover_column[0]}: %{{customdata:.3g}}"
        group["customdata"] = np.asarray(plot.all_columns[of.hover_column[1]])[meant]
    if of.is_shaded:
        group["legendgroup"] = of.name
    else:
        group |= _whiskers(plot, of, upwards, "y")
    return charts.curve_data(of.name, across, upwards, line, words, symbol=of.symbol, **group)


def _shade(fig: charts.Sketch, plot: Plot, of: Curve) -> None:
    """Fill between an item's ends; where one is not known the curve itself is."""
    meant = _meant(plot, of)
    across, middle, low, high = (
        np.asarray(plot.all_columns[name], dtype=np.float64)[meant] for name in (of.x, of.y, of.low, of.high)
    )
    low, high = (np.where(np.isnan(end), middle, end) for end in (low, high))
    color = _pale(LINES[of.color_style or of.style]["color"], 0.16)
    charts.add_area(fig, across, low, high, color, showlegend=False, legendgroup=of.name)


def _pale(color: str, opacity: float) -> str:
    """A colour that lets what is behind it through."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def _whiskers(plot: Plot, of: Curve | Points | Bars, middle: npt.NDArray[Any], along: str) -> dict[str, Any]:
    """The ends of an item's bars, as Plotly has them; empty where it has none."""
    if not (of.low and of.high):
        return {}
    low, high = (
        np.asarray(plot.all_columns[name], dtype=np.float64)[_meant(plot, of)] for name in (of.low, of.high)
    )
    # Of their own: Streamlit's theme draws all that have none in one colour.
    color = charts.NEUTRAL if isinstance(of, Bars) else LINES[of.style]["color"]
    return {f"error_{along}": charts.whiskers(high - middle, middle - low, color=color)}


def _bars(plot: Plot, of: Bars) -> dict[str, Any]:
    meant, flat = _meant(plot, of), plot.y.scale is Scale.NAMES
    names, values = (
        np.asarray(plot.all_columns[name])[meant] for name in ((of.y, of.x) if flat else (of.x, of.y))
    )
    also = [np.asarray(plot.all_columns[column])[meant] for _, column in of.hover_columns]
    along, axis = ("x", plot.x) if flat else ("y", plot.y)
    # Of a bar that does not begin at 0, Plotly says how long it is.
    words = hover(plot, of.name).replace(
        f"%{{{along}:{axis.number_format}}}", f"%{{customdata[0]:{axis.number_format}}}"
    )
    words += "".join(
        f"<br>{said}: %{{customdata[{at}]:.3~g}}" for at, (said, _) in enumerate(of.hover_columns, 1)
    )
    return dict(
        type="bar",
        **{along: values - of.base, "y" if flat else "x": names},
        **_whiskers(plot, of, values, along),
        orientation="h" if flat else "v",
        base=of.base,
        name=of.name,
        customdata=np.column_stack((values, *also)),
        marker={"color": LINES[of.style]["color"], "opacity": of.opacity},
        showlegend=not of.is_unnamed,
        hovertemplate=f"{words}<extra></extra>",
    )


def _meant(plot: Plot, of: Curve | Points | Bars) -> npt.NDArray[np.bool_] | slice:
    """The rows of the columns that an item is drawn of."""
    return slice(None) if of.filter is None else np.asarray(plot.all_columns[of.filter[0]]) == of.filter[1]


def _upwards(plot: Plot, name: str) -> npt.NDArray[np.float64]:
    """A column along the vertical axis, with gaps where a log scale has no place for it: at 0 and at infinity."""
    values = np.asarray(plot.all_columns[name], dtype=np.float64)
    if plot.y.scale is not Scale.LOG:
        return values
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)


def _regions(fig: charts.Drawing, plot: Plot, of: Regions, grid: regions.Grid) -> None:
    said, column = of.hover_column
    words = f"{hover(plot, '').removeprefix('<br>')}<br>{said}: %{{customdata:.3~g}}"
    kinds = [(name, LINES[look]["color"]) for name, look in of.region_styles]
    covered = [plot.all_columns[item.column] for item in plot.items if isinstance(item, Hatching)]
    values = plot.all_columns[of.column], plot.all_columns[column]
    regions.regions(fig, grid, values, kinds, words, covered)


def _cells(plot: Plot, of: Cells, grid: regions.Grid) -> list[go.Heatmap | go.Contour]:
    """The cells, and the line around those near the least; multiples are drawn on a log scale, the lightest 1."""
    x, y, values = grid.x, grid.y, grid.of_column(plot.all_columns[of.column])
    times, most = values / max(of.smallest_value, np.finfo(np.float64).tiny), of.ticks[-1]
    scale = {
        "title": {"text": of.scale, "side": "right"},
        "tickvals": np.log10(of.ticks),
        "ticktext": [*(f"{tick:g}" for tick in of.ticks[:-1]), f"≥ {most:g}"],
        "thickness": 12,
        "len": 0.9,
    }
    words = f"{hover(plot, of.name)}<br>{of.name}: %{{customdata:,.3~g}}<extra></extra>"
    drawn: list[go.Heatmap | go.Contour] = [
        go.Heatmap(
            x=x,
            y=y,
            z=np.log10(np.clip(times, 1.0, most)),
            customdata=values,
            # Readable without colours: it goes from light to dark.
            colorscale="Cividis_r",
            zmin=0.0,
            zmax=np.log10(most),
            colorbar=scale,
            hovertemplate=words.removeprefix(f"{of.name}<br>"),
            name=of.name,
        )
    ]
    if of.contour is not None:
        name, level = of.contour
        line = {"color": charts.SMOOTH["color"], "width": 2, "dash": "dash"}
        around = {"type": "constraint", "operation": "=", "value": level}
        more = {"name": name, "showlegend": True, "hoverinfo": "skip"}
        drawn.append(go.Contour(x=x, y=y, z=times, contours=around, line=line, **more))
    return drawn


def _shares(plot: Plot, of: Shares) -> dict[str, Any]:
    color = LINES[of.style]["color"]
    return {
        "type": "heatmap",
        "x": plot.all_columns[of.x],
        "y": np.arange(len(of.columns)),
        "z": np.array([plot.all_columns[name] for name in of.columns], dtype=np.float64),
        "zmin": 0.0,
        "zmax": 1.0,
        # From next to nothing, so that it lies well on a light and on a dark page.
        "colorscale": [[share, _pale(color, share or 0.06)] for share in (0.0, 1.0)],
        "colorbar": {"tickformat": ".0%", "title": {"text": "Share"}, "thickness": 14},
        "hovertemplate": f"{plot.x.label}: %{{x}}<br>%{{z:.1%}} {of.name}<extra></extra>",
    }


def _points(plot: Plot, of: Points) -> dict[str, Any]:
    meant = _meant(plot, of)
    middle = _upwards(plot, of.y)[meant]
    more: dict[str, Any] = {"showlegend": False} if of.legend or of.is_unnamed else {}
    if of.legend:
        more["legendgroup"] = of.legend
    more |= _whiskers(plot, of, middle, "y")
    look = {
        "color": LINES[of.style]["color"],
        "size": of.size,
        **({"symbol": of.symbol} if of.symbol else {}),
    }
    if of.opacity < 1.0:
        look["opacity"] = of.opacity
    across, words = np.asarray(plot.all_columns[of.x])[meant], hover(plot, of.name)
    if of.nudge != 1.0:
        words, more["customdata"] = words.replace("%{x:", "%{customdata:"), across
        across = across * of.nudge
    if of.hover_column:
        words = f"{of.name}<br>{of.hover_column}: %{{customdata:,}}"
        more["customdata"] = np.asarray(plot.all_columns[of.hover_column])[meant]
    return charts.points_data(of.name, across, middle, look, words, **more)
