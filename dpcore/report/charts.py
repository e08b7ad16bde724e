"""The style of all figures, the script that draws them, and the grids of a plot."""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import plotly.io as pio

from dpcore.answer.plot import Border, Hatching, Regions, Style
from dpcore.contributions import FloatArray

_find_module = importlib.import_module("_plotly_utils.optional_imports").get_module
_MODULES_THAT_IMPORT = ("_plotly_utils.basevalidators", "_plotly_utils.utils", "plotly.basedatatypes")


def _import_whole_module(name: str, should_load: bool = True) -> Any:
    """Import a module as Plotly's own function does, but wait until it is wholly loaded.

    None if it is not installed, or ``should_load`` is False and it is not loaded.
    """
    module = _find_module(name, should_load)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return importlib.import_module(name)  # Waits for the thread that imports it.
    return module


# Plotly looks for pandas in `sys.modules`, which holds it as soon as an import begins. If one session drew while
# another one loaded pandas, the page ended in "partially initialized module 'pandas' has no attribute 'Series'": on 3
# of 12 servers that two sessions used right after the start.
for _plotly_module in map(importlib.import_module, _MODULES_THAT_IMPORT):
    _plotly_module.get_module = _import_whole_module  # type: ignore[attr-defined]

TEMPLATE = "sweetspot"
MAIN_HEIGHT = 440
"""Height in pixels of a page's main figure: it is seen whole on a screen of 1280 x 800, below title and inputs."""

# Colours by meaning, after Okabe and Ito; each has at least 3:1 against both the light and the dark page.
# Dash patterns repeat the meaning for those who do not see the colours.
LINE_BY_STYLE: Mapping[Style, Mapping[str, Any]] = {
    Style.CAP: {"color": "#2C7FB8", "dash": "solid", "width": 2.5},
    Style.SMOOTH: {"color": "#D55E00", "dash": "solid", "width": 2.5},
    Style.SAMPLING: {"color": "#009E73", "dash": "dot", "width": 1.5},
    Style.PRIVACY: {"color": "#B0609C", "dash": "dash", "width": 1.5},
    Style.BIAS: {"color": "#B57A00", "dash": "dashdot", "width": 1.5},
    Style.ENTERED: {"color": "#7F7F7F", "dash": "longdash", "width": 1.5},
    Style.CUSTOMARY: {"color": "#5B7083", "dash": "longdashdot", "width": 1.5},
    Style.TOTAL: {"color": "#2C7FB8", "dash": "solid", "width": 2.5},
}
COLOR_ORDER = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.PRIVACY, Style.CUSTOMARY, Style.ENTERED)
BAND_COLOR = "rgba(44, 127, 184, 0.13)"
NEUTRAL_COLOR = "#7F7F7F"

pio.templates[TEMPLATE] = go.layout.Template(
    layout={
        "colorway": [LINE_BY_STYLE[style]["color"] for style in COLOR_ORDER],
        "margin": {"l": 10, "r": 10, "t": 30, "b": 10},
        # Below the axis: above the plot it would lie under the buttons that appear on hover.
        "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0, "title": ""},
        "hovermode": "closest",
        "xaxis": {"automargin": True, "showgrid": True, "zeroline": False},
        "yaxis": {"automargin": True, "showgrid": True, "zeroline": False},
    }
)


class Sketch:
    """A figure under construction: its layout, traces, shapes and annotations as Plotly's properties, by name.

    Plotly checks every property of each trace that is added to its own figure, twice, which took 10 of the 14
    ms of drawing that of Mean. Here nothing is checked: the test of this module lets Plotly check the drawing.

    Args:
        x: The horizontal axis, as Plotly has it.
        y: The other one.
        height: In pixels.
    """

    def __init__(
        self,
        x_axis_options: Mapping[str, object],
        y_axis_options: Mapping[str, object],
        fig_height: int = MAIN_HEIGHT,
    ) -> None:
        # On the right there is room for half of the last tick label: Plotly hides labels that would be cut, and
        # Streamlit's theme overrides the margins of a template.
        self.layout: dict[str, Any] = {
            "height": fig_height,
            "xaxis": x_axis_options,
            "yaxis": y_axis_options,
            "margin": {"r": 28},
        }
        self.data: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []

    def to_figure(self) -> go.Figure:
        """Convert the sketch to a Plotly figure."""
        # Plotly checks a template anew in every figure that names it, which took half of the time here; that of figures
        # that name none it takes as it is. Streamlit sets its own as that one when it is imported.
        if pio.templates.default != TEMPLATE:
            pio.templates.default = TEMPLATE
        lists_by_property = {"shapes": self.shapes, "annotations": self.annotations}
        fig_layout = self.layout | {
            property_name: objects for property_name, objects in lists_by_property.items() if objects
        }
        return go.Figure({"data": self.data, "layout": fig_layout}, _validate=False)


LABEL_CHARACTERS_PER_LINE = 34
"""Characters of a label that fit in one line above the narrowest figure, a third of a page beside a wide axis."""
LABEL_FONT_SIZE = 16

BUTTONS_HEIGHT, LABEL_LINE_HEIGHT = 30, 20
"""Height in pixels of Plotly's row of buttons at the top, and of a line of a label."""


def add_label(fig: go.Figure, label_text: str) -> go.Figure:
    """Add a label above the figure, which becomes higher by it, and return the figure.

    It marks what must not be taken for public and stays in the figure's SVG. It stands below the buttons, which on a
    narrow figure take more than half of the width.
    """
    label_lines = wrap_evenly(label_text, LABEL_CHARACTERS_PER_LINE)
    fig.add_annotation(
        x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False,
        text="<br>".join(label_lines), align="left",
        font={"size": LABEL_FONT_SIZE, "weight": 600},
    )  # fmt: skip
    new_top_margin, fig_height = BUTTONS_HEIGHT + LABEL_LINE_HEIGHT * len(label_lines), fig.layout.height
    # The plot itself stays as high as that of a figure without a label.
    if fig_height is not None:
        fig.layout.height = fig_height + new_top_margin - (fig.layout.margin.t or BUTTONS_HEIGHT)
    return fig.update_layout(margin={"t": new_top_margin})


def wrap_evenly(text: str, max_line_width: int) -> list[str]:
    """Wrap a text into as few lines as possible, none much shorter than the others."""
    min_num_lines = len(textwrap.wrap(text, max_line_width))
    return next(
        wrapped_lines
        for line_width in range(1, max_line_width + 1)
        if len(wrapped_lines := textwrap.wrap(text, line_width, break_long_words=False)) == min_num_lines
    )


EMPTY_TRACE: dict[str, Any] = {"type": "scatter", "x": [None], "y": [None], "hoverinfo": "skip"}
"""A trace that stands in the legend only."""


def add_area(
    fig: Sketch,
    x_values: FloatArray,
    low_ends: FloatArray,
    high_ends: FloatArray,
    fill_color: str,
    **trace_options: Any,
) -> None:
    """Add a trace that fills the area between two curves over ``x_values``.

    ``trace_options`` are further properties of the Plotly trace.
    """
    outline_x = np.concatenate((x_values, x_values[::-1]))
    outline_y = np.concatenate((high_ends, low_ends[::-1]))
    # Without a mode, Plotly draws fewer than 20 points as dots, too.
    fill_options = {"mode": "lines", "fill": "toself", "fillcolor": fill_color, "line": {"width": 0}}
    trace = {"type": "scatter", "x": outline_x, "y": outline_y, "hoverinfo": "skip"}
    fig.data.append({**trace, **fill_options, **trace_options})


def add_horizontal_line(fig: Sketch, y_value: float, line_name: str, line_dash: str) -> None:
    """Add a horizontal line over the whole width, with an entry in the legend."""
    # Not `add_hline`, which looks through all axes of the figure and takes as long as three curves.
    line_style = {"color": NEUTRAL_COLOR, "width": 1, "dash": line_dash}
    end_options = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": y_value, "y1": y_value}
    fig.shapes.append({"type": "line", **end_options, "line": line_style})
    fig.data.append(
        {**EMPTY_TRACE, "name": line_name, "mode": "lines", "line": line_style, "legendgroup": line_name}
    )


def add_band(fig: Sketch, interval_start: float, interval_end: float, band_name: str) -> None:
    """Shade an interval of the horizontal axis, with an entry in the legend."""
    # Not `add_vrect`, which looks through all axes of the figure and takes as long as three curves.
    end_options = {"x0": interval_start, "x1": interval_end, "yref": "paper", "y0": 0, "y1": 1}
    fill_options = {"fillcolor": BAND_COLOR, "line": {"width": 0}, "layer": "below"}
    fig.shapes.append({"type": "rect", **end_options, **fill_options})
    marker_options = {"color": BAND_COLOR, "size": 14, "symbol": "square", "line": {"width": 0}}
    fig.data.append({**EMPTY_TRACE, "name": band_name, "mode": "markers", "marker": marker_options})


REGION_OPACITY = 0.45
"""Opacity of regions, on which lines and words are seen on a light and on a dark page."""
MIN_NAMED_SHARE = 0.16
"""Share of the figure's width from which a region is named inside the figure."""
Mask = npt.NDArray[np.bool_]
GridCell = tuple[int, int]


def add_regions(
    fig: Sketch,
    regions: Regions,
    region_styles: Sequence[tuple[str, str]],
    hover_text: str,
    hatching_arrays: Sequence[npt.NDArray[Any]],
) -> None:
    """Add regions, each with its name inside or, if there is no room, in the legend.

    Args:
        fig: The figure that the regions are added to.
        regions: The regions.
        region_styles: (name, colour) of each region.
        hover_text: The text at the pointer.
        hatching_arrays: Arrays like those of the regions, not 0 where cells are hatched; names avoid these if possible.
    """
    x, y = np.asarray(regions.x), np.asarray(regions.y)
    n = len(region_styles)
    stepped_color_scale = [[i / n, color] for j, (_, color) in enumerate(region_styles) for i in (j, j + 1)]
    heat_options = {
        "colorscale": stepped_color_scale,
        "zmin": -0.5,
        "zmax": n - 0.5,
        "opacity": REGION_OPACITY,
    }
    hover_values = regions.hover_number[1].astype(np.float32)
    hover_options = {"customdata": hover_values, "hovertemplate": f"{hover_text}<extra></extra>"}
    xyz_arrays = {"x": x, "y": y, "z": regions.region_numbers.astype(np.float32)}
    fig.data.append({"type": "heatmap", **xyz_arrays, "showscale": False, **heat_options, **hover_options})
    free_mask = (
        ~np.any([hatching_array != 0.0 for hatching_array in hatching_arrays], axis=0)
        if hatching_arrays
        else True
    )
    taken_label_cells: list[GridCell] = []
    for region_number, (region_text, color) in enumerate(region_styles):
        region_mask = regions.region_numbers == region_number
        label_cell = _find_roomiest_cell(region_mask & free_mask, taken_label_cells)
        label_cell = label_cell or _find_roomiest_cell(region_mask, taken_label_cells)
        if label_cell is not None:
            taken_label_cells.append(label_cell)
            row_index, column_index = label_cell
            # On a log axis Plotly takes the place of a text as a logarithm, unlike that of a point.
            annotation_position = {"x": math.log10(x[column_index]), "y": math.log10(y[row_index])}
            region_name = f"<b>{region_text.replace(': ', ':<br>')}</b>"
            fig.annotations.append({**annotation_position, "text": region_name, "showarrow": False})
        elif np.any(region_mask):
            marker_options = {"color": color, "size": 12, "symbol": "square", "opacity": REGION_OPACITY}
            fig.data.append({**EMPTY_TRACE, "name": region_text, "mode": "markers", "marker": marker_options})


def add_hatching(fig: Sketch, hatching: Hatching) -> None:
    """Hatch the cells in which the values are not 0; add nothing if there are none."""
    hatched_mask, (x_values, y_values) = hatching.values != 0.0, map(np.asarray, (hatching.x, hatching.y))
    outline_x: list[float] = []
    outline_y: list[float] = []
    for (left_edge, right_edge), (bottom_edge, top_edge) in cover_by_rectangles(
        hatched_mask, x_values, y_values
    ):
        outline_x += [left_edge, right_edge, right_edge, left_edge, left_edge, math.nan]
        outline_y += [bottom_edge, bottom_edge, top_edge, top_edge, bottom_edge, math.nan]
    if not outline_x:
        return
    clear_color = "rgba(0,0,0,0)"
    pattern_options = {"shape": hatching.pattern, "fillmode": "overlay", "size": 7, "solidity": 0.22}
    pattern_options |= {"fgcolor": NEUTRAL_COLOR, "bgcolor": clear_color}
    fill_options = {"fill": "toself", "fillpattern": pattern_options, "fillcolor": clear_color}
    line_options = {"mode": "lines", "line": {"width": 0}, "name": hatching.name, "hoverinfo": "skip"}
    # Arrays: Plotly checks a list entry by entry, which took 8 ms of the 20 that the figure takes.
    corner_options = {"x": np.array(outline_x[:-1]), "y": np.array(outline_y[:-1])}
    fig.data.append({"type": "scatter", **corner_options, **fill_options, **line_options})


def add_border(fig: Sketch, border: Border, line_style: Mapping[str, Any]) -> None:
    """Add a line where the values pass through 0; add nothing if all have one sign."""
    if np.nanmin(border.values) >= 0.0 or np.nanmax(border.values) <= 0.0:
        return
    xyz_arrays = {"x": np.asarray(border.x), "y": np.asarray(border.y), "z": border.values.astype(np.float32)}
    fig.data.append({**xyz_arrays, **build_contour_options(border.name, 0.0, line_style)})


def build_contour_options(
    line_name: str, contour_level: float, line_style: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the properties of a trace that draws a line where values on a grid pass a level; the grid is missing."""
    contour_options = {"type": "constraint", "operation": "=", "value": contour_level}
    trace_options = {"line": line_style, "name": line_name, "showlegend": True, "hoverinfo": "skip"}
    return {"type": "contour", "contours": contour_options, **trace_options}


def cover_by_rectangles(
    covered_mask: Mask, x_values: FloatArray, y_values: FloatArray
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Cover the True cells of a mask by rectangles; return ((left, right), (bottom, top)) of each.

    A rectangle is a run of rows that neighbouring columns share.
    """
    x_edges, y_edges = (
        np.r_[axis_values[0], np.sqrt(axis_values[1:] * axis_values[:-1]), axis_values[-1]]
        for axis_values in (x_values, y_values)
    )
    rectangles = []
    start_column = 0
    while start_column < x_values.size:
        end_column = start_column + 1
        while end_column < x_values.size and np.array_equal(
            covered_mask[:, end_column], covered_mask[:, start_column]
        ):
            end_column += 1
        x_ends = x_edges[start_column], x_edges[end_column]
        for start_row, end_row in _find_runs(covered_mask[:, start_column]):
            rectangles.append((x_ends, (y_edges[start_row], y_edges[end_row])))
        start_column = end_column
    return rectangles


def _find_runs(true_mask: Mask) -> list[tuple[int, int]]:
    """Return (first index, index after the last) of each run of True."""
    run_edges = np.flatnonzero(np.diff(np.r_[0, true_mask.astype(int), 0])).tolist()
    return list(zip(run_edges[::2], run_edges[1::2], strict=True))


def _find_roomiest_cell(free_region_mask: Mask, taken_label_cells: Sequence[GridCell]) -> GridCell | None:
    """Return (row, column) of the cell with the most room for a label; None if there is too little room.

    Room is counted within the mask, away from other labels.
    """
    height, width = free_region_mask.shape
    most_room, best_cell = 0.0, None
    for row_index in range(height // 10, height - height // 10, 4):
        for run_start, run_end in _find_runs(free_region_mask[row_index]):
            column_index = (run_start + run_end - 1) // 2
            if any(
                abs(row_index - row) < height / 7 and abs(column_index - column) < width / 2.5
                for row, column in taken_label_cells
            ):
                continue
            num_cells_up = np.argmin(np.r_[free_region_mask[row_index:, column_index], False])
            num_cells_down = np.argmin(np.r_[free_region_mask[row_index::-1, column_index], False])
            cell_room = min((run_end - run_start) / width, 4.0 * min(num_cells_up, num_cells_down) / height)
            if cell_room > most_room:
                most_room, best_cell = cell_room, (row_index, column_index)
    return best_cell if most_room >= MIN_NAMED_SHARE else None
