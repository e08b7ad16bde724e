"""The tab that trains: accuracy on digits of invented users, beside the estimate."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common.privacy import Disclosure
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import training as told
from dpcore.examples_per_user.trained import Kind, Trained, train
from pages.examples_per_user.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots

KEY = QUESTION.key("train_job")
KINDS = {Kind.DIVERSE: "Any digits", Kind.ALIKE: "One or two kinds"}


def show(parameters: ExamplesParameters) -> None:
    """Choose the users, train, and show accuracy beside the estimate."""
    st.markdown(
        "Does the estimate rank bounds as accuracy does? Here six bounds are trained both ways, on public digits of "
        "invented users."
    )
    st.session_state.setdefault(QUESTION.key("kind"), Kind.DIVERSE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind: Kind = fields.choice("A user has", KINDS, QUESTION.key("kind"))
        asked = (kind, parameters.epsilon, parameters.delta)
        fields.button("Train", "examples_per_user_train", "school", start, *asked)
    if jobs.watch(KEY, "Training"):
        return
    if jobs.say_failure(KEY):
        return
    done = jobs.result_of(KEY)
    if done is None:
        return
    if done[0] != asked:
        st.caption("The trainings made were for other users, ε or δ: train again to see them here.")
        return
    trained: Trained | None = done[1]
    if trained is None:
        st.info("Stopped before the first training of every bound was done.", icon=":material/stop_circle:")
        return
    if trained.cancelled:
        st.info("Stopped: what was trained until then is shown.", icon=":material/stop_circle:")
    plots.draw_beside(told.accuracy(trained), told.estimate(trained))
    st.markdown(told.best_sentence(trained))
    st.dataframe(pd.DataFrame(told.rows(trained)), hide_index=True, key="examples_per_user_trained")
    st.caption(told.what_was_done(trained))
    cards.label(Disclosure.PUBLIC)


def start(kind: Kind, epsilon: float, delta: float) -> None:
    """Train beside the page."""
    jobs.start(
        KEY,
        (kind, epsilon, delta),
        lambda tell, stop: train(kind, epsilon, delta, progress=tell, should_stop=stop),
        heavy=True,
    )
