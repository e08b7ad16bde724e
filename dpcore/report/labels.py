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
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.report import charts

WIDTH, HEIGHT_AROUND = 250.0, 95.0
"""Width in pixels of the area of the narrowest figure, on a phone, and the height of what stands around the area."""
SIZE, CHARACTER_WIDTH, LINE_HEIGHT, MAX_CHARACTERS = 13, 6.8, 17.0, 22
"""Type size of labels; width of a character and height of a line, in pixels; characters in a line."""
STEP, PADDING, TOP_MARGIN, RIGHT_MARGIN = 7.0, 5.0, 18.0, 28.0
"""Pixels: between points of a line, around a label at its left and right, and of the area that labels leave free."""
DISTANCES, MAX_FAR_ANCHORS, MAX_ANCHORS = np.array([3.0, 9.0, 15.0, 22.0, 30.0, 42.0, 60.0, 90.0]), 12, 30
"""Pixels from a label to what it names: all for items with up to so many points, the first two for others."""
CROSSING_COST, HIDDEN_CROSSING_COST, MAX_CLEARANCE, CLEARANCE_GAIN = 80.0, 8.0, 50.0, 0.8
"""Costs of a label on an item, in pixels of distance; distance from other items up to which more is a gain."""
SUFFIX = " (label)"
"""End of the name of a label's trace."""


def label_items(fig: charts.Sketch, plot: Plot, height: float) -> None:
    """Add a label at each named item and take the item out of the legend, unless there is no place.

    Args:
        fig: The drawing of the items.
        plot: The plot.
        height: Of the figure, or of this plot's share of it, in pixels.
    """
    if plot.y.scale is Scale.NAMES:
        return
    area = _Area(plot, height - HEIGHT_AROUND)
    for region_label in fig.annotations:  # The names of regions, whose places are logarithms.
        (x,), (y,) = area.to_pixels([10.0 ** region_label["x"]], [10.0 ** region_label["y"]])
        area.boxes.append((x, y, CHARACTER_WIDTH * len(region_label["text"]) / 2.0, LINE_HEIGHT))
    # Those with few possible places come first, and those that are hidden at first come last.
    types: list[type] = [Mark, Band, Bars, Curve, Border, Cells, Points, Level, Hatching]
    items = [item for item in plot.items if type(item) in types and not getattr(item, "is_unnamed", False)]
    for item in sorted(items, key=lambda item: (plot.is_hidden(_get_name(item)), types.index(type(item)))):
        item_name, label_text = _get_name(item), write_label(plot, item)
        place = area.find_place(item_name, label_text)
        traces = [trace for trace in fig.data if trace.get("name") == item_name]
        for trace in traces:
            trace["showlegend"] = place is None and bool(area.anchors[item_name].size)
        if place is None or not traces:
            continue
        x, y, side = place
        font: dict[str, Any] = {"size": SIZE}
        # On a map, the colour of text is the most legible one.
        if not isinstance(plot.items[0], Cells | Regions):
            trace_style = traces[0].get("line") or traces[0]["marker"]
            font["color"] = charts.NEUTRAL_COLOR if isinstance(item, Band) else trace_style["color"]
        spaced_text = f"\u2002{label_text}\u2002".replace("<br>", "\u2002<br>\u2002")
        text_options = {"text": [spaced_text], "textposition": f"middle {side}", "textfont": font}
        trace_options = {"name": item_name + SUFFIX, "mode": "text", "showlegend": False, "cliponaxis": False}
        fig.data.append({**charts.EMPTY_TRACE, "x": [x], "y": [y], **text_options, **trace_options})


def _get_name(item: Item) -> str:
    """Return the name that an item has in the legend; empty if it has none."""
    return (item.named_contour_multiple or ("",))[0] if isinstance(item, Cells) else getattr(item, "name", "")


def write_label(plot: Plot, item: Item) -> str:
    """Return the text of an item's label, with line breaks.

    It is the item's own label, or its name and, for a mark on an axis of numbers, its value.
    """
    own_label = getattr(item, "label", "")
    line_width = MAX_CHARACTERS + 10 * isinstance(item, Level)
    text = "<br>".join(charts.wrap_evenly(own_label or _get_name(item) or " ", line_width))
    if isinstance(item, Mark) and not own_label and plot.x.scale is not Scale.NAMES:
        text += f"<br><b>{(wording.percent if plot.x.scale is Scale.PERCENT else wording.number)(item.x)}</b>"
    return text


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

    def __init__(self, plot: Plot, height: float) -> None:
        self.plot, self.height = plot, height
        self.category_names = list(
            dict.fromkeys(str(x) for item in plot.items for x in np.ravel(np.asarray(getattr(item, "x", ()))))
        )
        self.boxes: list[tuple[float, float, float, float]] = []
        self.anchors: dict[str, FloatArray] = {}
        self.points: dict[str, FloatArray] = {}
        for item in plot.items:
            if not isinstance(item, Regions):
                points = np.column_stack(self._list_points(item))
                points = points[np.all((points >= 0.0) & (points <= (WIDTH, height)), axis=1)]
                self.anchors[_get_name(item)] = points
                self.points[_get_name(item)] = np.vstack([points, self._list_obstacles(item, points)])
        if (handle := plot.handle) is not None:
            x, second_bound, bounds = handle.initial_value, handle.second_bound, np.asarray(handle.bounds)
            y = np.interp(x, bounds, np.ravel(handle.errors)[: bounds.size])
            if second_bound is not None and np.size(second_bound.bounds) > 1:  # A map.
                y = second_bound.initial_value
            self.points[" handle"] = _surround(np.column_stack(self.to_pixels([x], [y])), 34.0, 22.0)

    def to_pixels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Convert points to pixels from the area's corner; return (x, y), NaN where a log axis has no place."""
        return self._scale(self.plot.x, x, WIDTH), self._scale(self.plot.y, y, self.height)

    def _scale(self, axis: Axis, values: npt.ArrayLike, length: float) -> FloatArray:
        """Convert values or names on an axis to distances from its start, in pixels like ``length``.

        NaN as in `to_pixels`.
        """
        if axis.scale is Scale.NAMES:
            indices = [self.category_names.index(str(value)) for value in np.asarray(values)]
            return (np.array(indices) + 0.5) * length / len(self.category_names)
        numbers, axis_ends = np.asarray(values, dtype=np.float64), np.array(axis.limits, dtype=np.float64)
        if axis.scale is Scale.LOG:
            numbers, axis_ends = np.log(np.where(numbers > 0.0, numbers, np.nan)), np.log(axis_ends)
        return np.asarray((numbers - axis_ends[0]) / (axis_ends[1] - axis_ends[0]) * length)

    def _list_points(self, item: Item) -> tuple[FloatArray, FloatArray]:
        """Return (x, y) in pixels of points along an item, one every `STEP` on lines; some lie outside or are NaN."""
        grid_x, grid_y = np.arange(0.0, WIDTH, STEP), np.arange(0.0, self.height, STEP)
        match item:
            case Level(is_vertical=True):
                return np.full(grid_y.size, self._scale(self.plot.x, item.value, WIDTH)), grid_y
            case Level():
                return grid_x, np.full(grid_x.size, self._scale(self.plot.y, item.value, self.height))
            case Band():
                band_ends = self._scale(self.plot.x, [item.low, item.high], WIDTH)
                return np.full(grid_y.size, np.clip(band_ends, 0.0, WIDTH).mean()), grid_y
            case Mark():
                return self.to_pixels([item.x], [item.y])
            case Cells() | Border() | Hatching():
                low_mask = item.values <= 0.0
                if isinstance(item, Cells):
                    contour_multiple = (item.named_contour_multiple or ("", 0.0))[1]
                    low_mask = item.values / item.lightest_value - contour_multiple <= 0.0
                cell_mask = (low_mask[1:, 1:] != low_mask[:-1, 1:]) | (low_mask[1:, 1:] != low_mask[1:, :-1])
                cell_mask = ~low_mask[1:, 1:] if isinstance(item, Hatching) else cell_mask
                i, j = (v[:: max(v.size // 150, 1)] for v in np.nonzero(cell_mask))
                return self.to_pixels(np.asarray(item.x)[1:][j], np.asarray(item.y)[1:][i])
            case Curve() if self.plot.x.scale is not Scale.NAMES:
                x, y = self.to_pixels(item.x, item.y)
                finite_mask = np.isfinite(x) & np.isfinite(y)
                x, y = x[finite_mask], np.clip(y[finite_mask], -1e4, 1e4)
                lengths = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))[: x.size]
                steps = np.arange(0.0, lengths[-1] + STEP, STEP) if x.size else lengths
                return (np.interp(steps, lengths, x), np.interp(steps, lengths, y)) if x.size else (x, y)
            case Curve() | Points() | Bars():
                return self.to_pixels(item.x, item.y)
        return np.empty(0), np.empty(0)

    def _list_obstacles(self, item: Item, points: FloatArray) -> FloatArray:
        """Return further points that labels avoid, shape (n, 2): around a mark, in bars, on whiskers."""
        if isinstance(item, Mark):
            return _surround(points, 8.0, 8.0)
        if not isinstance(item, Bars | Points) or not points.size:
            return points
        end_values = [np.full(np.size(item.y), item.base_value)] if isinstance(item, Bars) else []
        end_values += [np.asarray(end) for end in (item.y, item.low_ends, item.high_ends) if end is not None]
        x, _ = self.to_pixels(item.x, item.y)
        heights = np.nan_to_num([self._scale(self.plot.y, end, self.height) for end in end_values])
        half_width = 0.35 * WIDTH / x.size if isinstance(item, Bars) else 4.0
        height_rows = np.linspace(heights.min(axis=0), heights.max(axis=0), 30)
        return np.vstack(
            [np.column_stack([x + shift, row]) for shift in (-half_width, half_width) for row in height_rows]
        )

    def find_place(self, name: str, text: str) -> tuple[float | str, float | str, str] | None:
        """Find the place of a label at the least cost, and keep it; return (x, y, side), None if there is no place.

        x and y are values or names on the axes.
        """
        all_anchors, lines = self.anchors[name], text.replace("<b>", "").replace("</b>", "").split("<br>")
        if not all_anchors.size:
            return None
        anchors = all_anchors[:: -(-len(all_anchors) // MAX_ANCHORS)]
        half_width, half_height = CHARACTER_WIDTH * max(map(len, lines)) / 2.0, LINE_HEIGHT * len(lines) / 2.0
        distances = DISTANCES if len(anchors) <= MAX_FAR_ANCHORS else DISTANCES[:2]
        shifts = np.append(-distances - half_height, distances + half_height)
        indices, shifts, sides = (
            v.ravel() for v in np.meshgrid(range(len(anchors)), shifts, (0.0, 1.0, -1.0))
        )
        x = anchors[indices.astype(int), 0] + sides * (half_width + PADDING)
        y = anchors[indices.astype(int), 1] + shifts
        bad_mask = (x < half_width) | (x + half_width > WIDTH + RIGHT_MARGIN)
        bad_mask |= (y < half_height) | (y + half_height > self.height - TOP_MARGIN)
        for box_x, box_y, box_width, box_height in self.boxes:
            bad_mask |= (abs(x - box_x) < half_width + box_width + 4.0) & (
                abs(y - box_y) < half_height + box_height
            )
        if bad_mask.all():
            return None
        x, y, indices, sides, shifts = (v[~bad_mask] for v in (x, y, indices, sides, shifts))
        costs = abs(shifts) + 10.0 * abs(sides) + 10.0 * (shifts > 0.0)
        clearances = np.full(x.size, MAX_CLEARANCE)
        for other_name, points in self.points.items():
            if points.size:
                gaps_across = abs(points[:, 0] - x[:, None]) - half_width
                gaps = np.maximum(gaps_across, abs(points[:, 1] - y[:, None]) - half_height).min(axis=1)
                is_hidden = self.plot.is_hidden(other_name)
                costs += (HIDDEN_CROSSING_COST if is_hidden else CROSSING_COST) * (gaps < 1.0)
                if other_name != name and not is_hidden:
                    clearances = np.minimum(clearances, gaps)
        costs -= CLEARANCE_GAIN * np.maximum(clearances, 0.0)
        i = int(np.argmin(costs))
        self.boxes.append((x[i], y[i], half_width, half_height))
        anchor_x, side = float(anchors[int(indices[i]), 0]), ("center", "right", "left")[int(sides[i])]
        return self._read(self.plot.x, anchor_x / WIDTH), self._read(self.plot.y, y[i] / self.height), side

    def _read(self, axis: Axis, share: float) -> float | str:
        """Convert a share of an axis's length to the value, or the name, there."""
        if axis.scale is Scale.NAMES:
            return self.category_names[int(share * len(self.category_names))]
        low, high = axis.limits
        return float(low * (high / low) ** share if axis.scale is Scale.LOG else low + (high - low) * share)


def _surround(points: FloatArray, half_width: float, half_height: float) -> FloatArray:
    """Return a grid of 5 × 5 points around each point, within the half width and height, shape (25 n, 2)."""
    shifts = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), axis=-1).reshape(-1, 2)
    grid: FloatArray = (points[:, None] + shifts * (half_width, half_height)).reshape(-1, 2)
    return grid
