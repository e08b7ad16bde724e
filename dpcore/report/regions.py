"""Draw grids of a plot with Plotly: regions with their names inside, hatched areas, and borders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.plot import Border, Hatching, Regions
from dpcore.contributions import FloatArray
from dpcore.report import charts

REGION_OPACITY = 0.45
"""Opacity of regions, on which lines and words are seen on a light and on a dark page."""
MIN_NAMED_SHARE = 0.16
"""Share of the figure's width from which a region is named inside the figure."""
Mask = npt.NDArray[np.bool_]
Cell = tuple[int, int]


def add_regions(
    fig: charts.Sketch,
    item: Regions,
    region_styles: Sequence[tuple[str, str]],
    hover: str,
    hatchings: Sequence[npt.NDArray[Any]],
) -> None:
    """Draw regions with their names.

    Args:
        fig: The figure that the regions are added to.
        item: The regions.
        region_styles: (name, colour) of each region.
        hover: The text at the pointer.
        hatchings: Arrays like those of the regions, not 0 where cells are hatched; names avoid these if possible.
    """
    x, y = np.asarray(item.x), np.asarray(item.y)
    num_regions = len(region_styles)
    fig.add_trace(
        {
            "type": "heatmap",
            "x": x,
            "y": y,
            "z": item.values.astype(np.float32),
            "customdata": item.hover[1].astype(np.float32),
            "colorscale": [
                [end / num_regions, color]
                for position, (_, color) in enumerate(region_styles)
                for end in (position, position + 1)
            ],
            "zmin": -0.5,
            "zmax": num_regions - 0.5,
            "opacity": REGION_OPACITY,
            "showscale": False,
            "hovertemplate": f"{hover}<extra></extra>",
        }
    )
    is_free = ~np.any([hatching != 0.0 for hatching in hatchings], axis=0) if hatchings else True
    label_cells: list[Cell] = []
    for region_number, (name, color) in enumerate(region_styles):
        region_mask = item.values == region_number
        label_cell = _find_label_cell(region_mask & is_free, label_cells) or _find_label_cell(
            region_mask, label_cells
        )
        if label_cell is not None:
            label_cells.append(label_cell)
            row, column = label_cell
            # On a log axis Plotly takes the place of a text as a logarithm, unlike that of a point.
            position = {"x": math.log10(x[column]), "y": math.log10(y[row])}
            fig.add_annotation(**position, text=f"<b>{name.replace(': ', ':<br>')}</b>", showarrow=False)
        elif np.any(region_mask):
            swatch = {"color": color, "size": 12, "symbol": "square", "opacity": REGION_OPACITY}
            fig.add_trace(
                {
                    "type": "scatter",
                    "x": [None],
                    "y": [None],
                    "name": name,
                    "mode": "markers",
                    "marker": swatch,
                    "hoverinfo": "skip",
                }
            )


def add_hatching(fig: charts.Sketch, item: Hatching) -> None:
    """Hatch the cells where the values are not 0."""
    xs: list[float] = []
    ys: list[float] = []
    for x, y in cover_by_rectangles(item.values != 0.0, np.asarray(item.x), np.asarray(item.y)):
        xs += [x[0], x[1], x[1], x[0], x[0], math.nan]
        ys += [y[0], y[0], y[1], y[1], y[0], math.nan]
    if not xs:
        return
    lines = {
        "shape": item.pattern,
        "fgcolor": charts.NEUTRAL,
        "bgcolor": "rgba(0,0,0,0)",
        "size": 7,
        "solidity": 0.22,
        "fillmode": "overlay",
    }
    fig.add_trace(
        {
            "type": "scatter",
            # Arrays: Plotly checks a list entry by entry, which took 8 ms of the 20 that the figure takes.
            "x": np.array(xs[:-1]),
            "y": np.array(ys[:-1]),
            "mode": "lines",
            "line": {"width": 0},
            "fill": "toself",
            "fillpattern": lines,
            "fillcolor": "rgba(0,0,0,0)",
            "name": item.name,
            "hoverinfo": "skip",
        }
    )


def add_border(fig: charts.Sketch, item: Border, line: Mapping[str, Any]) -> None:
    """Draw a line where the values pass through 0."""
    if np.nanmin(item.values) >= 0.0 or np.nanmax(item.values) <= 0.0:
        return
    fig.add_trace(
        {
            "type": "contour",
            "x": np.asarray(item.x),
            "y": np.asarray(item.y),
            "z": item.values.astype(np.float32),
            "contours": {"type": "constraint", "operation": "=", "value": 0.0},
            "line": line,
            "name": item.name,
            "showlegend": True,
            "hoverinfo": "skip",
        }
    )


def cover_by_rectangles(
    mask: Mask, x: FloatArray, y: FloatArray
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Cover a mask by rectangles: runs of rows that are equal over neighbouring columns; on log axes."""
    x_edges, y_edges = (np.r_[v[0], np.sqrt(v[1:] * v[:-1]), v[-1]] for v in (x, y))
    outlines = []
    column = 0
    while column < x.size:
        end = column + 1
        while end < x.size and np.array_equal(mask[:, end], mask[:, column]):
            end += 1
        for low, high in _find_runs(mask[:, column]):
            outlines.append(((x_edges[column], x_edges[end]), (y_edges[low], y_edges[high])))
        column = end
    return outlines


def _find_runs(mask: Mask) -> list[tuple[int, int]]:
    """Find (first, behind the last) of each run of True."""
    ends = np.flatnonzero(np.diff(np.r_[0, mask.astype(int), 0])).tolist()
    return list(zip(ends[::2], ends[1::2], strict=True))


def _find_label_cell(mask: Mask, label_cells: Sequence[Cell]) -> Cell | None:
    """Find the cell with the most of its region around it, away from other labels; None if there is too little room."""
    rows, columns = mask.shape
    best_room, best_cell = 0.0, None
    for row in range(rows // 10, rows - rows // 10, 4):
        for low, high in _find_runs(mask[row]):
            column = (low + high - 1) // 2
            if any(abs(row - r) < rows / 7 and abs(column - c) < columns / 2.5 for r, c in label_cells):
                continue
            length_up = np.argmin(np.r_[mask[row:, column], False])
            length_down = np.argmin(np.r_[mask[row::-1, column], False])
            room = min((high - low) / columns, 4.0 * min(length_up, length_down) / rows)
            if room > best_room:
                best_room, best_cell = room, (row, column)
    return best_cell if best_room >= MIN_NAMED_SHARE else None
