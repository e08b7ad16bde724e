"""The mark of a bound that was selected privately, in the plot of an answer, and what that bound costs there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.answer.plot import IN_USE, Cells, Column, Curve, Mark, Plot, Style

SELECTED_MARK_NAME = "Chosen with DP"


def mark_selected_bound(
    plot: Plot, selected_bound: float | Mapping[str, float], curve_name: str = ""
) -> Plot:
    """Return the plot with a mark at a privately drawn bound, in place of `IN_USE`, and the handle there.

    The handle stays where it is if the plot marks a bound of the user's own. A plot without the curve that the bound
    stands on is returned as it is.

    Args:
        plot: The main figure of an answer.
        selected_bound: The bound, or both bounds of a pair by their columns.
        curve_name: Text in the name of the curve that the bound stands on, where no handle says that.
    """
    handle = plot.handle
    second_bound = None if handle is None else handle.second_bound

    def find_bound(axis_values: npt.ArrayLike) -> float:
        """Return the drawn bound; of a pair, the one whose column holds these values."""
        if isinstance(selected_bound, Mapping):
            return selected_bound[_name_column(plot, axis_values)]
        return selected_bound

    if handle and second_bound and any(isinstance(item, Cells) for item in plot.items):
        selected_x, selected_y = find_bound(handle.bounds), find_bound(second_bound.bounds)
    else:
        curve = _find_bound_curve(plot, curve_name)
        if curve is None:
            return plot
        selected_x = find_bound(curve.x)
        selected_y = _read_error(curve, selected_x)
    items = [item for item in plot.items if not (isinstance(item, Mark) and item.name == IN_USE)]
    if handle and not any(isinstance(item, Mark) and item.name.startswith("Your own") for item in items):
        if second_bound is not None:
            second_bound = replace(second_bound, initial_value=find_bound(second_bound.bounds))
        handle = replace(handle, initial_value=selected_x, second_bound=second_bound)
    return replace(
        plot, items=(*items, Mark(SELECTED_MARK_NAME, selected_x, selected_y, Style.TOTAL)), handle=handle
    )


def find_selected_excess(plot: Plot, curve_name: str = "") -> float | None:
    """Return how much more the drawn bound errs than the least error, as a share of that; None without a mark.

    ``curve_name`` is as in `mark_selected_bound`. A pair has the error of the cell that is nearest to it.
    """
    mark = next(
        (item for item in plot.items if isinstance(item, Mark) and item.name == SELECTED_MARK_NAME), None
    )
    if mark is None:
        return None
    error_cells = next((item for item in plot.items if isinstance(item, Cells)), None)
    if error_cells is not None:
        column_index, row_index = (
            int(np.argmin(np.abs(np.log(np.asarray(grid_values) / mark_value))))
            for grid_values, mark_value in ((error_cells.x, mark.x), (error_cells.y, mark.y))
        )
        error_at_selected, error_values = error_cells.values[row_index, column_index], error_cells.values
    else:
        curve = _find_bound_curve(plot, curve_name)
        assert curve is not None
        error_at_selected, error_values = mark.y, np.asarray(curve.y, dtype=np.float64)
    return max(float(error_at_selected / np.nanmin(error_values)) - 1.0, 0.0)


def _find_bound_curve(plot: Plot, curve_name: str) -> Curve | None:
    """Return the curve of the handle, or without a handle one with this text in its name; None if there is none."""
    curves = [item for item in plot.items if isinstance(item, Curve)]
    if (handle := plot.handle) is not None:
        return next((curve for curve in curves if curve.y is handle.errors), None)
    lower_name = curve_name.lower()
    return next((curve for curve in curves if lower_name and lower_name in curve.name.lower()), None)


def _name_column(plot: Plot, values: npt.ArrayLike) -> str:
    """Return the name of the column of the plot's file that holds this very array."""
    if isinstance(values, Column):
        return values.name
    return next(column_name for column_name, column_values in plot.columns.items() if column_values is values)


def _read_error(curve: Curve, bound: float) -> float:
    """Return the error of a curve at a bound; beyond its end it goes on with the last slope on log axes."""
    bounds, curve_errors = (np.asarray(coordinates, dtype=np.float64) for coordinates in (curve.x, curve.y))
    if bound <= bounds[-1] or min(curve_errors[-2:]) <= 0.0:
        return float(np.interp(bound, bounds, curve_errors))
    last_log_slope = math.log(curve_errors[-1] / curve_errors[-2]) / math.log(bounds[-1] / bounds[-2])
    return float(curve_errors[-1] * (bound / bounds[-1]) ** last_log_slope)
