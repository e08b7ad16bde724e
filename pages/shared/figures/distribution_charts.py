"""Figures of a contribution distribution, as the field draws it. Pure: a histogram in, a Plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dpcore.common import wording
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.report import charts

MAX_POINTS = 300


Limits = tuple[float, float]


def size_limits(histogram: ContributionHistogram) -> Limits:
    """Where an axis of rows per user starts and ends before anything is chosen."""
    return float(histogram.min_size), float(max(histogram.max_size, 2 * histogram.min_size))


def share_limits(histogram: ContributionHistogram) -> Limits:
    """Where the axis of shares of users starts and ends before anything is chosen."""
    return min(max(1.0 / histogram.num_users, 1e-6), 0.5), 1.0


def count_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Users per size; above `MAX_POINTS` distinct sizes, average users per size in log-spaced bins."""
    sizes, users = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
    if sizes.size <= MAX_POINTS:
        return {"size": sizes, "users": users}
    edges = np.unique(np.floor(np.geomspace(sizes[0], sizes[-1] + 1.0, 80)))
    edges[-1] = sizes[-1] + 1.0
    which = np.digitize(sizes, edges) - 1
    total = np.bincount(which, weights=users, minlength=edges.size - 1)[: edges.size - 1]
    filled = total > 0
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1.0, edges[:-1]))
    return {"size": middle[filled], "users": (total / np.diff(edges))[filled]}


def count_figure(histogram: ContributionHistogram, limits: Limits) -> go.Figure:
    """Log-log: how many users have exactly so many rows."""
    columns = count_columns(histogram)
    binned = histogram.sizes.size > MAX_POINTS
    low, high = float(columns["users"].min()), float(columns["users"].max())
    across = charts.log_axis("Rows per user", limits)
    upwards = charts.log_axis("Users per size" + (", average in bins" if binned else ""), (low / 2, high * 2))
    fig = charts.figure(across, upwards, 380)
    look = {"color": charts.CAP["color"], "size": 6, "opacity": 0.75}
    hover = "%{x:,.3~r} rows: %{y:,.3~r} users"
    charts.add_points(fig, "", columns["size"], columns["users"], look, hover)
    return charts.without_legend(fig)


def tail_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Share of users with at least so many rows (complementary CDF)."""
    sizes = histogram.sizes.astype(np.float64)
    if sizes.size > MAX_POINTS:
        picks = np.unique(np.round(np.geomspace(1, sizes.size, MAX_POINTS // 2)).astype(int)) - 1
        tail = np.unique(np.concatenate((picks, sizes.size - 1 - picks)))
        sizes = sizes[tail]
    at_least = _users_from(histogram, sizes)
    return {"size": sizes, "share_of_users": at_least / histogram.num_users}


def _users_from(histogram: ContributionHistogram, sizes: FloatArray) -> FloatArray:
    # Sizes are whole, so "at least s" is "more than s - 1/2".
    return histogram.pieces(sizes - 0.5).users_above


def tail_figure(histogram: ContributionHistogram, limits: Limits) -> go.Figure:
    """Log-log complementary CDF: a straight line is a power law."""
    columns = tail_columns(histogram)
    fig = charts.log_log(
        "Rows per user", limits, "Share of users with at least so many", (0.5 / histogram.num_users, 1.5), 340
    )
    hover = "%{y:.3~%} of users have at least %{x:,} rows"
    trace = charts.curve("", columns["size"], columns["share_of_users"], charts.TOTAL, hover)
    trace.line.shape = "vh"
    fig.add_trace(trace)
    return charts.without_legend(fig)


def share_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Share of rows held by the heaviest users."""
    least = max(1.0 / histogram.num_users, 1e-6)
    shares = np.unique(np.concatenate((np.geomspace(least, 1.0, 200), [1.0])))
    return {"share_of_users": shares, "share_of_rows": histogram.share_held_by_heaviest(shares)}


def share_figure(histogram: ContributionHistogram, limits: Limits) -> go.Figure:
    """Share of rows held by the heaviest users, users on a log axis."""
    columns = share_columns(histogram)
    least = float(columns["share_of_users"][0])
    axis = charts.log_axis("Heaviest users (share of all users)", limits)
    axis["tickformat"] = "~%"
    fig = charts.figure(
        axis, charts.linear_axis("Share of all rows they hold", (0.0, 1.02), percent=True), 340
    )
    hover = "the heaviest %{x:.3~%} of users hold %{y:.3~%} of rows"
    charts.add_curve(fig, "", columns["share_of_users"], columns["share_of_rows"], charts.TOTAL, hover)
    charts.add_curve(
        fig, "", columns["share_of_users"], columns["share_of_users"], charts.OWN, "if all users were alike"
    )
    fig.add_annotation(
        # Top left, the one corner that both curves avoid unless a handful of users hold nearly everything.
        x=math.log10(least),
        y=0.97,
        xanchor="left",
        text="dashed: all users alike",
        showarrow=False,
        font={"size": 11},
    )
    return charts.without_legend(fig)


@dataclass(frozen=True)
class Drawing:
    """One way to draw a distribution.

    Attributes:
        heading: Stands above the figure.
        axis: What its horizontal axis shows, with unit.
        limits: Where that axis starts and ends before anything is chosen.
        format: How a number of that axis is written.
        figure: Makes it.
        columns: What it draws, as columns.
        alt: Its takeaway, for a screen reader.
    """

    heading: str
    axis: str
    limits: Callable[[ContributionHistogram], Limits]
    format: Callable[[float], str]
    figure: Callable[[ContributionHistogram, Limits], go.Figure]
    columns: Callable[[ContributionHistogram], dict[str, FloatArray]]
    alt: Callable[[ContributionHistogram], str]


def _count_alt(histogram: ContributionHistogram) -> str:
    most = int(histogram.sizes[int(np.argmax(histogram.users))])
    return f"The commonest number of rows per user is {wording.number(most)}; the tail reaches {histogram.max_size:,}"


def _tail_alt(histogram: ContributionHistogram) -> str:
    return f"One user in ten has more than {wording.counted(histogram.quantile(0.9), 'row')}"


def _share_alt(histogram: ContributionHistogram) -> str:
    share = wording.percent(histogram.summary().top_percent_share)
    return f"The heaviest 1 % of users hold {share} of all rows"


DRAWINGS = {
    "counts": Drawing(
        "How many users have how many rows",
        "Rows per user",
        size_limits,
        wording.number,
        count_figure,
        count_columns,
        _count_alt,
    ),
    "tail": Drawing(
        "How heavy the tail is",
        "Rows per user",
        size_limits,
        wording.number,
        tail_figure,
        tail_columns,
        _tail_alt,
    ),
    "shares": Drawing(
        "Who holds the rows",
        "Heaviest users, share of all users",
        share_limits,
        wording.percent,
        share_figure,
        share_columns,
        _share_alt,
    ),
}


def sentences(histogram: ContributionHistogram) -> str:
    """The distribution in words."""
    summary = histogram.summary()
    return (
        f"{sizes_sentence(histogram)} {share_sentence(histogram)} Gini coefficient {summary.gini:.2f} {GINI}."
    )


GINI = "(0: all alike, 1: one user has everything)"


def sizes_sentence(histogram: ContributionHistogram) -> str:
    """How many users and rows there are, and how many rows the median, mean and heaviest user have."""
    summary = histogram.summary()
    return (
        f"**{wording.counted(summary.num_users, 'user')}** {wording.agreeing(summary.num_users, 'has', 'have')} "
        f"**{wording.counted(summary.num_rows, 'row')}**. "
        f"The median user has {wording.number(summary.median)}, the mean is {wording.number(summary.mean)}, the "
        f"heaviest user has {wording.number(summary.max)}."
    )


def share_sentence(histogram: ContributionHistogram) -> str:
    """How many of all rows the heaviest users hold."""
    summary = histogram.summary()
    heaviest = math.ceil(0.01 * summary.num_users)
    return (
        f"The heaviest 1 % ({wording.counted(heaviest, 'user')}) {wording.agreeing(heaviest, 'holds', 'hold')} "
        f"{wording.percent(summary.top_percent_share)} of all rows."
    )
