"""Grids of a plot as Plotly draws them: regions with their names inside, hatched areas, and borders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.report import charts

PALE = 0.45
"""Opacity of regions, on which lines and words are seen on a light and on a dark page."""
LEAST_SHARE = 0.16
"""Share of the figure's width from which a region is named inside the figure."""
Mask = npt.NDArray[np.bool_]
Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Grid:
    """The places that two columns name.

    Attributes:
        x: Ascending, shape (columns,).
        y: Ascending, shape (rows,).
        places: (row, column) of every row of the columns.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    places: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]

    @classmethod
    def of(cls, x: npt.ArrayLike, y: npt.ArrayLike) -> Grid:
        """Of columns in any order."""
        across, column = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
        upwards, row = np.unique(np.asarray(y, dtype=np.float64), return_inverse=True)
        return cls(across, upwards, (row, column))

    def of_column(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """A column as a matrix, shape (rows, columns); NaN at places that it does not name."""
        cells = np.full((self.y.size, self.x.size), np.nan)
        cells[self.places] = values
        return cells


def regions(
    fig: charts.Drawing,
    grid: Grid,
    values: tuple[npt.ArrayLike, npt.ArrayLike],
    kinds: Sequence[tuple[str, str]],
    hover: str,
    covered: Sequence[npt.ArrayLike],
) -> None:
    """Draw them.

    Args:
        fig: Takes them.
        grid: Where.
        values: Numbers of the kinds, and what stands where the pointer is.
        kinds: (name, colour) of each.
        hover: What stands where the pointer is.
        covered: Columns that hatch places, which names avoid where they can.
    """
    kinds_at = grid.of_column(values[0])
    few = len(kinds)
    fig.add_trace(
        {
            "type": "heatmap",
            "x": grid.x,
            "y": grid.y,
            "z": kinds_at.astype(np.float32),
            "customdata": grid.of_column(values[1]).astype(np.float32),
            "colorscale": [[end / few, color] for at, (_, color) in enumerate(kinds) for end in (at, at + 1)],
            "zmin": -0.5,
            "zmax": few - 0.5,
            "opacity": PALE,
            "showscale": False,
            "hovertemplate": f"{hover}<extra></extra>",
        }
    )
    free = ~np.any([grid.of_column(one) != 0.0 for one in covered], axis=0) if covered else True
    taken: list[Place] = []
    for kind, (name, color) in enumerate(kinds):
        inside = kinds_at == kind
        place = _place(inside & free, taken) or _place(inside, taken)
        if place is not None:
            taken.append(place)
            row, column = place
            # On a log axis Plotly takes the place of a text as a logarithm, unlike that of a point.
            at = {"x": math.log10(grid.x[column]), "y": math.log10(grid.y[row])}
            fig.add_annotation(**at, text=f"<b>{name.replace(': ', ':<br>')}</b>", showarrow=False)
        elif np.any(inside):
            swatch = {"color": color, "size": 12, "symbol": "square", "opacity": PALE}
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


def hatch(fig: charts.Drawing, grid: Grid, values: npt.ArrayLike, name: str, pattern: str) -> None:
    """Hatch the places where these values are not 0."""
    xs: list[float] = []
    ys: list[float] = []
    for x, y in rectangles(grid.of_column(values) != 0.0, grid):
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


def border(
    fig: charts.Drawing, grid: Grid, values: npt.ArrayLike, name: str, line: Mapping[str, Any]
) -> None:
    """A line where these values pass through 0."""
    z = grid.of_column(values)
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


def rectangles(mask: Mask, grid: Grid) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Rectangles that cover a mask: stretches of rows that are alike over neighbouring columns; on log axes."""
    x_edges, y_edges = (np.r_[v[0], np.sqrt(v[1:] * v[:-1]), v[-1]] for v in (grid.x, grid.y))
    outlines = []
    column = 0
    while column < grid.x.size:
        end = column + 1
        while end < grid.x.size and np.array_equal(mask[:, end], mask[:, column]):
            end += 1
        for low, high in _stretches(mask[:, column]):
            outlines.append(((x_edges[column], x_edges[end]), (y_edges[low], y_edges[high])))
        column = end
    return outlines


def _stretches(mask: Mask) -> list[tuple[int, int]]:
    """(first, behind the last) of what is True without a gap."""
    ends = np.flatnonzero(np.diff(np.r_[0, mask.astype(int), 0])).tolist()
    return list(zip(ends[::2], ends[1::2], strict=True))


def _place(mask: Mask, taken: Sequence[Place]) -> Place | None:
    """The cell with the most of its region around it, away from other words; None where there is too little room."""
    rows, columns = mask.shape
    best, found = 0.0, None
    for row in range(rows // 10, rows - rows // 10, 4):
        for low, high in _stretches(mask[row]):
            column = (low + high - 1) // 2
            if any(abs(row - r) < rows / 7 and abs(column - c) < columns / 2.5 for r, c in taken):
                continue
            up = np.argmin(np.r_[mask[row:, column], False])
            down = np.argmin(np.r_[mask[row::-1, column], False])
            room = min((high - low) / columns, 4.0 * min(up, down) / rows)
            if room > best:
                best, found = room, (row, column)
    return found if best >= LEAST_SHARE else None
