"""The figures of Learning under a cap that are drawn on the data. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.learning import files, optimal_cap
from dpcore.learning.optimal_cap import BiasTerm
from pages.learning.answer import MINIMA, LearningView
from pages.shared import charts

BIAS: dict[str, Any] = {"color": "#D55E00", "dash": "dashdot", "width": 1.8}
FINITE: dict[str, Any] = {**charts.SAMPLING, "width": 1.8}
PRIVACY: dict[str, Any] = {**charts.PRIVACY, "width": 1.8}
LIMIT: dict[str, Any] = {**charts.OWN, "width": 1.5}

FRACTION_AXIS = "τ₀ = τ/n: cap as a share of all rows"

# One colour a way, dash patterns within it.
STYLES: dict[BiasTerm, dict[str, Any]] = {
    BiasTerm.WORST_CASE: {"color": "#2C7FB8", "dash": "solid", "width": 2.5},
    BiasTerm.CUT_SHARE: {"color": "#2C7FB8", "dash": "dash", "width": 2},
    BiasTerm.LOG_KEPT: {"color": "#D55E00", "dash": "solid", "width": 2},
    BiasTerm.COROLLARY_1: {"color": "#D55E00", "dash": "dot", "width": 2},
    BiasTerm.VARIANCE_KEPT: {"color": "#009E73", "dash": "dash", "width": 2},
    BiasTerm.CHI_SQUARED: {"color": "#009E73", "dash": "solid", "width": 2.5},
    BiasTerm.LOG_FRACTION: {"color": "#7F7F7F", "dash": "solid", "width": 1.5},
    BiasTerm.VARIANCE_FRACTION: {"color": "#7F7F7F", "dash": "dash", "width": 1.5},
}


def on_log_axis(values: FloatArray) -> FloatArray:
    """Gaps where a log axis has no place for the value (0), or where there is none (infinite)."""
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)


def fraction_axis(limits: tuple[float, float]) -> dict[str, object]:
    """The axis of tau_0."""
    return charts.log_axis(FRACTION_AXIS, limits)


def _hover(curve: go.Scatter, caps: FloatArray) -> go.Scatter:
    """The curve with its caps in the hover text."""
    curve.customdata = caps
    curve.hovertemplate = (
        "%{fullData.name}: %{y:.3g}<br>cap of %{customdata:,.4~g} rows (τ₀ = %{x:.3g})<extra></extra>"
    )
    return curve


def mark_one(fig: go.Figure) -> None:
    """A line at 1, above which a bound on losses in [0, 1] says nothing; its name stands in the legend."""
    line = {"color": charts.OWN["color"], "dash": "dot", "width": 1}
    fig.add_hline(y=1.0, line=line)
    charts.legend_line(fig, "1: above, it promises nothing", line, group="one")


def mark_fraction(fig: go.Figure, fraction: float, text: str, bottom: bool) -> None:
    """A named vertical line at some tau_0."""
    fig.add_vline(x=fraction, line={"color": charts.OWN["color"], "dash": "dot", "width": 1})
    fig.add_annotation(
        x=math.log10(fraction),
        y=0.01 if bottom else 0.99,
        yref="paper",
        text=text,
        showarrow=False,
        xanchor="left",
        yanchor="bottom" if bottom else "top",
        font={"size": 11},
    )


def bound_figure(
    view: LearningView, limits: tuple[tuple[float, float], tuple[float, float]], own_cap: int | None
) -> go.Figure:
    """The bound over tau_0, in its parts, with the best cap."""
    fig = charts.figure(
        fraction_axis(limits[0]), charts.log_axis("Bound on the excess risk", limits[1]), height=560
    )
    tau_0, caps, parts, best = view.fractions, view.caps, view.parts, view.choice
    for name, values, line in (
        ("Bound, all three", parts.total, charts.TOTAL),
        ("Bias, twice", parts.bias, BIAS),
        ("Finite sample", parts.finite_sample, FINITE),
        ("Privacy noise", parts.privacy, PRIVACY),
    ):
        fig.add_trace(_hover(charts.curve(name, tau_0, on_log_axis(values), line, ""), caps))
    mark_one(fig)
    low, high = view.within
    if low < high:
        charts.band(
            fig, low / view.num_rows, high / view.num_rows, f"Caps within 5{wording.PERCENT} of the best"
        )
    for name, cap, color, symbol in (
        ("Best cap", best.max_contributions, charts.CAP["color"], "diamond"),
        ("Your cap", own_cap, charts.OWN["color"], "square"),
    ):
        if cap is None:
            continue
        hover = f"{name}: {wording.counted(cap, 'row')}<br>bound %{{y:.3g}} at τ₀ = %{{x:.3g}}"
        height = on_log_axis(np.array([view.bound_at(cap)]))[0]
        fig.add_trace(charts.marker(name, view.fraction(cap), float(height), color, symbol, hover))
    return fig


def bound_columns(view: LearningView) -> dict[str, FloatArray]:
    """What `bound_figure` draws, as columns, with all bounds on the bias."""
    return files.learning_curves(view.problem, view.fractions)


def bound_alt(view: LearningView) -> str:
    """The takeaway of `bound_figure`."""
    best = view.choice
    return (
        f"The bound is smallest at {wording.counted(best.max_contributions, 'row')} per user, "
        f"{wording.number(best.total)}: twice the bias {wording.number(best.bias)}, finite sample "
        f"{wording.number(best.finite_sample)}, privacy noise {wording.number(best.privacy)}. Lower caps bias more, "
        "higher ones need more noise."
    )


def terms_figure(
    view: LearningView, limits: tuple[tuple[float, float], tuple[float, float]], own_cap: int | None
) -> go.Figure:
    """Twice every bound on the bias over tau_0."""
    fig = charts.figure(
        fraction_axis(limits[0]), charts.log_axis("Twice the bound on the bias", limits[1]), height=520
    )
    terms = optimal_cap.bias_terms(view.problem, view.fractions)
    for term in BiasTerm:
        if term in MINIMA:
            continue
        name = f"{term.title} ({term.group})"
        curve = charts.curve(name, view.fractions, on_log_axis(2.0 * terms[term]), STYLES[term], "")
        fig.add_trace(_hover(curve, view.caps))
    for name, cap in (("best cap", view.choice.max_contributions), ("your cap", own_cap)):
        if cap is not None:
            mark_fraction(fig, view.fraction(cap), name, bottom=name == "best cap")
    mark_one(fig)
    return fig


def terms_alt(view: LearningView) -> str:
    """The takeaway of `terms_figure`."""
    terms = optimal_cap.bias_terms(view.problem, view.choice.fraction)
    return (
        f"At the best cap twice the worst case is {wording.number(2.0 * float(terms[BiasTerm.WORST_CASE]))}, twice "
        f"the share of rows cut {wording.number(2.0 * float(terms[BiasTerm.CUT_SHARE]))}, and Proposition 1's log form "
        f"{wording.number(2.0 * float(terms[BiasTerm.LOG_KEPT]))}."
    )
