"""The figures of the Regression page. Pure: an answer in, a Plotly figure out. Errors are roots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.regression.estimate import Step
from dpcore.regression.sample_limiting import CapCurve
from dpcore.regression.study import Sweep
from dpcore.report import charts
from pages.regression.answer import ErrorOf, RegressionView
from pages.shared.figures.figures import Picture

NO_CAP: dict[str, Any] = {"color": "#7F7F7F", "dash": "dash", "width": 2.0}
CAP_AXIS = "Bound h: cap (rows per user)"


def error_axis(view_unit: str, of: ErrorOf) -> str:
    """Title of an axis of errors, with its unit."""
    if of is ErrorOf.COEFFICIENTS:
        return f"Standard error, all coefficients ({view_unit} per unit)"
    return f"Root mean squared prediction error ({view_unit})"


# --- against the cap ----------------------------------------------------------------------------------------


def cap_columns(view: RegressionView, of: ErrorOf) -> dict[str, FloatArray]:
    """What `cap_figure` draws, as columns; NaN where a draw lost rank."""
    caps = view.caps
    if caps is None:
        return {"cap": np.empty(0), "cap_error": np.empty(0), "ours_error": np.empty(0)}
    ones = np.ones(caps.caps.size)
    if of is ErrorOf.COEFFICIENTS:
        return {
            "cap": caps.caps,
            "cap_error": np.sqrt(caps.variance),
            "cap_sampling_error": np.sqrt(caps.sampling_variance),
            "cap_privacy_noise": np.sqrt(caps.privacy_variance),
            "ours_error": math.sqrt(view.ours.variance) * ones,
            "draws_without_estimate": caps.rank_deficient,
        }
    noise = caps.privacy_variance / view.problem.num_features * view.mean_square
    return {
        "cap": caps.caps,
        "cap_error": np.sqrt(caps.prediction_error),
        "cap_fit_error": np.sqrt(np.maximum(caps.prediction_error - noise, 0.0)),
        "cap_privacy_noise": np.sqrt(noise),
        "ours_error": math.sqrt(view.predicted.total) * ones,
        "draws_without_estimate": caps.rank_deficient,
    }


def _best(caps: CapCurve, of: ErrorOf) -> int:
    return caps.best if of is ErrorOf.COEFFICIENTS else caps.best_prediction


def cap_limits(view: RegressionView, of: ErrorOf) -> tuple[tuple[float, float], tuple[float, float]]:
    """(from, to) of the cap's and the error's axis, which depend neither on epsilon nor on sigma^2.

    The error's axis ends above what no cap costs at epsilon = 0.3, and starts where sampling or fit alone are.
    """
    problem, largest = view.problem, float(view.problem.histogram.max_size)
    unit_noise = problem.num_features * 2.0 * (problem.value_bound / 0.3) ** 2
    noise = unit_noise * view.no_cap.largest_user_weight**2
    if of is ErrorOf.COEFFICIENTS:
        squares = float(np.vdot(view.no_cap.matrix, view.no_cap.matrix))
        low = max(squares * problem.value_bound**2 / 1e4, noise * 1e-10)
    else:
        noise = noise / problem.num_features * view.mean_square
        low = max(view.spread**2 / 1e3, noise * 1e-10)
    return (1.0, max(largest, 2.0)), (math.sqrt(low), 1.5 * math.sqrt(noise + low))


def cap_figure(
    view: RegressionView, of: ErrorOf, limits: tuple[tuple[float, float], tuple[float, float]]
) -> go.Figure:
    """Error against the cap, in its parts, with ours as a level and both ends marked."""
    columns = cap_columns(view, of)
    title = error_axis(view.unit, of)
    fig = charts.log_log(CAP_AXIS, limits[0], title, limits[1], charts.MAIN_HEIGHT)
    hover = "%{fullData.name}<br>h = %{x:,}: %{y:.3g}"
    h = columns["cap"]
    ours = math.sqrt(view.ours.variance if of is ErrorOf.COEFFICIENTS else view.predicted.total)
    if h.size:
        charts.add_curve(fig, "Cap, total", h, columns["cap_error"], charts.CAP, hover)
        part = "cap_sampling_error" if of is ErrorOf.COEFFICIENTS else "cap_fit_error"
        name = "Cap, sampling error" if of is ErrorOf.COEFFICIENTS else "Cap, error before noise"
        line = {**charts.SAMPLING, "color": charts.CAP["color"]}
        charts.add_curve(fig, name, h, columns[part], line, hover)
        line = {**charts.PRIVACY, "color": charts.CAP["color"]}
        charts.add_curve(fig, "Cap, privacy noise", h, columns["cap_privacy_noise"], line, hover)
    level = np.array(limits[0])
    charts.add_curve(
        fig, "Best weights C (no cap)", level, np.full(2, ours), charts.SMOOTH, "Best weights: %{y:.3g}"
    )
    if view.caps is not None and view.has_caps:
        at = _best(view.caps, of)
        point = float(view.caps.caps[at]), float(columns["cap_error"][at])
        text = f"Best cap: {wording.counted(int(view.caps.caps[at]), 'row')}<br>%{{y:.3g}}"
        charts.add_marker(fig, "Best cap", *point, charts.CAP["color"], "diamond", text)
        point = float(h[-1]), float(columns["cap_error"][-1])
        charts.add_marker(fig, "No cap", *point, charts.OWN["color"], "square", "No cap: %{y:.3g}")
    return fig


def cap_alt(view: RegressionView, of: ErrorOf) -> str:
    """The takeaway of `cap_figure`."""
    ours = math.sqrt(view.ours.variance if of is ErrorOf.COEFFICIENTS else view.predicted.total)
    if view.caps is None or not view.has_caps:
        return f"The best weights have an error of {wording.number(ours)}; no cap was tried."
    at = _best(view.caps, of)
    errors = cap_columns(view, of)["cap_error"]
    return (
        f"The best weights have an error of {wording.number(ours)}; the best cap has, at "
        f"{wording.counted(int(view.caps.caps[at]), 'row')} per user, {wording.number(float(errors[at]))}; "
        f"no cap has {wording.number(float(errors[-1]))}."
    )


def cap_picture(
    view: RegressionView, of: ErrorOf, limits: tuple[tuple[float, float], tuple[float, float]]
) -> Picture:
    """Error against the cap."""
    return Picture(
        "regression-caps",
        "Error against the cap",
        lambda: cap_figure(view, of, limits),
        cap_alt(view, of),
        cap_columns(view, of),
        view.loaded.dataset.provenance,
    )


# --- against epsilon, rows, exponent ------------------------------------------------------------------------


def sweep_columns(sweep: Sweep, name: str) -> dict[str, FloatArray]:
    """What `sweep_figure` draws, for both kinds of error, squared as well."""
    columns: dict[str, FloatArray] = {name: sweep.values}
    for at, of in enumerate(("coefficients", "predictions")):
        for method, errors in (("ours", sweep.ours), ("best_cap", sweep.cap), ("no_cap", sweep.no_cap)):
            columns[f"{method}_{of}"] = np.sqrt(errors[at])
            columns[f"{method}_{of}_squared"] = errors[at]
    columns["best_cap"] = sweep.max_contributions.astype(np.float64)
    return columns


def sweep_figure(
    sweep: Sweep, axis: dict[str, object], title: str, of: ErrorOf, now: float | None = None
) -> go.Figure:
    """Error of ours, the best cap and no cap against what was varied; a line where the page stands."""
    at = 0 if of is ErrorOf.COEFFICIENTS else 1
    everything = np.concatenate((sweep.ours[at], sweep.no_cap[at]))
    limits = rounded_limits(np.sqrt(everything))
    fig = charts.figure(axis, charts.log_axis(title, limits), height=420)
    hover = "%{fullData.name}<br>%{x:,.3~g}: %{y:.3g}"
    for name, errors, line, symbol in (
        ("No cap", sweep.no_cap, NO_CAP, "square"),
        ("Best cap", sweep.cap, charts.CAP, "diamond"),
        ("Best weights C", sweep.ours, charts.SMOOTH, "circle"),
    ):
        trace = charts.curve(name, sweep.values, np.sqrt(errors[at]), line, hover)
        trace.mode, trace.marker = "lines+markers", {"symbol": symbol, "size": 7, "color": line["color"]}
        fig.add_trace(trace)
    if now is not None:
        fig.add_vline(x=now, line={"color": charts.NEUTRAL, "dash": "dot", "width": 1})
    return fig


def sweep_alt(sweep: Sweep, of: ErrorOf, varied: str) -> str:
    """The takeaway of `sweep_figure`."""
    at = 0 if of is ErrorOf.COEFFICIENTS else 1
    ratios = np.sqrt(sweep.cap[at] / sweep.ours[at])
    return (
        f"Against {varied}, the best cap's error is {wording.number(float(ratios.min()))} to "
        f"{wording.number(float(ratios.max()))} times that of the best weights."
    )


@dataclass(frozen=True)
class Varied:
    """What a sweep varies.

    Attributes:
        name: Of the column of its values.
        words: In a sentence.
        key: Of the picture.
        title: Heading.
        axis: Its axis.
        unit: Of the labels.
        kind: Of the data behind it.
        now: Where the page stands; None for nowhere.
    """

    name: str
    words: str
    key: str
    title: str
    axis: dict[str, object]
    unit: str
    kind: Provenance
    now: float | None = None


def sweep_picture(sweep: Sweep, varied: Varied, of: ErrorOf) -> Picture:
    """Error against epsilon, the number of rows or the exponent."""
    return Picture(
        varied.key,
        varied.title,
        lambda: sweep_figure(sweep, varied.axis, error_axis(varied.unit, of), of, varied.now),
        sweep_alt(sweep, of, varied.words),
        sweep_columns(sweep, varied.name),
        varied.kind,
    )


def rounded_limits(values: FloatArray) -> tuple[float, float]:
    """Whole powers of ten around positive values."""
    fine = values[np.isfinite(values) & (values > 0.0)]
    low, high = (float(fine.min()), float(fine.max())) if fine.size else (1.0, 10.0)
    below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**below, 10.0 ** max(above, below + 1)


# --- the search ---------------------------------------------------------------------------------------------


def gap_columns(steps: Sequence[Step]) -> dict[str, FloatArray]:
    """The search in time, as columns."""
    return {
        "seconds": np.array([step.seconds for step in steps]),
        "variance": np.array([step.variance for step in steps]),
        "lower_bound": np.array([step.lower_bound for step in steps]),
        "relative_gap": np.array([step.gap for step in steps]),
        "entries": np.array([step.entries for step in steps], dtype=np.float64),
    }


def gap_figure(steps: Sequence[Step]) -> go.Figure:
    """Relative gap between the best C so far and what none can go below, by iteration."""
    columns = gap_columns(steps)
    gaps = np.maximum(columns["relative_gap"], 1e-12)
    number = np.arange(1, gaps.size + 1, dtype=np.float64)
    across = {**charts.linear_axis("Iteration", (0.0, max(float(number[-1]), 9.0) + 1.0)), "dtick": 5}
    upwards = {**charts.log_axis("Proved gap to the best (relative)", (1e-12, 1.0)), "dtick": 2}
    fig = charts.figure(across, upwards, 340)
    trace = charts.curve("Gap", number, gaps, charts.SMOOTH, "iteration %{x}: %{y:.1e} after %{text} s")
    trace.mode, trace.text = "lines+markers", [f"{seconds:.2f}" for seconds in columns["seconds"]]
    fig.add_trace(trace)
    return charts.without_legend(fig)


def gap_picture(steps: Sequence[Step], kind: Provenance) -> Picture:
    """The gap by iteration."""
    last = steps[-1]
    alt = f"After {wording.counted(len(steps), 'iteration')} and {last.seconds:.2f} seconds the gap is {last.gap:.1e}."
    return Picture(
        "regression-gap",
        "The gap closes",
        lambda: gap_figure(steps),
        alt,
        gap_columns(steps),
        kind,
    )
