"""One DP draw of the coefficients, on request, counted; and the table of coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import ReleaseFacts, rounded_up
from dpcore.data.tables import harmless
from dpcore.regression import files
from dpcore.regression.draw import Draw, draw_coefficients, interval_half_widths, together
from dpcore.regression.estimate import coefficient_variances
from pages.regression.answer import RegressionView, Stage
from pages.regression.question import QUESTION
from pages.shared import cards, fields
from pages.shared.text import plain


def show(view: RegressionView) -> None:
    """What a draw would be, the button, and the latest draw with its label."""
    made = draws_of(view)
    epsilon = rounded_up(view.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(view.ours.noise.scale)}** to each coefficient, by "
        f"OpenDP, and spends **ε = {epsilon}**. The page keeps it and draws again only when you ask; every "
        "further draw of the same labels spends more."
    )
    if view.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    again = f"Draw once more: spends another ε = {epsilon}"
    st.button(
        again if made else f"Draw the coefficients: spends ε = {epsilon}",
        key="regression_draw",
        on_click=_draw,
        args=(view,),
        type="secondary" if made else fields.main_button(),
        icon=":material/casino:",
        disabled=view.variance_is_private or view.stage is not Stage.FINAL,
        help=None if view.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    refused: InvalidInput | None = st.session_state.pop(QUESTION.key("refused"), None)
    if refused is not None:
        fields.say(refused.problems)
    _show_account(view, made, spent_on(view))
    _show_table(view, made[-1] if made else None)
    if not made:
        cards.label(view.loaded.dataset.provenance)
    else:
        st.download_button(
            "Released coefficients (CSV)",
            lambda: files.released_csv(made),
            file_name="regression-released-coefficients.csv",
            mime="text/csv",
            key="regression_released_file",
            on_click="ignore",
            icon=":material/download:",
        )


def draws_of(view: RegressionView) -> list[Draw]:
    """The draws of these labels in this session, oldest first."""
    accounts: dict[str, list[Draw]] = st.session_state.setdefault(QUESTION.key("draws"), {})
    return accounts.setdefault(view.loaded.account, [])


def spent_on(view: RegressionView) -> tuple[float, ...]:
    """Epsilon of every draw of these labels in this session, those included that ended in an error."""
    return tuple(facts.epsilon for facts in _ledger(view).releases)


def _ledger(view: RegressionView) -> Ledger:
    accounts: dict[str, Ledger] = st.session_state.get(QUESTION.key("spent"), {})
    return accounts.get(view.loaded.account, Ledger())


def _charge(view: RegressionView, facts: ReleaseFacts) -> None:
    st.session_state[QUESTION.key("spent")] = {
        **st.session_state.get(QUESTION.key("spent"), {}),
        view.loaded.account: _ledger(view).after(facts),
    }


def _draw(view: RegressionView) -> None:
    table = view.loaded.dataset.table
    assert table is not None
    half_widths = interval_half_widths(
        view.problem, view.ours
    )  # From public figures: before anything is spent.
    try:
        drawn = draw_coefficients(
            view.problem,
            view.ours,
            table.labels,
            view.parameters.lower,
            charge=lambda facts: _charge(view, facts),
        )
    except InvalidInput as refused:
        st.session_state[QUESTION.key("refused")] = refused
        return
    draws_of(view).append(Draw(view.problem.digest, view.problem.feature_names, drawn, half_widths))


def _show_account(view: RegressionView, made: list[Draw], spent: tuple[float, ...]) -> None:
    """How much was spent, and whether the latest draw answers what is asked now."""
    if made:
        cards.label(made[-1].coefficients.facts)
    total = rounded_up(together(spent))
    if len(spent) == 1 and made:
        st.markdown(f"**This is draw 1: ε = {total}.**")
    elif made:
        st.markdown(
            f"**This is draw {len(spent)}: together ε = {total}.** Publishing all of them spends the sum."
        )
    lost = len(spent) - len(made)
    if lost:
        st.warning(
            f"{wording.counted(lost, 'draw')} of these labels {wording.agreeing(lost, 'is', 'are')} on the account and "
            "not here: made in a session that a file brought back, or ended in an error after noise may have been "
            f"drawn. ε = {total} in all.",
            icon=":material/warning:",
        )
    if made and made[-1].question != view.problem.digest:
        st.info(
            "The settings have changed since this draw. The table shows the draw as it was made then.",
            icon=":material/history:",
        )


def _show_table(view: RegressionView, draw: Draw | None) -> None:
    columns: dict[str, Any]
    if draw is None:
        errors = np.sqrt(coefficient_variances(view.problem, view.ours))
        columns = {
            "Coefficient": [harmless(name) for name in view.problem.feature_names],
            "Noise scale b": np.full(errors.size, view.ours.noise.scale),
            "Standard error": errors,
        }
    else:
        values, half = draw.coefficients.release.values, draw.half_widths
        columns = {
            "Coefficient": [harmless(name) for name in draw.names],
            "Released": values,
            "95 % from": values - half,
            "95 % to": values + half,
            "Noise scale b": np.full(half.size, draw.coefficients.release.scale),
            "Standard error": draw.coefficients.standard_errors,
        }
    truth = view.loaded.coefficients
    if truth is not None and len(columns["Coefficient"]) == truth.size:
        columns["True (generated)"] = truth
    number = {name: st.column_config.NumberColumn(format="%.4g") for name in columns if name != "Coefficient"}
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        column_config=number,
        key="regression_coefficients",
        alt="Coefficients with noise scale, standard error and, once drawn, released value and interval",
    )
    unit = plain(view.unit, 30)
    st.caption(
        f"A coefficient is in {unit} per unit of its feature; that of a one-hot feature is in {unit}, compared with "
        "the reference level. Standard error and interval contain sampling error and noise, take σ² as given and "
        "hold for each coefficient alone, where the labels follow the model and few are clipped."
    )
