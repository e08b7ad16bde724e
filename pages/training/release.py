"""One DP release of a model, on request, counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import ReleaseFacts, rounded_up
from dpcore.data.tables import harmless
from dpcore.training import files
from dpcore.training.files import Draw
from dpcore.training.mechanism import Mechanism
from dpcore.training.release import train_once
from dpcore.training.rows import ClassifierRows
from pages.shared import cards, fields
from pages.shared.text import plain
from pages.training import cached
from pages.training.answer import TrainingView
from pages.training.card import weight_of
from pages.training.question import QUESTION


def asked(view: TrainingView) -> object:
    """What a release would answer now."""
    return (view.loaded.dataset.digest, view.loaded.scaling, view.parameters.positive_above,
            mechanism_of(view), view.parameters.bound)  # fmt: skip


def mechanism_of(view: TrainingView) -> Mechanism:
    """That of the page, with all users in every step: OpenDP accounts for no sampling here."""
    return replace(view.parameters.mechanism, sampled=1.0)


def show(view: TrainingView) -> None:
    """What a release would be, the button, and the latest one with its label."""
    made, parameters = draws_of(view), view.parameters
    cost = f"ε = {rounded_up(parameters.epsilon)}, δ = {rounded_up(parameters.delta)}"
    st.markdown(
        f"A release trains on **all {wording.counted(view.loaded.dataset.histogram.num_users, 'user')}**, with smooth "
        f"weights of at most {weight_of(parameters.bound)} per user (*More settings*: bound h of a release). Gradients "
        f"are rounded onto a public grid before they are added up, and OpenDP's discrete Gaussian noise covers all "
        f"{parameters.steps} steps. It spends **{cost}**. The page keeps it and draws again only when you ask."
    )
    st.caption(
        ("All users take part in every step of a release. " if parameters.sampled < 1.0 else "")
        + "Everything else on this page is a simulation with NumPy's noise, and no release. ε does not cover h, steps "
        "or step size where they were chosen by looking at these data."
    )
    st.button(
        f"Train once more: spends another {cost}" if made else f"Train once: spends {cost}",
        key="training_release",
        on_click=_draw,
        args=(view,),
        type="secondary" if made else fields.main_button(),
        icon=":material/casino:",
    )
    refused: InvalidInput | None = st.session_state.pop(QUESTION.key("refused"), None)
    if refused is not None:
        fields.say(refused.problems)
    _show_account(view, made)
    if made:
        _show_model(made[-1])
        st.download_button(
            "Released models (CSV)",
            lambda: files.models_csv(made),
            file_name="training-released-models.csv",
            mime="text/csv",
            key="training_released_file",
            on_click="ignore",
            icon=":material/download:",
        )


def draws_of(view: TrainingView) -> list[Draw]:
    """The releases of these rows in this session, oldest first."""
    accounts: dict[str, list[Draw]] = st.session_state.setdefault(QUESTION.key("draws"), {})
    return accounts.setdefault(view.loaded.account, [])


def ledger_of(view: TrainingView) -> Ledger:
    """What was spent on these rows in this session, releases included that ended in an error."""
    ledgers: dict[str, Ledger] = st.session_state.get(QUESTION.key("spent"), {})
    return ledgers.get(view.loaded.account, Ledger())


def _charge(view: TrainingView, facts: ReleaseFacts) -> None:
    st.session_state[QUESTION.key("spent")] = {
        **st.session_state.get(QUESTION.key("spent"), {}),
        view.loaded.account: ledger_of(view).after(facts),
    }


def _draw(view: TrainingView) -> None:
    loaded, parameters = view.loaded, view.parameters
    assert loaded.scaling is not None
    assert loaded.dataset.table is not None
    rows: ClassifierRows = cached.rows(
        loaded.dataset.digest, loaded.scaling, parameters.positive_above, loaded
    )
    try:
        model = train_once(
            rows, mechanism_of(view), parameters.bound, charge=lambda facts: _charge(view, facts)
        )
    except InvalidInput as refused:
        st.session_state[QUESTION.key("refused")] = refused
        return
    draws_of(view).append(Draw(asked(view), loaded.dataset.table.feature_names, loaded.scaling, model))


def _show_account(view: TrainingView, made: list[Draw]) -> None:
    """How much was spent, and whether the latest release answers what is asked now."""
    ledger = ledger_of(view)
    if made:
        cards.label(made[-1].model.facts)
        st.markdown(f"**{ledger.sentence}** Publishing all of them spends the sum.")
    lost = len(ledger.releases) - len(made)
    if lost:
        st.warning(
            f"{wording.counted(lost, 'release')} of these rows {wording.agreeing(lost, 'is', 'are')} on the account "
            "and not here: made in a session that a file brought back, or ended in an error after noise may have been "
            f"drawn. {ledger.sentence}",
            icon=":material/warning:",
        )
    if made and made[-1].question != asked(view):
        st.info(
            "The settings have changed since this release. The table shows it as it was made then.",
            icon=":material/history:",
        )


def _show_model(draw: Draw) -> None:
    columns: dict[str, Any] = {
        "Feature": [harmless(name) for name in draw.names],
        "Lowest": [np.nan if pair is None else pair[0] for pair in draw.scaling.ranges],
        "Highest": [np.nan if pair is None else pair[1] for pair in draw.scaling.ranges],
        "θ": draw.model.theta,
    }
    number = {name: st.column_config.NumberColumn(format="%.4g") for name in columns if name != "Feature"}
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        column_config=number,
        key="training_model",
        alt="The released model: range and coefficient of each feature",
    )
    st.caption(
        f"A feature with a range is clipped to it and mapped to [−1, 1]; a row longer than "
        f"{wording.number(draw.scaling.norm)} is shortened to that, then all are divided by it. A score θ·x above 0 "
        f"says {plain('1')}. Noise of a step: standard deviation {wording.number(draw.model.noise)} rows on each "
        "coordinate of the summed gradient."
    )
