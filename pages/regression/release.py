"""One DP draw of the coefficients, on request, counted; and the table of coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import rounded_up
from dpcore.data.tables import harmless
from dpcore.regression import files
from dpcore.regression.draw import Draw, draw_coefficients, interval_half_widths, together
from dpcore.regression.estimate import coefficient_variances
from pages.regression.answer import RegressionView
from pages.shared import cards, fields, keys
from pages.shared.text import plain


def show(view: RegressionView) -> None:
    """What a draw would be, the button, and the latest draw with its label."""
    made = draws_of(view)
    epsilon = rounded_up(view.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(view.ours.noise.scale)}** to each coefficient, by "
        f"OpenDP, and spends **ε = {epsilon}**. It is kept as it is: nothing on this page draws again unasked, and "
        "every further draw of the same labels spends more."
    )
    if view.noise_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish above, then draw.",
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
        disabled=view.noise_is_private,
    )
    refused: InvalidInput | None = st.session_state.pop(keys.REGRESSION_REFUSED, None)
    if refused is not None:
        fields.say(refused.problems)
    if made:
        _account(view, made)
    _table(view, made[-1] if made else None)
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
    accounts: dict[str, list[Draw]] = st.session_state.setdefault(keys.REGRESSION_DRAWS, {})
    return accounts.setdefault(view.loaded.account, [])


def _draw(view: RegressionView) -> None:
    table = view.loaded.dataset.table
    assert table is not None
    try:
        drawn = draw_coefficients(view.problem, view.ours, table.labels, view.parameters.lower)
    except InvalidInput as refused:
        st.session_state[keys.REGRESSION_REFUSED] = refused
        return
    half_widths = interval_half_widths(view.problem, view.ours)
    draws_of(view).append(Draw(view.problem.digest, view.problem.feature_names, drawn, half_widths))


def _account(view: RegressionView, made: list[Draw]) -> None:
    """How much was spent, and whether the latest draw answers what is asked now."""
    spent = [draw.coefficients.release.epsilon for draw in made]
    total, last = rounded_up(together(spent)), rounded_up(spent[-1])
    cards.label(made[-1].coefficients.facts)
    if len(made) == 1:
        st.markdown(f"**This is draw 1: ε = {last}.**")
    else:
        st.markdown(
            f"**This is draw {len(made)}: together ε = {total}.** Publishing all of them spends the sum."
        )
    if made[-1].question != view.problem.digest:
        st.info(
            "The settings have changed since this draw. It stays what it is; the table shows it as it was drawn.",
            icon=":material/history:",
        )


def _table(view: RegressionView, draw: Draw | None) -> None:
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
        f"Unit of a coefficient: {unit} per unit of its feature; of a one-hot feature: {unit}, compared with the "
        "reference level. Standard error and interval contain sampling error and noise, take σ² as given and hold "
        "for each coefficient alone, where the labels follow the model and few are clipped."
    )
