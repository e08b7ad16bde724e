"""The figures of Learning under a cap on a population: 2, 3, and the cost of privacy. Pure functions."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dpcore import learning
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.learning import population
from dpcore.report import charts
from pages.learning.figures import BIAS, LIMIT, PRIVACY, mark_one, on_log_axis
from pages.learning.population import (
    FAMILY,
    FRACTIONS,
    PopulationView,
    Simulated,
    cost_columns,
    cost_over_rows_columns,
    cost_over_rows_sentence,
    floor_vanishes,
    mass_columns,
    simulated_columns,
)
from pages.shared.figures import Picture

FRACTION_AXIS = "τ₀ = τ/n: cap as a share of all rows"
FAMILY_LINES = (
    {"color": "#B57A00", "dash": "dot", "width": 1.5},
    {"color": "#009E73", "dash": "dash", "width": 1.5},
    {"color": "#D55E00", "dash": "dashdot", "width": 1.5},
    {"color": "#B0609C", "dash": "longdash", "width": 1.5},
    {"color": "#7F7F7F", "dash": "longdashdot", "width": 1.5},
)
ERRORS, USERS, COSTS = (1e-2, 1e2), (1e-1, 1e4), (1e-5, 1e2)
"""Where axes start and end before anything is chosen."""
SIMULATED = {"color": "#B57A00", "size": 7, "symbol": "circle-open", "line": {"width": 1.5}}


def mass_picture(alpha: float, limits: tuple[float, float] = FRACTIONS) -> Picture:
    """Figure 2: mass of uncapped users over tau_0, on the given range of it."""
    columns = mass_columns(alpha)
    return Picture(
        "learning-figure-2",
        "Mass of users below the cap",
        lambda: _mass_figure(alpha, columns, limits),
        "The larger α, the larger the cap must be before most rows come from users below it.",
        columns,
        Disclosure.PUBLIC,
    )


def _mass_figure(alpha: float, columns: dict[str, FloatArray], limits: tuple[float, float]) -> go.Figure:
    tau_0 = columns["tau_0"]
    fig = charts.log_linear(FRACTION_AXIS, limits, "Share of all rows", (0.0, 1.02), 460, percent=True)
    hover = "%{fullData.name}<br>τ₀ = %{x:.3g}: %{y:.3p}"
    for other, line in zip(FAMILY, FAMILY_LINES, strict=True):
        if other != alpha:
            y = columns[f"uncapped_mass_alpha_{wording.digits(other)}"]
            charts.add_curve(fig, f"α = {wording.entered(other)}", tau_0, y, {**line, "shape": "hv"}, hover)
    chosen = f"α = {wording.entered(alpha)}"
    steps = {**charts.TOTAL, "shape": "hv"}
    charts.add_curve(fig, f"{chosen}, uncapped users", tau_0, columns["uncapped_mass"], steps, hover)
    kept = columns["kept_share_in_the_limit"]
    charts.add_curve(fig, f"{chosen}, all rows kept", tau_0, kept, {**charts.TOTAL, "dash": "dash"}, hover)
    return fig


def cost_picture(
    view: PopulationView,
    simulated: Simulated | None,
    limits: tuple[float, float],
    errors: tuple[float, float] = ERRORS,
) -> Picture:
    """Figure 3a: bias plus privacy noise over tau_0."""
    return Picture(
        "learning-figure-3a",
        "Bias and privacy noise",
        lambda: _cost_figure(view, simulated, limits, errors),
        f"Bias falls and privacy noise rises with the cap; their sum is at least {wording.number(view.best.total)}.",
        cost_columns(view),
        Disclosure.PUBLIC,
    )


def _cost_figure(
    view: PopulationView,
    simulated: Simulated | None,
    limits: tuple[float, float],
    errors: tuple[float, float],
) -> go.Figure:
    fig = charts.log_log(FRACTION_AXIS, limits, "Bias and privacy noise", errors, 440)
    hover = "%{fullData.name}<br>τ₀ = %{x:.3g}: %{y:.3g}"
    for name, values, line in (
        ("Sum", view.parts.bias + view.parts.privacy, charts.TOTAL),
        ("Bias, twice", view.parts.bias, BIAS),
        ("Privacy noise", view.parts.privacy, PRIVACY),
        ("Sum, n → ∞", view.limit_parts.bias + view.limit_parts.privacy, LIMIT),
    ):
        charts.add_curve(fig, name, view.fractions, on_log_axis(values), line, hover)
    if simulated is not None and simulated.count:
        here = view.parameters.population(view.parameters.population_rows)
        parts = population.simulated_error_parts(here, simulated.fractions, simulated.draws)
        fig.add_trace(_points("Simulated", simulated.fractions, on_log_axis(parts.bias + parts.privacy)))
    mark_one(fig)
    best = view.best
    text = "Smallest: %{y:.3g} at %{x:.3g}"
    charts.add_marker(fig, "Smallest", best.fraction, best.total, charts.CAP, "diamond", text)
    return fig


def capped_picture(
    view: PopulationView,
    simulated: Simulated | None,
    limits: tuple[float, float],
    users: tuple[float, float] = USERS,
) -> Picture:
    """Figure 3b: users capped over tau_0."""
    return Picture(
        "learning-figure-3b",
        "Users capped",
        lambda: _capped_figure(view, simulated, limits, users),
        f"Users expected to be capped at the best cap: {wording.number(view.capped_at_best, 2)}.",
        cost_columns(view) if simulated is None else simulated_columns(view, simulated),
        Disclosure.PUBLIC,
    )


def _capped_figure(
    view: PopulationView, simulated: Simulated | None, limits: tuple[float, float], users: tuple[float, float]
) -> go.Figure:
    fig = charts.log_log(FRACTION_AXIS, limits, "Users capped (expected number)", users, 440)
    hover = "%{fullData.name}<br>τ₀ = %{x:.3g}: %{y:.3g}"
    for name, values, line in (
        ("Users capped", view.statistics.users_capped, charts.TOTAL),
        ("n → ∞", view.limit_statistics.users_capped, LIMIT),
    ):
        charts.add_curve(fig, name, view.fractions, on_log_axis(values), line, hover)
    if simulated is not None and simulated.count:
        drawn = simulated.draws.users_capped.mean(axis=0)
        fig.add_trace(_points("Simulated", simulated.fractions, on_log_axis(drawn)))
    marked = on_log_axis(np.array([view.capped_at_best]))[0]
    text = "Users capped at τ₀ = %{x:.3g}: %{y:.3g}"
    charts.add_marker(
        fig, "At the smallest sum", view.best.fraction, float(marked), charts.CAP, "diamond", text
    )
    return fig


def _points(name: str, x: FloatArray, y: FloatArray) -> go.Scatter:
    hover = "%{fullData.name}<br>τ₀ = %{x:.3g}: %{y:.3g}<extra></extra>"
    return go.Scatter(x=x, y=y, name=name, mode="markers", marker=SIMULATED, hovertemplate=hover)


def cost_over_rows_picture(
    cost: population.CostOfPrivacy,
    parameters: learning.LearningParameters,
    errors: tuple[float, float] = COSTS,
) -> Picture:
    """The smallest bias plus privacy noise over n, beside what falls to zero."""
    return Picture(
        "learning-cost",
        "Cost of privacy",
        lambda: _cost_over_rows_figure(cost, parameters, errors),
        cost_over_rows_sentence(cost, parameters).replace("**", ""),
        cost_over_rows_columns(cost, parameters),
        Disclosure.PUBLIC,
    )


def _cost_over_rows_figure(
    cost: population.CostOfPrivacy, parameters: learning.LearningParameters, errors: tuple[float, float]
) -> go.Figure:
    columns = cost_over_rows_columns(cost, parameters)
    rows = columns["num_rows"]
    across = charts.log_axis("Rows n", (population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1]))
    upwards = charts.log_axis("Smallest bias + privacy noise over all τ₀", errors)
    fig = charts.figure(across, upwards, 480)
    hover = "%{fullData.name}<br>n = %{x:,.3~g}: %{y:.3g}"
    for name, key, line, mode in (
        ("Smallest sum: cost of privacy", "smallest_sum", charts.TOTAL, "lines+markers"),
        ("its bias, twice", "bias_twice", BIAS, "lines"),
        ("its privacy noise", "privacy_noise", PRIVACY, "lines"),
        ("Finite-sample term, no cap", "finite_sample_without_a_cap", charts.SAMPLING, "lines"),
    ):
        if np.all(columns[key] == 0.0):
            continue
        trace = charts.curve(name, rows, on_log_axis(columns[key]), line, hover)
        trace.mode = mode
        fig.add_trace(trace)
    if not floor_vanishes(cost, parameters) and cost.limit.complete:
        ends = np.array([population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1]], dtype=np.float64)
        floor = np.full(2, cost.limit.total)
        charts.add_curve(fig, "Floor, n → ∞", ends, floor, LIMIT, "n → ∞: %{y:.4g}")
    return fig
