"""A figure as data: axes, and items with the values that they draw. `dpcore.report.plotly_figures` draws it.

An item holds its values as arrays. Those that stand in the file behind the figure are a `Column`, which has a name, or
stand in the plot's own `columns`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.handle import Handle
from dpcore.answer.limits import Limits as Limits
from dpcore.answer.limits import fit_limits, linear_limits
from dpcore.common.privacy import Provenance
from dpcore.common.wording import capitalise
from dpcore.contributions import FloatArray

IN_USE = "In use"
"""Mark of a bound that is in use, which a private selection replaces."""
FIT: Limits = (0.0, 0.0)
"""Limits of an axis that fits what is drawn."""


class Style(enum.Enum):
    """The meaning of a line or a mark; its colour and dash pattern follow from it."""

    CAP = "a bound on rows per user, or the first of two ways"
    SMOOTH = "smooth weights, or the second of two ways"
    SAMPLING = "the part of an error that is there without noise"
    PRIVACY = "the part of an error that is privacy noise"
    BIAS = "the part of an error that the bound itself causes, with or without noise"
    ENTERED = "what the person brought to compare"
    CUSTOMARY = "what is usually done instead"
    TOTAL = "the one curve of a plot"


class Scale(enum.Enum):
    """The scale of an axis."""

    LOG = "log"
    LINEAR = "linear"
    PERCENT = "linear, shares of 1 written in per cent"
    NAMES = "words beside each other, in the order of the column"


@dataclass(frozen=True)
class Axis:
    """One axis of a plot: name, unit, limits and scale.

    Attributes:
        name: What it shows, in lower case, as a sentence has it.
        unit: Of its numbers; empty for none.
        limits: Where it begins and ends; on a log scale both above 0. By default it fits what the plot draws.
        scale: How it is divided.
        title: What stands at it; by default the name with its unit.
        settable_range: The lowest and highest end that a person may set; by default a hundred times beyond either end
            on a log scale. It is None if the ends are fixed.
        number_format: How a number is written where the pointer is, in d3's format language; three significant digits.
        named_ticks: (where, words) of what stands at it in place of round numbers; empty for these.
    """

    name: str
    unit: str = ""
    limits: Limits = FIT
    scale: Scale = Scale.LOG
    title: str = ""
    settable_range: Limits | None = None
    number_format: str = ".3g"
    named_ticks: tuple[tuple[float, str], ...] = ()

    @cached_property
    def label(self) -> str:
        """Return the name with its unit in brackets, if it has one."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @cached_property
    def heading(self) -> str:
        """Return the text at the axis: its title, or else its label with a capital."""
        return self.title or capitalise(self.label)

    def contains(self, value: float) -> bool:
        """Return True if a number lies between the ends of the axis, or on one of them."""
        return self.limits[0] <= value <= self.limits[1]


def linear_axis(name: str, limits: Limits = FIT, unit: str = "", **axis_options: Any) -> Axis:
    """Build a linear axis; ``axis_options`` are further attributes of `Axis`."""
    return Axis(name, unit, limits, Scale.LINEAR, **axis_options)


def share_axis(name: str, limits: Limits = FIT, **axis_options: Any) -> Axis:
    """Build a linear axis of shares, written in percent; ``axis_options`` are further attributes of `Axis`."""
    return Axis(name, limits=limits, scale=Scale.PERCENT, **axis_options)


def names_axis(name: str, title: str = "", unit: str = "") -> Axis:
    """Build an axis of words side by side."""
    return Axis(name, unit, (0.0, 1.0), Scale.NAMES, title)


@dataclass(frozen=True, eq=False)
class Column:
    """Values that stand in the file behind a figure, under a name; NumPy reads it as an array of the values."""

    name: str
    values: npt.ArrayLike

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the values."""
        return np.asarray(self.values, dtype=dtype)


@dataclass(frozen=True, eq=False)
class Series:
    """The attributes that curves, points and bars share.

    Attributes:
        name: Shown at the pointer, and as a label.
        x: Along the horizontal axis, shape (k,).
        y: Along the vertical axis, shape (k,).
        style: What it stands for; its colour follows from that.
        low_ends: Lower ends of whiskers, shape (k,); None for no whiskers.
        high_ends: Upper ends of whiskers, shape (k,).
        is_unnamed: True if it has no label.
        opacity: Less than 1 where something is to be seen through it.
    """

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    style: Style
    low_ends: npt.ArrayLike | None = None
    high_ends: npt.ArrayLike | None = None
    is_unnamed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Curve(Series):
    """A line through points of a plot.

    Attributes:
        color_style: The style of its colour, where that is not its own style's.
        dash: A dash pattern of its own; empty for that of its style.
        width: In pixels, where that is not its style's.
        line_shape: Empty for straight lines from point to point. "hv": it keeps the value of each point up to the next
            one. "vh": it has the value of each point from the one before on. "hvh": its points are the middles of bins.
        symbol: Shape of its points; empty for a line without.
        hover_number: (words, values) of one more number at the pointer.
        shades_between_ends: True if the area from `low_ends` to `high_ends` is shaded, in place of whiskers.
        label: The text at it; its name if this is empty.

    Examples:
        >>> Curve("Error", [1, 2, 4], [3.0, 2.0, 5.0], Style.CAP).name
        'Error'
    """

    color_style: Style | None = None
    dash: str = ""
    width: float | None = None
    line_shape: str = ""
    symbol: str = ""
    hover_number: tuple[str, npt.ArrayLike] | None = None
    shades_between_ends: bool = False
    label: str = ""


@dataclass(frozen=True, eq=False)
class Points(Series):
    """Dots.

    Attributes:
        symbol: Their shape.
        size: Their diameter in pixels.
    """

    symbol: str = ""
    size: int = 8


@dataclass(frozen=True, eq=False)
class Bars(Series):
    """Bars: upright, or across where the vertical axis has names.

    Attributes:
        base_value: Where they begin.
        gap_share: Share of the axis that is left free between them.
        is_overlaid: True if they stand behind those of other items, not beside them.
        hover_numbers: (words, values) of further numbers at the pointer.
    """

    base_value: float = 0.0
    gap_share: float = 0.15
    is_overlaid: bool = False
    hover_numbers: tuple[tuple[str, npt.ArrayLike], ...] = ()


@dataclass(frozen=True, eq=False)
class Cells:
    """A colour at every place of a grid, light for the smallest number and dark for large ones, on a log scale.

    Attributes:
        name: What the numbers are.
        x: Along the horizontal axis, ascending, shape (columns,).
        y: Along the vertical axis, ascending, shape (rows,).
        values: The numbers, above 0, shape (rows, columns).
        lightest_value: The number that has the lightest colour; others are said as its multiples.
        named_contour_multiple: (name, multiple) of a line around the cells with less; None for none.
    """

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    values: FloatArray
    lightest_value: float
    named_contour_multiple: tuple[str, float] | None = None


@dataclass(frozen=True, eq=False)
class Regions:
    """A colour at every place of a grid, by region; the name of a region stands inside it, or in the legend.

    Attributes:
        x: Along the horizontal axis, ascending, shape (columns,).
        y: Along the vertical axis, ascending, shape (rows,).
        region_numbers: Numbers of the regions, 0, 1 ...; NaN where there is none; shape (rows, columns).
        region_styles: (name, whose colour) of each; what follows a colon in a name stands below it.
        hover_number: (words, numbers of shape (rows, columns)) of a number at the pointer.
    """

    x: npt.ArrayLike
    y: npt.ArrayLike
    region_numbers: FloatArray
    region_styles: tuple[tuple[str, Style], ...]
    hover_number: tuple[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Hatching:
    """The places of a grid, as of `Regions`, at which ``values`` are not 0, hatched.

    Attributes:
        name: Shown as a label.
        x: As in `Regions`.
        y: As in `Regions`.
        values: Numbers or booleans, shape (rows, columns).
        pattern: The lines or dots.
    """

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    values: npt.NDArray[Any]
    pattern: str = "/"


@dataclass(frozen=True, eq=False)
class Border:
    """A line where numbers on a grid pass through 0; there is no line if all lie on one side.

    Attributes:
        name: Shown as a label.
        x: As in `Regions`.
        y: As in `Regions`.
        values: Numbers, shape (rows, columns).
        style: Whose colour it has.
        dash: Its dash pattern.
    """

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    values: FloatArray
    style: Style
    dash: str = "solid"


@dataclass(frozen=True)
class Mark:
    """One marked point of a plot, with a label.

    Attributes:
        name: What it is.
        x: Where, in the unit of the horizontal axis.
        y: Where, in that of the vertical one.
        style: Whose colour it has.
        symbol: Its shape.
        is_unnamed: True if it has no label.
        hover_text: A further line of words at the pointer; empty for none.
        label: The text below it; its name and ``x`` if this is empty.
    """

    name: str
    x: float
    y: float
    style: Style
    symbol: str = "diamond"
    is_unnamed: bool = False
    hover_text: str = ""
    label: str = ""


@dataclass(frozen=True)
class Band:
    """A shaded interval of the horizontal axis: its name, where it begins and where it ends."""

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Level:
    """A line over the whole width at one height, or over the whole height.

    Attributes:
        name: Shown as a label.
        value: Where, in the unit of the axis that it crosses.
        is_vertical: True if it runs over the whole height.
        style: Whose colour an upright one has.
        dash: Its dash pattern.
        label: The text at it; its name if this is empty.
    """

    name: str
    value: float
    is_vertical: bool = False
    style: Style = Style.ENTERED
    dash: str = "dot"
    label: str = ""


@dataclass(frozen=True)
class Toggle:
    """A switch at a figure that shows and hides some of its items, by their names; True if they are shown at first."""

    name: str
    item_names: tuple[str, ...]
    is_on: bool = False


Item = Curve | Points | Bars | Cells | Regions | Hatching | Border | Mark | Band | Level


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure as data: axes, what is drawn, and the columns of its file.

    Attributes:
        key: Unique in the answer; its words are set off by hyphens. Files are named after it.
        title: Heading.
        alt: What it shows, its takeaway first.
        x: The horizontal axis.
        y: The vertical one.
        items: What is drawn, from back to front.
        disclosure: Of the data behind it.
        columns: The columns of its file, by name, all of one length. Columns of the items are added at the end, each
            name once.
        is_main: True if it is the answer's main figure, which is drawn higher.
        height: In pixels, where that of its kind does not fit.
        lower_plot: A smaller one on the same horizontal axis, drawn beneath it, without a file. The legend names its
            levels only; a curve of the same name as one above is hidden with that.
        lower_height_share: Of the height, for that.
        note: Words in the middle of it; empty for none.
        handle: What a person may move by hand on a page; None for nothing.
        toggles: Switches for the items beyond the first three curves.

    Examples:
        >>> from dpcore.common.privacy import Disclosure
        >>> curve = Curve("Error", [1, 2, 4], [3.0, 2.0, 5.0], Style.CAP)
        >>> x, y = Axis("bound", "rows"), linear_axis("error", (0, 6))
        >>> plot = Plot("error", "Error", "It is least at 2 rows.", x, y, [curve], Disclosure.PUBLIC)
        >>> print(plot.x.heading, plot.y.limits)
        Bound (rows) (0, 6)
    """

    key: str
    title: str
    alt: str
    x: Axis
    y: Axis
    items: Sequence[Item]
    disclosure: Provenance
    columns: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    is_main: bool = False
    height: int | None = None
    lower_plot: Plot | None = None
    lower_height_share: float = 0.22
    note: str = ""
    handle: Handle | None = None
    toggles: tuple[Toggle, ...] = ()

    def __post_init__(self) -> None:
        """Add the items' columns to the plot's, and fit the limits of axes that have `FIT` to the items."""
        values_by_column_name = dict(self.columns)
        for item_column in (item_column for item in self.items for item_column in _list_columns(item)):
            values_by_column_name.setdefault(item_column.name, item_column.values)
        object.__setattr__(self, "columns", values_by_column_name)
        for axis_name in ("x", "y"):
            axis: Axis = getattr(self, axis_name)
            if axis.limits == FIT and axis.scale is not Scale.NAMES:
                values, is_percent = self._collect_values(axis_name), axis.scale is Scale.PERCENT
                limits = fit_limits(values) if axis.scale is Scale.LOG else linear_limits(values, is_percent)
                object.__setattr__(self, axis_name, replace(axis, limits=limits))

    def _collect_values(self, axis_name: str) -> FloatArray:
        """Return all numbers that items have along the axis ``"x"`` or ``"y"``, as one vector; bands do not count."""
        attribute_names = ("x",) if axis_name == "x" else ("y", "low_ends", "high_ends", "base_value")
        drawn_values: list[npt.ArrayLike | None] = [()]
        for item in self.items:
            if isinstance(item, Level):
                drawn_values += [item.value] if item.is_vertical == (axis_name == "x") else []
            elif not isinstance(item, Band):
                drawn_values += [getattr(item, attribute_name, None) for attribute_name in attribute_names]
        value_vectors = [np.ravel(np.asarray(v, dtype=np.float64)) for v in drawn_values if v is not None]
        return np.concatenate(value_vectors)

    def is_hidden(self, item_name: str) -> bool:
        """Return True if an item is hidden until a toggle is switched on."""
        return any(item_name in toggle.item_names and not toggle.is_on for toggle in self.toggles)

    def with_limits(self, x_limits: Limits | None = None, y_limits: Limits | None = None) -> Plot:
        """Return the plot with other limits of its axes; None leaves an axis as it is."""
        x_axis = replace(self.x, limits=x_limits or self.x.limits)
        return replace(self, x=x_axis, y=replace(self.y, limits=y_limits or self.y.limits))

    @property
    def hidden_marks(self) -> tuple[Mark, ...]:
        """Return the marks outside the limits of an axis."""
        marks = (item for item in self.items if isinstance(item, Mark))
        return tuple(mark for mark in marks if not (self.x.contains(mark.x) and self.y.contains(mark.y)))


def _list_columns(plot_item: Item) -> list[Column]:
    """List the `Column` objects among the attributes of an item, in order, also those inside tuples."""
    column_objects: list[Column] = []
    attribute_values = [getattr(plot_item, f.name) for f in fields(plot_item)]
    while attribute_values:
        attribute_value = attribute_values.pop(0)
        if isinstance(attribute_value, Column):
            column_objects.append(attribute_value)
        elif isinstance(attribute_value, tuple):
            attribute_values = [*attribute_value, *attribute_values]
    return column_objects
