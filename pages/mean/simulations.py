"""Simulation of a mean with private counts, drawn beside its delta-method error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from dpcore import mean
from dpcore.common import wording
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import log_spaced
from dpcore.dataset import Dataset
from dpcore.mean import simulation
from dpcore.mean.private_counts import PrivateCountsProblem, Release
from dpcore.mean.simulation import MeanSimulation, Setup
from pages.mean.answer import MeanView
from pages.mean.figures import HOVER
from pages.mean.question import QUESTION
from pages.shared import cards, charts, fields, figures, jobs, tables
from pages.shared.axes import BOUND_AXIS

DEFAULT_RUNS = 4000
MAX_RUNS = 200_000
POINTS = 7
NORMAL_95 = 1.96

CAP, SMOOTH, USUAL, CENTRED = (
    "Cap",
    "Smooth weights",
    "Cap, usual split of ε",
    "Cap, split of ε, values centred",
)
LINES = {CAP: charts.CAP, SMOOTH: charts.SMOOTH, USUAL: charts.USUAL}


@dataclass(frozen=True)
class Plan:
    """What is to be simulated.

    Attributes:
        problem: With its expected mean.
        best: The best bound of each mechanism.
        bounds: Further bounds at which each is simulated; may be empty.
        runs: How many times the mechanism is run at each bound.
    """

    problem: PrivateCountsProblem
    best: tuple[tuple[str, float], ...]
    bounds: tuple[float, ...]
    runs: int

    def setups(self) -> tuple[tuple[str, Setup], ...]:
        """(name, setup) of everything to simulate: the best bounds first, then the curve."""
        releases = {USUAL: Release.SPLIT, CENTRED: Release.CENTRED_SPLIT}
        found = []
        for name, bound in (*self.best, *((name, h) for name in LINES for h in self.bounds)):
            problem = replace(self.problem, release=releases.get(name, Release.PAIR))
            found.append((name, Setup(problem, bound, capped=name != SMOOTH)))
        return tuple(found)


def plan(view: MeanView, value_mean: float | None, runs: int) -> Plan:
    """What to simulate for this answer; ``value_mean`` counts from L."""
    assert isinstance(view.problem, PrivateCountsProblem)
    assert view.usual is not None
    histogram = view.problem.histogram
    curve = log_spaced(float(histogram.min_size), float(histogram.max_size), POINTS)
    best = (
        (CAP, float(view.cap.max_contributions)),
        (SMOOTH, view.smooth.threshold),
        (USUAL, float(view.usual.cap.max_contributions)),
        (CENTRED, float(view.usual.centred.max_contributions)),
    )
    problem = simulation.value_mean_for(view.problem, value_mean)
    return Plan(problem, best, tuple(float(h) for h in np.unique(np.round(curve))), runs)


Results = tuple[tuple[str, Setup, MeanSimulation], ...]


def run(asked: Plan, progress: Progress = silent, should_stop: ShouldStop = never) -> Results:
    """Simulate; the work of a job."""
    named = asked.setups()
    setups = [setup for _, setup in named]
    found = simulation.simulate_all(setups, asked.runs, progress=progress, should_stop=should_stop)
    return tuple((name, setup, one) for (name, setup), (_, one) in zip(named, found, strict=False))


def approximate(setup: Setup, bounds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Delta-method standard error of a setup's mechanism at any bounds."""
    error = mean.capped_error if setup.capped else mean.smooth_error
    return np.asarray(np.sqrt(error(setup.problem, bounds).variance))


def interval(one: MeanSimulation) -> tuple[float, float]:
    """95 % confidence interval of the root of the mean squared error."""
    half_width = NORMAL_95 * one.standard_error
    return (
        math.sqrt(max(one.mean_squared_error - half_width, 0.0)),
        math.sqrt(one.mean_squared_error + half_width),
    )


def columns(results: Results) -> dict[str, npt.ArrayLike]:
    """The results as columns."""
    return {
        "mechanism": [name for name, _, _ in results],
        "bound": [setup.bound for _, setup, _ in results],
        "delta_method_error": [float(approximate(setup, setup.bound)) for _, setup, _ in results],
        "simulated_error": [math.sqrt(one.mean_squared_error) for _, _, one in results],
        "simulated_low_95": [interval(one)[0] for _, _, one in results],
        "simulated_high_95": [interval(one)[1] for _, _, one in results],
        "bias": [one.bias for _, _, one in results],
        "runs": [one.runs for _, _, one in results],
        "contribution_counts": ["private too"] * len(results),
    }


def picture(
    view: MeanView,
    asked: Plan,
    results: Results,
    data: Dataset,
    x: tuple[float, float],
    y: tuple[float, float],
) -> figures.Picture:
    """The figure with its data."""
    return figures.Picture(
        "mean-simulation",
        "Simulated errors beside the delta method",
        lambda: figure(view, asked, results, x, y),
        "Simulated standard errors as points beside the curves of the delta method.",
        columns(results),
        data.provenance,
    )


def figure(
    view: MeanView, asked: Plan, results: Results, x: tuple[float, float], y: tuple[float, float]
) -> go.Figure:
    """Simulated errors as points over the delta method's curves, at the simulated mean of the values."""
    fig = charts.log_log(BOUND_AXIS, x, "Standard error (unit of the values)", y)
    for name, line in LINES.items():
        setup = next(s for n, s in asked.setups() if n == name)
        curve = approximate(setup, view.bounds)
        charts.add_curve(fig, f"{name}, delta method", view.bounds, curve, line, HOVER)
        own = [(s.bound, one) for n, s, one in results if n == name]
        middle = np.array([math.sqrt(one.mean_squared_error) for _, one in own])
        ends = np.array([interval(one) for _, one in own]).reshape(-1, 2)
        charts.add_points(
            fig,
            f"{name}, simulated",
            [bound for bound, _ in own],
            middle,
            {"color": line["color"], "size": 8},
            f"{name}, simulated<br>bound (rows per user): %{{x:,.3~r}}<br>standard error: %{{y:.3g}}",
            error_y=charts.whiskers(ends[:, 1] - middle, middle - ends[:, 0]),
            showlegend=False,
        )
    points = {"color": charts.NEUTRAL, "size": 8}
    named = f"Points: simulated, with 95{wording.PERCENT} intervals"
    fig.add_trace(go.Scatter(x=[None], y=[None], name=named, mode="markers", marker=points, hoverinfo="skip"))
    return fig


def show(
    view: MeanView, lower: float, upper: float, data: Dataset, x: tuple[float, float], y: tuple[float, float]
) -> None:
    """The tab."""
    assert isinstance(view.problem, PrivateCountsProblem)
    st.markdown(
        "The curves above are a **delta-method approximation**. Here the mechanism itself is run again and again, on "
        "random rows with your users' counts: **points** should lie on the **curves** where the approximation is good."
    )
    asked = _inputs(view, lower, upper)
    if asked is None:
        return
    if st.button("Simulate", key="mean_simulate", type=fields.main_button(), icon=":material/casino:"):
        jobs.start(
            QUESTION.key("simulation_job"), (data.digest, asked), lambda tell, stop: run(asked, tell, stop)
        )
    if jobs.watch(QUESTION.key("simulation_job"), "Simulating"):
        return
    done = jobs.result_of(QUESTION.key("simulation_job"))
    if done is None or done[0][0] != data.digest:
        st.caption("It has not run yet. The noise comes from NumPy, so this is not a release.")
        return
    (_, of), results = done
    if of != asked:
        st.caption(
            ":material/history: These results are for earlier settings; simulate again for the new ones."
        )
    if not results:
        st.caption("Stopped before the first run.")
        return
    if len(results) < len(of.setups()) or results[-1][2].cancelled:
        st.caption("Stopped early. The figure shows what had been simulated.")
    _results(view, of, results, data, x, y)


def _inputs(view: MeanView, lower: float, upper: float) -> Plan | None:
    state = st.session_state
    state.setdefault(QUESTION.key("runs"), DEFAULT_RUNS)
    state.setdefault(QUESTION.key("simulated_mean"), None)
    assert isinstance(view.problem, PrivateCountsProblem)
    default = simulation.value_mean_for(view.problem).value_mean
    assert default is not None
    left, right = st.columns(2)
    with left:
        runs = fields.whole_number(
            "Runs at each point",
            QUESTION.key("runs"),
            100,
            MAX_RUNS,
            100,
            f"From 100 to {MAX_RUNS:,}. Bars are confidence intervals: four times the runs halve them.",
        )
    with right:
        around = fields.number(
            "Mean of the simulated values",
            QUESTION.key("simulated_mean"),
            "Strictly between L and U. Empty: the mean of your values where σ² is taken from them, else the "
            "middle. Simulated values are one of two numbers, with this mean and variance σ², or less where the mean "
            "allows no more.",
            placeholder=f"{wording.number(lower + default)}",
        )
    if runs is None:
        return None
    if around is not None and not lower < around < upper:
        low, high = wording.entered(lower), wording.entered(upper)
        st.error(
            f"The mean of the simulated values must lie between L = {low} and U = {high}; got "
            f"{wording.entered(around)}.",
            icon=":material/error:",
        )
        return None
    return plan(view, None if around is None else around - lower, runs)


def _results(
    view: MeanView, of: Plan, results: Results, data: Dataset, x: tuple[float, float], y: tuple[float, float]
) -> None:
    figures.show_picture(picture(view, of, results, data, x, y))
    best = results[: len(of.best)]
    tables.show(
        {
            "At its best bound": [name for name, _, _ in best],
            "Bound, rows": [wording.number(setup.bound) for _, setup, _ in best],
            "Delta-method error": [wording.number(float(approximate(s, s.bound))) for _, s, _ in best],
            "Simulated error": [wording.number(math.sqrt(one.mean_squared_error)) for _, _, one in best],
            f"95{wording.PERCENT} interval": [
                " to ".join(wording.number(end) for end in interval(one)) for *_, one in best
            ],
            "Bias": [wording.number(one.bias, 2) for _, _, one in best],
            "Runs": [one.runs for _, _, one in best],
        },
        "Error by the delta method and by simulation, each mechanism at its own best bound",
        formats={"Runs": "localized"},
    )
    mu, sigma = of.problem.value_mean, math.sqrt(of.problem.value_variance)
    assert mu is not None
    st.caption(
        f"Simulated values have mean L + {wording.number(mu)} and standard deviation {wording.number(sigma)}; the "
        "curves here are drawn for those. The noise comes from NumPy, so this is not a release."
    )
    cards.label(data.provenance)
