"""The figures of `dpcore.answer.against`. Pure: numbers in, figures out."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dpcore.answer.against import SHOWN, Against, OverEpsilon, Ways, WaysOverEpsilon
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.report import charts
from pages.shared.figures.figures import Picture

EPSILON_AXIS = "Privacy budget ε"
LOOKS = (
    charts.CAP,
    charts.SMOOTH,
    {**charts.SAMPLING, "width": 2},
    {**charts.USUAL, "width": 2},
    charts.PRIVACY,
)
"""Of ways, in their order."""


def pictures(
    name: str,
    of: Against,
    curves: OverEpsilon,
    epsilon: float,
    now: tuple[float, float] | None,
    kind: Provenance,
) -> tuple[Picture, Picture]:
    """The best bound, and its error, over ε.

    Args:
        name: Of the question.
        of: What is compared.
        curves: From `over_epsilon`.
        epsilon: In use.
        now: The best bound there and its error; None where that is not known.
        kind: Of the data.
    """
    made = []
    for at, (what, axis, values) in enumerate(
        (("bound", of.bound_axis, curves.bounds), ("error", of.error_axis, curves.errors))
    ):
        here = None if now is None else now[at]
        made.append(
            Picture(
                f"{name}-{what}-over-epsilon",
                f"Best {what} over ε",
                lambda axis=axis, values=values, here=here: _figure(
                    axis, curves.epsilons, values, epsilon, here
                ),  # type: ignore[misc]
                _alt(what, curves.epsilons, values),
                {"epsilon": curves.epsilons, f"best_{what}" if what == "bound" else "error": values},
                kind,
            )
        )
    return made[0], made[1]


def ways_picture(name: str, of: Ways, curves: WaysOverEpsilon, epsilon: float, kind: Provenance) -> Picture:
    """What every way costs over ε, with the ε in use and where ways cross the first.

    Args:
        name: Of the question.
        of: What is compared.
        curves: From `ways_over_epsilon`.
        epsilon: In use.
        kind: Of the numbers.
    """
    columns = dict(zip(of.names, curves.errors, strict=True))
    return Picture(
        f"{name}-ways-over-epsilon",
        "What each way costs over ε",
        lambda: _ways_figure(of, curves, epsilon),
        of.sentence or f"What each of {len(of.names)} ways costs over ε.",
        {"epsilon": curves.epsilons, **columns},
        kind,
    )


def _ways_figure(of: Ways, curves: WaysOverEpsilon, epsilon: float) -> go.Figure:
    positive = curves.errors[np.isfinite(curves.errors) & (curves.errors > 0.0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    fig = charts.log_log(EPSILON_AXIS, SHOWN, of.axis, (low / 1.5, high * 1.5), 380)
    for way, errors, look in zip(of.names, curves.errors, LOOKS, strict=False):
        hover = f"{way}<br>ε = %{{x:.3~g}}<br>%{{y:,.4~g}}"
        charts.add_curve(fig, way, curves.epsilons, errors, look, hover)
    line = {"color": charts.NEUTRAL, "dash": "dot", "width": 1.5}
    fig.add_shape(type="line", x0=epsilon, x1=epsilon, yref="paper", y0=0, y1=1, line=line, layer="below")
    charts.legend_line(fig, "ε in use", line, group="epsilon")
    for at, words in of.crossings:
        if SHOWN[0] <= at <= SHOWN[1]:
            height = float(curves.errors[0, int(np.argmin(np.abs(curves.epsilons - at)))])
            hover = f"{words}<br>ε = %{{x:.3~g}}"
            fig.add_trace(
                charts.marker(words, at, height, charts.NEUTRAL, "diamond-open", hover).update(
                    showlegend=False
                )
            )
    return fig


def _figure(
    axis: str, epsilons: FloatArray, values: FloatArray, epsilon: float, here: float | None
) -> go.Figure:
    positive = values[values > 0.0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    fig = charts.log_log(EPSILON_AXIS, SHOWN, axis, (low / 1.5, high * 1.5), 340)
    hover = "ε = %{x:.3~g}<br>%{y:,.4~g}"
    charts.add_curve(fig, "Best at each ε", epsilons, values, charts.TOTAL, hover)
    line = {"color": charts.NEUTRAL, "dash": "dot", "width": 1.5}
    fig.add_shape(type="line", x0=epsilon, x1=epsilon, yref="paper", y0=0, y1=1, line=line, layer="below")
    if here is not None and here > 0.0:
        charts.add_marker(fig, "ε in use", epsilon, here, charts.SMOOTH, "diamond", hover)
    return charts.without_legend(fig)


def _alt(what: str, epsilons: FloatArray, values: FloatArray) -> str:
    if not values.size:
        return f"The best {what} over ε; nothing was computed."
    ends = [f"{wording.number(v)} at ε = {wording.entered(e)}" for e, v in zip(epsilons, values, strict=True)]
    return (
        f"The best {what} goes from {ends[0]} to {ends[-1]}."
        if what == "bound"
        else (f"The error at the best bound goes from {ends[0]} to {ends[-1]}.")
    )
