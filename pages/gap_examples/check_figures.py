"""The figures of the page on the largest gap, regression and simulation. Pure: answers in, Plotly figures out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dpcore import gap_examples, mean
from dpcore.answer import axes
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, log_spaced
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.report import charts
from pages.gap_examples.answer import Growth, RegressionStep
from pages.gap_examples.figures import level
from pages.shared.figures import Picture

G_LIMITS = (float(REGRESSION_G[0]) * 0.95, float(REGRESSION_G[-1]) * 1.05)
GROWTH_LIMITS = (0.3, 1_000.0)
METHODS = (("Cap", charts.CAP, "diamond"), ("Weights", charts.SMOOTH, "circle"))


def growth_figure(growth: Growth, step: RegressionStep) -> go.Figure:
    """The ratio grows without bound."""
    fig = charts.log_log(
        "Size g of the example", G_LIMITS, "Variance, sample limiting : C", GROWTH_LIMITS, 400
    )
    hover = "%{fullData.name}<br>g = %{x}: %{y:.4g}"
    g = growth.g.astype(np.float64)
    charts.add_curve(fig, "To the paper's C", g, growth.ratio, charts.CAP, hover)
    # Dotted and on top: for large g in example 1 the two lie on each other.
    best = {**charts.SMOOTH, "dash": "dot"}
    charts.add_curve(fig, "To the best C", g, growth.best_ratio, best, hover)
    charts.add_curve(fig, "Paper's bounds", g, growth.guaranteed, charts.OWN, hover)
    fig.add_trace(level("The most for a mean", G_LIMITS, gap_examples.supremum().ratio, "dot"))
    charts.add_marker(fig, "Here", step.example.g, step.ratio, charts.CAP, "diamond", f"Here<br>{hover}")
    return fig


def growth_picture(growth: Growth, step: RegressionStep) -> Picture:
    """The ratio over g."""
    columns = {
        "g": growth.g.astype(np.float64),
        "ratio": growth.ratio,
        "ratio_to_best_c": growth.best_ratio,
        "ratio_guaranteed": growth.guaranteed,
    }
    return Picture(
        "gap-growth",
        "The gap grows",
        lambda: growth_figure(growth, step),
        f"The ratio grows with g without bound; at g = {step.example.g} it is {step.ratio:.3g} to the paper's C, "
        f"{step.best_ratio:.3g} to the best.",
        columns,
        Disclosure.PUBLIC,
    )


def threshold_columns(step: RegressionStep) -> dict[str, FloatArray]:
    """Sample limiting over its thresholds, beside C."""
    return {
        "threshold": step.thresholds.astype(np.float64),
        "sample_limiting_over_c": step.limiting / step.example.feasible.variance,
    }


def threshold_figure(step: RegressionStep) -> go.Figure:
    """Sample limiting at every threshold, in units of the paper's C."""
    columns = threshold_columns(step)
    across = charts.log_axis("Threshold h: rows kept per user", (0.9, float(REGRESSION_G[-1]) * 1.1))
    upwards = charts.log_axis("Variance (1 = with the paper's C)", (0.3, 10_000.0))
    fig = charts.figure(across, upwards, 400)
    hover = "h = %{x}: %{y:.4g} times"
    trace = charts.curve(
        "Sample limiting", columns["threshold"], columns["sample_limiting_over_c"], charts.CAP, hover
    )
    trace.mode = "lines+markers" if step.thresholds.size <= 30 else "lines"
    fig.add_trace(trace)
    charts.add_curve(fig, "The paper's C", np.array([0.9, 110.0]), np.ones(2), charts.SMOOTH, "C: 1")
    bound = step.example.limiting_bound / step.example.feasible.variance
    fig.add_trace(level("Paper's bound for it", (0.9, 110.0), bound))
    hover = "Best: h = %{x}: %{y:.4g} times"
    charts.add_marker(fig, "Best threshold", step.best, step.ratio, charts.CAP, "diamond", hover)
    return fig


def threshold_picture(step: RegressionStep) -> Picture:
    """Sample limiting over its thresholds."""
    return Picture(
        "gap-thresholds",
        "Sample limiting",
        lambda: threshold_figure(step),
        f"The best threshold of sample limiting, {step.best}, has {step.ratio:.3g} times the variance of the "
        "paper's C.",
        threshold_columns(step),
        Disclosure.PUBLIC,
    )


def estimates(results: Sequence[gap_examples.SimulationResult], method: str) -> list[gap_examples.Estimate]:
    """The estimates of one of `METHODS`."""
    return [r.capped if method == "Cap" else r.smooth for r in results]


def simulation_columns(results: Sequence[gap_examples.SimulationResult]) -> dict[str, FloatArray]:
    """What was simulated, beside the formulas."""
    columns = {"bound": np.array([r.threshold for r in results])}
    for method, name in (("Cap", "cap"), ("Weights", "smooth")):
        found = estimates(results, method)
        for part in ("variance", "low", "high", "formula"):
            columns[f"{name}_{part}"] = np.array([getattr(e, part) for e in found])
    return columns


def overlay_figure(
    problem: mean.MeanProblem, results: Sequence[gap_examples.SimulationResult], limits: tuple[float, float]
) -> go.Figure:
    """Simulated variances with their intervals on the formulas' curves."""
    unit = mean.best_smooth(problem).variance
    low, high = results[0].threshold, max(results[-1].threshold, 2.0 * results[0].threshold)
    h = log_spaced(low, high, 200)
    fig = charts.log_log(
        axes.BOUND_AXIS, (low * 0.9, high * 1.1), "Variance (1 = with the best weights)", limits, 420
    )
    for (method, line, symbol), formula in zip(
        METHODS, (mean.capped_variance, mean.smooth_variance), strict=True
    ):
        look = {**line, "width": 1.5}
        hover = f"{method}, formula<br>h = %{{x:,.3~g}}: %{{y:.4g}}"
        charts.add_curve(fig, f"{method}, formula", h, formula(problem, h) / unit, look, hover)
        fig.add_trace(_points(results, method, line["color"], symbol, unit))
    return fig


def quotient_figure(results: Sequence[gap_examples.SimulationResult]) -> go.Figure:
    """Simulated over formula: every interval should contain 1, nearly."""
    low, high = results[0].threshold, max(results[-1].threshold, 2.0 * results[0].threshold)
    # The squared error of Laplace noise alone varies by 5 times its mean squared: no interval is much longer.
    reach = 4.5 * (5.0 / results[0].runs) ** 0.5
    fig = charts.log_linear(
        axes.BOUND_AXIS, (low * 0.9, high * 1.1), "Simulated : formula", (1.0 - reach, 1.0 + reach), 420
    )
    fig.add_trace(level("Formula", (low * 0.9, high * 1.1), 1.0))
    for method, line, symbol in METHODS:
        fig.add_trace(_points(results, method, line["color"], symbol, None))
    return fig


def simulation_pictures(
    problem: mean.MeanProblem,
    results: Sequence[gap_examples.SimulationResult],
    limits: tuple[float, float],
    kind: Provenance,
) -> tuple[Picture, Picture]:
    """Simulated variances on the curves of the formulas, and over them."""
    columns, (hit, number) = simulation_columns(results), hits(results)
    overlay = Picture(
        "gap-overlay",
        "Simulated variances",
        lambda: overlay_figure(problem, results, limits),
        "The simulated variances lie on the curves of the formulas.",
        columns,
        kind,
    )
    quotient = Picture(
        "gap-quotient",
        "Simulated : formula",
        lambda: quotient_figure(results),
        f"The formula lies in {hit} of {number} intervals.",
        columns,
        kind,
    )
    return overlay, quotient


def hits(results: Sequence[gap_examples.SimulationResult]) -> tuple[int, int]:
    """In how many intervals the formula lies, and how many there are."""
    found = [estimate for method, *_ in METHODS for estimate in estimates(results, method)]
    return sum(estimate.covers for estimate in found), len(found)


def _points(
    results: Sequence[gap_examples.SimulationResult], method: str, color: str, symbol: str, unit: float | None
) -> go.Scatter:
    """Estimates with their intervals, in ``unit`` or each in that of its formula; caps a little left of weights."""
    found = estimates(results, method)
    units = np.array([e.formula if unit is None else unit for e in found])
    y, low, high = (
        np.array([getattr(e, part) for e in found]) / units for part in ("variance", "low", "high")
    )
    return charts.points(
        f"{method}, simulated",
        np.array([r.threshold for r in results]) * (0.985 if method == "Cap" else 1.015),
        y,
        {"color": color, "symbol": symbol, "size": 8},
        f"{method}, simulated<br>h = %{{customdata[2]:,}}: %{{y:.4g}}<br>"
        "95 % interval %{customdata[0]:.4g} to %{customdata[1]:.4g}",
        error_y=charts.whiskers(high - y, y - low, color=color),
        customdata=np.stack((low, high, [r.threshold for r in results]), axis=-1),
    )
