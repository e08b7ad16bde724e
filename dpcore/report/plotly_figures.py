"""Draw a plot as a Plotly figure: the one place where data become a picture, for page, report, script and notebook."""

from __future__ import annotations

import base64
import functools
import json
import math
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
    Series,
    Style,
)
from dpcore.common.privacy import Disclosure
from dpcore.report import charts, labels
from dpcore.report.charts import LINE_BY_STYLE as LINE_BY_STYLE

FIGURE_HEIGHT = 380
"""Height in pixels of a figure that is not the main one."""
HEIGHT_WITH_HANDLE = 435
"""Height in pixels of a main figure with a handle: 1280 x 800 pixels show it whole, with the bars below it."""
NAME_BY_DTYPE = {np.dtype(name): name for name in ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")}
"""Each NumPy type with its name in Plotly's script."""
CELL_RATIO_TICKS = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Multiples of the smallest value of `Cells`; the last one and all above it have the darkest colour."""
# A number at a tick, as `format_number` has it. Without the 12, d3 writes 1e+6 beside 100,000.
NUMBER_FORMAT = ",.12~g"
# Share of a log axis left free at either end, so that a marker at the end is seen whole.
AXIS_MARGIN = 0.02


def draw_plot(plot: Plot) -> go.Figure:
    """Draw a plot, with its note and its lower plot, as a Plotly figure; equal plots give equal figures."""
    fig = _draw_items(plot, 1.0 if plot.lower_plot is None else 1.0 - plot.lower_height_share)
    if plot.note:
        note_options = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.62}
        fig.annotations.append({"text": plot.note, "showarrow": False, **note_options, "font": {"size": 14}})
    if plot.lower_plot is not None:
        lower_share = plot.lower_height_share
        lower_fig = _draw_items(plot.lower_plot, lower_share)
        lower_options = {"domain": [0.0, lower_share], "nticks": 4, "automargin": True, "zeroline": False}
        fig.layout |= {
            "xaxis": {**_build_axis(plot.x), "anchor": "y2"},
            "yaxis": {**_build_axis(plot.y), "domain": [lower_share + 0.09, 1.0]},
            "yaxis2": {**_build_axis(plot.lower_plot.y), **lower_options},
        }
        traces_by_name = {trace["name"]: trace for trace in fig.data if "name" in trace}
        for trace in lower_fig.data:
            trace_name = trace.get("name", "")
            if trace_name in traces_by_name:
                traces_by_name[trace_name]["legendgroup"] = trace["legendgroup"] = trace_name
            elif trace_name.removesuffix(labels.LABEL_NAME_SUFFIX) in traces_by_name:
                continue  # The curve of the same name above has the label.
            is_level = trace["x"] is charts.EMPTY_TRACE["x"]  # Its entry in the legend; the line is a shape.
            fig.data.append(trace | {"yaxis": "y2"} | ({} if is_level else {"showlegend": False}))
        for shape in lower_fig.shapes:
            fig.shapes.append(shape | {"yref": "y2"} if shape.get("yref") == "y" else shape)
    return fig.to_figure()


def _draw_items(plot: Plot, height_share: float = 1.0) -> charts.Sketch:
    """Draw the items of one plot with axes, labels and toggles, without its note and its lower plot."""
    fig_height = charts.MAIN_HEIGHT if plot.is_main else FIGURE_HEIGHT
    fig_height = plot.height or (HEIGHT_WITH_HANDLE if plot.handle is not None else fig_height)
    fig = charts.Sketch(_build_axis(plot.x), _build_axis(plot.y), fig_height)
    for item in plot.items:
        match item:
            case Curve():
                if item.shades_between_ends:
                    _add_shading(fig, item)
                fig.data.append(_build_curve(plot, item))
            case Points():
                fig.data.append(_build_points(plot, item))
            case Bars():
                fig.data.append(_build_bars(plot, item))
                bar_mode = "overlay" if item.is_overlaid else "group"
                fig.layout |= {"bargap": item.gap_share, "barmode": bar_mode}
            case Cells():
                fig.data += _build_cells(plot, item)
            case Regions():
                _add_regions(fig, plot, item)
            case Hatching():
                charts.add_hatching(fig, item)
            case Border():
                line_style = {"color": LINE_BY_STYLE[item.style]["color"], "dash": item.dash, "width": 2.5}
                charts.add_border(fig, item, line_style)
            case Mark():
                fig.data.append(_build_mark(plot, item))
            case Band():
                charts.add_band(fig, item.low, item.high, item.name)
            case Level(is_vertical=True):
                line_style = {"color": LINE_BY_STYLE[item.style]["color"], "dash": item.dash, "width": 1.5}
                hover_text = f"{item.name}<br>{plot.x.label}: %{{x:{plot.x.number_format}}}"
                level_trace = build_trace(item.name, [item.value] * 2, plot.y.limits, hover_text)
                fig.data.append({**level_trace, "line": line_style, "opacity": 1.0, "mode": "lines"})
            case Level():
                charts.add_horizontal_line(fig, item.value, item.name, item.dash)
    num_entries = sum(1 + isinstance(item, Cells) for item in plot.items if not isinstance(item, Band))
    if num_entries > 1:
        labels.label_items(fig, plot, fig_height * height_share)
    _add_toggles(fig, plot)
    fig.layout["showlegend"] = num_entries > 1 and any(trace.get("showlegend", True) for trace in fig.data)
    return fig


def _add_toggles(fig: charts.Sketch, plot: Plot) -> None:
    """Group the traces of each toggle and add a legend entry that shows and hides them together."""
    for toggle in plot.toggles:
        legend_options = {"legendgroup": toggle.name, "visible": True if toggle.is_on else "legendonly"}
        for trace in fig.data:
            if trace.get("name", "").removesuffix(labels.LABEL_NAME_SUFFIX) in toggle.item_names:
                trace |= {**legend_options, "showlegend": False}
        entry_trace = {**charts.EMPTY_TRACE, "mode": "lines", "line": {"color": charts.NEUTRAL_COLOR}}
        fig.data.append({**entry_trace, "name": toggle.name, "meta": "toggle", **legend_options})


def draw_on_white(plot: Plot) -> go.Figure:
    """Draw a plot with its title on white paper; add its label if its data are not public."""
    fig = draw_plot(plot)
    if plot.disclosure is not Disclosure.PUBLIC:
        charts.add_label(fig, plot.disclosure.label)
    place_options = {"x": 0, "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8, "l": 10}}
    title_options = {"text": plot.title, "font": {"size": charts.LABEL_FONT_SIZE}, **place_options}
    fig.update_layout(template=load_white_template(), title=title_options)
    top_margin = (fig.layout.margin.t or charts.BUTTONS_HEIGHT) + charts.LABEL_LINE_HEIGHT
    return fig.update_layout(margin={"t": top_margin}, height=fig.layout.height + charts.LABEL_LINE_HEIGHT)


@functools.cache
def load_white_template() -> go.layout.Template:
    """Merge the template of white paper with ours, once: it takes 20 ms."""
    return pio.templates.merge_templates("plotly_white", charts.TEMPLATE)


def to_json(fig: go.Figure) -> str:
    """Return a figure as the text of JSON, with arrays of numbers in base64.

    It is the text of Plotly's `to_json`, in an eighth of its time. That function copies everything first. It still
    writes what this one cannot, such as null for NaN in a list.
    """
    try:
        # These two attributes of Plotly are not public; a test compares the text with what Plotly writes.
        return json.dumps(_to_json_value({"data": fig._data, "layout": fig._layout}), allow_nan=False)
    except (AttributeError, TypeError, ValueError):
        return str(pio.to_json(fig, validate=False))


def _to_json_value(value: Any) -> Any:
    """Convert a part of a figure to what JSON can hold; arrays of numbers become Plotly's typed arrays, in base64."""
    if isinstance(value, dict):
        # Plotly's script takes the ends of an axis as a list only.
        return {
            member_name: item.tolist()
            if member_name == "range" and isinstance(item, np.ndarray)
            else _to_json_value(item)
            for member_name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_to_json_value(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "iu" and value.size:
        value = value.astype(np.result_type(np.min_scalar_type(value.min()), np.min_scalar_type(value.max())))
    if value.dtype not in NAME_BY_DTYPE or not value.size:
        return _to_json_value(value.tolist())
    base64_text = base64.b64encode(value.tobytes()).decode("ascii")
    typed_array = {"dtype": NAME_BY_DTYPE[value.dtype], "bdata": base64_text}
    return typed_array | ({"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {})


def write_hover(plot: Plot, item_name: str) -> str:
    """Return the text at the pointer, in Plotly's template language: the name, then both numbers with their units."""
    return f"{item_name}<br>{_write_coordinate(plot.x, 'x')}<br>{_write_coordinate(plot.y, 'y')}"


def _write_coordinate(axis: Axis, axis_letter: str) -> str:
    """Return one number of the text at the pointer, in Plotly's template language, after the name of its axis."""
    if axis.scale is Scale.NAMES:
        return f"%{{{axis_letter}}}"
    return f"{axis.label}: %{{{axis_letter}:{axis.number_format}}}"


def _build_axis(axis: Axis) -> dict[str, object]:
    """Build Plotly's properties of an axis."""
    if axis.scale is Scale.NAMES:
        return {"title": {"text": axis.heading}, "type": "category", "tickangle": 0}
    if axis.scale is Scale.LOG:
        axis_options = build_log_axis(axis.heading, axis.limits)
        if axis.number_format.endswith("%"):
            axis_options["tickformat"] = "~%"
    else:
        axis_options = build_linear_axis(axis.heading, axis.limits, is_percent=axis.scale is Scale.PERCENT)
    if axis.named_ticks:
        tick_values, tick_texts = zip(*axis.named_ticks, strict=True)
        axis_options |= {"tickvals": tick_values, "ticktext": tick_texts}
    return axis_options


def build_log_axis(axis_title: str, axis_limits: tuple[float, float]) -> dict[str, object]:
    """Build Plotly's properties of a log axis with fixed limits and a small margin at both ends."""
    lower_limit, upper_limit = axis_limits
    num_decades = math.log10(upper_limit / lower_limit)
    margin_decades = AXIS_MARGIN * num_decades
    # Plotly's own ticks read 2, 5, 2, 5 without the power; whole decades with separators read better.
    # On a range like 5 to 10, D2 leaves labels at the two ends only, on which Plotly places the title wrongly.
    tick_step = 1 if num_decades > 2.5 else "D2" if num_decades > 0.5 else "D1"
    tick_options = {"exponentformat": "power"} if tick_step == 1 else {"tickformat": ".0e"}
    if upper_limit <= 1e7 and lower_limit >= 1e-4:
        tick_options = {"tickformat": NUMBER_FORMAT}
    return {
        "title": {"text": axis_title},
        "type": "log",
        "range": [math.log10(lower_limit) - margin_decades, math.log10(upper_limit) + margin_decades],
        "dtick": tick_step,
        **tick_options,
    }


def build_linear_axis(
    axis_title: str, axis_limits: tuple[float, float], is_percent: bool = False
) -> dict[str, object]:
    """Build Plotly's properties of a linear axis with fixed limits, as numbers or in percent, without a margin."""
    # On a short axis, several ticks would read the same without a decimal.
    number_format = (
        NUMBER_FORMAT if not is_percent else ".0%" if axis_limits[1] - axis_limits[0] >= 0.05 else ".1%"
    )
    return {"title": {"text": axis_title}, "range": list(axis_limits), "tickformat": number_format}


def build_trace(
    trace_name: str, x: npt.ArrayLike, y: npt.ArrayLike, hover_text: str, **options: Any
) -> dict[str, Any]:
    """Build a scatter trace as a dictionary.

    ``hover_text`` is in Plotly's template language; ``options`` are further properties, as Plotly has them.
    """
    hover_template = f"{hover_text}<extra></extra>"
    return {"type": "scatter", "x": x, "y": y, "name": trace_name, "hovertemplate": hover_template, **options}


def _build_curve(plot: Plot, curve: Curve) -> dict[str, Any]:
    """Build the trace of a curve: its line, symbols, hover text, legend and error bars."""
    line_style = dict(LINE_BY_STYLE[curve.style])
    if curve.color_style is not None:
        line_style["color"] = LINE_BY_STYLE[curve.color_style]["color"]
    if curve.dash:
        line_style["dash"] = curve.dash
    if curve.width is not None:
        line_style["width"] = curve.width
    if curve.line_shape:
        line_style["shape"] = curve.line_shape
    y_values = _read_heights(plot, curve)
    trace_options: dict[str, Any] = {"line": line_style, "mode": "lines", "opacity": curve.opacity}
    if curve.is_unnamed:
        trace_options["showlegend"] = False
    hover_text = write_hover(plot, curve.name)
    if curve.hover_number is not None:
        hover_text += f"<br>{curve.hover_number[0]}: %{{customdata:.3g}}"
        trace_options["customdata"] = np.asarray(curve.hover_number[1])
    if curve.shades_between_ends:
        trace_options["legendgroup"] = curve.name
    else:
        trace_options |= _build_error_bars(curve, y_values, "y")
    if curve.symbol:
        trace_options |= {"mode": "lines+markers", "marker": {"size": 8, "symbol": curve.symbol}}
    return build_trace(curve.name, np.asarray(curve.x), y_values, hover_text, **trace_options)


def _add_shading(fig: charts.Sketch, curve: Curve) -> None:
    """Fill the area between the low and high ends of a curve; where an end is NaN, the curve stands for it."""
    value_rows = (curve.x, curve.y, curve.low_ends, curve.high_ends)
    x_values, y_values, *both_ends = (np.asarray(row_values, dtype=np.float64) for row_values in value_rows)
    low_ends, high_ends = (np.where(np.isnan(end_values), y_values, end_values) for end_values in both_ends)
    fill_color = _make_transparent(LINE_BY_STYLE[curve.color_style or curve.style]["color"], 0.16)
    charts.add_area(fig, x_values, low_ends, high_ends, fill_color, showlegend=False, legendgroup=curve.name)


def _make_transparent(color: str, opacity: float) -> str:
    """Convert a hexadecimal colour to RGBA with this opacity."""
    red, green, blue = (int(color[digit_position : digit_position + 2], 16) for digit_position in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def _build_error_bars(series: Series, bar_centres: npt.NDArray[Any], axis_letter: str) -> dict[str, Any]:
    """Build the error bars of an item as a property of its trace; empty if it has none."""
    if series.low_ends is None or series.high_ends is None:
        return {}
    low_ends, high_ends = (
        np.asarray(series_ends, dtype=np.float64) for series_ends in (series.low_ends, series.high_ends)
    )
    # Each has its own colour: Streamlit's theme draws all others in one.
    color = charts.NEUTRAL_COLOR if isinstance(series, Bars) else LINE_BY_STYLE[series.style]["color"]
    error_bar_options = {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4, "color": color}
    end_options = {"array": high_ends - bar_centres, "arrayminus": bar_centres - low_ends}
    return {f"error_{axis_letter}": {**error_bar_options, **end_options}}


def _build_bars(plot: Plot, bars: Bars) -> dict[str, Any]:
    """Build the trace of bars with their error bars; they are horizontal if names stand on the vertical axis."""
    is_horizontal = plot.y.scale is Scale.NAMES
    bar_names, bar_ends = map(np.asarray, (bars.y, bars.x) if is_horizontal else (bars.x, bars.y))
    axis_letter, value_axis = ("x", plot.x) if is_horizontal else ("y", plot.y)
    # For a bar that does not begin at 0, Plotly says how long it is.
    number_format = value_axis.number_format
    length_text, end_text = f"%{{{axis_letter}:{number_format}}}", f"%{{customdata[0]:{number_format}}}"
    hover_text = write_hover(plot, bars.name).replace(length_text, end_text)
    for number_index, (hover_label, _) in enumerate(bars.hover_numbers, 1):
        hover_text += f"<br>{hover_label}: %{{customdata[{number_index}]:.3~g}}"
    return dict(
        type="bar",
        **{axis_letter: bar_ends - bars.base_value, "y" if is_horizontal else "x": bar_names},
        **_build_error_bars(bars, bar_ends, axis_letter),
        orientation="h" if is_horizontal else "v",
        base=bars.base_value,
        name=bars.name,
        customdata=np.column_stack(
            [bar_ends, *(np.asarray(hover_values) for _, hover_values in bars.hover_numbers)]
        ),
        marker={"color": LINE_BY_STYLE[bars.style]["color"], "opacity": bars.opacity},
        showlegend=not bars.is_unnamed,
        hovertemplate=f"{hover_text}<extra></extra>",
    )


def _read_heights(plot: Plot, item: Curve | Points) -> npt.NDArray[np.float64]:
    """Return an item's y values, NaN where a log axis has no place for them."""
    y_values = np.asarray(item.y, dtype=np.float64)
    if plot.y.scale is not Scale.LOG:
        return y_values
    return np.where(np.isfinite(y_values) & (y_values > 0.0), y_values, np.nan)


def _add_regions(fig: charts.Sketch, plot: Plot, regions: Regions) -> None:
    """Add regions with their names, colours and hover text."""
    hover_label, _ = regions.hover_number
    hover_text = f"{write_hover(plot, '').removeprefix('<br>')}<br>{hover_label}: %{{customdata:.3~g}}"
    region_styles = [
        (region_name, LINE_BY_STYLE[region_style]["color"])
        for region_name, region_style in regions.region_styles
    ]
    hatching_arrays = [item.values for item in plot.items if isinstance(item, Hatching)]
    charts.add_regions(fig, regions, region_styles, hover_text, hatching_arrays)


def _build_cells(plot: Plot, cells: Cells) -> list[dict[str, Any]]:
    """Build the traces of cells: a heatmap by their ratio to the lightest value, and a contour if they have one."""
    x, y = (np.asarray(v, dtype=np.float64) for v in (cells.x, cells.y))
    value_ratios = cells.values / max(cells.lightest_value, np.finfo(np.float64).tiny)
    color_bar = {"title": {"text": "error ÷ best error", "side": "right"}, "thickness": 12, "len": 0.9}
    tick_texts = [*map("{:g}".format, CELL_RATIO_TICKS[:-1]), "≥ 4"]
    hover_text = f"{write_hover(plot, cells.name)}<br>{cells.name}: %{{customdata:,.3~g}}<extra></extra>"
    # Readable without colours: it goes from light to dark.
    heatmap = go.Heatmap(
        x=x,
        y=y,
        z=np.log10(np.clip(value_ratios, 1.0, CELL_RATIO_TICKS[-1])),
        customdata=cells.values,
        colorscale="Cividis_r",
        zmin=0.0,
        zmax=np.log10(CELL_RATIO_TICKS[-1]),
        colorbar={**color_bar, "tickvals": np.log10(CELL_RATIO_TICKS), "ticktext": tick_texts},
        hovertemplate=hover_text.removeprefix(f"{cells.name}<br>"),
        name=cells.name,
    )
    cell_traces = [heatmap.to_plotly_json()]
    if cells.named_contour_multiple is not None:
        line_style = {"color": LINE_BY_STYLE[Style.SMOOTH]["color"], "width": 2, "dash": "dash"}
        contour_options = charts.build_contour_options(*cells.named_contour_multiple, line_style)
        cell_traces.append({"x": x, "y": y, "z": value_ratios, **contour_options})
    return cell_traces


def _build_points(plot: Plot, points: Points) -> dict[str, Any]:
    """Build the trace of points, with error bars if they have them."""
    y_values = _read_heights(plot, points)
    trace_options: dict[str, Any] = {"showlegend": False} if points.is_unnamed else {}
    marker_options: dict[str, Any] = {"color": LINE_BY_STYLE[points.style]["color"], "size": points.size}
    if points.symbol:
        marker_options["symbol"] = points.symbol
    if points.opacity < 1.0:
        marker_options["opacity"] = points.opacity
    trace_options |= {"mode": "markers", "marker": marker_options, **_build_error_bars(points, y_values, "y")}
    return build_trace(
        points.name, np.asarray(points.x), y_values, write_hover(plot, points.name), **trace_options
    )


def _build_mark(plot: Plot, mark: Mark) -> dict[str, Any]:
    """Build the trace of one marked point."""
    outline_options, mark_color = {"color": "white", "width": 1.5}, LINE_BY_STYLE[mark.style]["color"]
    marker_options = {"color": mark_color, "size": 13, "symbol": mark.symbol, "line": outline_options}
    trace_options = {
        "mode": "markers",
        "marker": marker_options,
        **({"showlegend": False} if mark.is_unnamed else {}),
    }
    hover_text = write_hover(plot, mark.name) + (f"<br>{mark.hover_text}" if mark.hover_text else "")
    return build_trace(mark.name, [mark.x], [mark.y], hover_text, **trace_options)
