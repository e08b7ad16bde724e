"""The figures of Sum and count, for the page and its report. Pure: an answer in, figures out."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go

from dpcore import total
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.report import charts
from dpcore.total import TotalErrors, strategies
from dpcore.total.strategies import StrategyCurves, StrategyPoints
from pages.shared.figures import Picture
from pages.total.answer import Limits, TotalView
from pages.total.card import MEASURE_NAMES
from pages.total.signed import SignedView
from pages.total.strategies import near_best

# Blue, orange and grey: three colours that nobody takes for each other, beside the green of the bias and the purple
# of the noise.
ABSOLUTE: dict[str, Any] = {"color": "#2C7FB8", "dash": "solid", "width": 2}
RMSE: dict[str, Any] = {"color": "#D55E00", "dash": "dashdot", "width": 2}
BOUND: dict[str, Any] = {"color": "#7F7F7F", "dash": "longdash", "width": 2}
CHOSEN_WIDTH = 3
LINES = {Measure.ABSOLUTE: ABSOLUTE, Measure.RMSE: RMSE, Measure.BOUND: BOUND}
CURVE_NAMES = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Bias + noise"}
STRATEGY_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#2C7FB8", "dash": "solid", "width": 2.5},
    {"color": "#009E73", "dash": "dot", "width": 2},
    {"color": "#D55E00", "dash": "dash", "width": 2},
    {"color": "#B0609C", "dash": "dashdot", "width": 2},
)
HOVER = "%{fullData.name}<br>T: %{x:,.3~g}<br>error: %{y:,.3~g}"
SYMBOLS = ("circle", "square", "diamond", "triangle-up")


def curve(name: str, x: FloatArray, y: FloatArray, line: dict[str, Any], hover: str) -> go.Scatter:
    """A line without its points at 0: a log axis has no place for them."""
    above = y > 0.0
    return charts.curve(name, x[above], y[above], line, hover)


def by_measure(errors: TotalErrors) -> dict[Measure, FloatArray]:
    """The three error curves."""
    return {Measure.ABSOLUTE: errors.absolute_error, Measure.RMSE: errors.rmse, Measure.BOUND: errors.bound}


def error_picture(
    view: TotalView, data: Dataset, own_bound: float | None, limits: Limits | None = None
) -> Picture:
    """The main figure, on these axes or on those that it begins with."""
    return Picture(
        "total-error",
        "Error against the bound",
        lambda: error_figure(view, limits or view.limits, own_bound),
        error_alt(view),
        error_columns(view.errors),
        data.provenance,
    )


def measures_picture(view: TotalView, data: Dataset) -> Picture:
    """All measures of the error beside each other, as far as the curves go."""
    (low, high), errors = view.limits
    return Picture(
        "total-measures",
        "Measures of the error",
        lambda: measures_figure(view, ((low, 2.0 * high), errors)),
        f"{error_alt(view)} The other measures have curves of the same shape, and best bounds of their own.",
        error_columns(view.errors),
        data.provenance,
    )


def _empty(view: TotalView, limits: Limits, height: int) -> go.Figure:
    unit = view.unit
    return charts.log_log(
        unit.bound_axis, limits[0], f"Error of the released {unit.result} ({unit.axis})", limits[1], height
    )


def error_figure(view: TotalView, limits: Limits, own_bound: float | None) -> go.Figure:
    """Error against T by the chosen measure, with its two parts."""
    fig = _empty(view, limits, charts.MAIN_HEIGHT)
    for name, values, line in (
        ("Bias", view.errors.bias, charts.SAMPLING),
        ("Noise", view.errors.noise, charts.PRIVACY),
    ):
        fig.add_trace(curve(name, view.bounds, values, line, HOVER))
    chosen = view.problem.measure
    line = {**LINES[chosen], "width": CHOSEN_WIDTH}
    values = by_measure(view.errors)[chosen]
    fig.add_trace(curve(CURVE_NAMES[chosen], view.bounds, values, line, HOVER).update(legendrank=1))
    if 0.0 < view.within[0] < view.within[1]:
        charts.band(fig, *view.within, f"Within 5{wording.PERCENT}")
    if view.choice.max_total > 0.0:
        best = view.choice.max_total, view.choice.certificate.value
        fig.add_trace(_marker("Best T", *best, LINES[chosen]["color"], "diamond"))
    if own_bound:
        own = own_bound, view.error(own_bound)
        fig.add_trace(_marker("Your own T", *own, charts.OWN["color"], "square"))
    return fig


def _marker(name: str, bound: float, error: float, color: str, symbol: str) -> go.Scatter:
    return charts.marker(name, bound, error, color, symbol, f"{name}: %{{x:,.4~g}}<br>error: %{{y:,.3~g}}")


def measures_figure(view: TotalView, limits: Limits) -> go.Figure:
    """Error against T by each measure, each with its own best T."""
    fig = _empty(view, limits, 420)
    drawn = by_measure(view.errors)
    chosen = view.problem.measure
    # The chosen one last, so that it lies on top.
    for measure in sorted(Measure, key=lambda one: one is chosen):
        name, line = CURVE_NAMES[measure], LINES[measure]
        wide = {**line, "width": CHOSEN_WIDTH} if measure is chosen else line
        fig.add_trace(curve(name, view.bounds, drawn[measure], wide, HOVER))
        best = view.others[measure]
        if best > 0.0:
            error = float(by_measure(total.errors(view.problem, best))[measure])
            marker = _marker(f"Best T, {name}", best, error, line["color"], "diamond")
            fig.add_trace(marker.update(showlegend=False))
    return fig


def error_columns(errors: TotalErrors) -> dict[str, FloatArray]:
    """What the error figures draw, as columns."""
    return {
        "bound": errors.bounds,
        "bias": errors.bias,
        "mean_noise": errors.noise,
        "bias_plus_noise": errors.bound,
        "expected_absolute_error": errors.absolute_error,
        "root_mean_squared_error": errors.rmse,
    }


def error_alt(view: TotalView) -> str:
    """The takeaway of `error_figure`."""
    unit = view.unit
    return (
        f"The {MEASURE_NAMES[view.problem.measure]} is smallest at T = {unit.amount(view.choice.max_total, 4)}: "
        f"{unit.amount(view.choice.certificate.value)}. Below, the bias rises; above, the noise."
    )


def signed_limits(view: SignedView) -> Limits:
    """The axes of `signed_figure`; they depend on the data alone."""
    return (float(view.bounds[0]), view.largest), (view.absolute_sum / 1e3, view.absolute_sum * 1.5)


SIGNED_ALT = (
    "Error of the sum when every total is clipped to [-T, T]: noise grows with T; what is cut away falls."
)


def signed_picture(
    view: SignedView, data: Dataset, measure: Measure, limits: Limits | None = None
) -> Picture:
    """The main figure where totals have both signs, on these axes or on those that it begins with."""
    return Picture(
        "total-signed",
        "Error when totals are clipped to [−T, T]",
        lambda: signed_figure(view, measure, limits or signed_limits(view)),
        SIGNED_ALT,
        error_columns(view.errors),
        data.provenance,
    )


def signed_figure(view: SignedView, measure: Measure, limits: Limits) -> go.Figure:
    """Error against T when totals of both signs are clipped to [-T, T]."""
    errors = by_measure(view.errors)
    shown = Measure.ABSOLUTE if measure is Measure.BOUND else measure
    across = charts.log_axis("T of the range [−T, T] (unit of the column, per user)", limits[0])
    upwards = charts.log_axis("Error of the released sum (unit of the column)", limits[1])
    fig = charts.figure(across, upwards, charts.MAIN_HEIGHT)
    fig.add_trace(curve("Size of the bias", view.bounds, view.errors.bias, charts.SAMPLING, HOVER))
    fig.add_trace(curve("Noise", view.bounds, view.errors.noise, charts.PRIVACY, HOVER))
    line = {**LINES[shown], "width": CHOSEN_WIDTH}
    fig.add_trace(curve(CURVE_NAMES[shown], view.bounds, errors[shown], line, HOVER))
    c = view.clipped
    if c.sensitivity > 0.0:
        charts.add_marker(
            fig,
            "Your [L, U], at max(|L|, |U|)" if view.entered else "Proposed [−T, T]",
            c.sensitivity,
            c.rmse if shown is Measure.RMSE else c.absolute_error,
            charts.OWN["color"] if view.entered else LINES[shown]["color"],
            "square" if view.entered else "diamond",
            "T = %{x:,.4~g}<br>error %{y:,.3~g}",
        )
    return fig


def strategy_limits(curves: StrategyCurves) -> Limits:
    """The axes of `strategy_figure`; they depend on neither epsilon nor the person's own quantile."""
    least = float(curves.relative_error[0].min())
    return (float(curves.epsilons[0]), float(curves.epsilons[-1])), (least / 2.0, 10.0)


def strategy_picture(
    curves: StrategyCurves, points: StrategyPoints | None, epsilon: float, data: Dataset, limits: Limits
) -> Picture:
    """Four ways to choose T over epsilon, with simulated points where there are some."""
    return Picture(
        "total-strategies",
        "Relative error against ε for four ways to choose T",
        lambda: strategy_figure(curves, points, epsilon, limits),
        strategy_alt(curves),
        strategy_columns(curves),
        data.provenance,
    )


def strategy_figure(
    curves: StrategyCurves, points: StrategyPoints | None, epsilon: float, limits: Limits
) -> go.Figure:
    """Relative error against epsilon for four ways to choose T (Amin et al. 2019, figure 1)."""
    fig = charts.log_log(
        "Privacy budget ε", limits[0], "Relative error of the release (1 = 100 %)", limits[1], 460
    )
    hover = "%{fullData.name}<br>ε = %{x:.3~g}: relative error %{y:.3~g}"
    for row, strategy in enumerate(curves.strategies):
        name, line = strategy_name(curves, row), STRATEGY_LINES[row]
        fig.add_trace(curve(name, curves.epsilons, curves.relative_error[row], line, hover))
        if points is not None and strategy in points.strategies:
            fig.add_trace(_simulated(points, row, name))
    if limits[0][0] <= epsilon <= limits[0][1]:
        fig.add_vline(x=epsilon, line={"color": charts.NEUTRAL, "width": 1, "dash": "dot"})
        fig.add_annotation(
            x=math.log10(epsilon), y=1, yref="paper", text="your ε", showarrow=False, xanchor="left", xshift=4
        )
    return fig


def _simulated(points: StrategyPoints, row: int, name: str) -> go.Scatter:
    return charts.points(
        f"{name}, simulated",
        points.epsilons,
        points.relative_error[row],
        {"color": STRATEGY_LINES[row]["color"], "size": 7, "symbol": SYMBOLS[row]},
        f"{name}, simulated<br>ε = %{{x:.3~g}}: %{{y:.3~g}} ± %{{error_y.array:.2~g}}",
        error_y=charts.whiskers(2.0 * points.standard_error[row]),
        showlegend=False,
    )


def strategy_name(curves: StrategyCurves, row: int) -> str:
    """Name of a strategy in the legend; the best bound has a T for every epsilon, a quantile has one."""
    name = curves.strategies[row].name.capitalize()
    return (
        name
        if curves.strategies[row].share is None
        else f"{name} (T = {wording.number(curves.bounds[row, 0])})"
    )


def strategy_columns(curves: StrategyCurves) -> dict[str, FloatArray]:
    """What `strategy_figure` draws as lines."""
    columns = {"epsilon": curves.epsilons}
    for row, strategy in enumerate(curves.strategies):
        stem = _stem(strategy, row)
        columns[f"{stem}_bound"] = curves.bounds[row]
        columns[f"{stem}_relative_error"] = curves.relative_error[row]
    return columns


def point_columns(points: StrategyPoints) -> dict[str, FloatArray]:
    """The simulated points; their standard errors beside them."""
    columns = {"epsilon": points.epsilons}
    for row, strategy in enumerate(points.strategies):
        stem = _stem(strategy, row)
        columns[f"{stem}_simulated_error"] = points.relative_error[row]
        columns[f"{stem}_standard_error"] = points.standard_error[row]
    return columns


def _stem(strategy: strategies.Strategy, row: int) -> str:
    return (
        "best",
        "median",
        "quantile_95",
        f"own_quantile_{wording.digits(100.0 * (strategy.share or 0.0))}",
    )[row]


def strategy_alt(curves: StrategyCurves) -> str:
    """The takeaway of `strategy_figure`."""
    parts = []
    for row in range(1, len(curves.strategies)):
        near = near_best(curves, row)
        where = (
            "nowhere"
            if near is None
            else f"for ε from {wording.number(near[0], 2)} to {wording.number(near[1], 2)}"
        )
        parts.append(f"{curves.strategies[row].name} {where}")
    return "Within 10 % of the best bound's error: " + "; ".join(parts) + "."
