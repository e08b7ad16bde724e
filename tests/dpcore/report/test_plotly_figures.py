"""The picture of a plot: what no axis has a place for is a gap, and what is drawn beside its place says its place."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.answer import (
    Axis,
    Bars,
    Border,
    Cells,
    Column,
    Curve,
    Hatching,
    Item,
    Level,
    Mark,
    Plot,
    Points,
    Regions,
    Scale,
    Style,
    names_axis,
)
from dpcore.common.privacy import Disclosure
from dpcore.report import charts, plotly_figures

X, Y, T = [1.0, 2.0, 4.0], [0.0, 3.0, np.inf], [7.0, 8.0, 9.0]
LOW, HIGH = [6.0, 6.5, 8.0], [9.0, 8.5, 12.0]


def plot(*items: Item, scale: Scale = Scale.LOG) -> Plot:
    across, upwards = Axis("bound", "rows", (1.0, 10.0)), Axis("error", "", (0.5, 9.0), scale)
    return Plot("p", "Title", "alt", across, upwards, items, Disclosure.PUBLIC)


@pytest.mark.parametrize("item", [Curve("c", X, Y, Style.CAP), Points("c", X, Y, Style.CAP)])
def test_a_log_axis_has_gaps_at_zero_and_infinity_and_a_linear_one_has_none(item: Item) -> None:
    (drawn_trace,) = plotly_figures.draw_plot(plot(item)).data
    np.testing.assert_array_equal(drawn_trace.y, [np.nan, 3.0, np.nan])
    (drawn_trace,) = plotly_figures.draw_plot(plot(item, scale=Scale.LINEAR)).data
    np.testing.assert_array_equal(drawn_trace.y, Y)


def test_ticks_of_a_short_axis_of_shares_do_not_read_the_same() -> None:
    for upper, tick_format in ((0.03, ".1%"), (0.3, ".0%")):
        short = plot(Curve("c", X, Y, Style.CAP), scale=Scale.PERCENT).with_limits(y_limits=(0.0, upper))
        assert plotly_figures.draw_plot(short).layout.yaxis.tickformat == tick_format


def test_bars_begin_at_their_base_and_lie_where_the_vertical_axis_has_names() -> None:
    names, values = names_axis("kind"), Axis("error", "", (0.5, 9.0))
    bars = Bars(
        "b",
        ["a", "b", "c"],
        T,
        Style.CAP,
        LOW,
        HIGH,
        base_value=1.0,
        gap_share=0.4,
        hover_numbers=(("least", LOW),),
    )
    upright = replace(plot(bars), x=names, y=values)
    figure = plotly_figures.draw_plot(upright)
    (drawn_trace,) = figure.data
    assert (list(drawn_trace.x), list(drawn_trace.y), drawn_trace.base) == (
        ["a", "b", "c"],
        [6.0, 7.0, 8.0],
        1.0,
    )
    # Whiskers go from where the bar ends, to the columns' ends; the pointer is told where that is.
    assert (list(drawn_trace.error_y.array), list(drawn_trace.error_y.arrayminus)) == (
        [2.0, 0.5, 3.0],
        [1.0, 1.5, 1.0],
    )
    assert drawn_trace.customdata.tolist() == [[7.0, 6.0], [8.0, 6.5], [9.0, 8.0]]
    hover_template = "b<br>%{x}<br>error: %{customdata[0]:.3g}<br>least: %{customdata[1]:.3~g}<extra></extra>"
    assert drawn_trace.hovertemplate == hover_template
    assert (figure.layout.xaxis.type, figure.layout.bargap, figure.layout.barmode) == (
        "category", 0.4, "group",
    )  # fmt: skip
    flat = Bars("b", T[1:2], ["b"], Style.CAP, LOW[1:2], HIGH[1:2], is_overlaid=True)
    figure = plotly_figures.draw_plot(replace(upright, x=values, y=names, items=(flat,)))
    (drawn_trace,) = figure.data
    assert (drawn_trace.orientation, list(drawn_trace.x), list(drawn_trace.y)) == ("h", [8.0], ["b"])
    assert (list(drawn_trace.error_x.array), figure.layout.barmode) == ([0.5], "overlay")


def test_levels_cross_the_figure_each_with_its_own_label() -> None:
    whole_plot = plot(
        Level("one", 1.0),
        Level("two", 2.0, dash="longdash"),
        Level("cap", 4.0, is_vertical=True, style=Style.CAP),
    )
    figure = plotly_figures.draw_plot(whole_plot.with_limits(y_limits=(0.1, 90.0)))
    # A shape's place is in the axis's own numbers, not in their logarithms, and over the paper's whole width.
    assert [(s.y0, s.y1, s.x0, s.x1, s.line.dash) for s in figure.layout.shapes] == [
        (1.0, 1.0, 0, 1, "dot"), (2.0, 2.0, 0, 1, "longdash"),
    ]  # fmt: skip
    _, _, upright, *labels = figure.data
    assert sorted(label.name for label in labels) == ["cap (label)", "one (label)", "two (label)"]
    assert not figure.layout.showlegend
    assert (list(upright.x), list(upright.y)) == ([4.0, 4.0], [0.1, 90.0])


def test_cells_have_the_colour_of_their_multiple() -> None:
    cells = Cells(
        "error",
        [1.0, 2.0],
        [3.0, 5.0],
        np.array([[15.0, 10.0], [80.0, 20.0]]),
        10.0,
        named_contour_multiple=("near", 1.2),
    )
    whole_plot = Plot("p", "", "", Axis("a", "", (1, 2)), Axis("b", "", (3, 5)), (cells,), Disclosure.PUBLIC)
    colours, edge, _ = plotly_figures.draw_plot(whole_plot).data
    assert (list(colours.x), list(colours.y)) == ([1.0, 2.0], [3.0, 5.0])
    assert colours.customdata.tolist() == [[15.0, 10.0], [80.0, 20.0]]
    # 80 is eight times the least, and the darkest colour stands for four times and more.
    assert 10.0**colours.z == pytest.approx(np.array([[1.5, 1.0], [4.0, 2.0]]))
    assert colours.zmax == colours.colorbar.tickvals[-1] == pytest.approx(np.log10(4.0))
    assert colours.hovertemplate == "a: %{x:.3g}<br>b: %{y:.3g}<br>error: %{customdata:,.3~g}<extra></extra>"
    np.testing.assert_array_equal(edge.z, [[1.5, 1.0], [8.0, 2.0]])
    assert (edge.name, edge.contours.value, edge.showlegend) == ("near", 1.2, False)


def test_regions_are_named_where_they_are_and_hatched_where_a_column_says_so() -> None:
    x, y = np.geomspace(1.0, 100.0, 40), np.geomspace(1.0, 9.0, 30)
    grid_x, grid_y = np.meshgrid(x, y)
    kinds = (grid_x > 3.0).astype(float)
    kinds[(grid_x > 90.0) & (grid_y > 8.0)] = 2.0  # too small for its name
    gain, hatched = grid_x - 3.0, (grid_x * grid_y > 200.0) | (grid_x < 1.5)
    looks = (("Left", Style.CAP), ("Right: far", Style.SMOOTH), ("Corner", Style.BIAS))
    items: tuple[Item, ...] = (
        Regions(x, y, kinds, looks, ("gain", gain)),
        Hatching("Odd", x, y, hatched),
        Border("Zero", x, y, gain, Style.CAP),
        Border("Never", x, y, grid_x, Style.CAP),
    )
    figure = plotly_figures.draw_plot(plot(*items))
    colours, corner, odd, zero, *labels = figure.data
    assert [corner.name, odd.name, zero.name] == ["Corner", "Odd", "Zero"]
    assert {label.name for label in labels} == {"Odd (label)", "Zero (label)"}
    np.testing.assert_array_equal(colours.z, kinds.astype(np.float32))
    assert "gain: %{customdata:.3~g}" in colours.hovertemplate
    words = {note.text: (note.x, note.y) for note in figure.layout.annotations}
    assert set(words) == {"<b>Left</b>", "<b>Right:<br>far</b>"}
    for text, region in (("<b>Left</b>", 0.0), ("<b>Right:<br>far</b>", 1.0)):
        column, row = (
            int(np.argmin(np.abs(np.log10(v) - item))) for v, item in zip((x, y), words[text], strict=True)
        )
        assert kinds[row, column] == region
        assert not hatched[row, column]
    covered = charts.cover_by_rectangles(hatched, x, y)
    inside = [[any(a[0] <= u <= a[1] and b[0] <= v <= b[1] for a, b in covered) for u in x] for v in y]
    assert inside == hatched.tolist()


def test_a_plot_knows_which_marks_its_axes_leave_out() -> None:
    whole_plot = plot(Mark("in", 2.0, 1.0, Style.CAP), Mark("above", 2.0, 10.0, Style.ENTERED))
    assert [mark.name for mark in whole_plot.hidden_marks] == ["above"]
    assert whole_plot.with_limits(y_limits=(0.5, 20.0)).hidden_marks == ()


def test_the_file_of_a_plot_holds_its_own_columns_and_then_those_of_its_items() -> None:
    x, t, own_columns = Column("x", X), Column("t", T), {"own": Y}
    curves = (
        Curve("c", x, t, Style.CAP, low_ends=LOW, hover_number=("h", Column("h", HIGH))),
        Points("p", x, t, Style.CAP),
    )
    whole_plot = Plot("p", "", "", Axis("a"), Axis("b"), curves, Disclosure.PUBLIC, own_columns)
    assert dict(whole_plot.columns) == {"own": Y, "x": X, "t": T, "h": HIGH}
    assert list(plotly_figures.draw_plot(whole_plot).data[0].y) == T
