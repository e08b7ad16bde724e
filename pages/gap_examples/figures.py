"""The figures of the page on the largest gap, steps on the mean. Pure: answers in, Plotly figures out."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpcore import gap_examples
from dpcore.answer import axes
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray
from dpcore.gap_examples.parameters import THEOREM_G
from dpcore.report import charts
from pages.gap_examples.answer import GapView
from pages.shared.figures import Picture

RATIO_AXIS = "Variance with the best cap : best weights"
RATIO_LIMITS = (1.0, 1.62)
RATIO_RANGE = (0.9, 10.0)
SHARES = np.linspace(0.005, 0.995, 199)
REAL_CAPS: dict[str, Any] = {"color": "#B57A00", "dash": "dash", "width": 2}
FINITE: dict[str, Any] = {"color": charts.CAP["color"], "dash": "dot", "width": 2}
ENVELOPE: dict[str, Any] = {"color": "#B57A00", "dash": "dash", "width": 2}
STAR = "#B57A00"
LINE_REACH = 3.0
LINE_POINTS = 200


def level(name: str, limits: tuple[float, float], height: float, dash: str = "longdash") -> go.Scatter:
    """A horizontal line across the figure, named in the legend."""
    line = {**charts.OWN, "dash": dash}
    return charts.curve(name, np.array(limits), np.array([height, height]), line, name)


def most_name() -> str:
    """Legend entry of the largest ratio."""
    return f"At most {gap_examples.supremum().ratio:.5f}"


def share_axis(title: str) -> dict[str, object]:
    """p from 0 to 100 %."""
    return charts.linear_axis(title, (0.0, 1.0), percent=True)


# --- the person's data --------------------------------------------------------------------------------------


def data_figure(view: GapView, limits: tuple[tuple[float, float], tuple[float, float]]) -> go.Figure:
    """Both variances in units of the best weights', with the proof's cap h'."""
    fig = charts.log_log(
        axes.BOUND_AXIS, limits[0], "Variance (1 = with the best weights)", limits[1], charts.MAIN_HEIGHT
    )
    hover = "%{fullData.name}<br>h = %{x:,.3~g}: %{y:.4g} times"
    both, proof = view.comparison, view.proof
    charts.add_curve(fig, "Cap", view.bounds, view.capped, charts.CAP, hover)
    charts.add_curve(fig, "Smooth weights", view.bounds, view.smoothed, charts.SMOOTH, hover)
    fig.add_trace(level(most_name(), limits[0], gap_examples.supremum().ratio))
    fig.add_trace(
        level(
            f"Paper: at most {wording.entered(gap_examples.PAPER_BOUND)}",
            limits[0],
            gap_examples.PAPER_BOUND,
            "dot",
        )
    )
    for name, x, y, color, symbol in (
        (
            f"Proof's h′ (case {proof.case})",
            proof.max_contributions,
            proof.ratio,
            charts.OWN["color"],
            "square",
        ),
        ("Best cap", both.cap.max_contributions, both.ratio, charts.CAP["color"], "diamond"),
        ("Best weights, h*", both.smooth.threshold, 1.0, charts.SMOOTH["color"], "circle"),
    ):
        charts.add_marker(fig, name, x, y, color, symbol, hover)
    return fig


def data_picture(
    view: GapView, limits: tuple[tuple[float, float], tuple[float, float]], kind: Provenance
) -> Picture:
    """Both variances on the person's data."""
    columns = {
        "bound": view.bounds,
        "cap_variance_over_best_weights": view.capped,
        "smooth_variance_over_best_weights": view.smoothed,
    }
    alt = (
        f"The best cap has {view.comparison.ratio:.4f} times the variance of the best weights; the paper's proof takes "
        f"the cap {wording.number(view.proof.max_contributions)} with {view.proof.ratio:.3f} times, at most 4."
    )
    return Picture(
        "gap-data",
        "Variance against the bound",
        lambda: data_figure(view, limits),
        alt,
        columns,
        kind,
    )


# --- theorem 2 ----------------------------------------------------------------------------------------------


def theorem_2_columns() -> dict[str, FloatArray]:
    """The ratio over g."""
    g = np.unique(np.rint(np.geomspace(THEOREM_G[0], THEOREM_G[-1], 150)))
    return {"g": g, "ratio": np.array([gap_examples.theorem_2(int(x)).ratio for x in g])}


def theorem_2_figure(g: int) -> go.Figure:
    """The ratio of the paper's example over g, on its way to 3/2."""
    columns, limits = theorem_2_columns(), (float(THEOREM_G[0]), float(THEOREM_G[-1]))
    fig = charts.figure(
        charts.log_axis("g: rows of a heavy user (rows per user)", (limits[0] * 0.9, limits[1] * 1.05)),
        charts.linear_axis(RATIO_AXIS, RATIO_LIMITS),
    )
    hover = "g = %{x:,}<br>ratio %{y:.4f}"
    charts.add_curve(fig, "3g / (2g + 1)", columns["g"], columns["ratio"], charts.CAP, hover)
    fig.add_trace(level("3/2", limits, 1.5))
    charts.add_marker(
        fig, "Here", g, gap_examples.theorem_2(g).ratio, charts.CAP, "diamond", f"Here: {hover}"
    )
    return fig


def theorem_2_picture(g: int) -> Picture:
    """The paper's example."""
    return Picture(
        "gap-theorem-2",
        "The paper's example",
        lambda: theorem_2_figure(g),
        f"The ratio approaches 3/2; at g = {g:,} it is {gap_examples.theorem_2(g).ratio:.4f}.",
        theorem_2_columns(),
        Disclosure.PUBLIC,
    )


# --- two groups ---------------------------------------------------------------------------------------------


def two_groups_columns(heavy_size: int, light_size: int) -> dict[str, FloatArray]:
    """Both limits and the finite ratios over the share of light users, at rho = q m / s."""
    shares = np.stack((SHARES, 1.0 - SHARES), axis=-1)
    finite = gap_examples.ratios([light_size, light_size * heavy_size], shares, (1.0 - SHARES) / light_size)
    whole, fine = gap_examples.whole_cap_limit(SHARES), gap_examples.fine_cap_limit(SHARES)
    return {
        "light_share": SHARES,
        "ratio_limit_whole_caps": whole.ratio,
        "best_cap_of_that_limit": whole.cap,
        "ratio_limit_finely_scaled_caps": fine.ratio,
        "ratio_with_these_rows": finite.ratio,
    }


def two_groups_figure(light_users: int, heavy_size: int, light_size: int) -> go.Figure:
    """The ratio over the share of light users: two limits, and what these numbers of rows give."""
    columns = two_groups_columns(heavy_size, light_size)
    p, here = columns["light_share"], light_users / 100.0
    fig = charts.figure(
        share_axis("Share p of light users"), charts.linear_axis(RATIO_AXIS, RATIO_LIMITS), height=460
    )
    hover = "p = %{x:.1%}<br>ratio %{y:.4f}"
    for name, column, line in (
        ("R → ∞, s = 1", "ratio_limit_whole_caps", charts.CAP),
        ("R → ∞, s → ∞", "ratio_limit_finely_scaled_caps", REAL_CAPS),
        (f"R = {heavy_size:,}, s = {light_size:,}", "ratio_with_these_rows", FINITE),
    ):
        charts.add_curve(fig, name, p, columns[column], line, f"{name}<br>{hover}")
    fig.add_trace(level(most_name(), (0.0, 1.0), gap_examples.supremum().ratio))
    for name, share, color, symbol in (
        ("The paper's, 3/2", 0.5, charts.OWN["color"], "square"),
        ("Maximum, 25/16", 0.4, STAR, "star"),
    ):
        ratio = float(gap_examples.whole_cap_limit(share).ratio)
        charts.add_marker(fig, name, share, ratio, color, symbol, f"{name}<br>{hover}")
    finite = float(
        gap_examples.ratios(
            [light_size, light_size * heavy_size], [here, 1.0 - here], (1.0 - here) / light_size
        ).ratio
    )
    charts.add_marker(fig, "Here", here, finite, charts.CAP, "diamond", f"Here<br>{hover}")
    return fig


def two_groups_picture(light_users: int, heavy_size: int, light_size: int) -> Picture:
    """Other shares than the paper's."""
    return Picture(
        "gap-two-groups",
        "Two groups",
        lambda: two_groups_figure(light_users, heavy_size, light_size),
        "Two groups of users: the ratio is largest, 25/16, where 40 % of the users are light.",
        two_groups_columns(heavy_size, light_size),
        Disclosure.PUBLIC,
    )


# --- any noise ----------------------------------------------------------------------------------------------


def any_noise_columns(noise: float) -> dict[str, FloatArray]:
    """The limit at one noise, and at the worst noise for every share."""
    limit, worst = gap_examples.whole_cap_limit(SHARES, noise), _worst()
    return {
        "light_share": SHARES,
        "ratio_at_this_noise": limit.ratio,
        "best_cap": limit.cap,
        "ratio_at_worst_noise": worst.ratio,
        "worst_noise_per_user": worst.noise_per_user,
    }


@functools.cache
def _worst() -> gap_examples.WorstNoise:
    return gap_examples.worst_noise(SHARES)


def worst_share(noise: float) -> float:
    """The share of light users at which the ratio is largest for this noise, to a thousandth."""
    shares = np.linspace(0.001, 0.999, 999)
    return float(shares[int(gap_examples.whole_cap_limit(shares, noise).ratio.argmax())])


def any_noise_figure(noise: float) -> go.Figure:
    """The limit over the share of light users at the chosen noise, under the envelope of all noises."""
    columns, best = any_noise_columns(noise), gap_examples.supremum()
    fig = charts.figure(
        share_axis("Share p of light users"), charts.linear_axis(RATIO_AXIS, RATIO_LIMITS), height=460
    )
    hover = "p = %{x:.1%}<br>ratio %{y:.5f}"
    p = columns["light_share"]
    text = f"t = {wording.entered(noise)}<br>{hover}"
    charts.add_curve(
        fig, f"t = {wording.entered(noise)}", p, columns["ratio_at_this_noise"], charts.CAP, text
    )
    trace = charts.curve(
        "Worst t for each p",
        p,
        columns["ratio_at_worst_noise"],
        ENVELOPE,
        hover + "<br>t = %{customdata:.3g}",
    )
    trace.customdata = columns["worst_noise_per_user"]
    fig.add_trace(trace)
    worst = worst_share(noise)
    ratio = float(gap_examples.whole_cap_limit(worst, noise).ratio)
    charts.add_marker(
        fig, "Worst p at this t", worst, ratio, charts.CAP, "diamond", f"Worst p here<br>{hover}"
    )
    text = f"Largest of all<br>{hover}<br>t = {best.noise_per_user:.4f}"
    charts.add_marker(
        fig, f"Largest of all: {best.ratio:.5f}", best.light_share, best.ratio, STAR, "star", text
    )
    return fig


def any_noise_picture(noise: float) -> Picture:
    """The noise set free."""
    best = gap_examples.supremum().ratio
    return Picture(
        "gap-any-noise",
        "Any noise",
        lambda: any_noise_figure(noise),
        f"Over all shares of light users and all noises the ratio stays below {best:.5f}.",
        any_noise_columns(noise),
        Disclosure.PUBLIC,
    )


# --- try to break it ----------------------------------------------------------------------------------------


def line_columns(comparison: gap_examples.Comparison) -> dict[str, FloatArray]:
    """Rows kept, the level curve and the line between, all in units of the best cap and of its rows."""
    k = comparison.cap.max_contributions
    kept = float(comparison.problem.histogram.kept_rows(k))
    most = math.floor(LINE_REACH * k)
    caps = np.unique(np.rint(np.linspace(0.0, most, LINE_POINTS)))
    line = gap_examples.dominate(comparison)
    return {
        "cap": caps,
        "cap_over_best": caps / k,
        "rows_kept": comparison.problem.histogram.kept_rows(caps) / kept,
        "rows_for_an_equal_cap": gap_examples.level_curve(comparison, caps) / kept,
        "line": (line.light_users + line.heavy_users * caps) / kept,
    }


def line_figure(comparison: gap_examples.Comparison) -> go.Figure:
    """Why no cap is better: rows kept stay below the level curve, and a line fits between."""
    columns = line_columns(comparison)
    across = charts.linear_axis("Cap (1 = the best cap)", (0.0, LINE_REACH))
    upwards = charts.linear_axis("Rows kept (1 = at the best cap)", (0.0, LINE_REACH))
    fig = charts.figure(across, upwards, 460)
    x = columns["cap_over_best"]
    # Whole caps are what counts: where they are few, they are marked.
    mode = "lines+markers" if x.size <= 40 else "lines"
    for name, column, style in (
        ("Rows for an equal cap", "rows_for_an_equal_cap", charts.SMOOTH),
        ("Line between", "line", charts.OWN),
        ("Rows kept", "rows_kept", charts.CAP),
    ):
        trace = charts.curve(
            name, x, columns[column], style, "%{fullData.name}<br>cap %{customdata:,}: %{y:.4g}"
        )
        trace.customdata = columns["cap"]
        trace.mode = mode if column != "line" else "lines"
        fig.add_trace(trace)
    charts.add_marker(fig, "Best cap", 1.0, 1.0, charts.CAP, "diamond", "They touch here")
    return fig


def line_picture(comparison: gap_examples.Comparison) -> Picture:
    """Why an instance stays below."""
    alt = (
        f"The rows kept touch the level curve at the best cap, {comparison.cap.max_contributions:,}, and exceed it at "
        "no whole cap; a straight line fits between the two."
    )
    return Picture(
        "gap-line",
        "The line between",
        lambda: line_figure(comparison),
        alt,
        line_columns(comparison),
        Disclosure.PUBLIC,
    )


# --- search -------------------------------------------------------------------------------------------------


def search_columns(result: gap_examples.SearchResult) -> dict[str, FloatArray]:
    """Shortfall of the best instance so far, at most 300 points, every improvement among the first."""
    history = result.best_so_far
    picks = np.unique(np.geomspace(1, len(history), min(len(history), 300)).astype(int)) - 1
    tried, best = history[picks, 0], history[picks, 1]
    return {
        "instances_tried": tried,
        "largest_ratio": best,
        "shortfall": gap_examples.supremum().ratio - best,
    }


def search_figure(result: gap_examples.SearchResult) -> go.Figure:
    """How far the search stays below the largest ratio, against the instances tried."""
    columns = search_columns(result)
    across = charts.log_axis("Instances tried", (2e3, 1.2e7))
    upwards = {**charts.log_axis("Short of the largest ratio", (1e-8, 1.0)), "dtick": 2}
    fig = charts.figure(across, upwards, 340)
    look = {**charts.CAP, "shape": "hv"}
    hover = "%{x:,} instances: short by %{y:.2e}"
    trace = charts.curve("Best so far", columns["instances_tried"], columns["shortfall"], look, hover)
    fig.add_trace(trace)
    return charts.without_legend(fig)


def search_picture(result: gap_examples.SearchResult) -> Picture:
    """How close the search came."""
    return Picture(
        "gap-search-figure",
        "The search",
        lambda: search_figure(result),
        f"The search ends {result.shortfall:.2g} below the largest ratio.",
        search_columns(result),
        Disclosure.PUBLIC,
    )
