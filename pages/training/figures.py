"""The figures of the Training page. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.report import charts
from dpcore.training.experiment import Held
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method
from pages.shared.figures.figures import Picture
from pages.training.answer import TrainingView

AXIS = "Bound h (rows per user)"
LINES: dict[Method, dict[str, Any]] = {
    Method.SMOOTH: charts.SMOOTH,
    Method.CAP: {
        **charts.CAP,
        "dash": "dash",
    },  # It often lies on the curve of the weights: both are to be seen.
    Method.CLIPPED_SUM: charts.USUAL,
    Method.OUTPUT: charts.PRIVACY,
}
NAMES = {
    Method.SMOOTH: "Smooth weights",
    Method.CAP: "Cap, random rows",
    Method.CLIPPED_SUM: "Clipped sum",
    Method.OUTPUT: "Output perturbation",
}
TITLES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}


def _filled(line: dict[str, Any]) -> str:
    red, green, blue = (int(line["color"][k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.16)"


def limits(view: TrainingView, measure: Measure, over: Over) -> tuple[float, float]:
    """(from, to) of the axis of loss or accuracy, from the references alone: it does not move with ε.

    A model that does much worse than guessing is of no use, and the axis ends a little beyond.
    """
    floor, guess = view.reference(measure, over)
    apart = max(abs(guess - floor), 0.02)
    if measure is Measure.LOSS:
        return floor - 0.08 * apart, max(guess, floor) + 0.45 * apart
    return min(guess, floor) - 0.9 * apart, max(guess, floor) + 0.1 * apart


def main_figure(view: TrainingView, measure: Measure, over: Over) -> go.Figure:
    """Loss or accuracy against the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    largest = max(float(view.bounds(Method.SMOOTH)[-1]), 2.0)
    title = f"{TITLES[measure]}, users held out"
    percent = measure is Measure.ACCURACY
    across = {**charts.log_axis(AXIS, (1.0, largest)), "anchor": "y2"}
    upwards = {**charts.linear_axis(title, limits(view, measure, over), percent), "domain": [0.31, 1.0]}
    fig = charts.figure(across, upwards, charts.MAIN_HEIGHT)
    fig.update_layout(
        yaxis2={
            **charts.linear_axis("Share W", (0.0, 1.08 * float(view.largest_weight.max())), percent=True),
            "domain": [0.0, 0.22],
            "nticks": 4,
            "automargin": True,
            "zeroline": False,
        }
    )
    found = view.summary(measure, over)
    number = ".3~%" if percent else ".3f"
    for method in view.parameters.methods:
        cells = view.table.cells_of(method)
        cells = cells[found.runs[cells] > 0]
        if cells.size:
            h = np.array([view.cell(at).bound for at in cells])
            _band(fig, method, h, found.mean[cells], found.half_width[cells], number)
    low, high = limits(view, measure, over)
    if not ((found.mean >= low) & (found.mean <= high)).any():
        fig.add_annotation(
            text="Every curve lies beyond this axis: far worse than guessing", showarrow=False,
            xref="paper", yref="paper", x=0.5, y=0.62, font={"size": 12},
        )  # fmt: skip
    floor, guess = view.reference(measure, over)
    ends = np.array([1.0, largest])
    hover = f"%{{fullData.name}}: %{{y:{number}}}"
    charts.add_curve(fig, "No privacy", ends, np.full(2, floor), charts.SAMPLING, hover)
    charts.add_curve(fig, "Guessing", ends, np.full(2, guess), charts.OWN, hover)
    _mark_ends(fig, view, found.mean, limits(view, measure, over), number)
    weight = charts.curve(
        "W, the heaviest user's share", view.bounds(Method.SMOOTH), view.largest_weight,
        {"color": charts.NEUTRAL, "dash": "solid", "width": 2.0}, "h = %{x:,}: W = %{y:.2~%}",
    )  # fmt: skip
    weight.yaxis, weight.showlegend = "y2", False
    fig.add_trace(weight)
    return fig


def _band(
    fig: go.Figure, method: Method, h: FloatArray, mean: FloatArray, half: FloatArray, number: str
) -> None:
    line, wide = LINES[method], np.nan_to_num(half)
    group = {"showlegend": False, "legendgroup": method.value}
    charts.add_area(fig, h, mean - wide, mean + wide, _filled(line), **group)
    hover = f"%{{fullData.name}}<br>h = %{{x:,}}: %{{y:{number}}} ± %{{customdata:{number}}}"
    trace = charts.curve(NAMES[method], h, mean, line, hover)
    trace.mode, trace.marker = "lines+markers", {"size": 5, "color": line["color"]}
    trace.customdata, trace.legendgroup = half, method.value
    fig.add_trace(trace)


def _mark_ends(
    fig: go.Figure, view: TrainingView, mean: FloatArray, within: tuple[float, float], number: str
) -> None:
    """Averages of users at h = 1, and no bound at the largest user: both are smooth weights."""
    cells = view.table.cells_of(Method.SMOOTH)
    marks = [("Averages", cells[0], "circle", charts.SMOOTH["color"])]
    low, high = within
    if cells.size > 1 and low <= mean[cells[-1]] <= high:  # Else the legend would name what is not seen.
        marks.append(("No bound", cells[-1], "square", charts.OWN["color"]))
    for name, at, symbol, color in marks:
        value = float(mean[at])
        if np.isfinite(value):
            text = f"{name}: %{{y:{number}}}"
            charts.add_marker(fig, name, view.cell(int(at)).bound, value, color, symbol, text)


def main_alt(view: TrainingView, measure: Measure, over: Over) -> str:
    """The takeaway of `main_figure`."""
    found, cells = view.summary(measure, over), view.table.cells_of(Method.SMOOTH)
    floor, guess = view.reference(measure, over)
    first, last = (wording.number(float(found.mean[at])) for at in (cells[0], cells[-1]))
    return (
        f"{TITLES[measure]} on users held out is {first} where each user weighs at most one row and {last} where "
        f"nobody is bounded; {wording.number(floor)} without privacy, {wording.number(guess)} guessing. Beneath, the "
        f"heaviest user's share of all weights rises from {wording.percent(float(view.largest_weight[0]))} to "
        f"{wording.percent(float(view.largest_weight[-1]))}."
    )


def main_picture(view: TrainingView, measure: Measure, over: Over) -> Picture:
    """Loss or accuracy against the bound."""
    experiment = view.table.experiment
    found = view.summary(measure, over)
    floor, guess = view.reference(measure, over)
    size = len(experiment.cells)
    weight = dict(zip(view.bounds(Method.SMOOTH).tolist(), view.largest_weight.tolist(), strict=True))
    name = measure.value
    columns: dict[str, FloatArray | list[str]] = {
        "method": [cell.method.value for cell in experiment.cells],
        "bound": np.array([cell.bound for cell in experiment.cells]),
        name: found.mean,
        "half_width_95": found.half_width,
        "runs": found.runs.astype(np.float64),
        f"{name}_without_privacy": np.full(size, floor),
        f"{name}_guessing": np.full(size, guess),
        "largest_user_weight": np.array([weight[cell.bound] for cell in experiment.cells]),
    }
    return Picture(
        "training-loss",
        f"{TITLES[measure]} against the bound",
        lambda: main_figure(view, measure, over),
        main_alt(view, measure, over),
        columns,
        view.loaded.dataset.provenance,
    )


def main_picture_of_accuracy(view: TrainingView) -> Picture:
    """Rows told right against the bound, beside the picture of the loss."""
    return replace(main_picture(view, Measure.ACCURACY, Over.ROWS), key="training-accuracy")


# --- rows and users, trained on and held out ----------------------------------------------------------------

SIDES = (
    ("rows, held out", Over.ROWS, Held.HELD_OUT, charts.SMOOTH),
    ("users, held out", Over.USERS, Held.HELD_OUT, charts.CAP),
    ("rows, trained on", Over.ROWS, Held.TRAINED, {**charts.SMOOTH, "dash": "dot", "width": 1.5}),
    ("users, trained on", Over.USERS, Held.TRAINED, {**charts.CAP, "dash": "dot", "width": 1.5}),
)


def sides_columns(view: TrainingView) -> dict[str, FloatArray]:
    """What `sides_figure` draws: loss of smooth weights at each bound, four means."""
    cells = view.table.cells_of(Method.SMOOTH)
    found: dict[str, FloatArray] = {"bound": view.bounds(Method.SMOOTH)}
    for name, over, held, _ in SIDES:
        found[f"loss_{name.replace(', ', '_').replace(' ', '_')}"] = view.summary(
            Measure.LOSS, over, held
        ).mean[cells]
    return found


def sides_figure(view: TrainingView) -> go.Figure:
    """Loss of smooth weights: a mean over rows and one over users, on users trained on and held out."""
    columns = sides_columns(view)
    everything = [limits(view, Measure.LOSS, over) for over in Over]
    low, high = min(low for low, _ in everything), max(high for _, high in everything)
    largest = max(float(columns["bound"][-1]), 2.0)
    fig = charts.log_linear(AXIS, (1.0, largest), "Loss, smooth weights", (low, high), 380)
    for (name, _, _, line), values in zip(SIDES, list(columns.values())[1:], strict=True):
        hover = "%{fullData.name}<br>h = %{x:,}: %{y:.3f}"
        charts.add_curve(fig, f"Mean over {name}", columns["bound"], values, line, hover)
    return fig


def sides_picture(view: TrainingView) -> Picture:
    """Rows and users, trained on and held out."""
    columns = list(sides_columns(view).values())[1:]
    rows, users = (wording.number(float(values[0])) for values in columns[:2])
    return Picture(
        "training-sides",
        "Rows and users, trained on and held out",
        lambda: sides_figure(view),
        f"At h = 1 the loss on users held out is {rows} as a mean over rows and {users} as one over users.",
        sides_columns(view),
        view.loaded.dataset.provenance,
    )
