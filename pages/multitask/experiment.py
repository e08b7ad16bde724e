"""The tab of the page Many tasks that runs the paper's experiment."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.multitask.answer import answer as shown
from dpcore.multitask.experiment import FIGURES, ExperimentResult, run_experiment
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import paper, plots


def show(parameters: MultitaskParameters) -> None:
    """Draw the tab: inputs, button and figures, and below them the paper's figure at its setting."""
    _show_runs(parameters)
    st.divider()
    paper.show(FIGURES)


def _show_runs(parameters: MultitaskParameters) -> None:
    st.markdown(
        "Appendix C of the paper, run here: 100 linear regressions in 5 dimensions, each user in 20 of them "
        "on average; 80 % of the pairs train, 20 % test. **Which μ predicts best?** Weights are scaled so "
        "that every user spends the whole budget; within a repeat all μ share data and noise."
    )
    names = ("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed")
    columns = fields.columns(QUESTION, [3, 3, 2, 2, 3], *names)
    with columns[4]:
        is_started = fields.button("Run", "tasks_run", "play_arrow", width="stretch", is_main=True)
    question = parameters.experiment
    if is_started:
        jobs.start(
            QUESTION.key("experiment_job"),
            question,
            lambda progress, stop: run_experiment(question, progress, stop),
        )
    idle = "It has not run yet. With these defaults it takes about ten seconds."
    done = jobs.outcome(QUESTION.key("experiment_job"), "Running", question, idle)
    if done is None:
        return
    result = done[1]
    if not np.isfinite(result.rmse).any():
        st.info("Stopped before the first run was done.", icon=":material/stop_circle:")
        return
    _figures(result)


def _figures(result: ExperimentResult) -> None:
    experiment = result.experiment
    done = int(np.isfinite(result.rmse).sum())
    if not result.finished:
        st.caption(f":material/stop_circle: Stopped after {done:,} of {result.rmse.size:,} runs.")
    relative = st.toggle(
        "Relative to uniform weights (μ = 0)",
        value=True,
        key=QUESTION.key("relative"),
        persist_state="session",
        help="Each repeat's error over that of μ = 0 on the same data and noise. Off: the errors themselves.",
    )
    for a in range(len(experiment.algorithms)):
        for p, column in enumerate(st.columns(len(experiment.powers))):
            if not np.isfinite(result.rmse[a, p]).any():
                continue
            with column:
                plots.draw_titled(shown.plot_errors(result, a, p, relative))
    alt = "Best exponent per algorithm, skew and privacy budget, and what 1/2 gains over 0 and 1"
    tables.show(shown.tabulate_errors(result), alt, formats={"Its RMSE": "%.4f"})
    st.caption(
        f"{wording.counted(done, 'run')}; whiskers and ± are two standard errors over "
        f"{wording.counted(experiment.repeats, 'repeat')}, the last two columns paired: a minus sign means "
        f"that μ = 1/2 has the smaller error. δ = {wording.entered(experiment.delta)}. The paper gives neither "
        "regularisation nor clipping bounds nor steps; those used here were chosen on other seeds."
    )
    cards.label(Disclosure.PUBLIC)
