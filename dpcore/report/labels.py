"""Labels at the curves, marks and lines of a plot, in place of a legend.

Places are searched for a narrow figure. Labels that are clear of each other there are so in a wider or higher one, too:
their anchors move apart, and they cover a smaller share of the figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Band, Bars, Border, Cells, Curve, Hatching, Item, Level, Mark, Plot
from dpcore.answer.plot import Points, Regions, Scale
from dpcore.common.wording import format_number, format_percent
from dpcore.contributions import FloatArray
from dpcore.report import charts

AREA_WIDTH, HEIGHT_AROUND = 250.0, 95.0
"""Width in pixels of the area of the narrowest figure, on a phone, and the height of what stands around the area."""
FONT_SIZE, CHARACTER_WIDTH, LINE_HEIGHT, MAX_CHARACTERS = 13, 6.8, 17.0, 22
"""Type size of labels; width of a character and height of a line, in pixels; characters in a line."""
POINT_STEP, LABEL_PADDING, TOP_MARGIN, RIGHT_MARGIN = 7.0, 5.0, 18.0, 28.0
"""Pixels: between points of a line, around a label at its left and right, and of the area that labels leave free."""
LABEL_DISTANCES, MAX_FAR_ANCHORS, MAX_ANCHORS = (
    np.array([3.0, 9.0, 15.0, 22.0, 30.0, 42.0, 60.0, 90.0]),
    12,
    30,
)
"""Pixels from a label to what it names: all for items with up to so many points, the first two for others."""
CROSSING_COST, HIDDEN_CROSSING_COST, MAX_CLEARANCE, CLEARANCE_GAIN = 80.0, 8.0, 50.0, 0.8
"""Costs of a label on an item, in pixels of distance; distance from other items up to which more is a gain."""
LABEL_NAME_SUFFIX = " (label)"
"""End of the name of a label's trace."""


def label_items(fig: charts.Sketch, plot: Plot, fig_height: float) -> None:
    """Add a label at each named item and take the item out of the legend, unless there is no place.

    Args:
        fig: The drawing of the items.
        plot: The plot.
        fig_height: Of the figure, or of this plot's share of it, in pixels.
    """
    if plot.y.scale is Scale.NAMES:
        return
    plot_area = _Area(plot, fig_height - HEIGHT_AROUND)
    for region_label in fig.annotations:  # The names of regions, whose places are logarithms.
        (label_x,), (label_y,) = plot_area.to_pixels([10.0 ** region_label["x"]], [10.0 ** region_label["y"]])
        plot_area.boxes.append(
            (label_x, label_y, CHARACTER_WIDTH * len(region_label["text"]) / 2.0, LINE_HEIGHT)
        )
    # Those with few possible places come first, and those that are hidden at first come last.
    labelled_types: list[type] = [Mark, Band, Bars, Curve, Border, Cells, Points, Level, Hatching]
    items_to_label = [
        item for item in plot.items if type(item) in labelled_types and not getattr(item, "is_unnamed", False)
    ]
    for item in sorted(
        items_to_label, key=lambda item: (plot.is_hidden(_get_name(item)), labelled_types.index(type(item)))
    ):
        item_name, label_text = _get_name(item), write_label(plot, item)
        label_place = plot_area.find_place(item_name, label_text)
        traces_of_item = [trace for trace in fig.data if trace.get("name") == item_name]
        for trace in traces_of_item:
            trace["showlegend"] = label_place is None and bool(plot_area.anchors[item_name].size)
        if label_place is None or not traces_of_item:
            continue
        label_x, label_y, text_side = label_place
        font: dict[str, Any] = {"size": FONT_SIZE}
        # On a map, the colour of text is the most legible one.
        if not isinstance(plot.items[0], Cells | Regions):
            trace_style = traces_of_item[0].get("line") or traces_of_item[0]["marker"]
            font["color"] = charts.NEUTRAL_COLOR if isinstance(item, Band) else trace_style["color"]
        spaced_text = f"\u2002{label_text}\u2002".replace("<br>", "\u2002<br>\u2002")
        text_options = {"text": [spaced_text], "textposition": f"middle {text_side}", "textfont": font}
        trace_options = {
            "name": item_name + LABEL_NAME_SUFFIX,
            "mode": "text",
            "showlegend": False,
            "cliponaxis": False,
        }
        fig.data.append(
            {**charts.EMPTY_TRACE, "x": [label_x], "y": [label_y], **text_options, **trace_options}
        )


def _get_name(item: Item) -> str:
    """Return the name that an item has in the legend; empty if it has none."""
    return (item.named_contour_multiple or ("",))[0] if isinstance(item, Cells) else getattr(item, "name", "")


def write_label(plot: Plot, item: Item) -> str:
    """Return the text of an item's label, with line breaks.

    It is the item's own label, or its name and, for a mark on an axis of numbers, its value.
    """
    own_label = getattr(item, "label", "")
    line_width = MAX_CHARACTERS + 10 * isinstance(item, Level)
    wrapped_label = "<br>".join(charts.wrap_evenly(own_label or _get_name(item) or " ", line_width))
    if isinstance(item, Mark) and not own_label and plot.x.scale is not Scale.NAMES:
        wrapped_label += (
            f"<br><b>{(format_percent if plot.x.scale is Scale.PERCENT else format_number)(item.x)}</b>"
        )
    return wrapped_label


class _Area:
    """The area of a plot in pixels, from its lower left corner, with the points of its items by their names.

    Attributes:
        plot: The plot.
        height: Height of the area in pixels.
        category_names: Names on an axis of names, in the order of their first use.
        boxes: Labels so far: the middle of each, in x and y, and half of its width and height.
        anchors: Points at which an item may have its label, by its name, shape (n, 2).
        points: Points of an item that cost a label that lies on one of them, likewise; also those of the handle.
    """

    def __init__(self, plot: Plot, area_height: float) -> None:
        self.plot, self.height = plot, area_height
        self.category_names: list[str] = []
        if plot.x.scale is Scale.NAMES:
            all_names = [str(x) for item in plot.items for x in np.ravel(np.asarray(getattr(item, "x", ())))]
            self.category_names = list(dict.fromkeys(all_names))
        self.boxes: list[tuple[float, float, float, float]] = []
        self.anchors: dict[str, FloatArray] = {}
        self.points: dict[str, FloatArray] = {}
        for item in plot.items:
            if not isinstance(item, Regions):
                item_points = np.column_stack(self._list_points(item))
                item_points = item_points[
                    np.all((item_points >= 0.0) & (item_points <= (AREA_WIDTH, area_height)), axis=1)
                ]
                self.anchors[_get_name(item)] = item_points
                self.points[_get_name(item)] = np.vstack(
                    [item_points, self._list_obstacles(item, item_points)]
                )
        if (handle := plot.handle) is not None:
            x, second_bound, bounds = handle.initial_value, handle.second_bound, np.asarray(handle.bounds)
            y = np.interp(x, bounds, np.ravel(handle.errors)[: bounds.size])
            if second_bound is not None and np.size(second_bound.bounds) > 1:  # A map.
                y = second_bound.initial_value
            self.points[" handle"] = _surround(np.column_stack(self.to_pixels([x], [y])), 34.0, 22.0)

    def to_pixels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Convert points to pixels from the area's corner; return (x, y), NaN where a log axis has no place."""
        return self._scale(self.plot.x, x, AREA_WIDTH), self._scale(self.plot.y, y, self.height)

    def _scale(self, axis: Axis, axis_values: npt.ArrayLike, axis_length: float) -> FloatArray:
        """Convert values or names on an axis to distances from its start, in pixels like ``axis_length``.

        NaN as in `to_pixels`.
        """
        if axis.scale is Scale.NAMES:
            category_indices = [self.category_names.index(str(value)) for value in np.asarray(axis_values)]
            return (np.array(category_indices) + 0.5) * axis_length / len(self.category_names)
        numeric_values = np.asarray(axis_values, dtype=np.float64)
        axis_ends = np.array(axis.limits, dtype=np.float64)
        if axis.scale is Scale.LOG:
            numeric_values = np.log(np.where(numeric_values > 0.0, numeric_values, np.nan))
            axis_ends = np.log(axis_ends)
        return np.asarray((numeric_values - axis_ends[0]) / (axis_ends[1] - axis_ends[0]) * axis_length)

    def _list_points(self, item: Item) -> tuple[FloatArray, FloatArray]:
        """Return (x, y) in pixels of points along an item, one every `POINT_STEP` on lines; some are outside or NaN."""
        grid_x, grid_y = np.arange(0.0, AREA_WIDTH, POINT_STEP), np.arange(0.0, self.height, POINT_STEP)
        match item:
            case Level(is_vertical=True):
                return np.full(grid_y.size, self._scale(self.plot.x, item.value, AREA_WIDTH)), grid_y
            case Level():
                return grid_x, np.full(grid_x.size, self._scale(self.plot.y, item.value, self.height))
            case Band():
                band_ends = self._scale(self.plot.x, [item.low, item.high], AREA_WIDTH)
                return np.full(grid_y.size, np.clip(band_ends, 0.0, AREA_WIDTH).mean()), grid_y
            case Mark():
                return self.to_pixels([item.x], [item.y])
            case Cells() | Border() | Hatching():
                low_mask = item.values <= 0.0
                if isinstance(item, Cells):
                    contour_multiple = (item.named_contour_multiple or ("", 0.0))[1]
                    low_mask = item.values / item.lightest_value - contour_multiple <= 0.0
                crossed_mask = (low_mask[1:, 1:] != low_mask[:-1, 1:]) | (
                    low_mask[1:, 1:] != low_mask[1:, :-1]
                )
                crossed_mask = ~low_mask[1:, 1:] if isinstance(item, Hatching) else crossed_mask
                i, j = (v[:: max(v.size // 150, 1)] for v in np.nonzero(crossed_mask))
                return self.to_pixels(np.asarray(item.x)[1:][j], np.asarray(item.y)[1:][i])
            case Curve() if self.plot.x.scale is not Scale.NAMES:
                x, y = self.to_pixels(item.x, item.y)
                finite_mask = np.isfinite(x) & np.isfinite(y)
                x, y = x[finite_mask], np.clip(y[finite_mask], -1e4, 1e4)
                path_lengths = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))[: x.size]
                path_positions = (
                    np.arange(0.0, path_lengths[-1] + POINT_STEP, POINT_STEP) if x.size else path_lengths
                )
                return (
                    (np.interp(path_positions, path_lengths, x), np.interp(path_positions, path_lengths, y))
                    if x.size
                    else (x, y)
                )
            case Curve() | Points() | Bars():
                return self.to_pixels(item.x, item.y)
        return np.empty(0), np.empty(0)

    def _list_obstacles(self, item: Item, item_points: FloatArray) -> FloatArray:
        """Return further points that labels avoid, shape (n, 2): around a mark, in bars, on whiskers."""
        if isinstance(item, Mark):
            return _surround(item_points, 8.0, 8.0)
        if not isinstance(item, Bars | Points) or not item_points.size:
            return np.empty((0, 2))
        end_values = [np.full(np.size(item.y), item.base_value)] if isinstance(item, Bars) else []
        end_values += [
            np.asarray(series_end)
            for series_end in (item.y, item.low_ends, item.high_ends)
            if series_end is not None
        ]
        x, _ = self.to_pixels(item.x, item.y)
        end_heights = np.nan_to_num(
            [self._scale(self.plot.y, series_end, self.height) for series_end in end_values]
        )
        half_width = 0.35 * AREA_WIDTH / x.size if isinstance(item, Bars) else 4.0
        height_rows = np.linspace(end_heights.min(axis=0), end_heights.max(axis=0), 30)
        return np.vstack(
            [
                np.column_stack([x + x_shift, height_row])
                for x_shift in (-half_width, half_width)
                for height_row in height_rows
            ]
        )

    def find_place(self, item_name: str, label_text: str) -> tuple[float | str, float | str, str] | None:
        """Find the place of a label at the least cost, and keep it; return (x, y, side), None if there is no place.

        x and y are values or names on the axes.
        """
        all_anchors = self.anchors[item_name]
        label_lines = label_text.replace("<b>", "").replace("</b>", "").split("<br>")
        if not all_anchors.size:
            return None
        anchors = all_anchors[:: -(-len(all_anchors) // MAX_ANCHORS)]
        half_width = CHARACTER_WIDTH * max(map(len, label_lines)) / 2.0
        half_height = LINE_HEIGHT * len(label_lines) / 2.0
        distances = LABEL_DISTANCES if len(anchors) <= MAX_FAR_ANCHORS else LABEL_DISTANCES[:2]
        vertical_shifts = np.append(-distances - half_height, distances + half_height)
        anchor_indices, vertical_shifts, horizontal_sides = (
            v.ravel() for v in np.meshgrid(range(len(anchors)), vertical_shifts, (0.0, 1.0, -1.0))
        )
        x = anchors[anchor_indices.astype(int), 0] + horizontal_sides * (half_width + LABEL_PADDING)
        y = anchors[anchor_indices.astype(int), 1] + vertical_shifts
        outside_mask = (x < half_width) | (x + half_width > AREA_WIDTH + RIGHT_MARGIN)
        outside_mask |= (y < half_height) | (y + half_height > self.height - TOP_MARGIN)
        for taken_x, taken_y, taken_half_width, taken_half_height in self.boxes:
            outside_mask |= (abs(x - taken_x) < half_width + taken_half_width + 4.0) & (
                abs(y - taken_y) < half_height + taken_half_height
            )
        if outside_mask.all():
            return None
        x, y, anchor_indices, horizontal_sides, vertical_shifts = (
            v[~outside_mask] for v in (x, y, anchor_indices, horizontal_sides, vertical_shifts)
        )
        place_costs = abs(vertical_shifts) + 10.0 * abs(horizontal_sides) + 10.0 * (vertical_shifts > 0.0)
        clearances = np.full(x.size, MAX_CLEARANCE)
        for other_name, other_points in self.points.items():
            if other_points.size:
                gaps_across = np.abs(other_points[:, 0] - x[:, None]) - half_width
                gaps_up = np.abs(other_points[:, 1] - y[:, None]) - half_height
                gaps_between = np.maximum(gaps_across, gaps_up, out=gaps_up).min(axis=1)
                is_hidden = self.plot.is_hidden(other_name)
                place_costs += (HIDDEN_CROSSING_COST if is_hidden else CROSSING_COST) * (gaps_between < 1.0)
                if other_name != item_name and not is_hidden:
                    clearances = np.minimum(clearances, gaps_between)
        place_costs -= CLEARANCE_GAIN * np.maximum(clearances, 0.0)
        best_place_index = int(np.argmin(place_costs))
        self.boxes.append((x[best_place_index], y[best_place_index], half_width, half_height))
        anchor_x = float(anchors[int(anchor_indices[best_place_index]), 0])
        side = ("center", "right", "left")[int(horizontal_sides[best_place_index])]
        return (
            self._read_axis_value(self.plot.x, anchor_x / AREA_WIDTH),
            self._read_axis_value(self.plot.y, y[best_place_index] / self.height),
            side,
        )

    def _read_axis_value(self, axis: Axis, axis_share: float) -> float | str:
        """Convert a share of an axis's length to the value, or the name, there."""
        if axis.scale is Scale.NAMES:
            return self.category_names[int(axis_share * len(self.category_names))]
        low, axis_high = axis.limits
        return float(
            low * (axis_high / low) ** axis_share
            if axis.scale is Scale.LOG
            else low + (axis_high - low) * axis_share
        )


def _surround(centre_points: FloatArray, half_width: float, half_height: float) -> FloatArray:
    """Return a grid of 5 × 5 points around each point, within the half width and height, shape (25 n, 2)."""
    grid_shifts = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), axis=-1).reshape(-1, 2)
    surrounding_points: FloatArray = (
        centre_points[:, None] + grid_shifts * (half_width, half_height)
    ).reshape(-1, 2)
    return surrounding_points
