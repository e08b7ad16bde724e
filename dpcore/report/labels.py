"""Labels at the curves, marks and lines of a plot, in place of a legend.

Places are searched for a narrow figure. Labels that are clear of everything there are clear in a wider or higher one,
too: their anchors move apart, and they cover a smaller share of the figure.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dpcore.answer.plot import (
    Axis,
    Band,
    Bars,
    Border,
    Cells,
    Curve,
    Hatching,
    Item,
    Level,
    Mark,
    Plot,
    Points,
    Regions,
    Scale,
    Series,
    Style,
)
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.report import charts

WIDTH, HEIGHT_AROUND = 250.0, 95.0
"""Width in pixels of the area of the narrowest figure, on a phone, and the height of what stands around the area."""
SIZE, CHARACTER_WIDTH, LINE_HEIGHT, MAX_CHARACTERS = 13, 6.8, 17.0, 22
"""Type size of labels; width of a character and height of a line, in pixels; characters in a line."""
NUM_COLUMNS, TOP_MARGIN, RIGHT_MARGIN = 49, 18.0, 24.0
CROSSING_COST, HIDDEN_CROSSING_COST, MAX_CLEARANCE = 80.0, 8.0, 50.0
"""Costs of a label across a line, in pixels of distance; distance from other lines beyond which more is no gain."""
HANDLE_BOX = 34.0, 22.0
"""Half the width and half the height of a handle with its arrows, in pixels."""
PADDING = 5.0
"""Room at the left and right of a label, in which it has a space."""
SUFFIX = " (label)"
"""End of the name of a label's trace."""
Named = Mark | Band | Bars | Level | Curve | Points


def label_items(fig: charts.Sketch, plot: Plot, height: float) -> None:
    """Add a label at each named item and take its entry out of the legend; one that finds no place keeps its entry.

    Args:
        fig: The drawing of the items.
        plot: The plot.
        height: Of the figure, or of this plot's share of it, in pixels.
    """
    if plot.y.scale is Scale.NAMES:
        return
    all_items = [item for item in map(_build_named, plot.items) if item is not None]
    canvas = _Canvas(plot, all_items, height - HEIGHT_AROUND)
    for note in fig.annotations:  # The names of regions, whose places are logarithms.
        half_width = CHARACTER_WIDTH * max(map(len, note["text"].split("<br>"))) / 2.0
        canvas.add_box(10.0 ** note["x"], 10.0 ** note["y"], half_width, LINE_HEIGHT)
    # Those with few possible places come first, and those that are hidden at first come last.
    order: list[type] = [Mark, Band, Bars, Curve, Points, Level]
    items = [item for item in all_items if not getattr(item, "is_unnamed", False)]
    for item in sorted(items, key=lambda item: (plot.is_hidden(item.name), order.index(type(item)))):
        text = write_label(plot, item)
        place, is_outside = canvas.find_place(item, text), canvas.is_outside(item)
        traces = [trace for trace in fig.data if trace.get("name") == item.name]
        for trace in traces:
            trace["showlegend"] = place is None and not is_outside
        if place is None:
            continue
        *(x, y), side = place
        style = traces[0].get("line" if isinstance(item, Curve | Level) else "marker", {})
        font = {"size": SIZE, "color": charts.NEUTRAL_COLOR if isinstance(item, Band) else style.get("color")}
        if isinstance(
            plot.items[0], Cells | Regions
        ):  # On colours, the colour of text is the most legible one.
            del font["color"]
        label = {
            "mode": "text",
            "x": [x],
            "y": [y],
            "text": [f"\u2002{text}\u2002".replace("<br>", "\u2002<br>\u2002")],
            "textfont": font,
            "cliponaxis": False,
        }
        label |= {"textposition": f"middle {side}"}
        fig.data.append({**charts.EMPTY_TRACE, "name": item.name + SUFFIX, "showlegend": False, **label})


def write_label(plot: Plot, item: Named) -> str:
    """Write the label of an item: its own label or its name; that of a mark has its value in a line of its own."""
    text: str = getattr(item, "label", "") or item.name
    text = "<br>".join(charts.wrap_evenly(text, MAX_CHARACTERS + 10 * isinstance(item, Level)))
    if isinstance(item, Mark) and not item.label and plot.x.scale is not Scale.NAMES:
        is_share = plot.x.scale is Scale.PERCENT
        text += f"<br><b>{wording.percent(item.x) if is_share else wording.number(item.x)}</b>"
    return text


def _build_named(item: Item) -> Named | None:
    """Return an item that has a label, or a curve in its place: a border, or the middle of hatched cells; else None."""
    match item:
        case Cells(named_contour_multiple=(name, multiple)):
            ratios = item.values / max(item.lightest_value, np.finfo(np.float64).tiny)
            return Curve(name, item.x, _find_borders(item.y, ratios - multiple), Style.SMOOTH)
        case Border():
            return Curve(item.name, item.x, _find_borders(item.y, item.values), item.style)
        case Hatching():
            mask, logs = item.values != 0.0, np.log(np.asarray(item.y))
            middles = (mask * logs[:, None]).sum(axis=0) / np.maximum(mask.sum(axis=0), 1)
            return Curve(
                item.name, item.x, np.where(mask.any(axis=0), np.exp(middles), np.nan), Style.ENTERED
            )
    return item if isinstance(item, Named) else None


def _find_borders(y: npt.ArrayLike, values: FloatArray) -> FloatArray:
    """Return the highest y at which each column of a grid changes its sign; NaN where there is none."""
    heights = np.asarray(y, dtype=np.float64)
    changes = np.diff(np.signbit(values), axis=0)
    last = changes.shape[0] - 1 - np.argmax(changes[::-1], axis=0)
    return np.where(changes.any(axis=0), np.sqrt(heights[last] * heights[last + 1]), np.nan)


class _Canvas:
    """The area of a plot in pixels, from its lower left corner, with what labels have to avoid."""

    def __init__(self, plot: Plot, items: list[Named], height: float) -> None:
        self.plot, self.height = plot, height
        curves = [item for item in items if isinstance(item, Curve | Points)]
        series = [item for item in items if isinstance(item, Series)]
        self.names = list(dict.fromkeys(str(name) for item in series for name in np.asarray(item.x)))
        num_names = len(self.names) if plot.x.scale is Scale.NAMES else 0
        self.columns = (
            (np.arange(num_names) + 0.5) * WIDTH / num_names
            if num_names
            else np.linspace(0.0, WIDTH, NUM_COLUMNS)
        )
        levels = [item for item in items if isinstance(item, Level)]
        self.lines = {id(item): self._trace_line(item) for item in curves}
        self.lines |= {
            id(item): self._cut(np.full(self.columns.size, self._to_pixels(plot.y, [item.value], height)[0]))
            for item in levels
            if not item.is_vertical
        }
        named = {id(item): item.name for item in (*curves, *levels)}
        self.crossing_costs = np.array(
            [HIDDEN_CROSSING_COST if plot.is_hidden(named[i]) else CROSSING_COST for i in self.lines]
        )
        self.boxes, self.bar_boxes = list[tuple[float, ...]](), list[tuple[float, ...]]()
        for item in items:
            if isinstance(item, Mark):
                self.add_box(item.x, item.y, 8.0, 8.0)
        for item in series:
            if isinstance(item, Bars) or (plot.x.scale is Scale.NAMES and isinstance(item, Points)):
                self._add_series_boxes(item)
        self.uprights = {
            id(item): self._to_pixels(plot.x, [item.value], WIDTH)[0] for item in levels if item.is_vertical
        }
        if (handle := plot.handle) is not None:
            second, start = handle.second_bound, handle.initial_value
            bounds, errors = np.asarray(handle.bounds), np.ravel(np.asarray(handle.errors))
            is_map = second is not None and np.size(second.bounds) > 1
            y = second.initial_value if second is not None and is_map else np.interp(start, bounds, errors)
            self.add_box(start, float(y), *HANDLE_BOX)

    def add_box(self, x: float, y: float, half_width: float, half_height: float) -> None:
        """Keep labels off the surroundings of a point."""
        (left,) = self._to_pixels(self.plot.x, [x], WIDTH)
        (bottom,) = self._to_pixels(self.plot.y, [y], self.height)
        self.boxes.append((left - half_width, left + half_width, bottom - half_height, bottom + half_height))

    def _add_series_boxes(self, item: Bars | Points) -> None:
        """Keep labels off bars and points with their whiskers."""
        half_width = 0.4 * WIDTH / self.columns.size if isinstance(item, Bars) else 6.0
        base = [np.full(np.shape(item.y), item.base_value)] if isinstance(item, Bars) else []
        ends = [end for end in (item.y, item.low_ends, item.high_ends, *base) if end is not None]
        heights = np.nan_to_num(np.array([self._to_pixels(self.plot.y, end, self.height) for end in ends]))
        for x, low, high in zip(
            self._to_pixels(self.plot.x, item.x, WIDTH), heights.min(axis=0), heights.max(axis=0), strict=True
        ):
            boxes = self.bar_boxes if isinstance(item, Bars) else self.boxes
            boxes.append((x - half_width, x + half_width, low - 6.0, high + 6.0))

    def _to_pixels(self, axis: Axis, values: npt.ArrayLike, length: float) -> FloatArray:
        """Return where values lie along an axis; NaN where a log axis has no place for them."""
        if axis.scale is Scale.NAMES:
            return self.columns[[self.names.index(str(value)) for value in np.asarray(values)]]
        numbers, ends = np.asarray(values, dtype=np.float64), np.array(axis.limits)
        if axis.scale is Scale.LOG:
            numbers, ends = np.log(np.where(numbers > 0.0, numbers, np.nan)), np.log(ends)
        pixels: FloatArray = (numbers - ends[0]) / (ends[1] - ends[0]) * length
        return pixels

    def _to_value(self, axis: Axis, pixel: float, length: float) -> float | str:
        """Return the value at a pixel of an axis, or the name that is next to it."""
        if axis.scale is Scale.NAMES:
            return self.names[int(np.argmin(np.abs(self.columns - pixel)))]
        low, high = axis.limits
        share = pixel / length
        return float(low * (high / low) ** share if axis.scale is Scale.LOG else low + (high - low) * share)

    def _trace_line(self, item: Curve | Points) -> FloatArray:
        """Return the heights of an item at the columns, NaN outside the area."""
        x = self._to_pixels(self.plot.x, item.x, WIDTH)
        y = self._to_pixels(self.plot.y, item.y, self.height)
        kept = np.isfinite(x) & np.isfinite(y)
        order = np.argsort(x[kept], kind="stable")
        if not order.size:
            return np.full(self.columns.size, np.nan)
        heights = np.interp(self.columns, x[kept][order], y[kept][order], left=np.nan, right=np.nan)
        return self._cut(heights)

    def _cut(self, heights: FloatArray) -> FloatArray:
        """Replace the heights outside the area with NaN."""
        return np.where((heights >= 0.0) & (heights <= self.height), heights, np.nan)

    def is_outside(self, item: Named) -> bool:
        """Return True if a level or a mark lies outside the area."""
        if isinstance(item, Mark):
            return item in self.plot.hidden_marks
        return (
            isinstance(item, Level) and id(item) in self.lines and bool(np.isnan(self.lines[id(item)]).all())
        )

    def find_place(self, item: Named, text: str) -> tuple[float | str, float | str, str] | None:
        """Return the coordinates and the side of an item's label, which later ones avoid; None if there is no place."""
        lines = text.replace("<b>", "").replace("</b>", "").split("<br>")
        width, height = CHARACTER_WIDTH * max(map(len, lines)) + 2.0 * PADDING, LINE_HEIGHT * len(lines)
        places = np.array(list(self._list_places(item, width, height)), dtype=np.float64).reshape(-1, 4)
        if not places.size:
            return None
        middles = places[:, 0] + places[:, 2] * width / 2.0
        costs = places[:, 3] + self._compute_costs(item, middles, places[:, 1], width, height)
        best = int(np.argmin(costs))
        if not costs[best] < np.inf:
            return None
        x, y, side, _ = places[best]
        self.boxes.append(
            (middles[best] - width / 2.0, middles[best] + width / 2.0, y - height / 2.0, y + height / 2.0)
        )
        side_text = {0.0: "center", 1.0: "right", -1.0: "left"}[side]
        return self._to_value(self.plot.x, x, WIDTH), self._to_value(self.plot.y, y, self.height), side_text

    def _list_places(
        self, item: Named, width: float, height: float
    ) -> Iterable[tuple[float, float, float, float]]:
        """List possible places of an item's label: an anchor, the side of it (0 for its middle), and a cost."""
        levels = np.arange(height / 2.0 + 4.0, self.height - height / 2.0, 8.0)
        if isinstance(item, Band):
            low, high = np.clip(self._to_pixels(self.plot.x, [item.low, item.high], WIDTH), 0.0, WIDTH)
            for x, side, cost in (((low + high) / 2.0, 0.0, 0.0), (high, 1.0, 40.0), (low, -1.0, 40.0)):
                yield from ((x, y, side, cost + 0.1 * y) for y in levels)
        elif isinstance(item, Mark):
            (x,) = self._to_pixels(self.plot.x, [item.x], WIDTH)
            (y,) = self._to_pixels(self.plot.y, [item.y], self.height)
            if 0.0 <= x <= WIDTH and 0.0 <= y <= self.height:
                for side in (0.0, 1.0, -1.0):
                    for distance in np.arange(height / 2.0 + 9.0, 130.0, 6.0):
                        cost = distance + 15.0 * abs(side)
                        yield from ((x, y - distance, side, cost), (x, y + distance, side, cost + 20.0))
        elif isinstance(item, Bars):
            bases = self._to_pixels(self.plot.y, np.full(np.shape(item.y), item.base_value), self.height)
            ends = self._to_pixels(self.plot.y, item.y, self.height)
            xs = self._to_pixels(self.plot.x, item.x, WIDTH)
            for x, end, base in zip(xs, ends, np.nan_to_num(bases), strict=True):
                distances = np.arange(height / 2.0 + 7.0, 80.0, 6.0) * (-1.0 if end < base else 1.0)
                for side in (0.0, 1.0, -1.0):
                    yield from ((x, end + d, side, abs(d) - abs(end - base) / 4.0) for d in distances)
        elif isinstance(item, Points) and self.plot.x.scale is Scale.NAMES:
            for x, y in zip(self.columns, self.lines[id(item)], strict=True):
                for distance in np.arange(height / 2.0 + 15.0, 90.0, 6.0) if np.isfinite(y) else ():
                    for side in (0.0, 1.0, -1.0):
                        yield from ((x, y + step, side, distance) for step in (distance, -distance))
        elif id(item) in self.uprights:
            for side in (1.0, -1.0):
                yield from ((self.uprights[id(item)], y, side, 0.1 * (self.height - y)) for y in levels)
        else:
            heights, end_cost = self.lines[id(item)], 0.1 if isinstance(item, Level) else 0.0
            for x, y in zip(self.columns, heights, strict=True):
                near = heights[np.abs(self.columns - x) <= width / 2.0]
                if np.isfinite(y):
                    for direction, edge in ((1.0, np.nanmax(near)), (-1.0, np.nanmin(near))):
                        cost = 2.0 * abs(edge - y) + end_cost * (WIDTH - x)
                        yield x, edge + direction * (height / 2.0 + 2.0), 0.0, cost
                    # Beside a steep curve.
                    yield from ((x, y + shift, side, 15.0) for shift in (-9.0, 9.0) for side in (1.0, -1.0))

    def _compute_costs(
        self, item: Named, x: FloatArray, y: FloatArray, width: float, height: float
    ) -> FloatArray:
        """Compute what labels in the way of others cost: infinite where they overlap, less the farther from lines."""
        left, right, bottom, top = x - width / 2.0, x + width / 2.0, y - height / 2.0, y + height / 2.0
        is_bad = (
            (left < 0.0) | (right > WIDTH + RIGHT_MARGIN) | (bottom < 2.0) | (top > self.height - TOP_MARGIN)
        )
        for low_x, high_x, low_y, high_y in self.boxes:
            is_bad |= (left < high_x) & (right > low_x) & (bottom < high_y) & (top > low_y)
        costs = np.where(is_bad, np.inf, 0.0)
        for low_x, high_x, low_y, high_y in self.bar_boxes:
            is_on_bar = (left < high_x) & (right > low_x) & (bottom < high_y) & (top > low_y)
            costs += CROSSING_COST * is_on_bar
        for position in self.uprights.values():
            costs += CROSSING_COST * ((left < position) & (right > position))
        if self.lines:
            step = self.columns[1] - self.columns[0] if self.columns.size > 1 else WIDTH
            is_near = np.abs(self.columns - x[:, None]) <= width / 2.0 + step / 2.0 - PADDING
            heights = np.where(is_near[:, None, :], np.array(list(self.lines.values())), np.nan)
            gaps = np.fmax(
                np.fmin.reduce(heights, axis=2) - top[:, None],
                bottom[:, None] - np.fmax.reduce(heights, axis=2),
            )
            gaps = np.where(np.isnan(gaps), MAX_CLEARANCE, gaps)
            costs += (gaps < 0.5) @ self.crossing_costs
            others = np.array([line != id(item) for line in self.lines])
            if others.any():
                costs -= (0.2 if isinstance(item, Mark) else 1.0) * np.clip(
                    gaps[:, others].min(axis=1), 0.0, MAX_CLEARANCE
                )
        return costs
