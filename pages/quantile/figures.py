"""The figures of the Quantile page and of its report. Pure: an answer in, a picture out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from dpcore.answer.axes import BOUND_AXIS, curve_bounds
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.quantile import WeightKind
from dpcore.quantile.optimal_bound import QuantileChoice
from dpcore.quantile.parameters import Weighting
from dpcore.quantile.several import SampledAnswers
from dpcore.report import charts
from pages.quantile.answer import Poorer, QuantileView, mean_error, near_grid
from pages.quantile.card import name_of
from pages.shared import missing
from pages.shared.figures import Picture

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the bound's axis and of the error's."""

BINS = 240
SAMPLE_BINS = 40
VALUE_AXIS = "Answer (unit of the values)"
# One look per quantile, other than those of cap and smooth weights; at most MAX_QUANTILES are asked for.
QUANTILE_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#009E73", "dash": "solid", "width": 2.5},
    {"color": "#B0609C", "dash": "dash", "width": 2.5},
    {"color": "#B57A00", "dash": "dashdot", "width": 2.5},
    {"color": "#2C7FB8", "dash": "dot", "width": 2.5},
    {"color": "#D55E00", "dash": "longdash", "width": 2.5},
)
MEAN, EXACT = "Mean of the answer", "Quantile of the rows"
UPRIGHTS: dict[str, dict[str, Any]] = {
    MEAN: {"dash": "dot", "width": 1.5},
    EXACT: {"dash": "solid", "width": 1},
}
KINDS = (
    (WeightKind.SMOOTH, "Smooth weights", charts.SMOOTH, "circle"),
    (WeightKind.CAP, "Cap", charts.CAP, "diamond"),
)


@dataclass(frozen=True)
class About:
    """What the figures are about.

    Attributes:
        kind: Whether the data behind them are public, private or a release.
        demonstration: Whether these are invented data that stand in for data without values.
    """

    kind: Provenance
    demonstration: bool = False

    def picture(
        self,
        key: str,
        title: str,
        draw: Callable[[], go.Figure],
        alt: str,
        columns: Mapping[str, npt.ArrayLike],
    ) -> Picture:
        """A picture of these data; a demonstration says so above it."""
        if not self.demonstration:
            return Picture(key, title, draw, alt, columns, self.kind)
        named = lambda: charts.labelled(draw(), missing.DEMONSTRATION)  # noqa: E731
        return Picture(key, title, named, f"{missing.DEMONSTRATION}. {alt}", columns, self.kind)


def error_picture(view: QuantileView, limits: Limits, about: About) -> Picture:
    """Expected rank error against the bound, with the best of each kind; ``limits`` of both axes."""
    parts = [(name, *_tried(view.choices.of(kind))) for kind, name, *_ in KINDS]
    columns: dict[str, npt.ArrayLike] = {
        "weights": [name.lower() for name, x, _ in parts for _ in x],
        "bound": np.concatenate([x for _, x, _ in parts]),
        "expected_rank_error": np.concatenate([y for *_, y in parts]),
        "standard_error_over_subsamples": np.concatenate(
            [
                (tried := view.choices.of(kind).tried).standard_error[~np.isnan(tried.rank_error)]
                for kind, *_ in KINDS
            ]
        ),
    }
    smooth, cap = view.choices.smooth, view.choices.cap
    over = f" on average over {wording.counted(cap.subsamples, 'subsample')}" if cap.subsamples > 1 else ""
    alt = (
        f"The expected rank error is least at {wording.counted(smooth.bound, 'row')} with smooth weights, "
        f"{wording.percent(smooth.rank_error)}, and at {wording.counted(cap.bound, 'row')} with a cap, "
        f"{wording.percent(cap.rank_error)}{over}; without a bound it is {wording.percent(view.unbounded_error)}."
    )
    return about.picture(
        "quantile-error",
        "Rank error against the bound",
        lambda: _error_figure(view, limits),
        alt,
        columns,
    )


def density_picture(view: QuantileView, window: tuple[float, float], about: About) -> Picture:
    """Where the answer falls, among the values in ``window``."""
    alt = " ".join(
        f"{name_of(one.quantile)}: 95 % of answers lie between {wording.number(one.interval()[0])} and "
        f"{wording.number(one.interval()[1])}; the quantile of the rows is {wording.number(true)}."
        for one, true in zip(view.outputs, view.exact, strict=True)
    )
    return about.picture(
        "quantile-density",
        "Where the answer falls",
        lambda: _density_figure(view, window),
        alt,
        _density_columns(view, window),
    )


def near_picture(view: QuantileView, about: About) -> Picture:
    """How near the answer falls, in rank."""
    within = [float(one.probability_within(0.01)) for one in view.outputs]
    alt = f"Within 1 % of rank with probability {' and '.join(wording.percent(p) for p in within)}."
    return about.picture(
        "quantile-near", "How near it falls", lambda: _near_figure(view), alt, _near_columns(view)
    )


def paper_picture(view: QuantileView, limits: tuple[float, float], about: About) -> Picture:
    """The paper's bound against h; ``limits`` of the bound's axis."""
    return about.picture(
        "quantile-paper",
        "The paper's bound",
        lambda: _paper_figure(view, limits),
        f"The paper's bound is least near {wording.counted(view.counts_bound, 'row')}.",
        _paper_columns(view),
    )


def poorer_picture(
    view: QuantileView, how: Poorer, steps: FloatArray, errors: FloatArray, about: About
) -> Picture:
    """What a poorer base costs; ``steps`` and ``errors`` of shape (k,)."""
    worst = wording.percent(float(np.nanmax(errors, initial=0.0)))
    return about.picture(
        "quantile-poorer",
        "Poorer bases",
        lambda: _poorer_figure(how, steps, errors),
        f"The largest error of these bases is {worst}; for the base as entered it is "
        f"{wording.percent(view.rank_error)}.",
        {"times_as_wide" if how is Poorer.WIDER else "moved_by_widths": steps, "expected_rank_error": errors},
    )


def sample_picture(
    view: QuantileView, sampled: SampledAnswers, window: tuple[float, float], about: About
) -> Picture:
    """Simulated answers beside their exact probabilities, among the values in ``window``."""
    return about.picture(
        "quantile-samples",
        "Sampled answers",
        lambda: _sample_figure(view, sampled, window),
        "Simulated answers beside their exact probabilities.",
        _sample_columns(view, sampled, window),
    )


def _tried(choice: QuantileChoice) -> tuple[FloatArray, FloatArray]:
    done = ~np.isnan(choice.tried.rank_error)
    return choice.tried.bounds[done], choice.tried.rank_error[done]


def _error_figure(view: QuantileView, limits: tuple[tuple[float, float], tuple[float, float]]) -> go.Figure:
    """Expected rank error against the bound, both kinds, with the best of each and the bound in use."""
    across = charts.log_axis(BOUND_AXIS, limits[0])
    upwards = charts.log_axis("Expected rank error |F(answer) − q| (share of rows)", limits[1])
    fig = charts.figure(across, upwards, charts.MAIN_HEIGHT)
    for kind, name, line, symbol in KINDS:
        choice = view.choices.of(kind)
        x, y = _tried(choice)
        charts.add_curve(fig, name, x, y, line, f"{name}<br>bound %{{x:,.3~g}} rows: %{{y:.3~%}}")
        text = f"Best: {name.lower()}<br>%{{x:,.3~g}} rows: %{{y:.3~%}}"
        charts.add_marker(fig, f"Best, {name.lower()}", choice.bound, choice.rank_error, line, symbol, text)
    ends = np.array(limits[0])
    flat = np.full(2, view.unbounded_error)
    charts.add_curve(fig, "No bound", ends, flat, charts.OWN, "no bound: %{y:.3~%}")
    if view.ties:
        least = np.full(2, view.least_error)
        line = {**charts.SAMPLING, "color": charts.NEUTRAL}
        charts.add_curve(fig, "Least possible (ties)", ends, least, line, "least possible: %{y:.3~%}")
    if view.bound != view.choices.of(view.kind).bound:
        text = f"In use: {wording.counted(view.bound, 'row')}<br>%{{y:.3~%}}"
        charts.add_marker(fig, "In use", view.bound, view.rank_error, charts.NEUTRAL, "square", text)
    if view.own is not None and view.parameters.own_bound is not None:
        bound = view.parameters.own_bound
        text = f"Your own bound: {wording.counted(bound, 'row')}<br>%{{y:.3~%}}"
        charts.add_marker(fig, "Your own bound", bound, mean_error(view.own), charts.NEUTRAL, "x", text)
    return fig


def _density_columns(view: QuantileView, limits: tuple[float, float]) -> dict[str, FloatArray]:
    """Exact mean density of the answers on equal bins."""
    edges = np.linspace(*limits, BINS + 1)
    columns = {"from": edges[:-1], "to": edges[1:]}
    for one in view.outputs:
        columns[f"density_q{wording.digits(one.quantile)}"] = one.binned_density(*limits, BINS)[1]
    columns["base_density"] = _base_density(view, edges)
    return columns


def _base_density(view: QuantileView, edges: FloatArray) -> FloatArray:
    # Between two edges the base may change its form: its mass there is that of the pieces.
    base = view.problem.base
    cuts = np.union1d(edges, base.breaks[(base.breaks > edges[0]) & (base.breaks < edges[-1])])
    below = np.concatenate(([0.0], np.cumsum(np.exp(base.log_mass(cuts[:-1], cuts[1:])))))
    return np.diff(below[np.searchsorted(cuts, edges)]) / np.diff(edges)


def _density_figure(view: QuantileView, limits: tuple[float, float]) -> go.Figure:
    """Where the answer falls: its exact density, with its mean and the quantile of the rows.

    The vertical axis is free: a density has area 1, so its height must move with epsilon.
    """
    columns = _density_columns(view, limits)
    fig = charts.figure(
        charts.linear_axis(VALUE_AXIS, limits),
        {
            "title": {"text": "Density (per unit of the values)"},
            "rangemode": "tozero",
            "tickformat": charts.NUMBER,
        },
        height=400,
    )
    middle = (columns["from"] + columns["to"]) / 2.0
    for one, line, true in zip(view.outputs, QUANTILE_LINES, view.exact, strict=False):
        density = columns[f"density_q{wording.digits(one.quantile)}"]
        name = name_of(one.quantile)
        trace = charts.curve(name, middle, density, line, f"{name}<br>%{{x:,.4~g}}: density %{{y:.3~g}}")
        trace.line.shape = "hvh"
        fig.add_trace(trace)
        top = float(density.max()) or 1.0
        for what, x in ((MEAN, one.mean), (EXACT, true)):
            if limits[0] <= x <= limits[1]:
                look = {**UPRIGHTS[what], "color": line["color"]}
                hover = f"{name}: {what.lower()}<br>%{{x:,.4~g}}"
                upright = charts.curve(
                    f"{name}: {what.lower()}", np.full(2, x), np.array([0.0, top]), look, hover
                )
                upright.showlegend = False
                fig.add_trace(upright)
    if len(view.outputs) == 1 and view.own is not None:
        own = view.own.outputs[0].binned_density(*limits, BINS)[1]
        charts.add_curve(
            fig, "Your own bound", middle, own, charts.USUAL, "your own bound: density %{y:.3~g}"
        )
    if len(view.outputs) == 1 and view.bound < view.problem.histogram.max_size:
        flat = view.unbounded.outputs[0].binned_density(*limits, BINS)[1]
        charts.add_curve(fig, "Without a bound", middle, flat, charts.OWN, "no bound: density %{y:.3~g}")
    base = {**charts.SAMPLING, "color": charts.NEUTRAL}
    charts.add_curve(fig, "Base ν", middle, columns["base_density"], base, "base: density %{y:.3~g}")
    for what, look in UPRIGHTS.items():
        charts.legend_line(fig, what, look, group=what)
    return fig


def _near_columns(view: QuantileView) -> dict[str, FloatArray]:
    """P(|F(answer) - q| <= t), with the bound in use and without any."""
    t = near_grid()
    columns = {"distance_in_rank": t}
    for one, free in zip(view.outputs, view.unbounded.outputs, strict=True):
        columns[f"probability_q{wording.digits(one.quantile)}"] = one.probability_within(t)
        columns[f"probability_q{wording.digits(one.quantile)}_without_bound"] = free.probability_within(t)
    return columns


def _near_figure(view: QuantileView) -> go.Figure:
    """Probability that the answer lies within t in rank of the quantile, over t."""
    columns = _near_columns(view)
    t = columns["distance_in_rank"]
    across = charts.log_axis("Distance t in rank (share of rows)", (1e-4, 0.5))
    upwards = charts.linear_axis("Probability that |F(answer) − q| ≤ t", (0.0, 1.02), percent=True)
    fig = charts.figure(across, upwards, 400)
    for one, line in zip(view.outputs, QUANTILE_LINES, strict=False):
        name = name_of(one.quantile)
        hover = f"{name}<br>within %{{x:.3~g}}: %{{y:.2~%}}"
        y = columns[f"probability_q{wording.digits(one.quantile)}"]
        charts.add_curve(fig, name, t, y, line, hover)
        if view.parameters.weighting is Weighting.NONE:
            continue
        free = columns[f"probability_q{wording.digits(one.quantile)}_without_bound"]
        trace = charts.curve(
            f"{name}, without a bound", t, free, {**charts.OWN, "color": line["color"]}, hover
        )
        trace.showlegend, trace.opacity = len(view.outputs) == 1, 0.7
        fig.add_trace(trace)
    if len(view.outputs) > 1 and view.parameters.weighting is not Weighting.NONE:
        charts.legend_line(fig, "Without a bound", charts.OWN, group="")
    return fig


def _paper_columns(view: QuantileView) -> dict[str, FloatArray]:
    """The paper's bound on the rank error against h."""
    bound, histogram = view.parameters.rank_bound(view.problem.histogram), view.problem.histogram
    h = curve_bounds(histogram)
    return {
        "bound": h,
        "smooth_paper_bound": bound.value(WeightKind.SMOOTH, h),
        "cap_paper_bound": bound.value(WeightKind.CAP, h),
    }


def _paper_figure(view: QuantileView, limits: tuple[float, float]) -> go.Figure:
    """The paper's bound for both kinds, with the best h of its trade-off form."""
    columns, bound = _paper_columns(view), view.parameters.rank_bound(view.problem.histogram)
    fig = charts.log_log(BOUND_AXIS, limits, "Bound on the rank error (share of rows)", (1e-3, 1e2), 400)
    for kind, name, line, symbol in KINDS:
        key = "smooth_paper_bound" if kind is WeightKind.SMOOTH else "cap_paper_bound"
        hover = f"{name}<br>bound %{{x:,.3~g}} rows: %{{y:.3~g}}"
        charts.add_curve(fig, name, columns["bound"], columns[key], line, hover)
        best = bound.best(kind).bound
        value = float(bound.value(kind, best))
        text = f"Best by the trade-off form, {name.lower()}<br>%{{x:,.3~g}} rows: %{{y:.3~g}}"
        charts.add_marker(fig, f"Best, {name.lower()}", best, value, line, symbol, text)
    one = np.array(limits)
    charts.add_curve(fig, "Says nothing above 1", one, np.ones(2), charts.OWN, "no error exceeds 1")
    return fig


def _poorer_figure(how: Poorer, steps: FloatArray, errors: FloatArray) -> go.Figure:
    """Expected rank error as the base distribution gets poorer."""
    wider = how is Poorer.WIDER
    fig = charts.figure(
        charts.log_axis("Width of ν (1 = as entered)", (1.0, 1e4))
        if wider
        else charts.linear_axis("ν moved by (its widths; 0 = as entered)", (-1.05, 1.05)),
        charts.log_axis("Expected rank error (share of rows)", (1e-4, 1.0)),
        height=380,
    )
    text = "%{x:,.3~g} times as wide" if wider else "moved by %{x:.2f} widths"
    trace = charts.curve("Expected rank error", steps, errors, charts.TOTAL, f"{text}: %{{y:.3~%}}")
    trace.mode = "lines+markers"
    fig.add_trace(trace)
    return charts.without_legend(fig)


def _sample_columns(
    view: QuantileView, sampled: SampledAnswers, limits: tuple[float, float]
) -> dict[str, FloatArray]:
    """Share of the simulated answers in each bin beside its exact probability."""
    edges = np.linspace(*limits, SAMPLE_BINS + 1)
    columns = {"from": edges[:-1], "to": edges[1:]}
    draws = max(sampled.answers.shape[0], 1)
    for k, one in enumerate(view.outputs):
        columns[f"simulated_share_q{wording.digits(one.quantile)}"] = (
            np.histogram(sampled.answers[:, k], edges)[0] / draws
        )
        columns[f"exact_probability_q{wording.digits(one.quantile)}"] = np.diff(one.cdf(edges))
    return columns


def _sample_figure(view: QuantileView, sampled: SampledAnswers, limits: tuple[float, float]) -> go.Figure:
    """Simulated answers as points over the exact probabilities."""
    columns = _sample_columns(view, sampled, limits)
    across = charts.linear_axis(VALUE_AXIS, limits)
    upwards = {"title": {"text": "Share of the answers in a bin"}, "rangemode": "tozero", "tickformat": ".0%"}
    fig = charts.figure(across, upwards, 380)
    middle = (columns["from"] + columns["to"]) / 2.0
    for one, line in zip(view.outputs, QUANTILE_LINES, strict=False):
        name, exact = name_of(one.quantile), columns[f"exact_probability_q{wording.digits(one.quantile)}"]
        trace = charts.curve(f"{name}, exact", middle, exact, line, "exact: %{y:.2~%}")
        trace.line.shape = "hvh"
        fig.add_trace(trace)
        charts.add_points(
            fig,
            f"{name}, simulated",
            middle,
            columns[f"simulated_share_q{wording.digits(one.quantile)}"],
            {"color": line["color"], "size": 7},
            "simulated: %{y:.2~%}",
        )
    return fig
