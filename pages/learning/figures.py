"""The figures of Learning under a cap that are drawn on the data. Pure: an answer in, a Plotly figure out."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.report import charts
from pages.learning.answer import MINIMA, LearningView, Limits, axis_limits
from pages.shared.figures import Picture

BIAS: dict[str, Any] = {"color": "#D55E00", "dash": "dashdot", "width": 1.8}
FINITE: dict[str, Any] = {**charts.SAMPLING, "width": 1.8}
PRIVACY: dict[str, Any] = {**charts.PRIVACY, "width": 1.8}
LIMIT: dict[str, Any] = {**charts.OWN, "width": 1.5}

CAP_AXIS = "Cap τ: upper bound on the rows of one user"
HOVER = "%{fullData.name}<br>cap τ = %{x:,.4~g}: %{y:.3g}"

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


def mark_one(fig: go.Figure) -> None:
    """A line at 1, above which a bound on losses in [0, 1] says nothing; its name stands in the legend."""
    charts.line_across(fig, 1, "1: above, it promises nothing", width=1, dash="dot")


def _marked(view: LearningView, own_cap: int | None) -> list[tuple[str, int, str, str]]:
    """Name, cap, colour and symbol of the caps that figures mark."""
    found = [("Best cap", view.choice.max_contributions, charts.CAP["color"], "diamond")]
    return found if own_cap is None else [*found, ("Your cap", own_cap, charts.OWN["color"], "square")]


def _terms(view: LearningView) -> dict[BiasTerm, FloatArray]:
    """Twice every bound on the bias that has a curve of its own."""
    return {term: view.curves[f"twice_{term.value}"] for term in BiasTerm if term not in MINIMA}


def bound_picture(
    view: LearningView, own_cap: int | None, kind: Provenance, limits: Limits | None = None
) -> Picture:
    """The bound over the cap, in its parts, with the best cap.

    Args:
        view: The answer.
        own_cap: A cap to mark beside the best one.
        kind: Of the data.
        limits: Of the axes; those of `axis_limits` where not given.
    """
    best = view.choice
    return Picture(
        "learning-bound",
        "Bound on the excess risk against the cap",
        lambda: _bound_figure(view, own_cap, limits or axis_limits(view)),
        f"The bound is smallest at {wording.counted(best.max_contributions, 'row')} per user, "
        f"{wording.number(best.total)}: twice the bias {wording.number(best.bias)}, finite sample "
        f"{wording.number(best.finite_sample)}, privacy noise {wording.number(best.privacy)}. Lower caps bias more, "
        "higher ones need more noise.",
        view.curves,
        kind,
    )


def _bound_figure(view: LearningView, own_cap: int | None, limits: Limits) -> go.Figure:
    fig = charts.log_log(CAP_AXIS, limits[0], "Bound on the excess risk", limits[1], charts.MAIN_HEIGHT)
    for name, column, line in (
        ("Bound, all three", "bound", charts.TOTAL),
        ("Bias, twice", "bias_twice", BIAS),
        ("Finite sample", "finite_sample", FINITE),
        ("Privacy noise", "privacy_noise", PRIVACY),
    ):
        charts.add_curve(fig, name, view.curves["cap_rows"], on_log_axis(view.curves[column]), line, HOVER)
    mark_one(fig)
    low, high = view.within
    if low < high:
        charts.band(fig, low, high, f"Caps within 5{wording.PERCENT} of the best")
    for name, cap, color, symbol in _marked(view, own_cap):
        height = on_log_axis(np.array([view.bound_at(cap)]))[0]
        hover = f"{name}: {wording.counted(cap, 'row')}<br>bound %{{y:.3g}}"
        charts.add_marker(fig, name, cap, float(height), color, symbol, hover)
    return fig


def terms_picture(
    view: LearningView, own_cap: int | None, kind: Provenance, limits: Limits | None = None
) -> Picture:
    """Twice every bound on the bias over the cap; arguments as `bound_picture`."""
    at_best = optimal_cap.bias_terms(view.problem, view.choice.fraction)
    worst, cut, log = (
        wording.number(2.0 * float(at_best[term]))
        for term in (BiasTerm.WORST_CASE, BiasTerm.CUT_SHARE, BiasTerm.LOG_KEPT)
    )
    return Picture(
        "learning-terms",
        "All bounds on the bias",
        lambda: _terms_figure(view, own_cap, limits or axis_limits(view)),
        f"At the best cap twice the worst case is {worst}, twice the share of rows cut {cut}, and Proposition 1's log "
        f"form {log}.",
        view.curves,
        kind,
    )


def _terms_figure(view: LearningView, own_cap: int | None, limits: Limits) -> go.Figure:
    fig = charts.log_log(CAP_AXIS, limits[0], "Twice the bound on the bias", limits[1], 520)
    for term, twice in _terms(view).items():
        name = f"{term.title} ({term.group})"
        charts.add_curve(fig, name, view.curves["cap_rows"], on_log_axis(twice), STYLES[term], HOVER)
    ends = np.array(limits[1])
    for name, cap, color, _ in _marked(view, own_cap):
        line = {"color": color, "dash": "dot", "width": 1.5}
        hover = f"{name}: {wording.counted(cap, 'row')}"
        charts.add_curve(fig, name, np.full(2, float(cap)), ends, line, hover)
    mark_one(fig)
    return fig
