"""Simulation of a mean with private counts, drawn beside its delta-method error: the tab with its work."""

from __future__ import annotations

import math

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import simulation
from dpcore.mean.answer import simulated
from dpcore.mean.answer.simulated import Plan, Results, approximate, interval, plan
from pages.mean.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots

DEFAULT_RUNS = 4000
MAX_RUNS = 1_000_000


def show(answer: Answer, data: Dataset, main: Plot) -> None:
    """The tab."""
    st.markdown(
        "The curves above are a **delta-method approximation**. Here the mechanism itself is run again and again, on "
        "random rows with your users' counts: **points** should lie on the **curves** where the approximation is good."
    )
    asked = _inputs(answer)
    if asked is None:
        return
    if st.button("Simulate", key="mean_simulate", type=fields.main_button(), icon=":material/casino:"):
        jobs.start(
            QUESTION.key("simulation_job"),
            (data.digest, asked),
            lambda tell, stop: simulated.run(asked, tell, stop),
        )
    done = jobs.outcome(
        QUESTION.key("simulation_job"),
        "Simulating",
        (data.digest, asked),
        "It has not run yet. The noise comes from NumPy, so this is not a release.",
        fits=lambda question: question[0] == data.digest,
    )
    if done is None:
        return
    (_, of), results = done
    if not results:
        st.caption("Stopped before the first run.")
        return
    if len(results) < len(of.setups()) or results[-1][2].cancelled:
        st.caption("Stopped early. The figure shows what had been simulated.")
    _results(answer, of, results, main)


def _inputs(answer: Answer) -> Plan | None:
    state, problem = st.session_state, answer.found.problem
    lower, upper = answer.parameters.lower, answer.parameters.upper
    state.setdefault(QUESTION.key("runs"), DEFAULT_RUNS)
    state.setdefault(QUESTION.key("simulated_mean"), None)
    default = simulation.value_mean_for(problem).value_mean
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
    return plan(answer.found, None if around is None else around - lower, runs)


def _results(answer: Answer, of: Plan, results: Results, main: Plot) -> None:
    plots.draw(simulated.plot(answer.found, of, results, main))
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
    cards.label(answer.disclosure)
