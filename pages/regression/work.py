"""The Regression page's searches: beside the page, with progress and Stop; what was stopped is a result."""

from __future__ import annotations

import streamlit as st

from dpcore.regression import sample_limiting, working_set
from dpcore.regression.estimate import LinearEstimate, Step
from dpcore.regression.parameters import RegressionParameters
from dpcore.regression.sample_limiting import CapDraws
from pages.regression import cached, figures, inputs
from pages.regression.answer import RegressionView
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared import figure, jobs, session
from pages.shared.figures import file_name

DRAWS, DRAWS_OF_MANY_ROWS, MANY_ROWS = 10, 3, 50_000
"""Draws per cap, and per cap where there are many rows: they hardly differ then, and cost more."""


def answer(loaded: RegressionData, parameters: RegressionParameters) -> RegressionView | None:
    """The answer, or None while it is sought: then progress, Stop and the gap are on the page."""
    data = loaded.dataset
    assert data.table is not None
    variance = inputs.residual_variance(loaded, parameters)
    problem = cached.regression_problem(data.digest, parameters, variance, data.table)
    asked = (data.digest, parameters.epsilon, parameters.value_bound, variance)
    drawn = (data.digest, parameters.lower, parameters.upper)
    if _differs(QUESTION.key("solve"), asked):
        st.session_state[QUESTION.key("steps")] = []
    steps = _steps()  # Looked up here: the thread cannot reach the session's state.
    _start(
        QUESTION.key("solve"),
        asked,
        lambda p, s: working_set.solve(problem, progress=p, should_stop=s, on_step=steps.append),
    )
    labels = parameters.clipped(data.table)
    rounds = DRAWS if problem.num_rows <= MANY_ROWS else DRAWS_OF_MANY_ROWS
    options = sample_limiting.CapOptions(draws=rounds)
    _start(
        QUESTION.key("caps"),
        drawn,
        lambda p, s: sample_limiting.study(problem, options, labels, progress=p, should_stop=s),
    )
    ours, draws = _found(QUESTION.key("solve"), asked), _found(QUESTION.key("caps"), drawn)
    if not (isinstance(ours, LinearEstimate) and isinstance(draws, CapDraws)):
        running = [key for key in (QUESTION.key("solve"), QUESTION.key("caps")) if _runs(key)]
        failed = [key for key in (QUESTION.key("solve"), QUESTION.key("caps")) if jobs.say_failure(key)]
        if running or not failed:
            _live()
        return None
    ended = (asked, drawn, ours.certificate.value, ours.certificate.lower_bound, draws.num_draws)
    return cached.regression_answer(ended, parameters, loaded, problem, ours, draws)


def again() -> None:
    """Forget what was found, so that the next run of the page searches anew."""
    for key in (QUESTION.key("solve"), QUESTION.key("caps")):
        st.session_state.pop(key, None)


def _runs(key: str) -> bool:
    job: jobs.Job | None = st.session_state.get(key)
    return job is not None and job.running


def _differs(key: str, question: object) -> bool:
    job: jobs.Job | None = st.session_state.get(key)
    return job is None or job.question != question


def _start(key: str, question: object, work: jobs.Work) -> None:
    if _differs(key, question):
        jobs.start(key, question, work)


def _found(key: str, question: object) -> object | None:
    done = jobs.result_of(key)
    return done[1] if done is not None and done[0] == question else None


def _steps() -> list[Step]:
    steps: list[Step] = st.session_state.setdefault(QUESTION.key("steps"), [])
    return steps


@st.fragment(run_every=jobs.POLL_SECONDS)
def _live() -> None:
    """Progress of both searches with Stop, and the gap as it closes; the page is drawn anew at their end."""
    found = {key: st.session_state.get(key) for key in (QUESTION.key("solve"), QUESTION.key("caps"))}
    if not any(job is not None and job.running for job in found.values()):
        st.rerun()
    doing = {QUESTION.key("solve"): "Closing the gap", QUESTION.key("caps"): "Trying caps"}
    with st.container(border=True, key="regression_live"):
        for key, job in found.items():
            if job is None or job.failed:
                continue
            with st.container(horizontal=True, vertical_alignment="center"):
                state = f"{job.progress:.0%}" if job.running else "done"
                st.progress(job.progress if job.running else 1.0, f"{doing[key]}: {state}")
                st.button(
                    "Stop",
                    key=f"{key}_stop",
                    on_click=job.stop,
                    icon=":material/stop:",
                    disabled=not job.running,
                    help="What was found until then, with what is proved of it, becomes the result.",
                )
        steps = list(_steps())
        if len(steps) > 1:
            figure.draw(
                figures.gap_figure(steps),
                "regression_live_gap",
                figures.gap_alt(steps),
                file_name("regression_live_gap", session.dataset().provenance),
            )
