"""Draw grids of a plot with Plotly: regions with their names inside, hatched areas, and borders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.report import charts

REGION_OPACITY = 0.45
"""Opacity of regions, on which lines and words are seen on a light and on a dark page."""
MIN_NAMED_SHARE = 0.16
"""Share of the figure's width from which a region is named inside the figure."""
Mask = npt.NDArray[np.bool_]
Cell = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid whose cells two columns name.

    Attributes:
        x: Ascending, shape (columns,).
        y: Ascending, shape (rows,).
        cells: (row, column) in the grid for every row of the columns.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    cells: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

    @classmethod
    def from_columns(cls, x: npt.ArrayLike, y: npt.ArrayLike) -> Grid:
        """Build the grid from columns in any order."""
        x_values, column = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
        y_values, row = np.unique(np.asarray(y, dtype=np.float64), return_inverse=True)
        return cls(x_values, y_values, (row, column))

    def to_matrix(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Convert a column to a matrix, shape (rows, columns); NaN at cells that it does not name."""
        cells = np.full((self.y.size, self.x.size), np.nan)
        cells[self.cells] = values
        return cells


def add_regions(
    fig: charts.Drawing,
    grid: Grid,
    values: tuple[npt.ArrayLike, npt.ArrayLike],
    region_styles: Sequence[tuple[str, str]],
    hover: str,
    hatched_columns: Sequence[npt.ArrayLike],
) -> None:
    """Draw regions with their names.

    Args:
        fig: The figure that the regions are added to.
        grid: The grid of the columns.
        values: The number of the region in each row, and the number shown at the pointer.
        region_styles: (name, colour) of each region.
        hover: The text at the pointer.
        hatched_columns: Columns that hatch cells; names avoid these cells if possible.
    """
    region_numbers = grid.to_matrix(values[0])
    num_regions = len(region_styles)
    fig.add_trace(
        {
            "type": "heatmap",
            "x": grid.x,
            "y": grid.y,
            "z": region_numbers.astype(np.float32),
            "customdata": grid.to_matrix(values[1]).astype(np.float32),
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
    is_free = (
        ~np.any([grid.to_matrix(column_values) != 0.0 for column_values in hatched_columns], axis=0)
        if hatched_columns
        else True
    )
    label_cells: list[Cell] = []
    for region_number, (name, color) in enumerate(region_styles):
        region_mask = region_numbers == region_number
        label_cell = _find_label_cell(region_mask & is_free, label_cells) or _find_label_cell(
            region_mask, label_cells
        )
        if label_cell is not None:
            label_cells.append(label_cell)
            row, column = label_cell
            # On a log axis Plotly takes the place of a text as a logarithm, unlike that of a point.
            position = {"x": math.log10(grid.x[column]), "y": math.log10(grid.y[row])}
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


def add_hatching(fig: charts.Drawing, grid: Grid, values: npt.ArrayLike, name: str, pattern: str) -> None:
    """Hatch the cells where these values are not 0."""
    xs: list[float] = []
    ys: list[float] = []
    for x, y in cover_by_rectangles(grid.to_matrix(values) != 0.0, grid):
        xs += [x[0], x[1], x[1], x[0], x[0], math.nan]
        ys += [y[0], y[0], y[1], y[1], y[0], math.nan]
    if not xs:
        return
    lines = {
        "shape": pattern,
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
            "name": name,
            "hoverinfo": "skip",
        }
    )


def add_border(
    fig: charts.Drawing, grid: Grid, values: npt.ArrayLike, name: str, line: Mapping[str, Any]
) -> None:
    """Draw a line where these values pass through 0."""
    z = grid.to_matrix(values)
    if np.nanmin(z) >= 0.0 or np.nanmax(z) <= 0.0:
        return
    fig.add_trace(
        {
            "type": "contour",
            "x": grid.x,
            "y": grid.y,
            "z": z.astype(np.float32),
            "contours": {"type": "constraint", "operation": "=", "value": 0.0},
            "line": line,
            "name": name,
            "showlegend": True,
            "hoverinfo": "skip",
        }
    )


def cover_by_rectangles(mask: Mask, grid: Grid) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Cover a mask by rectangles: runs of rows that are equal over neighbouring columns; on log axes."""
    x_edges, y_edges = (np.r_[v[0], np.sqrt(v[1:] * v[:-1]), v[-1]] for v in (grid.x, grid.y))
    outlines = []
    column = 0
    while column < grid.x.size:
        end = column + 1
        while end < grid.x.size and np.array_equal(mask[:, end], mask[:, column]):
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
