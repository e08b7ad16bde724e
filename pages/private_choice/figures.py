"""Figures of Choose privately and of its report. Pure: answers in, pictures out."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from dpcore.common.privacy import Provenance
from dpcore.private_choice import comparison
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.comparison import EPSILONS, SCALES
from dpcore.private_choice.parameters import Wanted
from dpcore.report import charts
from pages.private_choice.answer import Copied, Copies, Leak, PrivateView
from pages.private_choice.card import ERROR_NAMES, NUMBER_NAMES
from pages.shared.figures.figures import Picture

SHORT_NAMES = {
    Wanted.SMOOTH: "Threshold",
    Wanted.CAP: "Cap",
    Wanted.SUM: "Bound T",
    Wanted.QUANTILE: "Quantile",
}
"""For the axis of the number chosen."""
FLOOR, CEILING = 1e-5, 100.0
"""Costs below and above are shown at the edge of the axis; both axes stay put."""
EARLIER = 0.4
"""Opacity of simulated curves of the settings before."""


def leak_picture(leak: Leak, kind: Provenance, released: bool) -> Picture:
    """The number chosen in the clear, with one more user; ``released``: the data in use are a DP release."""
    return Picture(
        "private-leak",
        "The number with one more user",
        lambda: _leak_figure(leak),
        _leak_alt(leak, released),
        {"rows_of_added_user": leak.added, "chosen_with": leak.moved},
        kind,
    )


def over_epsilon_picture(view: PrivateView, copies: Copies, kind: Provenance) -> Picture:
    """What either way costs over the budget of the choice."""
    found = view.over_epsilon
    direct = (found.epsilons, found.median[0], found.percentile_95[0])
    return Picture(
        "private-cost-epsilon",
        "Cost over ε of the choice",
        lambda: _cost_figure(
            view,
            "ε of the choice",
            (EPSILONS[0], EPSILONS[-1]),
            direct,
            copies.over_epsilon,
            (view.parameters.epsilon_choice, "chosen"),
            copies.earlier,
        ),
        _cost_alt("the larger the budget of the choice"),
        _cost_columns("epsilon_choice", direct, copies.over_epsilon),
        kind,
    )


def over_users_picture(view: PrivateView, found: ChoiceRegret, copies: Copies, kind: Provenance) -> Picture:
    """What either way costs over the number of users, each of them taken so many times."""
    users = float(view.num_users)
    direct = (found.scales * users, found.median[:, 0], found.percentile_95[:, 0])
    copied = tuple((times * users, cost) for times, cost in copies.over_users)
    return Picture(
        "private-cost-users",
        "Cost over the number of users, each taken so many times",
        lambda: _cost_figure(
            view, "Users", (SCALES[0] * users, SCALES[-1] * users), direct, copied, (users, "these data")
        ),
        _cost_alt("the more users there are"),
        _cost_columns("users", direct, copied),
        kind,
    )


Direct = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Where on the axis, median and 95th percentile of the direct choice's cost, each of shape (k,)."""


def _cost_figure(
    view: PrivateView,
    axis: str,
    limits: tuple[float, float],
    direct: Direct,
    copied: Copied,
    now: tuple[float, str],
    earlier: bool = False,
) -> go.Figure:
    y = charts.log_axis(
        "Rank error, share of users" if view.ranks else f"Extra {ERROR_NAMES[view.parameters.wanted]}",
        (FLOOR, 1.0 if view.ranks else CEILING),
    )
    y |= {"tickformat": ",~%"}
    fig = charts.figure(charts.log_axis(axis, limits), y, height=charts.MAIN_HEIGHT)
    x, median, high = direct
    dotted = {"dash": "dot", "width": 1.5}
    charts.add_curve(fig, "Direct choice, median", x, _shown(median), charts.CAP, "%{x:,.3~g}: %{y:.2%}")
    look = {**charts.CAP, **dotted}
    text = "%{x:,.3~g}: %{y:.2%}"
    charts.add_curve(fig, "Direct choice, 95th percentile", x, _shown(high), look, text)
    if copied:
        at = np.array([x for x, _ in copied])
        hover = "%{x:,.3~g}: %{y:.2%} (simulated" + (", settings before)" if earlier else ")")
        for name, line, costs in (
            ("Private copy, median", charts.SMOOTH, [cost.median for _, cost in copied]),
            (
                "Private copy, 95th percentile",
                {**charts.SMOOTH, **dotted},
                [cost.percentile_95 for _, cost in copied],
            ),
        ):
            trace = charts.curve(name, at, _shown(np.array(costs)), line, hover, EARLIER if earlier else 1.0)
            fig.add_trace(trace.update(mode="lines+markers"))
    if limits[0] <= now[0] <= limits[1]:
        # A line at a point of a log axis is given as it is; only annotations want its logarithm. Not `add_vline`, which
        # looks through all axes of the figure and takes as long as three curves.
        line = {"color": charts.NEUTRAL, "dash": "longdash", "width": 1}
        fig.add_shape(type="line", x0=now[0], x1=now[0], yref="paper", y0=0, y1=1, line=line)
        fig.add_annotation(
            x=math.log10(now[0]),
            y=1,
            yref="paper",
            yanchor="top",
            xanchor="left",
            text=f" {now[1]}",
            showarrow=False,
        )
    return fig


def _shown(costs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Costs that a log axis can show; what is infinite is left out."""
    return np.where(np.isfinite(costs), np.clip(costs, FLOOR, None), np.nan)


def _cost_columns(name: str, direct: Direct, copied: Copied) -> dict[str, npt.ArrayLike]:
    x, median, high = direct
    return {
        "way": ["direct choice, exact"] * len(x) + ["private copy, simulated"] * len(copied),
        name: [*x, *(at for at, _ in copied)],
        "median": [*median, *(cost.median for _, cost in copied)],
        "percentile_95": [*high, *(cost.percentile_95 for _, cost in copied)],
    }


def _cost_alt(varied: str) -> str:
    return (
        f"Choosing privately costs less {varied}: median and 95th percentile of the cost, exact for the direct choice "
        f"and simulated for a private copy, {comparison.RUNS} copies at each point."
    )


def _leak_figure(leak: Leak) -> go.Figure:
    low, high = (float(f(np.append(leak.moved, leak.without))) for f in (np.min, np.max))
    margin = 0.15 * (high - low) or 0.5
    across = charts.log_axis("Rows of the user who is added", (1.0, max(float(leak.added[-1]), 2.0)))
    upwards = charts.linear_axis(f"{SHORT_NAMES[leak.shown]} (rows per user)", (low - margin, high + margin))
    fig = charts.figure(across, upwards, 380)
    level = np.full(leak.added.size, leak.without)
    charts.add_curve(fig, "Without that user", leak.added, level, charts.OWN, "%{y:,.4g}")
    hover = "user with %{x:,} rows: %{y:,.4g}"
    charts.add_curve(fig, "With that user", leak.added, leak.moved, charts.CAP, hover)
    return fig


def _leak_alt(leak: Leak, released: bool) -> str:
    number = NUMBER_NAMES[leak.shown]
    if released:
        return (
            f"Were the release the data themselves, one user more would move the {number}, and by how much depends on "
            "how many rows that user has."
        )
    return (
        f"The {number} chosen in the clear moves when one user is added, and by how much depends on how many rows that "
        "user has: whoever sees the number learns of them."
    )
