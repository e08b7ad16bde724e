"""The figures of the Mean page, for the page and its report. Pure: an answer in, figures out."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dpcore import mean
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.user_effects import Clamped, bounded_mean
from pages.mean import answer
from pages.mean.answer import Limits, MeanView
from pages.shared import axes, charts
from pages.shared.figures import Picture

WEIGHT_ALT = (
    "Rows of light users all weigh the same; the more rows a user has beyond the bound, the less each counts."
)
SHIFT_ALT = (
    "How far the bound moves the mean because heavy and light users differ, beside one standard error."
)


HOVER = "%{fullData.name}<br>bound (rows per user): %{x:,.3~r}<br>standard error: %{y:.3g}"


def error_picture(
    view: MeanView, data: Dataset, own_cap: int | None, limits: Limits | None = None
) -> Picture:
    """The main figure, on these axes or on those that it begins with."""
    shown = limits or answer.axis_limits(view.problem.histogram, view.problem.value_bound)
    return Picture(
        "mean-error",
        "Standard error against the bound",
        lambda: error_figure(view, shown, own_cap),
        error_alt(view),
        answer.labelled(error_columns(view), view),
        data.provenance,
    )


def weight_picture(
    view: MeanView,
    data: Dataset,
    limits: tuple[float, float] | None = None,
    weights: tuple[float, float] | None = None,
) -> Picture:
    """How much one row counts, on these axes or on those that it begins with."""
    histogram = view.problem.histogram
    sizes = axes.curve_bounds(histogram)
    x = limits or answer.axis_limits(histogram, view.problem.value_bound)[0]
    return Picture(
        "mean-weights",
        "Weight of one row",
        lambda: weight_figure(view, sizes, x, weights or answer.weight_limits(histogram)),
        WEIGHT_ALT,
        answer.labelled(weight_columns(view, sizes), view),
        data.provenance,
    )


def shift_picture(
    view: MeanView, data: Dataset, clamped: Clamped, limits: tuple[float, float] | None = None
) -> Picture:
    """What independence hides, on this axis of the bound or on the one that it begins with."""
    x = limits or answer.axis_limits(view.problem.histogram, view.problem.value_bound)[0]
    return Picture(
        "mean-shift",
        "What independence hides",
        lambda: shift_figure(view, clamped, x),
        SHIFT_ALT,
        answer.labelled(shift_columns(view, clamped), view),
        data.provenance,
    )


def error_figure(view: MeanView, limits: Limits, own_cap: int | None) -> go.Figure:
    """Standard error against the bound, both methods, each split into its two parts."""
    fig = charts.figure(
        charts.log_axis(axes.BOUND_AXIS, limits[0]),
        charts.log_axis(
            "Delta-method error (unit of the values)"
            if view.private_counts
            else "Standard error (unit of the values)",
            limits[1],
        ),
        height=charts.MAIN_HEIGHT,
    )
    h = view.bounds
    for name, error, line in (
        ("cap", view.capped, charts.CAP),
        ("smooth weights", view.smoothed, charts.SMOOTH),
    ):
        charts.add_curve(fig, f"Total, {name}", h, np.sqrt(error.variance), line, HOVER)
    for name, error, color in (("cap", view.capped, charts.CAP), ("smooth", view.smoothed, charts.SMOOTH)):
        for part, values, style in (
            ("Sampling error", error.sampling_variance, charts.SAMPLING),
            ("Privacy noise", error.privacy_variance, charts.PRIVACY),
        ):
            text = HOVER.replace("%{fullData.name}", f"{part}, {name}")
            trace = charts.curve(part, h, np.sqrt(values), {**style, "color": color["color"]}, text)
            trace.legendgroup, trace.showlegend = part, False
            fig.add_trace(trace)
    for part, style in (("Sampling error", charts.SAMPLING), ("Privacy noise", charts.PRIVACY)):
        charts.legend_line(fig, part, style, group=part)
    if view.usual is not None:
        usual = np.sqrt(view.usual.capped.variance)
        charts.add_curve(fig, "Total, cap, usual split of ε", h, usual, charts.USUAL, HOVER)
    cap, smooth = view.cap, view.smooth
    if view.within[0] < view.within[1]:
        charts.band(fig, view.within[0], view.within[1], f"Within 5{wording.PERCENT}")
    hover = f"Best cap: {wording.counted(cap.max_contributions, 'row')}<br>standard error %{{y:.3g}}"
    charts.add_marker(
        fig, "Best cap", cap.max_contributions, cap.standard_error, charts.CAP, "diamond", hover
    )
    hover = f"Best smooth threshold: {wording.counted(smooth.threshold, 'row')}<br>standard error %{{y:.3g}}"
    charts.add_marker(
        fig, "Best smooth weights", smooth.threshold, smooth.standard_error, charts.SMOOTH, "circle", hover
    )
    if own_cap is not None:
        hover = f"Your own cap: {wording.counted(own_cap, 'row')}<br>standard error %{{y:.3g}}"
        charts.add_marker(
            fig, "Your own cap", own_cap, view.standard_error(own_cap), charts.OWN, "square", hover
        )
    return fig


def error_columns(view: MeanView) -> dict[str, FloatArray]:
    """What `error_figure` draws, as columns."""
    usual = {} if view.usual is None else {"usual_split_standard_error": np.sqrt(view.usual.capped.variance)}
    return {
        **usual,
        "bound": view.bounds,
        "cap_standard_error": np.sqrt(view.capped.variance),
        "cap_sampling_error": np.sqrt(view.capped.sampling_variance),
        "cap_privacy_noise": np.sqrt(view.capped.privacy_variance),
        "smooth_standard_error": np.sqrt(view.smoothed.variance),
        "smooth_sampling_error": np.sqrt(view.smoothed.sampling_variance),
        "smooth_privacy_noise": np.sqrt(view.smoothed.privacy_variance),
    }


def error_alt(view: MeanView) -> str:
    """The takeaway of `error_figure`."""
    return (
        f"The standard error of a cap is smallest at {wording.counted(view.cap.max_contributions, 'row')} per "
        f"user, {wording.number(view.cap.standard_error)}; smooth weights reach "
        f"{wording.number(view.smooth.standard_error)}. Below, sampling error rises; above, privacy noise."
    )


def weight_columns(view: MeanView, sizes: FloatArray) -> dict[str, FloatArray]:
    """Weight of a row against its user's size, relative to an unbounded mean's 1 / n."""
    histogram = view.problem.histogram
    h = view.cap.max_contributions
    equal = 1.0 / histogram.num_rows
    kept_share = np.minimum(sizes, h) / sizes / float(histogram.kept_rows(h))
    return {
        "size": sizes,
        "smooth_row_weight": mean.user_weight(view.problem, view.smooth.threshold, sizes) / equal,
        "capped_row_weight_on_average": kept_share / equal,
    }


def weight_figure(
    view: MeanView, sizes: FloatArray, limits: tuple[float, float], weights: tuple[float, float]
) -> go.Figure:
    """How much a row counts, depending on how many rows its user has."""
    columns = weight_columns(view, sizes)
    across = charts.log_axis("Rows of the user (rows per user)", limits)
    upwards = charts.log_axis("Weight of one row (1 = its share without any bound)", weights)
    fig = charts.figure(across, upwards, 380)
    hover = "%{fullData.name}<br>rows of the user: %{x:,.3~r}<br>weight of one: %{y:.3g}"
    charts.add_curve(fig, "Smooth weights", sizes, columns["smooth_row_weight"], charts.SMOOTH, hover)
    charts.add_curve(
        fig,
        "Cap (average over kept and dropped rows)",
        sizes,
        columns["capped_row_weight_on_average"],
        {**charts.CAP, "dash": "dot"},
        hover,
    )
    return fig


def shift_columns(view: MeanView, clamped: Clamped) -> dict[str, FloatArray]:
    """Bounded mean minus plain mean over the bound."""
    return {"bound": view.bounds, "shift_of_the_mean": bounded_mean(clamped, view.bounds) - clamped.mean}


def shift_figure(view: MeanView, clamped: Clamped, limits: tuple[float, float]) -> go.Figure:
    """How far the bound moves the mean itself, because users differ, beside the standard error."""
    columns = shift_columns(view, clamped)
    shift = columns["shift_of_the_mean"]
    # The vertical axis depends on the values and bounds alone, so that it does not move with epsilon: the standard
    # error of the best cap at epsilon = 1 fits into it.
    usual = mean.best_cap(
        mean.MeanProblem(view.problem.histogram, 1.0, view.problem.value_bound, clamped.variance)
    )
    half_height = 1.3 * max(float(np.abs(shift).max()), usual.standard_error)
    fig = charts.log_linear(
        axes.BOUND_AXIS, limits, "Shift of the mean (unit of the values)", (-half_height, half_height), 380
    )
    hover = "bound (rows per user): %{x:,.3~r}<br>the mean moves by %{y:.3g}"
    charts.add_curve(fig, "Bounded mean minus plain mean", columns["bound"], shift, charts.TOTAL, hover)
    error = np.sqrt(view.smoothed.variance)
    for sign, name in ((1.0, "± one standard error"), (-1.0, "")):
        trace = charts.curve(name, view.bounds, sign * error, charts.OWN, "standard error %{y:.3g}")
        trace.showlegend = bool(name)
        fig.add_trace(trace)
    return fig
