"""What the page Factorisation trains, beside the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dpcore.common.progress import ShouldStop
from dpcore.factorisation.answer import stored
from dpcore.factorisation.answer.found import RatingsInUse
from dpcore.factorisation.parameters import LARGE, FactorisationParameters
from dpcore.factorisation.study import StudyResult, run
from pages.factorisation.question import QUESTION
from pages.shared.fields import fields, jobs

TRAIN, LARGE_JOB = QUESTION.key("train_job"), QUESTION.key("large_job")
EARLIER = QUESTION.key("earlier")
"""The last training that was finished, with its question."""
LARGE_COST = "about 0.8 GB of memory, and half a minute on a free processor"
"""Measured: 0.72 GB with all of Python; 14 s of processor time, 4.5 of them to draw the ratings."""


def question(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[object, ...]:
    """Return what a training answers: the ratings and what is run, without the page's own epsilon."""
    study = replace(parameters.study, epsilons=(1.0,))
    return table.key, study


def start(table: RatingsInUse, parameters: FactorisationParameters) -> None:
    """Train all models on this table."""
    ratings, study = table.ratings, parameters.study
    held = jobs.result_of(TRAIN)
    if held is not None and isinstance(held[1], StudyResult) and held[1].finished:
        st.session_state[EARLIER] = held  # Stop, or an error, does not take it away.
    jobs.start(
        TRAIN, question(table, parameters), lambda tell, stop: run(ratings, study, tell, stop), heavy=True
    )


def found(table: RatingsInUse, parameters: FactorisationParameters) -> tuple[StudyResult | None, bool]:
    """Return what was trained for this question as far as it is, here or before it was stored, and whether
    that is all.
    """
    asked = question(table, parameters)
    earlier = st.session_state.get(EARLIER)
    earlier = earlier[1] if earlier is not None and earlier[0] == asked else None
    for held, finished in ((jobs.result_of(TRAIN), True), (jobs.so_far_of(TRAIN), False)):
        if held is not None and held[0] == asked and isinstance(held[1], StudyResult):
            if earlier is not None and finished and not held[1].finished:
                return earlier, True  # What was stopped has less than what there was.
            return held[1], finished
    if earlier is None:
        earlier = stored.find_stored(parameters)
    return (None, False) if earlier is None else (earlier, True)


def show_progress(table: RatingsInUse, parameters: FactorisationParameters) -> bool:
    """Return how far the training is, with Stop. Returns whether it runs."""
    job: jobs.Job | None = st.session_state.get(TRAIN)
    if job is not None and job.running and job.question != question(table, parameters):
        job.stop()  # Nobody waits for the answer to another question.
    return jobs.watch(TRAIN, "Training")


def show_button(table: RatingsInUse, parameters: FactorisationParameters, trained: bool) -> None:
    """*Train*, with what it costs."""
    st.button(
        "Train again" if trained else "Train",
        type="secondary" if trained else fields.main_button(),
        icon=":material/model_training:",
        key="factorisation_train",
        on_click=start,
        args=(table, parameters),
    )
    job: jobs.Job | None = st.session_state.get(TRAIN)
    if job is not None and not trained and job.question != question(table, parameters):
        st.caption(":material/history: The last training was for other settings.")


def start_large(parameters: FactorisationParameters) -> None:
    """Draw ratings at the size of MovieLens 10M, and train at the page's epsilon."""
    study = parameters.large_study
    seed = parameters.data_seed

    def work(tell: jobs.Tell, stop: ShouldStop) -> StudyResult | None:
        ratings = LARGE.draw(np.random.default_rng(seed))
        return run(ratings, study, tell, stop)

    jobs.start(LARGE_JOB, (study, seed), work, heavy=True)
