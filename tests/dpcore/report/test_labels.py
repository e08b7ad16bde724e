"""Labels at curves and marks: none lies on another one or leaves the figure, on a phone and on a wide screen."""

import itertools

import numpy as np
import pytest

from dpcore.answer import Axis, Band, Curve, Level, Mark, Plot, Style, Toggle
from dpcore.common.privacy import Disclosure
from dpcore.report import charts, plotly_figures

SUFFIX = " (label)"


def build_plot(rng: np.random.Generator, toggles: tuple[Toggle, ...] = ()) -> Plot:
    """Build a plot like those of the pages: a falling part, a rising part, their sum, its minimum and a band."""
    x = np.geomspace(1.0, 1e4, 200)
    falling, rising = 1e3 * np.exp(-x / rng.uniform(5.0, 3e3)) + 1e-3, rng.uniform(0.01, 1.0) * x
    best = int(np.argmin(falling + rising))
    items = [
        Curve("Total error", x, falling + rising, Style.TOTAL),
        Curve("Bias", x, falling, Style.BIAS),
        Curve("Noise", x, rising, Style.PRIVACY),
        Band("Within 5 %", x[max(best - 5, 0)], x[min(best + 5, 199)]),
        Mark("Best bound", x[best], (falling + rising)[best], Style.TOTAL),
        Level("Level", float(rng.uniform(10.0, 500.0))),
    ]
    axes = Axis("bound", "rows", (1.0, 1e4)), Axis("error", "rows", (1.0, 1e4))
    return Plot("p", "Title", "alt", *axes, items, Disclosure.PUBLIC, is_main=True, toggles=toggles)


def measure_boxes(plot: Plot, width: float) -> list[tuple[float, ...]]:
    """Return left, right, bottom and top of every label in a plot area of this width, with 6.4 pixels a character."""
    boxes = []
    for trace in plotly_figures.draw_plot(plot).data:
        if not (trace.name or "").endswith(SUFFIX):
            continue
        lines = trace.text[0].replace("<b>", "").replace("</b>", "").split("<br>")
        length, height = 6.4 * max(len(line.strip()) for line in lines), 15.0 * len(lines)
        x = np.log(trace.x[0]) / np.log(1e4) * width
        y = np.log(trace.y[0]) / np.log(1e4) * (charts.MAIN_HEIGHT - 95.0)
        side = {"middle center": 0.0, "middle right": 1.0, "middle left": -1.0}[trace.textposition]
        middle = x + side * (length / 2.0 + 5.0)
        boxes.append((middle - length / 2.0, middle + length / 2.0, y - height / 2.0, y + height / 2.0))
    return boxes


@pytest.mark.few(10)
@pytest.mark.parametrize("seed", range(25))
def test_no_label_lies_on_another_one_or_outside_the_figure(seed: int) -> None:
    plot = build_plot(np.random.default_rng(seed))
    for width in (250.0, 460.0, 1000.0):
        boxes = measure_boxes(plot, width)
        assert len(boxes) == 6
        for left, right, bottom, top in boxes:
            assert left >= 0.0
            assert right <= width + 28.0
            assert bottom >= 0.0
            assert top <= charts.MAIN_HEIGHT - 95.0
        for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
            assert a >= f or b <= e or c >= h or d <= g


def test_a_mark_has_its_value_and_a_toggle_hides_curves_with_their_labels() -> None:
    toggles = (Toggle("Parts", ("Bias", "Noise")), Toggle("Level shown", ("Level",), True))
    figure = plotly_figures.draw_plot(build_plot(np.random.default_rng(0), toggles))
    traces = {trace.name: trace for trace in figure.data}
    best = traces["Best bound"].x[0]
    assert traces["Best bound" + SUFFIX].text[0].strip() == f"Best bound\u2002<br>\u2002<b>{best:,.0f}</b>"
    hidden = {name for name, trace in traces.items() if trace.visible == "legendonly"}
    assert hidden == {"Bias", "Noise", "Bias" + SUFFIX, "Noise" + SUFFIX, "Parts"}
    assert {name for name, trace in traces.items() if trace.showlegend is not False} == {
        "Parts",
        "Level shown",
    }


def test_a_label_that_finds_no_place_stays_in_the_legend() -> None:
    x = [1.0, 10.0, 1e4]
    curves = [Curve(f"Curve {i:03}", x, [1.0 + i] * 3, Style.CAP) for i in range(60)]
    axes = Axis("bound", "rows", (1.0, 1e4)), Axis("error", "rows", (1.0, 100.0))
    figure = plotly_figures.draw_plot(Plot("p", "Title", "alt", *axes, curves, Disclosure.PUBLIC))
    labelled = {trace.name.removesuffix(SUFFIX) for trace in figure.data if trace.mode == "text"}
    in_legend = {t.name for t in figure.data if t.showlegend is not False}
    assert labelled
    assert in_legend == {curve.name for curve in curves} - labelled
    assert figure.layout.showlegend
