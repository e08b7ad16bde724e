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
    """Add a label at each named item and take its entry out of the legend; one that finds no place keeps its entry.

    Args:
        fig: The drawing of the items.
        plot: The plot.
        height: Of the figure, or of this plot's share of it, in pixels.
    """
    if plot.y.scale is Scale.NAMES:
        return
    area = _Area(plot, height - HEIGHT_AROUND)
    for note in fig.annotations:  # The names of regions, whose places are logarithms.
        (x,), (y,) = area.to_pixels([10.0 ** note["x"]], [10.0 ** note["y"]])
        area.boxes.append((x, y, CHARACTER_WIDTH * len(note["text"]) / 2.0, LINE_HEIGHT))
    # Those with few possible places come first, and those that are hidden at first come last.
    order: list[type] = [Mark, Band, Bars, Curve, Border, Cells, Points, Level, Hatching]
    items = [item for item in plot.items if type(item) in order and not getattr(item, "is_unnamed", False)]
    for item in sorted(items, key=lambda item: (plot.is_hidden(_name(item)), order.index(type(item)))):
        name, text = _name(item), write_label(plot, item)
        place = area.find_place(name, text)
        traces = [trace for trace in fig.data if trace.get("name") == name]
        for trace in traces:
            trace["showlegend"] = place is None and bool(area.anchors[name].size)
        if place is None or not traces:
            continue
        x, y, side = place
        style = (
            {"color": charts.NEUTRAL_COLOR}
            if isinstance(item, Band)
            else traces[0].get("line") or traces[0]["marker"]
        )
        # On a map, the colour of text is the most legible one.
        is_map = isinstance(plot.items[0], Cells | Regions)
        font = {"size": SIZE} if is_map else {"size": SIZE, "color": style["color"]}
        spaced_text = f"\u2002{text}\u2002".replace("<br>", "\u2002<br>\u2002")
        label: dict[str, Any] = {
            "mode": "text",
            "text": [spaced_text],
            "textposition": f"middle {side}",
            "textfont": font,
        }
        label |= {"x": [x], "y": [y], "name": name + SUFFIX, "showlegend": False, "cliponaxis": False}
        fig.data.append(charts.EMPTY_TRACE | label)


def _name(item: Item) -> str:
    """Return the name of an item's trace in the legend; empty for none."""
    return (item.named_contour_multiple or ("",))[0] if isinstance(item, Cells) else getattr(item, "name", "")


def write_label(plot: Plot, item: Item) -> str:
    """Write the label of an item: its own label or its name; that of a mark has its value in a line of its own."""
    own_label = getattr(item, "label", "")
    text = "<br>".join(
        charts.wrap_evenly(own_label or _name(item) or " ", MAX_CHARACTERS + 10 * isinstance(item, Level))
    )
    if isinstance(item, Mark) and not own_label and plot.x.scale is not Scale.NAMES:
        text += f"<br><b>{(wording.percent if plot.x.scale is Scale.PERCENT else wording.number)(item.x)}</b>"
    return text


class _Area:
    """The area of a plot in pixels, from its lower left corner, with the points of its items by their names.

    ``anchors`` are the points at which an item may have its label; a label costs as many ``points`` as it lies on.
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
                is_inside = np.all((points >= 0.0) & (points <= (WIDTH, height)), axis=1)
                self.anchors[_name(item)] = points[is_inside]
                self.points[_name(item)] = np.vstack(
                    [points[is_inside], self._list_obstacles(item, points[is_inside])]
                )
        if (handle := plot.handle) is not None:
            second, start = handle.second_bound, handle.initial_value
            is_map = second is not None and np.size(second.bounds) > 1
            error = np.interp(
                start, np.asarray(handle.bounds), np.ravel(handle.errors)[: np.size(handle.bounds)]
            )
            y = second.initial_value if second is not None and is_map else error
            self.points[" handle"] = _surround(np.column_stack(self.to_pixels([start], [y])), 34.0, 22.0)

    def to_pixels(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return where points lie; NaN where a log axis has no place for them."""
        return self._scale(self.plot.x, x, WIDTH), self._scale(self.plot.y, y, self.height)

    def _scale(self, axis: Axis, values: npt.ArrayLike, length: float) -> FloatArray:
        """Return where values lie along an axis."""
        if axis.scale is Scale.NAMES:
            indices = [self.category_names.index(str(value)) for value in np.asarray(values)]
            return (np.array(indices) + 0.5) * length / len(self.category_names)
        numbers, ends = np.asarray(values, dtype=np.float64), np.array(axis.limits)
        if axis.scale is Scale.LOG:
            numbers, ends = np.log(np.where(numbers > 0.0, numbers, np.nan)), np.log(ends)
        return np.asarray((numbers - ends[0]) / (ends[1] - ends[0]) * length)

    def _list_points(self, item: Item) -> tuple[FloatArray, FloatArray]:
        """Return the points of an item, those of a line every `STEP` pixels."""
        across, upwards = np.arange(0.0, WIDTH, STEP), np.arange(0.0, self.height, STEP)
        match item:
            case Level(is_vertical=True):
                return np.full(upwards.size, self._scale(self.plot.x, item.value, WIDTH)), upwards
            case Level():
                return across, np.full(across.size, self._scale(self.plot.y, item.value, self.height))
            case Band():
                ends = self._scale(self.plot.x, [item.low, item.high], WIDTH)
                return np.full(upwards.size, np.clip(ends, 0.0, WIDTH).mean()), upwards
            case Mark():
                return self.to_pixels([item.x], [item.y])
            case Cells() | Border() | Hatching():
                values = item.values
                if isinstance(item, Cells):
                    values = values / item.lightest_value - (item.named_contour_multiple or ("", 0.0))[1]
                is_low = values <= 0.0
                is_border = (is_low[1:, 1:] != is_low[:-1, 1:]) | (is_low[1:, 1:] != is_low[1:, :-1])
                rows, columns = np.nonzero(~is_low[1:, 1:] if isinstance(item, Hatching) else is_border)
                every = max(rows.size // 150, 1)
                return self.to_pixels(
                    np.asarray(item.x)[1:][columns[::every]], np.asarray(item.y)[1:][rows[::every]]
                )
            case Curve() if self.plot.x.scale is not Scale.NAMES:
                x, y = self.to_pixels(item.x, item.y)
                is_finite = np.isfinite(x) & np.isfinite(y)
                x, y = x[is_finite], np.clip(y[is_finite], -1e4, 1e4)
                lengths = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))[: x.size]
                places = np.arange(0.0, lengths[-1] + STEP, STEP) if x.size else lengths
                return (np.interp(places, lengths, x), np.interp(places, lengths, y)) if x.size else (x, y)
            case Curve() | Points() | Bars():
                return self.to_pixels(item.x, item.y)
        return np.empty(0), np.empty(0)

    def _list_obstacles(self, item: Item, points: FloatArray) -> FloatArray:
        """Return further points that labels avoid: around a mark, inside bars, and along whiskers."""
        if isinstance(item, Mark):
            return _surround(points, 8.0, 8.0)
        if not isinstance(item, Bars | Points) or not points.size:
            return points
        ends = [np.full(np.size(item.y), item.base_value)] if isinstance(item, Bars) else []
        ends += [np.asarray(end) for end in (item.y, item.low_ends, item.high_ends) if end is not None]
        x, _ = self.to_pixels(item.x, item.y)
        heights = np.nan_to_num([self._scale(self.plot.y, end, self.height) for end in ends])
        half_width = 0.35 * WIDTH / x.size if isinstance(item, Bars) else 4.0
        inside = np.linspace(heights.min(axis=0), heights.max(axis=0), 30)
        return np.vstack(
            [np.column_stack([x + shift, row]) for shift in (-half_width, half_width) for row in inside]
        )

    def find_place(self, name: str, text: str) -> tuple[float | str, float | str, str] | None:
        """Return the coordinates and the side of an item's label, which later ones avoid; None if there is no place."""
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
        is_bad = (x < half_width) | (x + half_width > WIDTH + RIGHT_MARGIN)
        is_bad |= (y < half_height) | (y + half_height > self.height - TOP_MARGIN)
        for other_x, other_y, other_width, other_height in self.boxes:
            is_bad |= (abs(x - other_x) < half_width + other_width + 4.0) & (
                abs(y - other_y) < half_height + other_height
            )
        if is_bad.all():
            return None
        x, y, indices, sides, shifts = (v[~is_bad] for v in (x, y, indices, sides, shifts))
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
        best = int(np.argmin(costs))
        self.boxes.append((x[best], y[best], half_width, half_height))
        anchor_x, side = float(anchors[int(indices[best]), 0]), ("center", "right", "left")[int(sides[best])]
        return self._read(self.plot.x, anchor_x / WIDTH), self._read(self.plot.y, y[best] / self.height), side

    def _read(self, axis: Axis, share: float) -> float | str:
        """Return the value at a share of the length of an axis, or the name there."""
        if axis.scale is Scale.NAMES:
            return self.category_names[int(share * len(self.category_names))]
        low, high = axis.limits
        return float(low * (high / low) ** share if axis.scale is Scale.LOG else low + (high - low) * share)


def _surround(points: FloatArray, half_width: float, half_height: float) -> FloatArray:
    """Return a grid of points around each point."""
    shifts = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), axis=-1).reshape(-1, 2)
    grid: FloatArray = (points[:, None] + shifts * (half_width, half_height)).reshape(-1, 2)
    return grid
