"""A figure as data: axes, columns, and the items drawn from them. `dpcore.report.plotly_figures` draws it.

Every item refers to the plot's columns by name, so that the file with its numbers holds all that is visible.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.answer.handle import Handle
from dpcore.answer.limits import Limits as Limits
from dpcore.answer.limits import fit_limits, linear_limits
from dpcore.answer.look import Style as Style
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray

IN_USE = "In use"
"""Mark of a bound that is in use, which a private selection replaces."""
SELECTED = "Drawn privately"
FIT: Limits = (0.0, 0.0)
"""Limits of an axis that fits what is drawn."""


class Scale(enum.Enum):
    """The scale of an axis."""

    LOG = "log"
    LINEAR = "linear"
    PERCENT = "linear, shares of 1 written in per cent"
    NAMES = "words beside each other, in the order of the column"


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        name: What it shows, in lower case, as a sentence has it.
        unit: Of its numbers; empty for none.
        limits: Where it begins and ends; on a log scale both above 0. By default it fits what the plot draws.
        scale: How it is divided.
        title: What stands at it; by default the name with its unit.
        limits_range: From where to where a person may set its ends; by default a hundred times beyond either of them
            on a log scale. None where it stays as it is.
        number_format: How a number is written where the pointer is, in d3's format language; three significant digits.
        shows_ticks: Whether numbers stand at it.
        named_ticks: (where, words) of what stands at it in place of round numbers; empty for these.
    """

    name: str
    unit: str = ""
    limits: Limits = FIT
    scale: Scale = Scale.LOG
    title: str = ""
    limits_range: Limits | None = None
    number_format: str = ".3g"
    shows_ticks: bool = True
    named_ticks: tuple[tuple[float, str], ...] = ()

    @property
    def label(self) -> str:
        """Return the name with its unit, as it stands before a number."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def heading(self) -> str:
        """Return the text at the axis."""
        return self.title or wording.capital(self.label)

    def contains(self, value: float) -> bool:
        """Return whether a number lies between its ends."""
        return self.limits[0] <= value <= self.limits[1]


@dataclass(frozen=True)
class Curve:
    """A line through two columns.

    Attributes:
        name: What it is; it stands where the pointer is, and in the legend.
        x: Column along the horizontal axis.
        y: Column along the vertical one.
        style: What it stands for.
        color_style: Whose colour it has, where that is not its own look's.
        legend: Entry of the legend that it shares with others of the same look; empty for its own.
        factor: What the column is multiplied with before it is drawn: -1 for the mirror image.
        dash: A dash pattern of its own; empty for that of its look.
        width: In pixels, where that is not its look's.
        is_first: Whether it begins the legend, wherever it lies.
        is_step: Whether it keeps the value of each point up to the next one.
        is_backward_step: Whether it has the value of each point from the one before on.
        is_binned: Whether its points are the middles of bins, and it keeps their values from end to end.
        filter: (column, what it must hold) of the rows that are meant; None for all.
        symbol: Shape of its points; empty for a line without.
        hover_column: (words, column) of one more number that stands where the pointer is.
        is_unnamed: Whether the legend leaves it out, as one of the same name stands there.
        low: Column of the lower ends of bars at its points; empty for none.
        high: Column of the upper ends.
        is_shaded: Whether what lies between these ends is shaded, in place of the bars.
        opacity: Less than 1 for what belongs to another question.
    """

    name: str
    x: str
    y: str
    style: Style
    color_style: Style | None = None
    legend: str = ""
    factor: float = 1.0
    dash: str = ""
    width: float | None = None
    is_first: bool = False
    is_step: bool = False
    is_backward_step: bool = False
    is_binned: bool = False
    filter: tuple[str, str] | None = None
    symbol: str = ""
    hover_column: tuple[str, str] | None = None
    is_unnamed: bool = False
    low: str = ""
    high: str = ""
    is_shaded: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Points:
    """Dots at two columns, with bars where there are columns for their ends.

    Attributes:
        name: What they are.
        x: Column along the horizontal axis.
        y: Column along the vertical one.
        style: Whose colour they have.
        low: Column of the lower ends of the bars; empty for none.
        high: Column of the upper ends.
        filter: (column, what it must hold) of the rows that are meant; None for all.
        legend: Entry of the legend that they share with others; empty for one of their own.
        symbol: Their shape.
        nudge: Factor by which they are drawn beside their place, so that two at one place are both seen.
        size: Their diameter in pixels.
        hover_column: Column whose number stands where the pointer is, in place of where they lie; empty for none.
        is_unnamed: Whether the legend leaves them out.
        opacity: Less than 1 where many lie on each other.
    """

    name: str
    x: str
    y: str
    style: Style
    low: str = ""
    high: str = ""
    filter: tuple[str, str] | None = None
    legend: str = ""
    symbol: str = ""
    nudge: float = 1.0
    size: int = 8
    hover_column: str = ""
    is_unnamed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Bars:
    """A bar for every row of two columns: upright, or across where the vertical axis has names.

    Attributes:
        name: What they are.
        x: Column along the horizontal axis.
        y: Column along the vertical one.
        style: Whose colour they have.
        base: Where they begin.
        low: Column of the lower ends of whiskers; empty for none.
        high: Column of the upper ends.
        filter: (column, what it must hold) of the rows that are meant; None for all.
        gap: Share of the axis that is left free between them.
        is_overlaid: Whether they stand behind those of other items, not beside them.
        opacity: Less than 1 where something is to be seen through them.
        hover_columns: (words, column) of further numbers that stand where the pointer is.
        is_unnamed: Whether the legend leaves them out.
    """

    name: str
    x: str
    y: str
    style: Style
    base: float = 0.0
    low: str = ""
    high: str = ""
    filter: tuple[str, str] | None = None
    gap: float = 0.15
    is_overlaid: bool = False
    opacity: float = 1.0
    hover_columns: tuple[tuple[str, str], ...] = ()
    is_unnamed: bool = False


@dataclass(frozen=True)
class Cells:
    """A colour at every place of a grid, light for the least number and dark for large ones, on a log scale.

    Attributes:
        name: What the numbers are.
        x: Column along the horizontal axis; with ``y`` it names every place of the grid once, in any order.
        y: Column along the vertical one.
        column: Column of the numbers; above 0.
        smallest_value: The number that has the lightest colour; others are said as its multiples.
        scale: What stands at the scale of colours.
        ticks: Multiples that stand there, ascending from 1; the last one and all above it have the darkest colour.
        contour: (name, multiple) of a line around the cells with less; None for none.
    """

    name: str
    x: str
    y: str
    column: str
    smallest_value: float
    scale: str = "times the best"
    ticks: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    contour: tuple[str, float] | None = None


@dataclass(frozen=True)
class Shares:
    """A row of cells for each of several columns of shares of 1: pale at 0, in the look's colour at 1.

    Attributes:
        name: What they are shares of, as it follows the number where the pointer is.
        x: Column of the names along the horizontal axis.
        columns: The columns; the first one lies at 0 of the vertical axis, the next one at 1 ...
        style: Whose colour they have.
    """

    name: str
    x: str
    columns: tuple[str, ...]
    style: Style


@dataclass(frozen=True)
class Regions:
    """A colour at every place of a grid, by kind; the name of a kind stands where most of it is, or in the legend.

    Attributes:
        x: Column along the horizontal axis; with ``y`` it names every place of the grid once, in any order.
        y: Column along the vertical one.
        column: Column of the kinds' numbers, 0, 1 ...; NaN where there is none.
        region_styles: (name, whose colour) of each; what follows a colon in a name stands below it.
        hover_column: (words, column) of a number that stands where the pointer is.
    """

    x: str
    y: str
    column: str
    region_styles: tuple[tuple[str, Style], ...]
    hover_column: tuple[str, str]


@dataclass(frozen=True)
class Hatching:
    """The places of a grid at which a column is not 0, hatched.

    Attributes:
        name: What they are; it stands in the legend.
        x: As in `Regions`.
        y: Likewise.
        column: Column.
        pattern: Of what lines or dots.
    """

    name: str
    x: str
    y: str
    column: str
    pattern: str = "/"


@dataclass(frozen=True)
class Border:
    """A line where a column passes through 0.

    Attributes:
        name: What it is; it stands in the legend.
        x: As in `Regions`.
        y: Likewise.
        column: Column; a grid on one side of 0 has no line.
        style: Whose colour it has.
        dash: Its dash pattern.
    """

    name: str
    x: str
    y: str
    column: str
    style: Style
    dash: str = "solid"


@dataclass(frozen=True)
class Mark:
    """One marked point.

    Attributes:
        name: What it is.
        x: Where, in the unit of the horizontal axis.
        y: Where, in that of the vertical one.
        style: Whose colour it has.
        symbol: Its shape.
        is_unnamed: Whether the legend leaves it out.
        hover_text: A further line of words where the pointer is; empty for none.
    """

    name: str
    x: float
    y: float
    style: Style
    symbol: str = "diamond"
    is_unnamed: bool = False
    hover_text: str = ""


@dataclass(frozen=True)
class Band:
    """A shaded interval of the horizontal axis.

    Attributes:
        name: What it is; it stands in the legend.
        low: Where it begins.
        high: Where it ends.
    """

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Level:
    """A line over the whole width at one height, or over the whole height.

    Attributes:
        name: What it is; it stands in the legend.
        value: Where, in the unit of the axis that it crosses.
        is_vertical: Whether it runs over the whole height.
        style: Whose colour an upright one has.
        dash: Its dash pattern.
        legend: Entry of the legend that upright ones share; empty for one of its own.
    """

    name: str
    value: float
    is_vertical: bool = False
    style: Style = Style.ENTERED
    dash: str = "dot"
    legend: str = ""


Item = Curve | Points | Bars | Cells | Shares | Regions | Hatching | Border | Mark | Band | Level


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure.

    Attributes:
        key: Unique in the answer; its words are set off by hyphens. Files are named after it.
        title: Heading.
        alt: What it shows, its takeaway first.
        x: The horizontal axis.
        y: The vertical one.
        columns: What it draws, and what further its file holds, by name, all of one length.
        items: What is drawn of them, from back to front.
        disclosure: Of the data behind it.
        guides: Columns that are drawn beside ``columns`` and stand in no file, each pair of one length.
        is_main: Whether it is the answer's main figure, which is drawn higher.
        height: In pixels, where that of its kind does not fit.
        lower_plot: A smaller one on the same horizontal axis, drawn beneath it; of its names the legend has those of
            levels. What has a name of the upper one goes with that.
        lower_share: Of the height, for that.
        note: Words in the middle of it; empty for none.
        handle: What a person may move by hand on a page; None for nothing.
    """

    key: str
    title: str
    alt: str
    x: Axis
    y: Axis
    columns: Mapping[str, npt.ArrayLike]
    items: tuple[Item, ...]
    disclosure: Provenance
    guides: Mapping[str, npt.ArrayLike] | None = None
    is_main: bool = False
    height: int | None = None
    lower_plot: Plot | None = None
    lower_share: float = 0.22
    note: str = ""
    handle: Handle | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            axis: Axis = getattr(self, name)
            if axis.limits == FIT and axis.scale is not Scale.NAMES:
                values = self._values_on(name)
                is_log = axis.scale is Scale.LOG
                limits = fit_limits(values) if is_log else linear_limits(values, axis.scale is Scale.PERCENT)
                object.__setattr__(self, name, replace(axis, limits=limits))

    def _values_on(self, axis: str) -> FloatArray:
        """Return all that is drawn along the axis x or y, as numbers."""
        attributes = ("x",) if axis == "x" else ("y", "low", "high", "base")
        values: list[npt.ArrayLike] = []
        for item in self.items:
            if isinstance(item, Level):
                values += [item.value] if item.is_vertical == (axis == "x") else []
            elif not isinstance(item, Band):
                entries = [getattr(item, name, "") for name in attributes]
                values += [
                    self.all_columns[entry] if isinstance(entry, str) else entry
                    for entry in entries
                    if entry != ""
                ]
        return np.concatenate(
            [np.ravel(np.asarray(value, dtype=np.float64)) for value in values] or [np.zeros(0)]
        )

    @cached_property
    def all_columns(self) -> Mapping[str, npt.ArrayLike]:
        """Return all drawn columns by name: those of the file, and the guides."""
        return {**(self.guides or {}), **self.columns}

    def with_limits(self, x: Limits | None = None, y: Limits | None = None) -> Plot:
        """Return the same plot with other limits of its axes."""
        x_axis = self.x if x is None else replace(self.x, limits=x)
        return replace(self, x=x_axis, y=self.y if y is None else replace(self.y, limits=y))

    def with_selection(self, selection: float | Mapping[str, float], curve: str = "") -> Plot:
        """Return the figure with a bound that was selected privately: its mark, and the handle on it.

        Args:
            selection: The bound, or both bounds of a pair by their columns.
            curve: Name of the curve that the bound stands on, where no handle says that.
        """
        handle, pair = self.handle, selection if isinstance(selection, Mapping) else {}
        second = None if handle is None else handle.second
        if handle is not None and second is not None and any(isinstance(item, Cells) for item in self.items):
            x, y = pair[handle.bound], pair[second.column]
        else:
            curves = [item for item in self.items if isinstance(item, Curve)]
            along = [item for item in curves if (item.y == handle.error if handle else item.name == curve)]
            if not along:
                return self
            selected = along[0]
            across, upwards = (
                np.asarray(self.all_columns[selected.x]),
                np.asarray(self.all_columns[selected.y]),
            )
            is_selected = (
                slice(None)
                if selected.filter is None
                else np.asarray(self.all_columns[selected.filter[0]]) == selected.filter[1]
            )
            x = pair[selected.x] if isinstance(selection, Mapping) else selection
            y = float(np.interp(x, across[is_selected], upwards[is_selected]))
        items = [item for item in self.items if not (isinstance(item, Mark) and item.name == IN_USE)]
        if handle and not any(isinstance(item, Mark) and item.name.startswith("Your own") for item in items):
            if second is not None:
                second = replace(second, initial_value=pair[second.column])
            handle = replace(handle, initial_value=x, second=second)
        return replace(self, items=(*items, Mark(SELECTED, x, y, Style.ENTERED, "star")), handle=handle)

    @property
    def hidden_marks(self) -> tuple[Mark, ...]:
        """Return the marks that lie beyond the ends of the axes."""
        marks = (item for item in self.items if isinstance(item, Mark))
        return tuple(mark for mark in marks if not (self.x.contains(mark.x) and self.y.contains(mark.y)))
