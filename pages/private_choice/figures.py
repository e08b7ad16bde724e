"""Figures of Choose privately. Pure: answers in, Plotly figures out."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from dpcore.private_choice.comparison import EPSILONS, SCALES, CopyCost, CopyCurves
from dpcore.private_choice.parameters import Wanted
from pages.private_choice.answer import PrivateView
from pages.private_choice.card import ERROR_NAMES, NUMBER_NAMES
from pages.shared import charts

SHORT_NAMES = {
    Wanted.SMOOTH: "Threshold",
    Wanted.CAP: "Cap",
    Wanted.SUM: "Bound T",
    Wanted.QUANTILE: "Quantile",
}
"""For the low axis of `leak_figure`."""
FLOOR, CEILING = 1e-5, 100.0
"""Costs below and above are drawn at the edge of the axis; both axes stay put."""
REGRET_TITLES = {
    False: "Cost over ε of the choice",
    True: "Cost over the number of users, each taken so many times",
}
"""Heading, by whether the figure is over users."""


def leak_figure(view: PrivateView) -> go.Figure:
    """The number chosen in the clear, with one more user of so many rows."""
    low, high = (float(f(np.append(view.moved, view.without))) for f in (np.min, np.max))
    margin = 0.15 * (high - low) or 0.5
    fig = charts.figure(
        charts.log_axis("Rows of the user who is added", (1.0, max(float(view.added[-1]), 2.0))),
        charts.linear_axis(f"{SHORT_NAMES[view.shown]} (rows per user)", (low - margin, high + margin)),
        height=300,
    )
    fig.add_trace(
        charts.curve(
            "Without that user", view.added, np.full(view.added.size, view.without), charts.OWN, "%{y:,.4g}"
        )
    )
    fig.add_trace(
        charts.curve("With that user", view.added, view.moved, charts.CAP, "user with %{x:,} rows: %{y:,.4g}")
    )
    return fig


def leak_alt(view: PrivateView, released: bool) -> str:
    """What the figure shows, in words; ``released``: the data in use are a DP release."""
    if released:
        return (
            f"Were the release the data themselves, one user more would move the {NUMBER_NAMES[view.shown]}, and by "
            "how much depends on how many rows that user has."
        )
    return (
        f"The {NUMBER_NAMES[view.shown]} chosen in the clear moves when one user is added, and by how much depends on "
        "how many rows that user has: whoever sees the number learns of them."
    )


def regret_figure(view: PrivateView, curves: CopyCurves | None, over_users: bool) -> go.Figure:
    """Median and 95th percentile of the cost, either way, over the budget or over the number of users."""
    found = view.over_users if over_users else view.over_epsilon
    median, high = (
        (found.median[:, 0], found.percentile_95[:, 0])
        if over_users
        else (found.median[0], found.percentile_95[0])
    )
    factor = view.num_users if over_users else 1.0
    x = found.scales * factor if over_users else found.epsilons
    limits = (SCALES[0] * factor, SCALES[-1] * factor) if over_users else (EPSILONS[0], EPSILONS[-1])
    y = charts.log_axis(
        "Rank error, share of users" if view.ranks else f"Extra {ERROR_NAMES[view.parameters.wanted]}",
        (FLOOR, 1.0 if view.ranks else CEILING),
    )
    y |= {"tickformat": ",~%"}
    fig = charts.figure(charts.log_axis("Users" if over_users else "ε of the choice", limits), y, height=360)
    for name, line, values in (
        ("Direct choice, median", charts.CAP, median),
        ("Direct choice, 95th percentile", {**charts.CAP, "dash": "dot", "width": 1.5}, high),
    ):
        fig.add_trace(charts.curve(name, x, _drawn(values), line, "%{x:,.3~g}: %{y:.2%}"))
    copied = () if curves is None else curves.over_users if over_users else curves.over_epsilon
    if copied:
        _add_copies(fig, tuple((at * factor, c) for at, c in copied))
    now = view.num_users if over_users else view.parameters.epsilon_choice
    if limits[0] <= now <= limits[1]:
        # A line at a point of a log axis is given as it is; only annotations want its logarithm.
        fig.add_vline(x=now, line={"color": charts.NEUTRAL, "dash": "longdash", "width": 1})
        words = "these data" if over_users else "chosen"
        fig.add_annotation(
            x=math.log10(now),
            y=1,
            yref="paper",
            yanchor="top",
            xanchor="left",
            text=f" {words}",
            showarrow=False,
        )
    return fig


def _add_copies(fig: go.Figure, copied: tuple[tuple[float, CopyCost], ...]) -> None:
    at = np.array([x for x, _ in copied])
    for name, line, values in (
        ("Private copy, median", charts.SMOOTH, [c.median for _, c in copied]),
        (
            "Private copy, 95th percentile",
            {**charts.SMOOTH, "dash": "dot", "width": 1.5},
            [c.percentile_95 for _, c in copied],
        ),
    ):
        trace = charts.curve(name, at, _drawn(np.array(values)), line, "%{x:,.3~g}: %{y:.2%} (simulated)")
        fig.add_trace(trace.update(mode="lines+markers"))


def _drawn(costs: np.ndarray) -> np.ndarray:
    """Costs that a log axis can show; what is infinite is left out."""
    return np.where(np.isfinite(costs), np.clip(costs, FLOOR, None), np.nan)


def regret_alt(over_users: bool) -> str:
    """The takeaway."""
    varied = "the more users there are" if over_users else "the larger the budget of the choice"
    return (
        f"Choosing privately costs less {varied}: median and 95th percentile of the cost, exact for the direct choice "
        "and simulated for a private copy."
    )
